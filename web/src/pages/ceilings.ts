// The ceilings of the usage of agents, as administrators see and set them. Part of the page of usage.
import { css, html, nothing } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { oneLine } from '../lib/text.js';
import { plexus, why } from '../plexus.js';
import { text } from '../text/en.js';
import { ceilingWords as t } from '../text/usage.js';
import { pageStyles } from '../ui/parts.js';
import { announce } from '../ui/say.js';
import type { Ceiling, CeilingsView } from '../wire/types.js';
import { ceilingText, readCeiling } from './ceiling-text.js';

const PATH = '/v1/usage/ceilings';
type Of = 'day' | 'session';

@customElement('plexus-ceilings')
export class PlexusCeilings extends PlexusElement {
  @state() private all: CeilingsView | null = null;
  @state() private problem = '';
  @state() private wrong: Partial<Record<Of, string>> = {};
  @state() private busy = false;

  static override styles = [...[PlexusElement.styles].flat(), pageStyles, css`
    h2 { font-size: var(--t-m); margin-bottom: var(--s2); }
    p { color: var(--fg-soft); max-width: 70ch; margin-bottom: var(--s3); }
    form { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr)); gap: var(--s3); border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); padding: 16px; }
    .field { display: flex; flex-direction: column; gap: 4px; min-width: 0; font-weight: 550; }
    .field input { width: 100%; min-width: 0; }
    .hint { font-size: var(--t-s); font-weight: 450; color: var(--fg-mute); }
    .wrong { font-size: var(--t-s); font-weight: 450; color: var(--danger); }
    .do { grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: var(--s2); justify-content: flex-end; }
    @media (pointer: coarse) { button, input { min-height: 44px; } }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    void this.#read();
  }

  override render() {
    const all = this.all;
    return html`<section aria-labelledby="ceilings"><h2 id="ceilings">${t.title}</h2><p>${t.about}</p>
      ${this.problem ? html`<p class="note danger" role="alert">${this.problem} ${all ? nothing : html`<button class="compact" @click=${() => void this.#read()}>${text.common.retry}</button>`}</p>` : nothing}
      ${all ? html`<form aria-busy=${this.busy} @submit=${(event: Event) => void this.#save(event)}>${this.#field('day', all)}${this.#field('session', all)}
        <div class="do">${all.set.day || all.set.session ? html`<button type="button" class="quiet" ?disabled=${this.busy} @click=${() => void this.#put({})}>${t.configured}</button>` : nothing}<button class="primary" ?disabled=${this.busy}>${t.save}</button></div></form>` : nothing}</section>`;
  }

  #field(of: Of, all: CeilingsView) {
    const wrong = this.wrong[of];
    const source = all.set[of] ? t.set : ceilingText(all.configured[of]) ? t.fromFile : '';
    const today = ceilingText({ costs: all.today.costs, tokens: (all.today.input_tokens ?? 0) + (all.today.output_tokens ?? 0) });
    const hint = [source, of === 'day' && ceilingText(all.day) ? t.today(oneLine(today)) : ''].filter(Boolean).join(' ');
    return html`<label class="field">${t.of[of]}<input name=${of} .value=${ceilingText(all[of])} placeholder=${t.placeholder} autocomplete="off" spellcheck="false" autocapitalize="off" aria-invalid=${wrong ? 'true' : 'false'} aria-describedby=${`${of}-hint`}>
      <span id=${`${of}-hint`}>${wrong ? html`<span class="wrong">${wrong}</span>` : html`<span class="hint">${hint || t.none}</span>`}</span></label>`;
  }

  async #read(): Promise<void> {
    this.problem = '';
    try {
      this.all = await plexus.http<CeilingsView>('GET', PATH);
    } catch (error) {
      this.problem = t.failed(why(error));
    }
  }

  async #save(event: Event): Promise<void> {
    event.preventDefault();
    const all = this.all;
    if (!all || this.busy) return;
    const form = new FormData(event.target as HTMLFormElement);
    const set: Partial<Record<Of, Ceiling>> = {};
    this.wrong = {};
    for (const of of ['day', 'session'] as const) {
      const words = String(form.get(of) ?? '').trim();
      // An unchanged ceiling stays as it is, even if it comes from the configuration.
      if (words === ceilingText(all[of])) { if (all.set[of]) set[of] = all.set[of]; continue; }
      const read = readCeiling(words);
      if (read) set[of] = read; else this.wrong = { ...this.wrong, [of]: t.wrong };
    }
    if (Object.keys(this.wrong).length) {
      await this.updateComplete;
      this.renderRoot.querySelector<HTMLInputElement>('[aria-invalid="true"]')?.focus();
      return;
    }
    await this.#put(set);
  }

  async #put(set: Partial<Record<Of, Ceiling>>): Promise<void> {
    this.busy = true;
    this.problem = '';
    try {
      this.all = await plexus.http<CeilingsView>('PUT', PATH, { ...set, sessions: this.all?.set.sessions ?? {} });
      announce(t.saved);
    } catch (error) {
      this.problem = t.notSaved(why(error));
    } finally {
      this.busy = false;
    }
  }
}

declare global { interface HTMLElementTagNameMap { 'plexus-ceilings': PlexusCeilings } }
