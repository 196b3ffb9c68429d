// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_links.h"

#include "base/format.h"
#include "host/files/recording.h"

namespace cufit::commands {
namespace {

// No link is slower or faster: what stands outside was written by hand.
constexpr double k_least_rate = 1e6, k_most_rate = 1e14;

// What `together` of a recording lacks of a rate that was measured; empty: nothing.
std::string lack_of(const facts::TogetherFacts& together) {
  if (!together.sum && !together.bus_bytes_per_second && together.ranks < 2)
    return "no `together`: no sum over several GPUs was measured there";
  if (!together.sum) return "`together.sum` is missing: `ok` where the sums were right";
  if (*together.sum != "ok")
    return format("`together.sum` is `{}`, not `ok`: a rate of wrong sums says nothing",
                  *together.sum);
  if (together.ranks < 2)
    return format("`together.ranks` is {}: a sum goes over two GPUs or more", together.ranks);
  if (!together.bus_bytes_per_second)
    return "`together.bus_bytes_per_second` is missing: bytes per second of each GPU";
  const double rate = *together.bus_bytes_per_second;
  if (rate >= k_least_rate && rate <= k_most_rate) return {};
  return format("`together.bus_bytes_per_second` is {:.4g}: bytes per second of each GPU, from "
                "{:.0e} to {:.0e}",
                rate, k_least_rate, k_most_rate);
}

}  // namespace

Result<fit::MeasuredLinks> measured_links(const host::Host& files, const std::string& path) {
  CUFIT_TRY(facts, host::load_facts(files, path));
  const facts::TogetherFacts& together = facts.together;
  if (const std::string lack = lack_of(together); !lack.empty())
    return fail(Code::usage,
                format("`--links {}`: {}; on the machine that trains: cufit doctor --deep "
                       "--record FILE",
                       path, lack));
  fit::MeasuredLinks out{*together.bus_bytes_per_second, together.ranks, "", path};
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus)
    if (out.gpu.empty() && gpu.name) out.gpu = *gpu.name;
  return out;
}

}  // namespace cufit::commands
