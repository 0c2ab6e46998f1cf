//! Whatever a runtime says, in the dialect `acp`.
#![no_main]

plexus_fuzz::target!("acp");
