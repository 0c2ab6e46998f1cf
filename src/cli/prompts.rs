//! Prompts: their text on the command line, and sending one.

use std::io::Read as _;

use plexus_client::calls;
use plexus_protocol::SessionId;
use plexus_protocol::api::sessions::{AcceptedPrompt, NewPrompt};

use super::client::{Client, Response};
use super::failure::CommandFailure;

/// Maximum length of a prompt read from stdin, in bytes: the gateway's limit.
const PROMPT_MAX: u64 = 16 << 20;

/// The text of a prompt; `-` reads stdin.
pub(super) fn prompt_text(argument: String) -> anyhow::Result<String> {
    if argument != "-" {
        return Ok(argument);
    }
    let mut text = Vec::new();
    std::io::stdin().lock().take(PROMPT_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > PROMPT_MAX {
        return Err(CommandFailure::plain(format!("the prompt on stdin is longer than {PROMPT_MAX} bytes: send less")));
    }
    let text = String::from_utf8(text)
        .map_err(|_| CommandFailure::plain("the prompt on stdin is not UTF-8 text: convert it first"))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Sends a prompt.
pub(crate) async fn send_prompt(
    client: &Client,
    session: &SessionId,
    text: &str,
) -> anyhow::Result<Response<AcceptedPrompt>> {
    let prompt = NewPrompt { text: Some(text.to_owned()), content: None };
    client.request(calls::prompt(session, &prompt), "prompting").await
}
