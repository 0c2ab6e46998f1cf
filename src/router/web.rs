//! The page, built from `web/` into `web/dist` and embedded in the program: no path of a request ever reaches a file system.

use std::borrow::Cow;

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, StatusCode};
use rust_embed::Embed;

use super::Problem;
use super::guard::Call;

#[derive(Embed)]
#[folder = "web/dist/"]
struct Files;

/// What is served, by the end of its name; anything else would be a mistake of the build.
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

/// The file that stands at `/`.
const INDEX: &str = "index.html";

fn content_type(name: &str) -> Option<&'static str> {
    TYPES.iter().find(|(end, _)| name.ends_with(end)).map(|(_, kind)| *kind)
}

/// The paths of all files that are served.
pub(super) fn paths() -> impl Iterator<Item = Cow<'static, str>> {
    Files::iter().filter(|name| content_type(name).is_some()).map(|name| match &*name {
        INDEX => "/".into(),
        name => format!("/{name}").into(),
    })
}

/// Serves the file at the request's path, which the router matched exactly.
pub(super) async fn file(call: Call) -> Result<Response, Problem> {
    let path = call.parts.uri.path();
    let name = if path == "/" { INDEX } else { path.trim_start_matches('/') };
    let (file, kind) = Files::get(name).zip(content_type(name)).ok_or_else(Problem::not_found)?;
    let tag = format!("\"{}\"", data_encoding::HEXLOWER.encode(&file.metadata.sha256_hash()));
    let known = call.parts.headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = Response::new(if known { Body::empty() } else { Body::from(file.data.into_owned()) });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // Kept, but asked about each time: an updated gateway must not meet yesterday's page.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    Ok(response)
}
