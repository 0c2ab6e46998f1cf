//! The keys of a table, each read once; every error is reported with its position.

use super::*;

/// Parses a duration such as `90s`, `15m`, `8h` or `2d`: an integer above 0 and its unit.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let unit = match text.as_bytes().last()? {
        b's' => 1,
        b'm' => 60,
        b'h' => 3600,
        b'd' => 86_400,
        _ => return None,
    };
    let number: u64 = text[..text.len() - 1].parse().ok()?;
    Some(Duration::from_secs(number.checked_mul(unit)?)).filter(|span| !span.is_zero())
}

/// Replaces `${VAR}` by the variable's value and `$$` by a dollar.
fn expand(text: &str, var: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            match var(name) {
                Some(value) => out.push_str(&value),
                None => {
                    return Err(format!(
                        "the variable {name} is not set: set it before starting the gateway, or write the value here"
                    ));
                }
            }
            rest = after;
        } else {
            return Err("a single $: write ${NAME} for the value of a variable, or $$ for a dollar sign".into());
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns the known name that `got` most likely misspells.
pub fn nearest<'n>(got: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let folded = got.to_ascii_lowercase().replace('-', "_");
    let distance = |name: &str| edits(&folded, &name.to_ascii_lowercase().replace('-', "_"));
    known
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|(edits, name)| *edits <= TYPO_MAX && *edits < name.len())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// Returns the edit distance between `a` and `b`: letters inserted, removed, changed, or swapped with the next.
pub(super) fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: [Vec<usize>; 3] = [vec![], vec![], (0..=b.len()).collect()];
    for i in 0..a.len() {
        rows.rotate_left(1);
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let change = rows[1][j] + usize::from(a[i] != b[j]);
            let mut best = change.min(rows[1][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(rows[0][j - 1] + 1);
            }
            row.push(best);
        }
        rows[2] = row;
    }
    rows[2][b.len()]
}

/// The file's text and the errors found in it.
pub(super) struct ConfigText<'d> {
    pub(super) text: &'d str,
    pub(super) file: &'d str,
    pub(super) problems: RefCell<Vec<ConfigProblem>>,
}

impl ConfigText<'_> {
    /// Returns line and column, both from 1, of a byte.
    pub(super) fn position(&self, byte: usize) -> (usize, usize) {
        let before = self.text.get(..byte.min(self.text.len())).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    pub(super) fn problem(&self, at: Range<usize>, key: &str, message: String) {
        let position = Some(self.position(at.start));
        self.problems.borrow_mut().push(ConfigProblem { file: self.file.into(), position, key: key.into(), message });
    }
}

/// The keys of one table. Each is read by name once; a key that was not read is unknown.
pub(super) struct TableFields<'d, 'i> {
    pub(super) doc: &'d ConfigText<'d>,
    pub(super) path: String,
    pub(super) span: Range<usize>,
    pub(super) entries: BTreeMap<String, (Range<usize>, Spanned<DeValue<'i>>)>,
    pub(super) read_keys: Vec<&'static str>,
    pub(super) present: Vec<&'static str>,
    /// The span of the last value that was read.
    pub(super) last: Range<usize>,
}

impl<'d, 'i> TableFields<'d, 'i> {
    pub(super) fn new(doc: &'d ConfigText<'d>, path: String, span: Range<usize>, table: DeTable<'i>) -> Self {
        let entries = table.into_iter().map(|(key, value)| (key.get_ref().to_string(), (key.span(), value))).collect();
        Self { doc, path, span, entries, read_keys: Vec::new(), present: Vec::new(), last: 0..0 }
    }

    pub(super) fn key(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            ("", key) => key.to_owned(),
            (path, "") => path.to_owned(),
            (path, key) => format!("{path}.{key}"),
        }
    }

    pub(super) fn problem(&self, at: Range<usize>, key: &str, message: String) {
        self.doc.problem(at, &self.key(key), message);
    }

    /// Returns whether a key that was read is present, valid or not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.present.contains(&key)
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<Spanned<DeValue<'i>>> {
        self.read_keys.push(key);
        let (_, value) = self.entries.remove(key)?;
        self.present.push(key);
        self.last = value.span();
        Some(value)
    }

    pub(super) fn wrong(&self, key: &str, value: &Spanned<DeValue<'_>>, want: &str, example: &str) {
        let found = value.get_ref().type_str();
        self.problem(
            value.span(),
            key,
            format!("must be {want}, not {}: write {key} = {example}", with_article(found)),
        );
    }

    pub(super) fn text(&mut self, key: &'static str, example: &str) -> Option<(Range<usize>, String)> {
        let value = self.take(key)?;
        let text = value.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong(key, &value, "text", example);
        }
        Some((value.span(), text?))
    }

    pub(super) fn texts(&mut self, key: &'static str, example: &str) -> Option<Vec<(Range<usize>, String)>> {
        let value = self.take(key)?;
        let Some(list) = value.get_ref().as_array() else {
            self.wrong(key, &value, "a list of texts", example);
            return None;
        };
        let mut texts = Vec::new();
        for item in list {
            match item.get_ref().as_str() {
                Some(text) => texts.push((item.span(), text.to_owned())),
                None => {
                    self.wrong(key, item, "a list of texts", example);
                    return None;
                }
            }
        }
        Some(texts)
    }

    pub(super) fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let (span, text) = self.text(key, &format!("\"{}\"", names[0]))?;
        let found = words.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        if found.is_none() {
            self.problem(span, key, format!("\"{text}\" is not one of {}", names.join(", ")));
        }
        found
    }

    pub(super) fn number(&mut self, key: &'static str, min: u64, max: u64) -> Option<u64> {
        let value = self.take(key)?;
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong(key, &value, "a whole number", &min.max(1).to_string());
            return None;
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.problem(value.span(), key, format!("{} is out of range: from {min} to {max}", integer.as_str()));
        }
        number
    }

    /// Reads a port on this machine; `example` is one.
    pub(super) fn port(&mut self, key: &'static str, example: u16) -> Option<(Range<usize>, u16)> {
        let value = self.take(key)?;
        let Some(integer) = value.get_ref().as_integer() else {
            let hint = format!("{example}; it is served on the loopback address of listen alone");
            self.wrong(key, &value, "a port's number", &hint);
            return None;
        };
        let port = u16::from_str_radix(integer.as_str(), integer.radix()).ok();
        if port.is_none() {
            self.problem(value.span(), key, format!("{} is not a port: use 0 (a free one) to 65535", integer.as_str()));
        }
        Some((value.span(), port?))
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.take(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong(key, &value, "true or false", "true");
        }
        flag
    }

    pub(super) fn env(&mut self, key: &'static str, context: &ConfigContext) -> Option<BTreeMap<String, String>> {
        let value = self.take(key)?;
        let example = "{ NAME = \"value\" }";
        let Some(table) = value.get_ref().as_table() else {
            self.wrong(key, &value, "a table of texts", example);
            return None;
        };
        let mut env = BTreeMap::new();
        for (name, value) in table {
            let path = format!("{key}.{}", name.get_ref());
            let Some(text) = value.get_ref().as_str() else {
                let found = with_article(value.get_ref().type_str());
                self.problem(value.span(), &path, format!("must be text, not {found}: put it in quotes"));
                continue;
            };
            if name.get_ref().is_empty() || name.get_ref().contains(['=', '\0']) {
                self.problem(
                    name.span(),
                    &path,
                    "is not the name of a variable: it must not be empty or contain =".into(),
                );
            }
            match expand(text, |var| context.var(var)) {
                Ok(text) => {
                    env.insert(name.get_ref().to_string(), text);
                }
                Err(message) => self.problem(value.span(), &path, message),
            }
        }
        Some(env)
    }

    /// Reads text in which `${VAR}` is replaced by the variable's value.
    pub(super) fn secret(&mut self, key: &'static str, example: &str, context: &ConfigContext) -> Option<String> {
        let (span, text) = self.text(key, example)?;
        match expand(&text, |var| context.var(var)) {
            Ok(secret) => Some(secret),
            Err(reason) => {
                self.problem(span, key, reason);
                None
            }
        }
    }

    pub(super) fn json(&mut self, key: &'static str) -> Option<Box<RawValue>> {
        let value = self.take(key)?;
        if !value.get_ref().is_table() {
            self.wrong(key, &value, "a table", "{ name = \"value\" }");
            return None;
        }
        match json(value.get_ref()).and_then(|value| serde_json::value::to_raw_value(&value).ok()) {
            Some(raw) => Some(raw),
            None => {
                self.problem(value.span(), key, "contains a number that JSON cannot represent: use another".into());
                None
            }
        }
    }

    pub(super) fn table(&mut self, key: &'static str) -> Option<TableFields<'d, 'i>> {
        let value = self.take(key)?;
        let span = value.span();
        if !value.get_ref().is_table() {
            let found = with_article(value.get_ref().type_str());
            self.problem(span, key, format!("must be a table, not {found}: write [{key}] on a line of its own"));
            return None;
        }
        match value.into_inner() {
            DeValue::Table(table) => Some(TableFields::new(self.doc, self.key(key), span, table)),
            _ => None,
        }
    }

    pub(super) fn tables(&mut self, key: &'static str) -> Vec<TableFields<'d, 'i>> {
        let Some(value) = self.take(key) else { return Vec::new() };
        let span = value.span();
        let found = with_article(value.get_ref().type_str());
        let complain = |span: Range<usize>, found: String| {
            self.problem(
                span,
                key,
                format!("must be a list of tables, not {found}: write [[{key}]] on a line of its own"),
            );
        };
        let DeValue::Array(list) = value.into_inner() else {
            complain(span, found);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in list {
            let span = item.span();
            let found = with_article(item.get_ref().type_str());
            match item.into_inner() {
                DeValue::Table(table) => tables.push(TableFields::new(self.doc, self.key(key), span, table)),
                _ => complain(span, found),
            }
        }
        tables
    }

    /// Reports the keys that were not read.
    pub(super) fn finish(&self) {
        for (key, (span, _)) in &self.entries {
            let message = match nearest(key, self.read_keys.iter().copied()) {
                Some(near) => format!("unknown key; did you mean {near}?"),
                None => format!("unknown key; known keys: {}", self.read_keys.join(", ")),
            };
            self.problem(span.clone(), key, message);
        }
    }
}

/// Returns a noun with its article: `an integer`, `a table`.
fn with_article(noun: &str) -> String {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { format!("an {noun}") } else { format!("a {noun}") }
}

/// Returns the same value in JSON; a date becomes its text. `None` for a number that JSON does not have.
pub(super) fn json(value: &DeValue<'_>) -> Option<serde_json::Value> {
    use serde_json::Value;
    Some(match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(integer) => Value::from(i64::from_str_radix(integer.as_str(), integer.radix()).ok()?),
        DeValue::Float(float) => Value::Number(serde_json::Number::from_f64(float.as_str().parse().ok()?)?),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(at) => Value::from(at.to_string()),
        DeValue::Array(list) => Value::Array(list.iter().map(|item| json(item.get_ref())).collect::<Option<_>>()?),
        DeValue::Table(table) => {
            let fields = table.iter().map(|(key, value)| Some((key.get_ref().to_string(), json(value.get_ref())?)));
            Value::Object(fields.collect::<Option<_>>()?)
        }
    })
}
