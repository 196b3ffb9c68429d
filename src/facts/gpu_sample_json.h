// SPDX-License-Identifier: Apache-2.0
// A sample as one line of JSON and back. What is absent, empty or false is left out; members that are not known are passed
// over, so that a later cufit may write more.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "facts/gpu_sample.h"

namespace cufit::facts {

constexpr size_t k_most_sample_bytes = 8u << 20;  // 64 GPUs with 10,000 processes have 5 MiB
constexpr size_t k_most_sampled_gpus = 512, k_most_sampled_processes = 20000;

std::string sample_to_json(const GpuSample& sample);  // without a line break
// Error{malformed}: no JSON, a member of another type (named), more than the bounds above.
Result<GpuSample> sample_from_json(std::string_view line);

}  // namespace cufit::facts
