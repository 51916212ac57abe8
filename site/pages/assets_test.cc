#include "site/pages/assets.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "site/pages/frame.h"
#include "weir/testing/io_threads.h"
#include "weir/testing/serve.h"

namespace weir::site::pages {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

http::Response ask(const std::string& target, Headers headers = {}) {
  http::Router router;
  add_asset_routes(router);
  const http::Dispatcher dispatcher(std::move(router), nullptr, {});
  http::Request request("GET", target, std::move(headers));
  return run_here(serve(dispatcher, request));
}

std::string unzipped(std::string_view bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(Assets, ComeInTheEncodingThatTheClientTakes) {
  const auto& style = entry_of("site").styles.at(0);
  const auto plain = ask(style);
  EXPECT_EQ(plain.status, 200U);
  EXPECT_EQ(plain.content_type, "text/css; charset=utf-8");
  EXPECT_EQ(header_of(plain, "Content-Encoding"), "");
  EXPECT_NE(plain.payload().find("--paper"), std::string_view::npos);
  EXPECT_EQ(header_of(plain, "Cache-Control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(header_of(plain, "Vary"), "Accept-Encoding");

  const auto gzip = ask(style, {{"Accept-Encoding", "gzip, deflate"}});
  EXPECT_EQ(header_of(gzip, "Content-Encoding"), "gzip");
  EXPECT_EQ(unzipped(gzip.payload()), plain.payload());
  const auto brotli = ask(style, {{"Accept-Encoding", "gzip, deflate, br"}});
  EXPECT_EQ(header_of(brotli, "Content-Encoding"), "br");
  EXPECT_LT(brotli.payload().size(), gzip.payload().size());
  EXPECT_NE(header_of(brotli, "ETag"), header_of(gzip, "ETag"));
}

TEST(Assets, AreNotSentAgain) {
  const auto& script = entry_of("article").script;
  const auto tag = header_of(ask(script), "ETag");
  const auto again = ask(script, {{"If-None-Match", tag}});
  EXPECT_EQ(again.status, 304U);
  EXPECT_TRUE(again.payload().empty());
  EXPECT_EQ(header_of(again, "ETag"), tag);
}

TEST(Assets, TellWhatIsNotThere) {
  for (const auto* target :
       {"/assets/nothing.js", "/assets/messages%2Fen.json", "/assets/..%2Fx", "/assets/.vite"})
    EXPECT_EQ(ask(target).status, 404U) << target;
}

TEST(Assets, ChoosesEncodings) {
  EXPECT_EQ(choose_encoding("", true), "");
  EXPECT_EQ(choose_encoding("br;q=0, gzip", true), "gzip");
  EXPECT_EQ(choose_encoding("br ; q=0.000,gzip;q=0", true), "");
  EXPECT_EQ(choose_encoding("*", true), "br");
  EXPECT_EQ(choose_encoding("*;q=0, gzip;q=0.1", true), "gzip");
  EXPECT_EQ(choose_encoding("br", false), "");
  EXPECT_EQ(choose_encoding("identity", true), "");
}

// The promise of the first page: under 100 KB in total, compressed. (A page's own HTML is about 10 KB.)
TEST(Assets, TheFirstPageIsSmall) {
  const auto& entry = entry_of("site");
  std::size_t bytes = 0;
  std::vector<std::string> files = entry.imports;
  files.push_back(entry.script);
  files.insert(files.end(), entry.styles.begin(), entry.styles.end());
  for (const auto& file : files) bytes += ask(file, {{"Accept-Encoding", "gzip"}}).payload().size();
  EXPECT_GT(bytes, 1'000U);
  EXPECT_LT(bytes, 20'000U);
}

TEST(Assets, GzipComesBack) {
  for (const std::string& text : {std::string(), std::string("a"), std::string(300'000, 'x') + "堰"})
    EXPECT_EQ(unzipped(gzipped(text)), text);
}

}  // namespace
}  // namespace weir::site::pages
