// SPDX-License-Identifier: Apache-2.0
// The processes that NVML lists for one GPU. A part of nvml_query.cc: the versions of this one call
// differ so much that they fill a file.
#pragma once

#include <vector>

#include "host/driver/driver_calls.h"
#include "facts/facts.h"
#include "host/driver/nvml_api.h"

namespace cufit::host {

enum class ProcessNames { ask, leave_out };
Fact<std::vector<facts::GpuProcess>> read_processes(DriverCalls& calls, nvml::Device device,
                                                    ProcessNames names = ProcessNames::ask);

// How many bytes one entry takes, from where the library stopped writing in a buffer of
// k_process_fill bytes: 16, 24 or 32, or 0 when the bytes fit none of them. For `count` > 0
// entries.
size_t process_stride(const std::vector<unsigned char>& buffer, size_t count);
constexpr unsigned char k_process_fill =
    0xA5;  // top byte neither of a size (0) nor of "not available" (FF)

}  // namespace cufit::host
