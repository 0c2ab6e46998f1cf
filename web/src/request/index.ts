// The requests. Three elements:
// - `<plexus-requests>`: all open requests in a stable order; `.session=${id}` for one session, `layout="dock"` above a composer.
// - `<plexus-request request_id=..>`: one request alone, for `/#/r/ID`.
// - `<plexus-card .request=${request} layout="inline|dock|solo">`: the card itself.
// The keys a A d D e o and 1 to 9 act on the focused card.

export { PlexusCard } from './card.js';
export { PlexusRequests } from './list.js';
export { PlexusRequest } from './solo.js';
