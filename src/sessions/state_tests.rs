//! Tables of decisions: what is logged, what the runtime is told, what stays open. One file, for one bench carries them all.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::time::Instant;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Exit;
use super::state::{Edit, Env, Once, Plan, Receipts, State};
use super::{Refusal, Rules};
use crate::dialects::{Ask, AskKey, Command, Draft, Elsewhere, RunEnd, Said, Subject, ToolMark};
use crate::model::*;

/// A session with predictable identifiers, and everything it ever logged and ordered.
struct Bench {
    state: State,
    receipts: Receipts,
    minted: u64,
    tickets: u64,
    expire_ms: Option<u64>,
    log: Vec<(String, u64, Kind, Value)>,
    orders: Vec<String>,
    position: u64,
}

fn by(name: &str) -> Resolver {
    Resolver { device_id: DeviceId::trusted(format!("d_{name}")), name: name.into() }
}

fn text(words: &str) -> Vec<Box<RawValue>> {
    vec![serde_json::value::to_raw_value(&json!({ "type": "text", "text": words })).unwrap()]
}

impl Bench {
    fn new() -> Self {
        let origin = Arc::new(Origin {
            session_id: SessionId::trusted("s_1"),
            runtime_id: RuntimeId::trusted("demo"),
            dialect: "acp".into(),
        });
        let state = State::new(origin, Some("n1".into()), "/".into(), None, 1, Timestamp::default());
        Self {
            state,
            receipts: Receipts::default(),
            minted: 0,
            tickets: 0,
            expire_ms: None,
            log: vec![],
            orders: vec![],
            position: 0,
        }
    }

    fn step<T>(&mut self, decide: impl FnOnce(&mut State, &mut Env<'_>, &mut Plan) -> T) -> T {
        let mut plan = Plan::default();
        let (minted, tickets) = (&mut self.minted, &mut self.tickets);
        let mut env = Env {
            now: Timestamp::from_millis(1000),
            mono: Instant::now(),
            rules: Rules { expire_ms: self.expire_ms, ..Rules::default() },
            mint: &mut |prefix| {
                *minted += 1;
                format!("{prefix}{minted}")
            },
            ticket: &mut || {
                *tickets += 1;
                Ticket(*tickets)
            },
        };
        let outcome = decide(&mut self.state, &mut env, &mut plan);
        for event in &plan.events {
            let body = serde_json::from_slice(&event.body).expect("a body is JSON");
            self.log.push((event.run_id.to_string(), event.seq, event.kind, body));
        }
        for order in &plan.orders {
            self.orders.push(match order {
                Command::Prompt { ticket, .. } => format!("prompt {}", ticket.0),
                Command::Cancel { ticket, .. } => format!("cancel {}", ticket.map_or(0, |ticket| ticket.0)),
                Command::Answer { key, decision } => {
                    assert!(plan.sync, "an answer is synced before the runtime hears it");
                    format!("answer {} {decision:?}", key.0)
                }
                other => format!("{other:?}"),
            });
        }
        for change in &plan.requests {
            if let Some(receipt) = &change.request.receipt {
                self.receipts.push(receipt.clone(), change.key.clone());
            }
        }
        self.position += plan.events.len() as u64;
        outcome
    }

    fn prompt(&mut self, words: &str) -> (RunId, usize) {
        let accepted = self.step(|state, env, plan| state.prompt(text(words), by("laptop"), None, env, plan)).unwrap();
        (accepted.run_id, accepted.ahead)
    }

    fn prompt_once(
        &mut self,
        words: &str,
        key: &str,
        who: &str,
    ) -> Result<(String, usize, Option<RunStatus>), Refusal> {
        let (content, by) = (text(words), by(who));
        let once = Some(Once::new(key.into(), by.device_id.clone(), &content));
        let accepted = self.step(|state, env, plan| state.prompt(content, by, once, env, plan))?;
        Ok((accepted.run_id.to_string(), accepted.ahead, accepted.ended.map(|ended| ended.status)))
    }

    /// As the next gateway finds it.
    fn restart(&mut self) {
        let row = self.state.row();
        let clocks = (Timestamp::from_millis(2000), Instant::now());
        let open = self.state.open_requests().iter().map(|open| Request::clone(open)).collect();
        self.state = State::restore(Arc::clone(&self.state.origin), &row, open, std::iter::empty(), clocks).unwrap();
    }

    fn say(&mut self, said: Said) {
        self.step(|state, env, plan| state.said(said, env, plan));
    }

    fn chunk(&mut self, words: &str) {
        let body = json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":words}});
        self.say(Said::Event { native: None, draft: Draft::new(Kind::AgentMessageChunk, &body) });
    }

    fn tool(&mut self, id: &str, status: &str) {
        let body = json!({"sessionUpdate":"tool_call_update","toolCallId":id,"status":status});
        let over = status == "completed" || status == "failed";
        let draft = Draft { tool: Some(ToolMark { id: id.into(), over }), ..Draft::new(Kind::ToolCallUpdate, &body) };
        self.say(Said::Event { native: None, draft });
    }

    fn ask(&mut self, key: &str, tool: Option<&str>) -> RequestId {
        let offer = |id: &str, kind| Offer { id: id.into(), label: id.into(), kind };
        let ask = Ask {
            key: AskKey(key.into()),
            kind: RequestType::Permission,
            title: "Run?".into(),
            message: None,
            subject: Subject::Command { argv: vec!["touch x".into()], cwd: None },
            options: vec![
                offer("yes", Choice::AllowOnce),
                offer("always", Choice::AllowAlways),
                offer("no", Choice::RejectOnce),
            ],
            items: vec![],
            multi: false,
            default_value: None,
            multiline: false,
            secret: false,
            danger: false,
            allow_reason: false,
            allow_remember: false,
            observe_only: false,
            tool_call_id: tool.map(Into::into),
            first_mention: None,
            params: RawValue::from_string("{}".into()).unwrap(),
            native: "{}".into(),
        };
        self.say(Said::Asked { native: None, ask: Box::new(ask) });
        let opened = self.log.iter().rev().find(|(_, _, kind, _)| *kind == Kind::RequestOpened);
        RequestId::trusted(opened.map_or("q_none", |opened| opened.3["request_id"].as_str().unwrap()))
    }

    fn end(&mut self, ticket: u64, status: RunStatus) {
        let end = RunEnd { status, stop_reason: Some("end_turn".into()), message: None, native: None };
        self.say(Said::Ended { native: "n1".into(), ticket: Ticket(ticket), end });
    }

    fn answer(&mut self, id: &RequestId, answer: Answer, who: &str) -> Result<Receipt, Refusal> {
        if !self.state.is_open(id) {
            return Err(self.receipts.late(id, None));
        }
        self.step(|state, env, plan| state.answer(id, &answer, (by(who), None), None, env, plan))
    }

    fn kinds(&self, from: usize) -> Vec<&'static str> {
        self.log[from..].iter().map(|(_, _, kind, _)| kind.as_str()).collect()
    }

    /// Every run's numbers are 0, 1, 2 … in the order of the log.
    fn assert_numbered(&self) {
        let mut next = std::collections::HashMap::new();
        for (run, seq, kind, _) in &self.log {
            let expected = next.entry(run).or_insert(0);
            assert_eq!(seq, expected, "{run} {kind:?}");
            *expected += 1;
        }
    }
}

fn option(id: &str) -> Answer {
    Answer { option_id: Some(id.into()), ..Answer::default() }
}

#[test]
fn a_run_begins_streams_and_ends() {
    let mut bench = Bench::new();
    assert_eq!(bench.state.info().prompted_at, None);
    let (run, ahead) = bench.prompt("hello");
    assert_eq!(bench.state.info().prompted_at, Some(Timestamp::from_millis(1000)));
    assert_eq!(ahead, 0);
    bench.chunk("hi");
    bench.end(1, RunStatus::Completed);
    assert_eq!(bench.kinds(0), ["run_started", "user_message_chunk", "agent_message_chunk", "run_ended"]);
    assert!(bench.log.iter().all(|(id, ..)| *id == run.to_string()));
    assert_eq!(bench.state.info().state, SessionState::Idle);
    assert_eq!(bench.state.info().title.as_deref(), Some("hello"));
    assert_eq!(bench.orders, ["prompt 1"]);
    bench.chunk("late");
    assert_eq!(bench.log.last().unwrap().0, "r_0_1", "what comes after the end belongs to run zero");
    bench.assert_numbered();
}

#[test]
fn a_prompt_under_a_key_is_run_once() {
    for restarts in [false, true] {
        let mut bench = Bench::new();
        let again = |bench: &mut Bench, key: &str| {
            let (events, orders) = (bench.log.len(), bench.orders.len());
            if restarts {
                bench.restart();
            }
            let outcome = bench.prompt_once(&format!("words of {key}"), key, "laptop").unwrap();
            assert_eq!((bench.log.len(), bench.orders.len()), (events, orders), "nothing new happened");
            outcome
        };
        let (first, ahead, _) = bench.prompt_once("words of k1", "k1", "laptop").unwrap();
        let (second, _, _) = bench.prompt_once("words of k2", "k2", "laptop").unwrap();
        let (third, _, _) = bench.prompt_once("words of k3", "k3", "laptop").unwrap();
        assert_eq!(ahead, 0);
        // Its client knows its own words again.
        let said =
            |run: &str, kind| bench.log.iter().find(|(id, _, is, _)| id == run && *is == kind).unwrap().3.clone();
        assert_eq!(said(&first, Kind::RunStarted)["key"], "k1");
        assert_eq!(said(&first, Kind::UserMessageChunk)["_meta"]["plexus"]["key"], "k1");
        assert_eq!(said(&second, Kind::RunStatus)["key"], "k2");
        // Running, queued, queued.
        assert_eq!(again(&mut bench, "k1"), (first.clone(), 0, None));
        assert_eq!(again(&mut bench, "k2"), (second.clone(), 1, None));
        assert_eq!(again(&mut bench, "k3"), (third.clone(), 2, None));
        // Ended, running, cancelled before it began.
        bench.end(1, RunStatus::Completed);
        let run = RunId::trusted(third.as_str());
        bench.step(|state, env, plan| state.cancel(Some(&run), &by("phone"), env, plan)).unwrap();
        assert_eq!(again(&mut bench, "k1"), (first.clone(), 0, Some(RunStatus::Completed)));
        assert_eq!(again(&mut bench, "k2"), (second.clone(), 0, None));
        assert_eq!(again(&mut bench, "k3"), (third.clone(), 0, Some(RunStatus::Cancelled)));
        // The runtime is gone: what was asked is known, what is new is refused.
        let exit = Exit { reason: Some("boom".into()), ..Exit::default() };
        bench.step(|state, env, plan| state.gone(&exit, env, plan));
        assert_eq!(again(&mut bench, "k1"), (first, 0, Some(RunStatus::Completed)));
        assert_eq!(again(&mut bench, "k2"), (second, 0, Some(RunStatus::Error)));
        assert!(matches!(bench.prompt_once("x", "k4", "laptop"), Err(Refusal::RuntimeGone(_))));
        assert_eq!(bench.orders, ["prompt 1", "prompt 2"]);
        bench.assert_numbered();
    }
}

#[test]
fn a_key_is_its_devices_own_and_stands_for_one_prompt() {
    let mut bench = Bench::new();
    let (mine, ..) = bench.prompt_once("one", "1", "laptop").unwrap();
    let (theirs, ahead, _) = bench.prompt_once("one", "1", "phone").unwrap();
    assert_ne!(mine, theirs);
    assert_eq!(ahead, 1, "the other device's prompt is another one");
    for words in ["two", "on", "onee"] {
        assert!(matches!(bench.prompt_once(words, "1", "laptop"), Err(Refusal::KeyReused)));
    }
    bench.end(1, RunStatus::Completed);
    assert!(matches!(bench.prompt_once("two", "1", "laptop"), Err(Refusal::KeyReused)), "ended ones too");
}

#[test]
fn a_session_remembers_its_last_keys_and_no_more_words_than_it_must() {
    let mut bench = Bench::new();
    for n in 0..65u64 {
        bench.prompt_once("x", &format!("k{n}"), "laptop").unwrap();
        let end =
            RunEnd { status: RunStatus::Error, stop_reason: None, message: Some("long ".repeat(1000)), native: None };
        bench.say(Said::Ended { native: "n1".into(), ticket: Ticket(n + 1), end });
    }
    let known = |bench: &Bench, n: u64| {
        let once = Once::new(format!("k{n}"), by("laptop").device_id, &text("x"));
        bench.state.known(&once).unwrap()
    };
    assert!(known(&bench, 0).is_none(), "the oldest is forgotten");
    for n in 1..65 {
        let message = known(&bench, n).unwrap().ended.unwrap().message.unwrap();
        assert!(message.len() <= 600, "{}", message.len());
    }
    assert!(bench.state.row().len() < 64 * 1024);
    // A row of before there were keys is read, too.
    let mut row: Value = serde_json::from_slice(&bench.state.row()).unwrap();
    row.as_object_mut().unwrap().remove("keyed");
    let clocks = (Timestamp::from_millis(0), Instant::now());
    let row = serde_json::to_vec(&row).unwrap();
    State::restore(Arc::clone(&bench.state.origin), &row, vec![], std::iter::empty(), clocks).unwrap();
}

#[test]
fn one_prompt_at_a_time_the_others_wait_their_turn() {
    let mut bench = Bench::new();
    bench.prompt("one");
    let (two, ahead) = bench.prompt("two");
    assert_eq!(ahead, 1);
    let (three, ahead) = bench.prompt("three");
    assert_eq!(ahead, 2);
    assert_eq!(bench.orders, ["prompt 1"], "the agent hears of one only");
    assert_eq!(bench.state.info().queue.len(), 2);
    bench.step(|state, env, plan| state.cancel(Some(&two), &by("phone"), env, plan)).unwrap();
    bench.end(1, RunStatus::Completed);
    assert_eq!(bench.orders, ["prompt 1", "prompt 2"]);
    assert_eq!(bench.state.info().run_id, Some(three));
    bench.assert_numbered();
}

#[test]
fn the_queue_is_bounded() {
    let mut bench = Bench::new();
    for _ in 0..65 {
        bench.prompt("x");
    }
    let refused = bench.step(|state, env, plan| state.prompt(text("x"), by("laptop"), None, env, plan));
    assert!(matches!(refused, Err(Refusal::QueueFull(64))));
}

#[test]
fn the_first_answer_wins_and_the_loser_learns_who() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("0", None);
    assert_eq!(bench.state.info().state, SessionState::Waiting);
    let won = bench.answer(&id, option("yes"), "phone").unwrap();
    assert_eq!((won.ok, won.option_id.as_deref()), (Some(true), Some("yes")));
    match bench.answer(&id, option("no"), "laptop") {
        Err(Refusal::AlreadyResolved(receipt)) => assert_eq!(receipt.resolved_by.name, "phone"),
        other => panic!("{other:?}"),
    }
    let answers: Vec<_> = bench.orders.iter().filter(|order| order.starts_with("answer")).collect();
    assert_eq!(answers.len(), 1, "exactly one answer is forwarded");
    assert_eq!(bench.state.info().state, SessionState::Running);
}

#[test]
fn an_answer_that_was_not_offered_changes_nothing() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("0", None);
    let orders = bench.orders.len();
    let stale = Answer { digest: Some("0".repeat(64)), ..option("yes") };
    let reasoned = Answer { reason: Some("because".into()), ..option("no") };
    let both = Answer { ok: Some(true), ..option("yes") };
    let value = Answer { value: Some(Some("x".into())), ..Answer::default() };
    for (answer, code) in [
        (option("nonsense"), "option_not_offered"),
        (stale, "stale"),
        (reasoned, "reason_not_offered"),
        (both, "answer_type"),
        (value, "answer_type"),
        (Answer::default(), "answer_type"),
    ] {
        match bench.answer(&id, answer, "phone") {
            Err(Refusal::BadAnswer { code: given, .. }) => assert_eq!(given, code),
            Err(Refusal::StaleDigest) => assert_eq!(code, "stale"),
            other => panic!("{code}: {other:?}"),
        }
    }
    assert_eq!(bench.orders.len(), orders);
    assert_eq!(bench.state.info().open_requests, 1, "still open, still answerable");
    assert!(bench.answer(&id, Answer { ok: Some(false), ..Answer::default() }, "phone").is_ok());
}

#[test]
fn remember_means_the_always_option() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("0", None);
    let answer = Answer { ok: Some(true), remember: Some(true), ..Answer::default() };
    assert_eq!(bench.answer(&id, answer, "phone").unwrap().option_id.as_deref(), Some("always"));
}

#[test]
fn cancel_withdraws_what_is_open_before_the_runtime_hears_of_it() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("\"uuid\"", Some("t1"));
    bench.tool("t1", "pending");
    bench.step(|state, env, plan| state.cancel(None, &by("phone"), env, plan)).unwrap();
    assert_eq!(bench.orders, ["prompt 1", "answer \"uuid\" Withdrawn", "cancel 1"]);
    match bench.answer(&id, option("yes"), "laptop") {
        Err(Refusal::Closed(receipt)) => assert_eq!(receipt.state, RequestState::Withdrawn),
        other => panic!("{other:?}"),
    }
    // A question that comes while the run is being cancelled is withdrawn at once.
    bench.ask("7", None);
    assert_eq!(bench.orders.last().unwrap(), "answer 7 Withdrawn");
    let from = bench.log.len();
    bench.end(1, RunStatus::Completed);
    assert_eq!(bench.kinds(from), ["tool_call_update", "run_ended"], "the dangling card is closed");
    assert_eq!(bench.log.last().unwrap().3["status"], "cancelled");
    bench.assert_numbered();
}

#[test]
fn a_rejected_tool_call_that_the_agent_leaves_open_is_closed() {
    let mut bench = Bench::new();
    bench.prompt("go");
    bench.tool("t1", "pending");
    let id = bench.ask("0", Some("t1"));
    bench.answer(&id, option("no"), "phone").unwrap();
    let from = bench.log.len();
    bench.chunk("well then");
    assert_eq!(bench.kinds(from), ["tool_call_update", "agent_message_chunk"]);
    assert_eq!(bench.log[from].3["status"], "failed");
    assert_eq!(bench.log[from].3["_meta"]["plexus"]["synthesized"], true);
    bench.end(1, RunStatus::Completed);
    assert_eq!(bench.kinds(from + 2), ["run_ended"], "closed once");
}

#[test]
fn an_agent_that_closes_its_card_itself_is_left_alone() {
    let mut bench = Bench::new();
    bench.prompt("go");
    bench.tool("t1", "pending");
    let id = bench.ask("0", Some("t1"));
    bench.answer(&id, option("no"), "phone").unwrap();
    let from = bench.log.len();
    bench.tool("t1", "failed");
    bench.end(1, RunStatus::Completed);
    assert_eq!(bench.kinds(from), ["tool_call_update", "run_ended"]);
}

#[test]
fn a_runtimes_death_orphans_its_requests_and_ends_everything() {
    let mut bench = Bench::new();
    bench.prompt("go");
    bench.prompt("waits");
    bench.tool("t1", "pending");
    let id = bench.ask("0", Some("t1"));
    let (from, orders) = (bench.log.len(), bench.orders.len());
    let exit = Exit { code: Some(3), ..Exit::default() };
    bench.step(|state, env, plan| state.gone(&exit, env, plan));
    assert_eq!(bench.kinds(from), ["request_resolved", "tool_call_update", "run_ended", "run_ended", "runtime_status"]);
    assert_eq!(bench.log[from].3["state"], "orphaned");
    assert_eq!(bench.orders.len(), orders, "nobody is left to be told");
    assert_eq!(bench.state.info().state, SessionState::Exited);
    match bench.answer(&id, option("yes"), "phone") {
        Err(Refusal::Closed(receipt)) => assert_eq!(receipt.state, RequestState::Orphaned),
        other => panic!("{other:?}"),
    }
    let refused = bench.step(|state, env, plan| state.prompt(text("x"), by("laptop"), None, env, plan));
    assert!(matches!(refused, Err(Refusal::RuntimeGone(_))));
    bench.assert_numbered();
}

#[test]
fn a_deadline_expires_a_request_and_the_agent_is_told_so() {
    let mut bench = Bench::new();
    bench.expire_ms = Some(50);
    bench.prompt("go");
    let id = bench.ask("0", None);
    assert_eq!(bench.state.deadline().unwrap().1, id);
    bench.step(|state, env, plan| state.expire(&id, env, plan));
    assert_eq!(bench.orders.last().unwrap(), "answer 0 Expired");
    assert!(bench.state.deadline().is_none());
    assert!(matches!(bench.answer(&id, option("yes"), "phone"), Err(Refusal::Closed(_))));
}

#[test]
fn what_the_runtime_takes_back_is_withdrawn_and_not_answered() {
    let mut bench = Bench::new();
    bench.prompt("go");
    bench.ask("null", None);
    let orders = bench.orders.len();
    bench.say(Said::TakenBack { native: None, key: AskKey("null".into()), elsewhere: None });
    assert_eq!(bench.orders.len(), orders);
    assert_eq!(bench.state.info().open_requests, 0);
}

#[test]
fn two_requests_at_once_are_two() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let (one, two) = (bench.ask("0", None), bench.ask("1", None));
    bench.answer(&two, option("no"), "phone").unwrap();
    assert_eq!(bench.state.info().state, SessionState::Waiting);
    bench.answer(&one, option("yes"), "laptop").unwrap();
    assert_eq!(bench.state.info().state, SessionState::Running);
    let answers: Vec<_> = bench.orders[1..].iter().map(|order| &order[..8]).collect();
    assert_eq!(answers, ["answer 1", "answer 0"]);
}

#[test]
fn the_row_restores_the_state_and_the_numbers_go_on() {
    let mut bench = Bench::new();
    let (run, _) = bench.prompt("go");
    let row = bench.state.row();
    bench.chunk("a");
    bench.chunk("b");
    let since: Vec<(RunId, u64)> =
        bench.log[2..].iter().map(|(run, seq, ..)| (RunId::trusted(run.as_str()), *seq)).collect();
    let since = since.iter().map(|(run, seq)| (run, *seq));
    let clocks = (Timestamp::from_millis(1000), Instant::now());
    bench.state = State::restore(Arc::clone(&bench.state.origin), &row, vec![], since, clocks).unwrap();
    assert_eq!(bench.state.info().run_id, Some(run));
    assert_eq!(bench.state.info().prompted_at, Some(Timestamp::from_millis(1000)));
    // A row of a gateway that did not know when.
    let mut old: Value = serde_json::from_slice(&row).unwrap();
    assert!(old.as_object_mut().unwrap().remove("prompted_at").is_some());
    let old = serde_json::to_vec(&old).unwrap();
    let older = State::restore(Arc::clone(&bench.state.origin), &old, vec![], std::iter::empty(), clocks).unwrap();
    assert_eq!(older.info().prompted_at, None);
    bench.step(|state, env, plan| state.gone(&Exit::default(), env, plan));
    bench.assert_numbered();
}

impl Bench {
    /// The gateway dies and another begins, with what was kept.
    fn die(&mut self) {
        let row = self.state.row();
        let open = self.state.open_requests().iter().map(|request| Request::clone(request)).collect();
        let clocks = (Timestamp::from_millis(2000), Instant::now());
        let origin = Arc::clone(&self.state.origin);
        self.state = State::restore(origin, &row, open, std::iter::empty(), clocks).unwrap();
        self.orders.clear();
    }

    /// The runtime is found again; it waits for these.
    fn found(&mut self, asks: &[&str], prompts: &[u64]) -> Vec<String> {
        let asks: Vec<AskKey> = asks.iter().map(|key| AskKey((*key).into())).collect();
        let prompts: Vec<Ticket> = prompts.iter().copied().map(Ticket).collect();
        self.step(|state, env, plan| state.found(&asks, &prompts, env, plan));
        self.orders.clone()
    }
}

#[test]
fn a_prompt_that_the_runtime_never_heard_is_said_to_it_once() {
    let mut bench = Bench::new();
    bench.prompt("go");
    bench.die();
    assert_eq!(bench.found(&[], &[]), ["prompt 1"]);
    // It heard it, and works.
    bench.die();
    assert!(bench.found(&[], &[1]).is_empty());
    bench.chunk("hi");
    bench.end(1, RunStatus::Completed);
    bench.die();
    assert!(bench.found(&[], &[]).is_empty());
    assert_eq!(bench.state.info().state, SessionState::Idle);
    bench.assert_numbered();
}

#[test]
fn a_run_that_the_runtime_forgot_ends_and_the_next_one_begins() {
    let mut bench = Bench::new();
    bench.prompt("one");
    bench.prompt("two");
    bench.chunk("hi");
    bench.die();
    assert_eq!(bench.found(&[], &[]), ["prompt 2"]);
    let ended = bench.log.iter().find(|(_, _, kind, _)| *kind == Kind::RunEnded).unwrap();
    assert_eq!(ended.3["status"], "error");
    bench.assert_numbered();
}

#[test]
fn a_request_open_when_the_gateway_died_is_open_again_and_answered_once() {
    let mut bench = Bench::new();
    bench.expire_ms = Some(60_000);
    bench.prompt("go");
    let id = bench.ask("5", None);
    bench.die();
    assert!(bench.found(&["5"], &[1]).is_empty());
    let (deadline, _) = bench.state.deadline().unwrap();
    assert!(deadline <= Instant::now() + std::time::Duration::from_secs(60), "its deadline is the old one");
    bench.answer(&id, option("yes"), "phone").unwrap();
    assert!(bench.orders[0].starts_with("answer 5 Option { id: \"yes\""), "{:?}", bench.orders);
    bench.assert_numbered();
}

#[test]
fn an_answer_that_the_runtime_never_heard_is_said_to_it_once() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("5", None);
    bench.answer(&id, option("no"), "phone").unwrap();
    bench.die();
    let told = bench.found(&["5"], &[1]);
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("answer 5 Option { id: \"no\""), "{told:?}");
    // It heard it: it asks no more.
    bench.die();
    assert!(bench.found(&[], &[1]).is_empty());
}

#[test]
fn a_question_that_is_gone_is_orphaned_and_a_cancel_is_said_again() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("5", None);
    bench.step(|state, env, plan| state.cancel(None, &by("phone"), env, plan)).unwrap();
    let other = bench.ask("6", None);
    assert!(!bench.state.is_open(&id) && !bench.state.is_open(&other), "a run that is cancelled asks nothing");
    bench.die();
    let told = bench.found(&["5"], &[1]);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[1], "cancel 1");

    let mut bench = Bench::new();
    bench.prompt("go");
    bench.ask("5", None);
    bench.die();
    assert!(bench.found(&[], &[1]).is_empty());
    let resolved = bench.log.iter().find(|(_, _, kind, _)| *kind == Kind::RequestResolved).unwrap();
    assert_eq!(resolved.3["state"], "orphaned");
}

#[test]
fn work_begun_elsewhere_is_a_run_and_prompts_wait_for_it() {
    let mut bench = Bench::new();
    bench.say(Said::Began { native: "n1".into(), by: "another client of Codex".into() });
    bench.chunk("theirs");
    let (_, ahead) = bench.prompt("ours");
    assert_eq!((ahead, bench.orders.len()), (1, 0));
    assert!(bench.state.info().prompted_at.is_some());
    let began = &bench.log[0];
    assert_eq!((began.2, &began.3["by"]["name"]), (Kind::RunStarted, &json!("another client of Codex")));
    let end = RunEnd { status: RunStatus::Completed, stop_reason: None, message: None, native: None };
    bench.say(Said::Done { native: "n1".into(), end: end.clone() });
    assert_eq!(bench.orders, ["prompt 1"]);
    // The end of others' work does not end ours.
    bench.say(Said::Done { native: "n1".into(), end });
    assert_eq!(bench.state.info().state, SessionState::Running);
    bench.end(1, RunStatus::Completed);
    // Others' work can be stopped too.
    bench.say(Said::Began { native: "n1".into(), by: "another client of Codex".into() });
    bench.step(|state, env, plan| state.cancel(None, &by("phone"), env, plan)).unwrap();
    assert_eq!(bench.orders, ["prompt 1", "cancel 0"]);
    bench.assert_numbered();
}

#[test]
fn an_answer_given_elsewhere_closes_ours_and_corrects_one_that_came_too_late() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("5", None);
    let elsewhere = || Elsewhere { by: "another client of OpenCode".into(), option_id: Some("no".into()) };
    bench.say(Said::TakenBack { native: None, key: AskKey("5".into()), elsewhere: Some(elsewhere()) });
    let refused = bench.answer(&id, option("yes"), "phone");
    let Err(Refusal::Closed(receipt)) = refused else { panic!("{refused:?}") };
    assert_eq!((receipt.state, receipt.ok), (RequestState::Withdrawn, Some(false)));
    assert_eq!(receipt.reason.as_deref(), Some("answered elsewhere"));
    assert_eq!(receipt.resolved_by.name, "another client of OpenCode");
    assert_eq!(bench.orders, ["prompt 1"], "the runtime is not told what it knows");

    let late = bench.ask("6", None);
    assert_eq!(bench.answer(&late, option("yes"), "phone").unwrap().state, RequestState::Answered);
    bench.say(Said::AnswerLost { native: None, key: AskKey("6".into()), elsewhere: elsewhere() });
    let resolved: Vec<_> = bench.log.iter().filter(|event| event.2 == Kind::RequestResolved).collect();
    assert_eq!(resolved.len(), 3);
    assert_eq!(resolved[2].3["request_id"], late.as_str());
    assert_eq!(resolved[2].3["resolved_by"]["name"], "another client of OpenCode");
    bench.assert_numbered();
}

#[test]
fn a_persons_title_stays_and_what_is_archived_comes_back_with_a_prompt() {
    let mut bench = Bench::new();
    let title = |bench: &mut Bench, title: &str| {
        let body = json!({ "sessionUpdate": "session_info_update", "title": title });
        let draft = Draft { title: Some(title.into()), ..Draft::new(Kind::SessionInfoUpdate, &body) };
        bench.say(Said::Event { native: None, draft });
    };
    let edit = |bench: &mut Bench, edit: Edit| bench.step(|state, env, plan| state.edit(edit, &by("phone"), env, plan));
    bench.prompt("first words");
    title(&mut bench, "the agent's");
    assert_eq!(bench.state.info().title.as_deref(), Some("the agent's"));
    edit(&mut bench, Edit { title: Some("mine \u{202e}x".into()), archived: Some(true) });
    title(&mut bench, "the agent's again");
    bench.restart();
    title(&mut bench, "and again");
    let info = bench.state.info();
    assert_eq!((info.title.as_deref(), info.archived), (Some("mine \\u{202e}x"), true));
    let said = bench.log.iter().find(|event| event.3["_meta"]["plexus"]["archived"] == true).unwrap();
    assert_eq!(
        (&said.0, said.2, &said.3["title"]),
        (&"r_0_1".into(), Kind::SessionInfoUpdate, &json!("mine \\u{202e}x"))
    );
    assert_eq!(said.3["_meta"]["plexus"]["by"]["name"], "phone");
    let events = bench.log.len();
    edit(&mut bench, Edit { title: None, archived: Some(true) });
    assert_eq!(bench.log.len(), events, "what changes nothing is no news");
    bench.prompt("go on");
    assert!(!bench.state.info().archived);
    // The same title as the agent's: from now on it is a person's.
    let mut bench = Bench::new();
    title(&mut bench, "same");
    edit(&mut bench, Edit { title: Some("same".into()), archived: None });
    title(&mut bench, "other");
    assert_eq!(bench.state.info().title.as_deref(), Some("same"));
    // It is over, and can be named all the same.
    bench.step(|state, env, plan| state.gone(&Exit::default(), env, plan));
    edit(&mut bench, Edit { title: Some("late".into()), archived: Some(true) });
    bench.restart();
    let info = bench.state.info();
    assert_eq!((info.title.as_deref(), info.archived, info.state), (Some("late"), true, SessionState::Exited));
    bench.assert_numbered();
}

#[test]
fn what_a_session_does_now_is_known_and_said_once_when_it_changes() {
    let mut bench = Bench::new();
    let doing = |bench: &Bench| bench.state.info().doing;
    let thought = |bench: &mut Bench| {
        let body = json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "hm" } });
        let said = Said::Event { native: None, draft: Draft::new(Kind::AgentThoughtChunk, &body) };
        bench.step(|state, env, plan| {
            state.said(said, env, plan);
            plan.doing
        })
    };
    let tool = |bench: &mut Bench, id: &str, title: Option<&str>, over: bool| {
        let body = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "title": title });
        let draft = Draft { tool: Some(ToolMark { id: id.into(), over }), ..Draft::new(Kind::ToolCallUpdate, &body) };
        bench.say(Said::Event { native: None, draft });
        doing(bench).unwrap()
    };
    assert_eq!(doing(&bench), None);
    bench.prompt("go");
    assert_eq!(doing(&bench).as_deref(), Some("working"));
    assert_eq!(thought(&mut bench), Some(0), "the event that changes it is known");
    assert_eq!(doing(&bench).as_deref(), Some("thinking"));
    assert_eq!(thought(&mut bench), None, "the next thought changes nothing");
    bench.chunk("so");
    assert_eq!(doing(&bench).as_deref(), Some("writing"));
    assert_eq!(tool(&mut bench, "a", Some("cargo \u{202e}build"), false), "cargo \\u{202e}build");
    assert_eq!(tool(&mut bench, "b", None, false), "working");
    assert_eq!(tool(&mut bench, "b", Some("ls"), false), "ls");
    bench.chunk("meanwhile");
    assert_eq!(tool(&mut bench, "b", None, true), "cargo \\u{202e}build");
    bench.restart();
    assert_eq!(doing(&bench).as_deref(), Some("cargo \\u{202e}build"), "also for the next gateway");
    assert_eq!(tool(&mut bench, "a", None, true), "working");
    let ticket = bench.tickets;
    bench.end(ticket, RunStatus::Completed);
    assert_eq!(doing(&bench), None);
}

proptest::proptest! {
    /// Whatever happens in whatever order: numbers have no gap, a request is answered to the runtime once at most, and
    /// nothing is open when the runtime is gone.
    #[test]
    fn any_order_of_things_keeps_the_invariants(steps in proptest::collection::vec(0u8..9, 1..60)) {
        let mut bench = Bench::new();
        let mut asked = Vec::new();
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                0 => { let _ = bench.step(|state, env, plan| state.prompt(text("x"), by("a"), None, env, plan)); }
                1 => bench.chunk("c"),
                2 => asked.push(bench.ask(&n.to_string(), Some("t"))),
                3 => { if let Some(id) = asked.last().cloned() { let _ = bench.answer(&id, option("yes"), "a"); } }
                4 => { if let Some(id) = asked.first().cloned() { let _ = bench.answer(&id, option("no"), "b"); } }
                5 => { let _ = bench.step(|state, env, plan| state.cancel(None, &by("a"), env, plan)); }
                6 => { let ticket = bench.tickets; bench.end(ticket, RunStatus::Completed); }
                7 => bench.tool("t", if n % 2 == 0 { "pending" } else { "completed" }),
                _ => { if n % 7 == 0 { bench.step(|state, env, plan| state.gone(&Exit::default(), env, plan)); } }
            }
        }
        bench.step(|state, env, plan| state.gone(&Exit::default(), env, plan));
        bench.assert_numbered();
        proptest::prop_assert_eq!(bench.state.info().open_requests, 0);
        let mut answered: Vec<_> =
            bench.orders.iter().filter(|o| o.starts_with("answer")).map(|o| o.split(' ').nth(1).unwrap().to_owned()).collect();
        let all = answered.len();
        answered.sort();
        answered.dedup();
        proptest::prop_assert_eq!(answered.len(), all);
    }
}
