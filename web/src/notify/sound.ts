// The sound for new requests; off by default. Synthesized from two tones, so that nothing has to be fetched.

import { effect, signal } from '../lib/signal.js';
import { plexus } from '../plexus.js';

const KEY = 'plexus.sound';
/** The two tones, Hz, and how long each one sounds, s. */
const TONES = [587.33, 880];
const TONE_S = 0.14;
const VOLUME = 0.12;

function stored(): boolean {
  try {
    return localStorage.getItem(KEY) === 'on';
  } catch {
    return false;
  }
}

/** Whether the sound is on for this device. */
export const sound = signal(stored());

export function setSound(on: boolean): void {
  sound.value = on;
  try {
    if (on) localStorage.setItem(KEY, 'on');
    else localStorage.removeItem(KEY);
  } catch {
    // Storage is off: the choice lasts as long as the page.
  }
}

let context: AudioContext | null = null;

/** Plays the sound once. Silent in a browser that requires a user gesture first. */
export function play(): void {
  try {
    context ??= new AudioContext();
    void context.resume().catch(() => {});
    TONES.forEach((tone, n) => {
      const { currentTime } = context!;
      const from = currentTime + n * TONE_S;
      const gain = new GainNode(context!, { gain: 0 });
      gain.gain.setValueAtTime(0, from);
      gain.gain.linearRampToValueAtTime(VOLUME, from + 0.015);
      gain.gain.exponentialRampToValueAtTime(0.0001, from + TONE_S * 1.8);
      const voice = new OscillatorNode(context!, { type: 'sine', frequency: tone });
      voice.connect(gain).connect(context!.destination);
      voice.start(from);
      voice.stop(from + TONE_S * 2);
    });
  } catch {
    // Audio is not available.
  }
}

/** Plays the sound for each new request. Called once. */
export function startSound(): void {
  let known: Set<string> | null = null;
  effect(() => {
    const open = new Set<string>();
    for (const request of plexus.requests.value.values()) if (request.state === 'open') open.add(request.request_id);
    const fresh = known !== null && [...open].some((id) => !known!.has(id));
    known = plexus.loaded.value ? new Set([...(known ?? []), ...open]) : null;
    if (fresh && sound.peek()) play();
  });
}
