// SPDX-License-Identifier: Apache-2.0
// Jobs in the words of ssh, Slurm and Kubernetes.
#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "base/shell_word.h"
#include "report/fleet_plan.h"
#include "report/pack.h"

namespace cufit::report {
namespace {

std::string shared_command(const FleetPlanView& view, const pack::FleetPlaced& placed,
                           const std::string& program) {
  return format("cufit run --vram {} --", vram_text(placed.bytes)) +
         program_words(view.question.jobs[placed.job], program);
}

// "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b cufit run --vram 20GiB -- python train.py"
std::string command_on_node(const FleetPlanView& view, const pack::FleetPlaced& placed,
                            const std::string& program) {
  const size_t first = view.plan.first_gpu[placed.machine];
  if (placed.gpus.size() == 1)
    return start_command(PackView{view.plan.parts, view.plan.plan, view.knowledge},
                         first + placed.gpus[0], placed.on[0], program);
  std::vector<std::string> visible;
  bool by_number = false;
  for (const size_t gpu : placed.gpus) {
    const pack::Gpu& one = view.plan.parts.gpus[first + gpu];
    by_number =
        by_number || !(starts_with(one.visible, "GPU-") || starts_with(one.visible, "MIG-"));
    visible.push_back(one.visible);
  }
  return (by_number ? "CUDA_DEVICE_ORDER=PCI_BUS_ID " : "") +
         ("CUDA_VISIBLE_DEVICES=" + shell_word(join(visible, ","))) + " " +
         shared_command(view, placed, program);
}

// "mig-3g.40gb" of an instance that is there or that the plan makes; empty: a whole GPU.
std::string profile_of(const FleetPlanView& view, const pack::FleetPlaced& placed) {
  if (placed.on[0].instance) return placed.on[0].instance->profile->name;
  return view.plan.parts.gpus[view.plan.first_gpu[placed.machine] + placed.gpus[0]].profile;
}

FleetAsk ask_slurm(const FleetPlanView& view, const pack::FleetPlaced& placed,
                   const std::string& program) {
  const pack::Machine& machine = view.question.machines[placed.machine];
  const pack::Gpu& gpu = machine.gpus[placed.gpus[0]];
  FleetAsk out;
  const bool in_shards = placed.gpus.size() == 1 && !placed.on[0].instance;
  const uint64_t shards = in_shards ? pack::shards_for(machine, gpu, placed.bytes) : 0;
  const std::string profile = profile_of(view, placed);
  const std::string type = placed.on[0].instance ? profile : pack::slurm_type(machine, gpu);
  out.count = shards > 0 ? shards : placed.gpus.size();
  out.gres = shards > 0     ? format("shard:{}", shards)
             : type.empty() ? format("gpu:{}", placed.gpus.size())
                            : format("gpu:{}:{}", type, placed.gpus.size());
  const std::string partition =
      machine.partitions.empty() ? "" : " --partition=" + shell_argument(machine.partitions);
  out.lines = {format("sbatch --job-name={}{} --nodelist={} --gres={} --wrap={}",
                      shell_argument(view.question.jobs[placed.job].name), partition,
                      shell_argument(machine.name), shell_argument(out.gres),
                      shell_argument(shared_command(view, placed, program)))};
  return out;
}

// Kubernetes puts variables in for $(NAME); $$(NAME) stays $(NAME).
std::string without_variables(const std::string& word) {
  std::string out;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '$') out += '$';
    out += word[i];
  }
  return contains(word, "$(") || contains(word, "$$") ? out : word;
}

// The device plugin's: "1g.10gb+me" is 1g.10gb.me, as a plus sign may not stand in a resource's name.
std::string resource_name(std::string profile) {
  std::replace(profile.begin(), profile.end(), '+', '.');
  return profile;
}

// YAML takes JSON for its values.
FleetAsk ask_kubernetes(const FleetPlanView& view, const pack::FleetPlaced& placed,
                        const std::string& program) {
  const pack::Job& job = view.question.jobs[placed.job];
  FleetAsk out;
  const std::string profile = profile_of(view, placed);
  out.limit = profile.empty() ? "nvidia.com/gpu" : "nvidia.com/mig-" + resource_name(profile);
  out.count = placed.gpus.size();
  std::vector<std::string> words = {"cufit", "run", "--vram", vram_text(placed.bytes), "--"};
  if (job.command.empty())
    words.push_back(program);
  else
    words.insert(words.end(), job.command.begin(), job.command.end());
  std::string command;
  for (const std::string& word : words)
    command += (command.empty() ? "" : ", ") + Json(without_variables(word)).dump();
  out.lines = {format("nodeSelector: {{kubernetes.io/hostname: {}}}",
                      Json(view.question.machines[placed.machine].name).dump()),
               format("resources: {{limits: {{{}: {}}}}}", out.limit, out.count),
               format("command: [{}]", command)};
  return out;
}

}  // namespace

FleetAsk ask_for(const FleetPlanView& view, const pack::FleetPlaced& placed,
                 const std::string& program) {
  if (view.engine == pack::Engine::slurm) return ask_slurm(view, placed, program);
  if (view.engine == pack::Engine::kubernetes) return ask_kubernetes(view, placed, program);
  FleetAsk out;
  out.count = placed.gpus.size();
  out.lines = {format("ssh {} {}", shell_word(view.question.machines[placed.machine].name),
                      shell_argument(command_on_node(view, placed, program)))};
  return out;
}

}  // namespace cufit::report
