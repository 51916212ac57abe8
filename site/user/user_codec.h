// How a profile looks in the cache that nodes share: JSON, for people who look there.
#pragma once

#include "site/user/user.h"
#include "weir/cache/codec.h"

namespace weir::site::user {

// To be raised with every change of what is written.
inline constexpr unsigned kUserFormat = 1;

// Thread-safe.
cache::Codec<Id, User> user_codec();

}  // namespace weir::site::user
