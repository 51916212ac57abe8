// The rows that a benchmark prints: JSON that bench/run.py reads.
#pragma once

#include <boost/json.hpp>
#include <cstdio>
#include <optional>
#include <string>

namespace weir::bench {

struct Row {
  std::string name, unit;
  double ours = 0;
  std::string peer;
  double theirs = 0;
  double ratio = 0;
  std::optional<double> bar;
  bool ok = true;
};

// Prints the rows to standard output.
inline void print(const std::vector<Row>& rows) {
  boost::json::array all;
  for (const Row& row : rows) {
    boost::json::object one{{"name", row.name}, {"unit", row.unit},     {"ours", row.ours},
                            {"peer", row.peer}, {"theirs", row.theirs}, {"ratio", row.ratio},
                            {"ok", row.ok}};
    one["bar"] = row.bar ? boost::json::value(*row.bar) : boost::json::value(nullptr);
    all.push_back(std::move(one));
  }
  std::puts(boost::json::serialize(all).c_str());
}

}  // namespace weir::bench
