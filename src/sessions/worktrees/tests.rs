use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::*;

struct Place {
    dir: tempfile::TempDir,
    worktrees: Worktrees,
}

fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
    let done = command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let repository = dir.path().join("repo");
    std::fs::create_dir_all(repository.join("sub")).unwrap();
    std::fs::create_dir(dir.path().join("home")).unwrap();
    git(&repository, &["init", "--quiet", "-b", "main"]);
    std::fs::write(repository.join("file"), "one\n").unwrap();
    std::fs::write(repository.join("sub/inner"), "two\n").unwrap();
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "-m", "first"]);
    let worktrees = Worktrees::new(&dir.path().join("home"));
    Place { dir, worktrees }
}

impl Place {
    fn repository(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("repo")
    }

    fn at(&self, branch: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("repo.worktrees").join(branch)
    }

    async fn make(&self, branch: &str, base: Option<&str>) -> Result<MadeWorktree, WorktreeError> {
        let wanted = NewWorktree { branch: branch.into(), base: base.map(Into::into) };
        self.worktrees.make(&self.repository().join("sub"), &wanted).await
    }

    /// What there is besides the repository and the state folder.
    fn is_untouched(&self) -> bool {
        let branches = git(&self.repository(), &["branch", "--format=%(refname:short)"]);
        branches == "main"
            && !self.dir.path().join("repo.worktrees").exists()
            && self.worktrees.read().unwrap().is_empty()
    }
}

#[tokio::test]
async fn worktree_is_made_listed_and_removed_with_its_branch_kept() {
    let place = place();
    let made = place.make("feature/x", None).await.unwrap();
    assert_eq!(made.cwd(), place.at("feature/x/sub"));
    made.keep();
    assert_eq!(std::fs::read_to_string(place.at("feature/x/file")).unwrap(), "one\n");
    assert_eq!(git(&place.at("feature/x"), &["status", "--porcelain"]), "");
    let all = place.worktrees.list().await.unwrap();
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((one.branch.as_str(), one.missing, &one.problem), ("feature/x", false, &None));
    let unsaved = one.unsaved.as_ref().unwrap();
    assert_eq!((unsaved.changed, unsaved.ahead), (0, 0));
    place.worktrees.remove(&place.at("feature/x"), false, None).await.unwrap();
    assert!(!place.dir.path().join("repo.worktrees").exists(), "nor the empty folders above it");
    assert_eq!(git(&place.repository(), &["branch", "--format=%(refname:short)"]), "feature/x\nmain");
    assert_eq!(git(&place.repository(), &["worktree", "list"]).lines().count(), 1);
    assert!(place.worktrees.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn worktree_that_cannot_be_made_leaves_nothing_and_says_why() {
    let place = place();
    let refused =
        async |branch: &str, base: Option<&str>| place.make(branch, base).await.map(drop).unwrap_err().to_string();
    assert!(refused("-x", None).await.contains("cannot be the name of a branch"));
    let words = refused("x\u{202e}y", None).await;
    assert!(words.contains("cannot be the name of a branch") && !words.contains('\u{202e}'), "{words}");
    assert!(refused("a", Some("nowhere")).await.starts_with("there is no commit \"nowhere\""));
    assert!(refused("a", Some("--help")).await.starts_with("there is no commit"));
    assert!(refused("main", None).await.starts_with("there is a branch main already: choose another name"));
    // Git itself refuses: a branch cannot lie below another.
    let words = refused("main/x", None).await;
    assert!(words.starts_with("making the worktree: git says: "), "{words}");
    assert!(place.is_untouched());
    std::fs::create_dir_all(place.at("there")).unwrap();
    assert!(refused("there", None).await.contains("repo.worktrees/there exists already"));
    std::fs::remove_dir_all(place.dir.path().join("repo.worktrees")).unwrap();
    std::os::unix::fs::symlink("/tmp", place.dir.path().join("repo.worktrees")).unwrap();
    assert!(refused("linked", None).await.contains("exists already"), "a link leads elsewhere");
    std::fs::remove_file(place.dir.path().join("repo.worktrees")).unwrap();
    let wanted = NewWorktree { branch: "a".into(), base: None };
    for outside in [place.dir.path().join("home"), place.dir.path().join("none")] {
        let error = place.worktrees.make(&outside, &wanted).await.map(drop).unwrap_err();
        assert!(matches!(error, WorktreeError::NoRepository(_)), "{error}");
    }
    assert!(place.is_untouched());
}

#[tokio::test]
async fn worktree_that_is_not_kept_is_undone() {
    let place = place();
    drop(place.make("vain", None).await.unwrap());
    let undone = async {
        while !place.is_untouched() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), undone).await.expect("it is undone");
    // A name is free again.
    place.make("vain", None).await.unwrap().keep();
}

#[tokio::test]
async fn worktree_with_work_is_removed_only_after_it_was_shown() {
    let place = place();
    place.make("work", Some("main")).await.unwrap().keep();
    let path = place.at("work");
    let lost = async |with_branch, lost: Option<&str>| match place.worktrees.remove(&path, with_branch, lost).await {
        Err(WorktreeError::Unsaved(lost)) => *lost,
        other => panic!("{other:?}"),
    };
    std::fs::write(path.join("new file"), "").unwrap();
    std::fs::write(path.join("file"), "changed\n").unwrap();
    let shown = lost(false, None).await;
    assert_eq!(
        (shown.changed, shown.files.as_slice(), shown.ahead),
        (2, ["file".to_owned(), "new file".into()].as_slice(), 0)
    );
    git(&path, &["add", "."]);
    git(&path, &["commit", "--quiet", "-m", "the work"]);
    // What was shown is no longer what would be lost.
    let now = lost(true, Some(&shown.digest)).await;
    assert_eq!((now.changed, now.ahead, now.commits.as_slice()), (0, 1, ["the work".to_owned()].as_slice()));
    assert!(
        WorktreeError::Unsaved(Box::new(now.clone()))
            .to_string()
            .starts_with("this would lose 1 commit on no other branch")
    );
    place.worktrees.remove(&path, true, Some(&now.digest)).await.unwrap();
    assert!(place.is_untouched());
    // With the branch kept, commits are not lost. Nor if the folder is gone.
    place.make("work", None).await.unwrap().keep();
    git(&path, &["commit", "--quiet", "--allow-empty", "-m", "kept"]);
    std::fs::remove_dir_all(&path).unwrap();
    assert!(place.worktrees.list().await.unwrap()[0].missing);
    place.worktrees.remove(&path, true, None).await.unwrap();
    assert_eq!(git(&place.repository(), &["log", "-1", "--format=%s", "work"]), "kept");
    assert!(matches!(place.worktrees.remove(&path, false, None).await, Err(WorktreeError::Unknown(_))));
}

/// A repository that would leave a canary wherever something of it is executed.
fn hostile(place: &Place, canary: &Path) {
    let repository = place.repository();
    let program = |name: &str| {
        let path = place.dir.path().join(name);
        let text = format!("#!/bin/sh\necho {name} >> {}\ncat\n", canary.display());
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let hooks = place.dir.path().join("hooks");
    std::fs::create_dir(&hooks).unwrap();
    for hook in ["post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"] {
        let path = program(hook);
        for folder in [&hooks, &repository.join(".git/hooks")] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::copy(&path, folder.join(hook)).unwrap();
        }
    }
    std::fs::write(repository.join(".gitattributes"), "file filter=plain\nsub/inner filter=late\nlong filter=long\n")
        .unwrap();
    std::fs::write(repository.join("long"), "three\n").unwrap();
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "-m", "attributes"]);
    let set = |name: &str, value: &str| drop(git(&repository, &["config", name, value]));
    for (filter, what) in [("plain", "smudge"), ("plain", "clean"), ("long", "process")] {
        set(&format!("filter.{filter}.{what}"), &program(&format!("{filter}-{what}")));
        set(&format!("filter.{filter}.required"), "true");
    }
    // Settings that hold only in the new worktree.
    let late = place.dir.path().join("late.config");
    let smudge = program("late-smudge");
    std::fs::write(&late, format!("[filter \"late\"]\nsmudge = {smudge}\nclean = {smudge}\nrequired = true\n"))
        .unwrap();
    set("includeIf.onbranch:trap.path", late.to_str().unwrap());
    set("core.fsmonitor", &program("fsmonitor"));
    set("core.sshCommand", &program("ssh"));
    set("core.askPass", &program("askpass"));
    set("credential.helper", &program("credential"));
    set("diff.external", &program("diff"));
    set("core.pager", &program("pager"));
    set("core.hooksPath", hooks.to_str().unwrap());
    // A partial clone would fetch what is missing.
    set("remote.origin.url", "ssh://example.invalid/x");
    set("remote.origin.promisor", "true");
    set("remote.origin.partialCloneFilter", "blob:none");
    set("remote.origin.uploadpack", &program("uploadpack"));
}

#[tokio::test]
async fn worktree_of_a_hostile_repository_executes_nothing_of_it() {
    let place = place();
    let canary = place.dir.path().join("canary");
    hostile(&place, &canary);
    // The plants bite where git is run as it is. It fails then: the filter by a process does not speak as it should.
    let mut plain = Command::new("git");
    plain.arg("-C").arg(place.repository()).args(["worktree", "add", "-b", "bites", "../bites"]).output().unwrap();
    // The hook after a checkout comes only after one that succeeds.
    let calm =
        ["-c", "filter.long.process=", "-c", "filter.long.required=false", "checkout", "--quiet", "-b", "hooked"];
    Command::new("git").arg("-C").arg(place.repository()).args(calm).output().unwrap();
    git(
        &place.repository(),
        &["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "symbolic-ref", "HEAD", "refs/heads/main"],
    );
    let bitten = std::fs::read_to_string(&canary).unwrap();
    for plant in
        ["post-checkout", "post-index-change", "reference-transaction", "fsmonitor", "plain-smudge", "long-process"]
    {
        assert!(bitten.contains(plant), "{plant} is no trap: {bitten}");
    }
    std::fs::remove_dir_all(place.dir.path().join("bites")).ok();
    git(&place.repository(), &["-c", "core.hooksPath=/dev/null", "worktree", "prune"]);
    std::fs::remove_file(&canary).unwrap();

    let made = place.make("trap", None).await.unwrap();
    let sprung = || std::fs::read_to_string(&canary).unwrap_or_default();
    assert_eq!(sprung(), "", "made");
    made.keep();
    assert_eq!(std::fs::read_to_string(place.at("trap/sub/inner")).unwrap(), "two\n", "as it is stored");
    std::fs::write(place.at("trap/file"), "changed\n").unwrap();
    std::fs::write(place.at("trap/sub/inner"), "changed\n").unwrap();
    let all = place.worktrees.list().await.unwrap();
    assert_eq!(sprung(), "", "listed");
    let unsaved = all[0].unsaved.clone().unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!(unsaved.changed, 2, "{unsaved:?}");
    place.worktrees.remove(&place.at("trap"), true, Some(&unsaved.digest)).await.unwrap();
    assert_eq!(sprung(), "", "removed");
    // An object is missing: nothing is fetched, and nothing is left.
    let blob = git(&place.repository(), &["-c", "core.fsmonitor=false", "rev-parse", "HEAD:long"]);
    std::fs::remove_file(&canary).ok();
    std::fs::remove_file(place.repository().join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    let error = place.make("partial", None).await.map(drop).unwrap_err();
    assert!(matches!(error, WorktreeError::Git { doing: "checking out the files", .. }), "{error}");
    assert_eq!(sprung(), "", "not fetched");
    assert!(!place.at("partial").exists());
}
