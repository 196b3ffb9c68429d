// SPDX-License-Identifier: Apache-2.0
// The lines of lscpu (util-linux) from the files that it reads. Left out are lines that change from
// moment to moment (CPU(s) scaling MHz), that only root may read (BIOS lines, from DMI), and on
// AArch64 what lscpu knows from tables of its own (vendor and model by part number) or from the
// personality call (op-modes).
#include "host/machine/collect_env_parts.h"

#include <algorithm>
#include <set>

#include "formats/system/cpu_list.h"
#include "host/files/file_facts.h"

namespace cufit::host {
namespace {

using CpuList = std::vector<uint32_t>;

const std::string k_cpus = "/sys/devices/system/cpu";

CpuList cpu_list(const Host& host, const std::string& path) {
  return formats::parse_cpu_list(page_text(host, path)).value_or(CpuList());
}

// The fields of the first CPU in /proc/cpuinfo. "flags" has more than the 512 characters of usual
// texts.
std::vector<std::pair<std::string, std::string>> first_cpu(const Host& host) {
  std::vector<std::pair<std::string, std::string>> out;
  Result<std::string> text = host.read_head("/proc/cpuinfo", 16384);
  if (!text) return out;
  for (std::string_view line : split_lines(*text)) {
    size_t colon = line.find(':');
    if (trim(line).empty()) break;
    if (colon == std::string_view::npos) continue;
    out.emplace_back(trim(line.substr(0, colon)),
                     formats::printable(trim(line.substr(colon + 1)), 8192));
  }
  return out;
}

class Lines {
 public:
  Lines(const Host& host, const facts::SystemFacts& system)
      : host_(host), fields_(first_cpu(host)), architecture_(system.architecture.value_or("")) {
    flags_ = field("flags");
    if (flags_.empty()) flags_ = field("Features");  // AArch64
  }

  std::vector<facts::CpuLine> all() {
    CpuList online = cpu_list(host_, k_cpus + "/online");
    general(online);
    model(online);
    frequencies();
    add("BogoMIPS", field(architecture_ == "aarch64" ? "BogoMIPS" : "bogomips"));
    add("Flags", flags_);
    virtualization();
    read_lscpu_caches(host_, online, out_);
    numa();
    vulnerabilities();
    return std::move(out_);
  }

 private:
  void add(std::string label, std::string value) {
    if (!value.empty()) out_.push_back({std::move(label), std::move(value)});
  }
  std::string field(std::string_view name) const {
    for (const auto& [key, value] : fields_)
      if (key == name) return value;
    return {};
  }
  bool has_flag(const std::string& flag) const {
    return contains(" " + flags_ + " ", " " + flag + " ");
  }

  void general(const CpuList& online) {
    add("Architecture", architecture_);
    if (architecture_ == "x86_64")
      add("CPU op-mode(s)", has_flag("lm") ? "32-bit, 64-bit" : "32-bit");
    add("Address sizes", field("address sizes"));
    // Both architectures of cufit's files are the little-endian ones: system.cc knows them from
    // such ELF headers.
    if (!architecture_.empty()) add("Byte Order", "Little Endian");
    CpuList present = cpu_list(host_, k_cpus + "/present"), offline;
    std::set_difference(present.begin(), present.end(), online.begin(), online.end(),
                        std::back_inserter(offline));
    if (!present.empty()) add("CPU(s)", std::to_string(present.size()));
    add("On-line CPU(s) list", formats::cpu_list_text(online));
    add("Off-line CPU(s) list", formats::cpu_list_text(offline));
  }

  void model(const CpuList& online) {
    if (architecture_ == "x86_64") {
      add("Vendor ID", field("vendor_id"));
      add("Model name", field("model name"));
      add("CPU family", field("cpu family"));
      add("Model", field("model"));
    }
    topology(online);
    if (architecture_ == "x86_64") add("Stepping", field("stepping"));
  }

  // lscpu counts the different sets of CPUs that share a core, and those that share a socket.
  void topology(const CpuList& online) {
    std::set<std::string> cores, sockets;
    size_t threads = 0;
    for (uint32_t cpu : online) {
      const std::string folder = format("{}/cpu{}/topology/", k_cpus, cpu);
      std::string core = page_text(host_, folder + "thread_siblings_list");
      std::string socket = page_text(host_, folder + "core_siblings_list");
      threads = std::max(threads, formats::parse_cpu_list(core).value_or(CpuList()).size());
      if (!core.empty()) cores.insert(std::move(core));
      if (!socket.empty()) sockets.insert(std::move(socket));
    }
    if (threads > 0) add("Thread(s) per core", std::to_string(threads));
    // With a cluster level in its firmware tables lscpu tells an AArch64 machine's sockets in other
    // lines.
    if (architecture_ != "x86_64" || cores.empty() || sockets.empty()) return;
    add("Core(s) per socket", std::to_string(cores.size() / sockets.size()));
    add("Socket(s)", std::to_string(sockets.size()));
  }

  // Highest and lowest of all CPUs: cores of two kinds have different ones. One folder stands for
  // CPUs that share them.
  void frequencies() {
    Fact<std::string> boost = line_fact(host_, k_cpus + "/cpufreq/boost");
    if (boost && (*boost == "0" || *boost == "1"))
      add("Frequency boost", *boost == "1" ? "enabled" : "disabled");
    uint64_t most = 0, least = UINT64_MAX;
    for (const std::string& name :
         host_.list(k_cpus + "/cpufreq").value_or(std::vector<std::string>())) {
      if (!starts_with(name, "policy")) continue;
      const std::string folder = k_cpus + "/cpufreq/" + name;
      most = std::max(most, number_fact(host_, folder + "/cpuinfo_max_freq").value_or(0));
      least =
          std::min(least, number_fact(host_, folder + "/cpuinfo_min_freq").value_or(UINT64_MAX));
    }
    if (most > 0) add("CPU max MHz", megahertz(most));
    if (least < UINT64_MAX) add("CPU min MHz", megahertz(least));
  }

  // The files hold kHz. lscpu computes in single precision and prints four decimals: 5083398 kHz is
  // "5083.3979".
  static std::string megahertz(uint64_t kilohertz) {
    return format("{:.4f}", static_cast<double>(static_cast<float>(kilohertz) / 1000));
  }

  void virtualization() {
    if (has_flag("svm")) {
      add("Virtualization", "AMD-V");
    } else if (has_flag("vmx")) {
      add("Virtualization", "VT-x");
    }
    struct Vendor {
      const char *signature, *name;
    };
    // Not Xen: whether its guests are "full" or "para" is in another place.
    static constexpr Vendor k_vendors[] = {
        {"KVMKVMKVM", "KVM"}, {"Microsoft Hv", "Microsoft"}, {"VMwareVMware", "VMware"}};
    const std::string signature = host_.hypervisor_signature();
    for (const Vendor& vendor : k_vendors) {
      if (signature != vendor.signature) continue;
      add("Hypervisor vendor", vendor.name);
      add("Virtualization type", "full");
    }
  }

  void numa() {
    const std::string folder = "/sys/devices/system/node";
    CpuList nodes;
    for (const std::string& name : host_.list(folder).value_or(std::vector<std::string>())) {
      std::optional<uint64_t> number =
          starts_with(name, "node") ? parse_uint(name.substr(4)) : std::nullopt;
      if (number && *number <= 65535) nodes.push_back(static_cast<uint32_t>(*number));
    }
    std::sort(nodes.begin(), nodes.end());
    if (!nodes.empty()) add("NUMA node(s)", std::to_string(nodes.size()));
    for (uint32_t node : nodes) {
      // A node without CPUs (the GPU's memory on Grace Hopper) has an empty list and a line all the
      // same.
      CpuList cpus = cpu_list(host_, format("{}/node{}/cpulist", folder, node));
      out_.push_back({format("NUMA node{} CPU(s)", node), formats::cpu_list_text(cpus)});
    }
  }

  // "spec_store_bypass" with "Mitigation: Speculative Store Bypass disabled" -> "Spec store bypass"
  // with "Mitigation; Speculative ...": behind that word lscpu takes every colon away.
  void vulnerabilities() {
    const std::string folder = k_cpus + "/vulnerabilities";
    for (const std::string& name : host_.list(folder).value_or(std::vector<std::string>())) {
      std::string label = name, value = page_text(host_, folder + "/" + name);
      if (value.empty()) continue;
      std::replace(label.begin(), label.end(), '_', ' ');
      if (label[0] >= 'a' && label[0] <= 'z') label[0] = static_cast<char>(label[0] - 'a' + 'A');
      if (starts_with(value, "Mitigation:")) {
        value.erase(std::remove(value.begin(), value.end(), ':'), value.end());
        value.insert(10, ";");
      }
      add("Vulnerability " + formats::printable(label), value);
    }
  }

  const Host& host_;
  std::vector<std::pair<std::string, std::string>> fields_;
  std::string architecture_, flags_;
  std::vector<facts::CpuLine> out_;
};

}  // namespace

std::vector<facts::CpuLine> read_lscpu(const Host& host, const facts::SystemFacts& system) {
  return Lines(host, system).all();
}

}  // namespace cufit::host
