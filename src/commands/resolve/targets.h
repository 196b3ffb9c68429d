// SPDX-License-Identifier: Apache-2.0
// What resolve, lock and others ask alike: the machines of `--for`, the white list of `--policy`,
// the requirements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/command.h"
#include "facts/facts.h"
#include "resolve/wheel/resolve.h"

namespace cufit::commands {

// One value of `--for`: "HERE" (any case) is this machine, the path of a file a recording (or a
// collect_env dump), anything else a description ("RTX 4090,535").
struct AskedTarget {
  resolve::Target target;
  facts::Facts facts;  // empty for a description
};
Result<AskedTarget> read_target(const Context& context, const std::string& asked);
// All of `--for`; this machine where there is none.
Result<std::vector<AskedTarget>> read_targets(const Context& context,
                                              std::vector<std::string> asked);

// `--policy FILE`; else cufit.toml in `folder` or one of its parents; else a policy that allows
// everything.
Result<resolve::Policy> read_policy(const Context& context, const std::optional<std::string>& file,
                                    const std::string& folder);

// `[index]` of cufit.toml in `folder` or one of its parents; empty where there is none. Error{usage}
// where the file is another user's.
Result<formats::IndexSetting> read_index_setting(const Context& context, const std::string& folder);

// The mirror that it names, into facts of this machine, for the steps that are printed. What is
// wrong with the file is one of their problems.
void add_mirror(const Context& context, facts::Facts& facts);

// The positional REQUIREMENTs and the `--python` of a request.
Result<resolve::Request> read_request(const std::vector<std::string>& requirements,
                                      const std::optional<std::string>& python);

}  // namespace cufit::commands
