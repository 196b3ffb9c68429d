// SPDX-License-Identifier: Apache-2.0
// Eight GPUs with the same finding are one finding: "GPU 0-7".
#include <algorithm>
#include <map>
#include <optional>

#include "base/format.h"
#include "base/number.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/report_sections.h"

namespace cufit::checks {
namespace {

std::optional<uint32_t> gpu_of(const Finding& finding) {
  if (!starts_with(finding.subject, "GPU ")) return std::nullopt;
  const std::optional<uint64_t> index = parse_uint(std::string_view(finding.subject).substr(4));
  if (!index) return std::nullopt;
  return static_cast<uint32_t>(*index);
}

struct SameOnEach {
  Finding finding;
  std::vector<uint32_t> gpus;
  std::map<std::string, std::vector<std::string>> values;  // of the args that differ, distinct
};

// Eight GPUs with the same finding are one finding. Numbers that differ are listed; what names a
// single GPU says which ones.
void put_together(const SameOnEach& same, const Input& input, Finding& out) {
  out = same.finding;
  if (same.gpus.size() < 2) return;
  std::vector<std::string> indices;
  for (uint32_t gpu : same.gpus) indices.push_back(std::to_string(gpu));
  const std::string range = number_ranges(same.gpus, ",");
  out.subject = "GPU " + range;
  for (const auto& [name, values] : same.values) out.args[name] = short_list(values, 4);
  std::string label = "GPU " + range;
  for (const GpuView& gpu : input.gpus)
    if (gpu.index == same.gpus.front())
      label += in_sentence(gpu).substr(std::string("GPU " + std::to_string(gpu.index)).size());
  out.args["gpu"] = label;
  if (out.args.count("index") > 0) out.args["index"] = join(indices, ",");
}

std::string name_of(const Input& input, uint32_t index) {
  for (const GpuView& gpu : input.gpus)
    if (gpu.index == index) return gpu.name;
  return {};
}

// Two commands cannot be listed in the place of one, and two Xids are two findings.
bool same_command(const Finding& a, const Finding& b) {
  for (const char* name : {"command", "install", "number"}) {
    const auto one = a.args.find(name), other = b.args.find(name);
    if ((one == a.args.end()) != (other == b.args.end())) return false;
    if (one != a.args.end() && one->second != other->second) return false;
  }
  return true;
}

bool is_same(const SameOnEach& same, const Finding& finding, const Input& input) {
  const Finding& first = same.finding;
  return first.id == finding.id && first.variant == finding.variant &&
         first.severity == finding.severity && first.unknown_because == finding.unknown_because &&
         same_command(first, finding) &&
         name_of(input, same.gpus.front()) == name_of(input, *gpu_of(finding));
}

}  // namespace

std::vector<Finding> merge_equal_gpus(std::vector<Finding> findings, const Input& input) {
  std::vector<SameOnEach> groups;
  for (Finding& finding : findings) {
    const std::optional<uint32_t> gpu = gpu_of(finding);
    auto same = std::find_if(groups.begin(), groups.end(), [&](const SameOnEach& group) {
      return gpu && !group.gpus.empty() && is_same(group, finding, input);
    });
    if (same == groups.end()) {
      groups.push_back({std::move(finding), {}, {}});
      if (!gpu) continue;
      groups.back().gpus = {*gpu};
      for (const auto& [name, value] : groups.back().finding.args)
        groups.back().values[name] = {value};
      continue;
    }
    same->gpus.push_back(*gpu);
    for (const auto& [name, value] : finding.args) {
      std::vector<std::string>& values = same->values[name];
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
    for (Evidence& one : finding.evidence) same->finding.evidence.push_back(std::move(one));
    for (std::string& id : finding.consequences)
      if (std::find(same->finding.consequences.begin(), same->finding.consequences.end(), id) ==
          same->finding.consequences.end())
        same->finding.consequences.push_back(std::move(id));
  }
  std::vector<Finding> out(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) put_together(groups[i], input, out[i]);
  return out;
}

}  // namespace cufit::checks
