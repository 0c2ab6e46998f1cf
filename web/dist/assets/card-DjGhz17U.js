import{t as e}from"./rolldown-runtime-DK3Fl9T5.js";import{_ as t,c as n,f as r,s as i,u as a}from"./libraries-MxmsVMue.js";import{B as o,G as s,J as c,V as l,Z as u,et as d,f,it as p,lt as m,ot as ee,rt as h}from"./frame-Bu9YJXEN.js";import{t as te}from"./diff-DRnAoLIN.js";var g=d.request;function _(e){let{subject:t,type:n}=e;return t?.type!==`question`||e.observe_only||(n===`pick`||n===`prompt`)&&t.questions.length===1&&t.questions[0]?.id===`answer`?[]:t.questions}var v={chosen:new Set,words:``,own:!1};function ne(e,t,n,r){let i=e.multiple?new Set(t.chosen):new Set;return r?i.add(n):i.delete(n),{...t,chosen:i,own:e.multiple?t.own:!1}}var re=(e,t,n)=>({...t,own:n,chosen:n&&!e.multiple?new Set:t.chosen}),y=(e,t)=>e.free_text&&(t.own||e.options.length===0);function b(e,t){let n=e.options.map(e=>e.id).filter(e=>t.chosen.has(e)),r=y(e,t)?t.words.trim():``;return r?[...n,r]:n}function ie(e,t){let n=b(e,t);if(y(e,t)&&t.words.trim()===``&&(!e.optional||t.own))return g.questions.wantsWords;if(n.length===0)return e.optional?``:g.questions.wantsOne;let{number:r,least:i,most:a}=e.fits??{},o=e=>i!==void 0&&e<i,s=e=>a!==void 0&&e>a;if(e.multiple){if(o(n.length))return g.questions.atLeast(i);if(s(n.length))return g.questions.atMost(a)}else if(y(e,t)){let e=t.words.trim();if(r){let t=Number(e);if(!Number.isFinite(t))return g.questions.aNumber;if(r===`integer`&&!Number.isInteger(t))return g.questions.aWhole;if(o(t))return g.questions.from(i);if(s(t))return g.questions.upTo(a)}else{if(o([...e].length))return g.questions.longer(i);if(s([...e].length))return g.questions.shorter(a)}}return``}function ae(e,t){let n=Object.create(null);for(let r of e){let e=t.get(r.id)??v,i=ie(r,e);if(i)return{question:r,words:i};let a=b(r,e);a.length&&(n[r.id]=a)}return{answers:n}}var x=e=>h(e.header||e.text),S=e=>e.risk??(e.danger?`danger`:`elevated`),oe={low:`check`,elevated:`warn`,danger:`danger`},se={low:0,elevated:1,danger:2},C=(e,t)=>!t||se[e]<=se[t],ce=e=>e.kind!==`reject_once`&&e.kind!==`reject_always`,w=d.request,le={allow_always:0,reject_always:1,other:2,reject_once:3,allow_once:4},T=e=>e.toLowerCase().replace(/[^a-z]/g,``);function ue(e){let t=h(e.label)||e.id,n=w.verbs[e.kind];return{id:`option:${e.id}`,verb:n??`“${t}”`,quoted:n&&T(t)!==T(n)?t:``,sense:ce(e)?`allow`:`deny`,key:``,always:e.kind===`allow_always`||e.kind===`reject_always`,answer:{option_id:e.id}}}var E=(e,t,n,r)=>({id:e,verb:t,quoted:``,sense:n,key:``,always:!1,answer:r});function de(e){if(e.observe_only)return[];if(_(e).length)return[E(`none`,w.noAnswer,`deny`,{answers:{}}),E(`send`,w.sendAnswers,`allow`,{})];if(e.options.length>0){let t=e=>le[e.kind]??2;return e.options.map((e,t)=>({offer:e,n:t})).sort((e,n)=>t(e.offer)-t(n.offer)||e.n-n.n).map(({offer:e})=>ue(e))}switch(e.type){case`pick`:return[E(`none`,w.chooseNothing,`deny`,{ids:[]}),E(`send`,w.sendChoice,`allow`,{})];case`prompt`:return[E(`none`,w.noAnswer,`deny`,{value:null}),E(`send`,w.sendAnswer,`allow`,{})];case`confirm`:case`permission`:return[E(`deny`,w.deny,`deny`,{ok:!1}),E(`allow`,w.allow,`allow`,{ok:!0})];default:return[]}}function D(e){let t=de(e),n=(e,n)=>{let r=t.find(e=>e.key===``&&n(e));r&&(r.key=e)},r=t=>e.options.find(e=>`option:${e.id}`===t.id)?.kind;return n(`d`,e=>e.sense===`deny`&&!e.always),n(`a`,t=>e.options.length>0?r(t)===`allow_once`:t.sense===`allow`),n(`A`,e=>r(e)===`allow_always`),t}function fe(e){let t=e.filter(e=>!e.always),n=t.filter(e=>e.key!==``),r=n.some(e=>e.key===`a`)?n:t;return{main:r,others:t.filter(e=>!r.includes(e)),lasting:e.filter(e=>e.always)}}var O=e=>e.allow_remember&&!e.observe_only&&!e.options.some(e=>e.kind===`allow_always`||e.kind===`reject_always`),k=d.common,A=1e3,j=60*A,M=60*j,N=24*M;function P(e){let t=Math.max(0,e);return t<j?k.seconds(Math.round(t/A)):t<M?k.minutes(Math.floor(t/j)):t<2*N?k.hours(Math.floor(t/M)):k.days(Math.floor(t/N))}function F(e,t){let n=e?Date.parse(e):NaN;if(Number.isNaN(n))return k.justNow;let r=t-n;return r<2*A?k.justNow:k.ago(P(r))}var I=d.request;function pe(){let e=crypto.getRandomValues(new Uint8Array(16));return`web-${Array.from(e,e=>e.toString(16).padStart(2,`0`)).join(``)}`}var L=e=>typeof e==`object`&&!!e&&`resolved_by`in e&&`state`in e;function me({status:e,body:t}){if(e>=200&&e<300)return L(t)?t.won===!1?{is:`lost`,receipt:t}:{is:`won`,receipt:t}:{is:`unknown`};let n=typeof t==`object`&&t?t:{},r=typeof n.code==`string`?n.code:``;return e===409&&r===`already_resolved`&&L(t)?{is:`lost`,receipt:t}:e===410?{is:`closed`,receipt:L(t)?t:null,words:h(n.detail)||I.gone}:r?{is:`refused`,code:r,words:I.refusals[r]??I.refused(h(n.detail??n.title)||String(e))}:{is:`unknown`}}var R=class{constructor(e,t,n){this.request=e,this.post=n,this.key=pe(),this.answer=e.digest?{...t,digest:e.digest}:t}async send(){try{return me(await this.post(this.request.request_id,this.answer,this.key))}catch{return{is:`unknown`}}}},z=2,B=class{#e;#t=null;constructor(e){this.#e=e}again(e){this.#e=e}seen(e,t){let n=this.#t,r=!n||Math.abs(n.top-e.top)>=z||Math.abs(n.left-e.left)>=z;return r&&(this.#t=e,this.again(t)),r}armed(e){return e-this.#e>=400}},V=d.request.rows,H=320,he=40,U=e=>h(e.slice(0,H)),W=(e,t,n={})=>({verb:e,head:U(t),tail:``,more:``,quoted:!1,...n}),ge=/\nin [^\n]*$/;function _e(e){let t=U(e),n=t.slice(t.lastIndexOf(`/`)+1);return n&&n.length<=he&&n.length<t.length?{head:t.slice(0,-n.length),tail:n}:{head:t,tail:``}}function G(e){let{subject:t,display:n}=e;switch(t?.type){case`command`:return W(``,t.argv?.length?t.argv.join(` `).slice(0,H):n.slice(0,H).replace(ge,``));case`edit`:{let[e]=t.files;if(!e)return W(V.edit,n);let r=t.files.length+(t.more??0)-1,i=e=>t.files.reduce((t,n)=>t+(n[e]??0),0);return{...W(V.edit,``),..._e(e.path),more:[r>0?V.moreFiles(r):``,V.counts(i(`added`),i(`removed`))].filter(Boolean).join(` `)}}case`fetch`:return W(V.fetch,t.url);case`plan`:return W(V.plan,n);case`question`:{let[e]=t.questions;return W(V.question,e?.text||n,{quoted:!0,more:t.questions.length>1?V.questions(t.questions.length):``})}case`unreadable`:return W(V.unreadable,n);case`tool`:case void 0:}let r=e.type===`prompt`||e.type===`pick`;return W(r?V.question:``,n||e.title,{quoted:r})}function ve(e){let{verb:t,head:n,tail:r,more:i,quoted:a}=G(e);return[t,a?`“${n}${r}”`:`${n}${r}`,i].filter(Boolean).join(` `)}var ye=new WeakMap;function be(e){let t=ye.get(e);if(t!==void 0)return t;let{subject:n}=e,r=e.display_truncated?``:n?.type===`command`&&n.argv?.length?`command ${JSON.stringify(n.argv)}`:`${n?.type??e.type} ${e.display}`;return ye.set(e,r),r}var K=e=>e.replace(/[`'"“”]/g,``).replace(/\s+/g,` `).trim().toLowerCase();function xe(e){let t=K(`${e.display} ${e.subject?.type===`question`?e.subject.questions.map(e=>e.text).join(` `):``}`),n=e=>{let n=K(h(e??``)).replace(/(?:…|\.\.\.)$/,``);return n&&!t.includes(n)?e??``:``},r=n(e.title),i=n(e.message);return{title:r,message:i&&r&&K(r).includes(K(h(i)))?``:i}}function Se(e,t){let n=h(t),r=e.display.slice(e.display.lastIndexOf(`
`)+1);return n&&r===`in ${n}`?``:n}var Ce=r`
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
`,we=400;function Te(e,t){let n=e.split(`
`),r=t.split(`
`),i=te(n,r,{maxEditLength:we});return i?i.flatMap(e=>e.value.map(t=>({kind:e.added?`add`:e.removed?`del`:`same`,text:t}))):[...n.map(e=>({kind:`del`,text:e})),...r.map(e=>({kind:`add`,text:e}))]}var Ee=16,De=1600,Oe=8,ke=800,Ae=2e3,je=100;function q(e){let t=1;for(let n=e.indexOf(`
`);n>=0;n=e.indexOf(`
`,n+1))t+=1;return{lines:t,chars:e.length,long:t>Ee||e.length>De}}function Me(e){let t=e.split(`
`,Oe).join(`
`);return t.length>ke?t.slice(0,ke):t}function Ne(e){return/^(edit|write) ./.test(e[0]??``)?e.length>1&&e.slice(1).every(e=>/^([-+ \\]|@@ |edit .|write .)/.test(e)):!1}function Pe(e){switch(e[0]){case`+`:return`add`;case`-`:return`del`;case` `:return`same`;case`@`:return`hunk`;case`\\`:return`where`;default:return`head`}}var Fe=/\\u\{[0-9a-f]{1,6}\}/g;function Ie(e){let t=[],n=0;for(let r of e.matchAll(Fe))r.index>n&&t.push({text:e.slice(n,r.index),mark:!1}),t.push({text:r[0],mark:!0}),n=r.index+r[0].length;return(n<e.length||t.length===0)&&t.push({text:e.slice(n),mark:!1}),t}function Le(e,t){let n=Math.min(e.length,t+Ae);if(n===e.length)return n;let r=e.lastIndexOf(`\\u{`,n);r>t&&r>n-10&&!e.slice(r,n).includes(`}`)&&(n=r);let i=e.charCodeAt(n-1);return i>=55296&&i<=56319&&--n,n}function Re(e,t){let n=e.split(`
`),r=t??Ne(n),i=[[]];return n.forEach((e,t)=>{let a=`plain`;r?a=Pe(e):t>0&&t===n.length-1&&e.startsWith(`in `)&&(a=`where`);let o=0;do{let r=Le(e,o),s=i[i.length-1];s.length>=je&&i.push(s=[]),s.push({kind:a,parts:Ie(e.slice(o,r)),goesOn:o>0,ends:r===e.length&&t<n.length-1}),o=r}while(o<e.length)}),i}var J=d.request,ze=e=>a`<span class="line ${e.kind}" ?data-on=${e.goesOn}>${e.parts.map(e=>e.mark?a`<mark>${e.text}</mark>`:e.text)}${e.ends?`
`:``}</span>`,Be=class extends m{static{this.properties={display:{},truncated:{type:Boolean},bytes:{type:Number},edit:{attribute:!1},opened:{type:Boolean,reflect:!0},long:{type:Boolean,reflect:!0}}}#e;#t;#n;#r;#i;constructor(){super(),this.#e=!1,this.#t={lines:0,chars:0,long:!1},this.#n=[],this.#i=!1,this.open=()=>{!this.long||this.opened||this.#e||(this.truncated?(this.#e=!0,this.requestUpdate(),this.dispatchEvent(new Event(`whole`))):(this.opened=!0,this.dispatchEvent(new Event(`opened`)),this.updateComplete.then(()=>this.renderRoot.querySelector(`pre`)?.focus({preventScroll:!0}))))},this.display=``,this.truncated=!1,this.opened=!1,this.long=!1}static{this.styles=[...[m.styles].flat(),r`
      :host { display: block; min-width: 0; }
      .box { border: 1px solid var(--line); border-radius: var(--r-s); background: var(--bg-sunken); overflow: hidden; }
      pre {
        margin: 0; padding: 8px 0; font-family: var(--mono); font-size: var(--t-s); line-height: 1.5; tab-size: 4;
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
      .open { display: block; inline-size: 100%; min-block-size: 44px; border: 0; border-block-start: 1px solid var(--line); border-radius: 0; background: var(--bg-raised); color: var(--accent); font: inherit; font-weight: 600; cursor: pointer; padding: 8px 12px; }
      .open:focus-visible { outline: var(--focus); outline-offset: -3px; }
      .end { display: block; block-size: 1px; }
      .foot { padding: 6px 12px; border-block-start: 1px solid var(--line); color: var(--fg-mute); font-size: var(--t-s); }
    `]}willUpdate(e){(e.has(`display`)||e.has(`truncated`))&&(this.#t=q(this.display),this.long=this.#t.long||this.truncated,this.opened=this.#e&&!this.truncated,this.truncated||(this.#e=!1),this.#i=!1),(e.has(`display`)||e.has(`truncated`)||e.has(`opened`)||e.has(`edit`))&&(this.#n=Re(this.long&&!this.opened?Me(this.display):this.display,this.edit))}render(){let e=!this.long||this.opened;return a`<div class="box">
      <div class="cut">
        <pre tabindex=${this.long&&this.opened?0:n} role=${this.long&&this.opened?`group`:n} aria-label=${this.long&&this.opened?J.exactly:n}>${this.#n.map(e=>a`<span class="block">${e.map(ze)}</span>`)}${e?a`<span class="end"></span>`:n}</pre>
      </div>
      ${e?this.long?a`<div class="foot">${this.#i?J.readAll:J.readOn}</div>`:n:a`<button class="open" type="button" aria-disabled=${this.#e?`true`:n} @click=${this.open}>${this.#e?J.fetching:this.truncated?J.openWhole(this.bytes??0):J.openFull(this.#t.lines,this.#t.chars)}</button>`}
    </div>`}failed(){this.#e=!1,this.requestUpdate()}updated(){let e=this.renderRoot.querySelector(`.end`);this.#r?.disconnect(),!e||this.#i||(this.#r=new IntersectionObserver(e=>{e.some(e=>e.isIntersecting)&&(this.#r?.disconnect(),this.#i=!0,this.requestUpdate(),this.dispatchEvent(new Event(`read`)))}),this.#r.observe(e))}connectedCallback(){super.connectedCallback(),this.requestUpdate()}disconnectedCallback(){super.disconnectedCallback(),this.#r?.disconnect()}};customElements.define(`plexus-exact`,Be);var Ve=d.request,He=24,Ue=class extends i{static{this.properties={verb:{},quoted:{},reach:{},hint:{},off:{type:Boolean,reflect:!0},holding:{type:Boolean,reflect:!0}}}#e;#t;#n;constructor(){super(),this.may=()=>!0,this.still=()=>!0,this.#e=0,this.#t=0,this.#n=null,this.#r=e=>{e.button===0&&e.isPrimary&&(this.#n={x:e.clientX,y:e.clientY},this.begin())},this.#i=e=>{this.#n&&Math.hypot(e.clientX-this.#n.x,e.clientY-this.#n.y)>He&&this.stop()},this.#a=e=>{e.key===`Enter`?(e.preventDefault(),this.dispatchEvent(new Event(`enter`))):e.key===` `&&(e.preventDefault(),e.repeat||this.begin())},this.stop=()=>{this.holding&&(this.#o(),this.dispatchEvent(new Event(`hold-released`)))},this.verb=``,this.quoted=``,this.reach=``,this.hint=``,this.off=!1,this.holding=!1}static{this.styles=r`
    :host { display: block; min-width: 0; }
    button {
      position: relative; overflow: hidden; inline-size: 100%; block-size: 100%; min-block-size: 52px; padding: 8px 14px;
      border: 1.5px solid var(--danger); border-radius: var(--r-s); background: var(--bg-raised); color: var(--danger);
      font: inherit; cursor: pointer; touch-action: pan-y; user-select: none; -webkit-user-select: none; -webkit-touch-callout: none;
      -webkit-tap-highlight-color: transparent; display: flex; flex-direction: column; align-items: center; justify-content: center; gap: 1px;
    }
    :host(.small) button { min-block-size: var(--small, 44px); padding: 4px 10px; border-color: transparent; background: none; align-items: flex-start; text-align: start; font-size: var(--t-s); }
    :host([off]) button { cursor: not-allowed; opacity: 0.55; }
    button:focus-visible { outline: var(--focus); outline-offset: 2px; }
    .fill { position: absolute; inset: 0; background: var(--danger); opacity: 0.28; transform: scaleX(0); transform-origin: 0 50%; pointer-events: none; }
    /* Both labels always take space: the button must not change its size during a hold. */
    strong { font-weight: 650; position: relative; display: grid; align-items: center; }
    strong span { grid-area: 1 / 1; }
    [data-off] { visibility: hidden; }
    small { position: relative; font-size: var(--t-xs); max-inline-size: 100%; overflow-wrap: anywhere; }
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
      <strong><span ?data-off=${this.holding}>${Ve.holdFor(this.verb)}</span><span ?data-off=${!this.holding}>${Ve.holding}</span></strong>
      ${this.quoted||this.reach?a`<small>${this.reach} ${this.quoted?a`“<bdi>${this.quoted}</bdi>”`:null}</small>`:null}
    </button>`}focus(e){this.renderRoot.querySelector(`button`)?.focus(e)}disconnectedCallback(){super.disconnectedCallback(),this.stop()}#r;#i;#a;begin(){if(this.holding||!this.may())return;this.holding=!0,this.#e=performance.now(),this.dispatchEvent(new Event(`hold-start`));let e=t=>{if(!this.holding)return;if(!this.still())return this.stop();let n=Math.min(1,(t-this.#e)/900);this.#s(n),n<1?this.#t=requestAnimationFrame(e):(this.#o(),this.dispatchEvent(new Event(`hold-done`)))};this.#t=requestAnimationFrame(e)}#o(){cancelAnimationFrame(this.#t),this.holding=!1,this.#n=null,this.#s(0)}#s(e){let t=this.renderRoot.querySelector(`.fill`);t&&(t.style.transform=`scaleX(${e})`)}};customElements.define(`plexus-hold`,Ue);var We=/^[aAdDeoyrcm1-9n]$/,Ge=/^[nrm]$/;function Ke(){let e=document.activeElement;for(;e?.shadowRoot?.activeElement;)e=e.shadowRoot.activeElement;return e}function qe(e){let t=e;for(;t;){if(t instanceof HTMLElement&&t.localName===`plexus-card`)return t;t=t.parentNode instanceof ShadowRoot?t.parentNode.host:t.parentNode}return null}var Y=new Set,X=new Set,Z=null;function Je(e){return Y.add(e),()=>Y.delete(e)}function Ye(e){return X.add(e),()=>X.delete(e)}function Xe(e){if(!e?.closest(`[role="row"]`))return null;let t=e.getRootNode();return[...X].find(e=>e.shadowRoot===t)??null}function Ze(e){return e instanceof HTMLElement?e instanceof HTMLInputElement?![`checkbox`,`radio`,`button`].includes(e.type):e instanceof HTMLTextAreaElement||e instanceof HTMLSelectElement||e.isContentEditable:!1}function Qe(e){let t=e.getBoundingClientRect();return!e.open||t.width===0||t.height===0?!1:e.checkVisibility?.({visibilityProperty:!0,contentVisibilityAuto:!0})??!0}function $e(e){return!e||e===document.body||e.matches(`main, h1, h2, [tabindex="-1"]`)}function et(){return document.querySelector(`dialog:modal`)!==null||Ke()?.closest(`dialog, [role="dialog"]`)!=null}document.addEventListener(`keydown`,e=>{if(e.defaultPrevented||e.ctrlKey||e.metaKey||e.altKey||e.isComposing||!We.test(e.key)||Ze(e.composedPath()[0])||et())return;let t=Ke(),n=Xe(t);if(n&&!e.repeat&&n.several(e.key))return e.preventDefault();let r=n&&t?n.cardAt(t):qe(t);if(r){r.key(e)&&(Z=r,e.preventDefault());return}if(n)return e.preventDefault();if(e.repeat||!$e(t)||Ge.test(e.key))return;let i=[...Y].filter(Qe).sort((e,t)=>e.getBoundingClientRect().top-t.getBoundingClientRect().top)[0];i&&(i.choose(),e.preventDefault())});function tt(){Z?.keyUp(),Z=null}document.addEventListener(`keyup`,tt),window.addEventListener(`blur`,tt);var nt=5e3,Q=new Set,rt=t(0);function it(e){let{digest:t}=e;if(!t||e.display_truncated||Q.has(t))return;let n=Q.size>=nt?Q.values().next().value:void 0;n!==void 0&&Q.delete(n),Q.add(t),rt.value+=1}function at(e){return rt.value>=0&&!!e.digest&&!e.display_truncated&&Q.has(e.digest)}var ot=12e3;async function st(e,t,n){try{let r=`/v1/requests/${encodeURIComponent(e)}/answer`;return{status:200,body:await s.json(`POST`,r,t,{headers:{"Idempotency-Key":n},patience:ot})}}catch(e){if(e instanceof u&&e.status>0)return{status:e.status,body:e.problem};throw e}}var ct=e({PlexusCard:()=>gt}),$=d.request,lt=[1500,3e3,6e3,12e3],ut=600,dt=6,ft=6e4,pt=2e3,mt={y:`a`,n:`d`,r:`D`},ht=e=>(e.risk_reasons??[]).map(e=>h(e)).filter(e=>e!==``),gt=class extends m{static{this.properties={request:{attribute:!1},layout:{reflect:!0},status:{state:!0}}}#e;#t;#n;#r;#i;#a;#o;#s;#c;#l;#u;#d;#f;#p;#m;#h;#g;#_;#v;#y;#b;#x;#S;#C;#w;#T;#E;constructor(){super(),this.#e=new B(performance.now()),this.#n=!1,this.#r=null,this.#i=null,this.#a=0,this.#s=!1,this.#c=null,this.#l=!1,this.#u=``,this.#d=null,this.#f=``,this.#p=!1,this.#m=!1,this.#h=!1,this.#g=``,this.#_=null,this.#v=!1,this.#y=new Set,this.#b=new Map,this.#x=!1,this.#S=null,this.#C=!1,this.#w=()=>{},this.#T=!1,this.#E=``,this.closedAt=0,this.#A=()=>{this.#e.again(performance.now()),this.#M()},this.#j=()=>{if(!this.isConnected||!this.open)return;let e=this.renderRoot.querySelector(`.answers`);if(!e)return;let{top:t,left:n}=e.getBoundingClientRect();this.#e.seen({top:t,left:n},performance.now()),this.#M()},this.#K=()=>{this.status===`unknown`&&this.isConnected&&(this.#L($.unknownAsking),this.#U())},this.#J=(e,t)=>{e.key===`Enter`&&t.sense!==`deny`&&(e.preventDefault(),this.#L($.enterNever,!0))},this.#Y=e=>{e.key===`Enter`&&!e.isComposing&&e.preventDefault(),e.key===`Escape`&&this.focus()},this.#$=async e=>{let t=e.currentTarget,n=await l.reread(this.#D.request_id);(!n||n.display_truncated)&&(t.failed(),this.#L($.notFetched,!0))},this.#te=()=>{if(!this.#n)return this.#L($.readFirst,!0);if(!this.#e.armed(performance.now()))return this.#L($.early,!0);this.#x=!1,it(this.#D),this.#L(``),this.#A()},this.#ne=()=>{this.#n=!0,this.#x||it(this.#D),(this.#f===$.readFirst||this.#f===$.seeFirst)&&this.#L(``),this.requestUpdate()},this.layout=`solo`,this.status=`open`}static{this.styles=[...[m.styles].flat(),Ce]}get#D(){return l.requests.value.get(this.request.request_id)??this.request}get open(){return this.status!==`closed`}get unsettled(){return this.status===`sending`||this.status===`unknown`}connectedCallback(){super.connectedCallback(),this.#e.again(performance.now()),this.#t=setInterval(this.#j,80),this.#w=Je(this),document.addEventListener(`visibilitychange`,this.#A),window.addEventListener(`focus`,this.#A),window.addEventListener(`online`,this.#K)}disconnectedCallback(){super.disconnectedCallback(),this.#w(),clearInterval(this.#t),clearTimeout(this.#o),document.removeEventListener(`visibilitychange`,this.#A),window.removeEventListener(`focus`,this.#A),window.removeEventListener(`online`,this.#K)}willUpdate(e){let t=this.#D,n=this.#r;this.#r=t,n&&n.request_id!==t.request_id?this.#O():n&&t.state===`open`&&c(n,t)&&(this.#O(),this.#x=!0,this.#L($.changedSince,!0)),this.status!==`closed`&&t.state!==`open`&&this.#k(t.receipt??null),e.has(`status`)&&this.status===`open`&&this.#e.again(performance.now())}#O(){this.#n=!1,this.#i=null,clearTimeout(this.#o),this.#c=null,this.#l=!1,this.#d=null,this.#_=null,this.#g=``,this.#h=!1,this.#v=!1,this.#y.clear(),this.#b.clear(),this.#x=!1,this.#S=null,this.#E=``,this.#T=!1,this.#f=``,this.#p=!1,this.closedAt=0,this.status=`open`,this.#e.again(performance.now())}#k(e,t=``){if(this.status===`closed`)return;let n=this.renderRoot?.querySelector(`.actions`),r=this.renderRoot?.querySelector(`article`);n&&r&&(this.#d={host:r.getBoundingClientRect().height,actions:n.getBoundingClientRect().height}),this.renderRoot?.querySelectorAll(`plexus-hold`).forEach(e=>e.stop()),clearTimeout(this.#o);let i=this.shadowRoot?.activeElement;i&&n?.contains(i)&&r?.focus({preventScroll:!0}),this.#c=e,this.#u=t,this.closedAt=Date.now(),this.status=`closed`,this.dispatchEvent(new CustomEvent(`closed`,{bubbles:!0,composed:!0}))}updated(){let e=this.renderRoot.querySelector(`article`),t=this.renderRoot.querySelector(`.actions`);if(e&&t){e.style.blockSize=this.#d?`${this.#d.host}px`:``,t.style.blockSize=this.#d?`${this.#d.actions}px`:``,t.style.marginBlockStart=this.#d?`auto`:``;for(let e of this.renderRoot.querySelectorAll(`plexus-hold`)){let t=D(this.#D).find(t=>t.id===e.dataset.action);e.may=()=>t!==void 0&&this.#I(t),e.still=()=>this.open&&this.#e.armed(performance.now())}this.#j()}}#A;#j;#M(){let e=this.renderRoot.querySelector(`.actions`),t=String(this.open&&!this.#e.armed(performance.now()));e&&e.dataset.arming!==t&&(e.dataset.arming=t)}#N(){let e=this.#D,t=l.me.value;if(e.observe_only)return $.observeOnly(h(e.runtime_id)||$.runtimeUnknown);if(!l.may(`approve`))return $.mayNot;let n=S(e);return C(n,t?.approve_up_to)?l.live.value?``:$.offline:$.tooRisky(this.#P(t.approve_up_to),this.#P(n),ht(e).join(`; `),((n===`low`?null:t?.answered_on?.[n])??[]).map(h))}#P(e){return($.risks[e]??e).toLowerCase()}#F(e){return this.status===`sending`?$.sending:this.status===`unknown`?$.unknown:this.#N()||(e.sense===`allow`?e.always&&l.me.value?.approve_up_to&&l.me.value.approve_up_to!==`danger`?$.alwaysTooMuch:e.always&&this.#z?$.editedOnce:this.#D.display_truncated?$.readFirst:this.#n?this.#x?$.changedSince:``:q(this.#D.display).long?$.readFirst:$.seeFirst:``)}#I(e){if(!this.open)return!1;let t=this.#F({sense:`deny`,always:!1});this.#j();let n=t||(this.#e.armed(performance.now())?this.#F(e):$.early);return!n||(this.#L(n,!0),!1)}#L(e,t=!1){this.#f=e,this.#p=t,this.requestUpdate()}#R(e,t=!1){if(!this.#I(e))return;if(this.#B(e)&&!t){this.#L($.holdHint,!0);return}let n=this.#V(e);typeof n==`string`?this.#L(n,!0):this.#H(n)}get#z(){let{editable:e}=this.#D;return e!=null&&this.#_!==null&&this.#_!==e.value}#B(e){return e.sense===`allow`&&S(this.#D)===`danger`}#V(e){let t=this.#D,n={...e.answer},r=_(t);if(r.length){if(e.id!==`send`)return n;let t=ae(r,this.#b);return`answers`in t?{...n,answers:t.answers}:(this.renderRoot.querySelector(`fieldset[data-question="${CSS.escape(t.question.id)}"] input, fieldset[data-question="${CSS.escape(t.question.id)}"] textarea`)?.focus(),r.length>1?`${x(t.question)}: ${t.words}`:t.words)}if(e.id===`send`&&t.type===`pick`){if(this.#y.size===0)return $.nothingChosen;n.ids=(t.items??[]).map(e=>e.id).filter(e=>this.#y.has(e))}if(e.id===`send`&&t.type===`prompt`){let e=this.#S??t.default_value??``;if(e===``)return $.nothingTyped;n.value=e}let i=this.#g.trim();if(e.sense===`deny`&&t.allow_reason&&i&&(n.reason=i),this.#v&&O(t)){let t=this.#F({sense:e.sense,always:!0});if(t)return t;n.remember=!0}return e.sense===`allow`&&this.#z&&(n.edited=this.#_??``),n}async#H(e){this.#i=new R(this.#D,e,st),this.#a=0,this.status=`sending`,this.#L($.sending),await this.#U()}async#U(){let e=this.#i;if(!e||this.#s)return;this.#s=!0,clearTimeout(this.#o);let t=await e.send();this.#s=!1,this.#i===e&&this.#W(t)}#W(e){switch(e.is){case`won`:this.#l=!1,this.#G(e.receipt);break;case`lost`:this.#l=!0,this.#G(e.receipt);break;case`closed`:this.#l=e.receipt!==null,this.open?this.#k(e.receipt,e.words):this.requestUpdate();break;case`refused`:if(!this.open)break;this.#i=null,this.status=`open`,this.#L(e.words,!0),l.reread(this.#D.request_id);break;case`unknown`:if(!this.open)break;this.status=`unknown`,this.#L($.unknown,!0),this.#o=setTimeout(this.#K,lt[Math.min(this.#a,lt.length-1)]),this.#a+=1}}#G(e){this.open?this.#k(e):(this.#c=e,this.requestUpdate())}#K;key(e){if(!this.open)return!0;let t=this.#D,n=mt[e.key]??e.key,r=/^[1-9]$/.test(n)?Number(n):0;if(r&&t.type===`pick`&&t.items?.length&&!t.options.length){let e=t.items[r-1];return e&&this.#X(e.id,!t.multi||!this.#y.has(e.id)),!!e}let i=D(t),a=r?i[r-1]:i.find(e=>e.key!==``&&e.key===n);if(a)return e.repeat||(this.#B(a)?this.#q(a)?.begin():this.#R(a)),!0;if(e.repeat)return!1;switch(n){case`D`:return t.allow_reason&&!t.observe_only&&this.#Z(),!0;case`e`:return t.editable&&!t.observe_only&&this.#Q(),!0;case`m`:return O(t)&&(this.#v=!this.#v),this.requestUpdate(),!0;case`c`:return this.#x&&this.#te(),!0;case`o`:return this.renderRoot.querySelector(`plexus-exact`)?.open(),!0;default:return!1}}keyUp(){this.renderRoot.querySelectorAll(`plexus-hold`).forEach(e=>e.stop())}choose(){this.focus(),this.open&&this.#L($.focusFirst)}focus(){this.renderRoot.querySelector(`article`)?.focus(),this.scrollIntoView({block:`nearest`})}#q(e){return this.renderRoot.querySelector(`plexus-hold[data-action="${CSS.escape(e.id)}"]`)}#J;#Y;#X(e,t){this.#D.multi||this.#y.clear(),t?this.#y.add(e):this.#y.delete(e),this.requestUpdate()}#Z(){this.#h=!this.#h||this.#g!==``,this.requestUpdate(),this.#h&&this.updateComplete.then(()=>this.renderRoot.querySelector(`.reason`)?.focus())}#Q(){let e=this.#D.editable;e&&(this.#_=this.#_===null?e.value:null,this.#A(),this.requestUpdate(),this.#_!==null&&this.updateComplete.then(()=>this.renderRoot.querySelector(`.edit`)?.focus()))}render(){let e=this.#D,t=S(e),r=h(e.runtime_id)||$.runtimeUnknown,i=e.type===`prompt`||e.type===`pick`||e.subject?.type===`question`,o=e.subject?.type===`unreadable`;return a`<article
      tabindex="-1"
      aria-label=${$.card(r)}
      data-status=${this.status}
      data-risk=${t}
      data-request=${e.request_id}
      data-type=${e.type}
    >
      <div class="body">
        <header>
          <span><span class="who">${r}</span> <span class="asks">${$.types[e.type]??``}</span></span>
          ${this.#ae(e)}
        </header>
        ${this.#x&&this.open?this.#ee():n}
        <section class=${i?`agents`:``}>
          <h2 class=${i||o?``:`sr`}>${i?$.agentAsks:o?$.asSent:$.exactly}</h2>
          ${o?a`<p class="unreadable">${$.unreadable}</p>`:n}
          <plexus-exact .display=${e.display} .truncated=${e.display_truncated??!1} .bytes=${e.display_bytes} .edit=${e.subject?e.subject.type===`edit`:void 0}
            @read=${this.#ne} @opened=${this.#A} @whole=${this.#$}></plexus-exact>
        </section>
        ${this.#re(e)} ${this.#ie(e)} ${this.#oe(e)} ${this.open?this.#se(e):n}
      </div>
      <div class="actions" data-arming="true">${this.status===`closed`?this.#ge(e):this.#de(e)}</div>
    </article>`}#$;#ee(){return a`<section class="warnings changed" role="alert">
      <h2>${$.changedSince}</h2>
      <button type="button" class="tool" data-tool="again" aria-disabled=${this.#n?`false`:`true`} @click=${this.#te}>${$.readAgain}</button>
    </section>`}#te;#ne;#re(e){let t=S(e),r=ht(e);return a`<p class="why">
        <span class="risk" title=${$.riskHints[t]??``}>${o(oe[t],14)}${$.risks[t]}</span>
        ${r.length?a`<span>${r.join(`; `)}</span>`:n}
      </p>
      ${e.warnings.length?a`<section class="warnings">
            <h2>${$.warns}</h2>
            <ul>
              ${e.warnings.map(e=>a`<li>${h(e)}</li>`)}
            </ul>
          </section>`:n}`}#ie(e){let t=l.sessions.value.get(e.session_id),r=l.viewers.value.get(e.session_id)??[],i=t&&!t.cwd?$.folderUnknown:Se(e,t?.cwd);return a`<div class="where">
      ${this.layout===`dock`?n:a`<a href=${l.href({page:`session`,session_id:e.session_id})}>${$.session(h(t?.title)||$.untitled)}</a>`}
      ${i?a`<span>${$.folder} <code>${i}</code></span>`:n}
      ${e.changed&&this.open&&!this.#x?a`<span>${$.changedBefore}</span>`:n}
      ${r.length?a`<span class="lookers">${$.lookers(r.map(e=>h(e.name)).join(`, `))}</span>`:n}
    </div>`}#ae(e){if(!this.open)return n;let t=l.now.value,r=[$.asked(F(e.opened_at,t))],i=e.expires_at?Date.parse(e.expires_at)-t:NaN;return Number.isNaN(i)||r.push(i>0?$.expiresIn(P(i)):$.expiring),a`<span class="when" ?data-soon=${i<ft}>${r.join(` · `)}</span>`}#oe(e){let t=xe(e),r=h(t.title),i=p(t.message).trim();if(!r&&!i)return n;let o=i.split(`
`,dt).join(`
`).slice(0,ut),s=o.length<i.length&&!this.#m;return a`<blockquote>
      <h2>${$.agentSays}</h2>
      ${r?a`<div class="said title">${r}</div>`:n} ${i?a`<div class="said">${s?`${o}…`:i}</div>`:n}
      ${s?a`<button type="button" class="more" @click=${()=>{this.#m=!0,this.requestUpdate()}}>${d.common.more}</button>`:n}
    </blockquote>`}#se(e){let t=_(e);return t.length?a`${t.map((e,n)=>this.#ce(e,n,t.length))}`:e.observe_only||e.options.length?this.#_!==null&&e.editable?this.#ue(e.editable):n:e.type===`pick`?a`<fieldset>
        <legend>${e.multi?$.chooseAny:$.chooseOne}</legend>
        ${(e.items??[]).map((t,r)=>a`<label class="pick">
            <input
              type=${e.multi?`checkbox`:`radio`}
              name="pick"
              .checked=${this.#y.has(t.id)}
              @change=${e=>this.#X(t.id,e.target.checked)}
              @keydown=${this.#Y}
            />
            <span><bdi>${h(t.label||t.id)}</bdi>${t.detail?a`<small><bdi>${h(t.detail)}</bdi></small>`:n}</span>
            ${r<9?a`<kbd aria-hidden="true">${r+1}</kbd>`:n}
          </label>`)}
      </fieldset>`:e.type===`prompt`?this.#le(e):this.#_!==null&&e.editable?this.#ue(e.editable):n}#ce(e,t,r){let i=this.#b.get(e.id)??v,o=t=>{this.#b.set(e.id,t),this.#L(``)},s=e.multiple?`checkbox`:`radio`,c=`question-${t}`,l=t=>o({...i,words:t.target.value,own:!0,chosen:e.multiple?i.chosen:new Set}),u=i===v?``:ie(e,i),d=h(e.header),f=a`<input
      class="value own" type="text" autocomplete="off" spellcheck="false" inputmode=${e.fits?.number===`integer`?`numeric`:e.fits?.number?`decimal`:`text`}
      aria-label=${$.questions.ownFor(x(e))} aria-describedby=${`${c}-wrong`} .value=${i.words} @input=${l} @keydown=${this.#Y} />`;return a`<fieldset class="question" data-question=${e.id} role=${e.multiple?`group`:`radiogroup`} aria-describedby=${`${c}-wrong`}>
      <legend>${r>1?a`<small>${$.questions.of(t+1,r)}${d?` · `:``}</small>`:n}${d?a`<small><bdi>${d}</bdi></small>`:n}
        <span class="asked"><bdi>${p(e.text)}</bdi></span>
        <small>${e.options.length?e.multiple?$.chooseAny:$.chooseOne:``}${e.optional?` ${$.questions.optional}`:``}</small></legend>
      ${e.options.map(t=>a`<label class="pick">
        <input type=${s} name=${c} .checked=${i.chosen.has(t.id)} @change=${n=>o(ne(e,i,t.id,n.target.checked))} @keydown=${this.#Y} />
        <span><bdi>${h(t.label||t.id)}</bdi>${t.description?a`<small><bdi>${h(t.description)}</bdi></small>`:n}</span>
      </label>`)}
      ${e.free_text?e.options.length?a`<label class="pick"><input type=${s} name=${c} .checked=${i.own} @change=${t=>o(re(e,i,t.target.checked))} @keydown=${this.#Y} /><span>${$.questions.other}</span></label>${f}`:f:n}
      <p class="wrong" id=${`${c}-wrong`} role="status">${u}</p>
    </fieldset>`}#le(e){let t=this.#S??e.default_value??``,r=e=>{this.#S=e.target.value,this.requestUpdate()},i=e.secret?$.secretField:$.answerField;return a`<div class="field">
      <label for="value">${i}</label>
      <div class="row">
        ${e.multiline&&!e.secret?a`<textarea id="value" class="value" rows="4" autocomplete="off" .value=${t} @input=${r}></textarea>`:a`<input
              id="value"
              class="value"
              type=${e.secret&&!this.#C?`password`:`text`}
              autocomplete=${e.secret?`one-time-code`:`off`}
              autocapitalize="off"
              spellcheck="false"
              .value=${t}
              @input=${r}
              @keydown=${this.#Y}
            />`}
        ${e.secret?a`<button type="button" class="tool" aria-pressed=${this.#C} @click=${()=>{this.#C=!this.#C,this.requestUpdate()}}>
              ${this.#C?$.hideSecret:$.showSecret}
            </button>`:n}
      </div>
    </div>`}#ue(e){let t=this.#_??e.value,n=Te(e.value,t);return a`<section class="field">
      <label for="edit">${$.editing}: <bdi>${h(e.label)}</bdi></label>
      <textarea
        id="edit"
        class="edit code"
        rows=${Math.min(10,t.split(`
`).length+1)}
        autocomplete="off"
        autocapitalize="off"
        spellcheck="false"
        .value=${t}
        @input=${e=>{this.#_=e.target.value,this.requestUpdate()}}
        @keydown=${e=>e.key===`Escape`&&this.focus()}
      ></textarea>
      <h2>${$.changes}</h2>
      ${t===e.value?a`<p class="say">${$.noChanges}</p>`:a`<div class="changes" tabindex="0" role="group" aria-label=${$.changes}>
            ${n.map(e=>a`<span class=${e.kind}>${{same:`  `,add:`+ `,del:`- `}[e.kind]}${ee(e.text)}</span>`)}
          </div>`}
    </section>`}#de(e){let t=D(e),{main:r,others:i,lasting:o}=fe(t),s=this.#N(),c=this.#f||(this.status===`open`?s:``)||(this.#n||!t.length||!q(e.display).long?``:$.readFirst),l=t.some(e=>this.#B(e)),u=e=>n=>this.#he(n,t.indexOf(n),e);return a`${this.#h&&e.allow_reason?a`<div class="field">
            <label for="reason">${$.reason}</label>
            <input
              id="reason"
              class="reason"
              type="text"
              maxlength=${pt}
              autocomplete="off"
              .value=${this.#g}
              @input=${e=>{this.#g=e.target.value,this.requestUpdate()}}
              @keydown=${this.#Y}
            />
          </div>`:n}
      ${this.#T&&l&&!s?this.#pe(t):n}
      ${t.length?a`<div class="answers">${i.map(u(`whole`))}${r.map(u(r.length>1?`wide`:`whole`))}</div>`:n}
      ${o.length||!s?a`<div class="extra">
            ${o.length?a`<div class="lasting">${o.map(u(`small`))}</div>`:n} ${s?n:this.#fe(e,l)}
          </div>`:n}
      <p class="say" role="status" ?data-bad=${this.#p&&this.#f!==``}>
        ${t.length||e.observe_only?c:$.cannot(e.request_id)}
        ${this.status===`unknown`&&!this.#s?a`<button type="button" class="tool ask" @click=${this.#K}>${$.unknownNow}</button>`:n}
      </p>`}#fe(e,t){let r=[e.editable&&!e.observe_only?a`<button type="button" class="tool" data-tool="edit" aria-expanded=${this.#_!==null} @click=${()=>this.#Q()}>${this.#_===null?$.edit:$.stopEdit}</button>`:null,e.allow_reason&&!e.observe_only?a`<button type="button" class="tool" data-tool="reason" aria-expanded=${this.#h} @click=${()=>this.#Z()}>${$.denyWhy}</button>`:null,O(e)?a`<label class="box"><input type="checkbox" .checked=${this.#v} @change=${e=>{this.#v=e.target.checked}} @keydown=${this.#Y} />${$.remember}</label>`:null,t?a`<button type="button" class="tool" data-tool="word" aria-expanded=${this.#T} @click=${()=>{this.#T=!this.#T,this.#E=``,this.requestUpdate(),this.#T&&this.updateComplete.then(()=>this.renderRoot.querySelector(`.typed`)?.focus())}}>${$.typeInstead}</button>`:null].filter(e=>e!==null);return r.length?a`<div class="tools">${r}</div>`:n}#pe(e){let t=this.#E.trim().toLowerCase()===$.typeWord,n=e.find(e=>e.key===`a`)??e.find(e=>e.sense===`allow`);return n?a`<div class="word">
      <div class="field">
        <label for="typed">${$.typeLabel}</label>
        <input id="typed" class="typed" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" .value=${this.#E} @input=${e=>{this.#E=e.target.value,this.requestUpdate()}} @keydown=${this.#Y} />
      </div>
      <button
        type="button"
        class="answer typed-go"
        data-sense="allow"
        aria-disabled=${t&&!this.#F(n)?`false`:`true`}
        @keydown=${e=>this.#J(e,n)}
        @click=${()=>t?this.#R(n,!0):this.#L($.typeLabel,!0)}
      >
        <strong>${this.#me(n)}</strong>
      </button>
    </div>`:a``}#me(e){let t=this.#D;return e.sense===`allow`&&!e.always&&this.#z?$.allowEdited:e.key===`d`&&this.#g.trim()&&t.allow_reason?$.denyNow:e.verb}#he(e,t,r){let i=this.#F(e)!==``,o=e.key||(t<9?String(t+1):``),s=h(this.#D.runtime_id)||$.runtimeUnknown,c=r===`small`?e.quoted?$.reaches(s):e.sense===`allow`?$.alwaysPlain(s):$.neverPlain(s):``;return this.#B(e)?a`<plexus-hold
        class=${r}
        data-action=${e.id}
        data-sense=${e.sense}
        .verb=${this.#me(e)}
        .quoted=${e.quoted}
        .reach=${c}
        .hint=${$.holdHint}
        .off=${i}
        @hold-start=${()=>this.#L($.holding)}
        @hold-released=${()=>this.open&&this.#L($.released,!0)}
        @hold-done=${()=>this.#R(e,!0)}
        @enter=${()=>this.#L($.enterNever,!0)}
      ></plexus-hold>`:a`<button
      type="button"
      class="answer ${r}"
      data-action=${e.id}
      data-sense=${e.sense}
      data-key=${e.key}
      aria-disabled=${i?`true`:`false`}
      @keydown=${t=>this.#J(t,e)}
      @click=${()=>this.#R(e)}
    >
      <strong>${this.#me(e)}${o?a`<kbd aria-hidden="true">${o}</kbd>`:n}</strong>
      ${e.quoted||c?a`<small>${c} ${e.quoted?a`“<bdi>${e.quoted}</bdi>”`:n}</small>`:n}
    </button>`}#ge(e){let t=this.#c;if(!t)return a`<div class="outcome" role="status" data-sense="none">${o(`info`,28)}<div><strong>${this.#u||$.gone}</strong></div></div>`;let r=f(t,e,l.me.value?.device_id);return a`<div class="outcome" role="status" data-sense=${r.sense}>
      ${o({allow:`check`,deny:`close`,none:`info`}[r.sense],28)}
      <div>
        <strong>${r.text}</strong>, <span class="age">${F(r.at,l.now.value)}</span>
        ${r.edited?a`<p>${$.editedTo} <code>${r.edited}</code></p>`:n} ${r.reason?a`<p>${$.because(r.reason)}</p>`:n} ${this.#l?a`<p class="late">${$.late}</p>`:n}
      </div>
    </div>`}};customElements.define(`plexus-card`,gt);export{G as a,B as c,D as d,oe as f,_ as h,Ye as i,R as l,C as m,st as n,be as o,S as p,at as r,ve as s,ct as t,P as u};