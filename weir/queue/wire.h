// Numbers and texts as bytes: LEB128 varints and length-prefixed strings. A detail of the folder's formats.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weir::queue::detail {

inline void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

inline void put_text(std::string& out, std::string_view text) {
  put_varint(out, text.size());
  out.append(text);
}

inline void put_u64(std::string& out, std::uint64_t value) {
  char bytes[8];
  std::memcpy(bytes, &value, 8);
  out.append(bytes, 8);
}

// Small magnitudes of either sign become small numbers.
inline std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// Reads what the functions above wrote. After the first thing that doesn't fit it is no longer good() and
// answers zeros.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool good() const { return good_; }
  bool at_end() const { return at_ == end_; }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }
  std::uint64_t u64() {
    if (end_ - at_ < 8) return fail();
    std::uint64_t value;
    std::memcpy(&value, at_, 8);
    at_ += 8;
    return value;
  }
  std::string_view text() {
    const std::uint64_t size = varint();
    if (size > static_cast<std::uint64_t>(end_ - at_)) {
      fail();
      return {};
    }
    const std::string_view found(at_, size);
    at_ += size;
    return found;
  }
  std::string_view rest() {
    const std::string_view found(at_, static_cast<std::size_t>(end_ - at_));
    at_ = end_;
    return found;
  }

 private:
  std::uint64_t fail() {
    good_ = false;
    at_ = end_;
    return 0;
  }

  const char* at_;
  const char* end_;
  bool good_ = true;
};

}  // namespace weir::queue::detail
