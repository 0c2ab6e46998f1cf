//! Errors of the gateway, over HTTP (RFC 9457) and over JSON-RPC.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::{AnyOfBuilder, Object, Schema};
use utoipa::openapi::{Ref, RefOr};

use super::history::ResumeVerdict;
use super::worktrees::WorktreeLosses;
use crate::known_items::known_value;
use crate::schema::Json;
use crate::{Cursor, Receipt, Risk, Scope};

/// An error, as RFC 9457 defines it. `code` is stable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProblemDetails {
    #[doc = concat!("A URN that ends in `code`.")]
    #[serde(default, rename = "type")]
    #[schema(required)]
    pub kind: String,
    #[doc = concat!("The reason phrase of the status.")]
    #[serde(default)]
    #[schema(required)]
    pub title: Cow<'static, str>,
    #[doc = concat!("The HTTP status.")]
    #[serde(default)]
    #[schema(required)]
    pub status: u16,
    #[doc = concat!("The text for users: the problem, and the fix if there is one.")]
    #[serde(default)]
    #[schema(required)]
    pub detail: String,
    #[doc = concat!("The stable code; see [`codes`](crate::codes).")]
    pub code: Cow<'static, str>,
    #[doc = concat!("Further members, by `code`.")]
    #[serde(flatten)]
    pub more: Box<ProblemMembers>,
}

/// Returns the schema of a receipt's members, or of none.
fn perhaps_receipt() -> RefOr<Schema> {
    AnyOfBuilder::new().item(Ref::from_schema_name(Receipt::name())).item(Object::new()).into()
}

/// Further members of a problem, by its `code`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProblemMembers {
    /// `scope_missing`: the missing scope.
    #[serde(default, deserialize_with = "known_value", skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// `risk_too_high`: the request's risk.
    #[serde(default, deserialize_with = "known_value", skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// `risk_too_high`: the maximum risk that the device may answer.
    #[serde(default, deserialize_with = "known_value", skip_serializing_if = "Option::is_none")]
    pub approve_up_to: Option<Risk>,
    /// `risk_too_high`: the reasons for the risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_reasons: Option<Vec<String>>,
    /// `risk_too_high`: names of devices that may answer, as far as the calling device may know them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<Vec<String>>,
    /// `stale_surface`: the current revision of the surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rev: Option<u64>,
    /// For an invalid answer: the agent's field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// `bad_body`: the place in the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `over_limit`: the account that is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Cow<'static, str>>,
    /// `too_large`, `prompt_too_large`, `over_limit`: the limit, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// `runtime_not_started`: the end of what the program wrote to stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// `worktree_unsaved`: the changes that would be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<WorktreeLosses>,
    /// `runtime_refused`: the runtime's error code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_code: Option<i64>,
    /// `runtime_refused`: the runtime's error data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Json>)]
    pub runtime_data: Option<Value>,
    /// For a cursor that cannot be resumed from: the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<ResumeVerdict>,
    /// For a cursor that cannot be resumed from: the oldest one that can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Cursor>,
    /// AG-UI: the interrupt.
    #[serde(default, rename = "interruptId", skip_serializing_if = "Option::is_none")]
    pub interrupt_id: Option<String>,
    /// `resume_partial`: the interrupts without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<String>>,
    /// The winner's receipt, if the request was closed already.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = perhaps_receipt)]
    pub receipt: Option<Receipt>,
}

/// A JSON-RPC error. `data.code` is stable, and the same as over HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Failure)]
pub struct RpcFailure {
    #[doc = concat!("The number that JSON-RPC or this protocol assigns.")]
    pub code: i64,
    #[doc = concat!("The text for users.")]
    pub message: String,
    #[doc = concat!("The stable code and its members.")]
    pub data: RpcFailureData,
}

/// The `data` of a JSON-RPC error: `code`, and the members that the problem has over HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = FailureData)]
pub struct RpcFailureData {
    #[doc = concat!("The stable code, the same as over HTTP.")]
    pub code: Cow<'static, str>,
    #[doc = concat!("The members that the problem has over HTTP.")]
    #[serde(flatten)]
    pub more: Box<ProblemMembers>,
}
