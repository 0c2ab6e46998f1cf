// The version of the page's files, and the lock's name that page and service worker share.

/** The lock that every open page of a version holds: the service worker keeps that version's files until it is free. */
export const fileLock = (version: string): string => `plexus-files-${version}`;

const VERSION = /<meta name="plexus-files" content="([0-9a-f]{8,64})">/;

/** The version in a page's markup; empty if there is none. */
export const versionIn = (markup: string): string => VERSION.exec(markup)?.[1] ?? '';
