//! The back door with the real holder: a stop leaves nobody behind.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use plexus::model::{Connect, RuntimeId, RuntimeSpec, RuntimeState};
use plexus::runtimes::{Runtimes, Settings};
use plexus::sessions::Launcher;

/// A condition that is waited for holds long before this, or never.
const SOON: Duration = Duration::from_secs(60);

fn sh(script: &str, dir: &std::path::Path) -> RuntimeSpec {
    let connect = Connect::Command(["sh", "-c", script].map(String::from).to_vec());
    RuntimeSpec::new(RuntimeId::trusted("t"), "acp", connect, dir)
}

fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_stop_ends_a_family_that_ignores_it_and_has_scattered() {
    let mut settings = Settings::new(env!("CARGO_BIN_EXE_plexus").into());
    settings.stop_stdin = Duration::from_millis(200);
    let runtimes = Runtimes::new(settings);
    let dir = tempfile::tempdir().unwrap();
    let stubborn = "trap '' TERM; setsid sh -c 'echo $$ >>pids; while :; do sleep 0.1; done' & \
        echo $$ >>pids; while :; do sleep 0.1; done";
    let link = runtimes.launch(sh(stubborn, dir.path())).unwrap();
    let pids = || std::fs::read_to_string(dir.path().join("pids")).unwrap_or_default();
    let both = async {
        while pids().lines().count() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, both).await.unwrap();
    let holder = link.info().pid.unwrap().to_string();
    assert!(pids().lines().all(lives) && lives(&holder));
    runtimes.shutdown().await;
    assert_eq!(link.info().state, RuntimeState::Exited);
    assert_eq!(link.info().problem.as_deref(), Some("killed by SIGKILL: it was stopped"));
    // Were the holder killed before it is done, the one that left the group would live on.
    assert!(!pids().lines().any(lives) && !lives(&holder));
}

#[tokio::test]
async fn the_holder_passes_on_how_it_ended() {
    let runtimes = Runtimes::new(Settings::new(env!("CARGO_BIN_EXE_plexus").into()));
    let dir = tempfile::tempdir().unwrap();
    for (script, how) in [("exit 7", "exited with code 7"), ("kill -ABRT $$", "killed by SIGABRT")] {
        let link = runtimes.launch(sh(script, dir.path())).unwrap();
        let mut info = link.watch();
        let ended = info.wait_for(|info| info.state == RuntimeState::Exited);
        let info = tokio::time::timeout(SOON, ended).await.unwrap().unwrap().clone();
        assert!(info.problem.as_deref().is_some_and(|problem| problem.starts_with(how)), "{info:?}");
    }
}
