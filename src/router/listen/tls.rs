//! TLS: the only access from other machines. The handshake has a time limit, and each address its share of the connections; the
//! certificate is read again when its files change. hyper serves the decrypted stream, HTTP/1.1 here and HTTP/2 in `h2`; it writes every
//! response, including streams of events.

use crate::stop::stopping;
use std::fs::Metadata;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::address_shares::{Addresses, Source};
use super::h2::{self, Http2Shared};
use super::stall::StallGuard;
pub use super::tls_limits::TlsLimits;
use super::{ListenApp, Slot, accept, connection};
use plexus_metrics::metrics;

/// Time between two checks of the files of the certificate.
const FILE_CHECK_EVERY: Duration = Duration::from_secs(2);
/// Maximum number of encrypted bytes that wait for a client's socket; with more, the connection's writers wait.
const SEND: usize = 16 << 10;
/// Maximum time for a client to close the connection after the last data was sent.
const LINGER: Duration = Duration::from_secs(5);
/// The first byte of every TLS connection: a record of the handshake.
const HANDSHAKE: u8 = 0x16;
/// The ALPN names of HTTP/2 and HTTP/1.1.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// The response to plain HTTP; it is always the same, so it is a constant.
const NEEDS_TLS: &str = "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,\"code\":\"needs_tls\",\
    \"detail\":\"this port uses TLS: use https:// (wss:// for WebSockets)\"}";

/// The reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: {error}; create a certificate with `plexus tls init`, or configure yours in [tls]", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file does not contain what it should.
    #[error("{}: {problem}", .path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// The problem, and the fix.
        problem: String,
    },
}

/// A certificate with its key, and the data that the listener needs of them.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    served: Arc<Served>,
}

/// The certificate for new connections.
#[derive(Debug)]
struct Served {
    cert: PathBuf,
    key: PathBuf,
    current: ArcSwap<CertifiedKey>,
    /// The state of the files before they were first read: later changes are read again.
    opened: [Stamp; 2],
    provider: Arc<CryptoProvider>,
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

impl Tls {
    /// Reads a certificate (its chain, in PEM) and its key (PEM).
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let opened = [cert, key].map(|path| std::fs::metadata(path).ok().map(stamp_of));
        let current = ArcSwap::new(Arc::new(load(cert, key, &provider)?));
        let provided = Arc::clone(&provider);
        let served = Arc::new(Served { cert: cert.into(), key: key.into(), current, opened, provider: provided });
        let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let bad = |error: rustls::Error| TlsError::Bad { path: cert.into(), problem: error.to_string() };
        let mut config = versions.map_err(bad)?.with_no_client_auth().with_cert_resolver(Arc::clone(&served) as _);
        config.alpn_protocols = ALPN.map(<[u8]>::to_vec).into();
        Ok(Self { config: Arc::new(config), served })
    }

    /// Returns the names of the certificate, without wildcards and addresses.
    pub fn names(&self) -> Vec<String> {
        let current = self.served.current.load();
        let first = current.cert.first().map(webpki::EndEntityCert::try_from);
        let names =
            first.and_then(Result::ok).map(|cert| cert.valid_dns_names().map(str::to_owned).collect::<Vec<_>>());
        names.unwrap_or_default().into_iter().filter(|name| !name.contains('*')).collect()
    }

    /// Reads the files again whenever they change, until `stop`. A file that is not a certificate is logged and not used.
    pub async fn keep_fresh(&self, mut stop: watch::Receiver<bool>) {
        let Served { cert, key, current, opened, provider } = &*self.served;
        let (mut loaded, mut seen) = (*opened, None);
        show_end(&current.load());
        loop {
            tokio::select! {
                () = tokio::time::sleep(FILE_CHECK_EVERY) => {}
                () = stopping(&mut stop) => return,
            }
            let now = stamp(cert, key).await;
            // Read only when the files no longer change: the two files are not written at once.
            if now != loaded && seen.as_ref() == Some(&now) {
                match load(cert, key, provider) {
                    Ok(fresh) => {
                        show_end(&fresh);
                        current.store(Arc::new(fresh));
                        tracing::info!(cert = %cert.display(), "the certificate has changed; new connections get the new one");
                    }
                    Err(error) => {
                        tracing::error!(%error, "the changed certificate cannot be used; new connections get the \
                            previous one");
                    }
                }
                loaded = now;
            }
            seen = Some(now);
        }
    }
}

/// Publishes the time when the certificate for new connections expires.
fn show_end(key: &CertifiedKey) {
    let end = key.cert.first().and_then(|first| X509Certificate::from_der(first).ok());
    metrics().certificate_ends.set(end.map_or(0, |(_, first)| first.validity().not_after.timestamp()));
}

/// The properties that reveal whether a file has changed.
type Stamp = Option<(u64, u64, i64, i64)>;

fn stamp_of(meta: Metadata) -> (u64, u64, i64, i64) {
    (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec())
}

async fn stamp(cert: &Path, key: &Path) -> [Stamp; 2] {
    [tokio::fs::metadata(cert).await.ok().map(stamp_of), tokio::fs::metadata(key).await.ok().map(stamp_of)]
}

/// Returns the time when the certificate in this file expires, in seconds since 1970: the first one, if the file has a chain.
///
/// # Errors
/// [`TlsError`].
pub fn certificate_end(cert: &Path) -> Result<i64, TlsError> {
    let chain = chain(cert)?;
    match X509Certificate::from_der(&chain[0]) {
        Ok((_, first)) => Ok(first.validity().not_after.timestamp()),
        Err(error) => {
            Err(TlsError::Bad { path: cert.into(), problem: format!("the first certificate cannot be read: {error}") })
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| TlsError::Read { path: path.into(), error })
}

/// Returns the certificates of a file in PEM, at least one.
fn chain(cert: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bad = |problem: String| TlsError::Bad { path: cert.into(), problem };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(cert)?).collect();
    let chain = chain.map_err(|error| bad(format!("not a certificate in PEM: {error}")))?;
    if chain.is_empty() {
        return Err(bad("contains no certificate: it must be PEM, with the gateway's own certificate first".into()));
    }
    Ok(chain)
}

fn load(cert: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let bad = |path: &Path, problem: String| TlsError::Bad { path: path.into(), problem };
    let chain = chain(cert)?;
    if let Err(error) = webpki::EndEntityCert::try_from(&chain[0]) {
        return Err(bad(cert, format!("the first certificate cannot be read: {error}")));
    }
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|error| bad(key, format!("not a private key in PEM: {error}")))?;
    let signing = provider.key_provider.load_private_key(secret);
    let signing = signing.map_err(|error| bad(key, format!("the key cannot be used: {error}")))?;
    let both = CertifiedKey::new(chain, signing);
    both.keys_match().map_err(|_| bad(key, format!("is not the key of {}", cert.display())))?;
    Ok(both)
}

/// The state that all connections share.
struct Shared {
    http2: Arc<Http2Shared>,
    acceptor: TlsAcceptor,
    connections_by_address: Arc<Addresses>,
}

/// Serves `app` over TLS until `stop` becomes `true`, like [`serve`](super::serve). `trusted` returns whether an address is a trusted
/// proxy, which has many clients and so no share.
pub async fn serve_tls<A: ListenApp>(
    listener: TcpListener,
    tls: Tls,
    app: A,
    limits: TlsLimits,
    trusted: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    stop: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(limits.http.connections));
    let drain = limits.http.drain;
    let shared = Arc::new(Shared {
        http2: Arc::new(Http2Shared::new(limits, stop.clone())),
        acceptor: TlsAcceptor::from(Arc::clone(&tls.config)),
        connections_by_address: Arc::default(),
    });
    let each = |stream: TcpStream, peer: SocketAddr, slot| {
        let from = Source { peer, shares: !trusted(peer.ip()) };
        let address_slot = from.enter(&shared.connections_by_address, shared.http2.limits.per_address);
        let (app, shared) = (app.clone(), Arc::clone(&shared));
        async move {
            // An address that has used its share gets no response: that would cost more than it is worth.
            let Some(_address_slot) = address_slot else { return };
            secure(stream, from, slot, app, &shared).await;
        }
    };
    tokio::join!(accept(listener, drain, slots, stop.clone(), each), tls.keep_fresh(stop));
}

async fn secure<A: ListenApp>(stream: TcpStream, from: Source, slot: Slot, app: A, shared: &Arc<Shared>) {
    // If the system refuses, only latency suffers.
    let _ = stream.set_nodelay(true);
    let handshake = async {
        let mut first = [0];
        match stream.peek(&mut first).await {
            Ok(1) if first[0] != HANDSHAKE => {
                refuse(stream).await;
                None
            }
            Ok(1) => shared.acceptor.accept(StallGuard::new(stream, shared.http2.limits.http.stall)).await.ok(),
            _ => None,
        }
    };
    let Ok(Some(mut stream)) = tokio::time::timeout(shared.http2.limits.handshake, handshake).await else { return };
    stream.get_mut().1.set_buffer_limit(Some(SEND));
    if stream.get_ref().1.alpn_protocol() == Some(ALPN[0]) {
        h2::serve(stream, from, app, &shared.http2).await;
    } else {
        let (open, closed) = oneshot::channel();
        let socket = TlsSocket { stream, linger: None, _open: open };
        connection(socket, from.peer, None, app, shared.http2.limits.http.clone(), shared.http2.stop.clone()).await;
        // A WebSocket continues, and counts as a connection.
        let _ = closed.await;
    }
    drop(slot);
}

/// A connection of HTTP/1.1 over TLS: the IO object that hyper holds, and then the WebSocket.
pub(super) struct TlsSocket {
    stream: TlsStream<StallGuard>,
    /// The timer that runs after the last data was sent.
    linger: Option<Pin<Box<Sleep>>>,
    /// Signals the end of the connection when it is dropped with the socket.
    _open: oneshot::Sender<()>,
}

impl TlsSocket {
    /// Disables the write timeout, because a frontend now has its own.
    pub(super) fn upgraded(mut self) -> Self {
        self.stream.get_mut().0.unbounded();
        self
    }
}

impl AsyncRead for TlsSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for TlsSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Ends TLS, and waits for the client to close the connection, [`LINGER`] at most: closing it with unread bytes would make the system
    /// discard data that the client has not read yet.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, linger, .. } = &mut *self;
        if linger.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let linger = linger.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        let mut sink = [0; 1 << 10];
        loop {
            let mut buf = ReadBuf::new(&mut sink);
            match Pin::new(&mut *stream.get_mut().0).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return linger.as_mut().poll(cx).map(Ok),
            }
        }
    }
}

/// Sends a client of plain HTTP the reason for the refusal.
async fn refuse(mut stream: TcpStream) {
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\nconnection: close\r\n";
    let answer = format!("{head}content-length: {}\r\n\r\n{NEEDS_TLS}", NEEDS_TLS.len());
    if stream.write_all(answer.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        // Unread bytes would make the system discard the response. The time for the handshake bounds this.
        let mut sink = [0; 1 << 10];
        while stream.read(&mut sink).await.is_ok_and(|n| n > 0) {}
    }
}
