//! Changes of a surface in the form in which they are sent and logged, and their messages of A2UI.

use plexus_protocol::Timestamp;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::model::DataOp;
use super::pointer::Pointer;

/// The version of A2UI that is sent.
const VERSION: &str = "v0.9";

/// A question that is answered on a surface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The request that the answer resolves.
    pub request_id: String,
    /// The events that answer it.
    pub submit: Vec<String>,
}

/// A change of a surface: the body of `surface_updated`. Without `base` it is a whole surface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The surface.
    pub surface: String,
    /// The revision after the change.
    pub rev: u64,
    /// The revision that the change applies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<u64>,
    /// The title, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The pinned state, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// The time of the change.
    #[serde(default)]
    pub at: Timestamp,
    /// The question on the surface, if that changed; `Some(None)` removes it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub ask: Option<Option<Ask>>,
    /// `true` if the surface was closed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// The messages that changed it.
    pub(crate) messages: Vec<Message>,
}

impl Change {
    /// Returns the approximate size of the change as JSON, in bytes.
    pub fn bytes(&self) -> usize {
        self.messages.iter().map(Message::bytes).sum::<usize>() + 128
    }
}

/// Deserializes a value that is present, even if it is null.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// A message of A2UI.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawMessage")]
pub(crate) enum Message {
    Create(Create),
    Components { surface: String, components: Vec<Map<String, Value>> },
    Data { surface: String, path: Pointer, op: DataOp },
    Delete { surface: String },
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Create {
    #[serde(rename = "surfaceId")]
    pub(crate) surface: String,
    #[serde(rename = "catalogId")]
    pub(crate) catalog: String,
    pub(crate) theme: Option<Map<String, Value>>,
    #[serde(default)]
    pub(crate) send_data_model: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawMessage {
    version: String,
    create_surface: Option<Create>,
    update_components: Option<RawComponents>,
    update_data_model: Option<RawData>,
    delete_surface: Option<RawDelete>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawComponents {
    surface_id: String,
    components: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawData {
    surface_id: String,
    path: Option<String>,
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
    append: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawDelete {
    surface_id: String,
}

impl TryFrom<RawMessage> for Message {
    type Error = String;

    fn try_from(raw: RawMessage) -> Result<Self, String> {
        if raw.version != VERSION && raw.version != "v0.9.1" {
            return Err("version: v0.9 and v0.9.1 are known".to_owned());
        }
        match (raw.create_surface, raw.update_components, raw.update_data_model, raw.delete_surface) {
            (Some(create), None, None, None) => Ok(Self::Create(create)),
            (None, Some(raw), None, None) => {
                Ok(Self::Components { surface: raw.surface_id, components: raw.components })
            }
            (None, None, Some(raw), None) => {
                let path = Pointer::absolute(raw.path.as_deref().unwrap_or_default())?;
                let op = data_op(raw.value, raw.append)?;
                Ok(Self::Data { surface: raw.surface_id, path, op })
            }
            (None, None, None, Some(raw)) => Ok(Self::Delete { surface: raw.surface_id }),
            (None, None, None, None) => {
                Err("one of createSurface, updateComponents, updateDataModel, deleteSurface is needed".to_owned())
            }
            _ => Err("a message has one of createSurface, updateComponents, updateDataModel, deleteSurface".to_owned()),
        }
    }
}

/// Returns the operation of an item of `data`.
pub(crate) fn data_op(value: Option<Value>, append: Option<Vec<Value>>) -> Result<DataOp, String> {
    match (value, append) {
        (Some(value), None) => Ok(DataOp::Set(value)),
        (None, Some(items)) => Ok(DataOp::Append(items)),
        (None, None) => Ok(DataOp::Remove),
        (Some(_), Some(_)) => Err("give value or append, not both".to_owned()),
    }
}

impl Message {
    pub(crate) fn surface(&self) -> &str {
        match self {
            Self::Create(create) => &create.surface,
            Self::Components { surface, .. } | Self::Data { surface, .. } | Self::Delete { surface } => surface,
        }
    }

    fn bytes(&self) -> usize {
        use super::size::Size;
        match self {
            Self::Create(_) | Self::Delete { .. } => 128,
            Self::Components { components, .. } => components.iter().map(|c| Size::measure_object(c).bytes + 1).sum(),
            Self::Data { op: DataOp::Set(value), .. } => Size::measure(value).bytes + 64,
            Self::Data { op: DataOp::Append(items), .. } => {
                items.iter().fold(Size::empty_array(), Size::with_item).bytes + 64
            }
            Self::Data { op: DataOp::Remove, .. } => 64,
        }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Create(create) => MessageRef::Create(create).serialize(serializer),
            Self::Components { surface, components } => {
                let components: Vec<&Map<String, Value>> = components.iter().collect();
                MessageRef::Components(surface, &components).serialize(serializer)
            }
            Self::Data { surface, path, op } => match op {
                DataOp::Set(value) => MessageRef::Set(surface, path, value).serialize(serializer),
                DataOp::Append(items) => MessageRef::Append(surface, path, items).serialize(serializer),
                DataOp::Remove => MessageRef::Remove(surface, path).serialize(serializer),
            },
            Self::Delete { surface } => MessageRef::Delete(surface).serialize(serializer),
        }
    }
}

/// A message that is written without copying its values.
pub(crate) enum MessageRef<'a> {
    Create(&'a Create),
    Components(&'a str, &'a [&'a Map<String, Value>]),
    Set(&'a str, &'a Pointer, &'a Value),
    Append(&'a str, &'a Pointer, &'a [Value]),
    Remove(&'a str, &'a Pointer),
    Delete(&'a str),
}

impl Serialize for MessageRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("version", VERSION)?;
        let name = match self {
            Self::Create(_) => "createSurface",
            Self::Components(..) => "updateComponents",
            Self::Set(..) | Self::Append(..) | Self::Remove(..) => "updateDataModel",
            Self::Delete(_) => "deleteSurface",
        };
        map.serialize_entry(name, &Body(self))?;
        map.end()
    }
}

/// The body of a message.
struct Body<'a>(&'a MessageRef<'a>);

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let surface = match self.0 {
            MessageRef::Create(create) => &create.surface,
            MessageRef::Components(surface, _)
            | MessageRef::Set(surface, ..)
            | MessageRef::Append(surface, ..)
            | MessageRef::Remove(surface, _)
            | MessageRef::Delete(surface) => *surface,
        };
        map.serialize_entry("surfaceId", surface)?;
        match self.0 {
            MessageRef::Create(create) => {
                map.serialize_entry("catalogId", &create.catalog)?;
                if let Some(theme) = &create.theme {
                    map.serialize_entry("theme", &Members(theme))?;
                }
                if create.send_data_model {
                    map.serialize_entry("sendDataModel", &true)?;
                }
            }
            MessageRef::Components(_, components) => map.serialize_entry("components", &Components(components))?,
            MessageRef::Set(_, path, value) => {
                map.serialize_entry("path", &path.to_string())?;
                map.serialize_entry("value", &Canonical(value))?;
            }
            MessageRef::Append(_, path, items) => {
                map.serialize_entry("path", &path.to_string())?;
                map.serialize_entry("append", &Items(items))?;
            }
            MessageRef::Remove(_, path) => map.serialize_entry("path", &path.to_string())?,
            MessageRef::Delete(_) => {}
        }
        map.end()
    }
}

/// A JSON value with the members of its objects in the order of their names, whatever the order of the map is in this
/// build: equal states are written as equal bytes.
pub(crate) struct Canonical<'a>(pub(crate) &'a Value);

impl Serialize for Canonical<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => Items(items).serialize(serializer),
            Value::Object(members) => Members(members).serialize(serializer),
            plain => plain.serialize(serializer),
        }
    }
}

struct Items<'a>(&'a [Value]);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Canonical))
    }
}

/// The members of an object, in the order of their names.
pub(crate) struct Members<'a>(pub(crate) &'a Map<String, Value>);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members: Vec<(&String, &Value)> = self.0.iter().collect();
        members.sort_unstable_by_key(|(key, _)| *key);
        serializer.collect_map(members.into_iter().map(|(key, value)| (key, Canonical(value))))
    }
}

struct Components<'a>(&'a [&'a Map<String, Value>]);

impl Serialize for Components<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for component in self.0 {
            seq.serialize_element(&Members(component))?;
        }
        seq.end()
    }
}
