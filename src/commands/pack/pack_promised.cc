// SPDX-License-Identifier: Apache-2.0
#include "commands/pack/pack_promised.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "host/quota/domain_files.h"
#include "host/quota/wait_tickets.h"

namespace cufit::commands {
namespace {

using ByGpu = std::map<std::string, uint64_t>;  // bytes by the card's UUID

uint64_t beyond(uint64_t limit, uint64_t used) { return limit - std::min(limit, used); }

// A sum of what files say that others may write: it stays at the end of its range.
void add(ByGpu& out, const std::string& uuid, uint64_t bytes) {
  uint64_t& sum = out[uuid];
  sum += std::min(bytes, UINT64_MAX - sum);
}

ByGpu promised_here(const Context& context) {
  const facts::QuotaDomains domains = host::read_quota_domains(context.machine);
  std::map<std::string, ByGpu> used;  // by the domain's file
  for (const facts::LiveDomain& live : domains.domains)
    for (const formats::QuotaDevice& device : live.domain.devices)
      used[live.path][device.uuid] = device.used_bytes;
  ByGpu out;
  std::set<std::string> counted;  // several launches can be in one quota
  if (const Result<host::WaitQueue> queue = host::WaitQueue::open(context.machine)) {
    for (const host::LiveTicket& live : queue->read(host::WaitQueue::Dead::leave).tickets) {
      const formats::WaitTicket& ticket = live.ticket;
      if (!ticket.started) continue;
      if (!ticket.domain.empty() && !counted.insert(ticket.domain).second) continue;
      for (const formats::TicketCard& card : ticket.cards)
        add(out, card.uuid,
            ticket.whole ? UINT64_MAX : beyond(card.bytes, used[ticket.domain][card.uuid]));
    }
  }
  for (const facts::LiveDomain& live : domains.domains) {
    if (live.domain.processes.empty() || counted.count(live.path) > 0) continue;
    for (const formats::QuotaDevice& device : live.domain.devices)
      if (device.limit_bytes != formats::k_no_quota)
        add(out, device.uuid, beyond(device.limit_bytes, device.used_bytes));
  }
  return out;
}

}  // namespace

void take_promised(const Context& context, std::vector<pack::Gpu>& gpus) {
  const ByGpu promised = promised_here(context);
  std::vector<std::string> said;
  for (pack::Gpu& gpu : gpus) {
    const auto found = promised.find(gpu.visible);
    if (found == promised.end()) continue;
    const uint64_t taken = std::min(found->second, gpu.usable);
    if (taken == 0) continue;
    gpu.usable -= taken;
    said.push_back(context.message("pack.input.promised_on",
                                   {{"gpu", gpu.name}, {"bytes", format_bytes(taken)}}));
  }
  if (!said.empty())
    context.output.print_message(context.message(
        "pack.input.promised", {{"gpus", join(said, context.message("pack.input.comma"))}}));
}

}  // namespace cufit::commands
