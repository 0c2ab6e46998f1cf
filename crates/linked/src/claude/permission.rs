//! The questions of Claude Code's `PermissionRequest` hook, and the answers to them. Pure.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::tools::{TOOLS, description};
use plexus_dialects::jsonrpc::{self, object};
use plexus_dialects::{AgentRequest, RequestKey, RequestSubject, subject};
use plexus_protocol::{Answers, CallDigest, Choice, Decision, Offer, RequestType};

/// The tool that asks whether to carry out a plan.
const PLAN: &str = "ExitPlanMode";

/// The option that allows the call.
pub(super) const ALLOW: &str = "allow";
/// The option that denies the call.
pub(super) const DENY: &str = "deny";
/// The prefix of the id of an option that also applies one of Claude Code's own suggestions.
const SUGGESTION: &str = "suggestion:";

/// The text for the agent if the user gave no reason.
const DENIED: &str = "The user denied this tool call.";
const DECLINED: &str = "The user declined to answer.";

/// The parts of a tool call by which a question recognizes it.
#[derive(Clone)]
pub(super) struct Call {
    tool: String,
    /// The digest of the input; `None` if the input is not an object.
    digest: Option<CallDigest>,
    /// The input of a plan, which its hook does not get.
    plan: Option<Box<RawValue>>,
}

impl Call {
    pub(super) fn new(tool: &str, input: &RawValue) -> Self {
        let plan = (tool == PLAN).then(|| jsonrpc::owned(input));
        Self { tool: tool.to_owned(), digest: digest(tool, input), plan }
    }
}

fn digest(tool: &str, input: &RawValue) -> Option<CallDigest> {
    Some(CallDigest::new(tool, &serde_json::from_str(input.get()).ok()?))
}

/// A question, as the hook got it.
#[derive(Debug)]
pub(super) struct Permission {
    /// The name of the tool.
    pub(super) tool: String,
    /// The input, on one line.
    pub(super) input: Box<RawValue>,
    digest: Option<CallDigest>,
    /// Changes to Claude Code's rules that it suggests together with the answer.
    suggestions: Vec<Box<RawValue>>,
}

/// The input of the permission hook.
#[derive(Deserialize)]
pub(super) struct PermissionEvent<'a> {
    tool_name: String,
    tool_input: &'a RawValue,
    #[serde(borrow, default)]
    permission_suggestions: Vec<&'a RawValue>,
}

/// A suggestion of Claude Code.
#[derive(Deserialize)]
struct Suggestion {
    #[serde(rename = "type")]
    type_name: String,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    directories: Vec<String>,
    behavior: Option<String>,
    mode: Option<String>,
    destination: Option<String>,
}

#[derive(Deserialize)]
struct Rule {
    #[serde(rename = "toolName")]
    tool: String,
    #[serde(rename = "ruleContent")]
    content: Option<String>,
}

impl Suggestion {
    /// Returns the label of the option; `None` for a suggestion that is not offered, because its effect does not fit in a line.
    fn label(&self) -> Option<String> {
        let scope = match self.destination.as_deref() {
            Some("session") => "for this session",
            Some("localSettings") => "in this project",
            Some("projectSettings") => "in this project, for everybody who works on it",
            Some("userSettings") => "in all projects",
            _ => return None,
        };
        match self.type_name.as_str() {
            "addRules" if self.behavior.as_deref() == Some("allow") && !self.rules.is_empty() => {
                let rule = |rule: &Rule| match &rule.content {
                    Some(content) => format!("{}({content})", rule.tool),
                    None => rule.tool.clone(),
                };
                let rules: Vec<String> = self.rules.iter().map(rule).collect();
                Some(format!("Yes, and don't ask again {scope} for {}", rules.join(", ")))
            }
            "addDirectories" if !self.directories.is_empty() => {
                Some(format!("Yes, and allow access to {} {scope}", self.directories.join(", ")))
            }
            "setMode" if self.mode.as_deref() == Some("acceptEdits") => {
                Some(format!("Yes, and accept edits without asking {scope}"))
            }
            _ => None,
        }
    }
}

impl Permission {
    pub(super) fn new(event: &PermissionEvent<'_>) -> Self {
        Self {
            tool: event.tool_name.clone(),
            input: jsonrpc::owned(event.tool_input),
            digest: digest(&event.tool_name, event.tool_input),
            suggestions: event.permission_suggestions.iter().map(|raw| jsonrpc::owned(raw)).collect(),
        }
    }

    /// Returns whether the user is asked for answers, and not for a permission.
    pub(super) fn questions(&self) -> bool {
        self.tool == "AskUserQuestion"
    }

    /// Returns whether only the terminal can answer the question: Claude Code ignores a hook's answer to a plan.
    fn plan(&self) -> bool {
        self.tool == PLAN
    }

    /// Copies the input from the tool call itself, if the hook got a part of it.
    pub(super) fn complete(&mut self, call: &Call) {
        if let Some(plan) = call.plan.as_ref().filter(|_| self.input.get() == "{}") {
            self.input = plan.clone();
        }
    }

    /// Returns whether the question is about this tool call.
    pub(super) fn is_about(&self, call: &Call) -> bool {
        self.tool == call.tool && (self.plan() || (self.digest.is_some() && self.digest == call.digest))
    }

    /// Makes the question to the user.
    pub(super) fn request(&self, key: RequestKey, call: Option<String>, native: Bytes) -> AgentRequest {
        let mut ask = AgentRequest {
            message: description(&self.input),
            subject: subject::tool(&self.tool, &self.input),
            allow_reason: true,
            tool_call_id: call,
            ..AgentRequest::new(
                key,
                RequestType::Permission,
                TOOLS.title(&self.tool, &self.input),
                self.input.clone(),
                native,
            )
        };
        if self.questions() {
            let RequestSubject::Questions { questions, .. } = &mut ask.subject else {
                // An answer would have to name questions that cannot be read.
                return only_at_terminal(ask);
            };
            for (n, question) in questions.iter_mut().enumerate() {
                // The terminal always offers to type something else.
                (question.id, question.free_text) = (format!("question_{n}"), true);
            }
            (ask.kind, ask.allow_reason) = (RequestType::Prompt, false);
            "Claude Code asks".clone_into(&mut ask.title);
            return ask;
        }
        if self.plan() {
            return only_at_terminal(ask);
        }
        let offer = |id: String, label: String, kind| Offer { id, label, kind, for_session: false };
        ask.options.push(offer(ALLOW.into(), "Yes".into(), Choice::AllowOnce));
        for (n, suggestion) in self.suggestions.iter().enumerate() {
            if let Some(label) = object::<Suggestion>(suggestion).and_then(|suggestion| suggestion.label()) {
                ask.options.push(offer(format!("{SUGGESTION}{n}"), label, Choice::AllowAlways));
            }
        }
        ask.options.push(offer(DENY.into(), "No".into(), Choice::RejectOnce));
        ask
    }

    /// Returns the output of the hook for a decision; `None` if the terminal's own dialog decides.
    pub(super) fn answer(&self, decision: &Decision) -> Option<String> {
        let decided = match decision {
            Decision::Option { id, reason, .. } if id == DENY => deny(reason.as_deref().unwrap_or(DENIED)),
            Decision::Option { id, .. } if id == ALLOW => json!({ "behavior": "allow" }),
            Decision::Option { id, .. } => {
                let n: usize = id.strip_prefix(SUGGESTION)?.parse().ok()?;
                json!({ "behavior": "allow", "updatedPermissions": [self.suggestions.get(n)?] })
            }
            Decision::Answers(answers) if answers.is_empty() => deny(DECLINED),
            Decision::Answers(answers) => {
                json!({ "behavior": "allow", "updatedInput": self.answered(answers)? })
            }
            Decision::Value(None) => deny(DECLINED),
            Decision::Value(Some(_))
            | Decision::Ids(_)
            | Decision::Edited { .. }
            | Decision::Expired
            | Decision::Withdrawn => return None,
        };
        let event = json!({ "hookEventName": "PermissionRequest", "decision": decided });
        Some(json!({ "hookSpecificOutput": event }).to_string())
    }

    /// Returns the input with the answers, by the text of each question.
    fn answered(&self, answers: &Answers) -> Option<Value> {
        let RequestSubject::Questions { questions, .. } = subject::tool(&self.tool, &self.input) else { return None };
        let mut input: Map<String, Value> = serde_json::from_str(self.input.get()).ok()?;
        let mut given = Map::new();
        for (n, question) in questions.into_iter().enumerate() {
            if let Some(texts) = answers.get(&format!("question_{n}")) {
                given.insert(question.text, texts.join(", ").into());
            }
        }
        input.insert("answers".into(), given.into());
        Some(input.into())
    }
}

/// Makes the request for a tool call that the auto mode of Claude Code denied by itself, without asking the user.
pub(super) fn automatic_denial(raw: &RawValue, call: Option<String>) -> Option<AgentRequest> {
    let event: PermissionEvent<'_> = object(raw)?;
    let key = RequestKey::unique(format!("denied {}", call.as_deref().unwrap_or_default()));
    let native = Bytes::copy_from_slice(raw.get().as_bytes());
    Some(AgentRequest { observe_only: true, ..Permission::new(&event).request(key, call, native) })
}

fn only_at_terminal(ask: AgentRequest) -> AgentRequest {
    AgentRequest { observe_only: true, message: Some("It can only be answered at the terminal.".into()), ..ask }
}

fn deny(message: &str) -> Value {
    json!({ "behavior": "deny", "message": message })
}
