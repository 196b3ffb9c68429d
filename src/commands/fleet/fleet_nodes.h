// SPDX-License-Identifier: Apache-2.0
// How the nodes of a fleet are asked: by the engine's own means, each for `cufit doctor --fast
// --json`; or what they said earlier, as files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct FleetSource {
  bool slurm = false, kubernetes = false;
  std::optional<std::string> ssh;         // hosts: "gpu[01-32],login"
  std::optional<std::string> from;        // a folder of recordings
  std::vector<std::string> srun_options;  // what comes after `--`
  std::optional<std::string> program;     // cufit's place on the nodes
  std::optional<std::string> kube_namespace;
  std::optional<std::string> seconds;  // of each node
};

// What one node said; `why` instead: it did not answer.
struct NodeText {
  std::string name, text, why;
  bool busy = false;    // it runs jobs and was not asked: no fault
  bool shared = false;  // it was asked beside other jobs, perhaps without a GPU
};

// Error{usage}: none or several engines, a limit that is no number. Error{not_found}: no srun, ssh,
// kubectl, folder.
Result<std::vector<NodeText>> ask_nodes(const Context& context, const FleetSource& source);

// `scontrol show node -d -o`; of a folder its file scontrol.txt, empty where there is none.
Result<std::string> slurm_node_lines(const Context& context, const FleetSource& source);

// The answers in srun's labelled lines ("3: {"), each of which begins with "cufit-node NAME".
// `asked`: the nodes that are to answer; empty = not known.
std::vector<NodeText> nodes_of_labelled(const std::string& labelled, const std::string& errors,
                                        const std::vector<std::string>& asked);

}  // namespace cufit::commands
