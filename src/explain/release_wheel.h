// SPDX-License-Identifier: Apache-2.0
// The prebuilt file of flash-attn that fits the torch and Python of a text.
#pragma once

#include <map>
#include <string>

#include "facts/facts.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

// Adds `flash_wheel`, the address of the file in the project's releases (Linux, x86_64), where the
// text names torch with its variant and Python (`fa_minor`, or as a fact), and the tables know one.
void add_release_wheel(std::map<std::string, std::string>& args, const facts::Facts& facts,
                       const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
