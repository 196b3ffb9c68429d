// SPDX-License-Identifier: Apache-2.0
#include "watch/alert_state.h"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/watch/alert_machine.h"

namespace cufit::watch {
namespace alert_state_test {

using Kind = AlertEvent::Kind;
using test::MadeMetrics;

AlertJudge judge_of(const char* id, AlertTimes times = {}) {
  std::vector<WatchRule> rules = alert_rules(knowledge::Knowledge::builtin());
  std::erase_if(rules, [&](const WatchRule& rule) { return rule.id != id; });
  EXPECT_EQ(rules.size(), 1u) << id;
  return {std::move(rules), times};
}

// "firing@30 resolved@200+170 ": kind, time, and how long it lasted.
std::string told(const std::vector<AlertEvent>& events, double now) {
  std::string out;
  for (const AlertEvent& event : events)
    out += event.kind == Kind::resolved
               ? format("resolved@{:.0f}+{:.0f} ", now, event.until - event.since)
           : event.kind == Kind::firing ? format("firing@{:.0f} ", now)
                                        : format("reminder@{:.0f} ", now);
  return out;
}

std::vector<AlertEvent> step(AlertJudge& judge, double now, const char* metric, double value) {
  return judge.judge(MadeMetrics().gpu(metric, value).families(), now);
}

// A rule of a user's: what is true of the machine is true of each of its GPUs.
TEST(AlertState, ConditionsOfTheMachineHoldForEachGpu) {
  std::vector<WatchRule> rules = alert_rules(knowledge::Knowledge::builtin());
  std::erase_if(rules, [](const WatchRule& rule) { return rule.id != "gpu_lost"; });
  AlertTest machine = rules[0].tests[0];
  machine.term.metric = "cufit_gpus";
  machine.threshold = 1;
  rules[0].tests.push_back(machine);
  AlertJudge judge(std::move(rules), {});
  EXPECT_EQ(
      told(judge.judge(MadeMetrics().gpu("cufit_gpu_lost", 1).add("cufit_gpus", {}, 1).families(),
                       10),
           10),
      "");
  EXPECT_EQ(
      told(judge.judge(MadeMetrics().gpu("cufit_gpu_lost", 1).add("cufit_gpus", {}, 2).families(),
                       20),
           20),
      "firing@20 ");
}

// A storm: whoever reads it looks for GPU 2 before GPU 10.
TEST(AlertState, GpusStandInTheOrderOfTheirNumbers) {
  AlertJudge judge = judge_of("gpu_xid_fatal");
  const auto gpus = [&](double count, double now) {
    MadeMetrics made;
    for (const int gpu : {11, 1, 2, 10, 0})
      made.add(
          "cufit_xid_errors_total",
          {{"gpu", std::to_string(gpu)}, {"uuid", "GPU-" + std::to_string(gpu)}, {"xid", "79"}},
          count);
    std::string out;
    for (const AlertEvent& event : judge.judge(made.families(), now))
      out += std::string(label_of(event.labels, "gpu")) + " ";
    return out;
  };
  EXPECT_EQ(gpus(0, 0), "");
  EXPECT_EQ(gpus(1, 10), "0 1 2 10 11 ");
  EXPECT_EQ(gpus(1, 700), "");
  EXPECT_EQ(gpus(1, 800), "0 1 2 10 11 ");  // all are over
}

TEST(AlertState, HoldsBeforeItFires) {
  AlertJudge judge = judge_of("gpu_remap_pending");  // 5 minutes
  std::string all;
  for (double now = 0; now <= 600; now += 10)
    all += told(step(judge, now, "cufit_remap_pending", now >= 100 ? 1 : 0), now);
  EXPECT_EQ(all, "firing@400 ");
}

TEST(AlertState, AGapBeforeItFiresBeginsAnew) {
  AlertJudge judge = judge_of("gpu_remap_pending");
  std::string all;
  for (double now = 0; now <= 500; now += 10)
    all += told(step(judge, now, "cufit_remap_pending", now == 250 ? 0 : 1), now);
  EXPECT_EQ(all, "");
}

TEST(AlertState, TellsOnceRemindsAndRecovers) {
  AlertTimes times;
  times.repeat_s = 3600;
  AlertJudge judge = judge_of("gpu_lost", times);
  std::string all;
  for (double now = 0; now <= 10000; now += 10)
    all += told(step(judge, now, "cufit_gpu_lost", now >= 100 && now < 8000 ? 1 : 0), now);
  EXPECT_EQ(all, "firing@100 reminder@3700 reminder@7300 resolved@8060+7900 ");
}

TEST(AlertState, AFlappingAlertIsToldOnce) {
  AlertJudge judge = judge_of("gpu_lost");
  std::string all;
  for (double now = 0; now < 1200; now += 10)
    all += told(step(judge, now, "cufit_gpu_lost", static_cast<int>(now / 10) % 2), now);
  EXPECT_EQ(all, "firing@10 ");
  EXPECT_EQ(judge.firing(), 1u);
}

TEST(AlertState, ASeriesThatIsGoneIsOver) {
  AlertJudge judge = judge_of("process_memory_full");
  std::string all;
  for (double now = 0; now < 1000; now += 10) {
    MadeMetrics metrics;
    if (now < 400)
      metrics.add("cufit_process_memory_full_seconds",
                  {{"gpu", "0"}, {"uuid", "GPU-0"}, {"pid", "7"}, {"user", "ana"}}, 900);
    all += told(judge.judge(metrics.families(), now), now);
  }
  EXPECT_EQ(all, "firing@300 resolved@460+400 ");
}

TEST(AlertState, ACounterCountsFromWhatWasThere) {
  AlertJudge judge = judge_of("gpu_ecc_uncorrected");
  const auto at = [&](double now, double count) {
    return judge.judge(MadeMetrics()
                           .add("cufit_ecc_errors_total",
                                {{"gpu", "0"}, {"uuid", "GPU-0"}, {"kind", "uncorrected"}}, count)
                           .families(),
                       now);
  };
  EXPECT_EQ(told(at(0, 5), 0), "");
  EXPECT_EQ(told(at(10, 5), 10), "");
  const std::vector<AlertEvent> events = at(20, 7);
  ASSERT_EQ(told(events, 20), "firing@20 ");
  EXPECT_EQ(events[0].value, 2);
  EXPECT_EQ(told(at(600, 7), 600), "");
  EXPECT_EQ(told(at(640, 7), 640), "");  // 10 minutes are over
  EXPECT_EQ(told(at(710, 7), 710), "resolved@710+620 ");
  // A restart of the driver: from 0 again.
  EXPECT_EQ(told(at(720, 0), 720), "");
  const std::vector<AlertEvent> again = at(730, 1);
  ASSERT_EQ(told(again, 730), "firing@730 ");
  EXPECT_EQ(again[0].value, 1);
}

TEST(AlertState, OtherValuesOfTheLabelAreOtherSeries) {
  AlertJudge judge = judge_of("gpu_ecc_uncorrected");
  std::string all;
  for (double now = 0; now <= 100; now += 10)
    all += told(judge.judge(MadeMetrics()
                                .add("cufit_ecc_errors_total",
                                     {{"gpu", "0"}, {"uuid", "GPU-0"}, {"kind", "corrected"}}, now)
                                .families(),
                            now),
                now);
  EXPECT_EQ(all, "");
}

// All tests of a rule hold for one GPU.
TEST(AlertState, GpusAreNotMixed) {
  AlertJudge judge = judge_of("gpu_pcie_width");
  std::vector<AlertEvent> events;
  for (double now = 0; now <= 900; now += 10) {
    MadeMetrics metrics;
    for (const char* gpu : {"0", "1", "2"}) {
      metrics.gpu("cufit_gpu_pcie_link_width", gpu[0] == '0' ? 16 : 8, gpu);
      metrics.gpu("cufit_gpu_pcie_link_width_max", 16, gpu);
      metrics.gpu("cufit_gpu_utilization_ratio", gpu[0] == '1' ? 0.1 : 0.9, gpu);
    }
    for (AlertEvent& event : judge.judge(metrics.families(), now))
      events.push_back(std::move(event));
  }
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(label_of(events[0].labels, "gpu"), "2");
  EXPECT_EQ(events[0].value, 0.5);
}

// "10 minutes under load" is not said after one sample.
TEST(AlertState, AWindowIsFullBeforeLittleIsAlarmedOn) {
  AlertJudge judge = judge_of("gpu_pcie_width");
  std::string all;
  for (double now = 0; now <= 700; now += 10)
    all += told(judge.judge(MadeMetrics()
                                .gpu("cufit_gpu_pcie_link_width", 8)
                                .gpu("cufit_gpu_pcie_link_width_max", 16)
                                .gpu("cufit_gpu_utilization_ratio", 1)
                                .families(),
                            now),
                now);
  EXPECT_EQ(all, "firing@600 ");
}

TEST(AlertState, DivisionByZeroIsNoAlarm) {
  AlertJudge judge = judge_of("gpu_nvlink_down");
  std::string all;
  for (double now = 0; now <= 1000; now += 10)
    all += told(step(judge, now, "cufit_gpu_nvlinks_active", 0), now);
  EXPECT_EQ(all, "");
}

TEST(AlertState, ProcessesOfAGpuAreDividedByItsMemory) {
  AlertJudge judge = judge_of("gpu_idle_holder");
  std::vector<AlertEvent> events;
  for (double now = 0; now <= 4800; now += 60) {
    MadeMetrics metrics;
    metrics.add("cufit_process_memory_bytes", {{"gpu", "0"}, {"uuid", "GPU-0"}, {"pid", "41"}},
                75e9);
    metrics.add("cufit_process_memory_bytes", {{"gpu", "0"}, {"uuid", "GPU-0"}, {"pid", "42"}},
                4e9);
    metrics.gpu("cufit_gpu_memory_total_bytes", 80e9).gpu("cufit_gpu_utilization_ratio", 0);
    for (AlertEvent& event : judge.judge(metrics.families(), now))
      events.push_back(std::move(event));
  }
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(label_of(events[0].labels, "pid"), "41");
  EXPECT_DOUBLE_EQ(events[0].value, 75.0 / 80);
}

TEST(AlertState, AClockThatGoesBackStandsStill) {
  AlertJudge judge = judge_of("gpu_remap_pending");
  EXPECT_EQ(told(step(judge, 1000, "cufit_remap_pending", 1), 1000), "");
  EXPECT_EQ(told(step(judge, 10, "cufit_remap_pending", 1), 10), "");
  EXPECT_EQ(told(step(judge, 1300, "cufit_remap_pending", 1), 1300), "firing@1300 ");
}

// A day of samples, one each second, in a few buckets, and as exact as all of them.
TEST(AlertWindow, IsSmallAndExact) {
  for (const AlertTake take :
       {AlertTake::increase, AlertTake::rate, AlertTake::avg, AlertTake::min, AlertTake::max}) {
    AlertWindow window(take, 3600);
    std::vector<double> all;
    for (int second = 0; second < 20000; ++second) {
      const double value = take == AlertTake::increase || take == AlertTake::rate
                               ? second * 2
                               : std::fmod(second * 37.0, 101);
      window.add(second, value);
      all.push_back(value);
      ASSERT_LE(window.buckets(), 122u);
    }
    double least = 1e9, most = 0, sum = 0;
    for (size_t i = all.size() - 3600; i < all.size(); ++i) {
      least = std::min(least, all[i]);
      most = std::max(most, all[i]);
      sum += all[i];
    }
    const double value = window.value(19999).value_or(-1);
    if (take == AlertTake::increase) {
      EXPECT_NEAR(value, 7200, 7200 / 120.0 + 1);
    }
    if (take == AlertTake::rate) {
      EXPECT_NEAR(value, 2, 0.02);
    }
    if (take == AlertTake::avg) {
      EXPECT_NEAR(value, sum / 3600, 0.5);
    }
    if (take == AlertTake::min) {
      EXPECT_EQ(value, least);
    }
    if (take == AlertTake::max) {
      EXPECT_EQ(value, most);
    }
    EXPECT_FALSE(window.value(19999 + 3700).has_value());
  }
}

TEST(AlertState, AlertsAreBounded) {
  AlertJudge judge = judge_of("gpu_lost");
  MadeMetrics metrics;
  std::vector<std::string> numbers;
  for (int i = 0; i < 3000; ++i) numbers.push_back(std::to_string(i));
  for (const std::string& number : numbers) metrics.gpu("cufit_gpu_lost", 1, number.c_str());
  EXPECT_EQ(judge.judge(metrics.families(), 0).size(), AlertJudge::k_most_alerts);
}

}  // namespace alert_state_test
}  // namespace cufit::watch
