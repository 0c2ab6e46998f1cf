//! Server-sent events.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::request::Parts;

use super::{AppState, Problem};
use crate::auth::Caller;
use crate::sessions::{After, Filter};

/// Serves a stream. `parts` holds the [`ConnHandle`](super::ConnHandle).
pub(super) async fn serve(
    _state: AppState,
    _caller: Caller,
    _parts: Parts,
    _filter: Filter,
    _after: After,
) -> Response {
    Problem::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", "this build has no event stream").into_response()
}
