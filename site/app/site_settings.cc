#include "site/app/site_settings.h"

#include <algorithm>

#include "weir/base/fault.h"
#include "weir/base/id.h"
#include "weir/base/units.h"
#include "weir/http/server.h"
#include "weir/queue/rabbit_url.h"
#include "weir/redis/address.h"
#include "weir/sql/mysql.h"
#include "weir/sql/mysql_url.h"

namespace weir::site {
namespace {

using config::Key;
using config::Kind;
using Fault = std::function<std::string(const std::string&)>;

// Below this the journal could hold no useful spool.
constexpr std::uint64_t kMinJournal = 1 << 20;
constexpr std::uint64_t kMinBody = 64 << 10;
constexpr std::uint64_t kMaxBody = 1ULL << 30;
constexpr std::uint64_t kMinClientMemory = 16ULL << 20;
constexpr std::uint64_t kMaxClientMemory = 1ULL << 40;
constexpr std::size_t kMinSecret = 16;
constexpr std::string_view kSqlite = "sqlite:";

Fault between(std::int64_t low, std::int64_t high) {
  return [low, high](const std::string& text) -> std::string {
    const std::int64_t value = std::stoll(text);
    return value >= low && value <= high ? "" : "it is out of range";
  };
}

Fault size_between(std::uint64_t low, std::uint64_t high) {
  return [low, high](const std::string& text) -> std::string {
    const std::uint64_t value = parse_size(text).value();
    return value >= low && value <= high ? "" : "it is out of range";
  };
}

// Times are kept in microseconds since 1970; ten years from now still fit, and nobody means more.
constexpr std::chrono::hours kMaxDuration{24 * 3650};

Fault at_least(std::chrono::milliseconds low) {
  return [low](const std::string& text) -> std::string {
    const auto value = parse_duration(text).value();
    if (value > kMaxDuration) return "it is too long: at most 3650d";
    return value >= low ? "" : "it is too short";
  };
}

Fault one_of(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& text) {
    return std::ranges::find(words, text) != words.end()
               ? std::string()
               : "it is none of them" + config::did_you_mean(text, words);
  };
}

// What the check of the one who will use the value says.
template <class Check>
std::string fault_of(Check check) {
  try {
    check();
    return "";
  } catch (const Unusable& error) {
    return error.what();
  }
}

std::string address_fault(const std::string& text) {
  return fault_of([&] { http::check_listen(text); });
}

std::string proxies_fault(const std::string& text) {
  return fault_of([&] { http::check_trusted_proxies(config::split_list(text)); });
}

std::string origins_fault(const std::string& text) {
  return fault_of([&] { http::check_cors_origins(config::split_list(text)); });
}

std::string store_fault(const std::string& text) {
  if (text.starts_with(kSqlite)) return "";
  return fault_of([&] { sql::MysqlAddress::parse(text); });
}

std::string queue_fault(const std::string& text) {
  return text == kEmbedded ? "" : fault_of([&] { queue::RabbitAddress::parse(text); });
}

std::string redis_fault(const std::string& text) {
  return text.empty() ? "" : fault_of([&] { redis::Servers::parse(text); });
}

std::string secret_fault(const std::string& text) {
  return text.empty() || text.size() >= kMinSecret ? "" : "it is too short to be safe";
}

Key key(std::string name, Kind kind, std::string initial, std::string allowed, Fault fault = {}) {
  return {std::move(name), kind, std::move(initial), std::move(allowed), std::move(fault)};
}

}  // namespace

std::vector<Key> site_keys() {
  const std::string duration = "a duration such as 90s, 10m or 7d";
  const std::string size = "a size such as 64KiB or 2MiB";
  std::vector<Key> keys{
      key("data", Kind::text, "data", "a directory"),
      key("http.listen", Kind::text, "127.0.0.1:8080", "ADDRESS:PORT, port 0 takes a free one",
          address_fault),
      key("http.threads", Kind::integer, "0", "a number from 0 (one per core) to 256", between(0, 256)),
      key("http.max_body", Kind::size, "2MiB", size + ", from 64KiB to 1GiB",
          size_between(kMinBody, kMaxBody)),
      key("http.max_connections", Kind::integer, "10000", "a number from 1 to 1000000",
          between(1, 1'000'000)),
      key("http.client_memory", Kind::size, "256MiB", size + ", from 16MiB to 1TiB",
          size_between(kMinClientMemory, kMaxClientMemory)),
      key("http.trusted_proxies", Kind::list, "", "a list of addresses and networks such as 10.0.0.0/8",
          proxies_fault),
      key("http.cors_origins", Kind::list, "", "a list of origins such as https://example.com",
          origins_fault),
      key("http.header_deadline", Kind::duration, "10s", duration, at_least(std::chrono::milliseconds(10))),
      key("http.body_deadline", Kind::duration, "30s", duration, at_least(std::chrono::milliseconds(10))),
      key("http.access_log", Kind::text, "errors", "all, errors (5xx) or off",
          one_of({"all", "errors", "off"})),
      key("store.url", Kind::text,
          "sqlite:", "sqlite:, sqlite:PATH or mysql://user[:password]@host[:port]/database", store_fault),
      key("cache.local", Kind::size, "256MiB", size + "; 0B turns the local caches off",
          size_between(0, 1ULL << 40)),
      key("cache.remote", Kind::text, "",
          "redis://[[user]:password@]host[:port][/db], "
          "redis-cluster://[[user]:password@]host[:port][,host[:port]..], or empty: "
          "no shared cache",
          redis_fault),
      key("cache.lease", Kind::boolean, "true", "true or false"),
      key("cache.on_remote_error", Kind::text, "bulkhead", "bulkhead, availability or protect",
          one_of({"bulkhead", "availability", "protect"})),
      key("queue.url", Kind::text, std::string(kEmbedded),
          "embedded: or amqp://[user:password@]host[:port][/vhost]", queue_fault),
      key("queue.acks", Kind::text, "1", "0, 1 or all", one_of({"0", "1", "all", "-1"})),
      key("queue.partitions", Kind::integer, "8", "a number from 1 to 1024", between(1, 1024)),
      key("queue.replication", Kind::integer, "1", "a number from 1 to 15", between(1, 15)),
      key("queue.retention", Kind::duration, "3d", duration, at_least(std::chrono::minutes(1))),
      key("queue.journal", Kind::size, "256MiB", size + ", at least 1MiB",
          size_between(kMinJournal, 1ULL << 40)),
      key("idempotency.inbox", Kind::duration, "7d", duration + ", longer than queue.retention",
          at_least(std::chrono::minutes(1))),
      key("ranking.models", Kind::list, "hackernews", "hackernews", one_of({"hackernews"})),
      key("ranking.every", Kind::duration, "1m", duration, at_least(std::chrono::seconds(1))),
      key("ranking.top", Kind::integer, "100", "a number from 1 to 100", between(1, 100)),
      key("ranking.window", Kind::duration, "7d", duration, at_least(std::chrono::hours(1))),
      key("auth.secret", Kind::text, "", "at least 16 bytes, or empty: made once and kept in the store",
          secret_fault),
      key("auth.access_ttl", Kind::duration, "30m", duration, at_least(std::chrono::seconds(1))),
      key("auth.refresh_ttl", Kind::duration, "7d", duration, at_least(std::chrono::seconds(1))),
  };
  std::ranges::find(keys, "auth.secret", &Key::name)->secrecy = config::Secrecy::whole;
  for (const char* url : {"store.url", "cache.remote", "queue.url"})
    std::ranges::find(keys, url, &Key::name)->secrecy = config::Secrecy::credentials;
  return keys;
}

void check_together(const config::Settings& settings) {
  if (settings.duration("idempotency.inbox") > settings.duration("queue.retention")) return;
  const auto told = [&](const std::string& name) {
    return name + " = \"" + settings.text(name) + "\" (from " + settings.origin(name) + ")";
  };
  throw config::BadSetting(told("idempotency.inbox") + " can't be used: it must be longer than " +
                           told("queue.retention") + ", or an event could come back after it was forgotten");
}

sql::Options store_options(const config::Settings& settings) {
  const std::string url = settings.text("store.url");
  sql::Options options;
  if (!url.starts_with(kSqlite)) {
    options.driver = sql::mysql({.url = url});
    return options;
  }
  options.path = url.substr(kSqlite.size());
  if (options.path.empty()) options.path = std::filesystem::path(settings.text("data")) / "weir.db";
  return options;
}

std::filesystem::path queue_path(const config::Settings& settings) {
  return std::filesystem::path(settings.text("data")) / "queue.db";
}

void want_store(const config::Settings& settings) {
  const auto options = store_options(settings);
  if (!options.driver && !std::filesystem::exists(options.path))
    throw Unusable("there is no store at " + options.path);
}

}  // namespace weir::site
