//! Checks components against their catalogue, and finds the components that they name.

use std::fmt;

use serde_json::{Map, Value};

use super::catalog::{COMMON, Catalog, FUNCTIONS, Function, Gives, Prop, STATES, Type, function_of};
use super::error::{SurfaceError, shown};
use super::expression;
use super::functions::{is_http, regex};
use super::limits::NAME_MAX;
use super::pointer::{FORBIDDEN, Pointer};
use super::size::may_stand;

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
    why: String,
    unknown: bool,
}

type Checked = Result<(), Fault>;

/// A place in a component, as a chain up to its root.
#[derive(Clone, Copy)]
struct Place<'a>(Option<&'a Place<'a>>, Step<'a>);

#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    const fn root(name: &'a str) -> Self {
        Place(None, Step::Name(name))
    }

    const fn name(&'a self, name: &'a str) -> Self {
        Place(Some(self), Step::Name(name))
    }

    const fn index(&'a self, index: usize) -> Self {
        Place(Some(self), Step::Index(index))
    }

    fn fault(&self, why: impl Into<String>) -> Fault {
        Fault { at: self.to_string(), why: why.into(), unknown: false }
    }

    fn unknown(&self, why: impl Into<String>) -> Fault {
        Fault { unknown: true, ..self.fault(why) }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.0 {
            write!(f, "{above}/")?;
        }
        match self.1 {
            Step::Name(name) => f.write_str(&shown(name)),
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
    let at = |kind: &str| format!("components/{number} ({})", shown(kind));
    let Some(kind) = kind else {
        let why = format!("{:?} has no type: give component, such as \"Text\"", shown(id.unwrap_or_default()));
        return Err(SurfaceError::Component { at: format!("components/{number} component"), why });
    };
    let id = id.ok_or_else(|| SurfaceError::Component {
        at: format!("{} id", at(kind)),
        why: "is missing, and has to be text: give each component its own id".to_owned(),
    })?;
    component_id(id).map_err(|why| SurfaceError::Component { at: format!("{} id", at(kind)), why })?;
    let Some(spec) = catalog.spec(kind).filter(|spec| html || spec.name != "Html") else {
        let known: Vec<&str> = catalog.specs().map(|spec| spec.name).filter(|name| *name != "Html").collect();
        let what = match kind {
            "Html" => "Html is made by the tool ui_html only".to_owned(),
            _ => format!("is not in the catalog; there are {}", known.join(", ")),
        };
        return Err(SurfaceError::NotInCatalog { at: at(kind), what });
    };
    for (key, value) in raw {
        // The depth of the value counts from the message's list of components.
        may_stand(value, 1)
            .map_err(|why| SurfaceError::Component { at: format!("{} {}", at(kind), shown(key)), why })?;
    }
    let mut links = Vec::new();
    let mut checker = Checker { links: &mut links };
    let checked = checker.members(raw, &[COMMON, spec.props], None).and_then(|()| beyond_types(kind, raw));
    checked.map_err(|fault| {
        let at = format!("{} {}", at(kind), fault.at);
        match fault.unknown {
            true => SurfaceError::NotInCatalog { at, what: fault.why },
            false => SurfaceError::Component { at, why: fault.why },
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
            let _ = checker.value(prop.ty, value, &Place::root(prop.name));
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
fn beyond_types(kind: &str, raw: &Map<String, Value>) -> Checked {
    let has = |key: &str| raw.contains_key(key);
    match kind {
        "Diff" if has("diff") == (has("old") || has("new")) => {
            Err(Place::root("diff").fault("give diff (a unified diff), or old and new"))
        }
        "Diff" if has("old") != has("new") => Err(Place::root("old").fault("give old and new, both")),
        "Progress" => match raw.get("state") {
            Some(Value::String(state)) if !STATES.contains(&state.as_str()) => {
                Err(Place::root("state").fault(format!("{:?} is not one of {}", shown(state), STATES.join(", "))))
            }
            _ => Ok(()),
        },
        "Slider" => {
            let number = |key: &str, or: f64| raw.get(key).and_then(Value::as_f64).unwrap_or(or);
            if number("min", 0.0) > number("max", f64::MAX) {
                return Err(Place::root("min").fault("is above max"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns whether a component may have this id.
pub(crate) fn component_id(id: &str) -> Result<(), String> {
    if id.is_empty() || id.chars().count() > NAME_MAX {
        return Err(format!("{:?} has to have 1 to {NAME_MAX} characters", shown(id)));
    }
    if FORBIDDEN.contains(&id) {
        return Err(format!("{id} is not allowed as an id"));
    }
    if id.chars().any(char::is_control) {
        return Err(format!("{:?} has a control character", shown(id)));
    }
    Ok(())
}

struct Checker<'a> {
    links: &'a mut Vec<Link>,
}

impl Checker<'_> {
    fn members(&mut self, members: &Map<String, Value>, props: &[&[Prop]], above: Option<&Place<'_>>) -> Checked {
        let place = |name| Place(above, Step::Name(name));
        let known = || props.iter().flat_map(|props| props.iter());
        for (key, value) in members {
            match known().find(|prop| prop.name == key) {
                Some(prop) => self.value(prop.ty, value, &place(prop.name))?,
                None => {
                    let names: Vec<&str> = known().map(|prop| prop.name).collect();
                    return Err(place(key).fault(format!("is no property of it; there are {}", names.join(", "))));
                }
            }
        }
        match known().find(|prop| prop.needed && !members.contains_key(prop.name)) {
            Some(prop) => Err(place(prop.name).fault(format!("is missing: it has to be {}", wanted(prop.ty)))),
            None => Ok(()),
        }
    }

    fn value(&mut self, ty: Type, value: &Value, place: &Place<'_>) -> Checked {
        let fits = match (ty, value) {
            (Type::Any, _) => return self.any(value, place),
            (Type::Text, Value::String(_)) | (Type::Flag, Value::Bool(_)) | (Type::Record, Value::Object(_)) => true,
            (Type::Number | Type::NumberOrGap, Value::Number(_)) | (Type::NumberOrGap, Value::Null) => true,
            (Type::Count, Value::Number(number)) => number.as_u64().is_some(),
            (Type::OneOf(names), Value::String(text)) => {
                if !names.contains(&text.as_str()) {
                    return Err(place.fault(format!("{:?} is not one of {}", shown(text), names.join(", "))));
                }
                true
            }
            (Type::Pattern, Value::String(pattern)) => return regex(pattern).map(drop).map_err(|why| place.fault(why)),
            (Type::Url, Value::String(url)) if is_http(url) => true,
            (Type::DynText, Value::String(_))
            | (Type::DynNumber, Value::Number(_))
            | (Type::DynFlag, Value::Bool(_)) => true,
            (Type::DynTexts, Value::Array(items)) => items.iter().all(Value::is_string),
            (Type::DynAny, Value::String(_) | Value::Number(_) | Value::Bool(_)) => true,
            (Type::DynAny, Value::Array(_)) => return self.any(value, place),
            (
                Type::DynText | Type::DynNumber | Type::DynFlag | Type::DynTexts | Type::DynAny,
                Value::Object(members),
            ) => {
                return self.dynamic(ty, members, place);
            }
            (Type::Bound, Value::Object(members)) if members.contains_key("path") => return binding(members, place),
            (Type::Child, Value::String(id)) => return self.child(id, None, place),
            (Type::Children, Value::Array(ids)) => return self.children(ids, place),
            (Type::Children, Value::Object(members)) => return self.template(members, place),
            (Type::Action, Value::Object(members)) => return self.action(members, place),
            (Type::List(of, min, max), Value::Array(items)) => return self.list(*of, (min, max), items, place),
            (Type::Object(props), Value::Object(members)) => return self.members(members, &[props], Some(place)),
            (Type::Either(types), _) => {
                let Some(ty) = types.iter().find(|ty| looks_like(**ty, value)) else {
                    return Err(place.fault(format!("has to be {}", wanted(ty))));
                };
                return self.value(*ty, value, place);
            }
            _ => false,
        };
        if fits { Ok(()) } else { Err(place.fault(format!("has to be {}, and is {}", wanted(ty), is(value)))) }
    }

    fn list(&mut self, ty: Type, (min, max): (usize, usize), items: &[Value], place: &Place<'_>) -> Checked {
        if items.len() < min || items.len() > max {
            let bounds = if items.len() < min { format!("{min} at least") } else { format!("{max} at most") };
            return Err(place.fault(format!("has {} items: {bounds}", items.len())));
        }
        items.iter().enumerate().try_for_each(|(at, item)| self.value(ty, item, &place.index(at)))
    }

    fn child(&mut self, id: &str, template: Option<String>, place: &Place<'_>) -> Checked {
        component_id(id).map_err(|why| place.fault(why))?;
        self.links.push(Link { id: id.to_owned(), template });
        Ok(())
    }

    fn children(&mut self, ids: &[Value], place: &Place<'_>) -> Checked {
        if ids.len() > super::limits::COMPONENTS_MAX {
            let max = super::limits::COMPONENTS_MAX;
            return Err(place.fault(format!("has {} items: {max} at most; use a template for a list", ids.len())));
        }
        ids.iter().enumerate().try_for_each(|(at, id)| match id {
            Value::String(id) => self.child(id, None, &place.index(at)),
            other => {
                let why = format!("has to be the id of a component, and is {}: define it beside the others", is(other));
                Err(place.index(at).fault(why))
            }
        })
    }

    fn template(&mut self, members: &Map<String, Value>, place: &Place<'_>) -> Checked {
        let (id, path) = match (members.get("componentId"), members.get("path")) {
            (Some(Value::String(id)), Some(Value::String(path))) if members.len() == 2 => (id, path),
            _ => return Err(place.fault(format!("has to be {}", wanted(Type::Children)))),
        };
        Pointer::absolute(path).map_err(|why| place.name("path").fault(why))?;
        self.child(id, Some(path.clone()), &place.name("componentId"))
    }

    fn action(&mut self, members: &Map<String, Value>, place: &Place<'_>) -> Checked {
        let shape =
            "has to be {\"event\": {\"name\", \"context\"?}} or {\"functionCall\": {\"call\": \"openUrl\", \"args\"}}";
        if members.len() != 1 {
            return Err(place.fault(shape));
        }
        if let Some(Value::Object(call)) = members.get("functionCall") {
            return self.call(call, None, &place.name("functionCall"));
        }
        let Some(Value::Object(event)) = members.get("event") else { return Err(place.fault(shape)) };
        let place = place.name("event");
        for (key, value) in event {
            match (key.as_str(), value) {
                ("name", Value::String(name)) if !name.is_empty() && name.chars().count() <= 200 => {}
                ("name", _) => return Err(place.name("name").fault("has to be text of 1 to 200 characters")),
                ("context", Value::Object(context)) => {
                    let at = place.name("context");
                    for (key, value) in context {
                        self.value(Type::DynAny, value, &at.name(key))?;
                    }
                }
                ("context", _) => return Err(place.name("context").fault("has to be an object of values and paths")),
                _ => return Err(place.name(key).fault("is no property of an event; there are name, context")),
            }
        }
        if event.contains_key("name") { Ok(()) } else { Err(place.name("name").fault("is missing: name the event")) }
    }

    /// Checks literals, which may contain bindings and calls.
    fn any(&mut self, value: &Value, place: &Place<'_>) -> Checked {
        match value {
            Value::Array(items) => items.iter().enumerate().try_for_each(|(at, item)| self.any(item, &place.index(at))),
            Value::Object(members) if members.contains_key("call") || members.contains_key("path") => {
                self.dynamic(Type::DynAny, members, place)
            }
            _ => Ok(()),
        }
    }

    fn dynamic(&mut self, ty: Type, members: &Map<String, Value>, place: &Place<'_>) -> Checked {
        if members.contains_key("call") {
            return self.call(members, Some(ty), place);
        }
        if members.contains_key("path") {
            return binding(members, place);
        }
        Err(place.fault(format!("has to be {}", wanted(ty))))
    }

    /// Checks a call; without `ty` it is the action of a press.
    fn call(&mut self, call: &Map<String, Value>, ty: Option<Type>, place: &Place<'_>) -> Checked {
        let name = call.get("call").and_then(Value::as_str).unwrap_or_default();
        let Some(function) = function_of(name) else {
            let names: Vec<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
            let why = format!("{:?} is no function of the catalog; there are {}", shown(name), names.join(", "));
            return Err(place.name("call").unknown(why));
        };
        gives(function, ty).map_err(|why| place.name("call").fault(why))?;
        let known = ["call", "args", "returnType"];
        if let Some(key) = call.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(place.name(key).fault("is no property of a call; there are call, args, returnType"));
        }
        let return_type = match function.gives {
            Gives::Text => "string",
            Gives::Flag => "boolean",
            Gives::Nothing => "void",
        };
        match call.get("returnType") {
            None => {}
            Some(Value::String(ty)) if ty == return_type || ty == "any" => {}
            Some(_) => return Err(place.name("returnType").fault(format!("{name} gives {return_type}"))),
        }
        let Some(Value::Object(args)) = call.get("args") else {
            return Err(place.name("args").fault(format!("is missing: an object of the arguments of {name}")));
        };
        let args_place = place.name("args");
        self.members(args, &[function.args], Some(&args_place))?;
        if !function.any_of.is_empty() && !function.any_of.iter().any(|name| args.contains_key(*name)) {
            return Err(args_place.fault(format!("{name} needs one of {}", function.any_of.join(", "))));
        }
        match (name, args.get("value")) {
            ("formatString", Some(Value::String(template))) => {
                let at = args_place.name("value");
                let parts = expression::parse(template).map_err(|why| at.fault(why))?;
                parts.iter().try_for_each(|part| self.any(part, &at))
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether a function results in the required type.
fn gives(function: &Function, ty: Option<Type>) -> Result<(), String> {
    let name = function.name;
    match (function.gives, ty) {
        (Gives::Nothing, None) => Ok(()),
        (_, None) => Err(format!("{name} does nothing when pressed; use openUrl, or an event")),
        (Gives::Nothing, Some(_)) => Err(format!("{name} runs only as the functionCall of an action")),
        (_, Some(Type::DynAny)) | (Gives::Text, Some(Type::DynText)) | (Gives::Flag, Some(Type::DynFlag)) => Ok(()),
        (_, Some(ty)) => Err(format!("{name} does not give {}", wanted(ty))),
    }
}

fn binding(members: &Map<String, Value>, place: &Place<'_>) -> Checked {
    match members.get("path") {
        Some(Value::String(path)) if members.len() == 1 => {
            Pointer::absolute(path).map(drop).map_err(|why| place.name("path").fault(why))
        }
        _ => Err(place.fault("a binding is {\"path\": \"/..\"} and nothing else")),
    }
}

/// Returns whether a value is probably intended to be of this type, among several types.
fn looks_like(ty: Type, value: &Value) -> bool {
    match (ty, value) {
        (Type::List(..), Value::Array(_)) | (Type::OneOf(_) | Type::Text, Value::String(_)) => true,
        (Type::Bound, Value::Object(members)) => members.contains_key("path"),
        (Type::Object(_), Value::Object(members)) => !members.contains_key("path"),
        _ => false,
    }
}

/// Describes a type.
fn wanted(ty: Type) -> String {
    let words = match ty {
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
        Type::List(of, ..) => return format!("a list of {}", wanted(*of)),
        Type::Object(props) => {
            let names: Vec<&str> = props.iter().map(|prop| prop.name).collect();
            return format!("an object with {}", names.join(", "));
        }
        Type::Either(types) => {
            let words: Vec<String> = types.iter().map(|ty| wanted(*ty)).collect();
            return words.join(" or ");
        }
    };
    words.to_owned()
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
