//! The context of a prompt in the UI protocol (`ui_context`, `meta`), passed to the agent. Pure.
//!
//! The context is added to the prompt's first block, in `_meta.plexus`, so that a runtime of that protocol gets it unchanged. For other runtimes,
//! the files that it names become `resource_link` blocks, which every agent accepts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use plexus_protocol::object;

/// Maximum size of selected text that is passed on, in bytes.
const SELECTED_MAX: usize = 64 << 10;

/// The context of a prompt.
#[derive(Default, Serialize)]
pub(super) struct PromptContext<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ui_context: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a RawValue>,
    #[serde(skip)]
    links: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Snapshot {
    cwd: Option<String>,
    workspace_root: Option<String>,
    #[serde(default, deserialize_with = "object::optional")]
    active_file: Option<File>,
    #[serde(default, deserialize_with = "object::optional")]
    selection: Option<Selection>,
}

#[derive(Deserialize)]
struct File {
    path: String,
}

#[derive(Deserialize)]
struct Selection {
    path: String,
    #[serde(default, deserialize_with = "object::optional")]
    range: Option<Range>,
    selected_text: Option<String>,
}

#[derive(Deserialize)]
struct Range {
    start: At,
    end: At,
}

#[derive(Deserialize)]
struct At {
    line: u64,
}

impl<'a> PromptContext<'a> {
    /// Reads a client's `ui_context` and `meta`.
    ///
    /// # Errors
    /// The values do not have the protocol's shape; the error is a text for users.
    pub(super) fn read(ui_context: Option<&'a RawValue>, meta: Option<&'a RawValue>) -> Result<Self, String> {
        let given = |raw: &&RawValue| raw.get() != "null";
        let (ui_context, meta) = (ui_context.filter(given), meta.filter(given));
        if meta.is_some_and(|meta| !meta.get().starts_with('{')) {
            return Err("`meta` must be an object".into());
        }
        let mut around = Self { ui_context, meta, extra: None, links: Vec::new() };
        if let Some(raw) = ui_context {
            let context: Snapshot = object::from_str(raw.get()).map_err(|error| format!("`ui_context`: {error}"))?;
            around.links = context.links();
        }
        Ok(around)
    }

    /// Adds further members of `run.start`.
    pub(super) fn with_extra(self, extra: Option<&'a RawValue>) -> Self {
        Self { extra: extra.filter(|extra| extra.get().starts_with('{')), ..self }
    }

    /// Adds the context to a prompt.
    pub(super) fn prepend_to(self, mut content: Vec<Box<RawValue>>) -> Vec<Box<RawValue>> {
        if self.ui_context.is_none() && self.meta.is_none() && self.extra.is_none() {
            return content;
        }
        #[derive(Deserialize)]
        struct Meta<'a> {
            #[serde(rename = "_meta", borrow)]
            meta: Option<&'a RawValue>,
        }
        let bare = |block: &RawValue| matches!(object::from_str(block.get()), Ok(Meta { meta: None }));
        if let Some(block) = content.iter_mut().find(|block| bare(block))
            && let Ok(around) = serde_json::to_string(&self)
            && let Some(open) = block.get().trim_end().strip_suffix('}')
            && let Ok(whole) = RawValue::from_string(format!(r#"{open},"_meta":{{"plexus":{around}}}}}"#))
        {
            *block = whole;
        }
        content.extend(self.links);
        content
    }
}

impl Snapshot {
    /// Returns the files that the context names, the selection first.
    fn links(&self) -> Vec<Box<RawValue>> {
        let mut links = Vec::new();
        if let Some(Selection { path, range, selected_text }) = &self.selection {
            let lines = range.as_ref().map(|range| format!("#L{}:{}", range.start.line + 1, range.end.line + 1));
            let text = selected_text.as_deref().map(|text| &text[..text.floor_char_boundary(SELECTED_MAX)]);
            links.extend(self.link(path, lines.as_deref().unwrap_or_default(), text));
        }
        if let Some(File { path }) = &self.active_file
            && self.selection.as_ref().is_none_or(|selection| selection.path != *path)
        {
            links.extend(self.link(path, "", None));
        }
        links
    }

    fn link(&self, path: &str, lines: &str, text: Option<&str>) -> Option<Box<RawValue>> {
        let root = self.workspace_root.as_ref().or(self.cwd.as_ref()).filter(|root| root.starts_with('/'));
        let uri = match root {
            _ if path.starts_with('/') => format!("file://{path}{lines}"),
            Some(root) => format!("file://{}/{path}{lines}", root.trim_end_matches('/')),
            None => format!("{path}{lines}"),
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut link = json!({
            "type": "resource_link", "uri": uri, "name": name, "_meta": { "plexus": { "of": "ui_context" } },
        });
        if let Some(text) = text {
            link["description"] = text.into();
        }
        to_raw_value(&link).ok()
    }
}

/// Returns the params of a forwarded call, without the gateway's ids of session and run, since the runtime has its own.
pub(super) fn without_gateway_ids(params: &RawValue) -> Box<RawValue> {
    let Ok(Members(members)) = serde_json::from_str(params.get()) else { return params.to_owned() };
    let is_gateway_id = |name: &str, value: &RawValue| {
        let text = || serde_json::from_str::<Cow<'_, str>>(value.get()).unwrap_or_default();
        name == "session_id" || name == "run_id" && text().starts_with("r_")
    };
    if !members.iter().any(|(name, value)| is_gateway_id(name, value)) {
        return params.to_owned();
    }
    let rest = members.iter().filter(|(name, value)| !is_gateway_id(name, value));
    let rest: Vec<String> = rest.map(|(name, value)| format!("{}:{}", json!(name), value.get())).collect();
    RawValue::from_string(format!("{{{}}}", rest.join(","))).unwrap_or_else(|_| params.to_owned())
}

/// The members of an object as raw text, in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use plexus_protocol::text_block;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.into()).unwrap()
    }

    #[test]
    fn context_travels_with_the_prompt_and_its_files_are_links() {
        let context = raw(
            r#"{"workspace_root":"/w/","active_file":{"path":"src/a.rs","language_id":"rust"},"selection":{"path":"/x/b.rs",
            "range":{"start":{"line":4,"column":0},"end":{"line":6,"column":2}},"selected_text":"fn b"},"extensions":{"n":1.50}}"#,
        );
        let meta = raw(r#"{"trace":"t"}"#);
        let content = PromptContext::read(Some(&context), Some(&meta)).unwrap().prepend_to(vec![text_block("hi")]);
        let blocks: Vec<Value> = content.iter().map(|block| serde_json::from_str(block.get()).unwrap()).collect();
        assert_eq!(blocks[0]["text"], "hi");
        assert!(content[0].get().contains(context.get()) && content[0].get().contains(meta.get()), "as it was said");
        let of = |block: &Value| (block["type"].clone(), block["uri"].clone(), block["description"].clone());
        assert_eq!(of(&blocks[1]), (json!("resource_link"), json!("file:///x/b.rs#L5:7"), json!("fn b")));
        assert_eq!(of(&blocks[2]), (json!("resource_link"), json!("file:///w/src/a.rs"), json!(null)));
        assert_eq!(blocks.len(), 3);
        assert_eq!(
            PromptContext::read(None, None).unwrap().prepend_to(vec![text_block("hi")])[0].get(),
            text_block("hi").get()
        );
        for bad in ["7", "[]", r#"{"selection":{"path":1}}"#, r#"{"active_file":"x"}"#] {
            assert!(PromptContext::read(Some(&raw(bad)), None).is_err(), "{bad}");
        }
        assert!(PromptContext::read(None, Some(&raw("[]"))).is_err());
    }

    #[test]
    fn forwarded_call_names_no_session_or_run_of_the_gateway() {
        for (params, passed) in [
            (r#"{"session_id":"s_1","a":1.50,"run_id":"r_7"}"#, r#"{"a":1.50}"#),
            (r#"{ "session_id": null }"#, "{}"),
            (r#"{"run_id":"theirs","a" : 1}"#, r#"{"run_id":"theirs","a" : 1}"#),
            (r#"{"b":{"session_id":"s_1"}}"#, r#"{"b":{"session_id":"s_1"}}"#),
        ] {
            assert_eq!(without_gateway_ids(&raw(params)).get(), passed);
        }
    }
}
