// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/categories.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "knowledge/knowledge.h"
#include "memory/analysis/initial_model.h"
#include "memory/analysis/near_search.h"
#include "memory/analysis/forward_backward_passes.h"

namespace cufit::analysis {
namespace {

using memory::Snapshot;

constexpr std::array<const char*, k_categories> k_names = {
    "parameters",    "gradients", "optimizer_state", "activations", "temporaries", "workspace",
    "private_pools", "kept",      "unknown"};

class Sorter {
 public:
  Sorter(const Snapshot& snapshot, uint32_t device, const Lifetimes& lifetimes, const Steps& steps)
      : snapshot_(snapshot),
        device_(device),
        lifetimes_(lifetimes),
        rows_(lifetimes.rows),
        steps_(steps),
        roles_(snapshot),
        out_(rows_.size(), Category::unknown),
        done_(rows_.size(), false) {}

  std::vector<Category> sort() {
    read_categories();
    find_ranges();
    for (size_t i = 0; i < rows_.size(); ++i)
      if (!done_[i]) sort_by_events(i);
    if (!zero_grad_.empty())
      share_initial_model(lifetimes_, zero_grad_.back().begin, zero_grad_.back().end, out_);
    find_turning_points();
    for (size_t i = 0; i < rows_.size(); ++i)
      if (!done_[i]) sort_by_passes(i);
    find_joined_weights();
    return std::move(out_);
  }

 private:
  void set(size_t row, Category category) {
    out_[row] = category;
    done_[row] = true;
  }

  // `category` of an entry, in the words of torch.profiler's memory timeline and of ours.
  void read_categories() {
    std::vector<Category> of_context;
    std::vector<bool> known;
    for (const memory::EventContext& context : snapshot_.contexts) {
      std::string text(snapshot_.text(context.category));
      std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
      static const std::array<std::pair<const char*, Category>, 9> k_words = {
          {{"parameter", Category::parameters},
           {"parameters", Category::parameters},
           {"gradient", Category::gradients},
           {"gradients", Category::gradients},
           {"optimizer_state", Category::optimizer_state},
           {"activation", Category::activations},
           {"activations", Category::activations},
           {"temporary", Category::temporaries},
           {"temporaries", Category::temporaries}}};
      const auto word = std::find_if(k_words.begin(), k_words.end(),
                                     [&](const auto& entry) { return text == entry.first; });
      known.push_back(word != k_words.end());
      of_context.push_back(word != k_words.end() ? word->second : Category::unknown);
    }
    for (size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].has_context && known[rows_[i].context]) set(i, of_context[rows_[i].context]);
  }

  void find_ranges() {
    events_ = lifetimes_.events;
    setup_end_ = steps_.known() ? steps_.begins.front() : leading_run();
    from_start_ = lifetimes_.initial == 0;
    bool clears = false;
    for (const StepMark& mark : steps_.marks) {
      if (mark.before_trace) continue;
      clears = clears || mark.kind == StepMarkKind::zero_grad;
      (mark.kind == StepMarkKind::optimizer ? optimizer_ : zero_grad_)
          .push_back({mark.begin, mark.end});
    }
    // The witness knows nothing of zero_grad: the frees may.
    if (!clears && steps_.known())
      for (const StepMark& mark : marks_of_frees(snapshot_, device_, lifetimes_))
        zero_grad_.push_back({mark.begin, mark.end});
    for (const Lifetime& row : rows_) {
      if (row.pool != 0) continue;
      const bool kept = is_kept(row, lifetimes_);
      if (kept && (row.alloc_event == k_before || row.alloc_event < setup_end_))
        model_sizes_.insert(row.requested_bytes);
      if (zero_grad_.with(row.free_requested)) gradient_sizes_.insert(row.requested_bytes);
    }
    if (optimizer_.empty()) guess_optimizer_ranges();
  }

  // Without steps: the allocations before the first that is freed again.
  uint32_t leading_run() const {
    for (const Lifetime& row : rows_)
      if (row.alloc_event != k_before && !is_kept(row, lifetimes_)) return row.alloc_event;
    return rows_.empty() ? 0 : lifetimes_.events;
  }

  // Between the last gradient that the backward pass makes and zero_grad.
  void guess_optimizer_ranges() {
    std::vector<uint32_t> last(zero_grad_.size(), 0);
    for (const Lifetime& row : rows_) {
      if (row.alloc_event == k_before) continue;
      if (const std::optional<size_t> i = zero_grad_.with(row.free_requested))
        last[*i] = std::max(last[*i], row.alloc_event);
    }
    for (size_t i = 0; i < zero_grad_.size(); ++i)
      if (last[i] != 0) optimizer_.push_back({last[i] + 1, zero_grad_[i].begin});
  }

  // The event at which the step after the next of `event` begins; none if the trace ends before.
  uint32_t two_steps_on(uint32_t event) const {
    const std::vector<uint32_t>& begins = steps_.begins;
    const size_t after =
        steps_search_.not_greater(begins.size(), event, [&](size_t i) { return begins[i]; });
    return begins.size() - after >= 2 ? begins[after + 1] : k_never;
  }
  // Beyond the next step, or as far as the trace goes.
  bool stays(const Lifetime& row) const {
    return is_kept(row, lifetimes_) || row.free_requested >= two_steps_on(row.alloc_event);
  }

  void sort_by_events(size_t i) {
    const Lifetime& row = rows_[i];
    if (row.pool != 0) return set(i, Category::private_pools);
    const bool kept = is_kept(row, lifetimes_);
    if (zero_grad_.with(row.free_requested)) return set(i, Category::gradients);
    if (row.alloc_event == k_before) return sort_initial(i);
    const StackRole role = roles_[row.stack];
    if (role == StackRole::module_move && kept) return set(i, Category::parameters);
    if (!steps_.known()) return sort_without_steps(i, role);
    const bool in_setup = row.alloc_event < setup_end_;
    if (in_setup) return set(i, stays(row) ? Category::parameters : Category::temporaries);
    if (role == StackRole::optimizer || optimizer_.with(row.alloc_event))
      return set(i, stays(row) ? Category::optimizer_state : Category::temporaries);
    if (kept && take_workspace(row)) return set(i, Category::workspace);
    const uint32_t two_steps_later = two_steps_on(row.alloc_event);
    if (row.free_requested < two_steps_later || two_steps_later == k_never) return;
    // zero_grad(set_to_none=False): gradients are made in the first backward pass and stay.
    const bool first = row.alloc_event < first_optimizer_event();
    if (gradient_sizes_.empty() && first && model_sizes_.count(row.requested_bytes) != 0)
      return set(i, Category::gradients);
    set(i, Category::kept);
  }

  uint32_t first_optimizer_event() const { return optimizer_.empty() ? 0 : optimizer_[0].begin; }

  // Of a recurrent layer cuDNN has the weights in one piece; what they were before is freed in front
  // of the first step, as in one. Where no weights are known they are what was there before the
  // optimizer first stepped and stays to the end.
  void find_joined_weights() {
    if (std::count(out_.begin(), out_.end(), Category::parameters) != 0 || !from_start_) return;
    for (size_t i = 0; i < rows_.size(); ++i)
      if (out_[i] == Category::kept && is_kept(rows_[i], lifetimes_) &&
          rows_[i].alloc_event < first_optimizer_event())
        out_[i] = Category::parameters;
  }

  // One for each thread that calls the library, forward and backward, on each stream; tensors of
  // such a size are more.
  bool take_workspace(const Lifetime& row) {
    return is_workspace(row) && ++workspaces_[{row.requested_bytes, row.context}] <= 2;
  }
  bool is_workspace(const Lifetime& row) const {
    if (model_sizes_.count(row.requested_bytes) + gradient_sizes_.count(row.requested_bytes) != 0)
      return false;
    return has_workspace_size(row);
  }

  bool has_workspace_size(const Lifetime& row) const {
    return std::find(workspace_sizes_.begin(), workspace_sizes_.end(), row.requested_bytes) !=
           workspace_sizes_.end();
  }

  // Here the sizes of the model are those of all that stays.
  bool is_initial_workspace(const Lifetime& row) const {
    return gradient_sizes_.count(row.requested_bytes) == 0 && has_workspace_size(row);
  }

  // Made before the trace. What stays is the model or its optimizer's state; only a stack tells.
  void sort_initial(size_t i) {
    const Lifetime& row = rows_[i];
    if (!is_kept(row, lifetimes_)) return set(i, Category::unknown);
    if (is_initial_workspace(row)) return set(i, Category::workspace);
    const StackRole role = roles_[row.stack];
    set(i, role == StackRole::optimizer     ? Category::optimizer_state
           : role == StackRole::module_move ? Category::parameters
                                            : Category::unknown);
  }

  // Stacks say what a module's forward made. Without them a program that died before anything was
  // freed looks like one that loads its model all the time.
  void sort_without_steps(size_t i, StackRole role) {
    const Lifetime& row = rows_[i];
    const bool kept = is_kept(row, lifetimes_);
    if (roles_.any()) {
      if (kept && take_workspace(row)) return set(i, Category::workspace);
      if (role != StackRole::module_call) set(i, kept ? Category::unknown : Category::temporaries);
      return;
    }
    if (row.alloc_event < setup_end_ && from_start_)
      return set(i, setup_end_ < lifetimes_.work_end ? Category::parameters : Category::unknown);
    if (kept && take_workspace(row)) return set(i, Category::workspace);
    if (kept) set(i, Category::unknown);
  }

  // How many rows that are not sorted yet live after each event, step by step.
  void find_turning_points() {
    // An exception that unwinds is no backward pass.
    const memory::Trace& trace = snapshot_.traces[device_];
    const bool died =
        snapshot_.events[trace.first + lifetimes_.work_end].action == memory::Action::oom;
    const uint32_t last = died ? lifetimes_.work_end : events_ - 1;
    std::vector<int8_t> change(events_ + 1);  // an event makes or frees one row at most
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (done_[i]) continue;
      ++change[rows_[i].alloc_event];
      if (rows_[i].free_requested <= last) --change[rows_[i].free_requested];
    }
    std::vector<uint32_t> begins = steps_.known() ? steps_.begins : std::vector<uint32_t>{0};
    int64_t now = 0;
    for (uint32_t e = 0; e < begins.front() && e < events_; ++e) now += change[e];
    std::vector<uint32_t> counts;
    for (size_t s = 0; s < begins.size(); ++s) {
      const uint32_t end = s + 1 < begins.size() ? begins[s + 1] : events_;
      counts.clear();
      for (uint32_t e = begins[s]; e < end; ++e) {
        now += change[e];
        counts.push_back(static_cast<uint32_t>(std::max<int64_t>(now, 0)));
      }
      add_turning_points(counts, begins[s], turns_);
    }
  }

  void sort_by_passes(size_t i) {
    const Lifetime& row = rows_[i];
    const size_t turn = row.alloc_event == 0
                            ? 0
                            : turns_search_.not_greater(turns_.size(), row.alloc_event - 1,
                                                        [&](size_t at) { return turns_[at]; });
    // The backward pass runs in a thread of its own, without Python below it.
    const bool backward = roles_.any() && roles_[row.stack] == StackRole::no_python;
    const bool at_turn = turn != turns_.size() && turns_[turn] < row.free_requested;
    if (at_turn && !backward) return set(i, Category::activations);
    const bool under_way = is_kept(row, lifetimes_);
    const bool after_turn = backward || (!turns_.empty() && turn == turns_.size());
    const auto& sizes = gradient_sizes_.empty() ? model_sizes_ : gradient_sizes_;
    if (under_way && after_turn && sizes.count(row.requested_bytes) != 0)
      return set(i, Category::gradients);
    set(i, Category::temporaries);
  }

  const Snapshot& snapshot_;
  uint32_t device_;
  const Lifetimes& lifetimes_;
  const std::vector<Lifetime>& rows_;
  const Steps& steps_;
  const StackRoles roles_;
  std::vector<Category> out_;
  std::vector<bool> done_;
  uint32_t events_ = 0, setup_end_ = 0;
  bool from_start_ = true;
  EventRanges optimizer_, zero_grad_;
  std::unordered_set<uint64_t> model_sizes_, gradient_sizes_;
  std::vector<uint32_t> turns_;
  mutable NearSearch steps_search_;
  NearSearch turns_search_;
  const std::vector<uint64_t> workspace_sizes_ =
      knowledge::Knowledge::builtin().cublas_workspace_sizes();
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> workspaces_;  // size, context -> seen
};

}  // namespace

const char* to_string(Category category) { return k_names[static_cast<size_t>(category)]; }

std::vector<Category> categories_of(const Snapshot& snapshot, uint32_t device,
                                    const Lifetimes& lifetimes, const Steps& steps) {
  return Sorter(snapshot, device, lifetimes, steps).sort();
}

}  // namespace cufit::analysis
