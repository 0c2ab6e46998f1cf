//! What is asked, safe to show: made here once, so that phone, terminal and browser cannot disagree. Pure.

use std::fmt::Write as _;

use unicode_general_category::{GeneralCategory as Category, get_general_category};

use super::risk;
use crate::dialects::Subject;
use crate::model::Risk;

/// A `display` longer than this warns that it must be read in full, in bytes.
const LONG: usize = 4 << 10;

/// The rendering and what a person should know before answering.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Display {
    pub(super) text: String,
    pub(super) warnings: Vec<String>,
    pub(super) risk: Risk,
}

/// Renders what is asked. Whatever could deceive an eye is escaped as `\u{..}` and named in a warning; the only control
/// character that passes is the line feed. `folder` is the session's.
pub(super) fn render(subject: &Subject, folder: &str, danger: bool) -> Display {
    let mut display = Display { text: String::new(), warnings: Vec::new(), risk: Risk::Danger };
    if danger {
        display.warnings.push("the agent itself calls this dangerous".into());
    }
    let mut seen = Seen::default();
    match subject {
        Subject::Command { argv, cwd } => {
            command(argv, &mut display, &mut seen);
            if let Some(cwd) = cwd {
                display.text.push_str("\nin ");
                seen.escape(cwd, &mut display.text);
            }
            if argv.iter().any(|word| word.contains('\n')) {
                display.warnings.push("the command has several lines: read them all".into());
            }
            if let Some(letter) = argv.iter().flat_map(|word| word.chars()).find(|c| !c.is_ascii() && c.is_alphabetic())
            {
                display.warnings.push(format!(
                    "has letters that are not ASCII, such as {letter} (U+{:04X}): they may look like others",
                    u32::from(letter)
                ));
            }
        }
        Subject::Edits(edits) => {
            for (n, (path, old, new)) in edits.iter().enumerate() {
                if n > 0 {
                    display.text.push('\n');
                }
                display.text.push_str(if old.is_some() { "edit " } else { "write " });
                seen.escape(path, &mut display.text);
                for (mark, side) in [("-", old.as_deref()), ("+", Some(new.as_str()))] {
                    for line in side.unwrap_or_default().lines() {
                        display.text.push('\n');
                        display.text.push_str(mark);
                        seen.escape(line, &mut display.text);
                    }
                }
            }
        }
        Subject::Text(text) => seen.escape(text, &mut display.text),
    }
    display.risk = risk::judge(subject, folder, danger, seen.hides());
    seen.warn(&mut display.warnings);
    if display.text.len() > LONG {
        display.warnings.push(format!("long: {} bytes; read all of it", display.text.len()));
    }
    display
}

fn command(argv: &[String], display: &mut Display, seen: &mut Seen) {
    let plain = |word: &String| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:@%+,".contains(&b))
    };
    match argv {
        [line] => seen.escape(line, &mut display.text),
        words if words.iter().all(plain) => display.text.push_str(&words.join(" ")),
        // Where one argument ends and the next begins matters: one a line, quoted.
        words => {
            for (n, word) in words.iter().enumerate() {
                if n > 0 {
                    display.text.push('\n');
                }
                let mut escaped = String::new();
                seen.escape(&word.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"), &mut escaped);
                let _ = write!(display.text, "argv[{n}] \"{escaped}\"");
            }
        }
    }
}

/// What deceptive characters were met.
#[derive(Default)]
struct Seen {
    controls: usize,
    /// Those of them that are neither tabs nor ends of lines.
    hostile: usize,
    invisible: usize,
    bidirectional: usize,
    spaces: usize,
    other: usize,
    trailing: usize,
}

impl Seen {
    fn escape(&mut self, text: &str, out: &mut String) {
        out.reserve(text.len());
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                out.push('\n');
            }
            let kept = line.trim_end_matches(' ');
            for c in kept.chars() {
                if self.deceives(c) {
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                } else {
                    out.push(c);
                }
            }
            // Trailing spaces are part of what runs, and no eye sees them.
            for _ in kept.len()..line.len() {
                self.trailing += 1;
                out.push_str("\\u{20}");
            }
        }
    }

    fn deceives(&mut self, c: char) -> bool {
        if matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}') {
            self.bidirectional += 1;
            return true;
        }
        if c.is_control() && !matches!(c, '\t' | '\r') {
            self.hostile += 1;
        }
        let counter = match get_general_category(c) {
            Category::Control => &mut self.controls,
            Category::Format => &mut self.invisible,
            Category::LineSeparator | Category::ParagraphSeparator => &mut self.spaces,
            Category::SpaceSeparator if c != ' ' => &mut self.spaces,
            Category::PrivateUse | Category::Unassigned | Category::Surrogate => &mut self.other,
            // Letters and marks that draw nothing: Hangul fillers, variation selectors, combining grapheme joiner, braille blank.
            _ if matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{34f}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{17b4}' | '\u{17b5}') => {
                &mut self.invisible
            }
            _ => return false,
        };
        *counter += 1;
        true
    }

    /// Whether anything was met that has no place in an honest command. Tabs and the ends of lines have theirs.
    fn hides(&self) -> bool {
        self.bidirectional + self.invisible + self.spaces + self.other + self.hostile > 0
    }

    fn warn(&self, warnings: &mut Vec<String>) {
        let mut warn = |count: usize, what: &str| {
            if count > 0 {
                warnings.push(format!("has {count} {what}; shown as \\u{{..}}"));
            }
        };
        warn(self.bidirectional, "bidirectional control character(s), which reorder what you see");
        warn(self.invisible, "invisible character(s)");
        warn(self.controls, "control character(s)");
        warn(self.spaces, "unusual space or line separator(s)");
        warn(self.other, "private-use or unassigned character(s)");
        warn(self.trailing, "space(s) at the end of a line");
    }
}

/// Text of an agent's own for a place where it is shown: escaped as above, cut to `most` bytes with an ellipsis.
pub(super) fn label(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut seen = Seen::default();
    for c in text.chars() {
        if out.len() >= most {
            out.push('…');
            break;
        }
        if c == '\n' {
            out.push(' ');
        } else if seen.deceives(c) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Display {
        render(&Subject::Command { argv: vec![line.into()], cwd: None }, "/src", false)
    }

    #[test]
    fn a_plain_command_is_shown_as_it_is_and_warns_of_nothing() {
        let plain = Display { text: "touch a.txt && ls -l".into(), warnings: vec![], risk: Risk::Elevated };
        assert_eq!(shown("touch a.txt && ls -l"), plain);
    }

    #[test]
    fn no_deceptive_character_is_shown_raw_and_each_is_flagged() {
        let deceptive = [
            '\u{0}',
            '\u{7}',
            '\u{8}',
            '\t',
            '\u{b}',
            '\u{c}',
            '\r',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{a0}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1680}',
            '\u{180e}',
            '\u{2000}',
            '\u{2003}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{200e}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{202f}',
            '\u{205f}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{2800}',
            '\u{3000}',
            '\u{3164}',
            '\u{e000}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{10ffff}',
            '\u{f0000}',
            '\u{378}',
        ];
        for c in deceptive {
            let display = shown(&format!("rm{c}x"));
            assert_eq!(display.text, format!("rm\\u{{{:x}}}x", u32::from(c)), "U+{:04X}", u32::from(c));
            assert!(
                display.warnings.iter().any(|w| w.contains("shown as")),
                "U+{:04X}: {:?}",
                u32::from(c),
                display.warnings
            );
            let expected = if matches!(c, '\t' | '\r') { Risk::Elevated } else { Risk::Danger };
            let line = format!("touch{c}x");
            assert!(shown(&line).risk >= expected, "U+{:04X}", u32::from(c));
        }
        assert_eq!(shown("ls  ").text, "ls\\u{20}\\u{20}");
        assert_eq!(shown("ls  ").warnings.len(), 1);
    }

    #[test]
    fn arguments_stand_one_a_line_where_their_borders_matter() {
        let argv = |words: &[&str]| {
            let argv = words.iter().map(ToString::to_string).collect();
            render(&Subject::Command { argv, cwd: Some("/src".into()) }, "/src", false).text
        };
        assert_eq!(argv(&["git", "status"]), "git status\nin /src");
        assert_eq!(argv(&["sh", "-c", "a \"b\""]), "argv[0] \"sh\"\nargv[1] \"-c\"\nargv[2] \"a \\\"b\\\"\"\nin /src");
        assert_eq!(argv(&["rm", ""]), "argv[0] \"rm\"\nargv[1] \"\"\nin /src");
    }

    #[test]
    fn look_alikes_several_lines_and_length_are_warned_of() {
        assert!(shown("c\u{430}t x").warnings[0].contains("U+0430"));
        assert!(shown("a\nrm -rf /").warnings[0].contains("several lines"));
        assert!(shown(&"x".repeat(LONG + 1)).warnings[0].contains("long"));
    }
}
