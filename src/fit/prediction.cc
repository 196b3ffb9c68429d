// SPDX-License-Identifier: Apache-2.0
#include "fit/prediction.h"

#include <algorithm>
#include <unordered_map>

#include "base/format.h"
#include "base/number.h"
#include "fit/replayed_steps.h"
#include "fit/step_growth.h"

namespace cufit::fit {
namespace {

using memory::SyntheticMemory;

Moment moment_at(const StepProgram& program, size_t event) {
  Moment out;
  for (size_t i = 0; i <= event && i < program.events.size(); ++i) {
    const StepEvent& at = program.events[i];
    if (at.kind == StepEventKind::mark && at.index == static_cast<uint32_t>(TraceMark::step_begins))
      ++out.step;
  }
  if (event >= program.events.size()) return out;
  const StepEvent& at = program.events[event];
  if (at.kind != StepEventKind::alloc && at.kind != StepEventKind::call) return out;
  const Site& site = program.sites[at.site];
  out.phase = site.phase;
  out.op = program.text(site.op);
  out.module = program.text(site.module);
  out.source = program.text(site.source);
  return out;
}

uint64_t& place_of(const StepProgram& program, const Storage& storage, Breakdown& to) {
  switch (storage.category) {
    case StorageCategory::parameter:
      return to.weights;
    case StorageCategory::buffer:
      return to.buffers;
    case StorageCategory::gradient:
      return to.gradients;
    case StorageCategory::optimizer_state:
      return to.optimizer_state;
    case StorageCategory::input:
      return to.inputs;
    case StorageCategory::gathered:
      return to.gathered;
    case StorageCategory::communication:
      return to.communication;
    case StorageCategory::unknown:
      break;
  }
  const TracePhase made = program.sites[program.events[storage.alloc].site].phase;
  if (made == TracePhase::setup) return to.other;
  return made == TracePhase::forward && storage.crosses_backward ? to.activations : to.temporaries;
}

void fill_breakdown(const StepProgram& program, const std::vector<SizeAt>& sizes,
                    const ReplayedSteps& run, bool traced, Prediction& out) {
  std::unordered_map<std::string_view, uint64_t> by_module;
  for (size_t i = 0; i < program.storages.size(); ++i) {
    const Storage& storage = program.storages[i];
    if (storage.alloc > run.peak_event || storage.free <= run.peak_event) continue;
    const uint64_t bytes = run.block_bytes[i];
    uint64_t& place = place_of(program, storage, out.breakdown);
    place += bytes;
    const StepEvent& event = program.events[storage.alloc];
    if (&place == &out.breakdown.activations)
      by_module[program.text(program.sites[event.site].module)] += bytes;
    const SizeRule rule = program.sizes[event.size].rule;
    if (!traced && (rule == SizeRule::rounded || rule == SizeRule::unclear))
      out.unproved_bytes += sizes[event.size].upper;
  }
  out.breakdown.workspaces = run.peak_workspaces;
  out.breakdown.temporaries += run.peak_by_program;
  out.breakdown.fragmentation = run.peak_event_reserved - run.peak_allocated;
  for (const auto& [module, bytes] : by_module)
    out.activations_by_module.push_back({std::string(module), bytes});
  std::sort(out.activations_by_module.begin(), out.activations_by_module.end(),
            [](const ModuleBytes& a, const ModuleBytes& b) {
              return a.bytes != b.bytes ? a.bytes > b.bytes : a.module < b.module;
            });
}

bool calls(const StepProgram& program, std::string_view op) {
  return std::any_of(program.calls.begin(), program.calls.end(),
                     [&program, op](const StepCall& called) {
                       return starts_with(program.text(program.sites[called.site].op), op);
                     });
}

std::vector<std::string> warnings_of(const StepProgram& program, uint64_t batch, bool traced,
                                     const LibrarySetup& libraries) {
  std::vector<std::string> out;
  if (program.after_steps_left_out) out.emplace_back("after_steps_left_out");
  if (program.setup_left_out) out.emplace_back("setup_left_out");
  if (libraries.cudnn_benchmark && calls(program, "conv")) out.emplace_back("cudnn_benchmark");
  if (traced) return out;
  if (batch == 1) out.emplace_back("batch_one");
  const auto has = [&program](SizeRule rule) {
    return std::any_of(program.events.begin(), program.events.end(), [&](const StepEvent& event) {
      return event.kind == StepEventKind::alloc && program.sizes[event.size].rule == rule;
    });
  };
  if (has(SizeRule::rounded)) out.emplace_back("sizes_rounded");
  if (has(SizeRule::unclear)) out.emplace_back("sizes_unclear");
  return out;
}

std::optional<PredictedOom> oom_of(const StepProgram& program, const ReplayedSteps& run) {
  if (!run.oom) return std::nullopt;
  return PredictedOom{moment_at(program, run.oom->event), *run.oom};
}

uint64_t unseen_requests(const knowledge::Knowledge& knowledge, std::string_view of,
                         uint64_t point) {
  for (const knowledge::UnseenRequestsRow& row : knowledge.unseen_requests)
    if (row.of == of)
      return point / 1000 * static_cast<uint64_t>(row.per_mille) + static_cast<uint64_t>(row.bytes);
  return 0;
}

uint64_t unseen_reserved(const StepProgram& program, const knowledge::Knowledge& knowledge,
                         uint64_t point) {
  uint64_t out = unseen_requests(knowledge, "reserved", point);
  const auto also = [&](bool holds, std::string_view of) {
    if (holds) out = std::max(out, unseen_requests(knowledge, of, point));
  };
  // Which block cuDNN asks for is known least.
  also(calls(program, "conv") || calls(program, "rnn"), "reserved_with_cudnn");
  also(calls(program, k_waits_for_event), "reserved_with_recorded_streams");
  also(program.fact("compiled") == "1", "reserved_compiled");
  also(program.fact("graphs_left_out") == "1", "reserved_with_graphs_left_out");
  also(std::any_of(program.notes.begin(), program.notes.end(),
                   [&](const Note& note) { return program.text(note.kind) == "sizes_vary"; }),
       "reserved_of_varying_sizes");
  return out;
}

// Under DistributedDataParallel NCCL holds what it was given for a while, at most 100 ms after it is
// done, and longer where the program does not wait for the GPU. A copy of all buckets may live that
// much longer than traced. Measured on two H100 and two H200 (torch 2.11, NCCL 2.28.9).
uint64_t of_another_rank(const StepProgram& program) {
  constexpr uint64_t k_most = uint64_t{1} << 42;
  return std::min(parse_uint(program.fact("ddp_buckets")).value_or(0), k_most);
}

// Of what was left out, at another batch size: between those of the traces on a line, below them as
// of the smallest, beyond them on the line through the last two, or in measure where it is one.
uint64_t more_reserved(const LeftOut& left_out, uint64_t batch) {
  const std::vector<LeftOut::More>& known = left_out.more_reserved;
  if (known.empty()) return 0;
  if (batch <= known.front().batch) return known.front().bytes;
  size_t next = 1;
  while (next + 1 < known.size() && known[next].batch < batch) ++next;
  const LeftOut::More low = known.size() > 1 ? known[next - 1] : LeftOut::More();
  const LeftOut::More high = known.size() > 1 ? known[next] : known.front();
  const double slope = std::max(0.0, double(high.bytes) - double(low.bytes)) /
                       double(high.batch - low.batch);
  const double bytes = double(low.bytes) + slope * double(batch - low.batch);
  return static_cast<uint64_t>(
      std::max(std::min(bytes, 0x1p45), batch > high.batch ? double(high.bytes) : 0.0));
}

// The upper values: what nobody sees comes off the capacity, so that what fits has room for it.
void fill_upper(const Requests& requests, const Setup& setup, const knowledge::Knowledge& knowledge,
                Prediction& out) {
  const uint64_t elsewhere = of_another_rank(requests.program);
  const uint64_t unseen = unseen_reserved(requests.program, knowledge, out.peak_reserved) +
                          elsewhere + more_reserved(requests.program.left_out, out.batch);
  Setup less = setup;
  if (setup.capacity != 0) less.capacity = setup.capacity > unseen ? setup.capacity - unseen : 1;
  // Larger workspaces can mean less reserved memory: what they leave serves other requests.
  uint64_t allocated = out.peak_allocated, reserved = out.peak_reserved;
  for (const SyntheticMemory::Order order :
       {SyntheticMemory::Order::driver, SyntheticMemory::Order::descending,
        SyntheticMemory::Order::ascending}) {
    const ReplayedSteps run = replay_steps(requests, less, Estimate::upper, order);
    allocated = std::max(allocated, run.peak_allocated);
    reserved = std::max(reserved, run.peak_reserved);
    if (run.oom && !out.upper_oom) out.upper_oom = oom_of(requests.program, run);
  }
  out.peak_allocated_upper =
      allocated + unseen_requests(knowledge, "allocated", out.peak_allocated) + elsewhere;
  out.peak_reserved_upper = std::max(reserved + unseen, out.peak_allocated_upper);
  if (setup.capacity != 0)
    out.peak_reserved_upper = std::min(out.peak_reserved_upper, setup.capacity);
}

Result<Prediction> predict_alone(const StepProgram& program, uint64_t batch, const Setup& setup) {
  if (program.steps == 0)
    return fail(Code::unsupported, "the traced program ended before a training step was over");
  const knowledge::Knowledge& knowledge =
      setup.knowledge != nullptr ? *setup.knowledge : knowledge::Knowledge::builtin();
  CUFIT_TRY(sizes, sizes_at(program, batch));
  const std::vector<Workspace> workspaces =
      workspaces_at(program, sizes, setup.libraries, knowledge);

  Prediction out;
  out.batch = batch;
  out.traced = program.is_traced(batch);
  out.outside_allocator = setup.outside_allocator;
  const Requests requests{program, sizes, workspaces};
  const ReplayedSteps point = replay_steps(requests, setup, Estimate::point, {});
  out.peak_allocated = point.peak_allocated;
  out.peak_reserved = point.peak_reserved;
  out.alloc_retries = point.retries;
  out.oom = oom_of(program, point);
  out.peak = moment_at(program, point.peak_event);
  fill_breakdown(program, sizes, point, out.traced, out);
  out.warnings = warnings_of(program, batch, out.traced, setup.libraries);
  out.growth_per_step = growth_per_step(program, sizes);
  fill_upper(requests, setup, knowledge, out);
  return out;
}

}  // namespace

Result<Prediction> predict(const StepProgram& whole, uint64_t batch, const Setup& setup) {
  const StepProgram* found = whole.at(batch);
  if (found == nullptr)
    return fail(Code::unsupported, "the traces do not answer for this batch size");
  CUFIT_TRY(out, predict_alone(*found, batch, setup));
  if (whole.whole.empty()) return out;
  const LeftOut& left_out = whole.left_out;
  if (left_out.deciding == SIZE_MAX || out.peak_allocated >= left_out.allocated) return out;
  const StepProgram& deciding = whole.whole[left_out.deciding];
  CUFIT_TRY(least, predict_alone(deciding, deciding.batches.front(), setup));
  least.batch = batch;
  least.traced = out.traced;
  least.warnings = std::move(out.warnings);
  least.peak_reserved = std::max(least.peak_reserved, out.peak_reserved);
  least.peak_reserved_upper = std::max(least.peak_reserved_upper, out.peak_reserved_upper);
  if (!least.oom) least.oom = std::move(out.oom);
  if (!least.upper_oom) least.upper_oom = std::move(out.upper_oom);
  return least;
}

namespace {

// Whether `peak`, of a whole trace, is in what `rest` lacks. Elsewhere it may be a little higher, as
// the blocks of what was left out serve the steps.
bool is_left_out(const StepProgram& rest, const Moment& peak) {
  if (peak.step == 0) return rest.setup_left_out;
  const bool behind = peak.step > rest.steps || peak.phase == TracePhase::validation ||
                      peak.phase == TracePhase::other;
  return rest.after_steps_left_out && behind && peak.step >= rest.steps;
}

}  // namespace

void measure_left_out(StepProgram& program, const Setup& setup) {
  LeftOut out;
  for (size_t i = 0; i < program.whole.size(); ++i) {
    const uint64_t batch = program.whole[i].batches.front();
    const Result<Prediction> all = predict_alone(program.whole[i], batch, setup);
    const Result<Prediction> rest = predict_alone(program, batch, setup);
    if (!all || !rest) continue;
    if (all->peak_allocated > rest->peak_allocated && is_left_out(program, all->peak)) {
      if (all->peak_allocated <= out.allocated) continue;
      out.deciding = i;
      out.allocated = all->peak_allocated;
    } else {
      const uint64_t all_bytes = all->peak_reserved_upper, rest_bytes = rest->peak_reserved_upper;
      out.more_reserved.push_back({batch, all_bytes > rest_bytes ? all_bytes - rest_bytes : 0});
    }
  }
  program.left_out = out;
}

}  // namespace cufit::fit
