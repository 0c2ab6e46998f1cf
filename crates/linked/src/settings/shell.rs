//! A function in a shell's startup file that starts an agent in a shared terminal: `plexus link --term gemini`.

use crate::settings::target_state::TargetState;

/// A shell with a startup file that Plexus edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// Bash: `~/.bashrc`.
    Bash,
    /// Z shell: `.zshrc`.
    Zsh,
    /// fish: `config.fish`.
    Fish,
}

impl Shell {
    /// Every shell.
    pub const ALL: [Self; 3] = [Self::Bash, Self::Zsh, Self::Fish];

    /// Returns the name, which is that of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }

    /// Returns the shell with this program.
    pub fn from_program(program: &str) -> Option<Self> {
        let name = program.rsplit('/').next().unwrap_or(program);
        Self::ALL.into_iter().find(|shell| shell.name() == name)
    }
}

/// The function of an agent in a shell. It is between two comment lines, by which it is recognized.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShellFunction {
    /// The name of the function, which is that of the program it starts.
    pub(crate) name: &'static str,
    /// The command that starts the agent in a terminal, after `plexus term --`.
    pub(crate) command: &'static [&'static str],
    pub(crate) shell: Shell,
}

/// The note that linking ended the last line of a file.
const ENDED: &str = "newline";

impl ShellFunction {
    fn begin(&self) -> String {
        format!("# >>> plexus link --term {} >>>\n", self.name)
    }

    fn end(&self) -> String {
        format!("# <<< plexus link --term {} <<<\n", self.name)
    }

    /// Returns the function for this program, whose path has no character that a shell expands within quotes.
    fn text(&self, program: &str) -> String {
        let Self { name, command, shell } = self;
        let arguments: String = command
            .iter()
            .map(|word| if *word == "plexus" { format!(" '{program}'") } else { format!(" {word}") })
            .collect();
        // Scripts, pipes, and commands in a shared terminal get the program itself; so does a machine without Plexus.
        let function = match shell {
            Shell::Bash | Shell::Zsh => format!(
                "function {name} {{\n  if [ -t 0 ] && [ -t 1 ] && [ -z \"$PLEXUS_TERMINAL\" ] && [ -x '{program}' ]; then\n    \
                 '{program}' term --{arguments} \"$@\"\n  else\n    command {name} \"$@\"\n  fi\n}}\n"
            ),
            Shell::Fish => format!(
                "function {name}\n    if test -t 0; and test -t 1; and test -z \"$PLEXUS_TERMINAL\"; and test -x '{program}'\n        \
                 '{program}' term --{arguments} $argv\n    else\n        command {name} $argv\n    end\nend\n"
            ),
        };
        format!("{}{function}{}", self.begin(), self.end())
    }

    /// Returns the range of Plexus's entry in a text. Without its last line no part is known to be Plexus's.
    fn find(&self, text: &str) -> Option<std::ops::Range<usize>> {
        let begin = self.begin();
        let from = match text.starts_with(&begin) {
            true => 0,
            false => text.find(&format!("\n{begin}"))? + 1,
        };
        let end = self.end();
        let length = match text[from..].find(&format!("\n{end}")) {
            Some(at) => at + 1 + end.len(),
            None => {
                text[from..].strip_suffix(end.trim_end()).filter(|rest| rest.ends_with('\n'))?.len() + end.len() - 1
            }
        };
        Some(from..from + length)
    }

    pub(crate) fn state(&self, text: &str, program: &str) -> TargetState {
        match self.find(text) {
            None => TargetState::Absent,
            Some(at) if text[at.clone()] == self.text(program) => TargetState::Current,
            Some(_) => TargetState::Outdated("its function is of another program or version, or was edited".into()),
        }
    }

    /// Returns the text with the function at its end, and a note of the changes that this required.
    pub(crate) fn add(&self, text: &str, program: &str) -> (String, Vec<String>) {
        let ends = text.is_empty() || text.ends_with('\n');
        let made = if ends { Vec::new() } else { vec![ENDED.to_owned()] };
        let between = if ends { "" } else { "\n" };
        (format!("{text}{between}{}", self.text(program)), made)
    }

    /// Returns the text without the function.
    pub(crate) fn take_out(&self, text: &str, made: Option<&[String]>) -> String {
        let Some(at) = self.find(text) else { return text.to_owned() };
        let (before, after) = (&text[..at.start], &text[at.end..]);
        let ended = made.is_some_and(|made| made.iter().any(|one| one == ENDED));
        // Text of the user behind it begins a line of its own.
        match before.strip_suffix('\n').filter(|_| ended && after.is_empty()) {
            Some(before) => before.to_owned(),
            None => format!("{before}{after}"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::settings::agents::LINKED_AGENTS;
    use crate::settings::shell_links::{shell_link, shell_links};
    use crate::settings::target::TargetKind;
    use proptest::prelude::*;

    const PROGRAM: &str = "/opt/my plexus/plexus";

    fn function(shell: Shell) -> ShellFunction {
        match &shell_link("gemini", shell).unwrap().targets[0].kind {
            TargetKind::Function(function) => *function,
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn agents_start_in_a_shared_terminal_from_every_shell() {
        for agent in LINKED_AGENTS {
            for shell in Shell::ALL {
                let link = shell_link(agent.name, shell).unwrap();
                assert_eq!((link.program, link.arguments), (agent.program, format!("--term {}", agent.name).as_str()));
            }
        }
        assert_eq!(shell_links(None).count(), LINKED_AGENTS.len() * Shell::ALL.len());
        assert_eq!(Shell::from_program("/usr/bin/zsh"), Some(Shell::Zsh));
        assert_eq!(Shell::from_program("/bin/dash"), None);
    }

    #[test]
    fn function_is_found_current_outdated_and_absent() {
        for shell in Shell::ALL {
            let function = function(shell);
            let (text, _) = function.add("alias x=y\n", PROGRAM);
            assert_eq!(function.state(&text, PROGRAM), TargetState::Current);
            assert!(matches!(function.state(&text, "/other/plexus"), TargetState::Outdated(_)));
            assert_eq!(function.state("alias x=y\n", PROGRAM), TargetState::Absent);
            // A person deleted its last line: what is ours is not known any more.
            let half = text.replace(&function.end(), "");
            assert_eq!(function.state(&half, PROGRAM), TargetState::Absent);
            // Their editor takes the file's last line end away.
            assert_eq!(function.take_out(text.trim_end(), None), "alias x=y\n");
        }
    }

    proptest! {
        #[test]
        fn function_is_taken_out_without_a_trace(text in "(.|\n){0,200}", more in "(x|\n){0,20}") {
            for shell in Shell::ALL {
                let function = function(shell);
                prop_assume!(function.find(&text).is_none());
                let (linked, made) = function.add(&text, PROGRAM);
                prop_assert_eq!(function.take_out(&linked, Some(&made)), text.clone());
                // With something behind it, and without a record.
                let left = function.take_out(&format!("{linked}{more}"), None);
                prop_assert!(left.starts_with(&text) && left.ends_with(&more));
                prop_assert!(left.len() <= text.len() + 1 + more.len());
            }
        }
    }
}
