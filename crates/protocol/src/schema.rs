//! Schemas of the types whose JSON is written by hand; all other types derive [`ToSchema`].

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use super::{Capability, Cursor, Kind};

/// Any JSON value, unchanged from the agent.
#[derive(Clone, Copy, Debug)]
pub struct Json;

/// Any JSON object, unchanged from the agent.
#[derive(Clone, Copy, Debug)]
pub struct JsonObject;

/// An ACP content block, sent unchanged.
#[derive(ToSchema)]
pub struct ContentBlock {
    #[doc = concat!("The type of the block: `text`, `image`, `audio`, `resource_link` or `resource`.")]
    pub r#type: String,
}

impl PartialSchema for Json {
    fn schema() -> RefOr<Schema> {
        any(SchemaType::AnyValue, "Any JSON, as it came.")
    }
}

impl ToSchema for Json {}

impl PartialSchema for JsonObject {
    fn schema() -> RefOr<Schema> {
        any(Type::Object.into(), "Any JSON object, as it came.")
    }
}

impl ToSchema for JsonObject {}

fn any(schema_type: SchemaType, about: &str) -> RefOr<Schema> {
    let members = Some(AdditionalProperties::FreeForm(true));
    ObjectBuilder::new().schema_type(schema_type).additional_properties(members).description(Some(about)).into()
}

/// Returns the schema of a string with an enumerated set of values.
pub fn string_enum(all: impl IntoIterator<Item = &'static str>, about: &str) -> RefOr<Schema> {
    text().enum_values(Some(all)).description(Some(about)).into()
}

fn text() -> ObjectBuilder {
    Object::builder().schema_type(Type::String)
}

impl PartialSchema for Kind {
    fn schema() -> RefOr<Schema> {
        string_enum(Self::ALL.iter().map(|kind| kind.as_str()), "What sort of event.")
    }
}

impl ToSchema for Kind {}

impl PartialSchema for Capability {
    fn schema() -> RefOr<Schema> {
        string_enum(Self::ALL.iter().map(|one| one.as_str()), "One thing that some runtimes can do.")
    }
}

impl ToSchema for Capability {}

impl PartialSchema for Cursor {
    fn schema() -> RefOr<Schema> {
        let about = "A place in the log: keep it, and give it back as it is.";
        // There will never be more events than nineteen digits can count.
        text().pattern(Some("^[A-Za-z0-9]{1,32}:[0-9]{1,19}$")).description(Some(about)).into()
    }
}

impl ToSchema for Cursor {}
