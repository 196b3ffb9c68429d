// SPDX-License-Identifier: Apache-2.0
// What `cufit resolve` says of an index's wheel variants.
#pragma once

#include <string>
#include <vector>

#include "report/resolve.h"

namespace cufit::report {

// Sentences about answer `i`, printable; none where the index has no variants.
std::vector<std::string> variant_sentences(const ResolveView& view, size_t i,
                                           std::string_view lang);

// The command that takes the wheel variant of an answer for which no ordinary wheel is there; empty:
// the index has none for it.
std::string variant_step(const ResolveView& view, const resolve::Answer& answer);

}  // namespace cufit::report
