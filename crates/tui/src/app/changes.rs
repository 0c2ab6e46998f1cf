//! The screen of a session's changes: its keys, what it asks of the gateway, and the replies.

use super::*;
use crate::changes::{
    COMMENT_CHARS, COMMENTS_MAX, ChangesMode, ChangesPane, ChangesScreen, DiffPen, PlacedComment, ReviewDraft, RunItem,
};
use crate::conversation::ScrollPosition;

/// How long after `g` its second key counts, in milliseconds.
const CHORD_TIME: i64 = 1_500;
/// Longest path in a message, in columns.
const PATH_MAX: usize = 80;

fn shown(path: &str) -> String {
    sanitize::line(path, PATH_MAX)
}

impl App {
    /// Whether the changes of the open session are on the screen.
    pub(crate) fn shows_changes(&self) -> bool {
        self.changes.screen.is_some() && self.shared.page == TuiPage::Session && self.new_session.form.is_none()
    }

    /// Remembers where the conversation was before `g`: it may begin `g c`.
    pub(super) fn begin_chord(&mut self) {
        let at = self.pages.session.conversation.as_ref().map(|conversation| conversation.scroll_position.clone());
        self.changes.reviews.chord = at.map(|at| (self.shared.now, at));
    }

    /// Takes the second key of `g c`; true if it was one.
    pub(super) fn end_chord(&mut self, key: &Key, effects: &mut Vec<Effect>) -> bool {
        let Some((since, at)) = self.changes.reviews.chord.take() else { return false };
        if key.name() != "c" || !(0..CHORD_TIME).contains(&(self.shared.now - since)) {
            return false;
        }
        let put_back = |conversation: &mut Conversation, at: ScrollPosition| conversation.put_back(at);
        self.pages.session.conversation.iter_mut().for_each(|conversation| put_back(conversation, at.clone()));
        self.open_changes(effects);
        true
    }

    pub(super) fn open_changes(&mut self, effects: &mut Vec<Effect>) {
        let Some(conversation) =
            self.pages.session.conversation.as_ref().filter(|_| self.shared.page == TuiPage::Session)
        else {
            return self.shared.say("open a session first", true);
        };
        let session = conversation.session.clone();
        let draft = self.changes.reviews.drafts.get(&session).cloned().unwrap_or_default();
        self.changes.screen = Some(Box::new(ChangesScreen::new(&session, draft, self.shared.now)));
        effects.push(Effect::get(
            CallTag::Changes(session.clone(), ChangesCall::PatchList),
            format!("/v1/sessions/{session}/changes/undone"),
        ));
    }

    /// Back to the conversation. What was written and not sent is kept.
    fn close_changes(&mut self, effects: &mut Vec<Effect>) {
        self.keep_review(effects);
        let Some(mut screen) = self.changes.screen.take() else { return };
        screen.end_comment(false);
        self.changes.reviews.drafts.insert(screen.session, screen.draft);
        // The card was not on the screen meanwhile: it arms anew.
        self.shared.rearm_card();
    }

    fn keep_review(&mut self, effects: &mut Vec<Effect>) {
        let Some(screen) = &mut self.changes.screen else { return };
        if let ChangesMode::Review { first, .. } = &screen.mode {
            screen.draft.set_first(&first.lines().join(" "));
        }
        let (session, kept) = (screen.session.clone(), screen.draft.keep());
        if self.changes.reviews.drafts.get(&session).map_or(Value::Null, ReviewDraft::keep) != kept {
            self.changes.reviews.drafts.insert(session.clone(), screen.draft.clone());
            effects.push(Effect::KeepReview(session, kept));
        }
    }

    /// Something may have changed files of the session on the screen.
    pub(super) fn touch_changes(&mut self, session: Option<&str>) {
        if let Some(screen) = self.changes.screen.as_mut().filter(|one| session.is_none_or(|id| id == one.session)) {
            screen.touch(self.shared.now);
        }
    }

    /// Reads what the screen needs, after any message.
    pub(super) fn update_changes(&mut self, effects: &mut Vec<Effect>) {
        let Some(screen) = &self.changes.screen else { return };
        let open =
            self.pages.session.conversation.as_ref().is_some_and(|conversation| conversation.session == screen.session);
        if !open || self.shared.page != TuiPage::Session {
            return self.close_changes(effects);
        }
        if self.shows_changes()
            && self.shared.link == ConnectionView::Live
            && let Some(screen) = &mut self.changes.screen
        {
            let base = format!("/v1/sessions/{}/changes", screen.session);
            let mut query = form_urlencoded::Serializer::new(String::new());
            if let Some(run) = &screen.run {
                query.append_pair("run", &run.id);
            }
            let query = query.finish();
            if let Some(serial) = screen.list_due(self.shared.now) {
                let tag = CallTag::Changes(screen.session.clone(), ChangesCall::List(serial));
                effects.push(Effect::get(tag, format!("{base}?{query}")));
            }
            if let Some((path, digest)) = screen.diff_due() {
                let name: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
                let tag = CallTag::Changes(screen.session.clone(), ChangesCall::Diff(path, digest));
                effects.push(Effect::get(tag, format!("{base}/file?path={name}&{query}")));
            }
        }
        self.settle_changes();
    }

    /// Brings the selected file and the chosen line on the screen.
    fn settle_changes(&mut self) {
        let areas = view::changes_areas(self);
        let top = view::changes_top(self, &areas);
        let scroll = self.with_diff(|pen| pen.settled(usize::from(areas.lines.height)));
        let Some(screen) = &mut self.changes.screen else { return };
        screen.top = top;
        if let Some(scroll) = scroll {
            (screen.scroll, screen.reveal) = (scroll, false);
        }
    }

    /// Calls with the diff on the screen.
    fn with_diff<T>(&self, read: impl FnOnce(&DiffPen<'_>) -> T) -> Option<T> {
        let width = usize::from(view::changes_areas(self).lines.width);
        let screen = self.changes.screen.as_ref()?;
        Some(read(&DiffPen { screen, diff: screen.diff()?, theme: &self.shared.theme, width }))
    }

    fn scroll_changes(&mut self, by: i64) {
        let height = usize::from(view::changes_areas(self).lines.height);
        let scroll = self.with_diff(|pen| pen.scrolled(by, height));
        if let (Some(screen), Some(scroll)) = (&mut self.changes.screen, scroll) {
            screen.scroll = scroll;
        }
    }

    // === keys

    /// Passes a key to the screen, if it is shown: no key acts on what is behind it.
    pub(super) fn changes_key(&mut self, key: &Key, effects: &mut Vec<Effect>) -> bool {
        if !self.shows_changes() {
            return false;
        }
        let Some(screen) = &mut self.changes.screen else { return false };
        match &mut screen.mode {
            ChangesMode::Reading => {
                if !self.changes_reading_key(key, effects) {
                    self.changes_global_key(key, effects);
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
                "Enter" => self.add_comment(effects),
                _ => drop(input::edit(area, key)),
            },
            ChangesMode::Review { .. } => self.review_key(key, effects),
            ChangesMode::PatchList(_) => self.undone_key(key),
            ChangesMode::Runs(_) => self.runs_key(key),
        }
        true
    }

    fn changes_global_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        match key.name() {
            "?" => self.shared.overlay = Some(Overlay::Help(0)),
            ":" => self.shared.overlay = Some(Overlay::Palette { area: input::area(""), at: 0 }),
            name => {
                let page = name.parse::<usize>().ok().and_then(|n| PAGES.get(n.checked_sub(1)?));
                if let Some((page, _)) = page {
                    self.go(*page, effects);
                }
            }
        }
    }

    fn changes_reading_key(&mut self, key: &Key, effects: &mut Vec<Effect>) -> bool {
        let two = view::changes_areas(self).has_both();
        let Some(screen) = &mut self.changes.screen else { return false };
        match key.name() {
            "Esc" if screen.anchor.is_some() => screen.anchor = None,
            "Esc" if !screen.filter.is_empty() => {
                screen.filter = input::area("");
                screen.refit();
            }
            "Esc" | "Left" if !two && screen.pane == ChangesPane::Diff => screen.pane = ChangesPane::Files,
            "Esc" | "q" | "u" => self.close_changes(effects),
            "Tab" | "S-Tab" if screen.pane == ChangesPane::Diff => screen.pane = ChangesPane::Files,
            "Left" => screen.pane = ChangesPane::Files,
            "Tab" | "S-Tab" | "Right" | "Enter" => screen.pane = ChangesPane::Diff,
            "j" | "k" => screen.step(key.name() == "j", 1),
            "n" | "p" => screen.part(key.name() == "n"),
            "f" | "/" => screen.mode = ChangesMode::Filter,
            "c" => self.begin_comment(),
            "v" => self.mark_viewed(effects),
            "S" => self.begin_review(),
            "x" => self.ask_undo(false),
            "X" => self.ask_undo(true),
            "U" => self.list_undone(effects),
            "r" => self.list_runs(),
            "R" => screen.read_again(self.shared.now),
            "e" => self.edit_changed(effects),
            "y" | "Y" => self.copy_patch(key.name() == "Y", effects),
            _ => return self.changes_move_key(key),
        }
        true
    }

    /// The keys that move in the pane that has them.
    fn changes_move_key(&mut self, key: &Key) -> bool {
        let page = usize::from(view::changes_areas(self).lines.height).saturating_sub(1).max(1);
        let Some(screen) = &mut self.changes.screen else { return false };
        let files = screen.pane == ChangesPane::Files;
        let first = screen.scroll.0;
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
                self.scroll_changes(if key.name() == "PageUp" { -by } else { by });
                self.line_on_screen();
            }
            _ => return false,
        }
        true
    }

    /// After a page was turned, the chosen line is the first one on the screen.
    fn line_on_screen(&mut self) {
        let Some(screen) = self.changes.screen.as_mut().filter(|screen| screen.row.is_some()) else { return };
        let (first, above) = screen.scroll;
        let from = if above > 0 { first + 1 } else { first };
        if let Some(row) = screen.diff().and_then(|diff| diff.rows.choosable(from, true)) {
            (screen.row, screen.anchor, screen.reveal) = (Some(row), None, false);
        }
    }

    /// Pasted text goes to the field that is being typed in.
    pub(super) fn changes_paste(&mut self, words: &str) {
        let Some(screen) = &mut self.changes.screen else { return };
        let single = words.replace('\n', " ");
        match &mut screen.mode {
            ChangesMode::Comment { area, .. } => drop(area.insert_str(words)),
            ChangesMode::Review { first, at: None } => drop(first.insert_str(single)),
            ChangesMode::Filter => {
                screen.filter.insert_str(single);
                screen.refit();
            }
            _ => {}
        }
    }

    // === comments

    fn begin_comment(&mut self) {
        let Some(screen) = &mut self.changes.screen else { return };
        if screen.draft.comments.len() >= COMMENTS_MAX {
            return self.shared.say(&format!("a review has at most {COMMENTS_MAX} comments: S sends them"), true);
        }
        if screen.begin_comment().is_none() {
            self.shared.say("choose a line first: n goes to the next changed one, ↑ ↓ from line to line", false);
        }
    }

    fn add_comment(&mut self, effects: &mut Vec<Effect>) {
        let Some(screen) = &mut self.changes.screen else { return };
        if let ChangesMode::Comment { area, .. } = &screen.mode
            && area.lines().iter().map(|line| line.chars().count() + 1).sum::<usize>() > COMMENT_CHARS
        {
            return self.shared.say(&format!("a comment has at most {COMMENT_CHARS} characters"), true);
        }
        screen.end_comment(true);
        self.keep_review(effects);
    }

    fn mark_viewed(&mut self, effects: &mut Vec<Effect>) {
        let Some(screen) = &mut self.changes.screen else { return };
        let Some((path, digest)) = screen.file().map(|file| (file.path.clone(), file.digest.clone())) else { return };
        if screen.draft.mark(&path, &digest) {
            screen.step(true, 1);
        }
        self.keep_review(effects);
    }

    fn begin_review(&mut self) {
        let Some(screen) = &mut self.changes.screen else { return };
        if screen.draft.comments.is_empty() {
            return self.shared.say("no comments yet: c writes one on the chosen line", false);
        }
        screen.mode = ChangesMode::Review { first: input::area(&screen.draft.first), at: None };
    }

    fn review_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let Some(screen) = &mut self.changes.screen else { return };
        let ChangesMode::Review { first, at } = &mut screen.mode else { return };
        let last = screen.draft.comments.len().saturating_sub(1);
        match (key.name(), *at) {
            ("Esc", _) => {
                self.keep_review(effects);
                self.changes.screen.iter_mut().for_each(|screen| screen.mode = ChangesMode::Reading);
            }
            ("C-s", _) | ("Enter", None) => self.send_review(effects),
            ("Down" | "Tab", None) => *at = Some(0),
            ("Up" | "k" | "S-Tab", Some(0)) => *at = None,
            ("Down" | "j" | "Tab", Some(n)) => *at = Some((n + 1).min(last)),
            ("Up" | "k" | "S-Tab", Some(n)) => *at = Some(n - 1),
            ("Enter" | "e", Some(n)) => {
                if let Some(comment) = screen.draft.comments.get(n).cloned() {
                    self.keep_review(effects);
                    self.edit_listed(&comment);
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
                self.keep_review(effects);
            }
            ("M-Enter" | "C-j" | "S-Enter", _) | (_, Some(_)) => {}
            (_, None) => drop(input::edit(first, key)),
        }
    }

    /// Edits a comment of the list, with its line in sight if it is still there.
    fn edit_listed(&mut self, comment: &PlacedComment) {
        let Some(screen) = &mut self.changes.screen else { return };
        let there = screen.show(comment);
        screen.edit_comment(comment);
        if !there {
            self.shared.say("this file is not in the list any more", false);
        }
    }

    fn send_review(&mut self, effects: &mut Vec<Effect>) {
        self.keep_review(effects);
        let Some(screen) = self.changes.screen.as_mut().filter(|screen| !screen.sending) else { return };
        screen.sending = true;
        let (session, body) = (screen.session.clone(), screen.draft.wire());
        let ids = screen.draft.comments.iter().map(|one| one.id).collect();
        let tag = CallTag::Changes(session.clone(), ChangesCall::Review(ids, screen.draft.first.clone()));
        // The same review has the same key: one that arrived although no answer came counts once.
        let sent = Some((session.clone(), body.clone()));
        if self.changes.reviews.sent != sent {
            self.changes.reviews.count += 1;
            self.changes.reviews.sent = sent;
        }
        let key = format!("review-{}", self.changes.reviews.count);
        effects.push(Effect::Once { tag, path: format!("/v1/sessions/{session}/changes/review"), body, key });
    }

    fn on_review_reply(
        &mut self,
        session: &str,
        ids: &[u64],
        first: &str,
        refused: Option<&str>,
        effects: &mut Vec<Effect>,
    ) {
        let here = self.changes.screen.as_mut().filter(|screen| screen.session == session);
        if let Some(why) = refused {
            here.into_iter().for_each(|screen| screen.sending = false);
            return self.shared.say(&format!("not sent, and nothing is lost: {why}"), true);
        }
        self.changes.reviews.sent = None;
        match here {
            Some(screen) => {
                screen.sending = false;
                let is_open = matches!(screen.mode, ChangesMode::Review { .. });
                if is_open {
                    screen.mode = ChangesMode::Reading;
                }
                screen.draft.sent(ids, first);
                let all = screen.draft.comments.is_empty();
                if is_open && all {
                    self.pages.session.conversation.iter_mut().for_each(Conversation::go_to_newest);
                    self.close_changes(effects);
                }
                self.keep_review(effects);
            }
            None => {
                let draft = self.changes.reviews.drafts.entry(session.to_owned()).or_default();
                draft.sent(ids, first);
                effects.push(Effect::KeepReview(session.to_owned(), draft.keep()));
            }
        }
        let comments = if ids.len() == 1 { "1 comment".to_owned() } else { format!("{} comments", ids.len()) };
        self.shared.say(&format!("sent: {comments} as one prompt"), false);
    }

    // === undo

    /// Whether the agent may be writing.
    fn agent_works(&self, session: &str) -> bool {
        self.shared.sessions.all.get(session).is_some_and(|one| matches!(one.state.as_str(), "running" | "waiting"))
    }

    fn ask_undo(&mut self, part: bool) {
        let Some(screen) = &self.changes.screen else { return };
        let Some(file) = screen.file() else { return };
        if screen.run.is_some() {
            return self
                .shared
                .say("a change is undone as a whole: show the changes of the whole session first (r)", true);
        }
        let hunk = screen.diff().and_then(|diff| Some((diff.rows.rows.get(screen.row?)?.part, diff.digest.clone())));
        let mut body = json!({ "path": file.path, "digest": file.digest });
        if part {
            let Some((hunk, digest)) = hunk else {
                return self.shared.say("choose a part first: n goes to the next", false);
            };
            // What is shown is what is undone.
            (body["hunk"], body["digest"]) = (hunk.into(), digest.into());
        }
        let busy = self.agent_works(&screen.session);
        if busy {
            body["during_run"] = true.into();
        }
        let what = if part { "this part of" } else { "the changes of" };
        let works = if busy { "The agent is working, and may be writing to this file. " } else { "" };
        let path = sanitize::line(&crate::changes::path_end(&file.path, 60), 60);
        let words =
            format!("Undo {what} {path}? {works}The file is changed. What is undone is kept: U brings it back.");
        let (tag, path) = (
            CallTag::Changes(screen.session.clone(), ChangesCall::Undo(file.path.clone())),
            format!("/v1/sessions/{}/changes/undo", screen.session),
        );
        self.shared.confirm(words, AfterConfirm::Call { tag, method: "POST", path, body: Some(body) });
    }

    fn list_undone(&mut self, effects: &mut Vec<Effect>) {
        let Some(screen) = &mut self.changes.screen else { return };
        if screen.undone.is_empty() {
            self.shared.say("nothing was undone in this session", false);
        } else {
            screen.mode = ChangesMode::PatchList(0);
        }
        self.read_undone(effects);
    }

    fn read_undone(&mut self, effects: &mut Vec<Effect>) {
        let Some(screen) = &self.changes.screen else { return };
        let path = format!("/v1/sessions/{}/changes/undone", screen.session);
        effects.push(Effect::get(CallTag::Changes(screen.session.clone(), ChangesCall::PatchList), path));
    }

    fn undone_key(&mut self, key: &Key) {
        let Some(screen) = &mut self.changes.screen else { return };
        let ChangesMode::PatchList(at) = &mut screen.mode else { return };
        match key.name() {
            "Down" | "j" => *at = (*at + 1).min(screen.undone.len().saturating_sub(1)),
            "Up" | "k" => *at = at.saturating_sub(1),
            "Enter" => {
                let Some(one) = screen.undone.get(*at).cloned() else { return };
                screen.mode = ChangesMode::Reading;
                let session = screen.session.clone();
                let busy = self.agent_works(&session);
                let works = if busy { "The agent is working, and may be writing to this file. " } else { "" };
                let mut body = json!({ "patch_id": one.id });
                if busy {
                    body["during_run"] = true.into();
                }
                let words = format!("Bring back what was undone in {}? {works}The file is changed.", shown(&one.path));
                let tag = CallTag::Changes(session.clone(), ChangesCall::Restore(one.path));
                let path = format!("/v1/sessions/{session}/changes/redo");
                self.shared.confirm(words, AfterConfirm::Call { tag, method: "POST", path, body: Some(body) });
            }
            "Esc" | "q" | "U" => screen.mode = ChangesMode::Reading,
            _ => {}
        }
    }

    // === runs, patches, the editor

    fn list_runs(&mut self) {
        let Some(screen) = &mut self.changes.screen else { return };
        let runs = screen.list.as_ref().map(|list| list.runs.as_slice()).unwrap_or_default();
        if runs.is_empty() && screen.run.is_none() {
            return self.shared.say("no run of this session is known to have changed files", false);
        }
        let at = screen.run.as_ref().and_then(|run| runs.iter().position(|one| one.id == run.id));
        screen.mode = ChangesMode::Runs(at.map_or(0, |at| at + 1));
    }

    fn runs_key(&mut self, key: &Key) {
        let Some(screen) = &mut self.changes.screen else { return };
        let ChangesMode::Runs(at) = &mut screen.mode else { return };
        let runs: &[RunItem] = screen.list.as_ref().map(|list| list.runs.as_slice()).unwrap_or_default();
        match key.name() {
            "Down" | "j" => *at = (*at + 1).min(runs.len()),
            "Up" | "k" => *at = at.saturating_sub(1),
            "Enter" => {
                let run = at.checked_sub(1).and_then(|at| runs.get(at).cloned());
                screen.mode = ChangesMode::Reading;
                screen.choose_run(run, self.shared.now);
            }
            "Esc" | "q" | "r" => screen.mode = ChangesMode::Reading,
            _ => {}
        }
    }

    fn copy_patch(&mut self, all: bool, effects: &mut Vec<Effect>) {
        let Some(screen) = &self.changes.screen else { return };
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(run) = &screen.run {
            query.append_pair("run", &run.id);
        }
        if !all {
            let Some(file) = screen.file() else { return };
            if !file.reason.is_empty() {
                let words = format!("there is no patch of {}: {}", shown(&file.path), file.reason);
                return self.shared.say(&words, true);
            }
            query.append_pair("path", &file.path);
        }
        let path = format!("/v1/sessions/{}/changes/patch?{}", screen.session, query.finish());
        effects.push(Effect::Text { tag: CallTag::Changes(screen.session.clone(), ChangesCall::Patch), path });
    }

    fn on_patch(&mut self, text: &str, effects: &mut Vec<Effect>) {
        let Some(screen) = &self.changes.screen else { return };
        if text.is_empty() {
            return self.shared.say("there is nothing to copy", false);
        }
        if text.len() > COPY_MAX {
            let words = format!("too long for the clipboard: plexus changes {} --patch", screen.session);
            return self.shared.say(&words, true);
        }
        self.shared.say(&format!("copied: a patch of {} lines", text.lines().count()), false);
        effects.push(Effect::Copy(text.to_owned()));
    }

    /// Opens the selected file in the editor, at the chosen line or the first changed one.
    fn edit_changed(&mut self, effects: &mut Vec<Effect>) {
        let Some(screen) = &self.changes.screen else { return };
        let (Some(file), Some(list)) = (screen.file(), &screen.list) else { return };
        if file.status.0 == 'D' {
            return self.shared.say("this file was deleted: there is nothing to edit", true);
        }
        let line = screen.diff().and_then(|diff| {
            let from = screen.row.or_else(|| diff.rows.enter(0))?;
            diff.rows.rows.iter().skip(from).find(|row| row.new > 0).map(|row| row.new)
        });
        effects.push(Effect::Edit { root: list.root.clone(), path: file.path.clone(), line: line.unwrap_or(1) });
    }

    /// The editor has ended, or could not be started.
    pub(super) fn on_edited(&mut self, problem: Option<String>) {
        match problem {
            Some(why) => self.shared.say(&why, true),
            None => self.touch_changes(None),
        }
    }

    // === replies

    pub(super) fn on_changes_reply(
        &mut self,
        session: &str,
        call: ChangesCall,
        (good, value): (bool, &Value),
        why: &str,
        effects: &mut Vec<Effect>,
    ) {
        if let ChangesCall::Review(ids, first) = &call {
            return self.on_review_reply(session, ids, first, (!good).then_some(why), effects);
        }
        let Some(screen) = self.changes.screen.as_mut().filter(|screen| screen.session == session) else { return };
        let reply = if good { Ok(value) } else { Err(why) };
        match call {
            ChangesCall::List(serial) => {
                if screen.on_list(serial, reply) {
                    self.read_undone(effects);
                }
            }
            ChangesCall::Diff(path, digest) => {
                // It changed back meanwhile: the list is what is old.
                if value["code"] == "no_change" {
                    screen.touch(self.shared.now);
                }
                screen.on_diff((path, digest), reply);
            }
            ChangesCall::PatchList if good => screen.on_undone(value),
            // What is open has said why.
            ChangesCall::PatchList | ChangesCall::Review(..) => {}
            ChangesCall::Undo(path) | ChangesCall::Restore(path) if !good => {
                let words = format!("nothing was changed in {}: {why}", shown(&path));
                screen.read_again(self.shared.now);
                self.shared.say(&words, true);
            }
            ChangesCall::Undo(path) => {
                screen.read_again(self.shared.now);
                self.shared.say(&format!("undone: {}. U brings it back", shown(&path)), false);
                self.read_undone(effects);
            }
            ChangesCall::Restore(path) => {
                screen.read_again(self.shared.now);
                self.shared.say(&format!("{} has its changes again", shown(&path)), false);
                self.read_undone(effects);
            }
            ChangesCall::Patch if good => self.on_patch(value["text"].as_str().unwrap_or_default(), effects),
            ChangesCall::Patch => self.shared.say(&format!("no patch: {why}"), true),
        }
    }

    // === the mouse

    /// The wheel scrolls what is under it.
    pub(super) fn changes_wheel(&mut self, column: u16, row: u16, down: bool) {
        let areas = view::changes_areas(self);
        let Some(screen) = &mut self.changes.screen else { return };
        if !matches!(screen.mode, ChangesMode::Reading | ChangesMode::Filter | ChangesMode::Comment { .. }) {
            return;
        }
        if areas.files.contains((column, row).into()) {
            screen.step(down, 1);
        } else if areas.lines.contains((column, row).into()) {
            self.scroll_changes(if down { WHEEL_LINES } else { -WHEEL_LINES });
        }
    }

    /// A click selects a file, or chooses a line.
    pub(super) fn changes_click(&mut self, column: u16, row: u16) {
        let areas = view::changes_areas(self);
        let line = usize::from(row.saturating_sub(areas.lines.y));
        let at = self.with_diff(|pen| pen.at(line)).flatten();
        let Some(screen) = self.changes.screen.as_mut().filter(|screen| matches!(screen.mode, ChangesMode::Reading))
        else {
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
                screen.diff().and_then(|diff| diff.rows.rows.get(*at)).is_some_and(|row| row.place().is_some())
            });
            if chosen.is_some() {
                (screen.row, screen.anchor) = (chosen, None);
            }
        }
    }
}
