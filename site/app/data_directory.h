// The data directory: everything that Weir keeps on this machine, used by one server at a time.
#pragma once

#include <filesystem>

namespace weir::site {

class DataDirectory {
 public:
  // Makes the directory if it isn't there and takes it for this process; throws Unusable when another one has
  // it or it can't be used. The kernel gives it back when the process ends, however it ends.
  explicit DataDirectory(const std::filesystem::path& path);
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

 private:
  int lock_ = -1;
};

}  // namespace weir::site
