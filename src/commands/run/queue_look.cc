// SPDX-License-Identifier: Apache-2.0
#include "commands/run/queue_look.h"

#include <algorithm>

#include "base/format.h"
#include "host/driver/nvml_room.h"
#include "host/process/process_tree.h"
#include "host/process/this_process.h"
#include "host/quota/domain_file.h"
#include "host/quota/domain_files.h"
#include "resolve/quota/wait_cards.h"

namespace cufit::commands {
namespace {

// Another user's file is not read, though root could: its name is that user's word.
bool has_readable_quota(const host::LiveTicket& live) {
  return live.ticket.started && live.own && !live.ticket.domain.empty();
}

const facts::NvmlGpu* same_card(const facts::NvmlFacts& told, const facts::NvmlGpu& card) {
  for (const facts::NvmlGpu& gpu : told.gpus)
    if (gpu.uuid && gpu.uuid.value == card.uuid.value) return &gpu;
  return nullptr;
}

}  // namespace

std::string group_of(uint32_t user, const std::string& share) {
  return share.empty() ? std::string() : format("{}:{}", user, share);
}

void QueueLook::take(const facts::NvmlFacts& told, const std::vector<facts::NvmlGpu>& cards,
                     const std::vector<uint64_t>& totals) {
  now.clear();
  room.clear();
  for (size_t i = 0; i < cards.size(); ++i) {
    const facts::NvmlGpu* found = same_card(told, cards[i]);
    now.push_back(found != nullptr ? *found : cards[i]);
    // The rest of a command line is nobody else's business.
    if (now.back().processes)
      for (facts::GpuProcess& process : *now.back().processes.value)
        process.name = host::program_of_line(static_cast<pid_t>(process.pid), process.name);
    room.push_back(resolve::room_of_card(now.back(), totals[i]));
    room.back().usable = room.back().usable && found != nullptr;
  }
  add_listed(reading_);
}

// NVML's list of processes, by the jobs that started them.
void QueueLook::add_listed(const host::QueueReading& reading) {
  by_nvml_.clear();
  std::vector<uint32_t> pids;
  for (const host::LiveTicket& live : reading.tickets)
    if (live.ticket.started && live.ticket.pid != 0) pids.push_back(live.ticket.pid);
  if (pids.empty()) return;
  for (const facts::NvmlGpu& card : now) {
    if (!card.processes || !card.uuid) continue;
    for (const facts::GpuProcess& process : *card.processes) {
      const uint32_t from = host::ancestor_among(process.pid, pids);
      for (const host::LiveTicket& live : reading.tickets) {
        if (from == 0 || live.ticket.pid != from || !live.ticket.started) continue;
        uint64_t& sum = by_nvml_[live.name][*card.uuid];
        sum += std::min(process.used_bytes.value_or(0), UINT64_MAX - sum);
      }
    }
  }
}

void QueueLook::read_usage(const Context& context, const host::WaitQueue& queue, Usage when) {
  reading_ = queue.read(host::WaitQueue::Dead::leave);
  std::vector<uint32_t> started;
  for (const host::LiveTicket& live : reading_.tickets)
    if (live.ticket.started && live.own && live.ticket.pid != 0) started.push_back(live.ticket.pid);
  outer_ = host::ancestor_among(static_cast<uint32_t>(host::process_id()), started);
  std::map<std::string, UsedOn> read;
  for (const host::LiveTicket& live : reading_.tickets) {
    if (!has_readable_quota(live)) continue;
    const auto domain = host::read_quota_domain(context.files, live.ticket.domain);
    if (!domain) continue;
    for (const formats::QuotaDevice& device : domain->domain.devices)
      read[live.name][device.uuid] = device.used_bytes;
  }
  if (when == Usage::after) {
    for (auto& [name, cards] : read)
      for (auto& [uuid, bytes] : cards) {
        const UsedOn& earlier = by_quota_[name];
        const auto before = earlier.find(uuid);
        bytes = before == earlier.end() ? 0 : std::min(bytes, before->second);
      }
  }
  by_quota_ = std::move(read);
}

void QueueLook::read_share(const Context& context, const std::string& share) {
  share_.reset();
  const std::string path = host::share_domain_path(context.files, share);
  if (path.empty()) return;
  auto domain = host::read_quota_domain(context.files, path);
  // Its programs may not have come to CUDA yet.
  if (domain && (!domain->domain.processes.empty() || host::is_domain_used(path)))
    share_ = std::move(domain->domain);
}

Result<void> QueueLook::renew(const Context& context, const host::WaitQueue& queue,
                              const std::vector<facts::NvmlGpu>& cards,
                              const std::vector<uint64_t>& totals) {
  read_usage(context, queue, Usage::before);
  CUFIT_TRY(told, host::read_gpu_room(context.machine));
  take(told, cards, totals);
  read_usage(context, queue, Usage::after);
  return {};
}

std::string QueueLook::group_of_ticket(const host::LiveTicket& live) const {
  const bool outer = outer_ != 0 && live.own && live.ticket.pid == outer_;
  return outer && live.ticket.share.empty() ? format("pid:{}", outer_)
                                            : group_of(live.owner, live.ticket.share);
}

// The quota counts a context by a table where the driver does not say it: NVML's figure is better where it lists the job's
// processes (in a container it lists them under the numbers of the machine).
uint64_t QueueLook::used_by(const host::LiveTicket& live, const std::string& uuid) const {
  const auto find = [&](const std::map<std::string, UsedOn>& used) -> std::optional<uint64_t> {
    const auto of_ticket = used.find(live.name);
    if (of_ticket == used.end()) return std::nullopt;
    const auto on_card = of_ticket->second.find(uuid);
    if (on_card == of_ticket->second.end()) return std::nullopt;
    return on_card->second;
  };
  const std::optional<uint64_t> listed = find(by_nvml_);
  if (!has_readable_quota(live)) return listed.value_or(0);
  const uint64_t charged = find(by_quota_).value_or(0);
  return listed.value_or(0) > 0 ? std::min(charged, *listed) : charged;
}

std::vector<resolve::QueuedLaunch> QueueLook::launches(const host::QueueReading& reading) const {
  std::vector<resolve::QueuedLaunch> out;
  for (const host::LiveTicket& live : reading.tickets) {
    resolve::QueuedLaunch launch;
    launch.number = live.ticket.number;
    launch.started = live.ticket.started;
    launch.stopped = live.stopped;
    launch.group = group_of_ticket(live);
    launch.count = live.ticket.count;
    launch.whole = live.ticket.whole;
    for (const formats::TicketCard& card : live.ticket.cards)
      launch.cards.push_back({card.uuid, card.bytes, used_by(live, card.uuid)});
    out.push_back(std::move(launch));
  }
  return out;
}

resolve::QueuedLaunch QueueLook::joined(resolve::QueuedLaunch mine) const {
  for (const host::LiveTicket& live : reading_.tickets)
    if (outer_ != 0 && live.own && live.ticket.pid == outer_ && mine.group.empty())
      mine.group = group_of_ticket(live);
  if (!share_) return mine;
  std::vector<resolve::QueuedCard> there, elsewhere;
  for (const resolve::QueuedCard& card : mine.cards) {
    const auto row =
        std::find_if(share_->devices.begin(), share_->devices.end(),
                     [&](const formats::QuotaDevice& device) { return device.uuid == card.uuid; });
    const bool listed = row != share_->devices.end();
    const uint64_t limit = listed ? row->limit_bytes : share_->default_limit_bytes;
    // Without a limit of the quota the launch would have none.
    if (limit == formats::k_no_quota) continue;
    (listed ? there : elsewhere).push_back({card.uuid, limit, listed ? row->used_bytes : 0});
  }
  if (there.size() < mine.count) there.insert(there.end(), elsewhere.begin(), elsewhere.end());
  mine.cards = std::move(there);
  return mine;
}

}  // namespace cufit::commands
