// SPDX-License-Identifier: Apache-2.0
// The outer loops of the search: how many jobs, how many GPUs, how much is left. Each asks "do these
// jobs fit on these GPUs" (bin_search.h) and keeps what was proved.
#include <algorithm>
#include <numeric>

#include "fit/pack/bin_bounds.h"
#include "fit/pack/bin_search.h"
#include "fit/pack/even_load.h"
#include "fit/pack/tight_fill.h"

namespace cufit::pack {
namespace {

constexpr size_t k_most_choices = 512;  // of GPUs for one number of them

std::vector<uint32_t> all_bins(const Problem& problem) {
  std::vector<uint32_t> out(problem.bins.size());
  std::iota(out.begin(), out.end(), uint32_t{0});
  return out;
}

void take_assignment(const Problem& problem, const std::vector<uint32_t>& bin_of, Assignment& out) {
  out.bin_of = bin_of;
  std::vector<uint64_t> load(problem.bins.size(), 0);
  out.placed = out.used = 0;
  for (size_t i = 0; i < bin_of.size(); ++i) {
    if (bin_of[i] == k_no_bin) continue;
    ++out.placed;
    load[bin_of[i]] += problem.items[i].mib[problem.bins[bin_of[i]]];
  }
  out.headroom = out.placed == 0 ? 0 : k_never;
  for (size_t bin = 0; bin < load.size(); ++bin) {
    if (load[bin] == 0) continue;
    ++out.used;
    const uint32_t left = static_cast<uint32_t>(problem.kinds[problem.bins[bin]].mib - load[bin]);
    out.headroom = std::min(out.headroom, left);
  }
}

// Whether `items` fit on `bins`: quickly by a tight fill, else by the search. Fits::yes puts the
// assignment into `out`.
Fits try_to_place(const Problem& problem, const std::vector<uint32_t>& items,
                  const std::vector<uint32_t>& bins, uint32_t reserve, uint64_t node_limit,
                  Assignment& out) {
  if (const auto filled = tight_fill(problem, items, bins, reserve, out.nodes)) {
    take_assignment(problem, *filled, out);
    return Fits::yes;
  }
  BinSearch search(problem, items);
  const Fits fits = search.run(bins, reserve, node_limit);
  out.nodes += search.nodes();
  if (fits == Fits::yes) take_assignment(problem, search.bin_of(), out);
  return fits;
}

struct MostItems {
  std::vector<uint32_t> items;
  bool least = false;  // no other choice of as many takes less: what is proved of them is of all
};

// The most jobs: all, else as many of the smallest as fit. Where sizes are ordered alike on each
// kind no other choice has more.
MostItems most_items(const Problem& problem, uint64_t node_limit, Assignment& out) {
  std::vector<uint32_t> items = possible_items(problem);
  const bool ordered = ordered_alike(problem, items);
  const std::vector<uint32_t> bins = all_bins(problem);
  out.most_placed = placed_bound(problem, items);
  const auto try_count = [&](uint32_t count, uint64_t limit) {
    return try_to_place(problem, {items.begin(), items.begin() + count}, bins, 0,
                        std::max<uint64_t>(limit, 1), out);
  };
  // Downwards with few steps to what fits, then upwards with all of them to what does not.
  uint32_t most = out.most_placed;
  while (most > 0 && try_count(most, node_limit / 64) != Fits::yes) --most;
  if (most == 0)
    take_assignment(problem, std::vector<uint32_t>(problem.items.size(), k_no_bin), out);
  while (most < out.most_placed) {
    const Fits fits = try_count(most + 1, node_limit / 2);
    if (fits == Fits::yes) {
      ++most;
      continue;
    }
    if (fits == Fits::no && ordered) out.most_placed = most;
    break;
  }
  const bool least = ordered || most == items.size();
  items.resize(most);
  return {std::move(items), least};
}

void bound_any_choice(const Problem& problem, const std::vector<uint32_t>& items, Assignment& out) {
  out.fewest_used = std::min<uint32_t>(out.placed, 1);
  out.most_headroom = headroom_of_any_choice(problem, items);
}

// One GPU can stand for another wherever that is used.
bool stands_for(const Problem& problem, uint32_t a, uint32_t b) {
  const BinKind& first = problem.kinds[a];
  const BinKind& second = problem.kinds[b];
  if (first.divided() || second.divided()) return false;
  if (first.mib < second.mib) return false;
  return std::all_of(problem.items.begin(), problem.items.end(),
                     [&](const Item& item) { return item.mib[a] <= item.mib[b]; });
}

// Choices of `count` GPUs as numbers of each kind.
class Choices {
 public:
  explicit Choices(const Problem& problem) : problem_(problem), have_(problem.kinds.size(), 0) {
    for (const uint32_t kind : problem.bins) ++have_[kind];
  }

  // `strongest`: those alone for which no other choice stands; else all, the smallest GPUs first.
  // At most k_most_choices; `complete` says whether that is all.
  std::vector<std::vector<uint32_t>> of(uint32_t count, bool strongest, bool& complete) const {
    std::vector<std::vector<uint32_t>> out;
    std::vector<uint32_t> taken(have_.size(), 0);
    complete = add(0, count, strongest, taken, out);
    if (!strongest)
      std::stable_sort(out.begin(), out.end(),
                       [&](const auto& a, const auto& b) { return room_of(a) < room_of(b); });
    return out;
  }

  std::vector<uint32_t> bins_of(std::vector<uint32_t> taken) const {
    std::vector<uint32_t> out;
    for (uint32_t bin = 0; bin < problem_.bins.size(); ++bin) {
      uint32_t& left = taken[problem_.bins[bin]];
      if (left == 0) continue;
      --left;
      out.push_back(bin);
    }
    return out;
  }

 private:
  uint64_t room_of(const std::vector<uint32_t>& taken) const {
    uint64_t room = 0;
    for (size_t k = 0; k < taken.size(); ++k) room += uint64_t{taken[k]} * problem_.kinds[k].mib;
    return room;
  }

  // A GPU that is not taken stands for one that is.
  bool is_weak(const std::vector<uint32_t>& taken) const {
    for (uint32_t a = 0; a < taken.size(); ++a)
      for (uint32_t b = 0; b < taken.size(); ++b) {
        if (a == b || taken[a] == have_[a] || taken[b] == 0) continue;
        if (!stands_for(problem_, a, b)) continue;
        if (!stands_for(problem_, b, a) || a < b) return true;
      }
    return false;
  }

  bool add(size_t kind, uint32_t count, bool strongest, std::vector<uint32_t>& taken,
           std::vector<std::vector<uint32_t>>& out) const {
    if (kind == have_.size()) {
      if (count != 0 || (strongest && is_weak(taken))) return true;
      if (out.size() == k_most_choices) return false;
      out.push_back(taken);
      return true;
    }
    for (uint32_t n = std::min(count, have_[kind]) + 1; n-- > 0;) {
      taken[kind] = n;
      const bool whole = add(kind + 1, count - n, strongest, taken, out);
      taken[kind] = 0;
      if (!whole) return false;
    }
    return true;
  }

  const Problem& problem_;
  std::vector<uint32_t> have_;
};

struct Counted {
  const Problem& problem;
  const std::vector<uint32_t>& items;
  Choices choices;
  uint64_t left;  // steps
};

// Whether `count` GPUs are enough; yes puts the assignment into `out`.
Fits enough(Counted& counted, uint32_t count, bool strongest, uint64_t each, Assignment& out) {
  bool complete = false;
  bool proved = true;
  for (const std::vector<uint32_t>& taken : counted.choices.of(count, strongest, complete)) {
    if (counted.left == 0) return Fits::unknown;
    const uint64_t before = out.nodes;
    const Fits fits = try_to_place(counted.problem, counted.items, counted.choices.bins_of(taken),
                                   0, std::min(each, counted.left), out);
    counted.left -= std::min(counted.left, out.nodes - before);
    if (fits == Fits::yes) return fits;
    proved = proved && fits == Fits::no;
  }
  return proved && complete ? Fits::no : Fits::unknown;
}

}  // namespace

Assignment fewest_bins(const Problem& problem, uint64_t node_limit) {
  Assignment out;
  const auto [items, least] = most_items(problem, node_limit / 2, out);
  out.fewest_used = fewest_bound(problem, items);
  const uint32_t first = out.fewest_used;
  if (!least) bound_any_choice(problem, items, out);
  Counted counted{problem, items, Choices(problem), node_limit / 2};
  bool proving = least;
  // Upwards: each number that is not enough is proved so, as long as the steps last.
  for (uint32_t count = first; count < out.used; ++count) {
    const Fits fits = enough(counted, count, true, node_limit / 8, out);
    if (fits == Fits::yes) break;
    proving = proving && fits == Fits::no;
    if (proving) out.fewest_used = count + 1;
  }
  // As many, but smaller ones: the large stay free for what is large.
  if (problem.kinds.size() > 1 && out.used > 0) {
    counted.left = node_limit / 8;
    (void)enough(counted, out.used, false, node_limit / 256, out);
  }
  return out;
}

Assignment most_headroom(const Problem& problem, uint64_t node_limit) {
  Assignment out;
  const auto [items, least] = most_items(problem, node_limit / 2, out);
  out.most_headroom = headroom_bound(problem, items);
  if (items.empty()) return out;
  take_assignment(problem, with_even_load(problem, items, out.bin_of), out);
  const std::vector<uint32_t> bins = all_bins(problem);
  uint32_t tried = out.most_headroom;  // the highest first, then halves
  for (uint64_t left = node_limit / 2; out.headroom < out.most_headroom && left > 0;) {
    const uint64_t before = out.nodes;
    const Fits fits =
        try_to_place(problem, items, bins, tried, std::max<uint64_t>(left / 8, 1), out);
    left -= std::min(left, out.nodes - before + 1);
    if (fits == Fits::no) out.most_headroom = tried - 1;
    if (fits == Fits::unknown && tried == out.headroom + 1) break;
    const uint32_t top = fits == Fits::unknown ? tried : out.most_headroom;
    tried = out.headroom + (top - out.headroom + 1) / 2;
  }
  if (!least) bound_any_choice(problem, items, out);
  return out;
}

}  // namespace cufit::pack
