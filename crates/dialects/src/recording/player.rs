//! A player that runs a dialect on a recording.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{Direction, RecordingEntry};
use crate::{ClientToolCall, Dialect, HttpReply, HttpRequest, MakeDialect, Outbox, RuntimeCommand, RuntimeEvent};
use plexus_protocol::RuntimeSpec;

/// Runs a dialect on a recording line by line, as the driver of the runtime did.
pub struct Player {
    make: MakeDialect,
    spec: RuntimeSpec,
    dialect: Box<dyn Dialect>,
    /// Frames that the dialect sent and that were not in the recording yet.
    frames: VecDeque<String>,
    /// Requests of the dialect that have no reply yet, with whether they were in the recording.
    requests: Vec<(HttpRequest, bool)>,
    /// The request that was last in the recording.
    last_matched: Option<u64>,
}

/// The result of a line.
#[derive(Debug, Default)]
pub struct Played {
    /// The events of the dialect for the gateway.
    pub events: Vec<RuntimeEvent>,
    /// The messages to the runtime, in the form of the `in` lines that follow.
    pub orders: Vec<String>,
    /// The client tool calls of the dialect.
    pub calls: Vec<ClientToolCall>,
    /// The message that the dialect sends instead, if any, for an `in` line that differs from it.
    pub instead: Option<Option<String>>,
}

impl Player {
    /// Makes a player for a runtime, with the constructor of its dialect.
    pub fn new(make: MakeDialect, spec: RuntimeSpec) -> Self {
        let dialect = make(&spec);
        Self { make, spec, dialect, frames: VecDeque::new(), requests: Vec::new(), last_matched: None }
    }

    /// Returns the dialect in its current state.
    pub fn dialect(&self) -> &dyn Dialect {
        self.dialect.as_ref()
    }

    /// Returns the messages of the dialect that were in no `in` line.
    pub fn unmatched(&self) -> Vec<String> {
        let requests =
            self.requests.iter().filter(|(_, last_matched)| !last_matched).map(|(request, _)| request_line(request));
        self.frames.iter().cloned().chain(requests).collect()
    }

    /// Plays one line.
    ///
    /// # Errors
    /// Returns the reason why it cannot be played.
    pub fn play(&mut self, entry: &RecordingEntry) -> Result<Played, String> {
        let mut out = Outbox::default();
        let line = &entry.line;
        match entry.dir {
            Direction::About | Direction::Note => {}
            Direction::Open => self.dialect.open(&mut out),
            Direction::Restored => {
                let mut dialect = (self.make)(&self.spec);
                if !dialect.restore(line.as_bytes()) {
                    return Err(format!("not a saved state of the dialect {}", self.spec.dialect));
                }
                self.dialect = dialect;
            }
            Direction::Command => {
                let command: RuntimeCommand =
                    serde_json::from_str(line).map_err(|error| format!("not a command: {error}"))?;
                self.dialect.command(command, &mut out);
            }
            Direction::Out => self.dialect.feed(Bytes::copy_from_slice(line.as_bytes()), &mut out),
            Direction::Wake => self.dialect.wake(&mut out),
            Direction::Lost => self.dialect.lost(line, &mut out),
            Direction::Done => {
                let id = entry.id.ok_or("the id is missing: the number of the call that it belongs to")?;
                let done = serde_json::from_str(line).map_err(|error| format!("not a result: {error}"))?;
                self.dialect.done(id, done, &mut out);
            }
            Direction::Reply => self.reply(entry, &mut out)?,
            Direction::In => return Ok(self.compare(entry)),
        }
        Ok(self.took(out))
    }

    fn reply(&mut self, entry: &RecordingEntry, out: &mut Outbox) -> Result<(), String> {
        let (status, body) = entry.line.split_once(' ').unwrap_or((&entry.line, ""));
        let status: u16 = status.parse().map_err(|_| "a reply must begin with its status".to_owned())?;
        // A reply without a request is not passed to the dialect.
        let Some(id) = entry.id.or_else(|| self.last_matched.take()) else { return Ok(()) };
        self.requests.retain(|(request, _)| request.id != id);
        let reply = match status {
            0 => Err(body.to_owned()),
            status => Ok(HttpReply { status, body: Bytes::copy_from_slice(body.as_bytes()) }),
        };
        self.dialect.reply(id, reply, out);
        Ok(())
    }

    /// Compares a message to the runtime with the messages of the dialect.
    fn compare(&mut self, entry: &RecordingEntry) -> Played {
        let line = &entry.line;
        if line.trim_start().starts_with('{') || line.trim_start().starts_with('[') {
            let expected = self.frames.pop_front();
            let instead = (expected.as_ref() != Some(line)).then_some(expected);
            return Played { instead, ..Played::default() };
        }
        let fits = |request: &HttpRequest| match entry.id {
            Some(id) => request.id == id,
            None => request_line(request) == *line,
        };
        let found = self.requests.iter_mut().find(|(request, matched)| !matched && fits(request));
        self.last_matched = found.as_ref().map(|(request, _)| request.id);
        let expected = found.map(|(request, matched)| {
            *matched = true;
            request_line(request)
        });
        let instead = (expected.as_ref() != Some(line)).then_some(expected);
        Played { instead, ..Played::default() }
    }

    fn took(&mut self, out: Outbox) -> Played {
        let frames: Vec<String> = out.frames.iter().map(|frame| frame_line(frame)).collect();
        let requests = out.fetches.iter().map(request_line);
        let orders = frames.iter().cloned().chain(requests).collect();
        self.frames.extend(frames);
        self.requests.extend(out.fetches.into_iter().map(|request| (request, false)));
        Played { events: out.events, orders, calls: out.client_tools, instead: None }
    }
}

/// Returns a frame as a line of a recording.
pub fn frame_line(frame: &[u8]) -> String {
    String::from_utf8_lossy(frame).trim_end_matches('\n').to_owned()
}

/// Returns an HTTP request as a line of a recording.
pub fn request_line(request: &HttpRequest) -> String {
    let body = request.body.as_ref().map(|body| format!(" {}", String::from_utf8_lossy(body)));
    format!("{} {}{}", request.method, request.path, body.unwrap_or_default())
}
