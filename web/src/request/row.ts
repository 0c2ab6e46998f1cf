// The rows of the list, as templates: a row is no element of its own, has no timer and watches nothing, so that a thousand cost nothing.

import { html, nothing, type TemplateResult } from 'lit';
import { live } from 'lit/directives/live.js';
import { projectOf } from '../lib/project.js';
import { oneLine } from '../lib/text.js';
import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import { face } from '../ui/face.js';
import { icon } from '../ui/icons.js';
import { span } from './age.js';
import { asksOnly, lineOf, wordsOf, type AskedLine } from './asked.js';
import { isLeft } from './left.js';
import type { Entry, Grouping } from './order.js';
import { outcomeOf } from './outcome.js';
import { wasSeen } from './seen.js';
import { RISK_ICON, riskOf, type Request } from './wire.js';

const t = text.request.rows;

/** The properties of the list that a row needs. */
export interface RowHost {
  grouping: Grouping;
  active: string;
  opened: string;
  chosen: ReadonlySet<string>;
  /** The number of rows, drawn or not. */
  count: number;
  request(id: string): Request | undefined;
  /** A press on a row. */
  pressed(entry: Entry, event: MouseEvent): void;
  /** A press on the box of a row. */
  ticked(entry: Entry, event: MouseEvent): void;
}

function asked(line: AskedLine): TemplateResult {
  const code = line.verb === '' && !line.quoted;
  return html`${line.verb ? html`<span class="verb">${line.verb}</span>` : nothing}<span class="asked ${code ? 'code' : ''}">${line.quoted ? '“' : nothing}<bdi class="from">${line.head}</bdi>${line.tail ? html`<bdi class="to">${line.tail}</bdi>` : nothing}${line.quoted ? '”' : nothing}</span>${line.more ? html`<span class="more">${line.more}</span>` : nothing}`;
}

/** The project; the agent's mark stands before the row. */
function where(request: Request): TemplateResult {
  if (isLeft(request.request_id)) return html`<span class="where"><span>${text.request.leftRow}</span></span>`;
  const session = plexus.sessions.value.get(request.session_id);
  return html`<span class="where">${session?.cwd ? html`<bdi>${projectOf(session).name}</bdi>` : nothing}</span>`;
}

const titleOf = (request: Request): string => oneLine(plexus.sessions.value.get(request.session_id)?.title) || text.request.untitled;

/** The facts of a request that the header of its group does not show. */
function second(request: Request, bare: boolean): TemplateResult {
  const from = bare ? nothing : where(request);
  const now = plexus.now.value;
  if (request.state !== 'open') {
    const outcome = request.receipt ? outcomeOf(request.receipt, request, plexus.me.value?.device_id) : null;
    return html`<span class="outcome" data-sense=${outcome?.sense ?? 'none'}>${outcome?.text ?? text.request.gone}</span>${from}`;
  }
  const risk = riskOf(request);
  const left = request.expires_at ? Date.parse(request.expires_at) - now : NaN;
  const opened = Date.parse(request.opened_at);
  const plain = asksOnly(request) && risk !== 'danger';
  return html`${plain ? nothing : html`<span class="risk" data-risk=${risk}>${icon(RISK_ICON[risk], 12)}${text.request.risks[risk]}</span>`}
    <span class="why">${plain ? nothing : (request.risk_reasons ?? []).map(oneLine).join('; ')}</span>${from}
    <span class="age">${Number.isNaN(left) ? (Number.isNaN(opened) ? nothing : span(now - opened)) : left > 0 ? t.left(span(left)) : text.request.expiring}</span>`;
}

function requestRow(entry: Entry & { kind: 'request' }, n: number, host: RowHost): TemplateResult {
  const request = host.request(entry.id);
  if (!request) return html``;
  const open = request.state === 'open';
  const same = entry.group !== '' && host.grouping === 'command';
  const chosen = host.chosen.has(entry.id);
  return html`<div
    role="row"
    class="row ${entry.group ? 'in' : ''}"
    data-n=${n}
    data-key=${entry.key}
    data-request=${entry.id}
    data-state=${open ? 'open' : 'closed'}
    tabindex=${host.active === entry.key ? 0 : -1}
    aria-level=${entry.group ? 2 : 1}
    aria-posinset=${entry.nth}
    aria-setsize=${entry.of}
    aria-rowindex=${n + 1}
    aria-selected=${chosen ? 'true' : 'false'}
    aria-current=${host.opened === entry.id ? 'true' : nothing}
    ?data-unread=${open && !wasSeen(request)}
    @click=${(event: MouseEvent) => host.pressed(entry, event)}
  >
    <span role="gridcell" class="tick" @click=${(event: MouseEvent) => host.ticked(entry, event)}
      >${open ? html`<input type="checkbox" tabindex="-1" aria-label=${t.choose(wordsOf(request))} .checked=${live(chosen)} />` : nothing}</span>
    <div role="gridcell" class="cell">${face(request.runtime_id)}<div class="words">
      <div class="one">${same ? html`<span class="asked"><bdi class="from">${titleOf(request)}</bdi></span>` : asked(lineOf(request))}</div>
      <div class="two">${second(request, entry.group !== '' && host.grouping === 'session')}</div>
    </div></div>
  </div>`;
}

/** The highest risk in a folded group. */
function risk(ids: readonly string[], host: RowHost): TemplateResult | typeof nothing {
  const risks = ids.flatMap((id) => { const request = host.request(id); return request?.state === 'open' ? [riskOf(request)] : []; });
  const most = (['danger', 'elevated', 'low'] as const).find((one) => risks.includes(one));
  return most ? html`<span class="risk" data-risk=${most}>${icon(RISK_ICON[most], 12)}${text.request.risks[most]}</span>` : nothing;
}

function groupRow(entry: Entry & { kind: 'group' }, n: number, host: RowHost): TemplateResult {
  const open = entry.ids.filter((id) => host.request(id)?.state === 'open');
  const first = host.request(entry.ids[0] ?? '');
  const chosen = open.filter((id) => host.chosen.has(id)).length;
  const name = !first ? '' : host.grouping === 'session' ? titleOf(first) : wordsOf(first);
  return html`<div
    role="row"
    class="row head"
    data-n=${n}
    data-key=${entry.key}
    data-group
    tabindex=${host.active === entry.key ? 0 : -1}
    aria-level="1"
    aria-posinset=${entry.nth}
    aria-setsize=${entry.of}
    aria-rowindex=${n + 1}
    aria-expanded=${entry.folded ? 'false' : 'true'}
    aria-selected=${open.length > 0 && chosen === open.length ? 'true' : 'false'}
    @click=${(event: MouseEvent) => host.pressed(entry, event)}
  >
    <span role="gridcell" class="tick" @click=${(event: MouseEvent) => host.ticked(entry, event)}
      >${open.length
        ? html`<input type="checkbox" tabindex="-1" aria-label=${t.chooseGroup(open.length, name)} .checked=${live(chosen === open.length)} .indeterminate=${live(chosen > 0 && chosen < open.length)} />`
        : nothing}</span>
    <div role="gridcell" class="words">
      <span class="fold" aria-hidden="true">${icon('forward', 12)}</span>
      <div class="one">${first ? (host.grouping === 'session' ? html`<span class="asked"><bdi class="from">${name}</bdi></span>` : asked(lineOf(first))) : nothing}</div>
      ${entry.folded ? risk(entry.ids, host) : nothing}
      <span class="count">${t.inGroup(open.length, entry.ids.length)}</span>
    </div>
  </div>`;
}

/** The template of a row. */
export const rowOf = (entry: Entry, n: number, host: RowHost): TemplateResult => (entry.kind === 'group' ? groupRow(entry, n, host) : requestRow(entry, n, host));
