//! Versions of an agent that are linked.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

/// A version as agents print it: `2.1.330`, `0.61.0-nightly.20260101`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentVersion {
    /// Major, minor and patch.
    numbers: [u32; 3],
    /// `true` for a version before the release of these numbers.
    before_release: bool,
}

impl AgentVersion {
    /// Makes a released version.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { numbers: [major, minor, patch], before_release: false }
    }

    /// Returns the first version in a line that a program printed: `2.1.330 (Claude Code)`, `codex-cli 0.169.0`.
    pub fn find(line: &str) -> Option<Self> {
        line.split(|one: char| one.is_whitespace() || matches!(one, '(' | ')' | ',')).find_map(Self::parse)
    }

    fn parse(word: &str) -> Option<Self> {
        let word = word.trim_start_matches('v').trim_end_matches('.');
        let end = word.find(['-', '+']).unwrap_or(word.len());
        let mut parts = word[..end].split('.');
        let mut numbers = [0; 3];
        for number in &mut numbers {
            let part = parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?;
            *number = part.parse().ok()?;
        }
        (parts.next().is_none()).then(|| Self { numbers, before_release: word[end..].starts_with('-') })
    }
}

impl Ord for AgentVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then(other.before_release.cmp(&self.before_release))
    }
}

impl PartialOrd for AgentVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for AgentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}{}", if self.before_release { "-pre" } else { "" })
    }
}

/// The versions of an agent that are linked. The check cannot be skipped: with other versions linking could break the terminal.
#[derive(Clone, Copy, Debug)]
pub struct VersionGate {
    /// The oldest version.
    pub min: AgentVersion,
    /// The reason why older versions are not linked.
    pub reason: &'static str,
    /// The first newer version that is not linked any more, with the reason.
    pub below: Option<(AgentVersion, &'static str)>,
}

/// The reason why the version of a program is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownVersion {
    /// The program had not ended after this time.
    #[error("it took longer than {} s", .0.as_secs())]
    Slow(Duration),
    /// Any other reason.
    #[error("{0}")]
    Unreported(String),
}

/// The reason why a version is not linked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The program did not print a version.
    #[error(
        "its version is not known ({reason}), and only {min} and newer are linked; run `{program} --version` to see why"
    )]
    Unknown {
        /// The program.
        program: &'static str,
        /// The text that was read instead.
        reason: String,
        /// The oldest version that is linked.
        min: AgentVersion,
    },
    /// The program took too long to print a version.
    #[error(
        "`{program} --version` took longer than {} s, and only {min} and newer are linked; the machine may be busy: link it again",
        .time.as_secs()
    )]
    Slow {
        /// The program.
        program: &'static str,
        /// The time after which the program had not answered.
        time: Duration,
        /// The oldest version that is linked.
        min: AgentVersion,
    },
    /// The version is too old.
    #[error("version {found} is too old: {reason}; update it to {min} or newer")]
    TooOld {
        /// The installed version.
        found: AgentVersion,
        /// The oldest version that is linked.
        min: AgentVersion,
        /// The reason.
        reason: &'static str,
    },
    /// The version is too new.
    #[error("version {found} is too new: {reason}; use a version below {below}")]
    TooNew {
        /// The installed version.
        found: AgentVersion,
        /// The first version that is not linked.
        below: AgentVersion,
        /// The reason.
        reason: &'static str,
    },
}

impl VersionGate {
    /// Checks that the version that `program` printed is linked.
    ///
    /// # Errors
    /// Returns the [`GateError`] if it is not.
    pub fn admits(
        &self,
        program: &'static str,
        printed: Result<&str, &UnknownVersion>,
    ) -> Result<AgentVersion, GateError> {
        let unknown = |reason: String| GateError::Unknown { program, reason, min: self.min };
        let line = printed.map_err(|reason| match reason {
            UnknownVersion::Slow(time) => GateError::Slow { program, time: *time, min: self.min },
            UnknownVersion::Unreported(reason) => unknown(reason.clone()),
        })?;
        let found = AgentVersion::find(line).ok_or_else(|| unknown(format!("it prints {line:?}")))?;
        if found < self.min {
            return Err(GateError::TooOld { found, min: self.min, reason: self.reason });
        }
        match self.below {
            Some((below, reason)) if found >= below => Err(GateError::TooNew { found, below, reason }),
            _ => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_agents_print() {
        let new = AgentVersion::new;
        for (line, version) in [
            ("2.1.330 (Claude Code)", Some(new(2, 1, 330))),
            ("0.61.0", Some(new(0, 61, 0))),
            ("GitHub Copilot CLI 1.0.102.", Some(new(1, 0, 102))),
            ("codex-cli 0.169.0", Some(new(0, 169, 0))),
            ("v1.18.33", Some(new(1, 18, 33))),
            ("0.26.0-nightly.20260101", Some(AgentVersion { numbers: [0, 26, 0], before_release: true })),
            ("1.2.3+build", Some(new(1, 2, 3))),
            ("", None),
            ("unknown", None),
            ("1.2", None),
            ("1.2.3.4", None),
            ("99999999999.0.0", None),
            ("-1.0.0", None),
        ] {
            assert_eq!(AgentVersion::find(line), version, "{line}");
        }
    }

    #[test]
    fn gate_admits_from_the_least_to_below_the_limit() {
        let gate = VersionGate {
            min: AgentVersion::new(0, 26, 0),
            reason: "hooks are missing",
            below: Some((AgentVersion::new(2, 0, 0), "it has other plugins")),
        };
        let admits = |line| gate.admits("agent", Ok(line)).map_err(|reason| reason.to_string());
        assert_eq!(admits("0.26.0"), Ok(AgentVersion::new(0, 26, 0)));
        assert_eq!(admits("1.99.0"), Ok(AgentVersion::new(1, 99, 0)));
        let old = "version 0.25.9 is too old: hooks are missing; update it to 0.26.0 or newer";
        assert_eq!(admits("0.25.9"), Err(old.into()));
        assert!(admits("0.26.0-preview.1").is_err(), "what came before the release may lack it");
        let new = "version 2.0.0 is too new: it has other plugins; use a version below 2.0.0";
        assert_eq!(admits("2.0.0"), Err(new.into()));
        assert!(admits("no version").unwrap_err().contains("run `agent --version`"));
        let refused = |reason| gate.admits("agent", Err(&reason)).unwrap_err().to_string();
        assert!(refused(UnknownVersion::Unreported("it fails".into())).contains("it fails"));
        let words = refused(UnknownVersion::Slow(Duration::from_secs(120)));
        assert!(
            words.starts_with("`agent --version` took longer than 120 s") && !words.contains("to see why"),
            "{words}"
        );
    }
}
