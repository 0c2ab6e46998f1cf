import { css } from 'lit';

/** Width of the list from which the open card stands beside the rows, px; narrower it stands below them. */
export const BESIDE_PX = 760;

/** How the list looks. The heights of rows are those of `ROW_REM` and `HEAD_REM` in list.ts: no row is measured. */
export const listStyles = css`
  :host { display: flex; flex-direction: column; position: relative; min-width: 0; min-height: 0; block-size: 100%; container-type: size; }
  .split { flex: 1 1 0; min-block-size: 0; display: flex; flex-direction: column; }
  .side { flex: 1 1 0; min-block-size: 0; min-inline-size: 0; display: flex; flex-direction: column; position: relative; }
  .bar { flex: none; display: flex; align-items: center; gap: 8px; block-size: 3.5rem; padding: 0 12px 0 0; border-block-end: 1px solid var(--line); min-inline-size: 0; }
  .bar .title { flex: 1 1 0; min-inline-size: 0; display: flex; align-items: baseline; gap: 10px; white-space: nowrap; overflow: hidden; }
  .bar .title strong { font-weight: 620; font-size: var(--t-l); }
  /* The buttons say the number, too. */
  @container (max-width: 459px) { .bar strong .word { display: none; } }
  .bar button { flex: none; min-block-size: 40px; }
  .bar button.clear { inline-size: 40px; padding: 0; }
  .bar select { inline-size: auto; flex: 0 1 auto; min-inline-size: 0; border-color: transparent; background: transparent; color: var(--fg-soft); text-align: end; }
  .bar select:hover { background: var(--bg-hover); }
  @media (pointer: coarse) { .bar button { min-block-size: 44px; } .bar button.clear { inline-size: 44px; } .bar select { min-block-size: 44px; } }

  .scroller { flex: 1 1 0; min-block-size: 0; overflow-y: auto; overflow-x: hidden; overscroll-behavior: contain; overflow-anchor: none; }
  .rows { position: relative; contain: layout style; }
  .row { position: absolute; inset-inline: 0; block-size: 3rem; display: flex; align-items: stretch; border-block-end: 1px solid var(--line); box-sizing: border-box; cursor: pointer; contain: strict; background: var(--bg-raised); }
  .row.head { block-size: 2.5rem; background: var(--bg-sunken); }
  @media (pointer: coarse) { .row { block-size: 3.5rem; } .row.head { block-size: 2.75rem; } }
  @media (hover: hover) { .row:hover { background: var(--bg-hover); } }
  .row[aria-selected='true'] { background: var(--accent-wash); }
  .row[aria-current='true'] { background: var(--bg-active); box-shadow: inset 3px 0 var(--accent); }
  .row:focus-visible { outline: var(--focus); outline-offset: -2px; border-radius: 0; }
  .row.in .tick { padding-inline-start: 14px; }
  .tick { flex: none; inline-size: 44px; display: grid; place-items: center; cursor: pointer; box-sizing: border-box; }
  .tick input { inline-size: 17px; block-size: 17px; cursor: pointer; }
  .row.in .tick { inline-size: 54px; }
  .cell { flex: 1 1 0; min-inline-size: 0; display: flex; align-items: center; gap: 10px; }
  .words { flex: 1 1 0; min-inline-size: 0; display: flex; flex-direction: column; justify-content: center; gap: 1px; padding-inline-end: 12px; }
  .one, .two { display: flex; align-items: baseline; gap: 6px; min-inline-size: 0; white-space: nowrap; line-height: 1.4; }
  .one { font-size: var(--t-m); }
  .two { font-size: var(--t-s); color: var(--fg-mute); }
  .asked { flex: 0 1 auto; min-inline-size: 0; display: flex; unicode-bidi: isolate; direction: ltr; }
  .asked bdi { direction: ltr; white-space: pre; }
  .asked .from { flex: 0 1 auto; min-inline-size: 0; overflow: hidden; text-overflow: ellipsis; }
  .asked .to { flex: 0 0 auto; max-inline-size: 80%; overflow: hidden; text-overflow: ellipsis; }
  .asked.code { font-family: var(--mono); font-size: 0.95em; }
  .row[data-unread] .asked { font-weight: 650; }
  .verb, .more { flex: none; color: var(--fg-mute); }
  /* The reason is the last to lose letters. */
  .why { flex: 1 1 auto; min-inline-size: 0; overflow: hidden; text-overflow: ellipsis; }
  .risk { flex: none; display: inline-flex; align-items: baseline; gap: 4px; font-weight: 600; }
  .risk svg { inline-size: 12px; block-size: 12px; align-self: center; }
  .risk[data-risk='low'] { color: var(--ok); }
  .risk[data-risk='elevated'] { color: var(--warn); }
  .risk[data-risk='danger'] { color: var(--danger); }
  /* What does not fit whole wraps out of sight. */
  .where { flex: 0 1000000 auto; min-inline-size: 0; block-size: 1.4em; overflow: hidden; display: flex; flex-wrap: wrap; justify-content: flex-end; }
  .where::before { content: '\\200b'; }
  .where > * { flex: none; }
  @container (max-width: 459px) { .two .risk svg { display: none; } }
  .age { flex: none; font-variant-numeric: tabular-nums; }
  .row[data-state='closed'] { color: var(--fg-mute); }
  .row[data-state='closed'] .asked { font-weight: 400; }
  .outcome { flex: 1 1 0; min-inline-size: 0; overflow: hidden; text-overflow: ellipsis; font-weight: 600; }
  .outcome[data-sense='allow'] { color: var(--ok); }
  .outcome[data-sense='deny'] { color: var(--danger); }
  .row.head .words { flex-direction: row; justify-content: flex-start; align-items: center; gap: 8px; }
  .row.head .one { flex: 0 1 auto; font-weight: 600; }
  .row.head .count { flex: none; color: var(--fg-mute); font-size: var(--t-s); white-space: nowrap; }
  .fold { flex: none; inline-size: 14px; display: grid; place-items: center; color: var(--fg-mute); transition: transform var(--quick); }
  .row[aria-expanded='true'] .fold { transform: rotate(90deg); }

  .new { position: absolute; inset-block-end: 12px; inset-inline: 0; display: flex; justify-content: center; pointer-events: none; z-index: 2; }
  .new button { pointer-events: auto; min-block-size: 44px; padding: 8px 18px; border-radius: 999px; box-shadow: var(--shadow-2); font-weight: 600; background: var(--accent-solid); color: var(--on-accent); border-color: transparent; }
  .new button:hover { background: var(--accent-solid-hover); }

  /* Over the rows: a sheet, filled, so that the answers are where the thumb is. */
  .pane { position: absolute; inset: 0; z-index: 3; min-inline-size: 0; display: flex; flex-direction: column; background: var(--bg-raised); }
  .pane[data-shut] { display: none; }
  /* What was answered elsewhere is one line below the rows. */
  .pane[data-ended] { position: static; flex: none; border-block-start: 1px solid var(--line-strong); }
  .pane[data-ended] plexus-card { flex: none; }
  .steps { flex: none; display: flex; align-items: center; gap: 2px; padding-inline: 12px 4px; color: var(--fg-mute); font-size: var(--t-s); }
  .steps .nth { flex: 1; min-inline-size: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .steps button { inline-size: 44px; min-block-size: 40px; padding: 0; }
  .pane plexus-card { flex: 1 1 0; --card-line: transparent; --card-corner: 0; }
  @container (max-width: 480px) { .bar { gap: 4px; padding-inline-end: 4px; } .bar button { padding: 0 8px; } .bar select { max-inline-size: 10.5rem; padding-inline: 4px; } ::slotted(.count) { display: none; } }
  .none { display: none; }

  @container (min-width: 760px) {
    .split { flex-direction: row; }
    .side { flex: 0 0 clamp(340px, 46%, 640px); border-inline-end: 1px solid var(--line); }
    .pane, .pane[data-shut], .pane[data-ended] { position: static; border: 0; display: flex; flex: 1 1 0; background: none; padding: 16px 20px 20px; overflow: hidden; }
    .steps { display: none; }
    .pane plexus-card { flex: 0 1 auto; inline-size: 100%; max-inline-size: 820px; margin-inline: auto; --card-line: var(--line); --card-corner: var(--r-l); }
    .pane .none { display: block; margin: auto; color: var(--fg-mute); }
  }
  @media (forced-colors: active) { .row[aria-current='true'] { outline: 2px solid Highlight; outline-offset: -2px; } }
`;
