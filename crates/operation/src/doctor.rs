//! `GET /v1/doctor`: the checks of `plexus doctor`, which the program passes in.

use std::sync::Arc;

use axum::response::Response;
use futures_util::future::BoxFuture;
use http::StatusCode;
use tokio::sync::Mutex;

use plexus_auth::Admin;
use plexus_clock::{ClockDoubt, STEP_MS};
use plexus_ledger::Near;
use plexus_protocol::RuntimeInfo;
use plexus_protocol::api::operation::{Check, Checks, Verdict};
use plexus_risk::Effect;
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{bad_query, gateway, json, parameter};
use plexus_router::routes::{ADMIN, GET, NOTHING, POST, route};
use plexus_router::{Core, Problem};

use crate::awake::KeepAwake;

/// The state of health checks.
#[derive(Clone)]
pub struct DoctorState {
    /// The kernel.
    pub core: Core,
    /// The checks that the program provides.
    pub doctor: Doctor,
    /// The lease that prevents sleep.
    pub awake: KeepAwake,
}

/// Returns the routes of health checks.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<DoctorState>> {
    vec![
        route(GET, "/v1/doctor", ADMIN, NOTHING, "Health checks: what works, what does not, and the fix", serve)
            .response::<Checks>(200),
        route(POST, "/v1/clock/confirm", ADMIN, NOTHING, "Trust the clock of the gateway's machine although it made a step", confirm_clock)
            .response::<Check>(200).effect(Effect::TrustClock),
    ]
}

/// Runs the checks, given the current runtimes.
type RunChecks = Arc<dyn Fn(Vec<Arc<RuntimeInfo>>) -> BoxFuture<'static, Vec<Check>> + Send + Sync>;

/// The checks, passed in by the program, since the router may not import the code that they check. Empty without them.
#[derive(Clone, Default)]
pub struct Doctor {
    run: Option<RunChecks>,
    /// Held during a round of checks: they start programs to read their versions, so there is one round at a time.
    busy: Arc<Mutex<()>>,
}

impl Doctor {
    /// Makes a doctor that runs the checks with `run`.
    pub fn new(run: impl Fn(Vec<Arc<RuntimeInfo>>) -> BoxFuture<'static, Vec<Check>> + Send + Sync + 'static) -> Self {
        Self { run: Some(Arc::new(run)), busy: Arc::default() }
    }

    async fn run(&self, runtimes: Vec<Arc<RuntimeInfo>>) -> Vec<Check> {
        let _alone = self.busy.lock().await;
        match &self.run {
            Some(run) => run(runtimes).await,
            None => Vec::new(),
        }
    }
}

impl std::fmt::Debug for Doctor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doctor").field("checks", &self.run.is_some()).finish_non_exhaustive()
    }
}

/// Percentage of its limit from which on an account counts as nearly full.
const NEAR_PERCENT: usize = 80;

/// Returns the check of an account near its memory limit.
fn near(account: Near) -> Check {
    let Near { class, name, used, limit } = account;
    let account_name = if name.is_empty() { String::new() } else { format!(" {name}") };
    let class = class.as_str();
    Check {
        name: format!("memory {class}{account_name}"),
        state: Verdict::Warn,
        detail: format!(
            "{used} of {limit} bytes are in use; beyond the limit it waits, is refused, or is disconnected"
        ),
        fix: Some(format!(
            "check what it is doing, or raise `{class}` in [limits]; docs/limits.md explains the accounts"
        )),
    }
}

/// Returns the check of the wall clock.
fn clock(doubt: Option<ClockDoubt>) -> Check {
    let name = "clock".into();
    let Some(ClockDoubt { noticed_at, step_ms, .. }) = doubt else {
        return Check { name, state: Verdict::Ok, detail: "consistent".into(), fix: None };
    };
    let (hours, way) = (step_ms.unsigned_abs() / STEP_MS.unsigned_abs(), if step_ms < 0 { "back" } else { "ahead" });
    Check {
        name,
        state: Verdict::Warn,
        detail: format!(
            "it went {hours} hours {way} at {noticed_at}: no events are removed for their age, and the day of ceilings continues, until it has \
             been consistent for a day"
        ),
        fix: Some("set the clock of this machine; if it is right, run `plexus doctor --confirm-clock`".into()),
    }
}

/// Trusts the wall clock as it is.
async fn confirm_clock(state: DoctorState, call: Call) -> Result<Response, Problem> {
    let permit = gateway::<Admin>(&call)?;
    state.core.directory.confirm_clock(&permit).await?;
    json(StatusCode::OK, &clock(state.core.directory.clock().doubt()))
}

/// Serves the checks.
async fn serve(state: DoctorState, call: Call) -> Result<Response, Problem> {
    gateway::<Admin>(&call)?;
    let accounts = state.core.ledger.near(NEAR_PERCENT).into_iter().map(near);
    let checks = match parameter(&call, "only").as_deref() {
        Some("memory") => accounts.collect(),
        Some("clock") => vec![clock(state.core.directory.clock().doubt())],
        Some("awake") => vec![state.awake.check()],
        Some(_) => return Err(bad_query("`only` must be memory, clock or awake".into())),
        None => {
            let detail = format!("version {}, since {}", state.core.version, state.core.started_at);
            let mut checks = vec![Check { name: "gateway".into(), state: Verdict::Ok, detail, fix: None }];
            checks.push(clock(state.core.directory.clock().doubt()));
            checks.push(state.awake.check());
            checks.extend(accounts);
            checks.extend(state.doctor.run(state.core.directory.runtimes()).await);
            checks
        }
    };
    json(StatusCode::OK, &Checks { checks: checks.into() })
}
