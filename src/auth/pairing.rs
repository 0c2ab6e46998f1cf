//! Pairing by a short code: a computer displays a code, a phone joins with it, both display the same number, and the computer confirms. A
//! pure state machine: the caller passes time and randomness in, and enrols the device.
//!
//! `waiting` → `joined` → `confirmed`, or `refused`, or `expired`. At most one phone joins. A used, refused or expired code
//! is treated like an unknown one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::token::{Hash, find, hash};
use super::{Device, Grant, PairingFault};
use plexus_protocol::api::pairing::{PairingState, PairingView, PhoneTicket};
use plexus_protocol::{DeviceId, Timestamp};

/// Lifetime of a code, and of the pairing after a phone joined.
pub const PAIRING_LIFE: Duration = Duration::from_secs(120);
/// Time after the confirmation in which the phone can fetch its token, again if the response was lost. A device whose token was never
/// fetched is removed.
pub(super) const COLLECT: Duration = Duration::from_secs(60);
/// Time for which the outcome of an ended pairing is remembered.
const ENDED_KEPT: Duration = Duration::from_secs(300);
/// Maximum number of pairings; a further one replaces the oldest.
const PAIRINGS: usize = 16;
/// The characters of a code, without those that look or sound alike: 0 O, 1 I L, U.
const ALPHABET: &[u8; 30] = b"23456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Length of a code, in characters: over 39 bits, enough for the few guesses that the lifetime and the limiter allow.
const CODE_CHARS: usize = 8;

/// Returns a code from random bytes, `ABCD-2345`; `None` if too few of them are usable.
pub(super) fn code(random: &[u8]) -> Option<String> {
    // Bytes from the largest multiple of the alphabet's length on are not used: they would favour the first characters.
    let fair = random.iter().filter(|byte| usize::from(**byte) < 256 / ALPHABET.len() * ALPHABET.len());
    let chars = fair.take(CODE_CHARS).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
    let mut code: String = chars.collect();
    if code.len() < CODE_CHARS {
        return None;
    }
    code.insert(CODE_CHARS / 2, '-');
    Some(code)
}

/// Returns the number that both sides display, from a random byte: 10 to 99, or `None` for a byte that would favour some numbers.
pub(super) fn number(random: u8) -> Option<u8> {
    (random < 180).then_some(10 + random % 90)
}

/// Returns a typed code without separators; `None` if it is not a short code.
pub fn short_code(typed: &str) -> Option<String> {
    let typed = typed.trim();
    if typed.len() > 4 * CODE_CHARS {
        return None;
    }
    let code: String = typed.chars().filter(|c| !matches!(c, '-' | ' ')).map(|c| c.to_ascii_uppercase()).collect();
    (code.len() == CODE_CHARS && code.bytes().all(|byte| ALPHABET.contains(&byte))).then_some(code)
}

/// A pairing that a phone may join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The grant of the device.
    pub grant: Grant,
    /// The name, if the computer set one.
    pub name: Option<String>,
    /// The time when the pairing expires.
    pub expires_at: Timestamp,
}

/// The result for a phone's ticket.
#[derive(Clone, Debug)]
pub(super) enum Collected {
    /// The computer has not confirmed yet.
    Waiting,
    /// The device and its token.
    Given(Arc<Device>, String),
}

struct JoinedPhone {
    name: String,
    number: u8,
    ticket: Hash,
    origin: Option<String>,
}

enum PairingStage {
    Waiting,
    Joined(JoinedPhone),
    /// The device is being enrolled: no second confirmation and no refusal in the meantime.
    Confirming(JoinedPhone),
    Confirmed {
        phone: JoinedPhone,
        device: Arc<Device>,
        token: Option<String>,
        fetched: bool,
    },
    Refused(Option<JoinedPhone>),
}

struct Pairing {
    id: String,
    code: Hash,
    grant: Grant,
    name: Option<String>,
    until: Instant,
    expires_at: Timestamp,
    stage: PairingStage,
}

/// The device to enrol once a pairing is confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Approved {
    pub(super) name: String,
    pub(super) grant: Grant,
    pub(super) origin: Option<String>,
}

/// All pairings.
#[derive(Default)]
pub(super) struct Pairings {
    all: Vec<Pairing>,
}

impl Pairing {
    fn phone(&self) -> Option<&JoinedPhone> {
        match &self.stage {
            PairingStage::Joined(phone) | PairingStage::Confirming(phone) | PairingStage::Confirmed { phone, .. } => {
                Some(phone)
            }
            PairingStage::Refused(phone) => phone.as_ref(),
            PairingStage::Waiting => None,
        }
    }

    fn state(&self, now: Instant) -> PairingState {
        match &self.stage {
            PairingStage::Waiting | PairingStage::Joined(_) if now >= self.until => PairingState::Expired,
            PairingStage::Waiting => PairingState::Waiting,
            PairingStage::Joined(_) | PairingStage::Confirming(_) => PairingState::Joined,
            PairingStage::Confirmed { .. } => PairingState::Confirmed,
            PairingStage::Refused(_) => PairingState::Refused,
        }
    }

    fn view(&self, now: Instant) -> PairingView {
        let phone = self.phone();
        PairingView {
            pairing_id: self.id.clone(),
            state: self.state(now),
            name: phone.map(|phone| self.device_name(phone)),
            number: phone.map(|phone| phone.number),
            device_id: match &self.stage {
                PairingStage::Confirmed { device, .. } => Some(device.device_id.clone()),
                _ => None,
            },
            expires_at: self.expires_at,
        }
    }

    /// Returns the device's name: the computer's choice, else the phone's.
    fn device_name(&self, phone: &JoinedPhone) -> String {
        self.name.clone().unwrap_or_else(|| phone.name.clone())
    }
}

impl Pairings {
    /// Begins a pairing with a random identifier and code.
    pub(super) fn begin(
        &mut self,
        id: String,
        code: &str,
        grant: Grant,
        name: Option<String>,
        (now, at): (Instant, Timestamp),
    ) {
        self.all.retain(|one| now < one.until + ENDED_KEPT);
        if self.all.len() >= PAIRINGS {
            self.all.remove(0);
        }
        let code = hash(&short_code(code).unwrap_or_default());
        let millis = i64::try_from(PAIRING_LIFE.as_millis()).unwrap_or(i64::MAX);
        let (until, expires_at) = (now + PAIRING_LIFE, at.plus_millis(millis));
        self.all.push(Pairing { id, code, grant, name, until, expires_at, stage: PairingStage::Waiting });
    }

    fn by_id(&mut self, id: &str) -> Result<&mut Pairing, PairingFault> {
        self.all.iter_mut().find(|one| one.id == id).ok_or(PairingFault::Unknown)
    }

    /// Returns the pairing that waits for this code. Compares with all of them, found or not.
    fn by_code(&mut self, code: &str, now: Instant) -> Option<&mut Pairing> {
        let code = short_code(code)?;
        let found = find(self.all.iter().map(|one| &one.code), &hash(&code))?;
        self.all.get_mut(found).filter(|one| one.state(now) == PairingState::Waiting)
    }

    /// Returns the pairing that a phone with this code would join; `None` if the code is not valid.
    pub(super) fn find(&mut self, code: &str, now: Instant) -> Option<Invitation> {
        let one = self.by_code(code, now)?;
        Some(Invitation { grant: one.grant.clone(), name: one.name.clone(), expires_at: one.expires_at })
    }

    /// Joins a phone, which uses up the code. Returns `None` if the code is not valid.
    pub(super) fn join(
        &mut self,
        code: &str,
        name: String,
        origin: Option<String>,
        (ticket, number): (String, u8),
        now: Instant,
    ) -> Option<PhoneTicket> {
        let one = self.by_code(code, now)?;
        one.stage = PairingStage::Joined(JoinedPhone { name, number, ticket: hash(&ticket), origin });
        Some(PhoneTicket { ticket, number, expires_at: one.expires_at })
    }

    pub(super) fn view(&mut self, id: &str, now: Instant) -> Result<PairingView, PairingFault> {
        Ok(self.by_id(id)?.view(now))
    }

    /// Confirms the number for the computer. The caller enrols the device and reports [`enrolment_done`](Self::enrolment_done).
    pub(super) fn approve(&mut self, id: &str, number: u8, now: Instant) -> Result<Approved, PairingFault> {
        let one = self.by_id(id)?;
        match one.state(now) {
            PairingState::Waiting => return Err(PairingFault::NotJoined),
            PairingState::Confirmed => return Err(PairingFault::Confirmed),
            PairingState::Refused => return Err(PairingFault::Refused),
            PairingState::Expired | PairingState::Unknown => return Err(PairingFault::Expired),
            PairingState::Joined => {}
        }
        match std::mem::replace(&mut one.stage, PairingStage::Waiting) {
            PairingStage::Joined(phone) if phone.number == number => {
                let approved =
                    Approved { name: one.device_name(&phone), grant: one.grant.clone(), origin: phone.origin.clone() };
                one.stage = PairingStage::Confirming(phone);
                Ok(approved)
            }
            stage => {
                let fault = if matches!(stage, PairingStage::Joined(_)) {
                    PairingFault::WrongNumber
                } else {
                    PairingFault::Confirmed
                };
                one.stage = stage;
                Err(fault)
            }
        }
    }

    /// Records the enrolled device, or that enrolling failed; then the computer may confirm again.
    pub(super) fn enrolment_done(&mut self, id: &str, enrolled: Option<(Arc<Device>, String)>) {
        let Ok(one) = self.by_id(id) else { return };
        one.stage = match (std::mem::replace(&mut one.stage, PairingStage::Waiting), enrolled) {
            (PairingStage::Confirming(phone), Some((device, token))) => {
                PairingStage::Confirmed { phone, device, token: Some(token), fetched: false }
            }
            (PairingStage::Confirming(phone), None) => PairingStage::Joined(phone),
            (stage, _) => stage,
        };
    }

    /// Refuses for the computer.
    pub(super) fn refuse(&mut self, id: &str, now: Instant) -> Result<(), PairingFault> {
        let one = self.by_id(id)?;
        match one.state(now) {
            PairingState::Confirmed => return Err(PairingFault::Confirmed),
            PairingState::Refused | PairingState::Expired => return Ok(()),
            PairingState::Waiting | PairingState::Joined | PairingState::Unknown => {}
        }
        one.stage = match std::mem::replace(&mut one.stage, PairingStage::Waiting) {
            PairingStage::Joined(phone) => PairingStage::Refused(Some(phone)),
            PairingStage::Waiting => PairingStage::Refused(None),
            stage => {
                one.stage = stage;
                return Err(PairingFault::Confirmed);
            }
        };
        Ok(())
    }

    /// Returns the outcome for a phone that joined.
    pub(super) fn collect(&mut self, ticket: &str, now: Instant) -> Result<Collected, PairingFault> {
        const NO_TICKET: Hash = [0; 32];
        let tickets = self.all.iter().map(|one| one.phone().map_or(&NO_TICKET, |phone| &phone.ticket));
        let found = find(tickets, &hash(ticket)).ok_or(PairingFault::Unknown)?;
        let one = self.all.get_mut(found).ok_or(PairingFault::Expired)?;
        let state = one.state(now);
        let last = one.until + COLLECT;
        match (&mut one.stage, state) {
            (_, PairingState::Expired) => Err(PairingFault::Expired),
            (PairingStage::Refused(_), _) => Err(PairingFault::Refused),
            (PairingStage::Confirmed { device, token: Some(token), fetched, .. }, _) if now < last => {
                *fetched = true;
                Ok(Collected::Given(Arc::clone(device), token.clone()))
            }
            (PairingStage::Confirmed { .. }, _) => Err(PairingFault::Expired),
            _ => Ok(Collected::Waiting),
        }
    }

    /// Removes the token after the time to fetch it. Returns the device if the token was never fetched.
    pub(super) fn drop_unfetched(&mut self, id: &str) -> Option<DeviceId> {
        match &mut self.by_id(id).ok()?.stage {
            PairingStage::Confirmed { device, token, fetched, .. } => {
                *token = None;
                (!*fetched).then(|| device.device_id.clone())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use plexus_protocol::Scope;

    fn grant() -> Grant {
        Grant::new(&[Scope::Watch])
    }

    fn device(name: &str) -> Arc<Device> {
        let id = DeviceId::trusted(format!("d_{name}"));
        Arc::new(Device::new(id, name, super::super::DeviceKind::Device, grant(), String::new()))
    }

    fn begun(now: Instant) -> Pairings {
        let mut all = Pairings::default();
        all.begin("p".into(), "ABCD-2345", grant(), None, (now, Timestamp::default()));
        all
    }

    fn join(all: &mut Pairings, code: &str, who: &str, now: Instant) -> Option<PhoneTicket> {
        all.join(code, who.into(), None, (format!("ticket of {who}"), 42), now)
    }

    #[test]
    fn pairing_codes_are_read_as_people_write_them() {
        for typed in ["ABCD-2345", "abcd2345", " ab cd 23 45 ", "ABCD2345"] {
            assert_eq!(short_code(typed).as_deref(), Some("ABCD2345"), "{typed}");
        }
        for typed in ["", "ABCD-234", "ABCD-23456", "ABCD-2340", "ABCO-2345", "ÄBCD-2345", &"A-".repeat(40)] {
            assert_eq!(short_code(typed), None, "{typed}");
        }
        for letter in "01ILOU".bytes() {
            assert!(!ALPHABET.contains(&letter), "looks like another");
        }
        let made = code(&(0..=255).collect::<Vec<u8>>()).unwrap();
        assert_eq!((made.len(), made.as_bytes()[4]), (9, b'-'));
        assert_eq!(code(&[255; 100]), None, "unfair bytes are passed over");
        let mut seen = [0; 30];
        for byte in 0..=255u8 {
            if let Some(letter) = code(&[byte; 8]) {
                seen[ALPHABET.iter().position(|one| *one == letter.as_bytes()[0]).unwrap()] += 1;
            }
        }
        assert_eq!(seen, [8; 30], "each as likely as every other");
        let numbers: Vec<u8> = (0..=255).filter_map(number).collect();
        assert!((10..=99).all(|n| numbers.iter().filter(|one| **one == n).count() == 2));
    }

    #[test]
    fn pairing_joins_compares_the_number_and_hands_out_the_token() {
        let now = Instant::now();
        let mut all = begun(now);
        assert_eq!(all.find("abcd2345", now).unwrap().grant, grant());
        assert_eq!(all.view("p", now).unwrap().state, PairingState::Waiting);
        assert_eq!(all.approve("p", 42, now), Err(PairingFault::NotJoined));
        let ticket = join(&mut all, "ABCD-2345", "phone", now).unwrap();
        let view = all.view("p", now).unwrap();
        assert_eq!((view.state, view.name.as_deref(), view.number), (PairingState::Joined, Some("phone"), Some(42)));
        assert!(matches!(all.collect(&ticket.ticket, now), Ok(Collected::Waiting)));
        assert_eq!(all.approve("p", 43, now), Err(PairingFault::WrongNumber));
        assert_eq!(all.approve("p", 42, now).unwrap().name, "phone");
        assert_eq!(all.approve("p", 42, now), Err(PairingFault::Confirmed), "one of two at once");
        assert_eq!(all.refuse("p", now), Err(PairingFault::Confirmed), "too late to say no");
        assert!(matches!(all.collect(&ticket.ticket, now), Ok(Collected::Waiting)));
        all.enrolment_done("p", None);
        assert!(all.approve("p", 42, now).is_ok(), "the disk was full; once more");
        all.enrolment_done("p", Some((device("phone"), "token".into())));
        for _ in 0..2 {
            let Ok(Collected::Given(_, token)) = all.collect(&ticket.ticket, now) else { panic!() };
            assert_eq!(token, "token");
        }
        assert!(all.collect("another", now).is_err());
        assert_eq!(all.drop_unfetched("p"), None);
        assert_eq!(all.collect(&ticket.ticket, now).unwrap_err(), PairingFault::Expired, "it is forgotten");
        assert_eq!(all.view("p", now).unwrap().device_id.unwrap().as_str(), "d_phone");
    }

    #[test]
    fn pairing_code_serves_one_phone_and_ends_by_time_or_refusal() {
        let now = Instant::now();
        let mut all = begun(now);
        assert!(join(&mut all, "ABCD-2346", "guesser", now).is_none());
        assert!(join(&mut all, "ABCD-2345", "phone", now).is_some());
        assert!(join(&mut all, "ABCD-2345", "second phone", now).is_none() && all.find("ABCD-2345", now).is_none());
        assert_eq!(all.view("p", now).unwrap().name.as_deref(), Some("phone"));
        all.refuse("p", now).unwrap();
        assert_eq!(all.collect("ticket of phone", now).unwrap_err(), PairingFault::Refused);
        assert_eq!(all.approve("p", 42, now), Err(PairingFault::Refused));

        let late = now + PAIRING_LIFE;
        let mut all = begun(now);
        assert!(join(&mut all, "ABCD-2345", "late", late).is_none());
        assert_eq!(all.view("p", late).unwrap().state, PairingState::Expired);
        let mut all = begun(now);
        join(&mut all, "ABCD-2345", "phone", now).unwrap();
        assert_eq!(all.approve("p", 42, late), Err(PairingFault::Expired));
        assert_eq!(all.collect("ticket of phone", late).unwrap_err(), PairingFault::Expired);
        let mut all = begun(now);
        all.refuse("p", now).unwrap();
        assert!(join(&mut all, "ABCD-2345", "phone", now).is_none(), "refused before anybody came");
    }

    #[test]
    fn pairings_not_fetched_are_named_and_old_ones_are_forgotten() {
        let now = Instant::now();
        let mut all = begun(now);
        let ticket = join(&mut all, "ABCD-2345", "phone", now).unwrap();
        all.approve("p", 42, now).unwrap();
        all.enrolment_done("p", Some((device("phone"), "token".into())));
        assert!(all.collect(&ticket.ticket, now + PAIRING_LIFE + COLLECT).is_err());
        let mut all = begun(now);
        join(&mut all, "ABCD-2345", "phone", now).unwrap();
        all.approve("p", 42, now).unwrap();
        all.enrolment_done("p", Some((device("phone"), "token".into())));
        assert_eq!(all.drop_unfetched("p").unwrap().as_str(), "d_phone");
        for n in 0..2 * PAIRINGS {
            all.begin(format!("p{n}"), "WXYZ-2345", grant(), None, (now, Timestamp::default()));
        }
        assert_eq!(all.all.len(), PAIRINGS);
        assert_eq!(all.view("p", now), Err(PairingFault::Unknown));
        all.begin("last".into(), "WXYZ-2345", grant(), None, (now + PAIRING_LIFE + ENDED_KEPT, Timestamp::default()));
        assert_eq!(all.all.len(), 1);
    }

    /// An action of people and others, in any order.
    #[derive(Clone, Debug)]
    enum Step {
        Join { code: u8, who: u8 },
        Approve { number: u8 },
        Settle { works: bool },
        Refuse,
        Collect { who: u8 },
        Wait { seconds: u64 },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..3u8, 0..3u8).prop_map(|(code, who)| Step::Join { code, who }),
            (41..44u8).prop_map(|number| Step::Approve { number }),
            any::<bool>().prop_map(|works| Step::Settle { works }),
            Just(Step::Refuse),
            (0..3u8).prop_map(|who| Step::Collect { who }),
            (0..100u64).prop_map(|seconds| Step::Wait { seconds }),
        ];
        proptest::collection::vec(step, 0..40)
    }

    proptest! {
        #[test]
        fn pairing_makes_at_most_one_device_and_only_when_confirmed(steps in steps()) {
            let began = Instant::now();
            let mut now = began;
            let mut all = begun(now);
            let (mut joined, mut yes, mut enrolled) = (None::<u8>, false, false);
            for step in steps {
                match step {
                    Step::Join { code, who } => {
                        let typed = if code == 0 { "abcd 2345" } else { "ABCD-2346" };
                        if join(&mut all, typed, &who.to_string(), now).is_some() {
                            prop_assert!(code == 0 && joined.is_none() && now < began + PAIRING_LIFE);
                            joined = Some(who);
                        }
                    }
                    Step::Approve { number } => {
                        if all.approve("p", number, now).is_ok() {
                            prop_assert!(number == 42 && joined.is_some() && !yes && now < began + PAIRING_LIFE);
                            yes = true;
                        }
                    }
                    Step::Settle { works } => {
                        // As its caller does: only after a yes.
                        if yes && !enrolled {
                            all.enrolment_done("p", works.then(|| (device("x"), "token".into())));
                            (yes, enrolled) = (works, works);
                        }
                    }
                    Step::Refuse => { let _ = all.refuse("p", now); }
                    Step::Collect { who } => {
                        if let Ok(Collected::Given(..)) = all.collect(&format!("ticket of {who}"), now) {
                            prop_assert!(enrolled && joined == Some(who) && now < began + PAIRING_LIFE + COLLECT);
                        }
                    }
                    Step::Wait { seconds } => now += Duration::from_secs(seconds),
                }
            }
            let state = all.view("p", now).unwrap().state;
            prop_assert_eq!(state == PairingState::Confirmed, enrolled);
        }
    }
}
