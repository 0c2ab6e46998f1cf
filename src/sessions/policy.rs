//! Which of a runtime's own methods need which scope. Pure.
//!
//! A client may call methods of a runtime that the gateway does not know. Some of them act at once, and the runtime asks
//! nobody: `shell.exec` runs a command, `tool.call` a tool, `theme.set` writes a file. Whoever may only prompt cannot get
//! around the agent's questions by them. What is not in the table may be of that sort, and is taken to be.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::SessionError;
use super::error::TooRisky;
use crate::auth::{Denied, Device, Target};
use plexus_protocol::{Origin, Risk, Scope};

/// A method, `name.*` for a family, or `*.name` for a verb; and the scope it needs. The first that fits counts.
const POLICY: &[(&str, Scope)] = &[
    // They read.
    ("*.list", Scope::Prompt),
    ("*.status", Scope::Prompt),
    ("context.inspect", Scope::Prompt),
    // They say what the next prompt is about, and who is to answer it; a run could do either.
    ("ui.context.update", Scope::Prompt),
    ("model.set", Scope::Prompt),
    ("session.set_model", Scope::Prompt),
    // They say when the agent asks at all: an answer in advance.
    ("session.set_mode", Scope::Approve),
    ("session.set_config_option", Scope::Approve),
    // They act without a question.
    ("shell.*", Scope::Admin),
    ("task.*", Scope::Admin),
    ("tool.*", Scope::Admin),
    ("theme.*", Scope::Admin),
    ("auth.*", Scope::Admin),
    ("*", Scope::Admin),
];

/// Methods that list the conversations of a runtime: titles and folders of sessions that the caller may not see.
const WHOLE: &[&str] = &["session.list", "thread.list", "thread.loaded.list"];

/// Checks that a device that may prompt may also call this.
///
/// # Errors
/// [`SessionError::Denied`] names the scope that is missing; [`SessionError::RiskTooHigh`] where it is an answer in advance, to
/// questions of every risk.
pub(super) fn check(
    device: &Arc<Device>,
    origin: &Origin,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), SessionError> {
    // What tells of all conversations of a runtime is for whoever has the whole runtime.
    let whole = WHOLE.contains(&method.replace('/', ".").as_str());
    if whole && !device.grant.covers(Scope::Watch, Target::Runtime(&origin.runtime_id)) {
        return Err(Denied { scope: Scope::Watch, device: device.name.clone() }.into());
    }
    let scope = needed(method, params);
    if !device.grant.covers(scope, Target::Session(&origin.session_id, &origin.runtime_id)) {
        return Err(Denied { scope, device: device.name.clone() }.into());
    }
    match device.grant.approve_up_to.filter(|up_to| scope == Scope::Approve && *up_to < Risk::Danger) {
        Some(up_to) => {
            let reasons = vec!["it lets the agent go on without asking".to_owned()];
            Err(SessionError::RiskTooHigh(Box::new(TooRisky {
                risk: Risk::Danger,
                up_to,
                reasons,
                devices: Vec::new(),
            })))
        }
        None => Ok(()),
    }
}

fn needed(method: &str, params: Option<&RawValue>) -> Scope {
    if method == "model.set" && !keeps_to_the_session(params) {
        return Scope::Admin;
    }
    let fits = |pattern: &str| match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(family), _) => method.starts_with(family),
        (None, Some(verb)) => method.ends_with(verb),
        (None, None) => method == pattern,
    };
    POLICY.iter().find(|(pattern, _)| fits(pattern)).map_or(Scope::Admin, |(_, scope)| *scope)
}

/// Whether a model is chosen for this session alone: any other scope is the runtime's configuration, for all to come.
fn keeps_to_the_session(params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct Params {
        scope: Option<String>,
    }
    match params.map_or("null", RawValue::get) {
        "null" => true,
        // Twin members make no sense of it, and it is refused.
        text if text.starts_with('{') => {
            serde_json::from_str::<Params>(text).is_ok_and(|params| params.scope.is_none_or(|scope| scope == "session"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, params: Option<&str>) -> Scope {
        let params = params.map(|params| RawValue::from_string(params.into()).unwrap());
        needed(method, params.as_deref())
    }

    #[test]
    fn policy_lets_prompt_scope_read_but_not_act() {
        for method in ["model.list", "mcp.list", "skills.list", "shell.list", "task.status", "context.inspect"] {
            assert_eq!(of(method, None), Scope::Prompt, "{method}");
        }
        for method in ["session.set_mode", "session.set_config_option"] {
            assert_eq!(of(method, None), Scope::Approve, "{method}");
        }
        for method in [
            "shell.exec",
            "shell.start",
            "shell.output",
            "shell.detach",
            "tool.call",
            "task.spawn",
            "task.cancel",
            "theme.set",
            "auth.logout",
            // Nobody knows what these do.
            "session.new_thing",
            "_vendor.do",
            "workspace.write",
            "Shell.exec",
            "shell",
            "context.inspect.all",
            "mylist",
            ".",
            "",
        ] {
            assert_eq!(of(method, None), Scope::Admin, "{method}");
        }
    }

    #[test]
    fn policy_lists_conversations_only_for_the_whole_runtime() {
        let origin = Origin {
            session_id: plexus_protocol::SessionId::trusted("s_1"),
            runtime_id: plexus_protocol::RuntimeId::trusted("r"),
            dialect: "codex".into(),
        };
        let may = |sessions: Option<Vec<plexus_protocol::SessionId>>, method: &str| {
            let device = serde_json::json!({
                "device_id": "d_1", "name": "x", "scopes": ["watch", "prompt", "approve", "admin"], "sessions": sessions,
                "created_at": "2026-01-01T00:00:00Z", "token_sha256": "",
            });
            check(&Arc::new(serde_json::from_value(device).unwrap()), &origin, method, None).is_ok()
        };
        let one = || Some(vec![origin.session_id.clone()]);
        for method in ["thread.list", "thread/list", "thread.loaded.list", "session.list", "session/list"] {
            assert!(may(None, method) && !may(one(), method), "{method}");
        }
        assert!(may(one(), "model.list") && may(one(), "mcp.list"));
    }

    #[test]
    fn policy_model_set_beyond_the_session_needs_admin() {
        for (params, scope) in [
            (None, Scope::Prompt),
            (Some("null"), Scope::Prompt),
            (Some(r#"{"name":"m"}"#), Scope::Prompt),
            (Some(r#"{"name":"m","scope":null}"#), Scope::Prompt),
            (Some(r#"{"name":"m","scope":"session"}"#), Scope::Prompt),
            (Some(r#"{"name":"m","scope":"config"}"#), Scope::Admin),
            (Some(r#"{"name":"m","sc\u006fpe":"config"}"#), Scope::Admin),
            (Some(r#"{"scope":"session","scope":"config"}"#), Scope::Admin),
            (Some(r#"{"scope":["session"]}"#), Scope::Admin),
            (Some(r#"["session"]"#), Scope::Admin),
        ] {
            assert_eq!(of("model.set", params), scope, "{params:?}");
        }
    }
}
