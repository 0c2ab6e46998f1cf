//! Replies of the gateway to calls.

use plexus_client::{ApiError, Error, GatewayReply};
use serde::de::DeserializeOwned;

use super::sanitize;

/// Maximum length of the reason of a failed call, in columns.
pub(crate) const REASON_MAX: usize = 300;

/// The reply to a call, or the reason why there is none.
#[derive(Debug)]
pub(crate) struct CallReply(Result<GatewayReply, String>);

impl CallReply {
    pub(crate) fn new(outcome: Result<GatewayReply, Error>) -> Self {
        Self(outcome.map_err(|why| why.to_string()))
    }

    /// The HTTP status; `None` without a reply.
    pub(crate) fn status(&self) -> Option<u16> {
        self.0.as_ref().ok().map(|reply| reply.status)
    }

    /// The response, or the reason why there is none.
    pub(crate) fn read<R: DeserializeOwned>(&self) -> Result<R, String> {
        self.reply()?.read().map_err(|why| sanitize::line(&why.to_string(), REASON_MAX))
    }

    /// The response as text, or the reason why there is none.
    pub(crate) fn text(&self) -> Result<&str, String> {
        self.reply().map(|reply| reply.text.as_str())
    }

    /// The reason why the call failed.
    pub(crate) fn problem(&self) -> Option<String> {
        self.reply().err()
    }

    /// The refusal of the gateway.
    pub(crate) fn refusal(&self) -> Option<ApiError> {
        let reply = self.0.as_ref().ok().filter(|reply| !reply.is_ok())?;
        Some(reply.refusal())
    }

    fn reply(&self) -> Result<&GatewayReply, String> {
        match &self.0 {
            Ok(reply) if reply.is_ok() => Ok(reply),
            Ok(reply) => Err(reason(&reply.refusal())),
            Err(why) => Err(sanitize::line(why, REASON_MAX)),
        }
    }
}

/// The reason of a refusal; one without a code is not from the gateway.
fn reason(refusal: &ApiError) -> String {
    match refusal.status {
        _ if !refusal.code.is_empty() => sanitize::line(&refusal.message, REASON_MAX),
        404 | 405 => "the gateway does not support this: is it an older version?".to_owned(),
        status => format!("the gateway answered {status}"),
    }
}
