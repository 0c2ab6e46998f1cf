//! Simple syntax highlighting. Pure.

use ratatui::text::Span;

use super::theme::Theme;

/// Keywords of most languages.
const KEYWORDS: &[&str] = &[
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "def",
    "do",
    "done",
    "elif",
    "else",
    "enum",
    "esac",
    "except",
    "export",
    "extends",
    "false",
    "fi",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "if",
    "impl",
    "import",
    "in",
    "interface",
    "is",
    "lambda",
    "let",
    "loop",
    "match",
    "mod",
    "mut",
    "new",
    "nil",
    "None",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "pub",
    "public",
    "raise",
    "return",
    "self",
    "Self",
    "static",
    "struct",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "True",
    "False",
    "try",
    "type",
    "use",
    "var",
    "void",
    "where",
    "while",
    "with",
    "yield",
];

/// Highlights a sanitized line of code: strings, numbers, comments, keywords. It knows no language, only the common elements of most.
pub(crate) fn color(line: &str, name: &str, theme: &Theme) -> Vec<Span<'static>> {
    let plain = matches!(name, "" | "text" | "txt" | "console" | "output" | "log" | "md" | "markdown");
    if plain || line.len() > 1000 {
        return vec![Span::styled(line.to_owned(), theme.text)];
    }
    if name == "diff" || name == "patch" {
        let style = match line.as_bytes().first() {
            Some(b'+') => theme.added.0,
            Some(b'-') => theme.removed.0,
            Some(b'@') => theme.busy,
            _ => theme.text,
        };
        return vec![Span::styled(line.to_owned(), style)];
    }
    let hash = !matches!(
        name,
        "rust" | "rs" | "js" | "ts" | "javascript" | "typescript" | "c" | "cpp" | "go" | "java" | "json" | "css"
    );
    let mut spans = Vec::new();
    let mut rest = line;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let (len, style) =
            if rest.starts_with("//") && before.is_whitespace() || hash && c == '#' && before.is_whitespace() {
                (rest.len(), theme.dim)
            } else if matches!(c, '"' | '`') || c == '\'' && rest[1..].contains('\'') {
                let mut escaped = false;
                let close = rest[1..].char_indices().find(|(_, d)| {
                    let end = *d == c && !escaped;
                    escaped = *d == '\\' && !escaped;
                    end
                });
                (close.map_or(rest.len(), |(at, d)| 1 + at + d.len_utf8()), theme.literal)
            } else if c.is_ascii_digit() && !before.is_alphanumeric() && before != '_' {
                let end = rest.find(|d: char| !d.is_ascii_alphanumeric() && d != '.' && d != '_').unwrap_or(rest.len());
                (end, theme.literal)
            } else if c.is_alphabetic() || c == '_' {
                let end = rest.find(|d: char| !d.is_alphanumeric() && d != '_').unwrap_or(rest.len());
                (end, if KEYWORDS.contains(&&rest[..end]) { theme.keyword } else { theme.text })
            } else {
                (c.len_utf8(), theme.text)
            };
        before = rest[..len].chars().next_back().unwrap_or(' ');
        match spans.last_mut() {
            Some(Span { content, style: same }) if *same == style => content.to_mut().push_str(&rest[..len]),
            _ => spans.push(Span::styled(rest[..len].to_owned(), style)),
        }
        rest = &rest[len..];
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::super::theme::Depth;
    use super::*;

    #[test]
    fn highlight_colours_words_and_loses_nothing() {
        let theme = Theme::new(Depth::True, false);
        let styled = |line: &str, name: &str| {
            let spans = color(line, name, &theme);
            assert_eq!(spans.iter().map(|span| span.content.as_ref()).collect::<String>(), line);
            spans
        };
        let of = |spans: &[Span<'static>], style| {
            spans.iter().filter(|span| span.style == style).map(|span| span.content.to_string()).collect::<Vec<_>>()
        };
        let spans = styled("let x = \"a \\\" b\" + 12; // end", "rust");
        assert_eq!(of(&spans, theme.keyword), ["let"]);
        assert_eq!(of(&spans, theme.literal), ["\"a \\\" b\"", "12"]);
        assert_eq!(of(&spans, theme.dim), ["// end"]);
        assert_eq!(of(&styled("# no", "sh"), theme.dim), ["# no"]);
        assert_eq!(of(&styled("#[x]", "rust"), theme.dim), Vec::<String>::new());
        for line in ["'", "\"", "don't", "é'漢'`", "", "\\", "a'"] {
            styled(line, "rust");
            styled(line, "python");
        }
    }
}
