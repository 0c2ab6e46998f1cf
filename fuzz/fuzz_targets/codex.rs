//! Whatever a runtime says, in the dialect `codex`.
#![no_main]

plexus_fuzz::target!("codex");
