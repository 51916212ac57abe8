#include "site/pages/visit.h"

#include <algorithm>

namespace weir::site::pages {
namespace {

constexpr std::size_t kMaxAddressBytes = 2000;
constexpr std::size_t kMaxHostBytes = 255;

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == '~';
}

// The Host field is the client's word; only what can stand in an address is used.
std::string origin_of(const http::Request& request) {
  const auto host = request.header("Host").value_or("");
  const bool usable = !host.empty() && host.size() <= kMaxHostBytes && std::ranges::all_of(host, [](char c) {
    return is_unreserved(c) || c == ':' || c == '[' || c == ']';
  });
  if (!usable) return {};
  return (request.secure ? "https://" : "http://") + std::string(host);
}

}  // namespace

Theme parse_theme(std::string_view text) {
  if (text == "light") return Theme::light;
  return text == "dark" ? Theme::dark : Theme::system;
}

std::string_view to_text(Theme theme) {
  switch (theme) {
    case Theme::light:
      return "light";
    case Theme::dark:
      return "dark";
    case Theme::system:
      break;
  }
  return "system";
}

std::string Visit::sign_in_address() const {
  return "/signin?next=" + percent_encoded(address);
}

Visit visit_of(const http::Request& request, WallTime now) {
  Visit visit;
  visit.language = choose_language(request.cookie("weir_lang"), request.header("Accept-Language"));
  visit.theme = parse_theme(request.cookie("weir_theme").value_or(""));
  if (request.principal) visit.reader = request.principal->user_id;
  visit.now = now;
  visit.address = local_address(request.target);
  visit.origin = origin_of(request);
  return visit;
}

std::string_view local_address(std::string_view address) {
  // "//host" and "/\host" are other sites to a browser, and it drops tabs and line ends before it looks.
  const bool local = address.size() <= kMaxAddressBytes && address.starts_with('/') &&
                     !address.starts_with("//") && !address.starts_with("/\\") &&
                     std::ranges::all_of(address, [](char c) { return c > ' ' && c < '\x7f'; });
  return local ? address : "/";
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c)) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return out;
}

}  // namespace weir::site::pages
