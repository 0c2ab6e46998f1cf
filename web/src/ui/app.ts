// The frame around every page: navigation, connection state, and global keys.
import { css, html, nothing } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { watchKeyboard } from '../lib/keyboard.js';
import { bind, focused } from '../lib/keys.js';
import { later } from '../lib/later.js';
import { effect } from '../lib/signal.js';
import { oneLine } from '../lib/text.js';
import { nextTheme, setTheme, theme, type Theme } from '../lib/theme.js';
import { moment } from '../lib/time.js';
import { plexus, type Route } from '../plexus.js';
import { text } from '../text/en.js';
import { globalError, outdated, resume } from '../wire/gateway.js';
import { icon, type Icon } from './icons.js';
import { load } from './pages.js';
import { announce, toast } from './say.js';
import './dialog.js';
import './menu.js';
import './parts.js';
import './help.js';
import './palette.js';
import './state.js';
import type { PlexusHelp } from './help.js';
import type { PlexusPalette } from './palette.js';
import { installer } from './install.js';
import { leave } from './leave.js';
import { signinWanted } from '../pages/wanted.js';
import { readTerminals, terminals } from '../wire/terminals.js';
import type { SessionInfo } from '../wire/types.js';

const t = text.shell;
type Page = 'inbox' | 'home' | 'sessions' | 'search' | 'runtimes' | 'devices' | 'terminals' | 'usage' | 'settings';
type Place = readonly [Page, Icon, string];
/** The link to the usage of agents; on a phone it is in the account's menu. */
const USAGE: Place = ['usage', 'usage', 'g u'];
/** The link to the settings of this device; on a phone it is in the account's menu. */
const SETTINGS: Place = ['settings', 'settings', 'g ,'];
/** Shared terminals, where there are any. */
const TERMINALS: Place = ['terminals', 'terminal', 'g t'];
const NAV: readonly Place[] = [
  ['inbox', 'inbox', 'g i'], ['home', 'home', 'g h'], ['sessions', 'sessions', 'g s'], ['search', 'search', 'g f'], ['runtimes', 'runtimes', 'g r'], ['devices', 'devices', 'g d'],
];
const MOD = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl';
/** Time for connecting before the page shows the state, ms: on a slow phone it takes a second or two, and a line that appears and
 *  disappears moves everything. */
const CONNECT_MS = 3_000;
/** Time that the order of the latest sessions does not change after the user pointed at them, ms. */
const AIM_MS = 3_000;
/** The parts that are loaded before the user opens them, and the delay after the first page has drawn its content, ms. */
const NEXT = ['session', 'inbox', 'sessions', 'new'];
const NEXT_MS = 1500;

/** Pages that a share link may open. */
const SHARED: readonly Page[] = ['sessions', 'search'];
/** Characters of a session's title in the tab's. */
const TITLE_MAX = 60;
/** Sessions listed in the navigation. */
const RECENT = 9;

/** The sessions with the latest news, the latest first. Sorting all of them with every change would take longer than drawing these. */
function latest(sessions: Iterable<SessionInfo>, news: ReadonlyMap<string, number>): SessionInfo[] {
  const found: { s: SessionInfo; at: number }[] = [];
  const before = (a: { s: SessionInfo; at: number }, b: { s: SessionInfo; at: number }) => a.at > b.at || (a.at === b.at && a.s.session_id < b.s.session_id);
  for (const s of sessions) {
    if (s.archived) continue;
    const one = { s, at: news.get(s.session_id) ?? 0 };
    const last = found[found.length - 1];
    if (found.length === RECENT && last && !before(one, last)) continue;
    const place = found.findIndex((other) => before(one, other));
    found.splice(place < 0 ? found.length : place, 0, one);
    if (found.length > RECENT) found.pop();
  }
  return found.map(({ s }) => s);
}

@customElement('plexus-app')
export class PlexusApp extends PlexusElement {
  #unbind: () => void = () => {};
  #stop: Array<() => void> = [];
  /** Whether "New session" is open. */
  @state() private making = false;
  #onNew = () => { if (plexus.may('prompt')) this.making = true; };
  #page = '';
  /** The latest sessions as they are drawn, and when somebody last pointed at them. */
  #latest: string[] = [];
  #aimedAt = -Infinity;
  #aim = () => { this.#aimedAt = Date.now(); };
  #wasLive: boolean | null = null;

  static override styles = [...[PlexusElement.styles].flat(), css`
    /* Above a keyboard that covers the page (see lib/keyboard.ts). */
    :host { display: block; height: calc(100dvh - var(--covered, 0px)); --rail: 232px; --bottom: 0px; }
    .frame { height: 100%; display: grid; grid-template-columns: var(--rail) minmax(0, 1fr); grid-template-rows: auto auto minmax(0, 1fr); }
    .skip { position: fixed; top: 8px; left: 8px; z-index: 70; transform: translateY(-200%); }
    .skip:focus-visible { transform: none; }

    .rail { grid-row: 1 / -1; grid-column: 1; display: flex; flex-direction: column; min-height: 0; background: var(--bg-rail); border-right: 1px solid var(--line); padding: 10px 10px max(10px, env(safe-area-inset-bottom)); }
    .brand { display: flex; align-items: center; gap: 9px; padding: 6px 8px 12px; color: var(--fg); font-weight: 650; font-size: var(--t-l); letter-spacing: -0.01em; }
    .brand:hover { text-decoration: none; }
    .brand img { width: 22px; height: 22px; border-radius: 6px; }
    .cmd { justify-content: flex-start; gap: 9px; margin-bottom: 10px; padding: 0 8px 0 9px; color: var(--fg-mute); font-weight: 450; background: var(--bg-raised); border-color: var(--line); }
    .cmd .label { min-width: 0; overflow: hidden; text-overflow: ellipsis; }
    .cmd kbd { margin-left: auto; border: 0; background: none; min-width: 0; padding: 0; }
    .rail nav ul { display: flex; flex-direction: column; gap: 1px; }
    .nav { display: flex; align-items: center; gap: 10px; min-height: 32px; padding: 0 9px; border-radius: var(--r-s); color: var(--fg-soft); font-weight: 500; }
    .nav:hover { background: var(--bg-hover); color: var(--fg); text-decoration: none; }
    .nav[aria-current="page"] { background: var(--bg-active); color: var(--fg); font-weight: 600; }
    .nav .count { margin-left: auto; min-width: 19px; height: 19px; padding: 0 6px; border-radius: 10px; display: grid; place-items: center; font-size: var(--t-xs); font-weight: 650; background: var(--accent-solid); color: var(--on-accent); font-variant-numeric: tabular-nums; }
    .nav .count.danger { background: var(--danger-solid); }
    .rail h2 { font-size: var(--t-xs); font-weight: 600; color: var(--fg-mute); padding: 18px 9px 6px; letter-spacing: 0.01em; }
    .recent { overflow: auto; min-height: 0; margin: 0 -4px; padding: 0 4px; }
    .recent .nav { min-height: 30px; font-weight: 450; gap: 9px; }
    .recent .nav .name { flex: 1; }
    .recent .nav.unread .name { font-weight: 620; color: var(--fg); }
    .foot { margin-top: auto; padding-top: 8px; display: flex; flex-direction: column; gap: 2px; }
    .link { display: flex; align-items: center; gap: 9px; padding: 6px 9px; color: var(--fg-mute); font-size: var(--t-s); }
    .link .dot { color: var(--fg-mute); }
    .link[data-phase="live"] .dot { color: var(--ok); }
    .link[data-phase="catching-up"] .dot, .link[data-phase="connecting"] .dot, .link[data-phase="reconnecting"] .dot { color: var(--warn); }
    .link[data-phase="offline"] .dot, .link[data-phase="stopped"] .dot { color: var(--danger); }
    .tools { display: flex; gap: 2px; align-items: center; }
    .tools .grow { flex: 1; }

    .top { display: none; }
    .bars { grid-column: 2; grid-row: 1; min-width: 0; }
    .bar { display: flex; align-items: center; gap: var(--s3); padding: 7px var(--s4); font-size: var(--t-s); border-bottom: 1px solid; flex-wrap: wrap; }
    .bar.stale { background: var(--warn-wash); color: var(--warn); border-color: var(--warn-line); }
    .bar.share { background: var(--info-wash); color: var(--info); border-color: var(--line); }
    .bar .words { flex: 1 1 200px; min-width: 0; }
    main { grid-column: 2; grid-row: 3; min-height: 0; min-width: 0; overflow: auto; scrollbar-gutter: stable; }
    main:focus-visible { outline: none; }
    main.session, main.inbox { overflow: hidden; scrollbar-gutter: auto; }
    .bottom { display: none; }
    .new-page { max-width: 1000px; margin: 0 auto; padding: var(--s5) var(--s5) 96px; box-sizing: border-box; }
    .new-page > * { max-width: 620px; }
    .new-page h1 { display: flex; align-items: center; min-height: 34px; }
    .new-page h1 { margin-bottom: var(--s4); }
    .new-page h1:focus-visible { outline: none; }

    @media (max-width: 1023px) {
      :host { --rail: 60px; }
      .rail { padding-left: 8px; padding-right: 8px; align-items: stretch; }
      .brand { justify-content: center; padding: 6px 0 12px; }
      .brand .word, .nav .label, .recent, .rail h2, .link .word, .cmd kbd { display: none; }
      .cmd .label { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
      .cmd { justify-content: center; padding: 0; min-height: 40px; }
      .nav { justify-content: center; min-height: 40px; padding: 0; position: relative; }
      .nav .count { position: absolute; top: 2px; right: 0; margin: 0; min-width: 16px; height: 16px; padding: 0 4px; }
      .tools { flex-direction: column; }
      .tools .grow { display: none; }
      .link { justify-content: center; padding: 6px 0; }
    }
    @media (max-width: 599px) {
      .new-page { padding: var(--s4) var(--s3) 88px; }
      :host { --bottom: calc(54px + env(safe-area-inset-bottom)); }
      .frame { grid-template-columns: minmax(0, 1fr); grid-template-rows: auto auto minmax(0, 1fr) auto; }
      .rail { display: none; }
      .top { grid-row: 1; grid-column: 1; display: flex; align-items: center; gap: 4px; min-height: 46px; padding: env(safe-area-inset-top) 6px 0 14px; background: var(--bg-rail); border-bottom: 1px solid var(--line); }
      .top .brand { padding: 0; flex: 1; justify-content: flex-start; }
      .top .brand .word { display: inline; }
      .top .link .word { display: inline; }
      .frame.in-session .top { display: none; }
      .bars { grid-row: 2; grid-column: 1; }
      main { grid-column: 1; grid-row: 3; scrollbar-gutter: auto; }
      .bottom { grid-row: 4; grid-column: 1; display: block; background: var(--bg-rail); border-top: 1px solid var(--line); padding-bottom: env(safe-area-inset-bottom); }
      .bottom ul { display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); }
      .bottom .nav { flex-direction: column; justify-content: center; gap: 3px; min-height: 53px; border-radius: 0; font-size: var(--t-xs); background: none; color: var(--fg-mute); }
      .bottom .nav .label { display: block; max-width: 100%; overflow: hidden; text-overflow: clip; white-space: nowrap; letter-spacing: -.02em; }
      .bottom .nav[aria-current="page"] { color: var(--accent); font-weight: 500; }
      .bottom .nav .count { white-space: nowrap; position: absolute; top: 4px; left: calc(50% + 5px); right: auto; }
      .frame.in-session .bottom { display: none; }
      .frame.in-session { --bottom: 0px; }
    }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    this.#unbind = bind([
      ...[...NAV, TERMINALS, USAGE, SETTINGS].map(([page, , key]) => ({ key, run: () => plexus.go(page === 'search' ? { page, q: '' } : { page } as Route) })),
      { key: 'g /', run: () => plexus.go({ page: 'search', q: '' }) },
      { key: 'g b', run: () => history.back() },
      { key: 'mod+k', typing: true, run: () => this.#palette?.toggle() },
      { key: '?', run: () => this.#help?.show() },
      { key: 'n', run: () => this.#onNew() },
      { key: 'N', run: () => this.#onNew() },
      { key: 't', run: () => { const next = nextTheme(); setTheme(next); announce(`${t.theme}: ${t.themes[next]}`); } },
      { key: 'Escape', typing: true, run: () => (focused() as HTMLElement | null)?.blur() },
    ]);
    this.#stop.push(
      watchKeyboard(),
      effect(() => {
        const error = globalError.value;
        if (error) toast(t.failed(error.text), { tone: 'danger' });
      }),
      effect(() => {
        const live = plexus.live.value;
        const { phase } = plexus.link.value;
        if (phase === 'signed-out') { this.#wasLive = null; return; }
        if (this.#wasLive === true && !live) announce(t.live.lost, true);
        else if (this.#wasLive === false && live) announce(t.live.back);
        // A page that was opened without a network said so: that it is there again is said as well.
        if (live || this.#wasLive !== null || phase === 'offline') this.#wasLive = live;
      }),
      effect(() => { if (plexus.live.value) later(() => void readTerminals()); }),
      // A user of one of these pages opens another one next, perhaps without a network.
      effect(() => { if (plexus.live.value) setTimeout(() => { for (const part of NEXT) later(() => load(part)); }, NEXT_MS); }),
    );
    if (!signinWanted.peek()) resume();
    window.addEventListener('plexus-new-session', this.#onNew);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    window.removeEventListener('plexus-new-session', this.#onNew);
    this.#unbind();
    for (const stop of this.#stop) stop();
  }

  get #palette(): PlexusPalette | null { return this.renderRoot.querySelector('plexus-palette'); }
  get #help(): PlexusHelp | null { return this.renderRoot.querySelector('plexus-help'); }

  override render() {
    const out = plexus.link.value.phase === 'signed-out' || signinWanted.value !== null;
    if (out) load('signin');
    if (out) return html`<plexus-signin></plexus-signin><plexus-say></plexus-say>`;
    if (this.making) load('new');
    const route = plexus.route.value;
    const inSession = route.page === 'session';
    const nav = plexus.me.value?.kind === 'share' ? NAV.filter(([page]) => SHARED.includes(page)) : terminals.value.length || route.page === 'terminals' ? [...NAV, TERMINALS] : NAV;
    return html`
      <nav aria-label=${t.skip}><button class="primary skip" @click=${() => this.renderRoot.querySelector<HTMLElement>('main')?.focus()}>${t.skip}</button></nav>
      <div class="frame ${inSession ? 'in-session' : ''}">
        <header class="rail">
          <a class="brand" href="#/inbox" aria-label=${text.common.name}><img src="/icon.svg" alt=""><span class="word">${text.common.name}</span></a>
          <button class="cmd" aria-keyshortcuts="Control+K" @click=${() => this.#palette?.toggle()}>${icon('search')}<span class="label">${t.jump}</span><kbd aria-hidden="true">${MOD} K</kbd></button>
          <nav aria-label=${t.nav}><ul>${(plexus.me.value?.kind === 'share' ? nav : [...nav, USAGE, SETTINGS]).map((one) => html`<li>${this.#nav(one)}</li>`)}</ul></nav>
          ${this.#recent()}
          <div class="foot">${this.#link()}
            <div class="tools">
              <button class="ghost icon" title="${t.keys} (?)" aria-label=${t.keys} @click=${() => this.#help?.show()}>${icon('keyboard')}</button>
              <span class="grow"></span>${this.#account()}
            </div>
          </div>
        </header>
        <header class="top"><a class="brand" href="#/inbox" aria-label=${text.common.name}><img src="/icon.svg" alt=""><span class="word">${text.common.name}</span></a>
          ${this.#link()}
          <button class="ghost icon" aria-label=${t.palette} @click=${() => this.#palette?.toggle()}>${icon('search')}</button>${this.#account()}</header>
        <div class="bars">${this.#stale()}${this.#old()}${this.#share()}<plexus-push-offer></plexus-push-offer></div>
        <main id="main" tabindex="-1" class=${route.page} aria-label=${t.pages[route.page]}>${this.#body(route)}</main>
        <nav class="bottom" aria-label=${t.nav}><ul>${nav.filter(([page]) => page !== 'search' || nav.length <= NAV.length).map((one) => html`<li>${this.#nav(one)}</li>`)}</ul></nav>
      </div>
      <plexus-dialog id="new-session" heading=${t.pages.new} .open=${this.making} @close=${() => { this.making = false; }}>${this.making ? html`<plexus-new-session @done=${() => { this.making = false; }}></plexus-new-session>` : nothing}</plexus-dialog>
      <plexus-palette></plexus-palette><plexus-help></plexus-help><plexus-asking></plexus-asking><plexus-say></plexus-say>`;
  }

  #body(route: Route) {
    load(route.page);
    switch (route.page) {
      case 'inbox': return html`<plexus-inbox .request=${route.request ?? ''}></plexus-inbox>`;
      case 'home': return html`<plexus-home></plexus-home>`;
      case 'sessions': return html`<plexus-sessions></plexus-sessions>`;
      case 'new': return html`<div class="new-page"><h1 tabindex="-1">${t.pages.new}</h1><plexus-new-session></plexus-new-session></div>`;
      case 'session': return html`<plexus-session-page .sessionId=${route.session_id} .at=${route.at}></plexus-session-page>`;
      case 'devices': return html`<plexus-devices></plexus-devices>`;
      case 'runtimes': return html`<plexus-runtimes></plexus-runtimes>`;
      case 'terminals': return html`<plexus-terminals .terminalId=${route.terminal_id ?? ''}></plexus-terminals>`;
      case 'usage': return html`<plexus-usage .session=${route.session_id ?? ''}></plexus-usage>`;
      case 'changes': return html`<plexus-changes .sessionId=${route.session_id}></plexus-changes>`;
      case 'settings': return html`<plexus-settings></plexus-settings>`;
      case 'search': return html`<plexus-search .q=${route.q ?? ''}></plexus-search>`;
    }
  }

  #nav([page, mark, key]: Place) {
    const at = plexus.route.value.page;
    const here = at === page || (page === 'sessions' && (at === 'session' || at === 'changes'));
    const open = page === 'inbox' ? [...plexus.requests.value.values()].filter((r) => r.state === 'open') : [];
    const count = open.length;
    return html`<a class="nav" href="#/${page}" title="${t.pages[page]} (${key})" aria-current=${here ? 'page' : nothing}>${icon(mark, 18)}<span class="label">${t.pages[page]}</span>
      ${count ? html`<span class="count ${open.some((r) => r.risk === 'danger' || r.danger) ? 'danger' : ''}" aria-label=${t.openCount(count)}>${count}</span>` : nothing}</a>`;
  }

  #recent() {
    const news = plexus.news.value;
    const route = plexus.route.value;
    const sessions = plexus.sessions.value;
    // A link does not move away from under the pointer.
    const ids = Date.now() - this.#aimedAt < AIM_MS ? this.#latest.filter((id) => sessions.has(id)) : latest(sessions.values(), news).map((s) => s.session_id);
    this.#latest = ids;
    const all = ids.map((id) => sessions.get(id)!);
    if (!all.length) return nothing;
    return html`<h2 id="recent">${t.recent}</h2><ul class="recent" aria-labelledby="recent" @pointermove=${this.#aim} @focusin=${this.#aim}>${all.map((s) => {
      const unread = plexus.unread.value.has(s.session_id);
      return html`<li><a class="nav ${unread ? 'unread' : ''}" href=${plexus.href({ page: 'session', session_id: s.session_id })} aria-current=${route.page === 'session' && route.session_id === s.session_id ? 'page' : nothing}>
        <plexus-state .state=${s.state} bare></plexus-state><bdi class="name cut">${oneLine(s.title) || text.common.untitled}</bdi>
        ${unread ? html`<span class="sr">${t.sessions.unread}</span>` : nothing}</a></li>`;
    })}</ul>`;
  }

  #link() {
    const { phase } = plexus.link.value;
    return html`<div class="link" data-phase=${phase} role="img" aria-label=${t.phase[phase]} title=${t.phase[phase]}><span class="dot"></span><span class="word">${t.phase[phase]}</span></div>`;
  }

  #account() {
    const me = plexus.me.value;
    const set = (value: Theme) => ({ label: `${t.theme}: ${t.themes[value]}`, icon: value === 'light' ? 'sun' as const : value === 'dark' ? 'moon' as const : 'auto' as const, checked: theme.value === value, run: () => setTheme(value) });
    return html`<plexus-menu label="${t.account}${me ? `: ${oneLine(me.name)}` : ''}" icon="user" .items=${() => [
      set('auto'), set('light'), set('dark'),
      ...(me?.kind === 'share' ? [] : [{ label: t.pages.usage, icon: 'usage' as const, separate: true, href: '#/usage' }, { label: t.pages.settings, icon: 'settings' as const, href: '#/settings' }]),
      { label: t.keys, icon: 'keyboard' as const, separate: true, run: () => this.#help?.show() },
      ...(installer.value ? [{ label: t.install, icon: 'download' as const, run: () => void installer.value?.() }] : []),
      { label: me?.kind === 'share' ? t.leaveShare : t.signOut, icon: 'out' as const, separate: true, run: () => void leave() },
    ]}></plexus-menu>`;
  }

  #stale() {
    const { phase, heardAt, reason, since } = plexus.link.value;
    if (plexus.live.value || phase === 'signed-out') return nothing;
    // Connecting for a moment is normal.
    if (phase === 'connecting' && plexus.now.value - since < CONNECT_MS) return nothing;
    const lead = phase === 'stopped' ? reason : phase === 'offline' ? t.stale.offline : phase === 'reconnecting' ? t.stale.reconnecting : t.stale.connecting;
    return html`<div class="bar stale" role="status" aria-label=${t.connection} id="stale">${icon('warn')}<span class="words"><strong>${lead}</strong>
      ${heardAt ? t.stale.trueAt(moment(heardAt)) : t.stale.never} ${phase !== 'stopped' && reason ? reason : nothing}</span>
      <button class="compact" @click=${() => plexus.retry()}>${phase === 'stopped' ? t.stale.reload : t.stale.tryNow}</button></div>`;
  }

  #old() {
    if (!outdated.value) return nothing;
    return html`<div class="bar share" id="outdated" role="status">${icon('restart')}<span class="words">${outdated.value === 'missing' ? t.stale.missing : t.stale.outdated}</span><button class="compact" @click=${() => location.reload()}>${t.stale.reload}</button></div>`;
  }

  #share() {
    const me = plexus.me.value;
    if (me?.kind !== 'share') return nothing;
    const until = me.expires_at ? moment(Date.parse(me.expires_at)) : '';
    return html`<div class="bar share" id="share" role="region" aria-label=${t.shareBar('', '')}>${icon('eye')}<span class="words">${t.shareBar('', until)}</span><button class="compact" @click=${() => void leave()}>${t.leaveShare}</button></div>`;
  }

  /** Names the tab and the entry of the browser's history: the page, or the session that it shows. */
  #name(route: Route): void {
    const out = plexus.link.peek().phase === 'signed-out' || signinWanted.peek() !== null;
    const session = route.page === 'session' || route.page === 'changes' ? plexus.sessions.peek().get(route.session_id) : undefined;
    const place = session ? oneLine(session.title).replace(/\s+/g, ' ').slice(0, TITLE_MAX) || text.common.untitled : t.pages[route.page];
    const name = out ? text.common.name : `${route.page === 'changes' && session ? `${t.pages.changes}: ` : ''}${place} – ${text.common.name}`;
    // The number of open requests, which stands before it, is that of notify/badge.ts.
    if (document.title.replace(/^\(\d+\) /, '') !== name) document.title = name;
  }

  override updated(): void {
    const route = plexus.route.peek();
    const key = `${route.page}/${route.page === 'session' ? route.session_id : ''}`;
    const title = t.pages[route.page];
    this.#name(route);
    if (this.#page && this.#page !== key && plexus.link.peek().phase !== 'signed-out') {
      const main = this.renderRoot.querySelector<HTMLElement>('main');
      main?.scrollTo(0, 0);
      // Screen readers announce the page, and the keyboard focus moves to it.
      main?.focus({ preventScroll: true });
      announce(title);
    }
    this.#page = key;
  }
}
