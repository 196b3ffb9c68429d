// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "checks/health/health.h"

namespace cufit::checks {
namespace {

constexpr uint64_t k_most_index = 1023;

Result<uint32_t> gpu_of_uuid(std::string_view word, const facts::Facts& facts) {
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus)
    if (gpu.uuid && starts_with(*gpu.uuid, word)) return gpu.index;
  return fail(Code::usage, format("`--gpus`: no GPU here has the UUID `{}`", word));
}

}  // namespace

Result<std::vector<uint32_t>> gpus_of_list(const std::string& list, const facts::Facts& facts) {
  std::vector<uint32_t> out;
  for (const std::string_view part : split(list, ',')) {
    const std::string_view word = trim(part);
    if (starts_with(word, "GPU-")) {
      CUFIT_TRY(index, gpu_of_uuid(word, facts));
      out.push_back(index);
      continue;
    }
    const size_t dash = word.find('-');
    const std::optional<uint64_t> first = parse_uint(word.substr(0, dash));
    const std::optional<uint64_t> last =
        dash == std::string_view::npos ? first : parse_uint(word.substr(dash + 1));
    if (!first || !last || *last < *first || *last > k_most_index)
      return fail(
          Code::usage,
          format("`--gpus {}` is no list of GPUs, as \"0,3\", \"0-3\" or \"GPU-1a2b\"", list));
    for (uint64_t index = *first; index <= *last; ++index)
      out.push_back(static_cast<uint32_t>(index));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace cufit::checks
