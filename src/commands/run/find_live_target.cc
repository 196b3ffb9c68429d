// SPDX-License-Identifier: Apache-2.0
#include "commands/run/find_live_target.h"

#include "host/driver/answer_cache.h"
#include "host/driver/gpu_access.h"
#include "host/probe.h"

namespace cufit::commands {
namespace {

using resolve::LiveTarget;

facts::Facts pci_bus(const host::Host& host) {
  facts::Facts bus;
  host::read_pci(host, bus);
  return bus;
}

void ask_driver(const host::Host& host, const LiveOptions& options, facts::Facts& answer) {
  host::ProbeOptions probe;
  probe.driver_depth = host::DriverDepth::identity;
  probe.driver_timeout_seconds = options.driver_timeout_seconds;
  host::read_driver_answers(host, probe, answer);
}

// The kept answer, or the driver's own. No launch is refused for what was: a kept answer that is
// unclear is asked again.
LiveTarget answered_target(const host::Host& host, const LiveOptions& options,
                           const facts::GpuAccess& access, const knowledge::Knowledge& knowledge) {
  const host::AnswerCache cache(host);
  const std::string key = host::visibility_key(host, access);
  facts::Facts answer;
  answer.pci = access.facts.pci;  // how many GPUs there are decides how long the driver may take
  LiveTarget out;
  if (cache.load(key, host::boot_seconds(), answer)) {
    out = resolve::target_from_answer(access, answer, knowledge);
    out.by = LiveTarget::By::cache;
    if (out.sight != LiveTarget::Sight::unclear) return out;
  }
  if (!options.may_ask_driver) {
    out = LiveTarget();
    out.sight = LiveTarget::Sight::not_told;
    return out;
  }
  ask_driver(host, options, answer);
  // A cache that cannot be written costs time at the next launch and nothing else.
  (void)cache.save(key, host::boot_seconds(), answer);
  out = resolve::target_from_answer(access, std::move(answer), knowledge);
  out.by = LiveTarget::By::driver;
  return out;
}

}  // namespace

LiveTarget find_live_target(const host::Host& host, const LiveOptions& options,
                            const knowledge::Knowledge& knowledge) {
  const facts::GpuAccess access = host::read_gpu_access(host);
  const facts::Visibility visible = facts::visible_gpus(access);
  const std::string ask = resolve::reason_to_ask(access, visible, knowledge);
  if (ask.empty())
    return resolve::target_from_files(
        access, visible, [&] { return pci_bus(host); }, knowledge);
  LiveTarget out = answered_target(host, options, access, knowledge);
  out.asked_because = ask;
  return out;
}

}  // namespace cufit::commands
