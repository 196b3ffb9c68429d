// SPDX-License-Identifier: Apache-2.0
// Runs whose result is known without a replay: those that are as another one, and the one that the
// verification has made already. Used by what_if.cc.
#pragma once

#include <cstddef>
#include <vector>

#include "memory/replay/what_if.h"

namespace cufit::memory {

// Takes out what cannot make a difference to this program: a max_split_size that no block reaches.
// The replay is then that of the settings without it.
void drop_idle_settings(const Program& program, Settings& settings);

// For each the first that gives the same result: itself or one before. All of one verified.
std::vector<size_t> first_alike(const std::vector<ReplayOptions>& options);

// The recorded settings, and no limit.
bool is_recorded_run(const VerifiedRecording& verified, const ReplayOptions& options);

// replay(), or what VerifiedRecording::verification found where that is the same run.
ReplayResult result_of(const VerifiedRecording& verified, const ReplayOptions& options);

}  // namespace cufit::memory
