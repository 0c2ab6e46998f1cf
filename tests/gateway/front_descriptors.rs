//! The listener of a process without free file descriptors. In a process of its own, since the limit is the process's.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::time::Duration;

use common::front::{Front, LONG};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn healthy(stream: &mut TcpStream, front: &Front) -> String {
    let text = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", front.address);
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut all = String::new();
    let read = async {
        while !all.ends_with("ok\n") {
            let mut part = [0; 512];
            let n = stream.read(&mut part).await.unwrap();
            assert_ne!(n, 0, "closed after {all:?}");
            all.push_str(std::str::from_utf8(&part[..n]).unwrap());
        }
    };
    tokio::time::timeout(LONG, read).await.expect("no answer");
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listener_out_of_descriptors_serves_its_clients_and_recovers() {
    if !common::alone("front_descriptors::listener_out_of_descriptors_serves_its_clients_and_recovers") {
        return;
    }
    let front = Front::new().await;
    let mut inside = TcpStream::connect(front.address).await.unwrap();
    healthy(&mut inside, &front).await;
    // The clients' own descriptors are opened before the limit falls below the number in use.
    let mut outside = TcpStream::connect(front.address).await.unwrap();
    healthy(&mut outside, &front).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..before }).unwrap();
    let mut waiting = socket.connect(front.address).await.expect("the backlog takes it");
    healthy(&mut inside, &front).await;
    // It cannot be accepted now; otherwise the limit would not hold, and the test would show nothing.
    let early = waiting.write_all(b"GET /healthz HTTP/1.1\r\n").await;
    assert!(early.is_ok());
    let mut byte = [0];
    assert!(tokio::time::timeout(Duration::from_millis(300), waiting.read(&mut byte)).await.is_err());
    healthy(&mut outside, &front).await;
    setrlimit(Resource::Nofile, before).unwrap();
    waiting.write_all(format!("host: {}\r\n\r\n", front.address).as_bytes()).await.unwrap();
    let read = tokio::time::timeout(LONG, waiting.read(&mut byte)).await.expect("taken in once there is room");
    assert_eq!(read.unwrap(), 1);
    assert_eq!(front.admin("GET", "/v1/me", Value::Null).await.status, 200);
}
