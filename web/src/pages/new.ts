// "New session": the agent, the folder and the prompt in one form. It starts the agent if need be, and opens the session.
import { css, html, nothing, type PropertyValues } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { repeat } from 'lit/directives/repeat.js';
import { PlexusElement } from '../lib/element.js';
import { IMAGES, pasted, promptBody, readShots, type Shot } from '../lib/shots.js';
import { list, oneLine, readable, visible } from '../lib/text.js';
import { plexus, Refused, why } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { command, pageStyles } from '../ui/parts.js';
import { announce } from '../ui/say.js';
import type { Agents, Folders, KnownAgent, Resumable, RuntimeInfo } from '../wire/types.js';
import './folder-field.js';
import type { PlexusFolderField } from './folder-field.js';
import './past.js';
import { startable } from './begin.js';
import { split } from './split.js';

const t = text.shell.newSession;
const past = text.shell.sessions.past;
const NAMES = text.shell.runtimes.known;
/** Time for an agent to start, ms; the gateway gives up earlier. */
const START_MS = 180_000;
/** Time between two checks of an agent that starts, ms. */
const LOOK_MS = 250;
/** Recent folders offered. */
const RECENTS = 5;

/** Whether a runtime lists conversations that it can resume. */
const lists = (r: RuntimeInfo | undefined): boolean => {
  const can = r?.capabilities ?? [];
  return can.includes('list') && (can.includes('load') || can.includes('resume'));
};

/** A key that names one attempt. */
const newKey = (): string => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');

/** An agent of the list: a runtime, a preset, or another program. */
type Choice = { kind: 'runtime'; id: string; runtime: RuntimeInfo } | { kind: 'preset'; id: string; agent: KnownAgent } | { kind: 'custom'; id: 'custom' };

interface Problem { words: string; stderr?: string; fix?: string }

/** The form. Dispatches `done` when the session is opened. */
@customElement('plexus-new-session')
export class PlexusNewSession extends PlexusElement {
  @state() private agents: KnownAgent[] | null = null;
  @state() private recent: Folders['recent'] = [];
  @state() private home = '';
  /** The folder that the user named; null for the suggested one. */
  @state() private folder: string | null = null;
  @state() private chosen = '';
  @state() private shots: Shot[] = [];
  @state() private stage = '';
  @state() private problem: Problem | null = null;
  @state() private old = false;
  @state() private picked: Resumable | null = null;
  #abort: AbortController | null = null;
  /** The list as it was when "Start" was pressed: it stays so while the agent starts. */
  #pressed: Choice[] | null = null;
  /** The last attempt: repeating it uses the same key. */
  #last = { body: '', key: '' };

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    form { display: flex; flex-direction: column; gap: var(--s4); min-width: 0; }
    fieldset { min-width: 0; }
    legend { padding: 0; margin-bottom: 6px; font-weight: 550; }
    .kinds { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(200px, 100%), 1fr)); gap: var(--s2); }
    .kind { display: grid; grid-template-columns: auto minmax(0, 1fr) auto; align-items: center; gap: 0 9px; padding: 7px 11px; min-height: 52px; border: 1px solid var(--line-strong); border-radius: var(--r-s); background: var(--bg-raised); cursor: pointer; }
    .kind small { grid-column: 2 / -1; color: var(--fg-mute); font-size: var(--t-s); }
    .kind:hover { background: var(--bg-hover); }
    .kind:has(:checked) { border-color: var(--accent); background: var(--accent-wash); box-shadow: inset 0 0 0 1px var(--accent); }
    .kind:has(:disabled) { cursor: not-allowed; color: var(--fg-mute); }
    .kind:has(:focus-visible) { outline: var(--focus); outline-offset: 1px; }
    .kind input:focus-visible { outline: none; }
    details > summary { cursor: pointer; color: var(--fg-soft); font-size: var(--t-s); min-height: 32px; display: flex; align-items: center; }
    details > summary::before { content: "▸"; margin-right: 6px; } details[open] > summary::before { content: "▾"; }
    @media (pointer: coarse) { details > summary { min-height: 44px; } }
    .others { display: flex; flex-direction: column; gap: 10px; padding: 4px 0 2px; }
    .others li { display: grid; gap: 3px; min-width: 0; }
    .recents { display: flex; gap: 6px; flex-wrap: wrap; margin-top: 6px; }
    .recents button { max-width: 100%; }
    .seg { display: flex; border: 1px solid var(--line-strong); border-radius: var(--r-s); overflow: hidden; flex: none; }
    .seg button { flex: 1; min-width: 0; border: 0; border-radius: 0; background: transparent; color: var(--fg-soft); }
    .seg button[aria-pressed="true"] { background: var(--bg-active); color: var(--fg); }
    .seg button:focus-visible { outline-offset: -2px; }
    textarea { min-height: 76px; max-height: 34vh; resize: vertical; }
    .say { display: flex; flex-direction: column; gap: 5px; }
    .say .head { margin: 0; gap: 6px; min-height: 0; }
    .say label { font-weight: 550; flex: 1; }
    .shots { display: flex; gap: 6px; flex-wrap: wrap; }
    .shots figure { position: relative; } .shots img { height: 56px; border-radius: var(--r-s); border: 1px solid var(--line); display: block; }
    .shots button { position: absolute; top: -6px; right: -6px; width: 24px; min-height: 24px; padding: 0; border-radius: 50%; }
    .problem { display: grid; gap: 8px; }
    .problem pre { margin: 0; max-height: 30vh; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; color: var(--fg); background: var(--bg-code); border: 1px solid var(--line); border-radius: var(--r-s); padding: 8px 10px; font-size: var(--t-s); }
    .busy { display: flex; gap: 10px; align-items: center; }
    .busy .dot { color: var(--accent); animation: pulse 1.2s ease-in-out infinite alternate; }
    @keyframes pulse { from { opacity: 0.25; } to { opacity: 1; } }
    .asleep { display: flex; flex-direction: column; align-items: center; gap: var(--s3); text-align: center; padding: var(--s5) var(--s4); border: 1px dashed var(--line-strong); border-radius: var(--r-m); }
    .actions { align-items: center; }
    .actions button { min-width: 96px; }
    @media (pointer: coarse) { .actions button, .recents button, .asleep button { min-height: 44px; } }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    void this.#read();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#abort?.abort();
    for (const shot of this.shots) URL.revokeObjectURL(shot.url);
  }

  override updated(changed: PropertyValues): void {
    // The problem stands at the place of "Start", which on a phone may be below the screen's end.
    if (changed.has('problem') && this.problem) this.renderRoot.querySelector('.problem')?.scrollIntoView({ block: 'nearest' });
  }

  async #read(): Promise<void> {
    const folders = plexus.http<Folders>('GET', '/v1/folders').then((got) => { [this.recent, this.home] = [list(got.recent), got.under ?? '']; }).catch(() => { /* the folder can be typed */ });
    try {
      this.agents = plexus.may('admin') ? list<KnownAgent>((await plexus.http<Agents>('GET', '/v1/agents')).agents) : [];
    } catch (error) {
      this.agents = [];
      this.problem = { words: t.failed(why(error)) };
    }
    await folders;
  }

  #choices(): Choice[] {
    if (this.#pressed) return this.#pressed;
    const runtimes = startable().map((runtime): Choice => ({ kind: 'runtime', id: `runtime:${runtime.runtime_id}`, runtime }));
    const running = new Set(startable().map((runtime) => runtime.runtime_id));
    const presets = (this.agents ?? []).filter((agent) => agent.installed && !running.has(agent.name) && !(agent.runtime_id && running.has(agent.runtime_id)));
    return [...runtimes, ...presets.map((agent): Choice => ({ kind: 'preset', id: `preset:${agent.name}`, agent })), ...(plexus.may('admin') && this.agents ? [{ kind: 'custom', id: 'custom' } as const] : [])];
  }

  #choice(all = this.#choices()): Choice | undefined {
    const usable = all.filter((one) => one.kind !== 'runtime' || one.runtime.state === 'ready');
    return usable.find((one) => one.id === this.chosen) ?? usable[0];
  }

  /** The folder that is offered: an endpoint's own, else the one last used. */
  #offered(choice: Choice | undefined): string {
    if (!plexus.may('admin')) return '';
    if (choice?.kind === 'runtime' && 'endpoint' in choice.runtime.connect) return '';
    return this.recent[0]?.path ?? this.home;
  }

  override render() {
    if (!plexus.loaded.value || (this.agents === null && !startable().length)) return html`<p class="mute" role="status">${t.looking}</p>`;
    const all = this.#choices();
    const choice = this.#choice(all);
    if (!all.length) return html`<p class="note" role="status">${t.noneRuns}</p>`;
    const missing = (this.agents ?? []).filter((agent) => !agent.installed);
    const runtime = choice?.kind === 'runtime' ? choice.runtime : undefined;
    // One that does not run is started first: only then it says what it can do.
    const offers = lists(runtime) || choice?.kind === 'preset';
    const old = this.old && offers;
    const busy = Boolean(this.stage);
    return html`<form @submit=${(e: Event) => void this.#submit(e)} aria-busy=${busy}>
      <fieldset ?disabled=${busy}><legend>${t.agent}</legend>
        <div class="kinds">${repeat(all, (one) => one.id, (one) => this.#kind(one, choice))}</div>
        ${missing.length ? html`<details><summary>${t.others(missing.length)}</summary><ul class="others" role="list">${missing.map((agent) => html`<li><span>${NAMES[agent.name] ?? agent.name}</span>${agent.install ? command(agent.install) : nothing}</li>`)}</ul></details>` : nothing}</fieldset>
      ${choice?.kind === 'custom' ? html`<label class="field">${t.command}<input name="command" required ?disabled=${busy} autocomplete="off" spellcheck="false" autocapitalize="off" class="mono" placeholder="my-agent --acp"><span class="hint mute small">${t.commandHint}</span></label>
        <label class="field">${t.dialect}<select name="dialect" ?disabled=${busy}>${Object.entries(t.dialects).map(([id, name]) => html`<option value=${id}>${name}</option>`)}</select></label>` : nothing}
      ${offers ? html`<div class="seg" role="group" aria-label=${past.which}>${[false, true].map((o) => html`<button type="button" id=${o ? 'old' : 'fresh'} ?disabled=${busy} aria-pressed=${old === o} @click=${() => { [this.old, this.picked, this.problem] = [o, null, null]; }}>${o ? past.old : past.fresh}</button>`)}</div>` : nothing}
      ${old && runtime ? html`<plexus-past .runtime=${runtime.runtime_id} @pick=${(e: CustomEvent<Resumable>) => { [this.picked, this.problem] = [e.detail, null]; }} @resume=${() => this.renderRoot.querySelector('form')?.requestSubmit()}></plexus-past>` : old && choice?.kind === 'preset' ? this.#asleep(choice.agent, busy) : this.#fresh(choice, busy)}
      ${this.#trouble()}
      ${busy ? html`<div class="busy" role="status"><span class="dot"></span><span>${this.stage} <span class="mute small">${choice?.kind === 'runtime' ? '' : t.startingText}</span></span></div>` : nothing}
      <div class="actions">${busy ? html`<button type="button" id="cancel" @click=${() => this.#abort?.abort()}>${text.common.cancel}</button>` : nothing}
        <button class="primary" id="start" ?disabled=${busy || !choice || (old && !this.picked)}>${old ? (busy ? past.resuming : this.picked?.session_id ? past.go : past.resume) : t.start}</button></div>
    </form>`;
  }

  #kind(one: Choice, choice: Choice | undefined) {
    const on = one.id === choice?.id;
    const pick = () => { [this.chosen, this.picked, this.problem] = [one.id, null, null]; };
    const row = (name: unknown, chip: unknown, about: unknown, disabled = false) => html`<label class="kind" data-runtime=${one.kind === 'runtime' ? one.runtime.runtime_id : nothing} data-preset=${one.kind === 'preset' ? one.agent.name : nothing}>
      <input type="radio" name="agent" value=${one.id} .checked=${on} ?disabled=${disabled} @change=${pick}><span class="strong cut">${name}</span>${chip}<small class="cut">${about}</small></label>`;
    switch (one.kind) {
      case 'runtime': {
        const r = one.runtime;
        const ready = r.state === 'ready';
        return row(html`<bdi>${oneLine(r.runtime_id)}</bdi>`, html`<span class="chip ${ready ? 'ok' : 'info'}">${ready ? t.running : text.shell.runtimes.state[r.state]}</span>`, html`<bdi>${oneLine(r.agent) || oneLine(r.dialect)}</bdi>`, !ready);
      }
      case 'preset': return row(NAMES[one.agent.name] ?? oneLine(one.agent.name), nothing, `${t.installed} · ${one.agent.key ? t.signsIn(one.agent.key) : oneLine(one.agent.about)}`);
      case 'custom': return row(t.custom, nothing, t.customText);
    }
  }

  #fresh(choice: Choice | undefined, busy: boolean) {
    const value = this.folder ?? this.#offered(choice);
    return html`<div>
        <plexus-folder-field .value=${value} .disabled=${busy} @folder=${(e: CustomEvent<string>) => { this.folder = e.detail; }}></plexus-folder-field>
        ${this.recent.length > 1 ? html`<div class="recents" role="group" aria-label=${t.recent}>${this.recent.slice(0, RECENTS).map((one) => html`<button type="button" class="compact" ?disabled=${busy} aria-pressed=${value === one.path} title=${visible(one.path)} @click=${() => { this.folder = one.path; }}>${icon('folder', 14)}<bdi class="cut">${oneLine(one.name)}</bdi></button>`)}</div>` : nothing}</div>
      ${plexus.may('admin') && !(choice?.kind === 'runtime' && 'endpoint' in choice.runtime.connect) ? html`<details id="worktree"><summary>${t.worktree}</summary><div class="others">
        <label class="field">${t.branch}<input name="branch" ?disabled=${busy} autocomplete="off" spellcheck="false" autocapitalize="off" class="mono" maxlength="200" placeholder="fix/parser"></label>
        <label class="field">${t.base}<input name="base" ?disabled=${busy} autocomplete="off" spellcheck="false" autocapitalize="off" class="mono" maxlength="200" placeholder=${t.baseHint}></label>
        <span class="mute small">${t.worktreeText}</span></div></details>` : nothing}
      <div class="say" @dragover=${(e: DragEvent) => e.preventDefault()} @drop=${(e: DragEvent) => { e.preventDefault(); this.#files(e.dataTransfer?.files ?? []); }}>
        <div class="head"><label for="say">${t.prompt}</label><button type="button" class="ghost icon" ?disabled=${busy} aria-label=${text.session.attach} title=${text.session.attach} @click=${() => this.renderRoot.querySelector<HTMLInputElement>('#files')?.click()}>${icon('plus')}</button></div>
        <input id="files" type="file" hidden multiple accept=${IMAGES.join(',')} @change=${(e: Event) => { const input = e.target as HTMLInputElement; this.#files(input.files ?? []); input.value = ''; }}>
        ${this.shots.length ? html`<div class="shots">${this.shots.map((shot, n) => html`<figure><img src=${shot.url} alt=${text.session.image}><button type="button" class="icon" aria-label=${text.session.removeImage} @click=${() => { URL.revokeObjectURL(shot.url); this.shots = this.shots.filter((_, m) => m !== n); }}>${icon('close', 12)}</button></figure>`)}</div>` : nothing}
        <textarea id="say" name="prompt" rows="3" dir="auto" ?disabled=${busy} placeholder=${t.optional} aria-describedby="say-hint" @keydown=${this.#key} @paste=${(e: ClipboardEvent) => { const files = pasted(e); if (files.length) { e.preventDefault(); this.#files(files); } }}></textarea>
        <span id="say-hint" class="mute small">${t.promptHint}</span></div>
      <label class="field">${t.name}<input name="title" ?disabled=${busy} autocomplete="off" maxlength="200" placeholder=${t.nameHint}></label>`;
  }

  /** An agent that is not running, whose conversations are requested. */
  #asleep(agent: KnownAgent, busy: boolean) {
    const name = NAMES[agent.name] ?? oneLine(agent.name);
    return busy ? nothing : html`<div class="asleep"><p class="mute">${past.asleep(name)}</p><button type="button" id="wake" @click=${() => void this.#wake(agent, name)}>${past.wake}</button></div>`;
  }

  #trouble() {
    const problem = this.problem;
    if (!problem) return nothing;
    return html`<div class="note danger problem" role="alert"><p><bdi>${readable(problem.words)}</bdi></p>
      ${problem.stderr ? html`<p class="strong" id="said">${t.said}</p><pre tabindex="0" role="region" aria-labelledby="said">${readable(problem.stderr)}</pre>` : nothing}
      ${problem.fix ? html`<p>${problem.fix}</p>` : nothing}</div>`;
  }

  #files(files: Iterable<File>): void {
    if (readShots(files, (shot) => { this.shots = [...this.shots, shot]; })) this.problem = { words: text.session.imageTooBig };
  }

  #key = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.shiftKey || event.altKey || event.isComposing) return;
    event.preventDefault();
    this.renderRoot.querySelector('form')?.requestSubmit();
  };

  /** The request to the gateway; null if nothing can be sent. */
  #wish(form: FormData, choice: Choice): { [name: string]: unknown } | null {
    const word = (name: string) => String(form.get(name) ?? '').trim();
    if (choice.kind === 'preset' && this.old) return null;
    if (choice.kind === 'runtime' && this.old && lists(choice.runtime)) {
      const one = this.picked;
      return one && { runtime_id: choice.runtime.runtime_id, native_id: one.native_id, ...(one.cwd ? { cwd: one.cwd } : {}) };
    }
    const cwd = (this.renderRoot.querySelector<PlexusFolderField>('plexus-folder-field')?.path ?? '').trim();
    const who = choice.kind === 'runtime' ? { runtime_id: choice.runtime.runtime_id }
      : { start: choice.kind === 'preset' ? { preset: choice.agent.name } : { dialect: word('dialect'), command: split(word('command')) } };
    return { ...who, ...(cwd ? { cwd } : {}), ...(word('title') ? { title: word('title') } : {}), ...(word('branch') ? { worktree: { branch: word('branch'), ...(word('base') ? { base: word('base') } : {}) } } : {}) };
  }

  async #submit(event: Event): Promise<void> {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const choice = this.#choice();
    if (this.#abort || !choice) return;
    const data = new FormData(form);
    const wish = this.#wish(data, choice);
    if (!wish) return;
    const resumes = 'native_id' in wish;
    if (resumes && this.picked?.session_id) { this.#open(this.picked.session_id); return; }
    const body = JSON.stringify(wish);
    if (this.#last.body !== body) this.#last = { body, key: newKey() };
    const { key } = this.#last;
    const abort = new AbortController();
    this.#abort = abort;
    const limit = setTimeout(() => abort.abort(new DOMException('', 'TimeoutError')), START_MS);
    const name = choice.kind === 'runtime' ? '' : choice.kind === 'preset' ? NAMES[choice.agent.name] ?? choice.agent.name : split(String(data.get('command') ?? ''))[0] ?? '';
    this.#pressed = this.#choices();
    this.problem = null;
    this.stage = name ? t.starting(oneLine(name)) : t.opening;
    let session = '';
    try {
      const more = (suffix: string) => ({ headers: { 'Idempotency-Key': `${key}${suffix}` }, signal: abort.signal });
      session = (await plexus.http('POST', '/v1/sessions', wish, more(''))).session_id;
      const words = String(data.get('prompt') ?? '').trim();
      if (!resumes && (words || this.shots.length)) await plexus.http('POST', `/v1/sessions/${encodeURIComponent(session)}/prompt`, promptBody(words, this.shots), more('-prompt'));
      this.#open(session);
    } catch (error) {
      this.problem = session ? { words: t.unsent(why(error)) } : this.#failure(error);
      // After a refusal, repeating the request is another attempt.
      if (!session) this.#last = { body: '', key: '' };
    } finally {
      clearTimeout(limit);
      [this.#abort, this.#pressed] = [null, null];
      this.stage = '';
    }
  }

  /** Starts an agent without a session. One that does not become ready is removed again. */
  async #wake(agent: KnownAgent, name: string): Promise<void> {
    if (this.#abort) return;
    const abort = new AbortController();
    this.#abort = abort;
    const limit = setTimeout(() => abort.abort(new DOMException('', 'TimeoutError')), START_MS);
    this.#pressed = this.#choices();
    [this.problem, this.stage] = [null, t.starting(name)];
    let started = '';
    let ready = false;
    try {
      const cwd = this.folder ?? this.recent[0]?.path ?? this.home;
      // The call is not cancelled half-way: a runtime that was started must be known to be removed.
      started = (await plexus.http<RuntimeInfo>('POST', '/v1/runtimes', { preset: agent.name, ...(cwd ? { cwd } : {}) })).runtime_id;
      const path = `/v1/runtimes/${encodeURIComponent(started)}`;
      let now: RuntimeInfo;
      // The page's own list tells it, too, some time later.
      while ((now = await plexus.http<RuntimeInfo>('GET', path, undefined, { signal: abort.signal })).state !== 'ready' || plexus.runtimes.value.get(started)?.state !== 'ready') {
        if (now.state === 'exited') { this.problem = { words: t.failed(now.problem ?? ''), ...(now.stderr_tail ? { stderr: now.stderr_tail } : {}), fix: t.fixStart }; return; }
        await new Promise((done) => { setTimeout(done, LOOK_MS); });
      }
      ready = true;
      this.chosen = `runtime:${started}`;
      if (!lists(now)) [this.old, this.problem] = [false, { words: past.untold }];
    } catch (error) {
      this.problem = this.#failure(error);
    } finally {
      clearTimeout(limit);
      if (started && !ready) void plexus.http('DELETE', `/v1/runtimes/${encodeURIComponent(started)}`).catch(() => { /* it is gone already */ });
      [this.#abort, this.#pressed] = [null, null];
      this.stage = '';
      if (ready) void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>('plexus-past')?.focus());
    }
  }

  #failure(error: unknown): Problem | null {
    if (error instanceof DOMException && error.name === 'AbortError') { announce(t.stopped); return { words: t.stopped }; }
    const stderr = error instanceof Refused && typeof error.problem['stderr'] === 'string' ? error.problem['stderr'] : '';
    const start = error instanceof Refused && (error.code === 'runtime_not_started' || error.code === 'runtime_refused');
    return { words: t.failed(why(error)), ...(stderr ? { stderr } : {}), ...(start ? { fix: t.fixStart } : {}) };
  }

  #open(session_id: string): void {
    this.dispatchEvent(new CustomEvent('done'));
    plexus.go({ page: 'session', session_id });
  }
}
