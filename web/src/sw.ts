/// <reference lib="webworker" />
// The service worker: the shell without a network, and pushes. It keeps no answer of the gateway's API, ever: what is shown without a
// network is the empty page, which says that it is offline.
import './notify/worker.js';

const worker = self as unknown as ServiceWorkerGlobalScope;
const CACHE = 'plexus-shell';
/** What the page needs to draw itself. */
const SHELL = ['/', '/index.js', '/chunk-languages.js', '/chunk-conversation.js', '/chunk-diffview.js', '/worker.js', '/style.css', '/icon.svg', '/icon-192.png', '/manifest.webmanifest'];
/** How long the network may take before the kept shell is shown, ms. */
const PATIENCE_MS = 3_000;

worker.addEventListener('install', (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => Promise.all(SHELL.map((path) => cache.add(new Request(path, { cache: 'reload' })).catch(() => {})))).then(() => worker.skipWaiting()));
});

worker.addEventListener('activate', (event) => {
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter((name) => name !== CACHE).map((name) => caches.delete(name)))).then(() => worker.clients.claim()));
});

/** The network's answer, which is then kept; the kept one if there is none, or none in time. */
async function shell(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request, { ignoreSearch: true });
  const fresh = fetch(request).then(async (response) => {
    if (response.ok && response.type === 'basic') await cache.put(request, response.clone());
    return response;
  });
  if (!kept) return fresh;
  const late = new Promise<Response>((resolve) => setTimeout(() => resolve(kept), PATIENCE_MS));
  return Promise.race([fresh, late]).catch(() => kept);
}

worker.addEventListener('fetch', (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== 'GET' || url.origin !== worker.location.origin || !SHELL.includes(url.pathname)) return;
  event.respondWith(shell(event.request));
});
