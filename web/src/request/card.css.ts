import { css } from 'lit';

/** How a card looks. Colours are the page's variables; no state is told by colour alone. */
export const cardStyles = css`
  :host { display: block; min-width: 0; container-type: inline-size; scroll-margin: 72px 0 16px; }
  :host([hidden]) { display: none; }
  article {
    box-sizing: border-box; display: flex; flex-direction: column; background: var(--bg-raised); border: 1px solid var(--card-line, var(--line));
    border-radius: var(--card-corner, var(--r-l)); overflow: clip; position: relative; min-block-size: 0;
  }
  article::before { content: ''; position: absolute; inset: 0 auto 0 0; inline-size: 4px; background: var(--risk); }
  article[data-risk='low'] { --risk: var(--ok); --risk-bg: var(--ok-wash); }
  article[data-risk='elevated'] { --risk: var(--warn); --risk-bg: var(--warn-wash); }
  article[data-risk='danger'] { --risk: var(--danger); --risk-bg: var(--danger-wash); }
  article[data-status='closed'] { --risk: var(--line); }
  article:focus-visible { outline: var(--focus); outline-offset: 2px; }
  .body { padding: 12px 16px 8px 20px; display: flex; flex-direction: column; gap: 10px; min-block-size: 0; min-inline-size: 0; }
  :host, article { min-block-size: 0; }
  :host { display: flex; flex-direction: column; }
  article { max-block-size: inherit; flex: 0 1 auto; }
  /* What is asked scrolls; the answers below it are always whole. */
  .body { overflow-y: auto; overscroll-behavior: contain; flex: 0 1 auto; }
  .actions { border-block-start: 1px solid var(--line); flex: none; }

  header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 2px 10px; min-inline-size: 0; font-size: var(--t-m); }
  .risk {
    display: inline-flex; align-items: center; gap: 6px; padding: 2px 10px 2px 8px; border-radius: 999px; background: var(--risk-bg); color: var(--risk);
    font-size: var(--t-s); font-weight: 650; white-space: nowrap;
  }
  article[data-status='closed'] .risk { color: var(--fg-mute); background: var(--bg-sunken); }
  .risk svg { inline-size: 14px; block-size: 14px; flex: none; }
  .who { font-weight: 650; overflow-wrap: anywhere; }
  .asks { color: var(--fg-mute); }
  .when { margin-inline-start: auto; color: var(--fg-mute); font-size: var(--t-s); white-space: nowrap; font-variant-numeric: tabular-nums; }
  .when[data-soon] { color: var(--danger); font-weight: 600; }
  .where { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: var(--t-m); color: var(--fg-mute); min-inline-size: 0; }
  .where > * { overflow-wrap: anywhere; min-inline-size: 0; }
  .where a { color: var(--accent); text-decoration-line: underline; text-decoration-thickness: 1px; text-underline-offset: 2px; }
  .where code { font-family: var(--mono); font-size: var(--t-s); }
  .lookers::before { content: '●'; color: var(--ok); margin-inline-end: 5px; font-size: 0.625rem; vertical-align: 1px; }
  h2 { margin: 0 0 5px; font-size: var(--t-s); font-weight: 600; color: var(--fg-mute); }
  h2 small { font-weight: 400; font-size: inherit; }

  .warnings { border: 1px solid var(--warn-line); background: var(--warn-wash); color: var(--warn); border-radius: var(--r-s); padding: 8px 12px; font-size: var(--t-m); }
  .warnings h2 { color: inherit; font-weight: 650; margin: 0; }
  .warnings ul { margin: 2px 0 0; padding-inline-start: 1.2em; list-style: disc; }
  .warnings li { overflow-wrap: anywhere; }

  .changed { border-color: var(--danger-line); background: var(--danger-wash); color: var(--danger); }
  .changed .tool { color: inherit; font-weight: 650; text-decoration-line: underline; text-underline-offset: 2px; padding-inline: 0; }
  .why { margin: 0; line-height: 1.7; font-size: var(--t-m); color: var(--fg-soft); overflow-wrap: anywhere; }
  .why .risk { line-height: 1.4; margin-inline-end: 6px; vertical-align: middle; }
  .why .risk + span { vertical-align: middle; }
  .unreadable { margin: 0 0 6px; color: var(--danger); font-size: var(--t-m); font-weight: 600; }

  blockquote { margin: 0; padding: 2px 0 2px 12px; border-inline-start: 3px solid var(--info); font-size: var(--t-m); min-inline-size: 0; }
  blockquote h2 { color: var(--info); margin: 0 0 2px; }
  section.agents { border-inline-start: 3px solid var(--info); padding-inline-start: 12px; }
  section.agents > h2 { color: var(--info); }
  .said { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
  .said + .said { margin-block-start: 4px; }
  .more { border: 0; background: none; padding: 0; min-block-size: 44px; color: var(--accent); font: inherit; cursor: pointer; }

  fieldset { margin: 0; padding: 0; border: 0; display: grid; gap: 2px; min-inline-size: 0; }
  legend { padding: 0; font-size: var(--t-s); font-weight: 600; color: var(--fg-mute); }
  label.pick { display: flex; gap: 10px; align-items: flex-start; min-block-size: 44px; padding: 9px 8px; border-radius: var(--r-s); cursor: pointer; box-sizing: border-box; }
  @media (hover: hover) { label.pick:hover { background: var(--bg-sunken); } }
  label.pick input { inline-size: 20px; block-size: 20px; margin: 2px 0 0; flex: none; accent-color: var(--accent); }
  label.pick small { display: block; color: var(--fg-mute); }
  label.pick span { min-inline-size: 0; overflow-wrap: anywhere; }
  fieldset.question { padding: 10px 0 2px; border-block-start: 1px solid var(--line); }
  fieldset.question legend { float: inline-start; inline-size: 100%; padding-block-end: 4px; }
  fieldset.question legend + * { clear: both; }
  fieldset.question .asked { display: block; color: var(--fg); font-size: 1rem; font-weight: 600; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
  fieldset.question legend small { font-weight: 400; }
  .wrong { margin: 0; min-block-size: 1.45em; font-size: var(--t-s); color: var(--danger); }
  .field { display: grid; gap: 4px; }
  .field > label { font-size: var(--t-s); font-weight: 600; color: var(--fg-mute); }
  .field .row { display: flex; gap: 8px; }
  input[type='text'], input[type='password'], textarea {
    box-sizing: border-box; inline-size: 100%; min-block-size: 44px; padding: 9px 12px; border: 1px solid var(--line-strong); border-radius: var(--r-s);
    background: var(--bg); color: var(--fg); font: inherit; font-size: max(16px, 1rem);
  }
  textarea { resize: vertical; min-block-size: 88px; }
  textarea.code { font-family: var(--mono); font-size: max(16px, var(--t-m)); }
  :is(input, textarea, button, a):focus-visible { outline: var(--focus); outline-offset: 2px; }
  .changes { margin: 0; border: 1px solid var(--line); border-radius: var(--r-s); overflow: auto; max-block-size: 14rem; font-family: var(--mono); font-size: var(--t-s); line-height: 1.5; padding: 6px 0; background: var(--bg-sunken); }
  .changes span { display: block; padding-inline: 10px; white-space: pre-wrap; overflow-wrap: anywhere; }
  .changes .add { background: var(--add-bg); box-shadow: inset 3px 0 var(--ok); }
  .changes .del { background: var(--del-bg); box-shadow: inset 3px 0 var(--danger); }

  .actions { padding: 8px 16px 8px 20px; display: flex; flex-direction: column; gap: 4px; box-sizing: border-box; background: var(--bg-raised); }
  .tools { display: flex; flex-wrap: wrap; gap: 0 4px; align-items: center; margin-inline-start: -10px; }
  .extra { min-inline-size: 0; }
  /* On a small phone the two answers stay whole, and what else there is scrolls. */
  @media (max-height: 700px) { .extra { max-block-size: 5.75rem; overflow-y: auto; overscroll-behavior: contain; } }
  .lasting { display: flex; flex-direction: column; margin-inline: -10px; }
  .tool { border: 0; background: none; min-block-size: 44px; padding: 6px 10px; color: var(--accent); font: inherit; font-size: var(--t-m); cursor: pointer; border-radius: var(--r-s); }
  @media (hover: hover) { .tool:hover { background: var(--bg-sunken); } }
  .box { display: inline-flex; align-items: center; gap: 8px; min-block-size: 44px; padding: 0 10px; cursor: pointer; font-size: var(--t-m); }
  .box input { inline-size: 20px; block-size: 20px; margin: 0; accent-color: var(--accent); }
  .answers { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 8px; }
  .answers > .whole { grid-column: 1 / -1; }
  .answers > .wide, .answers > .whole { max-inline-size: none; }
  @container (min-width: 620px) { .answers { max-inline-size: 34rem; inline-size: 100%; } }
  button.answer {
    position: relative; min-block-size: 52px; padding: 8px 14px; border: 1.5px solid var(--line); border-radius: var(--r-s); background: var(--bg-raised); color: var(--fg);
    font: inherit; cursor: pointer; touch-action: manipulation; display: flex; flex-direction: column; align-items: center; justify-content: center; gap: 1px; white-space: normal;
    -webkit-tap-highlight-color: transparent; transition: border-color 120ms, background-color 120ms, opacity 120ms;
  }
  button.answer.small { min-block-size: 44px; padding: 4px 10px; border-color: transparent; background: none; align-items: flex-start; text-align: start; font-size: var(--t-s); }
  button.answer.small strong { font-weight: 600; }
  button.answer strong { font-weight: 650; }
  button.answer small { font-size: var(--t-xs); color: var(--fg-mute); overflow-wrap: anywhere; max-inline-size: 100%; }
  button.answer[data-sense='allow']:not(.small) { border-color: color-mix(in srgb, var(--ok) 65%, var(--line)); }
  button.answer[data-sense='allow'] strong { color: var(--ok); }
  button.answer[data-sense='deny']:not(.small) { border-color: color-mix(in srgb, var(--danger) 50%, var(--line)); }
  button.answer[data-sense='deny'] strong { color: var(--danger); }
  @media (hover: hover) {
    button.answer[data-sense='allow']:hover:not([aria-disabled='true']) { background: var(--add-bg); }
    button.answer[data-sense='deny']:hover:not([aria-disabled='true']) { background: var(--del-bg); }
  }
  button[aria-disabled='true'] { cursor: not-allowed; opacity: 0.55; }
  /* Greyed, not paler: what cannot be pressed for a moment is to be read all the same. */
  .actions[data-arming='true'] :is(.answers, .lasting) { filter: saturate(0.25); }
  kbd { font: 600 0.6875rem/1 var(--mono); color: var(--fg-mute); border: 1px solid var(--line); border-radius: 4px; padding: 2px 4px; }
  button.answer kbd { margin-inline-start: 8px; vertical-align: 1px; }
  @media (hover: none), (max-width: 640px) { kbd { display: none; } }
  .word { display: flex; gap: 8px; align-items: end; flex-wrap: wrap; }
  .word .field { flex: 1 1 10rem; }
  .say { margin: 0; min-block-size: 1.45em; font-size: var(--t-m); color: var(--fg-mute); overflow-wrap: anywhere; }
  @container (max-width: 619px) { .say { min-block-size: 2.9em; } }
  /* Where the card stands at the bottom, what is said comes above the answers: these do not move. */
  :host(:is([layout='dock'], [layout='pane'])) .say { order: -1; min-block-size: var(--said, 0); }
  .say[data-bad] { color: var(--danger); }

  .outcome { display: flex; gap: 12px; align-items: center; flex: 1; min-block-size: 0; }
  .outcome svg { flex: none; inline-size: 28px; block-size: 28px; color: var(--fg-mute); }
  .outcome[data-sense='allow'] svg, .outcome[data-sense='allow'] strong { color: var(--ok); }
  .outcome[data-sense='deny'] svg, .outcome[data-sense='deny'] strong { color: var(--danger); }
  .outcome div { min-inline-size: 0; overflow-wrap: anywhere; }
  .outcome strong { font-weight: 650; }
  .outcome p { margin: 2px 0 0; font-size: var(--t-m); color: var(--fg-mute); display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
  @media (pointer: fine) { .tools .tool, .tools .box, button.answer.small { min-block-size: 32px; } .lasting { --small: 32px; } }
  .sr { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  @media (prefers-reduced-motion: reduce) { * { transition: none !important; } }
  @media (forced-colors: active) { article::before { background: CanvasText; } .actions[data-arming='true'] :is(.answers, .lasting) { filter: none; } }
`;
