// SPDX-License-Identifier: Apache-2.0
// One process for each GPU: does the number that the launcher starts agree with the GPUs asked for?
#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "resolve/kubernetes/lint_rules.h"
#include "resolve/kubernetes/start_signs.h"

namespace cufit::resolve {
namespace {

using checks::Severity;

struct Processes {
  uint64_t number = 0;
  std::string words;
  size_t line = 0;
  bool by_default = false;
};

// The job's own field goes before the command of its containers (Kubeflow sets
// PET_NPROC_PER_NODE from it), the option of torchrun before both.
std::optional<Processes> processes_of(const ContainerView& view) {
  const StartCommand& start = view.start;
  if (start.one_per_gpu || start.many_nodes) return std::nullopt;
  if (start.processes && !start.processes_default)
    return Processes{*start.processes, start.processes_text, view.container.command_line, false};
  if (view.pod.kubeflow) {
    const std::optional<uint64_t> number = parse_uint(view.pod.processes);
    if (!number) return std::nullopt;  // "auto", or what the operator chooses
    const bool train_job = view.pod.kind == "TrainJob";
    return Processes{*number,
                     (train_job ? "numProcPerNode: " : "nprocPerNode: ") + view.pod.processes,
                     view.pod.processes_line, false};
  }
  if (start.processes) return Processes{1, start.processes_text, view.container.command_line, true};
  return std::nullopt;
}

// A cluster of Ray, or a set of pods, may hold the other shards.
bool spans_pods(const formats::ManifestPod& pod) {
  return pod.ray || pod.kind == "LeaderWorkerSet";
}

void add_count(const ContainerView& view, checks::Severity severity, size_t line,
               const std::string& words, uint64_t processes, const char* variant, LintOut& out) {
  LintFinding& made = out.add("k8s_process_count", severity, line, words, &view.container);
  if (view.gpus.first != nullptr)
    out.prove(made, view.gpus.first->line,
              view.gpus.first->name + ": " + view.gpus.first->quantity);
  made.finding.args = {{"words", words},
                       {"processes", std::to_string(processes)},
                       {"gpus", std::to_string(view.gpus.whole + view.gpus.instances)},
                       {"program", to_string(view.start.launcher)}};
  made.finding.variant = variant;
}

// Ray hands out the numbers that it is told of, and MPI fills the slots that it is told of: each in
// the first container of a pod.
void told_of_gpus(const PodView& pod, LintOut& out) {
  const auto first = std::find_if(pod.containers.begin(), pod.containers.end(),
                                  [](const ContainerView& one) { return !one.container.init; });
  if (first == pod.containers.end() || !first->gpus.visible()) return;
  const uint64_t gpus = *first->gpus.visible();
  const std::optional<uint64_t> ray = parse_uint(pod.pod.ray_gpus);
  if (ray && *ray > gpus)
    add_count(*first, Severity::error, pod.pod.ray_gpus_line, "num-gpus: " + pod.pod.ray_gpus, *ray,
              "ray", out);
  const std::optional<uint64_t> slots = parse_uint(pod.pod.mpi_slots);
  if (slots && *slots > gpus &&
      fills_slots_with_python(formats::read_commands(pod.pod.mpi_command), gpus))
    add_count(*first, Severity::warning, pod.pod.mpi_slots_line,
              "slotsPerWorker: " + pod.pod.mpi_slots, *slots, "mpi", out);
}

}  // namespace

// A process sees one instance, whatever else the container has.
bool has_more_processes_than_instances(const ContainerView& view) {
  const StartCommand& start = view.start;
  return view.gpus.instances > 0 && view.gpus.whole == 0 && !view.gpus.unknown &&
         start.processes.value_or(1) > 1 && !start.many_nodes && !spans_pods(view.pod);
}

void lint_processes(const PodView& pod, LintOut& out) {
  told_of_gpus(pod, out);
  for (const ContainerView& one : pod.containers) {
    if (has_more_processes_than_instances(one)) {
      add_count(one, Severity::warning, one.container.command_line, one.start.processes_text,
                *one.start.processes, "mig", out);
      continue;
    }
    const std::optional<uint64_t> gpus = one.gpus.visible();
    const std::optional<Processes> asked = processes_of(one);
    if (!gpus || !asked || asked->number == *gpus || spans_pods(pod.pod)) continue;
    const bool more = asked->number > *gpus;
    const Launcher launcher = one.start.launcher;
    const bool field = pod.pod.kubeflow && launcher == Launcher::none;
    // Fewer than GPUs is what data parallelism, pipelines and threads of other programs look like.
    if (!more && launcher != Launcher::torchrun && !field) continue;
    add_count(one, more ? Severity::error : Severity::warning, asked->line, asked->words,
              asked->number,
              more                ? "more"
              : asked->by_default ? "default"
                                  : "fewer",
              out);
  }
}

}  // namespace cufit::resolve
