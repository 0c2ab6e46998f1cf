//! Addresses of endpoints: of this machine only, because nothing sent to them is encrypted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use http::Uri;

use plexus_dialects::link::{TERMINAL_DIALECTS, TerminalDialect};
use plexus_protocol::LINK_SCHEME;

/// The address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// `ws://host:port/path`
    Ws { at: Vec<SocketAddr>, url: String },
    /// `unix:/path`
    Unix(PathBuf),
    /// `http://host:port`, without a slash at its end.
    Http(String),
    /// `link:agent`: the terminals of this agent, over the gateway's own link socket.
    Link(&'static TerminalDialect),
}

impl Address {
    /// Reads an address; refuses one that cannot be reached safely, with the fix.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if !path.starts_with('/') || path.contains('\0') {
                return Err(format!(
                    "cannot connect to {text}: write unix: and the absolute path of the socket, such as unix:/path"
                ));
            }
            return Ok(Self::Unix(Path::new(path).to_owned()));
        }
        if let Some(name) = text.strip_prefix(LINK_SCHEME) {
            let agent = TERMINAL_DIALECTS.iter().find(|agent| agent.name == name);
            return agent
                .map(Self::Link)
                .ok_or_else(|| format!("cannot connect to {text}: no agent of this name can be linked"));
        }
        let refuse = |reason: &str| Err(format!("cannot connect to {text}: {reason}"));
        let Ok(uri) = text.parse::<Uri>() else {
            return refuse("not an address; use ws://host:port/path, unix:/path or http://host:port");
        };
        let (http, port) = match uri.scheme_str() {
            Some("ws") => (false, 80),
            Some("http") => (true, 80),
            Some("wss" | "https") => {
                return refuse(
                    "TLS is not supported; connect to its plain port on this machine, or to the end of a tunnel",
                );
            }
            _ => return refuse("use ws://host:port/path, unix:/path or http://host:port"),
        };
        let Some(authority) = uri.authority() else { return refuse("it has no host") };
        if authority.as_str().contains('@') {
            return refuse("take the password out of it and set it as the runtime's secret");
        }
        let port = authority.port_u16().unwrap_or(port);
        let Some(hosts) = loopback(authority.host()) else {
            return refuse(&format!(
                "only endpoints on this machine are supported, because the connection is not encrypted; for another \
                 machine use a tunnel (ssh -L {port}:127.0.0.1:{port} {}) and connect to 127.0.0.1",
                authority.host()
            ));
        };
        if http {
            let url = uri.to_string();
            if url.contains('?') {
                return refuse("a query is not supported");
            }
            return Ok(Self::Http(url.trim_end_matches('/').to_owned()));
        }
        let at = hosts.into_iter().map(|host| SocketAddr::new(host, port)).collect();
        Ok(Self::Ws { at, url: uri.to_string() })
    }

    /// Returns the scheme.
    pub(super) fn scheme(&self) -> &'static str {
        match self {
            Self::Ws { .. } => "ws",
            Self::Unix(_) => "unix",
            Self::Http(_) => "http",
            Self::Link(_) => "link",
        }
    }
}

/// Returns the addresses of a host that is this machine. Names are not looked up, because others control their resolution.
pub(super) fn loopback(host: &str) -> Option<Vec<IpAddr>> {
    if host.eq_ignore_ascii_case("localhost") {
        return Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    let host: IpAddr = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    host.is_loopback().then(|| vec![host])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_this_machine_is_taken() {
        let ws = |at: &[&str], url: &str| {
            Ok(Address::Ws { at: at.iter().map(|at| at.parse().unwrap()).collect(), url: url.into() })
        };
        let cases = [
            ("ws://127.0.0.1:9999/", ws(&["127.0.0.1:9999"], "ws://127.0.0.1:9999/")),
            ("ws://127.0.0.1:9999", ws(&["127.0.0.1:9999"], "ws://127.0.0.1:9999/")),
            ("ws://LocalHost:1/a?b=c", ws(&["127.0.0.1:1", "[::1]:1"], "ws://LocalHost:1/a?b=c")),
            ("ws://[::1]:7/", ws(&["[::1]:7"], "ws://[::1]:7/")),
            ("unix:/run/a b.sock", Ok(Address::Unix("/run/a b.sock".into()))),
            ("unix:///run/x", Ok(Address::Unix("/run/x".into()))),
            ("http://localhost:3000/", Ok(Address::Http("http://localhost:3000".into()))),
            ("http://127.0.0.2:3000/base/", Ok(Address::Http("http://127.0.0.2:3000/base".into()))),
        ];
        for (text, expected) in cases {
            assert_eq!(Address::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn address_elsewhere_is_refused_with_the_fix() {
        let cases = [
            ("ws://10.0.0.5:9999/", "ssh -L 9999:127.0.0.1:9999 10.0.0.5"),
            ("ws://example.org/", "ssh -L 80:127.0.0.1:80 example.org"),
            ("http://0.0.0.0:1", "ssh -L"),
            ("http://127.0.0.1.example.org:1", "ssh -L"),
            ("http://localhost.:1", "ssh -L"),
            ("http://[::ffff:8.8.8.8]:1", "ssh -L"),
            ("ws://user:pass@127.0.0.1:1/", "secret"),
            ("http://127.0.0.1:1?token=x", "query"),
            ("wss://127.0.0.1:1/", "TLS"),
            ("https://127.0.0.1:1", "TLS"),
            ("unix:relative", "unix:/path"),
            ("unix:", "unix:/path"),
            ("127.0.0.1:9999", "ws://"),
            ("/run/x", "ws://"),
            ("", "ws://"),
            ("ws:// x", "ws://"),
        ];
        for (text, expected) in cases {
            let reason = Address::parse(text).unwrap_err();
            assert!(reason.contains(expected) && reason.contains(text), "{text}: {reason}");
        }
    }
}
