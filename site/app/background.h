// Background: one thread that runs what belongs to nobody's request: loads of caches, fills, refreshes.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <thread>

#include "weir/telemetry/metrics.h"

namespace weir::site {

class Background {
 public:
  Background() : work_(io_.get_executor()), thread_([this] { run(); }) {}
  ~Background() { stop(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  boost::asio::any_io_executor executor() { return io_.get_executor(); }
  // Drops what hasn't run, joins. Once is enough; more is harmless.
  void stop() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  // What one piece of work throws ends neither the process nor the other work.
  void run() {
    while (!io_.stopped()) {
      try {
        io_.run();
      } catch (const std::exception& error) {
        telemetry::swallowed("background", error);
      }
    }
  }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace weir::site
