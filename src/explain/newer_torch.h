// SPDX-License-Identifier: Apache-2.0
// A name that only a newer torch has: "module 'torch' has no attribute 'float8_e8m0fnu'"; a package
// that asks for a newer one: "Disabling PyTorch because PyTorch >= 2.4 is required but found 2.1.2".
#pragma once

#include <map>
#include <span>
#include <string>

#include "facts/facts.h"
#include "formats/prose/text_lines.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

// Adds `torch_name` and `first_torch` ("2.7") of a name that the text misses, and where the variant
// of its torch is known `newer_torch`, `newer_tag`, `newer_vision`, `newer_audio`: the last patch of
// that release in a variant of the same CUDA major. `torch_have`: the text's torch has the name.
// Of a package that asks: `floor_torch` ("2.4"), `found_torch`, `package_below` ("5.0": releases below it
// take the torch that is there) and the newer torch as above.
void add_newer_torch(std::map<std::string, std::string>& args,
                     std::span<const formats::TextLine> lines, const facts::Facts& facts,
                     const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
