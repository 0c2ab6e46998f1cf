//! Arbitrary settings with arbitrary space and comments, edited between linking and removal.

use proptest::prelude::*;
use serde_json::Value;

use crate::settings::agents::linked_agent;
use crate::settings::cases_tests::{EDITED, is_within};
use crate::settings::document::{Document, Syntax};
use crate::settings::target::TargetKind;
use crate::settings::target_state::TargetState;

/// Decisions, read from arbitrary bytes; zeros when they are used up.
struct Tape<'b> {
    bytes: std::slice::Iter<'b, u8>,
}

impl Tape<'_> {
    fn pick(&mut self, below: u8) -> u8 {
        self.bytes.next().copied().unwrap_or(0) % below
    }
}

/// Writes settings by the decisions of a tape.
struct Writer<'b> {
    tape: Tape<'b>,
    syntax: Syntax,
    newline: &'static str,
    out: String,
}

impl Writer<'_> {
    /// Writes space, and comments if the agent reads them.
    fn space(&mut self) {
        for _ in 0..self.tape.pick(3) {
            match self.tape.pick(8) {
                0 | 1 => self.out.push(' '),
                2 => self.out.push('\t'),
                3 | 4 => self.out.push_str(self.newline),
                5 if self.syntax.comments => self.out.push_str("/* \"hooks\": { , */"),
                6 if self.syntax.comments => {
                    self.out.push_str("// } plexus hook claude");
                    self.out.push_str(self.newline);
                }
                _ => self.out.push_str("  "),
            }
        }
    }

    fn children(&mut self, open: char, close: char, count: u8, mut each: impl FnMut(&mut Self, u8)) {
        self.out.push(open);
        self.space();
        for at in 0..count {
            each(self, at);
            self.space();
            if at + 1 < count || self.syntax.trailing_commas && self.tape.pick(3) == 0 {
                self.out.push(',');
                self.space();
            }
        }
        self.out.push(close);
    }

    fn member(&mut self, key: &str, value: impl FnOnce(&mut Self)) {
        self.out.push_str(&Value::from(key).to_string());
        self.space();
        self.out.push(':');
        self.space();
        value(self);
    }

    fn value(&mut self, depth: u8) {
        match self.tape.pick(if depth == 0 { 6 } else { 8 }) {
            0 => self.out.push_str("null"),
            1 => self.out.push_str("true"),
            2 => self.out.push_str("-1.5e3"),
            3 => self.out.push_str(r#""plexus hook claude // \"\\ \u00e9""#),
            4 => self.out.push_str("\"\u{1f600}, } ]\""),
            5 => self.out.push_str("{}"),
            6 => {
                let count = self.tape.pick(4);
                self.children('[', ']', count, |this, _| this.value(depth - 1));
            }
            _ => {
                let count = self.tape.pick(4);
                self.children('{', '}', count, |this, at| this.member(&format!("k{at}"), |this| this.value(depth - 1)));
            }
        }
    }

    /// Writes hooks of others, on events of Plexus and on other events.
    fn hooks(&mut self) {
        let count = self.tape.pick(5);
        const EVENTS: [&str; 5] = ["SessionStart", "Stop", "BeforeTool", "Custom", "Notification"];
        self.children('{', '}', count, |this, at| {
            this.member(EVENTS[usize::from(at)], |this| {
                let count = this.tape.pick(3);
                this.children('[', ']', count, |this, _| {
                    let matcher = this.tape.pick(2);
                    this.children('{', '}', matcher + 1, |this, at| match at {
                        0 => this.member("hooks", |this| {
                            let count = this.tape.pick(3);
                            this.children('[', ']', count, |this, _| {
                                this.out.push_str(r#"{"type":"command","command":"other hook claude"}"#);
                            });
                        }),
                        _ => this.member("matcher", |this| this.out.push_str("\"*\"")),
                    });
                });
            });
        });
    }

    fn settings(mut self) -> String {
        if self.syntax.bom && self.tape.pick(8) == 1 {
            self.out.push_str(crate::settings::document::BOM);
        }
        self.space();
        let count = self.tape.pick(5);
        let hooks = self.tape.pick(6);
        self.children('{', '}', count, |this, at| match at == hooks {
            true => this.member("hooks", Self::hooks),
            false => this.member(&format!("m{at}"), |this| this.value(3)),
        });
        self.space();
        self.out
    }
}

fn parts(agent: &str) -> (TargetKind, Syntax) {
    let kind = linked_agent(agent).unwrap().targets.last().unwrap().kind;
    match &kind {
        TargetKind::Hooks(hooks) => (kind, hooks.syntax),
        TargetKind::Switch(switch) => (kind, switch.syntax),
        TargetKind::File(_) | TargetKind::Function(_) => unreachable!("it is no settings file"),
    }
}

fn settings() -> impl Strategy<Value = (&'static str, String)> {
    let newline = prop_oneof![Just("\n"), Just("\r\n")];
    (prop::sample::select(&EDITED[..]), newline, prop::collection::vec(any::<u8>(), 0..300)).prop_map(
        |(agent, newline, bytes)| {
            let tape = Tape { bytes: bytes.iter() };
            let writer = Writer { tape, syntax: parts(agent).1, newline, out: String::new() };
            (agent, writer.settings())
        },
    )
}

fn value(text: &str, syntax: Syntax) -> Value {
    Document::parse(text, syntax).unwrap().value().clone()
}

/// Returns the value without empty lists and objects, which linking treats as absent.
fn without_empty_hooks(text: &str, syntax: Syntax) -> Value {
    let mut value = value(text, syntax);
    let root = value.as_object_mut().unwrap();
    if let Some(events) = root.get_mut("hooks").and_then(Value::as_object_mut) {
        events.retain(|_, groups| groups != &serde_json::json!([]));
        if events.is_empty() {
            root.shift_remove("hooks");
        }
    }
    value
}

/// Removes spaces and commas: values, keys and comments are left.
fn squeezed(text: &str) -> String {
    text.chars().filter(|one| !matches!(one, ' ' | '\t' | '\r' | '\n' | ',')).collect()
}

/// Adds a member at the beginning of the settings, as a user would write it.
fn with_member(text: &str, member: &str) -> Option<String> {
    // A comment may have a brace too.
    let at = text.find(['{', '/'])?;
    if !text[at..].starts_with('{') || text[at + 1..].trim_start().starts_with('}') {
        return None;
    }
    let mut text = text.to_owned();
    text.insert_str(at + 1, member);
    Some(text)
}

/// A change that a user, or the agent itself, makes to settings, whether linked or not.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// A program writes the file again, with other space and without comments.
    Reformat,
    /// Another hook on an event of Plexus.
    OtherGroup(&'static str, bool),
    /// Another hook in a group of Plexus.
    OtherEntry(&'static str),
    /// The removal of an event of Plexus.
    Remove(&'static str),
    /// A change of the timeouts of all entries.
    Timeouts,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let event =
        || prop::sample::select(vec!["SessionStart", "Stop", "BeforeTool", "Notification", "PermissionRequest"]);
    let change = prop_oneof![
        Just(Change::Reformat),
        (event(), any::<bool>()).prop_map(|(event, first)| Change::OtherGroup(event, first)),
        event().prop_map(Change::OtherEntry),
        event().prop_map(Change::Remove),
        Just(Change::Timeouts),
    ];
    prop::collection::vec(change, 0..5)
}

fn other(name: &str) -> Value {
    serde_json::json!({ "type": "command", "command": format!("other {name}") })
}

/// Makes a change. `linked` is `true` if entries of Plexus are in the settings: without them, there is no group of Plexus.
fn make(change: Change, settings: &mut Value, linked: bool) {
    let root = settings.as_object_mut().unwrap();
    match change {
        Change::Reformat => {}
        Change::OtherGroup(event, first) => {
            let hooks = root.entry("hooks").or_insert_with(|| serde_json::json!({}));
            let groups = hooks.as_object_mut().unwrap().entry(event).or_insert_with(|| serde_json::json!([]));
            let groups = groups.as_array_mut().unwrap();
            let at = if first { 0 } else { groups.len() };
            groups.insert(at, serde_json::json!({ "hooks": [other("group")] }));
        }
        Change::OtherEntry(event) => {
            let Some(groups) = root.get_mut("hooks").and_then(|hooks| hooks.get_mut(event)) else { return };
            let ours = |group: &&mut Value| group["hooks"].to_string().contains("plexus hook");
            if let Some(group) = groups.as_array_mut().unwrap().iter_mut().find(ours) {
                group["hooks"].as_array_mut().unwrap().insert(0, other("entry"));
            }
        }
        Change::Remove(event) => {
            if let Some(groups) = root.get_mut("hooks").and_then(|hooks| hooks.get_mut(event)) {
                groups.as_array_mut().unwrap().retain(|group| !linked || !group.to_string().contains("plexus hook"));
            }
        }
        Change::Timeouts => {
            let Some(hooks) = root.get_mut("hooks").and_then(Value::as_object_mut) else { return };
            for group in hooks.values_mut().filter_map(Value::as_array_mut).flatten() {
                let entries = group.get_mut("hooks").and_then(Value::as_array_mut).into_iter().flatten();
                entries.for_each(|entry| entry["timeout"] = 7.into());
            }
        }
    }
}

/// Returns the settings of others: a list of commands by event, beside everything but hooks.
fn of_others(settings: &Value) -> (Value, Vec<String>) {
    let mut rest = settings.clone();
    let hooks = rest.as_object_mut().unwrap().shift_remove("hooks").unwrap_or_default();
    let mut commands = Vec::new();
    for (event, groups) in hooks.as_object().into_iter().flatten() {
        for group in groups.as_array().unwrap() {
            for entry in group.get("hooks").and_then(Value::as_array).into_iter().flatten() {
                let command = entry["command"].as_str().unwrap();
                if !command.starts_with("/opt/plexus hook") {
                    commands.push(format!("{event}, {}: {command} {}", group["matcher"], entry["timeout"]));
                }
            }
        }
    }
    commands.sort();
    (rest, commands)
}

proptest! {

    #[test]
    fn arbitrary_settings_are_the_same_after_link_and_removal((agent, text) in settings()) {
        let (kind, syntax) = parts(agent);
        let (after, made) = kind.add(Some(&text), "/opt/plexus").unwrap();
        prop_assert_eq!(kind.state(Some(&after), "/opt/plexus"), Ok(TargetState::Current));
        prop_assert!(is_within(&text, &after), "{}", after);
        let back = kind.take_out(&after, Some(&made), Some(true)).unwrap().unwrap();
        // Space in empty brackets comes back with the backup; everything else without it.
        prop_assert_eq!(squeezed(&back), squeezed(&text));
        prop_assert_eq!(value(&back, syntax), value(&text, syntax));
        let again = kind.take_out(&back, Some(&made), Some(true)).unwrap().unwrap();
        prop_assert_eq!(again, back, "nothing is left to take out");
    }

    #[test]
    fn arbitrary_settings_keep_what_a_person_adds_in_between(
        (agent, text) in settings(),
        member in prop::sample::select(vec!["\"new\": [1, {\"a\": 2}],", "\n\t\"new\" : \"{\",\n", " \"new\":null , "]),
        known in any::<bool>(),
    ) {
        let (kind, syntax) = parts(agent);
        let (after, made) = kind.add(Some(&text), "/opt/plexus").unwrap();
        let (Some(edited), Some(wanted)) = (with_member(&after, member), with_member(&text, member)) else {
            return Ok(());
        };
        // In an object with nothing but a comment, the member's comma is one too many.
        if Document::parse(&wanted, syntax).is_err() {
            return Ok(());
        }
        let made = known.then_some(made.as_slice());
        let back = kind.take_out(&edited, made, None).unwrap().unwrap();
        if !known && matches!(kind, TargetKind::Switch(_)) {
            prop_assert_eq!(back, edited, "whose switch it is, is not known");
            return Ok(());
        }
        prop_assert_eq!(without_empty_hooks(&back, syntax), without_empty_hooks(&wanted, syntax));
        if known {
            prop_assert_eq!(squeezed(&back), squeezed(&wanted));
        }
    }

    #[test]
    fn arbitrary_settings_lose_ours_alone_after_any_changes((agent, text) in settings(), changes in changes()) {
        let (kind, syntax) = parts(agent);
        let (after, made) = kind.add(Some(&text), "/opt/plexus").unwrap();
        let mut edited = value(&after, syntax);
        changes.iter().for_each(|change| make(*change, &mut edited, true));
        let written = if changes.is_empty() { after } else { serde_json::to_string_pretty(&edited).unwrap() };
        for made in [Some(made.as_slice()), None] {
            let back = kind.take_out(&written, made, Some(true)).unwrap().unwrap();
            let left = value(&back, syntax);
            prop_assert!(!left.to_string().contains("/opt/plexus hook"), "{}", left);
            let (mut rest, commands) = of_others(&left);
            let (mut wanted, wanted_commands) = of_others(&edited);
            prop_assert_eq!(commands, wanted_commands);
            // The switch is taken out where linking is known to have set it.
            for one in [&mut rest, &mut wanted] {
                one.as_object_mut().unwrap().shift_remove("experimental");
            }
            prop_assert_eq!(rest, wanted);
        }
    }

    #[test]
    fn arbitrary_text_is_edited_whole_or_refused(agent in prop::sample::select(&EDITED[..]), text in "[{}\\[\\]\",:/* \n\\\\a1h]{0,40}") {
        let (kind, syntax) = parts(agent);
        if let Ok((after, made)) = kind.add(Some(&text), "/opt/plexus") {
            let back = kind.take_out(&after, Some(&made), Some(true)).unwrap().unwrap();
            prop_assert_eq!(value(&back, syntax), value(&text, syntax));
        }
    }
}
