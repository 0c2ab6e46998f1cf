// The notifications that stand in the system's tray.

/**
 * Shows or reads them, one at a time over all pages and the worker: Chromium drops a notification for good that is being shown while
 * their list is read (`PlatformNotificationContextImpl` takes it for one that was closed).
 */
export function tray<T>(work: () => Promise<T>): Promise<T> {
  // The type of the promise within a promise is the library's; what comes is what `work` gives.
  return navigator.locks.request('plexus-tray', work) as Promise<T>;
}
