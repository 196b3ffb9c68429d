// SPDX-License-Identifier: Apache-2.0
// What a GPU can be divided into (data/mig.toml), as the search needs it and as NVIDIA names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fit/pack/bins.h"
#include "knowledge/knowledge.h"

namespace cufit::pack {

struct MigProfile {
  std::string name;  // "3g.40gb"
  uint32_t id = 0;   // for `nvidia-smi mig -cgi`
  uint32_t slices = 0, units = 0;
  std::vector<uint32_t> starts;
  uint32_t most = 0;     // at once
  uint32_t mib = 0;      // of an instance, as nvidia-smi says
  uint32_t usable = 0;   // less what it holds while empty
  uint32_t sm = 0;       // 0: not known
  bool seen = false;     // its memory was read on such a card; else a bound
  bool variant = false;  // with or without media engines or graphics: "+me", "-me", "+gfx"
};

struct MigCard {
  std::string gpu, driver;           // the first driver that divides it
  uint32_t units = 0, slices = 0;    // of the whole
  std::vector<MigProfile> profiles;  // in the order of the table
};

// nullopt: the table has no such GPU.
std::optional<MigCard> mig_card(std::string_view gpu, const knowledge::Knowledge& knowledge);

// Of the plain profiles: one slot for each number of units, with its most places.
BinKind divided_kind(const MigCard& card);

// An instance in its place.
struct MigInstance {
  const MigProfile* profile = nullptr;
  uint32_t start = 0;
};
// Instances for jobs that take `mib` each: the smallest that hold them, of equal size those with
// more compute where they have a place. nullopt: they do not fit together. In the order of the jobs.
std::optional<std::vector<MigInstance>> instances_for(const MigCard& card,
                                                      const std::vector<uint32_t>& mib);

}  // namespace cufit::pack
