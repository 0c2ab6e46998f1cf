import{a as e,c as t,f as n,i as r,o as i,u as a}from"./libraries-MxmsVMue.js";import{At as o,Ct as s,Dt as c,Q as l,Y as u,bt as d,dt as f,et as p,ht as m,nt as h,pt as g,q as _,tt as v,u as y,vt as b,xt as x}from"./frame-CWJtEa8y.js";var S=m.shell.search,C=220,w=class extends o{constructor(...e){super(...e),this.q=``,this.hits=null,this.problem=``,this.asked=``,this.only=``,this.#t=0,this.#n=()=>{},this.#o=e=>{let t=e.target.value;clearTimeout(this.#e),this.#e=setTimeout(()=>{this.q=t,history.replaceState(null,``,h.href({page:`search`,q:t.trim()}))},C)}}#e;#t;#n;static{this.styles=[...[o.styles].flat(),u,n`
    .field { position: relative; margin-bottom: var(--s4); }
    .field svg { position: absolute; left: 13px; top: 50%; transform: translateY(-50%); color: var(--fg-mute); pointer-events: none; }
    .field input { min-height: 44px; padding-left: 40px; font-size: var(--t-l); border-radius: var(--r-m); }
    .hit { position: relative; display: flex; flex-direction: column; gap: 3px; padding: 11px 16px; }
    .hit:hover { background: var(--bg-hover); }
    .hit a { color: inherit; text-decoration: none; }
    .hit a::after { content: ""; position: absolute; inset: 0; }
    .hit a:focus-visible { outline: none; }
    .hit a:focus-visible::after { outline: var(--focus); outline-offset: -2px; border-radius: var(--r-s); }
    .head { display: flex; gap: 8px; align-items: center; margin: 0; min-height: 0; flex-wrap: nowrap; font-size: var(--t-s); color: var(--fg-mute); }
    .head .strong { color: var(--fg); font-size: var(--t-m); }
    .head > * { flex: none; }
    .head > .cut { flex: 0 1 auto; }
    @media (max-width: 480px) { .head { flex-wrap: wrap; } .head > a { flex-basis: 100%; } }
    .snip { color: var(--fg-soft); overflow: hidden; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; line-clamp: 3; }
    mark { background: var(--warn-wash); color: var(--fg); border-radius: 3px; box-shadow: 0 0 0 1px var(--warn-line); }
    .project { display: flex; align-items: center; gap: 8px; position: sticky; top: 0; z-index: 2; background: var(--bg); padding: 6px 0; margin-top: var(--s4); font-size: var(--t-m); font-weight: 600; }
    .projects { display: flex; flex-wrap: wrap; gap: var(--s2); margin-bottom: var(--s3); }
    .projects button { gap: 6px; font-weight: 500; max-width: 100%; }
    .projects button[aria-pressed="true"] { background: var(--accent-wash); border-color: var(--accent); }
    .projects .count { color: var(--fg-mute); font-weight: 400; }
    @media (pointer: coarse) { .projects button { min-height: 44px; } }
    .n { font-size: var(--t-s); color: var(--fg-mute); margin-bottom: var(--s2); }
  `]}connectedCallback(){super.connectedCallback();let e=e=>()=>{let t=[...this.renderRoot.querySelectorAll(`.hit a`)],n=t.indexOf(c());t[n<0?0:Math.max(0,Math.min(t.length-1,n+e))]?.focus()};this.#n=s([{key:`j`,atOnce:!0,run:e(1)},{key:`k`,atOnce:!0,run:e(-1)},{key:`ArrowDown`,run:e(1)},{key:`ArrowUp`,run:e(-1)},{key:`/`,atOnce:!0,run:()=>this.renderRoot.querySelector(`input`)?.focus()}]),this.updateComplete.then(()=>{matchMedia(`(pointer: fine)`).matches&&this.renderRoot.querySelector(`input`)?.focus()})}disconnectedCallback(){super.disconnectedCallback(),this.#n(),clearTimeout(this.#e)}updated(){this.q.trim()!==this.asked&&(this.asked=this.q.trim(),this.#s())}render(){return a`<div class="page"><header><h1 tabindex="-1">${S.title}</h1></header>
      <div class="field" role="search">${v(`search`,18)}<input type="search" aria-label=${S.label} placeholder=${S.hint} .value=${this.q} autocomplete="off" spellcheck="false"
        @input=${this.#o} @keydown=${e=>{(e.key===`ArrowDown`||e.key===`Enter`&&!e.isComposing)&&(e.preventDefault(),this.renderRoot.querySelector(`.hit a`)?.focus())}}></div>
      ${this.problem?a`<p class="note danger" role="alert">${this.problem}</p>`:t}
      ${this.hits===null?this.asked?a`<p class="mute">${m.common.loading}</p>`:_(`search`,S.start,S.startText):this.hits.length===0?_(`search`,S.none(x(this.asked)),S.noneText):a`<p class="n">${S.found(this.hits.length)}</p>${this.#r(this.hits)}`}</div>`}#r(e){let t=new Map;for(let n of e){let e=h.sessions.value.get(n.session_id),{key:r,name:i}=e?y(e):{key:``,name:S.elsewhere},a=t.get(r);a?a.hits.push(n):t.set(r,{name:i,hits:[n]})}let n=e=>a`<ul class="list">${e.map(e=>this.#i(e))}</ul>`;if(t.size===1)return n(e);let r=[...t].filter(([e])=>!t.has(this.only)||e===this.only);return a`<div class="projects" role="group" aria-label=${S.projects}>${[...t].map(([e,{name:t,hits:n}])=>a`<button class="compact" aria-pressed=${this.only===e&&this.only!==``}
        @click=${()=>{this.only=this.only===e?``:e}}><bdi class="cut">${t}</bdi><span class="count">${n.length}</span></button>`)}</div>
      ${r.map(([,{name:e,hits:t}])=>a`<section><h2 class="project"><bdi class="cut">${e}</bdi></h2>${n(t)}</section>`)}`}#i(e){let n=h.sessions.value.get(e.session_id),r=n?y(n).branch:``,i=f(e.cursor)?.pos;return a`<li class="hit"><div class="head"><a class="cut" href=${h.href({page:`session`,session_id:e.session_id,at:i})}><bdi class="strong">${b(n?.title)||m.common.untitled}</bdi></a>
        <span class="chip">${S.roles[e.role]??b(e.role)}</span><bdi>${b(n?.runtime_id)}</bdi>${r?a`<span class="chip cut"><bdi class="cut">${r}</bdi></span>`:t}</div>
      <bdi class="snip">${this.#a(d(e.snippet))}</bdi></li>`}#a(e){return e.split(/\u0002([^\u0003]*)\u0003/).map((e,t)=>{let n=x(e.replace(/[\n\t]+/g,` `));return t%2?a`<mark>${n}</mark>`:n})}#o;async#s(){let e=++this.#t;if(this.problem=``,!this.asked)this.hits=null;else try{let t=await h.http(`GET`,`/v1/search?q=${encodeURIComponent(this.asked)}&limit=100`);if(e!==this.#t)return;[this.hits,this.only]=[t.hits??[],``],l(S.found(this.hits.length))}catch(t){if(e!==this.#t)return;this.hits=[],this.problem=m.shell.failed(g(t))}}};p([e()],w.prototype,`q`,void 0),p([r()],w.prototype,`hits`,void 0),p([r()],w.prototype,`problem`,void 0),p([r()],w.prototype,`asked`,void 0),p([r()],w.prototype,`only`,void 0),w=p([i(`plexus-search`)],w);export{w as PlexusSearch};