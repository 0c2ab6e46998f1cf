//! Tokens of agents. Each allows the tools of one session's agent to draw and ask in that session, and nothing else. It is in a file that
//! only this user can read, where `plexus mcp` finds it, and ends with the session.

use std::collections::HashMap;
use std::fs::{OpenOptions, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use parking_lot::RwLock;
use rustix::fs::OFlags;

use super::Auth;
use crate::token::{self, Hash};
use crate::{AuthError, Caller, Device, DeviceKind, Grant};
use plexus_protocol::{DeviceId, Scope, SessionId};

/// The folder of the tokens, in the state folder; a file's name is its session.
pub const AGENTS_FOLDER: &str = "ui";
/// Maximum size of a token file that is read, in bytes.
const FILE_MAX: u64 = 256;

/// The tokens, by their hashes: a lookup by hash does not depend on how much of a token is right.
#[derive(Default)]
pub(super) struct AgentTokens {
    devices: RwLock<HashMap<Hash, Arc<Device>>>,
}

impl AgentTokens {
    /// Reads the tokens of an earlier gateway, so that agents that outlived it continue with theirs.
    pub(super) fn open(home: &Path) -> Self {
        let this = Self::default();
        let Ok(files) = std::fs::read_dir(home.join(AGENTS_FOLDER)) else { return this };
        for file in files.filter_map(Result::ok) {
            let session = file.file_name().to_str().and_then(|name| name.parse::<SessionId>().ok());
            match session.and_then(|session| Some((read(&file.path())?, session))) {
                Some((secret, session)) => this.insert(&secret, &session),
                // Another user's file, or accessible to others.
                None => drop(std::fs::remove_file(file.path())),
            }
        }
        this
    }

    fn insert(&self, secret: &str, session: &SessionId) {
        let hash = token::hash(secret);
        let id = DeviceId::trusted(format!("agent_{session}"));
        let grant = Grant { sessions: Some(vec![session.clone()]), ..Grant::new(&[Scope::Ui]) };
        let device = Device::new(id, "the session's agent", DeviceKind::Agent, grant, HEXLOWER.encode(&hash));
        self.devices.write().insert(hash, Arc::new(device));
    }

    pub(super) fn check(&self, hash: &Hash) -> Option<Caller> {
        self.devices.read().get(hash).map(|device| Caller::proven(Arc::clone(device)))
    }

    pub(super) fn holds(&self, device: &Device) -> bool {
        self.devices.read().values().any(|known| known.token_sha256 == device.token_sha256)
    }

    fn forget(&self, session: &SessionId) -> bool {
        let is_limited_to =
            |device: &Device| device.grant.sessions.as_ref().is_some_and(|sessions| sessions.contains(session));
        let mut devices = self.devices.write();
        let before = devices.len();
        devices.retain(|_, device| !is_limited_to(device));
        devices.len() < before
    }
}

/// Returns the token in a file, if only this user can read it.
fn read(path: &Path) -> Option<String> {
    let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o077 != 0 {
        return None;
    }
    let mut text = String::new();
    file.take(FILE_MAX).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned()).filter(|secret| !secret.is_empty())
}

fn path(home: &Path, session: &SessionId) -> PathBuf {
    home.join(AGENTS_FOLDER).join(session.as_str())
}

impl Auth {
    /// Makes the token of a session's agent and writes it to its file; an existing one stays.
    ///
    /// # Errors
    /// [`AuthError::File`], [`AuthError::Random`].
    pub fn admit_agent(&self, session: &SessionId) -> Result<(), AuthError> {
        let (home, agents) = (&self.shared.home, &self.shared.agents);
        let (folder, file) = (home.join(AGENTS_FOLDER), path(home, session));
        if let Some(secret) = read(&file) {
            agents.insert(&secret, session);
            return Ok(());
        }
        let fail = |path: &Path, error: std::io::Error| AuthError::file(path, &error);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|error| fail(&folder, error))?;
        std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).map_err(|error| fail(&folder, error))?;
        let _ = std::fs::remove_file(&file);
        let secret = token::new_token()?;
        // A new file, so that no other process has it open.
        let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
        written.and_then(|mut file| file.write_all(secret.as_bytes())).map_err(|error| fail(&file, error))?;
        agents.insert(&secret, session);
        Ok(())
    }

    /// Removes the tokens of all agents except those of these sessions.
    pub fn keep_agents(&self, sessions: &[SessionId]) {
        let all: Vec<SessionId> = {
            let devices = self.shared.agents.devices.read();
            devices.values().flat_map(|device| device.grant.sessions.clone().unwrap_or_default()).collect()
        };
        all.iter().filter(|session| !sessions.contains(session)).for_each(|session| self.dismiss_agent(session));
    }

    /// Removes the token of a session's agent.
    pub fn dismiss_agent(&self, session: &SessionId) {
        if self.shared.agents.forget(session) {
            let _ = std::fs::remove_file(path(&self.shared.home, session));
            self.shared.count_revocation();
        }
    }
}
