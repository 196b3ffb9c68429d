// SPDX-License-Identifier: Apache-2.0
#include "resolve/diff/flat_facts.h"

#include <algorithm>
#include <type_traits>

#include "base/format.h"
#include "checks/fact_view.h"
#include "facts/facts_fields.h"

namespace cufit::resolve {
namespace {

std::string fact_text(const std::string& value) { return value; }
std::string fact_text(bool value) { return value ? "true" : "false"; }
std::string fact_text(double value) { return format("{:g}", value); }
std::string fact_text(int value) { return std::to_string(value); }
std::string fact_text(uint32_t value) { return std::to_string(value); }
std::string fact_text(uint64_t value) {
  return value == UINT64_MAX ? "unlimited" : std::to_string(value);
}
std::string fact_text(const std::vector<std::string>& values) { return join(values, ", "); }

std::string without_prefix(const std::string& path, const std::string& root) {
  if (root.empty() || root == "/" || !starts_with(path, root + "/")) return path;
  return path.substr(root.size() + 1);
}

std::string joined(std::vector<std::string> parts) {
  parts.erase(std::remove(parts.begin(), parts.end(), std::string()), parts.end());
  return join(parts, ", ");
}

std::string code_text(const std::vector<formats::DeviceCode>& code) {
  std::vector<std::string> parts;
  for (const formats::DeviceCode& one : code) {
    if (!one.loadable) continue;
    const std::string name = std::string(formats::to_string(one.kind)) + " " + one.arch;
    if (std::find(parts.begin(), parts.end(), name) == parts.end()) parts.push_back(name);
  }
  return join(parts, ", ");
}

// "cub.so" of ".../cupy/cuda/cub.cpython-312-x86_64-linux-gnu.so": the same for another Python.
std::string library_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const size_t tag = name.find(".cpython-");
  return tag == std::string::npos ? name : name.substr(0, tag) + ".so";
}

// The C and C++ libraries lie in other folders on other distributions: their version is what
// counts. How a file was found does not matter where it is the same file.
std::string outside_text(const facts::LoadedLibrary& library) {
  static const char* const k_base[] = {"libc.so",    "libm.so",  "libdl.so",    "libpthread.so",
                                       "librt.so",   "ld-linux", "libgcc_s.so", "libstdc++.so",
                                       "libutil.so", "libz.so"};
  const std::string folder = library.path.substr(0, library.path.rfind('/'));
  for (const char* const base : k_base)
    if (starts_with(library.name, base) &&
        (starts_with(folder, "/usr/lib") || starts_with(folder, "/lib")))
      return joined({library.version, "of the system"});
  return joined({library.version, folder});
}

// Visits fields; structs that a list holds are told as one entry each, keyed by their name, unless
// they have many facts of their own (GPUs).
class Lister {
 public:
  Lister(std::vector<ListedFact>& out, std::string at, std::string key)
      : out_(out), at_(std::move(at)), key_(std::move(key)) {}

  std::string driver;  // of the kernel: libraries of the same version need not repeat it
  std::string root;    // of the environment

  template <class T>
  void operator()(const char* name, const T& value) {
    add(at_.empty() ? name : at_ + "." + name, value);
  }

 private:
  void put(const std::string& field, std::string value) {
    if (value.empty()) return;
    out_.push_back({field, key_, std::move(value), std::nullopt, "", {}, "", false});
  }
  void element(const std::string& field, const std::string& key, std::string value,
               std::vector<std::string> places, std::string package = "") {
    ListedFact fact{field + "[]",       key, std::move(value), std::nullopt, "", std::move(places),
                    std::move(package), true};
    if (fact.value.empty()) fact.missing = WhyNot::not_present;
    out_.push_back(std::move(fact));
  }

  void add(const std::string& field, const std::string& value) { put(field, value); }
  void add(const std::string& field, bool value) { put(field, fact_text(value)); }
  void add(const std::string& field, double value) { put(field, fact_text(value)); }
  void add(const std::string&, int) {}  // plain numbers count entries; facts are Facts
  void add(const std::string&, uint32_t) {}
  void add(const std::string&, uint64_t) {}
  void add(const std::string& field, const std::vector<std::string>& values) {
    put(field, fact_text(values));
  }

  template <class T>
  void add(const std::string& field, const Fact<T>& fact) {
    if (!fact && fact.why == WhyNot::not_asked && fact.source.detail.empty() && fact.note.empty())
      return;
    ListedFact entry{field, key_, "", std::nullopt, fact.note, {}, "", false};
    if (!fact.source.detail.empty()) entry.places.push_back(fact.source.detail);
    if (!fact) {
      entry.missing = fact.why;
    } else {
      entry.value = fact_text(*fact);
      if (entry.value.empty()) entry.missing = WhyNot::not_present;
      if constexpr (std::is_same_v<T, uint64_t>) {
        if (ends_with(field, "_bytes") && *fact != UINT64_MAX) entry.value = format_bytes(*fact);
      }
      if constexpr (std::is_same_v<T, std::string>) entry.value = without_prefix(*fact, root);
    }
    out_.push_back(std::move(entry));
  }
  // Lists whose elements are told one by one: how the whole was read does not matter.
  void add(const std::string& field, const Fact<std::vector<facts::PciGpu>>& fact) {
    if (!fact) return;
    for (size_t i = 0; i < fact->size(); ++i) nested(field, std::to_string(i), (*fact)[i]);
  }
  void add(const std::string&, const Fact<std::vector<facts::GpuProcess>>&) {}
  void add(const std::string&, const Fact<std::vector<facts::Distribution>>&) {}

  void add(const std::string& field, const std::vector<facts::NvmlGpu>& gpus) {
    for (const facts::NvmlGpu& gpu : gpus) nested(field, std::to_string(gpu.index), gpu);
  }
  void add(const std::string& field, const std::vector<facts::CudaDevice>& devices) {
    for (const facts::CudaDevice& one : devices) nested(field, std::to_string(one.ordinal), one);
  }
  void add(const std::string& field, const std::vector<facts::MigInstance>& instances) {
    std::vector<std::string> names;
    for (const facts::MigInstance& one : instances) names.push_back(one.name);
    put(field, join(names, ", "));
  }
  void add(const std::string& field, const std::vector<facts::DeviceNode>& nodes) {
    for (const facts::DeviceNode& node : nodes) {
      const std::string mode = node.mode ? *node.mode : std::string();
      element(field, node.path,
              mode.empty() ? "" : mode + (node.usable ? "" : ", not usable by this process"),
              {node.path});
    }
  }
  void add(const std::string& field, const std::vector<facts::XidEvent>& events) {
    std::vector<std::string> numbers;
    for (const facts::XidEvent& event : events) numbers.push_back(std::to_string(event.number));
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    put(field, join(numbers, ", "));
    if (!numbers.empty()) out_.back().of_list = true;
  }
  void add(const std::string& field, const std::vector<facts::DriverLibrary>& libraries) {
    for (const facts::DriverLibrary& one : libraries) {
      const bool plain = one.origin == "driver" && one.version == driver && one.problem.empty();
      element(one.loads ? field : field + ".others",
              one.loads ? one.soname : one.soname + " " + one.path,
              plain && one.loads ? "of the kernel driver's version"
                                 : joined({one.path, one.origin, one.version, one.problem}),
              {one.path, one.realpath});
    }
  }
  void add(const std::string& field, const std::vector<facts::Toolkit>& toolkits) {
    for (const facts::Toolkit& one : toolkits)
      element(field, one.path,
              joined({one.version ? *one.version : "version not known",
                      one.on_path ? "its nvcc is the one in PATH" : ""}),
              {one.path});
  }
  void add(const std::string& field, const std::vector<facts::EnvVariable>& variables) {
    for (const facts::EnvVariable& one : variables)
      element(field, one.name, one.value.empty() ? "\"\"" : one.value, {one.name});
  }
  void add(const std::string& field, const std::vector<facts::Binary>& binaries) {
    for (const facts::Binary& one : binaries) {
      element(field, library_name(one.path),
              joined({code_text(one.device_code), one.unreadable,
                      one.unresolved_count != 0
                          ? format("{} symbols found nowhere", one.unresolved_count)
                          : ""}),
              {one.path, root + "/" + one.path}, one.package);
    }
  }
  void add(const std::string& field, const std::vector<facts::LoadedLibrary>& loads) {
    for (const facts::LoadedLibrary& one : loads) {
      const std::string owner = one.package.substr(0, one.package.find(' '));
      std::string value = one.package.empty() ? one.version : one.package;
      if (!one.inside && !one.path.empty()) value = outside_text(one);
      if (one.inside && value.empty()) value = without_prefix(one.path, root);
      element(field, one.name, value, {one.path}, owner);
    }
  }
  void add(const std::string& field, const std::vector<facts::ProjectIndex>& indexes) {
    for (const facts::ProjectIndex& one : indexes)
      element(field, one.name,
              joined({one.url, one.is_explicit ? "explicit" : "", join(one.packages, " ")}), {});
  }
  void add(const std::string&, const std::vector<facts::PythonEnv>&) {}
  // What --deep measures differs from run to run.
  void add(const std::string&, const facts::TogetherFacts&) {}
  void add(const std::string& field, const std::vector<facts::NvmlPeer>& peers) {
    for (const facts::NvmlPeer& one : peers) nested(field, std::to_string(one.index), one);
  }
  void add(const std::string& field, const std::vector<facts::CudaPeer>& peers) {
    for (const facts::CudaPeer& one : peers) nested(field, std::to_string(one.ordinal), one);
  }
  void add(const std::string& field, const std::vector<facts::PciBridge>& bridges) {
    for (const facts::PciBridge& one : bridges)
      element(field, one.address, one.acs.value_or(""), {one.address});
  }
  void add(const std::string&, const std::vector<facts::CpuLine>&) {}

  template <class T>
  void add(const std::string& field, const T& value) {
    Lister inner(out_, field, key_);
    inner.driver = driver;
    inner.root = root;
    visit_fields(inner, value);
  }
  template <class T>
  void nested(const std::string& field, const std::string& key, const T& value) {
    Lister inner(out_, field + "[]", key);
    visit_fields(inner, value);
  }

  std::vector<ListedFact>& out_;
  std::string at_, key_;
};

// "NVIDIA A800 80GB PCIe (8.0, 80 GiB)"
template <class Gpu>
std::string gpu_text(const Gpu& gpu) {
  std::vector<std::string> parts;
  if (gpu.compute_capability) parts.push_back(*gpu.compute_capability);
  if (gpu.memory_total_bytes)
    parts.push_back(format("{} GiB", (*gpu.memory_total_bytes + (1u << 29)) >> 30));
  const std::string name = gpu.name ? *gpu.name : "GPU";
  return parts.empty() ? name : name + " (" + join(parts, ", ") + ")";
}

}  // namespace

std::string gpus_summary(const facts::Facts& facts) {
  std::vector<std::string> names;
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus) names.push_back(gpu_text(gpu));
  if (names.empty())
    for (const facts::CudaDevice& device : facts.cuda.devices) names.push_back(gpu_text(device));
  std::vector<std::string> parts;
  for (size_t i = 0; i < names.size();) {
    const size_t end = static_cast<size_t>(
        std::find_if(names.begin() + static_cast<long>(i), names.end(),
                     [&](const std::string& name) { return name != names[i]; }) -
        names.begin());
    parts.push_back((end - i > 1 ? std::to_string(end - i) + "x " : "") + names[i]);
    i = end;
  }
  return join(parts, " + ");
}

std::vector<ListedFact> list_machine(const facts::Facts& facts) {
  std::vector<ListedFact> out;
  Lister lister(out, "", "");
  if (facts.kernel.version) lister.driver = *facts.kernel.version;
  visit_fields(lister, facts);
  ListedFact gpus{"gpus", "", gpus_summary(facts), std::nullopt, "", {}, "", false};
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus) {
    gpus.places.push_back(gpu.name.source.detail);
    gpus.places.push_back(gpu.compute_capability.source.detail);
    gpus.places.push_back(gpu.memory_total_bytes.source.detail);
  }
  for (const facts::CudaDevice& device : facts.cuda.devices)
    gpus.places.push_back(device.compute_capability.source.detail);
  const auto none = std::remove(gpus.places.begin(), gpus.places.end(), std::string());
  gpus.places.erase(none, gpus.places.end());
  // No answer from the driver is not "no GPU".
  if (gpus.value.empty() &&
      (facts.nvml.gpu_count || (facts.pci && checks::pci_gpus(facts).empty())))
    gpus.missing = WhyNot::not_present;
  if (!gpus.value.empty() || gpus.missing) out.push_back(std::move(gpus));
  return out;
}

std::vector<ListedFact> list_env(const facts::PythonEnv& env) {
  std::vector<ListedFact> out;
  Lister lister(out, "env", "");
  lister.root = env.path;
  visit_fields(lister, env);
  return out;
}

}  // namespace cufit::resolve
