#include <iostream>

#include "site/app/commands.h"
#include "site/app/version.h"

namespace weir::site {

int show_config(const config::Settings& settings) {
  for (const config::Shown& shown : settings.all()) {
    std::cout << shown.name << " = \"" << shown.value << "\"  # " << shown.origin << '\n';
  }
  return 0;
}

int show_version() {
  std::cout << "weir " << kVersion << '\n';
  return 0;
}

}  // namespace weir::site
