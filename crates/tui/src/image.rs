//! The text that represents an image in a terminal: its size and format, and where to see it. Pure.

use plexus_protocol::transcript::block_label;
use serde_json::Value;

use super::sanitize;

/// Maximum length of an image's base64 that is read for its size, in characters: a photo's previews precede the size.
const READ_MAX: usize = 64 << 10;
/// Maximum length of an image's name, in columns.
const NAME_MAX: usize = 80;

/// Formats a content block other than text as one line, such as `[image 640x480 png, 12 KiB, open in the page]`.
pub(crate) fn label(block: &Value) -> String {
    let data = block["data"].as_str();
    let size = data.map(|data| format!(", {}", size_text(data.len() as u64 / 4 * 3))).unwrap_or_default();
    if block["type"] != "image" {
        let label = block_label(block);
        return sanitize::line(&format!("{}{size}]", label.trim_end_matches(']')), NAME_MAX);
    }
    let format = block["mimeType"].as_str().and_then(|mime| mime.strip_prefix("image/")).unwrap_or_default();
    let head = data.map(head).unwrap_or_default();
    let pixels = dimensions(&head).map(|(width, height)| format!(" {width}x{height}")).unwrap_or_default();
    let name = ["uri", "name"].iter().find_map(|name| block[*name].as_str().filter(|name| !name.is_empty()));
    let name = name.map(|name| format!(" {name}")).unwrap_or_default();
    let format = if format.is_empty() { String::new() } else { format!(" {format}") };
    let label = sanitize::line(&format!("image{pixels}{format}{name}"), NAME_MAX);
    format!("[{label}{size}, open in the page]")
}

/// Formats a size as `15 bytes`, `3 KiB` or `1.5 MiB`.
pub(crate) fn size_text(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20),
    }
}

/// Decodes the beginning of base64 data.
fn head(data: &str) -> Vec<u8> {
    let max = data.len().min(READ_MAX) / 4 * 4;
    let text = data.as_bytes().get(..max).unwrap_or_default();
    data_encoding::BASE64.decode(text).unwrap_or_default()
}

/// The width and height of a PNG, GIF or JPEG, from its beginning.
pub(crate) fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let big_endian = |at: usize| Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let little_endian = |at: usize| Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((big(16)?, big(20)?));
    }
    if bytes.starts_with(b"GIF8") {
        return Some((little_endian(6)?, little_endian(8)?));
    }
    if !bytes.starts_with(b"\xff\xd8") {
        return None;
    }
    // The segments of a JPEG: a marker, then its length, until the one that begins a frame.
    let mut at = 2;
    loop {
        let [0xff, marker] = bytes.get(at..at + 2)? else { return None };
        match marker {
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((big_endian(at + 7)?, big_endian(at + 5)?));
            }
            0xd8 | 0x01 | 0xd0..=0xd7 => at += 2,
            _ => at += 2 + usize::try_from(big_endian(at + 2)?).ok()?.max(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn base64(bytes: &[u8]) -> String {
        data_encoding::BASE64.encode(bytes)
    }

    #[test]
    fn image_label_has_size_and_format() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([0, 0, 2, 128, 0, 0, 1, 224]);
        png.resize(3072, 0);
        let block = |bytes: &[u8], mime: &str| json!({ "type": "image", "mimeType": mime, "data": base64(bytes) });
        assert_eq!(label(&block(&png, "image/png")), "[image 640x480 png, 3 KiB, open in the page]");
        let gif = b"GIF89a\x40\x01\xf0\x00....";
        assert_eq!(label(&block(gif, "image/gif")), "[image 320x240 gif, 15 bytes, open in the page]");
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x00\x64\x00\xc8.";
        assert_eq!(label(&block(jpeg, "image/jpeg")), "[image 200x100 jpeg, 18 bytes, open in the page]");
        let linked = json!({ "type": "image", "uri": "file:///a.png", "mimeType": "image/png" });
        assert_eq!(label(&linked), "[image png file:///a.png, open in the page]");
        assert_eq!(
            label(&json!({ "type": "audio", "mimeType": "audio/wav", "data": "AAAA" })),
            "[audio audio/wav, 3 bytes]"
        );
    }

    #[test]
    fn image_label_survives_hostile_data() {
        for data in ["", "!", "////", "\u{1b}[2J", "iVBORw0KGgo=", "R0lGODlh", "/9j/", "/9j/4AAAAAAAAAAA", "é"] {
            let text =
                label(&json!({ "type": "image", "mimeType": "image/\u{1b}[2Jx", "data": data, "name": "\u{202e}" }));
            assert!(text.starts_with("[image") && !text.contains(['\u{1b}', '\u{202e}']), "{data:?}: {text}");
        }
    }
}
