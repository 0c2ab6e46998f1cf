import { defineConfig } from 'vite';

// What is built must be the same on every machine: no hashes of times, no absolute paths, names that stay.
export default defineConfig({
  base: '/',
  publicDir: 'public',
  // Names that stay here too; the worker is loaded when the first long difference or code block is seen.
  worker: { format: 'es', rolldownOptions: { output: { entryFileNames: 'worker.js', chunkFileNames: 'worker-[name].js', assetFileNames: '[name][extname]' } } },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: ['chrome123', 'firefox121', 'safari17.5'],
    modulePreload: { polyfill: false },
    sourcemap: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rolldownOptions: {
      input: { index: 'index.html', sw: 'src/sw.ts' },
      output: {
        entryFileNames: (chunk) => (chunk.name === 'sw' ? 'sw.js' : '[name].js'),
        chunkFileNames: 'chunk-[name].js',
        assetFileNames: '[name][extname]',
      },
    },
  },
});
