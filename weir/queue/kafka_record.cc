#include "weir/queue/kafka_record.h"

#include <bit>
#include <cstring>

namespace weir::queue::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

constexpr char kVersion = 1;

template <class T>
char* put(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

template <class T>
const char* get(const char* at, T& value) {
  std::memcpy(&value, at, sizeof value);
  return at + sizeof value;
}

}  // namespace

std::array<char, kIdentityBytes> encode_identity(const Record& record) {
  std::array<char, kIdentityBytes> bytes;
  char* at = put(bytes.data(), kVersion);
  at = put(at, record.producer);
  at = put(at, record.lane);
  at = put(at, record.sequence);
  put(at, to_micros(record.appended_at));
  return bytes;
}

bool decode_identity(std::string_view bytes, Record& record) {
  if (bytes.size() != kIdentityBytes || bytes.front() != kVersion) return false;
  const char* at = get(bytes.data() + 1, record.producer);
  at = get(at, record.lane);
  at = get(at, record.sequence);
  std::int64_t micros;
  get(at, micros);
  record.appended_at = from_micros(micros);
  return true;
}

}  // namespace weir::queue::detail
