// SPDX-License-Identifier: Apache-2.0
// The variables of a program ("NAME=value") under a limit of GPU memory. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/variables.h"
#include "resolve/quota/vram_size.h"

namespace cufit::commands {

using Variables = std::vector<std::string>;

void set_variable(Variables& variables, const std::string& name, const std::string& value);

// LD_PRELOAD: the guard first, what stands there after it, an older guard gone.
std::string preload_with(const std::string& guard, const std::string& before);

// Whether the user's own variables hold a fraction for torch.
bool has_torch_fraction(const Variables& variables);
// Beside what stands there, rounded down so that the limit holds; false where that leaves nothing, and nothing is set.
bool set_torch_fraction(Variables& variables, double fraction);

// A setting of torch's allocator beside what stands there ("name:value"), unless the user has one of that name, or another
// back end than torch's own.
void add_torch_setting(Variables& variables, const std::string& name, const std::string& value);

// CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, "0=10240M,1=4096M": by the process's own numbers of its GPUs, MiB. One number that it does
// not see, or a blank, and MPS holds none of them (measured, driver 580.159).
std::string mps_limits(const std::vector<uint64_t>& limits);

// CUDA_VISIBLE_DEVICES by UUID, which a server with other numbers understands as well; empty: one is not known.
std::string visible_by_uuid(const std::vector<resolve::QuotaCard>& cards);

}  // namespace cufit::commands
