//! The changes in a session's folder, of repositories that set traps, that are large, and that git itself compares.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use common::gateway::{Gateway, exe};
use common::repository::{git, repository};
use serde_json::{Value, json};

/// Stands in every file outside of the folder: no answer may have it.
const OUTSIDE: &str = "CANARY-OUTSIDE";

/// A session of the demo agent in a folder, after its first run.
async fn session_in(gateway: &Gateway, folder: &Path) -> String {
    let (status, made) = gateway.post("/v1/sessions", json!({ "runtime_id": "demo", "cwd": folder })).await;
    assert_eq!(status, 201, "{made}");
    let session = made["session_id"].as_str().unwrap().to_owned();
    let run = gateway.prompt(&session, "say hello").await;
    gateway.until_ended(&session, &run).await;
    let list = changes(gateway, &session).await;
    assert_eq!((list["source"].as_str(), list["files"].as_array().unwrap().len()), (Some("git"), 0), "{list}");
    // A list shows a state of the last 0.7 s.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    session
}

/// The list; asked for again where the machine is too busy to make it in time.
async fn changes(gateway: &Gateway, session: &str) -> Value {
    let path = format!("/v1/sessions/{session}/changes");
    for _ in 0..5 {
        let (status, list) = gateway.get(&path).await;
        if status != 504 {
            assert_eq!(status, 200, "{list}");
            return list;
        }
    }
    panic!("the folder was never compared in time");
}

/// An answer as text.
async fn text(gateway: &Gateway, path: &str) -> String {
    gateway.request("GET", path).send().await.unwrap().text().await.unwrap()
}

/// A file of the list.
fn file<'a>(list: &'a Value, path: &str) -> &'a Value {
    let files = list["files"].as_array().unwrap();
    files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("no {path:?} in {list}"))
}

fn has_note(list: &Value, code: &str) -> bool {
    list["notes"].as_array().unwrap().iter().any(|note| note["code"] == code)
}

fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Sets everything in a repository that git executes when it looks at files: each writes its name to `canary`.
fn plant(repo: &Path, outside: &Path, canary: &Path) {
    let script = outside.join("trap.sh");
    write(&script, &format!("#!/bin/sh\necho \"$1\" >> '{}'\n", canary.display()));
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let trap = |name: &str| format!("'{}' {name}", script.display());
    for (key, name) in [
        ("core.fsmonitor", "fsmonitor"),
        ("filter.trap.clean", "clean"),
        ("filter.trap.smudge", "smudge"),
        ("filter.long.process", "process"),
        ("diff.trap.textconv", "textconv"),
        ("diff.external", "external"),
        ("credential.helper", "credential"),
        ("core.sshCommand", "ssh"),
        ("core.pager", "pager"),
    ] {
        git(repo, &["config", key, &trap(name)]);
    }
    let hooks = outside.join("hooks");
    for hook in ["post-index-change", "fsmonitor-watchman", "query-watchman", "pre-auto-gc"] {
        write(&hooks.join(hook), &format!("#!/bin/sh\n{}\n", trap(hook)));
        std::fs::set_permissions(hooks.join(hook), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::copy(hooks.join(hook), repo.join(".git/hooks").join(hook)).unwrap();
    }
    git(repo, &["config", "core.hooksPath", hooks.to_str().unwrap()]);
    // Whoever follows this sees no new file.
    write(&outside.join("ignored"), "*\n");
    let more = format!("[core]\n\texcludesFile = {}\n", outside.join("ignored").display());
    write(&outside.join("more.config"), &more);
    git(repo, &["config", "include.path", outside.join("more.config").to_str().unwrap()]);
}

/// Commits files, and sets the traps.
fn trapped(repo: &Path, outside: &Path, canary: &Path) {
    for path in ["plain.txt", "a.trap", "b.long", "u.utf16", "gone/inner.txt", "linked.txt", "mode.sh"] {
        write(&repo.join(path), "one\ntwo\nthree\n");
    }
    git(repo, &["add", "."]);
    git(repo, &["commit", "-q", "-m", "files"]);
    for (path, name) in [("secret.txt", "file"), ("inner.txt", "folder"), ("deep/inner.txt", "deep")] {
        write(&outside.join(path), &format!("{OUTSIDE} {name}\n"));
    }
    write(
        &repo.join(".gitattributes"),
        "*.trap filter=trap diff=trap\n*.long filter=long\n*.utf16 working-tree-encoding=UTF-16\n",
    );
    plant(repo, outside, canary);
}

/// Makes some of everything that leads out of the folder or stands in the way.
fn hostile(repo: &Path, outside: &Path) {
    for path in ["plain.txt", "a.trap", "b.long", "u.utf16"] {
        write(&repo.join(path), "one\n2\nthree\n");
    }
    // What leads out.
    std::fs::remove_dir_all(repo.join("gone")).unwrap();
    symlink(outside, repo.join("gone")).unwrap();
    std::fs::remove_file(repo.join("linked.txt")).unwrap();
    symlink(outside.join("secret.txt"), repo.join("linked.txt")).unwrap();
    symlink("../outside/deep", repo.join("folder-link")).unwrap();
    symlink("/dev/zero", repo.join("endless")).unwrap();
    // Names.
    for name in [&b"line\nbreak"[..], b"escape\x1b[31m", b"no-utf8-\xff", b"quote\"d", b" blank "] {
        std::fs::write(repo.join(OsStr::from_bytes(name)), "x\n").unwrap();
    }
    // What never ends, and what is large.
    rustix::fs::mknodat(rustix::fs::CWD, repo.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, repo.join("sub.gitignore"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    std::fs::File::create(repo.join("big.bin")).unwrap().set_len(1 << 30).unwrap();
    std::fs::write(repo.join("small.bin"), b"a\0b").unwrap();
    repository(&repo.join("nested"));
    write(&repo.join("nested/inside.txt"), "nested\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_a_hostile_repository_execute_and_show_nothing_of_it() {
    let gateway = Gateway::demo().await;
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().canonicalize().unwrap();
    let (repo, outside, canary) = (repository(&at.join("repo")), at.join("outside"), at.join("canary"));
    trapped(&repo, &outside, &canary);
    // The traps spring where git is run as it is.
    for arguments in [&["status"][..], &["diff"]] {
        let mut plain = Command::new("git");
        plain.args(arguments).current_dir(&repo).stdin(Stdio::null()).output().unwrap();
    }
    let sprung = std::fs::read_to_string(&canary).unwrap_or_default();
    assert!(sprung.contains("fsmonitor"), "these are no traps: {sprung}");
    // Git itself would not go on with these.
    std::fs::create_dir(repo.join("piped")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, repo.join("piped/.gitignore"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    git(&repo, &["config", "core.worktree", outside.to_str().unwrap()]);
    write(&repo.join(".git/objects/info/alternates"), &format!("{}\n", outside.join("objects").display()));
    let _ = std::fs::remove_file(&canary);

    let session = session_in(&gateway, &repo).await;
    hostile(&repo, &outside);
    let list = changes(&gateway, &session).await;
    assert_eq!(list["source"], "git", "{list}");
    for (path, status, compared) in [
        ("plain.txt", "modified", "text"),
        ("a.trap", "modified", "text"),
        ("b.long", "modified", "text"),
        ("u.utf16", "modified", "text"),
        ("linked.txt", "modified", "link"),
        ("gone", "added", "link"),
        ("gone/inner.txt", "deleted", "text"),
        ("folder-link", "added", "link"),
        ("endless", "added", "link"),
        ("line\nbreak", "added", "text"),
        ("escape\u{1b}[31m", "added", "text"),
        ("\"no-utf8-\\377\"", "added", "text"),
        ("big.bin", "added", "large"),
        ("small.bin", "added", "binary"),
    ] {
        let found = file(&list, path);
        assert_eq!((&found["status"], &found["compared"]), (&json!(status), &json!(compared)), "{path:?}: {found}");
    }
    let named = |path: &str| list["files"].as_array().unwrap().iter().any(|file| file["path"] == path);
    assert!(!named("pipe") && !named("nested/inside.txt"), "{list}");
    assert!(has_note(&list, "nested_repository") && has_note(&list, "large_files"), "{list}");
    let mut shown = list.to_string() + &text(&gateway, &format!("/v1/sessions/{session}/changes/patch")).await;
    for path in [
        "linked.txt",
        "gone",
        "gone%2Finner.txt",
        "folder-link",
        "endless",
        "a.trap",
        "gone%2Fsecret.txt",
        "..%2Foutside%2Fsecret.txt",
        "%2Fetc%2Fpasswd",
        ".git%2Fconfig",
    ] {
        shown += &text(&gateway, &format!("/v1/sessions/{session}/changes/file?path={path}")).await;
    }
    assert!(!shown.contains(OUTSIDE) && !shown.contains("root:x:"), "something outside is shown: {shown}");
    let listed = Command::new(exe()).args(["changes", &session]).env("PLEXUS_HOME", &gateway.home).output().unwrap();
    let table = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.status.success() && table.contains("plain.txt") && !table.contains('\u{1b}'), "{listed:?}");
    assert!(!canary.exists(), "something was executed: {:?}", std::fs::read_to_string(&canary));

    // A `.git` file that points to a repository elsewhere.
    let (pointing, other) = (at.join("pointing"), repository(&outside.join("other")));
    write(&other.join("theirs.txt"), OUTSIDE);
    git(&other, &["add", "."]);
    git(&other, &["commit", "-q", "-m", OUTSIDE]);
    write(&pointing.join(".git"), &format!("gitdir: {}\n", other.join(".git").display()));
    let session = session_in(&gateway, &pointing).await;
    write(&pointing.join("mine.txt"), "mine\n");
    let list = changes(&gateway, &session).await;
    assert_eq!((list["files"].as_array().unwrap().len(), &list["files"][0]["path"]), (1, &json!("mine.txt")), "{list}");
    assert!(!list.to_string().contains("theirs.txt"), "{list}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_a_hundred_thousand_files_are_bounded() {
    const FOLDERS: usize = 100;
    const EACH: usize = 1000;
    let gateway = Gateway::demo().await;
    let dir = tempfile::tempdir().unwrap();
    let repo = repository(&dir.path().canonicalize().unwrap().join("repo"));
    let session = session_in(&gateway, &repo).await;
    for folder in 0..FOLDERS {
        let folder = repo.join(format!("f{folder}"));
        std::fs::create_dir(&folder).unwrap();
        for file in 0..EACH {
            std::fs::File::create(folder.join(file.to_string())).unwrap();
        }
    }
    let list = changes(&gateway, &session).await;
    let (listed, left_off) = (list["files"].as_array().unwrap().len(), list["left_off"].as_u64().unwrap());
    assert_eq!((listed, left_off), (2000, (FOLDERS * EACH - 2000) as u64), "{}", list["notes"]);
}

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn lines(&mut self) -> String {
        let (count, ended) = (self.below(60), self.below(4) > 0);
        let mut text: String = (0..count).map(|_| format!("line {}\n", self.below(12))).collect();
        if !ended {
            text.push_str("no end");
        }
        text
    }
}

/// Changes some of a repository's files.
fn disturb(repo: &Path, numbers: &mut Numbers, names: &[String]) {
    for name in names {
        let path = repo.join(name);
        match numbers.below(6) {
            0 => drop(std::fs::remove_file(&path)),
            1 => write(&path, &numbers.lines()),
            2 if path.exists() => {
                let text = std::fs::read_to_string(&path).unwrap();
                let changed = text.replacen("line 3\n", "another line\n", 1 + numbers.below(3));
                write(&path, &changed);
            }
            3 if path.exists() => {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            4 => write(&repo.join(format!("new/{name}")), &numbers.lines()),
            _ => {}
        }
    }
}

/// The output of git.
fn git_says(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GIT_DIR");
    let done = command.output().unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_those_that_git_finds_and_their_patch_applies() {
    let gateway = Gateway::demo().await;
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().canonicalize().unwrap();
    for seed in 1..=8 {
        let mut numbers = Numbers(seed);
        let repo = repository(&at.join(format!("r{seed}")));
        let names: Vec<String> =
            ["a", "b c", "deep/d", "deep/er/e", "tab\tname", "ünï", "f", "g", "h", "i"].map(String::from).into();
        for name in &names {
            write(&repo.join(name), &numbers.lines());
        }
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-q", "-m", "files"]);
        if seed % 2 == 0 {
            git(&repo, &["gc", "-q"]);
        }
        git(&at, &["clone", "-q", repo.to_str().unwrap(), &format!("c{seed}")]);
        let session = session_in(&gateway, &repo).await;
        disturb(&repo, &mut numbers, &names);

        let list = changes(&gateway, &session).await;
        let files = list["files"].as_array().unwrap();
        let ours: BTreeSet<String> = files
            .iter()
            .flat_map(|file| [&file["path"], &file["from"]])
            .filter_map(|path| path.as_str().map(Into::into))
            .collect();
        let differ = git_says(&repo, &["diff", "--no-renames", "--name-only", "-z", "HEAD"]);
        let new = git_says(&repo, &["ls-files", "--others", "--exclude-standard", "-z"]);
        let theirs = [differ, new].concat();
        let theirs: BTreeSet<String> = theirs
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| String::from_utf8(name.to_vec()).unwrap())
            .collect();
        assert_eq!(ours, theirs, "seed {seed}");

        let patch = text(&gateway, &format!("/v1/sessions/{session}/changes/patch")).await;
        let clone = at.join(format!("c{seed}"));
        std::fs::write(at.join("patch"), &patch).unwrap();
        if !ours.is_empty() {
            git(&clone, &["apply", at.join("patch").to_str().unwrap()]);
        }
        for folder in [&repo, &clone] {
            git(folder, &["add", "-A"]);
        }
        let tree = |folder: &Path| git_says(folder, &["write-tree"]);
        assert_eq!(tree(&repo), tree(&clone), "seed {seed}: {patch}");
    }
}
