import{c as e,f as t,g as n,i as r,m as i,u as a}from"./libraries-D3tVd1Dt.js";import{n as o,t as s}from"./icons-CfyhBgGx.js";import{A as c,E as l,M as u,N as d,P as f,a as p,c as m,i as h,j as g,l as _,n as v,o as y,s as b,t as x,u as S,w as C}from"./parts-C1VI4Yy4.js";import{t as w}from"./en-DZy5rTsZ.js";import{_ as T,k as E}from"./index-Bwy6Bj0K.js";var D=w.shell.links,O={linked:`ok`,out_of_date:`warn`,damaged:`warn`,unknown:`warn`},k=class extends o{constructor(...e){super(...e),this.agents=null,this.busy=!1,this.problem=``,this.shown=null}static{this.styles=[...[o.styles].flat(),y,n`
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
  `]}render(){return i`<section class="section"><header><h2>${D.title}</h2>
      <button class="compact" id="links" ?disabled=${this.busy} @click=${()=>void this.#r()}>${s(`search`)}${this.agents?D.again:D.look}</button></header>
      <p class="mute">${D.lead}</p>
      ${this.busy&&!this.agents?i`<p class="note" role="status">${w.common.loading}</p>`:t}
      ${this.problem&&!this.shown?i`<p class="note danger" role="alert">${this.problem}</p>`:t}
      ${this.agents?i`<ul class="list" role="list">${this.agents.map(e=>this.#e(e))}</ul>`:t}
      ${this.#n()}</section>`}#e(e){let n=!!e.path,r=e.gate??e.detail;return i`<li class="row" data-agent=${e.agent}>
      <div><div class="name">${g(e.title)}<span class="chip ${O[e.state]??``}">${n||e.state===`linked`?D.state[e.state]??g(e.state):D.missing}</span>${e.version?i`<bdi>${g(e.version)}</bdi>`:t}</div>
        <p class="soft small">${r?u(r):D.seen(g(e.seen))}</p>
        ${e.heard_at?i`<p class="mute small">${D.heard} <plexus-age .at=${e.heard_at}></plexus-age></p>`:t}</div>
      <div>${e.link?i`<button class="compact" @click=${()=>this.#t(e,`link`)}>${e.state===`not_linked`?D.link:D.repair}</button>`:t}
        ${e.unlink?i`<button class="ghost compact" @click=${()=>this.#t(e,`unlink`)}>${D.unlink}</button>`:t}</div>
      ${c(e.notices).map(e=>i`<p class="note warn"><bdi>${u(d(e))}</bdi></p>`)}
    </li>`}#t(e,t){this.problem=``,this.shown={agent:e.agent,action:t}}#n(){let e=this.shown,n=e&&this.agents?.find(t=>t.agent===e.agent),r=n&&e?n[e.action]:void 0,a=n?(e?.action===`unlink`?D.unlinkTitle:D.linkTitle)(g(n.title)):``;return i`<plexus-dialog size="wide" heading=${a} .open=${!!e} @close=${()=>{this.shown=null}}>${n&&e?i`
      <p class="soft">${e.action===`link`?D.linkText:D.unlinkText}</p>
      ${r?.files.map(e=>i`<div class="file"><div>${D.action[e.action]??g(e.action)} <code>${f(e.path)}</code>${e.leads_to?i` <span class="mute">${D.leadsTo(f(e.leads_to))}</span>`:t}</div>
        ${e.exact===void 0?t:i`<p class="mute small">${e.exact?D.exact:D.notExact}</p>`}
        ${e.copy?i`<p class="mute small">${D.copy(f(e.copy))}</p>`:t}
        <pre tabindex="0" role="region" aria-label=${D.diffOf(f(e.path))}>${e.diff.split(`
`).map(e=>e.startsWith(`+`)?i`<ins>${f(e)}</ins>`:e.startsWith(`-`)?i`<del>${f(e)}</del>`:i`${f(e)}${`
`}`)}</pre></div>`)}
      ${r?t:i`<p class="note" role="status">${D.nothing}</p>`}
      ${e.action===`link`&&r?i`<div class="file"><span class="mute small">${D.undo}</span>${v(`plexus link ${n.agent} --remove`)}</div>`:t}
      ${this.problem?i`<p class="note danger" role="alert">${this.problem}</p>`:t}
      <div class="actions"><button @click=${()=>{this.shown=null}}>${w.common.cancel}</button>
        ${r?i`<button class="primary" ?disabled=${this.busy} @click=${()=>void this.#i(n,e.action,r.digest)}>${e.action===`link`?D.linkDo:D.unlinkDo}</button>`:t}</div>`:t}</plexus-dialog>`}async#r(){this.busy=!0,this.problem=``;try{this.agents=c((await S.http(`GET`,`/v1/link`))?.agents),b(D.found(this.agents.filter(e=>e.path).length))}catch(e){this.problem=w.shell.failed(l(e))}finally{this.busy=!1}}async#i(e,t,n){this.busy=!0,this.problem=``;try{this.agents=c((await S.http(`POST`,`/v1/link/${encodeURIComponent(e.agent)}`,{action:t,digest:n}))?.agents),this.shown=null,m((t===`link`?D.linked:D.unlinked)(g(e.title)),{tone:`ok`})}catch(e){let t=w.shell.failed(l(e));await this.#r(),this.problem=t}finally{this.busy=!1}}};_([e()],k.prototype,`agents`,void 0),_([e()],k.prototype,`busy`,void 0),_([e()],k.prototype,`problem`,void 0),_([e()],k.prototype,`shown`,void 0),k=_([a(`plexus-links`)],k);var A=w.shell.runtimes,j={ready:`ok`,starting:`info`,restarting:`warn`,exited:``},M=class extends o{constructor(...e){super(...e),this.logs=null,this.checks=null,this.#t=e=>`/v1/runtimes/${encodeURIComponent(e)}`}static{this.styles=[...[o.styles].flat(),y,n`
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
  `]}render(){let e=[...S.runtimes.value.values()].sort((e,t)=>e.runtime_id<t.runtime_id?-1:1),n=S.may(`admin`);return i`<div class="page">
      <header><h1 tabindex="-1">${A.title}</h1>${n?i`<button class="primary" id="new" @click=${T}>${s(`plus`)}${w.shell.sessions.new}</button>`:t}</header>
      ${n?t:i`<p class="mute">${A.needAdmin}</p>`}
      ${e.length?i`<ul class="list">${r(e,e=>e.runtime_id,e=>this.#e(e,n))}</ul>`:S.loaded.value?h(`runtimes`,A.none,A.noneText):p()}
      ${n?i`<section class="section"><header><h2>${A.doctor}</h2><button class="compact" id="doctor" @click=${()=>void this.#o()}>${s(`heart`)}${A.doctorRun}</button></header>
        <p class="mute">${A.doctorText}</p>${this.#s()}</section><plexus-links></plexus-links>`:t}
      <plexus-dialog size="wide" heading=${this.logs?A.logsOf(g(this.logs.id)):``} .open=${this.logs!==null} @close=${()=>{this.logs=null}}>${this.logs?i`
        ${this.logs.lines.length?i`<pre class="log" tabindex="0" role="region" aria-label=${A.logsOf(g(this.logs.id))}>${this.logs.lines.map(e=>i`${e.at?i`<time>${new Date(e.at).toLocaleTimeString(`en`,{hour12:!1})}</time>`:t}${f(d(e.text))}${`
`}`)}</pre>`:i`<p class="mute">${A.noLogs}</p>`}
        <div><button class="compact" @click=${()=>void this.#a(this.logs?.id??``)}>${s(`restart`)}${A.refresh}</button></div>`:t}</plexus-dialog>
    </div>`}#e(e,n){let r=g(e.runtime_id),a=[...S.sessions.value.values()].filter(t=>t.runtime_id===e.runtime_id&&!t.archived).length,o=`command`in e.connect?e.connect.command.join(` `):e.connect.endpoint,c=e.state===`exited`;return i`<li class="row" data-runtime=${e.runtime_id}>
      <div><div class="name"><bdi>${r}</bdi><span class="chip ${j[e.state]??``}">${A.state[e.state]??g(e.state)}</span>${e.agent?i`<bdi class="agent">${g(e.agent)}</bdi>`:t}</div>
        <div class="facts"><span>${g(e.dialect)}</span><a href="#/sessions">${A.sessions(a)}</a>${e.pid?i`<span>${A.pid(e.pid)}</span>`:t}${e.generation>1?i`<span>${A.starts(e.generation)}</span>`:t}
          ${e.outlives?i`<span>${A.outlives}</span>`:t}${e.heard_at?i`<span>${s(`clock`,12)} <plexus-age .at=${e.heard_at}></plexus-age></span>`:t}</div>
        <div class="run cut" title=${f(o)}><bdi>${f(o)}</bdi></div></div>
      ${n?i`<div class="does">
        <button class="ghost compact" @click=${()=>void this.#a(e.runtime_id)}>${s(`log`)}${A.logs}</button>
        <button class="ghost compact" @click=${()=>void this.#i(e)}>${s(`restart`)}${A.restart}</button>
        ${c?i`<button class="ghost compact" @click=${()=>void this.#r(e)}>${s(`trash`)}${A.remove}</button>`:i`<button class="ghost compact" @click=${()=>void this.#n(e)}>${s(`stop`)}${A.stop}</button>`}</div>`:t}
      ${e.problem?i`<p class="note ${c?`danger`:`warn`} why"><bdi>${u(e.problem)}</bdi></p>`:t}
    </li>`}#t;async#n(e){await E(A.stopTitle(g(e.runtime_id)),A.stopText,A.stopDo,!0)&&await x(()=>S.http(`DELETE`,this.#t(e.runtime_id)))}async#r(e){await E(A.removeTitle(g(e.runtime_id)),A.removeText,A.remove,!0)&&await x(()=>S.http(`DELETE`,this.#t(e.runtime_id)))}async#i(e){await x(()=>S.http(`POST`,`${this.#t(e.runtime_id)}/restart`).then(()=>!0))&&m(A.started(g(e.runtime_id)),{tone:`ok`})}async#a(e){try{this.logs={id:e,lines:c((await S.http(`GET`,`${this.#t(e)}/logs`))?.lines)}}catch(t){let n=S.runtimes.peek().get(e)?.stderr_tail??``;t instanceof C&&t.status===404?this.logs={id:e,lines:n?n.split(`
`).map(e=>({text:e})):[]}:m(w.shell.failed(l(t)),{tone:`danger`})}}async#o(){this.checks=w.common.loading;try{this.checks=c((await S.http(`GET`,`/v1/doctor`))?.checks)}catch(e){this.checks=e instanceof C&&e.status===404?A.doctorOff:w.shell.failed(l(e))}}#s(){return this.checks===null?t:typeof this.checks==`string`?i`<p class="note" role="status">${this.checks}</p>`:i`<ul class="list" role="list">${this.checks.map(e=>{let n=e.state===`fail`?`bad`:e.state;return i`<li class="check ${n}">${s(n===`ok`?`check`:n===`bad`?`danger`:`warn`,16,e.state)}<div><span class="strong">${g(e.name)}</span> <bdi class="soft">${u(d(e.detail))}</bdi></div>${e.fix?i`<div class="fix">${u(d(e.fix))}</div>`:t}</li>`})}</ul>`}};_([e()],M.prototype,`logs`,void 0),_([e()],M.prototype,`checks`,void 0),M=_([a(`plexus-runtimes`)],M);export{M as PlexusRuntimes};