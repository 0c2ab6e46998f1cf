//! The agents that plexus knows how to start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use crate::model::{Connect, RestartPolicy, RuntimeId, RuntimeSpec};

/// An agent that plexus knows how to start.
#[derive(Debug)]
pub struct Preset {
    /// Its name, which is also the runtime's unless another is given.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// The dialect it speaks when started so.
    pub dialect: &'static str,
    /// The program.
    pub program: &'static str,
    /// Its arguments.
    pub args: &'static [&'static str],
    /// How to get it.
    pub install: &'static str,
    /// Variables passed on from the gateway's own environment; `NAME*` is a whole family.
    pub pass_env: &'static [&'static str],
    /// Variables set.
    pub env: &'static [(&'static str, &'static str)],
    /// ACP authentication methods: the first whose variable is set is used without asking.
    pub auth: &'static [(&'static str, &'static str)],
    /// `_meta` for every ACP `session/new`, JSON.
    pub session_meta: Option<&'static str>,
}

/// The program that is plexus itself.
const ITSELF: &str = "plexus";

const PRESETS: &[Preset] = &[
    Preset {
        name: "demo",
        about: "a scripted agent of our own, for trying things out",
        dialect: "acp",
        program: ITSELF,
        args: &["agent", "demo"],
        install: "it comes with plexus",
        pass_env: &[],
        env: &[],
        auth: &[],
        session_meta: None,
    },
    Preset {
        name: "gemini",
        about: "Gemini CLI",
        dialect: "acp",
        program: "gemini",
        args: &["--acp"],
        install: "npm install -g @google/gemini-cli",
        pass_env: &["GEMINI_*", "GOOGLE_*"],
        // Without it the CLI starts itself a second time to have more memory.
        env: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
        auth: &[("GEMINI_API_KEY", "gemini-api-key")],
        session_meta: None,
    },
    Preset {
        name: "opencode",
        about: "OpenCode",
        dialect: "acp",
        program: "opencode",
        args: &["acp"],
        install: "npm install -g opencode-ai",
        pass_env: &["OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_*", "OPENROUTER_*", "GROQ_*", "XAI_*"],
        env: &[],
        auth: &[],
        session_meta: None,
    },
    Preset {
        name: "codex",
        about: "Codex, through codex-acp",
        dialect: "acp",
        program: "codex-acp",
        args: &[],
        install: "npm install -g @zed-industries/codex-acp",
        pass_env: &["OPENAI_*", "CODEX_*"],
        env: &[],
        auth: &[("CODEX_API_KEY", "codex-api-key"), ("OPENAI_API_KEY", "openai-api-key")],
        session_meta: None,
    },
    Preset {
        name: "claude",
        about: "Claude Code, through claude-agent-acp",
        dialect: "acp",
        program: "claude-agent-acp",
        args: &[],
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
        pass_env: &["ANTHROPIC_*", "CLAUDE_*", "AWS_*", "DISABLE_*"],
        env: &[],
        auth: &[],
        // Without it the adapter refuses to run as root, and elsewhere offers a mode that asks nobody.
        session_meta: Some(r#"{"claudeCode":{"options":{"allowDangerouslySkipPermissions":false}}}"#),
    },
    Preset {
        name: "codelia",
        about: "Codelia, over the UI protocol",
        dialect: "codelia",
        program: "codelia-runtime",
        args: &[],
        install: "see Codelia's own documentation, or set CODELIA_RUNTIME_CMD to the command that starts its runtime",
        pass_env: &["CODELIA_*", "ANTHROPIC_*", "OPENAI_*", "OPENROUTER_*"],
        env: &[],
        auth: &[],
        session_meta: None,
    },
];

/// No preset is called so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no preset is called {name:?}; known: {known}")]
pub struct UnknownPreset {
    name: String,
    known: String,
}

/// Every preset.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// How to get the program with this name, if a preset knows.
pub(super) fn hint(program: &str) -> Option<&'static str> {
    PRESETS.iter().find(|preset| preset.program == program).map(|preset| preset.install)
}

/// The runtime that a preset stands for, in the current folder. `exe` is the plexus program itself, `env` looks up the
/// gateway's own environment.
///
/// # Errors
/// [`UnknownPreset`] names those that are known.
pub fn preset(name: &str, exe: &Path, env: impl Fn(&str) -> Option<String>) -> Result<RuntimeSpec, UnknownPreset> {
    let known = PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| UnknownPreset {
        name: name.into(),
        known: PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", "),
    })?;
    let program = if known.program == ITSELF { exe.display().to_string() } else { known.program.into() };
    let mut command = vec![program];
    command.extend(known.args.iter().map(ToString::to_string));
    if known.name == "codelia" {
        let own = env("CODELIA_RUNTIME_CMD").map(|line| line.split_whitespace().map(str::to_owned).collect());
        command = own.filter(|words: &Vec<String>| !words.is_empty()).unwrap_or(command);
    }
    let given = |(variable, _): &&(&str, &str)| env(variable).is_some_and(|value| !value.is_empty());
    let env_set = known.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Ok(RuntimeSpec {
        id: RuntimeId::trusted(known.name),
        dialect: known.dialect.into(),
        connect: Connect::Command(command),
        cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        env: env_set.collect::<BTreeMap<_, _>>(),
        pass_env: known.pass_env.iter().map(ToString::to_string).collect(),
        restart: RestartPolicy::Never,
        auth_method: known.auth.iter().find(given).map(|(_, method)| (*method).to_owned()),
        session_meta: known.session_meta.and_then(|meta| RawValue::from_string(meta.into()).ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_environment_chooses_the_way_to_sign_in() {
        let exe = Path::new("/opt/plexus");
        let with_key = |name: &str| (name == "GEMINI_API_KEY").then(|| "k".to_owned());
        assert_eq!(preset("gemini", exe, with_key).unwrap().auth_method.as_deref(), Some("gemini-api-key"));
        assert_eq!(preset("gemini", exe, |_| None).unwrap().auth_method, None);
        let demo = preset("demo", exe, |_| None).unwrap();
        assert_eq!(demo.connect, Connect::Command(vec!["/opt/plexus".into(), "agent".into(), "demo".into()]));
        assert!(preset("gemni", exe, |_| None).unwrap_err().to_string().contains("gemini"));
    }

    #[test]
    fn every_preset_speaks_a_dialect_that_there_is() {
        for known in presets() {
            assert!(crate::dialects::find(known.dialect).is_some(), "{}", known.name);
            let spec = preset(known.name, Path::new("/x"), |_| None).unwrap();
            assert_eq!(spec.session_meta.is_some(), known.session_meta.is_some(), "its _meta is JSON");
        }
    }
}
