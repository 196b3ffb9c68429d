// SPDX-License-Identifier: Apache-2.0
#include "resolve/live_target.h"

#include <algorithm>

#include "base/format.h"
#include "checks/check.h"
#include "host/answer_cache.h"
#include "host/launch_facts.h"
#include "host/probe.h"

namespace cufit::resolve {
namespace {

using host::DrivenGpu;
using host::Facts;
using host::LaunchFacts;
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
std::optional<size_t> number_of(const LaunchFacts& launch, const std::string& address) {
  size_t number = 0;
  for (const DrivenGpu& gpu : launch.gpus) {
    if (gpu.address == address) return gpu.usable ? std::optional<size_t>(number) : std::nullopt;
    number += gpu.usable ? 1 : 0;
  }
  return std::nullopt;
}

void list_gpus(const Facts& facts, const LaunchFacts& launch, const Knowledge& knowledge,
               LiveTarget& out) {
  out.target = target_of(facts, knowledge, k_label);
  for (const checks::GpuView& view : checks::make_input(facts, knowledge).gpus) {
    VisibleGpu gpu{view.name, view.cc, {}, {}};
    if (view.cuda != nullptr) gpu.uuid = view.cuda->uuid.value_or("");
    if (view.pci != nullptr) {
      gpu.number = number_of(launch, view.pci->address);
      for (const DrivenGpu& driven : launch.gpus)
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

void name_boards(const LaunchFacts& launch, const std::vector<size_t>& wanted,
                 const Knowledge& knowledge, Facts& facts) {
  for (const size_t at : wanted) {
    const DrivenGpu& gpu = launch.gpus[at];
    if (!known_by_name(gpu, knowledge)) continue;
    host::NvmlGpu named;
    named.index = static_cast<uint32_t>(at);
    named.name = known(gpu.model, SourceKind::file, "/proc/driver/nvidia/gpus");
    named.pci_address = known(gpu.address, SourceKind::file, "/proc/driver/nvidia/gpus");
    facts.nvml.gpus.push_back(std::move(named));
  }
}

void keep_functions(const LaunchFacts& launch, const std::vector<size_t>& wanted, Facts& facts) {
  std::vector<host::PciGpu> functions;
  for (const host::PciGpu& function : *launch.facts.pci)
    for (const size_t at : wanted)
      if (launch.gpus[at].address == function.address) functions.push_back(function);
  facts.pci.value = std::move(functions);
}

bool any_usable(const LaunchFacts& launch) {
  return std::any_of(launch.gpus.begin(), launch.gpus.end(),
                     [](const DrivenGpu& gpu) { return gpu.usable; });
}

// No libcuda would load. On the bus a GPU may be waiting for a driver nonetheless.
LiveTarget without_library(const host::Host& host, const LaunchFacts& launch,
                           const Knowledge& knowledge) {
  if (any_usable(launch)) return unclear("no_libcuda");
  if (launch.facts.kernel.version) return none("not_given");
  Facts bus;
  host::read_pci(host, bus);
  for (const checks::GpuView& view : checks::make_input(bus, knowledge).gpus)
    if (view.pci != nullptr && view.pci->driver.value_or("") != "vfio-pci")
      return none("gpu_without_driver", {{"gpu", view.name}});
  return none("no_driver");
}

LiveTarget from_files(const host::Host& host, const LaunchFacts& launch,
                      const host::Visibility& visible, const Knowledge& knowledge) {
  const std::string hidden_by = variable_text(launch.facts, "CUDA_VISIBLE_DEVICES");
  LiveTarget out;
  if (host::loaded_libcuda(launch.facts) == nullptr)
    out = without_library(host, launch, knowledge);
  else if (visible.none == "unmatched")
    out =
        unclear("unmatched", {{"value", hidden_by}, {"count", std::to_string(launch.gpus.size())}});
  else if (visible.none == "hidden")
    out = none("hidden", {{"value", hidden_by}});
  else if (visible.gpus.empty())
    out = none("not_given");
  else
    out.sight = LiveTarget::Sight::gpus;
  Facts facts = launch.facts;
  keep_functions(launch, visible.gpus, facts);
  name_boards(launch, visible.gpus, knowledge, facts);
  list_gpus(facts, launch, knowledge, out);
  return out;
}

// What the driver said that it shows; its PCI functions only where it named them.
LiveTarget from_answer(const LaunchFacts& launch, Facts answer, const Knowledge& knowledge) {
  Facts facts = launch.facts;
  facts.cuda = std::move(answer.cuda);
  facts.nvml.library = answer.nvml.library;
  facts.nvml.driver_version = answer.nvml.driver_version;
  facts.nvml.cuda_version = answer.nvml.cuda_version;
  const Fact<int>& init = facts.cuda.init_result;
  std::vector<size_t> shown;
  for (const host::CudaDevice& device : facts.cuda.devices)
    for (size_t i = 0; i < launch.gpus.size(); ++i)
      if (lower(device.pci_address.value_or("")) == lower(launch.gpus[i].address))
        shown.push_back(i);
  keep_functions(launch, shown, facts);
  LiveTarget out;
  const std::string value = variable_text(facts, "CUDA_VISIBLE_DEVICES");
  const bool has_value = checks::has_variable(facts, "CUDA_VISIBLE_DEVICES");
  if (!init && !facts.cuda.library && !any_usable(launch))
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
    out = unclear("unmatched", {{"value", value}, {"count", std::to_string(launch.gpus.size())}});
  else
    out = any_usable(launch) ? unclear("no_device") : none("not_given");
  list_gpus(facts, launch, knowledge, out);
  return out;
}

std::string reason_to_ask(const LaunchFacts& launch, const host::Visibility& visible,
                          const Knowledge& knowledge) {
  if (!visible.ask.empty()) return visible.ask;
  for (const size_t at : visible.gpus) {
    const DrivenGpu& gpu = launch.gpus[at];
    if (knowledge.find_cc_by_pci(gpu.device_id).empty() && !known_by_name(gpu, knowledge))
      return "pci_id";
  }
  return {};
}

void ask_driver(const host::Host& host, const LiveOptions& options, Facts& answer) {
  host::ProbeOptions probe;
  probe.driver_depth = host::DriverDepth::identity;
  probe.driver_timeout_seconds = options.driver_timeout_seconds;
  host::read_driver_answers(host, probe, answer);
}

}  // namespace

LiveTarget live_target(const host::Host& host, const LiveOptions& options,
                       const Knowledge& knowledge) {
  const LaunchFacts launch = host::read_launch_facts(host);
  const host::Visibility visible = host::visible_gpus(launch);
  const std::string ask = reason_to_ask(launch, visible, knowledge);
  if (ask.empty()) return from_files(host, launch, visible, knowledge);
  const host::AnswerCache cache(host);
  const std::string key = host::visibility_key(host, launch);
  Facts answer;
  answer.pci = launch.facts.pci;  // how many GPUs there are decides how long the driver may take
  LiveTarget out;
  if (cache.load(key, host::boot_seconds(), answer)) {
    out = from_answer(launch, answer, knowledge);
    out.by = LiveTarget::By::cache;
  }
  // No launch is refused for what was: only the driver itself may say so.
  if (out.by != LiveTarget::By::cache || out.sight == LiveTarget::Sight::unclear) {
    if (!options.may_ask_driver) {
      out = seen(LiveTarget::Sight::not_told, {});
    } else {
      ask_driver(host, options, answer);
      // A cache that cannot be written costs time at the next launch and nothing else.
      (void)cache.save(key, host::boot_seconds(), answer);
      out = from_answer(launch, std::move(answer), knowledge);
      out.by = LiveTarget::By::driver;
    }
  }
  out.asked_because = ask;
  return out;
}

}  // namespace cufit::resolve
