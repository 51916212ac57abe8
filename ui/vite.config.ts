import vue from "@vitejs/plugin-vue";
import { defineConfig } from "vite";

// One entry for what every page has, and one for each kind of page that needs more. The server reads the
// manifest (through scripts/pack.mjs) to know which files belong to an entry.
export default defineConfig({
  plugins: [vue()],
  base: "/assets/",
  define: { __VUE_OPTIONS_API__: "false", __VUE_PROD_DEVTOOLS__: "false" },
  build: {
    target: "es2020",
    manifest: true,
    modulePreload: false,
    assetsDir: "",
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      input: ["site", "article", "auth", "write", "mine"].map((name) => `src/${name}.ts`),
    },
  },
});
