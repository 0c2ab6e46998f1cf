//! The subject of a question, in the forms of all agents, and with earlier and later updates.

use serde_json::json as j;

use super::super::rig::{Rig, spec};
use super::super::{AgentRequest, FolderClaim, RequestSubject, RuntimeCommand, RuntimeEvent};
use super::quirks::{QUIRKS, Treatment};

fn session(agent: &str) -> Rig {
    let mut rig = Rig::new(&spec("acp"));
    let info = j!({ "name": agent, "version": "1" });
    rig.feed(j!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 1, "agentInfo": info } }).to_string());
    rig.open(1);
    rig.feed(r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#);
    rig.take_events();
    rig.sent();
    rig
}

fn update(rig: &mut Rig, update: &str) -> Vec<RuntimeEvent> {
    rig.feed(format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
    ));
    rig.take_events()
}

fn ask(rig: &mut Rig, id: u32, call: &str) -> Box<AgentRequest> {
    let options =
        r#"[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]"#;
    rig.feed(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{call},"options":{options}}}}}"#
    ));
    rig.ask()
}

fn line(line: &str) -> RequestSubject {
    RequestSubject::Command { argv: vec![line.into()], cwd: None }
}

const COMMAND: &str = "sudo rm -rf x";

/// Forms of the same command, from an unknown agent.
const SAID: &[&str] = &[
    r#"{"toolCallId":"t","kind":"execute","rawInput":{"command":"sudo rm -rf x"}}"#,
    r#"{"toolCallId":"t","rawInput":{"cmd":"sudo rm -rf x"}}"#,
    r#"{"toolCallId":"t","kind":"other","rawInput":{"commandLine":"sudo rm -rf x"}}"#,
    r#"{"toolCallId":"t","rawInput":{"command_line":"sudo rm -rf x","timeout":3}}"#,
    r#"{"toolCallId":"t","rawInput":{"Shell-Command":"sudo rm -rf x"}}"#,
    r#"{"toolCallId":"t","rawInput":{"script":"sudo rm -rf x","description":"tidy up"}}"#,
    r#"{"toolCallId":"t","rawInput":{"command":["sudo rm -rf x"]}}"#,
    r#"{"toolCallId":"t","rawInput":["sudo rm -rf x"]}"#,
    r#"{"toolCallId":"t","rawInput":{"input":{"command":"sudo rm -rf x"}}}"#,
    r#"{"toolCallId":"t","rawInput":{"arguments":"{\"command\":\"sudo rm -rf x\"}"}}"#,
    r#"{"toolCallId":"t","rawInput":{"name":"bash","params":{"parameters":{"cmd":"sudo rm -rf x"}}}}"#,
    r#"{"toolCallId":"t","rawInput":"{\"command\":\"sudo rm -rf x\"}"}"#,
    r#"{"toolCallId":"t","rawInput":{"command":"sudo rm -rf x","shell":"bash"}}"#,
    r#"{"toolCallId":"t","rawInput":{"command":"sudo rm -rf x","env":{}}}"#,
    r#"{"toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"{\"command\":\"sudo rm -rf x\"}"}}]}"#,
    r#"{"toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"```bash\nsudo rm -rf x\n```"}}]}"#,
    r#"{"toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"```sh\n$ sudo rm -rf x\n```"}}]}"#,
    r#"{"toolCallId":"t","kind":"execute","content":[{"type":"content","content":{"type":"text","text":"```\nsudo rm -rf x\n```"}}]}"#,
    r#"{"toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"$ sudo rm -rf x"}}]}"#,
    r#"{"toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"Run command `sudo rm -rf x`"}}]}"#,
    r#"{"toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"May I execute `sudo rm -rf x`?"}}]}"#,
    r#"{"toolCallId":"t","title":"x","content":[{"type":"content","content":{"type":"text","text":"To clean up."}},{"type":"content","content":{"type":"text","text":"Running: `sudo rm -rf x`"}}]}"#,
    r#"{"toolCallId":"t","content":[{"type":"content","content":{"type":"resource","resource":{"uri":"file:///s","text":"```bash\nsudo rm -rf x\n```"}}}]}"#,
    r#"{"toolCallId":"t","rawInput":{},"content":[{"type":"terminal","terminalId":"1"},{"type":"content","content":{"type":"text","text":"$ sudo rm -rf x"}}]}"#,
    r#"{"toolCallId":"t","kind":"execute","content":[{"type":"content","content":{"type":"text","text":"`sudo rm -rf x`"}}]}"#,
    r#"{"toolCallId":"t","rawInput":{"commands":["sudo rm -rf x"]}}"#,
    r#"{"toolCallId":"t","rawInput":{"command":"sudo rm -rf x","commands":["sudo rm -rf x"]}}"#,
    r#"{"toolCallId":"t","rawInput":{"tool":"shell","args":{"script":"sudo rm -rf x"}}}"#,
    r#"{"toolCallId":"t","rawInput":{"executable":"sudo rm -rf x"}}"#,
    r#"{"toolCallId":"t","title":"`ls`","locations":[{"path":"/x"}],"rawInput":{"bash":"sudo rm -rf x"}}"#,
];

/// Forms of the same command as a program with its arguments.
const WORDS: &[&str] = &[
    r#"{"toolCallId":"t","rawInput":["sudo","rm","-rf","x"]}"#,
    r#"{"toolCallId":"t","rawInput":{"argv":["sudo","rm","-rf","x"]}}"#,
    r#"{"toolCallId":"t","rawInput":{"command":"sudo","args":["rm","-rf","x"]}}"#,
    r#"{"toolCallId":"t","kind":"other","rawInput":{"program":"sudo","arguments":["rm","-rf","x"]}}"#,
    r#"{"toolCallId":"t","rawInput":{"parameters":{"executable":"sudo","args":["rm","-rf","x"]}}}"#,
];

/// Forms in which the command is uncertain.
const UNREAD: &[&str] = &[
    r#"{"toolCallId":"t","rawInput":{"request":{"command":["sudo","rm","-rf","x"]}}}"#,
    r#"{"toolCallId":"t","rawInput":{"steps":[{"run":{"script":"sudo rm -rf x"}}]}}"#,
    r#"{"toolCallId":"t","rawInput":{"a":{"b":{"c":{"d":{"e":{"cmd":"sudo rm -rf x"}}}}}}}"#,
    r#"{"toolCallId":"t","rawInput":{"input":{"input":{"input":{"input":{"command":"sudo rm -rf x"}}}}}}"#,
    r#"{"toolCallId":"t","rawInput":{"commands":["ls",["sudo","rm"]]}}"#,
    r#"{"toolCallId":"t","rawInput":{"commands":["ls"],"command":"sudo rm -rf x"}}"#,
    r#"{"toolCallId":"t","rawInput":{"commands":["sudo rm -rf x","ls"],"command":"sudo rm -rf x"}}"#,
    r#"{"toolCallId":"t","rawInput":{"program":"ls","command":"sudo rm -rf x"}}"#,
    r#"{"toolCallId":"t","title":"`sudo rm -rf x`","kind":"other"}"#,
    r#"{"toolCallId":"t","title":"Run `sudo rm -rf x`"}"#,
    r#"{"toolCallId":"t","kind":"delete","locations":[{"path":"/etc/x"}]}"#,
    r#"{"toolCallId":"t","rawInput":{"request":{"cmd":"ls"}},"content":[{"type":"diff","path":"/x","newText":""}]}"#,
    r#"{"toolCallId":"t"}"#,
    r#"{"toolCallId":"t","title":"Run command","kind":"execute"}"#,
    r#"{"toolCallId":"t","title":"ls","kind":"execute"}"#,
    r#"{"toolCallId":"t","kind":"execute","rawInput":{"what":"sudo rm -rf x"}}"#,
    r#"{"toolCallId":"t","kind":"execute","rawInput":{"code":"import os"}}"#,
    r#"{"toolCallId":"t","kind":"execute","rawInput":{"command":"ls","cmd":"sudo rm -rf x"}}"#,
    r#"{"toolCallId":"t","kind":"execute","rawInput":{"command":"ls","env":{"LD_PRELOAD":"x"}}}"#,
    r#"{"toolCallId":"t","kind":"execute","rawInput":{"command":"ls","stdin":"sudo rm -rf x"}}"#,
    r#"{"toolCallId":"t","kind":"execute","rawInput":{"command":7}}"#,
    r#"{"toolCallId":"t","kind":"execute","rawInput":{"command":"ls"},"content":[{"type":"diff","path":"/x","newText":""}]}"#,
    r#"{"toolCallId":"t","kind":"edit","content":[{"type":"diff","path":"/x"}]}"#,
    r#"{"toolCallId":"t","kind":"execute","content":[{"type":"content","content":{"type":"resource_link","uri":"file:///run.sh","name":"run.sh"}}]}"#,
    r#"{"toolCallId":"t","content":[{"type":"terminal","terminalId":"1"}]}"#,
    r#"{"toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"$ ls"}},{"type":"content","content":{"type":"text","text":"$ sudo rm -rf x"}}]}"#,
    r#"{"toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"I would like to tidy up `x`"}}]}"#,
    r#"{"toolCallId":"t","kind":"edit","rawInput":{"command":"transmogrify","path":"/etc/x"}}"#,
];

#[test]
fn acp_reading_finds_the_command_or_says_that_it_cannot() {
    assert!(SAID.len() >= 25);
    for (n, call) in SAID.iter().enumerate() {
        assert_eq!(ask(&mut session("nobody knows it"), n as u32, call).subject, line(COMMAND), "{call}");
    }
    let words = RequestSubject::Command { argv: COMMAND.split(' ').map(Into::into).collect(), cwd: None };
    for call in WORDS {
        assert_eq!(ask(&mut session("nobody knows it"), 0, call).subject, words, "{call}");
    }
    for call in UNREAD {
        let subject = ask(&mut session("nobody knows it"), 0, call).subject;
        let RequestSubject::Unreadable { raw, .. } = &subject else { panic!("{call}: {subject:?}") };
        // Whatever was sent of what would happen is shown.
        for shown in ["sudo", "/etc/x", "LD_PRELOAD", "run.sh", "transmogrify", "import os"] {
            assert!(!call.contains(shown) || raw.contains(shown), "{call}: {raw}");
        }
    }
}

#[test]
fn acp_reading_finds_edits_plans_and_tools() {
    let of = |call: &str| ask(&mut session("a"), 0, call).subject;
    let edit =
        |old: Option<&str>, new: &str| RequestSubject::Edits(vec![("/a".into(), old.map(Into::into), new.into())]);
    for (call, subject) in [
        (
            r#"{"toolCallId":"t","kind":"edit","rawInput":{"file_path":"/a","old_string":"o","new_string":"n"}}"#,
            edit(Some("o"), "n"),
        ),
        (r#"{"toolCallId":"t","rawInput":{"filePath":"/a","content":"n"}}"#, edit(None, "n")),
        (
            r#"{"toolCallId":"t","rawInput":{"path":"/a","edits":[{"oldText":"o","newText":"n"}]}}"#,
            edit(Some("o"), "n"),
        ),
        (r#"{"toolCallId":"t","rawInput":{"command":"create","path":"/a","file_text":"n"}}"#, edit(None, "n")),
        (
            r#"{"toolCallId":"t","rawInput":{"x":1},"content":[{"type":"diff","path":"/a","oldText":"o","newText":"n"}]}"#,
            edit(Some("o"), "n"),
        ),
        (
            r#"{"toolCallId":"t","kind":"fetch","rawInput":{"url":"https://x"}}"#,
            RequestSubject::Fetch { url: "https://x".into(), more: String::new() },
        ),
        (
            r#"{"toolCallId":"t","kind":"switch_mode","rawInput":{"plan":"1. do"}}"#,
            RequestSubject::Plan("1. do".into()),
        ),
        (
            r#"{"toolCallId":"t","kind":"switch_mode","content":[{"type":"content","content":{"type":"text","text":"1. do"}}]}"#,
            RequestSubject::Plan("1. do".into()),
        ),
        (
            r#"{"toolCallId":"t","title":"search","kind":"search","rawInput":{"q":1}}"#,
            RequestSubject::Tool { name: "search".into(), arguments: "{\n  \"q\": 1\n}".into() },
        ),
    ] {
        assert_eq!(of(call), subject, "{call}");
    }
    let asked = of(
        r#"{"toolCallId":"t","rawInput":{"questions":[{"question":"Which?","header":"H","multiSelect":true,"options":[{"label":"A","description":"d"},{"label":"B"}]}]}}"#,
    );
    let RequestSubject::Questions { questions, .. } = asked else { panic!("{asked:?}") };
    assert_eq!((questions[0].text.as_str(), questions[0].multiple, questions[0].options.len()), ("Which?", true, 2));
}

#[test]
fn acp_reading_merges_a_permission_request_with_its_announced_tool_call() {
    let announced = r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"bash","kind":"execute","rawInput":{"command":"sudo rm -rf x","cwd":"/w"}}"#;
    let whole = RequestSubject::Command { argv: vec![COMMAND.into()], cwd: Some(FolderClaim::Field("/w".into())) };
    for call in [
        r#"{"toolCallId":"t"}"#,
        r#"{"toolCallId":"t","title":"a harmless thing"}"#,
        r#"{"toolCallId":"t","rawInput":{}}"#,
        r#"{"toolCallId":"t","rawInput":null,"content":[]}"#,
        r#"{"toolCallId":"t","rawInput":{"command":"sudo rm -rf x"}}"#,
        // It names none: it is about the only one under way.
        "{}",
    ] {
        let mut rig = session("a");
        update(&mut rig, announced);
        let asked = ask(&mut rig, 0, call);
        assert_eq!(asked.subject, whole, "{call}");
        assert_eq!(asked.tool_call_id.as_deref(), Some("t"));
        // Another gateway that goes on with the same agent reads it the same.
        let mut rig = session("a");
        update(&mut rig, announced);
        let saved = rig.dialect.save().unwrap();
        let mut again = session("a");
        assert!(again.dialect.restore(&saved));
        assert_eq!(ask(&mut again, 0, call).subject, whole, "{call}");
    }
    // A plan that waits is what a question without an identifier is about, whatever else is under way.
    let mut rig = session("a");
    update(
        &mut rig,
        r#"{"sessionUpdate":"tool_call","toolCallId":"p","kind":"switch_mode","rawInput":{"plan":"1. do"}}"#,
    );
    update(&mut rig, announced);
    assert_eq!(ask(&mut rig, 0, "{}").subject, RequestSubject::Plan("1. do".into()));
    // What is over says nothing of what comes.
    let mut rig = session("a");
    update(&mut rig, announced);
    update(&mut rig, r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}"#);
    assert!(matches!(ask(&mut rig, 0, r#"{"toolCallId":"t"}"#).subject, RequestSubject::Unreadable { .. }));
}

#[test]
fn acp_reading_updates_an_open_permission_request() {
    let mut rig = session("a");
    let first = ask(&mut rig, 0, r#"{"toolCallId":"t","title":"ls","kind":"execute","rawInput":{"command":"ls"}}"#);
    assert_eq!(first.subject, line("ls"));
    let saved = rig.dialect.save().unwrap();
    let mut again = session("a");
    assert!(again.dialect.restore(&saved));
    for rig in [&mut rig, &mut again] {
        // What the question said itself stands; what it did not say is added.
        let events = update(
            rig,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"diff","path":"/a","newText":"x"}]}"#,
        );
        let changed = events.into_iter().find_map(|event| match event {
            RuntimeEvent::AskChanged { ask, .. } => Some(ask),
            _ => None,
        });
        let changed = changed.expect("told again");
        assert_eq!((&changed.key, changed.options.len()), (&first.key, 2));
        assert!(matches!(changed.subject, RequestSubject::Unreadable { .. }), "{:?}", changed.subject);
        // Another call's news are none of it.
        let events = update(rig, r#"{"sessionUpdate":"tool_call_update","toolCallId":"other","title":"x"}"#);
        assert!(!events.iter().any(|event| matches!(event, RuntimeEvent::AskChanged { .. })));
    }
}

/// Each agent of the table, with its recorded messages.
#[test]
fn acp_quirk_commands_are_read_from_the_transcript_of_each_agent() {
    for quirk in QUIRKS {
        let Treatment::Commands { recording, .. } = quirk.then else { continue };
        let agent = quirk.agent;
        let mut rig = session(agent);
        let mut read = 0;
        for entry in recording.lines() {
            let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
            let mut message: serde_json::Value =
                serde_json::from_str(entry["line"].as_str().unwrap()).unwrap_or_default();
            let method = message["method"].as_str().unwrap_or_default();
            if entry["dir"] != "out" || !matches!(method, "session/update" | "session/request_permission") {
                continue;
            }
            message["params"]["sessionId"] = "s".into();
            // A question is answered before its number is used again.
            for key in rig.dialect.asks() {
                rig.tell(RuntimeCommand::Answer { key, decision: plexus_protocol::Decision::Withdrawn });
            }
            rig.feed(message.to_string());
            for events in rig.take_events() {
                let RuntimeEvent::Asked { ask, .. } = events else { continue };
                read += 1;
                let touches = |argv: &[String]| argv.iter().any(|word| word.starts_with("touch ") || word == "touch");
                match &ask.subject {
                    RequestSubject::Command { argv, .. } => assert!(touches(argv), "{agent}: {argv:?}"),
                    RequestSubject::Edits(edits) => assert!(edits[0].0.ends_with(".txt"), "{agent}: {edits:?}"),
                    other => panic!("{agent}: {other:?} {message}"),
                }
            }
        }
        assert!(read >= 3, "{agent}: {read}");
    }
}

#[test]
fn acp_reading_takes_no_array_for_an_object() {
    for content in [
        r#"[["content",{"type":"text","text":"```sh\nls\n```"}]]"#,
        r#"[{"type":"content","content":["```sh\nls\n```"]}]"#,
        r#"[{"type":"content","content":{"resource":["```sh\nls\n```"]}}]"#,
        r#"[["diff","/a",null,"x"]]"#,
        r#"{"type":"diff","path":"/a","newText":"x"}"#,
        r#"["diff"]"#,
    ] {
        let mut rig = session("a");
        let call = format!(r#"{{"toolCallId":"t","title":"ls","kind":"read","rawInput":{{}},"content":{content}}}"#);
        let subject = ask(&mut rig, 0, &call).subject;
        assert!(matches!(subject, RequestSubject::Unreadable { .. }), "{content}: {subject:?}");
    }
}

/// The state is saved often: long parts of it do not outlive the gateway process, but their presence does.
#[test]
fn acp_reading_after_a_restart_does_not_guess_an_unsaved_tool_call() {
    let long = "x".repeat(super::tool_calls::SAVED_MAX);
    let announced = |command: &str| {
        format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"t","title":"ls","kind":"execute","rawInput":{{"command":"{command}"}}}}"#
        )
    };
    let asked = r#"{"toolCallId":"t"}"#;
    let restarted = |rig: &Rig| {
        let saved = rig.dialect.save().unwrap();
        assert!(saved.len() < 8 << 10, "{}", saved.len());
        let mut again = session("a");
        assert!(again.dialect.restore(&saved));
        again
    };
    // Announced before the restart, asked after it.
    let mut rig = session("a");
    update(&mut rig, &announced(&format!("rm -rf x # {long}")));
    let mut again = restarted(&rig);
    assert_eq!(ask(&mut rig, 0, asked).subject, line(&format!("rm -rf x # {long}")));
    let subject = ask(&mut again, 0, asked).subject;
    assert!(matches!(subject, RequestSubject::Unreadable { .. }), "{subject:?}");
    // What is said again is read again.
    update(&mut again, &announced("ls"));
    assert_eq!(ask(&mut again, 1, asked).subject, line("ls"));

    // Asked before it, in a long question; what comes later changes it, and its options are as they were.
    let mut rig = session("a");
    let first =
        ask(&mut rig, 0, &announced(&format!("rm -rf x # {long}")).replace(r#""sessionUpdate":"tool_call","#, ""));
    let mut again = restarted(&rig);
    let events = update(&mut again, r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"echo"}"#);
    let changed = events.into_iter().find_map(|event| match event {
        RuntimeEvent::AskChanged { ask, .. } => Some(ask),
        _ => None,
    });
    let changed = changed.expect("told again");
    assert_eq!((&changed.key, &changed.options), (&first.key, &first.options));
    assert!(matches!(changed.subject, RequestSubject::Unreadable { .. }), "{:?}", changed.subject);
}

#[test]
fn acp_permission_options_too_long_to_save_are_cancelled() {
    let mut rig = session("a");
    let name = "x".repeat(super::tool_calls::SAVED_MAX);
    rig.feed(format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"t"}},"options":[{{"optionId":"y","name":"{name}","kind":"allow_once"}}]}}}}"#
    ));
    assert!(!rig.take_events().iter().any(|event| matches!(event, RuntimeEvent::Asked { .. })));
    assert!(format!("{:?}", rig.sent()).contains("cancelled"));
}

/// Notifications of Grok Build 1.0.41 around one command, shortened.
const GROK: &[&str] = &[
    r#"{"jsonrpc":"2.0","method":"_x.ai/session/setup","params":{"method":"session/new","phase":"auth","sessionId":null}}"#,
    r#"{"jsonrpc":"2.0","method":"_x.ai/queue/changed","params":{"sessionId":"s","entries":[]}}"#,
    r#"{"jsonrpc":"2.0","method":"_x.ai/session_notification","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_delta_chunk","tool_call_id":"t"}}}"#,
    r#"{"jsonrpc":"2.0","method":"_x.ai/session_notification","params":{"sessionId":"s","update":{"sessionUpdate":"pending_interaction","tool_call_id":"t","kind":"permission"}}}"#,
    r#"{"jsonrpc":"2.0","method":"_x.ai/session_notification","params":{"sessionId":"s","update":{"sessionUpdate":"turn_completed","usage":{"inputTokens":200}},"_meta":{}}}"#,
    r#"{"jsonrpc":"2.0","method":"_x.ai/session/prompt_complete","params":{"sessionId":"s","stopReason":"end_turn","agentResult":null}}"#,
    r#"{"jsonrpc":"2.0","method":"_x.ai/sessions/changed","params":{"upserted":[{"sessionId":"s"}],"removed":[]}}"#,
];

#[test]
fn acp_quirk_notifications_of_grok_are_not_logged() {
    let mut rig = Rig::new(&spec("acp"));
    let meta = j!({ "grokShell": true, "agentVersion": "1.0.41", "hostname": "desk" });
    rig.feed(j!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 1, "_meta": meta } }).to_string());
    rig.open(1);
    rig.feed(r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#);
    rig.take_events();
    for line in GROK {
        rig.feed(*line);
        assert!(rig.take_events().is_empty(), "{line}");
    }
    let call = r#"{"toolCallId":"t","kind":"execute","title":"Execute `sudo rm -rf x`","rawInput":{"variant":"Bash",
        "command":"sudo rm -rf x","description":"why","is_background":false}}"#;
    assert_eq!(ask(&mut rig, 0, call).subject, line(COMMAND));
    rig.take_events();
    // A notification that no row names is logged, and so are all of an agent that is not Grok.
    let other = r#"{"jsonrpc":"2.0","method":"_x.ai/session_notification","params":{"sessionId":"s","update":{"sessionUpdate":"retrying"}}}"#;
    rig.feed(other);
    assert_eq!(rig.take_events().len(), 1);
    let mut rig = session("another");
    rig.feed(GROK[1]);
    assert_eq!(rig.take_events().len(), 1);
}
