#include "weir/redis/error.h"

#include <array>
#include <utility>

namespace weir::redis {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::wrong_type:
      return "wrong_type";
    case ErrorKind::no_script:
      return "no_script";
    case ErrorKind::denied:
      return "denied";
    case ErrorKind::read_only:
      return "read_only";
    case ErrorKind::busy:
      return "busy";
    case ErrorKind::out_of_memory:
      return "out_of_memory";
    case ErrorKind::moved:
      return "moved";
    case ErrorKind::aborted:
      return "aborted";
    case ErrorKind::other:
      return "other";
    case ErrorKind::unexpected:
      return "unexpected";
  }
  return "other";
}

ErrorKind error_kind(std::string_view reply) {
  using enum ErrorKind;
  static constexpr std::array<std::pair<std::string_view, ErrorKind>, 14> kWords{{
      {"WRONGTYPE", wrong_type},
      {"NOSCRIPT", no_script},
      {"NOAUTH", denied},
      {"WRONGPASS", denied},
      {"NOPERM", denied},
      {"READONLY", read_only},
      {"LOADING", busy},
      {"BUSY", busy},
      {"TRYAGAIN", busy},
      {"MASTERDOWN", busy},
      {"CLUSTERDOWN", busy},
      {"OOM", out_of_memory},
      {"MOVED", moved},
      {"ASK", moved},
  }};
  const std::string_view word = reply.substr(0, reply.find(' '));
  for (const auto& [known, kind] : kWords)
    if (word == known) return kind;
  return word == "EXECABORT" ? aborted : other;
}

}  // namespace weir::redis
