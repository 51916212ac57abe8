#include "weir/redis/script.h"

#include <openssl/evp.h>

#include <array>
#include <new>
#include <utility>

namespace weir::redis {
namespace {

std::string sha1_of(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha1(), nullptr) != 1)
    throw std::bad_alloc();
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

}  // namespace

Script::Script(std::string name, std::string source, Repeat repeat)
    : name_(std::move(name)), source_(std::move(source)), sha1_(sha1_of(source_)), repeat_(repeat) {}

}  // namespace weir::redis
