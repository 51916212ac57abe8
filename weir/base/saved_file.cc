#include "weir/base/saved_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "weir/base/fault.h"
#include "weir/base/hash.h"
#include "weir/base/random.h"

namespace weir {
namespace {

constexpr std::size_t kNumberBytes = 8;

// The file that will have the name once it is whole; until then it goes when this goes.
class NewFile : public Sink {
 public:
  explicit NewFile(std::filesystem::path name)
      : name_(std::move(name)),
        temporary_(name_.string() + "." + std::to_string(secure_random64()) + ".new"),
        descriptor_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (descriptor_ < 0) throw Unavailable(errno_text("open " + temporary_));
  }
  ~NewFile() override {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!renamed_) ::unlink(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw Unavailable(errno_text("write " + temporary_));
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void take_the_name() {
    if (::fsync(descriptor_) != 0) throw Unavailable(errno_text("fsync " + temporary_));
    if (::close(std::exchange(descriptor_, -1)) != 0) throw Unavailable(errno_text("close " + temporary_));
    if (::rename(temporary_.c_str(), name_.c_str()) != 0)
      throw Unavailable(errno_text("rename " + temporary_ + " to " + name_.string()));
    renamed_ = true;
    sync_folder();
  }

 private:
  // The name, too, is only safe on disk.
  void sync_folder() const {
    const std::string folder = name_.has_parent_path() ? name_.parent_path().string() : ".";
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) throw Unavailable(errno_text("open " + folder));
    const int failed = ::fsync(descriptor);
    const std::string reason = failed != 0 ? errno_text("fsync " + folder) : "";
    ::close(descriptor);
    if (failed != 0) throw Unavailable(reason);
  }

  const std::filesystem::path name_;
  const std::string temporary_;
  int descriptor_;
  bool renamed_ = false;
};

std::string header_bytes(std::string_view magic, std::uint64_t version,
                         std::span<const std::uint64_t> numbers) {
  std::string bytes(magic);
  append_number(bytes, version);
  for (const std::uint64_t number : numbers) append_number(bytes, number);
  return bytes;
}

}  // namespace

void MemorySource::read(std::span<char> out) {
  if (out.size() > bytes_.size()) throw Unusable("it is cut off");
  if (out.empty()) return;
  std::memcpy(out.data(), bytes_.data(), out.size());
  bytes_.remove_prefix(out.size());
}

FileSource::FileSource(const std::filesystem::path& file) : file_(std::fopen(file.c_str(), "rbe")) {
  if (!file_) throw Unavailable(errno_text("open " + file.string()));
  std::error_code failed;
  left_ = std::filesystem::file_size(file, failed);
  if (failed) throw Unavailable("size of " + file.string() + ": " + failed.message());
}

void FileSource::read(std::span<char> out) {
  if (out.size() > left_) throw Unusable("it is cut off");
  if (std::fread(out.data(), 1, out.size(), file_.get()) != out.size()) {
    if (std::ferror(file_.get()) != 0) throw Unavailable(errno_text("read"));
    throw Unusable("it is cut off");
  }
  left_ -= out.size();
}

void replace_file(const std::filesystem::path& file, const std::function<void(Sink&)>& write) {
  NewFile next(file);
  write(next);
  next.take_the_name();
}

void read_file(const std::filesystem::path& file, const std::function<void(Source&)>& read) {
  FileSource source(file);
  try {
    read(source);
    if (source.left() > 0) throw Unusable("something follows it");
  } catch (const Unusable& error) {
    throw Unusable(file.string() + ": " + error.what());
  } catch (const Unavailable& error) {
    throw Unavailable(file.string() + ": " + error.what());
  }
}

void append_number(std::string& out, std::uint64_t number) {
  for (std::size_t i = 0; i < kNumberBytes; ++i) out.push_back(static_cast<char>(number >> (8 * i) & 0xff));
}

std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < kNumberBytes; ++i)
    number |= std::uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  return number;
}

void write_header(Sink& sink, std::string_view magic, std::uint64_t version,
                  std::span<const std::uint64_t> numbers) {
  std::string bytes = header_bytes(magic, version, numbers);
  append_number(bytes, hash64(bytes));
  sink.write(bytes);
}

void read_header(Source& source, std::string_view magic, std::uint64_t version,
                 std::span<std::uint64_t> numbers) {
  // What it is comes first: the header of another version may be shorter or longer.
  std::string bytes(magic.size() + kNumberBytes, '\0');
  source.read(bytes);
  if (std::string_view(bytes).substr(0, magic.size()) != magic)
    throw Unusable("not a file of this kind: it doesn't begin with \"" + std::string(magic) + "\"");
  if (const std::uint64_t found = number_at(bytes, magic.size()); found != version)
    throw Unusable("format version " + std::to_string(found) + ", but this program reads version " +
                   std::to_string(version));
  const std::size_t known = bytes.size();
  bytes.resize(known + (numbers.size() + 1) * kNumberBytes);
  source.read(std::span(bytes).subspan(known));
  const std::size_t checked = bytes.size() - kNumberBytes;
  if (hash64(std::string_view(bytes).substr(0, checked)) != number_at(bytes, checked))
    throw Unusable("the header is damaged: its checksum is wrong");
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = number_at(bytes, known + i * kNumberBytes);
}

}  // namespace weir
