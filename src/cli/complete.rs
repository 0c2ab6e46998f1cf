//! Values that a shell completes: agents, sessions, runtimes and requests. The running gateway lists them.

use std::ffi::OsString;
use std::time::Duration;

use clap_complete::engine::CompletionCandidate;
use plexus::runtimes::{dialects, presets};

use super::client::Client;
use super::output::line;

/// Time for the gateway to respond; after it, a shell completes nothing.
const GATEWAY_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Maximum number of values offered; a longer list does not help.
const CANDIDATES_MAX: usize = 200;
/// Maximum length of a value's description, in characters.
const DESCRIPTION_MAX: usize = 60;

fn candidate(value: impl Into<OsString>, about: &str) -> CompletionCandidate {
    let about = line(about, DESCRIPTION_MAX);
    CompletionCandidate::new(value).help((!about.is_empty()).then(|| about.into()))
}

/// Queries the running gateway; returns the default value if there is none, or if it does not respond in time.
fn query_gateway<T: Default>(query: impl AsyncFnOnce(Client) -> anyhow::Result<T>) -> T {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return T::default() };
    let answer = runtime.block_on(async {
        let found = async { query(Client::find().await?).await };
        tokio::time::timeout(GATEWAY_TIMEOUT, found).await.ok()?.ok()
    });
    answer.unwrap_or_default()
}

pub(crate) fn preset_names() -> Vec<CompletionCandidate> {
    presets::presets().iter().map(|preset| candidate(preset.name, preset.dialect)).collect()
}

pub(crate) fn dialect_names() -> Vec<CompletionCandidate> {
    dialects::names().into_iter().map(|name| candidate(name, "")).collect()
}

/// The newest sessions, and `last`.
pub(crate) fn session_ids() -> Vec<CompletionCandidate> {
    let sessions = query_gateway(async |client| client.newest_sessions(CANDIDATES_MAX).await);
    let about = |session: &plexus_protocol::SessionInfo| session.title.clone().unwrap_or_default();
    let ids = sessions.iter().map(|session| candidate(session.session_id.as_str(), &about(session)));
    let last = (!sessions.is_empty()).then(|| candidate("last", "the most recent session"));
    last.into_iter().chain(ids).collect()
}

pub(crate) fn runtime_ids() -> Vec<CompletionCandidate> {
    let runtimes = query_gateway(async |client| client.runtimes().await);
    runtimes.iter().map(|runtime| candidate(runtime.runtime_id.as_str(), &runtime.dialect)).collect()
}

pub(crate) fn request_ids() -> Vec<CompletionCandidate> {
    let requests = query_gateway(async |client| client.requests(false).await.map(|requests| requests.items));
    let about = |request: &plexus_protocol::Request| request.display.lines().next().unwrap_or_default().to_owned();
    requests
        .iter()
        .take(CANDIDATES_MAX)
        .map(|request| candidate(request.request_id.as_str(), &about(request)))
        .collect()
}
