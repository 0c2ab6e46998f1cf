//! Devices over HTTP: the caller's identity, enrolling, signing a browser in and out, renaming, revoking.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use plexus_auth::{
    Admin, AuthError, BegunPairing, Device, FetchedPairing, Invitation as PairingOffer, SHARE_LIFE, browser_id, csrf,
    short_code,
};
use plexus_protocol::api::devices::{
    AnsweredOn, DeviceChanges, Devices, GatewayInfo, Grant, Identity, Me, NewCode, NewDevice, NewShare, NewToken,
    OneTimeCode, RevokedDevices, Share, SignIn, Target,
};
use plexus_protocol::api::pairing::{
    CodeLookup, ConfirmPairing, FetchToken, NewPairing, PairingBegun, PairingHost, PairingInvitation, PairingPending,
    PairingState, PairingView, PhoneTicket, RedeemCode,
};
use plexus_protocol::{DeviceId, Risk, Scope};
use plexus_risk::Effect;
use plexus_router::described::{Parameter, number, one_of};
use plexus_router::guard::{self, Call, Policy, Route};
use plexus_router::reply::{
    QueryParameters, RouteResult, bad_query, created, gateway, json, no_content, no_such, poll_wait, session_of, waits,
    within_limit,
};
use plexus_router::routes::{
    ADMIN, DELETE, GET, JSON, NOTHING, OPTIONAL_JSON, PATCH, POST, UNAUTHENTICATED, WATCH, route, secret,
};
use plexus_router::stop::stopping;
use plexus_router::{Core, Problem, cookies};

/// Default lifetime of a link to a session, in hours.
const SHARE_HOURS: u64 = 24;
/// Maximum length of a device name made from a session's title, in characters.
const TITLE_CHARS: usize = 48;
/// Minimum width and height of a QR code, in pixels; the image scales.
const QR_SIDE: u32 = 240;
/// Default lifetime of a one-time code, in seconds.
const CODE_SECONDS: u64 = 60;

const PAIRING_WAIT: Parameter =
    Parameter::query("wait", "Seconds to wait until the state differs from `known` (default 0, at most 60)", number);
const PAIRING_KNOWN: Parameter =
    Parameter::query("known", "The state that you know: `waiting` or `joined` (default waiting)", || {
        one_of(&["waiting", "joined"])
    });

/// Returns the routes of devices and pairing.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        secret(route(GET, "/v1/me", WATCH, NOTHING, "The calling device", me))
            .response::<Me>(200),
        route(DELETE, "/v1/me", WATCH, NOTHING, "Sign out: remove the calling device", sign_out)
            .empty(204),
        secret(route(POST, "/v1/signin", WATCH, JSON, "Sign in a browser with a device's token; sets a cookie", sign_in))
            .request::<SignIn>().response::<NewToken>(200),
        route(GET, "/v1/devices", ADMIN, NOTHING, "Enrolled devices", devices)
            .response::<Devices>(200),
        secret(route(POST, "/v1/devices", ADMIN, JSON, "Enrol a device", enrol))
            .request::<NewDevice>().response::<NewToken>(201),
        route(PATCH, "/v1/devices/{id}", ADMIN, JSON, "Rename a device, or allow it to answer from notifications", change_device)
            .request::<DeviceChanges>().response::<Identity>(200),
        route(DELETE, "/v1/devices/{id}", ADMIN, NOTHING, "Revoke a device immediately", revoke)
            .empty(204),
        route(DELETE, "/v1/local-browsers", ADMIN, NOTHING, "Sign out all browsers of this user on this machine", revoke_local_browsers)
            .response::<RevokedDevices>(200),
        secret(route(POST, "/v1/codes", ADMIN, JSON, "Create a one-time code that enrols a device", mint_code))
            .request::<NewCode>().response::<OneTimeCode>(201),
        secret(route(POST, "/v1/sessions/{id}/shares", ADMIN, OPTIONAL_JSON, "Create a read-only link to a session", share))
            .request::<NewShare>().response::<Share>(201),
        secret(route(POST, "/v1/pairings", ADMIN, JSON, "Start a pairing: a short code for one device", begin_pairing))
            .request::<NewPairing>().response::<PairingBegun>(201),
        secret(route(GET, "/v1/pairings/{id}", ADMIN, NOTHING, "The state of a pairing", pairing))
            .response::<PairingView>(200).with(&[&PAIRING_WAIT, &PAIRING_KNOWN]),
        secret(route(POST, "/v1/pairings/{id}/confirm", ADMIN, JSON, "Confirm that the device shows this number", confirm))
            .request::<ConfirmPairing>().response::<PairingView>(200),
        route(DELETE, "/v1/pairings/{id}", ADMIN, NOTHING, "Refuse a pairing", refuse)
            .empty(204),
        // The code authenticates the request.
        secret(route(POST, "/v1/pair", Policy::Public, UNAUTHENTICATED, "Exchange a one-time code for a device's token or cookie", pair))
            .request::<RedeemCode>().response::<NewToken>(200).response::<PhoneTicket>(202),
        secret(route(POST, "/v1/pair/look", Policy::Public, UNAUTHENTICATED, "What a short code grants", look_up_code))
            .request::<CodeLookup>().response::<PairingInvitation>(200),
        // The ticket authenticates the request.
        secret(route(POST, "/v1/pair/wait", Policy::Public, UNAUTHENTICATED, "The result of joining with a short code", fetch))
            .request::<FetchToken>().response::<NewToken>(200).response::<PairingPending>(202),
    ]
}

/// Returns the identity of a device.
fn identity(device: &Device) -> Identity {
    let Device { device_id, name, kind, grant, expires_at, .. } = device;
    Identity {
        device_id: device_id.clone(),
        name: name.clone(),
        kind: *kind,
        grant: grant.clone(),
        expires_at: *expires_at,
    }
}

/// Returns the name of the gateway's machine.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

async fn me(state: Core, call: Call) -> RouteResult {
    let device = call.caller()?.device();
    let answering = |risk| state.auth.answering(device, Target::Gateway, risk);
    let answered_on = device.grant.approve_up_to.map(|up_to| AnsweredOn {
        elevated: (Risk::Elevated > up_to).then(|| answering(Risk::Elevated)),
        danger: (Risk::Danger > up_to).then(|| answering(Risk::Danger)),
    });
    // A link to a session does not reveal the machine's name.
    let name = if device.grant.sessions.is_some() { "Plexus".to_owned() } else { machine() };
    let gateway = GatewayInfo {
        version: state.version.to_owned(),
        started_at: state.started_at,
        epoch: state.epoch().as_str().to_owned(),
        name,
        public_url: state.public_addresses.url(),
    };
    json(StatusCode::OK, &Me { device: identity(device), csrf: call.csrf.clone(), answered_on, gateway })
}

async fn sign_out(state: Core, call: Call) -> RouteResult {
    let caller = call.caller()?;
    state.auth.leave(caller).await?;
    let mut response = no_content()?;
    if let Some(origin) = &caller.device().origin {
        cookies::clear(&mut response, origin);
    }
    Ok(response)
}

async fn devices(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    json(StatusCode::OK, &Devices { devices: state.auth.devices(&permit).into() })
}

/// Checks that a new device's grant does not exceed that of the enrolling device.
fn may_grant(call: &Call, grant: &Grant) -> Result<(), Problem> {
    let acts = [Scope::Approve, Scope::Admin, Scope::Type].into_iter().any(|scope| grant.has(scope));
    if !acts {
        return Ok(());
    }
    within_limit(call, Effect::Enrol(grant.approve_up_to.unwrap_or(Risk::Danger)))
}

async fn enrol(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    let NewDevice { name, scopes, runtimes, sessions, approve_up_to, lock_screen } = call.json()?;
    let grant = Grant { scopes, runtimes, sessions, approve_up_to, lock_screen };
    may_grant(&call, &grant)?;
    let (device, token) = state.auth.enrol(&permit, &name, grant).await?;
    let given = NewToken { token: Some(token), ..without_token(&device) };
    created(&format!("/v1/devices/{}", device.device_id), &given)
}

/// Returns a device without its token.
fn without_token(device: &Device) -> NewToken {
    NewToken { device: identity(device), created_at: device.created_at, token: None, csrf: None }
}

/// Returns the response with a new device's token; for a browser the token is a cookie that scripts cannot read.
fn welcome(device: &Device, token: &str) -> RouteResult {
    let Some(origin) = &device.origin else {
        return json(StatusCode::OK, &NewToken { token: Some(token.to_owned()), ..without_token(device) });
    };
    let mut response = existing_device(device, &csrf(token))?;
    cookies::set(&mut response, origin, token);
    Ok(response)
}

/// Returns the response for a new browser. If it was a device before, its cookie is replaced and the old device removed.
async fn welcome_browser(
    state: &Core,
    call: &Call,
    device: &Arc<Device>,
    token: &str,
    browser: Option<&str>,
) -> RouteResult {
    let held = cookies::held(&state.auth, &call.parts).filter(|_| device.origin.is_some());
    if let Some((before, _)) = held {
        state.auth.replaced(&before).await;
    }
    let device = state.auth.one_per_browser(device, browser).await?;
    welcome(&device, token)
}

/// Returns the response for a browser that is this device already.
fn existing_device(device: &Device, csrf: &str) -> RouteResult {
    json(StatusCode::OK, &NewToken { csrf: Some(csrf.to_owned()), ..without_token(device) })
}

fn device_id(call: &Call) -> Result<DeviceId, Problem> {
    call.id(|| no_such("device_not_found", "device"))
}

async fn change_device(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    let DeviceChanges { name, lock_screen } = call.json()?;
    if name.is_none() && lock_screen.is_none() {
        return Err(Problem::invalid("give `name`, `lock_screen`, or both"));
    }
    let device = state.auth.alter(&permit, &device_id(&call)?, name.as_deref(), lock_screen).await?;
    json(StatusCode::OK, &identity(&device))
}

async fn revoke(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    state.auth.revoke(&permit, &device_id(&call)?).await?;
    no_content()
}

async fn revoke_local_browsers(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    let revoked = state.auth.revoke_local_browsers(&permit).await?;
    json(StatusCode::OK, &RevokedDevices { revoked })
}

async fn mint_code(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    let NewCode { scopes, runtimes, sessions, approve_up_to, lock_screen, ttl } = call.json()?;
    let lifetime = Duration::from_secs(ttl.unwrap_or(CODE_SECONDS));
    let grant = Grant { scopes, runtimes, sessions, approve_up_to, lock_screen };
    may_grant(&call, &grant)?;
    let code = state.auth.mint_code(&permit, grant, lifetime)?;
    json(StatusCode::CREATED, &code)
}

async fn pair(state: Core, call: Call) -> RouteResult {
    let RedeemCode { code, name, cookie, browser } = call.json()?;
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
        return existing_device(device.device(), &csrf);
    }
    match state.auth.redeem(&code, &name, origin).await {
        Ok((device, token)) => welcome_browser(&state, &call, &device, &token, browser).await,
        Err(error @ AuthError::BadCode) => Err(guard::failed(&state.auth, &call.parts).unwrap_or(error.into())),
        Err(error) => Err(error.into()),
    }
}

async fn sign_in(state: Core, call: Call) -> RouteResult {
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
        return existing_device(device.device(), &csrf);
    }
    let name = name.unwrap_or_else(|| by.name.clone());
    let (device, token) = state.auth.sign_in(caller, &name, origin).await?;
    welcome_browser(&state, &call, &device, &token, browser).await
}

// === pairing by a short code ===

/// Returns a QR code as SVG.
fn qr(text: &str) -> Result<String, Problem> {
    let code = qrcode::QrCode::new(text).map_err(|error| {
        tracing::error!(%error, "a link is too long for a QR code");
        Problem::internal()
    })?;
    Ok(code.render::<qrcode::render::svg::Color<'_>>().min_dimensions(QR_SIDE, QR_SIDE).build())
}

async fn begin_pairing(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    let NewPairing { scopes, runtimes, approve_up_to, lock_screen, name } = call.json()?;
    let grant = Grant { scopes, runtimes, sessions: None, approve_up_to, lock_screen };
    may_grant(&call, &grant)?;
    let offer = state.auth.begin_pairing(&permit, grant, name.as_deref())?;
    let url = format!("{}/#pair={}", state.base(), offer.code.replace('-', ""));
    let location = format!("/v1/pairings/{}", offer.pairing_id);
    let BegunPairing { pairing_id, code, expires_at } = offer;
    created(&location, &PairingBegun { qr: qr(&url)?, pairing_id, code, url, expires_at })
}

fn pairing_id(call: &Call) -> String {
    call.params.first().map(|(_, id)| id.clone()).unwrap_or_default()
}

async fn pairing(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    let query = QueryParameters::from_call(&call);
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

async fn confirm(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    let ConfirmPairing { number } = call.json()?;
    // No pairing has the number zero.
    let number = number.and_then(|number| u8::try_from(number).ok()).unwrap_or_default();
    json(StatusCode::OK, &state.auth.confirm(&permit, &pairing_id(&call), number).await?)
}

async fn refuse(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    state.auth.refuse(&permit, &pairing_id(&call))?;
    no_content()
}

async fn look_up_code(state: Core, call: Call) -> RouteResult {
    let CodeLookup { code } = call.json()?;
    let found = state.auth.find(guard::peer(&call.parts), &code)?;
    let gateway = PairingHost { name: machine(), version: state.version.to_owned() };
    let PairingOffer { grant, name, expires_at } = found;
    json(StatusCode::OK, &PairingInvitation { gateway, grant, name, expires_at })
}

async fn fetch(state: Core, call: Call) -> RouteResult {
    let FetchToken { ticket, wait } = call.json()?;
    let mut stop = state.stop.clone();
    let fetched = tokio::select! {
        fetched = state.auth.fetch(&ticket, poll_wait(wait)) => fetched?,
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
        FetchedPairing::Waiting => json(StatusCode::ACCEPTED, &PairingPending { state: PairingState::Waiting }),
    }
}

// === links ===

async fn share(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    let (session, _) = session_of::<Admin>(&state, &call)?;
    let NewShare { hours } = call.json()?;
    let lifetime = Duration::from_secs(hours.unwrap_or(SHARE_HOURS).saturating_mul(3600));
    if lifetime.is_zero() || lifetime > SHARE_LIFE {
        return Err(Problem::invalid(format!("`hours` must be 1 to {}", SHARE_LIFE.as_secs() / 3600)));
    }
    // A session's title may contain anything; a device's name may not.
    let title: String = session.title.as_deref().unwrap_or_default().chars().take(TITLE_CHARS).collect();
    let share = async |name: &str| state.auth.share(&permit, session.session_id.clone(), name, lifetime).await;
    let (device, token) = match share(&format!("link to {title}")).await {
        Err(AuthError::Invalid(_)) => share("link to a session").await?,
        shared => shared?,
    };
    let url = format!("{}/#share={token}", state.base());
    let location = format!("/v1/devices/{}", device.device_id);
    created(&location, &Share { device_id: device.device_id.clone(), url, token, expires_at: device.expires_at })
}
