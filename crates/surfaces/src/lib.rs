//! Surfaces, which an agent draws in a session (components and data of A2UI 0.9), their changes, and the actions of
//! users on them. State only: no I/O, no tasks, no clock but the one passed in.
//!
//! The gateway has a [`SurfaceSet`] for each session. Commands of the agent ([`SurfaceSet::show`],
//! [`SurfaceSet::update`] ..) check their arguments, change the set and return a [`Change`]: the body of the event
//! `surface_updated`. A client that follows the events applies them to a set of its own ([`SurfaceSet::apply`]) and has
//! the same bytes. [`SurfaceSet::act`] checks the actions of a screen. [`Surface::resolve`] and [`Surface::text`] are
//! for drawing.

mod act;
mod catalog;
mod change;
mod check;
mod component;
mod error;
mod eval;
mod expression;
mod follow;
mod form;
mod format;
mod functions;
mod json;
pub mod limits;
mod list_items;
mod merge;
mod model;
mod pointer;
mod resolve;
mod set;
mod size;
mod surface;
mod text;
mod tree;

pub use act::Action;
pub use catalog::{BASIC_CATALOG, PLEXUS_CATALOG, PLEXUS_SCHEMA};
pub use change::{Ask, Change};
pub use error::{ActionError, SurfaceError};
pub use follow::{Followed, SurfaceFollower};
pub use form::{FieldKind, Form, FormButton, FormField};
pub use functions::is_http;
pub use resolve::{ChildSlot, ComponentResolver, Resolved};
pub use set::{Fold, Html, Show, SurfaceSet, Update};
pub use surface::Surface;
pub use text::{cell_text, icon_text, number_text, row_order};

#[cfg(test)]
mod tests;
