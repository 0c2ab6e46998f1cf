// The requests on every screen. Three elements:
// - `<plexus-requests>`: all that is open, in an order that does not move; `.session=${id}` for one session's, `layout="dock"` above a composer.
// - `<plexus-request request_id=..>`: one alone, for `/#/r/ID`.
// - `<plexus-card .request=${request} layout="inline|dock|solo">`: the card itself.
// The keys a A d D e o and 1 to 9 belong to the card that has the focus.

export { PlexusCard } from './card.js';
export { PlexusRequests } from './list.js';
export { PlexusRequest } from './solo.js';
