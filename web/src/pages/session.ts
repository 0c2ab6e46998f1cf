import { css, html } from 'lit';
import { customElement, property } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { bind } from '../lib/keys.js';
import { effect } from '../lib/signal.js';
import { plexus } from '../plexus.js';
import type { SessionInfo } from '../wire/types.js';
import { archive, rename, share } from './session-actions.js';
import './abilities.js';
import './share.js';

/** The page of one session; marks it as read. */
@customElement('plexus-session-page')
export class PlexusSessionPage extends PlexusElement {
  @property() sessionId = '';
  /** The event of a deep link. */
  @property({ type: Number }) at: number | undefined;
  #stop: Array<() => void> = [];

  static override styles = [...[PlexusElement.styles].flat(), css`
    :host { height: 100%; min-height: 0; }
    plexus-session { height: 100%; min-height: 0; }
  `];

  override connectedCallback(): void {
    super.connectedCallback();
    const act = (event: Event) => {
      const s = plexus.sessions.peek().get(this.sessionId);
      const what = (event as CustomEvent<string>).detail;
      if (s) void ({ rename, archive, share } as Record<string, (s: SessionInfo) => unknown>)[what]?.(s);
    };
    window.addEventListener('plexus-session-do', act);
    this.#stop = [
      () => window.removeEventListener('plexus-session-do', act),
      bind([
        { key: 'u', run: () => plexus.go({ page: 'sessions' }) },
        { key: 'g c', run: () => { if (plexus.me.peek()?.kind !== 'share') plexus.go({ page: 'changes', session_id: this.sessionId }); } },
      ]),
      effect(() => {
        plexus.now.value;
        if (!document.hidden && plexus.unread.value.has(this.sessionId)) queueMicrotask(() => plexus.seen(this.sessionId));
      }),
    ];
    queueMicrotask(() => plexus.seen(this.sessionId));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const stop of this.#stop) stop();
  }

  override render() {
    return html`<plexus-session session-id=${this.sessionId} .at=${this.at}></plexus-session><plexus-share></plexus-share><plexus-abilities></plexus-abilities>`;
  }
}
