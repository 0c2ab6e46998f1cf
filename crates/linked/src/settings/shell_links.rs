//! The functions of agents in the startup files of shells.

use crate::settings::agents::{LinkedAgent, Target, TargetLocation};
use crate::settings::shell::{Shell, ShellFunction};
use crate::settings::target::TargetKind;

const fn startup_file(shell: Shell) -> TargetLocation {
    match shell {
        Shell::Bash => TargetLocation { variable: "", below_variable: "", below_home: "", file: ".bashrc" },
        Shell::Zsh => TargetLocation { variable: "ZDOTDIR", below_variable: "", below_home: "", file: ".zshrc" },
        Shell::Fish => TargetLocation {
            variable: "XDG_CONFIG_HOME",
            below_variable: "fish",
            below_home: ".config/fish",
            file: "config.fish",
        },
    }
}

macro_rules! shell_links {
    ($($name:literal, $title:literal, $command:expr;)*) => {
        &[$(
            shell_links!(one $name, $title, $command, Bash, "bash"),
            shell_links!(one $name, $title, $command, Zsh, "zsh"),
            shell_links!(one $name, $title, $command, Fish, "fish"),
        )*]
    };
    (one $name:literal, $title:literal, $command:expr, $shell:ident, $word:literal) => {
        LinkedAgent {
            name: concat!($name, "-", $word),
            arguments: concat!("--term ", $name),
            title: concat!($title, " in a shared terminal, from ", $word),
            program: $name,
            gate: None,
            visible_part: "the live screen on the page and on the phone, beside the session; and the terminal outlives its window",
            no_edit_reason: None,
            targets: &[Target {
                location: startup_file(Shell::$shell),
                kind: TargetKind::Function(ShellFunction { name: $name, command: $command, shell: Shell::$shell }),
            }],
        }
    };
}

/// The links of every agent in every shell.
const SHELL_LINKS: &[LinkedAgent] = shell_links! {
    "claude", "Claude Code", &["claude"];
    "gemini", "Gemini CLI", &["gemini"];
    "opencode", "OpenCode", &["opencode"];
    "copilot", "GitHub Copilot CLI", &["copilot"];
    "codex", "Codex", &["codex"];
    "qwen", "Qwen Code", &["plexus", "wrap", "qwen"];
};

/// Returns the link that starts an agent in a shared terminal, by its name in [`LINKED_AGENTS`](crate::settings::LINKED_AGENTS) and the shell
/// that it is typed in.
pub fn shell_link(agent: &str, shell: Shell) -> Option<&'static LinkedAgent> {
    SHELL_LINKS.iter().find(|link| link.program == agent && link.name.ends_with(shell.name()))
}

/// Returns the links that start an agent, or every agent if none is named, in a shared terminal, in every shell.
pub fn shell_links(agent: Option<&str>) -> impl Iterator<Item = &'static LinkedAgent> {
    SHELL_LINKS.iter().filter(move |link| agent.is_none_or(|agent| link.program == agent))
}
