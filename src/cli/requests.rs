//! Reading a complete request, and answering one.

use plexus_client::calls;
use plexus_protocol::{Answer, Receipt, Request};

use super::client::{Client, Response};
use super::failure::CommandFailure;
use super::random::random_id;

/// Reads a complete request whose display was truncated.
pub(crate) async fn whole_request(client: &Client, request: &Request) -> anyhow::Result<Response<Request>> {
    client.request(calls::request(&request.request_id), "reading the request").await
}

/// The outcome of sending an answer.
pub(crate) enum AnswerOutcome {
    /// The answer was accepted.
    Won(Response<Receipt>),
    /// Another answer was first, or the request had closed.
    Lost(Response<Receipt>),
}

/// Sends an answer bound to the displayed version of the request.
pub(crate) async fn send_answer(
    client: &Client,
    request: &Request,
    mut answer: Answer,
) -> anyhow::Result<AnswerOutcome> {
    if !request.digest.is_empty() {
        answer.digest = Some(request.digest.clone());
    }
    let key = random_id()
        .map_err(|error| CommandFailure::plain(format!("the system provides no random numbers: {error}")))?;
    let call = calls::answer(&request.request_id, &answer).key(key);
    match client.try_request(call, "answering").await? {
        Ok(receipt) => Ok(AnswerOutcome::Won(receipt)),
        Err(mut refused) => match refused.error.data.receipt.take() {
            Some(value) => Ok(AnswerOutcome::Lost(Response { value, text: refused.text })),
            None => Err(refused.explain("answering").into()),
        },
    }
}
