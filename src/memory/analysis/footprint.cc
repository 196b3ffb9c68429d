// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/footprint.h"

#include "base/format.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace cufit::analysis {
namespace {

using memory::Frame;
using memory::Snapshot;

// Of the interpreter or an installed package.
bool is_installed(std::string_view file) {
  return contains(file, "site-packages/") || contains(file, "dist-packages/") ||
         contains(file, "/lib/python3") || file.empty() || file.front() == '<';
}

// Frames that every stack has and that tell nothing apart: torch itself, the interpreter's
// library, and wrappers of transformers and accelerate around each module's forward.
bool is_plumbing(std::string_view file) {
  if (!is_installed(file)) return false;
  constexpr std::string_view k_parts[] = {
      "-packages/torch/",          "-packages/accelerate/",       "/transformers/utils/",
      "/transformers/activations", "/transformers/pytorch_utils", "/transformers/modeling_layers",
  };
  for (const std::string_view part : k_parts)
    if (contains(file, part)) return true;
  return !contains(file, "-packages/");
}

}  // namespace

Footprint footprint_at(const Lifetimes& lifetimes, const std::vector<Category>& categories,
                       uint32_t event) {
  Footprint footprint{};
  for (size_t i = 0; i < lifetimes.rows.size(); ++i)
    if (is_allocated(lifetimes.rows[i], event))
      footprint[static_cast<size_t>(categories[i])] += lifetimes.rows[i].block_bytes;
  return footprint;
}

Place place_of(const Snapshot& snapshot, uint32_t stack) {
  Place place;
  if (stack == memory::k_no_stack) return place;
  const auto frames = snapshot.python_frames(stack);
  if (frames.empty()) return {k_not_python, k_no_frame};
  place.frame = frames.front();
  bool told = false;
  for (const uint32_t number : frames) {
    const std::string_view file = snapshot.text(snapshot.stacks.frame(number).filename);
    if (!told && !is_plumbing(file)) {
      place.frame = number;
      told = true;
    }
    if (is_installed(file)) continue;
    if (number != place.frame) place.caller = number;
    break;
  }
  return place;
}

std::vector<Site> sites_at(const Snapshot& snapshot, const Lifetimes& lifetimes,
                           const std::vector<Category>& categories, uint32_t event,
                           const std::vector<bool>* chosen) {
  std::unordered_map<uint32_t, Place> places;    // by stack
  std::unordered_map<uint32_t, size_t> site_of;  // by frame
  std::vector<Site> sites;
  for (size_t i = 0; i < lifetimes.rows.size(); ++i) {
    const Lifetime& row = lifetimes.rows[i];
    if (!is_allocated(row, event) || (chosen != nullptr && !(*chosen)[i])) continue;
    const auto [place, is_new_stack] = places.try_emplace(row.stack);
    if (is_new_stack) place->second = place_of(snapshot, row.stack);
    const auto [at, is_new] = site_of.try_emplace(place->second.frame, sites.size());
    if (is_new) sites.push_back({place->second, 0, 0, {}});
    Site& site = sites[at->second];
    site.bytes += row.block_bytes;
    site.by_category[static_cast<size_t>(categories[i])] += row.block_bytes;
    ++site.blocks;
  }
  std::sort(sites.begin(), sites.end(), [](const Site& a, const Site& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.place.frame < b.place.frame;
  });
  return sites;
}

}  // namespace cufit::analysis
