//! Tests of scans, moments and lists.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Barrier;

use crate::rig::{Rig, SESSION, children_cpu, user_git};
use crate::{ChangeAuthor, Comparison, FolderStores, MomentKind, OmissionReason, PathStatus, WorkspaceError};

#[test]
fn look_at_a_clean_repository_is_its_tree() {
    let rig = Rig::new();
    rig.user_git(&["init", "-q", "."]);
    // Committed without a conversion, as the folder has it.
    std::fs::write(rig.path(".git/info/attributes"), "* -text\n").unwrap();
    rig.write("a.txt", "one\r\ntwo\n");
    rig.write("d/b", "\0bin");
    rig.write(".gitattributes", "* text eol=crlf\n");
    symlink("a.txt", rig.path("link")).unwrap();
    rig.commit();
    let tree = rig.user_git(&["rev-parse", "HEAD^{tree}"]);
    assert_eq!(format!("{}\n", rig.scan().tree).as_bytes(), tree);
    // The same without what the repository lends.
    let apart = Rig::new();
    for name in ["a.txt", "d/b", ".gitattributes"] {
        apart.write(name, rig.read(name));
    }
    symlink("a.txt", apart.path("link")).unwrap();
    assert_eq!(apart.scan().tree, rig.scan().tree);
}

#[test]
fn look_leaves_out_ignored_files_of_all_levels() {
    let rig = Rig::new();
    user_git(rig.base(), &["init", "-q", "."]);
    std::fs::write(rig.base().join(".gitignore"), "*.o\n/work/out\n/other\n").unwrap();
    std::fs::write(rig.base().join(".git/info/exclude"), "secret\n").unwrap();
    for name in ["x.o", "out/y", "secret", "kept", "d/x.o", "d/skip", "other"] {
        rig.write(name, "x");
    }
    rig.write("d/.gitignore", "skip\n");
    rig.begin();
    let tree = rig.scan().tree.to_string();
    let names = rig.store().run(20, &["ls-tree", "-r", "--name-only", &tree], None).unwrap();
    assert_eq!(names.line(), "d/.gitignore\nkept\nother");
}

#[test]
fn look_keeps_bytes_whatever_attributes_say() {
    let rig = Rig::new();
    rig.write(".gitattributes", "* text eol=crlf ident filter=evil working-tree-encoding=UTF-16 -diff\n");
    rig.begin();
    let bytes = b"a\nb\r\n$Id$\nc";
    rig.write("a", bytes);
    let changes = rig.changes();
    let side = changes.at(b"a").unwrap().file.new.unwrap();
    assert_eq!(rig.store().blob(side.name).unwrap(), bytes);
    assert_eq!(changes.at(b"a").unwrap().file.lines, Some((4, 0)));
}

#[test]
fn look_names_what_it_does_not_keep() {
    let rig = Rig::new();
    let large = std::fs::File::create(rig.path("large")).unwrap();
    large.set_len(crate::KEPT_FILE_MAX + 1).unwrap();
    rig.write("nested/file", "x");
    user_git(&rig.path("nested"), &["init", "-q", "."]);
    rustix::fs::mkfifoat(rustix::fs::CWD, rig.path("pipe"), rustix::fs::Mode::RUSR).unwrap();
    rig.write("a", "a\n");
    rig.begin();
    let scan = rig.scan();
    let expected =
        [(OmissionReason::Large, 1, vec!["large".to_owned()]), (OmissionReason::Nested, 1, vec!["nested".to_owned()])];
    assert_eq!(scan.omitted, expected);
    assert_eq!(rig.listed(), Vec::<String>::new(), "it is unknown, and not absent");
    user_git(&rig.path("nested"), &["add", "file"]);
    large.set_len(crate::KEPT_FILE_MAX + 2).unwrap();
    rig.write("a", "b\n");
    assert_eq!(rig.listed(), ["M a", "M large", "M nested"]);
    let changes = rig.changes();
    assert_eq!(changes.at(b"large").unwrap().file.compared, Comparison::Large);
    assert_eq!(changes.at(b"nested").unwrap().file.compared, Comparison::Nested);
    assert!(matches!(rig.undo("large", None), Err(WorkspaceError::NotUndoable(_))));
    // It is kept once it is small, and how it was stays unknown.
    large.set_len(3).unwrap();
    assert!(matches!(rig.undo("large", None), Err(WorkspaceError::NotUndoable(_))));
    let patch = rig.store().whole_patch(changes.old, rig.scan().tree, None).unwrap();
    assert_eq!(patch.left_out, [b"large".to_vec(), b"nested".to_vec()]);
}

#[test]
fn look_is_shared_by_callers_of_one_moment() {
    let rig = Rig::committed(&[("a", b"a")]);
    let store = rig.store();
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                store.scan().unwrap()
            });
        }
    });
    assert!((1..=3).contains(&store.scans_made()), "{}", store.scans_made());
    rig.write("a", "b");
    let before = store.scan().unwrap();
    rig.write("a", "c");
    assert_ne!(store.scan().unwrap(), before, "a scan begins after the call");
}

#[test]
fn state_folder_in_the_folder_is_left_out() {
    let rig = Rig::new();
    rig.write("a", "a");
    let stores = FolderStores::new(&rig.path("my state"));
    let store = stores.open(&rig.work()).unwrap();
    store.scan().unwrap();
    let again = store.scan().unwrap();
    let names = store.run(20, &["ls-tree", "-r", "--name-only", &again.tree.to_string()], None).unwrap();
    assert_eq!(names.line(), "a");
    assert_eq!(stores.open(&rig.path("my state/workspaces")).unwrap_err(), WorkspaceError::Private);
}

#[test]
fn store_of_another_process_is_in_use() {
    let rig = Rig::new();
    let _held = rig.store();
    let other = FolderStores::new(&rig.base().join("state"));
    assert_eq!(other.open(&rig.work()).unwrap_err(), WorkspaceError::InUse);
}

#[test]
fn store_opens_after_a_kill_at_any_moment() {
    let rig = Rig::committed(&[("a", b"a\n")]);
    rig.begin();
    rig.run("r_1", |rig| rig.write("a", "b\n"));
    let place = rig.store().directory.clone();
    let tree = rig.scan().tree;
    for name in ["index.lock", "HEAD.lock", "refs/sessions/x.lock", "objects/aa/tmp_obj_x", "gc.pid"] {
        std::fs::create_dir_all(place.join(name).parent().unwrap()).unwrap();
        std::fs::write(place.join(name), "").unwrap();
    }
    std::fs::create_dir_all(place.with_extension("new").join("objects")).unwrap();
    std::fs::write(place.join("index"), b"DIRC\0\0half").unwrap();
    // Half a line of a moment.
    let moments = place.join("sessions").join(SESSION).join("moments");
    let mut text = std::fs::read(&moments).unwrap();
    text.extend(b"{\"kind\":");
    std::fs::write(&moments, text).unwrap();
    assert_eq!(rig.scan().tree, tree);
    assert_eq!(rig.listed(), ["M a"]);
    rig.run("r_2", |rig| rig.write("b", "b\n"));
    assert_eq!(rig.changes().runs.len(), 2);
    // A store that was not finished is made again.
    let other = Rig::new();
    let state = other.base().join("state/workspaces");
    let key = { other.store().directory.clone() };
    std::fs::remove_file(key.join("HEAD")).unwrap();
    assert!(state.is_dir() && other.try_store().is_ok());
    assert!(other.store().scan().is_ok());
}

#[test]
fn moments_that_cannot_be_read_are_not_absent() {
    let rig = Rig::new();
    rig.begin();
    let moments = rig.store().directory.join("sessions").join(SESSION).join("moments");
    std::fs::write(moments, "not json\n").unwrap();
    assert!(matches!(rig.store().changes(SESSION, None, &rig.scan()), Err(WorkspaceError::Damaged(_))));
}

#[test]
fn session_that_is_forgotten_gives_its_disk_back() {
    let rig = Rig::new();
    rig.begin();
    let store = rig.store();
    assert!(store.has_moments(SESSION).unwrap());
    rig.run("r_1", |rig| rig.write("a", "b\n"));
    let refs = |prefix: &str| store.run(20, &["for-each-ref", prefix], None).unwrap().stdout.len();
    assert!(refs("refs/sessions") > 0);
    store.maintain().unwrap();
    assert_eq!(rig.listed(), ["A a"]);
    store.forget(SESSION).unwrap();
    store.forget(SESSION).unwrap();
    assert_eq!((refs("refs/sessions"), store.has_moments(SESSION).unwrap()), (0, false));
    assert_eq!(store.changes(SESSION, None, &rig.scan()).unwrap_err(), WorkspaceError::NoBase);
    for bad in ["", "../x", "a/b", "-x", "a b"] {
        assert!(matches!(store.forget(bad), Err(WorkspaceError::BadId(_))), "{bad:?}");
    }
}

#[test]
fn maintenance_makes_the_store_independent_of_the_repository() {
    let rig = Rig::committed(&[("a", b"old\n"), ("b", b"b\n")]);
    rig.begin();
    rig.write("a", "new\n");
    rig.store().maintain().unwrap();
    std::fs::remove_dir_all(rig.path(".git")).unwrap();
    assert_eq!(rig.listed(), ["M a"]);
    rig.undo("a", None).unwrap();
    assert_eq!(rig.read("a"), b"old\n");
}

#[test]
fn objects_that_are_gone_make_a_file_unreadable() {
    let rig = Rig::committed(&[("a", b"old\n")]);
    rig.begin();
    rig.write("a", "new\n");
    rig.write("b", "b\n");
    let name = String::from_utf8(rig.user_git(&["rev-parse", "HEAD:a"])).unwrap();
    std::fs::remove_file(rig.path(&format!(".git/objects/{}/{}", &name[..2], name[2..].trim()))).unwrap();
    let changes = rig.changes();
    assert_eq!(changes.at(b"a").unwrap().file.compared, Comparison::Unreadable);
    assert_eq!(changes.at(b"b").unwrap().file.lines, Some((1, 0)), "the others are counted");
    assert!(matches!(rig.undo("a", None), Err(WorkspaceError::NotUndoable(_))));
}

#[test]
fn repository_made_and_committed_by_the_agent_hides_nothing() {
    let rig = Rig::new();
    rig.write("mine", "x\n");
    rig.begin();
    rig.run("r_1", |rig| {
        rig.user_git(&["init", "-q", "."]);
        rig.write("app.js", "x\n");
        rig.commit();
    });
    rig.run("r_2", |_| {});
    assert_eq!(rig.listed(), ["A app.js"]);
    // A base is taken once.
    rig.mark(MomentKind::Base, 99);
    assert_eq!(rig.listed(), ["A app.js"]);
    assert!(!rig.changes().late);
}

#[test]
fn base_of_a_session_that_begins_with_a_run_is_late_for_ever() {
    let rig = Rig::new();
    rig.run("r_1", |rig| rig.write("a", "x\n"));
    rig.mark(MomentKind::Base, 9);
    assert!(rig.changes().late);
    assert_eq!(rig.listed(), ["A a"]);
}

#[test]
fn uncommitted_files_of_any_number_are_not_added() {
    let rig = Rig::new();
    for nth in 0..3000 {
        rig.write(&format!("data/{nth}"), format!("{nth}\n"));
    }
    rig.begin();
    rig.run("r_1", |rig| rig.write("hello", "x\n"));
    assert_eq!(rig.listed(), ["A hello"]);
}

#[test]
fn files_below_an_unlisted_folder_are_never_added() {
    let rig = Rig::new();
    rig.write("d/a", "x");
    if rustix::process::geteuid().is_root() {
        // Root can list every folder; the warning of git is given instead.
        let store = rig.store();
        let mut scan = store.scan().unwrap();
        std::fs::remove_file(rig.path("d/a")).unwrap();
        scan.tree = store.scan().unwrap().tree;
        scan.unlisted = vec!["d/".into()];
        rig.mark_scan(MomentKind::Base, 1, &scan);
        rig.write("d/a", "x");
    } else {
        std::fs::set_permissions(rig.path("d"), std::fs::Permissions::from_mode(0o000)).unwrap();
        rig.begin();
        std::fs::set_permissions(rig.path("d"), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(rig.listed(), Vec::<String>::new());
}

#[test]
fn repository_with_sha_256_names_is_looked_at() {
    let rig = Rig::new();
    rig.user_git(&["init", "-q", "--object-format=sha256", "."]);
    rig.write("a", "old\n");
    rig.commit();
    rig.begin();
    assert_eq!(rig.listed(), Vec::<String>::new());
    rig.write("a", "new\n");
    assert_eq!(rig.listed(), ["M a"]);
    rig.undo("a", None).unwrap();
    assert_eq!(rig.read("a"), b"old\n");
}

#[test]
fn large_file_of_a_copied_repository_is_no_change() {
    let rig = Rig::committed(&[("big", &vec![7; 3 << 20]), ("a", b"a\n")]);
    let copy = Rig::new();
    let status = std::process::Command::new("cp").args(["-rT"]).arg(rig.work()).arg(copy.work()).status().unwrap();
    assert!(status.success());
    copy.begin();
    copy.run("r_1", |copy| drop(copy.user_git(&["status"])));
    assert_eq!(copy.listed(), Vec::<String>::new());
    copy.write("big", vec![8; 3 << 20]);
    assert_eq!(copy.changes().at(b"big").unwrap().file.compared, Comparison::Large);
}

#[test]
fn entries_that_the_repository_hides_are_seen() {
    let rig = Rig::committed(&[("a", b"a\n"), ("b", b"b\n")]);
    rig.user_git(&["update-index", "--assume-unchanged", "a"]);
    rig.user_git(&["update-index", "--skip-worktree", "b"]);
    rig.begin();
    rig.write("a", "other\n");
    rig.write("b", "other\n");
    assert_eq!(rig.listed(), ["M a", "M b"]);
}

#[test]
fn list_names_authors_runs_and_renames() {
    let long: String = (0..50).map(|nth| format!("line {nth}\n")).collect();
    let rig = Rig::committed(&[("moved", long.as_bytes()), ("both", b"1\n"), ("mode", b"x\n"), ("gone", b"gone\n")]);
    rig.begin();
    rig.run("r_1", |rig| {
        rig.write("both", "2\n");
        std::fs::rename(rig.path("moved"), rig.path("here")).unwrap();
        std::fs::set_permissions(rig.path("mode"), std::fs::Permissions::from_mode(0o755)).unwrap();
    });
    rig.write("both", "3\n");
    rig.write("theirs", "x\n");
    rig.run("r_2", |rig| std::fs::remove_file(rig.path("gone")).unwrap());
    rig.write("late", "late\n");
    let changes = rig.changes();
    let of = |path: &str| {
        let change = changes.at(path.as_bytes()).unwrap();
        (change.file.status, change.by, change.runs.join(","), change.file.lines)
    };
    use ChangeAuthor::{Both, Others, Session};
    assert_eq!(of("both"), (PathStatus::Modified, Both, "r_1".into(), Some((1, 1))));
    assert_eq!(of("here"), (PathStatus::Renamed, Session, "r_1".into(), Some((0, 0))));
    assert_eq!(changes.at(b"here").unwrap().file.from.as_deref(), Some(&b"moved"[..]));
    assert_eq!(of("mode"), (PathStatus::Modified, Session, "r_1".into(), Some((0, 0))));
    assert_eq!(of("gone"), (PathStatus::Deleted, Session, "r_2".into(), Some((0, 1))));
    assert_eq!(of("theirs"), (PathStatus::Added, Others, String::new(), Some((1, 0))));
    assert_eq!(of("late"), (PathStatus::Added, Others, String::new(), Some((1, 0))));
    let runs: Vec<(&str, usize)> = changes.runs.iter().map(|run| (run.run.as_str(), run.files)).collect();
    assert_eq!(runs, [("r_1", 4), ("r_2", 1)]);
    let second = rig.changes_of(Some("r_2"));
    assert_eq!(second.files.len(), 1);
    assert_eq!(second.at(b"gone").unwrap().by, Session);
    let store = rig.store();
    assert_eq!(store.changes(SESSION, Some("r_9"), &rig.scan()).unwrap_err(), WorkspaceError::NoRun);
    // Reopened, the same is known.
    drop(store);
    assert_eq!(rig.changes(), changes);
}

#[test]
fn patch_of_all_files_is_taken_by_git() {
    let rig = Rig::committed(&[("a b", b"1\n"), ("bin", b"\0one"), ("gone", b"x"), ("crlf", b"a\r\nb\r\n")]);
    rig.begin();
    rig.write("a b", "2\n");
    rig.write("bin", b"\0two\xff");
    rig.write("crlf", b"a\r\nc\n");
    rig.write("new\nline ä", "x");
    std::fs::remove_file(rig.path("gone")).unwrap();
    let changes = rig.changes();
    let patch = rig.store().whole_patch(changes.old, changes.new, None).unwrap();
    assert_eq!(patch.left_out, Vec::<Vec<u8>>::new());
    std::fs::write(rig.base().join("patch"), &patch.bytes).unwrap();
    rig.user_git(&["apply", "-R", "--whitespace=nowarn", "../patch"]);
    assert_eq!(rig.user_git(&["status", "--porcelain"]), b"");
    assert_eq!(rig.read("crlf"), b"a\r\nb\r\n");
}

#[test]
fn list_and_patches_have_bounds() {
    let rig = Rig::new();
    rig.begin();
    for nth in 0..crate::LISTED_FILES + 5 {
        rig.write(&format!("f/{nth}"), "x\n");
    }
    let line = "0123456789abcdef\n";
    rig.write(
        "apart",
        (0..50_000).map(|nth| if nth % 10 == 0 { format!("{nth}\n") } else { line.into() }).collect::<String>(),
    );
    let changes = rig.changes();
    assert_eq!((changes.files.len(), changes.left_off), (crate::LISTED_FILES, 6));
    let patch = rig.store().file_patch(changes.old, changes.new, &changes.at(b"apart").unwrap().file).unwrap();
    assert!(patch.truncated && patch.hunks().is_empty() && patch.bytes().len() < crate::FILE_PATCH_MAX);
    assert_eq!(patch.diff(), b"");
}

#[test]
fn list_of_many_runs_and_files_is_cheap() {
    let rig = Rig::new();
    for nth in 0..1500 {
        rig.write(&format!("data/{nth}"), format!("{nth}\n"));
    }
    rig.begin();
    let runs = if std::env::var("PLEXUS_ROUNDS").is_ok_and(|rounds| rounds == "full") { 300 } else { 40 };
    let store = rig.store();
    let mut scan = store.scan().unwrap();
    for run in 0..runs {
        rig.mark_scan(MomentKind::RunStart(format!("r_{run}")), 1, &scan);
        rig.write(&format!("data/{}", run * 5), format!("run {run}\n"));
        scan = store.scan().unwrap();
        rig.mark_scan(MomentKind::RunEnd(format!("r_{run}")), 1, &scan);
    }
    rig.write("data/1", "late\n");
    let scan = rig.scan();
    drop(store);
    let store = rig.store();
    let (children, began) = (children_cpu(), std::time::Instant::now());
    let changes = store.changes(SESSION, None, &scan).unwrap();
    let (took, cpu) = (began.elapsed(), children_cpu() - children);
    assert_eq!((changes.files.len(), changes.runs.len()), (runs + 1, runs));
    println!("a list of {runs} runs: {took:?}, children {cpu:.2} s");
    let began = std::time::Instant::now();
    store.changes(SESSION, None, &scan).unwrap();
    println!("the same again: {:?}", began.elapsed());
}

#[test]
fn look_at_a_large_repository_is_cheap() {
    let full = std::env::var("PLEXUS_ROUNDS").is_ok_and(|rounds| rounds == "full");
    let rig = Rig::new();
    rig.user_git(&["init", "-q", "."]);
    for folder in 0..if full { 600 } else { 10 } {
        (0..100).for_each(|nth| rig.write(&format!("d{folder}/e/{nth}"), format!("{folder} {nth}\n")));
    }
    rig.commit();
    let store = rig.store();
    for name in ["first look, borrowed", "the same", "one file changed", "a large file"] {
        match name {
            "one file changed" => rig.write("d1/e/1", "changed\n"),
            "a large file" => std::fs::File::create(rig.path("large")).unwrap().set_len(9 << 20).unwrap(),
            _ => {}
        }
        let (children, began) = (children_cpu(), std::time::Instant::now());
        store.scan().unwrap();
        println!("{name}: {:?}, children {:.2} s", began.elapsed(), children_cpu() - children);
    }
}

#[test]
fn session_of_a_folder_that_is_gone_is_forgotten() {
    let rig = Rig::new();
    let folder = rig.work().canonicalize().unwrap();
    rig.write("a", "x");
    rig.begin();
    let stores = rig.stores();
    stores.forget(&folder, "s_other").unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    stores.forget(&folder, SESSION).unwrap();
    let kept = std::fs::read_dir(rig.base().join("state/workspaces")).unwrap();
    let folders = kept.flatten().filter(|entry| entry.path().is_dir()).count();
    assert_eq!(folders, 0);
    stores.forget(&folder, SESSION).unwrap();
}

#[test]
fn rules_that_cannot_be_read_leave_out_their_folder_alone() {
    let rig = Rig::new();
    rig.write("a", "x");
    rig.write("d/b", "x");
    let pipe = |name: &str| {
        let path = rig.path(name);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    };
    let listed = |scan: &crate::FolderScan| {
        let tree = scan.tree.to_string();
        rig.store().run(20, &["ls-tree", "-r", "--name-only", &tree], None).unwrap().line()
    };
    rig.begin();
    pipe("d/.gitignore");
    let (store, scan) = (rig.store(), rig.scan());
    assert_eq!((listed(&scan).as_str(), scan.unlisted), ("a\nd/b", vec!["d/.gitignore".to_owned()]));
    rig.write("c", "x");
    assert_eq!(listed(&rig.scan()), "a\nc\nd/b");
    pipe(".gitignore");
    assert_eq!(listed(&rig.scan()), "a\nc\nd/b");
    std::fs::remove_file(rig.path(".gitignore")).unwrap();
    std::fs::remove_file(rig.path("d/.gitignore")).unwrap();
    rig.write("d/e", "x");
    let scan = rig.scan();
    assert_eq!((listed(&scan).as_str(), scan.unlisted), ("a\nc\nd/b\nd/e", vec![]));
    drop(store);
}
