// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/trial_verdict.h"

#include <algorithm>

namespace cufit::resolve {
namespace {

constexpr int k_granted = 0, k_out_of_memory = 2;  // CUresult and cudaError_t alike
constexpr uint64_t k_trial_step = 32u << 20;

}  // namespace

std::vector<TrialWay> trial_ways() {
  std::vector<TrialWay> out;
  for (const char* route : {"dlsym", "gpa"})
    for (const char* way : {"alloc", "pitch", "vmm", "async", "pool", "array", "graph"})
      out.push_back({way, route});
  // Names of the shared runtime of CUDA 11, 12 and 13; the static one asks cuGetProcAddress.
  for (const char* runtime : {"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"})
    out.push_back({"runtime", runtime});
  return out;
}

std::vector<TrialWay> torch_ways() {
  return {
      {"torch", ""}, {"torch", "expandable_segments:True"}, {"torch", "backend:cudaMallocAsync"}};
}

// A quarter leaves three for the context and for what a pool takes more than it is asked; the whole limit and a little
// cannot fit, whatever the context takes.
facts::TrialSizes trial_sizes(uint64_t limit_bytes, uint64_t room_bytes) {
  return {std::max(room_bytes / 4 / k_trial_step, uint64_t{1}) * k_trial_step,
          (limit_bytes / k_trial_step + 1) * k_trial_step};
}

Proof judge(const facts::TrialAnswer& answer) {
  if (answer.phase == "missing" || answer.phase == "library") return Proof::missing;
  if (answer.phase != "done") return Proof::failed;
  if (answer.above == k_granted) return Proof::leaks;
  if (answer.below == k_out_of_memory)
    return answer.card_refusals > 0 || answer.refusals == 0 ? Proof::no_room : Proof::blocks;
  if (answer.below != k_granted || answer.above != k_out_of_memory) return Proof::failed;
  return answer.refusals > 0 ? Proof::holds : Proof::unproved;
}

const char* to_string(Proof proof) {
  switch (proof) {
    case Proof::holds:
      return "holds";
    case Proof::unproved:
      return "unproved";
    case Proof::leaks:
      return "leaks";
    case Proof::blocks:
      return "blocks";
    case Proof::no_room:
      return "no_room";
    case Proof::missing:
      return "missing";
    case Proof::failed:
      return "failed";
  }
  return "";
}

bool all_hold(const std::vector<Trial>& trials) {
  bool any = false;
  for (const Trial& trial : trials) {
    if (trial.proof == Proof::missing) continue;
    if (trial.proof != Proof::holds) return false;
    any = true;
  }
  return any;
}

}  // namespace cufit::resolve
