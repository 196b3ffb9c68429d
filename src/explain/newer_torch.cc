// SPDX-License-Identifier: Apache-2.0
#include "explain/newer_torch.h"

#include <re2/re2.h>

#include <cstdlib>

#include "base/format.h"
#include "base/version.h"
#include "formats/python/requirement.h"

namespace cufit::explain {
namespace {

// The first release that has it: PyTorch release notes and torch/__init__.py, torch/amp/__init__.py,
// torch/utils/_pytree.py of the tags; read 2026-11-28. data/findings/torch_older_than_package.toml
// lists the same names.
constexpr std::pair<std::string_view, std::string_view> k_first[] = {
    {"float8_e4m3fn", "2.1"},
    {"float8_e5m2", "2.1"},
    {"float8_e4m3fnuz", "2.2"},
    {"float8_e5m2fnuz", "2.2"},
    {"float8_e8m0fnu", "2.7"},
    {"float4_e2m1fn_x2", "2.8"},
    {"uint16", "2.3"},
    {"uint32", "2.3"},
    {"uint64", "2.3"},
    {"compiler", "2.1"},
    {"get_default_device", "2.3"},
    {"accelerator", "2.6"},
    {"register_pytree_node", "2.2"},
    {"RMSNorm", "2.4"},
    {"GradScaler", "2.3"},
    {"custom_fwd", "2.4"},
    {"custom_bwd", "2.4"},
    {"custom_op", "2.4"},
    {"register_fake", "2.4"}};

std::string_view first_alternative(std::string_view name) {
  for (const auto& [known, first] : k_first) {
    if (known == name) return first;
  }
  return {};
}

const knowledge::TorchRelease* last_patch(std::string_view minor,
                                          const knowledge::Knowledge& knowledge) {
  const knowledge::TorchRelease* found = nullptr;
  for (int patch = 0; patch < 8; ++patch) {
    const std::string version = format("{}.{}", minor, patch);
    if (const knowledge::TorchRelease* row = knowledge.find_torch(version)) found = row;
  }
  return found;
}

// Of the variants of one CUDA major the own one, else the next newer: a driver that serves the one
// that is there serves it by minor version compatibility.
std::string tag_near(std::string_view own, std::string_view release,
                     const knowledge::Knowledge& knowledge) {
  const int wanted = std::atoi(std::string(own.substr(2)).c_str());
  int best = 0;
  for (const knowledge::WheelVariant* wheel : knowledge.wheels_of(std::string(release))) {
    if (!starts_with(wheel->tag, "cu")) continue;
    const int tag = std::atoi(std::string(wheel->tag.substr(2)).c_str());
    if (tag >= wanted && tag / 10 == wanted / 10 && (best == 0 || tag < best)) best = tag;
  }
  return best == 0 ? std::string() : format("cu{}", best);
}

// What the text misses, and the torch that it has, as far as the message itself says.
struct Wanted {
  std::string first;  // "2.7"; empty: nothing that is known
  std::string have;   // "2.0.1+cu118"
};

Wanted missing_name(std::span<const formats::TextLine> lines,
                    std::map<std::string, std::string>& args) {
  static const RE2 missing(R"(module 'torch(?:\.\w+)*' has no attribute '(\w+)')");
  for (const formats::TextLine& line : lines) {
    std::string name;
    if (!contains(line.text, "has no attribute") || !RE2::PartialMatch(line.text, missing, &name))
      continue;
    const std::string_view first = first_alternative(name);
    if (first.empty()) continue;
    args["torch_name"] = name;
    args["first_torch"] = first;
    return {std::string(first), {}};
  }
  return {};
}

// transformers: "Disabling PyTorch because PyTorch >= 2.4 is required but found 2.1.2+cu118".
Wanted disabled_torch(std::span<const formats::TextLine> lines,
                      const knowledge::Knowledge& knowledge,
                      std::map<std::string, std::string>& args) {
  static const RE2 disabled(
      R"(Disabling PyTorch because PyTorch\s?>=\s?(\d{1,3}\.\d{1,3})[\d.]{0,8} is required but found (\d[\w.+]{0,40}))");
  for (const formats::TextLine& line : lines) {
    Wanted wanted;
    if (!contains(line.text, "Disabling PyTorch") ||
        !RE2::PartialMatch(line.text, disabled, &wanted.first, &wanted.have))
      continue;
    while (wanted.have.back() == '.') wanted.have.pop_back();
    args["floor_torch"] = wanted.first;
    args["found_torch"] = wanted.have;
    for (const knowledge::TorchFloor& row : knowledge.torch_floors) {
      const auto floor = formats::parse_clauses(format(">={}", row.torch));
      if (row.package != "transformers" || !floor || formats::satisfies(*floor, wanted.have))
        continue;
      args["package_below"] = std::string(row.first);
      break;
    }
    return wanted;
  }
  return {};
}

// Arguments of a wheel of that release in a variant near to the one that is there.
bool add_near(const std::string& have, const knowledge::TorchRelease& release,
              const knowledge::Knowledge& knowledge, std::map<std::string, std::string>& args) {
  const size_t plus = have.find("+cu");
  if (plus == std::string::npos) return false;
  const std::string tag = tag_near(have.substr(plus + 1), release.version, knowledge);
  if (tag.empty()) return false;
  args["newer_torch"] = release.version;
  args["newer_tag"] = tag;
  args["newer_vision"] = release.torchvision;
  args["newer_audio"] = release.torchaudio;
  return true;
}

}  // namespace

void add_newer_torch(std::map<std::string, std::string>& args,
                     std::span<const formats::TextLine> lines, const facts::Facts& facts,
                     const knowledge::Knowledge& knowledge) {
  Wanted wanted = missing_name(lines, args);
  if (wanted.first.empty()) wanted = disabled_torch(lines, knowledge, args);
  const knowledge::TorchRelease* release =
      wanted.first.empty() ? nullptr : last_patch(wanted.first, knowledge);
  if (release == nullptr || add_near(wanted.have, *release, knowledge, args)) return;
  const auto needed = parse_version(wanted.first);
  for (const facts::PythonEnv& env : facts.envs) {
    const auto there = env.torch.version ? parse_version(*env.torch.version) : std::nullopt;
    if (!there || !needed || *there < *needed) continue;
    args["torch_have"] = *env.torch.version;
    return;
  }
  for (const facts::PythonEnv& env : facts.envs)
    if (env.torch.version && add_near(*env.torch.version, *release, knowledge, args)) return;
}

}  // namespace cufit::explain
