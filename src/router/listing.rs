//! Pages of sessions, for every frontend that lists them.

use std::cmp::Reverse;
use std::sync::Arc;

use plexus_protocol::api::sessions::SessionsPage;
use plexus_protocol::{Position, SessionId, SessionInfo};

use super::reply::bad_query;
use super::wire::SESSIONS_MAX;
use super::{Core, Problem};
use plexus_auth::Caller;
use plexus_sessions::ActivityRank;

/// Returns a page of the sessions that the caller may see, most recently updated first.
pub(super) fn listing(
    state: &Core,
    caller: &Caller,
    archived: Option<bool>,
    limit: usize,
    cursor: Option<&str>,
) -> Result<SessionsPage, Problem> {
    let from = cursor.filter(|text| !text.is_empty()).map(Listed::read).transpose()?;
    // Read before the sessions, so that one updated between the two is repeated rather than missed.
    let began = from.as_ref().map_or_else(|| state.directory.log().head(), |from| from.began);
    let mut all = state.directory.ranked();
    all.retain(|(_, session)| archived.is_none_or(|archived| session.archived == archived));
    all.retain(|(_, session)| caller.sees(&session.session_id, &session.runtime_id));
    let skip = from.map_or(0, |from| {
        let last = (Reverse(from.at), from.id);
        all.partition_point(|(at, session)| (Reverse(*at), session.session_id.clone()) <= last)
    });
    let mut page: Vec<_> = all[skip..].iter().take(limit.clamp(1, SESSIONS_MAX)).cloned().collect();
    let mut next = None;
    if skip + page.len() < all.len() {
        let last = page.last().map(|(at, last)| Listed { began, at: *at, id: last.session_id.clone() });
        next = last.map(|last| last.to_string());
    } else {
        // A session updated since the first page moved to the front and may have been skipped: it is listed again.
        let is_updated =
            |(_, session): &&(ActivityRank, Arc<SessionInfo>)| state.directory.last(&session.session_id) > Some(began);
        page.extend(all[..skip].iter().filter(is_updated).cloned());
    }
    Ok(SessionsPage { sessions: page.into_iter().map(|(_, session)| session).collect(), next })
}

/// The position in a listing of sessions, as text `began.place.time.id`.
struct Listed {
    /// The end of the log when the listing began.
    began: Position,
    /// The rank of the last session listed.
    at: ActivityRank,
    /// The last session listed.
    id: SessionId,
}

impl Listed {
    fn read(text: &str) -> Result<Self, Problem> {
        let bad = || bad_query("`cursor` does not come from a listing".into());
        let mut parts = text.splitn(4, '.');
        let began = parts.next().and_then(|part| part.parse().ok()).map(Position).ok_or_else(bad)?;
        let rank = parts.next().and_then(|part| part.parse().ok()).ok_or_else(bad)?;
        let time = parts.next().and_then(|part| part.parse().ok()).ok_or_else(bad)?;
        let id = parts.next().and_then(|part| part.parse().ok()).ok_or_else(bad)?;
        Ok(Self { began, at: (rank, time), id })
    }
}

impl std::fmt::Display for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}.{}", self.began.0, self.at.0, self.at.1, self.id)
    }
}
