//! Peers: the connected gateway, and connections that have not sent `Hello`.

use super::*;

/// Returns whether the peer runs as the holder's user. If the kernel does not report the user, the modes of the folder and the socket
/// protect the holder.
pub(super) fn is_own_user(stream: &UnixStream) -> bool {
    #[cfg(target_os = "linux")]
    return rustix::net::sockopt::socket_peercred(stream)
        .is_ok_and(|peer| same_user(peer.uid, rustix::process::geteuid()));
    #[cfg(not(target_os = "linux"))]
    return {
        let _ = stream;
        true
    };
}

/// Returns whether the peer is the own user: every other user is refused, including the superuser.
#[cfg(target_os = "linux")]
pub(super) fn same_user(peer: rustix::process::Uid, own: rustix::process::Uid) -> bool {
    peer == own
}

/// The connected gateway.
pub(super) struct Gateway {
    pub(super) stream: UnixStream,
    pub(super) decoder: Decoder,
    /// Queued messages, and the number of their bytes that were written.
    pub(super) messages: Vec<u8>,
    pub(super) written: usize,
    /// The offset before which output was queued or written.
    pub(super) sent: u64,
    pub(super) err_sent: u64,
    pub(super) full_sent: bool,
    pub(super) taken_sent: u64,
    pub(super) broken_sent: bool,
    pub(super) closed_sent: bool,
    pub(super) exited_sent: bool,
    /// `true` if the stream is full: writing continues when poll reports space.
    pub(super) blocked: bool,
    /// `true` if writing failed; messages from the gateway are still handled.
    pub(super) write_failed: bool,
    /// The time when the gateway last read or sent something.
    pub(super) last_progress: Instant,
}

/// A connection that has not sent `Hello`.
pub(super) struct UnknownPeer {
    pub(super) stream: UnixStream,
    pub(super) decoder: Decoder,
    pub(super) until: Instant,
}

impl HolderLoop {
    /// Accepts connections.
    pub(super) fn accept_peers(&mut self, now: Instant) {
        while self.unknown_peers.len() < UNKNOWN_PEERS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) if is_own_user(&stream) && stream.set_nonblocking(true).is_ok() => {
                    self.unknown_peers.push(UnknownPeer {
                        stream,
                        decoder: Decoder::default(),
                        until: now + HELLO_WAIT,
                    });
                }
                Ok(_) => {}
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(why) => {
                    if why.kind() != io::ErrorKind::WouldBlock {
                        self.accept_after = Some(now + RETRY_PAUSE);
                    }
                    return;
                }
            }
        }
    }

    /// Reads from the unknown peers; `ready` has a bit for each readable one.
    pub(super) fn read_unknown_peers(&mut self, ready: u32, now: Instant) {
        // Backwards, so that the indexes stay valid.
        for index in (0..self.unknown_peers.len()).rev() {
            let peer = &mut self.unknown_peers[index];
            let outcome = if ready & (1 << index) == 0 {
                ReadOutcome::Nothing
            } else {
                read_into(&peer.stream, &mut peer.decoder, &mut self.buf)
            };
            let message = peer.decoder.frame().and_then(|frame| frame.map(ToHolder::parse).transpose());
            match (message, outcome) {
                (Ok(Some(ToHolder::Hello { version, newest })), _) => {
                    // A peer that sent only `Hello` and has already disconnected did not wait for the response: it is ignored. A holder
                    // that was stopped for a while finds such peers before the current gateway.
                    let more = read_into(&peer.stream, &mut peer.decoder, &mut self.buf);
                    let closed = matches!(more, ReadOutcome::End) && peer.decoder.buffer().is_empty();
                    let peer = self.unknown_peers.swap_remove(index);
                    if closed {
                        continue;
                    }
                    let common_version = newest.min(VERSION);
                    if common_version < version.max(OLDEST) || (common_version < 2 && self.deposits.has_steps()) {
                        let why = format!("it speaks versions {OLDEST} to {VERSION}: use the plexus that started it");
                        Gateway::new(peer, now).refuse(&why);
                        continue;
                    }
                    self.welcome_peer(peer, common_version, now);
                    return;
                }
                (Ok(None), ReadOutcome::Nothing) if now < peer.until => {}
                (Ok(None), ReadOutcome::Progress) => {}
                _ => drop(self.unknown_peers.swap_remove(index)),
            }
        }
    }

    /// Makes `peer` the connected gateway.
    fn welcome_peer(&mut self, peer: UnknownPeer, version: u8, now: Instant) {
        // Complete messages of the previous gateway are still handled; `Welcome` reports their effect.
        for _ in 0..REPLACED_READS_MAX {
            let Some(gateway) = &mut self.gateway else { break };
            match read_into(&gateway.stream, &mut gateway.decoder, &mut self.buf) {
                ReadOutcome::Progress => self.handle_messages(now),
                ReadOutcome::Nothing | ReadOutcome::End => break,
            }
        }
        if let Some(previous) = self.gateway.take() {
            previous.refuse("another gateway has taken over");
        }
        let mut gateway = Gateway::new(peer, now);
        FromHolder::Welcome(self.welcome(version)).encode(&mut gateway.messages);
        gateway.sent = self.spool.acked();
        gateway.err_sent = self.tail.end();
        gateway.full_sent = self.full_since.is_some();
        gateway.taken_sent = self.taken;
        // `Welcome` reports that stdin is closed.
        gateway.broken_sent = self.stdin.is_none();
        self.had_gateway = true;
        self.gateway = Some(gateway);
        self.handle_messages(now);
    }

    /// Reads from the gateway.
    pub(super) fn read_gateway(&mut self, now: Instant) {
        let Some(gateway) = &mut self.gateway else { return };
        match read_into(&gateway.stream, &mut gateway.decoder, &mut self.buf) {
            ReadOutcome::Progress => {
                gateway.last_progress = now;
                self.handle_messages(now);
            }
            ReadOutcome::Nothing => {}
            ReadOutcome::End => self.drop_gateway(now),
        }
    }

    fn drop_gateway(&mut self, now: Instant) {
        self.gateway = None;
        self.next_socket_check = now + SOCKET_CHECK_INTERVAL;
    }

    /// Handles the gateway's complete messages.
    fn handle_messages(&mut self, now: Instant) {
        while let Some(gateway) = &mut self.gateway {
            let message = match gateway.decoder.frame().and_then(|frame| frame.map(ToHolder::parse).transpose()) {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(why) => return self.refuse(&format!("it was sent {why}"), now),
            };
            if let Err(why) = self.handle_message(message, now) {
                return self.refuse(why, now);
            }
        }
        self.write_stdin();
    }

    pub(super) fn handle_message(&mut self, message: ToHolder, now: Instant) -> Result<(), &'static str> {
        match message {
            ToHolder::Hello { .. } => return Err("it was greeted twice"),
            ToHolder::Stdin { offset, state, bytes } => {
                self.check_capacity()?;
                self.deposit(offset, &state)?;
                self.put_input(bytes);
            }
            ToHolder::Step { offset, entry, bytes } => {
                if !bytes.is_empty() {
                    self.check_capacity()?;
                }
                if offset > self.spool.end() {
                    return Err("state knows of output that never came");
                }
                if !self.deposits.add(offset, &entry) {
                    return Err("more state was sent than it stores, or there is nothing to add it to");
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
                if self.gateway.take().is_some_and(|gateway| gateway.exited_sent) {
                    // Everything was delivered: no file is left behind.
                    self.outlives = false;
                }
                self.next_socket_check = now + SOCKET_CHECK_INTERVAL;
            }
        }
        Ok(())
    }

    fn check_capacity(&self) -> Result<(), &'static str> {
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
            false => Err("more state was sent than it stores, and nothing was acknowledged"),
        }
    }

    /// Closes the gateway's connection with a reason.
    fn refuse(&mut self, why: &str, now: Instant) {
        if let Some(gateway) = self.gateway.take() {
            gateway.refuse(why);
        }
        self.tail.add(format!("plexus hold: hung up on a gateway: {why}\n").as_bytes());
        self.next_socket_check = now + SOCKET_CHECK_INTERVAL;
    }
}

impl Gateway {
    pub(super) fn new(peer: UnknownPeer, now: Instant) -> Self {
        Self {
            stream: peer.stream,
            decoder: peer.decoder,
            messages: Vec::new(),
            written: 0,
            sent: 0,
            err_sent: 0,
            full_sent: false,
            taken_sent: 0,
            broken_sent: false,
            closed_sent: false,
            exited_sent: false,
            blocked: false,
            write_failed: false,
            last_progress: now,
        }
    }

    /// Records that `written` bytes were sent: queued messages first, then output. Returns the rest of a partly sent record.
    pub(super) fn record_written(&mut self, spool: &Spool, mut written: usize) -> Vec<u8> {
        let messages = self.messages.len() - self.written;
        if written < messages {
            self.written += written;
            return Vec::new();
        }
        written -= messages;
        self.written = 0;
        self.messages.clear();
        self.messages.shrink_to(MESSAGES_MAX);
        for piece in spool.from(self.sent) {
            if written == 0 {
                break;
            }
            self.sent = piece.offset + piece.bytes.len() as u64;
            let total = OUT_HEAD + piece.bytes.len();
            if written < total {
                let head = wire::out_head(piece.offset, piece.bytes.len(), piece.crc);
                return [&head, piece.bytes].concat().split_off(written);
            }
            written -= total;
        }
        Vec::new()
    }

    /// Closes the connection, with the reason if it can be written.
    fn refuse(mut self, why: &str) {
        let mut rest = self.messages.split_off(self.written);
        FromHolder::Bye { reason: why.to_owned() }.encode(&mut rest);
        let _ = self.stream.write(&rest);
    }
}
