#include "site/user/refresh_token.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "weir/base/random.h"

namespace weir::site::user {
namespace {

constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
constexpr std::size_t kSessionBytes = 16;
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kSessionChars = 22;  // of 16 bytes in base64url without padding
constexpr std::size_t kSecretChars = 43;   // of 32 bytes

std::string base64url(std::span<const unsigned char> bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(), kVariant);
  text.pop_back();  // the terminating NUL that libsodium counts
  return text;
}

template <std::size_t Size>
std::string random_text() {
  std::array<unsigned char, Size> bytes{};
  secure_random(std::as_writable_bytes(std::span(bytes)));
  return base64url(bytes);
}

bool is_base64url(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

}  // namespace

RefreshToken RefreshToken::make(std::string session) {
  return {std::move(session), new_secret()};
}

std::optional<RefreshToken> RefreshToken::parse(std::string_view text) {
  if (text.size() != kSessionChars + kSecretChars || !is_base64url(text)) return std::nullopt;
  return RefreshToken{std::string(text.substr(0, kSessionChars)), std::string(text.substr(kSessionChars))};
}

std::string RefreshToken::digest() const {
  std::array<unsigned char, crypto_generichash_BYTES> out{};
  crypto_generichash(out.data(), out.size(), reinterpret_cast<const unsigned char*>(secret.data()),
                     secret.size(), nullptr, 0);
  return base64url(out);
}

std::string new_session_id() {
  return random_text<kSessionBytes>();
}

std::string new_secret() {
  return random_text<kSecretBytes>();
}

}  // namespace weir::site::user
