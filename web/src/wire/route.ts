import type { Route } from '../plexus.js';

const part = (text: string): string => { try { return decodeURIComponent(text); } catch { return ''; } };

/** The route of a URL fragment; the inbox if it names none. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [page, id, word, place] = path.split('/').map(part);
  switch (page) {
    case 'home': return { page };
    case 'sessions': return { page };
    case 'new': return { page };
    case 's': {
      if (!id) return { page: 'sessions' };
      if (word === 'changes') return { page: 'changes', session_id: id };
      const at = word === 'at' ? Number(place) : NaN;
      return Number.isSafeInteger(at) && at >= 0 ? { page: 'session', session_id: id, at } : { page: 'session', session_id: id };
    }
    case 'r': return id ? { page: 'inbox', request: id } : { page: 'inbox' };
    case 'devices': return { page };
    case 'settings': return { page };
    case 'runtimes': return id ? { page, runtime_id: id } : { page };
    case 'terminals': return id ? { page, terminal_id: id } : { page };
    case 'usage': { const session = new URLSearchParams(query).get('session'); return session ? { page, session_id: session } : { page }; }
    case 'search': return { page, q: new URLSearchParams(query).get('q') ?? '' };
    default: return { page: 'inbox' };
  }
}

/** The URL fragment of a route. */
export function href(route: Route): string {
  const e = encodeURIComponent;
  switch (route.page) {
    case 'inbox': return route.request ? `#/r/${e(route.request)}` : '#/inbox';
    case 'session': return `#/s/${e(route.session_id)}${route.at === undefined ? '' : `/at/${route.at}`}`;
    case 'changes': return `#/s/${e(route.session_id)}/changes`;
    case 'runtimes': return route.runtime_id ? `#/runtimes/${e(route.runtime_id)}` : '#/runtimes';
    case 'terminals': return route.terminal_id ? `#/terminals/${e(route.terminal_id)}` : '#/terminals';
    case 'usage': return route.session_id ? `#/usage?session=${e(route.session_id)}` : '#/usage';
    case 'search': return route.q ? `#/search?q=${e(route.q)}` : '#/search';
    default: return `#/${route.page}`;
  }
}
