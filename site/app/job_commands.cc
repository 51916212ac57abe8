#include <iostream>

#include "site/app/commands.h"
#include "site/app/site.h"
#include "site/app/site_settings.h"

namespace weir::site {

int list_jobs(const config::Settings& settings) {
  want_store(settings);
  Site site(settings);
  for (const auto& job : site.jobs()) std::cout << job->name() << '\n';
  return 0;
}

int run_job(const config::Settings& settings, const std::string& name) {
  want_store(settings);
  Site site(settings);
  scheduler::Job* job = site.job(name);
  if (job == nullptr) {
    std::vector<std::string> known;
    for (const auto& other : site.jobs()) known.push_back(other->name());
    throw config::BadSetting("no job \"" + name + '"' + config::did_you_mean(name, known));
  }
  const scheduler::JobResult result = job->run();
  std::cout << name << ": " << to_string(result.outcome) << " after "
            << std::chrono::duration_cast<std::chrono::milliseconds>(result.duration).count() << " ms";
  if (!result.error.empty()) std::cout << ": " << result.error;
  std::cout << '\n';
  return result.outcome == scheduler::JobOutcome::ok ? 0 : 1;
}

}  // namespace weir::site
