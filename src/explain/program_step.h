// SPDX-License-Identifier: Apache-2.0
// The program decides how its memory is bounded: JAX has its preallocation, llama.cpp its context,
// a web UI its options. Where a cause of too little GPU memory has nothing to say but its general
// step, the step for the program that the text names is said: texts and rows of
// data/findings/program_memory.toml, which is no cause of its own.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "explain/explain.h"
#include "explain/setting.h"
#include "formats/prose/text_lines.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

// Sets Cause::step of the causes that it suits. After fill_captures(), with the same arguments.
void fill_program_steps(std::vector<Cause>& causes, std::span<const formats::TextLine> lines,
                        std::span<const std::string_view> clues, const facts::Facts& facts,
                        const knowledge::Knowledge& knowledge, const Setting& setting);

}  // namespace cufit::explain
