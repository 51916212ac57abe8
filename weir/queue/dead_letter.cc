#include "weir/queue/dead_letter.h"

#include "weir/queue/wire.h"

namespace weir::queue {
namespace {

constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kMaxReasonBytes = 1'000;

}  // namespace

std::string dead_letter_topic(std::string_view topic, std::string_view group) {
  std::string name(topic);
  return name.append(".").append(group).append(".dead");
}

std::string encode_dead_letter(const Message& message, std::string_view group, std::string_view reason) {
  std::string out;
  detail::put_varint(out, kVersion);
  detail::put_text(out, reason.substr(0, kMaxReasonBytes));
  detail::put_text(out, message.topic);
  detail::put_text(out, group);
  detail::put_varint(out, message.partition);
  detail::put_varint(out, static_cast<std::uint64_t>(message.offset));
  out.append(message.payload);
  return out;
}

std::optional<DeadLetter> decode_dead_letter(std::string_view payload) {
  detail::WireReader in(payload);
  DeadLetter letter;
  const std::uint64_t version = in.varint();
  letter.reason = in.text();
  letter.topic = in.text();
  letter.group = in.text();
  letter.partition = static_cast<std::uint32_t>(in.varint());
  letter.offset = static_cast<std::int64_t>(in.varint());
  letter.payload = in.rest();
  if (!in.good() || version != kVersion) return std::nullopt;
  return letter;
}

}  // namespace weir::queue
