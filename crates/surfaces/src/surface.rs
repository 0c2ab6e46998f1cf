//! A surface: its components and its data, written as compacted messages.

use std::collections::{BTreeMap, HashMap};

use plexus_protocol::Timestamp;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::catalog::Catalog;
use super::change::{Ask, Change, Create, Message, MessageRef};
use super::check::links;
use super::component::Component;
use super::error::{self, SurfaceError};
use super::limits::{COMPONENTS_BYTES_MAX, COMPONENTS_MAX, ROWS_MAX};
use super::model::{DataOp, DataUndo, Model};
use super::pointer::Pointer;
use super::size::Size;
use super::tree;

/// A surface, which an agent draws in a session. It is written as the compacted messages that create it.
#[derive(Clone, Debug)]
pub struct Surface {
    pub(crate) rev: u64,
    pub(crate) title: Option<String>,
    pub(crate) pinned: bool,
    pub(crate) at: Timestamp,
    pub(crate) ask: Option<Ask>,
    pub(crate) create: Create,
    pub(crate) catalog: Catalog,
    components: Vec<Component>,
    index: HashMap<String, usize>,
    bytes: usize,
    pub(crate) model: Model,
}

/// The data that reverts an edit of a surface.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    components: Vec<(usize, Option<Component>)>,
    data: Vec<DataUndo>,
}

impl Surface {
    pub(crate) fn new(create: Create, rev: u64, at: Timestamp) -> Self {
        Self {
            rev,
            title: None,
            pinned: false,
            at,
            ask: None,
            catalog: Catalog::from_id(&create.catalog),
            create,
            components: Vec::new(),
            index: HashMap::new(),
            bytes: 0,
            model: Model::default(),
        }
    }

    /// Reads the wire form of a surface, as [`Serialize`] writes it.
    pub fn from_wire(value: Value) -> Result<Self, SurfaceError> {
        let bad = |why: String| SurfaceError::Message { at: "surface".to_owned(), reason: error::message(&why) };
        let change: Change = serde_json::from_value(value).map_err(|error| bad(error.to_string()))?;
        Self::from_whole(&change).map_err(bad)
    }

    /// Makes the surface of a change without `base`.
    pub(crate) fn from_whole(change: &Change) -> Result<Self, String> {
        let Some((Message::Create(create), rest)) = change.messages.split_first() else {
            return Err("a whole surface begins with createSurface".to_owned());
        };
        if create.surface != change.surface {
            return Err("its messages are of another surface".to_owned());
        }
        let mut surface = Self::new(create.clone(), change.rev, change.at);
        surface.title.clone_from(&change.title);
        surface.pinned = change.pinned.unwrap_or_default();
        surface.ask = change.ask.clone().flatten();
        surface.fold(rest, change.rev)?;
        Ok(surface)
    }

    /// Applies messages that were checked by their sender.
    pub(crate) fn fold(&mut self, messages: &[Message], rev: u64) -> Result<Undo, String> {
        let mut undo = Undo::default();
        for message in messages {
            let done = match message {
                _ if message.surface() != self.name() => Err("a message is of another surface".to_owned()),
                Message::Components { components, .. } => {
                    let known = |raw: &Map<String, Value>| Component::new(raw.clone(), links(self.catalog, raw), rev);
                    let components = components.iter().map(known).collect();
                    self.put(components, &mut undo).map_err(|error| error.to_string())
                }
                Message::Data { path, op, .. } => {
                    self.model.apply(path, op).map(|back| undo.data.push(back)).map_err(|error| error.to_string())
                }
                Message::Create(_) | Message::Delete { .. } => Err("it creates or deletes in between".to_owned()),
            };
            if let Err(why) = done {
                self.revert(undo);
                return Err(why);
            }
        }
        Ok(undo)
    }

    /// Applies components and data, or neither.
    pub(crate) fn edit(
        &mut self,
        components: Vec<Component>,
        data: &[(Pointer, DataOp)],
    ) -> Result<Undo, SurfaceError> {
        let mut undo = Undo::default();
        let checks_tree = !components.is_empty();
        let mut done = self.put(components, &mut undo);
        if done.is_ok() && checks_tree {
            done = tree::check(&self.components, &self.index);
        }
        for (path, op) in data {
            if done.is_ok() {
                done = self.model.apply(path, op).map(|back| undo.data.push(back));
            }
        }
        match done.and_then(|()| self.lists_fit()) {
            Ok(()) => Ok(undo),
            Err(error) => {
                self.revert(undo);
                Err(error)
            }
        }
    }

    /// Refuses lists with too many rows, if a table or a tree of files is bound to one.
    fn lists_fit(&self) -> Result<(), SurfaceError> {
        for component in &self.components {
            let key = match component.kind.as_str() {
                "Table" => "rows",
                "FileTree" => "entries",
                _ => continue,
            };
            let path = component.raw.get(key).and_then(|list| list.get("path")).and_then(Value::as_str);
            let path = path.filter(|path| path.starts_with('/')).and_then(|path| Pointer::absolute(path).ok());
            let list = path.and_then(|path| self.data_at(&path)).and_then(Value::as_array);
            if list.is_some_and(|list| list.len() > ROWS_MAX) {
                let part = format!("{key} of {} {:?}", component.kind, error::excerpt(&component.id));
                return Err(SurfaceError::limit(
                    part,
                    ROWS_MAX,
                    "set a shorter list, with the latest or the most important",
                ));
            }
        }
        Ok(())
    }

    fn put(&mut self, components: Vec<Component>, undo: &mut Undo) -> Result<(), SurfaceError> {
        for component in components {
            let bytes = self.bytes + component.bytes;
            match self.index.get(&component.id) {
                Some(&at) => {
                    let mut component = component;
                    if component.raw == self.components[at].raw {
                        component.changed = self.components[at].changed;
                    }
                    self.bytes = bytes.saturating_sub(self.components[at].bytes);
                    let old = std::mem::replace(&mut self.components[at], component);
                    undo.components.push((at, Some(old)));
                }
                None if self.components.len() >= COMPONENTS_MAX => {
                    let hint = "show the surface again without the components that it does not use";
                    return Err(SurfaceError::limit("components of a surface", COMPONENTS_MAX, hint));
                }
                None => {
                    self.bytes = bytes;
                    self.index.insert(component.id.clone(), self.components.len());
                    undo.components.push((self.components.len(), None));
                    self.components.push(component);
                }
            }
        }
        if self.bytes > COMPONENTS_BYTES_MAX {
            let hint = "put long text and lists into data and bind them by path";
            return Err(SurfaceError::limit("bytes of components in a surface", COMPONENTS_BYTES_MAX, hint));
        }
        Ok(())
    }

    /// Marks the surface as new, at this revision.
    pub(crate) fn begin_at(&mut self, rev: u64) {
        self.rev = rev;
        self.components.iter_mut().for_each(|component| component.changed = rev);
    }

    /// Reverts the last edit.
    pub(crate) fn revert(&mut self, undo: Undo) {
        undo.data.into_iter().rev().for_each(|back| self.model.revert(back));
        for (at, old) in undo.components.into_iter().rev() {
            match old {
                Some(old) => {
                    self.bytes = self.bytes + old.bytes - self.components[at].bytes.min(self.bytes);
                    self.components[at] = old;
                }
                None => {
                    if let Some(new) = self.components.pop() {
                        self.bytes = self.bytes.saturating_sub(new.bytes);
                        self.index.remove(&new.id);
                    }
                }
            }
        }
    }

    /// Refuses an incomplete surface.
    pub(crate) fn check_whole(&self) -> Result<(), SurfaceError> {
        tree::check_whole(&self.components, &self.index)
    }

    /// Returns the change that has the whole surface.
    pub fn to_change(&self) -> Change {
        let surface = self.name().to_owned();
        let mut messages = vec![Message::Create(self.create.clone())];
        if !self.components.is_empty() {
            let components = self.components.iter().map(|component| component.raw.clone()).collect();
            messages.push(Message::Components { surface: surface.clone(), components });
        }
        if !self.model.is_empty() {
            let op = DataOp::Set(self.model.root().clone());
            messages.push(Message::Data { surface: surface.clone(), path: Pointer::default(), op });
        }
        Change {
            surface,
            rev: self.rev,
            base: None,
            title: self.title.clone(),
            pinned: Some(self.pinned),
            at: self.at,
            ask: self.ask.clone().map(Some),
            closed: false,
            messages,
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.create.surface
    }

    /// Returns the approximate size of the components and data in memory, in bytes. The sum is maintained, so a call is cheap.
    pub fn memory(&self) -> usize {
        let Size { bytes, values } = self.model.size();
        self.bytes + bytes + values * size_of::<Value>()
    }

    /// Returns the number of changes that made it.
    pub fn rev(&self) -> u64 {
        self.rev
    }

    /// Returns the title; without one the name is shown.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Returns whether the surface is pinned, so that it stays after the run that drew it.
    pub fn pinned(&self) -> bool {
        self.pinned
    }

    /// Returns the time of the last change.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the question that is answered on the surface.
    pub fn ask(&self) -> Option<&Ask> {
        self.ask.as_ref()
    }

    /// Returns the identifier of the catalogue.
    pub fn catalog(&self) -> &str {
        &self.create.catalog
    }

    /// Returns the data model.
    pub fn data(&self) -> &Value {
        self.model.root()
    }

    /// Iterates over the components as the agent sent them, in the order in which they were first named.
    pub fn components(&self) -> impl Iterator<Item = &Map<String, Value>> {
        self.components.iter().map(|component| &component.raw)
    }

    /// Returns the approximate size of the surface as JSON, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes + self.model.size().bytes
    }

    /// Returns whether the basic catalogue of A2UI suffices for the surface.
    pub fn is_basic(&self) -> bool {
        self.catalog != Catalog::Other
            && self.components.iter().all(|component| Catalog::Basic.spec(&component.kind).is_some())
    }

    /// Returns the surface with these values in its data, each at its JSON Pointer; values that do not fit are left out.
    pub fn with_inputs(&self, inputs: &BTreeMap<String, Value>) -> Self {
        let mut surface = self.clone();
        for (pointer, value) in inputs {
            if let Ok(path) = Pointer::absolute(pointer) {
                // A value that does not fit is not applied.
                let _ = surface.model.apply(&path, &DataOp::Set(value.clone()));
            }
        }
        surface
    }

    pub(crate) fn component(&self, id: &str) -> Option<&Component> {
        self.index.get(id).and_then(|at| self.components.get(*at))
    }

    pub(crate) fn data_at(&self, path: &Pointer) -> Option<&Value> {
        self.model.get(path)
    }
}

impl Serialize for Surface {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<'a> {
            surface: &'a str,
            rev: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            title: Option<&'a str>,
            pinned: bool,
            at: Timestamp,
            #[serde(skip_serializing_if = "Option::is_none")]
            ask: Option<&'a Ask>,
            messages: Messages<'a>,
        }
        let wire = Wire {
            surface: self.name(),
            rev: self.rev,
            title: self.title(),
            pinned: self.pinned,
            at: self.at,
            ask: self.ask(),
            messages: Messages(self),
        };
        wire.serialize(serializer)
    }
}

/// The compacted messages.
struct Messages<'a>(&'a Surface);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let surface = self.0;
        let mut seq = serializer.serialize_seq(None)?;
        seq.serialize_element(&MessageRef::Create(&surface.create))?;
        if !surface.components.is_empty() {
            let components: Vec<&Map<String, Value>> = surface.components().collect();
            seq.serialize_element(&MessageRef::Components(surface.name(), &components))?;
        }
        if !surface.model.is_empty() {
            seq.serialize_element(&MessageRef::Set(surface.name(), &Pointer::default(), surface.data()))?;
        }
        seq.end()
    }
}
