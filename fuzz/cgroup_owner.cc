// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/prose/printable.h"
#include "formats/system/cgroup_owner.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  const CgroupOwner owner =
      parse_cgroup_owner(std::string_view(reinterpret_cast<const char*>(data), size));
  // All of it goes to screens and labels.
  for (const std::string* text : {&owner.runtime, &owner.container, &owner.container_name,
                                  &owner.pod_uid, &owner.slurm_job, &owner.slurm_step, &owner.unit})
    if (text->size() > 128 || printable(*text) != *text) __builtin_trap();
  if (!owner.container.empty() && !is_container_id(owner.container)) __builtin_trap();
  if (owner.slurm_job.empty() && !owner.slurm_step.empty()) __builtin_trap();
  return 0;
}
