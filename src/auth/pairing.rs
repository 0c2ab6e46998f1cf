//! Pairing by a short code, one file with the tables and the random walks that hold it: a computer shows a code, a phone joins with it, both show the same number,
//! the computer confirms. A state machine, pure: the time and the randomness come from outside, and nothing here enrols anybody.
//!
//! `waiting` → `joined` → `confirmed`, or `refused`, or `expired`. One phone joins, whatever it then does; a code that was
//! used, refused or is too old is the same as one that never was.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::token::{Hash, hash};
use super::{Device, Grant};
use plexus_protocol::{DeviceId, Timestamp};

/// How long a code holds, and how long the two have to agree.
pub const PAIRING_LIFE: Duration = Duration::from_secs(120);
/// How long a phone whose computer has confirmed has to fetch what it was given, and may fetch it again if the answer was
/// lost; a device that never did is removed.
pub(super) const COLLECT: Duration = Duration::from_secs(60);
/// How long it is told what became of a pairing that is over.
const TOLD: Duration = Duration::from_secs(300);
/// Pairings at once; one more displaces the oldest.
const PAIRINGS: usize = 16;
/// Characters of a code. No two of them look or sound alike: no 0 O, 1 I L, U V.
const ALPHABET: &[u8; 30] = b"23456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Length of a code: over 39 bits, for the few tries that two minutes and the limiter leave.
const CODE_CHARS: usize = 8;

/// A code of random bytes, `ABCD-2345`; `None` if there were not enough that are usable.
pub(super) fn code(random: &[u8]) -> Option<String> {
    // The largest multiple of the alphabet's length that a byte holds: beyond it the first letters would come more often.
    let fair = random.iter().filter(|byte| usize::from(**byte) < 256 / ALPHABET.len() * ALPHABET.len());
    let letters = fair.take(CODE_CHARS).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
    let mut code: String = letters.collect();
    if code.len() < CODE_CHARS {
        return None;
    }
    code.insert(CODE_CHARS / 2, '-');
    Some(code)
}

/// The number that both sides show, of a random byte: 10 to 99, or `None` for a byte that would not be fair.
pub(super) fn number(random: u8) -> Option<u8> {
    (random < 180).then_some(10 + random % 90)
}

/// A code as a person typed it, without what people put between; `None` if it is no short code at all.
pub fn short_code(typed: &str) -> Option<String> {
    let typed = typed.trim();
    if typed.len() > 4 * CODE_CHARS {
        return None;
    }
    let code: String = typed.chars().filter(|c| !matches!(c, '-' | ' ')).map(|c| c.to_ascii_uppercase()).collect();
    (code.len() == CODE_CHARS && code.bytes().all(|byte| ALPHABET.contains(&byte))).then_some(code)
}

/// Where a pairing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairingState {
    /// Nobody has used the code.
    Waiting,
    /// A phone has; the computer is to compare the numbers.
    Joined,
    /// The computer said yes.
    Confirmed,
    /// The computer said no.
    Refused,
    /// Its time is over.
    Expired,
}

/// A pairing, for the computer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Pairing)]
pub struct PairingView {
    /// Its identifier.
    pub pairing_id: String,
    /// Where it stands.
    pub state: PairingState,
    /// What the device will be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the phone shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u8>,
    /// The device that came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_id: Option<DeviceId>,
    /// When it is too late.
    pub expires_at: Timestamp,
}

/// What a phone would join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// What it may do then.
    pub grant: Grant,
    /// What it is to be called, if the computer said so.
    pub name: Option<String>,
    /// When it is too late.
    pub expires_at: Timestamp,
}

/// A phone that joined, for the phone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Ticket)]
pub struct PhoneTicket {
    /// Its secret, to hear what comes of it.
    pub ticket: String,
    /// What the computer shows, too.
    pub number: u8,
    /// When it is too late.
    pub expires_at: Timestamp,
}

/// Why a pairing does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairingFault {
    /// No such pairing, or it was long ago, or the gateway has restarted since.
    #[error("there is no such pairing: start a new one")]
    Unknown,
    /// Nobody has joined yet.
    #[error("no device has joined yet: there is nothing to confirm")]
    NotJoined,
    /// Not the number that the phone shows.
    #[error("the device shows a different number: refuse it unless both numbers are equal")]
    WrongNumber,
    /// Confirmed already.
    #[error("this pairing is already confirmed: to undo it, revoke the device")]
    Confirmed,
    /// Refused.
    #[error("the pairing was refused on the computer")]
    Refused,
    /// Too late.
    #[error("this pairing has expired: start a new one")]
    Expired,
}

/// What comes of a phone's ticket.
#[derive(Clone, Debug)]
pub(super) enum Collected {
    /// Nothing yet.
    Waiting,
    /// The device, and its token.
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
    /// Being enrolled: neither confirmed twice nor refused meanwhile.
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

/// What to enrol once a pairing is confirmed.
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
            name: phone.map(|phone| self.called(phone)),
            number: phone.map(|phone| phone.number),
            device_id: match &self.stage {
                PairingStage::Confirmed { device, .. } => Some(device.device_id.clone()),
                _ => None,
            },
            expires_at: self.expires_at,
        }
    }

    /// What the computer said counts: the phone's word is the phone's alone.
    fn called(&self, phone: &JoinedPhone) -> String {
        self.name.clone().unwrap_or_else(|| phone.name.clone())
    }
}

impl Pairings {
    /// A new one, by an identifier and a code that nobody guesses.
    pub(super) fn begin(
        &mut self,
        id: String,
        code: &str,
        grant: Grant,
        name: Option<String>,
        (now, at): (Instant, Timestamp),
    ) {
        self.all.retain(|one| now < one.until + TOLD);
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

    /// The one that waits for this code. Looks at all of them, found or not.
    fn by_code(&mut self, code: &str, now: Instant) -> Option<&mut Pairing> {
        let code = short_code(code)?;
        let found = super::devices::find(self.all.iter().map(|one| &one.code), &hash(&code))?;
        self.all.get_mut(found).filter(|one| one.state(now) == PairingState::Waiting)
    }

    /// What a phone with this code would join; `None` if the code is not good.
    pub(super) fn find(&mut self, code: &str, now: Instant) -> Option<Invitation> {
        let one = self.by_code(code, now)?;
        Some(Invitation { grant: one.grant.clone(), name: one.name.clone(), expires_at: one.expires_at })
    }

    /// A phone joins, and uses the code up. `None` if the code is not good.
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

    /// The computer says yes to the number it was shown. Whoever called this enrols the device and [`settle`](Self::enrolment_done)s.
    pub(super) fn approve(&mut self, id: &str, number: u8, now: Instant) -> Result<Approved, PairingFault> {
        let one = self.by_id(id)?;
        match one.state(now) {
            PairingState::Waiting => return Err(PairingFault::NotJoined),
            PairingState::Confirmed => return Err(PairingFault::Confirmed),
            PairingState::Refused => return Err(PairingFault::Refused),
            PairingState::Expired => return Err(PairingFault::Expired),
            PairingState::Joined => {}
        }
        match std::mem::replace(&mut one.stage, PairingStage::Waiting) {
            PairingStage::Joined(phone) if phone.number == number => {
                let approved =
                    Approved { name: one.called(&phone), grant: one.grant.clone(), origin: phone.origin.clone() };
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

    /// The device was enrolled, or could not be: then the computer may say yes once more.
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

    /// The computer says no.
    pub(super) fn refuse(&mut self, id: &str, now: Instant) -> Result<(), PairingFault> {
        let one = self.by_id(id)?;
        match one.state(now) {
            PairingState::Confirmed => return Err(PairingFault::Confirmed),
            PairingState::Refused | PairingState::Expired => return Ok(()),
            PairingState::Waiting | PairingState::Joined => {}
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

    /// What came of a phone's joining.
    pub(super) fn collect(&mut self, ticket: &str, now: Instant) -> Result<Collected, PairingFault> {
        const NOBODY: Hash = [0; 32];
        let tickets = self.all.iter().map(|one| one.phone().map_or(&NOBODY, |phone| &phone.ticket));
        let found = super::devices::find(tickets, &hash(ticket)).ok_or(PairingFault::Unknown)?;
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

    /// The time to fetch is over: the token is forgotten. The device, if nobody has fetched it.
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
        Grant::of(&[Scope::Watch])
    }

    fn device(name: &str) -> Arc<Device> {
        Arc::new(Device {
            device_id: DeviceId::trusted(format!("d_{name}")),
            name: name.into(),
            kind: super::super::DeviceKind::Device,
            grant: grant(),
            created_at: Timestamp::default(),
            origin: None,
            parent: None,
            expires_at: None,
            local: false,
            last_seen_at: None,
            token_sha256: String::new(),
        })
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
    fn codes_are_read_as_people_write_them() {
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
    fn a_phone_joins_the_number_is_compared_and_the_token_is_fetched() {
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
    fn one_phone_joins_and_a_code_dies_with_its_time_or_a_no() {
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
    fn what_nobody_fetched_is_named_and_old_pairings_are_forgotten() {
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
        all.begin("last".into(), "WXYZ-2345", grant(), None, (now + PAIRING_LIFE + TOLD, Timestamp::default()));
        assert_eq!(all.all.len(), 1);
    }

    /// What people and others may do, in any order.
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
        fn whatever_happens_one_device_at_most_comes_of_a_code_and_only_by_a_yes_to_its_number(steps in steps()) {
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
