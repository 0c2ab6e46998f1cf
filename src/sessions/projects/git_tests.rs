//! The projects of folders, in real repositories.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::git::project_of;
use super::{Projects, forget_oldest};
use plexus_protocol::Project;

/// A temporary folder, by its path without links.
struct Place {
    _kept: tempfile::TempDir,
    dir: PathBuf,
}

impl Place {
    fn new() -> Self {
        let kept = tempfile::tempdir().unwrap();
        let dir = kept.path().canonicalize().unwrap();
        Self { _kept: kept, dir }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    fn folder(&self, path: &str) -> PathBuf {
        fs::create_dir_all(self.path(path)).unwrap();
        self.path(path)
    }

    /// A repository with a commit, on the branch `main`.
    fn repository(&self, path: &str) -> PathBuf {
        let dir = self.folder(path);
        git(&dir, &["init", "-q", "-b", "main"]);
        git(&dir, &["commit", "-q", "--allow-empty", "-m", "first"]);
        dir
    }

    /// What is found from a path: `name root branch worktree`, the root below this folder.
    fn found(&self, path: &str) -> String {
        let Project { name, root, branch, worktree } = project_of(self.path(path).to_str().unwrap());
        let root = Path::new(&root).strip_prefix(&self.dir).map_or(root.clone(), |root| root.display().to_string());
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        format!("{name} {root} {} {}", or_none(branch), or_none(worktree))
    }
}

fn git(dir: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]).args(args);
    // Neither the person's settings nor a repository that the tests run in.
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null").env_remove("GIT_DIR");
    let done = command.current_dir(dir).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn project_of_repositories_worktrees_and_submodules() {
    let at = Place::new();
    let main = at.repository("work/plexus");
    at.folder("work/plexus/src/deep");
    git(&main, &["worktree", "add", "-q", "-b", "feature/login", "../trees/login"]);
    at.folder("work/trees/login/src");
    git(&main, &["worktree", "add", "-q", "--detach", "../trees/loose"]);
    let other = at.repository("lib");
    git(&main, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", other.to_str().unwrap(), "vendor/lib"]);
    at.folder("apart");
    git(
        &at.folder("kept"),
        &["init", "-q", "-b", "main", "--separate-git-dir", at.path("apart/store").to_str().unwrap()],
    );
    let detached = at.repository("detached");
    git(&detached, &["checkout", "-q", "--detach"]);
    git(&at.folder("unborn"), &["init", "-q", "-b", "trunk"]);
    git(&at.folder("sha256"), &["init", "-q", "-b", "main", "--object-format=sha256"]);
    at.repository("outer");
    at.repository("outer/inner");
    at.folder("plain/sub");
    for (path, found) in [
        ("work/plexus", "plexus work/plexus main -"),
        ("work/plexus/", "plexus work/plexus main -"),
        ("work/plexus/src/deep", "plexus work/plexus main -"),
        ("work/plexus/.git/refs", "plexus work/plexus main -"),
        ("work/trees/login", "plexus work/plexus feature/login login"),
        ("work/trees/login/src", "plexus work/plexus feature/login login"),
        ("work/trees/loose", "plexus work/plexus - loose"),
        ("work/plexus/vendor/lib", "lib work/plexus/vendor/lib main -"),
        ("kept", "kept kept main -"),
        ("detached", "detached detached - -"),
        ("unborn", "unborn unborn trunk -"),
        ("sha256", "sha256 sha256 main -"),
        ("outer/inner", "inner outer/inner main -"),
        ("plain/sub", "sub plain/sub - -"),
        ("plain/missing/", "missing plain/missing - -"),
    ] {
        assert_eq!(at.found(path), found, "{path}");
    }
}

#[test]
fn project_of_bare_repositories_and_their_worktrees() {
    let at = Place::new();
    let source = at.repository("source");
    git(&at.dir, &["clone", "-q", "--bare", source.to_str().unwrap(), "tool.git"]);
    git(&at.path("tool.git"), &["worktree", "add", "-q", "-b", "fix", "../fix"]);
    at.folder("hidden");
    git(&at.dir, &["clone", "-q", "--bare", source.to_str().unwrap(), "hidden/.bare"]);
    git(&at.path("hidden/.bare"), &["worktree", "add", "-q", "-b", "next", "../next"]);
    for (path, found) in [
        ("tool.git", "tool tool.git - -"),
        ("fix", "tool tool.git fix fix"),
        ("hidden/next", "hidden hidden next next"),
    ] {
        assert_eq!(at.found(path), found, "{path}");
    }
}

#[test]
fn project_follows_head_as_git_writes_it() {
    let at = Place::new();
    let dir = at.repository("repo");
    git(&dir, &["checkout", "-q", "-b", "feature/a-b.c"]);
    assert_eq!(at.found("repo"), "repo repo feature/a-b.c -");
    let commit = "0123456789abcdef0123456789abcdef01234567";
    for (head, branch) in [
        ("ref: refs/heads/x\n", "x"),
        ("ref:\trefs/heads/x  \n\n", "x"),
        ("ref: refs/heads/.invalid\n", "-"),
        ("ref: refs/bisect/bad\n", "-"),
        ("ref: refs/heads/a\u{202e}b\u{7}\n", "a\\u{202e}b\\u{7}"),
        (&format!("{commit}\n"), "-"),
    ] {
        fs::write(dir.join(".git/HEAD"), head).unwrap();
        assert_eq!(at.found("repo"), format!("repo repo {branch} -"), "{head:?}");
    }
    fs::remove_file(dir.join(".git/HEAD")).unwrap();
    symlink("refs/heads/old", dir.join(".git/HEAD")).unwrap();
    assert_eq!(at.found("repo"), "repo repo old -");
}

#[test]
fn project_of_hostile_folders_is_harmless() {
    let at = Place::new();
    let main = at.repository("main");
    git(&main, &["worktree", "add", "-q", "-b", "side", "../side"]);
    let dot_git = |path: &str, text: &str| fs::write(at.folder(path).join(".git"), text).unwrap();
    dot_git("nowhere", "gitdir: ../not/there\n");
    dot_git("empty", "");
    dot_git("words", "not a pointer\n");
    dot_git("lines", "gitdir: ../main/.git\nmore\n");
    dot_git("huge", &format!("gitdir: ../main/.git{}\n", " ".repeat(1 << 20)));
    // It says that it is a worktree of a repository, which knows of another one.
    dot_git("liar", &format!("gitdir: {}\n", at.path("main/.git/worktrees/side").display()));
    symlink(main.join(".git"), at.folder("link").join(".git")).unwrap();
    symlink("around", at.path("around")).unwrap();
    symlink(".git", at.folder("loop").join(".git")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at.folder("pipe").join(".git"), rustix::fs::Mode::RWXU).unwrap();
    let piped = at.folder("piped/.git");
    rustix::fs::mkfifoat(rustix::fs::CWD, piped.join("HEAD"), rustix::fs::Mode::RWXU).unwrap();
    let long = at.repository("long");
    fs::write(long.join(".git/HEAD"), format!("ref: refs/heads/{}\n", "x".repeat(5000))).unwrap();
    fs::write(at.folder("noise/.git").join("HEAD"), [0xff, 0, 1, 2]).unwrap();
    at.folder("hollow/.git");
    for (path, found) in [
        ("nowhere", "nowhere nowhere - -"),
        ("empty", "empty empty - -"),
        ("words", "words words - -"),
        ("lines", "lines lines - -"),
        ("huge", "huge huge - -"),
        ("liar", "liar liar - -"),
        ("link", "link link - -"),
        ("around", "around around - -"),
        ("loop", "loop loop - -"),
        ("pipe", "pipe pipe - -"),
        ("piped", "piped piped - -"),
        ("long", "long long - -"),
        ("noise", "noise noise - -"),
        ("hollow", "hollow hollow - -"),
    ] {
        assert_eq!(at.found(path), found, "{path}");
    }
    for (path, name) in [("/", "/"), ("relative/path", "path"), ("", "")] {
        assert_eq!(project_of(path).name, name, "{path:?}");
    }
    assert_eq!(project_of(&format!("/{}", "x/".repeat(4000))).name, "x");
    assert_eq!(project_of("/nul\0here").branch, None);
    let name = at.folder("evil\u{202e}\u{1b}[2J");
    assert_eq!(project_of(name.to_str().unwrap()).name, "evil\\u{202e}\\u{1b}[2J");
}

#[test]
fn project_of_a_folder_without_permission_is_itself() {
    let at = Place::new();
    let dir = at.repository("repo");
    at.folder("repo/shut/in");
    let mode = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&dir.join(".git/HEAD"), 0);
    mode(&at.path("repo/shut"), 0);
    // Root reads all the same.
    let root = rustix::process::geteuid().is_root();
    let expected = |denied: &str, allowed: &str| if root { allowed.to_owned() } else { denied.to_owned() };
    assert_eq!(at.found("repo"), expected("repo repo - -", "repo repo main -"));
    assert_eq!(at.found("repo/shut/in"), expected("in repo/shut/in - -", "repo repo main -"));
    mode(&at.path("repo/shut"), 0o700);
}

#[tokio::test]
async fn projects_are_read_once_and_the_oldest_are_forgotten() {
    let at = Place::new();
    let dir = at.repository("repo");
    let cwd = dir.to_str().unwrap();
    let projects = Projects::default();
    assert_eq!(projects.known(cwd), None);
    assert_eq!(projects.of_opening(cwd).await.unwrap().branch.as_deref(), Some("main"));
    git(&dir, &["checkout", "-q", "-b", "other"]);
    assert_eq!(projects.of_opening(cwd).await.unwrap().branch.as_deref(), Some("main"), "it was read just now");
    projects.read(vec![cwd.to_owned()]).await.unwrap();
    assert_eq!(projects.known(cwd).unwrap().branch.as_deref(), Some("other"));
    let folders: Vec<String> = (0..super::FOLDERS + 10).map(|n| format!("/nowhere/{n}")).collect();
    projects.read(folders).await.unwrap();
    assert!(projects.known.read().len() <= super::FOLDERS);
    assert_eq!(projects.known(cwd), None);
    assert!(projects.known(&format!("/nowhere/{}", super::FOLDERS + 9)).is_some());
    forget_oldest(&mut projects.known.write());
}
