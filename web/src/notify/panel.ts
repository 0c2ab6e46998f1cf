// `<plexus-notifications>`: the settings of push notifications and of the sound on this device.

import { css, html, nothing, type TemplateResult } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { plexus } from '../plexus.js';
import { text } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { change, refreshPush, push, subscribe, test, unsubscribe, type Settings } from './push.js';
import { play, setSound, sound } from './sound.js';

const t = text.notify;
/** Minutes without progress that can be chosen; 0: never. */
const SILENCES = [0, 5, 10, 20, 30, 60, 120];
const QUIET = { from: '22:00', to: '07:00' };
/** The browser's time zone name, if known. */
const zone = (): { zone?: string } => {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name?.includes('/') ? { zone: name } : {};
};

export class PlexusNotifications extends PlexusElement {
  static override properties = { busy: { state: true }, say: { state: true }, bad: { state: true } };
  declare private busy: boolean;
  declare private say: string;
  declare private bad: boolean;

  constructor() {
    super();
    this.busy = false;
    this.say = '';
    this.bad = false;
  }

  static override styles = [
    ...[PlexusElement.styles].flat(),
    css`
      :host { display: block; min-width: 0; }
      .panel { padding: 16px; display: grid; gap: 14px; }
      .head { display: flex; gap: 10px; align-items: flex-start; }
      .head svg { flex: none; margin-block-start: 2px; color: var(--accent); }
      h2 { font-size: var(--t-l); }
      p { color: var(--fg-soft); max-inline-size: 68ch; }
      .state { display: flex; flex-wrap: wrap; gap: 10px 14px; align-items: center; justify-content: space-between; }
      .state p { flex: 1 1 16rem; color: var(--fg); }
      button { min-block-size: 40px; }
      @media (pointer: coarse) { button { min-block-size: 44px; } }
      fieldset { display: grid; gap: 2px; min-inline-size: 0; }
      legend { padding: 0; font-weight: 600; margin-block-end: 4px; }
      label.switch { display: flex; align-items: center; gap: 12px; min-block-size: 44px; cursor: pointer; }
      label.switch span { flex: 1; min-inline-size: 0; }
      label.switch small { display: block; color: var(--fg-mute); font-size: var(--t-s); }
      label.switch input {
        appearance: none; flex: none; inline-size: 40px; block-size: 24px; margin: 0; border-radius: 12px; background: var(--line-strong); position: relative; cursor: pointer; transition: background-color var(--quick);
      }
      label.switch select { flex: none; inline-size: auto; max-inline-size: 50%; min-block-size: 44px; }
      label.switch input::after { content: ''; position: absolute; inset-block-start: 3px; inset-inline-start: 3px; inline-size: 18px; block-size: 18px; border-radius: 50%; background: #fff; transition: transform var(--quick); box-shadow: var(--shadow-1); }
      label.switch input:checked { background: var(--accent-solid); }
      label.switch input:checked::after { transform: translateX(16px); }
      label.switch input:disabled { opacity: 0.5; }
      @media (forced-colors: active) { label.switch input { appearance: auto; inline-size: 20px; } }
      .times { display: flex; flex-wrap: wrap; gap: 8px 16px; padding-block: 4px; }
      .times label { display: flex; align-items: center; gap: 8px; }
      .times input { inline-size: 8.5rem; min-block-size: 44px; }
      .row { display: flex; flex-wrap: wrap; gap: 8px; }
      .say { min-block-size: 1.4em; }
      .say[data-bad] { color: var(--danger); }
      hr { border: 0; border-block-start: 1px solid var(--line); inline-size: 100%; margin: 0; }
    `,
  ];

  override connectedCallback(): void {
    super.connectedCallback();
    void refreshPush();
    document.addEventListener('visibilitychange', this.#again);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    document.removeEventListener('visibilitychange', this.#again);
  }

  /** The browser's settings may have changed meanwhile. */
  #again = (): void => {
    if (!document.hidden && !this.busy) void refreshPush();
  };

  async #do(work: () => Promise<string>, done = ''): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    this.bad = false;
    this.say = t.working;
    const trouble = await work().catch((error: unknown) => t.failed(error instanceof Error ? error.message : String(error)));
    this.busy = false;
    this.bad = trouble !== '';
    this.say = trouble || done;
  }

  override render() {
    const { is, words, settings } = push.value;
    return html`<section class="panel" aria-labelledby="title">
      <div class="head">
        ${icon('bell', 20)}
        <div>
          <h2 id="title">${t.title}</h2>
          <p>${t.about}</p>
        </div>
      </div>
      ${this.#state(is, words)} ${is === 'on' ? this.#settings(settings) : nothing}
      <p class="say" role="status" ?data-bad=${this.bad}>${this.say}</p>
      <hr />
      <fieldset>
        <legend>${t.screen}</legend>
        ${this.#switch('sound', t.sound, t.soundHint, sound.value, (on) => { setSound(on); if (on) play(); })}
      </fieldset>
    </section>`;
  }

  #state(is: string, words: string): TemplateResult {
    switch (is) {
      case 'on':
        return html`<div class="state">
          <p>${icon('check')} ${t.isOn} ${plexus.me.value?.lock_screen ? t.lockOn : t.lockOff}</p>
          <button type="button" data-do="off" aria-disabled=${this.busy} @click=${() => this.#do(unsubscribe)}>${t.off}</button>
        </div>`;
      case 'off':
        return html`<div class="state">
          <p>${words || t.isOff}</p>
          <button type="button" class="primary" data-do="on" aria-disabled=${this.busy} @click=${() => this.#do(subscribe)}>${t.on}</button>
        </div>`;
      case 'blocked':
        return html`<p class="note warn" data-is="blocked">${words}</p>`;
      case 'unable':
        return html`<p class="note" data-is="unable">${words}</p>`;
      default:
        return html`<p>${t.working}</p>`;
    }
  }

  #switch(name: string, label: string, hint: string, on: boolean, set: (on: boolean) => void): TemplateResult {
    return html`<label class="switch">
      <span>${label}${hint ? html`<small>${hint}</small>` : nothing}</span>
      <input type="checkbox" role="switch" name=${name} .checked=${on} @change=${(event: Event) => set((event.target as HTMLInputElement).checked)} />
    </label>`;
  }

  #silence(now: number, set: (minutes: number) => void): TemplateResult {
    const choices = [...new Set([...SILENCES, now])].sort((a, b) => a - b);
    return html`<label class="switch">
      <span>${t.silence}<small>${t.silenceHint}</small></span>
      <select name="silence" @change=${(event: Event) => set(Number((event.target as HTMLSelectElement).value))}>${choices.map((one) => html`<option value=${one} ?selected=${one === now}>${t.silences(one)}</option>`)}</select>
    </label>`;
  }

  #settings(settings: Settings): TemplateResult {
    const quiet = settings.quiet ?? null;
    const save = (one: Settings) => void this.#do(() => change(one), t.saved);
    const times = (one: Partial<{ from: string; to: string }>) =>
      save({ quiet: { from: quiet?.from ?? QUIET.from, to: quiet?.to ?? QUIET.to, ...one, offset_minutes: -new Date().getTimezoneOffset(), ...zone() } });
    const time = (name: 'from' | 'to', label: string) =>
      html`<label>${label}<input type="time" name=${name} .value=${quiet?.[name] ?? QUIET[name]} @change=${(event: Event) => { const { value } = event.target as HTMLInputElement; if (value) times({ [name]: value }); }} /></label>`;
    return html`<fieldset>
        <legend>${t.kinds}</legend>
        ${this.#switch('requests', t.requests, t.requestsHint, settings.requests ?? true, (requests) => save({ requests }))}
        ${this.#switch('ends', t.ends, '', settings.ends ?? true, (ends) => save({ ends }))}
        ${this.#switch('failures', t.failures, '', settings.failures ?? true, (failures) => save({ failures }))}
        ${this.#silence(settings.no_progress_minutes ?? 10, (no_progress_minutes) => save({ no_progress_minutes }))}
      </fieldset>
      <fieldset>
        ${this.#switch('quiet', t.quiet, t.quietHint, quiet !== null, (on) => (on ? times({}) : save({ quiet: null })))}
        ${quiet ? html`<div class="times">${time('from', t.from)}${time('to', t.to)}</div>` : nothing}
      </fieldset>
      <div class="row"><button type="button" data-do="test" aria-disabled=${this.busy} @click=${() => this.#do(test, t.tested)}>${t.test}</button></div>`;
  }
}
customElements.define('plexus-notifications', PlexusNotifications);
