// The table of all keys of the page, for its help. Those that answer requests are the gateway's table; docs/keys.md has all of them.

import { answers } from '../../../clients/typescript/src/answers.js';
import { text } from '../text/en.js';

const t = text.shell.help;
const k = t.keys;

/** Keys, parted by spaces, and what they do. */
export type KeyRow = readonly [keys: string, what: string];
const MOD = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl';

/** All keys, by where they work. */
export const KEYS: ReadonlyArray<readonly [string, readonly KeyRow[]]> = [
  [t.groups.everywhere, [[`${MOD} K`, k.palette], ['?', k.help], ['N n', k.newSession], ['t', k.theme], ['Esc', k.close]]],
  [t.groups.go, [['g i', k.inbox], ['g h', k.home], ['g s', k.sessions], ['g f', k.search], ['g r', k.runtimes], ['g d', k.devices], ['g t', k.terminals], ['g u', k.usage], ['g ,', k.settings], ['g b', k.back]]],
  [t.groups.request, [...answers.keys.map(([key, what]): KeyRow => [key, `${what[0]?.toUpperCase()}${what.slice(1)}`]), ['c', k.again], ['o', k.unfold]]],
  [t.groups.inbox, [['j ]', k.next], ['k [', k.previous], ['Enter', k.intoCard], ['x Space', k.select], ['⇧ ↓', k.selectMore], [`${MOD} A`, k.selectAll], ['← →', k.fold], ['a', k.allowSelected], ['d', k.denySelected], ['r', k.denyWhySelected], ['X', k.clearSelection], ['Esc', k.backToRow]]],
  [t.groups.list, [['j', k.next], ['k', k.previous], ['/', k.find], ['Enter', k.open], ['e', k.archive], ['r', k.rename], ['← →', k.fold], ['p', k.project]]],
  [t.groups.session, [['Enter', k.send], ['⇧ Enter', k.newline], ['Esc', k.leave], [`${MOD} F`, k.findHere]]],
  [t.groups.conversation, [['j', k.next], ['k', k.previous], ['o', k.unfold], ['e', k.jump], ['y', k.copy], ['i', k.compose], ['g c', k.changes], ['u', k.up]]],
  [t.groups.changes, [['j k', k.file], ['n p', k.part], ['v', k.viewed], ['c', k.comment], ['x', k.undo], ['s', k.sides], ['u', k.toSession]]],
];
