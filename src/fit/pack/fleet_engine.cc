// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/fleet_engine.h"

#include <algorithm>
#include <cctype>
#include <map>

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

void take_given_away(uint64_t taken, Machine& machine) {
  machine.given_away = std::min<uint64_t>(taken, machine.gpus.size());
  std::vector<size_t> order(machine.gpus.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return machine.gpus[a].in_use > machine.gpus[b].in_use;
  });
  order.resize(machine.given_away);
  std::sort(order.rbegin(), order.rend());
  for (const size_t i : order) machine.gpus.erase(machine.gpus.begin() + static_cast<long>(i));
}

void offer_by_slurm(const formats::SlurmNodeGres* gres, Machine& machine) {
  if (gres != nullptr) {
    for (const formats::SlurmGpuType& type : gres->gpus)
      if (!type.type.empty()) machine.types.push_back(type.type);
    const uint64_t gpus = gres->gpu_count();
    machine.shards = gpus == 0 ? 0 : gres->shards / gpus;
    take_given_away(gres->gpus_taken, machine);
  }
  for (Gpu& gpu : machine.gpus) {
    if (machine.shards > 0 && !gpu.is_instance)
      gpu.grain = std::max((gpu.usable + gpu.in_use) / machine.shards / k_mib * k_mib, k_mib);
    else
      gpu.whole = true;
  }
}

}  // namespace

void offer_by(Engine engine, const std::vector<formats::SlurmNodeGres>& slurm,
              FleetQuestion& question) {
  if (engine == Engine::ssh) return;
  if (engine == Engine::slurm)
    for (Job& job : question.jobs) job.whole = job.gpus > 1;
  std::map<std::string, const formats::SlurmNodeGres*> by_name;
  for (const formats::SlurmNodeGres& node : slurm) by_name[node.name] = &node;
  for (Machine& machine : question.machines) {
    if (engine == Engine::slurm) {
      const auto known = by_name.find(machine.name);
      offer_by_slurm(known == by_name.end() ? nullptr : known->second, machine);
    } else {
      for (Gpu& gpu : machine.gpus) gpu.whole = true;
    }
  }
}

std::string slurm_type(const Machine& machine, const Gpu& gpu) {
  if (gpu.is_instance) {
    for (const std::string& type : machine.types)
      if (ends_with(type, gpu.profile)) return type;
    return {};
  }
  if (machine.types.size() == 1) return machine.types[0];
  std::string best;
  for (const std::string& type : machine.types)
    if (contains(letters(gpu.name), letters(type)) && type.size() > best.size()) best = type;
  return best;
}

uint64_t shards_for(const Machine& machine, const Gpu& gpu, uint64_t bytes) {
  if (machine.shards == 0 || gpu.grain == 0) return 0;
  return std::min(machine.shards, (bytes + gpu.grain - 1) / gpu.grain);
}

}  // namespace cufit::pack
