// The settings of this device, and what there is to know of it and of the gateway. Loaded when it is opened.
import { css, html, nothing, type TemplateResult } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { EDITORS, editor, setEditor } from '../lib/editor.js';
import { PlexusElement } from '../lib/element.js';
import { effect } from '../lib/signal.js';
import { list, oneLine } from '../lib/text.js';
import { setTheme, theme, type Theme } from '../lib/theme.js';
import { moment } from '../lib/time.js';
import '../notify/panel.js';
import { plexus, why } from '../plexus.js';
import { text } from '../text/en.js';
import { settingsWords as t } from '../text/settings.js';
import { icon } from '../ui/icons.js';
import { KEYS } from '../ui/keys.js';
import { leave } from '../ui/leave.js';
import { command, pageStyles } from '../ui/parts.js';
import type { PublicAccess } from '../wire/types.js';

const THEMES: ReadonlyArray<readonly [Theme, 'auto' | 'sun' | 'moon']> = [['auto', 'auto'], ['light', 'sun'], ['dark', 'moon']];

@customElement('plexus-settings')
export class PlexusSettings extends PlexusElement {
  @state() private access: PublicAccess | null = null;
  @state() private problem = '';
  #stop: () => void = () => {};

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    .page > * { max-width: 740px; }
    .card { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); box-shadow: var(--shadow-1); padding: 16px; display: grid; gap: 14px; min-width: 0; }
    .card.bare { padding: 0; }
    .card p { color: var(--fg-soft); max-width: 68ch; }
    .hint { color: var(--fg-mute); font-size: var(--t-s); }
    .line { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; justify-content: space-between; }
    .line > :first-child { flex: 1 1 15rem; min-width: 0; }
    .choices { display: flex; flex-wrap: wrap; gap: 6px; }
    .choices button[aria-pressed="true"] { background: var(--bg-active); border-color: var(--line-strong); font-weight: 600; }
    .card p.what { color: var(--fg); }
    .card button, .card select, .card .btn { min-height: 40px; }
    .facts { display: grid; grid-template-columns: minmax(110px, 180px) minmax(0, 1fr); gap: 8px 16px; align-items: baseline; }
    .facts dt { color: var(--fg-mute); }
    .facts dd { min-width: 0; overflow-wrap: anywhere; }
    .facts dd > span:not(.chip) { display: block; }
    .line > select { width: auto; max-width: 100%; }
    .may { display: flex; flex-wrap: wrap; gap: 5px; }
    .keys { columns: 2 280px; column-gap: var(--s6); }
    .keys section { break-inside: avoid; margin-bottom: var(--s4); }
    .keys h3 { margin-bottom: var(--s2); color: var(--fg-mute); font-size: var(--t-s); }
    .keys dl { display: grid; grid-template-columns: 108px 1fr; gap: 6px 12px; align-items: center; }
    .keys dt { display: flex; gap: 3px; flex-wrap: wrap; }
    @media (pointer: coarse) { .card button, .card select, .card .btn { min-height: 44px; } .facts dd a, .line a { display: inline-block; padding: 12px 0; } }
    @media (max-width: 599px) { .facts { grid-template-columns: 1fr; gap: 2px; } .facts dd + dt { margin-top: 8px; } }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    this.#stop = effect(() => { if (plexus.live.value) queueMicrotask(() => void this.#read()); });
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#stop();
  }

  async #read(): Promise<void> {
    if (!plexus.live.peek() || !plexus.may('admin')) return;
    try {
      this.access = await plexus.http<PublicAccess>('GET', '/v1/listeners');
      this.problem = '';
    } catch (error) { this.problem = t.failed(why(error)); }
  }

  override render() {
    const me = plexus.me.value;
    const admin = plexus.may('admin');
    return html`<div class="page"><header><h1 tabindex="-1">${text.shell.pages.settings}</h1></header>
      ${this.#section('look', t.appearance, html`
        <div class="line"><div><p id="theme" class="what">${text.shell.theme}</p><p class="hint">${t.onDevice}</p></div>
          <div class="choices" role="group" aria-labelledby="theme">${THEMES.map(([one, mark]) => html`<button aria-pressed=${theme.value === one} data-theme-is=${one} @click=${() => setTheme(one)}>${icon(mark)}${text.shell.themes[one]}</button>`)}</div></div>
        <div class="line"><div><label for="editor">${t.editor}</label><p class="hint" id="editor-hint">${t.editorHint}</p></div>
          <select id="editor" aria-describedby="editor-hint" @change=${(event: Event) => setEditor((event.target as HTMLSelectElement).value)}>${EDITORS.map((one) => html`<option value=${one} ?selected=${editor.value === one}>${t.editors[one]}</option>`)}</select></div>`)}
      <div class="section" id="notifications"><div class="card bare"><plexus-notifications></plexus-notifications></div></div>
      ${this.#device()}
      ${admin ? html`${this.#section('phone', t.phone, html`<p>${t.phoneHint}</p><div>${command('plexus phone')}</div>
          <div class="line"><p>${t.phoneOr}</p><button @click=${() => { plexus.go({ page: 'devices' }); setTimeout(() => dispatchEvent(new CustomEvent('plexus-add-device')), 0); }}>${icon('phone')}${t.pair}</button></div>`)}
        ${this.#section('reach', t.reach, this.#reach())}` : nothing}
      ${this.#section('keys', t.keys, html`<div class="keys">${KEYS.map(([group, rows]) => html`<section><h3>${group}</h3><dl>${rows.map(([keys, what]) => html`
        <dt>${keys.split(' ').map((one) => one === '–' ? one : html`<kbd>${one}</kbd>`)}</dt><dd>${what}</dd>`)}</dl></section>`)}</div>`)}
      ${this.#section('about', t.about, html`<dl class="facts">
        ${this.#fact(t.version, me?.gateway.version)}${this.#fact(t.machine, me?.gateway.name)}
        ${me?.gateway.started_at ? html`<dt>${t.since}</dt><dd><plexus-age .at=${me.gateway.started_at}></plexus-age></dd>` : nothing}
        <dt>${t.described}</dt><dd><span><a href="/openapi.json" target="_blank" rel="noopener">${t.openapi}</a></span><span><a href="/asyncapi.json" target="_blank" rel="noopener">${t.asyncapi}</a></span></dd></dl>`)}
    </div>`;
  }

  #section(id: string, heading: string, body: TemplateResult): TemplateResult {
    return html`<section class="section" aria-labelledby=${`h-${id}`}><header><h2 id=${`h-${id}`}>${heading}</h2></header><div class="card" id=${`s-${id}`}>${body}</div></section>`;
  }

  #fact(name: string, value: string | null | undefined) {
    return value ? html`<dt>${name}</dt><dd><bdi>${oneLine(value)}</bdi></dd>` : nothing;
  }

  #device() {
    const me = plexus.me.value;
    if (!me) return nothing;
    const d = text.shell.devices;
    return this.#section('device', t.device, html`<dl class="facts">
        ${this.#fact(t.name, me.name)}
        <dt>${t.may}</dt><dd class="may">${list<string>(me.scopes).map((one) => html`<span class="chip ${one === 'admin' || one === 'type' ? 'warn' : ''}">${d.scopes[one] ?? oneLine(one)}</span>`)}
          ${me.approve_up_to && me.approve_up_to !== 'danger' ? html`<span class="chip info">${d.upTo(me.approve_up_to)}</span>` : nothing}
          ${me.runtimes?.length ? html`<span class="chip info">${d.only(me.runtimes.map(oneLine).join(', '))}</span>` : nothing}</dd>
        ${me.expires_at ? html`<dt>${t.until}</dt><dd>${moment(Date.parse(me.expires_at))}</dd>` : nothing}</dl>
      ${me.kind === 'local' ? html`<p>${t.local}</p>` : nothing}
      <div class="line">${plexus.may('admin') && me.kind !== 'share' ? html`<p><a href="#/devices">${t.devices}</a><br><span class="hint">${t.devicesHint}</span></p>` : html`<span></span>`}
        <button id="sign-out" @click=${() => void leave()}>${icon('out')}${me.kind === 'share' ? text.shell.leaveShare : text.shell.signOut}</button></div>`);
  }

  #reach(): TemplateResult {
    const a = this.access;
    const lines = (all: readonly string[]) => all.map((one) => html`<span><bdi>${oneLine(one)}</bdi></span>`);
    return html`<p>${t.reachHint}</p>
      ${this.problem ? html`<p class="note danger" role="alert">${this.problem} <button class="compact" @click=${() => void this.#read()}>${t.again}</button></p>` : nothing}
      <dl class="facts">${this.#fact(t.here, location.origin)}
        ${!a ? nothing : html`
          ${a.tls ? html`<dt>${t.tls}</dt><dd><bdi>${oneLine(a.tls.address)}</bdi>${a.tls.configured ? html` <span class="hint">${t.configured}</span>` : nothing}</dd>
            <dt>${t.origins}</dt><dd>${lines(a.tls.origins)}</dd><dt>${t.names}</dt><dd>${lines(a.tls.names)}</dd>` : nothing}
          ${this.#fact(t.proxy, a.proxy)}${this.#fact(t.publicUrl, a.public_url)}`}</dl>
      ${a && !a.tls && !a.proxy && !a.public_url ? html`<p>${t.onlyHere}</p>` : nothing}`;
  }
}

declare global { interface HTMLElementTagNameMap { 'plexus-settings': PlexusSettings } }
