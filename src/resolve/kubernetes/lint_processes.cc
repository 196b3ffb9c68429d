// SPDX-License-Identifier: Apache-2.0
// One process for each GPU: does the number that the launcher starts agree with the GPUs asked for?
#include "base/format.h"
#include "base/number.h"
#include "resolve/kubernetes/lint_rules.h"

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

}  // namespace

void lint_processes(const PodView& pod, LintOut& out) {
  for (const ContainerView& one : pod.containers) {
    const std::optional<uint64_t> gpus = one.gpus.visible();
    const std::optional<Processes> asked = processes_of(one);
    if (!gpus || !asked || asked->number == *gpus || spans_pods(pod.pod)) continue;
    const bool more = asked->number > *gpus;
    const Launcher launcher = one.start.launcher;
    const bool field = pod.pod.kubeflow && launcher == Launcher::none;
    // Fewer than GPUs is what data parallelism, pipelines and threads of other programs look like.
    if (!more && launcher != Launcher::torchrun && !field) continue;
    LintFinding& made = out.add("k8s_process_count", more ? Severity::error : Severity::warning,
                                asked->line, asked->words, &one.container);
    out.prove(made, one.gpus.first->line, one.gpus.first->name + ": " + one.gpus.first->quantity);
    made.finding.args = {{"words", asked->words},
                         {"processes", std::to_string(asked->number)},
                         {"gpus", std::to_string(*gpus)},
                         {"program", to_string(launcher)}};
    made.finding.variant = more ? "more" : asked->by_default ? "default" : "fewer";
  }
}

}  // namespace cufit::resolve
