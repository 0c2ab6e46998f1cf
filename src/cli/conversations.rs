//! Conversations that a runtime has stored and can resume.

use plexus_client::calls;
use plexus_protocol::RuntimeId;
use plexus_protocol::api::sessions::ResumableConversation;

use super::client::{Client, Listing, Response};
use super::failure::{CommandFailure, USAGE};
use super::output::line;

/// Maximum number of conversations listed; a runtime may have any number.
pub(super) const LISTED_MAX: usize = 2000;

/// The conversation to continue: the newest one with all of the words, with those in the folder before others; without words, the newest
/// one in the folder. If an agent reports no folders or times, its own order counts.
pub(super) fn newest(
    all: Vec<ResumableConversation>,
    folder: &str,
    search: Option<&str>,
) -> Option<ResumableConversation> {
    let terms: Vec<String> = search.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let is_in_folder =
        |conversation: &ResumableConversation| conversation.cwd.as_deref().is_none_or(|cwd| cwd == folder);
    let has_all = |conversation: &ResumableConversation| {
        let text = [conversation.title.as_deref(), conversation.cwd.as_deref(), Some(&conversation.native_id.0)]
            .map(Option::unwrap_or_default);
        let text = text.join(" ").to_lowercase();
        terms.iter().all(|word| text.contains(word))
    };
    let matching = all
        .into_iter()
        .filter(|conversation| has_all(conversation) && (search.is_some() || is_in_folder(conversation)));
    // Among equals, the first one is chosen.
    matching.reduce(|best, conversation| {
        if (is_in_folder(&conversation), conversation.updated_at) > (is_in_folder(&best), best.updated_at) {
            conversation
        } else {
            best
        }
    })
}

/// The conversations that a runtime could resume, in its own order, and whether there are more.
pub(super) async fn stored_conversations(
    client: &Client,
    runtime: &RuntimeId,
) -> anyhow::Result<(Listing<ResumableConversation>, bool)> {
    let (mut all, mut cursor) = (Listing::new(), None);
    // A page may have few conversations or none, so pages are counted too.
    for _ in 0..LISTED_MAX {
        let call = calls::resumable(runtime, Some(1000), cursor.as_deref());
        let Response { value, text } = client.request(call, "listing the conversations").await?;
        all.add(value.resumable, &text, |conversation| conversation.native_id.as_str())?;
        match value.next {
            _ if all.items.len() > LISTED_MAX => break,
            Some(next) => cursor = Some(next),
            None => return Ok((all, false)),
        }
    }
    all.truncate(LISTED_MAX);
    Ok((all, true))
}

/// Parses the name of a runtime on the command line.
pub(super) fn parse_runtime(runtime: &str) -> anyhow::Result<RuntimeId> {
    Ok(runtime
        .parse()
        .map_err(|error| CommandFailure::new(USAGE, format!("runtime {}: {error}", line(runtime, 80))))?)
}

#[cfg(test)]
mod tests {
    use plexus_protocol::{NativeId, Timestamp};

    use super::*;

    #[test]
    fn newest_conversation_is_of_the_folder_or_has_the_words() {
        let conversation = |id: &str, title: &str, cwd: Option<&str>, at: Option<i64>| ResumableConversation {
            native_id: NativeId::from(id),
            title: Some(title.into()),
            cwd: cwd.map(Into::into),
            updated_at: at.map(Timestamp::from_millis),
            session_id: None,
        };
        let all = || {
            vec![
                conversation("a", "Fix the parser", Some("/here"), Some(5)),
                conversation("b", "Fix the tests", Some("/there"), Some(9)),
                conversation("c", "Upgrade", Some("/here"), Some(7)),
                conversation("d", "Parser again", Some("/there"), Some(8)),
            ]
        };
        let chosen =
            |folder, search| newest(all(), folder, search).map(|conversation| conversation.native_id.0.to_string());
        assert_eq!(chosen("/here", None).as_deref(), Some("c"));
        assert_eq!(chosen("/elsewhere", None), None);
        assert_eq!(chosen("/here", Some("PARSER")).as_deref(), Some("a"), "in the folder before newer ones elsewhere");
        assert_eq!(chosen("/elsewhere", Some("fix")).as_deref(), Some("b"));
        assert_eq!(chosen("/here", Some("there parser")).as_deref(), Some("d"), "words may be of the folder");
        assert_eq!(chosen("/here", Some("nothing")), None);
        let without_details = vec![conversation("x", "", None, None), conversation("y", "", None, None)];
        assert_eq!(
            newest(without_details, "/here", None).map(|conversation| conversation.native_id.0.to_string()).as_deref(),
            Some("x")
        );
    }
}
