// Packs what Vite built, static files and messages for the server: pack.mjs DIST OUT writes OUT/assets.pack
// (all bytes, also gzipped and brotlied) and OUT/embedded.cc (where each file is in it, for
// site/pages/embedded.h).
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, extname, join, resolve } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const [dist, out] = process.argv.slice(2).map((path) => resolve(path));
const types = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
};

const pieces = [];
let size = 0;
/** Appends the bytes; answers "at, size" of C++. */
function place(bytes) {
  const at = size;
  if (bytes) {
    pieces.push(bytes);
    size += bytes.length;
  }
  return `${at}, ${bytes ? bytes.length : 0}`;
}

const text = (s) => JSON.stringify(s);
const hash = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 16);
const files = [];

function add(name, bytes, type) {
  // Pictures are compressed already; a version that saves less than a tenth isn't kept.
  const worth = (made) => (type && type !== "image/png" && made.length < bytes.length * 0.9 ? made : null);
  const gzip = worth(gzipSync(bytes, { level: 9 }));
  const brotli = worth(
    brotliCompressSync(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
  );
  files.push(
    `    {${text(name)}, ${text(type)}, ${text(hash(bytes))}, ${place(bytes)}, ${place(gzip)}, ${place(brotli)}},`,
  );
}

const manifest = JSON.parse(readFileSync(join(dist, ".vite/manifest.json"), "utf8"));
for (const name of readdirSync(dist).sort())
  if (types[extname(name)]) add(name, readFileSync(join(dist, name)), types[extname(name)]);

const statics = [];
for (const name of readdirSync("static").sort()) {
  const bytes = readFileSync(join("static", name));
  const hashed = `${basename(name, extname(name))}-${hash(bytes).slice(0, 8)}${extname(name)}`;
  add(hashed, bytes, types[extname(name)]);
  statics.push(`    {${text(name)}, ${text(hashed)}},`);
}
for (const name of readdirSync("messages").sort()) add(`messages/${name}`, readFileSync(join("messages", name)), "");

/** All scripts that a chunk imports, itself excluded. */
function imports(key, seen = new Set()) {
  for (const next of manifest[key].imports ?? []) {
    if (seen.has(next)) continue;
    seen.add(next);
    imports(next, seen);
  }
  return seen;
}
const entries = Object.entries(manifest)
  .filter(([, chunk]) => chunk.isEntry)
  .map(([key, chunk]) => {
    const needed = [...imports(key)];
    const styles = [...needed.flatMap((one) => manifest[one].css ?? []), ...(chunk.css ?? [])];
    const scripts = needed.map((one) => manifest[one].file);
    return `    {${text(basename(key, ".ts"))}, ${text(chunk.file)}, ${text(scripts.join(" "))}, ${text(styles.join(" "))}},`;
  });

writeFileSync(join(out, "assets.pack"), Buffer.concat(pieces));
writeFileSync(
  join(out, "embedded.cc"),
  `// Written by ui/scripts/pack.mjs.
#include "site/pages/embedded.h"

__asm__(
    ".section .rodata\\n"
    ".balign 16\\n"
    ".global weir_assets_pack\\n"
    "weir_assets_pack:\\n"
    ".incbin ${text(join(out, "assets.pack")).replaceAll('"', '\\"')}\\n"
    ".previous\\n");
extern "C" const char weir_assets_pack[];

namespace weir::site::pages {
namespace {

constexpr EmbeddedFile kFiles[] = {
${files.join("\n")}
};
constexpr EmbeddedEntry kEntries[] = {
${entries.join("\n")}
};
constexpr EmbeddedStatic kStatics[] = {
${statics.join("\n")}
};

}  // namespace

std::string_view embedded_pack() { return {weir_assets_pack, ${size}}; }
std::span<const EmbeddedFile> embedded_files() { return kFiles; }
std::span<const EmbeddedEntry> embedded_entries() { return kEntries; }
std::span<const EmbeddedStatic> embedded_statics() { return kStatics; }

}  // namespace weir::site::pages
`,
);
