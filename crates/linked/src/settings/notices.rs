//! Other settings that switch Plexus's hooks off or run other hooks on the same events.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::{Object, Value as Node};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::settings::agents::{GEMINI_NAME, LinkedAgent, Target};
use crate::settings::files::read_if_small;
use crate::settings::linking::Linker;
use crate::settings::target::TargetKind;

/// Settings by an administrator of the machine, which override the users' own.
const CLAUDE_MANAGED: &[&str] =
    &["/etc/claude-code/managed-settings.json", "/Library/Application Support/ClaudeCode/managed-settings.json"];
const GEMINI_MANAGED: &[&str] =
    &["/etc/gemini-cli/settings.json", "/Library/Application Support/GeminiCli/settings.json"];

/// The owner of the settings in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    User,
    Project,
    Machine,
}

/// Returns notices on other settings that hide a linked agent, or act on the same events: the user's own settings,
/// those of the project in `folder`, and those of the machine.
pub fn link_notices(linker: &Linker, agent: &LinkedAgent, folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for target in agent.targets {
        let TargetKind::Hooks(hooks) = &target.kind else { continue };
        for (owner, path) in files(linker, agent, target, folder) {
            let Some(text) = read_if_small(&path) else { continue };
            let Ok(parsed) = parse_to_ast(&text, &CollectOptions::default(), &ParseOptions::default()) else {
                continue;
            };
            let Some(Node::Object(root)) = parsed.value else { continue };
            let path = path.display();
            all.extend(switched_off(agent.name, owner, &root).into_iter().map(|notice| format!("{path} {notice}")));
            if owner == Owner::Project {
                let events: Vec<&str> = hooks.lines.iter().map(|line| line.event).collect();
                all.extend(project_hooks(&root, &events).into_iter().map(|notice| format!("{path} {notice}")));
            }
        }
    }
    all
}

fn files(linker: &Linker, agent: &LinkedAgent, target: &Target, folder: &Path) -> Vec<(Owner, PathBuf)> {
    let mut all = Vec::new();
    if let Ok(own) = linker.folder(target) {
        all.push((Owner::User, own.folder.join(target.location.file)));
    }
    let (project, managed): (&[&str], &[&str]) = match agent.name {
        "claude" => (&[".claude/settings.json", ".claude/settings.local.json"], CLAUDE_MANAGED),
        "gemini" => (&[".gemini/settings.json"], GEMINI_MANAGED),
        _ => (&[], &[]),
    };
    // In the home folder, the project's settings are the user's own.
    if folder != linker.home() {
        all.extend(project.iter().map(|name| (Owner::Project, folder.join(name))));
    }
    all.extend(managed.iter().map(|name| (Owner::Machine, PathBuf::from(name))));
    all
}

/// Returns the settings of one file that switch Plexus's hooks off.
fn switched_off(agent: &str, owner: Owner, root: &Object) -> Vec<String> {
    let is = |object: &Object, key: &str, value: bool| object.get_boolean(key).is_some_and(|it| it.value == value);
    let mut all = Vec::new();
    let unseen = match owner {
        Owner::Project => "its sessions in this folder are not seen",
        Owner::User | Owner::Machine => "no session of it is seen",
    };
    match agent {
        "claude" => {
            if is(root, "disableAllHooks", true) {
                all.push(format!("has \"disableAllHooks\": true: {unseen}"));
            }
            if owner == Owner::Machine && is(root, "allowManagedHooksOnly", true) {
                all.push(format!("has \"allowManagedHooksOnly\": true: {unseen}"));
            }
        }
        "gemini" => {
            let Some(config) = root.get_object("hooksConfig") else { return all };
            if is(config, "enabled", false) {
                all.push(format!("has \"hooksConfig\": {{\"enabled\": false}}: {unseen}"));
            }
            let disabled = config.get_array("disabled").map_or(&[][..], |list| &list.elements);
            if disabled.iter().any(|name| name.as_string_lit().is_some_and(|name| name.value == GEMINI_NAME)) {
                all.push(format!("has {GEMINI_NAME:?} in \"hooksConfig\": {{\"disabled\"}}: {unseen}"));
            }
        }
        _ => {}
    }
    all
}

/// Returns a notice on hooks of a project on the same events: they run in parallel, and may decide before the user does.
fn project_hooks(root: &Object, events: &[&str]) -> Option<String> {
    let hooks = root.get_object("hooks")?;
    let some = |event: &&&str| hooks.get_array(event).is_some_and(|groups| !groups.elements.is_empty());
    let mut names: Vec<&str> = events.iter().filter(some).copied().collect();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!("has hooks of its own for {}: they run beside those of Plexus, and may decide first", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::agents::linked_agent;

    #[test]
    fn settings_that_shadow_ours_are_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["home/.claude", "home/.gemini", "project/.claude", "project/.gemini", "calm"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let linker = Linker::new(&at("home"), &at("state"), Path::new("/opt/plexus"), |_| None).unwrap();
        let notices = |agent: &str, folder: &str| {
            let all = link_notices(&linker, linked_agent(agent).unwrap(), &at(folder));
            let all: Vec<String> = all.into_iter().filter(|one| one.contains(dir.path().to_str().unwrap())).collect();
            all
        };
        assert_eq!(notices("claude", "project"), Vec::<String>::new());
        std::fs::write(at("project/.claude/settings.json"), r#"{"hooks":{"PermissionRequest":[{}],"Other":[{}]}}"#)
            .unwrap();
        std::fs::write(at("project/.claude/settings.local.json"), "// local\n{\"disableAllHooks\": true,}").unwrap();
        let found = notices("claude", "project");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("hooks of its own for PermissionRequest: they run beside"), "{found:?}");
        assert!(found[1].contains("settings.local.json has \"disableAllHooks\": true"), "{found:?}");
        assert_eq!(notices("claude", "calm"), Vec::<String>::new());
        std::fs::write(at("home/.claude/settings.json"), r#"{"disableAllHooks": true}"#).unwrap();
        assert!(notices("claude", "calm")[0].ends_with("no session of it is seen"));
        // The project's own file of the home folder is the person's: it is named once.
        assert_eq!(notices("claude", "home").len(), 1);
        let gemini = r#"{"hooksConfig": {"enabled": false, "disabled": ["x", "plexus"]}}"#;
        std::fs::write(at("project/.gemini/settings.json"), gemini).unwrap();
        assert_eq!(notices("gemini", "project").len(), 2);
        for agent in ["opencode", "copilot", "codex", "qwen"] {
            assert_eq!(notices(agent, "project"), Vec::<String>::new());
        }
        // What cannot be read says nothing here: linking refuses it.
        std::fs::write(at("home/.claude/settings.json"), "{").unwrap();
        assert_eq!(notices("claude", "calm"), Vec::<String>::new());
    }
}
