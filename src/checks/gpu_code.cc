// SPDX-License-Identifier: Apache-2.0
// Does torch hold code for this GPU? Answered from the fatbin headers of libtorch_cuda.so, by the
// rule set of code_match; the wheel table is only asked where the file cannot be read, and a
// difference between the two is said.
#include "checks/gpu_code.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/torch_checks.h"
#include "checks/install/torch_step.h"
#include "checks/wheel_pick.h"

namespace cufit::checks {

using formats::CodeKind;
using formats::DeviceCode;

TorchCode torch_code_of(const Input& input, const facts::PythonEnv& env, const TorchBuild& build) {
  TorchCode result;
  const facts::Binary* library = torch_main_library(env);
  if (library != nullptr) {
    result.where = library->path;
    result.incomplete = !library->damage.empty();
    // Builds of 1.x split the library in two; the pair is one body of code.
    for (const facts::Binary& binary : env.binaries) {
      bool half =
          starts_with(file_name(binary.path), "libtorch_cuda_c") && is_torch_binary(env, binary);
      if (&binary != library && !half) continue;
      result.code.insert(result.code.end(), binary.device_code.begin(), binary.device_code.end());
    }
    if (!result.code.empty()) return result;
    const std::vector<formats::Damage>& damage = library->damage;
    result.why_not_file = library->path + ": ";
    if (!damage.empty())
      result.why_not_file += damage[0].what + " (byte " + std::to_string(damage[0].offset) + ")";
    else
      result.why_not_file +=
          library->unreadable.empty() ? "no device code found" : library->unreadable;
    if (!damage.empty())
      return result;  // the table tells what the file should hold, not what is left of it
  } else {
    result.why_not_file = "libtorch_cuda.so was not found or not read";
  }
  result.incomplete = false;
  result.code = table_code(input, build.release, build.tag);
  result.from_table = !result.code.empty();
  if (result.from_table)
    result.where = "data/wheels.toml, torch " + build.release + "+" + build.tag;
  return result;
}

std::string list_archs(const std::vector<DeviceCode>& code) {
  std::vector<std::string> names;
  for (const DeviceCode& entry : code) {
    if (entry.kind != CodeKind::cubin && entry.kind != CodeKind::ptx) continue;
    std::string name = (entry.kind == CodeKind::cubin ? "sm_" : "compute_") + entry.arch;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  auto key = [](const std::string& name) {
    return std::make_pair(starts_with(name, "compute_"),
                          std::atoi(name.c_str() + name.find('_') + 1));
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return key(a) < key(b); });
  return join(names, " ");
}

std::vector<GpuGroup> group_gpus(const Input& input) {
  std::vector<GpuGroup> groups;
  for (const GpuView& gpu : input.gpus) {
    if (!gpu.cc) continue;
    auto same = std::find_if(groups.begin(), groups.end(),
                             [&](const GpuGroup& group) { return group.cc == *gpu.cc; });
    if (same == groups.end())
      groups.push_back({*gpu.cc, {&gpu}});
    else
      same->gpus.push_back(&gpu);
  }
  return groups;
}

std::string GpuGroup::text() const {
  std::vector<std::string> numbers, names;
  for (const GpuView* gpu : gpus) {
    numbers.push_back(std::to_string(gpu->index));
    if (std::find(names.begin(), names.end(), gpu->name) == names.end()) names.push_back(gpu->name);
  }
  return "GPU " + join(numbers, ", ") + " (" + join(names, ", ") + ", " + cc.text() + ")";
}

namespace {

struct GpuCodeCase {
  const Input& input;
  const facts::PythonEnv& env;
  const TorchBuild& build;
  const TorchCode& code;
};

uint32_t number_of(const std::string& arch) {
  return uint32_t(std::strtoul(arch.c_str(), nullptr, 10));
}

// Older than everything in the file, or newer? In between (a private build, or 10.3 beside 9.0
// and 12.0) the generation decides: wheels lost architectures below 10.0 and have yet to gain those
// above.
bool gpu_is_older(const std::vector<DeviceCode>& code, ComputeCapability cc) {
  uint32_t mine = number_of(cc.sm()), least = UINT32_MAX, most = 0;
  for (const DeviceCode& entry : code) {
    if (entry.kind != CodeKind::cubin && entry.kind != CodeKind::ptx) continue;
    least = std::min(least, number_of(entry.arch));
    most = std::max(most, number_of(entry.arch));
  }
  if (mine < least) return true;
  if (mine > most) return false;
  return cc.major < 10;
}

void fill(const GpuCodeCase& c, const GpuGroup& group, Finding& made) {
  TorchStep step = torch_step(c.input, c.env);
  if (!step.pick) step = torch_step(c.input, c.env, {group.cc});
  made.args = {{"gpu", group.text()},
               {"cc", group.cc.text()},
               {"sm", group.cc.sm()},
               {"torch", c.build.release + (c.build.tag.empty() ? "" : "+" + c.build.tag)},
               {"archs", list_archs(c.code.code)},
               {"file", std::string(c.code.where)},
               {"driver_cuda", c.input.driver_cuda ? c.input.driver_cuda->text() : ""}};
  add_torch_step(c.env, step, made);
  made.evidence.push_back(seen(group.gpus[0]->cc_source, group.cc.text()));
  made.evidence.push_back(
      {c.code.from_table ? "table" : "file", c.code.where, list_archs(c.code.code)});
  if (c.code.from_table) made.evidence.push_back({"file", c.code.why_not_file, ""});
  made.variant = step.blocked;
  if (made.variant.empty() && c.code.from_table) made.variant = "table";
}

Finding nothing_fits(const GpuCodeCase& c, const GpuGroup& group) {
  bool older = gpu_is_older(c.code.code, group.cc);
  Finding made =
      finding(older ? "arch_gpu_too_old" : "arch_gpu_too_new", Severity::error, subject_of(c.env));
  fill(c, group, made);
  made.evidence.push_back(
      rule_says("machine code runs on its own capability and later minors of the same major; "
                "suffix a only there, suffix f in its family"));
  if (c.code.incomplete) {
    made.severity = Severity::unknown;
    made.unknown_because =
        c.code.where + " is damaged; code may lie in the part that could not be read";
  }
  return made;
}

Finding only_ptx(const GpuCodeCase& c, const GpuGroup& group, const CodeMatch& match) {
  Finding made = finding("ptx_jit_only", Severity::warning, subject_of(c.env));
  fill(c, group, made);
  made.variant.clear();
  if (match.match == Match::ptx_too_new) {
    made = finding("ptx_newer_than_driver", Severity::error, subject_of(c.env));
    fill(c, group, made);
    made.variant.clear();
    auto needs = parse_version(match.needs_cuda);
    auto full = needs ? c.input.knowledge.full_driver(*needs) : std::nullopt;
    made.args["need"] = full ? std::to_string(full->part(0)) : "";
  } else if (match.match == Match::ptx_unknown) {
    made = cannot_tell("ptx_newer_than_driver", subject_of(c.env),
                       "CUDA version of the driver: " + why_missing(c.input.facts.kernel.version));
    fill(c, group, made);
    made.variant.clear();
  }
  made.args["ptx_isa"] = match.ptx_isa;
  made.args["arch"] = match.arch;
  made.args["needs_cuda"] = match.needs_cuda;
  if (c.input.driver_cuda)
    made.evidence.push_back(
        seen(c.input.driver_cuda_source, "CUDA " + c.input.driver_cuda->text()));
  made.evidence.push_back(rule_says("PTX compiles only in a driver that knows its ISA"));
  return made;
}

// Official pip wheels only: conda and vendor builds have their own architecture lists.
std::optional<Finding> compare_with_table(const GpuCodeCase& c) {
  const facts::Distribution* package = find_distribution(c.env, "torch");
  bool official = package != nullptr && package->kind == "dist-info" &&
                  package->installer != "conda" && c.env.kind != "image" &&
                  !contains(c.build.release, "a0");
  if (!official || c.code.from_table || c.code.incomplete || c.code.code.empty())
    return std::nullopt;
  std::vector<DeviceCode> expected = table_code(c.input, c.build.release, c.build.tag);
  if (expected.empty()) return std::nullopt;
  // The table lists what most modules get. Single kernels built for more (one sm_89 entry among 444
  // sm_86 ones), their a and f variants, and PTX, which comes and goes between releases without any
  // rule, are no difference.
  auto plain = [](const std::vector<DeviceCode>& code) {
    uint32_t most = 0;
    for (const DeviceCode& entry : code) most = std::max(most, entry.count);
    std::set<std::string> names;
    for (const DeviceCode& entry : code)
      if (entry.kind == CodeKind::cubin && entry.count >= most / 2 && !entry.arch.empty() &&
          std::isdigit(static_cast<unsigned char>(entry.arch.back())))
        names.insert(entry.arch);
    return names;
  };
  if (plain(expected) == plain(c.code.code)) return std::nullopt;
  Finding made = finding("torch_wheel_table_differs", Severity::note, subject_of(c.env));
  made.args = {{"torch", c.build.release + "+" + c.build.tag},
               {"file", c.code.where},
               {"file_archs", list_archs(c.code.code)},
               {"table_archs", list_archs(expected)}};
  made.evidence = {{"file", c.code.where, list_archs(c.code.code)},
                   table_says("data/wheels.toml", list_archs(expected))};
  return made;
}

// torch's other libraries: libtorch_cuda_linalg.so of some wheels leaves out an architecture that
// the main library has. Only a library without any entry for the GPU counts; a few special kernels
// are by design.
void judge_other_libraries(const GpuCodeCase& c, const GpuGroup& group,
                           std::vector<Finding>& found) {
  const facts::Binary* main = torch_main_library(c.env);
  for (const facts::Binary& binary : c.env.binaries) {
    bool half = starts_with(file_name(binary.path), "libtorch_cuda_c");
    if (&binary == main || half || !is_torch_binary(c.env, binary) || !binary.damage.empty())
      continue;
    CodeMatch match =
        match_code(binary.device_code, group.cc, c.input.driver_cuda, c.input.knowledge);
    bool too_new = match.match == Match::ptx_too_new;
    if (!too_new && (match.match != Match::none || match.fitting > 0)) continue;
    Finding made = finding("torch_library_code_missing", Severity::note, subject_of(c.env));
    if (too_new) made.variant = "ptx";
    made.args = {{"gpu", group.text()},
                 {"cc", group.cc.text()},
                 {"library", std::string(file_name(binary.path))},
                 {"archs", list_archs(binary.device_code)},
                 {"ptx_isa", match.ptx_isa},
                 {"needs_cuda", match.needs_cuda},
                 {"torch", c.build.release + (c.build.tag.empty() ? "" : "+" + c.build.tag)}};
    made.evidence = {{"file", binary.path, made.args["archs"]},
                     seen(group.gpus[0]->cc_source, group.cc.text())};
    found.push_back(std::move(made));
  }
}

void judge_group(const GpuCodeCase& c, const GpuGroup& group, std::vector<Finding>& found) {
  CodeMatch match = match_code(c.code.code, group.cc, c.input.driver_cuda, c.input.knowledge);
  switch (match.match) {
    case Match::cubin:
      judge_other_libraries(c, group, found);
      return;
    case Match::ptx:
    case Match::ptx_too_new:
    case Match::ptx_unknown:
      found.push_back(only_ptx(c, group, match));
      return;
    case Match::none:
      found.push_back(nothing_fits(c, group));
      return;
    case Match::no_code:
      found.push_back(cannot_tell("torch_code_unreadable", subject_of(c.env), c.code.why_not_file));
      found.back().args = {{"torch", c.build.release}, {"gpu", group.text()}};
      return;
  }
}

}  // namespace

std::vector<Finding> check_gpu_code(const Input& input) {
  std::vector<Finding> found;
  std::vector<GpuGroup> groups = group_gpus(input);
  std::vector<const facts::PythonEnv*> envs = torch_envs(input.facts);
  for (const facts::PythonEnv* env : envs) {
    TorchBuild build = torch_build_of(input, *env);
    if (build.kind != "cuda") continue;
    TorchCode code = torch_code_of(input, *env, build);
    GpuCodeCase c{input, *env, build, code};
    if (auto made = compare_with_table(c)) found.push_back(std::move(*made));
    for (const GpuGroup& group : groups) judge_group(c, group, found);
  }
  if (envs.empty()) return found;
  for (const GpuView& gpu : input.gpus) {
    if (gpu.cc) continue;
    found.push_back(cannot_tell("gpu_capability_unknown", subject_of(gpu),
                                gpu.nvml != nullptr
                                    ? why_missing(gpu.nvml->compute_capability)
                                    : "the driver was not asked and data/gpus.toml has no row"));
    found.back().args = {{"gpu", gpu.name}};
  }
  return found;
}

}  // namespace cufit::checks
