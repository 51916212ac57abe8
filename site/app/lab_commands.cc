#include <algorithm>
#include <iostream>

#include "site/app/commands.h"
#include "site/lab/lab.h"
#include "weir/telemetry/log.h"

namespace weir::site {

int list_labs() {
  std::size_t width = 0;
  for (const Accident& accident : accidents()) width = std::max(width, accident.name.size());
  for (const Accident& accident : accidents())
    std::cout << accident.name << std::string(width - accident.name.size() + 2, ' ') << accident.title
              << '\n';
  return 0;
}

int run_lab(const std::string& name, bool json) {
  const Accident* accident = find_accident(name);
  if (accident == nullptr) {
    std::vector<std::string> known;
    for (const Accident& other : accidents()) known.push_back(other.name);
    throw config::BadSetting("no lab \"" + name + '"' + config::did_you_mean(name, known));
  }
  log::set_level(log::Level::error);  // an accident warns of itself; what there is to see is in its figures
  const Outcome outcome = accident->run();
  std::cout << (json ? to_json(*accident, outcome) + '\n' : to_text(*accident, outcome));
  return outcome.held ? 0 : 1;
}

}  // namespace weir::site
