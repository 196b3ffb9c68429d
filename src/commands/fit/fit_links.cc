// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_links.h"

#include "base/format.h"
#include "host/files/recording.h"

namespace cufit::commands {
namespace {

// No link is slower or faster: what stands outside was written by hand.
constexpr double k_least_rate = 1e6, k_most_rate = 1e14;

}  // namespace

Result<fit::MeasuredLinks> measured_links(const host::Host& files, const std::string& path) {
  CUFIT_TRY(facts, host::load_facts(files, path));
  const facts::TogetherFacts& together = facts.together;
  const double rate = together.bus_bytes_per_second ? *together.bus_bytes_per_second : 0;
  if (!together.sum || *together.sum != "ok" || together.ranks < 2 ||
      !(rate >= k_least_rate && rate <= k_most_rate))
    return fail(Code::usage,
                format("`--links {}`: no sum over several GPUs was measured there; on the machine "
                       "that trains: cufit doctor --deep --record FILE",
                       path));
  fit::MeasuredLinks out{rate, together.ranks, "", path};
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus)
    if (out.gpu.empty() && gpu.name) out.gpu = *gpu.name;
  return out;
}

}  // namespace cufit::commands
