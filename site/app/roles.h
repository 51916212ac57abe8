// What a node does: all of it, or a part, so that nodes can be scaled apart.
#pragma once

#include <string_view>

#include "weir/config/settings.h"

namespace weir::site {

struct Roles {
  bool web = true;       // answers people: pages, the API, recording their reads
  bool consumer = true;  // counts what the queue brings
  bool job = true;       // runs the jobs when it is their time

  // "all", or some of web, consumer and job with commas between them. Throws config::BadSetting.
  static Roles parse(std::string_view text);
};

// A queue of this node's own has nobody else to fill or empty it. Throws config::BadSetting.
void check_roles(const Roles& roles, const config::Settings& settings);

}  // namespace weir::site
