// SPDX-License-Identifier: Apache-2.0
#include "host/driver/kernel_parts.h"

#include <algorithm>

#include "host/files/file_facts.h"

namespace cufit::host {
namespace {

constexpr size_t k_max_nodes =
    256;  // 16 GPUs, 12 switches and their control nodes; MIG adds some hundred capabilities

// "crw-rw-rw-"
std::string mode_text(const FileStatus& status) {
  std::string out = status.is_character_device ? "c" : status.is_directory ? "d" : "-";
  for (int shift = 8; shift >= 0; --shift)
    out += (status.mode >> shift & 1) ? "xwr"[shift % 3] : '-';
  return out;
}

// "video:x:44:me" -> "video"; the number where no line has it.
std::string group_name(const Host& host, uint32_t number) {
  const std::string wanted = std::to_string(number);
  const std::string text = host.read_file("/etc/group", 1u << 20).value_or("");
  for (std::string_view line : split_lines(text)) {
    const std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() >= 3 && fields[2] == wanted) return std::string(fields[0]);
  }
  return wanted;
}

facts::DeviceNode read_node(const Host& host, const std::string& path) {
  facts::DeviceNode node;
  node.path = path;
  Result<FileStatus> status = host.status(path);
  if (!status) {
    node.mode = missing_file<std::string>(status.error(), path);
    return node;
  }
  node.mode = known(mode_text(*status), SourceKind::file, path);
  node.usable = host.may_read_write(path);
  if (!node.usable) node.group = group_name(host, status->group);
  return node;
}

// nvidia0 ... nvidia15 by number, then the others by name.
bool comes_before(const std::string& a, const std::string& b) {
  std::optional<uint64_t> first =
      parse_uint(std::string_view(a).substr(std::min<size_t>(a.size(), 11)));
  std::optional<uint64_t> second =
      parse_uint(std::string_view(b).substr(std::min<size_t>(b.size(), 11)));
  if (first.has_value() != second.has_value()) return first.has_value();
  if (first && second) return *first < *second;
  return a < b;
}

// "Device Minor: 	 0" of each GPU that the module drives: the nodes that must be there.
std::vector<std::string> expected_nodes(const Host& host) {
  std::vector<std::string> out;
  const std::string k_gpus = "/proc/driver/nvidia/gpus";
  Result<std::vector<std::string>> addresses = host.list(k_gpus);
  if (!addresses) return out;
  for (const std::string& address : *addresses) {
    Result<std::string> text = host.read_head(k_gpus + "/" + address + "/information", 4096);
    if (!text) continue;
    for (std::string_view line : split_lines(*text)) {
      if (!starts_with(line, "Device Minor:")) continue;
      std::optional<uint64_t> minor = parse_uint(trim(line.substr(13)));
      if (minor && *minor < 256) out.push_back(format("/dev/nvidia{}", *minor));
    }
  }
  return out;
}

void add_listed(const Host& host, const std::string& folder, std::vector<std::string>& paths) {
  Result<std::vector<std::string>> names = host.list(folder);
  if (!names) return;
  for (const std::string& name : *names) {
    std::string path = folder + "/" + name;
    if (folder == "/dev" && name != "dxg" && !starts_with(name, "nvidia")) continue;
    Result<FileStatus> status = host.status(path);
    if (status && status->is_directory) {
      if (folder == "/dev")
        add_listed(host, path, paths);  // nvidia-caps, nvidia-caps-imex-channels
      continue;
    }
    paths.push_back(path);
  }
}

}  // namespace

void read_device_nodes(const Host& host, const facts::Facts& facts, facts::KernelDriver& kernel) {
  std::vector<std::string> paths = expected_nodes(host);
  // A machine with a GPU or a loaded module should have these two; where they lack, that is the
  // fact.
  bool has_gpu = kernel.version.value.has_value() || (facts.pci && !facts.pci->empty());
  if (has_gpu) {
    paths.push_back("/dev/nvidiactl");
    paths.push_back("/dev/nvidia-uvm");
  }
  if (facts.system.wsl.value_or("") == "2") paths.push_back("/dev/dxg");
  add_listed(host, "/dev", paths);
  std::sort(paths.begin(), paths.end(), comes_before);
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  if (paths.size() > k_max_nodes) paths.resize(k_max_nodes);
  for (const std::string& path : paths) kernel.nodes.push_back(read_node(host, path));
}

}  // namespace cufit::host
