import { digits } from '../lib/digits.js';

/** The words about the worktree of an archived session. */
export const worktreeWords = {
  title: (branch: string) => `Remove the worktree of ${branch}?`,
  body: (branch: string) => `The session is archived and nothing else works there. The branch ${branch} stays.`,
  lost: (changed: number, branch: string) => `${changed === 1 ? 'One changed file is' : `${digits(changed)} changed files are`} not committed, and would be lost. The branch ${branch} stays.`,
  remove: 'Remove',
  removed: (branch: string) => `The worktree of ${branch} is removed.`,
};
