#include <iostream>

#include "site/app/commands.h"
#include "site/app/site.h"
#include "site/app/site_settings.h"
#include "weir/base/fault.h"

namespace weir::site {
namespace {

[[noreturn]] void nobody(const std::string& email) {
  throw Unusable("nobody has signed up with \"" + email + '"');
}

}  // namespace

int grant_admin(const config::Settings& settings, const std::string& email) {
  want_store(settings);
  Site site(settings);
  if (!site.users().grant_admin(email)) nobody(email);
  std::cout << email << " is an administrator, from the next sign-in or refresh on\n";
  return 0;
}

int revoke_admin(const config::Settings& settings, const std::string& email) {
  want_store(settings);
  Site site(settings);
  if (!site.users().revoke_admin(email)) nobody(email);
  std::cout << email << " is no administrator, from the next sign-in or refresh on\n";
  return 0;
}

}  // namespace weir::site
