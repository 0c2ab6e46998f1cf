//! Pairing another device: what it may do, the code, and the number to compare. Pure: keys and replies change it, and say what is wanted
//! of the gateway.

use serde_json::{Value, json};

use super::card::ARM_DELAY;
use super::sanitize;
use super::view_model::{field, millis};

/// Time that the gateway holds one poll, in seconds.
const WAIT_SECONDS: u32 = 15;
/// The pause before a poll that failed is repeated, in milliseconds.
const PAUSE: i64 = 2_000;
/// Longest address, in characters; a longer one is not what a gateway sends.
const URL_MAX: usize = 500;

/// The permissions: the name on the wire, the name here, and what it means. The words are those of the page.
pub(crate) const PERMISSIONS: [(&str, &str, &str); 5] = [
    ("watch", "Watch", "see all sessions and requests"),
    ("prompt", "Prompt", "start sessions, send prompts, stop runs"),
    ("approve", "Approve", "answer requests"),
    ("admin", "Administer", "runtimes, devices, settings: everything"),
    ("type", "Type in terminals", "run anything as you, in shared terminals"),
];
/// The highest risk that the device may answer: the name on the wire, and here.
pub(crate) const LEVELS: [(&str, &str); 3] =
    [("low", "low risk"), ("elevated", "elevated risk"), ("danger", "any risk")];
/// The row of the level, after those of the permissions.
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
    /// Returns whether only this machine reaches the address.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.url.split("://").nth(1).unwrap_or_default();
        ["127.", "localhost", "[::1]"].iter().any(|own| host.starts_with(own))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PairStep {
    /// The permissions are chosen; or the code is on its way.
    Choose { requested: bool },
    /// The code is shown.
    Code(PairCode),
    /// A device has used it: its name and number, since when they are shown, and whether they were confirmed.
    Joined { code: PairCode, name: String, number: u64, since: i64, confirmed: bool },
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
    /// The reply does not matter.
    Revoke,
}

/// The outcome of a key or a reply.
#[derive(Debug, PartialEq)]
pub(crate) enum PairOutcome {
    Stay,
    Close,
    Call { call: PairCall, method: &'static str, path: String, body: Option<Value> },
}

/// The pairing of a device.
#[derive(Clone, Debug)]
pub(crate) struct PairingSheet {
    /// Its number: replies to others are ignored.
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
    /// A pairing with the permissions and the level of `plexus pair`.
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
                _ => PairOutcome::Stay,
            },
            PairStep::Choose { .. } => self.choose_key(name),
            PairStep::Joined { code, number, since, confirmed, .. } => match name {
                // A key that was on its way when the device joined is no answer.
                _ if now - *since < ARM_DELAY => PairOutcome::Stay,
                "y" if !*confirmed => {
                    *confirmed = true;
                    let path = format!("/v1/pairings/{}/confirm", code.id);
                    let body = Some(json!({ "number": *number }));
                    PairOutcome::Call { call: PairCall::Confirm, method: "POST", path, body }
                }
                "n" | "Esc" => PairOutcome::Close,
                _ => PairOutcome::Stay,
            },
            PairStep::Paired(_) => match name {
                "Esc" | "q" | "Enter" => PairOutcome::Close,
                _ => PairOutcome::Stay,
            },
            PairStep::Ended(_) => match name {
                "Esc" | "q" => PairOutcome::Close,
                "Enter" => {
                    self.problem.clear();
                    self.step = PairStep::Choose { requested: false };
                    PairOutcome::Stay
                }
                _ => PairOutcome::Stay,
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
            // A device that may not watch may do nothing.
            " " | "x" if (1..LEVEL_ROW).contains(&self.at) => self.granted[self.at] = !self.granted[self.at],
            "Enter" => {
                self.step = PairStep::Choose { requested: true };
                self.problem.clear();
                let granted = PERMISSIONS.iter().zip(self.granted).filter(|(_, on)| *on);
                let scopes: Vec<&str> = granted.map(|((scope, ..), _)| *scope).collect();
                let body = json!({ "scopes": scopes, "approve_up_to": LEVELS[self.level].0 });
                let path = "/v1/pairings".to_owned();
                return PairOutcome::Call { call: PairCall::Begin, method: "POST", path, body: Some(body) };
            }
            _ => {}
        }
        PairOutcome::Stay
    }

    /// Applies the reply to a call.
    pub(crate) fn on_reply(&mut self, call: &PairCall, status: u16, value: &Value, why: &str, now: i64) -> PairOutcome {
        let good = (200..300).contains(&status);
        match call {
            PairCall::Begin => match (good, pair_code(value)) {
                (true, Some(code)) => {
                    self.step = PairStep::Code(code);
                    return self.poll();
                }
                (..) => {
                    self.step = PairStep::Choose { requested: false };
                    why.clone_into(&mut self.problem);
                }
            },
            PairCall::Poll if good => return self.on_state(value, now),
            // The gateway forgets a pairing some time after its end.
            PairCall::Poll if matches!(status, 404 | 410) => self.step = PairStep::Ended("The code has expired."),
            PairCall::Poll => self.due = Some(now + PAUSE),
            PairCall::Confirm if good => return self.on_state(value, now),
            PairCall::Confirm => {
                why.clone_into(&mut self.problem);
                self.due = Some(now + PAUSE);
                if let PairStep::Joined { confirmed, .. } = &mut self.step {
                    *confirmed = false;
                }
            }
            PairCall::Revoke => {}
        }
        PairOutcome::Stay
    }

    /// Applies what the gateway says of the pairing.
    fn on_state(&mut self, value: &Value, now: i64) -> PairOutcome {
        let name = || sanitize::line(value["name"].as_str().unwrap_or_default(), 40);
        match (value["state"].as_str().unwrap_or_default(), &self.step) {
            ("joined", PairStep::Code(code)) => {
                let number = value["number"].as_u64().unwrap_or_default();
                self.step = PairStep::Joined { code: code.clone(), name: name(), number, since: now, confirmed: false };
            }
            ("confirmed", PairStep::Joined { name, .. }) => self.step = PairStep::Paired(name.clone()),
            ("confirmed", _) => self.step = PairStep::Paired(name()),
            ("refused", _) => self.step = PairStep::Ended("Refused. No device was added."),
            ("expired", _) => self.step = PairStep::Ended("The code has expired."),
            _ => {}
        }
        match self.code() {
            // A confirmed pairing is over with the reply to that.
            Some(_) if !matches!(self.step, PairStep::Joined { confirmed: true, .. }) => self.poll(),
            _ => PairOutcome::Stay,
        }
    }

    /// The poll that is due now, after one that failed.
    pub(crate) fn on_tick(&mut self, now: i64) -> PairOutcome {
        match self.due {
            Some(at) if at <= now => self.poll(),
            _ => PairOutcome::Stay,
        }
    }

    fn poll(&mut self) -> PairOutcome {
        self.due = None;
        let known = if matches!(self.step, PairStep::Joined { .. }) { "joined" } else { "waiting" };
        let Some(code) = self.code() else { return PairOutcome::Stay };
        let path = format!("/v1/pairings/{}?wait={WAIT_SECONDS}&known={known}", code.id);
        PairOutcome::Call { call: PairCall::Poll, method: "GET", path, body: None }
    }

    /// The call that closes the pairing: a code that was not used is not left valid.
    pub(crate) fn end(&self) -> PairOutcome {
        self.code().map_or(PairOutcome::Stay, |code| revoke(&code.id))
    }
}

fn pair_code(value: &Value) -> Option<PairCode> {
    let url = value["url"].as_str().filter(|url| url.len() <= URL_MAX)?;
    Some(PairCode {
        id: field(&value["pairing_id"]),
        code: field(&value["code"]),
        url: sanitize::line(url, URL_MAX),
        expires: millis(&value["expires_at"]).unwrap_or_default(),
    })
}

/// Takes back a code.
pub(crate) fn revoke(id: &str) -> PairOutcome {
    PairOutcome::Call { call: PairCall::Revoke, method: "DELETE", path: format!("/v1/pairings/{id}"), body: None }
}
