//! Pairing of a device by a short code, and one-time codes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::devices::{Grant, known_rights};
use super::whole;
use crate::{DeviceId, Risk, RuntimeId, Scope, Timestamp};

/// The state of a pairing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairingState {
    /// No phone has used the code.
    Waiting,
    /// A phone joined; the numbers have to be compared at the computer.
    Joined,
    /// The computer confirmed.
    Confirmed,
    /// The computer refused.
    Refused,
    /// The pairing expired.
    Expired,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// A pairing from the computer's view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Pairing)]
pub struct PairingView {
    /// The identifier.
    pub pairing_id: String,
    /// The state.
    pub state: PairingState,
    /// The name of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The number that the phone displays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u8>,
    /// The device that was enrolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_id: Option<DeviceId>,
    /// The time when the pairing expires.
    pub expires_at: Timestamp,
}

/// The ticket of a phone that joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Ticket)]
pub struct PhoneTicket {
    /// The secret with which the phone requests the outcome.
    pub ticket: String,
    /// The number that the computer displays too.
    pub number: u8,
    /// The time when the pairing expires.
    pub expires_at: Timestamp,
}

/// A one-time code to exchange.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Pair)]
pub struct RedeemCode {
    /// The code.
    pub code: String,
    /// The name of the device.
    #[schema(min_length = 1, max_length = 64, pattern = r"\S")]
    pub name: String,
    /// `true` if the device is a page of this gateway, which gets a cookie instead of a token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cookie: bool,
    /// The identifier that the page stores. A browser on this machine that signs in again with it replaces its former device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 16, max_length = 64, pattern = "^[A-Za-z0-9-]+$")]
    pub browser: Option<String>,
}

/// The grant of the device that joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPairing {
    /// The scopes: `watch`, `prompt`, `approve`, `admin`.
    #[schema(min_items = 1)]
    pub scopes: Vec<Scope>,
    /// If present, limits the device to these runtimes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 256)]
    pub runtimes: Option<Vec<RuntimeId>>,
    /// The maximum risk of a request that the device may answer; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_up_to: Option<Risk>,
    /// `true` if the device may answer from a notification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lock_screen: bool,
    /// The device's name; if absent, the one that it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 64, pattern = r"\S")]
    pub name: Option<String>,
}

/// A started pairing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Begun)]
pub struct PairingBegun {
    #[doc = concat!("The identifier for `/v1/pairings/{id}`.")]
    pub pairing_id: String,
    /// The code to type on the device.
    pub code: String,
    /// The address to open instead of typing the code.
    pub url: String,
    /// The address as a QR code, in SVG.
    pub qr: String,
    #[doc = concat!("The time when the code expires, two minutes after the start.")]
    pub expires_at: Timestamp,
}

/// The confirmation of a pairing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Confirm)]
pub struct ConfirmPairing {
    /// The number that both sides display.
    #[schema(value_type = u8, minimum = 10, maximum = 99)]
    #[serde(deserialize_with = "whole")]
    pub number: Option<u64>,
}

/// A short code to look up.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Look)]
pub struct CodeLookup {
    /// The code.
    pub code: String,
}

/// The pairing that a device would join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Invitation)]
pub struct PairingInvitation {
    #[doc = concat!("The gateway that the code belongs to.")]
    pub gateway: PairingHost,
    #[doc = concat!("The rights that the device would get.")]
    #[serde(flatten, deserialize_with = "known_rights")]
    pub grant: Grant,
    /// The device's name, if the computer set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[doc = concat!("The time when the code expires.")]
    pub expires_at: Timestamp,
}

/// The gateway of a pairing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Host)]
pub struct PairingHost {
    /// The machine's name.
    pub name: String,
    #[doc = concat!("The version of the program.")]
    pub version: String,
}

/// The ticket of a device that joined.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Fetch)]
pub struct FetchToken {
    /// The ticket.
    pub ticket: String,
    /// Seconds to wait for the outcome, 60 at most.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 18446744073709551615_u64)]
    pub wait: Option<u64>,
}

/// The state of a pairing on which the computer has not decided yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Patience)]
pub struct PairingPending {
    /// The state: `waiting`.
    pub state: PairingState,
}
