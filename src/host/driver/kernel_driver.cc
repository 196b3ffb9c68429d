// SPDX-License-Identifier: Apache-2.0
#include "host/probe.h"

#include <algorithm>

#include "formats/system/kernel_log.h"
#include "formats/system/nvidia_version.h"
#include "host/files/file_facts.h"
#include "host/driver/kernel_parts.h"

namespace cufit::host {
namespace {

const std::string k_proc_version = "/proc/driver/nvidia/version";

// /sys/module has a folder for each loaded module. Where sysfs is not there, /proc/modules has a
// line for each.
Fact<bool> is_loaded(const Host& host, const std::string& module) {
  const std::string path = "/sys/module/" + module;
  Result<FileStatus> status = host.status(path);
  if (status) return known(true, SourceKind::file, path);
  if (status.error().code != Code::not_found) return missing_file<bool>(status.error(), path);
  if (host.exists("/sys/module")) return known(false, SourceKind::file, path);
  Result<std::string> modules = host.read_file("/proc/modules", 1u << 20);
  if (!modules) return missing_file<bool>(modules.error(), "/proc/modules");
  return known(contains("\n" + *modules, "\n" + module + " "), SourceKind::file, "/proc/modules");
}

Fact<bool> hmm_disabled(const Host& host) {
  const std::string path = "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm";
  Fact<std::string> line = line_fact(host, path);
  if (!line) return missing<bool>(line.why, SourceKind::file, path, line.note);
  if (*line != "Y" && *line != "N") {
    return missing<bool>(WhyNot::malformed, SourceKind::file, path, "neither Y nor N: " + *line);
  }
  return known(*line == "Y", SourceKind::file, path);
}

bool has_nvswitch(const Host& host, const facts::Facts& facts) {
  if (facts.pci) {
    for (const facts::PciGpu& function : *facts.pci) {
      if (function.class_code == "0680") return true;
    }
  }
  return host.exists("/dev/nvidia-nvswitchctl") || host.exists("/dev/nvidia-nvswitch0");
}

// Process names are cut to 15 characters by the kernel.
bool runs_process(const Host& host, const std::vector<std::string>& pids, std::string_view name) {
  for (const std::string& pid : pids) {
    if (pid.empty() || pid[0] < '0' || pid[0] > '9') continue;
    Result<std::string> comm = host.read_head("/proc/" + pid + "/comm", 32);
    if (comm && trim(*comm) == name.substr(0, 15)) return true;
  }
  return false;
}

// Looking through all processes costs milliseconds on a busy machine, so it is done only where the
// program matters.
Fact<std::string> fabric_manager(const Host& host, const facts::Facts& facts, bool nvswitch) {
  const char* const k_installed[] = {"/usr/bin/nv-fabricmanager",
                                     "/lib/systemd/system/nvidia-fabricmanager.service",
                                     "/usr/lib/systemd/system/nvidia-fabricmanager.service",
                                     "/etc/systemd/system/nvidia-fabricmanager.service"};
  std::string installed;
  for (const char* path : k_installed) {
    if (installed.empty() && host.exists(path)) installed = path;
  }
  if (facts.system.container && *facts.system.container != "none") {
    return missing<std::string>(WhyNot::not_supported, SourceKind::file, "/proc",
                                "a container does not see the programs of its host");
  }
  if (installed.empty() && !nvswitch)
    return known<std::string>("not_installed", SourceKind::file, k_installed[0]);
  Result<std::vector<std::string>> pids = host.list("/proc");
  if (!pids) return missing_file<std::string>(pids.error(), "/proc");
  if (runs_process(host, *pids, "nv-fabricmanager")) {
    return known<std::string>("running", SourceKind::file, "/proc/*/comm");
  }
  if (installed.empty())
    return known<std::string>("not_installed", SourceKind::file, k_installed[0]);
  return known<std::string>("stopped", SourceKind::file, "/proc/*/comm");
}

// The daemon keeps persistence on unless it was told not to, as Ubuntu's unit does. Without the
// daemon an administrator may have set the mode by hand; only NVML knows that.
Fact<std::string> persistence(const Host& host) {
  const std::string path = "/run/nvidia-persistenced/nvidia-persistenced.pid";
  Fact<uint64_t> pid = number_fact(host, path);
  const std::string unknown_note = "only NVML tells";
  if (!pid) return missing<std::string>(WhyNot::not_asked, SourceKind::file, path, unknown_note);
  const std::string line_path = format("/proc/{}/cmdline", *pid);
  Result<std::string> line = host.read_head(line_path, 4096);
  if (!line || !contains(*line, "nvidia-persistenced") ||
      contains(*line, "--no-persistence-mode")) {
    return missing<std::string>(WhyNot::not_asked, SourceKind::file, path, unknown_note);
  }
  return known<std::string>("enabled", SourceKind::file, line_path);
}

// The end of a log file, from the last start of the kernel on: lines of an earlier start would be
// blamed on this one.
Result<std::string> log_tail(const Host& host, const std::string& path) {
  constexpr uint64_t k_tail_bytes = 512u << 10;
  CUFIT_TRY(source, host.open(path));
  uint64_t size = source->size_bytes();
  uint64_t start = size > k_tail_bytes ? size - k_tail_bytes : 0;
  CUFIT_TRY(text, source->read_exact(start, size - start));
  size_t boot = text.rfind("Linux version ");
  size_t line = boot == std::string::npos ? 0 : text.rfind('\n', boot);
  return text.substr(line == std::string::npos ? 0 : line);
}

void read_log(const Host& host, facts::KernelDriver& kernel) {
  std::string source = "kernel log buffer";
  Result<std::string> text = host.kernel_log();
  Error first_error = text ? Error{} : text.error();
  for (const char* path : {"/var/log/kern.log", "/var/log/dmesg"}) {
    if (text) break;
    source = path;
    text = log_tail(host, path);
  }
  if (!text) {
    kernel.log = missing<std::vector<std::string>>(why_of(first_error.code), SourceKind::file,
                                                   "kernel log buffer", first_error.what);
    return;
  }
  formats::KernelLog log = formats::parse_kernel_log(*text);
  kernel.log = known(std::move(log.lines), SourceKind::file, source);
  for (formats::Xid& xid : log.xids) {
    kernel.xids.push_back({xid.number, std::move(xid.pci), std::move(xid.text), xid.count});
  }
}

}  // namespace

void read_module_version(const Host& host, facts::KernelDriver& kernel) {
  const std::string k_sys = "/sys/module/nvidia/version";
  Fact<std::string> from_sys = line_fact(host, k_sys);
  Result<std::string> text = host.read_head(k_proc_version, 4096);
  std::optional<formats::NvidiaModule> module;
  if (text) module = formats::parse_nvidia_version(*text);
  if (module) {
    kernel.flavour = known(module->flavour, SourceKind::file, k_proc_version);
  } else if (text) {
    kernel.flavour = missing<std::string>(WhyNot::malformed, SourceKind::file, k_proc_version,
                                          "no version line");
  } else {
    kernel.flavour = missing_file<std::string>(text.error(), k_proc_version);
  }
  if (from_sys && formats::is_driver_version(*from_sys)) {
    kernel.version = from_sys;
  } else if (module) {
    kernel.version = known(module->version, SourceKind::file, k_proc_version);
  } else if (from_sys) {
    kernel.version = missing<std::string>(WhyNot::malformed, SourceKind::file, k_sys,
                                          "no driver version: " + *from_sys);
  } else {
    kernel.version = missing<std::string>(kernel.flavour.why, SourceKind::file, k_proc_version,
                                          kernel.flavour.note);
  }
}

void read_kernel_driver(const Host& host, facts::Facts& facts) {
  facts::KernelDriver& kernel = facts.kernel;
  read_module_version(host, kernel);
  kernel.nouveau_loaded = is_loaded(host, "nouveau");
  kernel.uvm_loaded = is_loaded(host, "nvidia_uvm");
  kernel.uvm_hmm_disabled = hmm_disabled(host);
  read_installed_driver(host, facts, kernel);
  kernel.nvswitch = has_nvswitch(host, facts);
  kernel.fabric_manager = fabric_manager(host, facts, kernel.nvswitch);
  kernel.persistence = persistence(host);
  read_device_nodes(host, facts, kernel);
  read_log(host, kernel);
}

}  // namespace cufit::host
