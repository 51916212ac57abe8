#include "site/lab/lab.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <set>
#include <sstream>

namespace weir::site {
namespace {

const Figure& figure(const Outcome& outcome, std::string_view key) {
  for (const Figure& each : outcome.figures)
    if (each.key == key) return each;
  throw std::logic_error("no figure " + std::string(key));
}
std::uint64_t number(const Figure::Value& value) {
  return std::get<std::uint64_t>(value);
}
Outcome run(std::string_view name) {
  return find_accident(name)->run();
}

TEST(LabTest, EveryCureHolds) {
  for (const Accident& accident : accidents()) {
    const Outcome outcome = accident.run();
    EXPECT_TRUE(outcome.held) << to_text(accident, outcome);
  }
}

TEST(LabTest, NamesAreTheOnesOfTheContract) {
  std::set<std::string> names;
  for (const Accident& accident : accidents()) names.insert(accident.name);
  EXPECT_EQ(names, (std::set<std::string>{"stampede", "penetration", "avalanche", "stale-fill",
                                          "double-write", "long-absence", "lost-wakeup", "cache-down"}));
  EXPECT_EQ(find_accident("stampedes"), nullptr);
}

TEST(LabTest, AStampedeIsOneLoadWithSingleFlight) {
  const Outcome outcome = run("stampede");
  EXPECT_EQ(number(figure(outcome, "loads").without), 100);
  EXPECT_EQ(number(figure(outcome, "loads").with), 1);
  EXPECT_EQ(number(figure(outcome, "answered").with), 100);
}

TEST(LabTest, ThreeNodesAgreeOnOneLoadAtVeryDifferentCosts) {
  const Outcome outcome = run("stampede");
  const auto with = [&](const std::string& key) { return number(figure(outcome, key).with); };
  EXPECT_EQ(number(figure(outcome, "lease_loads").without), 100);
  EXPECT_EQ(with("single_flight_loads"), 3);
  EXPECT_EQ(with("lock_loads"), 1);
  EXPECT_EQ(with("lease_loads"), 1);
  EXPECT_LE(with("lease_round_trips"), 10);
  EXPECT_GE(with("lock_round_trips"), 400) << "each asks once, takes, looks again and gives back";
}

TEST(LabTest, AbsentKeysStopAtTheCacheAndAtTheFilter) {
  const Outcome outcome = run("penetration");
  EXPECT_EQ(number(figure(outcome, "same_key_loads").without), 1'000);
  EXPECT_EQ(number(figure(outcome, "same_key_loads").with), 1);
  EXPECT_EQ(number(figure(outcome, "invented_keys_loads").without), 10'000);
  EXPECT_LE(number(figure(outcome, "invented_keys_loads").with), 300);
}

TEST(LabTest, JitterSpreadsAnAvalanche) {
  const Outcome outcome = run("avalanche");
  EXPECT_EQ(number(figure(outcome, "most_loads_in_one_second").without), 10'000);
  EXPECT_LE(number(figure(outcome, "most_loads_in_one_second").with), 200);
  EXPECT_EQ(number(figure(outcome, "loads").with), 10'000);
}

TEST(LabTest, EveryOrderOfTwoWritersIsPlayed) {
  const Outcome outcome = run("double-write");
  EXPECT_EQ(number(figure(outcome, "orders").without), 6);  // of 2 and 2 steps
  EXPECT_EQ(number(figure(outcome, "apart").without), 2);
  EXPECT_EQ(number(figure(outcome, "orders").with), 70);  // of 4 and 4
  EXPECT_EQ(number(figure(outcome, "apart").with), 0);
}

TEST(LabTest, AnAbsenceEndsWithTheCreationOrAfterItsOwnTtl) {
  const Outcome outcome = run("long-absence");
  EXPECT_EQ(number(figure(outcome, "seconds_unseen").without), 600);
  EXPECT_EQ(number(figure(outcome, "seconds_unseen").with), 0);
  EXPECT_EQ(number(figure(outcome, "seconds_unseen_elsewhere").with), 5);
}

TEST(LabTest, NobodyIsLeftWaiting) {
  const Outcome outcome = run("lost-wakeup");
  EXPECT_EQ(number(figure(outcome, "hanging_after_error").without), 9);
  EXPECT_EQ(number(figure(outcome, "told_of_error").with), 10);
  EXPECT_EQ(number(figure(outcome, "hanging_after_cancel").without), 9);
  EXPECT_EQ(number(figure(outcome, "got_value").with), 9);
}

TEST(LabTest, ADeadCacheIsNotADeadStore) {
  const Outcome outcome = run("cache-down");
  EXPECT_EQ(number(figure(outcome, "bulkhead_loads").without), 4'000);
  EXPECT_GT(number(figure(outcome, "bulkhead_most_at_once").without), 1'000);
  EXPECT_EQ(number(figure(outcome, "bulkhead_most_at_once").with), 16);
  EXPECT_LE(number(figure(outcome, "bulkhead_slowest_ms").with), 116);
  EXPECT_LT(number(figure(outcome, "bulkhead_refused").with), 4'000);
  EXPECT_EQ(number(figure(outcome, "availability_loads").with), 2'000);
  EXPECT_EQ(number(figure(outcome, "availability_refused").with), 0);
  EXPECT_EQ(number(figure(outcome, "protect_loads").with), 0);
  EXPECT_EQ(number(figure(outcome, "protect_refused").with), 4'000);
}

TEST(LabTest, ADeadCacheIsTheSameEachTime) {
  const Accident& accident = *find_accident("cache-down");
  EXPECT_EQ(to_json(accident, accident.run()), to_json(accident, accident.run()));
}

const Outcome kShown{.held = false,
                     .figures = {{"loads", "loads", std::uint64_t{100}, std::uint64_t{1}},
                                 {"agree", "they agree", false, true},
                                 {"reader", "a reader gets", "old", "\"new\""}}};

TEST(LabTest, JsonHasBothSides) {
  const auto json = boost::json::parse(to_json(*find_accident("stampede"), kShown));
  EXPECT_EQ(json, boost::json::parse(R"({"name": "stampede", "held": false,
      "without": {"loads": 100, "agree": false, "reader": "old"},
      "with": {"loads": 1, "agree": true, "reader": "\"new\""}})"));
}

TEST(LabTest, TheTableIsAlignedAndSaysWhetherTheCureHeld) {
  const std::string text = to_text(*find_accident("stampede"), kShown);
  EXPECT_NE(text.find("                  without    with\n"
                      "  loads               100       1\n"
                      "  they agree           no     yes\n"
                      "  a reader gets       old   \"new\"\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("THE CURE DID NOT HOLD"), std::string::npos);
}

TEST(LabTest, TextsFitATerminal) {
  for (const Accident& accident : accidents()) {
    std::istringstream text(to_text(accident, accident.run()));
    for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 110U) << line;
  }
}

}  // namespace
}  // namespace weir::site
