//! The palette, and the commands of a session.

use std::path::PathBuf;

use plexus_protocol::RunId;
use plexus_protocol::api::devices::{DeviceChanges, NewShare};
use plexus_protocol::api::runtimes::StartRuntime;
use plexus_protocol::api::sessions::{CancelRun, EditSession, RestartRun};
use plexus_protocol::api::worktrees::{ListedWorktree, RemoveWorktree};

use super::*;
use crate::pages::message::CallKey;
use crate::view_model::line;

impl App {
    pub(super) fn then(&mut self, then: AfterConfirm, text: &str, effects: &mut Vec<Effect>) {
        effects.push(match then {
            AfterConfirm::DenySeveral => {
                return self.pages.inbox.ask_several(Sense::Deny { reason: text.to_owned() }, &mut self.shared);
            }
            AfterConfirm::Ceiling(ceiling, known) => return self.set_ceiling(ceiling, *known, text, effects),
            AfterConfirm::Image(_) if text.is_empty() => return,
            AfterConfirm::Image(target) => {
                // The format of a dropped file: in quotes, or with backslashes.
                let path = attachments::pasted_path(text).unwrap_or_else(|| text.to_owned());
                Effect::ReadImage { target, path, pasted: None }
            }
            AfterConfirm::Call { tag, request } => Effect::Call { tag, request, key: CallKey::None },
            AfterConfirm::StartAgent => {
                let start = StartRuntime { preset: Some(text.to_owned()), ..StartRuntime::default() };
                Effect::call(CallTag::Notice("attached".into()), calls::start_runtime(&start))
            }
            AfterConfirm::RenameSession(session) => {
                let edit = EditSession { title: Some(text.to_owned()), ..EditSession::default() };
                Effect::call(CallTag::Notice("renamed".into()), calls::edit_session(&session, &edit))
            }
            AfterConfirm::RenameDevice(device) => {
                let changes = DeviceChanges { name: Some(text.to_owned()), lock_screen: None };
                Effect::call(CallTag::Notice("renamed".into()), calls::change_device(&device, &changes))
            }
        });
    }

    /// The palette's matches for a text: commands, then sessions.
    pub(crate) fn palette(&self, text: &str) -> Vec<(String, String)> {
        let text = text.trim().to_lowercase();
        let fits = |name: &str| {
            let mut rest = name.chars().flat_map(char::to_lowercase);
            text.chars().filter(|c| !c.is_whitespace()).all(|c| rest.any(|d| d == c))
        };
        let mut list: Vec<(u8, String, String)> = Vec::new();
        let rank = |name: &str| {
            if name.starts_with(&text) {
                0
            } else if name.contains(&text) {
                1
            } else {
                2
            }
        };
        for (name, what) in COMMANDS {
            if fits(name) {
                list.push((rank(name), (*name).to_owned(), (*what).to_owned()));
            }
        }
        for choice in self.choices() {
            if fits(&choice.command) {
                list.push((rank(&choice.command.to_lowercase()), choice.command, choice.description));
            }
        }
        for session in self.pages.sessions.ordered(&self.shared) {
            let name = session.name();
            if fits(&name) {
                list.push((
                    rank(&name.to_lowercase()),
                    format!("go {}", session.id),
                    format!("{name} · {}", session.runtime),
                ));
            }
        }
        for runtime in &self.shared.runtimes {
            let name = format!("resume {}", runtime.id);
            if fits(&name) {
                list.push((rank(&name), name, format!("a past conversation of {}", runtime.id)));
            }
            let name = format!("new {}", runtime.id);
            if fits(&name) {
                list.push((rank(&name), name, format!("a new session in {}", runtime.id)));
            }
        }
        list.sort_by_key(|(rank, ..)| *rank);
        list.into_iter().map(|(_, name, what)| (name, what)).collect()
    }

    /// The settings that the open session's agent offers.
    fn choices(&self) -> Vec<SettingChoice> {
        let conversation = self.pages.session.conversation.as_ref().filter(|_| self.shared.page == TuiPage::Session);
        conversation.map(|conversation| conversation.status.settings.choices()).unwrap_or_default()
    }

    pub(super) fn command(&mut self, name: &str, effects: &mut Vec<Effect>) {
        if let Some(choice) = self.choices().into_iter().find(|choice| choice.command == name) {
            let SettingChoice { command, call, .. } = choice;
            let Some(session) = self.pages.session.id().map(str::to_owned) else { return };
            return effects.push(Effect::Set { tag: CallTag::Notice(command), session, call });
        }
        let open_id = self
            .pages
            .session
            .conversation
            .as_ref()
            .filter(|_| self.shared.page == TuiPage::Session)
            .map(|conversation| conversation.session.clone());
        let session = open_id.and_then(|id| self.shared.sessions.all.get(&id).cloned());
        if let Some(id) = name.strip_prefix("go ") {
            return self.open(id.to_owned(), effects);
        }
        if let Some(runtime) = name.strip_prefix("resume ") {
            return self.open_form(Some(runtime), true, effects);
        }
        if let Some(runtime) = name.strip_prefix("new ") {
            return self.open_form(Some(runtime), false, effects);
        }
        match name {
            "inbox" => self.go(TuiPage::Inbox, effects),
            "sessions" => self.go(TuiPage::Sessions, effects),
            "search" => self.go(TuiPage::Search, effects),
            "runtimes" => self.go(TuiPage::Runtimes, effects),
            "devices" => self.go(TuiPage::Devices, effects),
            "usage" => self.open_usage(effects),
            "settings" => self.open_settings(effects),
            "pair" => self.pair_device(),
            "sign out browsers" => self.sign_out_browsers(),
            "help" => self.shared.overlay = Some(Overlay::Help(0)),
            "quit" => self.shared.quit = true,
            "mouse" => {
                self.mouse = !self.mouse;
                effects.push(Effect::Mouse(self.mouse));
                self.shared.show_notice(if self.mouse { "mouse on" } else { "mouse off" }, false);
            }
            "surface" => self.pages.session.open_surface(&mut self.shared),
            "changes" => self.open_changes(effects),
            "image" if self.pages.new_session.form.is_some() => self.shared.ask_image(String::new()),
            "image" => self.pages.session.ask_image(&mut self.shared),
            "doctor" => effects.push(Effect::call(CallTag::Checks, calls::doctor(None))),
            "start" => {
                self.shared.overlay = Some(Overlay::Input {
                    label: "preset: gemini, codex, claude, opencode …",
                    area: input::area(""),
                    then: Box::new(AfterConfirm::StartAgent),
                });
            }
            "resume" => match self.shared.runtimes.as_slice() {
                [] => self.shared.show_notice("no runtime is attached: start one with `plexus run`", true),
                [only] => {
                    let id = only.id.clone();
                    self.open_form(Some(&id), true, effects);
                }
                _ => self.shared.overlay = Some(Overlay::Palette { area: input::area("resume "), at: 0 }),
            },
            "new" => self.open_form(None, false, effects),
            _ => {
                let Some(session) = session else { return self.shared.show_notice("open a session first", true) };
                self.session_command(name, &session, effects);
            }
        }
    }

    /// Shows the changes of the open session.
    fn open_changes(&mut self, effects: &mut Vec<Effect>) {
        let open = self.pages.session.id().filter(|_| self.shared.page == TuiPage::Session);
        let Some(session) = open.map(str::to_owned) else {
            return self.shared.show_notice("open a session first", true);
        };
        self.with(effects, |pages, cx| pages.changes.open(&session, cx));
    }

    pub(super) fn session_command(&mut self, name: &str, session: &SessionItem, effects: &mut Vec<Effect>) {
        let id = SessionId::trusted(session.id.as_str());
        let cancel = |run: &RunId| calls::cancel(&id, &CancelRun { run_id: Some(run.clone()), ..CancelRun::default() });
        match name {
            "cancel" => match &session.run {
                None => self.shared.show_notice("nothing runs", false),
                Some(run) => self.shared.confirm(
                    "Cancel the run? Its open requests are withdrawn.".into(),
                    AfterConfirm::call(CallTag::Notice("the run is cancelled".into()), cancel(run)),
                ),
            },
            "restart" => self.shared.confirm(
                "Repeat the last prompt? The current run is cancelled.".into(),
                AfterConfirm::call(
                    CallTag::Notice("run again".into()),
                    calls::restart_run(&id, &RestartRun::default()),
                ),
            ),
            "unqueue" => match session.queue.last() {
                Some(queued) => {
                    effects.push(Effect::call(CallTag::Notice("taken back".into()), cancel(&queued.run)));
                }
                None => self.shared.show_notice("no prompt is queued", false),
            },
            "rename" => {
                self.shared.overlay = Some(Overlay::Input {
                    label: "its title",
                    area: input::area(&session.title),
                    then: Box::new(AfterConfirm::RenameSession(id)),
                });
            }
            "archive" => {
                let to = !session.archived;
                let tag = match to {
                    true if session.in_worktree => CallTag::Archived(session.cwd.clone()),
                    true => CallTag::Notice("archived; e restores it".into()),
                    false => CallTag::Notice("no longer archived".into()),
                };
                let edit = EditSession { archived: Some(to), ..EditSession::default() };
                effects.push(Effect::call(tag, calls::edit_session(&id, &edit)));
            }
            "delete" => self.shared.confirm(
                format!("Delete {} and all its stored data? This cannot be undone.", session.name()),
                AfterConfirm::call(CallTag::Notice("the session is deleted".into()), calls::delete_session(&id)),
            ),
            "mcp" => effects.push(Effect::call(CallTag::Servers, calls::mcp_servers(&id))),
            "skills" => effects.push(Effect::call(CallTag::Skills, calls::skills(&id))),
            "share" => effects.push(Effect::call(CallTag::Link, calls::share(&id, &NewShare { hours: None }))),
            "export md" | "export html" | "export ndjson" => {
                let format = if name.ends_with("md") {
                    "md"
                } else if name.ends_with("html") {
                    "html"
                } else {
                    "ndjson"
                };
                effects.push(Effect::Export { session: session.id.clone(), format, name: session.name() });
            }
            "copy" => self.copy(effects),
            "thoughts" => self.pages.session.with_conversation(&self.shared, |conversation, _| {
                conversation.refold(|folds| folds.thoughts = !folds.thoughts)
            }),
            "output" => self.pages.session.with_conversation(&self.shared, |conversation, _| {
                conversation.refold(|folds| folds.tools = !folds.tools)
            }),
            "now" => self.pages.session.with_conversation(&self.shared, |conversation, _| conversation.go_to_newest()),
            _ => {}
        }
    }

    /// Copies the chosen block of the conversation, or its end.
    fn copy(&mut self, effects: &mut Vec<Effect>) {
        match self.pages.session.conversation.as_ref().and_then(Conversation::copied) {
            Some(text) if text.len() > COPY_MAX => {
                self.shared.show_notice("too long for the clipboard: export it (E)", true)
            }
            Some(text) => {
                self.shared.show_notice(&format!("copied {} lines", text.lines().count()), false);
                effects.push(Effect::Copy(text));
            }
            None => self.shared.show_notice("nothing to copy here", false),
        }
    }

    /// Applies the outcome of archiving a session; reads the worktrees, to offer the removal of the session's own.
    pub(super) fn on_archived(&mut self, folder: String, problem: Option<&str>, effects: &mut Vec<Effect>) {
        match problem {
            Some(why) => self.shared.show_notice(&format!("not archived: {why}"), true),
            None => {
                self.shared.show_notice("archived; e restores it", false);
                effects.push(Effect::call(CallTag::Worktrees(folder), calls::worktrees()));
            }
        }
    }

    /// Asks whether to remove the worktree of a session that was archived, if no other session works there. Nothing is removed without
    /// confirmation.
    pub(super) fn offer_removal(&mut self, folder: &str, worktrees: &[ListedWorktree]) {
        let is_inside = |one: &&ListedWorktree| {
            let rest = folder.strip_prefix(&one.worktree.path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_covered = self.shared.overlay.is_some() || self.pages.new_session.form.is_some();
        let Some(ListedWorktree { worktree, sessions }) = worktrees.iter().find(is_inside).filter(|_| !is_covered)
        else {
            return;
        };
        if !sessions.is_empty() {
            return;
        }
        let unsaved = worktree.unsaved.as_ref().filter(|unsaved| unsaved.changed > 0);
        let loss = unsaved.map(|unsaved| format!(" Its uncommitted changes are lost: {} files.", unsaved.changed));
        let removal = RemoveWorktree {
            path: PathBuf::from(&worktree.path),
            delete_branch: false,
            lost: unsaved.map(|unsaved| unsaved.digest.clone()),
        };
        let branch = line(&worktree.branch);
        self.shared.confirm(
            format!("Remove its worktree as well? The branch {branch} is kept.{}", loss.as_deref().unwrap_or_default()),
            AfterConfirm::call(CallTag::Notice("the worktree is removed".into()), calls::remove_worktree(&removal)),
        );
    }
}
