//! A parser of shell lines, which expands nothing. A full parser of shell syntax would replace [`parse`].

/// A shell line, with the folder in which it runs.
#[derive(Clone, Copy, Debug)]
pub struct ShellText<'a> {
    /// The line.
    pub line: &'a str,
    /// The working directory.
    pub cwd: &'a str,
    /// The session's folder, absolute; empty if no path counts as inside it.
    pub folder: &'a str,
}

/// A parsed shell line.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ShellLine {
    /// All simple commands, also those inside substitutions.
    pub(super) commands: Vec<Vec<String>>,
    /// Reasons for risk in addition to the commands: substitutions, background jobs, subshells, input redirections.
    pub(super) effects: Vec<&'static str>,
    /// Targets of output redirections.
    pub(super) written: Vec<String>,
    /// `true` if the line could not be parsed to its end.
    pub(super) broken: bool,
    /// `true` if the line has ordinary characters written as numbers.
    pub(super) disguised: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Redirect {
    None,
    /// The next word is a file that is written.
    Write,
    /// The next word is a file that is written, or the number of a descriptor.
    Copy,
    /// The next word is a file or text that is read.
    Read,
}

const SUBSTITUTES: &str = "is put together when it runs ($)";
const BACKGROUND: &str = "leaves a process running";
const SUBSHELL: &str = "is a script of several parts";
const INPUT: &str = "feeds a file or text to a program";

type CharStream<'a> = std::iter::Peekable<std::str::Chars<'a>>;

struct ShellParser {
    line: ShellLine,
    words: Vec<String>,
    word: String,
    /// `true` if there is a word, even an empty one.
    has_word: bool,
    redirect: Redirect,
    /// The open substitutions and subshells, the innermost last.
    open: Vec<OpenGroup>,
}

/// An open substitution or subshell: its closing character, the quote around it, and the command that continues after it.
struct OpenGroup {
    end: char,
    quote: Option<char>,
    outer: Option<(Vec<String>, String, Redirect)>,
}

impl ShellParser {
    /// Begins a substitution, which is parsed as commands of its own. The word around it has a `$` in its place.
    fn substitute(&mut self, end: char, quote: Option<char>) {
        self.add_effect(SUBSTITUTES);
        self.word.push('$');
        let outer = (std::mem::take(&mut self.words), std::mem::take(&mut self.word), self.redirect);
        (self.has_word, self.redirect) = (false, Redirect::None);
        self.open.push(OpenGroup { end, quote, outer: Some(outer) });
    }

    /// Closes the innermost group if `end` does so; returns the quote around it.
    fn close(&mut self, end: char) -> Option<Option<char>> {
        let OpenGroup { quote, outer, .. } = self.open.pop_if(|group| group.end == end)?;
        self.end_command();
        if let Some((words, word, redirect)) = outer {
            (self.words, self.word, self.redirect, self.has_word) = (words, word, redirect, true);
        }
        Some(quote)
    }

    fn end_word(&mut self) {
        if !std::mem::take(&mut self.has_word) && self.word.is_empty() {
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
        // An operator is in place of a file name.
        self.line.broken |= self.redirect != Redirect::None;
        self.redirect = Redirect::None;
        self.line.commands.push(std::mem::take(&mut self.words));
    }

    /// Parses the text after a `$`: a substitution, characters written as numbers, or a variable.
    fn dollar(&mut self, chars: &mut CharStream<'_>, quote: &mut Option<char>) {
        self.add_effect(SUBSTITUTES);
        match chars.peek() {
            Some('(') => {
                chars.next();
                self.substitute(')', quote.take());
            }
            // `$'..'` writes characters as numbers.
            Some('\'') if quote.is_none() => {
                chars.next();
                self.has_word = true;
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

    /// Parses the text after a `>`.
    fn write_to(&mut self, chars: &mut CharStream<'_>) {
        // A number right before it is a descriptor.
        if self.word.bytes().all(|byte| byte.is_ascii_digit()) && !self.has_word {
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
            Some('(') => self.add_effect(SUBSHELL),
            _ => self.redirect = Redirect::Write,
        }
    }

    /// Parses the text after a `<`.
    fn read_from(&mut self, chars: &mut CharStream<'_>) {
        self.end_word();
        self.add_effect(INPUT);
        match chars.peek() {
            Some('>') => {
                chars.next();
                self.redirect = Redirect::Write;
            }
            Some('<') => {
                chars.next();
                chars.next_if(|next| matches!(next, '<' | '-'));
                // The following text is parsed as commands: the program may run its input.
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

    fn add_effect(&mut self, effect: &'static str) {
        if !self.line.effects.contains(&effect) {
            self.line.effects.push(effect);
        }
    }
}

/// Splits a line at all operators, also inside substitutions. Quotes join words; nothing is expanded.
pub(super) fn parse(line: &str) -> ShellLine {
    let mut parser = ShellParser {
        line: ShellLine::default(),
        words: Vec::new(),
        word: String::new(),
        has_word: false,
        redirect: Redirect::None,
        open: Vec::new(),
    };
    let mut chars = line.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), c) => parser.word.push(c),
            (_, '\\') => {
                parser.has_word = true;
                if let Some(next) = chars.next().filter(|next| *next != '\n') {
                    // In double quotes a backslash is literal before most characters.
                    if quote == Some('"') && !matches!(next, '$' | '`' | '"' | '\\') {
                        parser.word.push('\\');
                    }
                    parser.word.push(next);
                }
            }
            (None, '\'' | '"') => {
                parser.has_word = true;
                quote = Some(c);
            }
            // Substitutions run commands, also in double quotes.
            (_, '`') => match parser.close('`') {
                Some(before) => quote = before,
                None => parser.substitute('`', quote.take()),
            },
            (_, '$') => parser.dollar(&mut chars, &mut quote),
            (Some(_), c) => parser.word.push(c),
            (None, '>') => parser.write_to(&mut chars),
            (None, '<') => parser.read_from(&mut chars),
            (None, '&') if chars.peek() == Some(&'>') => {
                chars.next();
                parser.end_word();
                chars.next_if_eq(&'>');
                parser.redirect = Redirect::Write;
            }
            (None, ';' | '\n' | '|' | '&' | '(' | ')') => {
                if c != ')' {
                    parser.end_command();
                }
                let is_doubled = chars.next_if_eq(&c).is_some();
                if c == '|' && !is_doubled {
                    chars.next_if_eq(&'&');
                }
                if c == '(' {
                    parser.add_effect(SUBSHELL);
                } else if c == '&' && !is_doubled {
                    parser.add_effect(BACKGROUND);
                }
                for _ in 0..=usize::from(is_doubled) {
                    match c {
                        '(' => parser.open.push(OpenGroup { end: ')', quote: None, outer: None }),
                        ')' => match parser.close(')') {
                            Some(before) => quote = before,
                            // The character ends a `case` pattern, or is unbalanced.
                            None => {
                                parser.end_command();
                                parser.add_effect(SUBSHELL);
                            }
                        },
                        _ => {}
                    }
                }
            }
            (None, c) if c.is_whitespace() => parser.end_word(),
            (None, '#') if parser.word.is_empty() && !parser.has_word => {
                // A comment extends to the end of the line.
                while chars.next_if(|next| *next != '\n').is_some() {}
            }
            (None, c) => parser.word.push(c),
        }
    }
    parser.line.broken |= quote.is_some() || !parser.open.is_empty();
    parser.end_command();
    parser.line.commands.retain(|words| !words.is_empty());
    parser.line
}
