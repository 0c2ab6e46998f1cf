//! The house rules, checked on the source text. One file: each rule stands beside the plants that prove it bites.
//!
//! The table of crates below is the single source of which crate may import which. Every rule is a function from
//! (path, source text) to violations, so a test can plant a bad line without touching the tree.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

// ------------------------------------------------------------------------------------ the table

/// Each crate of the workspace, and the crates of the workspace that its manifest may name. A crate stands below those that may import it.
#[rustfmt::skip] // a crate a line
const CRATES: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("workspace", &[]),
    ("ledger", &[]),
    ("metrics", &["protocol"]),
    ("client", &["protocol"]),
    ("dialects", &["protocol"]),
    ("linked", &["protocol", "dialects"]),
    ("risk", &["protocol"]),
    ("store", &["protocol"]),
    ("surfaces", &["protocol"]),
    ("holder", &["protocol"]),
    ("terminal", &["protocol"]),
    // Clients like any other program outside the gateway.
    ("tui", &["protocol", "client", "surfaces"]),
    ("bridges", &["protocol", "client", "surfaces"]),
    ("auth", &["protocol", "store", "metrics"]),
    ("clock", &["protocol", "auth"]),
    ("sessions", &["protocol", "dialects", "risk", "store", "surfaces", "workspace", "auth", "clock", "metrics", "ledger"]),
    // The client notices a WebSocket that is dead.
    ("runtimes", &["protocol", "client", "dialects", "linked", "risk", "holder", "sessions", "metrics", "ledger"]),
    // No dialect, no runtime and no feature. terminal: the terminals of a page. workspace: its errors have codes.
    ("router", &["protocol", "risk", "store", "surfaces", "terminal", "workspace", "auth", "clock", "sessions", "metrics", "ledger"]),
    // Features, on the kernel that the router is. No feature imports another.
    ("notify", &["protocol", "risk", "store", "auth", "sessions", "metrics", "router"]),
    ("access", &["protocol", "risk", "auth", "sessions", "ledger", "router"]),
    ("web", &["router"]),
    ("agents", &["protocol", "risk", "workspace", "auth", "sessions", "router"]),
    ("views", &["protocol", "risk", "store", "terminal", "workspace", "auth", "sessions", "ledger", "router"]),
    ("operation", &["protocol", "risk", "auth", "clock", "sessions", "metrics", "ledger", "router"]),
    ("frontends", &["protocol", "risk", "store", "surfaces", "bridges", "auth", "sessions", "metrics", "ledger", "router"]),
];
/// The name of the crate in `src/`, the program, which may import every other crate.
const PROGRAM: &str = "plexus";
/// The folders of the program's Rust code.
const SOURCE: &[&str] = &["src", "crates"];
const PURE: &[&str] = &["protocol", "dialects", "linked", "risk", "surfaces"];
/// The part of a pure crate that does I/O: it edits the settings of agents.
const IMPURE: &str = "crates/linked/src/settings/";
/// Crates whose code runs on the async workers.
const ASYNC: &[&str] =
    &["sessions", "router", "runtimes", "access", "agents", "frontends", "notify", "operation", "views", "web"];

/// Paths that some crates must not name: (path, the crates where it is banned, why).
#[rustfmt::skip] // a rule a line
const BANNED: &[(&str, &[&str], &str)] = &[
    ("tokio", PURE, "pure crates do no I/O"),
    ("std::net", PURE, "pure crates do no I/O"),
    ("std::fs", PURE, "pure crates do no I/O"),
    ("std::process", PURE, "pure crates do no I/O"),
    ("std::thread", PURE, "pure crates do no I/O"),
    ("std::os", PURE, "pure crates do no I/O"),
    ("rusqlite", PURE, "pure crates do no I/O"),
    ("hyper", PURE, "pure crates do no I/O"),
    ("hyper_util", PURE, "pure crates do no I/O"),
    ("axum", PURE, "pure crates do no I/O"),
    ("reqwest", PURE, "pure crates do no I/O"),
    ("rustix", PURE, "pure crates do no I/O"),
    ("socket2", PURE, "pure crates do no I/O"),
    ("tokio_tungstenite", PURE, "pure crates do no I/O"),
    ("std::thread::sleep", ASYNC, "it blocks a worker; use tokio::time::sleep"),
    ("thread::sleep", ASYNC, "it blocks a worker; use tokio::time::sleep"),
    (
        "anyhow",
        &[
            "protocol", "metrics", "ledger", "clock", "client", "dialects", "holder", "linked", "store", "auth", "sessions", "runtimes", "router",
            "access", "agents", "frontends", "notify", "operation", "views", "web",
        ],
        "the library's errors are typed; anyhow is for the program alone",
    ),
];

/// The test binaries that have a folder. (This file is the only one without.)
const TEST_ROOTS: &[&str] = &["tests/gateway/main.rs", "tests/stories/main.rs", "tests/real/main.rs"];
const SHARED: &str = "#[path = \"../common/mod.rs\"]";

/// Lines of a file at most.
const LONG_FILE: usize = 900;
/// Lines of a function at most.
const LONG_FUNCTION: usize = 100;

fn may_import(name: &str) -> Option<&'static [&'static str]> {
    CRATES.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, may)| *may)
}

// ------------------------------------------------------------------------------------ the lexer

#[derive(Debug, Clone, PartialEq)]
struct Tok {
    line: usize,
    text: String,
    string: bool,
}

/// Splits Rust source into tokens and comments. Strings become one token that no rule mistakes for code;
/// raw identifiers lose their `r#`, so they cannot hide a name.
fn lex(text: &str) -> (Vec<Tok>, Vec<(usize, String)>) {
    let c: Vec<char> = text.chars().collect();
    let at = |i: usize| c.get(i).copied().unwrap_or('\0');
    let word = |ch: char| ch == '_' || ch.is_alphanumeric();
    let (mut toks, mut comments) = (Vec::new(), Vec::new());
    let (mut i, mut line) = (0, 1);
    while i < c.len() {
        let start = i;
        let first_line = line;
        let mut string: Option<String> = None;
        if at(i) == '/' && at(i + 1) == '/' {
            while i < c.len() && at(i) != '\n' {
                i += 1;
            }
            comments.push((line, c[start..i].iter().collect()));
        } else if at(i) == '/' && at(i + 1) == '*' {
            let mut depth = 0;
            loop {
                match (at(i), at(i + 1)) {
                    ('/', '*') => (depth, i) = (depth + 1, i + 2),
                    ('*', '/') => (depth, i) = (depth - 1, i + 2),
                    _ => i += 1,
                }
                if depth == 0 || i >= c.len() {
                    break;
                }
            }
            i = i.min(c.len());
            comments.push((line, c[start..i].iter().collect()));
        } else if at(i) == '"' {
            i = end_of_string(&c, i);
            string = Some(c[start + 1..(i - 1).max(start + 1)].iter().collect());
        } else if at(i) == '\'' {
            if at(i + 1) == '\\' {
                i += 3;
                while i < c.len() && at(i) != '\'' {
                    i += 1;
                }
                i += 1;
            } else if at(i + 2) == '\'' {
                i += 3;
            } else {
                i += 1; // a lifetime: its name
                while word(at(i)) {
                    i += 1;
                }
            }
        } else if word(at(i)) {
            while word(at(i)) {
                i += 1;
            }
            let ident: String = c[start..i].iter().collect();
            let mut hashes = 0;
            while at(i + hashes) == '#' {
                hashes += 1;
            }
            let raw = matches!(ident.as_str(), "r" | "br" | "cr");
            if raw && at(i + hashes) == '"' {
                let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                let body = i + hashes + 1;
                i = body;
                while i < c.len() && !c[i..].starts_with(&close) {
                    i += 1;
                }
                string = Some(c[body..i].iter().collect());
                i += close.len();
            } else if ident == "r" && hashes == 1 && word(at(i + 1)) {
                i += 1; // a raw identifier: the loop reads its name next
            } else if matches!(ident.as_str(), "b" | "c") && at(i) == '"' {
                let body = i + 1;
                i = end_of_string(&c, i);
                string = Some(c[body..(i - 1).max(body)].iter().collect());
            } else if ident == "b" && at(i) == '\'' {
                // The char rule reads it next.
            } else {
                toks.push(Tok { line, text: ident, string: false });
            }
        } else if at(i) == ':' && at(i + 1) == ':' {
            i += 2;
            toks.push(Tok { line, text: "::".into(), string: false });
        } else {
            if !at(i).is_whitespace() {
                toks.push(Tok { line, text: at(i).to_string(), string: false });
            }
            i += 1;
        }
        i = i.min(c.len());
        line += c[start..i].iter().filter(|ch| **ch == '\n').count();
        if let Some(text) = string {
            toks.push(Tok { line: first_line, text, string: true });
        }
    }
    (toks, comments)
}

/// The index after the closing quote of the plain string that opens at `i`.
fn end_of_string(c: &[char], mut i: usize) -> usize {
    i += 1;
    while i < c.len() && c[i] != '"' {
        i += if c[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(c.len())
}

// ------------------------------------------------------------------------------------ the paths in a file

#[derive(Debug)]
struct Named {
    line: usize,
    segs: Vec<String>,
    /// Inline modules around it, outermost first.
    inside: Vec<String>,
    /// A glob or a rename: what stands below the path is reachable without naming it.
    opens: bool,
}

struct Source {
    paths: Vec<Named>,
    /// `mod x;`: (inline modules around it, x)
    declared: Vec<(Vec<String>, String)>,
    /// Things wrong in themselves: (line, what).
    wrong: Vec<(usize, String)>,
}

fn read(toks: &[Tok]) -> Source {
    let mut out = Source { paths: Vec::new(), declared: Vec::new(), wrong: Vec::new() };
    let code = |i: usize| toks.get(i).filter(|t| !t.string).map_or("", |t| t.text.as_str());
    let ident = |i: usize| code(i).starts_with(|ch: char| ch == '_' || ch.is_alphabetic());
    let (mut inside, mut opened_at) = (Vec::<String>::new(), Vec::<usize>::new());
    let (mut depth, mut i) = (0usize, 0);
    while i < toks.len() {
        let line = toks[i].line;
        let before = if i == 0 { "" } else { code(i - 1) };
        match code(i) {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if opened_at.last() == Some(&depth) {
                    opened_at.pop();
                    inside.pop();
                }
            }
            "#" => attribute(toks, i, &inside, &mut out),
            "mod" if ident(i + 1) && code(i + 2) == ";" => {
                out.declared.push((inside.clone(), code(i + 1).to_string()));
            }
            "mod" if ident(i + 1) && code(i + 2) == "{" => {
                inside.push(code(i + 1).to_string());
                opened_at.push(depth);
            }
            "include" if code(i + 1) == "!" => {
                out.wrong.push((line, "include! hides source from this test; declare a module".into()));
            }
            word @ ("todo" | "unimplemented") if code(i + 1) == "!" => {
                out.wrong.push((line, format!("{word}! is unfinished work")));
            }
            "extern" if code(i + 1) == "crate" => {
                let name = if code(i + 2) == "self" { "crate" } else { code(i + 2) };
                out.paths.push(Named { line, segs: vec![name.to_string()], inside: inside.clone(), opens: true });
                i += 2;
            }
            "use" if code(i + 1) != "<" => {
                i += 1;
                use_tree(toks, &mut i, &[], &inside, &mut out.paths);
                continue; // at the `;`
            }
            // A path's head: not a later segment, not a method or a field.
            _ if ident(i) && before != "." && (before != "::" || i < 2 || !(ident(i - 2) || code(i - 2) == ">")) => {
                let mut segs = vec![code(i).to_string()];
                while code(i + 1) == "::" && ident(i + 2) {
                    segs.push(code(i + 2).to_string());
                    i += 2;
                }
                if segs.len() > 1 {
                    out.paths.push(Named { line, segs, inside: inside.clone(), opens: false });
                }
            }
            _ => {}
        }
        i += 1;
    }
    out
}

/// One tree of a `use` declaration; every leaf becomes a path.
fn use_tree(toks: &[Tok], i: &mut usize, prefix: &[String], inside: &[String], out: &mut Vec<Named>) {
    let code = |i: usize| toks.get(i).filter(|t| !t.string).map_or("", |t| t.text.as_str());
    let mut segs = prefix.to_vec();
    let leaf = |line, segs: Vec<String>, opens| Named { line, segs, inside: inside.to_vec(), opens };
    loop {
        let line = toks.get(*i).map_or(0, |t| t.line);
        match code(*i) {
            "::" | "$" => *i += 1,
            "*" if !segs.is_empty() => {
                *i += 1;
                return out.push(leaf(line, segs, true));
            }
            "{" => {
                *i += 1;
                while !matches!(code(*i), "}" | ";" | "") {
                    let was = *i;
                    use_tree(toks, i, &segs, inside, out);
                    if code(*i) == "," || *i == was {
                        *i += 1;
                    }
                }
                if code(*i) == "}" {
                    *i += 1;
                }
                return;
            }
            name if name.starts_with(|ch: char| ch == '_' || ch.is_alphabetic()) => {
                if name != "self" || segs.is_empty() {
                    segs.push(name.to_string());
                }
                *i += 1;
                if code(*i) == "::" {
                    continue;
                }
                let renamed = code(*i) == "as";
                if renamed {
                    *i += 2;
                }
                return out.push(leaf(line, segs, renamed));
            }
            _ => return,
        }
    }
}

/// Attributes can carry code in strings (serde's `with`) or move a module's file (`path`).
fn attribute(toks: &[Tok], at: usize, inside: &[String], out: &mut Source) {
    let code = |i: usize| toks.get(i).filter(|t| !t.string).map_or("", |t| t.text.as_str());
    let open = if code(at + 1) == "!" { at + 2 } else { at + 1 };
    if code(open) != "[" {
        return;
    }
    let (mut depth, mut end) = (0usize, open);
    while end < toks.len() {
        match code(end) {
            "[" => depth += 1,
            "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        end += 1;
    }
    let (line, head) = (toks[at].line, code(open + 1));
    let body = open + 1..end;
    let moves = |i: usize| code(i) == "path" && code(i + 1) == "=";
    if moves(open + 1) || head == "cfg_attr" && body.clone().any(moves) {
        out.wrong.push((line, "#[path] hides where a module's file is".into()));
    }
    if head == "ignore" || head == "cfg_attr" && body.clone().any(|i| code(i) == "ignore") {
        out.wrong.push((line, "an ignored test proves nothing".into()));
    }
    if head == "serde" || head == "cfg_attr" {
        for tok in body.filter_map(|i| toks.get(i)).filter(|t| t.string) {
            for mut named in read(&lex(&tok.text).0).paths {
                (named.line, named.inside) = (tok.line, inside.to_vec());
                out.paths.push(named);
            }
        }
    }
}

// ------------------------------------------------------------------------------------ the rules

/// The folder of the crate that a file belongs to, and the file's path in it: `crates/store/src/block.rs` ->
/// `("crates/store/src", "block.rs")`, `src/sessions/log.rs` -> `("src/sessions", "log.rs")`, `src/cli/run.rs` -> `("src", "cli/run.rs")`.
fn in_crate(path: &str) -> (&str, &str) {
    let own = |folder: &str| may_import(folder).is_some();
    let end = match path.split('/').collect::<Vec<_>>()[..] {
        ["src", folder, _, ..] if own(folder) => "src/".len() + folder.len(),
        _ => path.find("src/").map_or(0, |at| at + "src".len()),
    };
    (&path[..end], path[end..].trim_start_matches('/'))
}

/// The module of a file in its crate: `crates/dialects/src/acp/mod.rs` -> `["acp"]`; a crate root -> `[]`.
fn module_of(path: &str) -> Vec<String> {
    let inner = in_crate(path).1.trim_end_matches(".rs");
    let mut parts: Vec<String> = inner.split('/').map(str::to_string).collect();
    if parts.len() == 1 && matches!(inner, "lib" | "main") || parts.last().is_some_and(|p| p == "mod") {
        parts.pop();
    }
    parts
}

/// The crate of a file: `src/sessions/log.rs` -> `sessions`, `crates/store/src/block.rs` -> `store`, `src/cli/run.rs` -> [`PROGRAM`].
fn crate_of(path: &str) -> &str {
    match in_crate(path).0.split('/').collect::<Vec<_>>()[..] {
        ["crates", name, ..] | ["src", name] => name,
        _ => PROGRAM,
    }
}

/// The absolute path, within the crate, that a path in a file names; `None` for another crate's.
fn absolute(path: &str, named: &Named) -> Option<Vec<String>> {
    let mut absolute = match named.segs[0].as_str() {
        "crate" => Vec::new(),
        "self" | "super" => [module_of(path), named.inside.clone()].concat(),
        _ => return None,
    };
    for seg in &named.segs {
        match seg.as_str() {
            "crate" | "self" => {}
            "super" => drop(absolute.pop()),
            _ => absolute.push(seg.clone()),
        }
    }
    Some(absolute)
}

fn names(named: &Named, banned: &str) -> bool {
    let banned: Vec<&str> = banned.split("::").collect();
    let common = named.segs.iter().zip(&banned).take_while(|(a, b)| a == b).count();
    common == banned.len() || named.opens && common == named.segs.len()
}

/// The rules for one source file of the program: bans, and the rules of every Rust file.
fn violations(path: &str, text: &str) -> Vec<String> {
    let own = crate_of(path);
    let mut out = unfinished(path, text);
    for named in read(&lex(text).0).paths {
        for (banned, crates, why) in BANNED {
            let is_exempt = *crates == PURE && path.starts_with(IMPURE);
            if crates.contains(&own) && !is_exempt && names(&named, banned) {
                let (line, full) = (named.line, named.segs.join("::"));
                out.push(format!("{path}:{line}: {own} may not name `{banned}` (`{full}`): {why}"));
            }
        }
    }
    out.extend(named_agents(path, text));
    out
}

/// Agents that speak ACP, as words of the program. What is special about one stands in the dialect's `quirks.rs`.
const AGENTS: &[&str] = &["gemini", "qwen", "opencode", "codex", "claude", "vibe", "kimi", "copilot", "goose"];

/// Strings of the ACP dialect that name an agent, but in its quirks and tests.
fn named_agents(path: &str, text: &str) -> Vec<String> {
    let file = path.strip_prefix("crates/dialects/src/acp/");
    if file.is_none_or(|file| file == "quirks.rs" || file.ends_with("tests.rs")) {
        return Vec::new();
    }
    let strings = lex(text).0.into_iter().filter(|tok| tok.string);
    let named = strings.filter_map(|tok| {
        let agent = AGENTS.iter().find(|agent| tok.text.to_lowercase().contains(*agent))?;
        Some(format!("{path}:{}: {agent} is one agent: what is special about it stands in quirks.rs", tok.line))
    });
    named.collect()
}

/// The rules of every Rust file: nothing unfinished, nothing hidden.
fn unfinished(path: &str, text: &str) -> Vec<String> {
    let (toks, comments) = lex(text);
    // The test binaries share `tests/common`, and say so in the same words.
    let shared = |line: usize| TEST_ROOTS.contains(&path) && text.lines().nth(line - 1) == Some(SHARED);
    let wrong = read(&toks).wrong.into_iter().filter(|(line, _)| !shared(*line));
    let mut out: Vec<String> = wrong.map(|(line, what)| format!("{path}:{line}: {what}")).collect();
    for (line, comment) in comments {
        let mut words = comment.split(|ch: char| !ch.is_alphanumeric());
        if let Some(word) = words.find(|w| matches!(*w, "FIXME" | "TODO" | "XXX")) {
            out.push(format!("{path}:{line}: {word}: finish it, or write down why not"));
        }
    }
    out
}

/// Identifiers that meant something in this project alone. docs/glossary.md has the words that took their place.
const OLD_WORDS: &[&str] = &[
    "Adopted",
    "Asker",
    "Birth",
    "Books",
    "Chore",
    "Death",
    "Errands",
    "Inlet",
    "Landed",
    "Lane",
    "Letter",
    "Looker",
    "Lookers",
    "NoOrders",
    "Parked",
    "Tally",
    "Teller",
    "TranscriptEntry",
    "TranscriptHead",
    "TranscriptMasks",
    "Undone",
    "Upto",
    "Wish",
    "buried",
    "bury",
    "errands",
    "lanes",
    "lend",
    "seat",
    "seats",
    "unlucky",
    "wished",
];
/// The same, for the files of `crates/`.
#[rustfmt::skip]
const OLD_WORDS_OF_CRATES: &[&str] = &[
    "Bridging", "Guest", "Lent", "Said", "Talk", "Told", "Want", "aim", "aside", "away", "deaf", "desk", "doomed",
    "door", "dying", "family", "fate", "gated", "guests", "keeper", "lent", "nap", "nudge", "obey", "pasts", "reach",
    "sought", "strike", "talk", "teller", "tend", "unlooked", "untallied", "upto", "wrote",
];

/// Words that no part of an identifier is, outside of tests: spoken or figurative ones, for which there is a plain one.
#[rustfmt::skip]
const ODD_PARTS: &[&str] = &[
    "conduct", "desk", "fine", "goes", "looked", "mine", "nobody", "placed", "placer", "remark", "says", "somebody", "spot", "stretch",
    "telling", "tells", "thing", "things", "untold", "whoever",
];

/// Identifiers of a file, without its tests, with an odd part.
fn odd_parts(path: &str, text: &str) -> Vec<String> {
    if path.contains("/tests/") || path.ends_with("tests.rs") || path.ends_with("/rig.rs") {
        return Vec::new();
    }
    let code = text.split("\nmod tests {").next().unwrap_or_default();
    let mut odd = Vec::new();
    for tok in lex(code).0.iter().filter(|tok| !tok.string) {
        let mut snake = String::new();
        for ch in tok.text.chars() {
            if ch.is_uppercase() && snake.ends_with(char::is_lowercase) {
                snake.push('_');
            }
            snake.push(ch);
        }
        if let Some(part) = snake.to_lowercase().split('_').find(|part| ODD_PARTS.contains(part)) {
            odd.push(format!("{path}:{}: `{}`: use a plain word for `{part}`", tok.line, tok.text));
        }
    }
    odd
}

/// Identifiers of a file that are no words of this project any more.
fn old_words(path: &str, text: &str) -> Vec<String> {
    let toks = lex(text).0;
    let is_old =
        |word: &str| OLD_WORDS.contains(&word) || path.starts_with("crates/") && OLD_WORDS_OF_CRATES.contains(&word);
    let old = toks.iter().filter(|tok| !tok.string && is_old(&tok.text));
    old.map(|tok| format!("{path}:{}: `{}`: docs/glossary.md has the word for it", tok.line, tok.text)).collect()
}

/// Doc comments that begin with a question word or a pronoun, and their paragraphs that begin with a pronoun: the first word is a noun, or
/// a verb in the third person. The doc comments of commands are the text of `--help`, and not checked.
fn first_words(path: &str, text: &str) -> Vec<String> {
    const NO_SUBJECT: &[&str] = &[
        "He", "How", "It", "Its", "She", "Them", "They", "Those", "What", "Whether", "When", "Where", "Which", "Who",
        "Whose", "Why",
    ];
    const PRONOUNS: &[&str] = &["He", "It", "Its", "She", "Them", "They", "Those"];
    if path.starts_with("src/cli/commands/") {
        return Vec::new();
    }
    let docs =
        |line: &str| line.trim_start().strip_prefix("///").or(line.trim_start().strip_prefix("//!")).map(str::to_owned);
    // The words that may not begin the next line of documentation.
    let mut refused = NO_SUBJECT;
    let mut out = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let doc = docs(line);
        if let Some(doc) = doc.as_deref() {
            let word = doc.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
            if doc.trim_start().starts_with(word) && refused.contains(&word) {
                out.push(format!("{path}:{}: a doc comment begins with `{word}`: begin with a noun or a verb", at + 1));
            }
        }
        refused = match doc.as_deref().map(str::trim) {
            None => NO_SUBJECT,
            Some(doc) if doc.is_empty() || doc.starts_with("# ") => PRONOUNS,
            Some(_) => &[],
        };
    }
    out
}

/// Characters of a test's name at most.
const LONG_TEST_NAME: usize = 70;

/// Names of tests that are too long, or whose first word is not the subject: a filter by subject would not find them.
fn test_names(path: &str, text: &str) -> Vec<String> {
    #[rustfmt::skip] // a table
    const NO_SUBJECT: &[&str] = &[
        "a", "after", "all", "an", "and", "any", "at", "before", "both", "but", "by", "each", "every", "everybody",
        "everything", "for", "from", "he", "here", "how", "if", "in", "it", "its", "many", "no", "nobody", "none",
        "nothing", "of", "on", "once", "one", "only", "or", "over", "she", "some", "somebody", "that", "the", "their",
        "there", "these", "they", "this", "those", "to", "until", "what", "whatever", "when", "where", "whether",
        "which", "while", "who", "whoever", "whose", "why", "with", "without",
    ];
    let toks: Vec<Tok> = lex(text).0;
    let code = |at: usize| toks.get(at).filter(|tok| !tok.string).map_or("", |tok| tok.text.as_str());
    let marks = |at: &usize| {
        let path = if code(at + 2) == "tokio" && code(at + 3) == "::" { at + 4 } else { at + 2 };
        code(*at) == "#" && code(at + 1) == "[" && code(path) == "test" && ["]", "("].contains(&code(path + 1))
    };
    let mut out = Vec::new();
    for at in (0..toks.len()).filter(marks) {
        let Some(name) = (at..toks.len()).find(|at| code(*at) == "fn").and_then(|at| toks.get(at + 1)) else {
            continue;
        };
        let first = name.text.split('_').next().unwrap_or_default();
        let place = format!("{path}:{}: `{}`", name.line, name.text);
        if name.text.len() > LONG_TEST_NAME {
            out.push(format!("{place} has {} characters, and {LONG_TEST_NAME} are the most", name.text.len()));
        }
        if NO_SUBJECT.contains(&first) {
            out.push(format!("{place} begins with `{first}`: begin with the subject of the test"));
        }
    }
    out
}

/// Names that more than one public type of `src/` has.
fn types_twice(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in files {
        for words in lex(text).0.windows(3) {
            let [public, kind, name] = [&words[0], &words[1], &words[2]];
            if public.text == "pub" && ["struct", "enum", "trait", "type", "union"].contains(&kind.text.as_str()) {
                // An associated type or one in a function has spaces before it.
                if text.lines().nth(public.line - 1).is_some_and(|line| line.starts_with("pub ")) {
                    places.entry(name.text.clone()).or_default().push(format!("{path}:{}", name.line));
                }
            }
        }
    }
    let twice = places.into_iter().filter(|(_, places)| places.len() > 1);
    twice.map(|(name, places)| format!("`{name}` is more than one type: {}", places.join(", "))).collect()
}

/// A file of the program that is long is a table, and its first line says so. Tests may be long, and say why in their first line
/// (after `#!` or a doctype).
fn too_long(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    let first = text.lines().find(|l| !l.starts_with("#!/") && !l.to_lowercase().starts_with("<!doctype"))?;
    let comment = ["//", "/*", "#", "<!--"].iter().any(|open| first.trim_start().starts_with(open));
    let tests = path.starts_with("tests/") || path.ends_with("tests.rs") || path.ends_with("/contract.rs");
    let word = if tests { "one" } else { "table" };
    let says = first.split(|ch: char| !ch.is_alphanumeric()).any(|w| w.eq_ignore_ascii_case(word));
    (lines > LONG_FILE && !(comment && says))
        .then(|| format!("{path}: {lines} lines, and {LONG_FILE} are the most: split it by subject"))
}

/// Functions that are too long, but for tests.
fn long_functions(path: &str, text: &str) -> Vec<String> {
    if path.ends_with("tests.rs") || path.ends_with("/contract.rs") {
        return Vec::new();
    }
    let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines: Vec<&str> = program.lines().collect();
    let mut out = Vec::new();
    // The code is formatted: a function ends with a brace that stands as far in as its beginning.
    for (from, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        let mut words = code.split_whitespace();
        let before = |word: &&str| word.starts_with("pub") || word.ends_with(")") || ["const", "async"].contains(word);
        let Some("fn") = words.by_ref().find(|word| !before(word)) else { continue };
        let ends = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| rest == "}");
        let length = lines[from..].iter().position(ends).map_or(0, |at| at + 1);
        if length > LONG_FUNCTION {
            let name = words.next().unwrap_or_default().split('(').next().unwrap_or_default();
            out.push(format!("{path}:{}: `{name}` has {length} lines, and {LONG_FUNCTION} are the most", from + 1));
        }
    }
    out
}

/// Files that no `mod` declaration reaches from the roots of their crate.
fn unreached(files: &BTreeMap<String, String>) -> Vec<String> {
    let root = |path: &&String| matches!(in_crate(path).1, "lib.rs" | "main.rs");
    let mut todo: Vec<String> = files.keys().filter(root).cloned().collect();
    let mut seen: BTreeSet<String> = todo.iter().cloned().collect();
    while let Some(file) = todo.pop() {
        let mut dir = vec![in_crate(&file).0.to_string()];
        dir.extend(module_of(&file));
        for (inside, name) in read(&lex(&files[&file]).0).declared {
            let stem = [dir.clone(), inside, vec![name]].concat().join("/");
            for next in [format!("{stem}.rs"), format!("{stem}/mod.rs")] {
                if files.contains_key(&next) && seen.insert(next.clone()) {
                    todo.push(next);
                }
            }
        }
    }
    files.keys().filter(|f| !seen.contains(*f)).map(|f| format!("{f}: no `mod` declaration reaches it")).collect()
}

/// A folder of modules: the folder of its crate, and its module path there.
type ModuleFolder<'a> = (&'a str, Vec<String>);

/// The modules of each folder that import each other in a circle, with the folder's path. The folder's own root, which joins its modules,
/// is left out, and so are tests; a name that the root re-exports counts as the module's that has it.
fn circles(files: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let sources: Vec<(&String, Source)> = files
        .iter()
        .filter(|(path, _)| !path.ends_with("tests.rs") && !path.contains("/tests/"))
        .map(|(path, text)| (path, read(&lex(text).0)))
        .collect();
    // (crate, module) -> name in it -> the child module that has the name
    let mut reexported: BTreeMap<ModuleFolder<'_>, BTreeMap<String, String>> = BTreeMap::new();
    let mut children: BTreeMap<ModuleFolder<'_>, BTreeSet<String>> = BTreeMap::new();
    for (path, source) in &sources {
        let module = (in_crate(path).0, module_of(path));
        let own: BTreeSet<String> = source.declared.iter().map(|(_, name)| name.clone()).collect();
        let names = reexported.entry(module.clone()).or_default();
        for named in source.paths.iter().filter(|named| named.inside.is_empty()) {
            let segs: Vec<&String> = named.segs.iter().skip_while(|seg| *seg == "self").collect();
            if let [child, .., name] = segs[..]
                && own.contains(child)
            {
                names.insert(name.clone(), child.clone());
            }
        }
        children.insert(module, own);
    }
    // (crate, folder) -> module -> modules that it imports
    let mut uses: BTreeMap<ModuleFolder<'_>, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (path, source) in &sources {
        let (root, own) = (in_crate(path).0, module_of(path));
        for named in source.paths.iter().filter(|named| !named.inside.iter().any(|module| module == "tests")) {
            let Some(mut target) = absolute(path, named) else { continue };
            for depth in 0..target.len() {
                let folder = (root, target[..depth].to_vec());
                if children.get(&folder).is_some_and(|children| !children.contains(&target[depth]))
                    && let Some(child) = reexported.get(&folder).and_then(|names| names.get(&target[depth]))
                {
                    target.insert(depth, child.clone());
                }
            }
            let common = own.iter().zip(&target).take_while(|(a, b)| a == b).count();
            let folder = (root, own[..common].to_vec());
            if let (Some(from), Some(to)) = (own.get(common), target.get(common))
                && children.get(&folder).is_some_and(|children| children.contains(to))
            {
                uses.entry(folder).or_default().entry(from.clone()).or_default().insert(to.clone());
            }
        }
    }
    uses.into_iter()
        .flat_map(|((root, folder), uses)| in_circles([vec![root.to_string()], folder].concat(), uses))
        .collect()
}

/// The lines of [`circles`] for one folder.
fn in_circles(folder: Vec<String>, mut uses: BTreeMap<String, BTreeSet<String>>) -> Vec<(String, String)> {
    // A module that imports none of those left stands in no circle; neither does one that none of them imports.
    loop {
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        uses.values_mut().for_each(|used| used.retain(|module| left.contains(module)));
        let imported: BTreeSet<String> = uses.values().flatten().cloned().collect();
        uses.retain(|module, used| !used.is_empty() && imported.contains(module));
        if uses.len() == left.len() {
            let folder = folder.join("/");
            return uses
                .iter()
                .map(|(module, used)| (folder.clone(), format!("{folder}: {module} imports {used:?}")))
                .collect();
        }
    }
}

/// Test files that are in no binary: a file without its `mod` in `main.rs` would never run.
fn not_run(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut run: BTreeSet<String> = ["tests/tidy.rs".to_string()].into();
    for root in TEST_ROOTS.iter().chain(&["tests/common/mod.rs"]).filter(|root| files.contains_key(**root)) {
        let dir = &root[..=root.rfind('/').unwrap_or(0)];
        run.insert((*root).to_string());
        run.extend(read(&lex(&files[*root]).0).declared.into_iter().map(|(_, name)| format!("{dir}{name}.rs")));
    }
    files.keys().filter(|f| !run.contains(*f)).map(|f| format!("{f}: no test binary declares it")).collect()
}

// ------------------------------------------------------------------------------------ the tree

fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(name.as_str(), "node_modules" | "target" | "dist") {
            walk(&path, out);
        } else if path.is_file() {
            out.push(path);
        }
    }
}

/// Path from the package's root -> text, of the files under `dirs` that end in one of `exts` ("" is no extension).
fn tree(dirs: &[&str], exts: &[&str]) -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    dirs.iter().for_each(|dir| walk(&root.join(dir), &mut files));
    let wanted = |p: &PathBuf| exts.contains(&p.extension().map_or("", |e| e.to_str().unwrap_or("?")));
    files
        .into_iter()
        .filter(wanted)
        .map(|p| {
            let name = p.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            (name, String::from_utf8_lossy(&std::fs::read(&p).unwrap()).into_owned())
        })
        .collect()
}

fn none(what: Vec<String>) {
    assert!(what.is_empty(), "\n{}\n", what.join("\n"));
}

#[test]
fn source_names_nothing_that_is_banned() {
    let files = tree(SOURCE, &["rs"]);
    assert!(files.contains_key("src/lib.rs") && files.contains_key("src/main.rs"), "the walk found no source");
    none(files.iter().flat_map(|(path, text)| violations(path, text)).collect());
}

#[test]
fn names_are_standard_and_public_types_unique() {
    let files = tree(SOURCE, &["rs"]);
    none(files.iter().flat_map(|(path, text)| old_words(path, text)).collect());
    none(files.iter().flat_map(|(path, text)| odd_parts(path, text)).collect());
    none(files.iter().flat_map(|(path, text)| first_words(path, text)).collect());
    none(types_twice(&files));
}

#[test]
fn planted_old_words_and_first_words_are_found() {
    let old = "struct Inlet; // Birth\nfn f(birth: u8) { let s = \"Upto\"; bury() }";
    assert_eq!(old_words("src/x.rs", old).len(), 2);
    let odd = "struct RunConduct;\nfn f(told: u8) { no_untold(\"desk\") }\n#[cfg(test)]\nmod tests { fn desk() {} }";
    assert_eq!(
        odd_parts("src/x.rs", odd),
        [
            "src/x.rs:1: `RunConduct`: use a plain word for `conduct`",
            "src/x.rs:2: `no_untold`: use a plain word for `untold`",
        ]
    );
    assert_eq!(odd_parts("src/x_tests.rs", odd), Vec::<String>::new());
    let of_crates = "fn obey() { let sought = \"talk\"; }";
    assert_eq!(old_words("crates/store/src/x.rs", of_crates).len(), 2);
    assert_eq!(old_words("src/x.rs", of_crates).len(), 0);
    let docs =
        "/// Why.\nx\n    /// They.\ny\n/// The cause.\n/// What it was.\n// What.\n//! It runs.\n/// Whatever.\n";
    assert_eq!(
        first_words("src/x.rs", docs),
        [
            "src/x.rs:1: a doc comment begins with `Why`: begin with a noun or a verb",
            "src/x.rs:3: a doc comment begins with `They`: begin with a noun or a verb",
            "src/x.rs:8: a doc comment begins with `It`: begin with a noun or a verb",
        ]
    );
    assert_eq!(first_words("src/cli/commands/x.rs", docs), Vec::<String>::new());
    let paragraphs = "/// The cause.\n/// They are one sentence.\n///\n/// When it ends.\n///\n/// They end.\n/// # Errors\n/// It has none.\n";
    let begins =
        |line, word| format!("src/x.rs:{line}: a doc comment begins with `{word}`: begin with a noun or a verb");
    assert_eq!(first_words("src/x.rs", paragraphs), [begins(6, "They"), begins(8, "It")]);
    let files = [
        ("src/a.rs", "pub struct Page; struct Own; mod inner { }\npub enum Kind { A }"),
        ("src/b.rs", "struct Own;\npub(super) struct Page;\nimpl T for U {\n    type Page = u8;\n}\n"),
        ("src/c.rs", "pub trait Kind {}"),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    assert_eq!(types_twice(&files), ["`Kind` is more than one type: src/a.rs:2, src/c.rs:1"]);
}

#[test]
fn test_names_are_short_and_begin_with_their_subject() {
    let files = tree(&["src", "crates", "tests"], &["rs"]);
    none(files.iter().flat_map(|(path, text)| test_names(path, text)).collect());
    let planted = "#[test]\nfn the_log() {}\n#[tokio::test(flavor = \"x\")]\n#[cfg(unix)]\nasync fn log_is_read() {}\nfn what() {}";
    assert_eq!(
        test_names("src/a.rs", planted),
        ["src/a.rs:2: `the_log` begins with `the`: begin with the subject of the test"]
    );
    let long = format!("proptest! {{ #[test] fn log_{}(a in 0..9) {{}} }}", "x".repeat(LONG_TEST_NAME));
    assert_eq!(
        test_names("src/a.rs", &long),
        [format!("src/a.rs:1: `log_{}` has 74 characters, and 70 are the most", "x".repeat(70))]
    );
}

#[test]
fn source_files_are_all_declared() {
    none(unreached(&tree(SOURCE, &["rs"])));
}

#[test]
fn modules_of_a_folder_import_in_no_circle() {
    none(circles(&tree(SOURCE, &["rs"])).into_iter().map(|(_, line)| line).collect());
    let planted = [
        ("src/router/lib.rs", "mod a; mod b; mod c; pub use a::A; use b::B;"),
        ("src/router/a.rs", "use super::b::B; mod tests { use super::super::c::C; }"),
        ("src/router/b.rs", "mod inner;"),
        ("src/router/b/inner.rs", "fn f() { crate::c::g() }"),
        ("src/router/c.rs", "use super::AppState; // use super::a::A;"),
    ];
    let mut files: BTreeMap<String, String> = planted.map(|(a, b)| (a.to_string(), b.to_string())).into();
    assert_eq!(circles(&files), []);
    for circle in ["use super::{AppState, a::{self, A}};", "use crate::A;"] {
        files.insert("src/router/c.rs".into(), circle.into());
        assert_eq!(circles(&files).len(), 3, "{circle}");
    }
}

/// The tests that docs/seeds.md names and that do not exist, and its rows without a test.
fn unproven(seeds: &str, files: &BTreeMap<String, String>) -> Vec<String> {
    let functions: BTreeSet<&str> = files
        .iter()
        .filter(|(path, _)| path.ends_with(".rs"))
        .flat_map(|(_, text)| text.split("fn ").skip(1))
        .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default())
        .collect();
    let module = |name: &str| {
        files.keys().any(|path| path.ends_with(&format!("/{name}.rs")) || path.contains(&format!("/{name}/")))
    };
    let mut out = Vec::new();
    for (n, line) in seeds.lines().enumerate() {
        let proofs = line.strip_prefix('|').map_or(line, |row| row.split_once('|').map_or("", |(_, proofs)| proofs));
        if line.starts_with('|') && proofs.split('|').any(|cell| cell.trim() == "open") {
            out.push(format!("docs/seeds.md:{}: a row is open", n + 1));
        }
        for name in proofs.split('`').skip(1).step_by(2) {
            let test =
                name.contains("::") || ["codelia_", "story_", "front_", "web_"].iter().any(|of| name.starts_with(of));
            let path = name.strip_suffix("::tests").unwrap_or(name);
            let last = path.rsplit("::").next().unwrap_or(path);
            if test && !functions.contains(last) && !module(last) {
                out.push(format!("docs/seeds.md:{}: there is no test `{name}`", n + 1));
            }
        }
    }
    out
}

#[test]
fn seeds_name_tests_that_exist() {
    let files = tree(&["src", "crates", "tests"], &["rs"]);
    let seeds = tree(&["docs"], &["md"]).remove("docs/seeds.md").unwrap();
    assert!(seeds.lines().filter(|line| line.starts_with('|')).count() > 40, "the table was not found");
    none(unproven(&seeds, &files));
    let planted =
        "| `a::nothing` first | `front_ws::ws_is_nowhere`, `front_ws` |\n| x | open |\n| y | `story_of::no_test` |";
    assert_eq!(
        unproven(planted, &files),
        [
            "docs/seeds.md:1: there is no test `front_ws::ws_is_nowhere`",
            "docs/seeds.md:2: a row is open",
            "docs/seeds.md:3: there is no test `story_of::no_test`",
        ]
    );
}

#[test]
fn test_files_are_all_run() {
    let mut files = tree(&["tests"], &["rs"]);
    // A client with a workspace of its own.
    files.retain(|path, _| !path.starts_with("tests/clients/"));
    assert!(files.len() > 50, "the walk found the tests: {}", files.len());
    none(not_run(&files));
}

#[test]
fn unfinished_work_is_nowhere() {
    let files = tree(&["tests", "benches", "fuzz"], &["rs"]);
    assert!(files.contains_key("tests/tidy.rs"), "the walk found no tests");
    // The fuzz targets are a workspace of their own; their bench is the tests', which only a path can say.
    let files = files.iter().filter(|(path, _)| *path != "fuzz/src/lib.rs");
    none(files.flat_map(|(path, text)| unfinished(path, text)).collect());
}

#[test]
fn files_that_are_long_say_why() {
    let exts = ["rs", "js", "mjs", "ts", "css", "html", "sh", "py", ""];
    let files = tree(&["src", "crates", "tests", "benches", "fuzz", "web", "scripts"], &exts);
    none(files.iter().filter_map(|(path, text)| too_long(path, text)).collect());
}

#[test]
fn functions_are_short() {
    none(tree(SOURCE, &["rs"]).iter().flat_map(|(path, text)| long_functions(path, text)).collect());
    let body = "    x();\n".repeat(LONG_FUNCTION - 1);
    let long = format!("impl X {{\n    pub(crate) async fn f(&self) {{\n    {{\n    {body}    }}\n    }}\n}}\n");
    assert_eq!(
        long_functions("src/a.rs", &format!("fn f() {{\n{body}}}\n")),
        ["src/a.rs:1: `f` has 101 lines, and 100 are the most"]
    );
    assert_eq!(long_functions("src/a.rs", &long.replace("    {\n", "")).len(), 1);
    assert_eq!(long_functions("src/tests.rs", &format!("fn f() {{\n{body}}}\n")), Vec::<String>::new());
    assert_eq!(long_functions("src/a.rs", "fn f() {\n}\nfn g() {\n}\n"), Vec::<String>::new());
}

// ------------------------------------------------------------------------------------ the table is what it says

#[test]
fn crates_table_has_no_cycle_and_forbidden_pairs() {
    let mut below = BTreeSet::new();
    for (name, may) in CRATES {
        for other in *may {
            assert!(below.contains(other), "{name} imports {other}, which does not stand above it in the table");
        }
        below.insert(*name);
    }
    let may = |a: &str, b: &str| may_import(a).unwrap().contains(&b);
    assert!(!may("router", "runtimes") && !may("runtimes", "router") && !may("router", "dialects"));
    assert!(may_import("protocol").unwrap().is_empty());
}

/// The `[dependencies]` of each crate's manifest are what the table allows, and its lints are the workspace's.
#[test]
fn crates_depend_on_what_the_table_allows() {
    let manifests = tree(SOURCE, &["toml"]);
    assert_eq!(
        manifests.len(),
        CRATES.len(),
        "a crate without a row, or a row without a crate: {:?}",
        manifests.keys()
    );
    for (path, text) in manifests {
        let name = path.split('/').nth(1).unwrap();
        let (used, rest) = text.split_once("[dependencies]").unwrap().1.split_once("\n[").unwrap();
        let used: Vec<&str> = used.lines().filter_map(|line| line.strip_prefix("plexus-")?.split('.').next()).collect();
        let may = may_import(name).unwrap_or_else(|| panic!("{path}: `{name}` is not in the table of crates"));
        assert!(used.iter().all(|name| may.contains(name)), "{path}: {used:?}, and the table allows {may:?}");
        assert!(rest.ends_with("lints]\nworkspace = true\n"), "{path}: the lints are the workspace's");
    }
}

/// The lines of a file on which a Rust example begins, in its documentation.
fn examples(text: &str) -> Vec<usize> {
    let (mut inside, mut found) = (false, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let Some(fence) =
            line.trim_start().strip_prefix("//").and_then(|doc| doc[1..].trim_start().strip_prefix("```"))
        else {
            continue;
        };
        inside = !inside;
        if inside && !["text", "json", "sh"].contains(&fence) {
            found.push(number + 1);
        }
    }
    found
}

/// A crate whose examples are not run, because it says `doctest = false`, has none.
#[test]
fn crates_with_examples_run_them() {
    assert_eq!(examples("/// ```text\n/// a\n/// ```\n//! ```\n//! f()\n//! ```\n    /// ```no_run\n"), [4, 7]);
    let manifests = tree(SOURCE, &["toml"]);
    let silent = |path: &str| {
        let crate_of = |(manifest, text): (&String, &String)| {
            let folder = manifest.trim_end_matches("Cargo.toml");
            path.starts_with(folder).then(|| text.contains("doctest = false"))
        };
        manifests.iter().find_map(crate_of).unwrap_or(true)
    };
    let files = tree(SOURCE, &["rs"]);
    none(
        files
            .iter()
            .filter(|(path, _)| silent(path))
            .flat_map(|(path, text)| {
                examples(text)
                    .into_iter()
                    .map(move |line| format!("{path}:{line}: an example that `doctest = false` leaves out"))
            })
            .collect(),
    );
}

// ------------------------------------------------------------------------------------ plants

#[test]
#[rustfmt::skip] // a plant a line
fn planted_names_are_found() {
    for (path, text, found) in [
        ("crates/protocol/src/event.rs", "use tokio::sync::mpsc;", "protocol may not name `tokio`"),
        ("crates/protocol/src/event.rs", "async fn f() { tokio::time::sleep(d).await }", "protocol may not name `tokio`"),
        ("crates/protocol/src/event.rs", "#[tokio::test] async fn t() {}", "protocol may not name `tokio`"),
        ("crates/protocol/src/event.rs", "extern crate tokio as t;", "protocol may not name `tokio`"),
        ("crates/protocol/src/event.rs", "use std::{fmt, fs::File};", "protocol may not name `std::fs`"),
        ("crates/protocol/src/event.rs", "use std::{self as s};", "protocol may not name `std::fs`"),
        ("crates/protocol/src/event.rs", "use std::*;", "protocol may not name `std::net`"),
        ("crates/protocol/src/event.rs", "let a: std::net::IpAddr = x;", "protocol may not name `std::net`"),
        ("crates/dialects/src/acp.rs", "::std::process::exit(1)", "dialects may not name `std::process`"),
        ("crates/dialects/src/acp.rs", "use std::thread;", "dialects may not name `std::thread`"),
        ("crates/dialects/src/acp.rs", "use rusqlite::Connection;", "dialects may not name `rusqlite`"),
        ("crates/dialects/src/acp.rs", "fn f(b: hyper::body::Incoming) {}", "dialects may not name `hyper`"),
        ("crates/linked/src/qwen/terminal.rs", "use std::fs;", "linked may not name `std::fs`"),
        ("crates/linked/src/settings/files.rs", "use anyhow::Context;", "linked may not name `anyhow`"),
        ("crates/store/src/lib.rs", "fn f() -> anyhow::Result<()> {}", "store may not name `anyhow`"),
        ("src/router/lib.rs", "#![forbid(unsafe_code)] use anyhow::Context;", "router may not name `anyhow`"),
        ("src/sessions/task.rs", "use std::thread; fn f() { thread::sleep(d) }", "sessions may not name `thread::sleep`"),
        ("src/router/ws.rs", "std::thread::sleep(d)", "router may not name `std::thread::sleep`"),
        ("crates/dialects/src/acp/open.rs", "fn f() { a.starts_with(\"Gemini\") }", "gemini is one agent"),
        ("crates/store/src/lib.rs", "fn f() { todo!() }", "todo! is unfinished"),
        ("crates/store/src/lib.rs", "fn f() { unimplemented ! (\"x\") }", "unimplemented! is unfinished"),
        ("crates/store/src/lib.rs", "/* FIXME: later */", "FIXME: finish it"),
        ("crates/store/src/lib.rs", "#[test] #[ignore = \"slow\"] fn t() {}", "ignored test"),
    ] {
        let all = violations(path, text);
        assert!(
            all.iter().any(|v| v.contains(found)),
            "{path}: {text}\nwanted `{found}`, got {all:?}"
        );
    }
}

#[test]
#[rustfmt::skip] // a plant a line
fn names_that_only_look_banned_stay_allowed() {
    for (path, text) in [
        ("crates/linked/src/settings/files.rs", "use std::fs;"),
        ("src/sessions/task.rs", "use crate::{log, requests}; use plexus_protocol::*; pub(in crate::state) fn f() {}"),
        ("crates/protocol/src/event.rs", "use std::{collections::HashMap, fmt, time::Duration}; // tokio::spawn\nlet s = \"std::fs\";"),
        ("crates/protocol/src/event.rs", "let tokio = 1; let x = a::tokio::b; mod hyperlink {}"),
        ("crates/protocol/src/event.rs", "/* use std::fs; /* and */ std::fs::x */ let a = r#\"\"std::fs::x\"#; let c = b\"std::fs::x\\\"\";"),
        ("crates/store/src/sqlite.rs", "use crate::block; std::thread::sleep(d); use rusqlite::Connection;"),
        ("src/cli/mod.rs", "use anyhow::Context; use plexus::{Gateway, config}; use super::main_loop;"),
        ("src/main.rs", "#![forbid(unsafe_code)] mod cli; fn main() -> anyhow::Result<()> { crate::cli::run() }"),
    ] {
        assert_eq!(violations(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}

#[test]
fn planted_dead_files_are_found() {
    let tree = |extra: &str| -> BTreeMap<String, String> {
        [
            ("src/lib.rs", "pub mod auth; mod sessions { mod inner; }"),
            ("src/main.rs", "mod cli;"),
            ("src/cli/mod.rs", "#[cfg(unix)] mod tail;"),
            ("src/cli/tail.rs", "// mod dead;"),
            ("src/auth.rs", "mod ids; "),
            ("src/auth/ids.rs", "const X: &str = \"mod dead;\";"),
            ("src/sessions/inner.rs", ""),
            ("crates/store/src/lib.rs", "mod block;"),
            ("crates/store/src/block.rs", ""),
            (extra, ""),
        ]
        .map(|(a, b)| (a.to_string(), b.to_string()))
        .into()
    };
    assert_eq!(unreached(&tree("src/sessions/inner.rs")), Vec::<String>::new());
    for dead in [
        "src/cli/dead.rs",
        "src/auth/dead.rs",
        "src/ids.rs",
        "src/dead.rs",
        "crates/store/src/dead.rs",
        "crates/x/src/block.rs",
    ] {
        assert_eq!(unreached(&tree(dead)), vec![format!("{dead}: no `mod` declaration reaches it")]);
    }
}

#[test]
fn test_binaries_share_common_and_move_nothing_else() {
    let text = |path: &str| format!("#[path = \"{path}\"]\nmod x;");
    assert_eq!(unfinished("tests/stories/main.rs", &text("../common/mod.rs")), Vec::<String>::new());
    assert_eq!(unfinished("tests/stories/main.rs", &text("../x.rs")).len(), 1);
    assert_eq!(unfinished("tests/stories/story_one.rs", &text("../common/mod.rs")).len(), 1);
}

#[test]
fn planted_test_files_outside_a_binary_are_found() {
    let tree = |extra: &str| -> BTreeMap<String, String> {
        [
            ("tests/tidy.rs", ""),
            ("tests/stories/main.rs", "#[path = \"../common/mod.rs\"]\nmod common;\nmod story_one;\n// mod dead;"),
            ("tests/stories/story_one.rs", ""),
            ("tests/common/mod.rs", "pub mod front;"),
            ("tests/common/front.rs", ""),
            (extra, ""),
        ]
        .map(|(a, b)| (a.to_string(), b.to_string()))
        .into()
    };
    assert_eq!(not_run(&tree("tests/tidy.rs")), Vec::<String>::new());
    for dead in ["tests/stories/dead.rs", "tests/common/dead.rs", "tests/gateway/story_one.rs", "tests/dead.rs"] {
        assert_eq!(not_run(&tree(dead)), vec![format!("{dead}: no test binary declares it")]);
    }
}

#[test]
fn planted_long_files_are_found() {
    let body = "\nx".repeat(LONG_FILE);
    assert!(too_long("a.rs", &format!("//! One file: the store.{body}")).is_some());
    assert!(too_long("a.rs", &format!("let table = 1;{body}")).is_some());
    assert!(too_long("a.html", &format!("<!doctype html>\n<html>{body}")).is_some());
    assert!(too_long("a.rs", &format!("//! A table of programs.{body}")).is_none());
    assert!(too_long("src/x/tests.rs", &format!("//! The tests of x.{body}")).is_some());
    assert!(too_long("src/x/tests.rs", &format!("//! One file: x and its tests change together.{body}")).is_none());
    assert!(too_long("tests/a", &format!("#!/bin/sh\n# Why it is one: see below.{body}")).is_none());
    assert!(too_long("a.rs", &"x\n".repeat(LONG_FILE)).is_none());
}
