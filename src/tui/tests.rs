//! Stories of the pure core.
