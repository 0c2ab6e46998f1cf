//! The fold of events against the golden cases in `tests/golden`, which the page's fold has to pass too
//! (`tests/web/session_parts.test.mjs`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plexus_protocol::transcript::{EntryBody, Part, Transcript, TranscriptItem};
use plexus_protocol::{Kind, Position, Timestamp};
use serde_json::{Value, json};

/// Set to `update`, the expected transcripts are rewritten: review the changes.
const UPDATE: &str = "PLEXUS_GOLDEN";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// An item in the form of the cases; the page's fold is rendered in the same form (`tests/web/session_parts.test.mjs`).
fn shown(item: &TranscriptItem) -> Value {
    let mut out = match &item.part {
        Part::Message(message) => {
            let blocks: Vec<&Value> = message.blocks.iter().map(|block| &block.block).collect();
            json!({ "type": message.role, "id": message.id, "text": message.text_in_lines(), "blocks": blocks, "partial": message.partial })
        }
        Part::Tool { id, call } => {
            let mut members = call.members().clone();
            members.remove("status");
            json!({ "type": "tool", "id": id, "status": call.status(), "call": members, "output": call.terminal_output().0 })
        }
        Part::Plan(entries) => json!({ "type": "plan", "entries": entries }),
        Part::Request { id, request, receipt } => {
            json!({ "type": "request", "id": id, "request": request, "receipt": receipt })
        }
        Part::End { body, took } => json!({ "type": "end", "body": body, "took": took }),
        Part::Surface { id, body } => json!({ "type": "surface", "id": id, "body": body }),
        Part::Cancelling(body) => json!({ "type": "note", "kind": "run_status", "body": body }),
        Part::Note { kind, body } => json!({ "type": "note", "kind": kind.kind().as_str(), "body": body }),
    };
    out["position"] = item.first.0.into();
    out["run_id"] = item.run_id.as_str().into();
    if let Some(parent) = &item.parent {
        out["parent"] = parent.as_str().into();
    }
    out
}

fn fold(events: &[Value]) -> Vec<Value> {
    let mut transcript = Transcript::default();
    for event in events {
        let position = event["cursor"].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
        let at: Timestamp = serde_json::from_value(event["at"].clone()).unwrap();
        let kind = Kind::from_name(event["kind"].as_str().unwrap()).unwrap();
        let body = EntryBody::read(kind, event["event"].clone());
        transcript.apply(Position(position), event["run_id"].as_str().unwrap(), at, body);
    }
    transcript.items().iter().map(shown).collect()
}

/// The value with the members of its objects by name, as the cases have them. Without this their order would depend on serde_json's
/// feature `preserve_order`, which any crate may turn on.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let by_name: BTreeMap<_, _> = members.into_iter().map(|(name, member)| (name, sorted(member))).collect();
            Value::Object(by_name.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[test]
fn transcript_folds_as_the_golden_cases_say() {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    cases.sort();
    assert!(cases.len() >= 8, "the cases are in {}", golden().display());
    let mut kinds = BTreeSet::new();
    for path in cases {
        let mut case: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let events = case["events"].as_array().unwrap();
        kinds.extend(events.iter().filter_map(|event| event["kind"].as_str().map(str::to_owned)));
        let folded = fold(events);
        if std::env::var(UPDATE).is_ok_and(|value| value == "update") {
            case["transcript"] = folded.into();
            std::fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&sorted(case)).unwrap())).unwrap();
        } else {
            let expected = case["transcript"].as_array().unwrap();
            for (n, (is, expected)) in folded.iter().zip(expected).enumerate() {
                assert_eq!(is, expected, "item {n} of {}", path.display());
            }
            assert_eq!(folded.len(), expected.len(), "{}", path.display());
        }
    }
    for kind in Kind::ALL {
        assert!(kinds.contains(kind.as_str()), "no case has an event of the kind {}", kind.as_str());
    }
}
