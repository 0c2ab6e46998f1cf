//! The open session: its conversation and its composer.

mod composer;
mod drawing;
mod surfaces;

use std::collections::HashMap;

use plexus_client::ClientEvent;
use plexus_protocol::SessionState;
use plexus_protocol::api::history::{self, EventEnvelope};
use plexus_protocol::api::sessions::AcceptedPrompt;
use plexus_protocol::api::snapshot::Snapshot;
use ratatui_textarea::TextArea;

use super::context::{Context, MouseAction, MouseInput, Step};
use super::draw::Draw;
use super::layout::has_panes;
use super::message::Effect;
use super::shared::{ConnectionView, Overlay, Shared};
use super::{Hint, Page, TuiPage};
use crate::attachments::Attachment;
use crate::card::LINGER_TIME;
use crate::conversation::{Conversation, DrawContext, ScrollPosition};
use crate::input::{self, Key};
use crate::mention::FileOffers;
use crate::view_model::RequestView;

/// Time after `g` in which its second key counts, in milliseconds.
const CHORD_TIME: i64 = 1_500;
/// Lines scrolled by a step of the mouse wheel.
const WHEEL_LINES: i64 = 3;
/// Time that a row is selected before its session is shown beside the list, in milliseconds: moving over a list loads nothing.
const PREVIEW_DELAY: i64 = 300;

/// The page of the open session.
#[derive(Debug)]
pub(crate) struct SessionPage {
    pub(crate) conversation: Option<Conversation>,
    /// The number of the subscription to the open session.
    following: u64,
    /// The session to show beside the list next, and the time since when it is selected.
    preview_due: Option<(String, i64)>,
    /// `true` if the conversation was opened only as a preview.
    previewed: bool,
    pub(crate) composer: TextArea<'static>,
    /// The suggested files of the composer.
    files: FileOffers,
    /// The images of unsent prompts, by their sessions.
    images: HashMap<String, Vec<Attachment>>,
    /// The index of the earlier prompt in the composer.
    history: Option<usize>,
    /// The composed text before an earlier prompt was recalled.
    draft: String,
    /// The session whose composed prompt is sent once its runtime has restarted.
    pending_restart: Option<String>,
    /// The composed texts of other sessions.
    drafts: HashMap<String, String>,
    /// The time when `g` was pressed, and the position of the conversation at that time: it may begin `g c`.
    chord: Option<(i64, ScrollPosition)>,
}

impl Default for SessionPage {
    fn default() -> Self {
        Self {
            conversation: None,
            following: 0,
            preview_due: None,
            previewed: false,
            composer: input::area(""),
            files: FileOffers::default(),
            images: HashMap::new(),
            history: None,
            draft: String::new(),
            pending_restart: None,
            drafts: HashMap::new(),
            chord: None,
        }
    }
}

impl SessionPage {
    /// The id of the open session.
    pub(crate) fn id(&self) -> Option<&str> {
        self.conversation.as_ref().map(|conversation| conversation.session.as_str())
    }

    /// The number of the subscription to the open session.
    pub(crate) fn following(&self) -> u64 {
        self.following
    }

    /// The requests of the open session, oldest first.
    pub(crate) fn requests(&self, shared: &Shared) -> Vec<String> {
        let Some(conversation) = &self.conversation else { return Vec::new() };
        let mut list: Vec<&RequestView> =
            shared.requests.values().map(|(ask, _)| ask).filter(|ask| ask.session == conversation.session).collect();
        list.sort_by(|a, b| (a.opened, &a.id).cmp(&(b.opened, &b.id)));
        list.into_iter().map(|ask| ask.id.clone()).collect()
    }

    /// Opens a session; returns whether it was not open before.
    pub(crate) fn open(&mut self, id: &str, cx: &mut Context<'_>) -> bool {
        let other = self.id() != Some(id);
        if other {
            cx.shared.show_card(None);
            self.follow(id, cx);
        }
        std::mem::take(&mut self.previewed) || other
    }

    /// Follows another session. Typed text is stored with the previous one.
    fn follow(&mut self, id: &str, cx: &mut Context<'_>) {
        if let Some(conversation) = &self.conversation {
            self.drafts.insert(conversation.session.clone(), self.composer.lines().join("\n"));
        }
        self.composer = input::area(self.drafts.get(id).map_or("", String::as_str));
        self.history = None;
        self.following += 1;
        self.pending_restart = None;
        self.conversation = Some(Conversation::new(id));
        cx.effects.push(Effect::Follow(Some(id.to_owned())));
    }

    /// Shows the selected session beside the list, once the selection has rested.
    pub(crate) fn update_preview(&mut self, selected: Option<String>, cx: &mut Context<'_>) {
        let is_preview_visible = has_panes(cx.shared) && matches!(cx.shared.page, TuiPage::Inbox | TuiPage::Sessions);
        let target = selected.filter(|_| is_preview_visible && cx.shared.link == ConnectionView::Live);
        let visible = self.conversation.as_ref().map(|conversation| &conversation.session);
        let Some(id) = target.filter(|id| Some(id) != visible) else {
            self.preview_due = None;
            return;
        };
        match &self.preview_due {
            Some((due, since)) if *due == id => {
                // A clock that was set back counts as enough time.
                if !(0..PREVIEW_DELAY).contains(&(cx.shared.now - since)) {
                    self.preview_due = None;
                    self.previewed = true;
                    self.follow(&id, cx);
                }
            }
            _ => self.preview_due = Some((id, cx.shared.now)),
        }
    }

    /// Calls `act` with the conversation and the inputs of its drawing.
    pub(crate) fn with_conversation(
        &mut self,
        shared: &Shared,
        change: impl FnOnce(&mut Conversation, &DrawContext<'_>),
    ) {
        let area = self.conversation_area(shared);
        if let Some(conversation) = &mut self.conversation {
            let height = usize::from(area.height);
            change(conversation, &DrawContext { theme: &shared.theme, width: area.width, height, now: shared.now });
        }
    }

    /// Reads older events when the user scrolls to the first line, and sends the prompt that waited for a restart.
    pub(crate) fn update(&mut self, cx: &mut Context<'_>) {
        let restarted =
            |id: &String| cx.shared.sessions.all.get(id).is_some_and(|session| session.state != SessionState::Exited);
        if self.pending_restart.as_ref().is_some_and(restarted) {
            self.pending_restart = None;
            self.send(cx);
        }
        let area = self.conversation_area(cx.shared);
        if let Some(conversation) = &mut self.conversation
            && area.height > 0
            && let Some(before) = conversation.due_page()
        {
            conversation.set_fetching(true);
            cx.effects.push(Effect::Page { session: conversation.session.clone(), before });
        }
    }

    /// Scrolls to a position of the log, once it is loaded.
    pub(crate) fn seek(&mut self, position: u64) {
        if let Some(conversation) = &mut self.conversation
            && (!conversation.live || !conversation.seek(position))
        {
            conversation.seek_target = Some(position);
        }
    }

    /// Forgets the prompt that waited for a restart.
    pub(crate) fn forget_restart(&mut self) {
        self.pending_restart = None;
    }

    // === events

    pub(crate) fn on_session_event(&mut self, client_event: &ClientEvent) {
        let Some(conversation) = &mut self.conversation else { return };
        match client_event {
            ClientEvent::Event(event) => conversation.event(&event.envelope),
            ClientEvent::Snapshot(snapshots) => conversation.snapshot(snapshots),
            ClientEvent::Live => {
                conversation.live = true;
                if let Some(position) = conversation.seek_target.take() {
                    conversation.seek(position);
                }
            }
            ClientEvent::Hello(_) | ClientEvent::Lost(_) => conversation.live = false,
            ClientEvent::Older
            | ClientEvent::Session(_)
            | ClientEvent::SessionDeleted(_)
            | ClientEvent::Runtime(_)
            | ClientEvent::RuntimeRemoved(_)
            | ClientEvent::Presence(_) => {}
        }
    }

    /// Applies the first page of the open session.
    pub(crate) fn on_opened(&mut self, opening: Option<&(history::Page, Snapshot)>, cx: &mut Context<'_>) {
        let Some(conversation) = &mut self.conversation else { return };
        let after = opening.map(|(page, snapshot)| {
            conversation.open(page, snapshot);
            page.end.next.clone()
        });
        cx.effects.push(Effect::Attach { session: conversation.session.clone(), after });
    }

    /// Applies a page of older events.
    pub(crate) fn on_page(&mut self, page: Result<Box<history::Page>, String>, shared: &mut Shared) {
        let area = self.conversation_area(shared);
        let Some(conversation) = &mut self.conversation else { return };
        match page {
            Ok(page) => {
                let height = usize::from(area.height);
                let pen = DrawContext { theme: &shared.theme, width: area.width, height, now: shared.now };
                conversation.page(&page, height, &pen);
            }
            Err(why) => {
                conversation.set_fetching(false);
                conversation.scroll_position.follow = false;
                shared.show_notice(&why, true);
            }
        }
    }

    /// Loads the rest of a tool call.
    fn load_rest(&mut self, cx: &mut Context<'_>) {
        let mut target = Err("open a session first");
        self.with_conversation(cx.shared, |conversation, pen| target = conversation.load_rest(pen));
        match (target, &self.conversation) {
            (Ok(call), Some(conversation)) => {
                cx.effects.push(Effect::Whole { session: conversation.session.clone(), call });
            }
            (Err(why), _) => cx.shared.show_notice(why, false),
            (Ok(_), None) => {}
        }
    }

    /// Applies the rest of a tool call, or the reason why it could not be loaded.
    pub(crate) fn on_rest(
        &mut self,
        block: u64,
        loaded: Result<(Vec<EventEnvelope>, u64), String>,
        shared: &mut Shared,
    ) {
        if let Err(why) = &loaded {
            shared.show_notice(why, true);
        }
        self.with_conversation(shared, |conversation, _| conversation.on_rest(block, loaded.ok()));
    }

    /// Applies an accepted prompt.
    pub(crate) fn on_accepted(prompt: &AcceptedPrompt, shared: &mut Shared) {
        if prompt.queued {
            shared.show_notice(&format!("queued: {} before it", prompt.ahead), false);
        }
    }

    // === keys

    /// Stores the position of the conversation before `g`, which may begin `g c`.
    fn begin_chord(&mut self, now: i64) {
        let at = self.conversation.as_ref().map(|conversation| conversation.scroll_position.clone());
        self.chord = at.map(|at| (now, at));
    }

    /// Handles the second key of `g c`; returns `true` if it was one.
    fn end_chord(&mut self, key: &Key, cx: &mut Context<'_>) -> bool {
        let Some((since, at)) = self.chord.take() else { return false };
        if key.name() != "c" || !(0..CHORD_TIME).contains(&(cx.shared.now - since)) {
            return false;
        }
        let put_back = |conversation: &mut Conversation, at: ScrollPosition| conversation.put_back(at);
        self.conversation.iter_mut().for_each(|conversation| put_back(conversation, at.clone()));
        cx.command("changes");
        true
    }

    fn scroll_key(&mut self, name: &str, shared: &Shared) -> bool {
        let rows = i64::from(self.conversation_area(shared).height).max(2);
        let by = match name {
            "PageUp" | "C-b" => 1 - rows,
            "PageDown" | "C-f" => rows - 1,
            "C-u" => -rows / 2,
            "C-d" => rows / 2,
            "C-Up" | "C-S-Up" => -1,
            "C-Down" | "C-S-Down" => 1,
            _ => return false,
        };
        self.with_conversation(shared, |conversation, pen| conversation.scroll(by, pen));
        true
    }

    /// Gives the focus to the request above the composer, or to the conversation if there is none.
    fn leave_composer(shared: &mut Shared) {
        shared.writing = false;
        shared.focus_card();
        shared.card.from_composer = shared.card.focused;
    }

    fn writing_key(&mut self, key: &Key, cx: &mut Context<'_>) {
        if matches!(key.name(), "PageUp" | "PageDown" | "C-Up" | "C-Down") {
            self.scroll_key(key.name(), cx.shared);
            return;
        }
        if self.files.key(key.name(), &mut self.composer) {
            return;
        }
        let line = self.composer.cursor().0;
        match key.name() {
            "Esc" => Self::leave_composer(cx.shared),
            "C-t" => self.ask_image(cx.shared),
            "Backspace" if self.drops_image() => {}
            "Tab" | "S-Tab" => match self.slash(cx.shared).first() {
                Some((name, _)) => self.composer = input::area(&format!("/{name} ")),
                None if has_panes(cx.shared) => cx.then(Step::OtherPane),
                None if cx.shared.card.open().is_some() => Self::leave_composer(cx.shared),
                None => {}
            },
            "Up" if line == 0 => self.recall(true),
            "Down" if self.history.is_some() && line + 1 == self.composer.lines().len() => self.recall(false),
            "Enter" => self.send(cx),
            _ => {
                input::edit(&mut self.composer, key);
            }
        }
    }

    /// The agent's slash commands that match the prompt so far.
    pub(crate) fn slash(&self, shared: &Shared) -> Vec<(String, String)> {
        let lines = self.composer.lines();
        let Some(prefix) = lines.first().and_then(|line| line.strip_prefix('/')).filter(|_| lines.len() == 1) else {
            return Vec::new();
        };
        if prefix.contains(' ') || !shared.writing {
            return Vec::new();
        }
        let all =
            self.conversation.as_ref().map(|conversation| conversation.status.commands.clone()).unwrap_or_default();
        all.into_iter().filter(|(name, _)| name.starts_with(prefix)).take(6).collect()
    }
}

impl Page for SessionPage {
    fn early_key(&mut self, key: &Key, cx: &mut Context<'_>) -> bool {
        let writing = cx.shared.writing;
        if writing {
            self.writing_key(key, cx);
        }
        writing
    }

    fn key(&mut self, key: &Key, cx: &mut Context<'_>) {
        if self.end_chord(key, cx) || self.scroll_key(key.name(), cx.shared) {
            return;
        }
        // A user who reads on does not return to the composer after the answer.
        cx.shared.card.from_composer = false;
        match key.name() {
            "i" | "Enter" => cx.shared.write(),
            "Up" | "k" => self.with_conversation(cx.shared, |conversation, pen| conversation.scroll(-1, pen)),
            "Down" | "j" => self.with_conversation(cx.shared, |conversation, pen| conversation.scroll(1, pen)),
            "g" | "Home" => {
                self.begin_chord(cx.shared.now);
                self.with_conversation(cx.shared, |conversation, _| conversation.go_to_start());
            }
            "G" | "End" | "f" => self.with_conversation(cx.shared, |conversation, _| conversation.go_to_newest()),
            "J" | "S-Down" => self.with_conversation(cx.shared, |conversation, pen| conversation.choose(true, pen)),
            "K" | "S-Up" => self.with_conversation(cx.shared, |conversation, pen| conversation.choose(false, pen)),
            " " => self.with_conversation(cx.shared, Conversation::toggle_fold),
            "s" => self.open_surface(cx.shared),
            "L" => self.load_rest(cx),
            "t" => cx.command("thoughts"),
            "o" => cx.command("output"),
            // `y` and `u` as on the web page.
            "c" | "y" => cx.command("copy"),
            "u" => cx.then(Step::Back),
            "x" => cx.command("cancel"),
            "R" => cx.command("restart"),
            "Q" => cx.command("unqueue"),
            "E" => cx.shared.overlay = Some(Overlay::Palette { area: input::area("export "), at: 0 }),
            "{" => cx.then(Step::Neighbor(false)),
            "}" => cx.then(Step::Neighbor(true)),
            _ => {}
        }
    }

    fn paste(&mut self, text: &str, cx: &mut Context<'_>) {
        if self.surface_is_open(cx.shared) {
            self.surface_paste(text, cx.shared);
        } else {
            cx.shared.write();
            self.paste_prompt(text.to_owned(), cx);
        }
    }

    fn mouse(&mut self, mouse: MouseInput, cx: &mut Context<'_>) {
        let by = match mouse.action {
            MouseAction::WheelDown => WHEEL_LINES,
            MouseAction::WheelUp => -WHEEL_LINES,
            MouseAction::Click => return,
        };
        if self.surface_is_open(cx.shared) {
            self.conversation.iter_mut().for_each(|conversation| conversation.surfaces.scroll(by));
        } else {
            self.with_conversation(cx.shared, |conversation, pen| conversation.scroll(by, pen));
        }
    }

    fn takes_text(&self, shared: &Shared) -> bool {
        self.surface_has_text_focus(shared) || shared.writing
    }

    fn request(&self, shared: &Shared) -> Option<String> {
        // A request of the open surface is answered there.
        let open = self.conversation.as_ref().and_then(|conversation| conversation.surfaces.open_ask());
        let list: Vec<String> = self.requests(shared).into_iter().filter(|id| Some(id.as_str()) != open).collect();
        let card = shared.card.card.as_ref();
        let is_recently_closed = |id: &String| {
            card.is_some_and(|card| &card.id == id && card.closed_at.is_none_or(|at| shared.now - at < LINGER_TIME))
        };
        // The shown request stays as long as it is open; its outcome is replaced by the next one.
        let visible = card.map(|card| card.id.clone()).filter(|id| list.contains(id));
        match visible {
            Some(id) if shared.is_open(&id) => Some(id),
            visible => list.into_iter().find(|id| shared.is_open(id)).or(visible.filter(is_recently_closed)),
        }
    }

    fn hints(&self, shared: &Shared) -> Vec<Hint> {
        if self.surface_takes_text(shared) {
            return vec![("Esc", "end of the text"), ("Tab", "next field"), ("Ctrl-K", "commands")];
        }
        if self.surface_is_open(shared) {
            return vec![
                ("Tab", "next"),
                ("↑↓", "move"),
                ("Enter", "press"),
                ("[ ]", "surfaces"),
                ("Esc", "back"),
                ("?", "keys"),
            ];
        }
        if shared.writing && shared.card.open().is_some() {
            return vec![("Esc", "answer the request"), ("Enter", "send"), ("Alt-Enter", "new line")];
        }
        if shared.writing {
            return vec![
                ("Enter", "send"),
                ("Alt-Enter", "new line"),
                ("↑", "earlier"),
                ("Esc", "read"),
                ("Ctrl-K", "commands"),
            ];
        }
        if shared.card.focused {
            return vec![("a", "allow once"), ("d", "deny"), ("Esc", "write"), ("?", "keys"), ("q", "back")];
        }
        vec![
            ("Esc", "write"),
            ("↑↓", "scroll"),
            ("G", "now"),
            ("Space", "unfold"),
            ("x", "cancel"),
            ("c", "copy"),
            ("E", "export"),
            ("?", "keys"),
            ("q", "back"),
        ]
    }

    fn draw(&self, draw: &mut Draw<'_>) {
        draw.session(self);
    }
}
