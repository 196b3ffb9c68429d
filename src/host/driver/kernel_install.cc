// SPDX-License-Identifier: Apache-2.0
#include "host/driver/kernel_parts.h"

#include <algorithm>

#include "base/version.h"
#include "formats/system/nvidia_version.h"
#include "host/files/file_facts.h"

namespace cufit::host {
namespace {

// nvidia.ko, nvidia.ko.xz, .zst, .gz; Debian calls it nvidia-current.ko, nvidia-tesla-535.ko,
// nvidia-legacy-390xx.ko. Not its companions (nvidia-uvm, nvidia-drm, ...) and not the kernel's own
// nvidia-wmi-ec-backlight and nvidiafb.
bool is_nvidia_module(std::string_view name) {
  size_t end = name.find(".ko");
  if (end == std::string_view::npos || (end + 3 != name.size() && name[end + 3] != '.'))
    return false;
  std::string_view stem = name.substr(0, end);
  if (stem == "nvidia") return true;
  for (const char* companion : {"-uvm", "-drm", "-modeset", "-peermem"}) {
    if (ends_with(stem, companion)) return false;
  }
  return starts_with(stem, "nvidia-current") || starts_with(stem, "nvidia-tesla") ||
         starts_with(stem, "nvidia-legacy");
}

// Folders where packages put the module, for systems without modules.dep.
constexpr const char* k_module_dirs[] = {"/updates/dkms",
                                         "/updates",
                                         "/extra",
                                         "/extra/nvidia",
                                         "/weak-updates",
                                         "/weak-updates/nvidia",
                                         "/misc",
                                         "/kernel/drivers/video",
                                         "/kernel/drivers/video/nvidia",
                                         "/kernel/drivers/gpu",
                                         "/extramodules"};

// modules.dep is what modprobe knows: "updates/dkms/nvidia.ko.zst: kernel/drivers/...". One line
// per module.
std::string module_in_list(const Host& host, const std::string& folder, const std::string& list) {
  for (size_t at = list.find("nvidia"); at != std::string::npos; at = list.find("nvidia", at + 6)) {
    size_t line_start = list.rfind('\n', at);
    line_start = line_start == std::string::npos ? 0 : line_start + 1;
    std::string_view line = std::string_view(list).substr(line_start);
    line = line.substr(0, line.find_first_of(":\n"));
    if (line_start + line.size() <= at) continue;  // among the dependencies of another module
    size_t slash = line.find_last_of('/');
    if (!is_nvidia_module(slash == std::string_view::npos ? line : line.substr(slash + 1)))
      continue;
    std::string path =
        starts_with(line, "/") ? std::string(line) : folder + "/" + std::string(line);
    if (host.exists(path)) return path;
  }
  return {};
}

Fact<std::string> module_on_disk(const Host& host, const facts::SystemFacts& system) {
  if (!system.kernel) {
    return missing<std::string>(system.kernel.why, SourceKind::file, "/lib/modules",
                                "the kernel's release is unknown");
  }
  std::string folder;
  for (const char* parent :
       {"/lib/modules/", "/usr/lib/modules/", "/run/booted-system/kernel-modules/lib/modules/"}) {
    if (folder.empty() && host.exists(parent + *system.kernel)) folder = parent + *system.kernel;
  }
  if (folder.empty()) {
    // Containers and kernels without modules: nothing can be said about what the host has.
    return missing<std::string>(WhyNot::not_supported, SourceKind::file,
                                "/lib/modules/" + *system.kernel,
                                "no module folder of the running kernel here");
  }
  Result<std::string> list = host.read_file(folder + "/modules.dep", 32u << 20);
  std::string path = list ? module_in_list(host, folder, *list) : std::string();
  if (!path.empty()) return known(path, SourceKind::file, folder + "/modules.dep");
  for (const char* dir : k_module_dirs) {
    Result<std::vector<std::string>> names = host.list(folder + dir);
    if (!names) continue;
    for (const std::string& name : *names) {
      std::string each = folder + dir + "/" + name;
      if (is_nvidia_module(name)) return known(each, SourceKind::file, each);
    }
  }
  if (!list && list.error().code != Code::not_found)
    return missing_file<std::string>(list.error(), folder);
  return missing<std::string>(WhyNot::not_present, SourceKind::file, folder);
}

// Upstream's number of a package version: "535.183.01-0ubuntu1", "1:580.65.06-1" -> "535.183.01",
// "580.65.06".
std::string upstream_version(std::string_view text) {
  size_t colon = text.find(':');
  if (colon != std::string_view::npos) text.remove_prefix(colon + 1);
  text = text.substr(0, text.find_first_not_of("0123456789."));
  return formats::is_driver_version(text) ? std::string(text) : std::string();
}

void keep_newest(std::string& best, const std::string& version) {
  if (version.empty()) return;
  std::optional<Version> a = parse_version(best), b = parse_version(version);
  if (!a || (b && *a < *b)) best = version;
}

// Packages whose version is the kernel driver's. Not libnvidia-compute and libcuda1: images have
// them without a driver.
bool is_driver_package(std::string_view name) {
  for (const char* prefix : {"nvidia-driver", "nvidia-kernel", "nvidia-dkms", "nvidia-headless",
                             "nvidia-open", "nvidia-tesla", "nvidia-legacy", "cuda-drivers"}) {
    if (starts_with(name, prefix)) {
      return name != "nvidia-kernel-common" && !ends_with(name, "-libs") &&
             !contains(name, "assistant");
    }
  }
  return false;
}

std::string field_of(std::string_view paragraph, std::string_view name) {
  size_t at = paragraph.find(name);
  if (at == std::string_view::npos) return {};
  std::string_view value = paragraph.substr(at + name.size());
  return std::string(trim(value.substr(0, value.find('\n'))));
}

std::string version_in_dpkg(const std::string& status) {
  std::string best;
  for (const char* start : {"Package: nvidia-", "Package: cuda-drivers"}) {
    for (size_t at = status.find(start); at != std::string::npos; at = status.find(start, at + 9)) {
      std::string_view paragraph = std::string_view(status).substr(at);
      paragraph = paragraph.substr(0, paragraph.find("\n\n"));
      if (!is_driver_package(field_of(paragraph, "Package: "))) continue;
      if (!contains(paragraph, "\nStatus: install ok installed") &&
          !contains(paragraph, "\nStatus: hold ok installed")) {
        continue;
      }
      keep_newest(best, upstream_version(field_of(paragraph, "\nVersion: ")));
    }
  }
  return best;
}

// Newest version among names of a folder: `before` starts the name, the version follows the last
// '-' that a digit follows, or is the whole name with an empty `before`.
std::string version_in_names(const Host& host, const std::string& folder, std::string_view before) {
  Result<std::vector<std::string>> names = host.list(folder);
  std::string best;
  if (!names) return best;
  for (const std::string& name : *names) {
    if (!starts_with(name, before)) continue;
    if (before.empty()) {
      if (formats::is_driver_version(name)) keep_newest(best, name);
      continue;
    }
    for (size_t dash = name.find('-'); dash != std::string::npos; dash = name.find('-', dash + 1)) {
      keep_newest(best, upstream_version(std::string_view(name).substr(dash + 1)));
    }
  }
  return best;
}

std::string version_in_dkms(const Host& host) {
  Result<std::vector<std::string>> names = host.list("/var/lib/dkms");
  std::string best;
  if (!names) return best;
  for (const std::string& name : *names) {
    if (!starts_with(name, "nvidia")) continue;
    keep_newest(best, version_in_names(host, "/var/lib/dkms/" + name, ""));
  }
  return best;
}

Fact<std::string> package_version(const Host& host) {
  const std::string k_dpkg = "/var/lib/dpkg/status";
  Result<std::string> status = host.read_file(k_dpkg, 64u << 20);
  if (status) {
    std::string version = version_in_dpkg(*status);
    if (!version.empty()) return known(version, SourceKind::file, k_dpkg);
  }
  std::string version = version_in_dkms(host);
  if (!version.empty()) return known(version, SourceKind::file, "/var/lib/dkms");
  struct Place {
    const char *folder, *before;
  };
  // dkms sources and NVIDIA's installer; Arch; Fedora's akmods; the GSP firmware, which every
  // driver since 510 brings.
  static constexpr Place k_places[] = {{"/usr/src", "nvidia-"},
                                       {"/var/lib/pacman/local", "nvidia-"},
                                       {"/usr/src/akmods", "nvidia-"},
                                       {"/lib/firmware/nvidia", ""}};
  for (const Place& place : k_places) {
    version = version_in_names(host, place.folder, place.before);
    if (!version.empty()) return known(version, SourceKind::file, place.folder);
  }
  return missing<std::string>(WhyNot::not_present, SourceKind::file,
                              status ? k_dpkg : "/usr/src/nvidia-*");
}

}  // namespace

void read_installed_driver(const Host& host, const facts::Facts& facts,
                           facts::KernelDriver& kernel) {
  kernel.module_on_disk = module_on_disk(host, facts.system);
  kernel.package_version = package_version(host);
}

}  // namespace cufit::host
