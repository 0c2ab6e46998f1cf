// A page that shows surfaces without a gateway: the tests put them in, change them, and read what is sent.
import '../../../web/src/surface/surface.js';
import type { PlexusSurface, SurfaceActionEvent } from '../../../web/src/surface/surface.js';
import { fold } from '../../../web/src/surface/fold.js';
import type { Action, Surface } from '../../../web/src/surface/types.js';

interface Kit {
  /** Shows a surface; one of the same name takes the new state. */
  show(surface: Surface, more?: Partial<PlexusSurface>): void;
  /** Applies a change to a shown surface. */
  change(body: unknown): string;
  clear(): void;
  /** What was sent. */
  sent: Action[];
  /** How the next actions are answered. */
  reply: 'accept' | 'refuse' | 'never';
}

const shown = new Map<string, { el: PlexusSurface; surface: Surface }>();
const all = document.getElementById('all') as HTMLElement;
const kit: Kit = {
  sent: [],
  reply: 'accept',
  show(surface, more = {}) {
    let at = shown.get(surface.surface);
    if (!at) {
      at = { el: document.createElement('plexus-surface') as PlexusSurface, surface };
      Object.assign(at.el, { agent: 'gemini', session: 's_1', prompts: true, approves: true });
      at.el.addEventListener('surface-action', (event) => {
        const action = event as SurfaceActionEvent;
        kit.sent.push(action.detail);
        action.respondWith(kit.reply === 'accept' ? Promise.resolve({ accepted: true, rev: action.detail.rev }) : kit.reply === 'refuse' ? Promise.reject(new Error('the component changed')) : new Promise(() => {}));
      });
      shown.set(surface.surface, at);
      all.append(at.el);
    }
    at.surface = surface;
    at.el.surface = surface;
    Object.assign(at.el, more);
  },
  change(body) {
    const name = (body as { surface: string }).surface;
    const at = shown.get(name);
    const folded = fold(at?.surface, body, '2026-01-01T00:00:00Z');
    if (folded.is === 'new') kit.show(folded.surface);
    return folded.is;
  },
  clear() {
    for (const { el } of shown.values()) el.remove();
    shown.clear();
    kit.sent.length = 0;
    kit.reply = 'accept';
  },
};
(window as unknown as { kit: Kit }).kit = kit;
