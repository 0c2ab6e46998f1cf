/** The words about the worktree of an archived session. */
export const worktreeWords = {
  title: (branch: string) => `Remove the worktree of ${branch}?`,
  body: (branch: string) => `The session is archived and nothing else works there. The branch ${branch} stays.`,
  lost: (changed: number, branch: string) => `${changed === 1 ? 'One changed file is' : `${changed.toLocaleString('en')} changed files are`} not committed, and would be lost. The branch ${branch} stays.`,
  remove: 'Remove',
  removed: (branch: string) => `The worktree of ${branch} is removed.`,
};
