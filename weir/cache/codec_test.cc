#include "weir/cache/codec.h"

#include <gtest/gtest.h>

#include "weir/base/random.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;

const Origin kOrigin{from_micros(1'700'000'000'123'456), 1500us};

TEST(Seal, GivesBackWhatItWasGiven) {
  for (const std::string& value : {std::string(), std::string("x\0y", 3), std::string(10'000, 'z')}) {
    const std::string bytes = seal("article", "7", value, kOrigin);
    EXPECT_EQ(bytes.size(), value.size() + 28);
    const auto opened = unseal("article", "7", bytes);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->value, value);
    EXPECT_EQ(opened->origin.loaded_at, kOrigin.loaded_at);
    EXPECT_EQ(opened->origin.took, kOrigin.took);
  }
}

// The bytes are read by other machines and by later versions.
TEST(Seal, HasAFormThatStays) {
  const std::string bytes = seal("article", "7", "value", {from_micros(0x0102), 3us});
  EXPECT_EQ(bytes.substr(0, 4), "WRT1");
  EXPECT_EQ(bytes.substr(12, 16), std::string("\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(bytes.substr(28), "value");
}

TEST(Seal, BelievesNothingDamagedOrForeign) {
  const std::string bytes = seal("article", "7", "the value", kOrigin);
  EXPECT_FALSE(unseal("article", "8", bytes));
  EXPECT_FALSE(unseal("user", "7", bytes));
  for (const char* foreign :
       {"", "W", "WRT1", "WRT1 and too short", "{\"json\": \"of somebody else, long enough\"}"})
    EXPECT_FALSE(unseal("article", "7", foreign)) << foreign;
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(unseal("article", "7", bytes.substr(0, cut)));
  EXPECT_FALSE(unseal("article", "7", bytes + "x"));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_FALSE(unseal("article", "7", damaged)) << at << "." << bit;
    }
  }
}

TEST(Codec, PlainKeysAndTexts) {
  const auto codec = text_codec<int>();
  EXPECT_EQ(codec.key(-5), "-5");
  EXPECT_EQ(codec.decode(codec.encode("some text")), "some text");
  EXPECT_EQ(key_text(std::string("abc")), "abc");
}

}  // namespace
}  // namespace weir::cache
