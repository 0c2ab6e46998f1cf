//! A table of settings files, with the effect of linking on each for the three agents whose settings are edited.

use crate::settings::agents::linked_agent;
use crate::settings::document::{Document, SettingsError, Syntax};
use crate::settings::hooks::own_command;
use crate::settings::target::{TargetError, TargetKind};
use crate::settings::target_state::TargetState;

/// The agents that read a file: the others refuse it, and so does linking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    All,
    /// Plain JSON with a byte order mark.
    NotGemini,
    /// Comments.
    NotClaude,
    /// Commas before closing brackets.
    Copilot,
    Nobody,
}

impl Readers {
    pub(crate) fn has(self, agent: &str) -> bool {
        match self {
            Self::All => true,
            Self::NotGemini => agent != "gemini",
            Self::NotClaude => agent != "claude",
            Self::Copilot => agent == "copilot",
            Self::Nobody => false,
        }
    }
}

/// A settings file.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) readers: Readers,
}

const fn case(name: &'static str, readers: Readers, text: &'static str) -> Case {
    Case { name, text, readers }
}

/// The agents whose settings are edited.
pub(crate) const EDITED: [&str; 3] = ["claude", "gemini", "copilot"];

use Readers::{All, Copilot, Nobody, NotClaude, NotGemini};

#[rustfmt::skip] // a file a row
pub(crate) const CASES: &[Case] = &[
    case("empty", All, ""),
    case("blank", All, " \n\t\n"),
    case("object", All, "{}"),
    case("object and newline", All, "{}\n"),
    case("object with space", All, "{ }"),
    case("object over lines", All, "{\n}\n"),
    case("object over lines with space", All, "{\r\n  \r\n}\r\n"),
    case("two spaces", All, "{\n  \"model\": \"opus\",\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n"),
    case("four spaces", All, "{\n    \"model\": \"opus\"\n}\n"),
    case("tabs", All, "{\n\t\"model\": \"opus\",\n\t\"list\": [\n\t\t1,\n\t\t2\n\t]\n}\n"),
    case("no final newline", All, "{\n  \"model\": \"opus\"\n}"),
    case("many final newlines", All, "{\n  \"model\": \"opus\"\n}\n\n\n"),
    case("space around", All, "\n\n  {\"a\": 1}  \n"),
    case("indented root", All, "  {\n    \"a\": 1\n  }\n"),
    case("carriage returns", All, "{\r\n  \"model\": \"opus\",\r\n  \"a\": [1]\r\n}\r\n"),
    case("carriage returns, no final one", All, "{\r\n\t\"model\": \"opus\"\r\n}"),
    case("old carriage returns", All, "{\r  \"model\": \"opus\"\r}\r"),
    case("mixed line ends", All, "{\n  \"a\": 1,\r\n  \"b\": 2\n}\r\n"),
    case("one line", All, "{\"model\":\"opus\",\"env\":{\"A\":\"1\"}}"),
    case("one line with space", All, "{ \"model\": \"opus\", \"env\": { \"A\": \"1\" } }\n"),
    case("one line, one member", All, "{\"a\":{}}\n"),
    case("colons with space before", All, "{\n  \"a\" : 1,\n  \"b\" : {}\n}\n"),
    case("no space after colons", All, "{\n  \"a\":1,\n  \"b\":[]\n}\n"),
    case("commas at the front", All, "{\n  \"a\": 1\n, \"b\": 2\n}\n"),
    case("first member beside the brace", All, "{ \"a\": 1,\n  \"b\": 2 }\n"),
    case("hooks first", All, "{\n  \"hooks\": {\n    \"Custom\": []\n  },\n  \"z\": 1,\n  \"a\": 2\n}\n"),
    case("hooks empty", All, "{\n  \"hooks\": {},\n  \"a\": 1\n}\n"),
    case("hooks empty in one line", All, "{\"hooks\":{},\"a\":1}"),
    case("hooks last and empty", All, "{\n  \"a\": 1,\n  \"hooks\": {\n  }\n}\n"),
    case("event empty", All, "{\n  \"hooks\": {\n    \"SessionStart\": [],\n    \"Notification\": [ ]\n  }\n}\n"),
    case("others on the same events", All, r#"{
  "hooks": {
    "SessionStart": [
      {
        "matcher": "startup",
        "hooks": [{ "type": "command", "command": "/usr/local/bin/plexushook claude" }]
      }
    ],
    "PreToolUse": [{"matcher":"Bash","hooks":[{"type":"command","command":"lint"}]}],
    "BeforeTool": [{"matcher":"shell","hooks":[{"type":"command","command":"lint"},{"type":"command","command":"log"}]}],
    "Notification": [
      {"hooks": [{"type": "command", "command": "notify-send hello"}]},
      {"hooks": [{"type": "command", "command": "say 'plexus hook claude'"}]}
    ]
  },
  "permissions": { "allow": ["Bash(ls:*)"], "deny": [] }
}
"#),
    case("others in one line", All, r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}],"AfterAgent":[{"hooks":[]}]},"a":null}"#),
    case("group without hooks", All, "{\n  \"hooks\": {\"Stop\": [{}], \"BeforeTool\": [{\"matcher\": \"x\"}]}\n}\n"),
    case("prompt hooks of others", All, r#"{"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "plexus hook claude"}]}]}}"#),
    case("switch off", All, "{\n  \"experimental\": false,\n  \"a\": 1\n}\n"),
    case("switch on", All, "{\n  \"a\": 1,\n  \"experimental\": true\n}\n"),
    case("unicode", All, "{\n  \"n\u{e4}me \u{1f600}\": \"\u{65e5}\u{672c}\u{202e}\u{0301}\",\n  \"esc\": \"\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\"\n}\n"),
    case("escaped key", All, "{\n  \"h\\u006foks2\": {},\n  \"a\": 1\n}\n"),
    case("numbers", All, "{\n  \"a\": -0.10e+5, \"b\": 12345678901234567890, \"c\": 1E3, \"d\": 0\n}\n"),
    case("text that looks like comments", All, "{\n  \"a\": \"// no /* comment */\",\n  \"b\": \"http://x\"\n}\n"),
    case("text that looks like JSON", All, "{\n  \"a\": \"{\\\"hooks\\\": [}\",\n  \"b\": \"],}\"\n}\n"),
    case("duplicates in separate objects", All, "{\n  \"a\": {\"x\": 1},\n  \"b\": {\"x\": 1}\n}\n"),
    case("byte order mark", NotGemini, "\u{feff}{\n  \"model\": \"opus\"\n}\n"),
    case("byte order mark and carriage returns", NotGemini, "\u{feff}{\r\n  \"a\": 1\r\n}\r\n"),
    case("byte order mark alone", NotGemini, "\u{feff}"),
    case("comments", NotClaude, "// mine\n{\n  // first\n  \"a\": 1, // one\n  /* two */ \"b\": 2 /* end */\n  // last\n}\n// after\n"),
    case("comments and hooks", NotClaude, r#"{
  /* what runs */
  "hooks": { // all of it
    // at the start
    "SessionStart": [ // one
      // the group
      { "hooks": [ { "type": "command", "command": "x" } /* x */ ] } // end
      // no more
    ], // start
    "AfterAgent": [ /* none */ ] // nothing
  } // hooks
}
"#),
    case("comment alone", NotClaude, "// nothing yet"),
    case("comments alone", NotClaude, "/* nothing\n   yet */\n// really\n"),
    case("comment in an empty object", NotClaude, "{\n  // nothing yet\n}\n"),
    case("comment behind the brace", NotClaude, "{ // nothing yet\n}\n"),
    case("block comment in one line", NotClaude, "{\"a\":1/* one */}"),
    case("comment behind the last member", NotClaude, "{\n  \"a\": 1 // one\n}\n"),
    case("member commented out", NotClaude, "{\n  \"a\": 1\n  // , \"b\": 2\n}\n"),
    case("comments with carriage returns", NotClaude, "{\r\n  // mine\r\n  \"a\": 1 // one\r\n}\r\n"),
    case("one line and a comment", NotClaude, "{\"a\":1} // mine\n"),
    case("trailing comma", Copilot, "{\n  \"a\": 1,\n}\n"),
    case("trailing comma in one line", Copilot, "{\"a\":1,}"),
    case("trailing comma and comment", Copilot, "{\n  \"a\": 1, // one\n  // end\n}\n"),
    case("trailing commas inside", Copilot, "{\n  \"a\": [1, 2,],\n  \"b\": {\"c\": 1,},\n  \"experimental\": false,\n}\n"),
    case("not closed", Nobody, "{\n  \"a\": 1\n"),
    case("closed twice", Nobody, "{}}"),
    case("two objects", Nobody, "{}\n{}"),
    case("list", Nobody, "[]"),
    case("text", Nobody, "\"{}\""),
    case("null", Nobody, "null"),
    case("no quotes", Nobody, "{a: 1}"),
    case("single quotes", Nobody, "{'a': 1}"),
    case("missing comma", Nobody, "{\n  \"a\": 1\n  \"b\": 2\n}\n"),
    case("comma at the start", Nobody, "{,\"a\": 1}"),
    case("two commas", Nobody, "{\"a\": 1,,\"b\": 2}"),
    case("hexadecimal", Nobody, "{\"a\": 0x10}"),
    case("plus", Nobody, "{\"a\": +1}"),
    case("leading zero", Nobody, "{\"a\": 01}"),
    case("not a number", Nobody, "{\"a\": NaN}"),
    case("tab in a text", Nobody, "{\"a\": \"\t\"}"),
    case("line end in a text", Nobody, "{\"a\": \"x\ny\"}"),
    case("wrong escape", Nobody, "{\"a\": \"\\x41\"}"),
    case("other space", Nobody, "{\u{a0}\"a\": 1}"),
    case("open comment", Nobody, "{} /* "),
    case("hash comment", Nobody, "# mine\n{}"),
    case("comment ended by an old carriage return", Nobody, "{ // a\r\"b\": 1}"),
    case("key twice", Nobody, "{\"a\": 1, \"a\": 2}"),
    case("key twice by an escape", Nobody, "{\"a\": 1, \"\\u0061\": 2}"),
    case("key twice inside", Nobody, "{\"x\": [{\"a\": 1, \"a\": 2}]}"),
    case("hooks twice", Nobody, "{\"hooks\": {}, \"hooks\": {}}"),
    case("page of an error", Nobody, "<html></html>"),
    case("zero bytes", Nobody, "{\"a\": 1}\0\0"),
];

fn kind(agent: &str) -> TargetKind {
    // Of copilot, the settings: its other file is ours as a whole.
    linked_agent(agent).unwrap().targets.last().unwrap().kind
}

fn syntax(kind: &TargetKind) -> Syntax {
    match kind {
        TargetKind::Hooks(hooks) => hooks.syntax,
        TargetKind::Switch(switch) => switch.syntax,
        TargetKind::File(_) | TargetKind::Function(_) => unreachable!("it is no settings file"),
    }
}

/// Returns whether `whole` has all of `part`, in its order, and so can be the result of insertions into it.
pub(crate) fn is_within(part: &str, whole: &str) -> bool {
    let mut bytes = whole.bytes();
    part.bytes().all(|one| bytes.any(|other| other == one))
}

#[test]
fn table_has_enough_files_for_each_agent() {
    for agent in EDITED {
        let edited = CASES.iter().filter(|case| case.readers.has(agent)).count();
        assert!(edited >= 30, "{agent}: {edited}");
    }
    let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CASES.len());
}

#[test]
fn entries_are_put_in_and_taken_out_again() {
    for (agent, case) in EDITED.iter().flat_map(|agent| CASES.iter().map(move |case| (*agent, case))) {
        let (kind, text, at) = (kind(agent), case.text, format!("{agent}, {}", case.name));
        let added = kind.add(Some(text), "/opt/plexus");
        if !case.readers.has(agent) {
            assert!(matches!(added, Err(TargetError::Settings(_))), "{at}: {added:?}");
            continue;
        }
        let (after, made) = added.unwrap_or_else(|reason| panic!("{at}: {reason:?}"));
        assert_eq!(kind.state(Some(&after), "/opt/plexus"), Ok(TargetState::Current), "{at}: {after}");
        if case.name != "switch off" && case.name != "trailing commas inside" {
            assert!(is_within(text, &after), "{at}: only put in: {after}");
        }
        let back = kind.take_out(&after, Some(&made), Some(true)).unwrap().unwrap();
        // The space in empty brackets, and the file that had no value, come back with the backup alone.
        let Ok(document) = Document::parse(text, syntax(&kind)) else { unreachable!() };
        let blank = document.root().is_none_or(|root| root.properties.is_empty())
            || text.contains("[ ]")
            || text.contains("[ /* none */ ]")
            || text.contains("\"hooks\": {\n  }");
        if blank {
            let squeeze = |text: &str| text.replace([' ', '\t', '\r', '\n'], "").replace("{}", "");
            assert_eq!(squeeze(&back), squeeze(text), "{at}");
        } else {
            assert_eq!(back, text, "{at}");
        }
    }
}

#[test]
fn entries_of_another_program_are_out_of_date() {
    for (agent, case) in EDITED.iter().flat_map(|agent| CASES.iter().map(move |case| (*agent, case))) {
        let kind = kind(agent);
        if !case.readers.has(agent) || matches!(kind, TargetKind::Switch(_)) {
            continue;
        }
        let (after, made) = kind.add(Some(case.text), "/opt/one/plexus").unwrap();
        let state = kind.state(Some(&after), "/opt/two/plexus");
        assert_eq!(
            state,
            Ok(TargetState::Outdated("its entries start /opt/one/plexus".into())),
            "{agent}, {}",
            case.name
        );
        let bare = kind.take_out(&after, Some(&made), Some(true)).unwrap().unwrap();
        let (again, _) = kind.add(Some(&bare), "/opt/two/plexus").unwrap();
        assert_eq!(kind.state(Some(&again), "/opt/two/plexus"), Ok(TargetState::Current), "{agent}, {}", case.name);
    }
}

#[test]
fn entries_have_the_style_of_the_file() {
    let hooks = kind("gemini");
    let added = |text| hooks.add(Some(text), "/opt/plexus").unwrap().0;
    let one = r#"{"name":"plexus","type":"command","command":"/opt/plexus hook gemini","timeout":5000}"#;
    let whole = added("{\"a\":1}");
    assert!(
        whole.starts_with(&format!("{{\"a\":1,\"hooks\":{{\"SessionStart\":[{{\"hooks\":[{one}]}}],\"SessionEnd\"")),
        "{whole}"
    );
    let tabs = added("{\r\n\t\"a\": 1\r\n}\r\n");
    let start = "{\r\n\t\"a\": 1,\r\n\t\"hooks\": {\r\n\t\t\"SessionStart\": [\r\n\t\t\t{\r\n\t\t\t\t\"hooks\": [\r\n\t\t\t\t\t{\r\n\t\t\t\t\t\t\"name\": \"plexus\",";
    assert!(tabs.starts_with(start) && tabs.ends_with("\r\n\t}\r\n}\r\n"), "{tabs}");
    assert!(added("").ends_with("\n  }\n}\n"));
    let beside = added("{\n  \"hooks\": {\n    \"Notification\": [{\"hooks\":[]}]\n  }\n}\n");
    assert!(beside.contains("[{\"hooks\":[]}, {\"hooks\": [{\"name\": \"plexus\""), "{beside}");
    let switch = kind("copilot");
    let added = |text| switch.add(Some(text), "").unwrap().0;
    assert_eq!(added("{\n  \"a\": 1, // one\n}"), "{\n  \"a\": 1, // one\n  \"experimental\": true,\n}");
    assert_eq!(added("{\n  \"a\": 1 // one\n}"), "{\n  \"a\": 1, // one\n  \"experimental\": true\n}");
    assert_eq!(added("{\"a\":1/* one */}"), "{\"a\":1,/* one */\"experimental\":true}");
    assert_eq!(added("{ // none\n}"), "{ // none\n  \"experimental\": true\n}");
    assert_eq!(added("{}"), "{\n  \"experimental\": true\n}");
    assert_eq!(added("{\"a\":1} // x"), "{\"a\":1,\"experimental\":true} // x");
    assert_eq!(added("// x"), "// x\n{\n  \"experimental\": true\n}\n");
    assert_eq!(added(""), "{\n  \"experimental\": true\n}\n");
    assert_eq!(added("{\n  \"experimental\": /* no */ false\n}"), "{\n  \"experimental\": /* no */ true\n}");
}

#[test]
fn claude_entries_are_those_that_were_measured() {
    let (text, made) = kind("claude").add(None, "/opt/my plexus/plexus").unwrap();
    let settings: serde_json::Value = serde_json::from_str(&text).unwrap();
    let hooks = settings["hooks"].as_object().unwrap();
    let plain = serde_json::json!({ "type": "command", "command": "'/opt/my plexus/plexus' hook claude" });
    let inbox = serde_json::json!({
        "type": "command", "command": "'/opt/my plexus/plexus' hook claude --inbox",
        "async": true, "asyncRewake": true, "timeout": 86400,
    });
    let with = |timeout: u32| {
        let mut entry = plain.clone();
        entry["timeout"] = timeout.into();
        entry
    };
    for (event, groups) in hooks {
        let wanted = match event.as_str() {
            "PermissionRequest" => vec![with(86400)],
            "MessageDisplay" => vec![with(10)],
            "SessionStart" | "Stop" => vec![plain.clone(), inbox.clone()],
            _ => vec![plain.clone()],
        };
        assert_eq!(*groups, serde_json::json!([{ "hooks": wanted }]), "{event}");
    }
    assert_eq!(hooks.len(), 14);
    assert_eq!(made.len(), 15);
    // A hook that decides takes the dialog of a terminal away; Gemini's are never asked before one.
    let gemini = kind("gemini").add(None, "/opt/plexus").unwrap().0;
    assert!(!gemini.contains("PermissionRequest") && !gemini.contains("BeforeModel"), "{gemini}");
}

#[test]
fn changed_entries_are_noticed() {
    let kind = kind("claude");
    let whole = kind.add(None, "/opt/plexus").unwrap().0;
    for (from, to, words) in [
        ("\"PermissionRequest\"", "\"Elsewhere\"", "PermissionRequest is missing, Elsewhere is not used any more"),
        ("\"asyncRewake\": true", "\"asyncRewake\": false", "SessionStart --inbox is changed"),
        (
            "hook claude --inbox",
            "hook claude --box",
            "SessionStart --inbox is missing, SessionStart is not used any more",
        ),
    ] {
        let text = whole.replacen(from, to, 1);
        assert_eq!(kind.state(Some(&text), "/opt/plexus"), Ok(TargetState::Incomplete(words.into())), "{from}");
        assert!(!kind.take_out(&text, None, None).unwrap().unwrap().contains("hook claude"), "{from}");
    }
    let waits = whole.replace("86400", "600");
    assert_eq!(kind.state(Some(&waits), "/opt/plexus"), Ok(TargetState::Current), "how long is the person's to say");
}

#[test]
fn commands_of_ours_are_known() {
    for (command, own) in [
        ("/opt/plexus hook claude", Some(("/opt/plexus", ""))),
        ("'/opt/my plexus/plexus' hook claude --inbox", Some(("/opt/my plexus/plexus", "--inbox"))),
        ("plexus hook claude", Some(("plexus", ""))),
        ("PLEXUS_HOME=/x A=1 /opt/plexus-0.2 hook claude", Some(("/opt/plexus-0.2", ""))),
        ("/opt/plexus hook gemini", None),
        ("/opt/plexus hook", None),
        ("/opt/plexus hooks claude", None),
        ("/opt/myplexus hook claude", None),
        ("echo plexus hook claude", None),
        ("sh -c 'plexus hook claude'", None),
        ("/opt/plexus/other hook claude", None),
        ("plexus hook claude '", None),
        ("", None),
    ] {
        let found = own_command(command, "claude");
        assert_eq!(found, own.map(|(program, words)| (program.to_owned(), words.to_owned())), "{command}");
    }
}

/// Entries in `text`, each with a change that the user made to it after linking.
#[test]
fn edits_of_a_person_stay() {
    let kind = kind("gemini");
    let (whole, made) = kind.add(Some("{\n  \"a\": 1 // one\n}\n"), "/opt/plexus").unwrap();
    let out = |text: &str| kind.take_out(text, Some(&made), Some(true)).unwrap().unwrap();
    let edited = whole.replace("\"a\": 1,", "\"a\": 2,\n  /* new */ \"b\": [],");
    assert_eq!(out(&edited), "{\n  \"a\": 2,\n  /* new */ \"b\": [] // one\n}\n");
    let behind = whole.replace("\n  }\n}\n", "\n  },\n  \"b\": 1\n}\n");
    assert_eq!(out(&behind), "{\n  \"a\": 1, // one\n  \"b\": 1\n}\n");
    // Another hook on an event of ours, before it and behind it.
    let entry = "{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}";
    let before = whole.replace("\"SessionStart\": [", &format!("\"SessionStart\": [ {entry},"));
    let left = format!("{{\n  \"a\": 1, // one\n  \"hooks\": {{\n    \"SessionStart\": [ {entry}\n    ]\n  }}\n}}\n");
    assert_eq!(out(&before), left);
    // Ours in a group with another.
    let moved = whole.replacen(
        "\"hooks\": [\n          {",
        "\"hooks\": [\n          {\"type\":\"command\",\"command\":\"y\"},\n          {",
        1,
    );
    assert!(
        out(&moved).contains("\"hooks\": [\n          {\"type\":\"command\",\"command\":\"y\"}\n        ]"),
        "{}",
        out(&moved)
    );
    // A comment in a list of ours.
    let remark = whole.replace("\"SessionEnd\": [", "\"SessionEnd\": [ // look here");
    assert!(out(&remark).contains("\"SessionEnd\": [ // look here\n    ]"), "{}", out(&remark));
    // All in one line.
    let value: serde_json::Value = serde_json::from_str(&whole.replace("// one", "")).unwrap();
    assert_eq!(out(&value.to_string()), "{\"a\":1}");
    // Without a record, what is empty then goes too.
    assert_eq!(kind.take_out(&whole, None, None).unwrap().unwrap(), "{\n  \"a\": 1 // one\n}\n");
    let empty = "{\n  \"hooks\": {\n    \"SessionStart\": []\n  }\n}\n";
    let (whole, made) = kind.add(Some(empty), "/opt/plexus").unwrap();
    assert_eq!(kind.take_out(&whole, Some(&made), Some(true)).unwrap().unwrap(), empty);
    assert_eq!(kind.take_out(&whole, None, None).unwrap().unwrap(), "{}\n");
}

#[test]
fn wrong_types_are_refused_with_the_place() {
    let error = |agent: &str, text: &str| match kind(agent).add(Some(text), "/opt/plexus") {
        Err(TargetError::Settings(reason)) => reason.to_string(),
        other => panic!("{text}: {other:?}"),
    };
    for (agent, text, words) in [
        ("claude", "{\n\"hooks\": []}", "line 2: \"hooks\" is a list, and an object is read there"),
        ("claude", "{\"hooks\": null}", "\"hooks\" is null"),
        ("claude", "{\"hooks\": {\n\n\"Stop\": {}}}", "line 3: \"Stop\" is an object, and a list is read there"),
        ("claude", "{\"hooks\": {\"Other\": \"x\"}}", "\"Other\" is a text"),
        ("claude", "{\"hooks\": {\"Stop\": [1]}}", "a list of objects is read there"),
        ("claude", "{\"hooks\": {\"Stop\": [{\"hooks\": {}}]}}", "\"hooks\" is an object, and a list is read there"),
        (
            "claude",
            "{\n  // c\n}",
            "line 2, column 3: comments are not allowed, so the agent itself cannot read the file",
        ),
        ("claude", "[1]", "it holds a list where"),
        ("gemini", "\u{feff}{}", "byte order mark"),
        ("gemini", "{\"a\": 1,}", "trailing commas are not allowed"),
        ("gemini", "{\"a\": 1, \"b\": 2,\n \"a\": 3}", "line 2: the key \"a\" occurs twice"),
        ("copilot", "{\"experimental\": \"yes\"}", "\"experimental\" is a text, and true or false is read there"),
        ("copilot", "{\"a\": 01}", "line 1"),
    ] {
        assert!(error(agent, text).contains(words), "{text}: {}", error(agent, text));
    }
    // Switches of older Gemini CLIs beside the events are no hooks.
    assert!(kind("gemini").add(Some("{\"hooks\": {\"enabled\": true, \"disabled\": [\"x\"]}}"), "/opt/plexus").is_ok());
}

#[test]
fn nesting_is_edited_to_a_depth_and_refused_beyond() {
    let nested = |depth: usize| format!("{{\"a\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
    for agent in EDITED {
        let kind = kind(agent);
        let (after, made) = kind.add(Some(&nested(100)), "/opt/plexus").unwrap();
        assert_eq!(kind.take_out(&after, Some(&made), Some(true)).unwrap().unwrap(), nested(100));
        for depth in [200, 600, 100_000] {
            let refused = kind.add(Some(&nested(depth)), "/opt/plexus");
            assert!(matches!(refused, Err(TargetError::Settings(SettingsError::Syntax { .. }))), "{agent}, {depth}");
        }
    }
}

#[test]
fn huge_files_are_edited() {
    let members: String = (0..20_000).map(|at| format!("  \"key{at}\": {{ \"n\": [{at}, true] }},\n")).collect();
    let huge = format!("{{\n{members}  \"end\": null\n}}\n");
    assert!(huge.len() > 700_000 && (huge.len() as u64) < crate::settings::document::SETTINGS_MAX);
    for agent in EDITED {
        let kind = kind(agent);
        let (after, made) = kind.add(Some(&huge), "/opt/plexus").unwrap();
        assert_eq!(kind.take_out(&after, Some(&made), Some(true)).unwrap().unwrap(), huge, "{agent}");
    }
}
