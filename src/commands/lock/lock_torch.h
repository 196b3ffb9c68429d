// SPDX-License-Identifier: Apache-2.0
// Packages that pin torch decide with it: where the newest torch would silently mean an old package,
// the torch that its newest release wants is taken, if it serves the machines.
#pragma once

#include "commands/lock/lock_job.h"
#include "resolve/wheel/resolve.h"

namespace cufit::commands {

// Asks the installer once with torch open, for each class; changes the plan where another torch is
// wanted, and says on stderr what was weighed. `request`: without Python. An installer that fails
// here changes nothing: it will tell when the class is resolved. Without `upgrade` the versions of
// the lock that is there are kept, and with them the torch that they want.
Result<void> let_packages_choose(const Context& context, const LockJob& job,
                                 const host::Installer& uv, const resolve::Request& request,
                                 resolve::Plan& plan, bool upgrade, host::Interrupts& interrupts);

// Asks the installer once more where a resolved class has a package whose extra "torch" says which
// torch it works with (data/extensions.toml, torch_extra). True: the plan has another torch for the
// class now, and it is to be resolved again. Error{malformed} where no such torch serves the
// machines; where the user pinned torch, a line on stderr.
Result<bool> meet_torch_extras(const Context& context, const LockJob& job,
                               const host::Installer& uv, const resolve::Request& request,
                               resolve::Plan& plan, size_t index, const ClassToCompile& asked,
                               const formats::Pylock& resolved, host::Interrupts& interrupts);

}  // namespace cufit::commands
