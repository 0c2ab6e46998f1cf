import { css, html, nothing } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { oneLine } from '../lib/text.js';
import { plexus, Refused, why } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { announce } from '../ui/say.js';
import type { Pairing, PairingState, Scope } from '../wire/types.js';

const t = text.shell.pair;
/** Time that the gateway holds one poll of a pairing, seconds. */
const WAIT_S = 15;
const SCOPES: readonly Scope[] = ['watch', 'prompt', 'approve', 'admin', 'type'];

/** The dialog that pairs another device: its grant, the code, the number to compare. */
@customElement('plexus-pairing')
export class PlexusPairing extends PlexusElement {
  @state() private open = false;
  @state() private pairing: Pairing | null = null;
  @state() private progress: PairingState | null = null;
  @state() private problem = '';
  @state() private busy = false;
  #serial = 0;

  static override styles = [...[PlexusElement.styles].flat(), css`
    form { display: contents; }
    .scopes { display: flex; flex-direction: column; gap: 10px; }
    .scopes small { display: block; color: var(--fg-mute); font-size: var(--t-s); }
    .actions { display: flex; justify-content: flex-end; gap: var(--s2); flex-wrap: wrap; }
    .code { display: grid; grid-template-columns: auto 1fr; gap: var(--s5); align-items: center; }
    .qr { width: 190px; height: 190px; padding: 10px; background: #fff; border-radius: var(--r-m); border: 1px solid var(--line); display: block; }
    .big { font: 650 1.75rem/1.1 var(--mono); letter-spacing: 0.06em; user-select: all; white-space: nowrap; }
    .number { font: 650 4.5rem/1 var(--mono); letter-spacing: 0.05em; text-align: center; padding: var(--s4) 0; font-variant-numeric: tabular-nums; }
    .center { text-align: center; }
    .wait { display: flex; align-items: center; gap: 8px; color: var(--fg-mute); }
    @media (max-width: 479px) { .code { grid-template-columns: 1fr; justify-items: center; text-align: center; } }
  `];

  show(): void {
    this.#reset();
    this.open = true;
  }

  #reset(): void {
    this.#serial += 1;
    this.pairing = null;
    this.progress = null;
    this.problem = '';
    this.busy = false;
  }

  #close = () => {
    const { pairing, progress } = this;
    // Revokes an unused code.
    if (pairing && (!progress || progress.state === 'waiting' || progress.state === 'joined')) void plexus.http('DELETE', this.#path(pairing)).catch(() => {});
    this.#reset();
    this.open = false;
  };

  #path = (p: Pairing) => `/v1/pairings/${encodeURIComponent(p.pairing_id)}`;

  override render() {
    return html`<plexus-dialog heading=${t.title} .open=${this.open} @close=${this.#close}>${this.open ? this.#step() : nothing}</plexus-dialog>`;
  }

  #step() {
    const state = this.progress?.state;
    if (state === 'confirmed') return html`<p class="note ok" role="status">${icon('check')} ${t.done(oneLine(this.progress?.name))}</p><div class="actions"><button class="primary" @click=${this.#close}>${text.common.close}</button></div>`;
    if (state === 'refused' || state === 'expired') return html`<p class="note warn" role="status">${state === 'refused' ? t.refused : t.expired}</p><div class="actions"><button @click=${this.#close}>${text.common.close}</button><button class="primary" @click=${() => this.#reset()}>${t.again}</button></div>`;
    if (state === 'joined') return html`<p class="center">${t.joined(oneLine(this.progress?.name))}<br><span class="soft">${t.compare}</span></p>
      <p class="number" aria-live="assertive">${this.progress?.number}</p>${this.#trouble()}
      <div class="actions"><button class="danger" @click=${() => void this.#refuse()}>${t.differs}</button><button class="primary" id="confirm" ?disabled=${this.busy} @click=${() => void this.#confirm()}>${t.same}</button></div>`;
    if (this.pairing) return this.#code(this.pairing);
    return this.#form();
  }

  #trouble = () => (this.problem ? html`<p class="note danger" role="alert">${this.problem}</p>` : nothing);

  #form() {
    const box = (scope: Exclude<Scope, 'ui'>, on: boolean) => html`<label class="check"><input type="checkbox" name=${scope} ?checked=${on} ?disabled=${scope === 'watch'}><span>${t[scope]}<small>${t[`${scope}Hint`]}</small></span></label>`;
    const runtimes = [...plexus.runtimes.value.keys()];
    return html`<form @submit=${(e: Event) => void this.#make(e)}>
      <fieldset class="scopes"><legend class="small strong">${t.may}</legend><span></span>${box('watch', true)}${box('prompt', true)}${box('approve', true)}${box('admin', false)}${box('type', false)}</fieldset>
      <label class="field">${t.upTo}<select name="up_to">${(['low', 'elevated', 'danger'] as const).map((r) => html`<option value=${r} ?selected=${r === 'elevated'}>${t.risks[r]}</option>`)}</select></label>
      ${runtimes.length > 1 ? html`<label class="field">${t.runtimes}<select name="runtime"><option value="">${t.allRuntimes}</option>${runtimes.map((r) => html`<option value=${r}>${oneLine(r)}</option>`)}</select></label>` : nothing}
      <label class="check"><input type="checkbox" name="lock_screen"><span>${t.lock}</span></label>${this.#trouble()}
      <div class="actions"><button type="button" @click=${this.#close}>${text.common.cancel}</button><button class="primary" id="make" ?disabled=${this.busy}>${t.make}</button></div></form>`;
  }

  #code(p: Pairing) {
    const left = Math.max(0, Math.round((Date.parse(p.expires_at) - plexus.now.value) / 1000));
    const address = p.url.split('#')[0] ?? '';
    const loopback = /^https?:\/\/(127\.|localhost|\[::1\])/.test(p.url);
    return html`<p class="soft">${t.scan}</p>
      <div class="code"><img class="qr" alt=${t.qr} src="data:image/svg+xml;charset=utf-8,${encodeURIComponent(p.qr)}">
        <div class="vstack"><div><div class="small mute">${t.code}</div><div class="big" id="code">${p.code}</div></div>
          <div><div class="small mute">${t.address}</div><code>${address}</code></div>
          <p class="small mute nums">${t.left(left)}</p></div></div>
      ${loopback ? html`<p class="note">${t.loopback}</p>` : nothing}${this.#trouble()}
      <p class="wait" role="status"><plexus-state state="running" bare></plexus-state>${t.waiting}</p>`;
  }

  async #make(event: Event): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const scopes = SCOPES.filter((s) => s === 'watch' || form.get(s));
    const upTo = String(form.get('up_to'));
    const runtime = String(form.get('runtime') ?? '');
    this.busy = true;
    this.problem = '';
    const serial = this.#serial;
    try {
      const pairing = await plexus.http<Pairing>('POST', '/v1/pairings', { scopes, ...(upTo !== 'danger' ? { approve_up_to: upTo } : {}), ...(runtime ? { runtimes: [runtime] } : {}), ...(form.get('lock_screen') ? { lock_screen: true } : {}) });
      if (serial !== this.#serial) return;
      this.pairing = pairing;
      void this.#watch(pairing);
    } catch (error) {
      this.problem = error instanceof Refused && error.status === 404 ? t.notYet : text.shell.failed(why(error));
    } finally { this.busy = false; }
  }

  /** Polls until the pairing is decided, or the dialog is closed. */
  async #watch(pairing: Pairing): Promise<void> {
    const serial = this.#serial;
    while (serial === this.#serial) {
      try {
        const got = await plexus.http<PairingState>('GET', `${this.#path(pairing)}?wait=${WAIT_S}`);
        if (serial !== this.#serial) return;
        const joined = got.state === 'joined' && this.progress?.state !== 'joined';
        this.progress = got;
        if (joined) announce(t.joined(oneLine(got.name)), true);
        if (got.state === 'confirmed') { this.dispatchEvent(new CustomEvent('joined')); return; }
        if (got.state === 'refused' || got.state === 'expired') return;
        // In this state the gateway replies at once: poll slowly.
        if (got.state === 'joined') await new Promise((resolve) => setTimeout(resolve, 1_000));
      } catch (error) {
        if (serial !== this.#serial) return;
        if (error instanceof Refused && (error.status === 404 || error.status === 410)) { this.progress = { pairing_id: pairing.pairing_id, state: 'expired', expires_at: pairing.expires_at }; return; }
        await new Promise((resolve) => setTimeout(resolve, 2_000));
      }
    }
  }

  async #confirm(): Promise<void> {
    const { pairing, progress } = this;
    if (!pairing || !progress) return;
    this.busy = true;
    try {
      await plexus.http('POST', `${this.#path(pairing)}/confirm`, { number: progress.number });
      this.progress = { ...progress, state: 'confirmed' };
      this.#serial += 1;
      announce(t.done(oneLine(progress.name)));
      this.dispatchEvent(new CustomEvent('joined'));
    } catch (error) { this.problem = text.shell.failed(why(error)); } finally { this.busy = false; }
  }

  async #refuse(): Promise<void> {
    const { pairing, progress } = this;
    if (!pairing || !progress) return;
    this.#serial += 1;
    await plexus.http('DELETE', this.#path(pairing)).catch(() => {});
    this.progress = { ...progress, state: 'refused' };
  }
}
