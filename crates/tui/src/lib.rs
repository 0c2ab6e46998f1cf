//! `plexus attach`: the full-screen terminal UI. A pure core (`app`, `view_model`) and this shell around it: the terminal, the signals, the
//! network. It is an ordinary client ([`plexus_client`]).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use plexus_client::calls::{self, ApiCall, ApiRequest};
use plexus_client::{Client, ClientEvent, Error, Follow, FollowStart, GatewayReply};
use plexus_protocol::api::history::{EventEnvelope, Page, ResumeVerdict};
use plexus_protocol::api::rpc::Focus;
use plexus_protocol::api::snapshot::Snapshot;
use plexus_protocol::transcript::EntryBody;
use plexus_protocol::{SessionId, Timestamp};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

mod agent_lists;
mod app;
mod attachments;
mod card;
mod ceilings;
mod changes;
mod conversation;
mod diff;
mod editor;
mod facts;
mod form;
mod guard;
mod help;
mod highlight;
mod image;
mod input;
mod markdown;
mod mention;
mod new_session;
mod pages;
mod pairing;
mod qr;
mod reply;
mod sanitize;
mod saved_reviews;
mod session_list;
mod settings;
mod surface;
#[cfg(test)]
mod tests;
mod theme;
mod triage;
mod usage;
mod view_model;

use app::App;
use pages::message::{CallKey, CallTag, Effect, Msg};
pub use qr::qr_picture;
use reply::CallReply;

use guard::{FrameBuffer, Stdout, TerminalGuard};
use theme::{Depth, Theme};

/// Maximum number of outcomes queued for the core; the tasks that produce more of them wait.
const OUTCOMES_QUEUED: usize = 64;
/// Maximum number of events applied before the next frame.
const BATCH: usize = 4000;
/// Minimum time between two frames: more are not visible, and a slow connection has to transfer them.
const FRAME: Duration = Duration::from_millis(33);
/// The interval of the clock.
const TICK: Duration = Duration::from_millis(100);
/// Maximum number of attempts of an answer or a prompt while the gateway is unreachable, and the pause between them.
const ATTEMPTS_MAX: u32 = 5;
const PAUSE: Duration = Duration::from_millis(700);
/// Maximum number of items in a page of history; merged events count as one.
const PAGE: usize = 500;
/// Maximum length of a member of a tool call in such a page, in bytes: the rest is loaded on request.
const OUTPUT: usize = 16 << 10;
/// Maximum size of a tool call that is loaded, in bytes; a longer one is only in an export.
const WHOLE_MAX: usize = 8 << 20;
/// Approximate size of such a page, in bytes.
const PAGE_BYTES: usize = 128 << 10;
/// The file in the state folder with the times when sessions were last viewed.
const VIEWED_FILE: &str = "attach.json";
/// Maximum number of sessions in that file.
const VIEWED_MAX: usize = 2000;

/// The reason why the UI ended.
pub enum End {
    /// The user quit.
    Left,
    /// A signal of this number ended it.
    Signal(u8),
    /// The gateway refuses this client.
    Refused(String),
}

fn now() -> i64 {
    Timestamp::from(SystemTime::now()).as_millis()
}

/// The options that the UI is started with.
pub struct AttachOptions {
    /// The session to open at once.
    pub session: Option<String>,
    /// `true` if the mouse is used.
    pub mouse: bool,
    /// The state folder.
    pub dir: PathBuf,
    /// The gateway's address.
    pub address: String,
}

/// Runs the UI until the user quits or a signal ends it.
pub async fn run(client: Client, options: AttachOptions) -> anyhow::Result<End> {
    let AttachOptions { session, mouse, dir, address } = options;
    let variable = |name: &str| std::env::var(name).ok();
    let light = variable("COLORFGBG")
        .and_then(|all_sessions| all_sessions.rsplit(';').next().map(|ground| ground == "7" || ground == "15"));
    let theme = Theme::new(Depth::detect(variable), light.unwrap_or(false));
    let size = crossterm::terminal::size().context("the terminal's size")?;
    let viewed_at = std::fs::read(dir.join(VIEWED_FILE))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    let mut app = App::new(theme, size, now(), viewed_at);
    app.mouse = mouse;
    app.pages.changes.reviews.drafts = saved_reviews::read(&dir);
    (app.shared.environment.address, app.shared.environment.home) = (address, dir.display().to_string());
    app.shared.environment.start_dir = std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
    let mut guard = TerminalGuard::take(Stdout, mouse).context("taking the terminal")?;
    guard.plain = app.shared.theme.depth == Depth::Ansi;
    let mut shell = Shell::new(client, guard, dir, size)?;
    let first = app.start(session);
    shell.perform(&mut app, first);
    let end = shell.run_loop(&mut app).await;
    shell.guard.leave();
    end
}

struct Shell {
    client: Client,
    guard: TerminalGuard<Stdout>,
    terminal: Terminal<CrosstermBackend<FrameBuffer>>,
    dir: PathBuf,
    all_sessions: Follow,
    open_session: Option<(u64, Follow)>,
    tx: mpsc::Sender<Msg>,
    rx: mpsc::Receiver<Msg>,
    /// The start of a session that can be aborted.
    starting: Option<tokio::task::AbortHandle>,
    /// A random prefix that distinguishes the starts of this run from those of others.
    run: String,
    suspend: bool,
    /// The file to open in the editor.
    edit: Option<EditRequest>,
}

/// A file of a session to open in the editor.
struct EditRequest {
    root: String,
    path: String,
    line: usize,
}

/// The next event of the open session; pending without one.
async fn next_event(open_session: &mut Option<(u64, Follow)>) -> (u64, Option<Result<ClientEvent, Error>>) {
    match open_session {
        Some((subscription, follow)) => (*subscription, follow.next().await),
        None => std::future::pending().await,
    }
}

impl Shell {
    fn new(client: Client, guard: TerminalGuard<Stdout>, dir: PathBuf, size: (u16, u16)) -> io::Result<Self> {
        let (tx, rx) = mpsc::channel(OUTCOMES_QUEUED);
        // The size in the state, so that drawing and layout agree.
        let viewport = Viewport::Fixed(Rect::new(0, 0, size.0.max(1), size.1.max(1)));
        let terminal = Terminal::with_options(CrosstermBackend::new(guard.frames()), TerminalOptions { viewport })?;
        let all_sessions = client.attach(None, FollowStart::Now);
        Ok(Self {
            client,
            guard,
            terminal,
            dir,
            all_sessions,
            open_session: None,
            tx,
            rx,
            starting: None,
            run: key(),
            suspend: false,
            edit: None,
        })
    }

    async fn run_loop(&mut self, app: &mut App) -> anyhow::Result<End> {
        let mut keys = EventStream::new();
        let (mut terminate, mut hangup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        let (mut interrupt, mut resized) = (signal(SignalKind::interrupt())?, signal(SignalKind::window_change())?);
        let mut stop = signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut drawn = Instant::now() - FRAME;
        let mut stale = true;
        // A subscription that has ended yields no more events.
        let mut all_ended = false;
        loop {
            if app.shared.quit {
                return Ok(End::Left);
            }
            if std::mem::take(&mut self.suspend) {
                self.stop(app)?;
                stale = true;
            }
            if let Some(request) = self.edit.take() {
                // Its reader would consume the editor's keys.
                drop(keys);
                let ended = self.open_editor(app, request, (&mut terminate, &mut hangup)).await?;
                if let Some(number) = ended {
                    return Ok(End::Signal(number));
                }
                keys = EventStream::new();
                // A Ctrl-C was meant for the editor.
                interrupt = signal(SignalKind::interrupt())?;
                stale = true;
            }
            if stale && drawn.elapsed() >= FRAME {
                self.draw(app)?;
                (drawn, stale) = (Instant::now(), false);
            }
            let due = FRAME.saturating_sub(drawn.elapsed());
            let mut first = Vec::new();
            tokio::select! {
                biased;
                _ = terminate.recv() => return Ok(End::Signal(15)),
                _ = hangup.recv() => return Ok(End::Signal(1)),
                _ = interrupt.recv() => return Ok(End::Signal(2)),
                _ = stop.recv() => self.suspend = true,
                key = keys.next() => match key {
                    Some(Ok(event)) => first.extend(message(event)),
                    // The terminal is closed.
                    Some(Err(_)) | None => return Ok(End::Signal(1)),
                },
                _ = resized.recv() => {
                    let (width, height) = crossterm::terminal::size()?;
                    first.push(Msg::Resize(width, height));
                }
                () = tokio::time::sleep(due), if stale => {}
                Some(outcome) = self.rx.recv() => first.push(outcome),
                received = self.all_sessions.next(), if !all_ended => match received {
                    Some(Ok(received)) => first.push(Msg::Event(received)),
                    Some(Err(Error::Refused(why))) => return Ok(End::Refused(why)),
                    Some(Err(why)) => first.push(Msg::Ended(0, why.to_string())),
                    None => all_ended = true,
                },
                (subscription, received) = next_event(&mut self.open_session) => match received {
                    Some(Ok(received)) => first.push(Msg::SessionEvent(subscription, received)),
                    Some(Err(why)) => first.push(Msg::Ended(subscription, why.to_string())),
                    None => self.open_session = None,
                },
                _ = tick.tick() => first.push(Msg::Tick),
            }
            for msg in first {
                // The clock alone updates ages, once a second, and arms cards.
                stale |= !matches!(msg, Msg::Tick)
                    || app.shared.card.card.is_some()
                    || app.pages.new_session.form.is_some()
                    || now() / 1000 != app.shared.now / 1000;
                let effects = app.update(msg, now());
                self.perform(app, effects);
            }
            // Events that have already arrived belong in the same frame.
            for _ in 0..BATCH {
                let Some((subscription, follow)) = &mut self.open_session else { break };
                let subscription = *subscription;
                let Some(Some(Ok(received))) = futures_util::FutureExt::now_or_never(follow.next()) else { break };
                let effects = app.update(Msg::SessionEvent(subscription, received), now());
                self.perform(app, effects);
                stale = true;
            }
        }
    }

    fn draw(&mut self, app: &App) -> io::Result<()> {
        let (width, height) = app.shared.size;
        let area = Rect::new(0, 0, width.max(1), height.max(1));
        if self.terminal.get_frame().area() != area {
            self.terminal.resize(area)?;
        }
        self.terminal.draw(|frame| {
            let buffer = frame.buffer_mut();
            app.draw(buffer);
            sanitize::seal(buffer, app.shared.theme.depth);
        })?;
        self.guard.show()
    }

    /// Suspends as Ctrl-Z does, and resumes when the shell continues the process.
    fn stop(&mut self, app: &mut App) -> anyhow::Result<()> {
        self.guard.leave();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)?;
        self.guard.enter()?;
        let size = crossterm::terminal::size()?;
        let effects = app.update(Msg::Resize(size.0, size.1), now());
        self.perform(app, effects);
        self.invalidate()?;
        Ok(())
    }

    /// Hands the terminal to the user's editor until it ends. Returns the signal that ended the program meanwhile.
    async fn open_editor(
        &mut self,
        app: &mut App,
        request: EditRequest,
        (terminate, hangup): (&mut Signal, &mut Signal),
    ) -> anyhow::Result<Option<u8>> {
        let text = editor::file_below(&request.root, &request.path).and_then(|file| {
            let chosen = editor::chosen(|name| std::env::var(name).ok())?;
            Ok(editor::command(&chosen, &file, request.line))
        });
        let mut done = text.as_ref().map(|_| ()).map_err(String::clone);
        if let Ok([program, arguments @ ..]) = text.as_deref() {
            self.guard.leave();
            match tokio::process::Command::new(program).args(arguments).spawn() {
                Err(why) => done = Err(format!("{} was not started: {why}; check EDITOR", sanitize::line(program, 80))),
                Ok(mut child) => {
                    let ended = tokio::select! {
                        ended = child.wait() => ended,
                        _ = terminate.recv() => return Ok(Some(15)),
                        _ = hangup.recv() => return Ok(Some(1)),
                    };
                    if let Ok(status) = ended
                        && !status.success()
                    {
                        done = Err(format!("{}: {status}", sanitize::line(program, 80)));
                    }
                }
            }
            self.guard.enter()?;
        }
        let (width, height) = crossterm::terminal::size()?;
        for msg in [Msg::Resize(width, height), Msg::Edited(done)] {
            let effects = app.update(msg, now());
            self.perform(app, effects);
        }
        self.invalidate()?;
        Ok(None)
    }

    /// Redraws everything in the next frame. Not `clear`: it asks the terminal for its cursor position, and fails on a slow terminal.
    fn invalidate(&mut self) -> io::Result<()> {
        let area = self.terminal.get_frame().area();
        self.terminal.resize(area)
    }

    /// Reads an image of this machine for a prompt.
    fn read_image(&self, start_dir: &str, target: String, path: String, pasted: Option<String>) {
        let (tx, start_dir) = (self.tx.clone(), PathBuf::from(start_dir));
        tokio::spawn(async move {
            let read = tokio::task::spawn_blocking(move || attachments::read_image(&path, &start_dir)).await;
            let image = read.unwrap_or_else(|why| Err(format!("the image could not be read: {why}")));
            let _ = tx.send(Msg::ImageRead(target, pasted, image)).await;
        });
    }

    /// Reads the complete tool call that pages truncated.
    fn read_whole(&self, subscription: u64, session: String, call: conversation::WholeCall) {
        let (client, tx) = (self.client.clone(), self.tx.clone());
        tokio::spawn(async move {
            let loaded = whole(&client, &session, &call).await;
            let _ = tx.send(Msg::Whole(subscription, call.block, loaded)).await;
        });
    }

    /// Calls the gateway in a task of its own.
    fn call(&self, tag: CallTag, request: ApiRequest) -> tokio::task::AbortHandle {
        let (client, tx) = (self.client.clone(), self.tx.clone());
        let task = tokio::spawn(async move {
            let reply = CallReply::new(call(&client, &request).await);
            let _ = tx.send(Msg::Done(tag, reply)).await;
        });
        task.abort_handle()
    }

    fn perform(&mut self, app: &mut App, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Follow(session) => {
                    self.open_session = None;
                    let Some(session) = session else { continue };
                    let (client, tx, subscription) = (self.client.clone(), self.tx.clone(), app.following());
                    tokio::spawn(async move {
                        let opening = opening(&client, &session).await.ok().map(Box::new);
                        let _ = tx.send(Msg::Opened(subscription, opening)).await;
                    });
                }
                Effect::Attach { session, after } => {
                    let begin = after.map_or(FollowStart::Start, FollowStart::After);
                    let id: Option<SessionId> = session.parse().ok();
                    self.open_session = id.map(|id| (app.following(), self.client.attach(Some(&id), begin)));
                }
                Effect::Call { tag, request, key } => {
                    let key = match key {
                        CallKey::None => None,
                        CallKey::New => Some(self::key()),
                        CallKey::Repeatable(name) => Some(format!("{}-{name}", self.run)),
                    };
                    drop(self.call(tag, ApiRequest { key, ..request }));
                }
                Effect::Start { tag, request, key } => {
                    let key = Some(format!("{}-{key}", self.run));
                    self.starting = Some(self.call(tag, ApiRequest { key, ..request }));
                }
                Effect::ReadImage { target, path, pasted } => {
                    self.read_image(&app.shared.environment.start_dir, target, path, pasted)
                }
                Effect::Edit { root, path, line } => self.edit = Some(EditRequest { root, path, line }),
                Effect::SaveReview(session, review) => {
                    if let Err(why) = saved_reviews::save(&self.dir, &session, review) {
                        app.shared.show_notice(&format!("the review is kept only until you quit: {why}"), true);
                    }
                }
                // The connection closes with the task, and the gateway undoes the unfinished start.
                Effect::CancelStart => drop(self.starting.take().map(|task| task.abort())),
                Effect::Set { tag, session, call } => {
                    let (client, tx) = (self.client.clone(), self.tx.clone());
                    tokio::spawn(async move {
                        let (method, params) = call.request(&session);
                        let outcome = client.call::<IgnoredAny>(method, params).await;
                        let outcome = outcome.map(|_| ()).map_err(|why| why.to_string());
                        let _ = tx.send(Msg::Set(tag, outcome)).await;
                    });
                }
                Effect::Page { session, before } => {
                    let (client, tx, subscription) = (self.client.clone(), self.tx.clone(), app.following());
                    tokio::spawn(async move {
                        let page = page_before(&client, &session, &before).await;
                        let _ = tx.send(Msg::Page(subscription, page.map(Box::new))).await;
                    });
                }
                Effect::Whole { session, call } => self.read_whole(app.following(), session, call),
                Effect::Export { session, format, name } => {
                    let (client, tx) = (self.client.clone(), self.tx.clone());
                    tokio::spawn(async move {
                        let _ = tx.send(Msg::Exported(export(&client, &session, format, &name).await)).await;
                    });
                }
                Effect::Presence(session, focused) => {
                    let client = self.client.clone();
                    tokio::spawn(async move {
                        // A gateway without presence ignores this.
                        let params = Focus { session_id: session.map(SessionId::trusted), focused };
                        let _ = client.call::<IgnoredAny>("presence.update", params).await;
                    });
                }
                // A write error is reported by the next frame.
                Effect::Copy(text) => drop(self.guard.copy(&text)),
                Effect::Mouse(on) => drop(self.guard.mouse(on)),
                Effect::Suspend => self.suspend = true,
                Effect::Redraw => drop(self.invalidate()),
                Effect::SaveViewed(viewed_at) => save_viewed_at(&self.dir, &viewed_at),
            }
        }
    }
}

fn message(event: Event) -> Option<Msg> {
    Some(match event {
        Event::Key(key) => Msg::Key(key),
        Event::Paste(text) => Msg::Paste(text),
        Event::Mouse(mouse) => Msg::Mouse(mouse),
        Event::Resize(width, height) => Msg::Resize(width, height),
        Event::FocusGained => Msg::Focus(true),
        Event::FocusLost => Msg::Focus(false),
    })
}

/// Calls the gateway; an idempotent call is retried while the gateway is unreachable.
async fn call(client: &Client, request: &ApiRequest) -> Result<GatewayReply, Error> {
    let mut attempts = 0;
    loop {
        match client.perform(request).await {
            Err(Error::Lost(_) | Error::Unreached(_))
                if (request.key.is_some() || request.method == "GET") && attempts < ATTEMPTS_MAX =>
            {
                attempts += 1;
                tokio::time::sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// Makes a call of the gateway that only reads.
async fn read<R: DeserializeOwned>(client: &Client, api_call: ApiCall<R>) -> Result<R, Error> {
    call(client, &api_call.request).await?.read()
}

/// Makes an idempotency key.
fn key() -> String {
    let mut random = [0; 16];
    // Without randomness, the time makes the key unique enough.
    if getrandom::fill(&mut random).is_err() {
        random = now().to_le_bytes().repeat(2).try_into().unwrap_or_default();
    }
    format!("attach-{}", data_encoding::HEXLOWER.encode(&random))
}

/// Reads a session's newest page and its snapshot.
async fn opening(client: &Client, session: &str) -> Result<(Page, Snapshot), String> {
    let page = page_before(client, session, "now").await?;
    let snapshot = read(client, calls::snapshot(&SessionId::trusted(session), Some(0))).await;
    Ok((page, snapshot.map_err(|why| why.to_string())?))
}

/// Reads the merged page of a session before a cursor.
async fn page_before(client: &Client, session: &str, before: &str) -> Result<Page, String> {
    let bounds = (PAGE, PAGE_BYTES, OUTPUT);
    let page = read(client, calls::merged_events_before(&SessionId::trusted(session), before, bounds)).await;
    page.map_err(|why| match why {
        Error::Api(refusal) if refusal.code.is_empty() => "earlier events: the gateway gave no reason".to_owned(),
        Error::Api(refusal) => format!("earlier events: {}", refusal.message),
        why => why.to_string(),
    })
}

/// Reads all events of a tool call, merged, and the place of the last one.
async fn whole(
    client: &Client,
    session: &str,
    call: &conversation::WholeCall,
) -> Result<(Vec<EventEnvelope>, u64), String> {
    let session = SessionId::trusted(session);
    let (mut events, mut last, mut bytes) = (Vec::new(), 0, 0);
    for (first, end) in &call.parts {
        // The previous item may contain the beginning of this part.
        let mut from = (*first).max(last + 1);
        while from <= *end {
            let after = format!("{}:{}", call.epoch, from.saturating_sub(1));
            let page = calls::merged_events(Some(&session), &after, 1);
            let reply = client.perform(&page.request).await.map_err(|why| format!("not loaded: {why}"))?;
            bytes += reply.text.len();
            if bytes > WHOLE_MAX {
                return Err("it is longer than 8 MiB: export the session (E)".to_owned());
            }
            let page = reply.read::<Page>().ok().filter(|page| page.end.resume == ResumeVerdict::Ok);
            let event = page.and_then(|page| page.events.into_iter().next());
            let Some(event) = event.filter(|event| is_of_call(event, &call.id)) else {
                return Err("not loaded: the rest is no longer stored".to_owned());
            };
            last = event.position().0;
            from = last + 1;
            events.push(event);
        }
    }
    Ok((events, last))
}

/// Returns whether an event is an update of this tool call.
fn is_of_call(event: &EventEnvelope, call: &str) -> bool {
    matches!(event.entry(), Some(EntryBody::Tool { id, .. }) if id == call)
}

/// Exports a session into a new file in the working directory; returns its name.
async fn export(client: &Client, session: &str, format: &str, name: &str) -> Result<String, String> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let export = calls::export(&SessionId::trusted(session), format);
    let reply = client.perform(&export.request).await.map_err(|why| format!("not exported: {why}"))?;
    if !reply.is_ok() {
        let refusal = reply.refusal();
        let unknown = || format!("the gateway answered {}", reply.status);
        let why = if refusal.code.is_empty() { unknown() } else { refusal.message };
        return Err(format!("not exported: {why}; try `plexus export`"));
    }
    let stem: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).take(40).collect();
    let stem = stem.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    for n in 0..1000 {
        let number = if n == 0 { String::new() } else { format!("-{n}") };
        let file = format!("plexus-{stem}{number}.{format}");
        // A session may contain secrets: only its owner can read the file, and no existing file is overwritten.
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file) {
            Ok(mut out) => {
                out.write_all(reply.text.as_bytes()).map_err(|why| format!("cannot write {file}: {why}"))?;
                return Ok(std::path::absolute(&file).map_or(file, |path| path.display().to_string()));
            }
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(format!("cannot write {file} here: {why}")),
        }
    }
    Err("there are a thousand exports of it here already".into())
}

/// Saves the times when sessions were viewed. A failure loses only a mark in a list.
fn save_viewed_at(dir: &Path, viewed_at: &BTreeMap<String, i64>) {
    let mut newest: Vec<_> = viewed_at.iter().collect();
    newest.sort_by_key(|(_, at)| std::cmp::Reverse(**at));
    let some: BTreeMap<_, _> = newest.into_iter().take(VIEWED_MAX).collect();
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let Ok(text) = serde_json::to_vec(&some) else { return };
    let part = dir.join(format!("{VIEWED_FILE}.{}", std::process::id()));
    let made = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part);
    if made.and_then(|mut file| file.write_all(&text)).is_ok() && std::fs::rename(&part, dir.join(VIEWED_FILE)).is_err()
    {
        let _ = std::fs::remove_file(&part);
    }
}
