//! Hook entries in a settings file: `{"hooks": {EVENT: [{"hooks": [ENTRY, ..]}, ..]}}`, as Claude Code and Gemini CLI have them.

use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use serde_json::{Map, Value, json};

use crate::settings::document::{Container, Document, NewChild, SettingsError, Splice, Syntax};

/// The member of the settings that has the hooks.
const HOOKS: &str = "hooks";

/// One hook entry of an agent's table.
#[derive(Clone, Copy, Debug)]
pub struct HookLine {
    /// The agent's event.
    pub event: &'static str,
    /// The arguments after `plexus hook AGENT`.
    pub arguments: &'static str,
    /// The time after which the agent stops waiting for the command, in the agent's own unit.
    pub timeout: Option<u32>,
    /// `true` if the command runs in parallel to the agent and wakes it by its exit code.
    pub wakes: bool,
    /// The name that the agent shows while the command runs.
    pub name: Option<&'static str>,
}

impl HookLine {
    /// Makes an entry with only the command.
    pub const fn plain(event: &'static str) -> Self {
        Self { event, arguments: "", timeout: None, wakes: false, name: None }
    }

    /// Returns the command of the entry.
    fn command(&self, program: &str, agent: &str) -> String {
        let program = shell_words::quote(program);
        let space = if self.arguments.is_empty() { "" } else { " " };
        format!("{program} hook {agent}{space}{}", self.arguments)
    }

    fn entry(&self, program: &str, agent: &str) -> Value {
        let mut entry = Map::new();
        if let Some(name) = self.name {
            entry.insert("name".into(), name.into());
        }
        entry.insert("type".into(), "command".into());
        entry.insert("command".into(), self.command(program, agent).into());
        if self.wakes {
            entry.insert("async".into(), true.into());
            entry.insert("asyncRewake".into(), true.into());
        }
        if let Some(timeout) = self.timeout {
            entry.insert("timeout".into(), timeout.into());
        }
        entry.into()
    }
}

/// The hooks of an agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookSettings {
    /// The agent's name in the command.
    pub(crate) agent: &'static str,
    /// The entries, in the order in which they are written.
    pub(crate) lines: &'static [HookLine],
    /// The syntax that the agent reads.
    pub(crate) syntax: Syntax,
}

/// The entries of Plexus in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundHooks {
    /// The number of entries.
    pub(crate) count: usize,
    /// The programs that their commands start.
    pub(crate) programs: Vec<String>,
    /// The differences from the entries that this program would write; empty if there are none.
    pub(crate) differs: Vec<String>,
}

/// An entry of Plexus in a file.
struct OwnEntry<'a> {
    event: String,
    arguments: String,
    program: String,
    entry: &'a Value,
}

/// Returns the program, and the arguments after `hook AGENT`, of a command of Plexus.
pub(crate) fn own_command(command: &str, agent: &str) -> Option<(String, String)> {
    let parts = shell_words::split(command).ok()?;
    // A user may have put variables before it.
    let assigns = |word: &&String| word.split_once('=').is_some_and(|(name, _)| is_variable(name));
    let mut rest = parts.iter().skip_while(assigns);
    let program = rest.next()?;
    let name = program.rsplit('/').next()?;
    let is_plexus = name == "plexus" || name.starts_with("plexus-") || name.starts_with("plexus_");
    if !is_plexus || rest.next()? != "hook" || rest.next()? != agent {
        return None;
    }
    Some((program.clone(), rest.map(String::as_str).collect::<Vec<_>>().join(" ")))
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|one| one == '_' || one.is_ascii_alphanumeric())
}

fn is_own(entry: &Node, agent: &str) -> bool {
    let Node::Object(entry) = entry else { return false };
    let text = |key: &str| entry.get_string(key).map(|text| text.value.as_ref());
    text("type") == Some("command") && text("command").is_some_and(|command| own_command(command, agent).is_some())
}

/// Returns the lists of groups, by event, after a check that every member has the type that the agent reads.
fn events<'d, 'a>(document: &'d Document<'a>) -> Result<Vec<&'d ObjectProp<'a>>, SettingsError> {
    let Some(hooks) = document.root().and_then(|root| root.get(HOOKS)) else { return Ok(Vec::new()) };
    let Node::Object(events) = &hooks.value else { return Err(document.wrong_type(hooks, "an object")) };
    for event in &events.properties {
        let Node::Array(groups) = &event.value else {
            // Older Gemini CLIs have switches among the events.
            if matches!(event.value, Node::BooleanLit(_)) {
                continue;
            }
            return Err(document.wrong_type(event, "a list"));
        };
        for group in &groups.elements {
            match group {
                Node::Object(group) => match group.get(HOOKS) {
                    Some(inner) if inner.value.as_array().is_none() => {
                        return Err(document.wrong_type(inner, "a list"));
                    }
                    _ => {}
                },
                // `hooks.disabled` of older Gemini CLIs is a list of names.
                Node::StringLit(_) if event.name.as_str() == "disabled" => {}
                _ => return Err(document.wrong_type(event, "a list of objects")),
            }
        }
    }
    Ok(events.properties.iter().collect())
}

fn entries<'o, 'a>(group: &'o Node<'a>) -> &'o [Node<'a>] {
    let inner = group.as_object().and_then(|group| group.get(HOOKS)).and_then(|inner| inner.value.as_array());
    inner.map_or(&[], |inner| &inner.elements)
}

impl HookSettings {
    /// Returns the entries by event: `[(EVENT, {"hooks": [ENTRY, ..]}), ..]`.
    fn groups(&self, program: &str) -> Vec<(&'static str, Value)> {
        let mut groups: Vec<(&'static str, Vec<Value>)> = Vec::new();
        for line in self.lines {
            let entry = line.entry(program, self.agent);
            match groups.iter_mut().find(|(event, _)| *event == line.event) {
                Some((_, entries)) => entries.push(entry),
                None => groups.push((line.event, vec![entry])),
            }
        }
        groups.into_iter().map(|(event, entries)| (event, json!({ HOOKS: entries }))).collect()
    }

    /// Returns the entries of Plexus in the file, compared with the table.
    pub(crate) fn inspect(&self, text: &str) -> Result<FoundHooks, SettingsError> {
        let document = Document::parse(text, self.syntax)?;
        events(&document)?;
        let own = self.own_entries(document.value());
        let mut programs: Vec<String> = own.iter().map(|one| one.program.clone()).collect();
        programs.sort();
        programs.dedup();
        let mut differs = Vec::new();
        for line in self.lines {
            let same: Vec<&OwnEntry> =
                own.iter().filter(|one| one.event == line.event && one.arguments == line.arguments).collect();
            let label = if line.arguments.is_empty() {
                line.event.to_owned()
            } else {
                format!("{} {}", line.event, line.arguments)
            };
            match same.as_slice() {
                [] => differs.push(format!("{label} is missing")),
                [one] => {
                    let flag = |name: &str| one.entry.get(name).and_then(Value::as_bool).unwrap_or(false);
                    if flag("async") != line.wakes || flag("asyncRewake") != line.wakes {
                        differs.push(format!("{label} is changed"));
                    }
                }
                _ => differs.push(format!("{label} occurs {} times", same.len())),
            }
        }
        let known =
            |one: &&OwnEntry| self.lines.iter().any(|line| line.event == one.event && line.arguments == one.arguments);
        differs.extend(own.iter().filter(|one| !known(one)).map(|one| format!("{} is not used any more", one.event)));
        Ok(FoundHooks { count: own.len(), programs, differs })
    }

    fn own_entries<'v>(&self, value: &'v Value) -> Vec<OwnEntry<'v>> {
        let events = value.get(HOOKS).and_then(Value::as_object).into_iter().flatten();
        let groups =
            events.flat_map(|(event, groups)| groups.as_array().into_iter().flatten().map(move |one| (event, one)));
        let entries = groups.flat_map(|(event, group)| {
            group.get(HOOKS).and_then(Value::as_array).into_iter().flatten().map(move |entry| (event, entry))
        });
        let own = entries.filter_map(|(event, entry)| {
            let command = entry.get("command")?.as_str().filter(|_| entry["type"] == "command")?;
            let (program, arguments) = own_command(command, self.agent)?;
            Some(OwnEntry { event: event.clone(), arguments, program, entry })
        });
        own.collect()
    }

    /// Returns the text with the entries of Plexus behind the existing ones, and the names of the members that were
    /// made for them: `hooks`, `hooks.EVENT`.
    ///
    /// The text must not have entries of Plexus.
    pub(crate) fn add(&self, text: &str, program: &str) -> Result<(String, Vec<String>), SettingsError> {
        let document = Document::parse(text, self.syntax)?;
        events(&document)?;
        let groups = self.groups(program);
        let mut made = Vec::new();
        let mut splices = Vec::new();
        let hooks = document.root().and_then(|root| root.get_object(HOOKS));
        let missing: Vec<&(&str, Value)> =
            groups.iter().filter(|(event, _)| hooks.is_none_or(|hooks| hooks.get(event).is_none())).collect();
        made.extend(missing.iter().map(|(event, _)| format!("{HOOKS}.{event}")));
        // A new event has a list with the group of Plexus.
        let lists: Vec<Value> = missing.iter().map(|(_, group)| json!([group])).collect();
        let new: Vec<NewChild> =
            missing.iter().zip(&lists).map(|((event, _), value)| NewChild { key: Some(*event), value }).collect();
        match (document.root(), hooks) {
            (_, Some(hooks)) => {
                let container = Container::object(hooks);
                if !new.is_empty() {
                    document.append(&container, &new, &mut splices);
                }
                for (event, group) in &groups {
                    if let Some(list) = hooks.get_array(event) {
                        let new = [NewChild { key: None, value: group }];
                        document.append(&document.list_in(&container, list), &new, &mut splices);
                    }
                }
            }
            (root, None) => {
                made.insert(0, HOOKS.to_owned());
                let all: Map<String, Value> =
                    missing.iter().zip(lists).map(|((event, _), list)| ((*event).to_owned(), list)).collect();
                let all = Value::Object(all);
                let new = [NewChild { key: Some(HOOKS), value: &all }];
                match root {
                    Some(root) => document.append(&Container::object(root), &new, &mut splices),
                    None => splices.push(document.begin(&new)),
                }
            }
        }
        let after = document.spliced(splices)?;
        self.check_added(&after, program, document.value())?;
        Ok((after, made))
    }

    /// Checks the edit: all entries of Plexus are there, and the rest has not changed.
    fn check_added(&self, after: &str, program: &str, before: &Value) -> Result<(), SettingsError> {
        let found = self.inspect(after)?;
        let document = Document::parse(after, self.syntax)?;
        let rest = self.without_own(document.value());
        let whole = found.differs.is_empty() && found.programs == [program] && found.count == self.lines.len();
        if whole && rest == self.without_own(before) { Ok(()) } else { Err(SettingsError::Unsafe) }
    }

    /// Returns the text without the entries of Plexus. `made` has the names of the members that linking made for them,
    /// if they are known: only those are removed as well, if they are empty then.
    pub(crate) fn take_out(&self, text: &str, made: Option<&[String]>) -> Result<String, SettingsError> {
        let document = Document::parse(text, self.syntax)?;
        let events = events(&document)?;
        let was_made = |name: &str| made.is_none_or(|made| made.iter().any(|one| one == name));
        let mut splices = Vec::new();
        let mut emptied = Vec::new();
        for event in &events {
            let Node::Array(groups) = &event.value else {
                emptied.push(false);
                continue;
            };
            let marks: Vec<bool> = groups.elements.iter().map(|group| self.is_own_group(group)).collect();
            let container = Container::array(groups);
            let all = !marks.is_empty() && marks.iter().all(|mark| *mark);
            let removed = all
                && was_made(&format!("{HOOKS}.{}", event.name.as_str()))
                && !document.has_comment_outside(&container, &marks);
            emptied.push(removed);
            if removed {
                continue;
            }
            if marks.contains(&true) {
                document.remove(&container, &marks, &mut splices);
            }
            for group in groups.elements.iter().zip(&marks).filter(|(_, mark)| !**mark).map(|(group, _)| group) {
                self.take_out_of_group(&document, group, &mut splices);
            }
        }
        if emptied.contains(&true)
            && let Some(root) = document.root()
            && let Some(hooks) = root.get_object(HOOKS)
        {
            self.take_out_events(&document, root, hooks, &emptied, was_made(HOOKS), &mut splices);
        }
        let after = document.spliced(splices)?;
        let check = Document::parse(&after, self.syntax)?;
        let (left, expected) = (check.value(), self.without_own(document.value()));
        let clean = self.own_entries(left).is_empty() && self.without_own(left) == expected;
        if clean { Ok(after) } else { Err(SettingsError::Unsafe) }
    }

    fn take_out_events(
        &self,
        document: &Document,
        root: &Object,
        hooks: &Object,
        emptied: &[bool],
        hooks_made: bool,
        splices: &mut Vec<Splice>,
    ) {
        let container = Container::object(hooks);
        let all = emptied.iter().all(|removed| *removed) && !document.has_comment_outside(&container, emptied);
        if all && hooks_made {
            let marks: Vec<bool> = root.properties.iter().map(|one| one.name.as_str() == HOOKS).collect();
            document.remove(&Container::object(root), &marks, splices);
        } else {
            document.remove(&container, emptied, splices);
        }
    }

    /// Returns whether a group has only entries of Plexus.
    fn is_own_group(&self, group: &Node) -> bool {
        let entries = entries(group);
        !entries.is_empty() && entries.iter().all(|entry| is_own(entry, self.agent))
    }

    /// Removes entries of Plexus that a user moved into a group with others.
    fn take_out_of_group(&self, document: &Document, group: &Node, splices: &mut Vec<Splice>) {
        let Some(list) = group.as_object().and_then(|group| group.get_array(HOOKS)) else { return };
        let marks: Vec<bool> = list.elements.iter().map(|entry| is_own(entry, self.agent)).collect();
        if marks.contains(&true) {
            document.remove(&Container::array(list), &marks, splices);
        }
    }

    /// Returns the settings without the entries of Plexus, and without the lists and the object that would be empty then.
    fn without_own(&self, value: &Value) -> Value {
        let mut value = value.clone();
        let Some(root) = value.as_object_mut() else { return value };
        if let Some(events) = root.get_mut(HOOKS).and_then(Value::as_object_mut) {
            for groups in events.values_mut().filter_map(Value::as_array_mut) {
                for group in groups.iter_mut() {
                    let Some(entries) = group.get_mut(HOOKS).and_then(Value::as_array_mut) else { continue };
                    let own = |entry: &Value| {
                        let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
                        entry["type"] == "command" && own_command(command, self.agent).is_some()
                    };
                    let before = entries.len();
                    entries.retain(|entry| !own(entry));
                    if entries.is_empty() && before > 0 {
                        *group = Value::Null;
                    }
                }
                groups.retain(|group| !group.is_null());
            }
            events.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
            if events.is_empty() {
                root.shift_remove(HOOKS);
            }
        }
        value
    }
}
