//! Whatever a runtime says, in the dialect `gemini-mirror`.
#![no_main]

plexus_fuzz::target!("gemini-mirror");
