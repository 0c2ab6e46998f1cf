//! The pairing of another device: its permissions, the code, and the number to compare. Pure: keys and replies change it, and their outcome
//! names the call to make.

use plexus_client::calls::{self, ApiRequest};
use plexus_protocol::api::pairing::{ConfirmPairing, NewPairing, PairingBegun, PairingState, PairingView};
use plexus_protocol::{Risk, Scope};

use super::card::ARM_DELAY;
use super::reply::CallReply;
use super::sanitize;
use super::view_model::line;

/// Time that the gateway holds one poll, in seconds.
const WAIT_SECONDS: u64 = 15;
/// The pause before a poll that failed is repeated, in milliseconds.
const PAUSE: i64 = 2_000;
/// Maximum length of an address, in characters; a gateway sends no longer one.
const URL_MAX: usize = 500;

/// Maximum length of a device's name, in columns.
const NAME_MAX: usize = 40;

/// The permissions: the scope, its label, and its description. The texts are those of the web page.
pub(crate) const PERMISSIONS: [(Scope, &str, &str); 5] = [
    (Scope::Watch, "Watch", "see all sessions and requests"),
    (Scope::Prompt, "Prompt", "start sessions, send prompts, stop runs"),
    (Scope::Approve, "Approve", "answer requests"),
    (Scope::Admin, "Administer", "runtimes, devices, settings: everything"),
    (Scope::Type, "Type in terminals", "run anything as you, in shared terminals"),
];
/// The highest risk that the device may answer, and its label.
pub(crate) const LEVELS: [(Risk, &str); 3] =
    [(Risk::Low, "low risk"), (Risk::Elevated, "elevated risk"), (Risk::Danger, "any risk")];
/// The index of the row of the level, after those of the permissions.
pub(crate) const LEVEL_ROW: usize = PERMISSIONS.len();

/// A code that a device can use once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PairCode {
    id: String,
    pub(crate) code: String,
    pub(crate) url: String,
    pub(crate) expires: i64,
}

impl PairCode {
    fn new(begun: &PairingBegun) -> Result<Self, String> {
        if begun.url.len() > URL_MAX {
            return Err("the gateway's address is too long".to_owned());
        }
        Ok(Self {
            id: begun.pairing_id.clone(),
            code: line(&begun.code),
            url: sanitize::line(&begun.url, URL_MAX),
            expires: begun.expires_at.as_millis(),
        })
    }

    /// Returns whether the address is reachable only from this machine.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.url.split("://").nth(1).unwrap_or_default();
        ["127.", "localhost", "[::1]"].iter().any(|own| host.starts_with(own))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PairStep {
    /// Choosing the permissions; `requested` if the code has been requested.
    Choose { requested: bool },
    /// Showing the code.
    Code(PairCode),
    /// A device has used the code: its name and number, the time since when they are shown, and whether they were confirmed.
    Joined { code: PairCode, name: String, number: u8, since: i64, confirmed: bool },
    /// The device of this name is paired.
    Paired(String),
    /// No device was paired, for this reason.
    Ended(&'static str),
}

/// A call of the gateway for a pairing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PairCall {
    Begin,
    Poll,
    Confirm,
    /// The revocation of the code, whose reply is ignored.
    Revoke,
}

/// The outcome of a key or a reply.
#[derive(Debug, PartialEq)]
pub(crate) enum PairOutcome {
    Nothing,
    Close,
    Call { call: PairCall, request: ApiRequest },
}

/// The pairing of a device.
#[derive(Clone, Debug)]
pub(crate) struct PairingSheet {
    /// The number of the pairing: replies to others are ignored.
    pub(crate) serial: u64,
    pub(crate) granted: [bool; PERMISSIONS.len()],
    pub(crate) level: usize,
    /// The selected row.
    pub(crate) at: usize,
    pub(crate) step: PairStep,
    /// The reason why the last call failed.
    pub(crate) problem: String,
    /// The time when the next poll is due.
    due: Option<i64>,
}

impl PairingSheet {
    /// Makes a pairing with the permissions and the level of `plexus pair`.
    pub(crate) fn new(serial: u64) -> Self {
        Self {
            serial,
            granted: [true, true, true, false, false],
            level: 1,
            at: 0,
            step: PairStep::Choose { requested: false },
            problem: String::new(),
            due: None,
        }
    }

    fn code(&self) -> Option<&PairCode> {
        match &self.step {
            PairStep::Code(code) | PairStep::Joined { code, .. } => Some(code),
            PairStep::Choose { .. } | PairStep::Paired(_) | PairStep::Ended(_) => None,
        }
    }

    pub(crate) fn key(&mut self, name: &str, now: i64) -> PairOutcome {
        match &mut self.step {
            PairStep::Choose { requested: true } | PairStep::Code(_) => match name {
                "Esc" | "q" => PairOutcome::Close,
                _ => PairOutcome::Nothing,
            },
            PairStep::Choose { .. } => self.choose_key(name),
            PairStep::Joined { code, number, since, confirmed, .. } => match name {
                // A key that was pressed before the device joined is not an answer.
                _ if now - *since < ARM_DELAY => PairOutcome::Nothing,
                "y" if !*confirmed => {
                    *confirmed = true;
                    let body = ConfirmPairing { number: Some((*number).into()) };
                    let request = calls::confirm_pairing(&code.id, &body).request;
                    PairOutcome::Call { call: PairCall::Confirm, request }
                }
                "n" | "Esc" => PairOutcome::Close,
                _ => PairOutcome::Nothing,
            },
            PairStep::Paired(_) => match name {
                "Esc" | "q" | "Enter" => PairOutcome::Close,
                _ => PairOutcome::Nothing,
            },
            PairStep::Ended(_) => match name {
                "Esc" | "q" => PairOutcome::Close,
                "Enter" => {
                    self.problem.clear();
                    self.step = PairStep::Choose { requested: false };
                    PairOutcome::Nothing
                }
                _ => PairOutcome::Nothing,
            },
        }
    }

    fn choose_key(&mut self, name: &str) -> PairOutcome {
        let levels = LEVELS.len();
        match name {
            "Esc" | "q" => return PairOutcome::Close,
            "Up" | "k" | "S-Tab" => self.at = self.at.saturating_sub(1),
            "Down" | "j" | "Tab" => self.at = (self.at + 1).min(LEVEL_ROW),
            "Left" | "h" if self.at == LEVEL_ROW => self.level = self.level.saturating_sub(1),
            "Right" | "l" if self.at == LEVEL_ROW => self.level = (self.level + 1).min(levels - 1),
            " " if self.at == LEVEL_ROW => self.level = (self.level + 1) % levels,
            // A device without the first permission has no others.
            " " | "x" if (1..LEVEL_ROW).contains(&self.at) => self.granted[self.at] = !self.granted[self.at],
            "Enter" => {
                self.step = PairStep::Choose { requested: true };
                self.problem.clear();
                let granted = PERMISSIONS.iter().zip(self.granted).filter(|(_, on)| *on);
                let pairing = NewPairing {
                    scopes: granted.map(|((scope, ..), _)| *scope).collect(),
                    runtimes: None,
                    approve_up_to: Some(LEVELS[self.level].0),
                    lock_screen: false,
                    name: None,
                };
                return PairOutcome::Call { call: PairCall::Begin, request: calls::begin_pairing(&pairing).request };
            }
            _ => {}
        }
        PairOutcome::Nothing
    }

    /// Applies the reply to a call.
    pub(crate) fn on_reply(&mut self, call: &PairCall, reply: &CallReply, now: i64) -> PairOutcome {
        match call {
            PairCall::Begin => match reply.read().and_then(|begun| PairCode::new(&begun)) {
                Ok(code) => {
                    self.step = PairStep::Code(code);
                    return self.poll();
                }
                Err(why) => {
                    self.step = PairStep::Choose { requested: false };
                    self.problem = why;
                }
            },
            PairCall::Poll => match reply.read() {
                Ok(pairing) => return self.on_state(&pairing, now),
                // The gateway forgets a pairing some time after its end.
                Err(_) if matches!(reply.status(), Some(404 | 410)) => {
                    self.step = PairStep::Ended("The code has expired.");
                }
                Err(_) => self.due = Some(now + PAUSE),
            },
            PairCall::Confirm => match reply.read() {
                Ok(pairing) => return self.on_state(&pairing, now),
                Err(why) => {
                    self.problem = why;
                    self.due = Some(now + PAUSE);
                    if let PairStep::Joined { confirmed, .. } = &mut self.step {
                        *confirmed = false;
                    }
                }
            },
            PairCall::Revoke => {}
        }
        PairOutcome::Nothing
    }

    /// Applies the state of the pairing.
    fn on_state(&mut self, pairing: &PairingView, now: i64) -> PairOutcome {
        let name = || sanitize::line(pairing.name.as_deref().unwrap_or_default(), NAME_MAX);
        match (pairing.state, &self.step) {
            (PairingState::Joined, PairStep::Code(code)) => {
                let number = pairing.number.unwrap_or_default();
                self.step = PairStep::Joined { code: code.clone(), name: name(), number, since: now, confirmed: false };
            }
            (PairingState::Confirmed, PairStep::Joined { name, .. }) => self.step = PairStep::Paired(name.clone()),
            (PairingState::Confirmed, _) => self.step = PairStep::Paired(name()),
            (PairingState::Refused, _) => self.step = PairStep::Ended("Refused. No device was added."),
            (PairingState::Expired, _) => self.step = PairStep::Ended("The code has expired."),
            (PairingState::Waiting | PairingState::Joined | PairingState::Unknown, _) => {}
        }
        match self.code() {
            // The reply to the confirmation ends a confirmed pairing.
            Some(_) if !matches!(self.step, PairStep::Joined { confirmed: true, .. }) => self.poll(),
            _ => PairOutcome::Nothing,
        }
    }

    /// Repeats a failed poll, once it is due.
    pub(crate) fn on_tick(&mut self, now: i64) -> PairOutcome {
        match self.due {
            Some(at) if at <= now => self.poll(),
            _ => PairOutcome::Nothing,
        }
    }

    fn poll(&mut self) -> PairOutcome {
        self.due = None;
        let known = match self.step {
            PairStep::Joined { .. } => PairingState::Joined,
            _ => PairingState::Waiting,
        };
        let Some(code) = self.code() else { return PairOutcome::Nothing };
        let request = calls::pairing(&code.id, Some(WAIT_SECONDS), Some(known)).request;
        PairOutcome::Call { call: PairCall::Poll, request }
    }

    /// The call that closes the pairing and revokes an unused code.
    pub(crate) fn end(&self) -> PairOutcome {
        self.code().map_or(PairOutcome::Nothing, |code| revoke(&code.id))
    }
}

/// Revokes a code.
pub(crate) fn revoke(id: &str) -> PairOutcome {
    PairOutcome::Call { call: PairCall::Revoke, request: calls::refuse_pairing(id).request }
}
