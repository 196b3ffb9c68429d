// SPDX-License-Identifier: Apache-2.0
// Takes out of samples who and where somebody is, for a recording that may be given away: UUIDs, users, commands but for the
// program's name, names of containers, pods, jobs, units, environments and quotas. Equal things stay equal, also between the
// samples of one recording.
#pragma once

#include <map>
#include <string>

#include "facts/gpu_sample.h"

namespace cufit::facts {

class SampleRedactor {
 public:
  void redact(GpuSample& sample);

 private:
  // "user" and a number by the order in which they came.
  std::string numbered(const char* kind, const std::string& name);
  void redact_owner(ProcessOwner& owner);

  std::map<std::string, std::map<std::string, size_t>> seen_;
};

}  // namespace cufit::facts
