//! The event envelope as JSON text, written by hand: made once per event, with the same bytes for every transport.

use std::cell::RefCell;

pub use plexus_protocol::ui_protocol::{parse_request_name, request_name};
use plexus_protocol::{Epoch, Event, Position, Timestamp};
use plexus_sessions::PageItem;

/// Maximum number of sessions on a page of a listing.
pub(super) const SESSIONS_MAX: usize = 1000;

/// Approximate size of an envelope without its body, in bytes, for reserving.
const ENVELOPE_SIZE: usize = 256;

/// Appends the event in the native protocol's form (the `params` of `agent.event`): one JSON object on one line. The body is
/// copied unchanged and never parsed again.
pub fn envelope(out: &mut Vec<u8>, epoch: &Epoch, event: &Event) {
    write(out, epoch, event, &event.body, None);
}

/// Appends an item of a page: an event's envelope, and for merged events their range: `seq` and `cursor_first` of the first, `seq_last`
/// and `cursor` of the last, and `merged`, their number. `at_last` is present if there are several events, `cut` if the item has only
/// some parts of a long text.
pub fn item(out: &mut Vec<u8>, epoch: &Epoch, item: &PageItem) {
    write(out, epoch, item.first(), &item.body(), item.merged().map(|merged| (merged, item)));
}

fn write(out: &mut Vec<u8>, epoch: &Epoch, event: &Event, body: &[u8], merged: Option<(usize, &PageItem)>) {
    let mut digits = itoa::Buffer::new();
    out.reserve(body.len() + ENVELOPE_SIZE);
    out.extend_from_slice(b"{\"session_id\":");
    string(out, event.origin.session_id.as_str());
    out.extend_from_slice(b",\"run_id\":");
    string(out, event.run_id.as_str());
    out.extend_from_slice(b",\"seq\":");
    out.extend_from_slice(digits.format(event.seq).as_bytes());
    if let Some((_, item)) = merged {
        out.extend_from_slice(b",\"seq_last\":");
        out.extend_from_slice(digits.format(item.last().seq).as_bytes());
    }
    out.extend_from_slice(b",\"cursor\":");
    cursor(out, epoch, merged.map_or(event.position, |(_, item)| item.last().position));
    if let Some((count, _)) = merged {
        out.extend_from_slice(b",\"cursor_first\":");
        cursor(out, epoch, event.position);
        out.extend_from_slice(b",\"merged\":");
        out.extend_from_slice(digits.format(count).as_bytes());
    }
    out.extend_from_slice(b",\"at\":\"");
    timestamp(out, event.at);
    if let Some((_, item)) = merged.filter(|(count, _)| *count > 1) {
        out.extend_from_slice(b"\",\"at_last\":\"");
        timestamp(out, item.last().at);
    }
    out.extend_from_slice(b"\",\"kind\":\"");
    out.extend_from_slice(event.kind.as_str().as_bytes());
    out.extend_from_slice(b"\",\"event\":");
    out.extend_from_slice(body);
    if let Some((before, after)) = merged.and_then(|(_, item)| item.cut()) {
        out.extend_from_slice(format!(",\"cut\":{{\"before\":{before},\"after\":{after}}}").as_bytes());
    }
    out.extend_from_slice(b",\"meta\":{\"runtime_id\":");
    string(out, event.origin.runtime_id.as_str());
    out.extend_from_slice(b",\"dialect\":");
    string(out, &event.origin.dialect);
    out.extend_from_slice(b"}}");
}

/// Appends a cursor in quotes. An epoch has only ASCII letters and digits: see its constructor.
fn cursor(out: &mut Vec<u8>, epoch: &Epoch, position: Position) {
    out.push(b'"');
    out.extend_from_slice(epoch.as_str().as_bytes());
    out.push(b':');
    out.extend_from_slice(itoa::Buffer::new().format(position.0).as_bytes());
    out.push(b'"');
}

/// Appends a JSON string. Identifiers need no escaping, but are checked anyway, so that an invalid one cannot break the frame.
fn string(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else if serde_json::to_writer(&mut *out, text).is_err() {
        // Writing to memory does not fail.
        out.extend_from_slice(b"\"\"");
    }
}

/// Appends the timestamp in the format of [`Timestamp`]. Everything but the milliseconds is cached for a second.
fn timestamp(out: &mut Vec<u8>, at: Timestamp) {
    thread_local! {
        static SECOND: RefCell<(i64, Vec<u8>)> = const { RefCell::new((i64::MIN, Vec::new())) };
    }
    let (second, millis) = (at.as_millis().div_euclid(1000), at.as_millis().rem_euclid(1000));
    SECOND.with_borrow_mut(|(known, text)| {
        if *known != second || text.is_empty() {
            let whole = Timestamp::from_millis(second.saturating_mul(1000)).to_string();
            match whole.strip_suffix("000Z") {
                // Outside of the years 1970 to 9999 the slow path formats it.
                Some(stem) if (0..253_402_300_800).contains(&second) => {
                    text.clear();
                    text.extend_from_slice(stem.as_bytes());
                    *known = second;
                }
                _ => {
                    out.extend_from_slice(at.to_string().as_bytes());
                    return;
                }
            }
        }
        out.extend_from_slice(text);
        for divisor in [100, 10, 1] {
            out.push(b'0' + u8::try_from(millis / divisor % 10).unwrap_or_default());
        }
        out.push(b'Z');
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use serde_json::value::RawValue;

    use super::*;
    use plexus_protocol::api::history::{EnvelopeMeta, EventEnvelope};
    use plexus_protocol::{Cursor, Kind, Origin, Position, RunId, RuntimeId, SessionId};

    fn event(runtime: &str, dialect: &str, body: &str) -> Event {
        Event {
            position: Position(1042),
            origin: Arc::new(Origin {
                session_id: SessionId::trusted("s_1"),
                runtime_id: RuntimeId::trusted(runtime),
                dialect: dialect.into(),
            }),
            run_id: RunId::trusted("r_1"),
            seq: 7,
            at: Timestamp::from_millis(1_763_717_400_125),
            kind: Kind::AgentMessageChunk,
            body: body.to_owned().into(),
            native: None,
        }
    }

    fn text(event: &Event) -> String {
        let mut out = b"kept ".to_vec();
        envelope(&mut out, &Epoch::new("k3f9").unwrap(), event);
        String::from_utf8(out).unwrap().strip_prefix("kept ").unwrap().to_owned()
    }

    #[test]
    fn envelope_has_the_documented_shape() {
        assert_eq!(
            text(&event("gemini", "acp", r#"{"a": [1, 2.50]}"#)),
            r#"{"session_id":"s_1","run_id":"r_1","seq":7,"cursor":"k3f9:1042","at":"2025-11-21T09:30:00.125Z","kind":"agent_message_chunk","event":{"a": [1, 2.50]},"meta":{"runtime_id":"gemini","dialect":"acp"}}"#
        );
    }

    #[test]
    fn envelope_written_by_hand_equals_the_derived_one() {
        let event = event("gemini", "acp", r#"{"a":[1,2.50]}"#);
        let cursor = Cursor { epoch: Epoch::new("k3f9").unwrap(), position: event.position };
        let body: Box<RawValue> = serde_json::from_slice(&event.body).unwrap();
        let derived = EventEnvelope {
            session_id: event.origin.session_id.clone(),
            run_id: event.run_id.clone(),
            seq: event.seq,
            seq_last: None,
            cursor: cursor.clone(),
            cursor_first: None,
            merged: None,
            at: event.at,
            at_last: None,
            kind: event.kind.as_str().to_owned(),
            event: body,
            cut: None,
            meta: EnvelopeMeta {
                runtime_id: event.origin.runtime_id.clone(),
                dialect: event.origin.dialect.to_string(),
            },
            native: None,
        };
        assert_eq!(text(&event), serde_json::to_string(&derived).unwrap());
        let read: EventEnvelope = serde_json::from_str(&text(&event)).unwrap();
        assert_eq!(text(&event), serde_json::to_string(&read).unwrap());
    }

    proptest! {
        #[test]
        fn envelope_is_json_on_one_line_for_any_names(runtime in ".*", dialect in "\\PC*", millis in any::<i64>()) {
            let mut event = event(&runtime, &dialect, "{}");
            event.at = Timestamp::from_millis(millis);
            let text = text(&event);
            prop_assert!(!text.contains(['\n', '\r']));
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(json["meta"]["runtime_id"].as_str(), Some(&*runtime));
            prop_assert_eq!(json["meta"]["dialect"].as_str(), Some(&*dialect));
        }

        #[test]
        fn timestamps_have_the_common_format(seconds in -70_000_000_000i64..400_000_000_000, millis in 0i64..1000) {
            let mut out = Vec::new();
            for at in [seconds * 1000 + millis, seconds * 1000, millis, -millis, seconds * 1000 + 999] {
                out.clear();
                timestamp(&mut out, Timestamp::from_millis(at));
                prop_assert_eq!(String::from_utf8(out.clone()).unwrap(), Timestamp::from_millis(at).to_string());
            }
        }
    }
}
