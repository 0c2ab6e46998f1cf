//! Plexus: one gateway between every coding agent that runs on your machines and every screen you own.
#![forbid(unsafe_code)]

pub mod auth;
pub mod config;
pub mod dialects;
pub mod metrics;
pub mod model;
pub mod router;
pub mod runtimes;
pub mod sessions;
pub mod store;

// --- placeholder from here to the end of the file: the roof comes with its own branch.

/// Placeholder of the roof.
pub struct Gateway;

/// Placeholder of why it did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another one runs here.
    #[error("a gateway runs already at {url} (process {pid})")]
    AlreadyRunning {
        /// Where.
        url: String,
        /// Which process.
        pid: u32,
    },
}

impl Gateway {
    /// Placeholder.
    pub async fn start(
        _config: config::Config,
        _home: std::path::PathBuf,
        _exe: std::path::PathBuf,
    ) -> Result<Self, StartError> {
        Ok(Self)
    }
    /// Placeholder.
    pub fn url(&self) -> String {
        "http://127.0.0.1:7420".into()
    }
    /// Placeholder.
    pub fn admin_code(&self) -> String {
        "code".into()
    }
    /// Placeholder.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        shutdown.await;
    }
}
