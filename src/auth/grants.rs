//! Devices, what they were granted, and the permits that follow.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::devices::sane_name;
use plexus_protocol::{DeviceId, Resolver, Risk, RuntimeId, Scope, SessionId, Timestamp};

/// What a device was granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Grant {
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Only with these runtimes, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtimes: Option<Vec<RuntimeId>>,
    /// Only with these sessions, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Vec<SessionId>>,
    /// The highest risk of a request that it may answer; any, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_up_to: Option<Risk>,
    /// Whether it may answer from a notification, without opening the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lock_screen: bool,
}

impl Grant {
    /// These scopes, everywhere.
    pub fn of(scopes: &[Scope]) -> Self {
        Self { scopes: scopes.to_vec(), runtimes: None, sessions: None, approve_up_to: None, lock_screen: false }
    }

    /// Everything, everywhere: the local administrator.
    pub fn all() -> Self {
        Self::of(&Scope::ALL)
    }

    /// Whether the grant covers `scope` on `target`.
    pub fn covers(&self, scope: Scope, target: Target<'_>) -> bool {
        if !self.scopes.contains(&scope) {
            return false;
        }
        let whole = self.runtimes.is_none() && self.sessions.is_none();
        match target {
            // What concerns the whole gateway is not for a device that may see only a part of it.
            Target::Gateway => whole,
            // Lists are for everybody with the scope; they are filtered by what the device may see.
            Target::Listing => true,
            Target::Runtime(runtime) => {
                self.sessions.is_none() && self.runtimes.as_ref().is_none_or(|some| some.contains(runtime))
            }
            Target::Session(session, runtime) => {
                self.runtimes.as_ref().is_none_or(|some| some.contains(runtime))
                    && self.sessions.as_ref().is_none_or(|some| some.contains(session))
            }
        }
    }
}

/// What a permit is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// The gateway as a whole: devices, starting runtimes, metrics.
    Gateway,
    /// A list or stream that is filtered by what the device may see.
    Listing,
    /// One runtime.
    Runtime(&'a RuntimeId),
    /// One session of a runtime.
    Session(&'a SessionId, &'a RuntimeId),
}

/// What sort of device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// One that was enrolled.
    #[default]
    Device,
    /// A link to one session, for whoever has it.
    Share,
    /// This machine's own administrator.
    Local,
}

/// An enrolled client installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its identifier.
    pub device_id: DeviceId,
    /// The name its owner gave it.
    pub name: String,
    /// What sort it is.
    #[serde(default)]
    pub kind: DeviceKind,
    /// What it may do.
    #[serde(flatten)]
    pub grant: Grant,
    /// When it was enrolled.
    pub created_at: Timestamp,
    /// A browser's: its token counts as a cookie for this origin, and nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The device whose token signed it in; it goes when that one goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<DeviceId>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whether it is a browser that this user signed in on this machine, which ends when it is not used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
    /// When it was last seen, as far as that was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Timestamp>,
    /// SHA-256 (hex) of its token; the token itself is kept nowhere.
    pub token_sha256: String,
}

impl Device {
    /// The device as the one who decided.
    pub fn resolver(&self) -> Resolver {
        Resolver { device_id: self.device_id.clone(), name: self.name.clone() }
    }
}

/// Somebody who proved to be an enrolled device.
#[derive(Clone, Debug)]
pub struct Caller {
    device: Arc<Device>,
}

impl Caller {
    /// For [`auth`](super) alone: whoever makes one has checked a token.
    pub(super) fn proven(device: Arc<Device>) -> Self {
        Self { device }
    }

    /// The device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The same, known by the program through which it acts. All programs of this user on this machine have one token, so
    /// each says which one it is; whoever else has a name keeps it.
    #[must_use]
    pub fn through(&self, program: &str) -> Self {
        let name = sane_name(&format!("{} (local)", program.trim()));
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
    /// [`Denied`] names the scope that is missing.
    pub fn permit<S: Right>(&self, target: Target<'_>) -> Result<Permit<S>, Denied> {
        if self.device.grant.covers(S::SCOPE, target) {
            Ok(Permit { device: Arc::clone(&self.device), right: PhantomData })
        } else {
            Err(Denied { scope: S::SCOPE, device: self.device.name.clone() })
        }
    }

    /// Whether the device may see events of this session.
    pub fn sees(&self, session: &SessionId, runtime: &RuntimeId) -> bool {
        self.device.grant.covers(Scope::Watch, Target::Session(session, runtime))
    }

    /// Whether the device may see everything.
    pub fn sees_all(&self) -> bool {
        self.device.grant.covers(Scope::Watch, Target::Gateway)
    }
}

/// The device was not granted this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("device \"{device}\" lacks the scope `{}` here", scope.as_str())]
pub struct Denied {
    /// What was missing.
    pub scope: Scope,
    /// The device's name.
    pub device: String,
}

/// Proof that a device may do `S`. Made by [`Caller::permit`] alone.
#[derive(Clone, Debug)]
pub struct Permit<S> {
    device: Arc<Device>,
    right: PhantomData<S>,
}

impl<S> Permit<S> {
    /// Who holds it.
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
    /// Runtimes, devices, settings.
    Admin
}
