// Compresses what was built: beside each text file of `dist` its `.br` and its `.gz`.
//
//   node pack.mjs           makes them; one that already holds the same text stays, for two versions of a compressor may differ in a byte
//   node pack.mjs --check   only proves that each is there and holds its file's text, and that there are no others
//   node pack.mjs --clean   removes what the page's build makes and nothing names any more; run before a build
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync, gzipSync } from 'node:zlib';

const DIST = 'dist';
const TEXT = /\.(?:js|css|html|svg|webmanifest)$/;
/** Below this a compressed file saves no packet. Bytes. */
const SMALL = 600;

const kinds = [
  {
    end: '.br',
    pack: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }),
    unpack: brotliDecompressSync,
  },
  { end: '.gz', pack: (bytes) => gzipSync(bytes, { level: 9 }), unpack: gunzipSync },
];

const all = () => !existsSync(DIST) ? [] : readdirSync(DIST, { recursive: true, withFileTypes: true }).filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name)).sort();
const read = (path) => { try { return readFileSync(path); } catch { return null; } };
const holds = (kind, path, bytes) => { try { return kind.unpack(readFileSync(path)).equals(bytes); } catch { return false; } };

const mode = process.argv[2] ?? '';
if (mode === '--clean') {
  for (const path of all()) if (!/\.(?:br|gz)$/.test(path)) rmSync(path);
  process.exit(0);
}

const wanted = new Set();
for (const path of all()) {
  if (!TEXT.test(path)) continue;
  const bytes = readFileSync(path);
  if (bytes.length < SMALL) continue;
  for (const kind of kinds) {
    const to = path + kind.end;
    wanted.add(to);
    if (holds(kind, to, bytes)) continue;
    if (mode === '--check') throw new Error(`${to} ${read(to) ? 'holds another text than its file' : 'is missing'}`);
    writeFileSync(to, kind.pack(bytes));
  }
}
for (const path of all()) {
  if (!/\.(?:br|gz)$/.test(path) || wanted.has(path)) continue;
  if (mode === '--check') throw new Error(`${path} belongs to no file`);
  rmSync(path);
}
