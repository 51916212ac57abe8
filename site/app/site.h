// The wiring: every module with what it stands on, made in order and ended in the opposite one. Besides app/
// nobody knows more than one module.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "site/app/background.h"
#include "site/app/read_events.h"
#include "site/app/roles.h"
#include "site/article/article_repository.h"
#include "site/article/article_service.h"
#include "site/interaction/history_consumer.h"
#include "site/interaction/interaction_consumer.h"
#include "site/interaction/interaction_repository.h"
#include "site/interaction/interaction_service.h"
#include "site/ranking/ranking_service.h"
#include "site/user/user_service.h"
#include "weir/config/settings.h"
#include "weir/http/router.h"
#include "weir/scheduler/job.h"
#include "weir/scheduler/ticker.h"
#include "weir/sql/database.h"

namespace weir::site {

// The modules on their store. Commands use them beside a running server.
class Site {
 public:
  // Opens the store and brings it up to date; throws Unusable.
  explicit Site(const config::Settings& settings);  // for commands, which record no reads and count none
  Site(const config::Settings& settings, const Roles& roles, ReadEvents& events);
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  user::UserService& users();
  article::ArticleService& articles();
  interaction::InteractionService& interactions();

  // All jobs, for `weir job`. A job is run by one caller at a time.
  const std::vector<std::unique_ptr<scheduler::Job>>& jobs() const;
  // Null when there is none of that name.
  scheduler::Job* job(std::string_view name);

  // Everything that people and tools can ask this node for. `stopping`: whether the server is about to end.
  http::Router routes(std::function<bool()> stopping);

  // Begins what goes on beside the requests, by role: filling the filter, counting, the hot list, pruning.
  void start();
  // Ends it, then the waits of requests, then the store. Once is enough; more is harmless.
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::site
