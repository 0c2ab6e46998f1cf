//! Evaluates dynamic values: literals, paths and calls. The cost is counted, so that no surface can make a reader slow.

use std::borrow::Cow;
use std::collections::HashMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::expression;
use super::functions::{self, Regexes};
use super::limits::{CALL_DEPTH_MAX, CALLS_MAX, COPIES_MAX};
use super::model::get;
use super::pointer::Pointer;
use super::size::Size;

/// The cost of compiling an expression, in bytes.
const COMPILING: usize = 32 << 10;

/// The remaining cost of a resolution. When it is used up, values are empty.
#[derive(Debug)]
pub(crate) struct Budget {
    calls: usize,
    bytes: usize,
    regexes: HashMap<String, Option<Regex>>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(CALLS_MAX, COPIES_MAX)
    }
}

impl Budget {
    pub(crate) fn new(calls: usize, bytes: usize) -> Self {
        Self { calls, bytes, regexes: HashMap::new() }
    }

    fn call(&mut self) -> Option<()> {
        self.calls = self.calls.checked_sub(1)?;
        Some(())
    }

    /// Takes bytes for a copy; if too few are left, the budget is used up.
    pub(crate) fn bytes(&mut self, bytes: usize) -> Option<()> {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or(0);
        left.map(drop)
    }
}

impl Regexes for Budget {
    fn matches(&mut self, pattern: &str, text: &str) -> Option<bool> {
        self.bytes(text.len())?;
        if !self.regexes.contains_key(pattern) {
            self.bytes(COMPILING)?;
            self.regexes.insert(pattern.to_owned(), functions::regex(pattern).ok());
        }
        Some(self.regexes.get(pattern)?.as_ref()?.is_match(text))
    }
}

/// The values of a lookup: a data model, and the list item at which relative paths begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'m> {
    pub(crate) data: &'m Value,
    pub(crate) base: &'m Pointer,
}

impl<'m> Scope<'m> {
    /// Evaluates a dynamic value; null if there is none.
    pub(crate) fn value<'v>(&self, value: &'v Value, budget: &mut Budget) -> Cow<'v, Value>
    where
        'm: 'v,
    {
        self.nested(value, budget, 0).unwrap_or(Cow::Owned(Value::Null))
    }

    /// Evaluates a dynamic value as text.
    pub(crate) fn text(&self, value: &Value, budget: &mut Budget) -> String {
        let value = self.value(value, budget);
        let text = functions::text(&value);
        if budget.bytes(text.len()).is_some() { text } else { String::new() }
    }

    fn nested<'v>(&self, value: &'v Value, budget: &mut Budget, depth: usize) -> Option<Cow<'v, Value>>
    where
        'm: 'v,
    {
        if depth > CALL_DEPTH_MAX {
            return None;
        }
        match value {
            Value::Array(items) if items.iter().any(is_dynamic) => {
                let items = items.iter().map(|item| self.owned(item, budget, depth + 1));
                Some(Cow::Owned(Value::Array(items.collect())))
            }
            Value::Object(members) => match (members.get("path"), members.get("call")) {
                (Some(Value::String(path)), _) => {
                    let path = Pointer::parse(path, self.base).ok()?;
                    get(self.data, &path).map(Cow::Borrowed)
                }
                (_, Some(Value::String(name))) => {
                    budget.call()?;
                    let none = Map::new();
                    let args = members.get("args").and_then(Value::as_object).unwrap_or(&none);
                    self.call(name, args, budget, depth).map(Cow::Owned)
                }
                _ => Some(Cow::Borrowed(value)),
            },
            _ => Some(Cow::Borrowed(value)),
        }
    }

    /// Copies a value, within the budget and the maximum depth.
    pub(crate) fn owned(&self, value: &Value, budget: &mut Budget, depth: usize) -> Value {
        match self.nested(value, budget, depth) {
            Some(Cow::Owned(value)) => value,
            Some(Cow::Borrowed(value)) => copied(value, budget),
            None => Value::Null,
        }
    }

    fn call(&self, name: &str, args: &Map<String, Value>, budget: &mut Budget, depth: usize) -> Option<Value> {
        let mut values = Map::new();
        for (key, arg) in args {
            values.insert(key.clone(), self.owned(arg, budget, depth + 1));
        }
        if name != "formatString" {
            return functions::call(name, &values, budget);
        }
        let template = functions::text(values.get("value")?);
        budget.bytes(template.len())?;
        let mut text = String::new();
        for part in expression::parse(&template).ok()? {
            let value = self.nested(&part, budget, depth + 1);
            let part = value.map_or_else(String::new, |value| functions::text(&value));
            budget.bytes(part.len() + 16)?;
            text.push_str(&part);
        }
        Some(Value::String(text))
    }
}

/// Copies a value within the budget; null if it is exceeded.
pub(crate) fn copied(value: &Value, budget: &mut Budget) -> Value {
    if budget.bytes == 0 {
        return Value::Null; // not even measured: that costs as well
    }
    let cost = match value {
        Value::String(text) => text.len(),
        Value::Array(_) | Value::Object(_) => {
            let size = Size::measure(value);
            size.bytes.max(size.values * 32)
        }
        _ => 8,
    };
    if budget.bytes(cost).is_some() { value.clone() } else { Value::Null }
}

pub(crate) fn is_dynamic(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_dynamic),
        Value::Object(members) => members.contains_key("path") || members.contains_key("call"),
        _ => false,
    }
}
