//! The parent call of an entry: the text and the calls of a subagent are listed under the call that started the subagent.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Maximum number of tool calls that are remembered; an entry that names an older one as its parent has no parent.
const CALLS_MAX: usize = 4096;
/// Maximum length of an identifier, in bytes; a call with a longer one has no children.
const ID_MAX: usize = 256;
/// Maximum number of bytes of a title that are remembered.
const TITLE_MAX: usize = 256;
/// Maximum number of levels that are distinguished.
const DEPTH_MAX: usize = 8;

/// The member of `_meta` that names the parent, and its own member. ACP does not define one; this is the one of Claude's adapter.
const PARENT: (&str, &str) = ("claudeCode", "parentToolUseId");

/// Returns the parent tool call of an ACP update, by the update's `_meta`.
pub fn parent_from_meta<'de>(meta: impl Deserializer<'de>) -> Option<String> {
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "claudeCode")]
        agent: Agent,
    }
    #[derive(Deserialize)]
    struct Agent {
        #[serde(rename = "parentToolUseId")]
        parent: String,
    }
    let parent = Meta::deserialize(meta).ok()?.agent.parent;
    Some(parent).filter(|id| !id.is_empty() && id.len() <= ID_MAX)
}

/// Sets the parent of the update `update`, regardless of other members of its `_meta`.
pub fn set_parent(update: &mut Map<String, Value>, parent: &str) {
    let mut value = &mut *update.entry("_meta").or_insert(Value::Null);
    for name in [PARENT.0, PARENT.1] {
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        value = &mut value[name];
    }
    *value = parent.into();
}

/// The parent tool call of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParentCall<'a> {
    /// The identifier.
    pub id: &'a str,
    /// The title. It is not safe to display.
    pub title: &'a str,
    /// The number of calls above: 1 under a call without a parent.
    pub depth: usize,
}

#[derive(Clone, Debug)]
struct Call {
    /// The number of the call, counted from the first.
    number: u64,
    title: String,
    /// `true` if the call named its parent.
    decided: bool,
    /// The parent, and the parent's number.
    parent: Option<(String, u64)>,
}

/// The tool calls of a session, and their parents. Its size is bounded.
///
/// The first parent that a call names counts, if that call began before. So there is no circle, and a parent never changes; an entry that
/// names an unknown call has no parent.
#[derive(Clone, Debug, Default)]
pub(super) struct Nesting {
    calls: HashMap<String, Call>,
    order: VecDeque<String>,
    count: u64,
}

impl Nesting {
    /// Applies a tool call, or an update of one.
    pub(super) fn tool(&mut self, id: &str, parent: Option<&str>, title: Option<&str>) {
        if id.len() > ID_MAX {
            return;
        }
        // A new call has no number yet, so it is not found as its own parent.
        let known = parent.and_then(|id| Some((id.to_owned(), self.calls.get(id)?.number)));
        if !self.calls.contains_key(id) {
            if self.order.len() >= CALLS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.calls.remove(&oldest);
            }
            self.count += 1;
            self.order.push_back(id.to_owned());
            let call = Call { number: self.count, title: String::new(), decided: false, parent: None };
            self.calls.insert(id.to_owned(), call);
        }
        let Some(call) = self.calls.get_mut(id) else { return };
        if let Some(title) = title {
            title[..title.floor_char_boundary(TITLE_MAX)].clone_into(&mut call.title);
        }
        if parent.is_some() && !std::mem::replace(&mut call.decided, true) {
            call.parent = known.filter(|(_, number)| *number < call.number);
        }
    }

    /// Returns the parent of an entry that names this call as its parent.
    pub(super) fn parent_call(&self, parent: &str) -> Option<ParentCall<'_>> {
        let (id, call) = self.calls.get_key_value(parent)?;
        let above = |call: &Call| {
            let (id, number) = call.parent.as_ref()?;
            self.calls.get(id).filter(|above| above.number == *number)
        };
        let depth = std::iter::successors(Some(call), |call| above(call)).take(DEPTH_MAX).count();
        Some(ParentCall { id, title: &call.title, depth })
    }

    /// Returns the parent of the tool call.
    pub(super) fn tool_parent(&self, id: &str) -> Option<ParentCall<'_>> {
        let (parent, number) = self.calls.get(id)?.parent.as_ref()?;
        self.parent_call(parent).filter(|_| self.calls.get(parent).is_some_and(|call| call.number == *number))
    }
}
