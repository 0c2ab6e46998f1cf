// Helpers to create elements. Strings become text nodes; no markup is parsed.

type Child = string | Node | null | undefined | false;

/** A new element with a class and children. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, className = '', ...children: Child[]): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  if (className) el.className = className;
  for (const child of children) if (child !== null && child !== undefined && child !== false) el.append(child);
  return el;
}

/** A button that calls `act`. */
export function button(label: string, act: (event: MouseEvent) => void, className = ''): HTMLButtonElement {
  const el = h('button', className, label);
  el.type = 'button';
  el.addEventListener('click', act);
  return el;
}

/** Copies `text` to the clipboard and shows that on the button for a moment. */
export async function copy(text: string, from: HTMLButtonElement, done: string, failed: string): Promise<void> {
  const label = from.textContent;
  let result = done;
  try { await navigator.clipboard.writeText(text); } catch { result = failed; }
  from.textContent = result;
  setTimeout(() => { from.textContent = label; }, 1_500);
}

/** Elements that hold words and nothing that was attached to them. */
const GROWING = new Set(['p', 'ul', 'ol', 'li', 'em', 'strong', 'code', 'blockquote', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6']);

/** Whether a node can become another by what is in it. */
function becomes(old: Node, now: Node): boolean {
  if (old instanceof Text) return now instanceof Text;
  if (!(old instanceof Element && now instanceof Element) || old.localName !== now.localName || !GROWING.has(old.localName)) return false;
  return old.attributes.length === now.attributes.length && [...old.attributes].every(({ name, value }) => now.getAttribute(name) === value);
}

/**
 * Makes the children of `el` those of `made`. Equal leading ones stay, and in one that grew only what is new is added: a text selection in
 * them survives, and a long paragraph is not laid out anew for each word.
 */
export function morph(el: Element, made: DocumentFragment | Element): void {
  const fresh = [...made.childNodes];
  let n = 0;
  for (; n < fresh.length && n < el.childNodes.length; n++) {
    const [old, now] = [el.childNodes[n] as Node, fresh[n] as Node];
    if (old.isEqualNode(now)) continue;
    if (!becomes(old, now)) break;
    if (!(old instanceof Text)) morph(old as Element, now as Element);
    else if ((now as Text).data.startsWith(old.data)) old.appendData((now as Text).data.slice(old.length));
    else old.data = (now as Text).data;
  }
  while (el.childNodes.length > n) el.lastChild?.remove();
  for (; n < fresh.length; n++) el.append(fresh[n] as Node);
}
