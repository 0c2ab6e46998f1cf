//! One gateway between every coding agent that runs on your machines and every screen you own.
#![forbid(unsafe_code)]
