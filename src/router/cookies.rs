//! The cookie of a browser that is a device, and the header that must come beside it.
//!
//! A browser sends cookies by itself, for whoever made it ask. So the cookie counts only for the origin that it was made
//! for, and whatever changes something needs a value, too, that only a page of that origin can have read.

use axum::extract::Request;
use http::header::{COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, UPGRADE};
use http::request::Parts;
use http::{Method, Response, header};

use super::Problem;
use super::headers::only;
use crate::auth::{Auth, Caller, CookieSite, csrf, same};

/// The header that comes with whatever a cookie is to change.
pub const CSRF_HEADER: &str = "plexus-csrf";
/// The cookie of a page over TLS. Browsers take it from the host itself alone, over TLS alone.
const SECURE: &str = "__Host-plexus";
/// How long a browser keeps the cookie, in seconds: a year. A device that is revoked is out whatever its browser keeps.
const YEAR: u32 = 31_536_000;

/// What the cookie of a request comes to.
pub(super) enum Shown {
    /// None that counts here.
    Nothing,
    /// Nobody's, or two of them.
    Wrong,
    /// A device's; but it is to change something, and the header that goes with it is not there.
    Forged,
    /// A device's, and what its page must send with a change.
    Device(Caller, String),
}

/// The cookie of pages of `origin`. A browser keeps the cookies of all ports of a host together, so the name says which.
fn name(origin: &str) -> String {
    match origin.split_once("://") {
        Some(("https", _)) => SECURE.into(),
        Some((_, authority)) => plain(authority),
        None => plain(origin),
    }
}

fn plain(authority: &str) -> String {
    // An address of version 6 has colons of its own, in brackets.
    let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    format!("plexus-{}", port.unwrap_or("80"))
}

/// The one cookie of that name; `Err` if there are several: which one counts must not depend on who reads.
fn named<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ()> {
    // HTTP/2 may send the pairs on lines of their own.
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut all = pairs.filter(|(other, _)| *other == name).map(|(_, value)| value);
    match (all.next(), all.next()) {
        (one, None) => Ok(one),
        (_, Some(_)) => Err(()),
    }
}

/// Who shows a cookie that counts. It does if the request's Origin is the one it was made for; or if the browser says
/// that a page of the same origin only reads, which it does without an Origin. A WebSocket always comes with an Origin.
pub(super) fn prove(auth: &Auth, request: &Request) -> Shown {
    let headers = request.headers();
    let Ok(origin) = only(headers, &ORIGIN) else { return Shown::Wrong };
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let site = only(headers, &HeaderName::from_static("sec-fetch-site")).ok().flatten();
    let host = only(headers, &HOST).ok().flatten().unwrap_or_default().to_ascii_lowercase();
    let own = format!("http://{host}");
    let candidates = match origin {
        Some(origin) => vec![(name(origin), CookieSite::Origin(origin))],
        None if reads && site == Some("same-origin") && !headers.contains_key(UPGRADE) => {
            vec![(plain(&host), CookieSite::Origin(&own)), (SECURE.to_owned(), CookieSite::Tls)]
        }
        None => return Shown::Nothing,
    };
    let mut shown = Shown::Nothing;
    for (name, site) in candidates {
        let Ok(found) = named(headers, &name) else { return Shown::Wrong };
        let Some(token) = found else { continue };
        let Some(caller) = auth.check_cookie(token, site) else {
            shown = Shown::Wrong;
            continue;
        };
        let wanted = csrf(token);
        let sent = only(headers, &HeaderName::from_static(CSRF_HEADER)).ok().flatten();
        if !reads && !sent.is_some_and(|sent| same(sent, &wanted)) {
            return Shown::Forged;
        }
        return Shown::Device(caller, wanted);
    }
    shown
}

/// The device that the browser is which asks for a cookie, if it is one here. It need not send the header: it is given
/// what it has, or something in its place, and its page is of the cookie's origin all the same.
pub(super) fn held(auth: &Auth, parts: &Parts) -> Option<(Caller, String)> {
    let origin = only(&parts.headers, &ORIGIN).ok().flatten()?;
    let token = named(&parts.headers, &name(origin)).ok().flatten()?;
    Some((auth.check_cookie(token, CookieSite::Origin(origin))?, csrf(token)))
}

/// The origin that a new cookie will be for: that of the page that asks for it.
///
/// # Errors
/// 422 `invalid` if no page asks.
pub(super) fn origin(parts: &Parts) -> Result<String, Problem> {
    // The guard has found it among our own.
    let origin = only(&parts.headers, &ORIGIN).ok().flatten();
    origin.map(str::to_owned).ok_or_else(|| {
        Problem::invalid(
            "a cookie is only for pages of this gateway, and there is no Origin header: leave out \
            `cookie` to get a token",
        )
    })
}

/// Gives the browser its cookie.
pub(super) fn set<B>(response: &mut Response<B>, origin: &str, token: &str) {
    put(response, origin, token, YEAR);
}

/// Takes the cookie back.
pub(super) fn clear<B>(response: &mut Response<B>, origin: &str) {
    put(response, origin, "", 0);
}

fn put<B>(response: &mut Response<B>, origin: &str, value: &str, seconds: u32) {
    let name = name(origin);
    let secure = if name == SECURE { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    // Letters, digits and the marks above: always a header's value.
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn a_cookie_is_named_after_its_origin() {
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
    fn a_cookie_is_for_no_script_no_other_site_and_over_tls_for_tls_alone() {
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
    fn one_cookie_of_a_name_is_found_and_two_are_none() {
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
