// SPDX-License-Identifier: Apache-2.0
#include "checks/torch_pins.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/format.h"

namespace cufit::checks {
namespace {

bool is_exact(const formats::VersionClause& clause) {
  return (clause.op == "==" && !ends_with(clause.version, ".*")) || clause.op == "===";
}

}  // namespace

bool goes_with_torch(std::string_view package) {
  return package == "torchvision" || package == "torchaudio" || package == "torch";
}

std::string exact_version(const formats::Requirement& requirement) {
  for (const formats::VersionClause& clause : requirement.clauses)
    if (is_exact(clause)) return clause.version;
  return {};
}

std::string exact_pin(const facts::Distribution& asker, std::string_view package) {
  for (const std::string& line : asker.needs) {
    const auto requirement = formats::parse_requirement(line);
    if (!requirement || requirement->name != package) continue;
    if (const std::string version = exact_version(*requirement); !version.empty()) return version;
  }
  return {};
}

std::vector<TorchPin> torch_pins(const facts::PythonEnv& env) {
  std::vector<TorchPin> pins;
  if (!env.distributions) return pins;
  for (const facts::Distribution& package : *env.distributions) {
    if (package.kind == "leftover" || package.kind == "conda-meta") continue;
    for (const std::string& line : package.needs) {
      // Parsing every line of every package is not free; few begin so.
      if (!starts_with(lower(line.substr(0, 5)), "torch")) continue;
      const auto requirement = formats::parse_requirement(line);
      if (!requirement || requirement->name != "torch" || requirement->clauses.empty()) continue;
      TorchPin pin;
      pin.package = package.name;
      pin.version = package.version;
      pin.requirement = line;
      pin.clauses = requirement->clauses;
      pin.exact = std::any_of(pin.clauses.begin(), pin.clauses.end(), is_exact);
      pins.push_back(std::move(pin));
    }
  }
  return pins;
}

}  // namespace cufit::checks
