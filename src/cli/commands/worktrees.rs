//! `plexus worktrees`: the git worktrees that were made for sessions.

use clap::{Args, Subcommand};
use plexus_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::client::Client;
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::output::{Paint, age, line, print, print_json, table};

/// Longest path and name that is shown, in characters.
const SHOWN: usize = 200;

/// List the git worktrees that were made for sessions, or remove one
#[derive(Debug, Args)]
pub(crate) struct WorktreesArgs {
    #[command(subcommand)]
    change: Option<Change>,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Remove a worktree that no session works in; its branch is kept
    Remove {
        /// Its branch, or its folder
        worktree: String,
        /// Delete the branch, too
        #[arg(long)]
        delete_branch: bool,
        /// Also if changes or commits are lost, after showing them
        #[arg(long)]
        force: bool,
    },
}

/// A worktree of the gateway's list.
#[derive(Deserialize, Serialize)]
struct Listed {
    path: String,
    root: String,
    branch: String,
    made_at: Timestamp,
    missing: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unsaved: Option<Unsaved>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    sessions: Vec<String>,
}

/// The content that only a worktree has.
#[derive(Deserialize, Serialize)]
struct Unsaved {
    changed: usize,
    files: Vec<String>,
    ahead: usize,
    commits: Vec<String>,
    digest: String,
}

/// Runs `plexus worktrees`.
pub(crate) async fn run(args: WorktreesArgs) -> CommandResult {
    let client = Client::find().await?;
    let all = listed(&client).await?;
    match args.change {
        Some(Change::Remove { worktree, delete_branch, force }) => {
            remove(&client, all, &worktree, delete_branch, force).await
        }
        None if args.json => {
            print_json(&json!({ "worktrees": all }))?;
            Ok(0)
        }
        None => {
            print(&shown(&all, Paint::stdout()))?;
            Ok(0)
        }
    }
}

async fn listed(client: &Client) -> anyhow::Result<Vec<Listed>> {
    #[derive(Deserialize)]
    struct List {
        worktrees: Vec<Listed>,
    }
    Ok(client.get::<List>("/v1/worktrees", "listing the worktrees").await?.worktrees)
}

/// What is to be known of a worktree before it is removed.
fn state(one: &Listed) -> String {
    if one.missing {
        return "its folder is gone".into();
    }
    let Some(unsaved) = &one.unsaved else {
        return line(one.problem.as_deref().unwrap_or("unknown"), SHOWN);
    };
    let mut parts = Vec::new();
    if unsaved.changed > 0 {
        parts.push(format!("{} changed", unsaved.changed));
    }
    if unsaved.ahead > 0 {
        parts.push(format!("{} ahead", unsaved.ahead));
    }
    if parts.is_empty() { "clean".into() } else { parts.join(", ") }
}

fn shown(all: &[Listed], paint: Paint) -> String {
    if all.is_empty() {
        return "no worktrees; `plexus new AGENT --worktree BRANCH` makes one\n".into();
    }
    let row = |one: &Listed| {
        let sessions = if one.sessions.is_empty() { "-".into() } else { one.sessions.join(" ") };
        vec![line(&one.branch, SHOWN), age(one.made_at), state(one), line(&sessions, SHOWN), line(&one.path, SHOWN)]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let hint = paint.dim("`plexus worktrees remove BRANCH` removes one\n");
    format!("{}{hint}", table(paint, &["BRANCH", "AGE", "STATE", "SESSIONS", "FOLDER"], &rows))
}

async fn remove(client: &Client, all: Vec<Listed>, meant: &str, delete_branch: bool, force: bool) -> CommandResult {
    let mut found: Vec<Listed> = all.into_iter().filter(|one| one.path == meant || one.branch == meant).collect();
    if found.len() > 1 {
        let paths: Vec<String> = found.iter().map(|one| line(&one.path, SHOWN)).collect();
        let words = format!(
            "several worktrees have a branch {}: name the folder, one of {}",
            line(meant, SHOWN),
            paths.join(", ")
        );
        return Err(CommandFailure::plain(words));
    }
    let Some(one) = found.pop() else {
        let words = format!("there is no worktree {}: `plexus worktrees` lists them", line(meant, SHOWN));
        return Err(CommandFailure::plain(words));
    };
    let mut wanted = json!({ "path": one.path, "delete_branch": delete_branch });
    let what = "removing the worktree";
    let mut outcome = client.try_post("/v1/worktrees/remove", &wanted, None, what).await?;
    if let Err(refused) = &outcome
        && refused.code() == "worktree_unsaved"
    {
        let unsaved: Unsaved = serde_json::from_value(refused.problem["unsaved"].clone())?;
        print(&losses(&unsaved))?;
        if !force {
            let words = "this would be lost: commit or merge it first, or add --force";
            return Err(CommandFailure::plain(words));
        }
        // Exactly what was shown.
        wanted["lost"] = unsaved.digest.into();
        outcome = client.try_post("/v1/worktrees/remove", &wanted, None, what).await?;
    }
    outcome.map_err(|refused| refused.explain(what))?;
    let branch = line(&one.branch, SHOWN);
    let kept = if delete_branch { " and its branch".to_owned() } else { format!("; the branch {branch} is kept") };
    print(&format!("removed {}{kept}\n", line(&one.path, SHOWN)))?;
    Ok(0)
}

/// What would be lost, a line each.
fn losses(unsaved: &Unsaved) -> String {
    let files = unsaved.files.iter().map(|file| format!("  changed  {}\n", line(file, SHOWN)));
    let more = |shown: usize, all: usize, noun: &str| {
        if all > shown { format!("  and {} more {noun}\n", all - shown) } else { String::new() }
    };
    let commits = unsaved.commits.iter().map(|commit| format!("  commit   {}\n", line(commit, SHOWN)));
    let files: String = files.collect();
    let commits: String = commits.collect();
    let more_files = more(unsaved.files.len(), unsaved.changed, "files");
    format!("{files}{more_files}{commits}{}", more(unsaved.commits.len(), unsaved.ahead, "commits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(unsaved: Option<(usize, usize)>) -> Listed {
        let unsaved = unsaved.map(|(changed, ahead)| Unsaved {
            changed,
            files: vec!["a".into(); changed.min(2)],
            ahead,
            commits: vec!["c".into(); ahead.min(2)],
            digest: "d".into(),
        });
        Listed {
            path: "/r.worktrees/x".into(),
            root: "/r".into(),
            branch: "x".into(),
            made_at: Timestamp::from_millis(0),
            missing: false,
            unsaved,
            problem: Some("git is gone".into()),
            sessions: vec![],
        }
    }

    #[test]
    fn state_of_a_worktree_is_a_few_words() {
        let words: Vec<String> =
            [Some((0, 0)), Some((3, 0)), Some((1, 2)), None].map(|state_| state(&one(state_))).into();
        assert_eq!(words, ["clean", "3 changed", "1 changed, 2 ahead", "git is gone"]);
        assert_eq!(state(&Listed { missing: true, ..one(None) }), "its folder is gone");
        let lost = losses(&one(Some((3, 2))).unsaved.unwrap());
        assert_eq!(lost, "  changed  a\n  changed  a\n  and 1 more files\n  commit   c\n  commit   c\n");
        assert!(shown(&[], Paint::stdout()).starts_with("no worktrees; "));
    }
}
