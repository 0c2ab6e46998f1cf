// Notifications of this device. `startNotify()` once, when the page begins; `<plexus-notifications>` is part of the devices page,
// `<plexus-push-offer>` of the frame; `notify/worker.ts` is imported by the service worker.

export { startNotify } from './page.js';
export { offerPush, PlexusPushOffer } from './offer.js';
export { PlexusNotifications } from './panel.js';
