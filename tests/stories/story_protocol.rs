//! `docs/protocol.md` is true: its examples are run in order against a gateway with the demo agent, and its table has every error
//! code of the source.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, Ws};
use serde_json::Value;

const DOC: &str = include_str!("../../docs/protocol.md");

/// The fenced blocks, by kind, with the line each begins at.
fn blocks() -> Vec<(usize, &'static str, Vec<&'static str>)> {
    let (mut all, mut open) = (Vec::new(), None);
    for (n, line) in DOC.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some((n + 1, kind, Vec::new())),
            (Some(_), some) => all.extend(some.take()),
            (None, Some((_, _, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    all
}

/// The values of `$NAME`s.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn put(&self, text: &str) -> String {
        // The longest first: one name may begin another.
        let mut names: Vec<_> = self.0.iter().collect();
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        names.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(name.as_str(), value))
    }

    /// Checks that `real` is as the example shows; names used for the first time are added to `learnt`.
    fn fits(&self, shown: &Value, real: &Value, learnt: &mut BTreeMap<String, String>) -> Result<(), String> {
        match (shown, real) {
            (Value::String(text), _) if text == ".." => Ok(()),
            (Value::String(text), Value::String(real)) if text.starts_with('$') => {
                match self.0.get(text).or_else(|| learnt.get(text)) {
                    Some(known) if known == real => Ok(()),
                    Some(known) => Err(format!("{text} is {known}, not {real}")),
                    None => {
                        learnt.insert(text.clone(), real.clone());
                        Ok(())
                    }
                }
            }
            (Value::Object(shown), Value::Object(real)) => {
                for (name, shown) in shown {
                    let real = real.get(name).ok_or_else(|| format!("`{name}` is missing"))?;
                    self.fits(shown, real, learnt).map_err(|why| format!("{name}: {why}"))?;
                }
                Ok(())
            }
            (Value::Array(some), Value::Array(_)) if some.len() == 1 && some[0] == ".." => Ok(()),
            (Value::Array(shown), Value::Array(real)) if shown.len() == real.len() => {
                shown.iter().zip(real).try_for_each(|(shown, real)| self.fits(shown, real, learnt))
            }
            _ if shown == real => Ok(()),
            _ => Err(format!("{real} is not {shown}")),
        }
    }

    fn learn(&mut self, shown: &Value, real: &Value) -> Result<(), String> {
        let mut learnt = BTreeMap::new();
        self.fits(shown, real, &mut learnt)?;
        self.0.extend(learnt);
        Ok(())
    }
}

/// An HTTP example: a request with headers and body, `-> STATUS`, and the response.
async fn http(gateway: &Gateway, names: &mut Names, lines: &[&str], at: usize) {
    let arrow = lines.iter().position(|line| line.starts_with("-> ")).unwrap_or_else(|| panic!("{at}: no `->`"));
    let (method, path) = lines[0].split_once(' ').unwrap();
    let shown = lines[arrow + 1..].join("\n");
    let shown: Option<Value> = (!shown.is_empty()).then(|| serde_json::from_str(&shown).unwrap());
    let (status, when) = lines[arrow][3..].split_once(' ').unwrap_or((&lines[arrow][3..], ""));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut request = gateway.request(method, &names.put(path));
        for line in &lines[1..arrow] {
            request = match line.split_once(": ").filter(|_| !line.starts_with('{')) {
                Some((name, value)) => request.header(name, value),
                None => request.header("content-type", "application/json").body(names.put(line)),
            };
        }
        let reply = request.send().await.unwrap();
        let (real, text) = (reply.status().as_u16().to_string(), reply.text().await.unwrap());
        assert_eq!(real, status, "docs/protocol.md:{at}: {text}");
        let Some(shown) = &shown else { return assert_eq!(text, "", "docs/protocol.md:{at}") };
        let mut value: Value = serde_json::from_str(&text).unwrap();
        let over = value["events"].as_array().is_some_and(|all| all.iter().any(|event| event["kind"] == "run_ended"));
        if when == "when the run has ended" {
            // The page has more events than the example: only those of the kinds shown are compared.
            let kind = shown["events"][0]["kind"].clone();
            value["events"].as_array_mut().unwrap().retain(|event| event["kind"] == kind);
        }
        // No names are learnt from a page that does not match yet.
        let there = when != "when the run has ended" || over;
        match there.then(|| names.learn(shown, &value)) {
            Some(Ok(())) => return,
            outcome => {
                assert!(!when.is_empty() && Instant::now() < deadline, "docs/protocol.md:{at}: {outcome:?}\n{value}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// An SSE example: a path, and events that come in this order, among others.
async fn sse(gateway: &Gateway, names: &mut Names, lines: &[&str], at: usize) {
    let mut stream = gateway.sse(&names.put(lines[0].strip_prefix("GET ").unwrap()), None).await;
    for pair in lines[1..].chunks(2) {
        let (kind, shown) = (pair[0].strip_prefix("event: ").unwrap(), pair[1].strip_prefix("data: ").unwrap());
        let shown: Value = serde_json::from_str(shown).unwrap();
        loop {
            let sent = stream.next().await.unwrap_or_else(|| panic!("docs/protocol.md:{at}: no {kind} came"));
            if sent.event == kind {
                names
                    .learn(&shown, &sent.data)
                    .unwrap_or_else(|why| panic!("docs/protocol.md:{at}: {why}\n{}", sent.data));
                break;
            }
        }
    }
}

/// A WebSocket example: messages sent, and those received, among others.
async fn ws(ws: &mut Ws, heard: &mut Vec<Value>, names: &mut Names, lines: &[&str], at: usize) {
    for (n, line) in lines.iter().enumerate() {
        let at = at + n + 1;
        let (way, text) = line.split_at(2);
        let message: Value = serde_json::from_str(text).unwrap_or_else(|why| panic!("docs/protocol.md:{at}: {why}"));
        if way == "> " {
            ws.send(&serde_json::from_str(&names.put(text)).unwrap()).await;
            continue;
        }
        assert_eq!(way, "< ");
        let mut looked = 0;
        loop {
            if let Some(found) = heard[looked..].iter().position(|real| names.learn(&message, real).is_ok()) {
                heard.remove(looked + found);
                break;
            }
            looked = heard.len();
            let next = tokio::time::timeout(PATIENCE / 4, ws.next()).await;
            let next = next.unwrap_or_else(|_| panic!("docs/protocol.md:{at} did not come; what came: {heard:?}"));
            heard.push(next.expect("the connection closed"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn protocol_examples_are_what_happens() {
    let gateway = Gateway::demo().await;
    let (mut names, mut heard, mut played) = (Names::default(), Vec::new(), BTreeMap::new());
    let mut line = gateway.ws_plain("/v1/ws").await;
    let (mut editor, mut told) = (gateway.ws_plain("/acp").await, Vec::new());
    for (at, kind, lines) in blocks() {
        match kind {
            "http" => http(&gateway, &mut names, &lines, at).await,
            "sse" => sse(&gateway, &mut names, &lines, at).await,
            "ws" => ws(&mut line, &mut heard, &mut names, &lines, at).await,
            "acp" => ws(&mut editor, &mut told, &mut names, &lines, at).await,
            other => panic!("docs/protocol.md:{at}: nobody plays {other:?}"),
        }
        *played.entry(kind).or_insert(0) += 1;
    }
    assert!(played["http"] > 15 && played["sse"] > 0 && played["ws"] > 4 && played["acp"] > 3, "{played:?}");
}

/// The Rust files under a folder, without tests.
fn sources(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false if !path.to_string_lossy().ends_with("tests.rs") => found.push(path),
            false => {}
        }
    }
    found
}

#[test]
fn protocol_code_table_has_every_code_of_the_source() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let features = ["access", "agents", "frontends", "notify", "operation", "views", "web"];
    let folders = features.map(|feature| root.join("crates").join(feature).join("src"));
    let mut codes = BTreeSet::new();
    for path in folders.iter().chain([&root.join("src/router")]).flat_map(|folder| sources(folder)) {
        let source = std::fs::read_to_string(path).unwrap();
        let source = source.split("#[cfg(test)]").next().unwrap();
        let marks = ["StatusCode::", "Failure::new("];
        for (mark, at) in marks.iter().flat_map(|mark| source.match_indices(mark).map(move |(at, _)| (*mark, at))) {
            // `StatusCode::NOT_FOUND, "code"` and `Failure::new(-32600, "code"`, whatever line ends stand between.
            let rest: String = source[at + mark.len()..].chars().take(120).collect();
            let Some((before, rest)) = rest.split_once(',') else { continue };
            let word = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_' || c == '-';
            if before.chars().all(word)
                && let Some((code, _)) = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'))
            {
                // Others are words, or a content type.
                if code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
                    codes.insert(code.to_owned());
                }
            }
        }
    }
    let judge = std::fs::read_to_string(root.join("src/sessions/requests.rs")).unwrap();
    for mark in ["bad(\"", "code: \""] {
        codes.extend(
            judge.match_indices(mark).map(|(at, _)| judge[at + mark.len()..].split('"').next().unwrap().to_owned()),
        );
    }
    assert!(codes.len() > 80, "{codes:?}");
    let unknown: Vec<_> = codes.iter().filter(|code| !DOC.contains(&format!("`{code}`"))).collect();
    assert!(unknown.is_empty(), "docs/protocol.md says nothing of {unknown:?}");
}
