import { css, html, nothing } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { effect } from '../lib/signal.js';
import { list, oneLine } from '../lib/text.js';
import { moment } from '../lib/time.js';
import { plexus, why } from '../plexus.js';
import { text } from '../text/en.js';
import { ask, confirm } from '../ui/dialog.js';
import { icon } from '../ui/icons.js';
import { attempt, empty, notYet, pageStyles } from '../ui/parts.js';
import { toast } from '../ui/say.js';
import type { Device } from '../wire/types.js';
import './pairing.js';
import type { PlexusPairing } from './pairing.js';

const t = text.shell.devices;
/** Interval at which the list is read while it is visible, ms: there are no events for devices going online. */
const AGAIN_MS = 10_000;

/** The devices and their grants. */
@customElement('plexus-devices')
export class PlexusDevices extends PlexusElement {
  @state() private devices: Device[] | null = null;
  @state() private problem = '';
  #timer: ReturnType<typeof setInterval> | undefined;
  #stop: () => void = () => {};
  #onAdd = () => this.renderRoot.querySelector<PlexusPairing>('plexus-pairing')?.show();

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    .row { display: grid; grid-template-columns: 34px minmax(0, 1fr) auto; gap: 2px var(--s3); align-items: center; padding: 12px 8px 12px 14px; }
    .mark { display: grid; place-items: center; width: 34px; height: 34px; border-radius: 9px; background: var(--bg-sunken); color: var(--fg-soft); }
    .name { display: flex; align-items: center; gap: 8px; font-weight: 550; }
    .facts { display: flex; flex-wrap: wrap; gap: 4px 10px; color: var(--fg-mute); font-size: var(--t-s); margin-top: 1px; }
    .on { color: var(--ok); display: inline-flex; align-items: center; gap: 5px; }
    .may { display: flex; flex-wrap: wrap; gap: 5px; grid-column: 2 / -1; margin-top: 7px; align-items: center; }
    .lock { grid-column: 2 / -1; margin-top: 8px; font-size: var(--t-s); color: var(--fg-soft); }
    @media (max-width: 599px) { .row { padding-left: 12px; } }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    this.#timer = setInterval(() => { if (!document.hidden) void this.#read(); }, AGAIN_MS);
    this.#stop = effect(() => { if (plexus.live.value) queueMicrotask(() => void this.#read()); });
    window.addEventListener('plexus-add-device', this.#onAdd);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.#timer);
    this.#stop();
    window.removeEventListener('plexus-add-device', this.#onAdd);
  }

  async #read(): Promise<void> {
    // Without a connection, the bar reports it.
    if (!plexus.live.peek() || !plexus.may('admin')) return;
    try {
      this.devices = list<Device>((await plexus.http('GET', '/v1/devices'))?.devices);
      this.problem = '';
    } catch (error) { this.problem = text.shell.failed(why(error)); }
  }

  override render() {
    const admin = plexus.may('admin');
    const all = this.devices ?? [];
    const order = (d: Device) => (this.#you(d) ? 0 : d.kind === 'local' ? 1 : 2);
    const devices = all.filter((d) => d.kind !== 'share').sort((a, b) => order(a) - order(b) || Date.parse(b.created_at) - Date.parse(a.created_at));
    const local = devices.filter((d) => d.local_browser);
    const links = all.filter((d) => d.kind === 'share');
    return html`<div class="page">
      <header><h1 tabindex="-1">${t.title}</h1>${admin ? html`<button class="primary" id="add" @click=${this.#onAdd}>${icon('plus')}${t.add}</button>` : nothing}</header>
      ${this.problem ? html`<p class="note danger" role="alert">${this.problem}</p>` : nothing}
      ${!admin ? empty('lock', t.title, t.needAdmin) : this.devices === null ? notYet() : html`
        <ul class="list">${devices.filter((d) => !d.local_browser).map((d) => this.#row(d))}</ul>
        ${local.length ? html`<section class="section" id="local"><header><h2>${t.local}</h2><button class="compact" @click=${() => void this.#revokeLocal()}>${t.localOut}</button></header>
          <ul class="list">${local.map((d) => this.#row(d))}</ul></section>` : nothing}
        <section class="section"><header><h2>${t.links}</h2></header>
          ${links.length ? html`<ul class="list">${links.map((d) => this.#row(d))}</ul>` : html`<p class="mute">${t.linksNone}</p>`}</section>`}
      <p class="section mute">${icon('bell', 14)} <a href="#/settings">${t.push}</a></p>
      <plexus-pairing @joined=${() => void this.#read()}></plexus-pairing>
    </div>`;
  }

  #you = (d: Device) => d.you ?? d.device_id === plexus.me.value?.device_id;

  #row(d: Device) {
    const name = oneLine(d.name);
    const local = d.kind === 'local' || d.device_id === 'd_local';
    const phone = /android|ios|iphone|phone|pixel/i.test(name);
    const session = d.kind === 'share' && d.sessions?.[0] ? plexus.sessions.value.get(d.sessions[0]) : undefined;
    return html`<li class="row" data-device=${d.device_id}>
      <span class="mark">${icon(d.kind === 'share' ? 'link' : phone ? 'phone' : local ? 'terminal' : 'devices', 18)}</span>
      <div><div class="name"><bdi class="cut">${name}</bdi>${this.#you(d) ? html`<span class="chip accent">${t.you}</span>` : nothing}</div>
        <div class="facts">
          ${d.online ? html`<span class="on"><span class="dot"></span>${t.online}</span>` : d.last_seen_at ? html`<span>${icon('clock', 12)} <plexus-age .at=${d.last_seen_at}></plexus-age></span>` : html`<span>${t.never}</span>`}
          ${session ? html`<bdi>${t.only(oneLine(session.title) || text.common.untitled)}</bdi>` : nothing}
          ${d.expires_at ? html`<span>${t.expires(moment(Date.parse(d.expires_at)))}</span>` : nothing}
        </div></div>
      ${local ? html`<span></span>` : html`<plexus-menu label=${t.menu(name)} .items=${[
        { label: t.rename, icon: 'pencil' as const, run: () => void this.#rename(d) },
        { label: t.revoke, icon: 'trash' as const, danger: true, separate: true, run: () => void this.#revoke(d) },
      ]}></plexus-menu>`}
      ${d.kind === 'share' ? nothing : html`<div class="may">
        ${list<string>(d.scopes).map((s) => html`<span class="chip ${s === 'admin' || s === 'type' ? 'warn' : ''}">${t.scopes[s] ?? oneLine(s)}</span>`)}
        ${d.approve_up_to && d.approve_up_to !== 'danger' ? html`<span class="chip info">${t.upTo(d.approve_up_to)}</span>` : nothing}
        ${d.runtimes?.length ? html`<span class="chip info">${t.only(d.runtimes.map(oneLine).join(', '))}</span>` : nothing}</div>`}
      ${local || d.kind === 'share' || !list(d.scopes).some((s) => s === 'approve' || s === 'admin') || d.lock_screen === undefined && !d.kind ? nothing
        : html`<label class="check lock"><input type="checkbox" .checked=${Boolean(d.lock_screen)} @change=${(e: Event) => void this.#lock(d, (e.target as HTMLInputElement).checked)}><span>${t.lockScreen}<br><span class="mute">${t.lockScreenHint}</span></span></label>`}
    </li>`;
  }

  #path = (d: Device) => `/v1/devices/${encodeURIComponent(d.device_id)}`;

  async #rename(d: Device): Promise<void> {
    const name = (await ask(t.renameTitle, t.newName, d.name))?.trim();
    if (name) await attempt(() => plexus.http('PATCH', this.#path(d), { name }));
    void this.#read();
  }

  async #lock(d: Device, lock_screen: boolean): Promise<void> {
    await attempt(() => plexus.http('PATCH', this.#path(d), { lock_screen }));
    await this.#read();
  }

  async #revokeLocal(): Promise<void> {
    if (!(await confirm(t.localTitle, t.localText, t.localOut, true))) return;
    if (await attempt(() => plexus.http('DELETE', '/v1/local-browsers').then(() => true))) toast(t.revoked, { tone: 'ok' });
    void this.#read();
  }

  async #revoke(d: Device): Promise<void> {
    if (!(await confirm(t.revokeTitle(oneLine(d.name)), t.revokeText, t.revokeDo, true))) return;
    if (await attempt(() => plexus.http('DELETE', this.#path(d)).then(() => true))) toast(t.revoked, { tone: 'ok' });
    void this.#read();
  }
}
