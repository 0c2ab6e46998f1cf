//! The `plexus` program.
#![forbid(unsafe_code)]

fn main() {}
