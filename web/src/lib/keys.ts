// The page's keyboard: one listener, and one rule for when a key is a command and when it is text. docs/keys.md states the rule.
//
// - In a text field a letter is text.
// - Where the page has a composer, a letter goes there, unless the focus is at a place where letters are commands.
// - There, and on pages without a composer, a letter is a command if no other letter follows within `ALONE_MS`: otherwise a person is writing.

export interface Binding {
  /** `j`, `Escape`, `mod+k`, `g i`. */
  key: string;
  run: (event: KeyboardEvent) => void;
  /** Whether it works in text fields; only for `mod` keys and `Escape`. */
  typing?: boolean;
  /** Whether it acts at once and repeats while the key is held. Only for keys that move or mark: none that answers, opens or leaves. */
  atOnce?: boolean;
  /** The release of the key, after `run`. */
  release?: () => void;
}

/** The composer of a page. */
export interface TextHome {
  /** Whether it takes text now. */
  readonly ready: boolean;
  /** Whether letters are commands at an element outside of the field. */
  commandsAt(at: Element | null): boolean;
  /** Whether an element is a control of the composer, whose letters are text, too. */
  owns(at: Element): boolean;
  /** Focuses the field and inserts text at the caret. */
  write(text: string): void;
}

/** The time within which another letter makes a letter text, ms. A shorter one takes slow typing for commands; a longer one delays commands. */
export const ALONE_MS = 400;
/** The time after the last letter of a text in which letters stay text, ms: a pause between two words. */
const REST_MS = 1_500;
/** Time for the second key of a sequence, ms. */
const SEQUENCE_MS = 1_200;
const MODIFIERS = ['Shift', 'Control', 'Alt', 'AltGraph', 'Meta'];

const layers: Binding[][] = [];
const claims: ((at: Element | null, key: string) => Omit<Binding, 'key'> | null)[] = [];
let home: TextHome | null = null;

/** The command that runs if no other letter follows. */
let waiting: { keys: string; code: string; timer: ReturnType<typeof setTimeout> } | null = null;
/** The letters since the last pause, which become text if this is one. */
let burst = { text: '', at: -Infinity };
let textUntil = -Infinity;
/** The command whose key is held down. */
let held: { code: string; release: (() => void) | undefined } | null = null;
/** The code of a pressed Space key that was text: its release presses no button. */
let swallowed = '';
let pointed = false;
let keyedAt = -Infinity;

/** The element that has the focus, through shadow roots. */
export function focused(): Element | null {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at;
}

/** The closest ancestor, or the element itself, that fits, through shadow roots. */
export function around(from: Element | null, fits: (el: Element) => boolean): Element | null {
  let at: Node | null = from;
  while (at && !(at instanceof Element && fits(at))) at = (at as Element).assignedSlot ?? (at instanceof ShadowRoot ? at.host : at.parentNode);
  return at as Element | null;
}

/** Whether letters go into an element by themselves. */
export function writable(at: EventTarget | null): boolean {
  if (!(at instanceof HTMLElement)) return false;
  if (at.isContentEditable || at instanceof HTMLTextAreaElement || at instanceof HTMLSelectElement) return true;
  return at instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'submit', 'file', 'range', 'color'].includes(at.type);
}

/** Whether the last input was a press of a pointer. */
export const byPointer = (): boolean => pointed;

/** Whether a key was pressed just now, and no pointer since. A press by a screen reader is neither. */
export const byKey = (): boolean => !pointed && performance.now() - keyedAt < ALONE_MS;

/** Whether a dialog is open: elements under it take no keys. */
export const dialogOpen = (): boolean => around(focused(), (el) => el instanceof HTMLDialogElement && el.open) !== null;

/** Binds keys until the returned function is called. The last binding has precedence. */
export function bind(bindings: Binding[]): () => void {
  layers.push(bindings);
  return () => {
    const i = layers.indexOf(bindings);
    if (i >= 0) layers.splice(i, 1);
  };
}

/** Adds keys that depend on the element that has the focus; they precede those of `bind`. */
export function claim(of: (at: Element | null, key: string) => Omit<Binding, 'key'> | null): void {
  claims.push(of);
}

/** Makes a composer the page's own until the returned function is called. */
export function textHome(it: TextHome): () => void {
  home = it;
  return () => { if (home === it) home = null; };
}

const bound = (): Binding[] => layers.toReversed().flat();

function find(key: string, at: Element | null): Omit<Binding, 'key'> | null {
  if (dialogOpen()) return null;
  for (const of of claims) {
    const found = of(at, key);
    if (found) return found;
  }
  return bound().find((one) => one.key === key) ?? null;
}

/** Ends what letters have begun. */
function calm(): void {
  clearTimeout(waiting?.timer);
  waiting = null;
  burst = { text: '', at: -Infinity };
  textUntil = -Infinity;
}

function use(event: Event): void {
  event.preventDefault();
  event.stopImmediatePropagation();
}

/** Takes a letter, and those before it, as text: into the composer, if there is one, where the browser inserts this letter by itself. */
function write(event: KeyboardEvent, into: TextHome | null): void {
  const { text } = burst;
  const space = event.key === ' ';
  calm();
  if (into) {
    into.write(text);
    event.stopImmediatePropagation();
    return;
  }
  textUntil = performance.now() + REST_MS;
  use(event);
  if (space) swallowed = event.code;
}

function run(event: KeyboardEvent, one: Omit<Binding, 'key'>): void {
  held = { code: event.code, release: one.release };
  one.run(event);
}

/** Runs a command unless another letter follows. */
function wait(event: KeyboardEvent, keys: string, one: Omit<Binding, 'key'> | null): void {
  use(event);
  clearTimeout(waiting?.timer);
  const at = focused();
  let down = true;
  const up = (other: KeyboardEvent) => { if (other.code === event.code) down = false; };
  window.addEventListener('keyup', up, true);
  const timer = setTimeout(() => {
    window.removeEventListener('keyup', up, true);
    if (waiting?.timer !== timer) return;
    waiting = null;
    if (!one || focused() !== at || document.hidden) return;
    run(event, one);
    if (!down) release();
  }, one ? ALONE_MS : SEQUENCE_MS);
  waiting = { keys, code: event.code, timer };
}

function release(): void {
  held?.release?.();
  held = null;
}

/** Whether a key is one that writes a character. */
function isLetter(event: KeyboardEvent): boolean {
  if ((event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState('AltGraph')) return false;
  return [...event.key].length === 1 || ['Dead', 'Process', 'Unidentified'].includes(event.key);
}

function letter(event: KeyboardEvent): void {
  const at = focused();
  const into = !dialogOpen() && home?.ready ? home : null;
  const away = into !== null && at !== null && into.owns(at);
  if ((writable(at) && !(away && at instanceof HTMLSelectElement)) || at?.closest('[role="menu"]')) return calm();
  const now = performance.now();
  if (!waiting && now - burst.at > ALONE_MS) burst = { text: '', at: now };
  const writing = waiting !== null || now < textUntil;
  // Space presses the focused control, or scrolls.
  if (event.key === ' ' && !writing && !burst.text) return;
  if (held && held.code !== event.code) release();
  if (into && !into.commandsAt(at)) return write(event, into);
  if (event.repeat && waiting?.code === event.code) return use(event);
  if (now < textUntil || event.key === ' ') return write(event, into);
  const keys = waiting ? `${waiting.keys} ${event.key}` : event.key;
  const one = find(keys, at);
  const begins = bound().some((other) => other.key.startsWith(`${keys} `)) && !dialogOpen();
  if (one?.atOnce && !waiting) {
    // A key that moves twice is no word.
    burst = { text: burst.text || event.repeat ? '' : event.key, at: now };
    use(event);
    one.run(event);
  } else if (event.repeat) use(event);
  else if (one || begins) {
    burst = { text: burst.text + event.key, at: now };
    wait(event, keys, one);
  } else if (into || waiting || burst.text) write(event, into);
  // A letter that is no command is perhaps the first one of a text.
  else burst = { text: event.key, at: now };
}

window.addEventListener('keydown', (event) => {
  pointed = false;
  keyedAt = performance.now();
  if (MODIFIERS.includes(event.key)) return;
  if (event.isComposing) return calm();
  if (isLetter(event)) return letter(event);
  if (event.key !== 'Enter') { if (!event.ctrlKey && !event.metaKey) calm(); return; }
  // The end of a text: it presses no control.
  const text = waiting !== null || performance.now() < textUntil;
  const at = focused();
  if (text && !writable(at) && !at?.closest('[role="menu"]')) use(event);
  calm();
}, true);

// Keys that write nothing: what has the focus comes first.
window.addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.isComposing || event.repeat || MODIFIERS.includes(event.key) || isLetter(event)) return;
  const key = `${event.ctrlKey || event.metaKey ? 'mod+' : ''}${event.altKey ? 'alt+' : ''}${event.key}`;
  const inDialog = dialogOpen();
  // A dialog handles Escape itself.
  if (inDialog && key === 'Escape') return;
  const one = bound().find((other) => other.key === key && (other.typing || (!inDialog && !writable(focused()))));
  if (!one) return;
  event.preventDefault();
  one.run(event);
});

window.addEventListener('keyup', (event) => {
  if (held?.code === event.code) release();
  if (swallowed !== event.code) return;
  swallowed = '';
  use(event);
}, true);
window.addEventListener('pointerdown', () => { pointed = true; calm(); }, true);
window.addEventListener('blur', () => { calm(); release(); });
