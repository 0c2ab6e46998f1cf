import { join } from 'node:path';

const here = import.meta.dirname;
const web = process.env.PLEXUS_WEB ?? join(here, '../../../web');

// The page of the tests, built as the page itself is: the same policy must do for both.
export default {
  root: here,
  base: '/',
  publicDir: join(web, 'public'),
  worker: { format: 'es' },
  build: {
    target: ['chrome123', 'firefox121', 'safari17.5'], modulePreload: { polyfill: false }, assetsInlineLimit: 0, emptyOutDir: true, minify: false,
    rolldownOptions: { checks: { pluginTimings: false } },
  },
};
