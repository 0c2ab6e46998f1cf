//! The shared values of all crates: identifiers, events, requests, sessions. No I/O, no tasks, and no clock except the one passed in.

#![warn(missing_docs)]

mod about;
pub mod answers;
pub mod api;
mod bodies;
mod call_digest;
mod capability;
mod ceiling;
pub mod codes;
mod content;
mod event;
mod ids;
mod known_items;
pub mod object;
mod project;
mod request;
mod runtime;
pub mod schema;
mod session;
mod subject;
pub mod text;
mod time;
pub mod transcript;
pub mod ui_protocol;
mod usage;

pub use about::{ABOUT_FILES, ABOUT_MAX, About, AnswerBounds, Misfit, Number, Question, QuestionOption, Touched};
pub use bodies::{ClientServed, ErrorBody, RawBody, Resolution, RunBody, RuntimeExit, RuntimeStatusBody};
pub use call_digest::{BadDigest, CallDigest, OWN_SERVER_PREFIX};
pub use capability::{Capabilities, Capability, server_capabilities};
pub use ceiling::{Ceiling, CeilingKind, CeilingReached};
pub use content::text_block;
pub use event::{Event, Kind, Origin};
pub use ids::{
    BadCursor, BadId, Cursor, DeviceId, Epoch, NativeId, Position, RequestId, RunId, RuntimeId, SessionId, TerminalId,
    Ticket,
};
pub use project::Project;
pub use request::{
    Answer, AnsweredBy, Answers, Choice, Decision, Editable, Item, NATIVE_MAX, Offer, Receipt, Request, RequestHead,
    RequestState, RequestType, Resolver, Risk, SHOWN_MAX, SINGLE_QUESTION,
};
pub use runtime::{CODEX_TERMINAL, Connect, LINK_SCHEME, RestartPolicy, RuntimeInfo, RuntimeSpec, RuntimeState, Serve};
pub use session::{QueuedPrompt, RunInfo, RunStatus, Scope, SessionInfo, SessionState};
pub use subject::{FolderClaim, RequestSubject};
pub use time::Timestamp;
pub use usage::{
    CURRENCIES_MAX, MONEY_MAX, Money, SpendReport, Spending, TOKENS_MAX, lenient_tokens, reported_tokens, short_amount,
    short_count,
};
