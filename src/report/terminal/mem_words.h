// SPDX-License-Identifier: Apache-2.0
// How the reports on memory write sizes, counts and places in a program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "memory/analysis/footprint.h"
#include "knowledge/knowledge.h"
#include "memory/replay/verified_recording.h"

namespace cufit::report {

std::string gib(uint64_t bytes);         // "1.89 GiB", "24.8 MiB", "0.5 KiB"
std::string thousands(uint64_t number);  // "4,428"
std::string right(const std::string& text, int width);

// The settings that a run was recorded with, "default" for none; where they could not be read, what
// they are taken for as well.
std::string recorded_settings_words(const memory::VerifiedRecording& verified,
                                    const knowledge::Knowledge& knowledge, std::string_view lang);

// That it met a limit and lived; of a recording with met_limit.
std::string met_limit_words(const memory::VerifiedRecording& verified,
                            const knowledge::Knowledge& knowledge, std::string_view lang);

// "modeling_gpt2.py:240 forward".
std::string frame_text(const memory::Snapshot& snapshot, uint32_t frame);

}  // namespace cufit::report
