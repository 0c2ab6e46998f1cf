// The frame of the page, and what runs beside it.
import './lib/theme.js';
import './ui/app.js';
import { holdFiles, keepFiles } from './lib/shell.js';
import { startNotify } from './notify/index.js';

/** When the page's files are kept for use without a network, if the gateway was not reached until then, ms: they must not compete with what is shown first. */
const KEEP_MS = 8_000;

startNotify();

holdFiles();
// With the connection they are kept as soon as it stands (see `readVersion` in wire/gateway.ts).
setTimeout(() => void keepFiles(), KEEP_MS);
