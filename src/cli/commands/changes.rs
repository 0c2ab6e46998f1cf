//! `plexus changes`: what changed in a session's folder, as a table or as a patch.

use std::io::Write as _;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use serde_json::Value;

use crate::cli::client::Client;
use crate::cli::complete::session_ids;
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::output::{Paint, SanitizedWriter, clean, line, print, print_json, table};

/// Characters of a path in the table; of a longer one the beginning is shown.
const PATH: usize = 200;

/// Show what changed in a session's folder since its first prompt, as a table or as a patch
#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    session: String,
    /// Only what changed in this run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Output a patch; with --raw in a pipe, `git apply` takes it
    #[arg(long, conflicts_with = "json")]
    patch: bool,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ChangesArgs) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(run) = &args.run {
        query.append_pair("run", run);
    }
    let query = query.finish();
    let path = |suffix: &str| match query.is_empty() {
        true => format!("/v1/sessions/{session}/changes{suffix}"),
        false => format!("/v1/sessions/{session}/changes{suffix}?{query}"),
    };
    if args.patch {
        return patch(&client, &path("/patch")).await;
    }
    let changes: Value = client.get(&path(""), "reading what changed").await?;
    if args.json {
        print_json(&changes)?;
    } else {
        print(&format_changes(&changes, Paint::stdout()))?;
    }
    Ok(0)
}

async fn patch(client: &Client, path: &str) -> CommandResult {
    let mut pieces = client.download(path, "reading what changed").await?;
    let mut sanitized = SanitizedWriter::text();
    let mut bytes = Vec::new();
    let truncated = |_| CommandFailure::plain("reading what changed: the gateway ended the answer early; try again");
    while let Some(piece) = pieces.next().await.map_err(truncated)? {
        sanitized.push(&piece, &mut bytes);
    }
    sanitized.finish(&mut bytes);
    let mut out = std::io::stdout().lock();
    out.write_all(&bytes)?;
    out.flush()?;
    Ok(0)
}

/// The list as a table, with what was left out below it.
fn format_changes(changes: &Value, paint: Paint) -> String {
    let text = |value: &Value, name: &str| clean(value[name].as_str().unwrap_or_default());
    let files = changes["files"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut out = if files.is_empty() {
        "nothing changed\n".to_owned()
    } else {
        let rows: Vec<Vec<String>> = files.iter().map(row).collect();
        table(paint, &["WHAT", "ADDED", "REMOVED", "BY", "FILE"], &rows)
    };
    if let Some(count) = changes["left_off"].as_u64().filter(|count| *count > 0) {
        out.push_str(&format!("{count} more files changed and are not listed\n"));
    }
    for note in changes["notes"].as_array().map(Vec::as_slice).unwrap_or_default() {
        out.push_str(&paint.dim(&format!("note: {}", text(note, "text"))));
        out.push('\n');
    }
    out
}

/// A file as a row.
fn row(file: &Value) -> Vec<String> {
    let text = |name: &str| line(file[name].as_str().unwrap_or_default(), PATH);
    let count =
        |name: &str, sign: &str| file[name].as_u64().map_or_else(|| "-".to_owned(), |lines| format!("{sign}{lines}"));
    let mut path = text("path");
    if file["from"].is_string() {
        path = format!("{} -> {path}", text("from"));
    }
    match file["compared"].as_str() {
        None | Some("text") => {}
        // The reason is a sentence of its own.
        Some(_) => path = format!("{path} ({})", text("reason")),
    }
    vec![text("status"), count("added", "+"), count("removed", "-"), text("by"), path]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_a_table_with_harmless_names_and_what_was_left_out() {
        let changes = json!({
            "files": [
                { "path": "src/\u{1b}[31ma.rs", "status": "modified", "added": 12, "removed": 3, "compared": "text", "by": "session" },
                { "path": "b", "from": "old\nb", "status": "renamed", "added": 0, "removed": 0, "compared": "text", "by": "others" },
                { "path": "c.png", "status": "added", "compared": "binary", "reason": "it is binary", "by": "both" },
            ],
            "left_off": 7,
            "notes": [{ "code": "walk_bounded", "text": "the folder is too large" }],
        });
        let text = format_changes(&changes, Paint::none());
        let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["WHAT", "ADDED", "REMOVED", "BY", "FILE"]);
        assert_eq!(rows[1][..4], ["modified", "+12", "-3", "session"]);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert_eq!(rows[2][..4], ["renamed", "+0", "-0", "others"], "a name with a line break stays one row: {text}");
        assert!(text.contains(" -> b\n") && text.contains("c.png (it is binary)"), "{text}");
        assert!(text.ends_with("7 more files changed and are not listed\nnote: the folder is too large\n"), "{text}");
        assert_eq!(
            format_changes(&json!({ "files": [], "left_off": 0, "notes": [] }), Paint::none()),
            "nothing changed\n"
        );
    }
}
