//! The documentation of a row of the route table, for `openapi.json`: body, responses and parameters.

use serde_json::{Value, json};

use plexus_sessions::FILE_QUERY_MAX;

use super::schemas::{CURSOR, ID, NON_BLANK, Shape};

/// Maximum length of a search text, in characters.
pub(super) const QUERY_MAX: usize = 512;

/// The documentation of a route.
#[derive(Clone, Debug, Default)]
pub struct Docs {
    /// The request body.
    pub request: Option<Shape>,
    /// The responses, by status.
    pub responses: Vec<ResponseDocs>,
    /// The parameters, without those of the path.
    pub parameters: Vec<&'static Parameter>,
}

/// The documentation of a response.
#[derive(Clone, Debug)]
pub struct ResponseDocs {
    /// The status.
    pub status: u16,
    /// The JSON body.
    pub json: Option<Shape>,
    /// Other media types of the body.
    pub media: &'static [&'static str],
}

/// A parameter of a query or a header.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    name: &'static str,
    /// `query` or `header`.
    location: &'static str,
    required: bool,
    about: &'static str,
    schema: fn() -> Value,
}

impl Parameter {
    /// Makes an optional parameter of the query.
    pub const fn query(name: &'static str, about: &'static str, schema: fn() -> Value) -> Self {
        Self { name, location: "query", required: false, about, schema }
    }

    /// Makes an optional header.
    pub const fn header(name: &'static str, about: &'static str, schema: fn() -> Value) -> Self {
        Self { location: "header", ..Self::query(name, about, schema) }
    }

    /// Makes the header `Idempotency-Key`; `about` describes a repeated request.
    pub const fn idempotency_key(about: &'static str) -> Self {
        Self::header("Idempotency-Key", about, key)
    }

    /// Marks the parameter as one that a request must have.
    #[must_use]
    pub const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Returns the parameter in OpenAPI's form.
    pub(super) fn described(&self) -> Value {
        let Self { name, location, required, about, schema } = self;
        json!({ "name": name, "in": location, "required": required, "description": about, "schema": schema() })
    }
}

/// Returns the parameters of a path in OpenAPI's form.
pub(super) fn in_path(path: &str) -> impl Iterator<Item = Value> {
    path.split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next())
        .map(|name| json!({ "name": name, "in": "path", "required": true, "description": "Which one", "schema": id() }))
}

/// Returns the schema of an enumeration of these strings.
pub fn one_of(all: &[&str]) -> Value {
    json!({ "type": "string", "enum": all })
}

/// Returns the schema of text that matches a pattern.
pub fn matching(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// Returns the schema of a natural number.
pub fn number() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
}

/// Returns the schema of an identifier.
pub fn id() -> Value {
    matching(ID)
}

fn key() -> Value {
    matching("^[!-~]{1,128}$")
}

/// Returns the schema of a cursor, a position in a long text, `now`, or nothing.
fn history_position() -> Value {
    matching(&format!("^(|now|{}(\\+[0-9]{{1,9}})?)$", CURSOR.trim_matches(['^', '$'])))
}

pub(super) const AFTER: Parameter = Parameter::query(
    "after",
    "A cursor; absent or empty: start at the oldest stored event; `now`: only new events",
    history_position,
);
pub(super) const EVENTS_LIMIT: Parameter =
    Parameter::query("limit", "Maximum number of events (default 500, at most 5000)", number);
pub(super) const WAIT: Parameter =
    Parameter::query("wait", "Seconds to wait if there are no events yet (default 0, at most 60)", number);
pub(super) const GATHER: Parameter = Parameter::query(
    "gather",
    "Milliseconds to wait for further events after the first, at the end of the log (default 0, at most 1000)",
    number,
);
pub(super) const BEFORE: Parameter = Parameter::query(
    "before",
    "A cursor: returns the newest events of one session before it; empty or `now`: the newest events",
    history_position,
);
pub(super) const MERGE: Parameter = Parameter::query(
    "merge",
    "true: the chunks of a message, and the updates of a tool call, are merged into one item (default false)",
    || one_of(&["true", "false"]),
);
pub(super) const EVENTS_BYTES: Parameter = Parameter::query(
    "max_bytes",
    "Approximate maximum size in bytes of a page that is merged or read backwards (default and maximum 1 MiB)",
    number,
);
pub(super) const EVENTS_OUTPUT: Parameter = Parameter::query(
    "max_output",
    "With `merge`: the members of a tool call are shortened to about this many bytes each, at least 1 KiB (default: not at all)",
    number,
);
pub(super) const PROJECTION: Parameter = Parameter::query(
    "projection",
    "For `text/event-stream`: also send the runtime's original message with each event",
    || one_of(&["canonical", "native"]),
);
pub(super) const LAST_EVENT_ID: Parameter = Parameter::header(
    "Last-Event-ID",
    "For `text/event-stream`: takes precedence over `after`",
    || json!({ "type": "string" }),
);
/// The parameters of every route that returns events.
pub(super) const EVENTS: &[&Parameter] = &[
    &AFTER,
    &EVENTS_LIMIT,
    &WAIT,
    &GATHER,
    &BEFORE,
    &MERGE,
    &EVENTS_BYTES,
    &EVENTS_OUTPUT,
    &PROJECTION,
    &LAST_EVENT_ID,
];
/// The parameter with sessions. One value may name several of them, separated by commas.
pub(super) const SESSIONS_NAMED: Parameter = Parameter::query("session", "Only this session; can be repeated", || {
    matching("^([A-Za-z0-9_.:-]{1,128})?(,([A-Za-z0-9_.:-]{1,128})?)*$")
});
pub(super) const SESSION_NAMED: Parameter = Parameter::query("session", "Only this session's", || {
    matching("^([A-Za-z0-9_.:-]{1,128})?(,([A-Za-z0-9_.:-]{1,128})?)*$")
});
pub(super) const SNAPSHOT_BYTES: Parameter = Parameter::query(
    "max_bytes",
    "Approximate maximum size in bytes of messages and tools (default and maximum 256 KiB)",
    number,
);
pub(super) const ARCHIVED: Parameter =
    Parameter::query("archived", "true: only archived sessions; all: archived ones too; default false", || {
        one_of(&["true", "false", "all"])
    });
pub(super) const SESSIONS_LIMIT: Parameter =
    Parameter::query("limit", "Maximum number of sessions (default and maximum 1000)", number);
pub(super) const SESSIONS_CURSOR: Parameter = Parameter::query("cursor", "`next` of the previous page", || {
    matching("^([0-9]{1,15}\\.[0-9]{1,15}\\.-?[0-9]{1,15}\\.[A-Za-z0-9_.:-]{1,128})?$")
});
pub(super) const REQUEST_STATE: Parameter =
    Parameter::query("state", "open, answered, expired, withdrawn, orphaned or all", || {
        one_of(&["open", "answered", "expired", "withdrawn", "orphaned", "all"])
    });
pub(super) const REQUESTS_LIMIT: Parameter = Parameter::query("limit", "Maximum number, at most 1000", number);
pub(super) const REQUESTS_BEFORE: Parameter = Parameter::query("before", "`next` of the previous page", number);
pub(super) const SEARCH_TEXT: Parameter = Parameter::query(
    "q",
    "Words to search for",
    || json!({ "type": "string", "minLength": 1, "maxLength": QUERY_MAX, "pattern": NON_BLANK }),
)
.required();
pub(super) const HITS_LIMIT: Parameter =
    Parameter::query("limit", "Maximum number of results (default 20, at most 100)", number);
pub(super) const ANSWER_KEY: Parameter =
    Parameter::idempotency_key("The same key returns the same receipt again: 1 to 128 visible ASCII characters");
/// The key of a repeated prompt.
pub const PROMPT_KEY: Parameter =
    Parameter::idempotency_key("A repeated prompt with the same key is run once: 1 to 128 visible ASCII characters");
pub(super) const ASK_WAIT: Parameter =
    Parameter::query("wait", "Wait this many seconds for its end, at most 45", number);
pub(super) const DRAW_KEY: Parameter =
    Parameter::idempotency_key("A repeated call with the same key draws once: 1 to 128 visible ASCII characters");
pub(super) const DRAW_CALL: Parameter = Parameter::query(
    "call",
    "Refuse it unless the session's agent makes this call of a tool now: 32 hexadecimal digits, a digest of it (for `plexus mcp`)",
    || matching("^[0-9a-f]{32}$"),
);
/// The text that the paths of files must fit.
pub const FILES_QUERY: Parameter = Parameter::query(
    "query",
    "Letters of the path, in their order; all files if absent or empty",
    || json!({ "type": "string", "maxLength": FILE_QUERY_MAX }),
);
/// The number of files.
pub const FILES_LIMIT: Parameter =
    Parameter::query("limit", "Maximum number of files (default 20, at most 100)", number);

const fn handshake(name: &'static str, schema: fn() -> Value) -> Parameter {
    Parameter::header(name, "Of a handshake of RFC 6455", schema).required()
}
const CONNECTION: Parameter = handshake("Connection", || one_of(&["Upgrade"]));
const UPGRADE: Parameter = handshake("Upgrade", || one_of(&["websocket"]));
const WS_VERSION: Parameter = handshake("Sec-WebSocket-Version", || one_of(&["13"]));
/// The header `Sec-WebSocket-Key`: sixteen bytes in base64.
const WS_KEY: Parameter = handshake("Sec-WebSocket-Key", || matching("^[A-Za-z0-9+/]{21}[AQgw]==$"));
/// The headers of a WebSocket handshake (RFC 6455).
pub const HANDSHAKE: &[&Parameter] = &[&CONNECTION, &UPGRADE, &WS_VERSION, &WS_KEY];
