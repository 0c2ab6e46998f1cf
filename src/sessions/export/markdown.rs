//! An agent's text in the Markdown of an export. It cannot leave its quote or its fence, and runs nothing. Pure.

/// Writes an agent's Markdown as a quote that it cannot leave. Outside of fences it contains no HTML, images or unsafe links.
pub(super) fn quoted(text: &str, out: &mut String) {
    // All Markdown readers agree only on fences at the very beginning of a line.
    let mut fence: Option<(u8, usize)> = None;
    for text in text.trim_end().split('\n') {
        let mut text = text;
        // Some readers accept blanks before the end of a fence: it is written without them, so that all readers recognize the end.
        if let Some((open, length)) = fence {
            let end = text.trim();
            if end.len() >= length && end.bytes().all(|byte| byte == open) {
                text = end;
            }
        }
        out.push_str(if text.is_empty() { ">" } else { "> " });
        let mark = text.bytes().next().filter(|mark| matches!(mark, b'`' | b'~'));
        let run = mark.map_or(0, |mark| text.bytes().take_while(|byte| *byte == mark).count());
        let rest = text.get(run..).unwrap_or_default();
        match (fence, mark) {
            (Some((open, length)), Some(mark)) if mark == open && run >= length && rest.trim().is_empty() => {
                fence = None
            }
            (Some(_), _) => {}
            (None, Some(mark)) if run >= 3 && !(mark == b'`' && rest.contains('`')) => fence = Some((mark, run)),
            (None, _) => {
                unlinked(text, out);
                out.push('\n');
                continue;
            }
        }
        out.push_str(text);
        out.push('\n');
    }
}

/// Writes a line outside of a fence with HTML, images and unsafe links escaped.
fn unlinked(text: &str, out: &mut String) {
    let mut backslashes = 0;
    for (n, c) in text.char_indices() {
        let html_or_image = c == '<' || (c == '!' && text[n..].starts_with("!["));
        // The target of an inline link, or of a link reference definition.
        let unsafe_link = matches!(c, '(' | ':') && text[..n].ends_with(']') && !is_safe_target(&text[n + 1..]);
        // One more backslash would unescape a character that is escaped already.
        if (html_or_image || unsafe_link) && backslashes % 2 == 0 {
            out.push('\\');
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
        out.push(c);
    }
}

/// Returns whether a link target is certainly a web page, a mail address or a relative file. Other schemes may run code when the link is
/// opened, and escapes and entities can hide a scheme.
fn is_safe_target(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '\t']);
    let target = rest.split([' ', '\t', ')']).next().unwrap_or_default();
    let begins = |scheme: &str| target.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    let relative = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '#' | '+');
    ["https://", "http://", "mailto:"].into_iter().any(begins) || (!target.is_empty() && target.chars().all(relative))
}

/// Writes any text as a fenced Markdown block that it cannot leave.
pub(super) fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}

/// Returns text with all Markdown and HTML escaped.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '&' | '~') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn export_markdown_cannot_leave_its_quote_or_fence() {
        let quote = |text: &str| {
            let mut out = String::new();
            quoted(text, &mut out);
            out
        };
        assert_eq!(quote("a\n\n# b\n"), "> a\n>\n> # b\n");
        // In a fence `<` stays; outside, and in what may be none, it is a letter.
        assert_eq!(
            quote("```rust\nVec<T>\n```\nVec<T> ![x](http://e)"),
            "> ```rust\n> Vec<T>\n> ```\n> Vec\\<T> \\![x](http://e)\n"
        );
        for (link, kept) in [
            ("[x](javascript:alert(1))", false),
            ("[x]( JaVaScRiPt:alert(1))", false),
            ("[x](&#106;avascript:alert(1))", false),
            ("[x](java\\script:alert(1))", false),
            ("[x](data:text/html,x)", false),
            ("[x](vbscript:x)", false),
            ("[x](", false),
            ("[x]: javascript:alert(1)", false),
            ("[x]:", false),
            ("[x](https://e.example/a?b=c&d)", true),
            ("[x](HTTP://e.example)", true),
            ("[x](src/main.rs#L3)", true),
            ("[x]: https://e.example", true),
            ("[x](mailto:a@e.example)", true),
        ] {
            let shown = if kept { link.to_owned() } else { link.replace("](", "]\\(").replace("]:", "]\\:") };
            assert_eq!(quote(link), format!("> {shown}\n"));
        }
        for open in ["``` a`b", " ```", "- ```", "1. a\n   ```", "    ```", "> ```", "``", "\t```"] {
            let out = quote(&format!("{open}\n<img src=x>"));
            assert!(out.ends_with("> \\<img src=x>\n"), "{open:?}: {out}");
        }
        // Only its own end closes a fence.
        for inside in ["~~~", "```", "```` x"] {
            let out = quote(&format!("````\n{inside}\n<b>\n````\n<i>"));
            assert!(out.contains("> <b>\n") && out.ends_with("> \\<i>\n"), "{inside}: {out}");
        }
        for n in 0..6 {
            let text = "`".repeat(n);
            let fenced = fence(&format!("a\n{text}\nb"));
            let end = fenced.lines().next().unwrap();
            assert_eq!(fenced.lines().filter(|line| line.starts_with(end)).count(), 2, "{fenced}");
        }
    }

    #[test]
    fn export_markdown_frees_nothing_that_is_escaped() {
        for (text, shown) in [
            (r"\<img src=x>", r"> \<img src=x>"),
            (r"\\<img src=x>", r"> \\\<img src=x>"),
            (r"\![x](http://e)", r"> \![x](http://e)"),
            ("```\n ```\n[x](javascript:y)", "> ```\n> ```\n> [x]\\(javascript:y)"),
            ("~~~\n   ~~~~ \n<b>", "> ~~~\n> ~~~~\n> \\<b>"),
        ] {
            let mut out = String::new();
            quoted(text, &mut out);
            assert_eq!(out.trim_end(), shown, "{text}");
        }
    }
}
