/// <reference lib="webworker" />
// The service worker: the shell without a network, and pushes. It keeps no answer of the gateway's API, ever: what is shown without a
// network is the empty page, which says that it is offline.
//
// One worker knows one version of the page's files, each by its digest. It keeps all of them or none, in a cache of that version's own, so
// that files of two versions never meet. A version's cache goes when another version's worker is in charge and no page runs it.
import { fileLock } from './lib/files.js';
import './notify/worker.js';

/** Written in by the build. */
declare const __MANIFEST__: { version: string; files: Array<[path: string, sha256: string]> };

const worker = self as unknown as ServiceWorkerGlobalScope;
const { version, files } = __MANIFEST__;
const PREFIX = 'plexus-files-';
const CACHE = PREFIX + version;
const PATHS = new Set(files.map(([path]) => path));
/** How long the network may take before the kept page is shown, ms. */
const PATIENCE_MS = 2_000;

const hex = (bytes: ArrayBuffer): string => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** One file of this version. A gateway that was updated meanwhile has another: then this worker is not installed, and the next one will be. */
async function fetchExactly(path: string, sha256: string): Promise<[string, Response]> {
  // What has its digest in its name may come from the browser's own cache.
  const response = await fetch(path, { cache: path.startsWith('/assets/') ? 'default' : 'no-cache', credentials: 'same-origin', redirect: 'error' });
  const found = response.ok ? hex(await crypto.subtle.digest('SHA-256', await response.clone().arrayBuffer())) : '';
  if (found !== sha256) throw new Error(`${path}: ${response.status}, not the file of this version`);
  return [path, response];
}

async function keepAll(): Promise<void> {
  const all = await Promise.all(files.map(([path, sha256]) => fetchExactly(path, sha256)));
  const cache = await caches.open(CACHE);
  await Promise.all(all.map(([path, response]) => cache.put(path, response)));
}

/** Removes the files of other versions that no page runs any more. */
async function sweep(): Promise<void> {
  for (const name of await caches.keys()) {
    if (name === CACHE) continue;
    if (!name.startsWith(PREFIX)) {
      // What earlier versions of this worker kept everything in.
      if (name === 'plexus-shell') await caches.delete(name);
      continue;
    }
    // A page holds its version's lock for as long as it lives.
    await worker.navigator.locks.request(fileLock(name.slice(PREFIX.length)), { ifAvailable: true }, async (free) => {
      if (free) await caches.delete(name);
    });
  }
}

worker.addEventListener('install', (event) => event.waitUntil(keepAll().then(() => worker.skipWaiting())));
worker.addEventListener('activate', (event) => event.waitUntil(worker.clients.claim().then(sweep)));

worker.addEventListener('message', (event) => {
  if ((event.data as { plexus?: unknown } | null)?.plexus === 'loaded') event.waitUntil(sweep());
});

/** Whether an answer to "give me the page" is one: a proxy whose gateway is away has only an error of its own. */
const isAway = (response: Response): boolean => response.status >= 500 || response.status === 404 || response.status === 429;

/** The page as the network has it, so that an updated gateway shows its own; the kept one if there is none, or none in time. */
async function page(request: Request): Promise<Response> {
  const kept = await (await caches.open(CACHE)).match('/', { ignoreVary: true });
  const fresh = fetch(request);
  if (!kept) return fresh;
  const late = new Promise<Response>((resolve) => setTimeout(() => resolve(kept.clone()), PATIENCE_MS));
  return Promise.race([fresh.then((response) => (isAway(response) ? kept : response)), late]).catch(() => kept);
}

/** A file by its path. A name with a digest is the same file in whichever version's cache it stands. */
async function file(path: string, request: Request): Promise<Response> {
  const kept = (await (await caches.open(CACHE)).match(path, { ignoreVary: true })) ?? (path.startsWith('/assets/') ? await caches.match(path, { ignoreVary: true }) : undefined);
  return kept ?? fetch(request);
}

worker.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== worker.location.origin) return;
  if (url.pathname === '/') {
    event.respondWith(page(request));
  } else if (PATHS.has(url.pathname) || url.pathname.startsWith('/assets/')) event.respondWith(file(url.pathname, request));
});
