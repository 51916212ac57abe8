#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iostream>

#include "site/app/commands.h"
#include "site/app/data_directory.h"
#include "site/app/site.h"
#include "site/user/user_handler.h"
#include "weir/http/server.h"
#include "weir/telemetry/log.h"

namespace weir::site {
namespace {

// Files beside the connections: databases, the journal, logs, the listener.
constexpr rlim_t kOtherFiles = 256;
constexpr std::chrono::seconds kStopDeadline{10};
constexpr int kStoppedAtOnce = 130;

void raise_open_files(rlim_t connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = connections + kOtherFiles;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted) {
    log::warn("only {} files may be open: http.max_connections = {} can't be reached", limit.rlim_cur,
              connections);
  }
}

// The signals that end the server, blocked in every thread and taken by `wait` alone.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    // A peer that has gone and a full disk are errors of the call, not the end of the process.
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
  }
  void wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
  }
  // From now on each of them ends the process without waiting for anything.
  void end_at_once() const {
    for (const int signal : {SIGTERM, SIGINT}) ::signal(signal, [](int) { ::_exit(kStoppedAtOnce); });
    pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
  }

 private:
  sigset_t set_{};
};

http::AccessLogLevel access_log(const std::string& level) {
  if (level == "all") return http::AccessLogLevel::all;
  return level == "off" ? http::AccessLogLevel::none : http::AccessLogLevel::errors;
}

http::ServerOptions server_options(const config::Settings& settings) {
  http::ServerOptions options;
  options.listen = settings.text("http.listen");
  options.threads = static_cast<unsigned>(settings.integer("http.threads"));
  options.max_body = settings.size("http.max_body");
  options.max_connections = static_cast<std::size_t>(settings.integer("http.max_connections"));
  options.max_client_memory = settings.size("http.client_memory");
  options.trusted_proxies = settings.list("http.trusted_proxies");
  options.cors_origins = settings.list("http.cors_origins");
  options.head_deadline = settings.duration("http.header_deadline");
  options.body_deadline = settings.duration("http.body_deadline");
  options.access_log = access_log(settings.text("http.access_log"));
  return options;
}

}  // namespace

int serve(const config::Settings& settings, const std::string& role) {
  const Roles roles = Roles::parse(role);
  check_roles(roles, settings);
  const StopSignals signals;
  raise_open_files(static_cast<rlim_t>(settings.integer("http.max_connections")));
  const DataDirectory data(settings.text("data"));
  ReadEvents events(settings, roles);
  Site site(settings, roles, events);
  std::atomic<bool> stopping{false};
  http::Server server(server_options(settings), site.routes([&stopping] { return stopping.load(); }),
                      user::authenticator(site.users()));
  site.start();
  server.start();
  std::cout << "listening on http://" << server.address() << std::endl;

  signals.wait();
  signals.end_at_once();
  log::info("stopping");
  stopping = true;
  server.stop(kStopDeadline);
  site.stop();
  return 0;
}

}  // namespace weir::site
