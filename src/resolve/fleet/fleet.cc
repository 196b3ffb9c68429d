// SPDX-License-Identifier: Apache-2.0
#include "resolve/fleet/fleet.h"

#include <algorithm>
#include <map>

namespace cufit::resolve {
namespace {

// Counts of values; of equal counts the value that the first node in the order of names has.
class Votes {
 public:
  void add(const std::string& value) {
    auto known = std::find_if(counts_.begin(), counts_.end(),
                              [&](const auto& one) { return one.first == value; });
    if (known == counts_.end())
      counts_.emplace_back(value, 1);
    else
      ++known->second;
  }
  const std::string& winner() const {
    static const std::string k_none;
    const auto best =
        std::max_element(counts_.begin(), counts_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return best == counts_.end() ? k_none : best->first;
  }

 private:
  std::vector<std::pair<std::string, size_t>> counts_;
};

class Majority {
 public:
  Majority(const std::vector<const FleetNode*>& nodes, const std::optional<Fingerprint>& baseline)
      : baseline_(baseline) {
    // A node that is not usable is no model for the others, as long as there is a better one.
    const auto votes = [](const FleetNode* node) {
      return node->verdict == "works" || node->verdict == "limited";
    };
    const bool any = std::any_of(nodes.begin(), nodes.end(), votes);
    for (const FleetNode* node : nodes)
      for (const FingerprintPart& part : node->fingerprint.parts) {
        if (any && !votes(node)) continue;
        // A value that could not be read is no vote.
        if (part.value == "not known") continue;
        all_[part.what].add(part.value);
        of_kind_[{node->fingerprint.gpus, part.what}].add(part.value);
      }
  }

  std::string of(const Fingerprint& asked, const FingerprintPart& part) const {
    if (baseline_) {
      // A baseline of another kind of GPU says nothing of what depends on the kind.
      const bool speaks = !part.of_gpu || baseline_->gpus == asked.gpus;
      for (const FingerprintPart& one : baseline_->parts)
        if (speaks && one.what == part.what) return one.value;
    }
    if (part.of_gpu) {
      const auto votes = of_kind_.find({asked.gpus, part.what});
      return votes == of_kind_.end() ? part.value : votes->second.winner();
    }
    const auto votes = all_.find(part.what);
    return votes == all_.end() ? part.value : votes->second.winner();
  }

 private:
  const std::optional<Fingerprint>& baseline_;
  std::map<std::string, Votes> all_;
  std::map<std::pair<std::string, std::string>, Votes> of_kind_;
};

std::vector<NodeDifference> differences(const Fingerprint& fingerprint, const Majority& majority) {
  std::vector<NodeDifference> out;
  for (const FingerprintPart& part : fingerprint.parts) {
    const std::string usual = majority.of(fingerprint, part);
    // What could not be read is neither equal nor different.
    if (usual.empty() || usual == part.value || part.value == "not known" || usual == "not known")
      continue;
    out.push_back({part.what, part.value, usual, part.topic});
  }
  // As `cufit diff` orders: driver, GPU, torch, ...
  std::stable_sort(out.begin(), out.end(), [](const NodeDifference& a, const NodeDifference& b) {
    return a.topic < b.topic;
  });
  return out;
}

}  // namespace

FleetComparison compare_nodes(const std::vector<FleetNode>& nodes,
                              const std::optional<Fingerprint>& baseline) {
  std::vector<const FleetNode*> sorted;
  for (const FleetNode& node : nodes) sorted.push_back(&node);
  std::sort(sorted.begin(), sorted.end(),
            [](const FleetNode* a, const FleetNode* b) { return a->name < b->name; });
  const Majority majority(sorted, baseline);
  FleetComparison out;
  std::map<std::string, size_t> place;
  Votes versions;
  for (const FleetNode* node : sorted) {
    versions.add(node->cufit);
    const auto [known, fresh] = place.emplace(node->fingerprint.id, out.groups.size());
    if (fresh) out.groups.push_back({node->fingerprint, {}, {}});
    out.groups[known->second].nodes.push_back(node->name);
  }
  for (NodeGroup& group : out.groups) group.differs = differences(group.fingerprint, majority);
  std::stable_sort(
      out.groups.begin(), out.groups.end(),
      [](const NodeGroup& a, const NodeGroup& b) { return a.nodes.size() > b.nodes.size(); });
  out.cufit = versions.winner();
  for (const FleetNode* node : sorted)
    if (node->cufit != out.cufit) out.other_cufit.push_back(node->name);
  return out;
}

}  // namespace cufit::resolve
