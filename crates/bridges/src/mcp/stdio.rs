//! The transport: one JSON-RPC message per line. The library's own transport reads lines up to its limit and gives a longer one no reply,
//! so that an agent would wait for its own timeout.

use std::future::Future;
use std::io::Write as _;
use std::sync::Arc;

use plexus_protocol::text::line;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, Semaphore, mpsc, watch};

/// Maximum length of an agent's message, in bytes. A longer one is answered with an error.
pub(super) const LINE_MAX: usize = 8 << 20;
/// Number of bytes stored of the beginning and of the end of a longer message, to find its id.
const ENDS_STORED: usize = 1 << 10;
/// Maximum number of lines read ahead. Each may be [`LINE_MAX`] long.
const LINES_QUEUED: usize = 1;
/// Maximum number of messages queued for an agent that does not read; at this many its own are not read either.
const MESSAGES_QUEUED: usize = 64;

/// A line of the agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AgentLine {
    Whole(Vec<u8>),
    /// The beginning and the end of a line longer than the limit.
    TooLong(Vec<u8>, Vec<u8>),
}

/// The transport on stdin and stdout.
pub(super) struct Stdio<W> {
    lines: mpsc::Receiver<AgentLine>,
    out: Arc<Mutex<W>>,
    capacity: Arc<Semaphore>,
    /// `true` if the agent has sent `initialize`.
    is_initialized: bool,
    /// `true` after the end of stdin.
    closed: watch::Sender<bool>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Stdio<W> {
    /// Makes a transport, and a receiver that reports the agent's end.
    pub(super) fn new(input: impl AsyncRead + Send + Unpin + 'static, output: W) -> (Self, watch::Receiver<bool>) {
        let (queue, lines) = mpsc::channel(LINES_QUEUED);
        let (closed, is_closed) = watch::channel(false);
        tokio::spawn(async move {
            let mut input = BufReader::new(input);
            // An error of stdin counts as its end.
            while let Ok(Some(line)) = next_line(&mut input, LINE_MAX).await {
                if queue.send(line).await.is_err() {
                    return;
                }
            }
        });
        let out = Arc::new(Mutex::new(output));
        let capacity = Arc::new(Semaphore::new(MESSAGES_QUEUED));
        (Self { lines, out, capacity, is_initialized: false, closed }, is_closed)
    }

    /// Reads the message of a line; `None` if it is ignored, or was answered.
    fn message(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        match read_message(line) {
            Ok(JsonRpcMessage::Request(request)) => {
                self.is_initialized |= matches!(request.request, ClientRequest::InitializeRequest(_));
                Some(JsonRpcMessage::Request(request))
            }
            // A message other than a request before `initialize` would end the service.
            Ok(message) => self.is_initialized.then_some(message),
            Err(Unread::Refused(id, error)) => {
                self.reply_error(id, *error);
                None
            }
            Err(Unread::Ignored(None)) => None,
            // A message that cannot be answered is reported on stderr, as by other servers.
            Err(Unread::Ignored(Some(reason))) => {
                log(&format!("a message of the agent was ignored: {reason}"));
                None
            }
        }
    }

    fn reply_error(&self, id: Option<RequestId>, error: ErrorData) {
        tokio::spawn(self.write(&JsonRpcMessage::error(error, id)));
    }

    fn write(&self, message: &ServerJsonRpcMessage) -> impl Future<Output = std::io::Result<()>> + Send + use<W> {
        let text = serde_json::to_vec(message);
        let (out, capacity) = (Arc::clone(&self.out), Arc::clone(&self.capacity));
        async move {
            let mut text = text?;
            text.push(b'\n');
            let _permit = capacity.acquire().await;
            let mut out = out.lock().await;
            out.write_all(&text).await?;
            out.flush().await
        }
    }
}

/// The reason why a message does not reach the service.
#[derive(Debug)]
pub(super) enum Unread {
    /// The message is answered with this error.
    Refused(Option<RequestId>, Box<ErrorData>),
    /// The message gets no reply; the reason, if it does not follow the protocol.
    Ignored(Option<String>),
}

/// Reads a message of an agent.
pub(super) fn read_message(text: &[u8]) -> Result<ClientJsonRpcMessage, Unread> {
    #[derive(Deserialize)]
    struct Head {
        id: Option<RequestId>,
        method: Option<Value>,
    }
    let message = match serde_json::from_slice::<ClientJsonRpcMessage>(text) {
        Ok(message) => message,
        Err(reason) => {
            return Err(match serde_json::from_slice::<Head>(text) {
                Ok(Head { id: Some(id), method: Some(_) }) => {
                    let error = ErrorData::invalid_request("the message is not an MCP request", None);
                    Unread::Refused(Some(id), Box::new(error))
                }
                // Notifications of other versions are ignored.
                Ok(Head { method: Some(_), .. }) => Unread::Ignored(None),
                _ => Unread::Ignored(Some(line(&reason.to_string(), 200))),
            });
        }
    };
    match &message {
        // Versions of MCP without `initialize` begin with this request. The refusal tells an agent to fall back to `initialize`; the
        // library's would not.
        JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::DiscoverRequest(_)) => {
            let error = ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, "Method not found", None);
            Err(Unread::Refused(Some(request.id.clone()), Box::new(error)))
        }
        _ => Ok(message),
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for Stdio<W> {
    type Error = std::io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
        self.write(&message)
    }

    /// Receives the next message. Cancellation safe.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            drop(self.capacity.acquire().await);
            match self.lines.recv().await {
                Some(AgentLine::Whole(line)) => {
                    if let Some(message) = self.message(&line) {
                        return Some(message);
                    }
                }
                Some(AgentLine::TooLong(beginning, end)) => {
                    let message = format!("the message is longer than {LINE_MAX} bytes and was ignored");
                    self.reply_error(id_of(&beginning, &end), ErrorData::invalid_request(message, None));
                }
                None => {
                    self.closed.send_replace(true);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> std::io::Result<()> {
        self.out.lock().await.flush().await
    }
}

/// Writes to stderr, which agents store in their log.
pub(super) fn log(message: &str) {
    let _ = writeln!(std::io::stderr(), "plexus mcp: {message}");
}

/// Reads the next line that is not empty, without its line feed; `None` at the end of the stream.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin), limit: usize) -> std::io::Result<Option<AgentLine>> {
    let mut line = Vec::new();
    // The end of a line that is too long; its beginning is in `line`.
    let mut end: Option<Vec<u8>> = None;
    loop {
        let buffer = input.fill_buf().await?;
        let (consumed, ended) = match memchr::memchr(b'\n', buffer) {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        let text = buffer.get(..consumed).unwrap_or_default();
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        match &mut end {
            Some(end) => end.extend_from_slice(text),
            None => line.extend_from_slice(text),
        }
        if end.is_none() && line.len() > limit {
            end = Some(line.get(ENDS_STORED.min(line.len())..).unwrap_or_default().to_vec());
            line.truncate(ENDS_STORED);
            line.shrink_to_fit();
        }
        if let Some(end) = &mut end {
            let surplus = end.len().saturating_sub(ENDS_STORED);
            end.drain(..surplus);
            end.shrink_to(2 * ENDS_STORED);
        }
        input.consume(consumed);
        if !ended {
            continue;
        }
        if let Some(end) = end {
            return Ok(Some(AgentLine::TooLong(line, end)));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(AgentLine::Whole(line)));
        }
        if consumed == 0 {
            return Ok(None);
        }
        line.clear();
    }
}

/// The id of a request of which only the beginning and the end are known. Agents write `id` among the first members or as the last one.
fn id_of(beginning: &[u8], end: &[u8]) -> Option<RequestId> {
    let (beginning, end) = (String::from_utf8_lossy(beginning), String::from_utf8_lossy(end));
    let last = end.trim_end().strip_suffix('}').and_then(|end| {
        let (_, id) = end.rsplit_once("\"id\"")?;
        serde_json::from_str(id.trim_start().strip_prefix(':')?).ok()
    });
    last.or_else(|| {
        // The search ends at the parameters, which may have an `id` of their own.
        let head = beginning.split("\"params\"").next()?;
        let (_, id) = head.split_once("\"id\"")?;
        let id = id.trim_start().strip_prefix(':')?;
        serde_json::Deserializer::from_str(id).into_iter().next()?.ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_have_a_limit_and_keep_both_ends() {
        let long =
            format!("{}{}{}\n\n\nshort\nlast", "a".repeat(ENDS_STORED), "b".repeat(9000), "c".repeat(ENDS_STORED));
        let mut input = BufReader::with_capacity(100, long.as_bytes());
        let (beginning, end) = ("a".repeat(ENDS_STORED).into_bytes(), "c".repeat(ENDS_STORED).into_bytes());
        assert_eq!(next_line(&mut input, 8000).await.unwrap(), Some(AgentLine::TooLong(beginning, end)));
        assert_eq!(next_line(&mut input, 8000).await.unwrap(), Some(AgentLine::Whole(b"short".to_vec())));
        assert_eq!(next_line(&mut input, 8000).await.unwrap(), Some(AgentLine::Whole(b"last".to_vec())));
        assert_eq!(next_line(&mut input, 8000).await.unwrap(), None);
        let mut input = BufReader::with_capacity(3, &b"12345678\n1234567\n"[..]);
        assert!(matches!(next_line(&mut input, 7).await.unwrap(), Some(AgentLine::TooLong(..))));
        assert_eq!(next_line(&mut input, 7).await.unwrap(), Some(AgentLine::Whole(b"1234567".to_vec())));
    }

    #[test]
    fn id_is_found_at_either_end() {
        for (beginning, end, id) in [
            (
                r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"id":6"#,
                r#"aaa"}}"#,
                Some(RequestId::Number(5)),
            ),
            (
                r#"{"method":"tools/call","params":{"id":6"#,
                r#""}},"jsonrpc":"2.0","id":7}"#,
                Some(RequestId::Number(7)),
            ),
            (
                r#"{"id" : "x", "params":{"#,
                r#"[{"id":"bar"},{"component":"Text"}]}}"#,
                Some(RequestId::String("x".into())),
            ),
            (r#"{"method":"tools/call","params":{"id":6,"#, r#""}}"#, None),
            ("\u{0}\u{1}", "", None),
        ] {
            assert_eq!(id_of(beginning.as_bytes(), end.as_bytes()), id, "{beginning} {end}");
        }
    }
}
