// SPDX-License-Identifier: Apache-2.0
#include "report/mem_explain.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/terminal/mem_explain_words.h"

namespace cufit::report {
namespace mem_explain_test {

using nlohmann::json;

constexpr uint64_t k_mib = 1u << 20;

// A run that died with 40 MiB allocated, asking for 9 MiB, which takes a segment of 20 MiB.
struct Sample {
  std::string file = "x.pickle";
  memory::Snapshot snapshot;
  memory::VerifiedRecording verified;
  analysis::Diagnosis diagnosis;

  Sample() {
    snapshot.traces.resize(2);
    memory::TraceEvent event;
    event.action = memory::Action::oom;
    snapshot.events.push_back(event);
    snapshot.traces[1].count = 1;
    analysis::OomInstant oom;
    oom.request.rounded = 9 * k_mib;
    oom.request.tried = 20 * k_mib;
    oom.request.reserved = 64 * k_mib;
    oom.request.largest_free_in_pool = 3 * k_mib;
    oom.instant.moment.allocated_bytes = 40 * k_mib;
    oom.instant.moment.reserved_bytes = 64 * k_mib;
    oom.instant.moment.largest_free_bytes = 7 * k_mib;
    oom.device_free = 11 * k_mib;
    diagnosis.oom = oom;
    diagnosis.limits = oom.limits;
    diagnosis.ooms = 1;
    analysis::Advice as_recorded, other;
    as_recorded.peak_reserved_bytes = 84 * k_mib;
    as_recorded.survives = other.survives = false;
    as_recorded.smallest_limit_bytes = other.smallest_limit_bytes = 84 * k_mib;
    other.settings = "max_split_size_mb:128";
    other.peak_reserved_bytes = 80 * k_mib;
    other.saved_bytes = 4 * k_mib;
    other.replay_limitations = {"stream_timing"};
    diagnosis.advice = {as_recorded, other};
  }
  MemExplainView view() const {
    return {file, snapshot, verified, diagnosis, knowledge::Knowledge::builtin()};
  }
  std::string text() const {
    std::string out;  // in one line: wrapping is not what is asked about
    for (const char c : mem_explain_text(view(), Style())) {
      const bool blank = c == ' ' || c == '\n';
      if (!blank || (!out.empty() && out.back() != ' ')) out += blank ? ' ' : c;
    }
    return out;
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(MemExplain, AnUnknownCauseComesWithItsNumbers) {
  const std::string text = Sample().text();
  EXPECT_TRUE(has(text,
                  "asked for 20.0 MiB and the card had 11.0 MiB left, while this process "
                  "held 64.0 MiB"))
      << text;
  // One request, two sizes; and only what it could have used counts as free.
  EXPECT_TRUE(has(text, "the request is 9.0 MiB; a new segment for it takes 20.0 MiB")) << text;
  EXPECT_TRUE(has(text, "this request could use 3.0 MiB")) << text;
  EXPECT_TRUE(has(text, "device 1 (events: 1), ran out of memory too")) << text;
}

TEST(MemExplain, EveryReplayHasItsBaselineAndItsExactness) {
  const Sample sample;
  const std::string text = sample.text();
  EXPECT_TRUE(has(text, "as recorded (default): peak reserved 84.0 MiB, had it gone on")) << text;
  EXPECT_TRUE(has(text,
                  "80.0 MiB, 4.0 MiB less; dies all the same; needs at least 84.0 MiB to get "
                  "past this request (not exact)"))
      << text;
  const json out = json::parse(mem_explain_json(sample.view()));
  EXPECT_EQ(out["advice"][0]["not_modelled"], json::array());
  EXPECT_EQ(out["advice"][1]["not_modelled"], json::array({"stream_timing"}));
  EXPECT_EQ(out["devices"][1]["ran_out"], true);
  EXPECT_EQ(out["devices"][0]["explained"], true);
}

TEST(MemExplain, NoSettingsHelpAnAbsurdRequest) {
  Sample sample;
  sample.diagnosis.causes = {{"runaway_request", analysis::Confidence::certain, {}, {}}};
  const std::string text = sample.text();
  EXPECT_TRUE(has(text, "no settings help")) << text;
  EXPECT_FALSE(has(text, "max_split_size_mb")) << text;
}

TEST(MemExplain, ATraceThatContradictsItselfHasNoShares) {
  Sample sample;
  sample.diagnosis.oom->instant.moment.allocated_bytes = 100 * k_mib;
  sample.diagnosis.oom->instant.by_category[0] = 100 * k_mib;
  const std::string text = sample.text();
  EXPECT_TRUE(has(text, "the trace contradicts itself")) << text;
  EXPECT_FALSE(has(text, "%")) << text;
  const json out = json::parse(mem_explain_json(sample.view()));
  EXPECT_EQ(out["contradicts_itself"], true);
  EXPECT_EQ(out["fragmentation"]["cached_bytes"], 0);
}

TEST(MemExplain, WarnsOfALimitThatCannotHaveBeen) {
  Sample sample;
  const auto warning = [&](uint64_t limit) {
    sample.diagnosis.limits->given = true;
    sample.diagnosis.limits->at_least = sample.diagnosis.limits->at_most = limit;
    return std::string(limit_warning(sample.diagnosis));
  };
  EXPECT_EQ(warning(63 * k_mib), "below_held");
  EXPECT_EQ(warning(70 * k_mib), "");
  EXPECT_EQ(warning(84 * k_mib), "above_refused");
}

TEST(MemExplain, SaysThatTheProgramWentOn) {
  Sample sample;
  sample.diagnosis.oom->caught = true;
  sample.diagnosis.oom->requests_later = 1200;
  EXPECT_TRUE(has(sample.text(), "it was caught, by a library"));
}

TEST(MemExplain, AnEvaluationIsNoStep) {
  Sample sample;
  sample.diagnosis.evaluates = true;
  sample.diagnosis.steps.finished = 4;
  sample.diagnosis.oom->instant.step = 4;
  EXPECT_EQ(step_before_evaluation(sample.diagnosis, sample.diagnosis.oom->instant), 3u);
  const json out = json::parse(mem_explain_json(sample.view()));
  EXPECT_EQ(out["oom"]["step"], nullptr);
  EXPECT_EQ(out["oom"]["after_step"], 3);
}

}  // namespace mem_explain_test
}  // namespace cufit::report
