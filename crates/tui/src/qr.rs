//! QR codes in a terminal. Pure.

use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

/// Width of the quiet zone that the small picture leaves out on each side, in columns.
const QUIET_CUT: usize = 2;

/// Draws a QR code of `url` in half blocks, one line of text for each two rows of the code. It is made for a dark terminal: blocks are the
/// light modules of the code. Phones read inverted codes too. `None` if the text is too long for a code.
pub fn qr_picture(url: &str) -> Option<String> {
    // A screen has no dirt or wear to correct.
    let code = QrCode::with_error_correction_level(url, EcLevel::L).ok()?;
    Some(code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build())
}

/// Draws the code with half of its quiet zone, for small windows.
pub(crate) fn qr_small(url: &str) -> Option<Vec<String>> {
    let picture = qr_picture(url)?;
    let lines: Vec<&str> = picture.lines().collect();
    let lines = lines.get(1..lines.len().checked_sub(1)?)?;
    let inner = |line: &&str| {
        let count = line.chars().count().saturating_sub(2 * QUIET_CUT);
        line.chars().skip(QUIET_CUT).take(count).collect()
    };
    Some(lines.iter().map(inner).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qr_code_fits_a_small_terminal() {
        let picture = qr_picture("https://plexus.tailnet-name.ts.net/#pair=ABCD2345").unwrap();
        let width = picture.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(width <= 60 && picture.lines().count() <= 24, "{width} x {}", picture.lines().count());
        let small = qr_small("https://my-machine.tailnet-1234.ts.net:8443/#pair=ABCD2345").unwrap();
        assert!(small.len() <= 20 && small.iter().all(|line| line.chars().count() <= 38), "{small:#?}");
        assert!(small.iter().all(|line| line.starts_with("██") || line.starts_with("▀▀")), "{small:#?}");
        assert_eq!(qr_picture(&"x".repeat(10_000)), None);
    }
}
