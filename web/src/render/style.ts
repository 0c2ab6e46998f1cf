// The styles of rendered content: Markdown, code, output, diffs. For every shadow root that shows some.
import { css } from 'lit';

export const rendered = css`
  :host {
    --ansi-0: light-dark(#3b3f47, #5c6370); --ansi-1: light-dark(#b3201f, #ff7b72); --ansi-2: light-dark(#116b3c, #57c98a); --ansi-3: light-dark(#8a5200, #e9b25a);
    --ansi-4: light-dark(#0b5cad, #79b8ff); --ansi-5: light-dark(#8a2be2, #c79bff); --ansi-6: light-dark(#0e6e78, #56c7d0); --ansi-7: light-dark(#5f626d, #c9ced8);
    --ansi-8: light-dark(#5f626d, #8f95a3); --ansi-9: light-dark(#c42b2a, #ff9a94); --ansi-10: light-dark(#15803d, #7fe0a8); --ansi-11: light-dark(#8a5200, #f4cb85);
    --ansi-12: light-dark(#2563c9, #a5d0ff); --ansi-13: light-dark(#9333ea, #dcbcff); --ansi-14: light-dark(#0b7285, #86dfe6); --ansi-15: light-dark(#17181c, #ffffff);
    --lines-bg: var(--bg-code);
  }
  .quiet { min-height: 22px; padding: 0 6px; border-color: transparent; background: transparent; color: var(--fg-mute); font-size: var(--t-s); font-weight: 500; }
  .quiet:hover { color: var(--fg); background: var(--bg-hover); }
  .prose { font-size: var(--t-l); line-height: 1.6; overflow-wrap: anywhere; min-width: 0; display: flow-root; }
  .prose > :is(p, ul, ol, blockquote, h1, h2, h3, h4, h5, h6, hr, .wide, figure) { margin: 0 0 10px; }
  .prose p, .prose li, .prose td, .prose th, .prose h1, .prose h2, .prose h3, .prose h4, .prose h5, .prose h6 { unicode-bidi: plaintext; text-align: start; }
  .prose h1, .prose h2, .prose h3, .prose h4, .prose h5, .prose h6 { font-size: 1em; font-weight: 650; line-height: 1.4; margin-top: 14px !important; letter-spacing: 0; }
  .prose h1 { font-size: 1.22em; } .prose h2 { font-size: 1.12em; }
  .prose ul { list-style: disc; padding-inline-start: 22px; } .prose ol { list-style: decimal; padding-inline-start: 26px; }
  .prose li { margin: 2px 0; } .prose li > ul, .prose li > ol { margin: 2px 0; }
  .prose blockquote { border-left: 2px solid var(--line-strong); padding-left: 12px; color: var(--fg-soft); }
  .prose hr { border: 0; border-top: 1px solid var(--line); }
  .prose :not(pre) > code { background: var(--bg-active); border-radius: 4px; padding: 1px 5px; font-size: 0.88em; }
  .prose .host, .prose .dead { color: var(--fg-mute); font-size: 0.86em; font-family: var(--mono); overflow-wrap: anywhere; }
  .prose a { text-decoration: underline; text-decoration-color: var(--accent-line); }
  .wide { overflow-x: auto; }
  .prose table { border-collapse: collapse; font-size: 0.94em; }
  .prose [align="center"] { text-align: center; } .prose [align="right"] { text-align: right; }
  .prose th, .prose td { border: 1px solid var(--line); padding: 4px 10px; text-align: start; vertical-align: top; }
  .prose th { background: var(--bg-sunken); font-weight: 600; }
  figure.code { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-code); overflow: hidden; }
  figure.code figcaption { display: flex; justify-content: space-between; align-items: center; padding: 2px 4px 2px 12px; min-height: 28px; color: var(--fg-mute); font-size: var(--t-s); }
  figure.code pre { overflow-x: auto; padding: 2px 12px 11px; font-size: 0.8125rem; line-height: 1.55; tab-size: 4; outline-offset: -2px; unicode-bidi: plaintext; }
  figure.code code { overflow-wrap: normal; font-size: inherit; }
  figure.code .more { margin: 0 8px 8px; }
  .goes-on figure.code { border-top-left-radius: 0; border-top-right-radius: 0; margin-top: -11px; }
  .goes-on figure.code figcaption { display: none; }
  .hl-keyword, .hl-built_in, .hl-type, .hl-selector-tag, .hl-tag, .hl-literal { color: var(--code-key); }
  .hl-string, .hl-regexp, .hl-addition, .hl-symbol { color: var(--code-str); }
  .hl-number, .hl-attr, .hl-attribute, .hl-variable, .hl-meta, .hl-template-variable { color: var(--code-num); }
  .hl-comment, .hl-quote { color: var(--code-com); font-style: italic; }
  .hl-title, .hl-section, .hl-name, .hl-function { color: var(--code-fn); }
  .hl-deletion { color: var(--danger); }
  pre.command, pre.raw, pre.long { background: var(--bg-code); border: 1px solid var(--line); border-radius: var(--r-s); padding: 8px 11px; white-space: pre-wrap; overflow-wrap: anywhere; font-size: var(--t-s); line-height: 1.6; max-height: 420px; overflow: auto; }
  .lines { overflow: auto; max-height: min(440px, 60vh); border: 1px solid var(--line); border-radius: var(--r-s); background: var(--lines-bg); font: var(--t-s)/20px var(--mono); tab-size: 8; outline-offset: -2px !important; }
  .lines-body { min-width: max-content; padding: 0; contain: layout style; }
  .lines .line { height: 20px; white-space: pre; padding: 0 12px; overflow: visible; unicode-bidi: isolate; }
  .lines .b { font-weight: 700; } .lines .d { opacity: 0.75; } .lines .i { font-style: italic; } .lines .u { text-decoration: underline; } .lines .s { text-decoration: line-through; }
  .lines .inverse { background: var(--fg); color: var(--bg) !important; }
  .rest { min-height: 18px; height: 18px; vertical-align: top; }
  .long-line { margin-top: 8px; display: flex; flex-direction: column; gap: 6px; align-items: flex-start; }
  .long-line pre { width: 100%; word-break: break-all; }
  .diff-tools { display: flex; justify-content: space-between; align-items: center; min-height: 26px; color: var(--fg-mute); font-size: var(--t-s); font-variant-numeric: tabular-nums; }
  .diff .line { padding: 0; }
  .diff .no { display: inline-block; width: 44px; padding-right: 8px; text-align: right; color: var(--fg-mute); user-select: none; }
  .diff .sign { display: inline-block; width: 16px; user-select: none; color: var(--fg-mute); }
  .diff .add { background: var(--add-bg); } .diff .del { background: var(--del-bg); }
  .diff .add .sign { color: var(--ok); } .diff .del .sign { color: var(--danger); }
  .diff mark { color: inherit; border-radius: 2px; } .diff .add mark { background: var(--add-word); } .diff .del mark { background: var(--del-word); }
  .diff .fold { background: var(--bg-sunken); text-align: left; padding-left: 52px; } .diff .fold .quiet { height: 18px; min-height: 18px; vertical-align: top; }
  .diff.sides .line:not(.fold) { display: flex; }
  .diff .half { flex: 1 0 max(50%, var(--longest)); overflow: hidden; }
  .diff .half + .half { border-left: 1px solid var(--line); }
  .diff .half.none { background: var(--bg-sunken); }
  @container (max-width: 560px) { .diff .no { width: 34px; padding-right: 5px; } }
`;
