// The frame of every page: head, header, menu, footer; and the response that carries it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "site/pages/html.h"
#include "site/pages/visit.h"
#include "weir/http/request.h"
#include "weir/http/response.h"

namespace weir::site::pages {

struct Page {
  std::string title;                       // without the site's name
  std::string description;                 // plain text
  std::string_view here;                   // "hot", "newest" or "write": the link of the header that this is
  std::string_view entry;                  // of ui/, beside "site"; empty: none
  std::vector<std::string_view> sections;  // of the messages, that the entry wants
  std::string_view kind;                   // class of <main>
  std::string canonical;                   // path; empty: the page is not for search engines
  std::string_view type = "website";       // Open Graph's
  std::optional<WallTime> published;       // of an article
  Html body;
};

std::string frame(const Visit& visit, const Page& page);

// The page as an answer, with the headers that every page has; gzipped when the client takes it.
http::Response page_response(const http::Request& request, const Visit& visit, const Page& page,
                             unsigned status = 200);

// "Nothing here", "one moment" and "went wrong": 404, 503, 500.
http::Response error_response(const http::Request& request, const Visit& visit, unsigned status);

// <time datetime title>3 hours ago</time>
Html time_element(const Visit& visit, WallTime time);

// gzip (RFC 1952) at a level that takes about 10 ns a byte.
std::string gzipped(std::string_view bytes);

}  // namespace weir::site::pages
