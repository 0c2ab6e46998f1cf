//! Conversations that a runtime has stored and can resume.

use std::collections::HashSet;

use plexus_protocol::{RuntimeId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::client::Client;
use super::failure::{CommandFailure, USAGE};
use super::output::line;

/// Most conversations listed; a runtime may have any number.
pub(super) const LISTED: usize = 2000;

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

/// The conversation to go on with: the newest with all of the words, one in the folder before others; without words, the newest
/// in the folder. Where an agent tells no folders or times, its own order counts.
pub(super) fn newest(all: Vec<StoredConversation>, folder: &str, words: Option<&str>) -> Option<StoredConversation> {
    let wanted: Vec<String> = words.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let here = |one: &StoredConversation| one.cwd.as_deref().is_none_or(|cwd| cwd == folder);
    let has_all = |one: &StoredConversation| {
        let text = [one.title.as_deref(), one.cwd.as_deref(), Some(&one.native_id)].map(Option::unwrap_or_default);
        let text = text.join(" ").to_lowercase();
        wanted.iter().all(|word| text.contains(word))
    };
    let fits = all.into_iter().filter(|one| has_all(one) && (words.is_some() || here(one)));
    // Of equals, the first.
    fits.reduce(|best, one| if (here(&one), one.updated_at) > (here(&best), best.updated_at) { one } else { best })
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
    for _ in 0..LISTED {
        let path = format!("/v1/runtimes/{runtime}/resumable?limit=1000&cursor={cursor}");
        let Page { resumable, next } = client.get(&path, "listing the conversations").await?;
        // A conversation that changed in the meantime comes twice.
        all.extend(resumable.into_iter().filter(|one: &StoredConversation| known.insert(one.native_id.clone())));
        match next {
            _ if all.len() > LISTED => break,
            Some(next) => cursor = next,
            None => return Ok((all, false)),
        }
    }
    all.truncate(LISTED);
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
        let one = |id: &str, title: &str, cwd: Option<&str>, at: Option<i64>| StoredConversation {
            native_id: id.into(),
            title: Some(title.into()),
            cwd: cwd.map(Into::into),
            updated_at: at.map(Timestamp::from_millis),
            session_id: None,
        };
        let all = || {
            vec![
                one("a", "Fix the parser", Some("/here"), Some(5)),
                one("b", "Fix the tests", Some("/there"), Some(9)),
                one("c", "Upgrade", Some("/here"), Some(7)),
                one("d", "Parser again", Some("/there"), Some(8)),
            ]
        };
        let chosen = |folder, words| newest(all(), folder, words).map(|one| one.native_id);
        assert_eq!(chosen("/here", None).as_deref(), Some("c"));
        assert_eq!(chosen("/elsewhere", None), None);
        assert_eq!(chosen("/here", Some("PARSER")).as_deref(), Some("a"), "in the folder before newer ones elsewhere");
        assert_eq!(chosen("/elsewhere", Some("fix")).as_deref(), Some("b"));
        assert_eq!(chosen("/here", Some("there parser")).as_deref(), Some("d"), "words may be of the folder");
        assert_eq!(chosen("/here", Some("nothing")), None);
        let untold = vec![one("x", "", None, None), one("y", "", None, None)];
        assert_eq!(newest(untold, "/here", None).map(|one| one.native_id).as_deref(), Some("x"));
    }
}
