//! The inputs of the state, and the actions that it requests from the shell.

use std::collections::BTreeMap;

use crossterm::event::{KeyEvent, MouseEvent};
use plexus_client::ClientEvent;
use plexus_client::calls::{ApiCall, ApiRequest};
use plexus_protocol::{CeilingKind, DeviceId, SessionId};

use super::TuiPage;
use crate::attachments::Attachment;
use crate::changes::StoredReview;
use crate::conversation::WholeCall;
use crate::facts::SettingsFacts;
use crate::pairing::PairCall;
use crate::reply::CallReply;
use crate::settings::SettingCall;
use crate::usage::UsagePart;
use plexus_protocol::api::history::{EventEnvelope, Page};
use plexus_protocol::api::snapshot::Snapshot;
use plexus_protocol::api::usage::CeilingsView;

/// The purpose of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallTag {
    OwnDevice,
    /// A restart of an ended runtime, after which the composed prompt is sent.
    Restart(String),
    /// A page of older sessions, of the `hello` with this number.
    Older(u64),
    /// The open session, if it is not among the newest.
    Session,
    /// A call of a page, with a value that the page needs for the reply.
    Page(TuiPage, String),
    Answer(String),
    /// A whole request of which only the beginning was loaded.
    FullRequest(String),
    Prompt(Box<SentPrompt>),
    /// The suggested files of the prompt, for the query of this number.
    Files(u64),
    /// The stderr output of a runtime.
    Logs,
    /// The health checks of the gateway.
    Checks,
    /// The MCP servers of a session's agent.
    Servers,
    /// The skills of a session's agent.
    Skills,
    /// A share link to show and copy.
    Link,
    /// A press on a surface of a session.
    Action {
        session: String,
        surface: String,
    },
    /// The surfaces of a session, after a change was missed.
    Surfaces(String),
    /// A call of the form of a new session.
    Form(FormCall),
    /// A call of the screen of this session's changes.
    Changes(String, ChangesCall),
    /// A call of the pairing of this number.
    Pairing(u64, PairCall),
    /// A query of the usage, with this number.
    Usage(u64, UsagePart),
    /// A ceiling to be set.
    Ceilings,
    /// The archiving of a session in this folder.
    Archived(String),
    /// The worktrees, after the session in this folder was archived.
    Worktrees(String),
    /// The next of the facts of the settings.
    Settings(Box<SettingsFacts>),
    /// A call after which this text is shown.
    Notice(String),
}

/// A prompt that is being sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SentPrompt {
    pub(crate) session: String,
    pub(crate) text: String,
    pub(crate) images: Vec<Attachment>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FormCall {
    Agents,
    Recent,
    /// The folders for the query of this number.
    Folders(u64),
    /// The files for the query of this number.
    Files(u64),
    /// The newest session of the agent, whose settings can be chosen.
    Offers(String),
    /// The conversations of a runtime.
    Past(String),
    /// The start of an agent for its conversations, of this number.
    Wake(u64),
    /// The start of this number.
    Start(u64),
    /// A setting of the opened session.
    Setting(u64),
    /// The first prompt of the opened session.
    Prompt(u64),
}

/// A call of the screen of changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChangesCall {
    /// The list, in the read of this number.
    List(u64),
    /// The diff of a version of a file.
    Diff(String, String),
    /// The changes that were undone.
    PatchList,
    /// The undoing of the change of a file.
    Undo(String),
    /// The restoring of an undone change.
    Restore(String),
    /// The comments with these numbers, after this first line.
    Review(Vec<u64>, String),
    /// A patch to copy.
    Patch,
}

/// The action after a confirmation.
#[derive(Clone, Debug)]
pub(crate) enum AfterConfirm {
    Call {
        tag: CallTag,
        request: ApiRequest,
    },
    /// Starts the agent with the typed name.
    StartAgent,
    /// Renames this session to the typed title.
    RenameSession(SessionId),
    /// Renames this device to the typed name.
    RenameDevice(DeviceId),
    /// Sets a ceiling to the typed amount; these are the current ceilings.
    Ceiling(CeilingKind, Box<CeilingsView>),
    /// Attaches the image at the typed path to the prompt of this session, or to that of the form (empty).
    Image(String),
    /// Asks whether to deny the selected requests, for the typed reason.
    DenySeveral,
}

impl AfterConfirm {
    pub(crate) fn call<R>(tag: CallTag, call: ApiCall<R>) -> Self {
        Self::Call { tag, request: call.request }
    }
}

/// The idempotency key of a call. A call with a key is repeated while the gateway is unreachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallKey {
    None,
    /// A key of this call alone.
    New,
    /// A key within this run of the program: a repeated call takes effect only once.
    Repeatable(String),
}

/// An action for the shell.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Opens this session, from its newest page; `None` closes the open one.
    Follow(Option<String>),
    /// Calls the gateway.
    Call {
        tag: CallTag,
        request: ApiRequest,
        key: CallKey,
    },
    /// Opens a session, or sends its first prompt, with this key: repeating it has no effect. It can be cancelled.
    Start {
        tag: CallTag,
        request: ApiRequest,
        key: String,
    },
    /// Cancels the start, and undoes it.
    CancelStart,
    /// Opens a file below this folder in the user's editor.
    Edit {
        root: String,
        path: String,
        line: usize,
    },
    /// Reads an image for the prompt of this session, or for that of the form (empty); `pasted` is the text that was pasted, if any.
    ReadImage {
        target: String,
        path: String,
        pasted: Option<String>,
    },
    /// Saves the review of a session that was not sent yet; `None` deletes it.
    SaveReview(String, Option<StoredReview>),
    /// Changes a setting of a session's agent.
    Set {
        tag: CallTag,
        session: String,
        call: SettingCall,
    },
    /// Follows this session after this cursor; earlier events have been read.
    Attach {
        session: String,
        after: Option<String>,
    },
    /// Reads the complete tool call that pages truncated.
    Whole {
        session: String,
        call: WholeCall,
    },
    /// Reads the page before this cursor.
    Page {
        session: String,
        before: String,
    },
    /// Exports a session to a file.
    Export {
        session: String,
        format: &'static str,
        name: String,
    },
    /// Copies a text to the clipboard.
    Copy(String),
    /// Reports the viewed session and the focus.
    Presence(Option<String>, bool),
    Mouse(bool),
    Suspend,
    Redraw,
    /// Saves the times when sessions were last viewed.
    SaveViewed(BTreeMap<String, i64>),
}

impl Effect {
    /// Calls the gateway, without an idempotency key.
    pub(crate) fn call<R>(tag: CallTag, call: ApiCall<R>) -> Self {
        Self::Call { tag, request: call.request, key: CallKey::None }
    }

    /// Calls the gateway under a new idempotency key.
    pub(crate) fn keyed_call<R>(tag: CallTag, call: ApiCall<R>) -> Self {
        Self::Call { tag, request: call.request, key: CallKey::New }
    }
}

/// An input of the state.
#[derive(Debug)]
pub(crate) enum Msg {
    Key(KeyEvent),
    Paste(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    Focus(bool),
    Tick,
    /// An event of any session.
    Event(ClientEvent),
    /// An event of the open session, with the number of the subscription.
    SessionEvent(u64, ClientEvent),
    /// The permanent end of a subscription, and the reason.
    Ended(u64, String),
    /// The reply to a call.
    Done(CallTag, CallReply),
    /// The outcome of a change of a setting.
    Set(CallTag, Result<(), String>),
    /// The newest page of the open session and its snapshot; `None` if they could not be read, so that all events are replayed.
    Opened(u64, Option<Box<(Page, Snapshot)>>),
    /// A page of older events.
    Page(u64, Result<Box<Page>, String>),
    /// All events of the call in this block, and the place of the last one.
    Whole(u64, u64, Result<(Vec<EventEnvelope>, u64), String>),
    Exported(Result<String, String>),
    /// The image of an [`Effect::ReadImage`].
    ImageRead(String, Option<String>, Result<Attachment, String>),
    /// The end of the editor, or the reason why it was not started.
    Edited(Result<(), String>),
}
