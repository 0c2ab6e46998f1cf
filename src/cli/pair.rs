//! `plexus pair` and `plexus devices`.

use std::io::{BufRead as _, IsTerminal as _};

use plexus_protocol::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::args;
use super::client::{Client, choose};
use super::commands::{age, print, print_as_json, print_json, table};
use super::term::{Paint, line};
use super::{CommandFailure, CommandResult, FAILURE};

/// Time that one long poll of the gateway waits, in seconds.
const WAIT: u64 = 20;
/// Longest name or address shown, in characters.
const SHOWN: usize = 80;

/// The state of a pairing, as the gateway reports it.
#[derive(Debug, Deserialize)]
struct Pairing {
    state: String,
    name: Option<String>,
    number: Option<u8>,
    device_id: Option<String>,
}

/// Prints a line of JSON and flushes, since a script waits for it.
pub(super) fn say(value: &Value) -> anyhow::Result<()> {
    print_as_json(&serde_json::to_vec(value)?)
}

/// Shows a code, waits for the device that uses it, and asks whether both show the same number.
pub(crate) async fn pair(args: args::Pair) -> CommandResult {
    let client = Client::find().await?;
    let mut wanted =
        json!({ "scopes": args.scope, "approve_up_to": args.approve_up_to, "lock_screen": args.lock_screen });
    if !args.runtime.is_empty() {
        wanted["runtimes"] = json!(args.runtime);
    }
    if let Some(name) = &args.name {
        wanted["name"] = json!(name);
    }
    let begun = client.post("/v1/pairings", &wanted, "beginning a pairing").await?;
    let text = |name: &str| begun[name].as_str().unwrap_or_default().to_owned();
    let (id, code, url) = (text("pairing_id"), text("code"), text("url"));
    let path = format!("/v1/pairings/{id}");
    if args.json {
        say(
            &json!({ "state": "waiting", "pairing_id": id, "code": code, "url": url, "expires_at": begun["expires_at"] }),
        )?;
    } else {
        invite(&code, &url)?;
    }
    let mut interrupted = signal(SignalKind::interrupt())?;
    let outcome = tokio::select! {
        outcome = wait(&client, &path, &args) => outcome,
        _ = interrupted.recv() => Err(CommandFailure::plain("interrupted: the code is no longer valid")),
    };
    if outcome.is_err() {
        // The pairing may have ended already; either way the code is not left valid.
        let _ = client.delete(&path, "revoking the code").await;
    }
    outcome
}

fn invite(code: &str, url: &str) -> anyhow::Result<()> {
    let paint = Paint::stdout();
    let mut out = String::new();
    if std::io::stdout().is_terminal()
        && let Some(picture) = plexus_tui::qr_picture(url)
    {
        out += &format!("{picture}\n\n");
    }
    out += &format!("  open   {}\n", paint.green(&line(url, SHOWN)));
    out += &format!("  code   {}\n", paint.bold(&line(code, SHOWN)));
    out += "         valid for one device, for 2 minutes\n";
    let host = url.split("://").nth(1).unwrap_or_default();
    if ["127.", "localhost", "[::1]"].iter().any(|own| host.starts_with(own)) {
        out += "         only this machine can reach that address: `plexus phone` makes one for phones\n";
    }
    print(&out)
}

async fn wait(client: &Client, path: &str, args: &args::Pair) -> CommandResult {
    let over = |pairing: &Pairing| match pairing.state.as_str() {
        "expired" => CommandFailure::plain("no device joined in time: `plexus pair` creates another code"),
        "refused" => CommandFailure::plain("the device was refused"),
        other => CommandFailure::plain(format!("the pairing is {}", line(other, SHOWN))),
    };
    let next = async |known: &str| {
        let what = "waiting for the device";
        client.get::<Pairing>(&format!("{path}?wait={WAIT}&known={known}"), what).await
    };
    let joined = loop {
        let pairing = next("waiting").await?;
        match pairing.state.as_str() {
            "waiting" => {}
            "joined" => break pairing,
            _ => return Err(over(&pairing)),
        }
    };
    let (name, number) = (joined.name.clone().unwrap_or_default(), joined.number.unwrap_or_default());
    let shown = line(&name, SHOWN);
    if args.json {
        say(&json!({ "state": "joined", "name": name, "number": number }))?;
    } else {
        let paint = Paint::stdout();
        print(&format!(
            "\n  {} wants to join and shows the number {}\n",
            paint.bold(&shown),
            paint.bold(&number.to_string())
        ))?;
    }
    if !args.yes {
        if !args.json {
            print("  Does it show the same number? [y/N] ")?;
        }
        let agreed = tokio::select! {
            agreed = agrees(number) => agreed,
            pairing = async { loop {
                match next("joined").await {
                    Ok(pairing) if pairing.state == "joined" => {}
                    other => break other,
                }
            } } => return Err(over(&pairing?)),
        };
        if !agreed {
            return Err(CommandFailure::plain("refused: the device was not paired"));
        }
    }
    let done = client.post(&format!("{path}/confirm"), &json!({ "number": number }), "confirming the device").await?;
    let done: Pairing = serde_json::from_value(done)
        .map_err(|_| CommandFailure::plain("confirming the device: the gateway's response could not be understood"))?;
    let device = done.device_id.unwrap_or_default();
    if args.json {
        say(&json!({ "state": "confirmed", "name": name, "number": number, "device_id": device }))?;
    } else {
        print(&format!("  {shown} is paired ({})\n", line(&device, SHOWN)))?;
    }
    Ok(0)
}

/// The line that a person types; empty at the end of stdin.
pub(super) async fn typed_line() -> String {
    let (sender, typed) = tokio::sync::oneshot::channel();
    // A separate thread, so that waiting for a line does not keep the program running.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        let _ = sender.send(read.map(|_| line).unwrap_or_default());
    });
    typed.await.unwrap_or_default()
}

/// Whether the typed line is a yes or the number itself. Anything else, or the end of stdin, is a no.
async fn agrees(number: u8) -> bool {
    let typed = typed_line().await.trim().to_ascii_lowercase();
    matches!(typed.as_str(), "y" | "yes") || typed == number.to_string()
}

/// A device, as the gateway lists it.
#[derive(Debug, Deserialize)]
struct Listed {
    device_id: String,
    name: String,
    kind: String,
    scopes: Vec<String>,
    runtimes: Option<Vec<String>>,
    approve_up_to: Option<String>,
    last_seen_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    online: bool,
    you: bool,
}

impl Listed {
    fn seen(&self) -> String {
        match self.last_seen_at {
            _ if self.online => "online".into(),
            Some(at) => format!("{} ago", age(at)),
            None => "never".into(),
        }
    }

    fn may(&self) -> String {
        let mut may = self.scopes.join(",");
        if let Some(up_to) = &self.approve_up_to {
            may += &format!(" up to {up_to}");
        }
        if let Some(runtimes) = &self.runtimes {
            may += &format!(" with {}", runtimes.join(","));
        }
        if let Some(at) = self.expires_at {
            may += &format!(" until {at}");
        }
        may
    }
}

/// Lists the devices, renames one, or revokes one.
pub(crate) async fn devices(args: args::Devices) -> CommandResult {
    let client = Client::find().await?;
    let list: Value = client.get("/v1/devices", "listing the devices").await?;
    if args.json && args.action.is_none() {
        print_json(&list)?;
        return Ok(0);
    }
    #[derive(Deserialize)]
    struct List {
        devices: Vec<Listed>,
    }
    let List { devices } = serde_json::from_value(list)?;
    match args.action {
        None => {
            let rows: Vec<Vec<String>> = devices
                .iter()
                .map(|one| {
                    let kind = if one.you { format!("{} (you)", one.kind) } else { one.kind.clone() };
                    vec![one.device_id.clone(), line(&one.name, SHOWN), kind, one.seen(), line(&one.may(), SHOWN)]
                })
                .collect();
            print(&table(Paint::stdout(), &["DEVICE", "NAME", "KIND", "SEEN", "MAY"], &rows))?;
        }
        Some(args::DevicesAction::Rename { device, name }) => {
            let device = which(devices, &device)?;
            let path = format!("/v1/devices/{}", device.device_id);
            client.patch(&path, &json!({ "name": name }), "renaming the device").await?;
            print(&format!("{} is {} now\n", line(&device.name, SHOWN), line(&name, SHOWN)))?;
        }
        Some(args::DevicesAction::Revoke { device: None, .. }) => {
            #[derive(Deserialize)]
            struct RevokedCount {
                revoked: usize,
            }
            let done = client.delete_told("/v1/local-browsers", "signing out the browsers on this machine").await?;
            let RevokedCount { revoked } = serde_json::from_value(done)?;
            print(&match revoked {
                0 => "no browser on this machine is signed in\n".to_owned(),
                1 => "signed out 1 browser on this machine\n".to_owned(),
                n => format!("signed out {n} browsers on this machine\n"),
            })?;
        }
        Some(args::DevicesAction::Revoke { device: Some(device), .. }) => {
            let device = which(devices, &device)?;
            client.delete(&format!("/v1/devices/{}", device.device_id), "revoking the device").await?;
            print(&format!("revoked {} ({})\n", line(&device.name, SHOWN), device.device_id))?;
        }
    }
    Ok(0)
}

/// The device that a person named: by its name, if unique, or by a prefix of its identifier.
fn which(devices: Vec<Listed>, meant: &str) -> anyhow::Result<Listed> {
    let named = devices.iter().filter(|one| one.name == meant).count();
    match devices.iter().position(|one| one.name == meant) {
        Some(at) if named == 1 => devices.into_iter().nth(at).ok_or_else(|| CommandFailure::plain("gone")),
        Some(_) => {
            let message = format!("{named} devices have that name: use the identifier, which `plexus devices` shows");
            Err(CommandFailure::new(FAILURE, message).into())
        }
        None => choose(devices, meant, |one| one.device_id.as_str(), "device", "`plexus devices` lists them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_is_found_by_name_or_by_identifier_prefix() {
        let device = |id: &str, name: &str| -> Listed {
            serde_json::from_value(json!({
                "device_id": id, "name": name, "kind": "device", "scopes": [], "online": false, "you": false,
            }))
            .unwrap()
        };
        let all = || vec![device("d_abc", "phone"), device("d_abd", "tablet"), device("d_xyz", "tablet")];
        assert_eq!(which(all(), "phone").unwrap().device_id, "d_abc");
        assert_eq!(which(all(), "d_x").unwrap().device_id, "d_xyz");
        assert!(which(all(), "tablet").is_err() && which(all(), "d_ab").is_err() && which(all(), "x_").is_err());
    }
}
