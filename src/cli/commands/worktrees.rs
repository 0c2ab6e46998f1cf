//! `plexus worktrees`: the git worktrees that were made for sessions.

use clap::{Args, Subcommand};
use plexus_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::client::Client;
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::output::{Paint, age, line, print, print_json, table};

/// Longest path and name that is shown, in characters.
const TEXT_MAX: usize = 200;

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
struct ListedWorktree {
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

pub(crate) async fn run(args: WorktreesArgs) -> CommandResult {
    let client = Client::find().await?;
    let all = list(&client).await?;
    match args.change {
        Some(Change::Remove { worktree, delete_branch, force }) => {
            remove(&client, all, &worktree, delete_branch, force).await
        }
        None if args.json => {
            print_json(&json!({ "worktrees": all }))?;
            Ok(0)
        }
        None => {
            print(&format_list(&all, Paint::stdout()))?;
            Ok(0)
        }
    }
}

async fn list(client: &Client) -> anyhow::Result<Vec<ListedWorktree>> {
    #[derive(Deserialize)]
    struct List {
        worktrees: Vec<ListedWorktree>,
    }
    Ok(client.get::<List>("/v1/worktrees", "listing the worktrees").await?.worktrees)
}

/// The state of a worktree that matters before it is removed.
fn state(worktree: &ListedWorktree) -> String {
    if worktree.missing {
        return "its folder is gone".into();
    }
    let Some(unsaved) = &worktree.unsaved else {
        return line(worktree.problem.as_deref().unwrap_or("unknown"), TEXT_MAX);
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

fn format_list(all: &[ListedWorktree], paint: Paint) -> String {
    if all.is_empty() {
        return "no worktrees; `plexus new AGENT --worktree BRANCH` makes one\n".into();
    }
    let row = |worktree: &ListedWorktree| {
        let sessions = if worktree.sessions.is_empty() { "-".into() } else { worktree.sessions.join(" ") };
        vec![
            line(&worktree.branch, TEXT_MAX),
            age(worktree.made_at),
            state(worktree),
            line(&sessions, TEXT_MAX),
            line(&worktree.path, TEXT_MAX),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let hint = paint.dim("`plexus worktrees remove BRANCH` removes one\n");
    format!("{}{hint}", table(paint, &["BRANCH", "AGE", "STATE", "SESSIONS", "FOLDER"], &rows))
}

async fn remove(
    client: &Client,
    all: Vec<ListedWorktree>,
    name: &str,
    delete_branch: bool,
    force: bool,
) -> CommandResult {
    let mut matching: Vec<ListedWorktree> =
        all.into_iter().filter(|worktree| worktree.path == name || worktree.branch == name).collect();
    if matching.len() > 1 {
        let paths: Vec<String> = matching.iter().map(|worktree| line(&worktree.path, TEXT_MAX)).collect();
        let message = format!(
            "several worktrees have a branch {}: name the folder, one of {}",
            line(name, TEXT_MAX),
            paths.join(", ")
        );
        return Err(CommandFailure::plain(message));
    }
    let Some(worktree) = matching.pop() else {
        let message = format!("there is no worktree {}: `plexus worktrees` lists them", line(name, TEXT_MAX));
        return Err(CommandFailure::plain(message));
    };
    let mut request = json!({ "path": worktree.path, "delete_branch": delete_branch });
    let operation = "removing the worktree";
    let mut outcome = client.try_post("/v1/worktrees/remove", &request, None, operation).await?;
    if let Err(refused) = &outcome
        && refused.code() == "worktree_unsaved"
    {
        let unsaved: Unsaved = serde_json::from_value(refused.problem["unsaved"].clone())?;
        print(&format_losses(&unsaved))?;
        if !force {
            let message = "this would be lost: commit or merge it first, or add --force";
            return Err(CommandFailure::plain(message));
        }
        // Exactly what was shown.
        request["lost"] = unsaved.digest.into();
        outcome = client.try_post("/v1/worktrees/remove", &request, None, operation).await?;
    }
    outcome.map_err(|refused| refused.explain(operation))?;
    let branch = line(&worktree.branch, TEXT_MAX);
    let branch_note =
        if delete_branch { " and its branch".to_owned() } else { format!("; the branch {branch} is kept") };
    print(&format!("removed {}{branch_note}\n", line(&worktree.path, TEXT_MAX)))?;
    Ok(0)
}

/// The changes and commits that would be lost, a line each.
fn format_losses(unsaved: &Unsaved) -> String {
    let files = unsaved.files.iter().map(|file| format!("  changed  {}\n", line(file, TEXT_MAX)));
    let more = |listed: usize, all: usize, noun: &str| {
        if all > listed { format!("  and {} more {noun}\n", all - listed) } else { String::new() }
    };
    let commits = unsaved.commits.iter().map(|commit| format!("  commit   {}\n", line(commit, TEXT_MAX)));
    let files: String = files.collect();
    let commits: String = commits.collect();
    let more_files = more(unsaved.files.len(), unsaved.changed, "files");
    format!("{files}{more_files}{commits}{}", more(unsaved.commits.len(), unsaved.ahead, "commits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worktree(unsaved: Option<(usize, usize)>) -> ListedWorktree {
        let unsaved = unsaved.map(|(changed, ahead)| Unsaved {
            changed,
            files: vec!["a".into(); changed.min(2)],
            ahead,
            commits: vec!["c".into(); ahead.min(2)],
            digest: "d".into(),
        });
        ListedWorktree {
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
        let states: Vec<String> =
            [Some((0, 0)), Some((3, 0)), Some((1, 2)), None].map(|state_| state(&worktree(state_))).into();
        assert_eq!(states, ["clean", "3 changed", "1 changed, 2 ahead", "git is gone"]);
        assert_eq!(state(&ListedWorktree { missing: true, ..worktree(None) }), "its folder is gone");
        let lost = format_losses(&worktree(Some((3, 2))).unsaved.unwrap());
        assert_eq!(lost, "  changed  a\n  changed  a\n  and 1 more files\n  commit   c\n  commit   c\n");
        assert!(format_list(&[], Paint::stdout()).starts_with("no worktrees; "));
    }
}
