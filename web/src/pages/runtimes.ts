import { css, html, nothing } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { repeat } from 'lit/directives/repeat.js';
import { PlexusElement } from '../lib/element.js';
import { list, oneLine, readable, str, visible } from '../lib/text.js';
import { plexus, Refused, why } from '../plexus.js';
import { text } from '../text/en.js';
import { confirm } from '../ui/dialog.js';
import { icon } from '../ui/icons.js';
import { attempt, empty, notYet, pageStyles } from '../ui/parts.js';
import { toast } from '../ui/say.js';
import type { Check, RuntimeInfo } from '../wire/types.js';
import './links.js';
import { newSession } from './begin.js';

const t = text.shell.runtimes;
const TONE: Record<string, string> = { ready: 'ok', starting: 'info', restarting: 'warn', exited: '' };

/** Warnings for a user who relies on an agent's questions. */
function conductOf(r: Pick<RuntimeInfo, 'acted_unasked' | 'reviewer' | 'fixed_folder' | 'cwd'>): string[] {
  return [r.acted_unasked ? t.unasked(oneLine(r.acted_unasked)) : '', r.reviewer ? t.reviewer(oneLine(r.reviewer)) : '', r.fixed_folder ? t.fixedFolder(oneLine(r.cwd)) : ''].filter(Boolean);
}

/** The runtimes, and the gateway's self-check. */
@customElement('plexus-runtimes')
export class PlexusRuntimes extends PlexusElement {
  @state() private logs: { id: string; lines: Array<{ at?: string; text: string }> } | null = null;
  @state() private checks: Check[] | string | null = null;

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    .row { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 4px var(--s3); padding: 13px 10px 13px 16px; align-items: start; }
    .name { display: flex; align-items: center; gap: 9px; font-weight: 600; flex-wrap: wrap; }
    .agent { color: var(--fg-mute); font-weight: 400; font-size: var(--t-s); }
    .facts { display: flex; flex-wrap: wrap; gap: 2px 12px; color: var(--fg-mute); font-size: var(--t-s); margin-top: 3px; }
    .run { font-family: var(--mono); font-size: var(--t-s); color: var(--fg-soft); margin-top: 6px; }
    .why { grid-column: 1 / -1; margin-top: 6px; white-space: pre-wrap; }
    .does { display: flex; gap: 2px; flex-wrap: wrap; justify-content: flex-end; }
    pre.log { margin: 0; padding: 12px 14px; background: var(--bg-code); border: 1px solid var(--line); border-radius: var(--r-m); max-height: 56vh; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; font-size: var(--t-s); line-height: 1.55; }
    pre.log time { color: var(--fg-mute); margin-right: 10px; }
    .check { display: grid; grid-template-columns: 20px minmax(0, 1fr); gap: 2px 10px; padding: 10px 14px; }
    .check > svg { margin-top: 2px; }
    .check.ok > svg { color: var(--ok); } .check.warn > svg { color: var(--warn); } .check.bad > svg { color: var(--danger); }
    .check .fix { grid-column: 2; color: var(--fg-soft); font-size: var(--t-s); }
    @media (max-width: 599px) { .row { grid-template-columns: minmax(0, 1fr); padding-right: 16px; } .does { justify-content: flex-start; margin: 6px 0 0 -8px; } }
  `];

  override render() {
    const all = [...plexus.runtimes.value.values()].sort((a, b) => (a.runtime_id < b.runtime_id ? -1 : 1));
    const admin = plexus.may('admin');
    return html`<div class="page">
      <header><h1 tabindex="-1">${t.title}</h1>${admin ? html`<button class="primary" id="new" @click=${newSession}>${icon('plus')}${text.shell.sessions.new}</button>` : nothing}</header>
      ${admin ? nothing : html`<p class="mute">${t.needAdmin}</p>`}
      ${all.length ? html`<ul class="list">${repeat(all, (r) => r.runtime_id, (r) => this.#row(r, admin))}</ul>`
        : plexus.loaded.value ? empty('runtimes', t.none, t.noneText) : notYet()}
      ${admin ? html`<section class="section"><header><h2>${t.doctor}</h2><button class="compact" id="doctor" @click=${() => void this.#doctor()}>${icon('heart')}${t.doctorRun}</button></header>
        <p class="mute">${t.doctorText}</p>${this.#checks()}</section><plexus-links></plexus-links>` : nothing}
      <plexus-dialog size="wide" heading=${this.logs ? t.logsOf(oneLine(this.logs.id)) : ''} .open=${this.logs !== null} @close=${() => { this.logs = null; }}>${this.logs ? html`
        ${this.logs.lines.length ? html`<pre class="log" tabindex="0" role="region" aria-label=${t.logsOf(oneLine(this.logs.id))}>${this.logs.lines.map((l) => html`${l.at ? html`<time>${new Date(l.at).toLocaleTimeString('en', { hour12: false })}</time>` : nothing}${visible(str(l.text))}${'\n'}`)}</pre>` : html`<p class="mute">${t.noLogs}</p>`}
        <div><button class="compact" @click=${() => void this.#logs(this.logs?.id ?? '')}>${icon('restart')}${t.refresh}</button></div>` : nothing}</plexus-dialog>
    </div>`;
  }

  #row(r: RuntimeInfo, admin: boolean) {
    const id = oneLine(r.runtime_id);
    const sessions = [...plexus.sessions.value.values()].filter((s) => s.runtime_id === r.runtime_id && !s.archived).length;
    const how = 'command' in r.connect ? r.connect.command.join(' ') : r.connect.endpoint;
    const ended = r.state === 'exited';
    return html`<li class="row" data-runtime=${r.runtime_id}>
      <div><div class="name"><bdi>${id}</bdi><span class="chip ${TONE[r.state] ?? ''}">${t.state[r.state] ?? oneLine(r.state)}</span>${r.agent ? html`<bdi class="agent">${oneLine(r.agent)}</bdi>` : nothing}</div>
        <div class="facts"><span>${oneLine(r.dialect)}</span><a href="#/sessions">${t.sessions(sessions)}</a>${r.pid ? html`<span>${t.pid(r.pid)}</span>` : nothing}${r.generation > 1 ? html`<span>${t.starts(r.generation)}</span>` : nothing}
          ${r.outlives ? html`<span>${t.outlives}</span>` : nothing}${r.heard_at ? html`<span>${icon('clock', 12)} <plexus-age .at=${r.heard_at}></plexus-age></span>` : nothing}</div>
        <div class="run cut" title=${visible(how)}><bdi>${visible(how)}</bdi></div></div>
      ${admin ? html`<div class="does">
        <button class="ghost compact" @click=${() => void this.#logs(r.runtime_id)}>${icon('log')}${t.logs}</button>
        <button class="ghost compact" @click=${() => void this.#restart(r)}>${icon('restart')}${t.restart}</button>
        ${ended ? html`<button class="ghost compact" @click=${() => void this.#remove(r)}>${icon('trash')}${t.remove}</button>` : html`<button class="ghost compact" @click=${() => void this.#end(r)}>${icon('stop')}${t.stop}</button>`}</div>` : nothing}
      ${conductOf(r).map((words) => html`<p class="note warn why"><bdi>${words}</bdi></p>`)}
      ${r.problem ? html`<p class="note ${ended ? 'danger' : 'warn'} why"><bdi>${readable(r.problem)}</bdi></p>` : nothing}
    </li>`;
  }

  #path = (id: string) => `/v1/runtimes/${encodeURIComponent(id)}`;

  async #end(r: RuntimeInfo): Promise<void> {
    if (await confirm(t.stopTitle(oneLine(r.runtime_id)), t.stopText, t.stopDo, true)) await attempt(() => plexus.http('DELETE', this.#path(r.runtime_id)));
  }

  async #remove(r: RuntimeInfo): Promise<void> {
    if (await confirm(t.removeTitle(oneLine(r.runtime_id)), t.removeText, t.remove, true)) await attempt(() => plexus.http('DELETE', this.#path(r.runtime_id)));
  }

  async #restart(r: RuntimeInfo): Promise<void> {
    if (await attempt(() => plexus.http('POST', `${this.#path(r.runtime_id)}/restart`).then(() => true))) toast(t.started(oneLine(r.runtime_id)), { tone: 'ok' });
  }

  async #logs(id: string): Promise<void> {
    try {
      this.logs = { id, lines: list((await plexus.http('GET', `${this.#path(id)}/logs`))?.lines) };
    } catch (error) {
      // An older gateway without this route reports the end of stderr.
      const tail = plexus.runtimes.peek().get(id)?.stderr_tail ?? '';
      if (error instanceof Refused && error.status === 404) this.logs = { id, lines: tail ? tail.split('\n').map((line) => ({ text: line })) : [] };
      else toast(text.shell.failed(why(error)), { tone: 'danger' });
    }
  }

  async #doctor(): Promise<void> {
    this.checks = text.common.loading;
    try { this.checks = list<Check>((await plexus.http('GET', '/v1/doctor'))?.checks); } catch (error) {
      this.checks = error instanceof Refused && error.status === 404 ? t.doctorOff : text.shell.failed(why(error));
    }
  }

  #checks() {
    if (this.checks === null) return nothing;
    if (typeof this.checks === 'string') return html`<p class="note" role="status">${this.checks}</p>`;
    return html`<ul class="list" role="list">${this.checks.map((c) => {
      const tone = c.state === 'fail' ? 'bad' : c.state;
      return html`<li class="check ${tone}">${icon(tone === 'ok' ? 'check' : tone === 'bad' ? 'danger' : 'warn', 16, c.state)}<div><span class="strong">${oneLine(c.name)}</span> <bdi class="soft">${readable(str(c.detail))}</bdi></div>${c.fix ? html`<div class="fix">${readable(str(c.fix))}</div>` : nothing}</li>`;
    })}</ul>`;
  }
}
