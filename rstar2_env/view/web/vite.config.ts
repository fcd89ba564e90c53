/* Two classic scripts, one style sheet and the page from public/, with fixed names: the server and the export know them.
   `--mode text` builds the second script, which the page loads with the first message of an episode. */
import { defineConfig } from "vite";

export default defineConfig(({ mode }) => ({
  base: "./",
  publicDir: mode === "text" ? false : "public",
  build: {
    outDir: "../static",
    emptyOutDir: mode !== "text",
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      input: mode === "text" ? "src/text/main.ts" : "src/main.tsx",
      output: { format: "iife", entryFileNames: mode === "text" ? "text.js" : "app.js", assetFileNames: "app.[ext]" },
    },
  },
}));
