// SPDX-License-Identifier: Apache-2.0
#include "explain/join.h"

#include <algorithm>

#include "host/facts_fields.h"

namespace cufit::explain {
namespace {

// Two walks over structs of one type meet the same fields in the same order: the first remembers
// the machine's facts, the second fills the text's gaps with them.
struct Remember {
  std::vector<const void*> fields;
  template <class T>
  void operator()(const char*, const T& field) {
    fields.push_back(&field);
  }
};
struct FillGaps {
  const std::vector<const void*>& fields;
  size_t next = 0;
  template <class T>
  void operator()(const char*, Fact<T>& field) {
    const auto* other = static_cast<const Fact<T>*>(fields[next++]);
    if (!field) field = *other;
  }
  template <class T>
  void operator()(const char*, std::vector<T>& field) {
    const auto* other = static_cast<const std::vector<T>*>(fields[next++]);
    if (field.empty()) field = *other;
  }
  template <class T>
  void operator()(const char*, T&) {
    ++next;
  }
};

template <class T>
void fill_gaps(T& claimed, const T& machine) {
  Remember remember;
  host::visit_fields(remember, machine);
  FillGaps fill{remember.fields};
  host::visit_fields(fill, claimed);
}

}  // namespace

host::Facts join(host::Facts claimed, const host::Facts& machine) {
  // "Linux" is what paths imply; a machine says more.
  if (claimed.system.distribution.value == "Linux" && machine.system.distribution)
    claimed.system.distribution = machine.system.distribution;
  fill_gaps(claimed.system, machine.system);
  const bool names_gpus = !claimed.nvml.gpus.empty() || !claimed.cuda.devices.empty() ||
                          (claimed.pci && !claimed.pci->empty());
  const bool names_driver = claimed.kernel.version || claimed.nvml.driver_version;
  if (!names_gpus) {
    claimed.pci = machine.pci;
    claimed.nvml.gpus = machine.nvml.gpus;
    claimed.cuda.devices = machine.cuda.devices;
  }
  if (!names_driver) {
    fill_gaps(claimed.kernel, machine.kernel);
    const auto gpus = claimed.nvml.gpus;
    fill_gaps(claimed.nvml, machine.nvml);
    claimed.nvml.gpus = gpus;
    fill_gaps(claimed.cuda, machine.cuda);
    if (claimed.driver_libraries.empty()) claimed.driver_libraries = machine.driver_libraries;
  }
  if (claimed.toolkits.empty()) claimed.toolkits = machine.toolkits;
  if (claimed.variables.empty()) claimed.variables = machine.variables;
  fill_gaps(claimed.engine, machine.engine);
  // A text that shows a path or a Python and no torch says nothing of the environment that failed.
  const bool names_torch =
      std::any_of(claimed.envs.begin(), claimed.envs.end(),
                  [](const host::PythonEnv& env) { return bool(env.torch.version); });
  if (!names_torch && !machine.envs.empty()) claimed.envs = machine.envs;
  claimed.problems.insert(claimed.problems.end(), machine.problems.begin(), machine.problems.end());
  return claimed;
}

}  // namespace cufit::explain
