// SPDX-License-Identifier: Apache-2.0
// What a refused installation and the name of a wheel say, as arguments of a step.
#pragma once

#include <map>
#include <span>
#include <string>

#include "formats/prose/text_lines.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

// Adds to `args`:
//   indexed_torch ("2.1.2+cu121"), indexed_tag ("cu121"): what was asked for exists, and pip was
//   offered the same release without its CUDA tag, so only the index is wrong and not the Python;
//   other_index_tag ("cu121"): it exists, and was not offered even without its tag;
//   abi_wheel: the wheel that the text names, with the other C++ ABI in its name.
void add_wheel_args(std::map<std::string, std::string>& args,
                    std::span<const formats::TextLine> lines,
                    const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
