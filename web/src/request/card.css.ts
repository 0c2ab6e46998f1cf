import { css } from 'lit';

/** How a card looks. Colours are the page's variables; no state is told by colour alone. */
export const cardStyles = css`
  :host { display: flex; flex-direction: column; min-width: 0; min-block-size: 0; container-type: inline-size; scroll-margin: 72px 0 16px; }
  :host([hidden]) { display: none; }
  article {
    --risk: var(--line-strong); display: flex; flex-direction: column; flex: 0 1 auto; min-block-size: 0; max-block-size: inherit; position: relative; overflow: clip;
    background: var(--bg-raised); border: 1px solid var(--card-line, var(--line)); border-inline-start: 3px solid var(--risk); border-radius: var(--card-corner, var(--r-l));
  }
  article[data-risk='low'] { --risk: var(--ok); }
  article[data-risk='elevated'] { --risk: var(--warn); }
  article[data-risk='danger'] { --risk: var(--danger); }
  article[data-plain] { --risk: var(--accent); }
  article:is([data-status='closed'], [data-status='left']) { --risk: var(--line); border-radius: var(--r-m); }
  article:focus-visible { outline: var(--focus); outline-offset: 2px; }

  header { flex: none; display: flex; align-items: center; gap: 8px; padding: 6px 12px 1px; min-inline-size: 0; font-size: var(--t-m); line-height: 20px; }
  .what { flex: 1 1 auto; min-inline-size: 0; overflow-wrap: anywhere; }
  .who, .target { font-weight: 620; }
  .target { display: inline-flex; max-inline-size: 100%; vertical-align: bottom; white-space: pre; }
  .from { flex: 0 1 auto; min-inline-size: 1.2em; overflow: hidden; text-overflow: ellipsis; white-space: pre; direction: ltr; }
  .to { flex: 0 0 auto; max-inline-size: 90%; overflow: hidden; text-overflow: ellipsis; white-space: pre; direction: ltr; }
  .counts { font-variant-numeric: tabular-nums; color: var(--fg-mute); white-space: nowrap; }
  .session { flex: 0 1 auto; min-inline-size: 4em; max-inline-size: 45%; margin-inline-start: auto; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; color: var(--fg-mute); font-size: var(--t-s); text-decoration: underline; text-decoration-color: var(--line-strong); }
  .session + .when { margin-inline-start: 0; }
  .when { flex: none; margin-inline-start: auto; color: var(--fg-mute); font-size: var(--t-s); white-space: nowrap; font-variant-numeric: tabular-nums; }
  .when[data-soon] { color: var(--danger); font-weight: 600; }

  /* What is asked scrolls; the answers below it are always whole. */
  .body { flex: 0 1 auto; min-block-size: 0; min-inline-size: 0; overflow-y: auto; overscroll-behavior: contain; padding: 1px 12px; display: flex; flex-direction: column; gap: 6px; }
  article[data-plain] .body { padding-block: 6px; gap: 10px; }
  section { min-inline-size: 0; }
  h2 { margin: 0 0 4px; font-size: var(--t-s); font-weight: 600; color: var(--fg-mute); }
  .warnings { background: var(--warn-wash); color: var(--warn); border-radius: var(--r-s); padding: 4px 10px; font-size: var(--t-s); }
  .warnings li { overflow-wrap: anywhere; }
  .changed { background: var(--danger-wash); color: var(--danger); display: flex; flex-wrap: wrap; align-items: center; gap: 0 10px; }
  .changed h2 { color: inherit; margin: 0; }
  .changed .tool { color: inherit; font-weight: 650; text-decoration-line: underline; text-underline-offset: 2px; padding-inline: 0; }
  .unreadable { margin: 0 0 4px; color: var(--danger); font-size: var(--t-s); font-weight: 600; }

  blockquote { margin: 0; font-size: var(--t-s); color: var(--fg-soft); min-inline-size: 0; }
  blockquote h2 { display: inline; font-weight: 400; }
  blockquote h2 + .said { display: inline; }
  .said { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
  blockquote .said::before { content: '“'; }
  blockquote .said::after { content: '”'; }
  .said.asked { font-size: var(--t-l); font-weight: 600; }
  .more { border: 0; background: none; padding: 0; min-block-size: 32px; color: var(--accent); font: inherit; }

  .form { display: grid; gap: 10px 20px; grid-template-columns: minmax(0, 1fr); position: relative; }
  @container (min-width: 620px) { .form:not([data-count='1']) { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
  .form-end { position: absolute; inset-block-end: 0; block-size: 1px; inline-size: 1px; }
  .form + details, fieldset + details, .field + details { margin-block-start: 2px; }
  fieldset { margin: 0; padding: 0; border: 0; min-inline-size: 0; }
  legend { padding: 0 0 4px; font-size: var(--t-s); color: var(--fg-mute); }
  legend .asked { color: var(--fg); font-size: var(--t-m); font-weight: 600; white-space: pre-wrap; overflow-wrap: anywhere; }
  legend small { font-size: var(--t-s); }
  .opts { display: flex; flex-wrap: wrap; gap: 6px; }
  label.pick { display: inline-flex; gap: 7px; align-items: center; min-block-size: 32px; padding: 3px 10px 3px 8px; border: 1px solid var(--line); border-radius: var(--r-m); cursor: pointer; max-inline-size: 100%; font-size: var(--t-m); }
  label.pick:has(input:checked) { border-color: var(--accent); background: var(--accent-wash); }
  label.pick:has(input:focus-visible) { outline: var(--focus); outline-offset: 1px; }
  label.pick input:focus-visible { outline: none; }
  label.pick small { display: block; color: var(--fg-mute); font-size: var(--t-s); }
  label.pick span { min-inline-size: 0; overflow-wrap: anywhere; }
  .own { margin-block-start: 6px; }
  .wrong { margin: 2px 0 0; font-size: var(--t-s); color: var(--danger); }
  .wrong:empty { margin: 0; }
  .field { display: grid; gap: 4px; }
  .field > label { font-size: var(--t-s); font-weight: 600; color: var(--fg-mute); }
  .field .row { display: flex; gap: 8px; }
  textarea { resize: vertical; min-block-size: 64px; }
  textarea.code { font-family: var(--mono); }
  .changes { border: 1px solid var(--line); border-radius: var(--r-s); overflow: auto; max-block-size: 14rem; font-family: var(--mono); font-size: var(--t-s); line-height: 1.5; padding: 6px 0; background: var(--bg-sunken); }
  .changes span { display: block; padding-inline: 10px; white-space: pre-wrap; overflow-wrap: anywhere; }
  .changes .add { background: var(--add-bg); box-shadow: inset 3px 0 var(--ok); }
  .changes .del { background: var(--del-bg); box-shadow: inset 3px 0 var(--danger); }
  .sent summary { cursor: pointer; color: var(--fg-mute); font-size: var(--t-s); inline-size: fit-content; }

  .say { flex: none; margin: 0; font-size: var(--t-s); color: var(--fg-mute); overflow-wrap: anywhere; }
  .say:not(:empty) { padding: 2px 12px; }
  .say[data-bad] { color: var(--danger); }
  .tool { border: 0; background: none; min-block-size: 32px; padding: 4px 8px; color: var(--accent); font: inherit; font-size: var(--t-s); border-radius: var(--r-s); }

  /* The facts wrap beside the answers. The reason is whole; folder and session lose letters first. */
  .actions { flex: none; display: grid; grid-template-columns: minmax(0, 1fr) auto; align-items: center; gap: 4px 16px; padding: 2px 8px 6px 12px; }
  .facts { min-inline-size: 0; display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 12px; font-size: var(--t-s); line-height: 18px; color: var(--fg-mute); }
  .why { overflow-wrap: anywhere; color: var(--fg-soft); }
  .risk { color: var(--risk); font-weight: 650; }
  .where { display: flex; gap: 0 12px; min-inline-size: 0; max-inline-size: 100%; white-space: nowrap; }
  .where > * { min-inline-size: 3em; overflow: hidden; text-overflow: ellipsis; flex: 0 1 auto; }
  .folder { display: inline-flex; overflow: hidden; font-size: 1em; }
  .folder .from { min-inline-size: 0; }
  .lookers::before { content: '●'; color: var(--ok); margin-inline-end: 5px; font-size: 0.625rem; vertical-align: 1px; }

  .answers { display: flex; flex-direction: row-reverse; align-items: stretch; gap: 6px; }
  button.answer {
    min-block-size: 34px; padding: 2px 12px; border: 0; border-radius: var(--r-m); background: none; color: var(--fg); font: 600 var(--t-m)/1.25 var(--sans);
    display: flex; flex-direction: column; align-items: center; justify-content: center; gap: 0; white-space: nowrap; touch-action: manipulation; -webkit-tap-highlight-color: transparent;
  }
  button.answer:hover { background: var(--bg-hover); }
  button.answer strong { font-weight: inherit; display: inline-flex; align-items: center; gap: 7px; }
  button.answer small { font-weight: 450; font-size: var(--t-xs); line-height: 1.15; color: var(--fg-mute); max-inline-size: 15ch; overflow: hidden; text-overflow: ellipsis; }
  button.answer.primary { background: var(--accent-solid); color: var(--on-accent); padding-inline: 16px; }
  button.answer.primary small { color: inherit; }
  button.answer.primary:hover { background: color-mix(in srgb, var(--accent-solid) 88%, #000); }
  button.answer[aria-disabled='true'] { cursor: not-allowed; opacity: 0.55; }
  plexus-menu { align-self: center; }
  kbd { min-width: 17px; height: 17px; padding: 0 3px; border-bottom-width: 1px; background: none; color: inherit; border-color: color-mix(in srgb, currentColor 40%, transparent); }
  @media (hover: none), (max-width: 640px) { kbd { display: none; } }
  /* Greyed, not paler: what cannot be pressed for a moment is to be read all the same. */
  .actions[data-arming='true'] .answers { filter: saturate(0.25); }
  .step, .word { grid-column: 1 / -1; display: grid; gap: 6px; }
  .step p { margin: 0; font-size: var(--t-m); overflow-wrap: anywhere; }
  .facts:has(+ :is(.step, .word)) { grid-column: 1 / -1; padding: 0; }

  .outcome { display: flex; align-items: center; gap: 8px; padding: 5px 12px; font-size: var(--t-s); color: var(--fg-mute); min-inline-size: 0; }
  .outcome svg { flex: none; }
  .outcome .line { flex: 1 1 auto; min-inline-size: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .outcome strong { font-weight: 620; color: var(--fg-soft); }
  .outcome[data-sense='allow'] :is(svg, strong) { color: var(--ok); }
  .outcome[data-sense='deny'] :is(svg, strong) { color: var(--danger); }
  .more-said { margin: 0; padding: 0 12px 5px 34px; font-size: var(--t-s); color: var(--fg-mute); overflow-wrap: anywhere; }
  .more-said.late { color: var(--danger); }

  /* Where the card stands at the top, what is said comes below the answers: these do not move. */
  @container (min-width: 560px) { :host(:not([layout='dock'])) .say { order: 3; } :host(:not([layout='dock'])) .say:not(:empty) { padding-block: 0 6px; } }

  /* With a thumb: the answers side by side at the bottom, whole. */
  @container (max-width: 559px) {
    .actions { grid-template-columns: minmax(0, 1fr); padding: 2px 12px max(10px, env(safe-area-inset-bottom)); }
    .facts { padding-block-end: 4px; }
    header { flex-wrap: wrap; gap: 0 8px; }
    .what { flex: 1 1 60%; }
    .session { order: 9; flex-basis: 100%; max-inline-size: 100%; margin: 0; padding-inline-start: 28px; }
    .facts { max-block-size: 90px; overflow-y: auto; overscroll-behavior: contain; }
    .where { flex-basis: 100%; }
    .answers { flex-flow: row wrap; gap: 8px; }
    .answers > :is(button, plexus-hold) { flex: 1 1 30%; min-inline-size: 0; min-block-size: 52px; white-space: normal; }
    .answers > .primary { flex-grow: 2; }
    .answers > [data-role='later'] { flex-basis: 100%; order: 9; min-block-size: 44px; }
    .answers > plexus-menu { order: 1; }
    .answers[data-count='1'] > :is(button, plexus-hold) { flex-basis: 60%; }
    button.answer:not(.primary) { background: var(--bg-sunken); }
  }
  /* A sheet or a page of its own is filled, so that the answers are at the bottom. */
  @media (max-width: 599px) {
    article:not([data-status='closed'], [data-status='left']) { flex: 1 1 auto; }
    .actions { flex: 1 0 auto; align-content: space-between; }
  }
  @media (pointer: coarse) { label.pick { min-block-size: 44px; } .tool, .more, .sent summary { min-block-size: 44px; } .sent summary { line-height: 44px; } }
  .sr { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  @media (prefers-reduced-motion: reduce) { * { transition: none !important; } }
  @media (forced-colors: active) { button.answer { border: 1px solid ButtonText; } .actions[data-arming='true'] .answers { filter: none; } }
`;
