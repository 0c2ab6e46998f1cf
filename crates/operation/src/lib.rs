//! Operation: health checks and metrics, the checks of `plexus doctor`, restarts and the output of runtimes, and the lease that prevents
//! sleep.

pub mod admin;
pub mod awake;
pub mod doctor;
pub mod health;
