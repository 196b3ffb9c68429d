// SPDX-License-Identifier: Apache-2.0
// Look-ups about official PyTorch wheels (Linux x86-64).
#include <algorithm>

#include "knowledge/knowledge.h"

namespace cufit::knowledge {
namespace {

std::string_view without_local(std::string_view version) {
  return version.substr(0, version.find('+'));
}

// Machine code only: whether the wheel's PTX helps depends on the driver, and the wheel itself must
// be read for that.
bool serves(const ArchSet& set, ComputeCapability cc) {
  std::string_view list = set.sm;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    const std::optional<ComputeCapability> sm = parse_compute_capability(list.substr(0, end));
    if (sm && sm->major == cc.major && sm->minor <= cc.minor) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// "570" alone means some driver of that branch: read as its newest.
bool reaches(const Version& driver, const Version& floor) {
  return driver.parts.size() == 1 ? driver.part(0) >= floor.part(0) : driver >= floor;
}

}  // namespace

const CudaTag* Knowledge::find_cuda_tag(std::string_view tag) const {
  for (const CudaTag& row : cuda_tags) {
    if (row.tag == tag) return &row;
  }
  return nullptr;
}

const TorchRelease* Knowledge::find_torch(std::string_view version) const {
  for (const TorchRelease& row : torch_releases) {
    if (row.version == without_local(version)) return &row;
  }
  return nullptr;
}

std::vector<const WheelVariant*> Knowledge::wheels_of(std::string_view torch) const {
  std::vector<const WheelVariant*> out;
  for (const WheelVariant& row : wheel_variants) {
    if (row.torch == without_local(torch)) out.push_back(&row);
  }
  return out;
}

Version Knowledge::newest_torch() const {
  Version newest;
  for (const TorchRelease& row : torch_releases) {
    const std::optional<Version> version = parse_version(row.version);
    if (version && newest < *version) newest = *version;
  }
  return newest;
}

std::optional<Knowledge::Pick> Knowledge::newest_wheel_for(ComputeCapability cc,
                                                           std::optional<Version> driver) const {
  if (has_own_code(cc)) return std::nullopt;  // no wheel for servers has code for it
  const WheelVariant* best = nullptr;
  std::optional<Version> best_torch;
  bool best_default = false;
  for (const WheelVariant& wheel : wheel_variants) {
    const auto set = std::find_if(arch_sets.begin(), arch_sets.end(),
                                  [&](const ArchSet& row) { return row.id == wheel.arch_set; });
    const CudaTag* tag = find_cuda_tag(wheel.tag);
    const std::optional<Version> torch = parse_version(wheel.torch);
    if (set == arch_sets.end() || !tag || !torch || !serves(*set, cc)) continue;
    const std::optional<Version> floor = parse_version(tag->linux_min);
    if (driver && (!floor || !reaches(*driver, *floor))) continue;
    // Among variants of one release: the one of the default index, then the newest CUDA (rows are
    // in its order).
    const TorchRelease* release = find_torch(wheel.torch);
    const bool is_default = release && release->default_linux_x86_64 == wheel.tag;
    if (!best || *torch > *best_torch || (*torch == *best_torch && (is_default || !best_default))) {
      best = &wheel;
      best_torch = torch;
      best_default = is_default;
    }
  }
  if (!best) return std::nullopt;
  return Pick{std::string(best->torch), std::string(best->tag)};
}

}  // namespace cufit::knowledge
