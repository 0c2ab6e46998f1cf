//! Git repositories for tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs git in a folder, without the settings of the user who runs the tests.
///
/// # Panics
/// git fails.
pub fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@b"]).args(args).current_dir(folder).stdin(Stdio::null());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null").env_remove("GIT_DIR");
    let done = command.output().expect("git is on the PATH");
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A repository with a commit, on the branch `main`.
///
/// # Panics
/// git fails.
pub fn repository(folder: &Path) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["commit", "-q", "--allow-empty", "-m", "first"]);
    folder.to_owned()
}
