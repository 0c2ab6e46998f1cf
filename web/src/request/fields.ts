// The fields of a card: the questions of a form, a choice, a text, an edit. What was typed is kept in a `Draft`.

import { html, nothing, type TemplateResult } from 'lit';
import { oneLine, readable, visible } from '../lib/text.js';
import { text } from '../text/en.js';
import { changesOf } from './change.js';
import { answersOf, choose, chooseOwn, nameOf, NOTHING, questionsOf, wrongWith, type DraftAnswer } from './questions.js';
import type { Answer, Question, Request } from './wire.js';

const t = text.request;

/** The values that were typed and picked on a card, and not sent yet. */
export class Draft {
  picked = new Set<string>();
  /** The answers by question id. */
  answers = new Map<string, DraftAnswer>();
  value: string | null = null;
  showSecret = false;
  reason = '';
  edit: string | null = null;
  /** The word typed instead of a hold. */
  word = '';

  /** Whether the editable text was changed. */
  edits({ editable }: Request): boolean {
    return editable != null && this.edit !== null && this.edit !== editable.value;
  }

  pick(request: Request, id: string, on: boolean): void {
    if (!request.multi) this.picked.clear();
    if (on) this.picked.add(id);
    else this.picked.delete(id);
  }

  /** The typed or picked part of an answer, or a message about the missing part and its question. */
  complete(request: Request): Answer | { words: string; question?: Question } {
    const questions = questionsOf(request);
    if (questions.length) {
      const found = answersOf(questions, this.answers);
      if ('answers' in found) return { answers: found.answers };
      return { question: found.question, words: questions.length > 1 ? `${nameOf(found.question)}: ${found.words}` : found.words };
    }
    if (request.type === 'pick') {
      if (this.picked.size === 0) return { words: t.nothingChosen };
      return { ids: (request.items ?? []).map((item) => item.id).filter((id) => this.picked.has(id)) };
    }
    const value = this.value ?? request.default_value ?? '';
    return value === '' ? { words: t.nothingTyped } : { value };
  }
}

/** The card around the fields. */
export interface FieldHost {
  draft: Draft;
  /** A field was changed. */
  changed: () => void;
  /** A key in a one-line field. */
  keydown: (event: KeyboardEvent) => void;
}

/** The fields that a request takes before its answer; nothing if it takes none. */
export function fieldsOf(request: Request, host: FieldHost): TemplateResult | typeof nothing {
  const questions = questionsOf(request);
  if (questions.length) return html`<div class="form" data-count=${questions.length}>${questions.map((question, n) => questionOf(question, n, host))}<span class="form-end"></span></div>`;
  if (!request.observe_only && !request.options.length) {
    if (request.type === 'pick') return pickOf(request, host);
    if (request.type === 'prompt') return promptOf(request, host);
  }
  return !request.observe_only && host.draft.edit !== null && request.editable ? editorOf(request.editable, host) : nothing;
}

/** One question: its options as checkboxes or radio buttons, and a text field if free text is allowed. */
function questionOf(question: Question, n: number, host: FieldHost): TemplateResult {
  const { answers } = host.draft;
  const draft = answers.get(question.id) ?? NOTHING;
  const update = (next: DraftAnswer) => { answers.set(question.id, next); host.changed(); };
  const kind = question.multiple ? 'checkbox' : 'radio';
  const name = `question-${n}`;
  const typed = (event: Event) => update({ ...draft, words: (event.target as HTMLInputElement).value, own: true, chosen: question.multiple ? draft.chosen : new Set() });
  const wrong = draft === NOTHING ? '' : wrongWith(question, draft);
  const header = oneLine(question.header);
  const hints = [header && html`<bdi>${header}</bdi>`, question.multiple && question.options.length ? t.chooseAny : '', question.optional ? t.questions.optional : ''].filter(Boolean);
  const field = html`<input
    class="value own" type="text" autocomplete="off" spellcheck="false" inputmode=${question.fits?.number === 'integer' ? 'numeric' : question.fits?.number ? 'decimal' : 'text'}
    aria-label=${t.questions.ownFor(nameOf(question))} aria-describedby=${`${name}-wrong`} .value=${draft.words} @input=${typed} @keydown=${host.keydown} />`;
  const option = (words: TemplateResult | string, checked: boolean, change: (on: boolean) => void) => html`<label class="pick">
    <input type=${kind} name=${name} .checked=${checked} @change=${(event: Event) => change((event.target as HTMLInputElement).checked)} @keydown=${host.keydown} /><span>${words}</span>
  </label>`;
  return html`<fieldset class="question" data-question=${question.id} role=${question.multiple ? 'group' : 'radiogroup'} aria-describedby=${`${name}-wrong`}>
    <legend><bdi class="asked">${readable(question.text)}</bdi>${hints.length ? html` <small>${hints.map((hint, at) => html`${at ? ' · ' : nothing}${hint}`)}</small>` : nothing}</legend>
    ${question.options.length
      ? html`<div class="opts">
          ${question.options.map((one) => option(html`<bdi>${oneLine(one.label || one.id)}</bdi>${one.description ? html`<small><bdi>${oneLine(one.description)}</bdi></small>` : nothing}`, draft.chosen.has(one.id), (on) => update(choose(question, draft, one.id, on))))}
          ${question.free_text ? option(t.questions.other, draft.own, (on) => update(chooseOwn(question, draft, on))) : nothing}
        </div>`
      : nothing}
    ${question.free_text && (draft.own || !question.options.length) ? field : nothing}
    <p class="wrong" id=${`${name}-wrong`} role="status">${wrong}</p>
  </fieldset>`;
}

function pickOf(request: Request, { draft, changed, keydown }: FieldHost): TemplateResult {
  return html`<fieldset>
    <legend>${request.multi ? t.chooseAny : t.chooseOne}</legend>
    <div class="opts">
      ${(request.items ?? []).map(
        (item, n) => html`<label class="pick">
          <input type=${request.multi ? 'checkbox' : 'radio'} name="pick" .checked=${draft.picked.has(item.id)}
            @change=${(event: Event) => { draft.pick(request, item.id, (event.target as HTMLInputElement).checked); changed(); }} @keydown=${keydown} />
          <span><bdi>${oneLine(item.label || item.id)}</bdi>${item.detail ? html`<small><bdi>${oneLine(item.detail)}</bdi></small>` : nothing}</span>
          ${n < 9 ? html`<kbd aria-hidden="true">${n + 1}</kbd>` : nothing}
        </label>`,
      )}
    </div>
  </fieldset>`;
}

function promptOf(request: Request, { draft, changed, keydown }: FieldHost): TemplateResult {
  const value = draft.value ?? request.default_value ?? '';
  const input = (event: Event) => { draft.value = (event.target as HTMLInputElement).value; changed(); };
  return html`<div class="field">
    <label for="value">${request.secret ? t.secretField : t.answerField}</label>
    <div class="row">
      ${request.multiline && !request.secret
        ? html`<textarea id="value" class="value" rows="4" autocomplete="off" .value=${value} @input=${input}></textarea>`
        : html`<input id="value" class="value" type=${request.secret && !draft.showSecret ? 'password' : 'text'} autocomplete=${request.secret ? 'one-time-code' : 'off'} autocapitalize="off" spellcheck="false"
            .value=${value} @input=${input} @keydown=${keydown} />`}
      ${request.secret
        ? html`<button type="button" class="tool" aria-pressed=${draft.showSecret} @click=${() => { draft.showSecret = !draft.showSecret; changed(); }}>${draft.showSecret ? t.hideSecret : t.showSecret}</button>`
        : nothing}
    </div>
  </div>`;
}

function editorOf(editable: { label: string; value: string }, { draft, changed, keydown }: FieldHost): TemplateResult {
  const edited = draft.edit ?? editable.value;
  const leave = (event: KeyboardEvent) => { if (event.key === 'Escape') keydown(event); };
  return html`<section class="field">
    <label for="edit">${t.editing}: <bdi>${oneLine(editable.label)}</bdi></label>
    <textarea id="edit" class="edit code" rows=${Math.min(10, edited.split('\n').length + 1)} autocomplete="off" autocapitalize="off" spellcheck="false" .value=${edited}
      @input=${(event: Event) => { draft.edit = (event.target as HTMLTextAreaElement).value; changed(); }} @keydown=${leave}></textarea>
    <h2>${t.changes}</h2>
    ${edited === editable.value
      ? html`<p class="soft">${t.noChanges}</p>`
      : html`<div class="changes" tabindex="0" role="group" aria-label=${t.changes}>
          ${changesOf(editable.value, edited).map((one) => html`<span class=${one.kind}>${{ same: '  ', add: '+ ', del: '- ' }[one.kind]}${visible(one.text)}</span>`)}
        </div>`}
  </section>`;
}
