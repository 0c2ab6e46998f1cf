// Small parts that pages share.
import { css, html, nothing, type TemplateResult } from 'lit';
import { customElement, property } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { ago, exact, span } from '../lib/time.js';
import { plexus, Refused, why } from '../plexus.js';
import { text } from '../text/en.js';
import { icon, type Icon } from './icons.js';
import { toast } from './say.js';

/** An age that is kept up to date: `<plexus-age at="2026-..">`. `short` leaves out "ago". */
@customElement('plexus-age')
export class PlexusAge extends PlexusElement {
  /** RFC 3339, or ms. */
  @property() at: string | number = '';
  @property({ type: Boolean }) short = false;
  static override styles = [...[PlexusElement.styles].flat(), css`:host { display: inline; font-variant-numeric: tabular-nums; white-space: nowrap; }`];
  override render() {
    const at = typeof this.at === 'number' ? this.at : Date.parse(this.at);
    if (!Number.isFinite(at)) return nothing;
    const d = plexus.now.value - at;
    const words = this.short ? (d < 5_000 ? text.common.now : span(d)) : ago(at, plexus.now.value);
    return html`<time datetime=${new Date(at).toISOString()} title=${exact(at)}>${words}</time>`;
  }
}

/** The placeholder of an empty list: an icon, a heading, a hint. */
export function empty(mark: Icon, heading: string, body?: string | TemplateResult, more?: TemplateResult): TemplateResult {
  return html`<div class="empty"><span class="mark">${icon(mark, 22)}</span><h2>${heading}</h2>${body ? html`<p class="soft">${body}</p>` : nothing}${more ?? nothing}</div>`;
}

/** The placeholder before anything was loaded: loading, or the gateway is not reachable. */
export function notYet(): TemplateResult {
  return html`<p class="mute">${plexus.live.value || plexus.link.value.phase === 'connecting' ? text.common.loading : text.shell.stale.unknown}</p>`;
}

/** A terminal command with a copy button. */
export function command(words: string): TemplateResult {
  return html`<div class="command"><code>${words}</code><button class="ghost icon compact" aria-label=${text.common.copy} @click=${() => copy(words)}>${icon('copy', 14)}</button></div>`;
}

export async function copy(words: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(words);
    toast(text.common.copied, { tone: 'ok' });
  } catch (error) { toast(text.shell.failed(String(error)), { tone: 'danger' }); }
}

/** Runs something that may fail; shows the error if it does. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try { return await work(); } catch (error) {
    toast(text.shell.failed(error instanceof Refused || error instanceof Error ? why(error) : String(error)), { tone: 'danger' });
    return undefined;
  }
}

/** Styles that all pages share. */
export const pageStyles = css`
  :host { display: block; }
  /* Pages begin at one place, so that none jumps aside: what is narrower stands at the left. */
  .page { max-width: 1000px; margin: 0 auto; padding: var(--s5) var(--s5) 96px; }
  .page > header, .head { display: flex; align-items: center; gap: var(--s3); min-height: 34px; margin-bottom: var(--s4); flex-wrap: wrap; }
  .page > header h1 { flex: 1; min-width: 0; }
  h1:focus-visible { outline: none; }
  .section { margin-top: var(--s6); }
  .section > header { display: flex; align-items: center; gap: var(--s2); margin-bottom: var(--s2); }
  .section > header h2 { flex: 1; }
  .empty { display: flex; flex-direction: column; align-items: center; text-align: center; gap: var(--s2); padding: clamp(36px, 12vh, 120px) var(--s4) var(--s7); }
  .empty .mark { display: grid; place-items: center; width: 48px; height: 48px; border-radius: 14px; background: var(--accent-wash); color: var(--accent); margin-bottom: var(--s2); }
  .empty p { max-width: 42ch; }
  .empty .command, .empty button, .empty .btn { margin-top: var(--s2); }
  .command { display: inline-flex; align-items: center; gap: var(--s2); max-width: 100%; padding: 4px 4px 4px 12px; border: 1px solid var(--line); border-radius: var(--r-s); background: var(--bg-code); }
  .command code { user-select: all; }
  .list { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); box-shadow: var(--shadow-1); }
  .list > li + li { border-top: 1px solid var(--line); }
  .list > li:first-child { border-radius: var(--r-m) var(--r-m) 0 0; }
  .list > li:last-child { border-radius: 0 0 var(--r-m) var(--r-m); }
  .actions { display: flex; gap: var(--s2); justify-content: flex-end; flex-wrap: wrap; }
  @media (max-width: 599px) {
    .page { padding: var(--s4) var(--s3) 88px; }
  }
`;
