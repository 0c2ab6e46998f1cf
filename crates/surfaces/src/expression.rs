//! The `${...}` expressions of `formatString`: a template becomes a list of dynamic values as A2UI writes them (literals, `{"path"}`,
//! `{"call","args"}`), which are then checked and evaluated like any other.

use serde_json::{Map, Value, json};

use super::limits::TEMPLATE_MAX;

/// Maximum number of expressions within expressions.
const NESTED_MAX: usize = 100;

/// Returns the parts of a template, in order.
pub(crate) fn parse(template: &str) -> Result<Vec<Value>, String> {
    if template.len() > TEMPLATE_MAX {
        return Err(format!("the template has {} bytes, and {TEMPLATE_MAX} are the most", template.len()));
    }
    let mut parts: Vec<Value> = Vec::new();
    let mut literal = String::new();
    let mut rest = template;
    while !rest.is_empty() {
        if let Some(escaped) = rest.strip_prefix("\\${") {
            literal.push_str("${");
            rest = escaped;
        } else if let Some(inside) = rest.strip_prefix("${") {
            if !literal.is_empty() {
                parts.push(Value::String(std::mem::take(&mut literal)));
            }
            let (content, after) = interpolation(inside)?;
            let part = expression(content, 1)?;
            if part != "" {
                parts.push(part);
            }
            rest = after;
        } else {
            let next = rest.char_indices().skip(1).find(|(at, _)| {
                let tail = &rest[*at..];
                tail.starts_with("${") || tail.starts_with("\\${")
            });
            let (text, after) = rest.split_at(next.map_or(rest.len(), |(at, _)| at));
            literal.push_str(text);
            rest = after;
        }
    }
    if !literal.is_empty() {
        parts.push(Value::String(literal));
    }
    Ok(parts)
}

/// Splits after the brace that closes an interpolation; braces in strings do not count.
fn interpolation(text: &str) -> Result<(&str, &str), String> {
    let mut open = 1usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(mark) if c == mark => quote = None,
            Some(_) => {}
            None => match c {
                '{' => open += 1,
                '}' => open -= 1,
                '\'' | '"' => quote = Some(c),
                _ => {}
            },
        }
        if open == 0 {
            return Ok((&text[..at], &text[at + 1..]));
        }
    }
    Err("an interpolation is not closed: a } is missing".to_owned())
}

/// Parses one complete expression.
fn expression(text: &str, depth: usize) -> Result<Value, String> {
    let mut reader = Reader { rest: text.trim() };
    if reader.rest.is_empty() {
        return Ok(json!(""));
    }
    let value = reader.expression(depth)?;
    if reader.rest.is_empty() {
        return Ok(value);
    }
    let rest: String = reader.rest.chars().take(20).collect();
    Err(format!("unexpected characters after an expression: {rest:?}"))
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn expression(&mut self, depth: usize) -> Result<Value, String> {
        if depth > NESTED_MAX {
            return Err(format!("expressions are nested more than {NESTED_MAX} levels deep"));
        }
        self.spaces();
        if let Some(inside) = self.rest.strip_prefix("${") {
            let (content, after) = interpolation(inside)?;
            self.rest = after;
            return expression(content, depth + 1);
        }
        match self.rest.chars().next() {
            None => return Ok(json!("")),
            Some(quote @ ('\'' | '"')) => return Ok(Value::String(self.string(quote))),
            Some(digit) if digit.is_ascii_digit() => return self.number(),
            Some(_) => {}
        }
        for (word, value) in [("true", json!(true)), ("false", json!(false)), ("null", json!(""))] {
            if let Some(after) = self.rest.strip_prefix(word)
                && !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            {
                self.rest = after;
                return Ok(value);
            }
        }
        let name = self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
        self.spaces();
        if self.rest.starts_with('(') {
            return self.call(name, depth);
        }
        Ok(if name.is_empty() { json!("") } else { json!({ "path": name }) })
    }

    fn call(&mut self, name: &str, depth: usize) -> Result<Value, String> {
        self.rest = &self.rest[1..];
        let mut args = Map::new();
        loop {
            self.spaces();
            if let Some(after) = self.rest.strip_prefix(')') {
                self.rest = after;
                return Ok(json!({ "call": name, "args": args }));
            }
            if self.rest.is_empty() {
                return Err(format!("a ) is missing after the arguments of {name}"));
            }
            let arg = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
            self.spaces();
            let Some(after) = self.rest.strip_prefix(':') else {
                return Err(format!(
                    "a : is missing after the argument {arg:?} of {name}: write name: value, name: value)"
                ));
            };
            self.rest = after;
            let value = self.expression(depth + 1)?;
            args.insert(arg.to_owned(), value);
            self.spaces();
            self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
        }
    }

    fn string(&mut self, quote: char) -> String {
        let mut text = String::new();
        let mut chars = self.rest[1..].chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some(other) => text.push(other),
                    None => {}
                },
                c if c == quote => break,
                c => text.push(c),
            }
        }
        self.rest = chars.as_str();
        text
    }

    fn number(&mut self) -> Result<Value, String> {
        let text = self.take(|c| c.is_ascii_digit() || c == '.');
        if let Ok(whole) = text.parse::<u64>() {
            return Ok(json!(whole));
        }
        let number = text.parse::<f64>().ok().filter(|n| n.is_finite());
        number.map(|n| json!(n)).ok_or_else(|| format!("{text} is no number"))
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, after) = self.rest.split_at(end);
        self.rest = after;
        taken
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expression_parts_are_those_of_the_reference() {
        for (template, parts) in [
            ("hello world", json!(["hello world"])),
            ("hello ${foo}", json!(["hello ", {"path": "foo"}])),
            ("val is ${${nested}}", json!(["val is ", {"path": "nested"}])),
            ("escaped \\${foo}", json!(["escaped ${foo}"])),
            ("sum is ${add(a: 10, b: 20)}", json!(["sum is ", {"call": "add", "args": {"a": 10, "b": 20}}])),
            ("${upper(text: \"hello\")}", json!([{"call": "upper", "args": {"text": "hello"}}])),
            ("${true} ${false} ${null}", json!([true, " ", false, " "])),
            ("${${\"hello\"}}", json!(["hello"])),
            ("${()}", json!([{"call": "", "args": {}}])),
            ("${'line1\\nline2\\t\\r\\'\\\\x'}", json!(["line1\nline2\t\r'\\x"])),
            ("${my-path.with_underscores}", json!([{"path": "my-path.with_underscores"}])),
            ("${'a}b'}!", json!(["a}b", "!"])),
            ("${truely}", json!([{"path": "truely"}])),
            ("${1.5}", json!([1.5])),
            ("$5 {x}", json!(["$5 {x}"])),
            ("", json!([])),
        ] {
            assert_eq!(Value::Array(parse(template).unwrap()), parts, "{template}");
        }
    }

    #[test]
    fn expression_errors_are_named() {
        for (template, why) in [
            ("hello ${world", "not closed"),
            ("${add(a: 1, b: 2}", "a ) is missing"),
            ("${true false}", "unexpected characters"),
            ("${add(a 10, b: 20)}", "a : is missing"),
            ("${1.2.3}", "no number"),
        ] {
            let error = parse(template).unwrap_err();
            assert!(error.contains(why), "{template}: {error}");
        }
    }

    #[test]
    fn expression_nesting_has_a_limit() {
        let calls = |n: usize| format!("${{{}1{}}}", "f(a: ".repeat(n), ")".repeat(n));
        let blocks = |n: usize| format!("{}x{}", "${".repeat(n), "}".repeat(n));
        assert!(parse(&calls(NESTED_MAX - 1)).is_ok() && parse(&blocks(NESTED_MAX)).is_ok());
        for deep in [calls(NESTED_MAX), blocks(NESTED_MAX + 1), calls(9_000), blocks(20_000)] {
            assert!(parse(&deep).is_err());
        }
    }
}
