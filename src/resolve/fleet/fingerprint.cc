// SPDX-License-Identifier: Apache-2.0
#include "resolve/fleet/fingerprint.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/format.h"
#include "base/sha256.h"

namespace cufit::resolve {
namespace {

constexpr size_t k_id_digits = 12;

std::string value_of(const Fact<std::string>& fact) {
  if (fact) return *fact;
  // What a board does not have is the same on all of them; what could not be read is no value.
  return fact.why == WhyNot::not_present || fact.why == WhyNot::not_supported ? "none"
                                                                              : "not known";
}
std::string value_of(const Fact<bool>& fact) {
  if (fact) return *fact ? "on" : "off";
  return fact.why == WhyNot::not_present || fact.why == WhyNot::not_supported ? "none"
                                                                              : "not known";
}
std::string value_of(const Fact<uint32_t>& fact) {
  if (fact) return std::to_string(*fact);
  return fact.why == WhyNot::not_present || fact.why == WhyNot::not_supported ? "none"
                                                                              : "not known";
}

// One value where all GPUs have it, else "7 x A, 1 x B", the most frequent first.
std::string of_gpus(const facts::Facts& facts,
                    const std::function<std::string(const facts::NvmlGpu&)>& ask,
                    bool with_count = false) {
  std::vector<std::pair<std::string, size_t>> counts;
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus) {
    const std::string value = ask(gpu);
    auto known = std::find_if(counts.begin(), counts.end(),
                              [&](const auto& one) { return one.first == value; });
    if (known == counts.end())
      counts.emplace_back(value, 1);
    else
      ++known->second;
  }
  if (counts.empty()) return facts.nvml.init_result ? "none" : "not known";
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (counts.size() == 1 && !with_count) return counts.front().first;
  std::string out;
  for (const auto& [value, count] : counts)
    out += (out.empty() ? "" : ", ") + format("{} x {}", count, value);
  return out;
}

std::string mig_of(const facts::NvmlGpu& gpu) {
  if (!gpu.mig_current.value_or(false)) return value_of(gpu.mig_current);
  std::vector<std::string> names;
  for (const facts::MigInstance& one : gpu.mig_instances) names.push_back(one.name);
  std::sort(names.begin(), names.end());
  return names.empty() ? "on, no instance" : join(names, " + ");
}

std::string libcuda_of(const facts::Facts& facts) {
  for (const facts::DriverLibrary& library : facts.driver_libraries)
    if (library.loads && library.soname == "libcuda.so.1")
      return library.version.empty()      ? "not known"
             : library.origin == "driver" ? library.version
                                          : format("{} ({})", library.version, library.origin);
  return "none";
}

std::string toolkits_of(const facts::Facts& facts) {
  std::vector<std::string> versions;
  for (const facts::Toolkit& toolkit : facts.toolkits)
    versions.push_back(value_of(toolkit.version));
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  return versions.empty() ? "none" : join(versions, " + ");
}

std::string container_toolkit_of(const facts::ContainerEngine& engine) {
  if (engine.toolkit_version) return *engine.toolkit_version;
  return engine.toolkit ? "version not known" : value_of(engine.toolkit);
}

std::string driver_of(const facts::Facts& facts) {
  return facts.kernel.version ? *facts.kernel.version : value_of(facts.nvml.driver_version);
}

}  // namespace

Fingerprint fingerprint_of(const facts::Facts& facts, const std::string& classes) {
  using facts::NvmlGpu;
  Fingerprint out;
  const auto add = [&](const char* what, Topic topic, bool of_gpu, std::string value) {
    out.parts.push_back({what, std::move(value), topic, of_gpu});
  };
  const auto text = [&](Fact<std::string> NvmlGpu::*member) {
    return of_gpus(facts, [&](const NvmlGpu& gpu) { return value_of(gpu.*member); });
  };
  out.gpus = of_gpus(
      facts, [](const NvmlGpu& gpu) { return value_of(gpu.name); }, true);
  add("driver", Topic::driver, false, driver_of(facts));
  add("kernel_module", Topic::driver, false, value_of(facts.kernel.flavour));
  add("libcuda", Topic::driver, false, libcuda_of(facts));
  add("fabric_manager", Topic::driver, true, value_of(facts.kernel.fabric_manager));
  add("gpus", Topic::gpu, false, out.gpus);
  add("mig", Topic::gpu, true, of_gpus(facts, mig_of));
  add("ecc", Topic::gpu, true,
      of_gpus(facts, [](const NvmlGpu& gpu) { return value_of(gpu.ecc_current); }));
  add("vbios", Topic::gpu, true, text(&NvmlGpu::vbios));
  add("gsp_firmware", Topic::gpu, true, text(&NvmlGpu::gsp_firmware));
  add("inforom", Topic::gpu, true, text(&NvmlGpu::inforom));
  add("link_width", Topic::gpu, true,
      of_gpus(facts, [](const NvmlGpu& gpu) { return value_of(gpu.pcie_width); }));
  add("nvlinks", Topic::gpu, true,
      of_gpus(facts, [](const NvmlGpu& gpu) { return value_of(gpu.nvlinks_active); }));
  add("compute_mode", Topic::gpu, true, text(&NvmlGpu::compute_mode));
  if (!classes.empty()) add("classes", Topic::torch, false, classes);
  add("glibc", Topic::platform, false, value_of(facts.system.glibc));
  add("architecture", Topic::platform, false, value_of(facts.system.architecture));
  add("cuda_toolkits", Topic::cuda_libraries, false, toolkits_of(facts));
  add("nccl", Topic::cuda_libraries, false, value_of(facts.system.nccl));
  add("container_toolkit", Topic::container, false, container_toolkit_of(facts.engine));
  add("cgroup", Topic::container, false, value_of(facts.system.cgroup));
  add("kernel", Topic::other, false, value_of(facts.system.kernel));
  add("distribution", Topic::other, false, value_of(facts.system.distribution));
  std::string all;
  for (const FingerprintPart& part : out.parts) all += part.what + "=" + part.value + "\n";
  out.id = sha256(all).substr(0, k_id_digits);
  return out;
}

}  // namespace cufit::resolve
