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

/** Replaces the children of `el` by those of `made`, but keeps equal leading ones, so that a text selection in them survives. */
export function morph(el: Element, made: DocumentFragment | Element): void {
  const fresh = [...made.childNodes];
  let n = 0;
  while (n < fresh.length && n < el.childNodes.length && (el.childNodes[n] as Node).isEqualNode(fresh[n] as Node)) n++;
  while (el.childNodes.length > n) el.lastChild?.remove();
  for (; n < fresh.length; n++) el.append(fresh[n] as Node);
}
