//! MCP over HTTP without sessions: each message is answered by a server of its own.
//!
//! Source: MCP 2025-11-25, "Transports", Streamable HTTP. A server may answer each POST with one JSON object, and need not offer a
//! stream of its own.

use std::convert::Infallible;
use std::future::Future;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, serve_directly, serve_server};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

use super::stdio::{Unread, read_message};
use super::{CallTimes, Carrier, Server};

/// Maximum number of the server's messages for one request that are queued for inspection: progress is not forwarded.
const REPLIES_QUEUED: usize = 4;

/// Handles one message of an agent; `None` if it has no reply (a notification). Cancelling it cancels the call.
pub async fn respond(carrier: impl Carrier, message: &[u8]) -> Option<Vec<u8>> {
    let error = |id, error: ErrorData| serde_json::to_vec(&ServerJsonRpcMessage::error(error, id)).ok();
    let request = match read_message(message) {
        Ok(JsonRpcMessage::Request(request)) => request,
        Ok(_) | Err(Unread::Ignored(None)) => return None,
        Err(Unread::Refused(id, reason)) => return error(id, *reason),
        Err(Unread::Ignored(Some(reason))) => {
            let reason = format!("the body is not an MCP message: {reason}");
            return error(None, ErrorData::new(ErrorCode::PARSE_ERROR, reason, None));
        }
    };
    let (id, begins) = (request.id.clone(), matches!(request.request, ClientRequest::InitializeRequest(_)));
    let (sender, mut replies) = mpsc::channel(REPLIES_QUEUED);
    let transport = RequestTransport { message: Some(JsonRpcMessage::Request(request)), replies: sender };
    let server = Server::new(carrier, CallTimes::default());
    let serve = async {
        if begins {
            // The server waits for the agent's next message, which another server gets.
            drop(serve_server(server, transport).await);
        } else {
            drop(serve_directly(server, transport, None).waiting().await);
        }
        std::future::pending::<Infallible>().await
    };
    let reply = async {
        loop {
            match replies.recv().await? {
                reply @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => return Some(reply),
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
            }
        }
    };
    let reply = tokio::select! {
        reply = reply => reply,
        never = serve => match never {},
    };
    match reply {
        Some(reply) => serde_json::to_vec(&reply).ok(),
        None => error(Some(id), ErrorData::internal_error("the request was not answered", None)),
    }
}

/// The connection of a server that receives one message.
struct RequestTransport {
    message: Option<ClientJsonRpcMessage>,
    replies: mpsc::Sender<ServerJsonRpcMessage>,
}

impl Transport<RoleServer> for RequestTransport {
    type Error = std::io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
        let replies = self.replies.clone();
        async move {
            // The receiver is closed if the request was cancelled.
            let _ = replies.send(message).await;
            Ok(())
        }
    }

    /// Receives the message, and waits forever after it. Cancellation safe.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        match self.message.take() {
            Some(message) => Some(message),
            // The end of the connection would also end the call.
            None => std::future::pending().await,
        }
    }

    async fn close(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
