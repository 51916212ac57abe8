#include "site/user/user_codec.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

namespace weir::site::user {
namespace {

namespace json = boost::json;

json::value text_or_null(const std::optional<std::string>& text) {
  return text ? json::value(*text) : json::value();
}

std::string encode(const User& user) {
  return json::serialize(json::object{{"id", user.id},
                                      {"email", text_or_null(user.email)},
                                      {"phone", text_or_null(user.phone)},
                                      {"nickname", user.nickname},
                                      {"about", user.about},
                                      {"birthday", text_or_null(user.birthday)},
                                      {"roles", json::value_from(user.roles)},
                                      {"created_at", to_micros(user.created_at)}});
}

// Throws for what is no profile.
std::optional<User> decode(std::string_view bytes) {
  const json::value parsed = json::parse(json::string_view(bytes.data(), bytes.size()));
  const json::object& fields = parsed.as_object();
  const auto text = [&](const char* name) { return json::value_to<std::string>(fields.at(name)); };
  const auto optional = [&](const char* name) {
    return fields.at(name).is_null() ? std::nullopt : std::optional(text(name));
  };
  return User{.id = fields.at("id").to_number<Id>(),
              .email = optional("email"),
              .phone = optional("phone"),
              .nickname = text("nickname"),
              .about = text("about"),
              .birthday = optional("birthday"),
              .roles = json::value_to<std::vector<std::string>>(fields.at("roles")),
              .created_at = from_micros(fields.at("created_at").to_number<std::int64_t>())};
}

}  // namespace

cache::Codec<Id, User> user_codec() {
  return {.key = cache::key_text<Id>, .encode = encode, .decode = decode};
}

}  // namespace weir::site::user
