//! Tests of worktrees: they are made completely or not at all, and removed with exactly the content that was shown.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use crate::rig::{Rig, user_git};
use crate::{FolderStores, FolderWorktrees, WorktreeProblem};

fn worktrees(rig: &Rig) -> FolderWorktrees {
    let state = rig.base().join("state");
    std::fs::create_dir_all(&state).unwrap();
    FolderWorktrees::new(&state, Arc::new(FolderStores::new(&state)))
}

fn branches(rig: &Rig) -> String {
    String::from_utf8(rig.user_git(&["branch", "--format=%(refname:short)"])).unwrap()
}

#[test]
fn worktree_is_made_kept_and_removed() {
    let rig = Rig::committed(&[("d/a", b"a\n")]);
    let all = worktrees(&rig);
    let made = all.make(&rig.path("d"), "feature/x", None, 1).unwrap();
    assert_eq!(made.entry.path, rig.base().join("work.worktrees/feature/x"));
    assert_eq!(made.cwd, made.entry.path.join("d"));
    assert_eq!(std::fs::read(made.cwd.join("a")).unwrap(), b"a\n");
    all.keep(&made.entry.path).unwrap();
    assert_eq!(all.recover(&|_| false).unwrap(), []);
    assert!(matches!(all.make(&rig.work(), "feature/x", None, 2), Err(WorktreeProblem::BranchExists)));
    assert!(matches!(all.make(&rig.work(), "feature/x/y", None, 2), Err(WorktreeProblem::FolderExists(_))));
    assert!(matches!(all.make(&rig.work(), "--force", None, 2), Err(WorktreeProblem::BadBranch)));
    assert!(matches!(all.make(&rig.work(), "a\u{202e}b", None, 2), Err(WorktreeProblem::BadBranch)));
    assert!(matches!(all.make(&rig.work(), "b", Some("nothing"), 2), Err(WorktreeProblem::BadBase)));
    assert!(matches!(all.make(rig.base(), "b", None, 2), Err(WorktreeProblem::NoRepository(_))));
    assert_eq!(branches(&rig), "feature/x\nmain\n");
    all.remove(&made.entry.path, true, None).unwrap();
    assert_eq!(branches(&rig), "main\n");
    assert!(!rig.base().join("work.worktrees").exists() && all.list().unwrap().is_empty());
    assert_eq!(all.remove(&made.entry.path, true, None), Err(WorktreeProblem::Unknown));
}

#[test]
fn consent_names_the_content_that_would_be_lost() {
    let rig = Rig::committed(&[("a.txt", b"a\n")]);
    let all = worktrees(&rig);
    let path = all.make(&rig.work(), "b", None, 1).unwrap().entry.path;
    all.keep(&path).unwrap();
    std::fs::write(path.join("a.txt"), "b\n").unwrap();
    std::fs::create_dir(path.join("data")).unwrap();
    std::fs::write(path.join("data/one.txt"), "1\n").unwrap();
    let shown = |with_branch, consent: Option<&str>| match all.remove(&path, with_branch, consent) {
        Err(WorktreeProblem::Unsaved(risk)) => *risk,
        other => panic!("{other:?}"),
    };
    let first = shown(false, None);
    assert_eq!((first.changed, first.files.clone(), first.ahead), (2, vec!["a.txt".into(), "data/".into()], 0));
    // The names stay the same, and the content does not.
    std::fs::write(path.join("data/two.txt"), "2\n").unwrap();
    let second = shown(false, Some(&first.consent));
    std::fs::write(path.join("a.txt"), "c\n").unwrap();
    let third = shown(false, Some(&second.consent));
    user_git(&path, &["add", "a.txt"]);
    user_git(&path, &["commit", "-q", "-m", "saved here only"]);
    let fourth = shown(true, Some(&third.consent));
    assert_eq!((fourth.ahead, fourth.commits.clone()), (1, vec!["saved here only".to_owned()]));
    assert!(path.join("data/two.txt").exists());
    all.remove(&path, true, Some(&fourth.consent)).unwrap();
    assert!(!path.exists());
    assert_eq!(branches(&rig), "main\n");
}

#[test]
fn worktree_that_was_not_kept_is_removed_at_the_next_start() {
    let rig = Rig::committed(&[("a", b"a\n")]);
    for (nth, kill) in ["after the note", "without files", "whole"].into_iter().enumerate() {
        let branch = format!("b{nth}");
        let all = worktrees(&rig);
        let path = all.make(&rig.work(), &branch, None, 1).unwrap().entry.path;
        match kill {
            "after the note" => {
                user_git(&rig.work(), &["worktree", "remove", "--force", path.to_str().unwrap()]);
                rig.user_git(&["branch", "-D", &branch]);
            }
            "without files" => {
                std::fs::remove_file(path.join("a")).unwrap();
                std::fs::remove_file(rig.path(&format!(".git/worktrees/{branch}/HEAD"))).unwrap();
            }
            _ => {}
        }
        let next = worktrees(&rig);
        assert_eq!(next.recover(&|_| false).unwrap(), [], "{kill}");
        assert!(!path.exists() && next.list().unwrap().is_empty(), "{kill}");
        assert_eq!(branches(&rig), "main\n", "{kill}");
        assert!(!rig.base().join("work.worktrees").exists(), "{kill}");
    }
    // A folder that somebody made in its place stays, and so does a branch with commits.
    let path = worktrees(&rig).make(&rig.work(), "b", None, 1).unwrap().entry.path;
    rig.user_git(&["worktree", "remove", "--force", path.to_str().unwrap()]);
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("mine"), "x").unwrap();
    rig.user_git(&["checkout", "-q", "b"]);
    rig.commit();
    worktrees(&rig).recover(&|_| false).unwrap();
    assert!(path.join("mine").exists() && branches(&rig).contains("b\n"));
}

#[test]
fn worktree_that_cannot_be_made_leaves_nothing() {
    let rig = Rig::committed(&[("a", b"a\n")]);
    let all = worktrees(&rig);
    // The object of the only file is damaged: the checkout fails.
    let name = String::from_utf8(rig.user_git(&["rev-parse", "HEAD:a"])).unwrap();
    let object = rig.path(&format!(".git/objects/{}/{}", &name[..2], name[2..].trim()));
    std::fs::remove_file(&object).unwrap();
    std::fs::write(object, "damaged").unwrap();
    assert!(matches!(all.make(&rig.work(), "b", None, 1), Err(WorktreeProblem::Folder(_))));
    assert!(!rig.base().join("work.worktrees").exists() && all.list().unwrap().is_empty());
    assert_eq!(branches(&rig), "main\n");
}

#[test]
fn worktree_runs_nothing_that_the_repository_configures() {
    let rig = Rig::committed(&[("a", b"a\n"), (".gitattributes", b"* filter=evil\n")]);
    let (evil, ran) = (rig.base().join("evil"), rig.base().join("ran"));
    std::fs::write(&evil, format!("#!/bin/sh\necho $0 >> {}\ncat\n", ran.display())).unwrap();
    std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    for hook in ["post-checkout", "post-index-change", "reference-transaction"] {
        std::fs::create_dir_all(rig.path(".git/hooks")).unwrap();
        std::fs::copy(&evil, rig.path(".git/hooks").join(hook)).unwrap();
    }
    for key in ["core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "diff.external"] {
        rig.user_git(&["config", key, evil.to_str().unwrap()]);
    }
    std::fs::remove_file(&ran).ok();
    let all = worktrees(&rig);
    let path = all.make(&rig.work(), "b", None, 1).unwrap().entry.path;
    std::fs::write(path.join("a"), "b\n").unwrap();
    let entry = all.list().unwrap().remove(0);
    let risk = all.risk(&entry).unwrap();
    all.keep(&path).unwrap();
    all.remove(&path, true, Some(&risk.consent)).unwrap();
    assert!(!ran.exists(), "{}", std::fs::read_to_string(&ran).unwrap());
}
