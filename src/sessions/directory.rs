//! All sessions and runtimes: the one door to the heart.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::{Filter, Log, Refusal, Snapshot};
use crate::auth::{Admin, Approve, Permit, Prompt};
use crate::model::*;
use crate::store::Hit;

/// All sessions and runtimes. Cheap to clone.
#[derive(Clone)]
pub struct Directory {
    log: Log,
}

/// A session to open.
#[derive(Clone, Debug)]
pub struct OpenSession {
    pub runtime_id: RuntimeId,
    pub cwd: Option<String>,
    pub title: Option<String>,
    pub native_id: Option<String>,
}

/// A prompt that was taken.
#[derive(Clone, Debug, Serialize)]
pub struct Accepted {
    pub run_id: RunId,
    pub queued: bool,
    pub ahead: usize,
}

#[allow(unused_variables, clippy::todo)]
impl Directory {
    pub fn log(&self) -> &Log {
        &self.log
    }
    pub fn sessions(&self) -> Vec<Arc<SessionInfo>> {
        todo!()
    }
    pub fn session(&self, id: &SessionId) -> Option<Arc<SessionInfo>> {
        todo!()
    }
    pub fn runtimes(&self) -> Vec<Arc<RuntimeInfo>> {
        todo!()
    }
    pub fn runtime(&self, id: &RuntimeId) -> Option<Arc<RuntimeInfo>> {
        todo!()
    }
    /// Told (a counter) whenever any runtime stands differently.
    pub fn runtimes_changed(&self) -> watch::Receiver<u64> {
        todo!()
    }
    pub async fn start_runtime(&self, permit: &Permit<Admin>, spec: RuntimeSpec) -> Result<Arc<RuntimeInfo>, Refusal> {
        todo!()
    }
    pub async fn stop_runtime(&self, permit: &Permit<Admin>, id: &RuntimeId) -> Result<(), Refusal> {
        todo!()
    }
    pub async fn open_session(&self, permit: &Permit<Prompt>, open: OpenSession) -> Result<Arc<SessionInfo>, Refusal> {
        todo!()
    }
    /// Ends the session and forgets it, bytes and all.
    pub async fn forget_session(&self, permit: &Permit<Admin>, id: &SessionId) -> Result<(), Refusal> {
        todo!()
    }
    pub async fn prompt(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        content: Vec<Box<RawValue>>,
    ) -> Result<Accepted, Refusal> {
        todo!()
    }
    pub async fn cancel(&self, permit: &Permit<Prompt>, id: &SessionId, run: Option<RunId>) -> Result<RunId, Refusal> {
        todo!()
    }
    pub async fn answer(
        &self,
        permit: &Permit<Approve>,
        id: &RequestId,
        answer: Answer,
        key: Option<String>,
    ) -> Result<Receipt, Refusal> {
        todo!()
    }
    /// Calls a method of the session's runtime (model.list, session/set_mode, …); `notify`: no reply wanted, returns null.
    pub async fn call(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        method: String,
        params: Option<Box<RawValue>>,
        notify: bool,
    ) -> Result<Box<RawValue>, Refusal> {
        todo!()
    }
    pub async fn requests(
        &self,
        state: Option<RequestState>,
        session: Option<&SessionId>,
    ) -> Result<Vec<Request>, Refusal> {
        todo!()
    }
    pub async fn request(&self, id: &RequestId) -> Result<Option<Request>, Refusal> {
        todo!()
    }
    /// The runtime and session a request belongs to, cheap, for permits.
    pub async fn request_target(&self, id: &RequestId) -> Result<Option<(SessionId, RuntimeId)>, Refusal> {
        todo!()
    }
    /// Open requests now in memory (for hello), those the filter lets through.
    pub fn open_requests(&self, filter: &Filter) -> Vec<Arc<Request>> {
        todo!()
    }
    /// Runs under way or queued, those the filter lets through.
    pub fn runs(&self, filter: &Filter) -> Vec<RunInfo> {
        todo!()
    }
    pub async fn snapshot(&self, id: &SessionId) -> Result<Snapshot, Refusal> {
        todo!()
    }
    /// Several sessions' snapshots, all exact at one cursor.
    pub async fn snapshots(&self, filter: &Filter) -> Result<(Position, Vec<Snapshot>), Refusal> {
        todo!()
    }
    pub async fn search(&self, text: String, limit: usize) -> Result<Vec<Hit>, Refusal> {
        todo!()
    }
}
