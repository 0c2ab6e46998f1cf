import{c as e,f as t,g as n,i as r,o as i,u as a}from"./libraries-MxmsVMue.js";import{c as o,s,u as c}from"./actions-CHFb7ejZ.js";import{A as l,At as u,F as d,G as f,H as p,I as m,L as h,M as g,Mt as _,N as v,P as y,Y as b,_t as x,et as S,ht as C,j as w,jt as T,k as E,mt as D,nt as O,pt as k,tt as A,vt as j,z as M}from"./frame-CWJtEa8y.js";var N=C.notify,P=[0,5,10,20,30,60,120],F={from:`22:00`,to:`07:00`},I=()=>{let e=Intl.DateTimeFormat().resolvedOptions().timeZone;return e?.includes(`/`)?{zone:e}:{}},L=class extends u{static{this.properties={busy:{state:!0},say:{state:!0},bad:{state:!0}}}constructor(){super(),this.busy=!1,this.say=``,this.bad=!1}static{this.styles=[...[u.styles].flat(),t`
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
    `]}connectedCallback(){super.connectedCallback(),y(),document.addEventListener(`visibilitychange`,this.#e)}disconnectedCallback(){super.disconnectedCallback(),document.removeEventListener(`visibilitychange`,this.#e)}#e=()=>{!document.hidden&&!this.busy&&y()};async#t(e,t=``){if(this.busy)return;this.busy=!0,this.bad=!1,this.say=N.working;let n=await e().catch(e=>N.failed(e instanceof Error?e.message:String(e)));this.busy=!1,this.bad=n!==``,this.say=n||t}render(){let{is:t,words:n,settings:r}=v.value;return a`<section class="panel" aria-labelledby="title">
      <div class="head">
        ${A(`bell`,20)}
        <div>
          <h2 id="title">${N.title}</h2>
          <p>${N.about}</p>
        </div>
      </div>
      ${this.#n(t,n)} ${t===`on`?this.#a(r):e}
      <p class="say" role="status" ?data-bad=${this.bad}>${this.say}</p>
      <hr />
      <fieldset>
        <legend>${N.screen}</legend>
        ${this.#r(`sound`,N.sound,N.soundHint,w.value,e=>{l(e),e&&E()})}
      </fieldset>
    </section>`}#n(e,t){switch(e){case`on`:return a`<div class="state">
          <p>${A(`check`)} ${N.isOn} ${O.me.value?.lock_screen?N.lockOn:N.lockOff}</p>
          <button type="button" data-do="off" aria-disabled=${this.busy} @click=${()=>this.#t(h)}>${N.off}</button>
        </div>`;case`off`:return a`<div class="state">
          <p>${t||N.isOff}</p>
          <button type="button" class="primary" data-do="on" aria-disabled=${this.busy} @click=${()=>this.#t(d)}>${N.on}</button>
        </div>`;case`blocked`:return a`<p class="note warn" data-is="blocked">${t}</p>`;case`unable`:return a`<p class="note" data-is="unable">${t}</p>`;default:return a`<p>${N.working}</p>`}}#r(t,n,r,i,o){return a`<label class="switch">
      <span>${n}${r?a`<small>${r}</small>`:e}</span>
      <input type="checkbox" role="switch" name=${t} .checked=${i} @change=${e=>o(e.target.checked)} />
    </label>`}#i(e,t){let n=[...new Set([...P,e])].sort((e,t)=>e-t);return a`<label class="switch">
      <span>${N.silence}<small>${N.silenceHint}</small></span>
      <select name="silence" @change=${e=>t(Number(e.target.value))}>${n.map(t=>a`<option value=${t} ?selected=${t===e}>${N.silences(t)}</option>`)}</select>
    </label>`}#a(t){let n=t.quiet??null,r=e=>void this.#t(()=>g(e),N.saved),i=e=>r({quiet:{from:n?.from??F.from,to:n?.to??F.to,...e,offset_minutes:-new Date().getTimezoneOffset(),...I()}}),o=(e,t)=>a`<label>${t}<input type="time" name=${e} .value=${n?.[e]??F[e]} @change=${t=>{let{value:n}=t.target;n&&i({[e]:n})}} /></label>`;return a`<fieldset>
        <legend>${N.kinds}</legend>
        ${this.#r(`requests`,N.requests,N.requestsHint,t.requests??!0,e=>r({requests:e}))}
        ${this.#r(`ends`,N.ends,``,t.ends??!0,e=>r({ends:e}))}
        ${this.#r(`failures`,N.failures,``,t.failures??!0,e=>r({failures:e}))}
        ${this.#i(t.no_progress_minutes??10,e=>r({no_progress_minutes:e}))}
      </fieldset>
      <fieldset>
        ${this.#r(`quiet`,N.quiet,N.quietHint,n!==null,e=>e?i({}):r({quiet:null}))}
        ${n?a`<div class="times">${o(`from`,N.from)}${o(`to`,N.to)}</div>`:e}
      </fieldset>
      <div class="row"><button type="button" data-do="test" aria-disabled=${this.busy} @click=${()=>this.#t(m,N.tested)}>${N.test}</button></div>`}};customElements.define(`plexus-notifications`,L);var R={onDevice:`Of this browser only.`,appearance:`Appearance`,editor:`Editor`,editorHint:`Opens the folder of a session, from the session’s menu. For a browser on the machine that runs the agents.`,editors:{none:`None`,vscode:`Visual Studio Code`,zed:`Zed`,cursor:`Cursor`},device:`This device`,name:`Name`,may:`May`,until:`Signed in until`,local:`It is signed in with this machine’s own token.`,devices:`All devices`,devicesHint:`Rename or revoke devices, and add others.`,phone:`A phone`,phoneHint:`This command makes an address that phones can reach, and shows a code to scan. It works while the gateway runs.`,phoneOr:`If phones reach this address already:`,pair:`Show a code`,reach:`Addresses`,reachHint:`How this gateway can be reached. “plexus phone” and the configuration change it.`,here:`This page`,tls:`TLS listener`,configured:`from the configuration`,names:`Names of its certificate`,origins:`Origins`,proxy:`Through a proxy`,publicUrl:`In links and codes`,onlyHere:`Only this machine reaches the gateway.`,failed:e=>`The addresses could not be read: ${e}.`,again:`Try again`,keys:`Keyboard shortcuts`,about:`About`,version:`Version`,machine:`Machine`,since:`Running since`,described:`Interfaces`,openapi:`HTTP (OpenAPI)`,asyncapi:`WebSocket (AsyncAPI)`},z=[[`auto`,`auto`],[`light`,`sun`],[`dark`,`moon`]],B=class extends u{constructor(...e){super(...e),this.access=null,this.problem=``,this.#e=()=>{}}#e;static{this.styles=[...[u.styles].flat(),b,t`
    .page > * { max-width: 740px; }
    .card { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); box-shadow: var(--shadow-1); padding: 16px; display: grid; gap: 14px; min-width: 0; }
    .card.bare { padding: 0; }
    .card p { color: var(--fg-soft); max-width: 68ch; }
    .hint { color: var(--fg-mute); font-size: var(--t-s); }
    .line { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; justify-content: space-between; }
    .line > :first-child { flex: 1 1 15rem; min-width: 0; }
    .choices { display: flex; flex-wrap: wrap; gap: 6px; }
    .choices button[aria-pressed="true"] { background: var(--bg-active); border-color: var(--line-strong); font-weight: 600; }
    .card p.what { color: var(--fg); }
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
  `]}connectedCallback(){super.connectedCallback(),this.#e=n(()=>{O.live.value&&queueMicrotask(()=>void this.#t())})}disconnectedCallback(){super.disconnectedCallback(),this.#e()}async#t(){if(O.live.peek()&&O.may(`admin`))try{this.access=await O.http(`GET`,`/v1/listeners`),this.problem=``}catch(e){this.problem=R.failed(k(e))}}render(){let t=O.me.value,n=O.may(`admin`);return a`<div class="page"><header><h1 tabindex="-1">${C.shell.pages.settings}</h1></header>
      ${this.#n(`look`,R.appearance,a`
        <div class="line"><div><p id="theme" class="what">${C.shell.theme}</p><p class="hint">${R.onDevice}</p></div>
          <div class="choices" role="group" aria-labelledby="theme">${z.map(([e,t])=>a`<button aria-pressed=${_.value===e} data-theme-is=${e} @click=${()=>T(e)}>${A(t)}${C.shell.themes[e]}</button>`)}</div></div>
        <div class="line"><div><label for="editor">${R.editor}</label><p class="hint" id="editor-hint">${R.editorHint}</p></div>
          <select id="editor" aria-describedby="editor-hint" @change=${e=>c(e.target.value)}>${s.map(e=>a`<option value=${e} ?selected=${o.value===e}>${R.editors[e]}</option>`)}</select></div>`)}
      <div class="section" id="notifications"><div class="card bare"><plexus-notifications></plexus-notifications></div></div>
      ${this.#i()}
      ${n?a`${this.#n(`phone`,R.phone,a`<p>${R.phoneHint}</p><div>${f(`plexus phone`)}</div>
          <div class="line"><p>${R.phoneOr}</p><button @click=${()=>{O.go({page:`devices`}),setTimeout(()=>dispatchEvent(new CustomEvent(`plexus-add-device`)),0)}}>${A(`phone`)}${R.pair}</button></div>`)}
        ${this.#n(`reach`,R.reach,this.#a())}`:e}
      ${this.#n(`keys`,R.keys,a`<div class="keys">${p.map(([e,t])=>a`<section><h3>${e}</h3><dl>${t.map(([e,t])=>a`
        <dt>${e.split(` `).map(e=>e===`–`?e:a`<kbd>${e}</kbd>`)}</dt><dd>${t}</dd>`)}</dl></section>`)}</div>`)}
      ${this.#n(`about`,R.about,a`<dl class="facts">
        ${this.#r(R.version,t?.gateway.version)}${this.#r(R.machine,t?.gateway.name)}
        ${t?.gateway.started_at?a`<dt>${R.since}</dt><dd><plexus-age .at=${t.gateway.started_at}></plexus-age></dd>`:e}
        <dt>${R.described}</dt><dd><span><a href="/openapi.json" target="_blank" rel="noopener">${R.openapi}</a></span><span><a href="/asyncapi.json" target="_blank" rel="noopener">${R.asyncapi}</a></span></dd></dl>`)}
    </div>`}#n(e,t,n){return a`<section class="section" aria-labelledby=${`h-${e}`}><header><h2 id=${`h-${e}`}>${t}</h2></header><div class="card" id=${`s-${e}`}>${n}</div></section>`}#r(t,n){return n?a`<dt>${t}</dt><dd><bdi>${j(n)}</bdi></dd>`:e}#i(){let t=O.me.value;if(!t)return e;let n=C.shell.devices;return this.#n(`device`,R.device,a`<dl class="facts">
        ${this.#r(R.name,t.name)}
        <dt>${R.may}</dt><dd class="may">${x(t.scopes).map(e=>a`<span class="chip ${e===`admin`||e===`type`?`warn`:``}">${n.scopes[e]??j(e)}</span>`)}
          ${t.approve_up_to&&t.approve_up_to!==`danger`?a`<span class="chip info">${n.upTo(t.approve_up_to)}</span>`:e}
          ${t.runtimes?.length?a`<span class="chip info">${n.only(t.runtimes.map(j).join(`, `))}</span>`:e}</dd>
        ${t.expires_at?a`<dt>${R.until}</dt><dd>${D(Date.parse(t.expires_at))}</dd>`:e}</dl>
      ${t.kind===`local`?a`<p>${R.local}</p>`:e}
      <div class="line">${O.may(`admin`)&&t.kind!==`share`?a`<p><a href="#/devices">${R.devices}</a><br><span class="hint">${R.devicesHint}</span></p>`:a`<span></span>`}
        <button id="sign-out" @click=${()=>void M()}>${A(`out`)}${t.kind===`share`?C.shell.leaveShare:C.shell.signOut}</button></div>`)}#a(){let t=this.access,n=e=>e.map(e=>a`<span><bdi>${j(e)}</bdi></span>`);return a`<p>${R.reachHint}</p>
      ${this.problem?a`<p class="note danger" role="alert">${this.problem} <button class="compact" @click=${()=>void this.#t()}>${R.again}</button></p>`:e}
      <dl class="facts">${this.#r(R.here,location.origin)}
        ${t?a`
          ${t.tls?a`<dt>${R.tls}</dt><dd><bdi>${j(t.tls.address)}</bdi>${t.tls.configured?a` <span class="hint">${R.configured}</span>`:e}</dd>
            <dt>${R.origins}</dt><dd>${n(t.tls.origins)}</dd><dt>${R.names}</dt><dd>${n(t.tls.names)}</dd>`:e}
          ${this.#r(R.proxy,t.proxy)}${this.#r(R.publicUrl,t.public_url)}`:e}</dl>
      ${t&&!t.tls&&!t.proxy&&!t.public_url?a`<p>${R.onlyHere}</p>`:e}`}};S([r()],B.prototype,`access`,void 0),S([r()],B.prototype,`problem`,void 0),B=S([i(`plexus-settings`)],B);export{B as PlexusSettings};