// Which project a session belongs to, in the words that every list shows.
import { oneLine } from './text.js';
import type { SessionInfo } from '../wire/types.js';

export interface ProjectView {
  /** The same for all sessions of a project. */
  key: string;
  /** The project's name. */
  name: string;
  /** The branch, else the worktree, that the session is in; empty outside of repositories. */
  branch: string;
  /** The linked worktree; empty in the main working tree. */
  worktree: string;
  /** The folder of the project, whole. */
  root: string;
  /** The session's folder below the project's; empty in the project's folder itself and in worktrees. */
  below: string;
}

const lastPart = (path: string): string => path.replace(/\/+$/, '').split('/').pop() || path || '/';

/** The project of a session. Before the gateway knows it, the session's folder. All of it is one line, and safe to show as text. */
export function projectOf(s: Pick<SessionInfo, 'cwd' | 'project'>): ProjectView {
  const root = s.project?.root || s.cwd;
  const below = s.cwd.startsWith(`${root}/`) ? s.cwd.slice(root.length + 1) : '';
  const branch = s.project?.branch ?? '';
  const worktree = s.project?.worktree ?? '';
  return {
    key: root,
    name: oneLine(s.project?.name || lastPart(s.cwd)),
    branch: oneLine(branch || worktree),
    worktree: oneLine(worktree),
    root: oneLine(root),
    below: oneLine(below),
  };
}
