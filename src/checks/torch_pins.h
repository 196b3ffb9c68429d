// SPDX-License-Identifier: Apache-2.0
// What installed packages ask of each other (Distribution::needs, their own METADATA), as far as
// torch's world is concerned. Answers only; no findings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "facts/facts.h"
#include "formats/python/requirement.h"

namespace cufit::checks {

// An installed package that does not take every torch: "vllm 0.33.0: torch==2.14.0".
struct TorchPin {
  std::string package, version;  // "vllm", "0.33.0"
  std::string requirement;       // as its METADATA writes it, without marker: "torch==2.14.0"
  std::vector<formats::VersionClause> clauses;  // never empty
  bool exact = false;                           // one release alone satisfies it
  // By PEP 440: "torch==2.11.0" takes 2.11.0+cu130.
  bool takes(std::string_view torch) const { return formats::satisfies(clauses, torch); }
};
// The one version that `asker` wants of `package`: "9.19.0.56" of "nvidia-cudnn-cu13==9.19.0.56";
// empty: none, or not one alone ("==1.0.*").
std::string exact_pin(const facts::Distribution& asker, std::string_view package);
// Changed together with torch, whatever version of it they pin.
bool goes_with_torch(std::string_view package);
// "9.1.0.70" of "==9.1.0.70"; empty: several versions meet it.
std::string exact_version(const formats::Requirement& requirement);
// In the order of distributions (by name); nothing where the packages could not be read. Those that
// name no version are left out, as are URLs and what conda's own records say.
std::vector<TorchPin> torch_pins(const facts::PythonEnv& env);

}  // namespace cufit::checks
