//! Numbers, amounts and dates as text, in English form. Times are in UTC: the gateway does not know where its reader is.

use jiff::civil;
use jiff::tz::TimeZone;
use serde_json::{Number, Value};

/// Returns a number as JavaScript writes it.
pub(crate) fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(n) if number.is_f64() => plain(n),
        _ => number.to_string(),
    }
}

/// Returns a number without grouping.
pub(crate) fn plain(n: f64) -> String {
    if n == 0.0 {
        return "0".to_owned();
    }
    if n.abs() >= 1e21 || n.abs() < 1e-6 {
        format!("{n:e}").replace('e', if n.abs() > 1.0 { "e+" } else { "e" })
    } else {
        n.to_string()
    }
}

/// Returns a number with `places` digits after the point, or with as many as it has, up to `max`. A half is rounded up.
pub(crate) fn rounded(n: f64, places: Option<usize>, max: usize, grouping: bool) -> String {
    let keep = places.unwrap_or(max);
    let shortest = n.abs().to_string();
    let (whole, fraction) = shortest.split_once('.').unwrap_or((&shortest, ""));
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes().chain(std::iter::repeat(b'0')).take(keep)).collect();
    if fraction.as_bytes().get(keep).is_some_and(|digit| *digit >= b'5') {
        round_up(&mut digits);
    }
    let point = digits.len() - keep;
    let mut text = group(&digits[..point], grouping);
    let mut fraction: String = digits[point..].iter().map(|b| char::from(*b)).collect();
    if places.is_none() {
        fraction.truncate(fraction.trim_end_matches('0').len());
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(&fraction);
    }
    if n < 0.0 && digits.iter().any(|digit| *digit != b'0') { format!("-{text}") } else { text }
}

fn round_up(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

fn group(digits: &[u8], grouping: bool) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.iter().enumerate() {
        if grouping && at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(char::from(*digit));
    }
    text
}

/// Symbols of currencies, and those without minor units.
#[rustfmt::skip]
const SYMBOLS: &[(&str, &str)] = &[
    ("USD", "$"), ("EUR", "€"), ("GBP", "£"), ("JPY", "¥"), ("CNY", "CN¥"), ("INR", "₹"), ("KRW", "₩"), ("BRL", "R$"), ("CAD", "CA$"),
    ("AUD", "A$"), ("MXN", "MX$"), ("NZD", "NZ$"), ("HKD", "HK$"), ("TWD", "NT$"), ("ILS", "₪"), ("VND", "₫"), ("PHP", "₱"),
];
const WHOLE: [&str; 6] = ["JPY", "KRW", "VND", "CLP", "ISK", "UGX"];

/// Returns an amount of money as text.
pub(crate) fn currency(n: f64, code: &str, places: Option<usize>, grouping: bool) -> String {
    if code.len() != 3 || !code.bytes().all(|b| b.is_ascii_alphabetic()) {
        return rounded(n, Some(places.unwrap_or(2)), 2, false);
    }
    let code = code.to_ascii_uppercase();
    let usual = if WHOLE.contains(&code.as_str()) { 0 } else { 2 };
    let amount = rounded(n, Some(places.unwrap_or(usual)), 2, grouping);
    let (sign, amount) = amount.strip_prefix('-').map_or(("", amount.as_str()), |amount| ("-", amount));
    match SYMBOLS.iter().find(|(name, _)| *name == code) {
        Some((_, symbol)) => format!("{sign}{symbol}{amount}"),
        None => format!("{sign}{code}\u{a0}{amount}"),
    }
}

/// Maximum length of a date pattern, in bytes.
const PATTERN_MAX: usize = 200;

/// Formats a moment by a pattern of Unicode TR35; an invalid moment is empty, an invalid pattern results in ISO 8601.
pub(crate) fn date(value: &Value, pattern: &str) -> String {
    let Some(at) = moment(value) else { return String::new() };
    let iso = || format!("{}Z", at.strftime("%Y-%m-%dT%H:%M:%S%.3f"));
    if pattern == "ISO" || pattern.len() > PATTERN_MAX {
        return iso();
    }
    by_pattern(at, pattern).unwrap_or_else(iso)
}

/// Parses a moment in UTC, or a date and time without a zone.
pub(crate) fn moment(value: &Value) -> Option<civil::DateTime> {
    let utc = |at: jiff::Timestamp| at.to_zoned_datetime(TimeZone::UTC).datetime();
    match value {
        Value::Number(millis) => {
            let millis = millis.as_f64().filter(|n| *n != 0.0 && n.abs() < 8.64e15)?;
            jiff::Timestamp::from_millisecond(millis as i64).ok().map(utc)
        }
        Value::String(text) if text.len() <= 64 => {
            let stamp = text.parse::<jiff::Timestamp>().ok().map(utc);
            stamp.or_else(|| text.parse::<civil::DateTime>().ok())
        }
        _ => None,
    }
}

fn by_pattern(at: civil::DateTime, pattern: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\'' {
            if chars.next_if_eq(&'\'').is_some() {
                out.push('\'');
                continue;
            }
            loop {
                match chars.next()? {
                    '\'' if chars.next_if_eq(&'\'').is_none() => break,
                    text => out.push(text),
                }
            }
            continue;
        }
        if !c.is_ascii_alphabetic() {
            out.push(c);
            continue;
        }
        let mut count = 1;
        while chars.next_if_eq(&c).is_some() {
            count += 1;
        }
        out.push_str(&field(at, c, count)?);
    }
    Some(out)
}

/// Formats one field of a date.
fn field(at: civil::DateTime, letter: char, count: usize) -> Option<String> {
    let padded = |n: i64| format!("{n:0count$}");
    let half = (i64::from(at.hour()) + 11) % 12 + 1;
    Some(match (letter, count) {
        ('y' | 'u', 2) => format!("{:02}", at.year().rem_euclid(100)),
        ('y' | 'u', 1..=4) => padded(i64::from(at.year())),
        ('M' | 'L', 1 | 2) => padded(i64::from(at.month())),
        ('M' | 'L', 3) => at.strftime("%b").to_string(),
        ('M' | 'L', 4) => at.strftime("%B").to_string(),
        ('d', 1 | 2) => padded(i64::from(at.day())),
        ('D', 1..=3) => padded(i64::from(at.day_of_year())),
        ('E' | 'e' | 'c', 1..=3) => at.strftime("%a").to_string(),
        ('E' | 'e' | 'c', 4) => at.strftime("%A").to_string(),
        ('h', 1 | 2) => padded(half),
        ('H', 1 | 2) => padded(i64::from(at.hour())),
        ('m', 1 | 2) => padded(i64::from(at.minute())),
        ('s', 1 | 2) => padded(i64::from(at.second())),
        ('S', 1..=3) => format!("{:03}", at.millisecond()).get(..count)?.to_owned(),
        ('a', 1..=3) => if at.hour() < 12 { "AM" } else { "PM" }.to_owned(),
        ('X' | 'x' | 'z', 1..=4) => "Z".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn format_numbers_as_english_readers_do() {
        assert_eq!(rounded(1234.56, Some(1), 3, true), "1,234.6");
        assert_eq!(rounded(1234.56, None, 3, false), "1234.56");
        assert_eq!(rounded(2.5, Some(0), 3, true), "3");
        assert_eq!(rounded(999.9999, None, 3, true), "1,000");
        assert_eq!(rounded(-0.0001, Some(2), 3, true), "0.00");
        assert_eq!(rounded(-1_234_567.0, None, 3, true), "-1,234,567");
        assert!(rounded(1e300, Some(20), 3, true).len() < 450);
        assert_eq!(number_text(&Number::from_f64(1.0).unwrap()), "1");
        assert_eq!((plain(1e21), plain(0.1), plain(1e-7)), ("1e+21".into(), "0.1".into(), "1e-7".into()));
    }

    #[test]
    fn format_currency_by_its_code() {
        assert_eq!(currency(1234.56, "USD", None, true), "$1,234.56");
        assert_eq!(currency(-5.0, "usd", None, true), "-$5.00");
        assert_eq!(currency(1200.4, "JPY", None, true), "¥1,200");
        assert_eq!(currency(1.0, "CHF", None, true), "CHF\u{a0}1.00");
        assert_eq!(currency(1234.56, "INVALID-CURRENCY", Some(2), true), "1234.56");
    }

    #[test]
    fn format_dates_by_pattern() {
        let at = json!("2025-12-15T14:05:09.250Z");
        for (pattern, text) in [
            ("EEEE, MMMM d", "Monday, December 15"),
            ("MMM dd, yyyy", "Dec 15, 2025"),
            ("yy-M-d", "25-12-15"),
            ("h:mm a", "2:05 PM"),
            ("HH:mm:ss.SSS", "14:05:09.250"),
            ("EEEE, MMMM d, yyyy 'at' h:mm a", "Monday, December 15, 2025 at 2:05 PM"),
            ("d ''MMM''", "15 'Dec'"),
            ("ISO", "2025-12-15T14:05:09.250Z"),
            ("QQQ", "2025-12-15T14:05:09.250Z"),
            ("'open", "2025-12-15T14:05:09.250Z"),
        ] {
            assert_eq!(date(&at, pattern), text, "{pattern}");
        }
        assert_eq!(date(&json!("2025-01-01"), "yyyy-MM-dd"), "2025-01-01");
        assert_eq!(date(&json!(1_735_732_800_000_i64), "yyyy-MM-dd HH:mm"), "2025-01-01 12:00");
        for bad in [json!("invalid-date"), json!(null), json!(1e300), json!([]), json!("9".repeat(100))] {
            assert_eq!(date(&bad, "yyyy"), "");
        }
    }
}
