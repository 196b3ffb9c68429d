// SPDX-License-Identifier: Apache-2.0
// The texts of findings: every known root cause has them, and both languages say the same.
#include <gtest/gtest.h>

#include <algorithm>

#include <set>

#include "knowledge/knowledge.h"

namespace cufit::knowledge {
namespace findings_test {

const Knowledge& tables() { return Knowledge::builtin(); }

// Root causes of taxonomy-env, version 1. Ids are stable: this list only grows.
constexpr const char* k_taxonomy[] = {"no_nvidia_gpu",
                                      "gpu_fell_off_bus",
                                      "gpu_memory_ecc",
                                      "nvlink_error",
                                      "platform_pci_resources",
                                      "driver_not_installed",
                                      "module_not_built_for_kernel",
                                      "secure_boot_unsigned_module",
                                      "nouveau_conflict",
                                      "driver_kernel_module_flavour",
                                      "driver_dropped_gpu",
                                      "driver_lib_mismatch",
                                      "gsp_firmware_hang",
                                      "uvm_hmm_init_failure",
                                      "uvm_stale_after_suspend",
                                      "gpu_mode_config",
                                      "fabric_manager",
                                      "driver_too_old",
                                      "compat_libcuda_unsupported",
                                      "ptx_newer_than_driver",
                                      "libcuda_shadowed",
                                      "container_toolkit_missing",
                                      "container_runtime_not_registered",
                                      "container_no_gpu_requested",
                                      "container_driver_capabilities",
                                      "container_cgroup_devices_lost",
                                      "dev_nodes_missing",
                                      "shm_too_small",
                                      "wsl_host_too_old",
                                      "wsl_libcuda_not_found",
                                      "cuda_visible_devices",
                                      "wrong_python_env",
                                      "torch_not_cuda_build",
                                      "arch_gpu_too_new",
                                      "arch_gpu_too_old",
                                      "no_matching_wheel",
                                      "torch_install_broken",
                                      "torch_family_mismatch",
                                      "jetson_wrong_wheel",
                                      "cuda_libs_shadowed",
                                      "dependency_too_new",
                                      "cuda_lib_not_found",
                                      "nvidia_pip_pkg_conflict",
                                      "glibc_too_old",
                                      "libstdcxx_too_old",
                                      "windows_runtime_dll_missing",
                                      "ext_binary_missing",
                                      "ext_abi_mismatch",
                                      "ext_cuda_major_mismatch",
                                      "ext_arch_missing",
                                      "build_isolation_hides_torch",
                                      "ext_build_cuda_mismatch",
                                      "nvcc_missing",
                                      "nvcc_too_old_for_arch",
                                      "host_compiler_unsupported",
                                      "build_deps_missing",
                                      "nccl_p2p_iommu_acs",
                                      "nccl_network_config",
                                      "gpu_memory_exhausted",
                                      "app_kernel_fault"};

// Found by the doctor and not in the taxonomy.
constexpr const char* k_doctor[] = {"torch_not_installed",
                                    "no_python_env",
                                    "driver_probe_hung",
                                    "driver_probe_crashed",
                                    "driver_libs_missing",
                                    "driver_minor_compat",
                                    "ptx_jit_only",
                                    "ptx_jit_forced",
                                    "mixed_gpu_generations",
                                    "pcie_link_degraded",
                                    "gpu_throttled",
                                    "compute_check_failed",
                                    "pip_over_conda",
                                    "package_half_removed",
                                    "torch_wheel_table_differs",
                                    "torch_library_code_missing",
                                    "package_file_damaged",
                                    "alloc_conf_ignored",
                                    "gpu_memory_in_use",
                                    "module_not_loaded",
                                    "dev_nodes_no_permission",
                                    "driver_too_old_for_gpu",
                                    "driver_answer_unknown",
                                    "no_cuda_device",
                                    "gpu_missing_in_driver",
                                    "torch_code_unreadable",
                                    "gpu_capability_unknown"};

std::multiset<std::string> between(std::string_view text, char open, char close) {
  std::multiset<std::string> out;
  size_t at = text.find(open);
  while (at != text.npos) {
    const size_t end = text.find(close, at + 1);
    if (end == text.npos) break;
    out.insert(std::string(text.substr(at + 1, end - at - 1)));
    at = text.find(open, end + 1);
  }
  return out;
}

bool has_chinese(std::string_view text) {
  for (unsigned char c : text) {
    if (c >= 0xe4 && c <= 0xe9) return true;  // lead bytes of U+4000 to U+9FFF
  }
  return false;
}

// Root causes of memory failures.
constexpr const char* k_memory_taxonomy[] = {
    "weights_exceed_capacity",
    "idle_modules_resident",
    "activation_peak",
    "optimizer_state",
    "trains_too_many_params",
    "attention_quadratic",
    "oversized_input",
    "decode_spike",
    "autotune_workspace",
    "memory_saver_not_active",
    "runaway_request",
    "graph_retained",
    "eval_without_no_grad",
    "tensors_kept",
    "stale_reference",
    "library_leak",
    "fragmentation",
    "cross_stream_pending",
    "cudagraph_pool",
    "library_alloc_starved",
    "other_process",
    "orphan_process",
    "multi_worker_duplicate",
    "ddp_rank0_pileup",
    "dataparallel_imbalance",
    "unsharded_peak",
    "resume_extra_copy",
    "wrong_device",
    "serving_kv_budget",
    "serving_over_free",
    "serving_overcommit",
    "mig_slice_small",
    "gpu_quota_limit",
    "gpu_quota_accounting_bug",
    "host_ram_kill",
    "host_shm",
    "pinned_host_limit",
    "wsl2_residency",
    "sysmem_spill",
    "pseudo_oom",
};

TEST(Findings, EveryRootCauseHasTexts) {
  for (const char* id : k_taxonomy) EXPECT_NE(tables().find_texts(id), nullptr) << id;
  for (const char* id : k_doctor) EXPECT_NE(tables().find_texts(id), nullptr) << id;
}

// explain names a cause only where its file says how a text shows it.
TEST(Findings, EveryRootCauseCanBeExplainedFromAText) {
  std::vector<const char*> ids(std::begin(k_taxonomy), std::end(k_taxonomy));
  ids.insert(ids.end(), std::begin(k_memory_taxonomy), std::end(k_memory_taxonomy));
  for (const char* id : ids) {
    const FindingTexts* finding = tables().find_texts(id);
    ASSERT_NE(finding, nullptr) << id;
    EXPECT_FALSE(finding->signs.empty()) << id;
    for (const char* key : {"why.text", "next.text", "decide"}) {
      EXPECT_TRUE(std::any_of(finding->texts.begin(), finding->texts.end(),
                              [&](const TextPair& text) { return text.key == key; }))
          << id << " " << key;
    }
  }
}

TEST(Findings, XidsLeadToTexts) {
  for (const XidRow& row : tables().xids) {
    if (!row.finding.empty()) {
      EXPECT_NE(tables().find_texts(row.finding), nullptr) << row.number;
    }
  }
}

TEST(Findings, LayersAndActionsAreKnown) {
  const std::set<std::string_view> layers = {
      "hardware", "kernel-driver", "driver-runtime", "container", "wsl", "environment",
      "torch-build", "libraries", "extension", "build", "multi-gpu", "application",
      // of memory failures
      "capacity", "bug", "growth", "allocator", "outside", "distributed", "serving", "quota",
      "host", "platform"};
  const std::set<std::string_view> actions = {"none",          "monitor", "configure", "reinstall",
                                              "update-driver", "reset",   "isolate",   "install"};
  for (const FindingTexts& finding : tables().findings) {
    EXPECT_TRUE(layers.count(finding.category)) << finding.id << " " << finding.category;
    EXPECT_TRUE(actions.count(finding.action)) << finding.id << " " << finding.action;
  }
}

TEST(Findings, BothLanguagesAskForTheSameAndShowTheSameCommands) {
  for (const FindingTexts& finding : tables().findings) {
    for (const TextPair& text : finding.texts) {
      const std::string name = std::string(finding.id) + " " + std::string(text.key);
      EXPECT_EQ(between(text.en, '{', '}').size() > 0, between(text.zh, '{', '}').size() > 0)
          << name;
      const auto en = between(text.en, '{', '}'), zh = between(text.zh, '{', '}');
      EXPECT_EQ(std::set<std::string>(en.begin(), en.end()),
                std::set<std::string>(zh.begin(), zh.end()))
          << name;
      EXPECT_EQ(between(text.en, '`', '`'), between(text.zh, '`', '`')) << name;
      // A text is either one command, the same in both, or a sentence in its language.
      EXPECT_EQ(has_chinese(text.zh), text.en != text.zh) << name;
      EXPECT_FALSE(has_chinese(text.en)) << name;
    }
  }
}

TEST(Findings, KeysAndForms) {
  for (const FindingTexts& finding : tables().findings) {
    std::set<std::string_view> keys;
    for (const TextPair& text : finding.texts) {
      const std::string name = std::string(finding.id) + " " + std::string(text.key);
      EXPECT_TRUE(keys.insert(text.key).second) << name;
      const std::string_view part = text.key.substr(0, text.key.find('.'));
      EXPECT_TRUE(part == "title" || part == "why" || part == "next" || part == "rule" ||
                  part == "decide")
          << name;
      EXPECT_EQ(text.en.find('\n'), text.en.npos) << name;
      if (part == "why") {
        EXPECT_EQ(text.en.back(), '.') << name;
        EXPECT_TRUE(text.zh.substr(text.zh.size() - 3) == "。") << name;
      } else if (part != "decide" && text.key != "next.text") {  // may be several sentences
        EXPECT_NE(text.en.back(), '.') << name;
        EXPECT_TRUE(text.zh.size() < 3 || text.zh.substr(text.zh.size() - 3) != "。") << name;
      }
      if (part == "title") {
        EXPECT_LE(text.en.size(), 90u) << name;
        EXPECT_EQ(text.en.find('{'), text.en.npos) << name;
      }
    }
    for (const char* key : {"title", "why", "next"})
      EXPECT_TRUE(keys.count(key)) << finding.id << " " << key;
  }
}

TEST(Messages, BothLanguagesAskForTheSame) {
  for (const TextPair& text : tables().messages) {
    EXPECT_EQ(between(text.en, '{', '}'), between(text.zh, '{', '}')) << text.key;
  }
}

}  // namespace findings_test
}  // namespace cufit::knowledge
