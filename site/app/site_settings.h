// The settings of the weir program: every key, its default and what it may be.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weir/config/settings.h"
#include "weir/sql/database.h"

namespace weir::site {

std::vector<config::Key> site_keys();

// The queue.url of the queue that is this node's own.
inline constexpr std::string_view kEmbedded = "embedded:";

// Checks that one key's fault can't see, because they concern two keys. Throws config::BadSetting.
void check_together(const config::Settings& settings);

// Where the store and the queue are, from their URLs and the data directory.
sql::Options store_options(const config::Settings& settings);
std::filesystem::path queue_path(const config::Settings& settings);

// For commands that work on a store that is there: a typing error in --data must not make an empty one. Throws
// Unusable when there is none. (A database of a MySQL server is never made by Weir.)
void want_store(const config::Settings& settings);

}  // namespace weir::site
