// SPDX-License-Identifier: Apache-2.0
// fleet plan's answer on a terminal: what was proved, each node with its jobs and how they are asked
// for, what has no place, who takes no job.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/host_list.h"
#include "report/fleet.h"
#include "report/fleet_plan.h"
#include "report/pack.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

class FleetPlanPainter : private TerminalWriter {
 public:
  FleetPlanPainter(const FleetPlanView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view), plan_(view.plan) {}

  std::string paint() {
    summary();
    for (size_t i = 0; i < plan_.placed.size();) {
      size_t end = i;
      while (end < plan_.placed.size() && plan_.placed[end].machine == plan_.placed[i].machine)
        ++end;
      one_node(i, end);
      i = end;
    }
    unplaced();
    unused();
    without_jobs();
    notes();
    return finish();
  }

 private:
  std::string word(const std::string& key,
                   const std::map<std::string, std::string>& args = {}) const {
    return say("fleet.plan." + key, args);
  }
  std::string name_of(size_t job) const { return printable(view_.question.jobs[job].name); }

  void summary() {
    const size_t jobs = view_.question.jobs.size(), placed = plan_.placed.size();
    std::vector<size_t> machines;
    for (const pack::FleetPlaced& one : plan_.placed)
      if (machines.empty() || machines.back() != one.machine) machines.push_back(one.machine);
    flow(
        word(placed == jobs ? "all" : "some", {{"placed", thousands(placed)},
                                               {"jobs", thousands(jobs)},
                                               {"used", thousands(plan_.used)},
                                               {"gpus", thousands(plan_.plan.gpus.size())},
                                               {"nodes", thousands(machines.size())},
                                               {"all", thousands(view_.question.machines.size())}}),
        "", "  ", "1");
    flow(proof(), "  ", "  ", plan_.optimal ? "32" : "33");
  }

  std::string proof() const {
    if (plan_.placed.empty()) return plan_.most_placed == 0 ? say("pack.none_fits") : word("none");
    if (plan_.placed.size() < plan_.most_placed)
      return word("gap_placed", {{"most", thousands(plan_.most_placed)}});
    if (plan_.goal == pack::Goal::headroom)
      return say(plan_.optimal ? "pack.best_headroom" : "pack.gap_headroom",
                 {{"headroom", gib(plan_.headroom)}, {"most", gib(plan_.most_headroom)}});
    return plan_.optimal ? say("pack.best_fewest")
                         : word("gap_fewest", {{"fewest", thousands(plan_.fewest_used)}});
  }

  void one_node(size_t begin, size_t end) {
    const size_t machine = plan_.placed[begin].machine;
    const size_t first = plan_.first_gpu[machine];
    heading(printable(view_.question.machines[machine].name));
    for (size_t i = 0; i < view_.question.machines[machine].gpus.size(); ++i) {
      const pack::PackedGpu& packed = plan_.plan.gpus[first + i];
      if (packed.jobs.empty()) continue;
      const std::string name = printable(plan_.parts.gpus[first + i].name);
      flow(packed.divided
               ? say("pack.gpu_divided", {{"name", name},
                                          {"free", thousands(packed.free_units)},
                                          {"units", thousands(packed.divided->units)}})
               : say("pack.gpu",
                     {{"name", name}, {"usable", gib(packed.usable)}, {"left", gib(packed.left)}}),
           "  ", "    ");
      for (const std::string& command : mig_commands(packed, plan_.parts.gpus[first + i].index))
        command_line(command);
    }
    for (size_t i = begin; i < end; ++i) one_job(plan_.placed[i]);
  }

  void one_job(const pack::FleetPlaced& placed) {
    const size_t first = plan_.first_gpu[placed.machine];
    std::vector<std::string> numbers;
    for (const size_t gpu : placed.gpus)
      numbers.push_back(std::to_string(plan_.parts.gpus[first + gpu].index));
    std::string how = word(placed.gpus.size() == 1 ? "on_gpu" : "on_gpus",
                           {{"gpus", join(numbers, say("list"))}, {"bytes", gib(placed.bytes)}});
    if (placed.on[0].context > 0)
      how = word("with",
                 {{"what", how},
                  {"context", say("pack.with_context", {{"context", gib(placed.on[0].context)}})}});
    flow(how, "  " + name_of(placed.job) + say("colon"), "    ");
    for (const std::string& line : ask_for(view_, placed, say("pack.program")).lines)
      command_line(line);
  }

  // Never wrapped: it is there to be copied.
  void command_line(const std::string& command) {
    out_ += "      " + coloured(printable(command), "1") + "\n";
  }

  void unplaced() {
    if (view_.unplaced.empty()) return;
    heading(say("pack.unplaced"));
    for (const pack::JobNodes& job : view_.unplaced) {
      std::string line = job.nodes.empty()
                             ? word("nowhere")
                             : word("no_room", {{"nodes", printable(host_list(job.nodes))}});
      for (const pack::JobCannot& cannot : job.cannot)
        if (cannot.why != pack::JobCannot::Why::out)
          line += say("fleet.job_not_on", {{"nodes", printable(host_list(cannot.nodes))},
                                           {"why", cannot_text(cannot, style_.lang, knowledge_)}});
      flow(line, "  " + printable(job.name) + say("colon"), "    ");
    }
  }

  void unused() {
    std::vector<std::string> names;
    for (size_t machine = 0; machine < view_.question.machines.size(); ++machine) {
      const bool used =
          std::any_of(plan_.placed.begin(), plan_.placed.end(),
                      [&](const pack::FleetPlaced& placed) { return placed.machine == machine; });
      if (!used) names.push_back(view_.question.machines[machine].name);
    }
    if (names.empty()) return;
    out_ += "\n";
    flow(word("unused", {{"nodes", printable(host_list(names))}}), "", "  ");
  }

  void without_jobs() {
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> alike;
    for (const pack::MachineOut& one : view_.out) alike[{one.as, one.why}].push_back(one.name);
    for (const pack::Machine& machine : view_.question.machines)
      if (machine.given_away > 0)
        alike[{"given_away", std::to_string(machine.given_away)}].push_back(machine.name);
    if (alike.empty()) return;
    heading(word("no_jobs"));
    for (const auto& [key, names] : alike)
      flow(say("fleet.out." + key.first, {{"why", printable(key.second)}}),
           "  " + printable(host_list(names)) + say("colon"), "    ");
  }

  void notes() {
    out_ += "\n";
    bool unknown = false, divided = false;
    for (const pack::FleetPlaced& placed : plan_.placed) {
      unknown = unknown || view_.question.jobs[placed.job].command.empty();
      divided = divided || placed.on[0].instance.has_value();
    }
    if (divided) flow(say("pack.root"), "", "  ");
    if (unknown) flow(say("pack.program_unknown", {{"program", say("pack.program")}}), "", "  ");
    if (divided && view_.engine == pack::Engine::slurm) flow(word("how_slurm_mig"), "", "  ");
    if (!plan_.placed.empty())
      flow(word(view_.engine == pack::Engine::ssh     ? "how_ssh"
                : view_.engine == pack::Engine::slurm ? "how_slurm"
                                                      : "how_kubernetes"),
           "", "  ");
    flow(say("pack.sizes"), "", "  ");
    tables();
  }

  const FleetPlanView& view_;
  const pack::FleetPlan& plan_;
};

}  // namespace

std::string fleet_plan_text(const FleetPlanView& view, const Style& style) {
  return FleetPlanPainter(view, style).paint();
}

}  // namespace cufit::report
