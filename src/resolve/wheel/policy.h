// SPDX-License-Identifier: Apache-2.0
// A team's white list: the table [policy] of cufit.toml. Everything absent is allowed.
//
//   [policy]
//   torch = [">=2.4", "!=2.6.0"]      # PEP 440 specifiers, all must hold; or versions, one of them
//   torch_denied = ["2.9.1"]          # specifiers or versions, none may hold
//   cuda = ["cu126", "cu130", "cpu"]  # variants
//   cuda_denied = ["cu118"]
//   python = [">=3.10", "<3.14"]
//   driver_min = "535.104"            # of the machine, whatever the wheel needs
//   gpus = ["A800", "H100", "8.9"]    # names of the GPU table or capabilities
//   gpus_denied = ["GTX 1080"]
//   owners = ["uv", "pip"]            # who may own packages of an environment
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "resolve/wheel/wheel_compatibility.h"

namespace cufit::resolve {

struct Policy {
  std::string file;  // for messages; empty = no policy
  std::vector<std::string> torch, torch_denied, cuda, cuda_denied, python, gpus, gpus_denied,
      owners;
  std::string driver_min;
};

// The text of a cufit.toml; other tables are left to others, an unknown key of [policy] is an
// Error{malformed} with file and line, as is anything of a wrong type.
Result<Policy> parse_policy(std::string_view text, const std::string& file);

// The rules that forbid it, each as a Reason "policy" with args file, rule ("cuda_denied") and
// value; empty = allowed.
std::vector<Reason> forbids(const Policy& policy, const Wheel& wheel);
std::vector<Reason> forbids(const Policy& policy, const Target& target,
                            const knowledge::Knowledge& knowledge);
std::vector<Reason> forbids_owner(const Policy& policy, const std::string& package,
                                  const std::string& owner);
// Entries of `gpus` and `gpus_denied` that are no compute capability and part of no known GPU's
// name: a slip of the pen forbids nothing, or everything.
std::vector<std::string> unknown_gpus(const Policy& policy, const knowledge::Knowledge& knowledge);
// "3.11", of which a patch release may be meant, or a whole version ("3.11.2").
std::vector<Reason> forbids_python(const Policy& policy, const std::string& python);

}  // namespace cufit::resolve
