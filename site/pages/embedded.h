// The table of what ui/scripts/pack.mjs puts into the program; the .cc that defines it is written by that
// script at build time.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace weir::site::pages {

struct EmbeddedFile {
  std::string_view name;          // "site-CxK3.js"; for texts "messages/en.json"
  std::string_view content_type;  // empty: not served
  std::string_view tag;           // of the uncompressed bytes
  // Where each version is in the pack; a size of 0 means that there is none.
  std::size_t plain_at, plain_size;
  std::size_t gzip_at, gzip_size;
  std::size_t brotli_at, brotli_size;
};

struct EmbeddedEntry {
  std::string_view name;
  std::string_view script;
  std::string_view imports;  // names, separated by spaces
  std::string_view styles;   // likewise
};

struct EmbeddedStatic {
  std::string_view name, file;
};

std::string_view embedded_pack();
std::span<const EmbeddedFile> embedded_files();
std::span<const EmbeddedEntry> embedded_entries();
std::span<const EmbeddedStatic> embedded_statics();

}  // namespace weir::site::pages
