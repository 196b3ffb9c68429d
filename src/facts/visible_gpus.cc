// SPDX-License-Identifier: Apache-2.0
#include "facts/visible_gpus.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"

namespace cufit::facts {
namespace {

const std::string* variable_of(const Facts& facts, std::string_view name) {
  for (const EnvVariable& variable : facts.variables)
    if (variable.name == name) return &variable.value;
  return nullptr;
}

bool one_kind(const std::vector<DrivenGpu>& gpus) {
  return std::all_of(gpus.begin(), gpus.end(),
                     [&](const DrivenGpu& gpu) { return gpu.device_id == gpus.front().device_id; });
}

// A library that is put in front of every other may answer in the driver's place.
bool preloads_cuda(const Facts& facts) {
  const std::string* value = variable_of(facts, "LD_PRELOAD");
  if (value == nullptr) return false;
  const std::string names = lower(*value);
  return contains(names, "cuda") || contains(names, "gpu") || contains(names, "nvidia");
}

// Whether anything but the list of GPUs and CUDA_VISIBLE_DEVICES is in play.
std::string special_case(const GpuAccess& access, const DriverLibrary& libcuda) {
  const Facts& facts = access.facts;
  if (facts.system.wsl) return "wsl";
  if (facts.system.jetson) return "jetson";
  if (!facts.kernel.version) return "no_module";
  if (libcuda.origin != "driver") return "compat";
  if (libcuda.version != *facts.kernel.version) return "mismatch";
  if (preloads_cuda(facts)) return "preload";
  if (!access.listed) return "unread";
  for (const DrivenGpu& gpu : access.gpus)
    if (gpu.device_id.empty() || !gpu.minor) return "unread";
  if (access.mig) return "mig";
  if (access.mps) return "mps";
  return {};
}

// The GPUs that the entries of CUDA_VISIBLE_DEVICES name, up to the first that names none: indices
// into `usable`.
struct Named {
  std::vector<size_t> gpus;
  std::string ask;
};

bool is_index(std::string_view entry) {
  return !entry.empty() && entry.size() < 9 &&
         std::all_of(entry.begin(), entry.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// nullopt = none. `several`: more than one GPU begins so, or a GPU's UUID is not known.
std::optional<size_t> by_uuid(const GpuAccess& access, const std::vector<size_t>& usable,
                              std::string_view entry, bool& several) {
  std::optional<size_t> found;
  for (size_t i = 0; i < usable.size(); ++i) {
    const std::string& uuid = access.gpus[usable[i]].uuid;
    if (uuid.empty()) several = true;
    if (!starts_with(uuid, entry)) continue;
    if (found) several = true;
    found = i;
  }
  return found;
}

Named named_gpus(const GpuAccess& access, const std::vector<size_t>& usable,
                 const std::string& value, bool order_known) {
  Named out;
  std::string kind;
  for (std::string_view entry : split(value, ',')) {
    const bool uuid = starts_with(entry, "GPU-");
    std::optional<size_t> found;
    if (uuid) {
      bool several = false;
      found = by_uuid(access, usable, entry, several);
      if (several) return {{}, "names"};
    } else if (is_index(entry)) {
      if (!order_known) return {{}, "order"};
      const size_t number = parse_uint(entry).value_or(usable.size());
      if (number < usable.size()) found = number;
    } else {
      return {{}, "names"};  // an instance, blanks, or what only the driver knows how to take
    }
    const std::string this_kind = uuid ? "uuid" : "index";
    if (!kind.empty() && kind != this_kind) return {{}, "names"};
    kind = this_kind;
    if (!found) return out;
    if (std::find(out.gpus.begin(), out.gpus.end(), *found) != out.gpus.end())
      return {{}, "names"};  // named twice: drivers differ
    out.gpus.push_back(*found);
  }
  return out;
}

}  // namespace

const DriverLibrary* loaded_libcuda(const Facts& facts) {
  for (const DriverLibrary& library : facts.driver_libraries)
    if (library.soname == "libcuda.so.1" && library.loads) return &library;
  return nullptr;
}

Visibility visible_gpus(const GpuAccess& access) {
  Visibility out;
  const DriverLibrary* libcuda = loaded_libcuda(access.facts);
  if (libcuda == nullptr) return out;  // no library, no CUDA
  out.ask = special_case(access, *libcuda);
  if (!out.ask.empty()) return out;
  std::vector<size_t> usable;
  for (size_t i = 0; i < access.gpus.size(); ++i)
    if (access.gpus[i].usable) usable.push_back(i);
  // The driver may make nodes that lack; of equal GPUs it does not matter which.
  if (usable.size() != access.gpus.size() && (usable.empty() || !one_kind(access.gpus))) {
    out.ask = "nodes";
    return out;
  }
  const std::string* value = variable_of(access.facts, "CUDA_VISIBLE_DEVICES");
  if (value == nullptr || usable.empty()) {
    out.gpus = usable;
    return out;
  }
  if (trim(*value).empty() || *value == "-1" || *value == "NoDevFiles") {
    out.none = "hidden";
    return out;
  }
  // CUDA counts the fastest GPU first unless it is told to count by address.
  const std::string* order = variable_of(access.facts, "CUDA_DEVICE_ORDER");
  const bool order_known =
      usable.size() == access.gpus.size()
          ? one_kind(access.gpus) || (order != nullptr && *order == "PCI_BUS_ID")
          : true;  // one kind, see above
  const Named named = named_gpus(access, usable, *value, order_known);
  out.ask = named.ask;
  for (const size_t at : named.gpus) out.gpus.push_back(usable[at]);
  if (!out.ask.empty() || !out.gpus.empty()) return out;
  // Such a number may belong to a GPU whose node the driver makes.
  (usable.size() == access.gpus.size() ? out.none : out.ask) =
      usable.size() == access.gpus.size() ? "unmatched" : "nodes";
  return out;
}

}  // namespace cufit::facts
