// SPDX-License-Identifier: Apache-2.0
// Do the GPUs of this host work together? What --deep had them do (facts.together): a wrong sum, a
// sum that hangs or fails, one that is slower than half of what the links allow; and which other
// fact explains it.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/gpu_links.h"
#include "checks/machine_checks.h"
#include "checks/together_view.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

// What changes how NCCL goes between GPUs of one host (NCCL user guide, environment variables).
// Names of a fixed list: they are written into a command. Not NCCL_NVLS_ENABLE: who shares an
// NVSwitch with other machines may have to keep it off, and no sum falls below half for it.
constexpr const char* k_way_variables[] = {
    "NCCL_P2P_DISABLE",   "NCCL_P2P_LEVEL", "NCCL_P2P_DIRECT_DISABLE", "NCCL_SHM_DISABLE",
    "NCCL_ALGO",          "NCCL_PROTO",     "NCCL_MIN_NCHANNELS",      "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",      "NCCL_MAX_CTAS",  "NCCL_NTHREADS",           "NCCL_BUFFSIZE",
    "NCCL_CUMEM_ENABLE",  "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE",         "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_FAMILY", "NCCL_NET",       "NCCL_NET_PLUGIN",         "NCCL_COMM_ID"};

std::vector<std::string> set_variables(const facts::Facts& facts) {
  std::vector<std::string> out;
  for (const char* name : k_way_variables)
    if (has_variable(facts, name)) out.push_back(name);
  return out;
}

void add_variables(const Input& input, const std::vector<std::string>& names, Finding& made) {
  std::vector<std::string> without;
  for (const std::string& name : names) {
    without.push_back("-u " + name);
    made.evidence.push_back({"env", name, variable(input.facts, name)});
  }
  made.args["names"] = join(names, ", ");
  made.args["without"] = join(without, " ");
}

bool p2p_is_off(const facts::Facts& facts) {
  const std::string value = variable(facts, "NCCL_P2P_DISABLE");
  return !value.empty() && value != "0";
}

Finding about(const Input& input, const char* id, Severity severity) {
  const facts::TogetherFacts& ran = input.facts.together;
  Finding made = finding(id, severity, k_machine);
  made.args["gpus"] = std::to_string(ran.ranks);
  for (const char* name : {"names", "without", "detail", "warning"}) made.args[name];
  made.evidence.push_back(seen(ran.sum));
  return made;
}

// PCIe carries what the GPUs exchange: then the IOMMU and the bridges matter.
void add_detour(const Input& input, const Finding& effect, std::vector<Finding>& findings) {
  if (group_links(input).nvlink || p2p_is_off(input.facts)) return;
  const PciObstacles found = pci_obstacles(input);
  if (found.iommu.empty() && found.acs.empty()) return;
  Finding made = finding("nccl_p2p_iommu_acs", effect.severity, k_machine);
  made.variant = "deep";
  std::vector<std::string> list;
  if (!found.iommu.empty()) list.push_back("IOMMU: " + join(found.iommu, ", "));
  if (!found.acs.empty()) list.push_back("ACS: " + short_list(found.acs));
  made.args["list"] = join(list, " + ");
  made.evidence = found.evidence;
  for (const Evidence& proof : effect.evidence) made.evidence.push_back(proof);
  findings.push_back(std::move(made));
}

void wrong_data(const Input& input, std::vector<Finding>& findings) {
  const facts::TogetherFacts& ran = input.facts.together;
  const bool sum = ran.sum.value_or("") == "wrong", copies = ran.copies.value_or("") == "wrong";
  if (!sum && !copies) return;
  Finding made = about(input, "gpu_exchange_wrong", Severity::error);
  made.variant = copies ? "copy" : p2p_is_off(input.facts) ? "p2p_off" : "";
  made.args["detail"] = copies ? ran.copies_said : ran.said;
  if (copies) made.evidence = {seen(ran.copies)};
  made.evidence.push_back({"command", ran.sum.source.detail, made.args["detail"]});
  if (copies && sum) made.evidence.push_back({"command", ran.sum.source.detail, ran.said});
  add_detour(input, made, findings);
  findings.push_back(std::move(made));
}

bool about_shared_memory(const std::string& warning) {
  const std::string text = lower(warning);
  for (const char* word :
       {"/dev/shm", "shared memory", "posix_fallocate", "shm_open", "no space left"})
    if (contains(text, word)) return true;
  return false;
}

// NCCL names the reason itself.
bool told_by_nccl(const Input& input, const Finding& effect, std::vector<Finding>& findings) {
  const facts::TogetherFacts& ran = input.facts.together;
  const std::string text = lower(ran.warning);
  if (contains(text, "attaching to shared memory")) {
    findings.push_back(finding("nccl_shm_attach", Severity::error, k_machine));
    findings.back().evidence = effect.evidence;
    return true;
  }
  const std::string name = "NCCL_SOCKET_IFNAME";
  if (!contains(text, "no socket interface") || !has_variable(input.facts, name)) return false;
  Finding made = finding("nccl_network_config", Severity::error, k_machine);
  made.args = {{"variable", name},
               {"value", variable(input.facts, name)},
               {"list", short_list(ran.interfaces)},
               {"iface", ""}};
  made.evidence = effect.evidence;
  made.evidence.push_back({"env", name, made.args["value"]});
  findings.push_back(std::move(made));
  return true;
}

void failed_sum(const Input& input, std::vector<Finding>& findings) {
  const facts::TogetherFacts& ran = input.facts.together;
  const std::string outcome = ran.sum.value_or("");
  const std::string copies = ran.copies.value_or("");
  // One that had no memory to copy is no broken way, and NCCL has found its own.
  const bool copies_end =
      outcome == "ok" &&
      (copies == "hung" || (copies == "failed" && !ended_before_start(ran.copies_said)));
  if (outcome != "hung" && outcome != "failed" && !copies_end) return;
  const std::string& said = copies_end ? ran.copies_said : ran.said;
  if (ended_before_start(said)) {
    findings.push_back(cannot_tell("gpu_exchange_failed", k_machine, said));
    return;
  }
  Finding made = about(input, "gpu_exchange_failed", Severity::error);
  made.args["detail"] = said;
  made.args["warning"] = ran.warning;
  made.evidence.push_back({"command", ran.sum.source.detail, said});
  if (!ran.warning.empty()) made.evidence.push_back({"command", "NCCL", ran.warning});
  const std::vector<std::string> names = set_variables(input.facts);
  if (told_by_nccl(input, made, findings)) {
    findings.push_back(std::move(made));
    return;
  }
  if (copies_end) {
    made.variant = "copy";
  } else if (about_shared_memory(ran.warning)) {
    made.variant = in_container(input.facts) ? "shm_container" : "shm";
    const Fact<uint64_t>& free = input.facts.system.shm_free_bytes;
    if (free) made.evidence.push_back(seen(free.source, format_bytes(*free)));
  } else if (!names.empty()) {
    made.variant = "variables";
    add_variables(input, names, made);
  } else {
    add_detour(input, made, findings);
  }
  findings.push_back(std::move(made));
}

// The first fact that explains the loss, from the surest to the least sure.
void explain_slowness(const Input& input, Finding& made) {
  const std::vector<GpuWay> ways = gpu_ways(input);
  const std::vector<std::string> names = set_variables(input.facts);
  if (!names.empty()) {
    made.variant = "variables";
    add_variables(input, names, made);
    return;
  }
  for (const GpuWay& way : ways) {
    if (way.cuda == nullptr || way.cuda->access.value_or(true)) continue;
    const bool card = way.nvml != nullptr && (way.nvml->p2p.value_or("") == "gpu_not_supported" ||
                                              way.nvml->p2p.value_or("") == "not_supported");
    made.variant = "no_peer";
    // A card without it is as its maker sells it: nothing is broken.
    if (card) made.severity = Severity::note;
    made.args["status"] = way.nvml != nullptr ? way.nvml->p2p.value_or("?") : "?";
    made.evidence.push_back(seen(way.cuda->access));
    if (way.nvml != nullptr) made.evidence.push_back(seen(way.nvml->p2p));
    return;
  }
  for (const GpuView* gpu : gpus_of_cuda(input)) {
    if (gpu->nvml == nullptr || !gpu->nvml->processes || gpu->nvml->processes->empty()) continue;
    const facts::GpuProcess& process = gpu->nvml->processes->front();
    made.variant = "busy";
    made.args["process"] = format("{} ({})", process.name, process.pid);
    made.evidence.push_back(seen(gpu->nvml->processes.source, made.args["process"]));
    return;
  }
  if (goes_through_host(input.facts.together)) {
    made.variant = "not_direct";
    made.evidence.push_back({"command", "NCCL", join(input.facts.together.via, ", ")});
    return;
  }
  for (const GpuWay& way : ways) {
    if (way.nvlinks > 0 || way.nvml == nullptr || way.nvml->topology.value_or("") != "system")
      continue;
    made.variant = "numa";
    made.evidence.push_back(seen(way.nvml->topology));
    return;
  }
}

void slow_sum(const Input& input, std::vector<Finding>& findings) {
  const BusSpeed bus = bus_speed(input);
  if (!bus.slow) return;
  Finding made = about(input, "gpu_exchange_slow", Severity::warning);
  made.args["have"] = speed_text(bus.have),
  made.args["allowed"] = speed_text(bus.links.bytes_per_second);
  made.args["percent"] = format("{:.0f}", bus.have * 100 / bus.links.bytes_per_second);
  made.args["links"] = links_text(bus.links);
  made.args["via"] = join(input.facts.together.via, ", ");
  made.args["status"], made.args["process"];
  made.evidence = {seen(input.facts.together.bus_bytes_per_second.source, made.args["have"])};
  for (const Evidence& proof : bus.links.evidence) made.evidence.push_back(proof);
  explain_slowness(input, made);
  if (made.variant.empty() || made.variant == "numa" || made.variant == "not_direct")
    add_detour(input, made, findings);
  findings.push_back(std::move(made));
}

}  // namespace

std::vector<Finding> check_gpus_together(const Input& input) {
  const facts::TogetherFacts& ran = input.facts.together;
  std::vector<Finding> findings;
  if (!ran.sum) {
    if (failed(ran.sum))
      findings.push_back(cannot_tell("gpu_exchange_failed", k_machine, why_missing(ran.sum)));
    return findings;
  }
  wrong_data(input, findings);
  failed_sum(input, findings);
  slow_sum(input, findings);
  return findings;
}

}  // namespace cufit::checks
