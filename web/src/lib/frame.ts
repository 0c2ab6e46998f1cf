/** The interval of a hidden page, ms: it gets no animation frames. */
const HIDDEN_MS = 250;

/** Runs `work` once, before the next frame is drawn, however often the returned function is called. */
export function perFrame(work: () => void): () => void {
  let due = false;
  const run = () => { due = false; work(); };
  return () => {
    if (due) return;
    due = true;
    if (document.hidden) setTimeout(run, HIDDEN_MS);
    else {
      // A page that becomes hidden before the frame does not wait for it.
      let done = false;
      const once = () => { if (!done) { done = true; clearTimeout(timer); run(); } };
      const timer = setTimeout(once, HIDDEN_MS);
      requestAnimationFrame(once);
    }
  };
}
