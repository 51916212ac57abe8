#include "site/user/user_schemas.h"

#include <boost/json/parse.hpp>

namespace weir::site::user {
namespace {

// The numbers are those of user.h; user_handler_test.cc holds the two against each other.
constexpr const char* kSchemas = R"json({
  "NewUser": {
    "type": "object",
    "required": ["email", "password"],
    "properties": {
      "email": {"type": "string", "format": "email", "maxLength": 254,
                "description": "Upper and lower case are one; answers show it in lower case."},
      "password": {"type": "string", "minLength": 8, "maxLength": 1024,
                   "description": "8 to 1,024 bytes of UTF-8."},
      "nickname": {"type": ["string", "null"], "minLength": 1, "maxLength": 64,
                   "description": "Without one it is the email's part before the @."}
    }
  },
  "UserId": {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"}}
  },
  "Credentials": {
    "type": "object",
    "required": ["email", "password"],
    "properties": {"email": {"type": "string"}, "password": {"type": "string"}}
  },
  "Refresh": {
    "type": "object",
    "properties": {
      "refresh_token": {"type": "string",
                        "description": "Required unless a page renews its cookie (X-Weir-Page: 1)."}
    }
  },
  "SignedIn": {
    "type": "object",
    "required": ["expires_in"],
    "description": "Tokens; a page (X-Weir-Page: 1) gets `expires_in` and the cookie weir_session.",
    "properties": {
      "access_token": {"type": "string"},
      "refresh_token": {"type": "string"},
      "token_type": {"type": "string", "const": "Bearer"},
      "expires_in": {"type": "integer", "minimum": 1,
                     "description": "Seconds that the access token, or the cookie, is good for."}
    }
  },
  "ProfileChange": {
    "type": "object",
    "properties": {
      "nickname": {"type": "string", "minLength": 1, "maxLength": 64},
      "about": {"type": ["string", "null"], "maxLength": 1024},
      "birthday": {"type": ["string", "null"], "format": "date"}
    }
  },
  "Me": {
    "type": "object",
    "required": ["id", "nickname", "about", "birthday", "roles", "created_at"],
    "properties": {
      "id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"},
      "email": {"type": "string"},
      "phone": {"type": "string"},
      "nickname": {"type": "string"},
      "about": {"type": "string"},
      "birthday": {"type": ["string", "null"], "format": "date"},
      "roles": {"type": "array", "items": {"type": "string"}},
      "created_at": {"type": "string", "format": "date-time"}
    }
  }
})json";

}  // namespace

std::map<std::string, boost::json::value> schemas() {
  std::map<std::string, boost::json::value> out;
  const boost::json::value all = boost::json::parse(kSchemas);
  for (const auto& [name, schema] : all.as_object()) out.emplace(name, schema);
  return out;
}

}  // namespace weir::site::user
