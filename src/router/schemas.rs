//! The schemas of `openapi.json` and `asyncapi.json`. They are derived on the types that are sent and received, and collected from the
//! rows of the route table and the method table. This module defines what cannot be derived: agents' own JSON, which passes unchanged,
//! and rules over several members.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use plexus_protocol::schema::{Json, JsonObject};
use plexus_protocol::{ClientServed, ErrorBody, Kind, RawBody, Request, Resolution, RunBody, RuntimeStatusBody};
use plexus_sessions::LATEST;

/// The pattern of an identifier.
pub const ID: &str = "^[A-Za-z0-9_.:-]{1,128}$";
/// The pattern of a cursor.
pub const CURSOR: &str = "^[A-Za-z0-9]{1,32}:[0-9]{1,19}$";
/// The pattern of text that is not only white space.
pub(super) const NON_BLANK: &str = r"\S";

type Collected = Vec<(String, RefOr<Schema>)>;

/// The schema of a type and of all that it refers to.
#[derive(Clone, Copy)]
pub struct Shape {
    name: fn() -> Cow<'static, str>,
    collect: fn(&mut Collected),
}

impl Shape {
    /// Returns the schema of `T`.
    pub const fn of<T: ToSchema>() -> Self {
        Self { name: T::name, collect: collect::<T> }
    }

    /// Returns a reference to the schema.
    pub(super) fn reference(self) -> Value {
        json!({ "$ref": format!("#/components/schemas/{}", (self.name)()) })
    }
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&(self.name)())
    }
}

fn collect<T: ToSchema>(all: &mut Collected) {
    all.push((T::name().into_owned(), T::schema()));
    T::schemas(all);
}

// === agents' messages, in ACP's form; they pass unchanged, so the gateway never serializes these types ===

/// A part of a message: ACP's content block.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "an agent's JSON")]
enum Content {
    Text {
        text: String,
    },
    Image {
        data: String,
        #[serde(rename = "mimeType")]
        mime_type: String,
        uri: Option<String>,
    },
    Audio {
        data: String,
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    ResourceLink {
        uri: String,
        name: String,
        #[serde(rename = "mimeType")]
        mime_type: Option<String>,
        title: Option<String>,
        description: Option<String>,
    },
    Resource {
        #[schema(value_type = JsonObject)]
        resource: Value,
    },
}

/// The body of an event of one of ACP's kinds: ACP's `update` object.
#[derive(ToSchema)]
#[expect(dead_code, reason = "an agent's JSON")]
struct Update {
    #[schema(rename = "sessionUpdate")]
    session_update: String,
}

/// A piece of a message.
#[derive(ToSchema)]
#[expect(dead_code, reason = "an agent's JSON")]
struct Chunk {
    #[schema(rename = "sessionUpdate")]
    session_update: String,
    content: Content,
    #[schema(rename = "messageId")]
    message_id: Option<String>,
    /// The metadata: `plexus.by` is the author of a user's message.
    #[schema(rename = "_meta")]
    meta: Option<JsonObject>,
}

/// A tool call, or an update of one.
#[derive(ToSchema)]
#[expect(dead_code, reason = "an agent's JSON")]
struct ToolCall {
    #[schema(rename = "sessionUpdate")]
    session_update: String,
    #[schema(rename = "toolCallId")]
    tool_call_id: String,
    title: Option<String>,
    kind: Option<String>,
    /// `pending`, `in_progress`, `completed` or `failed`.
    status: Option<String>,
    content: Option<Vec<JsonObject>>,
    locations: Option<Vec<JsonObject>>,
    #[schema(rename = "_meta")]
    meta: Option<JsonObject>,
}

/// The agent's whole plan.
#[derive(ToSchema)]
#[expect(dead_code, reason = "an agent's JSON")]
struct Plan {
    #[schema(rename = "sessionUpdate")]
    session_update: String,
    entries: Vec<PlanEntry>,
}

/// A step of a plan.
#[derive(ToSchema)]
#[expect(dead_code, reason = "an agent's JSON")]
struct PlanEntry {
    content: String,
    priority: Option<String>,
    status: Option<String>,
}

/// A JSON-RPC message of ACP: a request, a notification or a response.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a client's JSON")]
pub struct AcpMessage {
    /// `2.0`
    jsonrpc: String,
    id: Option<Json>,
    method: Option<String>,
    params: Option<JsonObject>,
    result: Option<Json>,
    error: Option<JsonObject>,
}

/// Schemas that may have further members.
const OPEN: &[&str] = &[
    "Chunk",
    "Content",
    "ContentBlock",
    "Initialize",
    "Plan",
    "PlanEntry",
    "Tool",
    "ToolCall",
    "UiCapabilities",
    "Update",
];

/// Returns the schema of the body of a kind of event.
fn body(kind: Kind) -> Shape {
    match kind {
        Kind::UserMessageChunk | Kind::AgentMessageChunk | Kind::AgentThoughtChunk => Shape::of::<Chunk>(),
        Kind::ToolCall | Kind::ToolCallUpdate => Shape::of::<ToolCall>(),
        Kind::Plan => Shape::of::<Plan>(),
        Kind::AvailableCommandsUpdate
        | Kind::CurrentModeUpdate
        | Kind::ConfigOptionUpdate
        | Kind::SessionInfoUpdate
        | Kind::UsageUpdate => Shape::of::<Update>(),
        Kind::RunStarted | Kind::RunStatus | Kind::RunEnded => Shape::of::<RunBody>(),
        Kind::RequestOpened | Kind::RequestUpdated => Shape::of::<Request>(),
        Kind::RequestResolved => Shape::of::<Resolution<'_>>(),
        Kind::RuntimeStatus => Shape::of::<RuntimeStatusBody>(),
        Kind::Error => Shape::of::<ErrorBody>(),
        Kind::Raw => Shape::of::<RawBody<'_>>(),
        Kind::ClientServed => Shape::of::<ClientServed<'_>>(),
        Kind::Hook | Kind::SurfaceUpdated | Kind::ClientJoined | Kind::ClientLeft => Shape::of::<JsonObject>(),
    }
}

// === rules over several members ===

/// Returns the rule that exactly one of these members is given; a `value` of null counts as given: it denies.
fn one_answer() -> Value {
    json!({ "oneOf": [
        { "required": ["option_id"], "properties": { "option_id": { "type": "string" } } },
        { "required": ["ok"], "properties": { "ok": { "type": "boolean" } } },
        { "required": ["value"] },
        { "required": ["ids"], "properties": { "ids": { "type": "array" } } },
        { "required": ["answers"], "properties": { "answers": { "type": "object" } } },
    ] })
}

/// Returns the rule that a prompt is text or content.
fn one_prompt() -> Value {
    json!({ "oneOf": [
        { "required": ["text"], "properties": { "text": { "type": "string", "pattern": NON_BLANK }, "content": { "type": "null" } } },
        { "required": ["content"], "properties": { "content": { "type": "array" }, "text": { "type": "null" } } },
    ] })
}

/// Returns the rule that a runtime is started by preset, by dialect and program, or by dialect and endpoint.
fn one_start() -> Value {
    let none = json!({ "type": "null" });
    json!({ "oneOf": [
        {
            "required": ["preset"],
            "properties": { "preset": { "type": "string" }, "dialect": none, "command": none, "connect": none },
        },
        {
            "required": ["dialect", "command", "cwd"],
            "properties": {
                "dialect": { "type": "string" }, "command": { "type": "array" }, "cwd": { "type": "string" },
                "preset": none, "connect": none,
            },
        },
        {
            "required": ["dialect", "connect", "cwd"],
            "properties": {
                "dialect": { "type": "string" }, "connect": { "type": "string" }, "cwd": { "type": "string" },
                "preset": none, "command": none,
            },
        },
    ] })
}

/// Returns the schemas of the body of an event by its kind.
fn bodies_by_kind() -> Value {
    let one = |kind: &Kind| {
        json!({
            "if": { "properties": { "kind": { "const": kind.as_str() } } },
            "then": { "properties": { "event": body(*kind).reference() } },
        })
    };
    json!({ "allOf": Kind::ALL.iter().map(one).collect::<Vec<_>>() })
}

/// Returns the schemas of the latest bodies of a snapshot, by their kind.
fn latest_by_kind() -> Value {
    let bodies = LATEST.iter().map(|kind| (kind.as_str().to_owned(), body(*kind).reference()));
    json!({ "type": "object", "properties": bodies.collect::<Map<_, _>>() })
}

/// Returns the rules that a type cannot state, by the name of the type.
fn rules() -> [(&'static str, Value); 5] {
    [
        ("Answer", one_answer()),
        ("Said", one_answer()),
        ("NewPrompt", one_prompt()),
        ("StartRuntime", one_start()),
        ("Envelope", bodies_by_kind()),
    ]
}

// === all of them ===

/// Removes `null` from optional members: the gateway leaves such a member out, while clients may send `null`.
fn never_null(schema: &mut Value) {
    for part in schema.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
        never_null(part);
    }
    let required: BTreeSet<String> = serde_json::from_value(schema["required"].clone()).unwrap_or_default();
    let members = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, member) in members.into_iter().flatten().filter(|(name, _)| !required.contains(*name)) {
        if let Some(types) = member.get_mut("type").and_then(Value::as_array_mut) {
            types.retain(|kind| kind != "null");
            if let [one] = types.as_slice() {
                member["type"] = one.clone();
            }
        }
        if let Some(some) = member.get_mut("oneOf").and_then(Value::as_array_mut) {
            some.retain(|one| one["type"] != "null");
            if let [one] = some.as_slice() {
                *member = one.clone();
            }
        }
    }
}

/// Removes the brackets of links to code, since descriptions come from doc comments.
fn remove_links(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "description" => {
                        *text = text.replace("[`", "`").replace("`]", "`");
                    }
                    member => remove_links(member),
                }
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(remove_links),
        _ => {}
    }
}

/// Allows further members.
fn open(schema: &mut Value) {
    match schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        Some(forms) => forms.iter_mut().for_each(open),
        None => schema["additionalProperties"] = true.into(),
    }
}

/// Returns the names of the schemas that have rules of their own; a test requires that they exist.
pub fn schemas_with_rules() -> impl Iterator<Item = &'static str> {
    rules().into_iter().map(|(name, _)| name).chain(OPEN.iter().copied()).chain(["Snapshot"])
}

/// Returns the schemas of these types and of all that they refer to, by name: `taken` from clients, `given` by the gateway.
pub(super) fn schemas(taken: &[Shape], given: &[Shape]) -> Map<String, Value> {
    let closure = |shapes: &[Shape]| {
        let mut all = Vec::new();
        shapes.iter().for_each(|shape| (shape.collect)(&mut all));
        all
    };
    let taken = closure(taken);
    let sent: BTreeSet<String> = taken.iter().map(|(name, _)| name.clone()).collect();
    let mut given = closure(given);
    if given.iter().any(|(name, _)| name == "Envelope") {
        given.extend(closure(&Kind::ALL.iter().map(|kind| body(*kind)).collect::<Vec<_>>()));
    }
    let mut all = Map::new();
    for (name, schema) in taken.into_iter().chain(given) {
        let mut schema = serde_json::to_value(schema).unwrap_or_default();
        remove_links(&mut schema);
        if OPEN.contains(&name.as_str()) {
            open(&mut schema);
        } else if !sent.contains(&name) {
            never_null(&mut schema);
        }
        if name == "Snapshot" {
            schema["properties"]["latest"] = latest_by_kind();
        }
        all.insert(name, schema);
    }
    for (name, rule) in rules() {
        if let (Some(Value::Object(schema)), Value::Object(rule)) = (all.get_mut(name), rule) {
            schema.extend(rule);
        }
    }
    all
}
