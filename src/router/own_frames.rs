//! The frames that a connection sends for itself (responses, `hello`, `live`, `lag`), from their creation until the client has read them,
//! charged to the connection's account meanwhile.

use bytes::Bytes;

use plexus_ledger::{Account, Charge, Charged};

/// Capacity that an empty buffer retains, in bytes; a larger one is freed.
const RETAINED: usize = 1 << 10;

pub(super) struct OwnFrames {
    /// The whole frames, without the bytes that are sent already.
    frames: Vec<u8>,
    sent: usize,
    charge: Charge,
    over_limit: bool,
}

impl OwnFrames {
    pub(super) fn new(account: &Account) -> Self {
        Self { frames: Vec::new(), sent: 0, charge: account.nothing(), over_limit: false }
    }

    /// Appends whole frames, and charges them.
    pub(super) fn push(&mut self, frames: impl FnOnce(&mut Vec<u8>)) {
        frames(&mut self.frames);
        self.update_charge();
    }

    /// Returns the buffer for whole frames of a caller that sends, and then calls [`update_charge`](Self::update_charge).
    pub(super) fn uncharged(&mut self) -> &mut Vec<u8> {
        &mut self.frames
    }

    /// Charges appended bytes, and releases the charge for sent ones.
    pub(super) fn update_charge(&mut self) {
        let waiting = self.waiting().len();
        if waiting != self.charge.bytes() && self.charge.resize(waiting).is_err() {
            self.over_limit = true;
        }
    }

    /// Returns the bytes that are not sent yet.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.frames[self.sent..]
    }

    /// Returns whether the waiting frames exceeded the account: the connection has to be closed.
    pub(super) fn is_over_limit(&self) -> bool {
        self.over_limit
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.frames.capacity()
    }

    /// Records that the client read this many bytes of [`waiting`](Self::waiting).
    pub(super) fn advance(&mut self, taken: usize) {
        self.sent += taken;
        if self.sent == self.frames.len() {
            self.frames.clear();
            self.frames.shrink_to(RETAINED);
            self.sent = 0;
        }
    }

    /// Returns all waiting bytes, in one piece that is charged until it is dropped. None of it may have been sent by
    /// [`advance`](Self::advance).
    pub(super) fn take(&mut self, account: &Account) -> Bytes {
        debug_assert_eq!(self.sent, 0, "a transport takes bytes or pieces, not both");
        self.update_charge();
        let charge = std::mem::replace(&mut self.charge, account.nothing());
        Bytes::from_owner(Charged::new(std::mem::take(&mut self.frames), charge))
    }
}
