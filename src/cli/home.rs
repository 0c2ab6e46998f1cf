//! The state folder, and the way in which a command finds its gateway.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use etcetera::base_strategy::BaseStrategy as _;
use serde::{Deserialize, Serialize};

use super::failure::{CommandFailure, NO_GATEWAY, NOT_PERMITTED};

/// The name of the configuration in the state folder, which is used by default.
pub(crate) const CONFIG_FILE: &str = "plexus.toml";
/// Time for the gateway to respond to the health check; a slower one is reported as not responding.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of bytes of a response that are read for its proof.
const RESPONSE_MAX: usize = 256;

/// The state folder.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    dir: PathBuf,
}

/// The content of `gateway.json`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) pid: u32,
    #[serde(default)]
    pub(crate) started_at: String,
    #[serde(default)]
    pub(crate) version: String,
    /// The secret of the gateway's proof.
    #[serde(default, skip_serializing)]
    pub(crate) proof: String,
}

/// The state of the gateway of a state folder.
#[derive(Debug)]
pub(crate) enum GatewayState {
    Up(Running),
    /// No gateway is running, for this reason.
    Down(String),
}

impl Home {
    /// `$PLEXUS_HOME`, or `plexus/` in the platform's data folder. It need not exist.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let dir = match std::env::var_os("PLEXUS_HOME").filter(|dir| !dir.is_empty()) {
            Some(dir) => std::env::current_dir().context("the current folder")?.join(dir),
            None => {
                let base = etcetera::base_strategy::choose_native_strategy().map_err(|error| {
                    CommandFailure::plain(format!(
                        "no home folder ({error}): set PLEXUS_HOME to a folder that belongs to you"
                    ))
                })?;
                base.data_dir().join("plexus")
            }
        };
        Ok(Self { dir })
    }

    /// The state folder at this path.
    pub(crate) fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates the folder with access for its owner only.
    pub(crate) fn create(&self) -> anyhow::Result<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        if !self.dir.is_dir() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(|error| {
                CommandFailure::plain(format!(
                    "cannot make {}: {error}; set PLEXUS_HOME to another folder",
                    self.dir.display()
                ))
            })?;
        }
        Ok(())
    }

    /// The local admin token.
    pub(crate) fn token(&self) -> anyhow::Result<String> {
        let file = self.dir.join("token");
        match std::fs::read_to_string(&file) {
            Ok(token) => Ok(token.trim().to_owned()),
            Err(error) => {
                let fix = "run this as the user who runs the gateway, or with its PLEXUS_HOME";
                Err(CommandFailure::new(NOT_PERMITTED, format!("cannot read {}: {error}; {fix}", file.display()))
                    .into())
            }
        }
    }

    /// Finds the gateway by its file, its process, and its proof that it wrote the file. All commands find it with this function, so none
    /// sends a token to another program on the port.
    pub(crate) async fn gateway(&self) -> anyhow::Result<GatewayState> {
        let file = self.dir.join("gateway.json");
        let text = match std::fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(GatewayState::Down(format!("there is no gateway.json in {}", self.dir.display())));
            }
            Err(error) => {
                let message =
                    format!("cannot read {}: {error}; run this as the user who runs the gateway", file.display());
                return Err(CommandFailure::new(NOT_PERMITTED, message).into());
            }
        };
        let Ok(running) = serde_json::from_slice::<Running>(&text) else {
            return Ok(GatewayState::Down(format!("{} is damaged", file.display())));
        };
        if !is_running(running.pid) {
            return Ok(GatewayState::Down(format!("process {} of {} has ended", running.pid, file.display())));
        }
        // No token is sent before the proof: another program on the port gets only a challenge.
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let http = http.timeout(HEALTH_TIMEOUT).build()?;
        let challenge = plexus::auth::challenge()?;
        let request = http.get(format!("{}/healthz?challenge={challenge}", running.url.trim_end_matches('/')));
        let answer = match request.send().await {
            Ok(answer) if answer.status().is_success() => answer,
            Ok(answer) => return Ok(GatewayState::Down(format!("{} answers {}", running.url, answer.status()))),
            Err(_) => return Ok(GatewayState::Down(format!("{} does not answer", running.url))),
        };
        if running.proof.is_empty() {
            let message = "has a version that cannot prove its identity: stop it, and start this one";
            return Ok(GatewayState::Down(format!("the gateway at {} {message}", running.url)));
        }
        let bytes = read_start(answer).await;
        if plexus::auth::Proof::from_secret(&running.proof)
            .holds(&challenge, bytes.trim().strip_prefix("ok ").unwrap_or_default())
        {
            return Ok(GatewayState::Up(running));
        }
        Ok(GatewayState::Down(format!(
            "another program is listening at {}, the address in {}",
            running.url,
            file.display()
        )))
    }

    /// The running gateway.
    pub(crate) async fn running(&self) -> anyhow::Result<Running> {
        match self.gateway().await? {
            GatewayState::Up(running) => Ok(running),
            GatewayState::Down(reason) => {
                let message = format!("no gateway is running: {reason}; start one with `plexus serve`");
                Err(CommandFailure::new(NO_GATEWAY, message).into())
            }
        }
    }
}

/// The user's home folder.
pub(crate) fn user_home() -> anyhow::Result<PathBuf> {
    etcetera::home_dir().map_err(|error| {
        CommandFailure::plain(format!("no home folder ({error}): set HOME to a folder that belongs to you"))
    })
}

/// Reads the beginning of a response, which may be endless if another program responds.
async fn read_start(mut answer: reqwest::Response) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < RESPONSE_MAX
        && let Ok(Some(more)) = answer.chunk().await
    {
        bytes.extend_from_slice(&more);
    }
    bytes.truncate(RESPONSE_MAX);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_running(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| match rustix::process::test_kill_process(pid) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stale_gateway_file_is_not_a_gateway() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let down_reason = |state| match state {
            GatewayState::Down(reason) => reason,
            GatewayState::Up(running) => panic!("{running:?}"),
        };
        assert!(down_reason(home.gateway().await.unwrap()).contains("no gateway.json"));
        let file = dir.path().join("gateway.json");
        std::fs::write(&file, "{").unwrap();
        assert!(down_reason(home.gateway().await.unwrap()).contains("damaged"));
        // A process that does not exist: a child that has ended and was reaped.
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        std::fs::write(&file, format!(r#"{{"url":"http://127.0.0.1:1","pid":{pid}}}"#)).unwrap();
        assert!(down_reason(home.gateway().await.unwrap()).contains("has ended"));
        // A live process, and a port on which nothing listens.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let own = std::process::id();
        std::fs::write(&file, format!(r#"{{"url":"http://127.0.0.1:{port}","pid":{own}}}"#)).unwrap();
        assert!(down_reason(home.gateway().await.unwrap()).contains("does not answer"));
        let failure = home.running().await.unwrap_err();
        assert_eq!(failure.downcast_ref::<CommandFailure>().unwrap().code, NO_GATEWAY);
    }
}
