// SPDX-License-Identifier: Apache-2.0
// Merges what CUDA, NVML, PCI and the GPU table say into one list of GPUs, and decides which source
// speaks for the driver. Everything after this file asks Input, so one GPU is never counted twice.
#include <algorithm>

#include "base/format.h"
#include "checks/check.h"
#include "checks/torch_env.h"

namespace cufit::checks {

namespace {

// "00000000:01:00.0" (NVML), "0000:01:00.0" (sysfs), "01:00.0" (lspci) -> "0000:01:00.0"; empty
// stays empty.
std::string same_address(const Fact<std::string>& address) {
  if (!address || address->empty()) return {};
  std::string text = lower(*address);
  size_t colons = size_t(std::count(text.begin(), text.end(), ':'));
  if (colons == 1) return "0000:" + text;
  size_t first = text.find(':');
  if (first != std::string::npos && first > 4) text.erase(0, first - 4);
  return text;
}

bool agree(const Fact<std::string>& a, const Fact<std::string>& b) { return !a || !b || *a == *b; }

bool same_gpu(const facts::NvmlGpu& nvml, const facts::CudaDevice& cuda, bool by_index) {
  std::string a = same_address(nvml.pci_address), b = same_address(cuda.pci_address);
  if (!a.empty() && !b.empty()) return a == b;
  if (nvml.uuid && cuda.uuid && !nvml.uuid->empty()) return *nvml.uuid == *cuda.uuid;
  return by_index && nvml.index == cuda.ordinal && agree(nvml.name, cuda.name) &&
         agree(nvml.compute_capability, cuda.compute_capability);
}

void add_nvml(const facts::Facts& facts, std::vector<GpuView>& gpus) {
  for (const facts::NvmlGpu& nvml : facts.nvml.gpus) {
    GpuView view;
    view.index = nvml.index;
    view.nvml = &nvml;
    gpus.push_back(view);
  }
}

void add_cuda(const facts::Facts& facts, std::vector<GpuView>& gpus) {
  // CUDA numbers the fastest device first and hides devices, so an equal index proves nothing
  // unless the lists are equally long and the names agree.
  bool by_index = facts.cuda.devices.size() == facts.nvml.gpus.size();
  for (const facts::CudaDevice& cuda : facts.cuda.devices) {
    auto fits = [&](const GpuView& view) {
      return view.nvml != nullptr && view.cuda == nullptr && same_gpu(*view.nvml, cuda, by_index);
    };
    auto found = std::find_if(gpus.begin(), gpus.end(), fits);
    if (found != gpus.end()) {
      found->cuda = &cuda;
      continue;
    }
    // A MIG instance is a CUDA device of its own with its GPU's PCI address: the second one adds no
    // GPU.
    std::string address = same_address(cuda.pci_address);
    bool counted =
        !address.empty() && std::any_of(gpus.begin(), gpus.end(), [&](const GpuView& view) {
          return (view.cuda != nullptr && same_address(view.cuda->pci_address) == address) ||
                 (view.nvml != nullptr && same_address(view.nvml->pci_address) == address);
        });
    if (counted) continue;
    GpuView view;
    view.index = gpus.empty() ? cuda.ordinal : gpus.back().index + 1;
    view.cuda = &cuda;
    gpus.push_back(view);
  }
}

void add_pci(const facts::Facts& facts, std::vector<GpuView>& gpus) {
  if (!facts.pci) return;
  std::vector<const facts::PciGpu*> functions;  // without NVSwitch bridges
  for (const facts::PciGpu& pci : *facts.pci)
    if (starts_with(pci.class_code, "03")) functions.push_back(&pci);
  bool any_address = std::any_of(gpus.begin(), gpus.end(), [](const GpuView& view) {
    return (view.nvml != nullptr && view.nvml->pci_address) ||
           (view.cuda != nullptr && view.cuda->pci_address);
  });
  // NVML lists in PCI order, so without addresses equally long lists pair up; unequal ones cannot
  // be paired, and the driver's list is then the better one.
  bool by_order = !any_address && gpus.size() == functions.size();
  for (size_t i = 0; i < functions.size(); ++i) {
    std::string address = same_address(Fact<std::string>{functions[i]->address, {}, {}, {}});
    auto fits = [&](const GpuView& view) {
      return (view.nvml != nullptr && same_address(view.nvml->pci_address) == address) ||
             (view.cuda != nullptr && same_address(view.cuda->pci_address) == address);
    };
    auto found = by_order ? gpus.begin() + long(i) : std::find_if(gpus.begin(), gpus.end(), fits);
    if (found != gpus.end()) {
      found->pci = functions[i];
    } else if (any_address || gpus.empty() || gpus.back().pci != nullptr) {
      GpuView view;
      view.index = gpus.empty() ? 0 : gpus.back().index + 1;
      view.pci = functions[i];
      gpus.push_back(view);
    }
  }
}

void find_row(const knowledge::Knowledge& knowledge, GpuView& view) {
  std::string name;
  if (view.nvml != nullptr && view.nvml->name)
    name = *view.nvml->name;
  else if (view.cuda != nullptr && view.cuda->name)
    name = *view.cuda->name;
  if (!name.empty()) view.row = knowledge.find_gpu(name);
  if (view.row == nullptr && view.pci != nullptr)
    view.row = knowledge.find_gpu_by_pci(view.pci->device_id);
  view.name = name;
  // Of a recording or a command: one line, whatever it holds.
  for (char& c : view.name)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  if (!view.name.empty()) return;
  if (view.row != nullptr)
    view.name = std::string(view.row->nvml_name.empty() ? view.row->name : view.row->nvml_name);
  else if (view.pci != nullptr)
    view.name = "10de:" + view.pci->device_id;
}

bool take_capability(const Fact<std::string>& fact, GpuView& view) {
  if (!fact) return false;
  view.cc = parse_compute_capability(*fact);
  if (view.cc) view.cc_source = fact.source;
  return view.cc.has_value();
}

void find_capability(const knowledge::Knowledge& knowledge, GpuView& view) {
  if (view.cuda != nullptr && take_capability(view.cuda->compute_capability, view)) return;
  if (view.nvml != nullptr && take_capability(view.nvml->compute_capability, view)) return;
  bool named =
      (view.nvml != nullptr && view.nvml->name) || (view.cuda != nullptr && view.cuda->name);
  if (view.row != nullptr && (view.cc = parse_compute_capability(view.row->cc))) {
    view.cc_source = {
        SourceKind::file,
        "data/gpus.toml, " +
            (named || view.pci == nullptr ? view.name : "PCI id " + view.pci->device_id)};
    return;
  }
  if (view.pci == nullptr) return;
  view.cc = parse_compute_capability(knowledge.find_cc_by_pci(view.pci->device_id));
  if (view.cc) view.cc_source = {SourceKind::file, "data/gpus.toml, PCI id " + view.pci->device_id};
}

void find_driver(const facts::Facts& facts, Input& input) {
  for (const Fact<std::string>* fact : {&facts.kernel.version, &facts.nvml.driver_version}) {
    if (!*fact) continue;
    input.driver = parse_version(**fact);
    input.driver_source = fact->source;
    if (input.driver) return;
  }
}

std::optional<Version> decode_cuda(const Fact<int>& fact) {
  if (!fact || *fact < 1000) return std::nullopt;  // a stub libcuda answers 0
  return parse_version(cuda_version_text(*fact));
}

// What the loaded libcuda says of itself counts most: it already includes forward compatibility.
void find_driver_cuda(const facts::Facts& facts, const knowledge::Knowledge& knowledge,
                      Input& input) {
  if ((input.driver_cuda = decode_cuda(facts.cuda.driver_version))) {
    input.driver_cuda_source = facts.cuda.driver_version.source;
    return;
  }
  const facts::DriverLibrary* compat = active_compat(input);
  if (compat != nullptr && may_use_compat(input, *compat)) {
    input.driver_cuda = parse_version(compat->compat_cuda);
    input.driver_cuda_source = {SourceKind::file, compat->path + " (.note.cuda.fwd_compatibility)"};
    if (input.driver_cuda) return;
  }
  if ((input.driver_cuda = decode_cuda(facts.nvml.cuda_version))) {
    input.driver_cuda_source = facts.nvml.cuda_version.source;
    return;
  }
  if (!input.driver) return;
  input.driver_cuda = knowledge.driver_cuda(*input.driver);
  if (input.driver_cuda)
    input.driver_cuda_source = {
        SourceKind::file, "data/drivers.toml, branch " + std::to_string(input.driver->part(0))};
}

// assume() marks every fact that it replaces; these two cover both options.
bool is_what_if(const facts::Facts& facts) {
  return facts.kernel.version.source.kind == SourceKind::assumed ||
         facts.pci.source.kind == SourceKind::assumed;
}

}  // namespace

Input make_input(const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  Input input{facts, knowledge, {}, {}, {}, {}, {}, is_what_if(facts)};
  add_nvml(facts, input.gpus);
  add_cuda(facts, input.gpus);
  add_pci(facts, input.gpus);
  for (GpuView& view : input.gpus) {
    find_row(knowledge, view);
    find_capability(knowledge, view);
    if (view.name.empty()) view.name = view.cc ? "sm_" + view.cc->sm() : "NVIDIA";
    view.label = std::to_string(view.index) + ": " + view.name +
                 (view.cc ? " (" + view.cc->text() + ")" : "");
  }
  find_driver(facts, input);
  find_driver_cuda(facts, knowledge, input);
  return input;
}

}  // namespace cufit::checks
