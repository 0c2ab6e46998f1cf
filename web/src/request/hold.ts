// A button that is held down: with the mouse, a finger or the space key. The card offers typing a word as an alternative.

import { css, html, LitElement } from 'lit';
import { text } from '../text/en.js';
import { HOLD_MS } from './arming.js';

const t = text.request;
/** Maximum distance that a finger may move during a hold, px; a longer one is a swipe. */
const ROLL_PX = 24;

/** Dispatches `hold-start`, `hold-released` (too early), `hold-done`, and `enter` for the Enter key, which does nothing. */
export class PlexusHold extends LitElement {
  static override properties = { verb: {}, label: {}, hint: {}, off: { type: Boolean, reflect: true }, holding: { type: Boolean, reflect: true } };
  declare verb: string;
  /** The agent's label, to be quoted. */
  declare label: string;
  declare hint: string;
  /** Drawn as disabled; presses are still reported, so that the card can say why. */
  declare off: boolean;
  declare holding: boolean;

  /** Whether a hold may begin; if not, the card has said why. */
  may: () => boolean = () => true;
  /** Whether a hold may continue: false once the card has moved. */
  still: () => boolean = () => true;

  #since = 0;
  #frame = 0;
  #from: { x: number; y: number } | null = null;

  constructor() {
    super();
    this.verb = '';
    this.label = '';
    this.hint = '';
    this.off = false;
    this.holding = false;
  }

  static override styles = css`
    :host { display: grid; min-width: 0; }
    button {
      position: relative; overflow: hidden; inline-size: 100%; block-size: 100%; min-block-size: 34px; padding: 2px 16px; border: 0; border-radius: var(--r-m);
      background: var(--danger-solid); color: #fff; font: 600 var(--t-m)/1.25 var(--sans); cursor: pointer; touch-action: pan-y; user-select: none; -webkit-user-select: none;
      -webkit-touch-callout: none; -webkit-tap-highlight-color: transparent; display: flex; flex-direction: column; align-items: center; justify-content: center;
    }
    :host([off]) button { cursor: not-allowed; opacity: 0.55; }
    button:focus-visible { outline: var(--focus); outline-offset: 2px; }
    .fill { position: absolute; inset: 0; background: #000; opacity: 0.3; transform: scaleX(0); transform-origin: 0 50%; pointer-events: none; }
    .ring { inline-size: 16px; block-size: 16px; flex: none; transform: rotate(-90deg); }
    .ring circle { fill: none; stroke: currentColor; stroke-width: 2.5; opacity: 0.4; }
    .ring .arc { opacity: 1; stroke-dasharray: 1; stroke-dashoffset: 1; }
    /* Both labels always take space: the button must not change its size during a hold. */
    strong { font-weight: inherit; position: relative; display: inline-flex; align-items: center; gap: 7px; white-space: nowrap; }
    strong > span { display: grid; }
    strong > span > span { grid-area: 1 / 1; text-align: start; }
    [data-off] { visibility: hidden; }
    small { position: relative; font-weight: 450; font-size: var(--t-xs); line-height: 1.15; max-inline-size: 15ch; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    @media (max-width: 599px) { button { padding-inline: 6px; } strong { gap: 5px; } }
    @media (max-width: 359px) { .ring { display: none; } }
    :host(:not([holding])) .fill { transition: transform 160ms ease-out; }
    @media (prefers-reduced-motion: reduce) { .fill { transition: none !important; } }
    @media (forced-colors: active) { .fill { background: Highlight; opacity: 0.5; } }
  `;

  override render() {
    return html`<button
      type="button"
      aria-disabled=${this.off ? 'true' : 'false'}
      aria-description=${this.hint}
      @pointerdown=${this.#down}
      @pointermove=${this.#move}
      @pointerup=${this.stop}
      @pointercancel=${this.stop}
      @pointerleave=${this.stop}
      @contextmenu=${(event: Event) => event.preventDefault()}
      @keydown=${this.#key}
      @keyup=${this.stop}
      @blur=${this.stop}
    >
      <span class="fill"></span>
      <strong><svg class="ring" viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="8"></circle><circle class="arc" cx="10" cy="10" r="8" pathLength="1"></circle></svg><span><span ?data-off=${this.holding}>${t.holdFor(this.verb)}</span><span ?data-off=${!this.holding}>${t.held}</span></span></strong>
      ${this.label ? html`<small title=${this.label}>“<bdi>${this.label}</bdi>”</small>` : null}
    </button>`;
  }

  override focus(options?: FocusOptions): void {
    this.renderRoot.querySelector('button')?.focus(options);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stop();
  }

  #down = (event: PointerEvent): void => {
    if (event.button !== 0 || !event.isPrimary) return;
    this.#from = { x: event.clientX, y: event.clientY };
    this.begin();
  };

  #move = (event: PointerEvent): void => {
    if (this.#from && Math.hypot(event.clientX - this.#from.x, event.clientY - this.#from.y) > ROLL_PX) this.stop();
  };

  #key = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') {
      event.preventDefault();
      this.dispatchEvent(new Event('enter'));
    } else if (event.key === ' ') {
      event.preventDefault();
      if (!event.repeat) this.begin();
    }
  };

  /** Begins a hold; also called for the card's key. */
  begin(): void {
    if (this.holding || !this.may()) return;
    this.holding = true;
    this.#since = performance.now();
    this.dispatchEvent(new Event('hold-start'));
    const step = (now: number) => {
      if (!this.holding) return;
      if (!this.still()) return this.stop();
      const part = Math.min(1, (now - this.#since) / HOLD_MS);
      this.#fill(part);
      if (part < 1) {
        this.#frame = requestAnimationFrame(step);
        return;
      }
      this.#reset();
      this.dispatchEvent(new Event('hold-done'));
    };
    this.#frame = requestAnimationFrame(step);
  }

  /** Ends a hold early. */
  stop = (): void => {
    if (!this.holding) return;
    this.#reset();
    this.dispatchEvent(new Event('hold-released'));
  };

  #reset(): void {
    cancelAnimationFrame(this.#frame);
    this.holding = false;
    this.#from = null;
    this.#fill(0);
  }

  #fill(part: number): void {
    const fill = this.renderRoot.querySelector<HTMLElement>('.fill');
    if (fill) fill.style.transform = `scaleX(${part})`;
    const arc = this.renderRoot.querySelector<SVGElement>('.arc');
    if (arc) arc.style.strokeDashoffset = String(1 - part);
  }
}
customElements.define('plexus-hold', PlexusHold);
