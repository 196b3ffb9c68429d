// SPDX-License-Identifier: Apache-2.0
// The section "GPUs together" of doctor --deep: one row per question, whether or not it led to a
// finding.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/report_sections.h"
#include "checks/together_view.h"

namespace cufit::checks {
namespace {

// Healthy links give a sum 60 % of their rate and more (nccl-tests, doc/PERFORMANCE.md, reckons the
// bus bandwidth to be set beside the rate of the links). Below half, something is in the way.
constexpr double k_slow_share = 0.5;
// A smaller sum is ruled by the time that each step takes, not by the links.
constexpr uint64_t k_judged_bytes = 64u << 20;

Link row_of(const char* name, LinkState state, const std::string& key) {
  return section_row("together", name, state, key);
}

std::string pair_text(const GpuWay& way) {
  return format("{}-{}", way.from->cuda->ordinal, way.to->cuda->ordinal);
}

void add_access(const std::vector<GpuWay>& ways, std::vector<Link>& rows) {
  std::vector<std::string> without, states;
  const facts::CudaPeer* proof = nullptr;
  const facts::NvmlPeer* why = nullptr;
  for (const GpuWay& way : ways) {
    if (way.cuda == nullptr || !way.cuda->access) continue;
    if (proof == nullptr) proof = way.cuda;
    if (*way.cuda->access) continue;
    if (without.empty()) proof = way.cuda, why = way.nvml;
    const std::string back = format("{}-{}", way.to->cuda->ordinal, way.from->cuda->ordinal);
    if (std::find(without.begin(), without.end(), back) == without.end())
      without.push_back(pair_text(way));
  }
  if (proof == nullptr) return;
  Link link = row_of("access", without.empty() ? LinkState::ok : LinkState::limited,
                     without.empty() ? "ok" : "none");
  link.args["pairs"] = short_list(without);
  link.args["status"] = why != nullptr ? why->p2p.value_or("?") : "?";
  link.evidence.push_back(seen(proof->access));
  if (why != nullptr) link.evidence.push_back(seen(why->p2p));
  rows.push_back(std::move(link));
}

void add_links(const Input& input, const std::vector<GpuWay>& ways, std::vector<Link>& rows) {
  const GroupLinks links = group_links(input);
  if (links.bytes_per_second == 0) {
    rows.push_back(row_of("links", LinkState::unknown, "unknown"));
    return;
  }
  // The farthest way, as NVML names it from the board to the link between CPUs.
  static const char* const k_far[] = {"system",   "node",   "hostbridge",
                                      "multiple", "single", "internal"};
  const facts::NvmlPeer* farthest = nullptr;
  for (const char* level : k_far)
    for (const GpuWay& way : ways)
      if (farthest == nullptr && way.nvml != nullptr && way.nvml->topology.value_or("") == level)
        farthest = way.nvml;
  const std::string level = farthest != nullptr ? *farthest->topology : "";
  Link link = row_of("links", LinkState::ok,
                     links.nvlink    ? "nvlink"
                     : level.empty() ? "pcie"
                                     : "pcie_" + level);
  link.args["links"] = links_text(links);
  link.args["speed"] = speed_text(links.bytes_per_second);
  link.evidence = links.evidence;
  if (farthest != nullptr) link.evidence.push_back(seen(farthest->topology));
  rows.push_back(std::move(link));
}

void add_copies(const facts::TogetherFacts& ran, std::vector<Link>& rows) {
  if (!ran.copies) return;
  const std::string& outcome = *ran.copies;
  Link link = row_of("copies", outcome == "ok" ? LinkState::ok : LinkState::broken, outcome);
  double least = 0, most = 0;
  for (const facts::PeerCopy& one : ran.pairs) {
    if (least == 0 || one.bytes_per_second < least) least = one.bytes_per_second;
    most = std::max(most, one.bytes_per_second);
  }
  if (outcome == "failed" && ended_before_start(ran.copies_said)) link.state = LinkState::unknown;
  link.args["least"] = speed_text(least), link.args["most"] = speed_text(most);
  link.args["size"] = format_bytes(ran.copy_bytes.value_or(0));
  link.args["detail"] = ran.copies_said;
  link.evidence.push_back(seen(ran.copies));
  for (const facts::PeerCopy& one : ran.pairs)
    link.evidence.push_back(
        {"command", ran.copies.source.detail,
         format("{} -> {}: {}", one.from, one.to, speed_text(one.bytes_per_second))});
  rows.push_back(std::move(link));
}

void add_sum(const facts::TogetherFacts& ran, std::vector<Link>& rows) {
  if (!ran.sum) {
    Link link = row_of("sum", LinkState::unknown, "unknown");
    link.args["because"] = ran.sum.note;
    rows.push_back(std::move(link));
    return;
  }
  const bool started = !ended_before_start(ran.said);
  Link link = row_of("sum",
                     *ran.sum == "ok" ? LinkState::ok
                     : started        ? LinkState::broken
                                      : LinkState::unknown,
                     *ran.sum);
  link.args["gpus"] = std::to_string(ran.ranks);
  link.args["nccl"] = ran.nccl.empty() ? "?" : ran.nccl;
  link.args["size"] = format_bytes(ran.sum_bytes.value_or(0));
  link.args["detail"] = ran.said;
  link.args["micros"] = format("{:.0f}", ran.small_seconds.value_or(0) * 1e6);
  link.evidence.push_back(seen(ran.sum));
  if (!ran.warning.empty()) link.evidence.push_back({"command", "NCCL", ran.warning});
  rows.push_back(std::move(link));
}

void add_speed(const Input& input, std::vector<Link>& rows) {
  const facts::TogetherFacts& ran = input.facts.together;
  const BusSpeed bus = bus_speed(input);
  if (bus.have == 0) return;
  Link link = row_of("speed", bus.slow ? LinkState::limited : LinkState::ok,
                     !bus.judged       ? "measured"
                     : ran.via.empty() ? "share"
                                       : "share_via");
  link.args["have"] = speed_text(bus.have);
  link.args["via"] = join(ran.via, ", ");
  if (bus.judged) {
    link.args["allowed"] = speed_text(bus.links.bytes_per_second);
    link.args["percent"] = format("{:.0f}", bus.have * 100 / bus.links.bytes_per_second);
  }
  link.evidence.push_back(seen(ran.bus_bytes_per_second.source, link.args["have"]));
  rows.push_back(std::move(link));
}

void add_obstacles(const Input& input, std::vector<Link>& rows) {
  const PciObstacles found = pci_obstacles(input);
  if (!found.read) return;
  const bool any = !found.iommu.empty() || !found.acs.empty();
  // Through NVLink nothing passes them.
  const bool matters = any && !group_links(input).nvlink;
  std::vector<std::string> list;
  if (!found.iommu.empty()) list.push_back("IOMMU: " + join(found.iommu, ", "));
  if (!found.acs.empty()) list.push_back("ACS: " + short_list(found.acs));
  Link link = row_of("detours",
                     matters                    ? LinkState::limited
                     : any                      ? LinkState::ok
                     : found.unreadable.empty() ? LinkState::ok
                                                : LinkState::unknown,
                     matters                    ? "on"
                     : any                      ? "nvlink"
                     : found.unreadable.empty() ? "off"
                                                : "unreadable");
  link.args["list"] = join(list, " + ");
  link.args["bridges"] = short_list(found.unreadable);
  link.evidence = found.evidence;
  rows.push_back(std::move(link));
}

}  // namespace

BusSpeed bus_speed(const Input& input) {
  const facts::TogetherFacts& ran = input.facts.together;
  BusSpeed out;
  if (ran.sum.value_or("") != "ok" && ran.sum.value_or("") != "wrong") return out;
  out.have = ran.bus_bytes_per_second.value_or(0);
  out.links = group_links(input);
  out.judged =
      out.have > 0 && out.links.bytes_per_second > 0 && ran.sum_bytes.value_or(0) >= k_judged_bytes;
  out.slow = out.judged && out.have < k_slow_share * out.links.bytes_per_second;
  return out;
}

bool ended_before_start(const std::string& said) {
  for (const char* step : {"import of torch", "memory for the copies", "no free memory",
                           "out of memory", "OutOfMemoryError"})
    if (contains(said, step)) return true;
  return false;
}

bool goes_through_host(const facts::TogetherFacts& ran) {
  return !ran.via.empty() &&
         std::none_of(ran.via.begin(), ran.via.end(), [](const std::string& way) {
           return starts_with(way, "P2P") || starts_with(way, "NVLS") ||
                  starts_with(way, "CollNet");
         });
}

std::vector<Link> list_together(const Input& input) {
  std::vector<Link> rows;
  const facts::TogetherFacts& ran = input.facts.together;
  const std::vector<GpuWay> ways = gpu_ways(input);
  const bool asked =
      ran.sum || !ran.sum.note.empty() ||
      std::any_of(ways.begin(), ways.end(), [](const GpuWay& way) { return way.cuda != nullptr; });
  if (input.what_if || !asked) return rows;
  add_access(ways, rows);
  add_links(input, ways, rows);
  add_copies(ran, rows);
  add_sum(ran, rows);
  add_speed(input, rows);
  add_obstacles(input, rows);
  return rows;
}

}  // namespace cufit::checks
