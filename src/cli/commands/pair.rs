//! `plexus pair` and `plexus devices`.

use std::io::IsTerminal as _;

use clap::Args;
use serde::Deserialize;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::client::Client;
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::input::read_line;
use crate::cli::output::{Paint, line, print, print_json_line};

/// Time that one long poll of the gateway waits, in seconds.
const POLL_SECONDS: u64 = 20;
/// Longest name or address shown, in characters.
const TEXT_MAX: usize = 80;

/// Pair a phone or another browser: shows a code, then asks you to compare a number
#[derive(Debug, Args)]
pub(crate) struct PairArgs {
    /// Permissions to grant
    #[arg(long, value_name = "S,..", value_delimiter = ',', default_value = "watch,prompt,approve",
        value_parser = ["watch", "prompt", "approve", "admin", "type"])]
    pub(crate) scope: Vec<String>,
    /// Limit the device to these runtimes [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) runtime: Vec<String>,
    /// The highest risk of requests that it may answer
    #[arg(long, value_name = "RISK", default_value = "elevated", value_parser = ["low", "elevated", "danger"])]
    pub(crate) approve_up_to: String,
    /// Allow answering from a notification without opening the request
    #[arg(long)]
    pub(crate) lock_screen: bool,
    /// The device's name [default: the one it reports]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Confirm without asking; the number is still printed, so that it can be compared
    #[arg(long)]
    pub(crate) yes: bool,
    /// Output progress as JSON, one object per line; without --yes, a line `y` on stdin confirms
    #[arg(long)]
    pub(crate) json: bool,
}

/// The state of a pairing, as the gateway reports it.
#[derive(Debug, Deserialize)]
struct Pairing {
    state: String,
    name: Option<String>,
    number: Option<u8>,
    device_id: Option<String>,
}

/// Shows a code, waits for the device that uses it, and asks whether both show the same number.
pub(crate) async fn run(args: PairArgs) -> CommandResult {
    let client = Client::find().await?;
    let mut request =
        json!({ "scopes": args.scope, "approve_up_to": args.approve_up_to, "lock_screen": args.lock_screen });
    if !args.runtime.is_empty() {
        request["runtimes"] = json!(args.runtime);
    }
    if let Some(name) = &args.name {
        request["name"] = json!(name);
    }
    let pairing = client.post("/v1/pairings", &request, "beginning a pairing").await?;
    let text = |name: &str| pairing[name].as_str().unwrap_or_default().to_owned();
    let (id, code, url) = (text("pairing_id"), text("code"), text("url"));
    let path = format!("/v1/pairings/{id}");
    if args.json {
        print_json_line(
            &json!({ "state": "waiting", "pairing_id": id, "code": code, "url": url, "expires_at": pairing["expires_at"] }),
        )?;
    } else {
        print_code(&code, &url)?;
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

fn print_code(code: &str, url: &str) -> anyhow::Result<()> {
    let paint = Paint::stdout();
    let mut out = String::new();
    if std::io::stdout().is_terminal()
        && let Some(picture) = plexus_tui::qr_picture(url)
    {
        out += &format!("{picture}\n\n");
    }
    out += &format!("  open   {}\n", paint.green(&line(url, TEXT_MAX)));
    out += &format!("  code   {}\n", paint.bold(&line(code, TEXT_MAX)));
    out += "         valid for one device, for 2 minutes\n";
    let host = url.split("://").nth(1).unwrap_or_default();
    if ["127.", "localhost", "[::1]"].iter().any(|own| host.starts_with(own)) {
        out += "         only this machine can reach that address: `plexus phone` makes one for phones\n";
    }
    print(&out)
}

async fn wait(client: &Client, path: &str, args: &PairArgs) -> CommandResult {
    let end_failure = |pairing: &Pairing| match pairing.state.as_str() {
        "expired" => CommandFailure::plain("no device joined in time: `plexus pair` creates another code"),
        "refused" => CommandFailure::plain("the device was refused"),
        other => CommandFailure::plain(format!("the pairing is {}", line(other, TEXT_MAX))),
    };
    let next = async |known_state: &str| {
        let operation = "waiting for the device";
        client.get::<Pairing>(&format!("{path}?wait={POLL_SECONDS}&known={known_state}"), operation).await
    };
    let joined = loop {
        let pairing = next("waiting").await?;
        match pairing.state.as_str() {
            "waiting" => {}
            "joined" => break pairing,
            _ => return Err(end_failure(&pairing)),
        }
    };
    let (name, number) = (joined.name.clone().unwrap_or_default(), joined.number.unwrap_or_default());
    let name_shown = line(&name, TEXT_MAX);
    if args.json {
        print_json_line(&json!({ "state": "joined", "name": name, "number": number }))?;
    } else {
        let paint = Paint::stdout();
        print(&format!(
            "\n  {} wants to join and shows the number {}\n",
            paint.bold(&name_shown),
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
            } } => return Err(end_failure(&pairing?)),
        };
        if !agreed {
            return Err(CommandFailure::plain("refused: the device was not paired"));
        }
    }
    let confirmed =
        client.post(&format!("{path}/confirm"), &json!({ "number": number }), "confirming the device").await?;
    let confirmed: Pairing = serde_json::from_value(confirmed)
        .map_err(|_| CommandFailure::plain("confirming the device: the gateway's response could not be understood"))?;
    let device = confirmed.device_id.unwrap_or_default();
    if args.json {
        print_json_line(&json!({ "state": "confirmed", "name": name, "number": number, "device_id": device }))?;
    } else {
        print(&format!("  {name_shown} is paired ({})\n", line(&device, TEXT_MAX)))?;
    }
    Ok(0)
}

/// Returns true if the typed line is a yes or the number itself. Anything else, or the end of stdin, is a no.
async fn agrees(number: u8) -> bool {
    let typed = read_line().await.trim().to_ascii_lowercase();
    matches!(typed.as_str(), "y" | "yes") || typed == number.to_string()
}
