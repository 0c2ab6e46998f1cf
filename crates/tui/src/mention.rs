//! `@` in a prompt: the file that is being named, the suggested files, and the format of its path, as on the web page. Pure.

use plexus_protocol::api::folders::Files;
use ratatui_textarea::{CursorMove, TextArea};

use super::sanitize;

/// Maximum length of a word that counts as the name of a file, in characters; the gateway accepts no longer query.
const QUERY_MAX: usize = 200;
/// Maximum number of suggested files.
pub(crate) const OFFERS_MAX: usize = 6;
/// Time without typing before files are searched, in milliseconds.
const PAUSE: i64 = 120;

/// A file that is being named: the place of its `@` (line and column, in characters), and the text after it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mention {
    at: (usize, usize),
    query: String,
}

/// The mention that ends at the cursor. An `@` within a word (an address) does not begin one.
fn mention_at(area: &TextArea<'_>) -> Option<Mention> {
    let (row, column) = (area.cursor().0, area.cursor().1);
    let line: Vec<char> = area.lines().get(row)?.chars().take(column).collect();
    let mut from = line.len();
    // Back to the `@`, over blanks that a backslash escapes.
    loop {
        from = from.checked_sub(1)?;
        let escaped = from > 0 && line[from - 1] == '\\';
        match line[from] {
            '@' if !escaped => break,
            c if c.is_whitespace() && !escaped => return None,
            _ if line.len() - from > QUERY_MAX => return None,
            _ => {}
        }
    }
    let begins = from == 0 || line[from - 1].is_whitespace() || "([{\"'`".contains(line[from - 1]);
    let mut query = String::new();
    let mut rest = line[from + 1..].iter();
    while let Some(c) = rest.next() {
        query.push(if *c == '\\' { *rest.next().unwrap_or(c) } else { *c });
    }
    begins.then_some(Mention { at: (row, from), query })
}

/// Writes a path in the place of a mention, with a space after it. Blanks are escaped as in a shell; control characters are made visible.
fn mention_file(area: &mut TextArea<'static>, mention: &Mention, path: &str) {
    let column = area.cursor().1;
    for _ in mention.at.1..column {
        area.delete_char();
    }
    let sanitized = sanitize::line(path, usize::MAX);
    let mut text = String::from("@");
    for c in sanitized.chars() {
        if c.is_whitespace() || c == '\\' {
            text.push('\\');
        }
        text.push(c);
    }
    let (row, column) = (area.cursor().0, area.cursor().1);
    let next = area.lines().get(row).and_then(|line| line.chars().nth(column));
    if next.is_some_and(char::is_whitespace) {
        area.insert_str(text);
        area.move_cursor(CursorMove::Forward);
    } else {
        text.push(' ');
        area.insert_str(text);
    }
}

/// The suggested files while one is being named.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileOffers {
    mention: Option<Mention>,
    /// The place where the suggestions were closed: the same `@` does not open them again.
    closed: Option<(usize, usize)>,
    paths: Vec<String>,
    /// A notice about the suggestions, or the reason why there are none.
    pub(crate) text: String,
    /// The index of the chosen file.
    pub(crate) at: usize,
    /// The number of the last query, and the time when the next one is due.
    query_id: u64,
    due: Option<i64>,
}

impl FileOffers {
    /// The suggested paths.
    pub(crate) fn paths(&self) -> &[String] {
        &self.paths
    }

    /// The number of lines of the suggestions.
    pub(crate) fn lines(&self) -> usize {
        self.paths.len() + usize::from(!self.text.is_empty())
    }

    /// Updates the suggestions after a change of the text or of the cursor.
    pub(crate) fn follow(&mut self, area: &TextArea<'_>, now: i64) {
        let found = mention_at(area);
        let at = found.as_ref().map(|mention| mention.at);
        if at != self.closed {
            self.closed = None;
        }
        let found = found.filter(|_| self.closed.is_none());
        if found == self.mention {
            return;
        }
        let first = self.mention.as_ref().map(|mention| mention.at) != at;
        match &found {
            None => {
                (self.paths, self.text, self.due, self.query_id) = (Vec::new(), String::new(), None, self.query_id + 1)
            }
            Some(mention) => {
                // The previous suggestions stay until the reply, if they match.
                self.paths.retain(|path| fits(path, &mention.query));
                self.due = Some(if first { now } else { now + PAUSE });
            }
        }
        (self.at, self.mention) = (0, found);
    }

    /// The number and the text of the query that is due.
    pub(crate) fn due(&mut self, now: i64) -> Option<(u64, String)> {
        self.due.filter(|due| *due <= now)?;
        self.due = None;
        self.query_id += 1;
        self.mention.as_ref().map(|mention| (self.query_id, mention.query.clone()))
    }

    /// Applies the reply to the query of this number.
    pub(crate) fn on_reply(&mut self, query_id: u64, reply: Result<Files, String>) {
        let Some(mention) = self.mention.as_ref().filter(|_| query_id == self.query_id) else { return };
        self.at = 0;
        match reply {
            Err(why) => (self.paths, self.text) = (Vec::new(), format!("files could not be listed: {why}")),
            Ok(Files { files, truncated }) => {
                // The text may have changed since: files that no longer match are left out, and the next query is due.
                let paths = files.into_iter().map(|file| file.path).filter(|path| fits(path, &mention.query));
                self.paths = paths.take(OFFERS_MAX).collect();
                self.text = match (self.paths.is_empty(), truncated) {
                    _ if self.due.is_some() => String::new(),
                    (true, false) => format!("no file matches {:?}", sanitize::line(&mention.query, 60)),
                    (true, true) => "no match among the files that were searched: there are more".to_owned(),
                    (false, true) => "there are more files than were searched".to_owned(),
                    (false, false) => String::new(),
                };
            }
        }
    }

    /// Handles a key while files are suggested; returns `true` if the key belonged to them.
    pub(crate) fn key(&mut self, name: &str, area: &mut TextArea<'static>) -> bool {
        let count = self.paths.len();
        match name {
            "Esc" if self.lines() > 0 => self.close(),
            _ if count == 0 => return false,
            "Down" => self.at = (self.at + 1) % count,
            "Up" => self.at = (self.at + count - 1) % count,
            "Tab" | "Enter" => return self.take(self.at, area),
            _ => return false,
        }
        true
    }

    /// Writes the file of a row into the text.
    pub(crate) fn take(&mut self, at: usize, area: &mut TextArea<'static>) -> bool {
        let (Some(mention), Some(path)) = (self.mention.take(), self.paths.get(at).cloned()) else { return false };
        // The suggestions may still be those of the previous word.
        if !fits(&path, &mention.query) {
            self.mention = Some(mention);
            return false;
        }
        mention_file(area, &mention, &path);
        self.close();
        true
    }

    /// Closes the suggestions.
    pub(crate) fn close(&mut self) {
        self.closed = self.mention.take().map(|mention| mention.at);
        (self.paths, self.text, self.due, self.at) = (Vec::new(), String::new(), None, 0);
        self.query_id += 1;
    }
}

/// Returns whether a path contains these characters in this order.
fn fits(path: &str, query: &str) -> bool {
    let mut rest = path.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|c| rest.any(|d| d == c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input;

    #[test]
    fn mention_is_a_word_that_begins_with_an_at_sign() {
        for (text, query) in [
            ("@", Some("")),
            ("see @src/ma", Some("src/ma")),
            ("(@a", Some("a")),
            ("one\n@b", Some("b")),
            (r"@a\ b", Some("a b")),
            ("me@home", None),
            ("@a b", None),
            ("@a ", None),
            ("", None),
        ] {
            assert_eq!(mention_at(&input::area(text)).map(|one| one.query).as_deref(), query, "{text:?}");
        }
        assert_eq!(mention_at(&input::area(&format!("@{}", "x".repeat(300)))), None);
    }

    #[test]
    fn mention_offers_files_and_writes_the_chosen_one() {
        let mut area = input::area("look at @ma");
        let mut offers = FileOffers::default();
        offers.follow(&area, 0);
        let (query_id, query) = offers.due(0).unwrap();
        assert_eq!(query, "ma");
        assert!(offers.due(1000).is_none(), "asked once");
        let reply = || {
            let files = json!([{ "path": "src/main.rs" }, { "path": "a map\u{202e}.txt" }]);
            Ok(serde_json::from_value(json!({ "files": files, "truncated": false })).unwrap())
        };
        offers.on_reply(query_id - 1, reply());
        assert!(offers.paths().is_empty(), "an answer to another question");
        offers.on_reply(query_id, reply());
        assert_eq!(offers.lines(), 2);
        assert!(offers.key("Down", &mut area) && offers.key("Tab", &mut area));
        assert_eq!(area.lines(), [r"look at @a\ map\\u{202e}.txt "]);
        assert_eq!(offers.lines(), 0);
        offers.follow(&area, 0);
        assert!(offers.due(i64::MAX).is_none() && !offers.key("Enter", &mut area), "Enter sends again");
        // The answer to what was typed before is offered as far as it fits.
        let mut area = input::area("@");
        offers.follow(&area, 0);
        let (query_id, _) = offers.due(0).unwrap();
        area.insert_str("map");
        offers.follow(&area, 0);
        offers.on_reply(query_id, reply());
        assert_eq!(offers.paths(), ["a map\u{202e}.txt"]);
        // Esc closes them, and they stay closed for this word.
        area = input::area("@x");
        offers.follow(&area, 0);
        let (query_id, _) = offers.due(PAUSE).unwrap();
        offers.on_reply(query_id, Err("no folder".into()));
        assert!(offers.text.contains("no folder") && offers.key("Esc", &mut area));
        area.insert_char('y');
        offers.follow(&area, 0);
        assert!(offers.due(i64::MAX).is_none());
    }
}
