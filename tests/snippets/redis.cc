// What weir/redis/README.md takes as given.
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string_view>

namespace weir {

using namespace std::chrono_literals;

void greet(std::string_view text);

boost::asio::awaitable<void> snippet(boost::asio::io_context& io, std::string_view url) {
  // SNIPPET
}

}  // namespace weir
