// Checks the types, then builds the tests with Vite (Debian's Node reads no TypeScript) and runs them:
// test.mjs [OUT]
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "vite";

const out = process.argv[2] ? resolve(process.argv[2]) : mkdtempSync(join(tmpdir(), "weir-ui-"));
if (!process.argv[2]) process.on("exit", () => rmSync(out, { recursive: true, force: true }));
const run = (...args) => spawnSync(process.execPath, args, { stdio: "inherit" }).status === 0;

if (!run("node_modules/vue-tsc/bin/vue-tsc.js", "--noEmit")) process.exit(1);
const tests = readdirSync("tests").filter((name) => name.endsWith(".test.ts"));
await build({
  configFile: false,
  logLevel: "warn",
  publicDir: false,
  build: {
    ssr: true,
    outDir: out,
    emptyOutDir: true,
    target: "node18",
    rollupOptions: {
      input: tests.map((name) => join("tests", name)),
      output: { entryFileNames: "[name].mjs" },
    },
  },
});
process.exit(run("--test", ...tests.map((name) => join(out, name.replace(/\.ts$/, ".mjs")))) ? 0 : 1);
