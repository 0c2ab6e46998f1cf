//! Tests of ceilings: several sessions over one book, by tables and by any order of what can happen.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::time::Instant;

use proptest::prelude::*;

use super::SessionRules;
use super::ceilings::CeilingBook;
use super::day_ceiling::{restore_day_answer, synchronize};
use super::state::{DecisionEnv, Plan, SessionStateMachine};
use plexus_dialects::{RunEnd, RuntimeCommand, RuntimeEvent};
use plexus_protocol::api::usage::{CeilingSettings, ConfiguredCeilings};
use plexus_protocol::*;

/// A time at noon by UTC, so that a few minutes do not end the day of any clock at which tests run.
const NOON: i64 = 1_795_694_400_000;

fn by(name: &str) -> Resolver {
    Resolver { device_id: DeviceId::trusted(format!("d_{name}")), name: name.into() }
}

fn tokens(count: u64) -> Spending {
    Spending::new([Some(count), None, None, None, None], vec![])
}

/// A session with what it spent.
struct Member {
    state: SessionStateMachine,
    spent: u64,
    started: usize,
}

/// Several sessions of one gateway.
struct World {
    book: CeilingBook,
    set: CeilingSettings,
    members: Vec<Member>,
    now: i64,
    day: u64,
    minted: u64,
    /// The messages of queued prompts.
    said: Vec<String>,
}

impl World {
    fn new(count: usize, day: &str, session: &str) -> Self {
        let member = |n: usize| {
            let origin = Arc::new(Origin {
                session_id: SessionId::trusted(format!("s_{n}")),
                runtime_id: RuntimeId::trusted("demo"),
                dialect: "acp".into(),
            });
            let now = Timestamp::from_millis(NOON);
            Member {
                state: SessionStateMachine::new(origin, Some("n".into()), "/".into(), None, 1, now),
                spent: 0,
                started: 0,
            }
        };
        let mut world = Self {
            book: CeilingBook::default(),
            set: CeilingSettings::default(),
            members: (0..count).map(member).collect(),
            now: NOON,
            day: 0,
            minted: 0,
            said: vec![],
        };
        world.limit(day, session);
        world
    }

    fn limit(&mut self, day: &str, session: &str) {
        let read = |text: &str| Some(if text.is_empty() { Ceiling::default() } else { Ceiling::parse(text).unwrap() });
        self.set = CeilingSettings { day: read(day), session: read(session), ..CeilingSettings::default() };
        self.book.set(ConfiguredCeilings::default(), self.set.clone());
        self.settle();
    }

    /// One decision, as the session's task makes it.
    fn decide<T>(
        &mut self,
        nth: usize,
        decide: impl FnOnce(&mut SessionStateMachine, &mut DecisionEnv<'_>, &mut Plan) -> T,
    ) -> T {
        let (minted, now) = (&mut self.minted, Timestamp::from_millis(self.now));
        let member = &mut self.members[nth];
        let mut plan = Plan::default();
        let ticket = u64::try_from(member.started).unwrap() + 1;
        let mut env = DecisionEnv {
            now,
            mono: Instant::now(),
            rules: SessionRules::default(),
            mint: &mut |prefix| {
                *minted += 1;
                format!("{prefix}{minted}")
            },
            ticket: &mut || Ticket(ticket),
        };
        member.state.update_ceilings(self.book.facts(now));
        let outcome = decide(&mut member.state, &mut env, &mut plan);
        for change in &plan.spent {
            member.spent += change.spending.tokens();
            self.day += change.spending.tokens();
        }
        self.book.add(plan.spent.iter().map(|change| &change.spending), now);
        for event in plan.events.iter().filter(|event| event.kind == Kind::RunStatus) {
            let body: serde_json::Value = serde_json::from_slice(&event.body).unwrap();
            if body["status"] == "queued" {
                self.said.push(body["message"].as_str().unwrap_or_default().to_owned());
            }
        }
        for order in &plan.orders {
            match order {
                RuntimeCommand::Prompt { .. } => {
                    let facts = self.book.facts(now);
                    assert!(!facts.day_is_reached(), "a prompt began beyond the ceiling of the day");
                    assert_eq!(member.state.blocking_ceiling(), None, "a prompt began beyond a ceiling");
                    member.started += 1;
                }
                RuntimeCommand::Answer { .. } => panic!("the agent hears of a ceiling"),
                _ => {}
            }
        }
        outcome
    }

    /// Carries out the work of the tasks after each step, until nothing is left to do.
    fn settle(&mut self) {
        let mut changes = self.book.watch();
        for _ in 0..20 {
            let mut quiet = true;
            for nth in 0..self.members.len() {
                let now = Timestamp::from_millis(self.now);
                let asks = synchronize(&self.book, &mut self.members[nth].state, now);
                if self.members[nth].state.ceilings_are_due(asks) {
                    self.decide(nth, |state, env, plan| state.follow_ceilings(asks, env, plan));
                    synchronize(&self.book, &mut self.members[nth].state, now);
                    quiet = false;
                }
            }
            // Each change wakes all tasks.
            if quiet && !changes.has_changed().unwrap() {
                return;
            }
            changes.mark_unchanged();
        }
        panic!("it never comes to rest");
    }

    fn prompt(&mut self, nth: usize) -> bool {
        let content = Arc::new(vec![text_block("words")]);
        let accepted = self.decide(nth, |state, env, plan| state.prompt(content, by("me"), None, env, plan));
        self.settle();
        accepted.is_ok_and(|accepted| accepted.queued)
    }

    fn spend(&mut self, nth: usize, count: u64) {
        let report = SpendReport::step(tokens(count)).unwrap();
        let spent = RuntimeEvent::Spent { native: "n".into(), report };
        self.decide(nth, |state, env, plan| state.on_runtime_event(spent, env, plan));
        self.settle();
    }

    fn end(&mut self, nth: usize) {
        let end = RunEnd { status: RunStatus::Completed, stop_reason: None, message: None, native: None };
        let ticket = Ticket(u64::try_from(self.members[nth].started).unwrap());
        let ended = RuntimeEvent::Ended { native: "n".into(), ticket, end };
        self.decide(nth, |state, env, plan| state.on_runtime_event(ended, env, plan));
        self.settle();
    }

    /// A run that spends this.
    fn run(&mut self, nth: usize, count: u64) {
        self.prompt(nth);
        self.spend(nth, count);
        self.end(nth);
    }

    fn open(&self) -> Vec<(usize, Arc<Request>)> {
        let of =
            |(nth, member): (usize, &Member)| member.state.open_requests().into_iter().map(move |open| (nth, open));
        self.members.iter().enumerate().flat_map(of).collect()
    }

    fn questions(&self) -> Vec<String> {
        self.open().into_iter().map(|(nth, open)| format!("{nth} {}", open.title)).collect()
    }

    fn answer(&mut self, place: usize, go_on: bool) -> Option<Receipt> {
        let (nth, open) = self.open().into_iter().nth(place)?;
        let answer = Answer { ok: Some(go_on), ..Answer::default() };
        let id = open.request_id.clone();
        self.now += 1;
        let receipt =
            self.decide(nth, |state, env, plan| state.answer(&id, &answer, (by("me"), None), None, env, plan));
        self.settle();
        receipt.ok()
    }

    /// The gateway is killed, and the next one takes over; the agents run on.
    fn restart(&mut self) {
        self.book = CeilingBook::default();
        self.book.set(ConfiguredCeilings::default(), self.set.clone());
        self.book.begin_with(tokens(self.day), Timestamp::from_millis(self.now));
        for member in &mut self.members {
            let old = &member.state;
            let open = old.open_requests().iter().map(|open| Request::clone(open)).collect();
            let clocks = (Timestamp::from_millis(self.now), Instant::now());
            let prompts: Vec<_> = old
                .prompt_contents()
                .map(|(run, content)| (run.clone(), serde_json::to_vec(&**content).unwrap()))
                .collect();
            let row = old.row();
            let since = std::iter::empty();
            member.state = SessionStateMachine::restore(Arc::clone(&old.origin), &row, open, since, clocks).unwrap();
            member.state.load_prompts(&prompts);
            restore_day_answer(&self.book, &member.state);
        }
        for nth in 0..self.members.len() {
            let (asks, ticket) = self.members[nth].state.pending();
            assert!(asks.is_empty(), "no runtime is asked about ceilings");
            let prompts: Vec<Ticket> = ticket.into_iter().collect();
            self.decide(nth, |state, env, plan| state.found(&asks, &prompts, env, plan));
        }
        self.settle();
    }

    fn next_day(&mut self) {
        self.now += 25 * 3_600_000;
        self.day = 0;
        self.settle();
    }

    fn queue(&self, nth: usize) -> usize {
        self.members[nth].state.info().queue.len()
    }

    /// Checks the invariants that hold whenever nothing is left to do.
    fn check(&self) {
        let open = self.open();
        fn of(what: &'static str) -> impl Fn(&&(usize, Arc<Request>)) -> bool {
            move |(_, open)| open.title.starts_with(what)
        }
        assert!(open.iter().filter(of("All sessions")).count() <= 1, "{:?}", self.questions());
        let facts = self.book.facts(Timestamp::from_millis(self.now));
        for (nth, member) in self.members.iter().enumerate() {
            let info = member.state.info();
            let mine = open.iter().filter(|(of, _)| *of == nth).filter(of("This session")).count();
            assert!(mine <= 1, "{:?}", self.questions());
            let blocking = member.state.blocking_ceiling();
            assert!(info.queue.iter().all(|queued| queued.ceiling == blocking), "{blocking:?} {:?}", info.queue);
            if info.run_id.is_some() || info.queue.is_empty() {
                continue;
            }
            let explained = match blocking.expect("nothing holds it, and it does not run") {
                CeilingKind::Day => facts.stopped() || open.iter().any(|one| of("All sessions")(&one)),
                CeilingKind::Session => member.state.is_stopped() || mine == 1,
            };
            assert!(explained, "prompts of {nth} wait and nobody is asked: {blocking:?} {:?}", self.questions());
        }
    }
}

#[test]
fn ceiling_of_a_session_asks_once_and_lets_the_run_go_on() {
    let mut world = World::new(2, "", "100 tokens");
    world.prompt(0);
    world.spend(0, 99);
    assert_eq!(world.questions(), Vec::<String>::new());
    world.spend(0, 21);
    assert_eq!(world.questions(), ["0 This session has spent 120 of 100 tokens. Go on?"]);
    assert!(world.members[0].state.info().run_id.is_some(), "the run goes on");
    let request = world.open()[0].1.clone();
    assert_eq!((request.risk, request.display.as_str()), (Risk::Elevated, request.title.as_str()));
    assert_eq!(request.options[0].label, "Go on: 100 tokens more for this session");
    assert!(world.prompt(0) && world.prompt(0), "prompts wait");
    world.spend(0, 5);
    world.end(0);
    world.restart();
    world.check();
    assert_eq!((world.questions().len(), world.queue(0), world.members[0].started), (1, 2, 1));
    assert_eq!(world.said.iter().filter(|said| said.contains("this session")).count(), 2, "{:?}", world.said);
    // Another session is free.
    assert!(!world.prompt(1));
    assert!(world.answer(0, true).unwrap().ok.unwrap());
    assert_eq!((world.queue(0), world.members[0].started), (1, 2), "the next one runs");
    world.restart();
    assert_eq!((world.questions().len(), world.members[0].started), (0, 2), "the answer survives");
    // From what was spent the same may be spent again.
    world.spend(0, 99);
    assert!(world.questions().is_empty());
    world.spend(0, 1);
    assert_eq!(world.questions(), ["0 This session has spent 225 of 225 tokens. Go on?"]);
}

#[test]
fn ceiling_answered_with_stop_keeps_prompts_and_the_next_one_asks_again() {
    let mut world = World::new(1, "", "10 tokens");
    world.run(0, 10);
    assert!(world.prompt(0));
    assert!(!world.answer(0, false).unwrap().ok.unwrap());
    world.restart();
    assert_eq!((world.questions().len(), world.queue(0), world.members[0].started), (0, 1, 1));
    world.check();
    assert!(world.prompt(0));
    assert_eq!((world.questions().len(), world.queue(0)), (1, 2));
    // Raised, nothing is asked any more, and what waits runs.
    world.limit("", "50 tokens");
    assert_eq!((world.questions().len(), world.queue(0), world.members[0].started), (0, 1, 2));
    // Without a ceiling nothing waits.
    world.limit("", "1 tokens");
    assert_eq!((world.questions().len(), world.queue(0)), (1, 1));
    world.limit("", "");
    world.end(0);
    assert_eq!((world.questions().len(), world.queue(0), world.members[0].started), (0, 0, 3));
}

#[test]
fn ceiling_of_a_day_asks_once_for_all_and_ends_with_the_day() {
    let mut world = World::new(3, "100 tokens", "");
    world.run(0, 60);
    world.prompt(1);
    world.prompt(2);
    world.spend(1, 60);
    assert_eq!(world.questions(), ["1 All sessions have spent 120 of 100 tokens today. Go on?"]);
    world.spend(2, 60);
    assert!(world.prompt(0) && world.prompt(1) && world.prompt(2));
    assert_eq!(world.questions().len(), 1, "one request in all: {:?}", world.questions());
    world.restart();
    assert_eq!(world.questions().len(), 1);
    world.end(1);
    world.end(2);
    assert_eq!([0, 1, 2].map(|nth| world.queue(nth)), [1, 1, 1]);
    world.check();
    world.answer(0, true);
    assert_eq!([0, 1, 2].map(|nth| world.queue(nth)), [0, 0, 0], "all go on");
    world.spend(0, 100);
    assert_eq!(world.questions(), ["0 All sessions have spent 280 of 280 tokens today. Go on?"]);
    assert!(world.prompt(2));
    // Stop is for all; the next prompt of any asks again.
    world.answer(0, false);
    assert!(world.questions().is_empty());
    world.check();
    world.restart();
    assert!(world.questions().is_empty());
    assert!(world.prompt(1));
    assert_eq!(world.questions().len(), 1);
    world.check();
    world.end(2);
    assert_eq!(world.queue(2), 1);
    world.next_day();
    assert_eq!((world.questions().len(), world.queue(2)), (0, 0), "the next day releases what waits");
    world.check();
}

#[test]
fn ceiling_question_moves_on_when_its_session_ends() {
    let mut world = World::new(2, "10 tokens", "");
    world.run(0, 10);
    assert!(world.prompt(1));
    assert_eq!(world.questions()[0].chars().next(), Some('0'));
    let exit = super::RuntimeExit::default();
    world.decide(0, |state, env, plan| state.runtime_exited(&exit, env, plan));
    world.book.release(&SessionId::trusted("s_0"));
    world.settle();
    assert_eq!(world.questions()[0].chars().next(), Some('1'), "{:?}", world.questions());
    world.check();
    // A prompt that waits can be removed, and the question stays.
    let queued = world.members[1].state.info().queue[0].run_id.clone();
    world.decide(1, |state, env, plan| state.cancel(Some(&queued), (&by("me"), None), env, plan)).unwrap();
    world.settle();
    assert_eq!((world.queue(1), world.questions().len()), (0, 1));
}

#[test]
fn ceiling_of_a_session_alone_counts_before_that_of_all() {
    let mut world = World::new(2, "", "10 tokens");
    let own = [(SessionId::trusted("s_1"), Ceiling::default())];
    world.set.sessions = own.into();
    world.book.set(ConfiguredCeilings::default(), world.set.clone());
    world.run(0, 50);
    world.run(1, 50);
    assert_eq!(world.questions().len(), 1);
    assert!(world.prompt(0) && !world.prompt(1));
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Happening {
    Prompt(usize),
    Spend(usize, u64),
    End(usize),
    Answer(usize, bool),
    Limit(u64, u64),
    Restart,
    NextDay,
    Cancel(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (0..3_usize).prop_map(Happening::Prompt),
        4 => (0..3_usize, 1..40_u64).prop_map(|(nth, count)| Happening::Spend(nth, count)),
        3 => (0..3_usize).prop_map(Happening::End),
        2 => (0..4_usize, any::<bool>()).prop_map(|(nth, go_on)| Happening::Answer(nth, go_on)),
        1 => (0..120_u64, 0..60_u64).prop_map(|(day, session)| Happening::Limit(day, session)),
        1 => Just(Happening::Restart),
        1 => Just(Happening::NextDay),
        1 => (0..3_usize).prop_map(Happening::Cancel),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn ceilings_hold_in_any_order_and_never_without_a_question(all in prop::collection::vec(happening(), 1..60)) {
        let mut world = World::new(3, "100 tokens", "50 tokens");
        for one in all {
            match one {
                Happening::Prompt(nth) => drop(world.prompt(nth)),
                Happening::Spend(nth, count) => world.spend(nth, count),
                Happening::End(nth) => world.end(nth),
                Happening::Answer(nth, go_on) => drop(world.answer(nth, go_on)),
                Happening::Limit(day, session) => {
                    let text = |count: u64| if count == 0 { String::new() } else { format!("{count} tokens") };
                    world.limit(&text(day), &text(session));
                }
                Happening::Restart => world.restart(),
                Happening::NextDay => world.next_day(),
                Happening::Cancel(nth) => {
                    let _ = world.decide(nth, |state, env, plan| state.cancel(None, (&by("me"), None), env, plan));
                    world.settle();
                }
            }
            world.check();
        }
    }
}
