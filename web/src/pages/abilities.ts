import { css, html, nothing, type TemplateResult } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { list, oneLine, readable, str } from '../lib/text.js';
import { plexus, why } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import type { McpServer, McpServers, Skill, SkillError, Skills } from '../wire/types.js';

const t = text.shell.abilities;
/** Number of skills above which there is a search field. */
const MANY = 8;
const TONE: Record<string, string> = { ready: 'ok', error: 'danger', connecting: 'warn' };

/** A list being loaded. `unsupported`: the agent does not report it. */
type Loading<T> = { phase: 'loading' } | { phase: 'unsupported' } | { phase: 'loaded'; it: T } | { phase: 'failed'; problem: string };

/** The dialog with an agent's MCP servers and skills; opened by the window event `plexus-abilities` with a session id. */
@customElement('plexus-abilities')
export class PlexusAbilities extends PlexusElement {
  @state() private session = '';
  @state() private servers: Loading<McpServers> = { phase: 'loading' };
  @state() private skills: Loading<Skills> = { phase: 'loading' };
  @state() private q = '';
  #open = (event: Event) => { [this.session, this.q] = [(event as CustomEvent<string>).detail, '']; this.#load(); };

  static override styles = [...[PlexusElement.styles].flat(), css`
    section { display: flex; flex-direction: column; gap: var(--s2); min-width: 0; }
    .top { display: flex; align-items: center; gap: 8px; }
    .top .n { color: var(--fg-mute); font-size: var(--t-s); }
    ul { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg); }
    li { display: flex; flex-direction: column; gap: 2px; padding: 9px 12px; min-width: 0; }
    li + li { border-top: 1px solid var(--line); }
    .row { display: flex; align-items: center; gap: 8px; min-width: 0; }
    .row .grow { font-weight: 550; }
    .about, .path { font-size: var(--t-s); overflow-wrap: anywhere; }
    .about { color: var(--fg-soft); } .path { color: var(--fg-mute); }
    .bad { color: var(--danger); }
    .quiet { padding: 14px 12px; border: 1px dashed var(--line-strong); border-radius: var(--r-m); color: var(--fg-soft); }
    .find { position: relative; }
    .find svg { position: absolute; left: 10px; top: 50%; transform: translateY(-50%); color: var(--fg-mute); pointer-events: none; }
    .find input { padding-left: 32px; }
  `];

  override connectedCallback(): void { super.connectedCallback(); window.addEventListener('plexus-abilities', this.#open); }
  override disconnectedCallback(): void { super.disconnectedCallback(); window.removeEventListener('plexus-abilities', this.#open); }

  override render() {
    return html`<plexus-dialog heading=${t.title} .open=${this.session !== ''} ?reading=${true} @close=${() => { this.session = ''; }}>
      <section><div class="top"><h3>${t.servers}</h3></div>${this.#list(this.servers, t.noServers, (it) => this.#servers(it))}</section>
      <section><div class="top"><h3>${t.skills}</h3></div>${this.#list(this.skills, t.noSkills, (it) => this.#skills(it))}</section>
    </plexus-dialog>`;
  }

  #list<T>(state: Loading<T>, no: string, show: (it: T) => TemplateResult): TemplateResult {
    if (state.phase === 'loading') return html`<p class="quiet" role="status">${t.asking}</p>`;
    if (state.phase === 'unsupported') return html`<p class="quiet"><span class="strong">${no}</span><br>${t.notTold}</p>`;
    if (state.phase === 'failed') return html`<p class="note danger" role="alert">${no}: ${state.problem}</p><div><button type="button" @click=${this.#load}>${t.again}</button></div>`;
    return show(state.it);
  }

  #servers(it: McpServers): TemplateResult {
    const all = list<McpServer>(it.servers);
    if (!all.length) return html`<p class="quiet">${t.emptyServers}</p>`;
    return html`<ul>${all.map((one) => html`<li data-server=${one.id}><div class="row"><bdi class="grow cut">${oneLine(one.id)}</bdi>
        ${one.tools === undefined ? nothing : html`<span class="path">${t.tools(one.tools)}</span>`}
        <span class="chip ${TONE[one.state] ?? ''}">${t.states[one.state] ?? oneLine(one.state)}</span></div>
        <span class="path">${oneLine(one.transport)}${one.source ? ` · ${oneLine(one.source)}` : ''}</span>
        ${one.last_error ? html`<bdi class="about bad">${oneLine(one.last_error)}</bdi>` : nothing}</li>`)}</ul>
      ${it.truncated ? html`<p class="small mute">${t.more}</p>` : nothing}`;
  }

  #skills(it: Skills): TemplateResult {
    const [all, errors, words] = [list<Skill>(it.skills), list<SkillError>(it.errors), this.q.toLowerCase().split(/\s+/).filter(Boolean)];
    const found = all.filter((one) => words.every((word) => `${one.name} ${one.description} ${one.path}`.toLowerCase().includes(word)));
    if (!all.length && !errors.length) return html`<p class="quiet">${t.emptySkills}</p>`;
    return html`${all.length > MANY ? html`<div class="find">${icon('search')}<input type="search" aria-label=${t.find} placeholder=${t.findHint} autocomplete="off" spellcheck="false" .value=${this.q} @input=${(e: Event) => { this.q = (e.target as HTMLInputElement).value; }}></div>` : nothing}
      ${found.length || errors.length ? html`<ul>${found.map((one) => html`<li data-skill=${one.id}><div class="row"><bdi class="grow cut">${oneLine(one.name)}</bdi><span class="chip">${t.scopes[one.scope] ?? oneLine(one.scope)}</span></div>
          <bdi class="about">${readable(str(one.description))}</bdi>${one.path ? html`<bdi class="path">${oneLine(one.path)}</bdi>` : nothing}</li>`)}
        ${words.length ? nothing : errors.map((one) => html`<li><bdi class="path">${oneLine(one.path)}</bdi><bdi class="about bad">${oneLine(one.message)}</bdi></li>`)}</ul>` : html`<p class="quiet">${t.noneFound}</p>`}
      ${it.truncated ? html`<p class="small mute">${t.more}</p>` : nothing}`;
  }

  #load = () => {
    const session = this.session;
    const can = plexus.runtimes.peek().get(plexus.sessions.peek().get(session)?.runtime_id ?? '')?.capabilities ?? [];
    const load = async <T>(there: boolean, what: string, set: (state: Loading<T>) => void): Promise<void> => {
      if (!there) { set({ phase: 'unsupported' }); return; }
      set({ phase: 'loading' });
      try {
        const it = await plexus.http<T>('GET', `/v1/sessions/${encodeURIComponent(session)}/${what}`);
        if (session === this.session) set({ phase: 'loaded', it });
      } catch (error) { if (session === this.session) set({ phase: 'failed', problem: why(error) }); }
    };
    void load<McpServers>(can.includes('mcp_list'), 'mcp', (state) => { this.servers = state; });
    void load<Skills>(can.includes('skills_list'), 'skills', (state) => { this.skills = state; });
  };
}
