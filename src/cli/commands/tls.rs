//! `plexus tls`: creates the private CA and the certificate of the gateway.

use std::io::Write as _;

use clap::{Args, Subcommand};
use plexus::TLS_FOLDER;
use plexus::router::Authority;
use plexus::router::public_address::{CA_CERT, CA_PROFILE};

use crate::cli::certificates::{certificate_names, create_authority, fingerprint, format_day, renew_certificate};
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::home::{CONFIG_FILE, Home};
use crate::cli::output::Paint;

/// The port in the printed example.
const PORT: u16 = 7443;

/// Create TLS certificates, so that other machines can reach the gateway
#[derive(Debug, Subcommand)]
pub(crate) enum TlsCommand {
    /// Create a certificate and a private CA that can sign only for this machine's names
    Init(TlsInitArgs),
    /// Create a new certificate with the existing CA
    Renew,
}

#[derive(Debug, Args)]
pub(crate) struct TlsInitArgs {
    /// A host name or address that phones use; repeatable [default: this machine's]
    #[arg(long, value_name = "NAME|IP")]
    name: Vec<String>,
    /// Create a new CA even if there is one
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(command: &TlsCommand) -> CommandResult {
    match command {
        TlsCommand::Init(args) => init(args),
        TlsCommand::Renew => renew(),
    }
}

fn init(args: &TlsInitArgs) -> CommandResult {
    let home = Home::find()?;
    home.create()?;
    let folder = home.dir().join(TLS_FOLDER);
    if Authority::read(&folder).is_some() && !args.force {
        let fix = "`plexus tls renew` creates a new certificate with it; --force creates a new CA, which every phone \
            must then trust again";
        return Err(CommandFailure::plain(format!("there is already a CA in {}: {fix}", folder.display())));
    }
    let names = certificate_names(&args.name)?;
    let authority = create_authority(&folder, &names)?;
    print_next_steps(&home, &authority)?;
    Ok(0)
}

fn renew() -> CommandResult {
    let authority = renew_certificate(&Home::find()?.dir().join(TLS_FOLDER))?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "a new certificate for {}, until {}",
        authority.names.join(", "),
        format_day(authority.server_until)
    )?;
    writeln!(out, "a running gateway starts using it within seconds; nothing needs to be done on phones")?;
    Ok(0)
}

fn print_next_steps(home: &Home, authority: &Authority) -> anyhow::Result<()> {
    let folder = home.dir().join(TLS_FOLDER);
    let paint = Paint::stdout();
    let config = home.dir().join(CONFIG_FILE);
    let url = Authority::origins(&authority.names, PORT).into_iter().next().unwrap_or_default();
    let mut out = std::io::stdout().lock();
    writeln!(out, "a private CA and a certificate for {}", paint.bold(&authority.names.join(", ")))?;
    writeln!(out, "  CA           {}", folder.join(CA_CERT).display())?;
    writeln!(out, "  calls itself {}", authority.title)?;
    writeln!(out, "  SHA-256      {}", fingerprint(&folder)?)?;
    writeln!(out, "  certificate  until {}; the gateway renews it in time", format_day(authority.server_until))?;
    writeln!(out)?;
    writeln!(out, "`plexus phone` does the rest. By hand:")?;
    writeln!(out, "1. In {} (or the file after -c), then start `plexus serve` again:", config.display())?;
    writeln!(out, "     [tls]")?;
    writeln!(out, "     listen = \"0.0.0.0:{PORT}\"")?;
    writeln!(
        out,
        "2. The phone has to trust the CA. Send it the file, or open the address there once in spite of the"
    )?;
    writeln!(out, "   warning; the SHA-256 that it shows of the certificate must be the one above.")?;
    writeln!(out, "   iPhone, iPad: {url}/{CA_PROFILE} in Safari; Settings > Profile Downloaded > Install; then")?;
    writeln!(out, "     Settings > General > About > Certificate Trust Settings: switch it on.")?;
    writeln!(out, "   Android: {url}/{CA_CERT}; Settings > Security > More > Encryption & credentials >")?;
    writeln!(out, "     Install a certificate > CA certificate.")?;
    writeln!(out, "3. {url}/ on the phone, and `plexus pair` here.")?;
    out.flush()?;
    Ok(())
}
