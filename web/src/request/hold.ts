// A button that is held down: with the mouse, a finger or the space key. The card offers typing a word as an alternative.

import { css, html, LitElement } from 'lit';
import { text } from '../text/en.js';
import { HOLD_MS } from './arming.js';

const t = text.request;
/** How far a finger may move during a hold, px; further is a swipe. */
const ROLL_PX = 24;

/** Dispatches `hold-start`, `hold-released` (too early), `hold-done`, and `enter` for the Enter key, which does nothing. */
export class PlexusHold extends LitElement {
  static override properties = { verb: {}, quoted: {}, reach: {}, hint: {}, off: { type: Boolean, reflect: true }, holding: { type: Boolean, reflect: true } };
  declare verb: string;
  declare quoted: string;
  /** How far the answer reaches beyond this request, in words; empty if it does not. */
  declare reach: string;
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
    this.quoted = '';
    this.reach = '';
    this.hint = '';
    this.off = false;
    this.holding = false;
  }

  static override styles = css`
    :host { display: block; min-width: 0; }
    button {
      position: relative; overflow: hidden; inline-size: 100%; block-size: 100%; min-block-size: 52px; padding: 8px 14px;
      border: 1.5px solid var(--danger); border-radius: var(--r-s); background: var(--bg-raised); color: var(--danger);
      font: inherit; cursor: pointer; touch-action: pan-y; user-select: none; -webkit-user-select: none; -webkit-touch-callout: none;
      -webkit-tap-highlight-color: transparent; display: flex; flex-direction: column; align-items: center; justify-content: center; gap: 1px;
    }
    :host(.small) button { min-block-size: var(--small, 44px); padding: 4px 10px; border-color: transparent; background: none; align-items: flex-start; text-align: start; font-size: var(--t-s); }
    :host([off]) button { cursor: not-allowed; opacity: 0.55; }
    button:focus-visible { outline: var(--focus); outline-offset: 2px; }
    .fill { position: absolute; inset: 0; background: var(--danger); opacity: 0.28; transform: scaleX(0); transform-origin: 0 50%; pointer-events: none; }
    /* Both labels always take space: the button must not change its size during a hold. */
    strong { font-weight: 650; position: relative; display: grid; align-items: center; }
    strong span { grid-area: 1 / 1; }
    [data-off] { visibility: hidden; }
    small { position: relative; font-size: var(--t-xs); max-inline-size: 100%; overflow-wrap: anywhere; }
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
      <strong><span ?data-off=${this.holding}>${t.holdFor(this.verb)}</span><span ?data-off=${!this.holding}>${t.holding}</span></strong>
      ${this.quoted || this.reach ? html`<small>${this.reach} ${this.quoted ? html`“<bdi>${this.quoted}</bdi>”` : null}</small>` : null}
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
  }
}
customElements.define('plexus-hold', PlexusHold);
