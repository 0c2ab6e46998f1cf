// Keeps the page above the keyboard of a phone. Chromium and Firefox resize the page by themselves (`interactive-widget` in index.html);
// Safari draws its keyboard over the page, and only reports the visible height.

/** Smaller differences are the browser's own bars, px. */
const BAR_PX = 80;

/** Sets `--covered` to what the keyboard covers, until the returned function is called. */
export function watchKeyboard(): () => void {
  const view = window.visualViewport;
  if (!view) return () => {};
  const fit = (): void => {
    // A zoomed page is covered in part by choice.
    const covered = view.scale > 1.01 ? 0 : Math.round(innerHeight - view.height);
    document.documentElement.style.setProperty('--covered', `${covered > BAR_PX ? covered : 0}px`);
    // Safari also moves the page up, to show the field: now the field is in sight without that.
    if (covered > BAR_PX) window.scrollTo(0, 0);
  };
  view.addEventListener('resize', fit);
  fit();
  return () => view.removeEventListener('resize', fit);
}
