// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit fit` and its two views, and what is said where there is none.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fit/plans.h"
#include "fit/search.h"
#include "fit/step_timeline.h"
#include "report/report.h"

namespace cufit::report {

// Text: "fit.warning.<id>" with the arguments, and the line of the program that it is about.
struct FitWarning {
  std::string id;
  std::map<std::string, std::string> args;
  std::string source;  // "train.py:57"; empty: none
  bool operator==(const FitWarning&) const = default;
};

struct FitGpu {
  std::string name;       // of the table, or "24 GiB"
  std::string cc;         // "8.6"; empty where only a size was named
  bool asked = false;     // by its name or size, not by `all`
  bool measured = false;  // its capacity is known from reports
  uint64_t total = 0;
  uint64_t outside_allocator = 0;             // context and libraries on this card
  uint64_t usable = 0;                        // total less outside
  bool fits = false;                          // by the upper value, at the batch size asked for
  std::optional<fit::Prediction> prediction;  // with the card's bounds
  fit::LargestBatch largest;
  // Retries of the largest batch: above 0 it fits only by giving cached memory back.
  uint64_t largest_retries = 0;
};

// Where the answer comes from real recordings instead of traces.
struct FitRecording {
  std::string file;
  uint64_t batch = 0;
  uint32_t steps = 0;                              // that ended
  uint64_t peak_allocated = 0, peak_reserved = 0;  // recorded
};
struct FitRecorded {
  std::vector<FitRecording> recordings;  // by batch
  uint64_t lowest_reserved = 0;          // at the batch size of the view
  uint64_t replayed_reserved = 0;        // at the last recording's: what the replay of it gives
  size_t storages = 0, proved = 0;       // whose size at other batch sizes is proved
};

struct FitPlans {
  std::vector<fit::PlanProgram> programs;  // the first as it is
  fit::Plans plans;                        // of these; none: warnings say why
  std::vector<std::string> cards;          // that were asked for, by fit::PlanOnCard::card
  std::vector<uint64_t> usable;            // of each
  std::string speed_card;                  // whose figures the times are reckoned with
  bool speed_known = false;                // it is the card that was asked for
};

struct FitView {
  const std::string& program;  // as it was typed, or the event files
  const fit::StepProgram& traced;
  uint64_t batch = 0;                 // 0: not known
  std::optional<uint64_t> found;      // the program's own
  const fit::Prediction& prediction;  // without a bound, on `card`
  const FitGpu& card;
  const std::string& settings;  // in PyTorch's form; empty: default
  const std::vector<FitGpu>& gpus;
  const std::vector<fit::CurvePoint>& curve;
  const std::vector<FitWarning>& warnings;
  const knowledge::Knowledge& knowledge;
  const FitRecorded* recorded = nullptr;
  const FitPlans* plans = nullptr;  // null: not asked for
};

// Why a program could not be traced. Texts: "fit.stop.<kind>", "fit.next.<next>".
struct FitFailure {
  // "no_torch", "no_step", "failed", "cut_off", "no_storage", "timed_out"
  std::string kind;
  std::string next;    // what to do instead
  std::string detail;  // what the program said last: an exception, or its last line
  std::string source;  // where; empty: not known
  std::string program;
  int exit_code = 0;
  std::optional<uint64_t> batch;  // that was being traced
  // Learned until then.
  std::string torch;              // its version; empty: it was not imported
  std::optional<uint64_t> found;  // the program's own batch size
  uint64_t storages = 0, peak_allocated = 0, steps = 0;
  std::vector<FitWarning> warnings;
};

std::string fit_text(const FitView& view, const Style& style);
std::string fit_json(const FitView& view);  // schema cufit.fit/1
// One page without a script.
std::string fit_html(const FitView& view, const fit::StepTimeline& timeline,
                     const std::string& lang);
std::string fit_failure_text(const FitFailure& failure, const knowledge::Knowledge& knowledge,
                             const Style& style);
// Schema cufit.fit/1 with the one member `error`.
std::string fit_failure_json(const FitFailure& failure, const knowledge::Knowledge& knowledge);

// A warning's sentence with its source.
std::string fit_warning_text(const FitWarning& warning, const knowledge::Knowledge& knowledge,
                             const std::string& lang);

}  // namespace cufit::report
