import { css, html, nothing } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { dialogOpen } from '../lib/keys.js';
import { oneLine } from '../lib/text.js';
import { setTheme, type Theme } from '../lib/theme.js';
import { terminals } from '../wire/terminals.js';
import { plexus, type Route } from '../plexus.js';
import { text } from '../text/en.js';
import { icon, type Icon } from './icons.js';
import { leave } from './leave.js';
import './state.js';

const t = text.shell;
/** Maximum number of entries shown. */
const MAX = 40;

interface Command { section: string; label: string; hint?: string; icon?: Icon; state?: string; keys?: string; run: () => void }

/** A measure of how well `words` match `q` (all letters in order): smaller is better, null is no match. */
function fit(words: string, q: string): number | null {
  const low = words.toLowerCase();
  const at = low.indexOf(q);
  if (at >= 0) return at === 0 || low[at - 1] === ' ' ? at : at + 20;
  let from = 0;
  let gaps = 0;
  for (const c of q) {
    const next = low.indexOf(c, from);
    if (next < 0) return null;
    gaps += next - from;
    from = next + 1;
  }
  return 100 + gaps;
}

/** The command palette (Ctrl K): pages, sessions and actions by name. */
@customElement('plexus-palette')
export class PlexusPalette extends PlexusElement {
  @state() private shown = false;
  @state() private q = '';
  @state() private at = 0;
  #from: HTMLElement | null = null;

  static override styles = [...[PlexusElement.styles].flat(), css`
    dialog { width: min(620px, calc(100vw - 24px)); margin: min(14vh, 120px) auto auto; padding: 0; border: 1px solid var(--line-strong); border-radius: var(--r-l); background: var(--bg-raised); color: var(--fg); box-shadow: var(--shadow-3); overflow: hidden; }
    dialog::backdrop { background: rgb(8 9 12 / 42%); }
    .find { display: flex; align-items: center; gap: 10px; padding: 0 16px; border-bottom: 1px solid var(--line); color: var(--fg-mute); }
    .find input { border: 0; background: none; min-height: 50px; padding: 0; font-size: var(--t-l); }
    .find input:focus-visible { outline: none; }
    .list { max-height: min(52vh, 440px); overflow: auto; padding: 6px; scroll-padding: 30px 6px 6px; }
    .group { padding: 9px 10px 4px; font-size: var(--t-xs); font-weight: 600; color: var(--fg-mute); }
    .one { display: flex; align-items: center; gap: 10px; min-height: 36px; padding: 0 10px; border-radius: var(--r-s); cursor: pointer; }
    .one svg { color: var(--fg-mute); flex: none; }
    .one[aria-selected="true"] { background: var(--bg-active); }
    .one .hint { margin-left: auto; color: var(--fg-soft); font-size: var(--t-s); max-width: 45%; }
    .none { padding: 24px; text-align: center; color: var(--fg-mute); }
    @media (max-width: 599px) { dialog { margin: 0; width: 100vw; max-width: 100vw; border-radius: 0 0 var(--r-l) var(--r-l); border-width: 0 0 1px; padding-top: env(safe-area-inset-top); } .list { max-height: 60dvh; } .one { min-height: 44px; } }
  `];

  toggle(): void {
    if (this.shown) { this.#dialog?.close(); return; }
    if (dialogOpen()) return;
    this.#from = document.activeElement as HTMLElement | null;
    this.shown = true;
    this.q = '';
    this.at = 0;
    void this.updateComplete.then(() => {
      this.#dialog?.showModal();
      const input = this.renderRoot.querySelector('input');
      if (input) { input.value = ''; input.focus(); }
    });
  }

  get #dialog(): HTMLDialogElement | null { return this.renderRoot.querySelector('dialog'); }

  #commands(): Command[] {
    const s = t.command.sections;
    const go = (page: 'inbox' | 'home' | 'sessions' | 'search' | 'runtimes' | 'devices' | 'terminals' | 'usage' | 'settings', mark: Icon, keys: string): Command =>
      ({ section: s.go, label: t.pages[page], icon: mark, keys, run: () => plexus.go((page === 'search' ? { page, q: '' } : { page }) as Route) });
    const route = plexus.route.value;
    const admin = plexus.may('admin');
    const all: Command[] = [
      go('inbox', 'inbox', 'g i'), go('home', 'home', 'g h'), go('sessions', 'sessions', 'g s'), go('search', 'search', 'g f'), go('runtimes', 'runtimes', 'g r'), go('devices', 'devices', 'g d'), ...(plexus.me.value?.kind === 'share' ? [] : [go('usage', 'usage', 'g u'), go('settings', 'settings', 'g ,')]),
      ...(terminals.value.length ? [go('terminals', 'terminal', 'g t')] : []),
    ];
    const news = plexus.news.value;
    for (const one of [...plexus.sessions.value.values()].sort((a, b) => (news.get(b.session_id) ?? 0) - (news.get(a.session_id) ?? 0))) {
      all.push({ section: s.session, label: oneLine(one.title) || text.common.untitled, hint: [oneLine(one.runtime_id), oneLine(one.cwd)].filter(Boolean).join(' · '), state: one.state,
        run: () => plexus.go({ page: 'session', session_id: one.session_id }) });
    }
    if (plexus.may('prompt')) all.push({ section: s.act, label: t.sessions.new, icon: 'plus', keys: 'n', run: () => { setTimeout(() => dispatchEvent(new CustomEvent('plexus-new-session')), 0); } });
    if (route.page === 'session') {
      const ev = (what: string) => () => dispatchEvent(new CustomEvent('plexus-session-do', { detail: what }));
      if (plexus.may('prompt')) all.push({ section: s.act, label: t.sessions.rename, icon: 'pencil', run: ev('rename') }, { section: s.act, label: t.sessions.archive, icon: 'archive', run: ev('archive') });
      if (admin) all.push({ section: s.act, label: t.sessions.share, icon: 'share', run: ev('share') });
    }
    if (admin) all.push({ section: s.act, label: t.devices.add, icon: 'phone', run: () => { plexus.go({ page: 'devices' }); setTimeout(() => dispatchEvent(new CustomEvent('plexus-add-device')), 0); } });
    all.push({ section: s.act, label: t.signOut, icon: 'out', run: () => void leave() });
    for (const one of ['auto', 'light', 'dark'] as Theme[]) all.push({ section: s.theme, label: `${t.theme}: ${t.themes[one]}`, icon: one === 'light' ? 'sun' : one === 'dark' ? 'moon' : 'auto', run: () => setTheme(one) });
    return all;
  }

  #found(): Command[] {
    const q = this.q.trim().toLowerCase();
    const all = this.#commands();
    if (!q) return all.slice(0, MAX);
    const hits = all.map((one) => ({ one, at: fit(`${one.label} ${one.hint ?? ''}`, q) })).filter((x): x is { one: Command; at: number } => x.at !== null)
      .sort((a, b) => a.at - b.at).map((x) => x.one).slice(0, MAX - 1);
    hits.sort((a, b) => all.findIndex((x) => x.section === a.section) - all.findIndex((x) => x.section === b.section));
    hits.push({ section: t.command.sections.act, label: t.command.searchFor(this.q.trim()), icon: 'search', run: () => plexus.go({ page: 'search', q: this.q.trim() }) });
    return hits;
  }

  override render() {
    if (!this.shown) return html`<dialog aria-label=${t.command.label} @close=${this.#closed}></dialog>`;
    const found = this.#found();
    const at = Math.min(this.at, found.length - 1);
    return html`<dialog aria-label=${t.command.label} @close=${this.#closed} @click=${(event: Event) => { if (event.target === event.currentTarget) this.#dialog?.close(); }}>
      <div class="find">${icon('search')}<input type="text" role="combobox" aria-label=${t.command.label} aria-expanded="true" aria-controls="list" aria-activedescendant=${found.length ? `o${at}` : nothing} aria-autocomplete="list"
        autocomplete="off" autocapitalize="off" spellcheck="false" placeholder=${t.command.hint} @input=${(event: Event) => { this.q = (event.target as HTMLInputElement).value; this.at = 0; }} @keydown=${(event: KeyboardEvent) => this.#key(event, found, at)}><kbd>Esc</kbd></div>
      <div class="list" id="list" role="listbox" aria-label=${t.palette} tabindex="-1">${found.map((one, i) => html`
        ${i === 0 || found[i - 1]?.section !== one.section ? html`<div class="group" role="presentation">${one.section}</div>` : nothing}
        <div class="one" role="option" id="o${i}" aria-selected=${i === at} @click=${() => this.#run(one)} @mousemove=${() => { if (this.at !== i) this.at = i; }}>
          ${one.state ? html`<plexus-state .state=${one.state} bare></plexus-state>` : one.icon ? icon(one.icon) : nothing}<bdi class="cut">${one.label}</bdi>
          ${one.keys ? html`<span class="hint">${one.keys.split(' ').map((k) => html`<kbd>${k}</kbd> `)}</span>` : one.hint ? html`<bdi class="hint cut">${one.hint}</bdi>` : nothing}</div>`)}
        ${found.length ? nothing : html`<div class="none">${t.command.none}</div>`}</div>
    </dialog>`;
  }

  override updated(): void {
    this.renderRoot.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }

  #key(event: KeyboardEvent, found: Command[], at: number): void {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      this.at = Math.abs(step) === 1 ? (at + step + found.length) % found.length : Math.max(0, Math.min(found.length - 1, at + step));
    } else if (event.key === 'Enter' && !event.isComposing) {
      event.preventDefault();
      const one = found[at];
      if (one) this.#run(one);
    }
  }

  #run(one: Command): void {
    this.#from = null;
    this.#dialog?.close();
    one.run();
  }

  #closed = () => {
    this.shown = false;
    this.#from?.focus({ preventScroll: true });
    this.#from = null;
  };
}
