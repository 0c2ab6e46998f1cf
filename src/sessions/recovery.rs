//! What a gateway finds when it starts: the sessions of earlier ones, and the processes that those left. A session goes on
//! in the very process that it knows, or is closed properly.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::directory::PAGE;
use super::orphans::{LeftoverChoice, belongs, choose, process_of, why_unattended};
use super::runtime_link::{OrphanState, OrphanedRuntime, ProcessStart, ReattachedSession};
use super::session::{MAILBOX, SessionHandle, Task, now};
use super::state::{Plan, SessionStateMachine};
use super::{Directory, Filter, RuntimeLink, SessionSender};
use plexus_protocol::{Origin, Request, RequestState, RuntimeId, RuntimeInfo, RuntimeSpec, RuntimeState};
use plexus_store::{RequestQuery, SessionEntry, StoreError};

/// A session of an earlier gateway whose runtime outlived it.
struct SurvivingSession {
    state: SessionStateMachine,
    /// Which process it knows.
    start: ProcessStart,
    busy_since: Option<plexus_protocol::Position>,
}

impl Directory {
    /// Finds the sessions of earlier gateways. Those that know a process that outlived its gateway go on in it; the others
    /// are closed properly, if their gateway did not live to do that, until their runtime is there again.
    pub(super) async fn recover(&self) -> Result<(), StoreError> {
        let log = &self.shared.log;
        let mut left: HashMap<RuntimeId, Vec<OrphanedRuntime>> = HashMap::new();
        for one in self.shared.launcher.left().await {
            left.entry(one.id.clone()).or_default().push(one);
        }
        let mut survivors: HashMap<RuntimeId, Vec<SurvivingSession>> = HashMap::new();
        let entries = log.store().sessions()?;
        for entry in &entries {
            let Some(state) = self.restored(entry)? else { continue };
            let id = &state.origin.runtime_id;
            if state.exited().is_none() && state.native_id().is_some() && left.contains_key(id) {
                let start = state.in_start(entry.mark);
                let survivor = SurvivingSession { state, start, busy_since: entry.row.spare_from };
                survivors.entry(survivor.state.origin.runtime_id.clone()).or_default().push(survivor);
            } else {
                self.end_session(state, "the gateway stopped, and the agent with it").await;
            }
        }
        for (id, left) in left {
            let survivors = survivors.remove(&id).unwrap_or_default();
            let starts: Vec<&ProcessStart> = survivors.iter().map(|survivor| &survivor.start).collect();
            let choice = choose(&left, &starts);
            self.settle(id, left, choice, survivors).await;
        }
        for entry in &entries {
            if let Some(handle) = self.shared.sessions.get(&entry.row.session_id) {
                handle.last.fetch_max(entry.last.0, std::sync::atomic::Ordering::Relaxed);
            }
        }
        self.abandon_unattached();
        Ok(())
    }

    /// Takes over the process that was chosen among those of one name, and sees to the others.
    async fn settle(
        &self,
        id: RuntimeId,
        left: Vec<OrphanedRuntime>,
        choice: LeftoverChoice,
        survivors: Vec<SurvivingSession>,
    ) {
        for &place in &choice.end {
            tracing::error!(
                runtime_id = %id, process = process_of(&left[place]),
                "of several processes of one runtime this one is stopped: its sessions belong to another one"
            );
            self.shared.launcher.dismiss(&left[place]);
        }
        for &place in &choice.unattended {
            let why = why_unattended(&left[place]);
            tracing::error!(runtime_id = %id, process = process_of(&left[place]), "an agent is running unattended: {why}");
        }
        let Some(keep) = choice.keep.map(|place| &left[place]) else {
            for survivor in survivors {
                self.end_session(
                    survivor.state,
                    "its agent is running unattended: the process that the session belongs to is unknown",
                )
                .await;
            }
            if let Some(&place) = choice.unattended.first() {
                self.list_unattended(id, &left[place]);
            }
            return;
        };
        let (here, gone): (Vec<_>, Vec<_>) =
            survivors.into_iter().partition(|survivor| belongs(keep, &survivor.start) != Some(false));
        for survivor in gone {
            self.end_session(survivor.state, "the agent that it belongs to is gone").await;
        }
        self.take_over(keep, here).await;
        if let Some(link) = self.shared.runtimes.get(&id) {
            let say = |text: String| link.journal().add(now(), super::stderr_log::LogSource::Gateway, &text);
            for &place in &choice.end {
                say(format!(
                    "stopped {}: another process of the same name, to which no session belongs",
                    process_of(&left[place])
                ));
            }
            for &place in &choice.unattended {
                say(format!("{} is running unattended: {}", process_of(&left[place]), why_unattended(&left[place])));
            }
        }
    }

    /// Lists a runtime that runs and that nobody speaks with: it can be stopped, and nothing else.
    fn list_unattended(&self, id: RuntimeId, left: &OrphanedRuntime) {
        let problem = format!(
            "{} is running unattended: {}; `plexus stop {id}` stops it",
            process_of(left),
            why_unattended(left)
        );
        let unknown = RuntimeInfo::unknown(id.clone(), problem, now());
        let pid = match &left.known {
            OrphanState::All { pid, .. } => Some(*pid),
            OrphanState::Late(_) | OrphanState::Unusable(_) => None,
        };
        // Without a driver: it takes no orders, and has no next state.
        let (link, _) = RuntimeLink::new(RuntimeInfo { state: RuntimeState::Exited, pid, ..unknown });
        self.shared.runtimes.insert(id, link);
    }

    /// A session as its row, its requests and its events say.
    fn restored(&self, entry: &SessionEntry) -> Result<Option<SessionStateMachine>, StoreError> {
        let log = &self.shared.log;
        let row = &entry.row;
        let origin = Arc::new(Origin {
            session_id: row.session_id.clone(),
            runtime_id: row.runtime_id.clone(),
            dialect: row.dialect.as_str().into(),
        });
        let mut since = Vec::new();
        let filter = Filter::session(origin.session_id.clone());
        let mut after = row.as_of;
        while after < entry.last {
            let page = log.read_blocking(&filter, after, PAGE)?;
            since.extend(page.events.iter().map(|event| (event.run_id.clone(), event.seq)));
            if page.next <= after {
                break;
            }
            after = page.next;
        }
        let (state, session) = (Some(RequestState::Open), Some(&origin.session_id));
        let open = log.store().requests(RequestQuery { state, session, before: None, limit: usize::MAX >> 1 })?.rows;
        let open: Vec<Request> = open.iter().filter_map(|(_, row)| serde_json::from_slice(&row.body).ok()).collect();
        let since = since.iter().map(|(run_id, seq)| (run_id, *seq));
        let clocks = (now(), std::time::Instant::now());
        match SessionStateMachine::restore(Arc::clone(&origin), &row.state, open, since, clocks) {
            Ok(mut state) => {
                state.spared = row.spare_from;
                state.recall(&log.store().prompts(&origin.session_id)?);
                Ok(Some(state))
            }
            Err(error) => {
                tracing::error!(session_id = %origin.session_id, %error, "a session's row cannot be read; its events can");
                Ok(None)
            }
        }
    }

    /// Goes on with a runtime that outlived an earlier gateway, and with its sessions.
    async fn take_over(&self, left: &OrphanedRuntime, mut survivors: Vec<SurvivingSession>) {
        let id = left.id.clone();
        let (mut adopted, mut mailboxes) = (Vec::new(), Vec::new());
        for SurvivingSession { state, start, .. } in &mut survivors {
            let (inlet, from_runtime) = SessionSender::new();
            let Some(native) = state.native_id().cloned() else { continue };
            let (asks, prompt) = state.pending();
            let heard = match &left.known {
                OrphanState::All { instance, nameless, .. } => {
                    state.belongs_to(Some(instance.clone()));
                    start.last_stop(instance, *nameless)
                }
                OrphanState::Late(_) | OrphanState::Unusable(_) => 0,
            };
            adopted.push(ReattachedSession { native, inlet: inlet.clone(), start: start.clone(), heard, asks, prompt });
            mailboxes.push((inlet, from_runtime));
        }
        let link = match self.shared.launcher.reattach(left, adopted) {
            Ok(link) => link,
            Err(why) => {
                tracing::error!(runtime_id = %id, %why, "a runtime could not be taken over");
                for survivor in survivors {
                    self.end_session(survivor.state, &why).await;
                }
                return;
            }
        };
        tracing::info!(runtime_id = %id, sessions = survivors.len(), "found a runtime again");
        self.shared.runtimes.insert(id.clone(), link.clone());
        if let OrphanState::All { spec, .. } = &left.known {
            self.shared.specs.insert(id.clone(), RuntimeSpec::clone(spec));
        }
        self.attend(id, link.clone());
        for (survivor, mailbox) in survivors.into_iter().zip(mailboxes) {
            let (wants, wants_rx) = mpsc::channel(MAILBOX);
            let handle = SessionHandle::of(&survivor.state, Some(wants));
            for request in survivor.state.open_requests() {
                self.shared.asked.insert(request.request_id.clone(), request.session_id.clone());
            }
            let keeper = self.keeper(handle.clone(), survivor.busy_since).knows(survivor.state.recalled());
            self.shared.sessions.insert(survivor.state.origin.session_id.clone(), handle);
            let task = Task::new(survivor.state, keeper, link.clone(), mailbox, wants_rx, self.shared.rules);
            self.run(task, Plan::default());
        }
    }
}
