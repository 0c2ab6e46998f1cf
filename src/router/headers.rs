//! Headers, read as strictly as they decide.

use http::{HeaderMap, HeaderName};

/// The value of a header that may come once: `None` if it is not there.
///
/// # Errors
/// It came more than once, or is no text.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => one.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}
