//! A surface as a form: its inputs and buttons, for clients that ask for the values without drawing the surface.

use std::collections::HashSet;

use serde_json::Value;

use super::functions;
use super::limits::VISITS_MAX;
use super::pointer::Pointer;
use super::resolve::{ChildSlot, Resolved};
use super::surface::Surface;

/// The inputs and buttons of a surface, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Form {
    /// The inputs outside of templates that are bound to the data model.
    pub fields: Vec<FormField>,
    /// The buttons outside of templates with an event.
    pub buttons: Vec<FormButton>,
}

/// An input.
#[derive(Clone, Debug, PartialEq)]
pub struct FormField {
    /// The JSON Pointer to which the input is bound, and by which
    /// [`SurfaceAction::inputs`](plexus_protocol::api::surfaces::SurfaceAction::inputs) names it.
    pub pointer: String,
    /// The agent's label, or the pointer if there is none.
    pub label: String,
    /// The type of the value.
    pub kind: FieldKind,
    /// The current value.
    pub value: Value,
}

/// The type of the value of an input.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// A string.
    Text {
        /// `true` if the typed text is hidden.
        secret: bool,
    },
    /// A boolean.
    Truth,
    /// A number within bounds.
    Number {
        /// The minimum.
        min: Option<f64>,
        /// The maximum.
        max: Option<f64>,
    },
    /// A list of values out of the options.
    Choice {
        /// The values, each with its label.
        options: Vec<(String, String)>,
        /// `true` if several may be chosen.
        multiple: bool,
    },
}

/// A button.
#[derive(Clone, Debug, PartialEq)]
pub struct FormButton {
    /// The component.
    pub component: String,
    /// The event.
    pub event: String,
    /// The text on the button, or its id if there is none.
    pub label: String,
}

impl Surface {
    /// Returns the inputs and buttons of the surface, whatever their tab.
    pub fn form(&self) -> Form {
        let mut form = Form::default();
        let mut seen = HashSet::new();
        let mut left = vec![ChildSlot { id: "root".to_owned(), instance: String::new() }];
        while let Some(slot) = left.pop() {
            if !slot.instance.is_empty() || seen.len() >= VISITS_MAX || !seen.insert(slot.id.clone()) {
                continue;
            }
            let Some(resolved) = self.resolve(&slot.id, "") else { continue };
            if let Some(field) = self.field(&resolved) {
                form.fields.push(field);
            } else if let Some(event) = event_of(&resolved) {
                let text = resolved.children.first().map(|child| self.text_of(&child.id)).unwrap_or_default();
                let label = if text.is_empty() { slot.id.clone() } else { text };
                form.buttons.push(FormButton { component: slot.id.clone(), event, label });
            }
            left.extend(resolved.children.into_iter().rev());
        }
        form
    }

    fn field(&self, resolved: &Resolved<'_>) -> Option<FormField> {
        let bound = self.component(resolved.id)?.raw.get("value")?.get("path")?.as_str()?;
        let pointer = Pointer::parse(bound, &Pointer::default()).ok()?.to_string();
        let number = |key: &str| resolved.props.get(key).and_then(|value| value.as_f64());
        let text = |key: &str| resolved.props.get(key).and_then(|value| value.as_str());
        let kind = match resolved.kind {
            "TextField" => FieldKind::Text { secret: text("variant") == Some("obscured") },
            "DateTimeInput" => FieldKind::Text { secret: false },
            "CheckBox" => FieldKind::Truth,
            "Slider" => FieldKind::Number { min: number("min"), max: number("max") },
            "ChoicePicker" => {
                let options = resolved.props.get("options").and_then(|options| options.as_array());
                let pair = |option: &Value| {
                    let value = option.get("value")?.as_str()?.to_owned();
                    Some((value, functions::text(option.get("label").unwrap_or(&Value::Null))))
                };
                let options = options.map(|options| options.iter().filter_map(pair).collect()).unwrap_or_default();
                FieldKind::Choice { options, multiple: text("variant") == Some("multipleSelection") }
            }
            _ => return None,
        };
        let value = resolved.props.get("value").map_or(Value::Null, |value| value.as_ref().clone());
        let label = text("label").filter(|label| !label.trim().is_empty()).unwrap_or(&pointer).to_owned();
        Some(FormField { pointer, label, kind, value })
    }

    /// Returns the text of a component that is shown on a button.
    fn text_of(&self, id: &str) -> String {
        let resolved = self.resolve(id, "");
        let text = resolved.as_ref().and_then(|resolved| resolved.props.get("text").or(resolved.props.get("name")));
        text.map(|text| functions::text(text)).unwrap_or_default()
    }
}

fn event_of(resolved: &Resolved<'_>) -> Option<String> {
    let event = resolved.props.get("action")?.pointer("/event/name")?.as_str()?;
    (resolved.kind == "Button").then(|| event.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Show, SurfaceSet};
    use super::*;

    #[test]
    fn surface_form_lists_inputs_and_buttons_in_order() {
        let components = json!([
            { "id": "root", "component": "Column", "children": ["name", "tabs", "ok", "no", "plain"] },
            { "id": "name", "component": "TextField", "label": "Name", "value": { "path": "/name" } },
            { "id": "tabs", "component": "Tabs", "tabs": [{ "title": "A", "child": "sure" }, { "title": "B", "child": "size" }] },
            { "id": "sure", "component": "CheckBox", "label": "Sure", "value": { "path": "/sure" } },
            { "id": "size", "component": "ChoicePicker", "value": { "path": "/size" }, "variant": "mutuallyExclusive",
              "options": [{ "label": "Small", "value": "s" }, { "label": "Large", "value": "l" }] },
            { "id": "ok", "component": "Button", "child": "ok-text", "action": { "event": { "name": "submit" } } },
            { "id": "ok-text", "component": "Text", "text": "Go" },
            { "id": "no", "component": "Button", "child": "rule", "action": { "event": { "name": "cancel" } } },
            { "id": "rule", "component": "Divider" },
            { "id": "plain", "component": "TextField", "label": "Unbound", "value": "x" },
        ]);
        let components = serde_json::from_value(components).unwrap();
        let data = json!({ "name": "Ada" }).as_object().cloned();
        let mut set = SurfaceSet::default();
        let show = Show { surface: "s".into(), components, data, ..Show::default() };
        set.show(show, plexus_protocol::Timestamp::default()).unwrap();
        let form = set.get("s").unwrap().form();
        let fields: Vec<_> = form.fields.iter().map(|field| (field.pointer.as_str(), field.label.as_str())).collect();
        assert_eq!(fields, [("/name", "Name"), ("/sure", "Sure"), ("/size", "/size")]);
        assert_eq!(form.fields[0].value, json!("Ada"));
        let options = vec![("s".to_owned(), "Small".to_owned()), ("l".to_owned(), "Large".to_owned())];
        assert_eq!(form.fields[2].kind, FieldKind::Choice { options, multiple: false });
        let buttons: Vec<_> = form.buttons.iter().map(|b| (&*b.component, &*b.event, &*b.label)).collect();
        assert_eq!(buttons, [("ok", "submit", "Go"), ("no", "cancel", "no")]);
    }
}
