//! MCP servers and skills of Codex in the form of the UI protocol: `mcp.list` and `skills.list`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::jsonrpc::{self, member, object};
use plexus_protocol::NativeId;

/// Codex's method for `mcp.list`.
pub(super) const SERVERS: &str = "mcpServerStatus/list";
/// Codex's method for `skills.list`.
pub(super) const SKILLS: &str = "skills/list";

/// Maximum number of servers requested.
const SERVERS_MAX: usize = 500;

/// Returns the params of [`SERVERS`], for the state in this thread.
pub(super) fn thread_servers(native: Option<&NativeId>) -> Box<RawValue> {
    jsonrpc::to_raw(&json!({ "detail": "toolsAndAuthOnly", "limit": SERVERS_MAX, "threadId": native }))
}

/// Returns the params of [`SKILLS`], for a folder if the params of `skills.list` name one.
pub(super) fn in_folder(params: Option<&RawValue>) -> Box<RawValue> {
    #[derive(Default, Deserialize)]
    struct List {
        cwd: Option<String>,
        force_reload: Option<bool>,
    }
    let List { cwd, force_reload } = params.and_then(object).unwrap_or_default();
    let cwds: Vec<String> = cwd.into_iter().collect();
    jsonrpc::to_raw(&json!({ "cwds": cwds, "forceReload": force_reload.unwrap_or_default() }))
}

fn list(result: &RawValue) -> Vec<Value> {
    member(result, "data").unwrap_or_default()
}

/// Translates the reply to [`SERVERS`].
pub(super) fn servers(result: &RawValue) -> Box<RawValue> {
    let one = |server: &Value| {
        let (tools, error) = (server["tools"].as_object().map_or(0, serde_json::Map::len), &server["toolsError"]);
        let state = match server["runtimeStatus"].as_str() {
            Some("connected") => "ready",
            Some("disabled") => "disabled",
            Some("failed" | "cancelled" | "authenticationRequired") => "error",
            None if error.is_string() => "error",
            None if tools > 0 => "ready",
            _ => "connecting",
        };
        let mut reply = json!({
            "id": server["name"],
            "transport": if server["httpOrigin"].is_string() { "http" } else { "stdio" },
            "enabled": state != "disabled",
            "state": state,
            "tools": tools,
        });
        if let Some(error) = error.as_str() {
            reply["last_error"] = error.into();
        } else if server["runtimeStatus"] == "authenticationRequired" {
            reply["last_error"] = "it requires a sign-in: `codex mcp login`".into();
        }
        reply
    };
    let servers: Vec<Value> = list(result).iter().map(one).collect();
    jsonrpc::to_raw(&json!({ "servers": servers }))
}

/// Translates the reply to [`SKILLS`], except disabled skills.
pub(super) fn skills(result: &RawValue) -> Box<RawValue> {
    let member = |entry: &Value, name: &str| entry[name].as_array().cloned().unwrap_or_default();
    let one = |skill: &Value| {
        let path = skill["path"].as_str().unwrap_or_default();
        json!({
            "id": path,
            "name": skill["name"],
            "description": skill["description"],
            "path": path,
            "dir": path.rsplit_once('/').map_or("", |(dir, _)| dir),
            "scope": if skill["scope"] == "repo" { "repo" } else { "user" },
            // Codex does not report the time.
            "mtime_ms": 0,
        })
    };
    let entries = list(result);
    let used = entries.iter().flat_map(|entry| member(entry, "skills")).filter(|skill| skill["enabled"] != false);
    let skills: Vec<Value> = used.map(|skill| one(&skill)).collect();
    let errors: Vec<Value> = entries.iter().flat_map(|entry| member(entry, "errors")).collect();
    jsonrpc::to_raw(&json!({ "skills": skills, "errors": errors, "truncated": false }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.into()).unwrap()
    }

    fn value(raw: &RawValue) -> Value {
        serde_json::from_str(raw.get()).unwrap()
    }

    #[test]
    fn codex_servers_have_the_ui_protocols_form() {
        // As Codex 0.169 replies.
        let input = raw(
            r#"{"data":[{"name":"gone","runtimeStatus":"failed","httpOrigin":null,"tools":{},"toolsError":"No such file"},
            {"name":"off","runtimeStatus":"disabled","httpOrigin":null,"tools":{},"toolsError":null},
            {"name":"web","runtimeStatus":"connected","httpOrigin":"http://127.0.0.1:9","tools":{"a":{},"b":{}},"toolsError":null},
            {"name":"new","runtimeStatus":"starting","tools":{}},{"name":"in","runtimeStatus":"authenticationRequired"}],"nextCursor":null}"#,
        );
        let reply = value(&servers(&input));
        let of = |n: usize| {
            let one = &reply["servers"][n];
            (one["id"].clone(), one["state"].clone(), one["transport"].clone(), one["tools"].clone())
        };
        let expected = |id: &str, state: &str, transport: &str, tools: u64| {
            (json!(id), json!(state), json!(transport), json!(tools))
        };
        assert_eq!(of(0), expected("gone", "error", "stdio", 0));
        assert_eq!(
            (&reply["servers"][0]["last_error"], &reply["servers"][1]["enabled"]),
            (&json!("No such file"), &json!(false))
        );
        assert_eq!(of(1), expected("off", "disabled", "stdio", 0));
        assert_eq!(of(2), expected("web", "ready", "http", 2));
        assert_eq!(of(3), expected("new", "connecting", "stdio", 0));
        assert_eq!(of(4).1, "error");
        assert_eq!(value(&servers(&raw("7"))), json!({ "servers": [] }));
    }

    #[test]
    fn codex_skills_in_use_have_their_folders() {
        let input = raw(r#"{"data":[{"cwd":"/w","skills":[
            {"name":"greet","description":"Says hello.","path":"/h/skills/greet/SKILL.md","scope":"system","enabled":true},
            {"name":"off","description":"","path":"/w/x/SKILL.md","scope":"repo","enabled":false}],
            "errors":[{"path":"/w/y","message":"no front matter"}]}]}"#);
        let reply = value(&skills(&input));
        assert_eq!(
            reply["skills"],
            json!([{
                "id": "/h/skills/greet/SKILL.md", "name": "greet", "description": "Says hello.",
                "path": "/h/skills/greet/SKILL.md", "dir": "/h/skills/greet", "scope": "user", "mtime_ms": 0,
            }])
        );
        assert_eq!((&reply["errors"][0]["message"], &reply["truncated"]), (&json!("no front matter"), &json!(false)));
        let params = raw(r#"{"cwd":"/w","force_reload":true}"#);
        assert_eq!(value(&in_folder(Some(&params))), json!({ "cwds": ["/w"], "forceReload": true }));
        assert_eq!(value(&in_folder(None)), json!({ "cwds": [], "forceReload": false }));
    }
}
