// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/recorded_answer.h"

#include <algorithm>
#include <utility>

#include "fit/recorded_program.h"
#include "memory/replay/what_if.h"

namespace cufit::fit {
namespace {

constexpr uint64_t k_far_times = 4;         // the recorded batch size
constexpr uint64_t k_replay_per_mille = 5;  // by which a replay may miss the recording unsaid

void add_recording_warnings(const std::vector<RecordedRun>& runs, std::vector<Warning>& to) {
  const RecordedRun& last = runs.back();
  if (runs.size() == 1)
    to.push_back({"recorded_once", {{"batch", std::to_string(last.about.batch)}}, ""});
  else
    to.push_back({"recorded_twice", {}, ""});
  if (!last.trace.from_start) to.push_back({"recorded_late", {}, ""});
  if (last.trace.several_streams) to.push_back({"recorded_streams", {}, ""});
  if (last.trace.private_pools) to.push_back({"recorded_pools", {}, ""});
  if (last.trace.ran_short) to.push_back({"recorded_short", {}, ""});
  if (last.settings_unread) to.push_back({"recorded_settings", {}, ""});
  if (last.trace.empties_cache) to.push_back({"recorded_empty_cache", {}, ""});
}

// The replay of the recording beside the recording.
Result<void> replay_recording(RecordedPrograms& programs, const Setup& setup,
                              RecordedFigures& recorded, std::vector<Warning>& warnings) {
  const uint64_t was = recorded.recordings.back().peak_reserved;
  CUFIT_TRY(replayed, compare_with_recording(programs, was, setup));
  recorded.replayed_reserved = replayed;
  const uint64_t apart = was > replayed ? was - replayed : replayed - was;
  if (apart > was / 1000 * k_replay_per_mille)
    warnings.push_back({"recorded_replay",
                        {{"batch", std::to_string(programs.base)}},
                        "",
                        {{"replayed", replayed}, {"recorded", was}}});
  return {};
}

void answer_recorded_card(CardAnswer& card, const RecordedPrograms& programs, uint64_t batch,
                          const Setup& from) {
  if (card.usable == 0) return;
  Setup setup = setup_on(from, card);
  setup.capacity = card.usable;
  if (Result<Prediction> got = predict(programs, batch, setup)) {
    card.fits = got->fits();
    card.prediction = std::move(*got);
  }
  card.largest = largest_batch(programs, setup);
  if (card.largest.batch == 0) return;
  const Result<Prediction> got = predict(programs, card.largest.batch, setup);
  setup.capacity = 0;
  judge_largest(card, got ? got->alloc_retries : 0, card.usable,
                [&](uint64_t at) -> std::optional<uint64_t> {
                  const Result<Prediction> alone = predict(programs, at, setup);
                  return alone ? std::optional(alone->peak_reserved_upper) : std::nullopt;
                });
}

// What was recorded, halves and doubles of it, what was asked for, to where the first card is full.
std::vector<uint64_t> recorded_curve_batches(const RecordedPrograms& programs, uint64_t batch,
                                             const std::vector<CardAnswer>& cards) {
  std::vector<uint64_t> out = programs.batches;
  out.push_back(batch);
  for (const uint64_t times : {1, 2, 4}) {
    if (programs.base / times > 0) out.push_back(programs.base / times);
    out.push_back(programs.base * times);
  }
  const CardAnswer* asked = first_asked(cards);
  if (asked != nullptr && asked->largest_whole != 0 && !asked->largest.unbounded)
    out.push_back(asked->largest_whole);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Cards, curve and figures of programs that were held against their recording.
Result<void> answer_recorded(RecordedPrograms& programs, const Setup& setup, uint64_t batch,
                             const std::vector<Card>& cards, Answer& out) {
  CUFIT_TRY(prediction, predict(programs, batch, out.setup));
  CUFIT_TRY(lowest, lowest_reserved(programs, batch, out.setup));
  out.batch = batch;
  out.recorded->lowest_reserved = std::min(lowest, prediction.peak_reserved);
  out.recorded->storages = programs.storages;
  out.recorded->proved = programs.proved;
  out.prediction = std::move(prediction);
  if (batch > programs.base * k_far_times)
    out.warnings.push_back(
        {"recorded_far",
         {{"batch", std::to_string(batch)}, {"times", std::to_string(k_far_times)}},
         ""});
  // Cards of one size are asked once.
  out.cards = answer_once(
      cards,
      [](const Card& a, const Card& b) { return a.usable == b.usable && a.total == b.total; },
      [&](CardAnswer& card) { answer_recorded_card(card, programs, batch, setup); });
  out.curve = curve(programs, recorded_curve_batches(programs, batch, out.cards), out.setup);
  out.programs.many = std::move(programs.point);
  return {};
}

}  // namespace

Result<RecordedRun> recorded_run(const memory::Snapshot& snapshot, uint32_t device, uint64_t batch,
                                 const std::string& file) {
  Result<memory::VerifiedRecording> verified =
      memory::verify_recording(snapshot, device, std::nullopt);
  if (!verified) return std::move(verified.error()).in(file);
  Result<analysis::RecordedTrace> trace = analysis::recorded_trace(snapshot, *verified, batch);
  if (!trace) return std::move(trace.error()).in(file);
  RecordedRun out;
  out.trace = std::move(*trace);
  out.trace.events.name = file;
  out.about = {file, batch, out.trace.steps, verified->peak_allocated, verified->peak_reserved};
  out.version = verified->recording.version;
  out.settings = verified->settings;
  out.recorded_settings = verified->recording.settings;
  out.settings_unread = verified->settings_unread;
  return out;
}

Result<Answer> recorded_answer(std::vector<RecordedRun> runs, const Question& question,
                               const knowledge::Knowledge& knowledge) {
  std::sort(runs.begin(), runs.end(), [](const RecordedRun& a, const RecordedRun& b) {
    return a.about.batch < b.about.batch;
  });
  Answer out;
  out.recorded.emplace();
  std::vector<Recorded> recordings;
  for (const RecordedRun& run : runs) {
    recordings.push_back({&run.trace.events, run.trace.growth, run.trace.has_workspaces});
    out.recorded->recordings.push_back(run.about);
  }
  CUFIT_TRY(programs, recorded_programs(recordings));
  Setup setup;
  setup.knowledge = &knowledge;
  setup.version = runs.back().version;
  out.card = question.traced_card;
  out.settings = memory::settings_from_option(question.settings.value_or(runs.back().settings));
  CUFIT_TRY(settings, memory::parse_allocator_settings(out.settings, setup.version));
  add_recording_warnings(runs, out.warnings);
  setup.settings = runs.back().recorded_settings;
  if (Result<void> held =
          replay_recording(programs, setup_on(setup, out.card), *out.recorded, out.warnings);
      !held)
    return held.error();
  setup.settings = settings;
  out.setup = setup_on(setup, out.card);
  const uint64_t batch = question.batch.value_or(programs.base);
  if (Result<void> done = answer_recorded(programs, setup, batch, question.cards, out); !done)
    return done.error();
  return out;
}

}  // namespace cufit::fit
