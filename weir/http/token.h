// Tokens: JSON Web Tokens (RFC 7519) signed with HS256, and nothing else.
//
// The algorithm is the server's choice, never the token's: the header must be, byte for byte, the one that
// sign_token writes. Over OpenSSL's HMAC; about 1 us to sign, 2 us to verify. Thread-safe.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/clock.h"

namespace weir::http {

// A longer token is not looked at.
inline constexpr std::size_t kMaxTokenBytes = 4096;

// The claims should hold `exp`, in seconds since 1970: without it no token is valid.
std::string sign_token(const boost::json::object& claims, std::string_view secret);

// The claims of a token that was signed with the secret and has not expired; nothing for any other bytes.
// Doesn't throw for whatever bytes; constant-time in the signature.
std::optional<boost::json::object> verify_token(std::string_view token, std::string_view secret,
                                                WallTime now);

// Strict base64url without padding (RFC 4648, section 5): nothing for other characters, impossible lengths
// and trailing bits that aren't zero.
std::string base64url_encode(std::string_view bytes);
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace weir::http
