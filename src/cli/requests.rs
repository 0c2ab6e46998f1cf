//! Reading a whole request, and answering one.

use plexus_protocol::Request;
use serde_json::Value;

use super::client::Client;
use super::failure::CommandFailure;
use super::random::random_id;

/// The whole of a request whose display was truncated.
pub(crate) async fn whole_request(client: &Client, request: &Request) -> anyhow::Result<Request> {
    client.get(&format!("/v1/requests/{}", request.request_id), "reading the request").await
}

/// The outcome of an answer.
pub(crate) enum AnswerOutcome {
    /// This answer counts.
    Won(Value),
    /// Another answer was first, or the request had closed: the receipt.
    Lost(Value),
}

/// Sends an answer bound to the request as it was shown.
pub(crate) async fn send_answer(
    client: &Client,
    request: &Request,
    mut answer: Value,
) -> anyhow::Result<AnswerOutcome> {
    if !request.digest.is_empty() {
        answer["digest"] = request.digest.as_str().into();
    }
    let key = random_id()
        .map_err(|error| CommandFailure::plain(format!("the system provides no random numbers: {error}")))?;
    let path = format!("/v1/requests/{}/answer", request.request_id);
    match client.try_post(&path, &answer, Some(&key), "answering").await? {
        Ok(receipt) => Ok(AnswerOutcome::Won(serde_json::from_str(&receipt).unwrap_or_default())),
        Err(refused) if refused.problem["resolved_by"].is_object() => Ok(AnswerOutcome::Lost(refused.problem)),
        Err(refused) => Err(refused.explain("answering").into()),
    }
}
