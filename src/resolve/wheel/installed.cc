// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/installed.h"

#include "base/format.h"
#include "checks/code_match.h"
#include "checks/torch_env.h"

namespace cufit::resolve {
namespace {

using checks::Match;

// A GPU that the code serves without anything to compile. The driver plays no part: both sides are
// asked alike.
bool serves(const std::vector<formats::DeviceCode>& code, ComputeCapability cc,
            const knowledge::Knowledge& knowledge) {
  return checks::match_code(code, cc, std::nullopt, knowledge).match == Match::cubin;
}

std::string cubin_archs_of(const Wheel& wheel) {
  return join(capabilities_of(wheel, formats::CodeKind::cubin), " ");
}

}  // namespace

std::vector<Installed> installed_wheels(const facts::Facts& facts,
                                        const knowledge::Knowledge& knowledge) {
  const checks::Input input = checks::make_input(facts, knowledge);
  std::vector<Installed> out;
  for (const facts::PythonEnv& env : facts.envs) {
    if (!checks::has_torch(env)) continue;
    const checks::TorchBuild build = checks::torch_build_of(input, env);
    const facts::Binary* library = checks::torch_main_library(env);
    if (library == nullptr || !library->damage.empty() || library->device_code.empty() ||
        build.tag.empty() || build.release.empty())
      continue;
    out.push_back({build.release, build.tag, library->path, library->device_code});
  }
  return out;
}

std::vector<Disagreement> believe_files(const std::vector<Installed>& installed,
                                        const knowledge::Knowledge& knowledge,
                                        std::vector<Wheel>& wheels) {
  std::vector<Disagreement> found;
  for (const Installed& file : installed) {
    for (Wheel& wheel : wheels) {
      if (wheel.torch != file.torch || wheel.tag != file.tag) continue;
      Wheel as_read = wheel;
      as_read.code = file.code;
      as_read.source = file.path;
      Disagreement one{
          file.torch, file.tag, file.path, cubin_archs_of(wheel), cubin_archs_of(as_read), {}};
      for (const knowledge::DriverWindow& window : knowledge.windows) {
        const auto cc = parse_compute_capability(window.cc);
        if (cc && serves(wheel.code, *cc, knowledge) != serves(file.code, *cc, knowledge))
          one.differ.push_back(cc->text());
      }
      if (!one.differ.empty()) found.push_back(std::move(one));
      wheel = std::move(as_read);
    }
  }
  return found;
}

}  // namespace cufit::resolve
