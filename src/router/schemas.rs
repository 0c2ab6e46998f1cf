//! The table of what clients read and write, as schemas: for `openapi.json` and `asyncapi.json` both. The shapes, and what
//! the types of Rust do not say of them (which words, which letters, how many), stand beside the test that holds them to
//! the model.

use serde_json::{Map, Value, json};
use utoipa::{OpenApi, ToSchema};

use super::notify::api as notify;
use super::rpc::ContentBlock;
use super::{agui, devices, http as api, rpc};
use crate::sessions::TITLE_MAX;
use plexus_protocol::{Capability, Kind};

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident { $($fields:tt)* })*) => {$(
        $(#[$doc])*
        #[derive(ToSchema)]
        #[allow(dead_code, reason = "only its schema is used")]
        pub(super) struct $name { $($fields)* }
    )*};
}

shapes! {
    /// A session.
    Session {
        session_id: String,
        runtime_id: String,
        dialect: String,
        #[schema(required = true)]
        native_id: Option<String>,
        #[schema(required = true)]
        title: Option<String>,
        cwd: String,
        /// `idle`, `running`, `waiting` or `exited`.
        state: String,
        run_id: Option<String>,
        /// What it does now: the title of the tool that runs, or `thinking`, `writing`, `working`; null between runs.
        #[schema(required = true)]
        doing: Option<String>,
        archived: bool,
        /// Whether it ended with its runtime, which can be started again.
        restartable: Option<bool>,
        open_requests: u64,
        requests: Option<Vec<String>>,
        queue: Option<Vec<Queued>>,
        created_at: String,
        /// When a run last began.
        prompted_at: Option<String>,
        updated_at: String,
        /// How many messages were exchanged, of people and of the agent.
        message_count: Option<u64>,
        /// The beginning of what a person said last.
        last_user_message: Option<String>,
    }
    /// A JSON-RPC message of ACP: a request, a notification or a response.
    AcpMessage {
        /// `2.0`
        jsonrpc: String,
        #[schema(value_type = Object)]
        id: Option<Value>,
        method: Option<String>,
        #[schema(value_type = Object)]
        params: Option<Value>,
        #[schema(value_type = Object)]
        result: Option<Value>,
        #[schema(value_type = Object)]
        error: Option<Value>,
    }
    /// A prompt that waits for its turn.
    Queued {
        run_id: String,
        text: String,
        by: Resolver,
    }
    /// A runtime.
    Runtime {
        runtime_id: String,
        dialect: String,
        /// `starting`, `ready`, `restarting` or `exited`.
        state: String,
        /// `{"command":[..]}` or `{"endpoint":".."}`.
        #[schema(value_type = Object)]
        connect: Value,
        cwd: String,
        agent: Option<String>,
        /// What it can do, once it said so.
        capabilities: Option<Vec<String>>,
        pid: Option<u32>,
        generation: u64,
        problem: Option<String>,
        stderr_tail: Option<String>,
        outlives: Option<bool>,
        heard_at: Option<String>,
        instance: Option<String>,
        updated_at: String,
    }
    /// A question from a runtime to people.
    Request {
        request_id: String,
        session_id: String,
        run_id: String,
        runtime_id: String,
        generation: u64,
        /// `confirm`, `prompt`, `pick`, `permission` or `elicitation`.
        r#type: String,
        /// `open`, `answered`, `expired`, `withdrawn` or `orphaned`.
        state: String,
        /// The agent's words.
        title: String,
        /// The agent's words.
        message: Option<String>,
        /// What it is about: an object whose `type` is `command`, `edit`, `fetch`, `tool`, `plan`, `question` or `unreadable`.
        #[schema(value_type = Object)]
        subject: Value,
        /// The gateway's rendering of exactly what is asked, safe to show.
        display: String,
        /// Whether `display` or `message` is cut, `native` left out, and the `digest` with them: fetch the request by its id.
        display_truncated: Option<bool>,
        /// How long the whole `display` is, in bytes, where it is cut.
        display_bytes: Option<u64>,
        warnings: Vec<String>,
        /// The gateway's judgement: `low`, `elevated` or `danger`.
        risk: String,
        /// Why it is judged so, in plain words.
        risk_reasons: Vec<String>,
        /// How often what is asked has changed since it was asked.
        revision: u64,
        /// Whether it has: it is to be read again, and an answer with the digest of an earlier revision is refused.
        changed: Option<bool>,
        /// SHA-256 (hex) of the canonical request; send it with the answer. Absent where `display` is cut.
        digest: Option<String>,
        options: Vec<Offer>,
        items: Option<Vec<Item>>,
        multi: Option<bool>,
        default_value: Option<String>,
        multiline: Option<bool>,
        secret: Option<bool>,
        danger: Option<bool>,
        allow_reason: bool,
        allow_remember: bool,
        observe_only: Option<bool>,
        /// What may be changed before it is allowed: an answer may bring `edited`.
        editable: Option<Editable>,
        tool_call_id: Option<String>,
        #[schema(value_type = Option<Object>)]
        native: Option<Value>,
        expires_at: Option<String>,
        opened_at: String,
        receipt: Option<Receipt>,
    }
    /// What of a request may be changed before it is allowed.
    Editable {
        label: String,
        /// As the agent wants it, untouched.
        value: String,
    }
    /// One of the answers offered.
    Offer {
        id: String,
        label: String,
        /// `allow_once`, `allow_always`, `reject_once`, `reject_always` or `other`.
        kind: String,
    }
    /// One of the things to pick from.
    Item {
        id: String,
        label: String,
        detail: Option<String>,
    }
    /// An answer: exactly one of `option_id`, `ok`, `value`, `ids`, `answers`.
    Answer {
        option_id: Option<String>,
        ok: Option<bool>,
        value: Option<String>,
        ids: Option<Vec<String>>,
        /// To each of the questions of a `subject` of type `question`, by its id: ids or labels of options, or words of one's own.
        #[schema(value_type = Option<Object>)]
        answers: Option<Value>,
        reason: Option<String>,
        remember: Option<bool>,
        /// What is to be done in place of `editable.value`; only with a yes for this once.
        edited: Option<String>,
        digest: Option<String>,
    }
    /// The durable record of what became of a request, and who won.
    Receipt {
        request_id: String,
        state: String,
        option_id: Option<String>,
        ok: Option<bool>,
        value: Option<String>,
        ids: Option<Vec<String>>,
        #[schema(value_type = Option<Object>)]
        answers: Option<Value>,
        reason: Option<String>,
        /// What was allowed in place of what was asked, exactly.
        edited: Option<String>,
        /// The same, safe to show.
        edited_display: Option<String>,
        /// What a person should know of it.
        edited_warnings: Option<Vec<String>>,
        resolved_by: Resolver,
        at: String,
        cursor: Option<String>,
        won: bool,
    }
    /// Who decided.
    Resolver {
        device_id: String,
        name: String,
    }
    /// An event.
    Envelope {
        session_id: String,
        run_id: String,
        /// Its number within the run, from 0 without a gap.
        seq: u64,
        cursor: String,
        at: String,
        kind: String,
        /// The canonical body.
        #[schema(value_type = Object)]
        event: Value,
        meta: Meta,
        /// What the runtime itself said, with the projection `native`.
        #[schema(value_type = Option<Object>)]
        native: Option<Value>,
        /// With `merge`: the number of the last event in it.
        seq_last: Option<u64>,
        /// With `merge`: the cursor of the first event in it; `cursor` is that of the last.
        cursor_first: Option<String>,
        /// With `merge`: how many events are in it, where it is of a kind that can be merged.
        merged: Option<u64>,
        /// With `merge`: when the last event in it was, where they are several.
        at_last: Option<String>,
        cut: Option<Cut>,
    }
    /// With `merge`: the text of the event in it is longer than a part, and this is not all of it.
    Cut {
        /// Parts of the first event's text that are missing before it.
        before: u64,
        /// Parts of the last event's text that are missing after it.
        after: u64,
    }
    /// Where an event comes from.
    Meta {
        runtime_id: String,
        dialect: String,
    }
    /// What a newcomer must see of a session.
    Snapshot {
        session: Session,
        cursor: String,
        messages: Vec<Message>,
        tools: Vec<Tool>,
        #[schema(value_type = Object)]
        latest: Value,
        requests: Vec<Request>,
        #[schema(value_type = Vec<Object>)]
        surfaces: Vec<Value>,
        /// Whether retention has removed what came before.
        trimmed: bool,
        /// Whether there are older messages and tools than these, the newest.
        truncated: bool,
        /// Where to page back from for what is older: to be given as `before`. Absent unless `truncated`.
        before: Option<String>,
    }
    /// A page of events. With a `resume` other than `ok`, the snapshot comes in place of what was lost; read on from `next`.
    Page {
        events: Vec<Envelope>,
        /// With `before`: the cursor to give as `before` for the page before this one; absent at the beginning.
        previous: Option<String>,
        next: String,
        head: String,
        /// `ok`, `gap`, `reset` or `ahead`.
        resume: String,
        snapshot: Option<Snapshot>,
        snapshots: Option<Vec<Snapshot>>,
        /// Sessions without a snapshot here, because they are too many.
        omitted: Option<u64>,
    }
    /// An enrolled device.
    Device {
        device_id: String,
        name: String,
        /// `device`, `share` or `local`.
        kind: String,
        scopes: Vec<String>,
        runtimes: Option<Vec<String>>,
        sessions: Option<Vec<String>>,
        /// The highest risk that it may answer: `low`, `elevated` or `danger`; any, if absent.
        approve_up_to: Option<String>,
        /// Whether it may answer from a notification.
        lock_screen: Option<bool>,
        created_at: String,
        last_seen_at: Option<String>,
        expires_at: Option<String>,
        /// Whether it has something open.
        online: bool,
        /// Whether it is the one that asks.
        you: bool,
        local: bool,
    }
    /// A device, and its token, which is shown this once; or `csrf`, where its token is a cookie.
    NewToken {
        device_id: String,
        name: String,
        /// `device`, `share` or `local`.
        kind: String,
        scopes: Vec<String>,
        runtimes: Option<Vec<String>>,
        sessions: Option<Vec<String>>,
        /// The highest risk that it may answer: `low`, `elevated` or `danger`; any, if absent.
        approve_up_to: Option<String>,
        /// Whether it may answer from a notification.
        lock_screen: Option<bool>,
        created_at: String,
        expires_at: Option<String>,
        token: Option<String>,
        /// What a page sends as `Plexus-CSRF` with every request but GET and HEAD.
        csrf: Option<String>,
    }
    /// Names of devices by the risk that they may answer.
    AnsweredOn {
        elevated: Option<Vec<String>>,
        danger: Option<Vec<String>>,
    }
    /// Who asks.
    Me {
        device_id: String,
        name: String,
        /// `device`, `share` or `local`.
        kind: String,
        scopes: Vec<String>,
        runtimes: Option<Vec<String>>,
        sessions: Option<Vec<String>>,
        /// The highest risk that it may answer: `low`, `elevated` or `danger`; any, if absent.
        approve_up_to: Option<String>,
        /// Names of devices that may answer what this one may not, by the risk, where this one has a limit and may know them.
        answered_on: Option<AnsweredOn>,
        /// Whether it may answer from a notification.
        lock_screen: Option<bool>,
        expires_at: Option<String>,
        /// What a page sends as `Plexus-CSRF` with every request but GET and HEAD.
        csrf: Option<String>,
        gateway: Option<Life>,
    }
    /// A link to one session. Whoever has it may watch until it expires, or is revoked like a device.
    Share {
        device_id: String,
        url: String,
        token: String,
        expires_at: String,
    }
    /// A pairing that has begun.
    Begun {
        pairing_id: String,
        /// What the device types.
        code: String,
        /// What it opens.
        url: String,
        /// The same as a picture, in SVG.
        qr: String,
        expires_at: String,
    }
    /// Where a pairing stands.
    Pairing {
        pairing_id: String,
        /// `waiting`, `joined`, `confirmed`, `refused` or `expired`.
        state: String,
        /// What the device will be called.
        name: Option<String>,
        /// What the device shows.
        number: Option<u8>,
        device_id: Option<String>,
        expires_at: String,
    }
    /// What a device would join.
    Invitation {
        gateway: Host,
        scopes: Vec<String>,
        runtimes: Option<Vec<String>>,
        approve_up_to: Option<String>,
        lock_screen: Option<bool>,
        /// What it is to be called, if the computer said so.
        name: Option<String>,
        expires_at: String,
    }
    /// The gateway that invites.
    Host {
        /// The machine's.
        name: String,
        version: String,
    }
    /// That a device has joined, and waits for the computer.
    Ticket {
        /// Secret: it brings the token.
        ticket: String,
        /// What the computer shows, too.
        number: u8,
        expires_at: String,
    }
    /// That the computer has said nothing yet.
    Patience {
        /// `waiting`.
        state: String,
    }
    /// What a device subscribes to notifications with, and what it chose.
    Push {
        /// The `applicationServerKey`, in base64url.
        public_key: String,
        subscribed: bool,
        /// It was subscribed, and that came to nothing without its wish: it may subscribe anew by itself.
        lapsed: bool,
        settings: PushSettings,
    }
    /// What a device is told.
    PushSettings {
        requests: bool,
        ends: bool,
        failures: bool,
        #[schema(required = true)]
        quiet: Option<PushQuiet>,
    }
    /// When a device is not disturbed.
    PushQuiet {
        from: String,
        to: String,
        offset_minutes: i64,
        zone: Option<String>,
    }
    /// A notification was taken.
    PushTried {
        /// The push service's status.
        status: u16,
    }
    /// A one-time code.
    Code {
        code: String,
        expires_at: String,
    }
    /// A prompt that was taken.
    Accepted {
        run_id: String,
        queued: bool,
        ahead: u64,
        /// Where the prompt came before under the same key and its run is over.
        ended: Option<Ended>,
    }
    /// How a run ended.
    Ended {
        status: String,
        stop_reason: Option<String>,
        message: Option<String>,
    }
    /// A run.
    Run {
        run_id: String,
    }
    /// All of them.
    Sessions {
        sessions: Vec<Session>,
        /// What to give as `cursor` for the sessions after these; absent where there are none.
        next: Option<String>,
    }
    /// A page of the conversations that a runtime could resume, in its own order. One that changes meanwhile may come twice.
    ResumablePage {
        resumable: Vec<Resumable>,
        /// What to give as `cursor` for the conversations after these; absent where there are none.
        next: Option<String>,
    }
    /// A conversation that a runtime could resume. What it does not tell is null.
    Resumable {
        /// The runtime's own name for it: `native_id` of a session to open.
        native_id: String,
        /// Its title, or how it began: the agent's words.
        #[schema(required = true)]
        title: Option<String>,
        /// The folder it works in.
        #[schema(required = true)]
        cwd: Option<String>,
        #[schema(required = true)]
        updated_at: Option<String>,
        /// The session that it is open as here already.
        session_id: Option<String>,
    }
    /// The MCP servers of an agent, as it tells them.
    McpServers {
        servers: Vec<McpServer>,
        /// Whether there are more.
        truncated: bool,
    }
    /// An MCP server of an agent.
    McpServer {
        id: String,
        /// `http` or `stdio`.
        transport: String,
        /// `project` or `global`.
        source: Option<String>,
        enabled: bool,
        /// `disabled`, `connecting`, `ready` or `error`.
        state: String,
        /// How many tools it has.
        tools: Option<u64>,
        last_error: Option<String>,
        last_connected_at: Option<String>,
    }
    /// The skills of an agent, as it tells them.
    Skills {
        skills: Vec<Skill>,
        errors: Vec<SkillError>,
        /// Whether there are more.
        truncated: bool,
    }
    /// A skill of an agent.
    Skill {
        id: String,
        name: String,
        description: String,
        path: String,
        dir: String,
        /// `repo` or `user`.
        scope: String,
        /// When its file last changed; 0 where the agent does not say.
        mtime_ms: u64,
    }
    /// A skill that could not be read, and why.
    SkillError {
        path: String,
        message: String,
    }
    /// All of them.
    Runtimes {
        runtimes: Vec<Runtime>,
    }
    /// A page of them, newest first. `next` is the `before` of the next page; absent if there is none.
    Requests {
        requests: Vec<Request>,
        next: Option<String>,
    }
    /// All of them.
    Devices {
        devices: Vec<Device>,
    }
    /// What works and what does not.
    Checks {
        checks: Vec<Check>,
    }
    /// What was looked at, and what was found.
    Check {
        name: String,
        /// `ok`, `warn` or `fail`.
        state: String,
        detail: String,
        /// What to do.
        fix: Option<String>,
    }
    /// What a runtime wrote to stderr of late.
    Logs {
        lines: Vec<LogLine>,
    }
    /// A line of it.
    LogLine {
        at: String,
        /// Fit to be shown.
        text: String,
        /// `runtime`, or `gateway`: starts, ends, lost connections.
        by: String,
    }
    /// Passages found.
    Hits {
        hits: Vec<Hit>,
    }
    /// A passage found.
    Hit {
        session_id: String,
        cursor: String,
        role: String,
        /// Matches stand between U+0002 and U+0003.
        snippet: String,
    }
    /// Whether the log takes writes.
    Ready {
        ready: bool,
        head: String,
    }
    /// RFC 9457: why something was not done. `code` is stable.
    ProblemDetails {
        r#type: String,
        title: String,
        status: u16,
        detail: String,
        code: String,
        /// `scope_missing`: which.
        scope: Option<String>,
        /// `risk_too_high`: which.
        risk: Option<String>,
        /// `risk_too_high`: the highest that the device may answer.
        approve_up_to: Option<String>,
        /// `risk_too_high`: why the risk is what it is, in words.
        risk_reasons: Option<Vec<String>>,
        /// `risk_too_high`: names of devices that may answer it, as far as this one may know them.
        devices: Option<Vec<String>>,
        /// Of an answer that does not fit: which of the agent's fields.
        field: Option<String>,
        /// `bad_body`: where.
        path: Option<String>,
        /// `too_large`: how many bytes there may be.
        limit: Option<u64>,
        /// `runtime_refused`: the runtime's own code.
        runtime_code: Option<i64>,
        /// `runtime_refused`: what it said beside it.
        #[schema(value_type = Option<Object>)]
        runtime_data: Option<Value>,
        /// The receipt of the one who was first, member by member, where a request was closed already.
        request_id: Option<String>,
        state: Option<String>,
        option_id: Option<String>,
        ok: Option<bool>,
        value: Option<String>,
        ids: Option<Vec<String>>,
        #[schema(value_type = Option<Object>)]
        answers: Option<Value>,
        reason: Option<String>,
        edited: Option<String>,
        edited_display: Option<String>,
        edited_warnings: Option<Vec<String>>,
        resolved_by: Option<Resolver>,
        at: Option<String>,
        cursor: Option<String>,
        won: Option<bool>,
    }
    /// One message, whole.
    Message {
        role: String,
        run_id: String,
        text: String,
        /// What in it is no text.
        content: Option<Vec<ContentBlock>>,
        /// Whether it is being said, or was cut off.
        partial: bool,
        /// Whether it began before what the snapshot has: this is its end.
        continued: Option<bool>,
        at: String,
        position: u64,
    }
    /// One tool call, every update merged into it; ACP's other members beside these.
    Tool {
        tool_call_id: String,
        run_id: String,
        position: u64,
    }
    /// The gateway that answers.
    Life {
        version: String,
        started_at: String,
        epoch: String,
        /// The machine's.
        name: String,
        /// Where other machines reach it.
        public_url: Option<String>,
    }
    /// The body of an event of ACP's kinds: ACP's own `update` object.
    Update {
        #[schema(rename = "sessionUpdate")]
        session_update: String,
    }
    /// A piece of what somebody said.
    Chunk {
        #[schema(rename = "sessionUpdate")]
        session_update: String,
        content: ContentBlock,
    }
    /// A tool call, or news of one.
    ToolCall {
        #[schema(rename = "sessionUpdate")]
        session_update: String,
        #[schema(rename = "toolCallId")]
        tool_call_id: String,
    }
    /// How a run stands.
    RunBody {
        run_id: String,
        status: String,
        by: Option<Resolver>,
        stop_reason: Option<String>,
        message: Option<String>,
        cancelling: Option<bool>,
    }
    /// How a request ended; the same for everybody.
    Resolution {
        session_id: String,
        request_id: String,
        state: String,
        option_id: Option<String>,
        ok: Option<bool>,
        value: Option<String>,
        ids: Option<Vec<String>>,
        #[schema(value_type = Option<Object>)]
        answers: Option<Value>,
        reason: Option<String>,
        /// What was allowed in place of what was asked, exactly.
        edited: Option<String>,
        /// The same, safe to show.
        edited_display: Option<String>,
        /// What a person should know of it.
        edited_warnings: Option<Vec<String>>,
        resolved_by: Resolver,
        at: String,
    }
    /// What happened to the runtime.
    RuntimeStatus {
        /// `attached`, `reattached`, `exited`, `restarting`, `stuck` ..
        status: String,
    }
    /// Something went wrong.
    Trouble {
        code: String,
        message: String,
    }
    /// What no dialect understood.
    Raw {
        reason: String,
    }
    /// Whatever the runtime says.
    Anything {}
    /// Who you are.
    You {
        device_id: String,
        name: String,
        scopes: Vec<String>,
        approve_up_to: Option<String>,
    }
    /// A run under way.
    RunInfo {
        run_id: String,
        session_id: String,
        status: String,
        started_at: String,
    }
    /// The answer to `initialize`.
    Initialized {
        protocol_version: String,
        server: Server,
        #[schema(value_type = Object)]
        server_capabilities: Value,
        you: You,
    }
    /// The program that answers.
    Server {
        name: String,
        version: String,
    }
    /// The answer to `session.attach`.
    Attached {
        attached: bool,
        session_id: String,
        resume: String,
        cursor: String,
        head: String,
    }
    /// The answer to `session.detach`.
    Detached {
        /// Whether it was followed.
        detached: bool,
    }
    /// The answer to `presence.update`.
    Looking {
        focused: bool,
    }
    /// Who looks at a session.
    PresenceNote {
        session_id: String,
        lookers: Vec<Resolver>,
    }
    /// The answer to `session.history`.
    History {
        events: Vec<Envelope>,
        events_sent: u64,
        /// With `before`: the cursor to give as `before` for the page before this one; absent at the beginning.
        previous: Option<String>,
        next: String,
        head: String,
        /// `ok`.
        resume: String,
    }
    /// The answer to `run.cancel`.
    Cancelled {
        ok: bool,
        run_id: String,
        /// `running`, of a run that ends when its runtime says so; `cancelled`, of one that waited, and is over.
        status: String,
    }
    /// The first thing that every attach hears.
    Hello {
        /// As it was attached: a session, or `*`.
        session_id: String,
        resume: String,
        epoch: String,
        oldest: String,
        head: String,
        /// Those with the latest news, 500 at most.
        sessions: Vec<Session>,
        /// How many sessions are not among them; absent where all are.
        sessions_omitted: Option<u64>,
        runs: Vec<RunInfo>,
        requests: Vec<Request>,
        you: You,
    }
    /// What stands for the events that cannot be replayed any more; events go on after `cursor`.
    Snapshots {
        session_id: String,
        cursor: String,
        snapshots: Vec<Snapshot>,
        /// Sessions without a snapshot here, because they are too many: ask for theirs one by one.
        omitted: Option<u64>,
    }
    /// Everything up to here was told; what follows is new.
    Live {
        session_id: String,
        head: String,
    }
    /// You fell behind, and caught up: nothing was lost.
    Lag {
        session_id: String,
        head: String,
        /// By how many places of the log.
        behind: u64,
    }
    /// How a run stands, in the words of the UI protocol.
    RunStatusNote {
        session_id: String,
        run_id: String,
        status: String,
        message: Option<String>,
    }
    /// How much of the model's context is left.
    RunContext {
        session_id: String,
        run_id: String,
        context_left_percent: f64,
    }
    /// A session stands differently.
    SessionNote {
        session: Session,
    }
    /// A runtime stands differently.
    RuntimeNote {
        runtime: Runtime,
    }
    /// A session was forgotten.
    SessionGone {
        session_id: String,
    }
    /// A runtime was stopped for good.
    RuntimeGone {
        runtime_id: String,
    }
    /// Your response to a question was not taken.
    NotTaken {
        request_id: String,
        error: Failure,
    }
    /// A JSON-RPC error. `data.code` is stable, and the same as over HTTP.
    Failure {
        code: i64,
        message: String,
        data: FailureData,
    }
    /// What a JSON-RPC error says beside its words: `code`, and the members that the problem has over HTTP.
    FailureData {
        code: String,
    }
}

#[derive(OpenApi)]
#[openapi(components(schemas(
    Accepted,
    AcpMessage,
    Answer,
    rpc::AnswerParams,
    Anything,
    rpc::AttachParams,
    Attached,
    Begun,
    rpc::CancelParams,
    api::CancelRun,
    Cancelled,
    rpc::Capabilities,
    Check,
    Checks,
    Chunk,
    Code,
    devices::Confirm,
    rpc::ContentBlock,
    Detached,
    Device,
    Devices,
    api::EditSession,
    Editable,
    Ended,
    Envelope,
    Failure,
    FailureData,
    rpc::Focus,
    devices::Fetch,
    Hello,
    History,
    rpc::HistoryParams,
    Hit,
    Hits,
    Host,
    rpc::Initialize,
    Initialized,
    rpc::Input,
    Invitation,
    Item,
    Lag,
    Life,
    rpc::Listing,
    Live,
    devices::Look,
    Looking,
    LogLine,
    Logs,
    McpServer,
    McpServers,
    Me,
    Message,
    Meta,
    devices::NewCode,
    devices::NewDevice,
    devices::NewName,
    api::NewPrompt,
    api::NewSession,
    devices::NewPairing,
    devices::NewShare,
    NewToken,
    NotTaken,
    rpc::OfSession,
    Offer,
    Page,
    devices::Pair,
    Pairing,
    Patience,
    PresenceNote,
    ProblemDetails,
    Push,
    notify::PushChoice,
    PushQuiet,
    PushSettings,
    PushTried,
    notify::PushTry,
    Queued,
    notify::QuietHours,
    Raw,
    Ready,
    Receipt,
    Request,
    Requests,
    Resolution,
    Resolver,
    rpc::RestartParams,
    super::admin::RestartRun,
    Resumable,
    ResumablePage,
    agui::ResumeEntry,
    Run,
    agui::RunAgentInput,
    RunBody,
    RunContext,
    RunInfo,
    RunStatusNote,
    Runtime,
    RuntimeGone,
    RuntimeNote,
    RuntimeStatus,
    Runtimes,
    rpc::Said,
    Server,
    Session,
    rpc::SessionArchive,
    SessionGone,
    rpc::SessionNew,
    SessionNote,
    rpc::SessionRename,
    Sessions,
    Share,
    devices::SignIn,
    Skill,
    SkillError,
    Skills,
    Snapshot,
    Snapshots,
    rpc::StartRun,
    api::StartRuntime,
    Ticket,
    notify::Subscribe,
    notify::SubscribeKeys,
    Tool,
    ToolCall,
    Trouble,
    Update,
    You,
)))]
struct Shapes;

/// What clients send: `null` is the same as leaving it out.
const TAKEN: &[&str] = &[
    "AcpMessage",
    "Said",
    "Capabilities",
    "Answer",
    "AnswerParams",
    "AttachParams",
    "CancelParams",
    "CancelRun",
    "Confirm",
    "EditSession",
    "Fetch",
    "HistoryParams",
    "Initialize",
    "Listing",
    "Focus",
    "Look",
    "NewCode",
    "NewDevice",
    "NewName",
    "NewPairing",
    "NewPrompt",
    "NewSession",
    "NewShare",
    "OfSession",
    "Pair",
    "PushChoice",
    "PushTry",
    "QuietHours",
    "RestartParams",
    "RestartRun",
    "ResumeEntry",
    "RunAgentInput",
    "SessionArchive",
    "SessionNew",
    "SessionRename",
    "SignIn",
    "StartRun",
    "StartRuntime",
    "Subscribe",
    "SubscribeKeys",
];

/// An identifier: see the model's.
pub(super) const ID: &str = "^[A-Za-z0-9_.:-]{1,128}$";
/// A cursor: see the model's. Nineteen digits are more than there will ever be events.
pub(super) const CURSOR: &str = "^[A-Za-z0-9]{1,32}:[0-9]{1,19}$";
/// A place in what a runtime could resume: see `ResumableAt`.
pub(super) const RESUMABLE: &str = r"^[0-9]{1,5}(\.[A-Za-z0-9_-]{2,2800})?$";
/// A time of day.
const CLOCK: &str = "^([01][0-9]|2[0-3]):[0-5][0-9]$";
/// Words: not only white space.
pub(super) const WORDS: &str = r"\S";

/// What a member means wherever it stands.
fn everywhere(member: &str) -> Option<Value> {
    Some(match member {
        "session_id" | "run_id" | "runtime_id" | "request_id" | "device_id" => json!({ "pattern": ID }),
        "cursor" | "next" | "head" | "oldest" => json!({ "pattern": CURSOR }),
        "at" | "created_at" | "prompted_at" | "updated_at" | "opened_at" | "expires_at" | "started_at"
        | "last_seen_at" | "heard_at" => {
            json!({ "format": "date-time" })
        }
        "resume" => json!({ "enum": ["ok", "gap", "reset", "ahead"] }),
        "risk" | "approve_up_to" => json!({ "enum": ["low", "elevated", "danger"] }),
        "scopes" => json!({ "items": { "type": "string", "enum": ["watch", "prompt", "approve", "admin"] } }),
        _ => return None,
    })
}

/// Exactly one of these is given; a `value` of null is given too: it says no.
fn one_answer() -> Value {
    json!({ "oneOf": [
        { "required": ["option_id"], "properties": { "option_id": { "type": "string" } } },
        { "required": ["ok"], "properties": { "ok": { "type": "boolean" } } },
        { "required": ["value"] },
        { "required": ["ids"], "properties": { "ids": { "type": "array" } } },
        { "required": ["answers"], "properties": { "answers": { "type": "object" } } },
    ] })
}

/// A prompt is text or content.
fn one_prompt() -> Value {
    json!({ "oneOf": [
        { "required": ["text"], "properties": { "text": { "type": "string", "pattern": WORDS }, "content": { "type": "null" } } },
        { "required": ["content"], "properties": { "content": { "type": "array" }, "text": { "type": "null" } } },
    ] })
}

/// A runtime is started by preset, by dialect and program, or by dialect and endpoint.
fn one_start() -> Value {
    let none = json!({ "type": "null" });
    json!({ "oneOf": [
        {
            "required": ["preset"],
            "properties": { "preset": { "type": "string" }, "dialect": none, "command": none, "connect": none },
        },
        {
            "required": ["dialect", "command", "cwd"],
            "properties": {
                "dialect": { "type": "string" }, "command": { "type": "array" }, "cwd": { "type": "string" },
                "preset": none, "connect": none,
            },
        },
        {
            "required": ["dialect", "connect", "cwd"],
            "properties": {
                "dialect": { "type": "string" }, "connect": { "type": "string" }, "cwd": { "type": "string" },
                "preset": none, "command": none,
            },
        },
    ] })
}

/// The shape of an event's body, by its kind.
fn bodies_by_kind() -> Vec<Value> {
    let one = |kind: &Kind| {
        json!({
            "if": { "properties": { "kind": { "const": kind.as_str() } } },
            "then": { "properties": { "event": { "$ref": format!("#/components/schemas/{}", body(*kind)) } } },
        })
    };
    Kind::ALL.iter().map(one).collect()
}

/// What the types do not say, by shape and member; a member named `""` is the shape itself.
fn more() -> Vec<(&'static str, &'static str, Value)> {
    let requests = json!({ "enum": ["open", "answered", "expired", "withdrawn", "orphaned"] });
    let runs = json!({ "enum": ["queued", "running", "awaiting_ui", "completed", "error", "cancelled"] });
    let open = json!({ "additionalProperties": true });
    let names = json!({ "items": { "type": "string", "pattern": ID }, "minItems": 1, "maxItems": 256 });
    let attached = json!({ "pattern": r"^(\*|[A-Za-z0-9_.:-]{1,128})$", "description": "A session, or `*` for all" });
    let (said, prompt) = (one_answer(), one_prompt());
    let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    let capabilities: Vec<&str> = Capability::ALL.iter().map(|one| one.as_str()).collect();
    // Answers to questions, by the question.
    let answers = json!({ "additionalProperties": { "type": "array", "items": { "type": "string" } } });
    let abouts = ["command", "edit", "fetch", "tool", "plan", "question", "unreadable"];
    let about = json!({
        "required": ["type"], "properties": { "type": { "type": "string", "enum": abouts } }, "additionalProperties": true,
    });
    let mut all = vec![
        ("Session", "state", json!({ "enum": ["idle", "running", "waiting", "exited"] })),
        ("Runtime", "state", json!({ "enum": ["starting", "ready", "restarting", "exited"] })),
        (
            "Runtime",
            "connect",
            json!({ "oneOf": [
            {
                "type": "object", "required": ["command"],
                "properties": { "command": { "type": "array", "items": { "type": "string" } } },
            },
            { "type": "object", "required": ["endpoint"], "properties": { "endpoint": { "type": "string" } } },
        ] }),
        ),
        ("Runtime", "capabilities", json!({ "items": { "type": "string", "enum": capabilities } })),
        ("Check", "state", json!({ "enum": ["ok", "warn", "fail"] })),
        // A place in the list of the runtime, in place of one in the log.
        ("ResumablePage", "next", json!({ "pattern": RESUMABLE })),
        ("McpServer", "state", json!({ "enum": ["disabled", "connecting", "ready", "error"] })),
        ("McpServer", "transport", json!({ "enum": ["http", "stdio"] })),
        ("Skill", "scope", json!({ "enum": ["repo", "user"] })),
        ("LogLine", "by", json!({ "enum": ["runtime", "gateway"] })),
        ("Request", "type", json!({ "enum": ["confirm", "prompt", "pick", "permission", "elicitation"] })),
        ("Request", "state", requests.clone()),
        ("Request", "digest", json!({ "pattern": "^[0-9a-f]{64}$" })),
        ("Request", "subject", about),
        ("Request", "risk", json!({ "enum": ["low", "elevated", "danger"] })),
        ("Answer", "answers", answers.clone()),
        ("Receipt", "answers", answers.clone()),
        ("Resolution", "answers", answers.clone()),
        ("ProblemDetails", "answers", answers),
        ("Receipt", "state", requests.clone()),
        ("Resolution", "state", requests.clone()),
        ("ProblemDetails", "state", requests),
        ("Offer", "kind", json!({ "enum": ["allow_once", "allow_always", "reject_once", "reject_always", "other"] })),
        ("RunBody", "status", runs.clone()),
        ("RunInfo", "status", runs.clone()),
        ("RunStatusNote", "status", runs),
        ("Message", "role", json!({ "enum": ["user", "agent", "thought"] })),
        ("Envelope", "kind", json!({ "enum": kinds })),
        ("Envelope", "native", json!({ "type": Value::Null, "additionalProperties": true })),
        ("Envelope", "", json!({ "allOf": bodies_by_kind() })),
        ("Initialize", "", open.clone()),
        ("Capabilities", "", open.clone()),
        ("Tool", "", open.clone()),
        ("ContentBlock", "", open.clone()),
        ("Update", "", open.clone()),
        ("Chunk", "", open.clone()),
        ("ToolCall", "", open.clone()),
        ("RuntimeStatus", "", open.clone()),
        ("Trouble", "", open.clone()),
        ("Raw", "", open.clone()),
        ("Anything", "", open.clone()),
        ("FailureData", "", open.clone()),
        ("Request", "native", open.clone()),
        ("Snapshot", "latest", open.clone()),
        ("Snapshot", "surfaces", json!({ "items": { "type": "object", "additionalProperties": true } })),
        ("ProblemDetails", "runtime_data", json!({ "type": Value::Null, "additionalProperties": true })),
        ("Initialized", "server_capabilities", json!({ "additionalProperties": { "type": "boolean" } })),
        ("Hello", "session_id", attached.clone()),
        ("Snapshots", "session_id", attached.clone()),
        ("Live", "session_id", attached.clone()),
        ("Lag", "session_id", attached.clone()),
        ("Attached", "session_id", attached.clone()),
        ("AttachParams", "session_id", attached),
        ("AttachParams", "from", json!({ "enum": ["start", "now"] })),
        ("AttachParams", "projection", json!({ "enum": ["canonical", "native"] })),
        ("Answer", "", said.clone()),
        ("AnswerParams", "", said),
        ("NewPrompt", "", prompt),
        (
            "NewPrompt",
            "content",
            json!({
                "minItems": 1, "maxItems": 256, "items": { "$ref": "#/components/schemas/ContentBlock" },
            }),
        ),
    ];
    all.extend(bodies_of_requests(&names));
    all
}

/// The same, of the bodies that clients send to change something.
fn bodies_of_requests(names: &Value) -> Vec<(&'static str, &'static str, Value)> {
    // Visible letters, which a schema cannot say.
    let name = json!({ "minLength": 1, "maxLength": 64, "pattern": WORDS });
    let title = json!({ "minLength": 1, "maxLength": TITLE_MAX, "pattern": WORDS });
    vec![
        ("EditSession", "title", title.clone()),
        ("SessionRename", "title", title),
        ("NewSession", "cwd", json!({ "pattern": "^/" })),
        ("SessionNew", "cwd", json!({ "pattern": "^/" })),
        ("StartRuntime", "", one_start()),
        ("StartRuntime", "cwd", json!({ "pattern": "^/" })),
        ("StartRuntime", "id", json!({ "pattern": ID })),
        ("StartRuntime", "restart", json!({ "enum": ["never", "on-failure", "always"], "type": "string" })),
        ("StartRuntime", "command", json!({ "minItems": 1 })),
        ("StartRuntime", "connect", json!({ "minLength": 1 })),
        (
            "StartRuntime",
            "serve",
            json!({
                "type": "object", "additionalProperties": false,
                "properties": { "fs": { "type": "boolean" }, "terminal": { "type": "boolean" } },
            }),
        ),
        ("StartRuntime", "env", json!({ "additionalProperties": { "type": "string" } })),
        ("StartRuntime", "session_meta", json!({ "type": "object", "additionalProperties": true })),
        ("Subscribe", "endpoint", json!({ "minLength": 1, "maxLength": 1024 })),
        ("QuietHours", "from", json!({ "pattern": CLOCK })),
        ("QuietHours", "to", json!({ "pattern": CLOCK })),
        ("QuietHours", "zone", json!({ "minLength": 1, "maxLength": 64 })),
        ("QuietHours", "offset_minutes", json!({ "minimum": -840, "maximum": 840 })),
        ("NewDevice", "name", name.clone()),
        ("NewName", "name", name.clone()),
        ("Pair", "name", name.clone()),
        ("SignIn", "name", name.clone()),
        ("SignIn", "cookie", json!({ "const": true })),
        ("Me", "kind", json!({ "enum": ["device", "share", "local"] })),
        ("NewToken", "kind", json!({ "enum": ["device", "share", "local"] })),
        ("Device", "kind", json!({ "enum": ["device", "share", "local"] })),
        ("NewPairing", "name", name),
        ("NewPairing", "scopes", json!({ "minItems": 1 })),
        ("NewPairing", "runtimes", names.clone()),
        ("NewShare", "hours", json!({ "minimum": 1, "maximum": 720 })),
        ("Confirm", "number", json!({ "minimum": 10, "maximum": 99 })),
        ("Pairing", "state", json!({ "enum": ["waiting", "joined", "confirmed", "refused", "expired"] })),
        ("Patience", "state", json!({ "enum": ["waiting"] })),
        ("NewDevice", "scopes", json!({ "minItems": 1 })),
        ("NewDevice", "runtimes", names.clone()),
        ("NewDevice", "sessions", names.clone()),
        ("NewCode", "scopes", json!({ "minItems": 1 })),
        ("NewCode", "runtimes", names.clone()),
        ("NewCode", "sessions", names.clone()),
        ("NewCode", "ttl", json!({ "maximum": u64::MAX })),
        ("Fetch", "wait", json!({ "maximum": u64::MAX })),
    ]
}

/// The shape of the body of a kind of event.
fn body(kind: Kind) -> &'static str {
    match kind {
        Kind::UserMessageChunk | Kind::AgentMessageChunk | Kind::AgentThoughtChunk => "Chunk",
        Kind::ToolCall | Kind::ToolCallUpdate => "ToolCall",
        kind if kind.is_acp() => "Update",
        Kind::RunStarted | Kind::RunStatus | Kind::RunEnded => "RunBody",
        Kind::RequestOpened | Kind::RequestUpdated => "Request",
        Kind::RequestResolved => "Resolution",
        Kind::RuntimeStatus => "RuntimeStatus",
        Kind::Error => "Trouble",
        Kind::Raw => "Raw",
        _ => "Anything",
    }
}

/// Adds to a schema; a member that is null takes one away. A word that may be absent may be `null` too.
fn add(schema: &mut Value, more: &Value) {
    let nullable = schema["type"].as_array().is_some_and(|types| types.contains(&json!("null")));
    let (Some(schema), Some(more)) = (schema.as_object_mut(), more.as_object()) else { return };
    for (name, value) in more {
        match (name.as_str(), value) {
            (_, Value::Null) => {
                schema.remove(name);
            }
            ("enum", Value::Array(words)) if nullable => {
                let words: Vec<Value> = words.iter().cloned().chain([Value::Null]).collect();
                schema.insert(name.clone(), words.into());
            }
            ("type", Value::String(_)) if nullable => {
                schema.insert(name.clone(), json!([value, "null"]));
            }
            _ => {
                schema.insert(name.clone(), value.clone());
            }
        }
    }
}

/// What the gateway says has no `null` where a member may be absent.
fn never_null(schema: &mut Value) {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if let [one] = types.as_slice() {
            schema["type"] = one.clone();
        }
    }
    if let Some(some) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        some.retain(|one| one["type"] != "null");
        if let [one] = some.as_slice() {
            *schema = one.clone();
        }
    }
}

/// Every shape as a schema, by name.
pub(super) fn schemas() -> Map<String, Value> {
    let all = serde_json::to_value(Shapes::openapi()).unwrap_or_default();
    let Some(Value::Object(mut all)) = all.pointer("/components/schemas").cloned() else { return Map::new() };
    for (name, shape) in &mut all {
        let taken = TAKEN.contains(&name.as_str());
        let required: Vec<String> = shape["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(Into::into))
            .collect();
        for (member, schema) in shape.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            if !taken && !required.contains(member) {
                never_null(schema);
            }
            if let Some(more) = everywhere(member) {
                add(schema, &more);
            }
        }
    }
    for (name, member, more) in more() {
        let Some(shape) = all.get_mut(name) else { continue };
        match member {
            "" => add(shape, &more),
            _ => add(&mut shape["properties"][member], &more),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn fields(schema: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
        let all = schema["properties"].as_object().unwrap().keys().cloned().collect();
        let required = schema["required"].as_array().into_iter().flatten();
        (all, required.map(|name| name.as_str().unwrap().to_owned()).collect())
    }

    /// `full` has every field, `bare` only those that are always there.
    fn same(name: &str, full: &Value, bare: &Value) {
        let (known, required) = fields(&schemas()[name]);
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(keys(full), known, "{name}: every field is described");
        assert_eq!(keys(bare), required, "{name}: what is required is always there");
    }

    fn again<T: serde::Serialize + serde::de::DeserializeOwned>(json: Value) -> Value {
        serde_json::to_value(serde_json::from_value::<T>(json).unwrap()).unwrap()
    }

    #[test]
    fn the_shapes_are_the_models_own() {
        let at = "2025-11-21T09:30:00.125Z";
        let bare = json!({
            "request_id": "q", "state": "answered", "resolved_by": { "device_id": "d", "name": "n" }, "at": at, "won": true,
        });
        let mut full = bare.clone();
        full.as_object_mut().unwrap().extend(
            json!({ "option_id": "o", "ok": true, "value": "v", "ids": [], "answers": {}, "reason": "r", "edited": "e", "edited_display": "e", "edited_warnings": ["w"], "cursor": "e:1" })
                .as_object()
                .unwrap()
                .clone(),
        );
        same("Receipt", &again::<plexus_protocol::Receipt>(full.clone()), &again::<plexus_protocol::Receipt>(bare));
        let receipt = full;

        let bare = json!({
            "session_id": "s", "runtime_id": "r", "dialect": "acp", "native_id": null, "title": null, "cwd": "/",
            "state": "idle", "doing": null, "archived": false, "open_requests": 0, "created_at": at, "updated_at": at,
        });
        let mut full = bare.clone();
        full["restartable"] = json!(true);
        full["run_id"] = json!("r");
        full["prompted_at"] = json!(at);
        full["message_count"] = json!(2);
        full["last_user_message"] = json!("m");
        full["requests"] = json!(["q"]);
        full["queue"] = json!([{ "run_id": "r", "text": "t", "by": { "device_id": "d", "name": "n" } }]);
        same(
            "Session",
            &again::<plexus_protocol::SessionInfo>(full.clone()),
            &again::<plexus_protocol::SessionInfo>(bare),
        );
        same("Queued", &full["queue"][0], &full["queue"][0]);

        let bare = json!({
            "runtime_id": "r", "dialect": "acp", "state": "ready", "connect": { "command": ["x"] }, "cwd": "/",
            "generation": 1, "updated_at": at,
        });
        let mut full = bare.clone();
        full["agent"] = json!("a 1");
        full["capabilities"] = json!(["load"]);
        full["pid"] = json!(1);
        full["problem"] = json!("p");
        full["stderr_tail"] = json!("e");
        full["outlives"] = json!(true);
        full["heard_at"] = json!(at);
        full["instance"] = json!("i_x");
        same("Runtime", &again::<plexus_protocol::RuntimeInfo>(full), &again::<plexus_protocol::RuntimeInfo>(bare));

        let bare = json!({
            "request_id": "q", "session_id": "s", "run_id": "r", "runtime_id": "g", "generation": 1, "type": "pick",
            "state": "open", "title": "t", "display": "d", "warnings": [], "options": [],
            "allow_reason": false, "allow_remember": false, "opened_at": at, "risk": "low", "revision": 0, "risk_reasons": [],
            "subject": { "type": "plan" },
        });
        let mut full = bare.clone();
        full.as_object_mut().unwrap().extend(
            json!({
                "digest": "x", "changed": true, "display_truncated": true, "display_bytes": 9,
                "message": "m", "items": [{ "id": "i", "label": "l", "detail": "d" }], "multi": true, "default_value": "v",
                "multiline": true, "secret": true, "danger": true, "observe_only": true, "editable": { "label": "l", "value": "v" }, "tool_call_id": "c", "expires_at": at, "receipt": receipt,
            })
            .as_object()
            .unwrap()
            .clone(),
        );
        let mut request: plexus_protocol::Request = serde_json::from_value(full).unwrap();
        request.native = Some(serde_json::value::to_raw_value(&json!({})).unwrap());
        same("Request", &serde_json::to_value(request).unwrap(), &again::<plexus_protocol::Request>(bare));

        let answer = json!({
            "option_id": "o", "ok": true, "value": "v", "ids": [], "answers": {}, "reason": "r", "remember": true, "edited": "e", "digest": "x",
        });
        same("Answer", &again::<plexus_protocol::Answer>(answer), &json!({}));
        let problem = super::super::Problem::not_found().to_json();
        let (known, required) = fields(&schemas()["ProblemDetails"]);
        let keys: BTreeSet<_> = problem.as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, required);
        assert!(fields(&schemas()["Receipt"]).0.is_subset(&known), "a loser's problem has the winner's receipt");
    }

    #[test]
    fn what_the_types_do_not_say_is_said_of_shapes_that_exist() {
        let all = schemas();
        for (shape, member, _) in more() {
            let schema = all.get(shape).unwrap_or_else(|| panic!("there is no shape {shape}"));
            assert!(member.is_empty() || schema["properties"][member].is_object(), "{shape} has no member {member}");
        }
        for shape in TAKEN {
            assert!(all.contains_key(*shape), "there is no shape {shape}");
        }
    }

    #[test]
    fn the_words_are_the_models_own() {
        fn known<T: serde::de::DeserializeOwned>(shape: &str, member: &str) {
            for word in schemas()[shape]["properties"][member]["enum"].as_array().unwrap() {
                assert!(serde_json::from_value::<T>(word.clone()).is_ok(), "{shape}.{member}: {word}");
            }
        }
        known::<plexus_protocol::SessionState>("Session", "state");
        known::<plexus_protocol::RuntimeState>("Runtime", "state");
        known::<plexus_protocol::RequestType>("Request", "type");
        known::<plexus_protocol::RequestState>("Request", "state");
        known::<plexus_protocol::RunStatus>("RunBody", "status");
        known::<Option<plexus_protocol::RestartPolicy>>("StartRuntime", "restart");
        known::<Option<super::super::frames::Projection>>("AttachParams", "projection");
    }
}
