// SPDX-License-Identifier: Apache-2.0
// What a torch wheel must run on: this machine, a recorded one, or a described one ("RTX
// 4090,535"). All distinct GPUs count: a wheel that leaves one of them out does not serve the
// target.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/version.h"
#include "checks/torch_env.h"
#include "facts/facts.h"
#include "knowledge/knowledge.h"

namespace cufit::resolve {

struct TargetGpu {
  std::string name;  // "NVIDIA GeForce RTX 4090"
  ComputeCapability cc;
  uint32_t count = 1;
  checks::CompatGpu compat = checks::CompatGpu::unknown;  // may cuda-compat be put under it
};

struct Target {
  std::string label;                      // as asked for: "RTX 4090,535"; "this machine"
  std::vector<TargetGpu> gpus;            // lowest capability first; empty = no NVIDIA GPU
  std::vector<std::string> unknown_gpus;  // boards whose capability no source tells
  std::optional<Version> driver;          // kernel driver; nullopt = see driver_state
  enum class Driver { known, absent, not_told } driver_state = Driver::not_told;
  std::optional<Version> driver_cuda;     // of the user-mode driver, cuda-compat counted in
  std::string platform = "linux_x86_64";  // or "linux_aarch64"; others are not served
  std::string libc = "glibc";             // or "musl"
  std::optional<Version> glibc;           // nullopt = not told
  std::string python;                     // minor: "3.11"; empty = any
  std::string preferred_python;           // of its environment: taken where a wheel has it
  bool wsl = false, jetson = false;
};

// Of facts from any source; `python` stays empty.
Target target_of(const facts::Facts& facts, const knowledge::Knowledge& knowledge,
                 std::string label);

// "RTX 4090,535", "2x A800 + GTX 1080,580.65" (or "A800 x2"), "8.9,535.183", "cpu"; further
// comma-separated words: glibc=2.17, python=3.10, arch=aarch64. Error{usage} names the word, with
// near GPU names.
Result<Target> described_target(std::string_view text, const knowledge::Knowledge& knowledge);

// The words that described_target() reads as this target; empty where words do not say it all: an
// unknown GPU, one without a driver, another C library.
std::string description_of(const Target& target, const knowledge::Knowledge& knowledge);

// "3.13" of "3.13.1", "3.13t" of a free-threaded one; empty where it is no version of Python.
std::string minor_python(const std::string& text);

// "2x NVIDIA A800 80GB PCIe (8.0), NVIDIA GeForce GTX 1080 (6.1)"; empty where there is none.
std::string gpus_text(const Target& target);

using checks::driver_text;

// One target per group of GPUs that have to be served apart; see split_target in resolve.h.
Target with_gpus(const Target& target, std::vector<TargetGpu> gpus);

}  // namespace cufit::resolve
