//! Walks of folders, harmless and hostile.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::walk::files_of;

fn write(dir: &Path, path: &str, text: &str) {
    let file = dir.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

#[test]
fn walk_respects_ignore_rules_and_leaves_out_what_is_hidden() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    for path in [
        ".git/config",
        "README.md",
        "src/main.rs",
        "src/deep/er/mod.rs",
        "target/debug/plexus",
        "notes.log",
        "src/keep.log",
        ".hidden",
        ".cache/x",
        "build/out",
        "src/build/out",
        "private/secret",
        "vendor/lib.rs",
        "vendor/gen/code.rs",
        "own.tmp",
    ] {
        write(at, path, "");
    }
    write(at, ".gitignore", "# what is made\n/target\n*.log\nbuild/\n!keep.log\n[\n");
    write(at, ".ignore", "private\n");
    write(at, ".git/info/exclude", "*.tmp\n");
    write(at, "src/.gitignore", "!build/\n");
    write(at, "vendor/.gitignore", "gen/\n");
    let files = files_of(at).unwrap();
    assert_eq!(
        files.paths,
        ["README.md", "src/keep.log", "src/main.rs", "vendor/lib.rs", "src/build/out", "src/deep/er/mod.rs"]
    );
    assert!(!files.truncated);
    assert_eq!(files.bytes, files.paths.concat().len());
    // A session below the repository's folder has the rules above it.
    write(at, "src/deep/x.log", "");
    assert_eq!(files_of(&at.join("src/deep")).unwrap().paths, ["er/mod.rs"]);
    // Outside of a repository its own rules count, and no others.
    fs::rename(at.join(".git"), at.join("git")).unwrap();
    assert_eq!(files_of(&at.join("src/deep")).unwrap().paths, ["x.log", "er/mod.rs"]);
}

#[test]
fn walk_of_a_hostile_folder_ends_and_stays_inside() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("work");
    write(dir.path(), "outside/secret", "");
    write(&at, "a.rs", "");
    symlink(dir.path().join("outside"), at.join("out")).unwrap();
    symlink(dir.path().join("outside/secret"), at.join("file")).unwrap();
    symlink(".", at.join("again")).unwrap();
    symlink("/dev/zero", at.join(".gitignore")).unwrap();
    let rules = at.join("pipes/.gitignore");
    write(&at, "pipes/in.rs", "");
    rustix::fs::mkfifoat(rustix::fs::CWD, &rules, rustix::fs::Mode::RWXU).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    write(&at, "large/.gitignore", &"*\n".repeat(40_000));
    write(&at, "large/seen.rs", "");
    write(&at, "evil\u{202e}\n\u{1b}[2J.rs", "");
    fs::write(at.join(std::ffi::OsStr::from_bytes(b"no\xfftext")), "").unwrap();
    let files = files_of(&at).unwrap();
    assert_eq!(files.paths, ["a.rs", "evil\u{202e}\n\u{1b}[2J.rs", "large/seen.rs", "pipes/in.rs"]);
    assert!(!files.truncated);
    assert!(files_of(&at.join("a.rs")).is_err());
    assert!(files_of(&at.join("missing")).is_err());
}

#[test]
fn walk_of_a_deep_or_wide_folder_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &format!("{}below", "d/".repeat(40)), "");
    write(dir.path(), "near", "");
    let files = files_of(dir.path()).unwrap();
    assert_eq!(files.paths, ["near"]);
    assert!(files.truncated);
    let dir = tempfile::tempdir().unwrap();
    for n in 0..10_050 {
        fs::write(dir.path().join(format!("{n:05}")), "").unwrap();
    }
    let files = files_of(dir.path()).unwrap();
    assert!(files.truncated && files.paths.len() <= 10_000, "{}", files.paths.len());
}
