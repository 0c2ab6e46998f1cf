//! The facts of the settings: the gateway, this terminal, and the addresses, as in the settings of the web page. Pure.

use plexus_protocol::api::devices::{Grant, Identity, Me};
use plexus_protocol::api::listeners::PublicAccess;
use plexus_protocol::{Risk, Scope};

use super::agent_lists::wrap_indented;
use super::sanitize;
use super::view_model::{ago, line, optional_line, span};

/// Width of the names of facts, in columns.
const FACT: usize = 14;
/// Maximum length of a path or an address, in columns.
const PATH_MAX: usize = 1_000;

/// The facts that the settings page of a terminal shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SettingsFacts {
    /// The gateway's address here, and the folder of its state.
    pub(crate) address: String,
    pub(crate) home: String,
    /// The calling device and its gateway, once they are read.
    pub(crate) me: Option<Me>,
    /// The listeners, or the reason why they could not be read; `None` for a client without the permission.
    pub(crate) listeners: Option<Result<PublicAccess, String>>,
}

impl SettingsFacts {
    /// Returns whether this client may read the listeners of the gateway.
    pub(crate) fn is_admin(&self) -> bool {
        self.me.as_ref().is_some_and(|me| me.device.grant.scopes.contains(&Scope::Admin))
    }
}

/// The facts as text, in the order of the web page's settings.
pub(crate) fn facts(facts: &SettingsFacts, now: i64, width: usize) -> String {
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
    let gateway = facts.me.as_ref().map(|me| &me.gateway);
    section(
        &mut out,
        "Gateway",
        vec![
            ("version", optional_line(gateway.map(|gateway| gateway.version.as_str()))),
            ("machine", optional_line(gateway.map(|gateway| gateway.name.as_str()))),
            ("started", gateway.map(|gateway| ago(now, gateway.started_at.as_millis())).unwrap_or_default()),
            ("home folder", sanitize::line(&facts.home, PATH_MAX)),
        ],
    );
    section(&mut out, "This terminal", facts.me.as_ref().map(|me| device_rows(&me.device, now)).unwrap_or_default());
    let mut listeners = vec![("here", sanitize::line(&facts.address, PATH_MAX))];
    let mut note = String::new();
    match &facts.listeners {
        None => {}
        Some(Err(why)) => note = format!("The other addresses could not be read: {why}"),
        Some(Ok(PublicAccess { tls, proxy, public_url })) => {
            if let Some(tls) = tls {
                let configured = if tls.configured { " (from the configuration)" } else { "" };
                listeners.extend([
                    ("TLS listener", format!("{}{configured}", line(&tls.address))),
                    ("origins", lines(&tls.origins)),
                    ("certificate", lines(&tls.names)),
                ]);
            }
            listeners.extend([
                ("proxy", optional_line(proxy.as_deref())),
                ("in links", optional_line(public_url.as_deref())),
            ]);
            if tls.is_none() && proxy.is_none() && public_url.is_none() {
                note = "Only this machine reaches the gateway: `plexus phone` connects a phone.".into();
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

/// The rows about the calling device.
fn device_rows(device: &Identity, now: i64) -> Vec<(&'static str, String)> {
    let Grant { scopes, runtimes, approve_up_to, .. } = &device.grant;
    let level = match approve_up_to {
        None | Some(Risk::Danger) => String::new(),
        Some(level) => format!(", up to {} risk", level.as_str()),
    };
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    let runtimes: Vec<&str> = runtimes.iter().flatten().map(|runtime| runtime.as_str()).collect();
    vec![
        ("name", line(&device.name)),
        ("may", format!("{}{level}", scopes.join(", "))),
        ("only", runtimes.join(", ")),
        ("ends", device.expires_at.map(|at| format!("in {}", span(at.as_millis() - now))).unwrap_or_default()),
    ]
}

/// Formats fields as one sanitized line each.
fn lines(fields: &[String]) -> String {
    fields.iter().map(|field| line(field)).collect::<Vec<_>>().join(", ")
}

/// Divides text into pieces of at most `space` characters, between words; a longer word, such as an address or a path, is divided too.
fn pieces(text: &str, space: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let chars: Vec<char> = word.chars().collect();
        match out.last_mut() {
            Some(last) if last.chars().count() + 1 + chars.len() <= space => {
                last.push(' ');
                last.push_str(word);
            }
            _ => out.extend(chars.chunks(space).map(|part| part.iter().collect::<String>())),
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
        let me = json!({ "device_id": "d_local", "name": "this machine", "kind": "local", "scopes": ["watch", "admin"], "approve_up_to": "elevated",
            "gateway": { "version": "1.2.3", "name": "host\u{202e}", "started_at": "2026-01-01T12:00:00.000Z", "epoch": "e" } });
        all.me = serde_json::from_value(me).unwrap();
        let now = 1_767_268_800_000 + 3_600_000;
        let text = facts(&all, now, 60);
        assert!(all.is_admin() && text.contains("1.2.3") && text.contains("/home/you/.plexus"), "{text}");
        assert!(text.contains("watch, admin, up to elevated risk") && !text.contains('\u{202e}'), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!text.contains("plexus phone"), "nothing is known of other addresses: {text}");
        all.listeners = Some(Ok(serde_json::from_value(json!({})).unwrap()));
        assert!(facts(&all, now, 60).contains("Only this machine reaches the gateway"));
        let listeners = json!({ "tls": { "address": "0.0.0.0:7778", "configured": true, "origins": ["https://a.example:7778"],
            "names": ["a.example", "10.0.0.2"] }, "public_url": "https://a.example:7778" });
        all.listeners = Some(Ok(serde_json::from_value(listeners).unwrap()));
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
