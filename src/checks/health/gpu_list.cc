// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "checks/health/health.h"

namespace cufit::checks {
namespace {

constexpr uint64_t k_most_index = 1023;
constexpr std::string_view k_node = "/dev/nvidia";

Error no_list(const std::string& list) {
  return fail(Code::usage,
              format("`--gpus {}` is no list of GPUs, as \"0,3\", \"0-3\", \"GPU-1a2b\" or "
                     "\"/dev/nvidia0\"",
                     list));
}

Result<uint32_t> gpu_of_uuid(std::string_view word, const facts::Facts& facts) {
  std::optional<uint32_t> found;
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus) {
    if (!gpu.uuid || !starts_with(*gpu.uuid, word)) continue;
    if (found)
      return fail(Code::usage, format("`--gpus`: the UUIDs of several GPUs begin with `{}`", word));
    found = gpu.index;
  }
  if (found) return *found;
  return fail(Code::usage, format("`--gpus`: no GPU here has the UUID `{}`", word));
}

// The GPU of that minor number; NVML's own number where no GPU says one.
uint32_t gpu_of_minor(uint32_t minor, const facts::Facts& facts) {
  bool told = false;
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus) {
    if (gpu.minor && *gpu.minor == minor) return gpu.index;
    told = told || gpu.minor;
  }
  return told ? k_no_such_gpu : minor;
}

// "0", "0-3".
bool add_range(std::string_view word, std::vector<uint32_t>& out) {
  const size_t dash = word.find('-');
  const std::optional<uint64_t> first = parse_uint(word.substr(0, dash));
  const std::optional<uint64_t> last =
      dash == std::string_view::npos ? first : parse_uint(word.substr(dash + 1));
  if (!first || !last || *last < *first || *last > k_most_index) return false;
  for (uint64_t index = *first; index <= *last; ++index)
    out.push_back(static_cast<uint32_t>(index));
  return true;
}

}  // namespace

Result<std::vector<uint32_t>> gpus_of_list(const std::string& list, const facts::Facts& facts) {
  std::vector<uint32_t> out;
  for (const std::string_view part : split(list, ',')) {
    const std::string_view word = trim(part);
    if (starts_with(word, "GPU-")) {
      CUFIT_TRY(index, gpu_of_uuid(word, facts));
      out.push_back(index);
    } else if (starts_with(word, k_node)) {
      const std::optional<uint64_t> minor = parse_uint(word.substr(k_node.size()));
      if (!minor || *minor > k_most_index) return no_list(list);
      out.push_back(gpu_of_minor(static_cast<uint32_t>(*minor), facts));
    } else if (!add_range(word, out)) {
      return no_list(list);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace cufit::checks
