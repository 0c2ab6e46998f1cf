import{b as e,c as t,f as n,g as r,m as i,u as a}from"./libraries-D3tVd1Dt.js";import{D as o,M as s,N as c,a as l,c as u,g as d,i as f,l as p,m,n as h,o as g,p as _,r as v,s as y,t as b,w as x}from"./index-Bwy6Bj0K.js";import{n as S,t as C}from"./icons-CfyhBgGx.js";import{A as w,E as T,j as E,k as D,l as O,n as k,o as A,u as j}from"./parts-C1VI4Yy4.js";import{t as M}from"./en-DZy5rTsZ.js";var N=M.notify,P=[0,5,10,20,30,60,120],F={from:`22:00`,to:`07:00`},I=()=>{let e=Intl.DateTimeFormat().resolvedOptions().timeZone;return e?.includes(`/`)?{zone:e}:{}},L=class extends S{static{this.properties={busy:{state:!0},say:{state:!0},bad:{state:!0}}}constructor(){super(),this.busy=!1,this.say=``,this.bad=!1}static{this.styles=[...[S.styles].flat(),r`
      :host { display: block; min-width: 0; }
      .panel { padding: 16px; display: grid; gap: 14px; }
      .head { display: flex; gap: 10px; align-items: flex-start; }
      .head svg { flex: none; margin-block-start: 2px; color: var(--accent); }
      h2 { font-size: var(--t-l); }
      p { color: var(--fg-soft); max-inline-size: 68ch; }
      .state { display: flex; flex-wrap: wrap; gap: 10px 14px; align-items: center; justify-content: space-between; }
      .state p { flex: 1 1 16rem; color: var(--fg); }
      button { min-block-size: 40px; }
      @media (pointer: coarse) { button { min-block-size: 44px; } }
      fieldset { display: grid; gap: 2px; min-inline-size: 0; }
      legend { padding: 0; font-weight: 600; margin-block-end: 4px; }
      label.switch { display: flex; align-items: center; gap: 12px; min-block-size: 44px; cursor: pointer; }
      label.switch span { flex: 1; min-inline-size: 0; }
      label.switch small { display: block; color: var(--fg-mute); font-size: var(--t-s); }
      label.switch input {
        appearance: none; flex: none; inline-size: 40px; block-size: 24px; margin: 0; border-radius: 12px; background: var(--line-strong); position: relative; cursor: pointer; transition: background-color var(--quick);
      }
      label.switch select { flex: none; inline-size: auto; max-inline-size: 50%; min-block-size: 44px; }
      label.switch input::after { content: ''; position: absolute; inset-block-start: 3px; inset-inline-start: 3px; inline-size: 18px; block-size: 18px; border-radius: 50%; background: #fff; transition: transform var(--quick); box-shadow: var(--shadow-1); }
      label.switch input:checked { background: var(--accent-solid); }
      label.switch input:checked::after { transform: translateX(16px); }
      label.switch input:disabled { opacity: 0.5; }
      @media (forced-colors: active) { label.switch input { appearance: auto; inline-size: 20px; } }
      .times { display: flex; flex-wrap: wrap; gap: 8px 16px; padding-block: 4px; }
      .times label { display: flex; align-items: center; gap: 8px; }
      .times input { inline-size: 8.5rem; min-block-size: 44px; }
      .row { display: flex; flex-wrap: wrap; gap: 8px; }
      .say { min-block-size: 1.4em; }
      .say[data-bad] { color: var(--danger); }
      hr { border: 0; border-block-start: 1px solid var(--line); inline-size: 100%; margin: 0; }
    `]}connectedCallback(){super.connectedCallback(),g(),document.addEventListener(`visibilitychange`,this.#e)}disconnectedCallback(){super.disconnectedCallback(),document.removeEventListener(`visibilitychange`,this.#e)}#e=()=>{!document.hidden&&!this.busy&&g()};async#t(e,t=``){if(this.busy)return;this.busy=!0,this.bad=!1,this.say=N.working;let n=await e().catch(e=>N.failed(e instanceof Error?e.message:String(e)));this.busy=!1,this.bad=n!==``,this.say=n||t}render(){let{is:e,words:t,settings:r}=l.value;return i`<section class="panel" aria-labelledby="title">
      <div class="head">
        ${C(`bell`,20)}
        <div>
          <h2 id="title">${N.title}</h2>
          <p>${N.about}</p>
        </div>
      </div>
      ${this.#n(e,t)} ${e===`on`?this.#a(r):n}
      <p class="say" role="status" ?data-bad=${this.bad}>${this.say}</p>
      <hr />
      <fieldset>
        <legend>${N.screen}</legend>
        ${this.#r(`sound`,N.sound,N.soundHint,v.value,e=>{h(e),e&&b()})}
      </fieldset>
    </section>`}#n(e,t){switch(e){case`on`:return i`<div class="state">
          <p>${C(`check`)} ${N.isOn} ${j.me.value?.lock_screen?N.lockOn:N.lockOff}</p>
          <button type="button" data-do="off" aria-disabled=${this.busy} @click=${()=>this.#t(p)}>${N.off}</button>
        </div>`;case`off`:return i`<div class="state">
          <p>${t||N.isOff}</p>
          <button type="button" class="primary" data-do="on" aria-disabled=${this.busy} @click=${()=>this.#t(y)}>${N.on}</button>
        </div>`;case`blocked`:return i`<p class="note warn" data-is="blocked">${t}</p>`;case`unable`:return i`<p class="note" data-is="unable">${t}</p>`;default:return i`<p>${N.working}</p>`}}#r(e,t,r,a,o){return i`<label class="switch">
      <span>${t}${r?i`<small>${r}</small>`:n}</span>
      <input type="checkbox" role="switch" name=${e} .checked=${a} @change=${e=>o(e.target.checked)} />
    </label>`}#i(e,t){let n=[...new Set([...P,e])].sort((e,t)=>e-t);return i`<label class="switch">
      <span>${N.silence}<small>${N.silenceHint}</small></span>
      <select name="silence" @change=${e=>t(Number(e.target.value))}>${n.map(t=>i`<option value=${t} ?selected=${t===e}>${N.silences(t)}</option>`)}</select>
    </label>`}#a(e){let t=e.quiet??null,r=e=>void this.#t(()=>f(e),N.saved),a=e=>r({quiet:{from:t?.from??F.from,to:t?.to??F.to,...e,offset_minutes:-new Date().getTimezoneOffset(),...I()}}),o=(e,n)=>i`<label>${n}<input type="time" name=${e} .value=${t?.[e]??F[e]} @change=${t=>{let{value:n}=t.target;n&&a({[e]:n})}} /></label>`;return i`<fieldset>
        <legend>${N.kinds}</legend>
        ${this.#r(`requests`,N.requests,N.requestsHint,e.requests??!0,e=>r({requests:e}))}
        ${this.#r(`ends`,N.ends,``,e.ends??!0,e=>r({ends:e}))}
        ${this.#r(`failures`,N.failures,``,e.failures??!0,e=>r({failures:e}))}
        ${this.#i(e.no_progress_minutes??10,e=>r({no_progress_minutes:e}))}
      </fieldset>
      <fieldset>
        ${this.#r(`quiet`,N.quiet,N.quietHint,t!==null,e=>e?a({}):r({quiet:null}))}
        ${t?i`<div class="times">${o(`from`,N.from)}${o(`to`,N.to)}</div>`:n}
      </fieldset>
      <div class="row"><button type="button" data-do="test" aria-disabled=${this.busy} @click=${()=>this.#t(u,N.tested)}>${N.test}</button></div>`}};customElements.define(`plexus-notifications`,L);var R={onDevice:`These apply to this browser only.`,appearance:`Appearance`,editor:`Editor`,editorHint:`Opens the folder of a session, from the session’s menu. For a browser on the machine that runs the agents.`,editors:{none:`None`,vscode:`Visual Studio Code`,zed:`Zed`,cursor:`Cursor`},device:`This device`,name:`Name`,may:`May`,until:`Signed in until`,local:`It is signed in with this machine’s own token.`,devices:`All devices`,devicesHint:`Rename or revoke devices, and add others.`,phone:`A phone`,phoneHint:`This command makes an address that phones can reach, and shows a code to scan. It works while the gateway runs.`,phoneOr:`If phones reach this address already:`,pair:`Show a code`,reach:`Addresses`,reachHint:`How this gateway can be reached. “plexus phone” and the configuration change it.`,here:`This page`,tls:`TLS listener`,configured:`from the configuration`,names:`Names of its certificate`,origins:`Origins`,proxy:`Through a proxy`,publicUrl:`In links and codes`,onlyHere:`Only this machine reaches the gateway.`,failed:e=>`The addresses could not be read: ${e}.`,again:`Try again`,keys:`Keyboard shortcuts`,about:`About`,version:`Version`,machine:`Machine`,since:`Running since`,described:`Interfaces`,openapi:`HTTP (OpenAPI)`,asyncapi:`WebSocket (AsyncAPI)`},z=[[`auto`,`auto`],[`light`,`sun`],[`dark`,`moon`]],B=class extends S{constructor(...e){super(...e),this.access=null,this.problem=``,this.#e=()=>{}}#e;static{this.styles=[...[S.styles].flat(),A,r`
    .page { max-width: 760px; }
    .card { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); box-shadow: var(--shadow-1); padding: 16px; display: grid; gap: 14px; min-width: 0; }
    .card.bare { padding: 0; }
    .card p { color: var(--fg-soft); max-width: 68ch; }
    .hint { color: var(--fg-mute); font-size: var(--t-s); }
    .line { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; justify-content: space-between; }
    .line > :first-child { flex: 1 1 15rem; min-width: 0; }
    .choices { display: flex; flex-wrap: wrap; gap: 6px; }
    .choices button[aria-pressed="true"] { background: var(--bg-active); border-color: var(--line-strong); font-weight: 600; }
    .card button, .card select, .card .btn { min-height: 40px; }
    .facts { display: grid; grid-template-columns: minmax(110px, 180px) minmax(0, 1fr); gap: 8px 16px; align-items: baseline; }
    .facts dt { color: var(--fg-mute); }
    .facts dd { min-width: 0; overflow-wrap: anywhere; }
    .facts dd > span:not(.chip) { display: block; }
    .line > select { width: auto; max-width: 100%; }
    .may { display: flex; flex-wrap: wrap; gap: 5px; }
    .keys { columns: 2 280px; column-gap: var(--s6); }
    .keys section { break-inside: avoid; margin-bottom: var(--s4); }
    .keys h3 { margin-bottom: var(--s2); color: var(--fg-mute); font-size: var(--t-s); }
    .keys dl { display: grid; grid-template-columns: 108px 1fr; gap: 6px 12px; align-items: center; }
    .keys dt { display: flex; gap: 3px; flex-wrap: wrap; }
    @media (pointer: coarse) { .card button, .card select, .card .btn { min-height: 44px; } .facts dd a, .line a { display: inline-block; padding: 12px 0; } }
    @media (max-width: 599px) { .facts { grid-template-columns: 1fr; gap: 2px; } .facts dd + dt { margin-top: 8px; } }
  `]}connectedCallback(){super.connectedCallback(),this.#e=e(()=>{j.live.value&&queueMicrotask(()=>void this.#t())})}disconnectedCallback(){super.disconnectedCallback(),this.#e()}async#t(){if(j.live.peek()&&j.may(`admin`))try{this.access=await j.http(`GET`,`/v1/listeners`),this.problem=``}catch(e){this.problem=R.failed(T(e))}}render(){let e=j.me.value,t=j.may(`admin`);return i`<div class="page"><header><h1 tabindex="-1">${M.shell.pages.settings}</h1></header>
      ${this.#n(`look`,R.appearance,i`
        <div class="line"><div><p id="theme">${M.shell.theme}</p><p class="hint">${R.onDevice}</p></div>
          <div class="choices" role="group" aria-labelledby="theme">${z.map(([e,t])=>i`<button aria-pressed=${c.value===e} data-theme-is=${e} @click=${()=>s(e)}>${C(t)}${M.shell.themes[e]}</button>`)}</div></div>
        <div class="line"><div><label for="editor">${R.editor}</label><p class="hint" id="editor-hint">${R.editorHint}</p></div>
          <select id="editor" aria-describedby="editor-hint" @change=${e=>d(e.target.value)}>${_.map(e=>i`<option value=${e} ?selected=${m.value===e}>${R.editors[e]}</option>`)}</select></div>`)}
      <div class="section" id="notifications"><div class="card bare"><plexus-notifications></plexus-notifications></div></div>
      ${this.#i()}
      ${t?i`${this.#n(`phone`,R.phone,i`<p>${R.phoneHint}</p><div>${k(`plexus phone`)}</div>
          <div class="line"><p>${R.phoneOr}</p><button @click=${()=>{j.go({page:`devices`}),setTimeout(()=>dispatchEvent(new CustomEvent(`plexus-add-device`)),0)}}>${C(`phone`)}${R.pair}</button></div>`)}
        ${this.#n(`reach`,R.reach,this.#a())}`:n}
      ${this.#n(`keys`,R.keys,i`<div class="keys">${o.map(([e,t])=>i`<section><h3>${e}</h3><dl>${t.map(([e,t])=>i`
        <dt>${e.split(` `).map(e=>e===`–`?e:i`<kbd>${e}</kbd>`)}</dt><dd>${t}</dd>`)}</dl></section>`)}</div>`)}
      ${this.#n(`about`,R.about,i`<dl class="facts">
        ${this.#r(R.version,e?.gateway.version)}${this.#r(R.machine,e?.gateway.name)}
        ${e?.gateway.started_at?i`<dt>${R.since}</dt><dd><plexus-age .at=${e.gateway.started_at}></plexus-age></dd>`:n}
        <dt>${R.described}</dt><dd><span><a href="/openapi.json" target="_blank" rel="noopener">${R.openapi}</a></span><span><a href="/asyncapi.json" target="_blank" rel="noopener">${R.asyncapi}</a></span></dd></dl>`)}
    </div>`}#n(e,t,n){return i`<section class="section" aria-labelledby=${`h-${e}`}><header><h2 id=${`h-${e}`}>${t}</h2></header><div class="card" id=${`s-${e}`}>${n}</div></section>`}#r(e,t){return t?i`<dt>${e}</dt><dd><bdi>${E(t)}</bdi></dd>`:n}#i(){let e=j.me.value;if(!e)return n;let t=M.shell.devices;return this.#n(`device`,R.device,i`<dl class="facts">
        ${this.#r(R.name,e.name)}
        <dt>${R.may}</dt><dd class="may">${w(e.scopes).map(e=>i`<span class="chip ${e===`admin`||e===`type`?`warn`:``}">${t.scopes[e]??E(e)}</span>`)}
          ${e.approve_up_to&&e.approve_up_to!==`danger`?i`<span class="chip info">${t.upTo(e.approve_up_to)}</span>`:n}
          ${e.runtimes?.length?i`<span class="chip info">${t.only(e.runtimes.map(E).join(`, `))}</span>`:n}</dd>
        ${e.expires_at?i`<dt>${R.until}</dt><dd>${D(Date.parse(e.expires_at))}</dd>`:n}</dl>
      ${e.kind===`local`?i`<p>${R.local}</p>`:n}
      <div class="line">${j.may(`admin`)&&e.kind!==`share`?i`<p><a href="#/devices">${R.devices}</a><br><span class="hint">${R.devicesHint}</span></p>`:i`<span></span>`}
        <button id="sign-out" @click=${()=>void x()}>${C(`out`)}${e.kind===`share`?M.shell.leaveShare:M.shell.signOut}</button></div>`)}#a(){let e=this.access,t=e=>e.map(e=>i`<span><bdi>${E(e)}</bdi></span>`);return i`<p>${R.reachHint}</p>
      ${this.problem?i`<p class="note danger" role="alert">${this.problem} <button class="compact" @click=${()=>void this.#t()}>${R.again}</button></p>`:n}
      <dl class="facts">${this.#r(R.here,location.origin)}
        ${e?i`
          ${e.tls?i`<dt>${R.tls}</dt><dd><bdi>${E(e.tls.address)}</bdi>${e.tls.configured?i` <span class="hint">${R.configured}</span>`:n}</dd>
            <dt>${R.origins}</dt><dd>${t(e.tls.origins)}</dd><dt>${R.names}</dt><dd>${t(e.tls.names)}</dd>`:n}
          ${this.#r(R.proxy,e.proxy)}${this.#r(R.publicUrl,e.public_url)}`:n}</dl>
      ${e&&!e.tls&&!e.proxy&&!e.public_url?i`<p>${R.onlyHere}</p>`:n}`}};O([t()],B.prototype,`access`,void 0),O([t()],B.prototype,`problem`,void 0),B=O([a(`plexus-settings`)],B);export{B as PlexusSettings};