const __vite__mapDeps=(i,m=__vite__mapDeps,d=(m.f||(m.f=["assets/worktree-D2Z7dDsC.js","assets/parts-C1VI4Yy4.js","assets/libraries-D3tVd1Dt.js","assets/icons-CfyhBgGx.js","assets/en-DZy5rTsZ.js","assets/conversation-BhGXNkxX.js","assets/output-CaA4VMZA.js","assets/off-CzrtBzd8.js","assets/visible-D1T2QE9j.js","assets/wire-DO_EGEyu.js","assets/plot-CMaTBL0Q.js","assets/home-DdT2waGH.js","assets/devices--VcKVrSe.js","assets/runtimes-BEJVm7K6.js","assets/search-CmBqNqQL.js","assets/terminals-BPsF_7h7.js","assets/usage-Do_xAPH0.js","assets/chart-xsjZpYg7.js","assets/types-BMb1-0yY.js","assets/changes-C-SLOpPr.js","assets/diffview-Klh3zFB7.js","assets/unified-okMqk6KD.js","assets/settings-C0rH3Doh.js"])))=>i.map(i=>d[i]);
import{a as e,b as t,c as n,d as r,f as i,g as a,i as o,l as s,m as c,o as l,u,x as d}from"./libraries-D3tVd1Dt.js";import{n as f,t as p}from"./icons-CfyhBgGx.js";import{A as m,D as ee,E as h,M as te,N as ne,O as re,P as ie,T as ae,_ as oe,a as se,b as ce,c as le,d as ue,f as de,g as fe,h as g,i as pe,j as _,k as me,l as v,m as he,n as ge,o as _e,p as ve,r as ye,s as y,t as be,u as b,v as xe,w as x,y as Se}from"./parts-C1VI4Yy4.js";import{t as S}from"./en-DZy5rTsZ.js";var Ce=`plexus.theme`,we=[`auto`,`light`,`dark`];function Te(){try{let e=localStorage.getItem(Ce);return e===`light`||e===`dark`?e:`auto`}catch{return`auto`}}var Ee=d(Te());function De(e){e===`auto`?document.documentElement.removeAttribute(`data-theme`):document.documentElement.dataset.theme=e}De(Ee.peek());function Oe(e){Ee.value=e,De(e);try{e===`auto`?localStorage.removeItem(Ce):localStorage.setItem(Ce,e)}catch{}}var ke=()=>we[(we.indexOf(Ee.peek())+1)%we.length]??`auto`,Ae=80;function je(){let e=window.visualViewport;if(!e)return()=>{};let t=()=>{let t=e.scale>1.01?0:Math.round(innerHeight-e.height);document.documentElement.style.setProperty(`--covered`,`${t>Ae?t:0}px`),t>Ae&&window.scrollTo(0,0)};return e.addEventListener(`resize`,t),t(),()=>e.removeEventListener(`resize`,t)}var Me=1200,Ne=[],Pe=``,Fe;function Ie(){let e=document.activeElement;for(;e?.shadowRoot?.activeElement;)e=e.shadowRoot.activeElement;return e}function Le(e){return e instanceof HTMLElement?e.isContentEditable||e instanceof HTMLTextAreaElement||e instanceof HTMLSelectElement?!0:e instanceof HTMLInputElement&&![`checkbox`,`radio`,`button`,`submit`].includes(e.type):!1}var Re=()=>{let e=Ie();for(;e;){if(e instanceof HTMLDialogElement&&e.open)return!0;e=e.assignedSlot??e.parentElement??e.getRootNode().host??null}return!1};function ze(e){return Ne.push(e),()=>{let t=Ne.indexOf(e);t>=0&&Ne.splice(t,1)}}var Be=e=>`${e.ctrlKey||e.metaKey?`mod+`:``}${e.altKey?`alt+`:``}${e.key.length,e.key}`;window.addEventListener(`keydown`,e=>{if(e.defaultPrevented||e.isComposing||e.repeat&&e.key!==`j`&&e.key!==`k`||[`Shift`,`Control`,`Alt`,`Meta`].includes(e.key))return;let t=Be(e),n=Le(Ie()),r=Re();if(r&&t===`Escape`)return;let i=Pe&&!n?`${Pe} ${t}`:t;clearTimeout(Fe);let a=Pe;Pe=``;for(let t=Ne.length-1;t>=0;--t)for(let a of Ne[t]??[])if(!(a.key!==i||(n||r)&&!a.typing)){e.preventDefault(),a.run(e);return}!n&&!r&&!a&&Ne.some(e=>e.some(e=>e.key.startsWith(`${t} `)))&&(Pe=t,Fe=setTimeout(()=>{Pe=``},Me),e.preventDefault())});var Ve=class extends f{constructor(...e){super(...e),this.open=!1,this.heading=``,this.reading=!1,this.size=`normal`,this.#e=()=>{this.open&&(this.open=!1,this.dispatchEvent(new CustomEvent(`close`)))},this.#t=e=>{let t=e.currentTarget;if(e.target!==t)return;let n=t.getBoundingClientRect();(e.clientX<n.left||e.clientX>n.right||e.clientY<n.top||e.clientY>n.bottom)&&t.close()}}static{this.styles=[...[f.styles].flat(),a`
    dialog {
      width: min(520px, calc(100vw - 24px)); max-height: min(88dvh, 820px); padding: 0;
      border: 1px solid var(--line-strong); border-radius: var(--r-l); background: var(--bg-raised); color: var(--fg);
      box-shadow: var(--shadow-3); overflow: hidden;
    }
    dialog[open] { display: flex; flex-direction: column; }
    :host([size="small"]) dialog { width: min(400px, calc(100vw - 24px)); }
    :host([size="wide"]) dialog { width: min(860px, calc(100vw - 24px)); }
    dialog::backdrop { background: rgb(8 9 12 / 48%); }
    .head { display: flex; align-items: center; gap: var(--s3); padding: 14px 12px 10px 20px; }
    .head h2 { flex: 1; min-width: 0; }
    .head h2:focus-visible { outline: none; }
    .body { padding: 2px 20px 20px; overflow: auto; display: flex; flex-direction: column; gap: var(--s4); }
    @media (max-width: 599px) {
      dialog { width: 100vw !important; max-width: 100vw; margin: auto 0 0; border-radius: var(--r-l) var(--r-l) 0 0; border-width: 1px 0 0; padding-bottom: env(safe-area-inset-bottom); }
    }
  `]}render(){return c`<dialog aria-labelledby="heading" @close=${this.#e} @cancel=${()=>{}} @click=${this.#t}>
      <div class="head"><h2 id="heading" tabindex="-1">${this.heading}</h2>
        <button class="ghost icon" aria-label=${S.common.close} @click=${()=>this.renderRoot.querySelector(`dialog`)?.close()}>${p(`close`)}</button></div>
      <div class="body" tabindex=${this.reading?0:i} role=${this.reading?`region`:i} aria-label=${this.reading?this.heading:i}>${this.open?c`<slot></slot>`:i}</div>
    </dialog>`}updated(){let e=this.renderRoot.querySelector(`dialog`);if(e&&e.open!==this.open){if(this.open){e.showModal();let t=this.querySelector(`[autofocus]`);t?t.focus():this.renderRoot.querySelector(`h2`)?.focus()}else e.close()}}#e;#t};v([s({type:Boolean})],Ve.prototype,`open`,void 0),v([s()],Ve.prototype,`heading`,void 0),v([s({type:Boolean})],Ve.prototype,`reading`,void 0),v([s({reflect:!0})],Ve.prototype,`size`,void 0),Ve=v([u(`plexus-dialog`)],Ve);var He=d(null);function Ue(e,t,n,r=!1){return new Promise(i=>{He.value={heading:e,body:t,yes:n,danger:r,done:e=>i(e!==null)}})}function We(e,t,n,r=S.common.save){return new Promise(i=>{He.value={heading:e,body:``,yes:r,danger:!1,field:{label:t,value:n},done:i}})}var Ge=class extends f{static{this.styles=[...[f.styles].flat(),a`form { display: contents; } .row { display: flex; justify-content: flex-end; gap: var(--s2); }`]}render(){let e=He.value,t=t=>{He.value=null,e?.done(t)};return c`<plexus-dialog size="small" .open=${e!==null} heading=${e?.heading??``} @close=${()=>t(null)}>
      ${e?c`<form @submit=${e=>{e.preventDefault(),t(this.renderRoot.querySelector(`#value`)?.value??``)}}>
        ${e.body?c`<p class="soft">${e.body}</p>`:i}
        ${e.field?c`<label class="field">${e.field.label}<input id="value" autofocus autocomplete="off" maxlength="200" .value=${e.field.value}></label>`:i}
        <div class="row"><button type="button" ?autofocus=${!e.field} @click=${()=>t(null)}>${S.common.cancel}</button>
          <button type="submit" class="primary ${e.danger?`danger`:``}">${e.yes}</button></div>
      </form>`:i}
    </plexus-dialog>`}};Ge=v([u(`plexus-asking`)],Ge);var Ke=class extends f{constructor(...e){super(...e),this.label=``,this.items=[],this.icon=`more`,this.showLabel=!1,this.shown=!1,this.hide=()=>this.#e?.hidePopover(),this.#t=()=>{this.shown?this.hide():this.#e?.showPopover()},this.#n=e=>{this.shown=e.newState===`open`,this.shown&&this.updateComplete.then(()=>{let e=this.#e,t=this.renderRoot.querySelector(`button`)?.getBoundingClientRect();if(!e||!t)return;let n=e.getBoundingClientRect(),r=Math.max(8,Math.min(t.right-n.width,innerWidth-n.width-8)),i=t.bottom+4,a=i+n.height>innerHeight-8?Math.max(8,t.top-n.height-4):i;e.style.left=`${r}px`,e.style.top=`${a}px`,this.#r()[0]?.focus()})},this.#r=()=>[...this.renderRoot.querySelectorAll(`.item:not([disabled])`)],this.#i=e=>{let t=this.#r(),n=t.indexOf(this.shadowRoot?.activeElement),r={ArrowDown:(n+1)%t.length,ArrowUp:(n-1+t.length)%t.length,Home:0,End:t.length-1}[e.key];if(e.key===`Escape`){this.hide(),this.renderRoot.querySelector(`button`)?.focus(),e.preventDefault(),e.stopPropagation();return}if(e.key===`Tab`){this.hide();return}let i=r??(e.key.length===1?t.findIndex(t=>t.textContent?.trim().toLowerCase().startsWith(e.key.toLowerCase())):-1);i<0||(e.preventDefault(),e.stopPropagation(),t[i]?.focus())}}static{this.styles=[...[f.styles].flat(),a`
    :host { display: inline-block; }
    [popover] {
      position: fixed; inset: auto; margin: 0; padding: 4px; min-width: 190px; max-width: min(320px, 94vw); max-height: 70dvh; overflow: auto;
      border: 1px solid var(--line-strong); border-radius: var(--r-m); background: var(--bg-raised); color: var(--fg); box-shadow: var(--shadow-2);
    }
    .item { display: flex; width: 100%; justify-content: flex-start; gap: 9px; border: 0; background: none; font-weight: 450; padding: 0 9px; color: var(--fg); text-decoration: none; border-radius: var(--r-s); min-height: 32px; align-items: center; }
    .item svg { color: var(--fg-mute); flex: none; }
    .item:hover, .item:focus-visible { background: var(--bg-hover); outline-offset: -2px; }
    .item.danger, .item.danger svg { color: var(--danger); }
    .sep { height: 1px; margin: 4px 0; background: var(--line); }
    .tick { margin-left: auto; }
    @media (pointer: coarse) { .item { min-height: 42px; } }
  `]}render(){return c`<button class="ghost ${this.showLabel?``:`icon`}" aria-haspopup="menu" aria-expanded=${this.shown} aria-label=${this.label} @click=${this.#t}>${p(this.icon)}${this.showLabel?this.label:i}</button>
      <div popover="auto" role="menu" aria-label=${this.label} @toggle=${this.#n} @keydown=${this.#i}>
        ${this.shown?this.items.map(e=>c`${e.separate?c`<div class="sep" role="separator"></div>`:i}${e.href?c`<a class="item" role="menuitem" tabindex="-1" href=${e.href} @click=${this.hide}>${e.icon?p(e.icon):i}${e.label}</a>`:c`<button class="item ${e.danger?`danger`:``}" role=${e.checked===void 0?`menuitem`:e.toggle?`menuitemcheckbox`:`menuitemradio`} aria-checked=${e.checked===void 0?i:e.checked} tabindex="-1" ?disabled=${e.disabled}
              @click=${()=>{this.hide(),e.run?.()}}>${e.icon?p(e.icon):i}${e.label}${e.checked?c`<span class="tick">${p(`check`,14)}</span>`:i}</button>`}`):i}
      </div>`}get#e(){return this.renderRoot.querySelector(`[popover]`)}#t;#n;#r;#i};v([s()],Ke.prototype,`label`,void 0),v([s({attribute:!1})],Ke.prototype,`items`,void 0),v([s()],Ke.prototype,`icon`,void 0),v([s({type:Boolean,attribute:`show-label`})],Ke.prototype,`showLabel`,void 0),v([s({state:!0,attribute:!1})],Ke.prototype,`shown`,void 0),Ke=v([u(`plexus-menu`)],Ke);var C=S.shell.help,w=C.keys,qe=typeof navigator<`u`&&/Mac|iPhone|iPad/.test(navigator.platform)?`⌘`:`Ctrl`,Je=[[C.groups.everywhere,[[`${qe} K`,w.palette],[`?`,w.help],[`N n`,w.newSession],[`/`,w.find],[`t`,w.theme],[`Esc`,w.close]]],[C.groups.go,[[`g i`,w.inbox],[`g h`,w.home],[`g s`,w.sessions],[`g f`,w.search],[`g r`,w.runtimes],[`g d`,w.devices],[`g t`,w.terminals],[`g u`,w.usage],[`g ,`,w.settings],[`g b`,w.back]]],[C.groups.request,[[`y a`,w.allow],[`A`,w.always],[`n d`,w.deny],[`r D`,w.denyWhy],[`e`,w.edit],[`m`,w.remember],[`c`,w.again],[`o`,w.unfold],[`1 – 9`,w.option]]],[C.groups.inbox,[[`j ]`,w.next],[`k [`,w.previous],[`Enter`,w.intoCard],[`x Space`,w.select],[`⇧ ↓`,w.selectMore],[`${qe} A`,w.selectAll],[`← →`,w.fold],[`y a`,w.allowSelected],[`n d`,w.denySelected],[`X`,w.clearSelection],[`Esc`,w.backToRow]]],[C.groups.list,[[`j`,w.next],[`k`,w.previous],[`Enter`,w.open],[`e`,w.archive],[`r`,w.rename],[`← →`,w.fold],[`p`,w.project]]],[C.groups.session,[[`i`,w.compose],[`Enter`,w.send],[`⇧ Enter`,w.newline],[`j`,w.next],[`k`,w.previous],[`o`,w.unfold],[`e`,w.jump],[`/`,w.findHere],[`y`,w.copy],[`g c`,w.changes],[`u`,w.up]]],[C.groups.changes,[[`j k`,w.file],[`n p`,w.part],[`v`,w.viewed],[`c`,w.comment],[`x`,w.undo],[`s`,w.sides],[`u`,w.toSession]]]],Ye=S.shell.help,Xe=class extends f{constructor(...e){super(...e),this.open=!1}show(){this.open=!0}static{this.styles=[...[f.styles].flat(),a`
    .cols { columns: 2 300px; column-gap: var(--s6); }
    section { break-inside: avoid; margin-bottom: var(--s5); }
    h3 { margin-bottom: var(--s2); color: var(--fg-mute); font-size: var(--t-s); }
    dl { display: grid; grid-template-columns: 108px 1fr; gap: 6px 12px; align-items: center; }
    dt { display: flex; gap: 3px; flex-wrap: wrap; }
  `]}render(){return c`<plexus-dialog reading size="wide" heading=${Ye.title} .open=${this.open} @close=${()=>{this.open=!1}}>
      <div class="cols">${Je.map(([e,t])=>c`<section><h3>${e}</h3><dl>${t.map(([e,t])=>c`
        <dt>${e.split(` `).map(e=>e===`–`?e:c`<kbd>${e}</kbd>`)}</dt><dd>${t}</dd>`)}</dl></section>`)}</div>
    </plexus-dialog>`}};v([n()],Xe.prototype,`open`,void 0),Xe=v([u(`plexus-help`)],Xe);var Ze=15e3,Qe=d([]);async function $e(){try{Qe.value=m((await b.http(`GET`,`/v1/terminals`))?.terminals)}catch{}}setInterval(()=>{b.live.peek()&&!document.hidden&&$e()},Ze);var et=S.shell;async function tt(){let e=b.me.peek()?.kind===`device`;(!e||await Ue(et.signOutAsk,et.signOutWhy,et.signOut,!0))&&(e&&await b.http(`DELETE`,`/v1/me`).catch(()=>{}),history.replaceState(null,``,location.pathname),xe(et.signin.out))}var nt=class extends f{constructor(...e){super(...e),this.state=`idle`,this.bare=!1}static{this.styles=[...[f.styles].flat(),a`
    :host { display: inline-flex; align-items: center; gap: 6px; font-size: var(--t-s); color: var(--fg-mute); white-space: nowrap; flex: none; }
    .sign { width: 14px; height: 14px; flex: none; display: grid; place-items: center; }
    svg { overflow: visible; }
    :host([state="running"]) { color: var(--accent); }
    :host([state="waiting"]) { color: var(--warn); font-weight: 600; }
    :host([state="running"]) .turn { animation: turn 1.6s linear infinite; transform-origin: 7px 7px; }
    @keyframes turn { to { transform: rotate(360deg); } }
  `]}render(){let e=S.shell.sessions.state[this.state]??_(this.state);return c`<span class="sign" role=${this.bare?`img`:i} aria-label=${this.bare?e:i}>${this.#e()}</span>${this.bare?i:e}`}#e(){switch(this.state){case`running`:return c`<svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" aria-hidden="true"><circle cx="7" cy="7" r="5.2" opacity="0.28"></circle><path class="turn" d="M7 1.8A5.2 5.2 0 0 1 12.2 7"></path></svg>`;case`waiting`:return c`<svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true"><circle cx="7" cy="7" r="6" fill="currentColor"></circle><path d="M5.3 5.3a1.75 1.75 0 1 1 2.4 1.7c-.5.2-.7.5-.7 1M7 10h.01" fill="none" stroke="var(--bg-raised)" stroke-width="1.4" stroke-linecap="round"></path></svg>`;case`exited`:return c`<svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" aria-hidden="true"><path d="M4.2 4.2l5.6 5.6M9.8 4.2 4.2 9.8"></path></svg>`;default:return c`<svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.6" aria-hidden="true"><circle cx="7" cy="7" r="4.6"></circle></svg>`}}};v([s({reflect:!0})],nt.prototype,`state`,void 0),v([s({type:Boolean})],nt.prototype,`bare`,void 0),nt=v([u(`plexus-state`)],nt);var T=S.shell,rt=40;function it(e,t){let n=e.toLowerCase(),r=n.indexOf(t);if(r>=0)return r===0||n[r-1]===` `?r:r+20;let i=0,a=0;for(let e of t){let t=n.indexOf(e,i);if(t<0)return null;a+=t-i,i=t+1}return 100+a}var at=class extends f{constructor(...e){super(...e),this.shown=!1,this.q=``,this.at=0,this.#e=null,this.#o=()=>{this.shown=!1,this.#e?.focus({preventScroll:!0}),this.#e=null}}#e;static{this.styles=[...[f.styles].flat(),a`
    dialog { width: min(620px, calc(100vw - 24px)); margin: min(14vh, 120px) auto auto; padding: 0; border: 1px solid var(--line-strong); border-radius: var(--r-l); background: var(--bg-raised); color: var(--fg); box-shadow: var(--shadow-3); overflow: hidden; }
    dialog::backdrop { background: rgb(8 9 12 / 42%); }
    .find { display: flex; align-items: center; gap: 10px; padding: 0 16px; border-bottom: 1px solid var(--line); color: var(--fg-mute); }
    .find input { border: 0; background: none; min-height: 50px; padding: 0; font-size: var(--t-l); }
    .find input:focus-visible { outline: none; }
    .list { max-height: min(52vh, 440px); overflow: auto; padding: 6px; scroll-padding: 30px 6px 6px; }
    .group { padding: 9px 10px 4px; font-size: var(--t-xs); font-weight: 600; color: var(--fg-mute); }
    .one { display: flex; align-items: center; gap: 10px; min-height: 36px; padding: 0 10px; border-radius: var(--r-s); cursor: pointer; }
    .one svg { color: var(--fg-mute); flex: none; }
    .one[aria-selected="true"] { background: var(--bg-active); }
    .one .hint { margin-left: auto; color: var(--fg-soft); font-size: var(--t-s); max-width: 45%; }
    .none { padding: 24px; text-align: center; color: var(--fg-mute); }
    @media (max-width: 599px) { dialog { margin: 0; width: 100vw; max-width: 100vw; border-radius: 0 0 var(--r-l) var(--r-l); border-width: 0 0 1px; padding-top: env(safe-area-inset-top); } .list { max-height: 60dvh; } .one { min-height: 44px; } }
  `]}toggle(){this.shown?this.#t?.close():Re()||(this.#e=document.activeElement,this.shown=!0,this.q=``,this.at=0,this.updateComplete.then(()=>{this.#t?.showModal();let e=this.renderRoot.querySelector(`input`);e&&(e.value=``,e.focus())}))}get#t(){return this.renderRoot.querySelector(`dialog`)}#n(){let e=T.command.sections,t=(t,n,r)=>({section:e.go,label:T.pages[t],icon:n,keys:r,run:()=>b.go(t===`search`?{page:t,q:``}:{page:t})}),n=b.route.value,r=b.may(`admin`),i=[t(`inbox`,`inbox`,`g i`),t(`home`,`home`,`g h`),t(`sessions`,`sessions`,`g s`),t(`search`,`search`,`g f`),t(`runtimes`,`runtimes`,`g r`),t(`devices`,`devices`,`g d`),...b.me.value?.kind===`share`?[]:[t(`usage`,`usage`,`g u`),t(`settings`,`settings`,`g ,`)],...Qe.value.length?[t(`terminals`,`terminal`,`g t`)]:[]],a=b.news.value;for(let t of[...b.sessions.value.values()].sort((e,t)=>(a.get(t.session_id)??0)-(a.get(e.session_id)??0)))i.push({section:e.session,label:_(t.title)||S.common.untitled,hint:[_(t.runtime_id),_(t.cwd)].filter(Boolean).join(` · `),state:t.state,run:()=>b.go({page:`session`,session_id:t.session_id})});if(b.may(`prompt`)&&i.push({section:e.act,label:T.sessions.new,icon:`plus`,keys:`n`,run:()=>{setTimeout(()=>dispatchEvent(new CustomEvent(`plexus-new-session`)),0)}}),n.page===`session`){let t=e=>()=>dispatchEvent(new CustomEvent(`plexus-session-do`,{detail:e}));b.may(`prompt`)&&i.push({section:e.act,label:T.sessions.rename,icon:`pencil`,run:t(`rename`)},{section:e.act,label:T.sessions.archive,icon:`archive`,run:t(`archive`)}),r&&i.push({section:e.act,label:T.sessions.share,icon:`share`,run:t(`share`)})}r&&i.push({section:e.act,label:T.devices.add,icon:`phone`,run:()=>{b.go({page:`devices`}),setTimeout(()=>dispatchEvent(new CustomEvent(`plexus-add-device`)),0)}}),i.push({section:e.act,label:T.signOut,icon:`out`,run:()=>void tt()});for(let t of[`auto`,`light`,`dark`])i.push({section:e.theme,label:`${T.theme}: ${T.themes[t]}`,icon:t===`light`?`sun`:t===`dark`?`moon`:`auto`,run:()=>Oe(t)});return i}#r(){let e=this.q.trim().toLowerCase(),t=this.#n();if(!e)return t.slice(0,rt);let n=t.map(t=>({one:t,at:it(`${t.label} ${t.hint??``}`,e)})).filter(e=>e.at!==null).sort((e,t)=>e.at-t.at).map(e=>e.one).slice(0,39);return n.sort((e,n)=>t.findIndex(t=>t.section===e.section)-t.findIndex(e=>e.section===n.section)),n.push({section:T.command.sections.act,label:T.command.searchFor(this.q.trim()),icon:`search`,run:()=>b.go({page:`search`,q:this.q.trim()})}),n}render(){if(!this.shown)return c`<dialog aria-label=${T.command.label} @close=${this.#o}></dialog>`;let e=this.#r(),t=Math.min(this.at,e.length-1);return c`<dialog aria-label=${T.command.label} @close=${this.#o} @click=${e=>{e.target===e.currentTarget&&this.#t?.close()}}>
      <div class="find">${p(`search`)}<input type="text" role="combobox" aria-label=${T.command.label} aria-expanded="true" aria-controls="list" aria-activedescendant=${e.length?`o${t}`:i} aria-autocomplete="list"
        autocomplete="off" autocapitalize="off" spellcheck="false" placeholder=${T.command.hint} @input=${e=>{this.q=e.target.value,this.at=0}} @keydown=${n=>this.#i(n,e,t)}><kbd>Esc</kbd></div>
      <div class="list" id="list" role="listbox" aria-label=${T.palette} tabindex="-1">${e.map((n,r)=>c`
        ${r===0||e[r-1]?.section!==n.section?c`<div class="group" role="presentation">${n.section}</div>`:i}
        <div class="one" role="option" id="o${r}" aria-selected=${r===t} @click=${()=>this.#a(n)} @mousemove=${()=>{this.at!==r&&(this.at=r)}}>
          ${n.state?c`<plexus-state .state=${n.state} bare></plexus-state>`:n.icon?p(n.icon):i}<bdi class="cut">${n.label}</bdi>
          ${n.keys?c`<span class="hint">${n.keys.split(` `).map(e=>c`<kbd>${e}</kbd> `)}</span>`:n.hint?c`<bdi class="hint cut">${n.hint}</bdi>`:i}</div>`)}
        ${e.length?i:c`<div class="none">${T.command.none}</div>`}</div>
    </dialog>`}updated(){this.renderRoot.querySelector(`[aria-selected="true"]`)?.scrollIntoView({block:`nearest`})}#i(e,t,n){let r={ArrowDown:1,ArrowUp:-1,PageDown:8,PageUp:-8}[e.key];if(r!==void 0)e.preventDefault(),this.at=Math.abs(r)===1?(n+r+t.length)%t.length:Math.max(0,Math.min(t.length-1,n+r));else if(e.key===`Enter`&&!e.isComposing){e.preventDefault();let r=t[n];r&&this.#a(r)}}#a(e){this.#e=null,this.#t?.close(),e.run()}#o};v([n()],at.prototype,`shown`,void 0),v([n()],at.prototype,`q`,void 0),v([n()],at.prototype,`at`,void 0),at=v([u(`plexus-palette`)],at);var ot=d(null);window.addEventListener(`beforeinstallprompt`,e=>{e.preventDefault(),ot.value=async()=>{ot.value=null,await e.prompt?.()}}),window.addEventListener(`appinstalled`,()=>{ot.value=null});var E=S.request;function st(e){let{subject:t,type:n}=e;return t?.type!==`question`||e.observe_only||(n===`pick`||n===`prompt`)&&t.questions.length===1&&t.questions[0]?.id===`answer`?[]:t.questions}var ct={chosen:new Set,words:``,own:!1};function lt(e,t,n,r){let i=e.multiple?new Set(t.chosen):new Set;return r?i.add(n):i.delete(n),{...t,chosen:i,own:e.multiple?t.own:!1}}var ut=(e,t,n)=>({...t,own:n,chosen:n&&!e.multiple?new Set:t.chosen}),dt=(e,t)=>e.free_text&&(t.own||e.options.length===0);function ft(e,t){let n=e.options.map(e=>e.id).filter(e=>t.chosen.has(e)),r=dt(e,t)?t.words.trim():``;return r?[...n,r]:n}function pt(e,t){let n=ft(e,t);if(dt(e,t)&&t.words.trim()===``&&(!e.optional||t.own))return E.questions.wantsWords;if(n.length===0)return e.optional?``:E.questions.wantsOne;let{number:r,least:i,most:a}=e.fits??{},o=e=>i!==void 0&&e<i,s=e=>a!==void 0&&e>a;if(e.multiple){if(o(n.length))return E.questions.atLeast(i);if(s(n.length))return E.questions.atMost(a)}else if(dt(e,t)){let e=t.words.trim();if(r){let t=Number(e);if(!Number.isFinite(t))return E.questions.aNumber;if(r===`integer`&&!Number.isInteger(t))return E.questions.aWhole;if(o(t))return E.questions.from(i);if(s(t))return E.questions.upTo(a)}else{if(o([...e].length))return E.questions.longer(i);if(s([...e].length))return E.questions.shorter(a)}}return``}function mt(e,t){let n=Object.create(null);for(let r of e){let e=t.get(r.id)??ct,i=pt(r,e);if(i)return{question:r,words:i};let a=ft(r,e);a.length&&(n[r.id]=a)}return{answers:n}}var ht=e=>_(e.header||e.text),D=e=>e.risk??(e.danger?`danger`:`elevated`),gt={low:`check`,elevated:`warn`,danger:`danger`},_t={low:0,elevated:1,danger:2},vt=(e,t)=>!t||_t[e]<=_t[t],yt=e=>e.kind!==`reject_once`&&e.kind!==`reject_always`,O=S.request,bt={allow_always:0,reject_always:1,other:2,reject_once:3,allow_once:4},xt=e=>e.toLowerCase().replace(/[^a-z]/g,``);function St(e){let t=_(e.label)||e.id,n=O.verbs[e.kind];return{id:`option:${e.id}`,verb:n??`“${t}”`,quoted:n&&xt(t)!==xt(n)?t:``,sense:yt(e)?`allow`:`deny`,key:``,always:e.kind===`allow_always`||e.kind===`reject_always`,answer:{option_id:e.id}}}var k=(e,t,n,r)=>({id:e,verb:t,quoted:``,sense:n,key:``,always:!1,answer:r});function Ct(e){if(e.observe_only)return[];if(st(e).length)return[k(`none`,O.noAnswer,`deny`,{answers:{}}),k(`send`,O.sendAnswers,`allow`,{})];if(e.options.length>0){let t=e=>bt[e.kind]??2;return e.options.map((e,t)=>({offer:e,n:t})).sort((e,n)=>t(e.offer)-t(n.offer)||e.n-n.n).map(({offer:e})=>St(e))}switch(e.type){case`pick`:return[k(`none`,O.chooseNothing,`deny`,{ids:[]}),k(`send`,O.sendChoice,`allow`,{})];case`prompt`:return[k(`none`,O.noAnswer,`deny`,{value:null}),k(`send`,O.sendAnswer,`allow`,{})];case`confirm`:case`permission`:return[k(`deny`,O.deny,`deny`,{ok:!1}),k(`allow`,O.allow,`allow`,{ok:!0})];default:return[]}}function wt(e){let t=Ct(e),n=(e,n)=>{let r=t.find(e=>e.key===``&&n(e));r&&(r.key=e)},r=t=>e.options.find(e=>`option:${e.id}`===t.id)?.kind;return n(`d`,e=>e.sense===`deny`&&!e.always),n(`a`,t=>e.options.length>0?r(t)===`allow_once`:t.sense===`allow`),n(`A`,e=>r(e)===`allow_always`),t}function Tt(e){let t=e.filter(e=>!e.always),n=t.filter(e=>e.key!==``),r=n.some(e=>e.key===`a`)?n:t;return{main:r,others:t.filter(e=>!r.includes(e)),lasting:e.filter(e=>e.always)}}var Et=e=>e.allow_remember&&!e.observe_only&&!e.options.some(e=>e.kind===`allow_always`||e.kind===`reject_always`),Dt=S.common,Ot=1e3,kt=60*Ot,At=60*kt,jt=24*At;function Mt(e){let t=Math.max(0,e);return t<kt?Dt.seconds(Math.round(t/Ot)):t<At?Dt.minutes(Math.floor(t/kt)):t<2*jt?Dt.hours(Math.floor(t/At)):Dt.days(Math.floor(t/jt))}function Nt(e,t){let n=e?Date.parse(e):NaN;if(Number.isNaN(n))return Dt.justNow;let r=t-n;return r<2*Ot?Dt.justNow:Dt.ago(Mt(r))}var Pt=S.request;function Ft(){let e=crypto.getRandomValues(new Uint8Array(16));return`web-${Array.from(e,e=>e.toString(16).padStart(2,`0`)).join(``)}`}var It=e=>typeof e==`object`&&!!e&&`resolved_by`in e&&`state`in e;function Lt({status:e,body:t}){if(e>=200&&e<300)return It(t)?t.won===!1?{is:`lost`,receipt:t}:{is:`won`,receipt:t}:{is:`unknown`};let n=typeof t==`object`&&t?t:{},r=typeof n.code==`string`?n.code:``;return e===409&&r===`already_resolved`&&It(t)?{is:`lost`,receipt:t}:e===410?{is:`closed`,receipt:It(t)?t:null,words:_(n.detail)||Pt.gone}:r?{is:`refused`,code:r,words:Pt.refusals[r]??Pt.refused(_(n.detail??n.title)||String(e))}:{is:`unknown`}}var Rt=class{constructor(e,t,n){this.request=e,this.post=n,this.key=Ft(),this.answer=e.digest?{...t,digest:e.digest}:t}async send(){try{return Lt(await this.post(this.request.request_id,this.answer,this.key))}catch{return{is:`unknown`}}}},zt=2,Bt=class{#e;#t=null;constructor(e){this.#e=e}again(e){this.#e=e}seen(e,t){let n=this.#t,r=!n||Math.abs(n.top-e.top)>=zt||Math.abs(n.left-e.left)>=zt;return r&&(this.#t=e,this.again(t)),r}armed(e){return e-this.#e>=400}},A=S.request.rows,Vt=320,Ht=40,Ut=e=>_(e.slice(0,Vt)),j=(e,t,n={})=>({verb:e,head:Ut(t),tail:``,more:``,quoted:!1,...n}),Wt=/\nin [^\n]*$/;function Gt(e){let t=Ut(e),n=t.slice(t.lastIndexOf(`/`)+1);return n&&n.length<=Ht&&n.length<t.length?{head:t.slice(0,-n.length),tail:n}:{head:t,tail:``}}function Kt(e){let{subject:t,display:n}=e;switch(t?.type){case`command`:return j(``,t.argv?.length?t.argv.join(` `).slice(0,Vt):n.slice(0,Vt).replace(Wt,``));case`edit`:{let[e]=t.files;if(!e)return j(A.edit,n);let r=t.files.length+(t.more??0)-1,i=e=>t.files.reduce((t,n)=>t+(n[e]??0),0);return{...j(A.edit,``),...Gt(e.path),more:[r>0?A.moreFiles(r):``,A.counts(i(`added`),i(`removed`))].filter(Boolean).join(` `)}}case`fetch`:return j(A.fetch,t.url);case`plan`:return j(A.plan,n);case`question`:{let[e]=t.questions;return j(A.question,e?.text||n,{quoted:!0,more:t.questions.length>1?A.questions(t.questions.length):``})}case`unreadable`:return j(A.unreadable,n);case`tool`:case void 0:}let r=e.type===`prompt`||e.type===`pick`;return j(r?A.question:``,n||e.title,{quoted:r})}function qt(e){let{verb:t,head:n,tail:r,more:i,quoted:a}=Kt(e);return[t,a?`“${n}${r}”`:`${n}${r}`,i].filter(Boolean).join(` `)}var Jt=new WeakMap;function Yt(e){let t=Jt.get(e);if(t!==void 0)return t;let{subject:n}=e,r=e.display_truncated?``:n?.type===`command`&&n.argv?.length?`command ${JSON.stringify(n.argv)}`:`${n?.type??e.type} ${e.display}`;return Jt.set(e,r),r}var Xt=e=>e.replace(/[`'"“”]/g,``).replace(/\s+/g,` `).trim().toLowerCase();function Zt(e){let t=Xt(`${e.display} ${e.subject?.type===`question`?e.subject.questions.map(e=>e.text).join(` `):``}`),n=e=>{let n=Xt(_(e??``)).replace(/(?:…|\.\.\.)$/,``);return n&&!t.includes(n)?e??``:``},r=n(e.title),i=n(e.message);return{title:r,message:i&&r&&Xt(r).includes(Xt(_(i)))?``:i}}function Qt(e,t){let n=_(t),r=e.display.slice(e.display.lastIndexOf(`
`)+1);return n&&r===`in ${n}`?``:n}var $t=a`
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
  @container (min-width: 620px) { .answers { max-inline-size: 34rem; inline-size: 100%; margin-inline-start: auto; } }
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
`,en=400;function tn(e,t){let n=e.split(`
`),r=t.split(`
`),i=l(n,r,{maxEditLength:en});return i?i.flatMap(e=>e.value.map(t=>({kind:e.added?`add`:e.removed?`del`:`same`,text:t}))):[...n.map(e=>({kind:`del`,text:e})),...r.map(e=>({kind:`add`,text:e}))]}var nn=16,rn=1600,an=8,on=800,sn=2e3,cn=100;function ln(e){let t=1;for(let n=e.indexOf(`
`);n>=0;n=e.indexOf(`
`,n+1))t+=1;return{lines:t,chars:e.length,long:t>nn||e.length>rn}}function un(e){let t=e.split(`
`,an).join(`
`);return t.length>on?t.slice(0,on):t}function dn(e){return/^(edit|write) ./.test(e[0]??``)?e.length>1&&e.slice(1).every(e=>/^([-+ \\]|@@ |edit .|write .)/.test(e)):!1}function fn(e){switch(e[0]){case`+`:return`add`;case`-`:return`del`;case` `:return`same`;case`@`:return`hunk`;case`\\`:return`where`;default:return`head`}}var pn=/\\u\{[0-9a-f]{1,6}\}/g;function mn(e){let t=[],n=0;for(let r of e.matchAll(pn))r.index>n&&t.push({text:e.slice(n,r.index),mark:!1}),t.push({text:r[0],mark:!0}),n=r.index+r[0].length;return(n<e.length||t.length===0)&&t.push({text:e.slice(n),mark:!1}),t}function hn(e,t){let n=Math.min(e.length,t+sn);if(n===e.length)return n;let r=e.lastIndexOf(`\\u{`,n);r>t&&r>n-10&&!e.slice(r,n).includes(`}`)&&(n=r);let i=e.charCodeAt(n-1);return i>=55296&&i<=56319&&--n,n}function gn(e,t){let n=e.split(`
`),r=t??dn(n),i=[[]];return n.forEach((e,t)=>{let a=`plain`;r?a=fn(e):t>0&&t===n.length-1&&e.startsWith(`in `)&&(a=`where`);let o=0;do{let r=hn(e,o),s=i[i.length-1];s.length>=cn&&i.push(s=[]),s.push({kind:a,parts:mn(e.slice(o,r)),goesOn:o>0,ends:r===e.length&&t<n.length-1}),o=r}while(o<e.length)}),i}var _n=S.request,vn=e=>c`<span class="line ${e.kind}" ?data-on=${e.goesOn}>${e.parts.map(e=>e.mark?c`<mark>${e.text}</mark>`:e.text)}${e.ends?`
`:``}</span>`,yn=class extends f{static{this.properties={display:{},truncated:{type:Boolean},bytes:{type:Number},edit:{attribute:!1},opened:{type:Boolean,reflect:!0},long:{type:Boolean,reflect:!0}}}#e;#t;#n;#r;#i;constructor(){super(),this.#e=!1,this.#t={lines:0,chars:0,long:!1},this.#n=[],this.#i=!1,this.open=()=>{!this.long||this.opened||this.#e||(this.truncated?(this.#e=!0,this.requestUpdate(),this.dispatchEvent(new Event(`whole`))):(this.opened=!0,this.dispatchEvent(new Event(`opened`)),this.updateComplete.then(()=>this.renderRoot.querySelector(`pre`)?.focus({preventScroll:!0}))))},this.display=``,this.truncated=!1,this.opened=!1,this.long=!1}static{this.styles=[...[f.styles].flat(),a`
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
    `]}willUpdate(e){(e.has(`display`)||e.has(`truncated`))&&(this.#t=ln(this.display),this.long=this.#t.long||this.truncated,this.opened=this.#e&&!this.truncated,this.truncated||(this.#e=!1),this.#i=!1),(e.has(`display`)||e.has(`truncated`)||e.has(`opened`)||e.has(`edit`))&&(this.#n=gn(this.long&&!this.opened?un(this.display):this.display,this.edit))}render(){let e=!this.long||this.opened;return c`<div class="box">
      <div class="cut">
        <pre tabindex=${this.long&&this.opened?0:i} role=${this.long&&this.opened?`group`:i} aria-label=${this.long&&this.opened?_n.exactly:i}>${this.#n.map(e=>c`<span class="block">${e.map(vn)}</span>`)}${e?c`<span class="end"></span>`:i}</pre>
      </div>
      ${e?this.long?c`<div class="foot">${this.#i?_n.readAll:_n.readOn}</div>`:i:c`<button class="open" type="button" aria-disabled=${this.#e?`true`:i} @click=${this.open}>${this.#e?_n.fetching:this.truncated?_n.openWhole(this.bytes??0):_n.openFull(this.#t.lines,this.#t.chars)}</button>`}
    </div>`}failed(){this.#e=!1,this.requestUpdate()}updated(){let e=this.renderRoot.querySelector(`.end`);this.#r?.disconnect(),!e||this.#i||(this.#r=new IntersectionObserver(e=>{e.some(e=>e.isIntersecting)&&(this.#r?.disconnect(),this.#i=!0,this.requestUpdate(),this.dispatchEvent(new Event(`read`)))}),this.#r.observe(e))}connectedCallback(){super.connectedCallback(),this.requestUpdate()}disconnectedCallback(){super.disconnectedCallback(),this.#r?.disconnect()}};customElements.define(`plexus-exact`,yn);var bn=S.request,xn=24,Sn=class extends r{static{this.properties={verb:{},quoted:{},reach:{},hint:{},off:{type:Boolean,reflect:!0},holding:{type:Boolean,reflect:!0}}}#e;#t;#n;constructor(){super(),this.may=()=>!0,this.still=()=>!0,this.#e=0,this.#t=0,this.#n=null,this.#r=e=>{e.button===0&&e.isPrimary&&(this.#n={x:e.clientX,y:e.clientY},this.begin())},this.#i=e=>{this.#n&&Math.hypot(e.clientX-this.#n.x,e.clientY-this.#n.y)>xn&&this.stop()},this.#a=e=>{e.key===`Enter`?(e.preventDefault(),this.dispatchEvent(new Event(`enter`))):e.key===` `&&(e.preventDefault(),e.repeat||this.begin())},this.stop=()=>{this.holding&&(this.#o(),this.dispatchEvent(new Event(`hold-released`)))},this.verb=``,this.quoted=``,this.reach=``,this.hint=``,this.off=!1,this.holding=!1}static{this.styles=a`
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
  `}render(){return c`<button
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
      <strong><span ?data-off=${this.holding}>${bn.holdFor(this.verb)}</span><span ?data-off=${!this.holding}>${bn.holding}</span></strong>
      ${this.quoted||this.reach?c`<small>${this.reach} ${this.quoted?c`“<bdi>${this.quoted}</bdi>”`:null}</small>`:null}
    </button>`}focus(e){this.renderRoot.querySelector(`button`)?.focus(e)}disconnectedCallback(){super.disconnectedCallback(),this.stop()}#r;#i;#a;begin(){if(this.holding||!this.may())return;this.holding=!0,this.#e=performance.now(),this.dispatchEvent(new Event(`hold-start`));let e=t=>{if(!this.holding)return;if(!this.still())return this.stop();let n=Math.min(1,(t-this.#e)/900);this.#s(n),n<1?this.#t=requestAnimationFrame(e):(this.#o(),this.dispatchEvent(new Event(`hold-done`)))};this.#t=requestAnimationFrame(e)}#o(){cancelAnimationFrame(this.#t),this.holding=!1,this.#n=null,this.#s(0)}#s(e){let t=this.renderRoot.querySelector(`.fill`);t&&(t.style.transform=`scaleX(${e})`)}};customElements.define(`plexus-hold`,Sn);var Cn=/^[aAdDeoyrcm1-9n]$/,wn=/^[nrm]$/;function Tn(){let e=document.activeElement;for(;e?.shadowRoot?.activeElement;)e=e.shadowRoot.activeElement;return e}function En(e){let t=e;for(;t;){if(t instanceof HTMLElement&&t.localName===`plexus-card`)return t;t=t.parentNode instanceof ShadowRoot?t.parentNode.host:t.parentNode}return null}var Dn=new Set,On=new Set,kn=null;function An(e){return Dn.add(e),()=>Dn.delete(e)}function jn(e){return On.add(e),()=>On.delete(e)}function Mn(e){if(!e?.closest(`[role="row"]`))return null;let t=e.getRootNode();return[...On].find(e=>e.shadowRoot===t)??null}function Nn(e){return e instanceof HTMLElement?e instanceof HTMLInputElement?![`checkbox`,`radio`,`button`].includes(e.type):e instanceof HTMLTextAreaElement||e instanceof HTMLSelectElement||e.isContentEditable:!1}function Pn(e){let t=e.getBoundingClientRect();return!e.open||t.width===0||t.height===0?!1:e.checkVisibility?.({visibilityProperty:!0,contentVisibilityAuto:!0})??!0}function Fn(e){return!e||e===document.body||e.matches(`main, h1, h2, [tabindex="-1"]`)}function In(){return document.querySelector(`dialog:modal`)!==null||Tn()?.closest(`dialog, [role="dialog"]`)!=null}document.addEventListener(`keydown`,e=>{if(e.defaultPrevented||e.ctrlKey||e.metaKey||e.altKey||e.isComposing||!Cn.test(e.key)||Nn(e.composedPath()[0])||In())return;let t=Tn(),n=Mn(t);if(n&&!e.repeat&&n.several(e.key))return e.preventDefault();let r=n&&t?n.cardAt(t):En(t);if(r){r.key(e)&&(kn=r,e.preventDefault());return}if(n)return e.preventDefault();if(e.repeat||!Fn(t)||wn.test(e.key))return;let i=[...Dn].filter(Pn).sort((e,t)=>e.getBoundingClientRect().top-t.getBoundingClientRect().top)[0];i&&(i.choose(),e.preventDefault())});function Ln(){kn?.keyUp(),kn=null}document.addEventListener(`keyup`,Ln),window.addEventListener(`blur`,Ln);var M=S.request,Rn={allow_once:[M.allowed,`allow`],allow_always:[M.allowedAlways,`allow`],reject_once:[M.denied,`deny`],reject_always:[M.deniedAlways,`deny`]};function zn(e,t){let n=t.options.find(t=>t.id===e.option_id),r=n&&Rn[n.kind];if(r)return r;if(n)return[M.answeredWith(_(n.label)),`none`];if(e.ids?.length){let n=e.ids.map(e=>_(t.items?.find(t=>t.id===e)?.label??e));return[M.chosen(n.join(`, `)),`none`]}return t.type===`prompt`||t.type===`pick`?e.ok===!1?[M.cancelled,`none`]:[M.answered,`none`]:typeof e.ok==`boolean`?e.ok?[M.allowed,`allow`]:[M.denied,`deny`]:[M.answered,`none`]}function Bn(e,t,n){let r=e.resolved_by,i=_(r?.name)||_(r?.device_id),{edited_display:a,edited:o}=e,s=a??(typeof o==`string`?o:``),c=n&&r?.device_id===n?M.you(i):i,l={sense:`none`,at:e.at??null,reason:_(e.reason),edited:_(s)};switch(e.state){case`answered`:{let[n,r]=zn(e,t);return{...l,text:`${n}${o?M.edited:``}${c?M.by(c):``}`,sense:r}}case`expired`:return{...l,text:M.expired};case`withdrawn`:return{...l,text:r&&r.device_id!==`gateway`&&i?M.withdrawnBy(c):M.withdrawn};case`orphaned`:return{...l,text:M.orphaned};default:return{...l,text:M.gone}}}var Vn=5e3,Hn=new Set,Un=d(0);function Wn(e){let{digest:t}=e;if(!t||e.display_truncated||Hn.has(t))return;let n=Hn.size>=Vn?Hn.values().next().value:void 0;n!==void 0&&Hn.delete(n),Hn.add(t),Un.value+=1}function Gn(e){return Un.value>=0&&!!e.digest&&!e.display_truncated&&Hn.has(e.digest)}var Kn=12e3;async function qn(e,t,n){try{let r=`/v1/requests/${encodeURIComponent(e)}/answer`;return{status:200,body:await g.json(`POST`,r,t,{headers:{"Idempotency-Key":n},patience:Kn})}}catch(e){if(e instanceof x&&e.status>0)return{status:e.status,body:e.problem};throw e}}var N=S.request,Jn=[1500,3e3,6e3,12e3],Yn=600,Xn=6,Zn=6e4,Qn=2e3,$n={y:`a`,n:`d`,r:`D`},er=e=>(e.risk_reasons??[]).map(e=>_(e)).filter(e=>e!==``),tr=class extends f{static{this.properties={request:{attribute:!1},layout:{reflect:!0},status:{state:!0}}}#e;#t;#n;#r;#i;#a;#o;#s;#c;#l;#u;#d;#f;#p;#m;#h;#g;#_;#v;#y;#b;#x;#S;#C;#w;#T;#E;constructor(){super(),this.#e=new Bt(performance.now()),this.#n=!1,this.#r=null,this.#i=null,this.#a=0,this.#s=!1,this.#c=null,this.#l=!1,this.#u=``,this.#d=null,this.#f=``,this.#p=!1,this.#m=!1,this.#h=!1,this.#g=``,this.#_=null,this.#v=!1,this.#y=new Set,this.#b=new Map,this.#x=!1,this.#S=null,this.#C=!1,this.#w=()=>{},this.#T=!1,this.#E=``,this.closedAt=0,this.#A=()=>{this.#e.again(performance.now()),this.#M()},this.#j=()=>{if(!this.isConnected||!this.open)return;let e=this.renderRoot.querySelector(`.answers`);if(!e)return;let{top:t,left:n}=e.getBoundingClientRect();this.#e.seen({top:t,left:n},performance.now()),this.#M()},this.#K=()=>{this.status===`unknown`&&this.isConnected&&(this.#L(N.unknownAsking),this.#U())},this.#J=(e,t)=>{e.key===`Enter`&&t.sense!==`deny`&&(e.preventDefault(),this.#L(N.enterNever,!0))},this.#Y=e=>{e.key===`Enter`&&!e.isComposing&&e.preventDefault(),e.key===`Escape`&&this.focus()},this.#$=async e=>{let t=e.currentTarget,n=await b.reread(this.#D.request_id);(!n||n.display_truncated)&&(t.failed(),this.#L(N.notFetched,!0))},this.#te=()=>{if(!this.#n)return this.#L(N.readFirst,!0);if(!this.#e.armed(performance.now()))return this.#L(N.early,!0);this.#x=!1,Wn(this.#D),this.#L(``),this.#A()},this.#ne=()=>{this.#n=!0,this.#x||Wn(this.#D),(this.#f===N.readFirst||this.#f===N.seeFirst)&&this.#L(``),this.requestUpdate()},this.layout=`solo`,this.status=`open`}static{this.styles=[...[f.styles].flat(),$t]}get#D(){return b.requests.value.get(this.request.request_id)??this.request}get open(){return this.status!==`closed`}get unsettled(){return this.status===`sending`||this.status===`unknown`}connectedCallback(){super.connectedCallback(),this.#e.again(performance.now()),this.#t=setInterval(this.#j,80),this.#w=An(this),document.addEventListener(`visibilitychange`,this.#A),window.addEventListener(`focus`,this.#A),window.addEventListener(`online`,this.#K)}disconnectedCallback(){super.disconnectedCallback(),this.#w(),clearInterval(this.#t),clearTimeout(this.#o),document.removeEventListener(`visibilitychange`,this.#A),window.removeEventListener(`focus`,this.#A),window.removeEventListener(`online`,this.#K)}willUpdate(e){let t=this.#D,n=this.#r;this.#r=t,n&&n.request_id!==t.request_id?this.#O():n&&t.state===`open`&&ce(n,t)&&(this.#O(),this.#x=!0,this.#L(N.changedSince,!0)),this.status!==`closed`&&t.state!==`open`&&this.#k(t.receipt??null),e.has(`status`)&&this.status===`open`&&this.#e.again(performance.now())}#O(){this.#n=!1,this.#i=null,clearTimeout(this.#o),this.#c=null,this.#l=!1,this.#d=null,this.#_=null,this.#g=``,this.#h=!1,this.#v=!1,this.#y.clear(),this.#b.clear(),this.#x=!1,this.#S=null,this.#E=``,this.#T=!1,this.#f=``,this.#p=!1,this.closedAt=0,this.status=`open`,this.#e.again(performance.now())}#k(e,t=``){if(this.status===`closed`)return;let n=this.renderRoot?.querySelector(`.actions`),r=this.renderRoot?.querySelector(`article`);n&&r&&(this.#d={host:r.getBoundingClientRect().height,actions:n.getBoundingClientRect().height}),this.renderRoot?.querySelectorAll(`plexus-hold`).forEach(e=>e.stop()),clearTimeout(this.#o);let i=this.shadowRoot?.activeElement;i&&n?.contains(i)&&r?.focus({preventScroll:!0}),this.#c=e,this.#u=t,this.closedAt=Date.now(),this.status=`closed`,this.dispatchEvent(new CustomEvent(`closed`,{bubbles:!0,composed:!0}))}updated(){let e=this.renderRoot.querySelector(`article`),t=this.renderRoot.querySelector(`.actions`);if(e&&t){e.style.blockSize=this.#d?`${this.#d.host}px`:``,t.style.blockSize=this.#d?`${this.#d.actions}px`:``,t.style.marginBlockStart=this.#d?`auto`:``;for(let e of this.renderRoot.querySelectorAll(`plexus-hold`)){let t=wt(this.#D).find(t=>t.id===e.dataset.action);e.may=()=>t!==void 0&&this.#I(t),e.still=()=>this.open&&this.#e.armed(performance.now())}this.#j()}}#A;#j;#M(){let e=this.renderRoot.querySelector(`.actions`),t=String(this.open&&!this.#e.armed(performance.now()));e&&e.dataset.arming!==t&&(e.dataset.arming=t)}#N(){let e=this.#D,t=b.me.value;if(e.observe_only)return N.observeOnly(_(e.runtime_id)||N.runtimeUnknown);if(!b.may(`approve`))return N.mayNot;let n=D(e);return vt(n,t?.approve_up_to)?b.live.value?``:N.offline:N.tooRisky(this.#P(t.approve_up_to),this.#P(n),er(e).join(`; `),((n===`low`?null:t?.answered_on?.[n])??[]).map(_))}#P(e){return(N.risks[e]??e).toLowerCase()}#F(e){return this.status===`sending`?N.sending:this.status===`unknown`?N.unknown:this.#N()||(e.sense===`allow`?e.always&&b.me.value?.approve_up_to&&b.me.value.approve_up_to!==`danger`?N.alwaysTooMuch:e.always&&this.#z?N.editedOnce:this.#D.display_truncated?N.readFirst:this.#n?this.#x?N.changedSince:``:ln(this.#D.display).long?N.readFirst:N.seeFirst:``)}#I(e){if(!this.open)return!1;let t=this.#F({sense:`deny`,always:!1});this.#j();let n=t||(this.#e.armed(performance.now())?this.#F(e):N.early);return!n||(this.#L(n,!0),!1)}#L(e,t=!1){this.#f=e,this.#p=t,this.requestUpdate()}#R(e,t=!1){if(!this.#I(e))return;if(this.#B(e)&&!t){this.#L(N.holdHint,!0);return}let n=this.#V(e);typeof n==`string`?this.#L(n,!0):this.#H(n)}get#z(){let{editable:e}=this.#D;return e!=null&&this.#_!==null&&this.#_!==e.value}#B(e){return e.sense===`allow`&&D(this.#D)===`danger`}#V(e){let t=this.#D,n={...e.answer},r=st(t);if(r.length){if(e.id!==`send`)return n;let t=mt(r,this.#b);return`answers`in t?{...n,answers:t.answers}:(this.renderRoot.querySelector(`fieldset[data-question="${CSS.escape(t.question.id)}"] input, fieldset[data-question="${CSS.escape(t.question.id)}"] textarea`)?.focus(),r.length>1?`${ht(t.question)}: ${t.words}`:t.words)}if(e.id===`send`&&t.type===`pick`){if(this.#y.size===0)return N.nothingChosen;n.ids=(t.items??[]).map(e=>e.id).filter(e=>this.#y.has(e))}if(e.id===`send`&&t.type===`prompt`){let e=this.#S??t.default_value??``;if(e===``)return N.nothingTyped;n.value=e}let i=this.#g.trim();if(e.sense===`deny`&&t.allow_reason&&i&&(n.reason=i),this.#v&&Et(t)){let t=this.#F({sense:e.sense,always:!0});if(t)return t;n.remember=!0}return e.sense===`allow`&&this.#z&&(n.edited=this.#_??``),n}async#H(e){this.#i=new Rt(this.#D,e,qn),this.#a=0,this.status=`sending`,this.#L(N.sending),await this.#U()}async#U(){let e=this.#i;if(!e||this.#s)return;this.#s=!0,clearTimeout(this.#o);let t=await e.send();this.#s=!1,this.#i===e&&this.#W(t)}#W(e){switch(e.is){case`won`:this.#l=!1,this.#G(e.receipt);break;case`lost`:this.#l=!0,this.#G(e.receipt);break;case`closed`:this.#l=e.receipt!==null,this.open?this.#k(e.receipt,e.words):this.requestUpdate();break;case`refused`:if(!this.open)break;this.#i=null,this.status=`open`,this.#L(e.words,!0),b.reread(this.#D.request_id);break;case`unknown`:if(!this.open)break;this.status=`unknown`,this.#L(N.unknown,!0),this.#o=setTimeout(this.#K,Jn[Math.min(this.#a,Jn.length-1)]),this.#a+=1}}#G(e){this.open?this.#k(e):(this.#c=e,this.requestUpdate())}#K;key(e){if(!this.open)return!0;let t=this.#D,n=$n[e.key]??e.key,r=/^[1-9]$/.test(n)?Number(n):0;if(r&&t.type===`pick`&&t.items?.length&&!t.options.length){let e=t.items[r-1];return e&&this.#X(e.id,!t.multi||!this.#y.has(e.id)),!!e}let i=wt(t),a=r?i[r-1]:i.find(e=>e.key!==``&&e.key===n);if(a)return e.repeat||(this.#B(a)?this.#q(a)?.begin():this.#R(a)),!0;if(e.repeat)return!1;switch(n){case`D`:return t.allow_reason&&!t.observe_only&&this.#Z(),!0;case`e`:return t.editable&&!t.observe_only&&this.#Q(),!0;case`m`:return Et(t)&&(this.#v=!this.#v),this.requestUpdate(),!0;case`c`:return this.#x&&this.#te(),!0;case`o`:return this.renderRoot.querySelector(`plexus-exact`)?.open(),!0;default:return!1}}keyUp(){this.renderRoot.querySelectorAll(`plexus-hold`).forEach(e=>e.stop())}choose(){this.focus(),this.open&&this.#L(N.focusFirst)}focus(){this.renderRoot.querySelector(`article`)?.focus(),this.scrollIntoView({block:`nearest`})}#q(e){return this.renderRoot.querySelector(`plexus-hold[data-action="${CSS.escape(e.id)}"]`)}#J;#Y;#X(e,t){this.#D.multi||this.#y.clear(),t?this.#y.add(e):this.#y.delete(e),this.requestUpdate()}#Z(){this.#h=!this.#h||this.#g!==``,this.requestUpdate(),this.#h&&this.updateComplete.then(()=>this.renderRoot.querySelector(`.reason`)?.focus())}#Q(){let e=this.#D.editable;e&&(this.#_=this.#_===null?e.value:null,this.#A(),this.requestUpdate(),this.#_!==null&&this.updateComplete.then(()=>this.renderRoot.querySelector(`.edit`)?.focus()))}render(){let e=this.#D,t=D(e),n=_(e.runtime_id)||N.runtimeUnknown,r=e.type===`prompt`||e.type===`pick`||e.subject?.type===`question`,a=e.subject?.type===`unreadable`;return c`<article
      tabindex="-1"
      aria-label=${N.card(n)}
      data-status=${this.status}
      data-risk=${t}
      data-request=${e.request_id}
      data-type=${e.type}
    >
      <div class="body">
        <header>
          <span><span class="who">${n}</span> <span class="asks">${N.types[e.type]??``}</span></span>
          ${this.#ae(e)}
        </header>
        ${this.#x&&this.open?this.#ee():i}
        <section class=${r?`agents`:``}>
          <h2 class=${r||a?``:`sr`}>${r?N.agentAsks:a?N.asSent:N.exactly}</h2>
          ${a?c`<p class="unreadable">${N.unreadable}</p>`:i}
          <plexus-exact .display=${e.display} .truncated=${e.display_truncated??!1} .bytes=${e.display_bytes} .edit=${e.subject?e.subject.type===`edit`:void 0}
            @read=${this.#ne} @opened=${this.#A} @whole=${this.#$}></plexus-exact>
        </section>
        ${this.#re(e)} ${this.#ie(e)} ${this.#oe(e)} ${this.open?this.#se(e):i}
      </div>
      <div class="actions" data-arming="true">${this.status===`closed`?this.#ge(e):this.#de(e)}</div>
    </article>`}#$;#ee(){return c`<section class="warnings changed" role="alert">
      <h2>${N.changedSince}</h2>
      <button type="button" class="tool" data-tool="again" aria-disabled=${this.#n?`false`:`true`} @click=${this.#te}>${N.readAgain}</button>
    </section>`}#te;#ne;#re(e){let t=D(e),n=er(e);return c`<p class="why">
        <span class="risk" title=${N.riskHints[t]??``}>${p(gt[t],14)}${N.risks[t]}</span>
        ${n.length?c`<span>${n.join(`; `)}</span>`:i}
      </p>
      ${e.warnings.length?c`<section class="warnings">
            <h2>${N.warns}</h2>
            <ul>
              ${e.warnings.map(e=>c`<li>${_(e)}</li>`)}
            </ul>
          </section>`:i}`}#ie(e){let t=b.sessions.value.get(e.session_id),n=b.viewers.value.get(e.session_id)??[],r=t&&!t.cwd?N.folderUnknown:Qt(e,t?.cwd);return c`<div class="where">
      <a href=${b.href({page:`session`,session_id:e.session_id})}>${N.session(_(t?.title)||N.untitled)}</a>
      ${r?c`<span>${N.folder} <code>${r}</code></span>`:i}
      ${e.changed&&this.open&&!this.#x?c`<span>${N.changedBefore}</span>`:i}
      ${n.length?c`<span class="lookers">${N.lookers(n.map(e=>_(e.name)).join(`, `))}</span>`:i}
    </div>`}#ae(e){if(!this.open)return i;let t=b.now.value,n=[N.asked(Nt(e.opened_at,t))],r=e.expires_at?Date.parse(e.expires_at)-t:NaN;return Number.isNaN(r)||n.push(r>0?N.expiresIn(Mt(r)):N.expiring),c`<span class="when" ?data-soon=${r<Zn}>${n.join(` · `)}</span>`}#oe(e){let t=Zt(e),n=_(t.title),r=te(t.message).trim();if(!n&&!r)return i;let a=r.split(`
`,Xn).join(`
`).slice(0,Yn),o=a.length<r.length&&!this.#m;return c`<blockquote>
      <h2>${N.agentSays}</h2>
      ${n?c`<div class="said title">${n}</div>`:i} ${r?c`<div class="said">${o?`${a}…`:r}</div>`:i}
      ${o?c`<button type="button" class="more" @click=${()=>{this.#m=!0,this.requestUpdate()}}>${S.common.more}</button>`:i}
    </blockquote>`}#se(e){let t=st(e);return t.length?c`${t.map((e,n)=>this.#ce(e,n,t.length))}`:e.observe_only||e.options.length?this.#_!==null&&e.editable?this.#ue(e.editable):i:e.type===`pick`?c`<fieldset>
        <legend>${e.multi?N.chooseAny:N.chooseOne}</legend>
        ${(e.items??[]).map((t,n)=>c`<label class="pick">
            <input
              type=${e.multi?`checkbox`:`radio`}
              name="pick"
              .checked=${this.#y.has(t.id)}
              @change=${e=>this.#X(t.id,e.target.checked)}
              @keydown=${this.#Y}
            />
            <span><bdi>${_(t.label||t.id)}</bdi>${t.detail?c`<small><bdi>${_(t.detail)}</bdi></small>`:i}</span>
            ${n<9?c`<kbd aria-hidden="true">${n+1}</kbd>`:i}
          </label>`)}
      </fieldset>`:e.type===`prompt`?this.#le(e):this.#_!==null&&e.editable?this.#ue(e.editable):i}#ce(e,t,n){let r=this.#b.get(e.id)??ct,a=t=>{this.#b.set(e.id,t),this.#L(``)},o=e.multiple?`checkbox`:`radio`,s=`question-${t}`,l=t=>a({...r,words:t.target.value,own:!0,chosen:e.multiple?r.chosen:new Set}),u=r===ct?``:pt(e,r),d=_(e.header),f=c`<input
      class="value own" type="text" autocomplete="off" spellcheck="false" inputmode=${e.fits?.number===`integer`?`numeric`:e.fits?.number?`decimal`:`text`}
      aria-label=${N.questions.ownFor(ht(e))} aria-describedby=${`${s}-wrong`} .value=${r.words} @input=${l} @keydown=${this.#Y} />`;return c`<fieldset class="question" data-question=${e.id} role=${e.multiple?`group`:`radiogroup`} aria-describedby=${`${s}-wrong`}>
      <legend>${n>1?c`<small>${N.questions.of(t+1,n)}${d?` · `:``}</small>`:i}${d?c`<small><bdi>${d}</bdi></small>`:i}
        <span class="asked"><bdi>${te(e.text)}</bdi></span>
        <small>${e.options.length?e.multiple?N.chooseAny:N.chooseOne:``}${e.optional?` ${N.questions.optional}`:``}</small></legend>
      ${e.options.map(t=>c`<label class="pick">
        <input type=${o} name=${s} .checked=${r.chosen.has(t.id)} @change=${n=>a(lt(e,r,t.id,n.target.checked))} @keydown=${this.#Y} />
        <span><bdi>${_(t.label||t.id)}</bdi>${t.description?c`<small><bdi>${_(t.description)}</bdi></small>`:i}</span>
      </label>`)}
      ${e.free_text?e.options.length?c`<label class="pick"><input type=${o} name=${s} .checked=${r.own} @change=${t=>a(ut(e,r,t.target.checked))} @keydown=${this.#Y} /><span>${N.questions.other}</span></label>${f}`:f:i}
      <p class="wrong" id=${`${s}-wrong`} role="status">${u}</p>
    </fieldset>`}#le(e){let t=this.#S??e.default_value??``,n=e=>{this.#S=e.target.value,this.requestUpdate()},r=e.secret?N.secretField:N.answerField;return c`<div class="field">
      <label for="value">${r}</label>
      <div class="row">
        ${e.multiline&&!e.secret?c`<textarea id="value" class="value" rows="4" autocomplete="off" .value=${t} @input=${n}></textarea>`:c`<input
              id="value"
              class="value"
              type=${e.secret&&!this.#C?`password`:`text`}
              autocomplete=${e.secret?`one-time-code`:`off`}
              autocapitalize="off"
              spellcheck="false"
              .value=${t}
              @input=${n}
              @keydown=${this.#Y}
            />`}
        ${e.secret?c`<button type="button" class="tool" aria-pressed=${this.#C} @click=${()=>{this.#C=!this.#C,this.requestUpdate()}}>
              ${this.#C?N.hideSecret:N.showSecret}
            </button>`:i}
      </div>
    </div>`}#ue(e){let t=this.#_??e.value,n=tn(e.value,t);return c`<section class="field">
      <label for="edit">${N.editing}: <bdi>${_(e.label)}</bdi></label>
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
      <h2>${N.changes}</h2>
      ${t===e.value?c`<p class="say">${N.noChanges}</p>`:c`<div class="changes" tabindex="0" role="group" aria-label=${N.changes}>
            ${n.map(e=>c`<span class=${e.kind}>${{same:`  `,add:`+ `,del:`- `}[e.kind]}${ie(e.text)}</span>`)}
          </div>`}
    </section>`}#de(e){let t=wt(e),{main:n,others:r,lasting:a}=Tt(t),o=this.#N(),s=this.#f||(this.status===`open`?o:``)||(this.#n||!t.length||!ln(e.display).long?``:N.readFirst),l=t.some(e=>this.#B(e)),u=e=>n=>this.#he(n,t.indexOf(n),e);return c`${this.#h&&e.allow_reason?c`<div class="field">
            <label for="reason">${N.reason}</label>
            <input
              id="reason"
              class="reason"
              type="text"
              maxlength=${Qn}
              autocomplete="off"
              .value=${this.#g}
              @input=${e=>{this.#g=e.target.value,this.requestUpdate()}}
              @keydown=${this.#Y}
            />
          </div>`:i}
      ${this.#T&&l&&!o?this.#pe(t):i}
      ${t.length?c`<div class="answers">${r.map(u(`whole`))}${n.map(u(n.length>1?`wide`:`whole`))}</div>`:i}
      ${a.length||!o?c`<div class="extra">
            ${a.length?c`<div class="lasting">${a.map(u(`small`))}</div>`:i} ${o?i:this.#fe(e,l)}
          </div>`:i}
      <p class="say" role="status" ?data-bad=${this.#p&&this.#f!==``}>
        ${t.length||e.observe_only?s:N.cannot(e.request_id)}
        ${this.status===`unknown`&&!this.#s?c`<button type="button" class="tool ask" @click=${this.#K}>${N.unknownNow}</button>`:i}
      </p>`}#fe(e,t){let n=[e.editable&&!e.observe_only?c`<button type="button" class="tool" data-tool="edit" aria-expanded=${this.#_!==null} @click=${()=>this.#Q()}>${this.#_===null?N.edit:N.stopEdit}</button>`:null,e.allow_reason&&!e.observe_only?c`<button type="button" class="tool" data-tool="reason" aria-expanded=${this.#h} @click=${()=>this.#Z()}>${N.denyWhy}</button>`:null,Et(e)?c`<label class="box"><input type="checkbox" .checked=${this.#v} @change=${e=>{this.#v=e.target.checked}} @keydown=${this.#Y} />${N.remember}</label>`:null,t?c`<button type="button" class="tool" data-tool="word" aria-expanded=${this.#T} @click=${()=>{this.#T=!this.#T,this.#E=``,this.requestUpdate(),this.#T&&this.updateComplete.then(()=>this.renderRoot.querySelector(`.typed`)?.focus())}}>${N.typeInstead}</button>`:null].filter(e=>e!==null);return n.length?c`<div class="tools">${n}</div>`:i}#pe(e){let t=this.#E.trim().toLowerCase()===N.typeWord,n=e.find(e=>e.key===`a`)??e.find(e=>e.sense===`allow`);return n?c`<div class="word">
      <div class="field">
        <label for="typed">${N.typeLabel}</label>
        <input id="typed" class="typed" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" .value=${this.#E} @input=${e=>{this.#E=e.target.value,this.requestUpdate()}} @keydown=${this.#Y} />
      </div>
      <button
        type="button"
        class="answer typed-go"
        data-sense="allow"
        aria-disabled=${t&&!this.#F(n)?`false`:`true`}
        @keydown=${e=>this.#J(e,n)}
        @click=${()=>t?this.#R(n,!0):this.#L(N.typeLabel,!0)}
      >
        <strong>${this.#me(n)}</strong>
      </button>
    </div>`:c``}#me(e){let t=this.#D;return e.sense===`allow`&&!e.always&&this.#z?N.allowEdited:e.key===`d`&&this.#g.trim()&&t.allow_reason?N.denyNow:e.verb}#he(e,t,n){let r=this.#F(e)!==``,a=e.key||(t<9?String(t+1):``),o=_(this.#D.runtime_id)||N.runtimeUnknown,s=n===`small`?e.quoted?N.reaches(o):e.sense===`allow`?N.alwaysPlain(o):N.neverPlain(o):``;return this.#B(e)?c`<plexus-hold
        class=${n}
        data-action=${e.id}
        data-sense=${e.sense}
        .verb=${this.#me(e)}
        .quoted=${e.quoted}
        .reach=${s}
        .hint=${N.holdHint}
        .off=${r}
        @hold-start=${()=>this.#L(N.holding)}
        @hold-released=${()=>this.open&&this.#L(N.released,!0)}
        @hold-done=${()=>this.#R(e,!0)}
        @enter=${()=>this.#L(N.enterNever,!0)}
      ></plexus-hold>`:c`<button
      type="button"
      class="answer ${n}"
      data-action=${e.id}
      data-sense=${e.sense}
      data-key=${e.key}
      aria-disabled=${r?`true`:`false`}
      @keydown=${t=>this.#J(t,e)}
      @click=${()=>this.#R(e)}
    >
      <strong>${this.#me(e)}${a?c`<kbd aria-hidden="true">${a}</kbd>`:i}</strong>
      ${e.quoted||s?c`<small>${s} ${e.quoted?c`“<bdi>${e.quoted}</bdi>”`:i}</small>`:i}
    </button>`}#ge(e){let t=this.#c;if(!t)return c`<div class="outcome" role="status" data-sense="none">${p(`info`,28)}<div><strong>${this.#u||N.gone}</strong></div></div>`;let n=Bn(t,e,b.me.value?.device_id);return c`<div class="outcome" role="status" data-sense=${n.sense}>
      ${p({allow:`check`,deny:`close`,none:`info`}[n.sense],28)}
      <div>
        <strong>${n.text}</strong>, <span class="age">${Nt(n.at,b.now.value)}</span>
        ${n.edited?c`<p>${N.editedTo} <code>${n.edited}</code></p>`:i} ${n.reason?c`<p>${N.because(n.reason)}</p>`:i} ${this.#l?c`<p class="late">${N.late}</p>`:i}
      </div>
    </div>`}};customElements.define(`plexus-card`,tr);var nr=a`
  :host { display: flex; flex-direction: column; min-width: 0; min-height: 0; block-size: 100%; container-type: size; }
  .split { flex: 1 1 0; min-block-size: 0; display: flex; flex-direction: column; }
  .side { flex: 1 1 0; min-block-size: 0; min-inline-size: 0; display: flex; flex-direction: column; position: relative; }
  .bar { flex: none; display: flex; align-items: center; gap: 8px; block-size: 3.5rem; padding: 0 12px 0 0; border-block-end: 1px solid var(--line); min-inline-size: 0; }
  .bar .title { flex: 1 1 0; min-inline-size: 0; display: flex; align-items: baseline; gap: 10px; white-space: nowrap; overflow: hidden; }
  .bar .title strong { font-weight: 620; font-size: var(--t-l); }
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
`,rr=e=>e.replace(/\/+$/,``).split(`/`).pop()||e||`/`;function ir(e){let t=e.project?.root||e.cwd,n=e.cwd.startsWith(`${t}/`)?e.cwd.slice(t.length+1):``,r=e.project?.branch??``,i=e.project?.worktree??``;return{key:t,name:_(e.project?.name||rr(e.cwd)),branch:_(r||i),worktree:_(i),root:_(t),below:_(n)}}var ar={waiting:0,running:1};function or(e,t,n){let r=new Map;for(let i of e){let e=i.project?.root||i.cwd,a=r.get(e);if(!a){let{name:t,root:n}=ir(i);r.set(e,a={group:{key:e,name:t,root:n,sessions:[],waiting:0},rows:[],at:0})}let o=n(i);a.rows.push({s:i,rank:ar[i.state]??2,at:o}),a.group.waiting+=t(i),a.at=Math.max(a.at,o)}let i=[...r.values()].sort((e,t)=>Number(t.group.waiting>0)-Number(e.group.waiting>0)||t.at-e.at||(e.group.key<t.group.key?-1:1));for(let{group:e,rows:t}of i)t.sort((e,t)=>e.rank-t.rank||t.at-e.at||(e.s.session_id<t.s.session_id?-1:1)),e.sessions=t.map(({s:e})=>e);return i.map(({group:e})=>e)}var sr=`plexus.folded`;function cr(){try{let e=JSON.parse(localStorage.getItem(sr)??`[]`);return new Set(Array.isArray(e)?e.filter(e=>typeof e==`string`):[])}catch{return new Set}}function lr(e){try{e.size?localStorage.setItem(sr,JSON.stringify([...e].slice(-500))):localStorage.removeItem(sr)}catch{}}var ur=6,dr=[1500,3e3,6e3];function fr(e,t,{now:n,limit:r,seen:i,reason:a}){let o=n.get(e.request_id);if(!o||o.state!==`open`)return`closed`;if(o.digest!==e.digest||o.revision!==e.revision)return`changed`;if(o.observe_only)return`elsewhere`;let s=D(o);if(!vt(s,r))return`limit`;let c=wt(o);if(t===`deny`){let e=c.find(e=>e.key===`d`);return e?o.allow_reason&&a?{...e.answer,reason:a}:{...e.answer}:`no_deny`}if(s===`danger`)return`danger`;if(st(o).length||o.type===`prompt`||o.type===`pick`)return`question`;let l=c.find(e=>e.key===`a`&&e.sense===`allow`&&!e.always);return l?i(o)?{...l.answer}:`unread`:`never_once`}function pr(e,t,n){let r={will:[],out:[]};for(let i of e){let e=fr(i,t,n);typeof e==`string`?r.out.push({request:i,why:e}):r.will.push({request:i,answer:e})}return r}function mr(e){let t=new Map;for(let{request:n,why:r}of e.out)t.set(r,[...t.get(r)??[],n]);return t}async function hr(e,t,n=dr){let r=[...e];await Promise.all(Array.from({length:Math.min(ur,e.length)},async()=>{for(let e=r.shift();e;e=r.shift()){let r=await e.send();for(let t of n){if(r.is!==`unknown`)break;await new Promise(e=>setTimeout(e,t)),r=await e.send()}t(e,r)}}))}var gr={ids:new Set,anchor:``};function _r(e,t){let n=new Set(e.ids);return n.delete(t)||n.add(t),{ids:n,anchor:t}}function vr(e,t){let n=new Set(e.ids),r=t.length>0&&t.every(e=>n.has(e));for(let e of t)r?n.delete(e):n.add(e);return{ids:n,anchor:t[0]??e.anchor}}function yr(e,t,n){let r=n.indexOf(t),i=n.indexOf(e.anchor);return r<0?e:i<0?{ids:new Set([...e.ids,t]),anchor:t}:{ids:new Set([...e.ids,...n.slice(Math.min(i,r),Math.max(i,r)+1)]),anchor:e.anchor}}function br(e,t){let n=[...e.ids].filter(t);return n.length===e.ids.size?e:{ids:new Set(n),anchor:e.anchor}}var P=S.request.many,xr=2e3,Sr=80,Cr=200,wr=class extends f{static{this.properties={phase:{state:!0},armed:{state:!0}}}#e=`deny`;#t=[];#n=``;#r=``;#i=new Bt(performance.now());#a;#o=-1;#s=0;#c=new Map;constructor(){super(),this.phase=`closed`,this.armed=!1}static{this.styles=[...[f.styles].flat(),a`
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
    `]}connectedCallback(){super.connectedCallback(),this.#a=setInterval(this.#u,Sr)}disconnectedCallback(){super.disconnectedCallback(),clearInterval(this.#a)}ask(e,t){this.phase!==`sending`&&(this.#e=e,this.#t=t,this.#n=``,this.#r=``,this.#o=-1,this.#c.clear(),this.phase=`asking`)}#l(){return pr(this.#t,this.#e,{now:b.requests.value,limit:b.me.value?.approve_up_to,seen:Gn,reason:this.#n.trim()})}#u=()=>{this.phase===`asking`&&(this.armed=this.#i.armed(performance.now()))};updated(){if(this.phase!==`asking`)return;let{length:e}=this.#l().will;e!==this.#o&&(this.#o=e,this.#i.again(performance.now()),this.armed=!1)}#d(){return b.may(`approve`)?b.live.value?``:S.request.offline:S.request.mayNot}#f=()=>{let e=this.#l(),t=this.#d()||(e.will.length===0||e.will.length!==this.#o||!this.#i.armed(performance.now())?S.request.early:``);this.#r=t,this.requestUpdate(),t||this.#m(e.will.map(({request:e,answer:t})=>new Rt(e,t,qn)))};#p=e=>{e.key===`Enter`&&this.#e!==`deny`&&(e.preventDefault(),this.#r=S.request.enterNever,this.requestUpdate())};async#m(e){this.phase=`sending`,this.#s=this.#c.size+e.length,await hr(e,(e,t)=>{this.#c.set(e,t),t.is===`refused`&&b.reread(e.request.request_id),this.requestUpdate()}),this.dispatchEvent(new Event(`answered`)),this.phase===`sending`&&this.#h(`won`).length<this.#c.size?this.phase=`done`:(le(this.#g()),this.#v())}#h(e){return[...this.#c].filter(([,t])=>t.is===e)}#g(){let e=this.#h(`won`).length,t=this.#c.size-e;return`${this.#e===`allow`?P.allowed(e):P.denied(e)}${t?` ${P.rest(t)}`:``}`}#_=()=>{let e=this.#h(`unknown`).map(([e])=>e);for(let t of e)this.#c.delete(t);e.length&&this.#m(e)};#v=()=>{this.phase!==`closed`&&(this.phase=`closed`,this.dispatchEvent(new Event(`closed`)))};render(){let e=this.phase===`asking`?this.#l():null,t=e?.will.length??0,n=this.phase===`asking`?this.#e===`allow`?P.allowTitle(t):P.denyTitle(t):this.phase===`sending`?P.sending(this.#c.size,this.#s):this.phase===`done`?this.#g():``;return c`<plexus-dialog .open=${this.phase!==`closed`} heading=${n} @close=${this.#v}>
      ${e?this.#x(e):this.phase===`done`?this.#S():this.phase===`sending`?c`<p class="said" role="status">${P.wait}</p>`:i}
    </plexus-dialog>`}#y(e,t,n){return c`<ul tabindex="0" aria-label=${t}>
      ${e.slice(0,Cr).map(e=>c`<li><bdi>${qt(e)}</bdi><small>${n(e)}</small></li>`)}
      ${e.length>Cr?c`<li><small>${P.moreListed(e.length-Cr)}</small></li>`:i}
    </ul>`}#b=e=>{let t=b.sessions.value.get(e.session_id);return[_(e.runtime_id),t?.cwd?ir(t).name:``].filter(Boolean).join(` · `)};#x(e){let{will:t}=e,n=t.filter(({request:e})=>e.allow_reason).length,r=this.#d(),a=this.#e===`allow`?P.allowDo(t.length):P.denyDo(t.length);return c`${t.length?this.#y(t.map(({request:e})=>e),this.#e===`allow`?P.willAllow:P.willDeny,this.#b):i}
      ${[...mr(e)].map(([e,t])=>c`<section class="out"><h3>${P.leftOut(t.length)} ${P.why[e]}</h3>${this.#y(t,P.leftOut(t.length),this.#b)}</section>`)}
      ${this.#e===`deny`&&n?c`<label class="field">${n===t.length?P.reason:P.reasonFor(n,t.length)}
            <input id="reason" maxlength=${xr} autocomplete="off" .value=${this.#n} @input=${e=>{this.#n=e.target.value}} @keydown=${e=>{e.key===`Enter`&&e.preventDefault()}} />
          </label>`:i}
      <p class="say" role="status">${this.#r||r}</p>
      <div class="row">
        <button type="button" autofocus id="cancel" @click=${this.#C}>${S.common.cancel}</button>
        ${t.length?c`<button type="button" id="go" class=${this.#e} aria-disabled=${r||!this.armed?`true`:`false`} @keydown=${this.#p} @click=${this.#f}>${a}</button>`:i}
      </div>`}#S(){let e=[...this.#h(`lost`),...this.#h(`closed`)],t=this.#h(`refused`),n=this.#h(`unknown`),r=b.me.value?.device_id,a=new Map(e.map(([{request:e},t])=>[e.request_id,`receipt`in t&&t.receipt?Bn(t.receipt,e,r).text:t.is===`closed`?t.words:``])),o=new Map(t.map(([{request:e},t])=>[e.request_id,t.is===`refused`?t.words:``])),s=(e,t,n)=>e.length?c`<section><h3>${t}</h3>${this.#y(e.map(([{request:e}])=>e),t,n)}</section>`:i;return c`${s(e,P.lost(e.length),e=>a.get(e.request_id)??``)}
      ${s(t,P.refused(t.length),e=>o.get(e.request_id)??``)}
      ${s(n,P.unknown(n.length),this.#b)}
      <div class="row">
        ${n.length?c`<button type="button" id="again" @click=${this.#_}>${S.request.unknownNow}</button>`:i}
        <button type="button" id="close" autofocus @click=${this.#C}>${S.common.close}</button>
      </div>`}#C=()=>this.#v()};customElements.define(`plexus-many`,wr);var Tr={danger:0,elevated:1,low:2};function Er(e,t){return Tr[D(e)]-Tr[D(t)]||Date.parse(t.opened_at)-Date.parse(e.opened_at)||(e.request_id<t.request_id?-1:1)}function Dr(e,t){let n=new Map;return e.forEach((e,r)=>{let i=t(e)||`\u0000${r}`,a=n.get(i);a?a.push(e):n.set(i,[e])}),[...n].flatMap(([e,t])=>t.map(n=>({id:n,group:t.length>1?e:``})))}function Or(e,t,{fresh:n,settled:r,keyOf:i}){let a=new Map(t.map(e=>[e.request_id,e])),o=new Set(e.map(e=>e.id)),s=t.filter(e=>!o.has(e.request_id)).sort(Er).map(e=>e.request_id),c=e=>i(a.get(e));if(n||e.length===0)return{order:Dr([...t].sort(Er).map(e=>e.request_id),c),added:s};let l=e.filter(e=>a.has(e.id));return r?{order:Dr([...l.map(e=>e.id),...s],c),added:s}:{order:[...l,...s.map(e=>({id:e,group:``}))],added:s}}function kr(e,t){let n=[];for(let{id:t,group:r}of e){let e=n[n.length-1];r&&e?.group===r?e.ids.push(t):n.push({group:r,ids:[t]})}let r=n.length;return n.flatMap(({group:e,ids:n},i)=>{if(!e)return n.map(t=>({kind:`request`,key:t,id:t,group:e,nth:i+1,of:r}));let a={kind:`group`,key:`group ${e}`,group:e,ids:n,folded:t.has(e),nth:i+1,of:r};return a.folded?[a]:[a,...n.map((t,r)=>({kind:`request`,key:t,id:t,group:e,nth:r+1,of:n.length}))]})}function Ar(e,t,n){let r=[0];for(let i of e)r.push(r[r.length-1]+(i.kind===`group`?n:t));return r}function jr(e,t){let n=0,r=e.length-1;for(;n<r;){let i=n+r>>1;e[i+1]>t?r=i:n=i+1}return Math.min(n,e.length-2)}function Mr(e,t,n,r){return e.length<2?[0,0]:[jr(e,Math.max(0,t-r)),jr(e,t+n+r)+1]}var Nr=S.request.rows;function Pr(e){let t=e.verb===``&&!e.quoted;return c`${e.verb?c`<span class="verb">${e.verb}</span>`:i}<span class="asked ${t?`code`:``}">${e.quoted?`“`:i}<bdi class="from">${e.head}</bdi>${e.tail?c`<bdi class="to">${e.tail}</bdi>`:i}${e.quoted?`”`:i}</span>${e.more?c`<span class="more">${e.more}</span>`:i}`}function Fr(e){let t=b.sessions.value.get(e.session_id),n=t?.cwd?ir(t).name:``;return c`<span class="where"><bdi>${_(e.runtime_id)||S.request.runtimeUnknown}</bdi>${n?c`<span aria-hidden="true">·</span><bdi>${n}</bdi>`:i}</span>`}var Ir=e=>_(b.sessions.value.get(e.session_id)?.title)||S.request.untitled;function Lr(e,t){let n=t?i:Fr(e),r=b.now.value;if(e.state!==`open`){let t=e.receipt?Bn(e.receipt,e,b.me.value?.device_id):null;return c`<span class="outcome" data-sense=${t?.sense??`none`}>${t?.text??S.request.gone}</span>${n}`}let a=D(e),[o]=e.risk_reasons??[],s=e.expires_at?Date.parse(e.expires_at)-r:NaN,l=Date.parse(e.opened_at);return c`<span class="risk" data-risk=${a}>${p(gt[a],12)}${Nr.risks[a]}</span>
    <span class="why">${o?_(o):i}</span>${n}
    <span class="age">${Number.isNaN(s)?Number.isNaN(l)?i:Mt(r-l):s>0?Nr.left(Mt(s)):S.request.expiring}</span>`}function Rr(t,n,r){let a=r.request(t.id);if(!a)return c``;let o=a.state===`open`,s=t.group!==``&&r.grouping===`command`,l=r.chosen.has(t.id);return c`<div
    role="row"
    class="row ${t.group?`in`:``}"
    data-n=${n}
    data-key=${t.key}
    data-request=${t.id}
    data-state=${o?`open`:`closed`}
    tabindex=${r.active===t.key?0:-1}
    aria-level=${t.group?2:1}
    aria-posinset=${t.nth}
    aria-setsize=${t.of}
    aria-rowindex=${n+1}
    aria-selected=${l?`true`:`false`}
    aria-current=${r.opened===t.id?`true`:i}
    ?data-unread=${o&&!Gn(a)}
    @click=${e=>r.pressed(t,e)}
  >
    <span role="gridcell" class="tick" @click=${e=>r.ticked(t,e)}
      >${o?c`<input type="checkbox" tabindex="-1" aria-label=${Nr.choose(qt(a))} .checked=${e(l)} />`:i}</span>
    <div role="gridcell" class="words">
      <div class="one">${s?c`<span class="asked"><bdi class="from">${Ir(a)}</bdi></span>`:Pr(Kt(a))}</div>
      <div class="two">${Lr(a,t.group!==``&&r.grouping===`session`)}</div>
    </div>
  </div>`}function zr(e,t){let n=e.flatMap(e=>{let n=t.request(e);return n?.state===`open`?[D(n)]:[]}),r=[`danger`,`elevated`,`low`].find(e=>n.includes(e));return r?c`<span class="risk" data-risk=${r}>${p(gt[r],12)}${Nr.risks[r]}</span>`:i}function Br(t,n,r){let a=t.ids.filter(e=>r.request(e)?.state===`open`),o=r.request(t.ids[0]??``),s=a.filter(e=>r.chosen.has(e)).length,l=o?r.grouping===`session`?Ir(o):qt(o):``;return c`<div
    role="row"
    class="row head"
    data-n=${n}
    data-key=${t.key}
    data-group
    tabindex=${r.active===t.key?0:-1}
    aria-level="1"
    aria-posinset=${t.nth}
    aria-setsize=${t.of}
    aria-rowindex=${n+1}
    aria-expanded=${t.folded?`false`:`true`}
    aria-selected=${a.length>0&&s===a.length?`true`:`false`}
    @click=${e=>r.pressed(t,e)}
  >
    <span role="gridcell" class="tick" @click=${e=>r.ticked(t,e)}
      >${a.length?c`<input type="checkbox" tabindex="-1" aria-label=${Nr.chooseGroup(a.length,l)} .checked=${e(s===a.length)} .indeterminate=${e(s>0&&s<a.length)} />`:i}</span>
    <div role="gridcell" class="words">
      <span class="fold" aria-hidden="true">${p(`forward`,12)}</span>
      <div class="one">${o?r.grouping===`session`?c`<span class="asked"><bdi class="from">${l}</bdi></span>`:Pr(Kt(o)):i}</div>
      ${t.folded?zr(t.ids,r):i}
      <span class="count">${Nr.inGroup(a.length,t.ids.length)}</span>
    </div>
  </div>`}var Vr=(e,t,n)=>e.kind===`group`?Br(e,t,n):Rr(e,t,n),F=S.request,Hr=8e3,Ur=4e3,Wr=6e4,Gr=1e3,Kr={fine:3,coarse:3.5},qr={fine:2.5,coarse:2.75};function Jr(){let e=parseFloat(getComputedStyle(document.documentElement).fontSize)||16,t=matchMedia(`(pointer: coarse)`).matches?`coarse`:`fine`;return{row:Kr[t]*e,head:qr[t]*e}}var Yr=400,Xr=8,Zr=2500,Qr=500,$r=`plexus.inbox.groups`,ei=[`command`,`session`,`none`];function ti(){try{let e=localStorage.getItem($r);return ei.find(t=>t===e)??`command`}catch{return`command`}}var ni=class extends f{static{this.properties={beside:{type:Boolean,reflect:!0},opened:{state:!0},active:{state:!0},grouping:{state:!0}}}#e=[];#t=[];#n=[0];#r=new Map;#i=new Set;#a=new Set;#o=gr;#s=[];#c=new Map;#l=!1;#u=0;#d=!1;#f;#p=new Set;#m=!0;#h;#g=0;#_=0;#v=null;#y=Jr();#b=[];#x=[];#S=0;#C;#w=()=>{};#T=()=>{};constructor(){super(),this.beside=!1,this.opened=``,this.active=``,this.grouping=ti()}static{this.styles=[...[f.styles].flat(),nr]}connectedCallback(){super.connectedCallback();for(let e of[`pointerenter`,`pointermove`,`pointerdown`])this.addEventListener(e,this.#E);this.addEventListener(`pointerleave`,this.#D),this.addEventListener(`keydown`,this.#O),this.#f=setInterval(this.#N,Gr),this.#T=jn(this),this.#w=ze([...[`j`,`]`].map(e=>({key:e,run:()=>this.#K(1)})),...[`k`,`[`].map(e=>({key:e,run:()=>this.#K(-1)})),{key:`x`,run:()=>this.#ne()},{key:`X`,run:()=>this.#ee(gr)}]),this.#h=new ResizeObserver(()=>this.#M()),this.#h.observe(this)}disconnectedCallback(){super.disconnectedCallback();for(let e of[`pointerenter`,`pointermove`,`pointerdown`])this.removeEventListener(e,this.#E);this.removeEventListener(`pointerleave`,this.#D),this.removeEventListener(`keydown`,this.#O),clearInterval(this.#f),clearTimeout(this.#C),this.#T(),this.#w(),this.#h?.disconnect()}#E=e=>{this.#d=e.pointerType===`mouse`,this.#u=Date.now()};#D=()=>{this.#d=!1};#O=()=>{this.#u=Date.now()};get#k(){if(this.#o.ids.size)return!1;let e=this.#d||this.matches(`:focus-within`);return Date.now()-this.#u>(e?Wr:Ur)}get#A(){return this.renderRoot.querySelector(`.scroller`)}cardAt(e){let t=e.closest(`[role="row"]`)?.dataset.request;return t!==void 0&&t===this.opened?this.#j(t):null}several(e){if(!this.#o.ids.size)return!1;if(/^[ya]$/.test(e))this.#se(`allow`);else if(/^[ndrD]$/.test(e))this.#se(`deny`);else return!1;return!0}#j(e){return[...this.renderRoot.querySelectorAll(`plexus-card`)].find(t=>t.request.request_id===e)??null}#M(){let e=this.#A;this.#y=Jr(),this.beside=this.clientWidth>=760,this.#_=e?.clientHeight??0,this.requestUpdate()}#N=()=>{if(!document.hidden&&this.#k){for(let[e,t]of this.#c)Date.now()-t<Hr||this.#j(e)?.unsettled||this.#i.add(e);this.requestUpdate()}};#P=e=>this.grouping===`command`?Yt(e):this.grouping===`session`?e.session_id:``;#F(){let e=[...b.requests.value.values()],t=new Set(this.#e.map(e=>e.id)),n=e.filter(e=>!this.#i.has(e.request_id)&&(e.state===`open`||t.has(e.request_id)));this.#r=new Map(n.map(e=>[e.request_id,e]));let{order:r,added:i}=Or(this.#e,n,{fresh:this.#m,settled:this.#k,keyOf:this.#P});this.#e=r;for(let e of this.#i)b.requests.value.has(e)||this.#i.delete(e);if(!this.#m){for(let e of i)this.#p.add(e);this.#b.push(...i)}b.loaded.value&&(this.#m=!1);for(let e of n)e.state===`open`?this.#c.delete(e.request_id):this.#c.has(e.request_id)||(this.#c.set(e.request_id,Date.now()),e.request_id!==this.opened&&this.#x.push(e.request_id));for(let e of this.#c.keys())this.#r.has(e)||this.#c.delete(e);for(let e of this.#p)this.#r.has(e)||this.#p.delete(e);this.#o=br(this.#o,e=>this.#r.get(e)?.state===`open`),this.#t=kr(r,this.#a),this.#n=Ar(this.#t,this.#y.row,this.#y.head),this.#I(),this.#t.some(e=>e.key===this.active)||(this.active=this.opened&&this.#R(this.opened)>=0?this.opened:this.#t[0]?.key??``)}#I(){if(this.opened&&!this.#r.has(this.opened)&&(this.opened=``),this.#s=this.#s.filter(e=>this.#r.has(e)),this.opened||this.#l)return;let e=this.#e.filter(({id:e})=>this.#r.get(e)?.state===`open`);e[0]&&(this.beside||e.length===1)&&(this.#L(e[0].id),this.matches(`:focus-within`)||(this.active=e[0].id))}#L(e){this.opened=e,this.#s=[e,...this.#s.filter(t=>t!==e)],this.#s=this.#s.filter((e,t)=>t<Xr||this.#j(e)?.unsettled)}#R(e){return this.#t.findIndex(t=>t.key===e)}willUpdate(){this.#z(),this.#F()}#z(){let e=jr(this.#n,this.#g),t=this.#t[e];this.#v=t&&this.#g>0?{key:t.key,into:this.#g-this.#n[e]}:null}updated(e){let t=this.#A,n=this.renderRoot.querySelector(`.rows`);if(!t||!n)return;n.style.blockSize=`${this.#n[this.#n.length-1]}px`;for(let e of n.querySelectorAll(`[data-n]`))e.style.insetBlockStart=`${this.#n[Number(e.dataset.n)]??0}px`;let r=this.#v?this.#R(this.#v.key):-1;if(this.#v&&r>=0){let e=this.#n[r]+this.#v.into;Math.abs(e-this.#g)>=1&&(t.scrollTop=e)}(t.clientHeight!==this.#_||this.#g!==t.scrollTop)&&(this.#_=t.clientHeight,this.#g=t.scrollTop,this.requestUpdate()),(e.has(`beside`)||e.has(`opened`))&&this.#U(this.#R(this.opened)),this.#B(),this.#V()}#B(){if(!this.#p.size||document.hidden||!this.#_)return;let e=this.#p.size,[t,n]=Mr(this.#n,this.#g,this.#_-this.#y.row,0);for(let e of this.#t.slice(t,n))for(let t of e.kind===`group`?e.ids:[e.id])this.#p.delete(t);this.#p.size!==e&&this.requestUpdate()}#V(){if(!this.#b.length&&!this.#x.length)return;let e=Math.max(Qr,this.#S+Zr-performance.now());this.#C??=setTimeout(()=>{this.#C=void 0,this.#H()},e)}#H(){this.#S=performance.now();let e=b.me.peek()?.device_id,t=this.#r.get(this.#b[0]??``),n=this.#r.get(this.#x[0]??``),r=[this.#b.length===1&&t?F.opened(_(t.runtime_id),qt(t)):this.#b.length?F.openedMany(this.#b.length):``,this.#x.length===1&&n?`${n.receipt?Bn(n.receipt,n,e).text:F.gone}: ${qt(n)}.`:this.#x.length?F.resolvedMany(this.#x.length):``];this.#b=[],this.#x=[],y(r.filter(Boolean).join(` `))}#U(e){let t=this.#A;if(!t||e<0||!this.#_)return;let n=this.#n[e],r=this.#n[e+1];n<t.scrollTop?t.scrollTop=n:r>t.scrollTop+t.clientHeight&&(t.scrollTop=r-t.clientHeight)}async#W(e,t=!1){let n=this.#t[Math.max(0,Math.min(this.#t.length-1,e))];if(!n)return;let r=this.active;if(this.active=n.key,this.#u=Date.now(),n.kind===`request`&&(this.#l=!1,this.#L(n.id),t)){let e=this.#o.anchor?this.#o:{ids:this.#o.ids,anchor:this.#r.has(r)?r:n.id};this.#o=yr(e,n.id,this.#q())}this.requestUpdate(),await this.updateComplete,this.#U(this.#R(n.key)),this.requestUpdate(),await this.updateComplete,this.#G(n.key)?.focus({preventScroll:!0})}#G(e){return[...this.renderRoot.querySelectorAll(`[role="row"]`)].find(t=>t.dataset.key===e)??null}#K(e){let t=this.#R(this.active);this.#W(this.matches(`:focus-within`)&&t>=0?t+e:Math.max(0,t))}#q(){return this.#e.map(e=>e.id).filter(e=>this.#r.get(e)?.state===`open`)}#J=e=>{if((e.ctrlKey||e.metaKey)&&e.key===`a`){this.#ee(vr(gr,this.#q())),e.preventDefault();return}if(e.ctrlKey||e.metaKey||e.altKey)return;let t=this.#R(this.active),n=this.#t[t],r=Math.max(1,Math.floor(this.#_/this.#y.row)-1),i={ArrowDown:t+1,ArrowUp:t-1,Home:0,End:this.#t.length-1,PageDown:t+r,PageUp:t-r}[e.key];if(i!==void 0)this.#W(i,e.shiftKey);else if(e.key===` `)this.#ne();else if(e.key===`Enter`)this.#Y(n);else if(e.key===`ArrowLeft`||e.key===`ArrowRight`)this.#X(n,e.key===`ArrowLeft`);else if(e.key===`Escape`&&this.#o.ids.size)this.#ee(gr);else return;e.preventDefault()};#Y(e){e?.kind===`group`?this.#X(e,!e.folded):e&&this.#j(e.id)?.focus()}#X(e,t){e?.group&&(t?this.#a.add(e.group):this.#a.delete(e.group),this.active=e.kind===`group`?e.key:t?`group ${e.group}`:e.key,this.requestUpdate(),this.updateComplete.then(()=>this.#G(this.active)?.focus({preventScroll:!0})))}#Z=e=>{e.key===`Escape`&&!e.defaultPrevented&&e.composedPath()[0].matches(`article, [tabindex="-1"]`)&&(e.preventDefault(),this.beside?this.#G(this.opened)?.focus({preventScroll:!0}):this.#Q())};#Q=()=>{let e=this.opened;this.#l=!0,this.opened=``,this.updateComplete.then(()=>this.#G(e)?.focus({preventScroll:!0}))};#$(e){let t=this.#t.flatMap(e=>e.kind===`request`?[e.id]:[]),n=t.indexOf(this.opened),r=t[Math.max(0,Math.min(t.length-1,n+e))];r!==void 0&&(this.active=r,this.#L(r),this.updateComplete.then(()=>this.#U(this.#R(r))))}#ee(e){let t=this.#o.ids.size;this.#o=br(e,e=>this.#r.get(e)?.state===`open`),this.requestUpdate(),this.#o.ids.size!==t&&y(F.rows.chosen(this.#o.ids.size))}#te(e){return(e.kind===`group`?e.ids:[e.id]).filter(e=>this.#r.get(e)?.state===`open`)}#ne(){let e=this.#t[this.#R(this.active)];e&&this.#re(e,!1)}#re(e,t){let n=this.#te(e),[r]=n;r!==void 0&&(e.kind===`group`?this.#ee(vr(this.#o,n)):this.#ee(t?yr(this.#o,r,this.#q()):_r(this.#o,r)))}#ie(e,t){t.stopPropagation(),this.active=e.key,this.#re(e,t.shiftKey),this.updateComplete.then(()=>this.#G(e.key)?.focus({preventScroll:!0}))}#ae(e,t){let n=this.#R(e.key);if(e.kind===`group`)return this.#X(e,!e.folded);if(t.ctrlKey||t.metaKey)return this.active=e.key,this.#re(e,!1);this.#W(n,t.shiftKey)}#oe(){return this.#q().filter(e=>this.#o.ids.has(e)).flatMap(e=>this.#r.get(e)??[])}#se(e){this.renderRoot.querySelector(`plexus-many`)?.ask(e,this.#oe())}#ce(e){this.grouping=e;try{localStorage.setItem($r,e)}catch{}this.#e=Dr(this.#e.map(e=>e.id),e=>{let t=this.#r.get(e);return t?this.#P(t):``}),this.requestUpdate()}#le=()=>{let e=this.#e.find(e=>this.#p.has(e.id))?.id;this.#p.clear();let t=this.#t.findIndex(t=>t.kind===`group`?t.folded&&t.ids.includes(e??``):t.id===e);t>=0&&this.#W(t)};#ue=e=>{this.#g=e.currentTarget.scrollTop,this.requestUpdate()};render(){let e=this.#t,[t,n]=Mr(this.#n,this.#g,this.#_,Yr),r=e.slice(t,n).map((e,n)=>({entry:e,n:t+n})),a=this.#R(this.active);a>=n?r.push({entry:e[a],n:a}):a>=0&&a<t&&r.unshift({entry:e[a],n:a});let s={grouping:this.grouping,active:this.active,opened:this.opened,chosen:this.#o.ids,count:e.length,request:e=>this.#r.get(e),pressed:(e,t)=>this.#ae(e,t),ticked:(e,t)=>this.#ie(e,t)},l=[...this.#p].filter(e=>this.#r.get(e)?.state===`open`).length;return c`<div class="split">
        <div class="side">
          ${this.#fe()}
          <div class="scroller" @scroll=${this.#ue}>
            <div class="rows" role="treegrid" aria-label=${F.list} aria-multiselectable="true" aria-rowcount=${e.length} aria-colcount="2" @keydown=${this.#J}>
              ${o(r,({entry:e})=>e.key,({entry:e,n:t})=>Vr(e,t,s))}
            </div>
          </div>
          ${l?c`<div class="new"><button type="button" @click=${this.#le}>${F.newOnes(l)}</button></div>`:i}
        </div>
        ${this.#de()}
      </div>
      <plexus-many @answered=${()=>{this.#u=Date.now()}} @closed=${()=>this.#G(this.active)?.focus({preventScroll:!0})}></plexus-many>`}#de(){let e=this.#t.flatMap(e=>e.kind===`request`?[e.id]:[]),t=e.indexOf(this.opened)+1;return c`<section class="pane" aria-label=${F.rows.pane} ?data-shut=${!this.opened} @keydown=${this.#Z}>
      <div class="steps">
        <span class="nth">${t?F.rows.nth(t,e.length):i}</span>
        <button type="button" class="ghost" aria-label=${F.rows.previous} ?disabled=${t<=1} @click=${()=>this.#$(-1)}>${p(`up`)}</button>
        <button type="button" class="ghost" aria-label=${F.rows.next} ?disabled=${t===e.length} @click=${()=>this.#$(1)}>${p(`down`)}</button>
        <button type="button" class="ghost" aria-label=${S.common.close} @click=${this.#Q}>${p(`close`)}</button>
      </div>
      ${this.opened?i:c`<p class="none">${F.rows.none}</p>`}
      ${o(this.#s,e=>e,e=>c`<plexus-card layout="pane" ?hidden=${e!==this.opened} .request=${this.#r.get(e)}></plexus-card>`)}
    </section>`}#fe(){let t=this.#q(),{size:n}=this.#o.ids,r=c`<span class="tick"><input type="checkbox" id="all" aria-label=${F.rows.chooseAll(t.length)} .checked=${e(n>0&&n===t.length)} .indeterminate=${e(n>0&&n<t.length)} ?disabled=${!t.length}
      @change=${()=>this.#ee(n?gr:vr(gr,t))} /></span>`;if(!n)return c`<div class="bar">${r}<div class="title"><slot name="title"></slot></div>
        <select id="groups" aria-label=${F.rows.groupBy} .value=${this.grouping} @change=${e=>this.#ce(e.target.value)}>
          ${ei.map(e=>c`<option value=${e} ?selected=${e===this.grouping}>${F.rows.groupings[e]}</option>`)}
        </select></div>`;let i=pr(this.#oe(),`allow`,{now:b.requests.value,limit:b.me.value?.approve_up_to,seen:Gn,reason:``}).will.length;return c`<div class="bar" role="toolbar" aria-label=${F.rows.chosen(n)}>${r}<div class="title"><strong>${F.rows.chosenShort(n)}</strong><span class="sr"><slot name="title"></slot></span></div>
      <button type="button" id="deny" class="danger" @click=${()=>this.#se(`deny`)}>${F.rows.deny(n)}</button>
      <button type="button" id="allow" title=${F.rows.allowHint} @click=${()=>this.#se(`allow`)}>${F.rows.allow(i,n)}</button>
      <button type="button" class="ghost clear" aria-label=${F.rows.clear} @click=${()=>this.#ee(gr)}>${p(`close`)}</button></div>`}};customElements.define(`plexus-requests`,ni);var ri=S.request,ii=class extends f{static{this.properties={request_id:{},missing:{state:!0}}}#e=``;#t;constructor(){super(),this.request_id=``,this.missing=!1}static{this.styles=[...[f.styles].flat(),a`
      :host { display: flex; flex-direction: column; gap: 12px; min-height: 0; max-inline-size: 760px; inline-size: 100%; margin-inline: auto; }
      plexus-card { max-block-size: var(--solo-height, calc(100dvh - 132px)); }
      @media (max-width: 599px) { plexus-card { max-block-size: var(--solo-height, calc(100dvh - 186px - env(safe-area-inset-bottom))); } }
      p { padding: 32px 8px; text-align: center; color: var(--fg-mute); }
      a { display: inline-flex; align-items: center; min-block-size: 44px; }
    `]}updated(){if(this.#e===this.request_id||!b.live.value||(this.#e=this.request_id,this.missing=!1,b.requests.peek().has(this.request_id)))return;let e=this.request_id;b.reread(e).then(t=>{e===this.request_id&&(this.#t=t??void 0,this.missing=!t,this.requestUpdate())})}render(){let e=b.live.value,t=b.requests.value.get(this.request_id)??(this.#t?.request_id===this.request_id?this.#t:void 0);t&&(this.#t=t);let n=c`<a href=${b.href({page:`inbox`})}>${ri.toInbox}</a>`;return t?c`<plexus-card layout="solo" .request=${t}></plexus-card>`:c`<p role="status">${this.missing?ri.notFound:e?ri.loading:ri.offline}<br />${n}</p>`}};customElements.define(`plexus-request`,ii);var ai=8<<20,oi=[`image/png`,`image/jpeg`,`image/gif`,`image/webp`];function si(e,t){let n=!1;for(let r of e){if(!oi.includes(r.type))continue;if(r.size>ai){n=!0;continue}let e=new FileReader;e.onload=()=>t({mime:r.type,data:String(e.result).split(`,`)[1]??``,url:URL.createObjectURL(r)}),e.readAsDataURL(r)}return n}var ci=e=>[...e.clipboardData?.files??[]].filter(e=>oi.includes(e.type));function li(e,t){return t.length?{content:[...e?[{type:`text`,text:e}]:[],...t.map(e=>({type:`image`,mimeType:e.mime,data:e.data}))]}:{text:e}}var I=S.shell.newSession,ui=120,di=class extends f{constructor(...e){super(...e),this.value=``,this.disabled=!1,this.shown=null,this.problem=``,this.at=-1,this.#t=0,this.#i=()=>{this.#r(this.path),clearTimeout(this.#e),b.may(`admin`)&&(this.#e=setTimeout(()=>void this.#o(this.path),ui))},this.#a=()=>{let e=this.path.trim();this.shown&&(e===``||this.shown.under===(e.replace(/\/+$/,``)||`/`))?this.shown=null:(clearTimeout(this.#e),this.#o(e&&!e.endsWith(`/`)?`${e}/`:e),this.renderRoot.querySelector(`input`)?.focus())},this.#c=e=>{let t=this.#n();if(e.key===`ArrowDown`||e.key===`ArrowUp`){if(e.preventDefault(),!this.shown){b.may(`admin`)&&this.#a();return}let n=e.key===`ArrowDown`?1:-1;t.length&&(this.at=this.at<0?n>0?0:t.length-1:(this.at+n+t.length)%t.length)}else if(this.shown&&this.at>=0&&(e.key===`Enter`||e.key===`Tab`)&&!e.shiftKey){let n=t[this.at];n&&(e.preventDefault(),this.#s(n.path))}else this.shown&&e.key===`Escape`?(e.preventDefault(),e.stopPropagation(),this.shown=null):e.key===`Enter`&&(e.preventDefault(),this.getRootNode().querySelector(`form`)?.requestSubmit())}}#e;#t;static{this.styles=[...[f.styles].flat(),a`
    :host { display: flex; flex-direction: column; gap: 5px; min-width: 0; }
    label { font-weight: 550; }
    .line { display: flex; gap: 6px; }
    .line input { flex: 1; min-width: 0; font-family: var(--mono); }
    .list { border: 1px solid var(--line-strong); border-radius: var(--r-s); background: var(--bg); max-height: min(32vh, 250px); overflow: auto; overscroll-behavior: contain; }
    .one { display: flex; align-items: center; gap: 8px; min-height: 34px; padding: 0 10px; cursor: pointer; }
    .one svg { color: var(--fg-mute); flex: none; }
    .one .side { margin-left: auto; color: var(--fg-mute); font-size: var(--t-s); flex: none; }
    .one:hover { background: var(--bg-hover); }
    .one[aria-selected="true"] { background: var(--bg-active); }
    @media (pointer: coarse) { .one { min-height: 44px; } .line button { min-height: 44px; } }
  `]}get path(){return this.renderRoot.querySelector(`input`)?.value??this.value}disconnectedCallback(){super.disconnectedCallback(),clearTimeout(this.#e)}render(){let e=b.may(`admin`),t=this.#n(),n=this.shown!==null;return c`<label for="cwd">${I.folder}</label>
      <div class="line"><input id="cwd" name="cwd" .value=${this.value} ?disabled=${this.disabled} autocomplete="off" spellcheck="false" autocapitalize="off"
          role=${e?`combobox`:i} aria-expanded=${e?String(n):i} aria-controls=${e?`folders`:i} aria-autocomplete=${e?`list`:i} aria-activedescendant=${n&&this.at>=0?`folder-${this.at}`:i} aria-describedby="cwd-hint"
          @input=${this.#i} @keydown=${this.#c}>
        ${e?c`<button type="button" id="browse" ?disabled=${this.disabled} aria-expanded=${n} @click=${this.#a}>${p(`folder`,14)}${I.browse}</button>`:i}</div>
      <div id="folders" class="list" role="listbox" aria-label=${I.foldersIn(ie(this.shown?.under??``))} ?hidden=${!n||!t.length}>${t.map((e,t)=>c`<div class="one" role="option" id=${`folder-${t}`} aria-selected=${t===this.at} @click=${()=>this.#s(e.path)}>
        ${p(e.up?`up`:`folder`,14)}${e.up?c`<span>${I.up}</span>`:c`<bdi class="cut">${_(e.name)}</bdi>`}${e.side?c`<span class="side">${e.side}</span>`:i}</div>`)}</div>
      <span id="cwd-hint" class="mute small" role="status">${this.problem||(n&&!this.shown?.folders.length?I.noFolders:n&&this.shown?.more?I.moreFolders:I.folderHint)}</span>`}#n(){let e=this.shown;if(!e)return[];let t=m(e.folders).map(e=>({path:e.path,name:e.name,side:[e.git?I.repository:``,e.link?I.linked:``].filter(Boolean).join(`, `)}));return e.parent?[{path:e.parent,name:``,up:!0},...t]:t}updated(){this.renderRoot.querySelector(`[aria-selected="true"]`)?.scrollIntoView({block:`nearest`})}#r(e){this.dispatchEvent(new CustomEvent(`folder`,{detail:e}))}#i;#a;async#o(e){let t=++this.#t,n=e.lastIndexOf(`/`);if(n<0&&e!==``&&e!==`~`){this.shown=null;return}let r=e===`~`?`~`:e.slice(0,n+1),i=e===`~`?``:e.slice(n+1);try{let e=await b.http(`GET`,`/v1/folders?under=${encodeURIComponent(r)}&prefix=${encodeURIComponent(i)}`);if(t!==this.#t)return;[this.shown,this.problem,this.at]=[e,``,-1]}catch(e){t===this.#t&&([this.shown,this.problem]=[null,h(e)])}}#s(e){this.value=e;let t=this.renderRoot.querySelector(`input`);t&&(t.value=e,t.focus()),this.#r(e),this.#o(e.endsWith(`/`)?e:`${e}/`)}#c};v([s()],di.prototype,`value`,void 0),v([s({type:Boolean})],di.prototype,`disabled`,void 0),v([n()],di.prototype,`shown`,void 0),v([n()],di.prototype,`problem`,void 0),v([n()],di.prototype,`at`,void 0),di=v([u(`plexus-folder-field`)],di);var L=S.shell.sessions.past,R=200,fi=2e3,pi=100,z=class extends f{constructor(...e){super(...e),this.runtime=``,this.all=[],this.phase=`asking`,this.problem=``,this.q=``,this.picked=``,this.limit=R,this.#e=``,this.#t=0,this.#a=()=>{this.picked&&this.dispatchEvent(new CustomEvent(`resume`))},this.#o=e=>{this.q=e.target.value,this.limit=R,this.q.trim()&&this.next&&this.phase===`there`&&this.#u(fi)},this.#s=e=>{let t=this.#n().slice(0,this.limit),n=t.findIndex(e=>e.native_id===this.picked),r={ArrowDown:n+1,ArrowUp:n<0?t.length-1:n-1,PageDown:n+6,PageUp:n-6}[e.key];if(e.key===`Enter`&&!e.isComposing){e.preventDefault();let r=t[n]??(this.q.trim()&&t.length===1?t[0]:void 0);r&&(this.#i(r),this.#a())}else if(r!==void 0&&t.length){e.preventDefault();let n=t[Math.max(0,Math.min(t.length-1,r))];n&&this.#i(n),this.updateComplete.then(()=>this.renderRoot.querySelector(`[aria-selected="true"]`)?.scrollIntoView({block:`nearest`}))}},this.#c=()=>{this.#n().length>this.limit?this.limit+=R:(this.limit+=R,this.#u(this.all.length+R))}}#e;#t;static{this.styles=[...[f.styles].flat(),a`
    :host { display: flex; flex-direction: column; gap: var(--s2); min-width: 0; }
    .find { position: relative; }
    .find svg { position: absolute; left: 10px; top: 50%; transform: translateY(-50%); color: var(--fg-mute); pointer-events: none; }
    .find input { padding-left: 32px; }
    .rows { max-height: min(42dvh, 330px); overflow: auto; border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg); overscroll-behavior: contain; }
    @media (max-width: 599px) { .rows { max-height: 34dvh; } }
    .row { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 1px 10px; align-items: baseline; padding: 8px 12px; min-height: 50px; cursor: pointer; content-visibility: auto; contain-intrinsic-size: auto 50px; }
    .row + .row { border-top: 1px solid var(--line); }
    .row:hover { background: var(--bg-hover); }
    .row[aria-selected="true"] { background: var(--accent-wash); box-shadow: inset 3px 0 0 var(--accent); }
    .title { font-weight: 550; }
    .side { font-size: var(--t-s); color: var(--fg-mute); white-space: nowrap; }
    .sub { grid-column: 1 / -1; font-size: var(--t-s); color: var(--fg-mute); }
    .none { display: flex; flex-direction: column; align-items: center; gap: var(--s2); text-align: center; padding: var(--s5) var(--s4); border: 1px dashed var(--line-strong); border-radius: var(--r-m); color: var(--fg-soft); }
    .none svg { color: var(--fg-mute); }
    .foot { display: flex; align-items: center; gap: var(--s2); font-size: var(--t-s); color: var(--fg-mute); min-height: 20px; flex-wrap: wrap; }
  `]}willUpdate(){this.runtime!==this.#e&&(this.#e=this.runtime,[this.q,this.picked]=[``,``],this.#l())}focus(){this.renderRoot.querySelector(`input`)?.focus()}#n(){let e=this.q.toLowerCase().split(/\s+/).filter(Boolean);return e.length?this.all.filter(t=>{let n=`${t.title??``} ${t.cwd??``} ${t.native_id}`.toLowerCase();return e.every(e=>n.includes(e))}):this.all}render(){if(this.phase===`failed`)return c`<p class="note danger" role="alert">${this.problem}</p><div><button type="button" @click=${()=>void this.#l()}>${S.common.retry}</button></div>`;if(this.phase===`asking`&&!this.all.length)return c`<div class="none" role="status">${p(`clock`,22)}<p>${L.asking}</p></div>`;if(!this.all.length)return c`<div class="none" role="status">${p(`sessions`,22)}<p class="strong">${L.none}</p><p class="small">${L.noneText}</p></div>`;let e=this.#n(),t=e.slice(0,this.limit),n=t.findIndex(e=>e.native_id===this.picked);return c`<div class="find">${p(`search`)}<input type="search" role="combobox" aria-label=${L.find} placeholder=${L.findHint} aria-expanded="true" aria-controls="rows" aria-autocomplete="list"
        aria-activedescendant=${n<0?i:`o${n}`} autocomplete="off" spellcheck="false" autocapitalize="off" .value=${this.q} @input=${this.#o} @keydown=${this.#s}></div>
      ${t.length?c`<div class="rows" id="rows" role="listbox" aria-label=${L.list}>${o(t,e=>e.native_id,(e,t)=>this.#r(e,t))}</div>`:c`<div class="none" id="rows" role="status">${p(`search`,22)}<p>${this.next?L.searching:L.noneFound}</p></div>`}
      <div class="foot"><span class="grow">${L.count(e.length,this.next!==void 0)}</span>
        ${e.length>t.length||this.next?c`<button type="button" class="compact" ?disabled=${this.phase===`asking`} @click=${this.#c}>${S.common.more}</button>`:i}</div>`}#r(e,t){let n=Date.parse(e.updated_at??``);return c`<div class="row" role="option" id=${`o${t}`} data-native=${e.native_id} aria-selected=${e.native_id===this.picked} @click=${()=>this.#i(e)} @dblclick=${this.#a}>
      <bdi class="title cut">${_(e.title)||L.untitled}</bdi>
      <span class="side">${e.session_id?c`<span class="chip">${L.open}</span>`:Number.isFinite(n)?c`<plexus-age .at=${n} short></plexus-age>`:i}</span>
      <bdi class="sub cut">${_(e.cwd)||_(e.native_id)}</bdi></div>`}#i(e){this.picked=e.native_id,this.dispatchEvent(new CustomEvent(`pick`,{detail:e}))}#a;#o;#s;#c;async#l(){this.#t++,[this.all,this.next,this.phase,this.limit]=[[],``,`asking`,R],await this.#u(R),this.all.length&&y(L.count(this.all.length,this.next!==void 0))}async#u(e){let[t,n]=[this.#t,this.runtime];this.phase=`asking`;try{for(let r=0;r<pi&&this.next!==void 0&&this.all.length<Math.min(e,fi);r++){let e=await b.http(`GET`,`/v1/runtimes/${encodeURIComponent(n)}/resumable?limit=${R}&cursor=${encodeURIComponent(this.next)}`);if(t!==this.#t)return;let r=new Set(this.all.map(e=>e.native_id));this.all=[...this.all,...m(e?.resumable).filter(e=>!r.has(e.native_id))],this.next=e?.next}this.all.length>=fi&&(this.next=void 0),this.phase=`there`}catch(e){t===this.#t&&([this.phase,this.problem]=[`failed`,S.shell.failed(h(e))])}}};v([s()],z.prototype,`runtime`,void 0),v([n()],z.prototype,`all`,void 0),v([n()],z.prototype,`next`,void 0),v([n()],z.prototype,`phase`,void 0),v([n()],z.prototype,`problem`,void 0),v([n()],z.prototype,`q`,void 0),v([n()],z.prototype,`picked`,void 0),v([n()],z.prototype,`limit`,void 0),z=v([u(`plexus-past`)],z);function mi(e){let t=[],n=null,r=``;for(let i=0;i<e.length;i+=1){let a=e[i]??``;a===`\\`&&r!==`'`&&i+1<e.length?(i+=1,n=(n??``)+e[i]):r?a===r?r=``:n+=a:a===`"`||a===`'`?(r=a,n??=``):/\s/.test(a)?(n!==null&&t.push(n),n=null):n=(n??``)+a}return n!==null&&t.push(n),t}var B=S.shell.newSession,V=S.shell.sessions.past,hi=S.shell.runtimes.known,gi=18e4,_i=250,vi=5,yi=()=>{dispatchEvent(new CustomEvent(`plexus-new-session`))},bi=e=>`endpoint`in e.connect&&e.connect.endpoint.startsWith(`link:`),xi=()=>{let e=e=>Number(e.state!==`ready`)+2*Number(e.runtime_id===`codex-terminal`);return[...b.runtimes.value.values()].filter(e=>!bi(e)&&e.state!==`exited`).sort((t,n)=>e(t)-e(n)||(t.runtime_id<n.runtime_id?-1:1))},Si=()=>b.may(`admin`)&&b.may(`prompt`)&&xi().length===0,Ci=e=>{let t=e?.capabilities??[];return t.includes(`list`)&&(t.includes(`load`)||t.includes(`resume`))},wi=()=>[...crypto.getRandomValues(new Uint8Array(16))].map(e=>e.toString(16).padStart(2,`0`)).join(``),H=class extends f{constructor(...e){super(...e),this.agents=null,this.recent=[],this.home=``,this.folder=null,this.chosen=``,this.shots=[],this.stage=``,this.problem=null,this.old=!1,this.picked=null,this.#e=null,this.#t=null,this.#n={body:``,key:``},this.#f=e=>{e.key!==`Enter`||e.shiftKey||e.altKey||e.isComposing||(e.preventDefault(),this.renderRoot.querySelector(`form`)?.requestSubmit())}}#e;#t;#n;static{this.styles=[...[f.styles].flat(),_e,a`
    form { display: flex; flex-direction: column; gap: var(--s4); min-width: 0; }
    fieldset { min-width: 0; }
    legend { padding: 0; margin-bottom: 6px; font-weight: 550; }
    .kinds { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(200px, 100%), 1fr)); gap: var(--s2); }
    .kind { display: grid; grid-template-columns: auto minmax(0, 1fr) auto; align-items: center; gap: 0 9px; padding: 7px 11px; min-height: 52px; border: 1px solid var(--line-strong); border-radius: var(--r-s); background: var(--bg-raised); cursor: pointer; }
    .kind small { grid-column: 2 / -1; color: var(--fg-mute); font-size: var(--t-s); }
    .kind:hover { background: var(--bg-hover); }
    .kind:has(:checked) { border-color: var(--accent); background: var(--accent-wash); box-shadow: inset 0 0 0 1px var(--accent); }
    .kind:has(:disabled) { cursor: not-allowed; color: var(--fg-mute); }
    .kind:has(:focus-visible) { outline: var(--focus); outline-offset: 1px; }
    .kind input:focus-visible { outline: none; }
    details > summary { cursor: pointer; color: var(--fg-soft); font-size: var(--t-s); min-height: 32px; display: flex; align-items: center; }
    details > summary::before { content: "▸"; margin-right: 6px; } details[open] > summary::before { content: "▾"; }
    @media (pointer: coarse) { details > summary { min-height: 44px; } }
    .others { display: flex; flex-direction: column; gap: 10px; padding: 4px 0 2px; }
    .others li { display: grid; gap: 3px; min-width: 0; }
    .recents { display: flex; gap: 6px; flex-wrap: wrap; margin-top: 6px; }
    .recents button { max-width: 100%; }
    .seg { display: flex; border: 1px solid var(--line-strong); border-radius: var(--r-s); overflow: hidden; flex: none; }
    .seg button { flex: 1; min-width: 0; border: 0; border-radius: 0; background: transparent; color: var(--fg-soft); }
    .seg button[aria-pressed="true"] { background: var(--bg-active); color: var(--fg); }
    .seg button:focus-visible { outline-offset: -2px; }
    textarea { min-height: 76px; max-height: 34vh; resize: vertical; }
    .say { display: flex; flex-direction: column; gap: 5px; }
    .say .head { margin: 0; gap: 6px; min-height: 0; }
    .say label { font-weight: 550; flex: 1; }
    .shots { display: flex; gap: 6px; flex-wrap: wrap; }
    .shots figure { position: relative; } .shots img { height: 56px; border-radius: var(--r-s); border: 1px solid var(--line); display: block; }
    .shots button { position: absolute; top: -6px; right: -6px; width: 24px; min-height: 24px; padding: 0; border-radius: 50%; }
    .problem { display: grid; gap: 8px; }
    .problem pre { margin: 0; max-height: 30vh; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; color: var(--fg); background: var(--bg-code); border: 1px solid var(--line); border-radius: var(--r-s); padding: 8px 10px; font-size: var(--t-s); }
    .busy { display: flex; gap: 10px; align-items: center; }
    .busy .dot { color: var(--accent); animation: pulse 1.2s ease-in-out infinite alternate; }
    @keyframes pulse { from { opacity: 0.25; } to { opacity: 1; } }
    .asleep { display: flex; flex-direction: column; align-items: center; gap: var(--s3); text-align: center; padding: var(--s5) var(--s4); border: 1px dashed var(--line-strong); border-radius: var(--r-m); }
    .actions { align-items: center; }
    .actions button { min-width: 96px; }
    @media (pointer: coarse) { .actions button, .recents button, .asleep button { min-height: 44px; } }
  `]}connectedCallback(){super.connectedCallback(),this.#r()}disconnectedCallback(){super.disconnectedCallback(),this.#e?.abort();for(let e of this.shots)URL.revokeObjectURL(e.url)}updated(e){e.has(`problem`)&&this.problem&&this.renderRoot.querySelector(`.problem`)?.scrollIntoView({block:`nearest`})}async#r(){let e=b.http(`GET`,`/v1/folders`).then(e=>{[this.recent,this.home]=[m(e.recent),e.under??``]}).catch(()=>{});try{this.agents=b.may(`admin`)?m((await b.http(`GET`,`/v1/agents`)).agents):[]}catch(e){this.agents=[],this.problem={words:B.failed(h(e))}}await e}#i(){if(this.#t)return this.#t;let e=xi().map(e=>({kind:`runtime`,id:`runtime:${e.runtime_id}`,runtime:e})),t=new Set(xi().map(e=>e.runtime_id)),n=(this.agents??[]).filter(e=>e.installed&&!t.has(e.name)&&!(e.runtime_id&&t.has(e.runtime_id)));return[...e,...n.map(e=>({kind:`preset`,id:`preset:${e.name}`,agent:e})),...b.may(`admin`)&&this.agents?[{kind:`custom`,id:`custom`}]:[]]}#a(e=this.#i()){let t=e.filter(e=>e.kind!==`runtime`||e.runtime.state===`ready`);return t.find(e=>e.id===this.chosen)??t[0]}#o(e){return!b.may(`admin`)||e?.kind===`runtime`&&`endpoint`in e.runtime.connect?``:this.recent[0]?.path??this.home}render(){if(!b.loaded.value||this.agents===null&&!xi().length)return c`<p class="mute" role="status">${B.looking}</p>`;let e=this.#i(),t=this.#a(e);if(!e.length)return c`<p class="note" role="status">${B.noneRuns}</p>`;let n=(this.agents??[]).filter(e=>!e.installed),r=t?.kind===`runtime`?t.runtime:void 0,a=Ci(r)||t?.kind===`preset`,s=this.old&&a,l=!!this.stage;return c`<form @submit=${e=>void this.#m(e)} aria-busy=${l}>
      <fieldset ?disabled=${l}><legend>${B.agent}</legend>
        <div class="kinds">${o(e,e=>e.id,e=>this.#s(e,t))}</div>
        ${n.length?c`<details><summary>${B.others(n.length)}</summary><ul class="others" role="list">${n.map(e=>c`<li><span>${hi[e.name]??e.name}</span>${e.install?ge(e.install):i}</li>`)}</ul></details>`:i}</fieldset>
      ${t?.kind===`custom`?c`<label class="field">${B.command}<input name="command" required ?disabled=${l} autocomplete="off" spellcheck="false" autocapitalize="off" class="mono" placeholder="my-agent --acp"><span class="hint mute small">${B.commandHint}</span></label>
        <label class="field">${B.dialect}<select name="dialect" ?disabled=${l}>${Object.entries(B.dialects).map(([e,t])=>c`<option value=${e}>${t}</option>`)}</select></label>`:i}
      ${a?c`<div class="seg" role="group" aria-label=${V.which}>${[!1,!0].map(e=>c`<button type="button" id=${e?`old`:`fresh`} ?disabled=${l} aria-pressed=${s===e} @click=${()=>{[this.old,this.picked,this.problem]=[e,null,null]}}>${e?V.old:V.fresh}</button>`)}</div>`:i}
      ${s&&r?c`<plexus-past .runtime=${r.runtime_id} @pick=${e=>{[this.picked,this.problem]=[e.detail,null]}} @resume=${()=>this.renderRoot.querySelector(`form`)?.requestSubmit()}></plexus-past>`:s&&t?.kind===`preset`?this.#l(t.agent,l):this.#c(t,l)}
      ${this.#u()}
      ${l?c`<div class="busy" role="status"><span class="dot"></span><span>${this.stage} <span class="mute small">${t?.kind===`runtime`?``:B.startingText}</span></span></div>`:i}
      <div class="actions">${l?c`<button type="button" id="cancel" @click=${()=>this.#e?.abort()}>${S.common.cancel}</button>`:i}
        <button class="primary" id="start" ?disabled=${l||!t||s&&!this.picked}>${s?l?V.resuming:this.picked?.session_id?V.go:V.resume:B.start}</button></div>
    </form>`}#s(e,t){let n=e.id===t?.id,r=()=>{[this.chosen,this.picked,this.problem]=[e.id,null,null]},a=(t,a,o,s=!1)=>c`<label class="kind" data-runtime=${e.kind===`runtime`?e.runtime.runtime_id:i} data-preset=${e.kind===`preset`?e.agent.name:i}>
      <input type="radio" name="agent" value=${e.id} .checked=${n} ?disabled=${s} @change=${r}><span class="strong cut">${t}</span>${a}<small class="cut">${o}</small></label>`;switch(e.kind){case`runtime`:{let t=e.runtime,n=t.state===`ready`;return a(c`<bdi>${_(t.runtime_id)}</bdi>`,c`<span class="chip ${n?`ok`:`info`}">${n?B.running:S.shell.runtimes.state[t.state]}</span>`,c`<bdi>${_(t.agent)||_(t.dialect)}</bdi>`,!n)}case`preset`:return a(hi[e.agent.name]??_(e.agent.name),i,`${B.installed} · ${e.agent.key?B.signsIn(e.agent.key):_(e.agent.about)}`);case`custom`:return a(B.custom,i,B.customText)}}#c(e,t){let n=this.folder??this.#o(e);return c`<div>
        <plexus-folder-field .value=${n} .disabled=${t} @folder=${e=>{this.folder=e.detail}}></plexus-folder-field>
        ${this.recent.length>1?c`<div class="recents" role="group" aria-label=${B.recent}>${this.recent.slice(0,vi).map(e=>c`<button type="button" class="compact" ?disabled=${t} aria-pressed=${n===e.path} title=${ie(e.path)} @click=${()=>{this.folder=e.path}}>${p(`folder`,14)}<bdi class="cut">${_(e.name)}</bdi></button>`)}</div>`:i}</div>
      ${b.may(`admin`)&&!(e?.kind===`runtime`&&`endpoint`in e.runtime.connect)?c`<details id="worktree"><summary>${B.worktree}</summary><div class="others">
        <label class="field">${B.branch}<input name="branch" ?disabled=${t} autocomplete="off" spellcheck="false" autocapitalize="off" class="mono" maxlength="200" placeholder="fix/parser"></label>
        <label class="field">${B.base}<input name="base" ?disabled=${t} autocomplete="off" spellcheck="false" autocapitalize="off" class="mono" maxlength="200" placeholder=${B.baseHint}></label>
        <span class="mute small">${B.worktreeText}</span></div></details>`:i}
      <div class="say" @dragover=${e=>e.preventDefault()} @drop=${e=>{e.preventDefault(),this.#d(e.dataTransfer?.files??[])}}>
        <div class="head"><label for="say">${B.prompt}</label><button type="button" class="ghost icon" ?disabled=${t} aria-label=${S.session.attach} title=${S.session.attach} @click=${()=>this.renderRoot.querySelector(`#files`)?.click()}>${p(`plus`)}</button></div>
        <input id="files" type="file" hidden multiple accept=${oi.join(`,`)} @change=${e=>{let t=e.target;this.#d(t.files??[]),t.value=``}}>
        ${this.shots.length?c`<div class="shots">${this.shots.map((e,t)=>c`<figure><img src=${e.url} alt=${S.session.image}><button type="button" class="icon" aria-label=${S.session.removeImage} @click=${()=>{URL.revokeObjectURL(e.url),this.shots=this.shots.filter((e,n)=>n!==t)}}>${p(`close`,12)}</button></figure>`)}</div>`:i}
        <textarea id="say" name="prompt" rows="3" dir="auto" ?disabled=${t} placeholder=${B.optional} aria-describedby="say-hint" @keydown=${this.#f} @paste=${e=>{let t=ci(e);t.length&&(e.preventDefault(),this.#d(t))}}></textarea>
        <span id="say-hint" class="mute small">${B.promptHint}</span></div>
      <label class="field">${B.name}<input name="title" ?disabled=${t} autocomplete="off" maxlength="200" placeholder=${B.nameHint}></label>`}#l(e,t){let n=hi[e.name]??_(e.name);return t?i:c`<div class="asleep"><p class="mute">${V.asleep(n)}</p><button type="button" id="wake" @click=${()=>void this.#h(e,n)}>${V.wake}</button></div>`}#u(){let e=this.problem;return e?c`<div class="note danger problem" role="alert"><p><bdi>${te(e.words)}</bdi></p>
      ${e.stderr?c`<p class="strong" id="said">${B.said}</p><pre tabindex="0" role="region" aria-labelledby="said">${te(e.stderr)}</pre>`:i}
      ${e.fix?c`<p>${e.fix}</p>`:i}</div>`:i}#d(e){si(e,e=>{this.shots=[...this.shots,e]})&&(this.problem={words:S.session.imageTooBig})}#f;#p(e,t){let n=t=>String(e.get(t)??``).trim();if(t.kind===`preset`&&this.old)return null;if(t.kind===`runtime`&&this.old&&Ci(t.runtime)){let e=this.picked;return e&&{runtime_id:t.runtime.runtime_id,native_id:e.native_id,...e.cwd?{cwd:e.cwd}:{}}}let r=(this.renderRoot.querySelector(`plexus-folder-field`)?.path??``).trim();return{...t.kind===`runtime`?{runtime_id:t.runtime.runtime_id}:{start:t.kind===`preset`?{preset:t.agent.name}:{dialect:n(`dialect`),command:mi(n(`command`))}},...r?{cwd:r}:{},...n(`title`)?{title:n(`title`)}:{},...n(`branch`)?{worktree:{branch:n(`branch`),...n(`base`)?{base:n(`base`)}:{}}}:{}}}async#m(e){e.preventDefault();let t=e.target,n=this.#a();if(this.#e||!n)return;let r=new FormData(t),i=this.#p(r,n);if(!i)return;let a=`native_id`in i;if(a&&this.picked?.session_id){this.#_(this.picked.session_id);return}let o=JSON.stringify(i);this.#n.body!==o&&(this.#n={body:o,key:wi()});let{key:s}=this.#n,c=new AbortController;this.#e=c;let l=setTimeout(()=>c.abort(new DOMException(``,`TimeoutError`)),gi),u=n.kind===`runtime`?``:n.kind===`preset`?hi[n.agent.name]??n.agent.name:mi(String(r.get(`command`)??``))[0]??``;this.#t=this.#i(),this.problem=null,this.stage=u?B.starting(_(u)):B.opening;let d=``;try{let e=e=>({headers:{"Idempotency-Key":`${s}${e}`},signal:c.signal});d=(await b.http(`POST`,`/v1/sessions`,i,e(``))).session_id;let t=String(r.get(`prompt`)??``).trim();!a&&(t||this.shots.length)&&await b.http(`POST`,`/v1/sessions/${encodeURIComponent(d)}/prompt`,li(t,this.shots),e(`-prompt`)),this.#_(d)}catch(e){this.problem=d?{words:B.unsent(h(e))}:this.#g(e),d||(this.#n={body:``,key:``})}finally{clearTimeout(l),[this.#e,this.#t]=[null,null],this.stage=``}}async#h(e,t){if(this.#e)return;let n=new AbortController;this.#e=n;let r=setTimeout(()=>n.abort(new DOMException(``,`TimeoutError`)),gi);this.#t=this.#i(),[this.problem,this.stage]=[null,B.starting(t)];let i=``,a=!1;try{let t=this.folder??this.recent[0]?.path??this.home;i=(await b.http(`POST`,`/v1/runtimes`,{preset:e.name,...t?{cwd:t}:{}})).runtime_id;let r=`/v1/runtimes/${encodeURIComponent(i)}`,o;for(;(o=await b.http(`GET`,r,void 0,{signal:n.signal})).state!==`ready`||b.runtimes.value.get(i)?.state!==`ready`;){if(o.state===`exited`){this.problem={words:B.failed(o.problem??``),...o.stderr_tail?{stderr:o.stderr_tail}:{},fix:B.fixStart};return}await new Promise(e=>{setTimeout(e,_i)})}a=!0,this.chosen=`runtime:${i}`,Ci(o)||([this.old,this.problem]=[!1,{words:V.untold}])}catch(e){this.problem=this.#g(e)}finally{clearTimeout(r),i&&!a&&b.http(`DELETE`,`/v1/runtimes/${encodeURIComponent(i)}`).catch(()=>{}),[this.#e,this.#t]=[null,null],this.stage=``,a&&this.updateComplete.then(()=>this.renderRoot.querySelector(`plexus-past`)?.focus())}}#g(e){if(e instanceof DOMException&&e.name===`AbortError`)return y(B.stopped),{words:B.stopped};let t=e instanceof x&&typeof e.problem.stderr==`string`?e.problem.stderr:``,n=e instanceof x&&(e.code===`runtime_not_started`||e.code===`runtime_refused`);return{words:B.failed(h(e)),...t?{stderr:t}:{},...n?{fix:B.fixStart}:{}}}#_(e){this.dispatchEvent(new CustomEvent(`done`)),b.go({page:`session`,session_id:e})}};v([n()],H.prototype,`agents`,void 0),v([n()],H.prototype,`recent`,void 0),v([n()],H.prototype,`home`,void 0),v([n()],H.prototype,`folder`,void 0),v([n()],H.prototype,`chosen`,void 0),v([n()],H.prototype,`shots`,void 0),v([n()],H.prototype,`stage`,void 0),v([n()],H.prototype,`problem`,void 0),v([n()],H.prototype,`old`,void 0),v([n()],H.prototype,`picked`,void 0),H=v([u(`plexus-new-session`)],H);var U=S.shell.inbox,Ti=class extends f{constructor(...e){super(...e),this.request=``,this.#e=!1,this.#t=!1}#e;#t;static{this.styles=[...[f.styles].flat(),_e,a`
    :host { height: 100%; min-height: 0; display: flex; flex-direction: column; }
    .page { width: 100%; max-width: 820px; overflow-y: auto; box-sizing: border-box; }
    plexus-requests { flex: 1 1 0; }
    h1 { flex: none; }
    .count { flex: 0 1 auto; min-width: 0; overflow: hidden; text-overflow: ellipsis; color: var(--fg-mute); font-size: var(--t-s); }
    .first { padding: var(--s5); max-width: 660px; margin: 0 auto; } .first p { margin: 4px 0 var(--s4); }
    @media (max-width: 599px) { .first { padding: var(--s4); } }
  `]}disconnectedCallback(){super.disconnectedCallback(),this.#t=!1}render(){let e=[...b.requests.value.values()],t=e.filter(e=>e.state===`open`).length;return t&&(this.#e=!0),e.length||(this.#e=!1),this.request?c`<div class="page"><header><a class="btn ghost" href="#/inbox">${p(`back`)}${U.title}</a><h1 class="sr" tabindex="-1">${U.title}</h1></header><h2 class="sr">${U.open}</h2>
        <plexus-request .request_id=${this.request}></plexus-request></div>`:t>0||this.#e&&this.#n()?c`<plexus-requests><h1 slot="title" tabindex="-1">${U.title}</h1>${t?c`<span slot="title" class="count" id="count">${U.waits(t)}</span>`:i}</plexus-requests>`:(b.loaded.value&&!e.length&&Si()&&(this.#t=!0),c`<div class="page">
      <header><h1 tabindex="-1">${U.title}</h1>${b.may(`prompt`)&&!this.#t?c`<button class="primary" id="new" @click=${yi}>${p(`plus`)}${S.shell.sessions.new}</button>`:i}</header>
      ${this.#t?c`<section class="first panel" aria-labelledby="first"><h2 id="first">${S.shell.newSession.first}</h2><p class="soft">${S.shell.newSession.firstText}</p><plexus-new-session></plexus-new-session></section>`:b.loaded.value?pe(`check`,U.none,U.noneText):se()}
    </div>`)}#n(){return b.now.value,this.renderRoot.querySelector(`plexus-requests`)?.shadowRoot?.querySelector(`[role="row"]`)!=null}};v([s()],Ti.prototype,`request`,void 0),Ti=v([u(`plexus-inbox`)],Ti);var Ei=[`none`,`vscode`,`zed`,`cursor`],Di=`plexus.editor`,Oi=e=>Ei.find(t=>t===e)??`none`;function ki(){try{return Oi(localStorage.getItem(Di))}catch{return`none`}}var Ai=d(ki());function ji(e){let t=Oi(e);Ai.value=t;try{t===`none`?localStorage.removeItem(Di):localStorage.setItem(Di,t)}catch{}}function Mi(e,t=Ai.value){return t===`none`||!e.startsWith(`/`)?``:`${t}://file${e.split(`/`).map(encodeURIComponent).join(`/`)}`}var Ni=(function(){let e=typeof document<`u`&&document.createElement(`link`).relList;return e&&e.supports&&e.supports(`modulepreload`)?`modulepreload`:`preload`})(),Pi=function(e){return`/`+e},Fi={},Ii=function(e){return e.pathname.endsWith(`.css`)},Li=function(e,t,n){if(t in e)return e[t];let r=n();if(!r){e[t]=void 0;return}let i=r.then(()=>{e[t]=void 0},n=>{throw e[t]=void 0,n});return e[t]=i,i},W=function(e,t,n){let r=Promise.resolve();if(t&&t.length>0){let e,i=document.querySelector(`meta[property=csp-nonce]`),a=i?.nonce||i?.getAttribute(`nonce`);function o(e){return Promise.all(e.map(e=>Promise.resolve(e).then(e=>({status:`fulfilled`,value:e}),e=>({status:`rejected`,reason:e}))))}function s(e){return import.meta.resolve?new URL(import.meta.resolve(e)):new URL(e,import.meta.url)}r=o(t.map(t=>{t=Pi(t,n);let r=s(t),i=Ii(r);return Li(Fi,r.href,()=>{if(e===void 0){e={all:new Set,styles:new Set};let t=document.getElementsByTagName(`link`);for(let n=t.length-1;n>=0;n--){let r=t[n];e.all.add(r.href),r.rel===`stylesheet`&&e.styles.add(r.href)}}if((i?e.styles:e.all).has(r.href))return;let t=document.createElement(`link`);if(t.rel=i?`stylesheet`:Ni,i||(t.as=`script`),t.crossOrigin=``,t.href=r.href,a&&t.setAttribute(`nonce`,a),document.head.appendChild(t),i)return new Promise((e,n)=>{let i=a=>{t.removeEventListener(`load`,i),t.removeEventListener(`error`,i),a.type===`error`?n(Error(`Unable to preload CSS for ${r}`)):e(a)};t.addEventListener(`load`,i),t.addEventListener(`error`,i)})})}).filter(e=>e!==void 0))}function i(e){let t=new Event(`vite:preloadError`,{cancelable:!0});if(t.payload=e,window.dispatchEvent(t),!t.defaultPrevented)throw e}return r.then(t=>{for(let e of t||[])e.status===`rejected`&&i(e.reason);return e().catch(i)})},G=S.shell.sessions,Ri=e=>`/v1/sessions/${encodeURIComponent(e.session_id)}`;async function zi(e){let t=await We(G.renameTitle,G.newName,e.title??``);t?.trim()&&await be(()=>b.http(`PATCH`,Ri(e),{title:t.trim()}))}async function Bi(e,t=!e.archived){await be(()=>b.http(`PATCH`,Ri(e),{archived:t}).then(()=>!0))&&(le(t?G.archived:G.unarchived,{tone:`ok`,act:{label:G.undo,run:()=>void Bi(e,!t)}}),t&&e.project?.worktree&&b.may(`admin`)&&await W(async()=>{let{offerRemoval:e}=await import(`./worktree-D2Z7dDsC.js`);return{offerRemoval:e}},__vite__mapDeps([0,1,2,3,4])).then(({offerRemoval:t})=>t(e)).catch(()=>{}))}var Vi=e=>{let t=b.runtimes.peek().get(e.runtime_id)?.capabilities??[];return e.state!==`exited`&&(t.includes(`mcp_list`)||t.includes(`skills_list`))},Hi=e=>{dispatchEvent(new CustomEvent(`plexus-share`,{detail:e.session_id}))};async function Ui(e){if(!await Ue(G.removeTitle,G.removeText,G.removeDo,!0)||!await be(()=>b.http(`DELETE`,Ri(e)).then(()=>!0)))return;let t=b.route.peek();t.page===`session`&&t.session_id===e.session_id&&b.go({page:`sessions`})}async function Wi(e,t){let n=await be(async()=>(await b.fetch(`${Ri(e)}/export?format=${t}`,{accept:`*/*`})).blob());if(!n)return;let r=document.createElement(`a`);r.href=URL.createObjectURL(n),r.download=`${_(e.title).replace(/[^\p{L}\p{N}_-]+/gu,`-`).slice(0,60)||e.session_id}.${t}`,r.click(),setTimeout(()=>URL.revokeObjectURL(r.href),6e4)}function Gi(e){let t=e.state===`running`||e.state===`waiting`,n=b.may(`prompt`),r=[];n&&(r.push({label:G.rename,icon:`pencil`,run:()=>void zi(e)},{label:e.archived?G.unarchive:G.archive,icon:`archive`,run:()=>void Bi(e)}),t&&r.push({label:G.cancelRun,icon:`stop`,separate:!0,run:()=>void be(()=>b.http(`POST`,`${Ri(e)}/cancel`,{}))}),e.state!==`exited`&&r.push({label:G.restartRun,icon:`restart`,separate:!t,run:()=>void be(()=>b.http(`POST`,`${Ri(e)}/restart`,{}))})),n&&Vi(e)&&r.push({label:G.abilities,icon:`info`,separate:!0,run:()=>{dispatchEvent(new CustomEvent(`plexus-abilities`,{detail:e.session_id}))}}),b.me.peek()?.kind!==`share`&&r.push({label:G.usage,icon:`usage`,separate:!0,href:b.href({page:`usage`,session_id:e.session_id})});let i=b.me.peek()?.kind===`share`?``:Mi(e.cwd??``);i&&r.push({label:G.inEditor,icon:`folder`,href:i}),r.push({label:G.copyLink,icon:`link`,separate:b.me.peek()?.kind===`share`,run:()=>void ye(`${location.origin}/${b.href({page:`session`,session_id:e.session_id})}`)}),b.may(`admin`)&&r.push({label:G.share,icon:`share`,run:()=>Hi(e)});for(let[t,n]of Object.entries(G.exports))r.push({label:G.exportAs(n),icon:`download`,separate:t===`md`,run:()=>void Wi(e,t)});return n&&r.push({label:G.remove,icon:`trash`,danger:!0,separate:!0,run:()=>void Ui(e)}),r}var K=S.shell.abilities,Ki=8,qi={ready:`ok`,error:`danger`,connecting:`warn`},Ji=class extends f{constructor(...e){super(...e),this.session=``,this.servers={phase:`loading`},this.skills={phase:`loading`},this.q=``,this.#e=e=>{[this.session,this.q]=[e.detail,``],this.#i()},this.#i=()=>{let e=this.session,t=b.runtimes.peek().get(b.sessions.peek().get(e)?.runtime_id??``)?.capabilities??[],n=async(t,n,r)=>{if(!t)r({phase:`unsupported`});else{r({phase:`loading`});try{let t=await b.http(`GET`,`/v1/sessions/${encodeURIComponent(e)}/${n}`);e===this.session&&r({phase:`loaded`,it:t})}catch(t){e===this.session&&r({phase:`failed`,problem:h(t)})}}};n(t.includes(`mcp_list`),`mcp`,e=>{this.servers=e}),n(t.includes(`skills_list`),`skills`,e=>{this.skills=e})}}#e;static{this.styles=[...[f.styles].flat(),a`
    section { display: flex; flex-direction: column; gap: var(--s2); min-width: 0; }
    .top { display: flex; align-items: center; gap: 8px; }
    .top .n { color: var(--fg-mute); font-size: var(--t-s); }
    ul { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg); }
    li { display: flex; flex-direction: column; gap: 2px; padding: 9px 12px; min-width: 0; }
    li + li { border-top: 1px solid var(--line); }
    .row { display: flex; align-items: center; gap: 8px; min-width: 0; }
    .row .grow { font-weight: 550; }
    .about, .path { font-size: var(--t-s); overflow-wrap: anywhere; }
    .about { color: var(--fg-soft); } .path { color: var(--fg-mute); }
    .bad { color: var(--danger); }
    .quiet { padding: 14px 12px; border: 1px dashed var(--line-strong); border-radius: var(--r-m); color: var(--fg-soft); }
    .find { position: relative; }
    .find svg { position: absolute; left: 10px; top: 50%; transform: translateY(-50%); color: var(--fg-mute); pointer-events: none; }
    .find input { padding-left: 32px; }
  `]}connectedCallback(){super.connectedCallback(),window.addEventListener(`plexus-abilities`,this.#e)}disconnectedCallback(){super.disconnectedCallback(),window.removeEventListener(`plexus-abilities`,this.#e)}render(){return c`<plexus-dialog heading=${K.title} .open=${this.session!==``} ?reading=${!0} @close=${()=>{this.session=``}}>
      <section><div class="top"><h3>${K.servers}</h3></div>${this.#t(this.servers,K.noServers,e=>this.#n(e))}</section>
      <section><div class="top"><h3>${K.skills}</h3></div>${this.#t(this.skills,K.noSkills,e=>this.#r(e))}</section>
    </plexus-dialog>`}#t(e,t,n){return e.phase===`loading`?c`<p class="quiet" role="status">${K.asking}</p>`:e.phase===`unsupported`?c`<p class="quiet"><span class="strong">${t}</span><br>${K.notTold}</p>`:e.phase===`failed`?c`<p class="note danger" role="alert">${t}: ${e.problem}</p><div><button type="button" @click=${this.#i}>${K.again}</button></div>`:n(e.it)}#n(e){let t=m(e.servers);return t.length?c`<ul>${t.map(e=>c`<li data-server=${e.id}><div class="row"><bdi class="grow cut">${_(e.id)}</bdi>
        ${e.tools===void 0?i:c`<span class="path">${K.tools(e.tools)}</span>`}
        <span class="chip ${qi[e.state]??``}">${K.states[e.state]??_(e.state)}</span></div>
        <span class="path">${_(e.transport)}${e.source?` · ${_(e.source)}`:``}</span>
        ${e.last_error?c`<bdi class="about bad">${_(e.last_error)}</bdi>`:i}</li>`)}</ul>
      ${e.truncated?c`<p class="small mute">${K.more}</p>`:i}`:c`<p class="quiet">${K.emptyServers}</p>`}#r(e){let[t,n,r]=[m(e.skills),m(e.errors),this.q.toLowerCase().split(/\s+/).filter(Boolean)],a=t.filter(e=>r.every(t=>`${e.name} ${e.description} ${e.path}`.toLowerCase().includes(t)));return!t.length&&!n.length?c`<p class="quiet">${K.emptySkills}</p>`:c`${t.length>Ki?c`<div class="find">${p(`search`)}<input type="search" aria-label=${K.find} placeholder=${K.findHint} autocomplete="off" spellcheck="false" .value=${this.q} @input=${e=>{this.q=e.target.value}}></div>`:i}
      ${a.length||n.length?c`<ul>${a.map(e=>c`<li data-skill=${e.id}><div class="row"><bdi class="grow cut">${_(e.name)}</bdi><span class="chip">${K.scopes[e.scope]??_(e.scope)}</span></div>
          <bdi class="about">${te(ne(e.description))}</bdi>${e.path?c`<bdi class="path">${_(e.path)}</bdi>`:i}</li>`)}
        ${r.length?i:n.map(e=>c`<li><bdi class="path">${_(e.path)}</bdi><bdi class="about bad">${_(e.message)}</bdi></li>`)}</ul>`:c`<p class="quiet">${K.noneFound}</p>`}
      ${e.truncated?c`<p class="small mute">${K.more}</p>`:i}`}#i};v([n()],Ji.prototype,`session`,void 0),v([n()],Ji.prototype,`servers`,void 0),v([n()],Ji.prototype,`skills`,void 0),v([n()],Ji.prototype,`q`,void 0),Ji=v([u(`plexus-abilities`)],Ji);var Yi=S.shell.share,Xi=class extends f{constructor(...e){super(...e),this.session=``,this.url=``,this.problem=``,this.#e=e=>{this.session=e.detail,this.url=``,this.problem=``}}#e;static{this.styles=[...[f.styles].flat(),a`
    form { display: contents; } .actions { display: flex; justify-content: flex-end; gap: var(--s2); }
    .url { display: flex; gap: var(--s2); } .url input { font-family: var(--mono); }
  `]}connectedCallback(){super.connectedCallback(),window.addEventListener(`plexus-share`,this.#e)}disconnectedCallback(){super.disconnectedCallback(),window.removeEventListener(`plexus-share`,this.#e)}render(){return c`<plexus-dialog heading=${Yi.title} .open=${this.session!==``} @close=${()=>{this.session=``}}>
      ${this.url?c`<p class="soft">${Yi.done}</p><div class="url"><input readonly aria-label=${Yi.link} .value=${this.url} @focus=${e=>e.target.select()}>
          <button class="primary" @click=${()=>void ye(this.url)}>${p(`copy`)}${S.common.copy}</button></div>`:c`<form @submit=${e=>void this.#t(e)}><p class="soft">${Yi.text}</p>
          <label class="field">${Yi.hours}<select name="hours">${Yi.choices.map(([e,t])=>c`<option value=${e} ?selected=${e===24}>${t}</option>`)}</select></label>
          ${this.problem?c`<p class="note danger" role="alert">${this.problem}</p>`:i}
          <div class="actions"><button type="button" @click=${()=>{this.session=``}}>${S.common.cancel}</button><button class="primary">${Yi.make}</button></div></form>`}
    </plexus-dialog>`}async#t(e){e.preventDefault();let t=Number(new FormData(e.target).get(`hours`));try{this.url=(await b.http(`POST`,`/v1/sessions/${encodeURIComponent(this.session)}/shares`,{hours:t})).url}catch(e){this.problem=S.shell.failed(h(e))}}};v([n()],Xi.prototype,`session`,void 0),v([n()],Xi.prototype,`url`,void 0),v([n()],Xi.prototype,`problem`,void 0),Xi=v([u(`plexus-share`)],Xi);var Zi=6e4,Qi=10;function $i(e){if(e.state!==`running`||!b.live.value)return 0;let t=b.news.value.get(e.session_id)??Date.parse(e.updated_at),n=Math.floor((b.now.value-t)/Zi);return n>=Qi?n:0}function ea(e){let t=$i(e);return t?c`<span class="chip warn silent">${S.shell.sessions.silent(t)}</span>`:i}var q=S.shell.sessions,ta=200,na=20,ra=class extends f{constructor(...e){super(...e),this.filter=``,this.archived=!1,this.limit=ta,this.folded=cr(),this.grown=new Map,this.only=``,this.#e=()=>{}}#e;static{this.styles=[...[f.styles].flat(),_e,a`
    .tools { display: flex; gap: var(--s2); margin-bottom: var(--s4); align-items: center; flex-wrap: wrap; }
    .filter { position: relative; flex: 1 1 200px; max-width: 340px; }
    .filter svg { position: absolute; left: 10px; top: 50%; transform: translateY(-50%); color: var(--fg-mute); pointer-events: none; }
    .filter input { padding-left: 32px; }
    .seg { display: inline-flex; border: 1px solid var(--line-strong); border-radius: var(--r-s); overflow: hidden; }
    .seg button { border: 0; border-radius: 0; background: transparent; color: var(--fg-soft); }
    .seg button[aria-pressed="true"] { background: var(--bg-active); color: var(--fg); }
    .seg button:focus-visible { outline-offset: -2px; }
    .project { margin-bottom: var(--s4); }
    .project.folded { margin-bottom: 2px; } .project.folded + .project:not(.folded) { margin-top: var(--s3); }
    .project > h2 { position: sticky; top: 0; z-index: 2; display: flex; align-items: center; gap: 2px; background: var(--bg); padding: 2px 0; }
    .fold { flex: 1; min-width: 0; justify-content: flex-start; gap: 8px; min-height: 36px; padding: 0 8px 0 6px; border: 0; background: transparent; color: var(--fg); font-size: var(--t-m); font-weight: 600; }
    .fold:hover { background: var(--bg-hover); }
    .fold > svg { flex: none; color: var(--fg-mute); transition: transform 0.12s; }
    .fold[aria-expanded="false"] > svg { transform: rotate(-90deg); }
    .fold .name { flex: 0 1 auto; min-width: 40px; text-align: left; }
    .fold .root { flex: 0 100 auto; min-width: 0; color: var(--fg-mute); font-size: var(--t-s); font-weight: 400; }
    .fold .n { flex: none; color: var(--fg-mute); font-size: var(--t-s); font-weight: 450; }
    .fold .chip { flex: none; margin-left: auto; }
    .rest { margin-top: 4px; color: var(--fg-soft); }
    .narrow[aria-pressed="true"] { background: var(--bg-active); color: var(--fg); }
    .branch { flex: none; max-width: 22ch; font-weight: 500; height: 18px; }
    .branch svg { flex: none; }
    .row { position: relative; display: grid; grid-template-columns: 20px minmax(0, 1fr) auto auto; gap: 2px 10px; align-items: center; padding: 9px 6px 9px 14px; min-height: 54px; }
    .row:hover { background: var(--bg-hover); }
    .row:first-child { border-radius: inherit; } .row:last-child { border-radius: inherit; }
    .row > a { color: inherit; min-width: 0; text-decoration: none; }
    .row > a::after { content: ""; position: absolute; inset: 0; border-radius: inherit; }
    .row > a:focus-visible { outline: none; }
    .row > a:focus-visible::after { outline: var(--focus); outline-offset: -2px; border-radius: var(--r-s); }
    .title { display: flex; align-items: center; gap: 7px; font-weight: 550; min-width: 0; }
    .unread .title { font-weight: 650; }
    .new { width: 7px; height: 7px; border-radius: 50%; background: var(--accent); flex: none; }
    .sub { display: flex; gap: 6px; color: var(--fg-mute); font-size: var(--t-s); min-width: 0; white-space: nowrap; overflow: hidden; }
    .sub .agent { color: var(--fg-soft); flex: none; }
    .sub .folder { direction: rtl; text-align: left; }
    .doing { color: var(--fg-soft); }
    .side { display: flex; align-items: center; gap: 8px; font-size: var(--t-s); color: var(--fg-mute); }
    .side .age { min-width: 44px; text-align: right; }
    .menu { position: relative; z-index: 1; }
    .who { display: inline-flex; gap: 4px; align-items: center; }
    @media (pointer: coarse) { .fold, .narrow, .rest { min-height: 44px; } .narrow { min-width: 44px; } }
    @media (max-width: 599px) { .fold .root { display: none; } .branch { max-width: 14ch; } .row { padding-right: 0; } .side .who, .side .q { display: none; } .side .age { min-width: 0; } .filter { max-width: none; } }
  `]}connectedCallback(){super.connectedCallback();let e=()=>[...this.renderRoot.querySelectorAll(`.fold, .row > a, .rest`)],t=t=>()=>{let n=e(),r=n.indexOf(Ie());n[r<0?t>0?0:n.length-1:Math.max(0,Math.min(n.length-1,r+t))]?.focus()},n=e=>()=>{let t=Ie()?.dataset?.session,n=t?b.sessions.peek().get(t):void 0;n&&b.may(`prompt`)&&e(n)};this.#e=ze([{key:`j`,run:t(1)},{key:`k`,run:t(-1)},{key:`ArrowDown`,run:t(1)},{key:`ArrowUp`,run:t(-1)},{key:`e`,run:n(e=>Bi(e))},{key:`r`,run:n(e=>zi(e))},{key:`ArrowLeft`,run:()=>this.#r(!0)},{key:`ArrowRight`,run:()=>this.#r(!1)},{key:`p`,run:()=>{let e=this.#t();(e||this.only)&&this.#a(this.only?``:e)}},{key:`/`,run:()=>this.renderRoot.querySelector(`input`)?.focus()}])}disconnectedCallback(){super.disconnectedCallback(),this.#e()}#t(){return(Ie()?.closest(`.project`))?.dataset.project??``}#n(e,t=!this.folded.has(e)){let n=new Set(this.folded);n.delete(e),t&&n.add(e),this.folded=n,lr(n)}#r(e){let t=Ie(),n=t?.closest(`.project`),r=n?.querySelector(`.fold`),i=n?.dataset.project;if(!t||!r||i===void 0)return;let a=r.getAttribute(`aria-expanded`)===`true`;t===r?e===a?this.#n(i,e):e||n?.querySelector(`.row > a`)?.focus():e&&r.focus()}#i(e,t){this.grown=new Map(this.grown).set(e,t+ta),this.limit+=ta,this.updateComplete.then(()=>{[...this.renderRoot.querySelectorAll(`.project`)].find(t=>t.dataset.project===e)?.querySelectorAll(`.row > a`)[t]?.focus()})}#a(e){let t=this.only||e;[this.only,this.limit]=[e,ta],this.updateComplete.then(()=>{[...this.renderRoot.querySelectorAll(`.project`)].find(e=>e.dataset.project===t)?.querySelector(`.fold`)?.focus()})}#o(e){let t=this.filter.trim().toLowerCase(),n=b.news.value,r=e=>`${e.title??``} ${e.runtime_id} ${e.project?.name??``} ${e.project?.branch??``} ${e.project?.worktree??``} ${e.cwd} ${q.state[e.state]??``} ${e.doing??``}`;return or([...b.sessions.value.values()].filter(e=>!!e.archived===this.archived).filter(e=>!this.only||ir(e).key===this.only).filter(e=>!t||r(e).toLowerCase().includes(t)),t=>e.get(t.session_id)??t.open_requests,e=>e.run_id&&e.prompted_at?Date.parse(e.prompted_at):n.get(e.session_id)??Date.parse(e.updated_at))}#s(){let e=new Map;for(let t of b.requests.value.values())t.state===`open`&&e.set(t.session_id,(e.get(t.session_id)??0)+1);return e}render(){let e=this.#s(),t=this.#o(e),n=e=>!this.filter.trim()&&this.only!==e.key&&this.folded.has(e.key),r=this.limit,a=0,s=t.map(e=>{let i=n(e),o=t.length===1?r:Math.min(r,this.grown.get(e.key)??na),s=i?[]:e.sessions.slice(0,o);return!i&&!s.length&&(a+=e.sessions.length),r-=s.length,{group:e,rows:s,folded:i}}).filter(({rows:e,folded:t})=>e.length||t);return c`<div class="page">
      <header><h1 tabindex="-1">${q.title}</h1>
        ${b.may(`prompt`)?c`<button class="primary" id="new" @click=${yi}>${p(`plus`)}${q.new}</button>`:i}</header>
      <div class="tools">
        <div class="filter">${p(`search`)}<input type="search" aria-label=${q.filter} placeholder=${q.filterHint} .value=${this.filter} @input=${e=>{this.filter=e.target.value,this.limit=ta}}
          @keydown=${e=>{(e.key===`ArrowDown`||e.key===`Enter`)&&(e.preventDefault(),this.renderRoot.querySelector(`.row > a`)?.focus())}}></div>
        <div class="seg" role="group" aria-label=${q.which}>${[!1,!0].map(e=>c`<button aria-pressed=${this.archived===e} @click=${()=>{this.archived=e}}>${e?q.showArchived:q.showActive}</button>`)}</div>
      </div>
      ${s.length?o(s,({group:e})=>e.key,({group:t,rows:n,folded:r})=>this.#l(t,n,r,e)):this.#c()}
      ${a?c`<p><button id="more" @click=${()=>{this.limit+=ta}}>${S.common.more} (${a})</button></p>`:i}
      <plexus-share></plexus-share><plexus-abilities></plexus-abilities>
    </div>`}#c(){return b.loaded.value?this.filter||this.only?pe(`search`,q.noneFound,q.noneFoundText,c`<button @click=${()=>{[this.filter,this.only]=[``,``]}}>${q.clear}</button>`):this.archived?pe(`archive`,q.noneArchived,q.noneArchivedText):pe(`sessions`,q.none,q.noneText,ge(q.noneCommand)):se()}#l(e,t,n,r){let{key:a,name:s,root:l,sessions:u,waiting:d}=e,f=this.only===a,m=f?q.allProjects(s):q.only(s);return c`<section class="project ${n?`folded`:``}" data-project=${a}>
      <h2><button class="fold" aria-expanded=${!n} @click=${()=>this.#n(a)}>${p(`down`,14)}<bdi class="name cut">${s}</bdi><span class="root cut" aria-hidden="true"><bdi>${l}</bdi></span>
        <span class="n">${q.count(u.length)}</span>${d?c`<span class="chip warn">${q.requests(d)}</span>`:i}</button>
        <button class="ghost icon narrow" aria-pressed=${f} aria-label=${m} title=${m} @click=${()=>this.#a(f?``:a)}>${p(`only`,14)}</button></h2>
      ${n?i:c`<ul class="list">${o(t,e=>e.session_id,e=>this.#u(e,r.get(e.session_id)??e.open_requests))}</ul>
        ${t.length<u.length?c`<button class="ghost rest" @click=${()=>this.#i(a,t.length)}>${q.more(u.length-t.length,s)}</button>`:i}`}</section>`}#u(e,t){let n=b.unread.value.has(e.session_id),r=_(e.title)||S.common.untitled,a=b.news.value.get(e.session_id)??Date.parse(e.updated_at),o=b.viewers.value.get(e.session_id)??[],s=_(e.doing??``),{branch:l,worktree:u,below:d}=ir(e),f=u?q.worktree(u):q.branch(l);return c`<li class="row ${n?`unread`:``}">
      <plexus-state .state=${e.state} bare></plexus-state>
      <a href=${b.href({page:`session`,session_id:e.session_id})} data-session=${e.session_id}>
        <span class="title"><bdi class="cut">${r}</bdi>${n?c`<span class="new" role="img" aria-label=${q.unread}></span>`:i}</span>
        <span class="sub">${l?c`<span class="chip branch" title=${f}>${p(u?`folder`:`branch`,12,f)}<bdi class="cut" aria-hidden="true">${l}</bdi></span>`:i}<bdi class="agent">${_(e.runtime_id)}</bdi>${s||d?c`<span aria-hidden="true">·</span>`:i}${s?c`<bdi class="doing cut">${s}</bdi>`:c`<bdi class="cut">${d}</bdi>`}</span></a>
      <span class="side">
        ${e.linked?c`<span class="mute" title=${S.common.linked}>${p(`terminal`,14,S.common.linked)}</span>`:i}
        ${o.length?c`<span class="who" title=${q.lookers(o.map(e=>_(e.name)).join(`, `))}>${p(`eye`,14,q.lookers(o.map(e=>_(e.name)).join(`, `)))}${o.length}</span>`:i}
        ${e.queue?.length?c`<span class="chip q">${q.queued(e.queue.length)}</span>`:i}
        ${ea(e)}
        ${t?c`<span class="chip warn">${q.requests(t)}</span>`:i}
        <span class="age"><plexus-age .at=${a} short></plexus-age></span></span>
      <plexus-menu class="menu" label=${q.menu(r)} .items=${Gi(e)}></plexus-menu></li>`}};v([n()],ra.prototype,`filter`,void 0),v([n()],ra.prototype,`archived`,void 0),v([n()],ra.prototype,`limit`,void 0),v([n()],ra.prototype,`folded`,void 0),v([n()],ra.prototype,`grown`,void 0),v([n()],ra.prototype,`only`,void 0),ra=v([u(`plexus-sessions`)],ra);var ia;function aa(){ia??=W(()=>import(`./conversation-BhGXNkxX.js`),__vite__mapDeps([5,2,3,1,4,6,7,8,9,10])).catch(()=>{ia=void 0})}var oa=class extends f{constructor(...e){super(...e),this.sessionId=``,this.#e=[]}#e;static{this.styles=[...[f.styles].flat(),a`
    :host { height: 100%; min-height: 0; }
    plexus-session { height: 100%; min-height: 0; }
  `]}connectedCallback(){super.connectedCallback(),aa();let e=e=>{let t=b.sessions.peek().get(this.sessionId),n=e.detail;t&&{rename:zi,archive:Bi,share:Hi}[n]?.(t)};window.addEventListener(`plexus-session-do`,e),this.#e=[()=>window.removeEventListener(`plexus-session-do`,e),ze([{key:`u`,run:()=>b.go({page:`sessions`})},{key:`g c`,run:()=>{b.me.peek()?.kind!==`share`&&b.go({page:`changes`,session_id:this.sessionId})}}]),t(()=>{b.now.value,!document.hidden&&b.unread.value.has(this.sessionId)&&queueMicrotask(()=>b.seen(this.sessionId))})],queueMicrotask(()=>b.seen(this.sessionId))}disconnectedCallback(){super.disconnectedCallback();for(let e of this.#e)e()}render(){return c`<plexus-session session-id=${this.sessionId} .at=${this.at}></plexus-session><plexus-share></plexus-share><plexus-abilities></plexus-abilities>`}};v([s()],oa.prototype,`sessionId`,void 0),v([s({type:Number})],oa.prototype,`at`,void 0),oa=v([u(`plexus-session-page`)],oa);var J=S.notify,sa=8e3,Y=d({is:`unknown`,words:``,settings:{}}),ca=()=>/iPhone|iPad|iPod/.test(navigator.userAgent)||navigator.userAgent.includes(`Mac`)&&navigator.maxTouchPoints>1,la=()=>matchMedia(`(display-mode: standalone)`).matches||navigator.standalone===!0;function ua(){return window.isSecureContext?ca()&&!la()&&!(`PushManager`in window)?J.needsHome:!(`serviceWorker`in navigator)||!(`PushManager`in window)||!(`Notification`in window)?J.noPush:``:J.needsHttps}async function da(){let e=new Promise(e=>setTimeout(()=>e(null),sa));return Promise.race([navigator.serviceWorker.ready,e])}function fa(e){let t=atob(e.replace(/-/g,`+`).replace(/_/g,`/`));return Uint8Array.from(t,e=>e.charCodeAt(0))}var pa=(e,t)=>{let n=e?new Uint8Array(e):null;return n!==null&&n.length===t.length&&n.every((e,n)=>e===t[n])};async function ma(){if(b.me.peek()?.kind===`share`){Y.value={is:`unable`,words:J.share,settings:{}};return}let e=ua(),t;try{t=await b.http(`GET`,`/v1/push`)}catch(t){let n=t instanceof x&&(t.status===404||t.status===405)?J.noGateway:J.failed(h(t));Y.value={is:`unable`,words:e||n,settings:{}};return}let n=t.settings??{};if(e)Y.value={is:`unable`,words:e,settings:n};else if(Notification.permission===`denied`)Y.value={is:`blocked`,words:J.blocked,settings:n};else{let e=async()=>{let e=await(await navigator.serviceWorker.getRegistration())?.pushManager?.getSubscription().catch(()=>null);return!!e&&pa(e?.options.applicationServerKey,fa(t.public_key))},r=await e();Notification.permission===`granted`&&(t.lapsed||t.subscribed&&!r)&&await ha(t.public_key,!0)===``&&(t={...t,subscribed:!0},r=await e()),Y.value={is:r&&t.subscribed?`on`:`off`,words:r&&!t.subscribed?J.elsewhere:``,settings:n}}}async function ha(e,t){let n=await da();if(!n)return J.noWorker;try{let r=fa(e||(await b.http(`GET`,`/v1/push`)).public_key),i=await n.pushManager.getSubscription();i&&(t||!pa(i.options.applicationServerKey,r))&&(await i.unsubscribe(),i=null),i??=await n.pushManager.subscribe({userVisibleOnly:!0,applicationServerKey:r});let{endpoint:a,keys:o}=i.toJSON();await b.http(`PUT`,`/v1/push`,{endpoint:a,keys:o})}catch(e){return e instanceof x?J.failed(h(e)):J.subscribeFailed(e instanceof Error?e.message:String(e))}return``}async function ga(){let e=await Notification.requestPermission();return e===`denied`?(Y.value={...Y.peek(),is:`blocked`,words:J.blocked},J.blocked):e===`granted`?await ha(``,!1)||(await ma(),``):J.dismissed}async function _a(){try{await b.http(`DELETE`,`/v1/push`),await(await(await navigator.serviceWorker?.getRegistration())?.pushManager?.getSubscription())?.unsubscribe()}catch(e){return J.failed(h(e))}return await ma(),``}async function va(e){try{let t=await b.http(`PATCH`,`/v1/push/settings`,{...e});return Y.value={...Y.peek(),settings:{...Y.peek().settings,...e,...t?.settings??{}}},``}catch(e){return J.failed(h(e))}}async function ya(){try{return await b.http(`POST`,`/v1/push/test`,{}),``}catch(e){return J.failed(h(e))}}var ba=S.notify.offer,xa=`plexus.push-offer`,Sa=d((()=>{try{return localStorage.getItem(xa)!==null}catch{return!1}})());function Ca(e){Sa.value=e;try{e?localStorage.setItem(xa,`1`):localStorage.removeItem(xa)}catch{}}var wa=class extends f{static{this.properties={busy:{state:!0},trouble:{state:!0}}}#e=!1;constructor(){super(),this.busy=!1,this.trouble=``}static{this.styles=[...[f.styles].flat(),a`
      :host { display: block; min-width: 0; }
      section { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 12px; padding: 10px 16px; background: var(--info-wash); border-block-end: 1px solid var(--line); }
      section > svg { flex: none; color: var(--info); }
      p { flex: 1 1 14rem; min-inline-size: 0; }
      small { display: block; color: var(--fg-soft); font-size: var(--t-s); }
      .do { display: flex; flex-wrap: wrap; gap: 8px; }
      button { min-block-size: 44px; }
    `]}async#t(){this.busy=!0,this.trouble=await ga().catch(e=>S.notify.failed(e instanceof Error?e.message:String(e))),this.busy=!1,this.trouble||Ca(!1)}render(){if(!Sa.value||!b.live.value)return i;this.#e||(this.#e=!0,ma());let{is:e,words:t}=Y.value;if(e===`on`||e===`unknown`)return i;let n=e===`off`;return c`<section role="region" aria-label=${S.notify.title}>${p(`bell`,18)}
      <p>${ba.text}${n&&!this.trouble?i:c`<small role="status">${this.trouble||t}</small>`}</p>
      <span class="do">
        ${n?c`<button class="primary" data-do="on" aria-disabled=${this.busy} @click=${()=>{this.busy||this.#t()}}>${S.notify.on}</button>`:i}
        <button class="ghost" data-do="later" @click=${()=>Ca(!1)}>${ba.later}</button>
      </span></section>`}};customElements.define(`plexus-push-offer`,wa);var X=S.shell.signin,Z=S.shell.join,Ta=15,Ea=2500,Da=/^[A-Za-z0-9_-]{4,256}$/,Q=d(ka()),Oa=null;function ka(){let e=/^#(code|pair|share)=(.*)$/.exec(location.hash);if(!e)return null;history.replaceState(null,``,location.pathname);let t=decodeURIComponent(e[2]??``),n=e[1]===`share`?ae.test(t):Da.test(t);return{kind:e[1],value:n?t:``}}window.addEventListener(`hashchange`,()=>{let e=ka();e&&(Q.value=e)});var Aa=`plexus.browser`;function ja(){try{let e=localStorage.getItem(Aa)??``;return/^[0-9a-f]{32}$/.test(e)||(e=[...crypto.getRandomValues(new Uint8Array(16))].map(e=>e.toString(16).padStart(2,`0`)).join(``),localStorage.setItem(Aa,e)),{browser:e}}catch{return{}}}function Ma(){let e=navigator.userAgent,t=/Firefox/.test(e)?`Firefox`:/Edg\//.test(e)?`Edge`:/Chrom/.test(e)?`Chrome`:/Safari/.test(e)?`Safari`:`Browser`,n=/Android/.test(e)?`Android`:/iPhone/.test(e)?`iPhone`:/iPad/.test(e)?`iPad`:/Mac OS/.test(e)?`macOS`:/Windows/.test(e)?`Windows`:/Linux/.test(e)?`Linux`:``;return location.protocol===`http:`?S.shell.devices.onThis(t):n?`${t} on ${n}`:t}var Na=class extends f{constructor(...e){super(...e),this.note=``,this.bad=!1,this.busy=!1,this.join=null,this.looked=null,this.number=null,this.#e=``,this.#t=0}#e;#t;static{this.styles=[...[f.styles].flat(),_e,a`
    :host { min-height: 100dvh; display: grid; place-items: center; padding: 24px 16px; background: var(--bg); }
    .box { width: min(400px, 100%); display: flex; flex-direction: column; gap: var(--s4); }
    .top { display: flex; flex-direction: column; align-items: center; text-align: center; gap: var(--s2); margin-bottom: var(--s2); }
    .top img { width: 52px; height: 52px; border-radius: 13px; margin-bottom: var(--s2); }
    .panel { padding: var(--s5); display: flex; flex-direction: column; gap: var(--s4); }
    .command { display: flex; } .command code { flex: 1; }
    form { display: flex; flex-direction: column; gap: var(--s3); }
    details summary { cursor: pointer; color: var(--accent); font-weight: 500; min-height: 28px; list-style: none; }
    details summary::-webkit-details-marker { display: none; }
    details[open] summary { margin-bottom: var(--s3); color: var(--fg-soft); }
    .or { display: flex; flex-direction: column; gap: 4px; align-items: flex-start; }
    .number { font: 650 5.5rem/1 var(--mono); text-align: center; letter-spacing: 0.05em; padding: var(--s3) 0; font-variant-numeric: tabular-nums; }
    .code { font: 600 1.25rem/1.2 var(--mono) !important; letter-spacing: 0.12em; text-transform: uppercase; text-align: center; }
    .wait { display: flex; gap: 8px; align-items: center; justify-content: center; color: var(--fg-mute); }
    .may { display: flex; flex-wrap: wrap; gap: 6px; }
    button.primary { min-height: 38px; }
  `]}updated(){let e=Q.peek();e&&e!==Oa&&this.isConnected&&(Oa=e,queueMicrotask(()=>void this.#r(e)))}#n(e,t=!0){this.note=e,this.bad=t,e&&y(e,t)}async#r({kind:e,value:t}){if(!t)return this.#o(e===`share`?S.shell.share.bad:X.badLink);let n=Q.peek();return e===`share`?this.#l(t,n):e===`pair`?(this.#e=t,this.#d(n)):this.#c(t,n)}#i(e){return e instanceof x&&e.ours&&e.status<500}#a(e,t){this.#n(X.notYet(h(t)),!1),setTimeout(()=>{Q.peek()===e&&this.isConnected&&this.#r(e)},Ea)}async#o(e){let t=b.link.peek().phase!==`signed-out`||oe();this.join=null,Q.value=null,t?le(e,{tone:`danger`}):this.#n(e)}#s(e){if(e?.csrf)ve(String(e.csrf));else if(typeof e?.token==`string`&&ae.test(e.token))de(e.token);else throw new x(200,{detail:X.noToken});Q.value=null}async#c(e,t){this.#n(X.busy,!1);try{if((await ue())?.scopes.includes(`admin`)){Q.value=null,b.link.peek().phase===`signed-out`&&oe();return}this.#s(await g.json(`POST`,`/v1/pair`,{code:e,name:Ma(),cookie:!0,...ja()},{anonymous:!0}))}catch(e){this.#i(e)?await this.#o(X.badCode(e.message)):this.#a(t,e)}}async#l(e,t){this.#n(S.shell.share.enter,!1);try{let t=await g.json(`GET`,`/v1/me`,void 0,{anonymous:!0,headers:{Authorization:`Bearer ${e}`}});de(e);let n=t?.sessions?.[0];location.hash=n?`#/s/${encodeURIComponent(n)}`:`#/sessions`,Q.value=null}catch(e){this.#i(e)?await this.#o(S.shell.share.bad):this.#a(t,e)}}async#u(e){e.preventDefault();let t=this.renderRoot.querySelector(`#token`)?.value.trim()??``;if(!ae.test(t)){this.#n(X.badToken);return}this.busy=!0;let n={Authorization:`Bearer ${t}`};try{try{this.#s(await g.json(`POST`,`/v1/signin`,{name:Ma(),cookie:!0,...ja()},{anonymous:!0,headers:n}))}catch(e){if(!(e instanceof x)||e.status!==404&&e.status!==405)throw e;await g.json(`GET`,`/v1/me`,void 0,{anonymous:!0,headers:n}),de(t)}}catch(e){this.#n(this.#i(e)&&e.status===401?X.unknownToken:X.failed(h(e)))}finally{this.busy=!1}}async#d(e=null){this.join=`look`,this.looked=null,this.#n(``);try{this.looked=await g.json(`POST`,`/v1/pair/look`,{code:this.#e},{anonymous:!0})}catch(t){if(e&&!this.#i(t))return this.#a(e,t);this.join=`ask`,this.#n(this.#i(t)?t.status===429?t.message:Z.bad:X.failed(h(t)))}}async#f(e){e.preventDefault();let t=this.renderRoot.querySelector(`#name`)?.value.trim()||Ma(),n=++this.#t;this.busy=!0;try{let e=await g.json(`POST`,`/v1/pair`,{code:this.#e,name:t,cookie:!0},{anonymous:!0});if(e?.csrf||e?.token){this.#s(e);return}this.number=Number(e.number),this.join=`wait`,y(`${Z.number}: ${this.number}. ${Z.numberText}`,!0),await this.#p(String(e.ticket),n)}catch(e){this.join=`ask`,this.number=null,this.#n(this.#i(e)?Z.bad:X.failed(h(e)))}finally{this.busy=!1}}async#p(e,t){let n=0;for(;t===this.#t;)try{let t=await g.json(`POST`,`/v1/pair/wait`,{ticket:e,wait:Ta},{anonymous:!0,patience:25e3});if(n=0,t?.csrf||t?.token){this.#s(t),Ca(!0);return}}catch(e){if(this.#i(e)){this.join=`ask`,this.number=null,this.#n(Z.refused);return}if(n+=1,n>8)throw e;await new Promise(e=>setTimeout(e,1500))}}render(){let e=Q.value,t=this.join!==null||e?.kind===`pair`,n=this.note||Se.value;return c`<main class="box" aria-label=${t?Z.title:X.title}>
      <div class="top"><img src="/icon.svg" alt=""><h1>${t?Z.title:S.common.name}</h1>${t?i:c`<p class="soft">${X.lead}</p>`}</div>
      ${n?c`<p class="note ${this.note&&this.bad?`danger`:``}" id="note" role="status">${n}</p>`:i}
      ${t?this.#h():e&&!this.bad?i:this.#m()}
    </main>`}#m(){return c`<div class="panel">
        <div class="vstack"><p>${X.how}</p>${ge(X.command)}</div>
        <div class="or">
          <button class="link" id="have-code" @click=${()=>{this.join=`ask`,this.#n(``)}}>${X.code}</button>
          <details><summary>${X.tokenOpen}</summary><form @submit=${e=>void this.#u(e)}>
            <label class="field">${X.token}<input id="token" type="password" autocomplete="off" placeholder=${X.tokenHint}></label>
            <button class="primary" ?disabled=${this.busy}>${this.busy?X.busy:X.go}</button></form></details></div></div>`}#h(){if(this.join===`wait`)return c`<div class="panel"><p class="soft">${Z.number}</p><p class="number" id="number">${this.number}</p><p>${Z.numberText}</p><p class="wait" role="status"><plexus-state state="running" bare></plexus-state>${Z.waiting}</p></div>`;if(this.join===`ask`)return c`<div class="panel"><form @submit=${e=>{e.preventDefault(),this.#e=this.renderRoot.querySelector(`#paircode`)?.value.trim().toUpperCase()??``,this.#e&&this.#d()}}>
        <label class="field">${Z.code}<input class="code" id="paircode" autocomplete="one-time-code" autocapitalize="characters" spellcheck="false" maxlength="12" placeholder="ABCD-2345" .value=${this.#e}><span class="hint mute small">${Z.codeHint}</span></label>
        <div class="actions"><button type="button" @click=${()=>{this.join=null,this.#n(``),Q.value=null,b.link.peek().phase===`signed-out`&&oe()}}>${S.common.cancel}</button><button class="primary">${Z.next}</button></div></form></div>`;let e=this.looked;return e?c`<div class="panel"><div><h2>${Z.what(_(e.gateway?.name)||location.host)}</h2><p class="mute small">${location.host} · ${Z.version(_(e.gateway?.version))}</p></div>
      <div class="vstack"><p class="small soft">${Z.may}</p><div class="may">${(e.scopes??[]).map(e=>c`<span class="chip ${e===`admin`?`warn`:`accent`}">${S.shell.devices.scopes[e]??_(e)}</span>`)}
        ${e.approve_up_to&&e.approve_up_to!==`danger`?c`<span class="chip info">${S.shell.devices.upTo(_(e.approve_up_to))}</span>`:i}
        ${e.runtimes?.length?c`<span class="chip info">${S.shell.devices.only(e.runtimes.map(_).join(`, `))}</span>`:i}</div></div>
      <form @submit=${e=>void this.#f(e)}><label class="field">${Z.name}<input id="name" maxlength="64" autocomplete="off" .value=${Ma()}></label>
        <button class="primary" id="join" ?disabled=${this.busy}>${p(`check`)}${Z.go}</button></form></div>`:c`<div class="panel"><p class="wait" role="status">${Z.looking}</p></div>`}};v([n()],Na.prototype,`note`,void 0),v([n()],Na.prototype,`bad`,void 0),v([n()],Na.prototype,`busy`,void 0),v([n()],Na.prototype,`join`,void 0),v([n()],Na.prototype,`looked`,void 0),v([n()],Na.prototype,`number`,void 0),Na=v([u(`plexus-signin`)],Na);var $=S.shell,Pa=[`usage`,`usage`,`g u`],Fa=[`settings`,`settings`,`g ,`],Ia=[`terminals`,`terminal`,`g t`],La=[[`inbox`,`inbox`,`g i`],[`home`,`home`,`g h`],[`sessions`,`sessions`,`g s`],[`search`,`search`,`g f`],[`runtimes`,`runtimes`,`g r`],[`devices`,`devices`,`g d`]],Ra=/Mac|iPhone|iPad/.test(navigator.platform)?`⌘`:`Ctrl`,za=1500,Ba={home:()=>W(()=>import(`./home-DdT2waGH.js`),__vite__mapDeps([11,2,3,1,4,8,9])),devices:()=>W(()=>import(`./devices--VcKVrSe.js`),__vite__mapDeps([12,2,3,1,4])),runtimes:()=>W(()=>import(`./runtimes-BEJVm7K6.js`),__vite__mapDeps([13,2,3,1,4])),search:()=>W(()=>import(`./search-CmBqNqQL.js`),__vite__mapDeps([14,2,3,1,4])),terminals:()=>W(()=>import(`./terminals-BPsF_7h7.js`),__vite__mapDeps([15,2,3,1,4])),usage:()=>W(()=>import(`./usage-Do_xAPH0.js`),__vite__mapDeps([16,2,3,1,4,17,10,18])),changes:()=>W(()=>import(`./changes-C-SLOpPr.js`),__vite__mapDeps([19,2,3,20,4,7,8,21,1])),settings:()=>W(()=>import(`./settings-C0rH3Doh.js`),__vite__mapDeps([22,2,3,1,4]))},Va=new Map;function Ha(e){e in Ba&&!Va.has(e)&&Va.set(e,Ba[e]().catch(()=>{Va.delete(e)}))}var Ua=[`sessions`,`search`],Wa=9,Ga=class extends f{constructor(...e){super(...e),this.#e=()=>{},this.#t=[],this.making=!1,this.#n=()=>{b.may(`prompt`)&&(this.making=!0)},this.#r=``,this.#i=null}#e;#t;#n;#r;#i;static{this.styles=[...[f.styles].flat(),a`
    /* Above a keyboard that covers the page (see lib/keyboard.ts). */
    :host { display: block; height: calc(100dvh - var(--covered, 0px)); --rail: 232px; --bottom: 0px; }
    .frame { height: 100%; display: grid; grid-template-columns: var(--rail) minmax(0, 1fr); grid-template-rows: auto auto minmax(0, 1fr); }
    .skip { position: fixed; top: 8px; left: 8px; z-index: 70; transform: translateY(-200%); }
    .skip:focus-visible { transform: none; }

    .rail { grid-row: 1 / -1; grid-column: 1; display: flex; flex-direction: column; min-height: 0; background: var(--bg-rail); border-right: 1px solid var(--line); padding: 10px 10px max(10px, env(safe-area-inset-bottom)); }
    .brand { display: flex; align-items: center; gap: 9px; padding: 6px 8px 12px; color: var(--fg); font-weight: 650; font-size: var(--t-l); letter-spacing: -0.01em; }
    .brand:hover { text-decoration: none; }
    .brand img { width: 22px; height: 22px; border-radius: 6px; }
    .cmd { justify-content: flex-start; gap: 9px; margin-bottom: 10px; padding: 0 8px 0 9px; color: var(--fg-mute); font-weight: 450; background: var(--bg-raised); border-color: var(--line); }
    .cmd .label { min-width: 0; overflow: hidden; text-overflow: ellipsis; }
    .cmd kbd { margin-left: auto; border: 0; background: none; min-width: 0; padding: 0; }
    .rail nav ul { display: flex; flex-direction: column; gap: 1px; }
    .nav { display: flex; align-items: center; gap: 10px; min-height: 32px; padding: 0 9px; border-radius: var(--r-s); color: var(--fg-soft); font-weight: 500; }
    .nav:hover { background: var(--bg-hover); color: var(--fg); text-decoration: none; }
    .nav[aria-current="page"] { background: var(--bg-active); color: var(--fg); font-weight: 600; }
    .nav .count { margin-left: auto; min-width: 19px; height: 19px; padding: 0 6px; border-radius: 10px; display: grid; place-items: center; font-size: var(--t-xs); font-weight: 650; background: var(--accent-solid); color: var(--on-accent); font-variant-numeric: tabular-nums; }
    .nav .count.danger { background: var(--danger-solid); }
    .rail h2 { font-size: var(--t-xs); font-weight: 600; color: var(--fg-mute); padding: 18px 9px 6px; letter-spacing: 0.01em; }
    .recent { overflow: auto; min-height: 0; margin: 0 -4px; padding: 0 4px; }
    .recent .nav { min-height: 30px; font-weight: 450; gap: 9px; }
    .recent .nav .name { flex: 1; }
    .recent .nav.unread .name { font-weight: 620; color: var(--fg); }
    .foot { margin-top: auto; padding-top: 8px; display: flex; flex-direction: column; gap: 2px; }
    .link { display: flex; align-items: center; gap: 9px; padding: 6px 9px; color: var(--fg-mute); font-size: var(--t-s); }
    .link .dot { color: var(--fg-mute); }
    .link[data-phase="live"] .dot { color: var(--ok); }
    .link[data-phase="catching-up"] .dot, .link[data-phase="connecting"] .dot, .link[data-phase="reconnecting"] .dot { color: var(--warn); }
    .link[data-phase="offline"] .dot, .link[data-phase="stopped"] .dot { color: var(--danger); }
    .tools { display: flex; gap: 2px; align-items: center; }
    .tools .grow { flex: 1; }

    .top { display: none; }
    .bars { grid-column: 2; grid-row: 1; min-width: 0; }
    .bar { display: flex; align-items: center; gap: var(--s3); padding: 7px var(--s4); font-size: var(--t-s); border-bottom: 1px solid; flex-wrap: wrap; }
    .bar.stale { background: var(--warn-wash); color: var(--warn); border-color: var(--warn-line); }
    .bar.share { background: var(--info-wash); color: var(--info); border-color: var(--line); }
    .bar .words { flex: 1 1 200px; min-width: 0; }
    main { grid-column: 2; grid-row: 3; min-height: 0; min-width: 0; overflow: auto; scrollbar-gutter: stable; }
    main:focus-visible { outline: none; }
    main.session, main.inbox { overflow: hidden; scrollbar-gutter: auto; }
    .bottom { display: none; }
    .new-page { max-width: 620px; margin: 0 auto; padding: var(--s5) var(--s4) 96px; }
    .new-page h1 { margin-bottom: var(--s4); }
    .new-page h1:focus-visible { outline: none; }

    @media (max-width: 1023px) {
      :host { --rail: 60px; }
      .rail { padding-left: 8px; padding-right: 8px; align-items: stretch; }
      .brand { justify-content: center; padding: 6px 0 12px; }
      .brand .word, .nav .label, .recent, .rail h2, .link .word, .cmd kbd { display: none; }
      .cmd .label { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
      .cmd { justify-content: center; padding: 0; min-height: 40px; }
      .nav { justify-content: center; min-height: 40px; padding: 0; position: relative; }
      .nav .count { position: absolute; top: 2px; right: 0; margin: 0; min-width: 16px; height: 16px; padding: 0 4px; }
      .tools { flex-direction: column; }
      .tools .grow { display: none; }
      .link { justify-content: center; padding: 6px 0; }
    }
    @media (max-width: 599px) {
      :host { --bottom: calc(54px + env(safe-area-inset-bottom)); }
      .frame { grid-template-columns: minmax(0, 1fr); grid-template-rows: auto auto minmax(0, 1fr) auto; }
      .rail { display: none; }
      .top { grid-row: 1; grid-column: 1; display: flex; align-items: center; gap: 4px; min-height: 46px; padding: env(safe-area-inset-top) 6px 0 14px; background: var(--bg-rail); border-bottom: 1px solid var(--line); }
      .top .brand { padding: 0; flex: 1; justify-content: flex-start; }
      .top .brand .word { display: inline; }
      .top .link .word { display: inline; }
      .frame.in-session .top { display: none; }
      .bars { grid-row: 2; grid-column: 1; }
      main { grid-column: 1; grid-row: 3; scrollbar-gutter: auto; }
      .bottom { grid-row: 4; grid-column: 1; display: block; background: var(--bg-rail); border-top: 1px solid var(--line); padding-bottom: env(safe-area-inset-bottom); }
      .bottom ul { display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); }
      .bottom .nav { flex-direction: column; justify-content: center; gap: 3px; min-height: 53px; border-radius: 0; font-size: var(--t-xs); background: none; color: var(--fg-mute); }
      .bottom .nav .label { display: block; max-width: 100%; overflow: hidden; text-overflow: clip; white-space: nowrap; letter-spacing: -.02em; }
      .bottom .nav[aria-current="page"] { color: var(--accent); font-weight: 500; }
      .bottom .nav .count { white-space: nowrap; position: absolute; top: 4px; left: calc(50% + 5px); right: auto; }
      .frame.in-session .bottom { display: none; }
      .frame.in-session { --bottom: 0px; }
    }
  `]}connectedCallback(){super.connectedCallback(),b.route.peek().page===`session`&&aa(),this.#e=ze([...[...La,Ia,Pa,Fa].map(([e,,t])=>({key:t,run:()=>b.go(e===`search`?{page:e,q:``}:{page:e})})),{key:`g /`,run:()=>b.go({page:`search`,q:``})},{key:`g b`,run:()=>history.back()},{key:`mod+k`,typing:!0,run:()=>this.#a?.toggle()},{key:`?`,run:()=>this.#o?.show()},{key:`n`,run:()=>this.#n()},{key:`N`,run:()=>this.#n()},{key:`t`,run:()=>{let e=ke();Oe(e),y(`${$.theme}: ${$.themes[e]}`)}},{key:`Escape`,typing:!0,run:()=>Ie()?.blur()}]),this.#t.push(je(),t(()=>{let e=he.value;e&&le($.failed(e.text),{tone:`danger`})}),t(()=>{let e=b.live.value,{phase:t}=b.link.value;t===`signed-out`?this.#i=null:(this.#i===!0&&!e?y($.live.lost,!0):this.#i===!1&&e&&y($.live.back),(e||this.#i!==null||t===`offline`)&&(this.#i=e))}),t(()=>{b.live.value&&$e()}),t(()=>{b.live.value&&setTimeout(aa,za)})),Q.peek()||oe(),window.addEventListener(`plexus-new-session`,this.#n)}disconnectedCallback(){super.disconnectedCallback(),window.removeEventListener(`plexus-new-session`,this.#n),this.#e();for(let e of this.#t)e()}get#a(){return this.renderRoot.querySelector(`plexus-palette`)}get#o(){return this.renderRoot.querySelector(`plexus-help`)}render(){if(b.link.value.phase===`signed-out`||Q.value!==null)return c`<plexus-signin></plexus-signin><plexus-say></plexus-say>`;let e=b.route.value,t=e.page===`session`,n=b.me.value?.kind===`share`?La.filter(([e])=>Ua.includes(e)):Qe.value.length||e.page===`terminals`?[...La,Ia]:La;return c`
      <nav aria-label=${$.skip}><button class="primary skip" @click=${()=>this.renderRoot.querySelector(`main`)?.focus()}>${$.skip}</button></nav>
      <div class="frame ${t?`in-session`:``}">
        <header class="rail">
          <a class="brand" href="#/inbox" aria-label=${S.common.name}><img src="/icon.svg" alt=""><span class="word">${S.common.name}</span></a>
          <button class="cmd" aria-keyshortcuts="Control+K" @click=${()=>this.#a?.toggle()}>${p(`search`)}<span class="label">${$.jump}</span><kbd aria-hidden="true">${Ra} K</kbd></button>
          <nav aria-label=${$.nav}><ul>${(b.me.value?.kind===`share`?n:[...n,Pa,Fa]).map(e=>c`<li>${this.#c(e)}</li>`)}</ul></nav>
          ${this.#l()}
          <div class="foot">${this.#u()}
            <div class="tools">
              <button class="ghost icon" title="${$.keys} (?)" aria-label=${$.keys} @click=${()=>this.#o?.show()}>${p(`keyboard`)}</button>
              <span class="grow"></span>${this.#d()}
            </div>
          </div>
        </header>
        <header class="top"><a class="brand" href="#/inbox" aria-label=${S.common.name}><img src="/icon.svg" alt=""><span class="word">${S.common.name}</span></a>
          ${this.#u()}
          <button class="ghost icon" aria-label=${$.palette} @click=${()=>this.#a?.toggle()}>${p(`search`)}</button>${this.#d()}</header>
        <div class="bars">${this.#f()}${this.#p()}${this.#m()}<plexus-push-offer></plexus-push-offer></div>
        <main id="main" tabindex="-1" class=${e.page} aria-label=${$.pages[e.page]}>${this.#s(e)}</main>
        <nav class="bottom" aria-label=${$.nav}><ul>${n.filter(([e])=>e!==`search`||n.length<=La.length).map(e=>c`<li>${this.#c(e)}</li>`)}</ul></nav>
      </div>
      <plexus-dialog id="new-session" heading=${$.pages.new} .open=${this.making} @close=${()=>{this.making=!1}}>${this.making?c`<plexus-new-session @done=${()=>{this.making=!1}}></plexus-new-session>`:i}</plexus-dialog>
      <plexus-palette></plexus-palette><plexus-help></plexus-help><plexus-asking></plexus-asking><plexus-say></plexus-say>`}#s(e){switch(Ha(e.page),e.page){case`inbox`:return c`<plexus-inbox .request=${e.request??``}></plexus-inbox>`;case`home`:return c`<plexus-home></plexus-home>`;case`sessions`:return c`<plexus-sessions></plexus-sessions>`;case`new`:return c`<div class="new-page"><h1 tabindex="-1">${$.pages.new}</h1><plexus-new-session></plexus-new-session></div>`;case`session`:return c`<plexus-session-page .sessionId=${e.session_id} .at=${e.at}></plexus-session-page>`;case`devices`:return c`<plexus-devices></plexus-devices>`;case`runtimes`:return c`<plexus-runtimes></plexus-runtimes>`;case`terminals`:return c`<plexus-terminals .terminalId=${e.terminal_id??``}></plexus-terminals>`;case`usage`:return c`<plexus-usage .session=${e.session_id??``}></plexus-usage>`;case`changes`:return c`<plexus-changes .sessionId=${e.session_id}></plexus-changes>`;case`settings`:return c`<plexus-settings></plexus-settings>`;case`search`:return c`<plexus-search .q=${e.q??``}></plexus-search>`}}#c([e,t,n]){let r=b.route.value.page,a=r===e||e===`sessions`&&(r===`session`||r===`changes`),o=e===`inbox`?[...b.requests.value.values()].filter(e=>e.state===`open`):[],s=o.length;return c`<a class="nav" href="#/${e}" title="${$.pages[e]} (${n})" aria-current=${a?`page`:i}>${p(t,18)}<span class="label">${$.pages[e]}</span>
      ${s?c`<span class="count ${o.some(e=>e.risk===`danger`||e.danger)?`danger`:``}" aria-label=${$.openCount(s)}>${s}</span>`:i}</a>`}#l(){let e=b.news.value,t=b.route.value,n=[...b.sessions.value.values()].filter(e=>!e.archived).sort((t,n)=>(e.get(n.session_id)??0)-(e.get(t.session_id)??0)||(t.session_id<n.session_id?-1:1)).slice(0,Wa);return n.length?c`<h2 id="recent">${$.recent}</h2><ul class="recent" aria-labelledby="recent">${n.map(e=>{let n=b.unread.value.has(e.session_id);return c`<li><a class="nav ${n?`unread`:``}" href=${b.href({page:`session`,session_id:e.session_id})} aria-current=${t.page===`session`&&t.session_id===e.session_id?`page`:i}>
        <plexus-state .state=${e.state} bare></plexus-state><bdi class="name cut">${_(e.title)||S.common.untitled}</bdi>
        ${n?c`<span class="sr">${$.sessions.unread}</span>`:i}</a></li>`})}</ul>`:i}#u(){let{phase:e}=b.link.value;return c`<div class="link" data-phase=${e} role="img" aria-label=${$.phase[e]} title=${$.phase[e]}><span class="dot"></span><span class="word">${$.phase[e]}</span></div>`}#d(){let e=b.me.value,t=e=>({label:`${$.theme}: ${$.themes[e]}`,icon:e===`light`?`sun`:e===`dark`?`moon`:`auto`,checked:Ee.value===e,run:()=>Oe(e)});return c`<plexus-menu label="${$.account}${e?`: ${_(e.name)}`:``}" icon="user" .items=${[t(`auto`),t(`light`),t(`dark`),...e?.kind===`share`?[]:[{label:$.pages.usage,icon:`usage`,separate:!0,href:`#/usage`},{label:$.pages.settings,icon:`settings`,href:`#/settings`}],{label:$.keys,icon:`keyboard`,separate:!0,run:()=>this.#o?.show()},...ot.value?[{label:$.install,icon:`download`,run:()=>void ot.value?.()}]:[],{label:e?.kind===`share`?$.leaveShare:$.signOut,icon:`out`,separate:!0,run:()=>void tt()}]}></plexus-menu>`}#f(){let{phase:e,heardAt:t,reason:n,since:r}=b.link.value;if(b.live.value||e===`signed-out`||e===`connecting`&&b.now.value-r<1500)return i;let a=e===`stopped`?n:e===`offline`?$.stale.offline:e===`reconnecting`?$.stale.reconnecting:$.stale.connecting;return c`<div class="bar stale" role="status" aria-label=${$.connection} id="stale">${p(`warn`)}<span class="words"><strong>${a}</strong>
      ${t?$.stale.trueAt(me(t)):$.stale.never} ${e!==`stopped`&&n?n:i}</span>
      <button class="compact" @click=${()=>b.retry()}>${e===`stopped`?$.stale.reload:$.stale.tryNow}</button></div>`}#p(){return fe.value?c`<div class="bar share" id="outdated" role="status">${p(`restart`)}<span class="words">${fe.value===`missing`?$.stale.missing:$.stale.outdated}</span><button class="compact" @click=${()=>location.reload()}>${$.stale.reload}</button></div>`:i}#m(){let e=b.me.value;if(e?.kind!==`share`)return i;let t=e.expires_at?me(Date.parse(e.expires_at)):``;return c`<div class="bar share" id="share" role="region" aria-label=${$.shareBar(``,``)}>${p(`eye`)}<span class="words">${$.shareBar(``,t)}</span><button class="compact" @click=${()=>void tt()}>${$.leaveShare}</button></div>`}updated(){let e=b.route.peek(),t=`${e.page}/${e.page===`session`?e.session_id:``}`,n=$.pages[e.page];if(this.#r&&this.#r!==t&&b.link.peek().phase!==`signed-out`){let e=this.renderRoot.querySelector(`main`);e?.scrollTo(0,0),e?.focus({preventScroll:!0}),y(n)}this.#r=t}};v([n()],Ga.prototype,`making`,void 0),Ga=v([u(`plexus-app`)],Ga);var Ka=/^\(\d+\) /,qa=64;function Ja(){let e=0;for(let t of b.requests.value.values())t.state===`open`&&!t.observe_only&&(e+=1);return e}function Ya(e){return`data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${qa} ${qa}"><rect width="${qa}" height="${qa}" rx="14" fill="${e===`away`?`#6b7280`:`#4f46d8`}"/><g fill="none" stroke="#fff" stroke-opacity=".75" stroke-width="5" stroke-linecap="round"><path d="M14 16 32 32 14 48M32 32h18M32 32 50 16M32 32l18 16"/></g><circle cx="32" cy="32" r="8" fill="#fff"/>${e===`asked`?`<circle cx="50" cy="14" r="13" fill="#e5383b" stroke="#fff" stroke-width="4"/>`:``}</svg>`)}`}var Xa=0;function Za(){let e=document.title.replace(Ka,``),t=Xa>0?`(${Xa}) ${e}`:e;document.title!==t&&(document.title=t)}function Qa(){let e=document.querySelector(`title`);e&&new MutationObserver(Za).observe(e,{childList:!0,characterData:!0,subtree:!0});let n=``;t(()=>{let e=b.me.value!==null;Xa=e?Ja():0,Za();let t=e&&!b.live.value?`away`:Xa>0?`asked`:`calm`,r=document.querySelector(`link#favicon, link[rel="icon"]`);r&&t!==n&&(n=t,r.type=`image/svg+xml`,r.href=Ya(t));let i=navigator;b.live.value&&(Xa>0?i.setAppBadge?.(Xa):i.clearAppBadge?.())?.catch(()=>{})})}var $a=`plexus.sound`,eo=[587.33,880],to=.14,no=.12;function ro(){try{return localStorage.getItem($a)===`on`}catch{return!1}}var io=d(ro());function ao(e){io.value=e;try{e?localStorage.setItem($a,`on`):localStorage.removeItem($a)}catch{}}var oo=null;function so(){try{oo??=new AudioContext,oo.resume().catch(()=>{}),eo.forEach((e,t)=>{let{currentTime:n}=oo,r=n+t*to,i=new GainNode(oo,{gain:0});i.gain.setValueAtTime(0,r),i.gain.linearRampToValueAtTime(no,r+.015),i.gain.exponentialRampToValueAtTime(1e-4,r+to*1.8);let a=new OscillatorNode(oo,{type:`sine`,frequency:e});a.connect(i).connect(oo.destination),a.start(r),a.stop(r+to*2)})}catch{}}function co(){let e=null;t(()=>{let t=new Set;for(let e of b.requests.value.values())e.state===`open`&&t.add(e.request_id);let n=e!==null&&[...t].some(t=>!e.has(t));e=b.loaded.value?new Set([...e??[],...t]):null,n&&io.peek()&&so()})}function lo(e){return navigator.locks.request(`plexus-tray`,e)}var uo=!1;function fo(){if(uo)return;uo=!0,Qa(),co(),navigator.serviceWorker?.addEventListener(`message`,e=>{let t=e.data;t?.plexus===`open`&&typeof t.hash==`string`&&t.hash.startsWith(`#/`)&&(location.hash=t.hash)}),navigator.serviceWorker?.startMessages?.(),document.addEventListener(`visibilitychange`,()=>void po()),po();let e=!1;t(()=>{!e&&b.me.value&&(e=!0,ma())})}async function po(){if(!document.hidden&&`serviceWorker`in navigator)try{let e=await navigator.serviceWorker.getRegistration();for(let t of e?await lo(()=>e.getNotifications()):[])[`withdrawn`,`outcome`,`news`].includes(t.data?.kind)&&t.close()}catch{}}fo(),ee(),addEventListener(`load`,()=>void re());export{ze as A,Bn as C,Je as D,Qe as E,Oe as M,Ee as N,We as O,ir as S,$e as T,yi as _,Y as a,li as b,ya as c,Gi as d,W as f,ji as g,Mi as h,va as i,Ie as j,Ue as k,_a as l,Ai as m,ao as n,ma as o,Ei as p,io as r,ga as s,so as t,ea as u,oi as v,tt as w,si as x,ci as y};