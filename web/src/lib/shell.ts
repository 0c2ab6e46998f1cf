// The page's part of the service worker, which caches the page's files for use without a network. Only on secure origins, as
// browsers require.
import { fileLock, versionIn } from './files.js';

const WORKER = '/sw.js';
/** The version of this page's files. */
export const version = versionIn(document.head.innerHTML);

// The worker's URL is created under the Trusted Types policy of the page's headers.
const types = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: object): { createScriptURL(url: string): unknown } } }).trustedTypes;
const policy = types?.createPolicy('plexus', { createScriptURL: (text: string) => { if (text !== WORKER) throw new TypeError(text); return text; } });

/** Makes the service worker keep the files of this page's version while the page is open. */
export function holdFiles(): void {
  void navigator.locks?.request(fileLock(version), { mode: 'shared' }, () => new Promise(() => {})).catch(() => {});
}

/** Registers the service worker, unless there is one, to cache the files. If it cannot be installed, the next call tries again. */
export async function keepFiles(): Promise<void> {
  if (!('serviceWorker' in navigator) || !isSecureContext) return;
  try {
    const there = await navigator.serviceWorker.getRegistration();
    if (!there?.active && !there?.installing) await navigator.serviceWorker.register((policy?.createScriptURL(WORKER) ?? WORKER) as string, { updateViaCache: 'none' });
    // The page before this one is closed: the files of its version may be removed.
    navigator.serviceWorker.controller?.postMessage({ plexus: 'loaded' });
  } catch { /* without it the page needs a network */ }
}

/** Makes the service worker check for a new version. */
export async function renewFiles(): Promise<void> {
  try { await (await navigator.serviceWorker?.getRegistration())?.update(); } catch { /* the next call tries again */ }
}
