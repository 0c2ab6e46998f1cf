//! Linking and unlinking with real files.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::settings::cases_tests::{CASES, EDITED};
use crate::settings::{LINKED_AGENTS, LinkError, LinkState, LinkedAgent, Linker, linked_agent};

/// A home folder, with a state folder beside it.
struct Person {
    dir: tempfile::TempDir,
}

impl Person {
    fn new() -> Self {
        let person = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(person.at("")).unwrap();
        person
    }

    /// Returns a path below the home folder.
    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join("home").join(name)
    }

    fn linker(&self) -> Linker {
        // A program that is there.
        let program = self.dir.path().join("plexus");
        self.linker_of(&program)
    }

    fn linker_of(&self, program: &Path) -> Linker {
        if !program.exists() {
            std::fs::create_dir_all(program.parent().unwrap()).unwrap();
            self.write(program, "");
            std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
        }
        Linker::new(&self.at(""), &self.dir.path().join("state"), program, |_| None).unwrap()
    }

    fn write(&self, path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Returns all files below the home folder: path, and text or the target of a link.
    fn files(&self) -> Vec<(PathBuf, String)> {
        let mut all = Vec::new();
        let mut left = vec![self.at("")];
        while let Some(dir) = left.pop() {
            for entry in std::fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                let text = match (meta.is_symlink(), meta.is_dir()) {
                    (true, _) => format!("-> {}", path.read_link().unwrap().display()),
                    (_, true) => "folder".into(),
                    _ => String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned(),
                };
                if meta.is_dir() {
                    left.push(path.clone());
                }
                all.push((path, text));
            }
        }
        all.sort();
        all
    }

    /// Returns the files that are left in the state folder.
    fn records(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.dir.path().join("state/link")).into_iter().flatten();
        let mut names: Vec<String> = names.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn agent(name: &str) -> &'static LinkedAgent {
    linked_agent(name).unwrap()
}

fn link(linker: &Linker, name: &str) -> Result<(), LinkError> {
    linker.apply(&linker.plan_link(agent(name))?)
}

fn unlink(linker: &Linker, name: &str) -> Result<(), LinkError> {
    linker.apply(&linker.plan_removal(agent(name))?)
}

fn settings(name: &str) -> &'static str {
    match name {
        "claude" => ".claude/settings.json",
        "gemini" => ".gemini/settings.json",
        _ => ".copilot/settings.json",
    }
}

#[test]
fn settings_files_are_the_same_after_link_and_removal() {
    for (name, case) in EDITED.iter().flat_map(|name| CASES.iter().map(move |case| (*name, case))) {
        let person = Person::new();
        let at = format!("{name}, {}", case.name);
        let file = person.at(settings(name));
        person.write(&file, case.text);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        let before = person.files();
        let linker = person.linker();
        if !case.readers.has(name) {
            let reason = link(&linker, name).unwrap_err();
            assert!(matches!(reason, LinkError::Settings { .. }), "{at}: {reason}");
            assert!(reason.to_string().starts_with(&file.display().to_string()), "{at}: {reason}");
            assert_eq!((person.files(), person.records()), (before, vec![]), "{at}: nothing is written");
            continue;
        }
        link(&linker, name).unwrap_or_else(|reason| panic!("{at}: {reason}"));
        assert_eq!(linker.state(agent(name)).unwrap(), LinkState::Linked, "{at}");
        let linked = person.files();
        assert_ne!(linked, before, "{at}");
        let again = linker.plan_link(agent(name)).unwrap();
        assert!(again.is_empty(), "{at}: {:?}", again.changes);
        linker.apply(&again).unwrap();
        assert_eq!(person.files(), linked, "{at}: a second time changes nothing");
        let plan = linker.plan_removal(agent(name)).unwrap();
        assert!(plan.changes.iter().all(|change| change.is_exact()), "{at}");
        linker.apply(&plan).unwrap();
        assert_eq!(person.files(), before, "{at}");
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o640, "{at}");
        assert_eq!(linker.state(agent(name)).unwrap(), LinkState::NotLinked, "{at}");
        assert_eq!(person.records(), ["lock"], "{at}");
        assert!(linker.plan_removal(agent(name)).unwrap().is_empty(), "{at}");
    }
}

#[test]
fn agents_without_settings_get_them_and_lose_them_again() {
    for agent in LINKED_AGENTS.iter().filter(|agent| agent.no_edit_reason.is_none()) {
        let person = Person::new();
        let linker = person.linker();
        link(&linker, agent.name).unwrap();
        assert_eq!(linker.state(agent).unwrap(), LinkState::Linked, "{}", agent.name);
        for path in linker.paths(agent).unwrap() {
            assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600, "{path:?}");
            assert_eq!(path.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700, "{path:?}");
        }
        unlink(&linker, agent.name).unwrap();
        assert_eq!(person.files(), [], "{}: folders too", agent.name);
    }
    for agent in LINKED_AGENTS.iter().filter(|agent| agent.no_edit_reason.is_some()) {
        let linker = Person::new().linker();
        assert!(matches!(linker.state(agent).unwrap(), LinkState::NotNeeded(_)));
        assert!(linker.plan_link(agent).unwrap().is_empty());
    }
}

#[test]
fn folders_with_something_else_stay() {
    let person = Person::new();
    let linker = person.linker();
    link(&linker, "opencode").unwrap();
    person.write(&person.at(".config/opencode/opencode.json"), "{}");
    unlink(&linker, "opencode").unwrap();
    let left: Vec<PathBuf> = person.files().into_iter().map(|(path, _)| path).collect();
    assert_eq!(left, [".config", ".config/opencode", ".config/opencode/opencode.json"].map(|name| person.at(name)));
}

#[test]
fn edited_files_lose_only_our_entries() {
    let person = Person::new();
    let file = person.at(settings("gemini"));
    person.write(&file, "{\n  \"a\": 1 // one\n}\n");
    let linker = person.linker();
    link(&linker, "gemini").unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"a\": 1", "\"a\": 2")).unwrap();
    let plan = linker.plan_removal(agent("gemini")).unwrap();
    assert!(!plan.changes[0].is_exact());
    linker.apply(&plan).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\n  \"a\": 2 // one\n}\n");
    assert_eq!(person.records(), ["lock"]);
    // A file that was not there, with something in it now.
    std::fs::remove_file(&file).unwrap();
    link(&linker, "gemini").unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen('{', "{\n  \"mine\": true,", 1)).unwrap();
    unlink(&linker, "gemini").unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\n  \"mine\": true\n}\n");
    // And with nothing but other space: it goes again.
    std::fs::remove_file(&file).unwrap();
    link(&linker, "gemini").unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n\n")).unwrap();
    unlink(&linker, "gemini").unwrap();
    assert!(!file.exists());
    // With a comment of the person, it stays.
    link(&linker, "gemini").unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("// mine\n{text}")).unwrap();
    unlink(&linker, "gemini").unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "// mine\n{}\n");
}

#[test]
fn folders_that_a_record_names_go_only_above_the_file() {
    let person = Person::new();
    let linker = person.linker();
    link(&linker, "gemini").unwrap();
    let record = person.dir.path().join("state/link/gemini.json");
    let text = std::fs::read_to_string(&record).unwrap();
    let folder = format!("\"{}\"", person.at(".gemini").canonicalize().unwrap().display());
    assert!(text.contains(&folder), "{text}");
    let other = person.at("empty");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(&record, text.replace(&folder, &format!("{folder}, \"{}\"", other.display()))).unwrap();
    unlink(&linker, "gemini").unwrap();
    assert_eq!(person.files(), [(other, "folder".into())]);
}

#[test]
fn lost_records_and_backups_are_no_obstacle() {
    for lost in ["gemini.json", "gemini.0.before", "everything"] {
        let person = Person::new();
        let file = person.at(settings("gemini"));
        let text = "{\n  \"a\": 1 // one\n}\n";
        person.write(&file, text);
        let linker = person.linker();
        link(&linker, "gemini").unwrap();
        match lost {
            "everything" => std::fs::remove_dir_all(person.dir.path().join("state")).unwrap(),
            name => std::fs::write(person.dir.path().join("state/link").join(name), "damaged").unwrap(),
        }
        if lost == "gemini.json" {
            let reason = linker.state(agent("gemini")).unwrap_err().to_string();
            assert!(reason.contains("gemini.json is damaged"), "{reason}");
        }
        unlink(&linker, "gemini").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "{lost}");
        assert_eq!(linker.state(agent("gemini")).unwrap(), LinkState::NotLinked, "{lost}");
    }
}

#[test]
fn upgrades_replace_our_entries_and_are_undone_to_the_beginning() {
    for (name, edit) in EDITED.iter().flat_map(|name| [(*name, false), (*name, true)]) {
        let person = Person::new();
        let file = person.at(settings(name));
        person.write(&file, "{ }\n");
        let before = person.files();
        let (old, new) = (person.dir.path().join("1.0/plexus"), person.dir.path().join("2.0/plexus"));
        link(&person.linker_of(&old), name).unwrap();
        if edit {
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, text.replacen('{', "{\n  \"mine\": true,", 1)).unwrap();
        }
        let linker = person.linker_of(&new);
        if name == "copilot" {
            // Its files name no program.
            assert_eq!(linker.state(agent(name)).unwrap(), LinkState::Linked);
            continue;
        }
        let state = linker.state(agent(name)).unwrap();
        assert_eq!(state, LinkState::OutOfDate(format!("{}: its entries start {}", file.display(), old.display())));
        link(&linker, name).unwrap();
        assert_eq!(linker.state(agent(name)).unwrap(), LinkState::Linked);
        assert!(!std::fs::read_to_string(&file).unwrap().contains("1.0/plexus"));
        unlink(&linker, name).unwrap();
        match edit {
            false => assert_eq!(person.files(), before, "{name}"),
            true => assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\n  \"mine\": true\n }\n", "{name}"),
        }
    }
}

#[test]
fn files_of_other_versions_are_replaced_and_edited_ones_copied() {
    let person = Person::new();
    let linker = person.linker();
    let file = person.at(".config/opencode/plugins/plexus.js");
    person.write(&file, "// Written by `plexus link opencode`, long ago\n");
    assert!(matches!(linker.state(agent("opencode")).unwrap(), LinkState::OutOfDate(_)));
    link(&linker, "opencode").unwrap();
    assert_eq!(linker.state(agent("opencode")).unwrap(), LinkState::Linked);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}// mine\n")).unwrap();
    let plan = linker.plan_removal(agent("opencode")).unwrap();
    let copy = linker.copy_path(&plan.changes[0]).unwrap();
    linker.apply(&plan).unwrap();
    assert!(!file.exists());
    assert!(std::fs::read_to_string(copy).unwrap().ends_with("// mine\n"));
    // Somebody else's file.
    std::fs::write(&file, "export {}\n").unwrap();
    assert!(matches!(linker.plan_link(agent("opencode")), Err(LinkError::ForeignFile { .. })));
    assert!(linker.plan_removal(agent("opencode")).unwrap().is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "export {}\n");
}

#[test]
fn links_within_the_home_are_followed_and_kept() {
    for folder_is_link in [false, true] {
        let person = Person::new();
        let real = person.at("dotfiles/claude/settings.json");
        person.write(&real, "{\"a\": 1}");
        if folder_is_link {
            symlink("dotfiles/claude", person.at(".claude")).unwrap();
        } else {
            std::fs::create_dir(person.at(".claude")).unwrap();
            symlink("../dotfiles/claude/settings.json", person.at(".claude/settings.json")).unwrap();
        }
        let before = person.files();
        let linker = person.linker();
        let plan = linker.plan_link(agent("claude")).unwrap();
        assert_eq!(plan.changes[0].leads_to(), Some(real.canonicalize().unwrap().as_path()));
        linker.apply(&plan).unwrap();
        assert!(std::fs::read_to_string(&real).unwrap().contains("hook claude"));
        let links =
            |files: Vec<(PathBuf, String)>| files.into_iter().filter(|(_, text)| text.starts_with("->")).count();
        assert_eq!(links(person.files()), 1, "the link is kept");
        unlink(&linker, "claude").unwrap();
        assert_eq!(person.files(), before);
    }
}

/// Prepares a file that is refused.
type Prepare = fn(&Person, &Path);

#[test]
fn unsuitable_files_are_refused_and_untouched() {
    let cases: &[(&str, Prepare)] = &[
        ("outside of your home folder", |person, file| {
            let outside = person.dir.path().join("outside.json");
            std::fs::write(&outside, "{}").unwrap();
            symlink(outside, file).unwrap();
        }),
        ("is a symbolic link whose target does not exist", |_, file| symlink("nowhere.json", file).unwrap()),
        ("is read-only; allow yourself", |_, file| {
            std::fs::write(file, "{}").unwrap();
            std::fs::set_permissions(file, PermissionsExt::from_mode(0o444)).unwrap();
        }),
        ("is read-only; allow yourself", |_, file| {
            std::fs::set_permissions(file.parent().unwrap(), PermissionsExt::from_mode(0o555)).unwrap();
        }),
        ("has several names", |person, file| {
            std::fs::write(file, "{}").unwrap();
            std::fs::hard_link(file, person.at("other.json")).unwrap();
        }),
        ("is not a file", |_, file| std::fs::create_dir(file).unwrap()),
        ("is not a file", |_, file| {
            assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success());
        }),
        ("is larger than 1024 KiB", |_, file| std::fs::write(file, " ".repeat(1 << 21)).unwrap()),
        ("is not UTF-8 text", |_, file| std::fs::write(file, b"{\"a\": \"\xff\"}").unwrap()),
        ("is not UTF-8 text", |_, file| std::fs::write(file, b"\xff\xfe{\0}\0").unwrap()),
    ];
    for (words, prepare) in cases {
        for name in EDITED {
            let person = Person::new();
            let file = person.at(settings(name));
            std::fs::create_dir(file.parent().unwrap()).unwrap();
            prepare(&person, &file);
            let linker = person.linker();
            let reason = linker.plan_link(agent(name)).map(|_| ()).unwrap_err().to_string();
            assert!(reason.contains(words), "{name}: {reason}");
            assert_eq!(person.records(), Vec::<String>::new(), "{name}: {words}");
            std::fs::set_permissions(file.parent().unwrap(), PermissionsExt::from_mode(0o755)).unwrap();
        }
    }
}

#[test]
fn files_of_another_user_are_refused() {
    if !rustix::process::geteuid().is_root() {
        // Only root can give a file to somebody.
        return;
    }
    let person = Person::new();
    let file = person.at(settings("claude"));
    person.write(&file, "{}");
    std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
    assert!(matches!(person.linker().plan_link(agent("claude")), Err(LinkError::OtherUser { .. })));
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::chown(file.parent().unwrap(), Some(12345), None).unwrap();
    assert!(matches!(person.linker().plan_link(agent("claude")), Err(LinkError::OtherUser { .. })));
}

#[test]
fn group_and_mode_of_a_file_are_kept() {
    let person = Person::new();
    let file = person.at(settings("claude"));
    person.write(&file, "{}");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o664)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&file, None, Some(12345)).unwrap();
    }
    let of = |file: &Path| (file.metadata().unwrap().mode() & 0o7777, file.metadata().unwrap().gid());
    let before = of(&file);
    link(&person.linker(), "claude").unwrap();
    assert_eq!(of(&file), before);
    unlink(&person.linker(), "claude").unwrap();
    assert_eq!(of(&file), before);
}

#[test]
fn files_that_change_meanwhile_are_not_touched() {
    let person = Person::new();
    let file = person.at(settings("claude"));
    let linker = person.linker();
    // It appears, it changes, it goes, its mode changes, it becomes a link.
    let changes: &[(Option<&str>, Prepare)] = &[
        (None, |_, file| std::fs::write(file, "{\"mine\": 1}").unwrap()),
        (Some("{}"), |_, file| std::fs::write(file, "{\"mine\": 1}").unwrap()),
        (Some("{}"), |_, file| std::fs::remove_file(file).unwrap()),
        (Some("{}"), |_, file| std::fs::set_permissions(file, PermissionsExt::from_mode(0o400)).unwrap()),
        (Some("{}"), |person, file| {
            std::fs::rename(file, person.at("real.json")).unwrap();
            symlink(person.at("real.json"), file).unwrap();
        }),
    ];
    for (text, change) in changes {
        let _ = std::fs::remove_dir_all(person.at(".claude"));
        std::fs::create_dir(person.at(".claude")).unwrap();
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let plan = linker.plan_link(agent("claude")).unwrap();
        change(&person, &file);
        let before = person.files();
        let reason = linker.apply(&plan).unwrap_err();
        assert!(matches!(reason, LinkError::Changed { .. }), "{reason}");
        assert_eq!(person.files(), before);
        assert_eq!(person.records(), ["lock"]);
    }
}

#[test]
fn two_files_are_changed_both_or_not_at_all() {
    let person = Person::new();
    let file = person.at(settings("copilot"));
    person.write(&file, "{}");
    let before = person.files();
    let linker = person.linker();
    let plan = linker.plan_link(agent("copilot")).unwrap();
    assert_eq!(plan.changes.len(), 2);
    std::fs::write(&file, "{\"mine\": 1}").unwrap();
    assert!(matches!(linker.apply(&plan), Err(LinkError::Changed { .. })));
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(person.files(), before, "the extension is gone again, with its folders");
    assert_eq!(person.records(), ["lock"]);
    link(&linker, "copilot").unwrap();
    std::fs::write(&file, "{\"experimental\": false}").unwrap();
    let state = linker.state(agent("copilot")).unwrap();
    assert_eq!(state, LinkState::Damaged(format!("{} lacks the linked entries", file.display())));
    link(&linker, "copilot").unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"experimental\": true}");
    unlink(&linker, "copilot").unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"experimental\": false}");
}

#[test]
fn switch_of_the_person_stays_on() {
    let person = Person::new();
    let file = person.at(settings("copilot"));
    person.write(&file, "{\"experimental\": true}");
    let linker = person.linker();
    assert_eq!(linker.state(agent("copilot")).unwrap(), LinkState::NotLinked);
    link(&linker, "copilot").unwrap();
    unlink(&linker, "copilot").unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"experimental\": true}");
}

#[test]
fn damage_is_told_and_corrected() {
    let person = Person::new();
    let file = person.at(settings("claude"));
    person.write(&file, "{}");
    let linker = person.linker();
    link(&linker, "claude").unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"Notification\"", "\"Other\"", 1)).unwrap();
    let state = linker.state(agent("claude")).unwrap();
    assert!(matches!(&state, LinkState::Damaged(reason) if reason.contains("Notification is missing")), "{state:?}");
    link(&linker, "claude").unwrap();
    assert_eq!(linker.state(agent("claude")).unwrap(), LinkState::Linked);
    std::fs::write(&file, "{}").unwrap();
    let state = linker.state(agent("claude")).unwrap();
    assert!(matches!(&state, LinkState::Damaged(reason) if reason.contains("no longer in")), "{state:?}");
    let plan = linker.plan_removal(agent("claude")).unwrap();
    assert!(plan.changes.is_empty() && !plan.is_empty(), "the record is still there");
    linker.apply(&plan).unwrap();
    assert_eq!(linker.state(agent("claude")).unwrap(), LinkState::NotLinked);
}

#[test]
fn entries_of_an_older_version_are_out_of_date() {
    let person = Person::new();
    let file = person.at(settings("claude"));
    let linker = person.linker();
    link(&linker, "claude").unwrap();
    let record = person.dir.path().join("state/link/claude.json");
    let of_now = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(text.contains(&of_now), "{text}");
    std::fs::write(&record, text.replace(&of_now, "\"version\": \"0.0.9\"")).unwrap();
    assert_eq!(linker.state(agent("claude")).unwrap(), LinkState::Linked, "it wrote the same");
    // It used another event, and not one that this version uses.
    let known = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, known.replace("hooks.Notification", "hooks.Other")).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"Notification\"", "\"Other\"", 1)).unwrap();
    let state = linker.state(agent("claude")).unwrap();
    assert!(
        matches!(&state, LinkState::OutOfDate(reason) if reason.starts_with("Plexus 0.0.9 linked it: ")),
        "{state:?}"
    );
    link(&linker, "claude").unwrap();
    assert_eq!(linker.state(agent("claude")).unwrap(), LinkState::Linked);
    unlink(&linker, "claude").unwrap();
    assert_eq!(person.files(), []);
}

#[test]
fn variables_say_where_settings_are() {
    let person = Person::new();
    let linker_with = |name: &'static str, value: String| {
        let program = person.dir.path().join("plexus");
        Linker::new(&person.at(""), &person.dir.path().join("state"), &program, move |one| {
            (one == name).then(|| value.clone())
        })
        .unwrap()
    };
    let elsewhere = person.dir.path().join("elsewhere");
    for (name, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/plugins/plexus.js"),
        ("copilot", "COPILOT_HOME", "extensions/plexus/extension.mjs"),
    ] {
        let linker = linker_with(variable, elsewhere.display().to_string());
        link(&linker, name).unwrap_or_else(|reason| panic!("{name}: {reason}"));
        assert!(elsewhere.join(file).is_file(), "{name}");
        unlink(&linker, name).unwrap();
        assert!(!elsewhere.exists(), "{name}");
        let relative = linker_with(variable, "conf".into());
        assert!(matches!(relative.plan_link(agent(name)), Err(LinkError::NotAbsolute { .. })), "{name}");
        // Set to nothing is not set.
        assert_eq!(
            linker_with(variable, String::new()).paths(agent(name)).unwrap()[0],
            person.linker().paths(agent(name)).unwrap()[0]
        );
    }
    assert_eq!(person.files(), []);
}

#[test]
fn programs_that_no_command_can_name_are_refused() {
    for program in
        ["plexus", "/opt/$x/plexus", "/opt/it's/plexus", "/opt/a\"b/plexus", "/opt/a\nb/plexus", "/opt/other"]
    {
        let refused = Linker::new(Path::new("/home/x"), Path::new("/state"), Path::new(program), |_| None);
        assert!(matches!(refused, Err(LinkError::Program { .. })), "{program}");
    }
    for program in ["/opt/plexus", "/opt/my programs/plexus", "/opt/\u{fc}ber/plexus-2"] {
        Linker::new(Path::new("/home/x"), Path::new("/state"), Path::new(program), |_| None).unwrap();
    }
}

#[test]
fn links_write_one_at_a_time() {
    let person = Person::new();
    let linker = person.linker();
    let folder = crate::settings::files::RecordFolder(person.dir.path().join("state/link"));
    let lock = folder.lock().unwrap();
    let plan = linker.plan_link(agent("claude")).unwrap();
    assert!(matches!(linker.apply(&plan), Err(LinkError::Busy)));
    assert_eq!(person.files(), []);
    drop(lock);
    linker.apply(&plan).unwrap();
    for name in ["claude.json", "lock"] {
        let meta = person.dir.path().join("state/link").join(name).metadata().unwrap();
        assert_eq!(meta.mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn diff_shows_what_is_put_in() {
    let person = Person::new();
    person.write(&person.at(settings("copilot")), "{\n  \"a\": 1\n}\n");
    let plan = person.linker().plan_link(agent("copilot")).unwrap();
    assert_eq!(plan.changes.iter().map(|change| change.verb()).collect::<Vec<_>>(), ["add", "edit"]);
    let wanted = "@@ -1,3 +1,4 @@\n {\n-  \"a\": 1\n+  \"a\": 1,\n+  \"experimental\": true\n }\n";
    assert_eq!(plan.changes[1].diff(), wanted);
}
