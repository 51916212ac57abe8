// The commands of the weir program. Each returns the exit code: 0 done, 1 failed. What stops them is an
// exception.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weir/config/settings.h"

namespace weir::site {

// Serves until SIGTERM or SIGINT; a second one ends the process at once. `role`: what this node does, as
// Roles::parse wants it.
int serve(const config::Settings& settings, const std::string& role);

struct SeedOptions {
  std::uint64_t articles = 120, users = 30, likes = 900, random_seed = 1;
  std::optional<std::string> password;  // made and printed when there is none
};
// Fills the store with made-up people, articles and likes: the same for the same numbers.
int seed(const config::Settings& settings, const SeedOptions& options);

struct ImportOptions {
  std::filesystem::path file;
  bool shift = false;  // moves the newest post to now
};
// Real posts of Hacker News from a CSV file, gzipped or not. Importing twice adds nothing.
int import_hn(const config::Settings& settings, const ImportOptions& options);

int list_jobs(const config::Settings& settings);
// One run in the foreground.
int run_job(const config::Settings& settings, const std::string& name);

// Makes the person with that email an administrator, or takes it back; throws Unusable when nobody has it. A
// running server shows it at that person's next sign-in or refresh. Doing it twice is the same as once.
int grant_admin(const config::Settings& settings, const std::string& email);
int revoke_admin(const config::Settings& settings, const std::string& email);

// Accidents of caches, each beside its cure; they need no store and no settings. Exit code 0 only if the cure
// held; throws BadSetting when there is none of that name. `json`: prints JSON only.
int list_labs();
int run_lab(const std::string& name, bool json);

struct ReplayOptions {
  std::filesystem::path file;
  std::vector<std::size_t> capacities;  // entries
  bool json = false;
};
// Hit ratios of a trace of keys, one a line, gzipped or not: the local cache beside LRU and the optimum.
int replay_cache(const ReplayOptions& options);

int show_config(const config::Settings& settings);
int show_version();

}  // namespace weir::site
