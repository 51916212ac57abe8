#include "site/interaction/interaction.h"

#include "weir/base/utf8.h"

namespace weir::site::interaction {

std::optional<std::string> folder_name_fault(std::string_view name) {
  const auto length = utf8_length(name);
  if (!length) return "must be valid UTF-8";
  if (name.find('\0') != std::string_view::npos) return "must not contain NUL";
  if (*length == 0 || *length > kMaxFolderNameCodePoints)
    return "must have 1 to " + std::to_string(kMaxFolderNameCodePoints) + " characters";
  return std::nullopt;
}

void encode_read(Id user, char (&payload)[kReadPayloadBytes]) {
  const auto bits = static_cast<std::uint64_t>(user);
  for (std::size_t i = 0; i < kReadPayloadBytes; ++i)
    payload[i] = static_cast<char>((bits >> (8 * i)) & 0xff);
}

std::optional<Id> decode_read(std::string_view payload) {
  if (payload.size() != kReadPayloadBytes) return std::nullopt;
  std::uint64_t bits = 0;
  for (std::size_t i = kReadPayloadBytes; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(payload[i]);
  const auto user = static_cast<Id>(bits);
  if (user < 0) return std::nullopt;
  return user;
}

}  // namespace weir::site::interaction
