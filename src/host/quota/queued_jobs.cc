// SPDX-License-Identifier: Apache-2.0
#include "host/quota/queued_jobs.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/path.h"
#include "host/process/process_tree.h"
#include "host/process/signal_pause.h"
#include "host/quota/domain_files.h"
#include "host/quota/wait_tickets.h"

namespace cufit::host {
namespace {

// Of a launch that waits the program that it will become: what follows `--`.
std::string program_of(uint32_t pid) {
  if (pid == 0) return {};
  const std::string line = read_small(format("/proc/{}/cmdline", pid));
  const std::vector<std::string_view> words = split(line, '\0');
  std::string_view program = words.empty() ? std::string_view() : words[0];
  if (file_name(program) == "cufit")
    for (size_t i = 1; i + 1 < words.size(); ++i)
      if (words[i] == "--") {
        program = words[i + 1];
        break;
      }
  return std::string(file_name(program));
}

facts::QueuedJob job_of(const LiveTicket& live, uint64_t now_nanoseconds) {
  facts::QueuedJob out;
  out.started = live.ticket.started;
  out.user = live.owner;
  out.pid = live.ticket.pid;
  out.program = program_of(live.ticket.pid);
  out.share = live.ticket.share;
  out.count = live.ticket.count;
  out.whole = live.ticket.whole;
  for (const formats::TicketCard& card : live.ticket.cards)
    out.cards.push_back({card.uuid, card.bytes});
  out.seconds = (now_nanoseconds - std::min(now_nanoseconds, live.ticket.number)) / 1'000'000'000;
  return out;
}

}  // namespace

std::vector<facts::QueuedJob> read_queued_jobs(const Host& host) {
  std::vector<std::string> folders;
  if (const std::string shared = host.variable("CUFIT_QUEUE").value_or(""); !shared.empty())
    folders.push_back(shared);
  for (const std::string& folder : domain_folders(host)) folders.push_back(folder + "/queue");
  std::vector<facts::QueuedJob> out;
  std::set<std::string> read;
  const auto now = static_cast<uint64_t>(running_seconds() * 1e9);
  for (const std::string& folder : folders) {
    if (!read.insert(folder).second) continue;
    for (const LiveTicket& live : WaitQueue::to_read(folder).read(WaitQueue::Dead::leave).tickets)
      out.push_back(job_of(live, now));
  }
  return out;
}

}  // namespace cufit::host
