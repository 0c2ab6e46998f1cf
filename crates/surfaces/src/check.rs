//! Checks components against their catalogue, and finds the components that they name.

use std::fmt;

use serde_json::{Map, Value};

use super::catalog::{COMMON, Catalog, FUNCTIONS, Function, Prop, ReturnType, STATES, Type, function_of};
use super::error::{SurfaceError, excerpt};
use super::expression;
use super::functions::{is_http, regex};
use super::limits::NAME_MAX;
use super::pointer::{FORBIDDEN, Pointer};
use super::size::check_value;

/// A component that another one names as its child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) id: String,
    /// The list whose items each get one.
    pub(crate) template: Option<String>,
}

/// A fault, with its place in the component.
struct Fault {
    at: String,
    reason: String,
    unknown: bool,
}

type Checked = Result<(), Fault>;

/// A place in a component, as a chain up to its root.
#[derive(Clone, Copy)]
struct Location<'a>(Option<&'a Location<'a>>, Step<'a>);

#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> Location<'a> {
    const fn root(name: &'a str) -> Self {
        Location(None, Step::Name(name))
    }

    const fn name(&'a self, name: &'a str) -> Self {
        Location(Some(self), Step::Name(name))
    }

    const fn index(&'a self, index: usize) -> Self {
        Location(Some(self), Step::Index(index))
    }

    fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault { at: self.to_string(), reason: reason.into(), unknown: false }
    }

    fn unknown(&self, reason: impl Into<String>) -> Fault {
        Fault { unknown: true, ..self.fault(reason) }
    }
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.0 {
            write!(f, "{above}/")?;
        }
        match self.1 {
            Step::Name(name) => f.write_str(&excerpt(name)),
            Step::Index(index) => write!(f, "{index}"),
        }
    }
}

/// Checks one component of a call, and returns the children that it names.
pub(crate) fn component(
    catalog: Catalog,
    number: usize,
    raw: &Map<String, Value>,
    html: bool,
) -> Result<Vec<Link>, SurfaceError> {
    let text = |key: &str| raw.get(key).and_then(Value::as_str);
    let (id, kind) = (text("id"), text("component"));
    let at = |kind: &str| format!("components/{number} ({})", excerpt(kind));
    let Some(kind) = kind else {
        let why = format!("{:?} has no type: give component, such as \"Text\"", excerpt(id.unwrap_or_default()));
        return Err(SurfaceError::Component { at: format!("components/{number} component"), reason: why });
    };
    let id = id.ok_or_else(|| SurfaceError::Component {
        at: format!("{} id", at(kind)),
        reason: "is missing, and has to be text: give each component its own id".to_owned(),
    })?;
    component_id(id).map_err(|why| SurfaceError::Component { at: format!("{} id", at(kind)), reason: why })?;
    let Some(spec) = catalog.spec(kind).filter(|spec| html || spec.name != "Html") else {
        let known: Vec<&str> = catalog.specs().map(|spec| spec.name).filter(|name| *name != "Html").collect();
        let problem = match kind {
            "Html" => "Html is made by the tool ui_html only".to_owned(),
            _ => format!("is not in the catalog; there are {}", known.join(", ")),
        };
        return Err(SurfaceError::NotInCatalog { at: at(kind), problem });
    };
    for (key, value) in raw {
        // The depth of the value counts from the message's list of components.
        check_value(value, 1)
            .map_err(|why| SurfaceError::Component { at: format!("{} {}", at(kind), excerpt(key)), reason: why })?;
    }
    let mut links = Vec::new();
    let mut checker = Checker { links: &mut links };
    let checked = checker.members(raw, &[COMMON, spec.props], None).and_then(|()| constraints(kind, raw));
    checked.map_err(|fault| {
        let at = format!("{} {}", at(kind), fault.at);
        match fault.unknown {
            true => SurfaceError::NotInCatalog { at, problem: fault.reason },
            false => SurfaceError::Component { at, reason: fault.reason },
        }
    })?;
    // The links are in the order of the properties, whatever the order of the map is in this build.
    Ok(self::links(catalog, raw))
}

/// Returns the children that a component names; a reference that does not fit is left out.
pub(crate) fn links(catalog: Catalog, raw: &Map<String, Value>) -> Vec<Link> {
    let mut links = Vec::new();
    let kind = raw.get("component").and_then(Value::as_str).unwrap_or_default();
    let Some(spec) = catalog.spec(kind) else { return links };
    let mut checker = Checker { links: &mut links };
    for prop in spec.props {
        if let (true, Some(value)) = (names_children(prop.ty), raw.get(prop.name)) {
            let _ = checker.value(prop.ty, value, &Location::root(prop.name));
        }
    }
    links
}

fn names_children(ty: Type) -> bool {
    match ty {
        Type::Child | Type::Children => true,
        Type::List(of, ..) => names_children(*of),
        Type::Object(props) => props.iter().any(|prop| names_children(prop.ty)),
        _ => false,
    }
}

/// Checks rules that the type of one property does not express.
fn constraints(kind: &str, raw: &Map<String, Value>) -> Checked {
    let has = |key: &str| raw.contains_key(key);
    match kind {
        "Diff" if has("diff") == (has("old") || has("new")) => {
            Err(Location::root("diff").fault("give diff (a unified diff), or old and new"))
        }
        "Diff" if has("old") != has("new") => Err(Location::root("old").fault("give old and new, both")),
        "Progress" => match raw.get("state") {
            Some(Value::String(state)) if !STATES.contains(&state.as_str()) => {
                Err(Location::root("state").fault(format!("{:?} is not one of {}", excerpt(state), STATES.join(", "))))
            }
            _ => Ok(()),
        },
        "Slider" => {
            let number = |key: &str, or: f64| raw.get(key).and_then(Value::as_f64).unwrap_or(or);
            if number("min", 0.0) > number("max", f64::MAX) {
                return Err(Location::root("min").fault("is above max"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns whether a component may have this id.
pub(crate) fn component_id(id: &str) -> Result<(), String> {
    if id.is_empty() || id.chars().count() > NAME_MAX {
        return Err(format!("{:?} has to have 1 to {NAME_MAX} characters", excerpt(id)));
    }
    if FORBIDDEN.contains(&id) {
        return Err(format!("{id} is not allowed as an id"));
    }
    if id.chars().any(char::is_control) {
        return Err(format!("{:?} has a control character", excerpt(id)));
    }
    Ok(())
}

struct Checker<'a> {
    links: &'a mut Vec<Link>,
}

impl Checker<'_> {
    fn members(&mut self, members: &Map<String, Value>, props: &[&[Prop]], above: Option<&Location<'_>>) -> Checked {
        let location = |name| Location(above, Step::Name(name));
        let known = || props.iter().flat_map(|props| props.iter());
        for (key, value) in members {
            match known().find(|prop| prop.name == key) {
                Some(prop) => self.value(prop.ty, value, &location(prop.name))?,
                None => {
                    let names: Vec<&str> = known().map(|prop| prop.name).collect();
                    return Err(location(key).fault(format!("is no property of it; there are {}", names.join(", "))));
                }
            }
        }
        match known().find(|prop| prop.needed && !members.contains_key(prop.name)) {
            Some(prop) => {
                Err(location(prop.name).fault(format!("is missing: it has to be {}", describe_type(prop.ty))))
            }
            None => Ok(()),
        }
    }

    fn value(&mut self, ty: Type, value: &Value, location: &Location<'_>) -> Checked {
        let fits = match (ty, value) {
            (Type::Any, _) => return self.any(value, location),
            (Type::Text, Value::String(_)) | (Type::Flag, Value::Bool(_)) | (Type::Record, Value::Object(_)) => true,
            (Type::Number | Type::NumberOrGap, Value::Number(_)) | (Type::NumberOrGap, Value::Null) => true,
            (Type::Count, Value::Number(number)) => number.as_u64().is_some(),
            (Type::OneOf(names), Value::String(text)) => {
                if !names.contains(&text.as_str()) {
                    return Err(location.fault(format!("{:?} is not one of {}", excerpt(text), names.join(", "))));
                }
                true
            }
            (Type::Pattern, Value::String(pattern)) => {
                return regex(pattern).map(drop).map_err(|why| location.fault(why));
            }
            (Type::Url, Value::String(url)) if is_http(url) => true,
            (Type::DynText, Value::String(_))
            | (Type::DynNumber, Value::Number(_))
            | (Type::DynFlag, Value::Bool(_)) => true,
            (Type::DynTexts, Value::Array(items)) => items.iter().all(Value::is_string),
            (Type::DynAny, Value::String(_) | Value::Number(_) | Value::Bool(_)) => true,
            (Type::DynAny, Value::Array(_)) => return self.any(value, location),
            (
                Type::DynText | Type::DynNumber | Type::DynFlag | Type::DynTexts | Type::DynAny,
                Value::Object(members),
            ) => {
                return self.dynamic(ty, members, location);
            }
            (Type::Bound, Value::Object(members)) if members.contains_key("path") => return binding(members, location),
            (Type::Child, Value::String(id)) => return self.child(id, None, location),
            (Type::Children, Value::Array(ids)) => return self.children(ids, location),
            (Type::Children, Value::Object(members)) => return self.template(members, location),
            (Type::Action, Value::Object(members)) => return self.action(members, location),
            (Type::List(item, min, max), Value::Array(items)) => return self.list(*item, (min, max), items, location),
            (Type::Object(props), Value::Object(members)) => return self.members(members, &[props], Some(location)),
            (Type::Either(types), _) => {
                let Some(ty) = types.iter().find(|ty| is_likely(**ty, value)) else {
                    return Err(location.fault(format!("has to be {}", describe_type(ty))));
                };
                return self.value(*ty, value, location);
            }
            _ => false,
        };
        if fits {
            Ok(())
        } else {
            Err(location.fault(format!("has to be {}, and is {}", describe_type(ty), is(value))))
        }
    }

    fn list(&mut self, ty: Type, (min, max): (usize, usize), items: &[Value], location: &Location<'_>) -> Checked {
        if items.len() < min || items.len() > max {
            let bounds = if items.len() < min { format!("{min} at least") } else { format!("{max} at most") };
            return Err(location.fault(format!("has {} items: {bounds}", items.len())));
        }
        items.iter().enumerate().try_for_each(|(at, item)| self.value(ty, item, &location.index(at)))
    }

    fn child(&mut self, id: &str, template: Option<String>, location: &Location<'_>) -> Checked {
        component_id(id).map_err(|why| location.fault(why))?;
        self.links.push(Link { id: id.to_owned(), template });
        Ok(())
    }

    fn children(&mut self, ids: &[Value], location: &Location<'_>) -> Checked {
        if ids.len() > super::limits::COMPONENTS_MAX {
            let max = super::limits::COMPONENTS_MAX;
            return Err(location.fault(format!("has {} items: {max} at most; use a template for a list", ids.len())));
        }
        ids.iter().enumerate().try_for_each(|(at, id)| match id {
            Value::String(id) => self.child(id, None, &location.index(at)),
            other => {
                let why = format!("has to be the id of a component, and is {}: define it beside the others", is(other));
                Err(location.index(at).fault(why))
            }
        })
    }

    fn template(&mut self, members: &Map<String, Value>, location: &Location<'_>) -> Checked {
        let (id, path) = match (members.get("componentId"), members.get("path")) {
            (Some(Value::String(id)), Some(Value::String(path))) if members.len() == 2 => (id, path),
            _ => return Err(location.fault(format!("has to be {}", describe_type(Type::Children)))),
        };
        Pointer::absolute(path).map_err(|why| location.name("path").fault(why))?;
        self.child(id, Some(path.clone()), &location.name("componentId"))
    }

    fn action(&mut self, members: &Map<String, Value>, location: &Location<'_>) -> Checked {
        let shape =
            "has to be {\"event\": {\"name\", \"context\"?}} or {\"functionCall\": {\"call\": \"openUrl\", \"args\"}}";
        if members.len() != 1 {
            return Err(location.fault(shape));
        }
        if let Some(Value::Object(call)) = members.get("functionCall") {
            return self.call(call, None, &location.name("functionCall"));
        }
        let Some(Value::Object(event)) = members.get("event") else { return Err(location.fault(shape)) };
        let location = location.name("event");
        for (key, value) in event {
            match (key.as_str(), value) {
                ("name", Value::String(name)) if !name.is_empty() && name.chars().count() <= 200 => {}
                ("name", _) => return Err(location.name("name").fault("has to be text of 1 to 200 characters")),
                ("context", Value::Object(context)) => {
                    let at = location.name("context");
                    for (key, value) in context {
                        self.value(Type::DynAny, value, &at.name(key))?;
                    }
                }
                ("context", _) => {
                    return Err(location.name("context").fault("has to be an object of values and paths"));
                }
                _ => return Err(location.name(key).fault("is no property of an event; there are name, context")),
            }
        }
        if event.contains_key("name") { Ok(()) } else { Err(location.name("name").fault("is missing: name the event")) }
    }

    /// Checks literals, which may contain bindings and calls.
    fn any(&mut self, value: &Value, location: &Location<'_>) -> Checked {
        match value {
            Value::Array(items) => {
                items.iter().enumerate().try_for_each(|(at, item)| self.any(item, &location.index(at)))
            }
            Value::Object(members) if members.contains_key("call") || members.contains_key("path") => {
                self.dynamic(Type::DynAny, members, location)
            }
            _ => Ok(()),
        }
    }

    fn dynamic(&mut self, ty: Type, members: &Map<String, Value>, location: &Location<'_>) -> Checked {
        if members.contains_key("call") {
            return self.call(members, Some(ty), location);
        }
        if members.contains_key("path") {
            return binding(members, location);
        }
        Err(location.fault(format!("has to be {}", describe_type(ty))))
    }

    /// Checks a call; without `ty` it is the action of a press.
    fn call(&mut self, call: &Map<String, Value>, ty: Option<Type>, location: &Location<'_>) -> Checked {
        let name = call.get("call").and_then(Value::as_str).unwrap_or_default();
        let Some(function) = function_of(name) else {
            let names: Vec<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
            let why = format!("{:?} is no function of the catalog; there are {}", excerpt(name), names.join(", "));
            return Err(location.name("call").unknown(why));
        };
        returns(function, ty).map_err(|why| location.name("call").fault(why))?;
        let known = ["call", "args", "returnType"];
        if let Some(key) = call.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(location.name(key).fault("is no property of a call; there are call, args, returnType"));
        }
        let return_type = match function.returns {
            ReturnType::Text => "string",
            ReturnType::Flag => "boolean",
            ReturnType::Nothing => "void",
        };
        match call.get("returnType") {
            None => {}
            Some(Value::String(ty)) if ty == return_type || ty == "any" => {}
            Some(_) => return Err(location.name("returnType").fault(format!("{name} gives {return_type}"))),
        }
        let Some(Value::Object(args)) = call.get("args") else {
            return Err(location.name("args").fault(format!("is missing: an object of the arguments of {name}")));
        };
        let args_location = location.name("args");
        self.members(args, &[function.args], Some(&args_location))?;
        if !function.any_of.is_empty() && !function.any_of.iter().any(|name| args.contains_key(*name)) {
            return Err(args_location.fault(format!("{name} needs one of {}", function.any_of.join(", "))));
        }
        match (name, args.get("value")) {
            ("formatString", Some(Value::String(template))) => {
                let at = args_location.name("value");
                let parts = expression::parse(template).map_err(|why| at.fault(why))?;
                parts.iter().try_for_each(|part| self.any(part, &at))
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether a function results in the required type.
fn returns(function: &Function, ty: Option<Type>) -> Result<(), String> {
    let name = function.name;
    match (function.returns, ty) {
        (ReturnType::Nothing, None) => Ok(()),
        (_, None) => Err(format!("{name} does nothing when pressed; use openUrl, or an event")),
        (ReturnType::Nothing, Some(_)) => Err(format!("{name} runs only as the functionCall of an action")),
        (_, Some(Type::DynAny)) | (ReturnType::Text, Some(Type::DynText)) | (ReturnType::Flag, Some(Type::DynFlag)) => {
            Ok(())
        }
        (_, Some(ty)) => Err(format!("{name} does not give {}", describe_type(ty))),
    }
}

fn binding(members: &Map<String, Value>, location: &Location<'_>) -> Checked {
    match members.get("path") {
        Some(Value::String(path)) if members.len() == 1 => {
            Pointer::absolute(path).map(drop).map_err(|why| location.name("path").fault(why))
        }
        _ => Err(location.fault("a binding is {\"path\": \"/..\"} and nothing else")),
    }
}

/// Returns whether a value is probably intended to be of this type, among several types.
fn is_likely(ty: Type, value: &Value) -> bool {
    match (ty, value) {
        (Type::List(..), Value::Array(_)) | (Type::OneOf(_) | Type::Text, Value::String(_)) => true,
        (Type::Bound, Value::Object(members)) => members.contains_key("path"),
        (Type::Object(_), Value::Object(members)) => !members.contains_key("path"),
        _ => false,
    }
}

/// Describes a type.
fn describe_type(ty: Type) -> String {
    let text = match ty {
        Type::Text => "text",
        Type::Number => "a number",
        Type::Count => "a whole number from 0",
        Type::Flag => "true or false",
        Type::OneOf(names) => return format!("one of {}", names.join(", ")),
        Type::Pattern => "a regular expression",
        Type::Url => "an address that begins with http:// or https://",
        Type::DynText => "text, {\"path\"} or a call",
        Type::DynNumber => "a number, {\"path\"} or a call",
        Type::DynFlag => "true, false, {\"path\"} or a call",
        Type::DynTexts => "a list of text, {\"path\"} or a call",
        Type::DynAny => "text, a number, true, false, a list, {\"path\"} or a call",
        Type::Any => "a value",
        Type::Record => "an object",
        Type::NumberOrGap => "a number or null",
        Type::Bound => "{\"path\": \"/..\"}",
        Type::Child => "the id of a component",
        Type::Children => "a list of ids of components, or {\"componentId\", \"path\"}",
        Type::Action => "an action: {\"event\": {\"name\": ..}}",
        Type::List(of, ..) => return format!("a list of {}", describe_type(*of)),
        Type::Object(props) => {
            let names: Vec<&str> = props.iter().map(|prop| prop.name).collect();
            return format!("an object with {}", names.join(", "));
        }
        Type::Either(types) => {
            let texts: Vec<String> = types.iter().map(|ty| describe_type(*ty)).collect();
            return texts.join(" or ");
        }
    };
    text.to_owned()
}

/// Returns the name of a value's type.
fn is(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(members) if members.contains_key("path") => "a binding",
        Value::Object(members) if members.contains_key("call") => "a call",
        Value::Object(_) => "an object",
    }
}
