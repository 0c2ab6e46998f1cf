//! What drives the rule: one task that hears the log, who looks, and the clock, and sends. It waits for no service: each attempt is
//! a task of its own, one a place at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;
use tokio::task::JoinSet;

use super::delivery_queue::{AttemptOutcome, DeliveryQueue, QueuedNotification};
use super::rule::{Millis, NewsKind, RuleAction, RuleState, TargetState, ViewerPresence};
use super::sender::PostOutcome;
use super::text::{NotificationMessage, NotificationText, RunEndText, SUM_TAG, sum_withdrawn, summary};
use super::{Destination, Hours, Notifier, TOLD, TargetRow};
use crate::auth::Auth;
use crate::metrics::{Subscriber, metrics};
use crate::router::AppState;
use crate::router::follow::Follow;
use crate::router::stop::stopping;
use crate::sessions::{Directory, Filter};
use plexus_protocol::{
    DeviceId, Event, Kind, Position, Receipt, Request, RequestId, RequestState, RunStatus, SessionId, Timestamp,
};

/// The longest sleep: clocks jump, and what is forgotten without a word is noticed so.
const SWEEP: Duration = Duration::from_secs(30);

/// How a place is reached, and what waits for it.
struct Reach {
    to: Destination,
    queue: DeliveryQueue,
}

struct Engine {
    notifier: Notifier,
    directory: Directory,
    auth: Auth,
    state: AppState,
    rules: RuleState,
    reaches: BTreeMap<String, Reach>,
    /// What places know by themselves to be over, to be forgotten of their rows.
    known: Vec<(String, String)>,
    flights: JoinSet<(String, Destination, PostOutcome)>,
    give_up: Millis,
}

/// How a request ended, as the log says.
#[derive(Deserialize)]
struct Resolved {
    request_id: RequestId,
    #[serde(flatten)]
    receipt: Ended,
}

#[derive(Deserialize)]
struct Ended {
    state: RequestState,
    #[serde(default)]
    ok: Option<bool>,
    resolved_by: By,
}

#[derive(Deserialize)]
struct By {
    device_id: DeviceId,
    name: String,
}

#[derive(Deserialize)]
struct RunOver {
    run_id: String,
    status: RunStatus,
    #[serde(default)]
    message: Option<String>,
}

/// Notifies until the gateway stops. `from` is where the log stood before the sessions were opened again: what the last
/// gateway's end did to them is news.
pub(super) async fn run(notifier: Notifier, state: AppState, from: Position) {
    let mut stop = state.stop.clone();
    let settings = &notifier.shared.settings;
    let millis = |span: Duration| Millis::try_from(span.as_millis()).unwrap_or(Millis::MAX);
    let mut follow = Follow::new(state.directory.log(), Filter::all(), from, Subscriber::Notifications);
    let (mut looks, mut changed) = (state.presence.changes(), notifier.shared.changed.subscribe());
    let mut revoked = state.auth.revocations();
    let mut engine = Engine {
        rules: RuleState::new(millis(settings.after)),
        give_up: millis(settings.give_up_after),
        directory: state.directory.clone(),
        auth: state.auth.clone(),
        reaches: BTreeMap::new(),
        known: Vec::new(),
        flights: JoinSet::new(),
        notifier,
        state,
    };
    if let Err(error) = engine.notifier.settle().await {
        tracing::warn!(error, "subscriptions to an earlier key are still there");
    }
    engine.places().await;
    engine.begin().await;
    loop {
        let now = millis_now();
        engine.rules.clock(wall_clock().as_millis(), now);
        engine.tick(now);
        engine.forget_known().await;
        let wait = engine
            .next(now)
            .map_or(SWEEP, |at| Duration::from_millis(u64::try_from(at.saturating_sub(now)).unwrap_or(0)).min(SWEEP));
        tokio::select! {
            page = follow.page() => {
                for event in &page.events {
                    engine.event(event);
                }
            }
            _ = looks.changed() => engine.looks(),
            _ = changed.changed() => engine.places().await,
            _ = revoked.changed() => engine.places().await,
            Some(landed) = engine.flights.join_next(), if !engine.flights.is_empty() => {
                if let Ok((place, to, outcome)) = landed {
                    engine.record_attempt(&place, &to, outcome).await;
                }
            }
            () = tokio::time::sleep(wait) => engine.sweep().await,
            () = stopping(&mut stop) => return,
        }
    }
}

/// What waits are measured by: time that has passed, however the clock is set meanwhile.
fn millis_now() -> Millis {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    Millis::try_from(BEGUN.elapsed().as_millis()).unwrap_or(Millis::MAX)
}

fn wall_clock() -> Timestamp {
    SystemTime::now().into()
}

/// The requests among these.
fn tags(stories: &[Arc<NotificationText>]) -> Vec<String> {
    let asked = stories.iter().filter(|story| story.what == NewsKind::Request);
    asked.map(|story| story.tag.clone()).collect()
}

fn count(to: &Destination, outcome: &str) {
    metrics().notifications.with_label_values(&[to.kind(), outcome]).inc();
}

/// A push service that does not take our key for a subscription (401, 403) never will: the subscription is of no use.
pub(super) fn without_rejected_key(to: &Destination, outcome: PostOutcome) -> PostOutcome {
    match (to, outcome) {
        (Destination::Push(_), PostOutcome::Refused(status @ (401 | 403))) => PostOutcome::Gone(status),
        _ => outcome,
    }
}

impl Engine {
    /// Takes up what is open, and takes back what is not any more.
    async fn begin(&mut self) {
        let now = millis_now();
        let rows = self.notifier.rows().clone();
        let mut open = BTreeSet::new();
        for request in self.directory.open_requests(&Filter::all()) {
            let story = self.story(&request);
            let of = |known: fn(&TargetRow) -> &BTreeSet<String>| {
                let some = rows.iter().filter(|(_, row)| known(row).contains(&story.tag));
                some.map(|(name, _)| name.clone()).collect()
            };
            let (told, summed) = (of(|row| &row.told), of(|row| &row.summed));
            open.insert(story.tag.clone());
            self.rules.open_again(story, &told, &summed, now);
        }
        for (name, row) in rows {
            for tag in row.told.into_iter().filter(|tag| !open.contains(tag)) {
                match self.over(&tag).await {
                    Some(message) => {
                        self.push(&name, QueuedNotification { message, withdraws: true, tells: Vec::new() })
                    }
                    None => self.known.push((name.clone(), tag)),
                }
            }
            if !row.summed.is_empty() && row.summed.is_disjoint(&open) {
                self.push(&name, QueuedNotification { message: sum_withdrawn(), withdraws: true, tells: Vec::new() });
            }
        }
        self.looks();
    }

    /// What to say of something told by an earlier gateway that is over by now.
    async fn over(&self, tag: &str) -> Option<NotificationMessage> {
        let id: RequestId = tag.strip_prefix("request:")?.parse().ok()?;
        let request = self.directory.request(&id).await.ok()??;
        let end = request.receipt.as_ref().map_or(
            RunEndText { state: RequestState::Withdrawn, ok: None, by: None },
            |Receipt { state, ok, resolved_by, .. }| RunEndText {
                state: *state,
                ok: *ok,
                by: Some(resolved_by.name.clone()),
            },
        );
        Some(self.story(&request).withdrawn(&end))
    }

    fn title(&self, session: &SessionId) -> Option<String> {
        self.directory.session(session)?.title.clone()
    }

    fn story(&self, request: &Request) -> NotificationText {
        NotificationText::of_request(request, self.title(&request.session_id).as_deref())
    }

    fn event(&mut self, event: &Event) {
        let now = millis_now();
        match event.kind {
            Kind::RequestOpened => {
                let Ok(request) = serde_json::from_slice::<Request>(&event.body) else { return };
                self.rules.open(self.story(&request), now);
            }
            Kind::RequestResolved => {
                let Ok(Resolved { request_id, receipt }) = serde_json::from_slice(&event.body) else { return };
                let Ended { state, ok, resolved_by } = receipt;
                let somebody = state == RequestState::Answered;
                let end = RunEndText { state, ok, by: somebody.then(|| resolved_by.name.clone()) };
                let acts = self.rules.close(&format!("request:{request_id}"), Some(&resolved_by.device_id));
                self.perform(acts, &end);
            }
            Kind::RunEnded => {
                let Ok(RunOver { run_id, status, message }) = serde_json::from_slice(&event.body) else { return };
                let failed = match status {
                    RunStatus::Completed => false,
                    RunStatus::Error => true,
                    // Who cancels knows.
                    _ => return,
                };
                let (session, runtime) = (event.origin.session_id.clone(), event.origin.runtime_id.clone());
                let title = self.title(&session);
                let story =
                    NotificationText::of_end(&run_id, failed, session, runtime, message.as_deref(), title.as_deref());
                self.rules.open(story, now);
            }
            _ => {}
        }
    }

    fn looks(&mut self) {
        let looks = self.state.presence.screens().into_iter().map(|screen| ViewerPresence {
            device: screen.device.device_id.clone(),
            grant: screen.device.grant.clone(),
        });
        self.rules.looks(looks.collect(), millis_now());
    }

    /// Reads anew who is to be told: devices that are still enrolled and subscribed, and the owner's channels.
    async fn places(&mut self) {
        let rows = self.notifier.rows().clone();
        let settings = self.notifier.shared.settings.clone();
        let mut places = BTreeMap::new();
        let mut destinations = BTreeMap::new();
        for channel in settings.channels {
            let name = channel.place();
            places.insert(name.clone(), TargetState { device: None, wants: channel.events, quiet: None });
            destinations.insert(name, Destination::Channel(channel));
        }
        for (name, row) in rows {
            if destinations.contains_key(&name) {
                continue;
            }
            let device = name.parse::<DeviceId>().ok().and_then(|id| self.auth.device(&id));
            let Some(device) = device else {
                // Revoked, or a channel that the configuration has no more.
                if let Err(error) = self.notifier.forget(&name).await {
                    tracing::warn!(name, error, "what was kept of a place's notifications is still there");
                }
                continue;
            };
            let Some(subscription) = row.subscription else { continue };
            let device = Some((device.device_id.clone(), device.grant.clone()));
            let quiet = row.chosen.quiet.as_ref().and_then(Hours::read);
            places.insert(name.clone(), TargetState { device, wants: row.chosen.wants, quiet });
            destinations.insert(name, Destination::Push(subscription));
        }
        self.reaches.retain(|name, reach| destinations.get(name).is_some_and(|to| *to == reach.to));
        for (name, to) in destinations {
            self.reaches.entry(name).or_insert_with(|| Reach { to, queue: DeliveryQueue::default() });
        }
        self.rules.places(places, millis_now());
    }

    /// What is gone without a word: sessions that were forgotten, devices whose time is over.
    async fn sweep(&mut self) {
        let gone = self.rules.stories().filter(|story| self.directory.session(&story.session_id).is_none());
        let gone: Vec<String> = gone.map(|story| story.tag.clone()).collect();
        for tag in gone {
            let acts = self.rules.close(&tag, None);
            self.perform(acts, &RunEndText { state: RequestState::Withdrawn, ok: None, by: None });
        }
        self.places().await;
    }

    fn perform(&mut self, acts: Vec<RuleAction>, end: &RunEndText) {
        let now = wall_clock();
        for act in acts {
            let (place, message, withdraws, tells) = match act {
                RuleAction::Tell { place, story } => {
                    let grant = match self.reaches.get(&place).map(|reach| &reach.to) {
                        Some(Destination::Push(_)) => {
                            let device = place.parse::<DeviceId>().ok().and_then(|id| self.auth.device(&id));
                            let Some(device) = device else { continue };
                            Some(device.grant.clone())
                        }
                        _ => None,
                    };
                    let message = story.message(grant.as_ref(), now);
                    (place, message, false, tags(&[story]))
                }
                RuleAction::Sum { place, stories } => match summary(&stories) {
                    Some(message) => (place, message, false, tags(&stories)),
                    None => continue,
                },
                RuleAction::Withdraw { place, story } => (place, story.withdrawn(end), true, Vec::new()),
                RuleAction::WithdrawSum { place } => (place, sum_withdrawn(), true, Vec::new()),
                RuleAction::Known { place, tag } => {
                    self.known.push((place, tag));
                    continue;
                }
            };
            self.push(&place, QueuedNotification { message, withdraws, tells });
        }
    }

    fn push(&mut self, place: &str, queued: QueuedNotification) {
        let Some(reach) = self.reaches.get_mut(place) else { return };
        if let Some(dropped) = reach.queue.push(queued) {
            count(&reach.to, "dropped");
            tracing::warn!(
                place,
                tag = dropped.message.tag,
                "too many notifications are waiting for one target: one is dropped"
            );
            self.rules.lost(place, &dropped.message.tag);
        }
    }

    /// What is due goes into the queues, and what the queues have goes out.
    fn tick(&mut self, now: Millis) {
        let acts = self.rules.tick(now);
        self.perform(acts, &RunEndText { state: RequestState::Withdrawn, ok: None, by: None });
        for (name, reach) in &mut self.reaches {
            let Some(queued) = reach.queue.take(now) else { continue };
            let (notifier, to, message) = (self.notifier.clone(), reach.to.clone(), queued.message.clone());
            let name = name.clone();
            self.flights.spawn(async move {
                let outcome = notifier.send(&to, &message, wall_clock()).await;
                (name, to, outcome)
            });
        }
        metrics().notifications_waiting.set(self.reaches.values().map(|reach| reach.queue.len() as i64).sum());
    }

    fn next(&self, now: Millis) -> Option<Millis> {
        let queues = self.reaches.values().filter_map(|reach| reach.queue.next());
        queues.chain(self.rules.next(now)).min()
    }

    async fn forget_known(&mut self) {
        for (place, tag) in std::mem::take(&mut self.known) {
            if self.notifier.rows().contains_key(&place)
                && let Err(error) = self.notifier.change(&place, |row| row.forget(&tag)).await
            {
                tracing::warn!(place, error, "what is over is still kept as told");
            }
        }
    }

    async fn record_attempt(&mut self, place: &str, to: &Destination, outcome: PostOutcome) {
        // The place may have been subscribed anew meanwhile: then this was another's.
        let Some(reach) = self.reaches.get_mut(place).filter(|reach| reach.to == *to) else { return };
        let outcome = without_rejected_key(to, outcome);
        let kept = match reach.queue.record_attempt(outcome, self.give_up, millis_now()) {
            AttemptOutcome::There(queued) => {
                let kept = self.notifier.change(place, |row| {
                    let sum = queued.message.tag == SUM_TAG;
                    let set = if sum { &mut row.summed } else { &mut row.told };
                    match queued.withdraws {
                        true if sum => set.clear(),
                        true => drop(set.remove(&queued.message.tag)),
                        false => set.extend(queued.tells.into_iter().take(TOLD.saturating_sub(set.len()))),
                    }
                });
                let kept = kept.await;
                count(to, "sent");
                kept
            }
            AttemptOutcome::Again => {
                count(to, "again");
                Ok(())
            }
            AttemptOutcome::Lost(queued) => {
                count(to, if matches!(outcome, PostOutcome::Refused(_)) { "refused" } else { "given_up" });
                tracing::warn!(place, ?outcome, tag = queued.message.tag, "a notification was not accepted");
                if queued.withdraws {
                    let tag = queued.message.tag;
                    self.notifier.change(place, |row| row.forget(&tag)).await
                } else {
                    self.rules.lost(place, &queued.message.tag);
                    Ok(())
                }
            }
            AttemptOutcome::Gone => {
                count(to, "gone");
                tracing::info!(place, ?outcome, "a subscription has ended");
                match to {
                    Destination::Push(subscription) => self.notifier.gone(place, subscription).await,
                    Destination::Channel(_) => Ok(()),
                }
            }
        };
        if let Err(error) = kept {
            tracing::warn!(
                place,
                error,
                "the sent notifications could not be stored: after a restart they may be sent again"
            );
        }
    }
}

impl Notifier {
    /// The service says that there is no such subscription any more. What the device chose stays.
    pub(super) async fn gone(&self, place: &str, subscription: &super::Subscription) -> Result<(), String> {
        self.change(place, |row| {
            if row.subscription.as_ref() == Some(subscription) {
                row.mark_lapsed();
            }
        })
        .await
    }

    /// Begins to notify: the future ends when the gateway stops. `from` is where the log stood before the sessions were
    /// opened again.
    pub fn run(&self, state: AppState, from: Position) -> impl Future<Output = ()> + Send + use<> {
        run(self.clone(), state, from)
    }
}
