import './lib/theme.js';
import './ui/app.js';
import { startNotify } from './notify/index.js';

startNotify();

// The service worker keeps the shell for when there is no network. Its address is made under the policy that the page's headers name.
const types = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: object): { createScriptURL(url: string): unknown } } }).trustedTypes;
if ('serviceWorker' in navigator && isSecureContext) {
  const url = types ? types.createPolicy('plexus', { createScriptURL: (text: string) => { if (text !== '/sw.js') throw new TypeError(text); return text; } }).createScriptURL('/sw.js') : '/sw.js';
  addEventListener('load', () => { void navigator.serviceWorker.register(url as string, { updateViaCache: 'none' }).catch(() => {}); });
}
