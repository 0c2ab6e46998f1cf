//! An agent's MCP servers and skills, in the form of the UI protocol's `mcp.list` and `skills.list`.
//!
//! The responses consist of the agent's text, bounded in number and length.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use plexus_auth::{Permit, Prompt};
use plexus_protocol::api::agent_tools::{AgentMcpServer, McpServers, Skill, SkillError, Skills};
use plexus_protocol::{Capability, SessionInfo, object};
use plexus_router::described::{Parameter, one_of};
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{QueryParameters, RouteResult, bad_query, json, session_of};
use plexus_router::routes::{GET, NOTHING, PROMPTS, route};
use plexus_router::{Core, Problem};
use plexus_sessions::SessionError;

/// Maximum number of servers, skills or errors in one response; `truncated` is set if there are more.
const ITEMS_MAX: usize = 500;
/// Maximum length of the text of one member, in characters; a longer one is cut.
const TEXT_MAX: usize = 2000;
/// Maximum time for the agent to respond.
const ANSWER_TIME: Duration = Duration::from_secs(30);

const MCP_SCOPE: Parameter =
    Parameter::query("scope", "loaded, or configured: also servers that are not in use; default loaded", || {
        one_of(&["loaded", "configured"])
    });

/// Returns the routes of the tools of agents.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        route(GET, "/v1/sessions/{id}/mcp", PROMPTS, NOTHING, "The MCP servers of a session's agent", mcp)
            .response::<McpServers>(200).with(&[&MCP_SCOPE]),
        route(GET, "/v1/sessions/{id}/skills", PROMPTS, NOTHING, "The skills of a session's agent", skills)
            .response::<Skills>(200),
    ]
}

/// Returns text, cut to [`TEXT_MAX`]; `None` if it is empty.
fn text(value: &Value) -> Option<String> {
    value.as_str().map(|text| text.chars().take(TEXT_MAX).collect())
}

/// Returns a value of an enum, or its default if the word is unknown.
fn word<T: DeserializeOwned + Default>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_default()
}

fn server(value: &Value) -> Option<AgentMcpServer> {
    Some(AgentMcpServer {
        id: text(&value["id"])?,
        transport: word(&value["transport"]),
        source: Option::deserialize(&value["source"]).unwrap_or_default(),
        enabled: value["enabled"] != false,
        state: word(&value["state"]),
        tools: value["tools"].as_u64(),
        last_error: text(&value["last_error"]),
        last_connected_at: text(&value["last_connected_at"]),
    })
}

fn skill(value: &Value) -> Option<Skill> {
    let name = text(&value["name"]).or_else(|| text(&value["id"]))?;
    let member = |name: &str| text(&value[name]).unwrap_or_default();
    Some(Skill {
        id: text(&value["id"]).unwrap_or_else(|| name.clone()),
        name,
        description: member("description"),
        path: member("path"),
        dir: member("dir"),
        scope: word(&value["scope"]),
        mtime_ms: value["mtime_ms"].as_u64().unwrap_or_default(),
    })
}

/// Returns at most [`ITEMS_MAX`] items of a list, and whether there are more.
fn some<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> (Vec<T>, bool) {
    let all = value.as_array().map_or(&[][..], Vec::as_slice);
    (all.iter().take(ITEMS_MAX).filter_map(read).collect(), all.len() > ITEMS_MAX)
}

fn servers(response: &Value) -> McpServers {
    let (servers, truncated) = some(&response["servers"], server);
    McpServers { servers: servers.into(), truncated }
}

fn skills_of(response: &Value) -> Skills {
    let (skills, cut) = some(&response["skills"], skill);
    let (errors, more) = some(&response["errors"], |error| {
        Some(SkillError { path: text(&error["path"]).unwrap_or_default(), message: text(&error["message"])? })
    });
    Skills { skills: skills.into(), errors: errors.into(), truncated: cut || more || response["truncated"] == true }
}

async fn mcp(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session_of::<Prompt>(&state, &call)?;
    let scope = match QueryParameters::from_call(&call).get("scope") {
        None | Some("" | "loaded") => "loaded",
        Some("configured") => "configured",
        Some(_) => return Err(bad_query("`scope` must be loaded or configured".into())),
    };
    let (what, params) = ("MCP servers", json!({ "scope": scope }));
    let response = ask(&state, &session, &permit, (Capability::McpList, "mcp.list", what), &params).await?;
    json(StatusCode::OK, &servers(&response))
}

async fn skills(state: Core, call: Call) -> RouteResult {
    let (session, permit) = session_of::<Prompt>(&state, &call)?;
    let params = json!({ "cwd": session.cwd });
    let response = ask(&state, &session, &permit, (Capability::SkillsList, "skills.list", "skills"), &params).await?;
    json(StatusCode::OK, &skills_of(&response))
}

/// Calls a method of the session's runtime, if the runtime has the capability.
async fn ask(
    state: &Core,
    session: &SessionInfo,
    permit: &Permit<Prompt>,
    (needs, method, list): (Capability, &'static str, &'static str),
    params: &Value,
) -> Result<Value, Problem> {
    let runtime = state.directory.runtime(&session.runtime_id);
    let can = runtime.is_some_and(|runtime| runtime.capabilities.as_ref().is_some_and(|can| can.has(needs)));
    if !can {
        let reason = "this agent does not report them; ask it in a prompt, or look in its configuration";
        return Err(SessionError::ListingUnsupported { runtime: session.runtime_id.clone(), list, reason }.into());
    }
    let params: Box<RawValue> = to_raw_value(params).map_err(|_| Problem::internal())?;
    let reply = state.directory.call(permit, &session.session_id, method.into(), Some(params), false);
    let no_reply = |_| Problem::from(SessionError::RuntimeSilent(ANSWER_TIME.as_secs()));
    let reply = tokio::time::timeout(ANSWER_TIME, reply).await.map_err(no_reply)??;
    #[derive(Deserialize)]
    struct Reply(Value);
    let Reply(response) = object::from_str(reply.get()).unwrap_or(Reply(Value::Null));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_tools_are_read_leniently_and_bounded() {
        let long = "x".repeat(TEXT_MAX + 5);
        let response = json!({ "servers": [
            { "id": "a", "transport": "http", "source": "project", "enabled": true, "state": "ready", "tools": 3, "more": 1 },
            { "id": "b", "transport": "smoke", "enabled": false, "state": "disabled", "last_error": long },
            { "id": 7 }, "no", { "state": "ready" },
        ] });
        let told = json!(servers(&response));
        assert_eq!(told["servers"].as_array().unwrap().len(), 2);
        assert_eq!(
            told["servers"][0],
            json!({ "id": "a", "transport": "http", "source": "project", "enabled": true, "state": "ready", "tools": 3 })
        );
        assert_eq!(
            (&told["servers"][1]["transport"], &told["servers"][1]["state"]),
            (&json!("stdio"), &json!("disabled"))
        );
        assert_eq!(told["servers"][1]["last_error"].as_str().unwrap().len(), TEXT_MAX);
        let many: Vec<Value> = (0..ITEMS_MAX + 1).map(|n| json!({ "id": n.to_string(), "name": "n" })).collect();
        let told = json!(skills_of(&json!({ "skills": many, "errors": [{ "path": "/x", "message": "no" }, {}] })));
        assert_eq!((told["skills"].as_array().unwrap().len(), &told["truncated"]), (ITEMS_MAX, &json!(true)));
        assert_eq!(told["errors"], json!([{ "path": "/x", "message": "no" }]));
        for none in [Value::Null, json!([]), json!({ "skills": {} })] {
            assert_eq!(json!(skills_of(&none)), json!({ "skills": [], "errors": [], "truncated": false }));
        }
    }
}
