// Access to the system's notifications.

/**
 * Runs `work`, which shows or lists notifications, one at a time over all pages and the worker: Chromium drops a notification that is
 * shown while the list is read (`PlatformNotificationContextImpl` takes it for a closed one).
 */
export function tray<T>(work: () => Promise<T>): Promise<T> {
  // The library's type has a nested promise; the value is that of `work`.
  return navigator.locks.request('plexus-tray', work) as Promise<T>;
}
