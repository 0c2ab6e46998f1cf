import { css, html } from 'lit';
import { customElement, state } from 'lit/decorators.js';
import { PlexusElement } from '../lib/element.js';
import { text } from '../text/en.js';
import './dialog.js';

const t = text.shell.help;
const k = t.keys;
type Row = readonly [keys: string, what: string];
const MOD = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl';
const TABLE: ReadonlyArray<readonly [string, readonly Row[]]> = [
  [t.groups.everywhere, [[`${MOD} K`, k.palette], ['?', k.help], ['n', k.newSession], ['/', k.find], ['t', k.theme], ['Esc', k.close]]],
  [t.groups.go, [['g i', k.inbox], ['g h', k.home], ['g s', k.sessions], ['g f', k.search], ['g r', k.runtimes], ['g d', k.devices], ['g t', k.terminals], ['g b', k.back]]],
  [t.groups.list, [['j', k.next], ['k', k.previous], ['Enter', k.open], ['e', k.archive], ['r', k.rename], ['← →', k.fold], ['p', k.project]]],
  [t.groups.request, [['a', k.allow], ['A', k.always], ['d', k.deny], ['D', k.denyWhy], ['e', k.edit], ['o', k.unfold], ['1 – 9', k.option]]],
  [t.groups.session, [['i', k.compose], ['Enter', k.send], ['⇧ Enter', k.newline], ['j', k.next], ['k', k.previous], ['o', k.unfold], ['e', k.jump], ['/', k.findHere], ['y', k.copy], ['u', k.up]]],
];

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
      <div class="cols">${TABLE.map(([group, rows]) => html`<section><h3>${group}</h3><dl>${rows.map(([keys, what]) => html`
        <dt>${keys.split(' ').map((one) => one === '–' ? one : html`<kbd>${one}</kbd>`)}</dt><dd>${what}</dd>`)}</dl></section>`)}</div>
    </plexus-dialog>`;
  }
}
