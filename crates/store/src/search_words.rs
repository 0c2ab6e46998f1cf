//! The words of a search, the marks around matches, and random epochs, for both stores.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

use super::StoreError;

/// The mark before a match in a snippet.
pub(super) const MARK_START: &str = "\u{2}";
/// The mark after a match in a snippet.
pub(super) const MARK_END: &str = "\u{3}";

/// Maximum number of search words. Further words are ignored, which bounds the work.
const WORDS_MAX: usize = 32;

/// Returns a random epoch: eight letters and digits (40 bits).
pub(super) fn random_epoch() -> Result<String, StoreError> {
    let mut bytes = [0; 5];
    getrandom::fill(&mut bytes).map_err(|e| StoreError::Io(format!("the system provides no random numbers: {e}")))?;
    Ok(data_encoding::BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
}

/// Returns whether a character is part of a word according to SQLite's `unicode61`: letters, numbers, private use.
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

/// Returns the parts of a search between white space that contain a word; `---` contains none.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || c == '\0').filter(|part| part.contains(is_word)).take(WORDS_MAX)
}

/// Returns the search as an FTS5 expression: every part is a quoted phrase, the last one a prefix. `None` if it contains no word.
pub(super) fn match_expression(text: &str) -> Option<String> {
    let quoted: Vec<String> = parts(text).map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect();
    (!quoted.is_empty()).then(|| quoted.join(" ") + "*")
}

/// Returns the text without U+0002 and U+0003, so that the marks in a snippet are the store's own.
pub(super) fn without_marks(text: &str) -> String {
    text.replace(['\u{2}', '\u{3}'], " ")
}
