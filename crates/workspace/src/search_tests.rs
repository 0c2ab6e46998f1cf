//! Tests of the files of a folder, and of the projects of folders.

use std::os::unix::fs::symlink;

use crate::rig::{Rig, user_git};
use crate::{CachedWalks, files_of, project_of};

fn paths(rig: &Rig) -> Vec<String> {
    files_of(&rig.work()).unwrap().paths
}

#[test]
fn walk_has_the_nearest_files_and_leaves_out_ignored_ones() {
    let rig = Rig::committed(&[("b", b""), ("a/z", b""), ("a/b/c", b""), (".hidden", b""), ("node_modules/x", b"")]);
    rig.write(".gitignore", "node_modules\n*.o\n!keep.o\n");
    rig.write("a/.ignore", "z\n");
    rig.write("x.o", "");
    rig.write("keep.o", "");
    symlink("b", rig.path("link")).unwrap();
    symlink("/", rig.path("root")).unwrap();
    assert_eq!(paths(&rig), ["b", "keep.o", "a/b/c"]);
    assert_eq!(files_of(&rig.path("a")).unwrap().paths, ["b/c"]);
    std::fs::write(rig.path(".git/info/exclude"), "b\n").unwrap();
    assert_eq!(paths(&rig), ["keep.o"]);
}

#[test]
fn walk_opens_no_pipe_and_no_link_for_rules() {
    let rig = Rig::new();
    rig.write("d/a", "");
    rustix::fs::mkfifoat(rustix::fs::CWD, rig.path(".gitignore"), rustix::fs::Mode::RUSR).unwrap();
    symlink("/dev/zero", rig.path("d/.gitignore")).unwrap();
    assert_eq!(paths(&rig), ["d/a"]);
}

#[test]
fn walk_is_used_again_for_seconds() {
    let rig = Rig::new();
    let kept = CachedWalks::default();
    rig.write("one", "");
    assert_eq!(kept.files(&rig.work()).unwrap().paths, ["one"]);
    rig.write("two", "");
    assert_eq!(kept.files(&rig.work()).unwrap().paths, ["one"]);
    for nth in 0..20 {
        std::fs::create_dir(rig.base().join(format!("{nth}"))).unwrap();
        kept.files(&rig.base().join(format!("{nth}"))).unwrap();
    }
    assert_eq!(kept.files(&rig.work()).unwrap().paths, ["one", "two"]);
    assert!(kept.files(&rig.path("missing")).is_err());
}

#[test]
fn files_that_fit_best_come_first() {
    let rig = Rig::new();
    for name in
        ["README.md", "src/main.rs", "src/sessions/mod.rs", "docs/maintenance.md", "src/Main.java", "zz/readme.txt"]
    {
        rig.write(name, "");
    }
    let files = files_of(&rig.work()).unwrap();
    for (query, found) in [
        (" ", vec!["README.md", "docs/maintenance.md", "src/Main.java"]),
        ("main", vec!["src/main.rs", "src/Main.java", "docs/maintenance.md"]),
        ("Main", vec!["src/Main.java"]),
        ("sesmod", vec!["src/sessions/mod.rs"]),
        ("src main", vec!["src/main.rs", "src/Main.java"]),
        ("^!'$x", vec![]),
    ] {
        assert_eq!(files.best(query, 3), found, "{query:?}");
    }
}

#[test]
fn project_is_the_repository_the_worktree_or_the_folder() {
    let rig = Rig::committed(&[("d/a", b"")]);
    let of = |path: &std::path::Path| {
        let project = project_of(path);
        (project.name, project.root, project.branch, project.worktree)
    };
    let main = |branch: &str| ("work".to_owned(), rig.work(), Some(branch.to_owned()), None);
    assert_eq!(of(&rig.path("d")), main("main"));
    rig.user_git(&["checkout", "-q", "-b", "fix/one"]);
    assert_eq!(of(&rig.work()), main("fix/one"));
    rig.user_git(&["worktree", "add", "-q", "-b", "two", "../tree"]);
    let tree = rig.base().join("tree");
    assert_eq!(of(&tree.join("d")), ("work".into(), rig.work(), Some("two".into()), Some("tree".into())));
    rig.user_git(&["checkout", "-q", "--detach"]);
    assert_eq!(of(&rig.work()), ("work".into(), rig.work(), None, None));
    user_git(rig.base(), &["init", "-q", "--bare", "bare.git"]);
    user_git(&rig.base().join("bare.git"), &["--git-dir=.", "fetch", "-q", "../work", "main:main"]);
    user_git(&rig.base().join("bare.git"), &["worktree", "add", "-q", "../of-bare", "main"]);
    let bare = ("bare".to_owned(), rig.base().join("bare.git"), Some("main".to_owned()), Some("of-bare".to_owned()));
    assert_eq!(of(&rig.base().join("of-bare")), bare);
    // A `.git` file that its repository does not know is no way into it.
    std::fs::create_dir(rig.base().join("thief")).unwrap();
    std::fs::copy(tree.join(".git"), rig.base().join("thief/.git")).unwrap();
    assert_eq!(of(&rig.base().join("thief")).1, rig.base().join("thief"));
    symlink(rig.path(".git"), rig.base().join("bare.git/.git")).unwrap();
    assert_eq!(of(rig.base()).2, None);
    assert_eq!(of(&rig.base().join("missing")).1, rig.base().join("missing"));
}
