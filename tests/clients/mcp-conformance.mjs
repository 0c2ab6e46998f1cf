// The conformance tests of MCP (@modelcontextprotocol/conformance) against the tools for surfaces: `POST /mcp/{session}` of a gateway,
// or `plexus mcp` on stdio behind a listener of this script. Only the scenarios that ask for nothing but tools: the others want a
// server with tools, resources and prompts made for them.
//
// Environment: PLEXUS_URL, PLEXUS_TOKEN, PLEXUS_SESSION, PLEXUS_CLIENTS; for stdio PLEXUS_EXE and PLEXUS_HOME too.
import { spawn } from 'node:child_process';
import http from 'node:http';
import { createInterface } from 'node:readline';
import { join } from 'node:path';

const { PLEXUS_URL, PLEXUS_TOKEN, PLEXUS_SESSION, PLEXUS_CLIENTS, PLEXUS_EXE } = process.env;
const SCENARIOS = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'];
const gateway = new URL(PLEXUS_URL);

const bodyOf = async (request) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
};

/** Passes a request on to the gateway, with the token. Its own address in the headers stands for the gateway's. */
async function overHttp(request, response) {
  const here = `127.0.0.1:${server.address().port}`;
  const own = (text) => (text && text.endsWith(here) ? text.replace(here, gateway.host) : text);
  const headers = { ...request.headers, authorization: `Bearer ${PLEXUS_TOKEN}`, host: own(request.headers.host) };
  if (request.headers.origin) headers.origin = own(request.headers.origin);
  const passed = http.request({ hostname: gateway.hostname, port: gateway.port, path: `/mcp/${PLEXUS_SESSION}`, method: request.method, headers });
  passed.on('response', (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  passed.on('error', () => response.writeHead(502).end());
  passed.end(await bodyOf(request));
}

/** `plexus mcp`, one for each client that begins; the scenarios follow each other. */
const waiting = new Map();
let agent;
async function overStdio(request, response) {
  if (request.method !== 'POST') return response.writeHead(405).end();
  const message = JSON.parse(await bodyOf(request));
  if (message.method === 'initialize') {
    agent?.stdin.end();
    agent = spawn(PLEXUS_EXE, ['mcp', '--session', PLEXUS_SESSION], { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface(agent.stdout).on('line', (line) => waiting.get(JSON.parse(line).id)?.(line));
  }
  const answered = message.id === undefined ? null : new Promise((resolve) => waiting.set(message.id, resolve));
  agent.stdin.write(`${JSON.stringify(message)}\n`);
  if (!answered) return response.writeHead(202).end();
  response.writeHead(200, { 'content-type': 'application/json' }).end(await answered);
}

const server = http.createServer(PLEXUS_EXE ? overStdio : overHttp);
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const suite = join(PLEXUS_CLIENTS, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
let failed = false;
// What protects a listener on loopback is the gateway's; this script's has nothing of it.
for (const scenario of SCENARIOS.filter((name) => !PLEXUS_EXE || !name.startsWith('dns'))) {
  const args = [suite, 'server', '--url', `http://127.0.0.1:${server.address().port}/mcp`, '--scenario', scenario];
  const run = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  for (const stream of [run.stdout, run.stderr]) stream.on('data', (text) => (out += text));
  const code = await new Promise((ended) => run.on('close', ended));
  console.log(`${scenario}: ${code === 0 ? 'passed' : `failed\n${out}`}`);
  failed ||= code !== 0;
}
agent?.stdin.end();
server.close();
server.closeAllConnections();
process.exitCode = failed ? 1 : 0;
if (!failed) console.log('conforms');
