// The outcome of an answer, in words that the page and the service worker share; part of `text.request`.

export const outcomes = {
  refusals: {
    scope_missing: 'This device may no longer answer. Nothing was answered by you.',
    risk_too_high: 'This device may not answer anything of this risk. Answer it on a device that may.',
    stale_digest: 'The request has changed meanwhile. Nothing was answered. Read it again.',
    digest_required: 'The complete request must be loaded and read before it can be allowed. Nothing was answered.',
    unauthorized: 'The gateway no longer knows this device: it was revoked or signed out. Nothing was answered by you.',
    request_not_found: 'The gateway no longer knows this request.',
    observe_only: 'This can only be answered where the agent itself runs.',
    runtime_gone: 'The agent has exited. This request can no longer be answered.',
    storage: 'The gateway’s disk is full, so the answer cannot be stored. Nothing was answered.',
    stopping: 'The gateway is stopping. Nothing was answered; try again in a moment.',
    not_ready: 'The gateway is not ready. Nothing was answered; try again in a moment.',
  } as Record<string, string>,
  by: (who: string) => ` by ${who}`,
  gone: 'No longer open',
  late: 'Your answer came too late and was not used.',
  expired: 'Expired: nobody answered in time',
  withdrawn: 'Withdrawn: the run ended, or the agent withdrew the request',
  orphaned: 'Orphaned: the agent is gone, so the request can no longer be answered',
} as const;
