//! The browser that the tests of the page drive.
#![allow(dead_code, unreachable_pub, clippy::panic)]

use std::path::Path;

/// The browser's program: `$CHROMIUM`, or the one in a place where systems put it.
///
/// # Panics
/// When there is none.
pub fn program() -> String {
    if let Ok(named) = std::env::var("CHROMIUM") {
        return named;
    }
    let known = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let there = known.iter().find(|path| Path::new(path).is_file());
    (*there.unwrap_or_else(|| {
        panic!(
            "no browser: none of {} is there; install Chromium (Debian: apt-get install chromium) or name one in \
             $CHROMIUM",
            known.join(", ")
        )
    }))
    .to_owned()
}
