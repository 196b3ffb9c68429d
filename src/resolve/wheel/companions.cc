// SPDX-License-Identifier: Apache-2.0
// What goes with a torch: packages of its own release, and those whose binaries are built against
// it (data/extensions.toml).
#include <algorithm>

#include "base/format.h"
#include "resolve/wheel/resolve.h"

namespace cufit::resolve {
namespace {

using knowledge::ExtensionRow;
using knowledge::Knowledge;

std::string minor_of(std::string_view version) {
  const auto parsed = parse_version(version);
  return parsed ? std::to_string(parsed->part(0)) + "." + std::to_string(parsed->part(1)) : "";
}

bool has_word(std::string_view list, std::string_view word) {
  for (std::string_view one : split(list, ' '))
    if (one == word) return true;
  return false;
}

bool fits_torch(const ExtensionRow& row, const Wheel& wheel) {
  const bool clauses = row.torch.find_first_of("=<>~") != std::string_view::npos;
  if (!clauses) return has_word(row.torch, minor_of(wheel.torch));
  const auto parsed = formats::parse_clauses(row.torch);
  return parsed && formats::satisfies(*parsed, wheel.torch);
}

// Code for one CUDA version, or for all of a major.
bool fits_cuda(const ExtensionRow& row, const Wheel& wheel) {
  if (row.cuda.empty() || !wheel.cuda) return row.cuda.empty();
  const std::string major = std::to_string(wheel.cuda->part(0));
  return has_word(row.cuda, major) ||
         has_word(row.cuda, major + "." + std::to_string(wheel.cuda->part(1)));
}

bool fits_python(const ExtensionRow& row, const std::string& python) {
  if (python.empty()) return true;
  if (!row.python.empty() && !has_word(row.python, python)) return false;
  const auto have = parse_version(python), need = parse_version(row.python_min);
  return !need || !have || *have >= *need;
}

bool fits_gpus(const ExtensionRow& row, const std::vector<ComputeCapability>& ccs) {
  const auto least = parse_compute_capability(row.cc_min);
  return !least ||
         std::all_of(ccs.begin(), ccs.end(), [&](ComputeCapability cc) { return cc >= *least; });
}

// The newest row that fits; else what the best one fails on, in the order torch, CUDA, GPU, Python.
Companion extension_for(std::string_view package, const Wheel& wheel, const std::string& python,
                        const std::vector<ComputeCapability>& ccs, const Knowledge& knowledge) {
  Companion companion{std::string(package), "", "torch"};
  int best = 0;
  // The table has the oldest first.
  for (auto at = knowledge.extensions.rbegin(); at != knowledge.extensions.rend() && best < 4;
       ++at) {
    const ExtensionRow& row = *at;
    if (row.package != package || !fits_torch(row, wheel)) continue;
    int reached = 1;
    if (fits_cuda(row, wheel)) reached = 2;
    if (reached == 2 && fits_gpus(row, ccs)) reached = 3;
    if (reached == 3 && fits_python(row, python)) reached = 4;
    if (reached <= best) continue;
    best = reached;
    companion.version = reached == 4 ? std::string(row.version) : "";
    static constexpr const char* k_why[] = {"torch", "cuda", "gpu", "python", ""};
    companion.why_not = k_why[reached];
  }
  return companion;
}

}  // namespace

bool is_judged(const formats::Requirement& requirement) {
  for (const char* package :
       {"torch", "torchvision", "torchaudio", "triton", "xformers", "flash-attn", "bitsandbytes"})
    if (requirement.name == package) return true;
  return false;
}

std::vector<Companion> companions_of(const Wheel& wheel, const std::string& python,
                                     const std::vector<ComputeCapability>& ccs,
                                     const Knowledge& knowledge) {
  std::vector<Companion> out;
  if (const knowledge::TorchRelease* release = knowledge.find_torch(wheel.torch)) {
    const std::pair<const char*, std::string_view> own[] = {
        {"torchvision", release->torchvision},
        {"torchaudio", release->torchaudio},
        {"triton", wheel.is_cpu() ? std::string_view() : release->triton}};
    // torch._inductor refuses older GPUs ("Triton only supports devices of CUDA Capability
    // >= 7.0").
    const bool too_old = std::any_of(ccs.begin(), ccs.end(), [](ComputeCapability cc) {
      return cc < ComputeCapability{7, 0};
    });
    for (const auto& [package, version] : own) {
      const char* why = version.empty() ? (wheel.is_cpu() ? "cpu" : "ended") : "";
      if (version.empty() && std::string_view(package) == "torchvision") why = "not_known";
      if (version.empty() && std::string_view(package) == "torchaudio") why = "ended";
      if (std::string_view(package) == "triton" && too_old && !version.empty()) {
        out.push_back({package, "", "old_gpu"});
        continue;
      }
      out.push_back({package, std::string(version), why});
    }
  }
  if (wheel.is_cpu()) return out;
  for (const char* package : {"xformers", "flash-attn", "bitsandbytes"})
    out.push_back(extension_for(package, wheel, python, ccs, knowledge));
  return out;
}

}  // namespace cufit::resolve
