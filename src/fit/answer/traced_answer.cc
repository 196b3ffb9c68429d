// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/traced_answer.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/number.h"
#include "base/version.h"
#include "fit/answer/batch_search.h"
#include "memory/replay/what_if.h"

namespace cufit::fit {
namespace {

constexpr size_t k_curve_points = 8;
constexpr ComputeCapability k_first_with_flash_attention{8, 0};

Result<Setup> traced_setup(const formats::TraceEvents& events, const std::string& settings,
                           const knowledge::Knowledge& knowledge) {
  Setup setup;
  setup.knowledge = &knowledge;
  const std::optional<Version> version = parse_version(std::string(events.fact("torch")));
  if (!version)
    return fail(Code::malformed, format("{}: it does not say which torch was traced", events.name));
  setup.version = memory::version_profile(version->part(0), version->part(1));
  setup.libraries.torch_major = version->part(0);
  setup.libraries.torch_minor = version->part(1);
  setup.libraries.cublas_workspace_config = std::string(events.fact("cublas_workspace_config"));
  setup.libraries.cudnn_benchmark = events.fact("cudnn_benchmark") == "1";
  CUFIT_TRY(parsed, memory::parse_allocator_settings(settings, setup.version));
  setup.settings = parsed;
  return setup;
}

bool has_flash_attention(const Card& card) {
  const std::optional<ComputeCapability> cc = parse_compute_capability(card.cc);
  return !cc || *cc >= k_first_with_flash_attention;
}

// Attention takes other kernels on cards without flash attention, and keeps other tensors.
void warn_of_other_kernels(const std::vector<Card>& cards, Card traced, const StepProgram& program,
                           std::vector<Warning>& warnings) {
  // Asked of kept traces, the question may be of other cards than these were made for.
  if (!program.fact("gpu").empty() && program.fact("capability") != traced.cc) {
    traced.name = std::string(program.fact("gpu"));
    traced.cc = std::string(program.fact("capability"));
  }
  for (const Card& card : cards) {
    if (has_flash_attention(card) == has_flash_attention(traced)) continue;
    warnings.push_back({"other_kernels", {{"card", traced.name}, {"other", card.name}}, ""});
    return;
  }
}

// At other batch sizes than that of the answer.
void warn_of_left_out(const StepProgram& program, const Prediction& prediction,
                      std::vector<Warning>& warnings) {
  const auto said = [&prediction](std::string_view id) {
    return std::find(prediction.warnings.begin(), prediction.warnings.end(), id) !=
           prediction.warnings.end();
  };
  if (program.after_steps_left_out && !said("after_steps_left_out"))
    warnings.push_back({"after_steps_elsewhere", {}, ""});
  if (program.setup_left_out && !said("setup_left_out"))
    warnings.push_back({"setup_elsewhere", {}, ""});
}

// Where the batch size is that of the DataLoader, it gives none that is larger than its samples.
void warn_of_few_samples(const Answer& answer, std::vector<Warning>& warnings) {
  const StepProgram& program = answer.traced();
  const uint64_t samples = parse_uint(program.fact("samples")).value_or(0);
  if (samples == 0 || answer.batch == 0 ||
      program.fact("samples_in_batches_of") != program.fact("batch"))
    return;
  uint64_t most = answer.batch;
  for (const CardAnswer& card : answer.cards) most = std::max(most, card.largest.batch);
  if (most <= samples) return;
  warnings.push_back({answer.batch > samples ? "few_samples" : "largest_beyond_samples",
                      {{"samples", std::to_string(samples)}, {"batch", std::to_string(answer.batch)}},
                      std::string(program.fact("batch_from"))});
}

}  // namespace

Result<TracedAnswer> TracedAnswer::begin(Traces traces, Question question,
                                         const knowledge::Knowledge& knowledge) {
  const formats::TraceEvents& first = traces.plain[0];
  take_outside(question.traced_card, nccl_bytes(first, question.traced_card, knowledge));
  for (Card& card : question.cards) take_outside(card, nccl_bytes(first, card, knowledge));
  TracedAnswer out(std::move(traces), std::move(question), knowledge);
  if (Result<void> done = out.predict_traced(); !done) return done.error();
  return out;
}

Result<void> TracedAnswer::predict_traced() {
  const formats::TraceEvents& first = traces_.plain[0];
  out_.card = question_.traced_card;
  out_.settings = memory::settings_from_option(
      question_.settings.value_or(std::string(first.fact("alloc_conf"))));
  CUFIT_TRY(setup, traced_setup(first, out_.settings, *knowledge_));
  setup_ = std::move(setup);
  CUFIT_TRY(programs,
            traced_programs(std::move(traces_.plain), traces_.own_batch, traces_.warnings));
  out_.programs = std::move(programs);
  batch_ =
      question_.batch.value_or(out_.programs.own_batch.value_or(out_.traced().batches.front()));
  const StepProgram& program = out_.programs.at(batch_);
  if (program.at(batch_) == nullptr) {
    out_.unanswered = question_.batch;
    batch_ = program.differences.empty() ? program.batches.front()
                                         : program.apart.front().batches.front();
  }
  out_.batch = out_.programs.batch_known ? batch_ : 0;
  out_.setup = setup_on(setup_, out_.card);
  measure_left_out(out_.programs.many, out_.setup);
  CUFIT_TRY(prediction, predict(out_.programs.at(batch_), batch_, out_.setup));
  out_.prediction = std::move(prediction);
  return {};
}

Result<void> TracedAnswer::calibrate(const MeasuredRun& run) {
  CUFIT_TRY(found, calibration(out_.programs.at(run.batch), out_.setup, run, traces_.warnings));
  calibration_ = found.value_or(Calibration());
  calibration_.apply(out_.prediction);
  return {};
}

Answer TracedAnswer::finish() && {
  std::vector<Warning>& warnings = traces_.warnings;
  warn_of_other_kernels(question_.cards, out_.card, out_.traced(), warnings);
  for (const std::string& id : out_.prediction.warnings)
    if (out_.programs.batch_known || id != "batch_one") warnings.push_back({id, {}, ""});
  warn_of_left_out(out_.traced(), out_.prediction, warnings);
  if (const uint64_t growth = out_.prediction.growth_per_step; growth != 0)
    warnings.push_back({"grows", {{"bytes", format_bytes(growth)}}, ""});
  // Cards that differ in name only are asked once: of `--gpu all` that is every second one.
  out_.cards = answer_once(
      question_.cards,
      [](const Card& a, const Card& b) { return a.cc == b.cc && a.total == b.total; },
      [this](CardAnswer& card) { answer_card(card); });
  warn_of_few_samples(out_, warnings);
  if (out_.traced().extrapolates())
    out_.curve = curve(out_.traced(), batches_of_curve(), out_.setup);
  for (CurvePoint& point : out_.curve) calibration_.apply(point);
  if (question_.plans) add_plans();
  out_.warnings = std::move(traces_.warnings);
  return std::move(out_);
}

std::optional<uint64_t> TracedAnswer::batch_worth_tracing() const {
  const StepProgram& program = out_.traced();
  if (program.extrapolates() || program.apart.size() < 2) return std::nullopt;
  if (question_.batch && !program.is_traced(*question_.batch)) return question_.batch;
  const auto card = std::find_if(question_.cards.begin(), question_.cards.end(),
                                 [](const Card& one) { return one.asked; });
  if (card == question_.cards.end() || card->usable == 0) return std::nullopt;
  Setup setup = setup_on(setup_, *card);
  setup.capacity = card->usable;
  std::vector<CurvePoint> points = largest_batch(program, setup).probes;
  // Below a bound the upper value is at most that, and no line goes through it.
  Setup unbounded = setup;
  unbounded.capacity = 0;
  for (CurvePoint& point : points)
    if (Result<Prediction> got = predict(program, point.batch, unbounded))
      point.peak_reserved_upper = got->peak_reserved_upper;
  return next_batch(points, card->usable);
}

std::optional<uint64_t> TracedAnswer::only_batch_of_plans() const {
  if (out_.batch == 0 || out_.traced().extrapolates()) return std::nullopt;
  return out_.batch;
}

void TracedAnswer::answer_card(CardAnswer& card) const {
  if (card.usable == 0) return;
  Setup setup = setup_on(setup_, card);
  setup.capacity = calibration_.capacity(card.usable);
  if (Result<Prediction> got = predict(out_.programs.at(batch_), batch_, setup)) {
    card.fits = got->fits();
    calibration_.apply(*got);
    card.prediction = std::move(*got);
  }
  card.largest = largest_batch(out_.traced(), setup);
  if (card.largest.batch == 0) return;
  const Result<Prediction> got = predict(out_.traced(), card.largest.batch, setup);
  const uint64_t capacity = std::exchange(setup.capacity, 0);
  judge_largest(card, got ? got->alloc_retries : 0, capacity,
                [&](uint64_t batch) -> std::optional<uint64_t> {
                  const Result<Prediction> at = predict(out_.traced(), batch, setup);
                  return at ? std::optional(at->peak_reserved_upper) : std::nullopt;
                });
}

// Around what was asked, and to where the first card that was asked for is full: beyond that its bar
// would run over the card.
std::vector<uint64_t> TracedAnswer::batches_of_curve() const {
  std::vector<uint64_t> batches = curve_batches(out_.traced(), batch_, k_curve_points);
  const CardAnswer* asked = first_asked(out_.cards);
  if (asked == nullptr || asked->largest.batch == 0) return batches;
  const uint64_t largest = asked->largest.batch;
  const uint64_t most = 2 * std::max({batch_, largest, out_.traced().batches.front()});
  if (asked->largest_whole != 0) batches.push_back(asked->largest_whole);
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  batches.erase(std::upper_bound(batches.begin(), batches.end(), most), batches.end());
  return batches;
}

void TracedAnswer::add_plans() {
  const PlansAsked asked{out_.batch, out_.traced().extrapolates(), setup_, out_.card,
                         question_.cards, question_.links};
  out_.plans = plans_answer(traces_, asked, *knowledge_);
}

}  // namespace cufit::fit
