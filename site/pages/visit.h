// Visit: who looks at a page, in which language and colours. Read from the request once, then only values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "site/pages/language.h"
#include "site/pages/words.h"
#include "weir/base/clock.h"
#include "weir/base/id.h"
#include "weir/http/request.h"

namespace weir::site::pages {

enum class Theme { system, light, dark };
// "system", "light", "dark"; anything else is the system's.
Theme parse_theme(std::string_view text);
std::string_view to_text(Theme theme);

struct Visit {
  Language language = Language::en;
  Theme theme = Theme::system;
  std::optional<Id> reader;  // signed in
  std::string nickname;      // of the reader; empty when it cannot be had
  WallTime now{};
  std::string address;  // path and query of the page: where switches and signing in come back to
  std::string origin;   // "http://host"; empty when the request names no usable host

  const Words& words() const { return Words::of(language); }
  // "/signin?next=.." of this page.
  std::string sign_in_address() const;
};

// All but the nickname, which is the user module's.
Visit visit_of(const http::Request& request, WallTime now);

// The address if it is a path on this site, else "/": what a link that brings people back may name.
std::string_view local_address(std::string_view address);

// For a query: everything but unreserved characters as %XX.
std::string percent_encoded(std::string_view text);

}  // namespace weir::site::pages
