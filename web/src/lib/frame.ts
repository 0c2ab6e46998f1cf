/** The interval of a hidden page, ms: it gets no animation frames. */
const HIDDEN_MS = 250;

/** Duration of work below which a pause is not needed, ms. */
const SHORT_MS = 4;
/** The pause after longer work, in times of the work. */
const REST = 2;
/** The longest pause, ms. */
const REST_MAX_MS = 100;
/** Time after a key press in which its letter is drawn first, ms. */
const PRESS_MS = 32;

let pressedAt = -Infinity;
addEventListener('keydown', () => { pressedAt = performance.now(); }, { capture: true, passive: true });

/**
 * Runs `work` once, before the next frame is drawn, however often the returned function is called. With `rests`, long work is followed by a
 * pause, and waits until the letter of a key is drawn: on a slow machine, what comes all the time leaves most of it to whoever writes.
 */
export function perFrame(work: () => void, rests = false): () => void {
  let due = false;
  let notBefore = 0;
  let dueAt = 0;
  const run = () => {
    due = false;
    const began = performance.now();
    work();
    const ended = performance.now();
    notBefore = rests && ended - began > SHORT_MS ? ended + Math.min(REST_MAX_MS, (ended - began) * REST) : 0;
  };
  const next = () => {
    if (document.hidden) setTimeout(run, HIDDEN_MS);
    else {
      // A page that becomes hidden before the frame does not wait for it.
      let done = false;
      const once = () => { if (!done) { done = true; clearTimeout(timer); run(); } };
      const timer = setTimeout(once, HIDDEN_MS);
      const frame = () => {
        const at = performance.now();
        if (notBefore && at - pressedAt < PRESS_MS && at - dueAt < REST_MAX_MS) requestAnimationFrame(frame); else once();
      };
      requestAnimationFrame(frame);
    }
  };
  return () => {
    if (due) return;
    due = true;
    dueAt = performance.now();
    const pause = notBefore - dueAt;
    if (pause > 0) setTimeout(next, pause); else next();
  };
}
