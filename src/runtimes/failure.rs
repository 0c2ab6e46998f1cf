//! Failures that a runtime reports, made safe to display: text that looks like a secret is left out, and an error without a useful
//! message is extended by the program's stderr output. The same for every dialect.

use serde_json::Value;
use serde_json::value::RawValue;

use plexus_dialects::{RuntimeError, RuntimeEvent, is_uninformative};
use plexus_protocol::{Kind, RunStatus};
use plexus_risk::masked;

/// Maximum number of bytes of stderr in an error.
const STDERR_TOLD: usize = 600;

/// Makes a failure safe to display; returns its text, for the runtime's log, if the event is a failure. `stderr` is the program's output
/// since its last prompt.
pub(super) fn explain(event: &mut RuntimeEvent, stderr: impl Fn() -> String) -> Option<String> {
    match event {
        RuntimeEvent::Failed { message } => {
            *message = explained(message, stderr);
            Some(format!("it cannot be used: {message}"))
        }
        RuntimeEvent::NotOpened { error, .. } => {
            error.message = explained(&error.message, stderr);
            hide(error);
            Some(format!("a session was not opened: {}", error.message))
        }
        RuntimeEvent::Ended { end, .. } | RuntimeEvent::Done { end, .. } if end.status == RunStatus::Error => {
            let message = explained(end.message.as_deref().unwrap_or_default(), stderr);
            let report = format!("a prompt failed: {message}");
            end.message = Some(message);
            Some(report)
        }
        RuntimeEvent::Event { draft, .. } if draft.kind == Kind::Error => {
            let mut body: Value = serde_json::from_slice(&draft.body).ok()?;
            if conceal(&mut body) {
                draft.body = body.to_string().into();
            }
            body.get("message").and_then(Value::as_str).map(str::to_owned)
        }
        _ => None,
    }
}

/// Returns the text of a failure; extended by the stderr output if it has no information.
fn explained(message: &str, stderr: impl Fn() -> String) -> String {
    if !is_uninformative(message) {
        return masked(message);
    }
    let wrote = stderr();
    let wrote = wrote.trim();
    let from = (0..wrote.len()).find(|at| wrote.len() - at <= STDERR_TOLD && wrote.is_char_boundary(*at));
    let message = if message.trim().is_empty() { "it failed without a reason" } else { message };
    match from.map(|from| &wrote[from..]) {
        None | Some("") => masked(message),
        Some(wrote) => masked(&format!("{}; it wrote: {wrote}", message.trim_end_matches('.'))),
    }
}

/// Removes secrets from the data of an error.
fn hide(error: &mut RuntimeError) {
    let Some(mut data) = error.data.as_ref().and_then(|data| serde_json::from_str::<Value>(data.get()).ok()) else {
        return;
    };
    if conceal(&mut data) {
        error.data = RawValue::from_string(data.to_string()).ok();
    }
}

/// Removes secrets from every text; returns whether there were any.
fn conceal(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let masked_text = masked(text);
            let found = masked_text != *text;
            *text = masked_text;
            found
        }
        Value::Array(items) => items.iter_mut().fold(false, |found, item| conceal(item) | found),
        Value::Object(members) => members.iter_mut().fold(false, |found, (name, value)| {
            let assignment = value.as_str().map(|text| format!("{name}={text}"));
            match assignment {
                // A member whose name marks a secret: `{"api_key": "x"}`.
                Some(assignment) if !masked(&assignment).ends_with(&assignment[name.len()..]) => {
                    *value = Value::String(masked(&assignment)[name.len() + 1..].to_owned());
                    true
                }
                _ => conceal(value) | found,
            }
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_dialects::{EventDraft, RunEnd};
    use plexus_protocol::Ticket;

    fn ended(message: &str) -> RuntimeEvent {
        let end =
            RunEnd { status: RunStatus::Error, stop_reason: None, message: Some(message.to_owned()), native: None };
        RuntimeEvent::Ended { native: "s".into(), ticket: Ticket(1), end }
    }

    fn message(event: &RuntimeEvent) -> &str {
        match event {
            RuntimeEvent::Ended { end, .. } => end.message.as_deref().unwrap_or_default(),
            RuntimeEvent::NotOpened { error, .. } => &error.message,
            RuntimeEvent::Failed { message } => message,
            _ => "",
        }
    }

    #[test]
    fn failure_without_words_is_told_with_stderr() {
        let mut said = ended("Internal error");
        let report = explain(&mut said, || "warming up\nError: no credit, OPENAI_API_KEY=sk-abc123def456\n".into());
        assert!(message(&said).starts_with("Internal error; it wrote: warming up\nError: no credit"), "{said:?}");
        assert!(!format!("{said:?} {report:?}").contains("abc123def456"));
        assert!(report.is_some_and(|report| report.starts_with("a prompt failed: Internal error; it wrote")));
        let mut said = ended("no credit");
        explain(&mut said, || unreachable!("it said why"));
        assert_eq!(message(&said), "no credit");
        let mut said = ended("");
        explain(&mut said, || "ü".repeat(4000));
        assert!(message(&said).starts_with("it failed without a reason; it wrote: ü") && message(&said).len() < 700);
    }

    #[test]
    fn failure_of_any_kind_tells_no_secret() {
        let data = r#"{"authMethods":[{"id":"x"}],"body":"{\"api_key\":\"hunter2\"}","api_key":"hunter2","n":1}"#;
        let data = Some(RawValue::from_string(data.to_owned()).unwrap());
        let error = RuntimeError { code: -1, message: "password: hunter2".into(), data };
        let body = serde_json::json!({ "code": "x", "message": "curl -H 'Authorization: Bearer hunter2'" });
        for mut said in [
            RuntimeEvent::NotOpened { ticket: Ticket(1), error },
            RuntimeEvent::Failed { message: "login --token=hunter2".into() },
            ended("https://me:hunter2@example.org/ refused"),
            RuntimeEvent::Event { native: None, draft: EventDraft::new(Kind::Error, &body) },
        ] {
            let report = explain(&mut said, String::new);
            let message = match &said {
                RuntimeEvent::NotOpened { error, .. } => error.data.as_ref().map(|data| data.get().to_owned()),
                RuntimeEvent::Event { draft, .. } => String::from_utf8(draft.body.to_vec()).ok(),
                _ => None,
            };
            let all = format!("{said:?} {report:?} {message:?}");
            assert!(!all.contains("hunter2") && report.is_some(), "{all}");
            if let RuntimeEvent::NotOpened { error, .. } = said {
                assert!(error.data.is_some_and(|data| data.get().contains(r#"[{"id":"x"}]"#)));
            }
        }
    }
}
