const __vite__mapDeps=(i,m=__vite__mapDeps,d=(m.f||(m.f=["assets/conversation-BnW8TkDV.js","assets/libraries-CZ4Ddv1o.js"])))=>i.map(i=>d[i]);
import{_ as e,c as t,f as n,g as r,h as i,i as a,l as o,m as s,o as c,p as ee,r as te,s as l,u,v as d}from"./libraries-CZ4Ddv1o.js";var ne=`plexus.theme`,re=[`auto`,`light`,`dark`];function ie(){try{let e=localStorage.getItem(ne);return e===`light`||e===`dark`?e:`auto`}catch{return`auto`}}var ae=d(ie());function oe(e){e===`auto`?document.documentElement.removeAttribute(`data-theme`):document.documentElement.dataset.theme=e}oe(ae.peek());function se(e){ae.value=e,oe(e);try{e===`auto`?localStorage.removeItem(ne):localStorage.setItem(ne,e)}catch{}}var ce=()=>re[(re.indexOf(ae.peek())+1)%re.length]??`auto`,le=s`
  *, *::before, *::after { box-sizing: border-box; scrollbar-width: thin; scrollbar-color: var(--line-strong) transparent; }
  :host { display: block; }
  :host([hidden]), [hidden] { display: none !important; }
  h1, h2, h3, h4, p, ul, ol, dl, dd, figure, pre, fieldset { margin: 0; padding: 0; border: 0; }
  ul, ol { list-style: none; }
  h1 { font-size: var(--t-xl); font-weight: 620; letter-spacing: -0.012em; line-height: 1.3; }
  h2 { font-size: var(--t-l); font-weight: 600; letter-spacing: -0.006em; line-height: 1.35; }
  h3 { font-size: var(--t-m); font-weight: 600; line-height: 1.4; }
  a { color: var(--accent); text-decoration: none; text-underline-offset: 2px; }
  a:hover { text-decoration: underline; }
  code, pre, kbd, samp, .mono { font-family: var(--mono); font-size: 0.92em; }
  code { overflow-wrap: anywhere; }
  bdi { unicode-bidi: isolate; }
  :focus { outline: none; }
  :focus-visible { outline: var(--focus); outline-offset: 1px; border-radius: var(--r-s); }

  .sr { position: absolute !important; width: 1px; height: 1px; margin: -1px; padding: 0; overflow: hidden; clip-path: inset(50%); white-space: nowrap; border: 0; }
  .mute { color: var(--fg-mute); }
  .soft { color: var(--fg-soft); }
  .small { font-size: var(--t-s); }
  .strong { font-weight: 600; }
  .cut { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
  .grow { flex: 1 1 0; min-width: 0; }
  .nums { font-variant-numeric: tabular-nums; }
  .hstack { display: flex; align-items: center; gap: var(--s2); min-width: 0; }
  .hstack.wrap { flex-wrap: wrap; }
  .vstack { display: flex; flex-direction: column; gap: var(--s2); min-width: 0; }

  /* Buttons. Plain is quiet; .primary is the one thing to do; .danger ends something; .ghost has no frame. */
  button, .btn {
    appearance: none;
    display: inline-flex; align-items: center; justify-content: center; gap: 6px;
    min-height: var(--control);
    padding: 0 12px;
    border: 1px solid var(--line-strong);
    border-radius: var(--r-s);
    background: var(--bg-raised);
    color: var(--fg);
    font: 550 var(--t-m)/1.2 var(--sans);
    text-decoration: none;
    white-space: nowrap;
    cursor: pointer;
    user-select: none;
    touch-action: manipulation;
    -webkit-tap-highlight-color: transparent;
    transition: background var(--quick), border-color var(--quick), color var(--quick);
  }
  button:hover, .btn:hover { background: var(--bg-hover); text-decoration: none; }
  button:active, .btn:active { background: var(--bg-active); }
  button.primary, .btn.primary { background: var(--accent-solid); border-color: transparent; color: var(--on-accent); }
  button.primary:hover, .btn.primary:hover { background: var(--accent-solid-hover); }
  button.danger, .btn.danger { color: var(--danger); border-color: var(--danger-line); }
  button.danger:hover, .btn.danger:hover { background: var(--danger-wash); }
  button.danger.primary { background: var(--danger-solid); color: #fff; border-color: transparent; }
  button.ghost, .btn.ghost { border-color: transparent; background: transparent; color: var(--fg-soft); }
  button.ghost:hover, .btn.ghost:hover { background: var(--bg-hover); color: var(--fg); }
  button.icon, .btn.icon { width: var(--control); padding: 0; }
  button.compact, .btn.compact { min-height: 26px; padding: 0 8px; font-size: var(--t-s); }
  button.link { min-height: 0; padding: 0; border: 0; background: none; color: var(--accent); font-weight: 500; }
  button.link:hover { text-decoration: underline; }
  button[disabled], button[aria-disabled="true"] { opacity: 0.55; cursor: not-allowed; }
  @media (pointer: coarse) { button.compact, .btn.compact { min-height: 34px; } }

  input:not([type="checkbox"], [type="radio"]), textarea, select {
    width: 100%;
    min-height: var(--control);
    padding: 5px 10px;
    border: 1px solid var(--line-strong);
    border-radius: var(--r-s);
    background: var(--bg-raised);
    color: var(--fg);
    font: 400 var(--t-m)/1.45 var(--sans);
  }
  /* A phone zooms into smaller fields. */
  @media (pointer: coarse) { input:not([type="checkbox"], [type="radio"]), textarea, select { font-size: 16px; } }
  input::placeholder, textarea::placeholder { color: var(--fg-mute); opacity: 1; }
  input:focus-visible, textarea:focus-visible, select:focus-visible { outline-offset: -1px; border-color: transparent; border-radius: var(--r-s); }
  input[type="checkbox"], input[type="radio"] { accent-color: var(--accent-solid); width: 16px; height: 16px; margin: 0; flex: none; }
  label.field { display: flex; flex-direction: column; gap: 5px; font-weight: 550; }
  label.field > .hint { font-weight: 400; }
  label.check { display: flex; align-items: flex-start; gap: 9px; cursor: pointer; min-height: 24px; }
  label.check input { margin-top: 2px; }

  .chip {
    display: inline-flex; align-items: center; gap: 5px;
    height: 20px; padding: 0 7px;
    border-radius: 10px;
    background: var(--bg-active); color: var(--fg-soft);
    font-size: var(--t-xs); font-weight: 600; line-height: 1; white-space: nowrap;
  }
  .chip.ok { background: var(--ok-wash); color: var(--ok); }
  .chip.warn { background: var(--warn-wash); color: var(--warn); }
  .chip.danger { background: var(--danger-wash); color: var(--danger); }
  .chip.accent { background: var(--accent-wash); color: var(--accent); }
  .chip.info { background: var(--info-wash); color: var(--info); }
  .dot { width: 7px; height: 7px; border-radius: 50%; background: currentColor; flex: none; }

  .panel { background: var(--bg-raised); border: 1px solid var(--line); border-radius: var(--r-m); box-shadow: var(--shadow-1); }
  .note { padding: 9px 12px; border-radius: var(--r-s); background: var(--bg-sunken); color: var(--fg-soft); border: 1px solid var(--line); }
  .note.warn { background: var(--warn-wash); border-color: var(--warn-line); color: var(--warn); }
  .note.danger { background: var(--danger-wash); border-color: var(--danger-line); color: var(--danger); }
  .note.ok { background: var(--ok-wash); border-color: var(--ok-line); color: var(--ok); }

  kbd {
    display: inline-flex; align-items: center; justify-content: center;
    min-width: 19px; height: 19px; padding: 0 5px; flex: none; white-space: nowrap;
    border: 1px solid var(--line-strong); border-bottom-width: 2px; border-radius: 4px;
    background: var(--bg-raised); color: var(--fg-soft);
    font: 550 var(--t-xs)/1 var(--sans);
  }

  @media (prefers-reduced-motion: reduce) {
    *, *::before, *::after { animation-duration: 0.01ms !important; animation-iteration-count: 1 !important; transition-duration: 0.01ms !important; scroll-behavior: auto !important; }
  }
`,f=class extends o{static{this.styles=[le]}#e;performUpdate(){if(!this.isUpdatePending)return;this.#e?.();let t=!0;this.#e=e(()=>{t?(t=!1,super.performUpdate()):this.requestUpdate()})}connectedCallback(){super.connectedCallback(),this.requestUpdate()}disconnectedCallback(){super.disconnectedCallback(),this.#e?.(),this.#e=void 0}},ue=1200,de=[],fe=``,pe;function me(){let e=document.activeElement;for(;e?.shadowRoot?.activeElement;)e=e.shadowRoot.activeElement;return e}function he(e){return e instanceof HTMLElement?e.isContentEditable||e instanceof HTMLTextAreaElement||e instanceof HTMLSelectElement?!0:e instanceof HTMLInputElement&&![`checkbox`,`radio`,`button`,`submit`].includes(e.type):!1}var ge=()=>{let e=me();for(;e;){if(e instanceof HTMLDialogElement&&e.open)return!0;e=e.parentElement??e.getRootNode().host??null}return!1};function _e(e){return de.push(e),()=>{let t=de.indexOf(e);t>=0&&de.splice(t,1)}}var ve=e=>`${e.ctrlKey||e.metaKey?`mod+`:``}${e.altKey?`alt+`:``}${e.key.length,e.key}`;window.addEventListener(`keydown`,e=>{if(e.defaultPrevented||e.isComposing||e.repeat&&e.key!==`j`&&e.key!==`k`||[`Shift`,`Control`,`Alt`,`Meta`].includes(e.key))return;let t=ve(e),n=he(me()),r=ge();if(r&&t===`Escape`)return;let i=fe&&!n?`${fe} ${t}`:t;clearTimeout(pe);let a=fe;fe=``;for(let t=de.length-1;t>=0;--t)for(let a of de[t]??[])if(!(a.key!==i||(n||r)&&!a.typing)){e.preventDefault(),a.run(e);return}!n&&!r&&!a&&de.some(e=>e.some(e=>e.key.startsWith(`${t} `)))&&(fe=t,pe=setTimeout(()=>{fe=``},ue),e.preventDefault())});var ye=/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu,be=/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202d\u202e]/g,p=e=>e.replace(ye,e=>`\\u{${(e.codePointAt(0)??0).toString(16)}}`),xe=e=>e.replace(be,e=>p(e)),m=e=>typeof e==`string`?e:e==null?``:typeof e==`object`?JSON.stringify(e,null,2):String(e),h=e=>p(m(e).replace(/[\n\t]+/g,` `)).trim(),g=e=>Array.isArray(e)?e:[],_=(e,t,n=`${t}s`)=>`${e.toLocaleString(`en`)} ${e===1?t:n}`,v={common:{name:`Plexus`,cancel:`Cancel`,close:`Close`,save:`Save`,retry:`Try again`,loading:`Loading…`,copied:`Copied.`,copy:`Copy`,more:`More`,justNow:`just now`,now:`now`,ago:e=>`${e} ago`,seconds:e=>`${e} s`,minutes:e=>`${e} min`,hours:e=>`${e} h`,days:e=>`${e} d`,untitled:`Untitled session`},wire:{refused:e=>`the gateway answered ${e}`,timeout:`the gateway did not answer in time`,unreachable:`the gateway could not be reached`,onTheWay:e=>`something between this browser and the gateway answered in its place (${e})`,noSocket:`The gateway answers, but no WebSocket gets through to it. Does a proxy on the way support them?`,notJson:`the gateway sent something that is not JSON`,notConnected:`not connected`,revoked:`This sign-in was revoked.`,notAccepted:`The gateway no longer accepts this sign-in.`,mayNotFollow:e=>`This device may not follow the gateway’s news${e?`: ${e}`:``}.`,gatewayRefused:e=>`The gateway refused: ${e}`,otherHistory:`The gateway’s history is another one now.`,hole:`Some of what happened meanwhile is no longer kept.`},shell:{many:_,skip:`Skip to the content`,messages:`Messages`,connection:`Connection`,nav:`Pages`,pages:{inbox:`Inbox`,sessions:`Sessions`,devices:`Devices`,runtimes:`Runtimes`,search:`Search`,session:`Session`},recent:`Latest sessions`,palette:`Commands`,jump:`Find or do…`,keys:`Keys`,account:`This device`,signOut:`Sign out`,signOutAsk:`Sign this browser out?`,signOutWhy:`Its device is removed. To come back you need a new code, from “plexus open” or from another device.`,theme:`Theme`,themes:{auto:`As the system`,light:`Light`,dark:`Dark`},install:`Install as an app`,openCount:e=>e===0?`No open requests`:_(e,`open request`),phase:{connecting:`Connecting…`,"catching-up":`Catching up…`,live:`Live`,reconnecting:`Reconnecting…`,offline:`Offline`,stopped:`Not following`,"signed-out":`Signed out`},stale:{reconnecting:`Reconnecting.`,offline:`Offline: the gateway does not answer. It is tried again by itself.`,connecting:`Connecting to the gateway.`,trueAt:e=>`What you see was true at ${e}.`,never:`Nothing has been heard from the gateway yet.`,tryNow:`Try now`,reload:`Reload`,outdated:`Plexus was updated. This page is still the old one.`,missing:`A part of this page could not be loaded.`,unknown:`Not connected yet. What is here will be shown as soon as the gateway answers.`,readOnly:`Nothing can be sent until it is back.`},live:{back:`Connected again. What you see is true.`,lost:`The connection is lost. What you see may be out of date.`},shareBar:(e,t)=>`Shared with you, to read only${e?`: ${e}`:``}.${t?` Until ${t}.`:``}`,leaveShare:`Leave`,updated:`A new version of this page is ready.`,reload:`Reload`,inbox:{title:`Inbox`,open:`Open requests`,none:`Nothing waits for you`,noneText:`When an agent asks for something, it appears here and on all your screens at once. The first answer counts.`,lately:`Resolved lately`,waits:e=>e===1?`1 request waits`:`${e} requests wait`,gone:`This request is not open any more.`,unknown:`There is no such request (any more).`,cannotApprove:`This device may look, not answer.`,more:e=>`${_(e,`more request`)} below; they come up as these are answered.`,pushOffer:`Get told on this device when an agent asks.`},sessions:{title:`Sessions`,filter:`Filter sessions`,filterHint:`Title, agent, folder, state`,new:`New session`,showArchived:`Archived`,showActive:`Active`,which:`Which sessions`,none:`No sessions yet`,noneText:`Start one here, or in a terminal in your project’s folder:`,noneCommand:`plexus run demo`,noneFound:`No session fits`,noneFoundText:`Try another word, or clear the filter.`,noneArchived:`Nothing is archived`,noneArchivedText:`An archived session is kept whole and leaves the list.`,clear:`Clear the filter`,state:{idle:`Idle`,running:`Running`,waiting:`Waits for you`,exited:`Ended`},groups:{waiting:`Waiting for you`,running:`Running`,idle:`Idle`,exited:`Ended`},unread:`News that you have not seen`,requests:e=>_(e,`request`),queued:e=>`${e} queued`,lookers:e=>`Also looking: ${e}`,rename:`Rename…`,archive:`Archive`,unarchive:`Take out of the archive`,cancelRun:`Stop the run`,restartRun:`Run the last prompt again`,share:`Share a link to read…`,exportAs:e=>`Export as ${e}`,exports:{md:`Markdown`,html:`a web page`,ndjson:`NDJSON`},remove:`Delete…`,copyLink:`Copy link`,menu:e=>`Actions for ${e}`,renameTitle:`Rename the session`,newName:`New title`,removeTitle:`Delete this session?`,removeText:`Everything that was said in it is removed from the gateway. This cannot be taken back.`,removeDo:`Delete`,archived:`Archived.`,unarchived:`Taken out of the archive.`,undo:`Undo`,notFound:`This session is not on the gateway (any more).`,back:`All sessions`,newTitle:`New session`,runtime:`Agent`,folder:`Folder`,folderHint:`Where the agent works. Empty: where its runtime was started.`,name:`Title`,nameHint:`Optional`,start:`Start`,starting:`Starting…`,noRuntime:`No agent is attached. Start one on the page Runtimes.`,toRuntimes:`Go to Runtimes`,notReady:e=>`${e}: it cannot open sessions now`,failed:e=>`It did not work: ${e}.`},share:{title:`Share this session`,text:`Whoever has the link can read this session and follow it live. Nothing else: no prompts, no answers, no other session.`,hours:`The link works for`,choices:[[1,`1 hour`],[24,`1 day`],[168,`1 week`],[720,`30 days`]],make:`Make the link`,done:`Anyone with this link can read the session until it ends or you revoke it on the page Devices.`,link:`Link`,enter:`Opening the shared session…`,bad:`This link does not work (any more). It may have expired or been revoked.`},devices:{title:`Devices`,add:`Add a device`,none:`No devices`,you:`this device`,kinds:{local:`this machine’s administrator`,device:`device`,share:`read-only link`},scopes:{watch:`watch`,prompt:`prompt`,approve:`approve`,admin:`administer`},upTo:e=>`approve up to ${e} risk`,only:e=>`only ${e}`,online:`Online`,seen:e=>`seen ${e}`,never:`never seen`,added:e=>`added ${e}`,expires:e=>`until ${e}`,rename:`Rename…`,revoke:`Revoke…`,revokeTitle:e=>`Revoke ${e}?`,revokeText:`It is signed out at once and its connections are closed. It can only come back with a new code.`,revokeDo:`Revoke`,revoked:`Revoked.`,lockScreen:`Answer from the lock screen`,lockScreenHint:`Whoever holds the device can then allow and deny from a notification, without unlocking Plexus first.`,links:`Read-only links`,linksNone:`No links are shared. Share one from a session’s menu.`,needAdmin:`Only a device that may administer sees and changes devices.`,newName:`New name`,renameTitle:`Rename the device`,menu:e=>`Actions for ${e}`,push:`Notifications`},pair:{title:`Add a device`,may:`What it may do`,watch:`Watch`,watchHint:`See all sessions and requests`,prompt:`Prompt`,promptHint:`Start sessions, send prompts, stop runs`,approve:`Approve`,approveHint:`Answer requests`,admin:`Administer`,adminHint:`Runtimes, devices, settings: everything`,upTo:`Approve up to`,risks:{low:`low risk`,elevated:`elevated risk`,danger:`any risk`},runtimes:`Which agents`,allRuntimes:`All agents`,lock:`May answer from the lock screen`,make:`Show the code`,scan:`Scan with the device’s camera, or open the address there and type the code.`,code:`Code`,address:`Address`,left:e=>`Good for ${e} s more, once.`,waiting:`Waiting for the device…`,joined:e=>`“${e}” wants to join.`,compare:`The device shows a number. Does it show this one?`,same:`Yes, the same: let it in`,differs:`No: refuse`,done:e=>`${e} has joined.`,refused:`Refused. Nothing was let in.`,expired:`The code has expired.`,again:`Make another code`,qr:`QR code of the address with the code`,loopback:`This address reaches this computer only. For a phone, set up TLS (plexus tls init) or a proxy, and public_url.`,notYet:`This gateway cannot pair by number yet.`},join:{title:`Join a gateway`,looking:`Asking the gateway…`,what:e=>`You are about to join ${e}`,version:e=>`Plexus ${e}`,may:`This device may then`,name:`Name of this device`,code:`Code`,codeHint:`8 characters, as the other screen shows them`,go:`Join`,next:`Next`,number:`Your number`,numberText:`The other screen asks whether it sees the same number. Confirm it there.`,waiting:`Waiting to be let in…`,in:`You are in.`,refused:`The other screen refused, or the code has expired.`,bad:`This code is wrong, used, or expired. Make a new one on the other screen.`},runtimes:{title:`Runtimes`,start:`Start an agent`,none:`No agent is attached`,noneText:`Start one of those that Plexus knows, here or in a terminal:`,noneCommand:`plexus run gemini`,state:{starting:`Starting`,ready:`Ready`,restarting:`Restarting`,exited:`Ended`},sessions:e=>e===0?`no sessions`:_(e,`session`),stop:`Stop`,restart:`Restart`,logs:`Log`,stopTitle:e=>`Stop ${e}?`,stopText:`The agent and everything it started are ended. Its sessions can still be read.`,stopDo:`Stop it`,heard:e=>`last heard ${e}`,outlives:`outlives the gateway`,pid:e=>`process ${e}`,starts:e=>`start ${e}`,logsOf:e=>`Log of ${e}`,noLogs:`It has said nothing on its error output.`,refresh:`Read again`,doctor:`Doctor`,doctorText:`What works here, what does not, and the fix.`,doctorRun:`Check now`,doctorOff:`This gateway cannot check itself from here yet. In a terminal: plexus doctor`,presets:`Which agent`,custom:`Another program`,command:`Command`,commandHint:`The program and its arguments, as in a shell`,dialect:`Dialect`,dialects:{acp:`ACP (Agent Client Protocol)`,codelia:`Codelia UI protocol`,codex:`Codex app-server`,opencode:`OpenCode`},folder:`Folder`,folderHint:`Where it runs. Empty: the gateway’s own folder.`,started:e=>`${e} is starting.`,needAdmin:`Only a device that may administer starts and stops agents.`,known:{gemini:`Gemini CLI`,opencode:`OpenCode`,claude:`Claude Code`,codex:`Codex, over ACP`,"codex-app":`Codex, its app-server`,qwen:`Qwen Code`,codelia:`Codelia`,goose:`Goose`,copilot:`GitHub Copilot CLI`,cursor:`Cursor CLI`,kimi:`Kimi CLI`,demo:`The demo agent`},newSession:`New session`},search:{title:`Search`,label:`Search in everything that was said`,hint:`Words to look for`,start:`Search all history`,startText:`Every word that was said in any session, of any agent.`,none:e=>`Nothing was found for “${e}”`,noneText:`Whole words are looked for, in prompts, answers, thoughts and tools.`,found:e=>`${_(e,`passage`)}`,roles:{user:`Prompt`,agent:`Agent`,thought:`Thought`,tool:`Tool`}},signin:{title:`Sign in`,lead:`One gateway between your coding agents and your screens.`,how:`In a terminal on the computer where Plexus runs:`,command:`plexus open`,or:`or`,code:`I have a code from another screen`,token:`Token`,tokenHint:`Paste the token of a device`,tokenOpen:`Sign in with a token`,go:`Sign in`,busy:`Signing in…`,badLink:`The link holds no usable code. Run “plexus open” again.`,badCode:e=>`That code was not accepted: ${e}. A code works once and for a short time; run “plexus open” again.`,badToken:`That does not look like a token.`,unknownToken:`The gateway does not know this token.`,failed:e=>`Signing in failed: ${e}.`,notYet:e=>`Not signed in yet: ${e}. It is tried again by itself.`,out:`Signed out.`,noToken:`the gateway sent no usable token`,away:`The gateway does not answer. Is it running? In a terminal: plexus serve`},help:{title:`Keys`,groups:{go:`Go to`,list:`In lists`,everywhere:`Everywhere`,request:`On a request`,session:`In a session`},go:`then`,keys:{inbox:`Inbox`,sessions:`Sessions`,devices:`Devices`,runtimes:`Runtimes`,search:`Search`,back:`Back to where you were`,palette:`Commands`,help:`These keys`,newSession:`New session`,find:`Search or filter`,theme:`Next theme`,close:`Close, or leave a field`,next:`Next`,previous:`Previous`,open:`Open`,first:`First`,last:`Last`,archive:`Archive`,rename:`Rename`,allow:`Allow once`,always:`Allow always`,deny:`Deny`,denyWhy:`Deny with a reason`,unfold:`Show all of it`,option:`The option of that number`,compose:`Write a prompt`,send:`Send`,newline:`New line`,jump:`Jump to now`,stopRun:`Stop the run`,turn:`Previous or next turn`,edit:`Change it before allowing`,findHere:`Find in the session`,copy:`Copy as Markdown`,up:`All sessions`}},command:{label:`Find a command or a session`,hint:`Type a command, a session, or words to search for`,none:`Nothing fits`,sections:{go:`Go to`,session:`Sessions`,act:`Do`,theme:`Theme`},searchFor:e=>`Search history for “${e}”`,openRequests:`Show open requests`},failed:e=>`It did not work: ${e}.`},session:{image:`image`,notCopied:`Not copied`,showAll:e=>`Show all (${_(e,`character`)})`,restOfLine:e=>`… ${_(e,`more character`)}`,moreOfLine:e=>`Show more (${_(e,`character`)} left)`,hiddenLines:e=>`${_(e,`unchanged line`)}`,sideBySide:`Side by side`,inline:`Inline`,comparing:`Comparing…`,changed:(e,t)=>`+${e.toLocaleString(`en`)} −${t.toLocaleString(`en`)}`,unchanged:`Nothing changed`,changesOf:e=>`Changes of ${e}`,conversation:`Conversation`,you:`You`,by:e=>`from ${e}`,agent:`Agent`,thought:`Thought`,thinking:`Thinking…`,plan:`Plan`,planDone:(e,t)=>`${e} of ${t} done`,entry:{pending:`to do`,in_progress:`under way`,completed:`done`},cutOff:`Cut off here.`,output:`Output`,outputCut:`Only the end of the output is kept.`,input:`Input`,result:`Result`,noOutput:`No output.`,outputOf:e=>`Output of ${e}`,untitledTool:`Tool call`,lines:e=>_(e,`line`),tool:{pending:`waiting`,in_progress:`running`,completed:`done`,failed:`failed`,cancelled:`cancelled`,not_reported:`end not reported`},kinds:{read:`Read`,edit:`Edit`,delete:`Delete`,move:`Move`,search:`Search`,execute:`Run`,think:`Think`,fetch:`Fetch`,switch_mode:`Mode`,other:`Tool`},open:`Open`,fold:`Fold`,more:`Show more`,end:{completed:e=>e?`Finished in ${e}`:`Finished`,cancelled:e=>e?`Stopped after ${e}`:`Stopped`,error:e=>e?`Failed after ${e}`:`Failed`},stopReasons:{max_tokens:`the token limit was reached`,max_turn_requests:`the limit of steps was reached`,refusal:`the agent refused`},stopping:e=>e?`${e} asked to stop`:`Asked to stop`,modeNow:e=>`Mode: ${e}`,optionNow:(e,t)=>`${e}: ${t}`,titleNow:e=>`Title: ${e}`,error:`Error`,runtime:{attached:`Runtime attached`,exited:`Runtime exited`,restarting:`Runtime restarts`,starting:`Runtime starts`,stuck:`Runtime is stuck`,ready:`Runtime ready`},joined:e=>`${e} joined`,left:e=>`${e} left`,someone:`Somebody`,raw:`Something no dialect knows, kept as it came`,asked:`Asked`,outcome:{allowed:`Allowed`,denied:`Denied`,answered:`Answered`,expired:`Expired unanswered`,withdrawn:`Withdrawn`,orphaned:`The runtime that asked is gone`},always:`always`,byWhom:(e,t)=>`${e} by ${t}`,goToInbox:`Answer it`,audio:`audio`,notShown:e=>`${e}: not shown`,resource:`File`,link:`Link`,surface:`A surface of the agent`,jump:`Jump to now`,jumpNew:e=>e?`${_(e,`new item`)}`:`Jump to now`,earlier:`Older history is no longer kept.`,loadAll:`Load the whole history`,loadingAll:e=>`Loading the history (${_(e,`item`)})…`,empty:`Nothing has been said yet.`,emptyHint:`Write a prompt below.`,loading:`Loading the conversation…`,gone:`This session is not there any more, or this device may not see it.`,goneTitle:`No session`,goneTo:`All sessions`,trouble:e=>`The session could not be read: ${e}`,find:`Find in this session`,findNone:`Nothing found`,findCount:(e,t)=>`${e.toLocaleString(`en`)} of ${t.toLocaleString(`en`)}`,next:`Next`,previous:`Previous`,prompt:`Message to the agent`,placeholder:`Ask, or tell it what to do`,placeholderQueue:`Write the next prompt; it waits its turn`,send:`Send`,sendQueued:`Queue`,sendHint:`Enter sends, Shift+Enter makes a new line, / for commands`,stop:`Stop`,stopNow:`Stop the run under way`,restart:`Restart`,restartHint:`Stop the run and send its prompt again`,queued:e=>`${_(e,`prompt`)} waiting`,cancelQueued:e=>`Take back “${e}”`,takeBack:`Take back`,onlyWatch:`You are watching. This device may not prompt.`,exited:`The runtime has exited. This session can be read, not prompted.`,exitedWhy:e=>`${e} has ended. The session is kept.`,exitedAsk:e=>`${e} has ended. An administrator’s device can start it again; then this session goes on.`,startAgain:e=>`Start ${e} again and go on`,startingAgain:e=>`${e} is starting. This session goes on as soon as it is ready.`,archived:`This session is archived.`,failed:e=>`Not sent: ${e}`,actionFailed:e=>`That did not work: ${e}`,attach:`Add an image`,removeImage:`Remove the image`,imageTooBig:`The image is larger than 8 MB.`,commands:`Commands of the agent`,states:{idle:`Idle`,running:`Running`,waiting:`Waits for you`,exited:`Exited`},mode:`Mode`,context:e=>`${e}% of the context used`,contextLeft:e=>`${e}% left`,tokens:(e,t)=>`${e} of ${t} tokens`,menu:`More actions`,back:`Back to the sessions`,copyMarkdown:`Copy as Markdown`,exportAs:e=>`Export as ${e}`,share:`Share a read-only link…`,shareTitle:`Share this session`,shareText:`Who has the link may watch this session, and nothing else, until it expires. Revoke it on the page of devices.`,shareHours:`Good for`,shareMake:`Make the link`,shareLink:`Link`,hours:e=>e%24==0?_(e/24,`day`):_(e,`hour`),copyLink:`Copy link to here`,copyMessage:`Copy`,rename:`Rename…`,renameTitle:`Name of the session`,archive:`Archive`,unarchive:`Take out of the archive`,details:`Details`,announceTool:(e,t)=>`${e}: ${t}`,announceSaid:e=>`Agent: ${e}`,lookers:e=>`Also looking: ${e}`,staleData:`Not connected: this may be out of date.`},request:{types:{permission:`asks for permission`,confirm:`asks yes or no`,prompt:`asks for text`,pick:`asks to choose`,elicitation:`asks for an answer`},risks:{low:`Low risk`,elevated:`Elevated risk`,danger:`Danger`},riskHints:{low:`Plexus sees nothing unusual in it.`,elevated:`It changes something, reaches out, or could not be judged.`,danger:`It may destroy or give away what cannot be brought back.`},card:e=>`Request from ${e}`,runtimeUnknown:`runtime unknown`,session:e=>`Session “${e}”`,untitled:`Untitled session`,folder:`Folder`,folderUnknown:`folder unknown`,exactly:`Exactly what is asked`,exactlyHint:`as Plexus read it; hidden characters are shown as \\u{…}`,agentSays:`The agent says`,agentAsks:`The agent asks`,noWords:`(no words)`,warns:`Plexus warns`,always:`What “always” would allow`,alwaysBy:e=>`${e} would remember it itself, and then no longer ask. In its own words:`,alwaysPlain:e=>`${e} would remember the answer itself, and then no longer ask. How far that reaches, it does not say.`,lookers:e=>`Also looking: ${e}`,asked:e=>`asked ${e}`,expiresIn:e=>`expires in ${e}`,expiring:`expiring`,openFull:(e,t)=>`Open all of it: ${e.toLocaleString(`en`)} ${e===1?`line`:`lines`}, ${t.toLocaleString(`en`)} characters`,readOn:`Read to the end; then “allow” can be pressed.`,readAll:`Read to its end.`,changedSince:`This question changed while it was open. Read it again.`,changedBefore:`It has changed since it was asked.`,readAgain:`I have read it again`,openWhole:e=>`Fetch and open all of it: ${e.toLocaleString(`en`)} bytes`,fetching:`Fetching all of it…`,notFetched:`All of it could not be fetched. Try again; a “no” is possible meanwhile.`,why:`Why:`,unreadable:`Plexus cannot tell from this what would happen, so it counts as the highest risk. Below is what the agent sent, as it is.`,asSent:`What the agent sent`,sendAnswers:`Send answers`,moreCards:(e,t)=>`Show ${e} more of ${t.toLocaleString(`en`)} that wait below`,questions:{of:(e,t)=>`Question ${e} of ${t}`,optional:`(may be left out)`,other:`Other, in your own words`,ownFor:e=>`Your own words for: ${e}`,wantsOne:`Choose an answer.`,wantsWords:`Type an answer.`,atLeast:e=>`Choose at least ${e}.`,atMost:e=>`Choose at most ${e}.`,aNumber:`A number is asked for.`,aWhole:`A whole number is asked for.`,from:e=>`At least ${e}.`,upTo:e=>`At most ${e}.`,longer:e=>`At least ${e} characters.`,shorter:e=>`At most ${e} characters.`},verbs:{allow_once:`Allow once`,allow_always:`Allow always`,reject_once:`Deny`,reject_always:`Deny always`},allow:`Allow`,deny:`Deny`,allowEdited:`Allow as edited`,hold:`Hold to allow`,holdFor:e=>`${e}: press and hold`,holding:`Keep holding…`,holdHint:`Danger: press and hold for a second. With the keyboard: hold Space or A.`,released:`Let go too early. Nothing was answered.`,typeInstead:`Or type the word`,typeWord:`allow`,typeLabel:`Type “allow” to be able to press it`,denyWhy:`Deny with a reason`,denyNow:`Deny with this reason`,reason:`Reason (the agent reads it)`,edit:`Edit before allowing`,editing:`Your version`,stopEdit:`Drop the edit`,changes:`What you change`,noChanges:`Nothing is changed yet.`,remember:`Remember this answer`,sendChoice:`Send choice`,chooseNothing:`Choose nothing`,chooseAny:`Choose any number`,chooseOne:`Choose one`,nothingChosen:`Nothing is chosen.`,sendAnswer:`Send answer`,noAnswer:`Give no answer`,answerField:`Your answer`,secretField:`Your answer (hidden as you type; Plexus keeps no copy)`,showSecret:`Show`,hideSecret:`Hide`,nothingTyped:`Nothing is typed.`,sending:`Sending…`,early:`This has only just appeared or moved. Look, then press again.`,enterNever:`Enter never allows. Press Space, or click.`,readFirst:`Open all of it and read to the end before you allow it.`,alwaysTooMuch:`This device answers only up to a level of risk, so it cannot allow for always. Allow it once.`,editedOnce:`An edited version can be allowed once only.`,seeFirst:`Scroll until you have seen all of it, then allow it.`,focusFirst:`Selected. The same key again answers it.`,observeOnly:e=>`It can only be watched here. Answer it where ${e} itself runs, in its own window or terminal.`,cannot:e=>`This page cannot answer a question of this kind. In a terminal: plexus answer ${e}`,mayNot:`This device may watch, not answer. A device with the scope “approve” can; an administrator enrols one under Devices.`,tooRisky:(e,t,n,r)=>`This device may answer up to “${e}”; this is “${t}”${n?` (${n})`:``}. Answer it where Plexus runs, with “plexus open” or “plexus attach”, or on a device that may answer “${t}”${r.length?`: ${r.join(`, `)}`:``}.`,offline:`Not connected to the gateway. No answer can be given now.`,unknown:`The connection broke while your answer was on its way. Whether it arrived is not known yet.`,unknownAsking:`Asking the gateway what became of it…`,unknownNow:`Ask now`,late:`Your answer came later and was not used.`,refusals:{scope_missing:`This device may no longer answer. Nothing was answered by you.`,risk_too_high:`This device may not answer anything of this risk. Answer it on a device that may.`,stale_digest:`What is asked has changed meanwhile. Nothing was answered. Read it again.`,digest_required:`All of it has to be fetched and read before it is allowed. Nothing was answered.`,unauthorized:`The gateway no longer knows this device: it was revoked or signed out. Nothing was answered by you.`,request_not_found:`The gateway does not know this request any more.`,observe_only:`This can only be answered where the agent itself runs.`,runtime_gone:`The agent’s program has ended. Nobody can answer this any more.`,storage:`The gateway’s disk is full, so an answer cannot be kept. Nothing was answered.`,stopping:`The gateway is stopping. Nothing was answered; try again in a moment.`,not_ready:`The gateway is not ready. Nothing was answered; try again in a moment.`},refused:e=>`Not accepted: ${e}`,you:e=>`you (${e})`,by:e=>` by ${e}`,allowed:`Allowed`,allowedAlways:`Allowed always`,denied:`Denied`,deniedAlways:`Denied always`,answered:`Answered`,answeredWith:e=>`Answered “${e}”`,cancelled:`No answer given`,chosen:e=>`Chosen: ${e}`,edited:`, edited`,editedTo:`Edited to:`,because:e=>`Reason given: ${e}`,expired:`Expired: nobody decided in time`,withdrawn:`Withdrawn: the run ended, or the agent took the question back`,withdrawnBy:e=>`Withdrawn by ${e}`,orphaned:`Orphaned: the agent’s program is gone, so nobody can answer any more`,gone:`No longer open`,newOnes:e=>e===1?`1 new request below`:`${e} new requests below`,none:`Nothing waits for you`,noneHint:`When an agent asks something, it appears here and on every other screen.`,opened:(e,t)=>`New request from ${e}, ${t}.`,loading:`Looking for this request…`,notFound:`There is no such request, or this device may not see it.`,toInbox:`To the inbox`,toSession:`Open the session`,list:`Open requests`,keys:{a:`allow once (danger: hold)`,A:`allow always`,d:`deny`,D:`deny with a reason`,e:`edit before allowing`,o:`open all of it`,digits:`choose by number`}},notify:{news:`Plexus has news`,newsBody:`Open Plexus to see it.`,allowOnce:`Allow once`,deny:`Deny`,sending:`Sending your answer…`,allowed:`Allowed, from this notification`,denied:`Denied, from this notification`,already:e=>`${e}; your answer came later and was not used`,notAnswered:`Not answered`,unknown:`Not known whether your answer arrived`,tapToLook:`Tap to look.`,signedOut:`This browser is signed out of Plexus.`,mustOpen:`This one must be answered on its card.`,title:`Notifications on this device`,about:`When an agent asks something and nobody has been looking for 20 seconds, this device is told, even while Plexus is closed.`,on:`Turn on notifications`,off:`Turn off on this device`,isOn:`On. This device is told when nobody is looking.`,isOff:`Off. This device is not told while Plexus is closed.`,elsewhere:`Notifications are on in this browser, but the gateway does not know of it. Turn them on again.`,working:`One moment…`,kinds:`Tell this device of`,requests:`Questions of agents`,requestsHint:`permission to run or change something, choices, passwords`,ends:`Runs that end`,failures:`Runs that fail, and agents that stop`,quiet:`Quiet hours`,quietHint:`Nothing is sent between these times. What comes then waits in the inbox.`,from:`From`,to:`To`,test:`Send a test`,tested:`Sent. It should appear within a few seconds; if it does not, the browser or the system holds it back.`,saved:`Saved.`,lockOn:`In a notification, “Allow once” and “Deny” answer at once. What is dangerous still opens its card.`,lockOff:`In a notification, “Allow once” and “Deny” open the card. An administrator can let this device answer at once, under Devices.`,noGateway:`This gateway sends no notifications to browsers.`,noPush:`This browser cannot take notifications while Plexus is closed.`,needsHome:`On an iPhone or iPad, first add Plexus to the home screen: tap Share, then “Add to Home Screen”. Open it from there and turn notifications on.`,needsHttps:`Notifications need a secure address (https). This page was opened over plain http.`,noWorker:`The background part of Plexus is not running in this browser (a private window, perhaps). Without it nothing can arrive.`,blocked:`This browser was told to block notifications from Plexus. Allow them in the site’s settings (the sign beside the address), then come back here.`,dismissed:`The browser’s question was closed without an answer. Try again when you want them.`,subscribeFailed:e=>`The browser could not subscribe: ${e}`,failed:e=>`That did not work: ${e}.`,share:`A read-only link takes no notifications.`,screen:`While Plexus is open`,sound:`A sound for new questions`,soundHint:`Off at first. Only on this device, and only while this page is open.`,soundTry:`Play it`,requestsWaiting:e=>e===1?`1 request waits`:`${e} requests wait`}},Se=v.common;function Ce(e){let t=Math.max(0,Math.round(e/1e3));return t<60?Se.seconds(t):t<3600?Se.minutes(Math.floor(t/60)):t<172800?Se.hours(Math.floor(t/3600)):Se.days(Math.floor(t/86400))}function we(e,t){return Number.isFinite(e)?t-e<5e3?Se.justNow:Se.ago(Ce(t-e)):``}function Te(e){let t=new Date(e);return new Date().toDateString()===t.toDateString()?t.toLocaleTimeString(`en`,{hour:`2-digit`,minute:`2-digit`,second:`2-digit`,hour12:!1}):t.toLocaleString(`en`,{month:`short`,day:`numeric`,hour:`2-digit`,minute:`2-digit`,hour12:!1})}var Ee=250;function De(e){let t=!1,n=()=>{t=!1,e()};return()=>{if(!t){if(t=!0,document.hidden)setTimeout(n,Ee);else{let e=!1,t=()=>{e||(e=!0,clearTimeout(r),n())},r=setTimeout(t,Ee);requestAnimationFrame(t)}}}}var Oe=e=>`plexus-files-${e}`,ke=/<meta name="plexus-files" content="([0-9a-f]{8,64})">/,Ae=e=>ke.exec(e)?.[1]??``,je=`/sw.js`,Me=Ae(document.head.innerHTML),Ne=globalThis.trustedTypes?.createPolicy(`plexus`,{createScriptURL:e=>{if(e!==je)throw TypeError(e);return e}});function Pe(){navigator.locks?.request(Oe(Me),{mode:`shared`},()=>new Promise(()=>{})).catch(()=>{})}async function Fe(){if(`serviceWorker`in navigator&&isSecureContext)try{let e=await navigator.serviceWorker.getRegistration();!e?.active&&!e?.installing&&await navigator.serviceWorker.register(Ne?.createScriptURL(je)??je,{updateViaCache:`none`}),navigator.serviceWorker.controller?.postMessage({plexus:`loaded`})}catch{}}async function Ie(){try{await(await navigator.serviceWorker?.getRegistration())?.update()}catch{}}var Le=2e4,Re=/^[A-Za-z0-9!#$%&'*+.^_`|~-]{8,1024}$/,y=class extends Error{constructor(e,t,n=0,r=!0){super(h(t.detail||t.message||t.title||v.wire.refused(e))),this.status=e,this.problem=t,this.rpc=n,this.ours=r,this.code=h(t.code??``)}};function b(e){return e instanceof y?e.ours?e.message:v.wire.onTheWay(e.status):e instanceof Error&&e.name===`TimeoutError`?v.wire.timeout:v.wire.unreachable}var ze=class{constructor(){this.credentials={bearer:null,csrf:null},this.skew=0,this.onUnauthorized=()=>{}}async fetch(e,t={}){let n=t.method??`GET`,r={Accept:t.accept??`application/json`,...t.headers},{bearer:i,csrf:a}=this.credentials;t.anonymous||(i?r.Authorization=`Bearer ${i}`:a&&n!==`GET`&&n!==`HEAD`&&(r[`Plexus-CSRF`]=a)),t.body!==void 0&&(r[`Content-Type`]=`application/json`);let o=await fetch(e,{method:n,headers:r,body:t.body===void 0?void 0:JSON.stringify(t.body),cache:`no-store`,credentials:i?`omit`:`same-origin`,redirect:`error`,referrerPolicy:`no-referrer`,signal:t.signal??AbortSignal.timeout(t.patience??2e4)}),s=Date.parse(o.headers.get(`Date`)??``);if(Number.isNaN(s)||(this.skew=Math.abs(s-Date.now())>3e3?s-Date.now():0),!o.ok){let e=null;try{e=JSON.parse(await o.text())}catch{}(typeof e!=`object`||!e||Array.isArray(e))&&(e={});let n=(o.headers.get(`Content-Type`)??``).startsWith(`application/problem+json`)&&typeof e.code==`string`;throw o.status===401&&n&&!t.anonymous&&this.onUnauthorized(),new y(o.status,e,0,n)}return o}async json(e,t,n,r={}){let i=await this.fetch(t,{method:e,body:n,...r}),a=await i.text();try{return a?JSON.parse(a):null}catch{throw new y(i.status,{detail:v.wire.notJson},0,!1)}}};function Be(e){if(typeof e!=`string`)return null;let t=e.lastIndexOf(`:`),n=Number(e.slice(t+1));return t>0&&Number.isSafeInteger(n)?{epoch:e.slice(0,t),pos:n}:null}var Ve=class{#e={events:[]};#t=null;#n=!1;#r=``;#i=-1;#a=0;#o=!1;#s=De(()=>{if(this.#o)return;let e=this.#e;this.#e={events:[]},this.sink(e)});constructor(e,t,n){this.session_id=e,this.sink=t,this.read=n}stop(){this.#o=!0}get loaded(){return this.#n}async load(e){let t=++this.#a;this.#t=[];try{let{snapshot:n,past:r}=await this.read(this.session_id);if(t!==this.#a||this.#o)return;let i=Be(r.next);this.#r=i?.epoch??``,this.#i=i?.pos??-1,this.#e={snapshot:n,past:r,events:[],...this.#n?{reset:e??v.wire.hole}:{}},this.#n=!0;let a=this.#t??[];this.#t=null;for(let e of a)this.#c(e)}catch(e){if(t!==this.#a||this.#o)return;this.#t=null,this.#n=!1,this.#e={events:[],trouble:{text:b(e),gone:e instanceof y&&e.status===404}}}this.#s()}gone(){this.#a+=1,this.#t=null,this.#n=!1,this.#e={events:[],trouble:{text:``,gone:!0}},this.#s()}take(e){this.#t?this.#t.push(e):this.#n&&this.#c(e)}#c(e){let t=Be(e.cursor);if(t){if(t.epoch!==this.#r){this.load(v.wire.otherHistory);return}if(t.pos<=this.#i)return;this.#i=t.pos}this.#e.events.push(e),this.#s()}},He=25e3,Ue=8e3,We=5e3,Ge=[300,1e3,2e3,2500],Ke=[4e3,2e3],qe=[4e3,2e4],Je=15e3,Ye=4001,Xe=4003,Ze={name:`plexus-web`,version:`1`},Qe=class{#e;#t;#n;#r;#i;#a;#o;#s;#c;constructor(e){this.on=e,this.phase=`signed-out`,this.cursor=null,this.heardAt=0,this.reason=``,this.#e=!1,this.#t=0,this.#n=!0,this.#r=0,this.#i=null,this.#s=1,this.#c=new Map,setInterval(()=>{this.phase===`live`&&Date.now()-this.heardAt>He&&this.probe()},We),document.addEventListener(`visibilitychange`,()=>{!document.hidden&&this.#e&&(this.#i?.readyState===WebSocket.OPEN?this.probe():this.retry())}),window.addEventListener(`online`,()=>{this.#e&&this.phase!==`live`&&this.retry()}),window.addEventListener(`offline`,()=>{this.phase===`live`||this.phase===`catching-up`?this.probe():this.#e&&this.#_(`offline`)}),window.addEventListener(`pageshow`,e=>{e.persisted&&this.#e&&this.retry()})}start(){this.#e=!0,this.cursor=null,this.#t=0,this.heardAt=0,this.reason=``,this.#n=!0,this.#_(`connecting`),this.#u()}stop(e){this.#e=!1,this.#r+=1,clearTimeout(this.#a),this.#l(),this.#_(e)}retry(){this.#e&&(this.#t=0,this.#u())}call(e,t){return new Promise((n,r)=>{let i=this.#i;if(!i||i.readyState!==WebSocket.OPEN){r(Error(v.wire.notConnected));return}let a=`p${this.#s++}`,o=setTimeout(()=>{this.#c.delete(a),r(Error(v.wire.timeout))},Le);this.#c.set(a,{resolve:n,reject:r,timer:o}),i.send(JSON.stringify({jsonrpc:`2.0`,id:a,method:e,params:t}))})}probe(){this.#i?.readyState===WebSocket.OPEN&&(clearTimeout(this.#o),this.#o=setTimeout(()=>this.#g(!0),Ue),this.call(`runtime.list`,{}).catch(()=>{}))}#l(){clearTimeout(this.#o);let e=this.#i;this.#i=null,e&&(e.onopen=e.onmessage=e.onclose=null,e.close());for(let e of this.#c.values())clearTimeout(e.timer),e.reject(Error(v.wire.notConnected));this.#c.clear()}async#u(){if(clearTimeout(this.#a),this.#e){if(this.#n){let e=++this.#r;this.#l();let t=this.on.knock();t.then(e=>{e.is===`there`&&this.#e&&this.phase===`offline`&&!this.#i&&this.#f()});let n=new Promise(e=>setTimeout(()=>e({is:`away`,why:``}),Ke[+!!this.#t])),r=await Promise.race([t,n]);if(e!==this.#r||!this.#e||this.#i||r.is===`out`)return;if(r.is===`away`){this.reason=r.why,this.#_(`offline`),this.#d();return}this.phase===`offline`&&this.#_(this.heardAt?`reconnecting`:`connecting`)}this.#f()}}#d(){let e=document.hidden?Je:(Ge[Math.min(this.#t,Ge.length-1)]??0)*(.8+Math.random()*.4);this.#t+=1,clearTimeout(this.#a),this.#a=setTimeout(()=>void this.#u(),e)}#f(){if(clearTimeout(this.#a),!this.#e)return;this.#l();let e=location.protocol===`https:`?`wss:`:`ws:`,t=this.on.bearer(),n=t?[`plexus.v1`,`plexus.bearer.${t}`]:[`plexus.v1`],r=new WebSocket(`${e}//${location.host}/v1/ws`,n);this.#i=r;let i=!1;this.#o=setTimeout(()=>this.#g(i),qe[+!!this.#n]),r.onopen=()=>{i=!0,this.#p().catch(e=>this.#m(e,r))},r.onmessage=e=>this.#v(e.data),r.onclose=e=>this.#h(e.code,e.reason,i)}async#p(){await this.call(`initialize`,{protocol_version:`0`,client:Ze,ui_capabilities:{supports_confirm:!0,supports_prompt:!0,supports_pick:!0}}),await this.call(`session.attach`,this.cursor?{session_id:`*`,after:this.cursor}:{session_id:`*`,from:`now`})}#m(e,t){this.#i===t&&(e instanceof y&&(this.reason=v.wire.gatewayRefused(e.message),this.cursor=null),this.#g(!0))}#h(e,t,n){e===Ye?this.on.revoked():e===Xe?(this.reason=v.wire.mayNotFollow(h(t)),this.stop(`stopped`)):this.#g(n)}#g(e){this.#l(),this.#e&&(!e&&this.#n&&(this.reason=v.wire.noSocket),this.#n=!e,this.#d(),this.#_(navigator.onLine?this.heardAt?`reconnecting`:`connecting`:`offline`))}#_(e){this.phase=e,e===`live`&&(this.#t=0,this.#n=!1,this.reason=``),this.on.phase(e,this.reason)}#v(e){this.#i?.readyState===WebSocket.OPEN&&clearTimeout(this.#o),this.heardAt=Date.now();let t;try{t=JSON.parse(String(e))}catch{this.on.junk(v.wire.notJson);return}for(let e of Array.isArray(t)?t:[t])try{this.#y(e)}catch(t){console.error(t),this.on.junk(h(e?.method))}}#y(e){if(!e||typeof e!=`object`)return;if(typeof e.method!=`string`){let t=this.#c.get(e.id);if(!t)return;this.#c.delete(e.id),clearTimeout(t.timer),e.error?t.reject(new y(0,{...e.error.data,message:e.error.message},Number(e.error.code)||0)):t.resolve(e.result);return}let t=e.params??{};switch(e.method){case`gateway.hello`:this.on.notice(e.method,t),(this.cursor===null||t.resume!==`ok`)&&typeof t.head==`string`&&(this.cursor=t.head),this.#_(`catching-up`);break;case`gateway.snapshot`:typeof t.cursor==`string`&&(this.cursor=t.cursor),this.on.notice(e.method,t);break;case`gateway.live`:typeof t.head==`string`&&(this.cursor=t.head),this.#_(`live`);break;case`gateway.lag`:break;case`agent.event`:this.on.notice(e.method,t),typeof t.cursor==`string`&&(this.cursor=t.cursor);break;default:this.on.notice(e.method,t)}}};function $e(e,t){if(!e)return t;if(e.state!==`open`&&t.state===`open`)return null;let[n,r]=[e.revision??0,t.revision??0];if(r<n)return null;let i={...e,...t};return r>n&&!t.receipt&&delete i.receipt,t.display_truncated?r===n&&e.digest&&!e.display_truncated?(Object.assign(i,{display:e.display,message:e.message,native:e.native,digest:e.digest}),delete i.display_truncated,delete i.display_bytes):i.digest=``:(delete i.display_truncated,delete i.display_bytes),i}var et=(e,t)=>(e.revision??0)!==(t.revision??0)||!!e.digest&&!!t.digest&&e.digest!==t.digest,tt=e=>{try{return decodeURIComponent(e)}catch{return``}};function nt(e){let[t=``,n=``]=e.replace(/^#\/?/,``).split(`?`,2),[r,i,a,o]=t.split(`/`).map(tt);switch(r){case`sessions`:return{page:r};case`s`:{if(!i)return{page:`sessions`};let e=a===`at`?Number(o):NaN;return Number.isSafeInteger(e)&&e>=0?{page:`session`,session_id:i,at:e}:{page:`session`,session_id:i}}case`r`:return i?{page:`inbox`,request:i}:{page:`inbox`};case`devices`:return{page:r};case`runtimes`:return i?{page:r,runtime_id:i}:{page:r};case`search`:return{page:r,q:new URLSearchParams(n).get(`q`)??``};default:return{page:`inbox`}}}function rt(e){let t=encodeURIComponent;switch(e.page){case`inbox`:return e.request?`#/r/${t(e.request)}`:`#/inbox`;case`session`:return`#/s/${t(e.session_id)}${e.at===void 0?``:`/at/${e.at}`}`;case`runtimes`:return e.runtime_id?`#/runtimes/${t(e.runtime_id)}`:`#/runtimes`;case`search`:return e.q?`#/search?q=${t(e.q)}`:`#/search`;default:return`#/${e.page}`}}var it=3e5,at=98304,ot=500,st=12e3,ct=2e3,lt=2e3,ut=`plexus.token`,dt=`plexus.seen`,ft=`plexus.here`,pt=new Set([`runtime_status`,`client_joined`,`client_left`,`usage_update`,`available_commands_update`,`config_option_update`,`hook`,`surface_updated`]),mt=e=>typeof e==`string`?Date.parse(e):NaN;function ht(){let e=new Map,t=d(new Map),n=De(()=>{t.value=new Map(e)});return{view:t,get:t=>e.get(t),keys:()=>[...e.keys()],values:()=>[...e.values()],set(t,r){e.set(t,r),n()},delete(t){e.delete(t)&&n()},clear(){e.clear(),t.value=new Map}}}var x=new ze,gt=d(null),_t=d({phase:`signed-out`,since:Date.now(),heardAt:0,reason:``}),vt=d(!1),yt=d(Date.now()),S=ht(),bt=ht(),xt=ht(),C=ht(),St=ht(),Ct=d(nt(location.hash)),wt=d(``),Tt=d(null),Et=d(``);window.addEventListener(`vite:preloadError`,()=>{Et.value||=`missing`});var Dt=new Map,Ot=d(new Map),kt=d(Mt()),At;function jt(e,t){Number.isNaN(t)||(Dt.get(e)??0)>=t||(Dt.set(e,t),At??=setTimeout(()=>{At=void 0,Ot.value=new Map(Dt)},ot))}function Mt(){try{let e=JSON.parse(localStorage.getItem(dt)??`[]`);return new Map(g(e).filter(e=>Array.isArray(e)&&typeof e[0]==`string`&&typeof e[1]==`number`))}catch{return new Map}}function Nt(e){let t=[...e].sort((e,t)=>t[1]-e[1]).slice(0,lt);kt.value=new Map(t);try{localStorage.setItem(dt,JSON.stringify(t))}catch{}}window.addEventListener(`storage`,e=>{e.key===dt&&(kt.value=Mt())});var Pt=i(()=>{let e=new Set;for(let[t,n]of Ot.value)(kt.value.get(t)??n)<n&&S.view.value.has(t)&&e.add(t);return e});function Ft(){let e=new Map(kt.peek()),t=!1;for(let n of S.values())e.has(n.session_id)||(e.set(n.session_id,mt(n.updated_at)||0),t=!0);t&&Nt(e)}var It=new Set;function Lt(e){It.add(e),S.delete(e);for(let t of Ut)t.session_id===e&&t.gone()}function Rt(e){if(typeof e?.session_id!=`string`||It.has(e.session_id))return;let t=S.get(e.session_id);t&&mt(e.updated_at)<mt(t.updated_at)||(S.set(e.session_id,{...t,...e}),jt(e.session_id,mt(e.updated_at)),!t&&vt.peek()&&Nt(new Map(kt.peek()).set(e.session_id,kt.peek().get(e.session_id)??0)))}function zt(e){typeof e?.runtime_id==`string`&&bt.set(e.runtime_id,e)}function Bt(e){if(typeof e?.request_id!=`string`)return;let t=$e(C.get(e.request_id),{...e,state:e.state??`open`});t&&C.set(e.request_id,t)}function Vt(e){let t=m(e.request_id),n=C.get(t);if(!n||n.state!==`open`)return;let r={resolved_by:{device_id:``,name:``},at:new Date(tn()).toISOString(),won:!1,state:`answered`,...e};C.set(t,{...n,state:r.state,receipt:r})}var Ht=new Set,Ut=new Set;function Wt(e){pt.has(e.kind)||jt(e.session_id,mt(e.at)),e.kind===`request_opened`?Bt({session_id:e.session_id,run_id:e.run_id,runtime_id:e.meta?.runtime_id,...e.event}):e.kind===`request_updated`?Bt({session_id:e.session_id,run_id:e.run_id,runtime_id:e.meta?.runtime_id,...e.event?.request??e.event}):e.kind===`request_resolved`&&Vt(e.event?.receipt??e.event??{});for(let t of Ut)t.session_id===e.session_id&&t.take(e);for(let t of Ht)try{t(e)}catch(e){console.error(e)}}function Gt(e){for(let t of g(e.sessions))Rt(t);if(Array.isArray(e.runs)){xt.clear();for(let t of g(e.runs))typeof t?.session_id==`string`&&xt.set(t.session_id,t)}if(Array.isArray(e.requests)){let t=new Set;for(let n of g(e.requests))t.add(n?.request_id),Bt(n);for(let e of C.values())e.state===`open`&&!t.has(e.request_id)&&fn(e.request_id)}}async function Kt(){let e=[];for(let t=``;;){let n=await x.json(`GET`,`/v1/sessions?archived=all&cursor=${encodeURIComponent(t)}`);if(e.push(...g(n?.sessions)),t=m(n?.next),!t)return{sessions:e}}}async function qt(){let e=new Set(S.keys());try{let[t,n]=await Promise.all([Kt(),x.json(`GET`,`/v1/runtimes`).catch(e=>{if(e instanceof y)return null;throw e})]);r(()=>{let r=new Set(g(t?.sessions).map(e=>e.session_id));for(let e of g(t?.sessions))Rt(e);for(let t of e)r.has(t)||Lt(t);let i=new Set(g(n?.runtimes).map(e=>e.runtime_id));for(let e of g(n?.runtimes))zt(e);for(let e of bt.keys())i.has(e)||bt.delete(e);Ft(),vt.value=!0})}catch(e){e instanceof y&&e.ours&&(Tt.value={text:e.message,at:Date.now()}),setTimeout(()=>{!vt.peek()&&w.phase===`live`&&qt()},ct)}}async function Jt(){try{let e=await fetch(`/`,{cache:`no-cache`,credentials:`same-origin`,redirect:`error`}),t=e.ok?Ae(await e.text()):``;Me&&t&&Me!==t&&(Et.value=`updated`),await(Et.peek()?Ie():Fe())}catch{}}async function Yt(){try{Xt(await x.json(`GET`,`/v1/me`))}catch{}}function Xt(e){x.credentials={...x.credentials,csrf:e.csrf??x.credentials.csrf},gt.value=e}async function Zt(){try{let e=await x.json(`GET`,`/v1/me`,void 0,{patience:st});return typeof e?.device_id==`string`?(Xt(e),{is:`there`}):{is:`away`,why:v.wire.onTheWay(200)}}catch(e){return e instanceof y?e.ours&&e.status===401?{is:`out`}:{is:`away`,why:b(e)}:{is:`away`,why:``}}}function Qt(e){let t=w.cursor===null||e.resume!==`ok`;e.you?.device_id&&!gt.peek()&&(gt.value={kind:e.you.device_id===`d_local`?`local`:`device`,gateway:{version:``,started_at:``,epoch:m(e.epoch)},...e.you}),St.clear(),Gt(e),Yt(),qt(),Jt();for(let n of Ut)(t||!n.loaded)&&n.load(e.resume===`reset`?v.wire.otherHistory:v.wire.hole);nn=``,an()}function $t(e,t){switch(e){case`gateway.hello`:Qt(t);break;case`gateway.snapshot`:Gt(t);break;case`agent.event`:Wt(t);break;case`session.updated`:t.session&&Rt(t.session);break;case`session.deleted`:Lt(m(t.session_id));break;case`runtime.updated`:t.runtime&&zt(t.runtime);break;case`runtime.removed`:bt.delete(m(t.runtime_id));break;case`run.status`:{let e=m(t.session_id);if([`completed`,`error`,`cancelled`].includes(t.status))xt.get(e)?.run_id===t.run_id&&xt.delete(e);else if(t.status!==`queued`){let n=xt.get(e);xt.set(e,{started_at:n?.run_id===t.run_id?n.started_at:new Date(tn()).toISOString(),...t})}break}case`ui.confirm.request`:case`ui.prompt.request`:case`ui.pick.request`:Bt(t);break;case`ui.request.resolved`:Vt(t);break;case`presence.changed`:{let e=gt.peek()?.device_id,n=g(t.lookers).filter(t=>t?.device_id!==e);n.length?St.set(m(t.session_id),n):St.delete(m(t.session_id));break}}}var w=new Qe({phase(e,t){let n=_t.peek();_t.value={phase:e,reason:t,heardAt:en(),since:n.phase===e?n.since:Date.now()}},notice:$t,junk(e){Tt.value={text:e,at:Date.now()}},revoked(){ln(v.wire.revoked)},knock:Zt,bearer:()=>x.credentials.bearer,skew:()=>x.skew});function en(){return w?.heardAt??0}x.onUnauthorized=()=>{_t.peek().phase!==`signed-out`&&ln(v.wire.notAccepted)};var tn=()=>Date.now()+x.skew;setInterval(()=>{if(!document.hidden){yt.value=tn();for(let e of C.values())e.state!==`open`&&tn()-mt(e.receipt?.at??e.opened_at)>it&&C.delete(e.request_id)}},1e3);var nn=``,rn=!0;function an(){if(!rn||w.phase===`signed-out`)return;let e=Ct.peek(),t=!document.hidden&&document.hasFocus(),n={session_id:e.page===`session`?e.session_id:null,focused:t},r=JSON.stringify(n);r!==nn&&(nn=r,w.call(`presence.update`,n).catch(e=>{e instanceof y&&e.rpc===-32601?rn=!1:nn=``}))}for(let e of[`focus`,`blur`,`pageshow`,`pagehide`])window.addEventListener(e,an);document.addEventListener(`visibilitychange`,an),window.addEventListener(`hashchange`,()=>{let e=nt(location.hash);e&&(Ct.value=e),an()});function on(e){x.credentials={bearer:e,csrf:null};try{sessionStorage.setItem(ut,e)}catch{}cn()}function sn(e){x.credentials={bearer:null,csrf:e};try{localStorage.setItem(ft,`1`)}catch{}cn()}function cn(){wt.value=``,gt.value=null,w.start()}function ln(e){x.credentials={bearer:null,csrf:null};try{sessionStorage.removeItem(ut),localStorage.removeItem(ft)}catch{}r(()=>{for(let e of Ut)e.stop();Ut.clear(),It.clear();for(let e of[S,bt,xt,C,St])e.clear();Dt.clear(),Ot.value=new Map,gt.value=null,vt.value=!1,wt.value=e,w.stop(`signed-out`)})}function un(){let e=null;try{e=sessionStorage.getItem(ut)}catch{}if(e&&Re.test(e))return on(e),!0;try{if(localStorage.getItem(ft)===null)return!1}catch{return!1}return sn(null),!0}async function dn(){try{if(localStorage.getItem(ft)===null)return null}catch{}try{let e=await x.json(`GET`,`/v1/me`,void 0,{anonymous:!0});return e?.csrf?e:null}catch(e){if(e instanceof y&&e.ours&&e.status===401)return null;throw e}}async function fn(e){try{let t=await x.json(`GET`,`/v1/requests/${encodeURIComponent(e)}`),n=t?.request??t;return n?.request_id?(Bt(n),C.get(e)??n):null}catch(t){return t instanceof y&&t.status===404&&C.delete(e),null}}async function pn(e,t){let n=`/v1/requests/${encodeURIComponent(e.request_id)}/answer`,r={"Idempotency-Key":crypto.randomUUID?.()??`${Date.now()}-${Math.random()}`};for(let i=0;;i+=1)try{let i=await x.json(`POST`,n,{...t,...e.digest?{digest:e.digest}:{}},{headers:r});return Vt(i),i.won===!1?{kind:`late`,receipt:i}:{kind:`won`,receipt:i}}catch(t){if(t instanceof y){let n=t.problem;if(n.state&&n.state!==`open`&&n.resolved_by)return Vt(n),{kind:`late`,receipt:n};if(t.status<500)return fn(e.request_id),{kind:`refused`,code:t.code,text:t.message}}if(i>0)return{kind:`unknown`,text:b(t)}}}var T={link:_t,live:i(()=>_t.value.phase===`live`||_t.value.phase===`catching-up`),me:gt,sessions:S.view,loaded:vt,runtimes:bt.view,runs:xt.view,requests:C.view,lookers:St.view,news:Ot,unread:Pt,route:Ct,now:yt,may(e){let t=gt.value?.scopes;return!t||t.includes(e)||t.includes(`admin`)},follow(e,t){let n=new Ve(e,t,async e=>{let t=`/v1/sessions/${encodeURIComponent(e)}`,[n,r]=await Promise.all([x.json(`GET`,`${t}/snapshot?max_bytes=0`),x.json(`GET`,`${t}/events?before=now&merge=true&limit=1000&max_bytes=${at}`)]);return n?.session&&Rt(n.session),{snapshot:n,past:r}});return Ut.add(n),(w.phase===`live`||w.phase===`catching-up`)&&n.load(),()=>{n.stop(),Ut.delete(n)}},listen(e){return Ht.add(e),()=>Ht.delete(e)},call:(e,t={})=>w.call(e,t),http:(e,t,n)=>x.json(e,t,n),fetch:(e,t={})=>x.fetch(e,t),answer:pn,reread:fn,seen(e){let t=Math.max(Dt.get(e)??0,mt(S.get(e)?.updated_at)||0);(kt.peek().get(e)??-1)<t&&Nt(new Map(kt.peek()).set(e,t))},go(e){location.hash=rt(e).slice(1)},href:rt,retry(){_t.peek().phase===`stopped`?location.reload():w.retry()}},mn={inbox:`M2 9.5h3l1 2h4l1-2h3M2 9.5 4 3h8l2 6.5V13H2V9.5Z`,sessions:`M2.5 3h11v7.5h-6L4.5 13v-2.5h-2V3Z`,devices:`M2 3h9v7H2V3ZM5 13h3M10.5 6.5h4V14h-4V6.5Z`,runtimes:`M2.5 3h11v10h-11V3ZM5 6l2 2-2 2M8.5 10.5h2.5`,search:`M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14`,plus:`M8 3v10M3 8h10`,more:`M3.5 8h.01M8 8h.01M12.5 8h.01`,close:`M4 4l8 8M12 4l-8 8`,check:`M3 8.5 6.5 12 13 4.5`,back:`M10 3 5 8l5 5`,forward:`M6 3l5 5-5 5`,down:`M3 6l5 5 5-5`,up:`M3 10l5-5 5 5`,warn:`M8 2.5 14.5 13.5h-13L8 2.5ZM8 6.5v3.2M8 11.7h.01`,danger:`M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5L5.5 2ZM8 5v3.6M8 10.9h.01`,info:`M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 7.2v3.6M8 5h.01`,eye:`M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z`,copy:`M5.5 5.5h8v8h-8v-8ZM3.5 10.5h-1v-8h8v1`,link:`M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2.4-2.4a2.6 2.6 0 1 0-3.7-3.7l-.9.9M9.2 6.8a2.6 2.6 0 0 0-3.7 0L3.1 9.2a2.6 2.6 0 1 0 3.7 3.7l.9-.9`,share:`M8 10V2M5 4.5 8 2l3 2.5M4 8H2.5v6h11V8H12`,archive:`M2 3h12v3H2V3ZM3 6v7h10V6M6.5 8.5h3`,pencil:`M3 13v-2.5L10.5 3 13 5.5 5.5 13H3Z`,trash:`M2.5 4.5h11M6 4.5V3h4v1.5M4 4.5l.7 9h6.6l.7-9M6.7 7v4M9.3 7v4`,stop:`M4 4h8v8H4V4Z`,play:`M5 3.2v9.6L12.5 8 5 3.2Z`,restart:`M13 8a5 5 0 1 1-1.6-3.7M13.2 2v3h-3`,log:`M3 3h10M3 6.3h10M3 9.6h7M3 13h9`,sun:`M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9`,moon:`M13.3 9.6A5.6 5.6 0 1 1 6.4 2.7a4.5 4.5 0 0 0 6.9 6.9Z`,auto:`M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 2v12M8 4.5h3.5M8 7h5M8 9.5h4.7M8 12h3`,keyboard:`M1.5 4h13v8h-13V4ZM4 6.7h.01M6.7 6.7h.01M9.3 6.7h.01M12 6.7h.01M5 9.5h6`,bell:`M4 11V7a4 4 0 0 1 8 0v4l1.2 1.5H2.8L4 11ZM6.7 14h2.6`,lock:`M3.5 7h9v6.5h-9V7ZM5.5 7V5a2.5 2.5 0 0 1 5 0v2`,out:`M6.5 2.5H3v11h3.5M10 5l3 3-3 3M13 8H6`,phone:`M4.5 1.5h7v13h-7v-13ZM7 12.5h2`,folder:`M1.5 3.5H6L7.5 5h7v8h-13V3.5Z`,file:`M4 1.5h5.5L12.5 4.5v10H4v-13ZM9 2v3h3`,terminal:`M2 3h12v10H2V3ZM4.5 6l2 2-2 2M8.5 10.3h3`,clock:`M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 5v3.2l2.2 1.3`,send:`M8 13.5V3M3.8 7.2 8 3l4.2 4.2`,think:`M5.5 12.5h5M6.3 14.3h3.4M5.7 10.5C4.3 9.6 3.5 8.2 3.5 6.6a4.5 4.5 0 0 1 9 0c0 1.6-.8 3-2.2 3.9v0H5.7Z`,download:`M8 2v8M5 7.5 8 10.5l3-3M2.5 11v3h11v-3`,user:`M8 8.2a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM2.8 13.6c.6-2.3 2.7-3.4 5.2-3.4s4.600 1.100 5.200 3.400`,heart:`M1.5 8h3l2-4.5 3 9 2-4.5h3`};function E(e,t=16,r){return n`<svg width=${t} height=${t} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5"
    stroke-linecap="round" stroke-linejoin="round" role=${r?`img`:`presentation`} aria-label=${r??``} aria-hidden=${r?`false`:`true`}
    focusable="false">${ee`<path d=${mn[e]}></path>`}</svg>`}function D(e,t,n,r){var i=arguments.length,a=i<3?t:r===null?r=Object.getOwnPropertyDescriptor(t,n):r,o;if(typeof Reflect==`object`&&typeof Reflect.decorate==`function`)a=Reflect.decorate(e,t,n,r);else for(var s=e.length-1;s>=0;s--)(o=e[s])&&(a=(i<3?o(a):i>3?o(t,n,a):o(t,n))||a);return i>3&&a&&Object.defineProperty(t,n,a),a}var hn=5e3,gn=1e4,_n=d([]),vn=d(``),yn=d(``),bn=0;function O(e,t=!1){let n=t?yn:vn;n.value=n.peek()===e?`${e}\u00a0`:e}function k(e,t={}){let n={id:++bn,text:e,tone:t.tone??`plain`,act:t.act};_n.value=[..._n.peek().slice(-2),n],setTimeout(()=>xn(n.id),n.act?gn:hn),O(e,n.tone===`danger`)}var xn=e=>{_n.value=_n.peek().filter(t=>t.id!==e)},Sn=class extends f{static{this.styles=[...[f.styles].flat(),s`
    .stack { position: fixed; z-index: 60; left: 50%; bottom: calc(var(--bottom, 0px) + 20px); transform: translateX(-50%); display: flex; flex-direction: column; gap: var(--s2); width: max-content; max-width: min(92vw, 480px); }
    .toast { display: flex; align-items: center; gap: var(--s3); padding: 9px 8px 9px 14px; background: var(--bg-raised); border: 1px solid var(--line-strong); border-radius: var(--r-m); box-shadow: var(--shadow-2); }
    .toast.danger { border-color: var(--danger-line); color: var(--danger); }
    .toast.ok svg { color: var(--ok); }
  `]}render(){return n`
      <div class="sr" role="status" aria-live="polite">${vn.value}</div>
      <div class="sr" role="alert" aria-live="assertive">${yn.value}</div>
      ${_n.value.length?n`<section class="stack" aria-label=${v.shell.messages}>${_n.value.map(e=>n`<div class="toast ${e.tone}">
        ${e.tone===`danger`?E(`warn`):e.tone===`ok`?E(`check`):u}<span class="grow">${e.text}</span>
        ${e.act?n`<button class="compact" @click=${()=>{xn(e.id),e.act?.run()}}>${e.act.label}</button>`:u}
        <button class="ghost icon compact" aria-label=${v.common.close} @click=${()=>xn(e.id)}>${E(`close`,14)}</button>
      </div>`)}</section>`:u}`}};Sn=D([t(`plexus-say`)],Sn);var Cn=class extends f{constructor(...e){super(...e),this.open=!1,this.heading=``,this.reading=!1,this.size=`normal`,this.#e=()=>{this.open&&(this.open=!1,this.dispatchEvent(new CustomEvent(`close`)))},this.#t=e=>{let t=e.currentTarget;if(e.target!==t)return;let n=t.getBoundingClientRect();(e.clientX<n.left||e.clientX>n.right||e.clientY<n.top||e.clientY>n.bottom)&&t.close()}}static{this.styles=[...[f.styles].flat(),s`
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
  `]}render(){return n`<dialog aria-labelledby="heading" @close=${this.#e} @cancel=${()=>{}} @click=${this.#t}>
      <div class="head"><h2 id="heading" tabindex="-1">${this.heading}</h2>
        <button class="ghost icon" aria-label=${v.common.close} @click=${()=>this.renderRoot.querySelector(`dialog`)?.close()}>${E(`close`)}</button></div>
      <div class="body" tabindex=${this.reading?0:u} role=${this.reading?`region`:u} aria-label=${this.reading?this.heading:u}>${this.open?n`<slot></slot>`:u}</div>
    </dialog>`}updated(){let e=this.renderRoot.querySelector(`dialog`);if(e&&e.open!==this.open){if(this.open){e.showModal();let t=this.querySelector(`[autofocus]`);t?t.focus():this.renderRoot.querySelector(`h2`)?.focus()}else e.close()}}#e;#t};D([l({type:Boolean})],Cn.prototype,`open`,void 0),D([l()],Cn.prototype,`heading`,void 0),D([l({type:Boolean})],Cn.prototype,`reading`,void 0),D([l({reflect:!0})],Cn.prototype,`size`,void 0),Cn=D([t(`plexus-dialog`)],Cn);var wn=d(null);function Tn(e,t,n,r=!1){return new Promise(i=>{wn.value={heading:e,body:t,yes:n,danger:r,done:e=>i(e!==null)}})}function En(e,t,n,r=v.common.save){return new Promise(i=>{wn.value={heading:e,body:``,yes:r,danger:!1,field:{label:t,value:n},done:i}})}var Dn=class extends f{static{this.styles=[...[f.styles].flat(),s`form { display: contents; } .row { display: flex; justify-content: flex-end; gap: var(--s2); }`]}render(){let e=wn.value,t=t=>{wn.value=null,e?.done(t)};return n`<plexus-dialog size="small" .open=${e!==null} heading=${e?.heading??``} @close=${()=>t(null)}>
      ${e?n`<form @submit=${e=>{e.preventDefault(),t(this.renderRoot.querySelector(`#value`)?.value??``)}}>
        ${e.body?n`<p class="soft">${e.body}</p>`:u}
        ${e.field?n`<label class="field">${e.field.label}<input id="value" autofocus autocomplete="off" maxlength="200" .value=${e.field.value}></label>`:u}
        <div class="row"><button type="button" ?autofocus=${!e.field} @click=${()=>t(null)}>${v.common.cancel}</button>
          <button type="submit" class="primary ${e.danger?`danger`:``}">${e.yes}</button></div>
      </form>`:u}
    </plexus-dialog>`}};Dn=D([t(`plexus-asking`)],Dn);var On=class extends f{constructor(...e){super(...e),this.label=``,this.items=[],this.icon=`more`,this.showLabel=!1,this.shown=!1,this.hide=()=>this.#e?.hidePopover(),this.#t=()=>{this.shown?this.hide():this.#e?.showPopover()},this.#n=e=>{this.shown=e.newState===`open`,this.shown&&this.updateComplete.then(()=>{let e=this.#e,t=this.renderRoot.querySelector(`button`)?.getBoundingClientRect();if(!e||!t)return;let n=e.getBoundingClientRect(),r=Math.max(8,Math.min(t.right-n.width,innerWidth-n.width-8)),i=t.bottom+4,a=i+n.height>innerHeight-8?Math.max(8,t.top-n.height-4):i;e.style.left=`${r}px`,e.style.top=`${a}px`,this.#r()[0]?.focus()})},this.#r=()=>[...this.renderRoot.querySelectorAll(`.item:not([disabled])`)],this.#i=e=>{let t=this.#r(),n=t.indexOf(this.shadowRoot?.activeElement),r={ArrowDown:(n+1)%t.length,ArrowUp:(n-1+t.length)%t.length,Home:0,End:t.length-1}[e.key];if(e.key===`Escape`){this.hide(),this.renderRoot.querySelector(`button`)?.focus(),e.preventDefault(),e.stopPropagation();return}if(e.key===`Tab`){this.hide();return}let i=r??(e.key.length===1?t.findIndex(t=>t.textContent?.trim().toLowerCase().startsWith(e.key.toLowerCase())):-1);i<0||(e.preventDefault(),e.stopPropagation(),t[i]?.focus())}}static{this.styles=[...[f.styles].flat(),s`
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
  `]}render(){return n`<button class="ghost ${this.showLabel?``:`icon`}" aria-haspopup="menu" aria-expanded=${this.shown} aria-label=${this.label} @click=${this.#t}>${E(this.icon)}${this.showLabel?this.label:u}</button>
      <div popover="auto" role="menu" aria-label=${this.label} @toggle=${this.#n} @keydown=${this.#i}>
        ${this.shown?this.items.map(e=>n`${e.separate?n`<div class="sep" role="separator"></div>`:u}${e.href?n`<a class="item" role="menuitem" tabindex="-1" href=${e.href} @click=${this.hide}>${e.icon?E(e.icon):u}${e.label}</a>`:n`<button class="item ${e.danger?`danger`:``}" role=${e.checked===void 0?`menuitem`:`menuitemradio`} aria-checked=${e.checked===void 0?u:e.checked} tabindex="-1" ?disabled=${e.disabled}
              @click=${()=>{this.hide(),e.run?.()}}>${e.icon?E(e.icon):u}${e.label}${e.checked?n`<span class="tick">${E(`check`,14)}</span>`:u}</button>`}`):u}
      </div>`}get#e(){return this.renderRoot.querySelector(`[popover]`)}#t;#n;#r;#i};D([l()],On.prototype,`label`,void 0),D([l({attribute:!1})],On.prototype,`items`,void 0),D([l()],On.prototype,`icon`,void 0),D([l({type:Boolean,attribute:`show-label`})],On.prototype,`showLabel`,void 0),D([l({state:!0,attribute:!1})],On.prototype,`shown`,void 0),On=D([t(`plexus-menu`)],On);var kn=class extends f{constructor(...e){super(...e),this.at=``,this.short=!1}static{this.styles=[...[f.styles].flat(),s`:host { display: inline; font-variant-numeric: tabular-nums; white-space: nowrap; }`]}render(){let e=typeof this.at==`number`?this.at:Date.parse(this.at);if(!Number.isFinite(e))return u;let t=T.now.value-e,r=this.short?t<5e3?v.common.now:Ce(t):we(e,T.now.value);return n`<time datetime=${new Date(e).toISOString()} title=${new Date(e).toLocaleString(`en`)}>${r}</time>`}};D([l()],kn.prototype,`at`,void 0),D([l({type:Boolean})],kn.prototype,`short`,void 0),kn=D([t(`plexus-age`)],kn);function A(e,t,r,i){return n`<div class="empty"><span class="mark">${E(e,22)}</span><h2>${t}</h2>${r?n`<p class="soft">${r}</p>`:u}${i??u}</div>`}function An(){return n`<p class="mute">${T.live.value||T.link.value.phase===`connecting`?v.common.loading:v.shell.stale.unknown}</p>`}function jn(e){return n`<div class="command"><code>${e}</code><button class="ghost icon compact" aria-label=${v.common.copy} @click=${()=>Mn(e)}>${E(`copy`,14)}</button></div>`}async function Mn(e){try{await navigator.clipboard.writeText(e),k(v.common.copied,{tone:`ok`})}catch(e){k(v.shell.failed(String(e)),{tone:`danger`})}}async function j(e){try{return await e()}catch(e){k(v.shell.failed(e instanceof y||e instanceof Error?b(e):String(e)),{tone:`danger`});return}}var Nn=s`
  :host { display: block; }
  .page { max-width: 1000px; margin: 0 auto; padding: var(--s5) var(--s5) 96px; }
  .page > header, .head { display: flex; align-items: center; gap: var(--s3); min-height: 34px; margin-bottom: var(--s4); flex-wrap: wrap; }
  .page > header h1 { flex: 1; min-width: 0; }
  h1:focus-visible { outline: none; }
  .section { margin-top: var(--s6); }
  .section > header { display: flex; align-items: center; gap: var(--s2); margin-bottom: var(--s2); }
  .section > header h2 { flex: 1; }
  .empty { display: flex; flex-direction: column; align-items: center; text-align: center; gap: var(--s2); padding: clamp(36px, 12vh, 120px) var(--s4) var(--s7); }
  .empty .mark { display: grid; place-items: center; width: 48px; height: 48px; border-radius: 14px; background: var(--accent-wash); color: var(--accent); margin-bottom: var(--s2); }
  .empty p { max-width: 42ch; }
  .empty .command, .empty button, .empty .btn { margin-top: var(--s2); }
  .command { display: inline-flex; align-items: center; gap: var(--s2); max-width: 100%; padding: 4px 4px 4px 12px; border: 1px solid var(--line); border-radius: var(--r-s); background: var(--bg-code); }
  .command code { user-select: all; }
  .list { border: 1px solid var(--line); border-radius: var(--r-m); background: var(--bg-raised); box-shadow: var(--shadow-1); }
  .list > li + li { border-top: 1px solid var(--line); }
  .list > li:first-child { border-radius: var(--r-m) var(--r-m) 0 0; }
  .list > li:last-child { border-radius: 0 0 var(--r-m) var(--r-m); }
  .actions { display: flex; gap: var(--s2); justify-content: flex-end; flex-wrap: wrap; }
  @media (max-width: 599px) {
    .page { padding: var(--s4) var(--s3) 88px; }
  }
`,Pn=v.shell.help,M=Pn.keys,Fn=/Mac|iPhone|iPad/.test(navigator.platform)?`⌘`:`Ctrl`,In=[[Pn.groups.everywhere,[[`${Fn} K`,M.palette],[`?`,M.help],[`n`,M.newSession],[`/`,M.find],[`t`,M.theme],[`Esc`,M.close]]],[Pn.groups.go,[[`g i`,M.inbox],[`g s`,M.sessions],[`g f`,M.search],[`g r`,M.runtimes],[`g d`,M.devices],[`g b`,M.back]]],[Pn.groups.list,[[`j`,M.next],[`k`,M.previous],[`Enter`,M.open],[`e`,M.archive],[`r`,M.rename]]],[Pn.groups.request,[[`a`,M.allow],[`A`,M.always],[`d`,M.deny],[`D`,M.denyWhy],[`e`,M.edit],[`o`,M.unfold],[`1 – 9`,M.option]]],[Pn.groups.session,[[`i`,M.compose],[`Enter`,M.send],[`⇧ Enter`,M.newline],[`j`,M.next],[`k`,M.previous],[`o`,M.unfold],[`e`,M.jump],[`/`,M.findHere],[`y`,M.copy],[`u`,M.up]]]],Ln=class extends f{constructor(...e){super(...e),this.open=!1}show(){this.open=!0}static{this.styles=[...[f.styles].flat(),s`
    .cols { columns: 2 300px; column-gap: var(--s6); }
    section { break-inside: avoid; margin-bottom: var(--s5); }
    h3 { margin-bottom: var(--s2); color: var(--fg-mute); font-size: var(--t-s); }
    dl { display: grid; grid-template-columns: 108px 1fr; gap: 6px 12px; align-items: center; }
    dt { display: flex; gap: 3px; flex-wrap: wrap; }
  `]}render(){return n`<plexus-dialog reading size="wide" heading=${Pn.title} .open=${this.open} @close=${()=>{this.open=!1}}>
      <div class="cols">${In.map(([e,t])=>n`<section><h3>${e}</h3><dl>${t.map(([e,t])=>n`
        <dt>${e.split(` `).map(e=>e===`–`?e:n`<kbd>${e}</kbd>`)}</dt><dd>${t}</dd>`)}</dl></section>`)}</div>
    </plexus-dialog>`}};D([c()],Ln.prototype,`open`,void 0),Ln=D([t(`plexus-help`)],Ln);var Rn=v.shell;async function zn(){let e=T.me.peek()?.kind===`device`;(!e||await Tn(Rn.signOutAsk,Rn.signOutWhy,Rn.signOut,!0))&&(e&&await T.http(`DELETE`,`/v1/me`).catch(()=>{}),history.replaceState(null,``,location.pathname),ln(Rn.signin.out))}var Bn=class extends f{constructor(...e){super(...e),this.state=`idle`,this.bare=!1}static{this.styles=[...[f.styles].flat(),s`
    :host { display: inline-flex; align-items: center; gap: 6px; font-size: var(--t-s); color: var(--fg-mute); white-space: nowrap; flex: none; }
    .sign { width: 14px; height: 14px; flex: none; display: grid; place-items: center; }
    svg { overflow: visible; }
    :host([state="running"]) { color: var(--accent); }
    :host([state="waiting"]) { color: var(--warn); font-weight: 600; }
    :host([state="running"]) .turn { animation: turn 1.6s linear infinite; transform-origin: 7px 7px; }
    @keyframes turn { to { transform: rotate(360deg); } }
  `]}render(){let e=v.shell.sessions.state[this.state]??h(this.state);return n`<span class="sign" role=${this.bare?`img`:u} aria-label=${this.bare?e:u}>${this.#e()}</span>${this.bare?u:e}`}#e(){switch(this.state){case`running`:return n`<svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" aria-hidden="true"><circle cx="7" cy="7" r="5.2" opacity="0.28"></circle><path class="turn" d="M7 1.8A5.2 5.2 0 0 1 12.2 7"></path></svg>`;case`waiting`:return n`<svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true"><circle cx="7" cy="7" r="6" fill="currentColor"></circle><path d="M5.3 5.3a1.75 1.75 0 1 1 2.4 1.7c-.5.2-.7.5-.7 1M7 10h.01" fill="none" stroke="var(--bg-raised)" stroke-width="1.4" stroke-linecap="round"></path></svg>`;case`exited`:return n`<svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" aria-hidden="true"><path d="M4.2 4.2l5.6 5.6M9.8 4.2 4.2 9.8"></path></svg>`;default:return n`<svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" stroke-width="1.6" aria-hidden="true"><circle cx="7" cy="7" r="4.6"></circle></svg>`}}};D([l({reflect:!0})],Bn.prototype,`state`,void 0),D([l({type:Boolean})],Bn.prototype,`bare`,void 0),Bn=D([t(`plexus-state`)],Bn);var N=v.shell,Vn=40;function Hn(e,t){let n=e.toLowerCase(),r=n.indexOf(t);if(r>=0)return r===0||n[r-1]===` `?r:r+20;let i=0,a=0;for(let e of t){let t=n.indexOf(e,i);if(t<0)return null;a+=t-i,i=t+1}return 100+a}var Un=class extends f{constructor(...e){super(...e),this.shown=!1,this.q=``,this.at=0,this.#e=null,this.#o=()=>{this.shown=!1,this.#e?.focus({preventScroll:!0}),this.#e=null}}#e;static{this.styles=[...[f.styles].flat(),s`
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
  `]}toggle(){this.shown?this.#t?.close():ge()||(this.#e=document.activeElement,this.shown=!0,this.q=``,this.at=0,this.updateComplete.then(()=>{this.#t?.showModal();let e=this.renderRoot.querySelector(`input`);e&&(e.value=``,e.focus())}))}get#t(){return this.renderRoot.querySelector(`dialog`)}#n(){let e=N.command.sections,t=(t,n,r)=>({section:e.go,label:N.pages[t],icon:n,keys:r,run:()=>T.go(t===`search`?{page:t,q:``}:{page:t})}),n=T.route.value,r=T.may(`admin`),i=[t(`inbox`,`inbox`,`g i`),t(`sessions`,`sessions`,`g s`),t(`search`,`search`,`g f`),t(`runtimes`,`runtimes`,`g r`),t(`devices`,`devices`,`g d`)],a=T.news.value;for(let t of[...T.sessions.value.values()].sort((e,t)=>(a.get(t.session_id)??0)-(a.get(e.session_id)??0)))i.push({section:e.session,label:h(t.title)||v.common.untitled,hint:[h(t.runtime_id),h(t.cwd)].filter(Boolean).join(` · `),state:t.state,run:()=>T.go({page:`session`,session_id:t.session_id})});if(T.may(`prompt`)&&i.push({section:e.act,label:N.sessions.new,icon:`plus`,keys:`n`,run:()=>{T.go({page:`sessions`}),setTimeout(()=>dispatchEvent(new CustomEvent(`plexus-new-session`)),0)}}),n.page===`session`){let t=e=>()=>dispatchEvent(new CustomEvent(`plexus-session-do`,{detail:e}));T.may(`prompt`)&&i.push({section:e.act,label:N.sessions.rename,icon:`pencil`,run:t(`rename`)},{section:e.act,label:N.sessions.archive,icon:`archive`,run:t(`archive`)}),r&&i.push({section:e.act,label:N.sessions.share,icon:`share`,run:t(`share`)})}r&&i.push({section:e.act,label:N.devices.add,icon:`phone`,run:()=>{T.go({page:`devices`}),setTimeout(()=>dispatchEvent(new CustomEvent(`plexus-add-device`)),0)}},{section:e.act,label:N.runtimes.start,icon:`play`,run:()=>{T.go({page:`runtimes`}),setTimeout(()=>dispatchEvent(new CustomEvent(`plexus-start-runtime`)),0)}}),i.push({section:e.act,label:N.signOut,icon:`out`,run:()=>void zn()});for(let t of[`auto`,`light`,`dark`])i.push({section:e.theme,label:`${N.theme}: ${N.themes[t]}`,icon:t===`light`?`sun`:t===`dark`?`moon`:`auto`,run:()=>se(t)});return i}#r(){let e=this.q.trim().toLowerCase(),t=this.#n();if(!e)return t.slice(0,Vn);let n=t.map(t=>({one:t,at:Hn(`${t.label} ${t.hint??``}`,e)})).filter(e=>e.at!==null).sort((e,t)=>e.at-t.at).map(e=>e.one).slice(0,39);return n.sort((e,n)=>t.findIndex(t=>t.section===e.section)-t.findIndex(e=>e.section===n.section)),n.push({section:N.command.sections.act,label:N.command.searchFor(this.q.trim()),icon:`search`,run:()=>T.go({page:`search`,q:this.q.trim()})}),n}render(){if(!this.shown)return n`<dialog aria-label=${N.command.label} @close=${this.#o}></dialog>`;let e=this.#r(),t=Math.min(this.at,e.length-1);return n`<dialog aria-label=${N.command.label} @close=${this.#o} @click=${e=>{e.target===e.currentTarget&&this.#t?.close()}}>
      <div class="find">${E(`search`)}<input type="text" role="combobox" aria-label=${N.command.label} aria-expanded="true" aria-controls="list" aria-activedescendant=${e.length?`o${t}`:u} aria-autocomplete="list"
        autocomplete="off" autocapitalize="off" spellcheck="false" placeholder=${N.command.hint} @input=${e=>{this.q=e.target.value,this.at=0}} @keydown=${n=>this.#i(n,e,t)}><kbd>Esc</kbd></div>
      <div class="list" id="list" role="listbox" aria-label=${N.palette} tabindex="-1">${e.map((r,i)=>n`
        ${i===0||e[i-1]?.section!==r.section?n`<div class="group" role="presentation">${r.section}</div>`:u}
        <div class="one" role="option" id="o${i}" aria-selected=${i===t} @click=${()=>this.#a(r)} @mousemove=${()=>{this.at!==i&&(this.at=i)}}>
          ${r.state?n`<plexus-state .state=${r.state} bare></plexus-state>`:r.icon?E(r.icon):u}<bdi class="cut">${r.label}</bdi>
          ${r.keys?n`<span class="hint">${r.keys.split(` `).map(e=>n`<kbd>${e}</kbd> `)}</span>`:r.hint?n`<bdi class="hint cut">${r.hint}</bdi>`:u}</div>`)}
        ${e.length?u:n`<div class="none">${N.command.none}</div>`}</div>
    </dialog>`}updated(){this.renderRoot.querySelector(`[aria-selected="true"]`)?.scrollIntoView({block:`nearest`})}#i(e,t,n){let r={ArrowDown:1,ArrowUp:-1,PageDown:8,PageUp:-8}[e.key];if(r!==void 0)e.preventDefault(),this.at=Math.abs(r)===1?(n+r+t.length)%t.length:Math.max(0,Math.min(t.length-1,n+r));else if(e.key===`Enter`&&!e.isComposing){e.preventDefault();let r=t[n];r&&this.#a(r)}}#a(e){this.#e=null,this.#t?.close(),e.run()}#o};D([c()],Un.prototype,`shown`,void 0),D([c()],Un.prototype,`q`,void 0),D([c()],Un.prototype,`at`,void 0),Un=D([t(`plexus-palette`)],Un);var Wn=d(null);window.addEventListener(`beforeinstallprompt`,e=>{e.preventDefault(),Wn.value=async()=>{Wn.value=null,await e.prompt?.()}}),window.addEventListener(`appinstalled`,()=>{Wn.value=null});var P=v.request;function Gn(e){let{subject:t,type:n}=e;return t?.type!==`question`||e.observe_only||(n===`pick`||n===`prompt`)&&t.questions.length===1&&t.questions[0]?.id===`answer`?[]:t.questions}var Kn={chosen:new Set,words:``,own:!1};function qn(e,t,n,r){let i=e.multiple?new Set(t.chosen):new Set;return r?i.add(n):i.delete(n),{...t,chosen:i,own:e.multiple?t.own:!1}}var Jn=(e,t,n)=>({...t,own:n,chosen:n&&!e.multiple?new Set:t.chosen}),Yn=(e,t)=>e.free_text&&(t.own||e.options.length===0);function Xn(e,t){let n=e.options.map(e=>e.id).filter(e=>t.chosen.has(e)),r=Yn(e,t)?t.words.trim():``;return r?[...n,r]:n}function Zn(e,t){let n=Xn(e,t);if(Yn(e,t)&&t.words.trim()===``&&(!e.optional||t.own))return P.questions.wantsWords;if(n.length===0)return e.optional?``:P.questions.wantsOne;let{number:r,least:i,most:a}=e.fits??{},o=e=>i!==void 0&&e<i,s=e=>a!==void 0&&e>a;if(e.multiple){if(o(n.length))return P.questions.atLeast(i);if(s(n.length))return P.questions.atMost(a)}else if(Yn(e,t)){let e=t.words.trim();if(r){let t=Number(e);if(!Number.isFinite(t))return P.questions.aNumber;if(r===`integer`&&!Number.isInteger(t))return P.questions.aWhole;if(o(t))return P.questions.from(i);if(s(t))return P.questions.upTo(a)}else{if(o([...e].length))return P.questions.longer(i);if(s([...e].length))return P.questions.shorter(a)}}return``}function Qn(e,t){let n=Object.create(null);for(let r of e){let e=t.get(r.id)??Kn,i=Zn(r,e);if(i)return{question:r,words:i};let a=Xn(r,e);a.length&&(n[r.id]=a)}return{answers:n}}var $n=e=>h(e.header||e.text),er=e=>e.risk??(e.danger?`danger`:`elevated`),tr={low:0,elevated:1,danger:2},nr=(e,t)=>!t||tr[e]<=tr[t],rr=e=>e.kind!==`reject_once`&&e.kind!==`reject_always`,F=v.request,ir={allow_always:0,reject_always:1,other:2,reject_once:3,allow_once:4},ar=e=>e.toLowerCase().replace(/[^a-z]/g,``);function or(e){let t=h(e.label)||e.id,n=F.verbs[e.kind];return{id:`option:${e.id}`,verb:n??`“${t}”`,quoted:n&&ar(t)!==ar(n)?t:``,sense:rr(e)?`allow`:`deny`,key:``,always:e.kind===`allow_always`||e.kind===`reject_always`,answer:{option_id:e.id}}}var I=(e,t,n,r)=>({id:e,verb:t,quoted:``,sense:n,key:``,always:!1,answer:r});function sr(e){if(e.observe_only)return[];if(Gn(e).length)return[I(`none`,F.noAnswer,`deny`,{answers:{}}),I(`send`,F.sendAnswers,`allow`,{})];if(e.options.length>0){let t=e=>ir[e.kind]??2;return e.options.map((e,t)=>({offer:e,n:t})).sort((e,n)=>t(e.offer)-t(n.offer)||e.n-n.n).map(({offer:e})=>or(e))}switch(e.type){case`pick`:return[I(`none`,F.chooseNothing,`deny`,{ids:[]}),I(`send`,F.sendChoice,`allow`,{})];case`prompt`:return[I(`none`,F.noAnswer,`deny`,{value:null}),I(`send`,F.sendAnswer,`allow`,{})];case`confirm`:case`permission`:return[I(`deny`,F.deny,`deny`,{ok:!1}),I(`allow`,F.allow,`allow`,{ok:!0})];default:return[]}}function cr(e){let t=sr(e),n=(e,n)=>{let r=t.find(e=>e.key===``&&n(e));r&&(r.key=e)},r=t=>e.options.find(e=>`option:${e.id}`===t.id)?.kind;return n(`d`,e=>e.sense===`deny`&&!e.always),n(`a`,t=>e.options.length>0?r(t)===`allow_once`:t.sense===`allow`),n(`A`,e=>r(e)===`allow_always`),t}var lr=e=>e.options.filter(e=>e.kind===`allow_always`),ur=e=>e.allow_remember&&!e.observe_only&&!e.options.some(e=>e.kind===`allow_always`||e.kind===`reject_always`),dr=v.common,fr=1e3,pr=60*fr,mr=60*pr,hr=24*mr;function gr(e){let t=Math.max(0,e);return t<pr?dr.seconds(Math.round(t/fr)):t<mr?dr.minutes(Math.floor(t/pr)):t<2*hr?dr.hours(Math.floor(t/mr)):dr.days(Math.floor(t/hr))}function _r(e,t){let n=e?Date.parse(e):NaN;if(Number.isNaN(n))return dr.justNow;let r=t-n;return r<2*fr?dr.justNow:dr.ago(gr(r))}var vr=v.request;function yr(){let e=crypto.getRandomValues(new Uint8Array(16));return`web-${Array.from(e,e=>e.toString(16).padStart(2,`0`)).join(``)}`}var br=e=>typeof e==`object`&&!!e&&`resolved_by`in e&&`state`in e;function xr({status:e,body:t}){if(e>=200&&e<300)return br(t)?t.won===!1?{is:`lost`,receipt:t}:{is:`won`,receipt:t}:{is:`unknown`};let n=typeof t==`object`&&t?t:{},r=typeof n.code==`string`?n.code:``;return e===409&&r===`already_resolved`&&br(t)?{is:`lost`,receipt:t}:e===410?{is:`closed`,receipt:br(t)?t:null,words:h(n.detail)||vr.gone}:r?{is:`refused`,code:r,words:vr.refusals[r]??vr.refused(h(n.detail??n.title)||String(e))}:{is:`unknown`}}var Sr=class{constructor(e,t,n){this.request=e,this.post=n,this.key=yr(),this.answer=e.digest?{...t,digest:e.digest}:t}async send(){try{return xr(await this.post(this.request.request_id,this.answer,this.key))}catch{return{is:`unknown`}}}},Cr=2,wr=class{#e;#t=null;constructor(e){this.#e=e}again(e){this.#e=e}seen(e,t){let n=this.#t,r=!n||Math.abs(n.top-e.top)>=Cr||Math.abs(n.left-e.left)>=Cr;return r&&(this.#t=e,this.again(t)),r}armed(e){return e-this.#e>=400}},Tr=s`
  :host { display: block; min-width: 0; container-type: inline-size; scroll-margin: 72px 0 16px; }
  :host([hidden]) { display: none; }
  article {
    box-sizing: border-box; display: flex; flex-direction: column; background: var(--bg-raised); border: 1px solid var(--line);
    border-radius: var(--r-l); overflow: clip; position: relative; min-block-size: 0;
  }
  article::before { content: ''; position: absolute; inset: 0 auto 0 0; inline-size: 4px; background: var(--risk); }
  article[data-risk='low'] { --risk: var(--ok); --risk-bg: var(--ok-wash); }
  article[data-risk='elevated'] { --risk: var(--warn); --risk-bg: var(--warn-wash); }
  article[data-risk='danger'] { --risk: var(--danger); --risk-bg: var(--danger-wash); }
  article[data-status='closed'] { --risk: var(--line); }
  article:focus-visible { outline: var(--focus); outline-offset: 2px; }
  .body { padding: 14px 16px 4px 20px; display: flex; flex-direction: column; gap: 12px; min-block-size: 0; min-inline-size: 0; }
  :host([layout='dock']) article, :host([layout='solo']) article { max-block-size: inherit; }
  :host([layout='dock']), :host([layout='solo']) { display: flex; flex-direction: column; min-block-size: 0; }
  :host([layout='dock']) .body, :host([layout='solo']) .body { overflow-y: auto; overscroll-behavior: contain; flex: 0 1 auto; }
  :host([layout='dock']) .actions, :host([layout='solo']) .actions { border-block-start: 1px solid var(--line); }
  :host([layout='dock']) .actions, :host([layout='solo']) .actions { flex: none; }

  header { display: grid; gap: 6px; min-inline-size: 0; }
  .line1 { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 10px; }
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
  .line2 { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: var(--t-m); color: var(--fg-mute); min-inline-size: 0; }
  .line2 > * { overflow-wrap: anywhere; min-inline-size: 0; }
  .line2 a { color: var(--accent); text-decoration-line: underline; text-decoration-thickness: 1px; text-underline-offset: 2px; }
  .line2 code { font-family: var(--mono); font-size: var(--t-s); }
  .lookers::before { content: '●'; color: var(--ok); margin-inline-end: 5px; font-size: 0.625rem; vertical-align: 1px; }
  h2 { margin: 0 0 5px; font-size: var(--t-s); font-weight: 600; color: var(--fg-mute); }
  h2 small { font-weight: 400; font-size: inherit; }

  .warnings { border: 1px solid var(--warn-line); background: var(--warn-wash); color: var(--warn); border-radius: var(--r-s); padding: 8px 12px; font-size: var(--t-m); }
  .warnings h2 { color: inherit; font-weight: 650; margin: 0; }
  .warnings ul { margin: 2px 0 0; padding-inline-start: 1.2em; list-style: disc; }
  .warnings li { overflow-wrap: anywhere; }

  .changed { border-color: var(--danger-line); background: var(--danger-wash); color: var(--danger); }
  .changed .tool { color: inherit; font-weight: 650; text-decoration-line: underline; text-underline-offset: 2px; padding-inline: 0; }
  .why { margin: 0; font-size: var(--t-m); color: var(--fg-soft); overflow-wrap: anywhere; }
  .why strong { color: var(--risk); font-weight: 650; }
  article[data-status='closed'] .why strong { color: inherit; }
  .unreadable { margin: 0 0 6px; color: var(--danger); font-size: var(--t-m); font-weight: 600; }

  blockquote { margin: 0; padding: 2px 0 2px 12px; border-inline-start: 3px solid var(--info); font-size: var(--t-m); min-inline-size: 0; }
  blockquote h2 { color: var(--info); margin: 0 0 2px; }
  section.agents { border-inline-start: 3px solid var(--info); padding-inline-start: 12px; }
  section.agents > h2 { color: var(--info); }
  .said { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
  .said + .said { margin-block-start: 4px; }
  .more { border: 0; background: none; padding: 0; min-block-size: 44px; color: var(--accent); font: inherit; cursor: pointer; }
  .always { font-size: var(--t-m); color: var(--fg-mute); }
  .always ul { margin: 2px 0 0; padding-inline-start: 1.2em; color: var(--fg); }

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

  .actions { padding: 10px 16px 12px 20px; display: flex; flex-direction: column; gap: 8px; box-sizing: border-box; background: var(--bg-raised); }
  .tools { display: flex; flex-wrap: wrap; gap: 0 4px; align-items: center; margin-inline-start: -10px; }
  .tool { border: 0; background: none; min-block-size: 44px; padding: 6px 10px; color: var(--accent); font: inherit; font-size: var(--t-m); cursor: pointer; border-radius: var(--r-s); }
  @media (hover: hover) { .tool:hover { background: var(--bg-sunken); } }
  .box { display: inline-flex; align-items: center; gap: 8px; min-block-size: 44px; padding: 0 10px; cursor: pointer; font-size: var(--t-m); }
  .box input { inline-size: 20px; block-size: 20px; margin: 0; accent-color: var(--accent); }
  .answers { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 8px; }
  .answers > .whole { grid-column: 1 / -1; }
  @container (min-width: 620px) {
    .answers { display: flex; flex-wrap: wrap; justify-content: flex-end; }
    .answers > .answer, .answers > plexus-hold { flex: 0 1 auto; min-inline-size: 9.5rem; max-inline-size: 24rem; }
  }
  button.answer {
    position: relative; min-block-size: 52px; padding: 8px 14px; border: 1.5px solid var(--line); border-radius: var(--r-s); background: var(--bg-raised); color: var(--fg);
    font: inherit; cursor: pointer; touch-action: manipulation; display: flex; flex-direction: column; align-items: center; justify-content: center; gap: 1px; white-space: normal;
    -webkit-tap-highlight-color: transparent; transition: border-color 120ms, background-color 120ms, opacity 120ms;
  }
  button.answer strong { font-weight: 650; }
  button.answer small { font-size: var(--t-xs); color: var(--fg-mute); overflow-wrap: anywhere; max-inline-size: 100%; }
  button.answer[data-sense='allow'] { border-color: color-mix(in srgb, var(--ok) 65%, var(--line)); }
  button.answer[data-sense='allow'] strong { color: var(--ok); }
  button.answer[data-sense='deny'] { border-color: color-mix(in srgb, var(--danger) 50%, var(--line)); }
  button.answer[data-sense='deny'] strong { color: var(--danger); }
  @media (hover: hover) {
    button.answer[data-sense='allow']:hover:not([aria-disabled='true']) { background: var(--add-bg); }
    button.answer[data-sense='deny']:hover:not([aria-disabled='true']) { background: var(--del-bg); }
  }
  button[aria-disabled='true'] { cursor: not-allowed; opacity: 0.55; }
  .actions[data-arming='true'] .answers { opacity: 0.6; }
  kbd { font: 600 0.6875rem/1 var(--mono); color: var(--fg-mute); border: 1px solid var(--line); border-radius: 4px; padding: 2px 4px; }
  button.answer kbd { margin-inline-start: 8px; vertical-align: 1px; }
  @media (hover: none), (max-width: 640px) { kbd { display: none; } }
  .word { display: flex; gap: 8px; align-items: end; flex-wrap: wrap; }
  .word .field { flex: 1 1 10rem; }
  .say { margin: 0; min-block-size: 1.45em; font-size: var(--t-m); color: var(--fg-mute); overflow-wrap: anywhere; }
  @container (max-width: 619px) { .say { min-block-size: 2.9em; } }
  .say[data-bad] { color: var(--danger); }

  .outcome { display: flex; gap: 12px; align-items: center; flex: 1; min-block-size: 0; }
  .outcome svg { flex: none; inline-size: 28px; block-size: 28px; color: var(--fg-mute); }
  .outcome[data-sense='allow'] svg, .outcome[data-sense='allow'] strong { color: var(--ok); }
  .outcome[data-sense='deny'] svg, .outcome[data-sense='deny'] strong { color: var(--danger); }
  .outcome div { min-inline-size: 0; overflow-wrap: anywhere; }
  .outcome strong { font-weight: 650; }
  .outcome p { margin: 2px 0 0; font-size: var(--t-m); color: var(--fg-mute); display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
  .sr { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  :host([leaving]) article { opacity: 0; transition: opacity 260ms; }
  @media (prefers-reduced-motion: reduce) { *, :host([leaving]) article { transition: none !important; } }
  @media (forced-colors: active) { article::before { background: CanvasText; } .actions[data-arming='true'] .answers { opacity: 1; } }
`,Er=400;function Dr(e,t){let n=e.split(`
`),r=t.split(`
`),i=a(n,r,{maxEditLength:Er});return i?i.flatMap(e=>e.value.map(t=>({kind:e.added?`add`:e.removed?`del`:`same`,text:t}))):[...n.map(e=>({kind:`del`,text:e})),...r.map(e=>({kind:`add`,text:e}))]}var Or=16,kr=1600,Ar=8,jr=800,Mr=2e3,Nr=100;function Pr(e){let t=1;for(let n=e.indexOf(`
`);n>=0;n=e.indexOf(`
`,n+1))t+=1;return{lines:t,chars:e.length,long:t>Or||e.length>kr}}function Fr(e){let t=e.split(`
`,Ar).join(`
`);return t.length>jr?t.slice(0,jr):t}function Ir(e){return/^(edit|write) ./.test(e[0]??``)?e.length>1&&e.slice(1).every(e=>/^([-+ \\]|@@ |edit .|write .)/.test(e)):!1}function Lr(e){switch(e[0]){case`+`:return`add`;case`-`:return`del`;case` `:return`same`;case`@`:return`hunk`;case`\\`:return`where`;default:return`head`}}var Rr=/\\u\{[0-9a-f]{1,6}\}/g;function zr(e){let t=[],n=0;for(let r of e.matchAll(Rr))r.index>n&&t.push({text:e.slice(n,r.index),mark:!1}),t.push({text:r[0],mark:!0}),n=r.index+r[0].length;return(n<e.length||t.length===0)&&t.push({text:e.slice(n),mark:!1}),t}function Br(e,t){let n=Math.min(e.length,t+Mr);if(n===e.length)return n;let r=e.lastIndexOf(`\\u{`,n);r>t&&r>n-10&&!e.slice(r,n).includes(`}`)&&(n=r);let i=e.charCodeAt(n-1);return i>=55296&&i<=56319&&--n,n}function Vr(e,t){let n=e.split(`
`),r=t??Ir(n),i=[[]];return n.forEach((e,t)=>{let a=`plain`;r?a=Lr(e):t>0&&t===n.length-1&&e.startsWith(`in `)&&(a=`where`);let o=0;do{let r=Br(e,o),s=i[i.length-1];s.length>=Nr&&i.push(s=[]),s.push({kind:a,parts:zr(e.slice(o,r)),goesOn:o>0,ends:r===e.length&&t<n.length-1}),o=r}while(o<e.length)}),i}var Hr=v.request,Ur=e=>n`<span class="line ${e.kind}" ?data-on=${e.goesOn}>${e.parts.map(e=>e.mark?n`<mark>${e.text}</mark>`:e.text)}${e.ends?`
`:``}</span>`,Wr=class extends f{static{this.properties={display:{},truncated:{type:Boolean},bytes:{type:Number},edit:{attribute:!1},opened:{type:Boolean,reflect:!0},long:{type:Boolean,reflect:!0}}}#e;#t;#n;#r;#i;constructor(){super(),this.#e=!1,this.#t={lines:0,chars:0,long:!1},this.#n=[],this.#i=!1,this.open=()=>{!this.long||this.opened||this.#e||(this.truncated?(this.#e=!0,this.requestUpdate(),this.dispatchEvent(new Event(`whole`))):(this.opened=!0,this.dispatchEvent(new Event(`opened`)),this.updateComplete.then(()=>this.renderRoot.querySelector(`pre`)?.focus({preventScroll:!0}))))},this.display=``,this.truncated=!1,this.opened=!1,this.long=!1}static{this.styles=[...[f.styles].flat(),s`
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
    `]}willUpdate(e){(e.has(`display`)||e.has(`truncated`))&&(this.#t=Pr(this.display),this.long=this.#t.long||this.truncated,this.opened=this.#e&&!this.truncated,this.truncated||(this.#e=!1),this.#i=!1),(e.has(`display`)||e.has(`truncated`)||e.has(`opened`)||e.has(`edit`))&&(this.#n=Vr(this.long&&!this.opened?Fr(this.display):this.display,this.edit))}render(){let e=!this.long||this.opened;return n`<div class="box">
      <div class="cut">
        <pre tabindex=${this.long&&this.opened?0:u} role=${this.long&&this.opened?`group`:u} aria-label=${this.long&&this.opened?Hr.exactly:u}>${this.#n.map(e=>n`<span class="block">${e.map(Ur)}</span>`)}${e?n`<span class="end"></span>`:u}</pre>
      </div>
      ${e?this.long?n`<div class="foot">${this.#i?Hr.readAll:Hr.readOn}</div>`:u:n`<button class="open" type="button" aria-disabled=${this.#e?`true`:u} @click=${this.open}>${this.#e?Hr.fetching:this.truncated?Hr.openWhole(this.bytes??0):Hr.openFull(this.#t.lines,this.#t.chars)}</button>`}
    </div>`}failed(){this.#e=!1,this.requestUpdate()}updated(){let e=this.renderRoot.querySelector(`.end`);this.#r?.disconnect(),!e||this.#i||(this.#r=new IntersectionObserver(e=>{e.some(e=>e.isIntersecting)&&(this.#r?.disconnect(),this.#i=!0,this.requestUpdate(),this.dispatchEvent(new Event(`read`)))}),this.#r.observe(e))}connectedCallback(){super.connectedCallback(),this.requestUpdate()}disconnectedCallback(){super.disconnectedCallback(),this.#r?.disconnect()}};customElements.define(`plexus-exact`,Wr);var Gr=v.request,Kr=24,qr=class extends o{static{this.properties={verb:{},quoted:{},hint:{},off:{type:Boolean,reflect:!0},holding:{type:Boolean,reflect:!0}}}#e;#t;#n;constructor(){super(),this.may=()=>!0,this.still=()=>!0,this.#e=0,this.#t=0,this.#n=null,this.#r=e=>{e.button===0&&e.isPrimary&&(this.#n={x:e.clientX,y:e.clientY},this.begin())},this.#i=e=>{this.#n&&Math.hypot(e.clientX-this.#n.x,e.clientY-this.#n.y)>Kr&&this.stop()},this.#a=e=>{e.key===`Enter`?(e.preventDefault(),this.dispatchEvent(new Event(`enter`))):e.key===` `&&(e.preventDefault(),e.repeat||this.begin())},this.stop=()=>{this.holding&&(this.#o(),this.dispatchEvent(new Event(`hold-released`)))},this.verb=``,this.quoted=``,this.hint=``,this.off=!1,this.holding=!1}static{this.styles=s`
    :host { display: block; min-width: 0; }
    button {
      position: relative; overflow: hidden; inline-size: 100%; block-size: 100%; min-block-size: 52px; padding: 8px 14px;
      border: 1.5px solid var(--danger); border-radius: var(--r-s); background: var(--bg-raised); color: var(--danger);
      font: inherit; cursor: pointer; touch-action: pan-y; user-select: none; -webkit-user-select: none; -webkit-touch-callout: none;
      -webkit-tap-highlight-color: transparent; display: flex; flex-direction: column; align-items: center; justify-content: center; gap: 1px;
    }
    :host([off]) button { cursor: not-allowed; opacity: 0.55; }
    button:focus-visible { outline: var(--focus); outline-offset: 2px; }
    .fill { position: absolute; inset: 0; background: var(--danger); opacity: 0.28; transform: scaleX(0); transform-origin: 0 50%; pointer-events: none; }
    /* Both words have their place all the time: a button that shrinks under the finger would move. */
    strong { font-weight: 650; position: relative; display: grid; align-items: center; }
    strong span { grid-area: 1 / 1; }
    [data-off] { visibility: hidden; }
    small { position: relative; font-size: var(--t-xs); max-inline-size: 100%; overflow-wrap: anywhere; }
    :host(:not([holding])) .fill { transition: transform 160ms ease-out; }
    @media (prefers-reduced-motion: reduce) { .fill { transition: none !important; } }
    @media (forced-colors: active) { .fill { background: Highlight; opacity: 0.5; } }
  `}render(){return n`<button
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
      <strong><span ?data-off=${this.holding}>${Gr.holdFor(this.verb)}</span><span ?data-off=${!this.holding}>${Gr.holding}</span></strong>
      ${this.quoted?n`<small>“<bdi>${this.quoted}</bdi>”</small>`:null}
    </button>`}focus(e){this.renderRoot.querySelector(`button`)?.focus(e)}disconnectedCallback(){super.disconnectedCallback(),this.stop()}#r;#i;#a;begin(){if(this.holding||!this.may())return;this.holding=!0,this.#e=performance.now(),this.dispatchEvent(new Event(`hold-start`));let e=t=>{if(!this.holding)return;if(!this.still())return this.stop();let n=Math.min(1,(t-this.#e)/900);this.#s(n),n<1?this.#t=requestAnimationFrame(e):(this.#o(),this.dispatchEvent(new Event(`hold-done`)))};this.#t=requestAnimationFrame(e)}#o(){cancelAnimationFrame(this.#t),this.holding=!1,this.#n=null,this.#s(0)}#s(e){let t=this.renderRoot.querySelector(`.fill`);t&&(t.style.transform=`scaleX(${e})`)}};customElements.define(`plexus-hold`,qr);var Jr=/^[aAdDeo1-9]$/;function Yr(){let e=document.activeElement;for(;e?.shadowRoot?.activeElement;)e=e.shadowRoot.activeElement;return e}function Xr(e){let t=e;for(;t;){if(t instanceof HTMLElement&&t.localName===`plexus-card`)return t;t=t.parentNode instanceof ShadowRoot?t.parentNode.host:t.parentNode}return null}var Zr=new Set,Qr=null;function $r(e){return Zr.add(e),()=>Zr.delete(e)}function ei(e){return e instanceof HTMLElement?e instanceof HTMLInputElement?![`checkbox`,`radio`,`button`].includes(e.type):e instanceof HTMLTextAreaElement||e instanceof HTMLSelectElement||e.isContentEditable:!1}function ti(e){let t=e.getBoundingClientRect();return!e.open||t.width===0||t.height===0?!1:e.checkVisibility?.({visibilityProperty:!0,contentVisibilityAuto:!0})??!0}function ni(e){return!e||e===document.body||e.matches(`main, h1, h2, [tabindex="-1"]`)}function ri(){return document.querySelector(`dialog:modal`)!==null||Yr()?.closest(`dialog, [role="dialog"]`)!=null}document.addEventListener(`keydown`,e=>{if(e.defaultPrevented||e.ctrlKey||e.metaKey||e.altKey||e.isComposing||!Jr.test(e.key)||ei(e.composedPath()[0])||ri())return;let t=Yr(),n=Xr(t);if(n){n.key(e)&&(Qr=n,e.preventDefault());return}if(e.repeat||!ni(t))return;let r=[...Zr].filter(ti).sort((e,t)=>e.getBoundingClientRect().top-t.getBoundingClientRect().top)[0];r&&(r.choose(),e.preventDefault())});function ii(){Qr?.keyUp(),Qr=null}document.addEventListener(`keyup`,ii),window.addEventListener(`blur`,ii);var L=v.request,ai={allow_once:[L.allowed,`allow`],allow_always:[L.allowedAlways,`allow`],reject_once:[L.denied,`deny`],reject_always:[L.deniedAlways,`deny`]};function oi(e,t){let n=t.options.find(t=>t.id===e.option_id),r=n&&ai[n.kind];if(r)return r;if(n)return[L.answeredWith(h(n.label)),`none`];if(e.ids?.length){let n=e.ids.map(e=>h(t.items?.find(t=>t.id===e)?.label??e));return[L.chosen(n.join(`, `)),`none`]}return t.type===`prompt`||t.type===`pick`?e.ok===!1?[L.cancelled,`none`]:[L.answered,`none`]:typeof e.ok==`boolean`?e.ok?[L.allowed,`allow`]:[L.denied,`deny`]:[L.answered,`none`]}function si(e,t,n){let r=e.resolved_by,i=h(r?.name)||h(r?.device_id),{edited_display:a,edited:o}=e,s=a??(typeof o==`string`?o:``),c=n&&r?.device_id===n?L.you(i):i,ee={sense:`none`,at:e.at??null,reason:h(e.reason),edited:h(s)};switch(e.state){case`answered`:{let[n,r]=oi(e,t);return{...ee,text:`${n}${o?L.edited:``}${c?L.by(c):``}`,sense:r}}case`expired`:return{...ee,text:L.expired};case`withdrawn`:return{...ee,text:r&&r.device_id!==`gateway`&&i?L.withdrawnBy(c):L.withdrawn};case`orphaned`:return{...ee,text:L.orphaned};default:return{...ee,text:L.gone}}}var R=v.request,ci=12e3,li=[1500,3e3,6e3,12e3],ui=600,di=6,fi=6e4,pi=2e3,mi={low:`check`,elevated:`warn`,danger:`danger`};async function hi(e,t,n){try{let r=`/v1/requests/${encodeURIComponent(e)}/answer`;return{status:200,body:await x.json(`POST`,r,t,{headers:{"Idempotency-Key":n},patience:ci})}}catch(e){if(e instanceof y&&e.status>0)return{status:e.status,body:e.problem};throw e}}var gi=e=>(e.risk_reasons??[]).map(e=>h(e)).filter(e=>e!==``),_i=class extends f{static{this.properties={request:{attribute:!1},layout:{reflect:!0},status:{state:!0},position:{type:Number}}}#e;#t;#n;#r;#i;#a;#o;#s;#c;#l;#u;#d;#f;#p;#m;#h;#g;#_;#v;#y;#b;#x;#S;#C;#w;#T;#E;constructor(){super(),this.#e=new wr(performance.now()),this.#n=!1,this.#r=null,this.#i=null,this.#a=0,this.#s=!1,this.#c=null,this.#l=!1,this.#u=``,this.#d=null,this.#f=``,this.#p=!1,this.#m=!1,this.#h=!1,this.#g=``,this.#_=null,this.#v=!1,this.#y=new Set,this.#b=new Map,this.#x=!1,this.#S=null,this.#C=!1,this.#w=()=>{},this.#T=!1,this.#E=``,this.closedAt=0,this.#A=()=>{this.#e.again(performance.now()),this.#M()},this.#j=()=>{if(!this.isConnected||!this.open)return;let e=this.renderRoot.querySelector(`.answers`);if(!e)return;let{top:t,left:n}=e.getBoundingClientRect();this.#e.seen({top:t,left:n},performance.now()),this.#M()},this.#K=()=>{this.status===`unknown`&&this.isConnected&&(this.#L(R.unknownAsking),this.#U())},this.#J=(e,t)=>{e.key===`Enter`&&t.sense!==`deny`&&(e.preventDefault(),this.#L(R.enterNever,!0))},this.#Y=e=>{e.key===`Enter`&&!e.isComposing&&e.preventDefault(),e.key===`Escape`&&this.focus()},this.#$=async e=>{let t=e.currentTarget,n=await T.reread(this.#D.request_id);(!n||n.display_truncated)&&(t.failed(),this.#L(R.notFetched,!0))},this.#te=()=>{if(!this.#n)return this.#L(R.readFirst,!0);if(!this.#e.armed(performance.now()))return this.#L(R.early,!0);this.#x=!1,this.#L(``),this.#A()},this.#ne=()=>{this.#n=!0,(this.#f===R.readFirst||this.#f===R.seeFirst)&&this.#L(``),this.requestUpdate()},this.layout=`inline`,this.position=0,this.status=`open`}static{this.styles=[...[f.styles].flat(),Tr]}get#D(){return T.requests.value.get(this.request.request_id)??this.request}get open(){return this.status!==`closed`}connectedCallback(){super.connectedCallback(),this.#e.again(performance.now()),this.#t=setInterval(this.#j,80),this.#w=$r(this),document.addEventListener(`visibilitychange`,this.#A),window.addEventListener(`focus`,this.#A),window.addEventListener(`online`,this.#K)}disconnectedCallback(){super.disconnectedCallback(),this.#w(),clearInterval(this.#t),clearTimeout(this.#o),document.removeEventListener(`visibilitychange`,this.#A),window.removeEventListener(`focus`,this.#A),window.removeEventListener(`online`,this.#K)}willUpdate(e){let t=this.#D,n=this.#r;this.#r=t,n&&n.request_id!==t.request_id?this.#O():n&&t.state===`open`&&et(n,t)&&(this.#O(),this.#x=!0,this.#L(R.changedSince,!0)),this.status!==`closed`&&t.state!==`open`&&this.#k(t.receipt??null),e.has(`status`)&&this.status===`open`&&this.#e.again(performance.now())}#O(){this.#n=!1,this.#i=null,clearTimeout(this.#o),this.#c=null,this.#l=!1,this.#d=null,this.#_=null,this.#g=``,this.#h=!1,this.#v=!1,this.#y.clear(),this.#b.clear(),this.#x=!1,this.#S=null,this.#E=``,this.#T=!1,this.#f=``,this.#p=!1,this.closedAt=0,this.status=`open`,this.#e.again(performance.now())}#k(e,t=``){if(this.status===`closed`)return;let n=this.renderRoot?.querySelector(`.actions`),r=this.renderRoot?.querySelector(`article`);n&&r&&(this.#d={host:r.getBoundingClientRect().height,actions:n.getBoundingClientRect().height}),this.renderRoot?.querySelectorAll(`plexus-hold`).forEach(e=>e.stop()),clearTimeout(this.#o);let i=this.shadowRoot?.activeElement;i&&n?.contains(i)&&r?.focus({preventScroll:!0}),this.#c=e,this.#u=t,this.closedAt=Date.now(),this.status=`closed`,this.dispatchEvent(new CustomEvent(`closed`,{bubbles:!0,composed:!0}))}updated(){let e=this.renderRoot.querySelector(`article`),t=this.renderRoot.querySelector(`.actions`);if(e&&t){e.style.blockSize=this.#d?`${this.#d.host}px`:``,t.style.blockSize=this.#d?`${this.#d.actions}px`:``,t.style.marginBlockStart=this.#d?`auto`:``;for(let e of this.renderRoot.querySelectorAll(`plexus-hold`)){let t=cr(this.#D).find(t=>t.id===e.dataset.action);e.may=()=>t!==void 0&&this.#I(t),e.still=()=>this.open&&this.#e.armed(performance.now())}this.#j()}}#A;#j;#M(){let e=this.renderRoot.querySelector(`.actions`),t=String(this.open&&!this.#e.armed(performance.now()));e&&e.dataset.arming!==t&&(e.dataset.arming=t)}#N(){let e=this.#D,t=T.me.value;if(e.observe_only)return R.observeOnly(h(e.runtime_id)||R.runtimeUnknown);if(!T.may(`approve`))return R.mayNot;let n=er(e);return nr(n,t?.approve_up_to)?T.live.value?``:R.offline:R.tooRisky(this.#P(t.approve_up_to),this.#P(n),gi(e).join(`; `),(t?.answered_on?.[n]??[]).map(h))}#P(e){return(R.risks[e]??e).toLowerCase()}#F(e){return this.status===`sending`?R.sending:this.status===`unknown`?R.unknown:this.#N()||(e.sense===`allow`?e.always&&T.me.value?.approve_up_to&&T.me.value.approve_up_to!==`danger`?R.alwaysTooMuch:e.always&&this.#z?R.editedOnce:this.#D.display_truncated?R.readFirst:this.#n?this.#x?R.changedSince:``:Pr(this.#D.display).long?R.readFirst:R.seeFirst:``)}#I(e){if(!this.open)return!1;let t=this.#F({sense:`deny`,always:!1});this.#j();let n=t||(this.#e.armed(performance.now())?this.#F(e):R.early);return!n||(this.#L(n,!0),!1)}#L(e,t=!1){this.#f=e,this.#p=t,this.requestUpdate()}#R(e,t=!1){if(!this.#I(e))return;if(this.#B(e)&&!t){this.#L(R.holdHint,!0);return}let n=this.#V(e);typeof n==`string`?this.#L(n,!0):this.#H(n)}get#z(){let{editable:e}=this.#D;return e!=null&&this.#_!==null&&this.#_!==e.value}#B(e){return e.sense===`allow`&&er(this.#D)===`danger`}#V(e){let t=this.#D,n={...e.answer},r=Gn(t);if(r.length){if(e.id!==`send`)return n;let t=Qn(r,this.#b);return`answers`in t?{...n,answers:t.answers}:(this.renderRoot.querySelector(`fieldset[data-question="${CSS.escape(t.question.id)}"] input, fieldset[data-question="${CSS.escape(t.question.id)}"] textarea`)?.focus(),r.length>1?`${$n(t.question)}: ${t.words}`:t.words)}if(e.id===`send`&&t.type===`pick`){if(this.#y.size===0)return R.nothingChosen;n.ids=(t.items??[]).map(e=>e.id).filter(e=>this.#y.has(e))}if(e.id===`send`&&t.type===`prompt`){let e=this.#S??t.default_value??``;if(e===``)return R.nothingTyped;n.value=e}let i=this.#g.trim();if(e.sense===`deny`&&t.allow_reason&&i&&(n.reason=i),this.#v&&ur(t)){let t=this.#F({sense:e.sense,always:!0});if(t)return t;n.remember=!0}return e.sense===`allow`&&this.#z&&(n.edited=this.#_??``),n}async#H(e){this.#i=new Sr(this.#D,e,hi),this.#a=0,this.status=`sending`,this.#L(R.sending),await this.#U()}async#U(){let e=this.#i;if(!e||this.#s)return;this.#s=!0,clearTimeout(this.#o);let t=await e.send();this.#s=!1,this.#i===e&&this.#W(t)}#W(e){switch(e.is){case`won`:this.#l=!1,this.#G(e.receipt);break;case`lost`:this.#l=!0,this.#G(e.receipt);break;case`closed`:this.#l=e.receipt!==null,this.open?this.#k(e.receipt,e.words):this.requestUpdate();break;case`refused`:if(!this.open)break;this.#i=null,this.status=`open`,this.#L(e.words,!0),T.reread(this.#D.request_id);break;case`unknown`:if(!this.open)break;this.status=`unknown`,this.#L(R.unknown,!0),this.#o=setTimeout(this.#K,li[Math.min(this.#a,li.length-1)]),this.#a+=1}}#G(e){this.open?this.#k(e):(this.#c=e,this.requestUpdate())}#K;key(e){if(!this.open)return!1;let t=this.#D,n=/^[1-9]$/.test(e.key)?Number(e.key):0;if(n&&t.type===`pick`&&t.items?.length&&!t.options.length){let e=t.items[n-1];return e&&this.#X(e.id,!t.multi||!this.#y.has(e.id)),!!e}let r=cr(t),i=n?r[n-1]:r.find(t=>t.key!==``&&t.key===e.key);if(i)return e.repeat||(this.#B(i)?this.#q(i)?.begin():this.#R(i)),!0;if(e.repeat)return!1;switch(e.key){case`D`:return t.allow_reason?(this.#Z(),!0):!1;case`e`:return t.editable?(this.#Q(),!0):!1;case`o`:return this.renderRoot.querySelector(`plexus-exact`)?.open(),!0;default:return!1}}keyUp(){this.renderRoot.querySelectorAll(`plexus-hold`).forEach(e=>e.stop())}choose(){this.focus(),this.open&&this.#L(R.focusFirst)}focus(){this.renderRoot.querySelector(`article`)?.focus(),this.scrollIntoView({block:`nearest`})}#q(e){return this.renderRoot.querySelector(`plexus-hold[data-action="${CSS.escape(e.id)}"]`)}#J;#Y;#X(e,t){this.#D.multi||this.#y.clear(),t?this.#y.add(e):this.#y.delete(e),this.requestUpdate()}#Z(){this.#h=!this.#h||this.#g!==``,this.requestUpdate(),this.#h&&this.updateComplete.then(()=>this.renderRoot.querySelector(`.reason`)?.focus())}#Q(){let e=this.#D.editable;e&&(this.#_=this.#_===null?e.value:null,this.#A(),this.requestUpdate(),this.#_!==null&&this.updateComplete.then(()=>this.renderRoot.querySelector(`.edit`)?.focus()))}render(){let e=this.#D,t=er(e),r=h(e.runtime_id)||R.runtimeUnknown,i=e.type===`prompt`||e.type===`pick`||e.subject?.type===`question`,a=e.subject?.type===`unreadable`;return n`<article
      tabindex="-1"
      aria-label=${R.card(r)}
      data-status=${this.status}
      data-risk=${t}
      data-request=${e.request_id}
      data-type=${e.type}
    >
      <div class="body">
        ${this.#re(e,r)} ${this.#x&&this.open?this.#ee():u}
        <section class=${i?`agents`:``}>
          <h2>${i?R.agentAsks:a?R.asSent:R.exactly} <small>· ${R.exactlyHint}</small></h2>
          ${a?n`<p class="unreadable">${R.unreadable}</p>`:u}
          <plexus-exact .display=${e.display} .truncated=${e.display_truncated??!1} .bytes=${e.display_bytes} .edit=${e.subject?e.subject.type===`edit`:void 0}
            @read=${this.#ne} @opened=${this.#A} @whole=${this.#$}></plexus-exact>
        </section>
        ${e.warnings.length?n`<section class="warnings">
              <h2>${R.warns}</h2>
              <ul>
                ${e.warnings.map(e=>n`<li>${h(e)}</li>`)}
              </ul>
            </section>`:u}
        ${i&&!e.message&&h(e.title)===h(e.display)?u:this.#ae(e)} ${this.#oe(e,r)} ${this.open?this.#se(e):u}
      </div>
      <div class="actions" data-arming="true">${this.status===`closed`?this.#ge(e):this.#de(e)}</div>
    </article>`}#$;#ee(){return n`<section class="warnings changed" role="alert">
      <h2>${R.changedSince}</h2>
      <button type="button" class="tool" data-tool="again" aria-disabled=${this.#n?`false`:`true`} @click=${this.#te}>${R.readAgain}</button>
    </section>`}#te;#ne;#re(e,t){let r=er(e),i=T.sessions.value.get(e.session_id),a=h(i?.title)||R.untitled,o=h(i?.cwd),s=T.lookers.value.get(e.session_id)??[],c=gi(e);return n`<header>
      <div class="line1">
        <span class="risk" title=${R.riskHints[r]??``}>${E(mi[r],14)}${R.risks[r]}</span>
        <span><span class="who">${t}</span> <span class="asks">${R.types[e.type]??``}</span></span>
        ${this.#ie(e)}
      </div>
      <div class="line2">
        <a href=${T.href({page:`session`,session_id:e.session_id})}>${R.session(a)}</a>
        <span>${R.folder} <code>${o||R.folderUnknown}</code></span>
        ${e.changed&&this.open&&!this.#x?n`<span>${R.changedBefore}</span>`:u}
        ${s.length?n`<span class="lookers">${R.lookers(s.map(e=>h(e.name)).join(`, `))}</span>`:u}
      </div>
      ${c.length?n`<p class="why"><strong>${R.why}</strong> ${c.join(`; `)}</p>`:u}
    </header>`}#ie(e){if(!this.open)return u;let t=T.now.value,r=[R.asked(_r(e.opened_at,t))],i=e.expires_at?Date.parse(e.expires_at)-t:NaN;return Number.isNaN(i)||r.push(i>0?R.expiresIn(gr(i)):R.expiring),n`<span class="when" ?data-soon=${i<fi}>${r.join(` · `)}</span>`}#ae(e){let t=h(e.title),r=xe(e.message??``).trim(),i=r.split(`
`,di).join(`
`).slice(0,ui),a=i.length<r.length&&!this.#m;return n`<blockquote>
      <h2>${R.agentSays}</h2>
      <div class="said title">${t||R.noWords}</div>
      ${r&&r!==t?n`<div class="said">${a?`${i}…`:r}</div>`:u}
      ${a?n`<button type="button" class="more" @click=${()=>{this.#m=!0,this.requestUpdate()}}>${v.common.more}</button>`:u}
    </blockquote>`}#oe(e,t){let r=lr(e);if(!r.length)return u;let i=r.map(e=>h(e.label)).filter(e=>!/^(always allow|allow always|always)$/i.test(e)&&e);return n`<section class="always">
      <h2>${R.always}</h2>
      ${i.length?n`${R.alwaysBy(t)}
            <ul>
              ${i.map(e=>n`<li>“<bdi>${e}</bdi>”</li>`)}
            </ul>`:R.alwaysPlain(t)}
    </section>`}#se(e){let t=Gn(e);return t.length?n`${t.map((e,n)=>this.#ce(e,n,t.length))}`:e.observe_only||e.options.length?this.#_!==null&&e.editable?this.#ue(e.editable):u:e.type===`pick`?n`<fieldset>
        <legend>${e.multi?R.chooseAny:R.chooseOne}</legend>
        ${(e.items??[]).map((t,r)=>n`<label class="pick">
            <input
              type=${e.multi?`checkbox`:`radio`}
              name="pick"
              .checked=${this.#y.has(t.id)}
              @change=${e=>this.#X(t.id,e.target.checked)}
              @keydown=${this.#Y}
            />
            <span><bdi>${h(t.label||t.id)}</bdi>${t.detail?n`<small><bdi>${h(t.detail)}</bdi></small>`:u}</span>
            ${r<9?n`<kbd aria-hidden="true">${r+1}</kbd>`:u}
          </label>`)}
      </fieldset>`:e.type===`prompt`?this.#le(e):this.#_!==null&&e.editable?this.#ue(e.editable):u}#ce(e,t,r){let i=this.#b.get(e.id)??Kn,a=t=>{this.#b.set(e.id,t),this.#L(``)},o=e.multiple?`checkbox`:`radio`,s=`question-${t}`,c=t=>a({...i,words:t.target.value,own:!0,chosen:e.multiple?i.chosen:new Set}),ee=i===Kn?``:Zn(e,i),te=h(e.header),l=n`<input
      class="value own" type="text" autocomplete="off" spellcheck="false" inputmode=${e.fits?.number===`integer`?`numeric`:e.fits?.number?`decimal`:`text`}
      aria-label=${R.questions.ownFor($n(e))} aria-describedby=${`${s}-wrong`} .value=${i.words} @input=${c} @keydown=${this.#Y} />`;return n`<fieldset class="question" data-question=${e.id} role=${e.multiple?`group`:`radiogroup`} aria-describedby=${`${s}-wrong`}>
      <legend>${r>1?n`<small>${R.questions.of(t+1,r)}${te?` · `:``}</small>`:u}${te?n`<small><bdi>${te}</bdi></small>`:u}
        <span class="asked"><bdi>${xe(e.text)}</bdi></span>
        <small>${e.options.length?e.multiple?R.chooseAny:R.chooseOne:``}${e.optional?` ${R.questions.optional}`:``}</small></legend>
      ${e.options.map(t=>n`<label class="pick">
        <input type=${o} name=${s} .checked=${i.chosen.has(t.id)} @change=${n=>a(qn(e,i,t.id,n.target.checked))} @keydown=${this.#Y} />
        <span><bdi>${h(t.label||t.id)}</bdi>${t.description?n`<small><bdi>${h(t.description)}</bdi></small>`:u}</span>
      </label>`)}
      ${e.free_text?e.options.length?n`<label class="pick"><input type=${o} name=${s} .checked=${i.own} @change=${t=>a(Jn(e,i,t.target.checked))} @keydown=${this.#Y} /><span>${R.questions.other}</span></label>${l}`:l:u}
      <p class="wrong" id=${`${s}-wrong`} role="status">${ee}</p>
    </fieldset>`}#le(e){let t=this.#S??e.default_value??``,r=e=>{this.#S=e.target.value,this.requestUpdate()},i=e.secret?R.secretField:R.answerField;return n`<div class="field">
      <label for="value">${i}</label>
      <div class="row">
        ${e.multiline&&!e.secret?n`<textarea id="value" class="value" rows="4" autocomplete="off" .value=${t} @input=${r}></textarea>`:n`<input
              id="value"
              class="value"
              type=${e.secret&&!this.#C?`password`:`text`}
              autocomplete=${e.secret?`one-time-code`:`off`}
              autocapitalize="off"
              spellcheck="false"
              .value=${t}
              @input=${r}
              @keydown=${this.#Y}
            />`}
        ${e.secret?n`<button type="button" class="tool" aria-pressed=${this.#C} @click=${()=>{this.#C=!this.#C,this.requestUpdate()}}>
              ${this.#C?R.hideSecret:R.showSecret}
            </button>`:u}
      </div>
    </div>`}#ue(e){let t=this.#_??e.value,r=Dr(e.value,t);return n`<section class="field">
      <label for="edit">${R.editing}: <bdi>${h(e.label)}</bdi></label>
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
      <h2>${R.changes}</h2>
      ${t===e.value?n`<p class="say">${R.noChanges}</p>`:n`<div class="changes" tabindex="0" role="group" aria-label=${R.changes}>
            ${r.map(e=>n`<span class=${e.kind}>${{same:`  `,add:`+ `,del:`- `}[e.kind]}${p(e.text)}</span>`)}
          </div>`}
    </section>`}#de(e){let t=cr(e),r=this.#N(),i=this.#f||(this.status===`open`?r:``)||(this.#n||!t.length||!Pr(e.display).long?``:R.readFirst),a=t.some(e=>this.#B(e));return n`${r?u:this.#fe(e,a)}
      ${this.#h&&e.allow_reason?n`<div class="field">
            <label for="reason">${R.reason}</label>
            <input
              id="reason"
              class="reason"
              type="text"
              maxlength=${pi}
              autocomplete="off"
              .value=${this.#g}
              @input=${e=>{this.#g=e.target.value,this.requestUpdate()}}
              @keydown=${this.#Y}
            />
          </div>`:u}
      ${this.#T&&a&&!r?this.#pe(t):u}
      ${t.length?n`<div class="answers">${t.map((e,n)=>this.#he(e,n,t))}</div>`:u}
      <p class="say" role="status" ?data-bad=${this.#p&&this.#f!==``}>
        ${t.length||e.observe_only?i:R.cannot(e.request_id)}
        ${this.status===`unknown`&&!this.#s?n`<button type="button" class="tool ask" @click=${this.#K}>${R.unknownNow}</button>`:u}
      </p>`}#fe(e,t){let r=[e.editable&&!e.observe_only?n`<button type="button" class="tool" data-tool="edit" aria-expanded=${this.#_!==null} @click=${()=>this.#Q()}>${this.#_===null?R.edit:R.stopEdit}</button>`:null,e.allow_reason&&!e.observe_only?n`<button type="button" class="tool" data-tool="reason" aria-expanded=${this.#h} @click=${()=>this.#Z()}>${R.denyWhy}</button>`:null,ur(e)?n`<label class="box"><input type="checkbox" .checked=${this.#v} @change=${e=>{this.#v=e.target.checked}} @keydown=${this.#Y} />${R.remember}</label>`:null,t?n`<button type="button" class="tool" data-tool="word" aria-expanded=${this.#T} @click=${()=>{this.#T=!this.#T,this.#E=``,this.requestUpdate(),this.#T&&this.updateComplete.then(()=>this.renderRoot.querySelector(`.typed`)?.focus())}}>${R.typeInstead}</button>`:null].filter(e=>e!==null);return r.length?n`<div class="tools">${r}</div>`:u}#pe(e){let t=this.#E.trim().toLowerCase()===R.typeWord,r=e.find(e=>e.key===`a`)??e.find(e=>e.sense===`allow`);return r?n`<div class="word">
      <div class="field">
        <label for="typed">${R.typeLabel}</label>
        <input id="typed" class="typed" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" .value=${this.#E} @input=${e=>{this.#E=e.target.value,this.requestUpdate()}} @keydown=${this.#Y} />
      </div>
      <button
        type="button"
        class="answer typed-go"
        data-sense="allow"
        aria-disabled=${t&&!this.#F(r)?`false`:`true`}
        @keydown=${e=>this.#J(e,r)}
        @click=${()=>t?this.#R(r,!0):this.#L(R.typeLabel,!0)}
      >
        <strong>${this.#me(r)}</strong>
      </button>
    </div>`:n``}#me(e){let t=this.#D;return e.sense===`allow`&&!e.always&&this.#z?R.allowEdited:e.key===`d`&&this.#g.trim()&&t.allow_reason?R.denyNow:e.verb}#he(e,t,r){let i=this.#F(e)!==``,a=r.length<2||t<r.length-2,o=e.key||(t<9?String(t+1):``);return this.#B(e)?n`<plexus-hold
        class=${a?`whole`:``}
        data-action=${e.id}
        data-sense=${e.sense}
        .verb=${this.#me(e)}
        .quoted=${e.quoted}
        .hint=${R.holdHint}
        .off=${i}
        @hold-start=${()=>this.#L(R.holding)}
        @hold-released=${()=>this.open&&this.#L(R.released,!0)}
        @hold-done=${()=>this.#R(e,!0)}
        @enter=${()=>this.#L(R.enterNever,!0)}
      ></plexus-hold>`:n`<button
      type="button"
      class="answer ${a?`whole`:``}"
      data-action=${e.id}
      data-sense=${e.sense}
      data-key=${e.key}
      aria-disabled=${i?`true`:`false`}
      @keydown=${t=>this.#J(t,e)}
      @click=${()=>this.#R(e)}
    >
      <strong>${this.#me(e)}${o?n`<kbd aria-hidden="true">${o}</kbd>`:u}</strong>
      ${e.quoted?n`<small>“<bdi>${e.quoted}</bdi>”</small>`:u}
    </button>`}#ge(e){let t=this.#c;if(!t)return n`<div class="outcome" role="status" data-sense="none">${E(`info`,28)}<div><strong>${this.#u||R.gone}</strong></div></div>`;let r=si(t,e,T.me.value?.device_id);return n`<div class="outcome" role="status" data-sense=${r.sense}>
      ${E({allow:`check`,deny:`close`,none:`info`}[r.sense],28)}
      <div>
        <strong>${r.text}</strong>, <span class="age">${_r(r.at,T.now.value)}</span>
        ${r.edited?n`<p>${R.editedTo} <code>${r.edited}</code></p>`:u} ${r.reason?n`<p>${R.because(r.reason)}</p>`:u} ${this.#l?n`<p class="late">${R.late}</p>`:u}
      </div>
    </div>`}};customElements.define(`plexus-card`,_i);var vi={danger:0,elevated:1,low:2};function yi(e,t){return vi[er(e)]-vi[er(t)]||Date.parse(t.opened_at)-Date.parse(e.opened_at)||(e.request_id<t.request_id?-1:1)}function bi(e,t,n){let r=new Set(t.map(e=>e.request_id)),i=new Set(e.map(e=>e.id)),a=t.filter(e=>!i.has(e.request_id)).sort(yi).map(e=>e.request_id);return n||e.length===0?{order:[...t].sort(yi).map(e=>({id:e.request_id})),added:a}:{order:[...e.filter(e=>r.has(e.id)),...a.map(e=>({id:e}))],added:a}}var xi=v.request,Si=8e3,Ci=4e3,wi=1e3,Ti=25,Ei=260,Di=class extends f{static{this.properties={session:{},layout:{reflect:!0}}}#e=[];#t=new Set;#n=0;#r=!1;#i;#a=new Set;#o=Ti;#s=1/0;#c=new Set;#l=``;#u=!0;#d;constructor(){super(),this.layout=`inline`}static{this.styles=[...[f.styles].flat(),s`
      :host { display: block; position: relative; min-width: 0; }
      .list { display: flex; flex-direction: column; gap: 14px; overflow-anchor: auto; }
      :host([layout='dock']) .list { gap: 8px; max-block-size: inherit; }
      .new { position: sticky; inset-block-end: 12px; display: flex; justify-content: center; pointer-events: none; block-size: 0; z-index: 2; }
      .new button {
        pointer-events: auto; transform: translateY(-100%); min-block-size: 44px; padding: 8px 18px; border-radius: 999px; box-shadow: var(--shadow-2); font-weight: 600;
        background: var(--accent-solid); color: var(--on-accent); border-color: transparent; white-space: nowrap;
      }
      .rest { margin: 14px 0 72px; text-align: center; }
      .rest button { min-block-size: 44px; }
      .new button:hover { background: var(--accent-solid-hover); }
    `]}connectedCallback(){super.connectedCallback(),this.addEventListener(`pointerenter`,this.#f),this.addEventListener(`pointermove`,this.#f),this.addEventListener(`pointerdown`,this.#f),this.addEventListener(`pointerleave`,this.#p),this.#i=setInterval(this.#g,wi),this.#d=new IntersectionObserver(e=>{for(let t of e)t.isIntersecting&&this.#a.delete(t.target.request.request_id);this.requestUpdate()})}disconnectedCallback(){super.disconnectedCallback(),clearInterval(this.#i),this.#d?.disconnect();for(let[e,t]of[[`pointerenter`,this.#f],[`pointermove`,this.#f],[`pointerdown`,this.#f],[`pointerleave`,this.#p]])this.removeEventListener(e,t)}#f=e=>{this.#r=e.pointerType===`mouse`,this.#n=Date.now()};#p=()=>{this.#r=!1};get#m(){return!this.#r&&Date.now()-this.#n>Ci&&!this.matches(`:focus-within`)}#h(){return[...this.renderRoot.querySelectorAll(`plexus-card`)]}#g=()=>{if(!document.hidden&&this.#m)for(let e of this.#h())e.open||e.hasAttribute(`leaving`)||Date.now()-e.closedAt<Si||(e.setAttribute(`leaving`,``),setTimeout(()=>{this.#m?(this.#t.add(e.request.request_id),this.requestUpdate()):e.removeAttribute(`leaving`)},Ei))};#_(){let e=[...T.requests.value.values()].filter(e=>!this.session||e.session_id===this.session),t=new Set(this.#e.map(e=>e.id)),n=e.filter(e=>!this.#t.has(e.request_id)&&(e.state===`open`||t.has(e.request_id))),{order:r,added:i}=bi(this.#e,n,this.#u);if(!this.#u)for(let e of i)this.#a.add(e);T.loaded.value&&(this.#u=!1),this.#e=r;let a=new Set(r.map(e=>e.id));for(let e of this.#a)a.has(e)||this.#a.delete(e);let o=i.length?n.find(e=>e.request_id===i[i.length-1]):void 0;if(o){let e=h(T.sessions.peek().get(o.session_id)?.title)||xi.untitled;this.#l=xi.opened(h(o.runtime_id),e)}let s=new Map(n.map(e=>[e.request_id,e]));return r.map(e=>s.get(e.id)).filter(e=>e!==void 0)}#v(e){let t=0,n=e.filter((e,n)=>e.state===`open`?(t+=1,t<=this.#o||n>=this.#s&&n<this.#s+Ti||this.#c.has(e.request_id)):this.#c.has(e.request_id));return this.#c=new Set(n.map(e=>e.request_id)),n}render(){let e=this.#_(),t=this.#v(e),r=e.filter(e=>e.state===`open`).length-t.filter(e=>e.state===`open`).length;return n`<div class="list" role="list" aria-label=${xi.list}>
        ${te(t,e=>e.request_id,e=>n`<plexus-card role="listitem" .request=${e} .layout=${this.layout}></plexus-card>`)}
      </div>
      ${r>0?n`<p class="rest"><button type="button" @click=${this.#y}>${xi.moreCards(Math.min(Ti,r),r)}</button></p>`:u}
      ${this.#a.size&&this.layout===`inline`?n`<div class="new"><button type="button" @click=${this.#b}>${xi.newOnes(this.#a.size)}</button></div>`:u}
      <div class="sr" role="status" aria-live="assertive">${this.#l}</div>`}updated(){for(let e of this.#h())this.#a.has(e.request.request_id)&&this.#d?.observe(e)}#y=()=>{let e=this.#c;this.#o+=Ti,this.requestUpdate(),this.updateComplete.then(()=>this.#h().find(t=>!e.has(t.request.request_id))?.focus())};#b=async()=>{let e=this.#e.findIndex(e=>this.#a.has(e.id)),t=this.#e[e]?.id;t!==void 0&&!this.#c.has(t)&&(this.#s=e,this.requestUpdate(),await this.updateComplete);let n=this.#h().find(e=>this.#a.has(e.request.request_id));this.#a.clear(),this.requestUpdate(),n?.scrollIntoView({block:`start`}),n?.focus()}};customElements.define(`plexus-requests`,Di);var Oi=v.request,ki=class extends f{static{this.properties={request_id:{},missing:{state:!0}}}#e=``;#t;constructor(){super(),this.request_id=``,this.missing=!1}static{this.styles=[...[f.styles].flat(),s`
      :host { display: flex; flex-direction: column; gap: 12px; min-height: 0; max-inline-size: 760px; inline-size: 100%; margin-inline: auto; }
      plexus-card { max-block-size: var(--solo-height, calc(100dvh - 132px)); }
      @media (max-width: 599px) { plexus-card { max-block-size: var(--solo-height, calc(100dvh - 186px - env(safe-area-inset-bottom))); } }
      p { padding: 32px 8px; text-align: center; color: var(--fg-mute); }
      a { display: inline-flex; align-items: center; min-block-size: 44px; }
    `]}updated(){if(this.#e===this.request_id||!T.live.value||(this.#e=this.request_id,this.missing=!1,T.requests.peek().has(this.request_id)))return;let e=this.request_id;T.reread(e).then(t=>{e===this.request_id&&(this.#t=t??void 0,this.missing=!t,this.requestUpdate())})}render(){let e=T.live.value,t=T.requests.value.get(this.request_id)??(this.#t?.request_id===this.request_id?this.#t:void 0);t&&(this.#t=t);let r=n`<a href=${T.href({page:`inbox`})}>${Oi.toInbox}</a>`;return t?n`<plexus-card layout="solo" .request=${t}></plexus-card>`:n`<p role="status">${this.missing?Oi.notFound:e?Oi.loading:Oi.offline}<br />${r}</p>`}};customElements.define(`plexus-request`,ki);var z=v.shell.inbox,Ai=class extends f{constructor(...e){super(...e),this.request=``,this.#e=!1,this.#t=()=>{}}#e;#t;static{this.styles=[...[f.styles].flat(),Nn,s`
    .page { max-width: 820px; }
    .count { color: var(--fg-mute); font-size: var(--t-s); }
  `]}connectedCallback(){super.connectedCallback();let e=e=>()=>{let t=[...this.renderRoot.querySelector(`plexus-requests`)?.shadowRoot?.querySelectorAll(`plexus-card`)??[]],n=me();for(;n&&!(n instanceof HTMLElement&&n.localName===`plexus-card`);)n=n.parentNode??n.host??null;let r=n?t.indexOf(n):-1,i=t[r<0?e>0?0:t.length-1:Math.max(0,Math.min(t.length-1,r+e))];i?.focus(),i?.scrollIntoView({block:`nearest`})};this.#t=_e([{key:`j`,run:e(1)},{key:`k`,run:e(-1)}])}disconnectedCallback(){super.disconnectedCallback(),this.#t()}render(){let e=[...T.requests.value.values()],t=e.filter(e=>e.state===`open`).length;return t&&(this.#e=!0),e.length||(this.#e=!1),this.request?n`<div class="page"><header><a class="btn ghost" href="#/inbox">${E(`back`)}${z.title}</a><h1 class="sr" tabindex="-1">${z.title}</h1></header><h2 class="sr">${z.open}</h2>
        <plexus-request .request_id=${this.request}></plexus-request></div>`:n`<div class="page">
      <header><h1 tabindex="-1">${z.title}</h1>${t?n`<span class="count" id="count">${z.waits(t)}</span>`:u}</header>
      <h2 class="sr">${z.open}</h2><plexus-requests></plexus-requests>
      ${t||this.#e&&this.#n()?u:T.loaded.value?A(`check`,z.none,z.noneText):An()}
    </div>`}#n(){return T.now.value,this.renderRoot.querySelector(`plexus-requests`)?.shadowRoot?.querySelectorAll(`plexus-card`).length??0}};D([l()],Ai.prototype,`request`,void 0),Ai=D([t(`plexus-inbox`)],Ai);var B=v.shell.sessions,ji=e=>`/v1/sessions/${encodeURIComponent(e.session_id)}`;async function Mi(e){let t=await En(B.renameTitle,B.newName,e.title??``);t?.trim()&&await j(()=>T.http(`PATCH`,ji(e),{title:t.trim()}))}async function Ni(e,t=!e.archived){await j(()=>T.http(`PATCH`,ji(e),{archived:t}).then(()=>!0))&&k(t?B.archived:B.unarchived,{tone:`ok`,act:{label:B.undo,run:()=>void Ni(e,!t)}})}var Pi=e=>{dispatchEvent(new CustomEvent(`plexus-share`,{detail:e.session_id}))};async function Fi(e){if(!await Tn(B.removeTitle,B.removeText,B.removeDo,!0)||!await j(()=>T.http(`DELETE`,ji(e)).then(()=>!0)))return;let t=T.route.peek();t.page===`session`&&t.session_id===e.session_id&&T.go({page:`sessions`})}async function Ii(e,t){let n=await j(async()=>(await T.fetch(`${ji(e)}/export?format=${t}`,{accept:`*/*`})).blob());if(!n)return;let r=document.createElement(`a`);r.href=URL.createObjectURL(n),r.download=`${h(e.title).replace(/[^\p{L}\p{N}_-]+/gu,`-`).slice(0,60)||e.session_id}.${t}`,r.click(),setTimeout(()=>URL.revokeObjectURL(r.href),6e4)}function Li(e){let t=e.state===`running`||e.state===`waiting`,n=T.may(`prompt`),r=[];n&&(r.push({label:B.rename,icon:`pencil`,run:()=>void Mi(e)},{label:e.archived?B.unarchive:B.archive,icon:`archive`,run:()=>void Ni(e)}),t&&r.push({label:B.cancelRun,icon:`stop`,separate:!0,run:()=>void j(()=>T.http(`POST`,`${ji(e)}/cancel`,{}))}),e.state!==`exited`&&r.push({label:B.restartRun,icon:`restart`,separate:!t,run:()=>void j(()=>T.http(`POST`,`${ji(e)}/restart`,{}))})),r.push({label:B.copyLink,icon:`link`,separate:!0,run:()=>void Mn(`${location.origin}/${T.href({page:`session`,session_id:e.session_id})}`)}),T.may(`admin`)&&r.push({label:B.share,icon:`share`,run:()=>Pi(e)});for(let[t,n]of Object.entries(B.exports))r.push({label:B.exportAs(n),icon:`download`,separate:t===`md`,run:()=>void Ii(e,t)});return n&&r.push({label:B.remove,icon:`trash`,danger:!0,separate:!0,run:()=>void Fi(e)}),r}var Ri=v.shell.share,zi=class extends f{constructor(...e){super(...e),this.session=``,this.url=``,this.problem=``,this.#e=e=>{this.session=e.detail,this.url=``,this.problem=``}}#e;static{this.styles=[...[f.styles].flat(),s`
    form { display: contents; } .actions { display: flex; justify-content: flex-end; gap: var(--s2); }
    .url { display: flex; gap: var(--s2); } .url input { font-family: var(--mono); }
  `]}connectedCallback(){super.connectedCallback(),window.addEventListener(`plexus-share`,this.#e)}disconnectedCallback(){super.disconnectedCallback(),window.removeEventListener(`plexus-share`,this.#e)}render(){return n`<plexus-dialog heading=${Ri.title} .open=${this.session!==``} @close=${()=>{this.session=``}}>
      ${this.url?n`<p class="soft">${Ri.done}</p><div class="url"><input readonly aria-label=${Ri.link} .value=${this.url} @focus=${e=>e.target.select()}>
          <button class="primary" @click=${()=>void Mn(this.url)}>${E(`copy`)}${v.common.copy}</button></div>`:n`<form @submit=${e=>void this.#t(e)}><p class="soft">${Ri.text}</p>
          <label class="field">${Ri.hours}<select name="hours">${Ri.choices.map(([e,t])=>n`<option value=${e} ?selected=${e===24}>${t}</option>`)}</select></label>
          ${this.problem?n`<p class="note danger" role="alert">${this.problem}</p>`:u}
          <div class="actions"><button type="button" @click=${()=>{this.session=``}}>${v.common.cancel}</button><button class="primary">${Ri.make}</button></div></form>`}
    </plexus-dialog>`}async#t(e){e.preventDefault();let t=Number(new FormData(e.target).get(`hours`));try{this.url=(await T.http(`POST`,`/v1/sessions/${encodeURIComponent(this.session)}/shares`,{hours:t})).url}catch(e){this.problem=v.shell.failed(b(e))}}};D([c()],zi.prototype,`session`,void 0),D([c()],zi.prototype,`url`,void 0),D([c()],zi.prototype,`problem`,void 0),zi=D([t(`plexus-share`)],zi);var V=v.shell.sessions,Bi=[`waiting`,`running`,`idle`,`exited`],Vi=200,Hi=class extends f{constructor(...e){super(...e),this.filter=``,this.archived=!1,this.creating=!1,this.starting=!1,this.problem=``,this.limit=Vi,this.#e=()=>{},this.#t=()=>{T.may(`prompt`)&&(this.problem=``,this.creating=!0)},this.#c=e=>{let t=e.currentTarget;if(t.getAttribute(`aria-disabled`)!==`true`){for(let e of this.renderRoot.querySelectorAll(`.kind`))e.setAttribute(`aria-checked`,String(e===t));t.focus()}},this.#l=e=>{let t={ArrowRight:1,ArrowDown:1,ArrowLeft:-1,ArrowUp:-1}[e.key];if(!t)return;e.preventDefault();let n=[...this.renderRoot.querySelectorAll(`.kind[aria-disabled="false"]`)];n[(n.indexOf(e.currentTarget)+t+n.length)%n.length]?.click()}}#e;#t;static{this.styles=[...[f.styles].flat(),Nn,s`
    .tools { display: flex; gap: var(--s2); margin-bottom: var(--s4); align-items: center; flex-wrap: wrap; }
    .filter { position: relative; flex: 1 1 200px; max-width: 340px; }
    .filter svg { position: absolute; left: 10px; top: 50%; transform: translateY(-50%); color: var(--fg-mute); pointer-events: none; }
    .filter input { padding-left: 32px; }
    .seg { display: inline-flex; border: 1px solid var(--line-strong); border-radius: var(--r-s); overflow: hidden; }
    .seg button { border: 0; border-radius: 0; background: transparent; color: var(--fg-soft); }
    .seg button[aria-pressed="true"] { background: var(--bg-active); color: var(--fg); }
    .seg button:focus-visible { outline-offset: -2px; }
    .group { display: flex; align-items: center; gap: 8px; margin: var(--s5) 0 var(--s2); font-size: var(--t-s); font-weight: 600; color: var(--fg-soft); }
    .group:first-of-type { margin-top: 0; }
    .group .n { color: var(--fg-mute); font-weight: 450; }
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
    form { display: contents; }
    .kinds { display: grid; grid-template-columns: repeat(auto-fill, minmax(140px, 1fr)); gap: var(--s2); }
    .kind { display: flex; flex-direction: column; align-items: flex-start; gap: 2px; padding: 9px 12px; min-height: 54px; height: auto; white-space: normal; text-align: left; }
    .kind[aria-checked="true"] { border-color: var(--accent); background: var(--accent-wash); box-shadow: inset 0 0 0 1px var(--accent); }
    .kind small { color: var(--fg-mute); font-weight: 400; font-size: var(--t-s); }
    @media (max-width: 599px) { .row { padding-right: 0; } .side .who, .side .q { display: none; } .side .age { min-width: 0; } .filter { max-width: none; } }
  `]}connectedCallback(){super.connectedCallback();let e=()=>[...this.renderRoot.querySelectorAll(`.row > a`)],t=t=>()=>{let n=e(),r=n.indexOf(me());n[r<0?t>0?0:n.length-1:Math.max(0,Math.min(n.length-1,r+t))]?.focus()},n=e=>()=>{let t=me()?.dataset?.session,n=t?T.sessions.peek().get(t):void 0;n&&T.may(`prompt`)&&e(n)};this.#e=_e([{key:`j`,run:t(1)},{key:`k`,run:t(-1)},{key:`ArrowDown`,run:t(1)},{key:`ArrowUp`,run:t(-1)},{key:`e`,run:n(e=>Ni(e))},{key:`r`,run:n(e=>Mi(e))},{key:`/`,run:()=>this.renderRoot.querySelector(`input`)?.focus()}]),window.addEventListener(`plexus-new-session`,this.#t)}disconnectedCallback(){super.disconnectedCallback(),this.#e(),window.removeEventListener(`plexus-new-session`,this.#t)}#n(){let e=this.filter.trim().toLowerCase(),t=T.news.value,n=e=>t.get(e.session_id)??Date.parse(e.updated_at);return[...T.sessions.value.values()].filter(e=>!!e.archived===this.archived).filter(t=>!e||`${t.title??``} ${t.runtime_id} ${t.cwd} ${V.state[t.state]??``} ${t.doing??``}`.toLowerCase().includes(e)).map(e=>({s:e,group:Bi.indexOf(e.state),at:n(e)})).sort((e,t)=>e.group-t.group||t.at-e.at||(e.s.session_id<t.s.session_id?-1:1)).map(({s:e})=>e)}#r(){let e=new Map;for(let t of T.requests.value.values())t.state===`open`&&e.set(t.session_id,(e.get(t.session_id)??0)+1);return e}render(){let e=this.#n(),t=e.slice(0,this.limit),r=this.#r();return n`<div class="page">
      <header><h1 tabindex="-1">${V.title}</h1>
        ${T.may(`prompt`)?n`<button class="primary" id="new" @click=${this.#t}>${E(`plus`)}${V.new}</button>`:u}</header>
      <div class="tools">
        <div class="filter">${E(`search`)}<input type="search" aria-label=${V.filter} placeholder=${V.filterHint} .value=${this.filter} @input=${e=>{this.filter=e.target.value,this.limit=Vi}}
          @keydown=${e=>{(e.key===`ArrowDown`||e.key===`Enter`)&&(e.preventDefault(),this.renderRoot.querySelector(`.row > a`)?.focus())}}></div>
        <div class="seg" role="group" aria-label=${V.which}>${[!1,!0].map(e=>n`<button aria-pressed=${this.archived===e} @click=${()=>{this.archived=e}}>${e?V.showArchived:V.showActive}</button>`)}</div>
      </div>
      ${t.length?Bi.map(e=>this.#a(e,t.filter(t=>t.state===e),r)):this.#i()}
      ${e.length>t.length?n`<p><button @click=${()=>{this.limit+=Vi}}>${v.common.more} (${e.length-t.length})</button></p>`:u}
      ${this.#s()}<plexus-share></plexus-share>
    </div>`}#i(){return T.loaded.value?this.filter?A(`search`,V.noneFound,V.noneFoundText,n`<button @click=${()=>{this.filter=``}}>${V.clear}</button>`):this.archived?A(`archive`,V.noneArchived,V.noneArchivedText):A(`sessions`,V.none,V.noneText,jn(V.noneCommand)):An()}#a(e,t,r){return t.length?n`<h2 class="group"><plexus-state .state=${e} bare></plexus-state>${V.groups[e]}<span class="n">${t.length}</span></h2>
      <ul class="list" data-group=${e}>${te(t,e=>e.session_id,e=>this.#o(e,r.get(e.session_id)??e.open_requests))}</ul>`:u}#o(e,t){let r=T.unread.value.has(e.session_id),i=h(e.title)||v.common.untitled,a=T.news.value.get(e.session_id)??Date.parse(e.updated_at),o=T.lookers.value.get(e.session_id)??[],s=h(e.doing??``);return n`<li class="row ${r?`unread`:``}">
      <plexus-state .state=${e.state} bare></plexus-state>
      <a href=${T.href({page:`session`,session_id:e.session_id})} data-session=${e.session_id}>
        <span class="title"><bdi class="cut">${i}</bdi>${r?n`<span class="new" role="img" aria-label=${V.unread}></span>`:u}</span>
        <span class="sub"><bdi class="agent">${h(e.runtime_id)}</bdi><span aria-hidden="true">·</span>${s?n`<bdi class="doing cut">${s}</bdi>`:n`<bdi class="cut">${h(e.cwd)}</bdi>`}</span></a>
      <span class="side">
        ${o.length?n`<span class="who" title=${V.lookers(o.map(e=>h(e.name)).join(`, `))}>${E(`eye`,14,V.lookers(o.map(e=>h(e.name)).join(`, `)))}${o.length}</span>`:u}
        ${e.queue?.length?n`<span class="chip q">${V.queued(e.queue.length)}</span>`:u}
        ${t?n`<span class="chip warn">${V.requests(t)}</span>`:u}
        <span class="age"><plexus-age .at=${a} short></plexus-age></span></span>
      <plexus-menu class="menu" label=${V.menu(i)} .items=${Li(e)}></plexus-menu></li>`}#s(){let e=[...T.runtimes.value.values()],t=e.find(e=>e.state===`ready`)?.runtime_id??``;return n`<plexus-dialog heading=${V.newTitle} .open=${this.creating} @close=${()=>{this.creating=!1}}>
      ${this.creating?e.length===0?n`<p class="soft">${V.noRuntime}</p><div class="actions"><a class="btn primary" href="#/runtimes">${V.toRuntimes}</a></div>`:n`
      <form @submit=${e=>void this.#u(e)}>
        <fieldset><legend class="small strong">${V.runtime}</legend><div class="kinds" role="radiogroup" aria-label=${V.runtime}>${e.map(e=>n`
          <button type="button" class="kind" role="radio" data-runtime=${e.runtime_id} aria-checked=${e.runtime_id===t} aria-disabled=${e.state!==`ready`} @click=${this.#c} @keydown=${this.#l}>
            <bdi class="strong">${h(e.runtime_id)}</bdi><small>${e.state===`ready`?h(e.agent)||h(e.dialect):v.shell.runtimes.state[e.state]}</small></button>`)}</div></fieldset>
        <label class="field">${V.folder}<input name="cwd" autocomplete="off" spellcheck="false" autocapitalize="off"><span class="hint mute small">${V.folderHint}</span></label>
        <label class="field">${V.name}<input name="title" ?autofocus=${matchMedia(`(pointer: fine)`).matches} autocomplete="off" maxlength="200" placeholder=${V.nameHint}></label>
        ${this.problem?n`<p class="note danger" role="alert">${this.problem}</p>`:u}
        <div class="actions"><button type="button" @click=${()=>{this.creating=!1}}>${v.common.cancel}</button><button class="primary" id="start" ?disabled=${this.starting}>${this.starting?V.starting:V.start}</button></div>
      </form>`:u}</plexus-dialog>`}#c;#l;async#u(e){if(e.preventDefault(),this.starting)return;let t=new FormData(e.target),n=this.renderRoot.querySelector(`.kind[aria-checked="true"]`)?.dataset.runtime;if(!n)return;let r=String(t.get(`cwd`)??``).trim(),i=String(t.get(`title`)??``).trim();this.starting=!0,this.problem=``;try{let e=await T.http(`POST`,`/v1/sessions`,{runtime_id:n,...r?{cwd:r}:{},...i?{title:i}:{}});this.creating=!1,T.go({page:`session`,session_id:(e?.session??e).session_id})}catch(e){this.problem=V.failed(b(e))}finally{this.starting=!1}}};D([c()],Hi.prototype,`filter`,void 0),D([c()],Hi.prototype,`archived`,void 0),D([c()],Hi.prototype,`creating`,void 0),D([c()],Hi.prototype,`starting`,void 0),D([c()],Hi.prototype,`problem`,void 0),D([c()],Hi.prototype,`limit`,void 0),Hi=D([t(`plexus-sessions`)],Hi);var Ui=(function(){let e=typeof document<`u`&&document.createElement(`link`).relList;return e&&e.supports&&e.supports(`modulepreload`)?`modulepreload`:`preload`})(),Wi=function(e){return`/`+e},Gi={},Ki=function(e){return e.pathname.endsWith(`.css`)},qi=function(e,t,n){if(t in e)return e[t];let r=n();if(!r){e[t]=void 0;return}let i=r.then(()=>{e[t]=void 0},n=>{throw e[t]=void 0,n});return e[t]=i,i},Ji=function(e,t,n){let r=Promise.resolve();if(t&&t.length>0){let e,i=document.querySelector(`meta[property=csp-nonce]`),a=i?.nonce||i?.getAttribute(`nonce`);function o(e){return Promise.all(e.map(e=>Promise.resolve(e).then(e=>({status:`fulfilled`,value:e}),e=>({status:`rejected`,reason:e}))))}function s(e){return import.meta.resolve?new URL(import.meta.resolve(e)):new URL(e,import.meta.url)}r=o(t.map(t=>{t=Wi(t,n);let r=s(t),i=Ki(r);return qi(Gi,r.href,()=>{if(e===void 0){e={all:new Set,styles:new Set};let t=document.getElementsByTagName(`link`);for(let n=t.length-1;n>=0;n--){let r=t[n];e.all.add(r.href),r.rel===`stylesheet`&&e.styles.add(r.href)}}if((i?e.styles:e.all).has(r.href))return;let t=document.createElement(`link`);if(t.rel=i?`stylesheet`:Ui,i||(t.as=`script`),t.crossOrigin=``,t.href=r.href,a&&t.setAttribute(`nonce`,a),document.head.appendChild(t),i)return new Promise((e,n)=>{let i=a=>{t.removeEventListener(`load`,i),t.removeEventListener(`error`,i),a.type===`error`?n(Error(`Unable to preload CSS for ${r}`)):e(a)};t.addEventListener(`load`,i),t.addEventListener(`error`,i)})})}).filter(e=>e!==void 0))}function i(e){let t=new Event(`vite:preloadError`,{cancelable:!0});if(t.payload=e,window.dispatchEvent(t),!t.defaultPrevented)throw e}return r.then(t=>{for(let e of t||[])e.status===`rejected`&&i(e.reason);return e().catch(i)})};Ji(()=>import(`./conversation-BnW8TkDV.js`).then(e=>e.t),__vite__mapDeps([0,1]));var Yi=class extends f{constructor(...e){super(...e),this.sessionId=``,this.#e=[]}#e;static{this.styles=[...[f.styles].flat(),s`
    :host { height: 100%; min-height: 0; }
    plexus-session { height: 100%; min-height: 0; }
  `]}connectedCallback(){super.connectedCallback();let t=e=>{let t=T.sessions.peek().get(this.sessionId),n=e.detail;t&&{rename:Mi,archive:Ni,share:Pi}[n]?.(t)};window.addEventListener(`plexus-session-do`,t),this.#e=[()=>window.removeEventListener(`plexus-session-do`,t),_e([{key:`u`,run:()=>T.go({page:`sessions`})}]),e(()=>{T.now.value,!document.hidden&&T.unread.value.has(this.sessionId)&&queueMicrotask(()=>T.seen(this.sessionId))})],queueMicrotask(()=>T.seen(this.sessionId))}disconnectedCallback(){super.disconnectedCallback();for(let e of this.#e)e()}render(){return n`<plexus-session session-id=${this.sessionId} .at=${this.at}></plexus-session><plexus-share></plexus-share>`}};D([l()],Yi.prototype,`sessionId`,void 0),D([l({type:Number})],Yi.prototype,`at`,void 0),Yi=D([t(`plexus-session-page`)],Yi);var Xi=/^\(\d+\) /,Zi=64;function Qi(){let e=0;for(let t of T.requests.value.values())t.state===`open`&&!t.observe_only&&(e+=1);return e}function $i(e){return`data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${Zi} ${Zi}"><rect width="${Zi}" height="${Zi}" rx="14" fill="${e===`away`?`#6b7280`:`#4f46d8`}"/><g fill="none" stroke="#fff" stroke-opacity=".75" stroke-width="5" stroke-linecap="round"><path d="M14 16 32 32 14 48M32 32h18M32 32 50 16M32 32l18 16"/></g><circle cx="32" cy="32" r="8" fill="#fff"/>${e===`asked`?`<circle cx="50" cy="14" r="13" fill="#e5383b" stroke="#fff" stroke-width="4"/>`:``}</svg>`)}`}var ea=0;function ta(){let e=document.title.replace(Xi,``),t=ea>0?`(${ea}) ${e}`:e;document.title!==t&&(document.title=t)}function na(){let t=document.querySelector(`title`);t&&new MutationObserver(ta).observe(t,{childList:!0,characterData:!0,subtree:!0});let n=``;e(()=>{let e=T.me.value!==null;ea=e?Qi():0,ta();let t=e&&!T.live.value?`away`:ea>0?`asked`:`calm`,r=document.querySelector(`link#favicon, link[rel="icon"]`);r&&t!==n&&(n=t,r.type=`image/svg+xml`,r.href=$i(t));let i=navigator;T.live.value&&(ea>0?i.setAppBadge?.(ea):i.clearAppBadge?.())?.catch(()=>{})})}var ra=`plexus.sound`,ia=[587.33,880],aa=.14,oa=.12;function sa(){try{return localStorage.getItem(ra)===`on`}catch{return!1}}var ca=d(sa());function la(e){ca.value=e;try{e?localStorage.setItem(ra,`on`):localStorage.removeItem(ra)}catch{}}var ua=null;function da(){try{ua??=new AudioContext,ua.resume().catch(()=>{}),ia.forEach((e,t)=>{let{currentTime:n}=ua,r=n+t*aa,i=new GainNode(ua,{gain:0});i.gain.setValueAtTime(0,r),i.gain.linearRampToValueAtTime(oa,r+.015),i.gain.exponentialRampToValueAtTime(1e-4,r+aa*1.8);let a=new OscillatorNode(ua,{type:`sine`,frequency:e});a.connect(i).connect(ua.destination),a.start(r),a.stop(r+aa*2)})}catch{}}function fa(){let t=null;e(()=>{let e=new Set;for(let t of T.requests.value.values())t.state===`open`&&e.add(t.request_id);let n=t!==null&&[...e].some(e=>!t.has(e));t=T.loaded.value?new Set([...t??[],...e]):null,n&&ca.peek()&&da()})}function pa(e){return navigator.locks.request(`plexus-tray`,e)}var ma=!1;function ha(){ma||(ma=!0,na(),fa(),navigator.serviceWorker?.addEventListener(`message`,e=>{let t=e.data;t?.plexus===`open`&&typeof t.hash==`string`&&t.hash.startsWith(`#/`)&&(location.hash=t.hash)}),navigator.serviceWorker?.startMessages?.(),document.addEventListener(`visibilitychange`,()=>void ga()),ga())}async function ga(){if(!document.hidden&&`serviceWorker`in navigator)try{let e=await navigator.serviceWorker.getRegistration();for(let t of e?await pa(()=>e.getNotifications()):[])[`withdrawn`,`outcome`,`news`].includes(t.data?.kind)&&t.close()}catch{}}var H=v.notify,_a=8e3,U=d({is:`unknown`,words:``,settings:{}}),va=()=>/iPhone|iPad|iPod/.test(navigator.userAgent)||navigator.userAgent.includes(`Mac`)&&navigator.maxTouchPoints>1,ya=()=>matchMedia(`(display-mode: standalone)`).matches||navigator.standalone===!0;function ba(){return window.isSecureContext?va()&&!ya()&&!(`PushManager`in window)?H.needsHome:!(`serviceWorker`in navigator)||!(`PushManager`in window)||!(`Notification`in window)?H.noPush:``:H.needsHttps}async function xa(){let e=new Promise(e=>setTimeout(()=>e(null),_a));return Promise.race([navigator.serviceWorker.ready,e])}function Sa(e){let t=atob(e.replace(/-/g,`+`).replace(/_/g,`/`));return Uint8Array.from(t,e=>e.charCodeAt(0))}var Ca=(e,t)=>{let n=e?new Uint8Array(e):null;return n!==null&&n.length===t.length&&n.every((e,n)=>e===t[n])};async function wa(){if(T.me.peek()?.kind===`share`){U.value={is:`unable`,words:H.share,settings:{}};return}let e=ba(),t;try{t=await T.http(`GET`,`/v1/push`)}catch(t){let n=t instanceof y&&(t.status===404||t.status===405)?H.noGateway:H.failed(b(t));U.value={is:`unable`,words:e||n,settings:{}};return}let n=t.settings??{};if(e)U.value={is:`unable`,words:e,settings:n};else if(Notification.permission===`denied`)U.value={is:`blocked`,words:H.blocked,settings:n};else{let e=await(await navigator.serviceWorker.getRegistration())?.pushManager?.getSubscription().catch(()=>null),r=!!e&&Ca(e?.options.applicationServerKey,Sa(t.public_key));U.value={is:r&&t.subscribed?`on`:`off`,words:r&&!t.subscribed?H.elsewhere:``,settings:n}}}async function Ta(){let e=await Notification.requestPermission();if(e===`denied`)return U.value={...U.peek(),is:`blocked`,words:H.blocked},H.blocked;if(e!==`granted`)return H.dismissed;let t=await xa();if(!t)return H.noWorker;try{let{public_key:e}=await T.http(`GET`,`/v1/push`),n=Sa(e),r=await t.pushManager.getSubscription();r&&!Ca(r.options.applicationServerKey,n)&&(await r.unsubscribe(),r=null),r??=await t.pushManager.subscribe({userVisibleOnly:!0,applicationServerKey:n});let{endpoint:i,keys:a}=r.toJSON();await T.http(`PUT`,`/v1/push`,{endpoint:i,keys:a})}catch(e){return e instanceof y?H.failed(b(e)):H.subscribeFailed(e instanceof Error?e.message:String(e))}return await wa(),``}async function Ea(){try{await T.http(`DELETE`,`/v1/push`),await(await(await navigator.serviceWorker?.getRegistration())?.pushManager?.getSubscription())?.unsubscribe()}catch(e){return H.failed(b(e))}return await wa(),``}async function Da(e){try{let t=await T.http(`PATCH`,`/v1/push/settings`,{...e});return U.value={...U.peek(),settings:{...U.peek().settings,...e,...t?.settings??{}}},``}catch(e){return H.failed(b(e))}}async function Oa(){try{return await T.http(`POST`,`/v1/push/test`,{}),``}catch(e){return H.failed(b(e))}}var W=v.notify,ka={from:`22:00`,to:`07:00`},Aa=class extends f{static{this.properties={busy:{state:!0},say:{state:!0},bad:{state:!0}}}constructor(){super(),this.busy=!1,this.say=``,this.bad=!1}static{this.styles=[...[f.styles].flat(),s`
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
    `]}connectedCallback(){super.connectedCallback(),wa(),document.addEventListener(`visibilitychange`,this.#e)}disconnectedCallback(){super.disconnectedCallback(),document.removeEventListener(`visibilitychange`,this.#e)}#e=()=>{!document.hidden&&!this.busy&&wa()};async#t(e,t=``){if(this.busy)return;this.busy=!0,this.bad=!1,this.say=W.working;let n=await e().catch(e=>W.failed(e instanceof Error?e.message:String(e)));this.busy=!1,this.bad=n!==``,this.say=n||t}render(){let{is:e,words:t,settings:r}=U.value;return n`<section class="panel" aria-labelledby="title">
      <div class="head">
        ${E(`bell`,20)}
        <div>
          <h2 id="title">${W.title}</h2>
          <p>${W.about}</p>
        </div>
      </div>
      ${this.#n(e,t)} ${e===`on`?this.#i(r):u}
      <p class="say" role="status" ?data-bad=${this.bad}>${this.say}</p>
      <hr />
      <fieldset>
        <legend>${W.screen}</legend>
        ${this.#r(`sound`,W.sound,W.soundHint,ca.value,e=>{la(e),e&&da()})}
      </fieldset>
    </section>`}#n(e,t){switch(e){case`on`:return n`<div class="state">
          <p>${E(`check`)} ${W.isOn} ${T.me.value?.lock_screen?W.lockOn:W.lockOff}</p>
          <button type="button" data-do="off" aria-disabled=${this.busy} @click=${()=>this.#t(Ea)}>${W.off}</button>
        </div>`;case`off`:return n`<div class="state">
          <p>${t||W.isOff}</p>
          <button type="button" class="primary" data-do="on" aria-disabled=${this.busy} @click=${()=>this.#t(Ta)}>${W.on}</button>
        </div>`;case`blocked`:return n`<p class="note warn" data-is="blocked">${t}</p>`;case`unable`:return n`<p class="note" data-is="unable">${t}</p>`;default:return n`<p>${W.working}</p>`}}#r(e,t,r,i,a){return n`<label class="switch">
      <span>${t}${r?n`<small>${r}</small>`:u}</span>
      <input type="checkbox" role="switch" name=${e} .checked=${i} @change=${e=>a(e.target.checked)} />
    </label>`}#i(e){let t=e.quiet??null,r=e=>void this.#t(()=>Da(e),W.saved),i=e=>r({quiet:{from:t?.from??ka.from,to:t?.to??ka.to,...e,offset_minutes:-new Date().getTimezoneOffset()}}),a=(e,r)=>n`<label>${r}<input type="time" name=${e} .value=${t?.[e]??ka[e]} @change=${t=>{let{value:n}=t.target;n&&i({[e]:n})}} /></label>`;return n`<fieldset>
        <legend>${W.kinds}</legend>
        ${this.#r(`requests`,W.requests,W.requestsHint,e.requests??!0,e=>r({requests:e}))}
        ${this.#r(`ends`,W.ends,``,e.ends??!0,e=>r({ends:e}))}
        ${this.#r(`failures`,W.failures,``,e.failures??!0,e=>r({failures:e}))}
      </fieldset>
      <fieldset>
        ${this.#r(`quiet`,W.quiet,W.quietHint,t!==null,e=>e?i({}):r({quiet:null}))}
        ${t?n`<div class="times">${a(`from`,W.from)}${a(`to`,W.to)}</div>`:u}
      </fieldset>
      <div class="row"><button type="button" data-do="test" aria-disabled=${this.busy} @click=${()=>this.#t(Oa,W.tested)}>${W.test}</button></div>`}};customElements.define(`plexus-notifications`,Aa);var G=v.shell.pair,ja=15,Ma=[`watch`,`prompt`,`approve`,`admin`],Na=class extends f{constructor(...e){super(...e),this.open=!1,this.pairing=null,this.progress=null,this.problem=``,this.busy=!1,this.#e=0,this.#n=()=>{let{pairing:e,progress:t}=this;e&&(!t||t.state===`waiting`||t.state===`joined`)&&T.http(`DELETE`,this.#r(e)).catch(()=>{}),this.#t(),this.open=!1},this.#r=e=>`/v1/pairings/${encodeURIComponent(e.pairing_id)}`,this.#a=()=>this.problem?n`<p class="note danger" role="alert">${this.problem}</p>`:u}#e;static{this.styles=[...[f.styles].flat(),s`
    form { display: contents; }
    .scopes { display: flex; flex-direction: column; gap: 10px; }
    .scopes small { display: block; color: var(--fg-mute); font-size: var(--t-s); }
    .actions { display: flex; justify-content: flex-end; gap: var(--s2); flex-wrap: wrap; }
    .code { display: grid; grid-template-columns: auto 1fr; gap: var(--s5); align-items: center; }
    .qr { width: 190px; height: 190px; padding: 10px; background: #fff; border-radius: var(--r-m); border: 1px solid var(--line); display: block; }
    .big { font: 650 1.75rem/1.1 var(--mono); letter-spacing: 0.06em; user-select: all; white-space: nowrap; }
    .number { font: 650 4.5rem/1 var(--mono); letter-spacing: 0.05em; text-align: center; padding: var(--s4) 0; font-variant-numeric: tabular-nums; }
    .center { text-align: center; }
    .wait { display: flex; align-items: center; gap: 8px; color: var(--fg-mute); }
    @media (max-width: 479px) { .code { grid-template-columns: 1fr; justify-items: center; text-align: center; } }
  `]}show(){this.#t(),this.open=!0}#t(){this.#e+=1,this.pairing=null,this.progress=null,this.problem=``,this.busy=!1}#n;#r;render(){return n`<plexus-dialog heading=${G.title} .open=${this.open} @close=${this.#n}>${this.open?this.#i():u}</plexus-dialog>`}#i(){let e=this.progress?.state;return e===`confirmed`?n`<p class="note ok" role="status">${E(`check`)} ${G.done(h(this.progress?.name))}</p><div class="actions"><button class="primary" @click=${this.#n}>${v.common.close}</button></div>`:e===`refused`||e===`expired`?n`<p class="note warn" role="status">${e===`refused`?G.refused:G.expired}</p><div class="actions"><button @click=${this.#n}>${v.common.close}</button><button class="primary" @click=${()=>this.#t()}>${G.again}</button></div>`:e===`joined`?n`<p class="center">${G.joined(h(this.progress?.name))}<br><span class="soft">${G.compare}</span></p>
      <p class="number" aria-live="assertive">${this.progress?.number}</p>${this.#a()}
      <div class="actions"><button class="danger" @click=${()=>void this.#d()}>${G.differs}</button><button class="primary" id="confirm" ?disabled=${this.busy} @click=${()=>void this.#u()}>${G.same}</button></div>`:this.pairing?this.#s(this.pairing):this.#o()}#a;#o(){let e=(e,t)=>n`<label class="check"><input type="checkbox" name=${e} ?checked=${t} ?disabled=${e===`watch`}><span>${G[e]}<small>${G[`${e}Hint`]}</small></span></label>`,t=[...T.runtimes.value.keys()];return n`<form @submit=${e=>void this.#c(e)}>
      <fieldset class="scopes"><legend class="small strong">${G.may}</legend><span></span>${e(`watch`,!0)}${e(`prompt`,!0)}${e(`approve`,!0)}${e(`admin`,!1)}</fieldset>
      <label class="field">${G.upTo}<select name="up_to">${[`low`,`elevated`,`danger`].map(e=>n`<option value=${e} ?selected=${e===`danger`}>${G.risks[e]}</option>`)}</select></label>
      ${t.length>1?n`<label class="field">${G.runtimes}<select name="runtime"><option value="">${G.allRuntimes}</option>${t.map(e=>n`<option value=${e}>${h(e)}</option>`)}</select></label>`:u}
      <label class="check"><input type="checkbox" name="lock_screen"><span>${G.lock}</span></label>${this.#a()}
      <div class="actions"><button type="button" @click=${this.#n}>${v.common.cancel}</button><button class="primary" id="make" ?disabled=${this.busy}>${G.make}</button></div></form>`}#s(e){let t=Math.max(0,Math.round((Date.parse(e.expires_at)-T.now.value)/1e3)),r=e.url.split(`#`)[0]??``,i=/^https?:\/\/(127\.|localhost|\[::1\])/.test(e.url);return n`<p class="soft">${G.scan}</p>
      <div class="code"><img class="qr" alt=${G.qr} src="data:image/svg+xml;charset=utf-8,${encodeURIComponent(e.qr)}">
        <div class="vstack"><div><div class="small mute">${G.code}</div><div class="big" id="code">${e.code}</div></div>
          <div><div class="small mute">${G.address}</div><code>${r}</code></div>
          <p class="small mute nums">${G.left(t)}</p></div></div>
      ${i?n`<p class="note">${G.loopback}</p>`:u}${this.#a()}
      <p class="wait" role="status"><plexus-state state="running" bare></plexus-state>${G.waiting}</p>`}async#c(e){e.preventDefault();let t=new FormData(e.target),n=Ma.filter(e=>e===`watch`||t.get(e)),r=String(t.get(`up_to`)),i=String(t.get(`runtime`)??``);this.busy=!0,this.problem=``;let a=this.#e;try{let e=await T.http(`POST`,`/v1/pairings`,{scopes:n,...r===`danger`?{}:{approve_up_to:r},...i?{runtimes:[i]}:{},...t.get(`lock_screen`)?{lock_screen:!0}:{}});if(a!==this.#e)return;this.pairing=e,this.#l(e)}catch(e){this.problem=e instanceof y&&e.status===404?G.notYet:v.shell.failed(b(e))}finally{this.busy=!1}}async#l(e){let t=this.#e;for(;t===this.#e;)try{let n=await T.http(`GET`,`${this.#r(e)}?wait=${ja}`);if(t!==this.#e)return;let r=n.state===`joined`&&this.progress?.state!==`joined`;if(this.progress=n,r&&O(G.joined(h(n.name)),!0),n.state===`confirmed`){this.dispatchEvent(new CustomEvent(`joined`));return}if(n.state===`refused`||n.state===`expired`)return;n.state===`joined`&&await new Promise(e=>setTimeout(e,1e3))}catch(n){if(t!==this.#e)return;if(n instanceof y&&(n.status===404||n.status===410)){this.progress={pairing_id:e.pairing_id,state:`expired`,expires_at:e.expires_at};return}await new Promise(e=>setTimeout(e,2e3))}}async#u(){let{pairing:e,progress:t}=this;if(e&&t){this.busy=!0;try{await T.http(`POST`,`${this.#r(e)}/confirm`,{number:t.number}),this.progress={...t,state:`confirmed`},this.#e+=1,O(G.done(h(t.name))),this.dispatchEvent(new CustomEvent(`joined`))}catch(e){this.problem=v.shell.failed(b(e))}finally{this.busy=!1}}}async#d(){let{pairing:e,progress:t}=this;e&&t&&(this.#e+=1,await T.http(`DELETE`,this.#r(e)).catch(()=>{}),this.progress={...t,state:`refused`})}};D([c()],Na.prototype,`open`,void 0),D([c()],Na.prototype,`pairing`,void 0),D([c()],Na.prototype,`progress`,void 0),D([c()],Na.prototype,`problem`,void 0),D([c()],Na.prototype,`busy`,void 0),Na=D([t(`plexus-pairing`)],Na);var K=v.shell.devices,Pa=1e4,Fa=class extends f{constructor(...e){super(...e),this.devices=null,this.problem=``,this.#t=()=>{},this.#n=()=>this.renderRoot.querySelector(`plexus-pairing`)?.show(),this.#i=e=>e.you??e.device_id===T.me.value?.device_id,this.#o=e=>`/v1/devices/${encodeURIComponent(e.device_id)}`}#e;#t;#n;static{this.styles=[...[f.styles].flat(),Nn,s`
    .row { display: grid; grid-template-columns: 34px minmax(0, 1fr) auto; gap: 2px var(--s3); align-items: center; padding: 12px 8px 12px 14px; }
    .mark { display: grid; place-items: center; width: 34px; height: 34px; border-radius: 9px; background: var(--bg-sunken); color: var(--fg-soft); }
    .name { display: flex; align-items: center; gap: 8px; font-weight: 550; }
    .facts { display: flex; flex-wrap: wrap; gap: 4px 10px; color: var(--fg-mute); font-size: var(--t-s); margin-top: 1px; }
    .on { color: var(--ok); display: inline-flex; align-items: center; gap: 5px; }
    .may { display: flex; flex-wrap: wrap; gap: 5px; grid-column: 2 / -1; margin-top: 7px; align-items: center; }
    .lock { grid-column: 2 / -1; margin-top: 8px; font-size: var(--t-s); color: var(--fg-soft); }
    @media (max-width: 599px) { .row { padding-left: 12px; } }
  `]}connectedCallback(){super.connectedCallback(),this.#e=setInterval(()=>{document.hidden||this.#r()},Pa),this.#t=e(()=>{T.live.value&&queueMicrotask(()=>void this.#r())}),window.addEventListener(`plexus-add-device`,this.#n)}disconnectedCallback(){super.disconnectedCallback(),clearInterval(this.#e),this.#t(),window.removeEventListener(`plexus-add-device`,this.#n)}async#r(){if(T.live.peek()&&T.may(`admin`))try{this.devices=g((await T.http(`GET`,`/v1/devices`))?.devices),this.problem=``}catch(e){this.problem=v.shell.failed(b(e))}}render(){let e=T.may(`admin`),t=this.devices??[],r=e=>this.#i(e)?0:e.kind===`local`?1:2,i=t.filter(e=>e.kind!==`share`).sort((e,t)=>r(e)-r(t)||Date.parse(t.created_at)-Date.parse(e.created_at)),a=t.filter(e=>e.kind===`share`);return n`<div class="page">
      <header><h1 tabindex="-1">${K.title}</h1>${e?n`<button class="primary" id="add" @click=${this.#n}>${E(`plus`)}${K.add}</button>`:u}</header>
      ${this.problem?n`<p class="note danger" role="alert">${this.problem}</p>`:u}
      ${e?this.devices===null?An():n`
        <ul class="list">${i.map(e=>this.#a(e))}</ul>
        <section class="section"><header><h2>${K.links}</h2></header>
          ${a.length?n`<ul class="list">${a.map(e=>this.#a(e))}</ul>`:n`<p class="mute">${K.linksNone}</p>`}</section>`:A(`lock`,K.title,K.needAdmin)}
      <section class="section"><plexus-notifications></plexus-notifications></section>
      <plexus-pairing @joined=${()=>void this.#r()}></plexus-pairing>
    </div>`}#i;#a(e){let t=h(e.name),r=e.kind===`local`||e.device_id===`d_local`,i=/android|ios|iphone|phone|pixel/i.test(t),a=e.kind===`share`&&e.sessions?.[0]?T.sessions.value.get(e.sessions[0]):void 0;return n`<li class="row" data-device=${e.device_id}>
      <span class="mark">${E(e.kind===`share`?`link`:i?`phone`:r?`terminal`:`devices`,18)}</span>
      <div><div class="name"><bdi class="cut">${t}</bdi>${this.#i(e)?n`<span class="chip accent">${K.you}</span>`:u}</div>
        <div class="facts">
          ${e.online?n`<span class="on"><span class="dot"></span>${K.online}</span>`:e.last_seen_at?n`<span>${E(`clock`,12)} <plexus-age .at=${e.last_seen_at}></plexus-age></span>`:n`<span>${K.never}</span>`}
          ${a?n`<bdi>${K.only(h(a.title)||v.common.untitled)}</bdi>`:u}
          ${e.expires_at?n`<span>${K.expires(Te(Date.parse(e.expires_at)))}</span>`:u}
        </div></div>
      ${r?n`<span></span>`:n`<plexus-menu label=${K.menu(t)} .items=${[{label:K.rename,icon:`pencil`,run:()=>void this.#s(e)},{label:K.revoke,icon:`trash`,danger:!0,separate:!0,run:()=>void this.#l(e)}]}></plexus-menu>`}
      ${e.kind===`share`?u:n`<div class="may">
        ${g(e.scopes).map(e=>n`<span class="chip ${e===`admin`?`warn`:``}">${K.scopes[e]??h(e)}</span>`)}
        ${e.approve_up_to&&e.approve_up_to!==`danger`?n`<span class="chip info">${K.upTo(e.approve_up_to)}</span>`:u}
        ${e.runtimes?.length?n`<span class="chip info">${K.only(e.runtimes.map(h).join(`, `))}</span>`:u}</div>`}
      ${r||e.kind===`share`||!g(e.scopes).some(e=>e===`approve`||e===`admin`)||e.lock_screen===void 0&&!e.kind?u:n`<label class="check lock"><input type="checkbox" .checked=${!!e.lock_screen} @change=${t=>void this.#c(e,t.target.checked)}><span>${K.lockScreen}<br><span class="mute">${K.lockScreenHint}</span></span></label>`}
    </li>`}#o;async#s(e){let t=(await En(K.renameTitle,K.newName,e.name))?.trim();t&&await j(()=>T.http(`PATCH`,this.#o(e),{name:t})),this.#r()}async#c(e,t){await j(()=>T.http(`PATCH`,this.#o(e),{lock_screen:t})),await this.#r()}async#l(e){await Tn(K.revokeTitle(h(e.name)),K.revokeText,K.revokeDo,!0)&&(await j(()=>T.http(`DELETE`,this.#o(e)).then(()=>!0))&&k(K.revoked,{tone:`ok`}),this.#r())}};D([c()],Fa.prototype,`devices`,void 0),D([c()],Fa.prototype,`problem`,void 0),Fa=D([t(`plexus-devices`)],Fa);function Ia(e){let t=[],n=null,r=``;for(let i=0;i<e.length;i+=1){let a=e[i]??``;a===`\\`&&r!==`'`&&i+1<e.length?(i+=1,n=(n??``)+e[i]):r?a===r?r=``:n+=a:a===`"`||a===`'`?(r=a,n??=``):/\s/.test(a)?(n!==null&&t.push(n),n=null):n=(n??``)+a}return n!==null&&t.push(n),t}var q=v.shell.runtimes,La={ready:`ok`,starting:`info`,restarting:`warn`,exited:``},Ra=class extends f{constructor(...e){super(...e),this.starting=!1,this.busy=!1,this.problem=``,this.custom=!1,this.logs=null,this.checks=null,this.#e=()=>{T.may(`admin`)&&(this.problem=``,this.custom=!1,this.starting=!0)},this.#n=e=>`/v1/runtimes/${encodeURIComponent(e)}`}#e;static{this.styles=[...[f.styles].flat(),Nn,s`
    .row { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 4px var(--s3); padding: 13px 10px 13px 16px; align-items: start; }
    .name { display: flex; align-items: center; gap: 9px; font-weight: 600; flex-wrap: wrap; }
    .agent { color: var(--fg-mute); font-weight: 400; font-size: var(--t-s); }
    .facts { display: flex; flex-wrap: wrap; gap: 2px 12px; color: var(--fg-mute); font-size: var(--t-s); margin-top: 3px; }
    .run { font-family: var(--mono); font-size: var(--t-s); color: var(--fg-soft); margin-top: 6px; }
    .why { grid-column: 1 / -1; margin-top: 6px; white-space: pre-wrap; }
    .does { display: flex; gap: 2px; flex-wrap: wrap; justify-content: flex-end; }
    form { display: contents; }
    .kinds { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: var(--s2); margin-top: 6px; }
    .kinds label { display: flex; gap: 9px; align-items: center; padding: 8px 11px; border: 1px solid var(--line-strong); border-radius: var(--r-s); cursor: pointer; min-height: var(--control); }
    .kinds label:has(:checked) { border-color: var(--accent); background: var(--accent-wash); }
    pre.log { margin: 0; padding: 12px 14px; background: var(--bg-code); border: 1px solid var(--line); border-radius: var(--r-m); max-height: 56vh; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; font-size: var(--t-s); line-height: 1.55; }
    pre.log time { color: var(--fg-mute); margin-right: 10px; }
    .check { display: grid; grid-template-columns: 20px minmax(0, 1fr); gap: 2px 10px; padding: 10px 14px; }
    .check > svg { margin-top: 2px; }
    .check.ok > svg { color: var(--ok); } .check.warn > svg { color: var(--warn); } .check.bad > svg { color: var(--danger); }
    .check .fix { grid-column: 2; color: var(--fg-soft); font-size: var(--t-s); }
    @media (max-width: 599px) { .row { grid-template-columns: minmax(0, 1fr); padding-right: 16px; } .does { justify-content: flex-start; margin: 6px 0 0 -8px; } }
  `]}connectedCallback(){super.connectedCallback(),window.addEventListener(`plexus-start-runtime`,this.#e)}disconnectedCallback(){super.disconnectedCallback(),window.removeEventListener(`plexus-start-runtime`,this.#e)}render(){let e=[...T.runtimes.value.values()].sort((e,t)=>e.runtime_id<t.runtime_id?-1:1),t=T.may(`admin`);return n`<div class="page">
      <header><h1 tabindex="-1">${q.title}</h1>${t?n`<button class="primary" id="start" @click=${this.#e}>${E(`plus`)}${q.start}</button>`:u}</header>
      ${t?u:n`<p class="mute">${q.needAdmin}</p>`}
      ${e.length?n`<ul class="list">${te(e,e=>e.runtime_id,e=>this.#t(e,t))}</ul>`:T.loaded.value?A(`runtimes`,q.none,q.noneText,jn(q.noneCommand)):An()}
      ${t?n`<section class="section"><header><h2>${q.doctor}</h2><button class="compact" id="doctor" @click=${()=>void this.#o()}>${E(`heart`)}${q.doctorRun}</button></header>
        <p class="mute">${q.doctorText}</p>${this.#s()}</section>`:u}
      ${this.#c()}
      <plexus-dialog size="wide" heading=${this.logs?q.logsOf(h(this.logs.id)):``} .open=${this.logs!==null} @close=${()=>{this.logs=null}}>${this.logs?n`
        ${this.logs.lines.length?n`<pre class="log" tabindex="0" role="region" aria-label=${q.logsOf(h(this.logs.id))}>${this.logs.lines.map(e=>n`${e.at?n`<time>${new Date(e.at).toLocaleTimeString(`en`,{hour12:!1})}</time>`:u}${p(m(e.text))}${`
`}`)}</pre>`:n`<p class="mute">${q.noLogs}</p>`}
        <div><button class="compact" @click=${()=>void this.#a(this.logs?.id??``)}>${E(`restart`)}${q.refresh}</button></div>`:u}</plexus-dialog>
    </div>`}#t(e,t){let r=h(e.runtime_id),i=[...T.sessions.value.values()].filter(t=>t.runtime_id===e.runtime_id&&!t.archived).length,a=`command`in e.connect?e.connect.command.join(` `):e.connect.endpoint,o=e.state===`exited`;return n`<li class="row" data-runtime=${e.runtime_id}>
      <div><div class="name"><bdi>${r}</bdi><span class="chip ${La[e.state]??``}">${q.state[e.state]??h(e.state)}</span>${e.agent?n`<bdi class="agent">${h(e.agent)}</bdi>`:u}</div>
        <div class="facts"><span>${h(e.dialect)}</span><a href="#/sessions">${q.sessions(i)}</a>${e.pid?n`<span>${q.pid(e.pid)}</span>`:u}${e.generation>1?n`<span>${q.starts(e.generation)}</span>`:u}
          ${e.outlives?n`<span>${q.outlives}</span>`:u}${e.heard_at?n`<span>${E(`clock`,12)} <plexus-age .at=${e.heard_at}></plexus-age></span>`:u}</div>
        <div class="run cut" title=${p(a)}><bdi>${p(a)}</bdi></div></div>
      ${t?n`<div class="does">
        <button class="ghost compact" @click=${()=>void this.#a(e.runtime_id)}>${E(`log`)}${q.logs}</button>
        <button class="ghost compact" @click=${()=>void this.#i(e)}>${E(`restart`)}${q.restart}</button>
        ${o?u:n`<button class="ghost compact" @click=${()=>void this.#r(e)}>${E(`stop`)}${q.stop}</button>`}</div>`:u}
      ${e.problem?n`<p class="note ${o?`danger`:`warn`} why"><bdi>${xe(e.problem)}</bdi></p>`:u}
    </li>`}#n;async#r(e){await Tn(q.stopTitle(h(e.runtime_id)),q.stopText,q.stopDo,!0)&&await j(()=>T.http(`DELETE`,this.#n(e.runtime_id)))}async#i(e){await j(()=>T.http(`POST`,`${this.#n(e.runtime_id)}/restart`).then(()=>!0))&&k(q.started(h(e.runtime_id)),{tone:`ok`})}async#a(e){try{this.logs={id:e,lines:g((await T.http(`GET`,`${this.#n(e)}/logs`))?.lines)}}catch(t){let n=T.runtimes.peek().get(e)?.stderr_tail??``;t instanceof y&&t.status===404?this.logs={id:e,lines:n?n.split(`
`).map(e=>({text:e})):[]}:k(v.shell.failed(b(t)),{tone:`danger`})}}async#o(){this.checks=v.common.loading;try{this.checks=g((await T.http(`GET`,`/v1/doctor`))?.checks)}catch(e){this.checks=e instanceof y&&e.status===404?q.doctorOff:v.shell.failed(b(e))}}#s(){return this.checks===null?u:typeof this.checks==`string`?n`<p class="note" role="status">${this.checks}</p>`:n`<ul class="list" role="list">${this.checks.map(e=>{let t=m(e.ok??e.state),r=[`true`,`ok`,`good`,`pass`,`fine`,`works`].includes(t)?`ok`:[`false`,`bad`,`fail`,`failed`,`error`,`broken`].includes(t)?`bad`:`warn`;return n`<li class="check ${r}">${E(r===`ok`?`check`:r===`bad`?`danger`:`warn`,16,t)}<div><span class="strong">${h(e.name)}</span> <bdi class="soft">${xe(m(e.detail))}</bdi></div>${e.fix?n`<div class="fix">${xe(m(e.fix))}</div>`:u}</li>`})}</ul>`}#c(){return n`<plexus-dialog heading=${q.start} .open=${this.starting} @close=${()=>{this.starting=!1}}>${this.starting?n`
      <form @submit=${e=>void this.#l(e)}>
        <fieldset><legend class="small strong">${q.presets}</legend><div class="kinds">${Object.entries(q.known).map(([e,t],r)=>n`<label><input type="radio" name="preset" value=${e} ?checked=${r===0} @change=${()=>{this.custom=!1}}><span>${t}</span></label>`)}
          <label><input type="radio" name="preset" value="" @change=${()=>{this.custom=!0}}><span>${q.custom}</span></label></div></fieldset>
        ${this.custom?n`<label class="field">${q.command}<input name="command" required autocomplete="off" spellcheck="false" autocapitalize="off" class="mono" placeholder="my-agent --acp"><span class="hint mute small">${q.commandHint}</span></label>
          <label class="field">${q.dialect}<select name="dialect">${Object.entries(q.dialects).map(([e,t])=>n`<option value=${e}>${t}</option>`)}</select></label>`:u}
        <label class="field">${q.folder}<input name="cwd" autocomplete="off" spellcheck="false" autocapitalize="off"><span class="hint mute small">${q.folderHint}</span></label>
        ${this.problem?n`<p class="note danger" role="alert">${this.problem}</p>`:u}
        <div class="actions"><button type="button" @click=${()=>{this.starting=!1}}>${v.common.cancel}</button><button class="primary" ?disabled=${this.busy}>${q.start}</button></div></form>`:u}</plexus-dialog>`}async#l(e){e.preventDefault();let t=new FormData(e.target),n=String(t.get(`cwd`)??``).trim(),r=String(t.get(`preset`)??``),i=r?{preset:r}:{dialect:String(t.get(`dialect`)),command:Ia(String(t.get(`command`)??``))};this.busy=!0,this.problem=``;try{let e=await T.http(`POST`,`/v1/runtimes`,{...i,...n?{cwd:n}:{}});this.starting=!1,k(q.started(h(e?.runtime_id)),{tone:`ok`})}catch(e){this.problem=v.shell.failed(b(e))}finally{this.busy=!1}}};D([c()],Ra.prototype,`starting`,void 0),D([c()],Ra.prototype,`busy`,void 0),D([c()],Ra.prototype,`problem`,void 0),D([c()],Ra.prototype,`custom`,void 0),D([c()],Ra.prototype,`logs`,void 0),D([c()],Ra.prototype,`checks`,void 0),Ra=D([t(`plexus-runtimes`)],Ra);var J=v.shell.search,za=220,Ba=class extends f{constructor(...e){super(...e),this.q=``,this.hits=null,this.problem=``,this.asked=``,this.#t=0,this.#n=()=>{},this.#a=e=>{let t=e.target.value;clearTimeout(this.#e),this.#e=setTimeout(()=>{this.q=t,history.replaceState(null,``,T.href({page:`search`,q:t.trim()}))},za)}}#e;#t;#n;static{this.styles=[...[f.styles].flat(),Nn,s`
    .page { max-width: 820px; }
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
    .snip { color: var(--fg-soft); overflow: hidden; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; line-clamp: 3; }
    mark { background: var(--warn-wash); color: var(--fg); border-radius: 3px; box-shadow: 0 0 0 1px var(--warn-line); }
    .n { font-size: var(--t-s); color: var(--fg-mute); margin-bottom: var(--s2); }
  `]}connectedCallback(){super.connectedCallback();let e=e=>()=>{let t=[...this.renderRoot.querySelectorAll(`.hit a`)],n=t.indexOf(me());t[n<0?0:Math.max(0,Math.min(t.length-1,n+e))]?.focus()};this.#n=_e([{key:`j`,run:e(1)},{key:`k`,run:e(-1)},{key:`ArrowDown`,run:e(1)},{key:`ArrowUp`,run:e(-1)},{key:`/`,run:()=>this.renderRoot.querySelector(`input`)?.focus()}]),this.updateComplete.then(()=>{matchMedia(`(pointer: fine)`).matches&&this.renderRoot.querySelector(`input`)?.focus()})}disconnectedCallback(){super.disconnectedCallback(),this.#n(),clearTimeout(this.#e)}updated(){this.q.trim()!==this.asked&&(this.asked=this.q.trim(),this.#o())}render(){return n`<div class="page"><header><h1 tabindex="-1">${J.title}</h1></header>
      <div class="field" role="search">${E(`search`,18)}<input type="search" aria-label=${J.label} placeholder=${J.hint} .value=${this.q} autocomplete="off" spellcheck="false"
        @input=${this.#a} @keydown=${e=>{(e.key===`ArrowDown`||e.key===`Enter`&&!e.isComposing)&&(e.preventDefault(),this.renderRoot.querySelector(`.hit a`)?.focus())}}></div>
      ${this.problem?n`<p class="note danger" role="alert">${this.problem}</p>`:u}
      ${this.hits===null?this.asked?n`<p class="mute">${v.common.loading}</p>`:A(`search`,J.start,J.startText):this.hits.length===0?A(`search`,J.none(p(this.asked)),J.noneText):n`<p class="n">${J.found(this.hits.length)}</p><ul class="list">${this.hits.map(e=>this.#r(e))}</ul>`}</div>`}#r(e){let t=T.sessions.value.get(e.session_id),r=Be(e.cursor)?.pos;return n`<li class="hit"><div class="head"><a class="cut" href=${T.href({page:`session`,session_id:e.session_id,at:r})}><bdi class="strong">${h(t?.title)||v.common.untitled}</bdi></a>
        <span class="chip">${J.roles[e.role]??h(e.role)}</span><bdi>${h(t?.runtime_id)}</bdi>${e.at?n`<plexus-age .at=${e.at}></plexus-age>`:u}</div>
      <bdi class="snip">${this.#i(m(e.snippet))}</bdi></li>`}#i(e){return e.split(/\u0002([^\u0003]*)\u0003/).map((e,t)=>{let r=p(e.replace(/[\n\t]+/g,` `));return t%2?n`<mark>${r}</mark>`:r})}#a;async#o(){let e=++this.#t;if(this.problem=``,!this.asked)this.hits=null;else try{let t=await T.http(`GET`,`/v1/search?q=${encodeURIComponent(this.asked)}&limit=100`);if(e!==this.#t)return;this.hits=t.hits??[],O(J.found(this.hits.length))}catch(t){if(e!==this.#t)return;this.hits=[],this.problem=v.shell.failed(b(t))}}};D([l()],Ba.prototype,`q`,void 0),D([c()],Ba.prototype,`hits`,void 0),D([c()],Ba.prototype,`problem`,void 0),D([c()],Ba.prototype,`asked`,void 0),Ba=D([t(`plexus-search`)],Ba);var Y=v.shell.signin,X=v.shell.join,Va=15,Ha=2500,Ua=/^[A-Za-z0-9_-]{4,256}$/,Z=d(Ga()),Wa=null;function Ga(){let e=/^#(code|pair|share)=(.*)$/.exec(location.hash);if(!e)return null;history.replaceState(null,``,location.pathname);let t=decodeURIComponent(e[2]??``),n=e[1]===`share`?Re.test(t):Ua.test(t);return{kind:e[1],value:n?t:``}}window.addEventListener(`hashchange`,()=>{let e=Ga();e&&(Z.value=e)});function Ka(){let e=navigator.userAgent,t=/Firefox/.test(e)?`Firefox`:/Edg\//.test(e)?`Edge`:/Chrom/.test(e)?`Chrome`:/Safari/.test(e)?`Safari`:`Browser`,n=/Android/.test(e)?`Android`:/iPhone/.test(e)?`iPhone`:/iPad/.test(e)?`iPad`:/Mac OS/.test(e)?`macOS`:/Windows/.test(e)?`Windows`:/Linux/.test(e)?`Linux`:``;return n?`${t} on ${n}`:t}var Q=class extends f{constructor(...e){super(...e),this.note=``,this.bad=!1,this.busy=!1,this.join=null,this.looked=null,this.number=null,this.#e=``,this.#t=0}#e;#t;static{this.styles=[...[f.styles].flat(),Nn,s`
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
  `]}updated(){let e=Z.peek();e&&e!==Wa&&this.isConnected&&(Wa=e,queueMicrotask(()=>void this.#r(e)))}#n(e,t=!0){this.note=e,this.bad=t,e&&O(e,t)}async#r({kind:e,value:t}){if(!t)return this.#o(e===`share`?v.shell.share.bad:Y.badLink);let n=Z.peek();return e===`share`?this.#l(t,n):e===`pair`?(this.#e=t,this.#d(n)):this.#c(t,n)}#i(e){return e instanceof y&&e.ours&&e.status<500}#a(e,t){this.#n(Y.notYet(b(t)),!1),setTimeout(()=>{Z.peek()===e&&this.isConnected&&this.#r(e)},Ha)}async#o(e){let t=T.link.peek().phase!==`signed-out`||un();this.join=null,Z.value=null,t?k(e,{tone:`danger`}):this.#n(e)}#s(e){if(e?.csrf)sn(String(e.csrf));else if(typeof e?.token==`string`&&Re.test(e.token))on(e.token);else throw new y(200,{detail:Y.noToken});Z.value=null}async#c(e,t){this.#n(Y.busy,!1);try{if((await dn())?.scopes.includes(`admin`)){Z.value=null,T.link.peek().phase===`signed-out`&&un();return}this.#s(await x.json(`POST`,`/v1/pair`,{code:e,name:Ka(),cookie:!0},{anonymous:!0}))}catch(e){this.#i(e)?await this.#o(Y.badCode(e.message)):this.#a(t,e)}}async#l(e,t){this.#n(v.shell.share.enter,!1);try{let t=await x.json(`GET`,`/v1/me`,void 0,{anonymous:!0,headers:{Authorization:`Bearer ${e}`}});on(e);let n=t?.sessions?.[0];location.hash=n?`#/s/${encodeURIComponent(n)}`:`#/sessions`,Z.value=null}catch(e){this.#i(e)?await this.#o(v.shell.share.bad):this.#a(t,e)}}async#u(e){e.preventDefault();let t=this.renderRoot.querySelector(`#token`)?.value.trim()??``;if(!Re.test(t)){this.#n(Y.badToken);return}this.busy=!0;let n={Authorization:`Bearer ${t}`};try{try{this.#s(await x.json(`POST`,`/v1/signin`,{name:Ka(),cookie:!0},{anonymous:!0,headers:n}))}catch(e){if(!(e instanceof y)||e.status!==404&&e.status!==405)throw e;await x.json(`GET`,`/v1/me`,void 0,{anonymous:!0,headers:n}),on(t)}}catch(e){this.#n(this.#i(e)&&e.status===401?Y.unknownToken:Y.failed(b(e)))}finally{this.busy=!1}}async#d(e=null){this.join=`look`,this.looked=null,this.#n(``);try{this.looked=await x.json(`POST`,`/v1/pair/look`,{code:this.#e},{anonymous:!0})}catch(t){if(e&&!this.#i(t))return this.#a(e,t);this.join=`ask`,this.#n(this.#i(t)?t.status===429?t.message:X.bad:Y.failed(b(t)))}}async#f(e){e.preventDefault();let t=this.renderRoot.querySelector(`#name`)?.value.trim()||Ka(),n=++this.#t;this.busy=!0;try{let e=await x.json(`POST`,`/v1/pair`,{code:this.#e,name:t,cookie:!0},{anonymous:!0});if(e?.csrf||e?.token){this.#s(e);return}this.number=Number(e.number),this.join=`wait`,O(`${X.number}: ${this.number}. ${X.numberText}`,!0),await this.#p(String(e.ticket),n)}catch(e){this.join=`ask`,this.number=null,this.#n(this.#i(e)?X.bad:Y.failed(b(e)))}finally{this.busy=!1}}async#p(e,t){let n=0;for(;t===this.#t;)try{let t=await x.json(`POST`,`/v1/pair/wait`,{ticket:e,wait:Va},{anonymous:!0,patience:25e3});if(n=0,t?.csrf||t?.token){this.#s(t);return}}catch(e){if(this.#i(e)){this.join=`ask`,this.number=null,this.#n(X.refused);return}if(n+=1,n>8)throw e;await new Promise(e=>setTimeout(e,1500))}}render(){let e=Z.value,t=this.join!==null||e?.kind===`pair`,r=this.note||wt.value;return n`<main class="box" aria-label=${t?X.title:Y.title}>
      <div class="top"><img src="/icon.svg" alt=""><h1>${t?X.title:v.common.name}</h1>${t?u:n`<p class="soft">${Y.lead}</p>`}</div>
      ${r?n`<p class="note ${this.note&&this.bad?`danger`:``}" id="note" role="status">${r}</p>`:u}
      ${t?this.#h():e&&!this.bad?u:this.#m()}
    </main>`}#m(){return n`<div class="panel">
        <div class="vstack"><p>${Y.how}</p>${jn(Y.command)}</div>
        <div class="or">
          <button class="link" id="have-code" @click=${()=>{this.join=`ask`,this.#n(``)}}>${Y.code}</button>
          <details><summary>${Y.tokenOpen}</summary><form @submit=${e=>void this.#u(e)}>
            <label class="field">${Y.token}<input id="token" type="password" autocomplete="off" placeholder=${Y.tokenHint}></label>
            <button class="primary" ?disabled=${this.busy}>${this.busy?Y.busy:Y.go}</button></form></details></div></div>`}#h(){if(this.join===`wait`)return n`<div class="panel"><p class="soft">${X.number}</p><p class="number" id="number">${this.number}</p><p>${X.numberText}</p><p class="wait" role="status"><plexus-state state="running" bare></plexus-state>${X.waiting}</p></div>`;if(this.join===`ask`)return n`<div class="panel"><form @submit=${e=>{e.preventDefault(),this.#e=this.renderRoot.querySelector(`#paircode`)?.value.trim().toUpperCase()??``,this.#e&&this.#d()}}>
        <label class="field">${X.code}<input class="code" id="paircode" autocomplete="one-time-code" autocapitalize="characters" spellcheck="false" maxlength="12" placeholder="ABCD-2345" .value=${this.#e}><span class="hint mute small">${X.codeHint}</span></label>
        <div class="actions"><button type="button" @click=${()=>{this.join=null,this.#n(``),Z.value=null,T.link.peek().phase===`signed-out`&&un()}}>${v.common.cancel}</button><button class="primary">${X.next}</button></div></form></div>`;let e=this.looked;return e?n`<div class="panel"><div><h2>${X.what(h(e.gateway?.name)||location.host)}</h2><p class="mute small">${location.host} · ${X.version(h(e.gateway?.version))}</p></div>
      <div class="vstack"><p class="small soft">${X.may}</p><div class="may">${(e.scopes??[]).map(e=>n`<span class="chip ${e===`admin`?`warn`:`accent`}">${v.shell.devices.scopes[e]??h(e)}</span>`)}
        ${e.approve_up_to&&e.approve_up_to!==`danger`?n`<span class="chip info">${v.shell.devices.upTo(h(e.approve_up_to))}</span>`:u}
        ${e.runtimes?.length?n`<span class="chip info">${v.shell.devices.only(e.runtimes.map(h).join(`, `))}</span>`:u}</div></div>
      <form @submit=${e=>void this.#f(e)}><label class="field">${X.name}<input id="name" maxlength="64" autocomplete="off" .value=${Ka()}></label>
        <button class="primary" id="join" ?disabled=${this.busy}>${E(`check`)}${X.go}</button></form></div>`:n`<div class="panel"><p class="wait" role="status">${X.looking}</p></div>`}};D([c()],Q.prototype,`note`,void 0),D([c()],Q.prototype,`bad`,void 0),D([c()],Q.prototype,`busy`,void 0),D([c()],Q.prototype,`join`,void 0),D([c()],Q.prototype,`looked`,void 0),D([c()],Q.prototype,`number`,void 0),Q=D([t(`plexus-signin`)],Q);var $=v.shell,qa=[[`inbox`,`inbox`,`g i`],[`sessions`,`sessions`,`g s`],[`search`,`search`,`g f`],[`runtimes`,`runtimes`,`g r`],[`devices`,`devices`,`g d`]],Ja=/Mac|iPhone|iPad/.test(navigator.platform)?`⌘`:`Ctrl`,Ya=[`sessions`,`search`],Xa=9,Za=class extends f{#e=()=>{};#t=[];#n=``;#r=null;static{this.styles=[...[f.styles].flat(),s`
    :host { display: block; height: 100dvh; --rail: 232px; --bottom: 0px; }
    .frame { height: 100%; display: grid; grid-template-columns: var(--rail) minmax(0, 1fr); grid-template-rows: auto auto minmax(0, 1fr); }
    .skip { position: fixed; top: 8px; left: 8px; z-index: 70; transform: translateY(-200%); }
    .skip:focus-visible { transform: none; }

    .rail { grid-row: 1 / -1; grid-column: 1; display: flex; flex-direction: column; min-height: 0; background: var(--bg-rail); border-right: 1px solid var(--line); padding: 10px 10px max(10px, env(safe-area-inset-bottom)); }
    .brand { display: flex; align-items: center; gap: 9px; padding: 6px 8px 12px; color: var(--fg); font-weight: 650; font-size: var(--t-l); letter-spacing: -0.01em; }
    .brand:hover { text-decoration: none; }
    .brand img { width: 22px; height: 22px; border-radius: 6px; }
    .cmd { justify-content: flex-start; gap: 9px; margin-bottom: 10px; padding: 0 8px 0 9px; color: var(--fg-mute); font-weight: 450; background: var(--bg-raised); border-color: var(--line); }
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
    main.session { overflow: hidden; scrollbar-gutter: auto; }
    .bottom { display: none; }

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
      .bottom .nav .label { display: inline; }
      .bottom .nav[aria-current="page"] { color: var(--accent); }
      .bottom .nav .count { position: absolute; top: 4px; left: calc(50% + 5px); right: auto; }
      .frame.in-session .bottom { display: none; }
      .frame.in-session { --bottom: 0px; }
    }
  `]}connectedCallback(){super.connectedCallback(),this.#e=_e([...qa.map(([e,,t])=>({key:t,run:()=>T.go(e===`search`?{page:e,q:``}:{page:e})})),{key:`g /`,run:()=>T.go({page:`search`,q:``})},{key:`g b`,run:()=>history.back()},{key:`mod+k`,typing:!0,run:()=>this.#i?.toggle()},{key:`?`,run:()=>this.#a?.show()},{key:`n`,run:()=>{T.go({page:`sessions`}),setTimeout(()=>dispatchEvent(new CustomEvent(`plexus-new-session`)),0)}},{key:`t`,run:()=>{let e=ce();se(e),O(`${$.theme}: ${$.themes[e]}`)}},{key:`Escape`,typing:!0,run:()=>me()?.blur()}]),this.#t.push(e(()=>{let e=Tt.value;e&&k($.failed(e.text),{tone:`danger`})}),e(()=>{let e=T.live.value,{phase:t}=T.link.value;t===`signed-out`?this.#r=null:(this.#r===!0&&!e?O($.live.lost,!0):this.#r===!1&&e&&O($.live.back),(e||this.#r!==null)&&(this.#r=e))})),Z.peek()||un()}disconnectedCallback(){super.disconnectedCallback(),this.#e();for(let e of this.#t)e()}get#i(){return this.renderRoot.querySelector(`plexus-palette`)}get#a(){return this.renderRoot.querySelector(`plexus-help`)}render(){if(T.link.value.phase===`signed-out`||Z.value!==null)return n`<plexus-signin></plexus-signin><plexus-say></plexus-say>`;let e=T.route.value,t=e.page===`session`,r=T.me.value?.kind===`share`?qa.filter(([e])=>Ya.includes(e)):qa;return n`
      <nav aria-label=${$.skip}><button class="primary skip" @click=${()=>this.renderRoot.querySelector(`main`)?.focus()}>${$.skip}</button></nav>
      <div class="frame ${t?`in-session`:``}">
        <header class="rail">
          <a class="brand" href="#/inbox" aria-label=${v.common.name}><img src="/icon.svg" alt=""><span class="word">${v.common.name}</span></a>
          <button class="cmd" aria-keyshortcuts="Control+K" @click=${()=>this.#i?.toggle()}>${E(`search`)}<span class="label">${$.jump}</span><kbd aria-hidden="true">${Ja} K</kbd></button>
          <nav aria-label=${$.nav}><ul>${r.map(e=>n`<li>${this.#s(e)}</li>`)}</ul></nav>
          ${this.#c()}
          <div class="foot">${this.#l()}
            <div class="tools">
              <button class="ghost icon" title="${$.keys} (?)" aria-label=${$.keys} @click=${()=>this.#a?.show()}>${E(`keyboard`)}</button>
              <span class="grow"></span>${this.#u()}
            </div>
          </div>
        </header>
        <header class="top"><a class="brand" href="#/inbox" aria-label=${v.common.name}><img src="/icon.svg" alt=""><span class="word">${v.common.name}</span></a>
          ${this.#l()}
          <button class="ghost icon" aria-label=${$.palette} @click=${()=>this.#i?.toggle()}>${E(`search`)}</button>${this.#u()}</header>
        <div class="bars">${this.#d()}${this.#f()}${this.#p()}</div>
        <main id="main" tabindex="-1" class=${e.page} aria-label=${$.pages[e.page]}>${this.#o(e)}</main>
        <nav class="bottom" aria-label=${$.nav}><ul>${r.map(e=>n`<li>${this.#s(e)}</li>`)}</ul></nav>
      </div>
      <plexus-palette></plexus-palette><plexus-help></plexus-help><plexus-asking></plexus-asking><plexus-say></plexus-say>`}#o(e){switch(e.page){case`inbox`:return n`<plexus-inbox .request=${e.request??``}></plexus-inbox>`;case`sessions`:return n`<plexus-sessions></plexus-sessions>`;case`session`:return n`<plexus-session-page .sessionId=${e.session_id} .at=${e.at}></plexus-session-page>`;case`devices`:return n`<plexus-devices></plexus-devices>`;case`runtimes`:return n`<plexus-runtimes></plexus-runtimes>`;case`search`:return n`<plexus-search .q=${e.q??``}></plexus-search>`}}#s([e,t,r]){let i=T.route.value.page,a=i===e||e===`sessions`&&i===`session`,o=e===`inbox`?[...T.requests.value.values()].filter(e=>e.state===`open`):[],s=e===`sessions`?0:o.length;return n`<a class="nav" href="#/${e}" title="${$.pages[e]} (${r})" aria-current=${a?`page`:u}>${E(t,18)}<span class="label">${$.pages[e]}</span>
      ${s?n`<span class="count ${o.some(e=>e.risk===`danger`||e.danger)?`danger`:``}" aria-label=${$.openCount(s)}>${s}</span>`:u}</a>`}#c(){let e=T.news.value,t=T.route.value,r=[...T.sessions.value.values()].filter(e=>!e.archived).sort((t,n)=>(e.get(n.session_id)??0)-(e.get(t.session_id)??0)||(t.session_id<n.session_id?-1:1)).slice(0,Xa);return r.length?n`<h2 id="recent">${$.recent}</h2><ul class="recent" aria-labelledby="recent">${r.map(e=>{let r=T.unread.value.has(e.session_id);return n`<li><a class="nav ${r?`unread`:``}" href=${T.href({page:`session`,session_id:e.session_id})} aria-current=${t.page===`session`&&t.session_id===e.session_id?`page`:u}>
        <plexus-state .state=${e.state} bare></plexus-state><bdi class="name cut">${h(e.title)||v.common.untitled}</bdi>
        ${r?n`<span class="sr">${$.sessions.unread}</span>`:u}</a></li>`})}</ul>`:u}#l(){let{phase:e}=T.link.value;return n`<div class="link" data-phase=${e} role="img" aria-label=${$.phase[e]} title=${$.phase[e]}><span class="dot"></span><span class="word">${$.phase[e]}</span></div>`}#u(){let e=T.me.value,t=e=>({label:`${$.theme}: ${$.themes[e]}`,icon:e===`light`?`sun`:e===`dark`?`moon`:`auto`,checked:ae.value===e,run:()=>se(e)});return n`<plexus-menu label="${$.account}${e?`: ${h(e.name)}`:``}" icon="user" .items=${[t(`auto`),t(`light`),t(`dark`),{label:$.keys,icon:`keyboard`,separate:!0,run:()=>this.#a?.show()},...Wn.value?[{label:$.install,icon:`download`,run:()=>void Wn.value?.()}]:[],{label:e?.kind===`share`?$.leaveShare:$.signOut,icon:`out`,separate:!0,run:()=>void zn()}]}></plexus-menu>`}#d(){let{phase:e,heardAt:t,reason:r,since:i}=T.link.value;if(T.live.value||e===`signed-out`||e===`connecting`&&T.now.value-i<1500)return u;let a=e===`stopped`?r:e===`offline`?$.stale.offline:e===`reconnecting`?$.stale.reconnecting:$.stale.connecting;return n`<div class="bar stale" role="status" aria-label=${$.connection} id="stale">${E(`warn`)}<span class="words"><strong>${a}</strong>
      ${t?$.stale.trueAt(Te(t)):$.stale.never} ${e!==`stopped`&&r?r:u}</span>
      <button class="compact" @click=${()=>T.retry()}>${e===`stopped`?$.stale.reload:$.stale.tryNow}</button></div>`}#f(){return Et.value?n`<div class="bar share" id="outdated" role="status">${E(`restart`)}<span class="words">${Et.value===`missing`?$.stale.missing:$.stale.outdated}</span><button class="compact" @click=${()=>location.reload()}>${$.stale.reload}</button></div>`:u}#p(){let e=T.me.value;if(e?.kind!==`share`)return u;let t=e.expires_at?Te(Date.parse(e.expires_at)):``;return n`<div class="bar share" id="share" role="region" aria-label=${$.shareBar(``,``)}>${E(`eye`)}<span class="words">${$.shareBar(``,t)}</span><button class="compact" @click=${()=>void zn()}>${$.leaveShare}</button></div>`}updated(){let e=T.route.peek(),t=`${e.page}/${e.page===`session`?e.session_id:``}`,n=$.pages[e.page];if(this.#n&&this.#n!==t&&T.link.peek().phase!==`signed-out`){let e=this.renderRoot.querySelector(`main`);e?.scrollTo(0,0),e?.focus({preventScroll:!0}),O(n)}this.#n=t}};Za=D([t(`plexus-app`)],Za),ha(),Pe(),addEventListener(`load`,()=>void Fe());export{E as a,b as c,f as d,k as i,v as l,Li as n,T as o,si as r,Be as s,Ji as t,_e as u};