// Proxies: which peers are believed when they say for whom they speak. For this folder's own use.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <string>
#include <vector>

#include "weir/http/request.h"

namespace weir::http {

class Proxies {
 public:
  // Addresses and networks: "10.0.0.1", "10.0.0.0/8", "fd00::/8". Throws Unusable for other texts.
  explicit Proxies(const std::vector<std::string>& texts);

  bool trusted(const boost::asio::ip::address& address) const;
  // Fills peer and secure in, for a request that came through a trusted proxy: the client is the last address
  // of X-Forwarded-For that isn't a trusted proxy itself, since everything before it could be invented.
  void look_behind(Request& request) const;

 private:
  std::vector<boost::asio::ip::network_v4> v4_;
  std::vector<boost::asio::ip::network_v6> v6_;
};

}  // namespace weir::http
