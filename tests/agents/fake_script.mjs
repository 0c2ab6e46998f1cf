// What the loopback model says: pure functions from a conversation to a reply. Nothing is remembered between requests.
//
// The last user message that holds "FAKE:" is the script. Its steps are joined by " ;; ". Every round of tool results that
// follows that message moves on by one step; past the last step the model says "All done." and quotes the last result.
//
//   FAKE:text [WORDS..]        the words, a chunk each (a greeting when there are none)
//   FAKE:long N [MS]           N chunks `chunk-0001 ` .., MS apart (default 5)
//   FAKE:lines N [MS]          N lines `line-0001` .., MS apart
//   FAKE:think N               N thoughts `thought-1 ` .., then a short text
//   FAKE:shell CMD             one call of the agent's shell tool
//   FAKE:shell2 CMD | CMD      two (or more) shell calls in one reply
//   FAKE:write PATH TEXT       one call of the tool that writes a file
//   FAKE:edit PATH OLD NEW     one call of the tool that replaces text in a file (words without spaces)
//   FAKE:read PATH             one call of the tool that reads a file
//   FAKE:tool NAME JSON        one call of any tool, arguments as they stand
//   FAKE:error STATUS          an HTTP error instead of a stream
//   FAKE:drop N                N chunks `part-1 ` .., then the connection is destroyed
//   FAKE:stall N               N chunks, then silence until the client leaves (at most STALL_MS)

const MARK = 'FAKE:';
const GAP_MS = 5;

const numbered = (n, name) => Array.from({ length: n }, (_, i) => name(i + 1));
const count = (word, otherwise) => (/^\d+$/.test(word ?? '') ? Number(word) : otherwise);
const words = (text) => text.split(/(?<= )/);
const say = (chunks, more = {}) => ({ chunks, thoughts: [], gapMs: GAP_MS, end: 'finish', ...more });
const call = (...calls) => ({ calls });

/** The steps in `text`, or null when it holds no script. Agents wrap prompts, so a script ends with its line. */
export function stepsIn(text) {
  const at = text.lastIndexOf(MARK);
  if (at < 0) return null;
  const line = text.slice(at + MARK.length).split('\n', 1)[0];
  // Closing quotes and tags of a wrapper are cut off; only `tool` carries JSON, which needs its quotes.
  const script = line.startsWith('tool ') ? line : line.split(/[<"]/, 1)[0];
  return script.split(' ;; ').map((step) => step.trim()).filter(Boolean);
}

/**
 * Where a conversation stands. `turns` are `{user: text}`, `{results: text}` (tool results) and `{}` (anything else), in order;
 * adjoining `results` are one round, because a reply with two calls comes back as one or as two of them.
 */
export function standing(turns) {
  let steps = null;
  let round = 0;
  let last = '';
  let before = null;
  for (const turn of turns) {
    if (turn.results !== undefined) {
      if (before?.results === undefined) round += 1;
      last = turn.results;
    } else if (turn.user !== undefined) {
      const found = stepsIn(turn.user);
      if (found) [steps, round, last] = [found, 0, ''];
    }
    before = turn;
  }
  return { steps, round, last };
}

/** The reply to a conversation: `{status}`, `{calls}`, or `{thoughts, chunks, gapMs, end: finish|drop|stall}`. */
export function reply({ steps, round, last }) {
  if (!steps) return say(words(`There is no ${MARK} script in this conversation.`));
  if (round >= steps.length) {
    const quote = last.replace(/\s+/g, ' ').slice(0, 160);
    return say(['All done. ', `${round} tool round(s). `, `Last: ${quote}`]);
  }
  const [verb, ...args] = steps[round].split(' ');
  const rest = args.join(' ');
  switch (verb) {
    case 'text':
      return say(words(rest || 'Hello from the loopback model, one word at a time.'));
    case 'long':
      return say(numbered(count(args[0], 500), (i) => `chunk-${String(i).padStart(4, '0')} `), { gapMs: count(args[1], GAP_MS) });
    case 'lines':
      return say(numbered(count(args[0], 20), (i) => `line-${String(i).padStart(4, '0')}\n`), { gapMs: count(args[1], GAP_MS) });
    case 'think':
      return say(words('Thought it over.'), { thoughts: numbered(count(args[0], 5), (i) => `thought-${i} `) });
    case 'shell':
      return call({ want: 'shell', command: rest });
    case 'shell2':
      return call(...rest.split(' | ').map((command) => ({ want: 'shell', command })));
    case 'write':
      return call({ want: 'write', path: args[0], content: `${args.slice(1).join(' ')}\n` });
    case 'edit':
      return call({ want: 'edit', path: args[0], from: args[1], to: args[2] });
    case 'read':
      return call({ want: 'read', path: args[0] });
    case 'tool':
      try {
        return call({ name: args[0], args: JSON.parse(args.slice(1).join(' ')) });
      } catch (why) {
        return say([`The script's tool arguments are not JSON: ${why.message}`]);
      }
    case 'error':
      return { status: count(args[0], 500) };
    case 'drop':
    case 'stall':
      return say(numbered(count(args[0], 3), (i) => `part-${i} `), { end: verb });
    default:
      return say([`The script has an unknown directive: ${verb}`]);
  }
}

// How each agent names its tools. The first name that the request declares is used.
const ASK = { sandbox_permissions: 'require_escalated', justification: 'The script asks to run this.' };
const takes = (tool, name) => Boolean(tool?.parameters?.properties?.[name]);
// Vibe takes no argument that it did not declare.
const why = (tool) => (tool?.parameters?.additionalProperties === false && !takes(tool, 'description') ? {} : { description: 'Run a scripted command' });
const file = (tool, path) => (takes(tool, 'path') ? { path } : { file_path: path });
// Codex raises an approval only if the model itself asks to leave the sandbox; otherwise the command just runs inside it.
const codexAsk = (tool) => (tool?.parameters?.properties?.sandbox_permissions ? ASK : {});
const patch = ({ path, content }) => `*** Begin Patch\n*** Add File: ${path}\n${content.trimEnd().split('\n').map((l) => `+${l}`).join('\n')}\n*** End Patch\n`;
const TOOLS = {
  shell: [
    ['run_shell_command', (c, tool) => ({ command: c.command, ...why(tool) })],
    ['exec_command', (c, tool) => ({ cmd: c.command, login: false, ...codexAsk(tool) })],
    ['shell_command', (c, tool) => ({ command: c.command, ...codexAsk(tool) })],
    ['shell', (c, tool) => ({ command: ['bash', '-lc', c.command], ...codexAsk(tool) })],
    ['local_shell', (c) => ({ command: ['bash', '-lc', c.command] })],
    ['Bash', (c, tool) => ({ command: c.command, ...why(tool) })],
    ['bash', (c, tool) => ({ command: c.command, ...why(tool) })],
    ['Shell', (c) => ({ command: c.command })],
    ['run_terminal_command', (c, tool) => ({ command: c.command, ...why(tool) })],
  ],
  write: [
    ['write_file', (c, tool) => ({ ...file(tool, c.path), content: c.content })],
    ['Write', (c) => ({ file_path: c.path, content: c.content })],
    ['write', (c) => ({ filePath: c.path, content: c.content })],
    ['WriteFile', (c) => ({ path: c.path, content: c.content })],
    ['apply_patch', (c) => ({ input: patch(c) })],
  ],
  edit: [
    ['replace', (c) => ({ file_path: c.path, old_string: c.from, new_string: c.to, instruction: 'scripted edit' })],
    ['Edit', (c) => ({ file_path: c.path, old_string: c.from, new_string: c.to })],
    ['edit', (c, tool) => (takes(tool, 'file_path') ? { file_path: c.path, old_string: c.from, new_string: c.to } : { filePath: c.path, oldString: c.from, newString: c.to })],
    ['StrReplaceFile', (c) => ({ path: c.path, edit: { old: c.from, new: c.to } })],
  ],
  read: [
    ['read_file', (c, tool) => file(tool, c.path)],
    ['Read', (c) => ({ file_path: c.path })],
    ['read', (c) => ({ filePath: c.path })],
    ['ReadFile', (c) => ({ path: c.path })],
  ],
};

/** A call in the agent's own terms: `{name, args, tool}`. `declared` maps tool names to what the request says of them. */
export function inTermsOf(wanted, declared) {
  if (wanted.name) return { name: wanted.name, args: wanted.args, tool: declared.get(wanted.name) };
  const known = TOOLS[wanted.want].find(([name]) => declared.has(name));
  // Said aloud: the agent answers "no such tool", and the test that reads it sees what there was.
  if (!known) return { name: 'no_such_tool', args: { wanted: wanted.want, declared: [...declared.keys()] } };
  const [name, args] = known;
  return { name, args: args(wanted, declared.get(name)), tool: declared.get(name) };
}
