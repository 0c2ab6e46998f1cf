// A page that an agent made, in a frame of an origin of its own, from which this page cannot be reached. It is loaded when a person asks for
// it, and its scripts run only if the person allows them for that agent: a script reaches a network by WebRTC, which no policy of a browser
// stops. What a script may do here is send the names of its declared actions, and only shortly after a press in it.
//
// This page's policy would hold in a frame with its text as `srcdoc`, too, and forbid all of its scripts. So the frame shows a file of
// the gateway, which has a policy of its own (`sandbox allow-scripts`, no requests), and is sent the text.
import { css, html, nothing } from 'lit';
import { PlexusElement } from '../lib/element.js';
import { Arming } from '../request/arming.js';
import { readable } from '../render/visible.js';
import { text as words } from '../text/en.js';
import { icon } from '../ui/icons.js';
import { STRING_MAX } from './types.js';

const t = words.surface;

const FRAME = '/frame.html';
/** Heights of a frame, px. */
const HIGH = { least: 60, usual: 360, most: 2_000 } as const;
/** Maximum length of an action's name, in characters. */
const NAME_MAX = 64;
/** Maximum number of actions of a frame that are accepted within `SPAN_MS`; the rest is dropped. */
const ACTIONS_MAX = 5;
const SPAN_MS = 10_000;

/** The key under which this browser stores the agents whose scripts may run. */
const ALLOWED = 'plexus.page-scripts';
/** The event of this tab after that list changed; other tabs get `storage`. */
const CONSENT = 'plexus-page-scripts';

function allowedAgents(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(ALLOWED) ?? '[]');
    return Array.isArray(kept) ? kept.filter((one): one is string => typeof one === 'string') : [];
  } catch { return []; }
}

function allowScripts(agent: string, on: boolean): void {
  const others = allowedAgents().filter((one) => one !== agent);
  try { localStorage.setItem(ALLOWED, JSON.stringify(on ? [...others, agent] : others)); } catch { /* storage is off: scripts stay off */ }
  window.dispatchEvent(new Event(CONSENT));
}

/** The pages that a person loaded: they are loaded again without a press while this page is open. */
const loaded = new Set<string>();

/** `<plexus-surface-html .source .said .actions>`; dispatches `page-action` with the name of an action. */
export class PlexusSurfaceHtml extends PlexusElement {
  static override properties = { source: { attribute: false }, said: { attribute: false }, actions: { attribute: false }, agent: { attribute: false }, tall: { attribute: false }, locked: { attribute: false }, key: { attribute: false }, asks: { state: true } };
  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { display: block; min-inline-size: 0; }
    .box { border: 1px solid var(--line); border-radius: var(--r-s); overflow: hidden; background: var(--bg-raised); }
    .bar { display: flex; align-items: center; gap: 8px; padding: 5px 6px 5px 10px; background: var(--bg-sunken); border-block-end: 1px solid var(--line); font-size: var(--t-s); color: var(--fg-soft); flex-wrap: wrap; }
    .bar span { flex: 1 1 auto; min-inline-size: 0; overflow-wrap: anywhere; }
    iframe { display: block; inline-size: 100%; border: 0; background: #fff; }
    .before { padding: 12px; display: flex; flex-direction: column; gap: 10px; align-items: flex-start; }
    .row { display: flex; flex-wrap: wrap; gap: 8px; }
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
  /** Whether the person is asked about the agent's scripts. */
  declare asks: boolean;
  #taken: number[] = [];
  /** Whether the page in the frame was loaded with its scripts. */
  #ran = false;
  /** A double press of what asks must not allow. */
  readonly #asked = new Arming(0);

  constructor() {
    super();
    this.source = '';
    this.said = '';
    this.actions = [];
    this.agent = '';
    this.tall = 0;
    this.locked = '';
    this.key = '';
    this.asks = false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    window.addEventListener('message', this.#heard);
    window.addEventListener(CONSENT, this.#consent);
    window.addEventListener('storage', this.#consent);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    window.removeEventListener('message', this.#heard);
    window.removeEventListener(CONSENT, this.#consent);
    window.removeEventListener('storage', this.#consent);
  }

  override render() {
    const agent = this.agent || t.someAgent;
    const name = t.page(agent);
    const scripts = this.#scripts;
    if (!loaded.has(this.key)) {
      const choice = this.asks
        ? html`<p class="small" role="alert">${t.pageScripts(agent)}</p><div class="row"><button type="button" id="allow-scripts" @click=${() => this.#allow(true)}>${t.allowScripts(agent)}</button><button type="button" class="ghost" @click=${() => { this.asks = false; }}>${words.common.cancel}</button></div>`
        : html`<p class="mute small">${scripts ? t.pageScripts(agent) : t.pageAbout}</p><div class="row"><button type="button" @click=${() => this.#load(true)}>${icon('play', 14)} ${t.loadPage}</button>
          ${scripts ? this.#off(agent) : this.agent !== t.someAgent ? html`<button type="button" class="ghost" @click=${() => { this.asks = true; this.#asked.again(performance.now()); }}>${t.loadScripts}</button>` : nothing}</div>`;
      return html`<div class="box"><div class="before"><p class="said" dir="auto">${readable(this.said)}</p>${choice}</div></div>`;
    }
    const high = this.tall > 0 ? Math.max(HIGH.least, Math.min(HIGH.most, Math.trunc(this.tall))) : HIGH.usual;
    return html`<div class="box"><div class="bar"><span>${name} · ${scripts ? t.withScripts : t.withoutScripts}</span>${scripts ? this.#off(agent) : nothing}<button type="button" class="compact ghost" @click=${() => this.#load(false)}>${t.unloadPage}</button></div>
      ${this.source.length > STRING_MAX ? nothing : html`<iframe title=${name} sandbox="allow-scripts" referrerpolicy="no-referrer" allow="" src=${FRAME} .style=${`block-size: ${high}px`} @load=${this.#begin}></iframe>`}</div>`;
  }

  get #scripts(): boolean { return this.agent !== t.someAgent && allowedAgents().includes(this.agent); }

  #off(agent: string) {
    return html`<button type="button" class="compact ghost" id="deny-scripts" @click=${() => this.#allow(false)}>${t.denyScripts(agent)}</button>`;
  }

  /** Allows the agent's scripts in this browser, or ends them on all of its pages. */
  #allow(on: boolean): void {
    if (on && !this.#asked.armed(performance.now())) return;
    allowScripts(this.agent, on);
    this.asks = false;
    this.#load(on || loaded.has(this.key));
  }

  /** Begins the page anew where scripts were allowed or stopped, on this surface, another one, or in another tab. */
  #consent = (): void => {
    const frame = this.#frame;
    if (frame && this.#ran !== this.#scripts) frame.src = FRAME;
    this.requestUpdate();
  };

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
    this.#ran = this.#scripts;
    this.#frame?.contentWindow?.postMessage({ html: this.source, scripts: this.#ran }, '*');
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
