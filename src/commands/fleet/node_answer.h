// SPDX-License-Identifier: Apache-2.0
// What a node said, as the fleet sees it: its own word where it judged itself, else this program's
// judgement of its facts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checks/health/health_rules.h"
#include "commands/command.h"
#include "commands/fleet/fleet_nodes.h"
#include "facts/facts.h"
#include "fit/pack/pack_plan.h"
#include "resolve/fleet/fleet.h"
#include "resolve/lock/lock_file.h"

namespace cufit::commands {

struct NodeJudges {
  const knowledge::Knowledge& knowledge;
  // Of `--policy`: every node is judged by them, whatever it said itself.
  const std::optional<checks::HealthRules>& rules;
  const std::optional<resolve::LockFile>& lock;
  bool gpus = false;  // what jobs could have is wanted, too
};

struct NodeAnswer {
  resolve::FleetNode node;
  facts::Facts facts;
  // Of the lock: its place among the classes; npos = none serves this machine.
  size_t chosen = static_cast<size_t>(-1);
  std::string why_no_class;  // of the first class, where none serves it
  std::vector<pack::Gpu> gpus;
};

// Error{malformed}, {unsupported}: no answer of `doctor --json` and no recording.
Result<NodeAnswer> read_node(const std::string& name, std::string_view text,
                             const NodeJudges& judges);

struct NodeAnswers {
  std::vector<NodeAnswer> answers;  // without their facts: a thousand of them are much memory
  std::vector<resolve::UnreachableNode> unreachable;
};
// All of them, side by side.
NodeAnswers read_nodes(std::vector<NodeText> texts, const NodeJudges& judges);

}  // namespace cufit::commands
