//! Whatever a runtime says, in the dialect `opencode2`.
#![no_main]

plexus_fuzz::target!("opencode2");
