//! JSON Pointers (RFC 6901) as A2UI 0.9 uses them: empty segments are left out, and a pointer without a leading `/` is
//! relative to the list item of its component.

use std::fmt;

use super::error::excerpt;
use super::limits::{DEPTH_MAX, POINTER_MAX};

/// Names that a page in JavaScript must never look up.
pub(crate) const FORBIDDEN: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// A place in a data model; an empty one is the whole model.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pointer(Vec<String>);

impl Pointer {
    /// Parses a pointer, absolute or relative to `base`.
    pub(crate) fn parse(text: &str, base: &Self) -> Result<Self, String> {
        if text.len() > POINTER_MAX {
            return Err(format!("the path has {} bytes, and {POINTER_MAX} are the most", text.len()));
        }
        let mut segments = if text.starts_with('/') { Vec::new() } else { base.0.clone() };
        if text != "." {
            for segment in text.split('/').filter(|segment| !segment.is_empty()) {
                if segment.split('~').skip(1).any(|after| !after.starts_with(['0', '1'])) {
                    return Err(format!("{} has a ~ that is neither ~0 nor ~1", excerpt(segment)));
                }
                let name = segment.replace("~1", "/").replace("~0", "~");
                if FORBIDDEN.contains(&name.as_str()) {
                    return Err(format!("{} is not allowed in a path", excerpt(&name)));
                }
                segments.push(name);
            }
        }
        if segments.len() > DEPTH_MAX {
            return Err(format!("the path has {} segments, and {DEPTH_MAX} are the most", segments.len()));
        }
        Ok(Self(segments))
    }

    /// Parses a pointer as an absolute one.
    pub(crate) fn absolute(text: &str) -> Result<Self, String> {
        Self::parse(text, &Self::default())
    }

    pub(crate) fn segments(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the item at `index` of the list here.
    pub(crate) fn item(&self, index: usize) -> Self {
        let mut segments = self.0.clone();
        segments.push(index.to_string());
        Self(segments)
    }

    /// Returns the first `len` segments.
    pub(crate) fn prefix(&self, len: usize) -> Self {
        Self(self.0[..len.min(self.0.len())].to_vec())
    }

    /// Returns whether `other` is this place or inside of it.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Returns whether one of the two is inside of the other, or both are the same.
    pub(crate) fn touches(&self, other: &Self) -> bool {
        self.contains(other) || other.contains(self)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        self.0.iter().try_for_each(|segment| write!(f, "/{}", segment.replace('~', "~0").replace('/', "~1")))
    }
}

/// Parses an index of a list: digits without leading zeros.
pub(crate) fn index(segment: &str) -> Option<usize> {
    let digits = !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit());
    if !digits || segment.len() > 1 && segment.starts_with('0') {
        return None;
    }
    segment.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absolute(text: &str) -> String {
        Pointer::absolute(text).unwrap().to_string()
    }

    #[test]
    fn pointer_is_read_and_written() {
        for (text, same) in [
            ("", "/"),
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("a", "/a"),
            ("/a/", "/a"),
            ("/a~1b/~01", "/a~1b/~01"),
            ("/x//y", "/x/y"),
        ] {
            assert_eq!(absolute(text), same, "{text}");
        }
        assert_eq!(Pointer::absolute("/a~01b").unwrap().segments(), ["a~1b"]);
        let base = Pointer::absolute("/items/3").unwrap();
        for (text, same) in [("name", "/items/3/name"), ("/name", "/name"), ("", "/items/3"), (".", "/items/3")] {
            assert_eq!(Pointer::parse(text, &base).unwrap().to_string(), same);
        }
    }

    #[test]
    fn pointer_refuses_prototypes_and_depth() {
        for text in ["/__proto__/x", "/a/constructor", "/prototype"] {
            assert!(Pointer::absolute(text).unwrap_err().contains("not allowed"), "{text}");
        }
        assert!(Pointer::absolute(&"/a".repeat(DEPTH_MAX)).is_ok());
        assert!(Pointer::absolute(&"/a".repeat(DEPTH_MAX + 1)).is_err());
    }

    #[test]
    fn pointer_refuses_unknown_escapes() {
        for text in ["/a~2b", "/~", "/a~", "/x/~~0"] {
            assert!(Pointer::absolute(text).unwrap_err().contains("neither ~0 nor ~1"), "{text}");
        }
        assert!(Pointer::absolute(&"a".repeat(POINTER_MAX + 1)).is_err());
    }
}
