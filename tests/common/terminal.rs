//! A real terminal (tmux) with a program in it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::gateway::PATIENCE;

/// The number of lines above the screen that are read; negative, as tmux counts.
const SCROLLED: &str = "-2000";

/// The terminal; what runs in it ends when it is dropped.
pub struct Terminal {
    /// A folder of its own.
    pub dir: tempfile::TempDir,
}

impl Terminal {
    /// Starts a program in a terminal of `size` (columns, lines), with these variables set beside the story's own.
    ///
    /// # Panics
    /// Where there is no tmux.
    pub fn open(cwd: Option<&Path>, size: (u16, u16), env: &[(&str, &str)], command: &[&str]) -> Self {
        let terminal = Self { dir: tempfile::tempdir().unwrap() };
        let mut tmux = terminal.tmux();
        tmux.args(["new-session", "-d", "-s", "it", "-x", &size.0.to_string(), "-y", &size.1.to_string()]);
        tmux.arg("-c").arg(cwd.unwrap_or(terminal.dir.path()));
        for (name, value) in env {
            tmux.arg("-e").arg(format!("{name}={value}"));
        }
        // It takes PATH from whoever starts it, whatever else it is told.
        tmux.envs(env.iter().filter(|(name, _)| *name == "PATH").copied());
        assert!(tmux.args(command).status().expect("tmux is needed").success(), "tmux is needed");
        terminal
    }

    /// tmux, told of this terminal. How many colours it has, its program is told by [`open`](Self::open) alone.
    pub fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.dir.path().join("tmux")).args(["-f", "/dev/null"]).stderr(Stdio::null());
        command.env("TERM", "xterm-256color").env_remove("COLORTERM");
        // It is a person's terminal wherever the tests run: on a CI machine, programs made with Ink draw nothing before they end.
        for name in ["CI", "CONTINUOUS_INTEGRATION"] {
            command.env_remove(name);
        }
        command
    }

    fn said(&self, what: &str, more: &[&str]) -> String {
        let out = self.tmux().args([what, "-p", "-t", "it"]).args(more).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// Presses keys, by tmux's names for them.
    pub fn keys(&self, keys: &[&str]) {
        assert!(self.tmux().args(["send-keys", "-t", "it"]).args(keys).status().unwrap().success());
    }

    /// Types a text.
    pub fn words(&self, words: &str) {
        self.keys(&["-l", "--", words]);
    }

    /// The window is no longer in front: what a terminal says to a program that asked to be told (xterm's mode 1004).
    pub fn blur(&self) {
        self.keys(&["-H", "1b", "5b", "4f"]);
    }

    /// Makes its window another size.
    pub fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        let args = ["resize-window", "-t", "it", "-x", &width, "-y", &height];
        assert!(self.tmux().args(args).status().unwrap().success());
    }

    /// The content of the screen; `more` are tmux's options for it.
    pub fn capture(&self, more: &[&str]) -> String {
        self.said("capture-pane", more)
    }

    /// The content of the screen as text.
    pub fn text(&self) -> String {
        self.capture(&[])
    }

    /// The content of the screen as text, with the lines that scrolled away.
    pub fn all(&self) -> String {
        self.capture(&["-S", SCROLLED])
    }

    /// A variable of tmux for this terminal.
    pub fn format(&self, format: &str) -> String {
        self.said("display-message", &[format]).trim().to_owned()
    }

    /// Waits until `read` gives what fits, which is returned.
    pub async fn until(&self, what: &str, read: impl Fn(&Self) -> String, is: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = read(self);
            if is(&text) {
                return text;
            }
            assert!(Instant::now() < deadline, "{what} did not come:\n{text}");
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
    }

    /// Waits until this text has been written `times` times, however it is broken into lines.
    pub async fn wrote(&self, words: &str, times: usize) -> String {
        let squeeze = |text: &str| text.chars().filter(|c| !c.is_whitespace() && *c != '│').collect::<String>();
        let wanted = squeeze(words);
        self.until(&format!("{words:?}"), Self::all, |text| squeeze(text).matches(&wanted).count() >= times).await
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the screen\n{}", self.text());
        }
        let _ = self.tmux().arg("kill-server").status();
    }
}
