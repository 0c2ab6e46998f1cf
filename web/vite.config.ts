import { defineConfig } from 'vite';

// What is built must be the same on every machine: no hash in a name, no time, no path of this one. The service worker is built alone and
// whole (`--mode sw`): not every browser loads modules in one.
const stable = { entryFileNames: '[name].js', chunkFileNames: 'chunk-[name].js', assetFileNames: '[name][extname]' } as const;

export default defineConfig(({ mode }) => ({
  base: '/',
  publicDir: mode === 'sw' ? false : 'public',
  worker: { format: 'es', rolldownOptions: { output: stable } },
  build: {
    outDir: 'dist',
    emptyOutDir: mode !== 'sw',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    modulePreload: { polyfill: false },
    sourcemap: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rolldownOptions: {
      checks: { pluginTimings: false },
      input: (mode === 'sw' ? { sw: 'src/sw.ts' } : { index: 'index.html' }) as Record<string, string>,
      output: { ...stable, format: mode === 'sw' ? ('iife' as const) : ('es' as const) },
    },
  },
}));
