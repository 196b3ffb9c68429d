// SPDX-License-Identifier: Apache-2.0
#include "resolve/live_target.h"

#include <algorithm>

#include "base/format.h"
#include "checks/check.h"

namespace cufit::resolve {
namespace {

using facts::DrivenGpu;
using facts::Facts;
using facts::GpuAccess;
using knowledge::Knowledge;

constexpr int k_cuda_no_device = 100;
constexpr const char* k_label = "this machine";

LiveTarget seen(LiveTarget::Sight sight, std::string reason,
                std::map<std::string, std::string> args = {}) {
  LiveTarget out;
  out.sight = sight;
  out.reason = std::move(reason);
  out.args = std::move(args);
  return out;
}

LiveTarget none(std::string reason, std::map<std::string, std::string> args = {}) {
  return seen(LiveTarget::Sight::none, std::move(reason), std::move(args));
}
LiveTarget unclear(std::string reason, std::map<std::string, std::string> args = {}) {
  return seen(LiveTarget::Sight::unclear, std::move(reason), std::move(args));
}

std::string variable_text(const Facts& facts, std::string_view name) {
  return checks::variable(facts, name);
}

// Numbers as CUDA_DEVICE_ORDER=PCI_BUS_ID gives them: by address among those that can be opened.
std::optional<size_t> number_of(const GpuAccess& access, const std::string& address) {
  size_t number = 0;
  for (const DrivenGpu& gpu : access.gpus) {
    if (gpu.address == address) return gpu.usable ? std::optional<size_t>(number) : std::nullopt;
    number += gpu.usable ? 1 : 0;
  }
  return std::nullopt;
}

void list_gpus(const Facts& facts, const GpuAccess& access, const Knowledge& knowledge,
               LiveTarget& out) {
  out.target = target_of(facts, knowledge, k_label);
  for (const checks::GpuView& view : checks::make_input(facts, knowledge).gpus) {
    VisibleGpu gpu{view.name, view.cc, {}, {}};
    if (view.cuda != nullptr) gpu.uuid = view.cuda->uuid.value_or("");
    if (view.pci != nullptr) {
      gpu.number = number_of(access, view.pci->address);
      for (const DrivenGpu& driven : access.gpus)
        if (gpu.uuid.empty() && driven.address == view.pci->address) gpu.uuid = driven.uuid;
    }
    out.gpus.push_back(std::move(gpu));
  }
}

// A board whose PCI id no table has speaks by the name that the module gives it.
bool known_by_name(const DrivenGpu& gpu, const Knowledge& knowledge) {
  return knowledge.find_gpu_by_pci(gpu.device_id) == nullptr && !gpu.model.empty() &&
         knowledge.find_gpu(gpu.model) != nullptr;
}

void name_boards(const GpuAccess& access, const std::vector<size_t>& wanted,
                 const Knowledge& knowledge, Facts& facts) {
  for (const size_t at : wanted) {
    const DrivenGpu& gpu = access.gpus[at];
    if (!known_by_name(gpu, knowledge)) continue;
    facts::NvmlGpu named;
    named.index = static_cast<uint32_t>(at);
    named.name = known(gpu.model, SourceKind::file, "/proc/driver/nvidia/gpus");
    named.pci_address = known(gpu.address, SourceKind::file, "/proc/driver/nvidia/gpus");
    facts.nvml.gpus.push_back(std::move(named));
  }
}

void keep_functions(const GpuAccess& access, const std::vector<size_t>& wanted, Facts& facts) {
  std::vector<facts::PciGpu> functions;
  for (const facts::PciGpu& function : *access.facts.pci)
    for (const size_t at : wanted)
      if (access.gpus[at].address == function.address) functions.push_back(function);
  facts.pci.value = std::move(functions);
}

bool any_usable(const GpuAccess& access) {
  return std::any_of(access.gpus.begin(), access.gpus.end(),
                     [](const DrivenGpu& gpu) { return gpu.usable; });
}

// No libcuda would load. On the bus a GPU may be waiting for a driver nonetheless.
LiveTarget without_library(const GpuAccess& access, const PciBus& pci_bus,
                           const Knowledge& knowledge) {
  if (any_usable(access)) return unclear("no_libcuda");
  if (access.facts.kernel.version) return none("not_given");
  const Facts bus = pci_bus();
  for (const checks::GpuView& view : checks::make_input(bus, knowledge).gpus)
    if (view.pci != nullptr && view.pci->driver.value_or("") != "vfio-pci")
      return none("gpu_without_driver", {{"gpu", view.name}});
  return none("no_driver");
}

}  // namespace

LiveTarget target_from_files(const GpuAccess& access, const facts::Visibility& visible,
                             const PciBus& pci_bus, const Knowledge& knowledge) {
  const std::string hidden_by = variable_text(access.facts, "CUDA_VISIBLE_DEVICES");
  LiveTarget out;
  if (facts::loaded_libcuda(access.facts) == nullptr)
    out = without_library(access, pci_bus, knowledge);
  else if (visible.none == "unmatched")
    out =
        unclear("unmatched", {{"value", hidden_by}, {"count", std::to_string(access.gpus.size())}});
  else if (visible.none == "hidden")
    out = none("hidden", {{"value", hidden_by}});
  else if (visible.gpus.empty())
    out = none("not_given");
  else
    out.sight = LiveTarget::Sight::gpus;
  Facts facts = access.facts;
  keep_functions(access, visible.gpus, facts);
  name_boards(access, visible.gpus, knowledge, facts);
  list_gpus(facts, access, knowledge, out);
  return out;
}

// What the driver said that it shows; its PCI functions only where it named them.
LiveTarget target_from_answer(const GpuAccess& access, Facts answer, const Knowledge& knowledge) {
  Facts facts = access.facts;
  facts.cuda = std::move(answer.cuda);
  facts.nvml.library = answer.nvml.library;
  facts.nvml.driver_version = answer.nvml.driver_version;
  facts.nvml.cuda_version = answer.nvml.cuda_version;
  const Fact<int>& init = facts.cuda.init_result;
  std::vector<size_t> shown;
  for (const facts::CudaDevice& device : facts.cuda.devices)
    for (size_t i = 0; i < access.gpus.size(); ++i)
      if (lower(device.pci_address.value_or("")) == lower(access.gpus[i].address))
        shown.push_back(i);
  keep_functions(access, shown, facts);
  LiveTarget out;
  const std::string value = variable_text(facts, "CUDA_VISIBLE_DEVICES");
  const bool has_value = checks::has_variable(facts, "CUDA_VISIBLE_DEVICES");
  if (!init && !facts.cuda.library && !any_usable(access))
    out = none("not_given");  // the library is gone or cannot be loaded, and no GPU was given
  else if (!init)
    out = unclear("driver_silent", {{"note", init.note.empty() ? init.source.detail : init.note}});
  else if (*init == 0 && !facts.cuda.devices.empty())
    out.sight = LiveTarget::Sight::gpus;
  else if (*init != 0 && *init != k_cuda_no_device)
    out = unclear("driver_code", {{"code", std::to_string(*init)}});
  else if (has_value && (trim(value).empty() || value == "-1" || value == "NoDevFiles"))
    out = none("hidden", {{"value", value}});
  else if (has_value)
    out = unclear("unmatched", {{"value", value}, {"count", std::to_string(access.gpus.size())}});
  else
    out = any_usable(access) ? unclear("no_device") : none("not_given");
  list_gpus(facts, access, knowledge, out);
  return out;
}

std::string reason_to_ask(const GpuAccess& access, const facts::Visibility& visible,
                          const Knowledge& knowledge) {
  if (!visible.ask.empty()) return visible.ask;
  for (const size_t at : visible.gpus) {
    const DrivenGpu& gpu = access.gpus[at];
    if (knowledge.find_cc_by_pci(gpu.device_id).empty() && !known_by_name(gpu, knowledge))
      return "pci_id";
  }
  return {};
}

}  // namespace cufit::resolve
