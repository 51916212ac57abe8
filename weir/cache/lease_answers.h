// What RemoteCache and counter::RemoteCounts do alike with leases and with Redis' answers: a detail of theirs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include "weir/base/random.h"
#include "weir/cache/remote_level.h"
#include "weir/redis/reply.h"

namespace weir::cache::detail {

// 128 random bits: no two leases of a key are ever alike.
inline std::string new_token() {
  const std::uint64_t bits[2] = {secure_random64(), secure_random64()};
  std::string token(sizeof bits, '\0');
  std::memcpy(token.data(), bits, sizeof bits);
  return token;
}

// PTTL's answer: -2 when the key has just gone, -1 for one without an end, which nobody of us made.
inline RemoteLevel::Millis left_of(const redis::Reply& pttl) {
  return RemoteLevel::Millis(std::max<std::int64_t>(pttl.integer(), 0));
}

// Why there is no answer, or one that refuses; null: there is.
inline std::exception_ptr failure_of(const redis::Reply& reply, std::string_view what) {
  try {
    reply.throw_if_error(what);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace weir::cache::detail
