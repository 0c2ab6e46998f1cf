// The project of a session, in the words that every list shows, and lists by project.
import { oneLine } from './text.js';
import type { SessionInfo } from '../wire/types.js';

export interface ProjectView {
  /** The key that all sessions of a project share. */
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

export interface ProjectGroup {
  key: string;
  name: string;
  root: string;
  /** The sessions: those that wait first, then those that run, then by last activity. */
  sessions: SessionInfo[];
  /** The number of open requests in all of them. */
  waiting: number;
}

const RANKS: Record<string, number> = { waiting: 0, running: 1 };

/** Sessions by project: those that wait for a person first, then by last activity. `open` counts a session's requests, `at` tells its
 *  last activity, ms. */
export function byProject(sessions: Iterable<SessionInfo>, open: (s: SessionInfo) => number, at: (s: SessionInfo) => number): ProjectGroup[] {
  const groups = new Map<string, { group: ProjectGroup; rows: Array<{ s: SessionInfo; rank: number; at: number }>; at: number }>();
  for (const s of sessions) {
    const key = s.project?.root || s.cwd;
    let one = groups.get(key);
    if (!one) {
      const { name, root } = projectOf(s);
      groups.set(key, one = { group: { key, name, root, sessions: [], waiting: 0 }, rows: [], at: 0 });
    }
    const when = at(s);
    one.rows.push({ s, rank: RANKS[s.state] ?? 2, at: when });
    one.group.waiting += open(s);
    one.at = Math.max(one.at, when);
  }
  const all = [...groups.values()].sort((a, b) => Number(b.group.waiting > 0) - Number(a.group.waiting > 0) || b.at - a.at || (a.group.key < b.group.key ? -1 : 1));
  for (const { group, rows } of all) {
    rows.sort((a, b) => a.rank - b.rank || b.at - a.at || (a.s.session_id < b.s.session_id ? -1 : 1));
    group.sessions = rows.map(({ s }) => s);
  }
  return all.map(({ group }) => group);
}

/** The folded projects of this device, by their keys. */
const FOLDED_KEY = 'plexus.folded';
/** Maximum number of folded projects that are stored; those folded longest ago open again. */
const FOLDED_MAX = 500;

export function readFolded(): Set<string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(FOLDED_KEY) ?? '[]');
    return new Set(Array.isArray(kept) ? kept.filter((one): one is string => typeof one === 'string') : []);
  } catch { return new Set(); }
}

export function keepFolded(folded: ReadonlySet<string>): void {
  try {
    if (folded.size) localStorage.setItem(FOLDED_KEY, JSON.stringify([...folded].slice(-FOLDED_MAX)));
    else localStorage.removeItem(FOLDED_KEY);
  } catch { /* storage is off: it holds as long as the page */ }
}
