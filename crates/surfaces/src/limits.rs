//! Limits of a surface and of the cost of reading it. Above them, a call of an agent fails, and the message gives the fix.

/// Maximum number of surfaces of a session.
pub const SURFACES_MAX: usize = 16;
/// Maximum number of components of a surface.
pub const COMPONENTS_MAX: usize = 256;
/// Maximum depth of the component tree, and of a JSON value.
pub const DEPTH_MAX: usize = 50;
/// Maximum size of the data model of a surface as JSON, in bytes.
pub const DATA_MAX: usize = 4 << 20;
/// Maximum number of values in the data model of a surface; an object counts as eight, because of the memory of its map.
pub const VALUES_MAX: usize = 1 << 18;
/// Maximum size of the data of one change as JSON, in bytes.
pub const DATA_PART_MAX: usize = 1 << 20;
/// Maximum size of the components of one change as JSON, in bytes.
pub const COMPONENTS_PART_MAX: usize = 64 << 10;
/// Maximum size of all components of a surface as JSON, in bytes: one page of `ui_html` and other components.
pub const COMPONENTS_BYTES_MAX: usize = (1 << 20) + (256 << 10);
/// Maximum length of a string, in bytes.
pub const STRING_MAX: usize = 1 << 20;
/// Maximum length of a title, in characters.
pub const TITLE_MAX: usize = 200;
/// Maximum length of the name of a surface or a component, in characters.
pub const NAME_MAX: usize = 64;
/// Maximum length of a JSON Pointer, in bytes.
pub const POINTER_MAX: usize = 1024;
/// Maximum number of rows of a table, and of entries of a file tree.
pub const ROWS_MAX: usize = 10_000;
/// Maximum number of changes of a surface that screens get in a second; further ones are merged.
pub const UPDATES_A_SECOND: u32 = 10;
/// Maximum length of a regular expression, in bytes. All run in linear time.
pub const REGEX_MAX: usize = 1_000;
/// Maximum number of function calls of one resolution.
pub const CALLS_MAX: usize = 1_000;
/// Maximum number of items of a template that are drawn.
pub const ITEMS_MAX: usize = 1_000;
/// Maximum size of the inputs of an action, in bytes.
pub const INPUTS_MAX: usize = 64 << 10;
/// Maximum size of the plain form of a surface, in bytes.
pub const TEXT_MAX: usize = 64 << 10;

/// Maximum length of a template of `formatString`, in bytes.
pub(crate) const TEMPLATE_MAX: usize = 64 << 10;
/// Maximum number of bytes that one resolution may copy or make.
pub(crate) const COPIES_MAX: usize = 8 << 20;
/// Maximum depth of nested calls that are evaluated.
pub(crate) const CALL_DEPTH_MAX: usize = 50;
/// Maximum number of components that the plain form of a surface visits: templates in templates multiply.
pub(crate) const VISITS_MAX: usize = 4_000;
/// Maximum number of paths to a component that are checked for an action.
pub(crate) const WAYS_MAX: usize = 4_096;
/// Maximum number of names of closed surfaces whose revision is stored.
pub(crate) const CLOSED_MAX: usize = 64;
