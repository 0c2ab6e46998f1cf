// The one signals library, under our own name: a value, who reads it, and what follows from it.
export { signal, computed, effect, batch, untracked, type Signal, type ReadonlySignal } from '@preact/signals-core';
