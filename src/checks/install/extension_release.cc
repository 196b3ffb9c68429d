// SPDX-License-Identifier: Apache-2.0
#include "checks/install/extension_release.h"

#include <algorithm>

#include "base/format.h"
#include "checks/install/installer.h"
#include "checks/install/torch_command.h"
#include "checks/torch_env.h"
#include "checks/torch_pins.h"
#include "formats/python/requirement.h"

namespace cufit::checks {
namespace {

bool has_word(std::string_view list, std::string_view word) {
  const std::vector<std::string_view> words = split(list, ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<Version> cuda_of_tag(const Input& input, const std::string& tag) {
  const knowledge::CudaTag* row = input.knowledge.find_cuda_tag(tag);
  return row != nullptr ? parse_version(row->cuda) : std::nullopt;
}

bool has_code(const Input& input, const knowledge::ExtensionRow& row) {
  const auto least = parse_compute_capability(row.cc_min);
  return !least || std::all_of(input.gpus.begin(), input.gpus.end(),
                               [&](const GpuView& gpu) { return !gpu.cc || !(*gpu.cc < *least); });
}

// Its row for this torch and variant; null: PyTorch's index has none for these GPUs.
const knowledge::ExtensionRow* row_to_move(const Input& input, const std::string& package,
                                           const std::string& torch, const std::string& tag) {
  const std::optional<Version> cuda = cuda_of_tag(input, tag);
  if (!cuda) return nullptr;
  const knowledge::ExtensionRow* row = extension_release(input, package, torch, *cuda);
  const bool fits = row != nullptr && is_on_torch_index(package, *row) && has_code(input, *row);
  return fits ? row : nullptr;
}

}  // namespace

const knowledge::ExtensionRow* extension_release(const Input& input, const std::string& package,
                                                 const std::string& torch, const Version& cuda) {
  const auto release = parse_version(torch);
  if (!release) return nullptr;
  const std::string minor = format("{}.{}", release->part(0), release->part(1));
  const std::string major = std::to_string(cuda.part(0));
  const std::string exact = major + "." + std::to_string(cuda.part(1));
  const knowledge::ExtensionRow* newest = nullptr;
  // The table has the oldest first.
  for (const knowledge::ExtensionRow& row : input.knowledge.extensions) {
    if (row.package != package) continue;
    const auto clauses = formats::parse_clauses(row.torch);
    const bool takes = clauses ? formats::satisfies(*clauses, torch) : has_word(row.torch, minor);
    if (takes && (row.cuda.empty() || has_word(row.cuda, exact) || has_word(row.cuda, major)))
      newest = &row;
  }
  return newest;
}

bool is_on_torch_index(const std::string& package, const knowledge::ExtensionRow& row) {
  return package == "xformers" && !row.cuda.empty();
}

std::string extension_command(const Input& input, const facts::PythonEnv& env,
                              const std::string& package, const knowledge::ExtensionRow& row,
                              const std::string& tag) {
  const Owner owner = owner_of(env, false);
  InstallRequest request;
  if (owner.installer == Installer::pip || owner.installer == Installer::uv ||
      owner.installer == Installer::image)
    request.kind = InstallKind::repair;
  request.requirements = {package + "==" + std::string(row.version)};
  if (is_on_torch_index(package, row) && !tag.empty()) {
    request.index = pytorch_index(input, tag);
    request.index_name = "pytorch-" + tag;
  }
  return install_command(input, env, owner, request);
}

std::vector<ExtensionMove> extensions_to_move(const Input& input, const facts::PythonEnv& env,
                                              const std::string& torch, const std::string& tag) {
  std::vector<ExtensionMove> moves;
  const TorchBuild now = torch_build_of(input, env);
  const std::optional<Version> cuda = cuda_of_tag(input, tag);
  if (!cuda || !env.distributions) return moves;
  const bool other_major = now.cuda && now.cuda->part(0) != cuda->part(0);
  for (const facts::Distribution& one : *env.distributions) {
    const knowledge::ExtensionRow* row = row_to_move(input, one.name, torch, tag);
    if (row == nullptr) continue;
    const auto pins = torch_pins(env);
    const bool refuses = std::any_of(pins.begin(), pins.end(), [&](const TorchPin& pin) {
      return pin.package == one.name && !pin.takes(torch);
    });
    if (other_major || refuses)
      moves.push_back({one.name, std::string(row->version),
                       extension_command(input, env, one.name, *row, tag)});
  }
  return moves;
}

bool can_move(const Input& input, const std::string& package, const std::string& torch,
              const std::string& tag) {
  return row_to_move(input, package, torch, tag) != nullptr;
}

}  // namespace cufit::checks
