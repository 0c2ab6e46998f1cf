//! The routes by which a phone gets the certificate of the gateway's private CA.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use plexus_router::guard::{Call, Policy, Route};
use plexus_router::public_address::{CA_CERT, CA_PROFILE};
use plexus_router::reply::RouteResult;
use plexus_router::routes::{GET, NOTHING, route};
use plexus_router::{Core, Problem};

/// Returns the routes of the certificate.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        // The certificate that a phone has to trust; every TLS handshake contains it.
        route(GET, "/ca.crt", Policy::Public, NOTHING, "The certificate of this gateway's private CA, if it has one", certificate)
            .text(200, &["application/x-x509-ca-cert"]),
        route(GET, "/ca.mobileconfig", Policy::Public, NOTHING, "The same, as a profile for iOS", profile)
            .text(200, &["application/x-apple-aspen-config"]),
        route(GET, "/ca", Policy::Public, NOTHING, "How a phone comes to trust the certificate, if there is a CA", guide)
            .text(200, &["text/html"]),
    ]
}

/// Serves the CA's certificate. It is public: every TLS handshake contains it.
async fn certificate(state: Core, _: Call) -> RouteResult {
    file(&state, CA_CERT, "application/x-x509-ca-cert").await
}

/// Serves the certificate as a profile for iOS.
async fn profile(state: Core, _: Call) -> RouteResult {
    file(&state, CA_PROFILE, "application/x-apple-aspen-config").await
}

/// The page that explains how to make a phone trust the certificate; `plexus phone` prints its address. It has no scripts and no data of
/// this gateway.
const GUIDE: &str = include_str!("ca/guide.html");
/// The policy of [`GUIDE`]: nothing but its own style.
const GUIDE_CSP: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Serves the page with the instructions for the certificate.
async fn guide(state: Core, _: Call) -> RouteResult {
    // Without a CA there is nothing to install.
    file(&state, CA_CERT, "text/html; charset=utf-8").await?;
    let mut response = Response::new(Body::from(GUIDE));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(GUIDE_CSP));
    Ok(response)
}

async fn file(state: &Core, name: &'static str, kind: &'static str) -> RouteResult {
    let none = || {
        let message = "this gateway has no CA of its own: create one with `plexus tls init`";
        Problem::new(StatusCode::NOT_FOUND, "no_ca", message)
    };
    let folder = state.public_addresses.ca().ok_or_else(none)?;
    // Read each time, since `plexus tls init` may run after the gateway's start.
    let bytes = tokio::fs::read(folder.join(name)).await.map_err(|_| none())?;
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"plexus-{name}\"")) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    Ok(response)
}
