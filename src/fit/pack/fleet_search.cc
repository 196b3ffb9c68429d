// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/fleet_search.h"

#include <algorithm>
#include <map>

namespace cufit::pack {
namespace {

// Bins in the same state stand for each other: taken in their order, a set is one number of each.
class Sets {
 public:
  Sets(std::vector<std::vector<uint32_t>> classes, size_t count)
      : classes_(std::move(classes)), count_(count) {
    add(0);
  }
  std::vector<std::vector<uint32_t>> take() && { return std::move(out_); }

 private:
  void add(size_t next) {
    if (out_.size() >= k_most_sets) return;
    if (set_.size() == count_) {
      out_.push_back(set_);
      return;
    }
    if (next == classes_.size()) return;
    const size_t before = set_.size();
    for (const uint32_t bin : classes_[next]) {
      if (set_.size() == count_) break;
      set_.push_back(bin);
    }
    while (true) {
      add(next + 1);
      if (set_.size() == before) break;
      set_.pop_back();
    }
  }

  const std::vector<std::vector<uint32_t>> classes_;
  const size_t count_;
  std::vector<uint32_t> set_;
  std::vector<std::vector<uint32_t>> out_;
};

class FleetSearch {
 public:
  FleetSearch(const FleetProblem& fleet, std::vector<uint32_t> jobs, uint64_t limit,
              FleetAssignment& best)
      : fleet_(fleet), jobs_(std::move(jobs)), left_(limit), filling_(fleet), best_(best) {
    bin_of_.assign(fleet.problem.items.size(), k_no_bin);
  }

  // True: nothing is better than what was found.
  bool run() {
    place(0, false);
    return left_ > 0 && !cut_;
  }

 private:
  bool hopeless(size_t next) const {
    const uint32_t most = placed_ + static_cast<uint32_t>(jobs_.size() - next);
    if (most != best_.placed) return most < best_.placed;
    if (best_.placed == 0) return true;
    if (!best_.spread) return filling_.used() >= best_.used;
    return placed_ > 0 && filling_.headroom() <= best_.headroom;
  }

  bool same_as_before(size_t next) const {
    return next > 0 && are_alike(fleet_, jobs_[next - 1], jobs_[next]);
  }

  bool alike(uint32_t a, uint32_t b) const {
    const std::vector<uint32_t>& first = filling_.bins_of(a);
    const std::vector<uint32_t>& second = filling_.bins_of(b);
    if (first.size() != second.size()) return false;
    for (size_t i = 0; i < first.size(); ++i)
      if (!filling_.alike(first[i], second[i])) return false;
    return true;
  }

  // `left_out`: the job before was, though it had a place perhaps: one that is as large is not better.
  void place(size_t next, bool left_out) {
    if (left_ == 0 || hopeless(next)) return;
    --left_;
    if (next == jobs_.size()) {
      best_.bin_of = bin_of_;
      best_.placed = placed_;
      best_.used = filling_.used();
      best_.headroom = filling_.headroom();
      return;
    }
    const uint32_t job = jobs_[next];
    if (!(left_out && same_as_before(next)))
      for (uint32_t node = 0; node < filling_.nodes(); ++node) {
        bool seen = false;
        for (uint32_t other = 0; other < node && !seen; ++other) seen = alike(other, node);
        if (seen) continue;
        const auto choices = choices_on(fleet_, filling_, job, node, Pick::all);
        cut_ = cut_ || choices.size() >= k_most_sets;
        for (const std::vector<uint32_t>& bins : choices) put(next, job, bins);
      }
    place(next + 1, true);
  }

  void put(size_t next, uint32_t job, const std::vector<uint32_t>& bins) {
    for (size_t i = 0; i < bins.size(); ++i) {
      filling_.take(fleet_.items[job][i], bins[i]);
      bin_of_[fleet_.items[job][i]] = bins[i];
    }
    ++placed_;
    place(next + 1, false);
    --placed_;
    for (size_t i = 0; i < bins.size(); ++i) {
      filling_.give_back(fleet_.items[job][i], bins[i]);
      bin_of_[fleet_.items[job][i]] = k_no_bin;
    }
  }

  const FleetProblem& fleet_;
  const std::vector<uint32_t> jobs_;  // the largest first
  uint64_t left_;
  FleetFilling filling_;
  FleetAssignment& best_;
  std::vector<uint32_t> bin_of_;
  uint32_t placed_ = 0;
  bool cut_ = false;  // not all choices were tried
};

}  // namespace

std::vector<std::vector<uint32_t>> choices_on(const FleetProblem& fleet,
                                              const FleetFilling& filling, uint32_t job,
                                              uint32_t node, Pick pick) {
  const std::vector<uint32_t>& items = fleet.items[job];
  std::map<uint32_t, std::vector<uint32_t>> models;
  for (const uint32_t bin : filling.room_for(items[0], node))
    models[filling.model(bin)].push_back(bin);
  std::vector<std::vector<uint32_t>> out;
  for (auto& [model, bins] : models) {
    if (bins.size() < items.size()) continue;
    if (pick != Pick::all) {
      std::stable_sort(bins.begin(), bins.end(), [&](uint32_t a, uint32_t b) {
        const uint64_t rest_a = filling.rest(items[0], a), rest_b = filling.rest(items[0], b);
        if (pick == Pick::emptiest) return rest_a > rest_b;
        if (filling.is_used(a) != filling.is_used(b)) return filling.is_used(a);
        const bool largest = pick == Pick::then_largest && !filling.is_used(a);
        return largest ? rest_a > rest_b : rest_a < rest_b;
      });
      bins.resize(items.size());
      out.push_back(std::move(bins));
      continue;
    }
    std::vector<std::vector<uint32_t>> classes;
    for (const uint32_t bin : bins) {
      const auto same = std::find_if(classes.begin(), classes.end(),
                                     [&](const auto& one) { return filling.alike(one[0], bin); });
      if (same == classes.end())
        classes.push_back({bin});
      else
        same->push_back(bin);
    }
    for (std::vector<uint32_t>& set : Sets(std::move(classes), items.size()).take())
      out.push_back(std::move(set));
  }
  return out;
}

bool are_alike(const FleetProblem& fleet, uint32_t a, uint32_t b) {
  const std::vector<uint32_t>& first = fleet.items[a];
  const std::vector<uint32_t>& second = fleet.items[b];
  return first.size() == second.size() &&
         fleet.problem.items[first[0]].mib == fleet.problem.items[second[0]].mib;
}

bool is_better(const FleetAssignment& a, const FleetAssignment& b) {
  if (a.placed != b.placed) return a.placed > b.placed;
  return a.spread ? a.headroom > b.headroom : a.used < b.used;
}

void search_fleet(const FleetProblem& fleet, std::vector<uint32_t> possible, uint64_t node_limit,
                  FleetAssignment& best) {
  std::stable_sort(possible.begin(), possible.end(), [&](uint32_t a, uint32_t b) {
    const auto largest = [&](uint32_t job) {
      uint64_t most = 0;
      for (const uint32_t mib : fleet.problem.items[fleet.items[job][0]].mib)
        if (mib != k_never) most = std::max<uint64_t>(most, mib);
      return most * fleet.items[job].size();
    };
    return largest(a) > largest(b);
  });
  if (!FleetSearch(fleet, std::move(possible), node_limit, best).run()) return;
  best.most_placed = best.placed;
  best.fewest_used = best.used;
  best.most_headroom = best.headroom;
}

}  // namespace cufit::pack
