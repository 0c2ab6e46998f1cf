//! A real browser (`tests/web/browser.mjs`); each of its pages is a separate device.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::agents;
use super::gateway::{Gateway, PATIENCE};

/// The browser's program.
///
/// # Panics
/// There is none; the message says how to install one.
pub fn program() -> String {
    if let Ok(named) = std::env::var("CHROMIUM") {
        return named;
    }
    let known = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let there = known.iter().find(|path| Path::new(path).is_file());
    let none = || panic!("no browser: install Chromium (Debian: apt-get install chromium) or name one in $CHROMIUM");
    (*there.unwrap_or_else(none)).to_owned()
}

/// Time for a whole script, whose own waits are far shorter. Reached only if the browser hangs.
const SCRIPT: Duration = Duration::from_secs(600);

/// Runs a script of `tests/web` in a real browser, with the gateway and `more` in its environment.
///
/// # Panics
/// The script fails or hangs.
pub async fn play(script: &str, gateway: &Gateway, more: &[(&str, &str)]) {
    let dir = tempfile::tempdir().unwrap();
    let (browser, at) = (program(), dir.path().to_str().unwrap());
    let mut env = vec![("PLEXUS_URL", gateway.url.as_str()), ("PLEXUS_TOKEN", &gateway.token)];
    // The folder of the browser's profile, removed even if the script is killed.
    env.extend([("PLEXUS_DIR", at), ("TMPDIR", at), ("CHROMIUM", &browser)]);
    env.extend(more);
    run_script(script, &[], &env).await.unwrap();
}

/// Runs a script of `tests/web` with these arguments and variables.
///
/// # Errors
/// The script fails or hangs.
pub async fn run_script(script: &str, args: &[&str], env: &[(&str, &str)]) -> Result<(), String> {
    let modules = tokio::task::spawn_blocking(agents::browser_dir).await.unwrap();
    let mut command = Command::new("node");
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web").join(script))
        .args(args)
        .env("PLEXUS_PLAYWRIGHT", modules)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let mut child = command.spawn().expect("`node` starts; the page's tests need Node.js 20 or newer on PATH");
    // Killed after the timeout: the browser ends with its control pipe.
    let Ok(status) = tokio::time::timeout(SCRIPT, child.wait()).await else {
        return Err(format!("tests/web/{script} hangs"));
    };
    let status = status.unwrap();
    if status.success() { Ok(()) } else { Err(format!("tests/web/{script}: {status}; what it said is above")) }
}

/// A running browser; killed when dropped.
pub struct Browser {
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    next: u64,
    _child: Child,
    /// The folder of its profiles and other files.
    _dir: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser.
    pub async fn start() -> Self {
        let playwright = tokio::task::spawn_blocking(agents::browser_dir).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new("node")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/browser.mjs"))
            .env("PLEXUS_PLAYWRIGHT", playwright)
            .env("CHROMIUM", program())
            .env("TMPDIR", dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .expect("`node` starts; Node.js 20 or newer is needed on PATH");
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut browser = Self { stdin, lines, next: 0, _child: child, _dir: dir };
        assert_eq!(browser.line().await["ready"], true);
        browser
    }

    async fn line(&mut self) -> Value {
        let line = tokio::time::timeout(2 * PATIENCE, self.lines.next_line()).await.expect("the browser hangs");
        serde_json::from_str(&line.unwrap().expect("the browser ended")).unwrap()
    }

    /// Does one action on a page; returns its result or the error.
    pub async fn attempt(&mut self, page: &str, what: &str, mut with: Value) -> Result<Value, String> {
        self.next += 1;
        with["id"] = json!(self.next);
        with["page"] = json!(page);
        with["do"] = json!(what);
        self.stdin.write_all(format!("{with}\n").as_bytes()).await.unwrap();
        let mut answer = self.line().await;
        assert_eq!(answer["id"], self.next);
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["value"].take()),
        }
    }

    /// Does one action on a page that must succeed; if it fails, a screenshot is left in `$PLEXUS_SHOTS`.
    pub async fn act(&mut self, page: &str, what: &str, with: Value) -> Value {
        match self.attempt(page, what, with.clone()).await {
            Ok(value) => value,
            Err(error) => {
                if let Some(shots) = std::env::var_os("PLEXUS_SHOTS") {
                    let file = PathBuf::from(shots).join(format!("failure-{page}.png"));
                    let _ = self.attempt(page, "shoot", json!({ "file": file })).await;
                }
                panic!("{page}: {what} {with}: {error}");
            }
        }
    }

    /// Opens a page in a profile of its own.
    pub async fn open(&mut self, page: &str, url: &str, (width, height): (u32, u32), more: Value) {
        let mut with = json!({ "url": url, "width": width, "height": height });
        for (key, value) in more.as_object().unwrap() {
            with[key] = value.clone();
        }
        self.act(page, "open", with).await;
    }

    /// Clicks the element of this selector.
    pub async fn click(&mut self, page: &str, on: &str) {
        self.act(page, "click", json!({ "on": on })).await;
    }

    /// Waits until the element is visible.
    pub async fn wait(&mut self, page: &str, on: &str) {
        self.act(page, "wait", json!({ "on": on })).await;
    }

    /// Waits until the page is signed in and up to date.
    pub async fn live(&mut self, page: &str) {
        self.act(page, "wait", json!({ "on": ".link[data-phase=live]", "state": "attached" })).await;
    }

    /// The element's text.
    pub async fn text(&mut self, page: &str, on: &str) -> String {
        self.act(page, "text", json!({ "on": on })).await.as_str().unwrap().to_owned()
    }

    /// Replaces the text of a field.
    pub async fn fill(&mut self, page: &str, on: &str, text: &str) {
        self.act(page, "fill", json!({ "on": on, "text": text })).await;
    }

    /// Takes a screenshot.
    pub async fn shoot(&mut self, page: &str, file: &Path) {
        self.act(page, "shoot", json!({ "file": file })).await;
    }

    /// Fails if the page reported anything: an error, a policy violation, a request to another origin, a dialog.
    pub async fn content(&mut self, page: &str) {
        let complaints = self.act(page, "complaints", json!({})).await;
        assert_eq!(complaints, json!([]), "{page}");
    }
}
