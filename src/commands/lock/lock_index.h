// SPDX-License-Identifier: Apache-2.0
// What the indexes that a user or the installers' configuration names have of the torch that `cufit
// lock` chose, and of which they have it instead.
#pragma once

#include <optional>
#include <string>

#include "commands/lock/lock_job.h"
#include "formats/python/index_page.h"
#include "resolve/wheel/resolve.h"

namespace cufit::commands {

// A wheel of a plan that no index has.
struct IndexLack {
  Error error;              // "class cu126: no configured index has torch ...; it has ..."
  formats::IndexPage page;  // everything that they have of torch
};
// nullopt: an index has the wheel of this class, or nobody can tell: no index is configured (the
// installer's own is its matter), or one did not answer. A given index that has it under its
// variant's name only ("2.8.0+cu126", as PyTorch's own) is noted in the wheel: the installer is
// asked for that name then.
Result<std::optional<IndexLack>> index_lack(const Context& context, const LockJob& job,
                                            resolve::Class& one, const std::string& platform,
                                            host::Interrupts& interrupts);

}  // namespace cufit::commands
