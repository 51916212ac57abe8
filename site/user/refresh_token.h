// RefreshToken: the opaque text that renews a session once: the session's id and 256 random bits, of which
// the store keeps a digest only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::site::user {

struct RefreshToken {
  std::string session;
  std::string secret;  // in base64url, as the session's id is

  static RefreshToken make(std::string session);
  // Nothing for what has another shape; whether it is live is the store's to say.
  static std::optional<RefreshToken> parse(std::string_view text);

  std::string text() const { return session + secret; }
  // BLAKE2b-256 of the secret, in base64url. The secret is random, so it needs no salt and no slow hash.
  std::string digest() const;
};

// 128 random bits in base64url.
std::string new_session_id();
// 256 random bits in base64url.
std::string new_secret();

}  // namespace weir::site::user
