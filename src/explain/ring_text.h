// SPDX-License-Identifier: Apache-2.0
// The black box of a process as a text: a line for each of facts::ring_lines(), in English, in the words of the messages
// "explain.ring.*".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/prose/text_lines.h"
#include "formats/system/gpu_ring.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

std::string ring_text(const formats::GpuRing& ring, const knowledge::Knowledge& knowledge);

// A line of it, as it stands in a text: also pasted, with a time before it.
bool is_ring_line(std::string_view line);
// What begins the patterns that are made for such lines. No other pattern is asked of them: their words ("refusals", "GPU",
// "libraries") would speak for causes that nobody met.
constexpr std::string_view k_ring_mark = "cufit ring: ";
// The lines with those of black boxes empty; and those alone.
std::vector<formats::TextLine> without_ring(std::span<const formats::TextLine> lines);
std::vector<formats::TextLine> only_ring(std::span<const formats::TextLine> lines);

}  // namespace cufit::explain
