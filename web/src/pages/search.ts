import { css, html, nothing, type TemplateResult } from 'lit';
import { customElement, property, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { bind, focused } from '../lib/keys.js';
import { projectOf } from '../lib/project.js';
import { oneLine, str, visible } from '../lib/text.js';
import { plexus, why } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { empty, pageStyles } from '../ui/parts.js';
import { announce } from '../ui/say.js';
import { parseCursor, type Hit, type Hits } from '../wire/types.js';

const t = text.shell.search;
/** Delay after typing before the search, ms. */
const REST_MS = 220;

/** Full-text search over all sessions. */
@customElement('plexus-search')
export class PlexusSearch extends PlexusElement {
  @property() q = '';
  @state() private hits: Hit[] | null = null;
  @state() private problem = '';
  @state() private asked = '';
  /** The only project whose results are shown; empty: all. */
  @state() private only = '';
  #timer: ReturnType<typeof setTimeout> | undefined;
  #serial = 0;
  #unbind: () => void = () => {};

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    .field { position: relative; margin-bottom: var(--s4); }
    .field svg { position: absolute; left: 13px; top: 50%; transform: translateY(-50%); color: var(--fg-mute); pointer-events: none; }
    .field input { min-height: 44px; padding-left: 40px; font-size: var(--t-l); border-radius: var(--r-m); }
    .hit { position: relative; display: flex; flex-direction: column; gap: 3px; padding: 11px 16px; }
    .hit:hover { background: var(--bg-hover); }
    .hit a { color: inherit; text-decoration: none; }
    .hit a::after { content: ""; position: absolute; inset: 0; }
    .hit a:focus-visible { outline: none; }
    .hit a:focus-visible::after { outline: var(--focus); outline-offset: -2px; border-radius: var(--r-s); }
    .head { display: flex; gap: 8px; align-items: center; margin: 0; min-height: 0; flex-wrap: nowrap; font-size: var(--t-s); color: var(--fg-mute); }
    .head .strong { color: var(--fg); font-size: var(--t-m); }
    .head > * { flex: none; }
    .head > .cut { flex: 0 1 auto; }
    @media (max-width: 480px) { .head { flex-wrap: wrap; } .head > a { flex-basis: 100%; } }
    .snip { color: var(--fg-soft); overflow: hidden; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; line-clamp: 3; }
    mark { background: var(--warn-wash); color: var(--fg); border-radius: 3px; box-shadow: 0 0 0 1px var(--warn-line); }
    .project { display: flex; align-items: center; gap: 8px; position: sticky; top: 0; z-index: 2; background: var(--bg); padding: 6px 0; margin-top: var(--s4); font-size: var(--t-m); font-weight: 600; }
    .projects { display: flex; flex-wrap: wrap; gap: var(--s2); margin-bottom: var(--s3); }
    .projects button { gap: 6px; font-weight: 500; max-width: 100%; }
    .projects button[aria-pressed="true"] { background: var(--accent-wash); border-color: var(--accent); }
    .projects .count { color: var(--fg-mute); font-weight: 400; }
    @media (pointer: coarse) { .projects button { min-height: 44px; } }
    .n { font-size: var(--t-s); color: var(--fg-mute); margin-bottom: var(--s2); }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    const step = (by: number) => () => {
      const all = [...this.renderRoot.querySelectorAll<HTMLElement>('.hit a')];
      const i = all.indexOf(focused() as HTMLElement);
      all[i < 0 ? 0 : Math.max(0, Math.min(all.length - 1, i + by))]?.focus();
    };
    this.#unbind = bind([{ key: 'j', atOnce: true, run: step(1) }, { key: 'k', atOnce: true, run: step(-1) }, { key: 'ArrowDown', run: step(1) }, { key: 'ArrowUp', run: step(-1) }, { key: '/', atOnce: true, run: () => this.renderRoot.querySelector('input')?.focus() }]);
    void this.updateComplete.then(() => { if (matchMedia('(pointer: fine)').matches) this.renderRoot.querySelector('input')?.focus(); });
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#unbind();
    clearTimeout(this.#timer);
  }

  override updated(): void {
    if (this.q.trim() !== this.asked) { this.asked = this.q.trim(); void this.#search(); }
  }

  override render() {
    return html`<div class="page"><header><h1 tabindex="-1">${t.title}</h1></header>
      <div class="field" role="search">${icon('search', 18)}<input type="search" aria-label=${t.label} placeholder=${t.hint} .value=${this.q} autocomplete="off" spellcheck="false"
        @input=${this.#typed} @keydown=${(e: KeyboardEvent) => { if (e.key === 'ArrowDown' || (e.key === 'Enter' && !e.isComposing)) { e.preventDefault(); this.renderRoot.querySelector<HTMLElement>('.hit a')?.focus(); } }}></div>
      ${this.problem ? html`<p class="note danger" role="alert">${this.problem}</p>` : nothing}
      ${this.hits === null ? (this.asked ? html`<p class="mute">${text.common.loading}</p>` : empty('search', t.start, t.startText))
        : this.hits.length === 0 ? empty('search', t.none(visible(this.asked)), t.noneText)
          : html`<p class="n">${t.found(this.hits.length)}</p>${this.#results(this.hits)}`}</div>`;
  }

  /** The results by project, the one with the best result first. */
  #results(hits: readonly Hit[]) {
    const projects = new Map<string, { name: string; hits: Hit[] }>();
    for (const hit of hits) {
      const s = plexus.sessions.value.get(hit.session_id);
      const { key, name } = s ? projectOf(s) : { key: '', name: t.elsewhere };
      const known = projects.get(key);
      if (known) known.hits.push(hit); else projects.set(key, { name, hits: [hit] });
    }
    const list = (some: readonly Hit[]) => html`<ul class="list">${some.map((hit) => this.#hit(hit))}</ul>`;
    if (projects.size === 1) return list(hits);
    const shown = [...projects].filter(([key]) => !projects.has(this.only) || key === this.only);
    return html`<div class="projects" role="group" aria-label=${t.projects}>${[...projects].map(([key, { name, hits: some }]) => html`<button class="compact" aria-pressed=${this.only === key && this.only !== ''}
        @click=${() => { this.only = this.only === key ? '' : key; }}><bdi class="cut">${name}</bdi><span class="count">${some.length}</span></button>`)}</div>
      ${shown.map(([, { name, hits: some }]) => html`<section><h2 class="project"><bdi class="cut">${name}</bdi></h2>${list(some)}</section>`)}`;
  }

  #hit(hit: Hit) {
    const s = plexus.sessions.value.get(hit.session_id);
    const branch = s ? projectOf(s).branch : '';
    const at = parseCursor(hit.cursor)?.pos;
    return html`<li class="hit"><div class="head"><a class="cut" href=${plexus.href({ page: 'session', session_id: hit.session_id, at })}><bdi class="strong">${oneLine(s?.title) || text.common.untitled}</bdi></a>
        <span class="chip">${t.roles[hit.role] ?? oneLine(hit.role)}</span><bdi>${oneLine(s?.runtime_id)}</bdi>${branch ? html`<span class="chip cut"><bdi class="cut">${branch}</bdi></span>` : nothing}</div>
      <bdi class="snip">${this.#marked(str(hit.snippet))}</bdi></li>`;
  }

  /** The snippet; the gateway marks matches with STX and ETX. */
  #marked(snippet: string): Array<TemplateResult | string> {
    return snippet.split(/\u0002([^\u0003]*)\u0003/).map((part, i) => {
      const words = visible(part.replace(/[\n\t]+/g, ' '));
      return i % 2 ? html`<mark>${words}</mark>` : words;
    });
  }

  #typed = (event: Event) => {
    const q = (event.target as HTMLInputElement).value;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.q = q;
      // The query is in the URL, for links; replaced without a history entry per letter.
      history.replaceState(null, '', plexus.href({ page: 'search', q: q.trim() }));
    }, REST_MS);
  };

  async #search(): Promise<void> {
    const serial = ++this.#serial;
    this.problem = '';
    if (!this.asked) { this.hits = null; return; }
    try {
      const got = await plexus.http<Hits>('GET', `/v1/search?q=${encodeURIComponent(this.asked)}&limit=100`);
      if (serial !== this.#serial) return;
      [this.hits, this.only] = [got.hits ?? [], ''];
      announce(t.found(this.hits.length));
    } catch (error) {
      if (serial !== this.#serial) return;
      this.hits = [];
      this.problem = text.shell.failed(why(error));
    }
  }
}
