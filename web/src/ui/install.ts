import { signal } from '../lib/signal.js';

/** Asks the browser to install the page, where it offers that; null where it does not. */
export const installer = signal<(() => Promise<void>) | null>(null);

window.addEventListener('beforeinstallprompt', (event) => {
  event.preventDefault();
  installer.value = async () => {
    installer.value = null;
    await (event as Event & { prompt?: () => Promise<unknown> }).prompt?.();
  };
});
window.addEventListener('appinstalled', () => { installer.value = null; });
