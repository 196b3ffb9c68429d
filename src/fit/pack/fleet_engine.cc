// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/fleet_engine.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

#include "base/format.h"

namespace cufit::pack {
namespace {

constexpr uint64_t k_mib = uint64_t{1} << 20;

std::string letters(std::string_view text) {
  std::string out;
  for (const char c : lower(text))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += c;
  return out;
}

// "a100_3g.40gb", "1g.10gb".
bool is_mig_type(std::string_view type) {
  const size_t slices = type.find("g.");
  return slices != std::string_view::npos && slices > 0 &&
         std::isdigit(static_cast<unsigned char>(type[slices - 1])) != 0 && contains(type, "gb");
}

// Of GPUs of which Slurm has `free` for jobs: those with least memory in use stay.
void keep_free(const std::vector<size_t>& alike, uint64_t free, std::vector<char>& keep) {
  for (size_t i = 0; i < alike.size(); ++i)
    if (i < free) keep[alike[i]] = 1;
}

// Where types are named, an instance is asked for by one, and a whole GPU is none of the instances.
bool may_have_no_type(const Machine& machine, bool is_instance) {
  if (machine.types.empty()) return true;
  return !is_instance && !std::all_of(machine.types.begin(), machine.types.end(), is_mig_type);
}

// Slurm gives no more of a type than it has and has not given to jobs; what has no type that is sure
// shares what all types have.
void take_given_away(const formats::SlurmNodeGres& gres, Machine& machine) {
  std::vector<size_t> order(machine.gpus.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return machine.gpus[a].in_use < machine.gpus[b].in_use;
  });
  std::map<std::string, std::vector<size_t>> of_type;
  for (const size_t i : order) {
    const std::string type = slurm_type(machine, machine.gpus[i]);
    if (!type.empty() || may_have_no_type(machine, machine.gpus[i].is_instance))
      of_type[type].push_back(i);
  }
  std::vector<char> keep(machine.gpus.size(), 0);
  uint64_t free_of_all = 0;
  for (const formats::SlurmGpuType& type : gres.gpus) {
    const uint64_t free = type.count - std::min(type.count, type.taken);
    free_of_all += free;
    if (!type.type.empty()) keep_free(of_type[type.type], free, keep);
  }
  const auto kept = static_cast<uint64_t>(std::count(keep.begin(), keep.end(), 1));
  keep_free(of_type[""], free_of_all - std::min(free_of_all, kept), keep);
  const size_t before = machine.gpus.size();
  size_t next = 0;
  for (size_t i = 0; i < before; ++i)
    if (keep[i] != 0) machine.gpus[next++] = machine.gpus[i];
  machine.gpus.resize(next);
  machine.given_away = before - next;
}

// GPUs of which others have shards: what is left of them, which nobody gets as a whole. How many are
// taken is not told everywhere: of such a GPU nothing is planned.
void take_shards_away(const formats::SlurmNodeGres& gres, Machine& machine) {
  for (const auto& [number, shards] : gres.shards_of) {
    const auto gpu = std::find_if(
        machine.gpus.begin(), machine.gpus.end(),
        [&, index = number](const Gpu& one) { return one.index == index && !one.is_instance; });
    if (gpu == machine.gpus.end()) continue;
    gpu->in_parts = true;
    const uint64_t left = shards.there - std::min(shards.there, shards.taken);
    gpu->usable = std::min(gpu->usable, left * gpu->grain);
  }
  const auto none = [](const Gpu& gpu) { return gpu.in_parts && gpu.usable < k_mib; };
  const auto full = std::count_if(machine.gpus.begin(), machine.gpus.end(), none);
  machine.given_away += static_cast<uint64_t>(full);
  std::erase_if(machine.gpus, none);
}

// Of MIG instances Slurm gives no shards: they are no part of the count.
uint64_t shards_of_a_gpu(const formats::SlurmNodeGres& gres) {
  uint64_t gpus = 0;
  for (const formats::SlurmGpuType& type : gres.gpus)
    if (!is_mig_type(type.type)) gpus += type.count;
  return gpus == 0 ? 0 : gres.shards / gpus;
}

// Empty where the default partition has the node, or nobody knows.
std::string partitions_for(const formats::SlurmNodeGres& gres, const SlurmCluster& slurm) {
  std::vector<std::string> out;
  for (const std::string& name : gres.partitions) {
    const auto known =
        std::find_if(slurm.partitions.begin(), slurm.partitions.end(),
                     [&](const formats::SlurmPartition& one) { return one.name == name; });
    if (known != slurm.partitions.end() && !known->is_up) continue;
    if (known != slurm.partitions.end() && known->is_default) return {};
    out.push_back(name);
  }
  return join(out, ",");
}

void offer_by_slurm(const formats::SlurmNodeGres* gres, const SlurmCluster& slurm,
                    Machine& machine) {
  if (gres != nullptr) {
    for (const formats::SlurmGpuType& type : gres->gpus)
      if (!type.type.empty()) machine.types.push_back(type.type);
    machine.shards = shards_of_a_gpu(*gres);
    machine.partitions = partitions_for(*gres, slurm);
    take_given_away(*gres, machine);
  }
  for (Gpu& gpu : machine.gpus) {
    if (machine.shards > 0 && !gpu.is_instance)
      gpu.grain = std::max((gpu.usable + gpu.in_use) / machine.shards / k_mib * k_mib, k_mib);
    else
      gpu.whole = true;
  }
  if (gres != nullptr) take_shards_away(*gres, machine);
}

}  // namespace

void offer_by(Engine engine, const SlurmCluster& slurm, FleetQuestion& question) {
  if (engine == Engine::ssh) return;
  if (engine == Engine::slurm)
    for (Job& job : question.jobs) job.whole = job.gpus > 1;
  std::map<std::string, const formats::SlurmNodeGres*> by_name;
  for (const formats::SlurmNodeGres& node : slurm.nodes) by_name[node.name] = &node;
  for (Machine& machine : question.machines) {
    if (engine == Engine::slurm) {
      const auto known = by_name.find(machine.name);
      offer_by_slurm(known == by_name.end() ? nullptr : known->second, slurm, machine);
    } else {
      for (Gpu& gpu : machine.gpus) gpu.whole = true;
    }
  }
}

std::vector<MachineOut> take_out_by_slurm(const SlurmCluster& slurm,
                                          std::vector<Machine>& machines) {
  std::map<std::string, std::string> states;
  for (const formats::SlurmNodeGres& node : slurm.nodes)
    if (!node.takes_jobs()) states[node.name] = node.state;
  std::vector<MachineOut> out;
  for (const Machine& machine : machines)
    if (const auto state = states.find(machine.name); state != states.end())
      out.push_back({machine.name, "broken", "Slurm says " + state->second});
  std::erase_if(machines, [&](const Machine& machine) { return states.count(machine.name) != 0; });
  return out;
}

std::string slurm_type(const Machine& machine, const Gpu& gpu) {
  if (gpu.is_instance) {
    for (const std::string& type : machine.types)
      if (ends_with(type, gpu.profile)) return type;
    return {};
  }
  if (machine.types.size() == 1 && !is_mig_type(machine.types[0])) return machine.types[0];
  std::string best;
  for (const std::string& type : machine.types)
    if (!is_mig_type(type) && contains(letters(gpu.name), letters(type)) &&
        type.size() > best.size())
      best = type;
  return best;
}

uint64_t shards_for(const Machine& machine, const Gpu& gpu, uint64_t bytes) {
  if (machine.shards == 0 || gpu.grain == 0) return 0;
  return std::min(machine.shards, (bytes + gpu.grain - 1) / gpu.grain);
}

}  // namespace cufit::pack
