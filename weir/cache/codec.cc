#include "weir/cache/codec.h"

#include "weir/base/hash.h"

namespace weir::cache {
namespace {

constexpr std::string_view kMark = "WRT1";  // whose it is, and the form of what follows
constexpr std::size_t kNumbers = 3;         // checksum, loaded_at and took in microseconds
constexpr std::size_t kHead = kMark.size() + kNumbers * sizeof(std::uint64_t);

// Little-endian, whatever the machine is: nodes may differ.
void append(std::string& bytes, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(number >> shift & 0xFF));
}
std::uint64_t number_at(std::string_view bytes, std::size_t index) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[kMark.size() + index * sizeof number + i]);
    number |= std::uint64_t{byte} << (8 * i);
  }
  return number;
}

std::uint64_t checksum(std::string_view name, std::string_view key, std::string_view value,
                       std::uint64_t loaded_at, std::uint64_t took) {
  const std::uint64_t seed = hash64(key, hash64(name));
  return hash64(value, mix64(mix64(seed ^ loaded_at) + took));
}

}  // namespace

std::string seal(std::string_view name, std::string_view key, std::string_view value, Origin origin) {
  const auto loaded_at = static_cast<std::uint64_t>(to_micros(origin.loaded_at));
  const auto took = static_cast<std::uint64_t>(origin.took.count());
  std::string bytes;
  bytes.reserve(kHead + value.size());
  bytes.append(kMark);
  append(bytes, checksum(name, key, value, loaded_at, took));
  append(bytes, loaded_at);
  append(bytes, took);
  return bytes.append(value);
}

std::optional<Unsealed> unseal(std::string_view name, std::string_view key, std::string_view bytes) {
  if (bytes.size() < kHead || !bytes.starts_with(kMark)) return std::nullopt;
  const std::string_view value = bytes.substr(kHead);
  const std::uint64_t loaded_at = number_at(bytes, 1), took = number_at(bytes, 2);
  if (number_at(bytes, 0) != checksum(name, key, value, loaded_at, took)) return std::nullopt;
  return Unsealed{value,
                  {from_micros(static_cast<std::int64_t>(loaded_at)),
                   std::chrono::microseconds(static_cast<std::int64_t>(took))}};
}

}  // namespace weir::cache
