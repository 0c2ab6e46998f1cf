//! The start of a gateway: restores the sessions of earlier gateways and takes over the processes that these left. A session continues in
//! exactly the process that it names, or is closed with events that report it.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::opening::Reopening;
use super::{Directory, PAGE};
use crate::day_ceiling::restore_day_answer;
use crate::orphans::{LeftoverChoice, belongs, choose, process_name, unattended_reason};
use crate::runtime_link::{OrphanState, OrphanedRuntime, ProcessStart, ReattachedSession};
use crate::session::Task;
use crate::session_handle::{MAILBOX, SessionHandle};
use crate::state::{Plan, SessionStateMachine};
use crate::system::now;
use crate::{Filter, RuntimeLink, SessionSender};
use plexus_protocol::api::runtimes::LogSource;
use plexus_protocol::{Origin, Request, RequestState, RuntimeId, RuntimeInfo, RuntimeSpec, RuntimeState};
use plexus_store::{RequestQuery, SessionEntry, StoreError};

/// A session of an earlier gateway that may continue in a process.
struct SurvivingSession {
    state: SessionStateMachine,
    /// The process that the session names.
    start: ProcessStart,
    busy_since: Option<plexus_protocol::Position>,
}

impl Directory {
    /// Restores the sessions of earlier gateways. Sessions whose process is alive continue in it; the others, if their gateway did not
    /// close them, are closed until their runtime is started again.
    pub(super) async fn recover(&self) -> Result<(), StoreError> {
        let log = &self.shared.registry.log;
        let mut orphans: HashMap<RuntimeId, Vec<OrphanedRuntime>> = HashMap::new();
        for orphan in self.shared.launcher.left().await {
            orphans.entry(orphan.id.clone()).or_default().push(orphan);
        }
        let mut survivors: HashMap<RuntimeId, Vec<SurvivingSession>> = HashMap::new();
        let entries = log.store().sessions()?;
        for entry in &entries {
            let Some(state) = self.restore_session(entry)? else { continue };
            restore_day_answer(&self.shared.ceilings.book, &state);
            let id = &state.origin.runtime_id;
            if state.exited().is_none() && state.native_id().is_some() && orphans.contains_key(id) {
                let start = state.process_start(entry.mark);
                let survivor = SurvivingSession { state, start, busy_since: entry.row.spare_from };
                survivors.entry(survivor.state.origin.runtime_id.clone()).or_default().push(survivor);
            } else {
                self.end_session(state, "the gateway stopped, and the agent with it").await;
            }
        }
        for (id, orphans) in orphans {
            let survivors = survivors.remove(&id).unwrap_or_default();
            let starts: Vec<&ProcessStart> = survivors.iter().map(|survivor| &survivor.start).collect();
            let choice = choose(&orphans, &starts);
            self.apply_choice(id, orphans, choice, survivors).await;
        }
        for entry in &entries {
            if let Some(handle) = self.shared.registry.sessions.get(&entry.row.session_id) {
                handle.last.fetch_max(entry.last.0, std::sync::atomic::Ordering::Relaxed);
            }
        }
        if let Some(asking_session) = self.shared.ceilings.book.facts(now()).asking_session.clone()
            && self.shared.registry.sessions.get(&asking_session).is_none_or(|handle| !handle.view.load().asks_day)
        {
            // The asking session was closed, and its question with it: another session may ask.
            self.shared.ceilings.book.release(&asking_session);
        }
        self.abandon_unattached_later();
        Ok(())
    }

    /// Takes over the chosen process of a runtime, and ends or reports the others.
    async fn apply_choice(
        &self,
        id: RuntimeId,
        orphans: Vec<OrphanedRuntime>,
        choice: LeftoverChoice,
        survivors: Vec<SurvivingSession>,
    ) {
        for &index in &choice.end {
            tracing::error!(
                runtime_id = %id, process = process_name(&orphans[index]),
                "of several processes of one runtime this one is stopped: its sessions belong to another one"
            );
            self.shared.launcher.dismiss(&orphans[index]);
        }
        for &index in &choice.unattended {
            let reason = unattended_reason(&orphans[index]);
            tracing::error!(runtime_id = %id, process = process_name(&orphans[index]), "an agent is running unattended: {reason}");
        }
        let Some(keep) = choice.keep.map(|index| &orphans[index]) else {
            for survivor in survivors {
                self.end_session(
                    survivor.state,
                    "its agent is running unattended: the process that the session belongs to is unknown",
                )
                .await;
            }
            if let Some(&index) = choice.unattended.first() {
                self.list_unattended(id, &orphans[index]);
            }
            return;
        };
        let (here, gone): (Vec<_>, Vec<_>) =
            survivors.into_iter().partition(|survivor| belongs(keep, &survivor.start) != Some(false));
        for survivor in gone {
            self.end_session(survivor.state, "the agent that it belongs to has ended").await;
        }
        self.take_over(keep, here).await;
        if let Some(link) = self.shared.registry.runtimes.get(&id) {
            let log = |text: String| link.stderr_log().add(now(), LogSource::Gateway, &text);
            for &index in &choice.end {
                log(format!(
                    "stopped {}: another process of the same name, to which no session belongs",
                    process_name(&orphans[index])
                ));
            }
            for &index in &choice.unattended {
                log(format!(
                    "{} is running unattended: {}",
                    process_name(&orphans[index]),
                    unattended_reason(&orphans[index])
                ));
            }
        }
    }

    /// Lists a runtime that runs without a driver: the only possible operation is to stop it.
    fn list_unattended(&self, id: RuntimeId, orphan: &OrphanedRuntime) {
        let problem = format!(
            "{} is running unattended: {}; `plexus stop {id}` stops it",
            process_name(orphan),
            unattended_reason(orphan)
        );
        let unknown = RuntimeInfo::unknown(id.clone(), problem, now());
        let pid = match &orphan.state {
            OrphanState::All { pid, .. } => Some(*pid),
            OrphanState::Late(_) | OrphanState::Unusable(_) => None,
        };
        // Without a driver the runtime accepts no orders and its state does not change.
        let (link, _) = RuntimeLink::new(RuntimeInfo { state: RuntimeState::Exited, pid, ..unknown });
        self.shared.registry.runtimes.insert(id, link);
    }

    /// Restores a session from its row, its open requests and the events after the row.
    fn restore_session(&self, entry: &SessionEntry) -> Result<Option<SessionStateMachine>, StoreError> {
        let log = &self.shared.registry.log;
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
        let clocks = (self.shared.ceilings.book.clock().steady(now()), std::time::Instant::now());
        match SessionStateMachine::restore(Arc::clone(&origin), &row.state, open, since, clocks) {
            Ok(mut state) => {
                state.retain_from = row.spare_from;
                state.load_prompts(&log.store().prompts(&origin.session_id)?);
                Ok(Some(state))
            }
            Err(error) => {
                tracing::error!(session_id = %origin.session_id, %error, "a session's row cannot be read; its events can");
                Ok(None)
            }
        }
    }

    /// Takes over a runtime that outlived an earlier gateway, with its sessions.
    async fn take_over(&self, orphan: &OrphanedRuntime, mut survivors: Vec<SurvivingSession>) {
        let id = orphan.id.clone();
        let (mut reattached, mut mailboxes) = (Vec::new(), Vec::new());
        for SurvivingSession { state, start, .. } in &mut survivors {
            let (sender, from_runtime) = SessionSender::new();
            let Some(native) = state.native_id().cloned() else { continue };
            let (asks, prompt) = state.pending();
            let processed = match &orphan.state {
                OrphanState::All { instance, nameless, .. } => {
                    state.set_instance(Some(instance.clone()));
                    start.last_stop(instance, *nameless)
                }
                OrphanState::Late(_) | OrphanState::Unusable(_) => 0,
            };
            let start = start.clone();
            reattached.push(ReattachedSession { native, sender: sender.clone(), start, processed, asks, prompt });
            mailboxes.push((sender, from_runtime));
        }
        let link = match self.shared.launcher.reattach(orphan, reattached) {
            Ok(link) => link,
            Err(reason) => {
                tracing::error!(runtime_id = %id, why = %reason, "a runtime could not be taken over");
                for survivor in survivors {
                    self.end_session(survivor.state, &reason).await;
                }
                return;
            }
        };
        tracing::info!(runtime_id = %id, sessions = survivors.len(), "found a runtime again");
        self.shared.registry.runtimes.insert(id.clone(), link.clone());
        if let OrphanState::All { spec, .. } = &orphan.state {
            self.shared.registry.specs.insert(id.clone(), RuntimeSpec::clone(spec));
        }
        self.watch_runtime(id, link.clone(), Reopening::Left);
        for (survivor, mailbox) in survivors.into_iter().zip(mailboxes) {
            let (commands, commands_rx) = mpsc::channel(MAILBOX);
            let handle = SessionHandle::new(&survivor.state, Some(commands));
            for request in survivor.state.open_requests() {
                self.shared.registry.request_sessions.insert(request.request_id.clone(), request.session_id.clone());
            }
            let persister = self
                .persister(handle.clone(), survivor.busy_since)
                .with_stored_prompts(survivor.state.stored_prompts());
            self.shared.registry.sessions.insert(survivor.state.origin.session_id.clone(), handle);
            let task = Task::new(survivor.state, persister, link.clone(), mailbox, commands_rx, self.shared.rules);
            self.spawn_task(task, Plan::default());
        }
    }
}
