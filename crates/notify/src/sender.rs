//! Sends one notification: a POST to an external address, the only connections that the gateway opens by itself.
//!
//! A target is checked before its name is resolved, and the addresses that its name resolves to are checked again. Redirects are not
//! followed, proxies of the environment are not used, and only the head of a response is read.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderMap, HeaderValue, RETRY_AFTER};
use http::uri::{Authority, Uri};
use http_body_util::Full;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::sync::OnceCell;
use tokio_rustls::rustls::{ClientConfig, crypto};

/// Maximum length of the address of a subscription, in bytes.
pub(super) const ENDPOINT_MAX: usize = 1024;
/// Maximum time of an attempt from the resolution of the name to the head of the response; then it counts as failed.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Maximum length of the head of a response, in bytes; a longer one counts as failed.
const HEAD_MAX: usize = 16 << 10;
/// Maximum `Retry-After` that is applied, in seconds; a longer one is reduced to it.
const RETRY_AFTER_MAX: u64 = 300;

/// The push services of known browsers: a host name, or with a leading dot the end of one.
const KNOWN: [&str; 4] = ["fcm.googleapis.com", ".push.services.mozilla.com", ".push.apple.com", ".notify.windows.com"];

/// The address that a notification is sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeliveryTarget {
    tls: bool,
    host: String,
    port: u16,
    /// Path and query.
    path: String,
    /// `true` if the owner named the target, so that its address may be private.
    trusted: bool,
}

impl DeliveryTarget {
    /// Returns scheme, host and port as in RFC 6454.
    pub(super) fn origin(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    fn authority(&self) -> String {
        if self.port == if self.tls { 443 } else { 80 } {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Parses an address of the configuration: any host, `http` or `https`.
    ///
    /// # Errors
    /// The problem, in words.
    pub(super) fn from_config(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("no address: {error}"))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("must begin with https:// or http://".into()),
        };
        let authority = uri.authority().ok_or("has no host")?;
        if authority.as_str().contains('@') {
            return Err("contains a user name or password: use `secret` or `token`".into());
        }
        if url.contains('#') {
            return Err("carries a fragment".into());
        }
        let host = authority.host().to_ascii_lowercase();
        if host.is_empty() {
            return Err("has no host".into());
        }
        let port = match (port_of(authority)?, tls) {
            (Some(port), _) => port,
            (None, true) => 443,
            (None, false) => 80,
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { tls, host, port, path, trusted: true })
    }

    /// Parses the address of a subscription, which a client sent: a known push service over `https`, or a service that the owner named.
    ///
    /// # Errors
    /// The problem and the fix, in words.
    pub(super) fn from_client(url: &str, services: &[String]) -> Result<Self, String> {
        if url.len() > ENDPOINT_MAX {
            return Err(format!("is longer than {ENDPOINT_MAX} bytes"));
        }
        if !url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err("has characters that are not allowed in an address".into());
        }
        let target = Self::from_config(url)?;
        if services.iter().any(|service| target.matches_service(service)) {
            return Ok(target);
        }
        let known = KNOWN.iter().any(|known| match known.strip_prefix('.') {
            Some(end) => target.host.strip_suffix(end).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            None => target.host == *known,
        });
        if !target.tls || !known || target.port != 443 {
            return Err(format!(
                "{} is not a known push service: add it to [push] services if it is yours",
                target.origin()
            ));
        }
        Ok(Self { trusted: false, ..target })
    }

    /// Returns whether `service` of the configuration names this target: a host (over `https` on port 443), or an origin.
    fn matches_service(&self, service: &str) -> bool {
        match service.contains("://") {
            true => self.origin() == service.trim_end_matches('/').to_ascii_lowercase(),
            false => self.tls && self.port == 443 && self.host == service.to_ascii_lowercase(),
        }
    }
}

/// Checks a service of the configuration: a host, an `https` origin, or an `http` origin on loopback.
///
/// # Errors
/// The problem and the fix, in words.
pub fn check_service(service: &str) -> Result<(), String> {
    let fix = "write a host or an origin: \"push.example.org\", \"https://push.example.org:8443\"";
    let url = if service.contains("://") { service.to_owned() } else { format!("https://{service}") };
    let target = DeliveryTarget::from_config(&url).map_err(|reason| format!("\"{service}\" {reason}: {fix}"))?;
    if target.path != "/" || (!service.contains("://") && service.contains(':')) {
        return Err(format!("\"{service}\" is neither a host nor an origin: {fix}"));
    }
    let loopback = target.host == "localhost" || ip(&target.host).is_some_and(|ip| ip.is_loopback());
    if !target.tls && !loopback {
        return Err(format!("\"{service}\" is not encrypted, and not on this machine: {fix}"));
    }
    Ok(())
}

fn port_of(authority: &Authority) -> Result<Option<u16>, String> {
    match authority.port() {
        None if authority.as_str().ends_with(':') => Err("has an empty port".into()),
        None => Ok(None),
        Some(port) if port.as_u16() == 0 => Err("has the port 0".into()),
        Some(port) => Ok(Some(port.as_u16())),
    }
}

/// Returns the address of a host that is not a name.
fn ip(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Returns whether an address is public; any other may belong to this machine or this network.
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !(ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_broadcast()
        || ip.is_documentation()
        || ip.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19)))
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    // 2000::/3 is the assigned range; it contains embedded IPv4 addresses and ranges for documentation.
    (0x2000..0x4000).contains(&a) && a != 0x2002 && !(a == 0x2001 && (b < 0x0200 || b == 0x0db8)) && a != 0x3fff
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostOutcome {
    /// The service accepted the notification.
    Taken(u16),
    /// The subscription no longer exists.
    Gone(u16),
    /// The service refused the notification, and would refuse it again.
    Refused(u16),
    /// There was no response, or a temporary failure. Contains the minimum time before the next attempt, in milliseconds, if the service
    /// reports it.
    Later(Option<i64>),
}

impl PostOutcome {
    fn from_status(status: u16, retry_after: Option<i64>) -> Self {
        match status {
            200..=299 => Self::Taken(status),
            404 | 410 => Self::Gone(status),
            408 | 425 | 429 | 500..=599 => Self::Later(retry_after),
            // Redirects included: the service does not decide where to send.
            _ => Self::Refused(status),
        }
    }
}

/// Sends notifications. Cheap to clone; clones share the trusted certificates.
#[derive(Clone, Default)]
pub(super) struct Sender {
    tls: Arc<OnceCell<Arc<ClientConfig>>>,
}

impl Sender {
    /// Makes one attempt, over a connection that nothing else uses. Takes [`ATTEMPT`] at most.
    pub(super) async fn send(&self, target: &DeliveryTarget, headers: HeaderMap, body: Vec<u8>) -> PostOutcome {
        let reason = match tokio::time::timeout(ATTEMPT, self.try_send(target, headers, body)).await {
            Ok(Ok(outcome)) => return outcome,
            Ok(Err(reason)) => reason,
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::debug!(origin = target.origin(), reason, "a notification could not be sent");
        PostOutcome::Later(None)
    }

    async fn try_send(
        &self,
        target: &DeliveryTarget,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<PostOutcome, String> {
        let trusted = target.trusted;
        // The connector resolves no host that is an address already.
        if let Some(ip) = ip(&target.host).filter(|ip| !trusted && !is_public(*ip)) {
            return Err(not_public(&target.host, ip));
        }
        // The connector connects to what this resolver returns, and resolves nothing itself: an address cannot change after its check.
        let mut tcp = HttpConnector::new_with_resolver(tower::service_fn(move |name| resolve(name, trusted)));
        tcp.enforce_http(false);
        if !target.tls {
            return post(tcp, target, headers, body).await;
        }
        let tls = Arc::clone(self.tls.get_or_try_init(tls_config).await?);
        post(HttpsConnector::from((tcp, tls)), target, headers, body).await
    }
}

/// Returns the TLS configuration with the system's certificates, which are read once, when they are first needed.
async fn tls_config() -> Result<Arc<ClientConfig>, String> {
    let read = || {
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| error.to_string())?.with_native_roots().map_err(|error| {
            let reason = "no system certificates were found: install them (ca-certificates), or set SSL_CERT_FILE";
            tracing::warn!(%error, "{reason}");
            reason.to_owned()
        });
        Ok(Arc::new(config?.with_no_client_auth()))
    };
    tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?
}

/// Resolves a name, to public addresses only unless the target is `trusted`: a name that resolves to this network is not a push service.
async fn resolve(name: Name, trusted: bool) -> io::Result<std::vec::IntoIter<SocketAddr>> {
    let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
    let (public, private): (Vec<_>, Vec<_>) = found.partition(|address| trusted || is_public(address.ip()));
    match private.first() {
        Some(address) if public.is_empty() => Err(io::Error::other(not_public(name.as_str(), address.ip()))),
        _ => Ok(public.into_iter()),
    }
}

fn not_public(host: &str, ip: IpAddr) -> String {
    format!("{host} is {ip}, which is not a public address")
}

async fn post<C: Connect + Clone + Send + Sync + 'static>(
    connector: C,
    target: &DeliveryTarget,
    mut headers: HeaderMap,
    body: Vec<u8>,
) -> Result<PostOutcome, String> {
    let client = Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .retry_canceled_requests(false)
        .http1_max_buf_size(HEAD_MAX)
        .build(connector);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let request = http::Request::post(format!("{}{}", target.origin(), target.path));
    let mut request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
    *request.headers_mut() = headers;
    // The body of the response is dropped unread, and the connection with it.
    let response = client.request(request).await.map_err(|error| with_causes(&error))?;
    let seconds = response.headers().get(RETRY_AFTER).and_then(|text| text.to_str().ok()?.parse::<u64>().ok());
    let retry_after = seconds.map(|seconds| i64::try_from(seconds.min(RETRY_AFTER_MAX) * 1000).unwrap_or(i64::MAX));
    Ok(PostOutcome::from_status(response.status().as_u16(), retry_after))
}

fn with_causes(error: &dyn Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
    use tokio_rustls::rustls::{RootCertStore, ServerConfig};

    use super::*;

    #[test]
    fn push_target_is_a_known_service_by_https_or_one_that_the_owner_named() {
        let own = ["http://127.0.0.1:8090".to_owned(), "push.example.org".into(), "https://other.example:8443".into()];
        for good in [
            "https://fcm.googleapis.com/fcm/send/abc:def",
            "https://FCM.googleapis.com:443/x",
            "https://updates.push.services.mozilla.com/wpush/v2/gAAA",
            "https://web.push.apple.com/QGB",
            "https://wns2-par02p.notify.windows.com/w/?token=BQ",
            "http://127.0.0.1:8090/push/1",
            "https://push.example.org/1",
            "https://other.example:8443/1?a=b",
        ] {
            assert!(
                DeliveryTarget::from_client(good, &own).is_ok(),
                "{good}: {:?}",
                DeliveryTarget::from_client(good, &own)
            );
        }
        let long = format!("https://fcm.googleapis.com/{}", "x".repeat(ENDPOINT_MAX));
        for bad in [
            "http://fcm.googleapis.com/x",
            "https://fcm.googleapis.com:8443/x",
            "https://fcm.googleapis.com:/x",
            "https://evil.fcm.googleapis.com/x",
            "https://fcm.googleapis.com.evil.example/x",
            "https://evilpush.services.mozilla.com/x",
            "https://.push.apple.com/x",
            "https://push.apple.com/x",
            "https://fcm.googleapis.com@127.0.0.1/x",
            "https://user:pass@fcm.googleapis.com/x",
            "https://fcm.googleapis.com\\@127.0.0.1/x",
            "https://fcm.googleapis.com#@127.0.0.1/",
            "https://fcm.googleapis.com%2e/x",
            "https://fcm.googleapis.com./x",
            "https://127.0.0.1/x",
            "https://127.0.0.1:8090/push/1",
            "http://127.0.0.1:8091/push/1",
            "http://127.0.0.1/x",
            "http://localhost:8090/x",
            "http://2130706433:8090/x",
            "http://0x7f.1:8090/x",
            "http://[::1]:8090/x",
            "http://[::ffff:127.0.0.1]:8090/x",
            "https://169.254.169.254/latest/meta-data",
            "http://metadata.google.internal/",
            "http://push.example.org/1",
            "https://push.example.org:8443/1",
            "https://sub.push.example.org/1",
            "file:///etc/passwd",
            "gopher://fcm.googleapis.com/x",
            "ftp://fcm.googleapis.com/x",
            "javascript:alert(1)",
            "//fcm.googleapis.com/x",
            "/push/1",
            "fcm.googleapis.com",
            "https://",
            "",
            " https://fcm.googleapis.com/x",
            "https://fcm.googleapis.com/x\r\nHost: evil",
            "https://fcm.googleapis.com/\u{202e}",
            long.as_str(),
        ] {
            assert!(DeliveryTarget::from_client(bad, &own).is_err(), "{bad}");
        }
    }

    #[test]
    fn push_address_of_this_machine_or_network_is_not_public() {
        let addresses = |list: &[&str], public| {
            for text in list {
                assert_eq!(is_public(text.parse().unwrap()), public, "{text}");
            }
        };
        addresses(&["8.8.8.8", "142.250.1.95", "100.63.0.1", "2a00:1450:4001:813::200a", "2600::1"], true);
        addresses(
            &[
                "0.0.0.0",
                "0.1.2.3",
                "10.1.2.3",
                "100.64.0.1",
                "127.0.0.1",
                "127.9.9.9",
                "169.254.169.254",
                "172.16.0.1",
                "172.31.255.255",
                "192.0.0.1",
                "192.0.2.1",
                "192.88.99.1",
                "192.168.1.1",
                "198.18.0.1",
                "198.51.100.1",
                "203.0.113.1",
                "224.0.0.1",
                "240.0.0.1",
                "255.255.255.255",
                "::",
                "::1",
                "::ffff:8.8.8.8",
                "::ffff:127.0.0.1",
                "64:ff9b::7f00:1",
                "fc00::1",
                "fd12::1",
                "fe80::1",
                "ff02::1",
                "2001:db8::1",
                "2001::1",
                "2002:7f00:1::",
                "3fff::1",
            ],
            false,
        );
    }

    fn local(host: &str, port: u16) -> DeliveryTarget {
        DeliveryTarget { tls: false, host: host.into(), port, path: "/push?a=b".into(), trusted: true }
    }

    /// A service on loopback that gives each connection this answer, and then more bytes than anybody should read. Tells what it was
    /// sent and how many bytes of its answer were taken.
    async fn service(answer: String) -> (u16, tokio::sync::mpsc::Receiver<(String, usize)>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, told) = tokio::sync::mpsc::channel(8);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let length = stream.read(&mut request).await.unwrap_or_default();
                let mut taken = 0;
                for chunk in std::iter::once(answer.as_bytes()).chain(std::iter::repeat_n(&[b'x'; 4096][..], 16 << 10))
                {
                    if stream.write_all(chunk).await.is_err() {
                        break;
                    }
                    taken += chunk.len();
                }
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                if tell.send((request, taken)).await.is_err() {
                    return;
                }
            }
        });
        (port, told)
    }

    async fn sent(target: &DeliveryTarget) -> Result<PostOutcome, String> {
        let mut headers = HeaderMap::new();
        headers.insert("ttl", HeaderValue::from_static("60"));
        let attempt = Sender::default();
        let attempt = attempt.try_send(target, headers, b"sealed".to_vec());
        tokio::time::timeout(ATTEMPT, attempt).await.unwrap()
    }

    #[tokio::test]
    async fn push_sender_connects_to_private_addresses_only_if_the_owner_did() {
        let (port, mut told) = service("HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n".into()).await;
        for host in ["localhost", "127.0.0.1"] {
            let target = DeliveryTarget { trusted: false, ..local(host, port) };
            assert!(sent(&target).await.unwrap_err().contains("not a public address"), "{host}");
        }
        assert!(told.try_recv().is_err(), "nothing was connected to");
        for host in ["localhost", "127.0.0.1"] {
            assert_eq!(sent(&local(host, port)).await, Ok(PostOutcome::Taken(201)), "{host}");
        }
        let (request, _) = told.recv().await.unwrap();
        let request = request.to_ascii_lowercase();
        assert!(request.starts_with("post /push?a=b http/1.1\r\n"), "{request}");
        for part in [&format!("\r\nhost: localhost:{port}\r\n"), "\r\nttl: 60\r\n", "\r\nconnection: close\r\n"] {
            assert!(request.contains(part), "{part} in {request}");
        }
    }

    #[tokio::test]
    async fn push_sender_reads_only_the_head_of_an_answer_and_follows_no_redirect() {
        let (elsewhere, mut reached) = service("HTTP/1.1 201 Created\r\n\r\n".into()).await;
        let answer = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:{elsewhere}/\r\n\r\n");
        let (port, mut told) = service(answer).await;
        assert_eq!(sent(&local("127.0.0.1", port)).await, Ok(PostOutcome::Refused(307)));
        let (_, taken) = told.recv().await.unwrap();
        assert!(taken < 32 << 20, "{taken} bytes of the body were taken");
        assert!(reached.try_recv().is_err(), "the redirect was followed");
    }

    #[tokio::test]
    async fn push_sender_checks_certificate_and_name() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
        let provider = Arc::new(crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let server = server.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n").await;
                let _ = stream.shutdown().await;
            }
        });
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let client = Arc::new(client.with_root_certificates(roots).with_no_client_auth());
        let trusting = Sender { tls: Arc::new(OnceCell::new_with(Some(client))) };
        for (sender, host, accepted) in
            [(&trusting, "localhost", true), (&trusting, "127.0.0.1", false), (&Sender::default(), "localhost", false)]
        {
            let target = DeliveryTarget { tls: true, ..local(host, port) };
            let outcome = sender.try_send(&target, HeaderMap::new(), Vec::new());
            let outcome = tokio::time::timeout(ATTEMPT, outcome).await.unwrap();
            assert_eq!(outcome == Ok(PostOutcome::Taken(201)), accepted, "{host}: {outcome:?}");
        }
    }

    #[tokio::test]
    async fn push_sender_counts_a_head_over_the_bound_as_a_failure() {
        let answer = |length| format!("HTTP/1.1 201 Created\r\nx-long: {}\r\n\r\n", "x".repeat(length));
        let (port, _told) = service(answer(HEAD_MAX / 2)).await;
        assert_eq!(sent(&local("127.0.0.1", port)).await, Ok(PostOutcome::Taken(201)));
        let (port, _told) = service(answer(2 * HEAD_MAX)).await;
        assert!(sent(&local("127.0.0.1", port)).await.is_err());
    }

    #[tokio::test]
    async fn push_sender_obeys_retry_after_up_to_a_bound() {
        for (said, outcome) in [("7", Some(7_000)), ("86400", Some(300_000)), ("soon", None)] {
            let (port, _told) = service(format!("HTTP/1.1 429 Slow\r\nretry-after: {said}\r\n\r\n")).await;
            assert_eq!(sent(&local("127.0.0.1", port)).await, Ok(PostOutcome::Later(outcome)), "{said}");
        }
    }

    #[test]
    fn push_service_setting_is_a_host_or_an_origin() {
        for good in ["push.example.org", "https://push.example.org", "https://push.example.org:8443/", "http://[::1]:1"]
        {
            assert_eq!(check_service(good), Ok(()), "{good}");
        }
        for bad in ["", "push.example.org:1", "http://push.example.org", "https://a/b", "https://u@a", "a b", "ftp://a"]
        {
            assert!(check_service(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn push_outcome_follows_the_status() {
        assert_eq!(PostOutcome::from_status(201, None), PostOutcome::Taken(201));
        assert_eq!(PostOutcome::from_status(410, None), PostOutcome::Gone(410));
        assert_eq!(PostOutcome::from_status(429, Some(5)), PostOutcome::Later(Some(5)));
        assert_eq!(PostOutcome::from_status(503, None), PostOutcome::Later(None));
        for status in [301, 302, 307, 400, 401, 403, 413] {
            assert_eq!(PostOutcome::from_status(status, None), PostOutcome::Refused(status));
        }
    }
}
