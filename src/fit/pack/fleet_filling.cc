// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/fleet_filling.h"

#include <algorithm>

#include "base/result.h"

namespace cufit::pack {

FleetFilling::FleetFilling(const FleetProblem& fleet) : fleet_(fleet) {
  for (uint32_t bin = 0; bin < fleet.problem.bins.size(); ++bin) {
    Bin state;
    state.left = kind(bin).mib;
    state.units = kind(bin).units;
    bins_.push_back(state);
    if (fleet.node_of[bin] >= bins_of_.size()) bins_of_.resize(fleet.node_of[bin] + 1);
    bins_of_[fleet.node_of[bin]].push_back(bin);
  }
}

bool FleetFilling::has_room(uint32_t item, uint32_t bin) const {
  const uint32_t mib = size(item, bin);
  const BinKind& of = kind(bin);
  if (mib == k_never || of.mib == 0) return false;
  if (!of.divided()) return mib <= bins_[bin].left;
  const size_t type = slot_of(of, mib);
  return type < of.slots.size() && of.slots[type].units <= bins_[bin].units &&
         slots_fit(of, bins_[bin].slots + one_slot(type));
}

std::vector<uint32_t> FleetFilling::room_for(uint32_t item, uint32_t node) const {
  std::vector<uint32_t> out;
  for (const uint32_t bin : bins_of_[node])
    if (has_room(item, bin)) out.push_back(bin);
  return out;
}

void FleetFilling::take(uint32_t item, uint32_t bin) {
  CUFIT_CHECK(has_room(item, bin), "no card is filled beyond what it has");
  Bin& state = bins_[bin];
  if (state.jobs++ == 0) ++used_;
  if (!kind(bin).divided()) {
    state.left -= size(item, bin);
    return;
  }
  const size_t type = slot_of(kind(bin), size(item, bin));
  state.slots += one_slot(type);
  state.units -= kind(bin).slots[type].units;
}

void FleetFilling::give_back(uint32_t item, uint32_t bin) {
  Bin& state = bins_[bin];
  if (--state.jobs == 0) --used_;
  if (!kind(bin).divided()) {
    state.left += size(item, bin);
    return;
  }
  const size_t type = slot_of(kind(bin), size(item, bin));
  state.slots -= one_slot(type);
  state.units += kind(bin).slots[type].units;
}

uint64_t FleetFilling::rest(uint32_t item, uint32_t bin) const {
  const BinKind& of = kind(bin);
  if (!of.divided()) return bins_[bin].left - size(item, bin);
  return uint64_t{bins_[bin].units - of.slots[slot_of(of, size(item, bin))].units} * of.mib /
         of.units;
}

bool FleetFilling::alike(uint32_t a, uint32_t b) const {
  const Bin& first = bins_[a];
  const Bin& second = bins_[b];
  return fleet_.problem.bins[a] == fleet_.problem.bins[b] && first.left == second.left &&
         first.slots == second.slots && (first.jobs == 0) == (second.jobs == 0);
}

uint32_t FleetFilling::headroom() const {
  uint32_t out = k_never;
  for (const Bin& bin : bins_)
    if (bin.jobs > 0) out = std::min(out, bin.left);
  return out == k_never ? 0 : out;
}

}  // namespace cufit::pack
