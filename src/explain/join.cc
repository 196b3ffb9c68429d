// SPDX-License-Identifier: Apache-2.0
#include "explain/join.h"

#include <algorithm>

#include "base/format.h"
#include "facts/facts_fields.h"

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
  facts::visit_fields(remember, machine);
  FillGaps fill{remember.fields};
  facts::visit_fields(fill, claimed);
}

// "NVIDIA GeForce RTX 3090" -> "rtx3090"
std::string plain_gpu(const std::string& name) {
  const std::string small = lower(name);
  std::string out;
  for (std::string_view word : split(small, ' ')) {
    if (word != "nvidia" && word != "geforce") out += word;
  }
  return out;
}
std::string as_it_is(const std::string& value) { return value; }

using Names = std::vector<std::string>;

Names gpus_of(const facts::Facts& facts) {
  Names out;
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus) {
    if (gpu.name) out.push_back(*gpu.name);
  }
  for (const facts::CudaDevice& device : facts.cuda.devices) {
    if (device.name) out.push_back(*device.name);
  }
  return out;
}
Names drivers_of(const facts::Facts& facts) {
  if (facts.kernel.version) return {*facts.kernel.version};
  if (facts.nvml.driver_version) return {*facts.nvml.driver_version};
  return {};
}

// Both name some, and none of the one is among the other. A text may shorten a name.
void compare(const char* what, const Names& text, const Names& machine,
             std::string (*plain)(const std::string&), std::vector<Conflict>& out) {
  if (text.empty() || machine.empty()) return;
  for (const std::string& one : text) {
    for (const std::string& other : machine) {
      const std::string a = plain(one), b = plain(other);
      if (starts_with(a, b) || starts_with(b, a)) return;
    }
  }
  out.push_back({what, text[0], machine[0]});
}

// The text names no place, and all packages that it names are in the machine's active environment
// in the same version: it is this one, whose files say more.
bool is_active_one(const facts::PythonEnv& claimed, const facts::PythonEnv& env) {
  if (!env.active || claimed.interpreter || !starts_with(claimed.path, "(")) return false;
  if (!claimed.torch.version || !env.torch.version) return false;
  if (*claimed.torch.version != *env.torch.version) return false;
  if (!claimed.distributions || !env.distributions) return !claimed.distributions;
  return std::all_of(claimed.distributions->begin(), claimed.distributions->end(),
                     [&](const facts::Distribution& one) {
                       return std::any_of(
                           env.distributions->begin(), env.distributions->end(),
                           [&](const facts::Distribution& have) {
                             return have.name == one.name &&
                                    (one.version.empty() || have.version == one.version);
                           });
                     });
}

}  // namespace

std::vector<Conflict> conflicts(const facts::Facts& claimed, const facts::Facts& machine) {
  std::vector<Conflict> out;
  compare("gpu", gpus_of(claimed), gpus_of(machine), plain_gpu, out);
  compare("driver", drivers_of(claimed), drivers_of(machine), as_it_is, out);
  return out;
}

facts::Facts join(facts::Facts claimed, const facts::Facts& machine) {
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
  // The environment of its traceback lies on this machine: its files say more.
  const bool same_env =
      std::any_of(machine.envs.begin(), machine.envs.end(), [&](const facts::PythonEnv& env) {
        if (claimed.envs.empty()) return false;
        if (claimed.envs.size() == 1 && is_active_one(claimed.envs[0], env)) return true;
        return claimed.envs[0].interpreter &&
               starts_with(*claimed.envs[0].interpreter, env.path + "/bin/");
      });
  const bool names_torch =
      !same_env && std::any_of(claimed.envs.begin(), claimed.envs.end(),
                               [](const facts::PythonEnv& env) { return bool(env.torch.version); });
  if (!names_torch && !machine.envs.empty()) claimed.envs = machine.envs;
  claimed.problems.insert(claimed.problems.end(), machine.problems.begin(), machine.problems.end());
  return claimed;
}

}  // namespace cufit::explain
