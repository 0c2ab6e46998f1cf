//! Folders, repositories and stores for tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::{
    FolderScan, FolderStore, FolderStores, MomentKind, NewMoment, SessionChanges, UndoOrder, UndoResult, WorkspaceError,
};

/// The session of most tests.
pub(crate) const SESSION: &str = "s_one";

/// A working folder and a state folder.
pub(crate) struct Rig {
    dir: tempfile::TempDir,
    stores: FolderStores,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        let stores = FolderStores::new(&dir.path().join("state"));
        Self { dir, stores }
    }

    /// Makes a rig whose folder is a repository with one commit of `files`.
    pub(crate) fn committed(files: &[(&str, &[u8])]) -> Self {
        let rig = Self::new();
        rig.user_git(&["init", "-q", "."]);
        files.iter().for_each(|(path, content)| rig.write(path, content));
        rig.commit();
        rig
    }

    pub(crate) fn commit(&self) {
        self.user_git(&["add", "-A"]);
        self.user_git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn base(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Runs git as the user or the agent does.
    pub(crate) fn user_git(&self, args: &[&str]) -> Vec<u8> {
        user_git(&self.work(), args)
    }

    pub(crate) fn store(&self) -> Arc<FolderStore> {
        self.stores.open(&self.work()).unwrap()
    }

    pub(crate) fn stores(&self) -> &FolderStores {
        &self.stores
    }

    pub(crate) fn try_store(&self) -> Result<Arc<FolderStore>, WorkspaceError> {
        self.stores.open(&self.work())
    }

    pub(crate) fn scan(&self) -> FolderScan {
        self.store().scan().unwrap()
    }

    pub(crate) fn mark(&self, kind: MomentKind, at: i64) {
        let store = self.store();
        self.mark_scan(kind, at, &store.scan().unwrap());
    }

    pub(crate) fn mark_scan(&self, kind: MomentKind, at: i64, scan: &FolderScan) {
        self.store().mark(SESSION, NewMoment { kind, at, note: "", late: false }, scan).unwrap();
    }

    pub(crate) fn begin(&self) {
        self.mark(MomentKind::Base, 1);
    }

    /// Records a run that does `work`.
    pub(crate) fn run(&self, name: &str, work: impl FnOnce(&Self)) {
        self.mark(MomentKind::RunStart(name.into()), 2);
        work(self);
        self.mark(MomentKind::RunEnd(name.into()), 3);
    }

    pub(crate) fn changes(&self) -> SessionChanges {
        self.changes_of(None)
    }

    pub(crate) fn changes_of(&self, run: Option<&str>) -> SessionChanges {
        let store = self.store();
        store.changes(SESSION, run, &store.scan().unwrap()).unwrap()
    }

    /// Returns the paths in the list, with the first letter of their status.
    pub(crate) fn listed(&self) -> Vec<String> {
        let of = |change: &crate::SessionChange| {
            let letter = format!("{:?}", change.file.status);
            format!("{} {}", &letter[..1], crate::display_path(&change.file.path))
        };
        self.changes().files.iter().map(of).collect()
    }

    pub(crate) fn undo(&self, path: &str, hunk: Option<usize>) -> Result<UndoResult, WorkspaceError> {
        undo_shown(&self.store(), &self.changes(), path, hunk)
    }
}

pub(crate) fn undo_shown(
    store: &FolderStore,
    changes: &SessionChanges,
    path: &str,
    hunk: Option<usize>,
) -> Result<UndoResult, WorkspaceError> {
    let digest = changes.at(path.as_bytes())?.file.digest();
    let patch_id = format!("p_{}", store.undone(SESSION).unwrap().len());
    let order = UndoOrder {
        session: SESSION,
        patch_id: &patch_id,
        path: path.as_bytes(),
        digest: &digest,
        hunk,
        at: 9,
        note: "{}",
    };
    store.undo(changes, &order)
}

pub(crate) fn user_git(folder: &Path, args: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=u", "-c", "user.email=u@example.org", "-c", "init.defaultBranch=main"]);
    command.args(args).current_dir(folder).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Applies a patch backwards with git.
pub(crate) fn apply_reverse(folder: &Path, name: &str, content: &[u8], patch: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    std::fs::write(folder.join(name), content).unwrap();
    let mut command = Command::new("git");
    command.args(["apply", "-R", "--whitespace=nowarn", "-"]).current_dir(folder).stdin(std::process::Stdio::piped());
    let mut child = command.env("GIT_CONFIG_GLOBAL", "/dev/null").spawn().unwrap();
    child.stdin.take().unwrap().write_all(patch).unwrap();
    assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(patch));
    std::fs::read(folder.join(name)).unwrap()
}

/// Returns the processor time of the children that have ended, in seconds.
pub(crate) fn children_cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text[text.rfind(')').unwrap()..].split_whitespace().collect();
    // cutime and cstime, in ticks of 10 ms.
    (fields[14].parse::<f64>().unwrap() + fields[15].parse::<f64>().unwrap()) / 100.0
}
