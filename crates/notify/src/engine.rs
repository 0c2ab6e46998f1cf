//! The engine of the rule: one task that follows the log, the viewers and the clock, and sends. It waits for no service: each attempt is
//! a task of its own, one for each target at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;
use tokio::task::JoinSet;

use super::delivery_queue::{AttemptOutcome, DeliveryQueue, QueuedNotification};
use super::rule::{Millis, RuleAction, RuleState, TargetState, ViewerPresence};
use super::sender::PostOutcome;
use super::text::{
    NotificationKind, NotificationMessage, NotificationText, RunEndText, SUM_TAG, sum_withdrawn, summary,
};
use super::{Destination, Hours, Notifier, REMEMBERED_TAGS, TargetRow};
use plexus_auth::Auth;
use plexus_metrics::{Subscriber, metrics};
use plexus_protocol::{
    DeviceId, Event, Kind, Position, Receipt, Request, RequestId, RequestState, RunStatus, RuntimeId, SessionId,
    Timestamp,
};
use plexus_router::Core;
use plexus_router::follow::FollowLog;
use plexus_router::stop::stopping;
use plexus_sessions::{Directory, Filter};

/// Maximum sleep: detects sessions and devices that were removed without an event, and clocks that were set.
const SWEEP: Duration = Duration::from_secs(30);

/// A target, and the deliveries that wait for it.
struct PendingDeliveries {
    to: Destination,
    queue: DeliveryQueue,
}

struct Engine {
    notifier: Notifier,
    directory: Directory,
    auth: Auth,
    core: Core,
    rules: RuleState,
    deliveries: BTreeMap<String, PendingDeliveries>,
    /// Targets and tags of news that they know to have ended, still to be removed from their rows.
    known: Vec<(String, String)>,
    attempts: JoinSet<(String, Destination, PostOutcome)>,
    give_up: Millis,
}

/// The body of a `request_resolved` event.
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
struct RunUpdate {
    run_id: String,
    status: RunStatus,
    #[serde(default)]
    message: Option<String>,
}

/// Notifies until the gateway stops. `from` is the end of the log before the sessions were opened again: the changes made at the end of
/// the last gateway are news.
pub(super) async fn run(notifier: Notifier, core: Core, from: Position) {
    let mut stop = core.stop.clone();
    let settings = &notifier.shared.settings;
    let millis = |span: Duration| Millis::try_from(span.as_millis()).unwrap_or(Millis::MAX);
    let mut follow = FollowLog::new(core.directory.log(), Filter::all(), from, Subscriber::Notifications);
    let (mut viewers, mut changed) = (core.presence.changes(), notifier.shared.changed.subscribe());
    let mut revoked = core.auth.revocations();
    let mut engine = Engine {
        rules: RuleState::new(millis(settings.after)),
        give_up: millis(settings.give_up_after),
        directory: core.directory.clone(),
        auth: core.auth.clone(),
        deliveries: BTreeMap::new(),
        known: Vec::new(),
        attempts: JoinSet::new(),
        notifier,
        core,
    };
    if let Err(error) = engine.notifier.update_keys().await {
        tracing::warn!(error, "subscriptions to an earlier key could not be removed");
    }
    engine.targets().await;
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
            _ = viewers.changed() => engine.viewers(),
            _ = changed.changed() => engine.targets().await,
            _ = revoked.changed() => engine.targets().await,
            Some(finished) = engine.attempts.join_next(), if !engine.attempts.is_empty() => {
                if let Ok((target, to, outcome)) = finished {
                    engine.record_attempt(&target, &to, outcome).await;
                }
            }
            () = tokio::time::sleep(wait) => engine.sweep().await,
            () = stopping(&mut stop) => return,
        }
    }
}

/// Returns the time of the clock for all waits, which is never set.
fn millis_now() -> Millis {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    Millis::try_from(BEGUN.elapsed().as_millis()).unwrap_or(Millis::MAX)
}

fn wall_clock() -> Timestamp {
    SystemTime::now().into()
}

/// Returns the tags of the requests among these.
fn tags(texts: &[Arc<NotificationText>]) -> Vec<String> {
    let requests = texts.iter().filter(|text| text.kind == NotificationKind::Request);
    requests.map(|text| text.tag.clone()).collect()
}

fn count(to: &Destination, outcome: &str) {
    metrics().notifications.with_label_values(&[to.kind(), outcome]).inc();
}

/// Treats the subscription as gone if a push service refuses the gateway's key for it (401, 403), because the service always will.
pub(super) fn without_rejected_key(to: &Destination, outcome: PostOutcome) -> PostOutcome {
    match (to, outcome) {
        (Destination::Push(_), PostOutcome::Refused(status @ (401 | 403))) => PostOutcome::Gone(status),
        _ => outcome,
    }
}

impl Engine {
    /// Adds the open requests, and withdraws those that closed while no gateway ran.
    async fn begin(&mut self) {
        let now = millis_now();
        let rows = self.notifier.rows().clone();
        let mut open = BTreeSet::new();
        for request in self.directory.requests().open(&Filter::all()) {
            let text = self.text(&request);
            let targets_with = |known: fn(&TargetRow) -> &BTreeSet<String>| {
                let some = rows.iter().filter(|(_, row)| known(row).contains(&text.tag));
                some.map(|(name, _)| name.clone()).collect()
            };
            let (sent, summed) = (targets_with(|row| &row.sent), targets_with(|row| &row.summed));
            open.insert(text.tag.clone());
            self.rules.open_again(text, &sent, &summed, now);
        }
        for (name, row) in rows {
            for tag in row.sent.into_iter().filter(|tag| !open.contains(tag)) {
                match self.withdrawal(&tag).await {
                    Some(message) => {
                        self.push(&name, QueuedNotification { message, withdraws: true, request_tags: Vec::new() })
                    }
                    None => self.known.push((name.clone(), tag)),
                }
            }
            if !row.summed.is_empty() && row.summed.is_disjoint(&open) {
                self.push(
                    &name,
                    QueuedNotification { message: sum_withdrawn(), withdraws: true, request_tags: Vec::new() },
                );
            }
        }
        // A silence begins again with the gateway, which saw no earlier events.
        for run in self.directory.runs(&Filter::all()) {
            if run.status == RunStatus::Running {
                let Some(session) = self.directory.session(&run.session_id) else { continue };
                self.begin_silence(run.run_id.as_str(), &run.session_id, &session.runtime_id, now);
            }
        }
        for request in self.directory.requests().open(&Filter::all()) {
            self.rules.set_request_open(&request.session_id, request.request_id.as_str(), true);
        }
        self.viewers();
    }

    fn begin_silence(&mut self, run: &str, session: &SessionId, runtime: &RuntimeId, now: Millis) {
        let title = self.title(session);
        self.rules
            .begin_silence(NotificationText::for_silence(run, session.clone(), runtime.clone(), title.as_deref()), now);
    }

    /// Ends the silence of the run that an event belongs to. Clients that join, view and leave are no progress of the agent.
    fn progress(&mut self, event: &Event, now: Millis) {
        if matches!(event.kind, Kind::ClientJoined | Kind::ClientLeft | Kind::RuntimeStatus) {
            return;
        }
        let actions = self.rules.progress(&event.origin.session_id, now);
        self.perform(actions, &RunEndText { state: RequestState::Withdrawn, ok: None, by: None });
    }

    /// Returns the withdrawal of a notification that an earlier gateway sent and whose news has ended.
    async fn withdrawal(&self, tag: &str) -> Option<NotificationMessage> {
        let id: RequestId = tag.strip_prefix("request:")?.parse().ok()?;
        let request = self.directory.requests().get(&id).await.ok()??;
        let end = request.receipt.as_ref().map_or(
            RunEndText { state: RequestState::Withdrawn, ok: None, by: None },
            |Receipt { state, ok, resolved_by, .. }| RunEndText {
                state: *state,
                ok: *ok,
                by: Some(resolved_by.name.clone()),
            },
        );
        Some(self.text(&request).withdrawn(&end))
    }

    fn title(&self, session: &SessionId) -> Option<String> {
        self.directory.session(session)?.title.clone()
    }

    fn text(&self, request: &Request) -> NotificationText {
        NotificationText::for_request(request, self.title(&request.session_id).as_deref())
    }

    fn event(&mut self, event: &Event) {
        let now = millis_now();
        self.progress(event, now);
        match event.kind {
            Kind::RequestOpened => {
                let Ok(request) = serde_json::from_slice::<Request>(&event.body) else { return };
                self.rules.set_request_open(&request.session_id, request.request_id.as_str(), true);
                self.rules.open(self.text(&request), now);
            }
            Kind::RequestResolved => {
                let Ok(Resolved { request_id, receipt }) = serde_json::from_slice(&event.body) else { return };
                let Ended { state, ok, resolved_by } = receipt;
                self.rules.set_request_open(&event.origin.session_id, request_id.as_str(), false);
                let answered = state == RequestState::Answered;
                let end = RunEndText { state, ok, by: answered.then(|| resolved_by.name.clone()) };
                let actions = self.rules.close(&format!("request:{request_id}"), Some(&resolved_by.device_id));
                self.perform(actions, &end);
            }
            Kind::RunStarted | Kind::RunStatus => {
                let Ok(RunUpdate { run_id, status, .. }) = serde_json::from_slice(&event.body) else { return };
                if status == RunStatus::Running {
                    let (session, runtime) = (event.origin.session_id.clone(), event.origin.runtime_id.clone());
                    self.begin_silence(&run_id, &session, &runtime, now);
                }
            }
            Kind::RunEnded => {
                let actions = self.rules.run_ended(&event.origin.session_id);
                self.perform(actions, &RunEndText { state: RequestState::Withdrawn, ok: None, by: None });
                let Ok(RunUpdate { run_id, status, message }) = serde_json::from_slice(&event.body) else { return };
                let failed = match status {
                    RunStatus::Completed => false,
                    RunStatus::Error => true,
                    // The user who cancelled the run knows it.
                    _ => return,
                };
                let (session, runtime) = (event.origin.session_id.clone(), event.origin.runtime_id.clone());
                let title = self.title(&session);
                let text = NotificationText::for_run_end(
                    &run_id,
                    failed,
                    session,
                    runtime,
                    message.as_deref(),
                    title.as_deref(),
                );
                self.rules.open(text, now);
            }
            _ => {}
        }
    }

    fn viewers(&mut self) {
        let viewers = self.core.presence.screens().into_iter().map(|screen| ViewerPresence {
            device: screen.device.device_id.clone(),
            grant: screen.device.grant.clone(),
        });
        self.rules.viewers(viewers.collect(), millis_now());
    }

    /// Reads the targets: devices that are still enrolled and subscribed, and the channels of the owner.
    async fn targets(&mut self) {
        let rows = self.notifier.rows().clone();
        let settings = self.notifier.shared.settings.clone();
        let mut targets = BTreeMap::new();
        let mut destinations = BTreeMap::new();
        for channel in settings.channels {
            let name = channel.target_name();
            targets.insert(name.clone(), TargetState { device: None, filter: channel.events, quiet: None });
            destinations.insert(name, Destination::Channel(channel));
        }
        for (name, row) in rows {
            if destinations.contains_key(&name) {
                continue;
            }
            let device = name.parse::<DeviceId>().ok().and_then(|id| self.auth.device(&id));
            let Some(device) = device else {
                // A revoked device, or a channel that was removed from the configuration.
                if let Err(error) = self.notifier.forget(&name).await {
                    tracing::warn!(name, error, "the notification state of a removed target could not be deleted");
                }
                continue;
            };
            let Some(subscription) = row.subscription else { continue };
            let device = Some((device.device_id.clone(), device.grant.clone()));
            let quiet = row.chosen.quiet.as_ref().and_then(Hours::read);
            targets.insert(name.clone(), TargetState { device, filter: row.chosen.filter, quiet });
            destinations.insert(name, Destination::Push(subscription));
        }
        self.deliveries.retain(|name, pending| destinations.get(name).is_some_and(|to| *to == pending.to));
        for (name, to) in destinations {
            self.deliveries.entry(name).or_insert_with(|| PendingDeliveries { to, queue: DeliveryQueue::default() });
        }
        self.rules.targets(targets, millis_now());
    }

    /// Removes targets and news that disappeared without an event: deleted sessions, expired devices.
    async fn sweep(&mut self) {
        let removed = self.rules.texts().filter(|text| self.directory.session(&text.session_id).is_none());
        let removed: Vec<String> = removed.map(|text| text.tag.clone()).collect();
        for tag in removed {
            let actions = self.rules.close(&tag, None);
            self.perform(actions, &RunEndText { state: RequestState::Withdrawn, ok: None, by: None });
        }
        self.targets().await;
    }

    fn perform(&mut self, actions: Vec<RuleAction>, end: &RunEndText) {
        let now = wall_clock();
        for action in actions {
            let (target, message, withdraws, request_tags) = match action {
                RuleAction::Notify { target, text } => {
                    let grant = match self.deliveries.get(&target).map(|pending| &pending.to) {
                        Some(Destination::Push(_)) => {
                            let device = target.parse::<DeviceId>().ok().and_then(|id| self.auth.device(&id));
                            let Some(device) = device else { continue };
                            Some(device.grant.clone())
                        }
                        _ => None,
                    };
                    let message = text.message(grant.as_ref(), now);
                    (target, message, false, tags(&[text]))
                }
                RuleAction::Summarize { target, texts } => match summary(&texts) {
                    Some(message) => (target, message, false, tags(&texts)),
                    None => continue,
                },
                RuleAction::Withdraw { target, text } => (target, text.withdrawn(end), true, Vec::new()),
                RuleAction::WithdrawSummary { target } => (target, sum_withdrawn(), true, Vec::new()),
                RuleAction::Known { target, tag } => {
                    self.known.push((target, tag));
                    continue;
                }
            };
            self.push(&target, QueuedNotification { message, withdraws, request_tags });
        }
    }

    fn push(&mut self, target: &str, queued: QueuedNotification) {
        let Some(pending) = self.deliveries.get_mut(target) else { return };
        if let Some(dropped) = pending.queue.push(queued) {
            count(&pending.to, "dropped");
            tracing::warn!(
                name = target,
                tag = dropped.message.tag,
                "too many notifications wait for one target: the oldest was dropped"
            );
            self.rules.lost(target, &dropped.message.tag);
        }
    }

    /// Queues the due notifications, and starts the attempts that may start.
    fn tick(&mut self, now: Millis) {
        let actions = self.rules.tick(now);
        self.perform(actions, &RunEndText { state: RequestState::Withdrawn, ok: None, by: None });
        for (name, pending) in &mut self.deliveries {
            let Some(queued) = pending.queue.take(now) else { continue };
            let (notifier, to, message) = (self.notifier.clone(), pending.to.clone(), queued.message.clone());
            // A push service that refuses a signature because of its time would end the subscription.
            let (name, signed_at) = (name.clone(), self.directory.clock().steady(wall_clock()));
            self.attempts.spawn(async move {
                let outcome = notifier.send(&to, &message, signed_at).await;
                (name, to, outcome)
            });
        }
        metrics().notifications_waiting.set(self.deliveries.values().map(|pending| pending.queue.len() as i64).sum());
    }

    fn next(&self, now: Millis) -> Option<Millis> {
        let queues = self.deliveries.values().filter_map(|pending| pending.queue.next());
        queues.chain(self.rules.next(now)).min()
    }

    async fn forget_known(&mut self) {
        for (target, tag) in std::mem::take(&mut self.known) {
            if self.notifier.rows().contains_key(&target)
                && let Err(error) = self.notifier.change(&target, |row| row.forget(&tag)).await
            {
                tracing::warn!(
                    name = target,
                    error,
                    "a closed request could not be removed from the notification state"
                );
            }
        }
    }

    async fn record_attempt(&mut self, target: &str, to: &Destination, outcome: PostOutcome) {
        // The device may have subscribed again meanwhile: then this attempt was for its old subscription.
        let Some(pending) = self.deliveries.get_mut(target).filter(|pending| pending.to == *to) else { return };
        let outcome = without_rejected_key(to, outcome);
        let recorded = match pending.queue.record_attempt(outcome, self.give_up, millis_now()) {
            AttemptOutcome::Delivered(queued) => {
                let recorded = self.notifier.change(target, |row| {
                    let sum = queued.message.tag == SUM_TAG;
                    let set = if sum { &mut row.summed } else { &mut row.sent };
                    match queued.withdraws {
                        true if sum => set.clear(),
                        true => drop(set.remove(&queued.message.tag)),
                        false => {
                            set.extend(queued.request_tags.into_iter().take(REMEMBERED_TAGS.saturating_sub(set.len())))
                        }
                    }
                });
                let recorded = recorded.await;
                count(to, "sent");
                recorded
            }
            AttemptOutcome::Retry => {
                count(to, "again");
                Ok(())
            }
            AttemptOutcome::Dropped(queued) => {
                count(to, if matches!(outcome, PostOutcome::Refused(_)) { "refused" } else { "given_up" });
                tracing::warn!(name = target, ?outcome, tag = queued.message.tag, "a notification was not delivered");
                if queued.withdraws {
                    let tag = queued.message.tag;
                    self.notifier.change(target, |row| row.forget(&tag)).await
                } else {
                    self.rules.lost(target, &queued.message.tag);
                    Ok(())
                }
            }
            AttemptOutcome::Gone => {
                count(to, "gone");
                tracing::info!(name = target, ?outcome, "a subscription has ended");
                match to {
                    Destination::Push(subscription) => self.notifier.remove_subscription(target, subscription).await,
                    Destination::Channel(_) => Ok(()),
                }
            }
        };
        if let Err(error) = recorded {
            tracing::warn!(
                name = target,
                error,
                "a delivery could not be recorded: after a restart it may be sent again"
            );
        }
    }
}

impl Notifier {
    /// Removes a subscription that the service no longer knows. The device's choices stay.
    pub(super) async fn remove_subscription(
        &self,
        target: &str,
        subscription: &super::Subscription,
    ) -> Result<(), String> {
        self.change(target, |row| {
            if row.subscription.as_ref() == Some(subscription) {
                row.mark_lapsed();
            }
        })
        .await
    }

    /// Notifies until the gateway stops. `from` is the end of the log before the sessions were opened again.
    pub fn run(&self, core: Core, from: Position) -> impl Future<Output = ()> + Send + use<> {
        run(self.clone(), core, from)
    }
}
