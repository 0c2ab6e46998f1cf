//! Follows a session in a terminal without a full-screen UI: events are printed, requests are answered in place, other lines
//! are prompts. [`typed_line`](super::typed_line) reads the lines that answer.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, IsTerminal as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plexus_client::{ClientEvent, FollowStart, calls};
use plexus_protocol::api::history::EventEnvelope;
use plexus_protocol::api::sessions::CancelRun;
use plexus_protocol::transcript::Outcome;
use plexus_protocol::{Kind, Request, RequestState, RunBody, RunStatus, SessionId, SessionInfo, SessionState};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::card::{answer_command, card};
use super::client::{Client, failure};
use super::failure::{CommandResult, FAILURE};
use super::output::{Paint, clean, line, print, unreadable};
use super::prompts::send_prompt;
use super::requests::{AnswerOutcome, send_answer, whole_request};
use super::typed_line::{AnswerStep, TypedLine, choices, keys, read_typed_line};
use super::view::{View, outcome_text};

/// Time after a card appeared in which typed lines have no effect, since they were typed for an earlier prompt.
const ARMING: Duration = Duration::from_millis(500);
/// Maximum number of lines typed ahead; further ones wait in the terminal.
const LINES: usize = 16;
/// Maximum length of an option's label, in characters.
const LABEL: usize = 100;

/// Hides typed text in the terminal until dropped, for secrets.
struct HiddenInput(rustix::termios::Termios);

impl HiddenInput {
    fn new() -> Option<Self> {
        let before = rustix::termios::tcgetattr(std::io::stdin()).ok()?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(rustix::termios::LocalModes::ECHO);
        rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Now, &hidden).ok()?;
        Some(Self(before))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Now, &self.0);
    }
}

/// The state of following a session.
struct FollowSession {
    client: Client,
    session: SessionId,
    paint: Paint,
    view: View,
    /// `true` if stdin is a terminal, so that the user can answer.
    interactive: bool,
    open: VecDeque<Request>,
    /// The progress of the answer to the displayed request.
    answer_step: AnswerStep,
    displayed_at: Option<Instant>,
    /// `Some` while the displayed request asks for a secret.
    hidden: Option<HiddenInput>,
    /// The running and queued runs of all clients.
    runs: Vec<String>,
    /// The runs of prompts typed here: their prompts are not printed again, and the command waits for their end.
    own_runs: BTreeMap<String, Option<bool>>,
    cancelling: bool,
    prompt_displayed: bool,
    ended: bool,
    live: bool,
    out: String,
}

/// Follows a session that was opened.
pub(super) async fn follow_opened(client: Client, session: SessionInfo, prompt: Option<String>) -> CommandResult {
    let SessionInfo { session_id: id, cwd, .. } = session;
    let paint = Paint::stdout();
    print(&format!("session {} in {}\n", paint.bold(id.as_str()), clean(&cwd)))?;
    print(&paint.dim(&format!("open it in a browser: {} (`plexus open` signs in)\n", client.url())))?;
    follow_session(client, id, prompt).await
}

/// Follows a session until the user leaves, or (without a terminal) until the prompt has been processed.
pub(crate) async fn follow_session(client: Client, session: SessionId, first: Option<String>) -> CommandResult {
    let interactive = std::io::stdin().is_terminal();
    let paint = Paint::stdout();
    let mut follow = FollowSession {
        client: client.clone(),
        session: session.clone(),
        paint,
        view: View::new(paint, false),
        interactive,
        open: VecDeque::new(),
        answer_step: AnswerStep::default(),
        displayed_at: None,
        hidden: None,
        runs: Vec::new(),
        own_runs: BTreeMap::new(),
        cancelling: false,
        prompt_displayed: false,
        ended: false,
        live: false,
        out: String::new(),
    };
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut events = client.follow(Some(&session), FollowStart::Start);
    // Without a terminal, the prompt on the command line is the only input.
    let mut lines = if interactive || first.is_none() { Some(read_lines()?) } else { None };
    let mut first = first;
    loop {
        follow.flush()?;
        tokio::select! {
            next = events.next() => match next {
                Some(Ok(event)) => follow.on_event(event).await?,
                Some(Err(error)) => return Err(failure("following", &error).into()),
                None => return Ok(FAILURE),
            },
            next = next_line(&mut lines), if follow.live => match next {
                Some(text) => follow.handle_line(&text).await?,
                None => lines = None,
            },
            _ = interrupt.recv() => {
                if follow.runs.is_empty() || follow.cancelling {
                    return follow.leave();
                }
                follow.cancelling = true;
                let call = calls::cancel(&follow.session, &CancelRun::default());
                match follow.client.run(call, "cancelling").await {
                    Ok(_) => follow.note("· cancelling; press again to leave"),
                    Err(error) => follow.note(&format!("· {}", line(&format!("{error:#}"), 500))),
                }
            }
        }
        if follow.live
            && let Some(text) = first.take()
        {
            follow.send_prompt_text(&text).await?;
        }
        if follow.ended {
            follow.note("· the runtime was removed; the session can still be read (`plexus export`)");
            follow.flush()?;
            return Ok(FAILURE);
        }
        if lines.is_none() && follow.live {
            if interactive {
                return follow.leave();
            }
            if follow.own_runs.values().all(Option::is_some) {
                follow.view.end_line(&mut follow.out);
                follow.flush()?;
                return Ok(if follow.own_runs.values().all(|end| *end == Some(true)) { 0 } else { FAILURE });
            }
        }
    }
}

async fn next_line(lines: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match lines {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}

/// Reads lines of stdin in a thread that the program does not wait for at its end.
fn read_lines() -> std::io::Result<mpsc::Receiver<String>> {
    let (tx, rx) = mpsc::channel(LINES);
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            match stdin.read_until(b'\n', &mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
                    if tx.blocking_send(text).is_err() {
                        return;
                    }
                }
            }
        }
    })?;
    Ok(rx)
}

impl FollowSession {
    /// Writes pending output, and the prompt sign when input is expected.
    fn flush(&mut self) -> anyhow::Result<()> {
        let shows_prompt = self.interactive && self.live && (self.runs.is_empty() || !self.open.is_empty());
        if self.out.is_empty() && self.prompt_displayed == shows_prompt {
            return Ok(());
        }
        let mut text = String::new();
        if self.prompt_displayed {
            // Overwrites the prompt sign; a half-typed line stays in the terminal's buffer.
            text.push_str(if self.paint.is_on() { "\r\x1b[K" } else { "\n" });
        }
        if shows_prompt {
            self.view.end_line(&mut self.out);
        }
        text.push_str(&std::mem::take(&mut self.out));
        if shows_prompt {
            text.push_str(if self.open.is_empty() { "> " } else { "answer> " });
        }
        self.prompt_displayed = shows_prompt;
        print(&text)
    }

    fn note(&mut self, text: &str) {
        let text = self.paint.dim(text);
        self.view.note(&text, &mut self.out);
    }

    fn leave(&mut self) -> CommandResult {
        self.prompt_displayed = false;
        self.out.push('\n');
        let short = line(self.session.as_str(), LABEL);
        self.note(&format!(
            "· left; the session continues: `plexus tail {short}`, `plexus prompt {short} TEXT`, `plexus open`"
        ));
        let text = std::mem::take(&mut self.out);
        print(&text)?;
        Ok(0)
    }

    async fn on_event(&mut self, client_event: ClientEvent) -> anyhow::Result<()> {
        match client_event {
            ClientEvent::Hello(hello) => {
                let runs = hello.runs.iter().filter(|run| run.session_id == self.session);
                self.runs = runs.map(|run| run.run_id.to_string()).collect();
                let open_requests = hello.requests;
                if let Some(text) = unreadable(open_requests.unreadable(), "request") {
                    self.note(&format!("? {text}"));
                }
                let first = self.open.front().map(|request| request.request_id.clone());
                self.open.retain(|request| open_requests.iter().any(|other| other.request_id == request.request_id));
                if self.open.front().map(|request| &request.request_id) != first.as_ref() {
                    self.reset_input();
                }
                for request in open_requests {
                    self.request_opened(Arc::unwrap_or_clone(request)).await;
                }
            }
            ClientEvent::Snapshot(snapshots) => self.view.snapshot(&snapshots, &mut self.out),
            ClientEvent::Live => {
                self.live = true;
                self.show_card();
            }
            ClientEvent::Lost(reason) => {
                self.note(&format!("· the connection was lost ({}); reconnecting", line(&reason, LABEL)))
            }
            ClientEvent::Session(session) => {
                if session.state == SessionState::Exited && session.session_id == self.session {
                    self.ended = self.live;
                }
            }
            ClientEvent::SessionDeleted(session) => {
                if session == self.session {
                    self.note("· the session was deleted");
                    self.ended = true;
                }
            }
            // The gateway sends these only to clients that follow the latest events.
            ClientEvent::Older
            | ClientEvent::Runtime(_)
            | ClientEvent::RuntimeRemoved(_)
            | ClientEvent::Presence(_) => {}
            ClientEvent::Event(event) => self.event(&event.envelope).await?,
        }
        Ok(())
    }

    async fn event(&mut self, envelope: &EventEnvelope) -> anyhow::Result<()> {
        let run = envelope.run_id.as_str();
        match envelope.known_kind() {
            Some(Kind::RequestOpened | Kind::RequestUpdated) => match envelope.body::<Request>() {
                Some(request) => {
                    self.request_opened(request).await;
                    return Ok(());
                }
                // The view names it, with the command that answers it; `hello` counts those that were open before.
                None if self.live => {}
                None => return Ok(()),
            },
            Some(Kind::RequestResolved) => {
                let outcome = Outcome::read(&envelope.body().unwrap_or_default());
                let closed = |request: &Request| request.request_id.as_str() == outcome.request_id;
                let first = self.open.front().is_some_and(closed);
                let before = self.open.len();
                self.open.retain(|request| !closed(request));
                if self.open.len() < before || !self.live {
                    self.note(&format!("· {}", outcome_text(outcome)));
                }
                if first {
                    self.reset_input();
                    self.show_card();
                }
                return Ok(());
            }
            // A prompt that was typed here is already on the screen.
            Some(Kind::UserMessageChunk) if self.interactive && self.own_runs.contains_key(run) => return Ok(()),
            Some(Kind::RunStarted) => self.run_began(run),
            Some(Kind::RunStatus) if envelope.body().is_some_and(|body: RunBody| body.status == RunStatus::Queued) => {
                self.run_began(run);
            }
            Some(Kind::RunEnded) => {
                self.runs.retain(|other| other != run);
                self.cancelling &= !self.runs.is_empty();
                if let Some(end) = self.own_runs.get_mut(run) {
                    *end = Some(envelope.body().is_some_and(|body: RunBody| body.status == RunStatus::Completed));
                }
            }
            _ => {}
        }
        self.view.event(envelope, &mut self.out);
        Ok(())
    }

    fn run_began(&mut self, run: &str) {
        if !self.runs.iter().any(|other| other == run) {
            self.runs.push(run.to_owned());
        }
    }

    /// Discards typed input, since the request to answer has changed or is another one.
    fn reset_input(&mut self) {
        self.displayed_at = None;
        self.hidden = None;
        self.answer_step = AnswerStep::default();
    }

    /// Handles a request that was opened or changed. A truncated one is fetched completely before it is shown.
    async fn request_opened(&mut self, mut request: Request) {
        if request.state != RequestState::Open || request.session_id != self.session {
            return;
        }
        let position = self.open.iter().position(|known| known.request_id == request.request_id);
        if position.is_some_and(|at| self.open[at].revision >= request.revision) {
            return;
        }
        if request.display_truncated {
            match whole_request(&self.client, &request).await {
                Ok(whole) if whole.value.state == RequestState::Open => request = whole.value,
                // Another event reports its end.
                Ok(_) => return,
                // The truncated request is shown; an approval of it will be refused.
                Err(error) => self.note(&format!("· {}", line(&format!("{error:#}"), 500))),
            }
        }
        match position {
            Some(at) => {
                self.open[at] = request;
                if at == 0 {
                    self.reset_input();
                }
            }
            None => self.open.push_back(request),
        }
        self.show_card();
    }

    /// Shows the oldest open request, once.
    fn show_card(&mut self) {
        let Some(request) = self.open.front().filter(|_| self.live && self.displayed_at.is_none()) else { return };
        let mut text = card(request, self.paint);
        if self.open.len() > 1 {
            text.push_str(&format!("  ({} more requests are waiting)\n", self.open.len() - 1));
        }
        if self.interactive {
            text.push_str(&choices(request, self.paint));
        } else {
            text.push_str(&format!("  waits: {}\n", answer_command(request)));
        }
        if self.interactive && request.secret {
            self.hidden = HiddenInput::new();
        }
        self.view.end_line(&mut self.out);
        self.out.push_str(&text);
        self.displayed_at = Some(Instant::now());
    }

    async fn send_prompt_text(&mut self, text: &str) -> anyhow::Result<()> {
        match send_prompt(&self.client, &self.session, text).await {
            // The next event reports whether the prompt is queued.
            Ok(accepted) => {
                let run = accepted.value.run_id;
                self.run_began(run.as_str());
                self.own_runs.insert(run.to_string(), None);
            }
            Err(error) if self.interactive => self.note(&format!("· {}", line(&format!("{error:#}"), 500))),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn handle_line(&mut self, text: &str) -> anyhow::Result<()> {
        // The terminal has already moved to the next line.
        self.prompt_displayed = false;
        let trimmed = text.trim();
        if !self.interactive {
            return if trimmed.is_empty() { Ok(()) } else { self.send_prompt_text(text).await };
        }
        let Some(request) = self.open.front().cloned() else {
            return if trimmed.is_empty() { Ok(()) } else { self.send_prompt_text(text).await };
        };
        if trimmed == "?" {
            self.out.push_str(&keys());
            return Ok(());
        }
        if let Some(prompt) = trimmed.strip_prefix('>') {
            return self.send_prompt_text(prompt.trim()).await;
        }
        if self.displayed_at.is_none_or(|at| at.elapsed() < ARMING) {
            self.note("· typed before the request could be read: type it again");
            return Ok(());
        }
        let answer = match read_typed_line(&request, &mut self.answer_step, trimmed, self.paint) {
            TypedLine::Answer(answer) => answer,
            TypedLine::Next(text) => {
                self.out.push_str(&text);
                return Ok(());
            }
            TypedLine::Refused(help) => {
                self.note(&format!("· {help}"));
                return Ok(());
            }
        };
        match send_answer(&self.client, &request, answer).await {
            // The next event reports it.
            Ok(AnswerOutcome::Won(_)) => {}
            Ok(AnswerOutcome::Lost(receipt)) => {
                self.note(&format!("· too late: {}", outcome_text(Outcome::from_receipt(&receipt.value))))
            }
            Err(error) => {
                self.note(&format!("· {}", line(&format!("{error:#}"), 500)));
                self.out.push_str(&choices(&request, self.paint));
            }
        }
        Ok(())
    }
}
