// Written by `plexus link opencode`; `plexus link opencode --remove` deletes it.
//
// Shows the sessions of `opencode` in this terminal to the Plexus gateway of the same user: what happens is passed on to the gateway's
// link socket, and the few requests of ALLOWED are made when the gateway asks for them. Nothing else: it prints nothing, it decides
// nothing, OpenCode never waits for it, and without a gateway it does nothing but look for one. Only plain `opencode` runs plugins in a
// worker: `opencode serve`, `acp` and `run` are shown by whatever started them, if at all.

import { randomBytes } from "node:crypto";
import { lstatSync } from "node:fs";
import { connect } from "node:net";
import { homedir, platform } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { isMainThread } from "node:worker_threads";

/** The pause before the gateway is looked for again. */
const AGAIN_MS = 500;
/** Bytes that the gateway has not read. Beyond this the connection is made anew, and the gateway reads what it missed. */
const UNREAD_MAX = 8 << 20;
/** Longest message to the gateway, in bytes, which hangs up on a longer one. Such an event is left out, and such a reply is an error. */
const MESSAGE_MAX = 31 << 20;
/** Longest request of the gateway, in characters: a prompt with images. Beyond this the connection is made anew. */
const REQUEST_MAX = 48 << 20;
/** Sessions that the gateway is told of when it is found; of more, the latest. */
const SESSIONS_MAX = 64;
/** The events that are about a session. */
const ABOUT_SESSIONS = /^(session|message|permission|question|todo)\./;
/** The requests that the gateway may have made: reads, answers, prompts and stops. */
const ALLOWED = [
  /^GET \/global\/health$/,
  /^GET \/config\/providers$/,
  /^GET \/session(\/[\w-]+(\/message)?)?$/,
  /^GET \/(permission|question)$/,
  /^POST \/permission\/[\w-]+\/reply$/,
  /^POST \/question\/[\w-]+\/(reply|reject)$/,
  /^POST \/session\/[\w-]+\/(prompt_async|abort)$/,
];

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

/** What the gateway needs of a reply: no provider's key leaves the process. */
function lessened(path, body) {
  if (!path.startsWith("/config/providers") || !Array.isArray(body?.providers)) return body;
  const model = ({ id, name, limit }) => ({ id, name, limit });
  const models = (all) => Object.fromEntries(Object.entries(all ?? {}).map(([key, one]) => [key, model(one)]));
  return {
    providers: body.providers.map((provider) => ({ id: provider.id, models: models(provider.models) })),
    default: body.default,
  };
}

/** The connection to the gateway for one folder. It is kept when OpenCode loads its plugins again. */
class Tunnel {
  constructor(directory) {
    this.directory = directory;
    this.id = randomBytes(16).toString("hex");
    this.path = socketPath();
    /** The sessions that something happened in: the gateway may be found later. */
    this.sessions = new Set();
    this.dial();
  }

  /** Something happened in OpenCode. */
  happened(event) {
    const { sessionID, info, part } = event.properties ?? {};
    const session = sessionID ?? info?.sessionID ?? part?.sessionID;
    if (session && event.type !== "session.deleted") {
      this.sessions.delete(session);
      this.sessions.add(session);
      if (this.sessions.size > SESSIONS_MAX) this.sessions.delete(this.sessions.values().next().value);
    }
    this.say({ event });
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
    socket.on("connect", () => {
      [this.socket, this.end] = [socket, end];
      this.say({ link: 1, agent: "opencode", role: "tunnel", id: this.id, pid: process.pid });
      this.say({ event: { type: "plexus.hello", directory: this.directory, sessions: [...this.sessions] } });
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

  /** Makes a request of the gateway. */
  async asked(line, socket, end) {
    let reply;
    try {
      const { request } = JSON.parse(line);
      // The end of a helper: the gateway hangs up.
      if (!request) return end();
      reply = { id: request.id, ...(await this.made(request)) };
    } catch {
      return;
    }
    if (this.socket === socket) this.say({ reply });
  }

  async made({ method, path, body }) {
    const route = `${method} ${path.split("?")[0]}`;
    if (!ALLOWED.some((allowed) => allowed.test(route))) {
      return { status: 403, body: { message: "not a request that the plugin makes for Plexus" } };
    }
    try {
      const headers = { "content-type": "application/json" };
      const { data, error, response } = await this.client.request({ method, url: path, body, headers });
      if (!response) return { error: String(error) };
      return { status: response.status, body: lessened(path, data ?? error) };
    } catch (error) {
      return { error: String(error) };
    }
  }
}

/** The tunnels by folder: plugins may be loaded again, as another module. */
const tunnels = (globalThis[Symbol.for("plexus.tunnels")] ??= new Map());

export const Plexus = async ({ client, directory }) => {
  if (isMainThread) return {};
  try {
    if (!tunnels.has(directory)) tunnels.set(directory, new Tunnel(directory));
    const tunnel = tunnels.get(directory);
    tunnel.client = client._client;
    // Installed twice, only the last one speaks.
    const mine = (tunnel.hook = {});
    const event = async ({ event }) => {
      try {
        if (tunnel.hook === mine && ABOUT_SESSIONS.test(event.type)) tunnel.happened(event);
      } catch {
        // An event that cannot be written as JSON is not passed on.
      }
    };
    return { event };
  } catch {
    return {};
  }
};
