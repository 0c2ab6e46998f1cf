import { effect } from '@preact/signals-core';
import { LitElement, type CSSResultGroup } from 'lit';
import { base } from '../style/base.js';

/**
 * What every element of the page is made of: it draws again when a signal that its `render` read has changed, and it has the
 * shared styles. Signals must not be written in `render`, `willUpdate` or `updated`.
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
