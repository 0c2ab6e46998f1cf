//! Conversations stored by a runtime that can be resumed, page by page. Titles and folders are the agent's text, sent only to devices
//! that may see all sessions of the runtime, so not to a link to one session.

use http::StatusCode;

use plexus_auth::Watch;
use plexus_protocol::api::sessions::ResumablePage;
use plexus_router::Core;
use plexus_router::described::{Parameter, matching, number};
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{QueryParameters, RouteResult, bad_query, json, runtime_of};
use plexus_router::routes::{GET, NOTHING, WATCH, route};
use plexus_sessions::{RESUMABLE_MAX, ResumableAt};

/// Default number of conversations on a page.
const PAGE: usize = 100;

/// The pattern of a position in a runtime's conversations: see `ListPosition`.
pub const RESUMABLE: &str = r"^[0-9]{1,5}(\.[A-Za-z0-9_-]{2,2800})?$";
const RESUMABLE_LIMIT: Parameter =
    Parameter::query("limit", "Maximum number of conversations (default 100, at most 1000)", number);
const RESUMABLE_CURSOR: Parameter = Parameter::query("cursor", "`next` of the previous page", || {
    matching(&format!("^({})?$", RESUMABLE.trim_matches(['^', '$'])))
});

/// Returns the routes of stored conversations.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        route(GET, "/v1/runtimes/{id}/resumable", WATCH, NOTHING, "Conversations stored by a runtime that can be resumed", list)
            .response::<ResumablePage>(200).with(&[&RESUMABLE_LIMIT, &RESUMABLE_CURSOR]),
    ]
}

async fn list(state: Core, call: Call) -> RouteResult {
    let (id, permit) = runtime_of::<Watch>(&state, &call)?;
    let query = QueryParameters::from_call(&call);
    let limit = query.number("limit", PAGE)?.clamp(1, RESUMABLE_MAX);
    let at = match query.get("cursor").filter(|text| !text.is_empty()) {
        Some(text) => text.parse().map_err(|()| bad_query("`cursor` does not come from a listing".into()))?,
        None => ResumableAt::default(),
    };
    json(StatusCode::OK, &state.directory.resumable().page(&permit, &id, &at, limit).await?)
}
