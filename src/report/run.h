// SPDX-License-Identifier: Apache-2.0
// What `cufit run` says before a program starts: one line on the class that was chosen and why, or
// why none was. Texts: data/messages/run.toml.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/report.h"
#include "resolve/live_target.h"
#include "resolve/lock/lock_file.h"

namespace cufit::report {

struct RunGroup {
  std::string gpus;        // "2x NVIDIA GeForce RTX 3090 (8.6)"
  std::string variables;   // "CUDA_VISIBLE_DEVICES=GPU-..."
  std::string class_name;  // empty = no class serves them
};

struct RunRefusal {
  // Message "run.refused.<id>": no_fit, no_cpu_class, groups, unclear, policy, env_missing,
  // env_stale, env_broken, foreign_owner.
  std::string id;
  std::map<std::string, std::string> args;
  std::vector<std::pair<std::string, resolve::Reason>> reasons;  // of each class, by its name
  std::vector<RunGroup> groups;
  std::string next;  // a command; empty = none
};

struct RunView {
  const resolve::LockFile& lock;
  const resolve::LiveTarget& live;
  const resolve::Routing& routing;
  size_t index;
  bool asked_for;
  const knowledge::Knowledge& knowledge;
  std::string elsewhere = {};  // the lock's folder where it is not the working folder
};

std::string run_line(const RunView& view, std::string_view lang);
// Some lines, the last one "next: ..." where there is a step.
std::string refusal_text(const RunRefusal& refusal, const RunView& view, std::string_view lang);
// The first of these lines alone, for preflight.
std::string refusal_line(const RunRefusal& refusal, const RunView& view, std::string_view lang);
// What there is: "2x NVIDIA A800 80GB PCIe (8.0), driver 535.183.01"; "no NVIDIA GPU (...)".
std::string sight_text(const RunView& view, std::string_view lang);

}  // namespace cufit::report
