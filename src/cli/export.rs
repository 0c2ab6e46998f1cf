//! `plexus export`: a session as a file.

use std::io::Write as _;

use super::args::{self, Format};
use super::client::Client;
use super::term::Harmless;
use super::{Failure, Outcome};

pub(crate) async fn export(args: args::Export) -> Outcome {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let (format, mut harmless) = match args.format {
        Format::Ndjson => ("ndjson", Harmless::json()),
        Format::Md => ("md", Harmless::text()),
        Format::Html => ("html", Harmless::text()),
    };
    let mut bytes = Vec::new();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let written = |why: std::io::Error| match why.kind() {
        std::io::ErrorKind::BrokenPipe => anyhow::Error::from(why),
        _ => Failure::plain(format!("writing the export: {why}; is there room?")),
    };
    let path = format!("/v1/sessions/{session}/export?format={format}");
    let mut pieces = client.stream(&path, "exporting the session").await?;
    while let Some(piece) = pieces.chunk().await.map_err(|_| {
        Failure::plain("exporting the session: the gateway broke it off; what was written is not the whole, try again")
    })? {
        bytes.clear();
        harmless.push(&piece, &mut bytes);
        out.write_all(&bytes).map_err(written)?;
    }
    bytes.clear();
    harmless.finish(&mut bytes);
    out.write_all(&bytes).map_err(written)?;
    out.flush().map_err(written)?;
    Ok(0)
}
