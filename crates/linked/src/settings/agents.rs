//! A table of the agents that are linked: their programs, versions, files and entries.

use std::path::{Path, PathBuf};

use crate::settings::document::Syntax;
use crate::settings::error::LinkError;
use crate::settings::hooks::{HookLine, HookSettings};
use crate::settings::switch::SwitchSettings;
use crate::settings::target::{FileSettings, TargetKind};
use crate::settings::version::{AgentVersion, VersionGate};

/// An agent whose own terminal can appear in Plexus.
#[derive(Debug)]
pub struct LinkedAgent {
    /// The name on the command line.
    pub name: &'static str,
    /// The arguments of `plexus link` that link it.
    pub arguments: &'static str,
    /// The name that is shown.
    pub title: &'static str,
    /// The program.
    pub program: &'static str,
    /// The versions that are linked; `None` if nothing is edited.
    pub gate: Option<VersionGate>,
    /// The part of a session in its terminal that Plexus shows.
    pub visible_part: &'static str,
    /// The reason why nothing is edited, and the alternative.
    pub no_edit_reason: Option<&'static str>,
    /// The files.
    pub(crate) targets: &'static [Target],
}

/// A file of an agent.
#[derive(Debug)]
pub(crate) struct Target {
    /// The place of the file.
    pub(crate) location: TargetLocation,
    /// The content to add.
    pub(crate) kind: TargetKind,
}

/// The place where an agent looks for a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetLocation {
    /// The variable that names a folder.
    pub(crate) variable: &'static str,
    /// The folder below the one that the variable names; empty for that folder itself.
    pub(crate) below_variable: &'static str,
    /// The folder below the home folder, if the variable is not set.
    pub(crate) below_home: &'static str,
    /// The file below that folder.
    pub(crate) file: &'static str,
}

/// A settings folder, and the folder that a variable named for it.
#[derive(Clone, Debug)]
pub(crate) struct TargetFolder {
    pub(crate) folder: PathBuf,
    pub(crate) named: Option<PathBuf>,
}

impl TargetLocation {
    /// Returns the agent's settings folder.
    pub(crate) fn folder(
        &self,
        home: &Path,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<TargetFolder, LinkError> {
        match variable(self.variable).filter(|value| !value.is_empty()) {
            None => Ok(TargetFolder { folder: home.join(self.below_home), named: None }),
            Some(value) if Path::new(&value).is_absolute() => {
                let named = PathBuf::from(value);
                Ok(TargetFolder { folder: named.join(self.below_variable), named: Some(named) })
            }
            Some(value) => Err(LinkError::NotAbsolute { variable: self.variable, value }),
        }
    }
}

/// Every agent, in the order of display.
pub const LINKED_AGENTS: &[LinkedAgent] = &[
    LinkedAgent {
        name: "claude",
        arguments: "claude",
        title: "Claude Code",
        program: "claude",
        gate: Some(VersionGate {
            min: AgentVersion::new(2, 1, 221),
            reason: "before 2.1.221 a terminal shows no dialog while Plexus is asked",
            below: None,
        }),
        visible_part: "text line by line, tools, questions beside its own dialog (the first answer wins), and prompts from elsewhere. \
               In auto mode, its default, it asks little: /permissions and shift+tab change that",
        no_edit_reason: None,
        targets: &[Target { location: CLAUDE_LOCATION, kind: TargetKind::Hooks(CLAUDE) }],
    },
    LinkedAgent {
        name: "gemini",
        arguments: "gemini",
        title: "Gemini CLI",
        program: "gemini",
        gate: Some(VersionGate {
            min: AgentVersion::new(0, 26, 0),
            reason: "hooks are on without a switch since 0.26.0",
            below: None,
        }),
        visible_part: "text by message, tools, and what it asks. Started by `plexus term -- gemini`, it can be answered and prompted from \
               elsewhere. Only in folders that Gemini trusts: it runs no hooks elsewhere",
        no_edit_reason: None,
        targets: &[Target { location: GEMINI_LOCATION, kind: TargetKind::Hooks(GEMINI) }],
    },
    LinkedAgent {
        name: "opencode",
        arguments: "opencode",
        title: "OpenCode",
        program: "opencode",
        gate: Some(VersionGate {
            min: AgentVersion::new(1, 18, 33),
            reason: "the plugin was not tried with versions before 1.18.33",
            below: Some((AgentVersion::new(2, 0, 0), "OpenCode 2 has another interface for plugins")),
        }),
        visible_part: "text as it is written, tools, questions beside its own dialog (the first answer wins), and prompts from elsewhere",
        no_edit_reason: None,
        targets: &[Target {
            location: TargetLocation {
                variable: "XDG_CONFIG_HOME",
                below_variable: "opencode",
                below_home: ".config/opencode",
                file: "plugins/plexus.js",
            },
            kind: TargetKind::File(FileSettings {
                content: include_str!("../../../../clients/opencode-plugin/plexus.js"),
            }),
        }],
    },
    LinkedAgent {
        name: "copilot",
        arguments: "copilot",
        title: "GitHub Copilot CLI",
        program: "copilot",
        gate: Some(VersionGate {
            min: AgentVersion::new(1, 0, 102),
            reason: "the extension was not tried with versions before 1.0.102",
            below: None,
        }),
        visible_part: "text as it is written, tools, questions beside its own dialog (the first answer wins), and prompts from elsewhere. \
               Copilot asks once in each folder whether the extension may handle permission requests",
        no_edit_reason: None,
        targets: &[
            Target {
                location: TargetLocation { file: "extensions/plexus/extension.mjs", ..COPILOT_LOCATION },
                kind: TargetKind::File(FileSettings {
                    content: include_str!("../../../../clients/copilot-extension/extension.mjs"),
                }),
            },
            // Without this setting no extension is loaded.
            Target {
                location: COPILOT_LOCATION,
                kind: TargetKind::Switch(SwitchSettings { key: "experimental", syntax: COPILOT_SYNTAX }),
            },
        ],
    },
    LinkedAgent {
        name: "codex",
        arguments: "codex",
        title: "Codex",
        program: "codex",
        gate: None,
        visible_part: "text as it is written, tools, questions beside its own dialog (the first answer wins), and prompts from elsewhere",
        no_edit_reason: Some("nothing is edited: a running gateway finds the socket of `codex` by itself"),
        targets: &[],
    },
    LinkedAgent {
        name: "qwen",
        arguments: "qwen",
        title: "Qwen Code",
        program: "qwen",
        gate: None,
        visible_part: "text as it is written, tools, questions beside its own dialog (the first answer wins), and prompts from elsewhere",
        no_edit_reason: Some("nothing is edited: type `plexus wrap qwen` instead of `qwen`, with the same arguments"),
        targets: &[],
    },
];

/// Returns the agent with this name.
pub fn linked_agent(name: &str) -> Option<&'static LinkedAgent> {
    LINKED_AGENTS.iter().find(|agent| agent.name == name)
}

const CLAUDE_LOCATION: TargetLocation =
    TargetLocation { variable: "CLAUDE_CONFIG_DIR", below_variable: "", below_home: ".claude", file: "settings.json" };

const GEMINI_LOCATION: TargetLocation = TargetLocation {
    variable: "GEMINI_CLI_HOME",
    below_variable: ".gemini",
    below_home: ".gemini",
    file: "settings.json",
};

const COPILOT_LOCATION: TargetLocation =
    TargetLocation { variable: "COPILOT_HOME", below_variable: "", below_home: ".copilot", file: "settings.json" };

/// The syntax that each agent's own reader accepts, tested with the real programs: Claude Code 2.1.330, Gemini CLI
/// 0.61.0, Copilot 1.0.102.
const CLAUDE_SYNTAX: Syntax = Syntax { comments: false, trailing_commas: false, bom: true };
const GEMINI_SYNTAX: Syntax = Syntax { comments: true, trailing_commas: false, bom: false };
const COPILOT_SYNTAX: Syntax = Syntax { comments: true, trailing_commas: true, bom: true };

/// Time that Claude Code lets a question wait for an answer, in seconds; afterwards only its dialog can answer.
const CLAUDE_ANSWER: u32 = 86_400;
/// Time that Claude Code waits until a line of text is accepted, in seconds; afterwards the line is missing.
const CLAUDE_TEXT: u32 = 10;
/// Time that Gemini CLI waits for a hook, in milliseconds; afterwards it continues, and the event is missing.
const GEMINI_WAIT: u32 = 5_000;

/// Makes the entry of the command that waits for a prompt from elsewhere, and wakes the idle agent with it.
const fn inbox(event: &'static str) -> HookLine {
    HookLine { arguments: "--inbox", timeout: Some(CLAUDE_ANSWER), wakes: true, ..HookLine::plain(event) }
}

const CLAUDE: HookSettings = HookSettings {
    agent: "claude",
    syntax: CLAUDE_SYNTAX,
    lines: &[
        HookLine { timeout: Some(CLAUDE_ANSWER), ..HookLine::plain("PermissionRequest") },
        HookLine { timeout: Some(CLAUDE_TEXT), ..HookLine::plain("MessageDisplay") },
        HookLine::plain("SessionStart"),
        inbox("SessionStart"),
        HookLine::plain("SessionEnd"),
        HookLine::plain("UserPromptSubmit"),
        HookLine::plain("PreToolUse"),
        HookLine::plain("PostToolUse"),
        HookLine::plain("PostToolUseFailure"),
        HookLine::plain("PermissionDenied"),
        HookLine::plain("Notification"),
        HookLine::plain("Stop"),
        // The command of the session's start has ended with the prompt that it sent.
        inbox("Stop"),
        HookLine::plain("StopFailure"),
        HookLine::plain("SubagentStart"),
        HookLine::plain("SubagentStop"),
    ],
};

/// Makes an entry of Gemini CLI, which shows the name while the command runs.
const fn gemini(event: &'static str) -> HookLine {
    HookLine { timeout: Some(GEMINI_WAIT), name: Some(GEMINI_NAME), ..HookLine::plain(event) }
}

/// The name of Plexus's hooks in Gemini CLI, by which a user can switch them off there.
pub(crate) const GEMINI_NAME: &str = "plexus";

const GEMINI: HookSettings = HookSettings {
    agent: "gemini",
    syntax: GEMINI_SYNTAX,
    lines: &[
        gemini("SessionStart"),
        gemini("SessionEnd"),
        gemini("BeforeAgent"),
        gemini("AfterAgent"),
        gemini("BeforeTool"),
        gemini("AfterTool"),
        gemini("Notification"),
    ],
};
