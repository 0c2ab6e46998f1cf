//! The demo agent's commands.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::agent::{
    Agent, Cancelled, Decision, FLUSH_TIME, PROMPT_AHEAD, Session, TOUR, Turn, TurnState, WRITE_SIZE, chunk, label,
    lock, mode_name, mode_update, notification,
};

/// Maximum size of `line N` and `flood N BYTES`, in bytes; a larger one is refused with a message.
const MAX_TEXT: usize = 256 << 20;
/// Time between chunks of `stream N` and between the steps of other commands.
const PACE: Duration = Duration::from_millis(5);
/// Size of the text in a chunk of `flood N`, in bytes.
const FLOOD_TEXT: usize = 24;
/// Size of the text that counts as a token, in bytes.
const TOKEN: u64 = 4;
/// Exit code of `crash`.
const CRASH_CODE: i32 = 3;

/// The run of one prompt.
pub(super) struct Stage {
    pub(super) agent: Arc<Agent>,
    pub(super) turn: Arc<Turn>,
    pub(super) session: String,
    pub(super) cwd: String,
}

impl Stage {
    pub(super) fn play(&self, step: &str) -> Result<(), Cancelled> {
        self.check()?;
        let step = step.trim_start();
        // Clients send advertised commands with a slash.
        let step = step.strip_prefix('/').unwrap_or(step);
        let (verb, rest) = step.split_once(char::is_whitespace).unwrap_or((step, ""));
        let mut numbers = rest.split_whitespace().map(|word| word.parse::<u64>().ok());
        let numbers = [numbers.next(), numbers.next(), numbers.next()];
        match (verb, numbers) {
            ("stream", [Some(Some(n)), None, _]) => self.stream(n, PACE),
            ("stream", [Some(Some(n)), Some(Some(ms)), None]) => self.stream(n, Duration::from_millis(ms)),
            ("flood", [Some(Some(n)), None, _]) => self.flood(n, FLOOD_TEXT as u64),
            ("flood", [Some(Some(n)), Some(Some(bytes)), None]) => self.flood(n, bytes),
            ("line", [Some(Some(n)), None, _]) => self.line(n),
            ("sleep", [Some(Some(ms)), None, _]) => self.pause(Some(Duration::from_millis(ms))),
            ("echo", _) => self.text(rest),
            ("stderr", _) => {
                let _ = writeln!(io::stderr(), "{rest}");
                Ok(())
            }
            ("ask", [None, ..]) => self.ask(&["touch demo.txt"]),
            ("ask", _) => self.ask(&[rest]),
            ("edit", [None, ..]) => self.may_change("touch demo.txt"),
            ("edit", _) => self.may_change(rest),
            ("form", [None, ..]) => self.form(),
            ("ask2", [None, ..]) => self.ask(&["touch demo-1.txt", "touch demo-2.txt"]),
            ("script", _) => self.script(Path::new(rest.trim())),
            ("diff", [None, ..]) => self.diff(),
            ("plan", [None, ..]) => self.plan(),
            ("think", [None, ..]) => self.think(),
            ("hang", [None, ..]) => self.pause(None),
            ("usage", [None, ..]) => self.usage(),
            ("mode", [None, ..]) => self.mode(),
            ("junk", [None, ..]) => self.junk(),
            ("crash", [None, ..]) => self.crash(),
            _ => self.tour(),
        }
    }

    pub(super) fn check(&self) -> Result<(), Cancelled> {
        if lock(&self.turn.state).cancelled { Err(Cancelled) } else { Ok(()) }
    }

    /// Waits for `time`, or forever; a cancellation ends the wait.
    fn pause(&self, time: Option<Duration>) -> Result<(), Cancelled> {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        let mut state = lock(&self.turn.state);
        while !state.cancelled {
            state = match until {
                None => self.turn.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(());
                    }
                    self.turn.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        Err(Cancelled)
    }

    pub(super) fn with_session(&self, change: impl FnOnce(&mut Session)) {
        if let Some(session) = lock(&self.agent.state).sessions.get_mut(&self.session) {
            change(session);
        }
    }

    pub(super) fn send(&self, message: &Value) {
        self.agent.send(message, PROMPT_AHEAD);
    }

    pub(super) fn update(&self, update: &Value) -> Result<(), Cancelled> {
        self.check()?;
        self.send(&notification(&self.session, update));
        Ok(())
    }

    pub(super) fn text(&self, text: &str) -> Result<(), Cancelled> {
        self.with_session(|session| session.used += text.len() as u64);
        self.update(&chunk("agent_message_chunk", text))
    }

    pub(super) fn stream(&self, n: u64, pace: Duration) -> Result<(), Cancelled> {
        for i in 1..=n {
            if i > 1 && !pace.is_zero() {
                self.pause(Some(pace))?;
            }
            self.text(&label(i, n))?;
        }
        Ok(())
    }

    /// The bytes before and after the text of a message chunk's line, newline included.
    fn envelope(&self) -> (String, String) {
        let line = notification(&self.session, &chunk("agent_message_chunk", "\u{0}")).to_string();
        // The last NUL is the placeholder: only the session id could contain another, and it comes first.
        let (head, tail) = line.rsplit_once("\\u0000").unwrap_or((&line, ""));
        (head.to_owned(), format!("{tail}\n"))
    }

    pub(super) fn flood(&self, n: u64, bytes: u64) -> Result<(), Cancelled> {
        let Some(bytes) = usize::try_from(bytes).ok().filter(|bytes| *bytes <= MAX_TEXT) else {
            return self.text(&format!("flood takes at most {MAX_TEXT} bytes a chunk\n"));
        };
        let (head, tail) = self.envelope();
        let padding = "x".repeat(bytes.saturating_sub(label(n, n).len()));
        let mut batch = Vec::with_capacity(WRITE_SIZE);
        for i in 1..=n {
            batch.extend_from_slice(head.as_bytes());
            batch.extend_from_slice(label(i, n).as_bytes());
            batch.extend_from_slice(padding.as_bytes());
            batch.extend_from_slice(tail.as_bytes());
            if batch.len() + head.len() + bytes + tail.len() > WRITE_SIZE || i == n {
                self.check()?;
                self.agent.out.push(&batch, PROMPT_AHEAD);
                batch.clear();
            }
        }
        let sent = n.saturating_mul(padding.len() as u64 + label(n, n).len() as u64);
        self.with_session(|session| session.used = session.used.saturating_add(sent));
        Ok(())
    }

    pub(super) fn line(&self, n: u64) -> Result<(), Cancelled> {
        let Some(n) = usize::try_from(n).ok().filter(|n| *n <= MAX_TEXT) else {
            return self.text(&format!("line takes at most {MAX_TEXT} bytes\n"));
        };
        let (head, tail) = self.envelope();
        // The newline does not count towards N.
        let padding = n.saturating_sub(head.len() + tail.len() - 1);
        let mut line = head.into_bytes();
        line.resize(line.len() + padding, b'x');
        line.extend_from_slice(tail.as_bytes());
        self.agent.out.push(&line, PROMPT_AHEAD);
        Ok(())
    }

    fn tool_id(&self) -> String {
        let mut state = lock(&self.agent.state);
        state.next_tool += 1;
        format!("call-{}", state.next_tool)
    }

    /// Makes a new id for a request whose answer this turn waits for.
    fn request_id(&self) -> u64 {
        let mut state = lock(&self.agent.state);
        let request = state.next_request;
        state.next_request += 1;
        state.open_requests.insert(request, Arc::clone(&self.turn));
        request
    }

    /// Asks four questions in one form (`elicitation/create`) and repeats the answers. As with [`ask`](Self::ask), a cancellation does not
    /// end the wait.
    pub(super) fn form(&self) -> Result<(), Cancelled> {
        let titled = |value: &str, title: &str, description: &str| json!({"const": value, "title": title, "description": description});
        let schema = json!({
            "type": "object", "required": ["database", "title"],
            "properties": {
                "database": {"type": "string", "title": "Database", "description": "Which database?", "oneOf": [
                    titled("postgres", "PostgreSQL", "a server of its own"), titled("sqlite", "SQLite", "one file"),
                ]},
                "extras": {"type": "array", "title": "Extras", "description": "What else is needed?", "maxItems": 2, "items": {"anyOf": [
                    titled("migrations", "Migrations", "the schema by steps"), titled("seed", "Seed data", "rows to begin with"),
                    titled("backup", "Backups", "once a day"),
                ]}},
                "port": {"type": "integer", "title": "Port", "minimum": 1024, "maximum": 65535},
                "title": {"type": "string", "title": "Title", "description": "What is it called?", "minLength": 1, "maxLength": 40},
            },
        });
        let request = self.request_id();
        self.send(&json!({"jsonrpc": "2.0", "id": request, "method": "elicitation/create", "params": {
            "sessionId": self.session, "mode": "form", "message": "Before the project is set up:", "requestedSchema": schema,
        }}));
        let waits = |s: &mut TurnState| !s.answers.contains_key(&request);
        let mut state =
            self.turn.changed.wait_while(lock(&self.turn.state), waits).unwrap_or_else(PoisonError::into_inner);
        let (decision, cancelled) = (state.answers.remove(&request), state.cancelled);
        drop(state);
        let report = match decision {
            _ if cancelled => return Err(Cancelled),
            Some(Decision::Form(action, content)) if action == "accept" => format!("The form: {content}\n"),
            Some(Decision::Form(action, _)) => format!("No answer to the form: {action}\n"),
            Some(Decision::Error(error)) => format!("The form could not be shown: {error}\n"),
            _ => "That is no answer to a form.\n".to_owned(),
        };
        self.text(&report)
    }

    /// Asks for permission for all of `commands` at once, waits for all answers, then reports the decisions.
    ///
    /// A cancellation does not end the wait: ACP obliges the client to answer open requests.
    pub(super) fn ask(&self, commands: &[&str]) -> Result<(), Cancelled> {
        self.ask_for(commands, false)
    }

    /// Asks as [`ask`](Self::ask) does, for a command that users may edit before they allow it.
    fn may_change(&self, command: &str) -> Result<(), Cancelled> {
        self.ask_for(&[command], true)
    }

    fn ask_for(&self, commands: &[&str], editable: bool) -> Result<(), Cancelled> {
        let mut open = Vec::new();
        for command in commands {
            let tool = self.tool_id();
            let mut call = json!({
                "toolCallId": tool, "title": command, "kind": "execute", "status": "pending",
                "rawInput": {"command": command},
            });
            let request = self.request_id();
            let mut params = json!({
                "sessionId": self.session, "toolCall": call.clone(),
                "options": [
                    {"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
                    {"optionId": "allow_always", "name": "Allow always", "kind": "allow_always"},
                    {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"},
                ],
            });
            if editable {
                params["_meta"] = json!({ "plexus": { "editable": { "label": "Command", "value": command } } });
            }
            call["sessionUpdate"] = json!("tool_call");
            self.send(&notification(&self.session, &call));
            self.send(
                &json!({"jsonrpc": "2.0", "id": request, "method": "session/request_permission", "params": params}),
            );
            open.push((request, tool, *command));
        }
        let all_in = |s: &mut TurnState| !open.iter().all(|(request, ..)| s.answers.contains_key(request));
        let mut state =
            self.turn.changed.wait_while(lock(&self.turn.state), all_in).unwrap_or_else(PoisonError::into_inner);
        let cancelled = state.cancelled;
        let mut decided = Vec::new();
        for (request, tool, command) in open {
            decided.push((state.answers.remove(&request).unwrap_or(Decision::Cancelled), tool, command));
        }
        drop(state);
        let mut stop = cancelled;
        for (decision, tool, command) in decided {
            let command = match &decision {
                Decision::Edited(_, edited) => edited,
                _ => command,
            };
            let (ok, report) = match &decision {
                _ if cancelled => (false, "cancelled".to_owned()),
                Decision::Option(id) if id == "allow_once" || id == "allow_always" => (true, format!("allowed ({id})")),
                Decision::Edited(id, _) if editable && id == "allow_once" => {
                    (true, "allowed after a change".to_owned())
                }
                Decision::Edited(..) => {
                    (false, "not allowed, because a part changed that may not be edited".to_owned())
                }
                Decision::Option(id) if id == "reject_once" => (false, format!("rejected ({id})")),
                Decision::Option(id) => (false, format!("not allowed, because there is no option {id:?}")),
                Decision::Form(..) => (false, "not allowed, because a form was answered".to_owned()),
                Decision::Cancelled => (false, "cancelled".to_owned()),
                Decision::Error(error) => (false, format!("not allowed, because the client failed: {error}")),
            };
            let report = format!("{report}: {command}\n");
            let content = if ok { "Nothing was run: this is the demo agent." } else { report.as_str() };
            self.send(&notification(
                &self.session,
                &json!({
                    "sessionUpdate": "tool_call_update", "toolCallId": tool,
                    "status": if ok { "completed" } else { "failed" },
                    "content": [{"type": "content", "content": {"type": "text", "text": content}}],
                }),
            ));
            if matches!(decision, Decision::Cancelled) {
                stop = true;
            } else if !cancelled {
                // `text` is not used: a cancellation at this moment must not leave the other card open.
                self.send(&notification(&self.session, &chunk("agent_message_chunk", &report)));
            }
        }
        if stop { Err(Cancelled) } else { self.check() }
    }

    pub(super) fn diff(&self) -> Result<(), Cancelled> {
        let tool = self.tool_id();
        let path = Path::new(&self.cwd).join("demo.txt");
        let path = path.to_string_lossy();
        let diff =
            json!({"type": "diff", "path": path, "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\nfour\n"});
        self.update(&json!({
            "sessionUpdate": "tool_call", "toolCallId": tool, "title": "Edit demo.txt", "kind": "edit", "status": "in_progress",
            "locations": [{"path": path, "line": 2}], "rawInput": {"path": path}, "content": [diff],
        }))?;
        // A tool call that has begun is always ended: no cancellation between the two.
        self.send(&notification(
            &self.session,
            &json!({
                "sessionUpdate": "tool_call_update", "toolCallId": tool, "status": "completed", "content": [diff],
            }),
        ));
        self.text("Showed an edit of demo.txt; nothing was written.\n")
    }

    pub(super) fn plan(&self) -> Result<(), Cancelled> {
        let steps = [("Look around", "high"), ("Do the work", "medium"), ("Check it", "low")];
        for done in 0..=steps.len() {
            let entry = |(i, (content, priority)): (usize, &(&str, &str))| {
                let status = match i.cmp(&done) {
                    std::cmp::Ordering::Less => "completed",
                    std::cmp::Ordering::Equal => "in_progress",
                    std::cmp::Ordering::Greater => "pending",
                };
                json!({"content": content, "priority": priority, "status": status})
            };
            let entries: Vec<Value> = steps.iter().enumerate().map(entry).collect();
            self.update(&json!({"sessionUpdate": "plan", "entries": entries}))?;
            self.pause(Some(PACE))?;
        }
        self.text("The plan is done.\n")
    }

    pub(super) fn think(&self) -> Result<(), Cancelled> {
        for thought in ["Let me think. ", "Forty-two, ", "as ever."] {
            self.update(&chunk("agent_thought_chunk", thought))?;
            self.pause(Some(PACE))?;
        }
        self.text("The answer is 42.\n")
    }

    /// The tokens of the turn, from the prompt's length and the session's usage before the reply.
    pub(super) fn tokens(&self, prompt: u64, before: u64) -> Value {
        let mut reply = 0;
        self.with_session(|session| reply = session.used.saturating_sub(before));
        let (input, output) = (prompt / TOKEN, reply / TOKEN);
        json!({"inputTokens": input, "outputTokens": output, "totalTokens": input + output})
    }

    pub(super) fn usage(&self) -> Result<(), Cancelled> {
        lock(&self.turn.state).reports_usage = true;
        let mut used = 0;
        // The price is invented.
        self.with_session(|session| used = session.used / TOKEN);
        self.update(&json!({
            "sessionUpdate": "usage_update", "used": used, "size": 200_000,
            "cost": {"amount": used as f64 / 1e6, "currency": "USD"},
        }))
    }

    pub(super) fn mode(&self) -> Result<(), Cancelled> {
        let mut auto = false;
        self.with_session(|session| {
            session.auto = !session.auto;
            auto = session.auto;
        });
        self.update(&mode_update(auto))?;
        self.text(&format!("The mode is now {}.\n", mode_name(auto)))
    }

    pub(super) fn script(&self, path: &Path) -> Result<(), Cancelled> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => return self.text(&format!("cannot read {}: {error}", path.display())),
        };
        for line in io::BufReader::new(file).lines() {
            let line = match line {
                Ok(line) => line,
                Err(error) => return self.text(&format!("cannot read {}: {error}", path.display())),
            };
            match serde_json::from_str::<Value>(&line) {
                // `{"sleep": MS}` is a pause; everything else is sent unchanged.
                Ok(Value::Object(update)) => match update.get("sleep").and_then(Value::as_u64) {
                    Some(ms) => self.pause(Some(Duration::from_millis(ms)))?,
                    None => self.update(&Value::Object(update))?,
                },
                Ok(_) => self.text("a line of a script is a JSON object")?,
                Err(error) => self.text(&format!("no JSON: {error}"))?,
            }
        }
        Ok(())
    }

    pub(super) fn junk(&self) -> Result<(), Cancelled> {
        self.agent.out.push(b"this line is not JSON {\n", PROMPT_AHEAD);
        self.send(
            &json!({"jsonrpc": "2.0", "method": "demo/unknown", "params": {"sessionId": self.session, "x": [1, null]}}),
        );
        self.update(&json!({"sessionUpdate": "demo_unknown_kind", "payload": {"n": 1.5}}))?;
        self.text("Still here after the junk.\n")
    }

    pub(super) fn crash(&self) -> Result<(), Cancelled> {
        let line = notification(&self.session, &chunk("agent_message_chunk", "never finished")).to_string();
        self.agent.out.push(line.get(..line.len() / 2).unwrap_or_default().as_bytes(), PROMPT_AHEAD);
        self.agent.out.finish(FLUSH_TIME);
        std::process::exit(CRASH_CODE)
    }

    fn tour(&self) -> Result<(), Cancelled> {
        self.text("I am the demo agent: I do what the prompt says, and nothing else. Try\n\n")?;
        for (name, hint, what) in TOUR {
            self.pause(Some(PACE))?;
            let space = if hint.is_empty() { "" } else { " " };
            self.text(&format!("- `{name}{space}{hint}`: {what}\n"))?;
        }
        self.text("\nJoin steps with ` ;; `, as in `think ;; ask ;; stream 20`.\n")
    }
}
