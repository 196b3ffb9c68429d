// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/live_samples.h"

#include <algorithm>

#include "formats/system/kernel_log.h"
#include "host/driver/gpu_access.h"
#include "host/process/process_owner.h"

namespace cufit::commands {

LiveSamples::LiveSamples(const Context& context, double interval_seconds)
    : machine_(context.machine),
      sampler_(context.machine, {.library_dir = {}, .interval_seconds = interval_seconds}) {
  kubelet_.ask(machine_);
  read_missed_xids();  // while the driver is asked the first time
}

// What the sampler did not count: what was before it, and what came while its child did not ask or hung, which is when
// the worst ones come.
void LiveSamples::read_missed_xids() {
  const Result<std::string> log = machine_.kernel_log();
  no_log_ = log ? std::string() : log.error().what;
  if (!log) return;
  std::map<std::pair<std::string, uint32_t>, uint64_t> logged;
  for (const formats::Xid& xid : formats::parse_kernel_log(*log).xids)
    logged[{xid.pci, xid.number}] += xid.count;
  for (const facts::SampledXid& xid : sampler_.newest().xids) {
    const auto at = logged.find({xid.pci, xid.number});
    if (at != logged.end()) at->second -= std::min(at->second, xid.count);
  }
  for (const auto& [where, count] : logged) {
    uint64_t& past = missed_xids_[where];
    past = std::max(past, count);
  }
}

void LiveSamples::name_pods() {
  kubelet_.ask(machine_);
  const host::PodAnswer& answer = kubelet_.newest();
  if (answer.number != pod_answer_)
    pod_names_.take(answer.pods, answer.asked, host::read_gpu_minors(machine_));
  pod_answer_ = answer.number;
  pod_names_.set_problem(answer.problem);
  pod_names_.name(newest_, [&](uint32_t pid) {
    const host::KeptOwner* kept = names_.kept(pid);
    return kept == nullptr ? std::string() : kept->hostname;
  });
}

bool LiveSamples::wait(double seconds) {
  const bool changed = sampler_.wait(seconds);
  if (sampler_.newest().stalled_seconds) asks_log_ = true;
  if (!changed) {
    newest_.stalled_seconds = sampler_.newest().stalled_seconds;
    newest_.stalled_call = sampler_.newest().stalled_call;
    newest_.stalled_end = sampler_.newest().stalled_end;
    return false;
  }
  newest_ = sampler_.newest();
  if (asks_log_ && !newest_.stalled_seconds) {
    read_missed_xids();
    asks_log_ = false;
  }
  for (facts::SampledProcess& process : newest_.processes)
    process.owner = host::read_process_owner(machine_, process.pid, names_);
  name_pods();
  std::map<std::pair<std::string, uint32_t>, uint64_t> all = missed_xids_;
  for (const facts::SampledXid& xid : newest_.xids) all[{xid.pci, xid.number}] += xid.count;
  newest_.xids.clear();
  for (const auto& [where, count] : all) newest_.xids.push_back({where.first, where.second, count});
  if (!no_log_.empty()) newest_.missing.push_back({"xids before now", no_log_});
  return true;
}

}  // namespace cufit::commands
