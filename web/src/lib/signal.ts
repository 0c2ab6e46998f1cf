// The signals library, re-exported so that only this file names it.
export { signal, computed, effect, batch, untracked, type Signal, type ReadonlySignal } from '@preact/signals-core';
