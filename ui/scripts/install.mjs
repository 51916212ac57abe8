// Installs the packages of package-lock.json into node_modules, unless they are there already. Run under a
// lock, since several build directories share node_modules.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const stamp = "node_modules/.installed";
const wanted = createHash("sha256").update(readFileSync("package-lock.json")).digest("hex");
if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) process.exit(0);

// No package needs its install script; esbuild and rollup bring their programs as packages.
const done = spawnSync("npm", ["ci", "--ignore-scripts"], { stdio: ["ignore", "ignore", "inherit"] });
if (done.error) console.error(`npm: ${done.error.message}`);
if (done.status !== 0) process.exit(1);
writeFileSync(stamp, wanted);
