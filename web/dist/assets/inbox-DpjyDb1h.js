import{a as e,c as t,f as n,n as r,o as i,t as a,u as o}from"./libraries-MxmsVMue.js";import{B as s,L as c,M as l,N as u,P as ee,R as d,V as f,a as p,et as m,f as h,lt as g,o as _,rt as v,st as y,tt as te,u as b,z as x}from"./frame-Bu9YJXEN.js";import{a as S,c as ne,d as re,f as C,h as ie,i as ae,l as oe,m as se,n as w,o as T,p as E,r as D,s as O,u as k}from"./card-DjGhz17U.js";import{c as ce}from"./index-CCKrHeqn.js";var le=n`
  :host { display: flex; flex-direction: column; min-width: 0; min-height: 0; block-size: 100%; container-type: size; }
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
  .words { flex: 1 1 0; min-inline-size: 0; display: flex; flex-direction: column; justify-content: center; gap: 1px; padding-inline-end: 12px; }
  .one, .two { display: flex; align-items: baseline; gap: 6px; min-inline-size: 0; white-space: nowrap; line-height: 1.4; }
  .one { font-size: var(--t-m); }
  .two { font-size: var(--t-s); color: var(--fg-mute); }
  .asked { flex: 0 1 auto; min-inline-size: 0; display: flex; unicode-bidi: isolate; direction: ltr; }
  .asked bdi { direction: ltr; white-space: pre; }
  .asked .from { flex: 0 1 auto; min-inline-size: 2em; overflow: hidden; text-overflow: ellipsis; }
  .asked .to { flex: 0 0 auto; max-inline-size: 80%; overflow: hidden; text-overflow: ellipsis; }
  .asked.code { font-family: var(--mono); font-size: 0.95em; }
  .row[data-unread] .asked { font-weight: 650; }
  .verb, .more { flex: none; color: var(--fg-mute); }
  .why { flex: 1 1 0; min-inline-size: 20%; overflow: hidden; text-overflow: ellipsis; }
  .risk { flex: none; display: inline-flex; align-items: baseline; gap: 4px; font-weight: 600; }
  .risk svg { inline-size: 12px; block-size: 12px; align-self: center; }
  .risk[data-risk='low'] { color: var(--ok); }
  .risk[data-risk='elevated'] { color: var(--warn); }
  .risk[data-risk='danger'] { color: var(--danger); }
  .where { flex: 0 1 auto; min-inline-size: 0; max-inline-size: 50%; display: flex; gap: 5px; }
  .where bdi { min-inline-size: 1.5em; overflow: hidden; text-overflow: ellipsis; flex: 0 1 auto; }
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

  /* Below the rows: a sheet that ends where the page ends, so that its answers are always in sight. */
  .pane { flex: 0 0 auto; max-block-size: 68%; min-inline-size: 0; display: flex; flex-direction: column; border-block-start: 1px solid var(--line-strong); background: var(--bg-raised); box-shadow: var(--shadow-2); z-index: 1; }
  .pane[data-shut] { display: none; }
  .steps { flex: none; display: flex; align-items: center; gap: 2px; padding-inline: 12px 4px; color: var(--fg-mute); font-size: var(--t-s); }
  .steps .nth { flex: 1; }
  .steps button { inline-size: 44px; min-block-size: 40px; padding: 0; }
  .pane plexus-card { flex: 0 1 auto; --card-line: transparent; --card-corner: 0; }
  @container (max-height: 600px) { .pane { max-block-size: 82%; } }
  @container (max-width: 480px) { .bar { gap: 4px; padding-inline-end: 4px; } .bar button { padding: 0 8px; } .bar select { max-inline-size: 10.5rem; padding-inline: 4px; } ::slotted(.count) { display: none; } }
  .none { display: none; }

  @container (min-width: 760px) {
    .split { flex-direction: row; }
    .side { flex: 0 0 clamp(340px, 46%, 640px); border-inline-end: 1px solid var(--line); }
    .pane, .pane[data-shut] { display: flex; flex: 1 1 0; max-block-size: none; border: 0; box-shadow: none; background: none; padding: 16px 20px 20px; overflow: hidden; }
    .steps { display: none; }
    .pane plexus-card { --said: 1.45em; inline-size: 100%; max-inline-size: 820px; margin-inline: auto; --card-line: var(--line); --card-corner: var(--r-l); }
    .pane .none { display: block; margin: auto; color: var(--fg-mute); }
  }
  @media (forced-colors: active) { .row[aria-current='true'] { outline: 2px solid Highlight; outline-offset: -2px; } }
`,ue=6,de=[1500,3e3,6e3];function fe(e,t,{now:n,limit:r,seen:i,reason:a}){let o=n.get(e.request_id);if(!o||o.state!==`open`)return`closed`;if(o.digest!==e.digest||o.revision!==e.revision)return`changed`;if(o.observe_only)return`elsewhere`;let s=E(o);if(!se(s,r))return`limit`;let c=re(o);if(t===`deny`){let e=c.find(e=>e.key===`d`);return e?o.allow_reason&&a?{...e.answer,reason:a}:{...e.answer}:`no_deny`}if(s===`danger`)return`danger`;if(ie(o).length||o.type===`prompt`||o.type===`pick`)return`question`;let l=c.find(e=>e.key===`a`&&e.sense===`allow`&&!e.always);return l?i(o)?{...l.answer}:`unread`:`never_once`}function A(e,t,n){let r={will:[],out:[]};for(let i of e){let e=fe(i,t,n);typeof e==`string`?r.out.push({request:i,why:e}):r.will.push({request:i,answer:e})}return r}function pe(e){let t=new Map;for(let{request:n,why:r}of e.out)t.set(r,[...t.get(r)??[],n]);return t}async function me(e,t,n=de){let r=[...e];await Promise.all(Array.from({length:Math.min(ue,e.length)},async()=>{for(let e=r.shift();e;e=r.shift()){let r=await e.send();for(let t of n){if(r.is!==`unknown`)break;await new Promise(e=>setTimeout(e,t)),r=await e.send()}t(e,r)}}))}var j={ids:new Set,anchor:``};function he(e,t){let n=new Set(e.ids);return n.delete(t)||n.add(t),{ids:n,anchor:t}}function M(e,t){let n=new Set(e.ids),r=t.length>0&&t.every(e=>n.has(e));for(let e of t)r?n.delete(e):n.add(e);return{ids:n,anchor:t[0]??e.anchor}}function N(e,t,n){let r=n.indexOf(t),i=n.indexOf(e.anchor);return r<0?e:i<0?{ids:new Set([...e.ids,t]),anchor:t}:{ids:new Set([...e.ids,...n.slice(Math.min(i,r),Math.max(i,r)+1)]),anchor:e.anchor}}function P(e,t){let n=[...e.ids].filter(t);return n.length===e.ids.size?e:{ids:new Set(n),anchor:e.anchor}}var F=m.request.many,I=2e3,L=80,R=200,ge=class extends g{static{this.properties={phase:{state:!0},armed:{state:!0}}}#e=`deny`;#t=[];#n=``;#r=``;#i=new ne(performance.now());#a;#o=-1;#s=0;#c=new Map;constructor(){super(),this.phase=`closed`,this.armed=!1}static{this.styles=[...[g.styles].flat(),n`
      :host { display: contents; }
      ul { display: flex; flex-direction: column; max-block-size: min(34dvh, 320px); overflow-y: auto; border: 1px solid var(--line); border-radius: var(--r-s); background: var(--bg-sunken); }
      ul:focus-visible { outline-offset: -2px; }
      li { display: flex; gap: 10px; align-items: baseline; padding: 5px 10px; min-inline-size: 0; }
      li + li { border-block-start: 1px solid var(--line); }
      li bdi { flex: 1 1 0; min-inline-size: 0; overflow-wrap: anywhere; font-family: var(--mono); font-size: var(--t-s); direction: ltr; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
      li small { flex: none; max-inline-size: 45%; color: var(--fg-mute); font-size: var(--t-s); overflow-wrap: anywhere; text-align: end; }
      h3 { margin-block-end: 4px; }
      .out { color: var(--fg-soft); }
      .row { display: flex; gap: var(--s2); flex-wrap: wrap; justify-content: flex-end; }
      .row button { min-block-size: 44px; flex: 0 1 auto; min-inline-size: 8rem; white-space: normal; }
      .row button.allow { color: var(--ok); border-color: color-mix(in srgb, var(--ok) 65%, var(--line)); font-weight: 650; }
      .row button.deny { color: var(--danger); border-color: color-mix(in srgb, var(--danger) 50%, var(--line)); font-weight: 650; }
      .say { min-block-size: 1.45em; color: var(--danger); }
      .said { color: var(--fg-mute); }
      @media (max-width: 599px) { .row button { flex: 1 1 0; } }
    `]}connectedCallback(){super.connectedCallback(),this.#a=setInterval(this.#u,L)}disconnectedCallback(){super.disconnectedCallback(),clearInterval(this.#a)}ask(e,t){this.phase!==`sending`&&(this.#e=e,this.#t=t,this.#n=``,this.#r=``,this.#o=-1,this.#c.clear(),this.phase=`asking`)}#l(){return A(this.#t,this.#e,{now:f.requests.value,limit:f.me.value?.approve_up_to,seen:D,reason:this.#n.trim()})}#u=()=>{this.phase===`asking`&&(this.armed=this.#i.armed(performance.now()))};updated(){if(this.phase!==`asking`)return;let{length:e}=this.#l().will;e!==this.#o&&(this.#o=e,this.#i.again(performance.now()),this.armed=!1)}#d(){return f.may(`approve`)?f.live.value?``:m.request.offline:m.request.mayNot}#f=()=>{let e=this.#l(),t=this.#d()||(e.will.length===0||e.will.length!==this.#o||!this.#i.armed(performance.now())?m.request.early:``);this.#r=t,this.requestUpdate(),t||this.#m(e.will.map(({request:e,answer:t})=>new oe(e,t,w)))};#p=e=>{e.key===`Enter`&&this.#e!==`deny`&&(e.preventDefault(),this.#r=m.request.enterNever,this.requestUpdate())};async#m(e){this.phase=`sending`,this.#s=this.#c.size+e.length,await me(e,(e,t)=>{this.#c.set(e,t),t.is===`refused`&&f.reread(e.request.request_id),this.requestUpdate()}),this.dispatchEvent(new Event(`answered`)),this.phase===`sending`&&this.#h(`won`).length<this.#c.size?this.phase=`done`:(d(this.#g()),this.#v())}#h(e){return[...this.#c].filter(([,t])=>t.is===e)}#g(){let e=this.#h(`won`).length,t=this.#c.size-e;return`${this.#e===`allow`?F.allowed(e):F.denied(e)}${t?` ${F.rest(t)}`:``}`}#_=()=>{let e=this.#h(`unknown`).map(([e])=>e);for(let t of e)this.#c.delete(t);e.length&&this.#m(e)};#v=()=>{this.phase!==`closed`&&(this.phase=`closed`,this.dispatchEvent(new Event(`closed`)))};render(){let e=this.phase===`asking`?this.#l():null,n=e?.will.length??0,r=this.phase===`asking`?this.#e===`allow`?F.allowTitle(n):F.denyTitle(n):this.phase===`sending`?F.sending(this.#c.size,this.#s):this.phase===`done`?this.#g():``;return o`<plexus-dialog .open=${this.phase!==`closed`} heading=${r} @close=${this.#v}>
      ${e?this.#x(e):this.phase===`done`?this.#S():this.phase===`sending`?o`<p class="said" role="status">${F.wait}</p>`:t}
    </plexus-dialog>`}#y(e,n,r){return o`<ul tabindex="0" aria-label=${n}>
      ${e.slice(0,R).map(e=>o`<li><bdi>${O(e)}</bdi><small>${r(e)}</small></li>`)}
      ${e.length>R?o`<li><small>${F.moreListed(e.length-R)}</small></li>`:t}
    </ul>`}#b=e=>{let t=f.sessions.value.get(e.session_id);return[v(e.runtime_id),t?.cwd?b(t).name:``].filter(Boolean).join(` · `)};#x(e){let{will:n}=e,r=n.filter(({request:e})=>e.allow_reason).length,i=this.#d(),a=this.#e===`allow`?F.allowDo(n.length):F.denyDo(n.length);return o`${n.length?this.#y(n.map(({request:e})=>e),this.#e===`allow`?F.willAllow:F.willDeny,this.#b):t}
      ${[...pe(e)].map(([e,t])=>o`<section class="out"><h3>${F.leftOut(t.length)} ${F.why[e]}</h3>${this.#y(t,F.leftOut(t.length),this.#b)}</section>`)}
      ${this.#e===`deny`&&r?o`<label class="field">${r===n.length?F.reason:F.reasonFor(r,n.length)}
            <input id="reason" maxlength=${I} autocomplete="off" .value=${this.#n} @input=${e=>{this.#n=e.target.value}} @keydown=${e=>{e.key===`Enter`&&e.preventDefault()}} />
          </label>`:t}
      <p class="say" role="status">${this.#r||i}</p>
      <div class="row">
        <button type="button" autofocus id="cancel" @click=${this.#C}>${m.common.cancel}</button>
        ${n.length?o`<button type="button" id="go" class=${this.#e} aria-disabled=${i||!this.armed?`true`:`false`} @keydown=${this.#p} @click=${this.#f}>${a}</button>`:t}
      </div>`}#S(){let e=[...this.#h(`lost`),...this.#h(`closed`)],n=this.#h(`refused`),r=this.#h(`unknown`),i=f.me.value?.device_id,a=new Map(e.map(([{request:e},t])=>[e.request_id,`receipt`in t&&t.receipt?h(t.receipt,e,i).text:t.is===`closed`?t.words:``])),s=new Map(n.map(([{request:e},t])=>[e.request_id,t.is===`refused`?t.words:``])),c=(e,n,r)=>e.length?o`<section><h3>${n}</h3>${this.#y(e.map(([{request:e}])=>e),n,r)}</section>`:t;return o`${c(e,F.lost(e.length),e=>a.get(e.request_id)??``)}
      ${c(n,F.refused(n.length),e=>s.get(e.request_id)??``)}
      ${c(r,F.unknown(r.length),this.#b)}
      <div class="row">
        ${r.length?o`<button type="button" id="again" @click=${this.#_}>${m.request.unknownNow}</button>`:t}
        <button type="button" id="close" autofocus @click=${this.#C}>${m.common.close}</button>
      </div>`}#C=()=>this.#v()};customElements.define(`plexus-many`,ge);var z={danger:0,elevated:1,low:2};function B(e,t){return z[E(e)]-z[E(t)]||Date.parse(t.opened_at)-Date.parse(e.opened_at)||(e.request_id<t.request_id?-1:1)}function V(e,t){let n=new Map;return e.forEach((e,r)=>{let i=t(e)||`\u0000${r}`,a=n.get(i);a?a.push(e):n.set(i,[e])}),[...n].flatMap(([e,t])=>t.map(n=>({id:n,group:t.length>1?e:``})))}function _e(e,t,{fresh:n,settled:r,keyOf:i}){let a=new Map(t.map(e=>[e.request_id,e])),o=new Set(e.map(e=>e.id)),s=t.filter(e=>!o.has(e.request_id)).sort(B).map(e=>e.request_id),c=e=>i(a.get(e));if(n||e.length===0)return{order:V([...t].sort(B).map(e=>e.request_id),c),added:s};let l=e.filter(e=>a.has(e.id));return r?{order:V([...l.map(e=>e.id),...s],c),added:s}:{order:[...l,...s.map(e=>({id:e,group:``}))],added:s}}function ve(e,t){let n=[];for(let{id:t,group:r}of e){let e=n[n.length-1];r&&e?.group===r?e.ids.push(t):n.push({group:r,ids:[t]})}let r=n.length;return n.flatMap(({group:e,ids:n},i)=>{if(!e)return n.map(t=>({kind:`request`,key:t,id:t,group:e,nth:i+1,of:r}));let a={kind:`group`,key:`group ${e}`,group:e,ids:n,folded:t.has(e),nth:i+1,of:r};return a.folded?[a]:[a,...n.map((t,r)=>({kind:`request`,key:t,id:t,group:e,nth:r+1,of:n.length}))]})}function ye(e,t,n){let r=[0];for(let i of e)r.push(r[r.length-1]+(i.kind===`group`?n:t));return r}function H(e,t){let n=0,r=e.length-1;for(;n<r;){let i=n+r>>1;e[i+1]>t?r=i:n=i+1}return Math.min(n,e.length-2)}function U(e,t,n,r){return e.length<2?[0,0]:[H(e,Math.max(0,t-r)),H(e,t+n+r)+1]}var W=m.request.rows;function G(e){let n=e.verb===``&&!e.quoted;return o`${e.verb?o`<span class="verb">${e.verb}</span>`:t}<span class="asked ${n?`code`:``}">${e.quoted?`“`:t}<bdi class="from">${e.head}</bdi>${e.tail?o`<bdi class="to">${e.tail}</bdi>`:t}${e.quoted?`”`:t}</span>${e.more?o`<span class="more">${e.more}</span>`:t}`}function be(e){let n=f.sessions.value.get(e.session_id),r=n?.cwd?b(n).name:``;return o`<span class="where"><bdi>${v(e.runtime_id)||m.request.runtimeUnknown}</bdi>${r?o`<span aria-hidden="true">·</span><bdi>${r}</bdi>`:t}</span>`}var K=e=>v(f.sessions.value.get(e.session_id)?.title)||m.request.untitled;function xe(e,n){let r=n?t:be(e),i=f.now.value;if(e.state!==`open`){let t=e.receipt?h(e.receipt,e,f.me.value?.device_id):null;return o`<span class="outcome" data-sense=${t?.sense??`none`}>${t?.text??m.request.gone}</span>${r}`}let a=E(e),[c]=e.risk_reasons??[],l=e.expires_at?Date.parse(e.expires_at)-i:NaN,u=Date.parse(e.opened_at);return o`<span class="risk" data-risk=${a}>${s(C[a],12)}${W.risks[a]}</span>
    <span class="why">${c?v(c):t}</span>${r}
    <span class="age">${Number.isNaN(l)?Number.isNaN(u)?t:k(i-u):l>0?W.left(k(l)):m.request.expiring}</span>`}function Se(e,n,r){let i=r.request(e.id);if(!i)return o``;let s=i.state===`open`,c=e.group!==``&&r.grouping===`command`,l=r.chosen.has(e.id);return o`<div
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
    ?data-unread=${s&&!D(i)}
    @click=${t=>r.pressed(e,t)}
  >
    <span role="gridcell" class="tick" @click=${t=>r.ticked(e,t)}
      >${s?o`<input type="checkbox" tabindex="-1" aria-label=${W.choose(O(i))} .checked=${a(l)} />`:t}</span>
    <div role="gridcell" class="words">
      <div class="one">${c?o`<span class="asked"><bdi class="from">${K(i)}</bdi></span>`:G(S(i))}</div>
      <div class="two">${xe(i,e.group!==``&&r.grouping===`session`)}</div>
    </div>
  </div>`}function Ce(e,n){let r=e.flatMap(e=>{let t=n.request(e);return t?.state===`open`?[E(t)]:[]}),i=[`danger`,`elevated`,`low`].find(e=>r.includes(e));return i?o`<span class="risk" data-risk=${i}>${s(C[i],12)}${W.risks[i]}</span>`:t}function we(e,n,r){let i=e.ids.filter(e=>r.request(e)?.state===`open`),c=r.request(e.ids[0]??``),l=i.filter(e=>r.chosen.has(e)).length,u=c?r.grouping===`session`?K(c):O(c):``;return o`<div
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
    aria-selected=${i.length>0&&l===i.length?`true`:`false`}
    @click=${t=>r.pressed(e,t)}
  >
    <span role="gridcell" class="tick" @click=${t=>r.ticked(e,t)}
      >${i.length?o`<input type="checkbox" tabindex="-1" aria-label=${W.chooseGroup(i.length,u)} .checked=${a(l===i.length)} .indeterminate=${a(l>0&&l<i.length)} />`:t}</span>
    <div role="gridcell" class="words">
      <span class="fold" aria-hidden="true">${s(`forward`,12)}</span>
      <div class="one">${c?r.grouping===`session`?o`<span class="asked"><bdi class="from">${u}</bdi></span>`:G(S(c)):t}</div>
      ${e.folded?Ce(e.ids,r):t}
      <span class="count">${W.inGroup(i.length,e.ids.length)}</span>
    </div>
  </div>`}var Te=(e,t,n)=>e.kind===`group`?we(e,t,n):Se(e,t,n),q=m.request,Ee=8e3,De=4e3,Oe=6e4,ke=1e3,Ae={fine:3,coarse:3.5},je={fine:2.5,coarse:2.75};function J(){let e=parseFloat(getComputedStyle(document.documentElement).fontSize)||16,t=matchMedia(`(pointer: coarse)`).matches?`coarse`:`fine`;return{row:Ae[t]*e,head:je[t]*e}}var Me=400,Ne=8,Pe=2500,Fe=500,Y=`plexus.inbox.groups`,X=[`command`,`session`,`none`];function Ie(){try{let e=localStorage.getItem(Y);return X.find(t=>t===e)??`command`}catch{return`command`}}var Le=class extends g{static{this.properties={beside:{type:Boolean,reflect:!0},opened:{state:!0},active:{state:!0},grouping:{state:!0}}}#e=[];#t=[];#n=[0];#r=new Map;#i=new Set;#a=new Set;#o=j;#s=[];#c=new Map;#l=!1;#u=0;#d=!1;#f;#p=new Set;#m=!0;#h;#g=0;#_=0;#v=null;#y=J();#b=[];#x=[];#S=0;#C;#w=()=>{};#T=()=>{};constructor(){super(),this.beside=!1,this.opened=``,this.active=``,this.grouping=Ie()}static{this.styles=[...[g.styles].flat(),le]}connectedCallback(){super.connectedCallback();for(let e of[`pointerenter`,`pointermove`,`pointerdown`])this.addEventListener(e,this.#E);this.addEventListener(`pointerleave`,this.#D),this.addEventListener(`keydown`,this.#O),this.#f=setInterval(this.#N,ke),this.#T=ae(this),this.#w=y([...[`j`,`]`].map(e=>({key:e,run:()=>this.#K(1)})),...[`k`,`[`].map(e=>({key:e,run:()=>this.#K(-1)})),{key:`x`,run:()=>this.#ne()},{key:`X`,run:()=>this.#ee(j)}]),this.#h=new ResizeObserver(()=>this.#M()),this.#h.observe(this)}disconnectedCallback(){super.disconnectedCallback();for(let e of[`pointerenter`,`pointermove`,`pointerdown`])this.removeEventListener(e,this.#E);this.removeEventListener(`pointerleave`,this.#D),this.removeEventListener(`keydown`,this.#O),clearInterval(this.#f),clearTimeout(this.#C),this.#T(),this.#w(),this.#h?.disconnect()}#E=e=>{this.#d=e.pointerType===`mouse`,this.#u=Date.now()};#D=()=>{this.#d=!1};#O=()=>{this.#u=Date.now()};get#k(){if(this.#o.ids.size)return!1;let e=this.#d||this.matches(`:focus-within`);return Date.now()-this.#u>(e?Oe:De)}get#A(){return this.renderRoot.querySelector(`.scroller`)}cardAt(e){let t=e.closest(`[role="row"]`)?.dataset.request;return t!==void 0&&t===this.opened?this.#j(t):null}several(e){if(!this.#o.ids.size)return!1;if(/^[ya]$/.test(e))this.#se(`allow`);else if(/^[ndrD]$/.test(e))this.#se(`deny`);else return!1;return!0}#j(e){return[...this.renderRoot.querySelectorAll(`plexus-card`)].find(t=>t.request.request_id===e)??null}#M(){let e=this.#A;this.#y=J(),this.beside=this.clientWidth>=760,this.#_=e?.clientHeight??0,this.requestUpdate()}#N=()=>{if(!document.hidden&&this.#k){for(let[e,t]of this.#c)Date.now()-t<Ee||this.#j(e)?.unsettled||this.#i.add(e);this.requestUpdate()}};#P=e=>this.grouping===`command`?T(e):this.grouping===`session`?e.session_id:``;#F(){let e=[...f.requests.value.values()],t=new Set(this.#e.map(e=>e.id)),n=e.filter(e=>!this.#i.has(e.request_id)&&(e.state===`open`||t.has(e.request_id)));this.#r=new Map(n.map(e=>[e.request_id,e]));let{order:r,added:i}=_e(this.#e,n,{fresh:this.#m,settled:this.#k,keyOf:this.#P});this.#e=r;for(let e of this.#i)f.requests.value.has(e)||this.#i.delete(e);if(!this.#m){for(let e of i)this.#p.add(e);this.#b.push(...i)}f.loaded.value&&(this.#m=!1);for(let e of n)e.state===`open`?this.#c.delete(e.request_id):this.#c.has(e.request_id)||(this.#c.set(e.request_id,Date.now()),e.request_id!==this.opened&&this.#x.push(e.request_id));for(let e of this.#c.keys())this.#r.has(e)||this.#c.delete(e);for(let e of this.#p)this.#r.has(e)||this.#p.delete(e);this.#o=P(this.#o,e=>this.#r.get(e)?.state===`open`),this.#t=ve(r,this.#a),this.#n=ye(this.#t,this.#y.row,this.#y.head),this.#I(),this.#t.some(e=>e.key===this.active)||(this.active=this.opened&&this.#R(this.opened)>=0?this.opened:this.#t[0]?.key??``)}#I(){if(this.opened&&!this.#r.has(this.opened)&&(this.opened=``),this.#s=this.#s.filter(e=>this.#r.has(e)),this.opened||this.#l)return;let e=this.#e.filter(({id:e})=>this.#r.get(e)?.state===`open`);e[0]&&(this.beside||e.length===1)&&(this.#L(e[0].id),this.matches(`:focus-within`)||(this.active=e[0].id))}#L(e){this.opened=e,this.#s=[e,...this.#s.filter(t=>t!==e)],this.#s=this.#s.filter((e,t)=>t<Ne||this.#j(e)?.unsettled)}#R(e){return this.#t.findIndex(t=>t.key===e)}willUpdate(){this.#z(),this.#F()}#z(){let e=H(this.#n,this.#g),t=this.#t[e];this.#v=t&&this.#g>0?{key:t.key,into:this.#g-this.#n[e]}:null}updated(e){let t=this.#A,n=this.renderRoot.querySelector(`.rows`);if(!t||!n)return;n.style.blockSize=`${this.#n[this.#n.length-1]}px`;for(let e of n.querySelectorAll(`[data-n]`))e.style.insetBlockStart=`${this.#n[Number(e.dataset.n)]??0}px`;let r=this.#v?this.#R(this.#v.key):-1;if(this.#v&&r>=0){let e=this.#n[r]+this.#v.into;Math.abs(e-this.#g)>=1&&(t.scrollTop=e)}(t.clientHeight!==this.#_||this.#g!==t.scrollTop)&&(this.#_=t.clientHeight,this.#g=t.scrollTop,this.requestUpdate()),(e.has(`beside`)||e.has(`opened`))&&this.#U(this.#R(this.opened)),this.#B(),this.#V()}#B(){if(!this.#p.size||document.hidden||!this.#_)return;let e=this.#p.size,[t,n]=U(this.#n,this.#g,this.#_-this.#y.row,0);for(let e of this.#t.slice(t,n))for(let t of e.kind===`group`?e.ids:[e.id])this.#p.delete(t);this.#p.size!==e&&this.requestUpdate()}#V(){if(!this.#b.length&&!this.#x.length)return;let e=Math.max(Fe,this.#S+Pe-performance.now());this.#C??=setTimeout(()=>{this.#C=void 0,this.#H()},e)}#H(){this.#S=performance.now();let e=f.me.peek()?.device_id,t=this.#r.get(this.#b[0]??``),n=this.#r.get(this.#x[0]??``),r=[this.#b.length===1&&t?q.opened(v(t.runtime_id),O(t)):this.#b.length?q.openedMany(this.#b.length):``,this.#x.length===1&&n?`${n.receipt?h(n.receipt,n,e).text:q.gone}: ${O(n)}.`:this.#x.length?q.resolvedMany(this.#x.length):``];this.#b=[],this.#x=[],c(r.filter(Boolean).join(` `))}#U(e){let t=this.#A;if(!t||e<0||!this.#_)return;let n=this.#n[e],r=this.#n[e+1];n<t.scrollTop?t.scrollTop=n:r>t.scrollTop+t.clientHeight&&(t.scrollTop=r-t.clientHeight)}async#W(e,t=!1){let n=this.#t[Math.max(0,Math.min(this.#t.length-1,e))];if(!n)return;let r=this.active;if(this.active=n.key,this.#u=Date.now(),n.kind===`request`&&(this.#l=!1,this.#L(n.id),t)){let e=this.#o.anchor?this.#o:{ids:this.#o.ids,anchor:this.#r.has(r)?r:n.id};this.#o=N(e,n.id,this.#q())}this.requestUpdate(),await this.updateComplete,this.#U(this.#R(n.key)),this.requestUpdate(),await this.updateComplete,this.#G(n.key)?.focus({preventScroll:!0})}#G(e){return[...this.renderRoot.querySelectorAll(`[role="row"]`)].find(t=>t.dataset.key===e)??null}#K(e){let t=this.#R(this.active);this.#W(this.matches(`:focus-within`)&&t>=0?t+e:Math.max(0,t))}#q(){return this.#e.map(e=>e.id).filter(e=>this.#r.get(e)?.state===`open`)}#J=e=>{if((e.ctrlKey||e.metaKey)&&e.key===`a`){this.#ee(M(j,this.#q())),e.preventDefault();return}if(e.ctrlKey||e.metaKey||e.altKey)return;let t=this.#R(this.active),n=this.#t[t],r=Math.max(1,Math.floor(this.#_/this.#y.row)-1),i={ArrowDown:t+1,ArrowUp:t-1,Home:0,End:this.#t.length-1,PageDown:t+r,PageUp:t-r}[e.key];if(i!==void 0)this.#W(i,e.shiftKey);else if(e.key===` `)this.#ne();else if(e.key===`Enter`)this.#Y(n);else if(e.key===`ArrowLeft`||e.key===`ArrowRight`)this.#X(n,e.key===`ArrowLeft`);else if(e.key===`Escape`&&this.#o.ids.size)this.#ee(j);else return;e.preventDefault()};#Y(e){e?.kind===`group`?this.#X(e,!e.folded):e&&this.#j(e.id)?.focus()}#X(e,t){e?.group&&(t?this.#a.add(e.group):this.#a.delete(e.group),this.active=e.kind===`group`?e.key:t?`group ${e.group}`:e.key,this.requestUpdate(),this.updateComplete.then(()=>this.#G(this.active)?.focus({preventScroll:!0})))}#Z=e=>{e.key===`Escape`&&!e.defaultPrevented&&e.composedPath()[0].matches(`article, [tabindex="-1"]`)&&(e.preventDefault(),this.beside?this.#G(this.opened)?.focus({preventScroll:!0}):this.#Q())};#Q=()=>{let e=this.opened;this.#l=!0,this.opened=``,this.updateComplete.then(()=>this.#G(e)?.focus({preventScroll:!0}))};#$(e){let t=this.#t.flatMap(e=>e.kind===`request`?[e.id]:[]),n=t.indexOf(this.opened),r=t[Math.max(0,Math.min(t.length-1,n+e))];r!==void 0&&(this.active=r,this.#L(r),this.updateComplete.then(()=>this.#U(this.#R(r))))}#ee(e){let t=this.#o.ids.size;this.#o=P(e,e=>this.#r.get(e)?.state===`open`),this.requestUpdate(),this.#o.ids.size!==t&&c(q.rows.chosen(this.#o.ids.size))}#te(e){return(e.kind===`group`?e.ids:[e.id]).filter(e=>this.#r.get(e)?.state===`open`)}#ne(){let e=this.#t[this.#R(this.active)];e&&this.#re(e,!1)}#re(e,t){let n=this.#te(e),[r]=n;r!==void 0&&(e.kind===`group`?this.#ee(M(this.#o,n)):this.#ee(t?N(this.#o,r,this.#q()):he(this.#o,r)))}#ie(e,t){t.stopPropagation(),this.active=e.key,this.#re(e,t.shiftKey),this.updateComplete.then(()=>this.#G(e.key)?.focus({preventScroll:!0}))}#ae(e,t){let n=this.#R(e.key);if(e.kind===`group`)return this.#X(e,!e.folded);if(t.ctrlKey||t.metaKey)return this.active=e.key,this.#re(e,!1);this.#W(n,t.shiftKey)}#oe(){return this.#q().filter(e=>this.#o.ids.has(e)).flatMap(e=>this.#r.get(e)??[])}#se(e){this.renderRoot.querySelector(`plexus-many`)?.ask(e,this.#oe())}#ce(e){this.grouping=e;try{localStorage.setItem(Y,e)}catch{}this.#e=V(this.#e.map(e=>e.id),e=>{let t=this.#r.get(e);return t?this.#P(t):``}),this.requestUpdate()}#le=()=>{let e=this.#e.find(e=>this.#p.has(e.id))?.id;this.#p.clear();let t=this.#t.findIndex(t=>t.kind===`group`?t.folded&&t.ids.includes(e??``):t.id===e);t>=0&&this.#W(t)};#ue=e=>{this.#g=e.currentTarget.scrollTop,this.requestUpdate()};render(){let e=this.#t,[n,i]=U(this.#n,this.#g,this.#_,Me),a=e.slice(n,i).map((e,t)=>({entry:e,n:n+t})),s=this.#R(this.active);s>=i?a.push({entry:e[s],n:s}):s>=0&&s<n&&a.unshift({entry:e[s],n:s});let c={grouping:this.grouping,active:this.active,opened:this.opened,chosen:this.#o.ids,count:e.length,request:e=>this.#r.get(e),pressed:(e,t)=>this.#ae(e,t),ticked:(e,t)=>this.#ie(e,t)},l=[...this.#p].filter(e=>this.#r.get(e)?.state===`open`).length;return o`<div class="split">
        <div class="side">
          ${this.#fe()}
          <div class="scroller" @scroll=${this.#ue}>
            <div class="rows" role="treegrid" aria-label=${q.list} aria-multiselectable="true" aria-rowcount=${e.length} aria-colcount="2" @keydown=${this.#J}>
              ${r(a,({entry:e})=>e.key,({entry:e,n:t})=>Te(e,t,c))}
            </div>
          </div>
          ${l?o`<div class="new"><button type="button" @click=${this.#le}>${q.newOnes(l)}</button></div>`:t}
        </div>
        ${this.#de()}
      </div>
      <plexus-many @answered=${()=>{this.#u=Date.now()}} @closed=${()=>this.#G(this.active)?.focus({preventScroll:!0})}></plexus-many>`}#de(){let e=this.#t.flatMap(e=>e.kind===`request`?[e.id]:[]),n=e.indexOf(this.opened)+1;return o`<section class="pane" aria-label=${q.rows.pane} ?data-shut=${!this.opened} @keydown=${this.#Z}>
      <div class="steps">
        <span class="nth">${n?q.rows.nth(n,e.length):t}</span>
        <button type="button" class="ghost" aria-label=${q.rows.previous} ?disabled=${n<=1} @click=${()=>this.#$(-1)}>${s(`up`)}</button>
        <button type="button" class="ghost" aria-label=${q.rows.next} ?disabled=${n===e.length} @click=${()=>this.#$(1)}>${s(`down`)}</button>
        <button type="button" class="ghost" aria-label=${m.common.close} @click=${this.#Q}>${s(`close`)}</button>
      </div>
      ${this.opened?t:o`<p class="none">${q.rows.none}</p>`}
      ${r(this.#s,e=>e,e=>o`<plexus-card layout="pane" ?hidden=${e!==this.opened} .request=${this.#r.get(e)}></plexus-card>`)}
    </section>`}#fe(){let e=this.#q(),{size:t}=this.#o.ids,n=o`<span class="tick"><input type="checkbox" id="all" aria-label=${q.rows.chooseAll(e.length)} .checked=${a(t>0&&t===e.length)} .indeterminate=${a(t>0&&t<e.length)} ?disabled=${!e.length}
      @change=${()=>this.#ee(t?j:M(j,e))} /></span>`;if(!t)return o`<div class="bar">${n}<div class="title"><slot name="title"></slot></div>
        <select id="groups" aria-label=${q.rows.groupBy} .value=${this.grouping} @change=${e=>this.#ce(e.target.value)}>
          ${X.map(e=>o`<option value=${e} ?selected=${e===this.grouping}>${q.rows.groupings[e]}</option>`)}
        </select></div>`;let r=A(this.#oe(),`allow`,{now:f.requests.value,limit:f.me.value?.approve_up_to,seen:D,reason:``}).will.length;return o`<div class="bar" role="toolbar" aria-label=${q.rows.chosen(t)}>${n}<div class="title"><strong>${te(t)}<span class="word"> ${q.rows.chosenWord}</span></strong><span class="sr"><slot name="title"></slot></span></div>
      <button type="button" id="deny" class="danger" @click=${()=>this.#se(`deny`)}>${q.rows.deny(t)}</button>
      <button type="button" id="allow" title=${q.rows.allowHint} @click=${()=>this.#se(`allow`)}>${q.rows.allow(r,t)}</button>
      <button type="button" class="ghost clear" aria-label=${q.rows.clear} @click=${()=>this.#ee(j)}>${s(`close`)}</button></div>`}};customElements.define(`plexus-requests`,Le);var Z=m.request,Re=class extends g{static{this.properties={request_id:{},missing:{state:!0}}}#e=``;#t;constructor(){super(),this.request_id=``,this.missing=!1}static{this.styles=[...[g.styles].flat(),n`
      :host { display: flex; flex-direction: column; gap: 12px; min-height: 0; max-inline-size: 760px; inline-size: 100%; margin-inline: auto; }
      plexus-card { max-block-size: var(--solo-height, calc(100dvh - 132px)); }
      @media (max-width: 599px) { plexus-card { max-block-size: var(--solo-height, calc(100dvh - 186px - env(safe-area-inset-bottom))); } }
      p { padding: 32px 8px; text-align: center; color: var(--fg-mute); }
      a { display: inline-flex; align-items: center; min-block-size: 44px; }
    `]}updated(){if(this.#e===this.request_id||!f.live.value||(this.#e=this.request_id,this.missing=!1,f.requests.peek().has(this.request_id)))return;let e=this.request_id;f.reread(e).then(t=>{e===this.request_id&&(this.#t=t??void 0,this.missing=!t,this.requestUpdate())})}render(){let e=f.live.value,t=f.requests.value.get(this.request_id)??(this.#t?.request_id===this.request_id?this.#t:void 0);t&&(this.#t=t);let n=o`<a href=${f.href({page:`inbox`})}>${Z.toInbox}</a>`;return t?o`<plexus-card layout="solo" .request=${t}></plexus-card>`:o`<p role="status">${this.missing?Z.notFound:e?Z.loading:Z.offline}<br />${n}</p>`}};customElements.define(`plexus-request`,Re);var Q=m.shell.inbox,$=class extends g{constructor(...e){super(...e),this.request=``,this.#e=!1,this.#t=!1}#e;#t;static{this.styles=[...[g.styles].flat(),ee,n`
    :host { height: 100%; min-height: 0; display: flex; flex-direction: column; }
    .page { width: 100%; max-width: 820px; overflow-y: auto; box-sizing: border-box; }
    plexus-requests { flex: 1 1 0; }
    h1 { flex: none; }
    .count { flex: 0 1 auto; min-width: 0; overflow: hidden; text-overflow: ellipsis; color: var(--fg-mute); font-size: var(--t-s); }
    .first { padding: var(--s5); max-width: 660px; margin: 0 auto; } .first p { margin: 4px 0 var(--s4); }
    @media (max-width: 599px) { .first { padding: var(--s4); } }
  `]}disconnectedCallback(){super.disconnectedCallback(),this.#t=!1}render(){let e=[...f.requests.value.values()],n=e.filter(e=>e.state===`open`).length;return n&&(this.#e=!0),e.length||(this.#e=!1),this.request?o`<div class="page"><header><a class="btn ghost" href="#/inbox">${s(`back`)}${Q.title}</a><h1 class="sr" tabindex="-1">${Q.title}</h1></header><h2 class="sr">${Q.open}</h2>
        <plexus-request .request_id=${this.request}></plexus-request></div>`:n>0||this.#e&&this.#n()?o`<plexus-requests><h1 slot="title" tabindex="-1">${Q.title}</h1>${n?o`<span slot="title" class="count" id="count">${Q.waits(n)}</span>`:t}</plexus-requests>`:(f.loaded.value&&!e.length&&_()&&(this.#t=!0),this.#t&&ce(`new`),o`<div class="page">
      <header><h1 tabindex="-1">${Q.title}</h1>${f.may(`prompt`)&&!this.#t?o`<button class="primary" id="new" @click=${p}>${s(`plus`)}${m.shell.sessions.new}</button>`:t}</header>
      ${this.#t?o`<section class="first panel" aria-labelledby="first"><h2 id="first">${m.shell.newSession.first}</h2><p class="soft">${m.shell.newSession.firstText}</p><plexus-new-session></plexus-new-session></section>`:f.loaded.value?l(`check`,Q.none,Q.noneText):u()}
    </div>`)}#n(){return f.now.value,this.renderRoot.querySelector(`plexus-requests`)?.shadowRoot?.querySelector(`[role="row"]`)!=null}};x([e()],$.prototype,`request`,void 0),$=x([i(`plexus-inbox`)],$);export{$ as PlexusInbox};