//! Shortens tool calls for pages of the past: megabytes of output are sent only on request. Pure.

use serde_json::{Map, Value};

use plexus_protocol::transcript::json_size;
use plexus_risk::around_changes;

/// Shortens a tool call so that each of its members has about `max` bytes at most, and records in `_meta.plexus.left_out` how many bytes
/// are missing. Terminal output keeps its end, other texts keep their beginning. A change of a file keeps the lines that differ and those
/// next to them, with the number of preceding lines in `_meta.plexus.lines_before`; if these lines do not fit, it keeps neither text.
pub(super) fn shorten(call: &mut Map<String, Value>, max: usize) {
    let mut missing = 0;
    for (name, value) in call.iter_mut() {
        let mut left = max;
        match (name.as_str(), value) {
            ("toolCallId" | "sessionUpdate", _) => {}
            ("_meta", Value::Object(meta)) => {
                if let Some(Value::String(data)) =
                    meta.get_mut("terminal_output").and_then(|terminal| terminal.get_mut("data"))
                {
                    let from = data.ceil_char_boundary(data.len().saturating_sub(max));
                    missing += data.drain(..from).count();
                }
                for (name, value) in meta.iter_mut().filter(|(name, _)| *name != "terminal_output" && *name != "plexus")
                {
                    left = left.saturating_sub(name.len());
                    missing += cut(value, &mut left);
                }
            }
            (_, value) => missing += cut(value, &mut left),
        }
    }
    if missing > 0 {
        let meta = call.entry("_meta").or_insert(Value::Null);
        if !meta.is_object() {
            *meta = Value::Object(Map::new());
        }
        let plexus = &mut meta["plexus"];
        if !plexus.is_object() {
            *plexus = Value::Object(Map::new());
        }
        plexus["left_out"] = missing.into();
    }
}

/// Cuts a value to the remaining bytes; returns the number of missing ones.
fn cut(value: &mut Value, left: &mut usize) -> usize {
    let size = json_size(value);
    if size <= *left {
        *left -= size;
        return 0;
    }
    match value {
        Value::String(text) => {
            let to = text.floor_char_boundary(*left);
            let missing = text.len() - to;
            text.truncate(to);
            *left -= to;
            missing
        }
        Value::Array(all) => {
            let (mut missing, mut fit) = (0, 0);
            for one in all.iter_mut() {
                if *left == 0 {
                    missing += json_size(one);
                } else {
                    fit += 1;
                    missing += cut(one, left);
                }
            }
            all.truncate(fit);
            missing
        }
        Value::Object(members) if members.get("type").and_then(Value::as_str) == Some("diff") => {
            let missing = cut_diff(members, *left);
            *left = left.saturating_sub(size - missing.min(size));
            missing
        }
        Value::Object(members) => {
            let mut missing = 0;
            members.retain(|name, one| {
                let fits = *left > name.len();
                *left = left.saturating_sub(name.len());
                missing += if fits { cut(one, left) } else { json_size(one) };
                fits
            });
            missing
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            *left = 0;
            0
        }
    }
}

/// Reduces a change of a file to the lines that differ and those next to them, if they fit; else removes both texts.
fn cut_diff(members: &mut Map<String, Value>, left: usize) -> usize {
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    let (old, new) = (text("oldText"), text("newText"));
    let (near_old, near_new, before) = around_changes(old, new);
    let fits = near_old.len() + near_new.len() <= left;
    let (near_old, near_new) = if fits { (near_old, near_new) } else { ("", "") };
    let missing = old.len() + new.len() - near_old.len() - near_new.len();
    let (near_old, near_new) = (near_old.to_owned(), near_new.to_owned());
    for (name, near) in [("oldText", near_old), ("newText", near_new)] {
        if let Some(text @ Value::String(_)) = members.get_mut(name) {
            *text = near.into();
        }
    }
    if fits && before > 0 {
        members.insert("_meta".into(), serde_json::json!({ "plexus": { "lines_before": before } }));
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn shortened(call: Value, max: usize) -> Value {
        let Value::Object(mut call) = call else { panic!("a tool call is an object") };
        shorten(&mut call, max);
        Value::Object(call)
    }

    #[test]
    fn left_out_counts_what_is_missing_and_keeps_small_calls() {
        let small = json!({ "toolCallId": "c", "content": [{ "type": "content", "content": { "type": "text", "text": "ok" } }] });
        assert_eq!(shortened(small.clone(), 200), small);
        let text = "ä".repeat(500);
        let long = json!({ "content": [{ "type": "content", "content": { "type": "text", "text": text } }], "rawOutput": "short" });
        let short = shortened(long, 200);
        let kept = short["content"][0]["content"]["text"].as_str().unwrap();
        assert!(text.starts_with(kept) && kept.len() > 100 && kept.len() <= 200, "{short}");
        assert_eq!(short["_meta"]["plexus"]["left_out"], 1000 - kept.len());
        assert_eq!(short["rawOutput"], "short");
    }

    #[test]
    fn left_out_keeps_the_end_of_a_terminal_and_no_half_of_a_diff() {
        let data = (0..500).map(|n| format!("line {n}\n")).collect::<String>();
        let call = json!({ "_meta": { "terminal_output": { "data": data }, "plexus": { "parent": "p" } } });
        let short = shortened(call, 100);
        let kept = short["_meta"]["terminal_output"]["data"].as_str().unwrap();
        assert!(data.ends_with(kept) && kept.len() == 100, "{short}");
        assert_eq!(short["_meta"]["plexus"], json!({ "parent": "p", "left_out": data.len() - 100 }));

        let edit = json!({ "content": [{ "type": "diff", "path": "a", "oldText": "x".repeat(300), "newText": "y" }] });
        let short = shortened(edit, 100);
        assert_eq!(short["content"][0], json!({ "type": "diff", "path": "a", "oldText": "", "newText": "" }));
        assert_eq!(short["_meta"]["plexus"]["left_out"], 301);

        let old: String = (1..=600).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 300\n", "line three hundred\n");
        let short =
            shortened(json!({ "content": [{ "type": "diff", "path": "a", "oldText": old, "newText": new }] }), 200);
        let edit = &short["content"][0];
        assert_eq!(edit["oldText"], "line 297\nline 298\nline 299\nline 300\nline 301\nline 302\nline 303\n");
        assert_eq!(edit["newText"], edit["oldText"].as_str().unwrap().replace("line 300", "line three hundred"));
        assert_eq!(edit["_meta"]["plexus"]["lines_before"], 296);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from), ".{0,80}".prop_map(Value::from)];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,6}", inner, 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn left_out_bounds_every_member(content in values(), raw in values(), max in 0usize..300) {
            let short = shortened(json!({ "toolCallId": "c", "content": content, "rawOutput": raw }), max);
            // Brackets, commas and the last name are on top.
            for name in ["content", "rawOutput"] {
                prop_assert!(json_size(&short[name]) <= max + 160, "{short}");
            }
            prop_assert_eq!(shortened(short.clone(), usize::MAX), short);
        }
    }
}
