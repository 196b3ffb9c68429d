// SPDX-License-Identifier: Apache-2.0
// pack's answer on a terminal: what was proved, each GPU with its jobs and how to start them, what
// has no place.
#include <algorithm>

#include "base/format.h"
#include "report/pack.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr int k_pack_text_size = 11;

class PackPainter : private TerminalWriter {
 public:
  PackPainter(const PackView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view), plan_(view.plan) {}

  std::string paint() {
    summary();
    for (size_t gpu = 0; gpu < plan_.gpus.size(); ++gpu)
      if (!plan_.gpus[gpu].jobs.empty()) one_gpu(gpu);
    unused();
    unplaced();
    notes();
    return finish();
  }

 private:
  const pack::Job& job_of(size_t job) const { return view_.question.jobs[job]; }

  void summary() {
    const size_t jobs = view_.question.jobs.size(), placed = jobs - plan_.unplaced.size();
    flow(say(placed == jobs ? "pack.all" : "pack.some", {{"placed", thousands(placed)},
                                                         {"jobs", thousands(jobs)},
                                                         {"used", thousands(plan_.used)},
                                                         {"gpus", thousands(plan_.gpus.size())}}),
         "", "  ", "1");
    flow(proof(), "  ", "  ", plan_.optimal ? "32" : "33");
  }

  std::string proof() const {
    const size_t placed = view_.question.jobs.size() - plan_.unplaced.size();
    if (placed == 0) return say("pack.none_fits");
    if (placed < plan_.most_placed)
      return say("pack.gap_placed", {{"most", thousands(plan_.most_placed)}});
    if (plan_.goal == pack::Goal::headroom)
      return say(plan_.optimal ? "pack.best_headroom" : "pack.gap_headroom",
                 {{"headroom", gib(plan_.headroom)}, {"most", gib(plan_.most_headroom)}});
    return say(plan_.optimal ? "pack.best_fewest" : "pack.gap_fewest",
               {{"fewest", thousands(plan_.fewest_used)}});
  }

  void one_gpu(size_t gpu) {
    const pack::PackedGpu& packed = plan_.gpus[gpu];
    const pack::Gpu& asked = view_.question.gpus[gpu];
    heading(packed.divided ? say("pack.gpu_divided", {{"name", printable(asked.name)},
                                                      {"free", thousands(packed.free_units)},
                                                      {"units", thousands(packed.divided->units)}})
                           : say("pack.gpu", {{"name", printable(asked.name)},
                                              {"usable", gib(packed.usable)},
                                              {"left", gib(packed.left)}}));
    if (packed.divided)
      for (const std::string& command : mig_commands(packed, asked.index)) command_line(command);
    else if (packed.jobs.size() > 1)
      flow(say("pack.shared", {{"jobs", thousands(packed.jobs.size())}}), "  ", "  ");
    int first = 0;
    for (const pack::PlacedJob& job : packed.jobs)
      first = std::max(first, columns(printable(job_of(job.job).name)));
    first = std::min(first, 30);
    for (const pack::PlacedJob& job : packed.jobs) {
      std::string line = "  " + pad(printable(job_of(job.job).name), first) +
                         right(gib(job.bytes), k_pack_text_size);
      if (job.instance)
        line += "  " +
                say("pack.instance", {{"profile", job.instance->profile->name},
                                      {"start", std::to_string(job.instance->start)},
                                      {"units", std::to_string(job.instance->profile->units)},
                                      {"memory", gib(uint64_t{job.instance->profile->mib} << 20)}});
      else if (job.context > 0)
        line += "  " + say("pack.with_context", {{"context", gib(job.context)}});
      out_ += line + "\n";
      command_line(start_command(view_, gpu, job, say("pack.program")));
    }
  }

  // Never wrapped: it is there to be copied.
  void command_line(const std::string& command) {
    out_ += "      " + coloured(printable(command), "1") + "\n";
  }

  void unused() {
    std::vector<std::string> names;
    for (size_t gpu = 0; gpu < plan_.gpus.size(); ++gpu)
      if (plan_.gpus[gpu].jobs.empty())
        names.push_back(say("pack.unused_one", {{"name", printable(view_.question.gpus[gpu].name)},
                                                {"usable", gib(plan_.gpus[gpu].usable)}}));
    if (names.empty()) return;
    out_ += "\n";
    flow(say("pack.unused", {{"names", join(names, say("pack.comma"))}}), "", "  ");
  }

  void unplaced() {
    if (plan_.unplaced.empty()) return;
    heading(say("pack.unplaced"));
    for (const pack::Unplaced& job : plan_.unplaced) {
      const std::string command = waiting_command(view_, job, say("pack.program"));
      labelled(printable(job_of(job.job).name) + say("colon"),
               unplaced_text(view_, job, style_.lang) + (command.empty() ? "" : say("pack.waits")));
      if (!command.empty()) command_line(command);
    }
  }

  void notes() {
    out_ += "\n";
    bool unknown = false, divided = false;
    for (const pack::PackedGpu& gpu : plan_.gpus) {
      divided = divided || (gpu.divided && !gpu.jobs.empty());
      for (const pack::PlacedJob& job : gpu.jobs)
        unknown = unknown || job_of(job.job).command.empty();
    }
    if (divided) flow(say("pack.root"), "", "  ");
    if (unknown) flow(say("pack.program_unknown", {{"program", say("pack.program")}}), "", "  ");
    flow(say("pack.sizes"), "", "  ");
    tables();
  }

  const PackView& view_;
  const pack::Plan& plan_;
};

}  // namespace

std::string pack_text(const PackView& view, const Style& style) {
  return PackPainter(view, style).paint();
}

}  // namespace cufit::report
