// A model on loopback for the agents under test: it serves four vendors' streaming APIs and says what the prompt's script says.
//
//   node fake_model.mjs [--port N] [--log FILE]
//
// It prints `listening 127.0.0.1:PORT` when it is ready (port 0, the default, means any free one) and exits when its stdin
// closes, so that it cannot outlive the test that started it. --log appends each request as one line of JSON.
// The scripts are in fake_script.mjs. Routes go by the end of the path, whatever stands before it:
//
//   Gemini      POST ..:streamGenerateContent | ..:generateContent | ..:countTokens | ..:embedContent
//   Responses   POST ../responses
//   Chat        POST ../chat/completions
//   Anthropic   POST ../messages | ../messages/count_tokens
//   any         GET  ../models
import fs from 'node:fs';
import http from 'node:http';
import { parseArgs } from 'node:util';
import { inTermsOf, reply, standing } from './fake_script.mjs';

const { values: options } = parseArgs({ options: { port: { type: 'string', default: '0' }, log: { type: 'string' } } });
/** `stall` ends by itself after this long, so that a client that never leaves does not hold its socket for ever. */
const STALL_MS = 120_000;
const MODEL = 'fake-model';

let made = 0;
const freshId = (prefix) => `${prefix}_${(made += 1).toString(36).padStart(8, '0')}`;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const list = (value) => (Array.isArray(value) ? value : []);
/** The text in a message's content, which is a string or a list of parts, in every one of these APIs. */
const textOf = (content) =>
  typeof content === 'string' ? content
    : list(content).map((part) => part?.text ?? part?.output ?? (typeof part?.content === 'string' ? part.content : '')).join('\n');
const byName = (tools, name = (tool) => tool.name) => new Map(tools.map((tool) => [name(tool) ?? tool.type, tool]));

function json(res, status, body) {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify(body));
}

function openStream(res) {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
}

/** Streams thoughts and chunks through `think` and `text`. True when the stream is to be finished properly. */
async function play(res, said, think, text) {
  for (const [pieces, emit] of [[said.thoughts, think], [said.chunks, text]]) {
    for (const piece of pieces) {
      if (res.destroyed) return false;
      emit(piece);
      if (said.gapMs > 0) await sleep(said.gapMs);
    }
  }
  if (said.end === 'stall') {
    const until = Date.now() + STALL_MS;
    while (!res.destroyed && Date.now() < until) await sleep(50);
  }
  if (said.end !== 'finish') res.destroy();
  return !res.destroyed;
}

// ---- Gemini -----------------------------------------------------------------------------------------------------------------

async function gemini(res, body, path) {
  const method = path.slice(path.lastIndexOf(':') + 1);
  if (method === 'countTokens') return json(res, 200, { totalTokens: 100 });
  if (method === 'embedContent') return json(res, 200, { embedding: { values: [0.5, 0.5] } });

  const frame = (parts, finishReason) => ({
    candidates: [{ index: 0, content: { role: 'model', parts }, ...(finishReason && { finishReason }) }],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
    modelVersion: MODEL,
  });
  if (method === 'generateContent') {
    // Only Gemini CLI's own side questions come this way (who speaks next, which model, a summary).
    const wantsJson = body.generationConfig?.responseMimeType === 'application/json';
    const answer = { reasoning: 'scripted', next_speaker: 'user', model_choice: 'flash', complexity_reasoning: 'scripted', complexity_score: 1, summary: 'scripted' };
    return json(res, 200, frame([{ text: wantsJson ? JSON.stringify(answer) : 'A scripted summary.' }], 'STOP'));
  }

  const turns = list(body.contents).map(({ role, parts }) => {
    const results = list(parts).filter((part) => part.functionResponse).map((part) => part.functionResponse.response);
    if (results.length) return { results: JSON.stringify(results) };
    return role === 'user' ? { user: textOf(parts) } : {};
  });
  const said = reply(standing(turns));
  if (said.status) {
    const status = { 400: 'INVALID_ARGUMENT', 429: 'RESOURCE_EXHAUSTED' }[said.status] ?? 'INTERNAL';
    return json(res, said.status, { error: { code: said.status, message: `scripted error ${said.status}`, status } });
  }
  openStream(res);
  const send = (parts, finish) => res.write(`data: ${JSON.stringify(frame(parts, finish))}\r\n\r\n`);
  if (said.calls) {
    const declared = byName(list(body.tools).flatMap((tool) => list(tool.functionDeclarations)));
    send(said.calls.map((wanted) => inTermsOf(wanted, declared)).map(({ name, args }) => ({ functionCall: { name, args } })));
  } else {
    const thought = (text) => send([{ text: `**${text.trim()}** considered`, thought: true }]);
    if (!(await play(res, said, thought, (text) => send([{ text }])))) return;
  }
  send([{ text: '' }], 'STOP');
  res.end();
}

// ---- OpenAI Responses -------------------------------------------------------------------------------------------------------

/** An output item for one call, by the kind of tool that the agent declared. */
function responsesCall({ name, args, tool }) {
  const common = { call_id: freshId('call'), status: 'completed' };
  if (tool?.type === 'custom') return { type: 'custom_tool_call', id: freshId('ctc'), ...common, name, input: args.input ?? '' };
  if (tool?.type === 'local_shell') return { type: 'local_shell_call', id: freshId('lsh'), ...common, action: { type: 'exec', command: args.command, env: {} } };
  return { type: 'function_call', id: freshId('fc'), ...common, ...(tool?.namespace && { namespace: tool.namespace }), name: tool?.namespace ? tool.name : name, arguments: JSON.stringify(args) };
}

/** The declared tools; those of a namespace (Codex has one for each MCP server) under both names together. */
function responsesTools(tools) {
  const declared = byName(tools.filter((tool) => tool.type !== 'namespace'));
  for (const { name: namespace, tools: inside } of tools.filter((tool) => tool.type === 'namespace')) {
    for (const tool of list(inside)) declared.set(`${namespace}__${tool.name}`, { ...tool, namespace });
  }
  if (tools.some((tool) => tool.type === 'tool_search')) {
    // Those of MCP servers are not declared before a search has found them; they can be called all the same.
    const get = declared.get.bind(declared);
    declared.get = (wanted) => {
      const [, namespace, name] = /^(mcp__.+)__(.+)$/.exec(wanted) ?? [];
      return get(wanted) ?? (name && { type: 'function', namespace, name });
    };
  }
  return declared;
}

async function responses(res, body) {
  const input = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : list(body.input);
  const turns = input.map((item) => {
    if (item.type?.endsWith('_output')) return { results: typeof item.output === 'string' ? item.output : textOf(item.output) || JSON.stringify(item.output) };
    return item.role === 'user' ? { user: textOf(item.content) } : {};
  });
  const said = reply(standing(turns));
  if (said.status) return json(res, said.status, { error: { message: `scripted error ${said.status}`, type: 'server_error', code: 'scripted' } });

  const shell = { id: freshId('resp'), object: 'response', created_at: 0, model: body.model ?? MODEL, parallel_tool_calls: true, tool_choice: 'auto', tools: [] };
  const usage = { input_tokens: 100, input_tokens_details: { cached_tokens: 0 }, output_tokens: 10, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 110 };
  const message = (id, text) => ({ type: 'message', id, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] });
  const output = [];
  const completed = () => ({ ...shell, status: 'completed', output, usage });
  const calls = said.calls?.map((wanted) => responsesCall(inTermsOf(wanted, responsesTools(list(body.tools)))));
  if (!body.stream) {
    output.push(...(calls ?? [message(freshId('msg'), said.chunks.join(''))]));
    return json(res, 200, completed());
  }

  openStream(res);
  let sequence = 0;
  const send = (type, fields) => {
    res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields, sequence_number: sequence })}\n\n`);
    sequence += 1;
  };
  const done = (item) => {
    send('response.output_item.done', { output_index: output.length, item });
    output.push(item);
  };
  send('response.created', { response: { ...shell, status: 'in_progress', output: [] } });
  if (calls) {
    for (const item of calls) {
      const at = { output_index: output.length, item_id: item.id };
      const isFunction = item.type === 'function_call';
      send('response.output_item.added', { output_index: at.output_index, item: { ...item, status: 'in_progress', ...(isFunction && { arguments: '' }) } });
      if (isFunction) {
        send('response.function_call_arguments.delta', { ...at, delta: item.arguments });
        send('response.function_call_arguments.done', { ...at, arguments: item.arguments });
      }
      done(item);
    }
  } else {
    if (said.thoughts.length) {
      const id = freshId('rs');
      const at = { output_index: output.length, item_id: id, summary_index: 0 };
      send('response.output_item.added', { output_index: at.output_index, item: { type: 'reasoning', id, summary: [] } });
      send('response.reasoning_summary_part.added', { ...at, part: { type: 'summary_text', text: '' } });
      const thought = (delta) => send('response.reasoning_summary_text.delta', { ...at, delta });
      if (!(await play(res, { ...said, chunks: [], end: 'finish' }, thought, () => {}))) return;
      done({ type: 'reasoning', id, summary: [{ type: 'summary_text', text: said.thoughts.join('') }] });
    }
    const id = freshId('msg');
    const at = { output_index: output.length, item_id: id, content_index: 0 };
    send('response.output_item.added', { output_index: at.output_index, item: { type: 'message', id, role: 'assistant', status: 'in_progress', content: [] } });
    send('response.content_part.added', { ...at, part: { type: 'output_text', text: '', annotations: [] } });
    const text = (delta) => send('response.output_text.delta', { ...at, delta });
    if (!(await play(res, { ...said, thoughts: [] }, () => {}, text))) return;
    send('response.output_text.done', { ...at, text: said.chunks.join('') });
    done(message(id, said.chunks.join('')));
  }
  send('response.completed', { response: completed() });
  res.end();
}

// ---- OpenAI chat completions ------------------------------------------------------------------------------------------------

async function chat(res, body) {
  const messages = list(body.messages);
  const turns = messages.map(({ role, content }) => {
    if (role === 'tool') return { results: textOf(content) };
    return role === 'user' ? { user: textOf(content) } : {};
  });
  const system = messages.filter(({ role }) => role === 'system').map(({ content }) => textOf(content)).join('\n');
  // OpenCode asks for a title with the user's prompt in it; playing the script there would run it twice.
  const isTitle = !list(body.tools).length && /title/i.test(system);
  const said = isTitle ? { chunks: ['Scripted ', 'title'], thoughts: [], gapMs: 0, end: 'finish' } : reply(standing(turns));
  if (said.status) return json(res, said.status, { error: { message: `scripted error ${said.status}`, type: 'server_error', code: 'scripted' } });

  const shell = { id: freshId('chatcmpl'), created: 0, model: body.model ?? MODEL };
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
  const declared = byName(list(body.tools), (tool) => tool.function?.name);
  const calls = said.calls?.map((wanted) => {
    // The schema that decides how to call a tool is a level deeper in this API.
    const { name, args } = inTermsOf(wanted, new Map([...declared].map(([key, tool]) => [key, tool.function])));
    return { id: freshId('call'), type: 'function', function: { name, arguments: JSON.stringify(args) } };
  });
  const finish_reason = calls ? 'tool_calls' : 'stop';
  if (!body.stream) {
    const message = { role: 'assistant', content: calls ? null : said.chunks.join(''), ...(calls && { tool_calls: calls }) };
    return json(res, 200, { ...shell, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage });
  }
  openStream(res);
  const send = (delta, finish = null, more = {}) =>
    res.write(`data: ${JSON.stringify({ ...shell, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`);
  send({ role: 'assistant', content: '' });
  if (calls) calls.forEach((one, index) => send({ tool_calls: [{ index, ...one }] }));
  else if (!(await play(res, said, (reasoning_content) => send({ reasoning_content }), (content) => send({ content })))) return;
  send({}, finish_reason, { usage });
  res.end('data: [DONE]\n\n');
}

// ---- Anthropic messages -----------------------------------------------------------------------------------------------------

async function anthropic(res, body) {
  const turns = list(body.messages).flatMap(({ role, content }) => {
    if (role !== 'user') return [{}];
    const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : list(content);
    const results = parts.filter((part) => part.type === 'tool_result').map((part) => textOf(part.content)).join('\n');
    const text = textOf(parts.filter((part) => part.type === 'text'));
    return [...(parts.some((part) => part.type === 'tool_result') ? [{ results }] : []), ...(text ? [{ user: text }] : [])];
  });
  // Claude Code's side questions (titles, topics) want JSON and bring no tools.
  const isSide = !list(body.tools).length && Boolean(body.output_config?.format ?? body.output_format);
  const said = isSide
    ? { chunks: [JSON.stringify({ title: 'Scripted title', isNewTopic: true })], thoughts: [], gapMs: 0, end: 'finish' }
    : reply(standing(turns));
  if (said.status) {
    const type = { 400: 'invalid_request_error', 429: 'rate_limit_error', 529: 'overloaded_error' }[said.status] ?? 'api_error';
    return json(res, said.status, { type: 'error', error: { type, message: `scripted error ${said.status}` } });
  }
  const declared = byName(list(body.tools));
  const calls = said.calls?.map((wanted) => inTermsOf(wanted, declared)).map(({ name, args }) => ({ type: 'tool_use', id: freshId('toolu'), name, input: args }));
  const stop_reason = calls ? 'tool_use' : 'end_turn';
  const message = { id: freshId('msg'), type: 'message', role: 'assistant', model: body.model ?? MODEL, content: [], stop_reason: null, stop_sequence: null };
  const usage = { input_tokens: 100, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 10 };
  if (!body.stream) return json(res, 200, { ...message, content: calls ?? [{ type: 'text', text: said.chunks.join('') }], stop_reason, usage });

  openStream(res);
  const send = (type, fields = {}) => res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
  send('message_start', { message: { ...message, usage } });
  let index = 0;
  const block = async (content_block, fill) => {
    send('content_block_start', { index, content_block });
    const whole = await fill((delta) => send('content_block_delta', { index, delta }));
    if (whole) send('content_block_stop', { index });
    index += 1;
    return whole;
  };
  if (calls) {
    for (const one of calls) {
      await block({ ...one, input: {} }, async (delta) => {
        delta({ type: 'input_json_delta', partial_json: JSON.stringify(one.input) });
        return true;
      });
    }
  } else {
    if (said.thoughts.length) {
      const whole = await block({ type: 'thinking', thinking: '', signature: '' }, async (delta) => {
        const thought = (thinking) => delta({ type: 'thinking_delta', thinking });
        const played = await play(res, { ...said, chunks: [], end: 'finish' }, thought, () => {});
        if (played) delta({ type: 'signature_delta', signature: 'c2NyaXB0ZWQ=' });
        return played;
      });
      if (!whole) return;
    }
    const text = (delta) => play(res, { ...said, thoughts: [] }, () => {}, (piece) => delta({ type: 'text_delta', text: piece }));
    if (!(await block({ type: 'text', text: '' }, text))) return;
  }
  send('message_delta', { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 10 } });
  send('message_stop');
  res.end();
}

// ---- The server -------------------------------------------------------------------------------------------------------------

const ROUTES = [
  ['POST', /:(streamGenerateContent|generateContent|countTokens|embedContent)$/, gemini],
  ['POST', /\/responses$/, responses],
  ['POST', /\/chat\/completions$/, chat],
  ['POST', /\/messages$/, anthropic],
  ['POST', /\/messages\/count_tokens$/, (res) => json(res, 200, { input_tokens: 100 })],
  ['GET', /\/models$/, (res) => json(res, 200, { object: 'list', data: [{ id: MODEL, object: 'model', created: 0, owned_by: 'fake' }], models: [] })],
];

const server = http.createServer(async (req, res) => {
  const path = new URL(req.url, 'http://loopback').pathname;
  try {
    const pieces = [];
    for await (const piece of req) pieces.push(piece);
    const raw = Buffer.concat(pieces).toString();
    if (options.log) fs.appendFileSync(options.log, `${JSON.stringify({ method: req.method, url: req.url, headers: req.headers, body: raw })}\n`);
    const route = ROUTES.find(([method, pattern]) => method === req.method && pattern.test(path));
    if (!route) return json(res, 404, { error: { code: 404, status: 'NOT_FOUND', type: 'not_found_error', message: `no such route: ${req.method} ${path}` } });
    let body = {};
    try {
      if (raw) body = JSON.parse(raw);
    } catch (why) {
      return json(res, 400, { error: { code: 400, status: 'INVALID_ARGUMENT', type: 'invalid_request_error', message: why.message } });
    }
    await route[2](res, body, path);
  } catch (why) {
    // A client that leaves in the middle lands here as well; the process serves the others on.
    process.stderr.write(`fake model: ${req.method} ${path}: ${why.stack}\n`);
    res.destroy();
  }
});
server.on('error', (why) => {
  process.stderr.write(`fake model: ${why.message}\n`);
  process.exit(1);
});
server.listen(Number(options.port), '127.0.0.1', () => process.stdout.write(`listening 127.0.0.1:${server.address().port}\n`));

process.stdin.on('end', () => process.exit(0));
process.stdin.on('error', () => process.exit(0));
process.stdin.resume();
