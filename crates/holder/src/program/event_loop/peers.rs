//! Who connects: the gateway, and those that have not said who they are.

use super::*;

/// Whether whoever is at the other end is our own user. Where the kernel does not tell, the socket's folder and mode have
/// to do.
pub(super) fn ours(stream: &UnixStream) -> bool {
    #[cfg(target_os = "linux")]
    return rustix::net::sockopt::socket_peercred(stream)
        .is_ok_and(|peer| same_user(peer.uid, rustix::process::geteuid()));
    #[cfg(not(target_os = "linux"))]
    return {
        let _ = stream;
        true
    };
}

/// Nobody else, the superuser included: who is allowed everything needs no door.
#[cfg(target_os = "linux")]
pub(super) fn same_user(peer: rustix::process::Uid, own: rustix::process::Uid) -> bool {
    peer == own
}

/// The gateway that counts.
pub(super) struct Gateway {
    pub(super) stream: UnixStream,
    pub(super) decoder: Decoder,
    /// News on its way, and how much of it was written.
    pub(super) news: Vec<u8>,
    pub(super) written: usize,
    /// All output before this is on its way too, or written.
    pub(super) sent: u64,
    pub(super) err_sent: u64,
    pub(super) full_told: bool,
    pub(super) taken_told: u64,
    pub(super) broken_told: bool,
    pub(super) closed_told: bool,
    pub(super) exited_told: bool,
    /// It has no room for more: it is written to when poll says so.
    pub(super) blocked: bool,
    /// It hears nothing any more; what it said is still heard.
    pub(super) deaf: bool,
    /// When it last took or said something.
    pub(super) moved: Instant,
}

/// Somebody who has not said who he is.
pub(super) struct UnknownPeer {
    pub(super) stream: UnixStream,
    pub(super) decoder: Decoder,
    pub(super) until: Instant,
}

impl HolderLoop {
    /// Lets in whoever is at the door.
    pub(super) fn accept_peers(&mut self, now: Instant) {
        while self.guests.len() < GUESTS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) if ours(&stream) && stream.set_nonblocking(true).is_ok() => {
                    self.guests.push(UnknownPeer { stream, decoder: Decoder::default(), until: now + HELLO_WAIT });
                }
                Ok(_) => {}
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(why) => {
                    if why.kind() != io::ErrorKind::WouldBlock {
                        self.shut = Some(now + AGAIN);
                    }
                    return;
                }
            }
        }
    }

    /// Hears those that have not said who they are; `ready` has a bit for each that can be heard.
    pub(super) fn read_unknown_peers(&mut self, ready: u32, now: Instant) {
        // From the last on, so that places stay what they are.
        for place in (0..self.guests.len()).rev() {
            let guest = &mut self.guests[place];
            let heard = if ready & (1 << place) == 0 {
                ReadOutcome::Nothing
            } else {
                read_into(&guest.stream, &mut guest.decoder, &mut self.buf)
            };
            let said = guest.decoder.frame().and_then(|frame| frame.map(ToHolder::parse).transpose());
            match (said, heard) {
                (Ok(Some(ToHolder::Hello { version, newest })), _) => {
                    // Who greeted, said nothing else, and has hung up since did not wait for the answer: it is nobody. A
                    // holder that was stopped for a while finds such before the gateway that is there now.
                    let more = read_into(&guest.stream, &mut guest.decoder, &mut self.buf);
                    let gone = matches!(more, ReadOutcome::End) && guest.decoder.room().is_empty();
                    let guest = self.guests.swap_remove(place);
                    if gone {
                        continue;
                    }
                    let spoken = newest.min(VERSION);
                    if spoken < version.max(OLDEST) || (spoken < 2 && self.deposits.has_steps()) {
                        let why = format!("it speaks versions {OLDEST} to {VERSION}: use the plexus that started it");
                        Gateway::new(guest, now).refuse(&why);
                        continue;
                    }
                    self.welcome_peer(guest, spoken, now);
                    return;
                }
                (Ok(None), ReadOutcome::Nothing) if now < guest.until => {}
                (Ok(None), ReadOutcome::Something) => {}
                _ => drop(self.guests.swap_remove(place)),
            }
        }
    }

    /// Serves `guest` from now on.
    fn welcome_peer(&mut self, guest: UnknownPeer, version: u8, now: Instant) {
        // What the one before said in full is still done; the new one shall know of it.
        for _ in 0..LAST_READS {
            let Some(gateway) = &mut self.gateway else { break };
            match read_into(&gateway.stream, &mut gateway.decoder, &mut self.buf) {
                ReadOutcome::Something => self.obey(now),
                ReadOutcome::Nothing | ReadOutcome::End => break,
            }
        }
        if let Some(old) = self.gateway.take() {
            old.refuse("another gateway has taken over");
        }
        let mut gateway = Gateway::new(guest, now);
        FromHolder::Welcome(self.welcome(version)).encode(&mut gateway.news);
        gateway.sent = self.spool.acked();
        gateway.err_sent = self.tail.end();
        gateway.full_told = self.full_since.is_some();
        gateway.taken_told = self.taken;
        // It was told that stdin is closed.
        gateway.broken_told = self.stdin.is_none();
        self.had_gateway = true;
        self.gateway = Some(gateway);
        self.obey(now);
    }

    /// Hears the gateway.
    pub(super) fn read_gateway(&mut self, now: Instant) {
        let Some(gateway) = &mut self.gateway else { return };
        match read_into(&gateway.stream, &mut gateway.decoder, &mut self.buf) {
            ReadOutcome::Something => {
                gateway.moved = now;
                self.obey(now);
            }
            ReadOutcome::Nothing => {}
            ReadOutcome::End => self.drop_gateway(now),
        }
    }

    fn drop_gateway(&mut self, now: Instant) {
        self.gateway = None;
        self.look = now + SEEN_EVERY;
    }

    /// Does what the gateway said in full.
    fn obey(&mut self, now: Instant) {
        while let Some(gateway) = &mut self.gateway {
            let message = match gateway.decoder.frame().and_then(|frame| frame.map(ToHolder::parse).transpose()) {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(why) => return self.refuse(&format!("it was sent {why}"), now),
            };
            if let Err(why) = self.one(message, now) {
                return self.refuse(why, now);
            }
        }
        self.feed();
    }

    pub(super) fn one(&mut self, message: ToHolder, now: Instant) -> Result<(), &'static str> {
        match message {
            ToHolder::Hello { .. } => return Err("it was greeted twice"),
            ToHolder::Stdin { offset, state, bytes } => {
                self.has_room()?;
                self.deposit(offset, &state)?;
                self.put_input(bytes);
            }
            ToHolder::Step { offset, entry, bytes } => {
                if !bytes.is_empty() {
                    self.has_room()?;
                }
                if offset > self.spool.end() {
                    return Err("state knows of output that never came");
                }
                if !self.deposits.add(offset, &entry) {
                    return Err("more state was deposited than it keeps, or nothing that it could be added to");
                }
                self.put_input(bytes);
            }
            ToHolder::State { offset, state } => self.deposit(offset, &state)?,
            ToHolder::Ack { offset } => {
                if !self.spool.ack(offset) {
                    return Err("output was acknowledged that never came");
                }
                self.deposits.prune(self.spool.acked());
                if let Some(gateway) = &mut self.gateway {
                    gateway.sent = gateway.sent.max(self.spool.acked());
                }
            }
            ToHolder::CloseStdin => self.stdin_ends = true,
            ToHolder::Stop { stdin, term } => {
                self.stdin_ends = true;
                if matches!(self.phase, Phase::Running) {
                    self.phase = Phase::Stdin { until: now + stdin, term };
                }
            }
            ToHolder::Kill => {
                if matches!(self.phase, Phase::Running | Phase::Stdin { .. } | Phase::Term { .. }) {
                    self.kill(now);
                }
            }
            ToHolder::Bye => {
                if self.gateway.take().is_some_and(|gateway| gateway.exited_told) {
                    // It has everything: nothing is left behind.
                    self.outlives = false;
                }
                self.look = now + SEEN_EVERY;
            }
        }
        Ok(())
    }

    fn has_room(&self) -> Result<(), &'static str> {
        if self.put - self.taken >= STDIN_MAX as u64 {
            return Err("more input waits for its runtime than it keeps");
        }
        Ok(())
    }

    fn put_input(&mut self, bytes: Bytes) {
        self.put += bytes.len() as u64;
        if self.stdin.is_none() || self.stdin_ends {
            self.taken += bytes.len() as u64;
        } else if !bytes.is_empty() {
            self.input.push_back(bytes);
        }
    }

    fn deposit(&mut self, offset: u64, state: &[u8]) -> Result<(), &'static str> {
        if offset > self.spool.end() {
            return Err("state knows of output that never came");
        }
        match self.deposits.put(offset, state, self.spool.acked()) {
            true => Ok(()),
            false => Err("more state was deposited than it keeps, and nothing acknowledged"),
        }
    }

    /// Hangs up on the gateway, and says why.
    fn refuse(&mut self, why: &str, now: Instant) {
        if let Some(gateway) = self.gateway.take() {
            gateway.refuse(why);
        }
        self.tail.add(format!("plexus hold: hung up on a gateway: {why}\n").as_bytes());
        self.look = now + SEEN_EVERY;
    }
}

impl Gateway {
    pub(super) fn new(guest: UnknownPeer, now: Instant) -> Self {
        Self {
            stream: guest.stream,
            decoder: guest.decoder,
            news: Vec::new(),
            written: 0,
            sent: 0,
            err_sent: 0,
            full_told: false,
            taken_told: 0,
            broken_told: false,
            closed_told: false,
            exited_told: false,
            blocked: false,
            deaf: false,
            moved: now,
        }
    }

    /// Notes that so much was written: of the news first, then of the output. Gives what is missing of a piece of output
    /// whose beginning was written.
    pub(super) fn wrote(&mut self, spool: &Spool, mut written: usize) -> Vec<u8> {
        let news = self.news.len() - self.written;
        if written < news {
            self.written += written;
            return Vec::new();
        }
        written -= news;
        self.written = 0;
        self.news.clear();
        self.news.shrink_to(NEWS_MAX);
        for piece in spool.from(self.sent) {
            if written == 0 {
                break;
            }
            self.sent = piece.offset + piece.bytes.len() as u64;
            let whole = OUT_HEAD + piece.bytes.len();
            if written < whole {
                let head = wire::out_head(piece.offset, piece.bytes.len(), piece.crc);
                return [&head, piece.bytes].concat().split_off(written);
            }
            written -= whole;
        }
        Vec::new()
    }

    /// Hangs up, and says why if there is room.
    fn refuse(mut self, why: &str) {
        let mut rest = self.news.split_off(self.written);
        FromHolder::Bye { why: why.to_owned() }.encode(&mut rest);
        let _ = self.stream.write(&rest);
    }
}
