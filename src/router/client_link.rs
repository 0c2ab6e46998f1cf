//! A client's connection as streaming frontends use it. A plain connection is the socket itself, to which the fans
//! ([`fanout`](super::fanout)) write; over TLS hyper writes, and the connection reads the log at its client's own pace
//! ([`streamed`](super::streamed)). The bytes are the same.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use tokio::time::Instant;

use super::fanout::{Conn, EventFan, FanKey, Fans, Flow, Subscribe};
use super::frames::{Encoder, Framing, Projection};
use super::listen::{ConnHandle, HeldCharge, RawHandle, UpgradedIo, take_over};
use super::streamed::{Followed, Streamed};
use plexus_ledger::Account;
use plexus_protocol::{Cursor, Position};
use plexus_sessions::Filter;

/// A client's connection. Cheap to clone.
///
/// The task that serves a connection calls [`flush`](Self::flush), and [`wait`](Self::wait) with its result, until the connection ends;
/// [`leave`](Self::leave) at the end stops its subscriptions.
#[derive(Clone)]
pub(super) enum ClientLink {
    /// The socket of a plain connection; with the response that is held while the frontend writes, if there is one.
    Raw(Arc<Conn>, Option<Arc<HeldResponse>>),
    /// The link of a connection that hyper or TLS writes.
    Streamed(Arc<Streamed>),
}

/// Prevents hyper from writing to a plain connection's socket.
pub(super) struct HeldResponse {
    handle: RawHandle,
    _held: HeldCharge,
}

/// The source of the events of a subscription. Opened before the log's head is read, so that it is never behind a promised head.
pub(super) struct EventFeed(Feed);

enum Feed {
    Fan(Arc<EventFan>),
    Log(Filter, Encoder),
}

impl EventFeed {
    /// Opens a feed for the subscription of a WebSocket or of a response of server-sent events. `raw`: the connection is a plain one.
    pub(super) fn open(fans: &Fans, raw: bool, framing: Framing, filter: Filter, projection: Projection) -> Self {
        Self(if raw {
            Feed::Fan(fans.fan(FanKey { filter, projection, framing }))
        } else {
            Feed::Log(filter, fans.encoder(projection, framing))
        })
    }
}

/// A subscription to add.
pub(super) struct NewSubscription {
    /// The requested name: a session's id, or `*`.
    pub(super) name: Arc<str>,
    /// The source of its events.
    pub(super) feed: EventFeed,
    /// `true` if the client can and may answer requests: over a plain connection it is served first.
    pub(super) answers: bool,
    /// The position after which the subscription begins.
    pub(super) after: Position,
    /// The position after which `live` is sent.
    pub(super) live_at: Position,
    /// `true` if `live` carries a cursor of its own on transports that have one.
    pub(super) live_id: bool,
}

/// A response of server-sent events that has not begun.
pub(super) enum StreamStart {
    /// A plain connection, whose socket is taken over once the head is written.
    Raw(RawHandle, HeldCharge),
    /// The body of a response, which hyper writes.
    Streamed(Arc<Streamed>),
}

impl StreamStart {
    /// Returns the framing of a response over this connection.
    pub(super) fn framing(handle: &ConnHandle) -> Framing {
        if handle.raw.is_some() { Framing::Sse } else { Framing::SseBody }
    }

    /// Returns the body of the response, and the handle with which to start it.
    pub(super) fn new(handle: &ConnHandle, fans: &Fans, account: &Account) -> (Body, Self) {
        if let Some(raw) = &handle.raw {
            let (body, held) = raw.hold();
            return (body, Self::Raw(raw.clone(), held));
        }
        let (link, body) = Streamed::body(fans, account.clone());
        (body, Self::Streamed(link))
    }

    /// Returns the connection once the frontend may write to it; `None` if its client disconnected before.
    pub(super) async fn begin(self, fans: &Fans, account: Account) -> Option<ClientLink> {
        match self {
            Self::Raw(handle, held) => {
                let socket = take_over(&handle).await.ok()?;
                let conn = Conn::new(fans, socket, Framing::Sse, account);
                Some(ClientLink::Raw(conn, Some(Arc::new(HeldResponse { handle, _held: held }))))
            }
            Self::Streamed(link) => Some(ClientLink::Streamed(link)),
        }
    }
}

/// Calls the same method on either kind of connection.
macro_rules! on {
    ($self:ident, $link:ident => $call:expr) => {
        match $self {
            ClientLink::Raw($link, _) => $call,
            ClientLink::Streamed($link) => $call,
        }
    };
}

impl ClientLink {
    /// Makes the link of a WebSocket's connection. Frames that wait for its client are charged to `account`.
    pub(super) fn websocket(fans: &Fans, io: UpgradedIo, account: Account) -> Self {
        match io {
            UpgradedIo::Raw { socket, .. } => Self::Raw(Conn::new(fans, socket, Framing::WebSocket, account), None),
            UpgradedIo::Streamed(io) => Self::Streamed(Streamed::upgraded(fans, io, account)),
        }
    }

    /// Returns whether the link is the socket of a plain connection.
    pub(super) fn is_raw(&self) -> bool {
        matches!(self, Self::Raw(..))
    }

    /// Returns the connection's account.
    pub(super) fn account(&self) -> &Account {
        on!(self, link => link.account())
    }

    /// Returns whether the unsent frames exceed the account's limit: the connection is then closed, and the client resumes at its cursor.
    pub(super) fn is_over_limit(&self) -> bool {
        on!(self, link => link.is_over_limit())
    }

    /// Returns the time at which the connection is closed if the client reads nothing until then.
    pub(super) fn stalls_at(&self) -> Instant {
        on!(self, link => link.stalls_at())
    }

    /// Returns the size of the connection's own frames that wait, in bytes.
    pub(super) fn backlog(&self) -> usize {
        on!(self, link => link.backlog())
    }

    /// Appends the connection's own frames for a WebSocket (whole ones) and does not write yet.
    pub(super) fn push(&self, frames: impl FnOnce(&mut Vec<u8>)) {
        on!(self, link => link.push(frames));
    }

    /// Appends the part of a server-sent stream that `write` produces, and does not write yet.
    pub(super) fn push_sse(&self, write: impl FnOnce(&mut Vec<u8>)) {
        match self {
            Self::Raw(conn, _) => conn.push(|out| Framing::Sse.sse(out, write)),
            Self::Streamed(link) => link.push(write),
        }
    }

    /// Adds a subscription. `hello` (whole frames) comes first.
    pub(super) fn subscribe(&self, new: NewSubscription, hello: &[u8]) {
        let NewSubscription { name, feed: EventFeed(feed), answers, after, live_at, live_id } = new;
        match (self, feed) {
            (Self::Raw(conn, _), Feed::Fan(fan)) => {
                conn.subscribe(Subscribe { name, fan, answers, after, live_at, live_id }, hello);
            }
            (Self::Streamed(link), Feed::Log(filter, encoder)) => {
                link.subscribe(Followed { name, filter, encoder, after, live_at, live_id }, hello);
            }
            _ => tracing::error!("a subscription was made for another kind of connection"),
        }
    }

    /// Removes the subscription `name`. Returns whether there was one. A partly written frame is completed first.
    pub(super) fn unsubscribe(&self, name: &str) -> bool {
        on!(self, link => link.unsubscribe(name))
    }

    /// Removes all subscriptions.
    pub(super) fn leave(&self) {
        on!(self, link => link.leave());
    }

    /// Returns the names of the subscriptions, and the position of each.
    pub(super) fn following(&self) -> Vec<(Arc<str>, Cursor)> {
        on!(self, link => link.following())
    }

    /// Writes as much as the client accepts. Never waits.
    pub(super) async fn flush(&self) -> Flow {
        match self {
            Self::Raw(conn, _) => conn.flush(true),
            Self::Streamed(link) => link.flush().await,
        }
    }

    /// Waits until [`flush`](Self::flush), which returned `flow`, can make progress again. Cancellation safe.
    pub(super) async fn wait(&self, flow: Flow) {
        match self {
            Self::Raw(conn, _) => tokio::select! {
                _ = conn.socket().writable(), if flow == Flow::Blocked => {}
                () = conn.catch_up_or_wait(), if flow == Flow::Cold => {}
                () = conn.needs_attention() => {}
            },
            Self::Streamed(link) => Box::pin(link.wait(flow)).await,
        }
    }

    /// Waits until the connection may be readable. Cancellation safe.
    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Raw(conn, _) => conn.socket().readable().await,
            Self::Streamed(link) => Box::pin(link.readable()).await,
        }
    }

    /// Reads the available bytes; `WouldBlock` if there are none.
    pub(super) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Raw(conn, _) => conn.socket().try_read(buf),
            Self::Streamed(link) => link.try_read(buf),
        }
    }

    /// Waits until the client has disconnected or the connection has failed. Cancellation safe.
    pub(super) async fn disconnected(&self) {
        match self {
            Self::Raw(_, Some(response)) => response.handle.disconnected().await,
            Self::Raw(_, None) => std::future::pending().await,
            Self::Streamed(link) => link.disconnected().await,
        }
    }

    /// Aborts a response. A complete one ends when its connection is dropped.
    pub(super) fn cut(&self) {
        match self {
            Self::Raw(conn, _) => drop(socket2::SockRef::from(&**conn.socket()).shutdown(std::net::Shutdown::Both)),
            Self::Streamed(link) => link.cut(),
        }
    }

    /// Closes the write half of a WebSocket's connection. Cancellation safe.
    pub(super) async fn close_write(&self) {
        match self {
            Self::Raw(conn, _) => drop(socket2::SockRef::from(&**conn.socket()).shutdown(std::net::Shutdown::Write)),
            Self::Streamed(link) => link.close_write().await,
        }
    }

    /// Closes the connection; a plain connection's socket is closed when its last handle is dropped.
    pub(super) fn close(&self) {
        if let Self::Streamed(link) = self {
            link.close();
        }
    }
}

/// Removes a connection's subscriptions when dropped: also when the connection's task is aborted.
pub(super) struct Leave(pub(super) ClientLink);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.leave();
    }
}
