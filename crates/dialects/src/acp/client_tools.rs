//! Client tools: files (`fs/*`) and terminals (`terminal/*`) that the agent asks its client for. All in one file: each
//! method is parsed, executed and answered here.
//!
//! Client tools are served if the configuration of the runtime says so. The client that opened the session executes a call, if
//! it declared that it can; otherwise the gateway does, inside the folder of the session, and it writes and runs
//! nothing before the user allows it.
//!
//! A refusal is a JSON-RPC error here: the request is not a question to the user, and the agent must know that nothing
//! was done. Schema: <https://agentclientprotocol.com/protocol/v1/file-system>, `…/v1/terminals`.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{CreateTerminalRequest, WriteTextFileRequest};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, INTERNAL, INVALID_PARAMS, METHOD_NOT_FOUND, object};
use super::super::{
    ClientToolCall, ClientToolError, ClientToolResult, ClientToolWork, EventDraft, FolderClaim, Outbox, RequestKey,
    RequestSubject, RuntimeEvent,
};
use super::ask::{CommandRun, PendingRequest, RequestSlot, question};
use super::{Acp, REQUEST_CANCELLED};
use plexus_protocol::{Choice, ClientServed, Decision, Kind, NativeId, Offer, RequestType, Resolver};

/// The code of ACP for a file that does not exist.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// Maximum number of calls in progress on one connection; more are refused.
const JOBS_MAX: usize = 64;
/// Maximum length of a path, a command or an error in the log entry of a call that a client executed, in bytes.
const SERVED_TEXT_MAX: usize = 1000;
/// Maximum number of terminals of an agent on one connection; more are refused until it releases one.
const TERMINALS_MAX: usize = 32;

/// A call in progress.
#[derive(Serialize, Deserialize)]
pub(super) struct ClientToolJob {
    key: RequestKey,
    native: NativeId,
    #[serde(rename = "what")]
    kind: JobKind,
}

#[derive(Serialize, Deserialize)]
enum JobKind {
    /// A call sent to a client; the gateway executes it if the session has no client.
    Errand {
        method: String,
        params: Box<RawValue>,
    },
    Read,
    /// The text of a file before it is written, to show the change.
    Before(FileWrite, Box<RawValue>),
    Write,
    Run(u64),
    Output,
    Wait,
    End,
}

/// A file that the agent asks to write.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct FileWrite {
    path: String,
    text: String,
}

/// The params of `fs/read_text_file`. In the published type numbers are `u32`, but an agent may set a limit of `Number.MAX_SAFE_INTEGER`.
#[derive(Deserialize)]
struct ReadFile {
    path: String,
    line: Option<u64>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    terminal_id: String,
}

/// Prefix of the ids of a client's terminals as the agent sees them, so that none equals one of the gateway.
const CLIENTS: &str = "client-";

/// A parsed request.
enum ParsedRequest {
    Read(ReadFile),
    Write(FileWrite),
    Run(CommandRun),
    Terminal(u64, JobKind),
}

/// Parses a request; `None` if its params do not fit its method.
fn read(method: &str, params: &RawValue) -> Option<ParsedRequest> {
    let terminal = |kind| {
        let Named { terminal_id } = object(params)?;
        Some(ParsedRequest::Terminal(terminal_id.strip_prefix("term-")?.parse().ok()?, kind))
    };
    match method {
        "fs/read_text_file" => object(params).map(ParsedRequest::Read),
        "fs/write_text_file" => {
            let WriteTextFileRequest { path, content, .. } = object(params)?;
            Some(ParsedRequest::Write(FileWrite { path: path_text(path), text: content }))
        }
        "terminal/create" => {
            let CreateTerminalRequest { command, args, env, cwd, output_byte_limit: keep, .. } = object(params)?;
            // Agents send either a program and its arguments, or a line for a shell.
            let argv = [vec![command], args].concat();
            let env = env.into_iter().map(|var| (var.name, var.value)).collect();
            Some(ParsedRequest::Run(CommandRun { argv, env, cwd: cwd.map(path_text), keep }))
        }
        "terminal/output" => terminal(JobKind::Output),
        "terminal/wait_for_exit" => terminal(JobKind::Wait),
        _ => terminal(JobKind::End),
    }
}

/// Returns a path as it was in the JSON.
fn path_text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

impl Acp {
    /// Returns whether the gateway serves this method.
    pub(super) fn serves(&self, method: &str) -> bool {
        match method {
            "fs/read_text_file" | "fs/write_text_file" => self.serve.fs,
            "terminal/create" | "terminal/output" | "terminal/wait_for_exit" | "terminal/kill" | "terminal/release" => {
                self.serve.terminal
            }
            _ => false,
        }
    }

    /// Serves a request.
    pub(super) fn serve(
        &mut self,
        frame: &Bytes,
        (id, method, params): (&RawValue, &str, Option<&RawValue>),
        out: &mut Outbox,
    ) {
        let key = self.key(id.get());
        let native = self.named(params).filter(|native| self.sessions.contains_key(native));
        let (Some(native), Some(params)) = (native, params) else {
            let native = self.named(params);
            return self.refuse_unreadable(frame, (&key, native), method, out);
        };
        if self.jobs.len() >= JOBS_MAX {
            let reason = format!("{JOBS_MAX} requests are in progress already");
            return out.frames.push(jsonrpc::refuse(key.id(), INTERNAL, &reason));
        }
        // Terminals of the gateway are not offered to clients.
        let made = method.starts_with("terminal/") && method != "terminal/create";
        if made && !object(params).is_some_and(|Named { terminal_id }| terminal_id.starts_with(CLIENTS)) {
            return self.serve_here(frame, key, native, method, params, out);
        }
        let kind = JobKind::Errand { method: method.to_owned(), params: jsonrpc::owned(params) };
        let work =
            ClientToolWork::Errand { native: native.clone(), method: method.to_owned(), params: client_params(params) };
        self.work(key, native, kind, work, out);
    }

    fn refuse_unreadable(
        &mut self,
        frame: &Bytes,
        (key, native): (&RequestKey, Option<NativeId>),
        method: &str,
        out: &mut Outbox,
    ) {
        self.raw(frame, native, "a request that could not be parsed: refused", out);
        let reason = format!("{method}: these parameters, or this session, are not known here");
        out.frames.push(jsonrpc::refuse(key.id(), INVALID_PARAMS, &reason));
    }

    /// Serves a request that no client executes.
    fn serve_here(
        &mut self,
        frame: &Bytes,
        key: RequestKey,
        native: NativeId,
        method: &str,
        params: &RawValue,
        out: &mut Outbox,
    ) {
        let Some(request) = read(method, params) else {
            return self.refuse_unreadable(frame, (&key, Some(native)), method, out);
        };
        match request {
            ParsedRequest::Read(ReadFile { path, line, limit }) => {
                self.work(key, native, JobKind::Read, ClientToolWork::Read { path, line, limit }, out);
            }
            ParsedRequest::Write(write) => {
                let work = ClientToolWork::Read { path: write.path.clone(), line: None, limit: None };
                self.work(key, native, JobKind::Before(write, jsonrpc::owned(params)), work, out);
            }
            ParsedRequest::Run(run) => self.ask_to_run(frame, key, native, run, params, out),
            ParsedRequest::Terminal(terminal, kind) => {
                if self.terminals.get(&terminal) != Some(&native) {
                    return out.frames.push(jsonrpc::refuse(key.id(), INVALID_PARAMS, "no such terminal"));
                }
                let work = match (&kind, method) {
                    (JobKind::Output, _) => ClientToolWork::Output { terminal },
                    (JobKind::Wait, _) => ClientToolWork::Wait { terminal },
                    (_, "terminal/release") => {
                        self.terminals.remove(&terminal);
                        ClientToolWork::Release { terminal }
                    }
                    _ => ClientToolWork::Kill { terminal },
                };
                self.work(key, native, kind, work, out);
            }
        }
    }

    fn work(&mut self, key: RequestKey, native: NativeId, kind: JobKind, work: ClientToolWork, out: &mut Outbox) {
        let folder = self.sessions.get(&native).map_or_else(String::new, |session| session.cwd.clone());
        let id = self.next_job;
        self.next_job += 1;
        self.jobs.insert(id, ClientToolJob { key, native, kind });
        out.client_tools.push(ClientToolCall { id, folder, work });
    }

    /// Answers the agent with the result of a call.
    pub(super) fn worked(&mut self, id: u64, done: Result<ClientToolResult, ClientToolError>, out: &mut Outbox) {
        // The job is absent if the agent cancelled its request meanwhile.
        let Some(ClientToolJob { key, native, kind }) = self.jobs.remove(&id) else { return };
        let reply = match (kind, done) {
            (JobKind::Errand { method, params }, Err(ClientToolError::NoClient)) => {
                let frame = Bytes::copy_from_slice(params.get().as_bytes());
                return self.serve_here(&frame, key, native, &method, &params, out);
            }
            (JobKind::Errand { method, params }, Ok(ClientToolResult::Served { by, outcome })) => {
                let outcome = outcome.and_then(|result| {
                    let unreadable = |_| (INTERNAL, "the client's answer cannot be read".to_owned());
                    Ok((result.len(), serde_json::from_str::<serde_json::Value>(&result).map_err(unreadable)?))
                });
                let draft = served(&method, &params, &by, &outcome);
                out.events.push(RuntimeEvent::Event { native: Some(native), draft });
                match outcome {
                    Ok((_, result)) => named(&method, result),
                    Err((code, reason)) => return out.frames.push(jsonrpc::refuse(key.id(), code, &reason)),
                }
            }
            (JobKind::Before(write, params), Ok(ClientToolResult::Text(before))) => {
                return self.ask_to_write(key, native, write, Some(before), &params, out);
            }
            (JobKind::Before(write, params), Err(ClientToolError::Missing(_))) => {
                return self.ask_to_write(key, native, write, None, &params, out);
            }
            (JobKind::Run(terminal), Ok(_)) => serde_json::json!({ "terminalId": format!("term-{terminal}") }),
            (_, Ok(ClientToolResult::Text(content))) => serde_json::json!({ "content": content }),
            (_, Ok(ClientToolResult::Done)) => serde_json::json!({}),
            (_, Ok(ClientToolResult::Output { text, cut, end })) => {
                let status = end.map(|end| serde_json::json!({ "exitCode": end.code, "signal": end.signal }));
                serde_json::json!({ "output": text, "truncated": cut, "exitStatus": status })
            }
            (_, Ok(ClientToolResult::Served { .. })) => {
                return out.frames.push(jsonrpc::refuse(key.id(), INTERNAL, "no such answer"));
            }
            (_, Ok(ClientToolResult::Ended(end))) => serde_json::json!({ "exitCode": end.code, "signal": end.signal }),
            (kind, Err(undone)) => {
                if let JobKind::Run(terminal) = kind {
                    self.terminals.remove(&terminal);
                }
                // Agents recognize a file that does not exist by this text.
                let (code, reason) = match undone {
                    ClientToolError::Missing(reason) => {
                        (RESOURCE_NOT_FOUND, format!("Resource not found: {reason} (ENOENT)"))
                    }
                    ClientToolError::Refused(reason) => (INTERNAL, reason),
                    ClientToolError::NoClient => (INTERNAL, "no client is connected that can do it".into()),
                };
                return out.frames.push(jsonrpc::refuse(key.id(), code, &reason));
            }
        };
        out.frames.push(jsonrpc::answer(key.id(), &reply));
    }

    fn ask_to_write(
        &mut self,
        key: RequestKey,
        native: NativeId,
        write: FileWrite,
        before: Option<String>,
        params: &RawValue,
        out: &mut Outbox,
    ) {
        let FileWrite { path, text } = write;
        if self.writable.contains(&native) {
            return self.work(key, native, JobKind::Write, ClientToolWork::Write { path, before, text }, out);
        }
        let frame = Bytes::copy_from_slice(params.get().as_bytes());
        let mut ask = question(&key, RequestType::Permission, &format!("Write {path}"), params, frame.clone());
        ask.subject = RequestSubject::Edits(vec![(path.clone(), before.clone(), text.clone())]);
        ask.options = vec![
            offer("allow", "Allow", Choice::AllowOnce),
            Offer {
                for_session: true,
                ..offer("allow_session", "Allow all writes of this session", Choice::AllowAlways)
            },
            offer("reject", "Reject", Choice::RejectOnce),
        ];
        let pending = PendingRequest::Write { native: native.clone(), path, before, text };
        self.put(&frame, key, native, ask, pending, out);
    }

    fn ask_to_run(
        &mut self,
        frame: &Bytes,
        key: RequestKey,
        native: NativeId,
        run: CommandRun,
        params: &RawValue,
        out: &mut Outbox,
    ) {
        if self.terminals.len() >= TERMINALS_MAX {
            let reason = format!("there are {TERMINALS_MAX} terminals already: release one first");
            return out.frames.push(jsonrpc::refuse(key.id(), INTERNAL, &reason));
        }
        let mut ask = question(&key, RequestType::Permission, &run.argv.join(" "), params, frame.clone());
        // The variables of a command affect what it does, so they are shown as part of it.
        let set = run.env.iter().map(|(name, value)| format!("{name}={value}"));
        let argv = match run.env.is_empty() {
            true => run.argv.clone(),
            false => {
                let shell = if run.argv.len() == 1 { ["sh", "-c"].map(String::from).to_vec() } else { Vec::new() };
                ["env".to_owned()].into_iter().chain(set).chain(shell).chain(run.argv.clone()).collect()
            }
        };
        let folder = self.sessions.get(&native).map(|session| session.cwd.clone());
        ask.subject = RequestSubject::Command { argv, cwd: run.cwd.clone().or(folder).map(FolderClaim::Field) };
        ask.options = vec![offer("allow", "Allow", Choice::AllowOnce), offer("reject", "Reject", Choice::RejectOnce)];
        let pending = PendingRequest::Run { native: native.clone(), run };
        self.put(frame, key, native, ask, pending, out);
    }

    fn put(
        &mut self,
        frame: &Bytes,
        key: RequestKey,
        native: NativeId,
        ask: super::super::AgentRequest,
        pending: PendingRequest,
        out: &mut Outbox,
    ) {
        match self.request_slot(frame, &key, Some(&native), out) {
            RequestSlot::Free => {}
            RequestSlot::Taken => return,
            RequestSlot::Full => {
                return out.frames.push(jsonrpc::refuse(key.id(), INTERNAL, "too many questions wait"));
            }
        }
        self.asks.insert(key, pending);
        out.events.push(RuntimeEvent::Asked { native: Some(native), ask: Box::new(ask) });
    }

    /// Writes a file if the user allowed it.
    pub(super) fn write(
        &mut self,
        key: &RequestKey,
        native: NativeId,
        work: (String, Option<String>, String),
        decision: &Decision,
        out: &mut Outbox,
    ) {
        let (path, before, text) = work;
        match decision {
            Decision::Option { id, .. } if id == "allow" || id == "allow_session" => {
                if id == "allow_session" {
                    self.writable.insert(native.clone());
                }
                self.work(key.clone(), native, JobKind::Write, ClientToolWork::Write { path, before, text }, out);
            }
            _ => out.frames.push(refused(key, decision)),
        }
    }

    /// Runs a command if the user allowed it.
    pub(super) fn run(
        &mut self,
        key: &RequestKey,
        native: NativeId,
        run: CommandRun,
        decision: &Decision,
        out: &mut Outbox,
    ) {
        match decision {
            Decision::Option { id, .. } if id == "allow" => {
                let terminal = self.next_terminal;
                self.next_terminal += 1;
                self.terminals.insert(terminal, native.clone());
                let CommandRun { argv, env, cwd, keep } = run;
                self.work(
                    key.clone(),
                    native,
                    JobKind::Run(terminal),
                    ClientToolWork::Run { terminal, argv, env, cwd, keep },
                    out,
                );
            }
            _ => out.frames.push(refused(key, decision)),
        }
    }

    /// Cancels a call in progress at the request of the agent. Returns `false` if there is none.
    pub(super) fn dropped(&mut self, id: &str, out: &mut Outbox) -> bool {
        let job = self.jobs.iter().find(|(_, job)| job.key.id() == id);
        let Some(number) = job.map(|(number, _)| *number) else { return false };
        if let Some(ClientToolJob { native, kind: JobKind::Run(terminal), .. }) = self.jobs.remove(&number) {
            // The agent will never release this terminal.
            self.terminals.remove(&terminal);
            let folder = self.sessions.get(&native).map_or_else(String::new, |session| session.cwd.clone());
            let release = ClientToolCall { id: self.next_job, folder, work: ClientToolWork::Release { terminal } };
            self.next_job += 1;
            out.client_tools.push(release);
        }
        out.frames.push(jsonrpc::refuse(id, REQUEST_CANCELLED, "cancelled"));
        true
    }

    /// Answers the calls that the previous gateway process had in progress with an error: they and their terminals are lost.
    pub(super) fn give_up_jobs(&mut self, out: &mut Outbox) {
        self.terminals.clear();
        let mut jobs: Vec<_> = std::mem::take(&mut self.jobs).into_iter().collect();
        jobs.sort_unstable_by_key(|(id, _)| *id);
        for (_, job) in jobs {
            out.frames.push(jsonrpc::refuse(job.key.id(), INTERNAL, "the gateway was started again meanwhile"));
        }
    }
}

/// Makes the event of a call that a client executed: who did what, with which result; without the text of files and terminals.
fn served(
    method: &str,
    params: &RawValue,
    by: &Resolver,
    outcome: &Result<(usize, serde_json::Value), (i64, String)>,
) -> EventDraft {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ServedParams {
        path: Option<String>,
        command: Option<String>,
        args: Option<Vec<String>>,
        terminal_id: Option<String>,
    }
    let params = object::<ServedParams>(params).unwrap_or(ServedParams {
        path: None,
        command: None,
        args: None,
        terminal_id: None,
    });
    let short = |text: String| {
        let end = text.floor_char_boundary(SERVED_TEXT_MAX);
        if end < text.len() { format!("{}…", &text[..end]) } else { text }
    };
    let command = params.command.map(|command| [vec![command], params.args.unwrap_or_default()].concat().join(" "));
    let (bytes, failure) = match outcome {
        Ok((bytes, _)) => (Some(*bytes), None),
        Err((code, message)) => (None, Some((*code, short(message.clone())))),
    };
    let (code, message) = failure.unzip();
    let status = if bytes.is_some() { "done" } else { "failed" };
    let (path, command, terminal_id) = (params.path.map(short), command.map(short), params.terminal_id.map(short));
    let body = ClientServed { method, by, status, path, command, terminal_id, bytes, code, message };
    EventDraft::new(Kind::ClientServed, &body)
}

/// Returns the params for the client, with the client's own id of a terminal.
fn client_params(params: &RawValue) -> String {
    let Some(Named { terminal_id }) = object::<Named>(params) else { return params.get().to_owned() };
    let Some(own) = terminal_id.strip_prefix(CLIENTS) else { return params.get().to_owned() };
    match serde_json::from_str::<serde_json::Value>(params.get()) {
        Ok(mut value) => {
            value["terminalId"] = own.into();
            value.to_string()
        }
        Err(_) => params.get().to_owned(),
    }
}

/// Returns the result for the agent; a new terminal of a client gets an id that differs from those of the gateway.
fn named(method: &str, mut result: serde_json::Value) -> serde_json::Value {
    if method == "terminal/create"
        && let Some(id) = result.get("terminalId").and_then(serde_json::Value::as_str)
    {
        result["terminalId"] = format!("{CLIENTS}{id}").into();
    }
    result
}

fn offer(id: &str, label: &str, kind: Choice) -> Offer {
    Offer { id: id.into(), label: label.into(), kind, for_session: false }
}

/// Returns the error for a call that was not allowed.
fn refused(key: &RequestKey, decision: &Decision) -> Bytes {
    let (code, reason) = match decision {
        Decision::Expired => (INTERNAL, "expired, not a user decision"),
        Decision::Withdrawn => (REQUEST_CANCELLED, "cancelled"),
        _ => (INTERNAL, "the user did not allow it"),
    };
    jsonrpc::refuse(key.id(), code, reason)
}

/// Returns the error for a method that is not served.
pub(super) fn unsupported(id: &str, method: &str) -> Bytes {
    jsonrpc::refuse(id, METHOD_NOT_FOUND, &format!("{method}: not served here"))
}
