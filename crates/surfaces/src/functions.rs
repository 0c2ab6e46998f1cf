//! The functions of the catalogues. They only compute a value from their arguments.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::error::excerpt;
use super::format::{currency, date, number_text, rounded};
use super::limits::REGEX_MAX;

/// Maximum memory of a compiled expression, in bytes.
const REGEX_MEMORY: usize = 1 << 20;

/// Compiles a regular expression of an agent; it runs in linear time.
pub(crate) fn regex(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > REGEX_MAX {
        return Err(format!("the expression has {} bytes, and {REGEX_MAX} are the most", pattern.len()));
    }
    let built = RegexBuilder::new(pattern).size_limit(REGEX_MEMORY).dfa_size_limit(REGEX_MEMORY).nest_limit(64).build();
    built.map_err(|_| {
        format!(
            "{:?} is no regular expression that runs here: no lookaround, no backreferences, no large repeats",
            excerpt(pattern)
        )
    })
}

/// Returns whether a press may open an address: http or https, without parts that hide its target.
pub fn is_http(url: &str) -> bool {
    let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    let plain = !url.chars().any(|c| c.is_control() || c.is_whitespace());
    let rest = lower.strip_prefix("https://").or(lower.strip_prefix("http://"));
    plain && rest.is_some() && url.len() > "https://".len()
}

/// Evaluates a function; returns `None` if an argument does not fit.
pub(crate) fn call(name: &str, args: &Map<String, Value>, regexes: &mut impl Regexes) -> Option<Value> {
    let value = args.get("value").unwrap_or(&Value::Null);
    let bound = |key: &str| args.get(key).and_then(number);
    let decimals = || bound("decimals").map(|n| n.clamp(0.0, 20.0) as usize);
    let grouping = || args.get("grouping").is_none_or(truthy);
    let within = |n: f64| bound("min").is_none_or(|min| n >= min) && bound("max").is_none_or(|max| n <= max);
    Some(match name {
        "required" => Value::Bool(match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        }),
        "regex" => {
            let text = text(value);
            Value::Bool(regexes.matches(args.get("pattern")?.as_str()?, &text)?)
        }
        "length" => Value::Bool(within(match value {
            // The length is in units of UTF-16, as in JavaScript.
            Value::String(text) => text.encode_utf16().count(),
            Value::Array(items) => items.len(),
            other => text(other).encode_utf16().count(),
        } as f64)),
        "numeric" => Value::Bool(number(value).is_some_and(within)),
        "email" => Value::Bool(is_email(&text(value))),
        "formatNumber" => {
            Value::String(number(value).map_or_else(String::new, |n| rounded(n, decimals(), 3, grouping())))
        }
        "formatCurrency" => {
            let code = text(args.get("currency").unwrap_or(&Value::Null));
            Value::String(number(value).map_or_else(String::new, |n| currency(n, &code, decimals(), grouping())))
        }
        "formatDate" => Value::String(date(value, &text(args.get("format").unwrap_or(&Value::Null)))),
        "pluralize" => {
            // The English rule: one for exactly 1.
            let one = (number(value) == Some(1.0)).then(|| args.get("one")).flatten();
            Value::String(text(one.or(args.get("other")).unwrap_or(&Value::Null)))
        }
        "and" => Value::Bool(args.get("values")?.as_array()?.iter().all(truthy)),
        "or" => Value::Bool(args.get("values")?.as_array()?.iter().any(truthy)),
        "not" => Value::Bool(!truthy(value)),
        _ => return None,
    })
}

/// The compiled expressions of one resolution.
pub(crate) trait Regexes {
    /// Returns whether a pattern matches; `None` if it does not compile, or has cost too much already.
    fn matches(&mut self, pattern: &str, text: &str) -> Option<bool>;
}

/// Returns a value as text, by A2UI's rules of type conversion.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => super::json::json_text(value, super::limits::STRING_MAX),
    }
}

/// Returns a value as a number.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().filter(|n| n.is_finite()),
        Value::String(text) if text.len() <= 64 => {
            let text = text.trim();
            let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
            text.parse::<f64>().ok().filter(|n| plain && n.is_finite())
        }
        _ => None,
    }
}

/// Returns whether JavaScript takes a value as true.
pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.split_once('@') else { return false };
    let Some((domain, top)) = host.rsplit_once('.') else { return false };
    let all = |part: &str, more: &[u8]| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || more.contains(&b))
    };
    all(name, b"._%+-") && all(domain, b".-") && top.len() >= 2 && top.bytes().all(|b| b.is_ascii_alphabetic())
}
