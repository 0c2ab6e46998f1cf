//! Strict reading of headers on which decisions depend.

use http::{HeaderMap, HeaderName};

/// Returns the value of a header that may occur once: `None` if it is absent.
///
/// # Errors
/// The header occurs more than once, or is not text.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => one.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}
