// SPDX-License-Identifier: Apache-2.0
#include "checks/file_driver.h"

#include <algorithm>

#include "base/format.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

// Their soname counts CUDA majors ("libcudart.so.11.0"); libcufft's and libcusparse's do not.
constexpr const char* k_counts_cuda[] = {"libcudart.so.", "libcublas.so.", "libcublasLt.so.",
                                         "libnvrtc.so.", "libnvJitLink.so."};

std::optional<uint32_t> soname_major(const std::string& soname) {
  for (const char* prefix : k_counts_cuda) {
    if (!starts_with(soname, prefix)) continue;
    const auto version = parse_version(soname.substr(std::string_view(prefix).size()));
    if (version && version->part(0) >= 9) return version->part(0);
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint32_t> linked_cuda(const std::vector<std::string>& needed) {
  std::optional<uint32_t> newest;
  for (const std::string& soname : needed)
    if (const auto major = soname_major(soname); major && (!newest || *major > *newest))
      newest = major;
  return newest;
}

FileDriver file_driver(const std::vector<std::string>& needed, ComputeCapability device,
                       const std::optional<Version>& driver,
                       const knowledge::Knowledge& knowledge) {
  FileDriver out;
  const knowledge::DriverWindow* window = knowledge.find_window(device);
  const std::optional<uint32_t> cuda = linked_cuda(needed);
  const std::optional<Version> floor = cuda ? knowledge.family_floor(*cuda) : std::nullopt;
  const uint32_t first = window != nullptr ? window->first_branch : 0;
  out.last = window != nullptr ? window->last_branch : 0;
  out.cuda = cuda.value_or(0);
  out.branch = std::max(first, floor ? floor->part(0) : 0);
  if (out.last != 0 && out.branch > out.last) {
    out.fit = FileDriver::Fit::never;
    out.branch = 0;
    return out;
  }
  if (!driver)
    out.fit = FileDriver::Fit::unknown;
  else if (out.last != 0 && driver->part(0) > out.last)
    out.fit = FileDriver::Fit::gpu_dropped;
  else if (driver->part(0) < first)
    out.fit = FileDriver::Fit::gpu_older;
  else if (floor && !at_least(*driver, *floor))
    out.fit = FileDriver::Fit::cuda_too_new;
  return out;
}

}  // namespace cufit::checks
