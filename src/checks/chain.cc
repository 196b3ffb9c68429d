// SPDX-License-Identifier: Apache-2.0
// Chains: one per GPU and environment. Each link starts with what the facts prove; a finding about
// this GPU, this environment or the whole machine then decides the state of the link that it is
// about.
#include <algorithm>

#include "base/format.h"
#include "checks/chain_links.h"
#include "checks/report_sections.h"

namespace cufit::checks {

namespace {

struct Place {
  std::string_view link;
  std::string_view ids;  // space separated
};

const Place k_places[] = {
    {"gpu",
     "no_nvidia_gpu gpu_fell_off_bus gpu_memory_ecc platform_pci_resources gpu_missing_in_driver "
     "gsp_firmware_hang gpu_needs_reset gpu_inforom_damaged nvlink_degraded"},
    {"kernel_driver",
     "driver_not_installed module_not_built_for_kernel module_not_loaded "
     "secure_boot_unsigned_module nouveau_conflict driver_kernel_module_flavour "
     "driver_dropped_gpu driver_too_old_for_gpu wsl_host_too_old"},
    {"user_driver",
     "driver_lib_mismatch libcuda_shadowed compat_libcuda_unsupported driver_answer_unknown "
     "no_cuda_device driver_probe_hung driver_probe_crashed fabric_manager uvm_hmm_init_failure "
     "uvm_stale_after_suspend cuda_visible_devices dev_nodes_missing dev_nodes_no_permission "
     "wsl_libcuda_not_found gpu_mode_config compute_check_failed gpu_memory_exhausted "
     "gpu_memory_in_use driver_libs_missing"},
    {"container",
     "container_no_gpu_requested container_driver_capabilities container_cgroup_devices_lost "
     "shm_too_small"},
    {"cuda_runtime", "driver_too_old driver_minor_compat"},
    {"libraries",
     "cuda_libs_shadowed cuda_lib_not_found nvidia_pip_pkg_conflict glibc_too_old "
     "libstdcxx_too_old package_half_removed requirement_missing"},
    {"torch",
     "no_python_env torch_not_installed torch_not_cuda_build jetson_wrong_wheel "
     "torch_install_broken "
     "dependency_too_new python_gone pythonpath_hides_torch local_module_hides"},
    {"extensions",
     "package_file_damaged ext_arch_missing ext_abi_mismatch ext_cuda_major_mismatch "
     "ext_binary_missing requirement_unmet package_files_changed "
     "torch_family_mismatch"},
};

std::string_view place_of(const Finding& finding) {
  // Of the torch link's own question only the finding about an extension's file belongs elsewhere.
  if (finding.id == "ptx_newer_than_driver" && finding.variant == "extension") return "extensions";
  // typing_extensions and the like are no libraries: importing torch itself stops.
  if (finding.variant == "import" &&
      (finding.id == "requirement_missing" || finding.id == "package_half_removed"))
    return "torch";
  for (const Place& place : k_places)
    for (std::string_view id : split(place.ids, ' '))
      if (id == finding.id) return place.link;
  return {};
}

bool is_about(const Finding& finding, const LinkCase& c) {
  const std::string& subject = finding.subject;
  auto cc = finding.args.find("cc");
  if (cc != finding.args.end() && c.gpu != nullptr && c.gpu->cc && cc->second != c.gpu->cc->text())
    return false;
  if (starts_with(subject, "GPU ")) {
    if (c.gpu == nullptr) return false;
    bool by_address = c.gpu->pci != nullptr && subject == "GPU " + c.gpu->pci->address;
    return subject == "GPU " + std::to_string(c.gpu->index) || by_address;
  }
  if (starts_with(subject, "env ")) return c.env != nullptr && subject == "env " + c.env->path;
  if (starts_with(subject, "/")) return c.env != nullptr && starts_with(subject, c.env->path + "/");
  return true;  // the machine, the container
}

LinkState state_of(const Finding& finding) {
  switch (finding.severity) {
    case Severity::error:
      return LinkState::broken;
    case Severity::warning:
      return LinkState::limited;
    case Severity::unknown:
      return LinkState::unknown;
    case Severity::note:
      return finding.id == "driver_minor_compat" ? LinkState::limited : LinkState::ok;
    case Severity::ok:
      return LinkState::ok;
  }
  return LinkState::unknown;
}

int rank(LinkState state) {
  switch (state) {
    case LinkState::broken:
      return 3;
    case LinkState::unknown:
      return 2;
    case LinkState::limited:
      return 1;
    case LinkState::ok:
      return 0;
  }
  return 0;
}

// A finding replaces the link's text where it is worse than what the link knew by itself, and where
// the link was only "unknown" and the finding says what is wrong.
void apply(const Finding& finding, Link& link) {
  LinkState state = state_of(finding);
  bool stronger = rank(state) > rank(link.state) ||
                  (state == LinkState::broken && link.state == LinkState::broken &&
                   starts_with(link.key, "link.user_driver.fails"));
  if (!stronger) return;
  link.state = state;
  link.args = finding.args;
  link.args["id"] = finding.id;
  if (finding.id == "driver_minor_compat")
    link.key = "link.cuda_runtime.minor";
  else if (finding.id == "driver_too_old" && state == LinkState::broken)
    link.key = "link.cuda_runtime.too_old";
  else if (state == LinkState::unknown)
    link.key = "link.finding.unknown";
  else
    link.key = state == LinkState::broken ? "link.finding.broken" : "link.finding.limited";
  if (state == LinkState::unknown) link.args["because"] = finding.unknown_because;
  link.evidence.insert(link.evidence.end(), finding.evidence.begin(), finding.evidence.end());
}

Chain build(const LinkCase& c, const std::vector<Finding>& findings) {
  Chain chain;
  chain.gpu = c.gpu != nullptr ? c.gpu->label : "";
  chain.env = c.env != nullptr ? c.env->path : "";
  chain.links = {gpu_link(c), kernel_driver_link(c), user_driver_link(c)};
  for (std::optional<Link>& link :
       std::vector<std::optional<Link>>{cuda_runtime_link(c), libraries_link(c)})
    if (link) chain.links.push_back(std::move(*link));
  chain.links.push_back(torch_link(c));
  for (std::optional<Link>& link :
       std::vector<std::optional<Link>>{extensions_link(c), container_link(c)})
    if (link) chain.links.push_back(std::move(*link));
  for (const Finding& finding : findings) {
    std::string_view place = place_of(finding);
    if (place.empty() || !is_about(finding, c)) continue;
    bool there = std::any_of(chain.links.begin(), chain.links.end(),
                             [&](const Link& link) { return link.name == place; });
    // A partner package without a binary that was looked at (torchvision) still is a link when it
    // is broken.
    if (!there && place == "extensions" && state_of(finding) != LinkState::ok)
      chain.links.push_back(Link{"extensions", LinkState::ok, "", {}, {}});
    for (Link& link : chain.links)
      if (link.name == place) apply(finding, link);
  }
  return chain;
}

}  // namespace

std::vector<Chain> build_chains(const Input& input, const std::vector<Finding>& all_findings) {
  std::vector<const facts::PythonEnv*> envs = torch_envs(input.facts);
  if (envs.empty())
    envs.push_back(main_env(input.facts));  // may be null: still says how far the driver gets
  std::vector<const GpuView*> gpus;
  for (const GpuView& gpu : input.gpus) gpus.push_back(&gpu);
  if (gpus.empty()) gpus.push_back(nullptr);
  std::vector<Chain> chains;
  for (const GpuView* gpu : gpus) {
    for (const facts::PythonEnv* env : envs) {
      LinkCase c{input, gpu, env, {}, {}};
      if (env != nullptr) {
        c.build = torch_build_of(input, *env);
        if (c.build.kind == "cuda" || c.build.kind.empty())
          c.code = torch_code_of(input, *env, c.build);
      }
      chains.push_back(build(c, all_findings));
    }
  }
  return chains;
}

// An extension that does not load does not stop torch; a container or library link that is only
// unknown does not stop anything that the others prove.
LinkState judge_chain(const Chain& chain) {
  int worst = 0;
  for (const Link& link : chain.links) {
    int now = rank(link.state);
    bool side = link.name == "extensions" || link.name == "libraries" || link.name == "container";
    if (link.name == "extensions" && now > 0) now = rank(LinkState::limited);
    if (side && link.state == LinkState::unknown) now = 0;
    worst = std::max(worst, now);
  }
  for (LinkState state : {LinkState::broken, LinkState::unknown, LinkState::limited})
    if (rank(state) == worst) return state;
  return LinkState::ok;
}

}  // namespace cufit::checks
