//! Images that are attached to a prompt: read from files of this machine, by their path.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plexus_protocol::api::sessions::NewPrompt;
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::{image, sanitize};

/// Maximum size of an image, in bytes: in base64 it fits into a prompt.
const IMAGE_MAX: u64 = 5 << 20;
/// Maximum number of images of a prompt.
const IMAGES_MAX: usize = 20;
/// Maximum length of a text that may be a path, in bytes.
const PATH_MAX: usize = 4096;
/// The file extensions of images, in lower case.
const ENDINGS: &[&str] = &[".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// An image of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    /// The name of its file.
    name: String,
    mime: &'static str,
    bytes: u64,
    pixels: Option<(u32, u32)>,
    /// The image in base64.
    data: Arc<str>,
}

impl Attachment {
    /// Formats the image as `shot.png · 640x480 · 12 KiB`.
    pub(crate) fn text(&self) -> String {
        let pixels = self.pixels.map(|(width, height)| format!(" · {width}x{height}")).unwrap_or_default();
        format!("{}{pixels} · {}", self.name, image::size_text(self.bytes))
    }
}

/// A block of a prompt, as ACP defines it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum PromptBlock<'a> {
    Text {
        text: &'a str,
    },
    Image {
        #[serde(rename = "mimeType")]
        mime: &'a str,
        data: &'a str,
    },
}

/// Makes a prompt of a text and images.
pub(crate) fn new_prompt(text: &str, images: &[Attachment]) -> NewPrompt {
    if images.is_empty() {
        return NewPrompt { text: Some(text.to_owned()), content: None };
    }
    let text = (!text.trim().is_empty()).then_some(PromptBlock::Text { text });
    let images = images.iter().map(|one| PromptBlock::Image { mime: one.mime, data: &one.data });
    let blocks = text.into_iter().chain(images);
    // Texts can always be serialized.
    NewPrompt { text: None, content: Some(blocks.filter_map(|block| to_raw_value(&block).ok()).collect()) }
}

/// Checks that there is space for one more image.
pub(crate) fn check_space(images: &[Attachment]) -> Result<(), String> {
    match images.len() {
        0..IMAGES_MAX => Ok(()),
        _ => Err(format!("a prompt can have {IMAGES_MAX} images here: send these first")),
    }
}

/// The path of an image in pasted text: terminals write the path of a file that is dropped on them, in quotes or with backslashes.
pub(crate) fn pasted_path(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() > PATH_MAX || text.contains('\n') {
        return None;
    }
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let path = match quoted('\'').or_else(|| quoted('"')) {
        Some(inner) => inner.to_owned(),
        None => match text.strip_prefix("file://") {
            Some(rest) => percent_decoded(rest)?,
            None => unescaped(text)?,
        },
    };
    let begins = ["/", "~/", "./", "../"].iter().any(|begin| path.starts_with(begin));
    let lower = path.to_lowercase();
    (begins && ENDINGS.iter().any(|end| lower.ends_with(end))).then_some(path)
}

/// A word of a shell without its backslashes; `None` if it contains an unescaped blank.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => out.push(rest.next()?),
            c if c.is_whitespace() => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

/// The path of a `file:` URI.
fn percent_decoded(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let hex = [rest.next()?, rest.next()?];
                out.push(u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?);
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).ok()
}

/// The type of an image, by its first bytes.
fn type_of(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Reads an image; `~/` is the home folder, and another relative path begins at `start_dir`.
pub(crate) fn read_image(path: &str, start_dir: &Path) -> Result<Attachment, String> {
    let file_name = sanitize::line(path, 120);
    let path = path.trim();
    let whole = match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => start_dir.join(PathBuf::from(path)),
    };
    let failed = |why: std::io::Error| format!("{file_name} cannot be read: {why}");
    // A pipe would never end, and opening one would wait.
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let flags = i32::try_from(flags).unwrap_or_default();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(whole).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    if !facts.is_file() {
        return Err(format!("{file_name} is not a file: name a PNG, JPEG, GIF or WebP image"));
    }
    let mut bytes = Vec::new();
    file.take(IMAGE_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    let Some(mime) = type_of(&bytes) else {
        return Err(format!("{file_name} is not a PNG, JPEG, GIF or WebP image"));
    };
    if bytes.len() as u64 > IMAGE_MAX {
        return Err(format!("{file_name} is larger than {} MiB: make it smaller", IMAGE_MAX >> 20));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    Ok(Attachment {
        name: sanitize::line(name, 60),
        mime,
        bytes: bytes.len() as u64,
        pixels: image::dimensions(&bytes),
        data: data_encoding::BASE64.encode(&bytes).into(),
    })
}

/// Adds an image that was read to those of a prompt; returns the notice.
pub(crate) fn attach(images: &mut Vec<Attachment>, image: Result<Attachment, String>) -> Result<String, String> {
    let image = image?;
    check_space(images)?;
    let text = format!("attached {}", image.text());
    images.push(image);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attachment_path_is_told_from_other_pasted_text() {
        for (text, path) in [
            ("/tmp/a.png", Some("/tmp/a.png")),
            ("'/tmp/a b.PNG' ", Some("/tmp/a b.PNG")),
            ("\"/tmp/a.webp\"", Some("/tmp/a.webp")),
            (r"/tmp/a\ b.jpg", Some("/tmp/a b.jpg")),
            ("file:///tmp/a%20b.jpeg", Some("/tmp/a b.jpeg")),
            ("~/x.gif", Some("~/x.gif")),
            ("/tmp/a b.png", None),
            ("see /tmp/a.png", None),
            ("a.png", None),
            ("/tmp/a.png\n/tmp/b.png", None),
            ("/tmp/a.txt", None),
            ("file:///%zz.png", None),
            ("", None),
        ] {
            assert_eq!(pasted_path(text).as_deref(), path, "{text:?}");
        }
    }

    #[test]
    fn attachment_is_read_only_from_a_small_image() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
        file("a b.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0");
        let read = |path: &str| read_image(path, dir.path());
        let one = read("a b.png").unwrap();
        assert_eq!((one.text().as_str(), one.mime), ("a b.png · 640x480 · 24 bytes", "image/png"));
        let body = |text: &str, images: &[Attachment]| json!(new_prompt(text, images));
        let whole = body("look", std::slice::from_ref(&one));
        assert_eq!(whole["content"][0]["text"], "look");
        assert_eq!(whole["content"][1], json!({ "type": "image", "mimeType": "image/png", "data": &*one.data }));
        assert_eq!(body(" ", &[one])["content"].as_array().unwrap().len(), 1, "without a text");
        assert_eq!(body("x", &[]), json!({ "text": "x" }));
        file("notes.png", b"just words");
        let mut big = b"GIF89a".to_vec();
        big.resize(usize::try_from(IMAGE_MAX).unwrap() + 1, 0);
        file("big.gif", &big);
        for (path, why) in [
            ("none.png", "cannot be read"),
            ("notes.png", "is not a PNG"),
            ("big.gif", "larger than 5 MiB"),
            (".", "is not a file"),
            ("/dev/zero", "is not a file"),
        ] {
            let output = read(path).unwrap_err();
            assert!(output.contains(why), "{path}: {output}");
        }
    }
}
