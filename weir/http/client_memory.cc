#include "weir/http/client_memory.h"

namespace weir::http {

ClientMemory::ClientMemory(std::size_t limit)
    : limit_(limit),
      gauge_(
          telemetry::gauge("weir_http_client_bytes", "Bodies and answers held for slow clients, in bytes")),
      cut_(telemetry::counter("weir_http_clients_cut_total",
                              "Slow clients cut off because too much was held for them")) {}

bool ClientMemory::hold(Holder& holder, std::size_t bytes, bool waits) {
  if (bytes <= Holder::kUncounted) {
    if (holder.bytes_ == 0) return true;  // nearly always
    bytes = 0;
  }
  leave(holder);
  gauge_.add(static_cast<double>(bytes) - static_cast<double>(holder.bytes_));
  bytes_ = bytes_ - holder.bytes_ + bytes;
  const bool grown = bytes > holder.bytes_;
  holder.bytes_ = bytes;
  if (waits && bytes > 0) {
    holder.place_ = waiting_.insert(waiting_.end(), &holder);
    holder.waits_ = true;
  }
  return !grown || make_room(holder);
}

void ClientMemory::leave(Holder& holder) {
  if (holder.waits_) waiting_.erase(holder.place_);
  holder.waits_ = false;
}

bool ClientMemory::make_room(const Holder& holder) {
  while (bytes_ > limit_ && !waiting_.empty() && waiting_.front() != &holder) {
    Holder& oldest = *waiting_.front();
    leave(oldest);
    gauge_.add(-static_cast<double>(oldest.bytes_));
    bytes_ -= oldest.bytes_;
    oldest.bytes_ = 0;
    cut_.add();
    oldest.give_up();
  }
  return bytes_ <= limit_ || bytes_ == holder.bytes_;
}

}  // namespace weir::http
