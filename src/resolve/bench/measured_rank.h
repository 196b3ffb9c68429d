// SPDX-License-Identifier: Apache-2.0
// Puts what `cufit bench` measured faster on a card before what it measured slower there.
#pragma once

#include <string>

#include "formats/bench/bench_file.h"
#include "resolve/wheel/resolve.h"

namespace cufit::resolve {

// Of the usable choices those that the file measured change places among themselves, where one was faster beyond the noise in
// some case and slower in none; all others stay. What needs cuda-compat stays behind what does not. False: the file says
// nothing of this answer (another GPU, or fewer than two of its choices).
bool rank_by(const formats::BenchFile& measured, const std::string& file, Answer& answer);

}  // namespace cufit::resolve
