//! Reviews that were not sent yet, in a file of the state folder: they survive a restart of the program.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::changes::{ReviewDraft, StoredReview, readable};

/// The name of the file: a list of pairs of a session and its review, the latest first.
const FILE: &str = "attach-reviews.json";
/// Maximum number of sessions in the file; the oldest are dropped.
const SESSIONS_MAX: usize = 50;
/// Maximum size of a file that is read, in bytes; a larger one counts as empty.
const FILE_MAX: u64 = 32 << 20;

/// The reviews in the file. A review that cannot be read is skipped.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
struct ReviewFile(#[serde(deserialize_with = "readable")] Vec<(String, StoredReview)>);

fn pairs(dir: &Path) -> Vec<(String, StoredReview)> {
    let path = dir.join(FILE);
    if std::fs::metadata(&path).map_or(0, |meta| meta.len()) > FILE_MAX {
        return Vec::new();
    }
    let text = std::fs::read(path).unwrap_or_default();
    let ReviewFile(mut list) = serde_json::from_slice(&text).unwrap_or_default();
    list.truncate(SESSIONS_MAX);
    list
}

/// Reads the stored reviews.
pub(crate) fn read(dir: &Path) -> HashMap<String, ReviewDraft> {
    pairs(dir).into_iter().map(|(session, stored)| (session, ReviewDraft::restore(&stored))).collect()
}

/// Stores the review of a session; without one, the stored review is removed. Those of other sessions stay: another terminal may have
/// written them.
pub(crate) fn save(dir: &Path, session: &str, review: Option<StoredReview>) -> std::io::Result<()> {
    let mut all = pairs(dir);
    all.retain(|(one, _)| one != session);
    if let Some(review) = review {
        all.insert(0, (session.to_owned(), review));
        all.truncate(SESSIONS_MAX);
    }
    let part = dir.join(format!("{FILE}.{}", std::process::id()));
    let file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part);
    let text = serde_json::to_vec(&ReviewFile(all))?;
    let done = file.and_then(|mut file| file.write_all(&text)).and_then(|()| std::fs::rename(&part, dir.join(FILE)));
    if done.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    done
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn saved_reviews_outlast_the_program_and_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).len(), 0);
        let review = |text: &str| {
            let comment = json!({ "path": "a", "side": "new", "line": 1, "end_line": 1, "text": text, "digest": "d" });
            serde_json::from_value(json!({ "comments": [comment], "first": "", "viewed": [] })).ok()
        };
        for n in 0..SESSIONS_MAX + 3 {
            save(dir.path(), &format!("s_{n}"), review(&n.to_string())).unwrap();
        }
        save(dir.path(), "s_20", None).unwrap();
        let all = read(dir.path());
        assert_eq!((all.len(), all.contains_key("s_2"), all.contains_key("s_20")), (SESSIONS_MAX - 1, false, false));
        assert_eq!(all["s_52"].comments[0].text, "52");
        std::fs::write(dir.path().join(FILE), "[[1, 2]").unwrap();
        assert_eq!(read(dir.path()).len(), 0, "what cannot be read counts as empty");
    }
}
