//! History in pages, over HTTP and the WebSocket: plain or merged, after a cursor or before one. A page of plain events is streamed slice
//! by slice, and each slice is charged until the client has read its last byte, so that a client that does not read costs a few slices.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;

use super::guard::Counted;
use super::stop::stopping;
use super::{Core, Problem, wire};
use plexus_auth::Caller;
use plexus_ledger::{Account, Charge, Charged};
use plexus_protocol::api::history::{PageEnd, ResumeVerdict};
use plexus_protocol::{Cursor, Position};
use plexus_sessions::{Filter, HistoryPage, Log, LogPosition, PageItem, PageLimit, StartAfter};

/// Approximate maximum size of the events on one page after a cursor, in bytes.
const PAGE_BYTES: usize = 8 << 20;
/// Approximate maximum size of the items on a page that is merged or read backwards, in bytes, since it is completed before it is sent.
pub(super) const MERGED_BYTES: usize = 1 << 20;
/// Size of a slice, in bytes.
const SLICE_BYTES: usize = 128 << 10;
/// The `Cache-Control` of a complete page.
const COMPLETE: &str = "private, max-age=31536000, immutable";
/// Maximum time that a begun page waits for memory; by then the connections of clients that do not read are closed.
const CHARGE_TIMEOUT: Duration = Duration::from_secs(30);

/// The part of the history that a client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HistoryRange {
    /// The events after a position.
    After(StartAfter, u32),
    /// The newest events before a cursor (and part of a text), or before the end.
    Before(Option<(Cursor, u32)>),
}

impl HistoryRange {
    /// Reads `after` and `before`, of which at most one is allowed.
    ///
    /// # Errors
    /// 400 `bad_cursor`; `bad_query` if both are given.
    pub(super) fn read(after: Option<&str>, before: Option<&str>) -> Result<Self, Problem> {
        match (after.filter(|after| !after.is_empty()), before) {
            (Some(_), Some(_)) => Err(super::reply::bad_query("give `after` or `before`, not both".into())),
            (None, Some("" | "now")) => Ok(Self::Before(None)),
            (None, Some(text)) => cursor(text).map(|at| Self::Before(Some(at))),
            (None, None) => Ok(Self::After(StartAfter::Oldest, 0)),
            (Some("now"), None) => Ok(Self::After(StartAfter::Now, 0)),
            (Some(text), None) => {
                let (mut at, part) = cursor(text)?;
                if part > 0 {
                    // If the position is between two parts, everything before that event was read.
                    at.position = Position(at.position.0.saturating_sub(1));
                }
                Ok(Self::After(StartAfter::Cursor(at), part))
            }
        }
    }
}

/// Reads a cursor, or a position before a part of a long text: `k3f9:1042+3`.
fn cursor(text: &str) -> Result<(Cursor, u32), Problem> {
    let part = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten();
    let (cursor, part) = match text.split_once('+').map(|(cursor, text)| (cursor, part(text))) {
        Some((cursor, Some(part))) => (cursor, part),
        _ => (text, 0),
    };
    Ok((cursor.parse().map_err(Problem::bad_cursor)?, part))
}

/// Returns the end of a page without lost events.
pub(super) fn page_end(log: &Log, to: LogPosition) -> PageEnd {
    PageEnd {
        previous: None,
        next: after_text(log, to),
        head: log.cursor(log.head()),
        resume: ResumeVerdict::Ok,
        snapshot: None,
        snapshots: None,
        omitted: None,
    }
}

/// Returns a position as `after`.
fn after_text(log: &Log, at: LogPosition) -> String {
    match at.part {
        0 => log.cursor(Position(at.position.0.saturating_sub(1))).to_string(),
        part => format!("{}+{part}", log.cursor(at.position)),
    }
}

/// Returns a position as `before`.
fn before_text(log: &Log, at: LogPosition) -> String {
    match at.part {
        0 => log.cursor(at.position).to_string(),
        part => format!("{}+{part}", log.cursor(at.position)),
    }
}

/// Returns the position to read on from after an attach.
pub(super) fn position_after(after: Position, part: u32) -> LogPosition {
    LogPosition { position: after.next(), part }
}

/// Returns the verdict on the page before a cursor, and the end of that page.
pub(super) fn ends(log: &Log, before: Option<(Cursor, u32)>) -> (ResumeVerdict, LogPosition) {
    let end = LogPosition::after(log.head());
    match before {
        None => (ResumeVerdict::Ok, end),
        Some((cursor, _)) if cursor.epoch != *log.epoch() => (ResumeVerdict::Reset, end),
        Some((cursor, _)) if cursor.position > end.position => (ResumeVerdict::Ahead, end),
        Some((cursor, part)) => (ResumeVerdict::Ok, LogPosition { position: cursor.position, part }),
    }
}

/// Returns the limit of a page: the client's items, bytes, and bytes of a tool call's members, within the gateway's bounds.
pub(super) fn limit(items: usize, bytes: Option<usize>, merge: bool, output: Option<usize>) -> PageLimit {
    let bytes = bytes.unwrap_or(MERGED_BYTES).clamp(1, MERGED_BYTES);
    PageLimit { items, bytes, merge, output: output.map_or(usize::MAX, |output| output.max(MIN_OUTPUT)) }
}

/// Minimum size to which the members of a tool call are shortened, in bytes: short descriptive members stay whole.
const MIN_OUTPUT: usize = 1 << 10;

/// Returns a page as JSON: `{"events":[…],` and the members of its end.
pub(super) fn json(log: &Log, items: &[PageItem], end: &impl Serialize) -> Result<Vec<u8>, Problem> {
    let mut text = b"{\"events\":[".to_vec();
    envelopes(log, items, &mut text);
    close(&mut text, end)?;
    Ok(text)
}

fn envelopes(log: &Log, items: &[PageItem], text: &mut Vec<u8>) {
    for item in items {
        if text.last() == Some(&b'}') {
            text.push(b',');
        }
        wire::item(text, log.epoch(), item);
    }
}

fn close(text: &mut Vec<u8>, end: &impl Serialize) -> Result<(), Problem> {
    let end = serde_json::to_string(end).map_err(|_| Problem::internal())?;
    text.extend_from_slice(b"],");
    text.extend_from_slice(&end.as_bytes()[1..]);
    Ok(())
}

/// Returns the end of a page that was read backwards.
pub(super) fn back_end(log: &Log, page: &HistoryPage) -> PageEnd {
    let previous = page.more.then(|| before_text(log, page.from));
    PageEnd { previous, ..page_end(log, page.to) }
}

/// Returns whether a page of `bytes`, read with a charge for `charged` bytes, may be retained. If not, the caller drops it and reads it
/// again with a charge for all of it, or for as much as an account can hold.
pub fn fits_charge(charge: &mut Charge, charged: usize, bytes: usize) -> bool {
    bytes <= charged || bytes <= charge.bytes() || charge.resize(bytes).is_ok()
}

/// Returns the text of a page, charged until its last byte is read.
pub fn text(text: Vec<u8>, mut charge: Charge) -> Bytes {
    // The events of the page are freed. A page larger than an account can hold is charged as far as possible.
    if charge.resize(text.len()).is_err() {
        tracing::debug!(bytes = text.len(), "a page is larger than its account");
    }
    Bytes::from_owner(Charged::new(text, charge))
}

/// Waits for a charge for the next piece of a streamed response.
///
/// # Errors
/// The errors of `in_time`.
pub async fn wait_for_charge(
    state: &Core,
    caller: &Caller,
    account: &Account,
    bytes: usize,
) -> Result<Charge, std::io::Error> {
    in_time(state, caller, account.wait(bytes)).await
}

/// Waits for a resource that the next piece of a streamed response needs.
///
/// # Errors
/// `CHARGE_TIMEOUT` passed, the device was revoked, or the gateway stops: the response is aborted, so that a client does not mistake a part
/// for the whole.
pub async fn in_time<T>(state: &Core, caller: &Caller, needed: impl Future<Output = T>) -> Result<T, std::io::Error> {
    let mut stop = state.stop.clone();
    let needed = tokio::select! {
        needed = needed => needed,
        () = stopping(&mut stop) => return Err(std::io::Error::other("the gateway is stopping")),
        () = tokio::time::sleep(CHARGE_TIMEOUT) => return Err(std::io::Error::other("there is no room")),
    };
    if *stop.borrow() || !state.auth.is_enrolled(caller) {
        return Err(std::io::Error::other("the response was aborted"));
    }
    Ok(needed)
}

/// The state of writing a page of plain events.
struct Writing {
    state: Core,
    caller: Caller,
    account: Account,
    filter: Filter,
    at: LogPosition,
    items: usize,
    bytes: usize,
    /// `true` if an envelope was written, so that the next one needs a comma.
    begun: bool,
    done: bool,
}

impl Writing {
    /// Writes the items of a slice, and the page's end if it is the last; returns whether it is.
    fn write(&self, page: &HistoryPage, text: &mut Vec<u8>) -> Result<bool, Problem> {
        let (log, from) = (self.state.directory.log(), text.len());
        for (n, item) in page.items.iter().enumerate() {
            if self.begun || n > 0 {
                text.push(b',');
            }
            wire::item(text, log.epoch(), item);
        }
        let done = !page.more || page.items.len() >= self.items || text.len() - from >= self.bytes;
        if done {
            close(text, &page_end(log, page.to))?;
        }
        Ok(done)
    }

    /// Records that a slice of this many bytes is sent.
    fn wrote(&mut self, page: &HistoryPage, bytes: usize) {
        self.begun |= !page.items.is_empty();
        self.at = page.to;
        self.items = self.items.saturating_sub(page.items.len());
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Returns the next slice. An error aborts the response, so that a client does not mistake a part for the whole.
    async fn piece(&mut self) -> Result<Option<Bytes>, std::io::Error> {
        if self.done {
            return Ok(None);
        }
        let log = self.state.directory.log().clone();
        // Charges the events and the output made of them. An event longer than a slice needs a larger charge and is read again.
        let mut charged = 2 * SLICE_BYTES;
        loop {
            let mut charge = wait_for_charge(&self.state, &self.caller, &self.account, charged).await?;
            let limit =
                PageLimit { items: self.items, bytes: SLICE_BYTES.min(self.bytes), merge: false, output: usize::MAX };
            let page =
                log.page_after(&self.filter, self.at, limit, &mut charge).await.map_err(std::io::Error::other)?;
            if !fits_charge(&mut charge, charged, page.bytes) {
                charged = page.bytes;
                continue;
            }
            let mut written = Vec::new();
            self.done = self.write(&page, &mut written).map_err(|_| std::io::Error::other("a page has no end"))?;
            self.wrote(&page, written.len());
            drop(page);
            return Ok(Some(text(written, charge)));
        }
    }
}

/// Returns the `ETag` of a complete page, which later events follow and do not change. Quoted, without `W/`.
pub(super) fn etag(log: &Log, end: LogPosition) -> String {
    format!("\"{}\"", page_end(log, end).next)
}

/// Adds the headers of a complete page. Clients that send a token may store it. Browsers may not, since they would hold it after signing out.
pub(super) fn complete(mut response: Response, etag: &str, request: &HeaderMap) -> Response {
    // Weak, because the member `head` of the page changes.
    if let Ok(etag) = HeaderValue::try_from(format!("W/{etag}")) {
        response.headers_mut().insert(ETAG, etag);
    }
    if request.contains_key(AUTHORIZATION) {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(COMPLETE));
    }
    response
}

/// Returns the response to a client that has the page.
pub(super) fn not_modified() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

/// Returns a page of plain events after a position, whose first slice was read with this charge.
pub(super) fn forth(
    state: Core,
    caller: Caller,
    account: Account,
    filter: Filter,
    (first, charge): (HistoryPage, Charge),
    items: usize,
) -> Result<Response, Problem> {
    let at = first.to;
    let mut writing =
        Writing { state, caller, account, filter, at, items, bytes: PAGE_BYTES, begun: false, done: false };
    let mut written = b"{\"events\":[".to_vec();
    if writing.write(&first, &mut written)? {
        drop(first);
        return Ok(whole(written, charge));
    }
    writing.wrote(&first, written.len());
    drop(first);
    let begin = text(written, charge);
    let begin = stream::once(async move { Ok::<_, std::io::Error>(begin) });
    let rest = stream::try_unfold(writing, async |mut writing| {
        Ok::<_, std::io::Error>(writing.piece().await?.map(|piece| (piece, writing)))
    });
    Ok(response(Body::from_stream(futures_util::StreamExt::chain(begin, rest))))
}

/// Returns the limit of the first slice of a page of plain events.
pub(super) fn first_slice(items: usize) -> PageLimit {
    PageLimit { items, bytes: SLICE_BYTES, merge: false, output: usize::MAX }
}

/// Returns a complete page that is charged already.
pub(super) fn whole(written: Vec<u8>, charge: Charge) -> Response {
    let mut response = response(Body::from(text(written, charge)));
    response.extensions_mut().insert(Counted);
    response
}

/// Returns a JSON response with this body.
pub fn response(body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::Epoch;

    #[test]
    fn position_in_a_long_text_is_a_cursor_with_a_part() {
        let at = |position| Cursor { epoch: Epoch::new("k3f9").unwrap(), position: Position(position) };
        let read = |after, before| HistoryRange::read(after, before).map_err(|problem| problem.code);
        assert_eq!(read(None, None), Ok(HistoryRange::After(StartAfter::Oldest, 0)));
        assert_eq!(read(Some(""), None), Ok(HistoryRange::After(StartAfter::Oldest, 0)));
        assert_eq!(read(Some("now"), None), Ok(HistoryRange::After(StartAfter::Now, 0)));
        assert_eq!(read(Some("k3f9:7"), None), Ok(HistoryRange::After(StartAfter::Cursor(at(7)), 0)));
        assert_eq!(read(Some("k3f9:7+2"), None), Ok(HistoryRange::After(StartAfter::Cursor(at(6)), 2)));
        assert_eq!(read(None, Some("")), Ok(HistoryRange::Before(None)));
        assert_eq!(read(None, Some("now")), Ok(HistoryRange::Before(None)));
        assert_eq!(read(None, Some("k3f9:7")), Ok(HistoryRange::Before(Some((at(7), 0)))));
        assert_eq!(read(None, Some("k3f9:7+2")), Ok(HistoryRange::Before(Some((at(7), 2)))));
        assert_eq!(read(Some("k3f9:7"), Some("k3f9:7")), Err("bad_query"));
        for bad in ["x", "k3f9:", "k3f9:x", "k3f9:7+x", "k3f9:7+", "k3f9:7+99999999999", ":7"] {
            assert_eq!(read(Some(bad), None), Err("bad_cursor"), "{bad}");
            assert_eq!(read(None, Some(bad)), Err("bad_cursor"), "{bad}");
        }
    }
}
