//! `plexus pair`: pairs a phone or another browser.

use std::io::IsTerminal as _;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use plexus_client::calls;
use plexus_protocol::api::pairing::{ConfirmPairing, NewPairing, PairingBegun, PairingState};
use plexus_protocol::{Risk, RuntimeId, Scope};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::client::Client;
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::input::read_line;
use crate::cli::output::{Paint, line, print, print_json_line, wire_name};

/// Time that one long poll of the gateway waits, in seconds.
const POLL_SECONDS: u64 = 20;
/// Maximum length of a name or an address, in characters.
const TEXT_MAX: usize = 80;

/// Parses a value of an enumeration from its name on the wire.
fn from_name<T: DeserializeOwned>(name: String) -> Result<T, serde_json::Error> {
    serde_json::from_value(name.into())
}

/// Pair a phone or another browser: shows a code, then asks you to compare a number
#[derive(Debug, Args)]
pub(crate) struct PairArgs {
    /// Permissions to grant
    #[arg(long, value_name = "S,..", value_delimiter = ',', default_value = "watch,prompt,approve",
        value_parser = PossibleValuesParser::new(["watch", "prompt", "approve", "admin", "type"]).try_map(from_name::<Scope>))]
    pub(crate) scope: Vec<Scope>,
    /// Limit the device to these runtimes [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) runtime: Vec<String>,
    /// The highest risk of requests that it may answer
    #[arg(long, value_name = "RISK", default_value = "elevated", value_parser = PossibleValuesParser::new(["low", "elevated", "danger"]).try_map(from_name::<Risk>))]
    pub(crate) approve_up_to: Risk,
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

/// Shows a code, waits for the device that uses it, and asks whether both show the same number.
pub(crate) async fn run(args: PairArgs) -> CommandResult {
    let client = Client::find().await?;
    let runtimes: Vec<RuntimeId> = args.runtime.iter().map(|name| RuntimeId::trusted(name.as_str())).collect();
    let request = NewPairing {
        scopes: args.scope.clone(),
        runtimes: Some(runtimes).filter(|runtimes| !runtimes.is_empty()),
        approve_up_to: Some(args.approve_up_to),
        lock_screen: args.lock_screen,
        name: args.name.clone(),
    };
    let pairing = client.run(calls::begin_pairing(&request), "beginning a pairing").await?;
    let PairingBegun { pairing_id: id, code, url, expires_at, .. } = pairing;
    if args.json {
        print_json_line(
            &json!({ "state": "waiting", "pairing_id": id, "code": code, "url": url, "expires_at": expires_at }),
        )?;
    } else {
        print_code(&code, &url)?;
    }
    let mut interrupted = signal(SignalKind::interrupt())?;
    let outcome = tokio::select! {
        outcome = wait(&client, &id, &args) => outcome,
        _ = interrupted.recv() => Err(CommandFailure::plain("interrupted: the code is no longer valid")),
    };
    if outcome.is_err() {
        // The pairing may have ended already; in both cases the code does not remain valid.
        let _ = client.run(calls::refuse_pairing(&id), "revoking the code").await;
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

async fn wait(client: &Client, id: &str, args: &PairArgs) -> CommandResult {
    let end_failure = |state: PairingState| match state {
        PairingState::Expired => CommandFailure::plain("no device joined in time: `plexus pair` creates another code"),
        PairingState::Refused => CommandFailure::plain("the device was refused"),
        PairingState::Waiting | PairingState::Joined | PairingState::Confirmed | PairingState::Unknown => {
            CommandFailure::plain(format!("the pairing is {}", wire_name(state)))
        }
    };
    let next = async |known: PairingState| {
        client.run(calls::pairing(id, Some(POLL_SECONDS), Some(known)), "waiting for the device").await
    };
    let joined = loop {
        let pairing = next(PairingState::Waiting).await?;
        match pairing.state {
            PairingState::Waiting => {}
            PairingState::Joined => break pairing,
            state => return Err(end_failure(state)),
        }
    };
    let (name, number) = (joined.name.clone().unwrap_or_default(), joined.number.unwrap_or_default());
    let label = line(&name, TEXT_MAX);
    if args.json {
        print_json_line(&json!({ "state": "joined", "name": name, "number": number }))?;
    } else {
        let paint = Paint::stdout();
        print(&format!(
            "\n  {} wants to join and shows the number {}\n",
            paint.bold(&label),
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
                match next(PairingState::Joined).await {
                    Ok(pairing) if pairing.state == PairingState::Joined => {}
                    other => break other,
                }
            } } => return Err(end_failure(pairing?.state)),
        };
        if !agreed {
            return Err(CommandFailure::plain("refused: the device was not paired"));
        }
    }
    let confirmation = ConfirmPairing { number: Some(number.into()) };
    let confirmed = client.run(calls::confirm_pairing(id, &confirmation), "confirming the device").await?;
    let device = confirmed.device_id.map(|device| device.to_string()).unwrap_or_default();
    if args.json {
        print_json_line(&json!({ "state": "confirmed", "name": name, "number": number, "device_id": device }))?;
    } else {
        print(&format!("  {label} is paired ({})\n", line(&device, TEXT_MAX)))?;
    }
    Ok(0)
}

/// Returns `true` if the typed line is a yes or the number itself. Any other line, and the end of stdin, counts as no.
async fn agrees(number: u8) -> bool {
    let typed = read_line().await.trim().to_ascii_lowercase();
    matches!(typed.as_str(), "y" | "yes") || typed == number.to_string()
}
