//! JSON-RPC 2.0, a frame at a time: reading without copying, writing on one line.
//!
//! A peer's message consists of slices of its frame; a sent message is one line, even if the JSON in it has line breaks.

use std::borrow::Cow;

use bytes::Bytes;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{DEPTH_MAX, RuntimeError, depth};
use plexus_protocol::reported_tokens;

/// The JSON-RPC code for an unknown method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The JSON-RPC code for parameters that do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The JSON-RPC code for any other error; also used for an error without a code.
pub(super) const INTERNAL: i64 = -32603;

/// Text that borrows from the frame unless it has escapes.
#[derive(Deserialize)]
pub(super) struct BorrowedText<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Deserializes a member that is present, even as `null`.
pub(super) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A message, as the peer wrote it.
pub(super) enum RpcMessage<'a> {
    /// A request, which needs a response.
    Request { id: &'a RawValue, method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// A notification.
    Notification { method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// The response to a request.
    Response { id: &'a RawValue, reply: Result<&'a RawValue, RuntimeError> },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    method: Option<BorrowedText<'a>>,
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

/// Reads a message. A message with a method is a request or a notification whatever else it has, so that a peer's
/// request is never taken for a response.
///
/// # Errors
/// Returns the reason why `text` is not a message.
pub(super) fn read(text: &str) -> Result<RpcMessage<'_>, &'static str> {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') => return Err("a batch: not supported"),
        _ => return Err("not a JSON object"),
    }
    let Ok(envelope) = plexus_protocol::object::from_str::<Envelope<'_>>(text) else {
        return Err("not a JSON-RPC message");
    };
    match envelope {
        Envelope { id: Some(id), method: Some(BorrowedText(method)), params, .. } => {
            Ok(RpcMessage::Request { id, method, params })
        }
        Envelope { id: None, method: Some(BorrowedText(method)), params, .. } => {
            Ok(RpcMessage::Notification { method, params })
        }
        Envelope { id: Some(id), method: None, result, error, .. } => {
            let reply = match (result, error) {
                (_, Some(error)) => Err(fault(error)),
                (Some(result), None) => Ok(result),
                (None, None) => Err(RuntimeError::new(INTERNAL, "the response has neither a result nor an error")),
            };
            Ok(RpcMessage::Response { id, reply })
        }
        Envelope { id: None, method: None, error: Some(_), .. } => Err("an error that answers no request"),
        Envelope { .. } => Err("neither a request, a notification nor a response"),
    }
}

fn fault(error: &RawValue) -> RuntimeError {
    #[derive(Deserialize)]
    struct Error<'a> {
        #[serde(borrow)]
        code: Option<&'a RawValue>,
        message: Option<&'a RawValue>,
        data: Option<&'a RawValue>,
    }
    match object::<Error<'_>>(error) {
        Some(Error { code, message, data }) => RuntimeError {
            code: code.and_then(|code| code.get().parse().ok()).unwrap_or(INTERNAL),
            message: message.map_or_else(String::new, |m| string(m).map_or_else(|| m.get().into(), Cow::into_owned)),
            data: data.map(owned),
        },
        None => RuntimeError::new(INTERNAL, error.get()),
    }
}

impl RuntimeError {
    /// Makes an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// Reads a JSON object; arrays are refused in place of objects at any depth.
pub fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    if raw.get().starts_with('{') { plexus_protocol::object::from_str(raw.get()).ok() } else { None }
}

/// Reads a member of a JSON object; `None` if it is absent, null, of another type, or there twice.
pub fn member<'a, T: Deserialize<'a>>(raw: &'a RawValue, name: &str) -> Option<T> {
    let mut values = object::<Fields<'a>>(raw)?.0.into_iter().filter(|(key, _)| key == name);
    let (_, value) = values.next().filter(|(_, value)| value.get() != "null")?;
    if values.next().is_some() { None } else { plexus_protocol::object::from_str(value.get()).ok() }
}

/// Reads these counts of tokens in an object; an invalid count is read as absent.
pub fn token_counts<const N: usize>(raw: &RawValue, names: [&str; N]) -> Option<[Option<u64>; N]> {
    let fields = object::<Fields<'_>>(raw)?;
    let count = |name| serde_json::from_str::<f64>(fields.get(name)?.get()).ok().and_then(reported_tokens);
    Some(names.map(count))
}

/// Reads a JSON string.
pub fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<BorrowedText<'_>>(raw.get()).ok().map(|text| text.0)
}

/// The members of an object in their order, duplicates included.
pub struct Fields<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Returns the member with this name, unless it is absent or null.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, value)| key == name && value.get() != "null").map(|(_, value)| *value)
    }

    /// Returns whether two members have the same name, so that readers may disagree on the object.
    pub fn ambiguous(&self) -> bool {
        let mut names: Vec<&str> = self.0.iter().map(|(key, _)| key.as_ref()).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((BorrowedText(key), value)) = map.next_entry()? {
                    members.push((key, value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Members).map(Fields)
    }
}

/// Returns whether the nesting of `frame` is at most [`DEPTH_MAX`]. Most frames have fewer brackets than that: counting
/// them is several times cheaper than skipping strings.
pub(super) fn shallow(frame: &[u8]) -> bool {
    frame.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= DEPTH_MAX || depth(frame) <= DEPTH_MAX
}

/// Returns whether the text has several lines.
fn is_multiline(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'\r' | b'\n'))
}

/// Removes the white space between tokens; numbers, escapes and order stay unchanged.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        if in_string {
            out.push(c);
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
        } else if !c.is_ascii_whitespace() {
            in_string = c == '"';
            out.push(c);
        }
    }
    out
}

/// Indents JSON over several lines; numbers, escapes, order and duplicates stay unchanged.
pub fn pretty(json: &str) -> String {
    fn line(out: &mut String, depth: usize) {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
    let json = compact(json);
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

/// Returns a copy of `raw` on one line.
pub fn owned(raw: &RawValue) -> Box<RawValue> {
    if is_multiline(raw.get()) {
        // Valid JSON without white space between tokens is valid; if not, the text is kept.
        RawValue::from_string(compact(raw.get())).unwrap_or_else(|_| raw.to_owned())
    } else {
        raw.to_owned()
    }
}

/// Returns the part of `frame` that `raw` was read from, which shares its memory; a copy only if the part has several lines.
///
/// `raw` must have been read from `frame`.
pub(super) fn slice(frame: &Bytes, raw: &RawValue) -> Bytes {
    if is_multiline(raw.get()) { compact(raw.get()).into() } else { frame.slice_ref(raw.get().as_bytes()) }
}

/// Returns `value` as one frame: a line with its line feed.
pub fn line(value: &impl Serialize) -> Bytes {
    // The gateway's own types can always be written as JSON.
    let mut json = serde_json::to_string(value).unwrap_or_default();
    if is_multiline(&json) {
        json = compact(&json);
    }
    json.push('\n');
    json.into()
}

/// Makes a request (with `id`) or a notification.
pub(super) fn call(id: Option<&impl Serialize>, method: &str, params: &impl Serialize) -> Bytes {
    #[derive(Serialize)]
    struct Call<'a, I, P> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a I>,
        method: &'a str,
        params: &'a P,
    }
    line(&Call { jsonrpc: "2.0", id, method, params })
}

/// Makes a notification.
pub(super) fn notify(method: &str, params: &impl Serialize) -> Bytes {
    call(None::<&u64>, method, params)
}

/// Makes the response to the peer's request `id` (its JSON text).
pub(super) fn answer(id: &str, result: &impl Serialize) -> Bytes {
    #[derive(Serialize)]
    struct Answer<'a, I, R> {
        jsonrpc: &'static str,
        id: I,
        result: &'a R,
    }
    line(&Answer { jsonrpc: "2.0", id: serde_json::from_str::<&RawValue>(id).ok(), result })
}

/// Makes an error response to the peer's request `id` (its JSON text).
pub(super) fn refuse(id: &str, code: i64, message: &str) -> Bytes {
    #[derive(Serialize)]
    struct Refusal<'a> {
        jsonrpc: &'static str,
        id: Option<&'a RawValue>,
        error: Error<'a>,
    }
    #[derive(Serialize)]
    struct Error<'a> {
        code: i64,
        message: &'a str,
    }
    line(&Refusal { jsonrpc: "2.0", id: serde_json::from_str(id).ok(), error: Error { code, message } })
}

/// Returns a value of the gateway as raw JSON.
pub fn to_raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jsonrpc_strips_surrounding_whitespace_only() {
        let json = "{ \"a\" :\r\n[ 1.50 , \"x \\\" { y\" ], \"a\": {} }";
        assert_eq!(compact(json), r#"{"a":[1.50,"x \" { y"],"a":{}}"#);
        assert_eq!(
            pretty(json),
            "{\n  \"a\": [\n    1.50,\n    \"x \\\" { y\"\n  ],\n  \"a\": {}\n}",
            "twins, numbers and escapes are shown as they came"
        );
    }

    #[test]
    fn jsonrpc_message_with_a_method_is_never_a_response() {
        let text = r#"{"id":0,"method":"m","result":{}}"#;
        assert!(matches!(read(text), Ok(RpcMessage::Request { .. })));
    }

    #[test]
    fn jsonrpc_null_is_an_id_and_absent_is_none() {
        assert!(
            matches!(read(r#"{"id":null,"method":"m"}"#), Ok(RpcMessage::Request { id, .. }) if id.get() == "null")
        );
        assert!(matches!(read(r#"{"method":"m"}"#), Ok(RpcMessage::Notification { .. })));
        assert!(
            matches!(read(r#"{"id":1,"result":null}"#), Ok(RpcMessage::Response { reply: Ok(raw), .. }) if raw.get() == "null")
        );
    }

    #[test]
    fn jsonrpc_invalid_message_states_the_reason() {
        for (text, part) in [
            ("[]", "batch"),
            ("7", "object"),
            ("{}", "neither"),
            (r#"{"id":1,"id":2,"method":"m"}"#, "not a JSON-RPC"),
            (r#"{"method":7}"#, "not a JSON-RPC"),
            (r#"{"error":{"code":-32700,"message":"Parse error"}}"#, "answers no request"),
        ] {
            assert!(matches!(read(text), Err(reason) if reason.contains(part)), "{text}");
        }
    }

    #[test]
    fn jsonrpc_writes_one_line() {
        let raw: Box<RawValue> = serde_json::from_str("{\"a\":\n1,\r\"b\":\"\\n\"}").unwrap();
        assert_eq!(
            &notify("m", &raw)[..],
            b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":1,\"b\":\"\\n\"}}\n"
        );
    }
}
