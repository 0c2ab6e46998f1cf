//! What the driver knows of the process that runs: its holder, its dialect, and what is not acknowledged yet.

use super::*;

/// What the next gateway is left: the holder keeps it with the output it knows of. The dialect's own state follows it. The
/// next gateway may be of another version: what it does not know it ignores, what is missing has its default.
#[derive(Serialize, Deserialize)]
pub(in crate::runtimes) struct HandoverState {
    /// The form of what is written; 0 is that of the release 0.1.0.
    #[serde(default)]
    pub(in crate::runtimes) form: u32,
    pub(in crate::runtimes) spec: RuntimeSpec,
    pub(in crate::runtimes) generation: u64,
    #[serde(default)]
    pub(in crate::runtimes) ready: bool,
    #[serde(default)]
    pub(in crate::runtimes) agent: Option<String>,
    /// The line that is being skipped: its beginning in hex, and how much of it was dropped.
    #[serde(default)]
    pub(in crate::runtimes) over: Option<(String, u64)>,
}

impl HandoverState {
    /// The form that is written; a later one is not read.
    const FORM: u32 = 1;

    /// Writes it, and the dialect's state after it.
    pub(super) fn write(&self, dialect: &[u8]) -> Bytes {
        // Plain values of our own: they always can be written. An empty one is no state, and says so when it is read.
        let head = serde_json::to_vec(self).unwrap_or_default();
        let mut all = Vec::with_capacity(4 + head.len() + dialect.len());
        all.extend_from_slice(&u32::try_from(head.len()).unwrap_or_default().to_be_bytes());
        all.extend_from_slice(&head);
        all.extend_from_slice(dialect);
        all.into()
    }

    /// Reads what [`write`](Self::write) wrote.
    pub(in crate::runtimes) fn read(blob: &[u8]) -> Option<(Self, &[u8])> {
        let (len, rest) = blob.split_first_chunk::<4>()?;
        let (head, dialect) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
        let kept: Self = serde_json::from_slice(head).ok()?;
        (kept.form <= Self::FORM).then_some((kept, dialect))
    }
}

/// One start of the process, and what is known of it.
pub(super) struct ProcessState {
    pub(super) generation: u64,
    pub(super) held: HolderClient,
    pub(super) lines: LineReader,
    pub(super) dialect: Box<dyn Dialect>,
    pub(super) client_tools: ClientTools,
    /// Conversations that it has and that wait to be opened here.
    pub(super) offers: FoundSessions,
    pub(super) step: Outbox,
    pub(super) stderr: Stderr,
    pub(super) routes: SessionRoutes,
    /// Since when sessions can be opened.
    pub(super) ready: Option<Instant>,
    pub(super) agent: Option<String>,
    pub(super) kept_ready: bool,
    pub(super) hopeless: bool,
    /// The dialect failed: what is still said is shown as it is.
    pub(super) broken: bool,
    pub(super) ending: Option<Ending>,
    /// Whether everybody was shown that it is being ended.
    pub(super) told: bool,
    /// Why it was made to end.
    pub(super) reason: Option<String>,
    /// Its exit code, or the signal that killed it, once it is gone.
    pub(super) status: Option<(Option<i32>, Option<String>)>,
    pub(super) handshake: Option<Instant>,
    pub(super) wake: Option<Instant>,
    /// How long it may take none of its input.
    pub(super) stuck: Duration,
    /// When it is made to end unless it ends by itself, and why.
    pub(super) doom: Option<(Instant, &'static str)>,
    pub(super) stderr_due: Option<Instant>,
    pub(super) stderr_shown: Option<Instant>,
    /// When it last said something, as was shown.
    pub(super) heard_at: Instant,
    /// Output that was taken from the holder and waits for room in the sessions, and its bytes.
    pub(super) stash: VecDeque<Bytes>,
    pub(super) stashed: usize,
    /// Whether it outlives the gateway: only then is what follows needed.
    pub(super) outlive: bool,
    /// How much of its output was heard, in whole lines.
    pub(super) offset: u64,
    /// Up to where it is on its way to sessions.
    pub(super) lent: u64,
    pub(super) ledger: Arc<AckTracker>,
    /// Whether what the holder was given leads to the dialect's state of now, as far as lines and commands alone do.
    pub(super) based: bool,
    /// The size of the last whole state, and of the steps since, in bytes.
    pub(super) whole: usize,
    pub(super) journal: usize,
    /// What the last step would have written that was heard again.
    pub(super) muted: u32,
    /// While the connection to the holder is made again.
    pub(super) rejoin: Option<Rejoin>,
    /// Up to where the holder has a whole state, and all those that it has, but the one it goes back to.
    pub(super) stated: u64,
    pub(super) states: VecDeque<u64>,
    pub(super) settle_due: Option<Instant>,
    /// States of an earlier gateway that are still to be taken over.
    pub(super) replay: VecDeque<(u64, Bytes)>,
    /// For what it said that is here and not kept yet.
    pub(super) meter: RuntimeMeter,
    /// Up to where at least is heard again what an earlier gateway heard; `None` once it was.
    pub(super) behind: Option<u64>,
    /// Sessions to be told when that is done.
    pub(super) sessions: Vec<SessionSender>,
}

/// A process on its way out: its holder pushes it.
pub(super) struct Ending {
    /// When to push harder ourselves.
    pub(super) until: Instant,
    pub(super) killed: bool,
    /// It and its holder are ended by their numbers.
    pub(super) forced: bool,
}

impl ProcessState {
    /// Bytes that were passed on and are not kept yet.
    pub(super) fn unkept_bytes(&self) -> usize {
        usize::try_from(self.offset.saturating_sub(self.ledger.kept_up_to(self.offset))).unwrap_or(usize::MAX)
    }

    pub(super) fn new(
        generation: u64,
        held: HolderClient,
        dialect: Box<dyn Dialect>,
        spec: &RuntimeSpec,
        settings: &RuntimeSettings,
        (outlive, journal): (bool, &StderrLog),
    ) -> Self {
        held.set_write_max(settings.write_max);
        let env = process::environment(&settings.env, spec);
        let private = settings.private.clone();
        let desk = ClientTools::new(settings.hold_exe.clone(), env, spec.id.clone(), settings.clients.clone(), private);
        Self {
            meter: RuntimeMeter::new(&settings.ledger, spec.id.as_str(), line_reader::READ),
            generation,
            held,
            lines: LineReader::new(settings.line_max),
            dialect,
            client_tools: desk,
            offers: FoundSessions::default(),
            step: Outbox::default(),
            stderr: Stderr::new(journal.clone()),
            routes: SessionRoutes::default(),
            ready: None,
            agent: None,
            kept_ready: false,
            hopeless: false,
            broken: false,
            ending: None,
            told: false,
            reason: None,
            status: None,
            handshake: None,
            wake: None,
            stuck: settings.stuck,
            doom: None,
            stderr_due: None,
            stderr_shown: None,
            heard_at: Instant::now() - HEARD_EVERY,
            stash: VecDeque::new(),
            stashed: 0,
            outlive,
            offset: 0,
            lent: 0,
            based: false,
            whole: 0,
            journal: 0,
            muted: saved_steps::checksum(&[]),
            rejoin: None,
            ledger: Arc::default(),
            stated: 0,
            states: VecDeque::new(),
            settle_due: None,
            replay: VecDeque::new(),
            behind: None,
            sessions: Vec::new(),
        }
    }

    /// The holder is given a whole state of this size, as of now.
    pub(super) fn whole(&mut self, len: usize) {
        (self.based, self.whole, self.journal) = (true, len, 0);
        if self.outlive {
            self.stated = self.offset;
            self.states.push_back(self.offset);
        }
    }

    /// Lets the holder forget what all sessions have kept, up to a whole state that it has.
    pub(super) fn acknowledge(&mut self) {
        let kept = self.ledger.kept_up_to(self.offset);
        let mut safe = None;
        while self.states.front().is_some_and(|offset| *offset <= kept) {
            safe = self.states.pop_front();
        }
        if let Some(offset) = safe {
            self.held.ack(offset);
        }
    }

    /// What the next gateway needs, as of now.
    pub(super) fn state(&self, spec: &RuntimeSpec) -> Bytes {
        let over = self.lines.over();
        let kept = HandoverState {
            form: HandoverState::FORM,
            spec: spec.clone(),
            generation: self.generation,
            ready: self.kept_ready,
            agent: self.agent.clone(),
            over: over.map(|over| (data_encoding::HEXLOWER.encode(&over.head), over.dropped)),
        };
        kept.write(&self.dialect.save().unwrap_or_default())
    }

    /// The next deadline.
    pub(super) fn due(&self) -> Option<Instant> {
        let living = self.status.is_none();
        let doom = self.doom.as_ref().map(|(at, _)| *at).filter(|_| living && self.ending.is_none());
        let ending = self.ending.as_ref().map(|ending| ending.until).filter(|_| living);
        let handshake = self.handshake.filter(|_| living);
        let wake = self.wake.filter(|_| living && self.behind.is_none());
        let settle = self.settle_due.filter(|_| living);
        let stuck = self.held.stalled().filter(|_| living && self.ending.is_none());
        let stuck = stuck.map(|since| Instant::from_std(since) + self.stuck);
        [doom, ending, handshake, wake, settle, stuck, self.stderr_due].into_iter().flatten().min()
    }

    /// Begins the end: stdin is closed; the holder sees to the rest.
    pub(super) fn end(&mut self, why: String, settings: &RuntimeSettings) {
        if self.ending.is_some() || self.status.is_some() {
            return;
        }
        self.reason = Some(why);
        self.doom = None;
        self.handshake = None;
        self.held.stop(settings.stop_stdin, settings.stop_term);
        let until = Instant::now() + settings.stop_stdin + settings.stop_term + settings.linger;
        self.ending = Some(Ending { until, killed: false, forced: false });
    }

    /// Gives it a moment to end by itself.
    pub(super) fn end_within(&mut self, why: &'static str, linger: Duration) {
        if self.ending.is_none() && self.doom.is_none() {
            self.doom = Some((Instant::now() + linger, why));
        }
    }
}
