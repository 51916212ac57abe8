// PasswordHasher: Argon2id (RFC 9106) by libsodium, 19 MiB and two passes, the setting that OWASP names
// first.
//
// A hash takes about 16 ms of one core on purpose, so it has threads of its own, as many as there are cores:
// an I/O thread never hashes, and a crowd at the door uses a known amount of memory (19 MiB a thread). The
// queue before them is bounded; when it is full the caller gets weir::Unavailable and tries later.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/blocking_pool.h"

namespace weir::site::user {

class PasswordHasher {
 public:
  struct Options {
    std::size_t threads = 0;  // 0: one per core
    std::size_t max_waiting = 512;
  };

  explicit PasswordHasher(Options options);

  // The hash in libsodium's text form ("$argon2id$v=19$m=19456,t=2,p=1$..."), with a random salt. When its
  // turn has come it first asks `still_wanted`, on the pool's thread, and gives nothing if the answer is no:
  // who has lost a race meanwhile costs no hash.
  boost::asio::awaitable<std::optional<std::string>> hash(std::string password,
                                                          std::function<bool()> still_wanted);

  // Whether the password made the hash. Without a hash the answer is no, after the same work.
  boost::asio::awaitable<bool> verify(std::optional<std::string> hash, std::string password);

  // Finishes what waits and refuses what comes later.
  void stop() { pool_.stop(); }

  // The same, blocking the calling thread. Throws Unavailable when 19 MiB can't be had.
  static std::string hash_now(std::string_view password);
  static bool verify_now(const std::string& hash, std::string_view password);

 private:
  const std::string nobodys_hash_;  // of a password that nobody knows
  BlockingPool pool_;
};

}  // namespace weir::site::user
