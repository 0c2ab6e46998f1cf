//! The form of an elicitation (`elicitation/create`) as a request to the user, and the answer as the content for the
//! agent. Pure, and used by every dialect whose agent sends such forms.
//!
//! A form with one field is a choice or a text prompt; one with several fields is a prompt for the text of a JSON
//! object. An answer that does not fit the form is not sent: the request is opened again with the reason. Schema:
//! <https://agentclientprotocol.com/protocol/v1/elicitation>.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, Fields, object, pretty};
use super::super::{AgentRequest, ExpectedAnswer, RequestKey, RequestSubject};
use plexus_protocol::{
    AnswerBounds, Answers, Choice, Decision, Item, Number, Offer, Question, QuestionOption, RequestType,
};

/// The content of an elicitation.
#[derive(Clone, Serialize, Deserialize)]
pub enum ElicitationForm {
    /// A confirmation: a form without fields.
    #[serde(rename = "Yes")]
    Confirmation,
    /// A page to open.
    Page {
        /// The id by which the agent reports its completion.
        id: Option<String>,
    },
    /// A form to fill in.
    Form(Vec<Field>),
}

/// A field of a form.
#[derive(Clone, Serialize, Deserialize)]
pub struct Field {
    name: String,
    title: Option<String>,
    description: Option<String>,
    required: bool,
    default: Option<Value>,
    #[serde(rename = "sort")]
    field_type: FieldType,
}

#[derive(Clone, Serialize, Deserialize)]
enum FieldType {
    Text {
        least: Option<u64>,
        most: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
    },
    Number {
        whole: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    Truth,
    One(Vec<Item>),
    Several {
        items: Vec<Item>,
        least: Option<u64>,
        most: Option<u64>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Elicitation<'a> {
    mode: Option<String>,
    message: Option<String>,
    url: Option<String>,
    elicitation_id: Option<String>,
    pub(super) session_id: Option<String>,
    #[serde(borrow)]
    pub(super) request_id: Option<&'a RawValue>,
    pub(super) tool_call_id: Option<String>,
    requested_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Schema<'a> {
    #[serde(borrow)]
    properties: Option<Fields<'a>>,
    required: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Property<'a> {
    #[serde(rename = "type")]
    field_type: String,
    title: Option<String>,
    description: Option<String>,
    default: Option<Value>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    pattern: Option<String>,
    format: Option<String>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    #[serde(rename = "enum")]
    values: Option<Vec<String>>,
    one_of: Option<Vec<TitledOption>>,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Values {
    #[serde(rename = "enum")]
    values: Option<Vec<String>>,
    any_of: Option<Vec<TitledOption>>,
}

#[derive(Deserialize)]
struct TitledOption {
    #[serde(rename = "const")]
    value: String,
    title: Option<String>,
    description: Option<String>,
}

/// Returns the values to choose from; `None` if there are none, or if there are duplicates.
fn items(values: Option<Vec<String>>, titled: Option<Vec<TitledOption>>) -> Option<Vec<Item>> {
    let plain = |value: String| Item { label: value.clone(), id: value, detail: None };
    let named = |t: TitledOption| Item {
        label: t.title.unwrap_or_else(|| t.value.clone()),
        id: t.value,
        detail: t.description,
    };
    let items: Vec<Item> = match (values, titled) {
        (_, Some(titled)) => titled.into_iter().map(named).collect(),
        (Some(values), None) => values.into_iter().map(plain).collect(),
        (None, None) => return None,
    };
    let has_duplicates = items.iter().enumerate().any(|(n, item)| items[..n].iter().any(|other| other.id == item.id));
    (!items.is_empty() && !has_duplicates).then_some(items)
}

/// Reads the fields of a form; `None` if a required field is missing or cannot be shown.
fn form(schema: &RawValue) -> Option<Vec<Field>> {
    let schema: Schema<'_> = object(schema)?;
    let (properties, required) = (schema.properties.map_or_else(Vec::new, |fields| fields.0), schema.required);
    let required = required.unwrap_or_default();
    if required.iter().any(|name| !properties.iter().any(|(key, _)| key == name)) {
        return None;
    }
    let mut fields: Vec<Field> = Vec::with_capacity(properties.len());
    for (name, property) in properties {
        let required = required.iter().any(|key| *key == name);
        match field(name.into_owned(), property, required) {
            Some(field) if fields.iter().any(|other| other.name == field.name) => return None,
            Some(field) => fields.push(field),
            // An optional field can be left out.
            None if !required => {}
            None => return None,
        }
    }
    Some(fields)
}

fn field(name: String, property: &RawValue, required: bool) -> Option<Field> {
    let p: Property<'_> = object(property)?;
    let field_type = match p.field_type.as_str() {
        "string" if p.values.is_some() || p.one_of.is_some() => FieldType::One(items(p.values, p.one_of)?),
        "string" => FieldType::Text { least: p.min_length, most: p.max_length, pattern: p.pattern, format: p.format },
        "number" | "integer" => {
            FieldType::Number { whole: p.field_type == "integer", least: p.minimum, most: p.maximum }
        }
        "boolean" => FieldType::Truth,
        "array" => {
            let Values { values, any_of } = object(p.items?)?;
            FieldType::Several { items: items(values, any_of)?, least: p.min_items, most: p.max_items }
        }
        _ => return None,
    };
    Some(Field { name, title: p.title, description: p.description, required, default: p.default, field_type })
}

impl Field {
    fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Returns a description of the values that fit the field.
    fn expected_values(&self) -> String {
        fn within<T: std::fmt::Display>(least: Option<T>, most: Option<T>) -> String {
            match (least, most) {
                (Some(least), Some(most)) => format!(" from {least} to {most}"),
                (Some(least), None) => format!(" from {least}"),
                (None, Some(most)) => format!(" up to {most}"),
                (None, None) => String::new(),
            }
        }
        let list = |items: &[Item]| {
            items.iter().map(|item| Value::from(item.id.as_str()).to_string()).collect::<Vec<_>>().join(", ")
        };
        match &self.field_type {
            FieldType::Text { least, most, pattern, format } => {
                let length = within(*least, *most);
                let length = if length.is_empty() { length } else { format!(", its length{length}") };
                let pattern = pattern.as_ref().map(|pattern| format!(", matching {pattern}")).unwrap_or_default();
                let form = format.as_ref().map(|form| format!(", of the form {form}")).unwrap_or_default();
                format!("text{length}{pattern}{form}")
            }
            FieldType::Number { whole, least, most } => {
                format!("{}{}", if *whole { "a whole number" } else { "a number" }, within(*least, *most))
            }
            FieldType::Truth => "true or false".into(),
            FieldType::One(items) => format!("one of {}", list(items)),
            FieldType::Several { items, least, most } => {
                format!("a list of {}, its length{}", list(items), within(*least, *most))
            }
        }
    }

    /// Returns the bounds of an answer.
    fn bounds(&self) -> AnswerBounds {
        let number = |least: Option<u64>| least.map(|n| n as f64);
        match &self.field_type {
            FieldType::Truth | FieldType::One(_) => AnswerBounds::default(),
            FieldType::Several { least, most, .. } => {
                AnswerBounds { least: number(*least), most: number(*most), ..AnswerBounds::default() }
            }
            FieldType::Text { least, most, pattern, format } => AnswerBounds {
                number: None,
                least: number(*least),
                most: number(*most),
                pattern: pattern.clone(),
                format: format.clone(),
            },
            FieldType::Number { whole, least, most } => {
                let number = if *whole { Number::Integer } else { Number::Number };
                AnswerBounds { number: Some(number), least: *least, most: *most, ..AnswerBounds::default() }
            }
        }
    }

    fn fits(&self, value: &Value) -> bool {
        let among = |items: &[Item], value: &Value| items.iter().any(|item| value.as_str() == Some(&item.id));
        match &self.field_type {
            FieldType::Text { .. } => value.as_str().is_some_and(|text| self.bounds().check(text).is_ok()),
            FieldType::Number { whole, least, most } => value.as_f64().is_some_and(|number| {
                (!whole || value.is_i64() || value.is_u64())
                    && least.is_none_or(|least| number >= least)
                    && most.is_none_or(|most| number <= most)
            }),
            FieldType::Truth => value.is_boolean(),
            FieldType::One(items) => among(items, value),
            FieldType::Several { items, .. } => value.as_array().is_some_and(|values| {
                let has_duplicates = values.iter().enumerate().any(|(n, value)| values[..n].contains(value));
                let is_count_valid = self.bounds().count(values.len() as f64).is_ok();
                !has_duplicates && is_count_valid && values.iter().all(|value| among(items, value))
            }),
        }
    }
}

/// The suffix of the field with free text beside a choice.
const FREE_TEXT: &str = "_custom";

/// Returns the fields as questions: a choice and the field with free text beside it are one question.
fn questions(fields: &[Field], message: Option<&str>) -> Vec<Question> {
    let chooses = |field: &Field| matches!(field.field_type, FieldType::One(_) | FieldType::Several { .. });
    let paired_choice = |field: &Field| {
        let name = field.name.strip_suffix(FREE_TEXT)?;
        let text = matches!(field.field_type, FieldType::Text { .. });
        fields.iter().find(|other| text && other.name == name && chooses(other))
    };
    let main_fields: Vec<&Field> = fields.iter().filter(|field| paired_choice(field).is_none()).collect();
    let option = |item: &Item| QuestionOption {
        id: item.id.clone(),
        label: item.label.clone(),
        description: item.detail.clone(),
    };
    let boolean_option =
        |id: &str, label: &str| QuestionOption { id: id.into(), label: label.into(), description: None };
    let only = main_fields.len() == 1;
    main_fields
        .into_iter()
        .map(|field| {
            let paired =
                fields.iter().any(|other| paired_choice(other).is_some_and(|choice| choice.name == field.name));
            let message_text = field.description.as_deref().or(message.filter(|_| only));
            let options = match &field.field_type {
                FieldType::Truth => vec![boolean_option("true", "Yes"), boolean_option("false", "No")],
                FieldType::One(items) | FieldType::Several { items, .. } => items.iter().map(option).collect(),
                FieldType::Text { .. } | FieldType::Number { .. } => Vec::new(),
            };
            Question {
                id: field.name.clone(),
                header: message_text.and(Some(field.label().to_owned())),
                text: message_text.unwrap_or(field.label()).to_owned(),
                multiple: matches!(field.field_type, FieldType::Several { .. }),
                free_text: paired || options.is_empty(),
                // A choice or its free text is needed: without either the agent would ask again.
                optional: !field.required && !paired,
                options,
                fits: field.bounds(),
                own: paired.then(|| format!("{}{FREE_TEXT}", field.name)),
                field: None,
            }
        })
        .collect()
}

/// Returns the content for answers that were already checked against the questions.
fn answered(fields: &[Field], answers: &Answers) -> Result<serde_json::Map<String, Value>, String> {
    let mut content = serde_json::Map::new();
    for (name, message_text) in answers {
        let Some(field) = fields.iter().find(|field| field.name == *name) else {
            return Err(format!("there is no field {name:?}"));
        };
        let offered = |answer: &String| match &field.field_type {
            FieldType::One(items) | FieldType::Several { items, .. } => items.iter().any(|item| item.id == *answer),
            _ => true,
        };
        let (chosen, own): (Vec<&String>, Vec<&String>) = message_text.iter().partition(|answer| offered(answer));
        if let Some(answer) = own.first() {
            content.insert(format!("{name}{FREE_TEXT}"), answer.as_str().into());
        }
        let Some(first) = chosen.first() else { continue };
        let value = match &field.field_type {
            FieldType::Truth => Value::Bool(first.as_str() == "true"),
            FieldType::Number { .. } => serde_json::from_str(first.trim()).unwrap_or(Value::Null),
            FieldType::Several { .. } => chosen.iter().map(|answer| answer.as_str()).collect::<Vec<_>>().into(),
            FieldType::Text { .. } | FieldType::One(_) => first.as_str().into(),
        };
        if !field.fits(&value) {
            return Err(format!("{} must be {}", field.label(), field.expected_values()));
        }
        content.insert(name.clone(), value);
    }
    match fields.iter().find(|field| field.required && !content.contains_key(&field.name)) {
        Some(field) => Err(format!("{} is missing", field.name)),
        None => Ok(content),
    }
}

/// Returns the content that a decision gives to a form, or `None` if it was cancelled.
///
/// # Errors
/// Returns the reason why the answer does not fit.
pub fn filled(fields: &[Field], decision: &Decision) -> Result<Option<serde_json::Map<String, Value>>, String> {
    let one = |field: &Field, value: Value| match field.fits(&value) {
        true => Ok(Some([(field.name.clone(), value)].into_iter().collect())),
        false => Err(format!("{} must be {}", field.label(), field.expected_values())),
    };
    match (fields, decision) {
        ([field], Decision::Ids(ids)) if !ids.is_empty() => match &field.field_type {
            FieldType::Truth => one(field, Value::Bool(ids[0] == "true")),
            FieldType::Several { .. } => one(field, ids.clone().into()),
            _ => one(field, ids[0].clone().into()),
        },
        ([field], Decision::Value(Some(text))) => match &field.field_type {
            // Empty text omits the field where empty text does not fit.
            FieldType::Number { .. } | FieldType::Text { .. }
                if !field.required && text.trim().is_empty() && !field.fits(&text.as_str().into()) =>
            {
                Ok(Some(serde_json::Map::new()))
            }
            FieldType::Number { .. } => one(field, serde_json::from_str(text.trim()).unwrap_or(Value::Null)),
            _ => one(field, text.clone().into()),
        },
        (fields, Decision::Answers(answers)) if !answers.is_empty() => answered(fields, answers).map(Some),
        (fields, Decision::Value(Some(text))) => {
            let Ok(Value::Object(mut content)) = serde_json::from_str(text) else {
                return Err("that is no JSON object".into());
            };
            content.retain(|_, value| !value.is_null());
            if let Some(name) = content.keys().find(|name| !fields.iter().any(|field| field.name == **name)) {
                return Err(format!("there is no field {name:?}"));
            }
            for field in fields {
                match content.get(&field.name) {
                    Some(value) if !field.fits(value) => {
                        return Err(format!("{} must be {}", field.name, field.expected_values()));
                    }
                    None if field.required => return Err(format!("{} is missing", field.name)),
                    _ => {}
                }
            }
            Ok(Some(content))
        }
        _ => Ok(None),
    }
}

/// Returns the form that the `params` of an elicitation describe; `None` if it cannot be shown.
pub fn parse_form(params: &RawValue) -> Option<ElicitationForm> {
    let elicitation: Elicitation<'_> = object(params)?;
    match (elicitation.mode.as_deref(), elicitation.requested_schema, elicitation.url) {
        (Some("url"), _, Some(_)) => Some(ElicitationForm::Page { id: elicitation.elicitation_id }),
        (Some("form") | None, Some(schema), _) => form(schema).map(|fields| {
            if fields.is_empty() { ElicitationForm::Confirmation } else { ElicitationForm::Form(fields) }
        }),
        _ => None,
    }
}

/// Makes the request again, after an answer that does not fit, with the reason.
pub fn ask_again(
    key: &RequestKey,
    form: &ElicitationForm,
    params: &RawValue,
    reason: &str,
    decision: &Decision,
) -> AgentRequest {
    let mut ask = ask(key, form, params, Bytes::copy_from_slice(params.get().as_bytes()));
    ask.title = format!("{}. Once more: {}", reason, ask.title);
    if let Decision::Value(Some(text)) = decision {
        ask.default_value = Some(text.clone());
    }
    ask
}

/// Makes the request to the user.
pub fn ask(key: &RequestKey, form: &ElicitationForm, params: &RawValue, native: Bytes) -> AgentRequest {
    let read: Option<Elicitation<'_>> = object(params);
    let (message, url, schema) =
        read.map_or((None, None, None), |read| (read.message, read.url, read.requested_schema));
    let message = message.filter(|text| !text.is_empty());
    let message_text = message.clone().unwrap_or_default();
    let mut ask =
        AgentRequest::new(key.clone(), RequestType::Elicitation, "The agent asks", jsonrpc::owned(params), native);
    let describe = |field: &Field| {
        let description = field.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
        format!("{}{description}", field.label())
    };
    let offer = |id: &str, label: &str, kind| Offer { id: id.into(), label: label.into(), kind, for_session: false };
    let text = match form {
        ElicitationForm::Confirmation => pretty(schema.map_or("{}", RawValue::get)),
        ElicitationForm::Page { .. } => url.unwrap_or_default(),
        ElicitationForm::Form(fields) => match fields.as_slice() {
            [field] => describe(field),
            fields => {
                let line = |field: &Field| {
                    let must = if field.required { "" } else { ", or left out" };
                    format!("{:?} ({}{must}) {}", field.name, field.expected_values(), describe(field))
                };
                let lines: Vec<String> = fields.iter().map(line).collect();
                format!("A JSON object with\n{}", lines.join("\n"))
            }
        },
    };
    let full_text = format!("{message_text}\n{text}").trim().to_owned();
    ask.subject = match form {
        ElicitationForm::Form(fields) if fields.len() > 1 => {
            RequestSubject::Questions { questions: questions(fields, message.as_deref()), text: full_text }
        }
        _ => RequestSubject::Text(full_text),
    };
    ask.message = message;
    match form {
        ElicitationForm::Form(fields) => match fields.as_slice() {
            [field] => {
                let boolean_option = |id: &str, label: &str| Item { id: id.into(), label: label.into(), detail: None };
                (ask.kind, ask.items, ask.multi) = match &field.field_type {
                    FieldType::Truth => {
                        (RequestType::Pick, vec![boolean_option("true", "Yes"), boolean_option("false", "No")], false)
                    }
                    FieldType::One(items) => (RequestType::Pick, items.clone(), false),
                    FieldType::Several { items, .. } => (RequestType::Pick, items.clone(), true),
                    FieldType::Text { .. } | FieldType::Number { .. } => (RequestType::Prompt, Vec::new(), false),
                };
                ask.expects =
                    ExpectedAnswer { field: Some(field.name.clone()), optional: !field.required, fits: field.bounds() };
                ask.title = field.label().to_owned();
                let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                ask.default_value = field.default.as_ref().filter(|_| ask.kind == RequestType::Prompt).map(plain);
            }
            fields => {
                let start = |field: &Field| (field.name.clone(), field.default.clone().unwrap_or(Value::Null));
                let start: serde_json::Map<_, _> = fields.iter().map(start).collect();
                (ask.kind, ask.multiline) = (RequestType::Prompt, true);
                ask.default_value = serde_json::to_string_pretty(&start).ok();
            }
        },
        ElicitationForm::Confirmation | ElicitationForm::Page { .. } => {
            ask.options = vec![
                offer("accept", "Accept", Choice::AllowOnce),
                offer("decline", "Decline", Choice::RejectOnce),
                offer("cancel", "Cancel", Choice::Other),
            ];
        }
    }
    ask
}
