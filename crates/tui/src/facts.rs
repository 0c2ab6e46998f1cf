//! The facts of the settings: the gateway, this terminal, and the addresses, as the page's settings tell them. Pure.

use serde_json::Value;

use super::agent_lists::wrap_indented;
use super::sanitize;
use super::view_model::{ago, field, millis, span};

/// Columns of the names of facts.
const FACT: usize = 14;
/// Longest path or address shown, in columns.
const PATH_MAX: usize = 1_000;

/// The facts that the settings page of a terminal shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SettingsFacts {
    /// The gateway's address here, and the folder of its state.
    pub(crate) address: String,
    pub(crate) home: String,
    /// `/v1/me`, once it is read.
    pub(crate) me: Value,
    /// `/v1/listeners`, or why it could not be read; `None` for a client that may not read it.
    pub(crate) listeners: Option<Result<Value, String>>,
}

impl SettingsFacts {
    /// Returns whether this client may ask how the gateway is reached.
    pub(crate) fn administers(&self) -> bool {
        self.me["scopes"].as_array().is_some_and(|scopes| scopes.iter().any(|scope| scope == "admin"))
    }
}

/// The facts as text, in the order of the page's settings.
pub(crate) fn facts(facts: &SettingsFacts, now: i64, width: usize) -> String {
    let me = &facts.me;
    let list = |value: &Value| value.as_array().into_iter().flatten().map(field).collect::<Vec<_>>();
    let mut out: Vec<String> = Vec::new();
    let section = |out: &mut Vec<String>, name: &str, rows: Vec<(&str, String)>| {
        if !out.is_empty() {
            out.push(String::new());
        }
        out.push(name.to_owned());
        for (name, text) in rows.into_iter().filter(|(_, text)| !text.is_empty()) {
            let space = width.saturating_sub(FACT + 3).max(10);
            for (n, part) in pieces(&text, space).into_iter().enumerate() {
                let name = if n == 0 { name } else { "" };
                out.push(format!("  {name:<FACT$} {part}"));
            }
        }
    };
    let gateway = &me["gateway"];
    let since = millis(&gateway["started_at"]).map(|at| ago(now, at)).unwrap_or_default();
    section(
        &mut out,
        "Gateway",
        vec![
            ("version", field(&gateway["version"])),
            ("machine", field(&gateway["name"])),
            ("started", since),
            ("home folder", sanitize::line(&facts.home, PATH_MAX)),
        ],
    );
    let level = field(&me["approve_up_to"]);
    let level = if level.is_empty() || level == "danger" { String::new() } else { format!(", up to {level} risk") };
    let until = millis(&me["expires_at"]).map(|at| format!("in {}", span(at - now))).unwrap_or_default();
    section(
        &mut out,
        "This terminal",
        vec![
            ("name", field(&me["name"])),
            ("may", format!("{}{level}", list(&me["scopes"]).join(", "))),
            ("only", list(&me["runtimes"]).join(", ")),
            ("ends", until),
        ],
    );
    let mut listeners = vec![("here", sanitize::line(&facts.address, PATH_MAX))];
    let mut note = String::new();
    match &facts.listeners {
        None => {}
        Some(Err(why)) => note = format!("The other addresses could not be read: {why}"),
        Some(Ok(value)) => {
            let tls = &value["tls"];
            let configured = if tls["configured"] == true { " (from the configuration)" } else { "" };
            let listens = Some(field(&tls["address"])).filter(|at| !at.is_empty());
            listeners.extend([
                ("TLS listener", listens.map(|at| format!("{at}{configured}")).unwrap_or_default()),
                ("origins", list(&tls["origins"]).join(", ")),
                ("certificate", list(&tls["names"]).join(", ")),
                ("proxy", field(&value["proxy"])),
                ("in links", field(&value["public_url"])),
            ]);
            if tls.is_null() && value["proxy"].is_null() && value["public_url"].is_null() {
                note = "Only this machine reaches the gateway: `plexus phone` lets a phone in.".into();
            }
        }
    }
    section(&mut out, "Addresses", listeners);
    if !note.is_empty() {
        out.push(wrap_indented(&note, width));
    }
    section(&mut out, "Notifications", Vec::new());
    let text = "Each device chooses its own, and after how many minutes without progress it is told: on the settings \
                 page of its browser.";
    out.push(wrap_indented(text, width));
    out.join("\n")
}

/// Text in pieces of at most `room` characters, divided between words; a word that is longer, as an address or a path, is divided.
fn pieces(text: &str, space: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let letters: Vec<char> = word.chars().collect();
        match out.last_mut() {
            Some(last) if last.chars().count() + 1 + letters.len() <= space => {
                last.push(' ');
                last.push_str(word);
            }
            _ => out.extend(letters.chunks(space).map(|part| part.iter().collect::<String>())),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_facts_tell_what_the_gateway_told() {
        let mut all = SettingsFacts {
            address: "http://127.0.0.1:7777".into(),
            home: "/home/you/.plexus".into(),
            ..SettingsFacts::default()
        };
        all.me = json!({ "name": "this machine", "kind": "local", "scopes": ["watch", "admin"], "approve_up_to": "elevated",
            "gateway": { "version": "1.2.3", "name": "host\u{202e}", "started_at": "2026-01-01T12:00:00.000Z" } });
        let now = 1_767_268_800_000 + 3_600_000;
        let text = facts(&all, now, 60);
        assert!(all.administers() && text.contains("1.2.3") && text.contains("/home/you/.plexus"), "{text}");
        assert!(text.contains("watch, admin, up to elevated risk") && !text.contains('\u{202e}'), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!text.contains("plexus phone"), "nothing is known of other addresses: {text}");
        all.listeners = Some(Ok(json!({})));
        assert!(facts(&all, now, 60).contains("Only this machine reaches the gateway"));
        all.listeners = Some(Ok(
            json!({ "tls": { "address": "0.0.0.0:7778", "configured": true, "origins": ["https://a.example:7778"],
            "names": ["a.example", "10.0.0.2"] }, "public_url": "https://a.example:7778" }),
        ));
        let text = facts(&all, now, 60);
        assert!(
            text.contains("0.0.0.0:7778 (from the configuration)") && text.contains("a.example, 10.0.0.2"),
            "{text}"
        );
        all.listeners = Some(Err("busy".into()));
        assert!(facts(&all, now, 60).contains("could not be read: busy"));
        let long = SettingsFacts { home: "/x".repeat(100), ..all };
        assert!(
            facts(&long, now, 34).lines().all(|line| line.chars().count() <= 80),
            "paths are broken, notes are not"
        );
        assert!(
            facts(&long, now, 34).lines().filter(|line| line.contains("/x/x")).all(|line| line.chars().count() <= 34)
        );
    }

    #[test]
    fn pieces_end_between_words_and_divide_only_longer_ones() {
        assert_eq!(pieces("watch, prompt, approve", 16), ["watch, prompt,", "approve"]);
        assert_eq!(pieces("http://127.0.0.1:7420", 10), ["http://127", ".0.0.1:742", "0"]);
        assert_eq!(pieces("a\u{e9}\u{e9} b", 3), ["a\u{e9}\u{e9}", "b"]);
        assert!(pieces("", 10).is_empty());
    }
}
