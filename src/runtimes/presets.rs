//! Commands that start common agents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use plexus_protocol::{Connect, RuntimeId, RuntimeSpec};

/// An agent that the gateway knows how to start.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name: `plexus run NAME`.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The agent's dialect.
    pub dialect: &'static str,
    /// The program; for `demo` this is the gateway's own and always available.
    pub program: &'static str,
    /// The arguments.
    pub args: &'static [&'static str],
    /// The command that installs the program; `None` for `demo`.
    pub install: Option<&'static str>,
    /// The likely cause if the program ends before it reports a useful message.
    ended: Option<&'static str>,
    /// The arguments that print the program's version; empty if it cannot print it.
    pub version_args: &'static [&'static str],
    /// Variables that the program gets from the gateway's environment besides the usual ones. A name ending in `*` stands for all with
    /// that prefix.
    pub pass_env: &'static [&'static str],
    /// Variables set for the program.
    env: &'static [(&'static str, &'static str)],
    /// The ACP authentication method of each variable; the first variable that is set counts.
    auth: &'static [(&'static str, &'static str)],
    /// `_meta` of every new session, as JSON.
    session_meta: Option<&'static str>,
}

impl Preset {
    /// Returns the variable with the agent's credentials, of those that are set: `env` as for [`preset`].
    pub fn key_set(&self, env: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
        let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
        self.auth.iter().map(|(name, _)| *name).find(|name| set(name))
    }
}

/// The common part of the table.
const NONE: Preset = Preset {
    name: "",
    about: "",
    dialect: "acp",
    program: "",
    args: &[],
    install: None,
    ended: None,
    version_args: &["--version"],
    pass_env: &[],
    env: &[],
    auth: &[],
    session_meta: None,
};

const PRESETS: &[Preset] = &[
    Preset {
        name: "gemini",
        about: "Gemini CLI, over ACP",
        program: "gemini",
        args: &["--acp"],
        install: Some("npm install -g @google/gemini-cli"),
        pass_env: &["GEMINI_*", "GOOGLE_*"],
        // Otherwise it starts itself a second time, to get more memory.
        env: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
        auth: &[("GEMINI_API_KEY", "gemini-api-key")],
        ..NONE
    },
    Preset {
        name: "opencode",
        about: "OpenCode, over ACP",
        program: "opencode",
        args: &["acp"],
        install: Some("npm install -g opencode-ai"),
        pass_env: &[
            "OPENCODE_*",
            "ANTHROPIC_API_KEY",
            "DEEPSEEK_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "GROQ_API_KEY",
            "MISTRAL_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
            "XAI_API_KEY",
        ],
        ..NONE
    },
    Preset {
        name: "claude",
        about: "Claude Code, over ACP by claude-agent-acp",
        program: "claude-agent-acp",
        install: Some("npm install -g @agentclientprotocol/claude-agent-acp"),
        version_args: &[],
        pass_env: &["ANTHROPIC_*", "CLAUDE_*", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY"],
        // The mode that never asks is disabled; as root no session would open with it.
        session_meta: Some(r#"{"claudeCode":{"options":{"allowDangerouslySkipPermissions":false}}}"#),
        ..NONE
    },
    Preset {
        name: "codex",
        about: "Codex, over ACP by codex-acp",
        program: "codex-acp",
        install: Some("npm install -g @agentclientprotocol/codex-acp"),
        version_args: &[],
        pass_env: &["OPENAI_*", "CODEX_*"],
        // In the agent's own first mode, a model judges what needs no asking; this mode asks users.
        env: &[("INITIAL_AGENT_MODE", "workspace-write")],
        auth: &[("CODEX_API_KEY", "api-key"), ("OPENAI_API_KEY", "api-key")],
        ..NONE
    },
    Preset {
        name: "codex-app",
        about: "Codex itself, by its app-server",
        dialect: "codex",
        program: "codex",
        // Otherwise a model may answer in place of users, if Codex's own configuration enables it.
        args: &["app-server", "-c", "approvals_reviewer=\"user\""],
        install: Some("npm install -g @openai/codex"),
        pass_env: &["OPENAI_*", "CODEX_*"],
        ..NONE
    },
    Preset {
        name: "qwen",
        about: "Qwen Code, over ACP",
        program: "qwen",
        args: &["--acp"],
        install: Some("npm install -g @qwen-code/qwen-code"),
        pass_env: &[
            "QWEN_*",
            "OPENAI_*",
            "ANTHROPIC_API_KEY",
            "BAILIAN_CODING_PLAN_API_KEY",
            "DASHSCOPE_API_KEY",
            "GEMINI_API_KEY",
        ],
        auth: &[("OPENAI_API_KEY", "openai")],
        ..NONE
    },
    Preset {
        name: "goose",
        about: "Goose, over ACP (untested: as its documentation says)",
        program: "goose",
        args: &["acp"],
        install: Some("see https://block.github.io/goose, or: brew install block-goose-cli"),
        pass_env: &[
            "GOOSE_*",
            "ANTHROPIC_API_KEY",
            "DATABRICKS_*",
            "GOOGLE_API_KEY",
            "GROQ_API_KEY",
            "OLLAMA_HOST",
            "OPENAI_*",
            "OPENROUTER_API_KEY",
        ],
        ..NONE
    },
    Preset {
        name: "copilot",
        about: "GitHub Copilot CLI, over ACP",
        program: "copilot",
        args: &["--acp"],
        install: Some("npm install -g @github/copilot"),
        pass_env: &["COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"],
        ..NONE
    },
    Preset {
        name: "cursor",
        about: "Cursor CLI, over ACP (untested: as its documentation says)",
        program: "cursor-agent",
        args: &["acp"],
        install: Some("see https://cursor.com/cli"),
        pass_env: &["CURSOR_*"],
        auth: &[("CURSOR_API_KEY", "cursor_login"), ("CURSOR_AUTH_TOKEN", "cursor_login")],
        ..NONE
    },
    Preset {
        name: "kimi",
        about: "Kimi CLI 1.51.0, over ACP (1.52 is a stub without it)",
        program: "kimi",
        args: &["acp"],
        // It has no method to sign in over ACP: `kimi login` beforehand. Version 1.52.0, the last, has no ACP.
        install: Some("uv tool install --python 3.13 kimi-cli==1.51.0 (1.52 has no ACP)"),
        ended: Some(
            "kimi-cli 1.52 and later have no ACP (`kimi --version`): \
             uv tool install --force --python 3.13 kimi-cli==1.51.0",
        ),
        pass_env: &["KIMI_*"],
        ..NONE
    },
    Preset {
        name: "codelia",
        about: "Codelia, over its UI protocol; CODELIA_RUNTIME_CMD and CODELIA_RUNTIME_ARGS name its runtime",
        dialect: "codelia",
        program: "codelia-runtime",
        install: Some("set CODELIA_RUNTIME_CMD to the program that runs Codelia's runtime"),
        version_args: &[],
        pass_env: &["CODELIA_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
        ..NONE
    },
    Preset {
        name: "demo",
        about: "a scripted agent, for trying things out",
        program: "plexus",
        args: &["agent", "demo"],
        ..NONE
    },
];

/// Returns every preset, in the order of display.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// The reason why a spec cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PresetError {
    /// No preset has this name.
    #[error("no preset {0:?}: choose one of {known}, or name a program: plexus run --dialect acp -- PROGRAM ARGS", known = names())]
    Unknown(String),
    /// The value of a variable cannot be split as a shell would.
    #[error("{0} has a quote without an end: {1:?}")]
    Quotes(&'static str, String),
}

fn names() -> String {
    PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}

/// Returns the spec to start the preset `name`, named after it, in the current folder, never restarted; callers change these settings.
/// `exe` is the `plexus` program, for `demo`; `env` looks up a variable in the environment from which the runtime's is made.
///
/// # Errors
/// [`PresetError`].
pub fn preset(name: &str, exe: &Path, env: impl Fn(&str) -> Option<String>) -> Result<RuntimeSpec, PresetError> {
    let preset = PRESETS.iter().find(|preset| preset.name == name);
    let preset = preset.ok_or_else(|| PresetError::Unknown(name.to_owned()))?;
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let mut command: Vec<String> = std::iter::once(&preset.program).chain(preset.args).map(|&s| s.to_owned()).collect();
    match name {
        "demo" => command[0] = exe.to_string_lossy().into_owned(),
        "codelia" => {
            let arguments = |name| match set(name) {
                Some(text) => shell_words::split(&text).map_err(|_| PresetError::Quotes(name, text.clone())),
                None => Ok(Vec::new()),
            };
            if let Some(program) = set("CODELIA_RUNTIME_CMD") {
                command[0] = program;
            }
            command.extend(arguments("CODELIA_RUNTIME_ARGS")?);
        }
        _ => {}
    }
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    Ok(RuntimeSpec {
        env: preset.env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect::<BTreeMap<_, _>>(),
        pass_env: preset.pass_env.iter().map(|&name| name.to_owned()).collect(),
        auth_method: preset.auth.iter().find(|(name, _)| set(name).is_some()).map(|(_, method)| (*method).to_owned()),
        session_meta: preset.session_meta.and_then(|json| RawValue::from_string(json.to_owned()).ok()),
        ..RuntimeSpec::new(RuntimeId::trusted(preset.name), preset.dialect, Connect::Command(command), cwd)
    })
}

/// Returns the part of a shell's environment that a program of a preset gets, and its authentication method: `env` as for [`preset`].
pub fn keys_of(program: &str, env: impl Fn(&str) -> Option<String>) -> (Vec<String>, Option<String>) {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let preset = PRESETS.iter().find(|preset| preset.program == name && preset.install.is_some());
    let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
    preset.map_or((Vec::new(), None), |preset| {
        let method = preset.auth.iter().find(|(name, _)| set(name)).map(|(_, method)| (*method).to_owned());
        (preset.pass_env.iter().map(|&name| name.to_owned()).collect(), method)
    })
}

/// Returns the command that installs `program`, if a preset knows.
pub(super) fn install_command(program: &str) -> Option<&'static str> {
    PRESETS.iter().find(|preset| preset.program == program).and_then(|preset| preset.install)
}

/// Returns the likely cause if `program` ended before it was ready, if a preset knows.
pub(super) fn ended_early(program: &str) -> Option<&'static str> {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    PRESETS.iter().find(|preset| preset.program == name).and_then(|preset| preset.ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, env: &[(&str, &str)]) -> RuntimeSpec {
        let env: BTreeMap<_, _> = env.iter().copied().collect();
        preset(name, Path::new("/opt/plexus"), |name| env.get(name).map(|&value| value.to_owned())).unwrap()
    }

    fn command(spec: &RuntimeSpec) -> Vec<&str> {
        match &spec.connect {
            Connect::Command(argv) => argv.iter().map(String::as_str).collect(),
            Connect::Endpoint(_) => Vec::new(),
        }
    }

    #[test]
    fn presets_can_all_be_made_and_speak_known_dialects() {
        for preset in presets() {
            let spec = made(preset.name, &[]);
            assert!(crate::dialects::find(&spec.dialect).is_some(), "{}", preset.name);
            assert!(crate::check(&spec).is_ok(), "{}", preset.name);
            assert_eq!(spec.session_meta.is_some(), preset.session_meta.is_some(), "{} has bad JSON", preset.name);
            assert_eq!(preset.install.is_none(), preset.name == "demo");
        }
        let unknown = preset("gemni", Path::new("/p"), |_| None).unwrap_err().to_string();
        assert!(
            unknown.contains(
                "gemini, opencode, claude, codex, codex-app, qwen, goose, copilot, cursor, kimi, codelia, demo"
            ),
            "{unknown}"
        );
    }

    #[test]
    fn preset_keys_choose_how_to_sign_in() {
        assert_eq!(made("gemini", &[]).auth_method, None);
        assert_eq!(made("gemini", &[("GEMINI_API_KEY", "")]).auth_method, None);
        assert_eq!(made("gemini", &[("GEMINI_API_KEY", "k")]).auth_method.as_deref(), Some("gemini-api-key"));
        assert_eq!(made("codex", &[("OPENAI_API_KEY", "k")]).auth_method.as_deref(), Some("api-key"));
        let both = [("OPENAI_API_KEY", "k"), ("CODEX_API_KEY", "k")];
        assert_eq!(made("codex", &both).auth_method.as_deref(), Some("api-key"));
        assert_eq!(made("qwen", &[("OPENAI_API_KEY", "k")]).auth_method.as_deref(), Some("openai"));
        assert_eq!(made("cursor", &[("CURSOR_AUTH_TOKEN", "t")]).auth_method.as_deref(), Some("cursor_login"));
        assert_eq!(made("kimi", &[("KIMI_API_KEY", "k")]).auth_method, None);
        let kimi = presets().iter().find(|preset| preset.name == "kimi").unwrap();
        assert!(ended_early("/opt/bin/kimi").unwrap().contains("kimi-cli==1.51.0") && ended_early("gemini").is_none());
        assert!(kimi.install.unwrap().contains("kimi-cli==1.51.0") && kimi.about.contains("1.52 is a stub"));
        let (keys, method) = keys_of("/opt/bin/gemini", |name| (name == "GEMINI_API_KEY").then(|| "k".into()));
        assert_eq!(
            (keys.as_slice(), method.as_deref()),
            (&["GEMINI_*".into(), "GOOGLE_*".into()][..], Some("gemini-api-key"))
        );
        assert_eq!(keys_of("/opt/bin/another", |_| Some("k".into())), (Vec::new(), None));
    }

    #[test]
    fn preset_programs_are_named_by_the_gateway_and_the_environment() {
        assert_eq!(command(&made("demo", &[])), ["/opt/plexus", "agent", "demo"]);
        assert_eq!(command(&made("codelia", &[])), ["codelia-runtime"]);
        let env = [("CODELIA_RUNTIME_CMD", "bun"), ("CODELIA_RUNTIME_ARGS", "run 'my runtime.ts'")];
        assert_eq!(command(&made("codelia", &env)), ["bun", "run", "my runtime.ts"]);
        let bad = preset("codelia", Path::new("/p"), |name| (name == "CODELIA_RUNTIME_ARGS").then(|| "'x".into()));
        assert_eq!(bad.unwrap_err(), PresetError::Quotes("CODELIA_RUNTIME_ARGS", "'x".into()));
    }
}
