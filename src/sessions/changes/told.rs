//! Changes of a folder that is in no git repository, from the edits that the agent told of.
//!
//! An edit names a piece of a file, or all of it, before and after. Where the file on the disk still is what the edits made of it, they
//! are taken back, the last first: what comes out is the file as it was, with its real line numbers. Where it is not, the pieces are
//! compared one after another.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plexus_protocol::transcript::{EntryBody, ToolContent, json_size};
use plexus_protocol::{Event, Kind, Position, RunId, SessionId, Timestamp};
use plexus_store::ReadLimit;

use super::PROMPT;
use super::analysis::Change;
use super::beneath::Beneath;
use super::objects::ObjectId;
use super::view::{ChangedBy, ChangedRun, ChangesNote};
use super::worktree::{FileState, LARGE, current, without_returns};
use crate::sessions::{Filter, Log};

/// Limit of one read of the log.
const SLICE: ReadLimit = ReadLimit { events: 1024, bytes: 256 << 10 };
/// How long one look reads the log; the next goes on from there.
const TIME: Duration = Duration::from_secs(5);
/// Bytes of the edits of a session that are held, those of calls under way with them; further ones are counted.
const EDITS_BYTES: usize = 8 << 20;
/// Edits of a session that are held; further ones are counted.
const EDITS: usize = 5000;
/// Bytes of the texts that one list compares; the files beyond it are counted.
const TEXTS: usize = 32 << 20;

/// An edit of a file: a piece of it, or all of it.
#[derive(Debug)]
struct ToldEdit {
    run: RunId,
    path: Vec<u8>,
    old: Option<String>,
    new: String,
}

/// The edits of a tool call that is not finished.
#[derive(Debug, Default)]
struct OpenEdits {
    /// The file, and what it held before and after.
    edits: Vec<(String, Option<String>, String)>,
    bytes: usize,
}

/// A run, as far as it was read.
#[derive(Clone, Debug)]
struct ToldRun {
    run_id: RunId,
    at: Timestamp,
    prompt: String,
}

/// The edits that a session's log tells of, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct ToldEdits {
    upto: Position,
    open: HashMap<String, OpenEdits>,
    edits: Vec<ToldEdit>,
    /// Bytes of the edits, and of those of calls under way.
    bytes: usize,
    runs: Vec<ToldRun>,
    run: Option<ToldRun>,
    left_off: usize,
    outside: usize,
    unread: bool,
}

/// What a file was and is, from the edits.
#[derive(Debug)]
pub(super) struct ToldTexts {
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    /// The file on the disk has CRLF where the texts have not.
    pub(super) returns: bool,
    /// The file is not as the edits left it: the texts are their pieces.
    pub(super) apart: bool,
}

/// A path below the folder; `None` for one that leads elsewhere.
fn below(path: &str, cwd: &Path, root: &Path) -> Option<Vec<u8>> {
    let given = Path::new(path);
    let given =
        if given.is_absolute() { given.strip_prefix(cwd).or_else(|_| given.strip_prefix(root)).ok()? } else { given };
    let mut parts: Vec<OsString> = Vec::new();
    for part in given.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_owned()),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let path: PathBuf = parts.into_iter().collect();
    (!path.as_os_str().is_empty()).then(|| path.into_os_string().into_vec())
}

impl ToldEdits {
    /// Reads what the log has more. Blocks.
    pub(super) fn read(&mut self, log: &Log, session: &SessionId, cwd: &Path, root: &Path) {
        let filter = Filter { sessions: Some(BTreeSet::from([session.clone()])), grant: None };
        let (head, until) = (log.head(), Instant::now() + TIME);
        self.unread = false;
        while self.upto < head {
            let Ok(page) = log.read_blocking(&filter, self.upto, SLICE) else {
                self.unread = true;
                return;
            };
            for event in &page.events {
                self.event(event, cwd, root);
            }
            if page.next <= self.upto {
                return;
            }
            self.upto = page.next;
            if Instant::now() >= until && self.upto < head {
                self.unread = true;
                return;
            }
        }
    }

    fn event(&mut self, event: &Event, cwd: &Path, root: &Path) {
        match event.kind {
            Kind::RunStarted => {
                let (run_id, at) = (event.run_id.clone(), event.at);
                self.run = Some(ToldRun { run_id, at, prompt: String::new() });
            }
            Kind::RunEnded => {
                let open = std::mem::take(&mut self.open);
                self.bytes -= open.into_values().map(|call| call.bytes).sum::<usize>();
            }
            Kind::UserMessageChunk => {
                let Some(run) = self.run.as_mut().filter(|run| run.run_id == event.run_id) else { return };
                let body = serde_json::from_slice(&event.body).unwrap_or_default();
                if let EntryBody::Message { content, .. } = EntryBody::read(event.kind, body)
                    && run.prompt.len() < PROMPT
                {
                    let words = format!("{}{}", run.prompt, content.text());
                    run.prompt = words.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(PROMPT).collect();
                }
            }
            Kind::ToolCall | Kind::ToolCallUpdate => {
                let body = serde_json::from_slice(&event.body).unwrap_or_default();
                if let EntryBody::Tool { id, update, .. } = EntryBody::read(event.kind, body) {
                    self.call(event, id, &update, cwd, root);
                }
            }
            _ => {}
        }
    }

    fn call(
        &mut self,
        event: &Event,
        id: String,
        update: &serde_json::Map<String, serde_json::Value>,
        cwd: &Path,
        root: &Path,
    ) {
        if let Some(content) = update.get("content").and_then(|content| content.as_array()) {
            let told: Vec<_> = content
                .iter()
                .filter_map(|entry| match ToolContent::read(entry) {
                    ToolContent::Diff { path, old, new } => {
                        Some((path.to_owned(), old.map(str::to_owned), new.to_owned()))
                    }
                    _ => None,
                })
                .collect();
            // An update of the content that only adds output keeps the edit that was told before.
            if !told.is_empty() {
                self.close(&id);
                let bytes = id.len() + content.iter().map(json_size).sum::<usize>();
                if self.bytes + bytes > EDITS_BYTES {
                    self.left_off += told.len();
                } else {
                    self.bytes += bytes;
                    self.open.insert(id.clone(), OpenEdits { edits: told, bytes });
                }
            }
        }
        match update.get("status").and_then(|status| status.as_str()) {
            Some("completed") => {
                if let Some(done) = self.close(&id) {
                    self.done(event, done, cwd, root);
                }
            }
            Some("failed") => drop(self.close(&id)),
            _ => {}
        }
    }

    /// The edits of a call that is over.
    fn close(&mut self, id: &str) -> Option<OpenEdits> {
        let call = self.open.remove(id)?;
        self.bytes -= call.bytes;
        Some(call)
    }

    fn done(&mut self, event: &Event, done: OpenEdits, cwd: &Path, root: &Path) {
        if self.edits.len() + done.edits.len() > EDITS {
            self.left_off += done.edits.len();
            return;
        }
        self.bytes += done.bytes;
        for (path, old, new) in done.edits {
            let Some(path) = below(&path, cwd, root) else {
                self.outside += 1;
                continue;
            };
            let run = event.run_id.clone();
            if self.runs.last().is_none_or(|last| last.run_id != run) {
                let known = self.run.clone().filter(|known| known.run_id == run);
                let unknown = || ToldRun { run_id: run.clone(), at: event.at, prompt: String::new() };
                self.runs.push(known.unwrap_or_else(unknown));
            }
            self.edits.push(ToldEdit { run, path, old, new });
        }
    }

    /// Whether the agent told of any edit.
    pub(super) const fn is_empty(&self) -> bool {
        self.edits.is_empty() && self.left_off == 0 && !self.unread
    }

    /// The runs that edited something, oldest first.
    pub(super) fn runs(&self) -> Vec<ChangedRun> {
        let files = |run: &RunId| {
            let of = self.edits.iter().filter(|edit| edit.run == *run);
            of.map(|edit| &edit.path).collect::<BTreeSet<_>>().len()
        };
        let one = |run: &ToldRun| ChangedRun {
            run_id: run.run_id.clone(),
            at: run.at,
            prompt: run.prompt.clone(),
            files: files(&run.run_id),
        };
        self.runs.iter().map(one).collect()
    }

    pub(super) fn knows(&self, run: &RunId) -> bool {
        self.runs.iter().any(|known| known.run_id == *run)
    }

    /// What is not listed, and why.
    pub(super) fn notes(&self) -> Vec<ChangesNote> {
        let note = |code, text: String| ChangesNote { code, text };
        let text = "only the edits that the agent told of are listed: what its commands changed is not known";
        let mut notes = vec![note("told_edits", text.into())];
        if self.outside > 0 {
            notes.push(note(
                "edits_outside",
                format!("edits of files outside of the folder are not listed: {}", self.outside),
            ));
        }
        if self.left_off > 0 {
            notes.push(note(
                "edits_bounded",
                format!("edits are not listed, because there are too many: {}", self.left_off),
            ));
        }
        if self.unread {
            notes.push(note("edits_unread", "the session is long and not all of it was read yet: look again".into()));
        }
        notes
    }

    /// The changes since the beginning or of one run, of all files or of one, and files that are left off.
    pub(super) fn changes(&self, root: &Path, run: Option<&RunId>, only: Option<&[u8]>) -> (Vec<Change>, usize) {
        let mut by_path: BTreeMap<&[u8], Vec<&ToldEdit>> = BTreeMap::new();
        for edit in self.edits.iter().filter(|edit| only.is_none_or(|only| edit.path == only)) {
            by_path.entry(&edit.path).or_default().push(edit);
        }
        let Ok(folder) = Beneath::open(root) else { return (Vec::new(), by_path.len()) };
        let (mut found, mut left_off, mut budget) = (Vec::new(), 0, TEXTS);
        for (path, edits) in by_path {
            if run.is_some_and(|run| edits.iter().all(|edit| edit.run != *run)) {
                continue;
            }
            if budget == 0 {
                left_off += 1;
                continue;
            }
            let texts = texts(&folder, path, &edits, run);
            budget = budget.saturating_sub([&texts.old, &texts.new].into_iter().flatten().map(String::len).sum());
            if texts.old == texts.new {
                continue;
            }
            let here = (!texts.apart && run.is_none()).then(|| current(&folder, path, None)).flatten();
            let mode = here.as_ref().map_or(0o100_644, |state| state.mode);
            let state = |text: &Option<String>| text.as_ref().map(|text| state_of(text, mode));
            let mut runs: Vec<RunId> = Vec::new();
            for edit in &edits {
                if runs.last() != Some(&edit.run) {
                    runs.push(edit.run.clone());
                }
            }
            found.push(Change {
                path: path.to_owned(),
                from: None,
                old: state(&texts.old),
                new: here.or_else(|| state(&texts.new)),
                by: ChangedBy::Session,
                runs,
                told: Some(Arc::new(texts)),
            });
        }
        (found, left_off)
    }
}

fn state_of(text: &str, mode: u32) -> FileState {
    FileState { mode, id: ObjectId::of_blob(text.as_bytes()).hex(), size: text.len() as u64 }
}

/// What a file was before the edits (of a run) and after them.
fn texts(folder: &Beneath, path: &[u8], edits: &[&ToldEdit], run: Option<&RunId>) -> ToldTexts {
    let here = match folder.read(path, LARGE) {
        Ok(bytes) => {
            let plain = without_returns(&bytes);
            let returns = plain.is_some();
            String::from_utf8(plain.unwrap_or(bytes)).ok().map(|text| (Some(text), returns))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some((None, false)),
        Err(_) => None,
    };
    if let Some((text, returns)) = here
        && let Some((old, new)) = taken_back(edits, text, run)
    {
        return ToldTexts { old, new, returns, apart: false };
    }
    let of_run = || edits.iter().filter(|edit| run.is_none_or(|run| edit.run == *run));
    let joined = |side: fn(&ToldEdit) -> &str| {
        let mut out = String::new();
        for piece in of_run().map(|edit| side(edit)).filter(|piece| !piece.is_empty()) {
            out.push_str(piece);
            if !piece.ends_with('\n') {
                out.push('\n');
            }
        }
        out
    };
    let is_new = of_run().all(|edit| edit.old.is_none());
    let old = (!is_new).then(|| joined(|edit| edit.old.as_deref().unwrap_or_default()));
    ToldTexts { old, new: Some(joined(|edit| &edit.new)), returns: false, apart: true }
}

/// The text before the edits and after them; `None` where an edit is not found in the text.
fn taken_back(
    edits: &[&ToldEdit],
    now: Option<String>,
    run: Option<&RunId>,
) -> Option<(Option<String>, Option<String>)> {
    let (mut text, mut before, mut after) = (now, None, None);
    for edit in edits.iter().rev() {
        let counts = run.is_none_or(|run| edit.run == *run);
        if counts && after.is_none() {
            after = Some(text.clone());
        }
        text = edit.taken_from(text)?;
        if counts {
            before = Some(text.clone());
        }
    }
    Some((before?, after?))
}

impl ToldEdit {
    /// The text without the edit: `Some(None)` where there is no file, `None` where the edit is not found.
    fn taken_from(&self, text: Option<String>) -> Option<Option<String>> {
        let (old, new) = (self.old.as_deref(), self.new.as_str());
        let Some(text) = text else {
            return match old {
                // A file that it made is gone again.
                None => Some(None),
                Some(old) => new.is_empty().then(|| Some(old.to_owned())),
            };
        };
        if text == new || text.strip_suffix('\n') == Some(new) {
            return Some(old.map(str::to_owned));
        }
        let old = old?;
        let count = |piece: &str| if piece.is_empty() { 0 } else { text.matches(piece).take(2).count() };
        match (count(old), count(new)) {
            // The piece from before holds the piece from after: nothing tells whether the edit is in the text.
            (1.., _) if old.contains(new) => None,
            (_, 1) => Some(Some(text.replacen(new, old, 1))),
            // It was undone meanwhile.
            (1, 0) if !new.is_empty() => Some(Some(text)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(run: &str, old: Option<&str>, new: &str) -> ToldEdit {
        ToldEdit { run: run.parse().unwrap(), path: b"a".to_vec(), old: old.map(Into::into), new: new.into() }
    }

    fn back(edits: &[ToldEdit], now: Option<&str>, run: Option<&str>) -> Option<(Option<String>, Option<String>)> {
        let run: Option<RunId> = run.map(|run| run.parse().unwrap());
        taken_back(&edits.iter().collect::<Vec<_>>(), now.map(Into::into), run.as_ref())
    }

    #[test]
    fn told_edits_are_taken_back_last_first() {
        let some = |old: &str, new: &str| Some((Some(old.to_owned()), Some(new.to_owned())));
        let edits = [edit("r_1", Some("two"), "2"), edit("r_2", Some("2\nthree"), "2\n3")];
        assert_eq!(back(&edits, Some("one\n2\n3\n"), None), some("one\ntwo\nthree\n", "one\n2\n3\n"));
        assert_eq!(back(&edits, Some("one\n2\n3\n"), Some("r_1")), some("one\ntwo\nthree\n", "one\n2\nthree\n"));
        assert_eq!(back(&edits, Some("one\n2\n3\n"), Some("r_2")), some("one\n2\nthree\n", "one\n2\n3\n"));
        // Undone by hand: nothing is left of the second.
        assert_eq!(back(&edits, Some("one\n2\nthree\n"), Some("r_2")), some("one\n2\nthree\n", "one\n2\nthree\n"));
        // Edited by somebody else at that place, or told of a piece that stands twice.
        assert_eq!(back(&edits, Some("one\nelse\n"), None), None);
        assert_eq!(back(&[edit("r_1", Some("x"), "2")], Some("2\n2\n"), None), None);
    }

    #[test]
    fn told_edits_of_whole_files_and_new_ones_are_taken_back() {
        let made = [edit("r_1", None, "a\nb"), edit("r_1", Some("b"), "c")];
        assert_eq!(back(&made, Some("a\nc\n"), None), Some((None, Some("a\nc\n".into()))));
        assert_eq!(back(&made, Some("a\nc\nd"), None), None, "somebody else wrote more");
        assert_eq!(back(&made, Some("a\nc"), None), Some((None, Some("a\nc".into()))));
        assert_eq!(back(&made[..1], Some("a\nb\n"), None), Some((None, Some("a\nb\n".into()))));
        assert_eq!(back(&made[..1], None, None), Some((None, None)));
        let gone = [edit("r_1", Some("all\n"), "")];
        assert_eq!(back(&gone, None, None), Some((Some("all\n".into()), None)));
    }

    #[test]
    fn told_edits_that_may_be_undone_already_are_not_taken_back() {
        let shorter = [edit("r_1", Some("a\nb\n"), "a\n")];
        assert_eq!(back(&shorter, Some("a\nb\n"), None), None);
        assert_eq!(back(&shorter, Some("x\na\nc\n"), None).unwrap().0.unwrap(), "x\na\nb\nc\n");
    }

    #[test]
    fn told_edits_are_counted_also_while_their_calls_are_under_way() {
        let origin = plexus_protocol::Origin {
            session_id: SessionId::trusted("s_1"),
            runtime_id: "demo".parse().unwrap(),
            dialect: "acp".into(),
        };
        let mut told = ToldEdits::default();
        let event = |told: &mut ToldEdits, kind: Kind, body: serde_json::Value| {
            let event = Event {
                position: Position(1),
                origin: Arc::new(origin.clone()),
                run_id: "r_1".parse().unwrap(),
                seq: 0,
                at: Timestamp::from_millis(0),
                kind,
                body: body.to_string().into(),
                native: None,
            };
            told.event(&event, Path::new("/w"), Path::new("/w"));
        };
        let call = |n: usize, status: &str| {
            let edit = serde_json::json!({ "type": "diff", "path": "a", "newText": "x".repeat(1 << 20) });
            serde_json::json!({ "toolCallId": format!("c{n}"), "status": status, "content": [edit] })
        };
        for n in 0..40 {
            event(&mut told, Kind::ToolCall, call(n, "in_progress"));
            assert!(told.bytes <= EDITS_BYTES, "{}", told.bytes);
        }
        let (held, left_off) = (told.open.len(), told.left_off);
        assert_eq!((held, left_off), (7, 33));
        event(&mut told, Kind::ToolCallUpdate, call(0, "completed"));
        event(&mut told, Kind::ToolCallUpdate, serde_json::json!({ "toolCallId": "c1", "status": "failed" }));
        event(&mut told, Kind::RunEnded, serde_json::json!({}));
        assert_eq!((told.edits.len(), told.open.len()), (1, 0));
        assert!((1 << 20..2 << 20).contains(&told.bytes), "{}", told.bytes);
    }

    #[test]
    fn told_paths_outside_of_the_folder_count_as_such() {
        let (cwd, root) = (Path::new("/link"), Path::new("/w/shop"));
        let paths =
            ["src/a.rs", "./src/../b", "/w/shop/c", "/link/d", "../e", "/etc/passwd", "/w/shop/../f", "", "/w/shop"];
        let found: Vec<_> = paths.iter().map(|path| below(path, cwd, root)).collect();
        let some = |path: &str| Some(path.as_bytes().to_vec());
        let expected = [some("src/a.rs"), some("b"), some("c"), some("d"), None, None, None, None, None];
        assert_eq!(found, expected);
    }
}
