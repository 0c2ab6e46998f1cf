//! Arguments of a model for a tool: checked against the tool's fields, with frequent mistakes of models corrected.

use rmcp::model::JsonObject;
use serde_json::Value;

use super::tools::{Field, FieldKind, TOOLS, ToolText, WAIT_MAX};

/// Maximum length of a surface's name, in bytes.
const NAME_MAX: usize = 64;

/// Checks the tool's arguments, each by its kind; null ones are left out.
///
/// # Errors
/// An instruction for the model.
pub(super) fn check(tool: &ToolText, arguments: Option<JsonObject>) -> Result<JsonObject, String> {
    let mut checked = JsonObject::new();
    for (name, value) in arguments.unwrap_or_default() {
        let Some(field) = tool.fields.iter().find(|field| field.name == name) else {
            let known: Vec<&str> = tool.fields.iter().map(|field| field.name).collect();
            return Err(format!(
                "{} has no argument `{}`; it takes {}",
                tool.name,
                short_name(&name),
                known.join(", ")
            ));
        };
        if !value.is_null() {
            let value =
                typed_value(field, value).map_err(|expected| format!("{}: `{name}` must be {expected}", tool.name))?;
            checked.insert(name, value);
        }
    }
    match tool.fields.iter().find(|field| field.is_required && !checked.contains_key(field.name)) {
        Some(field) => Err(format!("{}: `{}` is missing", tool.name, field.name)),
        None => Ok(checked),
    }
}

/// The tool with this name.
pub(super) fn tool(name: &str) -> Option<&'static ToolText> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// The beginning of a name that a model invented.
fn short_name(name: &str) -> String {
    plexus_protocol::text::line(name, NAME_MAX)
}

/// Returns the value, if it has the field's kind.
///
/// # Errors
/// A description of the valid values.
fn typed_value(field: &Field, value: Value) -> Result<Value, String> {
    match (field.kind, unpacked(field.kind, value)) {
        (FieldKind::Surface, Value::String(name)) if is_name(&name, b"_.-") && name.len() <= NAME_MAX => {
            Ok(name.into())
        }
        (FieldKind::Id, Value::String(id)) if is_name(&id, b"_-") => Ok(id.into()),
        (FieldKind::Text, value @ Value::String(_)) => Ok(value),
        (FieldKind::Flag, value @ Value::Bool(_)) => Ok(value),
        (FieldKind::Object, value @ Value::Object(_)) => Ok(value),
        (FieldKind::Seconds, value) => {
            let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0);
            seconds.map(|seconds| whole(seconds.min(WAIT_MAX as f64)).into()).ok_or_else(|| needed(field.kind))
        }
        (FieldKind::Count, value) => match value.as_u64() {
            Some(count) => Ok(count.into()),
            None => value
                .as_f64()
                .filter(|n| *n >= 0.0 && n.fract() == 0.0)
                .map(|n| whole(n).into())
                .ok_or_else(|| needed(field.kind)),
        },
        (FieldKind::Texts, Value::Array(items)) if items.iter().all(Value::is_string) => Ok(Value::Array(items)),
        (FieldKind::Objects(_), Value::Array(items)) if items.iter().all(Value::is_object) => Ok(Value::Array(items)),
        _ => Err(needed(field.kind)),
    }
}

/// Unpacks JSON that a model wrote as a string, and makes a list from a single item.
fn unpacked(kind: FieldKind, value: Value) -> Value {
    let value = match (kind, value) {
        (FieldKind::Surface | FieldKind::Id | FieldKind::Text, value) => return value,
        (_, Value::String(text)) => match serde_json::from_str(&text) {
            Ok(inner @ (Value::Array(_) | Value::Object(_) | Value::Bool(_) | Value::Number(_))) => inner,
            _ => Value::String(text),
        },
        (_, value) => value,
    };
    match (kind, value) {
        (FieldKind::Texts, value @ Value::String(_)) => Value::Array(vec![value]),
        (FieldKind::Objects(_), value @ Value::Object(_)) => Value::Array(vec![value]),
        (_, value) => value,
    }
}

fn needed(kind: FieldKind) -> String {
    match kind {
        FieldKind::Surface => {
            format!("a name of letters, digits, _ . - (1 to {NAME_MAX}, not `.` or `..`), such as \"build\"")
        }
        FieldKind::Id => "the id that ui_ask gave (q_..)".into(),
        FieldKind::Text => "a string".into(),
        FieldKind::Flag => "true or false".into(),
        FieldKind::Seconds => format!("a number of seconds from 0 to {WAIT_MAX}"),
        FieldKind::Count => "a whole number, 0 or more".into(),
        FieldKind::Object => "an object".into(),
        FieldKind::Texts => "an array of strings".into(),
        FieldKind::Objects(members) => {
            let members: Vec<String> = members.iter().map(|member| format!("\"{member}\"")).collect();
            format!("an array of objects, each with {}", members.join(" and "))
        }
    }
}

/// Returns whether a name is a segment of a path that needs no escapes; `.` and `..` would name another path.
fn is_name(name: &str, others: &[u8]) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    !name.is_empty() && name.len() <= 2 * NAME_MAX && name.bytes().all(fits) && !matches!(name, "." | "..")
}

/// Parses a whole number, which models may write as `5.0`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; what is too large saturates"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(name: &str, arguments: Value) -> Result<Value, String> {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        check(tool(name).unwrap(), Some(arguments)).map(Value::Object)
    }

    #[test]
    fn arguments_of_models_are_put_right() {
        for (tool, given, taken) in [
            (
                "ui_pin",
                json!({"surface": "a.b-c_9", "pinned": "false"}),
                json!({"surface": "a.b-c_9", "pinned": false}),
            ),
            ("ui_pin", json!({"surface": "a", "pinned": null}), json!({"surface": "a"})),
            (
                "ui_update",
                json!({"surface": "a", "data": {"path": "/x", "value": 1}, "expect_rev": "3"}),
                json!({"surface": "a", "data": [{"path": "/x", "value": 1}], "expect_rev": 3}),
            ),
            (
                "ui_show",
                json!({"surface": "a", "components": "[{\"id\":\"root\",\"component\":\"Text\"}]", "data": "{\"x\":1}"}),
                json!({"surface": "a", "components": [{"id": "root", "component": "Text"}], "data": {"x": 1}}),
            ),
            (
                "ui_ask",
                json!({"surface": "a", "submit": "ok", "wait_s": 900, "question": "[1]"}),
                json!({"surface": "a", "submit": ["ok"], "wait_s": 45, "question": "[1]"}),
            ),
            ("ui_wait", json!({"ask_id": "q_1", "wait_s": 2.0}), json!({"ask_id": "q_1", "wait_s": 2})),
        ] {
            assert_eq!(checked(tool, given), Ok(taken), "{tool}");
        }
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused_with_the_fix() {
        for (tool, given, words) in [
            ("ui_show", json!({"surface": "a"}), "`components` is missing"),
            ("ui_show", json!({}), "is missing"),
            (
                "ui_show",
                json!({"surface": "a", "components": ["root"]}),
                "an array of objects, each with \"id\" and \"component\"",
            ),
            ("ui_show", json!({"surface": "a", "components": []  , "data": [1]}), "`data` must be an object"),
            ("ui_show", json!({"surface": "my board", "components": []}), "a name of letters, digits"),
            ("ui_close", json!({"surface": ".."}), "a name of letters"),
            ("ui_close", json!({"surface": "x".repeat(65)}), "a name of letters"),
            ("ui_close", json!({"surface": "a/../b"}), "a name of letters"),
            ("ui_close", json!({"surface": 7}), "a name of letters"),
            ("ui_close", json!({"name": "a"}), "ui_close has no argument `name`; it takes surface"),
            ("ui_wait", json!({"ask_id": "../../x"}), "the id that ui_ask gave"),
            ("ui_wait", json!({"ask_id": "q_1", "wait_s": -1}), "from 0 to 45"),
            ("ui_wait", json!({"ask_id": "q_1", "wait_s": "soon"}), "from 0 to 45"),
            ("ui_update", json!({"surface": "a", "expect_rev": 1.5}), "a whole number"),
            ("ui_html", json!({"surface": "a", "html": "<p>", "text": 1}), "`text` must be a string"),
        ] {
            let reason = checked(tool, given.clone()).unwrap_err();
            assert!(reason.contains(words), "{tool} {given}: {reason}");
        }
    }
}
