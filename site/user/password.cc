#include "site/user/password.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "site/user/user.h"
#include "weir/base/fault.h"
#include "weir/base/offload.h"
#include "weir/base/random.h"

namespace weir::site::user {
namespace {

constexpr unsigned long long kPasses = 2;
constexpr std::size_t kMemoryBytes = std::size_t{19'456} * 1024;  // 19 MiB

// libsodium asks for this once before anything else; it is idempotent and thread-safe.
void start_sodium() {
  if (sodium_init() < 0) throw Unusable("libsodium can't start on this machine");
}

std::string unknowable_password() {
  std::array<std::byte, 32> bytes{};
  secure_random(bytes);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::size_t threads_or_cores(std::size_t threads) {
  return threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

PasswordHasher::PasswordHasher(Options options)
    : nobodys_hash_(hash_now(unknowable_password())),
      pool_("password", threads_or_cores(options.threads), options.max_waiting) {}

boost::asio::awaitable<std::optional<std::string>> PasswordHasher::hash(std::string password,
                                                                        std::function<bool()> still_wanted) {
  auto work = [password = std::move(password),
               still_wanted = std::move(still_wanted)]() -> std::optional<std::string> {
    if (!still_wanted()) return std::nullopt;
    return hash_now(password);
  };
  co_return co_await offload(pool_, std::move(work));
}

boost::asio::awaitable<bool> PasswordHasher::verify(std::optional<std::string> hash, std::string password) {
  const bool known = hash.has_value();
  auto work = [hash = std::move(hash).value_or(nobodys_hash_), password = std::move(password), known] {
    return verify_now(hash, password) && known;
  };
  co_return co_await offload(pool_, std::move(work));
}

std::string PasswordHasher::hash_now(std::string_view password) {
  start_sodium();
  std::array<char, crypto_pwhash_STRBYTES> text{};
  if (crypto_pwhash_str_alg(text.data(), password.data(), password.size(), kPasses, kMemoryBytes,
                            crypto_pwhash_ALG_ARGON2ID13) != 0)
    throw Unavailable("no memory to hash a password");
  return text.data();
}

bool PasswordHasher::verify_now(const std::string& hash, std::string_view password) {
  start_sodium();
  // Longer ones can't have been set; they aren't worth the hashing of megabytes.
  const auto looked_at = password.substr(0, kMaxPasswordBytes + 1);
  errno = 0;
  if (crypto_pwhash_str_verify(hash.c_str(), looked_at.data(), looked_at.size()) == 0) return true;
  if (errno == ENOMEM) throw Unavailable("no memory to check a password");
  return false;
}

}  // namespace weir::site::user
