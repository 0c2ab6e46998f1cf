//! Conversations that a runtime has stored and can resume.

use std::collections::HashSet;

use plexus_protocol::{RuntimeId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::client::Client;
use super::failure::{CommandFailure, USAGE};
use super::output::line;

/// Most conversations listed; a runtime may have any number.
pub(super) const LISTED_MAX: usize = 2000;

/// A conversation that a runtime could resume.
#[derive(Deserialize, Serialize)]
pub(super) struct StoredConversation {
    pub(super) native_id: String,
    pub(super) title: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) updated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<SessionId>,
}

/// The conversation to continue: the newest with all of the words, one in the folder before others; without words, the newest
/// in the folder. If an agent reports no folders or times, its own order counts.
pub(super) fn newest(all: Vec<StoredConversation>, folder: &str, search: Option<&str>) -> Option<StoredConversation> {
    let terms: Vec<String> = search.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let is_in_folder = |conversation: &StoredConversation| conversation.cwd.as_deref().is_none_or(|cwd| cwd == folder);
    let has_all = |conversation: &StoredConversation| {
        let text = [conversation.title.as_deref(), conversation.cwd.as_deref(), Some(&conversation.native_id)]
            .map(Option::unwrap_or_default);
        let text = text.join(" ").to_lowercase();
        terms.iter().all(|word| text.contains(word))
    };
    let matching = all
        .into_iter()
        .filter(|conversation| has_all(conversation) && (search.is_some() || is_in_folder(conversation)));
    // Of equals, the first.
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
) -> anyhow::Result<(Vec<StoredConversation>, bool)> {
    #[derive(Deserialize)]
    struct Page {
        resumable: Vec<StoredConversation>,
        next: Option<String>,
    }
    let (mut all, mut known, mut cursor) = (Vec::new(), HashSet::new(), String::new());
    // A page may have few conversations or none, so pages are counted too.
    for _ in 0..LISTED_MAX {
        let path = format!("/v1/runtimes/{runtime}/resumable?limit=1000&cursor={cursor}");
        let Page { resumable, next } = client.get(&path, "listing the conversations").await?;
        // A conversation that changed in the meantime comes twice.
        all.extend(
            resumable
                .into_iter()
                .filter(|conversation: &StoredConversation| known.insert(conversation.native_id.clone())),
        );
        match next {
            _ if all.len() > LISTED_MAX => break,
            Some(next) => cursor = next,
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
    use super::*;

    #[test]
    fn newest_conversation_is_of_the_folder_or_has_the_words() {
        let conversation = |id: &str, title: &str, cwd: Option<&str>, at: Option<i64>| StoredConversation {
            native_id: id.into(),
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
        let chosen = |folder, search| newest(all(), folder, search).map(|conversation| conversation.native_id);
        assert_eq!(chosen("/here", None).as_deref(), Some("c"));
        assert_eq!(chosen("/elsewhere", None), None);
        assert_eq!(chosen("/here", Some("PARSER")).as_deref(), Some("a"), "in the folder before newer ones elsewhere");
        assert_eq!(chosen("/elsewhere", Some("fix")).as_deref(), Some("b"));
        assert_eq!(chosen("/here", Some("there parser")).as_deref(), Some("d"), "words may be of the folder");
        assert_eq!(chosen("/here", Some("nothing")), None);
        let without_details = vec![conversation("x", "", None, None), conversation("y", "", None, None)];
        assert_eq!(
            newest(without_details, "/here", None).map(|conversation| conversation.native_id).as_deref(),
            Some("x")
        );
    }
}
