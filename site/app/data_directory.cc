#include "site/app/data_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <string>

#include "weir/base/fault.h"

namespace weir::site {
namespace {

// The process id that the holder wrote into its lock file, or "unknown".
std::string holder(int fd) {
  std::array<char, 32> text{};
  const ssize_t n = ::pread(fd, text.data(), text.size() - 1, 0);
  return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : "unknown";
}

}  // namespace

DataDirectory::DataDirectory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Unusable("the data directory " + path.string() + " can't be made: " + error.message());
  const std::string file = (path / "lock").string();
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) throw Unusable(errno_text("the data directory can't be used: open " + file));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const std::string pid = holder(lock_);
    ::close(lock_);
    throw Unusable("the data directory " + path.string() + " is in use by another weir (process " + pid +
                   ")");
  }
  // Only for the message above: on a full disk the lock holds all the same.
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(lock_, 0) == 0) [[maybe_unused]]
    const auto written = ::pwrite(lock_, pid.data(), pid.size(), 0);
}

DataDirectory::~DataDirectory() {
  ::close(lock_);
}

}  // namespace weir::site
