#include "site/article/article_codec.h"

#include <gtest/gtest.h>

namespace weir::site::article {
namespace {

PublishedArticle article() {
  return {.id = (Id{1} << 62) + 7,
          .author_id = 12,
          .title = "水 😀 \"quoted\" \\ \x01",
          .abstract = "",
          .content = "# Lines\r\n\ttabs & <b>HTML</b> \x7f",
          .version = 3,
          .published_at = from_micros(-1),
          .updated_at = from_micros(1'467'331'200'123'456)};
}

TEST(ReaderCopyCodec, GivesBackWhatItWasGiven) {
  const auto codec = reader_copy_codec();
  const ReaderCopy copy(article());
  const auto back = codec.decode(codec.encode(copy));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->id, copy.id);
  EXPECT_EQ(back->author_id, copy.author_id);
  EXPECT_EQ(back->title, copy.title);
  EXPECT_EQ(back->abstract, copy.abstract);
  EXPECT_EQ(back->content(), copy.content());
  EXPECT_EQ(back->content_bytes(), copy.content_bytes());
  EXPECT_EQ(back->version, copy.version);
  EXPECT_EQ(back->published_at, copy.published_at);
  EXPECT_EQ(back->updated_at, copy.updated_at);
  EXPECT_EQ(back->json_to_nickname(), copy.json_to_nickname());
  EXPECT_EQ(back->json_to_interaction(), copy.json_to_interaction());
  EXPECT_EQ(codec.key(copy.id), "4611686018427387911");
}

TEST(ReaderCopyCodec, WhatIsNoCopyThrows) {
  const auto codec = reader_copy_codec();
  const std::string whole = codec.encode(ReaderCopy(article()));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_ANY_THROW(codec.decode(whole.substr(0, size))) << size;
  for (const char* text : {"[]", "{}", "null", "7", R"({"id":"7"})"})
    EXPECT_ANY_THROW(codec.decode(text)) << text;
}

}  // namespace
}  // namespace weir::site::article
