//! The check that a screen still shows the dialog or line for an answer. Pure.
//!
//! A screen is read as *sections*: the text between two lines that are edges of boxes, without white space and box
//! drawing, so that line breaks do not matter. The expected sections have to be the last ones on the screen: text that
//! an agent wrote above its dialog can look like one.

use serde::{Deserialize, Serialize};

/// The conditions of a section of a screen, all of which have to hold. They are written without white space and box drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenSection {
    /// The whole text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
    /// The beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begins: Option<String>,
    /// The end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// A part of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
}

impl ScreenSection {
    fn is_met(&self, section: &str) -> bool {
        self.is.as_ref().is_none_or(|all| section == all)
            && self.begins.as_ref().is_none_or(|start| section.starts_with(start.as_str()))
            && self.ends.as_ref().is_none_or(|end| section.ends_with(end.as_str()))
            && self.holds.as_ref().is_none_or(|part| section.contains(part.as_str()))
    }
}

fn draws_boxes(c: char) -> bool {
    ('\u{2500}'..='\u{257f}').contains(&c)
}

/// Returns whether a line is the edge of a box, or a rule across the screen.
fn is_edge(line: &str) -> bool {
    line.matches('─').nth(1).is_some() && line.chars().all(|c| c.is_whitespace() || draws_boxes(c))
}

/// Returns the sections of a screen, from its lines.
pub fn sections<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in lines {
        if is_edge(line) {
            all.push(String::new());
        } else if let Some(last) = all.last_mut() {
            last.extend(line.chars().filter(|c| !c.is_whitespace() && !draws_boxes(*c)));
        }
    }
    all
}

/// Returns whether a screen ends with these sections; `false` if there are none.
pub fn ends_with(screen: &[String], wanted: &[ScreenSection]) -> bool {
    let Some(first) = screen.len().checked_sub(wanted.len()) else { return false };
    !wanted.is_empty() && screen[first..].iter().zip(wanted).all(|(section, wanted)| wanted.is_met(section))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIALOG: &str = "
 > FAKE:shell touch a
╭──────────────────────────────────╮
│ ? Shell  touch a            1 of 2│
│ ╭──────────────────────────────╮ │
│ │ touch a                      │ │
│ ╰──────────────────────────────╯ │
│ Allow execution of [Shell]?      │
│                                  │
│ ● 1. Allow once                  │
│   2. No, suggest changes (esc)   │
╰──────────────────────────────────╯

";

    fn shows(screen: &str, command: &str) -> bool {
        let wanted = [
            ScreenSection { begins: Some("?Shell".into()), ..ScreenSection::default() },
            ScreenSection { is: Some(command.into()), ..ScreenSection::default() },
            ScreenSection {
                begins: Some("Allowexecutionof".into()),
                ends: Some("●1.Allowonce2.No,suggestchanges(esc)".into()),
                ..ScreenSection::default()
            },
            ScreenSection { is: Some(String::new()), ..ScreenSection::default() },
        ];
        ends_with(&sections(screen.lines()), &wanted)
    }

    #[test]
    fn screen_shows_a_dialog_only_where_all_of_it_is_there_and_last() {
        assert!(shows(DIALOG, "toucha"));
        // Wrapped.
        assert!(shows(&DIALOG.replace("│ │ touch a                      │ │", "│ │ touch │ │\n│ │ a │ │"), "toucha"));
        let cases = [
            ("another command", DIALOG.replace("│ │ touch a ", "│ │ touch b ")),
            ("one that ends with it", DIALOG.replace("│ │ touch a", "│ │ rm -rf x; touch a")),
            ("one that begins with it", DIALOG.replace("│ │ touch a", "│ │ touch a; rm -rf x")),
            ("a line of the command drawn like an edge", DIALOG.replace("│ │ touch a", "│ │ x\n│ ──── │\n│ │ touch a")),
            (
                "its beginning scrolled off",
                DIALOG.split_once("1 of 2│\n").map(|(_, rest)| rest.to_owned()).unwrap_or_default(),
            ),
            (
                "a part is hidden",
                DIALOG.replace("│ │ touch a", "│ │ ... first 3 lines hidden (Ctrl+O to show) ...\n│ │ touch a"),
            ),
            ("another choice is marked", DIALOG.replace("● 1.", "  1.").replace("  2.", "● 2.")),
            ("something came below it", format!("{DIALOG} > Type your message\n")),
            ("it was only written", format!("{DIALOG}\n{}", DIALOG.replace("touch a", "rm -rf x"))),
            ("nothing is there", String::new()),
        ];
        for (what, screen) in cases {
            assert!(!shows(&screen, "toucha"), "{what}:\n{screen}");
        }
        assert!(!ends_with(&sections(DIALOG.lines()), &[]), "nothing is never met");
    }
}
