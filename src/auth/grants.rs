//! Devices, their grants, and the permits that follow from them.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::AuthError;
use super::device_name::valid_name;
use plexus_protocol::api::devices::{DeviceKind, Grant, Target};
use plexus_protocol::{DeviceId, Resolver, Risk, RuntimeId, Scope, SessionId, Timestamp};

/// Maximum number of runtimes or sessions that a grant names.
const GRANT_NAMES: usize = 256;

/// Checks a grant that a client sent; sorts its scopes.
pub(super) fn valid_grant(mut grant: Grant) -> Result<Grant, AuthError> {
    grant.scopes.sort_unstable();
    grant.scopes.dedup();
    let names = |some: Option<usize>| some.is_none_or(|count| (1..=GRANT_NAMES).contains(&count));
    if grant.scopes.is_empty() {
        let all: Vec<_> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        return Err(AuthError::Invalid(format!("a device needs at least one of the scopes {}", all.join(", "))));
    }
    if grant.scopes.contains(&Scope::Ui) {
        return Err(AuthError::Invalid("the scope `ui` is for agents alone: a device that may prompt may draw".into()));
    }
    if grant.scopes.contains(&Scope::Type) && (grant.runtimes.is_some() || grant.sessions.is_some()) {
        return Err(AuthError::Invalid(
            "the scope `type` is for all terminals, which belong to no runtime and no session: leave out `runtimes` \
             and `sessions`, or the scope"
                .into(),
        ));
    }
    if grant.scopes.contains(&Scope::Type) && grant.approve_up_to.is_some_and(|up_to| up_to < Risk::Danger) {
        return Err(AuthError::Invalid(
            "a device that types in a terminal can run anything: with the scope `type`, `approve_up_to` must be `danger`, or \
             left out"
                .into(),
        ));
    }
    if !names(grant.runtimes.as_ref().map(Vec::len)) || !names(grant.sessions.as_ref().map(Vec::len)) {
        return Err(AuthError::Invalid(format!(
            "`runtimes` and `sessions` must have 1 to {GRANT_NAMES} entries; leave them out to allow all"
        )));
    }
    Ok(grant)
}

/// An enrolled client installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The identifier.
    pub device_id: DeviceId,
    /// The name given by the owner.
    pub name: String,
    /// The kind of device.
    #[serde(default)]
    pub kind: DeviceKind,
    /// The rights of the device.
    #[serde(flatten)]
    pub grant: Grant,
    /// The time when the device was enrolled.
    pub created_at: Timestamp,
    /// For a browser: the origin of the cookie; the token is valid only as this cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The device whose token signed this one in; both are removed together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<DeviceId>,
    /// The time when the device expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// `true` if this is a local browser of this user, which expires when unused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
    /// For a local browser: the identifier that its page stores, so that signing in again does not make another device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser: Option<String>,
    /// The time when the device was last seen, as last stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Timestamp>,
    /// SHA-256 (hex) of the token; the token itself is not stored.
    pub token_sha256: String,
}

impl Device {
    /// Makes a device that is enrolled now, without an origin, a parent or an expiry.
    pub(super) fn new(device_id: DeviceId, name: &str, kind: DeviceKind, grant: Grant, token_sha256: String) -> Self {
        Self {
            device_id,
            name: name.to_owned(),
            kind,
            grant,
            created_at: SystemTime::now().into(),
            origin: None,
            parent: None,
            expires_at: None,
            local: false,
            browser: None,
            last_seen_at: None,
            token_sha256,
        }
    }

    /// Returns the device as the resolver of a request.
    pub fn resolver(&self) -> Resolver {
        Resolver { device_id: self.device_id.clone(), name: self.name.clone() }
    }
}

/// An authenticated device.
#[derive(Clone, Debug)]
pub struct Caller {
    device: Arc<Device>,
}

impl Caller {
    /// Makes a caller. For [`auth`](super) only, after a token was checked.
    pub(super) fn proven(device: Arc<Device>) -> Self {
        Self { device }
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns the same caller, named after the program it uses. All programs of this user on this machine share one token, so each
    /// reports its name; other devices keep their own name.
    #[must_use]
    pub fn with_program(&self, program: &str) -> Self {
        let name = valid_name(&format!("{} (local)", program.trim()));
        match name {
            Ok(name) if self.device.kind == DeviceKind::Local && !program.trim().is_empty() => {
                Self { device: Arc::new(Device { name, ..(*self.device).clone() }) }
            }
            _ => self.clone(),
        }
    }

    /// Checks the grant and makes the permit.
    ///
    /// # Errors
    /// [`Denied`] names the missing scope.
    pub fn permit<S: Right>(&self, target: Target<'_>) -> Result<Permit<S>, Denied> {
        if self.device.grant.covers(S::SCOPE, target) {
            Ok(Permit { device: Arc::clone(&self.device), right: PhantomData })
        } else {
            Err(Denied { scope: S::SCOPE, device: self.device.name.clone() })
        }
    }

    /// Returns whether the device may see events of this session.
    pub fn sees(&self, session: &SessionId, runtime: &RuntimeId) -> bool {
        self.device.grant.covers(Scope::Watch, Target::Session(session, runtime))
    }

    /// Returns whether the device may see everything.
    pub fn sees_all(&self) -> bool {
        self.device.grant.covers(Scope::Watch, Target::Gateway)
    }
}

/// The error that a device lacks a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("device \"{device}\" lacks the scope `{}` here", scope.as_str())]
pub struct Denied {
    /// The missing scope.
    pub scope: Scope,
    /// The device's name.
    pub device: String,
}

/// Proof that a device may do `S`. Only [`Caller::permit`] makes one.
#[derive(Clone, Debug)]
pub struct Permit<S> {
    device: Arc<Device>,
    right: PhantomData<S>,
}

impl<S> Permit<S> {
    /// Returns the device that holds the permit.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

/// A scope as a type.
pub trait Right {
    /// The scope.
    const SCOPE: Scope;
}

macro_rules! rights {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}
        impl Right for $name {
            const SCOPE: Scope = Scope::$name;
        }
    )*};
}

rights! {
    /// See sessions, events and requests.
    Watch
    /// Start, prompt and cancel.
    Prompt
    /// Answer requests.
    Approve
    /// Manage runtimes, devices and settings.
    Admin
    /// Type in shared terminals.
    Type
    /// Draw surfaces and ask in a session.
    Ui
}
