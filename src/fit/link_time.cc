// SPDX-License-Identifier: Apache-2.0
#include "fit/link_time.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"

namespace cufit::fit {
namespace {

constexpr double k_mega = 1e6;
constexpr int k_lanes = 16;
// Of Adam: gradient, weight and two states are read, three of them written.
constexpr double k_optimizer_passes = 7;
constexpr uint64_t k_most_world = 1u << 16;
constexpr std::string_view k_collectives[] = {"all_reduce", "all_gather_into_tensor",
                                              "reduce_scatter_tensor"};

double share(const knowledge::Knowledge& knowledge, std::string_view of) {
  for (const knowledge::StepTimeRow& row : knowledge.step_time)
    if (row.of == of) return row.value;
  CUFIT_CHECK(false, "every value is in data/step_time.toml");
  return 0;
}

// Each rank sends all but one part.
double ring(uint64_t ranks, double bytes) {
  return ranks < 2 ? 0 : bytes * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

// What is gathered, and what ranks of a layer sum, in the second step.
struct Told {
  double gathered = 0, summed = 0;
};

Told told_by(const StepProgram& program, const std::vector<SizeAt>& sizes) {
  Told out;
  uint32_t ended = 0;
  for (const StepEvent& event : program.events) {
    if (event.kind == StepEventKind::mark &&
        event.index == static_cast<uint32_t>(TraceMark::step_ends))
      ++ended;
    if (ended > 1) break;
    if (ended == 0 || event.kind != StepEventKind::alloc) continue;
    const auto bytes = static_cast<double>(sizes[event.size].point);
    if (program.storages[event.index].category == StorageCategory::gathered) out.gathered += bytes;
    const std::string_view op = program.text(program.sites[event.site].op);
    if (std::find(std::begin(k_collectives), std::end(k_collectives), op) !=
        std::end(k_collectives))
      out.summed += bytes;
  }
  const auto passes = static_cast<double>(micro_batches(program));
  return {out.gathered / passes, out.summed / passes};
}

uint64_t number_of(const StepProgram& program, std::string_view fact) {
  return parse_uint(std::string(program.fact(fact))).value_or(0);
}

}  // namespace

LinkSpeed link_speed(std::string_view card, std::string_view cc,
                     const knowledge::Knowledge& knowledge) {
  LinkSpeed out;
  double pcie = 0;
  uint32_t gen = 0;
  for (const knowledge::CardPcieRow& row : knowledge.card_pcie)
    if (row.cc == cc || gen == 0) gen = row.gen;  // the first row: where nothing is known
  for (const knowledge::PcieRate& row : knowledge.pcie_rates)
    if (row.gen == gen) pcie = row.mbps * k_mega * k_lanes * share(knowledge, "pcie_share");
  out.host = out.node = pcie;
  for (const knowledge::CardNvlinkRow& row : knowledge.card_nvlink) {
    if (row.gpu != card) continue;
    out.node = row.mbps * k_mega * share(knowledge, "nvlink_share");
    out.nvlink = true;
  }
  const double network = share(knowledge, "network_mbps");
  out.network = network * k_mega * share(knowledge, "network_share");
  out.network_gbits = network * 8 / 1000;
  out.processor = share(knowledge, "processor_mbps") * k_mega;
  return out;
}

Dealing dealing_of(const std::vector<std::string>& switches, const StepProgram& program) {
  Dealing out;
  out.kind = std::string(program.fact("data_parallel"));
  out.world = std::clamp<uint64_t>(number_of(program, "world_size"), 1, k_most_world);
  out.node = std::clamp<uint64_t>(number_of(program, "node_size"), 1, out.world);
  out.weights = number_of(program, "weights_bytes");
  out.trained = number_of(program, "trained_bytes");
  for (const std::string& name : switches) {
    const std::string kind = name.substr(0, name.find(':'));
    if (kind == "zero1" || kind == "fsdp" || kind == "hsdp" || kind == "tp") out.kind = kind;
    if (kind == "hsdp" || kind == "tp")
      out.degree =
          std::clamp<uint64_t>(parse_uint(name.substr(kind.size() + 1)).value_or(1), 1, out.world);
    if (name == "offload") out.offload = true;
  }
  if (out.world < 2) out.kind.clear();
  return out;
}

double StepTraffic::bytes(uint64_t accumulation) const {
  return (pass.bytes + exposed.bytes) * static_cast<double>(accumulation) + last.bytes +
         after.bytes;
}

StepTraffic step_traffic(const StepProgram& whole, uint64_t batch, const Dealing& dealing,
                         const LinkSpeed& speed) {
  StepTraffic out;
  const StepProgram* program = whole.at(batch);
  if (dealing.kind.empty() || program == nullptr) return out;
  const Result<std::vector<SizeAt>> sizes = sizes_at(*program, batch);
  if (!sizes) return out;
  // Of ranks that stand side by side.
  const auto rate = [&](uint64_t ranks) {
    return ranks <= dealing.node ? speed.node : speed.network;
  };
  const auto trained = static_cast<double>(dealing.trained);
  if (dealing.kind == "ddp" || dealing.kind == "zero1") {
    out.last.add(2 * ring(dealing.world, trained), rate(dealing.world));
    // Each rank sends the parameters that it has stepped to all others.
    if (dealing.kind == "zero1") out.after.add(ring(dealing.world, trained), rate(dealing.world));
    return out;
  }
  const Told told = told_by(*program, *sizes);
  const bool tensor = dealing.kind == "tp";
  if (tensor) out.exposed.add(2 * ring(dealing.degree, told.summed), rate(dealing.degree));
  // Of tensor parallelism the groups share shards of what each rank has of a layer.
  const uint64_t shards = tensor                   ? dealing.world / dealing.degree
                          : dealing.kind == "hsdp" ? dealing.degree
                                                   : dealing.world;
  const double part = tensor ? trained / static_cast<double>(dealing.degree) : trained;
  const double across = rate(tensor ? dealing.world : shards);
  out.pass.add(ring(shards, told.gathered) + ring(shards, part), across);
  if (dealing.kind == "hsdp")
    out.pass.add(2 * ring(dealing.world / shards, part / static_cast<double>(shards)),
                 rate(dealing.world));
  if (dealing.offload) {
    out.pass.add((told.gathered + part) / static_cast<double>(shards), speed.host);
    out.after.add(k_optimizer_passes * part / static_cast<double>(shards), speed.processor);
  }
  return out;
}

double step_seconds(const StepTime& time, const StepTraffic& traffic, uint64_t accumulation) {
  const double passes = static_cast<double>(std::max<uint64_t>(accumulation, 1));
  return (passes - 1) * std::max(time.pass, traffic.pass.seconds) +
         std::max(time.pass, traffic.pass.seconds + traffic.last.seconds) +
         passes * traffic.exposed.seconds + time.optimizer + traffic.after.seconds;
}

}  // namespace cufit::fit
