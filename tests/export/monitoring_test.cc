// SPDX-License-Identifier: Apache-2.0
// What `cufit export` writes without a lock, read by those who know it: promtool and amtool of
// Debian, Python's YAML. Where they are not installed, the test says that it is skipped.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "base/format.h"
#include "report/export.h"
#include "support/places.h"

namespace cufit {
namespace monitoring_test {

namespace fs = std::filesystem;

bool succeeds(const std::string& line) {
  const int status = std::system(line.c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool there(const std::string& program) {
  return succeeds("command -v " + program + " >/dev/null 2>&1");
}

bool python_reads_yaml() { return succeeds("/usr/bin/python3 -c 'import yaml' 2>/dev/null"); }

// All four files, by the name that `cufit export` gives them, and what the tests put beside.
class Monitoring : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cufit-monitoring-XXXXXX";
    folder_ = mkdtemp(name);
    // No lock is near: none is looked for.
    for (const std::string_view to : split(report::k_monitoring_formats, ' '))
      ASSERT_TRUE(succeeds(format("cd {} && '{}' export --to {} --lang {} -o ./ >/dev/null",
                                  folder_, test::program(), to, GetParam())))
          << to;
  }
  void TearDown() override { fs::remove_all(folder_); }

  bool check(const std::string& words) const {
    return succeeds(format("cd {} && /usr/bin/python3 -B '{}/tests/export/check_monitoring.py' {}",
                           folder_, test::source_dir(), words));
  }
  bool in_folder(const std::string& line) const {
    return succeeds(format("cd {} && {}", folder_, line));
  }

  std::string folder_;
};

INSTANTIATE_TEST_SUITE_P(Languages, Monitoring, testing::Values("en", "zh"));

TEST_P(Monitoring, RulesPassPromtool) {
  if (!there("promtool")) GTEST_SKIP() << "no promtool here (Debian: prometheus)";
  EXPECT_TRUE(in_folder("promtool check rules cufit.rules.yml >/dev/null"));
}

// In Chinese only annotations differ, which two cases compare as English.
TEST_P(Monitoring, EveryRuleFiresAndStaysQuiet) {
  if (GetParam() != std::string("en")) GTEST_SKIP() << "the cases are English";
  if (!there("promtool") || !python_reads_yaml())
    GTEST_SKIP() << "no promtool here (Debian: prometheus), or no python3-yaml";
  const std::string cases = format("'{}/tests/export/alert_rules_test.yml'", test::source_dir());
  EXPECT_TRUE(check("cases cufit.rules.yml " + cases));
  EXPECT_TRUE(in_folder(format("cp {} . && promtool test rules alert_rules_test.yml", cases)));
  // The cases can fail: a threshold that is not reached, one that always is.
  for (const char* change : {"s/\\[10m\\]) > 0.1/[10m]) > 0.6/", "s/\\[10m\\]) > 80/[10m]) > 50/",
                             "s/for: 1h/for: 0s/", "s/hw_power_brake_slowdown/sw_power_cap/"}) {
    EXPECT_TRUE(
        in_folder(format("cp cufit.rules.yml kept && sed -i '{}' cufit.rules.yml", change)));
    EXPECT_TRUE(in_folder("! cmp -s kept cufit.rules.yml")) << change;
    EXPECT_FALSE(in_folder("promtool test rules alert_rules_test.yml >/dev/null 2>&1")) << change;
    EXPECT_TRUE(in_folder("mv kept cufit.rules.yml"));
  }
}

TEST_P(Monitoring, AlertmanagerPassesAmtool) {
  if (!there("amtool")) GTEST_SKIP() << "no amtool here (Debian: prometheus-alertmanager)";
  EXPECT_TRUE(in_folder("amtool check-config alertmanager.yml >/dev/null"));
  const auto goes_to = [&](const std::string& labels, const std::string& receiver) {
    return in_folder(
        format("test \"$(amtool config routes test --config.file=alertmanager.yml {})\" "
               "= {}",
               labels, receiver));
  };
  EXPECT_TRUE(goes_to("severity=critical alertname=CufitGpuLost", "critical"));
  EXPECT_TRUE(goes_to("severity=warning alertname=CufitGpuPcieWidth", "warning"));
  EXPECT_TRUE(goes_to("severity=info alertname=CufitGpuIdleHolder", "info"));
}

TEST_P(Monitoring, BoardHasWhatGrafanaNeeds) {
  if (!python_reads_yaml()) GTEST_SKIP() << "no python3-yaml here";
  EXPECT_TRUE(check(
      format("board cufit-board.json '{}/data/metrics.toml' board.rules.yml", test::source_dir())));
  if (there("promtool")) {
    EXPECT_TRUE(in_folder("promtool check rules board.rules.yml >/dev/null"));
  }
}

// One file holds all others, as they are alone, and what joins them.
TEST_P(Monitoring, ComposeHoldsTheOtherFiles) {
  if (!python_reads_yaml()) GTEST_SKIP() << "no python3-yaml here";
  fs::create_directory(fs::path(folder_) / "inside");
  ASSERT_TRUE(check("compose compose-monitoring.yaml inside"));
  EXPECT_TRUE(in_folder("diff inside/rules cufit.rules.yml"));
  EXPECT_TRUE(in_folder("diff inside/board cufit-board.json"));
  EXPECT_TRUE(in_folder(
      "sed s,http://host.docker.internal:,http://127.0.0.1:, inside/alertmanager | diff - "
      "alertmanager.yml"));
  if (there("promtool")) {
    EXPECT_TRUE(
        in_folder("cp inside/rules inside/cufit.rules.yml && promtool check config "
                  "inside/prometheus >/dev/null"));
  }
  // Not docker-compose 1, which knows no texts in configs.
  if (succeeds("docker compose version >/dev/null 2>&1")) {
    EXPECT_TRUE(in_folder("docker compose -f compose-monitoring.yaml config -q"));
  }
}

}  // namespace monitoring_test
}  // namespace cufit
