// SPDX-License-Identifier: Apache-2.0
// The engines behind fleet_nodes.h, and what they share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "commands/fleet/fleet_nodes.h"
#include "host/fleet/fan_out.h"

namespace cufit::commands {

inline constexpr size_t k_most_of_a_node = 8u << 20;
inline constexpr size_t k_most_of_all_nodes = 512u << 20;  // where one program brings them

// The shell's words that start cufit on a node: where it was said to be, in PATH, or in ~/.local.
std::string remote_command(const FleetSource& source, const std::string& own);
// Runs all of them, with a line of progress.
Result<std::vector<host::FanOutAnswer>> run_all(const std::vector<host::FanOutTask>& tasks,
                                                double seconds, size_t most_bytes,
                                                const char* what);
// Why a program brought no answer; in its own last words where it has any.
std::string why_none(const host::FanOutAnswer& answer, double seconds);
// What it said, or why there is no answer: half of one is none.
NodeText text_of(host::FanOutAnswer answer, double seconds);
std::string last_line(std::string_view text);
// The nodes of one srun, which may have been ended while some were still answering.
std::vector<NodeText> nodes_of_srun(const host::FanOutAnswer& answer,
                                    const std::vector<std::string>& asked, double seconds);

// Each node once: the first that said something. A GPU that is there twice would be given twice.
std::vector<NodeText> one_of_each(std::vector<NodeText> texts);

struct FleetPod {
  std::string name, space, node, phase, made;
};
// Of `kubectl get pods -o json`, of each node the newest.
Result<std::vector<FleetPod>> pods_of(const std::string& text);

Result<std::vector<NodeText>> ask_by_slurm(const FleetSource& source, double seconds);
Result<std::vector<NodeText>> ask_by_kubernetes(const FleetSource& source, double seconds);

}  // namespace cufit::commands
