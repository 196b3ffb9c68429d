// SPDX-License-Identifier: Apache-2.0
// Whether event files that were named together are traces of one program.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "formats/model/trace_events.h"

namespace cufit::fit {

// The first trace and one that cannot be of the same program: another script, no file of the user's
// in common, or other weights, all of them made at other lines. Traces of a script that was changed,
// of other batch sizes, ranks or variants pass.
struct TwoPrograms {
  size_t other = 0;
  std::string name, other_name;  // files; empty where they say none, or the same
};
std::optional<TwoPrograms> two_programs(std::span<const formats::TraceEvents> traces);

}  // namespace cufit::fit
