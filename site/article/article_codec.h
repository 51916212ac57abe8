// How a readers' copy looks in the cache that nodes share: JSON, for people who look there.
#pragma once

#include <cstddef>

#include "site/article/article.h"
#include "weir/cache/codec.h"

namespace weir::site::article {

// To be raised with every change of what is written.
inline constexpr unsigned kReaderCopyFormat = 1;

// Thread-safe.
cache::Codec<Id, ReaderCopy> reader_copy_codec();

}  // namespace weir::site::article
