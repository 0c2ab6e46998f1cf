//! The display form of requests, in which nothing is hidden. It is made here for all clients, so that they cannot
//! disagree; different requests never look the same.

use std::fmt::Write as _;

use plexus_protocol::{
    ABOUT_FILES, ABOUT_MAX, About, FolderClaim, Question, QuestionOption, RequestSubject, RequestType, Risk, Touched,
};
use sha2::{Digest, Sha256};

use crate::diff::{self, diff};
use crate::escape::{DeceptiveCharacters, label};
use crate::folder::{ActionFolder, FolderConflict, SessionFolders, action_folder};
use crate::judge::judge;
use crate::verdict::RiskVerdict;

/// Maximum length of a display without the warning to read all of it, in bytes.
const LONG_DISPLAY: usize = 4 << 10;

/// The display form of a request, with the information that the user needs to answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Display {
    /// The text, in which deceptive characters are escaped.
    pub text: String,
    /// Warnings for the user who answers.
    pub warnings: Vec<String>,
    /// The risk of allowing the action.
    pub risk: Risk,
    /// The reasons for the risk.
    pub reasons: Vec<String>,
    /// Lines added and removed, for each file of an edit.
    pub counts: Vec<(usize, usize)>,
    /// SHA-256 (hex) of the whole subject, with the parts that a diff leaves out or that are cut.
    pub subject_digest: String,
    /// The folder of the action.
    pub folder: ActionFolder,
}

/// The beginnings of other displays. A command that begins like one of them is prefixed with `$`.
const PREFIXES: [&str; 9] = ["$ ", "argv[", "edit ", "write ", "fetch ", "tool ", "plan:", "cannot be read:", "asks:"];

/// Renders the subject of a request. Deceptive characters are escaped as `\u{..}` and named in a warning; the only control
/// character that passes is the line feed. Subjects that differ never look the same.
pub fn render(subject: &RequestSubject, folders: SessionFolders<'_>, danger: bool) -> Display {
    let mut display = Display {
        text: String::new(),
        warnings: Vec::new(),
        risk: Risk::Danger,
        reasons: Vec::new(),
        counts: Vec::new(),
        subject_digest: subject_digest(subject),
        folder: action_folder(subject, folders),
    };
    if danger {
        display.warnings.push("the agent itself calls this dangerous".into());
    }
    let mut deceptive = DeceptiveCharacters::default();
    let mut cut = false;
    match subject {
        RequestSubject::Command { argv, cwd } => {
            command(argv, &mut display, &mut deceptive);
            write_folder(&mut display, folders.session, cwd.is_some(), &mut deceptive);
            if argv.iter().any(|word| word.contains('\n')) {
                display.warnings.push("the command has several lines: read them all".into());
            }
            if let Some(letter) = argv.iter().flat_map(|word| word.chars()).find(|c| !c.is_ascii() && c.is_alphabetic())
            {
                display.warnings.push(format!(
                    "has letters that are not ASCII, such as {letter} (U+{:04X}): they may look like other letters",
                    u32::from(letter)
                ));
            }
        }
        RequestSubject::Edits(edits) => {
            for (n, (path, old, new)) in edits.iter().enumerate() {
                if n > 0 {
                    display.text.push('\n');
                }
                display.text.push_str(if old.is_some() { "edit " } else { "write " });
                deceptive.inline(path, &mut display.text);
                let changes = diff(old.as_deref().unwrap_or_default(), new);
                display.counts.push((changes.added, changes.removed));
                if display.text.len() > diff::SHOWN_MAX {
                    display.text.push_str("\n… not shown: there is too much before it");
                    cut = true;
                    continue;
                }
                cut |= changes.write(&mut display.text, |line, out| deceptive.escape(line, out));
            }
            if cut {
                display.warnings.push("is too long to be shown completely: some of the changes are left out".into());
            }
        }
        RequestSubject::Diff { path, diff } => {
            display.text.push_str("edit ");
            deceptive.inline(path, &mut display.text);
            deceptive.indented(diff, &mut display.text);
        }
        RequestSubject::Fetch { url, more } => {
            display.text.push_str("fetch ");
            deceptive.inline(url, &mut display.text);
            if !more.is_empty() {
                deceptive.indented(more, &mut display.text);
            }
        }
        RequestSubject::Tool { name, arguments } => {
            display.text.push_str("tool ");
            deceptive.inline(name, &mut display.text);
            deceptive.indented(arguments, &mut display.text);
        }
        RequestSubject::Plan(plan) => {
            display.text.push_str("plan:");
            deceptive.indented(plan, &mut display.text);
        }
        RequestSubject::Questions { text, .. } | RequestSubject::Text(text) => {
            deceptive.escape(text, &mut display.text)
        }
        RequestSubject::Confirm { title, message } => {
            deceptive.inline(title, &mut display.text);
            if !message.trim().is_empty() {
                display.text.push('\n');
                deceptive.escape(message, &mut display.text);
            }
        }
        RequestSubject::Unreadable { reason, raw } => {
            display.text.push_str("cannot be read: ");
            deceptive.inline(reason, &mut display.text);
            deceptive.indented(raw, &mut display.text);
            display
                .warnings
                .push("Plexus cannot tell what this would do; this is everything that the agent sent".into());
        }
    }
    let RiskVerdict { risk, reasons } =
        judge(subject, (&display.folder, folders.session), danger, deceptive.any_hidden(), cut);
    (display.risk, display.reasons) = (risk, reasons);
    deceptive.warn(&mut display.warnings);
    if display.text.len() > LONG_DISPLAY {
        display.warnings.push(format!("long: {} bytes; read all of it", display.text.len()));
    }
    display
}

/// Writes the folder of a command, and the other folder if two of them contradict each other.
fn write_folder(display: &mut Display, session: &str, named: bool, deceptive: &mut DeceptiveCharacters) {
    let Display { text, warnings, folder, .. } = display;
    let mut line = |words: &str, path: &str, by_agent: bool| {
        text.push_str(words);
        // A folder that the user chose is not deceptive.
        let mut own = DeceptiveCharacters::default();
        if by_agent { &mut *deceptive } else { &mut own }.inline(path, text);
    };
    if !folder.cwd.is_empty() {
        line("\nin ", &folder.cwd, named);
    }
    let Some(conflict) = &folder.conflict else { return };
    match conflict {
        FolderConflict::Process | FolderConflict::Outside => line("\nthe session's folder: ", session, false),
        FolderConflict::Stated(stated) => line("\nthe agent says: in ", stated, true),
    }
    warnings.push(conflict.warning().to_owned());
}

/// Returns the SHA-256 (hex) of a subject, each part with its length.
fn subject_digest(subject: &RequestSubject) -> String {
    let mut sum = Sha256::new();
    let mut part = |text: &str| {
        sum.update((text.len() as u64).to_le_bytes());
        sum.update(text);
    };
    match subject {
        RequestSubject::Command { argv, cwd } => {
            part("command");
            argv.iter().for_each(|word| part(word));
            part("in");
            match cwd {
                Some(FolderClaim::Field(cwd)) => ["field", cwd].into_iter().for_each(part),
                Some(FolderClaim::Text(cwd)) => ["words", cwd].into_iter().for_each(part),
                None => {}
            }
        }
        RequestSubject::Edits(edits) => {
            part("edits");
            for (path, old, new) in edits {
                part(path);
                part(if old.is_some() { "edit" } else { "write" });
                part(old.as_deref().unwrap_or_default());
                part(new);
            }
        }
        RequestSubject::Diff { path, diff } => ["diff", path, diff].into_iter().for_each(part),
        RequestSubject::Fetch { url, more } => ["fetch", url, more].into_iter().for_each(part),
        RequestSubject::Tool { name, arguments } => ["tool", name, arguments].into_iter().for_each(part),
        RequestSubject::Plan(plan) => ["plan", plan].into_iter().for_each(part),
        RequestSubject::Questions { text, questions } => {
            part("questions");
            part(text);
            questions.iter().for_each(|question| part(&serde_json::to_string(question).unwrap_or_default()));
        }
        RequestSubject::Text(text) => ["text", text].into_iter().for_each(part),
        RequestSubject::Confirm { title, message } => ["confirm", title, message].into_iter().for_each(part),
        RequestSubject::Unreadable { reason, raw } => ["unreadable", reason, raw].into_iter().for_each(part),
    }
    data_encoding::HEXLOWER.encode(&sum.finalize())
}

fn command(argv: &[String], display: &mut Display, deceptive: &mut DeceptiveCharacters) {
    // Words that a shell would not change.
    let plain = |word: &String| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:@%+,".contains(&b))
    };
    let out = &mut display.text;
    match argv {
        [line] => {
            if PREFIXES.iter().any(|prefix| line.starts_with(prefix)) {
                out.push_str("$ ");
            }
            // Further lines of the command are indented, unlike the lines after the command.
            for (n, line) in line.split('\n').enumerate() {
                if n > 0 {
                    out.push_str("\n  ");
                }
                deceptive.escape(line, out);
            }
        }
        [first, ..] if argv.iter().all(plain) && !first.contains('=') => {
            let words = argv.join(" ");
            if PREFIXES.iter().any(|prefix| words.starts_with(prefix)) {
                out.push_str("$ ");
            }
            out.push_str(&words);
        }
        // Argument borders matter: one argument a line, quoted.
        words => {
            for (n, word) in words.iter().enumerate() {
                if n > 0 {
                    out.push('\n');
                }
                let _ = write!(out, "argv[{n}] \"");
                for c in word.chars() {
                    match c {
                        '\\' => out.push_str("\\\\"),
                        '"' => out.push_str("\\\""),
                        '\n' => out.push_str("\\n"),
                        c if deceptive.deceives(c) => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
                        c => out.push(c),
                    }
                }
                out.push('"');
            }
        }
    }
}

/// Returns the parts of a request's subject, safe to show, for clients with a layout of their own. `counts` are those
/// of its [`Display`], and `question` makes the question of a request whose subject is text.
pub fn about(
    subject: &RequestSubject,
    kind: RequestType,
    folder: &ActionFolder,
    counts: &[(usize, usize)],
    question: impl FnOnce() -> Question,
) -> About {
    let safe = |text: &str| {
        let mut out = String::new();
        DeceptiveCharacters::default().escape(text, &mut out);
        out
    };
    match subject {
        RequestSubject::Command { argv, .. } => {
            let long = argv.iter().map(String::len).sum::<usize>() > ABOUT_MAX;
            let argv = if long { Vec::new() } else { argv.iter().map(|word| safe(word)).collect() };
            let stated_cwd = match &folder.conflict {
                Some(FolderConflict::Stated(stated)) => Some(label(stated, ABOUT_MAX)),
                Some(FolderConflict::Process | FolderConflict::Outside) | None => None,
            };
            let cwd = Some(label(&folder.cwd, ABOUT_MAX)).filter(|cwd| !cwd.is_empty());
            About::Command { argv, cwd, stated_cwd }
        }
        RequestSubject::Edits(edits) => {
            let file = |(n, (path, old, _)): (usize, &(String, Option<String>, String))| Touched {
                path: label(path, ABOUT_MAX),
                new: old.is_none(),
                added: counts.get(n).map(|counts| counts.0),
                removed: counts.get(n).map(|counts| counts.1),
            };
            let more = edits.len().saturating_sub(ABOUT_FILES);
            About::Edit { files: edits.iter().enumerate().take(ABOUT_FILES).map(file).collect(), more }
        }
        RequestSubject::Diff { path, .. } => {
            let file = Touched { path: label(path, ABOUT_MAX), new: false, added: None, removed: None };
            About::Edit { files: vec![file], more: 0 }
        }
        RequestSubject::Fetch { url, .. } => About::Fetch { url: label(url, ABOUT_MAX) },
        RequestSubject::Tool { name, .. } => About::Tool { name: label(name, ABOUT_MAX) },
        RequestSubject::Plan(_) => About::Plan,
        // A request that takes only yes or no cannot carry answers.
        RequestSubject::Questions { .. } if kind != RequestType::Prompt => About::Tool { name: "questions".into() },
        RequestSubject::Questions { questions, .. } => {
            About::Question { questions: questions.iter().map(safe_question).collect() }
        }
        RequestSubject::Text(_) => About::Question { questions: vec![question()] },
        // The options are the answer: the question has no fields of its own.
        RequestSubject::Confirm { .. } => About::Question { questions: Vec::new() },
        RequestSubject::Unreadable { .. } => About::Unreadable,
    }
}

/// Returns a question that is safe to show; identifiers stay the agent's own.
fn safe_question(question: &Question) -> Question {
    let safe = |text: &str| label(text, ABOUT_MAX);
    let option = |option: &QuestionOption| QuestionOption {
        id: option.id.clone(),
        label: safe(&option.label),
        description: option.description.as_deref().map(safe),
    };
    Question {
        id: question.id.clone(),
        header: question.header.as_deref().map(safe),
        text: safe(&question.text),
        options: question.options.iter().map(option).collect(),
        ..question.clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const W: SessionFolders<'_> = SessionFolders { session: "/w", resolved: None, process: None };

    /// Renders a command without a known folder, so that the text is the command alone.
    fn shown(line: &str) -> Display {
        render(&RequestSubject::Command { argv: vec![line.into()], cwd: None }, SessionFolders::default(), false)
    }

    #[test]
    fn display_of_plain_command_is_unchanged_without_warnings() {
        let plain = shown("touch a.txt && ls -l");
        assert_eq!(
            (plain.text.as_str(), plain.warnings.len(), plain.risk),
            ("touch a.txt && ls -l", 0, Risk::Elevated)
        );
    }

    #[test]
    fn display_escapes_and_flags_every_deceptive_character() {
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
    fn display_quotes_arguments_where_borders_matter() {
        let argv = |words: &[&str]| {
            let argv = words.iter().map(ToString::to_string).collect();
            render(&RequestSubject::Command { argv, cwd: None }, SessionFolders { session: "/src", ..W }, false).text
        };
        assert_eq!(argv(&["git", "status"]), "git status\nin /src");
        assert_eq!(argv(&["sh", "-c", "a \"b\""]), "argv[0] \"sh\"\nargv[1] \"-c\"\nargv[2] \"a \\\"b\\\"\"\nin /src");
        assert_eq!(argv(&["rm", ""]), "argv[0] \"rm\"\nargv[1] \"\"\nin /src");
    }

    #[test]
    fn display_warns_of_lookalikes_several_lines_and_length() {
        assert!(shown("c\u{430}t x").warnings[0].contains("U+0430"));
        assert!(shown("a\nrm -rf /").warnings[0].contains("several lines"));
        assert!(shown(&"x".repeat(LONG_DISPLAY + 1)).warnings[0].contains("long"));
    }

    #[test]
    fn display_of_edit_is_a_diff_and_its_digest_covers_both_texts() {
        let old: String = (1..601).map(|n| format!("line {n}\n")).collect();
        let edit = |old: &str, new: String| {
            render(&RequestSubject::Edits(vec![("/w/a".into(), Some(old.into()), new)]), W, false)
        };
        let one = edit(&old, old.replace("line 300\n", "line THREE\n"));
        assert_eq!(one.text.lines().count(), 10, "{}", one.text);
        assert!(one.text.starts_with("edit /w/a\n@@ -297,7 +297,7 @@\n line 297\n"));
        assert_eq!(one.counts, [(1, 1)]);
        assert!(one.warnings.is_empty() && one.reasons == ["changes files in the folder"]);
        // The digest covers what the diff leaves out.
        let elsewhere = old.replace("line 9\n", "line IX\n");
        let other = edit(&elsewhere, elsewhere.replace("line 300\n", "line THREE\n"));
        assert_eq!(other.text, one.text);
        assert_ne!(other.subject_digest, one.subject_digest);
        // A very long diff is cut, with a warning.
        let cut = edit("", (0..200_000).map(|n| format!("{n}\n")).collect());
        assert!(cut.text.len() < diff::SHOWN_MAX + 200 && cut.text.contains("cut here"));
        assert!(
            cut.risk >= Risk::Elevated && cut.reasons.iter().any(|why| why.contains("too long")),
            "{:?}",
            cut.reasons
        );
    }

    #[test]
    fn display_tells_written_escapes_from_its_own() {
        assert_eq!(shown("a\u{1b}b").text, "a\\u{1b}b");
        assert_eq!(shown("a\\u{1b}b").text, "a\\u{5c}u{1b}b");
        assert_eq!(shown("C:\\users a\\b").text, "C:\\users a\\b", "no noise");
        let in_argv = |word: &str| {
            render(&RequestSubject::Command { argv: vec!["x".into(), word.into()], cwd: None }, W, false).text
        };
        assert_ne!(in_argv("\u{1b}"), in_argv("\\u{1b}"));
        assert_ne!(
            shown("edit /etc/hosts").text,
            render(&RequestSubject::Edits(vec![("/etc/hosts".into(), Some("a".into()), "a".into())]), W, false).text
        );
        let cwd = |line: &str, cwd: &str| {
            let cwd = Some(FolderClaim::Field(cwd.into()));
            render(&RequestSubject::Command { argv: vec![line.into()], cwd }, W, false).text
        };
        assert_ne!(shown("ls\nin /w").text, cwd("ls", "/w"));
        assert_ne!(cwd("ls", "/w\nin /x"), cwd("ls\nin /w", "/x"));
    }

    #[test]
    fn display_names_the_sessions_folder_and_every_contradiction() {
        let of = |cwd: Option<FolderClaim>, folders| {
            render(&RequestSubject::Command { argv: vec!["ls".into()], cwd }, folders, false)
        };
        let field = |path: &str| Some(FolderClaim::Field(path.into()));
        let words = |path: &str| Some(FolderClaim::Text(path.into()));
        for claim in [None, field("/w"), words("/w"), words("/w/")] {
            let same = of(claim, W);
            assert_eq!((same.text.as_str(), same.warnings.len(), same.risk), ("ls\nin /w", 0, Risk::Low));
        }
        let process = SessionFolders { process: Some("/p"), ..W };
        for (display, text, reason) in [
            (
                of(words("/p"), W),
                "ls\nin /w\nthe agent says: in /p",
                "the agent names another folder than the session's",
            ),
            (of(field("/p"), W), "ls\nin /p\nthe session's folder: /w", "runs outside the session's folder"),
            (
                of(None, process),
                "ls\nin /p\nthe session's folder: /w",
                "runs in the agent's own folder, not in the session's",
            ),
        ] {
            assert_eq!((display.text.as_str(), display.warnings.len(), display.risk), (text, 1, Risk::Elevated));
            assert!(display.reasons.iter().any(|why| why == reason), "{:?}", display.reasons);
        }
        let below = of(field("sub"), W);
        assert_eq!((below.text.as_str(), below.warnings.len(), below.risk), ("ls\nin /w/sub", 0, Risk::Low));
        // A person's own folder may have any name; an agent's may not deceive.
        let odd = SessionFolders { session: "/w\u{3000}", ..W };
        assert_eq!((of(None, odd).text.as_str(), of(None, odd).risk), ("ls\nin /w\\u{3000}", Risk::Low));
        assert_eq!(of(field("/w\u{3000}"), W).risk, Risk::Danger);
    }

    /// Generates any text of an agent; imitations of other displays are likely.
    fn odd() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            Just("\\".to_owned()),
            Just("u{1b}".into()),
            Just("\u{1b}".into()),
            Just("\n".into()),
            Just(" ".into()),
            Just("in /w".into()),
            Just("$ ".into()),
            Just("edit ".into()),
            Just("write ".into()),
            Just("argv[0] \"".into()),
            Just("\"".into()),
            Just("@@ -1,1 +1,1 @@".into()),
            Just("-a".into()),
            Just("+a".into()),
            Just("plan:".into()),
            Just("tool ".into()),
            Just("fetch ".into()),
            Just("cannot be read: ".into()),
            Just("\u{202e}".into()),
            Just("\r".into()),
            Just("a".into()),
            Just("=".into()),
            any::<char>().prop_map(|c| c.to_string()),
        ];
        proptest::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
    }

    fn claim() -> impl Strategy<Value = FolderClaim> {
        prop_oneof![odd().prop_map(FolderClaim::Field), odd().prop_map(FolderClaim::Text)]
    }

    fn subject() -> impl Strategy<Value = RequestSubject> {
        prop_oneof![
            (proptest::collection::vec(odd(), 1..4), proptest::option::of(claim()))
                .prop_map(|(argv, cwd)| RequestSubject::Command { argv, cwd }),
            (odd(), odd()).prop_map(|(path, new)| RequestSubject::Edits(vec![(path, None, new)])),
            (odd(), odd(), odd()).prop_map(|(path, new, other)| RequestSubject::Edits(vec![
                (path.clone(), Some(String::new()), new),
                (path, None, other)
            ])),
            (odd(), odd()).prop_map(|(url, more)| RequestSubject::Fetch { url, more }),
            (odd(), odd()).prop_map(|(name, arguments)| RequestSubject::Tool { name, arguments }),
            odd().prop_map(RequestSubject::Plan),
            odd().prop_map(|raw| RequestSubject::Unreadable { reason: "why", raw }),
        ]
    }

    /// A command as one line of plain words equals the same command as a list of words, and a folder equals its other spellings.
    fn normal(subject: RequestSubject) -> RequestSubject {
        let folder = action_folder(&subject, W);
        match subject {
            RequestSubject::Command { argv, .. } => {
                let cwd = Some(match folder.conflict {
                    Some(FolderConflict::Stated(stated)) => FolderClaim::Text(stated),
                    _ => FolderClaim::Field(folder.cwd),
                });
                let plain = |word: &str| {
                    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:@%+,".contains(&b))
                };
                match argv.as_slice() {
                    [line]
                        if line.split(' ').all(plain) && !line.split(' ').next().unwrap_or_default().contains('=') =>
                    {
                        RequestSubject::Command { argv: line.split(' ').map(Into::into).collect(), cwd }
                    }
                    _ => RequestSubject::Command { argv, cwd },
                }
            }
            subject => subject,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn display_differs_for_different_subjects(a in subject(), b in subject()) {
            let (a, b) = (normal(a), normal(b));
            let (x, y) = (render(&a, W, false), render(&b, W, false));
            prop_assert_eq!(x.text == y.text, a == b, "{:?} {:?}: {:?}", a, b, x.text);
            prop_assert!(!x.text.chars().any(|c| c != '\n' && c.is_control()));
        }

        #[test]
        fn display_differs_for_different_lines(a in odd(), b in odd()) {
            prop_assert_eq!(shown(&a).text == shown(&b).text, a == b);
        }
    }
}
