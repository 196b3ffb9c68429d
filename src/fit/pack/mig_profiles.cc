// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/mig_profiles.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "fit/pack/slot_layout.h"

namespace cufit::pack {
namespace {

std::vector<uint32_t> numbers_of(std::string_view list) {
  std::vector<uint32_t> out;
  for (const std::string_view word : split(list, ' '))
    if (const std::optional<uint64_t> number = parse_uint(word))
      out.push_back(static_cast<uint32_t>(*number));
  std::sort(out.begin(), out.end());
  return out;
}

MigProfile profile_of(const knowledge::MigProfileRow& row, const knowledge::MigCardRow& card) {
  MigProfile out;
  out.name = std::string(row.name);
  out.id = static_cast<uint32_t>(row.id);
  out.slices = static_cast<uint32_t>(row.slices);
  out.units = static_cast<uint32_t>(row.size);
  out.starts = numbers_of(row.starts);
  out.most = static_cast<uint32_t>(row.most);
  out.mib = static_cast<uint32_t>(row.mib);
  out.usable = static_cast<uint32_t>(std::max<int64_t>(row.mib - card.empty_mib, 0));
  out.sm = static_cast<uint32_t>(row.sm);
  out.seen = row.basis == "seen";
  out.variant = row.name.find_first_of("+-") != std::string_view::npos;
  return out;
}

// The plain profiles that hold `mib` and are no larger than they need be.
std::vector<const MigProfile*> profiles_for(const MigCard& card, uint32_t mib) {
  uint32_t units = UINT32_MAX;
  for (const MigProfile& one : card.profiles)
    if (!one.variant && one.usable >= mib) units = std::min(units, one.units);
  std::vector<const MigProfile*> out;
  for (const MigProfile& one : card.profiles)
    if (!one.variant && one.units == units && one.usable >= mib) out.push_back(&one);
  // That with the most places first: from it the others are tried.
  std::stable_sort(out.begin(), out.end(), [](const MigProfile* a, const MigProfile* b) {
    return a->starts.size() > b->starts.size();
  });
  return out;
}

// Their starts, where they fit together: in memory, in compute, and not more than there may be.
std::optional<std::vector<uint32_t>> starts_of(const MigCard& card,
                                               const std::vector<const MigProfile*>& chosen) {
  std::vector<Extent> extents;
  uint32_t slices = 0;
  for (const MigProfile* one : chosen) {
    const auto same = std::count(chosen.begin(), chosen.end(), one);
    if (static_cast<uint32_t>(same) > one->most) return std::nullopt;
    slices += one->slices;
    extents.push_back({one->units, one->starts});
  }
  if (slices > card.slices) return std::nullopt;
  return lay_out(extents, card.units);
}

}  // namespace

std::optional<MigCard> mig_card(std::string_view gpu, const knowledge::Knowledge& knowledge) {
  const knowledge::MigCardRow* row = knowledge.find_mig_card(gpu);
  if (row == nullptr) return std::nullopt;
  MigCard out;
  out.gpu = std::string(gpu);
  out.driver = std::string(row->driver);
  for (const knowledge::MigProfileRow& profile : knowledge.mig_profiles) {
    if (profile.table != row->table) continue;
    out.profiles.push_back(profile_of(profile, *row));
    out.units = std::max(out.units, out.profiles.back().units);
    out.slices = std::max(out.slices, out.profiles.back().slices);
  }
  if (out.profiles.empty()) return std::nullopt;
  return out;
}

BinKind divided_kind(const MigCard& card) {
  BinKind kind;
  kind.units = card.units;
  for (const MigProfile& one : card.profiles) {
    kind.mib = std::max(kind.mib, one.usable);
    if (one.variant) continue;
    const auto same = std::find_if(kind.slots.begin(), kind.slots.end(),
                                   [&](const SlotType& slot) { return slot.units == one.units; });
    const SlotType slot{one.usable, one.units, one.starts, one.most};
    if (same == kind.slots.end())
      kind.slots.push_back(slot);
    else if (slot.starts.size() > same->starts.size())
      *same = slot;
  }
  std::stable_sort(kind.slots.begin(), kind.slots.end(),
                   [](const SlotType& a, const SlotType& b) { return a.mib < b.mib; });
  if (kind.slots.size() > k_most_slot_types) kind.slots.resize(k_most_slot_types);
  return kind;
}

std::optional<std::vector<MigInstance>> instances_for(const MigCard& card,
                                                      const std::vector<uint32_t>& mib) {
  std::vector<std::vector<const MigProfile*>> fitting;
  std::vector<const MigProfile*> chosen;
  for (const uint32_t one : mib) {
    fitting.push_back(profiles_for(card, one));
    if (fitting.back().empty()) return std::nullopt;
    chosen.push_back(fitting.back().front());
  }
  std::optional<std::vector<uint32_t>> starts = starts_of(card, chosen);
  if (!starts) return std::nullopt;
  // More compute at the same memory, for the largest jobs first.
  std::vector<size_t> order(mib.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return mib[a] > mib[b]; });
  for (const size_t job : order)
    for (const MigProfile* other : fitting[job]) {
      const MigProfile* before = chosen[job];
      if (other->slices <= before->slices) continue;
      chosen[job] = other;
      if (std::optional<std::vector<uint32_t>> moved = starts_of(card, chosen))
        starts = std::move(moved);
      else
        chosen[job] = before;
    }
  std::vector<MigInstance> out;
  for (size_t i = 0; i < chosen.size(); ++i) out.push_back({chosen[i], (*starts)[i]});
  return out;
}

}  // namespace cufit::pack
