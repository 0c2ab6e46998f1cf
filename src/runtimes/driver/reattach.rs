//! Going on with a process that an earlier gateway started.

use super::*;

/// A runtime that outlived an earlier gateway, as its holder and its last state tell of it.
pub(in crate::runtimes) struct SurvivingProcess {
    pub(in crate::runtimes) held: HolderClient,
    pub(in crate::runtimes) welcome: Welcome,
    pub(in crate::runtimes) generation: u64,
    /// The sessions that belong to this very process.
    pub(in crate::runtimes) sessions: Vec<ReattachedSession>,
}

/// A holder that did not answer in time, and who waits for what it holds.
pub(in crate::runtimes) struct Late {
    pub(in crate::runtimes) path: PathBuf,
    pub(in crate::runtimes) find: fn(&str) -> Option<MakeDialect>,
    /// Sessions of its runtime: those that belong to the process that it holds go on, the others end.
    pub(in crate::runtimes) sessions: Vec<ReattachedSession>,
}

/// Waits for a holder that did not answer in time, for as long as there is one, and says so; then drives its runtime.
/// Until then no other is started in its place, and its sessions' orders wait.
pub(in crate::runtimes) async fn drive_late(
    late: Late,
    mut end: DriverEnd,
    settings: Arc<RuntimeSettings>,
    leave: Arc<Notify>,
) {
    let Late { path, find, sessions } = late;
    let found = async {
        loop {
            match HolderClient::find(&path).await {
                Ok(found) => break Ok(found),
                Err(HolderNotFound::Silent(_)) => tokio::time::sleep(LOOK_AGAIN).await,
                Err(HolderNotFound::Nobody(why)) => break Err(format!("its holder is gone: {why}")),
                Err(HolderNotFound::Unusable(why)) => break Err(why),
            }
        }
    };
    let outcome = tokio::select! {
        biased;
        () = end.stop.notified() => {
            holder_reconnect::end_silent(&path, &settings).await;
            Err(STOPPED.to_owned())
        }
        () = leave.notified() => return,
        found = found => found.and_then(|(held, welcome)| {
            let kept = welcome.blobs.iter().rev().find_map(|(_, blob)| Some(HandoverState::read(blob)?.0));
            let known = kept.and_then(|kept| Some((find(&kept.spec.dialect)?, kept)));
            let (make, kept) = known.ok_or("the state saved by an earlier gateway cannot be read")?;
            Ok((held, welcome, make, kept))
        }),
    };
    let gone =
        |reason: &str| RuntimeMessage::Gone(RuntimeExit { reason: Some(reason.into()), ..RuntimeExit::default() });
    match outcome {
        Ok((held, welcome, make, kept)) => {
            let whose = (held.instance().to_owned(), held.is_nameless());
            let belongs = |session: &ReattachedSession| session.start.belongs(&whose.0, whose.1, kept.generation);
            let (mut sessions, others): (Vec<_>, Vec<_>) = sessions.into_iter().partition(belongs);
            for other in others {
                other.inlet.put(gone("its agent is gone: another process has its id")).await;
            }
            sessions.iter_mut().for_each(|session| session.heard = session.start.last_stop(&whose.0, whose.1));
            end.info.send_modify(|info| {
                let (spec, cwd) = (&kept.spec, kept.spec.cwd.to_string_lossy().into_owned());
                *info = Arc::new(RuntimeInfo::starting(spec, cwd, kept.generation, SystemTime::now().into()));
            });
            let _ = end.spec.set(kept.spec.clone());
            let found = SurvivingProcess { held, welcome, generation: kept.generation, sessions };
            drive(kept.spec, make, end, settings, leave, StartMode::Found(Box::new(found))).await;
        }
        Err(why) => {
            for session in sessions {
                session.inlet.put(gone(&why)).await;
            }
            end.orders.close();
            end.info.send_modify(|info| {
                let (state, problem, stopped) = (RuntimeState::Exited, Some(why.clone()), why == STOPPED);
                *info = Arc::new(RuntimeInfo { state, problem, stopped, generation: 1, ..RuntimeInfo::clone(info) });
            });
            while let Some(order) = end.orders.recv().await {
                if let RuntimeCommand::Open { ticket, .. } = order.command {
                    let said = vec![RuntimeEvent::NotOpened { ticket, error: refusal(why.clone()) }];
                    order.inlet.put(RuntimeMessage::Said(said, None)).await;
                }
            }
        }
    }
}

impl Driver {
    /// Goes on with a runtime that outlived an earlier gateway.
    pub(super) fn go_on(&mut self, found: SurvivingProcess) -> ProcessState {
        let SurvivingProcess { held, mut welcome, generation, sessions } = found;
        self.recording = Recording::begin(&self.settings, &self.spec, generation);
        let mut life = ProcessState::new(
            generation,
            held,
            self.dialect(),
            &self.spec,
            self.settings.as_ref(),
            (true, &self.end.journal),
        );
        self.note(&format!("found again, process {}", life.held.pid()));
        life.stderr.push(&welcome.stderr);
        life.sessions = sessions.iter().map(|session| session.inlet.clone()).collect();
        // Only what the sessions heard, and what was answered, is heard again: after that all is news.
        life.behind = sessions.iter().map(|session| session.heard).max().or(Some(0));
        for session in sessions {
            life.routes.reattach(session);
        }
        life.replay = welcome.blobs.drain(..).collect();
        let whole = life.replay.iter().filter(|(_, blob)| !saved_steps::is_step(blob));
        life.states = whole.map(|(offset, _)| *offset).filter(|offset| *offset > welcome.acked).collect();
        life.lines = LineReader::at(self.settings.line_max, welcome.acked, None);
        (life.offset, life.lent, life.stated) = (welcome.acked, welcome.acked, welcome.acked);
        self.show(|info| {
            info.pid = Some(life.held.pid());
            info.instance = Some(life.held.instance().to_owned());
            info.stderr_tail = life.stderr.tail();
        });
        if let Some(since) = welcome.full_since {
            self.full(&mut life, since);
        }
        self.catch_up(&mut life);
        life
    }

    /// Takes over the states that were left, up to where the output was heard; after the last one this gateway knows all
    /// that the one before it did.
    pub(super) fn catch_up(&mut self, life: &mut ProcessState) {
        let Some(until) = life.behind else { return };
        if let Err(why) = self.retrace(life) {
            life.replay.clear();
            life.hopeless = true;
            life.end(why.into(), &self.settings);
        }
        if !life.replay.is_empty() || life.offset < until {
            return;
        }
        life.behind = None;
        if life.kept_ready {
            life.ready = Some(Instant::now());
            let (agent, capabilities) = (life.agent.clone(), life.dialect.capabilities());
            // One that has ended is never ready: it is there to tell of its end, and who wants it running starts another.
            let lives = life.held.processes().is_some();
            self.show(|info| {
                info.agent = agent;
                info.capabilities = Some(capabilities);
                if lives {
                    info.state = RuntimeState::Ready;
                }
            });
        } else {
            life.handshake = Some(Instant::now() + self.settings.handshake);
        }
        self.send(life);
        let (asks, prompts) = (life.dialect.asks(), life.dialect.prompts());
        let nobodys: Vec<RequestKey> = asks.iter().filter(|key| !life.routes.asked(key)).cloned().collect();
        for key in nobodys {
            // Its session is gone; whoever waits for an answer gets one.
            self.command(life, RuntimeCommand::Answer { key, decision: Decision::Withdrawn });
        }
        for inlet in std::mem::take(&mut life.sessions) {
            self.out.push(inlet, RuntimeMessage::Found { asks: asks.clone(), prompts: prompts.clone() });
        }
        // Whatever it wanted to be woken for, it is now.
        self.step(life, ExitCause::Other, |dialect, out| dialect.wake(out));
    }

    /// Takes over the newest whole state that was left by where the output was heard, and makes the steps after it that
    /// were made by then. What they wrote was written, and what they said was said.
    fn retrace(&self, life: &mut ProcessState) -> Result<(), &'static str> {
        const UNREADABLE: &str = "the state saved by an earlier gateway cannot be read";
        let due = life.replay.iter().take_while(|(offset, _)| *offset <= life.offset).count();
        let whole = life.replay.range(..due).rposition(|(_, blob)| !saved_steps::is_step(blob));
        let made: Vec<(u64, Bytes)> = life.replay.drain(..due).skip(whole.unwrap_or(0)).collect();
        for (_, blob) in made {
            if !saved_steps::is_step(&blob) {
                let (kept, saved) = HandoverState::read(&blob).ok_or(UNREADABLE)?;
                let mut dialect = self.dialect();
                if !dialect.restore(saved) {
                    return Err(UNREADABLE);
                }
                life.dialect = dialect;
                if let Some((head, dropped)) = kept.over
                    && let Ok(head) = data_encoding::HEXLOWER.decode(head.as_bytes())
                {
                    life.lines = LineReader::at(
                        self.settings.line_max,
                        life.offset,
                        Some(SkippedLine { head: head.into(), dropped }),
                    );
                }
                (life.agent, life.kept_ready) = (kept.agent, kept.ready);
                continue;
            }
            let SavedStep { wrote, entry } = saved_steps::read(&blob).ok_or(UNREADABLE)?;
            let again = match entry {
                StepEntry::Heard => life.muted,
                StepEntry::Command(command) => {
                    let mut out = Outbox::default();
                    let dialect = &mut life.dialect;
                    let step = AssertUnwindSafe(|| dialect.command(command, &mut out));
                    catch_unwind(step).map_err(|_| UNREADABLE)?;
                    saved_steps::checksum(&out.frames)
                }
            };
            if again != wrote {
                return Err(
                    "an earlier gateway sent it messages that this version would not send: they cannot continue \
                     together",
                );
            }
        }
        Ok(())
    }

    /// The connection to the holder was lost and made again, or there is nobody to connect to.
    pub(super) fn rejoined(&mut self, life: &mut ProcessState, rejoined: Rejoined) {
        life.rejoin = None;
        let (mut held, welcome) = match rejoined {
            Rejoined::Found(found) => *found,
            Rejoined::Gone(why) => {
                life.reason.get_or_insert(why);
                life.status = Some((None, None));
                return self.show(|info| info.pid = None);
            }
        };
        let lost = held.continue_from(&life.held, &welcome);
        life.held = held;
        // Those that were on their way may never have come.
        life.states.clear();
        self.note("connected to its holder again");
        if life.ending.is_none() {
            self.show(|info| info.problem = None);
        }
        if life.outlive && !life.broken && life.replay.is_empty() {
            let state = life.state(&self.spec);
            life.whole(state.len());
            if lost.is_empty() { life.held.state(life.offset, state) } else { self.put(life, state, lost) }
        } else if !lost.is_empty() {
            self.put(life, Bytes::new(), lost);
        }
        life.settle_due = Some(Instant::now() + SETTLE_EVERY);
        if let Some(ending) = &life.ending {
            if ending.killed {
                life.held.kill();
            } else {
                life.held.stop(self.settings.stop_stdin, self.settings.stop_term);
            }
        }
    }
}
