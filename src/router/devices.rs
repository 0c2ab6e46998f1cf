//! Devices over HTTP: the caller's identity, enrolling, signing a browser in and out, renaming, revoking.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};

use super::described as docs;
use super::guard::{self, Call, Policy, Route};
use super::reply::{
    Outcome, Query, bad_query, created, gateway, json, no_content, no_such, patience, session_of, waits, within_limit,
};
use super::routes::{
    ADMIN, DELETE, GET, JSON, NOTHING, OPTIONAL_JSON, PATCH, POST, UNAUTHENTICATED, WATCH, route, secret,
};
use super::stop::stopping;
use super::{Core, Problem, cookies};
use plexus_auth::{
    Admin, AuthError, BegunPairing, Device, DeviceKind, DeviceView, FetchedPairing, Grant, Invitation as PairingOffer,
    OneTimeCode, PairingState, PairingView, PhoneTicket, SHARE_LIFE, Target, browser_id, csrf, short_code,
};
use plexus_protocol::{DeviceId, Risk, RuntimeId, Scope, SessionId, Timestamp};
use plexus_risk::Effect;

/// Default lifetime of a link to a session, in hours.
const SHARE_HOURS: u64 = 24;
/// Longest device name made from a session's title, in characters.
const TITLE_CHARS: usize = 48;
/// Smallest side of a QR code, in pixels; the image scales.
const QR_SIDE: u32 = 240;
/// Default lifetime of a one-time code, in seconds.
const CODE_SECONDS: u64 = 60;

/// The routes of devices and pairing.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        secret(route(GET, "/v1/me", WATCH, NOTHING, "The calling device", me))
            .response::<Me<'_>>(200),
        route(DELETE, "/v1/me", WATCH, NOTHING, "Sign out: remove the calling device", sign_out)
            .empty(204),
        secret(route(POST, "/v1/signin", WATCH, JSON, "Sign in a browser with a device's token; sets a cookie", sign_in))
            .request::<SignIn>().response::<NewToken<'_>>(200),
        route(GET, "/v1/devices", ADMIN, NOTHING, "Enrolled devices", devices)
            .response::<Devices>(200),
        secret(route(POST, "/v1/devices", ADMIN, JSON, "Enrol a device", enrol))
            .request::<NewDevice>().response::<NewToken<'_>>(201),
        route(PATCH, "/v1/devices/{id}", ADMIN, JSON, "Rename a device, or allow it to answer from notifications", alter)
            .request::<NewName>().response::<Identity<'_>>(200),
        route(DELETE, "/v1/devices/{id}", ADMIN, NOTHING, "Revoke a device immediately", revoke)
            .empty(204),
        route(DELETE, "/v1/local-browsers", ADMIN, NOTHING, "Sign out all browsers of this user on this machine", revoke_local_browsers)
            .response::<RevokedDevices>(200),
        secret(route(POST, "/v1/codes", ADMIN, JSON, "Create a one-time code that enrols a device", mint_code))
            .request::<NewCode>().response::<OneTimeCode>(201),
        secret(route(POST, "/v1/sessions/{id}/shares", ADMIN, OPTIONAL_JSON, "Create a read-only link to a session", share))
            .request::<NewShare>().response::<Share<'_>>(201),
        secret(route(POST, "/v1/pairings", ADMIN, JSON, "Start a pairing: a short code for one device", begin_pairing))
            .request::<NewPairing>().response::<Begun>(201),
        secret(route(GET, "/v1/pairings/{id}", ADMIN, NOTHING, "The state of a pairing", pairing))
            .response::<PairingView>(200).with(&[&docs::PAIRING_WAIT, &docs::PAIRING_KNOWN]),
        secret(route(POST, "/v1/pairings/{id}/confirm", ADMIN, JSON, "Confirm that the device shows this number", confirm))
            .request::<Confirm>().response::<PairingView>(200),
        route(DELETE, "/v1/pairings/{id}", ADMIN, NOTHING, "Refuse a pairing", refuse)
            .empty(204),
        // The code authenticates the request.
        secret(route(POST, "/v1/pair", Policy::Public, UNAUTHENTICATED, "Exchange a one-time code for a device's token or cookie", pair))
            .request::<Pair>().response::<NewToken<'_>>(200).response::<PhoneTicket>(202),
        secret(route(POST, "/v1/pair/look", Policy::Public, UNAUTHENTICATED, "What a short code grants", look))
            .request::<Look>().response::<Invitation>(200),
        // The ticket authenticates the request.
        secret(route(POST, "/v1/pair/wait", Policy::Public, UNAUTHENTICATED, "The result of joining with a short code", fetch))
            .request::<Fetch>().response::<NewToken<'_>>(200).response::<Patience>(202),
    ]
}

/// A whole number as JSON Schema defines it: `43.0` is one.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(from)? else { return Ok(None) };
    if let Some(whole) = number.as_u64() {
        return Ok(Some(whole));
    }
    let whole = |float: &f64| float.fract() == 0.0 && *float >= 0.0;
    let text = number.as_f64().filter(whole).map(|float| format!("{float:.0}"));
    match text.and_then(|text| text.parse().ok()) {
        Some(whole) => Ok(Some(whole)),
        None => Err(D::Error::custom(format_args!("{number} is not a whole number of 0 or more"))),
    }
}

/// The identity of a device.
#[derive(Serialize, ToSchema)]
pub(super) struct Identity<'a> {
    device_id: &'a DeviceId,
    name: &'a str,
    kind: DeviceKind,
    #[serde(flatten)]
    grant: &'a Grant,
    /// When the device expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

impl<'a> Identity<'a> {
    fn of(device: &'a Device) -> Self {
        let Device { device_id, name, kind, grant, expires_at, .. } = device;
        Self { device_id, name, kind: *kind, grant, expires_at: *expires_at }
    }
}

/// The caller.
#[derive(Serialize, ToSchema)]
pub(super) struct Me<'a> {
    #[serde(flatten)]
    device: Identity<'a>,
    /// The value of `Plexus-CSRF` for every request of a page but GET and HEAD.
    #[serde(skip_serializing_if = "Option::is_none")]
    csrf: Option<&'a str>,
    /// For a device with a risk limit: devices that may answer what it may not, as far as it may know them.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_on: Option<AnsweredOn>,
    gateway: GatewayInfo<'a>,
}

/// Names of devices by the risk that they may answer.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct AnsweredOn {
    #[serde(skip_serializing_if = "Option::is_none")]
    elevated: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    danger: Option<Vec<String>>,
}

/// The gateway.
#[derive(Serialize, ToSchema)]
pub(super) struct GatewayInfo<'a> {
    version: &'a str,
    started_at: Timestamp,
    /// The epoch of the log.
    epoch: &'a str,
    /// The machine's name.
    name: String,
    /// The origin by which other machines reach the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_url: Option<String>,
}

/// The name of the gateway's machine.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(super) async fn me(state: Core, call: Call) -> Outcome {
    let device = call.caller()?.device();
    let answering = |risk| state.auth.answering(device, Target::Gateway, risk);
    let answered_on = device.grant.approve_up_to.map(|up_to| AnsweredOn {
        elevated: (Risk::Elevated > up_to).then(|| answering(Risk::Elevated)),
        danger: (Risk::Danger > up_to).then(|| answering(Risk::Danger)),
    });
    // A link to a session does not reveal the machine's name.
    let name = if device.grant.sessions.is_some() { "Plexus".to_owned() } else { machine() };
    let gateway = GatewayInfo {
        version: state.version,
        started_at: state.started_at,
        epoch: state.epoch().as_str(),
        name,
        public_url: state.public_addresses.url(),
    };
    json(StatusCode::OK, &Me { device: Identity::of(device), csrf: call.csrf.as_deref(), answered_on, gateway })
}

pub(super) async fn sign_out(state: Core, call: Call) -> Outcome {
    let caller = call.caller()?;
    state.auth.leave(caller).await?;
    let mut response = no_content()?;
    if let Some(origin) = &caller.device().origin {
        cookies::clear(&mut response, origin);
    }
    Ok(response)
}

/// A device to enrol.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewDevice {
    /// The device's name.
    #[schema(min_length = 1, max_length = 64, pattern = r"\S")]
    name: String,
    /// The scopes: `watch`, `prompt`, `approve`, `admin`.
    #[schema(min_items = 1)]
    scopes: Vec<Scope>,
    /// If present, limits the device to these runtimes.
    #[schema(min_items = 1, max_items = 256)]
    runtimes: Option<Vec<RuntimeId>>,
    /// If present, limits the device to these sessions.
    #[schema(min_items = 1, max_items = 256)]
    sessions: Option<Vec<SessionId>>,
    /// The highest risk of a request that the device may answer; any if absent.
    approve_up_to: Option<Risk>,
    /// Whether the device may answer from a notification.
    #[serde(default)]
    lock_screen: bool,
}

/// The enrolled devices.
#[derive(Serialize, ToSchema)]
pub(super) struct Devices {
    devices: Vec<DeviceView>,
}

pub(super) async fn devices(state: Core, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    json(StatusCode::OK, &Devices { devices: state.auth.devices(&permit) })
}

/// Checks that a new device could allow no more than the one that enrols it.
fn may_grant(call: &Call, grant: &Grant) -> Result<(), Problem> {
    let acts = [Scope::Approve, Scope::Admin, Scope::Type].into_iter().any(|scope| grant.has(scope));
    if !acts {
        return Ok(());
    }
    within_limit(call, Effect::Enrol(grant.approve_up_to.unwrap_or(Risk::Danger)))
}

pub(super) async fn enrol(state: Core, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let NewDevice { name, scopes, runtimes, sessions, approve_up_to, lock_screen } = call.json()?;
    let grant = Grant { scopes, runtimes, sessions, approve_up_to, lock_screen };
    may_grant(&call, &grant)?;
    let (device, token) = state.auth.enrol(&permit, &name, grant).await?;
    let given = NewToken { token: Some(&token), ..NewToken::of(&device) };
    created(&format!("/v1/devices/{}", device.device_id), &given)
}

/// A device and its token, which is shown only once; or `csrf` if the token is a cookie.
#[derive(Serialize, ToSchema)]
pub(super) struct NewToken<'a> {
    #[serde(flatten)]
    device: Identity<'a>,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    /// The value of `Plexus-CSRF` for every request of a page but GET and HEAD.
    #[serde(skip_serializing_if = "Option::is_none")]
    csrf: Option<&'a str>,
}

impl<'a> NewToken<'a> {
    fn of(device: &'a Device) -> Self {
        Self { device: Identity::of(device), created_at: device.created_at, token: None, csrf: None }
    }
}

/// The response with a new device's token; for a browser the token is a cookie that scripts cannot read.
fn welcome(device: &Device, token: &str) -> Outcome {
    let Some(origin) = &device.origin else {
        return json(StatusCode::OK, &NewToken { token: Some(token), ..NewToken::of(device) });
    };
    let mut response = again(device, &csrf(token))?;
    cookies::set(&mut response, origin, token);
    Ok(response)
}

/// The response for a new browser. If it was a device before, its cookie is replaced and the old device removed.
async fn welcome_browser(
    state: &Core,
    call: &Call,
    device: &Arc<Device>,
    token: &str,
    browser: Option<&str>,
) -> Outcome {
    let held = cookies::held(&state.auth, &call.parts).filter(|_| device.origin.is_some());
    if let Some((before, _)) = held {
        state.auth.replaced(&before).await;
    }
    let device = state.auth.one_per_browser(device, browser).await?;
    welcome(&device, token)
}

/// The response for a browser that is this device already.
fn again(device: &Device, csrf: &str) -> Outcome {
    json(StatusCode::OK, &NewToken { csrf: Some(csrf), ..NewToken::of(device) })
}

/// The changes to a device.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewName {
    /// The new name.
    #[schema(min_length = 1, max_length = 64, pattern = r"\S")]
    name: Option<String>,
    /// Whether the device may answer from a notification.
    lock_screen: Option<bool>,
}

fn device_id(call: &Call) -> Result<DeviceId, Problem> {
    call.id(|| no_such("device_not_found", "device"))
}

pub(super) async fn alter(state: Core, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let NewName { name, lock_screen } = call.json()?;
    if name.is_none() && lock_screen.is_none() {
        return Err(Problem::invalid("give `name`, `lock_screen`, or both"));
    }
    let device = state.auth.alter(&permit, &device_id(&call)?, name.as_deref(), lock_screen).await?;
    json(StatusCode::OK, &Identity::of(&device))
}

pub(super) async fn revoke(state: Core, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    state.auth.revoke(&permit, &device_id(&call)?).await?;
    no_content()
}

/// How many devices were revoked.
#[derive(Serialize, ToSchema)]
pub(super) struct RevokedDevices {
    revoked: usize,
}

pub(super) async fn revoke_local_browsers(state: Core, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let revoked = state.auth.revoke_local_browsers(&permit).await?;
    json(StatusCode::OK, &RevokedDevices { revoked })
}

/// The grant of the device that redeems the code.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCode {
    /// The scopes: `watch`, `prompt`, `approve`, `admin`.
    #[schema(min_items = 1)]
    scopes: Vec<Scope>,
    /// If present, limits the device to these runtimes.
    #[schema(min_items = 1, max_items = 256)]
    runtimes: Option<Vec<RuntimeId>>,
    /// If present, limits the device to these sessions.
    #[schema(min_items = 1, max_items = 256)]
    sessions: Option<Vec<SessionId>>,
    /// The highest risk of a request that the device may answer; any if absent.
    approve_up_to: Option<Risk>,
    /// Whether the device may answer from a notification.
    #[serde(default)]
    lock_screen: bool,
    /// The lifetime of the code in seconds, at most 120.
    #[serde(default, deserialize_with = "whole")]
    #[schema(maximum = 18446744073709551615_u64)]
    ttl: Option<u64>,
}

pub(super) async fn mint_code(state: Core, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let NewCode { scopes, runtimes, sessions, approve_up_to, lock_screen, ttl } = call.json()?;
    let life = Duration::from_secs(ttl.unwrap_or(CODE_SECONDS));
    let grant = Grant { scopes, runtimes, sessions, approve_up_to, lock_screen };
    may_grant(&call, &grant)?;
    let code = state.auth.mint_code(&permit, grant, life)?;
    json(StatusCode::CREATED, &code)
}

/// A one-time code to exchange.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    /// The code.
    code: String,
    /// The name of the device.
    #[schema(min_length = 1, max_length = 64, pattern = r"\S")]
    name: String,
    /// Whether the device is a page of this gateway, which gets a cookie instead of a token.
    #[serde(default)]
    cookie: bool,
    /// The identifier that the page keeps. A browser on this machine that signs in anew with it replaces its former device.
    #[schema(min_length = 16, max_length = 64, pattern = "^[A-Za-z0-9-]+$")]
    browser: Option<String>,
}

pub(super) async fn pair(state: Core, call: Call) -> Outcome {
    let Pair { code, name, cookie, browser } = call.json()?;
    let browser = browser.as_deref().map(browser_id).transpose()?;
    let origin = cookie.then(|| cookies::origin(&call.parts)).transpose()?;
    if short_code(&code).is_some() {
        let ticket = state.auth.join(guard::peer(&call.parts), &code, &name, origin)?;
        return json(StatusCode::ACCEPTED, &ticket);
    }
    if origin.is_some()
        && let Some((device, csrf)) = cookies::held(&state.auth, &call.parts)
        && state.auth.redeem_again(&device, &code)
    {
        return again(device.device(), &csrf);
    }
    match state.auth.redeem(&code, &name, origin).await {
        Ok((device, token)) => welcome_browser(&state, &call, &device, &token, browser).await,
        Err(error @ AuthError::BadCode) => Err(guard::failed(&state.auth, &call.parts).unwrap_or(error.into())),
        Err(error) => Err(error.into()),
    }
}

fn yes() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true])).into()
}

/// A browser to sign in by the token that came with the request.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignIn {
    /// Always true: the browser gets a cookie.
    #[schema(schema_with = yes)]
    cookie: bool,
    /// The browser's name; the token's device's if absent.
    #[schema(min_length = 1, max_length = 64, pattern = r"\S")]
    name: Option<String>,
    /// The identifier that the page keeps. A browser on this machine that signs in anew with it replaces its former device.
    #[schema(min_length = 16, max_length = 64, pattern = "^[A-Za-z0-9-]+$")]
    browser: Option<String>,
}

pub(super) async fn sign_in(state: Core, call: Call) -> Outcome {
    let SignIn { cookie, name, browser } = call.json()?;
    let browser = browser.as_deref().map(browser_id).transpose()?;
    let caller = call.caller()?;
    if !cookie || call.csrf.is_some() {
        return Err(Problem::invalid("send the token as a bearer token, with the body `{\"cookie\": true}`"));
    }
    let origin = cookies::origin(&call.parts)?;
    let by = caller.device();
    let own = |device: &Device| device.parent.as_ref() == Some(&by.device_id) && device.grant == by.grant;
    if let Some((device, csrf)) = cookies::held(&state.auth, &call.parts).filter(|(held, _)| own(held.device())) {
        return again(device.device(), &csrf);
    }
    let name = name.unwrap_or_else(|| by.name.clone());
    let (device, token) = state.auth.sign_in(caller, &name, origin).await?;
    welcome_browser(&state, &call, &device, &token, browser).await
}

// === pairing by a short code ===

/// The grant of the device that joins.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPairing {
    /// The scopes: `watch`, `prompt`, `approve`, `admin`.
    #[schema(min_items = 1)]
    scopes: Vec<Scope>,
    /// If present, limits the device to these runtimes.
    #[schema(min_items = 1, max_items = 256)]
    runtimes: Option<Vec<RuntimeId>>,
    /// The highest risk of a request that the device may answer; any if absent.
    approve_up_to: Option<Risk>,
    /// Whether the device may answer from a notification.
    #[serde(default)]
    lock_screen: bool,
    /// The device's name; if absent, the one that it reports.
    #[schema(min_length = 1, max_length = 64, pattern = r"\S")]
    name: Option<String>,
}

/// A QR code as SVG.
fn qr(text: &str) -> Result<String, Problem> {
    let code = qrcode::QrCode::new(text).map_err(|error| {
        tracing::error!(%error, "a link is too long for a QR code");
        Problem::internal()
    })?;
    Ok(code.render::<qrcode::render::svg::Color<'_>>().min_dimensions(QR_SIDE, QR_SIDE).build())
}

/// A pairing that has begun.
#[derive(Serialize, ToSchema)]
pub(super) struct Begun {
    pairing_id: String,
    /// The code to type on the device.
    code: String,
    /// The address to open instead of typing the code.
    url: String,
    /// The address as a QR code, in SVG.
    qr: String,
    expires_at: Timestamp,
}

pub(super) async fn begin_pairing(state: Core, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let NewPairing { scopes, runtimes, approve_up_to, lock_screen, name } = call.json()?;
    let grant = Grant { scopes, runtimes, sessions: None, approve_up_to, lock_screen };
    may_grant(&call, &grant)?;
    let begun = state.auth.begin_pairing(&permit, grant, name.as_deref())?;
    let url = format!("{}/#pair={}", state.base(), begun.code.replace('-', ""));
    let place = format!("/v1/pairings/{}", begun.pairing_id);
    let BegunPairing { pairing_id, code, expires_at } = begun;
    created(&place, &Begun { qr: qr(&url)?, pairing_id, code, url, expires_at })
}

fn pairing_id(call: &Call) -> String {
    call.params.first().map(|(_, id)| id.clone()).unwrap_or_default()
}

pub(super) async fn pairing(state: Core, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let query = Query::of(&call);
    let wait = waits(&query)?;
    let known = match query.get("known") {
        None | Some("waiting") => PairingState::Waiting,
        Some("joined") => PairingState::Joined,
        Some(_) => return Err(bad_query("`known` must be waiting or joined".into())),
    };
    let (id, mut stop) = (pairing_id(&call), state.stop.clone());
    tokio::select! {
        view = state.auth.pairing(&permit, &id, known, wait) => json(StatusCode::OK, &view?),
        () = stopping(&mut stop) => Err(plexus_sessions::SessionError::Stopping.into()),
    }
}

/// The confirmation of a pairing.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Confirm {
    /// The number that both sides show.
    #[schema(value_type = u8, minimum = 10, maximum = 99)]
    #[serde(deserialize_with = "whole")]
    number: Option<u64>,
}

pub(super) async fn confirm(state: Core, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let Confirm { number } = call.json()?;
    // No pairing has the number zero.
    let number = number.and_then(|number| u8::try_from(number).ok()).unwrap_or_default();
    json(StatusCode::OK, &state.auth.confirm(&permit, &pairing_id(&call), number).await?)
}

pub(super) async fn refuse(state: Core, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    state.auth.refuse(&permit, &pairing_id(&call))?;
    no_content()
}

/// A short code to look up.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Look {
    /// The code.
    code: String,
}

/// The pairing that a device would join.
#[derive(Serialize, ToSchema)]
pub(super) struct Invitation {
    gateway: Host,
    #[serde(flatten)]
    grant: Grant,
    /// The device's name, if the computer set one.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    expires_at: Timestamp,
}

/// The gateway of a pairing.
#[derive(Serialize, ToSchema)]
pub(super) struct Host {
    /// The machine's name.
    name: String,
    version: &'static str,
}

pub(super) async fn look(state: Core, call: Call) -> Outcome {
    let Look { code } = call.json()?;
    let found = state.auth.find(guard::peer(&call.parts), &code)?;
    let gateway = Host { name: machine(), version: state.version };
    let PairingOffer { grant, name, expires_at } = found;
    json(StatusCode::OK, &Invitation { gateway, grant, name, expires_at })
}

/// A ticket of a device that joined.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fetch {
    /// The ticket.
    ticket: String,
    /// Seconds to wait for the outcome, 60 at most.
    #[serde(default, deserialize_with = "whole")]
    #[schema(maximum = 18446744073709551615_u64)]
    wait: Option<u64>,
}

/// The computer has not decided yet.
#[derive(Serialize, ToSchema)]
pub(super) struct Patience {
    /// `waiting`.
    state: PairingState,
}

pub(super) async fn fetch(state: Core, call: Call) -> Outcome {
    let Fetch { ticket, wait } = call.json()?;
    let mut stop = state.stop.clone();
    let fetched = tokio::select! {
        fetched = state.auth.fetch(&ticket, patience(wait)) => fetched?,
        () = stopping(&mut stop) => FetchedPairing::Waiting,
    };
    match fetched {
        FetchedPairing::Given(device, token) => {
            // A repeated fetch returns the same device.
            let held = cookies::held(&state.auth, &call.parts);
            if held.is_some_and(|(held, _)| held.device().device_id == device.device_id) {
                return welcome(&device, &token);
            }
            welcome_browser(&state, &call, &device, &token, None).await
        }
        FetchedPairing::Waiting => json(StatusCode::ACCEPTED, &Patience { state: PairingState::Waiting }),
    }
}

// === links ===

/// A link to a session.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewShare {
    /// The lifetime in hours; a day if absent, at most 30 days.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 720)]
    hours: Option<u64>,
}

/// A link to one session. It allows watching until it expires or is revoked like a device.
#[derive(Serialize, ToSchema)]
pub(super) struct Share<'a> {
    device_id: &'a DeviceId,
    url: String,
    token: &'a str,
    #[schema(required, nullable = false)]
    expires_at: Option<Timestamp>,
}

pub(super) async fn share(state: Core, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let (session, _) = session_of::<Admin>(&state, &call)?;
    let NewShare { hours } = call.json()?;
    let life = Duration::from_secs(hours.unwrap_or(SHARE_HOURS).saturating_mul(3600));
    if life.is_zero() || life > SHARE_LIFE {
        return Err(Problem::invalid(format!("`hours` must be 1 to {}", SHARE_LIFE.as_secs() / 3600)));
    }
    // A session's title may contain anything; a device's name may not.
    let title: String = session.title.as_deref().unwrap_or_default().chars().take(TITLE_CHARS).collect();
    let share = async |name: &str| state.auth.share(&permit, session.session_id.clone(), name, life).await;
    let (device, token) = match share(&format!("link to {title}")).await {
        Err(AuthError::Invalid(_)) => share("link to a session").await?,
        shared => shared?,
    };
    let url = format!("{}/#share={token}", state.base());
    let place = format!("/v1/devices/{}", device.device_id);
    created(&place, &Share { device_id: &device.device_id, url, token: &token, expires_at: device.expires_at })
}
