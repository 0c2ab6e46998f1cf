//! TLS clients that trust only one CA, over HTTP/1.1 and HTTP/2.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::front::{Reply, parse};
use super::gateway::{Gateway, PATIENCE, exe};

/// `plexus` with this state.
pub fn plexus(home: &Path, args: &[&str]) -> Output {
    Command::new(exe()).args(args).env("PLEXUS_HOME", home).env("NO_COLOR", "1").output().unwrap()
}

/// A gateway with a TLS listener and a certificate of `plexus tls init`.
pub async fn gateway(config: &str) -> Gateway {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let made = plexus(&home, &["tls", "init", "--name", "localhost", "--name", "127.0.0.1"]);
    assert!(made.status.success(), "{made:?}");
    Gateway::start_in(dir, config).await
}

/// The content of `gateway.json`.
pub fn running(gateway: &Gateway) -> Value {
    serde_json::from_slice(&std::fs::read(gateway.home.join("gateway.json")).unwrap()).unwrap()
}

/// A client that trusts one CA.
#[derive(Clone)]
pub struct Client {
    roots: Arc<RootCertStore>,
    pub address: SocketAddr,
    /// The client's address.
    pub source: IpAddr,
    pub token: String,
}

impl Client {
    /// A client that trusts the CA of this gateway and has its port.
    pub fn of(gateway: &Gateway) -> Self {
        let address = running(gateway)["tls"].as_str().unwrap().parse().unwrap();
        Self::new(&gateway.home.join("tls/ca.crt"), address, &gateway.token)
    }

    pub fn new(ca: &Path, address: SocketAddr, token: &str) -> Self {
        let mut roots = RootCertStore::empty();
        for cert in CertificateDer::pem_file_iter(ca).unwrap() {
            roots.add(cert.unwrap()).unwrap();
        }
        Self { roots: Arc::new(roots), address, source: [127, 0, 0, 1].into(), token: token.into() }
    }

    /// Returns the same server, called from another of this machine's addresses.
    pub fn from(&self, source: [u8; 4]) -> Self {
        Self { source: source.into(), ..self.clone() }
    }

    /// The origin of the server.
    pub fn origin(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    pub fn config(&self, alpn: &[&str]) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(Arc::clone(&self.roots)).with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    pub async fn tcp(&self) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(self.source, 0))?;
        socket.connect(self.address).await
    }

    pub async fn connect(&self, name: &'static str, alpn: &[&str]) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect_over(self.tcp().await?, name, alpn).await
    }

    /// A connection of HTTP/1.1 that the system buffers as little as it can of.
    pub async fn connect_narrow(&self) -> TlsStream<TcpStream> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let stream = socket.connect(self.address).await.unwrap();
        self.connect_over(stream, "localhost", &["http/1.1"]).await.unwrap()
    }

    async fn connect_over(
        &self,
        stream: TcpStream,
        name: &'static str,
        alpn: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let name = name.try_into().unwrap();
        let connecting = TlsConnector::from(self.config(alpn)).connect(name, stream);
        tokio::time::timeout(PATIENCE, connecting).await.expect("no handshake")
    }

    /// A request over HTTP/1.1, on a connection of its own. No Host among the headers means the right one.
    pub async fn http1(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = self.connect("localhost", &["http/1.1"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text += &format!("host: localhost:{}\r\n", self.address.port());
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            text += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        }
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.unwrap();
        let mut all = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut all)).await;
        read.expect("the connection stays open").expect("it is closed as TLS wants it");
        parse(&String::from_utf8_lossy(&all))
    }

    /// A connection of HTTP/2.
    pub async fn http2(&self) -> Http2 {
        let stream = self.connect("localhost", &["h2", "http/1.1"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Http2 { sender, origin: self.origin(), token: self.token.clone() }
    }

    /// Opens a native WebSocket over TLS, up to its `hello`.
    pub async fn ws(
        &self,
        origin: Option<&str>,
    ) -> Result<tokio_tungstenite::WebSocketStream<TlsStream<TcpStream>>, tokio_tungstenite::tungstenite::Error> {
        let stream = self.connect("localhost", &["http/1.1"]).await.unwrap();
        self.ws_over(stream, origin).await
    }

    /// Opens a native WebSocket over an existing connection.
    pub async fn ws_over(
        &self,
        stream: TlsStream<TcpStream>,
        origin: Option<&str>,
    ) -> Result<tokio_tungstenite::WebSocketStream<TlsStream<TcpStream>>, tokio_tungstenite::tungstenite::Error> {
        use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
        let url = format!("{}/v1/ws", self.origin().replace("https", "wss"));
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("Authorization", format!("Bearer {}", self.token).parse().unwrap());
        if let Some(origin) = origin {
            request.headers_mut().insert("Origin", origin.parse().unwrap());
        }
        tokio_tungstenite::client_async(request, stream).await.map(|(socket, _)| socket)
    }
}

/// A connection of HTTP/2.
pub struct Http2 {
    pub sender: SendRequest<Full<Bytes>>,
    pub origin: String,
    pub token: String,
}

impl Http2 {
    /// A request with the token; `None` as a body is none.
    pub async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> hyper::Result<http::Response<Incoming>> {
        let bearer = format!("Bearer {}", self.token);
        let mut request = http::Request::builder().method(method).uri(format!("{}{path}", self.origin));
        request = request.header("authorization", bearer);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let sending = self.sender.send_request(request.body(Full::from(body)).unwrap());
        tokio::time::timeout(PATIENCE, sending).await.expect("no answer")
    }

    /// Makes a request and reads the complete response: status, head and body.
    pub async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> (u16, http::HeaderMap, String) {
        let response = self.send(method, path, headers, body).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = tokio::time::timeout(PATIENCE, body.collect()).await.expect("no end").unwrap().to_bytes();
        (parts.status.as_u16(), parts.headers, String::from_utf8_lossy(&body).into_owned())
    }
}

/// The code of a problem.
pub fn code(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_else(|why| panic!("{why}: {body}"));
    body["code"].as_str().unwrap().to_owned()
}

/// Reads a body until this is in it; what it has read.
pub async fn until(body: &mut Incoming, text: &str) -> String {
    let mut all = Vec::new();
    while !String::from_utf8_lossy(&all).contains(text) {
        let frame = tokio::time::timeout(PATIENCE, body.frame()).await.expect("nothing came");
        let frame = frame.unwrap_or_else(|| panic!("the stream ended: {}", String::from_utf8_lossy(&all)));
        all.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// The first call of a native WebSocket.
pub fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocol_version": "0" } })
}
