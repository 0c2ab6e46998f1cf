//! MCP servers and skills of Codex, in the words of the UI protocol: `mcp.list` and `skills.list`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::jsonrpc::{self, object};
use plexus_protocol::NativeId;

/// What Codex calls `mcp.list` …
pub(super) const SERVERS: &str = "mcpServerStatus/list";
/// … and `skills.list`.
pub(super) const SKILLS: &str = "skills/list";

/// Servers that are asked for at most.
const SERVERS_MAX: usize = 500;

/// What is asked of the servers: how they stand in this thread.
pub(super) fn of_thread(native: Option<&NativeId>) -> Box<RawValue> {
    jsonrpc::to_raw(&json!({ "detail": "toolsAndAuthOnly", "limit": SERVERS_MAX, "threadId": native }))
}

/// What is asked of the skills: those of a folder, if the params of `skills.list` name one.
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
    #[derive(Deserialize)]
    struct List {
        data: Vec<Value>,
    }
    object::<List>(result).map(|list| list.data).unwrap_or_default()
}

/// The reply to [`SERVERS`] as that to `mcp.list`.
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
        let mut told = json!({
            "id": server["name"],
            "transport": if server["httpOrigin"].is_string() { "http" } else { "stdio" },
            "enabled": state != "disabled",
            "state": state,
            "tools": tools,
        });
        if let Some(error) = error.as_str() {
            told["last_error"] = error.into();
        } else if server["runtimeStatus"] == "authenticationRequired" {
            told["last_error"] = "it requires a sign-in: `codex mcp login`".into();
        }
        told
    };
    let servers: Vec<Value> = list(result).iter().map(one).collect();
    jsonrpc::to_raw(&json!({ "servers": servers }))
}

/// The reply to [`SKILLS`] as that to `skills.list`: those that are in use.
pub(super) fn skills(result: &RawValue) -> Box<RawValue> {
    let of = |entry: &Value, member: &str| entry[member].as_array().cloned().unwrap_or_default();
    let one = |skill: &Value| {
        let path = skill["path"].as_str().unwrap_or_default();
        json!({
            "id": path,
            "name": skill["name"],
            "description": skill["description"],
            "path": path,
            "dir": path.rsplit_once('/').map_or("", |(dir, _)| dir),
            "scope": if skill["scope"] == "repo" { "repo" } else { "user" },
            // Codex does not say.
            "mtime_ms": 0,
        })
    };
    let entries = list(result);
    let used = entries.iter().flat_map(|entry| of(entry, "skills")).filter(|skill| skill["enabled"] != false);
    let skills: Vec<Value> = used.map(|skill| one(&skill)).collect();
    let errors: Vec<Value> = entries.iter().flat_map(|entry| of(entry, "errors")).collect();
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
    fn servers_are_told_as_the_ui_protocol_tells_them() {
        // As 0.169 answered.
        let said = raw(
            r#"{"data":[{"name":"gone","runtimeStatus":"failed","httpOrigin":null,"tools":{},"toolsError":"No such file"},
            {"name":"off","runtimeStatus":"disabled","httpOrigin":null,"tools":{},"toolsError":null},
            {"name":"web","runtimeStatus":"connected","httpOrigin":"http://127.0.0.1:9","tools":{"a":{},"b":{}},"toolsError":null},
            {"name":"new","runtimeStatus":"starting","tools":{}},{"name":"in","runtimeStatus":"authenticationRequired"}],"nextCursor":null}"#,
        );
        let told = value(&servers(&said));
        let of = |n: usize| {
            let one = &told["servers"][n];
            (one["id"].clone(), one["state"].clone(), one["transport"].clone(), one["tools"].clone())
        };
        let want = |id: &str, state: &str, transport: &str, tools: u64| {
            (json!(id), json!(state), json!(transport), json!(tools))
        };
        assert_eq!(of(0), want("gone", "error", "stdio", 0));
        assert_eq!(
            (&told["servers"][0]["last_error"], &told["servers"][1]["enabled"]),
            (&json!("No such file"), &json!(false))
        );
        assert_eq!(of(1), want("off", "disabled", "stdio", 0));
        assert_eq!(of(2), want("web", "ready", "http", 2));
        assert_eq!(of(3), want("new", "connecting", "stdio", 0));
        assert_eq!(of(4).1, "error");
        assert_eq!(value(&servers(&raw("7"))), json!({ "servers": [] }));
    }

    #[test]
    fn skills_that_are_in_use_are_told_with_their_folders() {
        let said = raw(r#"{"data":[{"cwd":"/w","skills":[
            {"name":"greet","description":"Says hello.","path":"/h/skills/greet/SKILL.md","scope":"system","enabled":true},
            {"name":"off","description":"","path":"/w/x/SKILL.md","scope":"repo","enabled":false}],
            "errors":[{"path":"/w/y","message":"no front matter"}]}]}"#);
        let told = value(&skills(&said));
        assert_eq!(
            told["skills"],
            json!([{
                "id": "/h/skills/greet/SKILL.md", "name": "greet", "description": "Says hello.",
                "path": "/h/skills/greet/SKILL.md", "dir": "/h/skills/greet", "scope": "user", "mtime_ms": 0,
            }])
        );
        assert_eq!((&told["errors"][0]["message"], &told["truncated"]), (&json!("no front matter"), &json!(false)));
        let params = raw(r#"{"cwd":"/w","force_reload":true}"#);
        assert_eq!(value(&in_folder(Some(&params))), json!({ "cwds": ["/w"], "forceReload": true }));
        assert_eq!(value(&in_folder(None)), json!({ "cwds": [], "forceReload": false }));
    }
}
