// The table `interactions`, a row of counts for each thing, as statements that the stores of this module
// share.
//
// They run in the caller's transaction. A count is moved in SQL (`like_count = like_count + 1`), together
// with its version; nothing reads, adds and writes back, and none goes below zero.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "site/interaction/interaction.h"
#include "weir/sql/session.h"

namespace weir::site::interaction::counts_table {

// The order of the columns that read_counts expects, from column 0 on.
inline constexpr std::string_view kColumns = "read_count, like_count, collect_count, version";
Counts read_counts(const sql::Row& row, int first_column);

// Adds or takes one, creating the row when it adds; the counts afterwards. Nothing when there was nothing to
// take from.
enum class By { plus_one, minus_one };
std::optional<Counts> move_likes(sql::Session& session, const Subject& subject, By by);
std::optional<Counts> move_collects(sql::Session& session, const Subject& subject, By by);

std::optional<Counts> find(sql::Session& session, const Subject& subject);
// Those that have a row, in any order. One statement for each 128; `module` is what they are counted as.
std::vector<SubjectCounts> find_all(sql::Session& session, std::span<const Subject> subjects,
                                    std::string_view module);

}  // namespace weir::site::interaction::counts_table
