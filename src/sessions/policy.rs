//! Checks of the scope that a call of a runtime's own method needs, and of a device's risk limit. Pure.
//!
//! A client may call methods of a runtime that the gateway does not know. Some act without a permission request:
//! `shell.exec` runs a command, `tool.call` a tool, `theme.set` writes a file. A device that may only prompt must not bypass
//! the agent's requests with them. A method that is not in the table counts as such a method.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::SessionError;
use super::error::{Refused, TooRisky};
use plexus_auth::{Denied, Device, Target};
use plexus_protocol::{Origin, Scope};
use plexus_risk::Effect;

/// Patterns (a method, `name.*` for a family, or `*.name` for a verb) with the scope they need. The first match counts.
const POLICY: &[(&str, Scope)] = &[
    // Methods that only read.
    ("*.list", Scope::Prompt),
    ("*.status", Scope::Prompt),
    ("context.inspect", Scope::Prompt),
    // Settings of the next prompt: its context and its model. A prompt can change both anyway.
    ("ui.context.update", Scope::Prompt),
    ("model.set", Scope::Prompt),
    ("session.set_model", Scope::Prompt),
    // Settings that decide when the agent asks for permission: answers in advance.
    ("session.set_mode", Scope::Approve),
    ("session.set_config_option", Scope::Approve),
    // Methods that act without a permission request.
    ("shell.*", Scope::Admin),
    ("task.*", Scope::Admin),
    ("tool.*", Scope::Admin),
    ("theme.*", Scope::Admin),
    ("auth.*", Scope::Admin),
    ("*", Scope::Admin),
];

/// Methods that list all conversations of a runtime, also titles and folders of sessions that the caller may not see.
const RUNTIME_WIDE: &[&str] = &["session.list", "thread.list", "thread.loaded.list"];

/// Checks that a device that may prompt may also call this method.
///
/// # Errors
/// [`SessionError::Denied`] names the missing scope; [`SessionError::RiskTooHigh`] if a device with a risk limit would answer in advance,
/// or act without a request.
pub(super) fn check(
    device: &Arc<Device>,
    origin: &Origin,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), SessionError> {
    let runtime_wide = RUNTIME_WIDE.contains(&method.replace('/', ".").as_str());
    if runtime_wide && !device.grant.covers(Scope::Watch, Target::Runtime(&origin.runtime_id)) {
        return Err(Denied { scope: Scope::Watch, device: device.name.clone() }.into());
    }
    let scope = needed_scope(method, params);
    if !device.grant.covers(scope, Target::Session(&origin.session_id, &origin.runtime_id)) {
        return Err(Denied { scope, device: device.name.clone() }.into());
    }
    match scope {
        Scope::Approve => check_effect(device, Effect::AllowAhead),
        Scope::Admin => check_effect(device, Effect::RunProgram),
        Scope::Watch | Scope::Prompt | Scope::Type | Scope::Ui => Ok(()),
    }
}

/// Checks that an action is within a device's risk limit.
///
/// # Errors
/// [`SessionError::RiskTooHigh`].
pub fn check_effect(device: &Device, effect: Effect) -> Result<(), SessionError> {
    match device.grant.approve_up_to.filter(|up_to| effect.risk() > *up_to) {
        Some(up_to) => {
            Err(TooRisky::new(Refused::Acting, effect.risk(), up_to, vec![effect.reason().to_owned()]).into())
        }
        None => Ok(()),
    }
}

fn needed_scope(method: &str, params: Option<&RawValue>) -> Scope {
    if method == "model.set" && !sets_session_model(params) {
        return Scope::Admin;
    }
    let fits = |pattern: &str| match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(family), _) => method.starts_with(family),
        (None, Some(verb)) => method.ends_with(verb),
        (None, None) => method == pattern,
    };
    POLICY.iter().find(|(pattern, _)| fits(pattern)).map_or(Scope::Admin, |(_, scope)| *scope)
}

/// Returns whether `model.set` concerns this session alone: any other scope changes the runtime's configuration.
fn sets_session_model(params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct Params {
        scope: Option<String>,
    }
    match params.map_or("null", RawValue::get) {
        "null" => true,
        // Duplicate members do not parse, so they need admin.
        text if text.starts_with('{') => {
            serde_json::from_str::<Params>(text).is_ok_and(|params| params.scope.is_none_or(|scope| scope == "session"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope_of(method: &str, params: Option<&str>) -> Scope {
        let params = params.map(|params| RawValue::from_string(params.into()).unwrap());
        needed_scope(method, params.as_deref())
    }

    #[test]
    fn policy_lets_prompt_scope_read_but_not_act() {
        for method in ["model.list", "mcp.list", "skills.list", "shell.list", "task.status", "context.inspect"] {
            assert_eq!(scope_of(method, None), Scope::Prompt, "{method}");
        }
        for method in ["session.set_mode", "session.set_config_option"] {
            assert_eq!(scope_of(method, None), Scope::Approve, "{method}");
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
            // Unknown methods.
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
            assert_eq!(scope_of(method, None), Scope::Admin, "{method}");
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
            assert_eq!(scope_of("model.set", params), scope, "{params:?}");
        }
    }
}
