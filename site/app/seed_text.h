// Made-up articles, half of them English, half Chinese: enough variety to judge lists and pages by.
#pragma once

#include <string>

#include "weir/base/random.h"

namespace weir::site {

struct SeedText {
  std::string title, content;  // Markdown
};

// The next article of this chain of chance: the same for the same state. About 1 KiB.
SeedText seed_text(Random& random);
// A nickname, English or Chinese; not unique.
std::string seed_nickname(Random& random);

}  // namespace weir::site
