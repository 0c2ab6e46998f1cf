//! Approvals by Codex's own reviewer in place of the user (`approvals_reviewer = "auto_review"`).

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::jsonrpc::{member, object, pretty};
use super::super::{AgentRequest, AgentReview, FolderClaim, RequestSubject, RuntimeEvent};
use super::{Codex, ask, text};
use plexus_protocol::NativeId;

/// The reviewer's name in receipts.
pub(super) const REVIEWER: &str = "Codex's reviewer";

/// The params of `item/autoApprovalReview/completed`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Completed<'a> {
    review_id: String,
    #[serde(borrow)]
    target_item_id: Option<&'a RawValue>,
    review: Review<'a>,
    action: &'a RawValue,
}

#[derive(Deserialize)]
struct Review<'a> {
    status: String,
    #[serde(borrow)]
    rationale: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Action<'a> {
    r#type: String,
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    argv: Option<Vec<String>>,
    cwd: Option<&'a RawValue>,
}

impl Codex {
    /// Reads the reviewer of a thread's approvals from the response to opening it.
    pub(super) fn note_reviewer(&mut self, result: &RawValue) {
        let reviewer = member::<String>(result, "approvalsReviewer");
        self.state.reviewed |= reviewer.is_some_and(|reviewer| reviewer != "user");
    }

    /// Returns the decision in a notification of a review; `None` if it has none that can be read.
    pub(super) fn review(&mut self, frame: &Bytes, native: &NativeId, raw: &RawValue) -> Option<RuntimeEvent> {
        let Completed { review_id, target_item_id, review, action } = object(raw)?;
        let allowed = match review.status.as_str() {
            "approved" => true,
            "denied" => false,
            // The review timed out or was aborted: there is no decision.
            _ => return None,
        };
        let Action { r#type: kind, command, argv, cwd } = object(action)?;
        let cwd = text(cwd).map(FolderClaim::Field);
        let subject = match (kind.as_str(), text(command), argv) {
            ("command", Some(line), _) => RequestSubject::Command { argv: vec![line], cwd },
            ("execve", _, Some(argv)) if !argv.is_empty() => RequestSubject::Command { argv, cwd },
            _ => RequestSubject::Tool { name: kind.clone(), arguments: pretty(action.get()) },
        };
        let title = match &subject {
            RequestSubject::Command { argv, .. } => argv.join(" "),
            _ => kind,
        };
        let ask = AgentRequest {
            title,
            subject,
            options: ask::review_options(),
            observe_only: true,
            tool_call_id: text(target_item_id),
            ..ask::empty_request(self.key(&review_id), raw, frame)
        };
        self.state.reviewed = true;
        let review = AgentReview { by: REVIEWER.into(), allowed, reason: text(review.rationale) };
        Some(RuntimeEvent::Reviewed { native: native.clone(), ask: Box::new(ask), review })
    }
}
