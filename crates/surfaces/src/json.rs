//! Values as JSON text of a bounded length.

use std::io;

use serde_json::Value;

use super::change::Canonical;

/// Returns a value as JSON of at most `max` bytes.
pub(crate) fn json_text(value: &Value, max: usize) -> String {
    let mut out = Capped { bytes: Vec::new(), max };
    // The writer stops when the limit is reached.
    let _ = serde_json::to_writer(&mut out, &Canonical(value));
    String::from_utf8(out.bytes).unwrap_or_else(|cut| String::from_utf8_lossy(cut.as_bytes()).into_owned())
}

struct Capped {
    bytes: Vec<u8>,
    max: usize,
}

impl io::Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let accepted = self.max.saturating_sub(self.bytes.len()).min(bytes.len());
        if accepted == 0 && !bytes.is_empty() {
            return Err(io::Error::other("full"));
        }
        self.bytes.extend_from_slice(&bytes[..accepted]);
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
