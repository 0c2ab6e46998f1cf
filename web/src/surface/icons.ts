// The icons of A2UI's basic catalogue, as path data on a 16x16 grid with a stroke. No markup is parsed for them.
import { html, nothing, svg, type TemplateResult } from 'lit';
import { icon, type Icon as Own } from '../ui/icons.js';

/** Names that are icons of the page. */
const OWN: Readonly<Record<string, Own>> = {
  add: 'plus', arrowBack: 'back', arrowForward: 'forward', check: 'check', close: 'close', delete: 'trash', download: 'download', edit: 'pencil', error: 'danger',
  folder: 'folder', info: 'info', lock: 'lock', moreHoriz: 'more', notifications: 'bell', person: 'user', phone: 'phone', play: 'play', refresh: 'restart', search: 'search',
  send: 'send', share: 'share', stop: 'stop', visibility: 'eye', warning: 'warn',
};
const ROUND = 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Z';
const PAGE = 'M2.5 3.5h11v10h-11v-10ZM2.5 6.5h11M5.5 2v3M10.5 2v3';
const HEART = 'M8 13.5C3.5 10.5 2 8.5 2 6.2a3 3 0 0 1 6-1 3 3 0 0 1 6 1c0 2.3-1.5 4.3-6 7.3Z';
const STAR = 'M8 1.8l1.9 4 4.3.6-3.1 3 .8 4.3L8 11.6l-3.9 2.1.8-4.3-3.1-3 4.3-.6L8 1.8Z';
const SPEAKER = 'M2 6v4h2.5L8 13V3L4.5 6H2Z';
const BELL = 'M4 11V7a4 4 0 0 1 8 0v4l1.2 1.5H2.8L4 11ZM6.7 14h2.6';
const EYE = 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z';
const SLASH = 'M2.5 2.5l11 11';
const PATHS: Readonly<Record<string, string>> = {
  accountCircle: `${ROUND}M8 8.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM4.3 12.5c.7-1.5 2-2.1 3.7-2.1s3 .6 3.7 2.1`,
  attachFile: 'M13 7.5 7.7 12.8a3 3 0 0 1-4.3-4.3L9 3a2 2 0 0 1 2.9 2.9L6.5 11.2a1 1 0 0 1-1.4-1.4L10 5',
  calendarToday: PAGE,
  event: `${PAGE}M9 9h2v2H9V9Z`,
  call: 'M3 2.5h3L7.2 5.7 5.5 7A8 8 0 0 0 9 10.5l1.3-1.7L13.5 10v3C7.5 13.8 2 8.5 3 2.5Z',
  camera: 'M2 5h3l1.2-2h3.6L11 5h3v8H2V5ZM8 11.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4Z',
  fastForward: 'M2.5 4v8l5-4-5-4ZM8 4v8l5-4-5-4Z',
  rewind: 'M13.5 4v8l-5-4 5-4ZM8 4v8L3 8l5-4Z',
  favorite: HEART, favoriteOff: `${HEART}${SLASH}`,
  help: `${ROUND}M6.3 6.3a1.8 1.8 0 1 1 2.5 1.7c-.6.3-.8.6-.8 1.2M8 11.3h.01`,
  home: 'M2.5 7.5 8 2.5l5.5 5v6h-4v-4h-3v4h-4v-6Z',
  locationOn: 'M8 14.5C5 11 3.5 8.7 3.5 6.5a4.5 4.5 0 0 1 9 0c0 2.2-1.5 4.5-4.5 8ZM8 8.2a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4Z',
  lockOpen: 'M3.5 7h9v6.5h-9V7ZM5.5 7V5a2.5 2.5 0 0 1 4.8-1',
  mail: 'M2 3.5h12v9H2v-9ZM2 4.5 8 9l6-4.5',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  moreVert: 'M8 3.5h.01M8 8h.01M8 12.5h.01',
  notificationsOff: `${BELL}${SLASH}`,
  pause: 'M5.5 3v10M10.5 3v10',
  payment: 'M2 3.5h12v9H2v-9ZM2 6.5h12M4.5 10H7',
  photo: 'M2 3h12v10H2V3ZM2 11l3.5-3.5L9 11l2-2 3 3M10.5 6.2h.01',
  print: 'M4.5 6V2.5h7V6M4.5 11h-2V6h11v5h-2M4.5 9h7v4.5h-7V9Z',
  settings: 'M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M12.6 3.4l-1.4 1.4M4.8 11.2l-1.4 1.4',
  shoppingCart: 'M1.5 2.5h2L5.2 10h7l1.5-5.5H4.2M6 13h.01M11.5 13h.01',
  skipNext: 'M4 4v8l6-4-6-4ZM12 4v8',
  skipPrevious: 'M12 4v8L6 8l6-4ZM4 4v8',
  star: STAR, starHalf: `${STAR}M8 1.8v9.8`, starOff: `${STAR}${SLASH}`,
  upload: 'M8 10V2.5M5 5l3-3 3 3M2.5 11v3h11v-3',
  visibilityOff: `${EYE}${SLASH}`,
  volumeDown: `${SPEAKER}M10.5 6.2a2.8 2.8 0 0 1 0 3.6`,
  volumeUp: `${SPEAKER}M10.5 6.2a2.8 2.8 0 0 1 0 3.6M12.3 4.2a5.6 5.6 0 0 1 0 7.6`,
  volumeMute: SPEAKER,
  volumeOff: `${SPEAKER}M10.5 6.5l3 3M13.5 6.5l-3 3`,
};
/** Shapes that are filled. */
const FILLED: ReadonlySet<string> = new Set(['favorite', 'star']);
/** Characters of path data, and no others. Longer data is not drawn. */
const PATH_DATA = /^[MmLlHhVvCcSsQqTtAaZz0-9eE.,+\s-]{1,4096}$/;
const SIZE = 20;

/** The words of an icon's name: `shoppingCart` is "shopping cart". */
export const iconWords = (name: string): string => name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase();

/** An icon by name, or by path data on a 24x24 grid; its name in words if there is none. */
export function symbol(name: unknown, label: string): TemplateResult | typeof nothing {
  if (name !== null && typeof name === 'object') {
    const path = (name as Record<string, unknown>)['svgPath'];
    return typeof path === 'string' && PATH_DATA.test(path) ? drawn(path, 24, true, label) : nothing;
  }
  if (typeof name !== 'string') return nothing;
  const own = Object.hasOwn(OWN, name) ? OWN[name] : undefined;
  if (own) return icon(own, SIZE, label || undefined);
  const path = Object.hasOwn(PATHS, name) ? PATHS[name] : undefined;
  if (path) return drawn(path, 16, FILLED.has(name), label);
  return html`<span class="no-icon">${iconWords(name).slice(0, 40)}</span>`;
}

function drawn(path: string, grid: number, filled: boolean, label: string): TemplateResult {
  return html`<svg width=${SIZE} height=${SIZE} viewBox="0 0 ${grid} ${grid}" fill=${filled ? 'currentColor' : 'none'} stroke=${grid === 24 ? 'none' : 'currentColor'} stroke-width="1.5"
    stroke-linecap="round" stroke-linejoin="round" role=${label ? 'img' : 'presentation'} aria-label=${label || nothing} aria-hidden=${label ? 'false' : 'true'} focusable="false">${svg`<path d=${path}></path>`}</svg>`;
}
