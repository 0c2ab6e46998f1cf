// The types of clients/typescript, from what the gateway says of itself: `wire-types.mjs openapi.json asyncapi.json` writes them
// to stdout. Run by scripts/web.
import { readFileSync } from 'node:fs';

const [openapi, asyncapi] = process.argv.slice(2).map((path) => JSON.parse(readFileSync(path, 'utf8')));
const schemas = { ...openapi.components.schemas, ...asyncapi.components.schemas };

const isName = (text) => /^[A-Za-z_$][\w$]*$/.test(text);
const key = (text) => (isName(text) ? text : `'${text}'`);
const indent = (text) => text.replace(/^(?=.)/gm, '  ');
const union = (parts) => [...new Set(parts)].join(' | ');
const literal = (value) => (typeof value === 'string' ? `'${value}'` : String(value));

function comment(about) {
  if (!about) return '';
  const lines = about.trim().split('\n').map((line) => line.replaceAll('*/', '*\u200b/').trimEnd());
  return lines.length === 1 ? `/** ${lines[0]} */\n` : `/**\n${lines.map((line) => ` * ${line}`.trimEnd()).join('\n')}\n */\n`;
}

/** The members of an object, a line each. */
function members(schema, replaced = {}) {
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties ?? {}).map(([name, member]) => {
    const about = comment(member.description ?? member.oneOf?.find(({ description }) => description)?.description);
    return `${about}${key(name)}${required.has(name) ? '' : '?'}: ${replaced[name] ?? type(member)};`;
  });
  if (schema.additionalProperties === true) lines.push('[member: string]: unknown;');
  return lines.join('\n');
}

function object(schema) {
  const { properties, additionalProperties: more } = schema;
  if (!properties) return typeof more === 'object' ? `Record<string, ${type(more)}>` : more === false ? 'Record<string, never>' : '{ [member: string]: unknown }';
  const own = `{\n${indent(members(schema))}\n}`;
  return typeof more === 'object' ? `${own} & { [member: string]: unknown }` : own;
}

/** A schema as a type. */
function type(schema) {
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if (schema.enum) return union(schema.enum.map(literal));
  if (schema.const !== undefined) return literal(schema.const);
  // Rules over the members of an object are not for a compiler.
  if (!schema.properties && schema.oneOf) return union(schema.oneOf.map(type));
  if (!schema.properties && schema.anyOf) {
    const parts = schema.anyOf.filter((part) => part.$ref);
    return parts.length < schema.anyOf.length ? parts.map((part) => `Partial<${type(part)}>`).join(' & ') : union(parts.map(type));
  }
  if (!schema.properties && schema.allOf) {
    const open = schema.additionalProperties === true ? ['{ [member: string]: unknown }'] : [];
    return [...schema.allOf.map(type), ...open].join(' & ');
  }
  const one = (kind) => {
    switch (kind) {
      case 'string':
      case 'boolean':
      case 'null':
        return kind;
      case 'integer':
      case 'number':
        return 'number';
      case 'array': {
        const item = type(schema.items ?? {});
        return /[ |&]/.test(item) ? `(${item})[]` : `${item}[]`;
      }
      case 'object':
        return object(schema);
      default:
        return 'unknown';
    }
  };
  return union([schema.type ?? (schema.properties ? 'object' : 'any')].flat().map(one));
}

/** An object of which a member has its type by the word that another one is: which member by which, and the types. */
function byWord(schema) {
  const rules = schema.allOf ?? [];
  if (rules.length === 0 || !rules.every((rule) => rule.if && rule.then)) return null;
  const [word] = Object.keys(rules[0].if.properties);
  const [member] = Object.keys(rules[0].then.properties);
  const types = rules.map((rule) => [rule.if.properties[word].const, type(rule.then.properties[member])]);
  return { word, member, types };
}

function declaration(name, schema) {
  const about = comment(schema.description);
  const chosen = byWord(schema);
  if (chosen) {
    const { word, member, types } = chosen;
    const words = type(schema.properties[word]);
    const bodies = types.map(([one, of]) => `${key(one)}: ${of};`).join('\n');
    const own = members(schema, { [word]: 'K', [member]: `Bodies[K]` });
    return (
      `/** The \`${member}\` of each \`${word}\`. */\nexport interface Bodies {\n${indent(bodies)}\n}\n\n` +
      `/** An \`${name}\` of this \`${word}\`. */\nexport interface ${name}Of<K extends ${words}> {\n${indent(own)}\n}\n\n` +
      `${about}export type ${name} = { [K in ${words}]: ${name}Of<K> }[${words}];\n`
    );
  }
  if (schema.properties && !schema.allOf && typeof schema.additionalProperties !== 'object') {
    return `${about}export interface ${name} {\n${indent(members(schema))}\n}\n`;
  }
  return `${about}export type ${name} = ${type(schema)};\n`;
}

/** What the WebSocket carries, by its methods. */
function messages() {
  const payload = (operation) => asyncapi.components.messages[operation.messages[0].$ref.split('/').at(-1)].payload.properties;
  const calls = [];
  const notes = [];
  const questions = [];
  for (const operation of Object.values(asyncapi.operations)) {
    const { method, params } = payload(operation);
    if (method?.const === undefined) continue;
    const about = comment(operation.summary);
    if (operation.action === 'receive') {
      const result = asyncapi.components.messages[`${method.const}.result`].payload.properties.result;
      calls.push(`${about}'${method.const}': { params: ${type(params)}; result: ${type(result)} };`);
    } else {
      (operation.reply ? questions : notes).push(`${about}'${method.const}': ${type(params)};`);
    }
  }
  const all = (name, about, lines) => `${comment(about)}export interface ${name} {\n${indent(lines.join('\n'))}\n}\n`;
  return [
    all('Methods', 'What clients call over the WebSocket: what each takes and gives.', calls),
    all('Notifications', 'What the gateway notifies clients of.', notes),
    all('Questions', 'What the gateway asks clients; each is answered with an `Answer`.', questions),
  ];
}

const names = Object.keys(schemas).sort();
process.stdout.write(
  [
    '// What is on the wire. Made by `scripts/web build` from what the gateway says of itself (`plexus schema`): not to be edited.\n' +
      '// Members that are not here may come at any time, and are let be.\n',
    ...names.map((name) => declaration(name, schemas[name])),
    ...messages(),
  ].join('\n'),
);
