// The worktree of a session that was archived: asks once whether to remove it. Loaded when it is needed.
import { plexus } from '../plexus.js';
import { oneLine } from '../lib/text.js';
import { worktreeWords as t } from '../text/worktree.js';
import { confirm } from '../ui/dialog.js';
import { attempt } from '../ui/parts.js';
import { toast } from '../ui/say.js';
import type { SessionInfo } from '../wire/types.js';

interface Worktree { path: string; branch: string; sessions: string[]; unsaved?: { changed: number; ahead: number; digest: string }; missing?: boolean }

/** Offers to remove the worktree that the gateway made for a session, if no other session works in it. Nothing is removed without
 *  confirmation. */
export async function offerRemoval(session: SessionInfo): Promise<void> {
  const cwd = session.cwd ?? '';
  const { worktrees } = await plexus.http<{ worktrees: Worktree[] }>('GET', '/v1/worktrees');
  const one = worktrees.find((worktree) => cwd === worktree.path || cwd.startsWith(`${worktree.path}/`));
  if (!one || one.sessions.some((id) => id !== session.session_id)) return;
  const lost = one.unsaved?.changed ? one.unsaved : undefined;
  const branch = oneLine(one.branch);
  if (!(await confirm(t.title(branch), lost ? t.lost(lost.changed, branch) : t.body(branch), t.remove, Boolean(lost)))) return;
  const done = await attempt(() => plexus.http('POST', '/v1/worktrees/remove', { path: one.path, ...(lost ? { lost: lost.digest } : {}) }).then(() => true));
  if (done) toast(t.removed(branch), { tone: 'ok' });
}
