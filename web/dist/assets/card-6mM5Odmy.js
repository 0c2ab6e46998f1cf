import{t as e}from"./rolldown-runtime-DK3Fl9T5.js";import{_ as t,c as n,f as r,s as i,u as a}from"./libraries-MxmsVMue.js";import{At as o,C as s,E as c,Et as l,S as ee,St as te,T as u,U as ne,_ as d,b as f,f as p,ft as m,g as h,h as g,ht as _,lt as re,m as v,nt as y,ot as ie,p as ae,tt as b,vt as x,w as S,wt as oe,x as se,xt as ce,y as C,yt as w}from"./frame-CWJtEa8y.js";import{t as le}from"./diff-DRnAoLIN.js";var ue=[[`gemini`,0],[`claude`,1],[`opencode`,2],[`codex`,3],[`copilot`,4],[`qwen`,5],[`grok`,6],[`cursor`,7]],de=8;function fe(e){let t=ue.find(([t])=>e.startsWith(t));if(t)return t[1];let n=0;for(let t of e)n=(n*31+(t.codePointAt(0)??0))%65521;return n%de}function pe(e){let t=x(e),n=/[\p{L}\p{N}]/u.exec(t)?.[0].toUpperCase()??`?`;return a`<span class="face" role="img" aria-label=${t} title=${t} data-hue=${fe(e.toLowerCase())}>${n}</span>`}var me=r`
  .face { inline-size: 20px; block-size: 20px; border-radius: 6px; display: inline-grid; place-items: center; flex: none; color: #fff; font: 700 0.6875rem/1 var(--sans); user-select: none; background: #5b6270; }
  .face[data-hue='0'] { background: #2f6ae0; }
  .face[data-hue='1'] { background: #b4532f; }
  .face[data-hue='3'] { background: #0b7a5c; }
  .face[data-hue='4'] { background: #7c3aed; }
  .face[data-hue='5'] { background: #0e7490; }
  .face[data-hue='6'] { background: #be2a6b; }
  .face[data-hue='7'] { background: #8a5a00; }
`,T=_.common,he=1e3,E=60*he,D=60*E,ge=24*D;function O(e){let t=Math.max(0,e);return t<E?T.seconds(Math.round(t/he)):t<D?T.minutes(Math.floor(t/E)):t<2*ge?T.hours(Math.floor(t/D)):T.days(Math.floor(t/ge))}var k=_.request;function _e(){let e=crypto.getRandomValues(new Uint8Array(16));return`web-${Array.from(e,e=>e.toString(16).padStart(2,`0`)).join(``)}`}var A=e=>typeof e==`object`&&!!e&&`resolved_by`in e&&`state`in e;function ve({status:e,body:t}){if(e>=200&&e<300)return A(t)?t.won===!1?{is:`lost`,receipt:t}:{is:`won`,receipt:t}:{is:`unknown`};let n=typeof t==`object`&&t?t:{},r=typeof n.code==`string`?n.code:``;return e===409&&r===`already_resolved`&&A(t)?{is:`lost`,receipt:t}:e===410?{is:`closed`,receipt:A(t)?t:null,words:x(n.detail)||k.gone}:r?{is:`refused`,code:r,words:k.refusals[r]??k.refused(x(n.detail??n.title)||String(e))}:{is:`unknown`}}var ye=class{constructor(e,t,n){this.request=e,this.post=n,this.key=_e(),this.answer=e.digest?{...t,digest:e.digest}:t}async send(){try{return ve(await this.post(this.request.request_id,this.answer,this.key))}catch{return{is:`unknown`}}}},j=ne.guardMs,be=2,M=class{#e;#t=null;constructor(e){this.#e=e}again(e){this.#e=e}seen(e,t){let n=this.#t,r=!n||Math.abs(n.top-e.top)>=be||Math.abs(n.left-e.left)>=be;return r&&(this.#t=e,this.again(t)),r}left(e){return Math.max(0,this.#e+j-e)}armed(e){return e-this.#e>=j}},N=_.request.rows,P=320,xe=40,F=e=>x(e.slice(0,P)),I=(e,t,n={})=>({verb:e,head:F(t),tail:``,more:``,quoted:!1,...n}),Se=/\nin [^\n]*$/;function Ce(e){let t=F(e),n=t.slice(t.lastIndexOf(`/`)+1);return n&&n.length<=xe&&n.length<t.length?{head:t.slice(0,-n.length),tail:n}:{head:t,tail:``}}function L(e){let{subject:t,display:n}=e;switch(t?.type){case`command`:return I(``,t.argv?.length?t.argv.join(` `).slice(0,P):n.slice(0,P).replace(Se,``));case`edit`:{let[e]=t.files;if(!e)return I(N.edit,n);let r=t.files.length+(t.more??0)-1,i=e=>t.files.reduce((t,n)=>t+(n[e]??0),0);return{...I(N.edit,``),...Ce(e.path),more:[r>0?N.moreFiles(r):``,N.counts(i(`added`),i(`removed`))].filter(Boolean).join(` `)}}case`fetch`:return I(N.fetch,t.url);case`plan`:return I(N.plan,n);case`question`:{let[e]=t.questions;return I(N.question,e?.text||n,{quoted:!0,more:t.questions.length>1?N.questions(t.questions.length):``})}case`unreadable`:return I(N.unreadable,n);case`tool`:case void 0:}let r=e.type===`prompt`||e.type===`pick`;return I(r?N.question:``,n||e.title,{quoted:r})}function R(e){let{verb:t,head:n,tail:r,more:i,quoted:a}=L(e);return[t,a?`“${n}${r}”`:`${n}${r}`,i].filter(Boolean).join(` `)}var we=new WeakMap;function Te(e){let t=we.get(e);if(t!==void 0)return t;let{subject:n}=e,r=e.display_truncated?``:n?.type===`command`&&n.argv?.length?`command ${JSON.stringify(n.argv)}`:`${n?.type??e.type} ${e.display}`;return we.set(e,r),r}var z=e=>e.replace(/[`'"“”]/g,``).replace(/\s+/g,` `).trim().toLowerCase();function Ee(e){let t=z(`${e.display} ${e.subject?.type===`question`?e.subject.questions.map(e=>e.text).join(` `):``}`),n=e=>{let n=z(x(e??``)).replace(/(?:…|\.\.\.)$/,``);return n&&!t.includes(n)?e??``:``},r=n(e.title),i=n(e.message);return{title:r,message:i&&r&&z(r).includes(z(x(i)))?``:i}}function B(e){let{display:t,subject:n}=e,r=n?.type===`command`&&!e.display_truncated?Se.exec(t):null;return r?{shown:t.slice(0,r.index),folder:r[0].slice(4)}:{shown:t,folder:``}}function De(e,t){let{folder:n}=B(e),r=x(t);return n||(e.display.endsWith(`\nin ${r}`)?``:r)}var V=e=>e.subject?.type===`question`||e.type===`prompt`||e.type===`pick`,H=_.request.heads;function Oe(e){let{subject:t}=e,n=e=>({words:e,target:null,more:``});switch(t?.type){case`command`:return n(H.command);case`edit`:{let{head:n,tail:r,more:i}=L(e);return{words:H.edit,target:t.files.length?{head:n,tail:r}:null,more:i}}case`fetch`:return n(H.fetch);case`plan`:return n(H.plan);case`tool`:return{words:H.tool,target:{head:F(t.name),tail:``},more:``};case`question`:return n(H.questions(t.questions.length));case`unreadable`:return n(H.unreadable);case void 0:return n(H.types[e.type]??H.types.permission);default:return n(H.types.permission)}}var ke=r`
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
`,Ae=16,je=1600,Me=8,U=800,Ne=2e3,Pe=100;function W(e){let t=1;for(let n=e.indexOf(`
`);n>=0;n=e.indexOf(`
`,n+1))t+=1;return{lines:t,chars:e.length,long:t>Ae||e.length>je}}function Fe(e){let t=e.split(`
`,Me).join(`
`);return t.length>U?t.slice(0,U):t}function Ie(e){return/^(edit|write) ./.test(e[0]??``)?e.length>1&&e.slice(1).every(e=>/^([-+ \\]|@@ |edit .|write .)/.test(e)):!1}function Le(e){switch(e[0]){case`+`:return`add`;case`-`:return`del`;case` `:return`same`;case`@`:return`hunk`;case`\\`:return`where`;default:return`head`}}var Re=/\\u\{[0-9a-f]{1,6}\}/g;function ze(e){let t=[],n=0;for(let r of e.matchAll(Re))r.index>n&&t.push({text:e.slice(n,r.index),mark:!1}),t.push({text:r[0],mark:!0}),n=r.index+r[0].length;return(n<e.length||t.length===0)&&t.push({text:e.slice(n),mark:!1}),t}function Be(e,t){let n=Math.min(e.length,t+Ne);if(n===e.length)return n;let r=e.lastIndexOf(`\\u{`,n);r>t&&r>n-10&&!e.slice(r,n).includes(`}`)&&(n=r);let i=e.charCodeAt(n-1);return i>=55296&&i<=56319&&--n,n}function Ve(e,t){let n=e.split(`
`),r=t??Ie(n),i=[[]];return n.forEach((e,t)=>{let a=`plain`;r?a=Le(e):t>0&&t===n.length-1&&e.startsWith(`in `)&&(a=`where`);let o=0;do{let r=Be(e,o),s=i[i.length-1];s.length>=Pe&&i.push(s=[]),s.push({kind:a,parts:ze(e.slice(o,r)),goesOn:o>0,ends:r===e.length&&t<n.length-1}),o=r}while(o<e.length)}),i}var G=_.request,He=e=>a`<span class="line ${e.kind}" ?data-on=${e.goesOn}>${e.parts.map(e=>e.mark?a`<mark>${e.text}</mark>`:e.text)}${e.ends?`
`:``}</span>`,Ue=class extends o{static{this.properties={display:{},truncated:{type:Boolean},bytes:{type:Number},edit:{attribute:!1},bare:{type:Boolean,reflect:!0},opened:{type:Boolean,reflect:!0},long:{type:Boolean,reflect:!0}}}#e;#t;#n;#r;#i;constructor(){super(),this.#e=!1,this.#t={lines:0,chars:0,long:!1},this.#n=[],this.#i=!1,this.open=()=>{!this.long||this.opened||this.#e||(this.truncated?(this.#e=!0,this.requestUpdate(),this.dispatchEvent(new Event(`whole`))):(this.opened=!0,this.dispatchEvent(new Event(`opened`)),this.updateComplete.then(()=>this.renderRoot.querySelector(`pre`)?.focus({preventScroll:!0}))))},this.display=``,this.truncated=!1,this.bare=!1,this.opened=!1,this.long=!1}static{this.styles=[...[o.styles].flat(),r`
      :host { display: block; min-width: 0; }
      .box { border: 1px solid var(--line); border-radius: var(--r-s); background: var(--bg-sunken); overflow: hidden; }
      pre {
        margin: 0; padding: 4px 0; font-family: var(--mono); font-size: var(--t-s); line-height: 1.5; tab-size: 4;
        white-space: pre-wrap; overflow-wrap: anywhere; direction: ltr; unicode-bidi: isolate; text-align: left;
      }
      :host([long]) pre { scrollbar-gutter: stable; }
      :host([long][opened]) pre { max-block-size: min(55dvh, 36rem); overflow: auto; overscroll-behavior: contain; }
      pre:focus-visible { outline: var(--focus); outline-offset: -3px; }
      .block { display: block; }
      :host([opened]) .block { content-visibility: auto; contain-intrinsic-block-size: auto 122em; }
      .line { display: block; min-block-size: 1.5em; padding-inline: 10px 8px; }
      .line.add { background: var(--add-bg); box-shadow: inset 3px 0 var(--ok); }
      .line.del { background: var(--del-bg); box-shadow: inset 3px 0 var(--danger); }
      .line.head { font-weight: 650; }
      .line.where { color: var(--fg-mute); }
      .line.hunk { color: var(--fg-mute); background: var(--bg-raised); }
      .line[data-on]::before { content: '↪ '; color: var(--fg-mute); user-select: none; }
      mark { background: var(--warn-wash); color: var(--warn); border-radius: 3px; box-shadow: inset 0 0 0 1px var(--warn-line); font-weight: 600; }
      .cut { position: relative; }
      :host([long]:not([opened])) .cut::after { content: ''; position: absolute; inset: auto 0 0 0; block-size: 3em; background: linear-gradient(transparent, var(--bg-sunken)); pointer-events: none; }
      :host([bare]:not([long])) .box { border: 0; background: none; }
      :host([bare]:not([long])) pre { padding: 0; font-size: var(--t-m); }
      :host([bare]:not([long])) .line { padding-inline: 0; }
      .open { display: block; inline-size: 100%; min-block-size: 44px; border: 0; border-block-start: 1px solid var(--line); border-radius: 0; background: var(--bg-raised); color: var(--accent); font: inherit; font-weight: 600; cursor: pointer; padding: 8px 12px; }
      .open:focus-visible { outline: var(--focus); outline-offset: -3px; }
      .end { display: block; block-size: 1px; }
      .foot { padding: 6px 12px; border-block-start: 1px solid var(--line); color: var(--fg-mute); font-size: var(--t-s); }
    `]}willUpdate(e){(e.has(`display`)||e.has(`truncated`))&&(this.#t=W(this.display),this.long=this.#t.long||this.truncated,this.opened=this.#e&&!this.truncated,this.truncated||(this.#e=!1),this.#i=!1),(e.has(`display`)||e.has(`truncated`)||e.has(`opened`)||e.has(`edit`))&&(this.#n=Ve(this.long&&!this.opened?Fe(this.display):this.display,this.edit))}render(){let e=!this.long||this.opened;return a`<div class="box">
      <div class="cut">
        <pre tabindex=${this.long&&this.opened?0:n} role=${this.long&&this.opened?`group`:n} aria-label=${this.long&&this.opened?G.exactly:n}>${this.#n.map(e=>a`<span class="block">${e.map(He)}</span>`)}${e?a`<span class="end"></span>`:n}</pre>
      </div>
      ${e?this.long?a`<div class="foot">${this.#i?G.readAll:G.readOn}</div>`:n:a`<button class="open" type="button" aria-disabled=${this.#e?`true`:n} @click=${this.open}>${this.#e?G.fetching:this.truncated?G.openWhole(this.bytes??0):G.openFull(this.#t.lines,this.#t.chars)}</button>`}
    </div>`}failed(){this.#e=!1,this.requestUpdate()}updated(){let e=this.renderRoot.querySelector(`.end`);this.#r?.disconnect(),!e||this.#i||(this.#r=new IntersectionObserver(e=>{e.some(e=>e.isIntersecting)&&(this.#r?.disconnect(),this.#i=!0,this.requestUpdate(),this.dispatchEvent(new Event(`read`)))}),this.#r.observe(e))}connectedCallback(){super.connectedCallback(),this.requestUpdate()}disconnectedCallback(){super.disconnectedCallback(),this.#r?.disconnect()}};customElements.define(`plexus-exact`,Ue);var We=400;function Ge(e,t){let n=e.split(`
`),r=t.split(`
`),i=le(n,r,{maxEditLength:We});return i?i.flatMap(e=>e.value.map(t=>({kind:e.added?`add`:e.removed?`del`:`same`,text:t}))):[...n.map(e=>({kind:`del`,text:e})),...r.map(e=>({kind:`add`,text:e}))]}var K=_.request,Ke=class{constructor(){this.picked=new Set,this.answers=new Map,this.value=null,this.showSecret=!1,this.reason=``,this.edit=null,this.word=``}edits({editable:e}){return e!=null&&this.edit!==null&&this.edit!==e.value}pick(e,t,n){e.multi||this.picked.clear(),n?this.picked.add(t):this.picked.delete(t)}complete(e){let t=u(e);if(t.length){let e=se(t,this.answers);return`answers`in e?{answers:e.answers}:{question:e.question,words:t.length>1?`${S(e.question)}: ${e.words}`:e.words}}if(e.type===`pick`)return this.picked.size===0?{words:K.nothingChosen}:{ids:(e.items??[]).map(e=>e.id).filter(e=>this.picked.has(e))};let n=this.value??e.default_value??``;return n===``?{words:K.nothingTyped}:{value:n}}};function qe(e,t){let r=u(e);if(r.length)return a`<div class="form" data-count=${r.length}>${r.map((e,n)=>Je(e,n,t))}<span class="form-end"></span></div>`;if(!e.observe_only&&!e.options.length){if(e.type===`pick`)return Ye(e,t);if(e.type===`prompt`)return Xe(e,t)}return!e.observe_only&&t.draft.edit!==null&&e.editable?Ze(e.editable,t):n}function Je(e,t,r){let{answers:i}=r.draft,o=i.get(e.id)??f,l=t=>{i.set(e.id,t),r.changed()},te=e.multiple?`checkbox`:`radio`,u=`question-${t}`,ne=t=>l({...o,words:t.target.value,own:!0,chosen:e.multiple?o.chosen:new Set}),d=o===f?``:c(e,o),p=x(e.header),m=[p&&a`<bdi>${p}</bdi>`,e.multiple&&e.options.length?K.chooseAny:``,e.optional?K.questions.optional:``].filter(Boolean),h=a`<input
    class="value own" type="text" autocomplete="off" spellcheck="false" inputmode=${e.fits?.number===`integer`?`numeric`:e.fits?.number?`decimal`:`text`}
    aria-label=${K.questions.ownFor(S(e))} aria-describedby=${`${u}-wrong`} .value=${o.words} @input=${ne} @keydown=${r.keydown} />`,g=(e,t,n)=>a`<label class="pick">
    <input type=${te} name=${u} .checked=${t} @change=${e=>n(e.target.checked)} @keydown=${r.keydown} /><span>${e}</span>
  </label>`;return a`<fieldset class="question" data-question=${e.id} role=${e.multiple?`group`:`radiogroup`} aria-describedby=${`${u}-wrong`}>
    <legend><bdi class="asked">${w(e.text)}</bdi>${m.length?a` <small>${m.map((e,t)=>a`${t?` · `:n}${e}`)}</small>`:n}</legend>
    ${e.options.length?a`<div class="opts">
          ${e.options.map(t=>g(a`<bdi>${x(t.label||t.id)}</bdi>${t.description?a`<small><bdi>${x(t.description)}</bdi></small>`:n}`,o.chosen.has(t.id),n=>l(ee(e,o,t.id,n))))}
          ${e.free_text?g(K.questions.other,o.own,t=>l(s(e,o,t))):n}
        </div>`:n}
    ${e.free_text&&(o.own||!e.options.length)?h:n}
    <p class="wrong" id=${`${u}-wrong`} role="status">${d}</p>
  </fieldset>`}function Ye(e,{draft:t,changed:r,keydown:i}){return a`<fieldset>
    <legend>${e.multi?K.chooseAny:K.chooseOne}</legend>
    <div class="opts">
      ${(e.items??[]).map((o,s)=>a`<label class="pick">
          <input type=${e.multi?`checkbox`:`radio`} name="pick" .checked=${t.picked.has(o.id)}
            @change=${n=>{t.pick(e,o.id,n.target.checked),r()}} @keydown=${i} />
          <span><bdi>${x(o.label||o.id)}</bdi>${o.detail?a`<small><bdi>${x(o.detail)}</bdi></small>`:n}</span>
          ${s<9?a`<kbd aria-hidden="true">${s+1}</kbd>`:n}
        </label>`)}
    </div>
  </fieldset>`}function Xe(e,{draft:t,changed:r,keydown:i}){let o=t.value??e.default_value??``,s=e=>{t.value=e.target.value,r()};return a`<div class="field">
    <label for="value">${e.secret?K.secretField:K.answerField}</label>
    <div class="row">
      ${e.multiline&&!e.secret?a`<textarea id="value" class="value" rows="4" autocomplete="off" .value=${o} @input=${s}></textarea>`:a`<input id="value" class="value" type=${e.secret&&!t.showSecret?`password`:`text`} autocomplete=${e.secret?`one-time-code`:`off`} autocapitalize="off" spellcheck="false"
            .value=${o} @input=${s} @keydown=${i} />`}
      ${e.secret?a`<button type="button" class="tool" aria-pressed=${t.showSecret} @click=${()=>{t.showSecret=!t.showSecret,r()}}>${t.showSecret?K.hideSecret:K.showSecret}</button>`:n}
    </div>
  </div>`}function Ze(e,{draft:t,changed:n,keydown:r}){let i=t.edit??e.value;return a`<section class="field">
    <label for="edit">${K.editing}: <bdi>${x(e.label)}</bdi></label>
    <textarea id="edit" class="edit code" rows=${Math.min(10,i.split(`
`).length+1)} autocomplete="off" autocapitalize="off" spellcheck="false" .value=${i}
      @input=${e=>{t.edit=e.target.value,n()}} @keydown=${e=>{e.key===`Escape`&&r(e)}}></textarea>
    <h2>${K.changes}</h2>
    ${i===e.value?a`<p class="soft">${K.noChanges}</p>`:a`<div class="changes" tabindex="0" role="group" aria-label=${K.changes}>
          ${Ge(e.value,i).map(e=>a`<span class=${e.kind}>${{same:`  `,add:`+ `,del:`- `}[e.kind]}${ce(e.text)}</span>`)}
        </div>`}
  </section>`}var Qe=_.request,$e=24,et=class extends i{static{this.properties={verb:{},label:{},hint:{},off:{type:Boolean,reflect:!0},holding:{type:Boolean,reflect:!0}}}#e;#t;#n;constructor(){super(),this.may=()=>!0,this.still=()=>!0,this.#e=0,this.#t=0,this.#n=null,this.#r=e=>{e.button===0&&e.isPrimary&&(this.#n={x:e.clientX,y:e.clientY},this.begin())},this.#i=e=>{this.#n&&Math.hypot(e.clientX-this.#n.x,e.clientY-this.#n.y)>$e&&this.stop()},this.#a=e=>{e.key===`Enter`?(e.preventDefault(),this.dispatchEvent(new Event(`enter`))):e.key===` `&&(e.preventDefault(),e.repeat||this.begin())},this.stop=()=>{this.holding&&(this.#o(),this.dispatchEvent(new Event(`hold-released`)))},this.verb=``,this.label=``,this.hint=``,this.off=!1,this.holding=!1}static{this.styles=r`
    :host { display: grid; min-width: 0; }
    button {
      position: relative; overflow: hidden; inline-size: 100%; block-size: 100%; min-block-size: 34px; padding: 2px 16px; border: 0; border-radius: var(--r-m);
      background: var(--danger-solid); color: #fff; font: 600 var(--t-m)/1.25 var(--sans); cursor: pointer; touch-action: pan-y; user-select: none; -webkit-user-select: none;
      -webkit-touch-callout: none; -webkit-tap-highlight-color: transparent; display: flex; flex-direction: column; align-items: center; justify-content: center;
    }
    :host([off]) button { cursor: not-allowed; opacity: 0.55; }
    button:focus-visible { outline: var(--focus); outline-offset: 2px; }
    .fill { position: absolute; inset: 0; background: #000; opacity: 0.3; transform: scaleX(0); transform-origin: 0 50%; pointer-events: none; }
    .ring { inline-size: 16px; block-size: 16px; flex: none; transform: rotate(-90deg); }
    .ring circle { fill: none; stroke: currentColor; stroke-width: 2.5; opacity: 0.4; }
    .ring .arc { opacity: 1; stroke-dasharray: 1; stroke-dashoffset: 1; }
    /* Both labels always take space: the button must not change its size during a hold. */
    strong { font-weight: inherit; position: relative; display: inline-flex; align-items: center; gap: 7px; white-space: nowrap; }
    strong > span { display: grid; }
    strong > span > span { grid-area: 1 / 1; text-align: start; }
    [data-off] { visibility: hidden; }
    small { position: relative; font-weight: 450; font-size: var(--t-xs); line-height: 1.15; max-inline-size: 15ch; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    @media (max-width: 599px) { button { padding-inline: 6px; } strong { gap: 5px; } }
    @media (max-width: 359px) { .ring { display: none; } }
    :host(:not([holding])) .fill { transition: transform 160ms ease-out; }
    @media (prefers-reduced-motion: reduce) { .fill { transition: none !important; } }
    @media (forced-colors: active) { .fill { background: Highlight; opacity: 0.5; } }
  `}render(){return a`<button
      type="button"
      aria-disabled=${this.off?`true`:`false`}
      aria-description=${this.hint}
      @pointerdown=${this.#r}
      @pointermove=${this.#i}
      @pointerup=${this.stop}
      @pointercancel=${this.stop}
      @pointerleave=${this.stop}
      @contextmenu=${e=>e.preventDefault()}
      @keydown=${this.#a}
      @keyup=${this.stop}
      @blur=${this.stop}
    >
      <span class="fill"></span>
      <strong><svg class="ring" viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="8"></circle><circle class="arc" cx="10" cy="10" r="8" pathLength="1"></circle></svg><span><span ?data-off=${this.holding}>${Qe.holdFor(this.verb)}</span><span ?data-off=${!this.holding}>${Qe.held}</span></span></strong>
      ${this.label?a`<small title=${this.label}>“<bdi>${this.label}</bdi>”</small>`:null}
    </button>`}focus(e){this.renderRoot.querySelector(`button`)?.focus(e)}disconnectedCallback(){super.disconnectedCallback(),this.stop()}#r;#i;#a;begin(){if(this.holding||!this.may())return;this.holding=!0,this.#e=performance.now(),this.dispatchEvent(new Event(`hold-start`));let e=t=>{if(!this.holding)return;if(!this.still())return this.stop();let n=Math.min(1,(t-this.#e)/900);this.#s(n),n<1?this.#t=requestAnimationFrame(e):(this.#o(),this.dispatchEvent(new Event(`hold-done`)))};this.#t=requestAnimationFrame(e)}#o(){cancelAnimationFrame(this.#t),this.holding=!1,this.#n=null,this.#s(0)}#s(e){let t=this.renderRoot.querySelector(`.fill`);t&&(t.style.transform=`scaleX(${e})`);let n=this.renderRoot.querySelector(`.arc`);n&&(n.style.strokeDashoffset=String(1-e))}};customElements.define(`plexus-hold`,et);var tt=new Set([...ae.map(([e])=>e),...`123456789`,`c`,`o`]),q=new Set,nt=new WeakMap,rt=e=>te(e,e=>e.localName===`plexus-card`);function it(e){if(!e?.closest(`[role="row"]`))return null;let t=e.getRootNode();return[...q].find(e=>e.shadowRoot===t)??null}function at(e){e&&(nt.set(e,performance.now()),oe()&&e.rearm())}function ot(e){let t=()=>at(e);return e.addEventListener(`focusin`,t),()=>e.removeEventListener(`focusin`,t)}function st(e){let t=t=>{t.target instanceof Element&&t.target.matches(`[role="row"]`)&&at(e.cardAt(t.target))},n=e.shadowRoot;return q.add(e),n?.addEventListener(`focusin`,t),()=>{q.delete(e),n?.removeEventListener(`focusin`,t)}}var ct={run:()=>{}};l((e,t)=>{if(!tt.has(t))return null;let n=it(e),r=n?.several(t);if(r)return{run:r};let i=n&&e?n.cardAt(e):rt(e);return i?!i.open||!i.armed||performance.now()-(nt.get(i)??-1/0)<j?ct:{run:e=>{i.key(e)},release:()=>i.keyUp()}:n?ct:null});var J=t(new Set),Y=e=>J.value.has(e);function lt(e){J.value=new Set([...J.value,e])}function X(e){let t=new Set(J.value);t.delete(e)&&(J.value=t)}var ut=()=>({may_approve:y.may(`approve`),approve_up_to:y.me.value?.approve_up_to}),dt=5e3,Z=new Set,ft=t(0);function pt(e){let{digest:t}=e;if(!t||e.display_truncated||Z.has(t))return;let n=Z.size>=dt?Z.values().next().value:void 0;n!==void 0&&Z.delete(n),Z.add(t),ft.value+=1}function mt(e){return ft.value>=0&&!!e.digest&&!e.display_truncated&&Z.has(e.digest)}var ht=12e3;async function gt(e,t,n){try{let r=`/v1/requests/${encodeURIComponent(e)}/answer`;return{status:200,body:await ie.json(`POST`,r,t,{headers:{"Idempotency-Key":n},patience:ht})}}catch(e){if(e instanceof m&&e.status>0)return{status:e.status,body:e.problem};throw e}}var _t=e({PlexusCard:()=>Tt}),Q=_.request,vt=[1500,3e3,6e3,12e3],yt=600,bt=6,xt=1024,St=6e4,Ct=2e3,wt=e=>(e.risk_reasons??[]).map(e=>x(e)).filter(e=>e!==``);function $({subject:e,display_truncated:t}){return t||e?.type!==`question`?!1:e.questions.every(e=>[e.text,...e.options.flatMap(e=>[e.label,e.description??``])].every(e=>e.length<xt))}var Tt=class extends o{static{this.properties={request:{attribute:!1},layout:{reflect:!0},status:{state:!0}}}#e;#t;#n;#r;#i;#a;#o;#s;#c;#l;#u;#d;#f;#p;#m;#h;#g;#_;#v;#y;#b;#x;constructor(){super(),this.#e=new M(performance.now()),this.#r=!1,this.#i=null,this.#a=null,this.#o=0,this.#c=!1,this.#l=null,this.#u=!1,this.#d=``,this.#f=``,this.#p=!1,this.#m=!1,this.#h=!1,this.#g=new Ke,this.#_=!1,this.#v=()=>{},this.#y=!1,this.#b=``,this.closedAt=0,this.rearm=()=>{this.#e.again(performance.now()),this.#O()},this.#D=()=>{if(!this.isConnected||!this.open)return;let e=this.renderRoot.querySelector(`.answers`);if(!e)return;let{top:t,left:n}=e.getBoundingClientRect();this.#e.seen({top:t,left:n},performance.now()),this.#O()},this.#L=()=>{X(this.#S.request_id),this.rearm()},this.#W=()=>{this.status===`unknown`&&this.isConnected&&(this.#P(Q.unknownAsking),this.#V())},this.#J=(e,t)=>{e.key===`Enter`&&d(t).sense===`allow`&&(e.preventDefault(),this.#P(Q.enterNever,!0))},this.#Y=e=>{e.key===`Enter`&&!e.isComposing&&e.preventDefault(),e.key===`Escape`&&this.focus()},this.#X=e=>{e.key===`Escape`&&!e.defaultPrevented&&(this.#b||this.#y)&&(e.preventDefault(),e.stopPropagation(),this.#R(null))},this.#ie=()=>{this.#S.subject?.type===`question`&&$(this.#S)||this.#ce()},this.#ae=async e=>{let t=e.currentTarget,n=await y.reread(this.#S.request_id);(!n||n.display_truncated)&&(t.failed(),this.#P(Q.notFetched,!0))},this.#se=()=>{if(!this.#r)return this.#P(Q.readFirst,!0);if(!this.#e.armed(performance.now()))return this.#P(Q.early,!0);this.#_=!1,pt(this.#S),this.#P(``),this.rearm()},this.#ce=()=>{this.#r=!0,this.#_||pt(this.#S),(this.#f===Q.readFirst||this.#f===Q.seeFirst)&&this.#P(``),this.requestUpdate()},this.layout=`solo`,this.status=`open`}static{this.styles=[...[o.styles].flat(),me,ke]}get#S(){return y.requests.value.get(this.request.request_id)??this.request}get open(){return this.status!==`closed`&&!Y(this.request.request_id)}get unsettled(){return this.status===`sending`||this.status===`unknown`}connectedCallback(){super.connectedCallback(),this.#e.again(performance.now()),this.#t=setInterval(this.#D,80),this.#v=ot(this),document.addEventListener(`visibilitychange`,this.rearm),window.addEventListener(`focus`,this.rearm),window.addEventListener(`resize`,this.rearm),window.addEventListener(`online`,this.#W)}disconnectedCallback(){super.disconnectedCallback(),this.#v(),clearInterval(this.#t),clearTimeout(this.#n),clearTimeout(this.#s),this.#x?.disconnect(),document.removeEventListener(`visibilitychange`,this.rearm),window.removeEventListener(`focus`,this.rearm),window.removeEventListener(`resize`,this.rearm),window.removeEventListener(`online`,this.#W)}willUpdate(e){let t=this.#S,n=this.#i;this.#i=t,n&&n.request_id!==t.request_id?this.#C():n&&t.state===`open`&&re(n,t)&&(this.#C(),this.#_=!0),this.status!==`closed`&&t.state!==`open`&&this.#w(t.receipt??null),e.has(`status`)&&this.status===`open`&&this.#e.again(performance.now())}#C(){this.#r=!1,this.#a=null,clearTimeout(this.#s),this.#l=null,this.#u=!1,this.#g=new Ke,this.#h=!1,this.#_=!1,this.#y=!1,this.#b=``,this.#f=``,this.#p=!1,this.closedAt=0,this.status=`open`,this.#e.again(performance.now())}#w(e,t=``){if(this.status===`closed`)return;let n=this.renderRoot?.querySelector(`article`);this.renderRoot?.querySelectorAll(`plexus-hold`).forEach(e=>e.stop()),clearTimeout(this.#s),this.shadowRoot?.activeElement&&n?.focus({preventScroll:!0}),this.#l=e,this.#d=t,this.closedAt=Date.now(),this.status=`closed`,this.#T(!this.#u&&e?.resolved_by?.device_id===y.me.peek()?.device_id)}#T(e){this.dispatchEvent(new CustomEvent(`closed`,{bubbles:!0,composed:!0,detail:{request_id:this.request.request_id,mine:e}}))}updated(){for(let e of this.renderRoot.querySelectorAll(`plexus-hold`)){let t=this.#k().find(t=>t.id===e.dataset.action);e.may=()=>t!==void 0&&this.#N(t),e.still=()=>this.open&&this.#e.armed(performance.now())}this.#E(),this.#D(),requestAnimationFrame(this.#D)}#E(){let e=this.renderRoot.querySelector(`.form-end`);this.#x?.disconnect(),!e||this.#r||!$(this.#S)||(this.#x=new IntersectionObserver(e=>{e.some(e=>e.isIntersecting)&&this.#ce()}),this.#x.observe(e))}get armed(){return this.#e.armed(performance.now())}#D;#O(){let e=this.renderRoot.querySelector(`.actions`),t=String(this.open&&!this.#e.armed(performance.now()));e&&e.dataset.arming!==t&&(e.dataset.arming=t),clearTimeout(this.#n),t===`true`&&(this.#n=setTimeout(this.#D,this.#e.left(performance.now())))}#k(){return g(this.#S,ut())}#A(){return this.#b?this.#k().find(e=>e.id===this.#b):void 0}#j(){return this.#S.observe_only?v.observe_only:y.may(`approve`)?y.live.value?``:Q.offline:v.scope}#M(e){if(this.status===`sending`)return Q.sending;if(this.status===`unknown`)return Q.unknown;let{sense:t,lasting:n}=d(e);return t===`defer`?``:e.unavailable?v[e.unavailable]:y.live.value?t===`allow`?n&&this.#g.edits(this.#S)?Q.editedOnce:this.#S.display_truncated?Q.readFirst:this.#r?this.#_?Q.changedSince:``:W(this.#S.display).long?Q.readFirst:Q.seeFirst:``:Q.offline}#N(e){if(!this.open)return!1;this.#D();let t=this.#M(e),n=t&&t!==Q.readFirst&&t!==Q.seeFirst||this.#e.armed(performance.now())?t:Q.early;return n&&this.#P(n,!0),n===``}#P(e,t=!1){this.#f=e,this.#p=t,this.requestUpdate()}#F(e,t=!1){if(!this.#N(e))return;if(e.role===`later`)return this.#I();if(d(e).lasting&&this.#b!==e.id)return this.#R(e);if(e.hold&&!t)return this.#P(Q.holdHint,!0);let n=this.#z(e);n&&this.#B(n)}#I(){lt(this.#S.request_id),this.renderRoot.querySelector(`article`)?.focus({preventScroll:!0}),this.#T(!0)}#L;#R(e){this.#b=e?.id??``,this.#y=!1,this.#f=``,this.rearm(),this.requestUpdate(),this.renderRoot.querySelector(`article`)?.focus({preventScroll:!0})}#z(e){let t=this.#S,n={...e.answer};if(e.role===`send`){let e=this.#g.complete(t);return`words`in e?(e.question&&this.renderRoot.querySelector(`fieldset[data-question="${CSS.escape(e.question.id)}"] :is(input, textarea)`)?.focus(),this.#P(e.words,!0),null):{...n,...e}}let{sense:r}=d(e),i=this.#g.reason.trim();return r===`deny`&&t.allow_reason&&i&&(n.reason=i),r===`allow`&&this.#g.edits(t)&&(n.edited=this.#g.edit??``),n}async#B(e){this.#a=new ye(this.#S,e,gt),this.#o=0,this.status=`sending`,this.#P(Q.sending),await this.#V()}async#V(){let e=this.#a;if(!e||this.#c)return;this.#c=!0,clearTimeout(this.#s);let t=await e.send();this.#c=!1,this.#a===e&&this.#H(t)}#H(e){switch(e.is){case`won`:this.#u=!1,this.#U(e.receipt);break;case`lost`:this.#u=!0,this.#U(e.receipt);break;case`closed`:this.#u=e.receipt!==null,this.open?this.#w(e.receipt,e.words):this.requestUpdate();break;case`refused`:if(!this.open)break;this.#a=null,this.status=`open`,this.#P(e.words,!0),y.reread(this.#S.request_id);break;case`unknown`:if(!this.open)break;this.status=`unknown`,this.#P(Q.unknown,!0),this.#s=setTimeout(this.#W,vt[Math.min(this.#o,vt.length-1)]),this.#o+=1}}#U(e){this.open?this.#w(e):(this.#l=e,this.requestUpdate())}#W;key(e){if(!this.open)return!0;let t=this.#S,{key:n}=e;if(/^[1-9]$/.test(n)&&this.#K(Number(n)))return!0;let r=this.#A(),i=r?[r].find(e=>e.key===n):this.#G(n);if(i)return e.repeat||(i.hold&&(r||!d(i).lasting)?this.#q(i)?.begin():this.#F(i)),!0;if(e.repeat)return!1;switch(n){case`r`:return t.allow_reason&&!t.observe_only&&this.#Q(),!0;case`e`:return t.editable&&!t.observe_only&&this.#$(),!0;case`c`:return this.#_&&this.#se(),!0;case`o`:return this.renderRoot.querySelector(`plexus-exact`)?.open(),!0;default:return r!==void 0}}#G(e){let t=this.#k();return(/^[1-9]$/.test(e)?h(t).bar:t).find(t=>t.key===e)}#K(e){let t=this.#S,n=t.type===`pick`&&!t.options.length&&!u(t).length?t.items?.[e-1]:void 0;return n?(this.#g.pick(t,n.id,!t.multi||!this.#g.picked.has(n.id)),this.requestUpdate(),!0):!1}keyUp(){this.renderRoot.querySelectorAll(`plexus-hold`).forEach(e=>e.stop())}focus(){this.rearm(),this.renderRoot.querySelector(`article`)?.focus(),this.scrollIntoView({block:`nearest`})}#q(e){return this.renderRoot.querySelector(`plexus-hold[data-action="${CSS.escape(e.id)}"]`)}#J;#Y;#X;#Z(e){this.rearm(),this.requestUpdate(),this.updateComplete.then(()=>this.renderRoot.querySelector(e)?.focus())}#Q(){this.#h=!this.#h||this.#g.reason!==``,this.#Z(`.reason`)}#$(){let{editable:e}=this.#S;e&&(this.#g.edit=this.#g.edit===null?e.value:null,this.#Z(`.edit`))}#ee(){this.#y=!0,this.#g.word=``,this.#Z(`.typed`)}render(){let e=this.#S,t=x(e.runtime_id)||Q.runtimeUnknown,n=Y(e.request_id)&&this.status===`open`;return a`<article
      tabindex="-1"
      aria-label=${Q.card(t)}
      data-status=${n?`left`:this.status}
      data-risk=${C(e)}
      data-request=${e.request_id}
      data-type=${e.type}
      ?data-plain=${V(e)&&C(e)!==`danger`}
      @keydown=${this.#X}
    >${n?this.#xe(e):this.status===`closed`?this.#Se(e):this.#te(e,t)}</article>`}#te(e,t){let{words:r,target:i,more:o}=Oe(e);return a`<header>
        ${pe(e.runtime_id)}
        <span class="what"><b class="who">${t}</b> ${r}${i?a` <b class="target" title=${`${i.head}${i.tail}`}><bdi class="from">${i.head}</bdi><bdi class="to">${i.tail}</bdi></b>`:n}${o?a` <span class="counts">${o}</span>`:n}</span>
        ${this.#ue(e)} ${this.#fe(e)}
      </header>
      <div class="body">${this.#_?this.#oe():n}${V(e)?[this.#pe(e),this.#re(e)]:[this.#re(e),this.#pe(e)]}${this.#le(e)}${this.#me(e)}</div>
      <p class="say" role="status" ?data-bad=${this.#p&&this.#f!==``}>${this.#ne(e)}${this.status===`unknown`&&!this.#c?a`<button type="button" class="tool ask" @click=${this.#W}>${Q.unknownNow}</button>`:n}</p>
      <div class="actions" data-arming="true">${this.#de(e)}${this.#he(e,t)}</div>`}#ne(e){if(this.#f)return this.#f;let t=this.#k();if(!t.length&&!e.observe_only)return Q.cannot(e.request_id);let n=this.#j();return n?this.status===`open`?n:``:t.some(e=>e.unavailable===`risk`)?v.risk:this.#r||!W(e.display).long?``:Q.readFirst}#re(e){let{shown:t}=B(e),r=e.subject?.type===`unreadable`,i=e.subject?.type===`question`,o=a`<plexus-exact ?bare=${!i&&!r&&e.subject?.type!==`edit`} .display=${t} .truncated=${e.display_truncated??!1} .bytes=${e.display_bytes} .edit=${e.subject?e.subject.type===`edit`:void 0}
      @read=${this.#ie} @opened=${this.rearm} @whole=${this.#ae}></plexus-exact>`,s=qe(e,{draft:this.#g,changed:()=>this.#P(``),keydown:this.#Y});if(!i)return a`<section><h2 class="sr">${Q.exactly}</h2>${r?a`<p class="unreadable">${Q.unreadable}</p>`:n}${o}</section>${s}`;let[c]=e.subject?.type===`question`?e.subject.questions:[],l=u(e).length===0;return a`${l?a`<p class="said asked"><bdi>${w(c?.text??``)}</bdi></p>`:n}${s}${l?a`<span class="form-end"></span>`:n}
      <details class="sent" ?open=${!$(e)} @toggle=${this.rearm}><summary>${Q.sent}</summary>${o}</details>`}#ie;#ae;#oe(){return a`<section class="warnings changed" role="alert">
      <h2>${Q.changedSince}</h2>
      <button type="button" class="tool" data-tool="again" aria-disabled=${this.#r?`false`:`true`} @click=${this.#se}>${Q.readAgain}</button>
    </section>`}#se;#ce;#le(e){return e.warnings.length?a`<section class="warnings"><h2 class="sr">${Q.warns}</h2><ul>${e.warnings.map(e=>a`<li>${x(e)}</li>`)}</ul></section>`:n}#ue(e){if(this.layout===`dock`)return n;let t=x(y.sessions.value.get(e.session_id)?.title)||Q.untitled;return a`<a class="session" href=${y.href({page:`session`,session_id:e.session_id})} title=${Q.session(t)} aria-label=${Q.session(t)}>“<bdi>${t}</bdi>”</a>`}#de(e){let t=C(e),r=wt(e),i=x(e.danger_level),o=y.sessions.value.get(e.session_id),s=y.viewers.value.get(e.session_id)??[],c=o&&!o.cwd?Q.folderUnknown:De(e,o?.cwd),l=c.slice(c.lastIndexOf(`/`)+1),ee=V(e)&&t!==`danger`;return a`<div class="facts">
      ${ee?n:a`<span class="why"><b class="risk" title=${Q.riskHints[t]??``}>${Q.risks[t]}</b> ${[...r,...i&&i!==`normal`&&t!==`danger`?[Q.level(i)]:[]].join(`; `)}</span>`}
      <span class="where">
        ${c?a`<code class="folder" title=${c}><bdi class="from">${l?c.slice(0,c.length-l.length):c}</bdi><bdi class="to">${l}</bdi></code>`:n}
        ${e.changed&&!this.#_?a`<span>${Q.changedBefore}</span>`:n}
        ${s.length?a`<span class="lookers">${Q.lookers(s.map(e=>x(e.name)).join(`, `))}</span>`:n}
      </span>
    </div>`}#fe(e){let t=y.now.value,n=Date.parse(e.opened_at),r=e.expires_at?Date.parse(e.expires_at)-t:NaN,i=[Number.isNaN(n)?``:O(t-n),Number.isNaN(r)?``:r>0?Q.expiresIn(O(r)):Q.expiring];return a`<span class="when" ?data-soon=${r<St}>${i.filter(Boolean).join(` · `)}</span>`}#pe(e){let t=Ee(e),r=x(t.title),i=w(t.message).trim();if(!r&&!i)return n;let o=i.split(`
`,bt).join(`
`).slice(0,yt),s=o.length<i.length&&!this.#m;return a`<blockquote>
      <h2>${Q.agentSays}</h2>
      ${r?a`<div class="said title">${r}</div>`:n} ${i?a`<div class="said">${s?`${o}…`:i}</div>`:n}
      ${s?a`<button type="button" class="more" @click=${()=>{this.#m=!0,this.requestUpdate()}}>${_.common.more}</button>`:n}
    </blockquote>`}#me(e){return!this.#h||!e.allow_reason?n:a`<div class="field">
      <label for="reason">${Q.reason}</label>
      <input id="reason" class="reason" type="text" maxlength=${Ct} autocomplete="off" .value=${this.#g.reason}
        @input=${e=>{this.#g.reason=e.target.value,this.requestUpdate()}} @keydown=${this.#Y} />
    </div>`}#he(e,t){let r=this.#k();if(!r.length||e.observe_only||!y.may(`approve`))return n;let i=this.#A();if(this.#y)return this.#ve(i??h(r).bar[0]);if(i)return this.#_e(i,t);let{bar:o,menu:s}=h(r),c=this.#ge(e,s,r);return a`<div class="answers" data-count=${o.length}>
      ${o.map((e,t)=>this.#be(e,t===0&&d(e).primary))}
      ${c.length?a`<plexus-menu label=${Q.more} .items=${c} @click=${this.rearm}></plexus-menu>`:n}
    </div>`}#ge(e,t,n){let r=n.some(e=>e.key===`d`),i=t.map(e=>{let{verb:t,lasting:n,sense:r}=d(e);return{label:n||r===`allow`?`${t}…`:t,note:e.label,id:e.id,run:()=>r===`allow`||n?this.#R(e):this.#F(e)}}),a=[e.allow_reason&&r?{label:Q.denyWhy,id:`reason`,run:()=>this.#Q()}:null,e.editable?{label:this.#g.edit===null?Q.edit:Q.stopEdit,id:`edit`,run:()=>this.#$()}:null,n.some(e=>e.hold&&!e.unavailable)?{label:Q.typeInstead,id:`word`,run:()=>this.#ee()}:null];return[...i,...a.filter(e=>e!==null)]}#_e(e,t){let{lasting:r,sense:i}=d(e);return a`<div class="step">
      <p>${r?Q.lasts[i](t):n} ${e.label?a`${Q.labelled} “<bdi>${e.label}</bdi>”.`:n}</p>
      <div class="answers" data-count="2">
        ${this.#be({...e,label:``},!0)}
        <button type="button" class="answer" data-action="back" @click=${()=>this.#R(null)}><strong>${Q.back}</strong></button>
        ${e.hold?a`<plexus-menu label=${Q.more} .items=${[{label:Q.typeInstead,id:`word`,run:()=>this.#ee()}]} @click=${this.rearm}></plexus-menu>`:n}
      </div>
    </div>`}#ve(e){let t=this.#g.word.trim().toLowerCase()===Q.typeWord;return a`<div class="word">
      <div class="field">
        <label for="typed">${Q.typeLabel}</label>
        <input id="typed" class="typed" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" .value=${this.#g.word} @input=${e=>{this.#g.word=e.target.value,this.requestUpdate()}} @keydown=${this.#Y} />
      </div>
      <div class="answers" data-count="2">
        <button type="button" class="answer primary typed-go" data-sense="allow" aria-disabled=${t&&!this.#M(e)?`false`:`true`}
          @keydown=${t=>this.#J(t,e)} @click=${()=>t?this.#F(e,!0):this.#P(Q.typeLabel,!0)}><strong>${this.#ye(e)}</strong></button>
        <button type="button" class="answer" data-action="back" @click=${()=>this.#R(null)}><strong>${Q.back}</strong></button>
      </div>
    </div>`}#ye(e){let t=this.#S,{sense:n,lasting:r,verb:i}=d(e);return n===`allow`&&!r&&this.#g.edits(t)?Q.allowEdited:e.key===`d`&&this.#g.reason.trim()&&t.allow_reason?Q.denyNow:i}#be(e,t){let r=this.#M(e)!==``,i=t?`primary`:``;return e.hold?a`<plexus-hold
        class="answer-hold ${i}"
        data-action=${e.id}
        data-key=${e.key??``}
        data-sense="allow"
        .verb=${this.#ye(e)}
        .label=${e.label}
        .hint=${Q.holdHint}
        .off=${r}
        @hold-start=${()=>this.#P(Q.holding)}
        @hold-released=${()=>this.open&&this.#P(Q.released,!0)}
        @hold-done=${()=>this.#F(e,!0)}
        @enter=${()=>this.#P(Q.enterNever,!0)}
      ></plexus-hold>`:a`<button
      type="button"
      class="answer ${i}"
      data-action=${e.id}
      data-role=${e.role}
      data-sense=${d(e).sense}
      data-key=${e.key??``}
      aria-disabled=${r?`true`:`false`}
      @keydown=${t=>this.#J(t,e)}
      @click=${()=>this.#F(e)}
    ><strong>${this.#ye(e)}${e.key?a`<kbd aria-hidden="true">${e.key}</kbd>`:n}</strong>${e.label?a`<small title=${e.label}>“<bdi>${e.label}</bdi>”</small>`:n}</button>`}#xe(e){return a`<div class="outcome" role="status" data-sense="none">${b(`clock`,14)}<span class="line"><strong>${Q.left}</strong> · <code>${R(e)}</code></span>
      <button type="button" class="tool" data-action="resume" @click=${this.#L}>${Q.answerHere}</button></div>`}#Se(e){let t=this.#l,r=a`<code>${R(e)}</code>`;if(!t)return a`<div class="outcome" role="status" data-sense="none">${b(`info`,14)}<span class="line"><strong>${this.#d||Q.gone}</strong> · ${r}</span></div>`;let i=p(t,e,y.me.value?.device_id),o={allow:`check`,deny:`close`,none:`info`},s=Date.parse(i.at??``)-Date.parse(e.opened_at),c=[i.who,Number.isNaN(s)?``:Q.after(O(s))].filter(Boolean);return a`<div role="status"><div class="outcome" data-sense=${i.sense}>${b(o[i.sense],14)}<span class="line"><strong>${i.what}</strong>${c.map(e=>` · ${e}`)} · ${r}</span></div>
      ${i.edited?a`<p class="more-said">${Q.editedTo} <code>${i.edited}</code></p>`:n}${i.reason?a`<p class="more-said">${Q.because(i.reason)}</p>`:n}${this.#u?a`<p class="more-said late">${Q.late}</p>`:n}</div>`}};customElements.define(`plexus-card`,Tt);export{Y as a,V as c,R as d,M as f,me as g,pe as h,ut as i,L as l,O as m,gt as n,X as o,ye as p,mt as r,st as s,_t as t,Te as u};