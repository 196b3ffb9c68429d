// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/wheel.h"

#include <algorithm>

#include "base/format.h"
#include "checks/wheel_pick.h"

namespace cufit::resolve {
namespace {

using knowledge::Knowledge;
using knowledge::TorchRelease;
using knowledge::WheelVariant;

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view word : split(text, ' '))
    if (!word.empty()) out.emplace_back(word);
  return out;
}

Wheel wheel_of(const Knowledge& knowledge, std::string_view platform, const TorchRelease& release,
               const WheelVariant& variant) {
  Wheel wheel;
  wheel.torch = std::string(release.version);
  wheel.tag = std::string(variant.tag);
  wheel.platform = std::string(platform);
  wheel.pythons = words(release.python);
  wheel.default_pythons = words(release.default_python);
  wheel.released = std::string(release.date);
  wheel.glibc = parse_version(variant.glibc);
  wheel.source = "data/wheels.toml";
  if (const knowledge::CudaTag* tag = knowledge.find_cuda_tag(variant.tag)) {
    wheel.cuda = parse_version(tag->cuda);
    wheel.driver_min = parse_version(tag->linux_min);
    if (wheel.cuda) wheel.driver_full = knowledge.ptx_driver(*wheel.cuda);
  }
  wheel.code = checks::wheel_code(knowledge, platform, variant);
  return wheel;
}

bool in_range(const Version& torch, const knowledge::Aarch64Row& row) {
  const auto first = parse_version(row.first_torch), last = parse_version(row.last_torch);
  const Version minor{{torch.part(0), torch.part(1)}};
  return first && last && minor >= *first && minor <= *last;
}

void add_x86(const Knowledge& knowledge, const TorchRelease& release, std::vector<Wheel>& wheels) {
  for (const WheelVariant* variant : knowledge.wheels_of(release.version)) {
    wheels.push_back(wheel_of(knowledge, "linux_x86_64", release, *variant));
    wheels.back().on_default_index = release.default_linux_x86_64 == variant->tag;
  }
}

void add_aarch64(const Knowledge& knowledge, const TorchRelease& release, const Version& torch,
                 std::vector<Wheel>& wheels) {
  for (const knowledge::Aarch64Row& row : knowledge.aarch64_wheels) {
    if (!in_range(torch, row)) continue;
    for (const std::string& tag : words(row.tags)) {
      WheelVariant variant{release.version, tag, "", "", "", 1, "2.28"};
      wheels.push_back(wheel_of(knowledge, "linux_aarch64", release, variant));
      wheels.back().on_default_index = row.default_tag == tag;
      wheels.back().source = "data/extensions.toml";
    }
  }
}

// CPU wheels came with every release; those of aarch64 are on the default index until CUDA ones
// took the place.
Wheel cpu_wheel(const TorchRelease& release, std::string_view platform, const Version& torch,
                bool cuda_is_default) {
  Wheel wheel;
  wheel.torch = std::string(release.version);
  wheel.tag = "cpu";
  wheel.platform = std::string(platform);
  wheel.pythons = words(release.python);
  wheel.released = std::string(release.date);
  // manylinux_2_28 from 2.6 on, as the CUDA wheels of the same builds.
  wheel.glibc = torch < Version{{2, 6}} ? Version{{2, 17}} : Version{{2, 28}};
  wheel.on_default_index = platform == "linux_aarch64" && !cuda_is_default;
  wheel.source = "data/wheels.toml";
  return wheel;
}

// Of one release.
bool before(const Wheel& a, const Wheel& b) {
  if (a.is_cpu() != b.is_cpu()) return b.is_cpu();
  if (a.on_default_index != b.on_default_index) return a.on_default_index;
  return a.cuda && b.cuda && *a.cuda > *b.cuda;
}

}  // namespace

std::vector<Wheel> known_wheels(const Knowledge& knowledge, std::string_view platform) {
  std::vector<Wheel> wheels;
  std::vector<std::pair<Version, const TorchRelease*>> releases;
  for (const TorchRelease& release : knowledge.torch_releases)
    if (auto torch = parse_version(release.version)) releases.emplace_back(*torch, &release);
  std::stable_sort(releases.begin(), releases.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const bool arm = platform == "linux_aarch64";
  if (!arm && platform != "linux_x86_64") return wheels;
  for (const auto& [version, row] : releases) {
    const Version* torch = &version;
    const TorchRelease& release = *row;
    const size_t from = wheels.size();
    if (arm)
      add_aarch64(knowledge, release, *torch, wheels);
    else
      add_x86(knowledge, release, wheels);
    if (wheels.size() == from && !arm) continue;  // only rows with known device code are offered
    const bool cuda_is_default =
        std::any_of(wheels.begin() + static_cast<std::ptrdiff_t>(from), wheels.end(),
                    [](const Wheel& wheel) { return wheel.on_default_index; });
    if (!arm || *torch >= Version{{1, 9}})
      wheels.push_back(cpu_wheel(release, platform, *torch, cuda_is_default));
    std::stable_sort(wheels.begin() + static_cast<std::ptrdiff_t>(from), wheels.end(), before);
  }
  return wheels;
}

std::vector<std::string> capabilities_of(const Wheel& wheel, formats::CodeKind kind) {
  std::vector<std::string> out;
  for (const formats::DeviceCode& code : wheel.code) {
    if (code.kind != kind || code.arch.size() < 2) continue;
    // The last digit is the minor; a suffix ("90a") stays.
    size_t digits = 0;
    while (digits < code.arch.size() && code.arch[digits] >= '0' && code.arch[digits] <= '9')
      ++digits;
    if (digits < 2) continue;
    out.push_back(code.arch.substr(0, digits - 1) + "." + code.arch.substr(digits - 1));
  }
  return out;
}

}  // namespace cufit::resolve
