//! Operation: health checks and metrics, the checks of `plexus doctor`, restarts and the output of runtimes.

pub mod admin;
pub mod doctor;
pub mod health;
