//! TLS: the only way in from other machines. The handshake has its time and each address its share of the connections;
//! the certificate is read again when its files change. hyper serves the decrypted stream, HTTP/1.1 here and HTTP/2 in
//! `h2`; it writes every response, streams of events too.

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

/// Time between two looks at the files of the certificate.
const LOOK: Duration = Duration::from_secs(2);
/// Bytes that wait encrypted for a client's socket; with more, the connection's writers wait.
const SEND: usize = 16 << 10;
/// Time that a client may take to hang up once everything was said to it.
const LINGER: Duration = Duration::from_secs(5);
/// The first byte of every TLS connection: a record of the handshake.
const HANDSHAKE: u8 = 0x16;
/// The ALPN names of HTTP/2 and HTTP/1.1.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// The answer to plain HTTP; the same for everybody, so it is written as it is.
const NEEDS_TLS: &str = "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,\"code\":\"needs_tls\",\
    \"detail\":\"this port speaks TLS: use https:// (wss:// for WebSockets)\"}";

/// The reason why a certificate cannot be served with.
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
    /// A file does not hold what it should.
    #[error("{}: {what}", .path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// The problem, and the fix.
        what: String,
    },
}

/// A certificate with its key, and what the listener needs of them.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    served: Arc<Served>,
}

/// The certificate that new connections get.
#[derive(Debug)]
struct Served {
    cert: PathBuf,
    key: PathBuf,
    current: ArcSwap<CertifiedKey>,
    /// The files as they were before they were read first: what changed since is read again.
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
        let bad = |error: rustls::Error| TlsError::Bad { path: cert.into(), what: error.to_string() };
        let mut config = versions.map_err(bad)?.with_no_client_auth().with_cert_resolver(Arc::clone(&served) as _);
        config.alpn_protocols = ALPN.map(<[u8]>::to_vec).into();
        Ok(Self { config: Arc::new(config), served })
    }

    /// The names that the certificate has, wildcards and addresses left out.
    pub fn names(&self) -> Vec<String> {
        let current = self.served.current.load();
        let first = current.cert.first().map(webpki::EndEntityCert::try_from);
        let names =
            first.and_then(Result::ok).map(|cert| cert.valid_dns_names().map(str::to_owned).collect::<Vec<_>>());
        names.unwrap_or_default().into_iter().filter(|name| !name.contains('*')).collect()
    }

    /// Reads the files again whenever they change, until `stop`. A file that is no certificate is logged and not used.
    pub async fn keep_fresh(&self, mut stop: watch::Receiver<bool>) {
        let Served { cert, key, current, opened, provider } = &*self.served;
        let (mut loaded, mut seen) = (*opened, None);
        show_end(&current.load());
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = stopping(&mut stop) => return,
            }
            let now = stamp(cert, key).await;
            // Only what has settled: the two files are not written at once.
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

/// Shows when the certificate ends that new connections get.
fn show_end(key: &CertifiedKey) {
    let end = key.cert.first().and_then(|first| X509Certificate::from_der(first).ok());
    metrics().certificate_ends.set(end.map_or(0, |(_, first)| first.validity().not_after.timestamp()));
}

/// The properties that tell whether a file has changed.
type Stamp = Option<(u64, u64, i64, i64)>;

fn stamp_of(meta: Metadata) -> (u64, u64, i64, i64) {
    (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec())
}

async fn stamp(cert: &Path, key: &Path) -> [Stamp; 2] {
    [tokio::fs::metadata(cert).await.ok().map(stamp_of), tokio::fs::metadata(key).await.ok().map(stamp_of)]
}

/// Returns the time when the certificate in this file ends, in seconds since 1970: the first one, if it is a chain.
///
/// # Errors
/// [`TlsError`].
pub fn certificate_end(cert: &Path) -> Result<i64, TlsError> {
    let chain = chain(cert)?;
    match X509Certificate::from_der(&chain[0]) {
        Ok((_, first)) => Ok(first.validity().not_after.timestamp()),
        Err(error) => {
            Err(TlsError::Bad { path: cert.into(), what: format!("the first certificate cannot be read: {error}") })
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| TlsError::Read { path: path.into(), error })
}

/// The certificates of a file in PEM, at least one.
fn chain(cert: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bad = |what: String| TlsError::Bad { path: cert.into(), what };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(cert)?).collect();
    let chain = chain.map_err(|error| bad(format!("not a certificate in PEM: {error}")))?;
    if chain.is_empty() {
        return Err(bad("contains no certificate: it must be PEM, with the gateway's own certificate first".into()));
    }
    Ok(chain)
}

fn load(cert: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let bad = |path: &Path, what: String| TlsError::Bad { path: path.into(), what };
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
    connections_of: Arc<Addresses>,
}

/// Serves `app` by TLS until `stop` turns true, as [`serve`](super::serve) does. `trusted` says which addresses are
/// proxies of ours, which bring many clients and so have no share.
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
        connections_of: Arc::default(),
    });
    let each = |stream: TcpStream, peer: SocketAddr, slot| {
        let from = Source { peer, shares: !trusted(peer.ip()) };
        let place = from.enter(&shared.connections_of, shared.http2.limits.per_address);
        let (app, shared) = (app.clone(), Arc::clone(&shared));
        async move {
            // An address that has its share is not told so: that would cost more than it is worth.
            let Some(_place) = place else { return };
            secure(stream, from, slot, app, &shared).await;
        }
    };
    tokio::join!(accept(listener, drain, slots, stop.clone(), each), tls.keep_fresh(stop));
}

async fn secure<A: ListenApp>(stream: TcpStream, from: Source, slot: Slot, app: A, shared: &Arc<Shared>) {
    // Only latency is lost if the system refuses.
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
        // A WebSocket goes on, and counts as the connection that it is.
        let _ = closed.await;
    }
    drop(slot);
}

/// A connection of HTTP/1.1 over TLS: the IO object that hyper holds, and then the WebSocket.
pub(super) struct TlsSocket {
    stream: TlsStream<StallGuard>,
    /// Runs once we have said everything.
    linger: Option<Pin<Box<Sleep>>>,
    /// Dropped with the socket.
    _open: oneshot::Sender<()>,
}

impl TlsSocket {
    /// From now on a frontend has its own bound for a client that takes nothing.
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

    /// Ends TLS, and waits for the client to hang up, [`LINGER`] at most: hanging up over bytes that nobody has read would
    /// make the system take back what the client has not read yet.
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

/// Tells somebody who speaks plain HTTP what this is.
async fn refuse(mut stream: TcpStream) {
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\nconnection: close\r\n";
    let answer = format!("{head}content-length: {}\r\n\r\n{NEEDS_TLS}", NEEDS_TLS.len());
    if stream.write_all(answer.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        // Bytes that nobody has read would make the system take the answer back. The handshake's time bounds this.
        let mut sink = [0; 1 << 10];
        while stream.read(&mut sink).await.is_ok_and(|n| n > 0) {}
    }
}
