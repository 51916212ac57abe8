// The domain of the user module: people and what may be said about them. Plain values and plain rules.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/id.h"

namespace weir::site::user {

// The limits that the API tells.
constexpr std::size_t kMinPasswordBytes = 8;
constexpr std::size_t kMaxPasswordBytes = 1024;
constexpr std::size_t kMaxEmailBytes = 254;  // RFC 5321's path of 256 without its angle brackets
constexpr std::size_t kMaxNicknameCodePoints = 64;
constexpr std::size_t kMaxAboutCodePoints = 1024;

inline constexpr std::string_view kAdminRole = "admin";

// A person as everybody's code may see one: no password, no session. What the cache keeps.
struct User {
  Id id = 0;
  std::optional<std::string> email;  // normalised: see normalised_email
  std::optional<std::string> phone;
  std::string nickname;
  std::string about;
  std::optional<std::string> birthday;  // YYYY-MM-DD
  std::vector<std::string> roles;
  WallTime created_at{};

  bool operator==(const User&) const = default;
};

bool is_admin(const std::vector<std::string>& roles);

// A person to be written. Those who come by an import have an `origin` ("hn:pg") instead of an email; it is
// what makes a second import find them again.
struct NewUser {
  std::optional<std::string> email;  // normalised
  std::optional<std::string> phone;
  std::optional<std::string> origin;
  std::string nickname;
  std::optional<std::string> password_hash;  // none: can't sign in by password
  std::string about;
  WallTime created_at{};
};

// A change to a profile; what is absent stays as it is.
struct ProfileChange {
  std::optional<std::string> nickname;
  std::optional<std::string> about;
  std::optional<std::optional<std::string>> birthday;  // the inner nothing clears it

  bool empty() const { return !nickname && !about && !birthday; }
};

// One spelling for one mailbox: ASCII letters in lower case, the rest as it is. Emails are stored, compared
// and shown in this spelling, so "Ann@Example.com" and "ann@example.com" are one person.
std::string normalised_email(std::string_view email);

// What is wrong with a value, as a sentence for the person who typed it; nothing when it is fine.
// All of them want valid UTF-8 and refuse NUL.
std::optional<std::string> fault_of_email(std::string_view email);
std::optional<std::string> fault_of_password(std::string_view password);
std::optional<std::string> fault_of_nickname(std::string_view nickname);
std::optional<std::string> fault_of_about(std::string_view about);
std::optional<std::string> fault_of_birthday(std::string_view birthday);

// The nickname of somebody who gave none: the email's part before the "@", cut to the limit.
std::string nickname_from_email(std::string_view email);

}  // namespace weir::site::user
