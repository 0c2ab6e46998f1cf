// `<plexus-push-offer>`: offers notifications to a device that has just joined, until the user decides. People pair a phone to be notified.

import { css, html, nothing } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { signal } from '../lib/signal.js';
import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { push, refreshPush, subscribe } from './push.js';

const t = text.notify.offer;
/** The key under which a browser stores that the user has not decided yet. */
const KEY = 'plexus.push-offer';

const kept = (): boolean => { try { return localStorage.getItem(KEY) !== null; } catch { return false; } };
const offered = signal(kept());

/** Notifications are to be offered, or no longer. */
export function offerPush(on: boolean): void {
  offered.value = on;
  try { if (on) localStorage.setItem(KEY, '1'); else localStorage.removeItem(KEY); } catch { /* Then it is offered in this tab only. */ }
}

export class PlexusPushOffer extends PlexusElement {
  static override properties = { busy: { state: true }, trouble: { state: true } };
  declare private busy: boolean;
  declare private trouble: string;
  #asked = false;

  constructor() {
    super();
    this.busy = false;
    this.trouble = '';
  }

  static override styles = [
    ...[PlexusElement.styles].flat(),
    css`
      :host { display: block; min-width: 0; }
      section { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 12px; padding: 10px 16px; background: var(--info-wash); border-block-end: 1px solid var(--line); }
      section > svg { flex: none; color: var(--info); }
      p { flex: 1 1 14rem; min-inline-size: 0; }
      small { display: block; color: var(--fg-soft); font-size: var(--t-s); }
      .do { display: flex; flex-wrap: wrap; gap: 8px; }
      button { min-block-size: 44px; }
    `,
  ];

  async #turnOn(): Promise<void> {
    this.busy = true;
    this.trouble = await subscribe().catch((error: unknown) => text.notify.failed(error instanceof Error ? error.message : String(error)));
    this.busy = false;
    if (!this.trouble) offerPush(false);
  }

  override render() {
    if (!offered.value || !plexus.live.value) return nothing;
    if (!this.#asked) { this.#asked = true; void refreshPush(); }
    const { is, words } = push.value;
    if (is === 'on' || is === 'unknown') return nothing;
    const can = is === 'off';
    return html`<section role="region" aria-label=${text.notify.title}>${icon('bell', 18)}
      <p>${t.text}${can && !this.trouble ? nothing : html`<small role="status">${this.trouble || words}</small>`}</p>
      <span class="do">
        ${can ? html`<button class="primary" data-do="on" aria-disabled=${this.busy} @click=${() => { if (!this.busy) void this.#turnOn(); }}>${text.notify.on}</button>` : nothing}
        <button class="ghost" data-do="later" @click=${() => offerPush(false)}>${t.later}</button>
      </span></section>`;
  }
}
customElements.define('plexus-push-offer', PlexusPushOffer);
