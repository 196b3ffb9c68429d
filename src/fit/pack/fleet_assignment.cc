// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/fleet_assignment.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "fit/pack/bin_bounds.h"
#include "fit/pack/fleet_filling.h"
#include "fit/pack/fleet_search.h"

namespace cufit::pack {
namespace {

bool have_one_gpu_each(const FleetProblem& fleet) {
  return std::all_of(fleet.items.begin(), fleet.items.end(),
                     [](const std::vector<uint32_t>& job) { return job.size() == 1; });
}

uint64_t least_of_job(const FleetProblem& fleet, uint32_t job) {
  uint64_t sum = 0;
  for (const uint32_t item : fleet.items[job]) {
    const uint32_t mib = least_mib(fleet.problem, item);
    if (mib == k_never) return UINT64_MAX;
    sum += mib;
  }
  return sum;
}

// Jobs that some empty machine holds, the smallest first.
std::vector<uint32_t> possible_jobs(const FleetProblem& fleet) {
  const FleetFilling empty(fleet);
  std::vector<uint32_t> out;
  bool possible = false;
  for (uint32_t job = 0; job < fleet.items.size(); ++job) {
    const bool again = job > 0 && are_alike(fleet, job - 1, job);
    possible = again && possible;
    for (uint32_t node = 0; !again && node < empty.nodes() && !possible; ++node)
      possible = !choices_on(fleet, empty, job, node, Pick::then_smallest).empty();
    if (possible) out.push_back(job);
  }
  std::stable_sort(out.begin(), out.end(), [&](uint32_t a, uint32_t b) {
    return least_of_job(fleet, a) < least_of_job(fleet, b);
  });
  return out;
}

// From sizes alone. Several GPUs of a job are taken for as many jobs of one: a plan of these is no
// worse than one of those.
void bound(const FleetProblem& fleet, const std::vector<uint32_t>& possible, FleetAssignment& out) {
  const Problem& problem = fleet.problem;
  uint64_t room = 0, mib = 0;
  bool divided = false;
  for (const uint32_t kind : problem.bins) {
    room += problem.kinds[kind].mib;
    divided = divided || problem.kinds[kind].divided();
  }
  out.most_placed = 0;
  for (const uint32_t job : possible) {
    mib += least_of_job(fleet, job);
    if (!divided && mib > room) break;
    ++out.most_placed;
  }
  const bool single = have_one_gpu_each(fleet);
  std::vector<uint32_t> items;
  for (const uint32_t job : possible)
    items.insert(items.end(), fleet.items[job].begin(), fleet.items[job].end());
  std::stable_sort(items.begin(), items.end(), [&](uint32_t a, uint32_t b) {
    return least_mib(problem, a) < least_mib(problem, b);
  });
  // Of the shares that jobs ask for no more have a place, were each a job of its own.
  std::vector<size_t> shares;
  for (const uint32_t job : possible) shares.push_back(fleet.items[job].size());
  std::sort(shares.begin(), shares.end());
  uint32_t most = 0;
  for (uint64_t left = placed_bound(problem, items); most < shares.size(); ++most) {
    if (shares[most] > left) break;
    left -= shares[most];
  }
  out.most_placed = std::min(out.most_placed, most);
  if (out.placed != possible.size()) {
    // As many of the smallest take no more than those that were placed, where sizes have one order.
    if (!single || !ordered_alike(problem, items)) {
      out.fewest_used = std::min<uint32_t>(out.placed, 1);
      out.most_headroom = out.placed == 0 ? 0 : headroom_of_any_choice(problem, items);
      return;
    }
    items.resize(out.placed);
  }
  out.fewest_used = fewest_bound(problem, items);
  if (!single)
    for (const uint32_t job : possible)
      out.fewest_used =
          std::max<uint32_t>(out.fewest_used, static_cast<uint32_t>(fleet.items[job].size()));
  out.most_headroom = divided ? 0 : headroom_bound(problem, items);
}

// One job after another, each where it leaves least of GPUs in use (or most of the emptiest).
class Greedy {
 public:
  Greedy(const FleetProblem& fleet, Pick pick) : fleet_(fleet), pick_(pick), filling_(fleet) {
    out_.spread = pick == Pick::emptiest;
    out_.bin_of.assign(fleet.problem.items.size(), k_no_bin);
  }

  FleetAssignment run(const std::vector<uint32_t>& jobs) {
    for (const uint32_t job : jobs) place(job);
    out_.used = filling_.used();
    out_.headroom = filling_.headroom();
    return std::move(out_);
  }

 private:
  // Less is better.
  std::tuple<uint64_t, uint64_t> worth(uint32_t job, const std::vector<uint32_t>& bins) const {
    uint64_t opened = 0, rest = 0, least = UINT64_MAX;
    for (size_t i = 0; i < bins.size(); ++i) {
      const uint64_t left = filling_.rest(fleet_.items[job][i], bins[i]);
      opened += filling_.is_used(bins[i]) ? 0 : 1;
      rest += left;
      least = std::min(least, left);
    }
    if (pick_ == Pick::emptiest) return {UINT64_MAX - least, rest};
    return {opened, pick_ == Pick::then_largest && opened > 0 ? UINT64_MAX - rest : rest};
  }

  struct Place {
    std::vector<uint32_t> bins;  // empty: none
    std::tuple<uint64_t, uint64_t> worth;
  };

  Place best_on(uint32_t job, uint32_t node) const {
    Place best;
    for (std::vector<uint32_t>& bins : choices_on(fleet_, filling_, job, node, pick_)) {
      const auto here = worth(job, bins);
      if (!best.bins.empty() && here >= best.worth) continue;
      best.worth = here;
      best.bins = std::move(bins);
    }
    return best;
  }

  // Of jobs that are alike the places on other machines stay what they were.
  void place(uint32_t job) {
    if (before_ == k_no_bin || !are_alike(fleet_, before_, job)) {
      places_.clear();
      for (uint32_t node = 0; node < filling_.nodes(); ++node)
        places_.push_back(best_on(job, node));
    }
    before_ = job;
    const auto best =
        std::min_element(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
          if (a.bins.empty() || b.bins.empty()) return !a.bins.empty();
          return a.worth < b.worth;
        });
    if (best == places_.end() || best->bins.empty()) return;
    for (size_t i = 0; i < best->bins.size(); ++i) {
      filling_.take(fleet_.items[job][i], best->bins[i]);
      out_.bin_of[fleet_.items[job][i]] = best->bins[i];
    }
    *best = best_on(job, static_cast<uint32_t>(best - places_.begin()));
    ++out_.placed;
  }

  const FleetProblem& fleet_;
  const Pick pick_;
  FleetFilling filling_;
  std::vector<Place> places_;  // of the job before, on each machine
  uint32_t before_ = k_no_bin;
  FleetAssignment out_;
};

// GPUs whose jobs ask for one alone are exchanged for the smallest free ones that hold them: the large
// stay free for what is large.
void take_smaller_gpus(const FleetProblem& fleet, FleetAssignment& out) {
  const Problem& problem = fleet.problem;
  std::vector<std::vector<uint32_t>> on(problem.bins.size());
  std::vector<char> fixed(problem.bins.size(), 0);
  for (const std::vector<uint32_t>& job : fleet.items)
    for (const uint32_t item : job) {
      if (out.bin_of[item] == k_no_bin) continue;
      on[out.bin_of[item]].push_back(item);
      if (job.size() > 1) fixed[out.bin_of[item]] = 1;
    }
  const auto room = [&](uint32_t bin) { return problem.kinds[problem.bins[bin]].mib; };
  std::vector<uint32_t> free;
  for (uint32_t bin = 0; bin < on.size(); ++bin)
    if (on[bin].empty() && !problem.kinds[problem.bins[bin]].divided()) free.push_back(bin);
  std::stable_sort(free.begin(), free.end(),
                   [&](uint32_t a, uint32_t b) { return room(a) < room(b); });
  const auto holds = [&](uint32_t bin, const std::vector<uint32_t>& items) {
    uint64_t sum = 0;
    for (const uint32_t item : items) sum += problem.items[item].mib[problem.bins[bin]];
    return sum <= room(bin);
  };
  for (uint32_t bin = 0; bin < on.size(); ++bin) {
    if (on[bin].empty() || fixed[bin] != 0 || problem.kinds[problem.bins[bin]].divided()) continue;
    for (uint32_t& other : free) {
      if (room(other) >= room(bin)) break;
      if (!holds(other, on[bin])) continue;
      for (const uint32_t item : on[bin]) out.bin_of[item] = other;
      free.erase(free.begin() + (&other - free.data()));
      break;
    }
  }
}

FleetAssignment best_greedy(const FleetProblem& fleet, bool spread) {
  std::vector<uint32_t> jobs(fleet.items.size());
  std::iota(jobs.begin(), jobs.end(), uint32_t{0});
  const auto size = [&](uint32_t job) {
    return least_of_job(fleet, job) / fleet.items[job].size();
  };
  FleetAssignment best;
  // The largest first places all where there is room; where there is none the smallest first places
  // most. What needs several GPUs finds them before others have taken each a part.
  for (const int order : {0, 1, 2}) {
    std::stable_sort(jobs.begin(), jobs.end(), [&](uint32_t a, uint32_t b) {
      if (order == 2) return least_of_job(fleet, a) < least_of_job(fleet, b);
      if (order == 0 && fleet.items[a].size() != fleet.items[b].size())
        return fleet.items[a].size() > fleet.items[b].size();
      return size(a) > size(b);
    });
    for (const Pick pick : spread ? std::vector<Pick>{Pick::emptiest}
                                  : std::vector<Pick>{Pick::then_largest, Pick::then_smallest}) {
      FleetAssignment found = Greedy(fleet, pick).run(jobs);
      if (best.bin_of.empty() || is_better(found, best)) best = std::move(found);
    }
    if (order == 1 && best.placed == fleet.items.size()) break;
  }
  return best;
}

// What the exact search for jobs of one GPU found.
FleetAssignment of_single(const Assignment& found, bool spread) {
  FleetAssignment out;
  out.spread = spread;
  out.bin_of = found.bin_of;
  out.placed = found.placed;
  out.used = found.used;
  out.headroom = found.headroom;
  out.most_placed = found.most_placed;
  out.fewest_used = found.fewest_used;
  out.most_headroom = found.most_headroom;
  return out;
}

}  // namespace

FleetAssignment assign_fleet(const FleetProblem& fleet, bool spread, uint64_t node_limit) {
  const bool small = fleet.problem.items.size() <= k_most_searched_items &&
                     fleet.problem.bins.size() <= k_most_searched_bins;
  const bool single = have_one_gpu_each(fleet);
  const std::vector<uint32_t> possible = possible_jobs(fleet);
  FleetAssignment out;
  if (small && single) {
    out = of_single(
        spread ? most_headroom(fleet.problem, node_limit) : fewest_bins(fleet.problem, node_limit),
        spread);
  } else {
    out = best_greedy(fleet, spread);
    bound(fleet, possible, out);
  }
  // Which jobs are left out where not all have a place, and sizes have no one order, is for this one.
  if (small && !out.optimal()) search_fleet(fleet, possible, node_limit, out);
  if (!spread) take_smaller_gpus(fleet, out);
  return out;
}

}  // namespace cufit::pack
