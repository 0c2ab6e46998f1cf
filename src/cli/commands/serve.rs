//! `plexus serve`: runs the gateway in the foreground.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context as _;
use clap::Args;
use plexus::config::{self, Config, ConfigContext};
use plexus::shared_daemon::SharedDaemon;
use plexus::{Gateway, StartError};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::browser::open_browser;
use crate::cli::certificates::ServedCertificate;
use crate::cli::executor::block_on;
use crate::cli::failure::{BAD_CONFIG, CommandFailure, CommandResult, FAILURE};
use crate::cli::home::{CONFIG_FILE, Home};
use crate::cli::log_file::LogFile;
use crate::cli::output::Paint;
use crate::cli::programs::this_program;
use crate::cli::{checks, linking};

/// Run the gateway in the foreground
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The configuration file [default: plexus.toml in the state folder, if it exists]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on; overrides the configuration [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Log to this file instead of stderr; rotated at 8 MiB, keeping three files
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Leave the terminal's session, so that closing it does not stop the gateway
    #[arg(long, hide = true)]
    detach: bool,
}

/// Prepares the process; must run while it has a single thread.
fn prepare_process(args: &ServeArgs) {
    if args.detach {
        // Leaves the terminal's session, so that its end does not end the gateway. This fails only for a process group leader.
        let _ = rustix::process::setsid();
    }
    set_limits();
}

/// Disables core dumps, which would contain agents' output, and raises the limit of descriptors, since every client needs one
/// and the usual soft limit is a thousand. If the system refuses, the gateway serves anyway.
fn set_limits() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let core = getrlimit(Resource::Core);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..core });
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
}

fn init_log(file: Option<&Path>) -> anyhow::Result<()> {
    // rmcp logs each mistake of an agent, and the end of each message over HTTP, although the agent gets an error.
    let filter = tracing_subscriber::EnvFilter::try_from_env("PLEXUS_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info,rmcp=error"));
    let layer = tracing_subscriber::fmt().with_env_filter(filter);
    // Fails only if a log is set already.
    let _ = match file {
        Some(path) => {
            let failed = |error| CommandFailure::plain(format!("--log-file {}: {error}", path.display()));
            layer.with_writer(Mutex::new(LogFile::open(path).map_err(failed)?)).with_ansi(false).try_init()
        }
        None => layer.with_writer(std::io::stderr).with_ansi(Paint::stderr().is_on()).try_init(),
    };
    Ok(())
}

pub(crate) fn run(args: ServeArgs) -> CommandResult {
    prepare_process(&args);
    block_on(serve(args))
}

async fn serve(args: ServeArgs) -> CommandResult {
    init_log(args.log_file.as_deref())?;
    let home = Home::find()?;
    home.create()?;
    let exe = this_program()?;
    let context = ConfigContext::from_process(exe.clone()).context("the current folder")?;
    let file = args.config.clone().or_else(|| Some(home.dir().join(CONFIG_FILE)).filter(|file| file.exists()));
    let mut config = match &file {
        Some(file) => {
            Config::load(file, &context).map_err(|error| CommandFailure::new(BAD_CONFIG, error.to_string()))?
        }
        None => Config::default(),
    };
    if let Some(listen) = &args.listen {
        config.listen = config::parse_listen(listen)
            .map_err(|error| CommandFailure::new(BAD_CONFIG, format!("--listen: {error}")))?;
    }
    let env = |name: &str| std::env::var_os(name);
    let codex = if config.native.codex { SharedDaemon::codex(context.cwd.clone(), env) } else { None };
    let served = ServedCertificate::from_config(config.tls.as_ref(), &home);
    let doctor = checks::for_gateway(home.clone(), exe.clone(), file.clone());
    let linking = linking::for_gateway(home.clone());
    let gateway = match Gateway::start(config, home.dir().to_owned(), exe).await {
        Ok(gateway) => gateway.with_doctor(doctor).with_linking(linking).with_daemon(codex),
        Err(error @ StartError::AlreadyRunning { .. }) => {
            let fix = "use it (`plexus ls`), stop it first, or set another PLEXUS_HOME for this one";
            return Err(CommandFailure::new(FAILURE, format!("{error}; {fix}")).into());
        }
        #[allow(unreachable_patterns, reason = "which errors there are is the roof's affair")]
        Err(error) => return Err(CommandFailure::new(FAILURE, error.to_string()).into()),
    };
    let url = format!("{}/#code={}", gateway.url().trim_end_matches('/'), gateway.admin_code());
    print_banner(&url, &gateway, file.as_deref(), &home)?;
    if args.open && !open_browser(&home, &gateway.url(), &gateway.admin_code()) {
        tracing::warn!("no browser could be started: open the printed address yourself");
    }
    let (first, second) = (stop_signal()?, stop_signal()?);
    tokio::pin!(second);
    let mut run = Box::pin(gateway.run(first));
    let end = async {
        second.as_mut().await;
        tracing::info!("stopping; press again to stop immediately");
        // Both futures received the first signal; this one waits for the next.
        match stop_signal() {
            Ok(next) => next.await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = &mut run => {
            log_remaining_agents(&home);
            Ok(0)
        }
        never = served.keep_valid() => match never {},
        () = end => {
            tracing::warn!("stopped immediately");
            Ok(FAILURE)
        }
    }
}

/// Logs the agents that keep running without the gateway.
fn log_remaining_agents(home: &Home) {
    let holders = plexus_holder::client::find_holders(&home.dir().join(plexus::HOLDERS));
    let names: Vec<&str> = holders.iter().filter(|holder| !holder.left).map(|holder| holder.runtime.as_str()).collect();
    if !names.is_empty() {
        tracing::info!(
            runtimes = names.join(", "),
            "still running: the next `plexus serve` takes them over, `plexus stop NAME` stops one"
        );
    }
}

/// Resolves at the first SIGINT or SIGTERM after the call.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let (mut int, mut term) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
        }
    })
}

/// Prints the banner. The one-time code goes to stdout only, and not if stdout is a log, as for a detached gateway.
fn print_banner(url: &str, gateway: &Gateway, config: Option<&std::path::Path>, home: &Home) -> anyhow::Result<()> {
    let paint = Paint::stdout();
    let mut out = std::io::stdout().lock();
    let stdout_is_file = rustix::fs::fstat(std::io::stdout())
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile);
    if stdout_is_file && !std::io::stdout().is_terminal() {
        let base = gateway.url();
        writeln!(out, "plexus {} at {base} (`plexus open` signs in)", env!("CARGO_PKG_VERSION"))?;
    } else {
        writeln!(out, "{} {}", paint.bold("plexus"), env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "  open      {}", paint.green(url))?;
        writeln!(out, "            valid once, for 2 minutes; `plexus open` creates another")?;
        writeln!(out, "  phone     run `plexus phone` in another terminal")?;
    }
    if let Some(url) = gateway.public_url() {
        writeln!(out, "  elsewhere {url}/")?;
    }
    writeln!(out, "  state     {}", home.dir().display())?;
    if let Some(config) = config {
        writeln!(out, "  config    {}", config.display())?;
    }
    match gateway.runtimes().as_slice() {
        [] => writeln!(out, "  runtimes  none yet: try `plexus run demo` in another terminal")?,
        some => writeln!(out, "  runtimes  {}", some.join(", "))?,
    }
    out.flush()?;
    Ok(())
}
