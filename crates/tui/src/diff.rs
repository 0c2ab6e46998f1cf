//! Diffs as lines: context folded, changed words marked. Pure.

use std::time::Duration;

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use similar::{ChangeTag, TextDiff};

use super::markdown::wrap;
use super::sanitize;
use super::theme::Theme;

/// Number of unchanged lines around a change.
const CONTEXT: usize = 3;
/// Maximum time of a comparison; after it, the rest is shown as removed and added.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum length of a line that is compared word by word, in bytes.
const WORDS_MAX: usize = 2000;
/// Maximum number of lines of a diff that are laid out; the rest is counted.
pub(crate) const LINES_MAX: usize = 50_000;

/// The lines of a diff, and the numbers of added and removed lines. The file has `before` lines before the texts.
pub(crate) fn diff(
    before: usize,
    old: &str,
    new: &str,
    theme: &Theme,
    margin: &Span<'static>,
    width: usize,
) -> (Vec<Line<'static>>, usize, usize) {
    let compared = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(old, new);
    let (mut lines, mut added, mut removed) = (Vec::new(), 0, 0);
    let last = before.saturating_add(old.lines().count().max(new.lines().count()).max(1));
    let digits = last.to_string().len();
    for (n, group) in compared.grouped_ops(CONTEXT).iter().enumerate() {
        if n > 0 {
            lines.push(Line::from(vec![margin.clone(), Span::styled("  ⋯", theme.dim)]));
        }
        for op in group {
            for change in compared.iter_inline_changes(op) {
                let (mark, (line, word)) = match change.tag() {
                    ChangeTag::Delete => ("-", theme.removed),
                    ChangeTag::Insert => ("+", theme.added),
                    ChangeTag::Equal => (" ", (theme.text, theme.text)),
                };
                added += usize::from(change.tag() == ChangeTag::Insert);
                removed += usize::from(change.tag() == ChangeTag::Delete);
                if lines.len() >= LINES_MAX {
                    continue;
                }
                let number = change.new_index().or(change.old_index()).map_or(0, |at| before.saturating_add(at + 1));
                let number = Span::styled(format!("{}{number:>digits$} ", margin.content), theme.dim);
                let next = Span::styled(format!("{}{:>digits$} ", margin.content, ""), theme.dim);
                let pieces: Vec<(bool, String)> =
                    change.iter_strings_lossy().map(|(changed, piece)| (changed, piece.into_owned())).collect();
                let long = pieces.iter().map(|(_, piece)| piece.len()).sum::<usize>() > WORDS_MAX;
                let mut spans = vec![Span::styled(format!("{mark} "), line)];
                for (changed, piece) in pieces {
                    let style: Style = if changed && !long { word } else { line };
                    spans.push(Span::styled(sanitize::text(piece.trim_end_matches(['\n', '\r'])), style));
                }
                lines.extend(wrap(&spans, &number, &next, width));
            }
        }
    }
    if added + removed > LINES_MAX {
        lines.push(Line::from(Span::styled("… the rest is too long to show: export it", theme.warn)));
    }
    (lines, added, removed)
}

#[cfg(test)]
mod tests {
    use super::super::theme::Depth;
    use super::*;

    fn drawn(old: &str, new: &str, width: usize) -> String {
        let (lines, added, removed) = diff(0, old, new, &Theme::new(Depth::True, false), &Span::raw(""), width);
        let lines: Vec<String> = lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
        format!("{}\n+{added} -{removed}", lines.join("\n"))
    }

    #[test]
    fn diff_shows_changes_with_context() {
        let old: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 3\n", "line three\n").replace("line 18\n", "");
        insta::assert_snapshot!(drawn(&old, &new, 60));
        assert_eq!(drawn("", "a\nb\n", 20), "1 + a\n2 + b\n+2 -0");
        assert_eq!(drawn("same\n", "same\n", 20), "\n+0 -0");
    }

    #[test]
    fn diff_marks_only_the_changed_word() {
        let theme = Theme::new(Depth::True, false);
        let (lines, ..) = diff(0, "let a = 1;\n", "let a = 2;\n", &theme, &Span::raw(""), 60);
        let marked: Vec<String> = lines
            .iter()
            .flat_map(|line| &line.spans)
            .filter(|span| span.style == theme.added.1 || span.style == theme.removed.1)
            .map(|span| span.content.to_string())
            .collect();
        assert!(
            marked.iter().any(|word| word.contains('1')) && marked.iter().any(|word| word.contains('2')),
            "{marked:?}"
        );
        assert!(!marked.iter().any(|word| word.contains("let")), "{marked:?}");
    }

    #[test]
    fn diff_compares_twenty_thousand_lines() {
        let old: String = (0..20_000).map(|n| format!("old {n} \x1b[31m\n")).collect();
        let new: String = (0..20_000).map(|n| format!("new {n} \u{202e}\n")).collect();
        let (lines, added, removed) = diff(0, &old, &new, &Theme::new(Depth::None, false), &Span::raw(""), 80);
        assert_eq!((added, removed), (20_000, 20_000));
        assert!(lines.len() >= 40_000);
        assert!(!lines.iter().any(|line| line.to_string().contains(['\x1b', '\u{202e}'])));
    }
}
