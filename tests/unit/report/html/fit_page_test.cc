// SPDX-License-Identifier: Apache-2.0
// The page and the plot of `cufit fit`.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/format.h"
#include "report/fit.h"
#include "report/fit_curve.h"

namespace cufit::report {
namespace fit_page_test {

constexpr uint64_t k_gib = 1u << 30;

// An answer with every part, of made-up sizes.
struct SampleFit {
  fit::Answer answer;
  std::string program = "python <train>.py";
  fit::StepTimeline timeline;

  SampleFit() {
    answer.programs.many.batches = {8, 16};
    answer.batch = 8;
    answer.warnings = {{"assumed", {{"detail", "<b>&"}}, "train.py:3"}};
    fit::Prediction& prediction = answer.prediction;
    prediction.batch = 8;
    prediction.peak_allocated = 3 * k_gib;
    prediction.peak_reserved = 4 * k_gib;
    prediction.peak_reserved_upper = 5 * k_gib;
    prediction.breakdown.weights = k_gib;
    prediction.breakdown.activations = 2 * k_gib;
    prediction.activations_by_module = {{"layer<1>", k_gib}, {"layer2", k_gib / 2}};
    for (const uint64_t batch : {8, 16, 32}) {
      const uint64_t reserved = batch * k_gib / 2;
      answer.curve.push_back({batch, reserved, reserved, reserved + k_gib, true});
    }
    for (const uint64_t usable : {10, 4}) {
      fit::CardAnswer gpu;
      gpu.name = format("{} GiB", usable);
      gpu.asked = gpu.measured = true;
      gpu.usable = usable * k_gib;
      gpu.fits = usable == 10;
      gpu.largest.batch = usable;
      answer.cards.push_back(gpu);
    }
    fit::CardAnswer other = answer.cards[0];
    other.name = "Card of the table";
    other.asked = false;
    answer.cards.push_back(other);
    timeline.events = 40;
    timeline.points = {{k_gib, k_gib}, {3 * k_gib, 4 * k_gib}, {2 * k_gib, 4 * k_gib}};
    timeline.peak = 1;
    timeline.ranges = {{0, 1, 0, fit::TracePhase::setup},
                       {1, 2, 1, fit::TracePhase::forward},
                       {2, 3, 1, fit::TracePhase::backward}};
  }

  FitView view() const { return {program, answer, knowledge::Knowledge::builtin()}; }
  std::string page(const std::string& lang) const { return fit_html(view(), timeline, lang); }
};

TEST(FitPage, StandsAlone) {
  const std::string html = lower(SampleFit().page("en"));
  for (const char* forbidden :
       {"<script", "<link", "<img", "<iframe", " src=", " href=", "url(", "@import", "@font-face",
        " onload", "javascript:", "<b>&", "<train>"})
    EXPECT_EQ(html.find(forbidden), std::string::npos) << forbidden;
  for (const char* needed : {"<!doctype html>", "content-security-policy", "viewport",
                             "prefers-color-scheme:dark", "@media print", "&lt;train&gt;"})
    EXPECT_NE(html.find(needed), std::string::npos) << needed;
}

TEST(FitPage, SaysWhatTheTextSays) {
  const std::string html = SampleFit().page("en");
  for (const char* part :
       {"Fits on 1 of 2 cards", "peak reserved 4.00 GiB, at most 5.00 GiB", "10 GiB: 10.00 GiB",
        "layer&lt;1&gt;", "Card of the table", "weights", "does not fit", "assumed: &lt;b&gt;&amp;",
        "peak 3.00 GiB", "batch 16: 8.00 GiB reserved, at most 9.00 GiB"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
}

TEST(FitPage, NamesItsLanguage) {
  const std::string html = SampleFit().page("zh");
  EXPECT_NE(html.find("<html lang=\"zh-CN\">"), std::string::npos);
  EXPECT_NE(html.find("2 种显卡中有 1 种放得下"), std::string::npos);
}

TEST(FitPage, LeavesOutWhatThereIsNot) {
  SampleFit sample;
  sample.answer.curve.clear();
  sample.answer.cards.clear();
  sample.answer.warnings.clear();
  const std::string html = sample.page("en");
  EXPECT_NE(html.find("Needs 5.00 GiB"), std::string::npos);
  for (const char* part : {"Memory against batch size", "The cards asked for", "rests on"})
    EXPECT_EQ(html.find(part), std::string::npos) << part;
}

std::string plot(const SampleFit& sample, int width) {
  Style style;
  style.lang = "en";
  style.width = width;
  return fit_curve(sample.view(), style);
}

TEST(FitCurve, DrawsPointsUpperValuesAndTheCard) {
  const std::string text = plot(SampleFit(), 100);
  EXPECT_NE(text.find("(o reserved, + at most, * both, - what 10 GiB leaves)"), std::string::npos);
  std::string drawn;  // what stands right of the axis
  for (std::string_view line : split(text, '\n')) {
    const size_t axis = line.find('|');
    if (axis != std::string_view::npos) drawn += line.substr(axis);
  }
  const auto count = [&](char mark) { return std::count(drawn.begin(), drawn.end(), mark); };
  EXPECT_EQ(count('o') + count('*'), 3) << text;
  EXPECT_EQ(count('+') + count('*'), 3) << text;
  EXPECT_GT(count('-'), 20) << text;
  for (const char* label : {"15 GiB |", "10 GiB |", "5 GiB |", "0 |"})
    EXPECT_NE(text.find(label), std::string::npos) << label << "\n" << text;
}

TEST(FitCurve, ANarrowTerminalGetsBars) {
  const std::string text = plot(SampleFit(), 60);
  EXPECT_NE(text.find("(# reserved, +"), std::string::npos);
  EXPECT_NE(text.find("####"), std::string::npos);
  SampleFit empty;
  empty.answer.curve.resize(1);
  EXPECT_EQ(plot(empty, 100), "");
}

}  // namespace fit_page_test
}  // namespace cufit::report
