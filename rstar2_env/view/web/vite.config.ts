/* One classic script, one style sheet and the page from public/, with fixed names: the server and the export know them. */
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  publicDir: "public",
  build: {
    outDir: "../static",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      input: "src/main.tsx",
      output: { format: "iife", entryFileNames: "app.js", assetFileNames: "app.[ext]" },
    },
  },
});
