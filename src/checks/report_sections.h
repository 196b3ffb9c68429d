// SPDX-License-Identifier: Apache-2.0
// The parts of a report beside the findings; doctor.cc puts them together.
#pragma once

#include <vector>

#include "checks/check.h"

namespace cufit::checks {

// Findings that another one explains go behind those that nothing explains, so that a link of a
// chain names the cause; "the driver answers, and nothing says why" goes altogether where something
// does. root_cause.cc
std::vector<Finding> causes_first(std::vector<Finding> findings);
// What is said of several equal GPUs in one finding, "GPU 0-7". equal_gpus.cc
std::vector<Finding> merge_equal_gpus(std::vector<Finding> findings, const Input& input);
// One chain per GPU and environment with torch (one per environment where there is no GPU).
// chain.cc
std::vector<Chain> build_chains(const Input& input, const std::vector<Finding>& all_findings);
LinkState judge_chain(
    const Chain& chain);  // the worst link that stops it; unknown where a needed link is
// What each GPU can do with this torch, one row per GPU and data type. abilities.cc
std::vector<Link> list_abilities(const Input& input);
// A row "SECTION.NAME.KEY" of one of these lists.
inline Link section_row(const char* section, const char* name, LinkState state,
                        const std::string& key) {
  Link link;
  link.name = name;
  link.state = state;
  link.key = std::string(section) + "." + name + "." + key;
  return link;
}
// What on the host would starve the GPUs. host_limits.cc
std::vector<Link> list_host_limits(const Input& input);
// Whether the GPUs work together: one row per question of --deep. together_rows.cc
std::vector<Link> list_together(const Input& input);

}  // namespace cufit::checks
