// The parts of the page that are loaded when they are first shown: each page, and the forms that belong to none.

/** A file that is missing is reported as for any other part of the page. */
const PARTS = {
  inbox: () => import('../pages/inbox.js'),
  sessions: () => import('../pages/sessions.js'),
  session: () => Promise.all([import('../pages/session.js'), import('../session/conversation.js')]),
  card: () => import('../request/card.js'),
  new: () => import('../pages/new.js'),
  signin: () => import('../pages/signin.js'),
  home: () => import('../pages/home.js'),
  devices: () => import('../pages/devices.js'),
  runtimes: () => import('../pages/runtimes.js'),
  search: () => import('../pages/search.js'),
  terminals: () => import('../pages/terminals.js'),
  usage: () => import('../pages/usage.js'),
  changes: () => import('../pages/changes.js'),
  settings: () => import('../pages/settings.js'),
};
const loading = new Map<string, Promise<unknown>>();

/** Loads a part, once; one that failed is tried again when it is shown again. */
export function load(part: string): void {
  if (!(part in PARTS) || loading.has(part)) return;
  loading.set(part, PARTS[part as keyof typeof PARTS]().catch(() => { loading.delete(part); }));
}
