#include "weir/http/token.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <stdexcept>

#include "weir/base/fault.h"

namespace weir::http {
namespace {

// {"alg":"HS256","typ":"JWT"}
constexpr std::string_view kHeader = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
constexpr std::size_t kMacBytes = 32;
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::int8_t, 256> make_values() {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}
constexpr auto kValues = make_values();

using Mac = std::array<unsigned char, kMacBytes>;

Mac hmac_sha256(std::string_view secret, std::string_view bytes) {
  // Fetching the algorithm costs more than using it; it lives as long as the program.
  static EVP_MAC* const algorithm = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(EVP_MAC_CTX_new(algorithm),
                                                                          EVP_MAC_CTX_free);
  std::array<char, 7> digest{"SHA256"};
  const std::array<OSSL_PARAM, 2> params{
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0), OSSL_PARAM_construct_end()};
  Mac mac{};
  std::size_t size = 0;
  if (!context ||
      EVP_MAC_init(context.get(), reinterpret_cast<const unsigned char*>(secret.data()), secret.size(),
                   params.data()) != 1 ||
      EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) !=
          1 ||
      EVP_MAC_final(context.get(), mac.data(), &size, mac.size()) != 1 || size != mac.size()) {
    throw Unavailable("OpenSSL can't compute HMAC-SHA256");
  }
  return mac;
}

std::string_view as_text(const Mac& mac) {
  return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

std::optional<std::int64_t> whole_seconds(const boost::json::object& claims, std::string_view name) {
  const auto* value = claims.if_contains(name);
  const auto* seconds = value == nullptr ? nullptr : value->if_int64();
  return seconds == nullptr ? std::nullopt : std::optional(*seconds);
}

bool is_current(const boost::json::object& claims, WallTime now) {
  const std::int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  const auto expires = whole_seconds(claims, "exp");
  if (!expires || *expires <= seconds) return false;
  if (!claims.contains("nbf")) return true;
  const auto not_before = whole_seconds(claims, "nbf");
  return not_before && *not_before <= seconds;
}

}  // namespace

std::string sign_token(const boost::json::object& claims, std::string_view secret) {
  if (secret.empty()) throw std::logic_error("a token can't be signed without a secret");
  std::string token(kHeader);
  token += '.';
  token += base64url_encode(boost::json::serialize(claims));
  const Mac mac = hmac_sha256(secret, token);
  token += '.';
  token += base64url_encode(as_text(mac));
  return token;
}

std::optional<boost::json::object> verify_token(std::string_view token, std::string_view secret,
                                                WallTime now) {
  if (secret.empty() || token.size() > kMaxTokenBytes || !token.starts_with(kHeader)) return std::nullopt;
  const std::size_t last_dot = token.rfind('.');
  if (token.size() <= kHeader.size() || token[kHeader.size()] != '.' || last_dot <= kHeader.size())
    return std::nullopt;
  const auto signature = base64url_decode(token.substr(last_dot + 1));
  if (!signature || signature->size() != kMacBytes) return std::nullopt;
  const Mac mac = hmac_sha256(secret, token.substr(0, last_dot));
  if (CRYPTO_memcmp(mac.data(), signature->data(), mac.size()) != 0) return std::nullopt;
  // From here on the bytes are our own.
  const auto payload = base64url_decode(token.substr(kHeader.size() + 1, last_dot - kHeader.size() - 1));
  if (!payload) return std::nullopt;
  boost::system::error_code error;
  boost::json::value claims = boost::json::parse(*payload, error);
  if (error || !claims.is_object() || !is_current(claims.get_object(), now)) return std::nullopt;
  return std::move(claims.get_object());
}

std::string base64url_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (held += 8; held >= 6; held -= 6) text += kAlphabet[bits >> (held - 6) & 63];
  }
  if (held > 0) text += kAlphabet[bits << (6 - held) & 63];
  return text;
}

std::optional<std::string> base64url_decode(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const std::int8_t value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>(bits >> held & 0xff);
    }
  }
  // One text for one value: bits that no byte uses must be zero.
  if ((bits & ((1U << held) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace weir::http
