// SPDX-License-Identifier: Apache-2.0
#include "host/driver/gpu_access.h"

#include <algorithm>

#include "host/files/file_facts.h"
#include "host/driver/kernel_parts.h"
#include "host/probe.h"
#include "host/machine/system_parts.h"

namespace cufit::host {
namespace {

const std::string k_gpus = "/proc/driver/nvidia/gpus";
const std::string k_capabilities = "/proc/driver/nvidia/capabilities";

// "GPU UUID: 	 GPU-5d0..." -> "GPU-5d0..."
std::string value_of(std::string_view text, std::string_view name) {
  for (std::string_view line : split_lines(text))
    if (starts_with(line, name)) return formats::printable(trim(line.substr(name.size())), 128);
  return {};
}

facts::DrivenGpu read_gpu(const Host& host, const std::string& address) {
  facts::DrivenGpu gpu;
  gpu.address = formats::printable(address, 32);
  const std::string device =
      line_fact(host, "/sys/bus/pci/devices/" + address + "/device").value_or("");
  if (starts_with(device, "0x")) gpu.device_id = lower(device.substr(2));
  Result<std::string> text = host.read_head(k_gpus + "/" + address + "/information", 4096);
  if (!text) return gpu;
  gpu.excluded = value_of(*text, "GPU Excluded:") == "Yes";
  const std::optional<uint64_t> minor = parse_uint(value_of(*text, "Device Minor:"));
  if (minor && *minor < 256) gpu.minor = static_cast<uint32_t>(*minor);
  gpu.model = value_of(*text, "Model:");
  const std::string uuid = value_of(*text, "GPU UUID:");
  if (starts_with(uuid, "GPU-") && !contains(uuid, "?")) gpu.uuid = uuid;
  if (gpu.minor) gpu.usable = host.may_read_write(format("/dev/nvidia{}", *gpu.minor));
  return gpu;
}

facts::PciGpu function_of(const facts::DrivenGpu& gpu) {
  facts::PciGpu out;
  out.address = gpu.address;
  out.device_id = gpu.device_id;
  out.class_code = "0302";  // what the module drives is a GPU, whichever of the two classes it has
  out.driver = known<std::string>("nvidia", SourceKind::file, k_gpus);
  return out;
}

// Instances that exist: capabilities/gpu0/mig/gi1/ci0.
void list_instances(const Host& host, std::vector<std::string>& out) {
  Result<std::vector<std::string>> gpus = host.list(k_capabilities);
  if (!gpus) return;
  for (const std::string& gpu : *gpus) {
    if (!starts_with(gpu, "gpu")) continue;
    const std::string folder = k_capabilities + "/" + gpu + "/mig";
    Result<std::vector<std::string>> instances = host.list(folder);
    if (!instances) continue;
    for (const std::string& instance : *instances) {
      if (!starts_with(instance, "gi")) continue;
      out.push_back(gpu + "/" + instance);
      Result<std::vector<std::string>> parts = host.list(folder + "/" + instance);
      if (!parts) continue;
      for (const std::string& part : *parts)
        if (starts_with(part, "ci")) out.push_back(gpu + "/" + instance + "/" + part);
    }
  }
}

constexpr const char* k_variables[] = {"CUDA_VISIBLE_DEVICES",
                                       "CUDA_DEVICE_ORDER",
                                       "CUDA_MPS_PIPE_DIRECTORY",
                                       "CUDA_MPS_CLIENT_PRIORITY",
                                       "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                                       "NVIDIA_VISIBLE_DEVICES",
                                       "NVIDIA_DRIVER_CAPABILITIES",
                                       "LD_LIBRARY_PATH",
                                       "LD_PRELOAD",
                                       "LD_AUDIT"};

void read_access_variables(const Host& host, facts::Facts& facts) {
  for (const char* name : k_variables)
    if (const auto value = host.variable(name)) facts.variables.push_back({name, *value});
  std::sort(
      facts.variables.begin(), facts.variables.end(),
      [](const facts::EnvVariable& a, const facts::EnvVariable& b) { return a.name < b.name; });
}

}  // namespace

facts::GpuAccess read_gpu_access(const Host& host) {
  facts::GpuAccess access;
  facts::Facts& facts = access.facts;
  facts.cufit_version = CUFIT_VERSION;
  read_identity(host, facts.system);
  read_libc(host, facts.system);
  read_module_version(host, facts.kernel);
  read_loaded_libcuda(host, facts);
  read_access_variables(host, facts);
  Result<std::vector<std::string>> addresses = host.list(k_gpus);
  access.listed = addresses.has_value();
  std::vector<facts::PciGpu> functions;
  if (addresses) {
    for (const std::string& address : *addresses) {
      facts::DrivenGpu gpu = read_gpu(host, address);
      if (gpu.excluded) continue;
      access.gpus.push_back(std::move(gpu));
      functions.push_back(function_of(access.gpus.back()));
    }
  }
  facts.pci = known(std::move(functions), SourceKind::file, k_gpus);
  std::vector<std::string> instances;
  list_instances(host, instances);
  access.mig = !instances.empty();
  access.mps = host.variable("CUDA_MPS_PIPE_DIRECTORY").has_value() ||
               host.exists("/tmp/nvidia-mps/control");
  return access;
}

std::map<uint32_t, std::string> read_gpu_minors(const Host& host) {
  std::map<uint32_t, std::string> out;
  for (const std::string& address : host.list(k_gpus).value_or(std::vector<std::string>())) {
    const facts::DrivenGpu gpu = read_gpu(host, address);
    if (gpu.minor && !gpu.uuid.empty()) out[*gpu.minor] = gpu.uuid;
  }
  return out;
}

std::string visibility_key(const Host& host, const facts::GpuAccess& access) {
  const facts::Facts& facts = access.facts;
  if (!facts.system.boot_id) return {};
  std::string key = format("cufit {}\nboot {}\nmodule {}\n", CUFIT_VERSION, *facts.system.boot_id,
                           facts.kernel.version.value_or("-"));
  if (const facts::DriverLibrary* library = facts::loaded_libcuda(facts)) {
    const Result<FileStatus> status = host.status(library->realpath);
    key += format("libcuda {} {} {} {}\n", library->realpath, library->version, library->origin,
                  status ? status->size_bytes : 0);
  }
  for (const facts::DrivenGpu& gpu : access.gpus)
    key += format("gpu {} {} {} {}\n", gpu.address, gpu.device_id, gpu.uuid,
                  gpu.minor ? static_cast<int>(*gpu.minor) : -1);
  std::vector<std::string> instances;
  list_instances(host, instances);
  for (const std::string& instance : instances) key += "instance " + instance + "\n";
  if (const Result<std::vector<std::string>> nodes = host.list("/dev")) {
    for (const std::string& node : *nodes)
      if (starts_with(node, "nvidia") || node == "dxg")
        key += format("node {} {}\n", node, host.may_read_write("/dev/" + node) ? "rw" : "-");
  }
  if (const Result<std::vector<std::string>> drivers = host.list("/usr/lib/wsl/drivers")) {
    for (const std::string& driver : *drivers)
      if (starts_with(driver, "nv")) key += "windows " + driver + "\n";
  }
  if (access.mps) key += "mps\n";
  for (const facts::EnvVariable& variable : facts.variables)
    key += format("variable {}={}\n", variable.name, formats::printable(variable.value, 16384));
  return key;
}

}  // namespace cufit::host
