//! The native WebSocket.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::request::Parts;

use super::{AppState, Problem};
use crate::auth::Caller;

/// Serves a WebSocket. `parts` holds the [`ConnHandle`](super::ConnHandle) and hyper's `OnUpgrade`.
pub(super) async fn serve(_state: AppState, _caller: Caller, _parts: Parts) -> Response {
    Problem::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", "this build has no WebSocket").into_response()
}
