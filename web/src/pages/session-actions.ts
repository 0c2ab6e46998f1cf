// Actions on a session, for its row, its page and the palette.
import { plexus } from '../plexus.js';
import { editorHref } from '../lib/editor.js';
import { oneLine } from '../lib/text.js';
import { text } from '../text/en.js';
import { ask, confirm } from '../ui/dialog.js';
import type { MenuItem } from '../ui/menu.js';
import { attempt, copy } from '../ui/parts.js';
import { toast } from '../ui/say.js';
import type { SessionInfo } from '../wire/types.js';

const t = text.shell.sessions;
const path = (s: SessionInfo) => `/v1/sessions/${encodeURIComponent(s.session_id)}`;

export async function rename(s: SessionInfo): Promise<void> {
  const title = await ask(t.renameTitle, t.newName, s.title ?? '');
  if (title?.trim()) await attempt(() => plexus.http('PATCH', path(s), { title: title.trim() }));
}

export async function archive(s: SessionInfo, archived = !s.archived): Promise<void> {
  const done = await attempt(() => plexus.http('PATCH', path(s), { archived }).then(() => true));
  if (!done) return;
  toast(archived ? t.archived : t.unarchived, { tone: 'ok', act: { label: t.undo, run: () => void archive(s, !archived) } });
  if (archived && s.project?.worktree && plexus.may('admin')) await import('./worktree.js').then(({ offerRemoval }) => offerRemoval(s)).catch(() => { /* it is still listed by `plexus worktrees` */ });
}

/** Whether the agent of a session can report its servers or skills. */
const tells = (s: SessionInfo): boolean => {
  const can = plexus.runtimes.peek().get(s.runtime_id)?.capabilities ?? [];
  return s.state !== 'exited' && (can.includes('mcp_list') || can.includes('skills_list'));
};
export const share = (s: SessionInfo): void => { dispatchEvent(new CustomEvent('plexus-share', { detail: s.session_id })); };

async function remove(s: SessionInfo): Promise<void> {
  if (!(await confirm(t.removeTitle, t.removeText, t.removeDo, true))) return;
  const done = await attempt(() => plexus.http('DELETE', path(s)).then(() => true));
  if (!done) return;
  const at = plexus.route.peek();
  if (at.page === 'session' && at.session_id === s.session_id) plexus.go({ page: 'sessions' });
}

/** Downloads the gateway's export of a session. */
async function download(s: SessionInfo, format: string): Promise<void> {
  const blob = await attempt(async () => (await plexus.fetch(`${path(s)}/export?format=${format}`, { accept: '*/*' })).blob());
  if (!blob) return;
  const a = document.createElement('a');
  a.href = URL.createObjectURL(blob);
  a.download = `${oneLine(s.title).replace(/[^\p{L}\p{N}_-]+/gu, '-').slice(0, 60) || s.session_id}.${format}`;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 60_000);
}

/** The menu of a session. */
export function menuOf(s: SessionInfo): MenuItem[] {
  const busy = s.state === 'running' || s.state === 'waiting';
  const prompt = plexus.may('prompt');
  const items: MenuItem[] = [];
  if (prompt) {
    items.push({ label: t.rename, icon: 'pencil', run: () => void rename(s) }, { label: s.archived ? t.unarchive : t.archive, icon: 'archive', run: () => void archive(s) });
    if (busy) items.push({ label: t.cancelRun, icon: 'stop', separate: true, run: () => void attempt(() => plexus.http('POST', `${path(s)}/cancel`, {})) });
    if (s.state !== 'exited') items.push({ label: t.restartRun, icon: 'restart', separate: !busy, run: () => void attempt(() => plexus.http('POST', `${path(s)}/restart`, {})) });
  }
  if (prompt && tells(s)) items.push({ label: t.abilities, icon: 'info', separate: true, run: () => { dispatchEvent(new CustomEvent('plexus-abilities', { detail: s.session_id })); } });
  if (plexus.me.peek()?.kind !== 'share') items.push({ label: t.usage, icon: 'usage', separate: true, href: plexus.href({ page: 'usage', session_id: s.session_id }) });
  const inEditor = plexus.me.peek()?.kind === 'share' ? '' : editorHref(s.cwd ?? '');
  if (inEditor) items.push({ label: t.inEditor, icon: 'folder', href: inEditor });
  items.push({ label: t.copyLink, icon: 'link', separate: plexus.me.peek()?.kind === 'share', run: () => void copy(`${location.origin}/${plexus.href({ page: 'session', session_id: s.session_id })}`) });
  if (plexus.may('admin')) items.push({ label: t.share, icon: 'share', run: () => share(s) });
  for (const [format, name] of Object.entries(t.exports)) items.push({ label: t.exportAs(name), icon: 'download', separate: format === 'md', run: () => void download(s, format) });
  if (prompt) items.push({ label: t.remove, icon: 'trash', danger: true, separate: true, run: () => void remove(s) });
  return items;
}
