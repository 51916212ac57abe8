// Assets: the files that Vite built from ui/, inside the program, compressed beforehand.
//
// Their names carry a hash of their content, so that browsers keep them for a year and never ask again.
// Immutable after the first use and thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/http/response.h"
#include "weir/http/router.h"

namespace weir::site::pages {

// The files of one of ui's entries ("site", "article", "auth", "write", "mine"), as addresses.
struct Entry {
  std::string script;
  std::vector<std::string> imports;  // scripts that it will ask for first: to be fetched side by side
  std::vector<std::string> styles;
};
// Throws std::logic_error for an entry that wasn't built.
const Entry& entry_of(std::string_view name);

// The address of a file of ui/static: "favicon.svg" -> "/assets/favicon-1a2b3c4d.svg".
std::string_view static_address(std::string_view name);

// A text that was put into the program beside the assets: "messages/en.json".
std::string_view embedded_text(std::string_view name);

// GET /assets/{file}: in the encoding that the client takes (brotli, gzip or none), kept for a year. 404 for
// a name that isn't there.
void add_asset_routes(http::Router& router);

// What Accept-Encoding allows: "br", "gzip" or "" for none, the smaller first. `brotli` tells whether there
// is such a version.
std::string_view choose_encoding(std::string_view accept_encoding, bool brotli);

}  // namespace weir::site::pages
