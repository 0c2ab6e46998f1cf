// A person at a screen of `engines.mjs`, in three ways. Each finds the same controls and reads the same words: with a pointer; by keys alone,
// where a control is reached by Tab, if no key is said; or by the browser's accessibility tree alone, as with a screen reader.
import assert from 'node:assert/strict';
import { until } from './kit.mjs';

/** Presses of Tab after which a control counts as unreachable: more than a page of the story has controls. */
const TABS_MAX = 150;

/**
 * A control, as the page names it and as the accessibility tree does.
 * @typedef {object} Control
 * @property {string} css within one shadow root
 * @property {string} role
 * @property {string | RegExp} name
 * @property {string} [key] what presses it once it has the focus, if not Enter
 * @property {string} [ready] as css, once a press counts; if not named, it always does
 */

/** @typedef {import('./engines.mjs').Screen} Screen */

const told = (/** @type {Control} */ what) => `${what.role} ${what.name} (${what.css})`;

// --- functions of the page: they go there as text, and know nothing of what stands around them here ------------------------------------------

/** All words that can be seen, through all shadow roots; of a part, if it is named. */
function seenWords(/** @type {string} */ css) {
  /** @type {(node: any) => string} */
  const words = (node) => {
    if (node.nodeType === 3) return node.data;
    if (node.nodeType !== 1 && node.nodeType !== 11) return '';
    if (node.nodeType === 1 && (node.localName === 'style' || node.localName === 'script' || (node.checkVisibility && getComputedStyle(node).display !== 'contents' && !node.checkVisibility({ visibilityProperty: true })))) return '';
    const children = node.localName === 'slot' && node.assignedNodes().length ? node.assignedNodes() : node.shadowRoot ? node.shadowRoot.childNodes : node.childNodes;
    const all = [...children].map(words).join('');
    return node.nodeType === 1 && !/^(?:inline|contents)/.test(getComputedStyle(node).display) ? ` ${all} ` : all;
  };
  /** @type {(root: any) => any[]} */
  const parts = (root) => [...root.querySelectorAll('*')].flatMap((el) => [...(el.matches(css) ? [el] : []), ...(el.shadowRoot ? parts(el.shadowRoot) : [])]);
  return (css ? parts(document) : [document.body]).map(words).join(' ').replace(/\s+/g, ' ');
}

/** Where the first control of this selector is that can be pressed; null if there is none, or something lies over it. */
function place(/** @type {string} */ css) {
  /** @type {(root: any) => any[]} */
  const all = (root) => [...root.querySelectorAll('*')].flatMap((el) => [...(el.matches(css) ? [el] : []), ...(el.shadowRoot ? all(el.shadowRoot) : [])]);
  for (const el of all(document)) {
    if (!el.checkVisibility({ visibilityProperty: true }) || el.disabled) continue;
    el.scrollIntoView({ block: 'nearest' });
    const box = el.getBoundingClientRect();
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    let hit = document.elementFromPoint(x, y);
    while (hit?.shadowRoot?.elementFromPoint(x, y) && hit.shadowRoot.elementFromPoint(x, y) !== hit) hit = hit.shadowRoot.elementFromPoint(x, y);
    for (let at = /** @type {any} */ (hit); at; at = at.assignedSlot ?? at.parentNode ?? at.host) if (at === el) return { x, y };
  }
  return null;
}

/** What has the focus, through all shadow roots: whether it is such a control, whether one stands before it, and what it is. */
function focus(/** @type {string} */ css) {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  /** @type {(root: any) => any[]} */
  const all = (root) => [...root.querySelectorAll('*')].flatMap((el) => [el, ...(el.shadowRoot ? all(el.shadowRoot) : [])]);
  const elements = all(document);
  const before = elements.findIndex((el) => el.matches(css) && el.checkVisibility({ visibilityProperty: true })) < elements.indexOf(at);
  return { is: Boolean(at?.matches(css)), before, at: at ? `${at.localName}${at.id ? `#${at.id}` : ''}.${at.className}` : 'nothing' };
}

/** The text of such a field. */
function fieldText(/** @type {string} */ css) {
  /** @type {(root: any) => any[]} */
  const all = (root) => [...root.querySelectorAll('*')].flatMap((el) => [...(el.matches(css) ? [el] : []), ...(el.shadowRoot ? all(el.shadowRoot) : [])]);
  return all(document)[0]?.value ?? null;
}

// --- people ----------------------------------------------------------------------------------------------------------------------------------

/** With eyes; what they press with is said by those below. */
class Person {
  /** @param {Screen} screen */
  constructor(screen) { this.screen = screen; }

  /** Waits until these words can be read, in the whole page or in a part of it. */
  async sees(/** @type {string | RegExp} */ words, part = '') {
    let last = '';
    await until(() => `to read ${words} in “${last}”`, async () => {
      last = await this.screen.run(seenWords, part);
      return typeof words === 'string' ? last.includes(words) : words.test(last);
    });
  }

  /** Words that say what happened. Who sees reads them where they stand. */
  async hears(/** @type {string | RegExp} */ words) { await this.sees(words); }

  /** Writes into a field, which is pressed first. */
  async writes(/** @type {Control} */ field, /** @type {string} */ text) {
    await this.press(field);
    await until(() => `the focus in ${told(field)}`, async () => (await this.screen.run(focus, field.css)).is);
    await this.screen.write(text);
    assert.equal(await this.screen.run(fieldText, field.css), text);
  }

  async press(/** @type {Control} */ what) { assert.fail(`nothing presses ${told(what)}`); }
}

class Pointer extends Person {
  /** @override */
  async press(/** @type {Control} */ what) {
    const { x, y } = await until(() => `to see ${told(what)}`, () => this.screen.run(place, what.ready ?? what.css));
    await this.screen.click(x, y);
  }
}

class Keyboard extends Person {
  /** @override */
  async writes(/** @type {Control} */ field, /** @type {string} */ text) {
    await this.#reach(field);
    await this.screen.write(text);
    assert.equal(await this.screen.run(fieldText, field.css), text);
  }

  /** @override */
  async press(/** @type {Control} */ what) {
    await this.#reach(what);
    const { ready } = what;
    if (ready) await until(`${told(what)} takes a press`, async () => (await this.screen.run(focus, ready)).is);
    await this.screen.key(what.key ?? 'Enter');
  }

  async #reach(/** @type {Control} */ what) {
    await until(() => `to see ${told(what)}`, () => this.screen.run(place, what.css));
    /** @type {string[]} */ const past = [];
    for (let n = 0; n < TABS_MAX; n += 1) {
      const { is, before, at } = await this.screen.run(focus, what.css);
      if (is) return;
      past.push(at);
      await this.screen.key(before ? 'Shift+Tab' : 'Tab');
    }
    assert.fail(`${told(what)} is not reached by Tab, past ${past.join(', ')}`);
  }
}

/** By the tree that the browser gives to screen readers, and by nothing else. */
class Listener extends Person {
  /** @type {import('playwright-core').CDPSession | undefined} */ #cdp;

  async #nodes() {
    this.#cdp ??= await /** @type {import('playwright-core').Page} */ (this.screen.page).context().newCDPSession(/** @type {import('playwright-core').Page} */ (this.screen.page));
    const { nodes } = await this.#cdp.send('Accessibility.getFullAXTree');
    return nodes;
  }

  async #find(/** @type {Control} */ what) {
    /** @type {string[]} */ let there = [];
    return until(() => `${told(what)} in the accessibility tree, which has ${there.join(', ')}`, async () => {
      const nodes = (await this.#nodes()).filter((node) => !node.ignored);
      const fits = (/** @type {string} */ name) => (typeof what.name === 'string' ? name === what.name : what.name.test(name));
      const found = nodes.filter((node) => node.role?.value === what.role && fits(String(node.name?.value ?? '')) && !node.properties?.some((one) => one.name === 'disabled' && one.value.value === true));
      there = nodes.filter((node) => node.role?.value === what.role).map((node) => `“${node.name?.value}”`);
      return found[0];
    });
  }

  /** As a screen reader does: by the action of the node, without a place. @override */
  async press(/** @type {Control} */ what) {
    const node = await this.#find(what);
    const cdp = /** @type {import('playwright-core').CDPSession} */ (this.#cdp);
    const { object } = await cdp.send('DOM.resolveNode', { backendNodeId: node.backendDOMNodeId });
    const does = function () { /** @type {any} */ (this).focus(); /** @type {any} */ (this).click(); };
    await cdp.send('Runtime.callFunctionOn', { objectId: object.objectId, functionDeclaration: String(does), userGesture: true });
  }

  /** @override */
  async writes(/** @type {Control} */ field, /** @type {string} */ text) {
    await this.press(field);
    await this.screen.write(text);
    const node = await this.#find(field);
    assert.equal(node.value?.value, text, `the value of ${told(field)}`);
  }

  /** The words of nodes that somebody is told of, or of all, in the order in which they are read. */
  async #words(/** @type {boolean} */ live) {
    const nodes = await this.#nodes();
    const byId = new Map(nodes.map((node) => [node.nodeId, node]));
    /** @type {(node: any, told: boolean) => string[]} */
    const words = (node, told) => {
      const heard = told || (node.properties ?? []).some((/** @type {any} */ one) => one.name === 'live' && ['polite', 'assertive'].includes(one.value.value));
      const own = heard && !node.ignored && ['StaticText', 'image'].includes(String(node.role?.value)) ? [node.name?.value] : [];
      return [...own, ...(node.childIds ?? []).flatMap((/** @type {string} */ id) => words(byId.get(id) ?? {}, heard))];
    };
    return nodes.filter((node) => !node.parentId).flatMap((node) => words(node, !live)).join(' ').replace(/\s+/g, ' ');
  }

  /** @override */
  async sees(/** @type {string | RegExp} */ words) { await this.#reads(words, false); }

  /** Words in a live region: what a screen reader says by itself. @override */
  async hears(/** @type {string | RegExp} */ words) { await this.#reads(words, true); }

  async #reads(/** @type {string | RegExp} */ words, /** @type {boolean} */ live) {
    let last = '';
    await until(() => `${words} in ${live ? 'the live regions' : 'the accessibility tree'}: “${last}”`, async () => {
      last = await this.#words(live);
      return typeof words === 'string' ? last.includes(words) : words.test(last);
    });
  }
}

const MANNERS = { pointer: Pointer, keyboard: Keyboard, tree: Listener };

/** A person of this manner at a screen. @param {string} manner @param {Screen} screen @returns {Person} */
export function person(manner, screen) {
  const Manner = MANNERS[/** @type {keyof typeof MANNERS} */ (manner)];
  if (!Manner) throw new Error(`no manner ${manner}: one of ${Object.keys(MANNERS).join(', ')}`);
  return new Manner(screen);
}
