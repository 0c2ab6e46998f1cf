//! Limits of a surface and of the cost of reading it. Beyond these, a call of an agent fails, and the message gives the fix.

/// Surfaces of a session at most.
pub const SURFACES_MAX: usize = 16;
/// Components of a surface at most.
pub const COMPONENTS_MAX: usize = 256;
/// Levels of the component tree, and of a JSON value, at most.
pub const DEPTH_MAX: usize = 50;
/// Bytes of JSON of the data model of a surface at most.
pub const DATA_MAX: usize = 4 << 20;
/// Values in the data model of a surface at most; an object counts as eight, for what its map takes in memory.
pub const VALUES_MAX: usize = 1 << 18;
/// Bytes of JSON of the data of one change at most.
pub const DATA_PART_MAX: usize = 1 << 20;
/// Bytes of JSON of the components of one change at most.
pub const COMPONENTS_PART_MAX: usize = 64 << 10;
/// Bytes of JSON of all components of a surface at most: one page of `ui_html` and what else stands there.
pub const COMPONENTS_BYTES_MAX: usize = (1 << 20) + (256 << 10);
/// Bytes of a string at most.
pub const STRING_MAX: usize = 1 << 20;
/// Characters of a title at most.
pub const TITLE_MAX: usize = 200;
/// Characters of the name of a surface or a component at most.
pub const NAME_MAX: usize = 64;
/// Bytes of a JSON Pointer at most.
pub const POINTER_MAX: usize = 1024;
/// Rows of a table, and entries of a file tree, at most.
pub const ROWS_MAX: usize = 10_000;
/// Changes of a surface that screens get in a second at most; what comes faster is merged.
pub const UPDATES_A_SECOND: u32 = 10;
/// Bytes of a regular expression at most. All run in linear time.
pub const REGEX_MAX: usize = 1_000;
/// Function calls of one resolution at most.
pub const CALLS_MAX: usize = 1_000;
/// Items of a template that are drawn at most.
pub const ITEMS_MAX: usize = 1_000;
/// Bytes of the inputs of an action at most.
pub const INPUTS_MAX: usize = 64 << 10;
/// Bytes of the plain form of a surface at most.
pub const TEXT_MAX: usize = 64 << 10;

/// Bytes of a template of `formatString` at most.
pub(crate) const TEMPLATE_MAX: usize = 64 << 10;
/// Bytes that one resolution may copy or make.
pub(crate) const COPIES_MAX: usize = 8 << 20;
/// Nested calls that are evaluated at most.
pub(crate) const CALL_DEPTH_MAX: usize = 50;
/// Components that the plain form of a surface visits at most: templates in templates multiply.
pub(crate) const VISITS_MAX: usize = 4_000;
/// Ways to a component that are looked at when an action is checked.
pub(crate) const WAYS_MAX: usize = 4_096;
/// Names of closed surfaces whose revision is kept.
pub(crate) const CLOSED_MAX: usize = 64;
