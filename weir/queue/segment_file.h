// SegmentFile: the journal's file, locked for this process, mapped into memory, and never touched where the
// disk has not given it space yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::queue {

// Not thread-safe but for `segment`.
class SegmentFile {
 public:
  // Opens or creates the file. A file that is there already keeps its geometry: its segments' size, and at
  // least as many as it has. Throws Unusable when another has it open or the path can't be used; when the
  // disk is full, the file stays closed and `open` may be tried again. segment_size is a multiple of 4096.
  SegmentFile(std::string path, std::uint32_t segment_size, std::uint32_t segments);
  ~SegmentFile();
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  bool is_open() const { return memory_ != nullptr; }
  bool open();

  std::uint32_t segment_size() const { return segment_size_; }
  std::uint32_t segments() const { return segments_; }
  // Segments that the file had when it was opened: these can be read.
  std::uint32_t existing() const { return existing_; }
  // Segments, from the first, that can be written.
  std::uint32_t allocated() const { return allocated_; }
  // Allocates what is missing; true when nothing is.
  bool allocate();
  // Whether the geometry is another than was asked for.
  bool outgrown() const { return segment_size_ != wanted_size_ || segments_ != wanted_segments_; }
  // Throws everything away and begins again in the geometry that was asked for.
  void restart();
  // True when the file was there with a header that could not be read.
  bool damaged() const { return damaged_; }

  // Where a segment lies, 4096-aligned.
  std::byte* segment(std::uint32_t number) const;
  const std::string& path() const { return path_; }

 private:
  bool allocate_range(std::size_t from, std::size_t bytes);
  void read_geometry(std::size_t file_bytes);
  // Segments that a file of this size holds to their end.
  std::uint32_t whole_segments(std::size_t file_bytes) const;
  void map();
  void unmap();

  const std::string path_;
  const std::uint32_t wanted_size_, wanted_segments_;
  std::uint32_t segment_size_, segments_;
  std::uint32_t existing_ = 0, allocated_ = 0;
  bool damaged_ = false;
  int file_ = -1;
  std::byte* memory_ = nullptr;
};

}  // namespace weir::queue
