//! The first messages after an attach.

use super::*;
use plexus_protocol::api::stream::{StreamHello, StreamSnapshots, You};

/// Returns the device of a caller.
pub(super) fn you(caller: &Caller) -> You {
    let device = caller.device();
    let Grant { scopes, approve_up_to, .. } = &device.grant;
    You {
        device_id: device.device_id.clone(),
        name: device.name.clone(),
        scopes: scopes.iter().copied().collect(),
        approve_up_to: *approve_up_to,
    }
}

/// Returns the first message to a subscriber. `attach` must be made before, so that this state is never older than its head.
pub(crate) fn hello(
    state: &Core,
    caller: &Caller,
    filter: &Filter,
    attach: &AttachVerdict,
    name: Option<&str>,
) -> StreamHello {
    let log = state.directory.log();
    let (sessions, omitted) = state.directory.newest(HELLO_SESSIONS, |origin| {
        caller.sees(&origin.session_id, &origin.runtime_id)
            && filter.sessions.as_ref().is_none_or(|some| some.contains(&origin.session_id))
    });
    StreamHello {
        session_id: name.map(str::to_owned),
        resume: attach.resume,
        epoch: log.epoch().as_str().to_owned(),
        oldest: log.cursor(attach.oldest),
        head: log.cursor(attach.head),
        sessions: sessions.into(),
        sessions_omitted: Some(omitted).filter(|omitted| *omitted > 0),
        runs: state.directory.runs(filter).into(),
        requests: state.directory.requests().open(filter).into(),
        you: you(caller),
    }
}

/// Returns the message with the snapshots of these sessions, or of all.
pub(crate) fn snapshots(session_id: Option<&str>, cursor: Cursor, many: plexus_sessions::Snapshots) -> StreamSnapshots {
    let omitted = Some(many.omitted).filter(|omitted| *omitted > 0);
    StreamSnapshots { session_id: session_id.map(str::to_owned), cursor, snapshots: many.snapshots.into(), omitted }
}
