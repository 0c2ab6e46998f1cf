//! The frames that a connection sends for itself (responses, `hello`, `live`, `lag`), from when they are made until the
//! client has taken them, charged to the connection's account meanwhile.

use bytes::Bytes;

use plexus_ledger::{Account, Charge, Charged};

/// Capacity that an empty buffer keeps, in bytes; a larger one is given back.
const KEPT: usize = 1 << 10;

pub(super) struct OwnFrames {
    /// Whole frames, but for what is sent already.
    frames: Vec<u8>,
    sent: usize,
    charge: Charge,
    over: bool,
}

impl OwnFrames {
    pub(super) fn new(account: &Account) -> Self {
        Self { frames: Vec::new(), sent: 0, charge: account.nothing(), over: false }
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

    /// Charges what was appended, and gives back what was sent.
    pub(super) fn update_charge(&mut self) {
        let waiting = self.waiting().len();
        if waiting != self.charge.bytes() && self.charge.resize(waiting).is_err() {
            self.over = true;
        }
    }

    /// Returns the bytes that are not sent yet.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.frames[self.sent..]
    }

    /// Returns whether the account had no room for what waited: the connection is to be cut.
    pub(super) fn over(&self) -> bool {
        self.over
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.frames.capacity()
    }

    /// The client took this many bytes of [`waiting`](Self::waiting).
    pub(super) fn advance(&mut self, taken: usize) {
        self.sent += taken;
        if self.sent == self.frames.len() {
            self.frames.clear();
            self.frames.shrink_to(KEPT);
            self.sent = 0;
        }
    }

    /// All that waits, in one piece that is charged until it is dropped. Nothing may have been sent of it by
    /// [`advance`](Self::advance).
    pub(super) fn take(&mut self, account: &Account) -> Bytes {
        debug_assert_eq!(self.sent, 0, "a transport takes bytes or pieces, not both");
        self.update_charge();
        let charge = std::mem::replace(&mut self.charge, account.nothing());
        Bytes::from_owner(Charged::new(std::mem::take(&mut self.frames), charge))
    }
}
