//! Opening the web page in a browser.

use reqwest::Url;

use super::home::Home;

/// Opens the browser at `url`, signed in by `code`; returns `false` if there is no browser. Since every user can see a program's arguments,
/// the browser gets the path of a private page that contains the code.
pub(crate) fn open_browser(home: &Home, url: &str, code: &str) -> bool {
    let display = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()));
    if !display {
        return false;
    }
    let page = plexus::auth::redirect(home.dir(), url, code).ok().and_then(|page| Url::from_file_path(page).ok());
    page.is_some_and(|page| opener::open_browser(page.as_str()).is_ok())
}
