//! The nouns. Plain values that every floor above shares: no I/O, no tasks, no clock but the one passed in.

mod event;
mod ids;
mod request;
mod runtime;
mod session;
mod time;

pub use event::{Event, Kind, Origin};
pub use ids::{
    BadCursor, BadId, Cursor, DeviceId, Epoch, NativeId, Position, RequestId, RunId, RuntimeId, SessionId, Ticket,
};
pub use request::{Answer, Choice, Decision, Item, Offer, Receipt, Request, RequestState, RequestType, Resolver, Risk};
pub use runtime::{Connect, RestartPolicy, RuntimeInfo, RuntimeSpec, RuntimeState, Serve};
pub use session::{QueuedPrompt, RunInfo, RunStatus, Scope, SessionInfo, SessionState};
pub use time::Timestamp;
