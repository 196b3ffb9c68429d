// SPDX-License-Identifier: Apache-2.0
#include "explain/release_wheel.h"

#include <algorithm>

#include "base/format.h"
#include "base/version.h"

namespace cufit::explain {
namespace {

bool has_minor(std::string_view words, std::string_view word) {
  const auto all = split(words, ' ');
  return std::find(all.begin(), all.end(), word) != all.end();
}

// The newest release with files for this torch; the table has the oldest first, and the names of
// files before 2.7.3 carry the minor of CUDA.
std::string release_for(const std::string& torch, const std::string& cuda,
                        const std::string& python, const knowledge::Knowledge& knowledge) {
  std::string newest;
  for (const knowledge::ExtensionRow& row : knowledge.extensions) {
    const auto version = parse_version(row.version);
    if (row.package != "flash-attn" || row.origin != "release" || !version ||
        *version < Version{{2, 7, 3}})
      continue;
    if (has_minor(row.torch, torch) && has_minor(row.cuda, cuda) &&
        (row.python.empty() || has_minor(row.python, python)))
      newest = row.version;
  }
  return newest;
}

}  // namespace

void add_release_wheel(std::map<std::string, std::string>& args, const facts::Facts& facts,
                       const knowledge::Knowledge& knowledge) {
  for (const facts::PythonEnv& env : facts.envs) {
    const std::string have = env.torch.version ? *env.torch.version : std::string();
    const size_t plus = have.find("+cu");
    const auto torch = parse_version(have);
    if (plus == std::string::npos || !torch) continue;
    const auto named = env.python ? parse_version(*env.python) : std::nullopt;
    const std::string python = named                    ? format("3.{}", named->part(1))
                               : args.count("fa_minor") ? "3." + args.at("fa_minor")
                                                        : std::string();
    if (python.empty() || (named && named->part(0) != 3)) continue;
    const std::string release = have.substr(0, plus), tag = have.substr(plus + 1);
    const knowledge::TorchRelease* row = knowledge.find_torch(release);
    if (row == nullptr || !has_minor(row->python, python)) continue;
    for (const knowledge::WheelVariant* wheel : knowledge.wheels_of(release)) {
      if (wheel->tag != tag || tag.size() != 5) continue;
      const std::string cuda = tag.substr(2, 2);
      const std::string minor = format("{}.{}", torch->part(0), torch->part(1));
      const std::string version = release_for(minor, cuda, python, knowledge);
      if (version.empty()) continue;
      std::string python_tag = "cp";
      for (const char c : python)
        if (c != '.') python_tag += c;
      args["flash_wheel"] = format(
          "https://github.com/Dao-AILab/flash-attention/releases/download/v{}/"
          "flash_attn-{}%2Bcu{}torch{}cxx11abi{}-{}-{}-linux_x86_64.whl",
          version, version, cuda, minor, wheel->cxx11_abi == 1 ? "TRUE" : "FALSE", python_tag,
          python_tag);
      return;
    }
  }
}

}  // namespace cufit::explain
