//! The data model of a surface, which is changed in place and can revert a change; its size is maintained as a sum.

use serde_json::{Map, Value};

use super::error::{SurfaceError, excerpt};
use super::limits::{DATA_MAX, VALUES_MAX};
use super::pointer::{Pointer, index};
use super::size::{Size, check_data};

/// An operation at one place of a data model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DataOp {
    /// Replaces or creates the value there.
    Set(Value),
    /// Appends values to the list there, which is created if there is none.
    Append(Vec<Value>),
    /// Removes the key; an item of a list becomes null, so that the others keep their index.
    Remove,
}

/// A data model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    root: Value,
    size: Size,
}

/// The data that reverts one change of a data model.
#[derive(Debug)]
pub(crate) struct DataUndo {
    size: Size,
    reversal: Reversal,
}

#[derive(Debug)]
enum Reversal {
    Nothing,
    Root(Value),
    /// Restores the earlier value, or removes the value that was created.
    Put(Pointer, Option<Value>),
    /// Restores the earlier length of the list.
    Truncate(Pointer, usize),
}

impl Default for Model {
    fn default() -> Self {
        let root = Value::Object(Map::new());
        Self { size: Size::measure(&root), root }
    }
}

impl Model {
    pub(crate) fn root(&self) -> &Value {
        &self.root
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.root.as_object().is_some_and(Map::is_empty)
    }

    pub(crate) fn get(&self, path: &Pointer) -> Option<&Value> {
        get(&self.root, path)
    }

    /// Applies an operation at `path`.
    ///
    /// # Errors
    /// Returns the reason why it is refused; nothing has changed then.
    pub(crate) fn apply(&mut self, path: &Pointer, op: &DataOp) -> Result<DataUndo, SurfaceError> {
        let before = self.size;
        let done = match op {
            DataOp::Set(value) => {
                check_data(value, path)?;
                self.set(path, value.clone())
            }
            DataOp::Append(items) => {
                items.iter().try_for_each(|item| check_data(item, &path.item(0)))?;
                self.append(path, items)
            }
            DataOp::Remove => Ok(self.remove(path)),
        };
        let undo = DataUndo { size: before, reversal: done.map_err(|why| SurfaceError::data(path, why))? };
        let grew = self.size.bytes > before.bytes || self.size.values > before.values;
        let exceeded = if self.size.bytes > DATA_MAX {
            Some(("bytes of data in a surface", DATA_MAX))
        } else {
            (self.size.values > VALUES_MAX).then_some(("values of data in a surface", VALUES_MAX))
        };
        match exceeded.filter(|_| grew) {
            Some((part, max)) => {
                self.revert(undo);
                Err(SurfaceError::limit(part, max, "remove old data first, or show a summary"))
            }
            None => Ok(undo),
        }
    }

    /// Reverts the last change.
    pub(crate) fn revert(&mut self, undo: DataUndo) {
        match undo.reversal {
            Reversal::Nothing => {}
            Reversal::Root(value) => self.root = value,
            Reversal::Put(path, old) => {
                if let Some((last, above)) = path.segments().split_last()
                    && let Some(parent) = get_mut(&mut self.root, above)
                {
                    put_back(parent, last, old);
                }
            }
            Reversal::Truncate(path, len) => {
                if let Some(Value::Array(items)) = get_mut(&mut self.root, path.segments()) {
                    items.truncate(len);
                }
            }
        }
        self.size = undo.size;
    }

    fn set(&mut self, path: &Pointer, value: Value) -> Result<Reversal, String> {
        if path.is_root() {
            self.size = Size::measure(&value);
            return Ok(Reversal::Root(std::mem::replace(&mut self.root, value)));
        }
        self.insert(path, value)
    }

    fn append(&mut self, path: &Pointer, items: &[Value]) -> Result<Reversal, String> {
        match get_mut(&mut self.root, path.segments()) {
            Some(Value::Array(list)) => {
                let before = list.len();
                list.extend_from_slice(items);
                self.size = items.iter().fold(self.size, Size::with_item);
                Ok(Reversal::Truncate(path.clone(), before))
            }
            Some(Value::Null) | None => self.set(path, Value::Array(items.to_vec())),
            Some(_) => Err("append needs a list there; the value is none".to_owned()),
        }
    }

    fn remove(&mut self, path: &Pointer) -> Reversal {
        let Some((last, above)) = path.segments().split_last() else {
            let empty = Self::default();
            self.size = empty.size;
            return Reversal::Root(std::mem::replace(&mut self.root, empty.root));
        };
        let (old, less) = match get_mut(&mut self.root, above) {
            Some(Value::Object(members)) => {
                let Some(old) = members.remove(last) else { return Reversal::Nothing };
                let less = Size::measure(&old).plus(Size::measure_key(last));
                (old, less)
            }
            Some(Value::Array(items)) => {
                let Some(item) = index(last).and_then(|at| items.get_mut(at)) else { return Reversal::Nothing };
                let old = item.take();
                let less = Size::measure(&old);
                self.size = self.size.plus(Size::measure(&Value::Null));
                (old, less)
            }
            _ => return Reversal::Nothing,
        };
        self.size = self.size.minus(less);
        Reversal::Put(path.clone(), Some(old))
    }

    /// Puts a value at a path that is not empty, and creates the missing containers above it.
    fn insert(&mut self, path: &Pointer, value: Value) -> Result<Reversal, String> {
        let segments = path.segments();
        let before = self.size;
        if self.root.is_null() {
            self.root = Value::Object(Map::new());
            self.size = Size::measure(&self.root);
            return self.insert(path, value).map(|_| Reversal::Root(Value::Null)).inspect_err(|_| {
                self.root = Value::Null;
                self.size = before;
            });
        }
        let mut at = &mut self.root;
        for (depth, segment) in segments.iter().enumerate() {
            let rest = &segments[depth + 1..];
            let missing = match &*at {
                Value::Object(members) => members.get(segment).is_none_or(|old| old.is_null() || rest.is_empty()),
                Value::Array(items) => match index(segment) {
                    None => {
                        return Err(format!("{} is no index of the list; use a number, or append", excerpt(segment)));
                    }
                    Some(i) if i > items.len() => {
                        return Err(format!(
                            "the list has {} items, so its next index is {0}; use append",
                            items.len()
                        ));
                    }
                    Some(i) => items.get(i).is_none_or(|old| old.is_null() || rest.is_empty()),
                },
                _ => {
                    let above = path.prefix(depth);
                    return Err(format!(
                        "the value at {} is no object or list; set it as a whole",
                        excerpt(&above.to_string())
                    ));
                }
            };
            if missing {
                let made = wrapped(rest, value)?;
                let more = Size::measure(&made);
                let old = put(at, segment, made);
                self.size = match &old {
                    Some(old) => self.size.minus(Size::measure(old)).plus(more),
                    None if at.is_array() => self.size.plus(more).plus(Size { bytes: 1, values: 0 }),
                    None => self.size.plus(more).plus(Size::measure_key(segment)),
                };
                return Ok(Reversal::Put(path.prefix(depth + 1), old));
            }
            let next = match at {
                Value::Object(members) => members.get_mut(segment),
                Value::Array(items) => index(segment).and_then(|i| items.get_mut(i)),
                _ => None,
            };
            at = next.ok_or("the path leads nowhere")?;
        }
        Err("the path leads nowhere".to_owned())
    }
}

/// Returns `value` inside of the objects and lists that `segments` name; a number makes a list.
fn wrapped(segments: &[String], value: Value) -> Result<Value, String> {
    let mut made = value;
    for segment in segments.iter().rev() {
        made = match index(segment) {
            Some(0) => Value::Array(vec![made]),
            Some(_) => return Err("a new list begins at index 0; use append".to_owned()),
            None => Value::Object(Map::from_iter([(segment.clone(), made)])),
        };
    }
    Ok(made)
}

/// Puts a value into a container, at an existing index or the next one, and returns the earlier value.
fn put(container: &mut Value, segment: &str, value: Value) -> Option<Value> {
    match container {
        Value::Object(members) => members.insert(segment.to_owned(), value),
        Value::Array(items) => match index(segment).and_then(|at| items.get_mut(at)) {
            Some(item) => Some(std::mem::replace(item, value)),
            None => {
                items.push(value);
                None
            }
        },
        _ => None,
    }
}

fn put_back(container: &mut Value, segment: &str, old: Option<Value>) {
    match (container, old) {
        (container, Some(old)) => drop(put(container, segment, old)),
        (Value::Object(members), None) => drop(members.remove(segment)),
        (Value::Array(items), None) => drop(items.pop()),
        _ => {}
    }
}

/// Returns the value at a path.
pub(crate) fn get<'a>(root: &'a Value, path: &Pointer) -> Option<&'a Value> {
    path.segments().iter().try_fold(root, |at, segment| match at {
        Value::Object(members) => members.get(segment),
        Value::Array(items) => index(segment).and_then(|i| items.get(i)),
        _ => None,
    })
}

fn get_mut<'a>(root: &'a mut Value, segments: &[String]) -> Option<&'a mut Value> {
    segments.iter().try_fold(root, |at, segment| match at {
        Value::Object(members) => members.get_mut(segment),
        Value::Array(items) => index(segment).and_then(|i| items.get_mut(i)),
        _ => None,
    })
}
