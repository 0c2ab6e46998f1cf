//! A shell's line, read and classified. This is the one place where text is taken for a shell's: a real parser would stand
//! behind [`classify`] in place of [`read`]. One file, because what a character means depends on all those around it. Pure.
//!
//! Nothing is expanded. What is not plainly understood is never low.

use super::words::{SimpleCommand, base};
use plexus_protocol::Risk;

/// A line for a shell, and where it would run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShellText<'a> {
    pub(crate) line: &'a str,
    /// The folder it runs in.
    pub(crate) cwd: &'a str,
    /// The session's folder, absolute; empty if nothing is known to lie in it.
    pub(crate) folder: &'a str,
}

/// How risky something is, and why: the reasons of the highest risk, at most [`REASONS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RiskVerdict {
    pub(crate) risk: Risk,
    pub(crate) reasons: Vec<String>,
}

/// Most reasons that are given.
const REASONS: usize = 6;
/// How deep shells within shells are read; what is deeper is not understood.
pub(super) const DEEP: usize = 6;

impl RiskVerdict {
    pub(crate) fn low() -> Self {
        Self { risk: Risk::Low, reasons: Vec::new() }
    }

    pub(super) fn elevated(reason: impl Into<String>) -> Self {
        Self { risk: Risk::Elevated, reasons: vec![reason.into()] }
    }

    pub(super) fn danger(reason: impl Into<String>) -> Self {
        Self { risk: Risk::Danger, reasons: vec![reason.into()] }
    }

    /// Both: the higher risk, and its reasons.
    pub(super) fn and(&mut self, other: Self) {
        if other.risk > self.risk {
            *self = other;
        } else if other.risk == self.risk {
            for reason in other.reasons {
                if self.reasons.len() < REASONS && !self.reasons.contains(&reason) {
                    self.reasons.push(reason);
                }
            }
        }
    }
}

/// What a line for a shell would do.
pub(crate) fn classify(text: &ShellText<'_>) -> RiskVerdict {
    within(text, DEEP)
}

pub(super) fn within(text: &ShellText<'_>, deep: usize) -> RiskVerdict {
    if deep == 0 {
        return RiskVerdict::danger("is wrapped too deep to be read");
    }
    weigh(&read(text.line), text, deep)
}

/// A line for a shell, taken apart.
#[derive(Debug, Default, PartialEq)]
struct ShellLine {
    /// The simple commands in it, wherever they stand.
    commands: Vec<Vec<String>>,
    /// What it does beyond running them one after the other and passing on what they say.
    more: Vec<&'static str>,
    /// Where it writes to.
    written: Vec<String>,
    /// Whether it was understood to its end.
    broken: bool,
    /// Whether what it says is written in a disguise.
    disguised: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Redirect {
    None,
    /// The next word is a file that is written.
    Write,
    /// The next word is a file that is written, or the number of a descriptor.
    Copy,
    /// The next word is read.
    Read,
}

const SUBSTITUTES: &str = "is put together when it runs ($)";
const BACKGROUND: &str = "leaves something running";
const SUBSHELL: &str = "is a script of several parts";
const INPUT: &str = "feeds a file or text to a program";

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The state of reading.
struct ShellParser {
    line: ShellLine,
    words: Vec<String>,
    word: String,
    /// Whether there is a word, be it empty.
    some: bool,
    redirect: Redirect,
    /// The substitutions and shells within that are open, the innermost last.
    inside: Vec<OpenQuote>,
}

/// Something that is open: what closes it, the quote that it stands in, and the command that goes on after it.
struct OpenQuote {
    end: char,
    quote: Option<char>,
    outer: Option<(Vec<String>, String, Redirect)>,
}

impl ShellParser {
    /// What is within a substitution is read as a line of its own; the word that it stands in has a `$` for it.
    fn substitute(&mut self, end: char, quote: Option<char>) {
        self.more(SUBSTITUTES);
        self.word.push('$');
        let outer = (std::mem::take(&mut self.words), std::mem::take(&mut self.word), self.redirect);
        (self.some, self.redirect) = (false, Redirect::None);
        self.inside.push(OpenQuote { end, quote, outer: Some(outer) });
    }

    /// The innermost that ends so is over: the quote that it stood in.
    fn close(&mut self, end: char) -> Option<Option<char>> {
        let OpenQuote { quote, outer, .. } = self.inside.pop_if(|inside| inside.end == end)?;
        self.end_command();
        if let Some((words, word, redirect)) = outer {
            (self.words, self.word, self.redirect, self.some) = (words, word, redirect, true);
        }
        Some(quote)
    }

    fn end_word(&mut self) {
        if !std::mem::take(&mut self.some) && self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        match std::mem::replace(&mut self.redirect, Redirect::None) {
            Redirect::None => self.words.push(word),
            Redirect::Write => self.line.written.push(word),
            Redirect::Copy => {
                let number = word.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
                if !number {
                    self.line.written.push(word);
                }
            }
            Redirect::Read => {}
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        // An operator where a file should be named.
        self.line.broken |= self.redirect != Redirect::None;
        self.redirect = Redirect::None;
        self.line.commands.push(std::mem::take(&mut self.words));
    }

    /// After a `$`: a substitution, characters written as numbers, or a variable.
    fn dollar(&mut self, chars: &mut Letters<'_>, quote: &mut Option<char>) {
        self.more(SUBSTITUTES);
        match chars.peek() {
            Some('(') => {
                chars.next();
                self.substitute(')', quote.take());
            }
            // `$'..'` writes characters as numbers.
            Some('\'') if quote.is_none() => {
                chars.next();
                self.some = true;
                while let Some(c) = chars.next() {
                    match c {
                        '\'' => break,
                        '\\' => {
                            let escaped = chars.next();
                            self.line.disguised |= !matches!(escaped, Some('n' | 't' | '\'' | '"' | '\\' | 'r'));
                            self.word.extend(escaped);
                        }
                        c => self.word.push(c),
                    }
                }
            }
            Some('"') if quote.is_none() => {}
            _ => self.word.push('$'),
        }
    }

    /// After a `>`.
    fn write_to(&mut self, chars: &mut Letters<'_>) {
        // A number right before it is the descriptor's.
        if self.word.bytes().all(|byte| byte.is_ascii_digit()) && !self.some {
            self.word.clear();
        }
        self.end_word();
        match chars.peek() {
            Some('>' | '|') => {
                chars.next();
                self.redirect = Redirect::Write;
            }
            Some('&') => {
                chars.next();
                self.redirect = Redirect::Copy;
            }
            Some('(') => self.more(SUBSHELL),
            _ => self.redirect = Redirect::Write,
        }
    }

    /// After a `<`.
    fn read_from(&mut self, chars: &mut Letters<'_>) {
        self.end_word();
        self.more(INPUT);
        match chars.peek() {
            Some('>') => {
                chars.next();
                self.redirect = Redirect::Write;
            }
            Some('<') => {
                chars.next();
                chars.next_if(|next| matches!(next, '<' | '-'));
                // The text that follows is read as commands: what is fed to a program may be run.
                self.redirect = Redirect::Read;
            }
            Some('&') => {
                chars.next();
                self.redirect = Redirect::Read;
            }
            Some('(') => {}
            _ => self.redirect = Redirect::None,
        }
    }

    fn more(&mut self, what: &'static str) {
        if !self.line.more.contains(&what) {
            self.line.more.push(what);
        }
    }
}

/// Takes a line apart at every operator, those inside substitutions too. Quotes hold words together; nothing is expanded.
fn read(line: &str) -> ShellLine {
    let mut all = ShellParser {
        line: ShellLine::default(),
        words: Vec::new(),
        word: String::new(),
        some: false,
        redirect: Redirect::None,
        inside: Vec::new(),
    };
    let mut chars = line.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), c) => all.word.push(c),
            (_, '\\') => {
                all.some = true;
                if let Some(next) = chars.next().filter(|next| *next != '\n') {
                    // In double quotes it stands for itself before most characters.
                    if quote == Some('"') && !matches!(next, '$' | '`' | '"' | '\\') {
                        all.word.push('\\');
                    }
                    all.word.push(next);
                }
            }
            (None, '\'' | '"') => {
                all.some = true;
                quote = Some(c);
            }
            // A substitution runs a command, in double quotes too; what is in it is read as a line of its own.
            (_, '`') => match all.close('`') {
                Some(before) => quote = before,
                None => all.substitute('`', quote.take()),
            },
            (_, '$') => all.dollar(&mut chars, &mut quote),
            (Some(_), c) => all.word.push(c),
            (None, '>') => all.write_to(&mut chars),
            (None, '<') => all.read_from(&mut chars),
            (None, '&') if chars.peek() == Some(&'>') => {
                chars.next();
                all.end_word();
                chars.next_if_eq(&'>');
                all.redirect = Redirect::Write;
            }
            (None, ';' | '\n' | '|' | '&' | '(' | ')') => {
                if c != ')' {
                    all.end_command();
                }
                let twice = chars.next_if_eq(&c).is_some();
                if c == '|' && !twice {
                    chars.next_if_eq(&'&');
                }
                if c == '(' {
                    all.more(SUBSHELL);
                } else if c == '&' && !twice {
                    all.more(BACKGROUND);
                }
                for _ in 0..=usize::from(twice) {
                    match c {
                        '(' => all.inside.push(OpenQuote { end: ')', quote: None, outer: None }),
                        ')' => match all.close(')') {
                            Some(before) => quote = before,
                            // The end of a `case`, or of nothing.
                            None => {
                                all.end_command();
                                all.more(SUBSHELL);
                            }
                        },
                        _ => {}
                    }
                }
            }
            (None, c) if c.is_whitespace() => all.end_word(),
            (None, '#') if all.word.is_empty() && !all.some => {
                // A comment, to the line's end.
                while chars.next_if(|next| *next != '\n').is_some() {}
            }
            (None, c) => all.word.push(c),
        }
    }
    // What does not end is not understood.
    all.line.broken |= quote.is_some() || !all.inside.is_empty();
    all.end_command();
    all.line.commands.retain(|words| !words.is_empty());
    all.line
}

fn weigh(line: &ShellLine, text: &ShellText<'_>, deep: usize) -> RiskVerdict {
    let mut all = RiskVerdict::low();
    if line.broken {
        all.and(RiskVerdict::elevated("is not a whole command: it cannot be read to its end"));
    }
    if line.disguised {
        all.and(RiskVerdict::danger("is written in a disguise"));
    }
    if line.commands.is_empty() && line.written.is_empty() {
        all.and(RiskVerdict::elevated("has no command in it"));
    }
    for what in &line.more {
        all.and(RiskVerdict::elevated(*what));
    }
    for target in &line.written {
        all.and(super::paths::written(target, text));
    }
    let (mut fetches, mut decodes, mut runs, mut secret, mut sends) = (false, false, false, false, false);
    for words in &line.commands {
        let words = SimpleCommand { words, text, deep };
        all.and(words.verdict());
        fetches |= words.names(super::tables::NETWORK);
        decodes |= words.names(super::tables::FETCHERS);
        runs |= words.runs();
        secret |= words.words.iter().skip(1).any(|word| super::paths::secret(word));
        sends |= words.names(super::tables::NETWORK) || words.names(&["nc", "ncat", "ssh", "mail", "aws", "rclone"]);
    }
    if fetches && runs {
        all.and(RiskVerdict::danger("pipes the network into a shell, or runs what it fetched"));
    } else if decodes && runs {
        all.and(RiskVerdict::danger("runs what it takes out of a disguise"));
    }
    if secret && sends {
        all.and(RiskVerdict::danger("sends what may be secret"));
    }
    if all.risk == Risk::Low && line.commands.iter().any(|words| words.first().is_none_or(|word| base(word).is_empty()))
    {
        all.and(RiskVerdict::elevated("has a command without a name"));
    }
    all
}
