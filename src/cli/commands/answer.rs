//! `plexus answer`: answers a request.

use std::io::{BufRead as _, IsTerminal as _, Read as _};
use std::sync::Arc;

use clap::{ArgGroup, Args};
use clap_complete::engine::ArgValueCandidates;
use plexus_client::calls;
use plexus_protocol::transcript::Outcome;
use plexus_protocol::{Answer, Answers, Question, Receipt, Request, RequestState, RequestType, answers};
use serde_json::json;

use crate::cli::card::read_digest;
use crate::cli::client::{Client, choose};
use crate::cli::complete::request_ids;
use crate::cli::failure::{CommandFailure, CommandResult, FAILURE};
use crate::cli::output::{TITLE, line, print, print_json, print_json_text};
use crate::cli::requests::{AnswerOutcome, send_answer, whole_request};
use crate::cli::view::outcome_text;

/// Maximum length of a typed confirmation, in bytes.
const CONFIRMATION_MAX: u64 = 100;

/// Answer a request; the first answer wins
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("answer").required(true).args(["allow", "deny", "option", "text"]))]
pub(crate) struct AnswerArgs {
    /// The request's identifier, or a unique prefix of an open one's
    #[arg(add = ArgValueCandidates::new(request_ids))]
    request: String,
    /// Allow the request
    #[arg(long)]
    allow: bool,
    /// Deny the request
    #[arg(long)]
    deny: bool,
    /// An answer, by id, verb ("always allow") or the agent's label; repeat it to pick several; `ID=ANSWER` for each of several questions
    #[arg(long, value_name = "ID")]
    option: Vec<String>,
    /// The requested text
    #[arg(long, value_name = "T")]
    text: Option<String>,
    /// A reason, sent to the agent
    #[arg(long, value_name = "R")]
    reason: Option<String>,
    /// Remember this choice
    #[arg(long)]
    remember: bool,
    /// Skip the confirmation of an answer that also covers later requests
    #[arg(long)]
    yes: bool,
    /// Allow this text instead of the original, if the agent accepts edits
    #[arg(long, value_name = "TEXT", requires = "allow", conflicts_with_all = ["remember", "deny", "option", "text"])]
    edit: Option<String>,
    /// The digest of the request that was read, or a prefix: needed if the request has changed since it was first shown
    #[arg(long, value_name = "D")]
    digest: Option<String>,
    /// Output the receipt as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: AnswerArgs) -> CommandResult {
    let client = Client::find().await?;
    let request: Request = match args.request.parse::<plexus_protocol::RequestId>() {
        // A complete identifier also finds a closed request, so that the winner of its answer can be named.
        Ok(id) if args.request.len() >= 28 => client.run(calls::request(&id), "answering").await?,
        _ => {
            let open = client.requests(false).await?.items;
            let (noun, fix) = ("open request", "`plexus requests` lists them");
            let found = choose(open, &args.request, |request| request.request_id.as_str(), noun, fix)?;
            // Allowing needs the digest of the complete request, which `plexus requests` shows.
            match found.display_truncated {
                true => whole_request(&client, &found).await?.value,
                false => Arc::unwrap_or_clone(found),
            }
        }
    };
    if request.state != RequestState::Open
        && let Some(receipt) = &request.receipt
    {
        if args.json {
            print_json(&json!(receipt))?;
            return Ok(FAILURE);
        }
        return print_lost(receipt);
    }
    let actions = answers::actions(&request, answers::Answerer::UNLIMITED);
    let action = match &args.option[..] {
        [word] if request.form().is_empty() && request.kind != RequestType::Pick => Some(find_action(&actions, word)?),
        _ => None,
    };
    let denies = args.deny || action.is_some_and(|action| action.role.rule().sense == answers::Sense::Deny);
    check_digest(&request, args.digest.as_deref(), denies)?;
    if let Some(action) = action.filter(|action| action.role.rule().persistent && !args.yes) {
        confirm_persistent(action)?;
    }
    let mut answer = Answer::default();
    let questions = request.form();
    if !questions.is_empty() && !args.deny {
        answer.answers = Some(answers_to(questions, &args)?);
    } else if args.allow || args.deny {
        match request.kind {
            RequestType::Pick | RequestType::Prompt if args.allow => {
                let option = if request.kind == RequestType::Pick { "--option ID" } else { "--text T" };
                return Err(CommandFailure::plain(format!(
                    "this request needs more than --allow: answer with {option}, or --deny"
                )));
            }
            _ => answer.ok = Some(args.allow),
        }
    } else if let Some(text) = &args.text {
        answer.value = Some(Some(text.clone()));
    } else if request.kind == RequestType::Pick {
        let id = |word: &String| request.items.iter().find(|item| item.label.eq_ignore_ascii_case(word));
        let is_id = |word: &String| request.items.iter().any(|item| item.id == *word);
        let ids = args.option.iter().map(|word| id(word).filter(|_| !is_id(word)).map_or(word, |item| &item.id));
        answer.ids = Some(ids.cloned().collect());
    } else if let Some(action) = action {
        answer = action.answer.clone().unwrap_or_default();
    } else {
        return Err(CommandFailure::plain("this request accepts one option: use --option once"));
    }
    if let Some(reason) = args.reason {
        answer.reason = Some(reason);
    }
    if let Some(edited) = args.edit {
        answer.edited = Some(edited);
    }
    if args.remember {
        answer.remember = Some(true);
    }
    match send_answer(&client, &request, answer).await? {
        AnswerOutcome::Won(receipt) => {
            if args.json {
                print_json_text(&receipt.text)?;
            } else {
                print(&format!("your answer counts: {}\n", outcome_text(Outcome::from_receipt(&receipt.value))))?;
            }
            Ok(0)
        }
        AnswerOutcome::Lost(receipt) => {
            if args.json {
                print_json_text(&receipt.text)?;
                return Ok(FAILURE);
            }
            print_lost(&receipt.value)
        }
    }
}

/// The answer to each question: `--option ID=ANSWER`, or only the answer if there is one question.
fn answers_to(questions: &[Question], args: &AnswerArgs) -> anyhow::Result<Answers> {
    let mut answers = Answers::new();
    let ids = || questions.iter().map(|question| question.id.as_str()).collect::<Vec<_>>().join(", ");
    for argument in args.option.iter().chain(&args.text) {
        // An identifier may contain `=`: the longest match counts.
        let named = questions.iter().filter_map(|question| {
            let text = argument.strip_prefix(question.id.as_str())?.strip_prefix('=')?;
            Some((question.id.as_str(), text))
        });
        let (id, text) = match (named.max_by_key(|(id, _)| id.len()), questions) {
            (Some(named), _) => named,
            (None, [only]) => (only.id.as_str(), argument.as_str()),
            (None, _) => {
                return Err(CommandFailure::plain(format!(
                    "name the question: --option ID=ANSWER, with an ID of {}",
                    ids()
                )));
            }
        };
        answers.entry(id.to_owned()).or_default().push(text.to_owned());
    }
    if answers.is_empty() {
        let how = format!("answer with --option ID=ANSWER for each of {}, or --deny", ids());
        return Err(CommandFailure::plain(format!("this request has several questions: {how}")));
    }
    let missing: Vec<&str> = questions
        .iter()
        .filter(|question| !question.optional && !answers.contains_key(&question.id))
        .map(|question| question.id.as_str())
        .collect();
    if !missing.is_empty() {
        let fix = "use --option ID=ANSWER for each; `plexus requests` lists them";
        return Err(CommandFailure::plain(format!("the answer to {} is missing: {fix}", missing.join(", "))));
    }
    Ok(answers)
}

/// Checks that the user read the current revision: after a change, its digest must be given.
fn check_digest(request: &Request, digest: Option<&str>, denies: bool) -> anyhow::Result<()> {
    match digest {
        Some(read) if read.len() < 8 || !request.digest.starts_with(read) => Err(CommandFailure::plain(format!(
            "--digest {}: the request has changed: read it again with `plexus requests`",
            line(read, TITLE)
        ))),
        None if request.changed && !denies => Err(CommandFailure::plain(format!(
            "this request has changed since it was first shown: read it again with `plexus requests`, then answer \
             with --digest {}",
            read_digest(request)
        ))),
        _ => Ok(()),
    }
}

/// The answer with this id, verb or label.
fn find_action<'a>(actions: &'a [answers::AnswerAction], word: &str) -> anyhow::Result<&'a answers::AnswerAction> {
    answers::find(actions, word).map_err(|reason| {
        let options = actions.iter().filter_map(|action| {
            let id = action.answer.as_ref()?.option_id.as_ref()?;
            Some(format!("{} = {}", line(id, TITLE), action.text()))
        });
        let options = options.collect::<Vec<_>>().join(", ");
        let reason = match reason {
            answers::Unmatched::None => "no answer has this name",
            answers::Unmatched::Several => "several answers have this name",
        };
        CommandFailure::plain(format!("--option {}: {reason}; this request takes {options}", line(word, TITLE)))
    })
}

/// Asks for a confirmation on a terminal before an answer that also covers later requests.
fn confirm_persistent(action: &answers::AnswerAction) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Ok(());
    }
    print(&format!(
        "{}: this also covers what the agent finds similar, from now on. Type yes to do it: ",
        action.text()
    ))?;
    let mut typed = String::new();
    std::io::stdin().lock().take(CONFIRMATION_MAX).read_line(&mut typed)?;
    match typed.trim() {
        "yes" => Ok(()),
        _ => Err(CommandFailure::plain("nothing was answered; --yes answers without this question")),
    }
}

fn print_lost(receipt: &Receipt) -> CommandResult {
    print(&format!("too late: {}\n", outcome_text(Outcome::from_receipt(receipt))))?;
    Ok(FAILURE)
}
