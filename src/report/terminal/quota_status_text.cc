// SPDX-License-Identifier: Apache-2.0
// Every quota domain on a terminal: limit, use, what NVML says of the same processes, who they are; what was skipped.
#include <algorithm>

#include "base/duration.h"
#include "base/format.h"
#include "report/error_translation.h"
#include "report/quota.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr int k_quota_size_columns = 11;
constexpr int k_quota_pid_columns = 8;

class QuotaStatusPainter : private TerminalWriter {
 public:
  QuotaStatusPainter(const QuotaStatusView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view) {}

  std::string paint() {
    if (view_.domains.empty()) {
      flow(say(view_.one_user ? "quota.none" : "quota.none_root"), "", "  ", "1");
      next({{true, say(view_.gpus_seen ? "quota.start_step" : "quota.start_step_no_gpu")}});
    }
    for (const resolve::DomainUsage& domain : view_.domains) one_domain(domain);
    queued("quota.started", true);
    queued("quota.waiting", false);
    skipped();
    if (!view_.domains.empty()) notes();
    return finish();
  }

 private:
  void one_domain(const resolve::DomainUsage& domain) {
    if (!out_.empty()) out_ += "\n";
    std::map<std::string, std::string> args{{"name", printable(domain.name)},
                                            {"path", printable(domain.path)},
                                            {"user", std::to_string(domain.owner)},
                                            {"processes", thousands(domain.processes.size())}};
    flow(say(domain.name.empty() ? "quota.domain_unnamed" : "quota.domain", args) +
             (view_.one_user ? "" : say("quota.of_user", args)),
         "", "  ", "1");
    for (const resolve::DeviceUsage& device : domain.devices) one_device(device);
    if (domain.devices.empty()) flow(say("quota.no_device"), "  ", "    ");
    for (const resolve::ProcessUsage& process : domain.processes) one_process(process);
    if (domain.processes.empty()) flow(say("quota.no_process"), "  ", "    ");
    if (domain.dead > 0) flow(say("quota.dead", {{"dead", thousands(domain.dead)}}), "  ", "    ");
    if (!domain.foreign.empty())
      flow(say("quota.foreign", {{"library", printable(domain.foreign)}}), "  ", "    ", "33");
    if (!domain.unknown.empty())
      flow(say("quota.unknown", {{"calls", printable(join(domain.unknown, ", "))}}), "  ", "    ",
           "33");
  }

  std::string name_of(const resolve::DeviceUsage& device) const {
    std::string id = device.uuid.empty() ? device.pci : device.uuid;
    if (!device.index) return printable(id);
    return printable(format("GPU {} {}", *device.index, device.name.empty() ? id : device.name));
  }

  void one_device(const resolve::DeviceUsage& device) {
    const bool full = device.limit_bytes && device.used_bytes > *device.limit_bytes;
    flow(say(device.limit_bytes ? "quota.device" : "quota.device_free",
             {{"gpu", name_of(device)},
              {"used", gib(device.used_bytes)},
              {"limit", gib(device.limit_bytes.value_or(0))},
              {"peak", gib(device.peak_bytes)}}),
         "  ", "    ", full ? "31" : "");
    flow(say("quota.refusals", {{"quota", thousands(device.refusals)},
                                {"card", thousands(device.driver_refusals)},
                                {"spilled", gib(device.spilled_bytes)}}),
         "      ", "      ");
    flow(nvml_words(device), "      ", "      ");
  }

  std::string nvml_words(const resolve::DeviceUsage& device) const {
    if (!device.nvml_bytes) {
      switch (device.no_nvml) {
        case resolve::NoNvml::unasked:
          return say("quota.nvml_unasked");
        case resolve::NoNvml::unlisted:
          return say("quota.nvml_unlisted");
        case resolve::NoNvml::unsized:
          return say("quota.nvml_unsized");
        default:
          return say("quota.nvml_unanswered");
      }
    }
    const bool more = *device.nvml_bytes >= device.used_bytes;
    const uint64_t difference =
        more ? *device.nvml_bytes - device.used_bytes : device.used_bytes - *device.nvml_bytes;
    return say(difference == 0 ? "quota.nvml_same"
               : more          ? "quota.nvml_more"
                               : "quota.nvml_less",
               {{"nvml", gib(*device.nvml_bytes)}, {"difference", gib(difference)}});
  }

  void one_process(const resolve::ProcessUsage& process) {
    std::string line = "  " + right(std::to_string(process.pid), k_quota_pid_columns) +
                       right(gib(process.used_bytes), k_quota_size_columns) + "  " +
                       printable(process.name);
    if (process.elsewhere) line += "  " + say("quota.elsewhere");
    out_ += line + "\n";
  }

  void queued(const char* title, bool started) {
    bool any = false;
    for (const facts::QueuedJob& job : view_.queue) {
      if (job.started != started) continue;
      if (!any) heading(say(title));
      any = true;
      one_job(job);
    }
  }

  void one_job(const facts::QueuedJob& job) {
    std::vector<std::string> cards;
    uint64_t bytes = 0;
    for (const facts::QueuedJob::Card& card : job.cards) {
      const auto index = view_.index_by_uuid.find(card.uuid);
      cards.push_back(index == view_.index_by_uuid.end() ? printable(card.uuid)
                                                         : std::to_string(index->second));
      bytes = std::max(bytes, card.bytes);
    }
    const std::string size = job.whole ? say("quota.whole") : gib(bytes);
    flow(say(job.started                     ? "quota.job_started"
             : job.cards.size() <= job.count ? "quota.job_waits"
                                             : "quota.job_waits_any",
             {{"program", job.program.empty() ? "?" : printable(job.program)},
              {"pid", job.pid == 0 ? "?" : std::to_string(job.pid)},
              {"user", std::to_string(job.user)},
              {"size", size},
              {"count", std::to_string(job.count)},
              {"gpus", join(cards, say("quota.or_comma"))},
              {"time", format_duration(job.seconds)}}),
         "  ", "    ");
  }

  void skipped() {
    if (view_.skipped.empty()) return;
    heading(say("quota.skipped"));
    for (const facts::SkippedDomain& one : view_.skipped)
      flow(printable(translated_error(one.why, style_.lang, knowledge_)), "  ", "    ");
  }

  void notes() {
    out_ += "\n";
    if (!view_.nvml_answers) flow(say("quota.nvml_silent"), "", "  ");
    flow(say("quota.fence"), "", "  ");
    flow(say("quota.around"), "", "  ");
  }

  const QuotaStatusView& view_;
};

}  // namespace

std::string quota_status_text(const QuotaStatusView& view, const Style& style) {
  return QuotaStatusPainter(view, style).paint();
}

}  // namespace cufit::report
