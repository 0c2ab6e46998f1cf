//! `plexus phone`: everything that a phone needs to reach the gateway, in one command. It sets up an address that the phone can reach
//! (Tailscale's, or a TLS listener with a private CA), shows the CA as a QR code, and pairs the phone. The gateway keeps running meanwhile,
//! and stores the added listener.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use clap::Args;
use plexus::TLS_FOLDER;
use plexus::router::Authority;
use plexus_client::calls;
use plexus_protocol::api::listeners::{NewProxy, NewTlsListener, PublicAccess, TlsListenerView};
use serde_json::{Map, Value, json};

use super::pair::{self, PairArgs};
use crate::cli::certificates::{certificate_names, create_authority, fingerprint};
use crate::cli::client::Client;
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::gateway_start::running_or_started;
use crate::cli::input::read_line;
use crate::cli::output::{Paint, clean, line, print, print_json_line};
use crate::cli::programs::{CommandLine, run_within};

/// Time for Tailscale to respond.
const TAILSCALE_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum length of a message of Tailscale, in characters.
const MESSAGE_MAX: usize = 300;

/// Connect a phone, in one command: an address that it reaches, the certificate that it has to trust, and its pairing
#[derive(Debug, Args)]
pub(crate) struct PhoneArgs {
    /// A host name or address that the phone uses; repeatable [default: this machine's]
    #[arg(long, value_name = "NAME|IP")]
    address: Vec<String>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7443")]
    listen: std::net::SocketAddr,
    /// Do not use Tailscale, even if it is running
    #[arg(long)]
    no_tailscale: bool,
    /// Remove the listener: other machines can no longer reach the gateway; paired devices stay paired
    #[arg(long, conflicts_with_all = ["address", "listen"])]
    remove: bool,
    #[command(flatten)]
    pair: PairArgs,
}

/// The way by which a phone reaches the gateway, and the certificate that it needs.
enum Reach {
    /// An address whose certificate the phone trusts already.
    Trusted(String),
    /// An address with a certificate of the private CA, which the phone has to install.
    Ca { url: String, sha256: String },
}

/// Makes the gateway reachable, if necessary, and pairs a phone.
pub(crate) async fn run(args: PhoneArgs) -> CommandResult {
    let client = running_or_started().await?;
    if args.remove {
        return remove(&client).await;
    }
    let reach = reach(&client, &args).await?;
    if args.pair.json {
        print_json_line(&match &reach {
            Reach::Trusted(url) => json!({ "state": "reachable", "public_url": url }),
            Reach::Ca { url, sha256 } => {
                json!({ "state": "reachable", "public_url": url, "ca_url": format!("{url}/ca"), "sha256": sha256 })
            }
        })?;
    } else {
        print_steps(&reach)?;
        if matches!(reach, Reach::Ca { .. }) && std::io::stdin().is_terminal() && !args.pair.yes {
            print("  Enter shows the code that pairs the phone ")?;
            read_line().await;
        }
    }
    pair::run(args.pair).await
}

async fn reach(client: &Client, args: &PhoneArgs) -> anyhow::Result<Reach> {
    let access = client.run(calls::listeners(), "reading the gateway's addresses").await?;
    // The user has configured an address: of a proxy, or with another certificate.
    let configured_url = access.public_url.clone().filter(|_| access.tls.is_none() || access.proxy.is_some());
    if let Some(url) = configured_url.filter(|_| args.address.is_empty()) {
        return Ok(Reach::Trusted(url));
    }
    if !args.no_tailscale
        && args.address.is_empty()
        && access.tls.is_none()
        && let Some(url) = reach_by_tailscale(client).await?
    {
        return Ok(Reach::Trusted(url));
    }
    reach_by_ca(client, args, access).await
}

/// Adds a TLS listener with a certificate of the private CA.
async fn reach_by_ca(client: &Client, args: &PhoneArgs, access: PublicAccess) -> anyhow::Result<Reach> {
    let folder = client.home.dir().join(TLS_FOLDER);
    if let Some(TlsListenerView { configured: true, names, .. }) = &access.tls
        && Authority::read(&folder).is_none_or(|authority| authority.names != *names)
    {
        let url = access.public_url.unwrap_or_default();
        return Ok(Reach::Trusted(url));
    }
    let names = certificate_names(&args.address)?;
    match Authority::read(&folder) {
        None => drop(create_authority(&folder, &names)?),
        // A CA is reused if it covers all the given names; without names, if any of its names still reaches this machine.
        Some(authority) => {
            let has = |name: &String| authority.names.contains(name);
            let matches = if args.address.is_empty() { names.iter().any(has) } else { names.iter().all(has) };
            if !matches {
                return Err(CommandFailure::plain(format!(
                    "the certificate is for {}, and this machine is reached as {}: `plexus tls init --force` creates \
                     another, which every phone has to trust again",
                    authority.names.join(", "),
                    names.join(", ")
                )));
            }
        }
    }
    let access = match access.tls {
        Some(TlsListenerView { configured: true, .. }) => access,
        _ => {
            let listener = NewTlsListener { listen: args.listen };
            client.run(calls::add_tls_listener(&listener), "adding a listener for the phone").await?
        }
    };
    let url =
        access.public_url.ok_or_else(|| CommandFailure::plain("the gateway has no address for other machines"))?;
    Ok(Reach::Ca { url, sha256: fingerprint(&folder)? })
}

/// The address at which Tailscale serves the gateway, if Tailscale is installed and running.
async fn reach_by_tailscale(client: &Client) -> anyhow::Result<Option<String>> {
    let Some(status) = tailscale(&["status", "--json"]).await.and_then(Result::ok) else { return Ok(None) };
    let Some(name) = tailnet_name(&status) else { return Ok(None) };
    let gateway_url = client.url();
    let served = tailscale(&["serve", "status", "--json"]).await.and_then(Result::ok).unwrap_or_default();
    match served_at(&served, &name) {
        Some(target) if target.trim_end_matches('/') == gateway_url => {}
        Some(target) => {
            let target = line(&target, MESSAGE_MAX);
            let note = "which stays so: using a certificate of the gateway's own";
            writeln!(std::io::stderr(), "Tailscale serves {target} at https://{name}/ already, {note}")?;
            return Ok(None);
        }
        None => {
            let started = tailscale(&["serve", "--bg", gateway_url]).await;
            if let Some(Err(error)) = started {
                return Err(CommandFailure::plain(format!(
                    "`tailscale serve --bg {gateway_url}` failed: {}; fix that, or use --no-tailscale",
                    line(&error, MESSAGE_MAX)
                )));
            }
        }
    }
    let proxy = NewProxy { public_url: format!("https://{name}") };
    let access = client.run(calls::add_proxy(&proxy), "adding the gateway's address").await?;
    Ok(access.public_url)
}

/// The output of Tailscale, or its error output. `None` without Tailscale, or if it does not respond.
async fn tailscale(args: &[&str]) -> Option<Result<String, String>> {
    let output = run_within(&CommandLine::new("tailscale", args), TAILSCALE_TIMEOUT).await.ok()?;
    Some(if output.success { Ok(output.stdout) } else { Err(output.stderr) })
}

/// Returns the name of this machine in the tailnet, if Tailscale is running and can use certificates (`tailscale status --json`).
fn tailnet_name(status: &str) -> Option<String> {
    let status: Value = serde_json::from_str(status).ok()?;
    let name = status["Self"]["DNSName"].as_str()?.trim_end_matches('.').to_ascii_lowercase();
    let certified = status["CertDomains"].as_array()?.iter().any(|domain| domain.as_str() == Some(&name));
    (status["BackendState"] == "Running" && certified).then_some(name)
}

/// The target to which Tailscale forwards requests for this name (`tailscale serve status --json`).
fn served_at(status: &str, name: &str) -> Option<String> {
    let status: Map<String, Value> = serde_json::from_str(status).ok()?;
    let root = &status.get("Web")?[format!("{name}:443")]["Handlers"]["/"];
    match root {
        Value::Null => None,
        root => Some(root["Proxy"].as_str().map_or_else(|| root.to_string(), str::to_owned)),
    }
}

fn print_steps(reach: &Reach) -> anyhow::Result<()> {
    let paint = Paint::stdout();
    match reach {
        Reach::Trusted(url) => print(&format!("  the phone reaches the gateway at {}\n\n", paint.green(&clean(url)))),
        Reach::Ca { url, sha256 } => {
            let page = format!("{url}/ca");
            let mut out = String::new();
            if std::io::stdout().is_terminal()
                && let Some(picture) = plexus_tui::qr_picture(&page)
            {
                out += &format!("{picture}\n\n");
            }
            out += &format!("  {} on a new phone: open {}\n", paint.bold("1."), paint.green(&clean(&page)));
            out += "     in the same network, despite the browser's warning, and follow its instructions. The certificate\n";
            out += "     that the phone installs must have this SHA-256:\n";
            for half in [&sha256[..47.min(sha256.len())], sha256.get(48..).unwrap_or_default()] {
                out += &format!("     {half}\n");
            }
            out += &format!("  {} its pairing\n", paint.bold("2."));
            print(&out)
        }
    }
}

async fn remove(client: &Client) -> CommandResult {
    let access = client.run(calls::listeners(), "reading the gateway's addresses").await?;
    let mut changes = Vec::new();
    if access.tls.is_some_and(|tls| !tls.configured) {
        client.run(calls::remove_tls_listener(), "removing the listener").await?;
        changes.push("the listener is closed".to_owned());
    }
    if let Some(url) = access.proxy {
        client.run(calls::remove_proxy(), "removing the address").await?;
        changes.push(format!("{} is no longer accepted; `tailscale serve reset` ends Tailscale's part", clean(&url)));
    }
    if changes.is_empty() {
        changes.push("nothing was added by `plexus phone`".into());
    }
    print(&format!("{}\n", changes.join("\n")))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tailscale_counts_only_if_it_runs_with_certificates() {
        let status = |state: &str, domains: Value| {
            json!({ "BackendState": state, "Self": { "DNSName": "Box.tail1.ts.net." }, "CertDomains": domains })
                .to_string()
        };
        let name = Some("box.tail1.ts.net".to_owned());
        assert_eq!(tailnet_name(&status("Running", json!(["box.tail1.ts.net"]))), name);
        for other in [
            status("Stopped", json!(["box.tail1.ts.net"])),
            status("Running", Value::Null),
            status("Running", json!(["else.ts.net"])),
            "{}".into(),
            "not JSON".into(),
        ] {
            assert_eq!(tailnet_name(&other), None, "{other}");
        }
    }

    #[test]
    fn tailscale_serves_what_its_handler_says() {
        let web = |handler: Value| json!({ "Web": { "box.ts.net:443": { "Handlers": { "/": handler } } } }).to_string();
        let proxy = served_at(&web(json!({ "Proxy": "http://127.0.0.1:7420" })), "box.ts.net");
        assert_eq!(proxy.as_deref(), Some("http://127.0.0.1:7420"));
        assert_eq!(served_at(&web(json!({ "Path": "/srv" })), "box.ts.net").as_deref(), Some(r#"{"Path":"/srv"}"#));
        assert_eq!(served_at(&web(json!({ "Proxy": "x" })), "other.ts.net"), None);
        assert_eq!(served_at("{}", "box.ts.net"), None);
        assert_eq!(served_at("", "box.ts.net"), None);
    }
}
