//! The cookie of an enrolled browser, and the CSRF header that must accompany it.
//!
//! A browser attaches cookies to requests that any page causes. So the cookie counts only for its own origin, and every change
//! also needs a value that only a page of that origin can have read.

use axum::extract::Request;
use http::header::{COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, UPGRADE};
use http::request::Parts;
use http::{Method, Response, header};

use super::Problem;
use super::headers::only;
use plexus_auth::{Auth, Caller, CookieSite, csrf, same};

/// The header that must accompany every change authenticated by the cookie.
pub const CSRF_HEADER: &str = "plexus-csrf";
/// The name of the cookie over TLS. Browsers accept this prefix only over TLS and only from the host itself.
const SECURE: &str = "__Host-plexus";
/// Lifetime of the cookie in the browser, in seconds: a year. A revoked device is refused regardless.
const YEAR: u32 = 31_536_000;

/// The result of checking a request's cookie.
pub(super) enum CookieCheck {
    /// No cookie for this origin.
    Nothing,
    /// An unknown cookie, or two of them.
    Wrong,
    /// A device's cookie, but the CSRF header of a change is missing or wrong.
    Forged,
    /// A device, and the CSRF value of its page.
    Device(Caller, String),
}

/// Returns the name of the cookie for `origin`. The name contains the port, since a browser shares cookies between all ports of a host.
fn name(origin: &str) -> String {
    match origin.split_once("://") {
        Some(("https", _)) => SECURE.into(),
        Some((_, authority)) => plain(authority),
        None => plain(origin),
    }
}

fn plain(authority: &str) -> String {
    // An IPv6 address has colons too, in brackets.
    let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    format!("plexus-{}", port.unwrap_or("80"))
}

/// Returns the cookie of that name; `Err` if there are several, since parsers differ in which one counts.
fn named<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ()> {
    // HTTP/2 may send each pair on a line of its own.
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut all = pairs.filter(|(other, _)| *other == name).map(|(_, value)| value);
    match (all.next(), all.next()) {
        (one, None) => Ok(one),
        (_, Some(_)) => Err(()),
    }
}

/// Checks the cookie. It counts if the request's Origin is the cookie's, or if the browser declares the request as a read by a page of
/// the same origin, which has no Origin. A WebSocket always has an Origin.
pub(super) fn prove(auth: &Auth, request: &Request) -> CookieCheck {
    let headers = request.headers();
    let Ok(origin) = only(headers, &ORIGIN) else { return CookieCheck::Wrong };
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let site = only(headers, &HeaderName::from_static("sec-fetch-site")).ok().flatten();
    let host = only(headers, &HOST).ok().flatten().unwrap_or_default().to_ascii_lowercase();
    let own = format!("http://{host}");
    let candidates = match origin {
        Some(origin) => vec![(name(origin), CookieSite::Origin(origin))],
        None if reads && site == Some("same-origin") && !headers.contains_key(UPGRADE) => {
            vec![(plain(&host), CookieSite::Origin(&own)), (SECURE.to_owned(), CookieSite::Tls)]
        }
        None => return CookieCheck::Nothing,
    };
    let mut failure = CookieCheck::Nothing;
    for (name, site) in candidates {
        let Ok(found) = named(headers, &name) else { return CookieCheck::Wrong };
        let Some(token) = found else { continue };
        let Some(caller) = auth.check_cookie(token, site) else {
            failure = CookieCheck::Wrong;
            continue;
        };
        let expected = csrf(token);
        let sent = only(headers, &HeaderName::from_static(CSRF_HEADER)).ok().flatten();
        if !reads && !sent.is_some_and(|sent| same(sent, &expected)) {
            return CookieCheck::Forged;
        }
        return CookieCheck::Device(caller, expected);
    }
    failure
}

/// Returns the device of a browser that requests a cookie, if it has one already. The CSRF header is not needed: the browser gets the
/// same cookie or a replacement, and the Origin was checked.
pub fn held(auth: &Auth, parts: &Parts) -> Option<(Caller, String)> {
    let origin = only(&parts.headers, &ORIGIN).ok().flatten()?;
    let token = named(&parts.headers, &name(origin)).ok().flatten()?;
    Some((auth.check_cookie(token, CookieSite::Origin(origin))?, csrf(token)))
}

/// Returns the origin of a new cookie: that of the page that requests it.
///
/// # Errors
/// 422 `invalid` if the request does not come from a page.
pub fn origin(parts: &Parts) -> Result<String, Problem> {
    // The guard has checked that it is an origin of the gateway.
    let origin = only(&parts.headers, &ORIGIN).ok().flatten();
    origin.map(str::to_owned).ok_or_else(|| {
        Problem::invalid(
            "a cookie is only for pages of this gateway, and there is no Origin header: leave out \
            `cookie` to get a token",
        )
    })
}

/// Sets the cookie.
pub fn set<B>(response: &mut Response<B>, origin: &str, token: &str) {
    put(response, origin, token, YEAR);
}

/// Clears the cookie.
pub fn clear<B>(response: &mut Response<B>, origin: &str) {
    put(response, origin, "", 0);
}

fn put<B>(response: &mut Response<B>, origin: &str, value: &str, seconds: u32) {
    let name = name(origin);
    let secure = if name == SECURE { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    // Letters, digits and the characters above: always a valid header value.
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn cookie_is_named_after_its_origin() {
        for (origin, cookie) in [
            ("http://127.0.0.1:7420", "plexus-7420"),
            ("http://localhost", "plexus-80"),
            ("http://[::1]:7420", "plexus-7420"),
            ("http://[::1]", "plexus-80"),
            ("https://plexus.example", "__Host-plexus"),
            ("https://127.0.0.1:7443", "__Host-plexus"),
        ] {
            assert_eq!(name(origin), cookie, "{origin}");
        }
    }

    #[test]
    fn cookie_is_http_only_same_site_and_secure_over_tls() {
        let set = |origin: &str| {
            let mut response = Response::new(Body::empty());
            super::set(&mut response, origin, "plx_x");
            response.headers()[header::SET_COOKIE].to_str().unwrap().to_owned()
        };
        let plain = "plexus-7420=plx_x; Path=/; Max-Age=31536000; HttpOnly; SameSite=Strict";
        assert_eq!(set("http://127.0.0.1:7420"), plain);
        let secure = "__Host-plexus=plx_x; Path=/; Max-Age=31536000; HttpOnly; SameSite=Strict; Secure";
        assert_eq!(set("https://plexus.example"), secure);
        let mut response = Response::new(Body::empty());
        clear(&mut response, "http://localhost:7420");
        assert!(
            response.headers()[header::SET_COOKIE].to_str().unwrap().starts_with("plexus-7420=; Path=/; Max-Age=0;")
        );
    }

    #[test]
    fn cookie_given_twice_counts_as_none() {
        let find = |lines: &[&str]| {
            let lines = lines.iter().map(|line| (COOKIE, HeaderValue::from_str(line).unwrap()));
            let mut headers = HeaderMap::new();
            lines.for_each(|(name, value)| {
                headers.append(name, value);
            });
            named(&headers, "plexus-1").map(|found| found.map(str::to_owned))
        };
        assert_eq!(find(&[]), Ok(None));
        assert_eq!(find(&["a=b; plexus-1=x; c=d"]), Ok(Some("x".into())));
        assert_eq!(find(&["a=b", "plexus-1=x"]), Ok(Some("x".into())), "HTTP/2 splits them");
        assert_eq!(find(&["plexus-10=x; Plexus-1=x; xplexus-1=x; plexus-1"]), Ok(None));
        assert_eq!(find(&["plexus-1=x; plexus-1=x"]), Err(()));
        assert_eq!(find(&["plexus-1=x", "plexus-1=y"]), Err(()));
    }
}
