// Renders an agent's Markdown: formatted text, and http(s) links that show their host. Raw HTML is shown as text, images are not
// fetched, and the parser's output passes through a sanitizer.

import DOMPurify from 'dompurify';
import { Marked, type Tokens } from 'marked';
import { text as words } from '../text/en.js';
import { button, copy, h } from './dom.js';
import { coloured } from './off.js';
import { oneLine, readable, visible } from './visible.js';

/** Code shown before "Show all", in characters. */
const CODE_SHOWN = 12_000;

const TAGS = ['a', 'blockquote', 'br', 'code', 'del', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'li', 'ol', 'p', 'pre', 'span', 'strong', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul'];
const RULES = {
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ['href', 'start', 'align', 'class'],
  ALLOWED_URI_REGEXP: /^https?:\/\//i,
  // The rule above is for every attribute that is not named here: a table's alignment and a list's first number are no addresses.
  ADD_URI_SAFE_ATTR: ['start', 'align'],
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  KEEP_CONTENT: true,
  RETURN_DOM_FRAGMENT: true,
} as const;

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: string) => text.replace(/[&<>"']/g, (c) => ESCAPES[c] as string);

/** The URL, if it is a safe link. */
export function safeUrl(href: string): URL | null {
  try {
    const url = new URL(href);
    return (url.protocol === 'https:' || url.protocol === 'http:') && !url.username && !url.password ? url : null;
  } catch {
    return null;
  }
}

const parser = new Marked({ gfm: true, breaks: false, async: false });
parser.use({
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escape(text),
    codespan: ({ text }: Tokens.Codespan) => `<code>${escape(visible(text))}</code>`,
    code: ({ text, lang }: Tokens.Code) => `<pre><code class="lang-${escape((lang ?? '').split(/[\s{]/)[0] ?? '')}">${escape(text)}</code></pre>`,
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? '☑ ' : '☐ '),
    image({ href, text }: Tokens.Image) {
      const label = `[${escape(words.session.image)}${text ? `: ${escape(text)}` : ''}]`;
      const url = safeUrl(href);
      return url ? `<a href="${escape(url.href)}">${label}</a>` : label;
    },
    link({ href, tokens }: Tokens.Link) {
      const inner = this.parser.parseInline(tokens);
      const url = safeUrl(href);
      // The target of an unsafe link is shown as text.
      return url ? `<a href="${escape(url.href)}">${inner}</a>` : `${inner} <span class="dead">(${escape(oneLine(href).slice(0, 200))})</span>`;
    },
  },
});

/** A code block with its language and a copy button. */
export function codeBlock(code: string, lang: string, growing = false): HTMLElement {
  const text = code.replace(/\n$/, '');
  const body = h('code');
  const pre = h('pre', '', body);
  pre.tabIndex = 0;
  const copyButton = button(words.common.copy, () => void copy(text, copyButton, words.common.copied, words.session.notCopied), 'quiet');
  const name = oneLine(lang).slice(0, 32);
  const block = h('figure', 'code', h('figcaption', '', h('span', 'lang', name), copyButton), pre);
  const show = (whole: boolean) => {
    const shown = whole ? text : text.slice(0, CODE_SHOWN);
    body.textContent = visible(shown);
    if (growing) return;
    void coloured(shown, lang).then((runs) => {
      if (!runs) return;
      body.replaceChildren(...runs.map(([scope, part]) => (scope && /^[\w-]+$/.test(scope) ? h('span', `hl-${scope}`, visible(part)) : document.createTextNode(visible(part)))));
    });
  };
  show(false);
  if (text.length > CODE_SHOWN) {
    const more = button(words.session.showAll(text.length), () => { more.remove(); show(true); }, 'quiet more');
    block.append(more);
  }
  return block;
}

/** Renders Markdown synchronously: for a part of a message, not for megabytes. */
export function markdown(source: string): DocumentFragment {
  let fragment: DocumentFragment;
  try {
    const html = parser.parse(readable(source)) as string;
    fragment = DOMPurify.sanitize(html, RULES as unknown as Parameters<typeof DOMPurify.sanitize>[1]) as unknown as DocumentFragment;
  } catch {
    // The parser failed: show the plain text.
    fragment = document.createDocumentFragment();
    fragment.append(h('p', 'plain', readable(source)));
  }
  for (const el of fragment.querySelectorAll('[class]')) {
    // Only these classes are allowed: others could imitate the page.
    if (!/^(dead|lang-\S*)$/.test(el.className)) el.removeAttribute('class');
  }
  for (const pre of [...fragment.querySelectorAll('pre')]) {
    const lang = /^lang-(\S*)$/.exec(pre.querySelector('code')?.className ?? '')?.[1] ?? '';
    pre.replaceWith(codeBlock(pre.textContent ?? '', lang));
  }
  for (const a of fragment.querySelectorAll('a')) {
    const url = safeUrl(a.getAttribute('href') ?? '');
    if (!url) { a.replaceWith(...a.childNodes); continue; }
    a.rel = 'noopener noreferrer nofollow';
    a.target = '_blank';
    a.referrerPolicy = 'no-referrer';
    a.title = url.href;
    // A link whose text is not its address shows its host.
    const label = (a.textContent ?? '').trim();
    if (label !== url.href && label !== `${url.host}${url.pathname}` && label !== url.host) a.append(h('span', 'host', ` (${url.host})`));
  }
  for (const el of fragment.querySelectorAll('p,li,h1,h2,h3,h4,h5,h6,td,th,blockquote')) el.setAttribute('dir', 'auto');
  for (const table of [...fragment.querySelectorAll('table')]) {
    const wrap = h('div', 'wide');
    wrap.tabIndex = 0;
    table.replaceWith(wrap);
    wrap.append(table);
  }
  return fragment;
}
