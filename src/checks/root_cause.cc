// SPDX-License-Identifier: Apache-2.0
// One root cause, one finding. Checks judge alone; this file knows which finding explains which
// other one, as a table from the lowest layer up. The law behind it: the cause is the one whose
// removal alone makes the program run, and a broken lower layer goes before an upper one. What
// follows goes into `consequences`.
#include <algorithm>
#include <string_view>

#include "base/format.h"
#include "checks/check.h"
#include "checks/report_sections.h"

namespace cufit::checks {

namespace {

enum class Scope {
  any,   // the cause explains the effect whatever the subjects are
  same,  // only for the same subject: the same GPU or environment, a file inside it, or a cause of
         // the whole machine
};

struct Rule {
  std::string_view cause;
  std::string_view effects;  // space separated ids; "id?" only where that finding could not decide
  Scope scope;
};

// Everything that can only be wrong once a kernel driver drives the GPU.
#define CUFIT_ABOVE_KERNEL                                                            \
  "driver_answer_unknown driver_probe_hung driver_probe_crashed driver_too_old "      \
  "driver_minor_compat "                                                              \
  "driver_lib_mismatch libcuda_shadowed dev_nodes_missing driver_libs_missing "       \
  "uvm_hmm_init_failure "                                                             \
  "uvm_stale_after_suspend fabric_manager cuda_visible_devices compute_check_failed " \
  "no_cuda_device"
// (a macro because string literals concatenate and constants do not)

const Rule k_rules[] = {
    // What goes from one GPU to another one takes a detour, a full /dev/shm or links that are down.
    {"nccl_p2p_iommu_acs", "gpu_exchange_wrong gpu_exchange_failed gpu_exchange_slow", Scope::any},
    {"nccl_shm_attach", "gpu_exchange_failed", Scope::any},
    {"nccl_network_config", "gpu_exchange_failed", Scope::any},
    {"nvlink_degraded", "gpu_exchange_slow", Scope::any},
    // Nothing to drive: whatever driver and nodes say follows from it.
    {"no_nvidia_gpu",
     CUFIT_ABOVE_KERNEL
     " driver_not_installed module_not_built_for_kernel container_no_gpu_requested",
     Scope::any},
    // WSL 1 and old Windows builds pass no GPU in, whatever is installed inside.
    {"wsl_host_too_old",
     CUFIT_ABOVE_KERNEL " driver_not_installed wsl_libcuda_not_found no_nvidia_gpu", Scope::any},
    // Firmware gave the GPU no memory window: the module loads and refuses the adapter.
    {"platform_pci_resources", CUFIT_ABOVE_KERNEL " driver_not_installed gpu_fell_off_bus",
     Scope::any},
    // A GPU that left the bus: NVML 15, hanging calls, missing nodes are its echo.
    {"gpu_fell_off_bus",
     CUFIT_ABOVE_KERNEL " gpu_missing_in_driver pcie_link_degraded gsp_firmware_hang", Scope::any},
    {"gsp_firmware_hang", CUFIT_ABOVE_KERNEL " gpu_missing_in_driver", Scope::any},
    // Defective memory fails the compute check of that GPU.
    {"gpu_memory_ecc", "compute_check_failed driver_answer_unknown", Scope::same},
    {"nvlink_error", "fabric_manager nvlink_degraded", Scope::any},
    {"gpu_needs_reset", CUFIT_ABOVE_KERNEL " gpu_missing_in_driver gpu_memory_ecc", Scope::any},
    // The kernel side is absent: each way in which it can be absent.
    {"container_no_gpu_requested",
     CUFIT_ABOVE_KERNEL " driver_not_installed module_not_built_for_kernel "
                        "container_driver_capabilities no_nvidia_gpu",
     Scope::any},
    {"container_toolkit_missing",
     CUFIT_ABOVE_KERNEL " container_no_gpu_requested container_runtime_not_registered", Scope::any},
    {"container_runtime_not_registered", CUFIT_ABOVE_KERNEL " container_no_gpu_requested",
     Scope::any},
    {"container_cgroup_devices_lost", CUFIT_ABOVE_KERNEL, Scope::any},
    {"secure_boot_unsigned_module",
     CUFIT_ABOVE_KERNEL
     " driver_not_installed module_not_built_for_kernel module_not_loaded nouveau_conflict",
     Scope::any},
    {"driver_dropped_gpu", CUFIT_ABOVE_KERNEL " gpu_missing_in_driver driver_kernel_module_flavour",
     Scope::same},
    {"driver_kernel_module_flavour", CUFIT_ABOVE_KERNEL " gpu_missing_in_driver", Scope::any},
    // nouveau keeps the GPU: the driver may be installed and still cannot bind.
    {"nouveau_conflict",
     CUFIT_ABOVE_KERNEL " driver_not_installed module_not_built_for_kernel module_not_loaded",
     Scope::any},
    {"module_not_built_for_kernel", CUFIT_ABOVE_KERNEL " driver_not_installed module_not_loaded",
     Scope::any},
    {"module_not_loaded", CUFIT_ABOVE_KERNEL " driver_not_installed", Scope::any},
    {"dev_nodes_no_permission", "driver_answer_unknown no_cuda_device compute_check_failed",
     Scope::any},
    {"driver_not_installed", CUFIT_ABOVE_KERNEL, Scope::any},
    // A driver too old to know the GPU at all also fails every wheel; the newer driver cures both.
    {"driver_too_old_for_gpu", CUFIT_ABOVE_KERNEL " gpu_missing_in_driver ptx_newer_than_driver",
     Scope::any},
    // User-mode part against kernel module: cuInit 803, NVML 18, and the versions each of them
    // reports.
    {"driver_lib_mismatch",
     "libcuda_shadowed driver_answer_unknown driver_too_old driver_minor_compat no_cuda_device "
     "compute_check_failed ptx_newer_than_driver",
     Scope::any},
    {"container_driver_capabilities",
     "driver_libs_missing driver_answer_unknown no_cuda_device dev_nodes_missing", Scope::any},
    {"wsl_libcuda_not_found", "driver_libs_missing driver_answer_unknown no_cuda_device",
     Scope::any},
    {"dev_nodes_missing",
     "driver_answer_unknown no_cuda_device compute_check_failed uvm_hmm_init_failure "
     "uvm_stale_after_suspend",
     Scope::any},
    // 804: a compat libcuda on hardware that refuses it. It hides the host's own libcuda.
    {"compat_libcuda_unsupported",
     "libcuda_shadowed driver_answer_unknown no_cuda_device driver_too_old "
     "driver_minor_compat compute_check_failed ptx_newer_than_driver",
     Scope::any},
    {"libcuda_shadowed",
     "driver_answer_unknown no_cuda_device driver_too_old driver_minor_compat compute_check_failed "
     "ptx_newer_than_driver",
     Scope::any},
    {"fabric_manager", "driver_answer_unknown no_cuda_device compute_check_failed nvlink_degraded",
     Scope::any},
    {"uvm_hmm_init_failure", "driver_answer_unknown no_cuda_device compute_check_failed",
     Scope::any},
    {"uvm_stale_after_suspend", "driver_answer_unknown no_cuda_device compute_check_failed",
     Scope::any},
    {"cuda_visible_devices", "driver_answer_unknown no_cuda_device", Scope::any},
    {"gpu_mode_config", "compute_check_failed no_cuda_device driver_answer_unknown", Scope::same},
    {"gpu_memory_exhausted", "compute_check_failed", Scope::same},
    // A clean "too old" for the whole family also limits its JIT; the newer driver cures both. It
    // never makes cuInit fail: libcuda does not know which runtime will ask it.
    {"driver_too_old", "driver_minor_compat ptx_newer_than_driver ptx_jit_only", Scope::same},
    {"ptx_newer_than_driver", "driver_minor_compat ptx_jit_only", Scope::same},
    // Without its Python nothing of an environment runs; a new one has none of its defects.
    {"python_gone",
     "torch_not_installed torch_install_broken package_half_removed package_files_changed "
     "package_file_damaged "
     "requirement_missing requirement_unmet cuda_lib_not_found cuda_libs_shadowed "
     "nvidia_pip_pkg_conflict torch_family_mismatch ext_abi_mismatch ext_cuda_major_mismatch "
     "ext_binary_missing dependency_too_new pythonpath_hides_torch",
     Scope::same},
    // The environment's own packages were installed for its own torch.
    {"pythonpath_hides_torch",
     "torch_install_broken package_file_damaged package_files_changed package_half_removed "
     "requirement_missing requirement_unmet "
     "cuda_lib_not_found cuda_libs_shadowed nvidia_pip_pkg_conflict torch_family_mismatch "
     "ext_abi_mismatch ext_cuda_major_mismatch ext_binary_missing ext_arch_missing "
     "dependency_too_new torch_not_cuda_build jetson_wrong_wheel arch_gpu_too_new "
     "arch_gpu_too_old mixed_gpu_generations driver_too_old driver_minor_compat "
     "ptx_newer_than_driver ptx_jit_only glibc_too_old torch_code_unreadable "
     "torch_wheel_table_differs torch_library_code_missing",
     Scope::same},
    // Files or a package that are gone: the loader misses them, or takes what the system has.
    {"package_half_removed", "cuda_lib_not_found cuda_libs_shadowed", Scope::same},
    {"requirement_missing", "cuda_lib_not_found cuda_libs_shadowed", Scope::same},
    // Of one package, see explains.
    {"torch_family_mismatch", "ext_abi_mismatch ext_cuda_major_mismatch ext_arch_missing",
     Scope::same},
    {"ext_binary_missing", "ext_cuda_major_mismatch", Scope::same},
    // Where no environment was found, nothing is known to lack torch.
    {"no_python_env", "torch_not_installed", Scope::any},
    // The right build replaces the torch that all of these are about.
    {"torch_not_cuda_build",
     "ext_abi_mismatch ext_cuda_major_mismatch cuda_lib_not_found torch_family_mismatch "
     "mixed_gpu_generations",
     Scope::same},
    {"jetson_wrong_wheel",
     "arch_gpu_too_new arch_gpu_too_old cuda_lib_not_found ptx_jit_only driver_too_old "
     "driver_minor_compat mixed_gpu_generations",
     Scope::same},
    {"torch_install_broken",
     "cuda_lib_not_found ext_abi_mismatch torch_family_mismatch torch_wheel_table_differs "
     "torch_code_unreadable torch_library_code_missing arch_gpu_too_new? arch_gpu_too_old?",
     Scope::same},
    // No single wheel serves the host: the per-GPU findings are its two sides.
    {"mixed_gpu_generations", "driver_kernel_module_flavour",
     Scope::any},  // of its kernel_module variant, see explains
    {"mixed_gpu_generations", "arch_gpu_too_new arch_gpu_too_old ptx_jit_only", Scope::same},
    {"arch_gpu_too_new", "ext_arch_missing ptx_jit_only driver_minor_compat", Scope::same},
    {"arch_gpu_too_old", "ext_arch_missing ptx_jit_only driver_minor_compat", Scope::same},
    // One package of another CUDA major: its missing libcudart is the reason why it cannot be
    // loaded.
    // An old distribution has an old libstdc++ as well; moving to a newer one cures both.
    {"glibc_too_old", "libstdcxx_too_old", Scope::same},
    {"nvidia_pip_pkg_conflict", "cuda_libs_shadowed cuda_lib_not_found", Scope::same},
    {"ext_cuda_major_mismatch", "cuda_lib_not_found ext_abi_mismatch ext_arch_missing",
     Scope::same},
    {"ext_abi_mismatch", "ext_arch_missing", Scope::same},
};
#undef CUFIT_ABOVE_KERNEL

// "env /p" covers the file "/p/lib/x.so"; the machine covers everything.
bool covers(const std::string& cause, const std::string& effect) {
  if (cause == "machine" || cause == effect) return true;
  return starts_with(cause, "env ") && starts_with(effect, cause.substr(4) + "/");
}

bool lists(std::string_view effects, const Finding& finding) {
  bool undecided = finding.severity == Severity::unknown;
  for (std::string_view effect : split(effects, ' '))
    if (effect == finding.id || (undecided && effect == finding.id + "?")) return true;
  return false;
}

// An uncertain finding explains nothing, and a note does not explain an error.
bool strong(const Finding& cause, const Finding& effect) {
  if (cause.severity == Severity::error) return true;
  // Whether the other torch runs or not, the environment's own is the one to look at.
  if (cause.id == "pythonpath_hides_torch") return true;
  return cause.severity == Severity::warning && effect.severity != Severity::error;
}

std::string arg_of(const Finding& finding, const char* name) {
  const auto found = finding.args.find(name);
  return found == finding.args.end() ? std::string() : found->second;
}

// A partner, or a package without the library that it opens, is the cause of its own files alone.
bool of_one_package(const Finding& cause, const Finding& effect) {
  const bool partner = cause.id == "torch_family_mismatch";
  if (!partner && (cause.id != "ext_binary_missing" || !starts_with(effect.id, "ext_")))
    return true;
  if (!starts_with(effect.id, "ext_")) return true;
  return arg_of(cause, partner ? "partner" : "package") == arg_of(effect, "package");
}

bool explains(const Finding& cause, const Finding& effect) {
  if (!strong(cause, effect)) return false;
  // "Install the other kind of module" is no advice where each kind stops one of the GPUs; where
  // only the wheels differ it still is.
  if (effect.id == "driver_kernel_module_flavour" && cause.id == "mixed_gpu_generations" &&
      cause.variant != "kernel_module")
    return false;
  if (!of_one_package(cause, effect)) return false;
  for (const Rule& rule : k_rules) {
    if (rule.cause != cause.id || !lists(rule.effects, effect)) continue;
    if (rule.scope == Scope::any || covers(cause.subject, effect.subject)) return true;
  }
  return false;
}

void add_consequence(Finding& root, const std::string& id) {
  std::vector<std::string>& list = root.consequences;
  if (id != root.id && std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
}

// Two checks that say the same of the same subject become one finding with the evidence of both.
std::vector<Finding> merge_equal(std::vector<Finding> findings) {
  std::vector<Finding> merged;
  for (Finding& next : findings) {
    auto same = std::find_if(merged.begin(), merged.end(), [&](const Finding& have) {
      return have.id == next.id && have.subject == next.subject && have.variant == next.variant &&
             have.args == next.args;
    });
    if (same == merged.end()) {
      merged.push_back(std::move(next));
      continue;
    }
    std::vector<Evidence> evidence = same->evidence;
    for (const Evidence& more : next.evidence) {
      bool known = std::any_of(evidence.begin(), evidence.end(), [&](const Evidence& have) {
        return have.kind == more.kind && have.detail == more.detail && have.value == more.value;
      });
      if (!known) evidence.push_back(more);
    }
    for (const std::string& id : next.consequences) add_consequence(*same, id);
    if (seriousness(next.severity) > seriousness(same->severity)) same->severity = next.severity;
    same->evidence = std::move(evidence);
  }
  return merged;
}

}  // namespace

std::vector<Finding> causes_first(std::vector<Finding> findings) {
  std::vector<bool> explained(findings.size());
  for (size_t i = 0; i < findings.size(); ++i)
    for (size_t j = 0; j < findings.size() && !explained[i]; ++j)
      explained[i] =
          i != j && explains(findings[j], findings[i]) && !explains(findings[i], findings[j]);
  std::vector<Finding> causes, effects;
  for (size_t i = 0; i < findings.size(); ++i) {
    // It says that no cause was found; here one was.
    if (explained[i] && findings[i].id == "driver_answer_unknown") continue;
    (explained[i] ? effects : causes).push_back(std::move(findings[i]));
  }
  for (Finding& effect : effects) causes.push_back(std::move(effect));
  return causes;
}

std::vector<Finding> keep_root_causes(std::vector<Finding> findings) {
  findings = merge_equal(std::move(findings));
  // owner[i]: the finding that explains i, or i itself. The table has no cycle between error
  // findings, but findings come from many checks, so the walk up is bounded anyway.
  std::vector<size_t> owner(findings.size());
  for (size_t i = 0; i < findings.size(); ++i) {
    owner[i] = i;
    for (size_t j = 0; j < findings.size() && owner[i] == i; ++j)
      if (i != j && explains(findings[j], findings[i]) && !explains(findings[i], findings[j]))
        owner[i] = j;
  }
  std::vector<bool> is_root(findings.size());
  for (size_t i = 0; i < findings.size(); ++i) {
    size_t root = i;
    for (size_t steps = 0; owner[root] != root && steps < findings.size(); ++steps)
      root = owner[root];
    is_root[i] = root == i;
    if (root == i) continue;
    add_consequence(findings[root], findings[i].id);
    // A warning explains an error where the other torch cannot work at all: then it is one.
    if (findings[i].severity == Severity::error) findings[root].severity = Severity::error;
    std::vector<std::string> inherited = findings[i].consequences;
    for (const std::string& id : inherited) add_consequence(findings[root], id);
  }
  std::vector<Finding> roots;
  for (size_t i = 0; i < findings.size(); ++i)
    if (is_root[i]) roots.push_back(std::move(findings[i]));
  std::stable_sort(roots.begin(), roots.end(), [](const Finding& a, const Finding& b) {
    return seriousness(a.severity) > seriousness(b.severity);
  });
  return roots;
}

}  // namespace cufit::checks
