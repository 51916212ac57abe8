// How filters and caches get to where they are kept: bytes go into a Sink and come out of a Source, which is memory
// or a file. What is read is checked before it is believed. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weir {

class Sink {
 public:
  virtual ~Sink() = default;
  // Throws weir::Unavailable.
  virtual void write(std::string_view bytes) = 0;
};

class Source {
 public:
  virtual ~Source() = default;
  // Fills all of it, or throws weir::Unusable (there is less) or weir::Unavailable.
  virtual void read(std::span<char> out) = 0;
  // Bytes that are left.
  virtual std::uint64_t left() const = 0;
};

class MemorySink : public Sink {
 public:
  explicit MemorySink(std::string& out) : out_(out) {}
  void write(std::string_view bytes) override { out_.append(bytes); }

 private:
  std::string& out_;
};

class MemorySource : public Source {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  void read(std::span<char> out) override;
  std::uint64_t left() const override { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

class FileSource : public Source {
 public:
  // Throws weir::Unavailable.
  explicit FileSource(const std::filesystem::path& file);
  void read(std::span<char> out) override;
  std::uint64_t left() const override { return left_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t left_ = 0;
};

// Replaces the file by what `write` writes: into a new file beside it, to the disk, and then under its name.
// Throws weir::Unavailable and whatever `write` throws; the name then has the old file or the new one, whole.
void replace_file(const std::filesystem::path& file, const std::function<void(Sink&)>& write);

// Calls `read` on the file's bytes; throws weir::Unusable, naming the file, if it leaves some. What `read`
// throws of that kind gets the file's name, too.
void read_file(const std::filesystem::path& file, const std::function<void(Source&)>& read);

// Numbers in a header: little-endian, 64 bits each, so that every machine reads every file.
void append_number(std::string& out, std::uint64_t number);
std::uint64_t number_at(std::string_view bytes, std::size_t offset);

// A header: eight letters that tell what it is, a version, numbers, and the checksum of all that.
void write_header(Sink& sink, std::string_view magic, std::uint64_t version,
                  std::span<const std::uint64_t> numbers);
// Fills the numbers, or throws weir::Unusable: not such a file, another version, damaged.
void read_header(Source& source, std::string_view magic, std::uint64_t version,
                 std::span<std::uint64_t> numbers);

}  // namespace weir
