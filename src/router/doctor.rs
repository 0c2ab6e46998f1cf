//! What ails the gateway, asked over HTTP: the same checks as `plexus doctor`, which the program brings along.

use std::sync::Arc;

use axum::response::Response;
use futures_util::future::BoxFuture;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use utoipa::ToSchema;

use super::guard::Call;
use super::reply::{bad_query, gateway, json, parameter};
use super::{AppState, Problem};
use crate::auth::Admin;
use crate::ledger::Near;
use plexus_protocol::RuntimeInfo;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing to do.
    Ok,
    /// It works, and could be better.
    Warn,
    /// It does not work.
    Fail,
}

/// What was looked at, and what was found.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How bad it is.
    pub state: Verdict,
    /// What was found.
    pub detail: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// Looks, given the runtimes as they stand.
type Look = Arc<dyn Fn(Vec<Arc<RuntimeInfo>>) -> BoxFuture<'static, Vec<Check>> + Send + Sync>;

/// Who looks. The front door cannot itself: what there is to look at lies beyond its floor. Without one nothing is found.
#[derive(Clone, Default)]
pub struct Doctor {
    look: Option<Look>,
    /// Looking starts programs for their version: one round at a time.
    busy: Arc<Mutex<()>>,
}

impl Doctor {
    /// One who looks so.
    pub fn new(look: impl Fn(Vec<Arc<RuntimeInfo>>) -> BoxFuture<'static, Vec<Check>> + Send + Sync + 'static) -> Self {
        Self { look: Some(Arc::new(look)), busy: Arc::default() }
    }

    async fn look(&self, runtimes: Vec<Arc<RuntimeInfo>>) -> Vec<Check> {
        let _alone = self.busy.lock().await;
        match &self.look {
            Some(look) => look(runtimes).await,
            None => Vec::new(),
        }
    }
}

impl std::fmt::Debug for Doctor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doctor").field("looks", &self.look.is_some()).finish_non_exhaustive()
    }
}

/// From so many percent of its limit on an account is near it.
const NEAR: usize = 80;

/// Who makes the gateway hold nearly as much as they may.
fn near(account: Near) -> Check {
    let Near { class, name, used, limit } = account;
    let whose = if name.is_empty() { String::new() } else { format!(" {name}") };
    let class = class.as_str();
    Check {
        name: format!("memory {class}{whose}"),
        state: Verdict::Warn,
        detail: format!(
            "{used} of {limit} bytes are in use; beyond the limit it waits, is refused, or is disconnected"
        ),
        fix: Some(format!(
            "check what it is doing, or raise `{class}` in [limits]; docs/limits.md explains the accounts"
        )),
    }
}

/// What works and what does not.
#[derive(Serialize, ToSchema)]
pub(super) struct Checks {
    checks: Vec<Check>,
}

/// Serves what was found.
pub(super) async fn serve(state: AppState, call: Call) -> Result<Response, Problem> {
    gateway::<Admin>(&call)?;
    let accounts = state.ledger.near(NEAR).into_iter().map(near);
    let checks = match parameter(&call, "only").as_deref() {
        Some("memory") => accounts.collect(),
        Some(_) => return Err(bad_query("`only` must be memory".into())),
        None => {
            let detail = format!("version {}, since {}", state.version, state.started_at);
            let mut checks = vec![Check { name: "gateway".into(), state: Verdict::Ok, detail, fix: None }];
            checks.extend(accounts);
            checks.extend(state.doctor.look(state.directory.runtimes()).await);
            checks
        }
    };
    json(StatusCode::OK, &Checks { checks })
}
