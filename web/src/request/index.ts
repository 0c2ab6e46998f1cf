// The requests. Three elements:
// - `<plexus-requests>`: all open requests, two lines for each, in a stable order, and one open card.
// - `<plexus-request request_id=..>`: one request alone, for `/#/r/ID`.
// - `<plexus-card .request=${request} layout="pane|dock|solo">`: the card itself.
// The keys of docs/keys.md act on the focused card, or on the card of the focused row.

export { PlexusCard } from './card.js';
export { isLeft } from './left.js';
export { PlexusRequests } from './list.js';
export { PlexusRequest } from './solo.js';
