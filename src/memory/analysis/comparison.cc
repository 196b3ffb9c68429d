// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/comparison.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace cufit::analysis {
namespace {

using memory::Snapshot;

// "models/gpt2.py forward"; of stacks without frames their kind.
std::string key_of(const Snapshot& snapshot, const Place& place) {
  if (place.frame == k_no_frame) return "\1";
  if (place.frame == k_not_python) return "\2";
  const memory::Frame& frame = snapshot.stacks.frame(place.frame);
  std::string_view file = snapshot.text(frame.filename);
  const size_t slash = file.rfind('/');
  const size_t folder =
      slash == std::string_view::npos || slash == 0 ? slash : file.rfind('/', slash - 1);
  if (folder != std::string_view::npos) file.remove_prefix(folder + 1);
  return std::string(file) + ' ' + std::string(snapshot.text(frame.name));
}

uint64_t magnitude(int64_t value) { return static_cast<uint64_t>(value < 0 ? -value : value); }

}  // namespace

std::vector<PlaceChange> place_changes(const Snapshot& a_snapshot, const Observation& a,
                                       const Snapshot& b_snapshot, const Observation& b) {
  std::map<std::string, PlaceChange> changes;
  // Sites come largest first, so a place is named by its largest line.
  for (const Site& site : a.peak.by_frame) {
    PlaceChange& change = changes[key_of(a_snapshot, site.place)];
    if (!change.has_a) change.in_a = site.place;
    change.has_a = true;
    change.a_bytes += site.bytes;
  }
  for (const Site& site : b.peak.by_frame) {
    PlaceChange& change = changes[key_of(b_snapshot, site.place)];
    if (!change.has_b) change.in_b = site.place;
    change.has_b = true;
    change.b_bytes += site.bytes;
  }
  std::vector<PlaceChange> out;
  for (const auto& [key, change] : changes) out.push_back(change);
  std::stable_sort(out.begin(), out.end(), [](const PlaceChange& x, const PlaceChange& y) {
    if (magnitude(x.grew_bytes()) != magnitude(y.grew_bytes()))
      return magnitude(x.grew_bytes()) > magnitude(y.grew_bytes());
    return x.grew_bytes() > y.grew_bytes();
  });
  return out;
}

}  // namespace cufit::analysis
