#include "site/user/user.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "weir/base/rfc3339.h"
#include "weir/base/utf8.h"

namespace weir::site::user {
namespace {

constexpr std::size_t kMaxLocalPartBytes = 64;  // RFC 5321, 4.5.3.1.1

// The number of code points, or nothing when the text isn't one that we store.
std::optional<std::size_t> length_of(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  return utf8_length(text);
}

std::optional<std::string> fault_of_length(std::string_view text, std::size_t least, std::size_t most) {
  const auto length = length_of(text);
  if (!length) return "must be valid UTF-8 without NUL";
  if (*length < least || *length > most) return fmt::format("must have {} to {} characters", least, most);
  return std::nullopt;
}

bool is_blank_or_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= 0x20 || byte == 0x7f;
}

// Labels with dots between them, none of them empty.
bool is_domain(std::string_view domain) {
  return !domain.empty() && domain.front() != '.' && domain.back() != '.' &&
         domain.find("..") == std::string_view::npos;
}

}  // namespace

bool is_admin(const std::vector<std::string>& roles) {
  return std::ranges::find(roles, kAdminRole) != roles.end();
}

std::string normalised_email(std::string_view email) {
  std::string out(email);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// Whether a mailbox exists only a mail to it can tell; this refuses what can't be an address at all.
std::optional<std::string> fault_of_email(std::string_view email) {
  if (email.size() > kMaxEmailBytes) return fmt::format("must have at most {} bytes", kMaxEmailBytes);
  const auto at = email.find('@');
  const bool shaped = length_of(email) && std::ranges::none_of(email, is_blank_or_control) &&
                      at != std::string_view::npos && at > 0 && at <= kMaxLocalPartBytes &&
                      email.find('@', at + 1) == std::string_view::npos && is_domain(email.substr(at + 1));
  if (!shaped) return "must be an email address";
  return std::nullopt;
}

std::optional<std::string> fault_of_password(std::string_view password) {
  if (!length_of(password)) return "must be valid UTF-8 without NUL";
  if (password.size() < kMinPasswordBytes || password.size() > kMaxPasswordBytes)
    return fmt::format("must have {} to {} bytes", kMinPasswordBytes, kMaxPasswordBytes);
  return std::nullopt;
}

std::optional<std::string> fault_of_nickname(std::string_view nickname) {
  return fault_of_length(nickname, 1, kMaxNicknameCodePoints);
}

std::optional<std::string> fault_of_about(std::string_view about) {
  return fault_of_length(about, 0, kMaxAboutCodePoints);
}

std::optional<std::string> fault_of_birthday(std::string_view birthday) {
  if (!is_calendar_date(birthday)) return "must be a date that exists, as YYYY-MM-DD";
  return std::nullopt;
}

std::string nickname_from_email(std::string_view email) {
  return std::string(utf8_prefix(email.substr(0, email.find('@')), kMaxNicknameCodePoints));
}

}  // namespace weir::site::user
