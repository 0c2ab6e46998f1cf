//! The routes by which a device subscribes to notifications, chooses among them, and tests them. Each applies to the calling device only.

use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::encryption::{AUTH, POINT};
use super::engine::without_rejected_key;
use super::rule::MAX_NO_PROGRESS;
use super::sender::{DeliveryTarget, PostOutcome};
use super::{ChosenChannels, Destination, Hours, Notifier, Subscription, TargetRow, target_of, text};
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{json as answer, no_content};
use plexus_router::routes::{DELETE, GET, JSON, NOTHING, OPTIONAL_JSON, PATCH, POST, PUT, WATCH, route};
use plexus_router::{Core, Problem};

/// The state of notifications.
#[derive(Clone)]
pub struct NotifyState {
    /// The kernel.
    pub core: Core,
    /// The targets, and the means to reach them.
    pub notifier: Notifier,
}

/// Returns the routes of notifications.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<NotifyState>> {
    vec![
        route(GET, "/v1/push", WATCH, NOTHING, "The key to subscribe with, and the calling device's settings", show)
            .response::<Push<'_>>(200),
        route(PUT, "/v1/push", WATCH, JSON, "Subscribe this device to notifications", subscribe)
            .request::<Subscribe>().response::<Push<'_>>(200),
        route(DELETE, "/v1/push", WATCH, NOTHING, "End this device's subscription", unsubscribe)
            .empty(204),
        route(PATCH, "/v1/push/settings", WATCH, JSON, "Choose the events and quiet hours of this device", choose)
            .request::<PushChoice>().response::<Push<'_>>(200),
        route(POST, "/v1/push/test", WATCH, OPTIONAL_JSON, "Send this device a notification now", test)
            .request::<PushTry>().response::<PushTried>(200),
    ]
}

/// A subscription in the form of a browser's `PushSubscription.toJSON()`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subscribe {
    /// The address to push to: `https`, at a known push service.
    #[schema(min_length = 1, max_length = 1024)]
    endpoint: String,
    keys: SubscribeKeys,
    /// The time when the subscription expires, if the browser reports it; the service reports it too.
    #[serde(rename = "expirationTime")]
    #[schema(value_type = Option<f64>)]
    _expiration: Option<serde::de::IgnoredAny>,
}

/// A subscription's keys, in base64url.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubscribeKeys {
    p256dh: String,
    auth: String,
}

/// The changes to a device's choices; absent members stay unchanged.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PushChoice {
    /// `true` to get notifications of requests that open.
    requests: Option<bool>,
    /// `true` to get notifications of runs that complete.
    ends: Option<bool>,
    /// `true` to get notifications of runs that fail.
    failures: Option<bool>,
    /// Minutes without an event in a run after which to get a notification; 0 for never.
    #[schema(maximum = 1440)]
    no_progress_minutes: Option<u16>,
    /// The quiet hours; `null` for none.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<QuietHours>)]
    quiet: Option<Option<QuietHours>>,
}

/// Hours in which a device gets no notifications.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuietHours {
    /// The beginning: `22:00`
    #[schema(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    from: String,
    /// The end: `07:00`; before `from` it is on the next day.
    #[schema(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    to: String,
    /// Number of minutes that the device's clock is ahead of UTC: `-new Date().getTimezoneOffset()`.
    #[schema(minimum = -840, maximum = 840)]
    offset_minutes: i16,
    /// The device's time zone, by its IANA name (`Intl.DateTimeFormat().resolvedOptions().timeZone`): with it the hours are the
    /// same on its clock all year, and `offset_minutes` does not count.
    #[schema(min_length = 1, max_length = 64)]
    zone: Option<String>,
}

/// The body of a test, which is empty.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PushTry {}

/// Distinguishes `null` from absent.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<QuietHours>>, D::Error> {
    Option::<QuietHours>::deserialize(deserializer).map(Some)
}

type Reply = Result<Response, Problem>;

fn storage(error: String) -> Problem {
    Problem::new(StatusCode::INSUFFICIENT_STORAGE, "storage", error)
}

/// The subscription of a device to notifications, and its choices.
#[derive(Serialize, ToSchema)]
pub(crate) struct Push<'a> {
    /// The `applicationServerKey`, in base64url.
    public_key: &'a str,
    subscribed: bool,
    /// `true` if the device was subscribed, and the subscription ended against its choice: it may subscribe again by itself.
    lapsed: bool,
    settings: ChosenChannels,
}

/// The result of a test notification that was accepted.
#[derive(Serialize, ToSchema)]
pub(crate) struct PushTried {
    /// The push service's status.
    status: u16,
}

fn view(notifier: &Notifier, row: TargetRow) -> Push<'_> {
    Push {
        public_key: &notifier.shared.keys.public,
        subscribed: row.subscription.is_some(),
        lapsed: row.lapsed,
        settings: row.chosen,
    }
}

fn view_response(state: &NotifyState, target: &str) -> Reply {
    answer(StatusCode::OK, &view(&state.notifier, state.notifier.row(target)))
}

/// Returns the target of the calling device.
fn own_target(call: &Call) -> Result<String, Problem> {
    Ok(target_of(&call.caller()?.device().device_id))
}

async fn show(state: NotifyState, call: Call) -> Reply {
    view_response(&state, &own_target(&call)?)
}

async fn subscribe(state: NotifyState, call: Call) -> Reply {
    let target = own_target(&call)?;
    let Subscribe { endpoint, keys: SubscribeKeys { p256dh, auth }, _expiration } = call.json()?;
    let notifier = &state.notifier;
    let refused = |reason: String| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "push_endpoint", format!("the subscription's endpoint {reason}"))
    };
    DeliveryTarget::from_client(&endpoint, &notifier.shared.settings.services).map_err(refused)?;
    let key = Some(notifier.shared.keys.public.clone());
    let subscription = Subscription { endpoint, p256dh, auth, key };
    notifier.claim(&target, &subscription.endpoint).await.map_err(storage)?;
    let keys = subscription.keys().filter(|(theirs, auth)| theirs.len() == POINT && auth.len() == AUTH);
    // Encrypting a text verifies that the key is a point of the curve.
    let usable = keys.is_some_and(|(theirs, auth)| notifier.shared.keys.seal(&theirs, &auth, b"{}").is_some());
    if !usable {
        let detail = "`keys` are invalid: `p256dh` must be a P-256 point and `auth` 16 bytes, both in base64url";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "push_keys", detail));
    }
    let change = |row: &mut TargetRow| {
        if row.subscription.as_ref() != Some(&subscription) {
            // Nothing was sent to a new subscription.
            row.leave();
            row.subscription = Some(subscription);
        }
    };
    notifier.change(&target, change).await.map_err(storage)?;
    view_response(&state, &target)
}

async fn unsubscribe(state: NotifyState, call: Call) -> Reply {
    state.notifier.change(&own_target(&call)?, TargetRow::leave).await.map_err(storage)?;
    no_content()
}

async fn choose(state: NotifyState, call: Call) -> Reply {
    let target = own_target(&call)?;
    let PushChoice { requests, ends, failures, no_progress_minutes, quiet } = call.json()?;
    if no_progress_minutes.is_some_and(|minutes| minutes > MAX_NO_PROGRESS) {
        let detail = format!("`no_progress_minutes` is at most {MAX_NO_PROGRESS}, a day; 0 turns it off");
        return Err(Problem::invalid(detail));
    }
    let hours = |QuietHours { from, to, offset_minutes, zone }| Hours { from, to, offset_minutes, zone };
    let quiet = quiet.map(|quiet| quiet.map(hours));
    if let Some(Some(hours)) = &quiet
        && hours.read().is_none()
    {
        return Err(Problem::invalid(
            "`quiet` needs two different times of day, such as \"22:00\" and \"07:00\", and the minutes that the \
             clock is ahead of UTC, or its time zone, such as \"Europe/Berlin\"",
        ));
    }
    let change = |row: &mut TargetRow| {
        let filter = &mut row.chosen.filter;
        filter.requests = requests.unwrap_or(filter.requests);
        filter.ends = ends.unwrap_or(filter.ends);
        filter.failures = failures.unwrap_or(filter.failures);
        filter.no_progress_minutes = no_progress_minutes.unwrap_or(filter.no_progress_minutes);
        if let Some(quiet) = quiet {
            row.chosen.quiet = quiet;
        }
    };
    state.notifier.change(&target, change).await.map_err(storage)?;
    view_response(&state, &target)
}

/// Sends a test at once, regardless of viewers and quiet hours, and reports the outcome.
async fn test(state: NotifyState, call: Call) -> Reply {
    let target = own_target(&call)?;
    let PushTry {} = call.json()?;
    let Some(subscription) = state.notifier.row(&target).subscription else {
        let detail = "this device is not subscribed: PUT /v1/push first";
        return Err(Problem::new(StatusCode::CONFLICT, "not_subscribed", detail));
    };
    let message = text::test(&call.caller()?.device().name);
    let to = Destination::Push(subscription.clone());
    let now = state.core.directory.clock().steady(std::time::SystemTime::now().into());
    let failed = |detail: String| Err(Problem::new(StatusCode::BAD_GATEWAY, "push_failed", detail));
    match without_rejected_key(&to, state.notifier.send(&to, &message, now).await) {
        PostOutcome::Taken(status) => answer(StatusCode::OK, &PushTried { status }),
        PostOutcome::Gone(_) => {
            state.notifier.remove_subscription(&target, &subscription).await.map_err(storage)?;
            failed("the push service no longer knows the subscription: subscribe again".into())
        }
        PostOutcome::Refused(status) => failed(format!("the push service refused it ({status}): subscribe again")),
        PostOutcome::Later(_) => failed("the push service does not respond: try again later".into()),
    }
}
