// The frame of the page, and what runs beside it.
import './lib/theme.js';
import './ui/app.js';
import { holdFiles, keepFiles } from './lib/shell.js';
import { startNotify } from './notify/index.js';

/** Delay after which the page's files are stored for use without a network, if the gateway was not reached until then, ms: they must not
 *  compete with the first content. */
const KEEP_MS = 8_000;

startNotify();

holdFiles();
// With a connection they are stored as soon as it is established (see `readVersion` in wire/gateway.ts).
setTimeout(() => void keepFiles(), KEEP_MS);
