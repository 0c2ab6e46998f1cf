//! Devices over HTTP: who one is, enrolling, signing a browser in and out, renaming, revoking.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::guard::{self, Call};
use super::http::{Outcome, created, gateway, json, no_content, no_such};
use super::{AppState, Problem, cookies};
use crate::auth::{Admin, AuthError, Device, Grant, csrf};
use crate::model::{DeviceId, RuntimeId, Scope, SessionId};

/// Life of a one-time code unless the client says otherwise, in seconds.
const CODE_SECONDS: u64 = 60;

/// Who a device is.
fn identity(device: &Device) -> Value {
    let Grant { scopes, runtimes, sessions } = &device.grant;
    let mut value =
        json!({ "device_id": device.device_id, "name": device.name, "kind": device.kind, "scopes": scopes });
    if let Some(runtimes) = runtimes {
        value["runtimes"] = json!(runtimes);
    }
    if let Some(sessions) = sessions {
        value["sessions"] = json!(sessions);
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
    me["gateway"] = json!({
        "version": state.version, "started_at": state.started_at, "epoch": state.epoch.as_str(), "name": machine(),
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
}

pub(super) async fn devices(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    json(StatusCode::OK, &json!({ "devices": state.auth.devices(&permit) }))
}

pub(super) async fn enrol(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let NewDevice { name, scopes, runtimes, sessions } = call.json()?;
    let (device, token) = state.auth.enrol(&permit, &name, Grant { scopes, runtimes, sessions }).await?;
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

/// Another name.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewName {
    /// It.
    name: String,
}

fn device_id(call: &Call) -> Result<DeviceId, Problem> {
    call.id(|| no_such("device_not_found", "device"))
}

pub(super) async fn rename(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let NewName { name } = call.json()?;
    let device = state.auth.rename(&permit, &device_id(&call)?, &name).await?;
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
    /// What it may do; everything that the one who asks may, if absent.
    #[schema(value_type = Option<Vec<String>>)]
    scopes: Option<Vec<Scope>>,
    /// Only with these runtimes.
    #[schema(value_type = Option<Vec<String>>)]
    runtimes: Option<Vec<RuntimeId>>,
    /// Only with these sessions.
    #[schema(value_type = Option<Vec<String>>)]
    sessions: Option<Vec<SessionId>>,
    /// Its life in seconds, at most 120.
    ttl: Option<u64>,
}

pub(super) async fn mint_code(state: AppState, call: Call) -> Outcome {
    let permit = gateway::<Admin>(&call)?;
    let NewCode { scopes, runtimes, sessions, ttl } = call.json()?;
    let scopes = scopes.unwrap_or_else(|| permit.device().grant.scopes.clone());
    let life = Duration::from_secs(ttl.unwrap_or(CODE_SECONDS));
    let code = state.auth.mint_code(&permit, Grant { scopes, runtimes, sessions }, life)?;
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
    match state.auth.redeem(&code, &name, origin).await {
        Ok((device, token)) => welcome(&device, &token),
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
    let name = name.unwrap_or_else(|| caller.device().name.clone());
    let (device, token) = state.auth.sign_in(caller, &name, origin).await?;
    welcome(&device, &token)
}
