//! The changes of a session: the keys of the screen, its calls to the gateway, and the replies.

mod drawing;

use std::collections::HashMap;

use plexus_client::ClientEvent;
use plexus_client::calls::{self, ApiRequest};
use plexus_protocol::api::changes::{RedoChange, UndoChange, UndoneChanges};
use plexus_protocol::{Kind, SessionId, SessionState};

use super::context::{Context, MouseAction, MouseInput, Step};
use super::draw::Draw;
use super::message::{AfterConfirm, CallKey, CallTag, ChangesCall, Effect};
use super::shared::{ConnectionView, Overlay, Shared};
use super::{Hint, PAGES, Page, TuiPage};
use crate::changes::{
    COMMENT_CHARS, COMMENTS_MAX, ChangesMode, ChangesPane, ChangesScreen, DiffPen, DraftComment, ReviewDraft, RunItem,
};
use crate::input::{self, Key};
use crate::reply::CallReply;
use crate::sanitize;

/// Maximum length of a path in a message, in columns.
const PATH_MAX: usize = 80;
/// Maximum length of a text copied to the clipboard, in bytes; the limit of terminals.
pub(crate) const COPY_MAX: usize = 74_000;
/// Lines scrolled by a step of the mouse wheel.
const WHEEL_LINES: i64 = 3;
/// The code of the refusal of a diff for a file that has not changed.
const NO_CHANGE: &str = "no_change";

/// Reviews that were not sent yet.
#[derive(Default)]
pub(crate) struct Reviews {
    /// The reviews by their sessions.
    pub(crate) drafts: HashMap<String, ReviewDraft>,
    /// The review that was sent last, and the number of reviews: a repeated one has the same key.
    sent: Option<ApiRequest>,
    count: u64,
}

/// The changes of the open session.
#[derive(Default)]
pub(crate) struct ChangesPage {
    /// The screen of changes, while it is open.
    pub(crate) screen: Option<Box<ChangesScreen>>,
    pub(crate) reviews: Reviews,
}

fn short_path(path: &str) -> String {
    sanitize::line(path, PATH_MAX)
}

impl ChangesPage {
    /// Shows the changes of a session.
    pub(crate) fn open(&mut self, session: &str, cx: &mut Context<'_>) {
        let draft = self.reviews.drafts.get(session).cloned().unwrap_or_default();
        self.screen = Some(Box::new(ChangesScreen::new(session, draft, cx.shared.now)));
        self.read_undone(cx);
    }

    /// Returns to the conversation. Unsent text is kept.
    fn close_changes(&mut self, cx: &mut Context<'_>) {
        self.keep_review(cx);
        let Some(mut screen) = self.screen.take() else { return };
        screen.end_comment(false);
        self.reviews.drafts.insert(screen.session, screen.draft);
        // The card was not on the screen meanwhile: its guard begins anew.
        cx.shared.rearm_card();
    }

    fn keep_review(&mut self, cx: &mut Context<'_>) {
        let Some(screen) = &mut self.screen else { return };
        if let ChangesMode::Review { first, .. } = &screen.mode {
            screen.draft.set_first(&first.lines().join(" "));
        }
        let (session, stored) = (screen.session.clone(), screen.draft.to_stored());
        if self.reviews.drafts.get(&session).and_then(ReviewDraft::to_stored) != stored {
            self.reviews.drafts.insert(session.clone(), screen.draft.clone());
            cx.effects.push(Effect::SaveReview(session, stored));
        }
    }

    /// Schedules a read of the list for the session on the screen, whose files may have changed.
    pub(crate) fn touch(&mut self, session: Option<&str>, shared: &Shared) {
        if let Some(screen) = self.screen.as_mut().filter(|one| session.is_none_or(|id| id == one.session)) {
            screen.touch(shared.now);
        }
    }

    /// Reads the data that the screen needs, after any message. `open`: the id of the open session.
    pub(crate) fn update(&mut self, open: Option<&str>, on_screen: bool, cx: &mut Context<'_>) {
        let Some(screen) = &self.screen else { return };
        if open != Some(&screen.session) || cx.shared.page != TuiPage::Session {
            return self.close_changes(cx);
        }
        if on_screen
            && cx.shared.link == ConnectionView::Live
            && let Some(screen) = &mut self.screen
        {
            let session = SessionId::trusted(screen.session.as_str());
            let run = screen.run.as_ref().map(|run| run.id.clone());
            if let Some(serial) = screen.list_due(cx.shared.now) {
                let tag = CallTag::Changes(screen.session.clone(), ChangesCall::List(serial));
                cx.call(tag, calls::changes(&session, run.as_ref()));
            }
            if let Some((path, digest)) = screen.diff_due() {
                let call = calls::change_diff(&session, &path, run.as_ref());
                cx.call(CallTag::Changes(screen.session.clone(), ChangesCall::Diff(path, digest)), call);
            }
        }
        self.settle_changes(cx.shared);
    }

    /// Scrolls the selected file and the chosen line into view.
    fn settle_changes(&mut self, shared: &Shared) {
        let areas = self.areas(shared);
        let top = self.top(&areas);
        let scroll = self.with_diff(shared, |pen| pen.settled(usize::from(areas.lines.height)));
        let Some(screen) = &mut self.screen else { return };
        screen.top = top;
        if let Some(scroll) = scroll {
            (screen.position.scroll, screen.position.reveal) = (scroll, false);
        }
    }

    /// Calls `read` with the diff on the screen.
    fn with_diff<T>(&self, shared: &Shared, read: impl FnOnce(&DiffPen<'_>) -> T) -> Option<T> {
        let width = usize::from(self.areas(shared).lines.width);
        let screen = self.screen.as_ref()?;
        Some(read(&DiffPen { screen, diff: screen.diff()?, theme: &shared.theme, width }))
    }

    fn scroll_changes(&mut self, by: i64, shared: &Shared) {
        let height = usize::from(self.areas(shared).lines.height);
        let scroll = self.with_diff(shared, |pen| pen.scrolled(by, height));
        if let (Some(screen), Some(scroll)) = (&mut self.screen, scroll) {
            screen.position.scroll = scroll;
        }
    }

    // === keys

    fn changes_global_key(&mut self, key: &Key, cx: &mut Context<'_>) {
        match key.name() {
            "?" => cx.shared.overlay = Some(Overlay::Help(0)),
            ":" => cx.shared.overlay = Some(Overlay::Palette { area: input::area(""), at: 0 }),
            name => {
                let page = name.parse::<usize>().ok().and_then(|n| PAGES.get(n.checked_sub(1)?));
                if let Some((page, _)) = page {
                    cx.go(*page);
                }
            }
        }
    }

    fn changes_reading_key(&mut self, key: &Key, cx: &mut Context<'_>) -> bool {
        let two = self.areas(cx.shared).has_both();
        let Some(screen) = &mut self.screen else { return false };
        match key.name() {
            "Esc" if screen.anchor.is_some() => screen.anchor = None,
            "Esc" if !screen.filter.is_empty() => {
                screen.filter = input::area("");
                screen.refit();
            }
            "Esc" | "Left" if !two && screen.pane == ChangesPane::Diff => screen.pane = ChangesPane::Files,
            "Esc" | "q" | "u" => self.close_changes(cx),
            "Tab" | "S-Tab" if screen.pane == ChangesPane::Diff => screen.pane = ChangesPane::Files,
            "Left" => screen.pane = ChangesPane::Files,
            "Tab" | "S-Tab" | "Right" | "Enter" => screen.pane = ChangesPane::Diff,
            "j" | "k" => screen.step(key.name() == "j", 1),
            "n" | "p" => screen.part(key.name() == "n"),
            "f" | "/" => screen.mode = ChangesMode::Filter,
            "c" => self.begin_comment(cx.shared),
            "v" => self.mark_viewed(cx),
            "S" => self.begin_review(cx.shared),
            "x" => self.ask_undo(false, cx.shared),
            "X" => self.ask_undo(true, cx.shared),
            "U" => self.list_undone(cx),
            "r" => self.list_runs(cx.shared),
            "R" => screen.read_again(cx.shared.now),
            "e" => self.edit_changed(cx),
            "y" | "Y" => self.copy_patch(key.name() == "Y", cx),
            _ => return self.changes_move_key(key, cx.shared),
        }
        true
    }

    /// Handles a key that moves in the focused pane; returns `true` if it was one.
    fn changes_move_key(&mut self, key: &Key, shared: &Shared) -> bool {
        let page = usize::from(self.areas(shared).lines.height).saturating_sub(1).max(1);
        let Some(screen) = &mut self.screen else { return false };
        let files = screen.pane == ChangesPane::Files;
        let first = screen.position.scroll.0;
        match key.name() {
            "Down" | "Up" if files => screen.step(key.name() == "Down", 1),
            "PageDown" | "PageUp" if files => screen.step(key.name() == "PageDown", 10),
            "Home" | "g" if files => screen.go_to(0),
            "End" | "G" if files => screen.go_to(usize::MAX),
            "Down" | "Up" => screen.line(key.name() == "Down", 1, false, first),
            "J" | "S-Down" => screen.line(true, 1, true, first),
            "K" | "S-Up" => screen.line(false, 1, true, first),
            "Home" | "g" => screen.end(false),
            "End" | "G" => screen.end(true),
            "PageDown" | " " | "PageUp" => {
                let by = i64::try_from(page).unwrap_or(1);
                self.scroll_changes(if key.name() == "PageUp" { -by } else { by }, shared);
                self.line_on_screen();
            }
            _ => return false,
        }
        true
    }

    /// Chooses the first line on the screen, after a page was turned.
    fn line_on_screen(&mut self) {
        let Some(screen) = self.screen.as_mut().filter(|screen| screen.row.is_some()) else { return };
        let (first, above) = screen.position.scroll;
        let from = if above > 0 { first + 1 } else { first };
        if let Some(row) = screen.diff().and_then(|diff| diff.rows.choosable(from, true)) {
            (screen.row, screen.anchor, screen.position.reveal) = (Some(row), None, false);
        }
    }

    // === comments

    fn begin_comment(&mut self, shared: &mut Shared) {
        let Some(screen) = &mut self.screen else { return };
        if screen.draft.comments.len() >= COMMENTS_MAX {
            return shared.show_notice(&format!("a review has at most {COMMENTS_MAX} comments: S sends them"), true);
        }
        if screen.begin_comment().is_none() {
            shared.show_notice("choose a line first: n goes to the next changed one, ↑ ↓ from line to line", false);
        }
    }

    fn add_comment(&mut self, cx: &mut Context<'_>) {
        let Some(screen) = &mut self.screen else { return };
        if let ChangesMode::Comment { area, .. } = &screen.mode
            && area.lines().iter().map(|line| line.chars().count() + 1).sum::<usize>() > COMMENT_CHARS
        {
            return cx.shared.show_notice(&format!("a comment has at most {COMMENT_CHARS} characters"), true);
        }
        screen.end_comment(true);
        self.keep_review(cx);
    }

    fn mark_viewed(&mut self, cx: &mut Context<'_>) {
        let Some(screen) = &mut self.screen else { return };
        let Some((path, digest)) = screen.file().map(|file| (file.path.clone(), file.digest.clone())) else { return };
        if screen.draft.mark(&path, &digest) {
            screen.step(true, 1);
        }
        self.keep_review(cx);
    }

    fn begin_review(&mut self, shared: &mut Shared) {
        let Some(screen) = &mut self.screen else { return };
        if screen.draft.comments.is_empty() {
            return shared.show_notice("no comments yet: c writes one on the chosen line", false);
        }
        screen.mode = ChangesMode::Review { first: input::area(&screen.draft.first), at: None };
    }

    fn review_key(&mut self, key: &Key, cx: &mut Context<'_>) {
        let Some(screen) = &mut self.screen else { return };
        let ChangesMode::Review { first, at } = &mut screen.mode else { return };
        let last = screen.draft.comments.len().saturating_sub(1);
        match (key.name(), *at) {
            ("Esc", _) => {
                self.keep_review(cx);
                self.screen.iter_mut().for_each(|screen| screen.mode = ChangesMode::Reading);
            }
            ("C-s", _) | ("Enter", None) => self.send_review(cx),
            ("Down" | "Tab", None) => *at = Some(0),
            ("Up" | "k" | "S-Tab", Some(0)) => *at = None,
            ("Down" | "j" | "Tab", Some(n)) => *at = Some((n + 1).min(last)),
            ("Up" | "k" | "S-Tab", Some(n)) => *at = Some(n - 1),
            ("Enter" | "e", Some(n)) => {
                if let Some(comment) = screen.draft.comments.get(n).cloned() {
                    self.keep_review(cx);
                    self.edit_listed(&comment, cx.shared);
                }
            }
            ("d" | "x" | "Delete" | "Backspace", Some(n)) => {
                if n < screen.draft.comments.len() {
                    screen.draft.comments.remove(n);
                }
                *at = Some(n.min(screen.draft.comments.len().saturating_sub(1)));
                if screen.draft.comments.is_empty() {
                    screen.mode = ChangesMode::Reading;
                }
                self.keep_review(cx);
            }
            ("M-Enter" | "C-j" | "S-Enter", _) | (_, Some(_)) => {}
            (_, None) => drop(input::edit(first, key)),
        }
    }

    /// Edits a comment of the list, with its line on the screen if it still exists.
    fn edit_listed(&mut self, comment: &DraftComment, shared: &mut Shared) {
        let Some(screen) = &mut self.screen else { return };
        let is_listed = screen.show(comment);
        screen.edit_comment(comment);
        if !is_listed {
            shared.show_notice("this file is no longer in the list", false);
        }
    }

    fn send_review(&mut self, cx: &mut Context<'_>) {
        self.keep_review(cx);
        let Some(screen) = self.screen.as_mut().filter(|screen| !screen.sending) else { return };
        screen.sending = true;
        let session = screen.session.clone();
        let request = calls::review_changes(&SessionId::trusted(session.as_str()), &screen.draft.to_review()).request;
        let ids = screen.draft.comments.iter().map(|one| one.id).collect();
        let tag = CallTag::Changes(session, ChangesCall::Review(ids, screen.draft.first.clone()));
        // The same review has the same key: if the reply was lost, it is still applied only once.
        if self.reviews.sent.as_ref() != Some(&request) {
            self.reviews.count += 1;
            self.reviews.sent = Some(request.clone());
        }
        let key = CallKey::Repeatable(format!("review-{}", self.reviews.count));
        cx.effects.push(Effect::Call { tag, request, key });
    }

    fn on_review_reply(
        &mut self,
        session: &str,
        ids: &[u64],
        first: &str,
        refused: Option<&str>,
        cx: &mut Context<'_>,
    ) {
        let open_screen = self.screen.as_mut().filter(|screen| screen.session == session);
        if let Some(why) = refused {
            open_screen.into_iter().for_each(|screen| screen.sending = false);
            return cx.shared.show_notice(&format!("not sent, and nothing is lost: {why}"), true);
        }
        self.reviews.sent = None;
        match open_screen {
            Some(screen) => {
                screen.sending = false;
                let is_open = matches!(screen.mode, ChangesMode::Review { .. });
                if is_open {
                    screen.mode = ChangesMode::Reading;
                }
                screen.draft.sent(ids, first);
                let all = screen.draft.comments.is_empty();
                if is_open && all {
                    cx.then(Step::Newest);
                    self.close_changes(cx);
                }
                self.keep_review(cx);
            }
            None => {
                let draft = self.reviews.drafts.entry(session.to_owned()).or_default();
                draft.sent(ids, first);
                cx.effects.push(Effect::SaveReview(session.to_owned(), draft.to_stored()));
            }
        }
        let comments = if ids.len() == 1 { "1 comment".to_owned() } else { format!("{} comments", ids.len()) };
        cx.shared.show_notice(&format!("sent: {comments} as one prompt"), false);
    }

    // === undo

    /// Returns whether the agent may be writing.
    fn is_agent_working(&self, session: &str, shared: &Shared) -> bool {
        shared
            .sessions
            .all
            .get(session)
            .is_some_and(|one| matches!(one.state, SessionState::Running | SessionState::Waiting))
    }

    fn ask_undo(&mut self, part: bool, shared: &mut Shared) {
        let Some(screen) = &self.screen else { return };
        let Some(file) = screen.file() else { return };
        if screen.run.is_some() {
            return shared
                .show_notice("a change is undone as a whole: show the changes of the whole session first (r)", true);
        }
        let hunk = screen.diff().and_then(|diff| Some((diff.rows.rows.get(screen.row?)?.part, diff.digest.clone())));
        let busy = self.is_agent_working(&screen.session, shared);
        let mut undo =
            UndoChange { path: file.path.clone(), digest: file.digest.clone(), hunk: None, during_run: busy };
        if part {
            let Some((hunk, digest)) = hunk else {
                return shared.show_notice("choose a part first: n goes to the next", false);
            };
            // The change on the screen is exactly the one that is undone.
            (undo.hunk, undo.digest) = (Some(hunk), digest);
        }
        let subject = if part { "this part of" } else { "the changes of" };
        let works = if busy { "The agent is working, and may be writing to this file. " } else { "" };
        let path = sanitize::line(&crate::changes::path_end(&file.path, 60), 60);
        let text =
            format!("Undo {subject} {path}? {works}The file is changed. What is undone is kept: U brings it back.");
        let tag = CallTag::Changes(screen.session.clone(), ChangesCall::Undo(file.path.clone()));
        let call = calls::undo_change(&SessionId::trusted(screen.session.as_str()), &undo);
        shared.confirm(text, AfterConfirm::call(tag, call));
    }

    fn list_undone(&mut self, cx: &mut Context<'_>) {
        let Some(screen) = &mut self.screen else { return };
        if screen.undone.is_empty() {
            cx.shared.show_notice("nothing was undone in this session", false);
        } else {
            screen.mode = ChangesMode::PatchList(0);
        }
        self.read_undone(cx);
    }

    fn read_undone(&mut self, cx: &mut Context<'_>) {
        let Some(screen) = &self.screen else { return };
        let call = calls::undone_changes(&SessionId::trusted(screen.session.as_str()));
        cx.effects.push(Effect::call(CallTag::Changes(screen.session.clone(), ChangesCall::PatchList), call));
    }

    fn undone_key(&mut self, key: &Key, shared: &mut Shared) {
        let Some(screen) = &mut self.screen else { return };
        let ChangesMode::PatchList(at) = &mut screen.mode else { return };
        match key.name() {
            "Down" | "j" => *at = (*at + 1).min(screen.undone.len().saturating_sub(1)),
            "Up" | "k" => *at = at.saturating_sub(1),
            "Enter" => {
                let Some(one) = screen.undone.get(*at).cloned() else { return };
                screen.mode = ChangesMode::Reading;
                let session = screen.session.clone();
                let busy = self.is_agent_working(&session, shared);
                let works = if busy { "The agent is working, and may be writing to this file. " } else { "" };
                let redo = RedoChange { patch_id: one.id, during_run: busy };
                let text =
                    format!("Bring back what was undone in {}? {works}The file is changed.", short_path(&one.path));
                let tag = CallTag::Changes(session.clone(), ChangesCall::Restore(one.path));
                let call = calls::redo_change(&SessionId::trusted(session), &redo);
                shared.confirm(text, AfterConfirm::call(tag, call));
            }
            "Esc" | "q" | "U" => screen.mode = ChangesMode::Reading,
            _ => {}
        }
    }

    // === runs, patches, the editor

    fn list_runs(&mut self, shared: &mut Shared) {
        let Some(screen) = &mut self.screen else { return };
        let runs = screen.list.as_ref().map(|list| list.runs.as_slice()).unwrap_or_default();
        if runs.is_empty() && screen.run.is_none() {
            return shared.show_notice("no run of this session is known to have changed files", false);
        }
        let at = screen.run.as_ref().and_then(|run| runs.iter().position(|one| one.id == run.id));
        screen.mode = ChangesMode::Runs(at.map_or(0, |at| at + 1));
    }

    fn runs_key(&mut self, key: &Key, shared: &Shared) {
        let Some(screen) = &mut self.screen else { return };
        let ChangesMode::Runs(at) = &mut screen.mode else { return };
        let runs: &[RunItem] = screen.list.as_ref().map(|list| list.runs.as_slice()).unwrap_or_default();
        match key.name() {
            "Down" | "j" => *at = (*at + 1).min(runs.len()),
            "Up" | "k" => *at = at.saturating_sub(1),
            "Enter" => {
                let run = at.checked_sub(1).and_then(|at| runs.get(at).cloned());
                screen.mode = ChangesMode::Reading;
                screen.choose_run(run, shared.now);
            }
            "Esc" | "q" | "r" => screen.mode = ChangesMode::Reading,
            _ => {}
        }
    }

    fn copy_patch(&mut self, all: bool, cx: &mut Context<'_>) {
        let Some(screen) = &self.screen else { return };
        let mut path = None;
        if !all {
            let Some(file) = screen.file() else { return };
            if !file.reason.is_empty() {
                let text = format!("there is no patch of {}: {}", short_path(&file.path), file.reason);
                return cx.shared.show_notice(&text, true);
            }
            path = Some(file.path.as_str());
        }
        let run = screen.run.as_ref().map(|run| &run.id);
        let request = calls::changes_patch(&SessionId::trusted(screen.session.as_str()), path, run).request;
        let tag = CallTag::Changes(screen.session.clone(), ChangesCall::Patch);
        cx.effects.push(Effect::Call { tag, request, key: CallKey::None });
    }

    fn on_patch(&mut self, text: &str, cx: &mut Context<'_>) {
        let Some(screen) = &self.screen else { return };
        if text.is_empty() {
            return cx.shared.show_notice("there is nothing to copy", false);
        }
        if text.len() > COPY_MAX {
            let notice = format!("too long for the clipboard: plexus changes {} --patch", screen.session);
            return cx.shared.show_notice(&notice, true);
        }
        cx.shared.show_notice(&format!("copied: a patch of {} lines", text.lines().count()), false);
        cx.effects.push(Effect::Copy(text.to_owned()));
    }

    /// Opens the selected file in the editor, at the chosen line or the first changed one.
    fn edit_changed(&mut self, cx: &mut Context<'_>) {
        let Some(screen) = &self.screen else { return };
        let (Some(file), Some(list)) = (screen.file(), &screen.list) else { return };
        if file.status.0 == 'D' {
            return cx.shared.show_notice("this file was deleted: there is nothing to edit", true);
        }
        let line = screen.diff().and_then(|diff| {
            let from = screen.row.or_else(|| diff.rows.enter(0))?;
            diff.rows.rows.iter().skip(from).find(|row| row.new > 0).map(|row| row.new)
        });
        cx.effects.push(Effect::Edit { root: list.root.clone(), path: file.path.clone(), line: line.unwrap_or(1) });
    }

    /// Applies the end of the editor, or the reason why it was not started.
    pub(crate) fn on_edited(&mut self, problem: Option<String>, shared: &mut Shared) {
        match problem {
            Some(why) => shared.show_notice(&why, true),
            None => self.touch(None, shared),
        }
    }

    // === replies

    pub(crate) fn on_reply(&mut self, session: &str, call: ChangesCall, reply: &CallReply, cx: &mut Context<'_>) {
        let problem = reply.problem();
        if let ChangesCall::Review(ids, first) = &call {
            return self.on_review_reply(session, ids, first, problem.as_deref(), cx);
        }
        let Some(screen) = self.screen.as_mut().filter(|screen| screen.session == session) else { return };
        match (call, problem) {
            (ChangesCall::List(serial), _) => {
                if screen.on_list(serial, reply.read()) {
                    self.read_undone(cx);
                }
            }
            (ChangesCall::Diff(path, digest), _) => {
                // The file changed back meanwhile: the list is out of date.
                if reply.refusal().is_some_and(|refusal| refusal.code == NO_CHANGE) {
                    screen.touch(cx.shared.now);
                }
                screen.on_diff((path, digest), reply.read());
            }
            (ChangesCall::PatchList, _) => {
                if let Ok(UndoneChanges { undone }) = reply.read() {
                    screen.on_undone(&undone);
                }
            }
            // The open session has shown the reason.
            (ChangesCall::Review(..), _) => {}
            (ChangesCall::Undo(path) | ChangesCall::Restore(path), Some(why)) => {
                let text = format!("nothing was changed in {}: {why}", short_path(&path));
                screen.read_again(cx.shared.now);
                cx.shared.show_notice(&text, true);
            }
            (ChangesCall::Undo(path), None) => {
                screen.read_again(cx.shared.now);
                cx.shared.show_notice(&format!("undone: {}. U brings it back", short_path(&path)), false);
                self.read_undone(cx);
            }
            (ChangesCall::Restore(path), None) => {
                screen.read_again(cx.shared.now);
                cx.shared.show_notice(&format!("{} has its changes again", short_path(&path)), false);
                self.read_undone(cx);
            }
            (ChangesCall::Patch, _) => match reply.text() {
                Ok(patch) => self.on_patch(patch, cx),
                Err(why) => cx.shared.show_notice(&format!("no patch: {why}"), true),
            },
        }
    }

    /// Scrolls the pane under the mouse, by a step of the wheel.
    fn wheel(&mut self, column: u16, row: u16, down: bool, shared: &Shared) {
        let areas = self.areas(shared);
        let Some(screen) = &mut self.screen else { return };
        if !matches!(screen.mode, ChangesMode::Reading | ChangesMode::Filter | ChangesMode::Comment { .. }) {
            return;
        }
        if areas.files.contains((column, row).into()) {
            screen.step(down, 1);
        } else if areas.lines.contains((column, row).into()) {
            self.scroll_changes(if down { WHEEL_LINES } else { -WHEEL_LINES }, shared);
        }
    }

    /// Handles a click: it selects a file, or chooses a line.
    fn click(&mut self, column: u16, row: u16, shared: &Shared) {
        let areas = self.areas(shared);
        let line = usize::from(row.saturating_sub(areas.lines.y));
        let at = self.with_diff(shared, |pen| pen.at(line)).flatten();
        let Some(screen) = self.screen.as_mut().filter(|screen| matches!(screen.mode, ChangesMode::Reading)) else {
            return;
        };
        if areas.files.contains((column, row).into()) {
            let to = screen.top + usize::from(row - areas.files.y);
            if to < screen.fit.len() {
                // A second click on a narrow screen opens it.
                let again = screen.at == to && areas.lines.height == 0;
                screen.go_to(to);
                screen.pane = if again { ChangesPane::Diff } else { ChangesPane::Files };
            }
        } else if areas.lines.contains((column, row).into()) {
            screen.pane = ChangesPane::Diff;
            let chosen = at.filter(|at| {
                screen.diff().and_then(|diff| diff.rows.rows.get(*at)).is_some_and(|row| row.anchor().is_some())
            });
            if chosen.is_some() {
                (screen.row, screen.anchor) = (chosen, None);
            }
        }
    }
}

impl Page for ChangesPage {
    fn key(&mut self, key: &Key, cx: &mut Context<'_>) {
        let Some(screen) = &mut self.screen else { return };
        match &mut screen.mode {
            ChangesMode::Reading => {
                if !self.changes_reading_key(key, cx) {
                    self.changes_global_key(key, cx);
                }
            }
            ChangesMode::Filter => match key.name() {
                "Esc" => {
                    (screen.filter, screen.mode) = (input::area(""), ChangesMode::Reading);
                    screen.refit();
                }
                "Enter" | "Tab" | "S-Tab" => screen.mode = ChangesMode::Reading,
                "Down" | "Up" => screen.step(key.name() == "Down", 1),
                "M-Enter" | "C-j" | "S-Enter" => {}
                _ => {
                    input::edit(&mut screen.filter, key);
                    screen.refit();
                }
            },
            ChangesMode::Comment { area, .. } => match key.name() {
                "Esc" => screen.end_comment(false),
                "Enter" => self.add_comment(cx),
                _ => drop(input::edit(area, key)),
            },
            ChangesMode::Review { .. } => self.review_key(key, cx),
            ChangesMode::PatchList(_) => self.undone_key(key, cx.shared),
            ChangesMode::Runs(_) => self.runs_key(key, cx.shared),
        }
    }

    fn paste(&mut self, text: &str, _cx: &mut Context<'_>) {
        let Some(screen) = &mut self.screen else { return };
        let single = text.replace('\n', " ");
        match &mut screen.mode {
            ChangesMode::Comment { area, .. } => drop(area.insert_str(text)),
            ChangesMode::Review { first, at: None } => drop(first.insert_str(single)),
            ChangesMode::Filter => {
                screen.filter.insert_str(single);
                screen.refit();
            }
            _ => {}
        }
    }

    fn mouse(&mut self, mouse: MouseInput, cx: &mut Context<'_>) {
        match mouse.action {
            MouseAction::Click => self.click(mouse.column, mouse.row, cx.shared),
            action => self.wheel(mouse.column, mouse.row, action == MouseAction::WheelDown, cx.shared),
        }
    }

    fn event(&mut self, event: &ClientEvent, cx: &mut Context<'_>) {
        match event {
            ClientEvent::Live => self.touch(None, cx.shared),
            ClientEvent::Event(event) => {
                // Kinds that may change files.
                let kind = event.envelope.known_kind();
                if matches!(kind, Some(Kind::RunStarted | Kind::RunEnded | Kind::ToolCall | Kind::ToolCallUpdate)) {
                    self.touch(Some(event.envelope.session_id.as_str()), cx.shared);
                }
            }
            ClientEvent::Hello(_)
            | ClientEvent::Snapshot(_)
            | ClientEvent::Older
            | ClientEvent::Lost(_)
            | ClientEvent::Session(_)
            | ClientEvent::SessionDeleted(_)
            | ClientEvent::Runtime(_)
            | ClientEvent::RuntimeRemoved(_)
            | ClientEvent::Presence(_) => {}
        }
    }

    fn takes_text(&self, _shared: &Shared) -> bool {
        self.screen.as_ref().is_some_and(|screen| screen.takes_text())
    }

    fn hints(&self, shared: &Shared) -> Vec<Hint> {
        self.screen.as_ref().map(|screen| self.screen_hints(shared, screen).to_vec()).unwrap_or_default()
    }

    fn draw(&self, draw: &mut Draw<'_>) {
        self.screen.iter().for_each(|screen| draw.changes(self, screen));
    }
}
