//! Whatever a runtime says, in the dialect `codelia`.
#![no_main]

plexus_fuzz::target!("codelia");
