//! Connections that hyper or TLS writes, beside a plain one on the same log: the bytes are the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use http_body_util::BodyExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, DuplexStream};
use tokio::net::TcpStream;

use super::*;
use crate::client_link::{ClientLink, EventFeed, NewSubscription};
use crate::fanout::Conn;
use crate::fanout::tests::{account, append, body, fans, fans_with, pair, parse};
use crate::frames::Projection;

/// A wait that only a failure uses up.
const LONG: Duration = Duration::from_secs(60);

/// Does the work of a frontend's task, and nothing else.
async fn drive(link: ClientLink) {
    loop {
        let flow = link.flush().await;
        if flow == Flow::Dead || link.is_over_limit() {
            return;
        }
        link.wait(flow).await;
    }
}

fn follow(fans: &Fans, link: &ClientLink, framing: Framing, after: Position) {
    let feed = EventFeed::open(fans, link.is_raw(), framing, Filter::all(), Projection::Canonical);
    let live_at = fans.log().head().max(after);
    let name = "*".into();
    link.subscribe(NewSubscription { name, feed, answers: false, after, live_at, live_id: false }, b"");
    tokio::spawn(drive(link.clone()));
}

/// A WebSocket's connection behind TLS, but for TLS, whose client may have so much on its way.
fn upgraded(fans: &Fans, buffer: usize) -> (ClientLink, DuplexStream) {
    let (io, client) = tokio::io::duplex(buffer);
    (ClientLink::Streamed(Streamed::upgraded(fans, Box::new(io), account())), client)
}

async fn plain(fans: &Fans, framing: Framing) -> (ClientLink, TcpStream) {
    let (socket, client) = pair(None).await;
    (ClientLink::Raw(Conn::new(fans, socket, framing, account()), None), client)
}

/// A client, with what it has read and not looked at.
struct Reading<T>(T, Vec<u8>);

impl<T: AsyncRead + Unpin> Reading<T> {
    fn new(client: T) -> Self {
        Self(client, Vec::new())
    }

    /// All bytes up to the end of event `last`.
    async fn to(&mut self, framing: Framing, last: usize) -> Vec<u8> {
        let Self(client, bytes) = self;
        let mut at = 0;
        loop {
            while let Some((_, json, taken)) = parse(framing, &bytes[at..]) {
                at += taken;
                if json["event"]["n"] == last {
                    return bytes.drain(..at).collect();
                }
            }
            let n = tokio::time::timeout(LONG, client.read_buf(bytes)).await.expect("silence").unwrap();
            assert!(n > 0, "hung up");
        }
    }
}

/// The body of a chunked response.
fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some(line) = bytes.windows(2).position(|two| two == b"\r\n") {
        let len = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).unwrap(), 16).unwrap();
        text.extend_from_slice(&bytes[line + 2..line + 2 + len]);
        bytes = &bytes[line + 4 + len..];
    }
    text
}

#[tokio::test]
async fn streamed_websocket_has_the_bytes_of_a_plain_one() {
    let fans = fans();
    append(fans.log(), "s_1", (0..2000).map(|n| body(n, n * 31 % 600))).await;
    let (raw, socket) = plain(&fans, Framing::WebSocket).await;
    let (link, client) = upgraded(&fans, 1 << 10);
    let (mut socket, mut client) = (Reading::new(socket), Reading::new(client));
    follow(&fans, &raw, Framing::WebSocket, Position(17));
    follow(&fans, &link, Framing::WebSocket, Position(17));
    let replayed = socket.to(Framing::WebSocket, 1999).await;
    assert!(client.to(Framing::WebSocket, 1999).await == replayed);
    append(fans.log(), "s_1", (2000..2500).map(|n| body(n, n * 31 % 600))).await;
    let live = socket.to(Framing::WebSocket, 2499).await;
    assert!(live.windows(12).any(|name| name == b"gateway.live"), "it comes after the replay");
    assert!(client.to(Framing::WebSocket, 2499).await == live);
    let cursor = |link: &ClientLink| link.following().pop().unwrap();
    assert_eq!(cursor(&raw), cursor(&link));
    assert!(link.unsubscribe("*") && !link.unsubscribe("*") && link.following().is_empty());
}

#[tokio::test]
async fn streamed_body_has_the_text_of_a_plain_response() {
    let fans = fans();
    append(fans.log(), "s_1", (0..2000).map(|n| body(n, n * 31 % 600))).await;
    let (raw, socket) = plain(&fans, Framing::Sse).await;
    let mut socket = Reading::new(socket);
    let (link, mut response) = Streamed::body(&fans, account());
    let link = ClientLink::Streamed(link);
    follow(&fans, &raw, Framing::Sse, Position::START);
    follow(&fans, &link, Framing::SseBody, Position::START);
    let mut text = unchunked(&socket.to(Framing::Sse, 1999).await);
    append(fans.log(), "s_1", (2000..2500).map(|n| body(n, n * 31 % 600))).await;
    text.extend(unchunked(&socket.to(Framing::Sse, 2499).await));
    let mut bare = Vec::new();
    while bare.len() < text.len() {
        let frame = tokio::time::timeout(LONG, response.frame()).await.expect("silence").unwrap().unwrap();
        bare.extend(frame.into_data().unwrap());
    }
    assert!(bare == text);
    drop(response);
    tokio::time::timeout(LONG, link.disconnected()).await.expect("the client left");
    assert_eq!(link.flush().await, Flow::Dead);
}

#[tokio::test]
async fn streamed_reader_that_is_slow_holds_a_page_and_misses_nothing() {
    const EVENTS: usize = 10_000;
    let fans = fans();
    let account = account();
    let (io, mut client) = tokio::io::duplex(1 << 10);
    let link = ClientLink::Streamed(Streamed::upgraded(&fans, Box::new(io), account.clone()));
    follow(&fans, &link, Framing::WebSocket, Position::START);
    for from in (0..EVENTS).step_by(500) {
        append(fans.log(), "s_1", (from..from + 500).map(|n| body(n, 400))).await;
        assert!(account.used() <= 256 << 10, "{}", account.used());
    }
    let (mut bytes, mut next) = (Vec::new(), 0);
    while next < EVENTS {
        let n = tokio::time::timeout(LONG, client.read_buf(&mut bytes)).await.expect("silence").unwrap();
        assert!(n > 0, "hung up after {next}");
        let mut at = 0;
        while let Some((_, json, taken)) = parse(Framing::WebSocket, &bytes[at..]) {
            at += taken;
            if let Some(n) = json["event"]["n"].as_u64() {
                assert_eq!(n as usize, next);
                next += 1;
            }
        }
        bytes.drain(..at);
        assert!(account.used() <= 256 << 10, "{}", account.used());
    }
    let given_back = async {
        while account.used() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, given_back).await.expect("what was charged is given back");
}

#[tokio::test]
async fn streamed_connection_gives_each_subscription_its_turn() {
    let fans = fans();
    let (link, mut client) = upgraded(&fans, 4 << 10);
    for session in ["s_a", "s_b", "s_c"] {
        append(fans.log(), session, (0..2000).map(|n| body(n, 300))).await;
    }
    for session in ["s_a", "s_b", "s_c"] {
        let filter = Filter::session(plexus_protocol::SessionId::trusted(session));
        let feed = EventFeed::open(&fans, false, Framing::WebSocket, filter, Projection::Canonical);
        let (after, live_at) = (Position::START, fans.log().head());
        let new = NewSubscription { name: session.into(), feed, answers: false, after, live_at, live_id: false };
        link.subscribe(new, b"");
    }
    tokio::spawn(drive(link.clone()));
    let (mut bytes, mut live, mut last) = (Vec::new(), Vec::new(), std::collections::HashMap::new());
    while live.len() < 3 {
        let n = tokio::time::timeout(LONG, client.read_buf(&mut bytes)).await.expect("silence").unwrap();
        assert!(n > 0, "hung up");
        let mut at = 0;
        while let Some((name, json, taken)) = parse(Framing::WebSocket, &bytes[at..]) {
            at += taken;
            let session = json["session_id"].as_str().unwrap().to_owned();
            match json["event"]["n"].as_u64() {
                Some(n) => assert_eq!(last.insert(session, n), n.checked_sub(1)),
                None => {
                    assert_eq!((name.as_str(), last[&session]), ("gateway.live", 1999));
                    if live.is_empty() {
                        assert_eq!(last.len(), 3, "nobody waits for another's end");
                    }
                    live.push(session);
                }
            }
        }
        bytes.drain(..at);
    }
}

#[tokio::test]
async fn streamed_client_that_takes_nothing_stalls_and_its_response_can_be_cut() {
    let fans = fans_with(Duration::from_millis(50));
    let (link, mut response) = Streamed::body(&fans, account());
    let link = ClientLink::Streamed(link);
    link.push_sse(|out| out.extend_from_slice(b": one\n\n"));
    assert_eq!(link.flush().await, Flow::Blocked, "hyper has not taken it");
    link.push_sse(|out| out.extend_from_slice(b": two\n\n"));
    let stalls_at = link.stalls_at();
    assert!(tokio::time::timeout_at(stalls_at, link.wait(Flow::Blocked)).await.is_err());
    assert!(link.flush().await == Flow::Blocked && link.stalls_at() == stalls_at, "that is no progress");
    link.cut();
    let cut = response.frame().await.unwrap();
    assert!(cut.is_err(), "it is not whole");
}

#[tokio::test]
async fn streamed_connection_reads_what_comes_and_closes_as_it_is_told() {
    use tokio::io::AsyncWriteExt as _;
    let fans = fans();
    let (link, mut client) = upgraded(&fans, 64);
    let mut buf = [0; 8];
    assert_eq!(link.try_read(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
    client.write_all(b"0123456789").await.unwrap();
    link.readable().await.unwrap();
    assert_eq!((link.try_read(&mut buf).unwrap(), &buf), (8, b"01234567"));
    assert_eq!(link.try_read(&mut buf).unwrap(), 2);
    assert_eq!(link.try_read(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
    let waiting = link.clone();
    let waiting = tokio::spawn(async move { waiting.readable().await });
    client.write_all(b"x").await.unwrap();
    tokio::time::timeout(LONG, waiting).await.expect("nobody is woken").unwrap().unwrap();
    assert_eq!(link.try_read(&mut buf).unwrap(), 1);
    link.close_write().await;
    assert_eq!(client.read(&mut buf).await.unwrap(), 0, "nothing more comes");
    drop(client);
    link.readable().await.unwrap();
    assert_eq!(link.try_read(&mut buf).unwrap(), 0);
    link.close();
    assert_eq!(link.flush().await, Flow::Dead);
}
