// SPDX-License-Identifier: Apache-2.0
// Names of the text that no single pattern can take out of it, as arguments of a step: what somebody
// tried to install, and the file of his own that hides a package.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "explain/oom_clues.h"
#include "formats/prose/text_lines.h"

namespace cufit::explain {

// "own_module_file": a traceback goes through a file whose name is a package's.
std::optional<ComputedClue> own_module_file(std::span<const formats::TextLine> lines);

// Adds `wanted`: what the text's last `pip install` named, as it can be typed ("'torch>=2.6' vllm"),
// and `shadow_path`, `shadow_new`, `shadow_dir` of that file. Only what a shell takes as it stands.
void add_text_args(std::map<std::string, std::string>& args,
                   std::span<const formats::TextLine> lines);

}  // namespace cufit::explain
