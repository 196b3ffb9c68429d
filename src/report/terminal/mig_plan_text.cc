// SPDX-License-Identifier: Apache-2.0
// mig plan's answer on a terminal: instances and their places, what is not used, the commands in
// order, how others name the instances, what MIG takes away.
#include <algorithm>

#include "base/format.h"
#include "report/pack.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr int k_mig_profile_columns = 15, k_mig_size = 13, k_mig_number = 7;

class MigPainter : private TerminalWriter {
 public:
  MigPainter(const MigView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view), packed_(view.plan.gpus[0]) {}

  std::string plan() {
    const size_t jobs = view_.question.jobs.size();
    flow(say(view_.plan.unplaced.empty() ? "mig.all" : "mig.some",
             {{"gpu", view_.card.gpu},
              {"jobs", thousands(jobs)},
              {"placed", thousands(packed_.jobs.size())},
              {"free", std::to_string(free_units())},
              {"units", std::to_string(view_.card.units)}}),
         "", "  ", "1");
    if (!view_.plan.unplaced.empty() && view_.plan.optimal) flow(say("mig.most"), "  ", "  ");
    if (!packed_.jobs.empty()) instances();
    unplaced();
    if (!packed_.jobs.empty()) {
      commands();
      names();
    }
    limits();
    return end();
  }

  std::string profiles() {
    flow(say("mig.profiles", {{"gpu", view_.card.gpu},
                              {"units", std::to_string(view_.card.units)},
                              {"driver", view_.card.driver}}),
         "", "  ", "1");
    out_ += "\n" +
            coloured("  " + pad(say("mig.column.profile"), k_mig_profile_columns) +
                         right("ID", k_mig_number) + right(say("mig.column.memory"), k_mig_size) +
                         right("SM", k_mig_number) + right(say("mig.column.most"), k_mig_number) +
                         "  " + say("mig.column.places"),
                     "1") +
            "\n";
    bool bound = false;
    for (const pack::MigProfile& one : view_.card.profiles) {
      std::vector<std::string> starts;
      for (const uint32_t start : one.starts) starts.push_back(std::to_string(start));
      bound = bound || !one.seen;
      out_ += "  " + pad(one.name, k_mig_profile_columns) +
              right(std::to_string(one.id), k_mig_number) +
              right((one.seen ? "" : "≥ ") + gib(uint64_t{one.mib} << 20), k_mig_size) +
              right(one.sm == 0 ? "-" : std::to_string(one.sm), k_mig_number) +
              right(std::to_string(one.most), k_mig_number) + "  {" + join(starts, ",") +
              "}:" + std::to_string(one.units) + "\n";
    }
    if (bound) {
      out_ += "\n";
      flow(say("mig.bound"), "", "  ");
    }
    limits();
    return end();
  }

 private:
  uint32_t free_units() const { return packed_.divided ? packed_.free_units : view_.card.units; }

  std::string end() {
    out_ += "\n";
    tables();
    return finish();
  }

  void instances() {
    int first = columns(say("mig.column.job"));
    for (const pack::PlacedJob& job : packed_.jobs)
      first = std::max(first, columns(printable(view_.question.jobs[job.job].name)));
    first = std::min(first, 30);
    out_ +=
        "\n" +
        coloured("  " + pad(say("mig.column.job"), first) +
                     right(say("mig.column.takes"), k_mig_size) + "  " +
                     pad(say("mig.column.profile"), k_mig_profile_columns) +
                     pad(say("mig.column.place"), k_mig_number) + right("SM", k_mig_number - 2) +
                     right(say("mig.column.memory"), k_mig_size + 1) +
                     right(say("mig.column.unused"), k_mig_size),
                 "1") +
        "\n";
    for (const pack::PlacedJob& job : packed_.jobs) {
      const pack::MigProfile& profile = *job.instance->profile;
      out_ += "  " + pad(printable(view_.question.jobs[job.job].name), first) +
              right(gib(job.bytes), k_mig_size) + "  " + pad(profile.name, k_mig_profile_columns) +
              pad(format("{}:{}", job.instance->start, profile.units), k_mig_number) +
              right(profile.sm == 0 ? "-" : std::to_string(profile.sm), k_mig_number - 2) +
              right(gib(uint64_t{profile.mib} << 20), k_mig_size + 1) +
              right(gib((uint64_t{profile.usable} << 20) - job.bytes), k_mig_size) + "\n";
    }
    out_ += "\n";
    const pack::MigProfile& one = *packed_.jobs.front().instance->profile;
    flow(say("mig.context", {{"held", format("{} MiB", one.mib - one.usable)}}), "", "  ");
    const bool bound =
        std::any_of(packed_.jobs.begin(), packed_.jobs.end(),
                    [](const pack::PlacedJob& job) { return !job.instance->profile->seen; });
    if (bound) flow(say("mig.bound"), "", "  ");
  }

  void unplaced() {
    if (view_.plan.unplaced.empty()) return;
    const PackView as_pack{view_.question, view_.plan, view_.knowledge};
    heading(say("pack.unplaced"));
    for (const pack::Unplaced& job : view_.plan.unplaced)
      labelled(printable(view_.question.jobs[job.job].name) + say("colon"),
               unplaced_text(as_pack, job, style_.lang));
  }

  void lines(const std::vector<std::string>& commands) {
    for (const std::string& command : commands) out_ += "      " + coloured(command, "1") + "\n";
  }

  void commands() {
    const uint32_t index = view_.question.gpus[0].index;
    heading(say("mig.make", {{"driver", view_.card.driver}}));
    lines(mig_commands(packed_, index));
    lines({"nvidia-smi -L"});
    flow(say("mig.undo"), "  ", "  ");
    lines(mig_undo_commands(index));
  }

  void names() {
    const std::string profile = packed_.jobs.front().instance->profile->name;
    heading(say("mig.names"));
    const uint32_t index = view_.question.gpus[0].index;
    for (const pack::PlacedJob& job : packed_.jobs) {
      const std::string label =
          packed_.jobs.size() == 1
              ? say("mig.name.program")
              : say("mig.name.program_of", {{"job", printable(view_.question.jobs[job.job].name)},
                                            {"profile", job.instance->profile->name}});
      labelled(label + say("colon"), say("mig.name.program_how", {{"vram", vram_text(job.bytes)}}));
    }
    labelled(say("mig.name.docker") + say("colon"),
             say("mig.name.docker_how", {{"index", std::to_string(index)}}));
    labelled(say("mig.name.kubernetes") + say("colon"),
             say("mig.name.kubernetes_how", {{"profile", profile}}));
    labelled(say("mig.name.slurm") + say("colon"),
             say("mig.name.slurm_how", {{"profile", profile}}));
  }

  void limits() {
    heading(say("mig.limits"));
    for (const knowledge::MigLimitRow& limit : view_.knowledge.mig_limits) {
      flow(say("mig.limit." + std::string(limit.id)), "  - ", "    ");
      if (style_.verbose) flow(std::string(limit.source), "    ", "    ", "2");
    }
  }

  const MigView& view_;
  const pack::PackedGpu& packed_;
};

}  // namespace

std::string mig_plan_text(const MigView& view, const Style& style) {
  return MigPainter(view, style).plan();
}

std::string mig_profiles_text(const MigView& view, const Style& style) {
  return MigPainter(view, style).profiles();
}

}  // namespace cufit::report
