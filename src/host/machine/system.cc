// SPDX-License-Identifier: Apache-2.0
#include "host/probe.h"

#include "base/format.h"
#include "formats/system/os_release.h"
#include "host/files/file_facts.h"
#include "host/machine/system_parts.h"

namespace cufit::host {
namespace {

void read_distribution(const Host& host, facts::SystemFacts& system) {
  const char* const k_paths[] = {"/etc/os-release",
                                 "/usr/lib/os-release"};  // os-release(5): in this order
  Error last;
  for (const char* path : k_paths) {
    Result<std::string> text = host.read_file(path, 1u << 16);
    if (!text) {
      if (last.what.empty() || text.error().code != Code::not_found) last = text.error();
      continue;
    }
    formats::OsRelease release = formats::parse_os_release(*text);
    if (release.id.empty() && release.pretty_name.empty()) {
      last = fail(Code::malformed, format("`{}`: neither ID nor PRETTY_NAME", path));
      continue;
    }
    if (release.id.empty()) release.id = "linux";  // the default that os-release(5) names
    std::string id =
        release.version_id.empty() ? release.id : release.id + " " + release.version_id;
    system.distribution =
        known(release.pretty_name.empty() ? id : release.pretty_name, SourceKind::file, path);
    system.distribution_id = known(id, SourceKind::file, path);
    return;
  }
  system.distribution = missing_file<std::string>(last, k_paths[0]);
  system.distribution_id = missing_file<std::string>(last, k_paths[0]);
}

// e_machine of the ELF header: what this process runs as, which is what a library must match.
void read_architecture(const Host& host, facts::SystemFacts& system) {
  const char* const k_self = "/proc/self/exe";
  Result<std::string> header = host.read_head(k_self, 20);
  if (header && header->size() == 20 &&
      starts_with(*header,
                  "\x7f"
                  "ELF")) {
    uint16_t machine = load_le<uint16_t>(header->data() + 18);
    const char* name = machine == 62 ? "x86_64" : machine == 183 ? "aarch64" : nullptr;
    if (name) {
      system.architecture = known<std::string>(name, SourceKind::file, k_self);
      return;
    }
  }
  system.architecture = line_fact(host, "/proc/sys/kernel/arch");  // Linux 6.1 and newer
}

uint64_t kib_value(std::string_view line) {
  std::vector<std::string_view> words = split(trim(line), ' ');
  std::optional<uint64_t> number = words.empty() ? std::nullopt : parse_uint(words[0]);
  return number && *number < (UINT64_MAX >> 10) ? *number << 10 : 0;
}

void read_memory(const Host& host, facts::SystemFacts& system) {
  const char* const k_path = "/proc/meminfo";
  Result<std::string> text = host.read_head(k_path, 1024);  // both lines are among the first three
  if (!text) {
    system.ram_bytes = missing_file<uint64_t>(text.error(), k_path);
    system.ram_available_bytes = missing_file<uint64_t>(text.error(), k_path);
    return;
  }
  system.ram_bytes =
      missing<uint64_t>(WhyNot::malformed, SourceKind::file, k_path, "no MemTotal line");
  system.ram_available_bytes =
      missing<uint64_t>(WhyNot::not_present, SourceKind::file, k_path, "no MemAvailable line");
  for (std::string_view line : split_lines(*text)) {
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view name = line.substr(0, colon);
    uint64_t bytes = kib_value(line.substr(colon + 1));
    if (name == "MemTotal" && bytes > 0) system.ram_bytes = known(bytes, SourceKind::file, k_path);
    if (name == "MemAvailable") system.ram_available_bytes = known(bytes, SourceKind::file, k_path);
  }
}

void read_cpu_model(const Host& host, facts::SystemFacts& system) {
  const char* const k_path = "/proc/cpuinfo";
  Result<std::string> text =
      host.read_head(k_path, 2048);  // the first CPU; all of them take milliseconds
  if (!text) {
    system.cpu_model = missing_file<std::string>(text.error(), k_path);
    return;
  }
  for (std::string_view line : split_lines(*text)) {
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view name = trim(line.substr(0, colon));
    std::string_view value = trim(line.substr(colon + 1));
    if ((name == "model name" || name == "Model") && !value.empty()) {
      system.cpu_model = known(formats::printable(value), SourceKind::file, k_path);
      return;
    }
  }
  // AArch64 kernels print part numbers only.
  system.cpu_model =
      missing<std::string>(WhyNot::not_supported, SourceKind::file, k_path, "no model name line");
}

// WSL 1 is a translation layer ("4.4.0-19041-Microsoft"), WSL 2 a kernel
// ("5.15.153.1-microsoft-standard-WSL2"). A kernel that the user built may have another name, then
// the GPU device of WSL 2 or its interop mark tells.
void read_wsl(const Host& host, facts::SystemFacts& system) {
  const char* const k_path = "/proc/version";
  Result<std::string> text = host.read_head(k_path, 1024);
  std::string version = text ? *text : std::string();
  bool is_named = contains(lower(version), "microsoft");
  if (is_named) {
    bool is_first = contains(version, "-Microsoft") && !contains(version, "WSL2");
    system.wsl = known<std::string>(is_first ? "1" : "2", SourceKind::file, k_path);
    return;
  }
  for (const char* mark :
       {"/dev/dxg", "/usr/lib/wsl/lib/libdxcore.so", "/proc/sys/fs/binfmt_misc/WSLInterop"}) {
    if (host.exists(mark)) {
      system.wsl = known<std::string>("2", SourceKind::file, mark);
      return;
    }
  }
  system.wsl = text ? missing<std::string>(WhyNot::not_present, SourceKind::file, k_path)
                    : missing_file<std::string>(text.error(), k_path);
}

// "# R36 (release), REVISION: 4.3, GCID: ..., BOARD: generic, ..." -> "L4T 36.4.3"; empty when it
// has another form.
std::string l4t_version(std::string_view text) {
  size_t release = text.find("# R"), revision = text.find("REVISION: ");
  if (release == std::string_view::npos || revision == std::string_view::npos) return {};
  std::string_view major = text.substr(release + 3), minor = text.substr(revision + 10);
  major = major.substr(0, major.find_first_not_of("0123456789"));
  minor = minor.substr(0, minor.find_first_not_of("0123456789."));
  if (major.empty() || minor.empty()) return {};
  return format("L4T {}.{}", major, minor);
}

void read_jetson(const Host& host, facts::SystemFacts& system) {
  const char* const k_release = "/etc/nv_tegra_release";
  const char* const k_model = "/proc/device-tree/model";
  Result<std::string> release = host.read_head(k_release, 1024);
  Fact<std::string> model = line_fact(host, k_model);
  bool is_board = model && (contains(*model, "Jetson") || contains(*model, "NVIDIA"));
  std::string l4t = release ? l4t_version(*release) : std::string();
  if (is_board) {
    system.jetson =
        known(l4t.empty() ? *model : format("{} ({})", *model, l4t), SourceKind::file, k_model);
  } else if (release) {
    system.jetson = known(l4t.empty() ? std::string("L4T") : l4t, SourceKind::file, k_release);
  } else {
    system.jetson = missing_file<std::string>(release.error(), k_release);
  }
}

// The variable of the EFI global GUID: four bytes of attributes, then 1 or 0 (UEFI 2.10, 3.3).
void read_secure_boot(const Host& host, facts::SystemFacts& system) {
  const std::string path =
      "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
  Result<std::string> value = host.read_head(path, 16);
  if (value && value->size() >= 5) {
    system.secure_boot = known((*value)[4] != 0, SourceKind::file, path);
    return;
  }
  if (value) {
    system.secure_boot =
        missing<bool>(WhyNot::malformed, SourceKind::file, path, "shorter than five bytes");
    return;
  }
  // Without /sys/firmware/efi the machine was not started by UEFI, so nothing was verified.
  // Containers see an empty /sys/firmware, which says nothing.
  Result<std::vector<std::string>> firmware = host.list("/sys/firmware");
  if (value.error().code == Code::not_found && firmware && !firmware->empty() &&
      !host.exists("/sys/firmware/efi")) {
    system.secure_boot = known(false, SourceKind::file, "/sys/firmware (no efi)");
    return;
  }
  system.secure_boot = missing_file<bool>(value.error(), path);
}

}  // namespace

void read_identity(const Host& host, facts::SystemFacts& system) {
  read_architecture(host, system);
  read_wsl(host, system);
  read_jetson(host, system);
  system.boot_id = line_fact(host, "/proc/sys/kernel/random/boot_id");
}

void read_system(const Host& host, facts::Facts& facts) {
  facts::SystemFacts& system = facts.system;
  read_distribution(host, system);
  system.kernel = line_fact(host, "/proc/sys/kernel/osrelease");
  read_identity(host, system);
  read_memory(host, system);
  read_cpu_model(host, system);
  read_secure_boot(host, system);
  Result<std::string> mountinfo = host.read_file("/proc/self/mountinfo", 4u << 20);
  std::vector<formats::Mount> mounts;
  if (mountinfo) mounts = formats::parse_mountinfo(*mountinfo);
  read_system_limits(host, mounts, system);
  read_container_kind(host, mounts, system);
  read_system_libraries(host, system);
}

}  // namespace cufit::host
