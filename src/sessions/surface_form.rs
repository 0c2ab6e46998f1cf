//! A surface's form as the questions of a request, and the answers to them as a press on the surface. Pure.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::SessionError;
use plexus_dialects::{AgentRequest, RequestKey, RequestSubject};
use plexus_protocol::api::surfaces::SurfaceAction;
use plexus_protocol::{AnswerBounds, Answers, Number, Question, QuestionOption, RequestType};
use plexus_surfaces::{FieldKind, Form, FormButton, FormField, Surface, SurfaceError};

/// The id of the question which button to press.
const SUBMIT: &str = "submit";
/// Width of the surface's text in a request, in columns.
const COLUMNS: usize = 80;
/// The ids and labels of the answers to an input that is true or false.
const TRUTHS: [(&str, &str); 2] = [("true", "Yes"), ("false", "No")];

/// Returns those of the surface's buttons that answer.
///
/// # Errors
/// [`SurfaceError::Component`]: one is not a button with an event, or none is named.
pub(super) fn buttons(form: &Form, submit: &[String]) -> Result<Vec<FormButton>, SurfaceError> {
    let names = || form.buttons.iter().map(|button| button.component.as_str()).collect::<Vec<_>>().join(", ");
    let bad = |why: String| SurfaceError::Component { at: SUBMIT.to_owned(), reason: why };
    if submit.is_empty() {
        return Err(bad(format!("name the buttons that answer; the surface has: {}", names())));
    }
    let find = |id: &String| {
        let button = form.buttons.iter().find(|button| button.component == *id).cloned();
        button.ok_or_else(|| bad(format!("{id:?} is no button with an event; the surface has: {}", names())))
    };
    submit.iter().map(find).collect()
}

/// Makes the request for a question by a surface.
pub(super) fn request(surface: &Surface, form: &Form, buttons: &[FormButton], question: Option<&str>) -> AgentRequest {
    let mut questions: Vec<Question> = form.fields.iter().map(field_question).collect();
    // Also for a single button: without it, an answer could not express that no input was changed.
    questions.push(button_question(buttons, buttons.len() == 1 && !questions.is_empty()));
    let title = question.or(surface.title()).unwrap_or(surface.name()).to_owned();
    let message = question.and(surface.title()).map(str::to_owned);
    let text = surface.text(COLUMNS);
    let secret = form.fields.iter().any(|field| matches!(field.kind, FieldKind::Text { secret: true }));
    let params = json!({ "surface": surface.name(), "rev": surface.rev() });
    // The key is never sent to a runtime, and differs from the keys of every runtime.
    let key = RequestKey::unique(format!("surface {} {}", surface.name(), surface.rev()));
    AgentRequest {
        message,
        subject: RequestSubject::Questions { questions, text },
        secret,
        ..AgentRequest::new(
            key,
            RequestType::Prompt,
            title,
            serde_json::value::to_raw_value(&params).unwrap_or_else(|_| RawValue::NULL.to_owned()),
            bytes::Bytes::new(),
        )
    }
}

fn field_question(field: &FormField) -> Question {
    let option =
        |(id, label): &(String, String)| QuestionOption { id: id.clone(), label: label.clone(), description: None };
    let (options, multiple, fits) = match &field.kind {
        FieldKind::Text { .. } => (Vec::new(), false, AnswerBounds::default()),
        FieldKind::Truth => {
            let options = TRUTHS.map(|(id, label)| option(&(id.to_owned(), label.to_owned())));
            (options.to_vec(), false, AnswerBounds::default())
        }
        FieldKind::Number { min, max } => (
            Vec::new(),
            false,
            AnswerBounds { number: Some(Number::Number), least: *min, most: *max, ..AnswerBounds::default() },
        ),
        FieldKind::Choice { options, multiple } => {
            (options.iter().map(option).collect(), *multiple, AnswerBounds::default())
        }
    };
    Question {
        id: field.pointer.clone(),
        header: None,
        text: field.label.clone(),
        free_text: options.is_empty(),
        options,
        multiple,
        // The surface's own checks decide whether an input may stay as it is.
        optional: true,
        field: None,
        own: None,
        fits,
    }
}

fn button_question(buttons: &[FormButton], optional: bool) -> Question {
    let option = |button: &FormButton| QuestionOption {
        id: button.component.clone(),
        label: button.label.clone(),
        description: None,
    };
    Question {
        id: SUBMIT.to_owned(),
        header: None,
        text: "Answer".to_owned(),
        options: buttons.iter().map(option).collect(),
        multiple: false,
        free_text: false,
        optional,
        field: None,
        own: None,
        fits: AnswerBounds::default(),
    }
}

/// Returns the press that is equivalent to answers.
///
/// # Errors
/// [`SessionError::BadAnswer`].
pub(super) fn press(
    surface: &Surface,
    form: &Form,
    submit: &[String],
    answers: &Answers,
) -> Result<SurfaceAction, SessionError> {
    let bad = |message: String| SessionError::BadAnswer { code: "answer_unfit", message, field: None };
    let component = answers.get(SUBMIT).and_then(|chosen| chosen.first()).or(submit.first());
    let button = form.buttons.iter().find(|button| Some(&button.component) == component);
    let button = button.ok_or_else(|| bad("the surface has no such button any more".into()))?;
    let mut inputs = BTreeMap::new();
    for (pointer, texts) in answers.iter().filter(|(id, _)| *id != SUBMIT) {
        let field = form.fields.iter().find(|field| field.pointer == *pointer);
        let field = field.ok_or_else(|| bad(format!("the surface has no input {pointer} any more")))?;
        let first = texts.first().cloned().unwrap_or_default();
        let value = match &field.kind {
            FieldKind::Text { .. } => Value::String(first),
            FieldKind::Truth => Value::Bool(first == TRUTHS[0].0),
            FieldKind::Number { .. } => {
                first.parse::<f64>().map(Value::from).map_err(|_| bad(format!("{first:?} is no number")))?
            }
            FieldKind::Choice { .. } => json!(texts),
        };
        inputs.insert(pointer.clone(), value);
    }
    let (component, event) = (button.component.clone(), button.event.clone());
    Ok(SurfaceAction { rev: surface.rev(), component, event, inputs, instance: None, item: None })
}

/// Returns the answers that are equivalent to a press, for the receipt.
pub(super) fn answers(request: &SurfaceAction) -> Answers {
    let texts = |value: &Value| match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => {
            items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
        }
        other => vec![other.to_string()],
    };
    let mut answers: Answers = request.inputs.iter().map(|(pointer, value)| (pointer.clone(), texts(value))).collect();
    answers.insert(SUBMIT.to_owned(), vec![request.component.clone()]);
    answers
}
