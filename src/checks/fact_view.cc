// SPDX-License-Identifier: Apache-2.0
#include "checks/fact_view.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::checks {

std::vector<const facts::PciGpu*> pci_gpus(const facts::Facts& facts) {
  std::vector<const facts::PciGpu*> found;
  if (!facts.pci) return found;
  for (const facts::PciGpu& gpu : *facts.pci) {
    if (starts_with(gpu.class_code, "03")) found.push_back(&gpu);
  }
  return found;
}

const facts::DeviceNode* find_node(const facts::Facts& facts, std::string_view path) {
  for (const facts::DeviceNode& node : facts.kernel.nodes) {
    if (node.path == path) return &node;
  }
  return nullptr;
}

bool is_gpu_node(std::string_view path) {
  constexpr std::string_view prefix = "/dev/nvidia";
  if (!starts_with(path, prefix) || path.size() == prefix.size()) return false;
  return std::all_of(path.begin() + prefix.size(), path.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

bool is_kept_from_this_job(const facts::Facts& facts, const facts::DeviceNode& node) {
  if (!is_gpu_node(node.path) || !node.mode || node.usable || !ends_with(*node.mode, "rw-"))
    return false;
  if (facts.nvml.init_result.value_or(-1) != 0 || facts.nvml.gpus.empty()) return false;
  return std::any_of(facts.kernel.nodes.begin(), facts.kernel.nodes.end(), [](const auto& other) {
    return is_gpu_node(other.path) && other.mode && other.usable;
  });
}

bool exists(const facts::DeviceNode* node) { return node != nullptr && node->mode; }

std::string log_line(const facts::Facts& facts, std::initializer_list<std::string_view> texts) {
  if (!facts.kernel.log) return {};
  for (const std::string& line : *facts.kernel.log) {
    const std::string small = lower(line);
    for (std::string_view text : texts) {
      if (contains(small, text)) return line;
    }
  }
  return {};
}

bool cuda_works(const facts::Facts& facts) {
  return facts.cuda.init_result && *facts.cuda.init_result == 0;
}

std::vector<const facts::Distribution*> find_distributions(const facts::PythonEnv& env,
                                                           std::string_view name) {
  std::vector<const facts::Distribution*> found;
  if (!env.distributions) return found;
  for (const facts::Distribution& distribution : *env.distributions) {
    if (distribution.name == name) found.push_back(&distribution);
  }
  return found;
}

std::string short_list(const std::vector<std::string>& parts, size_t limit) {
  if (parts.size() <= limit) return join(parts, ", ");
  const std::vector<std::string> first(parts.begin(),
                                       parts.begin() + static_cast<ptrdiff_t>(limit));
  return format("{} (+{})", join(first, ", "), parts.size() - limit);
}

uint32_t major_of(std::string_view version) {
  const std::optional<Version> parsed = parse_version(version);
  return parsed ? parsed->part(0) : 0;
}

std::string_view public_version(std::string_view version) {
  return version.substr(0, version.find('+'));
}

std::string_view local_version(std::string_view version) {
  const size_t plus = version.find('+');
  return plus == std::string_view::npos ? std::string_view() : version.substr(plus + 1);
}

const GpuView* gpu_at(const Input& input, const std::string& pci) {
  if (pci.empty()) return nullptr;
  for (const GpuView& gpu : input.gpus) {
    if (gpu.pci != nullptr && starts_with(gpu.pci->address, pci)) return &gpu;
    if (gpu.nvml != nullptr && gpu.nvml->pci_address && contains(*gpu.nvml->pci_address, pci))
      return &gpu;
  }
  return nullptr;
}

}  // namespace cufit::checks
