// SPDX-License-Identifier: Apache-2.0
#include "checks/health/health_rules.h"

#include <gtest/gtest.h>

namespace cufit::checks {
namespace health_rules_test {

const knowledge::Knowledge& world() { return knowledge::Knowledge::builtin(); }

HealthRules rules_of(const std::string& text) {
  auto rules = parse_health_rules(text, "cufit.toml", world());
  EXPECT_TRUE(rules) << (rules ? "" : rules.error().what);
  return rules.value_or(HealthRules());
}

std::string refusal(const std::string& text) {
  const auto rules = parse_health_rules(text, "cufit.toml", world());
  return rules ? "accepted" : rules.error().what;
}

const knowledge::HealthRule& row(std::string_view id) {
  for (const knowledge::HealthRule& one : world().health_rules)
    if (one.id == id) return one;
  ADD_FAILURE() << id;
  return world().health_rules.front();
}

TEST(HealthRules, ReadsEveryKey) {
  const HealthRules rules = rules_of(R"([health]
gpus = 8
driver = ">=580.65,<590"
xid = [48, 79]
xid_warning = [63]
ecc = true
mig = ["3g.40gb", "1g.10gb"]
link_width = 16
nvlinks = 18
persistence = false
clock_mhz = 1980
cdi = true
shm_free = "8 GiB"
memlock = "unlimited"
errors = ["link_width"]
warnings = ["cdi"]
off = ["throttle"]
)");
  EXPECT_EQ(rules.file, "cufit.toml");
  EXPECT_EQ(rules.gpus, 8u);
  EXPECT_EQ(rules.driver, std::vector<std::string>({">=580.65,<590"}));
  EXPECT_EQ(rules.xid, std::vector<uint32_t>({48, 79}));
  EXPECT_EQ(rules.mig, std::vector<std::string>({"3g.40gb", "1g.10gb"}));
  EXPECT_EQ(rules.persistence, false);
  EXPECT_EQ(rules.shm_free_bytes, uint64_t{8} << 30);
  EXPECT_EQ(rules.memlock_bytes, UINT64_MAX);
  EXPECT_EQ(rules_of("[health]\nmemlock = \"64 KiB\"\n").memlock_bytes, 65536u);
  EXPECT_EQ(level_of(rules, row("link_width")), HealthLevel::error);
  EXPECT_EQ(level_of(rules, row("cdi")), HealthLevel::warning);
  EXPECT_EQ(level_of(rules, row("throttle")), HealthLevel::off);
  EXPECT_EQ(level_of(rules, row("ecc")), HealthLevel::error);
}

TEST(HealthRules, WithoutAFileOnlyWhatNobodyHasToAskForCounts) {
  const HealthRules none;
  EXPECT_EQ(level_of(none, row("xid")), HealthLevel::error);
  EXPECT_EQ(level_of(none, row("link_width")), HealthLevel::warning);
  EXPECT_EQ(level_of(none, row("answers")), HealthLevel::unknown);
  EXPECT_EQ(level_of(none, row("ecc")), HealthLevel::off);
  // A list alone gives a rule no value to hold.
  EXPECT_EQ(level_of(rules_of("[health]\nerrors = [\"ecc\"]\n"), row("ecc")), HealthLevel::off);
}

TEST(HealthRules, OtherTablesAreLeftToOthers) {
  EXPECT_EQ(rules_of("[policy]\ntorch = [\">=2\"]\n").file, "");
  EXPECT_EQ(rules_of("").file, "");
}

TEST(HealthRules, NamesFileLineAndWhatIsWrong) {
  EXPECT_EQ(refusal("[health]\ngpu = 8\n"),
            "cufit.toml, line 2: `health.gpu` is not a rule that cufit knows; `gpus` is");
  EXPECT_EQ(refusal("[health]\ngpus = -1\n"),
            "cufit.toml, line 2: `health.gpus` must be a number "
            "from 0 on");
  EXPECT_EQ(refusal("[helth]\ngpus = 8\n"),
            "cufit.toml, line 1: `[helth]` is no table of cufit.toml; `[health]` is");
  for (const char* text :
       {"health = 3", "[health]\nxid = 79", "[health]\nxid = [0]", "[health]\nxid = [\"79\"]",
        "[health]\necc = 1", "[health]\nmig = []", "[health]\nmig = \"on\"",
        "[health]\ndriver = \"abc\"", "[health]\ndriver = []", "[health]\nshm_free = 8",
        "[health]\nmemlock = \"much\"", "[health]\noff = [\"nothing\"]",
        "[health]\noff = [\"xid\"]\nerrors = [\"xid\"]", "[health]\nwarnings = \"xid\"",
        "[health]\nxid = [48, 79]\nxid_warning = [79]", "[health]\nmig = [\"9z.40gb\"]",
        "[health]\nmig = [\"8g.40gb\"]", "[health]\ndriver = [\"580.95.05\", \">=590\"]"})
    EXPECT_NE(refusal(text).find("line "), std::string::npos) << text << ": " << refusal(text);
}

}  // namespace health_rules_test
}  // namespace cufit::checks
