//! The web page, built from `web/` into `web/dist`, compressed, and embedded in the program: no path of a request reaches a file
//! system.

use std::borrow::Cow;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, VARY,
    X_DNS_PREFETCH_CONTROL,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use rust_embed::Embed;

use plexus_router::guard::{Call, Policy, Route};
use plexus_router::reply::etag_matches;
use plexus_router::routes::{GET, NOTHING, route};
use plexus_router::{Core, Problem};

#[derive(Embed)]
#[folder = "../../web/dist/"]
struct Files;

/// The content types by file extension; any other extension is an error of the build.
const TYPES: &[(&str, &str)] = &[
    (".html", "text/html; charset=utf-8"),
    (".js", "text/javascript; charset=utf-8"),
    (".css", "text/css; charset=utf-8"),
    (".svg", "image/svg+xml"),
    (".png", "image/png"),
    (".ico", "image/x-icon"),
    (".webmanifest", "application/manifest+json"),
    (".woff2", "font/woff2"),
];

/// The file served at `/`.
const INDEX: &str = "index.html";

/// The file in which the page displays agents' HTML. The page sends it the text.
const FRAME: &str = "frame.html";
/// The policy of [`FRAME`]: scripts run in an origin of their own, without requests, windows and forms; no policy restricts WebRTC. The
/// page's `frame-src` prevents them from navigating the frame to another site.
const FRAME_CSP: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
     img-src data: blob:; media-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'self'";

fn content_type(name: &str) -> Option<&'static str> {
    TYPES.iter().find(|(end, _)| name.ends_with(end)).map(|(_, kind)| *kind)
}

/// Returns the routes of the page's files, which are the same for everyone and contain no session data.
pub fn routes() -> Vec<Route<Core>> {
    let file = |path| route(GET, path, Policy::Public, NOTHING, "A file of the page", file);
    paths().map(file).collect()
}

/// Returns the paths of all files that are served.
fn paths() -> impl Iterator<Item = Cow<'static, str>> {
    Files::iter().filter(|name| content_type(name).is_some()).map(|name| match &*name {
        INDEX => "/".into(),
        name => format!("/{name}").into(),
    })
}

/// The folder of files whose names contain the digest of their content.
const HASHED: &str = "assets/";
/// The compressed forms of a file, best first: the coding and the extension.
const PACKED: &[(&str, &str)] = &[("br", ".br"), ("gzip", ".gz")];

/// Serves the file at the request's path, which the router matched exactly, in the compressed form that the client prefers.
async fn file(_: Core, call: Call) -> Result<Response, Problem> {
    let path = call.parts.uri.path();
    let name = if path == "/" { INDEX } else { path.trim_start_matches('/') };
    let headers = &call.parts.headers;
    let (plain, kind) = Files::get(name).zip(content_type(name)).ok_or_else(Problem::not_found)?;
    let digest = data_encoding::HEXLOWER.encode(&plain.metadata.sha256_hash());
    let packed: Vec<_> = PACKED
        .iter()
        .filter_map(|&(coding, end)| {
            Some((weight(headers, coding).unwrap_or(0), coding, Files::get(&format!("{name}{end}"))?))
        })
        .collect();
    let varies = !packed.is_empty();
    // `identity` comes after codings of the same weight; unnamed, it has the least weight.
    let as_is = explicit_weight(headers, "identity").unwrap_or(0).max(1);
    let preferred = packed.into_iter().filter(|(weight, ..)| *weight >= as_is);
    let best = preferred.reduce(|best, other| if other.0 > best.0 { other } else { best });
    let (tag, coding, file) = match best {
        Some((_, coding, file)) => (format!("\"{digest}-{coding}\""), Some(coding), file),
        None => (format!("\"{digest}\""), None, plain),
    };
    let known = etag_matches(headers, &tag);
    let mut response = Response::new(match file.data {
        _ if known => Body::empty(),
        Cow::Borrowed(bytes) => Body::from(Bytes::from_static(bytes)),
        Cow::Owned(bytes) => Body::from(bytes),
    });
    let headers = response.headers_mut();
    let keep = if name.starts_with(HASHED) {
        // The content of such a name never changes.
        "public, max-age=31536000, immutable"
    } else {
        // Cached, but revalidated each time: an updated gateway must not meet an old page.
        "no-cache"
    };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    if name == FRAME {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(FRAME_CSP));
        // Otherwise the host name of a link would be looked up before a user follows it.
        headers.insert(X_DNS_PREFETCH_CONTROL, HeaderValue::from_static("off"));
    }
    if varies {
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Some(coding) = coding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    Ok(response)
}

/// Returns the weight of a content coding in `Accept-Encoding`, in thousandths (RFC 9110, 12.5.3); `None` if it is not named.
fn explicit_weight(headers: &HeaderMap, coding: &str) -> Option<u16> {
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let parts = lines.flat_map(|line| line.split(',')).map(|part| {
        let mut members = part.split(';').map(str::trim);
        let name = members.next().unwrap_or_default();
        // An invalid weight counts as 0, so the client gets the plain file.
        let weight = members.find_map(|member| member.strip_prefix("q=").or_else(|| member.strip_prefix("Q=")));
        (name, weight.map_or(1000, thousandths))
    });
    parts.filter(|(name, _)| name.eq_ignore_ascii_case(coding)).map(|(_, weight)| weight).next()
}

/// Returns the weight of a content coding, where `*` stands for those not named.
fn weight(headers: &HeaderMap, coding: &str) -> Option<u16> {
    explicit_weight(headers, coding).or_else(|| explicit_weight(headers, "*"))
}

/// Returns a `qvalue` in thousandths; 0 if invalid.
fn thousandths(value: &str) -> u16 {
    let (whole, rest) = value.split_once('.').unwrap_or((value, ""));
    let fits = rest.len() <= 3 && rest.bytes().all(|digit| digit.is_ascii_digit());
    match whole {
        "0" if fits => format!("{rest:0<3}").parse().unwrap_or(0),
        "1" if fits && rest.bytes().all(|digit| digit == b'0') => 1000,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(accept: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_str(accept).unwrap())])
    }

    #[test]
    fn content_coding_follows_the_clients_weights() {
        for (accept, br, gzip) in [
            ("gzip, deflate, br, zstd", Some(1000), Some(1000)),
            ("br;q=0.5, gzip;q=0.25", Some(500), Some(250)),
            ("br ; q=0 , *;q=0.1", Some(0), Some(100)),
            ("GZIP", None, Some(1000)),
            ("identity", None, None),
            ("", None, None),
            ("br;q=2, gzip;q=x", Some(0), Some(0)),
            ("br;q=1.000, gzip;q=0.001", Some(1000), Some(1)),
            ("brotli, xgzip", None, None),
        ] {
            let headers = asking(accept);
            assert_eq!((weight(&headers, "br"), weight(&headers, "gzip")), (br, gzip), "{accept}");
        }
    }

    #[test]
    fn page_texts_are_compressed_and_constant_files_named_by_content() {
        let names: Vec<_> = Files::iter().collect();
        let script = names.iter().filter(|name| name.starts_with(HASHED) && name.ends_with(".js")).count();
        assert!(script >= 4, "{names:?}");
        for name in names.iter().filter(|name| name.ends_with(".js") || name.ends_with(".css")) {
            assert!(name.starts_with(HASHED) || name == "sw.js", "{name} has a name for good");
            // As `web/pack.mjs`: less than that grows when it is packed.
            if Files::get(name).unwrap().data.len() < 600 {
                continue;
            }
            for (_, end) in PACKED {
                let packed = Files::get(&format!("{name}{end}")).unwrap_or_else(|| panic!("{name}{end} is missing"));
                assert!(packed.data.len() < Files::get(name).unwrap().data.len(), "{name}{end}");
            }
        }
        assert!(
            paths().all(|path| !path.ends_with(".br") && !path.ends_with(".gz")),
            "packed files have no address of their own"
        );
    }
}
