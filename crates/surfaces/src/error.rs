//! Faults in the input of an agent or a screen. Each message gives the fix in one line.

use thiserror::Error;

/// The reason why a command of an agent was refused; nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SurfaceError {
    /// The name is not valid for a surface.
    #[error("{0:?} is no name of a surface: use 1 to 64 of A-Z a-z 0-9 _ . -")]
    Name(String),
    /// There is no surface of this name.
    #[error("there is no surface {surface:?}{}: call ui_show first", suggestion(.known))]
    Unknown {
        /// The name.
        surface: String,
        /// The surfaces that there are.
        known: Vec<String>,
    },
    /// A `createSurface` names an existing surface.
    #[error("surface {0:?} exists already: update it, or delete it first")]
    Exists(String),
    /// The surface is at another revision than expected.
    #[error("stale, now {now}: look at the surface as it is and send the change again with expect_rev {now}")]
    Stale {
        /// The surface's revision.
        now: u64,
    },
    /// The catalogue is unknown.
    #[error("catalog {0:?} is not known: leave it out, or use plexus:catalog/1 or the basic catalog of A2UI 0.9")]
    Catalog(String),
    /// The catalogue lacks a component or a function.
    #[error("{at}: {problem}")]
    NotInCatalog {
        /// The place in the message.
        at: String,
        /// The unknown name, and the known ones.
        problem: String,
    },
    /// A component does not fit the catalogue.
    #[error("{at}: {reason}")]
    Component {
        /// The place in the message.
        at: String,
        /// The fault.
        reason: String,
    },
    /// The children of a component lead back to itself, are nested too deep, or do not exist.
    #[error("{at}: {reason}")]
    Tree {
        /// The place in the message.
        at: String,
        /// The fault.
        reason: String,
    },
    /// Data cannot be put at its path.
    #[error("data {path}: {reason}")]
    Data {
        /// The path.
        path: String,
        /// The fault.
        reason: String,
    },
    /// The message is not one of A2UI 0.9.
    #[error("{at}: {reason}")]
    Message {
        /// The place in the message.
        at: String,
        /// The fault.
        reason: String,
    },
    /// A limit of a surface or a session is exceeded.
    #[error("{part}: {max} at most; {hint}")]
    Limit {
        /// The part that is too large or too many.
        part: String,
        /// The limit.
        max: usize,
        /// A way to use less.
        hint: &'static str,
    },
    /// The call changes nothing.
    #[error("nothing to change: give components, data or title")]
    Empty,
}

impl SurfaceError {
    /// Returns a stable name of the kind of error, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Name(_) => "invalid_name",
            Self::Unknown { .. } => "unknown_surface",
            Self::Exists(_) => "exists",
            Self::Stale { .. } => "stale",
            Self::Catalog(_) => "unknown_catalog",
            Self::NotInCatalog { .. } => "not_in_catalog",
            Self::Component { .. } => "invalid_component",
            Self::Tree { .. } => "invalid_tree",
            Self::Data { .. } => "invalid_data",
            Self::Message { .. } => "invalid_message",
            Self::Limit { .. } => "limit",
            Self::Empty => "empty",
        }
    }

    pub(crate) fn data(path: impl ToString, reason: impl Into<String>) -> Self {
        Self::Data { path: excerpt(&path.to_string()), reason: reason.into() }
    }

    pub(crate) fn limit(part: impl Into<String>, max: usize, hint: &'static str) -> Self {
        Self::Limit { part: part.into(), max, hint }
    }
}

/// The reason why an action of a screen was refused; nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ActionError {
    /// There is no surface of this name.
    #[error("there is no surface {0:?}")]
    Surface(String),
    /// The component, or an input, changed after the revision that the screen shows.
    #[error("the surface has changed and is now at {now}: look at it again")]
    Stale {
        /// The surface's revision.
        now: u64,
    },
    /// No component of this name is shown.
    #[error("the surface shows no component {0:?} there")]
    Component(String),
    /// The component has no such event.
    #[error("component {component:?} has no event {event:?}")]
    Event {
        /// The component.
        component: String,
        /// The event.
        event: String,
    },
    /// The selected row or file does not belong to the component.
    #[error("{0}")]
    Item(String),
    /// No input of the surface can have given the value.
    #[error("input {path}: {reason}")]
    Input {
        /// The pointer.
        path: String,
        /// The fault.
        reason: String,
    },
    /// A check of the surface does not hold.
    #[error("{message}")]
    Check {
        /// The component whose check it is.
        component: String,
        /// The message of the agent.
        message: String,
    },
    /// The data exceeds a limit of the surface.
    #[error("{0}")]
    Limit(String),
}

impl ActionError {
    /// Returns a stable name of the kind of error, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Surface(_) => "unknown_surface",
            Self::Stale { .. } => "stale",
            Self::Component(_) => "unknown_component",
            Self::Event { .. } => "unknown_event",
            Self::Item(_) => "invalid_item",
            Self::Input { .. } => "invalid_input",
            Self::Check { .. } => "check_failed",
            Self::Limit(_) => "limit",
        }
    }
}

/// Maximum number of characters of an agent's text that a message repeats.
const SHOWN_CHARS: usize = 80;

/// Maximum length of a message that an agent wrote or that repeats its text, in characters.
const MESSAGE_CHARS: usize = 400;

/// Returns a text of an agent, fit for one line.
pub(crate) fn excerpt(text: &str) -> String {
    first_chars(text, SHOWN_CHARS)
}

/// Returns a whole message of an agent, fit for one line.
pub(crate) fn message(text: &str) -> String {
    first_chars(text, MESSAGE_CHARS)
}

fn first_chars(text: &str, count: usize) -> String {
    let mut out: String = text.chars().take(count).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(count).is_some() {
        out.push('…');
    }
    out
}

fn suggestion(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" (there are {})", names.join(", ")) }
}
