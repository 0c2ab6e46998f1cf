//! Devices: their rights, enrolment, and links to sessions.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};

use super::{KnownItems, whole};
use crate::{DeviceId, Risk, RuntimeId, Scope, SessionId, Timestamp};

/// The rights of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Grant {
    /// The scopes.
    pub scopes: Vec<Scope>,
    /// If present, the device is limited to these runtimes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtimes: Option<Vec<RuntimeId>>,
    /// If present, the device is limited to these sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Vec<SessionId>>,
    /// The maximum risk of a request that the device may answer; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_up_to: Option<Risk>,
    /// `true` if the device may answer from a notification, without opening the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lock_screen: bool,
}

impl Grant {
    /// Creates a grant of these scopes for the whole gateway.
    pub fn new(scopes: &[Scope]) -> Self {
        Self { scopes: scopes.to_vec(), runtimes: None, sessions: None, approve_up_to: None, lock_screen: false }
    }

    /// Returns a grant of all scopes for the whole gateway: that of the local administrator.
    pub fn all() -> Self {
        Self::new(&Scope::ALL)
    }

    /// Returns whether the grant has a scope, for any target.
    pub fn has(&self, scope: Scope) -> bool {
        // A device that may prompt the agent may draw in its place.
        self.scopes.contains(&scope) || (scope == Scope::Ui && self.scopes.contains(&Scope::Prompt))
    }

    /// Returns whether the grant covers `scope` on `target`.
    pub fn covers(&self, scope: Scope, target: Target<'_>) -> bool {
        if !self.has(scope) {
            return false;
        }
        let whole = self.runtimes.is_none() && self.sessions.is_none();
        match target {
            // A device limited to a part of the gateway has no right to the whole.
            Target::Gateway => whole,
            // Every device with the scope may list; lists are filtered by what the device may see.
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

/// Reads the grant of a response without the scopes that only a newer gateway has.
pub(super) fn known_rights<'de, D: Deserializer<'de>>(from: D) -> Result<Grant, D::Error> {
    let mut members = Map::deserialize(from)?;
    if let Some(Value::Array(scopes)) = members.get_mut("scopes") {
        scopes.retain(|scope| Scope::deserialize(scope).is_ok());
    }
    Grant::deserialize(Value::Object(members)).map_err(D::Error::custom)
}

/// The subject of a permit.
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

/// The kind of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// An enrolled device.
    #[default]
    Device,
    /// A link to one session.
    Share,
    /// The local administrator.
    Local,
    /// The agent of one session.
    Agent,
}

/// A one-time code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Code)]
pub struct OneTimeCode {
    /// The secret; valid for one device.
    pub code: String,
    /// The time when the code expires.
    pub expires_at: Timestamp,
}

/// A device without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Device)]
pub struct DeviceView {
    /// The identifier.
    pub device_id: DeviceId,
    /// The name.
    pub name: String,
    /// The kind of device.
    pub kind: DeviceKind,
    /// The grant of the device.
    #[serde(flatten, deserialize_with = "known_rights")]
    pub grant: Grant,
    /// The time when the device was enrolled.
    pub created_at: Timestamp,
    /// The time when the device last authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Timestamp>,
    /// The time when the device expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// `true` if the device has an open stream, socket or long poll.
    pub online: bool,
    /// `true` if this is the calling device.
    pub you: bool,
    /// `true` if this is the local administrator, which cannot be revoked.
    pub local: bool,
    /// `true` if this is a browser of this user on this machine, whose enrolment ends 30 days after its last use.
    pub local_browser: bool,
}

/// The identity of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Identity {
    #[doc = concat!("The device.")]
    pub device_id: DeviceId,
    #[doc = concat!("The name that users gave the device.")]
    pub name: String,
    #[doc = concat!("The kind of device.")]
    pub kind: DeviceKind,
    #[doc = concat!("The rights of the device.")]
    #[serde(flatten, deserialize_with = "known_rights")]
    pub grant: Grant,
    /// The time when the device expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// The caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    #[doc = concat!("The calling device.")]
    #[serde(flatten)]
    pub device: Identity,
    /// The required value of `Plexus-CSRF` for every request of a page except GET and HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<String>,
    /// For a device with a risk limit: the devices that may answer requests above its limit, as far as it may know them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_on: Option<AnsweredOn>,
    #[doc = concat!("The gateway that answers.")]
    pub gateway: GatewayInfo,
}

/// Names of devices by the risk that they may answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnsweredOn {
    #[doc = concat!("Devices that may answer requests of elevated risk; absent if the caller may itself.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elevated: Option<Vec<String>>,
    #[doc = concat!("Devices that may answer dangerous requests; absent if the caller may itself.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub danger: Option<Vec<String>>,
}

/// The gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GatewayInfo {
    #[doc = concat!("The version of the program, as `plexus --version` prints it.")]
    pub version: String,
    #[doc = concat!("The time at which the process started.")]
    pub started_at: Timestamp,
    /// The epoch of the log.
    pub epoch: String,
    /// The machine's name.
    pub name: String,
    /// The origin by which other machines reach the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
}

/// A device to enrol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDevice {
    /// The device's name.
    #[schema(min_length = 1, max_length = 64, pattern = r"\S")]
    pub name: String,
    /// The scopes: `watch`, `prompt`, `approve`, `admin`.
    #[schema(min_items = 1)]
    pub scopes: Vec<Scope>,
    /// If present, limits the device to these runtimes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 256)]
    pub runtimes: Option<Vec<RuntimeId>>,
    /// If present, limits the device to these sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 256)]
    pub sessions: Option<Vec<SessionId>>,
    /// The maximum risk of a request that the device may answer; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_up_to: Option<Risk>,
    /// `true` if the device may answer from a notification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lock_screen: bool,
}

/// The enrolled devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Devices {
    #[doc = concat!("All devices that are not revoked.")]
    #[schema(value_type = Vec<DeviceView>)]
    pub devices: KnownItems<DeviceView>,
}

/// A device and its token, which is returned only once; or `csrf` if the token is a cookie.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    #[doc = concat!("The new device.")]
    #[serde(flatten)]
    pub device: Identity,
    #[doc = concat!("The time of the enrolment.")]
    pub created_at: Timestamp,
    #[doc = concat!("The bearer token; absent for a browser, which gets it as a cookie.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The required value of `Plexus-CSRF` for every request of a page except GET and HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<String>,
}

/// The changes to a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewName)]
pub struct DeviceChanges {
    /// The new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 64, pattern = r"\S")]
    pub name: Option<String>,
    /// `true` if the device may answer from a notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_screen: Option<bool>,
}

/// The number of devices that were revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RevokedDevices {
    #[doc = concat!("The number of devices that were revoked.")]
    pub revoked: usize,
}

/// The grant of the device that redeems the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCode {
    /// The scopes: `watch`, `prompt`, `approve`, `admin`.
    #[schema(min_items = 1)]
    pub scopes: Vec<Scope>,
    /// If present, limits the device to these runtimes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 256)]
    pub runtimes: Option<Vec<RuntimeId>>,
    /// If present, limits the device to these sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 256)]
    pub sessions: Option<Vec<SessionId>>,
    /// The maximum risk of a request that the device may answer; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_up_to: Option<Risk>,
    /// `true` if the device may answer from a notification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lock_screen: bool,
    /// The lifetime of the code in seconds, at most 120.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 18446744073709551615_u64)]
    pub ttl: Option<u64>,
}

fn true_schema() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true])).into()
}

/// A browser to sign in with the token of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// Always true: the browser gets a cookie.
    #[schema(schema_with = true_schema)]
    pub cookie: bool,
    /// The browser's name; the name of the token's device if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 64, pattern = r"\S")]
    pub name: Option<String>,
    /// The identifier that the page stores. A browser on this machine that signs in again with it replaces its former device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 16, max_length = 64, pattern = "^[A-Za-z0-9-]+$")]
    pub browser: Option<String>,
}

/// A link to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewShare {
    /// The lifetime in hours; a day if absent, at most 30 days.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 720)]
    pub hours: Option<u64>,
}

/// A link to one session. It allows watching until it expires or is revoked like a device.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Share {
    #[doc = concat!("The device of the link; revoking it ends the link.")]
    pub device_id: DeviceId,
    #[doc = concat!("The link, with the token in its fragment.")]
    pub url: String,
    #[doc = concat!("The bearer token of the link.")]
    pub token: String,
    #[doc = concat!("The time when the link expires; always present.")]
    #[schema(required, nullable = false)]
    pub expires_at: Option<Timestamp>,
}
