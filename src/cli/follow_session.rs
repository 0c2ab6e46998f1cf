//! Follows a session in a terminal without a full-screen UI: events are printed, requests are answered in place, other lines
//! are prompts.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, IsTerminal as _};
use std::time::{Duration, Instant};

use plexus_protocol::{
    Choice, Kind, Misfit, Question, QuestionOption, Request, RequestState, RequestType, RunStatus, SessionId,
};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::card::{card, how, one, questions};
use super::client::{Client, failure};
use super::commands::{Answered, print, send_answer, send_prompt, whole};
use super::term::{Paint, line};
use super::view::{View, outcome};
use super::{CommandResult, FAILURE};
use plexus_client::{ClientEvent, Envelope, FollowStart};

/// A line that comes sooner after a card appeared was typed for something else, and answers nothing.
const ARMING: Duration = Duration::from_millis(500);
/// Lines typed ahead; more wait in the terminal.
const LINES: usize = 16;
/// Longest label of an option, in characters.
const LABEL: usize = 100;

/// Hides typed text in the terminal until dropped: for secrets.
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
    session: String,
    paint: Paint,
    view: View,
    /// Stdin is a terminal, so a person can answer.
    present: bool,
    open: VecDeque<Request>,
    /// The answers so far to the questions of the form that is shown.
    answers: Vec<Vec<String>>,
    shown_at: Option<Instant>,
    /// Set while the request that is shown asks for a secret.
    hidden: Option<HiddenInput>,
    /// Running and queued runs of all clients.
    runs: Vec<String>,
    /// Runs of prompts typed here: their prompt is not printed again, and their end is waited for.
    own: BTreeMap<String, Option<bool>>,
    cancelling: bool,
    prompt_shown: bool,
    gone: bool,
    live: bool,
    out: String,
}

/// Follows a session until the user leaves, or (without a terminal) until the prompt is done.
pub(crate) async fn follow_session(client: Client, session: SessionId, first: Option<String>) -> CommandResult {
    let present = std::io::stdin().is_terminal();
    let paint = Paint::stdout();
    let mut talk = FollowSession {
        client: client.clone(),
        session: session.to_string(),
        paint,
        view: View::new(paint, false),
        present,
        open: VecDeque::new(),
        answers: Vec::new(),
        shown_at: None,
        hidden: None,
        runs: Vec::new(),
        own: BTreeMap::new(),
        cancelling: false,
        prompt_shown: false,
        gone: false,
        live: false,
        out: String::new(),
    };
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut events = client.follow(Some(&session), FollowStart::Start);
    // Without a terminal, the prompt on the command line is the only input.
    let mut lines = if present || first.is_none() { Some(read_lines()?) } else { None };
    let mut first = first;
    loop {
        talk.flush()?;
        tokio::select! {
            next = events.next() => match next {
                Some(Ok(event)) => talk.on_event(event).await?,
                Some(Err(error)) => return Err(failure("following", &error).into()),
                None => return Ok(FAILURE),
            },
            next = next_line(&mut lines), if talk.live => match next {
                Some(text) => talk.typed(&text).await?,
                None => lines = None,
            },
            _ = interrupt.recv() => {
                if talk.runs.is_empty() || talk.cancelling {
                    return talk.leave();
                }
                talk.cancelling = true;
                let path = format!("/v1/sessions/{}/cancel", talk.session);
                match talk.client.post(&path, &json!({}), "cancelling").await {
                    Ok(_) => talk.note("· cancelling; press again to leave"),
                    Err(error) => talk.note(&format!("· {}", line(&format!("{error:#}"), 500))),
                }
            }
        }
        if talk.live
            && let Some(text) = first.take()
        {
            talk.say(&text).await?;
        }
        if talk.gone {
            talk.note("· the runtime is gone; the session can still be read (`plexus export`)");
            talk.flush()?;
            return Ok(FAILURE);
        }
        if lines.is_none() && talk.live {
            if present {
                return talk.leave();
            }
            if talk.own.values().all(Option::is_some) {
                talk.view.end_line(&mut talk.out);
                talk.flush()?;
                return Ok(if talk.own.values().all(|end| *end == Some(true)) { 0 } else { FAILURE });
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

/// Lines of stdin, read by a thread that the program does not wait for at its end.
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
        let ours = self.present && self.live && (self.runs.is_empty() || !self.open.is_empty());
        if self.out.is_empty() && self.prompt_shown == ours {
            return Ok(());
        }
        let mut text = String::new();
        if self.prompt_shown {
            // Overwrites the prompt sign; a half typed line stays in the terminal's buffer.
            text.push_str(if self.paint.is_on() { "\r\x1b[K" } else { "\n" });
        }
        if ours {
            self.view.end_line(&mut self.out);
        }
        text.push_str(&std::mem::take(&mut self.out));
        if ours {
            text.push_str(if self.open.is_empty() { "> " } else { "answer> " });
        }
        self.prompt_shown = ours;
        print(&text)
    }

    fn note(&mut self, text: &str) {
        let text = self.paint.dim(text);
        self.view.note(&text, &mut self.out);
    }

    fn leave(&mut self) -> CommandResult {
        self.prompt_shown = false;
        self.out.push('\n');
        let short = line(&self.session, LABEL);
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
                let runs = hello["runs"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|run| run["session_id"] == self.session.as_str());
                self.runs = runs.filter_map(|run| run["run_id"].as_str().map(str::to_owned)).collect();
                let open = hello["requests"].as_array().cloned().unwrap_or_default();
                let still: Vec<Request> = open.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect();
                let first = self.open.front().map(|one| one.request_id.clone());
                self.open.retain(|one| still.iter().any(|other| other.request_id == one.request_id));
                if self.open.front().map(|one| &one.request_id) != first.as_ref() {
                    self.reset_input();
                }
                for request in still {
                    self.opened(request).await;
                }
            }
            ClientEvent::Snapshot(snapshot) => self.view.snapshot(&snapshot, &mut self.out),
            ClientEvent::Live => {
                self.live = true;
                self.show_card();
            }
            ClientEvent::Lost(why) => {
                self.note(&format!("· the connection was lost ({}); reconnecting", line(&why, LABEL)))
            }
            ClientEvent::Session(session) => {
                if session["state"] == "exited" && session["session_id"] == self.session.as_str() {
                    self.gone = self.live;
                }
            }
            ClientEvent::SessionGone(session) => {
                if session == self.session {
                    self.note("· the session was deleted");
                    self.gone = true;
                }
            }
            // Sent only to clients that ask for the latest events.
            ClientEvent::Older | ClientEvent::Runtime(_) | ClientEvent::RuntimeGone(_) | ClientEvent::Presence(_) => {}
            ClientEvent::Event(envelope) => self.event(&envelope).await?,
        }
        Ok(())
    }

    async fn event(&mut self, envelope: &Envelope) -> anyhow::Result<()> {
        let run = envelope.run_id.as_str();
        match Kind::from_name(&envelope.kind) {
            Some(Kind::RequestOpened | Kind::RequestUpdated) => {
                if let Ok(request) = serde_json::from_value::<Request>(envelope.event.clone()) {
                    self.opened(request).await;
                }
                return Ok(());
            }
            Some(Kind::RequestResolved) => {
                let id = envelope.event["request_id"].as_str().unwrap_or_default();
                let first = self.open.front().is_some_and(|one| one.request_id.as_str() == id);
                let before = self.open.len();
                self.open.retain(|one| one.request_id.as_str() != id);
                if self.open.len() < before || !self.live {
                    self.note(&format!("· {}", outcome(&envelope.event)));
                }
                if first {
                    self.reset_input();
                    self.show_card();
                }
                return Ok(());
            }
            // A prompt typed here is on the screen already.
            Some(Kind::UserMessageChunk) if self.present && self.own.contains_key(run) => return Ok(()),
            Some(Kind::RunStarted) => self.began(run),
            Some(Kind::RunStatus) if envelope.event["status"] == json!(RunStatus::Queued) => self.began(run),
            Some(Kind::RunEnded) => {
                self.runs.retain(|one| one != run);
                self.cancelling &= !self.runs.is_empty();
                if let Some(end) = self.own.get_mut(run) {
                    *end = Some(envelope.event["status"] == json!(RunStatus::Completed));
                }
            }
            _ => {}
        }
        self.view.event(envelope, &mut self.out);
        Ok(())
    }

    fn began(&mut self, run: &str) {
        if !self.runs.iter().any(|one| one == run) {
            self.runs.push(run.to_owned());
        }
    }

    /// Discards typed input: the request to answer is another one, or has changed.
    fn reset_input(&mut self) {
        self.shown_at = None;
        self.hidden = None;
        self.answers.clear();
    }

    /// Handles a request that opened or changed. A truncated one is fetched whole before it is shown.
    async fn opened(&mut self, mut request: Request) {
        if request.state != RequestState::Open || request.session_id.as_str() != self.session {
            return;
        }
        let known = self.open.iter().position(|one| one.request_id == request.request_id);
        if known.is_some_and(|at| self.open[at].revision >= request.revision) {
            return;
        }
        if request.display_truncated {
            match whole(&self.client, &request).await {
                Ok(all) if all.state == RequestState::Open => request = all,
                // Another event reports its end.
                Ok(_) => return,
                // The truncated request is shown; allowing it will be refused.
                Err(error) => self.note(&format!("· {}", line(&format!("{error:#}"), 500))),
            }
        }
        match known {
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
        let Some(request) = self.open.front().filter(|_| self.live && self.shown_at.is_none()) else { return };
        let mut text = card(request, self.paint);
        if self.open.len() > 1 {
            text.push_str(&format!("  ({} more requests are waiting)\n", self.open.len() - 1));
        }
        if self.present {
            text.push_str(&choices(request, self.paint));
        } else {
            text.push_str(&format!("  waits: {}\n", how(request)));
        }
        if self.present && request.secret {
            self.hidden = HiddenInput::new();
        }
        self.view.end_line(&mut self.out);
        self.out.push_str(&text);
        self.shown_at = Some(Instant::now());
    }

    async fn say(&mut self, text: &str) -> anyhow::Result<()> {
        match send_prompt(&self.client, &self.session, text).await {
            // The next event tells whether the prompt is queued.
            Ok(run) => {
                self.began(&run);
                self.own.insert(run, None);
            }
            Err(error) if self.present => self.note(&format!("· {}", line(&format!("{error:#}"), 500))),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn typed(&mut self, text: &str) -> anyhow::Result<()> {
        // The terminal has moved to the next line by itself.
        self.prompt_shown = false;
        let trimmed = text.trim();
        if !self.present {
            return if trimmed.is_empty() { Ok(()) } else { self.say(text).await };
        }
        let Some(request) = self.open.front().cloned() else {
            return if trimmed.is_empty() { Ok(()) } else { self.say(text).await };
        };
        if let Some(prompt) = trimmed.strip_prefix('>') {
            return self.say(prompt.trim()).await;
        }
        if self.shown_at.is_none_or(|at| at.elapsed() < ARMING) {
            self.note("· typed before the request could be read: type it again");
            return Ok(());
        }
        let asked = questions(&request);
        let answer = if asked.is_empty() {
            understand(&request, trimmed)
        } else {
            match reply(asked, &mut self.answers, trimmed) {
                Ok(Some(answer)) => Ok(answer),
                Ok(None) => {
                    let next = question(asked, self.answers.len(), self.paint);
                    self.out.push_str(&next);
                    return Ok(());
                }
                Err(help) => Err(help),
            }
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(help) => {
                self.note(&format!("· {help}"));
                return Ok(());
            }
        };
        match send_answer(&self.client, &request, answer).await {
            // The next event reports it.
            Ok(Answered::Won(_)) => {}
            Ok(Answered::Lost(receipt)) => self.note(&format!("· too late: {}", outcome(&receipt))),
            Err(error) => {
                self.note(&format!("· {}", line(&format!("{error:#}"), 500)));
                if !std::mem::take(&mut self.answers).is_empty() {
                    let first = question(questions(&request), 0, self.paint);
                    self.out.push_str(&first);
                }
            }
        }
        Ok(())
    }
}

/// The next question of a form, and how to answer it.
fn question(asked: &[Question], at: usize, paint: Paint) -> String {
    let Some(question) = asked.get(at) else { return String::new() };
    let mut out = one(question, at, asked.len(), paint);
    let how = match (question.options.is_empty(), question.multiple) {
        (true, _) => "type the answer",
        (false, false) if question.free_text => "type a number, or your own text",
        (false, false) => "type a number",
        (false, true) if question.free_text => "type a number, or several (1 3), or your own text",
        (false, true) => "type a number, or several (1 3)",
    };
    let empty = if question.optional { "; an empty line skips it" } else { "" };
    out.push_str(&format!("  {how}{empty}; - gives no answer\n"));
    out
}

/// Takes a typed line as the answer to the next question: the whole answer once all questions have one. The error says which
/// answers are valid.
fn reply(asked: &[Question], answers: &mut Vec<Vec<String>>, text: &str) -> Result<Option<Value>, String> {
    let Some(question) = asked.get(answers.len()) else { return Err("there is no open request".into()) };
    if text == "-" {
        return Ok(Some(json!({ "answers": {} })));
    }
    let numbers: Option<Vec<usize>> =
        text.split([' ', ',']).filter(|word| !word.is_empty()).map(|word| word.parse().ok()).collect();
    let named = |option: &&QuestionOption| option.label.eq_ignore_ascii_case(text) || option.id == text;
    let words: Vec<String> = match numbers.filter(|_| !question.options.is_empty() && !text.is_empty()) {
        Some(numbers) => {
            let option = |n: &usize| question.options.get(n.checked_sub(1)?).map(|option| option.id.clone());
            let ids: Option<Vec<String>> = numbers.iter().map(option).collect();
            ids.ok_or_else(|| format!("type 1 to {}", question.options.len()))?
        }
        None if text.is_empty() => Vec::new(),
        None => match question.options.iter().find(named) {
            Some(option) => vec![option.id.clone()],
            None if question.free_text || question.options.is_empty() => vec![text.to_owned()],
            None => return Err(format!("type 1 to {}", question.options.len())),
        },
    };
    let own: Vec<String> =
        words.iter().filter(|word| !question.options.iter().any(|option| option.id == **word)).cloned().collect();
    match question.misfit(words.len() - own.len(), &own) {
        None => {}
        Some(Misfit::Missing) => return Err("this question must be answered".into()),
        Some(Misfit::Several) => return Err("only one answer is possible: type one number".into()),
        Some(Misfit::NotA(_)) => return Err("enter a number".into()),
        Some(misfit @ (Misfit::Pattern | Misfit::Form)) => {
            let fits = &question.fits;
            let wanted = if misfit == Misfit::Pattern { &fits.pattern } else { &fits.format };
            // Debug-escaped, so safe to show.
            return Err(format!("that does not fit {:?}", wanted.as_deref().unwrap_or_default()));
        }
        Some(Misfit::Bounds { least, most }) => {
            let bound = |word: &str, n: Option<f64>| n.map(|n| format!("{word} {n}"));
            let bounds = [bound("at least", least), bound("at most", most)].into_iter().flatten();
            return Err(format!("that does not fit: {}", bounds.collect::<Vec<_>>().join(", ")));
        }
    }
    answers.push(words);
    if answers.len() < asked.len() {
        return Ok(None);
    }
    let mut members = serde_json::Map::new();
    for (question, words) in asked.iter().zip(answers.iter()).filter(|(_, words)| !words.is_empty()) {
        members.insert(question.id.clone(), words.clone().into());
    }
    Ok(Some(json!({ "answers": members })))
}

/// The lines under a card that say how to answer.
fn choices(request: &Request, paint: Paint) -> String {
    let mut out = String::new();
    let asked = questions(request);
    if !asked.is_empty() {
        // The card shows the questions themselves.
        return match asked {
            [_] => question(asked, 0, paint).lines().last().map(|line| format!("{line}\n")).unwrap_or_default(),
            _ => question(asked, 0, paint),
        };
    }
    match request.kind {
        RequestType::Prompt => out.push_str("  type the text; an empty line cancels\n"),
        RequestType::Pick => {
            for (n, item) in request.items.iter().enumerate() {
                out.push_str(&format!("  {}  {}\n", n + 1, line(&item.label, LABEL)));
            }
            let several = if request.multi { ", or several (1 3)" } else { "" };
            out.push_str(&format!("  type a number{several}; an empty line cancels\n"));
        }
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => {
            for (n, offer) in request.options.iter().enumerate() {
                let key = match offer.kind {
                    Choice::AllowOnce => " y",
                    Choice::AllowAlways => " a",
                    Choice::RejectOnce => " n",
                    Choice::RejectAlways | Choice::Other => "",
                };
                let key = if once(request, n, offer.kind) { key } else { "" };
                out.push_str(&format!("  {}{key}  {}\n", n + 1, line(&offer.label, LABEL)));
            }
            let reason = if request.allow_reason { ", optionally with a reason (n too risky)" } else { "" };
            out.push_str(&format!("  type a number or letter{reason}\n"));
        }
    }
    out
}

/// Whether the option is the first of its kind, so that the kind's letter means it.
fn once(request: &Request, at: usize, kind: Choice) -> bool {
    request.options.iter().position(|offer| offer.kind == kind) == Some(at)
}

/// Reads a typed line as an answer; the error says which answers are valid.
fn understand(request: &Request, text: &str) -> Result<Value, String> {
    let numbers = |count: usize| format!("a request is open: type 1 to {count}, or `>` and a text to send a prompt");
    match request.kind {
        RequestType::Prompt => Ok(if text.is_empty() { json!({ "value": null }) } else { json!({ "value": text }) }),
        RequestType::Pick => {
            let mut ids = Vec::new();
            for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
                let item = word.parse::<usize>().ok().and_then(|n| request.items.get(n.checked_sub(1)?));
                ids.push(item.ok_or_else(|| numbers(request.items.len()))?.id.clone());
            }
            if ids.len() > 1 && !request.multi {
                return Err("only one can be chosen: type one number".into());
            }
            Ok(json!({ "ids": ids }))
        }
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => {
            let (word, reason) = text.split_once(' ').unwrap_or((text, ""));
            let by_kind = |kind: Choice| request.options.iter().find(|offer| offer.kind == kind);
            let offer = match word {
                "y" | "yes" => by_kind(Choice::AllowOnce),
                "a" => by_kind(Choice::AllowAlways),
                "n" | "no" => by_kind(Choice::RejectOnce),
                other => other.parse::<usize>().ok().and_then(|n| request.options.get(n.checked_sub(1)?)),
            };
            let offer = offer.ok_or_else(|| numbers(request.options.len()))?;
            let mut answer = json!({ "option_id": offer.id });
            match reason.trim() {
                "" => {}
                _ if !request.allow_reason => {
                    return Err("this agent does not accept a reason: type only the number or letter".into());
                }
                reason => answer["reason"] = reason.into(),
            }
            Ok(answer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: &str, more: Value) -> Request {
        let mut wire = json!({
            "request_id": "q_1", "session_id": "s_1", "run_id": "r_1", "runtime_id": "demo", "generation": 1, "type": kind,
            "state": "open", "title": "t", "display": "d", "warnings": [], "digest": "x", "options": [],
            "allow_reason": false, "allow_remember": false, "opened_at": "2026-01-01T00:00:00Z",
        });
        for (key, value) in more.as_object().unwrap() {
            wire[key] = value.clone();
        }
        serde_json::from_value(wire).unwrap()
    }

    #[test]
    fn typed_lines_answer_only_as_the_card_says() {
        let options = json!([
            { "id": "always", "label": "Always", "kind": "allow_always" },
            { "id": "once", "label": "Once", "kind": "allow_once" },
            { "id": "no", "label": "No", "kind": "reject_once" },
        ]);
        let plain = request("permission", json!({ "options": options }));
        let with_reason = request("confirm", json!({ "options": options, "allow_reason": true }));
        let items = json!([{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }]);
        let pick = request("pick", json!({ "items": items }));
        let several = request("pick", json!({ "items": items, "multi": true }));
        let text = request("prompt", json!({}));
        for (request, typed, answer) in [
            (&plain, "1", json!({ "option_id": "always" })),
            (&plain, "a", json!({ "option_id": "always" })),
            (&plain, "y", json!({ "option_id": "once" })),
            (&plain, "no", json!({ "option_id": "no" })),
            (&with_reason, "n too risky", json!({ "option_id": "no", "reason": "too risky" })),
            (&pick, "2", json!({ "ids": ["b"] })),
            (&pick, "", json!({ "ids": [] })),
            (&several, "1, 2", json!({ "ids": ["a", "b"] })),
            (&text, "hello you", json!({ "value": "hello you" })),
            (&text, "", json!({ "value": null })),
        ] {
            assert_eq!(understand(request, typed), Ok(answer), "{typed:?}");
        }
        for (request, typed) in [
            (&plain, ""),
            (&plain, "0"),
            (&plain, "4"),
            (&plain, "yes please"),
            (&plain, "do something else"),
            (&plain, "-1"),
            (&pick, "3"),
            (&pick, "1 2"),
            (&pick, "x"),
            (&several, "1 9"),
        ] {
            assert!(understand(request, typed).is_err(), "{typed:?}");
        }
    }

    #[test]
    fn questions_of_a_form_are_answered_in_turn() {
        let form = request(
            "prompt",
            json!({ "subject": { "type": "question", "questions": [
                { "id": "db", "text": "Which?", "multiple": false, "free_text": true,
                    "options": [{ "id": "pg", "label": "Postgres" }, { "id": "lite", "label": "SQLite" }] },
                { "id": "with", "text": "With?", "multiple": true, "free_text": false, "fits": { "most": 2.0 },
                    "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }, { "id": "c", "label": "C" }] },
                { "id": "port", "text": "Port?", "multiple": false, "free_text": true, "optional": true, "options": [],
                    "fits": { "number": "integer", "least": 1024.0 } },
            ] } }),
        );
        let asked = questions(&form);
        let mut answers = Vec::new();
        let mut say = |text: &str| reply(asked, &mut answers, text);
        for wrong in ["3", "", "1 2"] {
            assert!(say(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(say("sqlite"), Ok(None));
        for wrong in ["x", "1 2 3", "0", ""] {
            assert!(say(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(say("1, 3"), Ok(None));
        for wrong in ["x", "80", "8080.5"] {
            assert!(say(wrong).is_err(), "{wrong:?}");
        }
        let answers = json!({ "answers": { "db": ["lite"], "with": ["a", "c"] } });
        assert_eq!(say(""), Ok(Some(answers)));
        let mut answers = vec![vec!["own words".to_owned()]];
        assert_eq!(reply(asked, &mut answers, "-"), Ok(Some(json!({ "answers": {} }))));
        let shown = choices(&form, Paint::none());
        assert!(shown.contains("1  Postgres") && shown.contains("question 1 of 3"), "{shown}");
    }

    #[test]
    fn card_lists_every_way_to_answer() {
        let options = json!([
            { "id": "x", "label": "Allow\u{1b}[2J", "kind": "allow_once" },
            { "id": "y", "label": "Deny", "kind": "reject_once" },
        ]);
        let request = request("permission", json!({ "options": options }));
        assert_eq!(
            choices(&request, Paint::none()),
            "  1 y  Allow\\u{1b}[2J\n  2 n  Deny\n  type a number or letter\n"
        );
    }
}
