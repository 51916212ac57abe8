#include "weir/http/client_memory.h"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

constexpr std::size_t kMiB = 1 << 20;

struct Client final : ClientMemory::Holder {
  void give_up() override { gone = true; }
  bool gone = false;
};

TEST(ClientMemory, CutsOffWhoHasMovedNothingForTheLongest) {
  ClientMemory memory(3 * kMiB);
  Client a, b, c, d;
  EXPECT_TRUE(memory.hold(a, kMiB, true));
  EXPECT_TRUE(memory.hold(b, kMiB, true));
  EXPECT_TRUE(memory.hold(c, kMiB, true));
  EXPECT_TRUE(memory.hold(a, kMiB, true));  // has moved
  EXPECT_TRUE(memory.hold(d, kMiB, true));
  EXPECT_TRUE(b.gone);
  EXPECT_FALSE(a.gone || c.gone || d.gone);
}

TEST(ClientMemory, LeavesThoseAloneWhoDontWaitForTheirClient) {
  ClientMemory memory(2 * kMiB);
  Client working, fresh;
  EXPECT_TRUE(memory.hold(working, 2 * kMiB, false));
  EXPECT_FALSE(memory.hold(fresh, kMiB, true)) << "nobody else could go";
  EXPECT_FALSE(working.gone || fresh.gone);
  memory.hold(fresh, 0, false);
  EXPECT_TRUE(memory.hold(working, 2 * kMiB, true)) << "what doesn't grow may stay";
}

TEST(ClientMemory, AllowsOneThatIsAlone) {
  ClientMemory memory(kMiB);
  Client small, large;
  EXPECT_TRUE(memory.hold(small, kMiB / 2, true));
  EXPECT_TRUE(memory.hold(large, 10 * kMiB, true));
  EXPECT_TRUE(small.gone);
  EXPECT_FALSE(large.gone);
}

TEST(ClientMemory, ForgetsWhatIsGivenBack) {
  ClientMemory memory(2 * kMiB);
  Client a, b;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(memory.hold(a, kMiB, true));
    EXPECT_TRUE(memory.hold(b, kMiB, false));
    EXPECT_TRUE(memory.hold(a, 0, false));
    EXPECT_TRUE(memory.hold(b, Client::kUncounted, false));
  }
  EXPECT_FALSE(a.gone || b.gone);
}

}  // namespace
}  // namespace weir::http
