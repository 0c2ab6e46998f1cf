//! The changes of the open session: the list of files, the diff of the selected one, and a review of them. Pure.

mod drawing;
mod review;
mod rows;

pub(crate) use drawing::{DiffPen, file_text, list_row, path_end};
pub(crate) use review::{
    COMMENT_CHARS, COMMENTS_MAX, DraftComment, ReviewDraft, StoredReview, location_text, readable,
};
pub(crate) use rows::{DiffRow, DiffRowKind, DiffRows};

use std::collections::VecDeque;

use plexus_protocol::RunId;
use plexus_protocol::api::changes::{
    ChangeCompared, ChangeDiff, ChangeStatus, ChangedBy, ChangedFile, ChangedRun, ChangesSource, ChangesView,
    StoredPatch,
};
use ratatui_textarea::TextArea;

use super::input;
use super::view_model::line;

/// Maximum number of files of a list; further ones are counted. The gateway lists fewer.
const FILES_MAX: usize = 5_000;
/// Maximum number of diffs in the cache, so that returning to a file reads nothing.
const DIFFS_KEPT: usize = 12;
/// Minimum time between two reads of the list, in milliseconds.
const READ_PAUSE: i64 = 2_000;
/// Maximum number of runs, notes and undone changes that are listed.
const LISTED_MAX: usize = 500;

/// A file that changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChangedItem {
    /// The path as the gateway names it: not sanitized for the screen.
    pub(crate) path: String,
    pub(crate) from: Option<String>,
    /// The change of the file: a letter and a word.
    pub(crate) status: (char, &'static str),
    pub(crate) lines: Option<(usize, usize)>,
    /// The reason why there is no diff; empty if there is one.
    pub(crate) reason: String,
    pub(crate) digest: String,
    /// `Some` if the file also changed outside of the session: `true` if only there, `false` if in the session too.
    pub(crate) others: Option<bool>,
}

impl ChangedItem {
    fn new(file: &ChangedFile) -> Self {
        let status = match file.status {
            ChangeStatus::Added => ('A', "new"),
            ChangeStatus::Deleted => ('D', "deleted"),
            ChangeStatus::Renamed => ('R', "renamed"),
            ChangeStatus::Modified | ChangeStatus::Unknown => ('M', "changed"),
        };
        let compared = match file.compared {
            ChangeCompared::Text => "",
            ChangeCompared::Binary => "binary",
            ChangeCompared::Large => "large",
            ChangeCompared::Link => "link",
            ChangeCompared::Unreadable => "unreadable",
            ChangeCompared::Unknown => "unknown",
        };
        let reason = match (compared, &file.reason) {
            ("", _) => String::new(),
            (_, Some(reason)) if !reason.is_empty() => line(reason),
            (compared, _) => compared.to_owned(),
        };
        Self {
            path: file.path.clone(),
            from: file.from.clone(),
            status,
            lines: file.added.map(|added| (added, file.removed.unwrap_or_default())),
            reason,
            digest: file.digest.clone(),
            others: match file.by {
                ChangedBy::Others => Some(true),
                ChangedBy::Both => Some(false),
                ChangedBy::Session | ChangedBy::Unknown => None,
            },
        }
    }
}

/// The list of files, as it was read last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChangesList {
    pub(crate) rev: String,
    /// The session's folder.
    pub(crate) root: String,
    /// `true` if the changes are known.
    pub(crate) known: bool,
    pub(crate) files: Vec<ChangedItem>,
    pub(crate) left_off: usize,
    pub(crate) runs: Vec<RunItem>,
    pub(crate) notes: Vec<String>,
}

/// A run whose changes are known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunItem {
    pub(crate) id: RunId,
    pub(crate) at: i64,
    pub(crate) prompt: String,
    pub(crate) files: usize,
}

/// The changes that were undone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UndoneItem {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) at: i64,
    pub(crate) by: String,
}

impl RunItem {
    fn new(run: &ChangedRun) -> Self {
        Self { id: run.run_id.clone(), at: run.at.as_millis(), prompt: line(&run.prompt), files: run.files }
    }
}

impl UndoneItem {
    fn new(patch: &StoredPatch) -> Self {
        let StoredPatch { patch_id, path, at, by } = patch;
        Self { id: patch_id.clone(), path: line(path), at: at.as_millis(), by: line(&by.name) }
    }
}

impl ChangesList {
    fn new(view: &ChangesView) -> Self {
        let beyond = view.files.len().saturating_sub(FILES_MAX);
        Self {
            rev: view.rev.clone(),
            root: view.root.clone(),
            known: view.source != ChangesSource::None,
            files: view.files.iter().take(FILES_MAX).map(ChangedItem::new).collect(),
            left_off: view.left_off.saturating_add(beyond),
            runs: view.runs.iter().rev().take(LISTED_MAX).map(RunItem::new).collect(),
            notes: view.notes.iter().take(LISTED_MAX).map(|note| line(&note.text)).collect(),
        }
    }

    /// The numbers of added and removed lines.
    pub(crate) fn lines(&self) -> (usize, usize) {
        let all = self.files.iter().filter_map(|file| file.lines);
        all.fold((0, 0), |(added, removed), (a, r)| (added.saturating_add(a), removed.saturating_add(r)))
    }
}

/// The diff of a file, or the reason why it could not be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LoadedDiff {
    path: String,
    /// The requested version.
    requested: String,
    /// The version of the diff that the gateway sent.
    pub(crate) digest: String,
    pub(crate) rows: DiffRows,
    pub(crate) truncated: bool,
    pub(crate) problem: String,
}

/// The pane that gets the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangesPane {
    Files,
    Diff,
}

/// The text or choice over the two panes.
#[derive(Clone, Debug)]
pub(crate) enum ChangesMode {
    Reading,
    Filter,
    /// A comment that is being written, and the number of the comment that it changes.
    Comment {
        area: TextArea<'static>,
        about: DraftComment,
        edits: Option<u64>,
    },
    /// The review: its first line, and the selected comment if the keys go to the list.
    Review {
        first: TextArea<'static>,
        at: Option<usize>,
    },
    PatchList(usize),
    Runs(usize),
}

#[derive(Debug, Default)]
struct ListReads {
    /// The number of reads: only the last one is applied.
    serial: u64,
    running: bool,
    /// The time when the list was read last.
    last: i64,
    /// The time when the list is read again.
    due: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiffPosition {
    /// The first line of the diff on the screen, and how many of its screen lines are above.
    pub(crate) scroll: (usize, usize),
    /// `true` if the chosen line has to be scrolled into view.
    pub(crate) reveal: bool,
    /// The part to enter once the diff is loaded, counted from 1; 0 for none.
    enters: usize,
}

/// The screen of a session's changes.
pub(crate) struct ChangesScreen {
    pub(crate) session: String,
    pub(crate) list: Option<ChangesList>,
    /// The reason why the list could not be read.
    pub(crate) problem: String,
    pub(crate) filter: TextArea<'static>,
    /// The files that match the filter, and which of them is selected.
    pub(crate) fit: Vec<usize>,
    pub(crate) at: usize,
    /// The first file on the screen.
    pub(crate) top: usize,
    pub(crate) pane: ChangesPane,
    pub(crate) mode: ChangesMode,
    /// The run whose changes are shown; all if `None`.
    pub(crate) run: Option<RunItem>,
    diffs: VecDeque<LoadedDiff>,
    /// The diff that is being read: path and version, and the run that it belongs to.
    reading_diff: Option<((String, String), Option<RunId>)>,
    /// The chosen line of the diff, and the other end of a range.
    pub(crate) row: Option<usize>,
    pub(crate) anchor: Option<usize>,
    pub(crate) position: DiffPosition,
    pub(crate) draft: ReviewDraft,
    /// A comment that was closed before it was added.
    unsaved: Option<(DraftComment, String)>,
    /// `true` if the review is being sent.
    pub(crate) sending: bool,
    pub(crate) undone: Vec<UndoneItem>,
    reads: ListReads,
}

impl ChangesScreen {
    /// Returns whether letters go into a text.
    pub(crate) fn takes_text(&self) -> bool {
        match &self.mode {
            ChangesMode::Filter | ChangesMode::Comment { .. } | ChangesMode::Review { at: None, .. } => true,
            ChangesMode::Reading | ChangesMode::Review { .. } | ChangesMode::PatchList(_) | ChangesMode::Runs(_) => {
                false
            }
        }
    }

    pub(crate) fn new(session: &str, draft: ReviewDraft, now: i64) -> Self {
        Self {
            session: session.to_owned(),
            list: None,
            problem: String::new(),
            filter: input::area(""),
            fit: Vec::new(),
            at: 0,
            top: 0,
            pane: ChangesPane::Files,
            mode: ChangesMode::Reading,
            run: None,
            diffs: VecDeque::new(),
            reading_diff: None,
            row: None,
            anchor: None,
            position: DiffPosition::default(),
            draft,
            unsaved: None,
            sending: false,
            undone: Vec::new(),
            reads: ListReads { serial: 0, running: false, last: now, due: Some(now) },
        }
    }

    // === reading

    /// Schedules a read of the list, since files may have changed; several calls lead to one read.
    pub(crate) fn touch(&mut self, now: i64) {
        // A clock that was set back does not delay the read.
        let next = (self.reads.last + READ_PAUSE).clamp(now, now + READ_PAUSE);
        self.reads.due = Some(self.reads.due.map_or(next, |due| due.min(next)));
    }

    /// Reads the list now, for a request of the user or for another selection.
    pub(crate) fn read_again(&mut self, now: i64) {
        self.diffs.retain(|diff| diff.problem.is_empty());
        (self.reads.due, self.reads.running) = (Some(now), false);
    }

    /// The number of the read that is due.
    pub(crate) fn list_due(&mut self, now: i64) -> Option<u64> {
        if self.reads.running || self.reads.due.is_none_or(|due| due > now) {
            return None;
        }
        (self.reads.due, self.reads.running, self.reads.last) = (None, true, now);
        self.reads.serial += 1;
        Some(self.reads.serial)
    }

    /// Applies the list; returns whether it is a different one.
    pub(crate) fn on_list(&mut self, serial: u64, reply: Result<ChangesView, String>) -> bool {
        if serial != self.reads.serial {
            return false;
        }
        self.reads.running = false;
        match reply {
            Err(why) => {
                self.problem = why;
                false
            }
            Ok(view) => {
                self.problem.clear();
                let list = ChangesList::new(&view);
                if self.list.as_ref().is_some_and(|known| known.rev == list.rev && !list.rev.is_empty()) {
                    return false;
                }
                let chosen = self.file().map(|file| file.path.clone());
                self.list = Some(list);
                self.refit_to(chosen);
                true
            }
        }
    }

    /// The diff that has to be read: that of the selected file, one at a time.
    pub(crate) fn diff_due(&mut self) -> Option<(String, String)> {
        if self.reading_diff.is_some() {
            return None;
        }
        let file = self.file()?;
        let version = (file.path.clone(), file.digest.clone());
        let known = self
            .diffs
            .iter()
            .any(|diff| diff.path == version.0 && (diff.requested == version.1 || diff.digest == version.1));
        if !file.reason.is_empty() || known {
            return None;
        }
        self.reading_diff = Some((version.clone(), self.run_id()));
        Some(version)
    }

    fn run_id(&self) -> Option<RunId> {
        self.run.as_ref().map(|run| run.id.clone())
    }

    /// Applies the diff of a file.
    pub(crate) fn on_diff(&mut self, (path, digest): (String, String), reply: Result<ChangeDiff, String>) {
        // The diff of another run is read again.
        if self.reading_diff.take().is_none_or(|(_, run)| run != self.run_id()) {
            return;
        }
        let mut diff = LoadedDiff { path, requested: digest, ..LoadedDiff::default() };
        match reply {
            Ok(reply) => {
                diff.rows = DiffRows::read(&reply.diff);
                diff.truncated = reply.truncated;
                diff.digest = reply.digest;
            }
            Err(why) => diff.problem = why,
        }
        let is_selected = self.file().is_some_and(|file| file.path == diff.path);
        let anchor_at =
            |at: Option<usize>| self.diff().and_then(|diff| diff.rows.rows.get(at?)).and_then(DiffRow::anchor);
        let (row, anchor) = if is_selected { (anchor_at(self.row), anchor_at(self.anchor)) } else { (None, None) };
        self.diffs.retain(|one| one.path != diff.path);
        self.diffs.push_back(diff);
        while self.diffs.len() > DIFFS_KEPT {
            self.diffs.pop_front();
        }
        if !is_selected {
            return;
        }
        // The same lines remain chosen in another version of the file.
        let find = |anchor: Option<(bool, usize)>| {
            self.diff().and_then(|diff| anchor.and_then(|(old, line)| diff.rows.find(old, line)))
        };
        let (row, anchor) = (find(row), find(anchor));
        (self.row, self.anchor) = (row, anchor.filter(|_| row.is_some()));
        let rows = self.diff().map_or(0, |diff| diff.rows.rows.len());
        if self.position.scroll.0 >= rows {
            self.position.scroll = (0, 0);
        }
        if let Some(part) = std::mem::take(&mut self.position.enters).checked_sub(1) {
            let last = self.diff().map_or(0, |diff| diff.rows.parts.len()).saturating_sub(1);
            self.enter(part.min(last));
        }
    }

    /// The diff of the selected file, if it was read.
    pub(crate) fn diff(&self) -> Option<&LoadedDiff> {
        let file = self.file()?;
        self.diffs.iter().find(|diff| diff.path == file.path)
    }

    /// Chooses a run, or all of them; everything that was read before is dropped.
    pub(crate) fn choose_run(&mut self, run: Option<RunItem>, now: i64) {
        if self.run == run {
            return;
        }
        self.run = run;
        self.diffs.clear();
        (self.row, self.anchor, self.position.scroll) = (None, None, (0, 0));
        // The runs are needed until the other list is loaded.
        if let Some(list) = &mut self.list {
            list.rev.clear();
        }
        self.read_again(now);
    }

    /// Applies what was undone.
    pub(crate) fn on_undone(&mut self, patches: &[StoredPatch]) {
        self.undone = patches.iter().take(LISTED_MAX).map(UndoneItem::new).collect();
        if let ChangesMode::PatchList(at) = &mut self.mode {
            *at = (*at).min(self.undone.len().saturating_sub(1));
        }
    }

    // === the files

    /// Finds the files that match the filter, after it changed. The selected file stays selected.
    pub(crate) fn refit(&mut self) {
        self.refit_to(self.file().map(|file| file.path.clone()));
    }

    fn refit_to(&mut self, chosen: Option<String>) {
        let text = self.filter.lines().join(" ").trim().to_lowercase();
        let files = self.list.as_ref().map(|list| list.files.as_slice()).unwrap_or_default();
        let fits = |file: &ChangedItem| text.is_empty() || file.path.to_lowercase().contains(&text);
        self.fit = files.iter().enumerate().filter(|(_, file)| fits(file)).map(|(at, _)| at).collect();
        let found = chosen.as_ref().and_then(|path| self.fit.iter().position(|at| files[*at].path == *path));
        self.at = found.unwrap_or_else(|| self.at.min(self.fit.len().saturating_sub(1)));
        if self.file().map(|file| &file.path) != chosen.as_ref() {
            self.reset_position();
        }
    }

    pub(crate) fn file_at(&self, at: usize) -> Option<&ChangedItem> {
        self.list.as_ref()?.files.get(*self.fit.get(at)?)
    }

    /// The selected file.
    pub(crate) fn file(&self) -> Option<&ChangedItem> {
        self.file_at(self.at)
    }

    fn reset_position(&mut self) {
        (self.row, self.anchor, self.position.scroll, self.position.enters) = (None, None, (0, 0), 0);
    }

    pub(crate) fn go_to(&mut self, at: usize) {
        let at = at.min(self.fit.len().saturating_sub(1));
        if at != self.at {
            self.at = at;
            self.reset_position();
        }
    }

    pub(crate) fn step(&mut self, down: bool, count: usize) {
        self.go_to(if down { self.at.saturating_add(count) } else { self.at.saturating_sub(count) });
    }

    // === the lines

    fn enter(&mut self, part: usize) {
        let row = self.diff().and_then(|diff| diff.rows.enter(part));
        if row.is_some() {
            (self.row, self.anchor, self.position.reveal) = (row, None, true);
        }
    }

    /// Moves to the next or the previous part; past the end, to the first part of the next file, once its diff is loaded.
    pub(crate) fn part(&mut self, next: bool) {
        self.pane = ChangesPane::Diff;
        let current = self.row.and_then(|row| Some(self.diff()?.rows.rows.get(row)?.part));
        let parts = self.diff().map_or(0, |diff| diff.rows.parts.len());
        match (current, next) {
            (None, true) if parts > 0 => self.enter(0),
            (Some(part), true) if part + 1 < parts => self.enter(part + 1),
            (Some(part), false) if part > 0 => self.enter(part - 1),
            // The diff is being read.
            (None, true) if self.reading_diff.is_some() && self.diff().is_none() => self.position.enters += 1,
            (_, true) if self.at + 1 < self.fit.len() => {
                self.step(true, 1);
                if self.diff().is_some() { self.enter(0) } else { self.position.enters = 1 }
            }
            (_, false) if self.at > 0 => {
                self.step(false, 1);
                if self.diff().is_some() { self.enter(0) } else { self.position.enters = 1 }
            }
            _ => {}
        }
    }

    /// Moves by lines; with `grow`, the lines passed are chosen too. `first` is the first line on the screen.
    pub(crate) fn line(&mut self, down: bool, count: usize, grow: bool, first: usize) {
        let Some(diff) = self.diff() else { return };
        let Some(row) = self.row else {
            (self.row, self.position.reveal) =
                (diff.rows.choosable(first, true).or_else(|| diff.rows.choosable(first, false)), true);
            return;
        };
        let mut to = row;
        for _ in 0..count {
            let next = match down {
                true => diff.rows.choosable(to + 1, true),
                false => to.checked_sub(1).and_then(|before| diff.rows.choosable(before, false)),
            };
            match next {
                Some(next) => to = next,
                None => break,
            }
        }
        self.anchor = if grow { Some(self.anchor.unwrap_or(row)) } else { None };
        // The first line is shown with the heading above it.
        if to == row && !down {
            self.position.scroll = (0, 0);
        }
        (self.row, self.position.reveal) = (Some(to), true);
    }

    /// Moves to the first or the last line.
    pub(crate) fn end(&mut self, last: bool) {
        let Some(diff) = self.diff() else { return };
        let count = diff.rows.rows.len();
        let row = if last { diff.rows.choosable(count.saturating_sub(1), false) } else { diff.rows.choosable(0, true) };
        (self.row, self.anchor, self.position.reveal) = (row, None, true);
        if !last {
            self.position.scroll = (0, 0);
        }
    }

    /// The chosen lines: the side, the first line and the last line.
    pub(crate) fn lines(&self) -> Option<(bool, usize, usize)> {
        let row = self.row?;
        self.diff()?.rows.lines(self.anchor.unwrap_or(row), row)
    }

    /// Returns whether a line of the diff is chosen.
    pub(crate) fn is_chosen(&self, row: &DiffRow) -> bool {
        let Some((old, first, last)) = self.lines() else { return false };
        row.anchor().is_some_and(|(side, line)| side == old && (first..=last).contains(&line))
    }

    // === comments

    /// Begins a comment on the chosen lines: the one that ends there, or a new one. `None` without chosen lines.
    pub(crate) fn begin_comment(&mut self) -> Option<()> {
        let (old, line, end) = self.lines()?;
        let file = self.file()?;
        let known =
            self.draft.at(&file.path, (old, end)).find(|one| one.line == line || self.anchor.is_none()).cloned();
        if let Some(known) = known {
            self.edit_comment(&known);
            return Some(());
        }
        let digest = self.diff()?.digest.clone();
        let about = DraftComment { id: 0, path: file.path.clone(), old, line, end, text: String::new(), digest };
        let notice = match self.unsaved.take() {
            Some((left, notice)) if left == about => notice,
            _ => String::new(),
        };
        self.mode = ChangesMode::Comment { area: input::area(&notice), about, edits: None };
        Some(())
    }

    pub(crate) fn edit_comment(&mut self, known: &DraftComment) {
        self.mode =
            ChangesMode::Comment { area: input::area(&known.text), about: known.clone(), edits: Some(known.id) };
    }

    /// Ends a comment: adds it, or keeps it unsaved.
    pub(crate) fn end_comment(&mut self, add: bool) {
        let ChangesMode::Comment { area, about, edits } = std::mem::replace(&mut self.mode, ChangesMode::Reading)
        else {
            return;
        };
        let notice = area.lines().join("\n");
        if add {
            // A comment that is edited from the list stays at its place.
            self.draft.put(DraftComment { text: notice, ..about }, edits);
            (self.anchor, self.position.reveal) = (None, true);
        } else if edits.is_none() && !notice.trim().is_empty() {
            self.unsaved = Some((about, notice));
        }
    }

    /// Moves to the file and the line of a comment; returns `false` if that file is no longer changed.
    pub(crate) fn show(&mut self, comment: &DraftComment) -> bool {
        let files = self.list.as_ref().map(|list| list.files.as_slice()).unwrap_or_default();
        let Some(at) = self.fit.iter().position(|at| files[*at].path == comment.path) else { return false };
        self.go_to(at);
        let row = self.diff().and_then(|diff| diff.rows.find(comment.old, comment.end));
        (self.row, self.anchor, self.position.reveal, self.pane) = (row, None, true, ChangesPane::Diff);
        true
    }
}
