// The sign-in page: a one-time code in the fragment, a code from another screen, a share link, or a pasted token.
import { css, html, nothing } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { oneLine } from '../lib/text.js';
import { plexus, Refused, why } from '../plexus.js';
import { offerPush } from '../notify/offer.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { command, pageStyles } from '../ui/parts.js';
import { announce, toast } from '../ui/say.js';
import { TOKEN_SHAPE } from '../lib/signin-link.js';
import { enterWithBearer, enterWithCookie, resume, signedOutBecause, currentDevice, wire } from '../wire/gateway.js';
import type { Invitation } from '../wire/types.js';
import { signinWanted, type Wanted } from './wanted.js';

const t = text.shell.signin;
const j = text.shell.join;
/** Time that the gateway holds one poll of a pairing, seconds. */
const WAIT_S = 15;
/** Pause before a sign-in that could not reach the gateway is tried again, ms. */
const AGAIN_MS = 2_500;
/** The pending sign-in. */
let begun: Wanted | null = null;

/** The key under which the browser stores its identifier. */
const BROWSER = 'plexus.browser';
/** The identifier that distinguishes this browser from others: signing in again replaces its device. Absent if nothing can be stored. */
function browserId(): { browser?: string } {
  try {
    let id = localStorage.getItem(BROWSER) ?? '';
    if (!/^[0-9a-f]{32}$/.test(id)) {
      id = [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, '0')).join('');
      localStorage.setItem(BROWSER, id);
    }
    return { browser: id };
  } catch { return {}; }
}

/** A default name for this device. */
function deviceName(): string {
  const ua = navigator.userAgent;
  const browser = /Firefox/.test(ua) ? 'Firefox' : /Edg\//.test(ua) ? 'Edge' : /Chrom/.test(ua) ? 'Chrome' : /Safari/.test(ua) ? 'Safari' : 'Browser';
  const system = /Android/.test(ua) ? 'Android' : /iPhone/.test(ua) ? 'iPhone' : /iPad/.test(ua) ? 'iPad' : /Mac OS/.test(ua) ? 'macOS' : /Windows/.test(ua) ? 'Windows' : /Linux/.test(ua) ? 'Linux' : '';
  if (location.protocol === 'http:') return text.shell.devices.onThis(browser);
  return system ? `${browser} on ${system}` : browser;
}


@customElement('plexus-signin')
export class PlexusSignin extends PlexusElement {
  @state() private note = '';
  @state() private bad = false;
  @state() private busy = false;
  /** The step of joining by a code. */
  @state() private join: 'ask' | 'look' | 'wait' | null = null;
  @state() private looked: Invitation | null = null;
  @state() private number: number | null = null;
  #code = '';
  #serial = 0;

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    :host { min-height: 100dvh; display: grid; place-items: center; padding: 24px 16px; background: var(--bg); }
    .box { width: min(400px, 100%); display: flex; flex-direction: column; gap: var(--s4); }
    .top { display: flex; flex-direction: column; align-items: center; text-align: center; gap: var(--s2); margin-bottom: var(--s2); }
    .top img { width: 52px; height: 52px; border-radius: 13px; margin-bottom: var(--s2); }
    .panel { padding: var(--s5); display: flex; flex-direction: column; gap: var(--s4); }
    .command { display: flex; } .command code { flex: 1; }
    form { display: flex; flex-direction: column; gap: var(--s3); }
    details summary { cursor: pointer; color: var(--accent); font-weight: 500; min-height: 28px; list-style: none; }
    details summary::-webkit-details-marker { display: none; }
    details[open] summary { margin-bottom: var(--s3); color: var(--fg-soft); }
    .or { display: flex; flex-direction: column; gap: 4px; align-items: flex-start; }
    .number { font: 650 5.5rem/1 var(--mono); text-align: center; letter-spacing: 0.05em; padding: var(--s3) 0; font-variant-numeric: tabular-nums; }
    .code { font: 600 1.25rem/1.2 var(--mono) !important; letter-spacing: 0.12em; text-transform: uppercase; text-align: center; }
    .wait { display: flex; gap: 8px; align-items: center; justify-content: center; color: var(--fg-mute); }
    .may { display: flex; flex-wrap: wrap; gap: 6px; }
    button.primary { min-height: 38px; }
  `];

  override updated(): void {
    const wanted = signinWanted.peek();
    // Only the connected element signs in, and only once: a code works once.
    if (!wanted || wanted === begun || !this.isConnected) return;
    begun = wanted;
    queueMicrotask(() => void this.#begin(wanted));
  }

  #say(note: string, bad = true): void {
    this.note = note;
    this.bad = bad;
    if (note) announce(note, bad);
  }

  async #begin({ kind, value }: Wanted): Promise<void> {
    if (!value) return this.#fail(kind === 'share' ? text.shell.share.bad : t.badLink);
    const wanted = signinWanted.peek()!;
    if (kind === 'share') return this.#share(value, wanted);
    if (kind === 'pair') { this.#code = value; return this.#look(wanted); }
    return this.#pair(value, wanted);
  }

  /** Whether the gateway itself refused the credentials. Other errors say nothing about a code or link: it is tried again. */
  #judged(error: unknown): error is Refused {
    return error instanceof Refused && error.ours && error.status < 500;
  }

  /** The gateway was not reachable: keeps the sign-in, and tries again automatically. */
  #later(wanted: Wanted, error: unknown): void {
    this.#say(t.notYet(why(error)), false);
    setTimeout(() => { if (signinWanted.peek() === wanted && this.isConnected) void this.#begin(wanted); }, AGAIN_MS);
  }

  /** The sign-in of the URL failed for good. An earlier sign-in stays valid. */
  async #fail(words: string): Promise<void> {
    const here = plexus.link.peek().phase !== 'signed-out' || resume();
    this.join = null;
    signinWanted.value = null;
    if (here) toast(words, { tone: 'danger' });
    else this.#say(words);
  }

  /** Stores the credentials of a device, and signs in. */
  #enter(got: any): void {
    if (got?.csrf) enterWithCookie(String(got.csrf));
    else if (typeof got?.token === 'string' && TOKEN_SHAPE.test(got.token)) enterWithBearer(got.token);
    else throw new Refused(200, { detail: t.noToken });
    signinWanted.value = null;
  }

  async #pair(code: string, wanted: Wanted): Promise<void> {
    this.#say(t.busy, false);
    try {
      // A browser that already is an administrator's device does not need another one; the code expires unused.
      if ((await currentDevice())?.scopes.includes('admin')) {
        signinWanted.value = null;
        if (plexus.link.peek().phase === 'signed-out') resume();
        return;
      }
      this.#enter(await wire.json('POST', '/v1/pair', { code, name: deviceName(), cookie: true, ...browserId() }, { anonymous: true }));
    } catch (error) {
      if (this.#judged(error)) await this.#fail(t.badCode(error.message));
      else this.#later(wanted, error);
    }
  }

  async #share(token: string, wanted: Wanted): Promise<void> {
    this.#say(text.shell.share.enter, false);
    try {
      const got = await wire.json('GET', '/v1/me', undefined, { anonymous: true, headers: { Authorization: `Bearer ${token}` } });
      enterWithBearer(token);
      const only = got?.sessions?.[0];
      location.hash = only ? `#/s/${encodeURIComponent(only)}` : '#/sessions';
      signinWanted.value = null;
    } catch (error) {
      if (this.#judged(error)) await this.#fail(text.shell.share.bad);
      else this.#later(wanted, error);
    }
  }

  async #token(event: Event): Promise<void> {
    event.preventDefault();
    const input = this.renderRoot.querySelector<HTMLInputElement>('#token');
    const token = input?.value.trim() ?? '';
    if (!TOKEN_SHAPE.test(token)) { this.#say(t.badToken); return; }
    this.busy = true;
    const headers = { Authorization: `Bearer ${token}` };
    try {
      try {
        // The pasted token is not stored: this browser becomes a device of its own with the same grant.
        this.#enter(await wire.json('POST', '/v1/signin', { name: deviceName(), cookie: true, ...browserId() }, { anonymous: true, headers }));
      } catch (error) {
        if (!(error instanceof Refused) || (error.status !== 404 && error.status !== 405)) throw error;
        await wire.json('GET', '/v1/me', undefined, { anonymous: true, headers });
        enterWithBearer(token);
      }
    } catch (error) {
      this.#say(this.#judged(error) && error.status === 401 ? t.unknownToken : t.failed(why(error)));
    } finally { this.busy = false; }
  }

  // --- joining by the code of another screen --------------------------------------------------------------------------------

  async #look(wanted: Wanted | null = null): Promise<void> {
    this.join = 'look';
    this.looked = null;
    this.#say('');
    try {
      this.looked = await wire.json<Invitation>('POST', '/v1/pair/look', { code: this.#code }, { anonymous: true });
    } catch (error) {
      if (wanted && !this.#judged(error)) return this.#later(wanted, error);
      this.join = 'ask';
      this.#say(this.#judged(error) ? (error.status === 429 ? error.message : j.bad) : t.failed(why(error)));
    }
  }

  async #join(event: Event): Promise<void> {
    event.preventDefault();
    const name = this.renderRoot.querySelector<HTMLInputElement>('#name')?.value.trim() || deviceName();
    const serial = ++this.#serial;
    this.busy = true;
    try {
      const got = await wire.json('POST', '/v1/pair', { code: this.#code, name, cookie: true }, { anonymous: true });
      if (got?.csrf || got?.token) { this.#enter(got); return; }
      this.number = Number(got.number);
      this.join = 'wait';
      announce(`${j.number}: ${this.number}. ${j.numberText}`, true);
      await this.#wait(String(got.ticket), serial);
    } catch (error) {
      this.join = 'ask';
      this.number = null;
      this.#say(this.#judged(error) ? j.bad : t.failed(why(error)));
    } finally { this.busy = false; }
  }

  async #wait(ticket: string, serial: number): Promise<void> {
    let failures = 0;
    while (serial === this.#serial) {
      try {
        const got = await wire.json('POST', '/v1/pair/wait', { ticket, wait: WAIT_S }, { anonymous: true, patience: (WAIT_S + 10) * 1000 });
        failures = 0;
        if (got?.csrf || got?.token) { this.#enter(got); offerPush(true); return; }
      } catch (error) {
        if (this.#judged(error)) { this.join = 'ask'; this.number = null; this.#say(j.refused); return; }
        failures += 1;
        if (failures > 8) throw error;
        await new Promise((resolve) => setTimeout(resolve, 1_500));
      }
    }
  }

  override render() {
    const wanted = signinWanted.value;
    const joining = this.join !== null || wanted?.kind === 'pair';
    const note = this.note || signedOutBecause.value;
    return html`<main class="box" aria-label=${joining ? j.title : t.title}>
      <div class="top"><img src="/icon.svg" alt=""><h1>${joining ? j.title : text.common.name}</h1>${joining ? nothing : html`<p class="soft">${t.lead}</p>`}</div>
      ${note ? html`<p class="note ${this.note && this.bad ? 'danger' : ''}" id="note" role="status">${note}</p>` : nothing}
      ${joining ? this.#joining() : wanted && !this.bad ? nothing : this.#ways()}
    </main>`;
  }

  #ways() {
    return html`<div class="panel">
        <div class="vstack"><p>${t.how}</p>${command(t.command)}</div>
        <div class="or">
          <button class="link" id="have-code" @click=${() => { this.join = 'ask'; this.#say(''); }}>${t.code}</button>
          <details><summary>${t.tokenOpen}</summary><form @submit=${(e: Event) => void this.#token(e)}>
            <label class="field">${t.token}<input id="token" type="password" autocomplete="off" placeholder=${t.tokenHint}></label>
            <button class="primary" ?disabled=${this.busy}>${this.busy ? t.busy : t.go}</button></form></details></div></div>`;
  }

  #joining() {
    if (this.join === 'wait') return html`<div class="panel"><p class="soft">${j.number}</p><p class="number" id="number">${this.number}</p><p>${j.numberText}</p><p class="wait" role="status"><plexus-state state="running" bare></plexus-state>${j.waiting}</p></div>`;
    if (this.join === 'ask') return html`<div class="panel"><form @submit=${(e: Event) => { e.preventDefault(); this.#code = this.renderRoot.querySelector<HTMLInputElement>('#paircode')?.value.trim().toUpperCase() ?? ''; if (this.#code) void this.#look(); }}>
        <label class="field">${j.code}<input class="code" id="paircode" autocomplete="one-time-code" autocapitalize="characters" spellcheck="false" maxlength="12" placeholder="ABCD-2345" .value=${this.#code}><span class="hint mute small">${j.codeHint}</span></label>
        <div class="actions"><button type="button" @click=${() => { this.join = null; this.#say(''); signinWanted.value = null; if (plexus.link.peek().phase === 'signed-out') resume(); }}>${text.common.cancel}</button><button class="primary">${j.next}</button></div></form></div>`;
    const l = this.looked;
    if (!l) return html`<div class="panel"><p class="wait" role="status">${j.looking}</p></div>`;
    return html`<div class="panel"><div><h2>${j.what(oneLine(l.gateway?.name) || location.host)}</h2><p class="mute small">${location.host} · ${j.version(oneLine(l.gateway?.version))}</p></div>
      <div class="vstack"><p class="small soft">${j.may}</p><div class="may">${(l.scopes ?? []).map((s) => html`<span class="chip ${s === 'admin' ? 'warn' : 'accent'}">${text.shell.devices.scopes[s] ?? oneLine(s)}</span>`)}
        ${l.approve_up_to && l.approve_up_to !== 'danger' ? html`<span class="chip info">${text.shell.devices.upTo(oneLine(l.approve_up_to))}</span>` : nothing}
        ${l.runtimes?.length ? html`<span class="chip info">${text.shell.devices.only(l.runtimes.map(oneLine).join(', '))}</span>` : nothing}</div></div>
      <form @submit=${(e: Event) => void this.#join(e)}><label class="field">${j.name}<input id="name" maxlength="64" autocomplete="off" .value=${deviceName()}></label>
        <button class="primary" id="join" ?disabled=${this.busy}>${icon('check')}${j.go}</button></form></div>`;
  }
}
