//! The subject of a request, in parts that are safe to display.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The subject of a request, so that a screen can draw it and group similar requests. The text to read before an answer is
/// [`Request::display`](super::Request::display). All text here is sanitized like `display`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = Subject)]
pub enum About {
    /// A command line.
    Command {
        /// The shell line as one element, or the program and its arguments. Left out above [`ABOUT_MAX`] bytes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        argv: Vec<String>,
        /// The folder in which it runs: the session's, or the one in a field of the command. Absent if no folder is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// The other folder that the agent's text names, if it contradicts `cwd`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stated_cwd: Option<String>,
    },
    /// Changes to files.
    Edit {
        /// The files, [`ABOUT_FILES`] at most.
        files: Vec<Touched>,
        /// The number of files beyond `files`.
        #[serde(default, skip_serializing_if = "is_zero")]
        more: usize,
    },
    /// A fetch from an address.
    Fetch {
        /// The address, cut to [`ABOUT_MAX`] bytes.
        url: String,
    },
    /// A call of a tool.
    Tool {
        /// The name, cut to [`ABOUT_MAX`] bytes; the arguments are in `display`.
        name: String,
    },
    /// A plan that waits for approval.
    Plan,
    /// Questions to a user.
    Question {
        /// The questions, in order.
        questions: Vec<Question>,
    },
    /// A request whose effect the gateway cannot read; also any subject that this version does not know.
    #[default]
    #[serde(other)]
    Unreadable,
}

/// Maximum length of a text in an [`About`], in bytes.
pub const ABOUT_MAX: usize = 4 << 10;
/// Maximum number of files named in an [`About::Edit`].
pub const ABOUT_FILES: usize = 100;

/// A file that is to be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Touched {
    /// The path, cut to [`ABOUT_MAX`] bytes.
    pub path: String,
    /// `true` if the whole file is overwritten.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new: bool,
    /// The number of added lines, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    /// The number of removed lines, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
}

/// A question to a user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Question {
    /// The id that an answer refers to.
    pub id: String,
    /// A heading of one or two words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The question.
    pub text: String,
    /// The answers to choose from.
    pub options: Vec<QuestionOption>,
    /// `true` if several options may be chosen.
    pub multiple: bool,
    /// `true` if free text is an answer.
    pub free_text: bool,
    /// `true` if the question may be left unanswered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The agent's name of the field, where `id` is the gateway's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The field that carries the free text, where one text answers all questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<String>,
    /// The bounds of the free text, of the number or of the number of choices.
    #[serde(default, skip_serializing_if = "AnswerBounds::is_empty")]
    pub fits: AnswerBounds,
}

/// One option of a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuestionOption {
    /// The id that an answer refers to.
    pub id: String,
    /// The displayed name; an answer may give it in place of the id.
    pub label: String,
    /// A longer description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Bounds of an answer to a [`Question`]: the value of a number, the length of a text in characters, the number of choices; and the
/// format of a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Fits)]
pub struct AnswerBounds {
    /// `number` or `integer`; text, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
    /// The minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// The maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// A regular expression that must match somewhere in the text (JSON Schema's `pattern`). The gateway does not check a pattern that is
    /// longer than 1 KiB or that it cannot compile. It is the agent's raw text: escape it for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// `email`, `uri`, `date` or `date-time` (JSON Schema's `format`); the gateway does not check other formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// Maximum length of a `pattern` that is checked, in bytes.
const PATTERN_MAX: usize = 1 << 10;
/// Maximum size of a compiled pattern, in bytes.
const PATTERN_COMPILED: usize = 256 << 10;

/// The type of a numeric answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = NumberSort)]
pub enum Number {
    /// Any number.
    Number,
    /// An integer.
    Integer,
}

/// The reason why an answer does not fit a [`Question`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Misfit {
    /// The answer is empty, and the question is not optional.
    Missing,
    /// The question accepts one answer and got several.
    Several,
    /// The text is not a number of this type.
    NotA(Number),
    /// The value, the length or the number of choices is out of bounds.
    Bounds {
        /// The minimum.
        least: Option<f64>,
        /// The maximum.
        most: Option<f64>,
    },
    /// The text does not match [`AnswerBounds::pattern`].
    Pattern,
    /// The text does not have the format [`AnswerBounds::format`].
    Form,
}

impl Question {
    /// Checks `chosen` options and free texts `own` as one answer; `None` if they fit.
    #[must_use]
    pub fn misfit(&self, chosen: usize, own: &[String]) -> Option<Misfit> {
        let count = chosen + own.len();
        if count == 0 {
            return (!self.optional).then_some(Misfit::Missing);
        }
        if own.len() > 1 || (!self.multiple && count > 1) {
            return Some(Misfit::Several);
        }
        match own.first() {
            _ if self.multiple => self.fits.count(count as f64).err(),
            Some(text) => self.fits.check(text).err(),
            None => None,
        }
    }
}

impl AnswerBounds {
    /// Checks free text; a number is written as in JSON.
    ///
    /// # Errors
    /// [`Misfit`], but never `Missing` or `Several`.
    pub fn check(&self, text: &str) -> Result<(), Misfit> {
        if let Some(sort) = self.number {
            let number = serde_json::from_str::<serde_json::Number>(text.trim()).ok();
            let number = number.filter(|number| sort == Number::Number || number.is_i64() || number.is_u64());
            return self.count(number.and_then(|number| number.as_f64()).ok_or(Misfit::NotA(sort))?);
        }
        self.count(text.chars().count() as f64)?;
        match (&self.pattern, &self.format) {
            (Some(pattern), _) if !matches(pattern, text) => Err(Misfit::Pattern),
            (_, Some(format)) if !has_format(format, text) => Err(Misfit::Form),
            _ => Ok(()),
        }
    }

    /// Checks a quantity: a number's value, the characters of a text, or the number of choices.
    ///
    /// # Errors
    /// [`Misfit::Bounds`].
    pub fn count(&self, value: f64) -> Result<(), Misfit> {
        let (least, most) = (self.least, self.most);
        let within = least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most);
        if within { Ok(()) } else { Err(Misfit::Bounds { least, most }) }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns whether `pattern` matches, or cannot be checked. The agent wrote the pattern: its size is bounded, and the search takes time
/// linear in the text.
fn matches(pattern: &str, text: &str) -> bool {
    if pattern.len() > PATTERN_MAX {
        return true;
    }
    let built = regex::RegexBuilder::new(pattern).size_limit(PATTERN_COMPILED).dfa_size_limit(PATTERN_COMPILED).build();
    built.map_or(true, |pattern| pattern.is_match(text))
}

/// Returns whether the text has the named format; every text has an unknown one.
fn has_format(format: &str, text: &str) -> bool {
    let has_no_spaces = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    match format {
        "email" => {
            let parts = text.rsplit_once('@');
            has_no_spaces
                && parts.is_some_and(|(user, host)| !user.is_empty() && !host.is_empty() && !user.contains('@'))
        }
        "uri" => {
            let (scheme, rest) = text.split_once(':').unwrap_or_default();
            let plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            has_no_spaces
                && !rest.is_empty()
                && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(plain)
        }
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "date-time" => {
            let has_separator = matches!(text.as_bytes().get(10), Some(b'T' | b't'));
            has_no_spaces && has_separator && text.parse::<jiff::Timestamp>().is_ok()
        }
        _ => true,
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_text_must_fit_length_pattern_and_format() {
        let of = |pattern: Option<&str>, format: Option<&str>| AnswerBounds {
            pattern: pattern.map(Into::into),
            format: format.map(Into::into),
            ..AnswerBounds::default()
        };
        let long = "a".repeat(PATTERN_MAX + 1);
        for (fits, good, bad) in [
            (of(Some("^v[0-9]+$"), None), vec!["v1", "v22"], vec!["", "v", "w1", "v1 "]),
            (of(Some("b"), None), vec!["abc"], vec!["xyz"]),
            // A pattern that is invalid or too large is left to the agent.
            (of(Some("(?<=a)b"), None), vec!["x"], vec![]),
            (of(Some("(a{1000}){1000}"), None), vec!["x"], vec![]),
            (of(Some(&long), None), vec!["x"], vec![]),
            (of(None, Some("email")), vec!["a@b.c"], vec!["", "a", "@b", "a@", "a@b c", "a@b@c"]),
            (of(None, Some("uri")), vec!["https://x/y", "mailto:a@b"], vec!["", "x", "//x", "1a:b", "a:", "a:b c"]),
            (of(None, Some("date")), vec!["2026-02-28"], vec!["2026-02-30", "26-2-1", "2026-02-28T00:00:00Z"]),
            (
                of(None, Some("date-time")),
                vec!["2026-02-28T01:02:03Z"],
                vec!["2026-02-28", "2026-02-28T01:02:03", "now"],
            ),
            (of(None, Some("no-such-form")), vec!["", "x"], vec![]),
        ] {
            good.iter().for_each(|text| assert_eq!(fits.check(text), Ok(()), "{fits:?}"));
            bad.iter().for_each(|text| assert!(fits.check(text).is_err(), "{fits:?} {text:?}"));
        }
    }

    #[test]
    fn about_number_is_parsed_as_json() {
        let of = |number, least, most| AnswerBounds { number: Some(number), least, most, ..AnswerBounds::default() };
        let whole = of(Number::Integer, Some(1.0), Some(9.0));
        for words in ["3", " 9 "] {
            assert_eq!(whole.check(words), Ok(()), "{words}");
        }
        for words in ["", "0", "10", "3.0", "3e0", "three", "+3", "NaN", "0x3"] {
            assert!(whole.check(words).is_err(), "{words}");
        }
        let any = of(Number::Number, None, Some(2.5));
        assert_eq!((any.check("2.5"), any.check("-1e3")), (Ok(()), Ok(())));
        for words in ["2.6", ".5", "inf", "1,5"] {
            assert!(any.check(words).is_err(), "{words}");
        }
    }
}
