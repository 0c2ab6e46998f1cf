import{b as e,d as t,g as n,h as r,m as i}from"./libraries-D3tVd1Dt.js";var a=n`
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
`,o=class extends t{static{this.styles=[a]}#e;performUpdate(){if(!this.isUpdatePending)return;this.#e?.();let t=!0;this.#e=e(()=>{t?(t=!1,super.performUpdate()):this.requestUpdate()})}connectedCallback(){super.connectedCallback(),this.requestUpdate()}disconnectedCallback(){super.disconnectedCallback(),this.#e?.(),this.#e=void 0}},s={home:`M2 2.5h5v6H2v-6ZM9 2.5h5v3H9v-3ZM9 7.5h5v6H9v-6ZM2 10.5h5v3H2v-3Z`,inbox:`M2 9.5h3l1 2h4l1-2h3M2 9.5 4 3h8l2 6.5V13H2V9.5Z`,sessions:`M2.5 3h11v7.5h-6L4.5 13v-2.5h-2V3Z`,devices:`M2 3h9v7H2V3ZM5 13h3M10.5 6.5h4V14h-4V6.5Z`,usage:`M2 14h12M4 14V9.5M7 14V4M10 14V7M13 14V2.5`,settings:`M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6M10 6.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM6 13.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z`,runtimes:`M2.5 3h11v10h-11V3ZM5 6l2 2-2 2M8.5 10.5h2.5`,search:`M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14`,plus:`M8 3v10M3 8h10`,more:`M3.5 8h.01M8 8h.01M12.5 8h.01`,close:`M4 4l8 8M12 4l-8 8`,check:`M3 8.5 6.5 12 13 4.5`,back:`M10 3 5 8l5 5`,forward:`M6 3l5 5-5 5`,down:`M3 6l5 5 5-5`,up:`M3 10l5-5 5 5`,warn:`M8 2.5 14.5 13.5h-13L8 2.5ZM8 6.5v3.2M8 11.7h.01`,danger:`M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5L5.5 2ZM8 5v3.6M8 10.9h.01`,info:`M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 7.2v3.6M8 5h.01`,eye:`M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z`,copy:`M5.5 5.5h8v8h-8v-8ZM3.5 10.5h-1v-8h8v1`,link:`M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2.4-2.4a2.6 2.6 0 1 0-3.7-3.7l-.9.9M9.2 6.8a2.6 2.6 0 0 0-3.7 0L3.1 9.2a2.6 2.6 0 1 0 3.7 3.7l.9-.9`,share:`M8 10V2M5 4.5 8 2l3 2.5M4 8H2.5v6h11V8H12`,archive:`M2 3h12v3H2V3ZM3 6v7h10V6M6.5 8.5h3`,pencil:`M3 13v-2.5L10.5 3 13 5.5 5.5 13H3Z`,trash:`M2.5 4.5h11M6 4.5V3h4v1.5M4 4.5l.7 9h6.6l.7-9M6.7 7v4M9.3 7v4`,stop:`M4 4h8v8H4V4Z`,play:`M5 3.2v9.6L12.5 8 5 3.2Z`,restart:`M13 8a5 5 0 1 1-1.6-3.7M13.2 2v3h-3`,log:`M3 3h10M3 6.3h10M3 9.6h7M3 13h9`,sun:`M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9`,moon:`M13.3 9.6A5.6 5.6 0 1 1 6.4 2.7a4.5 4.5 0 0 0 6.9 6.9Z`,auto:`M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 2v12M8 4.5h3.5M8 7h5M8 9.5h4.7M8 12h3`,keyboard:`M1.5 4h13v8h-13V4ZM4 6.7h.01M6.7 6.7h.01M9.3 6.7h.01M12 6.7h.01M5 9.5h6`,bell:`M4 11V7a4 4 0 0 1 8 0v4l1.2 1.5H2.8L4 11ZM6.7 14h2.6`,lock:`M3.5 7h9v6.5h-9V7ZM5.5 7V5a2.5 2.5 0 0 1 5 0v2`,out:`M6.5 2.5H3v11h3.5M10 5l3 3-3 3M13 8H6`,phone:`M4.5 1.5h7v13h-7v-13ZM7 12.5h2`,folder:`M1.5 3.5H6L7.5 5h7v8h-13V3.5Z`,branch:`M4.5 10.5v-5M4.5 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM4.5 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM11.5 6.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM11.5 6.5c0 3-7 1-7 4`,only:`M2 3h12L9.5 8.5V13l-3-1.5v-3L2 3Z`,changes:`M8 2v7M4.5 5.5h7M4.5 13h7`,file:`M4 1.5h5.5L12.5 4.5v10H4v-13ZM9 2v3h3`,terminal:`M2 3h12v10H2V3ZM4.5 6l2 2-2 2M8.5 10.3h3`,clock:`M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 5v3.2l2.2 1.3`,send:`M8 13.5V3M3.8 7.2 8 3l4.2 4.2`,think:`M5.5 12.5h5M6.3 14.3h3.4M5.7 10.5C4.3 9.6 3.5 8.2 3.5 6.6a4.5 4.5 0 0 1 9 0c0 1.6-.8 3-2.2 3.9v0H5.7Z`,download:`M8 2v8M5 7.5 8 10.5l3-3M2.5 11v3h11v-3`,user:`M8 8.2a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM2.8 13.6c.6-2.3 2.7-3.4 5.2-3.4s4.600 1.100 5.200 3.400`,heart:`M1.5 8h3l2-4.5 3 9 2-4.5h3`};function c(e,t=16,n){return i`<svg width=${t} height=${t} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5"
    stroke-linecap="round" stroke-linejoin="round" role=${n?`img`:`presentation`} aria-label=${n??``} aria-hidden=${n?`false`:`true`}
    focusable="false">${r`<path d=${s[e]}></path>`}</svg>`}export{o as n,c as t};