// The table of all keys of the page, for its help. docs/keys.md has those of requests, which are the same in `plexus attach`.

import { text } from '../text/en.js';

const t = text.shell.help;
const k = t.keys;

/** Keys, parted by spaces, and what they do. */
export type KeyRow = readonly [keys: string, what: string];
const MOD = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl';

/** All keys, by where they work. */
export const KEYS: ReadonlyArray<readonly [string, readonly KeyRow[]]> = [
  [t.groups.everywhere, [[`${MOD} K`, k.palette], ['?', k.help], ['N n', k.newSession], ['/', k.find], ['t', k.theme], ['Esc', k.close]]],
  [t.groups.go, [['g i', k.inbox], ['g h', k.home], ['g s', k.sessions], ['g f', k.search], ['g r', k.runtimes], ['g d', k.devices], ['g t', k.terminals], ['g u', k.usage], ['g ,', k.settings], ['g b', k.back]]],
  [t.groups.request, [['y a', k.allow], ['A', k.always], ['n d', k.deny], ['r D', k.denyWhy], ['e', k.edit], ['m', k.remember], ['c', k.again], ['o', k.unfold], ['1 – 9', k.option]]],
  [t.groups.inbox, [['j ]', k.next], ['k [', k.previous], ['Enter', k.intoCard], ['x Space', k.select], ['⇧ ↓', k.selectMore], [`${MOD} A`, k.selectAll], ['← →', k.fold], ['y a', k.allowSelected], ['n d', k.denySelected], ['X', k.clearSelection], ['Esc', k.backToRow]]],
  [t.groups.list, [['j', k.next], ['k', k.previous], ['Enter', k.open], ['e', k.archive], ['r', k.rename], ['← →', k.fold], ['p', k.project]]],
  [t.groups.session, [['i', k.compose], ['Enter', k.send], ['⇧ Enter', k.newline], ['j', k.next], ['k', k.previous], ['o', k.unfold], ['e', k.jump], ['/', k.findHere], ['y', k.copy], ['g c', k.changes], ['u', k.up]]],
  [t.groups.changes, [['j k', k.file], ['n p', k.part], ['v', k.viewed], ['c', k.comment], ['x', k.undo], ['s', k.sides], ['u', k.toSession]]],
];
