#include "site/app/roles.h"

#include <algorithm>
#include <string>
#include <vector>

#include "site/app/site_settings.h"

namespace weir::site {

Roles Roles::parse(std::string_view text) {
  Roles roles{.web = false, .consumer = false, .job = false};
  const std::vector<std::string> words{"all", "web", "consumer", "job"};
  const std::vector<std::vector<bool Roles::*>> meanings{
      {&Roles::web, &Roles::consumer, &Roles::job}, {&Roles::web}, {&Roles::consumer}, {&Roles::job}};
  for (const std::string& word : config::split_list(std::string(text))) {
    const auto at = static_cast<std::size_t>(std::ranges::find(words, word) - words.begin());
    if (at == words.size())
      throw config::BadSetting("--role \"" + word +
                               "\" can't be used: it is none of all, web, consumer and job" +
                               config::did_you_mean(word, words));
    for (const auto role : meanings[at]) roles.*role = true;
  }
  if (!roles.web && !roles.consumer && !roles.job)
    throw config::BadSetting("--role \"" + std::string(text) +
                             "\" can't be used: it names none of all, web, consumer and job");
  return roles;
}

void check_roles(const Roles& roles, const config::Settings& settings) {
  if (roles.web == roles.consumer || settings.text("queue.url") != kEmbedded) return;
  throw config::BadSetting(
      "--role " + std::string(roles.web ? "web" : "consumer") + " without " +
      (roles.web ? "consumer" : "web") + " needs a queue that nodes share: queue.url = \"embedded:\" (from " +
      settings.origin("queue.url") + ") is this node's own, and what is published there would " +
      (roles.web ? "never be counted" : "never come"));
}

}  // namespace weir::site
