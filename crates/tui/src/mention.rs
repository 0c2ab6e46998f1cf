//! `@` in a prompt: the file that is being named, the files that are offered for it, and how its path is written, as on the page. Pure.

use plexus_protocol::api::folders::Files;
use ratatui_textarea::{CursorMove, TextArea};

use super::sanitize;

/// Longest word that counts as the name of a file, in characters; the gateway takes no longer query.
const QUERY_MAX: usize = 200;
/// Most files that are offered.
pub(crate) const OFFERS_MAX: usize = 6;
/// Time without typing before files are asked for, in milliseconds.
const PAUSE: i64 = 120;

/// A file that is being named: the place of its `@` (line and column, in characters), and what was typed after it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mention {
    at: (usize, usize),
    query: String,
}

/// The mention that ends at the cursor. An `@` within a word (an address) is none.
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

/// The files that are offered while one is being named.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileOffers {
    mention: Option<Mention>,
    /// The place where offers were closed: the same `@` does not open them again.
    closed: Option<(usize, usize)>,
    paths: Vec<String>,
    /// A notice about them, or why there are none.
    pub(crate) text: String,
    /// The chosen one.
    pub(crate) at: usize,
    /// The number of the last question, and when the next one is due.
    query_id: u64,
    due: Option<i64>,
}

impl FileOffers {
    /// The paths that are offered.
    pub(crate) fn paths(&self) -> &[String] {
        &self.paths
    }

    /// The lines that the offers take.
    pub(crate) fn lines(&self) -> usize {
        self.paths.len() + usize::from(!self.text.is_empty())
    }

    /// Looks at the text after a change of it, or of its cursor.
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
                // Those before stay until the answer, as far as they fit.
                self.paths.retain(|path| fits(path, &mention.query));
                self.due = Some(if first { now } else { now + PAUSE });
            }
        }
        (self.at, self.mention) = (0, found);
    }

    /// The number and the query of the question that is due.
    pub(crate) fn due(&mut self, now: i64) -> Option<(u64, String)> {
        self.due.filter(|due| *due <= now)?;
        self.due = None;
        self.query_id += 1;
        self.mention.as_ref().map(|mention| (self.query_id, mention.query.clone()))
    }

    /// The answer to the question of this number.
    pub(crate) fn on_reply(&mut self, query_id: u64, reply: Result<Files, String>) {
        let Some(mention) = self.mention.as_ref().filter(|_| query_id == self.query_id) else { return };
        self.at = 0;
        match reply {
            Err(why) => (self.paths, self.text) = (Vec::new(), format!("files could not be listed: {why}")),
            Ok(Files { files, truncated }) => {
                // More may have been typed since: those that no longer fit are not offered, and the next question is due.
                let paths = files.into_iter().map(|file| file.path).filter(|path| fits(path, &mention.query));
                self.paths = paths.take(OFFERS_MAX).collect();
                self.text = match (self.paths.is_empty(), truncated) {
                    _ if self.due.is_some() => String::new(),
                    (true, false) => format!("no file fits {:?}", sanitize::line(&mention.query, 60)),
                    (true, true) => "nothing fits among the files that were looked at: there are more".to_owned(),
                    (false, true) => "there are more files than were looked at".to_owned(),
                    (false, false) => String::new(),
                };
            }
        }
    }

    /// A key while files are offered; true if it was for them.
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

    /// Writes the file of this row into the text.
    pub(crate) fn take(&mut self, at: usize, area: &mut TextArea<'static>) -> bool {
        let (Some(mention), Some(path)) = (self.mention.take(), self.paths.get(at).cloned()) else { return false };
        // The offers may still be those of the word before.
        if !fits(&path, &mention.query) {
            self.mention = Some(mention);
            return false;
        }
        mention_file(area, &mention, &path);
        self.close();
        true
    }

    /// Closes what is offered.
    pub(crate) fn close(&mut self) {
        self.closed = self.mention.take().map(|mention| mention.at);
        (self.paths, self.text, self.due, self.at) = (Vec::new(), String::new(), None, 0);
        self.query_id += 1;
    }
}

/// Returns whether a path has these characters in this order.
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
