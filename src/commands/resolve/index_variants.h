// SPDX-License-Identifier: Apache-2.0
// The table of wheel variants (torch-VERSION-variants.json) that an index has of the newest torch that
// is asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/resolve/newer_torch.h"
#include "formats/python/wheel_variants.h"

namespace cufit::commands {

struct IndexVariants {
  std::string torch;  // "2.8.0"
  std::string url;    // without a password
  formats::WheelVariants table;
};

// nullopt: no page lists one. Error: it could not be fetched or read.
Result<std::optional<IndexVariants>> read_index_variants(
    const std::vector<HeardPage>& pages, const std::vector<formats::Requirement>& requirements,
    host::Interrupts& interrupts);

}  // namespace cufit::commands
