import { effect } from '@preact/signals-core';
import { LitElement, type CSSResultGroup } from 'lit';
import { base } from '../style/base.js';

/**
 * The base of all elements of the page: renders again when a signal that `render` read changes, and has the shared styles. Signals
 * must not be written in `render`, `willUpdate` or `updated`.
 */
export class PlexusElement extends LitElement {
  static override styles: CSSResultGroup = [base];
  #stopWatching: (() => void) | undefined;

  protected override performUpdate(): void {
    if (!this.isUpdatePending) return;
    this.#stopWatching?.();
    let first = true;
    this.#stopWatching = effect(() => {
      if (first) {
        first = false;
        super.performUpdate();
      } else {
        this.requestUpdate();
      }
    });
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.requestUpdate();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }
}
