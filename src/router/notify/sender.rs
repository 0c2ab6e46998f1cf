//! One POST to somewhere outside: the only connections that the gateway makes by itself. Where to is judged before anything is
//! resolved, and again by address; nothing is followed, nothing of the answer is read but its status.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderMap, HeaderValue, RETRY_AFTER};
use http::uri::{Authority, Uri};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// Longest address of a subscription, in bytes; a longer one is refused.
pub(super) const ENDPOINT_MAX: usize = 1024;
/// How long a whole attempt may take; then it counts as failed.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Bytes of an answer's head that are read; a longer one counts as failed.
const HEAD_MAX: usize = 16 << 10;
/// Longest `Retry-After` that is obeyed, in seconds; a longer one is cut to it.
const RETRY_AFTER_MAX: u64 = 300;

/// The push services of the browsers that there are: by name, or with a leading dot by the end of a name.
const KNOWN: [&str; 4] = ["fcm.googleapis.com", ".push.services.mozilla.com", ".push.apple.com", ".notify.windows.com"];

/// Where to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeliveryTarget {
    tls: bool,
    host: String,
    port: u16,
    /// Path and query.
    path: String,
    /// The owner named it: its address may be a private one.
    trusted: bool,
}

impl DeliveryTarget {
    /// Scheme, host and port, as RFC 6454 writes them.
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

    /// Reads an address that the owner wrote: any host, `http` or `https`.
    ///
    /// # Errors
    /// In words.
    pub(super) fn of_owner(url: &str) -> Result<Self, String> {
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

    /// Reads the address of a subscription, which a client said: only a known push service, or one that the owner named.
    ///
    /// # Errors
    /// In words, with the fix.
    pub(super) fn of_client(url: &str, services: &[String]) -> Result<Self, String> {
        if url.len() > ENDPOINT_MAX {
            return Err(format!("is longer than {ENDPOINT_MAX} bytes"));
        }
        if !url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err("has characters that are not allowed in an address".into());
        }
        let goal = Self::of_owner(url)?;
        if services.iter().any(|service| goal.is_of(service)) {
            return Ok(goal);
        }
        let known = KNOWN.iter().any(|known| match known.strip_prefix('.') {
            Some(end) => goal.host.strip_suffix(end).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            None => goal.host == *known,
        });
        if !goal.tls || !known || goal.port != 443 {
            return Err(format!(
                "{} is not a known push service: add it to [push] services if it is yours",
                goal.origin()
            ));
        }
        Ok(Self { trusted: false, ..goal })
    }

    /// Whether it is a service as the owner names one: a host (then by `https` on its usual port), or an origin.
    fn is_of(&self, service: &str) -> bool {
        match service.contains("://") {
            true => self.origin() == service.trim_end_matches('/').to_ascii_lowercase(),
            false => self.tls && self.port == 443 && self.host == service.to_ascii_lowercase(),
        }
    }
}

/// Whether a service of the configuration is one: a host, an `https` origin, or an `http` origin on loopback.
///
/// # Errors
/// In words, with the fix.
pub fn check_service(service: &str) -> Result<(), String> {
    let fix = "write a host or an origin: \"push.example.org\", \"https://push.example.org:8443\"";
    let url = if service.contains("://") { service.to_owned() } else { format!("https://{service}") };
    let goal = DeliveryTarget::of_owner(&url).map_err(|why| format!("\"{service}\" {why}: {fix}"))?;
    if goal.path != "/" || (!service.contains("://") && service.contains(':')) {
        return Err(format!("\"{service}\" is neither a host nor an origin: {fix}"));
    }
    let loopback = goal.host == "localhost" || ip(&goal.host).is_some_and(|ip| ip.is_loopback());
    if !goal.tls && !loopback {
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

/// A host that is an address.
fn ip(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Whether an address is one of the open internet: everything else could be this machine, or this network.
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
    // 2000::/3 is what is given out; within it stand ways to write an IPv4 address, and examples.
    (0x2000..0x4000).contains(&a) && a != 0x2002 && !(a == 0x2001 && (b < 0x0200 || b == 0x0db8)) && a != 0x3fff
}

/// How an attempt went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostOutcome {
    /// It was taken.
    Taken(u16),
    /// There is no such subscription any more.
    Gone(u16),
    /// It was refused, and would be again.
    Refused(u16),
    /// Nobody answered, or not now: in so many milliseconds at the earliest, if the other end says so.
    Later(Option<i64>),
}

impl PostOutcome {
    fn of(status: u16, retry_after: Option<i64>) -> Self {
        match status {
            200..=299 => Self::Taken(status),
            404 | 410 => Self::Gone(status),
            408 | 425 | 429 | 500..=599 => Self::Later(retry_after),
            // Redirects too: where to send is not for the other end to say.
            _ => Self::Refused(status),
        }
    }
}

/// Makes the connections.
#[derive(Clone, Default)]
pub(super) struct Post {
    tls: Arc<OnceCell<TlsConnector>>,
}

impl Post {
    /// Sends once. Takes [`ATTEMPT`] at most; a connection of its own, closed after.
    pub(super) async fn send(&self, goal: &DeliveryTarget, headers: HeaderMap, body: Vec<u8>) -> PostOutcome {
        match tokio::time::timeout(ATTEMPT, self.try_send(goal, headers, body)).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(why)) => {
                tracing::debug!(origin = goal.origin(), why, "a notification could not be sent");
                PostOutcome::Later(None)
            }
            Err(_) => {
                tracing::debug!(origin = goal.origin(), "a notification could not be sent: no answer in time");
                PostOutcome::Later(None)
            }
        }
    }

    async fn try_send(&self, goal: &DeliveryTarget, headers: HeaderMap, body: Vec<u8>) -> Result<PostOutcome, String> {
        let stream = connect(goal).await?;
        if !goal.tls {
            return exchange(stream, goal, headers, body).await;
        }
        let name = ServerName::try_from(goal.host.clone()).map_err(|error| error.to_string())?;
        let tls = self.tls.get_or_try_init(connector).await?;
        let stream = tls.connect(name, stream).await.map_err(|error| error.to_string())?;
        exchange(stream, goal, headers, body).await
    }
}

/// Whom the system trusts; read once, when it is first needed.
async fn connector() -> Result<TlsConnector, String> {
    let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
    let found = found.map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = "no system certificates were found: install them (ca-certificates), or set SSL_CERT_FILE";
        tracing::warn!(errors = ?found.errors, "{why}");
        return Err(why.into());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The addresses are judged here, after they were resolved and right before they are used: a name that leads into this
/// network is no push service, whatever it said before.
async fn connect(goal: &DeliveryTarget) -> Result<TcpStream, String> {
    let addresses: Vec<SocketAddr> = match ip(&goal.host) {
        Some(ip) => vec![SocketAddr::new(ip, goal.port)],
        None => {
            let found = tokio::net::lookup_host((goal.host.as_str(), goal.port)).await;
            found.map_err(|error| error.to_string())?.collect()
        }
    };
    let mut why = format!("{} has no address", goal.host);
    for address in addresses {
        if !goal.trusted && !is_public(address.ip()) {
            why = format!("{} is {}, which is not a public address", goal.host, address.ip());
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    goal: &DeliveryTarget,
    mut headers: HeaderMap,
    body: Vec<u8>,
) -> Result<PostOutcome, String> {
    let built = hyper::client::conn::http1::Builder::new()
        .max_buf_size(HEAD_MAX)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await;
    let (mut sender, connection) = built.map_err(|error| error.to_string())?;
    let host = HeaderValue::from_str(&goal.authority()).map_err(|error| error.to_string())?;
    headers.insert(HOST, host);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let mut request = http::Request::post(goal.path.as_str()).body(Full::from(body)).map_err(|e| e.to_string())?;
    *request.headers_mut() = headers;
    let mut asked = std::pin::pin!(sender.send_request(request));
    // Both go on together; what is said after the head is never read.
    let response = tokio::select! {
        response = &mut asked => response,
        // The other end may hang up with its last word.
        _ = connection => asked.await,
    };
    let response = response.map_err(|error| error.to_string())?;
    let seconds = response.headers().get(RETRY_AFTER).and_then(|text| text.to_str().ok()?.parse::<u64>().ok());
    let retry_after = seconds.map(|seconds| i64::try_from(seconds.min(RETRY_AFTER_MAX) * 1000).unwrap_or(i64::MAX));
    Ok(PostOutcome::of(response.status().as_u16(), retry_after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_push_services_by_https_and_those_that_the_owner_named_are_sent_to() {
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
                DeliveryTarget::of_client(good, &own).is_ok(),
                "{good}: {:?}",
                DeliveryTarget::of_client(good, &own)
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
            assert!(DeliveryTarget::of_client(bad, &own).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_of_this_machine_and_this_network_are_not_public() {
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

    #[tokio::test]
    async fn a_known_name_that_leads_into_this_network_is_not_connected_to() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let goal = DeliveryTarget { tls: false, host: "localhost".into(), port, path: "/".into(), trusted: false };
        assert!(connect(&goal).await.unwrap_err().contains("public address"));
        assert!(connect(&DeliveryTarget { trusted: true, ..goal }).await.is_ok());
    }

    #[test]
    fn a_service_of_the_configuration_is_a_host_or_an_origin() {
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
    fn what_a_status_means() {
        assert_eq!(PostOutcome::of(201, None), PostOutcome::Taken(201));
        assert_eq!(PostOutcome::of(410, None), PostOutcome::Gone(410));
        assert_eq!(PostOutcome::of(429, Some(5)), PostOutcome::Later(Some(5)));
        assert_eq!(PostOutcome::of(503, None), PostOutcome::Later(None));
        for status in [301, 302, 307, 400, 401, 403, 413] {
            assert_eq!(PostOutcome::of(status, None), PostOutcome::Refused(status));
        }
    }
}
