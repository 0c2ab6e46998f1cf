//! The commands of the `plexus` program.

pub(crate) mod demo;
pub(crate) mod hold;
