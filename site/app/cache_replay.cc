#include "site/app/cache_replay.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <iomanip>
#include <iostream>
#include <limits>
#include <list>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>

#include "site/app/commands.h"
#include "weir/base/fault.h"
#include "weir/cache/local_cache.h"

namespace weir::site {
namespace {

constexpr std::size_t kLongestKey = std::size_t{64} << 10;
constexpr std::uint32_t kMostKeys = std::numeric_limits<std::uint32_t>::max();

// Lines of a file, gzipped or not.
class Lines {
 public:
  explicit Lines(const std::filesystem::path& file) : file_(file), in_(gzopen(file.c_str(), "rb"), gzclose) {
    if (!in_) throw Unusable(errno_text("open " + file.string()));
    if (std::filesystem::is_directory(file)) throw Unusable("read " + file.string() + ": it is a directory");
    gzbuffer(in_.get(), 1U << 17);
  }

  // The next line without its end; false when there is none. `line` is good until the next call.
  bool next(std::string_view& line) {
    for (;;) {
      const std::size_t end = buffer_.find('\n', from_);
      if (end != std::string::npos) {
        line = trimmed(from_, end);
        from_ = end + 1;
        return true;
      }
      if (at_end_) {
        if (from_ == buffer_.size()) return false;
        line = trimmed(from_, buffer_.size());
        from_ = buffer_.size();
        return true;
      }
      read_on();
    }
  }

 private:
  std::string_view trimmed(std::size_t from, std::size_t end) const {
    std::string_view line(buffer_.data() + from, end - from);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  void read_on() {
    buffer_.erase(0, from_);
    from_ = 0;
    if (buffer_.size() > kLongestKey)
      throw Unusable(file_.string() + " isn't one key a line: a line is longer than 64 KiB");
    std::array<char, 1U << 16> chunk{};
    const int n = gzread(in_.get(), chunk.data(), chunk.size());
    int error = Z_OK;
    gzerror(in_.get(), &error);
    // A file that ends in the middle of its gzip stream reads as short, and is an error only here.
    if (n < 0 || (n == 0 && error != Z_OK))
      throw Unusable("read " + file_.string() + ": the file is damaged or cut short");
    if (file_.extension() == ".gz" && n > 0 && gzdirect(in_.get()) != 0)
      throw Unusable("read " + file_.string() + ": it isn't gzipped");
    if (std::find(chunk.data(), chunk.data() + n, '\0') != chunk.data() + n)
      throw Unusable(file_.string() + " isn't one key a line: it holds a zero byte");
    at_end_ = n == 0;
    buffer_.append(chunk.data(), static_cast<std::size_t>(n));
  }

  std::filesystem::path file_;
  std::unique_ptr<gzFile_s, decltype(&gzclose)> in_;
  std::string buffer_;
  std::size_t from_ = 0;
  bool at_end_ = false;
};

std::size_t local_cache_hits(const Trace& trace, std::size_t capacity, std::uint64_t seed) {
  cache::FlatCache<std::uint32_t, bool> cache(
      {.capacity = capacity, .bound = cache::Bound::weights, .seed = seed});
  std::size_t hits = 0;
  for (const std::uint32_t key : trace.requests) {
    if (cache.find(key)) {
      ++hits;
    } else {
      cache.put(key, true);
    }
  }
  return hits;
}

// The seed chooses which keys the policy is tuned by, and once in a while that misleads it: so the median of some.
// They are no secret here, so that a replay can be repeated.
std::size_t local_cache_hits(const Trace& trace, std::size_t capacity) {
  std::array<std::size_t, 5> hits{};
  for (std::size_t i = 0; i < hits.size(); ++i) hits[i] = local_cache_hits(trace, capacity, i + 1);
  std::ranges::nth_element(hits, hits.begin() + hits.size() / 2);
  return hits[hits.size() / 2];
}

void print_json(const std::vector<Replay>& rows, const std::vector<std::array<double, 3>>& percent) {
  std::cout << '[';
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::cout << (i == 0 ? "" : ", ") << "{\"capacity\": " << rows[i].capacity
              << ", \"requests\": " << rows[i].requests << ", \"weir\": " << percent[i][0]
              << ", \"lru\": " << percent[i][1] << ", \"optimal\": " << percent[i][2] << '}';
  }
  std::cout << "]\n";
}

}  // namespace

Trace read_trace(const std::filesystem::path& file) {
  Trace trace;
  std::unordered_map<std::string, std::uint32_t> numbers;
  std::string key;
  Lines lines(file);
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    key = line;
    const auto [at, fresh] = numbers.try_emplace(key, trace.keys);
    if (fresh && ++trace.keys == kMostKeys) throw Unusable(file.string() + " has too many different keys");
    trace.requests.push_back(at->second);
  }
  if (trace.requests.empty()) throw Unusable(file.string() + " holds no key");
  return trace;
}

std::size_t lru_hits(const Trace& trace, std::size_t capacity) {
  std::list<std::uint32_t> order;  // the latest first
  std::vector<std::list<std::uint32_t>::iterator> places(trace.keys, order.end());
  std::size_t hits = 0;
  for (const std::uint32_t key : trace.requests) {
    if (places[key] != order.end()) {
      ++hits;
      order.splice(order.begin(), order, places[key]);
      continue;
    }
    if (order.size() >= capacity) {
      places[order.back()] = order.end();
      order.pop_back();
    }
    places[key] = order.insert(order.begin(), key);
  }
  return hits;
}

// L. A. Belady, "A Study of Replacement Algorithms for a Virtual-Storage Computer", 1966.
std::size_t optimal_hits(const Trace& trace, std::size_t capacity) {
  const std::size_t end = trace.requests.size();
  std::vector<std::size_t> next_use(end), seen(trace.keys, end);
  for (std::size_t i = end; i-- > 0;) next_use[i] = std::exchange(seen[trace.requests[i]], i);

  std::vector<std::size_t> in(trace.keys, 0);  // when it is asked for next, if it is in the cache; else 0
  std::priority_queue<std::pair<std::size_t, std::uint32_t>> last;  // outdated ones are skipped
  std::size_t size = 0, hits = 0;
  for (std::size_t i = 0; i < end; ++i) {
    const std::uint32_t key = trace.requests[i];
    if (in[key] != 0) {
      ++hits;
    } else {
      ++size;
    }
    in[key] = next_use[i];
    last.emplace(next_use[i], key);
    while (size > capacity) {
      const auto [use, victim] = last.top();
      last.pop();
      if (in[victim] != use) continue;
      in[victim] = 0;
      --size;
    }
  }
  return hits;
}

Replay replay(const Trace& trace, std::size_t capacity) {
  return {.capacity = capacity,
          .requests = trace.requests.size(),
          .weir = local_cache_hits(trace, capacity),
          .lru = lru_hits(trace, capacity),
          .optimal = optimal_hits(trace, capacity)};
}

int replay_cache(const ReplayOptions& options) {
  const Trace trace = read_trace(options.file);
  std::vector<Replay> rows;
  std::vector<std::array<double, 3>> percent;
  for (const std::size_t capacity : options.capacities) {
    rows.push_back(replay(trace, capacity));
    const auto part = [&](std::size_t hits) {
      return 100.0 * static_cast<double>(hits) / static_cast<double>(trace.requests.size());
    };
    percent.push_back({part(rows.back().weir), part(rows.back().lru), part(rows.back().optimal)});
  }
  std::cout << std::fixed << std::setprecision(2);
  if (options.json) {
    print_json(rows, percent);
    return 0;
  }
  std::cout << trace.requests.size() << " requests of " << trace.keys << " keys; hits in percent\n"
            << std::setw(12) << "capacity" << std::setw(9) << "weir" << std::setw(9) << "lru" << std::setw(9)
            << "optimal" << '\n';
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::cout << std::setw(12) << rows[i].capacity;
    for (const double figure : percent[i]) std::cout << std::setw(9) << figure;
    std::cout << '\n';
  }
  return 0;
}

}  // namespace weir::site
