/// <reference lib="webworker" />
// The service worker: serves the page's files without a network, and handles pushes. It never caches API responses: offline, the
// page is empty and says that it is offline.
//
// A worker knows one version of the page's files, each by its digest. It caches the shell whole or not at all, in a cache per version, so
// that versions never mix; the other files join it when a page first asks for them, so that a first visit does not fetch what it does not
// show. A version's cache is removed when another version's worker is active and no page uses it.
import { fileLock } from './lib/files.js';
import './notify/worker.js';

/** Set by the build. */
declare const __MANIFEST__: { version: string; files: Array<[path: string, sha256: string]>; later: Array<[path: string, sha256: string]> };

const worker = self as unknown as ServiceWorkerGlobalScope;
const { version, files } = __MANIFEST__;
const PREFIX = 'plexus-files-';
const CACHE = PREFIX + version;
const PATHS = new Set(files.map(([path]) => path));
/** Files outside the shell, with their digests. */
const LATER = new Map(__MANIFEST__.later);
/** Time to wait for the network before the cached page is shown, ms. */
const PATIENCE_MS = 2_000;

const hex = (bytes: ArrayBuffer): string => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Fetches one file of this version. If the gateway was updated meanwhile, the digest differs: this worker fails to install, and the next one will. */
async function fetchExactly(path: string, sha256: string): Promise<[string, Response]> {
  // Files with a digest in their name may come from the HTTP cache.
  const response = await fetch(path, { cache: path.startsWith('/assets/') ? 'default' : 'no-cache', credentials: 'same-origin', redirect: 'error' });
  const found = response.ok ? hex(await crypto.subtle.digest('SHA-256', await response.clone().arrayBuffer())) : '';
  if (found !== sha256) throw new Error(`${path}: ${response.status}, not the file of this version`);
  return [path, response];
}

async function cacheAll(): Promise<void> {
  const all = await Promise.all(files.map(([path, sha256]) => fetchExactly(path, sha256)));
  const cache = await caches.open(CACHE);
  await Promise.all(all.map(([path, response]) => cache.put(path, response)));
}

/** Removes the caches of other versions that no page uses any more. */
async function sweep(): Promise<void> {
  for (const name of await caches.keys()) {
    if (name === CACHE) continue;
    if (!name.startsWith(PREFIX)) {
      // The single cache of earlier versions of this worker.
      if (name === 'plexus-shell') await caches.delete(name);
      continue;
    }
    // A page holds the lock of its version while it is open.
    await worker.navigator.locks.request(fileLock(name.slice(PREFIX.length)), { ifAvailable: true }, async (free) => {
      if (free) await caches.delete(name);
    });
  }
}

worker.addEventListener('install', (event) => event.waitUntil(cacheAll().then(() => worker.skipWaiting())));
worker.addEventListener('activate', (event) => event.waitUntil(worker.clients.claim().then(sweep)));

worker.addEventListener('message', (event) => {
  if ((event.data as { plexus?: unknown } | null)?.plexus === 'loaded') event.waitUntil(sweep());
});

/** Whether a response to the request for the page is an error, such as a proxy's when the gateway is not reachable. */
const isAway = (response: Response): boolean => response.status >= 500 || response.status === 404 || response.status === 429;

/** The page from the network, so that an updated gateway shows its own; the cached one if the network fails or is slow. */
async function page(request: Request): Promise<Response> {
  const cached = await (await caches.open(CACHE)).match('/', { ignoreVary: true });
  const fresh = fetch(request);
  if (!cached) return fresh;
  const late = new Promise<Response>((resolve) => setTimeout(() => resolve(cached.clone()), PATIENCE_MS));
  return Promise.race([fresh.then((response) => (isAway(response) ? cached : response)), late]).catch(() => cached);
}

/** A file by its path. A file with a digest in its name is the same in the caches of all versions. */
async function file(path: string, request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  const cached = (await cache.match(path, { ignoreVary: true })) ?? (path.startsWith('/assets/') ? await caches.match(path, { ignoreVary: true }) : undefined);
  if (cached) return cached;
  const digest = LATER.get(path);
  if (digest === undefined) return fetch(request);
  const [, response] = await fetchExactly(path, digest);
  // Without room for it the file is fetched again the next time.
  await cache.put(path, response.clone()).catch(() => {});
  return response;
}

worker.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== worker.location.origin) return;
  if (url.pathname === '/') {
    event.respondWith(page(request));
  } else if (PATHS.has(url.pathname) || url.pathname.startsWith('/assets/')) event.respondWith(file(url.pathname, request));
});
