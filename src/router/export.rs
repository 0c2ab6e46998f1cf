//! A session as a file: its events as they are, or folded to what is read. Written while it is read, a page at a time.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

use super::guard::Call;
use super::http::{parameter, session_of};
use super::{AppState, Problem, wire};
use crate::auth::{Caller, Watch};
use crate::model::{Position, SessionInfo};
use crate::sessions::{After, Export, Filter, Format};
use crate::store::ReadLimit;

/// What is read at once.
const PAGE: ReadLimit = ReadLimit { events: 1000, bytes: 4 << 20 };
/// The page may do nothing, in whatever it is opened.
const HTML_CSP: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// What is being written.
struct Writing {
    state: AppState,
    caller: Caller,
    filter: Filter,
    /// None writes the events as they are.
    fold: Option<Export>,
    next: Position,
    /// What happens meanwhile is not part of it.
    until: Position,
    first: Option<Bytes>,
    done: bool,
}

impl Writing {
    /// The next piece; an error breaks the answer off, so that nobody takes a part for the whole.
    async fn piece(&mut self) -> Result<Option<Bytes>, std::io::Error> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.done {
            return Ok(None);
        }
        if *self.state.stop.borrow() || !self.state.auth.stands(&self.caller) {
            return Err(std::io::Error::other("the export was broken off"));
        }
        let log = self.state.directory.log();
        let page = log.read(&self.filter, self.next, PAGE).await.map_err(std::io::Error::other)?;
        let events = page.events.iter().filter(|event| event.position <= self.until);
        let mut piece = Vec::new();
        match &mut self.fold {
            None => events.for_each(|event| {
                wire::envelope(&mut piece, log.epoch(), event);
                piece.push(b'\n');
            }),
            Some(fold) => {
                let mut text = String::new();
                events.for_each(|event| fold.event(event.kind, event.at, &event.body, &mut text));
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
        Ok(Some(piece.into()))
    }
}

/// Serves a session as a file.
pub(super) async fn serve(state: AppState, call: Call) -> Result<Response, Problem> {
    let (session, _) = session_of::<Watch>(&state, &call)?;
    let (format, kind, ending) = match parameter(&call, "format").as_deref() {
        None | Some("ndjson") => (None, "application/x-ndjson", "ndjson"),
        Some("md") => (Some(Format::Markdown), "text/markdown; charset=utf-8", "md"),
        Some("html") => (Some(Format::Html), "text/html; charset=utf-8", "html"),
        Some(_) => {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", "`format` is one of ndjson, md, html"));
        }
    };
    let caller = call.caller()?.clone();
    let writing = begin(state, caller, session, format);
    let pieces = stream::try_unfold(writing, async |mut writing| {
        Ok::<_, std::io::Error>(writing.piece().await?.map(|piece| (piece, writing)))
    });
    let id = call.id::<crate::model::SessionId>(Problem::not_found)?;
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // An identifier is letters, digits and `_.:-`: no colon in a file's name.
    let name = format!("attachment; filename=\"{}.{ending}\"", id.as_str().replace(':', "-"));
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    if ending == "html" {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(HTML_CSP));
    }
    Ok(response)
}

fn begin(state: AppState, caller: Caller, session: Arc<SessionInfo>, format: Option<Format>) -> Writing {
    let log = state.directory.log();
    let filter = Filter::session(session.session_id.clone());
    let (until, next) = (log.head(), log.attach(&filter, &After::Oldest).after);
    let mut head = String::new();
    let fold = format.map(|format| Export::begin(format, &session, &mut head));
    let first = Some(Bytes::from(head)).filter(|head| !head.is_empty());
    Writing { state, caller, filter, fold, next, until, first, done: false }
}
