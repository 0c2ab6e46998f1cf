import { signal } from '../lib/signal.js';

/** Lets the browser install the page; null if the browser does not offer that. */
export const installer = signal<(() => Promise<void>) | null>(null);

window.addEventListener('beforeinstallprompt', (event) => {
  event.preventDefault();
  installer.value = async () => {
    installer.value = null;
    await (event as Event & { prompt?: () => Promise<unknown> }).prompt?.();
  };
});
window.addEventListener('appinstalled', () => { installer.value = null; });
