// SPDX-License-Identifier: Apache-2.0
#include "host/machine/collect_env_parts.h"

#include <map>
#include <set>

#include "formats/system/cpu_list.h"
#include "host/files/file_facts.h"

namespace cufit::host {
namespace {

struct Total {
  uint64_t bytes = 0;
  uint32_t instances = 0;
};

// "32768K"; sysfs has no other unit today, lscpu takes M and G as well.
uint64_t size_of(std::string_view text) {
  int shift = ends_with(text, "K") ? 10 : ends_with(text, "M") ? 20 : ends_with(text, "G") ? 30 : 0;
  if (shift > 0) text.remove_suffix(1);
  std::optional<uint64_t> number = parse_uint(text);
  return number && *number < (UINT64_MAX >> 40) ? *number << shift : 0;
}

// util-linux's form: the largest unit that fits, one decimal rounded half up and only where it is
// not zero: "1.5 MiB".
std::string size_text(uint64_t bytes) {
  static const char* const k_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  while (unit < 6 && bytes >> (10 * (unit + 1)) > 0) ++unit;
  uint64_t whole = bytes >> (10 * unit);
  uint64_t rest = unit == 0 ? 0 : (bytes >> (10 * (unit - 1))) & 1023;
  uint64_t tenths = (rest * 1000 / 1024 + 50) / 100;
  if (tenths == 10) ++whole, tenths = 0;
  std::string number = std::to_string(whole);
  if (tenths > 0) number += "." + std::to_string(tenths);
  return number + " " + k_units[unit];
}

class Caches {
 public:
  explicit Caches(const Host& host) : host_(host) {}

  // One instance is described at each CPU that shares it; it counts where its list of CPUs is met
  // first.
  void add_cpu(uint32_t cpu) {
    for (uint32_t index = 0; index < 16; ++index) {
      if (covered_[index].count(cpu)) continue;
      const std::string folder = format("/sys/devices/system/cpu/cpu{}/cache/index{}/", cpu, index);
      Fact<std::string> level = line_fact(host_, folder + "level");
      if (!level) return;  // indexes have no holes
      Fact<std::string> type = line_fact(host_, folder + "type"),
                        size = line_fact(host_, folder + "size");
      if (!type || !size || !parse_uint(*level)) continue;
      std::vector<uint32_t> cpus =
          formats::parse_cpu_list(page_text(host_, folder + "shared_cpu_list"))
              .value_or(std::vector<uint32_t>());
      covered_[index].insert(cpus.begin(), cpus.end());
      Total& total = totals_[format("L{}{}", *level,
                                    *type == "Data"          ? "d"
                                    : *type == "Instruction" ? "i"
                                                             : "")];
      total.bytes += size_of(*size);
      ++total.instances;
    }
  }

  void print(std::vector<facts::CpuLine>& out) const {
    for (const auto& [name, total] : totals_) {
      if (total.bytes == 0) continue;
      out.push_back({name + " cache", format("{} ({} instance{})", size_text(total.bytes),
                                             total.instances, total.instances == 1 ? "" : "s")});
    }
  }

 private:
  const Host& host_;
  std::map<uint32_t, std::set<uint32_t>> covered_;  // index -> CPUs whose cache is counted
  std::map<std::string, Total> totals_;             // lscpu sorts by name, too
};

}  // namespace

std::string page_text(const Host& host, const std::string& path) {
  std::string text = host.read_head(path, 4096).value_or(std::string());
  return formats::printable(trim(text), 4096);
}

void read_lscpu_caches(const Host& host, const std::vector<uint32_t>& online,
                       std::vector<facts::CpuLine>& out) {
  Caches caches(host);
  for (uint32_t cpu : online) caches.add_cpu(cpu);
  caches.print(out);
}

}  // namespace cufit::host
