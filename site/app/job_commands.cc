#include <filesystem>
#include <iostream>

#include "site/app/commands.h"
#include "site/app/site.h"
#include "site/app/site_settings.h"
#include "weir/base/fault.h"

namespace weir::site {
namespace {

// A job works on a store that is there: a typing error in --data must not make an empty one.
void want_store(const config::Settings& settings) {
  const auto path = store_path(settings);
  if (!std::filesystem::exists(path)) throw Unusable("there is no store at " + path.string());
}

}  // namespace

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
