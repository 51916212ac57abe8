#include "weir/queue/event.h"

namespace weir::queue {

std::optional<Acks> parse_acks(std::string_view text) {
  if (text == "0") return Acks::none;
  if (text == "1") return Acks::leader;
  if (text == "all" || text == "-1") return Acks::all;
  return std::nullopt;
}

}  // namespace weir::queue
