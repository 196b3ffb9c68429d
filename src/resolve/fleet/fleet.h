// SPDX-License-Identifier: Apache-2.0
// Many machines side by side: which are set up alike, and how the others differ. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "resolve/fleet/fingerprint.h"

namespace cufit::resolve {

struct NodeFinding {
  std::string id, severity, subject, summary, command;
};

struct FleetNode {
  std::string name;
  std::string verdict;  // as doctor's JSON: "works", "limited", "broken", "unknown"
  std::string action;   // "ok", "watch", "drain", "reboot", "replace"
  std::vector<NodeFinding> findings;
  std::string cufit;  // version of the program that spoke
  Fingerprint fingerprint;
};

struct UnreachableNode {
  std::string name, why;
  bool busy = false;  // it runs jobs and was not asked
};

struct NodeDifference {
  std::string what, value, majority;
  Topic topic = Topic::other;
};

struct NodeGroup {
  Fingerprint fingerprint;
  std::vector<std::string> nodes;       // sorted
  std::vector<NodeDifference> differs;  // the likely culprit first; empty: as the most are
};

struct FleetComparison {
  std::vector<NodeGroup> groups;         // the largest first
  std::string cufit;                     // the version of most nodes
  std::vector<std::string> other_cufit;  // nodes with another
};

// `baseline`: what all are compared with; nullopt = with what most machines have. What depends on
// the kind of GPU is compared among machines with equal GPUs.
FleetComparison compare_nodes(const std::vector<FleetNode>& nodes,
                              const std::optional<Fingerprint>& baseline);

}  // namespace cufit::resolve
