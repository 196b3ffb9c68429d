// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/bin_search.h"

#include <algorithm>
#include <tuple>

namespace cufit::pack {
namespace {

constexpr size_t k_most_failed_states = size_t{1} << 19;  // 16 MB
constexpr uint64_t k_whole_bin = uint64_t{1} << 32;       // shares are parts of it

uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint32_t largest_mib(const std::vector<uint32_t>& sizes) {
  uint32_t most = 0;
  for (const uint32_t mib : sizes)
    if (mib != k_never) most = std::max(most, mib);
  return most;
}

}  // namespace

BinSearch::BinSearch(const Problem& problem, std::vector<uint32_t> items)
    : problem_(problem), items_(std::move(items)), layouts_(problem.kinds.size()) {
  prepare();
  measure();
}

void BinSearch::prepare() {
  for (const Item& item : problem_.items) {
    sizes_.push_back(item.mib);
    for (size_t k = 0; k < problem_.kinds.size(); ++k) {
      const BinKind& kind = problem_.kinds[k];
      if (!kind.divided()) continue;
      const size_t type = slot_of(kind, item.mib[k]);
      sizes_.back()[k] = type == kind.slots.size() ? k_never : kind.slots[type].mib;
    }
  }
  std::stable_sort(items_.begin(), items_.end(), [&](uint32_t a, uint32_t b) {
    return std::tuple(largest_mib(sizes_[b]), sizes_[b]) <
           std::tuple(largest_mib(sizes_[a]), sizes_[a]);
  });
  for (size_t i = 0; i < items_.size(); ++i)
    same_as_before_.push_back(i > 0 && sizes_[items_[i]] == sizes_[items_[i - 1]]);
  for (const BinKind& kind : problem_.kinds) uniform_ = uniform_ && !kind.divided();
  for (const uint32_t item : items_)
    for (const uint32_t mib : sizes_[item]) uniform_ = uniform_ && mib == sizes_[item][0];
}

// From the last item to the first, what the items from there on take at least.
void BinSearch::measure() {
  const size_t kinds = problem_.kinds.size();
  least_mib_.assign(items_.size() + 1, 0);
  least_share_.assign(items_.size() + 1, 0);
  smallest_.assign(items_.size() + 1, std::vector<uint32_t>(kinds, k_never));
  for (size_t i = items_.size(); i-- > 0;) {
    smallest_[i] = smallest_[i + 1];
    uint64_t mib = UINT64_MAX, share = UINT64_MAX;
    for (size_t k = 0; k < kinds; ++k) {
      const BinKind& kind = problem_.kinds[k];
      const uint32_t here = size(items_[i], static_cast<uint32_t>(k));
      if (here == k_never || kind.mib == 0) continue;
      const uint64_t part = kind.divided()
                                ? kind.slots[slot_of(kind, here)].units * k_whole_bin / kind.units
                                : here * k_whole_bin / kind.mib;
      // The slots of a divided GPU can be larger together than the largest one is.
      mib = std::min<uint64_t>(mib, kind.divided() ? 0 : here);
      share = std::min(share, part);
      smallest_[i][k] = std::min(smallest_[i][k], here);
    }
    // An item that fits nowhere: more than there can be.
    least_mib_[i] = mib == UINT64_MAX ? k_whole_bin * 64 : least_mib_[i + 1] + mib;
    least_share_[i] = share == UINT64_MAX ? k_whole_bin * 64 : least_share_[i + 1] + share;
  }
}

bool BinSearch::open_bins(const std::vector<uint32_t>& bins, uint32_t reserve) {
  states_.clear();
  for (const uint32_t bin : bins) {
    State state;
    state.bin = bin;
    state.kind = problem_.bins[bin];
    const BinKind& kind = problem_.kinds[state.kind];
    if (kind.mib < reserve) continue;  // it stays empty
    state.left = kind.mib - reserve;
    state.units = kind.units;
    states_.push_back(state);
  }
  return !states_.empty() || items_.empty();
}

Fits BinSearch::run(const std::vector<uint32_t>& bins, uint32_t reserve, uint64_t node_limit) {
  failed_.clear();
  bin_of_.assign(problem_.items.size(), k_no_bin);
  stop_at_ = nodes_ + node_limit;
  if (!open_bins(bins, reserve)) return Fits::no;
  return place(0, 0);
}

bool BinSearch::layout_fits(uint32_t kind, SlotCounts counts) const {
  const auto [found, fresh] = layouts_[kind].try_emplace(counts, false);
  if (fresh) found->second = slots_fit(problem_.kinds[kind], counts);
  return found->second;
}

bool BinSearch::can_take(const State& state, uint32_t item) const {
  const uint32_t mib = size(item, state.kind);
  if (mib == k_never || mib > state.left) return false;
  const BinKind& kind = problem_.kinds[state.kind];
  if (!kind.divided()) return true;
  const size_t type = slot_of(kind, mib);
  return kind.slots[type].units <= state.units &&
         layout_fits(state.kind, state.slots + one_slot(type));
}

void BinSearch::take(State& state, uint32_t item) const {
  const BinKind& kind = problem_.kinds[state.kind];
  const uint32_t mib = size(item, state.kind);
  if (!kind.divided()) {
    state.left -= mib;
    return;
  }
  const size_t type = slot_of(kind, mib);
  state.slots += one_slot(type);
  state.units -= kind.slots[type].units;
}

// By what the items to come take at least: together no more than what is left and of use to one.
bool BinSearch::enough_room(size_t next) const {
  uint64_t mib = 0, share = 0;
  for (const State& state : states_) {
    if (state.left < smallest_[next][state.kind]) continue;
    const BinKind& kind = problem_.kinds[state.kind];
    mib += state.left;
    share += kind.divided() ? (state.units * k_whole_bin + kind.units - 1) / kind.units
                            : (state.left * k_whole_bin + kind.mib - 1) / kind.mib;
  }
  return least_mib_[next] <= mib && least_share_[next] <= share;
}

// 128 bits of the state, the order of GPUs left out.
BinSearch::Key BinSearch::key_of(size_t next) const {
  Key key{mixed(next), mixed(next + 0x1234567)};
  for (const State& state : states_) {
    const uint64_t one = mixed((uint64_t{state.kind} << 32 | state.left) ^ mixed(state.slots));
    key.a += mixed(one);
    key.b += mixed(one ^ 0x5bd1e995973a1f2bu);
  }
  return key;
}

// `not_before`: the place among states_ from which on the item may go, of an item that is as the one
// before.
Fits BinSearch::place(size_t next, size_t not_before) {
  if (next == items_.size()) return Fits::yes;
  if (++nodes_ > stop_at_) return Fits::unknown;
  if (!enough_room(next)) return Fits::no;
  const Key key = key_of(next);
  if (failed_.count(key) != 0) return Fits::no;

  const uint32_t item = items_[next];
  std::vector<size_t> choices;
  for (size_t i = not_before; i < states_.size(); ++i) {
    if (!can_take(states_[i], item)) continue;
    const bool seen = std::any_of(choices.begin(), choices.end(), [&](size_t other) {
      const State& a = states_[i];
      const State& b = states_[other];
      return a.kind == b.kind && a.left == b.left && a.slots == b.slots;
    });
    if (!seen) choices.push_back(i);
  }
  // What is left then, of a divided GPU in parts of it.
  const auto rest = [&](size_t i) -> uint64_t {
    const State& state = states_[i];
    const BinKind& kind = problem_.kinds[state.kind];
    if (kind.divided()) return uint64_t{state.units} * kind.mib / kind.units;
    return state.left - size(item, state.kind);
  };
  std::stable_sort(choices.begin(), choices.end(),
                   [&](size_t a, size_t b) { return rest(a) < rest(b); });
  // What else that GPU could get goes to where the item would have gone. The order of equal items
  // ends there: the next may lie before it.
  const bool fills = uniform_ && !choices.empty() && rest(choices[0]) == 0;
  if (fills) choices.resize(1);

  bool ran_out = false;
  for (const size_t i : choices) {
    const State before = states_[i];
    take(states_[i], item);
    bin_of_[item] = before.bin;
    const bool same = !fills && next + 1 < items_.size() && same_as_before_[next + 1];
    const Fits found = place(next + 1, same ? i : 0);
    if (found == Fits::yes) return found;
    states_[i] = before;
    bin_of_[item] = k_no_bin;
    ran_out = ran_out || found == Fits::unknown;
    if (nodes_ > stop_at_) return Fits::unknown;
  }
  if (ran_out) return Fits::unknown;
  // What an order of equal items cut short says nothing of the whole state.
  if (not_before == 0 && failed_.size() < k_most_failed_states) failed_.insert(key);
  return Fits::no;
}

}  // namespace cufit::pack
