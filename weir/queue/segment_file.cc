#include "weir/queue/segment_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "weir/base/fault.h"
#include "weir/queue/journal_format.h"

namespace weir::queue {
namespace {

bool is_full_disk(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

}  // namespace

SegmentFile::SegmentFile(std::string path, std::uint32_t segment_size, std::uint32_t segments)
    : path_(std::move(path)),
      wanted_size_(segment_size),
      wanted_segments_(segments),
      segment_size_(segment_size),
      segments_(segments) {
  open();
}

SegmentFile::~SegmentFile() {
  unmap();
  if (file_ >= 0) ::close(file_);
}

bool SegmentFile::open() {
  if (is_open()) return true;
  if (file_ < 0) {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (file_ < 0) {
      if (is_full_disk(errno)) return false;
      throw Unusable(errno_text("open the journal " + path_));
    }
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      const bool in_use = errno == EWOULDBLOCK;
      const std::string why = errno_text("lock the journal " + path_);
      ::close(std::exchange(file_, -1));
      throw Unusable(in_use ? "the journal " + path_ + " is in use by another process" : why);
    }
  }
  struct stat status{};
  if (::fstat(file_, &status) != 0) throw Unusable(errno_text("look at the journal " + path_));
  const auto bytes = static_cast<std::size_t>(status.st_size);
  // Fills the holes of a file that was copied sparsely; where there are none it is skipped, because a file
  // system that can't preallocate would rewrite every block.
  const bool sparse = static_cast<std::size_t>(status.st_blocks) * 512 < bytes;
  const bool header_allocated =
      bytes > detail::kFileHeaderBytes || allocate_range(0, detail::kFileHeaderBytes);
  if (!header_allocated) return false;
  read_geometry(bytes);
  map();
  allocated_ = sparse ? 0 : whole_segments(bytes);
  allocate();
  // Of a segment that was cut off and can't be filled up again, nothing may be touched: reading it is a SIGBUS.
  existing_ = std::min(existing_, allocated_);
  return true;
}

void SegmentFile::read_geometry(std::size_t file_bytes) {
  detail::FileHeader header{};
  segment_size_ = wanted_size_;
  segments_ = wanted_segments_;
  const bool was_there = file_bytes > detail::kFileHeaderBytes;
  if (was_there) {
    if (::pread(file_, &header, sizeof header, 0) != sizeof header)
      throw Unusable(errno_text("read the journal " + path_));
    const auto size = detail::value_of(header.segment_size);
    damaged_ = header.magic != detail::kFileMagic || !size || *size < 4096 || *size % 4096 != 0;
    if (!damaged_) segment_size_ = *size;
  }
  // A segment that the file ends within counts: what is whole of it is still to be sent.
  existing_ = was_there ? whole_segments(file_bytes + segment_size_ - 1) : 0;
  segments_ = std::max(wanted_segments_, existing_);
  if (!was_there || damaged_) {
    header = {detail::kFileMagic, detail::checked_word(segment_size_)};
    if (::pwrite(file_, &header, sizeof header, 0) != sizeof header)
      throw Unusable(errno_text("write the journal " + path_));
  }
}

std::uint32_t SegmentFile::whole_segments(std::size_t file_bytes) const {
  if (file_bytes <= detail::kFileHeaderBytes) return 0;
  return static_cast<std::uint32_t>((file_bytes - detail::kFileHeaderBytes) / segment_size_);
}

bool SegmentFile::allocate_range(std::size_t from, std::size_t bytes) {
  return ::posix_fallocate(file_, static_cast<off_t>(from), static_cast<off_t>(bytes)) == 0;
}

bool SegmentFile::allocate() {
  if (!is_open()) return false;
  const auto offset = [this](std::uint32_t segment) {
    return detail::kFileHeaderBytes + std::size_t{segment} * segment_size_;
  };
  if (allocated_ < segments_ && allocate_range(offset(allocated_), offset(segments_) - offset(allocated_)))
    allocated_ = segments_;
  while (allocated_ < segments_ && allocate_range(offset(allocated_), segment_size_)) ++allocated_;
  return allocated_ == segments_;
}

void SegmentFile::restart() {
  unmap();
  if (::ftruncate(file_, 0) != 0) throw Unusable(errno_text("truncate the journal " + path_));
  existing_ = allocated_ = 0;  // which is so, too, when the disk has no room for a header
  open();
}

void SegmentFile::map() {
  const std::size_t bytes = detail::kFileHeaderBytes + std::size_t{segments_} * segment_size_;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) throw Unusable(errno_text("map the journal " + path_));
  memory_ = static_cast<std::byte*>(memory);
}

void SegmentFile::unmap() {
  if (!is_open()) return;
  ::munmap(std::exchange(memory_, nullptr),
           detail::kFileHeaderBytes + std::size_t{segments_} * segment_size_);
}

std::byte* SegmentFile::segment(std::uint32_t number) const {
  return memory_ + detail::kFileHeaderBytes + std::size_t{number} * segment_size_;
}

}  // namespace weir::queue
