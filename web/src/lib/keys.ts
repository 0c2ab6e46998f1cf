// The page's keyboard shortcuts: one listener, with sequences of two keys (`g i`). Parts of the page bind their keys while shown.

export interface Binding {
  /** `j`, `Escape`, `mod+k`, `g i`. */
  key: string;
  run: (event: KeyboardEvent) => void;
  /** Whether it works in text fields; only for `mod` keys and `Escape`. */
  typing?: boolean;
}

/** How long the second key of a sequence may take, ms. */
const SEQUENCE_MS = 1_200;

const layers: Binding[][] = [];
let prefix = '';
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

/** The element that has the focus, through shadow roots. */
export function focused(): Element | null {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at;
}

function typingIn(at: Element | null): boolean {
  if (!(at instanceof HTMLElement)) return false;
  if (at.isContentEditable || at instanceof HTMLTextAreaElement || at instanceof HTMLSelectElement) return true;
  return at instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'submit'].includes(at.type);
}

/** Whether a dialog is open: elements under it take no keys. */
export const dialogOpen = (): boolean => {
  let at: Element | null = focused();
  while (at) {
    if (at instanceof HTMLDialogElement && at.open) return true;
    // What is slotted into a dialog's element stands in the dialog.
    at = at.assignedSlot ?? at.parentElement ?? ((at.getRootNode() as ShadowRoot).host ?? null);
  }
  return false;
};

/** Binds keys until the returned function is called. The last binding has precedence. */
export function bind(bindings: Binding[]): () => void {
  layers.push(bindings);
  return () => {
    const i = layers.indexOf(bindings);
    if (i >= 0) layers.splice(i, 1);
  };
}

const named = (event: KeyboardEvent): string =>
  `${event.ctrlKey || event.metaKey ? 'mod+' : ''}${event.altKey ? 'alt+' : ''}${event.key.length === 1 ? event.key : event.key}`;

window.addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.isComposing || event.repeat && event.key !== 'j' && event.key !== 'k') return;
  if (['Shift', 'Control', 'Alt', 'Meta'].includes(event.key)) return;
  const key = named(event);
  const typing = typingIn(focused());
  const inDialog = dialogOpen();
  // A dialog handles Escape itself.
  if (inDialog && key === 'Escape') return;
  const tried = prefix && !typing ? `${prefix} ${key}` : key;
  clearTimeout(prefixTimer);
  const had = prefix;
  prefix = '';
  for (let i = layers.length - 1; i >= 0; i -= 1) {
    for (const one of layers[i] ?? []) {
      if (one.key !== tried || ((typing || inDialog) && !one.typing)) continue;
      event.preventDefault();
      one.run(event);
      return;
    }
  }
  if (!typing && !inDialog && !had && layers.some((layer) => layer.some((one) => one.key.startsWith(`${key} `)))) {
    prefix = key;
    prefixTimer = setTimeout(() => { prefix = ''; }, SEQUENCE_MS);
    event.preventDefault();
  }
});
