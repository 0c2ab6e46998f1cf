// A page that an agent made, in a frame of an origin of its own: it reaches neither this page nor a network. It is loaded when a person
// asks for it. What it may do is send the names of its declared actions, and only shortly after a press in it.
//
// This page's policy would hold in a frame with its text as `srcdoc`, too, and forbid all of its scripts. So the frame shows a file of
// the gateway, which has a policy of its own (`sandbox allow-scripts`, no network), and is sent the text.
import { css, html, nothing } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { readable } from '../render/visible.js';
import { text as words } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { STRING_MAX } from './types.js';

const t = words.surface;

const FRAME = '/frame.html';
/** Heights of a frame, px. */
const HIGH = { least: 60, usual: 360, most: 2_000 } as const;
/** Longest name of an action, in characters. */
const NAME_MAX = 64;
/** Most actions of a frame that are taken within `SPAN_MS`; the rest is dropped. */
const ACTIONS_MAX = 5;
const SPAN_MS = 10_000;

/** The pages that a person loaded: they are loaded again without a press while this page is open. */
const loaded = new Set<string>();

/** `<plexus-surface-html .source .said .actions>`; dispatches `page-action` with the name of an action. */
export class PlexusSurfaceHtml extends PlexusElement {
  static override properties = { source: { attribute: false }, said: { attribute: false }, actions: { attribute: false }, agent: { attribute: false }, tall: { attribute: false }, locked: { attribute: false }, key: { attribute: false } };
  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { display: block; min-inline-size: 0; }
    .box { border: 1px solid var(--line); border-radius: var(--r-s); overflow: hidden; background: var(--bg-raised); }
    .bar { display: flex; align-items: center; gap: 8px; padding: 5px 6px 5px 10px; background: var(--bg-sunken); border-block-end: 1px solid var(--line); font-size: var(--t-s); color: var(--fg-soft); flex-wrap: wrap; }
    .bar span { flex: 1 1 auto; min-inline-size: 0; overflow-wrap: anywhere; }
    iframe { display: block; inline-size: 100%; border: 0; background: #fff; }
    .before { padding: 12px; display: flex; flex-direction: column; gap: 10px; align-items: flex-start; }
    .said { white-space: pre-wrap; overflow-wrap: anywhere; }
  `];
  declare source: string;
  declare said: string;
  declare actions: readonly string[];
  declare agent: string;
  declare tall: number;
  declare locked: string;
  /** Names the page among all of this session. */
  declare key: string;
  #taken: number[] = [];

  constructor() {
    super();
    this.source = '';
    this.said = '';
    this.actions = [];
    this.agent = '';
    this.tall = 0;
    this.locked = '';
    this.key = '';
  }

  override connectedCallback(): void {
    super.connectedCallback();
    window.addEventListener('message', this.#heard);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    window.removeEventListener('message', this.#heard);
  }

  override render() {
    const name = t.page(this.agent || t.someAgent);
    if (!loaded.has(this.key)) {
      return html`<div class="box"><div class="before"><p class="said" dir="auto">${readable(this.said)}</p><p class="mute small">${t.pageAbout}</p>
        <button type="button" @click=${() => this.#load(true)}>${icon('play', 14)} ${t.loadPage}</button></div></div>`;
    }
    const high = this.tall > 0 ? Math.max(HIGH.least, Math.min(HIGH.most, Math.trunc(this.tall))) : HIGH.usual;
    return html`<div class="box"><div class="bar"><span>${name}</span><button type="button" class="compact ghost" @click=${() => this.#load(false)}>${t.unloadPage}</button></div>
      ${this.source.length > STRING_MAX ? nothing : html`<iframe title=${name} sandbox="allow-scripts" referrerpolicy="no-referrer" allow="" src=${FRAME} .style=${`block-size: ${high}px`} @load=${this.#begin}></iframe>`}</div>`;
  }

  #load(on: boolean): void {
    if (on) loaded.add(this.key); else loaded.delete(this.key);
    this.requestUpdate();
  }

  protected override updated(changed: Map<string, unknown>): void {
    // Another text begins in a new frame: the old one's scripts end with it.
    const frame = this.#frame;
    if (changed.has('source') && changed.get('source') && frame) frame.src = FRAME;
  }

  get #frame(): HTMLIFrameElement | null {
    return this.renderRoot.querySelector('iframe');
  }

  /** Sends the text. The frame's origin is opaque, so no target can be named; it is the gateway's file, which no other site may frame. */
  #begin = (): void => {
    this.#frame?.contentWindow?.postMessage({ html: this.source }, '*');
  };

  /** Whether the person is in the frame, and just pressed something. */
  #inUse(frame: HTMLIFrameElement): boolean {
    return this.shadowRoot?.activeElement === frame && (navigator.userActivation?.isActive ?? true);
  }

  #heard = (event: MessageEvent<unknown>): void => {
    const frame = this.#frame;
    if (!frame || event.source === null || event.source !== frame.contentWindow || event.origin !== 'null') return;
    const data = event.data;
    if (data === null || typeof data !== 'object' || !Object.hasOwn(data, 'action')) return;
    const action = (data as { action: unknown }).action;
    if (typeof action !== 'string' || action.length > NAME_MAX || !this.actions.includes(action) || this.locked || !this.#inUse(frame)) return;
    const now = Date.now();
    this.#taken = this.#taken.filter((at) => now - at < SPAN_MS);
    if (this.#taken.length >= ACTIONS_MAX) return;
    this.#taken.push(now);
    this.dispatchEvent(new CustomEvent('page-action', { detail: action }));
  };
}
customElements.define('plexus-surface-html', PlexusSurfaceHtml);
