// SPDX-License-Identifier: Apache-2.0
#include "host/launch_facts.h"

#include <algorithm>

#include "host/file_facts.h"
#include "host/kernel_parts.h"
#include "host/probe.h"
#include "host/system_parts.h"

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

DrivenGpu read_gpu(const Host& host, const std::string& address) {
  DrivenGpu gpu;
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

PciGpu function_of(const DrivenGpu& gpu) {
  PciGpu out;
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

void read_launch_variables(const Host& host, Facts& facts) {
  for (const char* name : k_variables)
    if (const auto value = host.variable(name)) facts.variables.push_back({name, *value});
  std::sort(facts.variables.begin(), facts.variables.end(),
            [](const EnvVariable& a, const EnvVariable& b) { return a.name < b.name; });
}

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
std::string special_case(const LaunchFacts& launch, const DriverLibrary& libcuda) {
  const Facts& facts = launch.facts;
  if (facts.system.wsl) return "wsl";
  if (facts.system.jetson) return "jetson";
  if (!facts.kernel.version) return "no_module";
  if (libcuda.origin != "driver") return "compat";
  if (libcuda.version != *facts.kernel.version) return "mismatch";
  if (preloads_cuda(facts)) return "preload";
  if (!launch.listed) return "unread";
  for (const DrivenGpu& gpu : launch.gpus)
    if (gpu.device_id.empty() || !gpu.minor) return "unread";
  if (launch.mig) return "mig";
  if (launch.mps) return "mps";
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
std::optional<size_t> by_uuid(const LaunchFacts& launch, const std::vector<size_t>& usable,
                              std::string_view entry, bool& several) {
  std::optional<size_t> found;
  for (size_t i = 0; i < usable.size(); ++i) {
    const std::string& uuid = launch.gpus[usable[i]].uuid;
    if (uuid.empty()) several = true;
    if (!starts_with(uuid, entry)) continue;
    if (found) several = true;
    found = i;
  }
  return found;
}

Named named_gpus(const LaunchFacts& launch, const std::vector<size_t>& usable,
                 const std::string& value, bool order_known) {
  Named out;
  std::string kind;
  for (std::string_view entry : split(value, ',')) {
    const bool uuid = starts_with(entry, "GPU-");
    std::optional<size_t> found;
    if (uuid) {
      bool several = false;
      found = by_uuid(launch, usable, entry, several);
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

LaunchFacts read_launch_facts(const Host& host) {
  LaunchFacts launch;
  Facts& facts = launch.facts;
  facts.cufit_version = CUFIT_VERSION;
  read_identity(host, facts.system);
  read_libc(host, facts.system);
  read_module_version(host, facts.kernel);
  read_loaded_libcuda(host, facts);
  read_launch_variables(host, facts);
  Result<std::vector<std::string>> addresses = host.list(k_gpus);
  launch.listed = addresses.has_value();
  std::vector<PciGpu> functions;
  if (addresses) {
    for (const std::string& address : *addresses) {
      DrivenGpu gpu = read_gpu(host, address);
      if (gpu.excluded) continue;
      launch.gpus.push_back(std::move(gpu));
      functions.push_back(function_of(launch.gpus.back()));
    }
  }
  facts.pci = known(std::move(functions), SourceKind::file, k_gpus);
  std::vector<std::string> instances;
  list_instances(host, instances);
  launch.mig = !instances.empty();
  launch.mps = variable_of(facts, "CUDA_MPS_PIPE_DIRECTORY") != nullptr ||
               host.exists("/tmp/nvidia-mps/control");
  return launch;
}

const DriverLibrary* loaded_libcuda(const Facts& facts) {
  for (const DriverLibrary& library : facts.driver_libraries)
    if (library.soname == "libcuda.so.1" && library.loads) return &library;
  return nullptr;
}

Visibility visible_gpus(const LaunchFacts& launch) {
  Visibility out;
  const DriverLibrary* libcuda = loaded_libcuda(launch.facts);
  if (libcuda == nullptr) return out;  // no library, no CUDA
  out.ask = special_case(launch, *libcuda);
  if (!out.ask.empty()) return out;
  std::vector<size_t> usable;
  for (size_t i = 0; i < launch.gpus.size(); ++i)
    if (launch.gpus[i].usable) usable.push_back(i);
  // The driver may make nodes that lack; of equal GPUs it does not matter which.
  if (usable.size() != launch.gpus.size() && (usable.empty() || !one_kind(launch.gpus))) {
    out.ask = "nodes";
    return out;
  }
  const std::string* value = variable_of(launch.facts, "CUDA_VISIBLE_DEVICES");
  if (value == nullptr || usable.empty()) {
    out.gpus = usable;
    return out;
  }
  if (trim(*value).empty() || *value == "-1" || *value == "NoDevFiles") {
    out.none = "hidden";
    return out;
  }
  // CUDA counts the fastest GPU first unless it is told to count by address.
  const std::string* order = variable_of(launch.facts, "CUDA_DEVICE_ORDER");
  const bool order_known =
      usable.size() == launch.gpus.size()
          ? one_kind(launch.gpus) || (order != nullptr && *order == "PCI_BUS_ID")
          : true;  // one kind, see above
  const Named named = named_gpus(launch, usable, *value, order_known);
  out.ask = named.ask;
  for (const size_t at : named.gpus) out.gpus.push_back(usable[at]);
  if (!out.ask.empty() || !out.gpus.empty()) return out;
  // Such a number may belong to a GPU whose node the driver makes.
  (usable.size() == launch.gpus.size() ? out.none : out.ask) =
      usable.size() == launch.gpus.size() ? "unmatched" : "nodes";
  return out;
}

std::string visibility_key(const Host& host, const LaunchFacts& launch) {
  const Facts& facts = launch.facts;
  if (!facts.system.boot_id) return {};
  std::string key = format("cufit {}\nboot {}\nmodule {}\n", CUFIT_VERSION, *facts.system.boot_id,
                           facts.kernel.version.value_or("-"));
  if (const DriverLibrary* library = loaded_libcuda(facts)) {
    const Result<FileStatus> status = host.status(library->realpath);
    key += format("libcuda {} {} {} {}\n", library->realpath, library->version, library->origin,
                  status ? status->size_bytes : 0);
  }
  for (const DrivenGpu& gpu : launch.gpus)
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
  if (launch.mps) key += "mps\n";
  for (const EnvVariable& variable : facts.variables)
    key += format("variable {}={}\n", variable.name, formats::printable(variable.value, 16384));
  return key;
}

}  // namespace cufit::host
