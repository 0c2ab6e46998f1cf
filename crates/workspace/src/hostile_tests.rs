//! Folders and repositories that an attacker made.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::process::{Command, Stdio};

use sha1::{Digest as _, Sha1};

use crate::rig::{Rig, user_git};
use crate::{Comparison, WorkspaceError, project_of};

/// Maximum memory of this process after an attack, in KiB; the tests of other threads count as well.
const MEMORY: u64 = 400 << 10;

fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn fed(rig: &Rig, args: &[&str], input: &[u8]) -> String {
    let mut child = Command::new("git")
        .args(args)
        .current_dir(rig.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

fn commit_of(rig: &Rig, tree: &str) {
    let commit = String::from_utf8(rig.user_git(&["commit-tree", "-m", "x", tree])).unwrap();
    rig.user_git(&["update-ref", "HEAD", commit.trim()]);
}

#[test]
fn programs_that_a_folder_configures_never_run() {
    let rig = Rig::committed(&[("a", b"a\n"), ("sub/x", b"x\n")]);
    let ran = rig.base().join("ran");
    let evil = rig.base().join("evil");
    std::fs::write(&evil, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", ran.display())).unwrap();
    std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = evil.to_str().unwrap();
    std::fs::write(rig.base().join("included"), format!("[core]\n\tfsmonitor = {program}\n")).unwrap();
    let configure = |folder: &std::path::Path| {
        for key in [
            "core.fsmonitor",
            "filter.evil.clean",
            "filter.evil.smudge",
            "filter.evil.process",
            "diff.evil.textconv",
            "diff.evil.command",
            "diff.external",
            "core.pager",
            "core.sshCommand",
            "core.alternateRefsCommand",
        ] {
            user_git(folder, &["config", key, program]);
        }
        user_git(folder, &["config", "include.path", rig.base().join("included").to_str().unwrap()]);
        let hooks = folder.join(".git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        for hook in ["post-index-change", "pre-commit", "reference-transaction", "post-checkout", "fsmonitor-watchman"]
        {
            std::fs::copy(&evil, hooks.join(hook)).unwrap();
        }
    };
    // A repository in the folder, with a commit: `git add` would start `git status` in it.
    rig.write("nested/f", "x");
    user_git(&rig.path("nested"), &["init", "-q", "."]);
    user_git(&rig.path("nested"), &["add", "-A"]);
    user_git(&rig.path("nested"), &["commit", "-q", "-m", "x"]);
    // The same as a submodule that the index has.
    rig.user_git(&["add", "nested"]);
    rig.write(".gitattributes", "* filter=evil diff=evil text\n");
    configure(&rig.path("nested"));
    configure(&rig.work());
    std::fs::remove_file(&ran).ok();
    rig.begin();
    rig.run("r_1", |rig| {
        rig.write("a", "b\n");
        rig.write("nested/f", "y");
        rig.write("new", "x\n");
    });
    let changes = rig.changes();
    assert_eq!(rig.listed(), ["M a", "A new"]);
    let store = rig.store();
    for change in &changes.files {
        assert!(!store.file_patch(changes.old, changes.new, &change.file).unwrap().hunks().is_empty());
    }
    store.whole_patch(changes.old, changes.new, None).unwrap();
    rig.undo("a", Some(0)).unwrap();
    store.maintain().unwrap();
    store.forget(crate::rig::SESSION).unwrap();
    assert!(!ran.exists(), "{}", std::fs::read_to_string(&ran).unwrap());
}

#[test]
fn tree_with_a_name_of_megabytes_is_not_read() {
    let rig = Rig::committed(&[("a", b"a\n")]);
    let blob = fed(&rig, &["hash-object", "-w", "--stdin"], b"x");
    let files: String = (0..1000).map(|nth| format!("100644 blob {blob}\tf{nth}\n")).collect();
    let inner = fed(&rig, &["mktree"], files.as_bytes());
    let tree = fed(&rig, &["mktree"], format!("040000 tree {inner}\t{}\n", "n".repeat(4 << 20)).as_bytes());
    commit_of(&rig, &tree);
    rig.begin();
    rig.write("a", "b\n");
    assert_eq!(rig.listed(), ["M a"]);
    assert!(memory() < MEMORY, "{} KiB", memory());
}

#[test]
fn tree_of_20_000_folders_is_not_read() {
    let rig = Rig::committed(&[("a", b"a\n")]);
    let blob = fed(&rig, &["hash-object", "-w", "--stdin"], b"x");
    let files: String = (0..20_000).map(|nth| format!("100644 blob {blob}\tf{nth:05}\n")).collect();
    let inner = fed(&rig, &["mktree"], files.as_bytes());
    let folders: String = (0..20_000).map(|nth| format!("040000 tree {inner}\td{nth:05}\n")).collect();
    let tree = fed(&rig, &["mktree"], folders.as_bytes());
    commit_of(&rig, &tree);
    let began = std::time::Instant::now();
    rig.begin();
    rig.write("a", "b\n");
    assert_eq!(rig.listed(), ["M a"]);
    assert!(began.elapsed().as_secs() < 30 && memory() < MEMORY);
}

/// Replaces the checksum at the end of an index.
fn sealed(mut index: Vec<u8>) -> Vec<u8> {
    let sum = Sha1::digest(&index);
    index.extend(sum);
    index
}

#[test]
fn index_whose_paths_grow_is_looked_at_without_it() {
    let rig = Rig::committed(&[("a", b"a\n")]);
    let mut index = b"DIRC\0\0\0\x04\0\0\x04\0".to_vec();
    for nth in 0..1024 {
        index.extend([0; 24]);
        index.extend([0, 0, 0x81, 0xa4]);
        index.extend([0; 12]);
        index.extend([7; 20]);
        index.extend([0x0f, 0xff]);
        if nth == 0 {
            index.push(0);
            index.extend(std::iter::repeat_n(b'p', 1 << 20));
        } else {
            index.push(4);
        }
        index.extend(format!("{nth:04}\0").bytes());
    }
    std::fs::write(rig.path(".git/index"), sealed(index)).unwrap();
    rig.begin();
    rig.write("a", "b\n");
    assert_eq!(rig.listed(), ["M a"]);
    assert!(memory() < MEMORY, "{} KiB", memory());
}

/// Makes a pack with one entry that is a delta of itself, and its index, for the object `name`.
fn self_delta(name: [u8; 20]) -> (Vec<u8>, Vec<u8>) {
    let delta = [100, 100, 0x90, 100];
    // A stored block of zlib and its checksum, Adler-32.
    let (a, b) = delta.iter().fold((1_u32, 0_u32), |(a, b), byte| (a + u32::from(*byte), b + a + u32::from(*byte)));
    let mut entry = vec![0x74];
    entry.extend(name);
    entry.extend([0x78, 1, 1, 4, 0, 0xfb, 0xff]);
    entry.extend(delta);
    entry.extend((b << 16 | a).to_be_bytes());
    let pack = sealed([&b"PACK\0\0\0\x02\0\0\0\x01"[..], &entry].concat());
    let mut idx = b"\xfftOc\0\0\0\x02".to_vec();
    (0..256).for_each(|byte| idx.extend(u32::from(byte >= usize::from(name[0])).to_be_bytes()));
    idx.extend(name);
    idx.extend([0; 4]);
    idx.extend(12_u32.to_be_bytes());
    idx.extend(&pack[pack.len() - 20..]);
    (pack.clone(), sealed(idx))
}

#[test]
fn delta_of_itself_makes_one_file_unreadable() {
    let rig = Rig::committed(&[("a", b"a\n"), ("b", b"b\n")]);
    let name = [9; 20];
    let (pack, idx) = self_delta(name);
    let place = rig.path(".git/objects/pack");
    std::fs::create_dir_all(&place).unwrap();
    let stem = "pack-0909090909090909090909090909090909090909";
    std::fs::write(place.join(format!("{stem}.pack")), pack).unwrap();
    std::fs::write(place.join(format!("{stem}.idx")), idx).unwrap();
    // The index names it where the file's own blob stood.
    let blob = crate::ObjectName::from_blob(b"a\n");
    let mut index = std::fs::read(rig.path(".git/index")).unwrap();
    index.truncate(index.len() - 20);
    let at = index.windows(20).position(|window| window == blob.bytes()).unwrap();
    index[at..at + 20].copy_from_slice(&name);
    // The extension of known trees is dropped: it begins after the entries.
    let end = index.windows(4).position(|window| window == b"TREE").unwrap_or(index.len());
    index.truncate(end);
    let time = std::fs::metadata(rig.path("b")).unwrap().modified().unwrap();
    std::fs::write(rig.path(".git/index"), sealed(index)).unwrap();
    let file = std::fs::File::options().append(true).open(rig.path(".git/index")).unwrap();
    file.set_modified(time + std::time::Duration::from_secs(5)).unwrap();
    rig.begin();
    rig.write("a", "changed\n");
    rig.write("b", "changed\n");
    let changes = rig.changes();
    assert_eq!(rig.listed(), ["M a", "M b"]);
    assert_eq!(changes.at(b"a").unwrap().file.lines, None);
    assert!(rig.undo("a", None).is_err());
    rig.undo("b", None).unwrap();
    assert!(memory() < MEMORY, "{} KiB", memory());
}

#[test]
fn repository_of_another_user_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let rig = Rig::new();
    user_git(rig.base(), &["init", "-q", "."]);
    rig.write("a", "a\n");
    assert_eq!(project_of(&rig.work()).root, rig.base());
    chown(rig.base().join(".git"), Some(65_534), Some(65_534)).unwrap();
    assert_eq!(project_of(&rig.work()).branch, None);
    rig.begin();
    assert!(!rig.store().directory.join("objects/info/alternates").exists());
}

#[test]
fn links_in_the_place_of_git_are_not_followed() {
    let rig = Rig::committed(&[("a", b"a\n")]);
    std::fs::rename(rig.path(".git/objects"), rig.base().join("objects")).unwrap();
    symlink(rig.base().join("objects"), rig.path(".git/objects")).unwrap();
    std::fs::remove_file(rig.path(".git/info/exclude")).ok();
    symlink("/dev/zero", rig.path(".git/info/exclude")).unwrap();
    symlink("/dev/zero", rig.path(".gitignore")).unwrap();
    rig.begin();
    assert!(!rig.store().directory.join("objects/info/alternates").exists());
    rig.write("a", "b\n");
    assert_eq!(rig.changes().at(b"a").unwrap().file.compared, Comparison::Text);
}

#[test]
fn folder_that_vanishes_is_an_error() {
    let rig = Rig::new();
    let store = rig.store();
    std::fs::remove_dir(rig.work()).unwrap();
    assert!(matches!(store.scan(), Err(WorkspaceError::Disk { .. })));
}
