// A cache's entries in a file, so that a restart begins warm.
//
//     struct ArticleCodec {
//       std::uint64_t format() const { return 3; }                  // of keys and values; another is refused
//       std::string encode_key(const Id&) const;                    // and back; throws for what it can't read:
//       Id decode_key(std::string_view) const;                      // that entry is left out
//       std::string encode_value(const Article&) const;
//       Article decode_value(std::string_view) const;
//     };
//     save_cache(articles, "articles.cache", ArticleCodec{});
//     ...
//     const Loaded loaded = load_cache(articles, "articles.cache", ArticleCodec{});
//
// What is in the file is checked before it is believed: each block has a checksum that hangs on the one before.
// A file that is cut off or damaged gives what stands before the damage, and says so. TTLs go on while the file
// lies there, by the wall clock; if that has gone backwards, nobody knows how long, and what has a TTL is left out.
//
// A load isn't a read of the store: what was written since the save comes back as it was then. Load before the
// first write is taken, and let the TTL bound the rest, or leave out what may have changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/fault.h"
#include "weir/base/saved_file.h"
#include "weir/cache/local_cache.h"

namespace weir::cache {

struct Loaded {
  std::uint64_t entries = 0;   // put; those that the cache had no room for were evicted again
  std::uint64_t expired = 0;   // their TTL was over
  std::uint64_t left_out = 0;  // the codec couldn't read them, or they are too heavy now
  bool whole = true;           // false: the file is damaged, and this is what stood before that
};

// For keys and values that are integers, enumerations or strings.
template <class T>
std::string plain_bytes(const T& value);
template <class T>
T from_plain_bytes(std::string_view bytes);  // throws weir::Unusable
template <class T>
constexpr std::uint64_t plain_kind() {
  return std::is_convertible_v<const T&, std::string_view> ? 1 : 0;
}
template <class K, class V>
struct PlainCodec {
  // By what is kept of keys and values.
  std::uint64_t format() const { return 2 * plain_kind<K>() + plain_kind<V>(); }
  std::string encode_key(const K& key) const { return plain_bytes(key); }
  K decode_key(std::string_view bytes) const { return from_plain_bytes<K>(bytes); }
  std::string encode_value(const V& value) const { return plain_bytes(value); }
  V decode_value(std::string_view bytes) const { return from_plain_bytes<V>(bytes); }
};

namespace detail {

// An entry as it lies in the file. Times in nanoseconds from the save on.
struct CacheRecord {
  std::string key{};
  std::optional<std::string> value{};  // none: an absence
  std::uint64_t weight = 1;
  std::optional<std::int64_t> left{}, fresh{};
};

class CacheFileWriter {
 public:
  CacheFileWriter(Sink& sink, std::uint64_t format, WallTime now);
  void add(const CacheRecord& record);
  void finish();  // without it the file is read as one that is cut off
  std::uint64_t entries() const { return entries_; }

 private:
  void flush();

  Sink& sink_;
  std::string block_;
  std::uint64_t in_block_ = 0, entries_ = 0, checksum_ = 0;
};

class CacheFileReader {
 public:
  // Throws weir::Unusable: no such file, another version or format.
  CacheFileReader(Source& source, std::uint64_t format);
  // Nothing: the end, or damage.
  std::optional<CacheRecord> next();
  bool whole() const { return whole_; }
  WallTime saved_at() const { return saved_at_; }

 private:
  bool read_block();

  Source& source_;
  WallTime saved_at_;
  std::string block_;
  std::size_t at_ = 0;
  std::uint64_t left_in_block_ = 0, entries_ = 0, checksum_ = 0;
  bool whole_ = false, ended_ = false;
};

// Throws weir::Unusable with the file's name in it.
CacheFileReader open_cache_file(Source& source, const std::filesystem::path& file, std::uint64_t format);

std::optional<std::int64_t> nanos_of(std::optional<Duration> time);
// What is left of a time after the file has lain for so long; nothing when it is over.
struct Lain {
  Duration time;
  bool backwards;
};
Lain lain(WallTime saved_at, WallTime now);

}  // namespace detail

// Writes what is alive into the file, which is replaced as a whole; tells how many entries. Each shard as it is at
// one moment, one locked at a time, no file access under the lock. Throws weir::Unavailable (a full disk, say; then
// the old file is still there).
template <class K, class Stored, class Hash, class Codec>
std::uint64_t save_cache(const BasicLocalCache<K, Stored, Hash>& cache, const std::filesystem::path& file,
                         const Codec& codec, const Clock& clock = Clock::system());

// Puts what the file has, beside what is there, with what is left of its times and the weights that it had. Throws
// weir::Unavailable (it can't be read) and weir::Unusable (it is no such file).
template <class K, class Stored, class Hash, class Codec>
Loaded load_cache(BasicLocalCache<K, Stored, Hash>& cache, const std::filesystem::path& file,
                  const Codec& codec, const Clock& clock = Clock::system());

template <class T>
std::string plain_bytes(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return std::string(std::string_view(value));
  } else {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>, "give the file a codec for this type");
    std::string bytes;
    append_number(bytes, static_cast<std::uint64_t>(value));
    return bytes;
  }
}
template <class T>
T from_plain_bytes(std::string_view bytes) {
  if constexpr (std::is_constructible_v<T, std::string_view>) {
    return T(bytes);
  } else {
    if (bytes.size() != 8) throw Unusable("a number of " + std::to_string(bytes.size()) + " bytes");
    return static_cast<T>(number_at(bytes, 0));
  }
}

template <class K, class Stored, class Hash, class Codec>
std::uint64_t save_cache(const BasicLocalCache<K, Stored, Hash>& cache, const std::filesystem::path& file,
                         const Codec& codec, const Clock& clock) {
  std::uint64_t entries = 0;
  replace_file(file, [&](Sink& sink) {
    detail::CacheFileWriter writer(sink, codec.format(), clock.now());
    for (unsigned shard = 0; shard < cache.shards(); ++shard) {
      std::vector<std::tuple<K, Stored, EntryInfo>> alive;
      cache.for_each_in(shard, [&](const K& key, const Stored& value, const EntryInfo& info) {
        alive.emplace_back(key, value, info);
      });
      for (const auto& [key, value, info] : alive) {
        detail::CacheRecord record{.key = codec.encode_key(key),
                                   .weight = info.weight,
                                   .left = detail::nanos_of(info.left),
                                   .fresh = detail::nanos_of(info.fresh)};
        if constexpr (!detail::kIsShared<Stored>) {
          record.value = codec.encode_value(value);
        } else if (value != nullptr) {
          record.value = codec.encode_value(*value);
        }
        writer.add(record);
      }
    }
    writer.finish();
    entries = writer.entries();
  });
  return entries;
}

namespace detail {

// True when it was kept.
template <class K, class Stored, class Hash, class Codec>
bool put_record(BasicLocalCache<K, Stored, Hash>& cache, const CacheRecord& record, Duration ttl,
                Duration refresh_after, const Codec& codec) {
  try {
    const K key = codec.decode_key(record.key);
    const auto weight = static_cast<std::size_t>(record.weight);
    if constexpr (!kIsShared<Stored>) {
      if (!record.value) return false;
      return cache.put(key, codec.decode_value(*record.value), weight, ttl, refresh_after);
    } else {
      using V = std::remove_const_t<typename Stored::element_type>;
      Stored value = record.value ? std::make_shared<V>(codec.decode_value(*record.value)) : nullptr;
      return cache.put(key, std::move(value), weight, ttl, refresh_after);
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    return false;
  }
}

}  // namespace detail

template <class K, class Stored, class Hash, class Codec>
Loaded load_cache(BasicLocalCache<K, Stored, Hash>& cache, const std::filesystem::path& file,
                  const Codec& codec, const Clock& clock) {
  Loaded loaded;
  FileSource source(file);
  detail::CacheFileReader reader = detail::open_cache_file(source, file, codec.format());
  const detail::Lain lain = detail::lain(reader.saved_at(), clock.now());
  const auto after = [&](std::optional<std::int64_t> left) {
    return left ? Duration(*left) - lain.time : kNever;
  };
  while (const auto record = reader.next()) {
    const Duration ttl = after(record->left);
    if (record->left && (lain.backwards || ttl <= Duration::zero())) {
      ++loaded.expired;
    } else if (detail::put_record(cache, *record, ttl, after(record->fresh), codec)) {
      ++loaded.entries;
    } else {
      ++loaded.left_out;
    }
  }
  loaded.whole = reader.whole();
  return loaded;
}

}  // namespace weir::cache
