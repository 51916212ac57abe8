// TempDir: an empty directory that goes away with its test. For tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace weir::sql {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-sql-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("can't make " + pattern);
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;  // what can't be removed stays, and no test fails for it
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace weir::sql
