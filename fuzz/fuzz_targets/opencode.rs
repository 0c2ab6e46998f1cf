//! Whatever a runtime says, in the dialect `opencode`.
#![no_main]

plexus_fuzz::target!("opencode");
