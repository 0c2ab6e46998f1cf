// Written by `plexus link copilot`; `plexus link copilot --remove` deletes it.
//
// Shows the session of `copilot` in this terminal to the Plexus gateway of the same user: what happens is passed on to the gateway's link
// socket, and the few requests of `made` are made when the gateway asks for them. Nothing else: it prints nothing, it decides nothing,
// Copilot never waits for it, and without a gateway it does nothing but look for one. Copilot itself asks once in each folder whether the
// extension may handle permission requests; without that nothing can be answered elsewhere, and the extension ends.

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { homedir, platform } from "node:os";
import { isAbsolute, join, resolve } from "node:path";

import { joinSession } from "@github/copilot-sdk/extension";

/** The pause before the gateway is looked for again. */
const AGAIN_MS = 500;
/** Bytes that the gateway has not read. Beyond this the connection is made anew, and the gateway reads what it missed. */
const UNREAD_MAX = 8 << 20;
/** Longest message to the gateway, in bytes, which hangs up on a longer one. Such an event is left out, and such a reply is an error. */
const MESSAGE_MAX = 31 << 20;
/** Longest request of the gateway, in characters: a prompt. Beyond this the connection is made anew. */
const REQUEST_MAX = 8 << 20;
/** Most events of a session's past that the gateway reads when it sees the session for the first time. */
const PAST_MAX = 1000;
/** Most events that it reads at a time. */
const PAGE_MAX = 200;
/** Longest page, in bytes. */
const PAGE_BYTES = 16 << 20;
/** Longest text that is kept while it streams, in characters; a gateway that comes during a longer one gets it when it is whole. */
const PARTIAL_MAX = 1 << 20;
/** Open questions that are remembered for a gateway that comes later; the oldest is forgotten first. */
const QUESTIONS_MAX = 64;
/** How long `ps` and `lsof` may take. */
const LOOK_MS = 2000;

/** The events that Copilot keeps. */
const KEPT = [
  "abort",
  "assistant.message",
  "permission.completed",
  "permission.requested",
  "session.error",
  "tool.execution_complete",
  "tool.execution_start",
  "user.message",
];
/** The events that it does not keep. */
const PASSING = [
  "assistant.message_delta",
  "assistant.message_start",
  "assistant.reasoning_delta",
  "assistant.usage",
  "elicitation.completed",
  "elicitation.requested",
  "session.idle",
  "session.title_changed",
];
const PASSED_ON = new Set([...KEPT, ...PASSING]);
/** What a person can decide on a permission. */
const DECISIONS = new Set(["approve-once", "approve-for-session", "reject"]);

/** The gateway's link socket. */
function socketPath() {
  const { PLEXUS_HOME, XDG_DATA_HOME } = process.env;
  if (PLEXUS_HOME) return join(resolve(PLEXUS_HOME), "link.sock");
  if (platform() === "darwin") return join(homedir(), "Library", "Application Support", "plexus", "link.sock");
  const data = XDG_DATA_HOME && isAbsolute(XDG_DATA_HOME) ? XDG_DATA_HOME : join(homedir(), ".local", "share");
  return join(data, "plexus", "link.sock");
}

/** Whether the socket is there, and of the same user. */
function isOurs(path) {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found !== undefined && found.isSocket() && found.uid === process.getuid();
}

/** Whether Copilot was started to talk to a person: not with a prompt as an argument or in a pipe, and not as another program's agent. */
function inTerminal() {
  const parent = process.ppid;
  const isTerminal = (path) => /^\/dev\/(pts\/|tty|console)/.test(path);
  let [words, files] = [[], []];
  if (existsSync(`/proc/${parent}/cmdline`)) {
    words = readFileSync(`/proc/${parent}/cmdline`, "utf8").split("\0");
    files = [0, 1].map((fd) => readlinkSync(`/proc/${parent}/fd/${fd}`));
  } else {
    const look = { encoding: "utf8", timeout: LOOK_MS, stdio: ["ignore", "pipe", "ignore"] };
    words = execFileSync("ps", ["-o", "args=", "-p", String(parent)], look).split(/\s+/);
    const open = execFileSync("lsof", ["-w", "-a", "-p", String(parent), "-d", "0,1", "-Fn"], look).split("\n");
    files = open.filter((line) => line.startsWith("n")).map((line) => line.slice(1));
  }
  const alone = (word) => /^(--(prompt|acp|headless|server|stdio)(=|$)|-[sv]*p)/.test(word);
  return files.length === 2 && files.every(isTerminal) && !words.some(alone);
}

/** The connection to the gateway. */
class Tunnel {
  constructor(session) {
    this.session = session;
    this.id = randomBytes(16).toString("hex");
    this.path = socketPath();
    /** The questions that are open, by their ids. Copilot does not keep them. */
    this.questions = new Map();
    this.dial();
  }

  again() {
    setTimeout(() => this.dial(), AGAIN_MS).unref();
  }

  dial() {
    let socket;
    try {
      if (!isOurs(this.path)) return this.again();
      socket = connect(this.path);
    } catch {
      return this.again();
    }
    socket.unref();
    socket.setEncoding("utf8");
    let [parts, length, over] = [[], 0, false];
    const end = () => {
      if (over) return;
      over = true;
      if (this.socket === socket) this.socket = undefined;
      socket.destroy();
      this.again();
    };
    socket.on("error", end);
    socket.on("close", end);
    socket.on("end", end);
    socket.on("connect", async () => {
      try {
        const { workingDirectory } = await this.session.rpc.metadata.snapshot();
        if (over) return;
        [this.socket, this.end] = [socket, end];
        this.say({ link: 1, agent: "copilot", role: "tunnel", id: this.id, pid: process.ppid });
        this.say({ event: { type: "plexus.hello", session: this.session.sessionId, cwd: workingDirectory } });
      } catch {
        end();
      }
    });
    socket.on("data", (more) => {
      let from = 0;
      for (let at = more.indexOf("\n"); at >= 0; at = more.indexOf("\n", from)) {
        this.asked([...parts, more.slice(from, at)].join(""), socket, end);
        [parts, length, from] = [[], 0, at + 1];
      }
      parts.push(more.slice(from));
      length += more.length - from;
      if (length > REQUEST_MAX) end();
    });
  }

  say(message) {
    const socket = this.socket;
    if (!socket) return;
    if (socket.writableLength > UNREAD_MAX) return this.end();
    const text = JSON.stringify(message);
    if (Buffer.byteLength(text) <= MESSAGE_MAX) {
      socket.write(`${text}\n`);
    } else if (message.reply) {
      this.say({ reply: { id: message.reply.id, error: `the response is longer than ${MESSAGE_MAX} bytes` } });
    }
  }

  /** Something happened in the session. */
  heard(event) {
    if (!PASSED_ON.has(event.type)) return;
    this.remember(event);
    this.say({ event });
  }

  /** Keeps what a gateway that comes later cannot read: the text that streams, and open questions. */
  remember({ type, data, agentId }) {
    if (type === "elicitation.requested") {
      this.questions.set(data.requestId, data);
      if (this.questions.size > QUESTIONS_MAX) this.questions.delete(this.questions.keys().next().value);
    } else if (type === "elicitation.completed") {
      this.questions.delete(data.requestId);
    } else if (agentId || data.parentToolCallId) {
      // What a subagent says is not shown.
    } else if (type === "assistant.message_start") {
      this.partial = { messageId: data.messageId, text: "" };
    } else if (type === "assistant.message_delta" && this.partial?.messageId === data.messageId) {
      this.partial.text += data.deltaContent;
      if (this.partial.text.length > PARTIAL_MAX) this.partial = undefined;
    } else if (type === "assistant.message" || type === "session.idle") {
      this.partial = undefined;
    }
  }

  /** Makes a request of the gateway. */
  async asked(line, socket, end) {
    let reply;
    try {
      const { request } = JSON.parse(line);
      // The end of a helper: the gateway hangs up.
      if (!request) return end();
      try {
        reply = { id: request.id, ...(await this.made(request)) };
      } catch (error) {
        reply = { id: request.id, error: String(error?.message ?? error) };
      }
    } catch {
      return;
    }
    if (this.socket === socket) this.say({ reply });
  }

  /** The requests that the gateway may have made: reads, answers, a prompt, a stop. */
  async made({ method, path, body }) {
    const { rpc } = this.session;
    const [, what, id, more] = path.split("/");
    const route = `${method} ${what}`;
    if (more === undefined && route === "GET events") return { status: 200, body: await this.events(id) };
    if (more === undefined && id === undefined && route === "POST abort") {
      return { status: 200, body: await rpc.abort({}) };
    }
    if (more === undefined && id === undefined && route === "POST send" && typeof body?.prompt === "string") {
      return { status: 200, body: await rpc.send({ prompt: body.prompt }) };
    }
    if (more === undefined && route === "POST permission" && DECISIONS.has(body?.kind)) {
      const answer = { requestId: id, result: body };
      return { status: 200, body: await rpc.permissions.handlePendingPermissionRequest(answer) };
    }
    if (more === undefined && route === "POST question" && typeof body?.action === "string") {
      return { status: 200, body: await rpc.ui.handlePendingElicitation({ requestId: id, result: body }) };
    }
    return { status: 403, body: { message: "not a request that the extension makes for Plexus" } };
  }

  /** Reads at most so many events, and fewer where they are long. One that is longer than a page is left out. */
  async read(which, most) {
    for (let max = most; ; max = Math.ceil(max / 4)) {
      const page = await this.session.rpc.eventLog.read({ ...which, max });
      if (Buffer.byteLength(JSON.stringify(page.events)) <= PAGE_BYTES) return page;
      if (max === 1) return { ...page, events: [] };
    }
  }

  /** The events since a cursor (in hexadecimal digits), or the last ones; and how the session stands, once there are no more. */
  async events(hex) {
    const { eventLog, metadata, name, permissions } = this.session.rpc;
    const which = { types: KEPT, includeEphemeral: false };
    let page;
    if (hex) {
      const cursor = Buffer.from(hex, "hex").toString("utf8");
      page = await this.read({ ...which, cursor }, PAGE_MAX);
    }
    const expired = page !== undefined && page.cursorStatus !== "ok";
    if (page === undefined || expired) {
      const { cursor } = await eventLog.tail();
      const past = expired ? { events: [] } : await this.read({ ...which, direction: "backward" }, PAST_MAX);
      page = { events: past.events, cursor, older: past.hasMore };
    }
    const reply = { events: page.events, cursor: page.cursor, older: page.older === true, expired, more: page.hasMore === true };
    if (reply.more) return reply;
    const title = (await name.get()).name ?? undefined;
    const { processing } = await metadata.isProcessing();
    const pending = (await permissions.pendingRequests()).items;
    const questions = [...this.questions.values()];
    return { ...reply, state: { title, processing, pending, questions, partial: this.partial } };
  }
}

/** Whether Copilot talks to a person, as far as that can be seen. */
function withPerson() {
  try {
    return inTerminal();
  } catch {
    return false;
  }
}

try {
  if (withPerson()) {
    // Copilot tells of its questions only to who can answer them. They are answered by their ids, when the gateway says so.
    const onPermissionRequest = () => ({ kind: "no-result" });
    const session = await joinSession({ streaming: true, onPermissionRequest });
    const tunnel = new Tunnel(session);
    session.on((event) => {
      try {
        tunnel.heard(event);
      } catch {
        // An event that cannot be written as JSON is not passed on.
      }
    });
  } else {
    // Copilot waits half a minute for an extension that does not join.
    await joinSession();
  }
} catch {
  // Without a session there is nothing to show: its person said no, most likely.
  process.exit(0);
}
