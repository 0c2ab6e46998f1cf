//! Lists the conversations that a runtime stores. Pure: the request is a call of the runtime's own method, without a session
//! ([`RuntimeCommand::Call`](super::RuntimeCommand::Call)).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::jsonrpc::{Fields, object, string};
use plexus_protocol::Timestamp;

/// Maximum length of a title, in characters.
const TITLE_MAX: usize = 200;
/// Maximum length of a folder, in bytes: no session works in a longer one.
const CWD_MAX: usize = 4096;
/// Maximum length of the id of a conversation, in bytes: none is opened by a longer one.
const NATIVE_MAX: usize = 1024;
/// Maximum number of conversations read from one reply; a runtime with more has pages.
pub const ANSWER_MAX: usize = 10_000;
/// Maximum number of conversations in one reply of Codex.
const CODEX_MAX: usize = 100;

/// A conversation that a runtime stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedConversation {
    /// The runtime's own id of the conversation.
    pub native: String,
    /// The title, or its first message, if reported: one line.
    pub title: Option<String>,
    /// The working directory, if reported.
    pub cwd: Option<String>,
    /// The time of the last change, if reported.
    pub updated_at: Option<Timestamp>,
}

/// A runtime's reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationList {
    /// The conversations, in the runtime's order.
    pub conversations: Vec<ListedConversation>,
    /// The cursor of the next page, in the runtime's own form.
    pub next: Option<String>,
}

/// Returns the request to a runtime that speaks `dialect`: method and parameters. `cursor` is the `next` of an earlier
/// reply; `max` is the maximum number of conversations, for runtimes that accept one. `None` if the dialect has no
/// such method.
pub fn question(dialect: &str, cursor: Option<&str>, max: usize) -> Option<(&'static str, Value)> {
    Some(match dialect {
        "acp" => ("session/list", cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }))),
        "codelia" => ("session.list", json!({ "scope": "all", "limit": max })),
        "codex" => {
            // The list has all conversations, whoever opened them and with whatever model, except Codex's own helper threads.
            let mut params = json!({
                "limit": max.min(CODEX_MAX), "sortKey": "updated_at", "modelProviders": [],
                "sourceKinds": ["cli", "vscode", "exec", "appServer"],
            });
            if let Some(cursor) = cursor {
                params["cursor"] = cursor.into();
            }
            ("thread/list", params)
        }
        "opencode" => ("session.list", json!({ "limit": max })),
        "opencode2" => {
            let mut params = json!({ "limit": max });
            if let Some(cursor) = cursor {
                params["cursor"] = cursor.into();
            }
            ("session.list", params)
        }
        _ => return None,
    })
}

/// A dialect's names for the members of a conversation; empty if it has none.
struct ConversationFields {
    id: &'static str,
    title: &'static str,
    /// The first or the latest message.
    preview: &'static str,
    cwd: &'static str,
    updated: &'static str,
    /// The member that is set for helper conversations, which belong to another one.
    parent: &'static str,
}

const ACP: ConversationFields =
    ConversationFields { id: "sessionId", title: "title", preview: "", cwd: "cwd", updated: "updatedAt", parent: "" };
const CODELIA: ConversationFields = ConversationFields {
    id: "session_id",
    title: "title",
    preview: "last_user_message",
    cwd: "workspace_root",
    updated: "updated_at",
    parent: "",
};
const CODEX: ConversationFields = ConversationFields {
    id: "id",
    title: "name",
    preview: "preview",
    cwd: "cwd",
    updated: "updatedAt",
    parent: "parentThreadId",
};
const OPENCODE: ConversationFields =
    ConversationFields { id: "id", title: "title", preview: "", cwd: "directory", updated: "", parent: "parentID" };

/// Reads the reply to [`question`]. Conversations that cannot be resumed are skipped: those without an id, or with one that is too long.
/// `None` if it is not such a reply.
pub fn read(dialect: &str, reply: &RawValue) -> Option<ConversationList> {
    #[derive(Deserialize)]
    struct Time {
        updated: Option<f64>,
    }
    let members = || object::<Fields<'_>>(reply);
    let (list, next, names) = match dialect {
        "codelia" => (members()?.get("sessions")?, None, &CODELIA),
        "codex" => (members()?.get("data")?, members()?.get("nextCursor"), &CODEX),
        "opencode" => (reply, None, &OPENCODE),
        "opencode2" => {
            let cursor = members()?.get("cursor").and_then(object::<Fields<'_>>);
            (members()?.get("data")?, cursor.and_then(|cursor| cursor.get("next")), &OPENCODE)
        }
        _ => (members()?.get("sessions")?, members()?.get("nextCursor"), &ACP),
    };
    let list: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
    let one = |raw: &RawValue| -> Option<ListedConversation> {
        let fields = object::<Fields<'_>>(raw)?;
        let text = |name: &str| text_in(&fields, name);
        let native = text(names.id).filter(|native| !native.is_empty() && native.len() <= NATIVE_MAX)?;
        if text(names.parent).is_some() {
            return None;
        }
        let updated_at = match fields.get("time").and_then(object::<Time>) {
            Some(Time { updated }) => updated.and_then(millis),
            None => fields.get(names.updated).and_then(instant),
        };
        let title = text(names.title).and_then(|title| line(&title)).or_else(|| line(&text(names.preview)?));
        let location = || text_in(&fields.get("location").and_then(object::<Fields<'_>>)?, "directory");
        let cwd = text(names.cwd).or_else(location).filter(|cwd| cwd.starts_with('/') && cwd.len() <= CWD_MAX);
        Some(ListedConversation { native, title, cwd, updated_at })
    };
    let conversations = list.into_iter().take(ANSWER_MAX).filter_map(one).collect();
    let next = next.and_then(string).map(Cow::into_owned).filter(|next| !next.is_empty());
    Some(ConversationList { conversations, next })
}

/// Returns the text of a member.
fn text_in(fields: &Fields<'_>, name: &str) -> Option<String> {
    fields.get(name).and_then(string).map(Cow::into_owned)
}

/// Returns the first line with text, with collapsed white space and cut to the length of a title.
fn line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut short = String::with_capacity(line.len().min(4 * TITLE_MAX));
    for word in line.split_whitespace() {
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
        if short.len() > 4 * TITLE_MAX {
            break;
        }
    }
    Some(short.chars().take(TITLE_MAX).collect())
}

/// Parses a time given as text, or in seconds.
fn instant(raw: &RawValue) -> Option<Timestamp> {
    if raw.get().starts_with('"') {
        return serde_json::from_str(raw.get()).ok();
    }
    millis(raw.get().parse::<f64>().ok()? * 1000.0)
}

/// Converts a time in milliseconds.
#[allow(clippy::cast_possible_truncation)] // a date between the years 1970 and 9999
fn millis(millis: f64) -> Option<Timestamp> {
    const LAST: f64 = 253_402_300_799_000.0;
    (0.0..=LAST).contains(&millis).then(|| Timestamp::from_millis(millis as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(dialect: &str, reply: &str) -> Option<ConversationList> {
        read(dialect, serde_json::from_str(reply).unwrap())
    }

    fn kept(native: &str, title: Option<&str>, cwd: Option<&str>, at: Option<i64>) -> ListedConversation {
        let text = |text: Option<&str>| text.map(str::to_owned);
        ListedConversation {
            native: native.into(),
            title: text(title),
            cwd: text(cwd),
            updated_at: at.map(Timestamp::from_millis),
        }
    }

    #[test]
    fn listing_asks_each_dialect_in_its_own_protocol() {
        for (dialect, cursor, asked, reply, wanted, next) in [
            (
                "acp",
                Some("c"),
                Some(("session/list", json!({ "cursor": "c" }))),
                r#"{"sessions":[{"sessionId":"a","cwd":"/w","title":"T","updatedAt":"2026-01-02T03:04:05Z","_meta":{}}],"nextCursor":"d"}"#,
                kept("a", Some("T"), Some("/w"), Some(1_767_323_045_000)),
                Some("d"),
            ),
            (
                "codelia",
                None,
                Some(("session.list", json!({ "scope": "all", "limit": 7 }))),
                r#"{"sessions":[{"session_id":"a","updated_at":"2026-01-02T03:04:05Z","last_user_message":"hi\nyou","workspace_root":"/w"}]}"#,
                kept("a", Some("hi"), Some("/w"), Some(1_767_323_045_000)),
                None,
            ),
            (
                "codex",
                Some("c"),
                Some((
                    "thread/list",
                    json!({
                        "limit": 7, "sortKey": "updated_at", "modelProviders": [], "cursor": "c",
                        "sourceKinds": ["cli", "vscode", "exec", "appServer"],
                    }),
                )),
                r#"{"data":[{"id":"a","sessionId":"tree","name":null,"preview":"first words","cwd":"/w","updatedAt":1767323045,"parentThreadId":null}],"nextCursor":null}"#,
                kept("a", Some("first words"), Some("/w"), Some(1_767_323_045_000)),
                None,
            ),
            (
                "opencode",
                None,
                Some(("session.list", json!({ "limit": 7 }))),
                r#"[{"id":"a","title":"T","directory":"/w","time":{"created":1,"updated":1767323045000}},{"id":"b","parentID":"a"}]"#,
                kept("a", Some("T"), Some("/w"), Some(1_767_323_045_000)),
                None,
            ),
            (
                "opencode2",
                Some("c"),
                Some(("session.list", json!({ "limit": 7, "cursor": "c" }))),
                r#"{"data":[{"id":"a","title":"T","location":{"directory":"/w"},"time":{"updated":1767323045000}}],"cursor":{"next":"d"}}"#,
                kept("a", Some("T"), Some("/w"), Some(1_767_323_045_000)),
                Some("d"),
            ),
        ] {
            assert_eq!(question(dialect, cursor, 7), asked, "{dialect}");
            let listing = listed(dialect, reply).unwrap();
            assert_eq!((listing.conversations, listing.next.as_deref()), (vec![wanted], next), "{dialect}");
        }
        assert_eq!(question("gemini-mirror", None, 7), None);
        assert_eq!(question("codex", None, 5000).unwrap().1["limit"], 100);
    }

    #[test]
    fn listing_skips_invalid_entries_and_truncates_long_ones() {
        let long = "x".repeat(5000);
        let reply = json!({ "sessions": [
            7, {}, { "sessionId": 7 }, { "sessionId": "" }, { "sessionId": long },
            { "sessionId": "a", "title": long, "cwd": format!("/{long}"), "updatedAt": "yesterday" },
            { "sessionId": "b", "title": "\n \t two\twords \n more", "cwd": "not absolute", "updatedAt": -1 },
            { "sessionId": "c", "title": { "no": "text" }, "cwd": null, "updatedAt": 1e300 },
        ], "nextCursor": "" });
        let listing = listed("acp", &reply.to_string()).unwrap();
        assert_eq!(
            listing.conversations,
            [
                kept("a", Some(&long[..TITLE_MAX]), None, None),
                kept("b", Some("two words"), None, None),
                kept("c", None, None, None),
            ]
        );
        assert_eq!(listing.next, None);
        for none in ["7", "[]", "{}", r#"{"sessions":{}}"#] {
            assert_eq!(listed("acp", none), None, "{none}");
        }
        let many: Vec<Value> = (0..ANSWER_MAX + 5).map(|n| json!({ "sessionId": n.to_string() })).collect();
        assert_eq!(listed("acp", &json!({ "sessions": many }).to_string()).unwrap().conversations.len(), ANSWER_MAX);
    }
}
