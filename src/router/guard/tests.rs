use super::*;

fn request(head: &[(&str, &str)], uri: &str) -> Request {
    let mut builder = http::Request::builder().uri(uri);
    for (name, value) in head {
        builder = builder.header(*name, *value);
    }
    builder.body(Body::empty()).unwrap()
}

fn hosts() -> Hosts {
    let bound = ["127.0.0.1:7420".parse().unwrap(), "192.168.1.5:7420".parse().unwrap()];
    Hosts::new(&bound, &["https://Plexus.example".into(), "box:9000".into()])
}

#[test]
fn host_must_be_a_name_of_the_gateway() {
    for host in [
        "127.0.0.1:7420",
        "localhost:7420",
        "LOCALHOST:7420",
        "[::1]:7420",
        "192.168.1.5:7420",
        "plexus.example",
        "plexus.example:443",
        "box:9000",
    ] {
        assert!(check_host(&hosts(), &request(&[("host", host)], "/")).is_ok(), "{host}");
        let uri = format!("http://{host}/");
        assert!(check_host(&hosts(), &request(&[("host", host)], &uri)).is_ok(), "{host}");
    }
    for host in [
        "",
        "evil.example:7420",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:7421",
        "127.0.0.1:07420",
        "127.0.0.1.:7420",
        "127.0.0.1.evil.example:7420",
        "0.0.0.0:7420",
        "2130706433:7420",
        "0x7f.1:7420",
        "127.1:7420",
        "localhost",
        "localhost.:7420",
        "[::ffff:127.0.0.1]:7420",
        "[::]:7420",
        "::1:7420",
        "user@127.0.0.1:7420",
        "127.0.0.1:7420, evil.example",
        "plexus.example:80",
        "box",
    ] {
        assert!(check_host(&hosts(), &request(&[("host", host)], "/")).is_err(), "{host}");
    }
    assert!(check_host(&hosts(), &request(&[], "/")).is_err(), "none");
    let two = [("host", "localhost:7420"), ("host", "localhost:7420")];
    assert!(check_host(&hosts(), &request(&two, "/")).is_err(), "two");
    for uri in ["http://evil.example/", "https://localhost:7420/", "http://me@localhost:7420/", "http://[::1]:7420/"] {
        assert!(check_host(&hosts(), &request(&[("host", "localhost:7420")], uri)).is_err(), "{uri}");
    }
    let nowhere = Hosts::new(&["0.0.0.0:7420".parse().unwrap()], &[]);
    assert!(check_host(&nowhere, &request(&[("host", "0.0.0.0:7420")], "/")).is_err());
    let default = Hosts::new(&["127.0.0.1:80".parse().unwrap()], &[]);
    assert!(check_host(&default, &request(&[("host", "localhost")], "/")).is_ok());
}

#[test]
fn origins_of_other_sites_are_refused() {
    for origin in ["http://127.0.0.1:7420", "http://localhost:7420", "http://[::1]:7420", "https://plexus.example"] {
        assert!(check_origin(&hosts(), &request(&[("origin", origin)], "/")).is_ok(), "{origin}");
    }
    for origin in [
        "",
        "null",
        "https://evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:7421",
        "https://127.0.0.1:7420",
        "http://localhost:7420/",
        "http://localhost:7420.evil.example",
        "HTTP://LOCALHOST:7420",
        "http://plexus.example",
        "vscode-webview://x",
        "file://",
    ] {
        assert!(check_origin(&hosts(), &request(&[("origin", origin)], "/")).is_err(), "{origin}");
    }
    let two = [("origin", "http://localhost:7420"), ("origin", "http://localhost:7420")];
    assert!(check_origin(&hosts(), &request(&two, "/")).is_err());
}

#[test]
fn fetches_of_other_sites_are_refused_but_a_link_opens_the_page() {
    let check = |head: &[(&str, &str)], uri| check_origin(&hosts(), &request(head, uri)).is_ok();
    let site = "sec-fetch-site";
    assert!(check(&[(site, "same-origin")], "/v1/me") && check(&[(site, "none")], "/v1/me"));
    for from in ["cross-site", "same-site"] {
        let link = [(site, from), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        assert!(check(&link, "/"));
        assert!(!check(&link, "/v1/me"));
        assert!(!check(&link[..2], "/"));
        assert!(!check(&[link[0], link[1], ("sec-fetch-dest", "iframe")], "/"));
        assert!(!check(&[link[0], ("sec-fetch-mode", "no-cors"), link[2]], "/"));
    }
    assert!(!check(&[(site, "something-new")], "/"));
    assert!(!check(&[(site, "none"), (site, "none")], "/"));
    let mut post =
        request(&[(site, "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")], "/");
    *post.method_mut() = Method::POST;
    assert!(check_origin(&hosts(), &post).is_err());
}

#[test]
fn body_must_be_plain_json() {
    let check = |values: &[&str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
        }
        check_type(&headers).is_ok()
    };
    for fine in
        ["application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8"]
    {
        assert!(check(&[fine]), "{fine}");
    }
    for wrong in [
        "text/plain",
        "text/plain; application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "application/json, text/plain",
        "application/json; charset=utf-16",
        "application/json;",
        "",
    ] {
        assert!(!check(&[wrong]), "{wrong}");
    }
    assert!(!check(&[]) && !check(&["application/json", "application/json"]));
    let packed = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CONTENT_ENCODING, HeaderValue::from_static("gzip")),
    ]);
    assert!(check_type(&packed).is_err());
}

#[test]
fn json_depth_is_counted_outside_of_strings() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(!deeper_than(nested(64).as_bytes(), 64));
    assert!(deeper_than(nested(65).as_bytes(), 64));
    assert!(!deeper_than(format!("[{}]", vec!["[{}]"; 1000].join(",")).as_bytes(), 64));
    assert!(!deeper_than(format!("\"{}\"", "[".repeat(100)).as_bytes(), 64));
    assert!(deeper_than(format!(r#"["\\",{}"#, nested(64)).as_bytes(), 64));
    assert!(!deeper_than(format!(r#"["\"{}"]"#, "[".repeat(64)).as_bytes(), 64));
}
