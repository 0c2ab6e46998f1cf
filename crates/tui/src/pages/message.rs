//! The inputs of the state, and the actions that it asks the shell for.

use std::collections::BTreeMap;

use crossterm::event::{KeyEvent, MouseEvent};
use plexus_client::ClientEvent;
use serde_json::Value;

use super::TuiPage;
use crate::attachments::Attachment;
use crate::ceilings::CeilingsView;
use crate::conversation::{ConversationEvent, PageOf, WholeCall};
use crate::facts::SettingsFacts;
use crate::pairing::PairCall;
use crate::usage::UsagePart;

/// The purpose of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallTag {
    Me,
    /// A restart of an ended runtime, after which the composed prompt is sent.
    Restart(String),
    /// A page of older sessions, of the `hello` with this number.
    Older(u64),
    /// The open session, if it is not among the newest.
    Session,
    /// A call of a page, with what the page remembers of it.
    Page(TuiPage, String),
    Answer(String),
    /// A whole request of which only the beginning was sent.
    FullRequest(String),
    Prompt(Box<SentPrompt>),
    /// The files that are offered for the prompt, for the question of this number.
    Files(u64),
    TextPage(&'static str),
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
    /// A question of what was spent, of this number.
    Usage(u64, UsagePart),
    /// A ceiling to be set.
    Ceilings,
    /// A session to be archived, in this folder.
    Archived(String),
    /// The worktrees, after the session in this folder was archived.
    Worktrees(String),
    /// The next of the facts of the settings.
    Settings(Box<SettingsFacts>),
    /// Shows this text when the call is done.
    Notice(String),
}

/// A prompt that is on its way.
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
    /// The folders for the question of this number.
    Folders(u64),
    /// The files for the question of this number.
    Files(u64),
    /// The newest session of the agent, whose settings are offered.
    Offers(String),
    /// The conversations of a runtime.
    Past(String),
    /// The start of an agent for its conversations, of this number.
    Wake(u64),
    /// The start of this number.
    Start(u64),
    /// A setting of the session that was opened.
    Setting(u64),
    /// The first prompt of it.
    Prompt(u64),
}

/// A call of the screen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChangesCall {
    /// The list, read for this time.
    List(u64),
    /// The diff of a version of a file.
    Diff(String, String),
    /// The changes that were undone.
    PatchList,
    /// Undoing the change of a file.
    Undo(String),
    /// Bringing back what was undone.
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
        method: &'static str,
        path: String,
        body: Option<Value>,
    },
    /// A call whose body has the typed text in this member.
    With {
        tag: CallTag,
        method: &'static str,
        path: String,
        member: &'static str,
    },
    /// This ceiling is as typed; and the ceilings as they were shown.
    Ceiling(plexus_protocol::CeilingOf, Box<CeilingsView>),
    /// The image at the typed path is attached to the prompt of this session, or to that of the form (empty).
    Image(String),
    /// The question whether to deny the selected requests, for the typed reason.
    DenySeveral,
}

/// An action for the shell.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Open this session, from its newest page; or close the open one.
    Follow(Option<String>),
    /// Call the gateway.
    Call {
        tag: CallTag,
        method: &'static str,
        path: String,
        body: Option<Value>,
        key: bool,
    },
    /// Open a session, or send its first prompt, under this key: the same again counts once. It can be given up.
    Start {
        tag: CallTag,
        path: String,
        body: Value,
        key: String,
    },
    /// Give up what was started: nothing is left of it.
    GiveUp,
    /// Call the gateway under this key: the same again counts once.
    Once {
        tag: CallTag,
        path: String,
        body: Value,
        key: String,
    },
    /// Read a text of the gateway; it is the member `text` of the reply.
    Text {
        tag: CallTag,
        path: String,
    },
    /// Open a file below this folder in the user's editor.
    Edit {
        root: String,
        path: String,
        line: usize,
    },
    /// Read an image for the prompt of this session, or for that of the form (empty); and what was pasted, if it was.
    ReadImage {
        place: String,
        path: String,
        pasted: Option<String>,
    },
    /// Save the review of a session that was not sent yet; null if there is none any more.
    KeepReview(String, Value),
    /// Call a method of the gateway, or through it of the agent, for a session.
    Ask {
        tag: CallTag,
        method: &'static str,
        params: Value,
    },
    /// Follow this session after this cursor; earlier events have been read.
    Attach {
        session: String,
        after: Option<String>,
    },
    /// Read all of a tool call of which pages left something out.
    Whole {
        session: String,
        call: WholeCall,
    },
    /// Read the page before this cursor.
    Page {
        session: String,
        before: String,
    },
    /// Export a session to a file.
    Export {
        session: String,
        format: &'static str,
        name: String,
    },
    /// Copy to the clipboard.
    Copy(String),
    /// Report the viewed session and the focus.
    Presence(Option<String>, bool),
    Mouse(bool),
    Suspend,
    Redraw,
    /// Save when sessions were last viewed.
    Keep(BTreeMap<String, i64>),
}

impl Effect {
    /// Reads a path of the gateway.
    pub(crate) fn get(tag: CallTag, path: String) -> Self {
        Self::Call { tag, method: "GET", path, body: None, key: false }
    }

    /// Posts a body to a path of the gateway.
    pub(crate) fn post(tag: CallTag, path: String, body: Value) -> Self {
        Self::Call { tag, method: "POST", path, body: Some(body), key: false }
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
    /// A subscription ended for good.
    Ended(u64, String),
    /// The reply to a call: status and body; or an error.
    Done(CallTag, Result<(u16, Value), String>),
    /// The open session's newest page, its snapshot and the next cursor; `None` if they could not be read, and all events are replayed.
    Opened(u64, Option<(PageOf, Value, String)>),
    /// A page of older events.
    Page(u64, Result<PageOf, String>),
    /// All events of the call in this block, and the place of the last one.
    Whole(u64, u64, Result<(Vec<ConversationEvent>, u64), String>),
    Exported(Result<String, String>),
    /// An image was read, as [`Effect::ReadImage`] has it.
    ImageRead(String, Option<String>, Result<Attachment, String>),
    /// The editor has ended, or why it was not started.
    Edited(Result<(), String>),
}
