// How articles look on the wire.
#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "site/article/article.h"
#include "site/interaction/interaction.h"
#include "site/user/user_service.h"
#include "weir/http/json_writer.h"

namespace weir::site::article {

// Authors by id; one that isn't there has no name.
using Authors = std::unordered_map<Id, user::UserPtr>;

// The answer for readers: the copy's rendered pieces with what changes from read to read between them.
std::string article_json(const ReaderCopy& copy, std::string_view nickname, const interaction::Counts& counts,
                         const std::optional<interaction::Mine>& mine);

void write_summary(http::JsonWriter& writer, const Summary& summary, const Authors& authors);
// The author's copy with its content.
std::string own_json(const OwnArticle& article, const Authors& authors);
// {"items": [..], "next_cursor"?: .., "total"?: ..}; `next_cursor` when it isn't empty.
std::string listing_json(const Listing& listing, const Authors& authors, const std::string& next_cursor);

// The JSON schemas of all that, for the OpenAPI document.
std::map<std::string, boost::json::value> schemas();

}  // namespace weir::site::article
