// The styles of a session. Selectors are simple, because there are many rows.
import { css } from 'lit';

export const style = css`
  :host { display: flex; flex-direction: column; height: 100%; min-height: 0; position: relative; container-type: inline-size; background: var(--bg); }
  .glyph { display: inline-flex; flex: none; color: var(--fg-mute); }
  .glyph svg { display: block; }

  header .silent { flex: 0 1 auto; min-width: 0; overflow: hidden; text-overflow: ellipsis; }
  header { display: flex; align-items: center; gap: var(--s2); padding: 6px 12px 6px var(--s5); min-height: 50px; border-bottom: 1px solid var(--line); background: var(--bg); flex: none; min-width: 0; }
  header .titles { flex: 1 1 0; min-width: 0; }
  header h1 { font-size: var(--t-l); line-height: 1.35; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  header .facts { display: flex; gap: 6px; color: var(--fg-mute); font-size: var(--t-s); white-space: nowrap; overflow: hidden; }
  header .agent { color: var(--fg-soft); flex: none; }
  header .back { display: none; }
  .lookers { display: inline-flex; align-items: center; gap: 5px; color: var(--fg-mute); font-size: var(--t-s); max-width: 220px; }
  /* Beside the title there is no room for it on a phone: it stands before the folder. */
  header .stuck { display: none; color: var(--warn); font-weight: 600; overflow: hidden; text-overflow: ellipsis; }
  @container (max-width: 599px) { header .silent { display: none; } header .stuck { display: inline; } header { padding: max(4px, env(safe-area-inset-top)) 4px 4px; gap: 2px; } header .back { display: inline-flex; } .lookers .names { display: none; } }
  .meter { display: inline-flex; align-items: center; gap: 6px; color: var(--fg-mute); font-size: var(--t-s); white-space: nowrap; }
  .meter .bar { width: 44px; height: 5px; border-radius: 3px; background: var(--bg-active); overflow: hidden; }
  .meter .bar i { display: block; height: 100%; background: var(--accent); border-radius: 3px; }
  .meter.low .bar i { background: var(--danger); }
  @container (max-width: 560px) { .meter .bar { display: none; } }

  .split { flex: 1 1 0; min-height: 0; display: flex; container: split / size; }
  .main { flex: 1 1 0; min-width: 0; min-height: 0; display: flex; flex-direction: column; position: relative; }
  aside { width: 300px; flex: none; border-left: 1px solid var(--line); padding: var(--s4); overflow: auto; display: none; }
  @container (min-width: 1080px) { aside.has { display: block; } }

  .moved { display: flex; align-items: center; flex-wrap: wrap; gap: 4px 8px; padding: 6px 10px; border: 1px dashed var(--line-strong); border-radius: var(--r-s); font-size: var(--t-s); }
  .moved .name { font-weight: 600; overflow-wrap: anywhere; }
  .switch { display: flex; gap: 2px; flex: none; overflow-x: auto; scrollbar-width: none; border-bottom: 1px solid var(--line); padding: 0 var(--s2); }
  .switch button { flex: 0 0 auto; max-width: 220px; border: 0; border-bottom: 2px solid transparent; border-radius: 0; background: none; color: var(--fg-soft); justify-content: flex-start; }
  .switch bdi { overflow: hidden; text-overflow: ellipsis; }
  .switch button[aria-selected="true"] { color: var(--fg); border-bottom-color: var(--accent); font-weight: 600; }
  .switch button:focus-visible { outline-offset: -2px; }
  .pinned { min-width: 0; min-height: 0; display: none; flex-direction: column; }
  .pinned .place { flex: 1 1 0; min-height: 0; overflow-y: auto; overscroll-behavior: contain; padding: var(--s3); }
  .pinned .switch { display: none; }
  @container (max-width: 959.98px) {
    .split.turned { flex-direction: column; }
    .split.turned .pinned { display: flex; flex: 1 1 0; }
    .split.turned .main { order: 2; flex: 0 0 auto; max-height: 70%; }
    .split.turned .view { display: none; }
    .split.turned plexus-dock { max-height: none; }
  }
  /* On a phone the surface has all of it; what the agent asks still comes up over it. */
  @container (max-width: 599px) {
    .split.turned plexus-composer { display: none; }
    .split.turned .pinned .place { padding: var(--s2); padding-block-end: max(var(--s2), env(safe-area-inset-bottom)); }
    .split.turned plexus-dock { padding-block-end: env(safe-area-inset-bottom); }
  }
  @container (min-width: 960px) {
    .switch.all { display: none; }
    .pinned { display: flex; flex: 0 0 clamp(400px, 42%, 760px); border-left: 1px solid var(--line); }
    .pinned .switch { display: flex; }
  }
  @container (min-width: 960px) and (max-width: 1500px) { .pinned + aside.has { display: none; } }

  .view { flex: 1 1 0; min-height: 0; display: flex; flex-direction: column; position: relative; }
  .scroller { flex: 1 1 0; min-height: 0; overflow-y: auto; overflow-x: hidden; overflow-anchor: none; overscroll-behavior: contain; padding: var(--s4) var(--s4) var(--s5); outline-offset: -2px !important; }
  .feed { max-width: 860px; margin: 0 auto; }
  @container (min-width: 1500px) { .feed { max-width: 1020px; } }
  .row { display: flow-root; padding: 3px 0; scroll-margin: 40px; border-radius: var(--r-s); position: relative; contain: layout style; }
  .row[hidden] { display: none; }
  .row[data-depth] { margin-inline-start: 20px; } .row[data-depth="2"] { margin-inline-start: 40px; } .row[data-depth="3"] { margin-inline-start: 60px; } .row[data-depth="4"] { margin-inline-start: 80px; }
  .within { color: var(--fg-mute); font-size: var(--t-s); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 3em; }
  .row.selected::before { content: ""; position: absolute; inset: 4px auto 4px -10px; width: 3px; border-radius: 2px; background: var(--accent); }
  .row.target { animation: found 2.4s ease-out 1; }
  .row.target::before { content: ""; position: absolute; inset: 4px auto 4px -10px; width: 3px; border-radius: 2px; background: var(--warn); }
  @keyframes found { from { background: var(--warn-wash); } to { background: transparent; } }
  .row:focus-visible { outline-offset: 2px; }

  .who { display: flex; align-items: center; gap: 8px; font-size: var(--t-s); color: var(--fg-mute); min-height: 22px; }
  .who .name { font-weight: 600; color: var(--fg-soft); flex: none; }
  .who .fill { flex: 1; }
  a.at, .at { color: var(--fg-mute); font-size: var(--t-xs); font-variant-numeric: tabular-nums; white-space: nowrap; }
  @media (hover: hover) { .hover { opacity: 0; } .row:hover .hover, .row:focus-within .hover, .hover:focus-visible { opacity: 1; } }

  .row.user { padding: 14px 0 6px; }
  .bubble { background: var(--accent-wash); border: 1px solid var(--accent-line); border-radius: var(--r-m); padding: 6px 12px 9px; margin-left: min(12%, 96px); }
  .bubble .by { color: var(--fg-soft); min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .bubble .said { font-size: var(--t-l); line-height: 1.55; }
  .said { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }

  .row.agent { padding: 0; }
  .row.agent.first { padding-top: 8px; }
  .quoted { border-left: 2px solid var(--line-strong); padding: 1px 0 1px 14px; }
  .plain { white-space: pre-wrap; padding: 0; }


  .fold-head { display: flex; width: 100%; justify-content: flex-start; gap: 8px; min-height: 30px; padding: 3px 8px; border: 0; background: transparent; color: var(--fg-soft); font-weight: 500; text-align: left; min-width: 0; white-space: nowrap; user-select: text; }
  .fold-head > * { flex: none; }
  .fold-head .preview, .fold-head .title { flex: 0 1 auto; min-width: 0; overflow: hidden; text-overflow: ellipsis; }
  .fold-head .preview { color: var(--fg-mute); font-weight: 400; flex: 1 1 0; }
  .turn { width: 0; height: 0; border: 4px solid transparent; border-left: 5px solid var(--fg-mute); border-right: 0; transition: transform var(--quick); }
  .turn.open { transform: rotate(90deg); }
  .row.thought .name, .row.folded .name { color: var(--fg-mute); }
  .row.thought .prose { color: var(--fg-soft); font-size: var(--t-m); margin: 2px 0 6px 14px; }

  .card { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); overflow: hidden; }
  .card > .fold-head { min-height: 36px; padding: 5px 12px; }
  .card .kind { font-weight: 600; color: var(--fg); }
  .card .title { color: var(--fg-soft); flex: 0 1 auto; }
  .card > .fold-head .chip { flex: 0 4 auto; min-width: 4em; overflow: hidden; text-overflow: ellipsis; }
  .card .meta { color: var(--fg-mute); overflow: hidden; text-overflow: ellipsis; flex: 0 10 auto; min-width: 0; }
  .card .state { margin-left: auto; width: 16px; height: 16px; border-radius: 50%; display: inline-flex; align-items: center; justify-content: center; }
  .state.completed .glyph { color: var(--ok); } .state.failed .glyph, .state.cancelled .glyph { color: var(--danger); }
  .state.pending { border: 2px dotted var(--fg-mute); width: 12px; height: 12px; }
  .state.in_progress { border: 2px solid var(--accent-line); border-top-color: var(--accent); width: 13px; height: 13px; animation: turn 0.9s linear infinite; }
  @keyframes turn { to { transform: rotate(360deg); } }
  .card.failed { border-color: var(--danger-line); }
  .tool-body { border-top: 1px solid var(--line); padding: 10px 12px 12px; display: flex; flex-direction: column; gap: 9px; min-width: 0; }
  .places { display: flex; flex-wrap: wrap; gap: 5px; }
  .places code { background: var(--bg-sunken); border: 1px solid var(--line); border-radius: 4px; padding: 0 6px; font-size: var(--t-s); }
  .dollar { color: var(--fg-mute); user-select: none; }
  .path { display: flex; align-items: center; gap: 6px; font-size: var(--t-s); color: var(--fg-soft); padding-bottom: 5px; }
  .media img { max-width: min(100%, 560px); max-height: 420px; border-radius: var(--r-s); border: 1px solid var(--line); display: block; }
  .media audio { width: min(100%, 420px); }
  .link-chip { display: flex; gap: 7px; align-items: center; padding: 6px 10px; border: 1px solid var(--line); border-radius: var(--r-s); background: var(--bg-raised); font-size: var(--t-s); margin: 3px 0; }
  .link-chip .mono { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }


  .plan-card { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); padding: 7px 12px 10px; }
  .plan-card ol { display: flex; flex-direction: column; gap: 3px; margin-top: 3px; }
  .plan-card li { display: flex; gap: 9px; align-items: flex-start; }
  .plan-card .box { width: 15px; height: 15px; margin-top: 2px; border: 1.5px solid var(--line-strong); border-radius: 4px; flex: none; display: inline-flex; align-items: center; justify-content: center; }
  .plan-card li.completed { color: var(--fg-mute); } .plan-card li.completed .box { border-color: var(--ok); } .plan-card li.completed .glyph { color: var(--ok); }
  .plan-card li.in_progress { font-weight: 550; } .plan-card li.in_progress .box { border-color: var(--accent); background: var(--accent-wash); }
  aside .plan-card { border: 0; background: none; padding: 0; }

  .row.request .name.allow { color: var(--ok); } .row.request .name.deny { color: var(--danger); } .row.request .name { font-weight: 600; }
  .row.request pre { margin: 2px 0 6px 20px; } .reason { padding: 2px 20px; color: var(--fg-soft); } .tool-body .reason { padding: 0; }

  .row.unsaid { display: none !important; }
  .row.line { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; padding: 5px 8px; color: var(--fg-mute); font-size: var(--t-s); }
  .row.line .note { flex: 1; display: flex; flex-direction: column; gap: 4px; }
  .row.line .note .said { color: var(--fg); font-size: var(--t-m); }
  .row.line.end { padding: 12px 0 10px; }
  .row.line.end .rule { flex: 1; height: 1px; background: var(--line); }
  .row.line.end.bad .label { color: var(--danger); font-weight: 600; }
  .row.line .message { flex-basis: 100%; text-align: center; color: var(--fg-soft); }

  .jump { position: absolute; right: 0; left: 0; bottom: 14px; margin: 0 auto; width: max-content; border-radius: 18px; box-shadow: var(--shadow-2); z-index: 2; background: var(--bg-raised); }
  .find { position: absolute; top: 8px; right: 16px; z-index: 3; display: flex; gap: 4px; align-items: center; padding: 6px; box-shadow: var(--shadow-2); }
  .find input { width: min(220px, 40vw); } .find .count { min-width: 74px; text-align: center; color: var(--fg-mute); font-size: var(--t-s); }
  .top-note { display: flex; gap: 10px; align-items: center; justify-content: center; flex-wrap: wrap; color: var(--fg-mute); font-size: var(--t-s); padding: 6px 10px 10px; }
  .void { flex: 1; display: flex; flex-direction: column; align-items: center; justify-content: center; gap: 6px; color: var(--fg-mute); padding: 24px; text-align: center; position: absolute; inset: 0; pointer-events: none; }
  .void h2 { color: var(--fg-soft); }
  .void a { pointer-events: auto; }
  .stale .scroller { opacity: 0.92; }
  ::highlight(plexus-found) { background-color: light-dark(#ffe08a, #7a5b00); color: inherit; }
  ::highlight(plexus-found-now) { background-color: light-dark(#ff9f43, #c77700); color: #000; }

  .compose { flex: none; padding: 0 var(--s4) max(var(--s3), env(safe-area-inset-bottom)); }
  .compose-inner { max-width: 860px; margin: 0 auto; display: flex; flex-direction: column; gap: 6px; position: relative; }
  .queue { display: flex; flex-direction: column; gap: 4px; max-height: 24vh; overflow-y: auto; }
  .queue li { display: flex; align-items: center; gap: 8px; border: 1px dashed var(--line-strong); border-radius: var(--r-s); padding: 3px 4px 3px 10px; font-size: var(--t-s); color: var(--fg-soft); }
  .queue li span { flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .box-in { border: 1px solid var(--line-strong); border-radius: var(--r-l); background: var(--bg-raised); box-shadow: var(--shadow-1); }
  .box-in:focus-within { border-color: var(--accent); }
  .box-in textarea { border: 0; background: transparent; resize: none; display: block; field-sizing: content; padding: 11px 14px 4px; min-height: 42px; max-height: 38vh; outline: none !important; font-size: var(--t-l); overflow-y: auto; }
  @media (pointer: coarse) { .box-in textarea { font-size: 16px; } }
  .tools { display: flex; align-items: center; gap: 6px; padding: 4px 8px 8px; flex-wrap: wrap; }
  .tools select { width: auto; max-width: 180px; min-height: 28px; padding: 2px 6px; font-size: var(--t-s); color: var(--fg-soft); border-color: transparent; background: transparent; }
  .tools select:hover { background: var(--bg-hover); }
  .tools .fill { flex: 1; }
  .tools button { min-height: 30px; }
  @container (max-width: 560px) { .tools .label { display: none; } .tools select { max-width: 104px; } .tools { gap: 3px; } }
  @media (pointer: coarse) { .tools button { min-height: 40px; } }
  .shots { display: flex; gap: 6px; padding: 8px 12px 0; flex-wrap: wrap; }
  .shots figure { position: relative; } .shots img { height: 56px; border-radius: var(--r-s); border: 1px solid var(--line); display: block; }
  .shots button { position: absolute; top: -6px; right: -6px; width: 22px; min-height: 22px; padding: 0; border-radius: 50%; }
  .offers { position: absolute; bottom: calc(100% - 40px); left: 0; right: 0; max-height: 280px; overflow: auto; padding: 4px; z-index: 4; bottom: 100%; margin-bottom: 6px; box-shadow: var(--shadow-2); }
  .offers button { display: flex; width: 100%; justify-content: flex-start; border: 0; background: transparent; gap: 10px; font-weight: 400; min-height: 32px; }
  .offers button[aria-selected="true"] { background: var(--accent-wash); }
  @media (pointer: coarse) { .offers button { min-height: 44px; } }
  .offers .note-line { padding: 6px 10px; color: var(--fg-mute); font-size: var(--t-s); }
  .offers svg { flex: none; color: var(--fg-mute); }
  .offers .name { font-weight: 600; font-family: var(--mono); font-size: var(--t-s); } .offers .desc { color: var(--fg-mute); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
  .trouble { color: var(--danger); font-size: var(--t-s); }
  .ended { flex-wrap: wrap; color: var(--fg); }
  .locked { display: flex; align-items: center; justify-content: center; gap: 8px; color: var(--fg-mute); border: 1px solid var(--line); border-radius: var(--r-m); padding: 10px; background: var(--bg-sunken); }
  @container (min-width: 1500px) { .compose-inner { max-width: 1020px; } }
`;
