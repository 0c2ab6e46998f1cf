//! `plexus open`: opens the web page, signed in.

use std::io::IsTerminal as _;

use clap::Args;
use plexus_client::calls;
use plexus_protocol::Scope;
use plexus_protocol::api::devices::NewCode;

use crate::cli::browser::open_browser;
use crate::cli::client::Client;
use crate::cli::failure::CommandResult;
use crate::cli::home::Home;
use crate::cli::output::{TITLE, line, print};

/// Lifetime of the one-time code of `open`, in seconds; the gateway has the same limit.
const CODE_SECONDS: u64 = 120;

/// Open the web page, signed in with a one-time code
#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// Print the address instead of opening a browser
    #[arg(long)]
    print: bool,
}

pub(crate) async fn run(args: OpenArgs) -> CommandResult {
    let client = Client::find().await?;
    let request = NewCode {
        scopes: Scope::ALL.to_vec(),
        runtimes: None,
        sessions: None,
        approve_up_to: None,
        lock_screen: false,
        ttl: Some(CODE_SECONDS),
    };
    let code = client.run(calls::create_code(&request), "creating a one-time code").await?;
    let code = line(&code.code, TITLE);
    if !args.print && std::io::stdout().is_terminal() && open_browser(&Home::find()?, client.url(), &code) {
        let url = client.url();
        print(&format!("opened {url} in the browser; if nothing appears: plexus open --print\n"))?;
    } else {
        print(&format!("{}/#code={code}\n", client.url()))?;
    }
    Ok(0)
}
