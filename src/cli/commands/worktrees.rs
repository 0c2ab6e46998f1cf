//! `plexus worktrees`: the git worktrees that were made for sessions.

use clap::{Args, Subcommand};
use plexus_client::calls;
use plexus_protocol::SessionId;
use plexus_protocol::api::worktrees::{ListedWorktree, RemoveWorktree, WorktreeLosses, WorktreeView};

use crate::cli::client::Client;
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::output::{Paint, age, line, notice_unreadable, print, print_json_text, table};

/// Maximum length of a path and a name, in characters.
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
        /// Remove it even if changes or commits are lost, after showing them
        #[arg(long)]
        force: bool,
    },
}

pub(crate) async fn run(args: WorktreesArgs) -> CommandResult {
    let client = Client::find().await?;
    let list = client.request(calls::worktrees(), "listing the worktrees").await?;
    let all = list.value.worktrees;
    match args.change {
        Some(Change::Remove { worktree, delete_branch, force }) => {
            remove(&client, all.into_vec(), &worktree, delete_branch, force).await
        }
        None if args.json => {
            print_json_text(&list.text)?;
            Ok(0)
        }
        None => {
            notice_unreadable(all.unreadable(), "worktree");
            print(&format_list(&all, Paint::stdout()))?;
            Ok(0)
        }
    }
}

/// The state of a worktree that matters for its removal.
fn state(worktree: &ListedWorktree) -> String {
    let WorktreeView { missing, unsaved, problem, .. } = &worktree.worktree;
    if *missing {
        return "its folder does not exist".into();
    }
    let Some(unsaved) = unsaved else {
        return line(problem.as_deref().unwrap_or("unknown"), TEXT_MAX);
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
        let WorktreeView { path, branch, made_at, .. } = &worktree.worktree;
        let sessions: Vec<&str> = worktree.sessions.iter().map(SessionId::as_str).collect();
        let sessions = if sessions.is_empty() { "-".into() } else { sessions.join(" ") };
        vec![line(branch, TEXT_MAX), age(*made_at), state(worktree), line(&sessions, TEXT_MAX), line(path, TEXT_MAX)]
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
    let all = all.into_iter().map(|listed| listed.worktree);
    let mut matching: Vec<WorktreeView> =
        all.filter(|worktree| worktree.path == name || worktree.branch == name).collect();
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
    let mut request = RemoveWorktree { path: worktree.path.clone().into(), delete_branch, lost: None };
    let operation = "removing the worktree";
    let mut outcome = client.try_request(calls::remove_worktree(&request), operation).await?;
    if let Err(refused) = &outcome
        && let Some(unsaved) = &refused.error.data.unsaved
    {
        print(&format_losses(unsaved))?;
        if !force {
            let message = "this would be lost: commit or merge it first, or add --force";
            return Err(CommandFailure::plain(message));
        }
        // Confirms exactly the losses that were shown.
        request.lost = Some(unsaved.digest.clone());
        outcome = client.try_request(calls::remove_worktree(&request), operation).await?;
    }
    outcome.map_err(|refused| refused.explain(operation))?;
    let branch = line(&worktree.branch, TEXT_MAX);
    let branch_note =
        if delete_branch { " and its branch".to_owned() } else { format!("; the branch {branch} is kept") };
    print(&format!("removed {}{branch_note}\n", line(&worktree.path, TEXT_MAX)))?;
    Ok(0)
}

/// Formats the changes and commits that would be lost, one per line.
fn format_losses(unsaved: &WorktreeLosses) -> String {
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
    use plexus_protocol::Timestamp;

    use super::*;

    fn worktree(unsaved: Option<(usize, usize)>) -> ListedWorktree {
        let unsaved = unsaved.map(|(changed, ahead)| WorktreeLosses {
            changed,
            files: vec!["a".into(); changed.min(2)],
            ahead,
            commits: vec!["c".into(); ahead.min(2)],
            digest: "d".into(),
        });
        let worktree = WorktreeView {
            path: "/r.worktrees/x".into(),
            root: "/r".into(),
            branch: "x".into(),
            made_at: Timestamp::from_millis(0),
            missing: false,
            unsaved,
            problem: Some("git is gone".into()),
        };
        ListedWorktree { worktree, sessions: vec![] }
    }

    #[test]
    fn state_of_a_worktree_is_a_few_words() {
        let states: Vec<String> =
            [Some((0, 0)), Some((3, 0)), Some((1, 2)), None].map(|state_| state(&worktree(state_))).into();
        assert_eq!(states, ["clean", "3 changed", "1 changed, 2 ahead", "git is gone"]);
        let mut missing = worktree(None);
        missing.worktree.missing = true;
        assert_eq!(state(&missing), "its folder does not exist");
        let lost = format_losses(&worktree(Some((3, 2))).worktree.unsaved.unwrap());
        assert_eq!(lost, "  changed  a\n  changed  a\n  and 1 more files\n  commit   c\n  commit   c\n");
        assert!(format_list(&[], Paint::stdout()).starts_with("no worktrees; "));
    }
}
