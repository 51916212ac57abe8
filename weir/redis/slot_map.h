// SlotMap: which node of a cluster has which slots, as one of its nodes tells it. A detail of the folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/redis/address.h"
#include "weir/redis/reply.h"
#include "weir/redis/slot.h"

namespace weir::redis {

struct SlotMap {
  static constexpr std::size_t kMaxNodes = 1'000;  // Redis' own limit
  static constexpr std::uint16_t kNobody = 0xffff;

  std::vector<Address> primaries;  // of those that have slots
  std::vector<Address> replicas;
  std::array<std::uint16_t, kSlots> owner;  // an index of `primaries`, or kNobody

  // Of the answer to CLUSTER SLOTS. `teller`: who has answered; it is who is meant by a node without a host, and its
  // user and password are everybody's. Throws ProtocolError when that isn't a map.
  static SlotMap read(const Reply& reply, const Address& teller);
  std::size_t covered() const;  // slots that somebody has

 private:
  SlotMap() { owner.fill(kNobody); }
};

// Where an error sends who has asked: "MOVED 3999 127.0.0.1:6381", "ASK ..".
struct Redirect {
  bool ask = false;
  Slot slot = 0;
  Address to{};

  // Nothing: it isn't one, or can't be read. `teller`: as above.
  static std::optional<Redirect> read(std::string_view error, const Address& teller);
};

// Same host, same port.
bool same_node(const Address& a, const Address& b);

}  // namespace weir::redis
