//! The runtime of the bench: an ACP agent that only follows commands of the bench over a control socket.
//!
//! After a prompt it reports `prompted` and takes commands, one a line, until `end`:
//! `stream N BYTES` writes N chunks as fast as the pipe takes them; `step N BYTES` writes one chunk for each byte that
//! comes, and says when (`at NANOS`); `ask N` asks for permission once for each byte that comes and says how long the
//! answer took (`took NANOS`); `tool BYTES` and `edit BYTES` write one long tool call, `plan BYTES` a plan.
//! A prompt `do: COMMAND` is a command itself, which is followed without the bench.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

/// Timeout of the bench's waits.
const PATIENCE: Duration = Duration::from_secs(120);

/// Nanoseconds of the wall clock: the one clock that both processes can read.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

// ------------------------------------------------------------------------------------ in the bench

/// The control socket, before the agent has connected.
pub(crate) struct Control {
    pub(crate) path: PathBuf,
    listener: UnixListener,
    line: Option<BufReader<UnixStream>>,
}

impl Control {
    /// Listens in `dir`.
    pub(crate) fn listen(dir: &Path) -> Result<Self> {
        let path = dir.join("control");
        let listener = UnixListener::bind(&path).context("the control socket")?;
        Ok(Self { path, listener, line: None })
    }

    /// Waits for the agent to connect.
    pub(crate) fn accept(&mut self) -> Result<()> {
        let deadline = std::time::Instant::now() + PATIENCE;
        self.listener.set_nonblocking(true)?;
        let socket = loop {
            match self.listener.accept() {
                Ok((socket, _)) => break socket,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    ensure!(std::time::Instant::now() < deadline, "the agent did not start");
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(error.into()),
            }
        };
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        self.line = Some(BufReader::new(socket));
        Ok(())
    }

    /// Returns whether an agent has connected.
    pub(crate) fn has_agent(&self) -> bool {
        self.line.is_some()
    }

    fn line(&mut self) -> Result<&mut BufReader<UnixStream>> {
        self.line.as_mut().context("no agent has called yet")
    }

    /// Sends the agent a command.
    pub(crate) fn say(&mut self, command: &str) -> Result<()> {
        Ok(self.line()?.get_mut().write_all(format!("{command}\n").as_bytes())?)
    }

    /// Lets the agent write the next chunk or open the next request.
    pub(crate) fn token(&mut self) -> Result<()> {
        Ok(self.line()?.get_mut().write_all(b".")?)
    }

    /// The agent's next message without its keyword, which must be this one.
    pub(crate) fn hear(&mut self, keyword: &str) -> Result<u64> {
        let mut line = String::new();
        self.line()?.read_line(&mut line).context("the agent said nothing")?;
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), "0"));
        ensure!(word == keyword, "the agent said {line:?}, not {keyword}");
        Ok(rest.parse()?)
    }
}

// ------------------------------------------------------------------------------------ the process

/// Runs the agent: ACP on stdio, the bench at `control`. With `prompted` it starts as if it had a prompt already, for peers
/// without ACP.
pub(crate) fn run(control: &Path, prompted: bool) -> Result<()> {
    let socket = UnixStream::connect(control)?;
    let mut agent = Agent {
        input: BufReader::new(std::io::stdin()),
        control: BufReader::new(socket),
        session: "bench".into(),
        asked: 0,
    };
    if prompted {
        agent.obey()?;
        return Ok(());
    }
    let mut line = String::new();
    let mut sessions = 0;
    loop {
        line.clear();
        if agent.input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let message: Value = serde_json::from_str(&line).context("a line from the gateway")?;
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { continue };
        let result = match method {
            "initialize" => json!({ "protocolVersion": 1, "authMethods": [],
                "agentInfo": { "name": "bench", "version": "1" },
                "agentCapabilities": { "loadSession": false, "promptCapabilities": {} } }),
            "session/new" => {
                sessions += 1;
                let mut result = json!({ "sessionId": format!("bench-{sessions}") });
                if message["params"]["cwd"].as_str().is_some_and(|cwd| cwd.ends_with("many-models")) {
                    result["models"] = models();
                }
                result
            }
            "session/prompt" => {
                message["params"]["sessionId"]
                    .as_str()
                    .context("a prompt names its session")?
                    .clone_into(&mut agent.session);
                let text = message["params"]["prompt"][0]["text"].as_str().unwrap_or_default();
                // One of many concurrent prompts: answered without a command of the bench.
                if text.starts_with("at once") {
                    write_line(&agent.chunk(64))?;
                } else if let Some(command) = text.strip_prefix("do: ") {
                    agent.follow(command)?;
                } else if !agent.obey()? {
                    return Ok(());
                }
                json!({ "stopReason": "end_turn" })
            }
            _ => {
                let error = json!({ "code": -32601, "message": "method not found" });
                write_line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())?;
                continue;
            }
        };
        write_line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())?;
    }
}

struct Agent {
    input: BufReader<std::io::Stdin>,
    control: BufReader<UnixStream>,
    session: String,
    asked: u64,
}

/// 300 models, as agents that serve many list them.
fn models() -> Value {
    let model = |n: usize| json!({ "modelId": format!("vendor/model-{n}"), "name": format!("Model {n}"), "description": "Fast, and good at long tasks. ".repeat(4) });
    json!({ "currentModelId": "vendor/model-0", "availableModels": (0..300).map(model).collect::<Vec<_>>() })
}

/// One write for one line, newline included.
fn write_line(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    Ok(out.flush()?)
}

impl Agent {
    /// Follows the bench's commands until the end of the run; returns `false` if the bench has exited.
    fn obey(&mut self) -> Result<bool> {
        self.report("prompted", 0)?;
        let mut command = String::new();
        loop {
            command.clear();
            if self.control.read_line(&mut command)? == 0 {
                return Ok(false);
            }
            if command.trim() == "end" {
                return Ok(true);
            }
            self.follow(&command)?;
        }
    }

    fn follow(&mut self, command: &str) -> Result<()> {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words[..] {
            ["stream", count, bytes] => self.stream(count.parse()?, bytes.parse()?),
            ["step", count, bytes] => self.step(count.parse()?, bytes.parse()?),
            ["tool", bytes] => self.tool(bytes.parse()?, false),
            ["edit", bytes] => self.tool(bytes.parse()?, true),
            ["plan", bytes] => self.plan(bytes.parse()?),
            ["ask", count] => self.ask(count.parse()?),
            _ => bail!("the bench said {command:?}"),
        }
    }

    fn report(&mut self, word: &str, number: u64) -> Result<()> {
        Ok(self.control.get_mut().write_all(format!("{word} {number}\n").as_bytes())?)
    }

    fn wait(&mut self) -> Result<()> {
        Ok(self.control.read_exact(&mut [0])?)
    }

    fn chunk(&self, bytes: usize) -> String {
        // Words, as people and models write them.
        let text: String =
            "the quick brown fox jumps over the lazy dog and then ".chars().cycle().take(bytes).collect();
        let content = json!({ "type": "text", "text": text });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        let params = json!({ "sessionId": self.session, "update": update });
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string()
    }

    fn stream(&self, count: usize, bytes: usize) -> Result<()> {
        let line = format!("{}\n", self.chunk(bytes));
        // Not through `Stdout`, which would search for line ends and copy. One write a line, as agents do it.
        let mut out = std::fs::File::from(rustix::io::dup(rustix::stdio::stdout())?);
        for _ in 0..count {
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    /// A tool call with this many bytes of output, or of an edit.
    fn tool(&self, bytes: usize, edit: bool) -> Result<()> {
        let line = "the quick brown fox jumps over the lazy dog\n";
        let text = line.repeat(bytes / line.len());
        let content = if edit {
            // The edit changes one line.
            let new = text.replacen("fox", "cat", 1);
            json!({ "type": "diff", "path": "/a.txt", "oldText": text, "newText": new })
        } else {
            json!({ "type": "content", "content": { "type": "text", "text": text } })
        };
        let update = json!({ "sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "work", "kind": "edit",
            "status": "completed", "content": [content] });
        let params = json!({ "sessionId": self.session, "update": update });
        write_line(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string())
    }

    /// A plan of one entry with this many bytes.
    fn plan(&self, bytes: usize) -> Result<()> {
        let entry = json!({ "content": "x".repeat(bytes), "priority": "medium", "status": "pending" });
        let update = json!({ "sessionUpdate": "plan", "entries": [entry] });
        let params = json!({ "sessionId": self.session, "update": update });
        write_line(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string())
    }

    fn step(&mut self, count: usize, bytes: usize) -> Result<()> {
        let line = format!("{}\n", self.chunk(bytes));
        let mut out = std::fs::File::from(rustix::io::dup(rustix::stdio::stdout())?);
        for _ in 0..count {
            self.wait()?;
            let at = now();
            out.write_all(line.as_bytes())?;
            self.report("at", at)?;
        }
        Ok(())
    }

    fn ask(&mut self, count: usize) -> Result<()> {
        let mut answer = String::new();
        for _ in 0..count {
            self.wait()?;
            self.asked += 1;
            let call = json!({ "toolCallId": format!("call-{}", self.asked), "title": "cargo test", "kind": "execute", "status": "pending",
                "rawInput": { "command": ["cargo", "test"] } });
            let options = json!([{ "optionId": "allow", "name": "Allow once", "kind": "allow_once" },
                { "optionId": "reject", "name": "Reject", "kind": "reject_once" }]);
            let params = json!({ "sessionId": self.session, "toolCall": call, "options": options });
            let id = format!("ask-{}", self.asked);
            let request =
                json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params })
                    .to_string();
            let began = now();
            write_line(&request)?;
            answer.clear();
            ensure!(self.input.read_line(&mut answer)? > 0, "the gateway left without an answer");
            let took = now().saturating_sub(began);
            let answer: Value = serde_json::from_str(&answer)?;
            let option = &answer["result"]["outcome"]["optionId"];
            ensure!(option == "allow", "the answer is {answer}, not the option that was chosen");
            self.report("took", took)?;
        }
        Ok(())
    }
}
