//! The short commands, each with one call to the gateway.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::time::SystemTime;

use plexus_protocol::{
    Answers, Project, Question, Request, RequestState, RequestType, Scope, SessionId, SessionInfo, SessionState,
    Timestamp, answers,
};
use reqwest::Url;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::args;
use super::card::{card, seen, ways};
use super::client::{Client, choose, failure};
use super::home::Home;
use super::term::{Paint, SanitizedWriter, clean, line};
use super::view::{View, outcome};
use super::{CommandFailure, CommandResult, FAILURE, NOT_PERMITTED};
use plexus_client::{ClientEvent, Envelope, FollowStart};

/// Longest title in a listing, in characters.
pub(super) const TITLE: usize = 60;
/// Longest project in a list, in characters.
const PLACE: usize = 40;
/// Most items of one page of history; merged events are one item.
const PAST_ITEMS: usize = 1000;
/// Longest link shown, in characters.
const LINK: usize = 500;
/// Lifetime of the one-time code of `open`, in seconds; the gateway has the same bound.
const CODE_SECONDS: u64 = 120;
/// Longest typed confirmation that is read, in bytes.
const CONFIRMATION_MAX: u64 = 100;
/// Longest prompt read from stdin, in bytes: as much as the gateway takes.
const PROMPT_MAX: u64 = 16 << 20;

/// Writes a value as pretty JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print_as_json(&serde_json::to_vec_pretty(value).map_err(std::io::Error::from)?)
}

/// Writes JSON and a newline. Control characters are escaped, which does not change the value.
pub(crate) fn print_as_json(json: &[u8]) -> anyhow::Result<()> {
    let (mut harmless, mut bytes) = (SanitizedWriter::json(), Vec::with_capacity(json.len() + 1));
    harmless.push(json, &mut bytes);
    harmless.finish(&mut bytes);
    bytes.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&bytes)?;
    Ok(out.flush()?)
}

/// Writes text and flushes.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a remark for people to stderr.
pub(crate) fn remark(text: &str) {
    let _ = writeln!(std::io::stderr(), "plexus: {}", clean(text));
}

/// The time since `at`: `12 s`, `5 min`, `3 h`, `2 d`.
pub(crate) fn age(at: Timestamp) -> String {
    let now = Timestamp::from(SystemTime::now());
    let seconds = now.as_millis().saturating_sub(at.as_millis()).max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Rows under headings, in columns as wide as their content.
pub(crate) fn table(paint: Paint, heads: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([heads[column].chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let format = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
    let mut out = format!("{}\n", paint.dim(&format(&heads)));
    for row in rows {
        out.push_str(&format(row));
        out.push('\n');
    }
    out
}

fn state(session: &SessionInfo) -> &'static str {
    match session.state {
        SessionState::Idle => "idle",
        SessionState::Running => "running",
        SessionState::Waiting => "waiting",
        SessionState::Exited => "exited",
    }
}

/// Where a session works: `plexus@main`, `plexus/login@login-form` in the worktree `login`, or the last part of its folder.
fn place(session: &SessionInfo) -> String {
    let Some(Project { name, branch, worktree, .. }) = &session.project else {
        let folder = session.cwd.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        return folder.to_owned();
    };
    let worktree = worktree.as_ref().map(|worktree| format!("/{worktree}")).unwrap_or_default();
    let branch = branch.as_ref().map(|branch| format!("@{branch}")).unwrap_or_default();
    format!("{name}{worktree}{branch}")
}

pub(crate) async fn ls(args: args::Ls) -> CommandResult {
    if let Some(runtime) = &args.resumable {
        return super::resume::list(runtime, args.json).await;
    }
    let client = Client::find().await?;
    let mut sessions = client.sessions().await?;
    sessions.retain(|session| session.archived == args.archived);
    let runtimes = client.runtimes().await?;
    if args.json {
        print_json(&json!({ "sessions": sessions, "runtimes": runtimes }))?;
        return Ok(0);
    }
    let paint = Paint::stdout();
    let mut out = String::new();
    if sessions.is_empty() {
        let none = if args.archived { "no archived sessions" } else { "no sessions yet: `plexus run demo` starts one" };
        out.push_str(none);
        out.push('\n');
    } else {
        let rows: Vec<Vec<String>> = sessions
            .iter()
            .map(|session| {
                vec![
                    session.session_id.to_string(),
                    session.runtime_id.to_string(),
                    state(session).into(),
                    age(session.updated_at),
                    session.open_requests.to_string(),
                    line(&place(session), PLACE),
                    line(session.title.as_deref().unwrap_or(&session.cwd), TITLE),
                ]
            })
            .collect();
        out.push_str(&table(paint, &["SESSION", "RUNTIME", "STATE", "AGE", "REQUESTS", "PROJECT", "TITLE"], &rows));
    }
    if !runtimes.is_empty() {
        let rows: Vec<Vec<String>> = runtimes
            .iter()
            .map(|runtime| {
                let state = json!(runtime.state).as_str().unwrap_or_default().to_owned();
                let what = runtime.problem.as_deref().or(runtime.agent.as_deref()).unwrap_or_default();
                vec![
                    runtime.runtime_id.to_string(),
                    line(&runtime.dialect, TITLE),
                    state,
                    runtime.pid.map_or_else(|| "-".into(), |pid| pid.to_string()),
                    line(what, TITLE),
                ]
            })
            .collect();
        out.push('\n');
        out.push_str(&table(paint, &["RUNTIME", "DIALECT", "STATE", "PID", "AGENT"], &rows));
    }
    print(&out)?;
    Ok(0)
}

pub(crate) async fn tail(args: args::Tail) -> CommandResult {
    let client = Client::find().await?;
    let session = match &args.session {
        Some(meant) => Some(client.session(meant).await?.session_id),
        None => None,
    };
    let begin = match args.after.as_deref() {
        None | Some("" | "start") => FollowStart::Start,
        Some("now") => FollowStart::Now,
        Some(cursor) => {
            cursor
                .parse::<plexus_protocol::Cursor>()
                .map_err(|why| CommandFailure::plain(format!("--after: {why}")))?;
            FollowStart::After(cursor.into())
        }
    };
    let mut view = View::new(Paint::stdout(), session.is_none());
    let begin = if args.json { begin } else { past(&client, session.as_ref(), begin, &mut view).await? };
    let mut events = client.follow(session.as_ref(), begin);
    while let Some(next) = events.next().await {
        let mut out = String::new();
        match next.map_err(|error| failure("following", &error))? {
            ClientEvent::Event(envelope) if args.json => {
                print_as_json(envelope.raw.get().as_bytes())?;
            }
            ClientEvent::Event(envelope) => view.event(&envelope, &mut out),
            ClientEvent::Hello(hello) => match hello["resume"].as_str() {
                None | Some("ok") => {}
                Some("gap") => {
                    remark("some events after that cursor are no longer stored; the events after the gap follow")
                }
                Some(other) => {
                    remark(&format!("that cursor does not belong to this log ({other}); starting from a snapshot"))
                }
            },
            ClientEvent::Snapshot(snapshot) if !args.json => view.snapshot(&snapshot, &mut out),
            ClientEvent::Live if args.no_follow => {
                view.end_line(&mut out);
                print(&out)?;
                return Ok(0);
            }
            ClientEvent::Lost(why) => remark(&format!("the connection was lost ({why}); reconnecting")),
            ClientEvent::Snapshot(_)
            | ClientEvent::Older
            | ClientEvent::Live
            | ClientEvent::Session(_)
            | ClientEvent::SessionGone(_)
            | ClientEvent::Runtime(_)
            | ClientEvent::RuntimeGone(_)
            | ClientEvent::Presence(_) => {}
        }
        if !out.is_empty() {
            print(&out)?;
        }
    }
    Ok(0)
}

/// Shows the history page by page, merged, and returns the cursor to follow from. If the log cannot resume there, following
/// reports why.
async fn past(
    client: &Client,
    session: Option<&SessionId>,
    begin: FollowStart,
    view: &mut View,
) -> anyhow::Result<FollowStart> {
    #[derive(serde::Deserialize)]
    struct Page {
        events: Vec<Box<RawValue>>,
        next: String,
        resume: String,
    }
    let mut after = match &begin {
        FollowStart::Start => String::new(),
        FollowStart::After(cursor) => cursor.clone(),
        FollowStart::Now | FollowStart::Latest { .. } => return Ok(begin),
    };
    let of = session.map_or_else(|| "/v1/events".to_owned(), |session| format!("/v1/sessions/{session}/events"));
    loop {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("merge", "true")
            .append_pair("limit", &PAST_ITEMS.to_string())
            .append_pair("after", &after)
            .finish();
        let page: Page = client.get(&format!("{of}?{query}"), "reading the earlier events").await?;
        if page.resume != "ok" {
            return Ok(if after.is_empty() { begin } else { FollowStart::After(after) });
        }
        let mut out = String::new();
        let none = page.events.is_empty();
        for envelope in page.events.into_iter().filter_map(Envelope::read) {
            view.event(&envelope, &mut out);
        }
        print(&out)?;
        if none {
            return Ok(FollowStart::After(page.next));
        }
        after = page.next;
    }
}

/// The text of a prompt; `-` reads stdin.
pub(super) fn text_of(given: String) -> anyhow::Result<String> {
    if given != "-" {
        return Ok(given);
    }
    let mut text = Vec::new();
    std::io::stdin().lock().take(PROMPT_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > PROMPT_MAX {
        return Err(CommandFailure::plain(format!("the prompt on stdin is longer than {PROMPT_MAX} bytes: send less")));
    }
    let text = String::from_utf8(text)
        .map_err(|_| CommandFailure::plain("the prompt on stdin is not UTF-8 text: convert it first"))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Sends a prompt and returns the run.
pub(crate) async fn send_prompt(client: &Client, session: &str, text: &str) -> anyhow::Result<String> {
    let accepted =
        client.post(&format!("/v1/sessions/{session}/prompt"), &json!({ "text": text }), "prompting").await?;
    Ok(accepted["run_id"].as_str().unwrap_or_default().to_owned())
}

pub(crate) async fn prompt(args: args::Prompt) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let text = text_of(args.text)?;
    if !args.wait {
        let accepted =
            client.post(&format!("/v1/sessions/{session}/prompt"), &json!({ "text": text }), "prompting").await?;
        if args.json {
            print_json(&accepted)?;
        } else {
            let run = line(accepted["run_id"].as_str().unwrap_or_default(), TITLE);
            print(&format!("{run}{}\n", if accepted["queued"] == true { " (queued)" } else { "" }))?;
        }
        return Ok(0);
    }
    // Follow first, so that no event of the run is missed.
    let mut events = client.follow(Some(&session), FollowStart::Now);
    let mut run = None;
    let mut view = View::new(Paint::stdout(), false);
    while let Some(next) = events.next().await {
        let mut out = String::new();
        let mut end = None;
        match next.map_err(|error| failure("following", &error))? {
            ClientEvent::Live if run.is_none() => run = Some(send_prompt(&client, session.as_str(), &text).await?),
            ClientEvent::Event(envelope) if run.as_deref() == Some(&envelope.run_id) => {
                if args.json {
                    print_as_json(envelope.raw.get().as_bytes())?;
                } else {
                    view.event(&envelope, &mut out);
                }
                if envelope.kind == "run_ended" {
                    end = Some(envelope.event["status"] == "completed");
                }
            }
            ClientEvent::Lost(why) => remark(&format!("the connection was lost ({why}); reconnecting")),
            _ => {}
        }
        print(&out)?;
        if let Some(fine) = end {
            return Ok(if fine { 0 } else { FAILURE });
        }
    }
    Err(CommandFailure::plain("the end of the run was not received"))
}

pub(crate) async fn cancel(args: args::Cancel) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let done = client.post(&format!("/v1/sessions/{session}/cancel"), &json!({}), "cancelling").await?;
    print(&format!("cancelling {}\n", line(done["run_id"].as_str().unwrap_or(session.as_str()), TITLE)))?;
    Ok(0)
}

pub(crate) async fn rename(args: args::Rename) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let renamed = client.patch(&format!("/v1/sessions/{session}"), &json!({ "title": args.title }), "renaming").await?;
    print(&format!("{session} is now {}\n", line(renamed["title"].as_str().unwrap_or_default(), TITLE)))?;
    Ok(0)
}

pub(crate) async fn archive(args: args::Archive) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let what = if args.undo { "restoring the session" } else { "archiving" };
    client.patch(&format!("/v1/sessions/{session}"), &json!({ "archived": !args.undo }), what).await?;
    print(&format!("{session} is {}\n", if args.undo { "restored" } else { "archived" }))?;
    Ok(0)
}

pub(crate) async fn share(args: args::Share) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let path = format!("/v1/sessions/{session}/shares");
    let made = client.post(&path, &json!({ "hours": args.hours }), "making a link").await?;
    if args.json {
        print_json(&made)?;
        return Ok(0);
    }
    let (url, device) = (made["url"].as_str().unwrap_or_default(), made["device_id"].as_str().unwrap_or_default());
    print(&format!("{}\n", line(url, LINK)))?;
    // On stderr, so that `plexus share last | wl-copy` copies only the link.
    let _ = writeln!(
        std::io::stderr(),
        "anyone with this link can watch the session for {} h, but not act in it; revoke it with `plexus devices \
         revoke {}`",
        args.hours,
        line(device, TITLE)
    );
    Ok(0)
}

pub(crate) async fn requests(args: args::Requests) -> CommandResult {
    let client = Client::find().await?;
    let mut requests = client.requests(args.all).await?;
    for request in requests.iter_mut().filter(|request| request.display_truncated) {
        *request = whole(&client, request).await?;
    }
    if args.json {
        print_json(&json!({ "requests": requests }))?;
        return Ok(0);
    }
    if requests.is_empty() {
        print("no pending requests\n")?;
        return Ok(0);
    }
    let paint = Paint::stdout();
    let mut out = String::new();
    for request in &requests {
        let since = age(request.opened_at);
        out.push_str(&paint.bold(&format!("{}  {}  {since}", request.request_id, request.session_id)));
        out.push('\n');
        out.push_str(&card(request, paint));
        if request.state == RequestState::Open && !request.observe_only {
            out.push_str(&ways(request));
        }
        if let Some(receipt) = &request.receipt {
            out.push_str(&format!("  {}\n", outcome(&json!(receipt))));
        }
    }
    print(&out)?;
    Ok(0)
}

/// The whole of a request whose display was truncated.
pub(crate) async fn whole(client: &Client, request: &Request) -> anyhow::Result<Request> {
    client.get(&format!("/v1/requests/{}", request.request_id), "reading the request").await
}

/// The outcome of an answer.
pub(crate) enum Answered {
    /// This answer counts.
    Won(Value),
    /// Another answer was first, or the request had closed: the receipt.
    Lost(Value),
}

/// Sends an answer bound to the request as it was shown.
pub(crate) async fn send_answer(client: &Client, request: &Request, mut answer: Value) -> anyhow::Result<Answered> {
    if !request.digest.is_empty() {
        answer["digest"] = request.digest.as_str().into();
    }
    let mut key = [0u8; 16];
    getrandom::fill(&mut key)
        .map_err(|why| CommandFailure::plain(format!("the system provides no random numbers: {why}")))?;
    let key = data_encoding::HEXLOWER.encode(&key);
    let path = format!("/v1/requests/{}/answer", request.request_id);
    match client.try_post(&path, &answer, Some(&key), "answering").await? {
        Ok(receipt) => Ok(Answered::Won(serde_json::from_str(&receipt).unwrap_or_default())),
        Err(refused) if refused.problem["resolved_by"].is_object() => Ok(Answered::Lost(refused.problem)),
        Err(refused) => Err(refused.explain("answering").into()),
    }
}

/// The answer to each question: `--option ID=ANSWER`, or only the answer if there is one question.
fn answers_to(questions: &[Question], args: &args::Answer) -> anyhow::Result<Answers> {
    let mut answers = Answers::new();
    let ids = || questions.iter().map(|question| question.id.as_str()).collect::<Vec<_>>().join(", ");
    for given in args.option.iter().chain(&args.text) {
        // An identifier may contain `=`: the longest match counts.
        let named = questions.iter().filter_map(|question| {
            let words = given.strip_prefix(question.id.as_str())?.strip_prefix('=')?;
            Some((question.id.as_str(), words))
        });
        let (id, words) = match (named.max_by_key(|(id, _)| id.len()), questions) {
            (Some(named), _) => named,
            (None, [only]) => (only.id.as_str(), given.as_str()),
            (None, _) => {
                return Err(CommandFailure::plain(format!(
                    "say which question: --option ID=ANSWER, with an ID of {}",
                    ids()
                )));
            }
        };
        answers.entry(id.to_owned()).or_default().push(words.to_owned());
    }
    if answers.is_empty() {
        let how = format!("answer with --option ID=ANSWER for each of {}, or --deny", ids());
        return Err(CommandFailure::plain(format!("this request has several questions: {how}")));
    }
    let left: Vec<&str> = questions
        .iter()
        .filter(|question| !question.optional && !answers.contains_key(&question.id))
        .map(|question| question.id.as_str())
        .collect();
    if !left.is_empty() {
        let fix = "use --option ID=ANSWER for each; `plexus requests` lists them";
        return Err(CommandFailure::plain(format!("an answer is missing to {}: {fix}", left.join(", "))));
    }
    Ok(answers)
}

/// Checks that the person read the current revision: after a change, its digest must be given.
fn was_read(request: &Request, digest: Option<&str>, no: bool) -> anyhow::Result<()> {
    match digest {
        Some(read) if read.len() < 8 || !request.digest.starts_with(read) => Err(CommandFailure::plain(format!(
            "--digest {}: the request has changed: read it again with `plexus requests`",
            line(read, TITLE)
        ))),
        None if request.changed && !no => Err(CommandFailure::plain(format!(
            "this request has changed since it was first shown: read it again with `plexus requests`, then answer \
             with --digest {}",
            seen(request)
        ))),
        _ => Ok(()),
    }
}

/// The answer with this id, verb or label.
fn named<'a>(actions: &'a [answers::AnswerAction], word: &str) -> anyhow::Result<&'a answers::AnswerAction> {
    answers::find(actions, word).map_err(|why| {
        let all = actions.iter().filter_map(|action| {
            let id = action.answer.as_ref()?.option_id.as_ref()?;
            Some(format!("{} = {}", line(id, TITLE), action.text()))
        });
        let all = all.collect::<Vec<_>>().join(", ");
        let why = match why {
            answers::Unmatched::None => "no answer has this name",
            answers::Unmatched::Several => "several answers have this name",
        };
        CommandFailure::plain(format!("--option {}: {why}; this request takes {all}", line(word, TITLE)))
    })
}

/// Asks at a terminal before an answer that also covers later requests.
fn confirm_lasting(action: &answers::AnswerAction) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Ok(());
    }
    print(&format!(
        "{}: this also covers what the agent finds similar, from now on. Type yes to do it: ",
        action.text()
    ))?;
    let mut typed = String::new();
    std::io::stdin().lock().take(CONFIRMATION_MAX).read_line(&mut typed)?;
    match typed.trim() {
        "yes" => Ok(()),
        _ => Err(CommandFailure::plain("nothing was answered; --yes answers without this question")),
    }
}

pub(crate) async fn answer(args: args::Answer) -> CommandResult {
    let client = Client::find().await?;
    let request: Request = match args.request.parse::<plexus_protocol::RequestId>() {
        // A whole identifier also finds a closed request, so that its winner can be named.
        Ok(id) if args.request.len() >= 28 => client.get(&format!("/v1/requests/{id}"), "answering").await?,
        _ => {
            let open = client.requests(false).await?;
            let words = ("open request", "`plexus requests` lists them");
            let found = choose(open, &args.request, |one| one.request_id.as_str(), words.0, words.1)?;
            // Allowing needs the digest of the whole request, which `plexus requests` shows.
            if found.display_truncated { whole(&client, &found).await? } else { found }
        }
    };
    if request.state != RequestState::Open
        && let Some(receipt) = &request.receipt
    {
        return lost(&json!(receipt), args.json);
    }
    let actions = answers::actions(&request, answers::Answerer::UNLIMITED);
    let named = match &args.option[..] {
        [word] if request.form().is_empty() && request.kind != RequestType::Pick => Some(named(&actions, word)?),
        _ => None,
    };
    let no = args.deny || named.is_some_and(|action| action.role.rule().sense == answers::Sense::Deny);
    was_read(&request, args.digest.as_deref(), no)?;
    if let Some(action) = named.filter(|action| action.role.rule().lasting && !args.yes) {
        confirm_lasting(action)?;
    }
    let mut answer = json!({});
    let asked = request.form();
    if !asked.is_empty() && !args.deny {
        answer["answers"] = json!(answers_to(asked, &args)?);
    } else if args.allow || args.deny {
        match request.kind {
            RequestType::Pick | RequestType::Prompt if args.allow => {
                let want = if request.kind == RequestType::Pick { "--option ID" } else { "--text T" };
                return Err(CommandFailure::plain(format!(
                    "this request needs more than --allow: answer with {want}, or --deny"
                )));
            }
            _ => answer["ok"] = args.allow.into(),
        }
    } else if let Some(text) = &args.text {
        answer["value"] = text.as_str().into();
    } else if request.kind == RequestType::Pick {
        let id = |word: &String| request.items.iter().find(|item| item.label.eq_ignore_ascii_case(word));
        let is_id = |word: &String| request.items.iter().any(|item| item.id == *word);
        let ids = args.option.iter().map(|word| id(word).filter(|_| !is_id(word)).map_or(word, |item| &item.id));
        answer["ids"] = ids.cloned().collect::<Vec<_>>().into();
    } else if let Some(action) = named {
        answer = json!(action.answer);
    } else {
        return Err(CommandFailure::plain("this request accepts one option: use --option once"));
    }
    if let Some(reason) = &args.reason {
        answer["reason"] = reason.as_str().into();
    }
    if let Some(edited) = &args.edit {
        answer["edited"] = edited.as_str().into();
    }
    if args.remember {
        answer["remember"] = true.into();
    }
    match send_answer(&client, &request, answer).await? {
        Answered::Won(receipt) => {
            if args.json {
                print_json(&receipt)?;
            } else {
                print(&format!("your answer counts: {}\n", outcome(&receipt)))?;
            }
            Ok(0)
        }
        Answered::Lost(receipt) => lost(&receipt, args.json),
    }
}

fn lost(receipt: &Value, json: bool) -> CommandResult {
    if json {
        print_json(receipt)?;
    } else {
        print(&format!("too late: {}\n", outcome(receipt)))?;
    }
    Ok(FAILURE)
}

pub(crate) async fn search(args: args::Search) -> CommandResult {
    let client = Client::find().await?;
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("q", &args.text)
        .append_pair("limit", &args.limit.to_string())
        .finish();
    let found: Value = client.get(&format!("/v1/search?{query}"), "searching").await?;
    if args.json {
        print_json(&found)?;
        return Ok(0);
    }
    let paint = Paint::stdout();
    let mut out = String::new();
    for hit in found["hits"].as_array().into_iter().flatten() {
        let field = |name: &str| hit[name].as_str().unwrap_or_default();
        let head = line(&format!("{}  {}  {}", field("session_id"), field("cursor"), field("role")), 200);
        // The match is between two control characters, which become colour or nothing.
        let snippet: String = field("snippet")
            .split('\u{2}')
            .enumerate()
            .map(|(n, part)| match part.split_once('\u{3}') {
                Some((found, rest)) if n > 0 => format!("{}{}", paint.yellow(&flat(found)), flat(rest)),
                _ => flat(part),
            })
            .collect();
        out.push_str(&format!("{}\n  {snippet}\n", paint.dim(&head)));
    }
    if out.is_empty() {
        out.push_str("nothing found\n");
    }
    print(&out)?;
    Ok(0)
}

fn flat(text: &str) -> String {
    line(text, usize::MAX)
}

/// Opens the browser at `url`, signed in by `code`; false if there is no browser. Since every user can see a program's
/// arguments, the browser gets the path of a private page that has the code.
pub(crate) fn browse(home: &Home, url: &str, code: &str) -> bool {
    let display = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()));
    if !display {
        return false;
    }
    let page = plexus::auth::redirect(home.dir(), url, code).ok().and_then(|page| Url::from_file_path(page).ok());
    page.is_some_and(|page| opener::open_browser(page.as_str()).is_ok())
}

pub(crate) async fn open(args: args::Open) -> CommandResult {
    let client = Client::find().await?;
    let wanted = json!({ "scopes": Scope::ALL, "ttl": CODE_SECONDS });
    let code = client.post("/v1/codes", &wanted, "creating a one-time code").await?;
    let Some(code) = code["code"].as_str() else {
        return Err(CommandFailure::new(NOT_PERMITTED, "creating a one-time code: the gateway returned none").into());
    };
    let code = line(code, TITLE);
    if !args.print && std::io::stdout().is_terminal() && browse(&Home::find()?, client.url(), &code) {
        let url = client.url();
        print(&format!("opened {url} in the browser; if nothing appears: plexus open --print\n"))?;
    } else {
        print(&format!("{}/#code={code}\n", client.url()))?;
    }
    Ok(0)
}

pub(crate) async fn restart(args: args::Restart) -> CommandResult {
    let client = Client::find().await?;
    let runtimes = client.runtimes().await?;
    let runtime = choose(runtimes, &args.runtime, |one| one.runtime_id.as_str(), "runtime", "`plexus ls` lists them")?;
    let path = format!("/v1/runtimes/{}/restart", runtime.runtime_id);
    client.post_nothing(&path, "restarting the runtime").await?;
    print(&format!("restarted {}\n", runtime.runtime_id))?;
    Ok(0)
}

pub(crate) async fn stop(args: args::Stop) -> CommandResult {
    let client = match Client::find().await {
        Ok(client) => client,
        // A runtime that outlived its gateway can be stopped without one.
        Err(none) => return stop_left(&args.runtime).await.unwrap_or(Err(none)),
    };
    let runtimes = client.runtimes().await?;
    let runtime = choose(runtimes, &args.runtime, |one| one.runtime_id.as_str(), "runtime", "`plexus ls` lists them")?;
    client.delete(&format!("/v1/runtimes/{}", runtime.runtime_id), "stopping the runtime").await?;
    print(&format!("stopped {}\n", runtime.runtime_id))?;
    Ok(0)
}

/// Stops a runtime that a gateway left running; `None` if there is none of this name.
async fn stop_left(runtime: &str) -> Option<CommandResult> {
    let (home, runtime) = (Home::find().ok()?, runtime.to_owned());
    let (dir, name) = (home.dir().join(plexus::HOLDERS), runtime.clone());
    match tokio::task::spawn_blocking(move || plexus::runtimes::stop_left(&dir, &name)).await.ok()?? {
        Ok(()) => Some(print(&format!("stopped {}\n", line(&runtime, TITLE))).map(|()| 0)),
        Err(why) => {
            Some(Err(CommandFailure::new(FAILURE, format!("stopping {}: {why}", line(&runtime, TITLE))).into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_are_as_wide_as_their_content() {
        let rows = vec![vec!["a".into(), "bb".into()], vec!["cccc".into(), String::new()]];
        assert_eq!(table(Paint::none(), &["X", "YY"], &rows), "X     YY\na     bb\ncccc\n");
    }

    #[test]
    fn ages_are_printed_short() {
        let ago = |seconds: i64| age(Timestamp::from(SystemTime::now()).plus_millis(-seconds * 1000 - 500));
        assert_eq!([ago(5), ago(65), ago(7200), ago(200_000)], ["5 s", "1 min", "2 h", "2 d"]);
        assert_eq!(ago(-100), "0 s");
    }
}
