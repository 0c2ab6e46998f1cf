import { css, html } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { text } from '../text/en.js';
import './dialog.js';
import { KEYS } from './keys.js';

const t = text.shell.help;

/** The dialog with all keyboard shortcuts. */
@customElement('plexus-help')
export class PlexusHelp extends PlexusElement {
  @state() private open = false;
  show(): void { this.open = true; }

  static override styles = [...[PlexusElement.styles].flat(), css`
    .cols { columns: 2 300px; column-gap: var(--s6); }
    section { break-inside: avoid; margin-bottom: var(--s5); }
    h3 { margin-bottom: var(--s2); color: var(--fg-mute); font-size: var(--t-s); }
    dl { display: grid; grid-template-columns: 108px 1fr; gap: 6px 12px; align-items: center; }
    dt { display: flex; gap: 3px; flex-wrap: wrap; }
  `];

  override render() {
    return html`<plexus-dialog reading size="wide" heading=${t.title} .open=${this.open} @close=${() => { this.open = false; }}>
      <div class="cols">${KEYS.map(([group, rows]) => html`<section><h3>${group}</h3><dl>${rows.map(([keys, what]) => html`
        <dt>${keys.split(' ').map((one) => '–…'.includes(one) ? one : html`<kbd>${one}</kbd>`)}</dt><dd>${what}</dd>`)}</dl></section>`)}</div>
    </plexus-dialog>`;
  }
}
