// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/recorded_trace.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "memory/analysis/categories.h"
#include "memory/analysis/stack_roles.h"
#include "memory/analysis/steps.h"
#include "base/format.h"

namespace cufit::analysis {
namespace {

using formats::BatchGrowth;
using formats::StorageCategory;
using formats::TraceEvents;
using formats::TraceMark;
using formats::TracePhase;
using memory::Snapshot;

// So many tensors of a weight's size are made in a step for each weight of that size, in its own
// precision or half of it: a cast copy, a gradient that is added to another.
constexpr uint64_t k_copies_of_a_weight = 3;
// As of formats::TraceLimits: no sum overflows.
constexpr uint64_t k_most_live = uint64_t{1} << 56;

// Also where torch's own folder lies below one that is called torch.
bool of_torch(std::string_view file) {
  return contains(file, "-packages/torch/") || contains(file, "/torch/nn/") ||
         contains(file, "/torch/utils/") || contains(file, "/torch/optim/") ||
         starts_with(file, "<");
}

struct Moved {
  uint32_t position = 0;  // event of the recording, one more; 0: before it
  bool is_free = false;
  uint32_t row = 0;
};

class Converter {
 public:
  Converter(const Snapshot& snapshot, const memory::VerifiedRecording& verified, uint64_t batch)
      : snapshot_(snapshot),
        verified_(verified),
        batch_(batch),
        lifetimes_(lifetimes_of(snapshot, verified)),
        steps_(steps_of(snapshot, verified.device, lifetimes_)),
        roles_(snapshot) {}

  Result<RecordedTrace> run() {
    if (!steps_.known() || steps_.begins.empty())
      return fail(Code::unsupported,
                  "no training steps can be told in it; record with `cufit mem record`, which "
                  "keeps Python stacks");
    if (steps_.finished == 0)
      return fail(Code::unsupported,
                  "no training step ended in it, so the peak of a whole step is not known");
    const bool open = steps_.begins.size() > steps_.finished;
    const uint32_t last = open ? steps_.begins[steps_.finished] : lifetimes_.events;
    for (const memory::Op& op : verified_.program->ops) {
      if (op.kind != memory::OpKind::failed) continue;
      if (op.event >= last)
        return fail(Code::unsupported,
                    format("it ran out of memory in step {}, and what that step would have taken "
                           "is not known; record a batch size at which steps end",
                           steps_.first + steps_.finished + 1));
      out_.ran_short = true;
    }
    cut_ = lifetimes_.events;
    categories_ = categories_of(snapshot_, verified_.device, lifetimes_, steps_);
    out_.steps = steps_.finished;
    out_.from_start = lifetimes_.initial == 0;
    out_.has_stacks = roles_.any();
    out_.has_workspaces = verified_.program->has_workspaces;
    out_.several_streams = verified_.program->streams.size() > 1;
    for (const memory::Op& op : verified_.program->ops)
      if (op.kind == memory::OpKind::empty_cache && !op.doubtful && op.event < cut_)
        out_.empties_cache = true;
    count_weights();
    find_phases();
    if (Result<void> written = write(); !written) return written.error();
    return std::move(out_);
  }

 private:
  const Lifetime& row(size_t i) const { return lifetimes_.rows[i]; }
  bool is_initial(size_t i) const { return row(i).alloc_event == k_before; }
  bool in_optimizer(uint32_t event) const {
    return std::any_of(steps_.marks.begin(), steps_.marks.end(), [event](const StepMark& mark) {
      return mark.kind == StepMarkKind::optimizer && !mark.before_trace && mark.begin <= event &&
             event < mark.end;
    });
  }
  uint64_t bytes_of(size_t i) const {
    return row(i).requested_bytes != 0 ? row(i).requested_bytes : row(i).block_bytes;
  }

  // How many weights have a size, and how many passing tensors of a step.
  void count_weights() {
    for (size_t i = 0; i < lifetimes_.rows.size(); ++i) {
      const Category category = categories_[i];
      if (category == Category::parameters || category == Category::kept ||
          (is_initial(i) && is_kept(row(i), lifetimes_)))
        ++weights_[bytes_of(i)];
      else if (category == Category::activations || category == Category::temporaries)
        if (row(i).alloc_event != k_before && row(i).alloc_event < cut_) ++passing_[bytes_of(i)];
    }
  }

  bool is_like_a_weight(uint64_t bytes) const {
    uint64_t weights = 0;
    for (const uint64_t size : {bytes, bytes * 2}) {
      const auto found = weights_.find(size);
      if (found != weights_.end()) weights += found->second;
    }
    const auto passing = passing_.find(bytes);
    const uint64_t of_a_step =
        passing == passing_.end() ? 0 : passing->second / std::max(steps_.finished, 1u);
    return weights != 0 && of_a_step <= k_copies_of_a_weight * weights;
  }

  BatchGrowth growth_of(size_t i) const {
    switch (categories_[i]) {
      case Category::parameters:
      case Category::gradients:
      case Category::optimizer_state:
      case Category::workspace:
        return BatchGrowth::fixed;
      case Category::kept:
      case Category::private_pools:
      case Category::activations:
      case Category::temporaries:
      case Category::unknown:
        break;
    }
    if (is_initial(i)) {
      const bool whole_step =
          row(i).free_requested >= (steps_.begins.size() > 1 ? steps_.begins[1] : cut_);
      return whole_step ? BatchGrowth::fixed : BatchGrowth::stays;
    }
    const uint32_t at = row(i).alloc_event;
    if (at < steps_.begins.front() || in_optimizer(at)) return BatchGrowth::fixed;
    if (categories_[i] != Category::activations && categories_[i] != Category::temporaries)
      return BatchGrowth::stays;
    const uint64_t bytes = bytes_of(i);
    if (bytes % batch_ != 0 || is_like_a_weight(bytes)) return BatchGrowth::stays;
    return BatchGrowth::grows;
  }

  // Of each row that is made in a step. Without stacks a tensor that the backward pass waits for
  // is made in a forward pass, a gradient in a backward one, and what lies between goes with the
  // next of them.
  void find_phases() {
    phases_.assign(lifetimes_.rows.size(), TracePhase::setup);
    TracePhase next = TracePhase::backward;
    for (size_t i = lifetimes_.rows.size(); i-- > 0;) {
      if (is_initial(i) || row(i).alloc_event < steps_.begins.front()) continue;
      if (in_optimizer(row(i).alloc_event)) {
        phases_[i] = TracePhase::optimizer;
        next = TracePhase::backward;
        continue;
      }
      if (categories_[i] == Category::activations) next = TracePhase::forward;
      if (categories_[i] == Category::gradients) next = TracePhase::backward;
      phases_[i] = next;
      if (!out_.has_stacks || row(i).stack == memory::k_no_stack) continue;
      phases_[i] =
          roles_[row(i).stack] == StackRole::no_python ? TracePhase::backward : TracePhase::forward;
    }
  }

  uint32_t text(const std::string& text) {
    const auto [place, is_new] =
        texts_.try_emplace(text, static_cast<uint32_t>(out_.events.texts.size()));
    if (is_new) out_.events.texts.push_back(text);
    return place->second;
  }

  std::string place_of(const memory::Frame& frame) const {
    const std::string_view file = snapshot_.text(frame.filename);
    const size_t slash = file.find_last_of("/\\");
    return format("{}:{}", file.substr(slash == std::string_view::npos ? 0 : slash + 1),
                  frame.line);
  }

  uint32_t site(size_t i) {
    const auto [place, is_new] = sites_.try_emplace(
        {row(i).stack, phases_[i]}, static_cast<uint32_t>(out_.events.sites.size()));
    if (!is_new) return place->second;
    std::string op, module, source;
    if (row(i).stack != memory::k_no_stack)
      for (const uint32_t number : snapshot_.python_frames(row(i).stack)) {
        const memory::Frame& frame = snapshot_.stacks.frame(number);
        if (op.empty()) op = snapshot_.text(frame.name);
        const std::string_view file = snapshot_.text(frame.filename);
        if (of_torch(file)) continue;
        module = format("{} {}", place_of(frame), snapshot_.text(frame.name));
        source = place_of(frame);
        break;
      }
    out_.events.sites.push_back({text(op), text(module), text(source), phases_[i]});
    return place->second;
  }

  static StorageCategory storage_category(Category category) {
    switch (category) {
      case Category::parameters:
        return StorageCategory::parameter;
      case Category::gradients:
        return StorageCategory::gradient;
      case Category::optimizer_state:
        return StorageCategory::optimizer_state;
      default:
        return StorageCategory::unknown;
    }
  }

  Result<void> write() {
    std::vector<Moved> moved;
    for (uint32_t i = 0; i < lifetimes_.rows.size(); ++i) {
      const Lifetime& row = lifetimes_.rows[i];
      if (!is_initial(i) && row.alloc_event >= cut_) continue;
      out_.private_pools = out_.private_pools || row.pool != 0;
      moved.push_back({is_initial(i) ? 0 : row.alloc_event + 1, false, i});
      if (row.free_completed < cut_) moved.push_back({row.free_completed + 1, true, i});
    }
    std::stable_sort(moved.begin(), moved.end(),
                     [](const Moved& a, const Moved& b) { return a.position < b.position; });
    TraceEvents& events = out_.events;
    events.facts.push_back({text("batch"), text(std::to_string(batch_))});
    std::unordered_map<uint32_t, uint32_t> storages;
    uint32_t step = 0;
    uint64_t live = 0;
    bool open = false;
    const auto marks_to = [&](uint32_t position) {
      while (step < steps_.finished && steps_.begins[step] + 1 <= position) {
        if (open) mark(TraceMark::step_ends);
        mark(TraceMark::step_begins);
        open = true;
        ++step;
      }
    };
    for (const Moved& at : moved) {
      marks_to(at.position);
      const uint64_t bytes = bytes_of(at.row);
      if (at.is_free) {
        live -= bytes;
        events.events.push_back({0, storages.at(at.row), 0, formats::TraceEventKind::free});
        continue;
      }
      if (bytes > k_most_live - live)
        return fail(Code::malformed, "it tells of more memory than any machine has");
      live += bytes;
      const auto storage = static_cast<uint32_t>(events.categories.size());
      storages.emplace(at.row, storage);
      events.events.push_back({bytes, storage, site(at.row), formats::TraceEventKind::alloc});
      events.categories.push_back(storage_category(categories_[at.row]));
      out_.growth.push_back(growth_of(at.row));
      out_.alloc_of.push_back(row(at.row).alloc_event);
    }
    marks_to(UINT32_MAX);
    if (open) mark(TraceMark::step_ends);
    events.end = formats::TraceEnd::steps_seen;
    events.complete = true;
    return {};
  }

  void mark(TraceMark mark) {
    out_.events.events.push_back(
        {0, static_cast<uint32_t>(mark), 0, formats::TraceEventKind::mark});
  }

  const Snapshot& snapshot_;
  const memory::VerifiedRecording& verified_;
  const uint64_t batch_;
  const Lifetimes lifetimes_;
  const Steps steps_;
  const StackRoles roles_;
  std::vector<Category> categories_;
  std::vector<TracePhase> phases_;
  std::unordered_map<uint64_t, uint64_t> weights_, passing_;  // by size
  std::unordered_map<std::string, uint32_t> texts_;
  std::map<std::pair<uint32_t, TracePhase>, uint32_t> sites_;
  uint32_t cut_ = 0;
  RecordedTrace out_;
};

}  // namespace

Result<RecordedTrace> recorded_trace(const Snapshot& snapshot,
                                     const memory::VerifiedRecording& verified, uint64_t batch) {
  return Converter(snapshot, verified, batch).run();
}

}  // namespace cufit::analysis
