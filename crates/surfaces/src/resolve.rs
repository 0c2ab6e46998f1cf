//! Components with their values in place of their bindings, and their children, for drawing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::act::failed_check;
use super::component::Component;
use super::eval::{Budget, Scope, is_dynamic};
use super::limits::{CALLS_MAX, COPIES_MAX, ITEMS_MAX, VISITS_MAX};
use super::pointer::Pointer;
use super::surface::Surface;

/// A component as it is drawn.
#[derive(Debug)]
pub struct Resolved<'a> {
    /// The id.
    pub id: &'a str,
    /// The type, such as `Text`.
    pub kind: &'a str,
    /// The properties with values in place of paths and calls; null for a missing value. Actions and checks are as the agent sent them.
    pub props: BTreeMap<&'a str, Cow<'a, Value>>,
    /// The JSON Pointer to which `value` is bound, from the root of the data, and by which an action names the input.
    pub bound: Option<String>,
    /// The children, in order: those of a `Tabs` one for each tab, of a `Modal` the trigger and the content.
    pub children: Vec<ChildSlot>,
    /// The number of items of a template that are not among the children because of the limit.
    pub more: usize,
    /// The message of the first check that does not hold.
    pub failed_check: Option<String>,
}

/// A child of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildSlot {
    /// The component. One that does not exist yet is drawn as nothing.
    pub id: String,
    /// The list item of the child, as [`Surface::resolve`] takes it; empty outside of templates.
    pub instance: String,
}

/// Resolves components for one drawing of a surface, within a limit for all of them together: templates in templates
/// multiply, and values may be expensive. Above the limit there are no more components, and values are empty.
#[derive(Debug)]
pub struct ComponentResolver<'a> {
    surface: &'a Surface,
    budget: Budget,
    visits: usize,
}

impl<'a> ComponentResolver<'a> {
    /// Resolves a component like [`Surface::resolve`].
    pub fn resolve(&mut self, id: &str, instance: &str) -> Option<Resolved<'a>> {
        self.visits = self.visits.checked_sub(1)?;
        let base = Pointer::absolute(instance).ok()?;
        let component = self.surface.component(id)?;
        Some(self.surface.resolve_with(component, &base, &mut self.budget))
    }

    /// Returns whether the limit was reached.
    pub fn is_exhausted(&self) -> bool {
        self.visits == 0
    }
}

/// Properties that are not values.
const LITERAL_KEYS: [&str; 7] = ["id", "component", "children", "child", "action", "onSelect", "checks"];

impl Surface {
    /// Returns a component with its values at a list item (empty outside of templates).
    pub fn resolve(&self, id: &str, instance: &str) -> Option<Resolved<'_>> {
        let base = Pointer::absolute(instance).ok()?;
        let component = self.component(id)?;
        Some(self.resolve_with(component, &base, &mut Budget::default()))
    }

    /// Returns a resolver of the components for one drawing.
    pub fn resolver(&self) -> ComponentResolver<'_> {
        ComponentResolver { surface: self, budget: Budget::new(20 * CALLS_MAX, 2 * COPIES_MAX), visits: VISITS_MAX }
    }

    pub(crate) fn resolve_with<'a>(
        &'a self,
        component: &'a Component,
        base: &Pointer,
        budget: &mut Budget,
    ) -> Resolved<'a> {
        let mut props = BTreeMap::new();
        for (key, value) in &component.raw {
            // Literal rows and entries are data, even if they have a `path`.
            let list = value.is_array() && matches!(key.as_str(), "rows" | "entries");
            let plain = list || LITERAL_KEYS.contains(&key.as_str()) || !holds_dynamic(value);
            let value = if plain { Cow::Borrowed(value) } else { self.prop(value, base, budget) };
            props.insert(key.as_str(), value);
        }
        let (mut children, mut more) = (Vec::new(), 0);
        for link in &component.links {
            let Some(path) = &link.template else {
                let instance = if base.is_root() { String::new() } else { base.to_string() };
                children.push(ChildSlot { id: link.id.clone(), instance });
                continue;
            };
            let Ok(list) = Pointer::parse(path, base) else { continue };
            let items = self.data_at(&list).and_then(Value::as_array).map_or(0, Vec::len);
            more += items.saturating_sub(ITEMS_MAX);
            children.extend(
                (0..items.min(ITEMS_MAX))
                    .map(|item| ChildSlot { id: link.id.clone(), instance: list.item(item).to_string() }),
            );
        }
        let scope = Scope { data: self.data(), base };
        Resolved {
            id: &component.id,
            kind: &component.kind,
            props,
            bound: bound(component, base),
            children,
            more,
            failed_check: failed_check(component, scope, budget),
        }
    }

    fn prop<'a>(&'a self, value: &'a Value, base: &Pointer, budget: &mut Budget) -> Cow<'a, Value> {
        // The value at a path is borrowed, whatever its size.
        if let Some(path) = value.get("path").and_then(Value::as_str).filter(|_| value.get("call").is_none()) {
            let path = Pointer::parse(path, base).ok();
            return path.and_then(|path| self.data_at(&path)).map_or(Cow::Owned(Value::Null), Cow::Borrowed);
        }
        let scope = Scope { data: self.data(), base };
        Cow::Owned(deep(value, scope, budget))
    }
}

/// Returns the place to which the `value` of a component is bound.
fn bound(component: &Component, base: &Pointer) -> Option<String> {
    let path = component.raw.get("value")?.get("path")?.as_str()?;
    Pointer::parse(path, base).ok().map(|pointer| pointer.to_string())
}

/// Returns whether there is a path or a call anywhere in a property.
fn holds_dynamic(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_dynamic),
        Value::Object(members) => is_dynamic(value) || members.values().any(holds_dynamic),
        _ => false,
    }
}

/// Resolves the dynamic values in a property: labels of options, titles of tabs, values of series.
fn deep(value: &Value, scope: Scope<'_>, budget: &mut Budget) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(|item| deep(item, scope, budget)).collect()),
        Value::Object(members) if !is_dynamic(value) => {
            let members = members.iter().map(|(key, value)| (key.clone(), deep(value, scope, budget)));
            Value::Object(members.collect::<Map<String, Value>>())
        }
        _ => scope.owned(value, budget, 0),
    }
}
