// One file: what every element of the page shares. Elements adopt it; nothing of it is written into the page.
import { css } from 'lit';

export const base = css`
  *, *::before, *::after { box-sizing: border-box; scrollbar-width: thin; scrollbar-color: var(--line-strong) transparent; }
  :host { display: block; }
  :host([hidden]), [hidden] { display: none !important; }
  h1, h2, h3, h4, p, ul, ol, dl, dd, figure, pre, fieldset { margin: 0; padding: 0; border: 0; }
  ul, ol { list-style: none; }
  h1 { font-size: var(--t-xl); font-weight: 620; letter-spacing: -0.012em; line-height: 1.3; }
  h2 { font-size: var(--t-l); font-weight: 600; letter-spacing: -0.006em; line-height: 1.35; }
  h3 { font-size: var(--t-m); font-weight: 600; line-height: 1.4; }
  a { color: var(--accent); text-decoration: none; text-underline-offset: 2px; }
  a:hover { text-decoration: underline; }
  code, pre, kbd, samp, .mono { font-family: var(--mono); font-size: 0.92em; }
  code { overflow-wrap: anywhere; }
  bdi { unicode-bidi: isolate; }
  :focus { outline: none; }
  :focus-visible { outline: var(--focus); outline-offset: 1px; border-radius: var(--r-s); }

  .sr { position: absolute !important; width: 1px; height: 1px; margin: -1px; padding: 0; overflow: hidden; clip-path: inset(50%); white-space: nowrap; border: 0; }
  .mute { color: var(--fg-mute); }
  .soft { color: var(--fg-soft); }
  .small { font-size: var(--t-s); }
  .strong { font-weight: 600; }
  .cut { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
  .grow { flex: 1 1 0; min-width: 0; }
  .nums { font-variant-numeric: tabular-nums; }
  .hstack { display: flex; align-items: center; gap: var(--s2); min-width: 0; }
  .hstack.wrap { flex-wrap: wrap; }
  .vstack { display: flex; flex-direction: column; gap: var(--s2); min-width: 0; }

  /* Buttons. Plain is quiet; .primary is the one thing to do; .danger ends something; .ghost has no frame. */
  button, .btn {
    appearance: none;
    display: inline-flex; align-items: center; justify-content: center; gap: 6px;
    min-height: var(--control);
    padding: 0 12px;
    border: 1px solid var(--line-strong);
    border-radius: var(--r-s);
    background: var(--bg-raised);
    color: var(--fg);
    font: 550 var(--t-m)/1.2 var(--sans);
    text-decoration: none;
    white-space: nowrap;
    cursor: pointer;
    user-select: none;
    touch-action: manipulation;
    -webkit-tap-highlight-color: transparent;
    transition: background var(--quick), border-color var(--quick), color var(--quick);
  }
  button:hover, .btn:hover { background: var(--bg-hover); text-decoration: none; }
  button:active, .btn:active { background: var(--bg-active); }
  button.primary, .btn.primary { background: var(--accent-solid); border-color: transparent; color: var(--on-accent); }
  button.primary:hover, .btn.primary:hover { background: var(--accent-solid-hover); }
  button.danger, .btn.danger { color: var(--danger); border-color: var(--danger-line); }
  button.danger:hover, .btn.danger:hover { background: var(--danger-wash); }
  button.danger.primary { background: var(--danger-solid); color: #fff; border-color: transparent; }
  button.ghost, .btn.ghost { border-color: transparent; background: transparent; color: var(--fg-soft); }
  button.ghost:hover, .btn.ghost:hover { background: var(--bg-hover); color: var(--fg); }
  button.icon, .btn.icon { width: var(--control); padding: 0; }
  button.compact, .btn.compact { min-height: 26px; padding: 0 8px; font-size: var(--t-s); }
  button.link { min-height: 0; padding: 0; border: 0; background: none; color: var(--accent); font-weight: 500; }
  button.link:hover { text-decoration: underline; }
  button[disabled], button[aria-disabled="true"] { opacity: 0.55; cursor: not-allowed; }
  @media (pointer: coarse) { button.compact, .btn.compact { min-height: 34px; } }

  input:not([type="checkbox"], [type="radio"]), textarea, select {
    width: 100%;
    min-height: var(--control);
    padding: 5px 10px;
    border: 1px solid var(--line-strong);
    border-radius: var(--r-s);
    background: var(--bg-raised);
    color: var(--fg);
    font: 400 var(--t-m)/1.45 var(--sans);
  }
  /* A phone zooms into smaller fields. */
  @media (pointer: coarse) { input:not([type="checkbox"], [type="radio"]), textarea, select { font-size: 16px; } }
  input::placeholder, textarea::placeholder { color: var(--fg-mute); opacity: 1; }
  input:focus-visible, textarea:focus-visible, select:focus-visible { outline-offset: -1px; border-color: transparent; border-radius: var(--r-s); }
  input[type="checkbox"], input[type="radio"] { accent-color: var(--accent-solid); width: 16px; height: 16px; margin: 0; flex: none; }
  label.field { display: flex; flex-direction: column; gap: 5px; font-weight: 550; }
  label.field > .hint { font-weight: 400; }
  label.check { display: flex; align-items: flex-start; gap: 9px; cursor: pointer; min-height: 24px; }
  label.check input { margin-top: 2px; }

  .chip {
    display: inline-flex; align-items: center; gap: 5px;
    height: 20px; padding: 0 7px;
    border-radius: 10px;
    background: var(--bg-active); color: var(--fg-soft);
    font-size: var(--t-xs); font-weight: 600; line-height: 1; white-space: nowrap;
  }
  .chip.ok { background: var(--ok-wash); color: var(--ok); }
  .chip.warn { background: var(--warn-wash); color: var(--warn); }
  .chip.danger { background: var(--danger-wash); color: var(--danger); }
  .chip.accent { background: var(--accent-wash); color: var(--accent); }
  .chip.info { background: var(--info-wash); color: var(--info); }
  .dot { width: 7px; height: 7px; border-radius: 50%; background: currentColor; flex: none; }

  .panel { background: var(--bg-raised); border: 1px solid var(--line); border-radius: var(--r-m); box-shadow: var(--shadow-1); }
  .note { padding: 9px 12px; border-radius: var(--r-s); background: var(--bg-sunken); color: var(--fg-soft); border: 1px solid var(--line); }
  .note.warn { background: var(--warn-wash); border-color: var(--warn-line); color: var(--warn); }
  .note.danger { background: var(--danger-wash); border-color: var(--danger-line); color: var(--danger); }
  .note.ok { background: var(--ok-wash); border-color: var(--ok-line); color: var(--ok); }

  kbd {
    display: inline-flex; align-items: center; justify-content: center;
    min-width: 19px; height: 19px; padding: 0 5px; flex: none; white-space: nowrap;
    border: 1px solid var(--line-strong); border-bottom-width: 2px; border-radius: 4px;
    background: var(--bg-raised); color: var(--fg-soft);
    font: 550 var(--t-xs)/1 var(--sans);
  }

  /* No transition at all: one of a moment would still delay every change of a size by a frame. */
  @media (prefers-reduced-motion: reduce) {
    *, *::before, *::after { animation-duration: 0.01ms !important; animation-iteration-count: 1 !important; transition: none !important; scroll-behavior: auto !important; }
  }
`;
