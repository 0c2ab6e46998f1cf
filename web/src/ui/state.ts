import { css, html, nothing } from 'lit';
import { customElement, property } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { oneLine } from '../lib/text.js';
import { text } from '../text/en.js';

/** A session's state: an icon, and a label unless `bare`. States differ in shape, not only in colour. */
@customElement('plexus-state')
export class PlexusState extends PlexusElement {
  @property({ reflect: true }) state = 'idle';
  @property({ type: Boolean }) bare = false;

  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { display: inline-flex; align-items: center; gap: 6px; font-size: var(--t-s); color: var(--fg-mute); white-space: nowrap; flex: none; }
    .sign { width: 14px; height: 14px; flex: none; display: grid; place-items: center; }
    svg { overflow: visible; }
    :host([state="running"]) { color: var(--accent); }
    :host([state="waiting"]) { color: var(--warn); font-weight: 600; }
    /* The box turns, not what is drawn in it: that costs nothing, while a turning part of a picture is drawn again with each frame. */
    :host([state="running"]) .sign { animation: turn 1.6s linear infinite; }
    @keyframes turn { to { transform: rotate(360deg); } }
  `];

  override render() {
    const words = text.shell.sessions.state[this.state] ?? oneLine(this.state);
    return html`<span class="sign" role=${this.bare ? 'img' : nothing} aria-label=${this.bare ? words : nothing}>${this.#sign()}</span>${this.bare ? nothing : words}`;
  }

  #sign() {
    switch (this.state) {
      case 'running': return html`<svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" aria-hidden="true"><circle cx="7" cy="7" r="5.2" opacity="0.28"></circle><path d="M7 1.8A5.2 5.2 0 0 1 12.2 7"></path></svg>`;
      case 'waiting': return html`<svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true"><circle cx="7" cy="7" r="6" fill="currentColor"></circle><path d="M5.3 5.3a1.75 1.75 0 1 1 2.4 1.7c-.5.2-.7.5-.7 1M7 10h.01" fill="none" stroke="var(--bg-raised)" stroke-width="1.4" stroke-linecap="round"></path></svg>`;
      case 'exited': return html`<svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" aria-hidden="true"><path d="M4.2 4.2l5.6 5.6M9.8 4.2 4.2 9.8"></path></svg>`;
      default: return html`<svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.6" aria-hidden="true"><circle cx="7" cy="7" r="4.6"></circle></svg>`;
    }
  }
}
