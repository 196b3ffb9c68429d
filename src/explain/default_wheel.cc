// SPDX-License-Identifier: Apache-2.0
#include "explain/default_wheel.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::explain {
namespace {

// "cu101" -> "10.1", "cu90" -> "9.0"
std::string cuda_of_tag(std::string_view tag) {
  if (!starts_with(tag, "cu") || tag.size() < 4) return {};
  return std::string(tag.substr(2, tag.size() - 3)) + "." + std::string(tag.substr(tag.size() - 1));
}

// The default index's wheel is meant for Linux on x86-64 and for pip.
bool may_be_default(const facts::Facts& facts, const facts::PythonEnv& env) {
  const Fact<std::string>& os = facts.system.distribution;
  if (os && (contains(lower(*os), "windows") || contains(lower(*os), "mac"))) return false;
  const Fact<std::string>& machine = facts.system.architecture;
  if (machine && *machine != "x86_64") return false;
  if (facts.system.jetson || env.kind == "conda" || env.installer == "conda") return false;
  if (!env.distributions) return true;
  return std::none_of(env.distributions->begin(), env.distributions->end(),
                      [](const facts::Distribution& package) {
                        return package.kind == "conda-meta" &&
                               (package.name == "torch" || package.name == "pytorch");
                      });
}

}  // namespace

void assume_default_wheels(facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  for (facts::PythonEnv& env : facts.envs) {
    facts::TorchFacts& torch = env.torch;
    if (!torch.version || torch.cuda || torch.hip || !torch.variant.empty()) continue;
    if (torch.version.source.kind != SourceKind::claimed || contains(*torch.version, "+")) continue;
    if (torch.cuda.why == WhyNot::not_present || !may_be_default(facts, env)) continue;
    std::string release = *torch.version;
    if (std::count(release.begin(), release.end(), '.') == 1) release += ".0";
    const knowledge::TorchRelease* row = knowledge.find_torch(release);
    if (!row || row->default_linux_x86_64.empty()) continue;
    const std::string cuda = cuda_of_tag(row->default_linux_x86_64);
    if (cuda.empty()) continue;
    torch.cuda = known<std::string>(cuda, SourceKind::assumed,
                                    format("data/wheels.toml: default wheel of torch {}", release));
    torch.variant = row->default_linux_x86_64;
  }
}

}  // namespace cufit::explain
