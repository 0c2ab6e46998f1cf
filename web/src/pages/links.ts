import { css, html, nothing } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { list, oneLine, readable, str, visible } from '../lib/text.js';
import { plexus, why } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { command, pageStyles } from '../ui/parts.js';
import { announce, toast } from '../ui/say.js';
import type { AgentLink, LinkAction } from '../wire/types.js';

const t = text.shell.links;
const TONE: Record<string, string> = { linked: 'ok', out_of_date: 'warn', damaged: 'warn', unknown: 'warn' };

/** The agents with terminals of their own: whether they are linked, and linking them. */
@customElement('plexus-links')
export class PlexusLinks extends PlexusElement {
  @state() private agents: AgentLink[] | null = null;
  @state() private busy = false;
  @state() private problem = '';
  @state() private shown: { agent: string; action: LinkAction } | null = null;

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    .list { margin-top: var(--s2); }
    .row { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 4px var(--s3); padding: 12px 10px 12px 16px; align-items: start; }
    .name { display: flex; align-items: center; gap: 9px; font-weight: 600; flex-wrap: wrap; }
    .name bdi { color: var(--fg-mute); font-weight: 400; font-size: var(--t-s); }
    .row p { margin-top: 4px; overflow-wrap: anywhere; }
    .row .note { grid-column: 1 / -1; }
    .file { display: flex; flex-direction: column; gap: 6px; min-width: 0; }
    .file code { overflow-wrap: anywhere; }
    pre { margin: 0; padding: 10px 12px; border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-code); max-height: 42vh; overflow: auto; font-size: var(--t-s); line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere; }
    ins, del { text-decoration: none; display: block; }
    ins { background: var(--add-bg); } del { background: var(--del-bg); }
    @media (max-width: 599px) { .row { grid-template-columns: minmax(0, 1fr); padding-right: 16px; } }
  `];

  override render() {
    return html`<section class="section"><header><h2>${t.title}</h2>
      <button class="compact" id="links" ?disabled=${this.busy} @click=${() => void this.#load()}>${icon('search')}${this.agents ? t.again : t.look}</button></header>
      <p class="mute">${t.lead}</p>
      ${this.busy && !this.agents ? html`<p class="note" role="status">${text.common.loading}</p>` : nothing}
      ${this.problem && !this.shown ? html`<p class="note danger" role="alert">${this.problem}</p>` : nothing}
      ${this.agents ? html`<ul class="list" role="list">${this.agents.map((one) => this.#row(one))}</ul>` : nothing}
      ${this.#dialog()}</section>`;
  }

  #row(one: AgentLink) {
    const installed = Boolean(one.path);
    const words = one.gate ?? one.detail;
    return html`<li class="row" data-agent=${one.agent}>
      <div><div class="name">${oneLine(one.title)}<span class="chip ${TONE[one.state] ?? ''}">${installed || one.state === 'linked' ? t.state[one.state] ?? oneLine(one.state) : t.missing}</span>${one.version ? html`<bdi>${oneLine(one.version)}</bdi>` : nothing}</div>
        <p class="soft small">${words ? readable(words) : t.seen(oneLine(one.seen))}</p>
        ${one.heard_at ? html`<p class="mute small">${t.heard} <plexus-age .at=${one.heard_at}></plexus-age></p>` : nothing}</div>
      <div>${one.link ? html`<button class="compact" @click=${() => this.#show(one, 'link')}>${one.state === 'not_linked' ? t.link : t.repair}</button>` : nothing}
        ${one.unlink ? html`<button class="ghost compact" @click=${() => this.#show(one, 'unlink')}>${t.unlink}</button>` : nothing}</div>
      ${list<string>(one.notices).map((notice) => html`<p class="note warn"><bdi>${readable(str(notice))}</bdi></p>`)}
    </li>`;
  }

  #show(one: AgentLink, action: LinkAction): void {
    this.problem = '';
    this.shown = { agent: one.agent, action };
  }

  #dialog() {
    const shown = this.shown;
    const one = shown && this.agents?.find((agent) => agent.agent === shown.agent);
    const offer = one && shown ? one[shown.action] : undefined;
    const title = one ? (shown?.action === 'unlink' ? t.unlinkTitle : t.linkTitle)(oneLine(one.title)) : '';
    return html`<plexus-dialog size="wide" heading=${title} .open=${Boolean(shown)} @close=${() => { this.shown = null; }}>${one && shown ? html`
      <p class="soft">${shown.action === 'link' ? t.linkText : t.unlinkText}</p>
      ${offer?.files.map((file) => html`<div class="file"><div>${t.action[file.action] ?? oneLine(file.action)} <code>${visible(file.path)}</code>${file.leads_to ? html` <span class="mute">${t.leadsTo(visible(file.leads_to))}</span>` : nothing}</div>
        ${file.exact === undefined ? nothing : html`<p class="mute small">${file.exact ? t.exact : t.notExact}</p>`}
        ${file.copy ? html`<p class="mute small">${t.copy(visible(file.copy))}</p>` : nothing}
        <pre tabindex="0" role="region" aria-label=${t.diffOf(visible(file.path))}>${file.diff.split('\n').map((line) => (line.startsWith('+') ? html`<ins>${visible(line)}</ins>` : line.startsWith('-') ? html`<del>${visible(line)}</del>` : html`${visible(line)}${'\n'}`))}</pre></div>`)}
      ${offer ? nothing : html`<p class="note" role="status">${t.nothing}</p>`}
      ${shown.action === 'link' && offer ? html`<div class="file"><span class="mute small">${t.undo}</span>${command(`plexus link ${one.agent} --remove`)}</div>` : nothing}
      ${this.problem ? html`<p class="note danger" role="alert">${this.problem}</p>` : nothing}
      <div class="actions"><button @click=${() => { this.shown = null; }}>${text.common.cancel}</button>
        ${offer ? html`<button class="primary" ?disabled=${this.busy} @click=${() => void this.#change(one, shown.action, offer.digest)}>${shown.action === 'link' ? t.linkDo : t.unlinkDo}</button>` : nothing}</div>` : nothing}</plexus-dialog>`;
  }

  async #load(): Promise<void> {
    this.busy = true;
    this.problem = '';
    try {
      this.agents = list<AgentLink>((await plexus.http('GET', '/v1/link'))?.agents);
      announce(t.found(this.agents.filter((one) => one.path).length));
    } catch (error) { this.problem = text.shell.failed(why(error)); } finally { this.busy = false; }
  }

  async #change(one: AgentLink, action: LinkAction, digest: string): Promise<void> {
    this.busy = true;
    this.problem = '';
    try {
      this.agents = list<AgentLink>((await plexus.http('POST', `/v1/link/${encodeURIComponent(one.agent)}`, { action, digest }))?.agents);
      this.shown = null;
      toast((action === 'link' ? t.linked : t.unlinked)(oneLine(one.title)), { tone: 'ok' });
    } catch (error) {
      const problem = text.shell.failed(why(error));
      // The list is read again, so that it shows the current state.
      await this.#load();
      this.problem = problem;
    } finally { this.busy = false; }
  }
}
