//! The surfaces of a session: the commands of the agent, and the application of their changes.

use std::collections::BTreeMap;

use plexus_protocol::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use plexus_protocol::api::surfaces::{DataChange, SurfaceAction};

use super::act::Action;
use super::catalog::{Catalog, PLEXUS_CATALOG};
use super::change::{Ask, Change, Create, Message, data_op};
use super::check;
use super::component::Component;
use super::error::{self, ActionError, SurfaceError, excerpt};
use super::limits::{
    CLOSED_MAX, COMPONENTS_MAX, COMPONENTS_PART_MAX, DATA_PART_MAX, NAME_MAX, STRING_MAX, SURFACES_MAX, TITLE_MAX,
};
use super::model::DataOp;
use super::pointer::Pointer;
use super::size::{Size, check_value};
use super::surface::{Surface, Undo};

/// The arguments of `ui_show`, which creates a surface or replaces it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// The surface.
    pub surface: String,
    /// The title.
    pub title: Option<String>,
    /// The identifier of the catalogue; Plexus's own if it is absent.
    pub catalog: Option<String>,
    /// The components; one has the id `root`.
    pub components: Vec<Map<String, Value>>,
    /// The data model.
    pub data: Option<Map<String, Value>>,
    /// The pinned state; unchanged if it is absent.
    pub pin: Option<bool>,
}

/// The arguments of `ui_update`, which changes a part of a surface.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// The surface.
    pub surface: String,
    /// New components, or replacements of those with the same id.
    #[serde(default)]
    pub components: Vec<Map<String, Value>>,
    /// The changes of the data model, in order.
    #[serde(default)]
    pub data: Vec<DataChange>,
    /// The revision that the surface must have.
    pub expect_rev: Option<u64>,
    /// A new title.
    pub title: Option<String>,
}

/// The arguments of `ui_html`, which makes a surface of one page.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Html {
    /// The surface.
    pub surface: String,
    /// The title.
    pub title: Option<String>,
    /// The page.
    pub html: String,
    /// The text that is shown instead by clients without pages.
    pub text: String,
    /// The events that the page may send.
    pub actions: Option<Vec<String>>,
    /// The height in pixels.
    pub height: Option<u32>,
    /// The pinned state; unchanged if it is absent.
    pub pin: Option<bool>,
}

/// The effect of a change on a state that follows the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The change was applied.
    Applied,
    /// The change was known already.
    Known,
    /// An earlier change is missing: the whole state has to be requested again.
    Gap,
}

/// The surfaces of a session, by name.
#[derive(Clone, Debug, Default)]
pub struct SurfaceSet {
    surfaces: BTreeMap<String, Surface>,
    /// Revisions of closed surfaces: a new one of the same name continues from there, so that its changes are not mistaken for old ones.
    closed: BTreeMap<String, u64>,
}

impl SurfaceSet {
    /// Reads the list of surfaces of a snapshot, in the form of [`Serialize`].
    pub fn from_wire(surfaces: Vec<Value>) -> Result<Self, SurfaceError> {
        let mut set = Self::default();
        for surface in surfaces {
            let surface = Surface::from_wire(surface)?;
            set.surfaces.insert(surface.name().to_owned(), surface);
        }
        Ok(set)
    }

    /// Returns a surface.
    pub fn get(&self, name: &str) -> Option<&Surface> {
        self.surfaces.get(name)
    }

    /// Iterates over all surfaces, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Surface> {
        self.surfaces.values()
    }

    /// Returns whether there are no surfaces.
    pub fn is_empty(&self) -> bool {
        self.surfaces.is_empty()
    }

    /// Returns the approximate size of all surfaces in memory, in bytes.
    pub fn memory(&self) -> usize {
        self.iter().map(Surface::memory).sum()
    }

    /// Creates a surface, or replaces it.
    pub fn show(&mut self, show: Show, at: Timestamp) -> Result<Change, SurfaceError> {
        let Show { surface, title, catalog, components, data, pin } = show;
        let data = data.map(|data| vec![(Pointer::default(), DataOp::Set(Value::Object(data)))]).unwrap_or_default();
        let catalog = catalog.unwrap_or_else(|| PLEXUS_CATALOG.to_owned());
        let create = Create { surface, catalog, theme: None, send_data_model: false };
        let mut new = self.made(create, at)?;
        let components = checked(&new, components, new.rev, false)?;
        part_fits(&data)?;
        new.edit(components, &data)?;
        new.check_whole()?;
        self.replace(new, title, pin)
    }

    /// Makes a surface of a page.
    pub fn html(&mut self, html: Html, at: Timestamp) -> Result<Change, SurfaceError> {
        let Html { surface, title, html, text, actions, height, pin } = html;
        if text.trim().is_empty() {
            let why = "has to say what the page shows: it stands where no page can be drawn".to_owned();
            return Err(SurfaceError::Component { at: "text".to_owned(), reason: why });
        }
        if html.len() + text.len() > STRING_MAX {
            return Err(SurfaceError::limit("bytes of a page and its text", STRING_MAX, "make the page smaller"));
        }
        let mut raw = Map::new();
        for (key, value) in
            [("id", json!("root")), ("component", json!("Html")), ("html", json!(html)), ("text", json!(text))]
        {
            raw.insert(key.to_owned(), value);
        }
        raw.extend(actions.map(|actions| ("actions".to_owned(), json!(actions))));
        raw.extend(height.map(|height| ("height".to_owned(), json!(height))));
        let create = Create { surface, catalog: PLEXUS_CATALOG.to_owned(), theme: None, send_data_model: false };
        let mut new = self.made(create, at)?;
        let links = check::component(new.catalog, 0, &raw, true)?;
        new.edit(vec![Component::new(raw, links, new.rev)], &[])?;
        self.replace(new, title, pin)
    }

    /// Changes a part of a surface. If it fails, nothing has changed.
    pub fn update(&mut self, update: Update, at: Timestamp) -> Result<Change, SurfaceError> {
        let Update { surface: name, components, data, expect_rev, title } = update;
        let surface = self.known(&name)?;
        if let Some(now) = expect_rev.and(Some(surface.rev)).filter(|now| expect_rev != Some(*now)) {
            return Err(SurfaceError::Stale { now });
        }
        if components.is_empty() && data.is_empty() && title.is_none() {
            return Err(SurfaceError::Empty);
        }
        title.as_deref().map_or(Ok(()), title_fits)?;
        let data = data.into_iter().map(|one| {
            let path = Pointer::absolute(&one.path).map_err(|why| SurfaceError::data(&one.path, why))?;
            let op = data_op(one.value, one.append).map_err(|why| SurfaceError::data(&one.path, why))?;
            Ok((path, op))
        });
        let data = data.collect::<Result<Vec<_>, SurfaceError>>()?;
        part_fits(&data)?;
        let raws = components.clone();
        let components = checked(surface, components, surface.rev + 1, false)?;
        surface.edit(components, &data)?;
        let mut messages = Vec::new();
        if !raws.is_empty() {
            messages.push(Message::Components { surface: name.clone(), components: raws });
        }
        messages.extend(data.into_iter().map(|(path, op)| Message::Data { surface: name.clone(), path, op }));
        let title = title.filter(|title| surface.title.as_ref() != Some(title));
        surface.title = title.clone().or(surface.title.take());
        Ok(Change { title, messages, ..surface.next(at) })
    }

    /// Pins a surface, or unpins it, so that it ends with its run.
    pub fn pin(&mut self, name: &str, pinned: bool, at: Timestamp) -> Result<Change, SurfaceError> {
        let surface = self.known(name)?;
        surface.pinned = pinned;
        Ok(Change { pinned: Some(pinned), ..surface.next(at) })
    }

    /// Increments the revision without another change, after an action that is not stored in the surface.
    pub fn touch(&mut self, name: &str, at: Timestamp) -> Result<Change, SurfaceError> {
        Ok(self.known(name)?.next(at))
    }

    /// Opens a question on a surface.
    pub fn set_ask(&mut self, name: &str, ask: Ask, at: Timestamp) -> Result<Change, SurfaceError> {
        let surface = self.known(name)?;
        surface.ask = Some(ask.clone());
        Ok(Change { ask: Some(Some(ask)), ..surface.next(at) })
    }

    /// Removes the question on a surface, which was answered or withdrawn.
    pub fn clear_ask(&mut self, name: &str, at: Timestamp) -> Result<Change, SurfaceError> {
        let surface = self.known(name)?;
        surface.ask = None;
        Ok(Change { ask: Some(None), ..surface.next(at) })
    }

    /// Closes a surface.
    pub fn close(&mut self, name: &str, at: Timestamp) -> Result<Change, SurfaceError> {
        let change = self.known(name)?.next(at);
        self.surfaces.remove(name);
        self.note_closed(name, change.rev);
        Ok(Change { closed: true, messages: vec![Message::Delete { surface: name.to_owned() }], ..change })
    }

    /// Applies messages of A2UI 0.9, all or none. Each surface that they change has one change.
    pub fn messages(&mut self, messages: Vec<Value>, at: Timestamp) -> Result<Vec<Change>, SurfaceError> {
        let mut work = Work { before: BTreeMap::new(), undone: Vec::new() };
        for (number, raw) in messages.into_iter().enumerate() {
            if let Err(error) = self.message(number, raw, &mut work, at) {
                self.roll_back(work);
                return Err(error);
            }
        }
        let changes = work.before.into_iter().filter_map(|(name, before)| self.changed(&name, before, at));
        Ok(changes.collect::<Vec<_>>())
    }

    /// Applies a change that was made elsewhere.
    pub fn apply(&mut self, change: &Change) -> Fold {
        let name = &change.surface;
        let current = self.surfaces.get(name).map(|surface| surface.rev);
        if current.is_some_and(|current| change.rev <= current) {
            return Fold::Known;
        }
        if change.base.is_some() && change.base != current {
            return if change.closed && current.is_none() { Fold::Known } else { Fold::Gap };
        }
        if change.closed {
            self.surfaces.remove(name);
            self.note_closed(name, change.rev);
            return Fold::Applied;
        }
        let folded = match self.surfaces.get_mut(name) {
            Some(surface) if change.base.is_some() => surface.follow(change),
            _ => Surface::from_whole(change).map(|surface| {
                self.closed.remove(name);
                self.surfaces.insert(name.clone(), surface);
            }),
        };
        if folded.is_ok() { Fold::Applied } else { Fold::Gap }
    }

    /// Removes a surface without a change, because its state is unknown.
    pub(crate) fn forget(&mut self, name: &str) -> Option<Surface> {
        self.surfaces.remove(name)
    }

    /// Checks an action of a screen, and puts its inputs into the surface.
    pub fn act(&mut self, name: &str, request: &SurfaceAction, at: Timestamp) -> Result<Action, ActionError> {
        let surface = self.surfaces.get_mut(name).ok_or_else(|| ActionError::Surface(excerpt(name)))?;
        surface.act(request, at)
    }

    fn known(&mut self, name: &str) -> Result<&mut Surface, SurfaceError> {
        if !self.surfaces.contains_key(name) {
            name_fits(name)?;
        }
        let known = || self.surfaces.keys().cloned().collect();
        let unknown = SurfaceError::Unknown { surface: name.to_owned(), known: known() };
        self.surfaces.get_mut(name).ok_or(unknown)
    }

    /// Makes a surface that is not in the set yet.
    fn made(&self, create: Create, at: Timestamp) -> Result<Surface, SurfaceError> {
        name_fits(&create.surface)?;
        if Catalog::from_id(&create.catalog) == Catalog::Other {
            return Err(SurfaceError::Catalog(excerpt(&create.catalog)));
        }
        let old = self.surfaces.get(&create.surface);
        if old.is_none() && self.surfaces.len() >= SURFACES_MAX {
            return Err(SurfaceError::limit("surfaces of a session", SURFACES_MAX, "close one with ui_close first"));
        }
        let rev = old.map(|old| old.rev).or(self.closed.get(&create.surface).copied()).unwrap_or(0) + 1;
        Ok(Surface::new(create, rev, at))
    }

    fn replace(&mut self, mut new: Surface, title: Option<String>, pin: Option<bool>) -> Result<Change, SurfaceError> {
        title.as_deref().map_or(Ok(()), title_fits)?;
        let old = self.surfaces.get(new.name());
        new.title = title.or_else(|| old.and_then(|old| old.title.clone()));
        new.pinned = pin.or(old.map(|old| old.pinned)).unwrap_or_default();
        new.ask = old.and_then(|old| old.ask.clone());
        let change = new.to_change();
        self.closed.remove(new.name());
        self.surfaces.insert(new.name().to_owned(), new);
        Ok(change)
    }

    fn note_closed(&mut self, name: &str, rev: u64) {
        self.closed.insert(name.to_owned(), rev);
        if self.closed.len() > CLOSED_MAX
            && let Some(oldest) = self.closed.keys().find(|other| *other != name).cloned()
        {
            self.closed.remove(&oldest);
        }
    }
}

/// The messages of one call: the state before it, and how to revert them.
struct Work {
    before: BTreeMap<String, Before>,
    undone: Vec<Step>,
}

/// The state of a surface before the first message of a call that changes it.
struct Before {
    rev: Option<u64>,
    /// `true` if a message created it.
    created: bool,
    messages: Vec<Message>,
}

enum Step {
    Edited(String, Undo),
    /// The surface that the name had before, if any.
    Restore(String, Option<Box<Surface>>),
}

impl SurfaceSet {
    fn message(&mut self, number: usize, raw: Value, work: &mut Work, at: Timestamp) -> Result<(), SurfaceError> {
        let bad =
            |why: String| SurfaceError::Message { at: format!("messages/{number}"), reason: error::message(&why) };
        let mut message: Message = serde_json::from_value(raw).map_err(|error| bad(error.to_string()))?;
        let name = message.surface().to_owned();
        let rev = self.surfaces.get(&name).map(|surface| surface.rev);
        let started = |created| Before { rev, created, messages: Vec::new() };
        match &mut message {
            Message::Create(create) => {
                if rev.is_some() {
                    return Err(SurfaceError::Exists(name));
                }
                let theme = create.theme.clone().map(Value::Object);
                theme.as_ref().map_or(Ok(()), |theme| check_value(theme, 1)).map_err(bad)?;
                if theme.is_some_and(|theme| Size::measure(&theme).bytes > COMPONENTS_PART_MAX) {
                    return Err(SurfaceError::limit("bytes of a theme", COMPONENTS_PART_MAX, "leave it out"));
                }
                let new = self.made(create.clone(), at)?;
                work.undone.push(Step::Restore(name.clone(), None));
                self.surfaces.insert(name.clone(), new);
                work.before.entry(name).or_insert_with(|| started(true)).created = true;
            }
            Message::Delete { .. } => {
                // A surface that is absent has been deleted.
                if let Some(old) = self.surfaces.remove(&name) {
                    work.before.entry(name.clone()).or_insert_with(|| started(false));
                    work.undone.push(Step::Restore(name, Some(Box::new(old))));
                }
            }
            Message::Components { components, .. } => {
                let surface = self.known(&name)?;
                // An existing component may omit its type.
                for raw in components.iter_mut().filter(|raw| !raw.contains_key("component")) {
                    let id = raw.get("id").and_then(Value::as_str).unwrap_or_default();
                    if let Some(old) = surface.component(id) {
                        raw.insert("component".to_owned(), Value::String(old.kind.clone()));
                    }
                }
                let checked = checked(surface, components.clone(), surface.rev + 1, false)?;
                let undo = surface.edit(checked, &[])?;
                work.undone.push(Step::Edited(name.clone(), undo));
                work.before.entry(name).or_insert_with(|| started(false)).messages.push(message);
            }
            Message::Data { path, op, .. } => {
                let surface = self.known(&name)?;
                let data = [(path.clone(), op.clone())];
                part_fits(&data)?;
                let undo = surface.edit(Vec::new(), &data)?;
                work.undone.push(Step::Edited(name.clone(), undo));
                work.before.entry(name).or_insert_with(|| started(false)).messages.push(message);
            }
        }
        Ok(())
    }

    fn roll_back(&mut self, work: Work) {
        for step in work.undone.into_iter().rev() {
            match step {
                Step::Edited(name, undo) => {
                    if let Some(surface) = self.surfaces.get_mut(&name) {
                        surface.revert(undo);
                    }
                }
                Step::Restore(name, Some(old)) => drop(self.surfaces.insert(name, *old)),
                Step::Restore(name, None) => drop(self.surfaces.remove(&name)),
            }
        }
    }

    /// Makes the change of one surface by the messages of a call.
    fn changed(&mut self, name: &str, before: Before, at: Timestamp) -> Option<Change> {
        let closed = self.closed.get(name).copied();
        let Some(surface) = self.surfaces.get_mut(name) else {
            let rev = before.rev? + 1;
            self.note_closed(name, rev);
            let messages = vec![Message::Delete { surface: name.to_owned() }];
            return Some(Change { closed: true, messages, ..Change::empty(name, rev, at) });
        };
        if before.created {
            surface.begin_at(before.rev.or(closed).unwrap_or(0) + 1);
            let change = surface.to_change();
            self.closed.remove(name);
            return Some(change);
        }
        Some(Change { messages: before.messages, ..surface.next(at) })
    }
}

impl Surface {
    /// Increments the revision, and returns a change with only that.
    pub(crate) fn next(&mut self, at: Timestamp) -> Change {
        self.rev += 1;
        self.at = at;
        Change::empty(self.name(), self.rev, at)
    }

    /// Applies a change to this revision.
    fn follow(&mut self, change: &Change) -> Result<(), String> {
        self.fold(&change.messages, change.rev)?;
        self.title = change.title.clone().or(self.title.take());
        self.pinned = change.pinned.unwrap_or(self.pinned);
        self.ask = change.ask.clone().unwrap_or(self.ask.take());
        self.rev = change.rev;
        self.at = change.at;
        Ok(())
    }
}

impl Change {
    fn empty(name: &str, rev: u64, at: Timestamp) -> Self {
        Self {
            surface: name.to_owned(),
            rev,
            base: Some(rev - 1),
            title: None,
            pinned: None,
            at,
            ask: None,
            closed: false,
            messages: Vec::new(),
        }
    }
}

impl Serialize for SurfaceSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

fn name_fits(name: &str) -> Result<(), SurfaceError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    // A name is part of URL paths, where `.` and `..` have another meaning.
    let fits = (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(allowed) && name != "." && name != "..";
    if fits && check::component_id(name).is_ok() { Ok(()) } else { Err(SurfaceError::Name(excerpt(name))) }
}

fn title_fits(title: &str) -> Result<(), SurfaceError> {
    if title.chars().count() <= TITLE_MAX {
        return Ok(());
    }
    Err(SurfaceError::limit("characters of a title", TITLE_MAX, "shorten it"))
}

/// Checks components of one call against the catalogue of their surface.
fn checked(
    surface: &Surface,
    raws: Vec<Map<String, Value>>,
    rev: u64,
    html: bool,
) -> Result<Vec<Component>, SurfaceError> {
    if raws.len() > COMPONENTS_MAX {
        let hint = "use a template for what repeats, or a Table";
        return Err(SurfaceError::limit("components of a surface", COMPONENTS_MAX, hint));
    }
    let bytes: usize = raws.iter().map(|raw| Size::measure_object(raw).bytes).sum();
    if bytes > COMPONENTS_PART_MAX {
        let hint = "put long text and lists into data and bind them by path";
        return Err(SurfaceError::limit("bytes of components in one call", COMPONENTS_PART_MAX, hint));
    }
    let mut ids = std::collections::HashSet::new();
    let mut components = Vec::with_capacity(raws.len());
    for (number, raw) in raws.into_iter().enumerate() {
        let links = check::component(surface.catalog, number, &raw, html)?;
        let component = Component::new(raw, links, rev);
        if !ids.insert(component.id.clone()) {
            let at = format!("components/{number} ({}) id", excerpt(&component.kind));
            let why = format!("{:?} is the id of another component as well", excerpt(&component.id));
            return Err(SurfaceError::Component { at, reason: why });
        }
        components.push(component);
    }
    Ok(components)
}

/// Refuses more data than one call may have.
fn part_fits(data: &[(Pointer, DataOp)]) -> Result<(), SurfaceError> {
    let sizes = data.iter().map(|(_, op)| match op {
        DataOp::Set(value) => Size::measure(value).bytes,
        DataOp::Append(items) => items.iter().fold(Size::empty_array(), Size::with_item).bytes,
        DataOp::Remove => 0,
    });
    if sizes.sum::<usize>() <= DATA_PART_MAX {
        return Ok(());
    }
    Err(SurfaceError::limit(
        "bytes of data in one call",
        DATA_PART_MAX,
        "send it in parts: show first, then append by ui_update",
    ))
}
