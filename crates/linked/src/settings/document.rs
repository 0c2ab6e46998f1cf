//! A settings file as text with positions: its values, the places where a child can be inserted, and the removal of one.
//!
//! The parser returns the position of each value, comma and comment; edits are made on the text itself. So bytes of the
//! user cannot change: an edit only inserts text between two bytes, and removes inserted text.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value as Node};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde_json::Value;

/// The bytes with which some editors begin a file.
pub(crate) const BOM: &str = "\u{feff}";
/// Maximum size of a settings file, in bytes; a larger one is refused.
pub(crate) const SETTINGS_MAX: u64 = 1 << 20;

/// The syntax that an agent's own reader accepts in addition to plain JSON. A file that it does not accept is refused:
/// an addition would have no effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syntax {
    /// Accepts comments: `//` and `/* */`.
    pub(crate) comments: bool,
    /// Accepts a comma before a closing bracket.
    pub(crate) trailing_commas: bool,
    /// Accepts a byte order mark at the beginning.
    pub(crate) bom: bool,
}

/// The reason why the text of a settings file is not edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The agent cannot read the text.
    #[error("line {line}, column {column}: {message}, so the agent itself cannot read the file; correct that place")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
        /// The mistake.
        message: String,
    },
    /// The file begins with a byte order mark, and the agent stops there.
    #[error("it begins with a byte order mark, which the agent cannot read; save it as UTF-8 without one")]
    ByteOrderMark,
    /// The outermost value is not an object.
    #[error("it holds {found} where the settings' object `{{..}}` belongs; put the settings into an object")]
    NotAnObject {
        /// The actual kind of the value.
        found: &'static str,
    },
    /// An object has a duplicate key, of which agents read only one.
    #[error(
        "line {line}: the key {key:?} occurs twice in one object, and the agent reads only one of them; remove the other"
    )]
    KeyTwice {
        /// The key.
        key: String,
        /// The line of the second occurrence.
        line: usize,
    },
    /// A value has a type that the agent does not read there.
    #[error("line {line}: {key:?} is {found}, and {expected} is read there; correct it")]
    WrongType {
        /// The key.
        key: String,
        /// The line.
        line: usize,
        /// The actual kind of the value.
        found: &'static str,
        /// The expected kind of the value.
        expected: &'static str,
    },
    /// The edit did not pass its own check.
    #[error("it is written in a way that cannot be edited without touching other entries; report this with the file")]
    Unsafe,
}

/// A replacement of a piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    /// The bytes that are removed; empty for an insertion.
    pub(crate) at: Range<usize>,
    /// The text that is inserted.
    pub(crate) put: String,
}

/// An object or an array with the positions of its children.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    /// The position after the opening bracket.
    open: usize,
    /// The position of the closing bracket.
    close: usize,
    /// The children: `"key": value`, or a value.
    children: Vec<Range<usize>>,
    /// `true` if the surrounding value is on one line.
    within_line: bool,
}

impl Container {
    pub(crate) fn object(object: &Object) -> Self {
        let children = object.properties.iter().map(|one| one.start()..one.end()).collect();
        Self { open: object.start() + 1, close: object.end().saturating_sub(1), children, within_line: false }
    }

    pub(crate) fn array(array: &Array) -> Self {
        let children = array.elements.iter().map(|one| one.start()..one.end()).collect();
        Self { open: array.start() + 1, close: array.end().saturating_sub(1), children, within_line: false }
    }
}

/// A child to insert into a container.
#[derive(Clone, Debug)]
pub(crate) struct NewChild<'v> {
    /// The key, in an object.
    pub(crate) key: Option<&'v str>,
    /// The value.
    pub(crate) value: &'v Value,
}

/// The layout of the file.
#[derive(Clone, Debug)]
struct Style {
    newline: &'static str,
    /// One step of indentation.
    step: String,
    /// The space after a colon.
    colon: &'static str,
    /// The space after a comma between children of one line.
    comma: &'static str,
    /// The space inside the braces of one line.
    pad: &'static str,
    /// `true` if the whole file is one line.
    one_line: bool,
}

/// A comment, with whether the rest of its line belongs to it.
#[derive(Clone, Debug)]
struct Comment {
    at: Range<usize>,
    rest_of_line: bool,
}

/// A parsed settings file.
pub(crate) struct Document<'a> {
    /// The text after the byte order mark.
    body: &'a str,
    /// The bytes of the byte order mark.
    skipped: usize,
    /// The settings; `None` in a file without a value.
    root: Option<Object<'a>>,
    comments: Vec<Comment>,
    commas: Vec<usize>,
    style: Style,
    value: Value,
}

impl<'a> Document<'a> {
    /// Parses `text` as the agent does.
    pub(crate) fn parse(text: &'a str, syntax: Syntax) -> Result<Self, SettingsError> {
        let body = text.strip_prefix(BOM).unwrap_or(text);
        let skipped = text.len() - body.len();
        if skipped > 0 && !syntax.bom {
            return Err(SettingsError::ByteOrderMark);
        }
        let options = ParseOptions {
            allow_comments: syntax.comments,
            allow_trailing_commas: syntax.trailing_commas,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let collect = CollectOptions { comments: CommentCollectionStrategy::Separate, tokens: true };
        let parsed = parse_to_ast(body, &collect, &options).map_err(|reason| SettingsError::Syntax {
            line: reason.line_display(),
            column: reason.column_display(),
            message: lower(&reason.kind().to_string()),
        })?;
        let mut comments: Vec<Comment> = Vec::new();
        for one in parsed.comments.iter().flat_map(|all| all.values()).flat_map(|some| some.iter()) {
            let rest_of_line = matches!(one, jsonc_parser::ast::Comment::Line(_));
            comments.push(Comment { at: one.start()..one.end(), rest_of_line });
        }
        comments.sort_by_key(|comment| comment.at.start);
        // A comment is listed for the value before it and for the one after it.
        comments.dedup_by_key(|comment| comment.at.start);
        let tokens = parsed.tokens.unwrap_or_default();
        let commas = tokens.iter().filter(|one| one.token == Token::Comma).map(|one| one.range.start).collect();
        let trailing: Vec<usize> = tokens
            .windows(2)
            .filter(|two| two[0].token == Token::Comma)
            .filter(|two| matches!(two[1].token, Token::CloseBrace | Token::CloseBracket))
            .map(|two| two[0].range.start)
            .collect();
        let value = plain_value(body, &comments, &trailing)?;
        let root = match parsed.value {
            None => None,
            Some(Node::Object(root)) => Some(root),
            Some(other) => return Err(SettingsError::NotAnObject { found: kind(&other) }),
        };
        let style = Style::detect(body, root.as_ref());
        let document = Self { body, skipped, root, comments, commas, style, value };
        if let Some(root) = &document.root {
            document.no_key_twice(root)?;
        }
        Ok(document)
    }

    /// Returns the settings, if the file has a value.
    pub(crate) fn root(&self) -> Option<&Object<'a>> {
        self.root.as_ref()
    }

    /// Returns the settings as a value; an empty object if the file has none.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// Returns whether the file has comments.
    pub(crate) fn has_comments(&self) -> bool {
        !self.comments.is_empty()
    }

    /// Returns the line of a position, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        line_number(self.body, at)
    }

    /// Makes the error for a member of an object that has the wrong type.
    pub(crate) fn wrong_type(&self, member: &ObjectProp, expected: &'static str) -> SettingsError {
        let found = kind(&member.value);
        SettingsError::WrongType {
            key: member.name.as_str().to_owned(),
            line: self.line(member.start()),
            found,
            expected,
        }
    }

    fn no_key_twice(&self, object: &Object) -> Result<(), SettingsError> {
        let mut seen = std::collections::BTreeSet::new();
        for member in &object.properties {
            if !seen.insert(member.name.as_str()) {
                let (key, line) = (member.name.as_str().to_owned(), self.line(member.start()));
                return Err(SettingsError::KeyTwice { key, line });
            }
            self.no_key_twice_in(&member.value)?;
        }
        Ok(())
    }

    fn no_key_twice_in(&self, value: &Node) -> Result<(), SettingsError> {
        match value {
            Node::Object(object) => self.no_key_twice(object),
            Node::Array(array) => array.elements.iter().try_for_each(|one| self.no_key_twice_in(one)),
            _ => Ok(()),
        }
    }

    /// Returns a list in `outer` as a container.
    pub(crate) fn list_in(&self, outer: &Container, list: &Array) -> Container {
        Container { within_line: !has_newline(&self.body[outer.open..outer.close]), ..Container::array(list) }
    }

    // === putting in ===

    /// Adds the splices that insert children behind the last one of a container.
    pub(crate) fn append(&self, into: &Container, new: &[NewChild], out: &mut Vec<Splice>) {
        match into.children.last() {
            Some(last) => self.append_behind(into, last, new, out),
            None => self.append_first(into, new, out),
        }
    }

    fn append_behind(&self, into: &Container, last: &Range<usize>, new: &[NewChild], out: &mut Vec<Splice>) {
        let trailing = self.comma_in(last.end..into.close);
        let comment = self.comments_in(last.end..into.close).last();
        let end = trailing.map_or(last.end, |comma| comma + 1);
        let anchor = comment.map_or(end, |comment| comment.at.end.max(end));
        let before = into.children.len().checked_sub(2).map_or(into.open, |at| into.children[at].end);
        let own_line =
            has_newline(&self.body[before..last.start]) || comment.is_some_and(|comment| comment.rest_of_line);
        let indent = own_line.then(|| self.indent_of_line(last.start));
        let between = match &indent {
            Some(indent) => format!("{}{indent}", self.style.newline),
            None => self.style.comma.to_owned(),
        };
        let children: Vec<String> =
            new.iter().map(|one| format!("{between}{}", self.child(one, indent.as_deref()))).collect();
        let mut put = children.join(",");
        match trailing {
            Some(_) => put.push(','),
            // If both are at the same position, this one is applied first.
            None => out.push(Splice { at: last.end..last.end, put: ",".into() }),
        }
        out.push(Splice { at: anchor..anchor, put });
    }

    fn append_first(&self, into: &Container, new: &[NewChild], out: &mut Vec<Splice>) {
        let comment = self.comments_in(into.open..into.close).last();
        let anchor = comment.map_or(into.open, |comment| comment.at.end);
        let one_line = self.style.one_line || into.within_line;
        if one_line && comment.is_none_or(|comment| !comment.rest_of_line) {
            let children: Vec<String> = new.iter().map(|one| self.child(one, None)).collect();
            let pad = if into.close == into.open { self.style.pad } else { "" };
            let put = format!("{pad}{}{pad}", children.join(&format!(",{}", self.style.comma)));
            return out.push(Splice { at: anchor..anchor, put });
        }
        let outer = self.indent_of_line(into.open);
        let indent = format!("{outer}{}", self.style.step);
        let newline = self.style.newline;
        let children: Vec<String> =
            new.iter().map(|one| format!("{newline}{indent}{}", self.child(one, Some(&indent)))).collect();
        let mut put = children.join(",");
        if !has_newline(&self.body[anchor..into.close]) {
            put.push_str(&format!("{newline}{outer}"));
        }
        out.push(Splice { at: anchor..anchor, put });
    }

    /// Returns the splice that gives a file without a value its object.
    pub(crate) fn begin(&self, new: &[NewChild]) -> Splice {
        let comment = self.comments.last();
        let anchor = comment.map_or(0, |comment| comment.at.end);
        let newline = self.style.newline;
        let indent = &self.style.step;
        let children: Vec<String> =
            new.iter().map(|one| format!("{newline}{indent}{}", self.child(one, Some(indent)))).collect();
        let first = if comment.is_some() { newline } else { "" };
        let last = if has_newline(&self.body[anchor..]) { "" } else { newline };
        Splice { at: anchor..anchor, put: format!("{first}{{{}{newline}}}{last}", children.join(",")) }
    }

    fn child(&self, new: &NewChild, indent: Option<&str>) -> String {
        let mut out = String::new();
        if let Some(key) = new.key {
            out.push_str(&format!("{}:{}", Value::from(key), self.style.colon));
        }
        self.write(new.value, indent, &mut out);
        out
    }

    /// Writes a value in the file's own style: on several lines with an indentation, or on one line.
    fn write(&self, value: &Value, indent: Option<&str>, out: &mut String) {
        let (open, close, children): (char, char, Vec<NewChild>) = match value {
            Value::Array(all) => ('[', ']', all.iter().map(|value| NewChild { key: None, value }).collect()),
            Value::Object(all) => {
                ('{', '}', all.iter().map(|(key, value)| NewChild { key: Some(key), value }).collect())
            }
            plain => return out.push_str(&plain.to_string()),
        };
        out.push(open);
        let inner = indent.map(|indent| format!("{indent}{}", self.style.step));
        for (at, child) in children.iter().enumerate() {
            match &inner {
                Some(inner) => out.push_str(&format!("{}{}{inner}", if at > 0 { "," } else { "" }, self.style.newline)),
                None if at > 0 => out.push_str(&format!(",{}", self.style.comma)),
                None if open == '{' => out.push_str(self.style.pad),
                None => {}
            }
            out.push_str(&self.child(child, inner.as_deref()));
        }
        match indent {
            Some(indent) if !children.is_empty() => out.push_str(&format!("{}{indent}", self.style.newline)),
            None if !children.is_empty() && open == '{' => out.push_str(self.style.pad),
            _ => {}
        }
        out.push(close);
    }

    // === taking out ===

    /// Returns whether the container has a comment outside of the marked children.
    pub(crate) fn has_comment_outside(&self, container: &Container, marked: &[bool]) -> bool {
        let is_inside = |comment: &Comment| {
            let children = container.children.iter().zip(marked).filter(|(_, marked)| **marked);
            children.into_iter().any(|(child, _)| child.start <= comment.at.start && comment.at.end <= child.end)
        };
        self.comments_in(container.open..container.close).any(|comment| !is_inside(comment))
    }

    /// Adds the splices that remove the marked children of a container, with their commas and space.
    pub(crate) fn remove(&self, from: &Container, marked: &[bool], out: &mut Vec<Splice>) {
        let is_marked = |at: usize| marked.get(at).copied().unwrap_or(false);
        let all = (0..from.children.len()).all(is_marked);
        if all && self.comments_in(from.open..from.close).next().is_none() {
            return out.push(Splice { at: from.open..from.close, put: String::new() });
        }
        let last_retained = (0..from.children.len()).rev().find(|at| !is_marked(*at));
        let mut cuts: Vec<Range<usize>> = Vec::new();
        for at in (0..from.children.len()).filter(|at| is_marked(*at)) {
            let child = &from.children[at];
            cuts.push(self.space_before(child.start)..child.end);
            let next = from.children.get(at + 1).map_or(from.close, |next| next.start);
            if let Some(comma) = self.comma_in(child.end..next) {
                cuts.push(comma..comma + 1);
            }
        }
        // Behind the last remaining child, one comma is too many, unless the file has commas before closing brackets.
        if let Some(retained) = last_retained.filter(|retained| retained + 1 < from.children.len()) {
            let last = from.children.last().map_or(from.close, |last| last.end);
            let next = from.children[retained + 1].start;
            if self.comma_in(last..from.close).is_none()
                && let Some(comma) = self.comma_in(from.children[retained].end..next)
            {
                cuts.push(comma..comma + 1);
            }
        }
        cuts.sort_by_key(|cut| cut.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for cut in cuts {
            match merged.last_mut() {
                Some(before) if cut.start <= before.end => before.end = before.end.max(cut.end),
                _ => merged.push(cut),
            }
        }
        out.extend(merged.into_iter().map(|cut| self.cut(cut)));
    }

    /// Returns the splice that removes a range, but retains the line end of a comment.
    fn cut(&self, at: Range<usize>) -> Splice {
        let after_comment = self.comments.iter().any(|comment| comment.rest_of_line && comment.at.end == at.start);
        let rest = self.body[at.end..].trim_start_matches([' ', '\t']);
        let ends = rest.is_empty() || rest.starts_with(['\n', '\r']);
        let put = if after_comment && !ends { self.style.newline.to_owned() } else { String::new() };
        Splice { at, put }
    }

    /// Returns the text with the splices applied.
    pub(crate) fn spliced(&self, mut splices: Vec<Splice>) -> Result<String, SettingsError> {
        splices.sort_by_key(|splice| (splice.at.start, splice.at.end));
        let mut out = String::with_capacity(self.body.len() + 4096);
        if self.skipped > 0 {
            out.push_str(BOM);
        }
        let mut from = 0;
        for splice in splices {
            out.push_str(self.body.get(from..splice.at.start).ok_or(SettingsError::Unsafe)?);
            out.push_str(&splice.put);
            from = splice.at.end;
        }
        out.push_str(self.body.get(from..).ok_or(SettingsError::Unsafe)?);
        Ok(out)
    }

    // === places ===

    fn comments_in(&self, within: Range<usize>) -> impl Iterator<Item = &Comment> {
        let from = self.comments.partition_point(|comment| comment.at.start < within.start);
        self.comments[from..].iter().take_while(move |comment| comment.at.end <= within.end)
    }

    /// Returns the first comma in a range without values.
    fn comma_in(&self, within: Range<usize>) -> Option<usize> {
        let from = self.commas.partition_point(|comma| *comma < within.start);
        self.commas.get(from).copied().filter(|comma| *comma < within.end)
    }

    /// Returns the start of the space before a place.
    fn space_before(&self, at: usize) -> usize {
        self.body[..at].trim_end_matches([' ', '\t', '\n', '\r']).len()
    }

    /// Returns the indentation of the line of a position.
    fn indent_of_line(&self, at: usize) -> String {
        let line = self.body[..at].rfind(['\n', '\r']).map_or(0, |newline| newline + 1);
        self.body[line..at].chars().take_while(|one| matches!(one, ' ' | '\t')).collect()
    }
}

impl Style {
    fn detect(body: &str, root: Option<&Object>) -> Self {
        let newline = match body.find(['\n', '\r']) {
            Some(at) if body[at..].starts_with("\r\n") => "\r\n",
            Some(at) if body[at..].starts_with('\r') => "\r",
            _ => "\n",
        };
        let first = root.and_then(|root| root.properties.first());
        let step = first.and_then(|first| {
            let line = body[..first.start()].rfind(['\n', '\r'])? + 1;
            let space = &body[line..first.start()];
            (!space.is_empty() && space.chars().all(|one| matches!(one, ' ' | '\t'))).then(|| space.to_owned())
        });
        // A root that is itself indented would double each step.
        let outer = root.map_or(0, |root| {
            let line = body[..root.start()].rfind(['\n', '\r']).map_or(0, |newline| newline + 1);
            root.start() - line
        });
        let step = step.filter(|step| outer == 0 || step.len() < 2 * outer).unwrap_or_else(|| "  ".into());
        let tight = first.is_some_and(|first| {
            let value = first.value.start();
            body[first.start()..value].ends_with(':')
        });
        let one_line = first.is_some() && !has_newline(body.trim());
        let padded = root.is_some_and(|root| body[root.start() + 1..].starts_with(' ')) && one_line;
        let space = if tight { "" } else { " " };
        Self { newline, step, colon: space, comma: space, pad: if padded { " " } else { "" }, one_line }
    }
}

/// Parses the settings with a second, strict reader, from a copy without comments and superfluous commas.
fn plain_value(body: &str, comments: &[Comment], trailing: &[usize]) -> Result<Value, SettingsError> {
    let mut plain = body.as_bytes().to_vec();
    for comment in comments {
        // Agents do not agree on whether a bare carriage return ends a comment.
        if comment.rest_of_line
            && body[comment.at.end..].starts_with('\r')
            && !body[comment.at.end..].starts_with("\r\n")
        {
            let message = "a comment ends with a bare carriage return".to_owned();
            return Err(SettingsError::Syntax { line: line_number(body, comment.at.end), column: 1, message });
        }
        plain[comment.at.clone()].fill(b' ');
    }
    trailing.iter().for_each(|comma| plain[*comma] = b' ');
    if plain.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_slice(&plain).map_err(|reason| {
        let text = reason.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
        SettingsError::Syntax { line: reason.line(), column: reason.column().max(1), message }
    })
}

fn kind(node: &Node) -> &'static str {
    match node {
        Node::Object(_) => "an object",
        Node::Array(_) => "a list",
        Node::StringLit(_) => "a text",
        Node::NumberLit(_) => "a number",
        Node::BooleanLit(_) => "true or false",
        Node::NullKeyword(_) => "null",
    }
}

fn has_newline(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

fn line_number(text: &str, at: usize) -> usize {
    let before = &text[..at.min(text.len())];
    let newlines = before.matches('\n').count();
    // Files of very old editors end their lines with a carriage return alone.
    if newlines > 0 { newlines + 1 } else { before.matches('\r').count() + 1 }
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
