//! The palette, and the commands of a session.

use super::*;

impl App {
    pub(super) fn then(&mut self, then: AfterConfirm, text: &str, effects: &mut Vec<Effect>) {
        effects.push(match then {
            AfterConfirm::DenySeveral => {
                return self.pages.inbox.ask_several(Sense::Deny { reason: text.to_owned() }, &mut self.shared);
            }
            AfterConfirm::Ceiling(ceiling, known) => return self.set_ceiling(ceiling, *known, text, effects),
            AfterConfirm::Image(_) if text.is_empty() => return,
            AfterConfirm::Image(place) => {
                // As a dropped file is written: in quotes, or with backslashes.
                let path = attachments::pasted_path(text).unwrap_or_else(|| text.to_owned());
                Effect::ReadImage { place, path, pasted: None }
            }
            AfterConfirm::Call { tag, method, path, body } => Effect::Call { tag, method, path, body, key: false },
            AfterConfirm::With { tag, method, path, member } => {
                let mut body = json!({});
                body[member] = text.into();
                Effect::Call { tag, method, path, body: Some(body), key: false }
            }
        });
    }

    /// The palette's matches for this text: commands, then sessions.
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
                list.push((rank(&choice.command.to_lowercase()), choice.command, choice.what));
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
        conversation.map(|conversation| conversation.status.settings.choices(&conversation.session)).unwrap_or_default()
    }

    pub(super) fn command(&mut self, name: &str, effects: &mut Vec<Effect>) {
        if let Some(choice) = self.choices().into_iter().find(|choice| choice.command == name) {
            let SettingChoice { command, method, params, .. } = choice;
            return effects.push(Effect::Ask { tag: CallTag::Notice(command), method, params });
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
                self.shared.say(if self.mouse { "mouse on" } else { "mouse off" }, false);
            }
            "surface" => self.pages.session.open_surface(&mut self.shared),
            "changes" => self.open_changes(effects),
            "image" if self.pages.new_session.form.is_some() => self.shared.ask_image(String::new()),
            "image" => self.pages.session.ask_image(&mut self.shared),
            "doctor" => effects.push(Effect::get(CallTag::TextPage("doctor"), "/v1/doctor".into())),
            "start" => {
                self.shared.overlay = Some(Overlay::Input {
                    label: "preset: gemini, codex, claude, opencode …",
                    area: input::area(""),
                    then: Box::new(AfterConfirm::With {
                        tag: CallTag::Notice("attached".into()),
                        method: "POST",
                        path: "/v1/runtimes".into(),
                        member: "preset",
                    }),
                });
            }
            "resume" => match self.shared.runtimes.as_slice() {
                [] => self.shared.say("no runtime is attached: start one with `plexus run`", true),
                [only] => {
                    let id = only.id.clone();
                    self.open_form(Some(&id), true, effects);
                }
                _ => self.shared.overlay = Some(Overlay::Palette { area: input::area("resume "), at: 0 }),
            },
            "new" => self.open_form(None, false, effects),
            _ => {
                let Some(session) = session else { return self.shared.say("open a session first", true) };
                self.session_command(name, &session, effects);
            }
        }
    }

    /// Shows the changes of the open session.
    fn open_changes(&mut self, effects: &mut Vec<Effect>) {
        let open = self.pages.session.id().filter(|_| self.shared.page == TuiPage::Session);
        let Some(session) = open.map(str::to_owned) else { return self.shared.say("open a session first", true) };
        self.with(effects, |pages, cx| pages.changes.open(&session, cx));
    }

    pub(super) fn session_command(&mut self, name: &str, session: &SessionItem, effects: &mut Vec<Effect>) {
        let path = format!("/v1/sessions/{}", session.id);
        match name {
            "cancel" if session.run.is_empty() => self.shared.say("nothing runs", false),
            "cancel" => self.shared.confirm(
                "Cancel the run? Its open requests are withdrawn.".into(),
                AfterConfirm::Call {
                    tag: CallTag::Notice("the run is cancelled".into()),
                    method: "POST",
                    path: format!("{path}/cancel"),
                    body: Some(json!({ "run_id": session.run })),
                },
            ),
            "restart" => self.shared.confirm(
                "Repeat the last prompt? The current run is cancelled.".into(),
                AfterConfirm::Call {
                    tag: CallTag::Notice("run again".into()),
                    method: "POST",
                    path: format!("{path}/restart"),
                    body: Some(json!({})),
                },
            ),
            "unqueue" => match session.queue.last() {
                Some((run, ..)) => {
                    effects.push(Effect::post(
                        CallTag::Notice("taken back".into()),
                        format!("{path}/cancel"),
                        json!({ "run_id": run }),
                    ));
                }
                None => self.shared.say("no prompt is queued", false),
            },
            "rename" => {
                self.shared.overlay = Some(Overlay::Input {
                    label: "its title",
                    area: input::area(&session.title),
                    then: Box::new(AfterConfirm::With {
                        tag: CallTag::Notice("renamed".into()),
                        method: "PATCH",
                        path,
                        member: "title",
                    }),
                });
            }
            "archive" => {
                let to = !session.archived;
                let tag = match to {
                    true if session.in_worktree => CallTag::Archived(session.cwd.clone()),
                    true => CallTag::Notice("archived; e restores it".into()),
                    false => CallTag::Notice("no longer archived".into()),
                };
                effects.push(Effect::Call {
                    tag,
                    method: "PATCH",
                    path,
                    body: Some(json!({ "archived": to })),
                    key: false,
                });
            }
            "delete" => self.shared.confirm(
                format!("Delete {} and all that is stored of it? This cannot be undone.", session.name()),
                AfterConfirm::Call {
                    tag: CallTag::Notice("the session is deleted".into()),
                    method: "DELETE",
                    path,
                    body: None,
                },
            ),
            "mcp" => effects.push(Effect::get(CallTag::Servers, format!("{path}/mcp"))),
            "skills" => effects.push(Effect::get(CallTag::Skills, format!("{path}/skills"))),
            "share" => effects.push(Effect::post(CallTag::Link, format!("{path}/shares"), json!({}))),
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
            Some(text) if text.len() > COPY_MAX => self.shared.say("too long for the clipboard: export it (E)", true),
            Some(text) => {
                self.shared.say(&format!("copied {} lines", text.lines().count()), false);
                effects.push(Effect::Copy(text));
            }
            None => self.shared.say("nothing to copy here", false),
        }
    }

    /// A session in a worktree was archived. The worktree may go, if the gateway made it.
    pub(super) fn on_archived(&mut self, folder: String, problem: Option<&str>, effects: &mut Vec<Effect>) {
        match problem {
            Some(why) => self.shared.say(&format!("not archived: {why}"), true),
            None => {
                self.shared.say("archived; e restores it", false);
                effects.push(Effect::get(CallTag::Worktrees(folder), "/v1/worktrees".into()));
            }
        }
    }

    /// Offers to remove the worktree of a session that was archived, if no other session works there. Nothing is lost unasked.
    pub(super) fn offer_removal(&mut self, folder: &str, value: &Value) {
        let ours = |one: &&Value| {
            let inside = one["path"].as_str().and_then(|path| folder.strip_prefix(path));
            inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let all = value["worktrees"].as_array().into_iter().flatten();
        let Some(one) = all
            .into_iter()
            .find(ours)
            .filter(|_| self.shared.overlay.is_none() && self.pages.new_session.form.is_none())
        else {
            return;
        };
        if one["sessions"].as_array().is_none_or(|sessions| !sessions.is_empty()) {
            return;
        }
        let (branch, unsaved) = (field(&one["branch"]), &one["unsaved"]);
        let mut body = json!({ "path": one["path"] });
        let lost = match unsaved["changed"].as_u64().unwrap_or_default() {
            0 => String::new(),
            count => {
                body["lost"] = unsaved["digest"].clone();
                format!(" What was changed and not committed in it is lost: {count} files.")
            }
        };
        self.shared.confirm(
            format!("Remove its worktree as well? The branch {branch} is kept.{lost}"),
            AfterConfirm::Call {
                tag: CallTag::Notice("the worktree is removed".into()),
                method: "POST",
                path: "/v1/worktrees/remove".into(),
                body: Some(body),
            },
        );
    }
}
