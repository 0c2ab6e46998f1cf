//! The processes of the container image (`deploy/container`), run without a container engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::gateway::{PATIENCE, alive, exe, family};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/container");

struct Container {
    child: Child,
    env: Vec<(&'static str, String)>,
    _home: tempfile::TempDir,
}

impl Container {
    fn start() -> Self {
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let home = tempfile::tempdir().unwrap();
        let programs = Path::new(exe()).parent().unwrap().display().to_string();
        let env = vec![
            ("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap())),
            ("PLEXUS_HOME", home.path().display().to_string()),
            ("PLEXUS_LISTEN", format!("127.0.0.1:{}", free())),
            ("PLEXUS_FORWARD", free().to_string()),
        ];
        let mut command = Command::new(SCRIPT);
        command.arg("start").envs(env.clone()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap(), env, _home: home }
    }

    fn healthy(&self) -> bool {
        let mut command = Command::new(SCRIPT);
        command.arg("healthy").envs(self.env.clone()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().unwrap().success()
    }

    /// The forwarder's processes.
    fn forwarders(&self) -> Vec<u32> {
        let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        family(self.child.id()).into_iter().filter(|pid| name(pid).trim() == "socat").collect()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let left = family(self.child.id());
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in left {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
        }
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn container_forwarder_lives_with_the_gateway_and_its_loss_is_unhealthy() {
    let mut container = Container::start();
    until("the gateway is reached through the forwarder", || container.healthy());

    // A forwarder that does not answer is noticed, although the gateway is healthy.
    let first = container.forwarders();
    let kill = |signal: &str, pids: &[u32]| {
        for pid in pids {
            // socat has a child for each connection, which may have ended since.
            let told = Command::new("kill").arg(signal).arg(pid.to_string()).status().unwrap();
            assert!(told.success() || !alive(*pid), "{signal} {pid}");
        }
    };
    kill("-STOP", &first);
    assert!(!container.healthy(), "nothing comes in, and the container says that it is healthy");

    // A forwarder that ended is started again.
    kill("-KILL", &first);
    until("another forwarder", || container.forwarders().iter().any(|pid| !first.contains(pid)));
    until("the gateway is reached again", || container.healthy());

    let left = family(container.child.id());
    kill("-TERM", &[container.child.id()]);
    assert!(container.child.wait().unwrap().success(), "an orderly stop");
    until("nothing is left of the forwarder", || !left.iter().any(|pid| alive(*pid)));
}
