//! Records the messages between a runtime and the gateway, for `plexus replay`: one recording for each start of a program and each
//! attachment to an endpoint.
//!
//! The recording is made at the dialect: all its input, and all its output. A thread of its own masks and writes, so that nothing waits
//! for it, and a failure of it does not affect the session.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::RuntimeSettings;
use super::recording_masks::RecordingMasks;
use plexus_dialects::recording::{Direction, RecordingEntry, RecordingHead, frame_line, request_line};
use plexus_dialects::{
    ClientToolError, ClientToolResult, Dialect, HttpReply, Outbox, RequestKey, RuntimeCommand, SessionLimit,
};
use plexus_protocol::{Capabilities, Decision, RuntimeSpec, Ticket};

/// Maximum size of a recording, in bytes (64 MiB). There it ends, with a note.
const RECORDING_MAX: u64 = 64 << 20;
/// Maximum length of a recorded line, in bytes (1 MiB). A longer one is replaced by a note.
const RECORDED_LINE_MAX: usize = 1 << 20;
/// Maximum size of the lines that wait to be written, in bytes (16 MiB). With more, lines are left out, and a note has their number.
const WAITING_BYTES_MAX: usize = 16 << 20;
/// Maximum number of lines that wait to be written; with more, lines are left out, too.
const WAITING_LINES_MAX: usize = 1 << 14;

/// Maximum time that a stopping gateway waits for unwritten lines.
const WRITTEN_IN: Duration = Duration::from_secs(1);

/// Number of recordings that are being written.
static WRITING: AtomicUsize = AtomicUsize::new(0);

/// Waits until the recordings of all ended runtimes are written; [`WRITTEN_IN`] at most.
pub(super) async fn written() {
    let all = async {
        while WRITING.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = tokio::time::timeout(WRITTEN_IN, all).await;
}

/// The recording of one runtime, or none.
#[derive(Clone, Default)]
pub(super) struct Recording(Option<Arc<OpenRecording>>);

/// The state of a recording that is being written.
struct OpenRecording {
    lines: SyncSender<RecordedLine>,
    waiting: Arc<AtomicUsize>,
    /// Number of lines that were left out since the last recorded one.
    left_out: AtomicU64,
}

/// An item to be written.
enum RecordedLine {
    Entry(RecordingEntry),
    /// A received frame, which is converted to text when it is written.
    Frame(Bytes),
    /// A note that this many lines are missing.
    Missing(u64),
    /// A text that is masked from now on.
    Secret(String),
}

impl Recording {
    /// Begins the recording of a runtime, if the settings enable it. If it cannot begin, the log has the reason.
    pub(super) fn begin(settings: &RuntimeSettings, spec: &RuntimeSpec, generation: u64) -> Self {
        let Some(dir) = &settings.record else { return Self::default() };
        let file = match create(dir, spec, generation) {
            Ok((file, path)) => {
                tracing::info!(path = %path.display(), "recording the messages of a runtime");
                file
            }
            Err(reason) => {
                tracing::warn!(folder = %dir.display(), why = %reason, "the messages of a runtime cannot be recorded");
                return Self::default();
            }
        };
        let passed = settings.env.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        let passed = passed.filter(|(name, _)| spec.pass_env.iter().any(|passed| passed == name));
        let masks = RecordingMasks::new(spec, passed);
        let (lines, to_write) = sync_channel(WAITING_LINES_MAX);
        let waiting = Arc::new(AtomicUsize::new(0));
        let writer = RecordWriter { file, masks, written: 0, waiting: Arc::clone(&waiting), max: RECORDING_MAX };
        let name = "recorder".to_owned();
        WRITING.fetch_add(1, Ordering::Relaxed);
        let write = move || {
            writer.write_all(&to_write);
            WRITING.fetch_sub(1, Ordering::Relaxed);
        };
        if let Err(reason) = std::thread::Builder::new().name(name).spawn(write) {
            WRITING.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!(why = %reason, "the messages of a runtime cannot be recorded");
            return Self::default();
        }
        let this = Self(Some(Arc::new(OpenRecording { lines, waiting, left_out: AtomicU64::new(0) })));
        let head = RecordingHead::new(env!("CARGO_PKG_VERSION"), spec);
        this.entry(|| RecordingEntry::new(Direction::About, serde_json::to_string(&head).unwrap_or_default()));
        this
    }

    /// Returns the dialect, wrapped to be recorded if this is a recording.
    pub(super) fn wrap(&self, dialect: Box<dyn Dialect>) -> Box<dyn Dialect> {
        match self.0 {
            Some(_) => Box::new(RecordedDialect { dialect, to: self.clone() }),
            None => dialect,
        }
    }

    fn entry(&self, entry: impl FnOnce() -> RecordingEntry) {
        if let Some(open) = &self.0 {
            let entry = entry();
            open.put(entry.line.len(), RecordedLine::Entry(entry));
        }
    }
}

impl OpenRecording {
    fn put(&self, bytes: usize, line: RecordedLine) {
        let fits = self.waiting.load(Ordering::Relaxed) + bytes <= WAITING_BYTES_MAX;
        if fits {
            let missing = self.left_out.swap(0, Ordering::Relaxed);
            if missing > 0 && self.lines.try_send(RecordedLine::Missing(missing)).is_err() {
                self.left_out.fetch_add(missing, Ordering::Relaxed);
            }
            self.waiting.fetch_add(bytes, Ordering::Relaxed);
            if self.lines.try_send(line).is_ok() {
                return;
            }
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes the folder and the file, accessible to their owner only.
fn create(dir: &Path, spec: &RuntimeSpec, generation: u64) -> std::io::Result<(File, PathBuf)> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    let runtime: String = spec.id.as_str().chars().map(safe).collect();
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let path = dir.join(format!("{runtime}-{at}-{generation}.ndjson"));
    let file = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?;
    Ok((file, path))
}

/// The state of the thread of a recording.
struct RecordWriter {
    file: File,
    masks: RecordingMasks,
    written: u64,
    waiting: Arc<AtomicUsize>,
    max: u64,
}

impl RecordWriter {
    /// Writes until the recording ends or writing fails.
    fn write_all(mut self, lines: &Receiver<RecordedLine>) {
        while let Ok(line) = lines.recv() {
            let (bytes, entry) = match line {
                RecordedLine::Entry(entry) => (entry.line.len(), entry),
                RecordedLine::Frame(frame) => (frame.len(), RecordingEntry::new(Direction::Out, frame_line(&frame))),
                RecordedLine::Missing(count) => {
                    (0, note(format!("{count} lines are missing here: too many were waiting to be written")))
                }
                RecordedLine::Secret(secret) => {
                    self.masks.learn_typed(&secret);
                    continue;
                }
            };
            let wrote = self.write(entry);
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            match wrote {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) => {
                    tracing::warn!(why = %reason, "a recording has ended: it cannot be written");
                    break;
                }
            }
        }
    }

    /// Writes one line; returns `false` if it was the last.
    fn write(&mut self, entry: RecordingEntry) -> std::io::Result<bool> {
        let entry = if entry.line.len() > RECORDED_LINE_MAX {
            let (dir, len) = (entry.dir.as_str(), entry.line.len());
            note(format!("a line ({dir}) is left out: its {len} bytes exceed the limit of {RECORDED_LINE_MAX}"))
        } else {
            self.masks.mask(entry)
        };
        let line = entry.written();
        if self.written + line.len() as u64 > self.max {
            let end = format!("the recording ends here, at its limit of {} bytes; the session continued", self.max);
            self.file.write_all(note(end).written().as_bytes())?;
            return Ok(false);
        }
        self.written += line.len() as u64;
        self.file.write_all(line.as_bytes())?;
        Ok(true)
    }
}

fn note(words: String) -> RecordingEntry {
    RecordingEntry::new(Direction::Note, words)
}

/// A dialect whose input and output are recorded.
struct RecordedDialect {
    dialect: Box<dyn Dialect>,
    to: Recording,
}

impl RecordedDialect {
    /// Makes one step, and records its output.
    fn step(&mut self, out: &mut Outbox, step: impl FnOnce(&mut dyn Dialect, &mut Outbox)) {
        let (frames, fetches) = (out.frames.len(), out.fetches.len());
        step(self.dialect.as_mut(), out);
        for frame in out.frames.get(frames..).unwrap_or_default() {
            self.to.entry(|| RecordingEntry::new(Direction::In, frame_line(frame)));
        }
        for fetch in out.fetches.get(fetches..).unwrap_or_default() {
            self.to.entry(|| RecordingEntry::about(Direction::In, fetch.id, request_line(fetch)));
        }
    }
}

impl Dialect for RecordedDialect {
    fn open(&mut self, out: &mut Outbox) {
        self.to.entry(|| RecordingEntry::new(Direction::Open, ""));
        self.step(out, |dialect, out| dialect.open(out));
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        if let Some(open) = &self.to.0 {
            open.put(frame.len(), RecordedLine::Frame(frame.clone()));
        }
        self.step(out, |dialect, out| dialect.feed(frame, out));
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        // Text that a user typed is stored nowhere.
        if let (RuntimeCommand::Answer { decision: Decision::Value(Some(typed)), .. }, Some(open)) =
            (&command, &self.to.0)
        {
            open.put(0, RecordedLine::Secret(typed.clone()));
        }
        self.to.entry(|| RecordingEntry::new(Direction::Command, serde_json::to_string(&command).unwrap_or_default()));
        self.step(out, |dialect, out| dialect.command(command, out));
    }

    fn wake(&mut self, out: &mut Outbox) {
        self.to.entry(|| RecordingEntry::new(Direction::Wake, ""));
        self.step(out, |dialect, out| dialect.wake(out));
    }

    fn lost(&mut self, reason: &str, out: &mut Outbox) {
        self.to.entry(|| RecordingEntry::new(Direction::Lost, reason));
        self.step(out, |dialect, out| dialect.lost(reason, out));
    }

    fn reply(&mut self, id: u64, reply: Result<HttpReply, String>, out: &mut Outbox) {
        self.to.entry(|| {
            let line = match &reply {
                Ok(reply) => format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body)),
                Err(reason) => format!("0 {reason}"),
            };
            RecordingEntry::about(Direction::Reply, id, line)
        });
        self.step(out, |dialect, out| dialect.reply(id, reply, out));
    }

    fn done(&mut self, id: u64, done: Result<ClientToolResult, ClientToolError>, out: &mut Outbox) {
        self.to.entry(|| RecordingEntry::about(Direction::Done, id, serde_json::to_string(&done).unwrap_or_default()));
        self.step(out, |dialect, out| dialect.done(id, done, out));
    }

    fn restore(&mut self, saved: &[u8]) -> bool {
        self.to.entry(|| RecordingEntry::new(Direction::Restored, String::from_utf8_lossy(saved)));
        self.dialect.restore(saved)
    }

    fn events_path(&self) -> &'static str {
        self.dialect.events_path()
    }

    fn probes(&self) -> &'static [&'static str] {
        self.dialect.probes()
    }

    fn mistaken(&self, probed: &[Result<HttpReply, String>]) -> Option<&'static str> {
        self.dialect.mistaken(probed)
    }

    fn save(&self) -> Option<Vec<u8>> {
        self.dialect.save()
    }

    fn asks(&self) -> Vec<RequestKey> {
        self.dialect.asks()
    }

    fn held(&self) -> usize {
        self.dialect.held()
    }

    fn prompts(&self) -> Vec<Ticket> {
        self.dialect.prompts()
    }

    fn capabilities(&self) -> Capabilities {
        self.dialect.capabilities()
    }

    fn reached_by(&self) -> &'static [&'static str] {
        self.dialect.reached_by()
    }

    fn sessions(&self) -> SessionLimit {
        self.dialect.sessions()
    }

    fn fixed_folder(&self) -> bool {
        self.dialect.fixed_folder()
    }

    fn reviewer(&self) -> Option<&'static str> {
        self.dialect.reviewer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_dialects::recording::read;
    use plexus_protocol::{Connect, RuntimeId};

    fn spec() -> RuntimeSpec {
        RuntimeSpec::new(RuntimeId::trusted("a/b"), "acp", Connect::Command(vec!["agent".into()]), "/w")
    }

    fn written(dir: &Path) -> Option<(PathBuf, String)> {
        let path = std::fs::read_dir(dir).ok()?.flatten().next()?.path();
        Some((path.clone(), std::fs::read_to_string(path).ok()?))
    }

    #[test]
    fn recorder_writes_a_dialect_to_a_file_of_its_owners() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("a/b");
        let mut settings = RuntimeSettings::new("plexus".into(), home.path().into());
        settings.record = Some(dir.clone());
        let recording = Recording::begin(&settings, &spec(), 3);
        let mut dialect = recording.wrap(plexus_dialects::find("acp").unwrap()(&spec()));
        let mut out = Outbox::default();
        dialect.open(&mut out);
        dialect.feed(Bytes::from_static(b"junk"), &mut out);
        drop((dialect, recording));
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let (path, text) = loop {
            if let Some(found) = written(&dir).filter(|(_, text)| text.contains("junk")) {
                break found;
            }
            assert!(std::time::Instant::now() < until, "nothing was written");
        };
        let dirs: Vec<&str> = read(&text).unwrap().iter().map(|(_, entry)| entry.dir.as_str()).collect();
        assert_eq!(dirs, ["about", "open", "in", "out"]);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("a_b-") && name.ends_with("-3.ndjson"), "{name}");
    }

    #[test]
    fn recorder_ends_at_its_limit_and_leaves_out_long_lines() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("r");
        let (to, lines) = sync_channel(16);
        let waiting = Arc::new(AtomicUsize::new(0));
        let masks = RecordingMasks::new(&spec(), std::iter::empty());
        let writer =
            RecordWriter { file: File::create(&path).unwrap(), masks, written: 0, waiting: waiting.clone(), max: 300 };
        let recording = OpenRecording { lines: to, waiting: waiting.clone(), left_out: AtomicU64::new(0) };
        let frame = |frame: Vec<u8>| recording.put(frame.len(), RecordedLine::Frame(frame.into()));
        frame(vec![b'x'; RECORDED_LINE_MAX + 1]);
        // More than may wait at all.
        frame(vec![b'x'; WAITING_BYTES_MAX + 1]);
        frame(b"first".to_vec());
        frame("words ".repeat(50).into_bytes());
        frame(b"second".to_vec());
        drop(recording);
        writer.write_all(&lines);
        let entries = read(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let told: Vec<(&str, &str)> = entries.iter().map(|(_, entry)| (entry.dir.as_str(), &*entry.line)).collect();
        assert_eq!(told[0], ("note", "a line (out) is left out: its 1048577 bytes exceed the limit of 1048576"));
        assert_eq!(told[1], ("note", "1 lines are missing here: too many were waiting to be written"));
        assert_eq!(told[2], ("out", "first"));
        assert_eq!(told[3], ("note", "the recording ends here, at its limit of 300 bytes; the session continued"));
        assert_eq!(told.len(), 4);
    }

    #[test]
    fn recorder_without_a_usable_folder_records_nothing() {
        let home = tempfile::tempdir().unwrap();
        let mut settings = RuntimeSettings::new("plexus".into(), home.path().into());
        settings.record = Some("/dev/null/not/a/folder".into());
        assert!(Recording::begin(&settings, &spec(), 1).0.is_none());
    }
}
