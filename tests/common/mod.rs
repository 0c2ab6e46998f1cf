//! Helpers shared by the test binaries.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::panic
)]

pub mod acp_http;
pub mod agents;
pub mod browser;
pub mod cast;
pub mod decoder;
pub mod front;
pub mod gateway;
pub mod letter;
pub mod moments;
pub mod push_service;
pub mod repository;
pub mod secure;
pub mod terminal;
pub mod verdicts;

/// Cargo, for a test that builds something. Build scripts ask for variables that a test has and a build has not: with them, much
/// that is built already would be built once more, here and after.
pub fn cargo() -> std::process::Command {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    let of_this_test = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_", "CARGO_CRATE_", "OUT_DIR"];
    for (name, _) in std::env::vars().filter(|(name, _)| of_this_test.iter().any(|begin| name.starts_with(begin))) {
        cargo.env_remove(name);
    }
    cargo
}

/// For a test that changes or counts state of the whole process. Under `cargo test` the tests of a binary are threads of one
/// process: there this runs the test again in a process of its own and returns false. In that process, and under nextest, it
/// returns true.
///
/// # Panics
/// The test fails there, or is not found by the given name (module and function).
pub fn alone(test: &str) -> bool {
    const ALONE: &str = "PLEXUS_TEST_ALONE";
    if std::env::var_os("NEXTEST_RUN_ID").is_some() || std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    let out = again.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains("1 passed"), "{test}, in a process of its own:\n{said}");
    false
}
