import{c as e,f as t,i as n,n as r,o as i,r as a,u as o}from"./libraries-MxmsVMue.js";import{At as s,Ct as c,Dt as l,G as u,J as d,Y as f,a as p,c as m,d as h,et as g,ht as _,l as v,nt as y,q as b,tt as x,u as S,vt as C}from"./frame-CWJtEa8y.js";import{a as w,c as T,i as E,n as D,r as O,t as k}from"./actions-CHFb7ejZ.js";var A=_.shell.sessions,j=200,M=20,N=[],P=12,F=class extends s{constructor(...e){super(...e),this.filter=``,this.archived=!1,this.limit=j,this.drawn=P,this.folded=h(),this.grown=new Map,this.only=``,this.#t=()=>{}}#e;#t;static{this.styles=[...[s.styles].flat(),f,t`
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
    @media (max-width: 599px) { .fold .root { display: none; } .branch { max-width: 14ch; } .row { padding-right: 0; } .side .who, .side .q { display: none; } .side { flex-direction: column-reverse; align-items: flex-end; gap: 2px; } .side .age { min-width: 0; } .filter { max-width: none; } }
  `]}connectedCallback(){super.connectedCallback();let e=()=>[...this.renderRoot.querySelectorAll(`.fold, .row > a, .rest`)],t=t=>()=>{let n=e(),r=n.indexOf(l());n[r<0?t>0?0:n.length-1:Math.max(0,Math.min(n.length-1,r+t))]?.focus()},n=e=>()=>{let t=l()?.dataset?.session,n=t?y.sessions.peek().get(t):void 0;n&&y.may(`prompt`)&&e(n)};this.#t=c([{key:`j`,atOnce:!0,run:t(1)},{key:`k`,atOnce:!0,run:t(-1)},{key:`ArrowDown`,run:t(1)},{key:`ArrowUp`,run:t(-1)},{key:`e`,run:n(e=>O(e))},{key:`r`,run:n(e=>w(e))},{key:`ArrowLeft`,run:()=>this.#a(!0)},{key:`ArrowRight`,run:()=>this.#a(!1)},{key:`p`,run:()=>{let e=this.#r();(e||this.only)&&this.#s(this.only?``:e)}},{key:`/`,atOnce:!0,run:()=>this.renderRoot.querySelector(`input`)?.focus()}])}disconnectedCallback(){super.disconnectedCallback(),this.#t(),clearTimeout(this.#e),this.#e=void 0}#n(e){this.drawn>=e||this.#e!==void 0||(this.#e=setTimeout(()=>{this.#e=void 0,this.drawn+=P},0))}#r(){return(l()?.closest(`.project`))?.dataset.project??``}#i(e,t=!this.folded.has(e)){let n=new Set(this.folded);n.delete(e),t&&n.add(e),this.folded=n,v(n)}#a(e){let t=l(),n=t?.closest(`.project`),r=n?.querySelector(`.fold`),i=n?.dataset.project;if(!t||!r||i===void 0)return;let a=r.getAttribute(`aria-expanded`)===`true`;t===r?e===a?this.#i(i,e):e||n?.querySelector(`.row > a`)?.focus():e&&r.focus()}#o(e,t){this.grown=new Map(this.grown).set(e,t+j),this.limit+=j,this.updateComplete.then(()=>{[...this.renderRoot.querySelectorAll(`.project`)].find(t=>t.dataset.project===e)?.querySelectorAll(`.row > a`)[t]?.focus()})}#s(e){let t=this.only||e;[this.only,this.limit]=[e,j],this.updateComplete.then(()=>{[...this.renderRoot.querySelectorAll(`.project`)].find(e=>e.dataset.project===t)?.querySelector(`.fold`)?.focus()})}#c(e){let t=this.filter.trim().toLowerCase(),n=y.news.value,r=e=>`${e.title??``} ${e.runtime_id} ${e.project?.name??``} ${e.project?.branch??``} ${e.project?.worktree??``} ${e.cwd} ${A.state[e.state]??``} ${e.doing??``}`,i=[...y.sessions.value.values()].filter(e=>!!e.archived===this.archived).filter(e=>!this.only||S(e).key===this.only).filter(e=>!t||r(e).toLowerCase().includes(t));return m(i,t=>e.get(t.session_id)??t.open_requests,e=>e.run_id&&e.prompted_at?Date.parse(e.prompted_at):n.get(e.session_id)??Date.parse(e.updated_at))}#l(){let e=new Map;for(let t of y.requests.value.values())t.state===`open`&&e.set(t.session_id,(e.get(t.session_id)??0)+1);return e}render(){let t=this.#l(),n=this.#c(t),i=e=>!this.filter.trim()&&this.only!==e.key&&this.folded.has(e.key),a=this.limit,s=0,c=n.map(e=>{let t=i(e),r=n.length===1?a:Math.min(a,this.grown.get(e.key)??M),o=t?[]:e.sessions.slice(0,r);return!t&&!o.length&&(s+=e.sessions.length),a-=o.length,{group:e,rows:o,folded:t}}).filter(({rows:e,folded:t})=>e.length||t);this.#n(this.limit-a);let l=this.drawn,u=c.map(e=>{let t=e.rows.slice(0,Math.max(0,l));return l-=t.length,{...e,rows:t,all:e.rows.length}});return o`<div class="page">
      <header><h1 tabindex="-1">${A.title}</h1>
        ${y.may(`prompt`)?o`<button class="primary" id="new" @click=${p}>${x(`plus`)}${A.new}</button>`:e}</header>
      <div class="tools">
        <div class="filter">${x(`search`)}<input type="search" aria-label=${A.filter} placeholder=${A.filterHint} .value=${this.filter} @input=${e=>{this.filter=e.target.value,this.limit=j}}
          @keydown=${e=>{(e.key===`ArrowDown`||e.key===`Enter`)&&(e.preventDefault(),this.renderRoot.querySelector(`.row > a`)?.focus())}}></div>
        <div class="seg" role="group" aria-label=${A.which}>${[!1,!0].map(e=>o`<button aria-pressed=${this.archived===e} @click=${()=>{this.archived=e}}>${e?A.showArchived:A.showActive}</button>`)}</div>
      </div>
      ${u.length?r(u,({group:e})=>e.key,({group:e,rows:n,all:r,folded:i})=>this.#d(e,n,r,i,t)):this.#u()}
      ${s?o`<p><button id="more" @click=${()=>{this.limit+=j}}>${_.common.more} (${s})</button></p>`:e}
      <plexus-share></plexus-share><plexus-abilities></plexus-abilities>
    </div>`}#u(){return y.loaded.value?this.filter||this.only?b(`search`,A.noneFound,A.noneFoundText,o`<button @click=${()=>{[this.filter,this.only]=[``,``]}}>${A.clear}</button>`):this.archived?b(`archive`,A.noneArchived,A.noneArchivedText):b(`sessions`,A.none,A.noneText,u(A.noneCommand)):d()}#d(t,n,i,a,s){let{key:c,name:l,root:u,sessions:d,waiting:f}=t,p=this.only===c,m=p?A.allProjects(l):A.only(l);return o`<section class="project ${a?`folded`:``}" data-project=${c}>
      <h2><button class="fold" aria-expanded=${!a} @click=${()=>this.#i(c)}>${x(`down`,14)}<bdi class="name cut">${l}</bdi><span class="root cut" aria-hidden="true"><bdi>${u}</bdi></span>
        <span class="n">${A.count(d.length)}</span>${f?o`<span class="chip warn">${A.requests(f)}</span>`:e}</button>
        <button class="ghost icon narrow" aria-pressed=${p} aria-label=${m} title=${m} @click=${()=>this.#s(p?``:c)}>${x(`only`,14)}</button></h2>
      ${a?e:o`<ul class="list">${r(n,e=>e.session_id,e=>this.#f(e,s.get(e.session_id)??e.open_requests))}</ul>
        ${i<d.length?o`<button class="ghost rest" @click=${()=>this.#o(c,i)}>${A.more(d.length-i,l)}</button>`:e}`}</section>`}#f(e,t){let n=y.unread.value.has(e.session_id),r=y.news.value.get(e.session_id)??Date.parse(e.updated_at),i=y.viewers.value.get(e.session_id)??N,o=y.runtimes.value.get(e.runtime_id)?.capabilities;return a([e,t,n,r,i,D(e),y.me.value,T.value,o],()=>this.#p(e,t,n,r,i))}#p(t,n,r,i,a){let s=C(t.title)||_.common.untitled,c=C(t.doing??``),{branch:l,worktree:u,below:d}=S(t),f=u?A.worktree(u):A.branch(l);return o`<li class="row ${r?`unread`:``}">
      <plexus-state .state=${t.state} bare></plexus-state>
      <a href=${y.href({page:`session`,session_id:t.session_id})} data-session=${t.session_id}>
        <span class="title"><bdi class="cut">${s}</bdi>${r?o`<span class="new" role="img" aria-label=${A.unread}></span>`:e}</span>
        <span class="sub">${l?o`<span class="chip branch" title=${f}>${x(u?`folder`:`branch`,12,f)}<bdi class="cut" aria-hidden="true">${l}</bdi></span>`:e}<bdi class="agent">${C(t.runtime_id)}</bdi>${c||d?o`<span aria-hidden="true">·</span>`:e}${c?o`<bdi class="doing cut">${c}</bdi>`:o`<bdi class="cut">${d}</bdi>`}</span></a>
      <span class="side">
        ${t.linked?o`<span class="mute" title=${_.common.linked}>${x(`terminal`,14,_.common.linked)}</span>`:e}
        ${a.length?o`<span class="who" title=${A.lookers(a.map(e=>C(e.name)).join(`, `))}>${x(`eye`,14,A.lookers(a.map(e=>C(e.name)).join(`, `)))}${a.length}</span>`:e}
        ${t.queue?.length?o`<span class="chip q">${A.queued(t.queue.length)}</span>`:e}
        ${k(t)}
        ${n?o`<span class="chip warn">${A.requests(n)}</span>`:e}
        <span class="age"><plexus-age .at=${i} short></plexus-age></span></span>
      <plexus-menu class="menu" label=${A.menu(s)} .items=${()=>E(t)}></plexus-menu></li>`}};g([n()],F.prototype,`filter`,void 0),g([n()],F.prototype,`archived`,void 0),g([n()],F.prototype,`limit`,void 0),g([n()],F.prototype,`drawn`,void 0),g([n()],F.prototype,`folded`,void 0),g([n()],F.prototype,`grown`,void 0),g([n()],F.prototype,`only`,void 0),F=g([i(`plexus-sessions`)],F);export{F as PlexusSessions};