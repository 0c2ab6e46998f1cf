import { css, html, nothing } from 'lit';
import { customElement } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { signal } from '../lib/signal.js';
import { text } from '../text/en.js';
import { icon } from './icons.js';

/** Time that a toast stays, ms; longer with an action button. */
const TOAST_MS = 5_000;
const TOAST_ACT_MS = 10_000;

interface Toast { id: number; text: string; tone: 'plain' | 'ok' | 'danger'; act?: { label: string; run: () => void } }
const toasts = signal<readonly Toast[]>([]);
const polite = signal('');
const assertive = signal('');
let serial = 0;

/** Announces something to screen readers only. `now` interrupts them. */
export function announce(words: string, now = false): void {
  const to = now ? assertive : polite;
  // A changed text makes screen readers announce a repeated message.
  to.value = to.peek() === words ? `${words}\u00a0` : words;
}

/** Shows a short message, and announces it. */
export function toast(words: string, more: { tone?: Toast['tone']; act?: Toast['act'] } = {}): void {
  const one: Toast = { id: ++serial, text: words, tone: more.tone ?? 'plain', act: more.act };
  toasts.value = [...toasts.peek().slice(-2), one];
  setTimeout(() => dismiss(one.id), one.act ? TOAST_ACT_MS : TOAST_MS);
  announce(words, one.tone === 'danger');
}
const dismiss = (id: number) => { toasts.value = toasts.peek().filter((one) => one.id !== id); };

/** The live regions and the toasts; one element per page. */
@customElement('plexus-say')
export class PlexusSay extends PlexusElement {
  static override styles = [...[PlexusElement.styles].flat(), css`
    .stack { position: fixed; z-index: 60; left: 50%; bottom: calc(var(--bottom, 0px) + 20px); transform: translateX(-50%); display: flex; flex-direction: column; gap: var(--s2); width: max-content; max-width: min(92vw, 480px); }
    .toast { display: flex; align-items: center; gap: var(--s3); padding: 9px 8px 9px 14px; background: var(--bg-raised); border: 1px solid var(--line-strong); border-radius: var(--r-m); box-shadow: var(--shadow-2); }
    .toast.danger { border-color: var(--danger-line); color: var(--danger); }
    .toast.ok svg { color: var(--ok); }
  `];
  override render() {
    return html`
      <div class="sr" role="status" aria-live="polite">${polite.value}</div>
      <div class="sr" role="alert" aria-live="assertive">${assertive.value}</div>
      ${toasts.value.length ? html`<section class="stack" aria-label=${text.shell.messages}>${toasts.value.map((one) => html`<div class="toast ${one.tone}">
        ${one.tone === 'danger' ? icon('warn') : one.tone === 'ok' ? icon('check') : nothing}<span class="grow">${one.text}</span>
        ${one.act ? html`<button class="compact" @click=${() => { dismiss(one.id); one.act?.run(); }}>${one.act.label}</button>` : nothing}
        <button class="ghost icon compact" aria-label=${text.common.close} @click=${() => dismiss(one.id)}>${icon('close', 14)}</button>
      </div>`)}</section>` : nothing}`;
  }
}
