// The page's own files: which version of them this page is. The service worker and the page agree here on a lock's name.

/** The lock that every page of a version holds while it lives: the service worker keeps that version's files until it is free. */
export const fileLock = (version: string): string => `plexus-files-${version}`;

const SAID = /<meta name="plexus-files" content="([0-9a-f]{8,64})">/;

/** The version that a page's markup says it is; empty if it says none. */
export const versionIn = (markup: string): string => SAID.exec(markup)?.[1] ?? '';
