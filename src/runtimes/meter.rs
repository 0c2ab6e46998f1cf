//! Output of runtimes that the gateway holds is charged to their account before more of it is read.

use super::link::ReplyPlace;
use crate::ledger::{Account, Charge, Exempt, Ledger};

/// The charge for one runtime's output: what is here of a message, and what is not stored yet.
pub(super) struct RuntimeMeter {
    ledger: Ledger,
    account: Account,
    charge: Charge,
    /// The runtime goes on though there is no room.
    exempt: Option<Exempt>,
    /// What one read may bring, in bytes: this much is charged ahead.
    step: usize,
}

/// Room that was waited for.
pub(super) struct MeteredRoom(Charge, Option<Exempt>);

impl RuntimeMeter {
    /// For the runtime of that name. `step`: what one read may bring, in bytes.
    pub(super) fn new(ledger: &Ledger, runtime: &str, step: usize) -> Self {
        let account = ledger.runtime(runtime);
        Self { ledger: ledger.clone(), charge: account.nothing(), account, exempt: None, step }
    }

    /// Whether more may be read, where `held` bytes are held now.
    pub(super) fn room(&mut self, held: usize) -> bool {
        if held < self.step {
            self.exempt = None;
        }
        // In steps: most output comes and goes within one.
        let needed = held.saturating_add(self.step).next_multiple_of(self.step);
        if self.exempt.is_some() && needed > self.charge.bytes() {
            self.charge.join(self.account.force(needed - self.charge.bytes()));
        }
        needed == self.charge.bytes() || self.charge.resize(needed).is_ok()
    }

    /// Waits for room for one read more. `alone`: no output of the runtime is on its way to sessions, so that none gives
    /// room back. Then it may be the one runtime that goes on without room, to the end of its message. Cancellation safe.
    pub(super) async fn wait(&self, alone: bool) -> MeteredRoom {
        wait(&self.ledger, &self.account, self.step, alone).await
    }

    /// Takes the room that was waited for.
    pub(super) fn take(&mut self, room: MeteredRoom) {
        self.charge.join(room.0);
        self.exempt = room.1;
    }
}

async fn wait(ledger: &Ledger, account: &Account, bytes: usize, alone: bool) -> MeteredRoom {
    tokio::select! {
        biased;
        charge = account.wait(bytes) => MeteredRoom(charge, None),
        exempt = ledger.exempt(), if alone => MeteredRoom(account.force(bytes), Some(exempt)),
    }
}

/// The charge for a reply that comes in pieces.
pub(super) struct ReplyCharge {
    ledger: Ledger,
    account: Account,
    charge: Charge,
    exempt: Option<Exempt>,
    place: Option<ReplyPlace>,
}

impl ReplyCharge {
    /// Of the runtime of that name.
    pub(super) fn new(ledger: &Ledger, runtime: &str) -> Self {
        let account = ledger.runtime(runtime);
        Self { ledger: ledger.clone(), charge: account.nothing(), account, exempt: None, place: None }
    }

    /// Waits for room for a piece of `bytes`, or to be the one that goes on without.
    pub(super) async fn grow(&mut self, bytes: usize) {
        if self.exempt.is_some() {
            return self.charge.join(self.account.force(bytes));
        }
        let MeteredRoom(charge, exempt) = wait(&self.ledger, &self.account, bytes, true).await;
        self.charge.join(charge);
        self.exempt = exempt;
    }

    /// Keeps the reply's place among the events of its connection as long as the charge.
    pub(super) fn keep_place(&mut self, place: ReplyPlace) {
        self.place = Some(place);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ledger::LedgerLimits;

    const STEP: usize = 1 << 10;

    fn ledger() -> Ledger {
        Ledger::new(LedgerLimits { runtime: 8 * STEP, agents: 8 * STEP, gateway: 64 * STEP, ..LedgerLimits::default() })
    }

    #[tokio::test]
    async fn meter_charges_what_is_held_and_lets_one_runtime_go_on_without_room() {
        let ledger = ledger();
        let (mut one, mut other) = (RuntimeMeter::new(&ledger, "one", STEP), RuntimeMeter::new(&ledger, "other", STEP));
        let mut third = RuntimeMeter::new(&ledger, "third", STEP);
        assert!(one.room(3 * STEP) && other.room(2 * STEP), "7 of 8 steps are charged");
        assert!(!one.room(5 * STEP) && third.room(0), "the last one is the third's");
        // Both are in the middle of a message, and nobody gives anything back: the one that asks first goes on.
        let room = one.wait(true).await;
        one.take(room);
        assert!(one.room(9 * STEP));
        assert_eq!(ledger.runtime("one").used(), 10 * STEP);
        let waits = tokio::time::timeout(Duration::from_millis(50), other.wait(true)).await;
        assert!(waits.is_err(), "only one does");
        // Who waits for what is on its way is given room by that.
        assert!(tokio::time::timeout(Duration::from_millis(50), other.wait(false)).await.is_err());
        assert!(one.room(0));
        assert_eq!(ledger.runtime("one").used(), STEP);
        let room = other.wait(false).await;
        other.take(room);
        assert!(other.room(3 * STEP));
        drop((one, other, third));
        assert_eq!(ledger.runtime("other").used(), 0);
    }

    #[tokio::test]
    async fn meter_has_a_reply_wait_for_room_and_give_it_back() {
        let ledger = ledger();
        let mut first = ReplyCharge::new(&ledger, "one");
        first.grow(8 * STEP).await;
        let mut second = ReplyCharge::new(&ledger, "two");
        // It is the one that goes on without.
        second.grow(4 * STEP).await;
        second.grow(4 * STEP).await;
        assert_eq!(ledger.runtime("two").used(), 8 * STEP);
        let mut third = ReplyCharge::new(&ledger, "three");
        assert!(tokio::time::timeout(Duration::from_millis(50), third.grow(1)).await.is_err());
        drop((first, second));
        third.grow(1).await;
        assert_eq!(ledger.runtime("three").used(), 1);
    }
}
