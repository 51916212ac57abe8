#include "site/app/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "site/app/site_settings.h"

namespace weir::site {
namespace {

std::string named(const std::string& text) {
  const Roles roles = Roles::parse(text);
  return std::string(roles.web ? "w" : "") + (roles.consumer ? "c" : "") + (roles.job ? "j" : "");
}

std::string refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const config::BadSetting& error) {
    return error.what();
  }
  return "";
}

TEST(Roles, AreReadFromWords) {
  EXPECT_EQ(named("all"), "wcj");
  EXPECT_EQ(named("web"), "w");
  EXPECT_EQ(named("job,consumer"), "cj");
  EXPECT_EQ(named("web,web"), "w");
  EXPECT_EQ(named("job,all"), "wcj");
}

TEST(Roles, WhatCantBeMeantIsRefusedWithTheNearestWord) {
  EXPECT_THAT(refused([] { Roles::parse("consumr"); }), testing::HasSubstr("did you mean \"consumer\""));
  EXPECT_THAT(refused([] { Roles::parse(""); }), testing::HasSubstr("none of all"));
  EXPECT_THAT(refused([] { Roles::parse("web,Job"); }), testing::HasSubstr("\"Job\""));
}

TEST(Roles, AQueueOfThisNodesOwnNeedsWhoFillsAndWhoEmptiesIt) {
  const auto settings = config::Settings::load(site_keys(), {}, {}, {});
  for (const char* fine : {"all", "job", "web,consumer"})
    EXPECT_EQ(refused([&] { check_roles(Roles::parse(fine), settings); }), "") << fine;
  for (const char* bad : {"web", "web,job", "consumer", "job,consumer"})
    EXPECT_THAT(refused([&] { check_roles(Roles::parse(bad), settings); }), testing::HasSubstr("queue.url"))
        << bad;
}

}  // namespace
}  // namespace weir::site
