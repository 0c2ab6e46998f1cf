//! The documentation of a row of the route table, for `openapi.json`: body, responses and parameters.

use serde_json::{Value, json};

use super::schemas::{CURSOR, ID, RESUMABLE, Shape, WORDS};

/// Longest text to search for, in characters.
pub(super) const QUERY_MAX: usize = 512;

/// The documentation of a route.
#[derive(Clone, Debug, Default)]
pub struct Docs {
    /// The request body.
    pub takes: Option<Shape>,
    /// The responses, by status.
    pub gives: Vec<Given>,
    /// The parameters, without those of the path.
    pub parameters: Vec<&'static Parameter>,
}

/// A response of a route.
#[derive(Clone, Debug)]
pub struct Given {
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
    place: &'static str,
    required: bool,
    about: &'static str,
    schema: fn() -> Value,
}

impl Parameter {
    const fn query(name: &'static str, about: &'static str, schema: fn() -> Value) -> Self {
        Self { name, place: "query", required: false, about, schema }
    }

    const fn header(name: &'static str, about: &'static str, schema: fn() -> Value) -> Self {
        Self { place: "header", ..Self::query(name, about, schema) }
    }

    /// The parameter in OpenAPI's form.
    pub(super) fn described(&self) -> Value {
        let Self { name, place, required, about, schema } = self;
        json!({ "name": name, "in": place, "required": required, "description": about, "schema": schema() })
    }
}

/// The parameters of a path in OpenAPI's form.
pub(super) fn in_path(path: &str) -> impl Iterator<Item = Value> {
    path.split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next())
        .map(|name| json!({ "name": name, "in": "path", "required": true, "description": "Which one", "schema": id() }))
}

fn words(all: &[&str]) -> Value {
    json!({ "type": "string", "enum": all })
}

fn matching(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

fn number() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
}

fn id() -> Value {
    matching(ID)
}

fn key() -> Value {
    matching("^[!-~]{1,128}$")
}

/// The schema of a cursor, a position in a long text, `now`, or nothing.
fn place() -> Value {
    matching(&format!("^(|now|{}(\\+[0-9]{{1,9}})?)$", CURSOR.trim_matches(['^', '$'])))
}

pub(super) const AFTER: Parameter =
    Parameter::query("after", "A cursor; absent or empty: from the oldest kept; `now`: only what comes", place);
pub(super) const EVENTS_LIMIT: Parameter = Parameter::query("limit", "Events at most (500, 5000 at most)", number);
pub(super) const WAIT: Parameter =
    Parameter::query("wait", "Seconds to wait if there are none yet (0, 60 at most)", number);
pub(super) const BEFORE: Parameter = Parameter::query(
    "before",
    "A cursor: the newest events of one session before it; empty or `now`: the newest of all",
    place,
);
pub(super) const MERGE: Parameter = Parameter::query(
    "merge",
    "true: the chunks of a message, and the updates of a tool call, come as one item (false)",
    || words(&["true", "false"]),
);
pub(super) const EVENTS_BYTES: Parameter = Parameter::query(
    "max_bytes",
    "Bytes of events at most, about, on a page that is merged or read backwards (1 MiB, which is the most)",
    number,
);
pub(super) const PROJECTION: Parameter =
    Parameter::query("projection", "For `text/event-stream`: beside each event what the runtime itself said", || {
        words(&["canonical", "native"])
    });
pub(super) const LAST_EVENT_ID: Parameter =
    Parameter::header("Last-Event-ID", "For `text/event-stream`: beats `after`", || json!({ "type": "string" }));
/// The parameters of every route that returns events.
pub(super) const EVENTS: &[&Parameter] =
    &[&AFTER, &EVENTS_LIMIT, &WAIT, &BEFORE, &MERGE, &EVENTS_BYTES, &PROJECTION, &LAST_EVENT_ID];
/// One value may name several sessions, separated by commas.
pub(super) const SESSIONS_NAMED: Parameter =
    Parameter::query("session", "Only this session; may be given several times", || {
        matching("^([A-Za-z0-9_.:-]{1,128})?(,([A-Za-z0-9_.:-]{1,128})?)*$")
    });
pub(super) const SESSION_NAMED: Parameter = Parameter::query("session", "Only this session's", || {
    matching("^([A-Za-z0-9_.:-]{1,128})?(,([A-Za-z0-9_.:-]{1,128})?)*$")
});
pub(super) const SNAPSHOT_BYTES: Parameter =
    Parameter::query("max_bytes", "Bytes of messages and tools at most, about (256 KiB, which is the most)", number);
pub(super) const ARCHIVED: Parameter =
    Parameter::query("archived", "true: only those put away; all: those, too; false if absent", || {
        words(&["true", "false", "all"])
    });
pub(super) const SESSIONS_LIMIT: Parameter =
    Parameter::query("limit", "Sessions at most (1000, which is the most)", number);
pub(super) const SESSIONS_CURSOR: Parameter = Parameter::query("cursor", "`next` of the page before", || {
    matching("^([0-9]{1,15}\\.[0-9]{1,15}\\.-?[0-9]{1,15}\\.[A-Za-z0-9_.:-]{1,128})?$")
});
pub(super) const RESUMABLE_LIMIT: Parameter =
    Parameter::query("limit", "Conversations at most (100, 1000 at most)", number);
pub(super) const RESUMABLE_CURSOR: Parameter = Parameter::query("cursor", "`next` of the page before", || {
    matching(&format!("^({})?$", RESUMABLE.trim_matches(['^', '$'])))
});
pub(super) const FORMAT: Parameter =
    Parameter::query("format", "ndjson (the events, one a line), md or html; ndjson if absent", || {
        words(&["ndjson", "md", "html"])
    });
pub(super) const MCP_SCOPE: Parameter =
    Parameter::query("scope", "loaded, or configured: also those that are not in use; loaded if absent", || {
        words(&["loaded", "configured"])
    });
pub(super) const REQUEST_STATE: Parameter =
    Parameter::query("state", "open, answered, expired, withdrawn, orphaned or all", || {
        words(&["open", "answered", "expired", "withdrawn", "orphaned", "all"])
    });
pub(super) const REQUESTS_LIMIT: Parameter = Parameter::query("limit", "So many at most, up to 1000", number);
pub(super) const REQUESTS_BEFORE: Parameter =
    Parameter::query("before", "Only those before the `next` of a page", number);
pub(super) const WORDS_SOUGHT: Parameter = Parameter {
    required: true,
    ..Parameter::query(
        "q",
        "Words to look for",
        || json!({ "type": "string", "minLength": 1, "maxLength": QUERY_MAX, "pattern": WORDS }),
    )
};
pub(super) const HITS_LIMIT: Parameter = Parameter::query("limit", "Passages at most (20, 100 at most)", number);
pub(super) const PAIRING_WAIT: Parameter =
    Parameter::query("wait", "Seconds to wait for it to be another than `known` (0, 60 at most)", number);
pub(super) const PAIRING_KNOWN: Parameter =
    Parameter::query("known", "What you know it to be: `waiting`, or `joined` (waiting)", || {
        words(&["waiting", "joined"])
    });
pub(super) const CHALLENGE: Parameter = Parameter::query(
    "challenge",
    "32 to 128 letters and digits: the answer has their HMAC-SHA256 by the secret in the gateway's own file",
    || matching("^[A-Za-z0-9]{32,128}$"),
);
pub(super) const ANSWER_KEY: Parameter = Parameter::header(
    "Idempotency-Key",
    "The same key brings the same receipt again: 1 to 128 visible ASCII characters",
    key,
);
pub(super) const RESTART_KEY: Parameter = Parameter::header(
    "Idempotency-Key",
    "The same under the same key is done once: 1 to 128 visible ASCII characters",
    key,
);
pub(super) const PROMPT_KEY: Parameter = Parameter::header(
    "Idempotency-Key",
    "The same prompt under the same key is run once: 1 to 128 visible ASCII characters",
    key,
);
const ACP_CONNECTION: Parameter = Parameter::header("Acp-Connection-Id", "As the response to `initialize` gave it", id);
const ACP_SESSION: Parameter = Parameter::header("Acp-Session-Id", "With what belongs to a session", id);
/// The parameters of every route of ACP over HTTP.
pub(super) const ACP: &[&Parameter] = &[&ACP_CONNECTION, &ACP_SESSION];

const fn handshake(name: &'static str, schema: fn() -> Value) -> Parameter {
    Parameter { required: true, ..Parameter::header(name, "Of a handshake of RFC 6455", schema) }
}
const CONNECTION: Parameter = handshake("Connection", || words(&["Upgrade"]));
const UPGRADE: Parameter = handshake("Upgrade", || words(&["websocket"]));
const WS_VERSION: Parameter = handshake("Sec-WebSocket-Version", || words(&["13"]));
/// Sixteen bytes in base64.
const WS_KEY: Parameter = handshake("Sec-WebSocket-Key", || matching("^[A-Za-z0-9+/]{21}[AQgw]==$"));
/// The headers of a WebSocket handshake (RFC 6455).
pub(super) const HANDSHAKE: &[&Parameter] = &[&CONNECTION, &UPGRADE, &WS_VERSION, &WS_KEY];
