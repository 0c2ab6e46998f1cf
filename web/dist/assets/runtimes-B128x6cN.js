import{c as e,f as t,i as n,n as r,o as i,u as a}from"./libraries-MxmsVMue.js";import{$ as o,J as s,K as c,Q as l,U as u,W as d,X as f,Z as p,_t as m,a as h,bt as g,dt as _,et as v,ft as y,gt as b,kt as x,mt as S,q as C,tt as w,vt as T,yt as E}from"./frame-CHzQf2Ck.js";var D=S.shell.links,O={linked:`ok`,out_of_date:`warn`,damaged:`warn`,unknown:`warn`},k=class extends x{constructor(...e){super(...e),this.agents=null,this.busy=!1,this.problem=``,this.shown=null}static{this.styles=[...[x.styles].flat(),s,t`
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
      <button class="compact" id="links" ?disabled=${this.busy} @click=${()=>void this.#r()}>${v(`search`)}${this.agents?D.again:D.look}</button></header>
      <p class="mute">${D.lead}</p>
      ${this.busy&&!this.agents?a`<p class="note" role="status">${S.common.loading}</p>`:e}
      ${this.problem&&!this.shown?a`<p class="note danger" role="alert">${this.problem}</p>`:e}
      ${this.agents?a`<ul class="list" role="list">${this.agents.map(e=>this.#e(e))}</ul>`:e}
      ${this.#n()}</section>`}#e(t){let n=!!t.path,r=t.gate??t.detail;return a`<li class="row" data-agent=${t.agent}>
      <div><div class="name">${m(t.title)}<span class="chip ${O[t.state]??``}">${n||t.state===`linked`?D.state[t.state]??m(t.state):D.missing}</span>${t.version?a`<bdi>${m(t.version)}</bdi>`:e}</div>
        <p class="soft small">${r?T(r):D.seen(m(t.seen))}</p>
        ${t.heard_at?a`<p class="mute small">${D.heard} <plexus-age .at=${t.heard_at}></plexus-age></p>`:e}</div>
      <div>${t.link?a`<button class="compact" @click=${()=>this.#t(t,`link`)}>${t.state===`not_linked`?D.link:D.repair}</button>`:e}
        ${t.unlink?a`<button class="ghost compact" @click=${()=>this.#t(t,`unlink`)}>${D.unlink}</button>`:e}</div>
      ${b(t.notices).map(e=>a`<p class="note warn"><bdi>${T(E(e))}</bdi></p>`)}
    </li>`}#t(e,t){this.problem=``,this.shown={agent:e.agent,action:t}}#n(){let t=this.shown,n=t&&this.agents?.find(e=>e.agent===t.agent),r=n&&t?n[t.action]:void 0,i=n?(t?.action===`unlink`?D.unlinkTitle:D.linkTitle)(m(n.title)):``;return a`<plexus-dialog size="wide" heading=${i} .open=${!!t} @close=${()=>{this.shown=null}}>${n&&t?a`
      <p class="soft">${t.action===`link`?D.linkText:D.unlinkText}</p>
      ${r?.files.map(t=>a`<div class="file"><div>${D.action[t.action]??m(t.action)} <code>${g(t.path)}</code>${t.leads_to?a` <span class="mute">${D.leadsTo(g(t.leads_to))}</span>`:e}</div>
        ${t.exact===void 0?e:a`<p class="mute small">${t.exact?D.exact:D.notExact}</p>`}
        ${t.copy?a`<p class="mute small">${D.copy(g(t.copy))}</p>`:e}
        <pre tabindex="0" role="region" aria-label=${D.diffOf(g(t.path))}>${t.diff.split(`
`).map(e=>e.startsWith(`+`)?a`<ins>${g(e)}</ins>`:e.startsWith(`-`)?a`<del>${g(e)}</del>`:a`${g(e)}${`
`}`)}</pre></div>`)}
      ${r?e:a`<p class="note" role="status">${D.nothing}</p>`}
      ${t.action===`link`&&r?a`<div class="file"><span class="mute small">${D.undo}</span>${d(`plexus link ${n.agent} --remove`)}</div>`:e}
      ${this.problem?a`<p class="note danger" role="alert">${this.problem}</p>`:e}
      <div class="actions"><button @click=${()=>{this.shown=null}}>${S.common.cancel}</button>
        ${r?a`<button class="primary" ?disabled=${this.busy} @click=${()=>void this.#i(n,t.action,r.digest)}>${t.action===`link`?D.linkDo:D.unlinkDo}</button>`:e}</div>`:e}</plexus-dialog>`}async#r(){this.busy=!0,this.problem=``;try{this.agents=b((await w.http(`GET`,`/v1/link`))?.agents),p(D.found(this.agents.filter(e=>e.path).length))}catch(e){this.problem=S.shell.failed(y(e))}finally{this.busy=!1}}async#i(e,t,n){this.busy=!0,this.problem=``;try{this.agents=b((await w.http(`POST`,`/v1/link/${encodeURIComponent(e.agent)}`,{action:t,digest:n}))?.agents),this.shown=null,l((t===`link`?D.linked:D.unlinked)(m(e.title)),{tone:`ok`})}catch(e){let t=S.shell.failed(y(e));await this.#r(),this.problem=t}finally{this.busy=!1}}};o([n()],k.prototype,`agents`,void 0),o([n()],k.prototype,`busy`,void 0),o([n()],k.prototype,`problem`,void 0),o([n()],k.prototype,`shown`,void 0),k=o([i(`plexus-links`)],k);var A=S.shell.runtimes,j={ready:`ok`,starting:`info`,restarting:`warn`,exited:``};function M(e){return[e.acted_unasked?A.unasked(m(e.acted_unasked)):``,e.reviewer?A.reviewer(m(e.reviewer)):``,e.fixed_folder?A.fixedFolder(m(e.cwd)):``].filter(Boolean)}var N=class extends x{constructor(...e){super(...e),this.logs=null,this.checks=null,this.#t=e=>`/v1/runtimes/${encodeURIComponent(e)}`}static{this.styles=[...[x.styles].flat(),s,t`
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
  `]}render(){let t=[...w.runtimes.value.values()].sort((e,t)=>e.runtime_id<t.runtime_id?-1:1),n=w.may(`admin`);return a`<div class="page">
      <header><h1 tabindex="-1">${A.title}</h1>${n?a`<button class="primary" id="new" @click=${h}>${v(`plus`)}${S.shell.sessions.new}</button>`:e}</header>
      ${n?e:a`<p class="mute">${A.needAdmin}</p>`}
      ${t.length?a`<ul class="list">${r(t,e=>e.runtime_id,e=>this.#e(e,n))}</ul>`:w.loaded.value?c(`runtimes`,A.none,A.noneText):C()}
      ${n?a`<section class="section"><header><h2>${A.doctor}</h2><button class="compact" id="doctor" @click=${()=>void this.#o()}>${v(`heart`)}${A.doctorRun}</button></header>
        <p class="mute">${A.doctorText}</p>${this.#s()}</section><plexus-links></plexus-links>`:e}
      <plexus-dialog size="wide" heading=${this.logs?A.logsOf(m(this.logs.id)):``} .open=${this.logs!==null} @close=${()=>{this.logs=null}}>${this.logs?a`
        ${this.logs.lines.length?a`<pre class="log" tabindex="0" role="region" aria-label=${A.logsOf(m(this.logs.id))}>${this.logs.lines.map(t=>a`${t.at?a`<time>${new Date(t.at).toLocaleTimeString(`en`,{hour12:!1})}</time>`:e}${g(E(t.text))}${`
`}`)}</pre>`:a`<p class="mute">${A.noLogs}</p>`}
        <div><button class="compact" @click=${()=>void this.#a(this.logs?.id??``)}>${v(`restart`)}${A.refresh}</button></div>`:e}</plexus-dialog>
    </div>`}#e(t,n){let r=m(t.runtime_id),i=[...w.sessions.value.values()].filter(e=>e.runtime_id===t.runtime_id&&!e.archived).length,o=`command`in t.connect?t.connect.command.join(` `):t.connect.endpoint,s=t.state===`exited`;return a`<li class="row" data-runtime=${t.runtime_id}>
      <div><div class="name"><bdi>${r}</bdi><span class="chip ${j[t.state]??``}">${A.state[t.state]??m(t.state)}</span>${t.agent?a`<bdi class="agent">${m(t.agent)}</bdi>`:e}</div>
        <div class="facts"><span>${m(t.dialect)}</span><a href="#/sessions">${A.sessions(i)}</a>${t.pid?a`<span>${A.pid(t.pid)}</span>`:e}${t.generation>1?a`<span>${A.starts(t.generation)}</span>`:e}
          ${t.outlives?a`<span>${A.outlives}</span>`:e}${t.heard_at?a`<span>${v(`clock`,12)} <plexus-age .at=${t.heard_at}></plexus-age></span>`:e}</div>
        <div class="run cut" title=${g(o)}><bdi>${g(o)}</bdi></div></div>
      ${n?a`<div class="does">
        <button class="ghost compact" @click=${()=>void this.#a(t.runtime_id)}>${v(`log`)}${A.logs}</button>
        <button class="ghost compact" @click=${()=>void this.#i(t)}>${v(`restart`)}${A.restart}</button>
        ${s?a`<button class="ghost compact" @click=${()=>void this.#r(t)}>${v(`trash`)}${A.remove}</button>`:a`<button class="ghost compact" @click=${()=>void this.#n(t)}>${v(`stop`)}${A.stop}</button>`}</div>`:e}
      ${M(t).map(e=>a`<p class="note warn why"><bdi>${e}</bdi></p>`)}
      ${t.problem?a`<p class="note ${s?`danger`:`warn`} why"><bdi>${T(t.problem)}</bdi></p>`:e}
    </li>`}#t;async#n(e){await f(A.stopTitle(m(e.runtime_id)),A.stopText,A.stopDo,!0)&&await u(()=>w.http(`DELETE`,this.#t(e.runtime_id)))}async#r(e){await f(A.removeTitle(m(e.runtime_id)),A.removeText,A.remove,!0)&&await u(()=>w.http(`DELETE`,this.#t(e.runtime_id)))}async#i(e){await u(()=>w.http(`POST`,`${this.#t(e.runtime_id)}/restart`).then(()=>!0))&&l(A.started(m(e.runtime_id)),{tone:`ok`})}async#a(e){try{this.logs={id:e,lines:b((await w.http(`GET`,`${this.#t(e)}/logs`))?.lines)}}catch(t){let n=w.runtimes.peek().get(e)?.stderr_tail??``;t instanceof _&&t.status===404?this.logs={id:e,lines:n?n.split(`
`).map(e=>({text:e})):[]}:l(S.shell.failed(y(t)),{tone:`danger`})}}async#o(){this.checks=S.common.loading;try{this.checks=b((await w.http(`GET`,`/v1/doctor`))?.checks)}catch(e){this.checks=e instanceof _&&e.status===404?A.doctorOff:S.shell.failed(y(e))}}#s(){return this.checks===null?e:typeof this.checks==`string`?a`<p class="note" role="status">${this.checks}</p>`:a`<ul class="list" role="list">${this.checks.map(t=>{let n=t.state===`fail`?`bad`:t.state;return a`<li class="check ${n}">${v(n===`ok`?`check`:n===`bad`?`danger`:`warn`,16,t.state)}<div><span class="strong">${m(t.name)}</span> <bdi class="soft">${T(E(t.detail))}</bdi></div>${t.fix?a`<div class="fix">${T(E(t.fix))}</div>`:e}</li>`})}</ul>`}};o([n()],N.prototype,`logs`,void 0),o([n()],N.prototype,`checks`,void 0),N=o([i(`plexus-runtimes`)],N);export{N as PlexusRuntimes};