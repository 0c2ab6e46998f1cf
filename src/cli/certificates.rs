//! A private CA that can sign only for this gateway's names, and the certificate that it signs.

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use data_encoding::{BASE64, HEXUPPER};
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _, ZonedDateTime, tz::TimeZone};
use plexus::router::public_address::{CA_CERT, CA_PROFILE};
use plexus::router::{Authority, certificate_end};
use plexus::{TLS_FILES, TLS_FOLDER, config};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use sha2::{Digest as _, Sha256};

use super::failure::{CommandFailure, USAGE};
use super::home::Home;
use super::output::clean;

/// The file of the CA's private key, in [`TLS_FOLDER`].
const CA_KEY: &str = "ca.key";
/// Lifetime of the CA, in days: ten years, since phones cannot renew it.
const CA_DAYS: i32 = 3650;
/// Lifetime of the server's certificate, in days: phones refuse more than 398, or 825 for a private CA.
const SERVER_DAYS: i32 = 397;
/// Time before its expiry at which the gateway's own certificate is renewed, in seconds: 30 days.
const RENEWAL_MARGIN: i64 = 30 * 86_400;
/// Time before its expiry at which a certificate from elsewhere causes a warning, in seconds: 14 days, since its renewal should be earlier.
const WARNING_MARGIN: i64 = 14 * 86_400;
/// Time between two checks of the gateway's own certificate; one from elsewhere is checked once a day. It is short, since a sleeping
/// machine does not count the time of its sleep.
const CHECK_EVERY: Duration = Duration::from_secs(3600);
/// Maximum length of a DNS name, and of one label, in bytes.
const NAME_MAX: (usize, usize) = (253, 63);

/// The names that the user gave, or this machine's own.
pub(crate) fn certificate_names(requested: &[String]) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for name in requested {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if !is_name(&name) {
            let fix = "write a host's name (box.local) or an address (192.168.1.5)";
            return Err(CommandFailure::new(USAGE, format!("\"{}\" is not a valid name: {fix}", clean(&name))).into());
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        names = machine_names();
    }
    if names.is_empty() {
        return Err(CommandFailure::plain(
            "this machine has no name or address that others can use: name one yourself",
        ));
    }
    Ok(names)
}

/// Creates a CA for these names in a folder, and its certificate for the server.
pub(crate) fn create_authority(folder: &Path, names: &[String]) -> anyhow::Result<Authority> {
    make_folder(folder)?;
    let mut random = [0; 3];
    getrandom::fill(&mut random).context("the system provides no random numbers")?;
    let title = format!("Plexus {} {}", names[0], HEXUPPER.encode(&random));
    let key = KeyPair::generate().context("the CA's key")?;
    let mut params = authority_params(&title, names);
    set_lifetime(&mut params, CA_DAYS)?;
    let cert = params.self_signed(&key).context("the CA's certificate")?;
    write(folder, CA_KEY, key.serialize_pem().as_bytes())?;
    write(folder, CA_CERT, cert.pem().as_bytes())?;
    write(folder, CA_PROFILE, profile(&title, cert.der()).as_bytes())?;
    sign(folder, &title, names, &key)
}

/// The SHA-256 of the CA's certificate in a folder, as phones show it.
pub(crate) fn fingerprint(folder: &Path) -> anyhow::Result<String> {
    let path = folder.join(CA_CERT);
    let cert = CertificateDer::from_pem_file(&path)
        .map_err(|error| CommandFailure::plain(format!("{}: {error}", path.display())))?;
    let hash = HEXUPPER.encode(&Sha256::digest(&cert));
    let pairs: Vec<&str> = hash.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok()).collect();
    Ok(pairs.join(":"))
}

/// Makes a new certificate for the same names with the CA in a folder.
pub(crate) fn renew_certificate(folder: &Path) -> anyhow::Result<Authority> {
    let Some(authority) = Authority::read(folder) else {
        let fix = "`plexus tls init` creates one";
        return Err(CommandFailure::plain(format!("there is no CA in {}: {fix}", folder.display())));
    };
    let key = folder.join(CA_KEY);
    let pem = std::fs::read_to_string(&key).with_context(|| format!("cannot read {}", key.display()))?;
    let pair = KeyPair::from_pem(&pem).with_context(|| format!("{} is not a key", key.display()))?;
    sign(folder, &authority.title, &authority.names, &pair)
}

/// The certificate that a gateway uses.
#[derive(Clone, Debug)]
pub(crate) enum ServedCertificate {
    /// The certificate of `plexus tls init`, in this folder.
    Own(PathBuf),
    /// A certificate that was not made by Plexus, in this file.
    External(PathBuf),
}

impl ServedCertificate {
    /// The certificate that the configuration names, or that of an added listener.
    pub(crate) fn from_config(config: Option<&config::TlsConfig>, home: &Home) -> Self {
        match config.and_then(|config| config.files.as_ref()) {
            None => Self::Own(home.dir().join(TLS_FOLDER)),
            Some((cert, _)) => Self::External(cert.clone()),
        }
    }

    /// The warning that the certificate expires soon, and the fix. A running gateway renews its own certificate and reports a failure.
    pub(crate) fn expiry_warning(&self, now: Timestamp) -> Option<(String, &'static str)> {
        let (cert, before, fix) = match self {
            Self::Own(folder) => (folder.join(TLS_FILES[0]), RENEWAL_MARGIN, "`plexus tls renew` creates a new one"),
            Self::External(cert) => (
                cert.clone(),
                WARNING_MARGIN,
                "replace the file with a new one: a running gateway starts using it within seconds",
            ),
        };
        // A file that cannot be read is reported by the listener.
        let until = certificate_end(&cert).ok()?;
        let remaining = until - now.as_second();
        let ends = if remaining > 0 { "ends" } else { "ended" };
        (remaining < before).then(|| (format!("{} {ends} on {}", cert.display(), format_day(until)), fix))
    }

    /// Renews the gateway's own certificate, and warns before one from elsewhere expires, while it is polled. Cancellation safe.
    pub(crate) async fn keep_valid(self) -> Infallible {
        loop {
            if let Some((what, fix)) = self.expiry_warning(Timestamp::now()) {
                match &self {
                    Self::Own(folder) => match renew_certificate(folder) {
                        Ok(authority) => tracing::info!(
                            "{what}: created a new one, valid until {}; nothing needs to be done on phones",
                            format_day(authority.server_until)
                        ),
                        Err(error) => tracing::error!("{what}, and a new one could not be created: {error:#}; {fix}"),
                    },
                    Self::External(_) => tracing::warn!("{what}: {fix}"),
                }
            }
            tokio::time::sleep(match &self {
                Self::Own(_) => CHECK_EVERY,
                Self::External(_) => 24 * CHECK_EVERY,
            })
            .await;
        }
    }
}

/// Makes a key and a certificate for the server, signed by the CA.
fn sign(folder: &Path, title: &str, names: &[String], ca: &KeyPair) -> anyhow::Result<Authority> {
    let issuer = Issuer::new(authority_params(title, names), ca);
    let key = KeyPair::generate().context("the server's key")?;
    let mut params = CertificateParams::new(names.to_vec()).context("a name that cannot be used in a certificate")?;
    let until = set_lifetime(&mut params, SERVER_DAYS)?;
    // The space keeps clients from reading it as a host name, which the CA would have to permit.
    params.distinguished_name = distinguished_name("Plexus gateway");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let cert = params.signed_by(&key, &issuer).context("the server's certificate")?;
    let [cert_file, key_file] = TLS_FILES;
    write(folder, key_file, key.serialize_pem().as_bytes())?;
    write(folder, cert_file, cert.pem().as_bytes())?;
    let server_until = until.to_zoned_datetime(TimeZone::UTC)?.timestamp().as_second();
    let authority = Authority { title: title.into(), names: names.to_vec(), server_until };
    let (name, text) = authority.file();
    write(folder, name, &text)?;
    Ok(authority)
}

/// The parameters of the CA. A thief of its key can impersonate this gateway and no other host: its certificates are for servers only, and
/// for these names and the names below them.
fn authority_params(title: &str, names: &[String]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name(title);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut constraints = CustomExtension::from_oid_content(NAME_CONSTRAINTS, constraints(names));
    constraints.set_criticality(true);
    params.custom_extensions = vec![constraints];
    params
}

/// The identifier of the extension that limits a CA to names.
const NAME_CONSTRAINTS: &[u64] = &[2, 5, 29, 30];
/// The host of the mail addresses and URIs that the CA may sign for. It never exists (RFC 2606), so the CA signs for none.
const NO_HOST: &str = "plexus.invalid";

/// The DER tags in the constraints; those of names are in RFC 5280, section 4.2.1.6.
mod tag {
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const PERMITTED: u8 = 0xa0;
    pub(super) const EXCLUDED: u8 = 0xa1;
    pub(super) const MAIL: u8 = 0x81;
    pub(super) const DNS: u8 = 0x82;
    pub(super) const URI: u8 = 0x86;
    pub(super) const ADDRESS: u8 = 0x87;
}

/// The name constraints as DER, since `rcgen` supports none for URIs. A kind of name without a permitted entry is unrestricted, so such a
/// kind is excluded as a whole; for mail addresses and URIs, clients interpret an excluded entry differently, so a name that never exists
/// is permitted.
fn constraints(names: &[String]) -> Vec<u8> {
    let subtree = |kind: u8, base: &[u8]| der(tag::SEQUENCE, &der(kind, base));
    let (mut permitted, mut excluded) = (Vec::new(), Vec::new());
    let (mut hosts, mut addresses) = (0, 0);
    for name in names {
        match name.parse::<IpAddr>() {
            Ok(address) => {
                addresses += 1;
                permitted.extend(subtree(tag::ADDRESS, &subnet(address, u8::MAX)));
            }
            Err(_) => {
                hosts += 1;
                permitted.extend(subtree(tag::DNS, name.as_bytes()));
            }
        }
    }
    permitted.extend(subtree(tag::MAIL, NO_HOST.as_bytes()));
    permitted.extend(subtree(tag::URI, NO_HOST.as_bytes()));
    if hosts == 0 {
        excluded.extend(subtree(tag::DNS, b""));
    }
    if addresses == 0 {
        for all in [IpAddr::from([0; 4]), IpAddr::from([0; 16])] {
            excluded.extend(subtree(tag::ADDRESS, &subnet(all, 0)));
        }
    }
    let mut content = der(tag::PERMITTED, &permitted);
    if !excluded.is_empty() {
        content.extend(der(tag::EXCLUDED, &excluded));
    }
    der(tag::SEQUENCE, &content)
}

/// An address and a mask of equally many bytes: all ones for this address only, zeros for every address.
fn subnet(address: IpAddr, mask: u8) -> Vec<u8> {
    let mut bytes = match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    bytes.resize(bytes.len() * 2, mask);
    bytes
}

/// Encodes a value with its tag and length.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length: Vec<u8> = content.len().to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
    let mut out = vec![tag];
    match length.as_slice() {
        [] => out.push(0),
        [short @ 0..0x80] => out.push(*short),
        // The length has at most eight bytes.
        long => {
            out.push(0x80 | long.len() as u8);
            out.extend_from_slice(long);
        }
    }
    out.extend_from_slice(content);
    out
}

fn distinguished_name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "Plexus");
    name.push(DnType::CommonName, common);
    name
}

/// Sets the lifetime to `days`, starting yesterday since clocks differ. Returns the last day.
fn set_lifetime(params: &mut CertificateParams, days: i32) -> anyhow::Result<Date> {
    let today = ZonedDateTime::now().with_time_zone(TimeZone::UTC).date();
    let (from, until) = (today.checked_sub(1.day())?, today.checked_add(days.days())?);
    let date_time =
        |date: Date| rcgen::date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs());
    (params.not_before, params.not_after) = (date_time(from), date_time(until));
    Ok(until)
}

pub(crate) fn format_day(second: i64) -> String {
    Timestamp::from_second(second).map(|at| at.to_zoned_datetime(TimeZone::UTC).date().to_string()).unwrap_or_default()
}

/// Returns `true` if `name` is a host name of letters, digits, hyphens and dots, or an address.
fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part.len() <= NAME_MAX.1
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    match name.parse::<IpAddr>() {
        Ok(address) => !address.is_unspecified(),
        // A name that ends in a number is an address or a mistake.
        Err(_) => {
            let last = name.rsplit('.').next().unwrap_or_default();
            name.len() <= NAME_MAX.0 && name.split('.').all(part) && !last.bytes().all(|byte| byte.is_ascii_digit())
        }
    }
}

/// Returns the names of this machine on the network: its addresses, IPv4 first, then its host name.
fn machine_names() -> Vec<String> {
    let mut addresses: Vec<IpAddr> = if_addrs::get_if_addrs()
        .unwrap_or_default()
        .into_iter()
        .map(|interface| interface.ip())
        .filter(|address| match address {
            IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local() && !v4.is_unspecified(),
            IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local() && !v6.is_unspecified(),
        })
        .collect();
    addresses.sort();
    addresses.dedup();
    let mut names: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let host = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
    if is_name(&host) && host.parse::<IpAddr>().is_err() && host != "localhost" && !host.starts_with("localhost.") {
        if !host.contains('.') {
            // Phones resolve names with this ending by multicast DNS.
            names.push(format!("{host}.local"));
        }
        names.push(host);
    }
    names
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.and_then(|()| std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)))
        .with_context(|| format!("cannot make {}", folder.display()))
}

/// Writes a file that only its owner can read, atomically.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let path = folder.join(name);
    plexus::auth::write_private(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// The CA as a configuration profile, which iOS needs to install a certificate.
fn profile(title: &str, der: &[u8]) -> String {
    let hash = Sha256::digest(der);
    // The same CA has the same identifiers, so that installing it again replaces the first.
    let uuid = |part: usize| {
        let hex = HEXUPPER.encode(&hash[part * 16..part * 16 + 16]);
        format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    };
    let (inner, outer) = (uuid(0), uuid(1));
    let id = HEXUPPER.encode(&hash[..4]).to_ascii_lowercase();
    let data = BASE64.encode(der);
    // No name contains a character that XML would have to escape: see `is_name`.
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
    <key>PayloadContent</key>
    <array>
        <dict>
            <key>PayloadCertificateFileName</key>
            <string>plexus-ca.cer</string>
            <key>PayloadContent</key>
            <data>{data}</data>
            <key>PayloadDescription</key>
            <string>Trusts this one gateway. The CA can sign for its names alone.</string>
            <key>PayloadDisplayName</key>
            <string>{title}</string>
            <key>PayloadIdentifier</key>
            <string>io.plexus.ca.{id}.root</string>
            <key>PayloadType</key>
            <string>com.apple.security.root</string>
            <key>PayloadUUID</key>
            <string>{inner}</string>
            <key>PayloadVersion</key>
            <integer>1</integer>
        </dict>
    </array>
    <key>PayloadDescription</key>
    <string>Lets this device reach your Plexus gateway.</string>
    <key>PayloadDisplayName</key>
    <string>{title}</string>
    <key>PayloadIdentifier</key>
    <string>io.plexus.ca.{id}</string>
    <key>PayloadRemovalDisallowed</key>
    <false/>
    <key>PayloadType</key>
    <string>Configuration</string>
    <key>PayloadUUID</key>
    <string>{outer}</string>
    <key>PayloadVersion</key>
    <integer>1</integer>
</dict>
</plist>
"#
    )
}
