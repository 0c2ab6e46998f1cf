//! Checks of the dialect's messages against the published types of ACP: every message of every unit test of the dialect is checked here.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use agent_client_protocol_schema::v1::{self, AGENT_METHOD_NAMES, CLIENT_METHOD_NAMES};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Checks the messages of one connection; a response is checked by the agent's request.
#[derive(Default)]
pub(in super::super) struct SchemaCheck {
    asked: HashMap<String, String>,
}

impl SchemaCheck {
    /// Handles a frame of the agent.
    pub(in super::super) fn received(&mut self, frame: &[u8]) {
        let Ok(frame) = serde_json::from_slice::<Value>(frame) else { return };
        if let (Some(id), Some(method)) = (frame.get("id"), frame["method"].as_str()) {
            self.asked.insert(id.to_string(), method.to_owned());
        }
    }

    /// Checks a frame of the dialect.
    pub(in super::super) fn sends(&self, frame: &Value) {
        assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
        if let Some(method) = frame.get("method") {
            message(method.as_str().unwrap(), &frame["params"]);
        } else if frame.get("error").is_some() {
            holds_as::<v1::Error>(&frame["error"]);
        } else if let Some(method) = self.asked.get(&frame["id"].to_string()) {
            message(method, &frame["result"]);
        }
    }
}

/// Checks a request, a notification or a response of the client, by its method.
fn message(method: &str, body: &Value) {
    let (ours, theirs) = (AGENT_METHOD_NAMES, CLIENT_METHOD_NAMES);
    type Check = fn(&Value);
    let table: [(&str, Check); 22] = [
        (ours.initialize, holds_as::<v1::InitializeRequest>),
        (ours.authenticate, holds_as::<v1::AuthenticateRequest>),
        (ours.logout, holds_as::<v1::LogoutRequest>),
        (ours.session_new, holds_as::<v1::NewSessionRequest>),
        (ours.session_load, holds_as::<v1::LoadSessionRequest>),
        (ours.session_resume, holds_as::<v1::ResumeSessionRequest>),
        (ours.session_list, holds_as::<v1::ListSessionsRequest>),
        (ours.session_close, holds_as::<v1::CloseSessionRequest>),
        (ours.session_delete, holds_as::<v1::DeleteSessionRequest>),
        (ours.session_prompt, holds_as::<v1::PromptRequest>),
        (ours.session_cancel, holds_as::<v1::CancelNotification>),
        (ours.session_set_mode, holds_as::<v1::SetSessionModeRequest>),
        (ours.session_set_config_option, holds_as::<v1::SetSessionConfigOptionRequest>),
        (theirs.session_request_permission, holds_as::<v1::RequestPermissionResponse>),
        (theirs.elicitation_create, holds_as::<v1::CreateElicitationResponse>),
        (theirs.fs_read_text_file, holds_as::<v1::ReadTextFileResponse>),
        (theirs.fs_write_text_file, holds_as::<v1::WriteTextFileResponse>),
        (theirs.terminal_create, holds_as::<v1::CreateTerminalResponse>),
        (theirs.terminal_output, holds_as::<v1::TerminalOutputResponse>),
        (theirs.terminal_wait_for_exit, holds_as::<v1::WaitForTerminalExitResponse>),
        (theirs.terminal_kill, holds_as::<v1::KillTerminalResponse>),
        (theirs.terminal_release, holds_as::<v1::ReleaseTerminalResponse>),
    ];
    // No longer in the schema, or not yet; an extension begins with `_`.
    if matches!(method, "session/set_model" | "session/fork") || method.starts_with('_') {
        return;
    }
    let row = table.iter().find(|(name, _)| *name == method);
    let (_, check) = row.unwrap_or_else(|| panic!("{method} is no method of the schema: {body}"));
    check(body);
}

/// Checks that the published type reads `sent` and writes all of it again. Reading alone proves little: the types omit
/// unknown and unreadable members.
fn holds_as<T: DeserializeOwned + Serialize>(sent: &Value) {
    let read = serde_json::from_value::<T>(sent.clone()).unwrap_or_else(|error| panic!("{error}: {sent}"));
    let written = serde_json::to_value(&read).unwrap();
    assert!(has(&written, sent), "{sent} is not of the schema, which makes {written} of it");
}

/// Returns whether `whole` has every member of `part`. A null or an empty list may be absent.
fn has(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (_, Value::Null) => true,
        (Value::Null, Value::Array(part)) => part.is_empty(),
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| has(whole.get(name).unwrap_or(&Value::Null), part))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| has(whole, part))
        }
        _ => whole == part,
    }
}
