import { css, html, nothing, type TemplateResult } from 'lit';
import { customElement, property } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { signal } from '../lib/signal.js';
import { text } from '../text/en.js';
import { icon } from './icons.js';

/** A modal dialog: `<plexus-dialog open heading=..>` with a body. Dispatches `close` when it is closed. */
@customElement('plexus-dialog')
export class PlexusDialog extends PlexusElement {
  @property({ type: Boolean }) open = false;
  @property() heading = '';
  /** Whether the body is only text to read: then it is focusable, so that the keyboard can scroll it. */
  @property({ type: Boolean }) reading = false;
  @property({ reflect: true }) size: 'small' | 'normal' | 'wide' = 'normal';

  static override styles = [...[PlexusElement.styles].flat(), css`
    dialog {
      width: min(520px, calc(100vw - 24px)); max-height: min(88dvh, 820px); padding: 0;
      border: 1px solid var(--line-strong); border-radius: var(--r-l); background: var(--bg-raised); color: var(--fg);
      box-shadow: var(--shadow-3); overflow: hidden;
    }
    dialog[open] { display: flex; flex-direction: column; }
    :host([size="small"]) dialog { width: min(400px, calc(100vw - 24px)); }
    :host([size="wide"]) dialog { width: min(860px, calc(100vw - 24px)); }
    dialog::backdrop { background: rgb(8 9 12 / 48%); }
    .head { display: flex; align-items: center; gap: var(--s3); padding: 14px 12px 10px 20px; }
    .head h2 { flex: 1; min-width: 0; }
    .head h2:focus-visible { outline: none; }
    .body { padding: 2px 20px 20px; overflow: auto; display: flex; flex-direction: column; gap: var(--s4); }
    /* What is slotted here stays in sight however long the body is. */
    ::slotted([slot="foot"]) { flex: none; padding: 10px 20px 16px; border-top: 1px solid var(--line); }
    @media (max-width: 599px) {
      dialog { width: 100vw !important; max-width: 100vw; margin: auto 0 0; border-radius: var(--r-l) var(--r-l) 0 0; border-width: 1px 0 0; padding-bottom: env(safe-area-inset-bottom); }
    }
  `];

  override render() {
    return html`<dialog aria-labelledby="heading" @close=${this.#closed} @cancel=${() => {}} @click=${this.#outside}>
      <div class="head"><h2 id="heading" tabindex="-1">${this.heading}</h2>
        <button class="ghost icon" aria-label=${text.common.close} @click=${() => this.renderRoot.querySelector('dialog')?.close()}>${icon('close')}</button></div>
      <div class="body" tabindex=${this.reading ? 0 : nothing} role=${this.reading ? 'region' : nothing} aria-label=${this.reading ? this.heading : nothing}>${this.open ? html`<slot></slot>` : nothing}</div>
      ${this.open ? html`<slot name="foot"></slot>` : nothing}
    </dialog>`;
  }

  override updated(): void {
    const dialog = this.renderRoot.querySelector('dialog');
    if (!dialog || dialog.open === this.open) return;
    if (this.open) {
      dialog.showModal();
      const first = this.querySelector<HTMLElement>('[autofocus]');
      if (first) first.focus();
      else this.renderRoot.querySelector<HTMLElement>('h2')?.focus();
    } else dialog.close();
  }

  #closed = () => {
    if (!this.open) return;
    this.open = false;
    this.dispatchEvent(new CustomEvent('close'));
  };

  #outside = (event: MouseEvent) => {
    const dialog = event.currentTarget as HTMLDialogElement;
    if (event.target !== dialog) return;
    const box = dialog.getBoundingClientRect();
    if (event.clientX < box.left || event.clientX > box.right || event.clientY < box.top || event.clientY > box.bottom) dialog.close();
  };
}

interface Question { heading: string; body: TemplateResult | string; yes: string; danger: boolean; field?: { label: string; value: string }; done: (value: string | null) => void }
const question = signal<Question | null>(null);

/** Shows a yes-or-no question; resolves to the answer. */
export function confirm(heading: string, body: string, yes: string, danger = false): Promise<boolean> {
  return new Promise((resolve) => { question.value = { heading, body, yes, danger, done: (value) => resolve(value !== null) }; });
}

/** Asks for one line of text; null if the dialog was closed. */
export function ask(heading: string, label: string, value: string, yes: string = text.common.save): Promise<string | null> {
  return new Promise((resolve) => { question.value = { heading, body: '', yes, danger: false, field: { label, value }, done: resolve }; });
}

/** Shows the dialogs of `confirm` and `ask`; one element per page. */
@customElement('plexus-asking')
export class PlexusAsking extends PlexusElement {
  static override styles = [...[PlexusElement.styles].flat(), css`form { display: contents; } .row { display: flex; justify-content: flex-end; gap: var(--s2); }`];
  override render() {
    const it = question.value;
    const done = (value: string | null) => { question.value = null; it?.done(value); };
    return html`<plexus-dialog size="small" .open=${it !== null} heading=${it?.heading ?? ''} @close=${() => done(null)}>
      ${it ? html`<form @submit=${(event: Event) => { event.preventDefault(); done(this.renderRoot.querySelector<HTMLInputElement>('#value')?.value ?? ''); }}>
        ${it.body ? html`<p class="soft">${it.body}</p>` : nothing}
        ${it.field ? html`<label class="field">${it.field.label}<input id="value" autofocus autocomplete="off" maxlength="200" .value=${it.field.value}></label>` : nothing}
        <div class="row"><button type="button" ?autofocus=${!it.field} @click=${() => done(null)}>${text.common.cancel}</button>
          <button type="submit" class="primary ${it.danger ? 'danger' : ''}">${it.yes}</button></div>
      </form>` : nothing}
    </plexus-dialog>`;
  }
}
