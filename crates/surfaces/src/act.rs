//! Actions of a screen, checked against the gateway's state of the surface. The screen reports what was pressed and
//! typed; the meaning for the agent is resolved here.

use std::collections::BTreeMap;

use plexus_protocol::Timestamp;
use plexus_protocol::api::surfaces::SurfaceAction;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::change::{Change, Message};
use super::component::Component;
use super::error::{ActionError, excerpt, message};
use super::eval::{Budget, Scope, copied};
use super::expression;
use super::format;
use super::functions::{self, truthy};
use super::limits::{COMPONENTS_MAX, INPUTS_MAX, ROWS_MAX};
use super::list_items::{BoundPath, ListItem, is_visible, visible_components};
use super::model::DataOp;
use super::pointer::Pointer;
use super::size::{Size, check_value};
use super::surface::Surface;

/// A valid action: the part that the agent gets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Action {
    /// The event.
    pub name: String,
    /// The surface.
    pub surface: String,
    /// The component.
    pub component: String,
    /// The context of the event, resolved from the surface's own data.
    pub context: Map<String, Value>,
    /// The values that the user changed, by pointer.
    pub inputs: BTreeMap<String, Value>,
    /// The selected row or path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<Value>,
    /// The list item of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The pointers of inputs that were typed hidden. They are not in the surface's data, and must not be logged or shown.
    #[serde(skip)]
    pub secret: Vec<String>,
    /// The context with [`HIDDEN_INPUT`] in place of those inputs.
    #[serde(skip)]
    stored_context: Map<String, Value>,
    /// The changes of the surface by the other inputs.
    #[serde(skip)]
    pub change: Option<Change>,
}

/// The placeholder for hidden input in a stored action.
const HIDDEN_INPUT: &str = "(not kept)";

impl Action {
    /// Returns the action as it may be stored: without hidden input, even where a function of the context was applied to it.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mut action = self.clone();
        action.context.clone_from(&self.stored_context);
        for path in &self.secret {
            action.inputs.insert(path.clone(), HIDDEN_INPUT.into());
        }
        action
    }
}

/// An input of the surface that a pointer is bound to.
struct Input<'a> {
    component: &'a Component,
    /// The list item of the input.
    base: Pointer,
}

/// A value that the user put into an input.
struct Typed {
    path: Pointer,
    value: Value,
    /// `true` if it was typed hidden.
    secret: bool,
}

impl Surface {
    /// Checks an action, and puts its inputs into the data.
    ///
    /// # Errors
    /// Returns the reason why the action is refused; nothing has changed then.
    pub(crate) fn act(&mut self, request: &SurfaceAction, at: Timestamp) -> Result<Action, ActionError> {
        let component = self.fresh(&request.component, request.rev)?;
        let instance = request.instance.as_deref().unwrap_or_default();
        let unknown = || ActionError::Component(excerpt(&request.component));
        let base = Pointer::absolute(instance).map_err(|_| unknown())?;
        if !is_visible(self, &request.component, &base) {
            return Err(unknown());
        }
        let context = self.declared(component, &request.event)?;
        let scope = self.selected(component, request.item.as_ref(), &base)?;
        let mut checks = vec![(component.id.clone(), base.clone())];
        let inputs = self.inputs(request, &mut checks)?;
        checks.extend(self.read_inputs(&context, &scope));

        // The checks and the context see all inputs; hidden ones are then removed again, and are never in a change.
        let all: Vec<_> = inputs.iter().map(|input| (input.path.clone(), DataOp::Set(input.value.clone()))).collect();
        let declared = context;
        let undo = self.edit(Vec::new(), &all).map_err(|error| ActionError::Limit(error.to_string()))?;
        let context = self.checks_hold(&checks).and_then(|()| self.context(&declared, &scope));
        self.revert(undo);
        let context = context?;
        let stored_context = match inputs.iter().any(|input| input.secret) {
            true => self.context_without_secrets(&declared, &scope, &inputs)?,
            false => context.clone(),
        };
        let stored = inputs
            .iter()
            .zip(all)
            .filter(|(input, _)| !input.secret && self.data_at(&input.path) != Some(&input.value));
        let stored: Vec<_> = stored.map(|(_, op)| op).collect();
        self.edit(Vec::new(), &stored).map_err(|error| ActionError::Limit(error.to_string()))?;
        let name = self.name().to_owned();
        let messages = stored.into_iter().map(|(path, op)| Message::Data { surface: name.clone(), path, op });
        let messages: Vec<Message> = messages.collect();
        let change = (!messages.is_empty()).then(|| Change { messages, ..self.next(at) });
        Ok(Action {
            name: request.event.clone(),
            surface: name,
            component: request.component.clone(),
            context,
            stored_context,
            secret: inputs.iter().filter(|input| input.secret).map(|input| input.path.to_string()).collect(),
            inputs: inputs.into_iter().map(|input| (input.path.to_string(), input.value)).collect(),
            item: request.item.clone(),
            instance: (!base.is_root()).then(|| base.to_string()),
            change,
        })
    }

    /// Returns a component, if it has not changed since the screen showed it.
    fn fresh(&self, id: &str, rev: u64) -> Result<&Component, ActionError> {
        if rev > self.rev {
            return Err(ActionError::Stale { now: self.rev });
        }
        match self.component(id) {
            Some(component) if component.changed <= rev => Ok(component),
            Some(_) => Err(ActionError::Stale { now: self.rev }),
            None => Err(ActionError::Component(excerpt(id))),
        }
    }

    /// Returns the context that the component's event declares.
    fn declared(&self, component: &Component, event: &str) -> Result<Map<String, Value>, ActionError> {
        let unknown = || ActionError::Event { component: excerpt(&component.id), event: excerpt(event) };
        let key = match component.kind.as_str() {
            "Button" => "action",
            "Table" | "FileTree" => "onSelect",
            "Html" => {
                let actions = component.raw.get("actions").and_then(Value::as_array);
                let declared = actions.is_some_and(|actions| actions.iter().any(|name| name == event));
                return if declared { Ok(Map::new()) } else { Err(unknown()) };
            }
            _ => return Err(unknown()),
        };
        let declared = component.raw.get(key).and_then(|action| action.get("event")).ok_or_else(unknown)?;
        if declared.get("name").and_then(Value::as_str) != Some(event) {
            return Err(unknown());
        }
        Ok(declared.get("context").and_then(Value::as_object).cloned().unwrap_or_default())
    }

    /// Returns the base of the paths of the context: the selected row, if there is one.
    fn selected(&self, component: &Component, item: Option<&Value>, base: &Pointer) -> Result<Pointer, ActionError> {
        let key = match component.kind.as_str() {
            "Table" => "rows",
            "FileTree" => "entries",
            _ if item.is_some() => return Err(ActionError::Item(format!("a {} has no items", component.kind))),
            _ => return Ok(base.clone()),
        };
        let literal = component.raw.get(key).unwrap_or(&Value::Null);
        let path = literal.get("path").and_then(Value::as_str).and_then(|path| Pointer::parse(path, base).ok());
        let list = path.as_ref().map_or(Some(literal), |path| self.data_at(path));
        let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let at = match (component.kind.as_str(), item) {
            ("Table", Some(Value::Number(row))) => row.as_u64().and_then(|row| usize::try_from(row).ok()),
            ("FileTree", Some(Value::String(file))) => {
                list.iter().position(|entry| entry.get("path").and_then(Value::as_str) == Some(file))
            }
            _ => None,
        };
        match at.filter(|at| *at < list.len().min(ROWS_MAX)) {
            Some(at) => Ok(path.map_or_else(|| base.clone(), |path| path.item(at))),
            None => Err(ActionError::Item(format!("{:?} has no such item", excerpt(&component.id)))),
        }
    }

    /// Reads the inputs of a request, each of which an input of the surface must be able to give.
    fn inputs(&self, request: &SurfaceAction, checks: &mut Vec<(String, Pointer)>) -> Result<Vec<Typed>, ActionError> {
        if request.inputs.is_empty() {
            return Ok(Vec::new());
        }
        let bad = |path: &str, why: String| ActionError::Input { path: excerpt(path), reason: why };
        let bytes: usize = request.inputs.iter().map(|(path, value)| path.len() + Size::measure(value).bytes).sum();
        if bytes > INPUTS_MAX {
            return Err(ActionError::Limit(format!("the inputs have {bytes} bytes, and {INPUTS_MAX} are the most")));
        }
        if request.inputs.len() > COMPONENTS_MAX {
            return Err(ActionError::Limit(format!(
                "there are {} inputs, and {COMPONENTS_MAX} are the most",
                request.inputs.len()
            )));
        }
        let visible = self.bound_inputs();
        let mut typed: Vec<Typed> = Vec::new();
        for (text, value) in &request.inputs {
            if !text.starts_with('/') {
                return Err(bad(text, "has to be an absolute path".to_owned()));
            }
            let path = Pointer::absolute(text).map_err(|why| bad(text, why))?;
            check_value(value, path.segments().len() + 1).map_err(|why| bad(text, why))?;
            let inputs = self.bound(&path, &visible);
            if inputs.is_empty() {
                return Err(bad(text, "no input of the surface is bound to it".to_owned()));
            }
            let mut why = String::new();
            let fitting = inputs.iter().find(|input| {
                let fits = self.fits(input, value);
                fits.map_err(|reason| why = reason).is_ok()
            });
            let Some(input) = fitting else { return Err(bad(text, why)) };
            if input.component.changed > request.rev {
                return Err(ActionError::Stale { now: self.rev });
            }
            checks.push((input.component.id.clone(), input.base.clone()));
            // If any input there is hidden, the value is hidden.
            let secret =
                inputs.iter().any(|input| input.component.raw.get("variant").is_some_and(|one| one == "obscured"));
            if typed.iter().any(|other| other.path.touches(&path)) {
                return Err(bad(text, "is given twice".to_owned()));
            }
            typed.push(Typed { path, value: value.clone(), secret });
        }
        Ok(typed)
    }

    /// Returns the shown inputs, with the paths that each is bound to.
    fn bound_inputs(&self) -> Vec<(&Component, ListItem, BoundPath)> {
        let inputs = visible_components(self).into_iter().filter_map(|(component, item)| {
            let bound = item.bound(input_path(component)?)?;
            Some((component, item, bound))
        });
        inputs.collect()
    }

    /// Returns the shown inputs that are bound to a path.
    fn bound<'a>(&self, path: &Pointer, visible: &[(&'a Component, ListItem, BoundPath)]) -> Vec<Input<'a>> {
        let bound = visible.iter().filter_map(|(component, _, bound)| {
            let base = bound.matches(path, self)?;
            Some(Input { component, base })
        });
        bound.collect()
    }

    /// Returns the inputs that a context reads: their values are sent to the agent, so their checks have to hold as well.
    fn read_inputs(&self, context: &Map<String, Value>, scope: &Pointer) -> Vec<(String, Pointer)> {
        let mut paths = Vec::new();
        context.values().for_each(|value| paths_of(value, &mut paths));
        let read: Vec<Pointer> = paths.iter().filter_map(|path| Pointer::parse(path, scope).ok()).collect();
        if read.is_empty() {
            return Vec::new();
        }
        let mut inputs = Vec::new();
        for (component, item, bound) in self.bound_inputs() {
            // In a template only the current item is known; a press does not show the others.
            let base = scope.prefix(item.base.len());
            let path = input_path(component).and_then(|path| Pointer::parse(path, &base).ok());
            if let Some(path) = path.filter(|path| read.iter().any(|read| read.contains(path)))
                && bound.matches(&path, self).is_some()
            {
                inputs.push((component.id.clone(), base));
            }
        }
        inputs
    }

    /// Checks that a value is one that an input can give.
    fn fits(&self, input: &Input<'_>, value: &Value) -> Result<(), String> {
        let raw = &input.component.raw;
        let literal = |key: &str| raw.get(key).and_then(Value::as_f64);
        match input.component.kind.as_str() {
            "TextField" => {
                let number = raw.get("variant").is_some_and(|variant| variant == "number");
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(_) if number => functions::text(value),
                    _ => return Err("has to be text".to_owned()),
                };
                if number && !text.is_empty() && functions::number(&Value::String(text.clone())).is_none() {
                    return Err("has to be a number".to_owned());
                }
                let pattern = raw.get("validationRegexp").and_then(Value::as_str);
                let pattern = pattern.filter(|_| !text.is_empty()).and_then(|pattern| functions::regex(pattern).ok());
                match pattern.is_none_or(|pattern| pattern.is_match(&text)) {
                    true => Ok(()),
                    false => Err("does not have the form that is asked for".to_owned()),
                }
            }
            "CheckBox" => value.as_bool().map(drop).ok_or_else(|| "has to be true or false".to_owned()),
            "Slider" => {
                let number = value.as_f64().ok_or("has to be a number")?;
                let (min, max) = (literal("min").unwrap_or(0.0), literal("max").unwrap_or(f64::MAX));
                if (min..=max).contains(&number) { Ok(()) } else { Err(format!("has to be from {min} to {max}")) }
            }
            "ChoicePicker" => {
                let chosen = value.as_array().ok_or("has to be a list of choices")?;
                let options = raw.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let offered =
                    |one: &Value| options.iter().any(|option| one.is_string() && option.get("value") == Some(one));
                if !chosen.iter().all(offered) {
                    return Err("is not one of the choices".to_owned());
                }
                if (1..chosen.len()).any(|at| chosen[..at].contains(&chosen[at])) {
                    return Err("has a choice twice".to_owned());
                }
                let many = raw.get("variant").is_some_and(|variant| variant == "multipleSelection");
                if many || chosen.len() <= 1 { Ok(()) } else { Err("has to be one choice".to_owned()) }
            }
            "DateTimeInput" => {
                let text = value.as_str().ok_or("has to be a date or a time")?;
                let scope = Scope { data: self.data(), base: &input.base };
                let bound = |key: &str| raw.get(key).map(|bound| scope.text(bound, &mut Budget::default()));
                date_fits(text, bound("min"), bound("max"))
            }
            _ => Err("is no input".to_owned()),
        }
    }

    fn checks_hold(&self, checks: &[(String, Pointer)]) -> Result<(), ActionError> {
        let mut budget = Budget::default();
        for (id, base) in checks {
            let Some(component) = self.component(id) else { continue };
            let scope = Scope { data: self.data(), base };
            if let Some(message) = failed_check(component, scope, &mut budget) {
                return Err(ActionError::Check { component: id.clone(), message });
            }
        }
        Ok(())
    }

    /// Returns the context of the event with [`HIDDEN_INPUT`] in place of all hidden input.
    fn context_without_secrets(
        &mut self,
        declared: &Map<String, Value>,
        scope: &Pointer,
        inputs: &[Typed],
    ) -> Result<Map<String, Value>, ActionError> {
        let value = |input: &Typed| if input.secret { HIDDEN_INPUT.into() } else { input.value.clone() };
        let masked: Vec<_> = inputs.iter().map(|input| (input.path.clone(), DataOp::Set(value(input)))).collect();
        let undo = self.edit(Vec::new(), &masked).map_err(|error| ActionError::Limit(error.to_string()))?;
        let context = self.context(declared, scope);
        self.revert(undo);
        context
    }

    fn context(&self, context: &Map<String, Value>, base: &Pointer) -> Result<Map<String, Value>, ActionError> {
        let mut budget = Budget::default();
        let scope = Scope { data: self.data(), base };
        let resolved = context.iter().map(|(key, value)| {
            let value = scope.value(value, &mut budget);
            (key.clone(), copied(&value, &mut budget))
        });
        let resolved: Map<String, Value> = resolved.collect();
        if Size::measure_object(&resolved).bytes > super::limits::DATA_PART_MAX {
            return Err(ActionError::Limit("the context of the event is too large to be sent to the agent".to_owned()));
        }
        Ok(resolved)
    }
}

/// Adds the paths that a value of a context reads, also those in calls and in templates.
fn paths_of(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| paths_of(item, out)),
        Value::Object(members) => {
            if let Some(Value::String(path)) = members.get("path") {
                out.push(path.clone());
            }
            let args = members.get("args").and_then(Value::as_object);
            for arg in args.into_iter().flat_map(Map::values) {
                paths_of(arg, out);
                if let Value::String(template) = arg
                    && members.get("call").is_some_and(|name| name == "formatString")
                {
                    expression::parse(template).into_iter().flatten().for_each(|part| paths_of(&part, out));
                }
            }
        }
        _ => {}
    }
}

/// Returns the path at which an input puts its value.
fn input_path(component: &Component) -> Option<&str> {
    let inputs = ["TextField", "CheckBox", "ChoicePicker", "Slider", "DateTimeInput"];
    inputs.contains(&component.kind.as_str()).then_some(())?;
    component.raw.get("value")?.get("path")?.as_str()
}

/// Returns the message of the first check that does not hold.
pub(crate) fn failed_check(component: &Component, scope: Scope<'_>, budget: &mut Budget) -> Option<String> {
    let checks = component.raw.get("checks")?.as_array()?;
    let failed = checks.iter().find(|check| {
        let condition = check.get("condition").unwrap_or(&Value::Null);
        !truthy(&scope.value(condition, budget))
    })?;
    Some(message(failed.get("message").and_then(Value::as_str).unwrap_or("a check does not hold")))
}

/// Checks that text is a date, a time or both, between two others of the same form.
fn date_fits(text: &str, min: Option<String>, max: Option<String>) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let time = |text: &str| text.parse::<jiff::civil::Time>().ok().filter(|_| text.len() <= 32);
    let date = |text: &str| format::moment(&json!(text));
    let refused = || Err("is outside of what is allowed".to_owned());
    if let Some(at) = date(text) {
        let (min, max) = (min.as_deref().and_then(date), max.as_deref().and_then(date));
        return if min.is_some_and(|min| at < min) || max.is_some_and(|max| at > max) { refused() } else { Ok(()) };
    }
    let Some(at) = time(text) else { return Err("has to be a date or a time".to_owned()) };
    let (min, max) = (min.as_deref().and_then(time), max.as_deref().and_then(time));
    if min.is_some_and(|min| at < min) || max.is_some_and(|max| at > max) { refused() } else { Ok(()) }
}
