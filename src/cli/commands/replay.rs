//! `plexus replay`: feeds a recording to its dialect, without a gateway or an agent.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use clap::Args;
use plexus::runtimes::dialects;
use plexus_dialects::recording::{self, Played, Player, RecordingEntry, RecordingHead, describe};
use plexus_protocol::{Connect, RuntimeId, RuntimeSpec};
use serde_json::{Value, json};

use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::output::{Paint, line, print_as_json};

/// Maximum length of a transcript line, in characters; `--json` prints complete lines.
const LINE_MAX: usize = 240;

/// Show how a dialect interprets each line of a recording; `PLEXUS_RECORD=DIR plexus serve` records them
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The recording; `-` reads stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The dialect, if the recording does not name it; overrides the transcript
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<String>,
    /// Output JSON, one object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ReplayArgs) -> CommandResult {
    let name = args.file.display().to_string();
    let failure = |error: String| CommandFailure::plain(format!("{name}: {error}"));
    let text = match name.as_str() {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        }
        _ => std::fs::read_to_string(&args.file),
    };
    let entries = recording::read(&text.map_err(|error| failure(error.to_string()))?)
        .map_err(|error| failure(error.to_string()))?;
    let head = recording::head(&entries).map_err(|error| failure(error.to_string()))?;
    let spec = spec(head.as_ref(), args.dialect.as_deref()).map_err(failure)?;
    let make = dialects::find(&spec.dialect).ok_or_else(|| {
        failure(format!("unknown dialect {:?}: use one of {}", spec.dialect, dialects::names().join(", ")))
    })?;
    let mut player = Player::new(make, spec);
    let paint = Paint::stdout();
    for (at, entry) in &entries {
        let played =
            player.play(entry).map_err(|error| failure(format!("line {at} ({}): {error}", entry.dir.as_str())))?;
        if args.json {
            print_as_json(&serde_json::to_vec(&as_json(*at, entry, &played))?)?;
        } else {
            print(paint, *at, entry, &played)?;
        }
    }
    let unmatched = player.unmatched();
    if args.json {
        print_as_json(&serde_json::to_vec(&json!({ "end": true, "also_tells": unmatched }))?)?;
    } else {
        let mut out = std::io::stdout().lock();
        for order in unmatched {
            writeln!(out, "      {} the dialect also sends {}", paint.yellow("!"), shorten(&order))?;
        }
    }
    Ok(0)
}

/// The spec of the runtime that the dialect is given.
fn spec(head: Option<&RecordingHead>, dialect: Option<&str>) -> Result<RuntimeSpec, String> {
    let known = head.map(|head| head.spec.clone());
    match (known, dialect) {
        (Some(spec), Some(dialect)) => Ok(RuntimeSpec { dialect: dialect.to_owned(), ..spec }),
        (Some(spec), None) => Ok(spec),
        (None, Some(dialect)) => {
            let connect = Connect::Command(vec!["agent".into()]);
            Ok(RuntimeSpec::new(RuntimeId::trusted("replay"), dialect, connect, "/"))
        }
        (None, None) => Err("its first line does not name the dialect: add --dialect D".into()),
    }
}

fn as_json(at: usize, entry: &RecordingEntry, played: &Played) -> Value {
    let events: Vec<Value> = played.events.iter().map(describe).collect();
    let calls: Vec<Value> = played.calls.iter().map(call).collect();
    let mut value = json!({
        "line": at,
        "dir": entry.dir,
        "said": entry.line,
        "events": events,
        "orders": played.orders,
        "calls": calls,
    });
    if let Some(instead) = &played.instead {
        value["instead"] = json!(instead);
    }
    if let Some(id) = entry.id {
        value["id"] = json!(id);
    }
    value
}

fn call(call: &plexus_dialects::ClientToolCall) -> Value {
    json!({ "id": call.id, "work": format!("{:?}", call.work) })
}

fn print(paint: Paint, at: usize, entry: &RecordingEntry, played: &Played) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{at:>5} {:<8} {}", paint.bold(entry.dir.as_str()), paint.dim(&shorten(&entry.line)))?;
    for event in &played.events {
        let mut event = describe(event);
        let kind = event["type"].take();
        if let Some(fields) = event.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        writeln!(out, "      = {} {}", paint.green(kind.as_str().unwrap_or_default()), shorten(&event.to_string()))?;
    }
    for tool_call in &played.calls {
        writeln!(out, "      > {}", shorten(&call(tool_call).to_string()))?;
    }
    for order in &played.orders {
        writeln!(out, "      > {}", shorten(order))?;
    }
    match &played.instead {
        Some(Some(message)) => writeln!(out, "      {} the dialect sends {}", paint.yellow("!"), shorten(message))?,
        Some(None) => writeln!(out, "      {} the dialect sends nothing here", paint.yellow("!"))?,
        None => {}
    }
    Ok(())
}

/// Sanitizes a text and shortens it to [`LINE_MAX`] characters, in one line.
fn shorten(text: &str) -> String {
    line(text, LINE_MAX)
}
