//! What both stores share: words of a search, marks around what was found, and a new epoch.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

use super::StoreError;

/// Stands before a match in a snippet.
pub(super) const MARK_START: &str = "\u{2}";
/// Stands after a match in a snippet.
pub(super) const MARK_END: &str = "\u{3}";

/// Words of a search that count. More would only narrow it; the rest is not looked at, which bounds the work.
const WORDS_MAX: usize = 32;

/// A random epoch: eight letters and digits (40 bits).
pub(super) fn random_epoch() -> Result<String, StoreError> {
    let mut bytes = [0; 5];
    getrandom::fill(&mut bytes).map_err(|e| StoreError::Io(format!("the system provides no random numbers: {e}")))?;
    Ok(data_encoding::BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
}

/// Whether a character is part of a word, as SQLite's `unicode61` sees it: letters, numbers, private use.
pub(super) fn is_word(c: char) -> bool {
    use Category::{
        DecimalNumber, LetterNumber, LowercaseLetter, ModifierLetter, OtherLetter, OtherNumber, PrivateUse,
        TitlecaseLetter, UppercaseLetter,
    };
    matches!(
        get_general_category(c),
        DecimalNumber
            | LetterNumber
            | LowercaseLetter
            | ModifierLetter
            | OtherLetter
            | OtherNumber
            | PrivateUse
            | TitlecaseLetter
            | UppercaseLetter
    )
}

/// The parts of a search between white space that hold a word at all; `---` asks for nothing.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || c == '\0').filter(|part| part.contains(is_word)).take(WORDS_MAX)
}

/// The search as an FTS5 expression that has no syntax left in it: every part a quoted phrase, the last one a prefix.
/// `None` if there is no word in it.
pub(super) fn match_expression(text: &str) -> Option<String> {
    let quoted: Vec<String> = parts(text).map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect();
    (!quoted.is_empty()).then(|| quoted.join(" ") + "*")
}

/// The text without the two characters that mark matches, so that a snippet's marks are ours alone.
pub(super) fn without_marks(text: &str) -> String {
    text.replace(['\u{2}', '\u{3}'], " ")
}
