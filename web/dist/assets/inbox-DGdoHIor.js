import{a as e,c as t,f as n,n as r,o as i,t as a,u as o}from"./libraries-MxmsVMue.js";import{$ as s,At as c,Ct as l,J as ee,Q as u,Y as te,a as ne,et as d,f,gt as p,h as re,ht as m,m as h,nt as g,o as ie,q as ae,tt as _,u as v,v as y,vt as b,y as x}from"./frame-CWJtEa8y.js";import{a as S,c as C,d as w,f as oe,g as se,h as T,i as E,l as D,m as O,n as ce,p as le,r as k,s as ue,u as de}from"./card-6mM5Odmy.js";import{c as fe}from"./index-BuPhy2JE.js";var pe=n`
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
`,me=6,he=[1500,3e3,6e3];function ge(e,t,{now:n,device:r,seen:i,reason:a}){let o=n.get(e.request_id);if(!o||o.state!==`open`)return`closed`;if(o.digest!==e.digest||o.revision!==e.revision)return`changed`;if(o.observe_only)return`elsewhere`;let s=re(o,r);if(t===`deny`){let e=s.find(e=>e.key===`d`);return e?o.allow_reason&&a?{...e.answer,reason:a}:{...e.answer}:`no_deny`}if(s.some(e=>e.role===`send`))return`question`;let c=s.find(e=>e.role===`allow_once`);return c?c.unavailable===`risk`?`limit`:x(o)===`danger`?`danger`:i(o)?{...c.answer}:`unread`:`never_once`}function A(e,t,n){let r={will:[],out:[]};for(let i of e){let e=ge(i,t,n);typeof e==`string`?r.out.push({request:i,why:e}):r.will.push({request:i,answer:e})}return r}function _e(e){let t=new Map;for(let{request:n,why:r}of e.out)t.set(r,[...t.get(r)??[],n]);return t}async function ve(e,t,n=he){let r=[...e];await Promise.all(Array.from({length:Math.min(me,e.length)},async()=>{for(let e=r.shift();e;e=r.shift()){let r=await e.send();for(let t of n){if(r.is!==`unknown`)break;await new Promise(e=>setTimeout(e,t)),r=await e.send()}t(e,r)}}))}var j={ids:new Set,anchor:``};function M(e,t){let n=new Set(e.ids);return n.delete(t)||n.add(t),{ids:n,anchor:t}}function N(e,t){let n=new Set(e.ids),r=t.length>0&&t.every(e=>n.has(e));for(let e of t)r?n.delete(e):n.add(e);return{ids:n,anchor:t[0]??e.anchor}}function P(e,t,n){let r=n.indexOf(t),i=n.indexOf(e.anchor);return r<0?e:i<0?{ids:new Set([...e.ids,t]),anchor:t}:{ids:new Set([...e.ids,...n.slice(Math.min(i,r),Math.max(i,r)+1)]),anchor:e.anchor}}function F(e,t){let n=[...e.ids].filter(t);return n.length===e.ids.size?e:{ids:new Set(n),anchor:e.anchor}}var I=m.request.many,ye=2e3,be=80,L=200,xe=class extends c{static{this.properties={phase:{state:!0},armed:{state:!0}}}#e=`deny`;#t=[];#n=``;#r=``;#i=new oe(performance.now());#a;#o=-1;#s=0;#c=new Map;constructor(){super(),this.phase=`closed`,this.armed=!1}static{this.styles=[...[c.styles].flat(),n`
      :host { display: contents; }
      ul { display: flex; flex-direction: column; border: 1px solid var(--line); border-radius: var(--r-s); overflow-y: auto; max-block-size: min(34dvh, 320px); }
      ul:focus-visible { outline-offset: -2px; }
      li { display: flex; gap: 10px; align-items: baseline; padding: 5px 10px; min-inline-size: 0; }
      li + li { border-block-start: 1px solid var(--line); }
      li bdi { flex: 1 1 0; min-inline-size: 0; overflow-wrap: anywhere; font-family: var(--mono); font-size: var(--t-s); direction: ltr; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
      li small { flex: none; max-inline-size: 45%; color: var(--fg-mute); font-size: var(--t-s); overflow-wrap: anywhere; text-align: end; }
      h3 { margin-block-end: 4px; }
      .out { color: var(--fg-soft); }
      .out details + details { border-block-start: 1px solid var(--line); }
      summary { min-block-size: 32px; display: flex; align-items: center; gap: 6px; cursor: pointer; }
      summary::before { content: '▸'; color: var(--fg-mute); }
      details[open] summary::before { content: '▾'; }
      @media (pointer: coarse) { summary { min-block-size: 44px; } }
      .row { display: flex; gap: var(--s2); flex-direction: row-reverse; }
      .row button { min-block-size: 44px; flex: 0 1 auto; min-inline-size: 8rem; white-space: normal; }
      .row #go { background: var(--accent-solid); color: var(--on-accent); border-color: transparent; font-weight: 620; }
      .row #go.deny { background: var(--danger-solid); color: #fff; }
      .say { color: var(--danger); }
      .say:not(:empty) { margin-block-end: 8px; }
      .said { color: var(--fg-mute); }
      @media (max-width: 599px) { .row button { flex: 1 1 0; } }
    `]}connectedCallback(){super.connectedCallback(),this.#a=setInterval(this.#u,be)}disconnectedCallback(){super.disconnectedCallback(),clearInterval(this.#a)}ask(e,t){this.phase!==`sending`&&(this.#e=e,this.#t=t,this.#n=``,this.#r=``,this.#o=-1,this.#c.clear(),this.phase=`asking`)}#l(){return A(this.#t,this.#e,{now:g.requests.value,device:E(),seen:k,reason:this.#n.trim()})}#u=()=>{this.phase===`asking`&&(this.armed=this.#i.armed(performance.now()))};updated(){if(this.phase!==`asking`)return;let{length:e}=this.#l().will;e!==this.#o&&(this.#o=e,this.#i.again(performance.now()),this.armed=!1)}#d(){return g.may(`approve`)?g.live.value?``:m.request.offline:h.scope}#f=()=>{let e=this.#l(),t=this.#d()||(e.will.length===0||e.will.length!==this.#o||!this.#i.armed(performance.now())?m.request.early:``);this.#r=t,this.requestUpdate(),t||this.#m(e.will.map(({request:e,answer:t})=>new le(e,t,ce)))};#p=e=>{e.key===`Enter`&&this.#e!==`deny`&&(e.preventDefault(),this.#r=m.request.enterNever,this.requestUpdate())};async#m(e){this.phase=`sending`,this.#s=this.#c.size+e.length,await ve(e,(e,t)=>{this.#c.set(e,t),t.is===`refused`&&g.reread(e.request.request_id),this.requestUpdate()}),this.dispatchEvent(new Event(`answered`)),this.phase===`sending`&&this.#h(`won`).length<this.#c.size?this.phase=`done`:(s(this.#g()),this.#v())}#h(e){return[...this.#c].filter(([,t])=>t.is===e)}#g(){let e=this.#h(`won`).length,t=this.#c.size-e;return`${this.#e===`allow`?I.allowed(e):I.denied(e)}${t?` ${I.rest(t)}`:``}`}#_=()=>{let e=this.#h(`unknown`).map(([e])=>e);for(let t of e)this.#c.delete(t);e.length&&this.#m(e)};#v=()=>{this.phase!==`closed`&&(this.phase=`closed`,this.dispatchEvent(new Event(`closed`)))};render(){let e=this.phase===`asking`?this.#l():null,n=e?.will.length??0,r=this.phase===`asking`?this.#e===`allow`?I.allowTitle(n):I.denyTitle(n):this.phase===`sending`?I.sending(this.#c.size,this.#s):this.phase===`done`?this.#g():``;return o`<plexus-dialog .open=${this.phase!==`closed`} heading=${r} @close=${this.#v}>
      ${e?this.#x(e):this.phase===`done`?this.#S():this.phase===`sending`?o`<p class="said" role="status">${I.wait}</p>`:t}
    </plexus-dialog>`}#y(e,n,r){return o`<ul tabindex="0" aria-label=${n}>
      ${e.slice(0,L).map(e=>o`<li><bdi>${w(e)}</bdi><small>${r(e)}</small></li>`)}
      ${e.length>L?o`<li><small>${I.moreListed(e.length-L)}</small></li>`:t}
    </ul>`}#b=e=>{let t=g.sessions.value.get(e.session_id);return[b(e.runtime_id),t?.cwd?v(t).name:``].filter(Boolean).join(` · `)};#x(e){let{will:n}=e,r=n.filter(({request:e})=>e.allow_reason).length,i=this.#d(),a=this.#e===`allow`?I.allowDo(n.length):I.denyDo(n.length),s=[..._e(e)];return o`${n.length?o`<section class="will"><h3>${this.#e===`allow`?I.willAllow:I.willDeny}</h3>${this.#y(n.map(({request:e})=>e),this.#e===`allow`?I.willAllow:I.willDeny,this.#b)}</section>`:t}
      ${s.length?o`<section class="out"><h3>${I.leftOut(e.out.length)}</h3>
            ${s.map(([e,t])=>o`<details><summary>${I.why[e](t.length)}</summary>${this.#y(t,I.why[e](t.length),this.#b)}</details>`)}</section>`:t}
      ${this.#e===`deny`&&r?o`<label class="field">${r===n.length?I.reason:I.reasonFor(r,n.length)}
            <input id="reason" maxlength=${ye} autocomplete="off" .value=${this.#n} @input=${e=>{this.#n=e.target.value}} @keydown=${e=>{e.key===`Enter`&&e.preventDefault()}} />
          </label>`:t}
      <div slot="foot"><p class="say" role="status">${this.#r||i}</p>
        <div class="row">
          ${n.length?o`<button type="button" id="go" class=${this.#e} aria-disabled=${i||!this.armed?`true`:`false`} @keydown=${this.#p} @click=${this.#f}>${a}</button>`:t}
          <button type="button" id="cancel" @click=${this.#C}>${m.common.cancel}</button>
        </div></div>`}#S(){let e=[...this.#h(`lost`),...this.#h(`closed`)],n=this.#h(`refused`),r=this.#h(`unknown`),i=g.me.value?.device_id,a=new Map(e.map(([{request:e},t])=>[e.request_id,`receipt`in t&&t.receipt?f(t.receipt,e,i).text:t.is===`closed`?t.words:``])),s=new Map(n.map(([{request:e},t])=>[e.request_id,t.is===`refused`?t.words:``])),c=(e,n,r)=>e.length?o`<section><h3>${n}</h3>${this.#y(e.map(([{request:e}])=>e),n,r)}</section>`:t;return o`${c(e,I.lost(e.length),e=>a.get(e.request_id)??``)}
      ${c(n,I.refused(n.length),e=>s.get(e.request_id)??``)}
      ${c(r,I.unknown(r.length),this.#b)}
      <div slot="foot" class="row">
        ${r.length?o`<button type="button" id="again" @click=${this.#_}>${m.request.unknownNow}</button>`:t}
        <button type="button" id="close" @click=${this.#C}>${m.common.close}</button>
      </div>`}#C=()=>this.#v()};customElements.define(`plexus-many`,xe);var R={danger:0,elevated:1,low:2};function z(e,t){return R[x(e)]-R[x(t)]||Date.parse(t.opened_at)-Date.parse(e.opened_at)||(e.request_id<t.request_id?-1:1)}function B(e,t){let n=new Map;return e.forEach((e,r)=>{let i=t(e)||`\u0000${r}`,a=n.get(i);a?a.push(e):n.set(i,[e])}),[...n].flatMap(([e,t])=>t.map(n=>({id:n,group:t.length>1?e:``})))}function Se(e,t,{fresh:n,settled:r,keyOf:i}){let a=new Map(t.map(e=>[e.request_id,e])),o=new Set(e.map(e=>e.id)),s=t.filter(e=>!o.has(e.request_id)).sort(z).map(e=>e.request_id),c=e=>i(a.get(e));if(n||e.length===0)return{order:B([...t].sort(z).map(e=>e.request_id),c),added:s};let l=e.filter(e=>a.has(e.id));return r?{order:B([...l.map(e=>e.id),...s],c),added:s}:{order:[...l,...s.map(e=>({id:e,group:``}))],added:s}}function Ce(e,t){let n=[];for(let{id:t,group:r}of e){let e=n[n.length-1];r&&e?.group===r?e.ids.push(t):n.push({group:r,ids:[t]})}let r=n.length;return n.flatMap(({group:e,ids:n},i)=>{if(!e)return n.map(t=>({kind:`request`,key:t,id:t,group:e,nth:i+1,of:r}));let a={kind:`group`,key:`group ${e}`,group:e,ids:n,folded:t.has(e),nth:i+1,of:r};return a.folded?[a]:[a,...n.map((t,r)=>({kind:`request`,key:t,id:t,group:e,nth:r+1,of:n.length}))]})}function we(e,t,n){let r=[0];for(let i of e)r.push(r[r.length-1]+(i.kind===`group`?n:t));return r}function V(e,t){let n=0,r=e.length-1;for(;n<r;){let i=n+r>>1;e[i+1]>t?r=i:n=i+1}return Math.min(n,e.length-2)}function H(e,t,n,r){return e.length<2?[0,0]:[V(e,Math.max(0,t-r)),V(e,t+n+r)+1]}var U=m.request.rows;function W(e){let n=e.verb===``&&!e.quoted;return o`${e.verb?o`<span class="verb">${e.verb}</span>`:t}<span class="asked ${n?`code`:``}">${e.quoted?`“`:t}<bdi class="from">${e.head}</bdi>${e.tail?o`<bdi class="to">${e.tail}</bdi>`:t}${e.quoted?`”`:t}</span>${e.more?o`<span class="more">${e.more}</span>`:t}`}function Te(e){if(S(e.request_id))return o`<span class="where"><span>${m.request.leftRow}</span></span>`;let n=g.sessions.value.get(e.session_id);return o`<span class="where">${n?.cwd?o`<bdi>${v(n).name}</bdi>`:t}</span>`}var G=e=>b(g.sessions.value.get(e.session_id)?.title)||m.request.untitled;function Ee(e,n){let r=n?t:Te(e),i=g.now.value;if(e.state!==`open`){let t=e.receipt?f(e.receipt,e,g.me.value?.device_id):null;return o`<span class="outcome" data-sense=${t?.sense??`none`}>${t?.text??m.request.gone}</span>${r}`}let a=x(e),s=e.expires_at?Date.parse(e.expires_at)-i:NaN,c=Date.parse(e.opened_at),l=C(e)&&a!==`danger`;return o`${l?t:o`<span class="risk" data-risk=${a}>${_(y[a],12)}${m.request.risks[a]}</span>`}
    <span class="why">${l?t:(e.risk_reasons??[]).map(b).join(`; `)}</span>${r}
    <span class="age">${Number.isNaN(s)?Number.isNaN(c)?t:O(i-c):s>0?U.left(O(s)):m.request.expiring}</span>`}function De(e,n,r){let i=r.request(e.id);if(!i)return o``;let s=i.state===`open`,c=e.group!==``&&r.grouping===`command`,l=r.chosen.has(e.id);return o`<div
    role="row"
    class="row ${e.group?`in`:``}"
    data-n=${n}
    data-key=${e.key}
    data-request=${e.id}
    data-state=${s?`open`:`closed`}
    tabindex=${r.active===e.key?0:-1}
    aria-level=${e.group?2:1}
    aria-posinset=${e.nth}
    aria-setsize=${e.of}
    aria-rowindex=${n+1}
    aria-selected=${l?`true`:`false`}
    aria-current=${r.opened===e.id?`true`:t}
    ?data-unread=${s&&!k(i)}
    @click=${t=>r.pressed(e,t)}
  >
    <span role="gridcell" class="tick" @click=${t=>r.ticked(e,t)}
      >${s?o`<input type="checkbox" tabindex="-1" aria-label=${U.choose(w(i))} .checked=${a(l)} />`:t}</span>
    <div role="gridcell" class="cell">${T(i.runtime_id)}<div class="words">
      <div class="one">${c?o`<span class="asked"><bdi class="from">${G(i)}</bdi></span>`:W(D(i))}</div>
      <div class="two">${Ee(i,e.group!==``&&r.grouping===`session`)}</div>
    </div></div>
  </div>`}function Oe(e,n){let r=e.flatMap(e=>{let t=n.request(e);return t?.state===`open`?[x(t)]:[]}),i=[`danger`,`elevated`,`low`].find(e=>r.includes(e));return i?o`<span class="risk" data-risk=${i}>${_(y[i],12)}${m.request.risks[i]}</span>`:t}function ke(e,n,r){let i=e.ids.filter(e=>r.request(e)?.state===`open`),s=r.request(e.ids[0]??``),c=i.filter(e=>r.chosen.has(e)).length,l=s?r.grouping===`session`?G(s):w(s):``;return o`<div
    role="row"
    class="row head"
    data-n=${n}
    data-key=${e.key}
    data-group
    tabindex=${r.active===e.key?0:-1}
    aria-level="1"
    aria-posinset=${e.nth}
    aria-setsize=${e.of}
    aria-rowindex=${n+1}
    aria-expanded=${e.folded?`false`:`true`}
    aria-selected=${i.length>0&&c===i.length?`true`:`false`}
    @click=${t=>r.pressed(e,t)}
  >
    <span role="gridcell" class="tick" @click=${t=>r.ticked(e,t)}
      >${i.length?o`<input type="checkbox" tabindex="-1" aria-label=${U.chooseGroup(i.length,l)} .checked=${a(c===i.length)} .indeterminate=${a(c>0&&c<i.length)} />`:t}</span>
    <div role="gridcell" class="words">
      <span class="fold" aria-hidden="true">${_(`forward`,12)}</span>
      <div class="one">${s?r.grouping===`session`?o`<span class="asked"><bdi class="from">${l}</bdi></span>`:W(D(s)):t}</div>
      ${e.folded?Oe(e.ids,r):t}
      <span class="count">${U.inGroup(i.length,e.ids.length)}</span>
    </div>
  </div>`}var Ae=(e,t,n)=>e.kind===`group`?ke(e,t,n):De(e,t,n),K=m.request,je=8e3,Me=4e3,Ne=6e4,Pe=1e3,Fe={fine:3,coarse:3.5},Ie={fine:2.5,coarse:2.75};function q(){let e=parseFloat(getComputedStyle(document.documentElement).fontSize)||16,t=matchMedia(`(pointer: coarse)`).matches?`coarse`:`fine`;return{row:Fe[t]*e,head:Ie[t]*e}}var Le=400,J=8,Re=2500,ze=500,Y=`plexus.inbox.groups`,X=[`command`,`session`,`none`];function Be(){try{let e=localStorage.getItem(Y);return X.find(t=>t===e)??`command`}catch{return`command`}}var Ve=class extends c{static{this.properties={beside:{type:Boolean,reflect:!0},opened:{state:!0},active:{state:!0},grouping:{state:!0}}}#e=[];#t=[];#n=[0];#r=new Map;#i=new Set;#a=new Set;#o=j;#s=[];#c=new Map;#l=!1;#u=``;#d=0;#f=!1;#p;#m=new Set;#h=!0;#g;#_=0;#v=0;#y=null;#b=q();#x=[];#S=[];#C=0;#w;#T=()=>{};#E=()=>{};constructor(){super(),this.beside=!1,this.opened=``,this.active=``,this.grouping=Be()}static{this.styles=[...[c.styles].flat(),se,pe]}connectedCallback(){super.connectedCallback();for(let e of[`pointerenter`,`pointermove`,`pointerdown`])this.addEventListener(e,this.#D);this.addEventListener(`pointerleave`,this.#O),this.addEventListener(`keydown`,this.#k),this.#p=setInterval(this.#P,Pe),this.#E=ue(this),this.#T=l([...[`j`,`]`].map(e=>({key:e,atOnce:!0,run:()=>this.#q(1)})),...[`k`,`[`].map(e=>({key:e,atOnce:!0,run:()=>this.#q(-1)})),{key:`x`,atOnce:!0,run:()=>this.#ae()},{key:`X`,atOnce:!0,run:()=>this.#re(j)}]),this.#g=new ResizeObserver(()=>this.#N()),this.#g.observe(this)}disconnectedCallback(){super.disconnectedCallback();for(let e of[`pointerenter`,`pointermove`,`pointerdown`])this.removeEventListener(e,this.#D);this.removeEventListener(`pointerleave`,this.#O),this.removeEventListener(`keydown`,this.#k),clearInterval(this.#p),clearTimeout(this.#w),this.#E(),this.#T(),this.#g?.disconnect()}#D=e=>{this.#f=e.pointerType===`mouse`,this.#d=Date.now()};#O=()=>{this.#f=!1};#k=()=>{this.#d=Date.now()};get#A(){if(this.#o.ids.size)return!1;let e=this.#f||this.matches(`:focus-within`);return Date.now()-this.#d>(e?Ne:Me)}get#j(){return this.renderRoot.querySelector(`.scroller`)}cardAt(e){let t=e.closest(`[role="row"]`)?.dataset.request;return t!==void 0&&t===this.opened?this.#M(t):null}several(e){let t=e===`a`?`allow`:e===`d`||e===`r`?`deny`:null;return this.#o.ids.size&&t?()=>this.#ue(t):null}#M(e){return[...this.renderRoot.querySelectorAll(`plexus-card`)].find(t=>t.request.request_id===e)??null}#N(){let e=this.#j;this.#b=q(),this.beside=this.clientWidth>=760,this.#v=e?.clientHeight??0,this.requestUpdate()}#P=()=>{if(!document.hidden&&this.#A){for(let[e,t]of this.#c)Date.now()-t<je||this.#M(e)?.unsettled||this.#i.add(e);this.requestUpdate()}};#F=e=>this.grouping===`command`?de(e):this.grouping===`session`?e.session_id:``;#I(){let e=[...g.requests.value.values()],t=new Set(this.#e.map(e=>e.id)),n=e.filter(e=>!this.#i.has(e.request_id)&&(e.state===`open`||t.has(e.request_id)));this.#r=new Map(n.map(e=>[e.request_id,e]));let{order:r,added:i}=Se(this.#e,n,{fresh:this.#h,settled:this.#A,keyOf:this.#F});this.#e=r;for(let e of this.#i)g.requests.value.has(e)||this.#i.delete(e);if(!this.#h){for(let e of i)this.#m.add(e);this.#x.push(...i)}g.loaded.value&&(this.#h=!1);for(let e of n)e.state===`open`?this.#c.delete(e.request_id):this.#c.has(e.request_id)||(this.#c.set(e.request_id,Date.now()),e.request_id!==this.opened&&this.#S.push(e.request_id));for(let e of this.#c.keys())this.#r.has(e)||this.#c.delete(e);for(let e of this.#m)this.#r.has(e)||this.#m.delete(e);this.#o=F(this.#o,e=>this.#r.get(e)?.state===`open`),this.#t=Ce(r,this.#a),this.#n=we(this.#t,this.#b.row,this.#b.head),this.#L(),this.#t.some(e=>e.key===this.active)||(this.active=this.opened&&this.#z(this.opened)>=0?this.opened:this.#t[0]?.key??``)}#L(){if(this.opened&&!this.#r.has(this.opened)&&(this.opened=``),this.#s=this.#s.filter(e=>this.#r.has(e)),this.opened||this.#l)return;let e=this.#e.filter(({id:e})=>this.#r.get(e)?.state===`open`&&!S(e)&&e!==this.#u);e[0]&&(this.beside||e.length===1)&&(this.#R(e[0].id),this.matches(`:focus-within`)||(this.active=e[0].id))}#R(e){this.opened=e,this.#s=[e,...this.#s.filter(t=>t!==e)],this.#s=this.#s.filter((e,t)=>t<J||this.#M(e)?.unsettled)}#z(e){return this.#t.findIndex(t=>t.key===e)}willUpdate(){this.#B(),this.#I()}#B(){let e=V(this.#n,this.#_),t=this.#t[e];this.#y=t&&this.#_>0?{key:t.key,into:this.#_-this.#n[e]}:null}updated(e){let t=this.#j,n=this.renderRoot.querySelector(`.rows`);if(!t||!n)return;n.style.blockSize=`${this.#n[this.#n.length-1]}px`;for(let e of n.querySelectorAll(`[data-n]`))e.style.insetBlockStart=`${this.#n[Number(e.dataset.n)]??0}px`;let r=this.#y?this.#z(this.#y.key):-1;if(this.#y&&r>=0){let e=this.#n[r]+this.#y.into;Math.abs(e-this.#_)>=1&&(t.scrollTop=e)}(t.clientHeight!==this.#v||this.#_!==t.scrollTop)&&(this.#v=t.clientHeight,this.#_=t.scrollTop,this.requestUpdate()),(e.has(`beside`)||e.has(`opened`))&&this.#W(this.#z(this.opened)),this.#V(),this.#H()}#V(){if(!this.#m.size||document.hidden||!this.#v)return;let e=this.#m.size,[t,n]=H(this.#n,this.#_,this.#v-this.#b.row,0);for(let e of this.#t.slice(t,n))for(let t of e.kind===`group`?e.ids:[e.id])this.#m.delete(t);this.#m.size!==e&&this.requestUpdate()}#H(){if(!this.#x.length&&!this.#S.length)return;let e=Math.max(ze,this.#C+Re-performance.now());this.#w??=setTimeout(()=>{this.#w=void 0,this.#U()},e)}#U(){this.#C=performance.now();let e=g.me.peek()?.device_id,t=this.#r.get(this.#x[0]??``),n=this.#r.get(this.#S[0]??``),r=[this.#x.length===1&&t?K.opened(b(t.runtime_id),w(t)):this.#x.length?K.openedMany(this.#x.length):``,this.#S.length===1&&n?`${n.receipt?f(n.receipt,n,e).text:K.gone}: ${w(n)}.`:this.#S.length?K.resolvedMany(this.#S.length):``];this.#x=[],this.#S=[],u(r.filter(Boolean).join(` `))}#W(e){let t=this.#j;if(!t||e<0||!this.#v)return;let n=this.#n[e],r=this.#n[e+1];n<t.scrollTop?t.scrollTop=n:r>t.scrollTop+t.clientHeight&&(t.scrollTop=r-t.clientHeight)}async#G(e,t=!1){let n=this.#t[Math.max(0,Math.min(this.#t.length-1,e))];if(!n)return;let r=this.active;if(this.active=n.key,this.#d=Date.now(),n.kind===`request`&&(this.#l=!1,this.#R(n.id),t)){let e=this.#o.anchor?this.#o:{ids:this.#o.ids,anchor:this.#r.has(r)?r:n.id};this.#o=P(e,n.id,this.#J())}this.requestUpdate(),await this.updateComplete,this.#W(this.#z(n.key)),this.requestUpdate(),await this.updateComplete,this.#K(n.key)?.focus({preventScroll:!0})}#K(e){return[...this.renderRoot.querySelectorAll(`[role="row"]`)].find(t=>t.dataset.key===e)??null}#q(e){let t=this.#z(this.active);this.#G(this.matches(`:focus-within`)&&t>=0?t+e:Math.max(0,t))}#J(){return this.#e.map(e=>e.id).filter(e=>this.#r.get(e)?.state===`open`)}#Y=e=>{if((e.ctrlKey||e.metaKey)&&e.key===`a`){this.#re(N(j,this.#J())),e.preventDefault();return}if(e.ctrlKey||e.metaKey||e.altKey)return;let t=this.#z(this.active),n=this.#t[t],r=Math.max(1,Math.floor(this.#v/this.#b.row)-1),i={ArrowDown:t+1,ArrowUp:t-1,Home:0,End:this.#t.length-1,PageDown:t+r,PageUp:t-r}[e.key];if(i!==void 0)this.#G(i,e.shiftKey);else if(e.key===` `)this.#ae();else if(e.key===`Enter`)this.#X(n);else if(e.key===`ArrowLeft`||e.key===`ArrowRight`)this.#Z(n,e.key===`ArrowLeft`);else if(e.key===`Escape`&&this.#o.ids.size)this.#re(j);else return;e.preventDefault()};#X(e){e?.kind===`group`?this.#Z(e,!e.folded):e&&this.#M(e.id)?.focus()}#Z(e,t){e?.group&&(t?this.#a.add(e.group):this.#a.delete(e.group),this.active=e.kind===`group`?e.key:t?`group ${e.group}`:e.key,this.requestUpdate(),this.updateComplete.then(()=>this.#K(this.active)?.focus({preventScroll:!0})))}#Q=e=>{e.key===`Escape`&&!e.defaultPrevented&&e.composedPath()[0].matches(`article, [tabindex="-1"]`)&&(e.preventDefault(),this.beside?this.#K(this.opened)?.focus({preventScroll:!0}):this.#$())};#$=()=>{let e=this.opened;this.#l=!0,this.opened=``,this.updateComplete.then(()=>this.#K(e)?.focus({preventScroll:!0}))};#ee=e=>{let{request_id:t,mine:n}=e.detail;if(this.beside||!n||t!==this.opened)return;this.#u=t;let r=this.#t.flatMap(e=>e.kind===`request`?[e.id]:[]),i=r.indexOf(t),a=[...r.slice(i+1),...r.slice(0,i)].find(e=>this.#r.get(e)?.state===`open`&&this.#M(e)?.open!==!1);a===void 0?this.opened=``:this.#R(a),this.active=a??t,this.requestUpdate(),this.updateComplete.then(()=>a===void 0?this.#K(t)?.focus({preventScroll:!0}):this.#M(a)?.focus())};#te(){let e=this.#r.get(this.#u);return e?.receipt&&this.opened!==this.#u?`${f(e.receipt,e).what}: ${w(e)}`:``}#ne(e){let t=this.#t.flatMap(e=>e.kind===`request`?[e.id]:[]),n=t.indexOf(this.opened),r=t[Math.max(0,Math.min(t.length-1,n+e))];r!==void 0&&(this.active=r,this.#R(r),this.updateComplete.then(()=>this.#W(this.#z(r))))}#re(e){let t=this.#o.ids.size;this.#o=F(e,e=>this.#r.get(e)?.state===`open`),this.requestUpdate(),this.#o.ids.size!==t&&u(K.rows.chosen(this.#o.ids.size))}#ie(e){return(e.kind===`group`?e.ids:[e.id]).filter(e=>this.#r.get(e)?.state===`open`)}#ae(){let e=this.#t[this.#z(this.active)];e&&this.#oe(e,!1)}#oe(e,t){let n=this.#ie(e),[r]=n;r!==void 0&&(e.kind===`group`?this.#re(N(this.#o,n)):this.#re(t?P(this.#o,r,this.#J()):M(this.#o,r)))}#se(e,t){t.stopPropagation(),this.active=e.key,this.#oe(e,t.shiftKey),this.updateComplete.then(()=>this.#K(e.key)?.focus({preventScroll:!0}))}#ce(e,t){let n=this.#z(e.key);if(e.kind===`group`)return this.#Z(e,!e.folded);if(t.ctrlKey||t.metaKey)return this.active=e.key,this.#oe(e,!1);this.#G(n,t.shiftKey)}#le(){return this.#J().filter(e=>this.#o.ids.has(e)).flatMap(e=>this.#r.get(e)??[])}#ue(e){this.renderRoot.querySelector(`plexus-many`)?.ask(e,this.#le())}#de(e){this.grouping=e;try{localStorage.setItem(Y,e)}catch{}this.#e=B(this.#e.map(e=>e.id),e=>{let t=this.#r.get(e);return t?this.#F(t):``}),this.requestUpdate()}#fe=()=>{let e=this.#e.find(e=>this.#m.has(e.id))?.id;this.#m.clear();let t=this.#t.findIndex(t=>t.kind===`group`?t.folded&&t.ids.includes(e??``):t.id===e);t>=0&&this.#G(t)};#pe=e=>{this.#_=e.currentTarget.scrollTop,this.requestUpdate()};render(){let e=this.#t,[n,i]=H(this.#n,this.#_,this.#v,Le),a=e.slice(n,i).map((e,t)=>({entry:e,n:n+t})),s=this.#z(this.active);s>=i?a.push({entry:e[s],n:s}):s>=0&&s<n&&a.unshift({entry:e[s],n:s});let c={grouping:this.grouping,active:this.active,opened:this.opened,chosen:this.#o.ids,count:e.length,request:e=>this.#r.get(e),pressed:(e,t)=>this.#ce(e,t),ticked:(e,t)=>this.#se(e,t)},l=[...this.#m].filter(e=>this.#r.get(e)?.state===`open`).length;return o`<div class="split">
        <div class="side">
          ${this.#he()}
          <div class="scroller" @scroll=${this.#pe}>
            <div class="rows" role="treegrid" aria-label=${K.list} aria-multiselectable="true" aria-rowcount=${e.length} aria-colcount="2" @keydown=${this.#Y}>
              ${r(a,({entry:e})=>e.key,({entry:e,n:t})=>Ae(e,t,c))}
            </div>
          </div>
          ${l?o`<div class="new"><button type="button" @click=${this.#fe}>${K.newOnes(l)}</button></div>`:t}
        </div>
        ${this.#me()}
      </div>
      <plexus-many @answered=${()=>{this.#d=Date.now()}} @closed=${()=>this.#K(this.active)?.focus({preventScroll:!0})}></plexus-many>`}#me(){let e=this.#t.flatMap(e=>e.kind===`request`?[e.id]:[]),n=e.indexOf(this.opened)+1;return o`<section class="pane" aria-label=${K.rows.pane} ?data-shut=${!this.opened} ?data-ended=${this.#r.get(this.opened)?.state!==`open`||S(this.opened)} @keydown=${this.#Q} @closed=${this.#ee}>
      <div class="steps">
        <span class="nth" role="status">${[n?K.rows.nth(n,e.length):``,this.#te()].filter(Boolean).join(` · `)}</span>
        <button type="button" class="ghost" aria-label=${K.rows.previous} ?disabled=${n<=1} @click=${()=>this.#ne(-1)}>${_(`up`)}</button>
        <button type="button" class="ghost" aria-label=${K.rows.next} ?disabled=${n===e.length} @click=${()=>this.#ne(1)}>${_(`down`)}</button>
        <button type="button" class="ghost" aria-label=${m.common.close} @click=${this.#$}>${_(`close`)}</button>
      </div>
      ${this.opened?t:o`<p class="none">${K.rows.none}</p>`}
      ${r(this.#s,e=>e,e=>o`<plexus-card layout="pane" ?hidden=${e!==this.opened} .request=${this.#r.get(e)}></plexus-card>`)}
    </section>`}#he(){let e=this.#J(),{size:t}=this.#o.ids,n=o`<span class="tick"><input type="checkbox" id="all" aria-label=${K.rows.chooseAll(e.length)} .checked=${a(t>0&&t===e.length)} .indeterminate=${a(t>0&&t<e.length)} ?disabled=${!e.length}
      @change=${()=>this.#re(t?j:N(j,e))} /></span>`;if(!t)return o`<div class="bar">${n}<div class="title"><slot name="title"></slot></div>
        <select id="groups" aria-label=${K.rows.groupBy} .value=${this.grouping} @change=${e=>this.#de(e.target.value)}>
          ${X.map(e=>o`<option value=${e} ?selected=${e===this.grouping}>${K.rows.groupings[e]}</option>`)}
        </select></div>`;let r=A(this.#le(),`allow`,{now:g.requests.value,device:E(),seen:k,reason:``}).will.length;return o`<div class="bar" role="toolbar" aria-label=${K.rows.chosen(t)}>${n}<div class="title"><strong>${p(t)}<span class="word"> ${K.rows.chosenWord}</span></strong><span class="sr"><slot name="title"></slot></span></div>
      <button type="button" id="deny" class="danger" @click=${()=>this.#ue(`deny`)}>${K.rows.deny(t)}</button>
      <button type="button" id="allow" title=${K.rows.allowHint} @click=${()=>this.#ue(`allow`)}>${K.rows.allow(r,t)}</button>
      <button type="button" class="ghost clear" aria-label=${K.rows.clear} @click=${()=>this.#re(j)}>${_(`close`)}</button></div>`}};customElements.define(`plexus-requests`,Ve);var Z=m.request,He=class extends c{static{this.properties={request_id:{},missing:{state:!0}}}#e=``;#t;constructor(){super(),this.request_id=``,this.missing=!1}static{this.styles=[...[c.styles].flat(),n`
      :host { display: flex; flex-direction: column; gap: 12px; min-height: 0; max-inline-size: 760px; inline-size: 100%; margin-inline: auto; }
      plexus-card { max-block-size: var(--solo-height, calc(100dvh - 132px)); }
      /* On a phone it fills the page, so that the answers are where the thumb is. */
      @media (max-width: 599px) { plexus-card { --fill: var(--solo-height, calc(100dvh - 186px - env(safe-area-inset-bottom))); max-block-size: var(--fill); block-size: var(--fill); } }
      p { padding: 32px 8px; text-align: center; color: var(--fg-mute); }
      a { display: inline-flex; align-items: center; min-block-size: 44px; }
    `]}updated(){if(this.#e===this.request_id||!g.live.value||(this.#e=this.request_id,this.missing=!1,g.requests.peek().has(this.request_id)))return;let e=this.request_id;g.reread(e).then(t=>{e===this.request_id&&(this.#t=t??void 0,this.missing=!t,this.requestUpdate())})}render(){let e=g.live.value,n=g.requests.value.get(this.request_id)??(this.#t?.request_id===this.request_id?this.#t:void 0);n&&(this.#t=n);let r=o`<a href=${g.href({page:`inbox`})}>${Z.toInbox}</a>`;return n?o`<plexus-card layout="solo" .request=${n}></plexus-card>${n.state===`open`&&!S(n.request_id)?t:o`<p>${r}</p>`}`:o`<p role="status">${this.missing?Z.notFound:e?Z.loading:Z.offline}<br />${r}</p>`}};customElements.define(`plexus-request`,He);var Q=m.shell.inbox,$=class extends c{constructor(...e){super(...e),this.request=``,this.#e=!1,this.#t=!1}#e;#t;static{this.styles=[...[c.styles].flat(),te,n`
    :host { height: 100%; min-height: 0; display: flex; flex-direction: column; }
    .page { width: 100%; max-width: 820px; overflow-y: auto; box-sizing: border-box; }
    plexus-requests { flex: 1 1 0; }
    h1 { flex: none; }
    .count { flex: 0 1 auto; min-width: 0; overflow: hidden; text-overflow: ellipsis; color: var(--fg-mute); font-size: var(--t-s); }
    .first { padding: var(--s5); max-width: 660px; margin: 0 auto; } .first p { margin: 4px 0 var(--s4); }
    @media (max-width: 599px) { .first { padding: var(--s4); } }
  `]}disconnectedCallback(){super.disconnectedCallback(),this.#t=!1}render(){let e=[...g.requests.value.values()],n=e.filter(e=>e.state===`open`).length;return n&&(this.#e=!0),e.length||(this.#e=!1),this.request?o`<div class="page"><header><a class="btn ghost" href="#/inbox">${_(`back`)}${Q.title}</a><h1 class="sr" tabindex="-1">${Q.title}</h1></header><h2 class="sr">${Q.open}</h2>
        <plexus-request .request_id=${this.request}></plexus-request></div>`:n>0||this.#e&&this.#n()?o`<plexus-requests><h1 slot="title" tabindex="-1">${Q.title}</h1>${n?o`<span slot="title" class="count" id="count">${Q.waits(n)}</span>`:t}</plexus-requests>`:(g.loaded.value&&!e.length&&ie()&&(this.#t=!0),this.#t&&fe(`new`),o`<div class="page">
      <header><h1 tabindex="-1">${Q.title}</h1>${g.may(`prompt`)&&!this.#t?o`<button class="primary" id="new" @click=${ne}>${_(`plus`)}${m.shell.sessions.new}</button>`:t}</header>
      ${this.#t?o`<section class="first panel" aria-labelledby="first"><h2 id="first">${m.shell.newSession.first}</h2><p class="soft">${m.shell.newSession.firstText}</p><plexus-new-session></plexus-new-session></section>`:g.loaded.value?ae(`check`,Q.none,Q.noneText):ee()}
    </div>`)}#n(){return g.now.value,this.renderRoot.querySelector(`plexus-requests`)?.shadowRoot?.querySelector(`[role="row"]`)!=null}};d([e()],$.prototype,`request`,void 0),$=d([i(`plexus-inbox`)],$);export{$ as PlexusInbox};