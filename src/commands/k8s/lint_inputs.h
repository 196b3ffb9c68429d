// SPDX-License-Identifier: Apache-2.0
// What `cufit k8s lint` reads: manifests, and what its nodes are.
#pragma once

#include <string>
#include <vector>

#include "commands/command.h"
#include "resolve/kubernetes/pod_lint.h"

namespace cufit::commands {

// Documents that are damaged go into `problems`, each with file and line; the others are read. So
// does that there is no document at all.
// Error: a file that cannot be opened, or is too large.
Result<std::vector<resolve::LintFile>> read_manifests(const std::vector<std::string>& paths,
                                                      std::vector<std::string>& problems);

// Recordings (cufit.facts/1, a doctor's JSON, a collect_env dump), Node objects, and folders of
// them: files that end in .json, .yaml, .yml, and NAME/facts.json. Error: a file that was named is
// neither, or a folder holds none. `all_read` becomes false where a file of a folder is damaged or
// may not be read; one that is something else is no loss.
Result<std::vector<resolve::ClusterNode>> read_nodes(const Context& context,
                                                     const std::vector<std::string>& paths,
                                                     std::vector<std::string>& problems,
                                                     bool& all_read);

}  // namespace cufit::commands
