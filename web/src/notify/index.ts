// Notifications of this device. `startNotify()` once, when the page begins; `<plexus-notifications>` on the page of devices;
// `notify/worker.ts` is imported by the service worker.

export { startNotify } from './page.js';
export { PlexusNotifications } from './panel.js';
