#include "site/interaction/interaction.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::site::interaction {
namespace {

TEST(Interaction, AReadEventIsEightBytesThatReadBack) {
  for (const Id user : {Id{0}, Id{1}, Id{255}, Id{1} << 40, std::numeric_limits<Id>::max()}) {
    char payload[kReadPayloadBytes];
    encode_read(user, payload);
    EXPECT_EQ(decode_read({payload, sizeof payload}), user);
  }
  char one[kReadPayloadBytes];
  encode_read(1, one);
  EXPECT_EQ(std::string(one, sizeof one), std::string("\x01\0\0\0\0\0\0\0", 8))
      << "little-endian on every machine";
}

TEST(Interaction, OtherBytesAreNoRead) {
  EXPECT_FALSE(decode_read(""));
  EXPECT_FALSE(decode_read("1234567"));
  EXPECT_FALSE(decode_read("123456789"));
  EXPECT_FALSE(decode_read("\xff\xff\xff\xff\xff\xff\xff\xff")) << "no user has a negative id";
}

TEST(Interaction, FolderNamesAreCountedInCodePoints) {
  std::string longest;
  for (int i = 0; i < 64; ++i) longest += "水";
  EXPECT_FALSE(folder_name_fault("a"));
  EXPECT_FALSE(folder_name_fault(longest));
  EXPECT_TRUE(folder_name_fault(""));
  EXPECT_TRUE(folder_name_fault(longest + "a"));
  EXPECT_TRUE(folder_name_fault(std::string_view("a\0b", 3)));
  EXPECT_TRUE(folder_name_fault("\xff"));
}

TEST(Interaction, OneRowTooManyTellsThatThereAreMore) {
  const auto some = listing_of(std::vector<int>{1, 2, 3}, 2);
  EXPECT_EQ(some.items, (std::vector<int>{1, 2}));
  EXPECT_TRUE(some.more);
  const auto all = listing_of(std::vector<int>{1, 2}, 2);
  EXPECT_EQ(all.items.size(), 2U);
  EXPECT_FALSE(all.more);
}

}  // namespace
}  // namespace weir::site::interaction
