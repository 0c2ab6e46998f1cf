// Notifications of this device. `startNotify()` once, when the page begins; `<plexus-notifications>` (panel.ts) is part of the settings and
// loaded with them, `<plexus-push-offer>` of the frame; `notify/worker.ts` is imported by the service worker.

export { startNotify } from './page.js';
export { offerPush, PlexusPushOffer } from './offer.js';
