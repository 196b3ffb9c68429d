// SPDX-License-Identifier: Apache-2.0
#include "host/probe.h"

#include "host/files/file_facts.h"

namespace cufit::host {
namespace {

const std::string k_devices = "/sys/bus/pci/devices";
constexpr std::string_view k_nvidia = "0x10de", k_amd = "0x1002";

// Resource flags of the kernel, include/linux/ioport.h; the third column of sysfs's `resource`.
constexpr uint64_t k_memory = 0x200, k_memory_64 = 0x100000, k_unset = 0x20000000;

std::string without_0x(std::string_view text) {
  if (starts_with(text, "0x")) text.remove_prefix(2);
  return lower(text);
}

// The kernel writes "Unknown" and a width of 63 or 255 when the device does not answer
// configuration reads.
Fact<std::string> link_speed(const Host& host, const std::string& path) {
  Fact<std::string> speed = line_fact(host, path);
  if (speed && contains(lower(*speed), "unknown")) {
    return missing<std::string>(WhyNot::not_supported, SourceKind::file, path,
                                "the device gives no link speed");
  }
  return speed;
}

Fact<uint32_t> link_width(const Host& host, const std::string& path) {
  Fact<uint64_t> width = number_fact(host, path);
  if (!width) return missing<uint32_t>(width.why, SourceKind::file, path, width.note);
  if (*width == 0 || *width > 32) {
    return missing<uint32_t>(WhyNot::not_supported, SourceKind::file, path,
                             "the device gives no link width");
  }
  return known(static_cast<uint32_t>(*width), SourceKind::file, path);
}

struct Resource {
  uint64_t start = 0, end = 0, flags = 0;
};

// "0x00000000e0000000 0x00000000efffffff 0x000000000014220c" per BAR.
std::optional<Resource> parse_resource(std::string_view line) {
  uint64_t values[3];
  std::vector<std::string_view> words = split(trim(line), ' ');
  if (words.size() != 3) return std::nullopt;
  for (size_t i = 0; i < 3; ++i) {
    if (!starts_with(words[i], "0x")) return std::nullopt;
    std::optional<uint64_t> value = parse_uint(words[i].substr(2), 16);
    if (!value) return std::nullopt;
    values[i] = *value;
  }
  return Resource{values[0], values[1], values[2]};
}

// A GPU's first window holds its registers and the second its memory ("BAR1"). The second one is
// the next slot, or the one after it where the first window is 64 bits wide and takes two slots
// (Hopper and newer). The slot is chosen by position and not by size: when the large window found
// no room, the kernel clears its slot, and the largest one left would be another window.
Fact<uint64_t> memory_window(const Host& host, const std::string& path) {
  Result<std::string> text = host.read_head(path, 4096);
  if (!text) return missing_file<uint64_t>(text.error(), path);
  std::vector<std::string_view> lines = split_lines(*text);
  std::optional<Resource> first = lines.empty() ? std::nullopt : parse_resource(lines[0]);
  if (!first)
    return missing<uint64_t>(WhyNot::malformed, SourceKind::file, path, "line 1 is no resource");
  size_t slot = (first->flags & k_memory_64) ? 2 : 1;
  std::optional<Resource> window = slot < lines.size() ? parse_resource(lines[slot]) : std::nullopt;
  if (!window) {
    return missing<uint64_t>(WhyNot::malformed, SourceKind::file, path,
                             format("line {} is no resource", slot + 1));
  }
  bool is_assigned = (window->flags & k_memory) && !(window->flags & k_unset) &&
                     window->start != 0 && window->end >= window->start &&
                     window->end != UINT64_MAX;
  return known(is_assigned ? window->end - window->start + 1 : uint64_t{0}, SourceKind::file, path);
}

facts::PciGpu read_function(const Host& host, const std::string& address,
                            const std::string& class_code) {
  const std::string folder = k_devices + "/" + address;
  facts::PciGpu gpu;
  gpu.address = address;
  gpu.class_code = class_code;
  gpu.device_id = without_0x(line_fact(host, folder + "/device").value_or(""));
  Fact<std::string> subsystem_vendor = line_fact(host, folder + "/subsystem_vendor");
  Fact<std::string> subsystem_device = line_fact(host, folder + "/subsystem_device");
  if (subsystem_vendor && subsystem_device) {
    gpu.subsystem_id = without_0x(*subsystem_vendor) + ":" + without_0x(*subsystem_device);
  }
  Result<std::string> driver = host.read_link(folder + "/driver");
  if (driver) {
    gpu.driver =
        known(driver->substr(driver->find_last_of('/') + 1), SourceKind::file, folder + "/driver");
  } else {
    gpu.driver = missing_file<std::string>(driver.error(), folder + "/driver");
  }
  gpu.link_speed = link_speed(host, folder + "/current_link_speed");
  gpu.link_speed_max = link_speed(host, folder + "/max_link_speed");
  gpu.link_width = link_width(host, folder + "/current_link_width");
  gpu.link_width_max = link_width(host, folder + "/max_link_width");
  gpu.bar1_bytes = starts_with(class_code, "03")
                       ? memory_window(host, folder + "/resource")
                       : missing<uint64_t>(WhyNot::not_supported, SourceKind::file,
                                           folder + "/resource", "no GPU");
  return gpu;
}

// Bridges of class 0680 are NVSwitches; the network functions of nForce mainboards have this class
// as well and device numbers far below those of any NVSwitch (1ac2, 1af1, 22a3, ...).
bool is_wanted(const std::string& class_code, const std::string& device_id) {
  if (starts_with(class_code, "03")) return true;
  std::optional<uint64_t> number = parse_uint(device_id, 16);
  return class_code == "0680" && number && *number >= 0x1000;
}

// Accelerators (MI300X) have the class of processing accelerators.
bool is_amd_gpu(const std::string& class_code) {
  return starts_with(class_code, "03") || class_code == "1200";
}

}  // namespace

void read_pci(const Host& host, facts::Facts& facts) {
  Result<std::vector<std::string>> addresses = host.list(k_devices);
  if (!addresses) {
    facts.pci = missing_file<std::vector<facts::PciGpu>>(addresses.error(), k_devices);
    return;
  }
  std::vector<facts::PciGpu> found;
  facts.system.other_gpu = missing<std::string>(WhyNot::not_present, SourceKind::file, k_devices);
  for (const std::string& address : *addresses) {
    const std::string folder = k_devices + "/" + address;
    const std::string vendor = line_fact(host, folder + "/vendor").value_or("");
    if (vendor != k_nvidia && vendor != k_amd) continue;
    std::string class_code =
        without_0x(line_fact(host, folder + "/class").value_or("")).substr(0, 4);
    if (vendor == k_amd) {
      if (is_amd_gpu(class_code))
        facts.system.other_gpu = known<std::string>("AMD", SourceKind::file, folder + "/vendor");
      continue;
    }
    std::string device_id = without_0x(line_fact(host, folder + "/device").value_or(""));
    if (is_wanted(class_code, device_id)) found.push_back(read_function(host, address, class_code));
  }
  facts.pci = known(std::move(found), SourceKind::file, k_devices);
}

}  // namespace cufit::host
