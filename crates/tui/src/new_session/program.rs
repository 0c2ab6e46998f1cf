//! An agent that is not running: a program that the user names, or one that is started to list its conversations.

use std::path::PathBuf;

use plexus_protocol::RuntimeState;
use plexus_protocol::api::runtimes::StartRuntime;

use super::super::sanitize;
use super::super::view_model::RuntimeItem;
use super::{AgentChoiceKind, NewSessionForm, SessionStart, line_of};

/// The protocols that a program can speak on its standard input and output: the identifier and the name of each.
pub(crate) const PROTOCOLS: &[(&str, &str)] =
    &[("acp", "ACP"), ("codelia", "Codelia UI protocol"), ("codex", "Codex app-server")];
/// Maximum time until an agent is ready, in milliseconds; the gateway gives up earlier.
const WAKE_MAX: i64 = 180_000;

/// The next step for an agent that is started for its conversations.
#[derive(Debug, PartialEq)]
pub(crate) enum WakeStep {
    /// The agent is not ready yet.
    Wait,
    /// The agent is ready: its conversations are listed.
    Ready,
    /// The agent did not become ready: this runtime is removed again.
    Remove(String),
}

/// Splits a command line into words: quotes and backslashes as in a shell, and no other syntax of a shell. The web page splits by the same
/// rules.
pub(super) fn split(line: &str) -> Vec<String> {
    let (mut text, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' if quote != Some('\'') && rest.peek().is_some() => {
                word.get_or_insert_default().extend(rest.next());
            }
            c if quote == Some(c) => quote = None,
            c if quote.is_some() => word.get_or_insert_default().push(c),
            '"' | '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            c if c.is_whitespace() => text.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    text.extend(word);
    text
}

impl NewSessionForm {
    /// The request that starts the named program, and the text while it starts.
    pub(super) fn program_start(&self) -> Result<(StartRuntime, String), String> {
        let text = split(&line_of(&self.program.command));
        let Some(program) = text.first().filter(|program| !program.is_empty()) else {
            return Err("type the command line of the program, such as my-agent --acp".to_owned());
        };
        let name = sanitize::line(program, 40);
        let (protocol, _) = PROTOCOLS.get(self.program.protocol).or(PROTOCOLS.first()).copied().unwrap_or_default();
        let start = StartRuntime { dialect: Some(protocol.to_owned()), command: Some(text), ..StartRuntime::default() };
        Ok((start, format!("Starting {name}")))
    }

    pub(super) fn protocol_key(&mut self, name: &str, runtimes: &[RuntimeItem]) {
        let count = PROTOCOLS.len();
        match name {
            "Right" | " " | "l" => self.program.protocol = (self.program.protocol + 1) % count,
            "Left" | "h" => self.program.protocol = (self.program.protocol + count - 1) % count,
            "Up" | "k" => self.go(-1, runtimes),
            "Down" | "j" | "Enter" => self.go(1, runtimes),
            _ => {}
        }
    }

    /// Begins to start the chosen agent for its conversations; returns the number of the attempt and the request.
    pub(crate) fn begin_wake(&mut self, now: i64, runtimes: &[RuntimeItem]) -> Option<(u64, StartRuntime)> {
        let choice = self.choice(runtimes).filter(|choice| choice.kind == AgentChoiceKind::Installed)?;
        let folder = Some(self.chosen_folder()).filter(|folder| !folder.is_empty());
        let start = StartRuntime {
            preset: Some(choice.name.clone()),
            cwd: folder.map(PathBuf::from),
            ..StartRuntime::default()
        };
        let agents = self.agents(runtimes);
        self.attempts.number += 1;
        self.problem = None;
        self.start = Some(SessionStart {
            attempt: self.attempts.number,
            since: now,
            text: format!("Starting {}", sanitize::line(&choice.name, 40)),
            session: None,
            settings: Vec::new(),
            agents,
            wakes: true,
            runtime: None,
        });
        Some((self.attempts.number, start))
    }

    /// Checks the agent that is started for its conversations; returns the next step.
    pub(crate) fn watch_wake(&mut self, now: i64, runtimes: &[RuntimeItem]) -> WakeStep {
        let Some(start) = self.start.as_ref().filter(|start| start.wakes) else { return WakeStep::Wait };
        let late = now - start.since > WAKE_MAX;
        let Some(id) = start.runtime.clone() else {
            if late {
                self.fail("The gateway did not answer: try again".to_owned(), "");
            }
            return WakeStep::Wait;
        };
        let name = sanitize::line(&id, 40);
        match runtimes.iter().find(|one| one.id == id) {
            Some(one) if one.state == RuntimeState::Ready => {
                let lists = one.lists;
                self.start = None;
                self.choose(&id, lists);
                if !lists {
                    let text = format!("{name} is running, but does not list its earlier conversations");
                    self.fail(text, "");
                }
                WakeStep::Ready
            }
            Some(one) if one.state == RuntimeState::Exited => {
                let stderr = one.stderr.clone();
                self.fail(format!("{name} did not start: {}", sanitize::line(&one.problem, 300)), &stderr);
                WakeStep::Remove(id)
            }
            _ if late => {
                self.fail(format!("{name} was not ready in time, and was stopped again"), "");
                WakeStep::Remove(id)
            }
            _ => WakeStep::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_split_by_quotes_and_backslashes_alone() {
        for (line, arguments) in [
            ("", vec![]),
            ("  my-agent  --acp ", vec!["my-agent", "--acp"]),
            (r#"a "b c" 'd "e' f\ g"#, vec!["a", "b c", "d \"e", "f g"]),
            (r#"x '' "" y"#, vec!["x", "", "", "y"]),
            (r"a\", vec![r"a\"]),
            ("$HOME `x` ; rm", vec!["$HOME", "`x`", ";", "rm"]),
            ("'open", vec!["open"]),
        ] {
            assert_eq!(split(line), arguments, "{line:?}");
        }
    }
}
