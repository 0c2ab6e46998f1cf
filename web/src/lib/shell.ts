// The page's side of the service worker, which keeps the page's files for when there is no network. Only on secure origins: elsewhere
// browsers have none.
import { fileLock, versionIn } from './files.js';

const WORKER = '/sw.js';
/** The version of this page's files. */
export const version = versionIn(document.head.innerHTML);

// The worker's address is made under the policy that the page's headers name.
const types = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: object): { createScriptURL(url: string): unknown } } }).trustedTypes;
const policy = types?.createPolicy('plexus', { createScriptURL: (text: string) => { if (text !== WORKER) throw new TypeError(text); return text; } });

/** As long as this page lives, the service worker keeps the files of this page's version. */
export function holdFiles(): void {
  void navigator.locks?.request(fileLock(version), { mode: 'shared' }, () => new Promise(() => {})).catch(() => {});
}

/** Has the files kept: registers the service worker unless there is one. One that could not be installed, because the gateway went meanwhile, is tried again by the next call. */
export async function keepFiles(): Promise<void> {
  if (!('serviceWorker' in navigator) || !isSecureContext) return;
  try {
    const there = await navigator.serviceWorker.getRegistration();
    if (!there?.active && !there?.installing) await navigator.serviceWorker.register((policy?.createScriptURL(WORKER) ?? WORKER) as string, { updateViaCache: 'none' });
    // The page that this one replaced is gone now, and the files of its version may go.
    navigator.serviceWorker.controller?.postMessage({ plexus: 'loaded' });
  } catch { /* without it the page works as long as there is a network */ }
}

/** Has the service worker look for another version of the files. */
export async function renewFiles(): Promise<void> {
  try { await (await navigator.serviceWorker?.getRegistration())?.update(); } catch { /* the next call tries again */ }
}
