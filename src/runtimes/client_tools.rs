//! The client tools of one runtime: files and terminals that an agent requests from its client. The dialect may not access them itself
//! because that is I/O.
//!
//! The driver starts calls ([`ClientTools::start`]) and passes their results to the dialect ([`ClientTools::next`]). When the value is
//! dropped, every command that it started ends, with all processes of the command.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::{JoinSet, spawn_blocking};

use serde_json::value::RawValue;

use super::{client_files as files, client_terminal as terminal};
use files::FileScope;
use plexus_dialects::{ClientToolCall, ClientToolError, ClientToolResult, ClientToolWork};
use plexus_protocol::{NativeId, RuntimeId};
use plexus_sessions::{ClientCallReply, ClientRouter};
use terminal::{Terminal, TerminalStart};

/// Maximum number of concurrent calls; one more is refused at once. Dialects have a bound of their own, below this.
const CALLS_MAX: usize = 256;

/// Maximum number of terminals; one more is refused until one is released.
const TERMINALS_MAX: usize = 64;

/// The result of a call, with its id.
pub(super) type ClientToolOutcome = (u64, Result<ClientToolResult, ClientToolError>);

/// Carries out the client tool calls of one runtime.
pub(super) struct ClientTools {
    runtime: RuntimeId,
    clients: ClientRouter,
    /// The gateway's own folder: no call accesses it.
    private: Option<Arc<Path>>,
    hold_exe: PathBuf,
    env: Arc<BTreeMap<OsString, OsString>>,
    under_way: JoinSet<ClientToolOutcome>,
    /// The outcomes that are known already, at most one for each started call.
    done: VecDeque<ClientToolOutcome>,
    terminals: HashMap<u64, Terminal>,
}

impl ClientTools {
    /// Makes the tools without any calls. Commands run behind `hold_exe` (the `plexus` program), which ends them when the gateway dies,
    /// and get `env`: the runtime's own environment.
    ///
    /// `clients` reaches the editors that serve calls for `runtime`'s sessions. In the folder `private`, under any name, nothing is read,
    /// written or run.
    pub(super) fn new(
        hold_exe: PathBuf,
        env: BTreeMap<OsString, OsString>,
        runtime: RuntimeId,
        clients: ClientRouter,
        private: Option<PathBuf>,
    ) -> Self {
        Self {
            runtime,
            clients,
            private: private.map(Arc::from),
            hold_exe,
            env: Arc::new(env),
            under_way: JoinSet::new(),
            done: VecDeque::new(),
            terminals: HashMap::new(),
        }
    }

    /// Starts a call; [`next`](Self::next) returns its result, once.
    pub(super) fn start(&mut self, call: ClientToolCall) {
        let ClientToolCall { id, folder, work } = call;
        if self.under_way.len() >= CALLS_MAX {
            let reason = format!("{CALLS_MAX} calls are in progress already");
            return self.done.push_back((id, Err(ClientToolError::Refused(reason))));
        }
        let scope = FileScope { folder: PathBuf::from(folder), private: self.private.clone() };
        match work {
            ClientToolWork::Read { path, line, limit } => {
                self.block(id, move || files::read(&scope, path.as_ref(), line, limit).map(ClientToolResult::Text));
            }
            ClientToolWork::Write { path, before, text } => {
                self.block(id, move || {
                    files::write(&scope, path.as_ref(), before.as_deref(), &text).map(|()| ClientToolResult::Done)
                });
            }
            ClientToolWork::Run { terminal, argv, env, cwd, keep } => {
                if self.terminals.len() >= TERMINALS_MAX {
                    let reason = format!("there are {TERMINALS_MAX} terminals already: release one first");
                    return self.done.push_back((id, Err(ClientToolError::Refused(reason))));
                }
                let cwd = cwd.map(PathBuf::from);
                let (hold, base) = (self.hold_exe.clone(), Arc::clone(&self.env));
                let (made, started) = Terminal::start(TerminalStart { hold, base, scope, argv, env, cwd, keep });
                self.terminals.insert(terminal, made);
                self.under_way.spawn(async move { (id, started.await) });
            }
            ClientToolWork::Errand { native, method, params } => {
                let (clients, runtime) = (self.clients.clone(), self.runtime.clone());
                self.under_way.spawn(async move {
                    let allowed = spawn_blocking(move || files::check_paths(&scope, &params).map(|()| params));
                    let done = match allowed.await {
                        Ok(Ok(params)) => call_client(&clients, &runtime, &native, method, params).await,
                        Ok(Err(refused)) => Err(refused),
                        Err(error) => Err(ClientToolError::Refused(error.to_string())),
                    };
                    (id, done)
                });
            }
            ClientToolWork::Output { terminal } => {
                let output = self.terminal(terminal).map(Terminal::output);
                self.done.push_back((id, output));
            }
            ClientToolWork::Wait { terminal } => match self.terminal(terminal).map(Terminal::ended) {
                Ok(ended) => {
                    self.under_way.spawn(async move { (id, Ok(ClientToolResult::Ended(ended.await))) });
                }
                Err(error) => self.done.push_back((id, Err(error))),
            },
            ClientToolWork::Kill { terminal } => {
                let killed = self.terminal(terminal).map(|terminal| {
                    terminal.kill();
                    ClientToolResult::Done
                });
                self.done.push_back((id, killed));
            }
            ClientToolWork::Release { terminal } => {
                let released = self.terminals.remove(&terminal).map(Terminal::release);
                let released = released.map(|()| ClientToolResult::Done).ok_or_else(no_such_terminal);
                self.done.push_back((id, released));
            }
        }
    }

    /// Returns the next result; never returns while no call is in progress. Cancellation safe: an unreturned result is returned the next
    /// time.
    pub(super) async fn next(&mut self) -> ClientToolOutcome {
        if let Some(done) = self.done.pop_front() {
            return done;
        }
        loop {
            match self.under_way.join_next().await {
                Some(Ok(done)) => return done,
                // None of these tasks is ever aborted, and the blocking work reports its own panic.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Runs blocking work on a thread for it, and records its result under `id`.
    fn block(&mut self, id: u64, work: impl FnOnce() -> Result<ClientToolResult, ClientToolError> + Send + 'static) {
        self.under_way.spawn(async move {
            let done = spawn_blocking(work).await;
            (id, done.unwrap_or_else(|error| Err(ClientToolError::Refused(error.to_string()))))
        });
    }

    fn terminal(&self, number: u64) -> Result<&Terminal, ClientToolError> {
        self.terminals.get(&number).ok_or_else(no_such_terminal)
    }
}

/// Forwards a call to the client that opened the session.
async fn call_client(
    clients: &ClientRouter,
    runtime: &RuntimeId,
    native: &NativeId,
    method: String,
    params: String,
) -> Result<ClientToolResult, ClientToolError> {
    let params = RawValue::from_string(params).map_err(|error| ClientToolError::Refused(error.to_string()))?;
    match clients.ask(runtime, native, method, params).await {
        None => Err(ClientToolError::NoClient),
        Some(ClientCallReply { by, outcome }) => {
            let outcome = outcome.map(|result| result.get().to_owned());
            Ok(ClientToolResult::Served { by, outcome: outcome.map_err(|error| (error.code, error.message)) })
        }
    }
}

fn no_such_terminal() -> ClientToolError {
    ClientToolError::Refused("no such terminal".into())
}
