//! Shared terminals (`plexus term`) for the page: their list, and one of them over a WebSocket.
//!
//! The gateway stores nothing about them. Their holders outlive it, and the next gateway finds them in the same folder. Output that a
//! slow client has not read waits in the holder, which replaces it with a snapshot beyond its bound.
//!
//! Text frames carry JSON, binary frames the terminal's output: `snapshot` and one binary frame that draws it on an empty terminal, then
//! binary frames as output arrives; `snapshot` again when the size has changed or the client fell behind; `exited` or `gone` at the end.
//! A client with the scope `type` sends `input`, and `size` to become the owner.

use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use plexus_protocol::{Cursor, TerminalId, object};
use plexus_terminal::attachment::{self, TerminalReader, TerminalWriter};
use plexus_terminal::folder::{self, TerminalError};
use plexus_terminal::model::TerminalSize;
use plexus_terminal::wire::{AttachmentStatus, FromHost, TerminalInfo, ToHost};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use plexus_auth::{Caller, Permit, Target, Type};
use plexus_ledger::Charge;
use plexus_risk::Effect;
use plexus_router::described::HANDSHAKE;
use plexus_router::frames::{ws_binary, ws_text};
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{RouteResult, json, no_such};
use plexus_router::routes::{GET, NOTHING, WATCH, route};
use plexus_router::socket_protocol::{Reply, SocketProtocol};
use plexus_router::{Core, Problem, ws};
use plexus_sessions::check_effect;
use std::path::PathBuf;

/// Maximum length of the text of one `input`, in bytes; longer text is sent in several.
const INPUT_MAX: usize = 64 << 10;

/// The state of shared terminals.
#[derive(Clone)]
pub struct TerminalsState {
    /// The kernel.
    pub core: Core,
    /// The folder with the sockets of shared terminals.
    pub folder: PathBuf,
}

/// Returns the routes of shared terminals.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<TerminalsState>> {
    vec![
        route(GET, "/v1/terminals", WATCH, NOTHING, "Shared terminals; none for a device that is limited to some runtimes or sessions", list)
            .response::<Terminals>(200),
        // Watching needs the scope `watch`; input needs `type`.
        route(GET, "/v1/terminals/{id}/ws", WATCH, NOTHING, "A shared terminal over a WebSocket: its screen, then its output", ws)
            .empty(101).with(HANDSHAKE),
    ]
}

/// Shared terminals, the oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Terminals {
    /// The terminals that the caller may see.
    terminals: Vec<TerminalInfo>,
}

/// `GET /v1/terminals`.
async fn list(state: TerminalsState, call: Call) -> RouteResult {
    let mut terminals = Vec::new();
    if call.caller()?.sees_all() {
        let dir = state.folder.clone();
        let listed = tokio::task::spawn_blocking(move || folder::list(&dir)).await;
        terminals = listed.map_err(|_| Problem::internal())?;
    }
    json(StatusCode::OK, &Terminals { terminals })
}

/// `GET /v1/terminals/{id}/ws`.
async fn ws(state: TerminalsState, call: Call) -> RouteResult {
    let missing = || no_such("terminal_not_found", "terminal");
    let caller = call.caller()?.clone();
    let id: TerminalId = call.id(missing)?;
    // A terminal belongs to no runtime and no session.
    if !caller.sees_all() {
        return Err(missing());
    }
    let typing = match caller.permit::<Type>(Target::Gateway) {
        Ok(permit) => check_effect(caller.device(), Effect::RunProgram)
            .map(|()| permit)
            .map_err(|refusal| ("risk_too_high", refusal.to_string())),
        Err(_) => {
            let fix = "pair it again with `plexus pair --scope watch,type --approve-up-to danger`";
            Err(("scope_missing", format!("this device may not type in terminals: {fix}")))
        }
    };
    let attached = attachment::attach(&state.folder, &id, typing.is_ok()).await;
    let (_, reader, writer) = attached.map_err(|reason| match reason {
        TerminalError::NotFound(_) => missing(),
        reason => Problem::new(StatusCode::BAD_GATEWAY, "terminal_unusable", format!("the terminal {id}: {reason}")),
    })?;
    let charge = state.core.account(&caller).nothing();
    Ok(upgrade(
        state.core,
        caller,
        call,
        TerminalSocket { reader, writer, typing, charge, attachment: None, ended: false },
    ))
}

fn upgrade(core: Core, caller: Caller, call: Call, protocol: TerminalSocket) -> Response {
    ws::upgrade(core, caller, call.parts, protocol)
}

/// A message to the client.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ToPage {
    /// The next binary frame draws the screen on an empty terminal of this size.
    Snapshot { size: TerminalSize, owner: bool, may_type: bool },
    /// The program ended; the connection ends.
    Exited { code: Option<i32>, signal: Option<i32> },
    /// The terminal no longer exists; the connection ends.
    Gone {
        #[serde(rename = "why")]
        reason: String,
    },
    /// A message was not accepted.
    Refused { code: &'static str, detail: String },
}

impl ToPage {
    fn write(&self, out: &mut Vec<u8>) {
        // The serialization of these messages cannot fail.
        ws_text(out, &serde_json::to_vec(self).unwrap_or_default());
    }

    fn frame(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn refused(code: &'static str, detail: impl Into<String>) -> Vec<u8> {
        Self::Refused { code, detail: detail.into() }.frame()
    }
}

/// A message of the client.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum FromPage {
    /// Typed text.
    Input { data: String },
    /// The client's size, by which it becomes the owner.
    Size { rows: u16, cols: u16 },
}

/// A page that displays a terminal.
struct TerminalSocket {
    reader: TerminalReader,
    writer: TerminalWriter,
    /// The permit to type, or the code and text of the refusal.
    typing: Result<Permit<Type>, (&'static str, String)>,
    /// The charge for the message that is being read.
    charge: Charge,
    attachment: Option<AttachmentStatus>,
    /// `true` if the last message was sent.
    ended: bool,
}

impl SocketProtocol for TerminalSocket {
    fn message(&mut self, text: &str) -> Option<Reply> {
        let refuse = |code, detail: String| -> Option<Reply> {
            Some(Box::pin(std::future::ready(ToPage::refused(code, detail))))
        };
        let message = match object::from_str::<FromPage>(text) {
            Ok(message) => message,
            Err(reason) => return refuse("bad_message", format!("the message is not understood: {reason}")),
        };
        if let Err((code, reason)) = &self.typing {
            return refuse(*code, reason.clone());
        }
        let writer = self.writer.clone();
        match message {
            FromPage::Input { data } if data.len() > INPUT_MAX => {
                refuse("too_large", format!("send at most {INPUT_MAX} bytes of input in a message"))
            }
            FromPage::Input { data } => Some(Box::pin(async move {
                match writer.input(Bytes::from(data)).await {
                    Ok(()) => Vec::new(),
                    Err(reason) => ToPage::refused("not_typed", reason.to_string()),
                }
            })),
            FromPage::Size { rows, cols } => match (TerminalSize { rows, cols }).within_limits() {
                Some(size) => Some(Box::pin(async move {
                    match writer.send(&ToHost::Own(size)).await {
                        Ok(()) => Vec::new(),
                        Err(reason) => ToPage::refused("not_typed", reason.to_string()),
                    }
                })),
                None => refuse("bad_message", "a size has at least one line and one column".into()),
            },
        }
    }

    fn initialized(&self) -> bool {
        true
    }

    fn next_frames(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(async {
            if self.ended {
                return None;
            }
            loop {
                let charge = &mut self.charge;
                let resize = |bytes| charge.resize(bytes).map_err(|full| format!("over_limit: {full}"));
                let mut out = Vec::new();
                match self.reader.next(resize).await {
                    FromHost::Welcome(_) | FromHost::TypeIf(_) => continue,
                    // A snapshot follows.
                    FromHost::Status(attachment) => {
                        self.attachment = Some(attachment);
                        continue;
                    }
                    FromHost::Snapshot(drawing) => {
                        let Some(AttachmentStatus { size, owner, .. }) = self.attachment else { continue };
                        ToPage::Snapshot { size, owner, may_type: self.typing.is_ok() }.write(&mut out);
                        ws_binary(&mut out, &drawing);
                    }
                    FromHost::Output(bytes) => ws_binary(&mut out, &bytes),
                    FromHost::Exited(exit) => {
                        self.ended = true;
                        ToPage::Exited { code: exit.code, signal: exit.signal }.write(&mut out);
                    }
                    FromHost::Bye(reason) => {
                        self.ended = true;
                        ToPage::Gone { reason }.write(&mut out);
                    }
                }
                return Some(out);
            }
        })
    }

    fn cursor(&self) -> Option<Cursor> {
        None
    }
}
