//! Describes a failure: an error's message with the details in its data, or in the body of an HTTP reply. Bounded and sanitized; the caller
//! masks secrets.

use serde_json::Value;
use serde_json::value::RawValue;

use super::RuntimeError;
use super::jsonrpc::{INVALID_PARAMS, member};
use plexus_protocol::text::clean;

/// Maximum number of characters of details.
const DETAILS_MAX: usize = 1500;
/// Maximum size of an error's data that is read, in bytes.
const DATA_MAX: usize = 64 * 1024;
/// Maximum depth of nested errors that are read.
const CAUSES_MAX: usize = 8;
/// Members that describe the error, best first.
const MESSAGE_MEMBERS: &[&str] = &[
    "details",
    "detail",
    "message",
    "error",
    "errorMessage",
    "additionalDetails",
    "reason",
    "description",
    "stderr",
    "cause",
    "responseBody",
    "body",
    "data",
];

/// Returns the model that the params of `model.set` name.
///
/// # Errors
/// [`INVALID_PARAMS`]: the params name no model.
pub(super) fn model_name(params: Option<&RawValue>) -> Result<String, RuntimeError> {
    let needs = || RuntimeError::new(INVALID_PARAMS, "model.set needs {\"name\": the model}");
    params.and_then(|params| member(params, "name")).ok_or_else(needs)
}

impl RuntimeError {
    /// Returns the error's message with the details in its data.
    pub fn full_message(&self) -> String {
        with_details(&self.message, self.data.as_deref())
    }

    /// Returns the error with [`full_message`](Self::full_message) as its message.
    pub(super) fn with_full_message(self) -> Self {
        Self { message: self.full_message(), ..self }
    }
}

/// Returns whether an error's message explains nothing.
pub fn is_uninformative(message: &str) -> bool {
    let message = message.trim().trim_end_matches(['.', '!']).to_ascii_lowercase();
    let plain = ["", "error", "internal error", "internal server error", "server error", "unknown error", "failed"];
    plain.contains(&message.as_str())
}

/// Returns a message with the details in its data.
pub(super) fn with_details(message: &str, data: Option<&RawValue>) -> String {
    let data = data.map(RawValue::get).filter(|json| *json != "null" && json.len() <= DATA_MAX);
    let details = data.and_then(|json| serde_json::from_str::<Value>(json).ok()).map(|value| details(&value, 0));
    join_details(message, details.as_deref().unwrap_or_default())
}

/// Returns a message with details, without repetition.
pub(super) fn join_details(message: &str, details: &str) -> String {
    let (message, details) = (sanitized(message), sanitized(details));
    match (message.as_str(), details.as_str()) {
        (_, "") => message,
        ("", _) => details,
        (message, details) if message.contains(details) => message.to_owned(),
        (message, details) if details.starts_with(message) => details.to_owned(),
        (message, details) => format!("{}: {details}", message.trim_end_matches(['.', ':'])),
    }
}

/// Returns an error's text, truncated and sanitized.
pub(super) fn sanitized(text: &str) -> String {
    let text = clean(text.trim());
    match text.char_indices().nth(DETAILS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// Returns the details in an error's data as text; empty if there are none.
fn details(value: &Value, depth: usize) -> String {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            // The body of an HTTP reply, embedded as text.
            Ok(inner @ Value::Object(_)) if depth < CAUSES_MAX => details(&inner, depth + 1),
            _ => text.clone(),
        },
        Value::Object(members) if depth < CAUSES_MAX => {
            let mut messages: Vec<String> = Vec::new();
            for found in MESSAGE_MEMBERS.iter().filter_map(|name| members.get(*name)) {
                let detail = details(found, depth + 1);
                if !detail.is_empty() && !messages.iter().any(|word| word.contains(&detail)) {
                    messages.push(detail);
                }
            }
            // The ways to sign in are described elsewhere.
            let others = members.keys().any(|name| name != "authMethods");
            if messages.is_empty() && others { value.to_string() } else { messages.join(": ") }
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_message(message: &str, data: &str) -> String {
        with_details(message, Some(&RawValue::from_string(data.to_owned()).unwrap()))
    }

    #[test]
    fn fault_shows_the_errors_data_once_and_sanitized() {
        for (message, data, detail) in [
            (
                "Internal error",
                r#""Missing environment variable: X""#,
                "Internal error: Missing environment variable: X",
            ),
            ("Internal error", r#"{"details":"Error code: 400 - no"}"#, "Internal error: Error code: 400 - no"),
            ("Internal error", r#"{"error":{"message":"no credit","type":"x"}}"#, "Internal error: no credit"),
            ("Bad", r#"{"statusCode":429,"responseBody":"{\"error\":{\"message\":\"slow down\"}}"}"#, "Bad: slow down"),
            ("Internal error", r#"{"code":7}"#, r#"Internal error: {"code":7}"#),
            ("no credit", r#"{"message":"no credit"}"#, "no credit"),
            ("Authentication required", r#"{"authMethods":[]}"#, "Authentication required"),
            ("", "null", ""),
        ] {
            assert_eq!(full_message(message, data), detail);
        }
        let hostile = full_message("x", r#"{"details":"\u001b[2Jgone"}"#);
        assert!(!hostile.contains('\u{1b}'), "{hostile}");
        let long = full_message("x", &serde_json::to_string(&"long words ".repeat(2000)).unwrap());
        assert!(long.chars().count() < DETAILS_MAX + 10);
        let deep = format!("{}1{}", r#"{"cause":"#.repeat(60), "}".repeat(60));
        assert!(full_message("x", &deep).starts_with("x"));
    }

    #[test]
    fn fault_skips_messages_that_explain_nothing() {
        assert!(is_uninformative("Internal error") && is_uninformative("Internal error.") && is_uninformative(""));
        assert!(!is_uninformative("Internal error: no credit"));
    }
}
