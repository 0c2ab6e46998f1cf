//! Devices over HTTP: who one is, enrolling, signing a browser in and out, renaming, revoking.

use std::time::Duration;

use http::StatusCode;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::guard::{self, Call};
use super::reply::{
    Outcome, Query, bad_query, created, gateway, json, no_content, no_such, patience, session_of, waits,
};
use super::stop::stopping;
use super::{AppState, Problem, cookies};
use crate::auth::{
    Admin, AuthError, Device, FetchedPairing, Grant, PairingState, SHARE_LIFE, Target, csrf, short_code,
};
use plexus_protocol::{DeviceId, Risk, RuntimeId, Scope, SessionId};

/// Life of a link to a session unless the client says otherwise, in hours.
const SHARE_HOURS: u64 = 24;
/// Longest name that is made of a session's title, in characters.
const TITLE_CHARS: usize = 48;
/// The side of a QR code's picture at least, in pixels; it scales.
const QR_SIDE: u32 = 240;
/// Life of a one-time code unless the client says otherwise, in seconds.
const CODE_SECONDS: u64 = 60;

/// A whole number, as JSON Schema has them: `43.0` is one.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(from)? else { return Ok(None) };
    if let Some(whole) = number.as_u64() {
        return Ok(Some(whole));
    }
    let whole = |float: &f64| float.fract() == 0.0 && *float >= 0.0;
    let text = number.as_f64().filter(whole).map(|float| format!("{float:.0}"));
    match text.and_then(|text| text.parse().ok()) {
        Some(whole) => Ok(Some(whole)),
        None => Err(D::Error::custom(format_args!("{number} is no whole number from 0 up"))),
    }
}

/// Who a device is.
fn identity(device: &Device) -> Value {
    let Grant { scopes, runtimes, sessions, approve_up_to, lock_screen } = &device.grant;
    let mut value =
        json!({ "device_id": device.device_id, "name": device.name, "kind": device.kind, "scopes": scopes });
    if let Some(runtimes) = runtimes {
        value["runtimes"] = json!(runtimes);
    }
    if let Some(sessions) = sessions {
        value["sessions"] = json!(sessions);
    }
    if let Some(up_to) = approve_up_to {
        value["approve_up_to"] = json!(up_to);
    }
    if *lock_screen {
        value["lock_screen"] = json!(true);
    }
    if let Some(at) = device.expires_at {
        value["expires_at"] = json!(at);
    }
    value
}

/// What people call the machine that the gateway runs on.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(super) async fn me(state: AppState, call: Call) -> Outcome {
    let mut me = identity(call.caller()?.device());
    if let Some(csrf) = &call.csrf {
        me["csrf"] = json!(csrf);
    }
    let device = call.caller()?.device();
    if let Some(up_to) = device.grant.approve_up_to {
        let riskier = [Risk::Elevated, Risk::Danger].into_iter().filter(|risk| *risk > up_to);
        let named = riskier.map(|risk| (risk.as_str().to_owned(), state.auth.answering(device, Target::Gateway, risk)));
        me["answered_on"] = json!(named.collect::<std::collections::BTreeMap<_, _>>());
    }
    // Whoever has a link to a session learns nothing of the machine.
    let name = if device.grant.sessions.is_some() { "Plexus".to_owned() } else { machine() };
    me["gateway"] = json!({
        "version": state.version, "started_at": state.started_at, "epoch": state.epoch.as_str(), "name": name,
    });
    if let Some(url) = &state.public_url {
        me["gateway"]["public_url"] = json!(url);
    }
    json(StatusCode::OK, &me)
}

pub(super) async fn sign_out(state: AppState, call: Call) -> Outcome {
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
    /// Its name.
    name: String,
    /// What it may do: `watch`, `prompt`, `approve`, `admin`.
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
    /// Only with these runtimes.
    #[schema(value_type = Option<Vec<String>>)]
    runtimes: Option<Vec<RuntimeId>>,
    /// Only with these sessions.
    #[schema(value_type = Option<Vec<String>>)]
    sessions: Option<Vec<SessionId>>,
    /// The highest risk that it may answer; any, if absent.
    #[schema(value_type = Option<String>)]
    approve_up_to: Option<Risk>,
    /// Whether it may answer from a notification.
    #[serde(default)]
    lock_screen: bool,
}

pub(super) async fn devices(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    json(StatusCode::OK, &json!({ "devices": state.auth.devices(&permit) }))
}

pub(super) async fn enrol(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let NewDevice { name, scopes, runtimes, sessions, approve_up_to, lock_screen } = call.json()?;
    let grant = Grant { scopes, runtimes, sessions, approve_up_to, lock_screen };
    let (device, token) = state.auth.enrol(&permit, &name, grant).await?;
    let mut value = identity(&device);
    value["created_at"] = json!(device.created_at);
    value["token"] = json!(token);
    created(&format!("/v1/devices/{}", device.device_id), &value)
}

/// A new device's way in: its token, or for a browser the cookie that it never shows to its page.
fn welcome(device: &Device, token: &str) -> Outcome {
    let mut value = identity(device);
    value["created_at"] = json!(device.created_at);
    let Some(origin) = &device.origin else {
        value["token"] = json!(token);
        return json(StatusCode::OK, &value);
    };
    value["csrf"] = json!(csrf(token));
    let mut response = json(StatusCode::OK, &value)?;
    cookies::set(&mut response, origin, token);
    Ok(response)
}

/// A new browser's way in. One that was a device before is that no more: its cookie is replaced.
async fn welcome_browser(state: &AppState, call: &Call, device: &Device, token: &str) -> Outcome {
    let held = cookies::held(&state.auth, &call.parts).filter(|_| device.origin.is_some());
    if let Some((before, _)) = held {
        state.auth.replaced(&before).await;
    }
    welcome(device, token)
}

/// A browser that is the device already that it asks to be.
fn again(device: &Device, csrf: &str) -> Outcome {
    let mut value = identity(device);
    value["created_at"] = json!(device.created_at);
    value["csrf"] = json!(csrf);
    json(StatusCode::OK, &value)
}

/// What is to be otherwise.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewName {
    /// Another name.
    name: Option<String>,
    /// Whether it may answer from a notification.
    lock_screen: Option<bool>,
}

fn device_id(call: &Call) -> Result<DeviceId, Problem> {
    call.id(|| no_such("device_not_found", "device"))
}

pub(super) async fn alter(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let NewName { name, lock_screen } = call.json()?;
    if name.is_none() && lock_screen.is_none() {
        return Err(Problem::invalid("give `name`, `lock_screen`, or both"));
    }
    let device = state.auth.alter(&permit, &device_id(&call)?, name.as_deref(), lock_screen).await?;
    json(StatusCode::OK, &identity(&device))
}

pub(super) async fn revoke(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    state.auth.revoke(&permit, &device_id(&call)?).await?;
    no_content()
}

/// What the device that redeems the code may do.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCode {
    /// What it may do: `watch`, `prompt`, `approve`, `admin`.
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
    /// Only with these runtimes.
    #[schema(value_type = Option<Vec<String>>)]
    runtimes: Option<Vec<RuntimeId>>,
    /// Only with these sessions.
    #[schema(value_type = Option<Vec<String>>)]
    sessions: Option<Vec<SessionId>>,
    /// The highest risk that it may answer; any, if absent.
    #[schema(value_type = Option<String>)]
    approve_up_to: Option<Risk>,
    /// Whether it may answer from a notification.
    #[serde(default)]
    lock_screen: bool,
    /// Its life in seconds, at most 120.
    #[serde(default, deserialize_with = "whole")]
    ttl: Option<u64>,
}

pub(super) async fn mint_code(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let NewCode { scopes, runtimes, sessions, approve_up_to, lock_screen, ttl } = call.json()?;
    let life = Duration::from_secs(ttl.unwrap_or(CODE_SECONDS));
    let grant = Grant { scopes, runtimes, sessions, approve_up_to, lock_screen };
    let code = state.auth.mint_code(&permit, grant, life)?;
    json(StatusCode::CREATED, &code)
}

/// A one-time code to exchange.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    /// The code.
    code: String,
    /// What to call the device.
    name: String,
    /// Whether it is a page of this gateway, which gets a cookie in place of a token.
    #[serde(default)]
    cookie: bool,
}

pub(super) async fn pair(state: AppState, call: Call) -> Outcome {
    let Pair { code, name, cookie } = call.json()?;
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
        Ok((device, token)) => welcome_browser(&state, &call, &device, &token).await,
        Err(error @ AuthError::BadCode) => Err(guard::failed(&state.auth, &call.parts).unwrap_or(error.into())),
        Err(error) => Err(error.into()),
    }
}

/// A browser to sign in by the token that came with the request.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignIn {
    /// That it is to have a cookie; there is no other way.
    cookie: bool,
    /// What to call it; as the token's device, if absent.
    name: Option<String>,
}

pub(super) async fn sign_in(state: AppState, call: Call) -> Outcome {
    let SignIn { cookie, name } = call.json()?;
    let caller = call.caller()?;
    if !cookie || call.csrf.is_some() {
        return Err(Problem::invalid(
            "a token that came as a bearer signs a page in: send it with `{\"cookie\": true}`",
        ));
    }
    let origin = cookies::origin(&call.parts)?;
    let by = caller.device();
    let own = |device: &Device| device.parent.as_ref() == Some(&by.device_id) && device.grant == by.grant;
    if let Some((device, csrf)) = cookies::held(&state.auth, &call.parts).filter(|(held, _)| own(held.device())) {
        return again(device.device(), &csrf);
    }
    let name = name.unwrap_or_else(|| by.name.clone());
    let (device, token) = state.auth.sign_in(caller, &name, origin).await?;
    welcome_browser(&state, &call, &device, &token).await
}

// === pairing by a short code ===

/// What a device that joins may do.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPairing {
    /// `watch`, `prompt`, `approve`, `admin`.
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
    /// Only with these runtimes.
    #[schema(value_type = Option<Vec<String>>)]
    runtimes: Option<Vec<RuntimeId>>,
    /// The highest risk that it may answer; any, if absent.
    #[schema(value_type = Option<String>)]
    approve_up_to: Option<Risk>,
    /// Whether it may answer from a notification.
    #[serde(default)]
    lock_screen: bool,
    /// What it is to be called; as it says itself, if absent.
    name: Option<String>,
}

/// A QR code as a picture.
fn qr(text: &str) -> Result<String, Problem> {
    let code = qrcode::QrCode::new(text).map_err(|error| {
        tracing::error!(%error, "a link is too long for a QR code");
        Problem::internal()
    })?;
    Ok(code.render::<qrcode::render::svg::Color<'_>>().min_dimensions(QR_SIDE, QR_SIDE).build())
}

pub(super) async fn begin_pairing(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let NewPairing { scopes, runtimes, approve_up_to, lock_screen, name } = call.json()?;
    let grant = Grant { scopes, runtimes, sessions: None, approve_up_to, lock_screen };
    let begun = state.auth.begin_pairing(&permit, grant, name.as_deref())?;
    let url = format!("{}/#pair={}", state.base(), begun.code.replace('-', ""));
    let place = format!("/v1/pairings/{}", begun.pairing_id);
    let value = json!({
        "pairing_id": begun.pairing_id, "code": begun.code, "url": url, "qr": qr(&url)?, "expires_at": begun.expires_at,
    });
    created(&place, &value)
}

fn pairing_id(call: &Call) -> String {
    call.params.first().map(|(_, id)| id.clone()).unwrap_or_default()
}

pub(super) async fn pairing(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let query = Query::of(&call);
    let wait = waits(&query)?;
    let known = match query.get("known") {
        None | Some("waiting") => PairingState::Waiting,
        Some("joined") => PairingState::Joined,
        Some(_) => return Err(bad_query("`known` is what you know it to be: waiting or joined".into())),
    };
    let (id, mut stop) = (pairing_id(&call), state.stop.clone());
    tokio::select! {
        view = state.auth.pairing(&permit, &id, known, wait) => json(StatusCode::OK, &view?),
        () = stopping(&mut stop) => Err(crate::sessions::SessionError::Stopping.into()),
    }
}

/// A yes.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Confirm {
    /// The number that both sides show.
    #[schema(value_type = u8)]
    #[serde(deserialize_with = "whole")]
    number: Option<u64>,
}

pub(super) async fn confirm(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let Confirm { number } = call.json()?;
    // Zero is on no screen.
    let number = number.and_then(|number| u8::try_from(number).ok()).unwrap_or_default();
    json(StatusCode::OK, &state.auth.confirm(&permit, &pairing_id(&call), number).await?)
}

pub(super) async fn refuse(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    state.auth.refuse(&permit, &pairing_id(&call))?;
    no_content()
}

/// A short code to look at.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Look {
    /// The code.
    code: String,
}

pub(super) async fn look(state: AppState, call: Call) -> Outcome {
    let Look { code } = call.json()?;
    let found = state.auth.find(guard::peer(&call.parts), &code)?;
    let mut value = json!({
        "gateway": { "name": machine(), "version": state.version },
        "scopes": found.grant.scopes, "expires_at": found.expires_at,
    });
    if let Some(runtimes) = &found.grant.runtimes {
        value["runtimes"] = json!(runtimes);
    }
    if let Some(up_to) = found.grant.approve_up_to {
        value["approve_up_to"] = json!(up_to);
    }
    if found.grant.lock_screen {
        value["lock_screen"] = json!(true);
    }
    if let Some(name) = &found.name {
        value["name"] = json!(name);
    }
    json(StatusCode::OK, &value)
}

/// A ticket, to hear what came of it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fetch {
    /// The ticket.
    ticket: String,
    /// Seconds to wait for it, 60 at most.
    #[serde(default, deserialize_with = "whole")]
    wait: Option<u64>,
}

pub(super) async fn fetch(state: AppState, call: Call) -> Outcome {
    let Fetch { ticket, wait } = call.json()?;
    let mut stop = state.stop.clone();
    let fetched = tokio::select! {
        fetched = state.auth.fetch(&ticket, patience(wait)) => fetched?,
        () = stopping(&mut stop) => FetchedPairing::Waiting,
    };
    match fetched {
        FetchedPairing::Given(device, token) => {
            // Fetched once more, it is the same device.
            let held = cookies::held(&state.auth, &call.parts);
            if held.is_some_and(|(held, _)| held.device().device_id == device.device_id) {
                return welcome(&device, &token);
            }
            welcome_browser(&state, &call, &device, &token).await
        }
        FetchedPairing::Waiting => json(StatusCode::ACCEPTED, &json!({ "state": "waiting" })),
    }
}

// === links ===

/// A link to a session.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewShare {
    /// Its life in hours: a day, if absent; thirty at most.
    #[serde(default, deserialize_with = "whole")]
    hours: Option<u64>,
}

pub(super) async fn share(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let (session, _) = session_of::<Admin>(&state, &call)?;
    let NewShare { hours } = call.json()?;
    let life = Duration::from_secs(hours.unwrap_or(SHARE_HOURS).saturating_mul(3600));
    if life.is_zero() || life > SHARE_LIFE {
        return Err(Problem::invalid(format!("`hours` is 1 to {}", SHARE_LIFE.as_secs() / 3600)));
    }
    // What agents call their sessions may be anything; a device's name may not.
    let title: String = session.title.as_deref().unwrap_or_default().chars().take(TITLE_CHARS).collect();
    let share = async |name: &str| state.auth.share(&permit, session.session_id.clone(), name, life).await;
    let (device, token) = match share(&format!("link to {title}")).await {
        Err(AuthError::Invalid(_)) => share("link to a session").await?,
        shared => shared?,
    };
    let url = format!("{}/#share={token}", state.base());
    let value = json!({ "device_id": device.device_id, "url": url, "token": token, "expires_at": device.expires_at });
    created(&format!("/v1/devices/{}", device.device_id), &value)
}
