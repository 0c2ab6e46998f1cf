//! The questions of Copilot, and the answers to them. Pure.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::terminals::drafts;
use plexus_dialects::elicitation::{self, ElicitationForm};
use plexus_dialects::jsonrpc::{self, object, pretty};
use plexus_dialects::{AgentRequest, RequestKey, RequestSubject, subject};
use plexus_protocol::{Choice, Decision, Offer, RequestType};

/// The option that allows the call.
pub(super) const APPROVE_ONCE: &str = "approve-once";
/// The option that allows similar calls until the session ends.
pub(super) const SESSION: &str = "approve-for-session";
/// The option that denies the call.
pub(super) const REJECT: &str = "reject";

/// The message of a question that only the terminal can answer.
const AT_TERMINAL: &str = "It can only be answered at the terminal.";

/// A question, as Copilot asks it.
#[derive(Debug)]
pub(super) enum CopilotQuestion {
    /// A permission for an action.
    Permission {
        /// The content of the dialog.
        prompt: Box<RawValue>,
    },
    /// A form to fill in.
    Form {
        /// The form.
        data: Box<RawValue>,
    },
}

/// The content of Copilot's permission dialog, with the members that are used. The kinds of `permissionRequest` are
/// among them: `shell` is `commands`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prompted<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    intention: Option<String>,
    warning: Option<String>,
    tool_call_id: Option<String>,
    #[serde(default)]
    can_offer_session_approval: bool,
    #[serde(default)]
    request_sandbox_bypass: bool,
    request_sandbox_bypass_reason: Option<String>,
    full_command_text: Option<String>,
    #[serde(default)]
    command_identifiers: Vec<String>,
    file_name: Option<String>,
    resolved_path: Option<String>,
    diff: Option<String>,
    new_file_contents: Option<String>,
    path: Option<String>,
    url: Option<String>,
    redirected_from: Option<String>,
    server_name: Option<String>,
    tool_name: Option<String>,
    args: Option<&'a RawValue>,
    tool_args: Option<&'a RawValue>,
    hook_message: Option<String>,
}

impl Prompted<'_> {
    /// Returns the exact action; `None` if it cannot be read for certain, or if it is about Copilot's own extensions
    /// and workflows: whether those are trusted is decided where they run.
    fn subject(&self, prompt: &RawValue) -> Option<RequestSubject> {
        let arguments = |args: Option<&RawValue>| args.unwrap_or(RawValue::NULL).to_owned();
        match self.kind.as_ref() {
            "commands" | "shell" => {
                let line = self.full_command_text.clone().filter(|line| !line.trim().is_empty())?;
                Some(RequestSubject::Command { argv: vec![line], cwd: None })
            }
            "write" => {
                let path = self.resolved_path.clone().or_else(|| self.file_name.clone())?;
                match (&self.diff, &self.new_file_contents) {
                    (Some(diff), _) if !diff.trim().is_empty() => {
                        Some(RequestSubject::Diff { path, diff: diff.clone() })
                    }
                    (_, Some(text)) => Some(RequestSubject::Edits(vec![(path, None, text.clone())])),
                    _ => None,
                }
            }
            "read" => {
                let path = self.resolved_path.as_ref().or(self.path.as_ref())?;
                let arguments = pretty(&json!({ "path": path }).to_string());
                Some(RequestSubject::Tool { name: "read".into(), arguments })
            }
            "url" => {
                let more = self.redirected_from.as_ref().map(|from| format!("redirected from {from}"));
                Some(RequestSubject::Fetch { url: self.url.clone()?, more: more.unwrap_or_default() })
            }
            "mcp" => {
                let name = format!("{}/{}", self.server_name.as_ref()?, self.tool_name.as_ref()?);
                Some(subject::tool(&name, &arguments(self.args)))
            }
            "custom-tool" => Some(subject::tool(self.tool_name.as_ref()?, &arguments(self.args))),
            // These kinds have no form of their own, so all members are shown.
            kind @ ("memory" | "path") => {
                Some(RequestSubject::Tool { name: kind.to_owned(), arguments: pretty(prompt.get()) })
            }
            "hook" => Some(subject::tool(self.tool_name.as_ref()?, &arguments(self.tool_args))),
            _ => None,
        }
    }

    /// Returns the effect of a yes for the rest of the session, as text and in Copilot's form; `None` if that is not offered.
    fn for_session(&self) -> Option<(String, Value)> {
        match self.kind.as_ref() {
            "commands" if self.can_offer_session_approval && !self.command_identifiers.is_empty() => {
                let names = self.command_identifiers.join(", ");
                let approval = json!({ "kind": "commands", "commandIdentifiers": self.command_identifiers });
                Some((format!("Yes, and don't ask again for {names} in this session"), approval))
            }
            "write" if self.can_offer_session_approval => {
                let label = "Yes, and don't ask again for changes to files in this session";
                Some((label.into(), json!({ "kind": "write" })))
            }
            "mcp" => {
                let (server, tool) = (self.server_name.as_ref()?, self.tool_name.as_ref()?);
                let approval = json!({ "kind": "mcp", "serverName": server, "toolName": tool });
                Some((format!("Yes, and don't ask again for {server}/{tool} in this session"), approval))
            }
            _ => None,
        }
    }

    fn title(&self) -> String {
        let line = self.full_command_text.as_deref().and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
        let file = self.file_name.as_deref().map(|name| format!("write {name}"));
        let path = self.path.as_deref().map(|path| format!("read {path}"));
        let tool = match (&self.server_name, &self.tool_name) {
            (Some(server), Some(tool)) => Some(format!("{server}/{tool}")),
            (None, Some(tool)) => Some(tool.clone()),
            _ => None,
        };
        let title = line.map(str::to_owned).or(file).or(path).or_else(|| self.url.clone()).or(tool);
        drafts::shortened(&title.unwrap_or_else(|| self.kind.clone().into_owned()))
    }

    /// Returns the text beside the question.
    fn message(&self) -> Option<String> {
        let bypass = self.request_sandbox_bypass.then(|| {
            let reason = self.request_sandbox_bypass_reason.as_deref().unwrap_or("no reason is given");
            format!("It runs outside of the sandbox: {reason}")
        });
        let parts = [self.intention.clone(), self.hook_message.clone(), self.warning.clone(), bypass];
        let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
        (!parts.is_empty()).then(|| parts.join("\n"))
    }
}

/// The members of a form that are not part of an elicitation.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FormData {
    pub(super) request_id: String,
    tool_call_id: Option<String>,
}

impl CopilotQuestion {
    /// Returns the length of the content, in bytes.
    pub(super) fn length(&self) -> usize {
        let (Self::Permission { prompt: text } | Self::Form { data: text }) = self;
        text.get().len()
    }

    /// Makes the question to the user.
    pub(super) fn request(&self, key: &RequestKey) -> AgentRequest {
        match self {
            Self::Permission { prompt } => permission(key, prompt),
            Self::Form { data } => {
                let native = Bytes::copy_from_slice(data.get().as_bytes());
                let form = elicitation::parse_form(data);
                let mut ask = match &form {
                    Some(form) => elicitation::ask(key, form, data, native),
                    None => unreadable(key, data, "its form cannot be read"),
                };
                ask.tool_call_id = object::<FormData>(data).and_then(|data| data.tool_call_id);
                match form {
                    Some(ElicitationForm::Form(_) | ElicitationForm::Confirmation) => ask,
                    // A page is opened on the machine of the terminal.
                    Some(ElicitationForm::Page { .. }) | None => only_at_terminal(ask),
                }
            }
        }
    }

    /// Returns the answer to Copilot for a decision; `None` if the terminal's dialog decides.
    ///
    /// # Errors
    /// Returns the reason why the decision does not fit the question.
    pub(super) fn answer(&self, decision: &Decision) -> Result<Option<Value>, String> {
        match self {
            Self::Permission { prompt } => Ok(match decision {
                Decision::Option { id, .. } if id == APPROVE_ONCE => Some(json!({ "kind": APPROVE_ONCE })),
                Decision::Option { id, .. } if id == SESSION => {
                    let prompted = object::<Prompted<'_>>(prompt);
                    let approval = prompted.and_then(|prompted| prompted.for_session());
                    approval.map(|(_, approval)| json!({ "kind": SESSION, "approval": approval }))
                }
                Decision::Option { id, reason, .. } if id == REJECT => Some(match reason {
                    Some(reason) => json!({ "kind": REJECT, "feedback": reason }),
                    None => json!({ "kind": REJECT }),
                }),
                _ => None,
            }),
            Self::Form { data } => match (elicitation::parse_form(data), decision) {
                (_, Decision::Expired | Decision::Withdrawn) | (None | Some(ElicitationForm::Page { .. }), _) => {
                    Ok(None)
                }
                (Some(ElicitationForm::Form(fields)), decision) => {
                    Ok(Some(match elicitation::filled(&fields, decision)? {
                        Some(content) => json!({ "action": "accept", "content": content }),
                        None => json!({ "action": "cancel" }),
                    }))
                }
                (Some(ElicitationForm::Confirmation), Decision::Option { id, .. }) if id == "accept" => {
                    Ok(Some(json!({ "action": "accept", "content": {} })))
                }
                (Some(ElicitationForm::Confirmation), Decision::Option { id, .. }) if id == "decline" => {
                    Ok(Some(json!({ "action": "decline" })))
                }
                (Some(ElicitationForm::Confirmation), _) => Ok(Some(json!({ "action": "cancel" }))),
            },
        }
    }

    /// Returns the path of the extension's request that sends the answer.
    pub(super) fn path(&self, key: &RequestKey) -> String {
        match self {
            Self::Permission { .. } => format!("/permission/{}", key.id()),
            Self::Form { .. } => format!("/question/{}", key.id()),
        }
    }

    /// Makes the question again, after an answer that does not fit.
    pub(super) fn ask_again(&self, key: &RequestKey, reason: &str, decision: &Decision) -> AgentRequest {
        match self {
            Self::Form { data } if let Some(form) = elicitation::parse_form(data) => {
                elicitation::ask_again(key, &form, data, reason, decision)
            }
            _ => self.request(key),
        }
    }
}

/// Returns whether the id of a question can be one of Copilot's: it becomes part of a path.
pub(super) fn is_id(id: &str) -> bool {
    (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn permission(key: &RequestKey, prompt: &RawValue) -> AgentRequest {
    let Some(prompted) = object::<Prompted<'_>>(prompt) else {
        return only_at_terminal(unreadable(key, prompt, "it is in no known form"));
    };
    let Some(subject) = prompted.subject(prompt) else {
        let ask = AgentRequest { title: prompted.title(), ..unreadable(key, prompt, "it is in no known form") };
        return only_at_terminal(ask);
    };
    let mut ask = with_options(blank(key, subject, prompt), &prompted);
    (ask.title, ask.message) = (prompted.title(), prompted.message());
    ask.tool_call_id.clone_from(&prompted.tool_call_id);
    ask
}

fn with_options(mut ask: AgentRequest, prompted: &Prompted<'_>) -> AgentRequest {
    let offer = |id: &str, label: &str, kind| Offer { id: id.into(), label: label.into(), kind, for_session: false };
    ask.options.push(offer(APPROVE_ONCE, "Yes", Choice::AllowOnce));
    if let Some((label, _)) = prompted.for_session() {
        ask.options.push(Offer { for_session: true, ..offer(SESSION, &label, Choice::AllowAlways) });
    }
    ask.options.push(offer(REJECT, "No", Choice::RejectOnce));
    ask.allow_reason = true;
    ask
}

fn unreadable(key: &RequestKey, data: &RawValue, reason: &'static str) -> AgentRequest {
    let subject = RequestSubject::Unreadable { reason, raw: pretty(data.get()) };
    AgentRequest { title: "Copilot asks".into(), ..blank(key, subject, data) }
}

fn only_at_terminal(ask: AgentRequest) -> AgentRequest {
    AgentRequest {
        observe_only: true,
        message: Some(AT_TERMINAL.into()),
        options: Vec::new(),
        allow_reason: false,
        ..ask
    }
}

fn blank(key: &RequestKey, subject: RequestSubject, data: &RawValue) -> AgentRequest {
    AgentRequest {
        subject,
        ..AgentRequest::new(
            key.clone(),
            RequestType::Permission,
            String::new(),
            jsonrpc::owned(data),
            Bytes::copy_from_slice(data.get().as_bytes()),
        )
    }
}
