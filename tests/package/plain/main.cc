// A program of somebody else, against the installed package.
#include <weir/base/hash.h>
#include <weir/cache/local_cache.h>
#include <weir/filter/bloom_filter.h>
#include <weir/ranking/model.h>

#include <cstdio>
#include <memory>
#include <string>

int main() {
  weir::cache::LocalCache<std::string, std::string> cache({.capacity = 1 << 20});
  cache.put("river", std::make_shared<std::string>("level"), 64, std::chrono::minutes(1));
  weir::filter::BloomFilter seen(1000, 0.01);
  seen.insert(weir::hash64("river"));
  const bool fine = *cache.find("river") == "level" && seen.may_contain(weir::hash64("river"));
  std::puts(fine ? "the package works" : "the package is broken");
  return fine ? 0 : 1;
}
