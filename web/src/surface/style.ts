// The styles of a surface: its frame, and what is drawn in it. Nothing that an agent says becomes a style of its own.
import { css } from 'lit';

export const style = css`
  :host { display: block; min-inline-size: 0; container-type: inline-size; }
  .frame { position: relative; z-index: 0; isolation: isolate; contain: layout paint; overflow: clip; border: 1px solid var(--line-strong); border-radius: var(--r-m); background: var(--bg-raised); display: flex; flex-direction: column; min-inline-size: 0; }
  .frame > header { display: flex; align-items: center; flex-wrap: wrap; gap: 2px 10px; padding: 7px 12px; background: var(--bg-sunken); border-block-end: 1px solid var(--line); min-inline-size: 0; }
  .frame > header h2 { font-size: var(--t-m); flex: 0 1 auto; min-inline-size: 0; overflow-wrap: anywhere; }
  .by { display: inline-flex; align-items: center; gap: 5px; color: var(--fg-soft); font-size: var(--t-s); flex: 1 1 auto; min-inline-size: 0; overflow-wrap: anywhere; }
  .by svg { flex: none; }
  .stage { display: grid; grid-template-columns: minmax(0, 1fr); min-inline-size: 0; }
  .stage > * { grid-area: 1 / 1; min-inline-size: 0; }
  .stage.over { min-block-size: 180px; }
  .drawn { padding: 14px; overflow: auto; font-size: var(--t-m); outline-offset: -2px !important; }
  :host([layout="inline"]) .drawn, :host([layout="inline"]) .modal { max-block-size: min(78vh, 900px); }
  :host([layout="tile"]) { display: flex; flex-direction: column; }
  :host([layout="tile"]) .frame { flex: 1; }
  :host([layout="tile"]) .drawn, :host([layout="tile"]) .modal { max-block-size: min(70vh, 460px); }
  /* A shadow at an edge past which there is more: it is covered where the content ends. */
  :host([layout="inline"]) .drawn, :host([layout="tile"]) .drawn {
    --edge: color-mix(in srgb, var(--fg) 22%, transparent);
    background: linear-gradient(var(--bg-raised) 40%, transparent) 0 0 / 100% 28px local no-repeat, linear-gradient(transparent, var(--bg-raised) 60%) 0 100% / 100% 28px local no-repeat,
      linear-gradient(var(--edge), transparent) 0 0 / 100% 9px scroll no-repeat, linear-gradient(transparent, var(--edge)) 0 100% / 100% 9px scroll no-repeat;
  }
  .closed .drawn { opacity: 0.72; }
  .foot { border-block-start: 1px solid var(--line); padding: 3px 12px; font-size: var(--t-s); color: var(--fg-soft); }
  .foot summary { cursor: pointer; inline-size: max-content; min-block-size: 24px; display: list-item; }
  .foot pre { max-block-size: 300px; overflow: auto; margin: 4px 0 8px; white-space: pre-wrap; overflow-wrap: anywhere; }
  .foot h3 { font-size: var(--t-s); margin-block-start: 4px; }
  .status { display: flex; align-items: center; gap: 6px; padding: 6px 12px; font-size: var(--t-s); color: var(--fg-soft); border-block-start: 1px solid var(--line); }
  .status:empty { display: none; }
  .status.bad { color: var(--danger); background: var(--danger-wash); } .status.good { color: var(--ok); }

  .modal { z-index: 1; background: var(--bg-raised); display: flex; flex-direction: column; overflow: auto; }
  .modal > .bar { display: flex; align-items: center; gap: 10px; padding: 6px 6px 6px 14px; border-block-end: 1px solid var(--line); position: sticky; inset-block-start: 0; background: var(--bg-raised); z-index: 2; }
  .modal > .bar .title { font-weight: 600; min-inline-size: 0; overflow-wrap: anywhere; } .modal > .bar .by { flex: 1 1 0; }
  .modal > .inside { padding: 14px; }

  /* Layout. */
  .flex-row, .flex-column { display: flex; gap: 8px 12px; min-inline-size: 0; }
  .flex-column { flex-direction: column; gap: 10px; }
  .cell { min-inline-size: 0; }
  .flex-row > .cell { flex: 0 1 auto; }
  .flex-row.j-stretch > .cell { flex: 1 1 0; }
  .j-center { justify-content: center; } .j-end { justify-content: flex-end; } .j-spaceAround { justify-content: space-around; } .j-spaceBetween { justify-content: space-between; } .j-spaceEvenly { justify-content: space-evenly; }
  .a-start { align-items: flex-start; } .a-center { align-items: center; } .a-end { align-items: flex-end; } .a-stretch { align-items: stretch; }
  .flex-row.a-stretch > .cell > .sheet { block-size: 100%; }
  .flex-row.always { flex-wrap: wrap; }
  @container (max-width: 520px) {
    .flex-row.wraps { flex-wrap: wrap; }
    .flex-row.wraps > .cell { flex: 0 1 auto !important; max-inline-size: 100%; }
    .flex-row.wraps > .cell:has(> .sheet, > .flex-column) { flex: 1 1 96px !important; }
    .flex-row.wraps > .cell:has(> .field) { flex: 1 1 200px !important; }
    .flex-row.wraps > .cell:has(> .chart, > plexus-surface-table, > plexus-surface-files, > plexus-surface-terminal, > .changes, > .code-box, > .markdown, > .tabs) { flex: 1 1 100% !important; }
  }
  .items.down { display: flex; flex-direction: column; gap: 8px; }
  .items.across { display: flex; gap: 12px; overflow-x: auto; padding-block-end: 4px; }
  .items.across > .cell { flex: 0 0 auto; max-inline-size: 80%; }
  .sheet { border: 1px solid var(--line); border-radius: var(--r-m); padding: 12px; background: var(--bg-raised); box-shadow: var(--shadow-1); min-inline-size: 0; }
  .drawn > .sheet { border: 0; padding: 0; box-shadow: none; background: none; }
  .rule { block-size: 1px; background: var(--line); margin-block: 2px; }
  .rule.upright { inline-size: 1px; block-size: auto; align-self: stretch; min-block-size: 16px; margin: 0; }
  .cell:has(> .rule.upright) { display: flex; }
  .tab-list { display: flex; gap: 2px; border-block-end: 1px solid var(--line); overflow-x: auto; scrollbar-width: none; margin-block-end: 10px; }
  .tab-list button { border: 0; border-block-end: 2px solid transparent; border-radius: 0; background: none; color: var(--fg-soft); flex: none; }
  .tab-list button[aria-selected="true"] { color: var(--fg); border-block-end-color: var(--accent); font-weight: 600; }
  .tab-list button:focus-visible { outline-offset: -2px; }

  /* Text and pictures. */
  .text { overflow-wrap: anywhere; unicode-bidi: plaintext; text-align: start; line-height: 1.5; white-space: pre-line; }
  .text .prose { font-size: inherit; line-height: inherit; white-space: normal; } .prose > :last-child { margin-block-end: 0; } .prose > :first-child { margin-block-start: 0 !important; }
  .text.h1 { font-size: 1.5rem; font-weight: 650; line-height: 1.25; letter-spacing: -0.015em; } .text.h2 { font-size: 1.25rem; font-weight: 640; line-height: 1.3; letter-spacing: -0.01em; } .text.h3 { font-size: 1.05rem; font-weight: 620; line-height: 1.35; }
  .text.h4 { font-size: var(--t-l); font-weight: 600; } .text.h5 { font-size: var(--t-m); font-weight: 600; } .text.caption { font-size: var(--t-s); color: var(--fg-mute); }
  .markdown .prose { font-size: var(--t-m); }
  .icon { display: inline-flex; align-items: center; min-block-size: 20px; color: var(--fg-soft); vertical-align: middle; }
  .no-icon { font-size: var(--t-s); color: var(--fg-mute); border: 1px dashed var(--line-strong); border-radius: 4px; padding: 0 5px; }
  .image { display: block; max-inline-size: 100%; border-radius: var(--r-s); max-block-size: 480px; }
  .image.icon { inline-size: 24px; block-size: 24px; min-block-size: 0; } .image.avatar { inline-size: 40px; block-size: 40px; border-radius: 50%; object-fit: cover; } .image.smallFeature { inline-size: 96px; } .image.mediumFeature { inline-size: 240px; } .image.largeFeature { inline-size: 480px; } .image.header { inline-size: 100%; max-block-size: 200px; object-fit: cover; }
  .fit-contain { object-fit: contain; } .fit-cover { object-fit: cover; } .fit-fill { object-fit: fill; } .fit-none { object-fit: none; } .fit-scaleDown { object-fit: scale-down; }
  .video { display: block; inline-size: 100%; max-block-size: 400px; border-radius: var(--r-s); background: #000; }
  .sound { display: flex; flex-direction: column; gap: 4px; } audio { inline-size: 100%; max-inline-size: 420px; }
  .elsewhere { display: flex; gap: 8px; padding: 8px 10px; border: 1px dashed var(--line-strong); border-radius: var(--r-s); font-size: var(--t-s); overflow-wrap: anywhere; } .elsewhere > svg { flex: none; margin-block-start: 2px; color: var(--fg-mute); }
  .elsewhere a { text-decoration: underline; }
  .dead { color: var(--fg-mute); font-family: var(--mono); overflow-wrap: anywhere; }

  /* Buttons and fields. */
  .pressed { display: inline-flex; flex-direction: column; align-items: flex-start; gap: 3px; max-inline-size: 100%; }
  .press { max-inline-size: 100%; white-space: normal; padding-block: 5px; text-align: center; overflow-wrap: anywhere; }
  .press .text { font: inherit; color: inherit; } .press .icon { color: inherit; } .press .flex-row { align-items: center; }
  .bare { border: 0; background: none; padding: 0; font: inherit; font-weight: 400; text-align: start; white-space: normal; min-block-size: 0; max-inline-size: 100%; }
  .hint { color: var(--fg-mute); font-size: var(--t-s); overflow-wrap: anywhere; }
  .pressed > .ghost + .hint { padding-inline-start: 12px; }
  .address { font-family: var(--mono); font-size: var(--t-xs); }
  .field { display: flex; flex-direction: column; gap: 4px; min-inline-size: 0; max-inline-size: 560px; }
  .field > label:not(.check), .field legend, .between > label { font-weight: 550; overflow-wrap: anywhere; }
  .field legend { padding: 0; margin-block-end: 4px; }
  .field .check span, .pick span { overflow-wrap: anywhere; min-inline-size: 0; }
  .field textarea { resize: vertical; min-block-size: 72px; }
  .field input[readonly], .field textarea[readonly] { background: var(--bg-sunken); color: var(--fg-soft); }
  .field input[aria-invalid="true"], .field textarea[aria-invalid="true"] { border-color: var(--danger); }
  .field .short { max-inline-size: 240px; } .field .narrow { max-inline-size: 280px; margin-block-end: 6px; }
  .field input[type="range"] { appearance: none; padding: 0; border: 0; border-radius: 8px; min-block-size: 24px; cursor: pointer; background: linear-gradient(var(--accent-solid) 0 0) 0 50% / var(--at, 0%) 5px no-repeat, linear-gradient(var(--line-strong) 0 0) 0 50% / 100% 5px no-repeat; }
  .field input[type="range"]::-webkit-slider-thumb { appearance: none; inline-size: 18px; block-size: 18px; border: 2px solid var(--bg-raised); border-radius: 50%; background: var(--accent-solid); }
  .field input[type="range"]::-moz-range-thumb { inline-size: 14px; block-size: 14px; border: 2px solid var(--bg-raised); border-radius: 50%; background: var(--accent-solid); }
  .field input[type="range"]:disabled { opacity: 0.6; cursor: not-allowed; }
  .wrong { display: flex; flex-direction: column; color: var(--danger); font-size: var(--t-s); }
  .secret { display: flex; gap: 7px; padding: 7px 10px; border-radius: var(--r-s); background: var(--warn-wash); color: var(--warn); border: 1px solid var(--warn-line); font-size: var(--t-s); } .secret svg { flex: none; margin-block-start: 2px; }
  .between { display: flex; align-items: baseline; justify-content: space-between; gap: 10px; min-inline-size: 0; }
  .between output { font-weight: 600; font-variant-numeric: tabular-nums; } .ends { color: var(--fg-mute); font-size: var(--t-xs); }
  .choices { display: flex; flex-direction: column; gap: 4px; max-block-size: 320px; overflow: auto; padding: 3px; margin: -3px; }
  .choices.chips { flex-direction: row; flex-wrap: wrap; gap: 6px; }
  .pick { position: relative; display: inline-flex; align-items: center; min-block-size: var(--control); padding: 2px 12px; border: 1px solid var(--line-strong); border-radius: 999px; cursor: pointer; max-inline-size: 100%; }
  .pick input { position: absolute; inset: 0; inline-size: 100%; block-size: 100%; opacity: 0; margin: 0; cursor: pointer; }
  .pick:has(:checked) { background: var(--accent-wash); border-color: var(--accent); color: var(--accent); font-weight: 600; } .pick:has(:focus-visible) { outline: var(--focus); outline-offset: 1px; } .pick:has(:disabled) { opacity: 0.6; cursor: not-allowed; }

  /* Code, changes, progress. */
  .numbered { display: grid; grid-template-columns: auto minmax(0, 1fr); } .numbers { white-space: pre; text-align: end; color: var(--fg-mute); font: 0.8125rem/1.55 var(--mono); padding: 2px 0 11px 12px; user-select: none; }
  .code-box figure.code pre { font-size: 0.8125rem; } .code-box figure.code code { font-size: inherit; overflow-wrap: normal; white-space: pre; }
  .path { display: flex; align-items: center; gap: 6px; color: var(--fg-soft); font-size: var(--t-s); margin-block-end: 4px; min-inline-size: 0; } .path svg { flex: none; }
  .diff .hunk { color: var(--info); background: var(--info-wash); padding-inline-start: 10px; } .diff .head { color: var(--fg-mute); background: var(--bg-sunken); padding-inline-start: 10px; }
  .progress .bar { block-size: 7px; margin-block-start: 4px; border-radius: 4px; background: var(--bg-active); overflow: hidden; } .progress .bar i { display: block; block-size: 100%; border-radius: 4px; background: var(--accent-solid); }
  .progress.done .bar i { background: var(--ok-solid); } .progress.failed .bar i { background: var(--danger-solid); } .progress.waiting .bar i { background: var(--fg-mute); }
  .progress.done .nums { color: var(--ok); } .progress.failed .nums { color: var(--danger); }
  .progress .nums { display: inline-flex; align-items: center; gap: 5px; flex: none; }
  .progress .moving i { inline-size: 30%; animation: move 1.6s ease-in-out infinite alternate; }
  /* Moved, not laid out again: from one end to the other are seven thirds of it. */
  .progress .moving i:dir(rtl) { animation-name: back; }
  @keyframes move { to { transform: translateX(233.3%); } }
  @keyframes back { to { transform: translateX(-233.3%); } }
  .problem { color: var(--fg-mute); font-size: var(--t-s); overflow-wrap: anywhere; }
  .unknown { border: 1px dashed var(--line-strong); border-radius: var(--r-s); padding: 6px 10px; font-size: var(--t-s); color: var(--fg-soft); } .unknown summary { cursor: pointer; overflow-wrap: anywhere; min-block-size: 24px; } .unknown pre { margin-block-start: 6px; }
`;
