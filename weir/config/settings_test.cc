#include "weir/config/settings.h"

#include <gtest/gtest.h>

#include "weir/testing/temp_dir.h"

namespace weir::config {
namespace {

using namespace std::chrono_literals;

std::string no_http(const std::string& url) {
  return url.starts_with("http") ? "another scheme" : "";
}

std::vector<Key> keys() {
  return {
      {"data", Kind::text, "data", "a directory", {}},
      {"http.threads", Kind::integer, "0", "a number from 0 to 64",
       [](const std::string& v) {
         return std::stoll(v) > 64 ? std::string("it is too large") : std::string();
       }},
      {"http.max_body", Kind::size, "2MiB", "a size such as 64KiB", {}},
      {"http.cors_origins", Kind::list, "", "a list of origins", {}},
      {"auth.secret", Kind::text, "", "any text", {}, Secrecy::whole},
      {"cache.remote", Kind::text, "", "a URL", no_http, Secrecy::credentials},
      {"auth.access_ttl", Kind::duration, "30m", "a duration such as 90s", {}},
  };
}

class SettingsTest : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& text) { return dir_.file("weir.toml", text); }
  static std::string fault(const std::optional<std::filesystem::path>& path, const Settings::Variables& env,
                           const Settings::Variables& flags = {}) {
    try {
      Settings::load(keys(), path, env, flags);
    } catch (const BadSetting& error) {
      return error.what();
    }
    return "";
  }

  TempDir dir_;
};

TEST_F(SettingsTest, TheLastOfDefaultFileEnvironmentAndFlagWins) {
  const auto path = file(
      "data = \"from-file\"\n[http]\nthreads = 3\ncors_origins = [\"https://a\", \"https://b\"]\nmax_body = "
      "\"1MiB\"\n");
  const auto s = Settings::load(keys(), path,
                                {{"WEIR_HTTP_THREADS", "4"}, {"WEIR_HTTP_MAX_BODY", "3MiB"}, {"HOME", "/"}},
                                {{"http.max_body", "4MiB"}});
  EXPECT_EQ(s.text("data"), "from-file");
  EXPECT_EQ(s.integer("http.threads"), 4);
  EXPECT_EQ(s.size("http.max_body"), 4u << 20);
  EXPECT_EQ(s.list("http.cors_origins"), (std::vector<std::string>{"https://a", "https://b"}));
  EXPECT_EQ(s.duration("auth.access_ttl"), 30min);
  EXPECT_TRUE(s.warnings().empty());
  EXPECT_EQ(s.all()[0].origin, path.string() + ":1");
  EXPECT_EQ(s.all()[1].origin, "WEIR_HTTP_THREADS");
  EXPECT_EQ(s.all()[2].origin, "flag");
  EXPECT_EQ(s.all()[5].origin, "default");
}

TEST_F(SettingsTest, ABadValueTellsKeyValueAllowedAndPlace) {
  const auto path = file("\n[http]\nmax_body = \"2MB\"\n");
  EXPECT_EQ(fault(path, {}), "http.max_body = \"2MB\" (from " + path.string() +
                                 ":3) can't be used: allowed is a size such as 64KiB");
  EXPECT_EQ(fault(file(""), {{"WEIR_HTTP_THREADS", "65"}}),
            "http.threads = \"65\" (from WEIR_HTTP_THREADS) can't be used: allowed is a number from 0 to 64; "
            "it is too large");
  EXPECT_NE(fault(file("[http]\nthreads = 1.5\n"), {}), "");
  EXPECT_NE(fault(file("[http]\nthreads = \n"), {}), "");
  EXPECT_NE(fault("/nowhere/weir.toml", {}), "");
}

TEST_F(SettingsTest, AnUnknownKeyStopsAndAnUnknownVariableWarns) {
  EXPECT_NE(fault(file("[http]\nmax_boddy = \"1MiB\"\n"), {}).find("did you mean \"http.max_body\"?"),
            std::string::npos);
  const auto s = Settings::load(keys(), file(""), {{"WEIR_HTTP_THREDS", "1"}}, {});
  ASSERT_EQ(s.warnings().size(), 1u);
  EXPECT_NE(s.warnings()[0].find("WEIR_HTTP_THREADS"), std::string::npos);
}

TEST_F(SettingsTest, SecretsAreNotShown) {
  const auto s = Settings::load(keys(), file(""), {{"WEIR_AUTH_SECRET", "hush"}}, {});
  EXPECT_EQ(s.text("auth.secret"), "hush");
  for (const Shown& shown : s.all()) EXPECT_EQ(shown.value.find("hush"), std::string::npos);
}

TEST_F(SettingsTest, CredentialsInUrlsAreNotShown) {
  const auto shown = [&](const std::string& url) {
    const auto settings = Settings::load(keys(), file(""), {{"WEIR_CACHE_REMOTE", url}}, {});
    EXPECT_EQ(settings.text("cache.remote"), url);
    for (const Shown& one : settings.all())
      if (one.name == "cache.remote") return one.value;
    return std::string("missing");
  };
  EXPECT_EQ(shown(""), "");
  EXPECT_EQ(shown("redis://cache:6379/2"), "redis://cache:6379/2");
  EXPECT_EQ(shown("redis://:hush@cache:6379/2"), "redis://***@cache:6379/2");
  EXPECT_EQ(shown("redis://ann:hu@sh:/@cache"), "redis://***@cache");
  EXPECT_EQ(shown("redis://ann:hush@cache?password=hush"), "redis://***@cache?***");
  EXPECT_EQ(shown("redis://cache/3#hush"), "redis://cache/3#***");
  EXPECT_EQ(shown("redis://ann:hu?sh@cache"), "redis://***");
  EXPECT_EQ(shown("ann:hush@cache"), "***@cache");
  EXPECT_EQ(shown("ann:hush@cache://x"), "***@cache://x");
  EXPECT_EQ(fault(file(""), {{"WEIR_CACHE_REMOTE", "http://:hush@cache"}}),
            "cache.remote = \"http://***@cache\" (from WEIR_CACHE_REMOTE) can't be used: allowed is a URL; "
            "another scheme");
}

TEST(Nearest, KnowsSwapsAndKeepsItsDistance) {
  const std::vector<std::string> words{"serve", "seed", "import"};
  EXPECT_EQ(nearest("sevre", words), "serve");
  EXPECT_EQ(nearest("imprt", words), "import");
  EXPECT_EQ(nearest("lottery", words), std::nullopt);
}

}  // namespace
}  // namespace weir::config
