//! Tests of the session state machine: events, runtime commands and open requests. One file: one test fixture serves all.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::time::Instant;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::RuntimeExit;
use super::prompt_key::PromptKey;
use super::prompts::PromptContent;
use super::state::{ClosedRequests, DecisionEnv, Plan, SessionEdit, SessionStateMachine};
use super::{SessionError, SessionRules};
use plexus_dialects::{
    AgentRequest, AnsweredElsewhere, EventDraft, OpenedAs, RequestKey, RequestSubject, RunEnd, RuntimeCommand,
    RuntimeEvent, ToolCallRef,
};
use plexus_protocol::*;

/// A session with predictable identifiers, and everything it ever logged and ordered.
struct Bench {
    state: SessionStateMachine,
    receipts: ClosedRequests,
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

fn text(words: &str) -> PromptContent {
    Arc::new(vec![text_block(words)])
}

impl Bench {
    fn new() -> Self {
        let origin = Arc::new(Origin {
            session_id: SessionId::trusted("s_1"),
            runtime_id: RuntimeId::trusted("demo"),
            dialect: "acp".into(),
        });
        let state = SessionStateMachine::new(origin, Some("n1".into()), "/".into(), None, 1, Timestamp::default());
        Self {
            state,
            receipts: ClosedRequests::default(),
            minted: 0,
            tickets: 0,
            expire_ms: None,
            log: vec![],
            orders: vec![],
            position: 0,
        }
    }

    fn step<T>(&mut self, decide: impl FnOnce(&mut SessionStateMachine, &mut DecisionEnv<'_>, &mut Plan) -> T) -> T {
        let mut plan = Plan::default();
        let (minted, tickets) = (&mut self.minted, &mut self.tickets);
        let mut env = DecisionEnv {
            now: Timestamp::from_millis(1000),
            mono: Instant::now(),
            rules: SessionRules { expire_ms: self.expire_ms, ..SessionRules::default() },
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
                RuntimeCommand::Prompt { ticket, .. } => format!("prompt {}", ticket.0),
                RuntimeCommand::Cancel { ticket, .. } => format!("cancel {}", ticket.map_or(0, |ticket| ticket.0)),
                RuntimeCommand::Answer { key, decision } => {
                    assert!(plan.sync, "an answer is synced before the runtime hears it");
                    format!("answer {} {decision:?}", String::from(key.clone()))
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
    ) -> Result<(String, usize, Option<RunStatus>), SessionError> {
        let (content, by) = (text(words), by(who));
        let once = Some(PromptKey::new(key.into(), by.device_id.clone(), Arc::clone(&content)));
        let accepted = self.step(|state, env, plan| state.prompt(content, by, once, env, plan))?;
        Ok((accepted.run_id.to_string(), accepted.ahead, accepted.ended.map(|ended| ended.status)))
    }

    /// Restores the state as the next gateway does.
    fn restart(&mut self) {
        let row = self.state.row();
        let clocks = (Timestamp::from_millis(2000), Instant::now());
        let open = self.state.open_requests().iter().map(|open| Request::clone(open)).collect();
        let kept = self.kept();
        self.state =
            SessionStateMachine::restore(Arc::clone(&self.state.origin), &row, open, std::iter::empty(), clocks)
                .unwrap();
        self.state.load_prompts(&kept);
    }

    /// The prompts as they are stored.
    fn kept(&self) -> Vec<(RunId, Vec<u8>)> {
        let contents = self.state.prompt_contents();
        contents.map(|(run_id, content)| (run_id.clone(), serde_json::to_vec(&**content).unwrap())).collect()
    }

    fn say(&mut self, event: RuntimeEvent) {
        self.step(|state, env, plan| state.on_runtime_event(event, env, plan));
    }

    fn chunk(&mut self, words: &str) {
        let body = json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":words}});
        self.say(RuntimeEvent::Event { native: None, draft: EventDraft::new(Kind::AgentMessageChunk, &body) });
    }

    fn tool(&mut self, id: &str, status: &str) {
        let body = json!({"sessionUpdate":"tool_call_update","toolCallId":id,"status":status});
        let over = status == "completed" || status == "failed";
        let draft =
            EventDraft { tool: Some(ToolCallRef::new(id, over)), ..EventDraft::new(Kind::ToolCallUpdate, &body) };
        self.say(RuntimeEvent::Event { native: None, draft });
    }

    fn ask(&mut self, key: &str, tool: Option<&str>) -> RequestId {
        let ask = question(key, tool, "touch x");
        self.say(RuntimeEvent::Asked { native: None, ask: Box::new(ask) });
        let opened = self.log.iter().rev().find(|(_, _, kind, _)| *kind == Kind::RequestOpened);
        RequestId::trusted(opened.map_or("q_none", |opened| opened.3["request_id"].as_str().unwrap()))
    }

    fn end(&mut self, ticket: u64, status: RunStatus) {
        let end = RunEnd { status, stop_reason: Some("end_turn".into()), message: None, native: None };
        self.say(RuntimeEvent::Ended { native: "n1".into(), ticket: Ticket(ticket), end });
    }

    fn answer(&mut self, id: &RequestId, answer: Answer, who: &str) -> Result<Receipt, SessionError> {
        if !self.state.is_open(id) {
            return Err(self.receipts.late(id, None));
        }
        self.step(|state, env, plan| state.answer(id, &answer, (by(who), None), None, env, plan))
    }

    fn kinds(&self, from: usize) -> Vec<&'static str> {
        self.log[from..].iter().map(|(_, _, kind, _)| kind.as_str()).collect()
    }

    /// Asserts that the event numbers of each run are 0, 1, 2 … in the order of the log.
    fn assert_numbered(&self) {
        let mut next = std::collections::HashMap::new();
        for (run, seq, kind, _) in &self.log {
            let expected = next.entry(run).or_insert(0);
            assert_eq!(seq, expected, "{run} {kind:?}");
            *expected += 1;
        }
    }
}

fn question(key: &str, tool: Option<&str>, line: &str) -> AgentRequest {
    let offer = |id: &str, kind| Offer { id: id.into(), label: id.into(), kind, for_session: false };
    AgentRequest {
        subject: RequestSubject::Command { argv: vec![line.into()], cwd: None },
        options: vec![
            offer("yes", Choice::AllowOnce),
            offer("always", Choice::AllowAlways),
            offer("no", Choice::RejectOnce),
        ],
        items: vec![],
        tool_call_id: tool.map(Into::into),
        ..AgentRequest::new(
            RequestKey::from(key.to_owned()),
            RequestType::Permission,
            "Run?",
            RawValue::from_string("{}".into()).unwrap(),
            "{}".into(),
        )
    }
}

fn option(id: &str) -> Answer {
    Answer { option_id: Some(id.into()), ..Answer::default() }
}

#[test]
fn run_begins_streams_and_ends() {
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
fn prompt_under_key_runs_once() {
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
        // The client recognizes its own prompts by the key.
        let event =
            |run: &str, kind| bench.log.iter().find(|(id, _, is, _)| id == run && *is == kind).unwrap().3.clone();
        assert_eq!(event(&first, Kind::RunStarted)["key"], "k1");
        assert_eq!(event(&first, Kind::UserMessageChunk)["_meta"]["plexus"]["key"], "k1");
        assert_eq!(event(&second, Kind::RunStatus)["key"], "k2");
        // Running, queued, queued.
        assert_eq!(again(&mut bench, "k1"), (first.clone(), 0, None));
        assert_eq!(again(&mut bench, "k2"), (second.clone(), 1, None));
        assert_eq!(again(&mut bench, "k3"), (third.clone(), 2, None));
        // Ended, running, cancelled before it began.
        bench.end(1, RunStatus::Completed);
        let run = RunId::trusted(third.as_str());
        bench.step(|state, env, plan| state.cancel(Some(&run), (&by("phone"), None), env, plan)).unwrap();
        assert_eq!(again(&mut bench, "k1"), (first.clone(), 0, Some(RunStatus::Completed)));
        assert_eq!(again(&mut bench, "k2"), (second.clone(), 0, None));
        assert_eq!(again(&mut bench, "k3"), (third.clone(), 0, Some(RunStatus::Cancelled)));
        // The runtime is gone: known keys still work, new prompts are refused.
        let exit = RuntimeExit { reason: Some("boom".into()), ..RuntimeExit::default() };
        bench.step(|state, env, plan| state.runtime_exited(&exit, env, plan));
        assert_eq!(again(&mut bench, "k1"), (first, 0, Some(RunStatus::Completed)));
        assert_eq!(again(&mut bench, "k2"), (second, 0, Some(RunStatus::Error)));
        assert!(matches!(bench.prompt_once("x", "k4", "laptop"), Err(SessionError::RuntimeUnavailable(_))));
        assert_eq!(bench.orders, ["prompt 1", "prompt 2"]);
        bench.assert_numbered();
    }
}

#[test]
fn prompt_key_belongs_to_one_device_and_one_prompt() {
    let mut bench = Bench::new();
    let (mine, ..) = bench.prompt_once("one", "1", "laptop").unwrap();
    let (theirs, ahead, _) = bench.prompt_once("one", "1", "phone").unwrap();
    assert_ne!(mine, theirs);
    assert_eq!(ahead, 1, "the other device's prompt is another one");
    for words in ["two", "on", "onee"] {
        assert!(matches!(bench.prompt_once(words, "1", "laptop"), Err(SessionError::KeyReused)));
    }
    bench.end(1, RunStatus::Completed);
    assert!(matches!(bench.prompt_once("two", "1", "laptop"), Err(SessionError::KeyReused)), "ended ones too");
}

#[test]
fn prompt_keys_of_last_ended_runs_are_remembered_within_bounds() {
    let mut bench = Bench::new();
    for n in 0..65u64 {
        bench.prompt_once("x", &format!("k{n}"), "laptop").unwrap();
        let end =
            RunEnd { status: RunStatus::Error, stop_reason: None, message: Some("long ".repeat(1000)), native: None };
        bench.say(RuntimeEvent::Ended { native: "n1".into(), ticket: Ticket(n + 1), end });
    }
    let accepted = |bench: &Bench, n: u64| {
        let once = PromptKey::new(format!("k{n}"), by("laptop").device_id, text("x"));
        bench.state.prompt_of_key(Some(&once)).unwrap()
    };
    assert!(accepted(&bench, 0).is_none(), "the oldest is forgotten");
    for n in 1..65 {
        let message = accepted(&bench, n).unwrap().ended.unwrap().message.unwrap();
        assert!(message.len() <= 600, "{}", message.len());
    }
    assert!(bench.state.row().len() < 64 * 1024);
    // A row of a gateway without keys restores, too.
    let mut row: Value = serde_json::from_slice(&bench.state.row()).unwrap();
    row.as_object_mut().unwrap().remove("keyed");
    let clocks = (Timestamp::from_millis(0), Instant::now());
    let row = serde_json::to_vec(&row).unwrap();
    SessionStateMachine::restore(Arc::clone(&bench.state.origin), &row, vec![], std::iter::empty(), clocks).unwrap();
}

#[test]
fn prompts_run_one_at_a_time_in_order() {
    let mut bench = Bench::new();
    bench.prompt("one");
    let (two, ahead) = bench.prompt("two");
    assert_eq!(ahead, 1);
    let (three, ahead) = bench.prompt("three");
    assert_eq!(ahead, 2);
    assert_eq!(bench.orders, ["prompt 1"], "the agent hears of one only");
    assert_eq!(bench.state.info().queue.len(), 2);
    bench.step(|state, env, plan| state.cancel(Some(&two), (&by("phone"), None), env, plan)).unwrap();
    bench.end(1, RunStatus::Completed);
    assert_eq!(bench.orders, ["prompt 1", "prompt 2"]);
    assert_eq!(bench.state.info().run_id, Some(three));
    bench.assert_numbered();
}

#[test]
fn prompt_queue_is_bounded() {
    let mut bench = Bench::new();
    for _ in 0..65 {
        bench.prompt("x");
    }
    let refused = bench.step(|state, env, plan| state.prompt(text("x"), by("laptop"), None, env, plan));
    assert!(matches!(refused, Err(SessionError::QueueFull(64))));
}

#[test]
fn request_first_answer_wins_and_loser_gets_receipt() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("0", None);
    assert_eq!(bench.state.info().state, SessionState::Waiting);
    let won = bench.answer(&id, option("yes"), "phone").unwrap();
    assert_eq!((won.ok, won.option_id.as_deref()), (Some(true), Some("yes")));
    match bench.answer(&id, option("no"), "laptop") {
        Err(SessionError::AlreadyResolved(receipt)) => assert_eq!(receipt.resolved_by.name, "phone"),
        other => panic!("{other:?}"),
    }
    let answers: Vec<_> = bench.orders.iter().filter(|order| order.starts_with("answer")).collect();
    assert_eq!(answers.len(), 1, "exactly one answer is forwarded");
    assert_eq!(bench.state.info().state, SessionState::Running);
}

#[test]
fn request_answer_not_offered_changes_nothing() {
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
            Err(SessionError::BadAnswer { code: given, .. }) => assert_eq!(given, code),
            Err(SessionError::StaleDigest) => assert_eq!(code, "stale"),
            other => panic!("{code}: {other:?}"),
        }
    }
    assert_eq!(bench.orders.len(), orders);
    assert_eq!(bench.state.info().open_requests, 1, "still open, still answerable");
    assert!(bench.answer(&id, Answer { ok: Some(false), ..Answer::default() }, "phone").is_ok());
}

#[test]
fn request_remember_picks_the_always_option() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("0", None);
    let answer = Answer { ok: Some(true), remember: Some(true), ..Answer::default() };
    assert_eq!(bench.answer(&id, answer, "phone").unwrap().option_id.as_deref(), Some("always"));
}

#[test]
fn cancel_withdraws_open_requests_before_telling_the_runtime() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("\"uuid\"", Some("t1"));
    bench.tool("t1", "pending");
    bench.step(|state, env, plan| state.cancel(None, (&by("phone"), None), env, plan)).unwrap();
    assert_eq!(bench.orders, ["prompt 1", "answer \"uuid\" Withdrawn", "cancel 1"]);
    match bench.answer(&id, option("yes"), "laptop") {
        Err(SessionError::Closed(receipt)) => assert_eq!(receipt.state, RequestState::Withdrawn),
        other => panic!("{other:?}"),
    }
    // A request of a run that is being cancelled is withdrawn at once.
    bench.ask("7", None);
    assert_eq!(bench.orders.last().unwrap(), "answer 7 Withdrawn");
    let from = bench.log.len();
    bench.end(1, RunStatus::Completed);
    assert_eq!(bench.kinds(from), ["tool_call_update", "run_ended"], "the dangling card is closed");
    let last = &bench.log.last().unwrap().3;
    assert_eq!((&last["status"], &last["cancelling"]), (&json!("completed"), &json!(true)), "its own last word");
    bench.assert_numbered();
}

#[test]
fn observe_only_request_survives_cancel_and_reports_outside_answer() {
    let mut bench = Bench::new();
    bench.expire_ms = Some(1000);
    bench.prompt("go");
    bench.ask("5", None);
    let mut ask = question("6", None, "touch x");
    ask.observe_only = true;
    bench.say(RuntimeEvent::Asked { native: None, ask: Box::new(ask) });
    let seen = RequestId::trusted(
        bench.log.iter().rfind(|(_, _, kind, _)| *kind == Kind::RequestOpened).unwrap().3["request_id"]
            .as_str()
            .unwrap(),
    );
    bench.step(|state, env, plan| state.cancel(None, (&by("phone"), None), env, plan)).unwrap();
    assert!(bench.state.is_open(&seen) && bench.state.info().open_requests == 1);
    assert_eq!(bench.state.deadline(), None, "nor does it end by itself");
    let orders: Vec<_> = bench.orders.iter().filter(|order| order.starts_with("answer")).collect();
    assert_eq!(orders, ["answer 5 Withdrawn"]);
    let elsewhere = Some(AnsweredElsewhere { by: "the UI".into(), option_id: Some("yes".into()) });
    let key = RequestKey::from("6".to_owned());
    bench.say(RuntimeEvent::TakenBack { native: None, key, elsewhere });
    let receipt = bench.receipts.get(&seen).unwrap();
    assert_eq!(
        (receipt.option_id.as_deref(), receipt.ok, &*receipt.resolved_by.name),
        (Some("yes"), Some(true), "the UI")
    );
    bench.end(1, RunStatus::Cancelled);
    assert_eq!(bench.log.last().unwrap().3["status"], "cancelled");
}

#[test]
fn rejected_tool_call_left_open_is_closed() {
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
fn rejected_tool_call_closed_by_the_agent_is_left_alone() {
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
fn runtime_exit_orphans_requests_and_ends_runs() {
    let mut bench = Bench::new();
    bench.prompt("go");
    bench.prompt("waits");
    bench.tool("t1", "pending");
    let id = bench.ask("0", Some("t1"));
    let (from, orders) = (bench.log.len(), bench.orders.len());
    let exit = RuntimeExit { code: Some(3), ..RuntimeExit::default() };
    bench.step(|state, env, plan| state.runtime_exited(&exit, env, plan));
    assert_eq!(bench.kinds(from), ["request_resolved", "tool_call_update", "run_ended", "run_ended", "runtime_status"]);
    assert_eq!(bench.log[from].3["state"], "orphaned");
    assert_eq!(bench.orders.len(), orders, "nobody is left to be told");
    assert_eq!(bench.state.info().state, SessionState::Exited);
    match bench.answer(&id, option("yes"), "phone") {
        Err(SessionError::Closed(receipt)) => assert_eq!(receipt.state, RequestState::Orphaned),
        other => panic!("{other:?}"),
    }
    let refused = bench.step(|state, env, plan| state.prompt(text("x"), by("laptop"), None, env, plan));
    assert!(matches!(refused, Err(SessionError::RuntimeUnavailable(_))));
    bench.assert_numbered();
}

/// Restores the state as a starting gateway does.
fn found_again(bench: &mut Bench) {
    let (row, origin) = (bench.state.row(), Arc::clone(&bench.state.origin));
    let open = bench.state.open_requests().iter().map(|request| Request::clone(request)).collect();
    let prompts: Vec<(RunId, Vec<u8>)> = bench
        .state
        .prompt_contents()
        .map(|(run, content)| (run.clone(), serde_json::to_vec(&**content).unwrap()))
        .collect();
    let clocks = (Timestamp::default(), Instant::now());
    bench.state = SessionStateMachine::restore(origin, &row, open, std::iter::empty(), clocks).unwrap();
    bench.state.load_prompts(&prompts);
}

#[test]
fn endpoint_session_continues_after_a_time_without_gateway() {
    let mut bench = Bench::new();
    bench.prompt("go");
    bench.prompt("waits");
    bench.tool("t1", "pending");
    let open = bench.ask("0", None);
    let decided = bench.ask("1", None);
    bench.answer(&decided, option("yes"), "phone").unwrap();
    bench.say(RuntimeEvent::Checkpoint { native: "n1".into(), state: "so far".into() });
    let from = bench.log.len();
    let exit = RuntimeExit { left: true, stopped: true, ..RuntimeExit::default() };
    bench.step(|state, env, plan| state.runtime_exited(&exit, env, plan));
    assert_eq!(bench.kinds(from), ["runtime_status"], "nothing ends but the connection");
    assert_eq!(bench.state.info().state, SessionState::Exited);
    found_again(&mut bench);
    let carried = bench.state.carried().unwrap();
    assert_eq!((carried.checkpoint.as_str(), carried.prompt), ("so far", Some(Ticket(1))));
    let asks: Vec<_> = carried.asks.iter().map(RequestKey::id).collect();
    assert_eq!(asks, ["0", "1"], "open, and decided and maybe not heard");
    // The endpoint is attached again.
    let (from, orders) = (bench.log.len(), bench.orders.len());
    bench.step(|state, env, plan| {
        state.mark_live("n1".into(), 1);
        state.opened(Vec::new(), OpenedAs::Resumed, env, plan);
        state.resume(env, plan);
    });
    assert_eq!(bench.kinds(from), ["runtime_status"]);
    assert_eq!(bench.orders.len(), orders + 1);
    assert!(bench.orders[orders].starts_with("answer 1 "), "{}", bench.orders[orders]);
    bench.answer(&open, option("yes"), "phone").unwrap();
    bench.tool("t1", "completed");
    let from = bench.log.len();
    bench.end(1, RunStatus::Completed);
    assert_eq!(bench.log[from].3["status"], "completed", "its end is the runtime's own");
    assert_eq!(bench.orders.last().unwrap(), "prompt 2", "what waited begins");
    bench.assert_numbered();

    // The endpoint is not attached again: the pending work ends.
    bench.step(|state, env, plan| state.runtime_exited(&exit, env, plan));
    found_again(&mut bench);
    assert!(bench.state.has_pending_work());
    bench.step(|state, env, plan| state.abandon("not attached", env, plan));
    assert!(!bench.state.has_pending_work());
    let ended = bench.log.last().unwrap();
    assert_eq!(
        (ended.2, &ended.3["status"], &ended.3["message"]),
        (Kind::RunEnded, &json!("error"), &json!("not attached"))
    );
    // The pending work also ends if the endpoint opens a new conversation instead.
    bench.step(|state, env, plan| {
        state.mark_live("n1".into(), 1);
        state.opened(Vec::new(), OpenedAs::Resumed, env, plan);
        state.prompt(text("more"), by("laptop"), None, env, plan).unwrap();
        state.runtime_exited(&exit, env, plan);
        state.mark_live("n2".into(), 1);
        state.opened(Vec::new(), OpenedAs::New, env, plan);
    });
    assert!(!bench.state.has_pending_work() && bench.state.carried().is_none());
    bench.assert_numbered();
}

#[test]
fn request_expires_at_deadline_and_runtime_is_told() {
    let mut bench = Bench::new();
    bench.expire_ms = Some(50);
    bench.prompt("go");
    let id = bench.ask("0", None);
    assert_eq!(bench.state.deadline().unwrap().1, id);
    bench.step(|state, env, plan| state.expire(&id, env, plan));
    assert_eq!(bench.orders.last().unwrap(), "answer 0 Expired");
    assert!(bench.state.deadline().is_none());
    assert!(matches!(bench.answer(&id, option("yes"), "phone"), Err(SessionError::Closed(_))));
}

#[test]
fn request_taken_back_by_runtime_is_withdrawn() {
    let mut bench = Bench::new();
    bench.prompt("go");
    bench.ask("null", None);
    let orders = bench.orders.len();
    bench.say(RuntimeEvent::TakenBack { native: None, key: RequestKey::unique("null"), elsewhere: None });
    assert_eq!(bench.orders.len(), orders);
    assert_eq!(bench.state.info().open_requests, 0);
}

#[test]
fn requests_open_at_once_are_answered_separately() {
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
fn message_count_and_last_user_message_are_in_the_row() {
    let mut bench = Bench::new();
    let counted = |bench: &Bench| (bench.state.info().message_count, bench.state.info().last_user_message);
    assert_eq!(counted(&bench), (Some(0), None));
    bench.prompt("first");
    assert_eq!(counted(&bench), (Some(1), Some("first".into())));
    bench.chunk("a");
    let row = bench.state.row();
    // The row changes with the first chunk of a message, not with the following ones.
    let of = |row: &[u8]| serde_json::from_slice::<Value>(row).unwrap()["messages"].clone();
    for more in ["b", "c"] {
        bench.chunk(more);
        assert_eq!(of(&bench.state.row()), of(&row));
    }
    assert_eq!(counted(&bench), (Some(2), Some("first".into())));
    let clocks = (Timestamp::from_millis(1000), Instant::now());
    let again = SessionStateMachine::restore(Arc::clone(&bench.state.origin), &row, vec![], std::iter::empty(), clocks)
        .unwrap();
    assert_eq!((again.info().message_count, again.info().last_user_message), counted(&bench));
    // Text after a tool call is another message; of a long prompt the beginning is kept.
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t" });
    bench.say(RuntimeEvent::Event { native: None, draft: EventDraft::new(Kind::ToolCall, &call) });
    bench.chunk("d");
    assert_eq!(counted(&bench).0, Some(3));
    bench.end(1, RunStatus::Completed);
    bench.prompt(&"é".repeat(1000));
    let (count, last) = counted(&bench);
    assert!(
        count == Some(4) && last.is_some_and(|last| last.len() < 250 && last.starts_with("éé") && last.ends_with('…'))
    );
    let mut old: Value = serde_json::from_slice(&row).unwrap();
    assert!(old.as_object_mut().unwrap().remove("messages").is_some());
    let old = serde_json::to_vec(&old).unwrap();
    let older = SessionStateMachine::restore(Arc::clone(&bench.state.origin), &old, vec![], std::iter::empty(), clocks)
        .unwrap();
    assert_eq!((older.info().message_count, older.info().last_user_message), (None, None), "nobody counted");
}

#[test]
fn row_restores_state_and_event_numbers() {
    let mut bench = Bench::new();
    let (run, _) = bench.prompt("go");
    let row = bench.state.row();
    bench.chunk("a");
    bench.chunk("b");
    let since: Vec<(RunId, u64)> =
        bench.log[2..].iter().map(|(run, seq, ..)| (RunId::trusted(run.as_str()), *seq)).collect();
    let since = since.iter().map(|(run, seq)| (run, *seq));
    let clocks = (Timestamp::from_millis(1000), Instant::now());
    bench.state = SessionStateMachine::restore(Arc::clone(&bench.state.origin), &row, vec![], since, clocks).unwrap();
    assert_eq!(bench.state.info().run_id, Some(run));
    assert_eq!(bench.state.info().prompted_at, Some(Timestamp::from_millis(1000)));
    // A row of a gateway without `prompted_at`.
    let mut old: Value = serde_json::from_slice(&row).unwrap();
    assert!(old.as_object_mut().unwrap().remove("prompted_at").is_some());
    let old = serde_json::to_vec(&old).unwrap();
    let older = SessionStateMachine::restore(Arc::clone(&bench.state.origin), &old, vec![], std::iter::empty(), clocks)
        .unwrap();
    assert_eq!(older.info().prompted_at, None);
    bench.step(|state, env, plan| state.runtime_exited(&RuntimeExit::default(), env, plan));
    bench.assert_numbered();
}

impl Bench {
    /// Kills the gateway and starts the next one from the store.
    fn die(&mut self) {
        let row = self.state.row();
        let open = self.state.open_requests().iter().map(|request| Request::clone(request)).collect();
        let clocks = (Timestamp::from_millis(2000), Instant::now());
        let (origin, kept) = (Arc::clone(&self.state.origin), self.kept());
        self.state = SessionStateMachine::restore(origin, &row, open, std::iter::empty(), clocks).unwrap();
        self.state.load_prompts(&kept);
        self.orders.clear();
    }

    /// Reattaches the runtime, which waits for these; returns the commands sent since the restart.
    fn found(&mut self, asks: &[&str], prompts: &[u64]) -> Vec<String> {
        let asks: Vec<RequestKey> = asks.iter().map(|key| RequestKey::from((*key).to_owned())).collect();
        let prompts: Vec<Ticket> = prompts.iter().copied().map(Ticket).collect();
        self.step(|state, env, plan| state.found(&asks, &prompts, env, plan));
        self.orders.clone()
    }
}

#[test]
fn reattached_prompt_unknown_to_runtime_is_sent_once() {
    let mut bench = Bench::new();
    bench.prompt("go");
    bench.die();
    assert_eq!(bench.found(&[], &[]), ["prompt 1"]);
    // The runtime has the prompt now.
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
fn reattached_prompt_made_before_the_report_is_sent_once() {
    let mut bench = Bench::new();
    bench.die();
    bench.prompt("go");
    // A late event of the runtime does not count for the new prompt.
    bench.chunk("hi");
    assert_eq!(bench.found(&[], &[]), ["prompt 1"], "and not twice");
    assert_eq!(bench.state.info().state, SessionState::Running);
    bench.assert_numbered();
}

#[test]
fn reattached_prompt_is_sent_despite_unrelated_output() {
    let mut bench = Bench::new();
    bench.prompt("one");
    bench.prompt("two");
    // Output that does not belong to the prompt.
    bench.chunk("hi");
    bench.die();
    assert_eq!(bench.found(&[], &[]), ["prompt 1"], "its dialect never had it");
    // Sent after each restart until the runtime has it, then never again.
    bench.chunk("more");
    bench.die();
    assert_eq!(bench.found(&[], &[]), ["prompt 1"]);
    bench.die();
    assert!(bench.found(&[], &[1]).is_empty());
    assert!(bench.log.iter().all(|(_, _, kind, _)| *kind != Kind::RunEnded));
    bench.end(1, RunStatus::Completed);
    assert_eq!(bench.orders, ["prompt 2"]);
    bench.assert_numbered();
}

#[test]
fn reattached_request_stays_open_and_is_answered_once() {
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
fn reattached_answer_unknown_to_runtime_is_sent_once() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("5", None);
    bench.answer(&id, option("no"), "phone").unwrap();
    bench.die();
    let sent = bench.found(&["5"], &[1]);
    assert_eq!(sent.len(), 1);
    assert!(sent[0].starts_with("answer 5 Option { id: \"no\""), "{sent:?}");
    // The runtime has the answer and no longer asks.
    bench.die();
    assert!(bench.found(&[], &[1]).is_empty());
}

/// The request key of the `n`-th question under a name.
fn nth(name: &str, n: u64) -> String {
    RequestKey::nth(name, n).into()
}

#[test]
fn reattached_decision_goes_to_the_question_it_was_made_for() {
    // Two questions under one name with different decisions; the runtime waits for none, the first or the second.
    for (first, second) in [("yes", "no"), ("no", "yes"), ("no", "no"), ("always", "no")] {
        for (waits, sent) in [(0, None), (1, Some(first)), (2, Some(second))] {
            let mut bench = Bench::new();
            bench.prompt("go");
            for (n, choice) in [(1, first), (2, second)] {
                let id = bench.ask(&nth("5", n), None);
                bench.answer(&id, option(choice), "phone").unwrap();
            }
            // The gateway may die several times before the runtime gets the answer.
            for _ in 0..3 {
                bench.die();
                let waiting = nth("5", waits);
                let asks: Vec<&str> = if waits == 0 { vec![] } else { vec![&waiting] };
                let orders = bench.found(&asks, &[1]);
                let Some(sent) = sent else {
                    assert!(orders.is_empty(), "{orders:?}");
                    continue;
                };
                assert_eq!(orders.len(), 1, "{orders:?}");
                let start = format!("answer {waiting} Option {{ id: {sent:?}");
                assert!(orders[0].starts_with(&start), "{first} then {second}, {waits} waits: {orders:?}");
            }
            bench.assert_numbered();
        }
    }
}

#[test]
fn reattached_third_question_gets_no_earlier_decision() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask(&nth("5", 1), None);
    bench.answer(&id, option("yes"), "phone").unwrap();
    let open = bench.ask(&nth("5", 2), None);
    bench.die();
    assert!(bench.found(&[&nth("5", 2)], &[1]).is_empty(), "people have not decided on it");
    assert!(bench.state.is_open(&open));
    // The runtime waits for a question that the session does not know.
    bench.die();
    assert!(bench.found(&[&nth("5", 3)], &[1]).is_empty());
    assert!(!bench.state.is_open(&open), "the runtime waits for it no more");
}

#[test]
fn decisions_do_not_outlive_the_runtime_start_that_asked() {
    // Inside and outside of a run.
    for prompted in [true, false] {
        let mut bench = Bench::new();
        if prompted {
            bench.prompt("go");
        }
        let id = bench.ask(&nth("0", 1), None);
        bench.answer(&id, option("yes"), "phone").unwrap();
        bench.step(|state, env, plan| state.runtime_exited(&RuntimeExit::default(), env, plan));
        bench.state.mark_live("n1".into(), 2);
        bench.die();
        assert!(bench.found(&[&nth("0", 1)], &[]).is_empty(), "the new start counts from the beginning");
    }
    // A row of an older gateway with leftover decisions.
    let mut bench = Bench::new();
    let id = bench.ask("0", None);
    bench.answer(&id, option("yes"), "phone").unwrap();
    bench.state.mark_live("n1".into(), 2);
    bench.die();
    assert!(bench.found(&["0"], &[]).is_empty());
}

#[test]
fn row_with_bare_request_names_applies_the_last_decision() {
    // Two decisions under one bare name; the dialect knows which question the runtime waits for.
    for (first, second) in [("yes", "no"), ("no", "yes")] {
        for waits in [nth("5", 7), "5".to_owned()] {
            let mut bench = Bench::new();
            bench.prompt("go");
            for choice in [first, second] {
                let id = bench.ask("5", None);
                bench.answer(&id, option(choice), "phone").unwrap();
            }
            bench.die();
            let orders = bench.found(&[&waits], &[1]);
            assert_eq!(orders.len(), 1, "{orders:?}");
            assert!(orders[0].starts_with(&format!("answer {waits} Option {{ id: {second:?}")), "{orders:?}");
        }
    }
    // One decided, the next one open: the runtime waits for the open one.
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("5", None);
    bench.answer(&id, option("yes"), "phone").unwrap();
    let open = bench.ask("5", None);
    bench.die();
    assert!(bench.found(&[&nth("5", 2)], &[1]).is_empty());
    bench.answer(&open, option("no"), "phone").unwrap();
    let last = bench.orders.last().unwrap();
    assert!(last.starts_with(&format!("answer {} Option {{ id: \"no\"", nth("5", 2))), "by its whole name: {last}");
}

#[test]
fn reattached_lost_request_is_orphaned_and_cancel_is_repeated() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("5", None);
    bench.step(|state, env, plan| state.cancel(None, (&by("phone"), None), env, plan)).unwrap();
    let other = bench.ask("6", None);
    assert!(!bench.state.is_open(&id) && !bench.state.is_open(&other), "a run that is cancelled asks nothing");
    bench.die();
    let sent = bench.found(&["5"], &[1]);
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(sent[1], "cancel 1");

    let mut bench = Bench::new();
    bench.prompt("go");
    bench.ask("5", None);
    bench.die();
    assert!(bench.found(&[], &[1]).is_empty());
    let resolved = bench.log.iter().find(|(_, _, kind, _)| *kind == Kind::RequestResolved).unwrap();
    assert_eq!(resolved.3["state"], "orphaned");
}

#[test]
fn run_begun_elsewhere_makes_prompts_wait() {
    let mut bench = Bench::new();
    bench.say(RuntimeEvent::Began { native: "n1".into(), by: "another client of Codex".into() });
    bench.chunk("theirs");
    let (_, ahead) = bench.prompt("ours");
    assert_eq!((ahead, bench.orders.len()), (1, 0));
    assert!(bench.state.info().prompted_at.is_some());
    let began = &bench.log[0];
    assert_eq!((began.2, &began.3["by"]["name"]), (Kind::RunStarted, &json!("another client of Codex")));
    let end = RunEnd { status: RunStatus::Completed, stop_reason: None, message: None, native: None };
    bench.say(RuntimeEvent::Done { native: "n1".into(), end: end.clone() });
    assert_eq!(bench.orders, ["prompt 1"]);
    // The end of a foreign run does not end the gateway's run.
    bench.say(RuntimeEvent::Done { native: "n1".into(), end });
    assert_eq!(bench.state.info().state, SessionState::Running);
    bench.end(1, RunStatus::Completed);
    // A foreign run can be cancelled, too.
    bench.say(RuntimeEvent::Began { native: "n1".into(), by: "another client of Codex".into() });
    bench.step(|state, env, plan| state.cancel(None, (&by("phone"), None), env, plan)).unwrap();
    assert_eq!(bench.orders, ["prompt 1", "cancel 0"]);
    bench.assert_numbered();
}

#[test]
fn request_answered_elsewhere_closes_and_corrects_a_late_answer() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("5", None);
    let elsewhere = || AnsweredElsewhere { by: "another client of OpenCode".into(), option_id: Some("no".into()) };
    bench.say(RuntimeEvent::TakenBack { native: None, key: RequestKey::unique("5"), elsewhere: Some(elsewhere()) });
    let refused = bench.answer(&id, option("yes"), "phone");
    let Err(SessionError::Closed(receipt)) = refused else { panic!("{refused:?}") };
    assert_eq!((receipt.state, receipt.ok), (RequestState::Withdrawn, Some(false)));
    assert_eq!(receipt.reason.as_deref(), Some("answered elsewhere"));
    assert_eq!(receipt.resolved_by.name, "another client of OpenCode");
    assert_eq!(bench.orders, ["prompt 1"], "the runtime is not told what it knows");

    let late = bench.ask("6", None);
    assert_eq!(bench.answer(&late, option("yes"), "phone").unwrap().state, RequestState::Answered);
    bench.say(RuntimeEvent::AnswerLost { native: None, key: RequestKey::unique("6"), elsewhere: elsewhere() });
    let resolved: Vec<_> = bench.log.iter().filter(|event| event.2 == Kind::RequestResolved).collect();
    assert_eq!(resolved.len(), 3);
    assert_eq!(resolved[2].3["request_id"], late.as_str());
    assert_eq!(resolved[2].3["resolved_by"]["name"], "another client of OpenCode");
    bench.assert_numbered();
}

#[test]
fn project_that_changed_is_told_and_is_no_activity() {
    let mut bench = Bench::new();
    let read = |bench: &mut Bench, branch: &str| {
        let project = Project { name: "p".into(), root: "/w/p".into(), branch: Some(branch.into()), worktree: None };
        bench.step(|state, env, plan| state.project_read(project, env, plan));
    };
    bench.prompt("go");
    let (updated, events) = (bench.state.updated_at(), bench.log.len());
    read(&mut bench, "main");
    read(&mut bench, "main");
    let told: Vec<_> = bench.log[events..].iter().map(|event| (event.0.clone(), event.2, event.3.clone())).collect();
    let body = json!({
        "sessionUpdate": "session_info_update", "title": "go",
        "_meta": { "plexus": { "project": { "name": "p", "root": "/w/p", "branch": "main" } } },
    });
    assert_eq!(told, [("r_0_1".into(), Kind::SessionInfoUpdate, body)], "once, and in no run");
    assert_eq!(bench.state.updated_at(), updated);
    read(&mut bench, "fix");
    bench.restart();
    assert_eq!(bench.state.info().project.unwrap().branch.as_deref(), Some("fix"));
    bench.assert_numbered();
}

#[test]
fn title_set_by_a_person_stays_and_a_prompt_unarchives() {
    let mut bench = Bench::new();
    let title = |bench: &mut Bench, title: &str| {
        let body = json!({ "sessionUpdate": "session_info_update", "title": title });
        let draft = EventDraft { title: Some(title.into()), ..EventDraft::new(Kind::SessionInfoUpdate, &body) };
        bench.say(RuntimeEvent::Event { native: None, draft });
    };
    let edit =
        |bench: &mut Bench, edit: SessionEdit| bench.step(|state, env, plan| state.edit(edit, &by("phone"), env, plan));
    bench.prompt("first words");
    title(&mut bench, "the agent's");
    assert_eq!(bench.state.info().title.as_deref(), Some("the agent's"));
    edit(&mut bench, SessionEdit { title: Some("mine \u{202e}x".into()), archived: Some(true) });
    title(&mut bench, "the agent's again");
    bench.restart();
    title(&mut bench, "and again");
    let info = bench.state.info();
    assert_eq!((info.title.as_deref(), info.archived), (Some("mine \\u{202e}x"), true));
    let event = bench.log.iter().find(|event| event.3["_meta"]["plexus"]["archived"] == true).unwrap();
    assert_eq!(
        (&event.0, event.2, &event.3["title"]),
        (&"r_0_1".into(), Kind::SessionInfoUpdate, &json!("mine \\u{202e}x"))
    );
    assert_eq!(event.3["_meta"]["plexus"]["by"]["name"], "phone");
    let events = bench.log.len();
    edit(&mut bench, SessionEdit { title: None, archived: Some(true) });
    assert_eq!(bench.log.len(), events, "what changes nothing is no news");
    bench.prompt("go on");
    assert!(!bench.state.info().archived);
    // A person who sets the agent's title keeps it.
    let mut bench = Bench::new();
    title(&mut bench, "same");
    edit(&mut bench, SessionEdit { title: Some("same".into()), archived: None });
    title(&mut bench, "other");
    assert_eq!(bench.state.info().title.as_deref(), Some("same"));
    // A session that ended can be renamed, too.
    bench.step(|state, env, plan| state.runtime_exited(&RuntimeExit::default(), env, plan));
    edit(&mut bench, SessionEdit { title: Some("late".into()), archived: Some(true) });
    bench.restart();
    let info = bench.state.info();
    assert_eq!((info.title.as_deref(), info.archived, info.state), (Some("late"), true, SessionState::Exited));
    bench.assert_numbered();
}

#[test]
fn session_activity_is_known_and_reported_on_change() {
    let mut bench = Bench::new();
    let doing = |bench: &Bench| bench.state.info().doing;
    let thought = |bench: &mut Bench| {
        let body = json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "hm" } });
        let event = RuntimeEvent::Event { native: None, draft: EventDraft::new(Kind::AgentThoughtChunk, &body) };
        bench.step(|state, env, plan| {
            state.on_runtime_event(event, env, plan);
            plan.activity_event
        })
    };
    let tool = |bench: &mut Bench, id: &str, title: Option<&str>, over: bool| {
        let body = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "title": title });
        let draft =
            EventDraft { tool: Some(ToolCallRef::new(id, over)), ..EventDraft::new(Kind::ToolCallUpdate, &body) };
        bench.say(RuntimeEvent::Event { native: None, draft });
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

#[test]
fn prompt_restart_cancels_its_run_and_precedes_the_queue() {
    let mut bench = Bench::new();
    let (run, _) = bench.prompt("first");
    bench.prompt("waits");
    let again = |bench: &mut Bench, run: &RunId, key: &str| {
        let (content, by) = (text("first"), by("phone"));
        let once = Some(PromptKey::new(key.into(), by.device_id.clone(), Arc::clone(&content)));
        bench.step(|state, env, plan| state.again(run, content, by, once, env, plan)).unwrap()
    };
    let second = again(&mut bench, &run, "k1");
    assert_eq!((second.queued, second.ahead), (true, 1));
    assert_eq!(again(&mut bench, &run, "k1").run_id, second.run_id, "the same key is the same run");
    assert_eq!(bench.orders, ["prompt 1", "cancel 1"], "cancelled once");
    bench.end(1, RunStatus::Cancelled);
    let info = bench.state.info();
    assert_eq!((info.run_id.as_ref(), info.queue.len()), (Some(&second.run_id), 1));
    bench.end(2, RunStatus::Completed);
    // The prompt of an ended run is queued behind the others.
    let third = again(&mut bench, &run, "k2");
    assert_eq!((third.queued, third.ahead), (true, 1));
    assert_eq!(bench.orders, ["prompt 1", "cancel 1", "prompt 2", "prompt 3"]);
    bench.assert_numbered();
}

proptest::proptest! {
    /// For any order of events: numbers have no gap, the runtime gets at most one answer per request, and nothing is open once
    /// the runtime is gone.
    #[test]
    fn state_machine_keeps_invariants_in_any_order(steps in proptest::collection::vec(0u8..9, 1..60)) {
        let mut bench = Bench::new();
        let mut ids = Vec::new();
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                0 => { let _ = bench.step(|state, env, plan| state.prompt(text("x"), by("a"), None, env, plan)); }
                1 => bench.chunk("c"),
                2 => ids.push(bench.ask(&n.to_string(), Some("t"))),
                3 => { if let Some(id) = ids.last().cloned() { let _ = bench.answer(&id, option("yes"), "a"); } }
                4 => { if let Some(id) = ids.first().cloned() { let _ = bench.answer(&id, option("no"), "b"); } }
                5 => { let _ = bench.step(|state, env, plan| state.cancel(None, (&by("a"), None), env, plan)); }
                6 => { let ticket = bench.tickets; bench.end(ticket, RunStatus::Completed); }
                7 => bench.tool("t", if n % 2 == 0 { "pending" } else { "completed" }),
                _ => { if n % 7 == 0 { bench.step(|state, env, plan| state.runtime_exited(&RuntimeExit::default(), env, plan)); } }
            }
        }
        bench.step(|state, env, plan| state.runtime_exited(&RuntimeExit::default(), env, plan));
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

#[test]
fn request_change_is_a_new_revision_to_be_read_again() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let id = bench.ask("7", None);
    let before = Request::clone(&bench.state.open_requests()[0]);
    assert_eq!((before.revision, before.changed), (0, false));
    let change = |bench: &mut Bench, line: &str| {
        let from = bench.log.len();
        bench.say(RuntimeEvent::AskChanged { native: None, ask: Box::new(question("7", None, line)) });
        bench.kinds(from)
    };
    assert!(change(&mut bench, "touch x").is_empty(), "nothing is other than before");
    assert_eq!(change(&mut bench, "rm -rf /"), ["request_updated"]);
    let after = Request::clone(&bench.state.open_requests()[0]);
    assert_eq!((after.revision, after.changed, after.request_id.clone()), (1, true, id.clone()));
    assert_eq!(
        (after.display.as_str(), after.risk, after.opened_at),
        ("rm -rf /\nin /", Risk::Danger, before.opened_at)
    );
    assert_ne!(after.digest, before.digest);
    let sent = &bench.log.last().unwrap().3;
    assert_eq!((&sent["revision"], &sent["digest"]), (&json!(1), &json!(after.digest)), "the event has the whole");
    // Answers to the earlier revision are refused.
    let with = |digest: Option<&String>, revision| Answer { digest: digest.cloned(), revision, ..option("yes") };
    for stale in [with(Some(&before.digest), None), with(None, None), with(None, Some(0))] {
        assert!(matches!(bench.answer(&id, stale.clone(), "a"), Err(SessionError::StaleDigest)), "{stale:?}");
    }
    // The revision survives a restart.
    bench.restart();
    assert!(matches!(bench.answer(&id, with(Some(&before.digest), None), "a"), Err(SessionError::StaleDigest)));
    assert!(bench.answer(&id, with(Some(&after.digest), None), "a").is_ok());
    assert!(change(&mut bench, "ls").is_empty(), "what is over does not change");
    // A no needs no digest, and a frontend without digests sends the revision that it showed.
    for answer in [option("no"), with(None, Some(1))] {
        let id = bench.ask("7", None);
        change(&mut bench, "rm -rf /");
        assert!(bench.answer(&id, answer, "a").is_ok());
    }
    bench.assert_numbered();
}

#[test]
fn request_too_long_is_shown_in_part_and_needs_the_whole_digest() {
    let mut bench = Bench::new();
    bench.prompt("go");
    let line = "echo é\n".repeat(4096);
    bench.say(RuntimeEvent::Asked { native: None, ask: Box::new(question("7", None, &line)) });
    let whole = Request::clone(&bench.state.open_requests()[0]);
    let sent = bench.log.iter().rev().find(|(_, _, kind, _)| *kind == Kind::RequestOpened).unwrap().3.clone();
    assert_eq!(sent["display_truncated"], json!(true));
    assert_eq!(sent["display_bytes"], json!(whole.display.len()));
    assert_eq!(sent["digest"], Value::Null, "who has a part has nothing to show for the whole");
    let part = sent["display"].as_str().unwrap();
    assert!(whole.display.starts_with(part) && part.len() <= SHOWN_MAX && part.len() > SHOWN_MAX / 2);
    let again: Request = serde_json::from_value(sent.clone()).unwrap();
    assert_eq!(again.brief().display, part, "what is cut is not cut again");
    let id = whole.request_id.clone();
    assert!(matches!(bench.answer(&id, option("yes"), "a"), Err(SessionError::DigestRequired)));
    assert!(matches!(
        bench.answer(&id, Answer { revision: Some(0), ..option("yes") }, "a"),
        Err(SessionError::DigestRequired)
    ));
    let read = Answer { digest: Some(whole.digest.clone()), ..option("yes") };
    assert!(bench.answer(&id, read, "a").is_ok());
    // A no needs no digest.
    bench.say(RuntimeEvent::Asked { native: None, ask: Box::new(question("8", None, &line)) });
    let id = bench.state.open_requests()[0].request_id.clone();
    assert!(bench.answer(&id, option("no"), "a").is_ok());
}

/// A row of a killed gateway of schema 3: a running prompt without any output and two queued ones, all with their content.
const OLD_ROW: &[u8] = include_bytes!("../../tests/rows/session-schema-3.json");

#[test]
fn row_of_schema_3_yields_prompts_kept_beside_it_afterwards() {
    let mut bench = Bench::new();
    let clocks = (Timestamp::from_millis(2000), Instant::now());
    let origin = Arc::clone(&bench.state.origin);
    bench.state = SessionStateMachine::restore(origin, OLD_ROW, vec![], std::iter::empty(), clocks).unwrap();
    bench.state.load_prompts(&[]);
    let prompts: Vec<String> = bench.state.prompt_contents().map(|(_, content)| content[0].get().to_owned()).collect();
    let words = ["hang", "echo second", "echo third é"];
    assert!(prompts.iter().zip(words).all(|(prompt, words)| prompt.contains(words)), "{prompts:?}");
    assert_eq!((prompts.len(), bench.state.info().queue.len()), (3, 2));
    // The next row has no content; the stored prompts suffice.
    let row = String::from_utf8(bench.state.row()).unwrap();
    assert!(!row.contains("hang") && !row.contains("\"content\""), "{row}");
    bench.die();
    let again: Vec<String> = bench.state.prompt_contents().map(|(_, content)| content[0].get().to_owned()).collect();
    assert_eq!(again, prompts);
}

#[test]
fn row_and_state_copy_do_not_grow_with_prompt_content() {
    let big = || vec![RawValue::from_string(format!(r#"{{"type":"text","text":"{}"}}"#, "x".repeat(2 << 20))).unwrap()];
    let mut bench = Bench::new();
    for _ in 0..10 {
        bench.step(|state, env, plan| state.prompt(Arc::new(big()), by("laptop"), None, env, plan)).unwrap();
    }
    assert!(bench.state.row().len() < 10_000, "{} bytes", bench.state.row().len());
    let copy = bench.state.clone();
    assert_eq!(copy.prompt_contents().count(), 10);
    let shared =
        bench.state.prompt_contents().zip(copy.prompt_contents()).all(|((_, one), (_, other))| Arc::ptr_eq(one, other));
    assert!(shared, "what is asked is shared, not copied");
    bench.chunk("the agent speaks");
    assert_eq!(bench.state.prompt_contents().count(), 10, "words do not mean that it was told");
    bench.end(1, RunStatus::Completed);
    assert_eq!(bench.state.prompt_contents().count(), 9, "what is over need not be kept");
}

#[test]
fn reattaching_does_not_change_updated_at() {
    let mut bench = Bench::new();
    let update = |kind: Kind| RuntimeEvent::Event { native: None, draft: EventDraft::new(kind, &json!({ "x": 1 })) };
    let since = |bench: &Bench| bench.state.info().updated_at;
    bench.found(&[], &[]);
    for kind in [Kind::AvailableCommandsUpdate, Kind::CurrentModeUpdate, Kind::ConfigOptionUpdate, Kind::UsageUpdate] {
        bench.say(update(kind));
    }
    bench.step(|state, env, plan| state.runtime_exited(&RuntimeExit::default(), env, plan));
    bench.state.mark_live("n1".into(), 2);
    let drafts = vec![EventDraft::new(Kind::CurrentModeUpdate, &json!({}))];
    bench.step(|state, env, plan| state.opened(drafts, plexus_dialects::OpenedAs::Resumed, env, plan));
    assert_eq!(since(&bench), Timestamp::default());
    bench.die();
    bench.found(&[], &[]);
    assert_eq!(since(&bench), Timestamp::default());
    bench.chunk("hi");
    assert_eq!(since(&bench), Timestamp::from_millis(1000));
}

/// The rows that the release 0.1.0 left while agents ran: see `tests/fixtures/released-0.1.0-7961eb0`.
#[test]
fn rows_of_release_0_1_0_are_restored() {
    macro_rules! row {
        ($name:literal) => {
            (
                $name,
                &include_bytes!(concat!("../../tests/fixtures/released-0.1.0-7961eb0/session-", $name, ".json"))[..],
            )
        };
    }
    for (name, row) in [row!("demo"), row!("models"), row!("codex"), row!("codelia"), row!("keyed")] {
        let origin = Arc::clone(&Bench::new().state.origin);
        let clocks = (Timestamp::from_millis(0), Instant::now());
        let restored = |row: &[u8]| {
            SessionStateMachine::restore(Arc::clone(&origin), row, vec![], std::iter::empty(), clocks).unwrap()
        };
        let state = restored(row);
        let start = state.process_start(None);
        assert_eq!((start.instance.as_deref(), start.generation), (None, 1), "{name}");
        assert!(state.native_id().is_some() && state.exited().is_none(), "{name}");
        assert_eq!(state.info().state, SessionState::Running, "{name}: its run is under way");
        let (_, prompt) = state.pending();
        assert!(prompt.is_some(), "{name}: and its prompt known");
        // Members of later versions are ignored.
        let mut later: Value = serde_json::from_slice(row).unwrap();
        later["later"] = json!({ "x": 1 });
        later["run"]["later"] = json!(true);
        assert_eq!(restored(later.to_string().as_bytes()).info().run_id, state.info().run_id, "{name}");
    }
}

fn tool_event(id: &str, body: serde_json::Value) -> RuntimeEvent {
    let over = matches!(body["status"].as_str(), Some("completed" | "failed"));
    let tool = Some(plexus_dialects::ToolCallRef::new(id, over));
    RuntimeEvent::Event { native: None, draft: EventDraft { tool, ..EventDraft::new(Kind::ToolCall, &body) } }
}

/// A call that is announced with `kind` and what it does, and completed.
fn does(bench: &mut Bench, id: &str, kind: &str, title: &str, input: serde_json::Value) {
    bench.say(tool_event(
        id,
        json!({ "sessionUpdate": "tool_call", "toolCallId": id, "kind": kind, "title": title, "status": "pending", "rawInput": input }),
    ));
    bench.say(tool_event(id, json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed" })));
}

fn unasked(bench: &Bench) -> Vec<String> {
    let told = bench.log.iter().filter(|event| event.3["status"] == "unasked");
    told.map(|event| event.3["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn session_reports_once_that_its_agent_acts_without_asking() {
    let mut bench = Bench::new();
    bench.prompt("go");
    does(&mut bench, "1", "read", "Read a.txt", json!({}));
    does(&mut bench, "2", "execute", "ls -la", json!({ "command": "ls -la" }));
    bench.say(tool_event("3", json!({ "toolCallId": "3", "kind": "execute", "title": "touch y", "status": "failed" })));
    assert_eq!(unasked(&bench), [""; 0], "it has changed nothing");
    does(&mut bench, "4", "execute", "Shell", json!({ "command": ["touch", "x"] }));
    does(&mut bench, "5", "edit", "Edit a.txt", json!({}));
    let told = unasked(&bench);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("touch x"), "{told:?}");
    assert_eq!(bench.state.acted_unasked(), Some("touch x"));
}

#[test]
fn session_reports_a_command_that_its_agent_left_open() {
    for (status, reports) in [(RunStatus::Completed, 1), (RunStatus::Cancelled, 0), (RunStatus::Error, 0)] {
        let mut bench = Bench::new();
        bench.prompt("go");
        bench.say(tool_event(
            "1",
            json!({ "toolCallId": "1", "kind": "execute", "title": "bash", "status": "pending" }),
        ));
        bench.end(1, status);
        assert_eq!(unasked(&bench).len(), reports, "{status:?}");
    }
}

#[test]
fn session_says_nothing_of_an_agent_that_asked_or_was_told_that_it_may() {
    let edits = |bench: &mut Bench| does(bench, "9", "edit", "Edit a.txt", json!({}));
    // It asked before, and the answer may cover this.
    let mut bench = Bench::new();
    bench.prompt("go");
    bench.say(RuntimeEvent::Asked { native: None, ask: Box::new(question("7", Some("9"), "touch x")) });
    edits(&mut bench);
    assert!(unasked(&bench).is_empty());
    // A person gave it another mode.
    let mut bench = Bench::new();
    bench.prompt("go");
    let mode = EventDraft::new(Kind::CurrentModeUpdate, &json!({ "currentModeId": "acceptEdits" }));
    bench.say(RuntimeEvent::Event { native: None, draft: mode });
    edits(&mut bench);
    assert!(unasked(&bench).is_empty());
    // A person allowed it something for good in another session of the runtime.
    let mut bench = Bench::new();
    bench.state.set_allowed_always(true);
    bench.prompt("go");
    edits(&mut bench);
    assert!(unasked(&bench).is_empty());
}

#[test]
fn session_records_a_review_of_the_agent_itself_as_an_answer_of_the_agent() {
    for (allowed, option) in [(true, "yes"), (false, "no")] {
        let mut bench = Bench::new();
        bench.prompt("go");
        let from = bench.log.len();
        let review =
            plexus_dialects::AgentReview { by: "Codex's reviewer".into(), allowed, reason: Some("it is safe".into()) };
        let ask = Box::new(AgentRequest { observe_only: true, ..question("7", None, "touch x") });
        bench.say(RuntimeEvent::Reviewed { native: "n1".into(), ask, review });
        assert_eq!(bench.kinds(from), ["request_opened", "request_resolved"], "nobody is asked");
        assert!(bench.state.open_requests().is_empty());
        let end = &bench.log.last().unwrap().3;
        let by = (&end["state"], &end["answered_by"], &end["resolved_by"]["name"]);
        assert_eq!(by, (&json!("answered"), &json!("agent"), &json!("Codex's reviewer")));
        assert_eq!(
            (&end["ok"], &end["option_id"], &end["reason"]),
            (&json!(allowed), &json!(option), &json!("it is safe"))
        );
    }
}
