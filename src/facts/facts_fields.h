// SPDX-License-Identifier: Apache-2.0
// The list of fields of every struct in facts.h, written once. facts_json.cc walks it to write and
// to read recordings; redact.cc walks it to take names and addresses out. A fact that is not listed
// here does not exist for recordings and reports.
//
// A visitor is called as v("name", field) for each field in order. Facts, vectors, strings and
// numbers are told apart by overloads in the visitor.
#pragma once

#include <type_traits>

#include "facts/facts.h"

namespace cufit::formats {

template <class V, class T>
void visit_fields(V& v, T& x) requires std::is_same_v<std::remove_const_t<T>, Damage> {
  v("offset", x.offset), v("what", x.what);
}

template <class V, class T>
void visit_fields(V& v, T& x) requires std::is_same_v<std::remove_const_t<T>, DeviceCode> {
  v("kind", x.kind), v("arch", x.arch), v("ptx_isa", x.ptx_isa), v("count", x.count),
      v("loadable", x.loadable);
}

}  // namespace cufit::formats

namespace cufit::facts {

// CUFIT_FIELDS(Type) { v("a", x.a); ... }: works on Type& and const Type&.
#define CUFIT_FIELDS(Type)    \
  template <class V, class T> \
  void visit_fields(V& v, T& x) requires std::is_same_v<std::remove_const_t<T>, Type>

CUFIT_FIELDS(SystemFacts) {
  v("distribution", x.distribution), v("distribution_id", x.distribution_id);
  v("kernel", x.kernel), v("architecture", x.architecture);
  v("libc", x.libc), v("glibc", x.glibc), v("glibcxx", x.glibcxx);
  v("cpu_model", x.cpu_model), v("cpus", x.cpus), v("cpu_limit", x.cpu_limit);
  v("ram_bytes", x.ram_bytes), v("ram_available_bytes", x.ram_available_bytes);
  v("memory_limit_bytes", x.memory_limit_bytes), v("cgroup", x.cgroup);
  v("shm_bytes", x.shm_bytes), v("shm_free_bytes", x.shm_free_bytes);
  v("memlock_bytes", x.memlock_bytes);
  v("wsl", x.wsl), v("container", x.container), v("jetson", x.jetson);
  v("secure_boot", x.secure_boot), v("boot_id", x.boot_id), v("uv", x.uv);
  v("nccl", x.nccl);
  v("project_lock", x.project_lock), v("other_gpu", x.other_gpu), v("root", x.root);
  v("pytorch_index", x.pytorch_index), v("default_index", x.default_index);
}

CUFIT_FIELDS(PciBridge) { v("address", x.address), v("acs", x.acs); }

CUFIT_FIELDS(PciGpu) {
  v("address", x.address), v("device_id", x.device_id), v("subsystem_id", x.subsystem_id);
  v("class_code", x.class_code), v("driver", x.driver);
  v("link_speed", x.link_speed), v("link_speed_max", x.link_speed_max);
  v("link_width", x.link_width), v("link_width_max", x.link_width_max),
      v("bar1_bytes", x.bar1_bytes);
  v("iommu", x.iommu), v("bridges", x.bridges);
}

CUFIT_FIELDS(DeviceNode) {
  v("path", x.path), v("mode", x.mode), v("usable", x.usable), v("group", x.group);
}

CUFIT_FIELDS(XidEvent) {
  v("number", x.number), v("pci", x.pci), v("text", x.text), v("count", x.count);
}

CUFIT_FIELDS(KernelDriver) {
  v("version", x.version), v("flavour", x.flavour), v("nouveau_loaded", x.nouveau_loaded);
  v("uvm_loaded", x.uvm_loaded), v("uvm_hmm_disabled", x.uvm_hmm_disabled);
  v("module_on_disk", x.module_on_disk), v("package_version", x.package_version);
  v("fabric_manager", x.fabric_manager), v("nvswitch", x.nvswitch), v("persistence", x.persistence);
  v("nodes", x.nodes), v("log", x.log), v("xids", x.xids);
}

CUFIT_FIELDS(DriverLibrary) {
  v("soname", x.soname), v("path", x.path), v("realpath", x.realpath), v("version", x.version);
  v("origin", x.origin), v("loads", x.loads), v("found_by", x.found_by);
  v("problem", x.problem);
  v("compat_cuda", x.compat_cuda), v("compat_drivers", x.compat_drivers);
  v("compat_devices", x.compat_devices);
}

CUFIT_FIELDS(GpuProcess) {
  v("pid", x.pid), v("name", x.name), v("used_bytes", x.used_bytes), v("kind", x.kind);
}

CUFIT_FIELDS(MigInstance) {
  v("name", x.name), v("uuid", x.uuid), v("memory_bytes", x.memory_bytes);
}

CUFIT_FIELDS(NvmlPeer) {
  v("index", x.index), v("topology", x.topology), v("p2p", x.p2p);
  v("p2p_nvlink", x.p2p_nvlink);
}

CUFIT_FIELDS(NvmlGpu) {
  v("index", x.index), v("minor", x.minor), v("state_code", x.state_code);
  v("name", x.name), v("uuid", x.uuid), v("serial", x.serial);
  v("pci_address", x.pci_address), v("compute_capability", x.compute_capability),
      v("brand", x.brand);
  v("memory_total_bytes", x.memory_total_bytes), v("memory_used_bytes", x.memory_used_bytes);
  v("memory_free_bytes", x.memory_free_bytes), v("memory_reserved_bytes", x.memory_reserved_bytes);
  v("mig_current", x.mig_current), v("mig_pending", x.mig_pending),
      v("mig_instances", x.mig_instances);
  v("ecc_current", x.ecc_current), v("ecc_pending", x.ecc_pending);
  v("ecc_uncorrected_volatile", x.ecc_uncorrected_volatile);
  v("ecc_uncorrected_aggregate", x.ecc_uncorrected_aggregate);
  v("ecc_corrected_volatile", x.ecc_corrected_volatile);
  v("ecc_corrected_aggregate", x.ecc_corrected_aggregate);
  v("retirement_pending", x.retirement_pending);
  v("remap_pending", x.remap_pending), v("remap_failed", x.remap_failed);
  v("remapped_correctable", x.remapped_correctable);
  v("remapped_uncorrectable", x.remapped_uncorrectable);
  v("throttle", x.throttle);
  v("pcie_gen", x.pcie_gen), v("pcie_gen_max", x.pcie_gen_max);
  v("pcie_width", x.pcie_width), v("pcie_width_max", x.pcie_width_max);
  v("nvlinks_active", x.nvlinks_active), v("nvlinks_total", x.nvlinks_total);
  v("compute_mode", x.compute_mode), v("persistence", x.persistence);
  v("display_active", x.display_active), v("temperature_c", x.temperature_c);
  v("vbios", x.vbios), v("gsp_firmware", x.gsp_firmware), v("inforom", x.inforom);
  v("recovery_action", x.recovery_action);
  v("fabric_state", x.fabric_state), v("fabric_status", x.fabric_status);
  v("clock_max_mhz", x.clock_max_mhz), v("clock_application_mhz", x.clock_application_mhz);
  v("clock_application_default_mhz", x.clock_application_default_mhz);
  v("power_watts", x.power_watts), v("power_limit_watts", x.power_limit_watts);
  v("nvlink_version", x.nvlink_version), v("nvlink_mbps", x.nvlink_mbps);
  v("nvlink_remotes", x.nvlink_remotes), v("peers", x.peers);
  v("processes", x.processes);
}

CUFIT_FIELDS(NvmlFacts) {
  v("library", x.library), v("init_result", x.init_result), v("driver_version", x.driver_version);
  v("cuda_version", x.cuda_version), v("gpu_count", x.gpu_count), v("gpus", x.gpus);
}

CUFIT_FIELDS(CudaPeer) { v("ordinal", x.ordinal), v("access", x.access); }

CUFIT_FIELDS(CudaDevice) {
  v("ordinal", x.ordinal), v("name", x.name), v("uuid", x.uuid), v("pci_address", x.pci_address);
  v("compute_capability", x.compute_capability);
  v("memory_total_bytes", x.memory_total_bytes), v("memory_free_bytes", x.memory_free_bytes);
  v("integrated", x.integrated), v("compute_check", x.compute_check),
      v("compute_code", x.compute_code);
  v("memory_test", x.memory_test), v("memory_tested_bytes", x.memory_tested_bytes);
  v("peers", x.peers);
}

CUFIT_FIELDS(CudaFacts) {
  v("library", x.library), v("init_result", x.init_result), v("driver_version", x.driver_version);
  v("device_count", x.device_count), v("devices", x.devices), v("driver_seconds", x.driver_seconds);
}

CUFIT_FIELDS(Toolkit) {
  v("path", x.path), v("version", x.version), v("nvcc", x.nvcc);
  v("nvcc_version", x.nvcc_version), v("found_by", x.found_by), v("on_path", x.on_path);
}

CUFIT_FIELDS(EnvVariable) { v("name", x.name), v("value", x.value); }

CUFIT_FIELDS(ContainerEngine) {
  v("docker", x.docker), v("toolkit", x.toolkit);
  v("toolkit_version", x.toolkit_version), v("runtime_registered", x.runtime_registered);
  v("default_runtime", x.default_runtime), v("snap_docker", x.snap_docker),
      v("cdi_specs", x.cdi_specs), v("cdi_driver", x.cdi_driver);
}

CUFIT_FIELDS(Distribution) {
  v("name", x.name), v("display_name", x.display_name), v("version", x.version);
  v("location", x.location), v("kind", x.kind);
  v("installer", x.installer), v("tag", x.tag), v("needs", x.needs), v("has_record", x.has_record);
  v("files_recorded", x.files_recorded), v("files_missing", x.files_missing);
  v("first_missing", x.first_missing), v("files_resized", x.files_resized);
  v("first_resized", x.first_resized);
}

CUFIT_FIELDS(Binary) {
  v("path", x.path), v("package", x.package), v("size_bytes", x.size_bytes), v("soname", x.soname);
  v("needed", x.needed), v("rpath", x.rpath), v("runpath", x.runpath),
      v("device_code", x.device_code);
  v("glibc", x.glibc), v("glibcxx", x.glibcxx), v("cxxabi", x.cxxabi), v("cxx11_abi", x.cxx11_abi);
  v("python_tag", x.python_tag), v("unresolved", x.unresolved);
  v("unresolved_count", x.unresolved_count), v("not_found", x.not_found), v("damage", x.damage),
      v("unreadable", x.unreadable);
}

CUFIT_FIELDS(LoadedLibrary) {
  v("name", x.name), v("path", x.path), v("by", x.by), v("asked_by", x.asked_by);
  v("package", x.package), v("version", x.version), v("cuda_major", x.cuda_major);
  v("inside", x.inside);
}

CUFIT_FIELDS(TorchFacts) {
  v("version", x.version), v("cuda", x.cuda), v("hip", x.hip), v("debug", x.debug), v("git", x.git);
  v("path", x.path), v("variant", x.variant);
  v("xnnpack", x.xnnpack), v("module_loading", x.module_loading);
}

CUFIT_FIELDS(ProjectIndex) {
  v("name", x.name), v("url", x.url), v("explicit", x.is_explicit), v("packages", x.packages);
}

CUFIT_FIELDS(PythonEnv) {
  v("path", x.path), v("kind", x.kind), v("active", x.active), v("found_by", x.found_by);
  v("installer", x.installer), v("project", x.project);
  v("project_python", x.project_python), v("project_indexes", x.project_indexes);
  v("project_packages", x.project_packages);
  v("externally_managed", x.externally_managed), v("makes_venv", x.makes_venv);
  v("python", x.python), v("interpreter", x.interpreter), v("base_python", x.base_python);
  v("site_packages", x.site_packages), v("distributions", x.distributions), v("torch", x.torch);
  v("binaries", x.binaries), v("loads", x.loads), v("shadowed", x.shadowed),
      v("torch_run", x.torch_run);
}

CUFIT_FIELDS(CpuLine) { v("label", x.label), v("value", x.value); }

CUFIT_FIELDS(CollectEnvFacts) {
  v("cpu", x.cpu), v("gcc", x.gcc), v("clang", x.clang), v("cmake", x.cmake), v("cudnn", x.cudnn);
}

CUFIT_FIELDS(PeerCopy) {
  v("from", x.from), v("to", x.to), v("bytes_per_second", x.bytes_per_second);
  v("wrong", x.wrong);
}

CUFIT_FIELDS(TogetherFacts) {
  v("sum", x.sum), v("env", x.env), v("torch", x.torch), v("nccl", x.nccl), v("ranks", x.ranks);
  v("said", x.said), v("warning", x.warning), v("via", x.via), v("sum_bytes", x.sum_bytes);
  v("bus_bytes_per_second", x.bus_bytes_per_second), v("small_seconds", x.small_seconds);
  v("copies", x.copies), v("copies_said", x.copies_said), v("copy_bytes", x.copy_bytes);
  v("pairs", x.pairs), v("interfaces", x.interfaces);
}

CUFIT_FIELDS(Facts) {
  v("schema", x.schema), v("cufit_version", x.cufit_version), v("origin", x.origin);
  v("system", x.system), v("pci", x.pci), v("kernel", x.kernel);
  v("driver_libraries", x.driver_libraries), v("nvml", x.nvml), v("cuda", x.cuda);
  v("toolkits", x.toolkits), v("variables", x.variables), v("engine", x.engine), v("envs", x.envs);
  v("local_modules", x.local_modules);
  v("collect_env", x.collect_env), v("together", x.together), v("problems", x.problems);
}

#undef CUFIT_FIELDS

}  // namespace cufit::facts
