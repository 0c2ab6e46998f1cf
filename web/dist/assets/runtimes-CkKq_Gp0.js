import{c as e,f as t,i as n,n as r,o as i,u as a}from"./libraries-MxmsVMue.js";import{$ as o,At as s,G as c,J as l,Q as u,W as d,Y as f,Z as p,_t as m,a as h,bt as g,et as _,ft as v,ht as y,nt as b,pt as x,q as S,tt as C,vt as w,xt as T,yt as E}from"./frame-CWJtEa8y.js";var D=y.shell.links,O={linked:`ok`,out_of_date:`warn`,damaged:`warn`,unknown:`warn`},k=class extends s{constructor(...e){super(...e),this.agents=null,this.busy=!1,this.problem=``,this.shown=null}static{this.styles=[...[s.styles].flat(),f,t`
    .list { margin-top: var(--s2); }
    .row { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 4px var(--s3); padding: 12px 10px 12px 16px; align-items: start; }
    .name { display: flex; align-items: center; gap: 9px; font-weight: 600; flex-wrap: wrap; }
    .name bdi { color: var(--fg-mute); font-weight: 400; font-size: var(--t-s); }
    .row p { margin-top: 4px; overflow-wrap: anywhere; }
    .row .note { grid-column: 1 / -1; }
    .file { display: flex; flex-direction: column; gap: 6px; min-width: 0; }
    .file code { overflow-wrap: anywhere; }
    pre { margin: 0; padding: 10px 12px; border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-code); max-height: 42vh; overflow: auto; font-size: var(--t-s); line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere; }
    ins, del { text-decoration: none; display: block; }
    ins { background: var(--add-bg); } del { background: var(--del-bg); }
    @media (max-width: 599px) { .row { grid-template-columns: minmax(0, 1fr); padding-right: 16px; } }
  `]}render(){return a`<section class="section"><header><h2>${D.title}</h2>
      <button class="compact" id="links" ?disabled=${this.busy} @click=${()=>void this.#r()}>${C(`search`)}${this.agents?D.again:D.look}</button></header>
      <p class="mute">${D.lead}</p>
      ${this.busy&&!this.agents?a`<p class="note" role="status">${y.common.loading}</p>`:e}
      ${this.problem&&!this.shown?a`<p class="note danger" role="alert">${this.problem}</p>`:e}
      ${this.agents?a`<ul class="list" role="list">${this.agents.map(e=>this.#e(e))}</ul>`:e}
      ${this.#n()}</section>`}#e(t){let n=!!t.path,r=t.gate??t.detail;return a`<li class="row" data-agent=${t.agent}>
      <div><div class="name">${w(t.title)}<span class="chip ${O[t.state]??``}">${n||t.state===`linked`?D.state[t.state]??w(t.state):D.missing}</span>${t.version?a`<bdi>${w(t.version)}</bdi>`:e}</div>
        <p class="soft small">${r?E(r):D.seen(w(t.seen))}</p>
        ${t.heard_at?a`<p class="mute small">${D.heard} <plexus-age .at=${t.heard_at}></plexus-age></p>`:e}</div>
      <div>${t.link?a`<button class="compact" @click=${()=>this.#t(t,`link`)}>${t.state===`not_linked`?D.link:D.repair}</button>`:e}
        ${t.unlink?a`<button class="ghost compact" @click=${()=>this.#t(t,`unlink`)}>${D.unlink}</button>`:e}</div>
      ${m(t.notices).map(e=>a`<p class="note warn"><bdi>${E(g(e))}</bdi></p>`)}
    </li>`}#t(e,t){this.problem=``,this.shown={agent:e.agent,action:t}}#n(){let t=this.shown,n=t&&this.agents?.find(e=>e.agent===t.agent),r=n&&t?n[t.action]:void 0,i=n?(t?.action===`unlink`?D.unlinkTitle:D.linkTitle)(w(n.title)):``;return a`<plexus-dialog size="wide" heading=${i} .open=${!!t} @close=${()=>{this.shown=null}}>${n&&t?a`
      <p class="soft">${t.action===`link`?D.linkText:D.unlinkText}</p>
      ${r?.files.map(t=>a`<div class="file"><div>${D.action[t.action]??w(t.action)} <code>${T(t.path)}</code>${t.leads_to?a` <span class="mute">${D.leadsTo(T(t.leads_to))}</span>`:e}</div>
        ${t.exact===void 0?e:a`<p class="mute small">${t.exact?D.exact:D.notExact}</p>`}
        ${t.copy?a`<p class="mute small">${D.copy(T(t.copy))}</p>`:e}
        <pre tabindex="0" role="region" aria-label=${D.diffOf(T(t.path))}>${t.diff.split(`
`).map(e=>e.startsWith(`+`)?a`<ins>${T(e)}</ins>`:e.startsWith(`-`)?a`<del>${T(e)}</del>`:a`${T(e)}${`
`}`)}</pre></div>`)}
      ${r?e:a`<p class="note" role="status">${D.nothing}</p>`}
      ${t.action===`link`&&r?a`<div class="file"><span class="mute small">${D.undo}</span>${c(`plexus link ${n.agent} --remove`)}</div>`:e}
      ${this.problem?a`<p class="note danger" role="alert">${this.problem}</p>`:e}
      <div class="actions"><button @click=${()=>{this.shown=null}}>${y.common.cancel}</button>
        ${r?a`<button class="primary" ?disabled=${this.busy} @click=${()=>void this.#i(n,t.action,r.digest)}>${t.action===`link`?D.linkDo:D.unlinkDo}</button>`:e}</div>`:e}</plexus-dialog>`}async#r(){this.busy=!0,this.problem=``;try{this.agents=m((await b.http(`GET`,`/v1/link`))?.agents),u(D.found(this.agents.filter(e=>e.path).length))}catch(e){this.problem=y.shell.failed(x(e))}finally{this.busy=!1}}async#i(e,t,n){this.busy=!0,this.problem=``;try{this.agents=m((await b.http(`POST`,`/v1/link/${encodeURIComponent(e.agent)}`,{action:t,digest:n}))?.agents),this.shown=null,o((t===`link`?D.linked:D.unlinked)(w(e.title)),{tone:`ok`})}catch(e){let t=y.shell.failed(x(e));await this.#r(),this.problem=t}finally{this.busy=!1}}};_([n()],k.prototype,`agents`,void 0),_([n()],k.prototype,`busy`,void 0),_([n()],k.prototype,`problem`,void 0),_([n()],k.prototype,`shown`,void 0),k=_([i(`plexus-links`)],k);var A=y.shell.runtimes,j={ready:`ok`,starting:`info`,restarting:`warn`,exited:``};function M(e){return[e.acted_unasked?A.unasked(w(e.acted_unasked)):``,e.reviewer?A.reviewer(w(e.reviewer)):``,e.fixed_folder?A.fixedFolder(w(e.cwd)):``].filter(Boolean)}var N=class extends s{constructor(...e){super(...e),this.logs=null,this.checks=null,this.#t=e=>`/v1/runtimes/${encodeURIComponent(e)}`}static{this.styles=[...[s.styles].flat(),f,t`
    .row { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 4px var(--s3); padding: 13px 10px 13px 16px; align-items: start; }
    .name { display: flex; align-items: center; gap: 9px; font-weight: 600; flex-wrap: wrap; }
    .agent { color: var(--fg-mute); font-weight: 400; font-size: var(--t-s); }
    .facts { display: flex; flex-wrap: wrap; gap: 2px 12px; color: var(--fg-mute); font-size: var(--t-s); margin-top: 3px; }
    .run { font-family: var(--mono); font-size: var(--t-s); color: var(--fg-soft); margin-top: 6px; }
    .why { grid-column: 1 / -1; margin-top: 6px; white-space: pre-wrap; }
    .does { display: flex; gap: 2px; flex-wrap: wrap; justify-content: flex-end; }
    pre.log { margin: 0; padding: 12px 14px; background: var(--bg-code); border: 1px solid var(--line); border-radius: var(--r-m); max-height: 56vh; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; font-size: var(--t-s); line-height: 1.55; }
    pre.log time { color: var(--fg-mute); margin-right: 10px; }
    .check { display: grid; grid-template-columns: 20px minmax(0, 1fr); gap: 2px 10px; padding: 10px 14px; }
    .check > svg { margin-top: 2px; }
    .check.ok > svg { color: var(--ok); } .check.warn > svg { color: var(--warn); } .check.bad > svg { color: var(--danger); }
    .check .fix { grid-column: 2; color: var(--fg-soft); font-size: var(--t-s); }
    @media (max-width: 599px) { .row { grid-template-columns: minmax(0, 1fr); padding-right: 16px; } .does { justify-content: flex-start; margin: 6px 0 0 -8px; } }
  `]}render(){let t=[...b.runtimes.value.values()].sort((e,t)=>e.runtime_id<t.runtime_id?-1:1),n=b.may(`admin`);return a`<div class="page">
      <header><h1 tabindex="-1">${A.title}</h1>${n?a`<button class="primary" id="new" @click=${h}>${C(`plus`)}${y.shell.sessions.new}</button>`:e}</header>
      ${n?e:a`<p class="mute">${A.needAdmin}</p>`}
      ${t.length?a`<ul class="list">${r(t,e=>e.runtime_id,e=>this.#e(e,n))}</ul>`:b.loaded.value?S(`runtimes`,A.none,A.noneText):l()}
      ${n?a`<section class="section"><header><h2>${A.doctor}</h2><button class="compact" id="doctor" @click=${()=>void this.#o()}>${C(`heart`)}${A.doctorRun}</button></header>
        <p class="mute">${A.doctorText}</p>${this.#s()}</section><plexus-links></plexus-links>`:e}
      <plexus-dialog size="wide" heading=${this.logs?A.logsOf(w(this.logs.id)):``} .open=${this.logs!==null} @close=${()=>{this.logs=null}}>${this.logs?a`
        ${this.logs.lines.length?a`<pre class="log" tabindex="0" role="region" aria-label=${A.logsOf(w(this.logs.id))}>${this.logs.lines.map(t=>a`${t.at?a`<time>${new Date(t.at).toLocaleTimeString(`en`,{hour12:!1})}</time>`:e}${T(g(t.text))}${`
`}`)}</pre>`:a`<p class="mute">${A.noLogs}</p>`}
        <div><button class="compact" @click=${()=>void this.#a(this.logs?.id??``)}>${C(`restart`)}${A.refresh}</button></div>`:e}</plexus-dialog>
    </div>`}#e(t,n){let r=w(t.runtime_id),i=[...b.sessions.value.values()].filter(e=>e.runtime_id===t.runtime_id&&!e.archived).length,o=`command`in t.connect?t.connect.command.join(` `):t.connect.endpoint,s=t.state===`exited`;return a`<li class="row" data-runtime=${t.runtime_id}>
      <div><div class="name"><bdi>${r}</bdi><span class="chip ${j[t.state]??``}">${A.state[t.state]??w(t.state)}</span>${t.agent?a`<bdi class="agent">${w(t.agent)}</bdi>`:e}</div>
        <div class="facts"><span>${w(t.dialect)}</span><a href="#/sessions">${A.sessions(i)}</a>${t.pid?a`<span>${A.pid(t.pid)}</span>`:e}${t.generation>1?a`<span>${A.starts(t.generation)}</span>`:e}
          ${t.outlives?a`<span>${A.outlives}</span>`:e}${t.heard_at?a`<span>${C(`clock`,12)} <plexus-age .at=${t.heard_at}></plexus-age></span>`:e}</div>
        <div class="run cut" title=${T(o)}><bdi>${T(o)}</bdi></div></div>
      ${n?a`<div class="does">
        <button class="ghost compact" @click=${()=>void this.#a(t.runtime_id)}>${C(`log`)}${A.logs}</button>
        <button class="ghost compact" @click=${()=>void this.#i(t)}>${C(`restart`)}${A.restart}</button>
        ${s?a`<button class="ghost compact" @click=${()=>void this.#r(t)}>${C(`trash`)}${A.remove}</button>`:a`<button class="ghost compact" @click=${()=>void this.#n(t)}>${C(`stop`)}${A.stop}</button>`}</div>`:e}
      ${M(t).map(e=>a`<p class="note warn why"><bdi>${e}</bdi></p>`)}
      ${t.problem?a`<p class="note ${s?`danger`:`warn`} why"><bdi>${E(t.problem)}</bdi></p>`:e}
    </li>`}#t;async#n(e){await p(A.stopTitle(w(e.runtime_id)),A.stopText,A.stopDo,!0)&&await d(()=>b.http(`DELETE`,this.#t(e.runtime_id)))}async#r(e){await p(A.removeTitle(w(e.runtime_id)),A.removeText,A.remove,!0)&&await d(()=>b.http(`DELETE`,this.#t(e.runtime_id)))}async#i(e){await d(()=>b.http(`POST`,`${this.#t(e.runtime_id)}/restart`).then(()=>!0))&&o(A.started(w(e.runtime_id)),{tone:`ok`})}async#a(e){try{this.logs={id:e,lines:m((await b.http(`GET`,`${this.#t(e)}/logs`))?.lines)}}catch(t){let n=b.runtimes.peek().get(e)?.stderr_tail??``;t instanceof v&&t.status===404?this.logs={id:e,lines:n?n.split(`
`).map(e=>({text:e})):[]}:o(y.shell.failed(x(t)),{tone:`danger`})}}async#o(){this.checks=y.common.loading;try{this.checks=m((await b.http(`GET`,`/v1/doctor`))?.checks)}catch(e){this.checks=e instanceof v&&e.status===404?A.doctorOff:y.shell.failed(x(e))}}#s(){return this.checks===null?e:typeof this.checks==`string`?a`<p class="note" role="status">${this.checks}</p>`:a`<ul class="list" role="list">${this.checks.map(t=>{let n=t.state===`fail`?`bad`:t.state;return a`<li class="check ${n}">${C(n===`ok`?`check`:n===`bad`?`danger`:`warn`,16,t.state)}<div><span class="strong">${w(t.name)}</span> <bdi class="soft">${E(g(t.detail))}</bdi></div>${t.fix?a`<div class="fix">${E(g(t.fix))}</div>`:e}</li>`})}</ul>`}};_([n()],N.prototype,`logs`,void 0),_([n()],N.prototype,`checks`,void 0),N=_([i(`plexus-runtimes`)],N);export{N as PlexusRuntimes};