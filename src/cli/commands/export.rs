//! `plexus export`: a session as a file.

use std::io::Write as _;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use plexus_client::calls;

use crate::cli::client::Client;
use crate::cli::complete::session_ids;
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::output::SanitizedWriter;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The events, one per line
    Ndjson,
    /// Markdown
    Md,
    /// One self-contained HTML file
    Html,
}

/// Export a session to stdout
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    session: String,
    /// The output format
    #[arg(long, value_enum, default_value = "ndjson")]
    format: Format,
}

pub(crate) async fn run(args: ExportArgs) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let (format, mut sanitized) = match args.format {
        Format::Ndjson => ("ndjson", SanitizedWriter::json()),
        Format::Md => ("md", SanitizedWriter::text()),
        Format::Html => ("html", SanitizedWriter::text()),
    };
    let mut bytes = Vec::new();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let write_error = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => anyhow::Error::from(error),
        _ => CommandFailure::plain(format!("writing the export: {error}; check the free space")),
    };
    let mut pieces = client.download(&calls::export(&session, format), "exporting the session").await?;
    while let Some(piece) = pieces.next().await.map_err(|_| {
        CommandFailure::plain("exporting the session: the gateway aborted it; the output is incomplete, try again")
    })? {
        bytes.clear();
        sanitized.push(&piece, &mut bytes);
        out.write_all(&bytes).map_err(write_error)?;
    }
    bytes.clear();
    sanitized.finish(&mut bytes);
    out.write_all(&bytes).map_err(write_error)?;
    out.flush().map_err(write_error)?;
    Ok(0)
}
