//! Output of runtimes that the gateway holds is charged to their account before more of it is read: [`AGENT_FOOTPRINT`] bytes for each
//! byte, so that the charge covers the data made from it.

use tokio::sync::oneshot;

use plexus_ledger::{AGENT_FOOTPRINT, Account, Charge, Exempt, Ledger};

/// The charge for one runtime's output: the received part of a message, and the messages that are not stored yet.
pub(super) struct RuntimeMeter {
    ledger: Ledger,
    account: Account,
    charge: Charge,
    exemption: Option<Exemption>,
    /// Maximum size of one read, in bytes: this much is charged ahead.
    step: usize,
}

/// The permission to exceed the account, until the end of the current message.
struct Exemption {
    /// The charge for the message.
    exempt: Exempt,
    /// `true` if the message is complete and being stored. Meanwhile nothing is read beyond the account.
    storing: bool,
}

/// The result of waiting for a charge.
pub(super) struct MeteredCharge(Charge, Option<Exempt>);

impl RuntimeMeter {
    /// Makes a meter for the runtime of that name. `step`: maximum size of one read, in bytes.
    pub(super) fn new(ledger: &Ledger, runtime: &str, step: usize) -> Self {
        let account = ledger.runtime(runtime);
        Self { ledger: ledger.clone(), charge: account.nothing(), account, exemption: None, step }
    }

    /// Returns whether more may be read, if `unstored` bytes are on their way to sessions and `beside` bytes are held besides.
    pub(super) fn has_capacity(&mut self, unstored: usize, beside: usize) -> bool {
        let held = unstored.saturating_add(beside);
        if let Some(exemption) = &mut self.exemption {
            let ended = held < self.step || (exemption.storing && unstored == 0);
            exemption.storing |= unstored > 0;
            if ended {
                self.exemption = None;
            }
        }
        let needed = held.saturating_mul(AGENT_FOOTPRINT).saturating_add(self.step);
        // In steps: most output is charged and released within one.
        let needed = needed.next_multiple_of(self.step);
        let exempt = self.exemption.as_mut().map_or(0, |exemption| {
            if !exemption.storing {
                exemption.exempt.resize(needed);
            }
            exemption.exempt.bytes()
        });
        let needed = needed.saturating_sub(exempt).max(self.step);
        needed == self.charge.bytes() || self.charge.resize(needed).is_ok()
    }

    /// Waits for a charge for one more read. `alone`: no output of the runtime is on its way to sessions, so that no charge will be
    /// released. Then it may be the one runtime that continues beyond the account, to the end of its message. Cancellation safe.
    pub(super) async fn wait(&self, alone: bool) -> MeteredCharge {
        wait(&self.ledger, &self.account, self.step.saturating_mul(AGENT_FOOTPRINT), alone).await
    }

    /// Adds the charge that was waited for.
    pub(super) fn take(&mut self, metered: MeteredCharge) {
        self.charge.join(metered.0);
        // An existing exemption stays until its message is stored.
        if let Some(exempt) = metered.1 {
            self.exemption = Some(Exemption { exempt, storing: false });
        }
    }
}

async fn wait(ledger: &Ledger, account: &Account, bytes: usize, alone: bool) -> MeteredCharge {
    tokio::select! {
        biased;
        charge = account.wait(bytes) => MeteredCharge(charge, None),
        exempt = ledger.exempt(), if alone => MeteredCharge(account.nothing(), Some(exempt)),
    }
}

/// The position of a reply among the events of its tunnel. Later events are delivered once it is dropped.
pub(super) struct ReplyOrder(#[expect(dead_code, reason = "it is dropped, no more")] pub(super) oneshot::Sender<()>);

/// The charge for a reply that arrives in pieces.
pub(super) struct ReplyCharge {
    ledger: Ledger,
    account: Account,
    charge: Charge,
    exempt: Option<Exempt>,
    order: Option<ReplyOrder>,
}

impl ReplyCharge {
    /// Makes the charge for a reply of the runtime of that name.
    pub(super) fn new(ledger: &Ledger, runtime: &str) -> Self {
        let account = ledger.runtime(runtime);
        Self { ledger: ledger.clone(), charge: account.nothing(), account, exempt: None, order: None }
    }

    /// Waits for a charge for a piece of `bytes`, or for the permission to continue beyond the account.
    pub(super) async fn grow(&mut self, bytes: usize) {
        let bytes = bytes.saturating_mul(AGENT_FOOTPRINT);
        if self.exempt.is_none() {
            let MeteredCharge(charge, exempt) = wait(&self.ledger, &self.account, bytes, true).await;
            self.charge.join(charge);
            self.exempt = exempt;
        }
        if let Some(exempt) = &mut self.exempt {
            exempt.resize(exempt.bytes() + bytes);
        }
    }

    /// Holds the reply's position among the events of its connection as long as the charge.
    pub(super) fn hold_order(&mut self, order: ReplyOrder) {
        self.order = Some(order);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    use plexus_ledger::{Class, LedgerLimits};

    const STEP: usize = 1 << 10;
    /// Bytes of output that are charged as one step.
    const PART: usize = STEP / AGENT_FOOTPRINT;

    fn ledger() -> Ledger {
        Ledger::new(LedgerLimits { runtime: 8 * STEP, agents: 8 * STEP, gateway: 64 * STEP, ..LedgerLimits::default() })
    }

    fn exempt(ledger: &Ledger) -> usize {
        ledger.sums()[Class::Exempt as usize].used
    }

    async fn soon<T>(what: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(5), what).await.expect("there is no room")
    }

    /// Waits for room for a message in assembly, as the driver does.
    async fn grow(meter: &mut RuntimeMeter, held: usize) {
        while !meter.has_capacity(0, held) {
            let metered = soon(meter.wait(true)).await;
            meter.take(metered);
        }
    }

    #[tokio::test]
    async fn meter_charges_what_is_held_and_lets_one_runtime_go_on_without_room() {
        let ledger = ledger();
        let (mut one, mut other) = (RuntimeMeter::new(&ledger, "one", STEP), RuntimeMeter::new(&ledger, "other", STEP));
        let mut third = RuntimeMeter::new(&ledger, "third", STEP);
        assert!(one.has_capacity(0, 3 * PART) && other.has_capacity(PART, PART), "7 of 8 steps are charged");
        assert!(!one.has_capacity(0, 5 * PART) && third.has_capacity(0, 0), "the last one is the third's");
        // Both are in the middle of a message, and nobody gives anything back: the one that asks first goes on.
        let metered = soon(one.wait(true)).await;
        one.take(metered);
        // It takes nothing from the others, also where it stops in the middle of its message.
        assert!(one.has_capacity(0, 90 * PART));
        assert_eq!((ledger.runtime("one").used(), exempt(&ledger)), (STEP, 91 * STEP));
        assert!(other.has_capacity(PART, 3 * PART));
        // All that is left is too little for a second one.
        assert!(!other.has_capacity(PART, 6 * PART));
        let waits = tokio::time::timeout(Duration::from_millis(50), other.wait(true)).await;
        assert!(waits.is_err(), "only one does");
        assert!(one.has_capacity(0, 0));
        assert_eq!((ledger.runtime("one").used(), exempt(&ledger)), (STEP, 0));
        drop((one, third));
        assert!(other.has_capacity(0, 3 * PART));
        let metered = soon(other.wait(false)).await;
        other.take(metered);
        assert!(other.has_capacity(PART, 6 * PART));
        drop(other);
        assert_eq!(ledger.runtime("other").used(), 0);
    }

    #[tokio::test]
    async fn exemption_is_for_one_message_until_it_is_stored() {
        let ledger = ledger();
        let (mut one, mut other) = (RuntimeMeter::new(&ledger, "one", STEP), RuntimeMeter::new(&ledger, "other", STEP));
        grow(&mut one, 20 * STEP).await;
        // The message is whole: of the next one nothing is read that would need more.
        assert!(one.has_capacity(20 * STEP, 0));
        assert!(one.has_capacity(20 * STEP, STEP));
        assert!(!one.has_capacity(20 * STEP, 3 * STEP));
        // Nobody else goes on without room before it is stored.
        assert!(other.has_capacity(0, 3 * PART) && !other.has_capacity(0, 2 * STEP));
        let waits = tokio::time::timeout(Duration::from_millis(50), other.wait(true)).await;
        assert!(waits.is_err(), "two long messages are held at once");
        // Room that others give back does not end the exemption.
        one.take(MeteredCharge(ledger.runtime("one").nothing(), None));
        let waits = tokio::time::timeout(Duration::from_millis(50), other.wait(true)).await;
        assert!(waits.is_err(), "the exemption ended before the message was stored");
        // The next message has the usual room.
        assert!(one.has_capacity(0, 3 * PART));
        assert!(!one.has_capacity(0, 3 * STEP));
        grow(&mut other, 2 * STEP).await;
    }

    #[tokio::test]
    async fn meter_has_a_reply_wait_for_room_and_give_it_back() {
        let ledger = ledger();
        let mut first = ReplyCharge::new(&ledger, "one");
        first.grow(8 * PART).await;
        let mut second = ReplyCharge::new(&ledger, "two");
        // It is the one that goes on without.
        second.grow(4 * PART).await;
        second.grow(4 * PART).await;
        assert_eq!((ledger.runtime("two").used(), exempt(&ledger)), (0, 8 * STEP));
        let mut third = ReplyCharge::new(&ledger, "three");
        assert!(tokio::time::timeout(Duration::from_millis(50), third.grow(PART)).await.is_err());
        drop((first, second));
        third.grow(PART).await;
        assert_eq!(ledger.runtime("three").used(), STEP);
    }
}
