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
/** Longest request of the gateway, in characters: a prompt with images. Beyond this the connection is made anew. */
const REQUEST_MAX = 48 << 20;
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
    let [text, over] = ["", false];
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
      this.say({ event: { type: "plexus.hello", directory: this.directory } });
    });
    socket.on("data", (more) => {
      const lines = (text + more).split("\n");
      text = lines.pop();
      for (const line of lines) this.asked(line, socket, end);
      if (text.length > REQUEST_MAX) end();
    });
  }

  say(message) {
    const socket = this.socket;
    if (!socket) return;
    if (socket.writableLength > UNREAD_MAX) return this.end();
    socket.write(`${JSON.stringify(message)}\n`);
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
        if (tunnel.hook === mine && ABOUT_SESSIONS.test(event.type)) tunnel.say({ event });
      } catch {
        // An event that cannot be written as JSON is not passed on.
      }
    };
    return { event };
  } catch {
    return {};
  }
};
