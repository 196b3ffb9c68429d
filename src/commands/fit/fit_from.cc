// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_from.h"

#include <algorithm>

#include "memory/analysis/recorded_trace.h"
#include "base/format.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/shell_word.h"
#include "commands/fit/fit_calibration.h"
#include "commands/fit/fit_gpus.h"
#include "commands/fit/fit_page.h"
#include "commands/mem/mem_snapshot.h"
#include "commands/settings.h"
#include "fit/recorded_program.h"
#include "report/terminal/mem_words.h"

namespace cufit::commands {
namespace {

using report::FitGpu;
using report::FitWarning;

constexpr size_t k_most_recordings = 2;
constexpr uint64_t k_far = 4;               // times the recorded batch size
constexpr uint64_t k_replay_per_mille = 5;  // by which a replay may miss the recording unsaid

struct Opened {
  report::FitRecording about;
  analysis::RecordedTrace trace;
  memory::VersionProfile version;
  std::string settings;
  memory::Settings recorded_settings;
  bool settings_unread = false;
};

Result<Opened> open_recording(const std::string& path, uint64_t batch, const Arguments& arguments) {
  CUFIT_TRY(torch, chosen_torch(std::nullopt, knowledge::Knowledge::builtin()));
  CUFIT_TRY(snapshot, load_snapshot(legacy_context(), path));
  CUFIT_TRY(device, chosen_device(std::nullopt, snapshot));
  Result<memory::VerifiedRecording> verified = memory::verify_recording(snapshot, device, torch);
  if (!verified) return std::move(verified.error()).in(path);
  Opened out;
  Result<analysis::RecordedTrace> trace = analysis::recorded_trace(snapshot, *verified, batch);
  if (!trace) return std::move(trace.error()).in(path);
  out.trace = std::move(*trace);
  out.trace.events.name = path;
  out.about = {path, batch, out.trace.steps, verified->peak_allocated, verified->peak_reserved};
  out.version = verified->recording.version;
  out.settings = verified->settings;
  out.recorded_settings = verified->recording.settings;
  out.settings_unread = verified->settings_unread;
  return out;
}

Result<std::vector<Opened>> open_all(const Arguments& arguments) {
  const std::vector<std::string> files = arguments.all("from"), sizes = arguments.all("batch-was");
  if (files.size() != sizes.size() || files.size() > k_most_recordings)
    return fail(Code::usage,
                "`--from SNAPSHOT` goes with `--batch-was N`, the batch size at which it was "
                "recorded; both once, or twice");
  for (const char* option : {"batch-arg", "steps", "keep"})
    if (arguments.has(option))
      return fail(Code::usage,
                  format("`--from` alone starts no program: `--{}` does not go with it", option));
  std::vector<Opened> out;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::optional<uint64_t> batch = parse_uint(sizes[i]);
    if (!batch || *batch == 0 || *batch > 1u << 20)
      return fail(Code::usage,
                  format("`--batch-was {}`: a number from 1 to {}", sizes[i], 1u << 20));
    CUFIT_TRY(opened, open_recording(files[i], *batch, arguments));
    out.push_back(std::move(opened));
  }
  std::sort(out.begin(), out.end(),
            [](const Opened& a, const Opened& b) { return a.about.batch < b.about.batch; });
  return out;
}

void add_warnings(const std::vector<Opened>& opened, std::vector<FitWarning>& to) {
  const std::string batch = std::to_string(opened.back().about.batch);
  if (opened.size() == 1)
    to.push_back({"recorded_once", {{"batch", batch}}, ""});
  else
    to.push_back({"recorded_twice", {}, ""});
  const analysis::RecordedTrace& trace = opened.back().trace;
  if (!trace.from_start) to.push_back({"recorded_late", {}, ""});
  if (trace.several_streams) to.push_back({"recorded_streams", {}, ""});
  if (trace.private_pools) to.push_back({"recorded_pools", {}, ""});
  if (trace.ran_short) to.push_back({"recorded_short", {}, ""});
  if (opened.back().settings_unread) to.push_back({"recorded_settings", {}, ""});
  if (trace.empties_cache) to.push_back({"recorded_empty_cache", {}, ""});
}

// The replay of the recording beside the recording.
Result<void> compare_with_recording(fit::RecordedPrograms& programs, const fit::Setup& setup,
                                    report::FitRecorded& recorded,
                                    std::vector<FitWarning>& warnings) {
  const uint64_t was = recorded.recordings.back().peak_reserved;
  CUFIT_TRY(replayed, fit::compare_with_recording(programs, was, setup));
  recorded.replayed_reserved = replayed;
  const uint64_t apart = was > replayed ? was - replayed : replayed - was;
  if (apart > was / 1000 * k_replay_per_mille)
    warnings.push_back({"recorded_replay",
                        {{"batch", std::to_string(programs.base)},
                         {"replayed", report::gib(replayed)},
                         {"recorded", report::gib(was)}},
                        ""});
  return {};
}

void answer_card(FitGpu& card, const fit::RecordedPrograms& programs, uint64_t batch,
                 const fit::Setup& from) {
  fit::Setup setup = on_card(from, card);
  if (card.usable == 0) return;
  setup.capacity = card.usable;
  if (Result<fit::Prediction> got = fit::predict(programs, batch, setup)) {
    card.fits = got->fits();
    card.prediction = std::move(*got);
  }
  card.largest = fit::largest_batch(programs, setup);
  if (card.largest.batch == 0) return;
  if (Result<fit::Prediction> got = fit::predict(programs, card.largest.batch, setup))
    card.largest_retries = got->alloc_retries;
}

// Cards of one size are asked once.
void answer_cards(std::vector<FitGpu>& gpus, const fit::RecordedPrograms& programs, uint64_t batch,
                  const fit::Setup& setup) {
  answer_once(
      gpus,
      [](const FitGpu& a, const FitGpu& b) { return a.usable == b.usable && a.total == b.total; },
      [&](FitGpu& card) { answer_card(card, programs, batch, setup); });
}

// What was recorded, halves and doubles of it, what was asked for, to where the first card is full.
std::vector<uint64_t> batches_of_curve(const fit::RecordedPrograms& programs, uint64_t batch,
                                       const std::vector<FitGpu>& gpus) {
  std::vector<uint64_t> out = programs.batches;
  out.push_back(batch);
  for (const uint64_t times : {1, 2, 4}) {
    if (programs.base / times > 0) out.push_back(programs.base / times);
    out.push_back(programs.base * times);
  }
  const auto asked =
      std::find_if(gpus.begin(), gpus.end(), [](const FitGpu& gpu) { return gpu.asked; });
  if (asked != gpus.end() && asked->largest.batch != 0 && asked->largest_retries == 0 &&
      !asked->largest.unbounded)
    out.push_back(asked->largest.batch);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

bool from_recordings(const Arguments& arguments) {
  return (arguments.has("from") || arguments.has("batch-was")) && !calibrates(arguments);
}

int run_fit_from(const Arguments& arguments, std::vector<FitGpu> gpus, const FitGpu& card,
                 std::optional<uint64_t> asked) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  Result<std::vector<Opened>> opened = open_all(arguments);
  if (!opened) return exit_code_for(opened.error());
  if (opened->empty()) return exit_code_for(fail(Code::usage, "`--batch-was` goes with `--from`"));
  std::vector<fit::Recorded> recordings;
  report::FitRecorded recorded;
  std::vector<std::string> names;
  for (const Opened& one : *opened) {
    recordings.push_back({&one.trace.events, one.trace.growth, one.trace.has_workspaces});
    recorded.recordings.push_back(one.about);
    names.push_back(shell_word(one.about.file));
  }
  Result<fit::RecordedPrograms> programs = fit::recorded_programs(recordings);
  if (!programs) return exit_code_for(programs.error());
  fit::Setup setup;
  setup.version = opened->back().version;
  const std::string settings = memory::settings_from_option(
      arguments.has("set") ? arguments.get("set") : opened->back().settings);
  Result<memory::Settings> parsed = memory::parse_allocator_settings(settings, setup.version);
  if (!parsed) return exit_code_for(parsed.error());
  std::vector<FitWarning> warnings;
  add_warnings(*opened, warnings);
  setup.settings = opened->back().recorded_settings;
  if (const Result<void> held =
          compare_with_recording(*programs, on_card(setup, card), recorded, warnings);
      !held)
    return exit_code_for(held.error());
  setup.settings = std::move(*parsed);

  const uint64_t batch = asked.value_or(programs->base);
  const fit::Setup unbounded = on_card(setup, card);
  const Result<fit::Prediction> prediction = fit::predict(*programs, batch, unbounded);
  if (!prediction) return exit_code_for(prediction.error());
  const Result<uint64_t> lowest = fit::lowest_reserved(*programs, batch, unbounded);
  if (!lowest) return exit_code_for(lowest.error());
  recorded.lowest_reserved = std::min(*lowest, prediction->peak_reserved);
  recorded.storages = programs->storages;
  recorded.proved = programs->proved;
  if (batch > programs->base * k_far)
    warnings.push_back(
        {"recorded_far", {{"batch", std::to_string(batch)}, {"times", std::to_string(k_far)}}, ""});
  answer_cards(gpus, *programs, batch, setup);
  const std::vector<fit::CurvePoint> curve =
      fit::curve(*programs, batches_of_curve(*programs, batch, gpus), unbounded);
  const std::string program = join(names, " ");
  const report::FitView view{program,   programs->point, batch, std::nullopt, *prediction,
                             card,      settings,        gpus,  curve,        warnings,
                             knowledge, &recorded};
  const Result<void> page = write_fit_page(arguments, view, programs->point, unbounded);
  if (!page) return exit_code_for(page.error());
  const bool fits = std::all_of(gpus.begin(), gpus.end(),
                                [](const FitGpu& gpu) { return !gpu.asked || gpu.fits; });
  return print(
      arguments.has("json") ? report::fit_json(view) : report::fit_text(view, style_for(arguments)),
      fits ? k_ok : k_findings);
}

}  // namespace cufit::commands
