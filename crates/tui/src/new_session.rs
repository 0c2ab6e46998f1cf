//! The form of a new session: its agent, its folder, its settings and its prompt. Pure: keys change it, and their outcome names the calls
//! to make.

mod folder;
mod lists;
mod program;

pub(crate) use lists::{AgentChoice, AgentChoiceKind, EarlierList, FolderItem, SettingField};
use lists::{LIST_MAX, PresetItem};
use plexus_client::calls::ApiRequest;
use plexus_protocol::api::KnownItems;
use plexus_protocol::api::folders::Folders;
use plexus_protocol::api::runtimes::{Agents, StartRuntime};
use plexus_protocol::api::sessions::{NewSession, ResumablePage};
use plexus_protocol::api::snapshot::Snapshot;
use plexus_protocol::api::worktrees::NewWorktree;
use plexus_protocol::{CODEX_TERMINAL, Kind, RuntimeId, RuntimeState};
pub(crate) use program::{PROTOCOLS, WakeStep};
use ratatui_textarea::TextArea;

use super::agent_lists::PastConversation;
use super::attachments::Attachment;
use super::input::{self, Key};
use super::mention::FileOffers;
use super::reply::CallReply;
use super::sanitize;
use super::settings::{self, SettingPick, Settings};
use super::view_model::RuntimeItem;

/// Time without typing before folders are searched, in milliseconds.
const FOLDER_PAUSE: i64 = 120;
/// Maximum number of the agent's commands that are suggested below the prompt.
const SLASH_MAX: usize = 4;
/// Maximum length of the output of a failed agent, in bytes, from its end.
const OUTPUT_TEXT_MAX: usize = 16 << 10;
/// The HTTP status of a call that this device may not make.
const FORBIDDEN: u16 = 403;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormField {
    Agent,
    /// The choice between a new conversation and an earlier one.
    Conversation,
    Folder,
    /// The command line of a custom program, and its protocol.
    Command,
    Protocol,
    /// The branch of a new git worktree, and its starting point.
    Branch,
    Base,
    Mode,
    Model,
    Title,
    Prompt,
    /// The earlier conversations.
    Earlier,
}

/// A session that is being opened.
#[derive(Clone, Debug)]
pub(crate) struct SessionStart {
    /// The number of the attempt: replies to others are ignored.
    pub(crate) attempt: u64,
    pub(crate) since: i64,
    /// The current step, for the screen.
    pub(crate) text: String,
    /// The session, once it has been opened.
    pub(crate) session: Option<String>,
    /// The settings that are still to be made.
    pub(crate) settings: Vec<SettingPick>,
    /// The agents at the beginning of the start: the list does not change meanwhile.
    agents: Vec<AgentChoice>,
    /// `true` if an agent is started only to list its conversations.
    pub(crate) wakes: bool,
    pub(crate) runtime: Option<String>,
}

/// The reason why a start failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StartProblem {
    pub(crate) text: String,
    /// The output of the agent; empty if it is unknown.
    pub(crate) output: String,
}

/// The outcome of a key of the form.
#[derive(Debug, PartialEq)]
pub(crate) enum FormOutcome {
    Nothing,
    Close,
    Start,
    /// Starts the agent, so that it lists its earlier conversations.
    Wake,
    /// Asks for the path of an image.
    Image,
    /// Cancels the start.
    Cancel,
    /// Opens this session.
    Open(String),
    Copy(String),
    /// Shows the complete problem.
    Problem,
}

/// A part of the form that was clicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormHit {
    Field(FormField),
    /// A row of the list of a field.
    Row(FormField, usize),
}

#[derive(Clone, Debug, Default)]
struct AgentField {
    /// The agents that can be started; `None` until they have been read.
    presets: Option<Vec<PresetItem>>,
    /// The name of the chosen agent.
    chosen: String,
    /// `true` if this client may start agents.
    can_start: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct FolderField {
    pub(crate) text: TextArea<'static>,
    /// `true` if the user typed or chose the text.
    typed: bool,
    offered: Vec<FolderItem>,
    /// A notice below the field.
    pub(crate) notice: String,
    /// The number of the last query for folders, the time of the next one, and whether its reply completes the typed text.
    query_id: u64,
    due: Option<i64>,
    completes: bool,
    /// The index of the selected suggestion.
    pub(crate) at: Option<usize>,
}

/// The fields of another program.
#[derive(Clone, Debug)]
pub(crate) struct ProgramFields {
    /// The command line.
    pub(crate) command: TextArea<'static>,
    /// The index of the program's protocol in [`PROTOCOLS`].
    pub(crate) protocol: usize,
}

/// The fields of a new git worktree.
#[derive(Clone, Debug)]
pub(crate) struct WorktreeFields {
    pub(crate) branch: TextArea<'static>,
    /// The branch or commit that the branch starts from.
    pub(crate) base: TextArea<'static>,
}

/// The settings and commands of an agent, as its newest session reported them.
#[derive(Clone, Debug, Default)]
struct AgentOffers {
    session: String,
    commands: Vec<(String, String)>,
}

/// The attempts to start a session.
#[derive(Clone, Debug, Default)]
struct Attempts {
    /// The number of the last attempt.
    number: u64,
    /// The last request without an outcome: sending it again counts as the same attempt.
    last: Option<ApiRequest>,
}

#[derive(Clone, Debug)]
pub(crate) struct NewSessionForm {
    agent: AgentField,
    recent: Vec<FolderItem>,
    /// The home folder, if this client may see the machine's folders.
    home: Option<String>,
    /// The working directory of the terminal UI.
    start_dir: String,
    pub(crate) folder: FolderField,
    offers: AgentOffers,
    pub(crate) mode: SettingField,
    pub(crate) model: SettingField,
    pub(crate) earlier: bool,
    pub(crate) conversations: EarlierList,
    /// A new git worktree.
    pub(crate) worktree: WorktreeFields,
    /// The fields of another program that is started as the agent.
    pub(crate) program: ProgramFields,
    pub(crate) title: TextArea<'static>,
    pub(crate) prompt: TextArea<'static>,
    /// The suggested files and the images of the prompt.
    pub(crate) files: FileOffers,
    pub(crate) images: Vec<Attachment>,
    pub(crate) focus: FormField,
    pub(crate) start: Option<SessionStart>,
    attempts: Attempts,
    pub(crate) problem: Option<StartProblem>,
}

fn line_of(area: &TextArea<'_>) -> String {
    area.lines().join(" ")
}

/// The text of a field of one line; `None` if it is blank.
fn typed_line(area: &TextArea<'_>) -> Option<String> {
    Some(line_of(area).trim().to_owned()).filter(|line| !line.is_empty())
}

impl NewSessionForm {
    pub(crate) fn new(start_dir: &str, prompt: &str, runtimes: &[RuntimeItem], attempt: u64) -> Self {
        let mut form = Self {
            agent: AgentField::default(),
            recent: Vec::new(),
            home: None,
            start_dir: start_dir.to_owned(),
            folder: FolderField {
                text: input::area(start_dir),
                typed: false,
                offered: Vec::new(),
                notice: String::new(),
                query_id: 0,
                due: None,
                completes: false,
                at: None,
            },
            mode: SettingField::new(Vec::new()),
            model: SettingField::new(Vec::new()),
            offers: AgentOffers::default(),
            earlier: false,
            conversations: EarlierList::new(),
            worktree: WorktreeFields { branch: input::area(""), base: input::area("") },
            program: ProgramFields { command: input::area(""), protocol: 0 },
            title: input::area(""),
            prompt: input::area(prompt),
            files: FileOffers::default(),
            images: Vec::new(),
            focus: FormField::Prompt,
            start: None,
            attempts: Attempts { number: attempt, last: None },
            problem: None,
        };
        // Only the prompt is missing if the agent is running.
        if form.choice(runtimes).is_none() {
            form.focus = FormField::Agent;
        }
        form
    }

    /// Chooses an agent, and whether to continue an earlier conversation.
    pub(crate) fn choose(&mut self, agent: &str, earlier: bool) {
        agent.clone_into(&mut self.agent.chosen);
        (self.earlier, self.focus) = (earlier, if earlier { FormField::Earlier } else { FormField::Prompt });
    }

    /// The number of the last attempt.
    pub(crate) fn attempt(&self) -> u64 {
        self.attempts.number
    }

    // === view

    /// Returns whether the agents are still being loaded.
    pub(crate) fn is_loading_agents(&self) -> bool {
        self.agent.presets.is_none()
    }

    /// The agents: those that are running, those that can be started, those that are not installed.
    pub(crate) fn agents(&self, runtimes: &[RuntimeItem]) -> Vec<AgentChoice> {
        if let Some(start) = &self.start {
            return start.agents.clone();
        }
        let mut running: Vec<&RuntimeItem> = runtimes.iter().filter(|one| one.takes_sessions()).collect();
        running.sort_by_key(|one| (one.state != RuntimeState::Ready, one.id == CODEX_TERMINAL, one.id.clone()));
        let mut all: Vec<AgentChoice> = Vec::new();
        for one in &running {
            let about = if one.agent.is_empty() { &one.dialect } else { &one.agent };
            let text = if one.state == RuntimeState::Ready { "running" } else { one.state.as_str() };
            all.push(AgentChoice {
                name: one.id.clone(),
                kind: AgentChoiceKind::Runtime(one.state == RuntimeState::Ready),
                about: format!("{text} · {about}"),
                endpoint: one.endpoint,
                lists: one.lists,
            });
        }
        let presets = self.agent.presets.iter().flatten();
        let (there, missing): (Vec<&PresetItem>, Vec<&PresetItem>) = presets.partition(|one| one.installed);
        let runs = |one: &PresetItem| running.iter().any(|at| at.id == one.name || at.id == one.runtime);
        let preset = |one: &PresetItem, kind, about| AgentChoice {
            name: one.name.clone(),
            kind,
            about,
            endpoint: false,
            lists: false,
        };
        for one in there.into_iter().filter(|one| !runs(one)) {
            let sign_in = if one.key.is_empty() { one.about.clone() } else { format!("signs in by {}", one.key) };
            all.push(preset(one, AgentChoiceKind::Installed, format!("installed · {sign_in}")));
        }
        if self.agent.can_start {
            all.push(AgentChoice::program());
        }
        for one in missing {
            all.push(preset(one, AgentChoiceKind::Missing, format!("not installed: {}", one.install)));
        }
        all
    }

    /// The index of the selected agent.
    pub(crate) fn agent_at(&self, all: &[AgentChoice]) -> usize {
        let chosen = all.iter().position(|one| one.name == self.agent.chosen);
        let known = |one: &AgentChoice| one.is_usable() && one.kind != AgentChoiceKind::Program;
        // Without an agent, the instructions to install one are shown.
        let missing = |one: &AgentChoice| one.kind == AgentChoiceKind::Missing;
        let usual = || all.iter().position(known).or_else(|| all.iter().position(missing));
        chosen.or_else(usual).unwrap_or_default()
    }

    /// The agent that gets the session.
    pub(crate) fn choice(&self, runtimes: &[RuntimeItem]) -> Option<AgentChoice> {
        let all = self.agents(runtimes);
        let at = self.agent_at(&all);
        all.into_iter().nth(at).filter(AgentChoice::is_usable)
    }

    /// Returns whether earlier conversations are shown.
    pub(crate) fn is_earlier(&self, runtimes: &[RuntimeItem]) -> bool {
        self.earlier && self.choice(runtimes).is_some_and(|choice| choice.offers_earlier())
    }

    /// The fields, in their order.
    pub(crate) fn fields(&self, runtimes: &[RuntimeItem]) -> Vec<FormField> {
        let mut all = vec![FormField::Agent];
        let choice = self.choice(runtimes);
        if choice.as_ref().is_some_and(AgentChoice::offers_earlier) {
            all.push(FormField::Conversation);
        }
        if self.is_earlier(runtimes) {
            all.push(FormField::Earlier);
            return all;
        }
        if choice.is_some_and(|choice| choice.kind == AgentChoiceKind::Program) {
            all.extend([FormField::Command, FormField::Protocol]);
        }
        all.push(FormField::Folder);
        for (field, setting) in [(FormField::Mode, &self.mode), (FormField::Model, &self.model)] {
            if !setting.choices.is_empty() {
                all.push(field);
            }
        }
        all.extend([FormField::Title, FormField::Prompt]);
        // Last, so that users who need no worktree do not pass its fields.
        if self.offers_worktree(runtimes) {
            all.push(FormField::Branch);
            if !line_of(&self.worktree.branch).trim().is_empty() {
                all.push(FormField::Base);
            }
        }
        all
    }

    /// Returns whether a new git worktree can be requested: an administrator's client, an agent on this machine, and a folder that is not
    /// known to be outside of every repository.
    fn offers_worktree(&self, runtimes: &[RuntimeItem]) -> bool {
        let is_local = self.choice(runtimes).is_some_and(|choice| !choice.endpoint);
        let text = self.folder_text();
        let folder = text.trim().trim_end_matches('/');
        let known = || self.recent.iter().chain(&self.folder.offered);
        let outside = known().any(|one| one.path == folder && !one.git);
        let inside = |one: &FolderItem| folder.strip_prefix(&one.path).is_some_and(|rest| rest.starts_with('/'));
        is_local && self.home.is_some() && !folder.is_empty() && (!outside || known().any(|one| one.git && inside(one)))
    }

    /// The agent's commands that complete the prompt.
    pub(crate) fn slash(&self) -> Vec<&(String, String)> {
        let lines = self.prompt.lines();
        let prefix = lines.first().and_then(|line| line.strip_prefix('/')).filter(|_| lines.len() == 1);
        let prefix = prefix.filter(|prefix| self.focus == FormField::Prompt && !prefix.contains(' '));
        let fits = |one: &&(String, String)| prefix.is_some_and(|prefix| one.0.starts_with(prefix));
        self.offers.commands.iter().filter(fits).take(SLASH_MAX).collect()
    }

    // === replies

    /// Applies the list of agents that can be started; it is empty for a client that may not start them.
    pub(crate) fn on_agents(&mut self, reply: &CallReply) {
        let agents = reply.read::<Agents>();
        self.agent.can_start = agents.is_ok();
        let agents = agents.map(|list| list.agents).unwrap_or_else(|why| {
            if reply.status() != Some(FORBIDDEN) {
                self.fail(format!("the installed agents could not be listed: {why}"), "");
            }
            KnownItems::default()
        });
        self.agent.presets = Some(agents.iter().take(LIST_MAX).map(PresetItem::new).collect());
    }

    /// Applies the folders that sessions used.
    pub(crate) fn on_recent(&mut self, folders: Folders) {
        self.recent = folders.recent.iter().take(LIST_MAX).map(FolderItem::recent).collect();
        self.home = folders.under;
        if !self.folder.typed {
            let known = self.recent.first().map(|one| one.path.clone());
            // A client that may not see the machine's folders can only use those of sessions.
            let other =
                if self.home.is_some() && !self.start_dir.is_empty() { Some(self.start_dir.clone()) } else { None };
            self.folder.text = input::area(&known.or(other).or(self.home.clone()).unwrap_or_default());
        }
    }

    /// Applies the settings and commands that the agent offered in its newest session.
    pub(crate) fn on_offers(&mut self, session: &str, snapshot: &Snapshot) {
        if session != self.offers.session {
            return;
        }
        let mut settings = Settings::default();
        settings.take_mode(&snapshot.latest_body(Kind::CurrentModeUpdate).unwrap_or_default());
        settings.take_options(&snapshot.latest_body(Kind::ConfigOptionUpdate).unwrap_or_default());
        let (modes, models) = settings.offers();
        (self.mode, self.model) = (SettingField::new(modes), SettingField::new(models));
        let commands = snapshot.latest_body(Kind::AvailableCommandsUpdate).unwrap_or_default();
        self.offers.commands = settings::commands(&commands).take(LIST_MAX).collect();
    }

    /// Applies the conversations of a runtime.
    pub(crate) fn on_conversations(&mut self, runtime: &str, reply: Result<ResumablePage, String>) {
        if runtime != self.conversations.runtime {
            return;
        }
        match reply {
            Err(why) => self.conversations.text = format!("the earlier conversations could not be listed: {why}"),
            Ok(ResumablePage { resumable, next }) => {
                self.conversations.all = resumable.iter().map(PastConversation::new).collect();
                self.conversations.text = match self.conversations.all.is_empty() {
                    true => format!("{} has no conversation that can be continued", sanitize::line(runtime, 40)),
                    false if next.is_some() => "older ones are not listed".to_owned(),
                    false => String::new(),
                };
            }
        }
    }

    /// The newest session of the agent, if its settings have to be read now.
    pub(crate) fn offers_due(&mut self, newest: Option<String>) -> Option<String> {
        let newest = newest.unwrap_or_default();
        if newest == self.offers.session {
            return None;
        }
        newest.clone_into(&mut self.offers.session);
        (self.mode, self.model) = (SettingField::new(Vec::new()), SettingField::new(Vec::new()));
        self.offers.commands.clear();
        (!newest.is_empty()).then_some(newest)
    }

    /// The runtime whose conversations have to be listed now.
    pub(crate) fn conversations_due(&mut self, runtimes: &[RuntimeItem]) -> Option<String> {
        let choice = self.choice(runtimes).filter(|choice| self.earlier && choice.lists)?;
        if choice.name == self.conversations.runtime {
            return None;
        }
        let text = format!("asking {} …", sanitize::line(&choice.name, 40));
        self.conversations = EarlierList { runtime: choice.name.clone(), text, ..EarlierList::new() };
        Some(choice.name)
    }

    // === start

    /// The session to open, and the text while it is being opened; or the reason why it cannot be opened.
    pub(crate) fn new_session(&self, runtimes: &[RuntimeItem]) -> Result<(NewSession, String), String> {
        let all = self.agents(runtimes);
        let Some(one) = all.get(self.agent_at(&all)) else {
            return Err("no agent is running, and this device may not start one".to_owned());
        };
        let name = sanitize::line(&one.name, 40);
        if self.is_earlier(runtimes) {
            let past = self.conversations.visible();
            let past = past.get(self.conversations.at).ok_or("choose a conversation from the list")?;
            let session = NewSession {
                runtime_id: Some(RuntimeId::trusted(self.conversations.runtime.as_str())),
                native_id: Some(past.native_id.clone()),
                cwd: past.cwd.clone(),
                ..NewSession::default()
            };
            return Ok((session, "Opening the conversation".to_owned()));
        }
        let mut session = NewSession::default();
        let text = match one.kind {
            AgentChoiceKind::Runtime(true) => {
                session.runtime_id = Some(RuntimeId::trusted(one.name.as_str()));
                "Opening the session".to_owned()
            }
            AgentChoiceKind::Installed => {
                session.start = Some(StartRuntime { preset: Some(one.name.clone()), ..StartRuntime::default() });
                format!("Starting {name}")
            }
            AgentChoiceKind::Program => {
                let (start, text) = self.program_start()?;
                session.start = Some(start);
                text
            }
            AgentChoiceKind::Runtime(false) => return Err(format!("{name} is not ready yet: wait, or choose another")),
            AgentChoiceKind::Missing => return Err(format!("{name} is {}", one.about)),
        };
        let folder = self.chosen_folder();
        // An endpoint works in a folder of its own, unless the user names another one.
        if !folder.is_empty() && (self.folder.typed || !one.endpoint) {
            session.cwd = Some(folder);
        }
        if self.offers_worktree(runtimes) {
            let base = typed_line(&self.worktree.base);
            session.worktree = typed_line(&self.worktree.branch).map(|branch| NewWorktree { branch, base });
        }
        session.title = typed_line(&self.title);
        Ok((session, text))
    }

    /// Begins a start; returns its number. A request that equals one without an outcome gets the same number.
    pub(crate) fn begin(&mut self, request: &ApiRequest, text: String, now: i64, runtimes: &[RuntimeItem]) -> u64 {
        if self.attempts.last.as_ref() != Some(request) {
            self.attempts.number += 1;
            self.attempts.last = Some(request.clone());
        }
        let agents = self.agents(runtimes);
        let chosen_value = |setting: &SettingField| setting.at.and_then(|at| setting.choices.get(at).cloned());
        let settings = match self.is_earlier(runtimes) {
            true => Vec::new(),
            // The one that is applied first is the last.
            false => [chosen_value(&self.mode), chosen_value(&self.model)].into_iter().flatten().collect(),
        };
        self.problem = None;
        self.start = Some(SessionStart {
            attempt: self.attempts.number,
            since: now,
            text,
            session: None,
            settings,
            agents,
            wakes: false,
            runtime: None,
        });
        self.attempts.number
    }

    /// Applies the failure of a start: all fields keep their values.
    pub(crate) fn fail(&mut self, text: String, output: &str) {
        self.start = None;
        let from = output.len().saturating_sub(OUTPUT_TEXT_MAX);
        let from = (from..=output.len()).find(|at| output.is_char_boundary(*at)).unwrap_or(output.len());
        self.problem = Some(StartProblem { text, output: output[from..].trim().to_owned() });
    }

    /// Records that the request has an outcome: sending it again is another attempt.
    pub(crate) fn settled(&mut self) {
        self.attempts.last = None;
    }

    // === keys

    fn go(&mut self, by: isize, runtimes: &[RuntimeItem]) {
        let all = self.fields(runtimes);
        let now = all.iter().position(|one| *one == self.focus).unwrap_or_default();
        let count = isize::try_from(all.len()).unwrap_or(1);
        let to = (isize::try_from(now).unwrap_or_default() + by).rem_euclid(count);
        self.focus_on(all[usize::try_from(to).unwrap_or_default()]);
    }

    fn focus_on(&mut self, to: FormField) {
        for setting in [&mut self.mode, &mut self.model] {
            setting.filter = input::area("");
        }
        self.folder.at = None;
        self.files.close();
        self.focus = to;
    }

    pub(crate) fn key(&mut self, key: &Key, now: i64, runtimes: &[RuntimeItem]) -> FormOutcome {
        let name = key.name();
        if let Some(start) = &self.start {
            return match (name, &start.session) {
                ("Esc" | "C-c", Some(session)) => FormOutcome::Open(session.clone()),
                ("Esc" | "C-c", None) => FormOutcome::Cancel,
                _ => FormOutcome::Nothing,
            };
        }
        // The field may have been removed.
        if !self.fields(runtimes).contains(&self.focus) {
            self.focus_on(if self.is_earlier(runtimes) { FormField::Earlier } else { FormField::Prompt });
        }
        if self.focus == FormField::Prompt && self.files.key(name, &mut self.prompt) {
            return FormOutcome::Nothing;
        }
        match name {
            "Esc" | "C-c" => return FormOutcome::Close,
            "C-o" => return if self.problem.is_some() { FormOutcome::Problem } else { FormOutcome::Nothing },
            "S-Tab" => self.go(-1, runtimes),
            "Tab" if self.focus == FormField::Folder && self.tab(now) => {}
            "Tab" if !self.slash().is_empty() => {
                if let Some((name, _)) = self.slash().first() {
                    self.prompt = input::area(&format!("/{name} "));
                }
            }
            "Tab" => self.go(1, runtimes),
            _ => match self.focus {
                FormField::Agent => return self.agent_key(name, runtimes),
                FormField::Conversation => match name {
                    "Left" | "Right" | " " | "h" | "l" => self.earlier = !self.earlier,
                    "Up" | "k" => self.go(-1, runtimes),
                    "Down" | "j" | "Enter" => self.go(1, runtimes),
                    _ => {}
                },
                FormField::Folder => self.folder_key(key, now, runtimes),
                FormField::Mode | FormField::Model => self.setting_key(key, runtimes),
                FormField::Protocol => self.protocol_key(name, runtimes),
                FormField::Branch | FormField::Base if name == "Enter" => return FormOutcome::Start,
                FormField::Branch | FormField::Base | FormField::Title | FormField::Command => match name {
                    "Up" => self.go(-1, runtimes),
                    "Down" | "Enter" => self.go(1, runtimes),
                    "M-Enter" | "C-j" | "S-Enter" => {}
                    _ => {
                        if let Some(line) = self.line() {
                            input::edit(line, key);
                        }
                    }
                },
                FormField::Prompt => match name {
                    "Enter" => return FormOutcome::Start,
                    "Up" if self.prompt.cursor().0 == 0 => self.go(-1, runtimes),
                    "C-t" => return FormOutcome::Image,
                    "Backspace" if self.drops_image() => {}
                    _ => {
                        input::edit(&mut self.prompt, key);
                        self.files.follow(&self.prompt, now);
                    }
                },
                FormField::Earlier => return self.earlier_key(key, runtimes),
            },
        }
        FormOutcome::Nothing
    }

    fn agent_key(&mut self, name: &str, runtimes: &[RuntimeItem]) -> FormOutcome {
        let all = self.agents(runtimes);
        let (at, last) = (self.agent_at(&all), all.len().saturating_sub(1));
        let to = match name {
            "Down" | "j" if at == last => {
                self.go(1, runtimes);
                return FormOutcome::Nothing;
            }
            "Down" | "j" => at + 1,
            "Up" | "k" => at.saturating_sub(1),
            "Home" | "g" => 0,
            "End" | "G" => last,
            "Enter" => {
                return match all.get(at).filter(|one| one.kind == AgentChoiceKind::Missing) {
                    Some(one) => {
                        let command = one.about.split_once(": ").map_or("", |(_, command)| command);
                        let command = command.strip_prefix("see ").unwrap_or(command);
                        FormOutcome::Copy(command.to_owned())
                    }
                    None => {
                        // An agent that is not running is usually chosen for a new session.
                        let skips_conversation =
                            all.get(at).is_some_and(|one| one.kind == AgentChoiceKind::Installed) && !self.earlier;
                        self.go(if skips_conversation { 2 } else { 1 }, runtimes);
                        FormOutcome::Nothing
                    }
                };
            }
            _ => return FormOutcome::Nothing,
        };
        if let Some(one) = all.get(to) {
            self.problem = None;
            self.agent.chosen.clone_from(&one.name);
        }
        FormOutcome::Nothing
    }

    /// The focused field, if it is a plain one-line field.
    fn line(&mut self) -> Option<&mut TextArea<'static>> {
        match self.focus {
            FormField::Branch => Some(&mut self.worktree.branch),
            FormField::Base => Some(&mut self.worktree.base),
            FormField::Title => Some(&mut self.title),
            FormField::Command => Some(&mut self.program.command),
            _ => None,
        }
    }

    /// Removes the last image, for Backspace at the beginning of the prompt; returns whether it did.
    fn drops_image(&mut self) -> bool {
        let cursor = self.prompt.cursor();
        (cursor.0, cursor.1) == (0, 0) && self.images.pop().is_some()
    }

    fn setting(&mut self) -> &mut SettingField {
        if self.focus == FormField::Mode { &mut self.mode } else { &mut self.model }
    }

    fn setting_key(&mut self, key: &Key, runtimes: &[RuntimeItem]) {
        let setting = self.setting();
        let visible = setting.visible();
        let at = visible.iter().position(|one| *one == setting.at);
        let to = match (key.name(), at) {
            ("Enter", _) => return self.go(1, runtimes),
            ("Up", None | Some(0)) => return self.go(-1, runtimes),
            ("Up", Some(at)) => at - 1,
            ("Down", Some(at)) if at + 1 >= visible.len() => return self.go(1, runtimes),
            ("Down", at) => at.map_or(0, |at| at + 1),
            ("PageDown", at) => (at.unwrap_or_default() + 10).min(visible.len().saturating_sub(1)),
            ("PageUp", at) => at.unwrap_or_default().saturating_sub(10),
            ("M-Enter" | "C-j" | "S-Enter", _) => return,
            _ => {
                input::edit(&mut setting.filter, key);
                // The first match is selected while the filter is typed.
                if let Some(first) = setting.visible().first() {
                    setting.at = *first;
                }
                return;
            }
        };
        if let Some(one) = visible.get(to) {
            setting.at = *one;
        }
    }

    fn earlier_key(&mut self, key: &Key, runtimes: &[RuntimeItem]) -> FormOutcome {
        let last = self.conversations.visible().len().saturating_sub(1);
        self.conversations.at = match key.name() {
            "Up" if self.conversations.at == 0 => {
                self.go(-1, runtimes);
                0
            }
            "Up" => self.conversations.at - 1,
            "Down" => (self.conversations.at + 1).min(last),
            "PageDown" => (self.conversations.at + 10).min(last),
            "PageUp" => self.conversations.at.saturating_sub(10),
            "Enter" if self.choice(runtimes).is_some_and(|choice| choice.kind == AgentChoiceKind::Installed) => {
                return FormOutcome::Wake;
            }
            "Enter" => {
                let visible = self.conversations.visible();
                let Some(past) = visible.get(self.conversations.at) else { return FormOutcome::Nothing };
                return past.session.clone().map_or(FormOutcome::Start, FormOutcome::Open);
            }
            "M-Enter" | "C-j" | "S-Enter" => return FormOutcome::Nothing,
            _ => {
                input::edit(&mut self.conversations.filter, key);
                0
            }
        };
        FormOutcome::Nothing
    }

    /// Pastes text: a one-line field joins its lines.
    pub(crate) fn paste(&mut self, text: &str, now: i64) {
        if self.start.is_some() {
            return;
        }
        let single = text.replace('\n', " ");
        match self.focus {
            FormField::Prompt => {
                self.prompt.insert_str(text);
                self.files.follow(&self.prompt, now);
            }
            FormField::Branch | FormField::Base | FormField::Title | FormField::Command => {
                if let Some(line) = self.line() {
                    line.insert_str(single.trim());
                }
            }
            FormField::Folder => {
                self.folder.text.insert_str(single.trim());
                self.folder_changed(now + FOLDER_PAUSE);
            }
            FormField::Earlier => {
                self.conversations.filter.insert_str(single);
                self.conversations.at = 0;
            }
            FormField::Mode | FormField::Model => drop(self.setting().filter.insert_str(single)),
            FormField::Agent | FormField::Conversation | FormField::Protocol => {}
        }
    }

    /// Handles a click: it focuses a field, or chooses a row of its list.
    pub(crate) fn click(&mut self, hit: FormHit, now: i64, runtimes: &[RuntimeItem]) -> FormOutcome {
        if self.start.is_some() {
            return FormOutcome::Nothing;
        }
        match hit {
            FormHit::Field(FormField::Conversation) if self.focus == FormField::Conversation => {
                self.earlier = !self.earlier
            }
            FormHit::Field(to) => self.focus_on(to),
            FormHit::Row(FormField::Agent, at) => {
                self.focus_on(FormField::Agent);
                if let Some(one) = self.agents(runtimes).get(at) {
                    self.problem = None;
                    self.agent.chosen.clone_from(&one.name);
                }
            }
            FormHit::Row(FormField::Folder, at) => self.take_folder(at, now),
            FormHit::Row(FormField::Earlier, at) => {
                let again = self.conversations.at == at && self.focus == FormField::Earlier;
                (self.focus, self.conversations.at) = (FormField::Earlier, at);
                if again && let Some(past) = self.conversations.visible().get(at) {
                    return past.session.clone().map_or(FormOutcome::Start, FormOutcome::Open);
                }
            }
            FormHit::Row(FormField::Mode | FormField::Model, at) => {
                let setting = self.setting();
                if let Some(one) = setting.visible().get(at) {
                    setting.at = *one;
                }
            }
            FormHit::Row(FormField::Prompt, at) if self.files.lines() > 0 => {
                self.files.take(at, &mut self.prompt);
            }
            FormHit::Row(..) => {}
        }
        FormOutcome::Nothing
    }
}
