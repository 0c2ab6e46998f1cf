//! A session as a file: its events unchanged, or folded into a readable form. It is streamed slice by slice, and each slice is charged
//! until the client has read its last byte, so a client that does not read costs a few slices.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use plexus_auth::{Caller, Watch};
use plexus_ledger::{Account, Charge};
use plexus_protocol::{Position, SessionInfo};
use plexus_router::described::{Parameter, one_of};
use plexus_router::guard::{Call, Route};
use plexus_router::history::{fits_charge, in_time, text, wait_for_charge};
use plexus_router::reply::{parameter, session_of};
use plexus_router::routes::{GET, NOTHING, WATCH, route};
use plexus_router::{Core, Problem, wire};
use plexus_sessions::{Export, Filter, Format, StartAfter};
use plexus_store::ReadLimit;

/// Limit of one read of events.
const SLICE: ReadLimit = ReadLimit { events: 1000, bytes: 128 << 10 };
/// The policy of an exported page: no scripts, no loading, no forms.
const HTML_CSP: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const FORMAT: Parameter = Parameter::query("format", "ndjson (one event per line), md or html; default ndjson", || {
    one_of(&["ndjson", "md", "html"])
});

/// Returns the routes of exports.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        route(GET, "/v1/sessions/{id}/export", WATCH, NOTHING, "Export a session as a file", serve)
            .text(200, &["application/x-ndjson", "text/markdown", "text/html"]).with(&[&FORMAT]),
    ]
}

/// The state of an export.
struct Writing {
    state: Core,
    caller: Caller,
    account: Account,
    /// The charge for the memory of the fold.
    held: Charge,
    filter: Filter,
    /// The fold; `None` exports events unchanged.
    fold: Option<Export>,
    next: Position,
    /// The end of the export; later events are not part of it.
    until: Position,
    first: Option<Bytes>,
    done: bool,
}

impl Writing {
    /// Returns the next piece. An error aborts the response, so that a client does not mistake a part for the whole.
    async fn piece(&mut self) -> Result<Option<Bytes>, std::io::Error> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.done {
            return Ok(None);
        }
        let log = self.state.directory.log();
        // Charges the events and the output made of them. An event longer than a slice needs a larger charge and is read again.
        let mut requested = 2 * SLICE.bytes;
        // Of the events that exceed an account, one is folded at a time, and none together with an agent's line of that size.
        let mut turn = None;
        let (page, charge) = loop {
            // The charge for the fold is released only at the end: waiting for it would never end.
            let free = self.account.max().saturating_sub(self.held.bytes());
            let mut charge = wait_for_charge(&self.state, &self.caller, &self.account, requested.min(free)).await?;
            // Taken after the charge, which clients may hold for long: agents wait for this turn, too.
            if requested > self.account.max() && turn.is_none() {
                let mut exempt = in_time(&self.state, &self.caller, self.state.ledger.exempt()).await?;
                exempt.resize(requested);
                turn = Some(exempt);
            }
            let page = log.read(&self.filter, self.next, SLICE).await.map_err(std::io::Error::other)?;
            let bytes = 2 * page.events.iter().map(|event| event.weight()).sum::<usize>();
            if fits_charge(&mut charge, requested, bytes) {
                break (page, charge);
            }
            requested = bytes;
        };
        let events = page.events.iter().filter(|event| event.position <= self.until);
        let length = page.events.iter().map(|event| event.weight()).sum();
        let mut piece = Vec::new();
        match &mut self.fold {
            None => {
                piece.reserve(length);
                events.for_each(|event| {
                    wire::envelope(&mut piece, log.epoch(), event);
                    piece.push(b'\n');
                });
            }
            Some(fold) => {
                let mut text = String::new();
                events.for_each(|event| fold.event(event, &mut text));
                piece = text.into_bytes();
            }
        }
        self.done = page.next <= self.next || page.next >= self.until;
        self.next = page.next;
        if self.done
            && let Some(fold) = self.fold.take()
        {
            let mut text = String::new();
            fold.finish(&mut text);
            piece.extend_from_slice(text.as_bytes());
        }
        drop(page);
        let mut charge = self.charge_fold(charge);
        let fits = piece.len().saturating_add(self.held.bytes()) <= self.account.max();
        if charge.resize(piece.len()).is_err() && fits {
            return Err(std::io::Error::other("there is no room"));
        }
        Ok(Some(text(piece, charge)))
    }

    /// Charges the fold's memory from `charge`; the rest is for the piece.
    fn charge_fold(&mut self, charge: Charge) -> Charge {
        let held = self.fold.as_ref().map_or(0, Export::memory);
        self.held.join(charge);
        let all = self.held.bytes();
        self.held.split(all.saturating_sub(held))
    }
}

/// Serves a session as a file.
async fn serve(state: Core, call: Call) -> Result<Response, Problem> {
    let (session, _) = session_of::<Watch>(&state, &call)?;
    let (format, kind, ending) = match parameter(&call, "format").as_deref() {
        None | Some("ndjson") => (None, "application/x-ndjson", "ndjson"),
        Some("md") => (Some(Format::Markdown), "text/markdown; charset=utf-8", "md"),
        Some("html") => (Some(Format::Html), "text/html; charset=utf-8", "html"),
        Some(_) => {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", "`format` must be ndjson, md or html"));
        }
    };
    let writing = begin(state, call.caller()?.clone(), call.account.clone(), session, format);
    let pieces = stream::try_unfold(writing, async |mut writing| {
        Ok::<_, std::io::Error>(writing.piece().await?.map(|piece| (piece, writing)))
    });
    let id = call.id::<plexus_protocol::SessionId>(Problem::not_found)?;
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // Identifiers may have colons, which file names must not.
    let name = format!("attachment; filename=\"{}.{ending}\"", id.as_str().replace(':', "-"));
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    if ending == "html" {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(HTML_CSP));
    }
    Ok(response)
}

fn begin(state: Core, caller: Caller, account: Account, session: Arc<SessionInfo>, format: Option<Format>) -> Writing {
    let log = state.directory.log();
    let filter = Filter::session(session.session_id.clone());
    let (until, next) = (log.head(), log.attach(&filter, &StartAfter::Oldest).after);
    let mut head = String::new();
    let fold = format.map(|format| Export::begin(format, &session, &mut head));
    let first = Some(Bytes::from(head)).filter(|head| !head.is_empty());
    let held = account.nothing();
    Writing { state, caller, account, held, filter, fold, next, until, first, done: false }
}
