// SPDX-License-Identifier: Apache-2.0
// What each GPU can do with this torch: tf32, bf16, fp16, fp8, fp4. The architecture decides
// whether the hardware has it, torch's release and CUDA whether a library path uses it. Nothing
// here happens by itself: torch.compile, for one, never lowers precision, whatever articles say.
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/gpu_code.h"
#include "checks/report_sections.h"

namespace cufit::checks {

namespace {

struct Ability {
  LinkState state;
  const char* message_case;
};

struct AbilitiesCase {
  ComputeCapability cc;
  std::string_view chip;
  Version torch;  // 0 = unknown
  Version cuda;
};

bool from(const Version& have, uint32_t major, uint32_t minor) {
  return have >= Version{{major, minor}};
}

Ability tf32(const AbilitiesCase& c) {
  if (c.cc >= ComputeCapability{8, 0}) return {LinkState::ok, "yes"};
  return {LinkState::broken, "no"};
}

Ability bf16(const AbilitiesCase& c) {
  if (c.cc >= ComputeCapability{8, 0}) return {LinkState::ok, "yes"};
  return {c.cc.major == 7 ? LinkState::limited : LinkState::broken,
          c.cc.major == 7 ? "emulated" : "no"};
}

// Tensor cores from 7.0 on, but not in TU116 and TU117 (GTX 16xx). Before: 5.3, 6.0 and 6.2 have a
// fast FP16 rate in the ordinary units, 6.1 and 5.x do not.
Ability fp16(const AbilitiesCase& c) {
  bool cut = c.chip == "TU116" || c.chip == "TU117";
  if (c.cc >= ComputeCapability{7, 0} && !cut) return {LinkState::ok, "yes"};
  bool fast = cut || c.cc == ComputeCapability{6, 0} || c.cc == ComputeCapability{6, 2} ||
              c.cc == ComputeCapability{5, 3};
  return {LinkState::limited, fast ? "no_tensor_cores" : "memory_only"};
}

// torch._scaled_mm came with 2.1; capability 8.9 needs the cuBLASLt of CUDA 12.1 or newer.
Ability fp8(const AbilitiesCase& c) {
  if (c.cc < ComputeCapability{8, 9}) return {LinkState::broken, "no"};
  bool path = from(c.torch, 2, 1) && from(c.cuda, 12, 1);
  return {path ? LinkState::ok : LinkState::limited, path ? "yes" : "not_this_torch"};
}

// The packed 4-bit float type came with torch 2.8, the matrix products with CUDA 12.8.
Ability fp4(const AbilitiesCase& c) {
  if (c.cc < ComputeCapability{10, 0}) return {LinkState::broken, "no"};
  bool path = from(c.torch, 2, 8) && from(c.cuda, 12, 8);
  return {path ? LinkState::ok : LinkState::limited, path ? "yes" : "not_this_torch"};
}

struct Row {
  const char* name;
  Ability (*judge)(const AbilitiesCase& c);
  const char* rule;
};

const Row k_abilities_rows[] = {
    {"tf32", tf32, "tf32: capability >= 8.0"},
    {"bf16", bf16, "bf16 tensor cores: capability >= 8.0"},
    {"fp16", fp16, "fp16 tensor cores: capability >= 7.0, except TU116 and TU117"},
    {"fp8", fp8, "fp8 tensor cores: capability >= 8.9"},
    {"fp4", fp4, "fp4 tensor cores: capability >= 10.0"},
};

// "What can it do with this torch" has an answer only where this torch runs on it.
bool torch_runs(const Input& input, const GpuView& gpu, const TorchCode& code) {
  Match match = match_code(code.code, *gpu.cc, input.driver_cuda, input.knowledge).match;
  return match == Match::cubin || match == Match::ptx;
}

Link row_link(const Row& row, const AbilitiesCase& c, const GpuView& gpu, const TorchBuild& build) {
  Ability ability = row.judge(c);
  Link link;
  link.name = row.name;
  link.state = ability.state;
  link.key = std::string("ability.") + row.name + "." + ability.message_case;
  link.args = {{"gpu", gpu.label},
               {"cc", c.cc.text()},
               {"chip", std::string(c.chip)},
               {"torch", build.release},
               {"cuda", build.cuda ? build.cuda->text() : ""}};
  link.evidence = {seen(gpu.cc_source, c.cc.text()), rule_says(row.rule)};
  return link;
}

}  // namespace

std::vector<Link> list_abilities(const Input& input) {
  std::vector<Link> rows;
  const facts::PythonEnv* env = main_env(input.facts);
  std::vector<const facts::PythonEnv*> with_torch = torch_envs(input.facts);
  if (env == nullptr && !with_torch.empty()) env = with_torch[0];
  if (env == nullptr || !has_torch(*env)) return rows;
  TorchBuild build = torch_build_of(input, *env);
  if (build.kind != "cuda") return rows;
  TorchCode code = torch_code_of(input, *env, build);
  Version none{{0}};
  for (const GpuView& gpu : input.gpus) {
    if (!gpu.cc || !torch_runs(input, gpu, code)) continue;
    AbilitiesCase c{*gpu.cc, gpu.row != nullptr ? gpu.row->chip : std::string_view(),
                    parse_version(build.release).value_or(none), build.cuda.value_or(none)};
    for (const Row& row : k_abilities_rows) rows.push_back(row_link(row, c, gpu, build));
  }
  return rows;
}

}  // namespace cufit::checks
