//! Access from other machines: proxies in front of the gateway, and the private CA of `plexus tls init`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::header::{HeaderMap, HeaderName};
use serde::{Deserialize, Serialize};

/// The header with the client's address. Each proxy appends the address that it sees.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The file with the names that the private CA may sign.
const AUTHORITY_FILE: &str = "ca.json";
/// The CA's certificate in PEM.
pub const CA_CERT: &str = "ca.crt";
/// The CA's certificate as a profile for iOS.
pub const CA_PROFILE: &str = "ca.mobileconfig";

/// The addresses at which other machines reach the gateway, and its private CA.
#[derive(Debug, Default)]
pub struct PublicAddresses {
    /// The folder of the private CA, if the gateway has one.
    ca: Option<PathBuf>,
    /// The part that changes while the gateway runs.
    reach: ArcSwap<PublicReach>,
}

/// The addresses at which other machines reach the gateway at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicReach {
    /// The proxies whose `X-Forwarded-For` counts.
    pub proxies: Proxies,
    /// The origin of links (`https://plexus.example`), if there is one.
    pub url: Option<String>,
}

impl PublicAddresses {
    /// Makes a value without any address; `ca` is the folder of the private CA.
    pub fn new(ca: Option<PathBuf>) -> Self {
        Self { ca, reach: ArcSwap::default() }
    }

    /// Changes how the gateway is reached; it applies to later requests.
    pub fn set(&self, reach: PublicReach) {
        self.reach.store(Arc::new(reach));
    }

    /// Returns the origin by which other devices reach the gateway, if there is one.
    pub fn url(&self) -> Option<String> {
        self.reach.load().url.clone()
    }

    /// Returns the folder of the private CA.
    pub fn ca(&self) -> Option<&Path> {
        self.ca.as_deref()
    }

    /// Returns whether the address is a trusted proxy.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.reach.load().proxies.trusts(address)
    }

    /// Returns the client's address, as [`Proxies::client`] determines it.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        self.reach.load().proxies.client(peer, headers)
    }
}

/// An address, or all addresses with a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    bits: u8,
}

impl Network {
    /// Returns a network with this address alone.
    pub fn only(address: IpAddr) -> Self {
        let base = address.to_canonical();
        Self { base, bits: if base.is_ipv4() { 32 } else { 128 } }
    }

    /// Returns whether the network contains the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u8| (a ^ b).checked_shr(u32::from(width - self.bits)).unwrap_or(0) == 0;
        match (self.base, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "write an address (\"127.0.0.1\") or a network (\"10.0.0.0/8\")";
        let (base, bits) = text.split_once('/').map_or((text, None), |(base, bits)| (base, Some(bits)));
        let base = base.parse::<IpAddr>().map_err(|_| WRONG)?.to_canonical();
        let width = if base.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), str::parse).map_err(|_| WRONG)?;
        if bits > width {
            return Err(WRONG);
        }
        if bits == 0 {
            return Err("that includes every address: list only your proxies");
        }
        Ok(Self { base, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

/// The trusted proxies. Only their addresses are trusted, and never a host name or a scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies(Vec<Network>);

impl Proxies {
    /// Trusts these networks.
    pub fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// Returns whether the address is a trusted proxy.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Returns the client's address: the peer's, or, if the peer is a trusted proxy, the last forwarded address that is not one.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        let lines = headers.get_all(FORWARDED_FOR).iter().rev().map(|line| line.to_str().unwrap_or_default());
        for word in lines.flat_map(|line| line.rsplit(',')) {
            if !self.trusts(client) {
                break;
            }
            match address(word.trim()) {
                Some(before) => client = before,
                // The rest of the list was not written by a trusted proxy.
                None => break,
            }
        }
        client
    }
}

/// Reads an origin: `https://plexus.example.org`, `https://box.local:7443`. Plain HTTP is allowed for this machine only.
///
/// # Errors
/// A text for users, with the fix.
pub fn parse_origin(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches('/').to_ascii_lowercase();
    let fix = "write only the scheme, name and port: \"https://plexus.example.org\"";
    let Some((scheme, authority)) = text.split_once("://") else {
        return Err(format!("\"{text}\" is not an origin: {fix}"));
    };
    let named = authority.parse::<http::uri::Authority>().ok();
    let Some(named) = named.filter(|name| !name.as_str().contains('@') && !name.host().is_empty()) else {
        return Err(format!("\"{text}\" is not an origin: {fix}"));
    };
    let (host, port) = (named.host(), authority.get(named.host().len()..).unwrap_or_default());
    let digits = port.strip_prefix(':').filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    let valid_host =
        host.starts_with('[') || host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if !valid_host || !(port.is_empty() || digits.is_some_and(|port| port.parse::<u16>().is_ok())) {
        return Err(format!("\"{text}\" is not an origin: {fix}"));
    }
    let is_loopback = ["localhost", "127.0.0.1", "[::1]"].contains(&host);
    match scheme {
        "https" => {}
        "http" if is_loopback => {}
        "http" => return Err("other machines must use https: see docs/remote.md".into()),
        _ => return Err(format!("the scheme \"{scheme}\" is not supported: {fix}")),
    }
    // Browsers omit the default port.
    let default = if scheme == "https" { ":443" } else { ":80" };
    Ok(text.strip_suffix(default).unwrap_or(&text).to_owned())
}

/// Parses an address in the forms that proxies write: plain, in brackets, with a port.
fn address(word: &str) -> Option<IpAddr> {
    let bare = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(word);
    let found = bare.parse().ok().or_else(|| word.parse::<SocketAddr>().ok().map(|address| address.ip()));
    found.map(|address: IpAddr| address.to_canonical())
}

/// The names that the private CA can sign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// The CA's title.
    pub title: String,
    /// The names and addresses that the CA may sign.
    pub names: Vec<String>,
    /// The time when the server's certificate expires, in seconds since 1970.
    pub server_until: i64,
}

impl Authority {
    /// Reads the CA's file in this folder, if there is one.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(folder.join(AUTHORITY_FILE)).ok()?).ok()
    }

    /// Returns the file's name and text.
    pub fn file(&self) -> (&'static str, Vec<u8>) {
        (AUTHORITY_FILE, serde_json::to_vec_pretty(self).unwrap_or_default())
    }

    /// Returns the origins of a server on this port with these names.
    pub fn origins(names: &[String], port: u16) -> Vec<String> {
        let port = if port == 443 { String::new() } else { format!(":{port}") };
        let host = |name: &String| match name.parse() {
            Ok(IpAddr::V6(v6)) => format!("[{v6}]"),
            _ => name.to_ascii_lowercase(),
        };
        names.iter().map(|name| format!("https://{}{port}", host(name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn proxies(all: &[&str]) -> Proxies {
        Proxies::new(all.iter().map(|one| one.parse().unwrap()).collect())
    }

    fn forwarded(lines: &[&str]) -> HeaderMap {
        lines.iter().map(|line| (FORWARDED_FOR, HeaderValue::from_str(line).unwrap())).collect()
    }

    #[test]
    fn network_contains_addresses_with_its_prefix() {
        for (network, inside, outside) in [
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.1/32", "::ffff:10.0.0.1", "::1"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("::1", "::1", "::2"),
            ("128.0.0.0/1", "255.1.1.1", "127.1.1.1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network} {outside}");
        }
        for wrong in ["", "x", "127.0.0.1/33", "127.0.0.1/", "::/129", "localhost", "0.0.0.0/0", "::/0"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn forwarded_address_counts_only_from_trusted_proxies() {
        let ours = proxies(&["127.0.0.1", "10.0.0.0/8"]);
        let cases: &[(&str, &[&str], &str)] = &[
            // A stranger may say what it likes.
            ("192.0.2.9", &["1.1.1.1"], "192.0.2.9"),
            ("127.0.0.1", &[], "127.0.0.1"),
            ("127.0.0.1", &["1.1.1.1"], "1.1.1.1"),
            // The client made up the first ones.
            ("127.0.0.1", &["6.6.6.6, 127.0.0.1, 1.1.1.1"], "1.1.1.1"),
            ("127.0.0.1", &["6.6.6.6", "1.1.1.1, 10.1.1.1"], "1.1.1.1"),
            ("127.0.0.1", &["1.1.1.1", "10.1.1.1"], "1.1.1.1"),
            ("127.0.0.1", &["10.1.1.1,10.1.1.2"], "10.1.1.1"),
            // Whatever is no address ends the search.
            ("127.0.0.1", &["1.1.1.1, unknown"], "127.0.0.1"),
            ("127.0.0.1", &["1.1.1.1, x, 10.1.1.1"], "10.1.1.1"),
            ("127.0.0.1", &[""], "127.0.0.1"),
            ("127.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("127.0.0.1", &["2001:db8::1"], "2001:db8::1"),
            ("127.0.0.1", &["1.1.1.1:80"], "1.1.1.1"),
            ("::ffff:127.0.0.1", &["1.1.1.1"], "1.1.1.1"),
        ];
        for (peer, lines, client) in cases {
            let found = ours.client(peer.parse().unwrap(), &forwarded(lines));
            assert_eq!(found, client.parse::<IpAddr>().unwrap(), "{peer} {lines:?}");
        }
        let nobody = Proxies::default();
        assert_eq!(nobody.client("127.0.0.1".parse().unwrap(), &forwarded(&["1.1.1.1"])).to_string(), "127.0.0.1");
    }

    #[test]
    fn origin_has_a_name_and_a_port_that_exist() {
        for (text, origin) in [
            ("https://Box.ts.net", "https://box.ts.net"),
            ("https://box:443/", "https://box"),
            ("https://[fd00::1]:7443", "https://[fd00::1]:7443"),
            ("http://localhost:80", "http://localhost"),
        ] {
            assert_eq!(parse_origin(text).as_deref(), Ok(origin));
        }
        for wrong in [
            "",
            "box",
            "https://",
            "https://w:001*",
            "https://w:",
            "https://w:70000",
            "https://w*",
            "http://box",
            "ftp://box",
            "https://a/b",
            "https://u@a",
        ] {
            assert!(parse_origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn public_names_become_origins() {
        let names = ["Box.local".to_owned(), "192.168.1.5".into(), "fd00::1".into()];
        let with = ["https://box.local:7443", "https://192.168.1.5:7443", "https://[fd00::1]:7443"];
        assert_eq!(Authority::origins(&names, 7443), with);
        assert_eq!(Authority::origins(&names[..1], 443), ["https://box.local"]);
    }
}
