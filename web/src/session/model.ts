// The fold of a session's events into items for the screen. Pure, O(1) per event; items are in order and have stable keys.
//
// The key of an item is the position of its first event, whether its events come one by one or merged: a longer history can replace
// the shown one without moving anything.
//
// The rules are those of the gateway's fold (crates/protocol/src/transcript); tests/golden checks both with the same cases.

import { Segmenter, type Segment } from '../render/segment.js';
import { regroup, type Stretch } from './reads.js';
import { isKind, parseCursor, type Envelope, type Request, type Resolver } from '../wire/types.js';

/** Maximum length of the output of one tool, in characters; the oldest is dropped, and the card reports it. */
const OUTPUT_MAX = 4_000_000;
/** Maximum number of messages with an agent's message id that are stored; a chunk of an older one begins a new message. */
const NAMED_MAX = 64;
/** Maximum length of an identifier, in characters; a call with a longer one has no nested items. */
const PARENT_MAX = 256;
/** Maximum depth of nested calls that are distinguished. */
const DEPTH_MAX = 8;

/** A part of a message; each is a row of the list. */
export type Part = { kind: 'text'; segment: Segment } | { kind: 'block'; block: any };

interface Base {
  key: number;
  run: string;
  at: string;
  /** Incremented with each change; a row drawn at another revision is redrawn. */
  rev: number;
}
export interface MessageItem extends Base {
  type: 'user' | 'agent' | 'thought';
  text: string;
  parts: Part[];
  partial: boolean;
  by: Resolver | null;
  id: string | null;
  /** The tool call that the message claims to belong to: a subagent's text. */
  named: string | null;
  /** The tool call that contains the message. */
  parent: ToolItem | null;
  segmenter: Segmenter;
  /** The number of parts before those of the segmenter. */
  base: number;
  /** The number of settled parts of the segmenter. */
  settled: number;
}
export interface Mark { text: string; tone: 'good' | 'bad' | 'plain' }
export interface ToolItem extends Base {
  type: 'tool';
  id: string;
  call: Record<string, any>;
  /** Terminal output from `_meta`. */
  output: string;
  outputCut: boolean;
  /** Bytes that its page left out; they are loaded on request. */
  leftOut: number;
  /** The tool call that contains this one: an action of a subagent. */
  parent: ToolItem | null;
  /** Whether the call has named its parent: the first one counts. */
  decided: boolean;
  requests: RequestItem[];
  /** Its index in `items`. */
  place: number;
  /** The stretch of consecutive calls that only read, if this is one of them. */
  reads: Stretch | null;
}
export interface PlanItem extends Base { type: 'plan'; entries: any[] }
export interface RequestItem extends Base { type: 'request'; id: string; request: Request; outcome: any | null;
  /** The call that the request asks about. */
  tool: ToolItem | null }
export interface LineItem extends Base {
  type: 'line';
  line: 'mode' | 'option' | 'title' | 'end' | 'error' | 'runtime' | 'client' | 'status';
  /** The event's body; the view makes the text. */
  body: any;
  /** For `end`: how long the run took, ms. */
  took?: number;
}
/** A place where a surface was first drawn; it is shown as it is now. */
export interface SurfaceItem extends Base { type: 'surface'; id: string; body: any }
export interface FoldedItem extends Base { type: 'folded'; kind: string; body: any }
export type Item = MessageItem | ToolItem | PlanItem | RequestItem | LineItem | SurfaceItem | FoldedItem;

/** A row of the list. */
export interface Row {
  key: string;
  item: Item;
  part: number;
}

export interface Mode { id: string; name: string; description: string }
export interface Option { id: string; name: string; category: string; value: string; choices: { value: string; name: string }[] }
export interface SlashCommand { name: string; description: string; hint: string }
export interface Usage { used: number; size: number; cost: string }

const str = (v: unknown): string => (typeof v === 'string' ? v : v === null || v === undefined ? '' : typeof v === 'object' ? JSON.stringify(v) : String(v));
const list = (v: unknown): any[] => (Array.isArray(v) ? v : []);
const object = (v: unknown): Record<string, any> => (v && typeof v === 'object' && !Array.isArray(v) ? (v as Record<string, any>) : {});

/** Whether a tool call of this status does not change any more. */
export const finished = (status: unknown) => ['completed', 'failed', 'cancelled', 'not_reported'].includes(String(status));

/** The tool call that an update claims to belong to. */
function parentOf(update: Record<string, any>): string | null {
  const id = update._meta?.claudeCode?.parentToolUseId;
  return typeof id === 'string' && id && id.length <= PARENT_MAX ? id : null;
}

/** The number of tool calls that an item is nested in. */
export function depthOf(item: Item): number {
  let depth = 0;
  for (let above = parentItem(item); above && depth < DEPTH_MAX; above = above.parent) depth++;
  return depth;
}

/** The tool call that an item belongs to. */
export function parentItem(item: Item): ToolItem | null {
  return item.type === 'tool' || item.type === 'user' || item.type === 'agent' || item.type === 'thought' ? item.parent : null;
}

/** The revision of a part of a message that others follow: it does not change any more. */
const SETTLED = -2;

/** Changes when a row must be drawn again. Of a message that grows this is only its last part. */
export function revisionOf({ item, part }: Row): number {
  return item.type === 'agent' && part < item.parts.length - 1 ? SETTLED : item.rev;
}

/** The fold of a session's events. */
export class Conversation {
  readonly items: Item[] = [];
  readonly rows: Row[] = [];
  /** Whether rows were inserted before the end, so that indices in `rows` changed; the reader clears it. */
  shifted = false;
  /** Items that changed since the reader last cleared this. */
  readonly dirty = new Set<Item>();
  /** Incremented when something beside the items changed (plan, usage, modes, commands, options). */
  facts = 0;

  plan: any[] = [];
  usage: Usage | null = null;
  modes: Mode[] = [];
  mode = '';
  options: Option[] = [];
  commands: SlashCommand[] = [];
  title = '';
  /** Whether retention removed the session's beginning. */
  trimmed = false;
  /** Whether older history is not loaded. */
  older = false;
  /** The number of events applied. */
  count = 0;
  /** The position of the last event applied. */
  head = 0;
  /** The cursor of the last event applied. */
  cursor = '';
  /** The last finished message of the agent, for screen readers. */
  lastMessage: MessageItem | null = null;

  private current: MessageItem | null = null;
  /** The latest messages with an agent's message id. */
  private readonly named: MessageItem[] = [];
  private readonly tools = new Map<string, ToolItem>();
  private readonly requests = new Map<string, RequestItem>();
  private readonly runs = new Map<string, number>();
  private readonly plans = new Map<string, PlanItem>();
  private readonly surfaces = new Map<string, SurfaceItem>();
  private readonly by = new Map<string, Resolver>();
  private readonly optionValues = new Map<string, string>();

  /** The kinds of the events applied. */
  private readonly received = new Set<string>();

  /** Applies the `latest` of a snapshot for kinds of which no event was applied. */
  takeLatest(latest: Record<string, any>): void {
    for (const [kind, body] of Object.entries(object(latest))) if (!this.received.has(kind)) this.latest(kind, body);
  }

  /** Applies the next event, or several merged ones. */
  apply(envelope: Envelope): void {
    const last = parseCursor(envelope.cursor)?.pos ?? this.head + 1;
    // Events that come twice after a reload are ignored. A long text comes in parts with the same cursor.
    if (last < this.head || (last === this.head && !envelope.cut?.before)) return;
    const pos = envelope.cursor_first ? parseCursor(envelope.cursor_first)?.pos ?? last : last;
    this.head = last;
    this.cursor = envelope.cursor;
    this.count += envelope.merged ?? 1;
    this.received.add(str(envelope.kind));
    const e = object(envelope.event);
    const run = str(envelope.run_id);
    const when = str(envelope.at);
    const kind = str(envelope.kind);
    // Kinds of a newer gateway are shown as raw events.
    if (!isKind(kind)) { this.folded(kind, run, pos, when, envelope.event); return; }
    switch (kind) {
      case 'user_message_chunk': this.chunk('user', run, pos, when, e); break;
      case 'agent_message_chunk': this.chunk('agent', run, pos, when, e); break;
      case 'agent_thought_chunk': this.chunk('thought', run, pos, when, e); break;
      case 'tool_call': case 'tool_call_update': this.toolEvent(run, pos, when, e); break;
      case 'plan': this.latest('plan', e); this.planItem(run, pos, when); break;
      case 'available_commands_update': case 'usage_update': this.latest(kind, e); break;
      case 'session_info_update': {
        const title = this.title;
        this.latest(kind, e);
        if (title && this.title !== title) this.line('title', run, pos, when, e);
        break;
      }
      case 'current_mode_update': {
        const before = this.mode;
        this.latest(kind, e);
        if (before && this.mode !== before) this.line('mode', run, pos, when, { name: this.modeName(this.mode) });
        break;
      }
      case 'config_option_update': {
        const before = new Map(this.optionValues);
        this.latest(kind, e);
        for (const option of this.options) {
          const was = before.get(option.id);
          if (was !== undefined && was !== option.value) {
            const name = option.choices.find((c) => c.value === option.value)?.name ?? option.value;
            this.line('option', run, pos, when, { option: option.name, name });
          }
        }
        break;
      }
      case 'run_started': {
        this.finish();
        this.runs.set(run, Date.parse(when));
        if (e.by) this.by.set(run, e.by);
        break;
      }
      case 'run_status': if (e.cancelling) this.line('status', run, pos, when, e); break;
      case 'run_ended': {
        const open = this.current;
        this.finish();
        if (e.status !== 'completed' && open && open.type === 'agent' && open.run === run) { open.partial = true; this.touch(open); }
        const began = this.runs.get(run);
        this.runs.delete(run);
        const line = this.line('end', run, pos, when, e);
        if (began !== undefined && Date.parse(when) >= began) line.took = Date.parse(when) - began;
        break;
      }
      case 'request_opened': this.openRequest(e as unknown as Request, pos, when, run); break;
      case 'request_updated': this.changed(e as unknown as Request); break;
      case 'request_resolved': this.resolved(e, run, pos, when); break;
      case 'runtime_status': this.line('runtime', run, pos, when, e); break;
      case 'error': this.line('error', run, pos, when, e); break;
      case 'client_joined': case 'client_left': this.line('client', run, pos, when, { ...e, left: kind === 'client_left' }); break;
      case 'surface_updated': this.surface(e, pos, when, run); break;
      case 'hook': case 'client_served': case 'raw': this.folded(kind, run, pos, when, envelope.event); break;
      default: kind satisfies never;
    }
  }

  /** The name of a mode for people. */
  modeName(id: string): string {
    return this.modes.find((m) => m.id === id)?.name || id;
  }

  /** The row that shows the event at `pos`: the last one that began at or before it. */
  rowAt(pos: number): number {
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if ((this.rows[mid] as Row).item.key <= pos) low = mid + 1; else high = mid;
    }
    // The first row of that item.
    let at = low - 1;
    while (at > 0 && (this.rows[at - 1] as Row).item === (this.rows[at] as Row).item) at--;
    return Math.max(0, at);
  }

  /** The index here of a row of a shorter fold of the same history, and the fraction of the row at which it begins. */
  locate(row: Row): { n: number; into: number } {
    const n = this.rowAt(row.item.key);
    const item = this.rows[n]?.item;
    const own = item?.key === row.item.key;
    if (item?.type !== 'agent' || row.item.type !== 'agent') return { n: own ? n + row.part : n, into: 0 };
    if (own) return { n: n + row.part, into: 0 };
    // The message begins earlier here and is cut into other parts: counted from its end, the text is the same.
    const size = (part: Part) => (part.kind === 'text' ? part.segment.text.length : 1);
    let left = row.item.parts.slice(row.part).reduce((sum, part) => sum + size(part), 0);
    for (let part = item.parts.length - 1; part >= 0; part--) {
      const long = size(item.parts[part] as Part);
      if (left <= long) return { n: n + part, into: long ? 1 - left / long : 0 };
      left -= long;
    }
    return { n, into: 0 };
  }

  /** Marks a surface to be drawn again, although no event changed it. */
  redraw(surface: string): void {
    const item = this.surfaces.get(surface);
    if (item) this.touch(item);
  }

  /** The item of a request, if it is loaded. */
  request(id: string): RequestItem | undefined {
    return this.requests.get(id);
  }

  // --- the parts ---------------------------------------------------------------------------------------------------------

  private touch(item: Item): void {
    item.rev++;
    this.dirty.add(item);
  }

  /** Groups a changed call: consecutive calls that only read belong together. */
  private regroup(item: ToolItem): void {
    for (const other of regroup(item, this.items[item.place - 1], this.items[item.place + 1])) this.touch(other);
  }

  private push<T extends Item>(item: T, rows = 1): T {
    this.items.push(item);
    for (let part = 0; part < rows; part++) this.rows.push({ key: `${item.key}.${part}`, item, part });
    this.dirty.add(item);
    return item;
  }

  private line(line: LineItem['line'], run: string, key: number, at: string, body: any): LineItem {
    return this.push({ type: 'line', line, body, key, run, at, rev: 0 });
  }

  private folded(kind: string, run: string, key: number, at: string, body: any): void {
    this.push({ type: 'folded', kind, body, key, run, at, rev: 0 });
  }

  private message(type: MessageItem['type'], run: string, key: number, at: string, by: Resolver | null, id: string | null, named: string | null): MessageItem {
    const parent = (named !== null && this.tools.get(named)) || null;
    return this.push(
      { type, run, key, at, by, id, named, parent, rev: 0, text: '', parts: [], partial: false, segmenter: new Segmenter(), base: 0, settled: 0 },
      type === 'agent' ? 0 : 1,
    );
  }

  /** Ends the current message. */
  private finish(): void {
    const message = this.current;
    this.current = null;
    if (!message) return;
    message.partial = false;
    if (message.type === 'agent') this.lastMessage = message;
    this.touch(message);
  }

  private chunk(role: MessageItem['type'], run: string, pos: number, at: string, e: Record<string, any>): void {
    const id = typeof e.messageId === 'string' ? e.messageId : null;
    const parent = parentOf(e);
    let item = this.current;
    if (!item || item.type !== role || item.run !== run || item.named !== parent || (id !== null && item.id !== id)) {
      item = (id !== null && this.named.findLast((known) => known.type === role && known.id === id && known.named === parent)) || null;
      if (this.current && this.current !== item) this.finish();
      if (!item) {
        const by = e._meta?.plexus?.by ?? (role === 'user' ? this.by.get(run) : null) ?? null;
        item = this.message(role, run, pos, at, by, id, parent);
        if (id !== null && this.named.push(item) > NAMED_MAX) this.named.shift();
      }
      item.partial = role !== 'user';
      this.current = item;
    }
    const content = object(e.content);
    if (content.type === 'text' && typeof content.text === 'string') this.appendText(item, content.text);
    else if (e.content !== undefined) this.block(item, e.content);
    this.touch(item);
  }

  private appendText(item: MessageItem, text: string): void {
    item.text += text;
    const segmenter = item.segmenter;
    segmenter.push(text);
    const settled = segmenter.settled;
    for (let i = item.settled; i < settled.length; i++) item.parts[item.base + i] = { kind: 'text', segment: settled[i] as Segment };
    item.settled = settled.length;
    item.parts.length = item.base + settled.length;
    const open = segmenter.open();
    if (open) item.parts.push({ kind: 'text', segment: open });
    this.fit(item);
  }

  private block(item: MessageItem, block: any): void {
    item.parts.push({ kind: 'block', block });
    item.base = item.parts.length;
    item.settled = 0;
    item.segmenter = new Segmenter();
    item.text += item.text && !item.text.endsWith('\n') ? '\n' : '';
    this.fit(item);
  }

  /** Adjusts the rows of an agent's message to its parts. */
  private fit(item: MessageItem): void {
    if (item.type !== 'agent') return;
    const last = this.rows[this.rows.length - 1];
    const want = item.parts.length;
    if (this.items[this.items.length - 1] === item) {
      let have = last?.item === item ? last.part + 1 : 0;
      for (; have < want; have++) this.rows.push({ key: `${item.key}.${have}`, item, part: have });
      for (; have > want; have--) this.rows.pop();
      return;
    }
    // A message with an id that continues after other items: rare, so it may be slow.
    let from = this.rows.findIndex((row) => row.item === item);
    const order = this.items.indexOf(item);
    if (from < 0) {
      const next = this.items.slice(order + 1).find((other) => this.rows.some((row) => row.item === other));
      from = next ? this.rows.findIndex((row) => row.item === next) : this.rows.length;
    }
    let have = 0;
    while (this.rows[from + have]?.item === item) have++;
    if (have === want) return;
    const rows = Array.from({ length: want }, (_, part) => ({ key: `${item.key}.${part}`, item, part }));
    this.rows.splice(from, have, ...rows);
    this.shifted = true;
  }

  private toolEvent(run: string, pos: number, at: string, e: Record<string, any>): void {
    const { sessionUpdate: _kind, toolCallId, ...call } = e;
    const id = typeof toolCallId === 'string' ? toolCallId : '';
    if (!id) { this.folded('tool_call', run, pos, at, e); return; }
    this.finish();
    this.tool(id, run, pos, at, call);
  }

  private tool(id: string, run: string, pos: number, at: string, call: Record<string, any>): void {
    let item = this.tools.get(id);
    if (!item) {
      item = this.push({ type: 'tool', id, call: {}, output: '', outputCut: false, leftOut: 0, parent: null, decided: false, requests: [], place: this.items.length, reads: null, key: pos, run, at, rev: 0 });
      this.tools.set(id, item);
    }
    const named = parentOf(call);
    if (named !== null && !item.decided) {
      item.decided = true;
      // The parent began earlier, so that there is no circle.
      const parent = this.tools.get(named);
      if (parent && parent.key < item.key) item.parent = parent;
    }
    Object.assign(item.call, call);
    // The gateway closed the call because the agent did not: no failure.
    if (call._meta?.plexus?.synthesized === true) item.call.status = 'not_reported';
    const leftOut = call._meta?.plexus?.left_out;
    if (typeof leftOut === 'number') item.leftOut += leftOut;
    // Some agents send terminal output in pieces in `_meta`.
    const data = call._meta?.terminal_output?.data;
    if (typeof data === 'string') {
      item.output += data;
      if (item.output.length > OUTPUT_MAX) { item.output = item.output.slice(-OUTPUT_MAX); item.outputCut = true; }
    }
    this.touch(item);
    this.regroup(item);
  }

  private planItem(run: string, pos: number, at: string): void {
    const known = this.plans.get(run);
    if (known) { known.entries = this.plan; this.touch(known); return; }
    this.finish();
    this.plans.set(run, this.push({ type: 'plan', entries: this.plan, key: pos, run, at, rev: 0 }));
  }

  private openRequest(request: Request, pos: number, at: string, run: string): void {
    const id = str(request.request_id);
    if (this.requests.has(id)) return;
    // Keys must be unique, even if positions are equal.
    const last = this.items[this.items.length - 1]?.key ?? 0;
    const key = pos > last ? pos : last + 0.001;
    const tool = (request.tool_call_id && this.tools.get(request.tool_call_id)) || null;
    const item = this.push<RequestItem>({ type: 'request', id, request, outcome: request.receipt ?? null, tool, key, run, at, rev: 0 });
    this.requests.set(id, item);
    if (tool) { tool.requests.push(item); this.touch(tool); this.regroup(tool); }
  }

  /** Applies a change of an open request. The card reads the request from `plexus.requests`. */
  private changed(request: Request): void {
    const item = this.requests.get(str(request.request_id));
    if (!item || item.outcome || (request.revision ?? 0) < (item.request.revision ?? 0)) return;
    item.request = request;
    this.touch(item);
  }

  private resolved(e: Record<string, any>, run: string, pos: number, at: string): void {
    const item = this.requests.get(str(e.request_id));
    // The request was opened in the part that is not loaded.
    if (!item && this.older) return;
    if (!item) { this.folded('request_resolved', run, pos, at, e); return; }
    item.outcome = e;
    this.touch(item);
    if (item.tool) this.touch(item.tool);
  }

  private surface(body: any, pos: number, at: string, run: string): void {
    const id = body?.surface;
    if (typeof id !== 'string') { this.folded('surface_updated', run, pos, at, body); return; }
    const known = this.surfaces.get(id);
    // A change names what changed.
    if (known) { known.body = typeof body.title === 'string' || typeof known.body.title !== 'string' ? body : { ...body, title: known.body.title }; this.touch(known); return; }
    const last = this.items[this.items.length - 1]?.key ?? 0;
    this.surfaces.set(id, this.push({ type: 'surface', id, body, key: pos > last ? pos : last + 0.001, run, at, rev: 0 }));
  }

  private latest(kind: string, body: any): void {
    const e = object(body);
    this.facts++;
    switch (kind) {
      case 'plan': this.plan = list(e.entries); break;
      case 'usage_update': {
        const cost = object(e.cost);
        const amount = typeof cost.amount === 'number' && Number.isFinite(cost.amount) ? cost.amount : null;
        this.usage = { used: Number(e.used) || 0, size: Number(e.size) || 0, cost: amount === null ? '' : `${amount.toFixed(amount < 1 ? 3 : 2)} ${str(cost.currency)}`.trim() };
        break;
      }
      case 'available_commands_update':
        this.commands = list(e.availableCommands).map((c) => ({ name: str(c?.name), description: str(c?.description), hint: str(c?.input?.hint) })).filter((c) => c.name);
        break;
      case 'current_mode_update': {
        const offered = list(e._meta?.plexus?.modes?.availableModes ?? e._meta?.modes?.availableModes);
        if (offered.length) this.modes = offered.map((m) => ({ id: str(m?.id), name: str(m?.name) || str(m?.id), description: str(m?.description) }));
        this.mode = str(e.currentModeId);
        break;
      }
      case 'config_option_update':
        for (const o of list(e.configOptions)) {
          const choices = list(o?.options).flatMap((c) => (Array.isArray(c?.options) ? c.options : [c])).map((c: any) => ({ value: str(c?.value), name: str(c?.name) || str(c?.value) }));
          const option: Option = { id: str(o?.id), name: str(o?.name) || str(o?.id), category: str(o?.category), value: str(o?.currentValue), choices };
          const n = this.options.findIndex((known) => known.id === option.id);
          if (n >= 0) this.options[n] = option; else this.options.push(option);
          this.optionValues.set(option.id, option.value);
        }
        break;
      case 'session_info_update': if (typeof e.title === 'string') this.title = e.title; break;
      default: break;
    }
  }
}

/** A conversation as Markdown, for the clipboard. */
export function itemMarkdown(item: Item): string {
  switch (item.type) {
    case 'user': return item.text.split('\n').map((line) => `> ${line}`).join('\n');
    case 'agent': return item.text;
    case 'thought': return `<details><summary>Thought</summary>\n\n${item.text}\n\n</details>`;
    case 'tool': {
      const text = list(item.call.content).map((c) => (c?.type === 'content' && c.content?.type === 'text' ? str(c.content.text) : c?.type === 'diff' ? `--- ${str(c.path)}\n${str(c.newText)}` : '')).filter(Boolean).join('\n') || item.output;
      const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((m) => m[0].length + 1)));
      return `**${str(item.call.title) || item.id}** (${str(item.call.status) || 'pending'})${text ? `\n\n${fence}\n${text}\n${fence}` : ''}`;
    }
    case 'plan': return item.entries.map((entry) => `- [${entry?.status === 'completed' ? 'x' : ' '}] ${str(entry?.content)}`).join('\n');
    case 'request': case 'line': case 'surface': case 'folded': return '';
  }
}
