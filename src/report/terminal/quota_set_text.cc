// SPDX-License-Identifier: Apache-2.0
// What `cufit quota set` changed, or would change, GPU by GPU.
#include "base/format.h"
#include "report/quota.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

class QuotaSetPainter : private TerminalWriter {
 public:
  QuotaSetPainter(const QuotaSetView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view) {}

  std::string paint() {
    flow(say(view_.dry_run  ? "quota.set_would"
             : view_.undone ? "quota.set_undone"
                            : "quota.set_done",
             {{"cgroup", printable(view_.cgroup)}, {"limits", words(view_.wanted)}}),
         "", "  ", view_.undone ? "1;31" : "1");
    for (const facts::LimitedGpu& gpu : view_.gpus) one_gpu(gpu);
    if (view_.gpus.empty()) flow(say("quota.set_no_gpu"), "  ", "    ");
    return finish();
  }

 private:
  std::string words(const facts::MemoryLimits& limits) const {
    if (limits.hard_bytes == facts::k_no_memory_limit) return say("quota.set_none");
    return say("quota.set_limits",
               {{"hard", gib(limits.hard_bytes)}, {"soft", gib(limits.soft_bytes)}});
  }

  void one_gpu(const facts::LimitedGpu& gpu) {
    const std::string name =
        printable(format("GPU {} {}", gpu.index, gpu.name.empty() ? gpu.uuid : gpu.name));
    if (!gpu.call.empty())
      return flow(say("quota.set_refused",
                      {{"gpu", name}, {"call", printable(gpu.call)}, {"why", printable(gpu.why)}}),
                  "  ", "    ", "31");
    flow(say(view_.dry_run || view_.undone ? "quota.set_now" : "quota.set_changed",
             {{"gpu", name},
              {"before", words(*gpu.before)},
              {"after", gpu.after ? words(*gpu.after) : ""},
              {"used", gib(gpu.after ? gpu.after->used_bytes : gpu.before->used_bytes)}}),
         "  ", "    ");
  }

  const QuotaSetView& view_;
};

}  // namespace

std::string quota_set_text(const QuotaSetView& view, const Style& style) {
  return QuotaSetPainter(view, style).paint();
}

}  // namespace cufit::report
