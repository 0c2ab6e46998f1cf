//! Conversations stored by a runtime that can be resumed, page by page. Titles and folders are the agent's text, shown only to
//! devices that may see all sessions of the runtime, so not to a link to one session.

use http::StatusCode;

use super::Core;
use super::described as docs;
use super::guard::{Call, Route};
use super::reply::{QueryParameters, RouteResult, bad_query, json, runtime_of};
use super::routes::{GET, NOTHING, WATCH, route};
use plexus_auth::Watch;
use plexus_protocol::api::sessions::ResumablePage;
use plexus_sessions::{RESUMABLE_MAX, ResumableAt};

/// Default number of conversations on a page.
const PAGE: usize = 100;

/// The routes of stored conversations.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        route(GET, "/v1/runtimes/{id}/resumable", WATCH, NOTHING, "Conversations stored by a runtime that can be resumed", list)
            .response::<ResumablePage>(200).with(&[&docs::RESUMABLE_LIMIT, &docs::RESUMABLE_CURSOR]),
    ]
}

pub(super) async fn list(state: Core, call: Call) -> RouteResult {
    let (id, permit) = runtime_of::<Watch>(&state, &call)?;
    let query = QueryParameters::of(&call);
    let limit = query.number("limit", PAGE)?.clamp(1, RESUMABLE_MAX);
    let at = match query.get("cursor").filter(|text| !text.is_empty()) {
        Some(text) => text.parse().map_err(|()| bad_query("`cursor` does not come from a listing".into()))?,
        None => ResumableAt::default(),
    };
    json(StatusCode::OK, &state.directory.resumable().page(&permit, &id, &at, limit).await?)
}
