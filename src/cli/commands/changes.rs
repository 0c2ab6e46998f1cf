//! `plexus changes`: the changes in a session's folder, as a table or as a patch.

use std::io::Write as _;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus_client::Pieces;
use plexus_client::calls::{self, ApiCall};
use plexus_protocol::RunId;
use plexus_protocol::api::changes::{ChangeCompared, ChangedFile, ChangesView};

use crate::cli::client::Client;
use crate::cli::complete::session_ids;
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::output::{Paint, SanitizedWriter, clean, line, print, print_json_text, table, wire_name};

/// Maximum length of a path in the table, in characters; a longer one is truncated.
const PATH: usize = 200;

/// Show the changes in a session's folder since its first prompt, as a table or as a patch
#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    session: String,
    /// Show only the changes of this run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Output a patch; with --raw in a pipe, `git apply` accepts it
    #[arg(long, conflicts_with = "json")]
    patch: bool,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ChangesArgs) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let run = args.run.as_deref().map(RunId::trusted);
    if args.patch {
        return patch(&client, &calls::changes_patch(&session, None, run.as_ref())).await;
    }
    let changes = client.request(calls::changes(&session, run.as_ref()), "reading the changes").await?;
    if args.json {
        print_json_text(&changes.text)?;
    } else {
        print(&format_changes(&changes.value, Paint::stdout()))?;
    }
    Ok(0)
}

async fn patch(client: &Client, call: &ApiCall<Pieces>) -> CommandResult {
    let mut pieces = client.download(call, "reading the changes").await?;
    let mut sanitized = SanitizedWriter::text();
    let mut bytes = Vec::new();
    let truncated = |_| CommandFailure::plain("reading the changes: the gateway ended the response early; try again");
    while let Some(piece) = pieces.next().await.map_err(truncated)? {
        sanitized.push(&piece, &mut bytes);
    }
    sanitized.finish(&mut bytes);
    let mut out = std::io::stdout().lock();
    out.write_all(&bytes)?;
    out.flush()?;
    Ok(0)
}

/// Formats the list as a table, and below it the number of unlisted files.
fn format_changes(changes: &ChangesView, paint: Paint) -> String {
    let mut out = if changes.files.is_empty() {
        "nothing changed\n".to_owned()
    } else {
        let rows: Vec<Vec<String>> = changes.files.iter().map(row).collect();
        table(paint, &["WHAT", "ADDED", "REMOVED", "BY", "FILE"], &rows)
    };
    if changes.left_off > 0 {
        out.push_str(&format!("{} more files changed and are not listed\n", changes.left_off));
    }
    for note in &changes.notes {
        out.push_str(&paint.dim(&format!("note: {}", clean(&note.text))));
        out.push('\n');
    }
    out
}

/// Formats a file as a row.
fn row(file: &ChangedFile) -> Vec<String> {
    let count =
        |count: Option<usize>, sign: &str| count.map_or_else(|| "-".to_owned(), |lines| format!("{sign}{lines}"));
    let mut path = line(&file.path, PATH);
    if let Some(from) = &file.from {
        path = format!("{} -> {path}", line(from, PATH));
    }
    if file.compared != ChangeCompared::Text {
        // The reason is a full sentence.
        path = format!("{path} ({})", line(file.reason.as_deref().unwrap_or_default(), PATH));
    }
    vec![wire_name(file.status), count(file.added, "+"), count(file.removed, "-"), wire_name(file.by), path]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn changes_are_a_table_with_harmless_names_and_what_was_left_out() {
        let view = |files: Value, left_off: usize, notes: Value| -> ChangesView {
            let wire = json!({
                "session_id": "s_1", "source": "git", "root": "/", "rev": "1", "files": files, "left_off": left_off, "runs": [],
                "notes": notes,
            });
            serde_json::from_value(wire).unwrap()
        };
        let files = json!([
                { "path": "src/\u{1b}[31ma.rs", "status": "modified", "added": 12, "removed": 3, "compared": "text", "by": "session", "digest": "x", "runs": [] },
                { "path": "b", "from": "old\nb", "status": "renamed", "added": 0, "removed": 0, "compared": "text", "by": "others", "digest": "x", "runs": [] },
                { "path": "c.png", "status": "added", "compared": "binary", "reason": "it is binary", "by": "both", "digest": "x", "runs": [] },
        ]);
        let notes = json!([{ "code": "walk_bounded", "text": "the folder is too large" }]);
        let text = format_changes(&view(files, 7, notes), Paint::none());
        let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["WHAT", "ADDED", "REMOVED", "BY", "FILE"]);
        assert_eq!(rows[1][..4], ["modified", "+12", "-3", "session"]);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert_eq!(rows[2][..4], ["renamed", "+0", "-0", "others"], "a name with a line break stays one row: {text}");
        assert!(text.contains(" -> b\n") && text.contains("c.png (it is binary)"), "{text}");
        assert!(text.ends_with("7 more files changed and are not listed\nnote: the folder is too large\n"), "{text}");
        assert_eq!(format_changes(&view(json!([]), 0, json!([])), Paint::none()), "nothing changed\n");
    }
}
